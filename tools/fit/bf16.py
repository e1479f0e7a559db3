#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The constants of dsl/math/bf16.lua:   PYTHONPATH=build/python python3 tools/fit/bf16.py   (needs NumPy and mpmath; narrow.py says how)"""
from mpmath import erfc, exp, mpf, sqrt
import numpy as np

from narrow import F4, fit, fma, points, raised, search

LOG2E_2 = F4(np.log2(np.e) / 2)


def polynomial(z, c, least):
    p = c[-1] * np.ones(1, F4)
    for k in range(len(c) - 2, -1, -1):
        p = fma(p, z, c[k])
    return fma(p, z, F4(least))


def exp_body(x, c):
    z = np.copysign(np.minimum(np.abs(x), F4(104)), x)
    t = fma(z, LOG2E_2, F4(3 * 2**22))
    w = raised(polynomial(fma(z, LOG2E_2, -(t - F4(3 * 2**22))), c, 1), t)
    return w * w


def gelu_body(x, c):
    z = np.minimum(np.abs(x), F4(13.75))
    s = z * z
    t = fma(s, c[0], F4(3 * 2**22 + 16))
    e = raised(polynomial(fma(s, c[0], -(t - F4(3 * 2**22 + 16))), c[1:5], 1), t)
    q = e * polynomial(z, c[5:8], 0.5) / polynomial(z, c[8:], 65536)
    return fma(-z, q, np.where(x < 0, F4(-0.0), x))


def quotient(wanted, z, n_p, n_d):
    """P1, ..., D1, ... of (1/2 + P1 z + ...) / (1 + D1 z + ...), the largest relative error small: D is that of the step before."""
    d, weights, best = np.ones(len(z)), np.ones(len(z)), None
    rows = np.stack([z**k for k in range(1, n_p + 1)] + [-wanted * z**k for k in range(1, n_d + 1)], 1)
    for step in range(400):
        a = np.sqrt(weights) / (wanted * d)
        sizes = np.abs(rows * a[:, None]).max(0)
        c = np.linalg.lstsq(rows * a[:, None] / sizes, (wanted - 0.5) * a, rcond=None)[0] / sizes
        d = 1 + sum(v * z**(k + 1) for k, v in enumerate(c[n_p:]))
        error = np.abs((0.5 + sum(v * z**(k + 1) for k, v in enumerate(c[:n_p]))) / d / wanted - 1)
        if step > 3 and (best is None or error.max() < best[0]):
            best = error.max(), c
        weights *= (error / error.max())**0.3 + 1e-6
        weights /= weights.max()
    return list(best[1])


np.seterr(all="ignore")
r = points(-0.5005, 0.5005)
power = fit(np.stack([r**k for k in range(1, 5)], 1), 2**r - 1, 2**-r)
search(["C1", "C2", "C3", "C4"], power, [8, 100, 1500, 20000], {"exp": exp_body}, "bf16")

z = 13.75 * points(0, 1)**2
tail = np.array([float(exp(mpf(v)**2 / 2) * erfc(mpf(v) / sqrt(2)) / 2) for v in z])
parts = quotient(tail, z, 3, 4)
search(["LOG2E_2", "E1", "E2", "E3", "E4", "P1", "P2", "P3", "D1", "D2", "D3", "D4"],
       [-LOG2E_2] + power + parts[:3] + [65536 * v for v in parts[3:]], [40, 8, 100, 1500, 20000] + 7 * [200], {"gelu": gelu_body}, "bf16")
