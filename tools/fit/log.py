#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The f64 tables and polynomials of dsl/math/log.lua and log2.lua (log10):   python3 tools/fit/log.py   (needs mpmath)

    log(1 + r) = r + r^2 (T2 + T3 r + ...), |r| <= 0.0343, error relative to r; each coefficient is rounded before the next is
    fitted.
    -log c = HI + LO, HI a multiple of 2^-42: e times the high part of ln2 and HI are summed exactly."""
from mpmath import cos, log, lu_solve, matrix, mp, mpf, nint, pi

mp.prec = 200
BOUND, DEGREE, POINTS = mpf("0.0343"), 8, 60
C = [float.fromhex(c) for c in ("0x1.48p0 0x1.38p0 0x1.3p0 0x1.28p0 0x1.18p0 0x1.1p0 0x1.08p0 0x1p0 0x1.ep-1 0x1.c8p-1 0x1.bp-1 "
                                "0x1.98p-1 0x1.88p-1 0x1.7p-1 0x1.6p-1 0x1.58p-1").split()]


def fit(fixed, unit):
    """The coefficients behind `fixed`, by least squares that are weighted until the largest error is least."""
    n = DEGREE - len(fixed) + 1
    xs = [BOUND * cos(pi * (2 * i + 1) / (2 * POINTS)) for i in range(POINTS)]
    wanted = [((log(1 + x) - x) * unit / x**2 - sum(c * x**k for k, c in enumerate(fixed))) * abs(x) for x in xs]
    weights, best, a, b = [mpf(1)] * POINTS, None, matrix(POINTS, n), matrix(POINTS, 1)
    for _ in range(40):
        for i, x in enumerate(xs):
            b[i] = wanted[i] * weights[i]
            for k in range(n):
                a[i, k] = x**(k + len(fixed)) * abs(x) * weights[i]
        c = lu_solve(a, b)
        errors = [abs(sum(c[k] * x**(k + len(fixed)) * abs(x) for k in range(n)) - w) for x, w in zip(xs, wanted)]
        if best is None or max(errors) < best[0]:
            best = max(errors), c
        weights = [w * (e / max(errors) + mpf("0.02"))**mpf("0.5") for w, e in zip(weights, errors)]
        weights = [w / max(weights) for w in weights]
    return best[1]


for name, unit in (("LOG", mpf(1)), ("LOG10", 1 / log(10))):
    highs = [nint(-log(mpf(c)) * unit * 2**42) / 2**42 for c in C]
    print(f"{name}_HI_F64", *(float(h).hex() for h in highs))
    print(f"{name}_LO_F64", *(float(-log(mpf(c)) * unit - h).hex() for c, h in zip(C, highs)))
    found = []
    while len(found) <= DEGREE:
        found.append(mpf(float(fit(found, unit)[0])))
    print(*(float(c).hex() for c in found))
    xs = [BOUND * i / 1000 for i in range(-1000, 1001) if i]
    worst = max(abs(sum(c * x**(k + 2) for k, c in enumerate(found)) + (x - log(1 + x)) * unit) / abs(x * unit) for x in xs)
    print("relative error: 2 ^", mp.nstr(log(worst, 2), 4))
