#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one call from Python costs: 8 items of f32, where nothing but the call takes time. Each case beside the peer's own
function, in turn; medians of rounds; the difference and the ratio are of what one run measured.

    PYTHONPATH=build/python python3 bench/python_call.py [--rounds 15] [--out bench/results/NAME.md] [FILTER]

To hold: NumPy's arrays with `out`: NumPy's add and 100 ns; by the C exchange API of DLPack (PyTorch's tensors): 200 ns."""
import os
import platform
import statistics
import sys
import timeit

os.environ.setdefault("OMP_NUM_THREADS", "1")
import quern  # noqa: E402
from timing import machine, options_of_command_line  # noqa: E402

# Name, Quern's statement, the peer's. a, b, c, d are arrays of the peer's, of 8 items; s and z of 2x2, s transposed; r of 2.
NUMPY = [
    ("add(a, b, out=c)", "quern.add(a, b, out=c)", "numpy.add(a, b, out=c)"),
    ("add(a, b)", "quern.add(a, b)", "numpy.add(a, b)"),
    ("add(s, s), transposed", "quern.add(s, s)", "numpy.add(s, s)"),
    ("add(a, 2.0, out=c)", "quern.add(a, 2.0, out=c)", "numpy.add(a, 2.0, out=c)"),
    ("exp(s, out=z), transposed", "quern.exp(s, out=z)", "numpy.exp(s, out=z)"),
    ("sum(a)", "quern.sum(a)", "numpy.sum(a)"),
    ("sum(s, axis=0, out=r)", "quern.sum(s, axis=0, out=r)", "numpy.sum(s, axis=0, out=r)"),
    ("a * b + c, compiled, out", "fused(a, b, c, out=d)", "numpy.add(numpy.multiply(a, b, out=d), c, out=d)"),
]
TORCH = [
    ("add(a, b, out=c)", "quern.add(a, b, out=c)", "torch.add(a, b, out=c)"),
    ("add(a, b)", "quern.add(a, b)", "torch.add(a, b)"),
    ("add(s, s), transposed", "quern.add(s, s)", "torch.add(s, s)"),
    ("gelu(a)", "quern.gelu(a)", "gelu(a)"),
    ("sum(a)", "quern.sum(a)", "torch.sum(a)"),
    ("sum(s, axis=0, out=r)", "quern.sum(s, axis=0, out=r)", "torch.sum(s, dim=0, out=r)"),
    ("a * b + c, compiled, out", "fused(a, b, c, out=d)", "torch.addcmul(c, a, b, out=d)"),
]
# The functions of quern.torch beside those of quern, and PyTorch's own with a gradient. g wants a gradient.
LIBRARY = [
    ("quern.torch.add(a, b), quern.add", "library.add(a, b)", "quern.add(a, b)"),
    ("  torch.ops.quern.add", "torch.ops.quern.add(a, b)", "quern.add(a, b)"),
    ("quern.torch.add(a, 2.0), quern.add", "library.add(a, 2.0)", "quern.add(a, 2.0)"),
    ("quern.torch.sum(a, 0), quern.sum", "library.sum(a, 0)", "quern.sum(a, 0)"),
    ("quern.torch.gelu(a), torch's", "library.gelu(a)", "gelu(a)"),
    ("  with a gradient", "library.gelu(g)", "gelu(g)"),
    ("  torch.ops.quern.gelu with one", "torch.ops.quern.gelu(g)", "gelu(g)"),
    ("  forward and backward", "library.gelu(g).backward(a)", "gelu(g).backward(a)"),
    ("a * b + c, quern.torch.compile, quern.compile", "expression(a, b, c)", "fused(a, b, c)"),
]
# Texts over the caller's variables: NumExpr's own habit. t: the same expression as a traced function.
NUMEXPR = [
    ("evaluate('a * b + c')", "quern.evaluate('a * b + c')", "numexpr.evaluate('a * b + c')"),
    ("  out", "quern.evaluate('a * b + c', out=d)", "numexpr.evaluate('a * b + c', out=d)"),
    ("  local_dict", "quern.evaluate('a * b + c', names)", "numexpr.evaluate('a * b + c', names)"),
    ("  repeated: compiled, re_evaluate", "fused(a, b, c)", "numexpr.re_evaluate()"),
    ("  repeated: fuse, re_evaluate", "traced(a, b, c)", "numexpr.re_evaluate()"),
]
ARRAY = [
    ("add(a, b, out=c)", "quern.add(a, b, out=c)", None),
    ("add(a, b)", "quern.add(a, b)", None),
    ("from_dlpack(a)", "quern.from_dlpack(a)", None),
]


def peers():
    """(name, cases, the names that statements use) for each peer that is installed."""
    names = {"quern": quern, "fused": quern.compile("y = a * b + c")}
    memory = [[float(k + i) for i in range(8)] for k in range(4)]
    yield "quern.Array", ARRAY, dict(names, **dict(zip("abcd", map(quern.asarray, memory))))
    try:
        import numpy
    except ImportError:
        pass
    else:
        arrays = dict(zip("abcd", numpy.float32(memory)), s=numpy.ones((2, 2), "f4").T, z=numpy.empty((2, 2), "f4"),
                      r=numpy.empty(2, "f4"))
        yield "NumPy " + numpy.__version__, NUMPY, dict(names, numpy=numpy, **arrays)
        try:
            import numexpr
        except ImportError:
            pass
        else:
            numexpr.set_num_threads(1)
            yield "NumExpr " + numexpr.__version__, NUMEXPR, dict(names, numexpr=numexpr, names=arrays, **arrays,
                                                                  traced=quern.fuse(lambda a, b, c: a * b + c))
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)
        tensors = dict(zip("abcd", torch.tensor(memory).unbind()), s=torch.ones(2, 2).T, r=torch.empty(2))
        names = dict(names, torch=torch, gelu=torch.nn.functional.gelu, **tensors)
        yield "PyTorch " + torch.__version__, TORCH, names
        import quern.torch as library
        yield "quern.torch", LIBRARY, dict(names, library=library, g=tensors["a"].clone().requires_grad_(),
                                           expression=library.compile("y = a * b + c"))


def measure(statement, names, calls=20000):
    """ns a call."""
    return timeit.Timer(statement, globals=names).timeit(calls) / calls * 1e9


def table(cases, names, rounds):
    yield "| case | Quern | peer | difference | ratio |"
    yield "|---|---|---|---|---|"
    for name, ours, theirs in cases:
        both = [(measure(ours, names), measure(theirs, names) if theirs else None) for _ in range(rounds + 1)][1:]
        quern_ns = statistics.median(mine for mine, _ in both)
        if theirs:
            peer_ns = statistics.median(other for _, other in both)
            yield "| {} | {:.0f} | {:.0f} | {:+.0f} | {:.2f} |".format(name, quern_ns, peer_ns, quern_ns - peer_ns,
                                                                     peer_ns / quern_ns)
        else:
            yield "| {} | {:.0f} |  |  |  |".format(name, quern_ns)


def main():
    options = options_of_command_line(rounds=15)
    out = [machine(options.note), "Calls from Python {} on 8 items of f32, medians of {} rounds in turn.".format(
        platform.python_version(), options.rounds), "ns a call; the ratio is the peer's time over Quern's: above 1 Quern is quicker."]
    for peer, cases, names in peers():
        if options.filter in peer:
            out += ["", "## " + peer, "", *table(cases, names, options.rounds)]
    text = "\n".join(out) + "\n"
    sys.stdout.write(text)
    if options.out:
        with open(options.out, "w") as f:
            f.write(text)


if __name__ == "__main__":
    main()
