# SPDX-License-Identifier: Apache-2.0
# tags: memory threads
"""quern.fuse: what a traced function computes is what it computes by itself, on random compositions too; what cannot be traced
says where, and what to write; when a function is traced again."""

import math
import operator
import pickle
import random
import sys
import threading

import quern
from tap import diag, done_testing, is_, ok, raises, skip, skip_all

if not hasattr(quern, "sigmoid"):
    skip_all("this build has some ops only")
try:
    import numpy as np
except ImportError:
    np = None

fuse = quern.fuse
a = quern.asarray([0.5, -1.5, 2.0, 3.0])
b = quern.asarray([1.0, 2.0, -3.0, 0.25])
counts = quern.asarray([1, 2, 3, 4])
LEVEL = 2.0


def listed(result):
    return [listed(each) for each in result] if isinstance(result, (tuple, list)) else result.tolist()


# ---- What is computed ----


@fuse
def swish(x, beta):
    """x, let through by sigmoid(beta * x)."""
    return x * quern.sigmoid(quern.multiply(x, beta))


wanted = quern.multiply(a, quern.sigmoid(quern.multiply(a, 0.5))).tolist()
is_(swish(a, 0.5).tolist(), wanted, "a function of an array and a number")
is_((swish.__name__, swish.__doc__[:2]), ("swish", "x,"), "it keeps its name and docstring")
is_(swish.op(a, 0.5), swish.op(b, 7), "numbers are no part of a trace")
ok(swish(a, beta=2).tolist() != wanted and swish(beta=0.5, x=a).tolist() == wanted, "arguments by name")
out = quern.asarray([0.0] * 4)
ok(swish(a, 0.5, out=out) is out and out.tolist() == wanted, "out")
is_(str(swish(a, 0.5, dtype="f64").dtype), "float64", "dtype")
is_(swish.explain(a, 0.5).operands[0].name, "x", "explain")
ok("sigmoid" in repr(swish) and repr(fuse(lambda x: x)).endswith("not traced yet>"), "repr")
ok(pickle.loads(pickle.dumps(swish)) is swish, "pickled by name")

