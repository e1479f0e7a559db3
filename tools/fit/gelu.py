#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of dsl/math/gelu.lua, f32. Needs mpmath; runs for some seconds.

G(z) = 2 e^(z^2/2) Phi(-z) = c0 (1 + c1 u + ... + c6 u^6), u = z - b: one b, c0, c1, ... for each interval of z + 1.1875 that the
exponent and two more bits of it tell apart. b lies near the middle where G(b) is nearly a float; in the first interval it is 0.
The coefficients are fitted and rounded as in erf.py; the error is relative to G.

e^r: T is 2^(j/16), rounded, and E the logarithm of what that left out.
"""
from mpmath import mpf, floor, log, ldexp

from erf import exponential, fit, gelu_scaled as scaled, rounded

INTERVALS = 16
ORDER = 6


def ulp(x):
    """Of an f32."""
    return ldexp(mpf(1), int(floor(log(x, 2))) - 23)


def lost(x):
    """By how many ULPs x is no f32."""
    return abs(x - rounded(x, 24)) / ulp(x)


def node(low, high):
    if low == 0:
        return mpf(0)
    middle = rounded((low + high) / 2, 24)
    step = ulp(middle)
    slope = (scaled(middle + step) - scaled(middle)) / step
    guess = sorted(range(-3000, 3000), key=lambda k: lost(scaled(middle) + slope * step * k))[:60]
    return min((middle + step * k for k in guess), key=lambda b: lost(scaled(b)))


def entry(low, high):
    b = node(low, high)
    g0 = scaled(b)
    f = lambda u: (scaled(b + u) / g0 - 1) / u if u else (scaled(b + mpf(2)**-40) / g0 - 1) * 2**40
    weight = lambda u: u * g0 / scaled(b + u)
    c, error = fit(f, weight, low - b, high - b, ORDER - 1, 24)
    return [b, rounded(g0, 24)] + c, error, lost(g0)


def hexadecimal(x):
    mantissa, power = float(x).hex().split('p')
    return (mantissa.rstrip('0').rstrip('.') if x else '0x0') + 'p' + power.lstrip('+')


def table(name, values):
    print(f'  {name} = {{ "f32",')
    for k in range(0, len(values), 4):
        print('    ' + ', '.join(hexadecimal(v) for v in values[k:k + 4]) + ',')
    print('  },')


def main():
    rows = [[mpf(0)] * (ORDER + 2) for _ in range(INTERVALS)]
    for e in range(4):
        for k in range(4):
            low, high = (ldexp(mpf(1) + mpf(j) / 4, e) - mpf('1.1875') for j in (k, k + 1))
            if high <= 0:
                continue
            row, error, left = entry(max(low, mpf(0)), high)
            print(f'-- [{float(low)}, {float(high)}): error 2^{error:.1f}, {float(left):.5f} ULP of G(b)')
            rows[(12 + 4 * e + k) % INTERVALS] = row
    for k in range(ORDER + 2):
        table('GELU_AT' if k == 0 else f'GELU_C{k - 1}', [row[k] for row in rows])
    powers = [mpf(2)**(mpf(j) / 16) for j in range(16)]
    table('GELU_POWER', [rounded(p, 24) for p in powers])
    table('GELU_POWER_LO', [rounded(log(p / rounded(p, 24)), 24) for p in powers])
    c, error = exponential(1, 24, log(2) / 32 * mpf('1.01'))
    print('e^r = 1 + r + r^2 (%s + %s r): error 2^%.1f' % (hexadecimal(c[0]), hexadecimal(c[1]), error))
    unit = rounded(log(2) / 16, 16)
    print('ln2/16:', hexadecimal(unit), hexadecimal(rounded(log(2) / 16 - unit, 24)))
    print('16/ln2:', hexadecimal(rounded(16 / log(2), 24)))


if __name__ == '__main__':
    main()
