#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The constants and tables of dsl/math/angle.lua. Needs mpmath.

2/pi is used as C(e) = 2/pi 2^e reduced to what counts: multiples of 4 quarter turns times the last bit of x are dropped.
Each C(e) is cut into pieces, each a multiple of a fixed power of two: see angle.lua.
"""
from mpmath import mp, mpf, pi, floor, ldexp, log, nint

mp.prec = 2600
TWO_OVER_PI = 2 / pi


def rounded(x, bits):
    e = int(floor(log(abs(x), 2))) + 1
    return ldexp(nint(ldexp(x, bits - e)), e - bits)


def text(x):
    """As a hexadecimal float of the house's form."""
    if x == 0:
        return "0x0p0"
    sign, m, e, n = x._mpf_
    assert n <= 53, n
    digits = (n - 1 + 3) // 4
    fraction = (int(m) - (1 << (n - 1))) << (4 * digits - (n - 1))
    body = "0x1" + (".%0*x" % (digits, fraction) if digits else "")
    return "-" * sign + body + "p%d" % (e + n - 1)


def split_pi(bits, middle, name):
    hi = rounded(pi / 2, bits)
    mid = rounded(pi / 2 - hi, middle)
    lo = rounded(pi / 2 - hi - mid, bits)
    print("ANGLE_HI_%s = %s, ANGLE_MID_%s = %s, ANGLE_LO_%s = %s" % (name, text(hi), name, text(mid), name, text(lo)))


def around_zero(x, period):
    return x - period * nint(x / period)


def print_table(name, items):
    print("  %s = { \"f64\"," % name)
    for i in range(0, len(items), 4):
        print("    " + " ".join(text(v) + "," for v in items[i:i + 4]))
    print("  },")


split_pi(24, 12, "F32")
split_pi(53, 27, "F64")
print("two parts of f64:", text(rounded(pi / 2, 53)), text(rounded(pi / 2 - rounded(pi / 2, 53), 53)))

# f32: index E mod 128, E the exponent field of x; x is a multiple of 2^(E - 150).
hi, lo = [None] * 128, [None] * 128
for e in range(127, 255):
    unit = ldexp(mpf(1), e - 150)
    c = around_zero(TWO_OVER_PI * unit, 4)
    a = ldexp(nint(ldexp(c, 27)), -27)
    hi[e % 128], lo[e % 128] = a / unit, rounded((c - a) / unit, 53)
print_table("ANGLE_F32_0", hi)
print_table("ANGLE_F32_1", lo)

# f64: index j = E / 16 mod 64; x is a multiple of 2^(16 j - 1075). The product has x 2^-600 as its factor.
pieces = [[None] * 64 for _ in range(4)]
for group in range(64, 128):
    unit = ldexp(mpf(1), 16 * group - 1075)
    c = around_zero(TWO_OVER_PI * unit, 4)        # times x / unit, an integer below 2^69
    for k in range(4):
        last = ldexp(mpf(1), -51 - 53 * k)
        p = rounded(c, 53) if k == 3 else last * nint(c / last)
        c -= p
        pieces[k][group % 64] = ldexp(p / unit, 600)
for k in range(4):
    print_table("ANGLE_F64_%d" % k, pieces[k])
