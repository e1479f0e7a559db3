# SPDX-License-Identifier: Apache-2.0
# tags: memory
"""What ops show of themselves: explain as an object, repr and _repr_html_, docstrings with dtypes, errors and examples that hold,
and pickles, also in processes that are spawned."""

import copy
import inspect
import json
import math
import multiprocessing
import os
import pickle
import pydoc
import subprocess
import sys
import tempfile

import quern
from tap import done_testing, is_, ok, raises, skip

a = quern.asarray([0.5, -1.5, 2.0, 3.0])


def compute(op, x):
    """In a process of its own."""
    return type(op).__name__, op.__name__, op(quern.asarray(x)).tolist(), op.formula


def main():
    quiet = quern.Context(jit="off", cache_dir="")
    f = quiet.compile("param s; y = a*s + b; z = y > 1")

    # ---- explain ----

    e = f.explain(a, a, s=2.0)
    is_((type(e), isinstance(e, dict), e["tier"], e.tier), (quern.Explanation, True, "interpreter", "interpreter"),
        "an object, and a dict")
    is_((e["threads"], e.threads, e["steps"], len(e.steps)), ("1", 1, "3", 3), "as a dict it has texts, attributes have values")
    ok(len(set(e.steps)) > 1 and all(step.startswith("qk_") for step in e.steps) and e["step"] == e.steps[-1],
       "all steps, in order")
    is_([(x.name, x.is_output, x.dtype, x.shape) for x in e.operands],
        [("a", False, "f32", (4,)), ("b", False, "f32", (4,)), ("y", True, "f32", (4,)), ("z", True, "bool", (4,))], "operands")
    is_((e.operands[0].access, e.box, e.streamed, e.passes, e.registers), ("in place", (4,), False, (), None), "more of it")
    is_([line for line in str(e).splitlines()], ["{}: {}".format(*line) for line in e.lines], "str is the library's text")
    ok(json.loads(json.dumps(e.as_dict()))["steps"] == list(e.steps), "as_dict is for JSON")
    ok(json.loads(json.dumps(e))["tier"] == "interpreter", "  so is the dict itself")
    is_((pickle.loads(pickle.dumps(e)).operands, copy.copy(e).steps), (e.operands, e.steps), "pickled and copied")
    ok("f32[4]" in repr(e) and "interpreter" in repr(e), "repr")
    ok("<table>" in e._repr_html_() and "&gt;" in e._repr_html_(), "_repr_html_, in which text is escaped")
    ok("threads" in dir(e) and not hasattr(e, "_nonsense"), "dir")
    long = quiet.compile("y = " + " + ".join("exp(x*{}.5)".format(k) for k in range(180)))
    is_(len(long.explain(a).steps), int(long.explain(a)["steps"]), "an explanation that is long is whole")
    if hasattr(quern, "softmax"):
        e = quern.softmax.explain(a)
        is_(([each.number for each in e.passes], len(e.passes)), (list(range(1, len(e.passes) + 1)), int(e["passes"])), "passes")
        ok(all(each.variants or each.steps for each in e.passes) and "sum f32" in sum((each.reduces for each in e.passes), ()),
           "  and their kernels")
    else:
        skip(2, "this build has some ops only")

    # ---- repr ----

    is_(repr(quern.add), "<quern.Op add: x + y>", "repr of a built-in op")
    g = quiet.compile("param s; y = a*s + b")
    is_(repr(g), '<quern.Op "param s; y = a*s + b"; inputs a, b; parameters s; outputs y>', "of an expression")
    for n in (1, 7):  # the first call has no plan yet
        for _ in range(n):
            g(a, a, s=2)
        is_(repr(g), '<quern.Op "param s; y = a*s + b"; inputs a, b; parameters s; outputs y; last call a f32[4], b f32[4] '
            '-> y f32[4], interpreter: {}>'.format(g.explain(a, a, s=2).reason), "  with the last call's tier")
    ok("last call a f32[4], b f32[4] -> y f32[4], interpreter" in repr(g), "  its dtypes and shapes")
    g(quern.asarray([1.0] * 5000, dtype="f64"), 1, s=2)
    ok("a f64[5000]" in repr(g), "  of a large call, too")
    g(a, a, s=2)
    g(a, a, s=2)
    ok("a f32[4]" in repr(g), "  and of a small one behind it")
    html = quiet.compile("y = x < 1")._repr_html_()
    ok("x &lt; 1" in html and "f32" in html and "bool" in html, "_repr_html_ has the dtypes")

    # ---- Docstrings ----

    if hasattr(quern, "gelu_backward"):
        doc = quern.gelu.__doc__
        for part in ("gelu(x, *, out=None", "Gaussian", "x: bool i8", "out: f16 bf16 f32 f64", "f32 1, f64 1 ULP",
                     "gelu_backward", ">>> quern.gelu(0.0)\n    0.0"):
            ok(part in doc, "gelu's docstring: " + part.split("\n")[0])
        is_(quern.gelu.backward, "gelu_backward", "the derivative's name")
        ok("ULP" in pydoc.render_doc(quern.gelu) and "x: bool i8" in pydoc.render_doc(quern.gelu), "help(quern.gelu)")
    else:
        skip(9, "this build has some ops only")
    ok(all(isinstance(inspect.signature(quern.op(name)), inspect.Signature) for name in quern.ops()),
       "inspect.signature of every op")
    from quern._facts import FACTS
    wrong, n_examples = [], 0
    for name in quern.ops():
        bound, arguments, result = FACTS.get(name, ("", "", ""))
        if name not in FACTS:
            wrong.append((name, "not in _facts.py: lua5.4 build.lua list --python > python/quern/_facts.py"))
        if not arguments:
            continue
        n_examples += 1
        try:
            got = eval("op({})".format(arguments), {"op": quern.op(name)})
            if not near(got, eval(result)):
                wrong.append((name, arguments, result, got))
        except Exception as raised:
            wrong.append((name, arguments, raised))
    is_(wrong, [], "the examples of {} docstrings hold".format(n_examples))

    # ---- Pickles ----

    h = quern.compile("y = x*2 + 1")
    again = pickle.loads(pickle.dumps(h))
    is_((again.formula, again(a).tolist()), (h.formula, h(a).tolist()), "an expression")
    is_(pickle.loads(pickle.dumps(f)).params, {"s": None}, "  of a context with options")
    ok(pickle.loads(pickle.dumps(f))._origin[2] == ("off", None, "", None, None), "  which it has again")
    ok(copy.copy(h) is h and copy.deepcopy(h) is h and pickle.loads(pickle.dumps(quern.add)) is quern.add,
       "copied, an op is itself")
    ok(pickle.loads(pickle.dumps(quern.op("copy")))(a).tolist() == a.tolist(), "a built-in op")
    is_(pickle.loads(pickle.dumps(quiet.op("add"))).__name__, "add", "  of another context")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        is_(pool.apply(compute, (h, [1.0, 2.0])), ("Op", "expression", [3.0, 5.0], "y = x*2 + 1"), "in a process that is spawned")
        is_(pool.apply(compute, (quern.exp, [0.0]))[2], [1.0], "  a built-in op there")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "twice.lua")
        with open(path, "w") as file:
            file.write('unary "acme.shown" { doc = "Twice x.", dtypes = floating, body = [[ x + x ]] }\n')
        try:
            op, = quern.load_spec(path)
        except NotImplementedError as refused:
            skip(7, str(refused))
            return
        ok(pickle.loads(pickle.dumps(op)) is op and path in op._repr_html_(), "an op of a spec that is loaded here")
        used = quern.compile("acme.shown(x) + 1")
        is_(pickle.loads(pickle.dumps(used))(a).tolist(), used(a).tolist(), "an expression with it")
        for name, pickled in (("an op of a spec", op), ("an expression with such an op", used)):
            code = "import pickle, sys; pickle.load(sys.stdin.buffer)"
            done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(pickled), stderr=subprocess.PIPE)
            ok(done.returncode and "quern.load_spec({!r})".format(path).encode() in done.stderr,
               "elsewhere {} says what it needs".format(name))
            code = "import pickle, sys, quern; quern.load_spec({!r}); print(pickle.load(sys.stdin.buffer).outputs)".format(path)
            done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(pickled), stdout=subprocess.PIPE)
            ok(done.returncode == 0 and b"'out'" in done.stdout, "  and is there with that")
        quiet.load_spec(path)
        raises(TypeError, lambda: pickle.dumps(quiet.op("acme.shown")), "an op of a spec of another context", "quern.load_spec")


def near(got, wanted):
    if isinstance(wanted, (list, tuple)):
        return len(got) == len(wanted) and all(map(near, got, wanted))
    return math.isclose(got, wanted, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(wanted) and math.isnan(got))


if __name__ == "__main__":
    main()
    done_testing()
