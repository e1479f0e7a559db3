#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares quern-bench with NumPy and PyTorch, and its expressions with NumExpr, PyTorch, torch.compile and Numba: the same
cases, one thread, several rounds in turn, medians and ratios.

    python3 bench/run.py [--build build] [--rounds 3] [--out bench/results/NAME.md] [FILTER]
    python3 bench/run.py --all [--build build] [--out bench/results] [--note SENTENCE]

The build is one with -DQUERN_BUILD_BENCH=ON.
Peers that are not installed are left out, and the table says so. FILTER "fused" is for the expressions alone. --all measures everything
that a CPU has, here and now: these cases, expressions.py, families.py, reductions.py and python_call.py, and draws docs/pictures/speed.svg. Each table
has the machine, the commit and the date; --note adds a sentence, such as what else the machine did."""
import os
import statistics
import subprocess
import sys
import tempfile
import time

from chart import groups
from timing import head, machine, median_ns, options_of_command_line, row

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("NUMEXPR_MAX_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")


UNARY = ["negative", "abs", "sqrt", "exp", "log", "tanh", "erf", "sigmoid", "relu", "gelu"]
BINARY = ["add", "multiply", "divide", "maximum", "pow"]


def values(n):
    return [0.25 + (i % 1000) / 600.0 for i in range(min(n, 1000))]


def numpy_cases():
    import numpy as np
    np.seterr(all="ignore")

    def array(dtype, *shape):
        n = int(np.prod(shape))
        return np.resize(np.array(values(n)), n).astype(dtype).reshape(shape)

    def binary(f, dtype, n, out_dtype=None):
        a, b, out = array(dtype, n), array(dtype, n), np.empty(n, out_dtype or dtype)
        return lambda: f(a, b, out=out)

    def unary(f, dtype, n):
        a, out = array(dtype, n), np.empty(n, dtype)
        return lambda: f(a, out=out)

    cases = {"call_8_op": binary(np.add, "f4", 8)}
    for name, dtype in (("f32", "f4"), ("f64", "f8")):
        for op in UNARY:
            if op in ("erf", "sigmoid", "relu", "gelu"):
                continue
            cases[f"{op}_{name}_1e5"] = unary(getattr(np, op), dtype, 100000)
        for op in BINARY:
            f = np.power if op == "pow" else getattr(np, op)
            cases[f"{op}_{name}_1e5"] = binary(f, dtype, 100000)
    cases["add_i32_1e5"] = binary(np.add, "i4", 100000)
    cases["add_u8_1e5"] = binary(np.add, "u1", 100000)
    cases["less_f32_1e5"] = binary(np.less, "f4", 100000, "?")
    c, a, b = array("f4", 100000) > 1, array("f4", 100000), array("f4", 100000)
    cases["where_f32_1e5"] = lambda: np.where(c, a, b)
    out64 = np.empty(100000, "f8")
    cases["astype_f32_1e5"] = lambda: np.copyto(out64, a)
    cases["add_f16_1e5"] = binary(np.add, "f2", 100000)
    for name, dtype in (("f32", "f4"), ("f16", "f2")):
        cases[f"add_{name}_1e7"] = binary(np.add, dtype, 10000000)
    cases["exp_f32_1e7"] = unary(np.exp, "f4", 10000000)
    m, n, mo = array("f4", 3000, 3000), array("f4", 3000, 3000), np.empty((3000, 3000), "f4")
    cases["transposed_add_3000"] = lambda: np.add(m.T, n, out=mo)
    r, s, ro = array("f4", 1000000, 3), array("f4", 3), np.empty((1000000, 3), "f4")
    cases["rows3_add"] = lambda: np.add(r, s, out=ro)
    r3, s3, ro3 = array("f4", 300000, 3, 3).transpose(0, 2, 1), array("f4", 3, 3), np.empty((300000, 3, 3), "f4")
    cases["rows33_add"] = lambda: np.add(r3, s3, out=ro3)
    x, y, z = array("f4", 3000, 1024)[:, :1000], array("f4", 3000, 1024)[:, :1000], np.empty((3000, 1000), "f4")
    cases["sliced_rows_add"] = lambda: np.add(x, y, out=z)
    return "NumPy " + np.__version__, cases


def torch_cases():
    import torch
    torch.set_num_threads(1)

    def array(dtype, *shape):
        n = 1
        for d in shape:
            n *= d
        return torch.tensor(values(n)).repeat((n + 999) // 1000)[:n].to(dtype).reshape(shape)

    def binary(f, dtype, n, out_dtype=None):
        a, b, out = array(dtype, n), array(dtype, n), torch.empty(n, dtype=out_dtype or dtype)
        return lambda: f(a, b, out=out)

    def unary(f, dtype, n):
        a, out = array(dtype, n), torch.empty(n, dtype=dtype)
        return lambda: f(a, out=out)

    f32, f64, f16, bf16 = torch.float32, torch.float64, torch.float16, torch.bfloat16
    cases = {"call_8_op": binary(torch.add, f32, 8)}
    for name, dtype in (("f32", f32), ("f64", f64)):
        for op in UNARY:
            if op == "relu":
                a = array(dtype, 100000)
                cases[f"relu_{name}_1e5"] = lambda a=a: torch.relu(a)
            elif op == "gelu":
                a = array(dtype, 100000)
                cases[f"gelu_{name}_1e5"] = lambda a=a: torch.nn.functional.gelu(a)
            else:
                cases[f"{op}_{name}_1e5"] = unary(getattr(torch, op), dtype, 100000)
        for op in BINARY:
            cases[f"{op}_{name}_1e5"] = binary(getattr(torch, op), dtype, 100000)
    cases["add_i32_1e5"] = binary(torch.add, torch.int32, 100000)
    cases["add_u8_1e5"] = binary(torch.add, torch.uint8, 100000)
    cases["less_f32_1e5"] = binary(torch.less, f32, 100000, torch.bool)
    a, b, out = array(f32, 100000), array(f32, 100000), torch.empty(100000)
    c = a > 1
    cases["where_f32_1e5"] = lambda: torch.where(c, a, b, out=out)
    out64 = torch.empty(100000, dtype=f64)
    cases["astype_f32_1e5"] = lambda: out64.copy_(a)
    for name, dtype in (("f32", f32), ("f16", f16), ("bf16", bf16)):
        if name != "f32":
            cases[f"add_{name}_1e5"] = binary(torch.add, dtype, 100000)
        cases[f"add_{name}_1e7"] = binary(torch.add, dtype, 10000000)
    cases["exp_f32_1e7"] = unary(torch.exp, f32, 10000000)
    m, n, mo = array(f32, 3000, 3000), array(f32, 3000, 3000), torch.empty(3000, 3000)
    cases["transposed_add_3000"] = lambda: torch.add(m.T, n, out=mo)
    r, s, ro = array(f32, 1000000, 3), array(f32, 3), torch.empty(1000000, 3)
    cases["rows3_add"] = lambda: torch.add(r, s, out=ro)
    r3, s3, ro3 = array(f32, 300000, 3, 3).transpose(1, 2), array(f32, 3, 3), torch.empty(300000, 3, 3)
    cases["rows33_add"] = lambda: torch.add(r3, s3, out=ro3)
    x, y, z = array(f32, 3000, 1024)[:, :1000], array(f32, 3000, 1024)[:, :1000], torch.empty(3000, 1000)
    cases["sliced_rows_add"] = lambda: torch.add(x, y, out=z)
    return "PyTorch " + torch.__version__, cases


def is_fused(name):
    return name.startswith("fused_")


def load_peers(options):
    """The peers for single ops and those for expressions, as (name, cases, fresh); and the names of missing modules."""
    ops, fused, missing = [], [], []
    for make in (numpy_cases, torch_cases) if not is_fused(options.filter + "_") else ():
        try:
            ops.append((*make(), None))
        except ImportError as e:
            missing.append(e.name)
    try:
        import fused_peers
        makers = fused_peers.PEERS if any(options.filter in name for name in fused_peers.CASES) else {}
    except ImportError as e:
        makers = {}
        missing.append(e.name)
    for name, make in makers.items():
        try:
            fused.append(make())
        except ImportError as e:
            missing.append(e.name)
        except Exception as e:  # what torch.compile lacks where there is no compiler is known to it alone
            missing.append(f"{name} ({type(e).__name__})")
    return ops, fused, list(dict.fromkeys(missing))


def lines_of(program, *arguments):
    """quern-bench's lines as (name, number, number)."""
    done = subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    for line in done.stdout.splitlines():
        name, value, size = line.split("\t")
        yield name, float(value), float(size)


