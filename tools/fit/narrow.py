#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What half.py and bf16.py share: polynomials by least squares that are weighted until the largest relative error is least; then random
steps of their constants by some last bits, until every number of the dtype has the result of quern's f32 function, rounded to that
dtype. The fma here is one of f64, rounded once more; that of hardware is tried by t285."""
import numpy as np
import quern

F4, U4 = np.float32, np.uint32


def bits_f16(x):
    return x.astype("f2").view("u2")


def bits_bf16(x):
    """Of numbers; what is made of NaN is another thing."""
    b = x.view(U4)
    return ((b + U4(0x7fff) + ((b >> U4(16)) & U4(1))) >> U4(16)).astype("u2")


ALL = {"f16": np.arange(65536, dtype=np.uint16).view("f2").astype(F4), "bf16": (np.arange(65536, dtype=U4) << U4(16)).view(F4)}
BITS = {"f16": bits_f16, "bf16": bits_bf16}


def fma(a, b, c):
    return (a.astype("f8") * b + c).astype(F4)


def fit(rows, wanted, scale):
    """The c for which (rows c - wanted) scale is smallest where it is largest."""
    weights, best = np.ones(len(wanted)), None
    for _ in range(300):
        a = scale * np.sqrt(weights)
        c = np.linalg.lstsq(rows * a[:, None], wanted * a, rcond=None)[0]
        error = np.abs((rows @ c - wanted) * scale)
        if best is None or error.max() < best[0]:
            best = error.max(), c
        weights *= (error / error.max())**0.4 + 1e-6
        weights /= weights.max()
    return list(best[1])


def points(low, high):
    return (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(400) + 0.5) / 400)


def raised(y, t):
    """2^n y, n in the low bits of t."""
    return (y.view(U4) + (t.view(U4) << U4(23))).view(F4)


def search(names, constants, steps, bodies, dtype="f16", below=np.inf):
    """steps: the most last bits that each constant may move by. bodies: of (x, constants), by the function's name. below: of |x|."""
    cases, bits_of = [], BITS[dtype]
    for name, body in bodies.items():
        x = ALL[dtype][ALL[dtype] > 0] if "log" in name else ALL[dtype][ALL[dtype] == ALL[dtype]]
        x = x[np.abs(x) < below]
        cases.append((body, x, bits_of(np.asarray(getattr(quern, name)(x)))))

    def wrong(c):
        return sum(np.count_nonzero(bits_of(body(x, c)) != wanted) for body, x, wanted in cases)

    rng, now = np.random.default_rng(1), np.array(constants, F4)
    least, free = wrong(now), np.flatnonzero(steps)
    for _ in range(20000):
        if least == 0:
            break
        bits = now.view("i4").copy()
        for k in rng.choice(free, rng.integers(1, 4)):
            bits[k] += rng.integers(-steps[k], steps[k] + 1) if rng.random() < 0.7 else rng.integers(-8, 9)
        n = wrong(bits.view(F4))
        if n <= least:
            least, now = n, bits.view(F4)
    print(*bodies, "- wrong:", least)
    for name, value in zip(names, now):
        print(f"  {name} = {float(value).hex()}")


def polynomial_of(z, c, least):
    """least + c[0] z + c[1] z^2 + ..."""
    p = c[-1] * np.ones(1, F4)
    for k in range(len(c) - 2, -1, -1):
        p = fma(p, z, c[k])
    return fma(p, z, F4(least))


def gelu_body(x, c, end, n_power, unit=1):
    """gelu as in bf16.lua; c: -log2(e) / 2, n_power coefficients of 2^r, P1 to P3, D1 to D4 times 2^16. unit: by what P and D are larger."""
    z = np.minimum(np.abs(x), F4(end))
    s = z * z
    t = fma(s, c[0], F4(3 * 2**22 + 16))
    e = raised(polynomial_of(fma(s, c[0], -(t - F4(3 * 2**22 + 16))), c[1:n_power + 1], 1), t)
    q = e * polynomial_of(z, c[n_power + 1:n_power + 4], 0.5 * unit) / polynomial_of(z, c[n_power + 4:], 65536 * unit)
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


def gelu_constants(power, end, unit=1):
    from mpmath import erfc, exp, mpf, sqrt
    z = end * points(0, 1)**2
    parts = quotient(np.array([float(exp(mpf(v)**2 / 2) * erfc(mpf(v) / sqrt(2)) / 2) for v in z]), z, 3, 4)
    return [-np.log2(np.e) / 2] + power + [unit * v for v in parts[:3]] + [unit * 65536 * v for v in parts[3:]]
