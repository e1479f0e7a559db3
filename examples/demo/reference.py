#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the demo must give, computed by itself: decimal arithmetic of 50 digits, one table per channel.

    python3 reference.py raccoon.ppm raccoon.curve raccoon.crc    writes both files
"""
import sys
import zlib
from decimal import Decimal as D, getcontext

getcontext().prec = 50
GAIN = [D("1.12"), D("1.00"), D("0.84")]
EXPOSURE = D("0.7")


def decode(v):
    return ((v + D("0.055")) / D("1.055")) ** D("2.4") if v > D("0.04045") else v / D("12.92")


def encode(v):
    return D("1.055") * v ** (1 / D("2.4")) - D("0.055") if v > D("0.0031308") else v * D("12.92")


def filmic(v):
    v *= EXPOSURE
    y = v * (D("2.51") * v + D("0.03")) / (v * (D("2.43") * v + D("0.59")) + D("0.14"))
    return min(max(y, D(0)), D(1))


def result(sample, gain):
    v = encode(filmic(decode(D(sample) / 255) * gain))
    return int(min(max(v, D(0)), D(1)) * 255 + D("0.5"))


def main():
    ppm, curve, crc = sys.argv[1:]
    with open(ppm, "rb") as file:
        header = [file.readline().strip() for _ in range(3)]
        samples = file.read()
    assert header == [b"P6", b"1024 768", b"255"] and len(samples) == 1024 * 768 * 3
    tables = [bytes(result(sample, gain) for sample in range(256)) for gain in GAIN]
    with open(curve, "w") as file:
        for row in zip(*tables):
            file.write("%d %d %d\n" % row)
    out = bytearray(samples)
    for channel, table in enumerate(tables):
        out[channel::3] = samples[channel::3].translate(table)
    with open(crc, "w") as file:
        file.write("%08x\n" % zlib.crc32(bytes(out)))


main()
