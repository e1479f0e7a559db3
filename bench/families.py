#!/usr/bin/env python3
"""One op of each family beside NumPy and PyTorch: in the cache (10^5 elements) and out of it (10^7), in two dtypes, on one and
on two threads. Each case is timed in all of them in turn, several rounds; medians, and the best peer's time over Quern's.

    python3 bench/families.py [--build build] [--rounds 5] [--out bench/results/NAME.md] [FILTER]

Beside NAME.md it writes NAME.svg, a bar a case. Peers that are not installed are left out, and the table says so. NumPy computes
on one thread; PyTorch has no f16 or bf16 for some ops, and NumPy no bf16: those cells are empty."""
import collections
import os
import platform
import statistics
import subprocess
import sys

THREADS = (1, 2)
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(max(THREADS))

from chart import bars  # noqa: E402
from timing import cpu_name, head, median_ns, options_of_command_line, row  # noqa: E402

# op: Quern's name; dtypes: of the inputs, one row of cases each; out: the dtype of the output, if another; low, high: values.
Case = collections.namedtuple("Case", "family op n_in dtypes out low high numpy torch")
CASES = [
    Case("arithmetic", "add", 2, "f32 i32", None, 0.25, 2, "add", "add"),
    Case("rounding", "floor", 1, "f32 f64", None, -100, 100, "floor", "floor"),
    Case("comparison", "less", 2, "f32 i32", "bool", -100, 100, "less", "less"),
    Case("bitwise", "bitwise_and", 2, "i32 u8", None, 0, 127, "bitwise_and", "bitwise_and"),
    Case("exp-like", "exp", 1, "f32 f64", None, -10, 10, "exp", "exp"),
    Case("trigonometric", "sin", 1, "f32 f64", None, -3, 3, "sin", "sin"),
    Case("trigonometric, huge", "sin", 1, "f32 f64", None, 1e7, 1e9, "sin", "sin"),
    Case("hyperbolic", "tanh", 1, "f32 f64", None, -4, 4, "tanh", "tanh"),
    Case("pow", "pow", 2, "f32 f64", None, 0.25, 4, "power", "pow"),
    Case("integer division", "floor_divide", 2, "i32 i64", None, 1, 1000, "floor_divide", "floor_divide"),
    Case("cast", "astype", 1, "f32 i64", "f64", -1000, 1000, None, None),
    Case("f16", "add", 2, "f16", None, 0.25, 2, "add", "add"),
    Case("f16", "exp", 1, "f16", None, -4, 4, "exp", "exp"),
    Case("bf16", "add", 2, "bf16", None, 0.25, 2, "add", "add"),
    Case("bf16", "exp", 1, "bf16", None, -4, 4, "exp", "exp"),
]
SIZES = {"1e5": 100000, "1e7": 10000000}
One = collections.namedtuple("One", "name case dtype out size threads")


def all_cases(wanted):
    for threads in THREADS:
        for size in SIZES:
            for case in CASES:
                for dtype in case.dtypes.split():
                    kind = " huge" if "huge" in case.family else ""
                    name = f"{case.op}{kind} {dtype} {size}"
                    if wanted in f"{name} {case.family}":
                        yield One(name, case, dtype, case.out or dtype, size, threads)


def values(n, low, high):
    """As fill in bench.c: all over [low, high], in no order that a branch could learn."""
    import numpy as np
    return low + (high - low) * ((np.arange(n, dtype="i8") * 7919 % 10007) / 10006.0)


