#!/usr/bin/env python3
"""Puts quern-bench beside NumPy and PyTorch: the same cases, one thread, several rounds in turn, medians and ratios.

    python3 bench/run.py [--build build] [--rounds 3] [--out bench/results/NAME.md] [FILTER]

Peers that are not installed are left out, and the table says so."""
import argparse
import os
import platform
import statistics
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")


def median_ns(f):
    """As median_ns in bench.c: calls grouped to 200 us, the median of the groups."""
    f()
    calls = 1
    while True:
        start = time.perf_counter_ns()
        for _ in range(calls):
            f()
        took = time.perf_counter_ns() - start
        if took >= 200e3:
            break
        calls = calls * 10 if took < 20e3 else int(calls * 220e3 / took) + 1
    times, begin = [], time.perf_counter_ns()
    while len(times) < 101 and (len(times) < 9 or time.perf_counter_ns() - begin < 150e6):
        start = time.perf_counter_ns()
        for _ in range(calls):
            f()
        times.append((time.perf_counter_ns() - start) / calls)
    return statistics.median(times)


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
        cases[f"add_{name}_1e7"] = lambda dtype=dtype: None
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out")
    parser.add_argument("filter", nargs="?", default="")
    options = parser.parse_args()
    program = os.path.join(options.build, "bench", "quern-bench")
    peers, missing = [], []
    for make in (numpy_cases, torch_cases):
        try:
            peers.append(make())
        except ImportError as e:
            missing.append(e.name)
    times, bytes_of, order = {}, {}, []
    for _ in range(options.rounds):
        for line in subprocess.run([program] + ([options.filter] if options.filter else []), check=True,
                                   capture_output=True, text=True).stdout.splitlines():
            name, ns, size = line.split("\t")
            if name not in bytes_of:
                order.append(name)
            bytes_of[name] = float(size)
            times.setdefault((name, "Quern"), []).append(float(ns))
        for peer, cases in peers:
            for name in order:
                if name in cases:
                    times.setdefault((name, peer), []).append(median_ns(cases[name]))
    extra = {}
    for option in ("--first", "--memory"):
        rows = [subprocess.run([program, option], check=True, capture_output=True, text=True).stdout.split("\t")
                for _ in range(5)]
        extra[rows[0][0]] = statistics.median(float(row[1]) for row in rows)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    out = [f"Medians of {options.rounds} rounds in turn, one thread; {cpu}; {platform.system()}.",
           "ns a call; the ratio is the best peer's time over Quern's: above 1 Quern is quicker.", ""]
    if missing:
        out += ["Not installed, so not beside it: " + ", ".join(missing) + ".", ""]
    names = [peer for peer, _ in peers]
    out.append("| case | Quern | GB/s | " + " | ".join(names) + " | ratio |")
    out.append("|---" * (len(names) + 4) + "|")
    for name in order:
        ours = statistics.median(times[name, "Quern"])
        theirs = [statistics.median(times[name, peer]) if (name, peer) in times else None for peer in names]
        known = [t for t in theirs if t]
        cells = [f"{t:.0f}" if t else "" for t in theirs]
        ratio = f"{min(known) / ours:.2f}" if known else ""
        out.append(f"| {name} | {ours:.0f} | {bytes_of[name] / ours:.1f} | " + " | ".join(cells) + f" | {ratio} |")
    out.append("")
    out.append(f"First built op in a process: {extra['first_op_in_process'] / 1e3:.0f} us. "
               f"Memory beyond the operands, 10^8 elements transposed and converted: {extra['memory_beyond_operands'] / 1024:.0f} KiB.")
    text = "\n".join(out) + "\n"
    sys.stdout.write(text)
    if options.out:
        with open(options.out, "w") as f:
            f.write(text)


main()
