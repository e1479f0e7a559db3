# SPDX-License-Identifier: Apache-2.0
"""The array API's functions on dtypes."""

import math
from typing import NamedTuple

from .. import _quern

_KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
          "complex floating": "c", "numeric": "iufc"}


def isdtype(dtype, kind):
    """Whether a dtype is another, of a kind ('real floating', ...), or any of a tuple of these."""
    dtype = _quern.dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str) and " " in kind or kind in ("bool", "integral", "numeric"):
        if kind not in _KINDS:
            raise ValueError("isdtype: no kind is called {!r}".format(kind))
        return dtype.kind in _KINDS[kind]
    return dtype == _quern.dtype(kind)


def result_type(*arrays_and_dtypes):
    """The dtype that operands of these promote to. Numbers are weak."""
    dtypes = [_quern.dtype(x.dtype if hasattr(x, "dtype") else x) for x in arrays_and_dtypes if not isinstance(x, (int, float))]
    if not dtypes:
        raise ValueError("result_type: at least one array or dtype is wanted")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = _promote(result, dtype)
    for number in arrays_and_dtypes:
        if isinstance(number, float) and result.kind in "biu":
            result = _quern._with_fractions(result)
        elif isinstance(number, int) and not isinstance(number, bool) and result.kind == "b":
            result = _quern.int64
    return result


def _promote(a, b):
    """As the library promotes. Dtypes that it does not have, such as complex and 8-bit floats, promote as in the array API."""
    common = _quern._promote(a, b)
    if common is not None:
        return common
    if all(_quern._promote(x, x) is not None for x in (a, b)):
        raise TypeError("result_type: {} and {} promote to nothing; cast one of them".format(a, b))
    return _promote_foreign(a, b)


def _promote_foreign(a, b):
    """For two dtypes, at least one of which the library does not have: the wider of the higher kind."""
    order = "biufc".index
    if a == b:
        return a
    if "c" in (a.kind, b.kind):
        wide = any(x == _quern.complex128 or x == _quern.float64 for x in (a, b))
        return _quern.complex128 if wide else _quern.complex64
    if a.kind == b.kind and a.itemsize == b.itemsize:  # two floats of 8 bits
        return _quern.float32
    return max((a, b), key=lambda x: (order(x.kind), x.itemsize))


def can_cast(from_, to, /):
    """Whether promotion casts the one to the other."""
    try:
        return result_type(from_, to) == _quern.dtype(to)
    except TypeError:
        return False


class _IntegerLimits(NamedTuple):
    bits: int
    max: int
    min: int
    dtype: object


class _FloatLimits(NamedTuple):
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: object


def iinfo(type, /):
    """The limits of an integer dtype, or of an array's."""
    dtype = _quern.dtype(getattr(type, "dtype", type))
    bits = 8 * dtype.itemsize
    if dtype.kind not in "iu":
        raise TypeError("iinfo: {} is no integer dtype".format(dtype))
    low = -(1 << bits - 1) if dtype.kind == "i" else 0
    return _IntegerLimits(bits, low + (1 << bits) - 1, low, dtype)


def finfo(type, /):
    """The limits of a float dtype, or of an array's; of a complex one's parts."""
    dtype = _quern.dtype(getattr(type, "dtype", type))
    if dtype._limits is None:
        raise TypeError("finfo: {} is no float dtype that has such limits".format(dtype))
    fraction, exponent = dtype._limits
    largest = math.ldexp(2 - math.ldexp(1, -fraction), exponent)
    if dtype.kind == "c":
        dtype = _quern.float32 if dtype.itemsize == 8 else _quern.float64
    return _FloatLimits(8 * dtype.itemsize, math.ldexp(1, -fraction), largest, -largest, math.ldexp(1, 1 - exponent), dtype)
