#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reductions beside a loop that only reads, NumPy and PyTorch, on one thread, all called from Python. They are timed in turn, many
times, so that changes of the machine's speed affect all of them. Times are medians; a ratio is the median of another's time over
Quern's of the same turn: above 1 Quern is quicker.

    python3 bench/reductions.py [--build build] [--rounds 11] [--out bench/results/NAME.md] [FILTER]

The loop that reads is C, compiled here by the C compiler with -O3 -march=native: it ors all words of the input, in the order in
which they lie in memory. Beside it, Quern's time is without that of a call, the time of one element. Peers that are not
installed are left out."""
import collections
import ctypes
import os
import platform
import statistics
import subprocess
import sys
import tempfile

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

from timing import cpu_name, head, median_ns, options_of_command_line, row  # noqa: E402

OPTIONS = options_of_command_line(rounds=11)
sys.path.insert(0, os.path.join(OPTIONS.build, "python"))

import numpy as np  # noqa: E402
import quern  # noqa: E402

GROUPS = 3  # of calls in each turn

# shape, axis: an int, a tuple, or None: all; order: C, F: the layout of the input.
Case = collections.namedtuple("Case", "op shape axis dtype order")


def cases():
    for op in ("sum", "mean", "max"):
        for n in (1000, 10**4, 10**5, 10**7):
            yield Case(op, (n,), None, "f32", "C")
    for shape in ((3000, 3000), (2048, 2048), (320, 320), (100000, 30), (300000, 3)):
        for op in ("sum", "max"):
            yield Case(op, shape, 0, "f32", "C")
    for n in (3, 30, 100, 300, 1000, 3000):
        for op in ("sum", "max", "mean"):
            yield Case(op, (max(90000 // n, n), n), 1, "f32", "C")
    for shape in ((333, 300), (3000, 3000)):
        for order in "CF":
            yield Case("sum", shape, None, "f32", order)
    yield Case("sum", (200, 300, 150), (0, 2), "f32", "C")
    yield Case("sum", (3000, 3000), 1, "f32", "F")
    for dtype in ("f64", "f16", "bf16", "i8", "i32"):
        for n in (10**5, 10**7):
            yield Case("sum", (n,), None, dtype, "C")
            if dtype != "i32":
                yield Case("max", (n,), None, dtype, "C")
    yield Case("sum", (3000, 3000), 0, "f16", "C")
    yield Case("sum", (3000, 3000), 0, "i8", "C")
    for op in ("any", "all", "count_nonzero"):
        for n in (10**5, 10**7):
            yield Case(op, (n,), None, "bool", "C")
    yield Case("any", (10**5,), None, "f32", "C")
    for shape in ((1000, 128), (200, 1000), (16, 32000), (1, 10**6)):
        for op in ("softmax", "logsumexp"):
            yield Case(op, shape, 1, "f32", "C")
    yield Case("softmax", (1000, 1000), 0, "f32", "C")


def name_of(case):
    shape = "x".join(str(n) for n in case.shape)
    axis = "" if case.axis is None else f" axis {case.axis}"
    return f"{case.op} {case.dtype} {shape}{axis}{' F order' if case.order == 'F' else ''}"


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
"""


def reader():
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "read.c"), os.path.join(folder, "read.so")
        with open(source, "w") as f:
            f.write(READ)
        subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source], check=True)
        function = ctypes.CDLL(library).read_words
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_size_t), ctypes.c_uint64
    return function


CONTEXT = quern.Context(threads=1)


def quern_call(case, x, out):
    function = CONTEXT.op(case.op)
    return lambda: function(x, axis=case.axis, out=out)


def numpy_call(case, x):
    if case.dtype == "bf16" or case.op in ("softmax", "logsumexp"):
        return None
    function = getattr(np, case.op)
    return lambda: function(x, axis=case.axis)


def torch_call(torch, case, x):
    axis = case.axis
    if case.op in ("softmax", "logsumexp"):
        return lambda: getattr(torch, case.op)(x, axis)
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


def aligned(shape, dtype, order):
    """An array of random values whose memory begins at a cache line."""
    n = int(np.prod(shape))
    numbers = np.random.default_rng(1).uniform(-2, 2, n)
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
    x = aligned(case.shape, case.dtype, case.order)
    mine = quern.from_dlpack(x)
    if case.dtype == "bf16":
        mine = quern.from_dlpack(torch.from_numpy(x).view(torch.bfloat16)) if torch else None
    if mine is None:
        return {}
    shape = case.shape
    if case.op != "softmax":
        axes = range(x.ndim) if case.axis is None else case.axis if isinstance(case.axis, tuple) else (case.axis,)
        shape = tuple(n for d, n in enumerate(x.shape) if d not in axes)
    result = {"any": "bool", "all": "bool", "count_nonzero": "i64"}.get(case.op, case.dtype)
    if case.op == "sum" and case.dtype[0] == "i":
        result = "i64"
    out = quern.empty(shape, dtype=result)
    one = quern.astype(quern.from_dlpack(np.ones((1,) * x.ndim, "f4")), case.dtype)
    one_out = quern.empty((1,) * len(shape), dtype=result)
    calls = {"Quern": quern_call(case, mine, out), "call": quern_call(case, one, one_out)}
    words, at = x.nbytes // 8, x.ctypes.data
    calls["read"] = lambda: read(at, words)
    calls["NumPy"] = numpy_call(case, x) if case.dtype != "bf16" else None
    if torch:
        calls["PyTorch"] = torch_call(torch, case, torch.from_dlpack(mine))
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


def main():
    np.seterr(all="ignore")
    torch, read = load_torch(), reader()
    one = np.zeros(8)
    at = one.ctypes.data
    read_call = median_ns(lambda: read(at, 1))
    out = [f"{cpu_name()}; {platform.system()}; NumPy {np.__version__}"
           + (f"; PyTorch {torch.__version__}" if torch else "") + f". Medians of {OPTIONS.rounds} turns, one thread.",
           "ns an element; read/: of the loop that reads, both without the time of a call; NumPy/, PyTorch/: with calls.", "",
           *head(["case", "Quern", "read", "NumPy", "PyTorch", "read/", "NumPy/", "PyTorch/"])]
    for line in out:
        print(line, flush=True)
    for case in cases():
        if OPTIONS.filter not in name_of(case):
            continue
        times = turns(case, torch, read, OPTIONS.rounds)
        if not times:
            continue
        n = float(np.prod(case.shape))
        cells = [name_of(case)]
        for who in ("Quern", "read", "NumPy", "PyTorch"):
            cells.append(f"{statistics.median(times[who]) / n:.4f}" if who in times else "")
        own = [max(a - min(b, a), 1) for a, b in zip(times["Quern"], times["call"])]
        cells.append(f"{statistics.median(max(a - read_call, 0) / b for a, b in zip(times['read'], own)):.2f}")
        for who in ("NumPy", "PyTorch"):
            value = ratio(times, who)
            cells.append(f"{value:.2f}" if value else "")
        out.append(row(cells))
        print(out[-1], flush=True)
    if OPTIONS.out:
        with open(OPTIONS.out, "w") as f:
            f.write("\n".join(out) + "\n")


main()