is_(fuse(lambda x, y: (x + y, x > y))(a, b)[1].tolist(), [False, False, True, True], "two results")
is_(fuse(lambda x: [x + 1])(a)[0].tolist(), [1.5, -0.5, 3.0, 4.0], "a list of one")
is_(fuse(lambda x: (x * 2, None, 7))(a)[1:], (None, 7), "results that are no arrays")
is_(fuse(lambda *xs: xs[0] + xs[1] * xs[2])(a, b, 2).tolist(), [2.5, 2.5, -4.0, 3.5], "any number of arguments")
is_(fuse(lambda x, **ks: x + ks["k"])(a, k=b).tolist(), [1.5, 0.5, -1.0, 3.25], "  by name")
is_(fuse(lambda x, k=3.0: x * k)(a).tolist(), [1.5, -4.5, 6.0, 9.0], "a default")
is_(fuse(lambda x, y: x)(a, b).tolist(), a.tolist(), "an argument as it is, another unused")
is_(fuse(lambda x: swish(x, 0.5) + 1)(a).tolist(), quern.add(swish(a, 0.5), 1).tolist(), "a fused function in another")
is_(str(fuse(lambda x: quern.astype(x, "f64") * 2)(a).dtype), "float64", "a cast")
is_(fuse(lambda x: x.astype("i32"))(a).tolist(), [0, -1, 2, 3], "  as a method")
is_(fuse(lambda x, k: x * k)(counts, 0.5).tolist(), [0.5, 1.0, 1.5, 2.0], "a fraction beside integers")
is_(fuse(lambda x: x // 2 + x % 2 + (x & 1) + (x << 1) + ~x)(counts).tolist(), [2, 2, 5, 5], "operators of integers")
is_(fuse(lambda x: 2 ** x - 1 / x)(counts).tolist(), [1.0, 3.5, 8 - 1 / 3, 15.75], "numbers on the left")
is_(fuse(lambda x: abs(-x) + round(x) + +x)(a).tolist(), [1.0, -2.0, 6.0, 9.0], "unary operators")
is_(listed(fuse(lambda x, y: divmod(x, y))(counts, 2)), [[0, 1, 1, 2], [1, 0, 1, 0]], "divmod")
is_(fuse(lambda x: x * float("inf"))(b).tolist(), [math.inf, math.inf, -math.inf, math.inf], "infinity")
is_(fuse(lambda x: x * -0.0 - 1e-5)(a).tolist()[0], quern.asarray(-1e-5).item(), "small numbers, and -0")


def aliases(x):
    t = x * 2
    u = t
    t += 1
    return u, t


is_(listed(fuse(aliases)(a)), [[2.0, -2.0, 5.0, 7.0]] * 2, "t += 1 is seen by all names of t")


def loop(x, n):
    for k in range(n):
        x = x * x + k
    return x


is_(fuse(loop, static_argnames="n")(a, 3).tolist(), [quern.asarray(loop(v, 3)).item() for v in a.tolist()],
    "a loop over a static count")
is_(fuse(static_argnames=("n",))(loop)(a, 2).tolist(), [loop(v, 2) for v in a.tolist()], "  by a decorator with arguments")
deep = fuse(lambda x: sum([x] * 60, 0.0))
is_(deep(a).tolist()[0], 30.0, "a long sum")
exact = quern.asarray([0.5, -1.25, 0.875], dtype="f64")
is_(fuse(lambda x: loop(x, 5))(exact).tolist(), [loop(v, 5) for v in exact.tolist()], "values that are used often")

rows = quern.asarray([[1.0, 2.0, 3.0], [4.0, 4.0, 6.0]])

@fuse
def softmax(x):
    e = quern.exp(x - x.max(axis=-1, keepdims=True))
    return e / quern.sum(e, axis=-1, keepdims=True)

ok(all(math.isclose(p, q, rel_tol=1e-6) for mine, own in zip(softmax(rows).tolist(), quern.softmax(rows).tolist())
       for p, q in zip(mine, own)), "softmax in three lines")
is_(fuse(lambda x: x - x.sum())(rows).tolist(), [[-19.0, -18.0, -17.0], [-16.0, -16.0, -14.0]],
    "a sum over all axes beside elements")
is_(fuse(lambda x: x.sum(axis=-1) * 2)(rows).tolist(), [12.0, 28.0], "a reduced result loses its axis")
is_(fuse(lambda x: x.sum(axis=(1,), keepdims=True))(rows).tolist(), [[6.0], [14.0]], "  or keeps it")
is_(fuse(lambda x: quern.var(x, axis=-1, correction=1))(rows).tolist(),
    [1.0, quern.var(rows, axis=-1, correction=1).tolist()[1]], "a parameter")
raises(quern.FuseError, lambda: fuse(lambda x: x - x.sum(axis=-1))(rows), "a reduced value beside elements", "keepdims=True")
raises(quern.FuseError, lambda: fuse(lambda x: x.sum(axis=0) + x.sum(axis=1))(rows), "  over two axes", "keepdims=True")
raises(quern.FuseError, lambda: fuse(lambda x: x.sum(initial=3.0))(rows), "initial", "initial=")
leaky = fuse(lambda x, slope: quern.leaky_relu(x, slope) + quern.clip(x, -1, 1))
is_(leaky(a, 0.5).tolist(), [1.0, -1.75, 3.0, 4.0], "a number as the parameter of an op")
ok(leaky.op(a, 0.5) is leaky.op(a, 0.25), "  that each call gives")
is_(fuse(lambda x: quern.frexp(x))(a)[1].tolist(), [0, 1, 2, 2], "an op of two results")

# ---- Random compositions, beside the ops one by one ----

UNARY = ["negative", "abs", "exp", "tanh", "sigmoid", "square", "relu", "floor", "gelu"]
BINARY = {operator.add: "add", operator.sub: "subtract", operator.mul: "multiply", operator.truediv: "divide"}
seed = random.randrange(10**6)
chance = random.Random(seed)


def plan(depth):
    if depth == 0 or chance.random() < 0.15:
        return chance.choice(["x", "y", round(chance.uniform(-3, 3), 3)])
    if chance.random() < 0.4:
        return (chance.choice(UNARY), plan(depth - 1))
    return (chance.choice(list(BINARY)), plan(depth - 1), plan(depth - 1))


def followed(steps, x, y, eager):
    if not isinstance(steps, tuple):
        return {"x": x, "y": y}.get(steps, steps)
    values = [followed(step, x, y, eager) for step in steps[1:]]
    if all(isinstance(value, (int, float)) for value in values):
        return 0.75
    if isinstance(steps[0], str):
        return getattr(quern, steps[0])(*values)
    return getattr(quern, BINARY[steps[0]])(*values) if eager else steps[0](*values)


different = []
for _ in range(60):
    steps = plan(5)
    if isinstance(followed(steps, a, b, True), float):
        continue
    eager, traced = followed(steps, a, b, True), fuse(lambda x, y: followed(steps, x, y, False))(a, b)
    if [str(v) for v in eager.tolist()] != [str(v) for v in traced.tolist()]:
        different.append((steps, eager.tolist(), traced.tolist()))
diag("seed {}".format(seed))
is_(different, [], "random functions give the bits of their ops")

# ---- What cannot be traced ----


def if_value(x):
    if x > 0:
        return x
    return -x


def writes(x):
    x += 1
    return x


def assigns(x):
    x[x > 0] = 0.0
    return x


line = if_value.__code__.co_firstlineno + 1
error = raises(quern.FuseError, lambda: fuse(if_value)(a), "if on values", "quern.where")
is_((error.filename, error.lineno), (__file__, line), "  its file and line")
ok("`if x > 0:`" in str(error) and "{}:{}".format(__file__, line) in str(error) and str(error).startswith("if_value: "),
   "  in the text, with the code")
for name, function, part in (
        ("and", lambda x: (x > 0) and x, "& |"), ("chained comparisons", lambda x: 0 < x < 1, "& |"),
        ("not", lambda x: not x, "~"),
        ("an index", lambda x: x[0], "index the argument before"), ("a mask", lambda x: x[x > 0], "quern.where"),
        ("assignment to elements", assigns, "quern.where"), ("+= on an argument", writes, "x = x + y"),
        ("an unknown method", lambda x: x.frobnicate(), ".frobnicate"), ("a view", lambda x: x.T, ".T"),
        ("math.exp", lambda x: math.exp(x), "quern.NAME"), ("float", lambda x: float(x), "static_argnames"),
        ("range of a number", lambda x, n=3: [x for k in range(n)][0], "static_argnames"),
        ("a loop", lambda x: [v for v in x], "a loop"),
        ("in", lambda x: 3 in x, "quern.any"), ("@", lambda x: x @ x, "matrix"),
        ("an array from outside", lambda x: x + a, "an argument"),
        ("a list", lambda x: x + [1, 2], "an argument"), ("None", lambda x: x + None, "NoneType"),
        ("out", lambda x: quern.exp(x, out=a), "out="),
        ("dtype", lambda x: quern.add(x, x, dtype="f64"), "astype"), ("explain", lambda x: quern.exp.explain(x), "explain"),
        ("a compiled expression", lambda x: quern.compile("x + 1")(x), "a compiled expression"),
        ("a shape that depends on values", lambda x: quern.op("nonzero")(x), "depends on values"),
        ("a function that is not made of ops", lambda x: quern.diff(x), "operators and ops"),
        ("one of Python's", lambda x: bytes(x), "wanted"), ("a method of others", lambda x: b.to_device(x), "operators and ops"),
        ("too many arguments", lambda x: quern.exp(x, x, x), "exp"), ("no result", lambda x: None, "depend on an array"),
        ("a result of text", lambda x: "x", "returns"),
        ("the shape of a value in between", lambda x: x * (x + 1).shape[0], "shape")):
    error = raises(quern.FuseError, lambda: fuse(function)(a), "refused: " + name, part)
    if name not in ("no result", "a result of text"):
        is_(getattr(error, "filename", None), __file__, "  with the file")
ok(isinstance(error, AttributeError) and not hasattr(quern.fuse, "x"), "an unknown attribute is an AttributeError, too")
is_(fuse(lambda x: x if hasattr(x, "nonsense") else x + 1)(a).tolist(), [1.5, -0.5, 3.0, 4.0], "hasattr says no")
raises(TypeError, lambda: fuse(3), "what is no function")
raises(ValueError, lambda: fuse(lambda x: x, static_argnames="y"), "a name that is none")
raises(TypeError, lambda: fuse(lambda x: x)(), "too few arguments", "missing")
raises(TypeError, lambda: fuse(lambda x, o: x, static_argnames="o")(a, []), "a static argument that is no key", "hashable")

# ---- When it is traced ----

runs = []


@fuse
def noted(x, flag=False, name=None):
    runs.append((flag, name))
    return x * LEVEL if flag else x + 1


noted(a), noted(b), noted(counts), noted(a, True), noted(a, True), noted(a, False, "s")
is_(runs, [(False, None), (True, None), (False, "s")], "once for each bool, text, None")
LEVEL = 4.0
is_(noted(a, True).tolist(), [2.0, -6.0, 8.0, 12.0], "a number among the globals that has changed")
LEVEL = 4
is_(str(noted(counts, True).dtype), "int64", "  to an int of the same value")
factor = 3.0
closed = fuse((lambda: (lambda x: x * factor))())
closed(a)
is_(fuse(lambda x: x * x.shape[0] + x.ndim)(a).tolist()[0], 3.0, "shapes of arguments may be read")
sized = fuse(lambda x: x * len(x))
is_((sized(a).tolist()[0], sized(quern.asarray([0.5, 1.0])).tolist()[0]), (2.0, 1.0), "  and make a trace for each")


class Layer:
    scale = 2.0

    @fuse
    def forward(self, x):
        return x * self.scale

    @fuse(static_argnames="self")
    def backward(self, x):
        return x * self.scale


raises(quern.FuseError, lambda: Layer().forward(a), "a method: self is no array", "static_argnames='self'")
is_(Layer().backward(a).tolist(), [1.0, -3.0, 4.0, 6.0], "  it may be static")


def changing(k):
    def inner(x):
        return x * k
    return inner


is_([fuse(changing(k))(a).tolist()[0] for k in (1, 2, 3)], [0.5, 1.0, 1.5], "closures")
many = fuse(lambda x, name: x + len(name))
for k in range(600):
    many(a, "n" * (k % 300))
is_(many(a, "nn").tolist()[0], 2.5, "more traces than are kept")

problems = []
race = fuse(lambda x, k, name: x * k + len(name))


def compute(seed):
    for k in range(200):
        if race(a, seed, "n" * (k % 20)).tolist()[0] != 0.5 * seed + k % 20:
            problems.append((seed, k))


threads = [threading.Thread(target=compute, args=(seed,)) for seed in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
is_(problems, [], "from many threads")

before = sys.getrefcount(a)
for k in range(2000):
    swish(a, 0.5)
    race(a, k, "n")
is_(sys.getrefcount(a), before, "nothing is left behind")

# ---- NumPy's functions, and PyTorch's ----

if np:
    x = np.linspace(-2, 2, 5, dtype="f4")
    for name, function in (("ufuncs", lambda x: np.exp(x) + np.absolute(x) * np.power(x, 2)),
                           ("where", lambda x: np.where(x > 0, x, -x)),
                           ("clip", lambda x: np.clip(x, -1, 1)), ("on the left", lambda x: np.float32(2) * x),
                           ("maximum", lambda x: np.maximum(x, 0.5)), ("sum", lambda x: np.sum(x * x)),
                           ("max", lambda x: x - np.max(x)),
                           ("mean", lambda x: np.mean(x, axis=-1, keepdims=True) + x)):
        ok(np.allclose(fuse(function)(x), function(x), rtol=1e-6), "NumPy's " + name)
    ok(type(swish(x, 0.5)) is np.ndarray, "NumPy in, NumPy out")
    raises(quern.FuseError, lambda: fuse(lambda x: np.fft.fft(x))(x), "what Quern has not", "numpy.fft")
    raises(quern.FuseError, lambda: fuse(lambda x: np.asarray(x))(x), "asarray", "asarray")
    raises(quern.FuseError, lambda: fuse(lambda v: x * v)(x), "an array of NumPy's from outside", "an argument")
else:
    skip(12, "there is no NumPy here")
try:
    import torch
except ImportError:
    skip(3, "there is no PyTorch here")
else:
    t = torch.linspace(-2, 2, 5)
    ok(torch.allclose(fuse(lambda x: torch.exp(x) * torch.sigmoid(x) + torch.sum(x))(t),
                      torch.exp(t) * torch.sigmoid(t) + torch.sum(t)), "PyTorch's functions")
    raises(quern.FuseError, lambda: fuse(lambda x: torch.var(x))(t), "those that mean something else", "torch.var")
    raises(quern.FuseError, lambda: fuse(lambda x: t * x)(t), "a tensor from outside", "an argument")
done_testing()
