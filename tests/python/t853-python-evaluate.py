# SPDX-License-Identifier: Apache-2.0
# tags: memory threads
"""quern.evaluate: which variables it sees, what it keeps, what it refuses; names that the package has not; a spec that is loaded
twice."""

import array
import gc
import os
import sys
import tempfile
import threading
import weakref

import quern
from tap import done_testing, is_, ok, raises, skip

a = array.array("f", [1, 2, 3])
b = quern.asarray([10.0, 20.0, 30.0])
scale = 2
evaluate = quern.evaluate

# ---- Variables ----

is_(evaluate("a*b + scale").tolist(), [12.0, 42.0, 92.0], "the variables of a module")


def local():
    scale, c = 3.0, b
    return evaluate("a*scale + c").tolist()


def hidden():
    inner = b
    return lambda: evaluate("inner + a")


is_(local(), [13.0, 26.0, 39.0], "a function's locals come before globals")
raises(NameError, hidden(), "those of an enclosing function are not seen", "local_dict")
raises(NameError, lambda: evaluate("a + nonsense"), "no such variable", "nonsense")
is_(evaluate("x + y", {"x": a, "y": b}).tolist(), [11.0, 22.0, 33.0], "local_dict, by position")
is_(evaluate("x + b", local_dict={"x": a}).tolist(), [11.0, 22.0, 33.0], "  with the globals of the caller")
is_(evaluate("x + b", {"x": a}, {"b": a}).tolist(), [2.0, 4.0, 6.0], "  and others")
raises(NameError, lambda: evaluate("x + b", {"x": a}, {}), "  or none: the text sees no more", "b")
raises(NameError, lambda: evaluate("len + a", {"a": a}, {}), "never Python's builtins", "len")


class Space(dict):
    def __missing__(self, name):
        return {"a": a, "k": 4.0}[name]


