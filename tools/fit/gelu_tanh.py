#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The constants A and B of dsl/math/gelu_tanh.lua and those of selu in dsl/activation.lua, each as HI and LO, for f32 and f64.

HI of A ends at 2^-20 (f64: 2^-47), so that its difference from A + B x^2 is exact; HI of selu's factor above zero is rounded
down, so that LO is positive; the others are rounded to nearest.
"""
from decimal import Decimal, getcontext
from fractions import Fraction
from math import floor, log2

getcontext().prec = 60
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


def rounded(x, digits, how=round):
    """x to so many binary digits."""
    if x == 0:
        return x
    step = Fraction(2) ** (floor(log2(abs(x))) + 1 - digits)
    return how(x / step) * step


def show(name, x, how=round, ends=(None, None)):
    for dtype, digits, end in (("F32", 24, ends[0]), ("F64", 53, ends[1])):
        high = round(x * 2**end) / Fraction(2)**end if end else rounded(x, digits, how)
        print(f"{name}_{dtype} {float(high).hex()} {name}_LO_{dtype} {float(rounded(x - high, digits)).hex()}")


a = 2 * (2 / PI).sqrt()
above = Decimal("1.0507009873554804934193349852946")
show("A", Fraction(a), ends=(20, 47))
show("B", Fraction(a * Decimal("0.044715")))
show("selu, above", Fraction(above), floor)
show("selu, below", Fraction(above * Decimal("1.6732632423543772848170429916717")))
