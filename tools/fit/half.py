#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The constants of dsl/math/half.lua:   PYTHONPATH=build/python python3 tools/fit/half.py   (needs NumPy and mpmath; narrow.py says how)"""
import numpy as np

from narrow import F4, U4, fit, fma, gelu_body, gelu_constants, points, raised, search

SHIFT = np.float32(3 * 2**22)
LOG_C = [float.fromhex(c) for c in ("0x1.48p0 0x1.38p0 0x1.3p0 0x1.28p0 0x1.18p0 0x1.1p0 0x1.08p0 0x1p0 0x1.ep-1 0x1.c8p-1 0x1.bp-1 "
                                    "0x1.98p-1 0x1.88p-1 0x1.7p-1 0x1.6p-1 0x1.58p-1").split()]


def log_body(x, c):
    b = x.view(U4) - U4(0x3f440000)
    at, e = (b >> U4(19)) & U4(15), b & U4(0xff800000)
    r = fma((x.view(U4) - e).view(F4), np.array(LOG_C, F4)[at], F4(-1))
    k = fma(e.view("i4").astype(F4), c[16], c[at])
    return fma(r, fma(r, fma(r, c[19], c[18]), c[17]), k)


def sin_of(r, t, s):
    z = r * r
    y = r * fma(z, fma(z, fma(z, fma(z, s[3], s[2]), s[1]), s[0]), F4(1))
    return (y.view(U4) ^ (t.view(U4) << U4(31))).view(F4)


def sin_body(x, c):
    t = fma(x, c[0], SHIFT)
    return sin_of(fma(t - SHIFT, -c[2], fma(t - SHIFT, -c[1], x)), t, c[3:])


def cos_body(x, c):
    t = fma(x, c[0], F4(-0.5)) + SHIFT
    h = (t - SHIFT) + F4(0.5)
    return sin_of(fma(h, c[2], fma(h, c[1], -x)), t, c[3:])


def tan_body(x, c):
    t = fma(x, c[0], SHIFT)
    r = fma(t - SHIFT, -c[2], fma(t - SHIFT, -c[1], x))
    z = r * r
    p, q, odd = r * fma(z, c[3], F4(1)), fma(z, fma(z, c[5], c[4]), F4(1)), (t.view(U4) & U4(1)) != 0
    y = np.where(odd, q, p) / np.where(odd, p, q)
    return (y.view(U4) ^ (t.view(U4) << U4(31))).view(F4)


def cbrt_start(a, start):
    t = fma(a.view("i4").astype(F4), F4(float.fromhex("-0x1.555556p-15")), start)
    return (t.view(U4) << U4(13)).view(F4)


def cbrt_body(x, c):
    a = np.abs(x)
    z = cbrt_start(a, c[0])
    v = a * (z * z)
    u, p = v * z, c[5]
    for k in (4, 3, 2, 1):
        p = fma(p * np.ones(1, F4), u, c[k])
    return np.copysign(v * p, x)


def cut_to(x, most):
    return np.copysign(np.minimum(np.abs(x), F4(most)), x)


def polynomial(r, c):
    p = c[-1] * np.ones(1, F4)
    for k in range(len(c) - 2, -1, -1):
        p = fma(p, r, c[k])
    return p


def exp_of(z, c):
    t = fma(z, F4(np.log2(np.e)), SHIFT)
    r = fma(z, F4(np.log2(np.e)), -(t - SHIFT))
    return raised(fma(polynomial(r, c), r, F4(1)), t)


def cosh_body(x, c):
    h = F4(0.5) * exp_of(np.abs(cut_to(x, 20)), c)
    return h + F4(0.25) / h


def silu_body(x, c):
    return cut_to(x, 2**17) / (F4(1) + exp_of(-cut_to(x, 40), c))


def expm1_of(z, c):
    t = fma(z, F4(np.log2(np.e)), SHIFT)
    r = fma(t - SHIFT, F4(-np.log(2)), z)
    s = raised(np.ones_like(t), t)
    return fma(s, fma(r * r, polynomial(r, c), r), s - F4(1))


def sinh_body(x, c):
    u = expm1_of(np.abs(cut_to(x, 20)), c)
    h = F4(0.5) * u
    return np.copysign(h + h / (u + F4(1)), x)


def asin_parts(x, c):
    """The arc sine of the lesser of |x| and sqrt((1 - |x|) / 2), and where it is the latter."""
    a = np.abs(x)
    large = a > F4(0.5)
    z = np.where(large, fma(a, F4(-0.5), F4(0.5)), a * a)
    s = np.where(large, np.sqrt(z), a)
    return fma(s * z, polynomial(z, c), s), large


def asin_body(x, c):
    y, large = asin_parts(x, c)
    return np.copysign(np.where(large, fma(y, F4(-2), F4(np.pi / 2)), y), x)


def acos_body(x, c):
    y, large = asin_parts(x, c)
    base = np.where(large, np.where(x > 0, F4(0), F4(np.pi)), F4(np.pi / 2))
    factor = np.where(large, F4(2), F4(-1))
    return fma(np.where(np.signbit(x), -factor, factor), y, base)


