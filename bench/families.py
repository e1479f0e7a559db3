#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One op of each family beside NumPy and PyTorch: in the cache (10^5 elements) and out of it (10^7), in two dtypes, on one and
on two threads, all called from Python. The libraries are timed in turn, many times, so that changes of the machine's speed
affect all of them. Times are medians. The ratio is the median of the best peer's time over Quern's of the same turn.

    python3 bench/families.py [--build build] [--rounds 21] [--out bench/results/NAME.md] [FILTER]
    python3 bench/families.py --all [--only WORD]... [--budget SECONDS] [--runs 5] [--avx2] [--out bench/results/NAME.md]

`--all` sweeps over all ops that a peer has (sweep.py): `--only exp` selects the cases with names that begin with "exp",
`--budget` ends after that time with a fair sample, `--runs` is how often a case that is behind is measured.

Where results are rounded, a second table has the largest error of each library between the case's bounds.
It also writes NAME.svg, with a bar per case. Peers that are not installed are left out, and the table says so. NumPy computes
on one thread; PyTorch has no f16 or bf16 for some ops, and NumPy no bf16: those cells are empty."""
import collections
import os
import platform
import statistics
import sys
import time

THREADS = (1, 2)
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(max(THREADS))

from chart import bars  # noqa: E402
from timing import call_for, head, machine, median_ns, options_of_command_line, row  # noqa: E402


def more_options(parser):
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--budget", type=float)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--turns", type=int)
    parser.add_argument("--sizes", default="1e5,5e6")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--avx2", action="store_true")
    parser.add_argument("--worker", action="store_true")  # measures for a process of its own


OPTIONS = options_of_command_line(rounds=21, more=more_options)
sys.path.insert(0, os.path.join(OPTIONS.build, "python"))

import numpy as np  # noqa: E402
import quern  # noqa: E402

GROUPS = 5          # of calls in each turn
SPIN_SECONDS = 0.02  # sleep before a turn: OpenMP's threads spin for about this time after the previous one
WAKE_SECONDS = 0.03  # untimed calls at the beginning of a turn, while threads wake up

# op: Quern's name; dtypes: of the inputs, one row of cases each; out: the dtype of the output, if another; low, high: values;
# exact: the reference function, where results are rounded.
Case = collections.namedtuple("Case", "family op n_in dtypes out low high numpy torch exact")
CASES = [
    Case("arithmetic", "add", 2, "f32 i32", None, 0.25, 2, "add", "add", None),
    Case("rounding", "floor", 1, "f32 f64", None, -100, 100, "floor", "floor", None),
    Case("comparison", "less", 2, "f32 i32", "bool", -100, 100, "less", "less", None),
    Case("bitwise", "bitwise_and", 2, "i32 u8", None, 0, 127, "bitwise_and", "bitwise_and", None),
    Case("exp-like", "exp", 1, "f32 f64", None, -10, 10, "exp", "exp", np.exp),
    Case("trigonometric", "sin", 1, "f32 f64", None, -3, 3, "sin", "sin", np.sin),
    Case("trigonometric, huge", "sin", 1, "f32 f64", None, 1e7, 1e9, "sin", "sin", np.sin),
    Case("hyperbolic", "tanh", 1, "f32 f64", None, -4, 4, "tanh", "tanh", np.tanh),
    Case("pow", "pow", 2, "f32 f64", None, 0.25, 4, "power", "pow", np.power),
    Case("integer division", "floor_divide", 2, "i32 i64", None, 1, 1000, "floor_divide", "floor_divide", None),
    Case("cast", "astype", 1, "f32 i64", "f64", -1000, 1000, None, None, None),
    Case("f16", "add", 2, "f16", None, 0.25, 2, "add", "add", None),
    Case("f16", "exp", 1, "f16", None, -4, 4, "exp", "exp", None),
    Case("bf16", "add", 2, "bf16", None, 0.25, 2, "add", "add", None),
    Case("bf16", "exp", 1, "bf16", None, -4, 4, "exp", "exp", None),
]
SIZES = {"1e5": 100000, "1e7": 10000000}
SAMPLE = 2000000
One = collections.namedtuple("One", "name case dtype size threads")


def all_cases(wanted):
    for threads in THREADS:
        for size in SIZES:
            for case in CASES:
                for dtype in case.dtypes.split():
                    kind = " huge" if "huge" in case.family else ""
                    name = f"{case.op}{kind} {dtype} {size}"
                    if wanted in f"{name} {case.family}":
                        yield One(name, case, dtype, size, threads)


# ---- The libraries ----
# Each is made with Quern's arrays, the inputs and the output, and works in their memory, since addresses and the state of the
# cache affect times. A call of the object calls function(*ins, out=out) once.

class Computing:
    def __call__(self):
        self.function(*self.ins, out=self.out)


class Quern(Computing):
    name = "Quern"
    contexts = {threads: quern.Context(threads=threads) for threads in THREADS}

    def __init__(self, case, ins, out, threads):
        self.function, self.ins, self.out = self.contexts[threads].op(case.op), ins, out


class NumPy(Computing):
    name = "NumPy " + np.__version__

    def __init__(self, case, ins, out, threads):
        *self.ins, self.out = (np.from_dlpack(a) for a in (*ins, out))
        self.function = getattr(np, case.numpy) if case.numpy else lambda x, out: np.copyto(out, x)

    @staticmethod
    def has(dtype, threads):
        return dtype != "bf16" and threads == 1


def torch_peer():
    import torch

    class PyTorch(Computing):
        name = "PyTorch " + torch.__version__

        def __init__(self, case, ins, out, threads):
            torch.set_num_threads(threads)
            *self.ins, self.out = (torch.from_dlpack(a) for a in (*ins, out))
            self.function = getattr(torch, case.torch) if case.torch else lambda x, out: out.copy_(x)

        @staticmethod
        def has(dtype, threads):
            return True
    return PyTorch


def load_peers():
    try:
        return [NumPy, torch_peer()], []
    except ImportError as e:
        return [NumPy], [e.name]


# ---- Times ----

def values(n, low, high, n_in):
    """Values over the whole of [low, high], in an unpredictable order that differs by input."""
    steps = ((7919, 10007), (7907, 10009))
    return [low + (high - low) * ((np.arange(n, dtype="i8") * step % period) / (period - 1)) for step, period in steps[:n_in]]


def array(numbers, dtype):
    return quern.astype(quern.from_dlpack(numbers), dtype)


def turns(one, peers, rounds):
    """For each library that has the case: the times of its turns."""
    case = one.case
    ins = [array(a, one.dtype) for a in values(SIZES[one.size], case.low, case.high, case.n_in)]
    out = quern.empty(SIZES[one.size], dtype=case.out or one.dtype)
    calls = [who(case, ins, out, one.threads) for who in (Quern, *(peer for peer in peers if peer.has(one.dtype, one.threads)))]
    times = collections.defaultdict(list)
    for _ in range(rounds):
        for call in calls:
            if one.threads > 1:
                time.sleep(SPIN_SECONDS)
                call_for(WAKE_SECONDS, call)
            times[call.name].append(median_ns(call, GROUPS))
    return times


def ratio_of(times):
    best = [min(of_peers) for of_peers in zip(*(list_of for who, list_of in times.items() if who != Quern.name))]
    return statistics.median(peer / own for peer, own in zip(best, times[Quern.name])) if best else None


# ---- Errors ----

def worst_ulp(got, exact):
    """The largest error of normal results, in ULP; `exact` has a wider dtype."""
    _, exponent = np.frexp(np.abs(exact))
    unit = np.ldexp(np.ones_like(exact), exponent - 1 - np.finfo(got.dtype).nmant)
    return float((np.abs(got - exact) / unit).max())


def errors(case, dtype, peers):
    generator = np.random.default_rng(1)
    ins = [array(generator.uniform(case.low, case.high, SAMPLE), dtype) for _ in range(case.n_in)]
    out = quern.empty(SAMPLE, dtype=dtype)
    wide = {"f32": np.float64, "f64": np.longdouble}[dtype]
    exact = case.exact(*(np.from_dlpack(a).astype(wide) for a in ins))
    for who in (Quern, *peers):
        who(case, ins, out, 1)()
        yield worst_ulp(np.from_dlpack(out), exact)


# ---- The document ----

def times_table(threads, measured, names):
    out = [f"## {'One thread' if threads == 1 else f'{threads} threads'}", "", *head(["family", "case", *names, "ratio"])]
    for one, times, ratio in measured:
        if one.threads == threads:
            cells = [f"{statistics.median(times[who]):.0f}" if who in times else "" for who in names]
            out.append(row([one.case.family, one.name, *cells, f"{ratio:.2f}" if ratio else ""]))
    return [*out, ""]


def errors_table(peers, names, ones):
    out = ["## The worst error", "",
           f"In units in the last place, of {SAMPLE} numbers between the bounds of the case; beside f64 (of f32) and an 80-bit",
           "long double.", "", *head(["family", "op", *names])]
    for case, dtype in dict.fromkeys((one.case, one.dtype) for one in ones if one.case.exact):
        out.append(row([case.family, f"{case.op} {dtype}", *(f"{e:.2f}" for e in errors(case, dtype, peers))]))
    return [*out, ""]


def main():
    np.seterr(all="ignore")
    peers, missing = load_peers()
    names = [who.name for who in (Quern, *peers)]
    measured = []
    for one in all_cases(OPTIONS.filter):
        times = turns(one, peers, OPTIONS.rounds)
        measured.append((one, times, ratio_of(times)))

    out = [f"{machine(OPTIONS.note)} Python {platform.python_version()}; medians of {OPTIONS.rounds} turns.",
           "ns a call; the ratio is the best peer's time over Quern's: above 1 Quern is quicker. On two threads NumPy, which has "
           "one, is not asked.", ""]
    if missing:
        out += ["Not there, so not beside it: " + ", ".join(missing) + ".", ""]
    if OPTIONS.out:
        out += [f"![Ratios]({os.path.basename(OPTIONS.out).removesuffix('.md')}.svg)", ""]
    for threads in THREADS:
        out += times_table(threads, measured, names)
    out += errors_table(peers, names, [one for one, _, _ in measured])
    text = "\n".join(out)
    sys.stdout.write(text)
    if OPTIONS.out:
        with open(OPTIONS.out, "w") as f:
            f.write(text)
        chart = [(one.name, ratio, one.size == "1e5") for one, _, ratio in measured if ratio and one.threads == 1]
        with open(OPTIONS.out.removesuffix(".md") + ".svg", "w") as f:
            f.write(bars("The best of NumPy's and PyTorch's time over Quern's, one thread", chart,
                         ("10^5 elements, in the cache", "10^7 elements")))


if OPTIONS.all:
    import sweep
    sweep.main(OPTIONS, f"{machine(OPTIONS.note)} Python {platform.python_version()}, NumPy {np.__version__}")
else:
    main()