class Server:
    """quern-bench, which times what it is asked for."""

    def __init__(self, program, threads):
        self.process = subprocess.Popen([program, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, QUERN_BENCH_THREADS=str(threads)))

    def time(self, one):
        case = one.case
        self.process.stdin.write(f"{case.op} {case.n_in} {one.dtype} {one.out} {SIZES[one.size]} {case.low} {case.high}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"families.py: quern-bench ended at {one.name}")
        return float(line.split("\t")[1])


def numpy_peer():
    import numpy as np
    np.seterr(all="ignore")
    names = {"f32": "f4", "f64": "f8", "f16": "f2", "i32": "i4", "i64": "i8", "u8": "u1", "bool": "?"}

    def make(one):
        if one.dtype not in names or one.threads != 1:
            return None
        case, n = one.case, SIZES[one.size]
        ins = [values(n, case.low, case.high).astype(names[one.dtype]) for _ in range(case.n_in)]
        out = np.empty(n, names[one.out])
        if case.op == "astype":
            return lambda: np.copyto(out, ins[0])
        f = getattr(np, case.numpy)
        return lambda: f(*ins, out=out)
    return "NumPy " + np.__version__, make


def torch_peer():
    import torch
    names = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i64": "int64",
             "u8": "uint8", "bool": "bool"}

    def make(one):
        case, n = one.case, SIZES[one.size]
        torch.set_num_threads(one.threads)
        first = torch.from_numpy(values(n, case.low, case.high)).to(getattr(torch, names[one.dtype]))
        ins = [first] + [first.clone() for _ in range(case.n_in - 1)]
        out = torch.empty(n, dtype=getattr(torch, names[one.out]))
        if case.op == "astype":
            return lambda: out.copy_(ins[0])
        f = getattr(torch, case.torch)
        return lambda: f(*ins, out=out)
    return "PyTorch " + torch.__version__, make


def load_peers():
    peers, missing = [], []
    for load in (numpy_peer, torch_peer):
        try:
            peers.append(load())
        except ImportError as e:
            missing.append(e.name)
    return peers, missing


def measure(ones, program, peers, rounds):
    """Nanoseconds by (name, threads, who)."""
    times = collections.defaultdict(list)
    servers = {threads: Server(program, threads) for threads in THREADS}
    for _ in range(rounds):
        for one in ones:
            times[one.name, one.threads, "Quern"].append(servers[one.threads].time(one))
            for who, make in peers:
                call = make(one)
                if call:
                    times[one.name, one.threads, who].append(median_ns(call))
    return {key: statistics.median(list_of) for key, list_of in times.items()}


def ratio_of(times, one, peers):
    known = [times[key] for key in ((one.name, one.threads, who) for who, _ in peers) if key in times]
    return min(known) / times[one.name, one.threads, "Quern"] if known else None


def main():
    options = options_of_command_line(rounds=5)
    peers, missing = load_peers()
    ones = list(all_cases(options.filter))
    times = measure(ones, os.path.join(options.build, "bench", "quern-bench"), peers, options.rounds)

    out = [f"Medians of {options.rounds} rounds, each case in turn in all; {cpu_name()}; {platform.system()}.",
           "ns a call; the ratio is the best peer's time over Quern's: above 1 Quern is quicker. On two threads NumPy, which has "
           "one, is not asked.", ""]
    if missing:
        out += ["Not there, so not beside it: " + ", ".join(missing) + ".", ""]
    if options.out:
        out += [f"![Ratios]({os.path.basename(options.out).removesuffix('.md')}.svg)", ""]
    chart = []
    for threads in THREADS:
        out += [f"## {'One thread' if threads == 1 else f'{threads} threads'}", ""]
        out += head(["family", "case", "Quern", *(who for who, _ in peers), "ratio"])
        for one in ones:
            if one.threads != threads:
                continue
            cells = [times.get((one.name, threads, who)) for who in ("Quern", *(who for who, _ in peers))]
            ratio = ratio_of(times, one, peers)
            shown = [f"{t:.0f}" if t else "" for t in cells]
            out.append(row([one.case.family, one.name, *shown, f"{ratio:.2f}" if ratio else ""]))
            if ratio and threads == 1:
                chart.append((one.name, ratio, one.size == "1e5"))
        out.append("")
    text = "\n".join(out)
    sys.stdout.write(text)
    if options.out:
        with open(options.out, "w") as f:
            f.write(text)
        with open(options.out.removesuffix(".md") + ".svg", "w") as f:
            f.write(bars("The best of NumPy's and PyTorch's time over Quern's, one thread", chart,
                         ("10^5 elements, in the cache", "10^7 elements")))


main()
