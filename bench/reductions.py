#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reductions beside a loop that only reads, NumPy and PyTorch, on one thread, all called from Python. They are timed in turn, many
times, so that changes of the machine's speed affect all of them. Times are medians; a ratio is the median of another's time over
Quern's of the same turn: above 1 Quern is quicker. A second table is of two threads (reductions_threads.py).

    python3 bench/reductions.py [--build build] [--rounds 11] [--out bench/results/NAME.md] [FILTER]
    python3 bench/reductions.py --all [--build build] [--out bench/results/NAME.md] [FILTER]

With --all: every op that reduces or scans, see reductions_sweep.py.

The loop that reads is C, compiled here by the C compiler with -O3 -march=native: it ors all words of the input, in the order in
which they lie in memory. Beside it, Quern's time is without that of a call, the time of one element. Peers that are not
installed are left out."""
import collections
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

from timing import head, machine, median_ns, options_of_command_line, row  # noqa: E402

OPTIONS = options_of_command_line(rounds=11)
sys.path.insert(0, os.path.join(OPTIONS.build, "python"))

import numpy as np  # noqa: E402
import quern  # noqa: E402

import reductions_sweep  # noqa: E402
import reductions_threads  # noqa: E402

GROUPS = 3  # of calls in each turn

# op: an op's name, or an expression of x, y; shape, axis: an int, a tuple, or None: all; order: C, F: the layout of the input; goals:
# the least ratios, of "read", "NumPy", "PyTorch", "exp" and "C order"; mask: None, or the value above the diagonal, as in attention.
Case = collections.namedtuple("Case", "op shape axis dtype order goals mask", defaults=(None, "f32", "C", {}, None))


def goals(**of):
    return {{"numpy": "NumPy", "torch": "PyTorch", "c_order": "C order"}.get(name, name): value for name, value in of.items()}


def cases():
    cached, beyond = {"read": 0.85, "numpy": 4.5, "torch": 0.95}, {"read": 0.95, "numpy": 2, "torch": 0.95}
    for op in ("sum", "mean", "max"):
        maximum = {"numpy": 0.9} if op == "max" else None
        for n, wanted in ((1000, {}), (10**4, {}), (10**5, maximum or cached), (10**7, maximum or beyond)):
            yield Case(op, (n,), goals=goals(**wanted))
    for shape, wanted in (((3000, 3000), {"read": 0.85, "torch": 1.5}), ((2048, 2048), {}), ((320, 320), {}), ((100000, 30), {"torch": 3}),
                          ((300000, 3), {})):
        for op in ("sum", "max"):
            yield Case(op, shape, 0, goals=goals(**wanted) if op == "sum" else {})
    for n in (3, 30, 100, 300, 1000, 3000):
        for op in ("sum", "max", "mean"):
            yield Case(op, (max(90000 // n, n), n), 1, goals=goals(torch=1.3) if op == "sum" and 30 <= n <= 300 else {})
    yield Case("sum", (90, 1000), 1, goals=goals(torch=1.3))  # in the cache; 1000 of them run at the speed of reading
    for shape in ((333, 300), (3000, 3000)):
        for order in "CF":
            yield Case("sum", shape, order=order, goals=goals(c_order=1 / 1.3) if order == "F" and shape[0] == 3000 else {})
    yield Case("sum", (200, 300, 150), (0, 2))
    yield Case("sum", (3000, 3000), 1, order="F")
    for dtype in ("f64", "f16", "bf16", "i8", "i32"):
        for n in (10**5, 10**7):
            yield Case("sum", (n,), dtype=dtype, goals=goals(torch=3) if (dtype, n) == ("f16", 10**5) else {})
            if dtype != "i32":
                yield Case("max", (n,), dtype=dtype)
    yield Case("sum", (3000, 3000), 0, "f16")
    yield Case("sum", (3000, 3000), 0, "i8")
    for op in ("any", "all", "count_nonzero"):
        for n in (10**5, 10**7):
            yield Case(op, (n,), dtype="bool")
    yield Case("any", (10**5,))
    yield Case("all", (10**5,))
    for op, cached, beyond in (("var", 3, 3), ("argmax", 5, 4), ("argmin", None, None), ("nanargmax", None, None)):
        yield Case(op, (10**5,), goals=goals(torch=cached) if cached else {})
        yield Case(op, (10**7,), goals=goals(torch=beyond) if beyond else {})
    for op, least in (("logsumexp", 3), ("softmax", 1.5), ("layer_norm", 1.2), ("rms_norm", 1.8)):
        for shape in ((1000, 128), (200, 1000), (16, 32000), (1, 10**6)):
            yield Case(op, shape, 1, goals=goals(torch=least))
    for mask in (-np.inf, -1e9, -100):
        yield Case("softmax", (1000, 1000), 1, goals=goals(torch=1), mask=mask)
    yield Case("logsumexp", (1000, 1000), 1, goals=goals(torch=1), mask=-np.inf)
    yield Case("softmax", (1000, 1000), 0, goals=goals(torch=1.5))
    yield Case("softmax", (30, 100, 30), 1)
    for norm in ("vector_norm", "reduce_l2"):
        yield Case(norm, (10**5,))
    for n in (10**4, 10**5, 10**7):
        yield Case("cumulative_sum", (n,), 0, goals=goals(numpy=8, torch=2))
    yield Case("cumulative_sum", (3000, 3000), 0)
    yield Case("s = sum(x * y)", (10**5,))
    yield Case("s = sum(x * y)", (10**7,), goals=goals(read=0.9))
    yield Case("s = sum(exp(x))", (10**5,), goals=goals(exp=1 / 1.15))
    yield Case("s = sum(exp(x))", (10**7,), goals=goals(exp=1 / 1.15))


def name_of(case):
    shape = "x".join(str(n) for n in case.shape)
    axis = "" if case.axis is None else f" axis {case.axis}"
    masked = "" if case.mask is None else f" masked by {case.mask:g}"
    return f"{case.op} {case.dtype} {shape}{axis}{' F order' if case.order == 'F' else ''}{masked}"


# ---- The libraries: each works in the memory of the same arrays ----

READ = """
#include <stdint.h>
#include <stddef.h>
uint64_t read_words(const uint64_t *p, size_t n) {
  uint64_t lane[64] = {0}, all = 0;
  size_t i = 0;
  for (; i + 64 <= n; i += 64)
    for (int k = 0; k < 64; k++) lane[k] |= p[i + k];
  for (; i < n; i++) all |= p[i];
  for (int k = 0; k < 64; k++) all |= lane[k];
  return all;
}
uint64_t read_two(const uint64_t *p, const uint64_t *q, size_t n) {
  uint64_t lane[32] = {0}, all = 0;
  size_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int k = 0; k < 32; k++) lane[k] |= p[i + k] ^ q[i + k];
  for (; i < n; i++) all |= p[i] ^ q[i];
  for (int k = 0; k < 32; k++) all |= lane[k];
  return all;
}
"""

Reader = collections.namedtuple("Reader", "one two")


def reader():
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "read.c"), os.path.join(folder, "read.so")
        with open(source, "w") as f:
            f.write(READ)
        subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source], check=True)
        loaded = ctypes.CDLL(library)
    one, two = loaded.read_words, loaded.read_two
    one.argtypes, one.restype = (ctypes.c_void_p, ctypes.c_size_t), ctypes.c_uint64
    two.argtypes, two.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t), ctypes.c_uint64
    return Reader(one, two)


CONTEXT = quern.Context(jit="sync", threads=1, cache_dir="")
FULL = ("softmax", "layer_norm", "rms_norm", "cumulative_sum")  # the output has the input's shape


def is_expression(case):
    return "=" in case.op


def quern_call(case, xs, out):
    if is_expression(case):
        function = CONTEXT.compile(case.op)
        return lambda: function(*xs, out=out)
    function = CONTEXT.op(case.op)
    return lambda: function(*xs, axis=case.axis, out=out)


def numpy_call(case, xs):
    name = {"cumulative_sum": "cumsum"}.get(case.op, case.op)
    if name == "s = sum(x * y)":
        return lambda: np.sum(xs[0] * xs[1])
    if name == "s = sum(exp(x))":
        return lambda: np.sum(np.exp(xs[0]))
    if name in ("vector_norm", "reduce_l2"):
        return lambda: np.linalg.norm(xs[0])
    if case.dtype == "bf16" or not hasattr(np, name):
        return None
    function, x = getattr(np, name), xs[0]
    return lambda: function(x, axis=case.axis)


def torch_call(torch, case, xs):
    axis, x = case.axis, xs[0]
    if case.op == "s = sum(x * y)":
        return lambda: torch.sum(x * xs[1])
    if case.op == "s = sum(exp(x))":
        return lambda: torch.sum(torch.exp(x))
    if case.op in ("vector_norm", "reduce_l2"):
        return lambda: torch.linalg.vector_norm(x)
    if case.op in ("layer_norm", "rms_norm"):
        function, shape = getattr(torch.nn.functional, case.op), case.shape[1:]
        return lambda: function(x, shape)
    if case.op in ("softmax", "logsumexp"):
        return lambda: getattr(torch, case.op)(x, axis)
    if case.op == "cumulative_sum":
        return lambda: torch.cumsum(x, axis)
    if case.op == "var":
        return lambda: torch.var(x, correction=0)
    if case.op == "nanargmax":
        return None
    if case.op == "count_nonzero":
        return lambda: torch.count_nonzero(x)
    if case.op == "max":
        return (lambda: torch.amax(x)) if axis is None else (lambda: torch.amax(x, axis))
    function = getattr(torch, case.op)
    return (lambda: function(x)) if axis is None else (lambda: function(x, axis))


def load_torch():
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    return torch


def aligned(shape, dtype, order, seed=0):
    """An array of random values. Its memory begins at a cache line."""
    n = int(np.prod(shape))
    numbers = np.random.default_rng(seed + 1).uniform(-2, 2, n)
    if dtype == "bool":
        numbers = numbers < 2  # all, so that any and all cannot end early for long
    store = np.empty(n + 64, dtype={"f32": "f4", "f64": "f8", "f16": "f2", "bf16": "u2", "i8": "i1", "i32": "i4", "bool": "?"}[dtype])
    first = -store.ctypes.data % 64 // store.itemsize
    flat = store[first:first + n]
    if dtype == "bf16":
        flat[:] = numbers.astype("f4").view("u4") >> 16
    else:
        flat[:] = numbers * 50 if dtype in ("i8", "i32") else numbers
    return flat.reshape(shape, order=order)


def turns(case, torch, read, rounds):
    xs = [aligned(case.shape, case.dtype, case.order, k) for k in range(2 if "* y" in case.op else 1)]
    x = xs[0]
    if case.mask is not None:
        x += np.triu(np.full(case.shape, case.mask, x.dtype), 1)
    mine = [quern.from_dlpack(a) for a in xs]
    if case.dtype == "bf16":
        if not torch:
            return {}
        mine = [quern.from_dlpack(torch.from_numpy(x).view(torch.bfloat16))]
    shape = case.shape
    if case.op not in FULL:
        axes = range(x.ndim) if case.axis is None else case.axis if isinstance(case.axis, tuple) else (case.axis,)
        shape = tuple(n for d, n in enumerate(x.shape) if d not in axes)
    result = {"any": "bool", "all": "bool"}.get(case.op, "i64" if "arg" in case.op or case.op == "count_nonzero" else case.dtype)
    if case.op == "sum" and case.dtype[0] == "i":
        result = "i64"
    out = quern.empty(shape, dtype=result)
    ones = [quern.astype(quern.from_dlpack(np.ones((1,) * x.ndim, "f4")), case.dtype) for _ in xs]
    one_out = quern.empty((1,) * len(shape), dtype=result)
    calls = {"Quern": quern_call(case, mine, out), "call": quern_call(case, ones, one_out)}
    words, at, second = x.nbytes // 8, x.ctypes.data, xs[-1].ctypes.data
    calls["read"] = (lambda: read.one(at, words)) if len(xs) == 1 else (lambda: read.two(at, second, words))
    if "exp" in case.goals:
        exp, exp_out = CONTEXT.op("exp"), quern.empty(case.shape, dtype=case.dtype)
        calls["exp"] = lambda: exp(mine[0], out=exp_out)
    if "C order" in case.goals:
        c_order = case._replace(order="C")
        c_in = quern.from_dlpack(aligned(case.shape, case.dtype, "C"))
        calls["C order"] = quern_call(c_order, [c_in], out)
    calls["NumPy"] = numpy_call(case, xs) if case.dtype != "bf16" else None
    if torch:
        calls["PyTorch"] = torch_call(torch, case, [torch.from_dlpack(a) for a in mine])
    times = collections.defaultdict(list)
    for _ in range(rounds):
        for who, call in calls.items():
            if call:
                times[who].append(median_ns(call, GROUPS))
    return times


def ratio(times, who):
    if who not in times:
        return None
    return statistics.median(a / b for a, b in zip(times[who], times["Quern"]))


def first_results(n=9):
    """Milliseconds from the text of a new expression to its first result, from Python; and the worst of n."""
    context, x = quern.Context(jit="async", threads=1, cache_dir=""), quern.asarray([1.0] * 1000, dtype="f32")
    out, times = quern.empty((), dtype="f32"), []
    for k in range(n + 1):
        start = time.perf_counter_ns()
        context.compile(f"s = sum(exp(x - max(x)) * {k}.5)")(x, out=out)
        times.append((time.perf_counter_ns() - start) / 1e6)
        time.sleep(0.2)  # the compiler of the one before has ended
    return statistics.median(times[1:]), max(times[1:])


def write(lines):
    if OPTIONS.out:
        with open(OPTIONS.out, "w") as f:
            f.write("\n".join(lines) + "\n")


def all_ops(torch):
    out = [f"{machine(OPTIONS.note)} NumPy {np.__version__}" + (f"; PyTorch {torch.__version__}" if torch else "") + ". One thread.",
           "The quickest peer's time over Quern's, medians of turns; results allocated by each. Cases that are behind:", "",
           *reductions_sweep.table(CONTEXT, torch, OPTIONS.filter, head, row)]
    print(out[3])
    write(out)


def main():
    np.seterr(all="ignore")
    torch, read = load_torch(), reader()
    if OPTIONS.all:
        return all_ops(torch)
    one = np.zeros(8)
    at = one.ctypes.data
    read_call = median_ns(lambda: read.one(at, 1))
    out = [f"{machine(OPTIONS.note)} NumPy {np.__version__}"
           + (f"; PyTorch {torch.__version__}" if torch else "") + f". Medians of {OPTIONS.rounds} turns, one thread.",
           "ns an element; read/: of the loop that reads, both without the time of a call; NumPy/, PyTorch/, others: with calls.", "",
           *head(["case", "Quern", "read", "NumPy", "PyTorch", "read/", "NumPy/", "PyTorch/", "goals: reached"])]
    for line in out:
        print(line, flush=True)
    for case in cases():
        if OPTIONS.filter not in name_of(case):
            continue
        times = turns(case, torch, read, OPTIONS.rounds)
        if not times:
            continue
        n = float(np.prod(case.shape))
        cells, ratios = [name_of(case)], {}
        for who in ("Quern", "read", "NumPy", "PyTorch"):
            cells.append(f"{statistics.median(times[who]) / n:.4f}" if who in times else "")
        own = [max(a - min(b, a), 1) for a, b in zip(times["Quern"], times["call"])]
        ratios["read"] = statistics.median(max(a - read_call, 0) / b for a, b in zip(times["read"], own))
        for who in ("NumPy", "PyTorch", "exp", "C order"):
            ratios[who] = ratio(times, who)
        cells += [f"{ratios[who]:.2f}" if ratios[who] else "" for who in ("read", "NumPy", "PyTorch")]
        reached = [f"{who} {least:.2f}: " + ("yes" if ratios[who] >= least else f"{ratios[who]:.2f}") for who, least in case.goals.items()
                   if ratios[who]]
        out.append(row(cells + ["; ".join(reached)]))
        print(out[-1], flush=True)
    if OPTIONS.filter in "first result":
        out += ["", "The first result of a new reducing expression, 1000 elements: {:.2f} ms, the worst of 9 {:.2f} ms (goal: 1 ms).".format(
            *first_results())]
        print(*out[-2:], sep="\n")
    if OPTIONS.filter in "two threads":
        out += ["", "Microseconds of calls that follow one another:", "", *reductions_threads.table(quern, torch, head, row)]
    write(out)


main()