class Times:
    def __init__(self):
        self.lists, self.bytes, self.order = {}, {}, []

    def add(self, name, who, value, size=None):
        if size is not None and name not in self.bytes:
            self.order.append(name)
            self.bytes[name] = size
        self.lists.setdefault((name, who), []).append(value)

    def get(self, name, who="Quern"):
        found = self.lists.get((name, who))
        return statistics.median(found) if found else None


def measure(options, program, ops, fused):
    times = Times()
    for _ in range(options.rounds):
        for name, ns, size in lines_of(program, *([options.filter] if options.filter else [])):
            times.add(name, "Quern", ns, size)
        for peers, of_fused in ((ops, False), (fused, True)):
            for peer, cases, fresh in peers:
                for name in times.order:
                    if name in cases and is_fused(name) == of_fused:
                        times.add(name, peer, median_ns(cases[name]))
                if fresh:
                    start = time.perf_counter_ns()
                    fresh(1 + (time.time_ns() % 10**9) / 1e9)
                    times.add("fresh", peer, time.perf_counter_ns() - start)
    return times


def measure_processes(program):
    """The measurements that need a process of their own, five times each."""
    times = Times()
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(6):
            for name, value, size in lines_of(program, "--warm", os.path.join(cache, "c")):
                if name != "modules_mapped" or times.get("warm_start"):
                    times.add(name, "Quern", value, size)
    for option in ("--first", "--memory", "--first-expression", "--memory-expression", "--compile"):
        for _ in range(5):
            for name, value, size in lines_of(program, option):
                times.add(name, "Quern", value, size)
    return times


