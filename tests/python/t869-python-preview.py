# SPDX-License-Identifier: Apache-2.0
"""Dtypes in preview, complex128 and f8_e4m3fn: in a build that has them stored, copied, cast and beside numbers, of NumPy and
ml_dtypes, too; in any other refused by name. t297-preview.sh runs this with a library that has them."""

import array

import quern
from tap import done_testing, is_, ok, raises, skip

xp = quern.array_api
try:
    import numpy
except ImportError:
    numpy = None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

f8, c128 = quern.float8_e4m3fn, quern.complex128
is_((f8.short_name, quern.dtype("f8_e4m3fn"), quern.dtype("float8_e4m3fn")), ("f8_e4m3fn", f8, f8), "both names of f8_e4m3fn")
singles = array.array("f", [1.1, 500, -3])
flags = memoryview(bytes([1, 0, 1])).cast("?")


def refused():
    for dtype, name in ((f8, "float8_e4m3fn"), (c128, "complex128")):
        x = quern.empty(3, dtype=dtype)
        part = "dtype {} is not known to this library".format(name)
        raises(TypeError, lambda: quern.op("astype")(singles, dtype=dtype), name + ": a result", part)
        raises(TypeError, lambda: quern.op("copy")(x), name + ": an input", part)
        raises(TypeError, lambda: quern.add(x, 1.5), name + ": beside a number", part)
        if dtype is f8:
            raises(TypeError, lambda: xp.asarray([1.5, 2], dtype=dtype), name + ": of Python's numbers", part)


def stored():
    x = quern.op("astype")(singles, dtype="f8_e4m3fn")
    is_((x.dtype, str(x.tolist())), (f8, "[1.125, nan, -3.0]"), "f32 to f8: rounded; what is too large is NaN")
    is_(quern.op("astype")(x, dtype="f32").tolist()[::2], [1.125, -3.0], "  and back")
    is_((quern.op("copy")(x).dtype, quern.op("copy")(x).tolist()[::2]), (f8, [1.125, -3.0]), "  a copy")
    is_(quern.op("where")(flags, x, 1.3).tolist(), [1.125, 1.25, -3.0], "  a number beside f8 is rounded to it")
    is_(quern.op("where")(flags, x, 17).tolist(), [1.125, 16.0, -3.0], "  ties to even")
    is_((quern.add(x, x).dtype, quern.add(x, 1).tolist()[::2]), (f8, [2.0, -2.0]), "  computed in f32")
    is_(quern.add(x, singles).dtype, "float32", "  f8 and f32")
    is_(xp.asarray([1.1, 2], dtype=f8).tolist(), [1.125, 2.0], "  of Python's numbers")
    is_(quern.full(2, 1.3, dtype=f8).tolist(), [1.25] * 2, "  filled")

    y = quern.op("astype")(array.array("d", [1.5, -2, 0]), dtype="complex128")
    is_((y.dtype, y.tolist()), (c128, [1.5 + 0j, -2 + 0j, 0j]), "f64 to complex128")
    is_(quern.op("copy")(y.T).tolist(), y.tolist(), "  a copy")
    is_(quern.op("astype")(y, dtype="bool").tolist(), [True, True, False], "  to bool")
    raises(TypeError, lambda: quern.op("astype")(y, dtype="f64"), "  to f64", "there is no cast from complex128 to f64")
    raises(TypeError, lambda: quern.add(y, 1), "  computed", "dtype complex128 is not taken")
    for number, wanted in ((2.5, 2.5 + 0j), (3, 3 + 0j), (True, 1 + 0j), (2**53 + 1, 2.0**53 + 0j)):
        got = quern.op("where")(flags, y, number)
        is_((got.dtype, got.tolist()), (c128, [1.5 + 0j, wanted, 0j]), "  beside {!r}: its imaginary part is 0".format(number))
    is_(quern.op("full")(value=1 - 2j, out=y).tolist(), [1 - 2j] * 3, "  filled with a complex number")
    is_(xp.asarray([1.5, 2], dtype=c128).tolist(), [1.5 + 0j, 2 + 0j], "  of Python's numbers")
    is_([xp.result_type(dtype, c128) for dtype in ("bool", "i64", "f32", "f8_e4m3fn")], [c128] * 4, "  promotes what is real")


def of_numpy():
    x = numpy.array([[1 + 2j, -3.5j], [0, 7]])
    y = quern.op("copy")(x.T)
    ok(type(y) is numpy.ndarray and y.dtype == x.dtype and (y == x.T).all(), "NumPy: a copy of complex128")
    out = numpy.zeros(3, complex)
    ok(quern.op("astype")(singles, out=out) is out and out.tolist() == [numpy.float32(1.1) + 0j, 500, -3], "  as out")
    is_(quern.op("where")(numpy.array([True, False]), x[0], 5).tolist(), [1 + 2j, 5 + 0j], "  beside a number")
    is_([indices.tolist() for indices in xp.nonzero(x)], [[0, 0, 1], [0, 1, 1]], "  what is not zero")


def of_ml_dtypes():
    x = numpy.array([1.1, 2, -3], ml_dtypes.float8_e4m3fn)
    is_((quern.op("copy")(x).dtype, quern.op("copy")(x).tolist()), (f8, [1.125, 2.0, -3.0]), "ml_dtypes: a copy of f8")
    out = numpy.zeros(3, ml_dtypes.float8_e4m3fn)
    ok(quern.op("astype")(singles, out=out) is out and out.astype(float)[::2].tolist() == [1.125, -3.0], "  as out")
    is_(quern.op("astype")(singles, dtype=ml_dtypes.float8_e4m3fn).dtype, f8, "  as a dtype")
    raises(TypeError, lambda: quern.op("copy")(x.astype(ml_dtypes.float8_e5m2)), "  another float of 8 bits",
           "dtype float8_e5m2 is not known to this library")


try:
    quern.op("astype")(singles, dtype=c128)
except TypeError:
    refused()
else:
    stored()
    of_numpy() if numpy else skip(4, "NumPy is not there")
    of_ml_dtypes() if numpy and ml_dtypes else skip(4, "ml_dtypes is not there")
done_testing()
