#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The f32 constants of dsl/math/cbrt.lua:   python3 tools/fit/cbrt.py   (needs NumPy)

z by the bits of a; the constant for which the quotient of the largest u = a z^3 and the least is smallest, where z is about
a^(-1/3) / sqrt(3). Then P(u) = u^(-2/3) / 3 by least squares that are weighted until the largest relative error is least."""
import math

import numpy as np

A = np.exp2(np.linspace(0, 3, 300001)).astype("f4")
THIRD = -float.fromhex("0x1.555556p-15")


def cubes(start):
    t = (A.view("i4").astype("f4").astype("f8") * THIRD + start).astype("f4")
    return A * ((t.view("u4") << np.uint32(13)).view("f4").astype("f8"))**3


def spread(start):
    u = cubes(start)
    return u.max() / u.min()


middle = 173327.7 + 3 * 2**22 - math.log2(math.sqrt(3)) * 1024
start = float(round(min((middle + k for k in range(-90, 91)), key=spread)))
u = cubes(start)
low, high = u.min(), u.max()
x = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(400) + 0.5) / 400)
wanted, weights = x**(-2 / 3) / 3, np.ones(400)
for _ in range(300):
    a = np.vander(x, 4) / wanted[:, None]
    c = np.linalg.lstsq(a * np.sqrt(weights)[:, None], np.sqrt(weights), rcond=None)[0]
    error = np.abs(a @ c - 1)
    weights *= (error / error.max())**0.3 + 1e-6
    weights /= weights.max()
print("CBRT_START_F32", start, "u from", low, "to", high)
for k, value in enumerate(c[::-1]):
    print(f"CBRT_F32_P{k}", float(np.float32(value)).hex())
print("relative error: 2 ^", math.log2(error.max()))
