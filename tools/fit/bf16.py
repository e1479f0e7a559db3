#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The constants of dsl/math/bf16.lua:   PYTHONPATH=build/python python3 tools/fit/bf16.py   (needs NumPy and mpmath; narrow.py says how)"""
import numpy as np

from narrow import F4, fit, fma, gelu_body, gelu_constants, points, polynomial_of, raised, search

LOG2E_2 = F4(np.log2(np.e) / 2)


def exp_body(x, c):
    z = np.copysign(np.minimum(np.abs(x), F4(104)), x)
    t = fma(z, LOG2E_2, F4(3 * 2**22))
    w = raised(polynomial_of(fma(z, LOG2E_2, -(t - F4(3 * 2**22))), c, 1), t)
    return w * w


np.seterr(all="ignore")
r = points(-0.5005, 0.5005)
power = fit(np.stack([r**k for k in range(1, 5)], 1), 2**r - 1, 2**-r)
search(["C1", "C2", "C3", "C4"], power, [8, 100, 1500, 20000], {"exp": exp_body}, "bf16")

search(["LOG2E_2", "E1", "E2", "E3", "E4", "P1", "P2", "P3", "D1", "D2", "D3", "D4"], gelu_constants(power, 13.75),
       [40, 8, 100, 1500, 20000] + 7 * [200], {"gelu": lambda x, c: gelu_body(x, c, 13.75, 4)}, "bf16")
