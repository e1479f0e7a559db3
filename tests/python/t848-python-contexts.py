# SPDX-License-Identifier: Apache-2.0
# tags: memory threads
"""Contexts, expressions and specs from Python, and the exceptions that the library's status codes become."""

import array
import gc
import os
import pickle
import sys
import tempfile
import threading
import traceback
import weakref

import quern
from tap import done_testing, is_, ok, raises, skip

x = array.array("f", [1, 2])
y = array.array("f", [0, 0])
quiet = quern.Context(jit="off", cache_dir="")

# ---- Statuses ----

for name, error, status, function, part in (
        ("DTYPE", TypeError, -2, lambda: quern.add(x, x, out=array.array("i", [0, 0])), "add: output 1 (out): dtype i32"),
        ("SHAPE", ValueError, -3, lambda: quern.add(x, array.array("f", [1] * 3)), "does not broadcast"),
        ("OVERLAP", ValueError, -7, lambda: quern.compile("a = x + 1; b = x")(x, out=(y, y)), "output"),
        ("READONLY", ValueError, -8, lambda: quern.add(x, x, out=memoryview(x).toreadonly()), "add: output 1 (out): it is"),
        ("NOTFOUND", KeyError, -12, lambda: quern.op("leaky_rellu"), "the nearest name is leaky_relu"),
        ("NOTFOUND in an expression", NameError, -12, lambda: quern.compile("y = leaky_rellu(x)"), "did you mean 'leaky_relu'?"),
        ("SYNTAX", SyntaxError, -11, lambda: quern.compile("y = gelu(x"), "expected ')'"),
        ("ARGUMENT", ValueError, -1, lambda: quern.compile("y = x\0"), "a character of value 0"),
        ("LIMIT", ValueError, -18, lambda: quern.compile("y = " + "(" * 300 + "x" + ")" * 300), "")):
    got = raises(error, function, name, part)
    is_((type(got), getattr(got, "status", None)), (error, status), name + ": exactly that, with its status")

# ---- Syntax ----

error = raises(SyntaxError, lambda: quern.compile("y = x +\n  * 3"), "syntax in the second line", "expected a value, found '*'")
is_((error.filename, error.lineno, error.offset, error.text), ("expression", 2, 3, "  * 3"), "where")
shown = "".join(traceback.format_exception_only(type(error), error)).splitlines()
ok(any(line.strip().startswith("^") for line in shown) and "    * 3" in shown, "as Python shows it, with a caret")
raises(TypeError, lambda: quern.compile(b"y = x"), "bytes are no text", "compile: ")
raises(ValueError, lambda: quern.compile("y = x\0"), "a zero in it", "compile: ")
raises(UnicodeEncodeError, lambda: quern.compile("y = \udc80"), "half a character")
raises(SyntaxError, lambda: quern.compile("y = \u00e9"), "a letter that expressions have not")

# ---- Specs ----

SPEC = """
unary "acme.{}" {{
  doc = "Twice x and more.", dtypes = floating, body = [[ x + x + more ]], params = {{ more = 0.0 }},
}}
"""
with tempfile.TemporaryDirectory() as folder:
    def spec(name, text):
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    error = raises(FileNotFoundError, lambda: quiet.load_spec(os.path.join(folder, "none.lua")), "no such file", "none.lua")
    is_((error.errno, error.status), (2, -16), "its numbers")
    is_(error.filename, os.path.join(folder, "none.lua"), "its filename")
    raises(IsADirectoryError, lambda: quiet.load_spec(folder), "a folder", folder)
    raises(FileNotFoundError, lambda: quiet.load_spec(os.path.join(folder, "(error 13)")), "a name like a sentence", "(error 13)")
    raises(TypeError, lambda: quiet.load_spec(3), "no path")
    raises(ValueError, lambda: quiet.load_spec("a\0b"), "a zero in a path")
    try:
        ops = quiet.load_spec(spec("twice.lua", SPEC.format("twice") + SPEC.format("again")))
    except NotImplementedError as refused:
        ops = None
        skip(25, str(refused))
    if ops:
        is_([op.__name__ for op in ops], ["acme.again", "acme.twice"], "the ops of a spec, by name")
        is_((ops[1].doc, ops[1].params), ("Twice x and more.", {"more": 0.0}), "described as it says")
        is_((ops[1](x).tolist(), ops[1](x, more=1).tolist()), ([2.0, 4.0], [3.0, 5.0]), "computed")
        ok(quiet.op("acme.twice") is ops[1] and quiet.call("acme.twice", x).tolist() == [2.0, 4.0], "found in the context")
        ok("acme.twice" in quiet.ops() and "acme.twice" not in quern.ops(), "and only there")
        raises(KeyError, lambda: quern.op("acme.twice"), "not in the default one")
        is_(quiet.load_spec(os.path.join(folder, "twice.lua")), ops, "once more: the same")
        ok(ops[1].backward == "acme.twice_backward" not in quiet.ops(), "its derivative has a name, and is made when it is asked for")
        is_(quiet.op("acme.twice_backward")(x).tolist(), [2.0, 4.0], "  it is that")
        ok("acme.twice_backward" in quiet.ops(), "  then it is listed")
        norm, = quiet.load_spec(spec("norm.lua", 'reduction "acme.hypot_sum" {\n  doc = "The norm.", dtypes = floating,'
                                     ' lift = "x * x", combine = "a + b", finish = "sqrt(a)",\n}\n'))
        pairs = quern.asarray([[3.0, 4.0], [5.0, 12.0]])
        is_(norm(pairs, axis=-1).tolist(), [5.0, 13.0], "a reduction of three lines")
        is_(norm(pairs, axis=0, keepdims=True).shape, (1, 2), "  with axis= and keepdims=")
        is_(quiet.compile("acme.hypot_sum(x, axis=-1) + 1")(pairs).tolist(), [6.0, 14.0], "  in an expression")
        bad = spec("bad.lua", 'unary "acme.bad" {\n  doc = "x", dtypes = floating,\n  body = [[ 0.5 * ( ]] }\n')
        error = raises(SyntaxError, lambda: quiet.load_spec(bad), "a body with a fault")
        is_((os.path.basename(error.filename), error.lineno), ("bad.lua", 3), "where")
        for name in ("a:7:9: b.lua", "\udcff.lua", "\n.lua", "\u00e9.lua"):
            bad = spec(name, "local y = = 1")
            error = raises(SyntaxError, lambda: quiet.load_spec(bad), "a file of an odd name")
            is_((error.filename, error.lineno, error.text), (bad, 1, "local y = = 1"), "it is kept: " + ascii(name))
        os.mkfifo(os.path.join(folder, "pipe.lua"))
        raises(OSError, lambda: quiet.load_spec(os.path.join(folder, "pipe.lua")), "a FIFO, which is not waited for", "not a regular file")
        with open(os.path.join(folder, "bytes.lua"), "wb") as file:
            file.write(SPEC.format("bytes").encode().replace(b"Twice x", b"Twice \xff x"))
        odd, = quiet.load_spec(os.path.join(folder, "bytes.lua"))
        ok(odd.doc.startswith("Twice \ufffd x") and odd.__doc__, "a description that is no UTF-8")
        mine, = quern.load_spec(spec("mine.lua", SPEC.format("mine")))
        is_(mine.__name__, "acme.mine", "in the default context")
        ok("acme.mine" in quern.ops() and quern.call("acme.mine", x).tolist() == [2.0, 4.0], "found there")
        raises(KeyError, lambda: quern.op("acme.mine2"), "names near it", "acme.mine")
        derivative = quern.op("acme.mine_backward")
        ok(pickle.loads(pickle.dumps(derivative)) is derivative, "its derivative, pickled by the spec")

