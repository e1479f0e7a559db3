#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of dsl/math/gelu.lua, f32. Needs mpmath; runs for some seconds.

e^(-z^2/2) is taken as 2^(K z^2 / 16) with K rounded, and G has the rest:

    G(z) = 2 Phi(-z) / 2^((K z^2 + S) / 16) = C0 (1 + C1 u + ... + C6 u^6),    u = z - b

one b, C0, C1, ... for each interval of z + 1 that the exponent and two more bits of it tell apart. C0 has 19 bits, so that its
product with 2^k (1 + j/16) is exact; b is the f32 nearest to where G is C0, for the C0 for which that fits best. The other
coefficients are fitted and rounded as in erf.py; the error is relative to G. S centres the table R: R_j = j - 16 log2(1 + j/16) + S.
"""
from mpmath import mpf, erfc, exp, findroot, floor, ldexp, log, sqrt

from erf import fit, rounded

INTERVALS = 16
ORDER = 6
BITS = 19
K = rounded(-8 / log(2), 24)
SHIFT = mpf('0.6875')
END = mpf('14.6')


def scaled(z):
    return exp(-K * z * z * log(2) / 16) * erfc(z / sqrt(2)) * 2**(-SHIFT / 16)


def node(low, high):
    """b and C0; how far G(b) is from C0."""
    middle = (scaled(low) + scaled(high)) / 2
    step = ldexp(mpf(1), int(floor(log(middle, 2))) + 1 - BITS)
    found = []
    for k in range(-60, 61):
        c0 = rounded(middle, BITS) + step * k
        if scaled(high) < c0 < scaled(low):
            b = rounded(findroot(lambda z: log(scaled(z) / c0), (low + high) / 2), 24)
            if low <= b <= high:
                found.append((abs(scaled(b) / c0 - 1), b, c0))
    return min(found)


def entry(low, high):
    left, b, c0 = node(low, high)
    near = mpf(2)**-40
    f = lambda u: (scaled(b + u) / c0 - 1) / u if u else (scaled(b + near) / scaled(b) - 1) / near
    weight = lambda u: u * c0 / scaled(b + u)
    c, error = fit(f, weight, low - b, high - b, ORDER - 1, 24)
    return [b, c0] + c, error, left


def power(degree, edge):
    """2^(r/16) = 1 + r (D1 + D2 r + ...) for |r| <= edge; error relative to it."""
    f = lambda r: (2**(r / 16) - 1) / r if r else log(2) / 16
    return fit(f, lambda r: r / 2**(r / 16), -edge, edge, degree - 1, 24)


def hexadecimal(x):
    mantissa, exponent = float(x).hex().split('p')
    return (mantissa.rstrip('0').rstrip('.') if x else '0x0') + 'p' + exponent.lstrip('+')


def table(name, values):
    print(f'  {name} = {{ "f32",')
    for k in range(0, len(values), 4):
        print('    ' + ', '.join(hexadecimal(v) for v in values[k:k + 4]) + ',')
    print('  },')


def main():
    rows = [[mpf(0)] * (ORDER + 2) for _ in range(INTERVALS)]
    for e in range(4):
        for k in range(4):
            low, high = (ldexp(mpf(1) + mpf(j) / 4, e) - 1 for j in (k, k + 1))
            if high <= 0:
                continue
            row, error, left = entry(max(low, mpf(0)), min(high, END))
            print(f'-- [{float(low)}, {float(high)}): error 2^{error:.1f}, of G(b) 2^{float(log(left, 2)):.1f}')
            rows[(12 + 4 * e + k) % INTERVALS] = row
    for k in range(ORDER + 2):
        table('GELU_AT' if k == 0 else f'GELU_C{k - 1}', [row[k] for row in rows])
    table('GELU_REST', [rounded(j - 16 * log(1 + mpf(j) / 16, 2) + SHIFT, 24) for j in range(16)])
    d, error = power(4, mpf('1.2'))
    print('2^(r/16) = 1 + r (%s): error 2^%.1f' % (', '.join(map(hexadecimal, d)), error))
    print('K:', hexadecimal(K))


if __name__ == '__main__':
    main()
