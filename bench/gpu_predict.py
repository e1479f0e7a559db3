#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicts the times of the kernels of gpu.py's cases without a GPU: from bytes, bytes in flight and instructions.

    python3 bench/gpu_predict.py --build BUILD [--out FILE]

Runs gpu.sh on the fake driver of BUILD/tests/fake for the kernels' texts, and compiles these with nvcc for the H200 (sm_90).
Instructions per element: the machine code of a turn (one step of the grid-stride loop) without slow paths, that is with whole,
aligned items, divided by its elements; this includes work done once per turn, so it is an upper bound. The time is the longest
of three: its bytes, its instructions, and the latency of memory if too few bytes are in flight."""
import argparse
import math
import os
import re
import struct
import subprocess
import tempfile

import gpu_cases

# H200: its data sheet and NVIDIA's documents on the architecture; latency: a load that misses L2, from published tests.
BANDWIDTH, LATENCY = 4.8e12, 0.8e-6
SMS, CLOCK, LANES = 132, 1.755e9, 128  # lanes: a multiprocessor's thread instructions per clock
REGISTERS, THREADS, BLOCK = 65536, 2048, 256
IN_FLIGHT = BANDWIDTH * LATENCY / SMS  # bytes that each multiprocessor must have in flight

BYTES = 1 << 20  # of the larger arrays: rows of 30 are enough for a kernel in which a thread has a row

# In kernels that reduce or scan: whole chunks, one joined axis, whole rows, in ranges.
FAST_ROWS = [(r"if \(is_value & 1\)", "if (false)"), (r"if \(is_plain && n - first > 240\)", "if (true)"), (r"dim \+ 1 < \(u32\)args.n_joined", "false"),
             (r"if \(first \+ 16 \* k >= n\) continue;", ""), (r"const bool is_own = [^;]*;", "const bool is_own = true;"),
             (r"step != 0 && is_row", "false"), (r"if \(stage && step != 2\)", "if (false)"), (r"if \(!stage \|\| stage == \d+\)", "if (true)"),
             (r"if \(step == [123]\) (\{|break)", r"if (false) \1"), (r"if \(first \+ k < n\) \{", "{"),
             (r"if \(k \+ HALF < n\)", "")]
FAST = re.compile(r"if \(start < n && n - start >= V && \w+ % \(V \* sizeof\(T\)\) == 0\)")


def instructions(cubin):
    """The kernel's number of instructions: 16 bytes each in its section."""
    data = open(cubin, "rb").read()
    at, n, names = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 60)
    sections = [struct.unpack_from("<IIQQQQ", data, at + 64 * k) for k in range(n)]
    text = sections[names][4]
    return sum(s[5] // 16 for s in sections if data[text + s[0]:].startswith(b".text.qj_"))


def compile_one(nvcc, text, folder):
    """Registers, instructions."""
    source, cubin = os.path.join(folder, "kernel.cu"), os.path.join(folder, "kernel.cubin")
    with open(source, "w") as file:
        file.write(text)
    said = subprocess.run([nvcc, "-arch=sm_90", "-cubin", "-Xptxas", "-v", "-o", cubin, source], check=True,
                          capture_output=True, text=True)
    return int(re.search(r"Used (\d+) registers", said.stderr + said.stdout).group(1)), instructions(cubin)


def kernels(build, folder):
    """case's name -> the text of its kernel, and its items per thread."""
    here = os.path.dirname(os.path.abspath(__file__))
    table = os.path.join(folder, "gpu.md")
    env = dict(os.environ, QUERN_CUDA_PATH=os.path.join(os.path.abspath(build), "tests", "fake"), QUERN_DUMP=folder)
    command = ["sh", os.path.join(here, "gpu.sh"), "--build", build, "--bytes", str(BYTES), "--rounds", "1", "--repeats", "1"]
    subprocess.run(command + ["--seconds", "1", "--out", table], check=True, env=env, stdout=subprocess.DEVNULL)
    found = {}
    for line in open(table):
        match = re.match(r"\| (.+?) \| (qj_[0-9a-f]+) (\S+ \S+) \| (?:[^|]*\|){3} (\d+) \|", line)
        if match:
            with open(os.path.join(folder, match.group(2) + ".cu")) as file:
                found[match.group(1)] = (file.read(), match.group(3), int(match.group(4)))
    return found


def row(case, text, form, turn, nvcc, folder):
    registers, whole = compile_one(nvcc, text, folder)
    changed = FAST.sub("if (true)", text)
    for pattern, instead in FAST_ROWS:
        changed = re.sub(pattern, instead, changed)
    _, fast = compile_one(nvcc, changed, folder)
    tile = re.search(r"a tile of 32 x (\d+) elements", text)
    of_row = re.search(r"A slot is (\d+) elements of a row", text)
    slot = int(of_row.group(1)) if of_row else 1
    elements = 32 * int(tile.group(1)) // BLOCK if tile else slot * turn
    n = math.prod(case.output.shape)
    if case.kind in gpu_cases.REDUCTIONS:  # a thread has 16 elements of a chunk; what it does once a row is counted for these
        # Where a thread has a row, its loops take 8 elements to load and 16 to compute.
        elements, n = 8 if form.startswith("2d") else 16, math.prod(case.inputs[0].shape)
    bytes_each = case.bytes / n
    per_element = fast / elements
    resident = min(THREADS // BLOCK, REGISTERS // (BLOCK * -(-registers // 8) * 8)) * BLOCK
    loads = sum(gpu_cases.SIZE[x.dtype] for x in case.inputs if x.bytes * 2 > n * gpu_cases.SIZE[x.dtype]) * elements
    flight = resident * loads
    by_bytes, by_work = bytes_each / BANDWIDTH, per_element / (SMS * LANES * CLOCK)
    by_wait = by_bytes * max(1, IN_FLIGHT / flight)
    longest = max(by_bytes, by_work, by_wait)
    bound = "bytes" if longest == by_bytes else "instructions" if longest == by_work else "latency"
    return (f"| {case.name} | {form} | {bytes_each:.1f} | {registers} | {resident * 100 // THREADS}% | {flight / 1024:.0f} | "
            f"{whole} | {per_element:.1f} | {min(1, by_bytes / longest):.2f} | {bound} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--nvcc", default="/usr/local/cuda/bin/nvcc")
    parser.add_argument("--out")
    options = parser.parse_args()
    lines = ["Computed, not measured: no GPU was used. Written by `bench/gpu_predict.py`.", "",
             f"H200: {BANDWIDTH / 1e12} TB/s, {SMS} multiprocessors at {CLOCK / 1e9} GHz; {IN_FLIGHT / 1024:.0f} KB must be under "
             f"way in each for a latency of {LATENCY * 1e6:.1f} us.", "",
             "| case | form | bytes an element | registers | occupancy | KB in flight a multiprocessor | instructions | an element | "
             "predicted, of the bandwidth | bound by |", "|---|---|---|---|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        texts = kernels(options.build, folder)
        for case in gpu_cases.make_cases(BYTES, False):
            if case.name in texts:
                lines.append(row(case, *texts[case.name], options.nvcc, folder))
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if options.out:
        with open(options.out, "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