# ---- Contexts ----

is_((quiet.describe()["jit"], quern.Context(threads=3).describe()["threads"]), ("off", "3"), "options")
for bad in ({"jit": "x"}, {"jit": 1}, {"threads": 0}, {"threads": -1}, {"cc": "a\0b"}):
    raises(ValueError, lambda: quern.Context(**bad), "options that cannot be: {}".format(bad))
for bad in ({"threads": "2"}, {"cache_dir": 3}, {"nonsense": 1}):
    raises(TypeError, lambda: quern.Context(**bad), "options of other types: {}".format(bad))
ok(quern.Context(cache_dir=os.curdir) and quern.Context(None, None, None, None), "paths, and None")

bounded = quern.Context(jit="off", cache_dir="", limits={"text": 20, "node": 5, "spec_step": 100000})
raises((ValueError, SyntaxError), lambda: bounded.compile("y = x * 1.5 + x * 2.5 + 1"), "a limit of a text", "text_limit")
raises((ValueError, SyntaxError), lambda: bounded.compile("x*2+x*3+x*4")(x), "a limit of values", "node_limit")
raises(ValueError, lambda: quern.Context(limits={"kernels": 3}), "a limit that is none", "limits: 'kernels', expected text")
raises(ValueError, lambda: quern.Context(limits={"kernel": 0}), "a limit of 0", "expected 1 or more")
raises(TypeError, lambda: quern.Context(limits={"kernel": "3"}), "a limit that is no number")
is_(bounded.cancel(), None, "compiles are cancelled")
is_(pickle.loads(pickle.dumps(bounded.compile("y = x*3")))(x).tolist(), [3.0, 6.0], "an op of a context with limits is pickled")
f = quern.Context(jit="off", cache_dir="").compile("y = x*3")
gc.collect()
is_(f(x).tolist(), [3.0, 6.0], "an op outlives its context")
context = quern.Context(jit="off")
seen = weakref.ref(context), weakref.ref(context.op("add"))
del context
gc.collect()
is_([ref() for ref in seen], [None, None], "weak references")
ok(quern.compile.__self__ is quern.op.__self__ and quern.compile.__doc__, "the functions are the default context's")
raises(TypeError, lambda: quern.Op(), "an Op is not made by its name", "quern.compile")
raises(TypeError, lambda: quern.call(), "call without a name", "call: ")
raises(TypeError, lambda: quern.call(x), "a name that is none")

problems = []


def compile_and_run(seed):
    try:
        for k in range(40):
            f = quiet.compile("y = x*{} + {}".format(seed, k))
            if f(x).tolist() != [float(seed + k), float(2 * seed + k)]:
                problems.append((seed, k))
    except BaseException as error:
        problems.append(error)


threads = [threading.Thread(target=compile_and_run, args=(seed,)) for seed in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
is_(problems, [], "one context from many threads")

# ---- Loaded again
first = quern
for name in [name for name in sys.modules if name.partition(".")[0] == "quern"]:
    del sys.modules[name]
import quern  # noqa: E402
ok(quern is not first and quern.Array is first.Array, "imported again after being taken out of sys.modules, with the same types")
x = array.array("f", [1, 2])
is_((quern.add(x, first.add(x, x)).tolist(), quern.compile("x + 1")(x).tolist()), ([3.0, 6.0], [2.0, 3.0]), "  both serve")
done_testing()
