# SPDX-License-Identifier: Apache-2.0
"""asarray and astype: what becomes an array, and of which dtype."""

from . import _arrow, _labels, _quern
from ._arrays.numbers import from_numbers, is_list, numbers_of
from ._quern import from_dlpack


def astype(x, dtype, /, *, copy=True, device=None):
    """x cast to a dtype; x itself where it has it already and copy is False."""
    if device is not None:
        x = from_dlpack(x, device=device)
    if not copy and from_dlpack(x).dtype == dtype:
        return x
    return _quern.astype(x, dtype=dtype)


def _values_of(obj):
    """The array behind labels; an object without them as it is."""
    for module in (_labels, _arrow):
        if module.owns(obj):
            return module.take(obj, "asarray")
    return obj


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """The array that obj is (see from_dlpack; of pandas', xarray's and pyarrow's objects that of their values), or a new one of a number
    or of nested sequences of numbers."""
    if type(obj) in (int, float, complex, bool) or is_list(obj):
        if copy is False:
            raise ValueError("asarray: numbers of Python's cannot be shared")
        x = from_numbers(numbers_of(obj, "asarray"), dtype)
        copy = None
    else:
        if hasattr(obj, "mask") and hasattr(obj, "filled"):
            raise TypeError("asarray: a masked array's mask would be lost; give x.filled(value), or x.data")
        x = from_dlpack(_values_of(obj))
    if dtype is not None and x.dtype != dtype:
        if copy is False:
            raise ValueError("asarray: {} to {} makes a copy".format(x.dtype, dtype))
        x, copy = astype(x, dtype), None
    return from_dlpack(x, device=device, copy=copy)
