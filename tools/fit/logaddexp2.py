#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The polynomial of dsl/math/logaddexp.lua, logaddexp2 of f32. Needs mpmath; runs for some seconds.

log2(1 + f) = C f - C f^2/2 + f^3 (C3 + C4 f + ...), C = 1 / ln2, 1 + f from sqrt(1/2) to sqrt(2); fitted and rounded as in erf.py,
the error relative to log2(1 + f)."""
from mpmath import log, log1p, mpf, sqrt

from erf import fit


def main():
    unit = 1 / log(2)
    small = mpf(2)**-30

    def tail(f):
        f = f if abs(f) > small else small
        return (log1p(f) - f + f**2 / 2) * unit / f**3

    def weight(f):
        return f**3 / (log1p(f) * unit) if abs(f) > small else small
    c, error = fit(tail, weight, sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1, 8, 24)
    print(f"error 2^{error:.1f}")
    for k, value in enumerate(c):
        print(f"C{k + 3} {float(value).hex()}")


if __name__ == "__main__":
    main()