def number(ns):
    return "" if ns is None else f"{ns:.0f}"


def ops_table(times, peers):
    names = [peer for peer, _, _ in peers]
    out = head(["case", "Quern", "GB/s", *names, "ratio"])
    for name in times.order:
        if is_fused(name):
            continue
        ours, theirs = times.get(name), [times.get(name, peer) for peer in names]
        known = [t for t in theirs if t]
        ratio = f"{min(known) / ours:.2f}" if known else ""
        out.append(row([name, number(ours), f"{times.bytes[name] / ours:.1f}", *map(number, theirs), ratio]))
    return out


# The hand-written loop that reads and writes as much, in the cases that have one.
STREAM = {"fused_light_1e7": "fused_stream_3_1e7", "fused_chain12_1e7": "fused_stream_3_1e7", "fused_gelu_1e7": "fused_stream_4_1e7"}


def fused_table(times, peers):
    names = [peer for peer, _, _ in peers]
    out = head(["expression", "compiled", "GB/s", "interpreted", "streaming loop", *names, "ratio"])
    kinds = [name.removesuffix("_interpreted") for name in times.order if is_fused(name) and name not in STREAM.values()]
    for name in dict.fromkeys(kinds):
        compiled, interpreted = times.get(name), times.get(name + "_interpreted")
        theirs = [times.get(name, peer) for peer in names]
        known = [t for t in theirs if t]
        best = compiled or interpreted
        speed = times.bytes[name if compiled else name + "_interpreted"] / best
        ratio = f"{min(known) / best:.2f}" if known else ""
        stream = times.get(STREAM.get(name))
        out.append(row([name, number(compiled), f"{speed:.1f}", number(interpreted), number(stream), *map(number, theirs), ratio]))
    return out


def holds_table(times, processes):
    """The targets for expressions, as ratios and as times."""
    out = head(["what", "hold", "measured", "holds"])

    def add(what, hold, value, limit, unit):
        if value is not None:
            out.append(row([what, hold, f"{value:.2f} {unit}".strip(), "yes" if value <= limit else "NO"]))

    def ms(name):
        value = processes.get(name)
        return None if value is None else value / 1e6

    ours, stream = times.get("fused_gelu_1e7"), times.get("fused_stream_4_1e7")
    add("gelu(a*b+c)*d, f32, 10^7, one thread: time over a streaming loop's", "1.15", ours / stream if ours and stream else None,
        1.15, "")
    add("first result of a new expression", "1 ms", ms("first_expression_later"), 1, "ms")
    add("the same, worst of 9", "1 ms", ms("first_expression_later_worst"), 1, "ms")
    add("the first one in a process", "10 ms", ms("first_expression_in_process"), 10, "ms")
    kinds = [name for name in processes.order if name.startswith("compile_") and name != "compile_in_fresh_process"]
    up_to_60 = [ms(name) for name in kinds if processes.bytes[name] <= 60]
    add("compiled, up to 60 operations, warm compiler: the slowest kind", "15 ms", max(up_to_60, default=None), 15, "ms")
    add("compiled in a fresh process", "60 ms", ms("compile_in_fresh_process"), 60, "ms")
    add("from disk in a fresh process", "10 ms", ms("warm_start"), 10, "ms")
    add("files of LLVM, Clang and Lua that it has mapped", "0", processes.get("modules_mapped"), 0, "")
    kib = processes.get("memory_beyond_operands_expression")
    add("memory beyond operands, interpreted, 10^8 elements, one thread", "1024 KiB", None if kib is None else kib / 1024, 1024, "KiB")
    if kinds:
        out += ["", "Compiled by a warm compiler, from the text to the first result: " + ", ".join(
            f"{name.removeprefix('compile_')} {ms(name):.1f} ms ({processes.bytes[name]:.0f} operations)" for name in kinds) + "."]
    return out


