#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The polynomials of dsl/math/erf.lua and dsl/math/gelu.lua (erf, erfc, f64 gelu). Needs mpmath; runs for about a minute.

Each polynomial is a least-squares fit on Chebyshev nodes, weighted so that what is small is the relative error of the
final result; on such nodes least squares is within a factor of two of minimax. Coefficients are rounded to the type one
after the other, lowest power first, and after each rounding the others are fitted again: the later ones absorb the
rounding of the earlier ones.

Printed: the coefficients, lowest power first, and the largest weighted error.
"""
from mpmath import (mp, mpf, matrix, lu_solve, fsum, polyval, cos, pi, floor, log, ldexp, nint,
                    exp, expm1, erf, erfc, sqrt)

mp.dps = 60


def rounded(x, bits):
    if x == 0:
        return x
    e = int(floor(log(abs(x), 2))) + 1
    return ldexp(nint(ldexp(x, bits - e)), e - bits)


def fit(f, weight, low, high, degree, bits):
    """Coefficients of `bits` bits; makes weight * (polynomial - f) small on [low, high]. Also log2 of the error."""
    def nodes(n, half):
        return [(low + high) / 2 + (high - low) / 2 * cos(pi * (k + half) / n) for k in range(n)]
    x = nodes(4 * (degree + 1), mpf(1) / 2)
    w = [weight(xi) for xi in x]
    rest = [f(xi) * wi for xi, wi in zip(x, w)]
    basis = [[wi * xi**k for k in range(degree + 1)] for xi, wi in zip(x, w)]
    gram = [[fsum(b[j] * b[k] for b in basis) for k in range(degree + 1)] for j in range(degree + 1)]
    c = []
    for k in range(degree + 1):
        a = matrix([row[k:] for row in gram[k:]])
        y = matrix([fsum(b[i] * r for b, r in zip(basis, rest)) for i in range(k, degree + 1)])
        c.append(rounded(lu_solve(a, y)[0], bits))
        rest = [r - c[k] * b[k] for r, b in zip(rest, basis)]
    check = nodes(12 * (degree + 1), mpf(0)) + [low]
    error = max(abs(weight(xi) * (polyval(c[::-1], xi) - f(xi))) for xi in check)
    return c, float(log(error, 2))


def small(join, degree, bits):
    """erf(x) = x + x P(x^2) for |x| < join: P in s = x^2, error relative to erf(x)."""
    f = lambda s: erf(sqrt(s)) / sqrt(s) - 1
    return fit(f, lambda s: 1 / (1 + f(s)), mpf(2)**-60, mpf(join)**2, degree, bits)


def root(join, end, degree, bits):
    """erf(x) = 1 - Q(x - join)^2 for join <= x <= end: an error e of Q makes 2 Q e of erf, which is near 1."""
    f = lambda t: sqrt(erfc(t + join))
    return fit(f, lambda t: 2 * f(t), mpf(0), mpf(end) - join, degree, bits)


def exponential(degree, bits, edge='0.3467'):
    """e^r = 1 + r + r^2 G(r) for |r| <= edge, ln2/2 and a little more; error relative to e^r."""
    f = lambda r: (expm1(r) - r) / r**2 if r else mpf(1) / 2
    edge = mpf(edge)
    return fit(f, lambda r: r * r / exp(r), -edge, edge, degree, bits)


def ends(end, start, slope, bits):
    """scaled(z) = t (1 + v), t = 1 / (1 + slope z), v = (1 - t) (V0 + t W).

    scaled(z) is 1 - start z near 0 and end / z near infinity, which gives V0, the limit of v at infinity, and W0, that of
    W at 0. Both are rounded before W is fitted.
    """
    limit = rounded(slope * end - 1, bits)
    return limit, rounded((slope - start) / slope - limit, bits)


def tail_f32(scaled, end, start, slope, centre, z_max, degree):
    """W as a polynomial in u = t - centre; error relative to scaled(z)."""
    slope, centre, z_max = mpf(slope), mpf(centre), mpf(z_max)
    limit, _ = ends(end, start, slope, 24)
    def parts(u):
        t = u + centre
        return t, scaled((1 / t - 1) / slope) / t
    def f(u):
        t, ratio = parts(u)
        return ((ratio - 1) / (1 - t) - limit) / t
    def weight(u):
        t, ratio = parts(u)
        return t * (1 - t) / ratio
    c, error = fit(f, weight, 1 / (1 + slope * z_max) - centre, 1 - centre - mpf(2)**-30, degree, 24)
    return [limit] + c, error


def tail_f64(scaled, end, start, slope, a, z_max, degree):
    """W = W0 + (1 - t) X, X a polynomial in u = (z - a) / (z + a), in which the series converges twice as fast as in t."""
    slope, a, z_max = mpf(slope), mpf(a), mpf(z_max)
    limit, w0 = ends(end, start, slope, 53)
    def parts(u):
        z = a * (1 + u) / (1 - u)
        t = 1 / (1 + slope * z)
        return t, scaled(z) / t
    def f(u):
        t, ratio = parts(u)
        return (((ratio - 1) / (1 - t) - limit) / t - w0) / (1 - t)
    def weight(u):
        t, ratio = parts(u)
        return t * (1 - t)**2 / ratio
    c, error = fit(f, weight, -1 + mpf(2)**-40, (z_max - a) / (z_max + a), degree, 53)
    return [limit, w0] + c, error


def erfc_scaled(z):
    return exp(z * z) * erfc(z)


def gelu_scaled(z):                      # 2 e^(z^2/2) (1 - Phi(z))
    return exp(z * z / 2) * erfc(z / sqrt(2))


JOBS = {
    "small_f32": lambda: small('1', 6, 24),
    "small_f64": lambda: small(mpf(893) / 1024, 11, 53),
    "root_f32": lambda: root(mpf('1'), '4', 11, 24),
    "root_f64": lambda: root(mpf(893) / 1024, '6', 27, 53),
    "exp_f32": lambda: exponential(5, 24),
    "exp_f64": lambda: exponential(9, 53),
    "erfc_f32": lambda: tail_f32(erfc_scaled, 1 / sqrt(pi), 2 / sqrt(pi), '1.5', '0.5', '10.1', 14),
    "erfc_f64": lambda: tail_f64(erfc_scaled, 1 / sqrt(pi), 2 / sqrt(pi), '1.5625', '3.5', '27.3', 21),
    "gelu_f64": lambda: tail_f64(gelu_scaled, sqrt(2 / pi), sqrt(2 / pi), '1.109375', '5', '38.6', 21),
}

if __name__ == "__main__":
    for name, job in JOBS.items():
        coefficients, error = job()
        print("%s: error 2^%.1f" % (name, error))
        for c in coefficients:
            print("    " + float(c).hex())
