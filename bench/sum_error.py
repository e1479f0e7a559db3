#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The error of a sum of N f32 numbers: Quern, NumPy, PyTorch, and one addition after another. Draws docs/sum_error.svg: for each N
the root of the mean square of the relative error over several draws of numbers in 0 to 1, beside the bound that Quern declares.
Peers that are not installed are left out.

    python3 bench/sum_error.py [--build build] [--most 24] [--out docs/sum_error.svg]     most: N up to 2^most
"""
import argparse
import math
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--build", default=os.path.join(ROOT, "build"))
parser.add_argument("--most", type=int, default=24)
parser.add_argument("--out", default=os.path.join(ROOT, "docs", "sum_error.svg"))
OPTIONS = parser.parse_args()
sys.path.insert(0, os.path.join(OPTIONS.build, "python"))

import numpy  # noqa: E402
import quern  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

COLUMNS = 4


def columns(x):
    """NumPy's sum along axis 0, where it adds row after row."""
    return numpy.broadcast_to(x[:, None], (x.size, COLUMNS)).copy().sum(0)[0]


SUMS = {
    "one after another": ("#718096", lambda x: numpy.cumsum(x, dtype="f4")[-1]),
    f"NumPy, axis 0 of (N, {COLUMNS})": ("#dd6b20", columns),
    "NumPy": ("#d69e2e", numpy.sum),
    "PyTorch": ("#c53030", lambda x: torch.sum(torch.from_numpy(x)).item()),
    "Quern": ("#2b6cb0", quern.sum),
}
if torch is None:
    del SUMS["PyTorch"]


def depth(n):
    return 19 + math.ceil(math.log2(math.ceil(n / 256)))


def measure():
    """name -> the errors, one for each N; and the list of N."""
    random = numpy.random.default_rng(1)
    counts = sorted({round(2 ** (k / 2)) for k in range(8, 2 * OPTIONS.most + 1)})
    errors = {name: [] for name in SUMS}
    for n in counts:
        squares = dict.fromkeys(SUMS, 0.0)
        draws = max(8, min(200, (1 << 22) // n))
        for _ in range(draws):
            x = random.random(n, numpy.float32)
            exact = math.fsum(x)
            for name, (_, total) in SUMS.items():
                squares[name] += ((float(total(x)) - exact) / exact) ** 2 / draws
        for name, square in squares.items():
            errors[name].append(math.sqrt(square))
        print(n, " ".join(f"{name}: {errors[name][-1]:.1e}" for name in SUMS), flush=True)
    return counts, errors


LEFT, TOP, WIDTH, HEIGHT, RIGHT = 62, 30, 520, 300, 180


def draw(counts, errors):
    low, high = 1e-8, 1e-3
    last = math.log10(counts[-1])
    first = math.log10(counts[0])

    def x(n):
        return LEFT + WIDTH * (math.log10(n) - first) / (last - first)

    def y(error):
        return TOP + HEIGHT * (math.log10(high) - math.log10(min(max(error, low), high))) / (math.log10(high) - math.log10(low))

    def line(values, colour, style=""):
        points = " ".join(f"{x(n):.1f},{y(value):.1f}" for n, value in zip(counts, values))
        return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"{style}/>'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + RIGHT} {TOP + HEIGHT + 42}" '
           'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="#fff"/>',
           f'<text x="{LEFT}" y="18" font-size="13">Relative error of the sum of N numbers in 0 to 1, f32</text>']
    for power in range(math.ceil(first), math.floor(last) + 1):
        at = x(10**power)
        out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{TOP + HEIGHT}" stroke="#e2e8f0"/>'
                   f'<text x="{at:.1f}" y="{TOP + HEIGHT + 15}" text-anchor="middle" fill="#4a5568">10'
                   f'<tspan dy="-4" font-size="8">{power}</tspan></text>')
    for power in range(-8, -2):
        at = y(10.0**power)
        out.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{at:.1f}" y2="{at:.1f}" stroke="#e2e8f0"/>'
                   f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end" fill="#4a5568">10'
                   f'<tspan dy="-4" font-size="8">{power}</tspan></text>')
    out.append(f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 34}" text-anchor="middle">N</text>')
    bound = [depth(n) * 2.0**-24 for n in counts]
    out.append(line(bound, "#2b6cb0", ' stroke-dasharray="4 3"'))
    labels = [(y(bound[-1]), "#2b6cb0", "Quern, declared bound")]
    for name, (colour, _) in SUMS.items():
        out.append(line(errors[name], colour, ' stroke-dasharray="2 5"' if "axis" in name else ""))
        labels.append((y(errors[name][-1]), colour, name))
    before = -math.inf
    for at, colour, name in sorted(labels):  # labels do not lie on each other
        before = max(at, before + 13)
        out.append(f'<text x="{LEFT + WIDTH + 8}" y="{before + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join(out + ["</svg>", ""])


with open(OPTIONS.out, "w") as file:
    file.write(draw(*measure()))