# The cases of the chart, and their labels.
CHART = (("fused_light_1e5", "a * b + c, 10^5"), ("fused_gelu_1e5", "gelu(a * b + c) * d, 10^5"), ("fused_chain12_1e5", "12 operations, 10^5"),
         ("fused_light_1e7", "a * b + c, 10^7"), ("fused_gelu_1e7", "gelu(a * b + c) * d, 10^7"), ("fused_chain12_1e7", "12 operations, 10^7"))


def chart(times, peers, note):
    """The expressions of all libraries: elements a nanosecond."""
    rows = []
    for name, label in CHART:
        n = 10**7 if name.endswith("1e7") else 10**5
        found = [(who, times.get(name, who)) for who in ("Quern", *(peer for peer, _, _ in peers))]
        rows.append((label, [(who, n / ns) for who, ns in found if ns]))
    return groups("One expression of f32 arrays, one thread: elements a nanosecond. Longer is better.", machine(note), rows)


def head_of(options, missing):
    out = [f"{machine(options.note)} Medians of {options.rounds} rounds in turn, one thread.",
           "ns a call; the ratio is the best peer's time over Quern's: above 1 Quern is quicker.", ""]
    return out + (["Not there, so not beside it: " + ", ".join(missing) + ".", ""] if missing else [])


def ops_document(times, peers, processes):
    out = ["## Single ops", ""] + ops_table(times, peers) + [""]
    first, memory = processes.get("first_op_in_process"), processes.get("memory_beyond_operands")
    if first and memory:
        out += [f"First built op in a process: {first / 1e3:.0f} us. Memory beyond the operands, 10^8 elements transposed and converted: "
                f"{memory / 1024:.0f} KiB.", ""]
    return out


def expressions_document(times, peers, processes):
    out = ["## Expressions", ""] + fused_table(times, peers) + ["", "## Expressions: what they are to hold", ""]
    out += holds_table(times, processes) + [""]
    fresh = [f"{peer} {times.get('fresh', peer) / 1e6:.1f} ms" for peer, _, of_peer in peers if of_peer and times.get("fresh", peer)]
    if fresh:
        out += ["The first result of a new expression elsewhere, a * b + c + k * a on 1000 elements: " + ", ".join(fresh) + ".", ""]
    return out


def write(path, lines):
    text = "\n".join(lines)
    sys.stdout.write(text)
    if path:
        with open(path, "w") as file:
            file.write(text)


def run_cases(options):
    """(times, those of processes of their own, peers for ops, peers for expressions, names of missing modules)"""
    program = os.path.join(options.build, "bench", "quern-bench")
    if not os.path.exists(program):
        sys.exit(f"{program} is not there: configure the build with -DQUERN_BUILD_BENCH=ON")
    ops, fused, missing = load_peers(options)
    return measure(options, program, ops, fused), measure_processes(program), ops, fused, missing


def everything(options):
    """All tables, each into its file."""
    here = os.path.dirname(os.path.abspath(__file__))
    folder = options.out or os.path.join(here, "results")
    times, processes, ops, fused, missing = run_cases(options)
    write(os.path.join(folder, "ops.md"), head_of(options, missing) + ops_document(times, ops, processes))
    write(os.path.join(folder, "fused.md"), head_of(options, missing) + expressions_document(times, fused, processes))
    write(os.path.join(os.path.dirname(here), "docs", "pictures", "speed.svg"), [chart(times, fused, options.note)])
    environment = dict(os.environ, PYTHONPATH=os.path.join(os.path.abspath(options.build), "python"))
    for script, name in (("expressions.py", "expressions.md"), ("families.py", "families.md"), ("reductions.py", "reductions.md"),
                         ("python_call.py", "python-call.md")):
        subprocess.run([sys.executable, os.path.join(here, script), "--build", options.build, "--rounds", str(options.rounds),
                        "--note", options.note, "--out", os.path.join(folder, name)], check=True, env=environment)


def main():
    options = options_of_command_line(rounds=3)
    if options.all:
        options.rounds = max(options.rounds, 5)
        everything(options)
    else:
        times, processes, ops, fused, missing = run_cases(options)
        out = head_of(options, missing)
        if any(not is_fused(name) for name in times.order):
            out += ops_document(times, ops, processes)
        if any(is_fused(name) for name in times.order):
            out += expressions_document(times, fused, processes)
        write(options.out, out)


if __name__ == "__main__":
    main()