def atanh_body(x, c):
    a = np.abs(x)
    k = ((F4(1) + a).view("i4") - (F4(1) - a).view("i4") + 0x400000) & -0x800000
    q = (k + 0x3f800000).view(F4)
    s = fma(a, F4(1) + q, F4(1) - q) / fma(a, F4(1) - q, F4(1) + q)
    z = s * s
    return np.copysign(fma(s * z, polynomial(z, c[1:]), fma(k.astype(F4), c[0], s)), x)


np.seterr(all="ignore")
for name, base in (("log", np.e), ("log2", 2), ("log10", 10)):
    unit, r = 1 / np.log(base), points(-0.0342, 0.0342)
    parts = [1, -0.5] if name == "log" else [F4(unit), F4(-0.5 * unit)]
    third = fit(np.stack([r], 1), (np.log1p(r) * unit - r * parts[0]) / r**2 - parts[1], np.abs(r))
    search([f"K({c})" for c in LOG_C] + ["2^-23 log 2", "P1", "P2", "P3"], [-np.log(c) * unit + 0.0 for c in LOG_C] + [np.log(2) * unit * 2.0**-23] + parts + third,
           [0 if c == 1 else 30 for c in LOG_C] + [0 if base == 2 else 2, 0 if name == "log" else 3, 600, 60000], {name: log_body})

r = points(0, np.pi / 2)
s = fit(np.vander(r * r, 4, increasing=True), (np.sin(r) / r - 1) / r**2, r**3 / np.sin(r))
search(["1_PI", "PI_HI", "PI_LO", "S0", "S1", "S2", "S3"], [1 / np.pi, float.fromhex("0x1.921fb4p+1"), float.fromhex("0x1.4442d2p-23")] + s, [0, 0, 0, 6, 300, 40000, 400000],
       {"sin": sin_body, "cos": cos_body})

r = points(0, np.pi / 4 * 1.002)
z, t = r * r, np.tan(r) / r
pq = fit(np.stack([z / t, -z, -z * z], 1), 1 - 1 / t, np.ones(400))
search(["2_PI", "PI_2_HI", "PI_2_LO", "P1", "Q1", "Q2"], [2 / np.pi, float.fromhex("0x1.921fb4p+0"), float.fromhex("0x1.4442d2p-24")] + pq, [300, 0, 400, 100, 20, 400],
       {"tan": tan_body})

some = np.exp2(np.linspace(0, 3, 30001)).astype(F4)
START = F4(12756150) # the quotient of the largest u and the least is smallest
u = some * cbrt_start(some, START).astype("f8")**3
u = points(u.min(), u.max())
search(["START", "P0", "P1", "P2", "P3", "P4"], [START] + fit(np.vander(u, 5, increasing=True), u**(-2 / 3), u**(2 / 3)), [0, 6, 20, 40, 40, 20],
       {"cbrt": cbrt_body})

r = points(-0.5005, 0.5005)
search(["C1", "C2", "C3", "C4", "C5"], fit(np.stack([r**k for k in range(1, 6)], 1), 2**r - 1, 2**-r), [6, 70, 900, 10000, 40000],
       {"exp": lambda x, c: exp_of(cut_to(x, 20), c), "cosh": cosh_body, "silu": silu_body})

r = points(-0.3475, 0.3475)
search(["E2", "E3", "E4", "E5", "E6"], fit(np.stack([r**k for k in range(2, 7)], 1), np.expm1(r) - r, 1 / np.abs(np.expm1(r))),
       [40, 300, 2000, 10000, 80000], {"expm1": lambda x, c: np.copysign(expm1_of(cut_to(x, 20), c), x), "sinh": sinh_body})

z = points(1e-9, 0.2501)
search(["A3", "A5", "A7", "A9", "A11"], fit(np.stack([z**k for k in range(5)], 1), (np.arcsin(np.sqrt(z)) / np.sqrt(z) - 1) / z, z),
       [100, 1000, 9000, 40000, 90000], {"asin": asin_body, "acos": acos_body}, below=1.0005)

z = points(1e-9, 0.0401)
search(["2^-23 ln2 / 2", "T3", "T5", "T7"],
       [np.log(2) * 2.0**-24] + fit(np.stack([z**k for k in range(3)], 1), (np.arctanh(np.sqrt(z)) / np.sqrt(z) - 1) / z, z), [2, 300, 9000, 200000],
       {"atanh": atanh_body}, below=1)

r = points(-0.5005, 0.5005)
power = fit(np.stack([r**k for k in range(1, 6)], 1), 2**r - 1, 2**-r)
search(["LOG2E_2", "E1", "E2", "E3", "E4", "E5", "P1", "P2", "P3", "D1", "D2", "D3", "D4"], gelu_constants(power, 6, 1.75),
       [20, 6, 70, 900, 10000, 40000] + 7 * [60], {"gelu": lambda x, c: gelu_body(x, c, 6, 5, 1.75)})