is_(evaluate("a*k", Space(), {}).tolist(), [4.0, 8.0, 12.0], "any mapping")
raises(ZeroDivisionError, lambda: evaluate("a*k", type("Bad", (), {"__getitem__": lambda self, name: 1 // 0})()),
       "which may raise")
is_(evaluate("param s; a*s", {"a": a, "s": 3}).tolist(), [3.0, 6.0, 9.0], "a parameter is a variable, too")
is_(evaluate("p = a + 1; q = a > 2", {"a": a})[1].tolist(), [False, False, True], "several results")
is_([evaluate("max + a", {"max": b, "a": a}).tolist()], [[11.0, 22.0, 33.0]], "a variable of an op's name")
is_(eval("evaluate('u*v')", {"evaluate": evaluate, "u": a}, {"v": 2}).tolist(), [2.0, 4.0, 6.0], "called in eval")


class Body:
    u = b
    w = evaluate("u + a")
    kept = u


ok(Body.w.tolist() == [11.0, 22.0, 33.0] and Body.kept is b, "in the body of a class, which keeps its names")

out = array.array("f", [0, 0, 0])
ok(evaluate("a + 1", out=out) is out and out.tolist() == [2.0, 3.0, 4.0], "out")
is_(str(evaluate("a + 1", {"a": a}, dtype="f64").dtype), "float64", "dtype")
is_(evaluate("x*y + 1", {"x": 3, "y": 4}), 13, "numbers alone give a number")
is_(evaluate("x / y", {"x": 3, "y": 4}), 0.75, "  a float")

for name, call, error in (("no text", lambda: evaluate(), TypeError), ("bytes", lambda: evaluate(b"a"), TypeError),
                          ("an argument twice", lambda: evaluate("a", None, local_dict={}), TypeError),
                          ("NumExpr's casting", lambda: evaluate("a", casting="no"), TypeError),
                          ("syntax", lambda: evaluate("a +"), SyntaxError),
                          ("an unknown function", lambda: evaluate("sinn(a)"), NameError)):
    raises(error, call, "refused: " + name)

# The text is data: nothing of Python's can be reached by it.
for text in ("__import__('os')", "a.tolist()", "(lambda: 1)()", "a.__class__", "[a for a in b]", "a[0]", "open(a)", "exec(a)",
             "a if a else b", "a; import os", "'x'", "f'{a}'"):
    raises((SyntaxError, NameError), lambda: evaluate(text, {"a": a, "b": a, "os": a}), "no Python: " + text)

# ---- What is kept ----


class Held(array.array):
    pass


def lets_go():
    x = Held("f", [1, 2])
    seen = weakref.ref(x)
    names = locals()
    evaluate("x + 1")
    same = "x" in names
    del names, x
    gc.collect()
    return same, seen()


def lets_go_again():
    x = Held("f", [1, 2])
    seen = weakref.ref(x)
    evaluate("x + 1")
    del x
    gc.collect()
    return seen()


is_(lets_go_again(), None, "a frame keeps no variable that evaluate has read")
is_(lets_go()[0], True, "what locals() has given is left as it is")
context = quern.Context(jit="off", cache_dir="")
for k in range(600):
    context.evaluate("a*{} + 1".format(k), {"a": a})
is_(context.evaluate("a*0 + 1", {"a": a}).tolist(), [1.0] * 3, "more texts than are kept")
before = sys.getrefcount(a)
for k in range(1000):
    evaluate("a + b", out=out)
    try:
        evaluate("a + nonsense")
    except NameError:
        pass
is_(sys.getrefcount(a), before, "nothing is left behind")

problems = []


def compute(seed):
    x = quern.asarray([float(seed)])
    for k in range(300):
        if context.evaluate("x*{} + k".format(k % 290)).tolist() != [float(seed * (k % 290) + k)]:
            problems.append((seed, k))


threads = [threading.Thread(target=compute, args=(seed,)) for seed in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
is_(problems, [], "from many threads")

# ---- Names ----

if hasattr(quern, "asin"):
    raises(AttributeError, lambda: quern.gelo, "quern.gelo", "did you mean 'gelu'")
    raises(AttributeError, lambda: quern.gleu, "quern.gleu", "did you mean 'gelu'")
    raises(AttributeError, lambda: quern.jax, "a module that is not imported", "write import quern.jax")
    raises(AttributeError, lambda: getattr(quern, "no.where.to"), "a name with dots", "no attribute 'no.where.to'")
    raises(AttributeError, lambda: quern.arcsin, "NumPy's name", "'asin'")
    raises(AttributeError, lambda: quern.ReLU, "in capitals", "'relu'")
    raises(AttributeError, lambda: quern.matmul, "a name of the array API alone", "quern.array_api.matmul")
    raises(AttributeError, lambda: quern.argsort, "what Quern has not", "no op that sorts")
    raises(TypeError, lambda: quern.evaluate("1.0 * x", {"x": [1.0]}, truediv=True), "NumExpr's argument", "/ of integers always gives a float")
    raises(TypeError, lambda: quern.evaluate("1.0 * x", x=[1.0]), "a variable by name", "local_dict={...}")
    raises(AttributeError, lambda: quern.tensor, "PyTorch's", "write quern.asarray(x)")
    raises(AttributeError, lambda: quern.concatenate, "NumPy's, which is no op", "quern.array_api.concat is there")
    raises(AttributeError, lambda: quern.ElementwiseKernel, "CuPy's", "write quern.compile(text)")
    raises(TypeError, lambda: quern.sum([1.0], axis="x"), "the name of a dimension", "x.get_axis_num(name)")
    raises(TypeError, lambda: quern.max([1.0], [2.0]), "two operands", "of two operands write maximum(x, y)")
    raises(TypeError, lambda: quern.max([1.0], quern.asarray([1, 2])), "  as arrays", "of two operands write maximum(x, y)")
    raises(TypeError, lambda: quern.round([1.25], decimals=1), "decimals", "write round(x * 100) / 100")
    raises(KeyError, lambda: quern.op("Gelu"), "an op in capitals", "the nearest name is gelu")
    raises(KeyError, lambda: quern.op("arcsin"), "NumPy's name", "there is no op arcsin: write asin")
    raises(TypeError, lambda: quern.sum([1.0], dim=0), "PyTorch's word", "no argument dim; dim is axis here")
    raises(TypeError, lambda: quern.sum([1.0], keepdim=True), "another one", "keepdims here")
    raises(TypeError, lambda: quern.exp([1.0], dim=0), "without an axis", "no argument dim")
else:
    skip(10, "this build has some ops only")
raises(AttributeError, lambda: quern.qqqqqqq, "nothing near", "quern.ops()")
ok(not hasattr(quern, "__nonsense__"), "hasattr")

# ---- The same spec twice ----

SPEC = 'unary "acme.{}" {{ doc = "Twice x.", dtypes = floating, body = [[ x + x ]] }}\n'
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "twice.lua")

    def write(text):
        with open(path, "w") as file:
            file.write(text)
        return path

    try:
        ops = context.load_spec(write(SPEC.format("twice")))
    except NotImplementedError as refused:
        ops = None
        skip(5, str(refused))
    if ops:
        is_(context.load_spec(path), ops, "load_spec of a text that is loaded: the same ops")
        copy = os.path.join(folder, "copy.lua")
        os.rename(path, copy)
        is_(context.load_spec(copy), ops, "  from another place, too")
        raises(ValueError, lambda: context.load_spec(write(SPEC.format("twice") + "\n-- changed\n")), "a text that has changed")
        os.rename(copy, path)
        write(SPEC.format("twice") + "\n-- changed\n")
        raises(ValueError, lambda: context.load_spec(path), "  of a file that was loaded: what to do", "new quern.Context()")
        results = []
        write(SPEC.format("threads"))
        loads = [threading.Thread(target=lambda: results.append(context.load_spec(path))) for k in range(4)]
        for thread in loads:
            thread.start()
        for thread in loads:
            thread.join()
        is_([op.__name__ for each in results for op in each], ["acme.threads"] * 4, "from several threads")
done_testing()
