# SPDX-License-Identifier: Apache-2.0
"""Copies into views of quern.Arrays."""

from .. import _quern
from .._quern import from_dlpack
from .dtypes import can_cast
from .views import array_of, broadcast_to


def fitted(name, value, shape, dtype):
    """An array as one of a shape and dtype to be copied."""
    if value.dtype != dtype and not can_cast(value.dtype, dtype):
        raise TypeError("{}: {} into {}; cast it".format(name, value.dtype, dtype))
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value[0]
    return broadcast_to(value, shape)


def parts_of(x):
    """Views of the real and of the imaginary parts of complex items."""
    return _quern._part(x, 0), _quern._part(x, 1)


def put(target, value):
    """Copies an array, which is broadcast, or a number into a view."""
    if target.dtype.kind == "c":
        if isinstance(value, (int, float, complex)):
            parts = complex(value).real, complex(value).imag
        else:
            value = fitted("quern.Array", array_of(value), target.shape, target.dtype)
            parts = parts_of(apart(value, target)) if value.dtype.kind == "c" else (value, 0)
        for to, part in zip(parts_of(target), parts):
            put(to, part)
        return
    if isinstance(value, complex):
        raise TypeError("quern.Array: a complex number into {}".format(target.dtype))
    if isinstance(value, (int, float)):
        if target.size:
            _quern.full(value=value, out=target)
        return
    value = fitted("quern.Array", array_of(value), target.shape, target.dtype)
    if not target.size:
        return
    if value.data_ptr() != target.data_ptr() or value.strides != target.strides:
        value = apart(value, target)
    if value.dtype == target.dtype:
        _quern.copy(value, out=target)
    else:
        _quern.astype(value, out=target, dtype=target.dtype)


def _range_of(x):
    """The first and the last byte of its memory."""
    reach = [(extent - 1) * stride * x.itemsize for extent, stride in zip(x.shape, x.strides)]
    return x.data_ptr() + sum(min(r, 0) for r in reach), x.data_ptr() + sum(max(r, 0) for r in reach) + x.itemsize - 1


def apart(value, target):
    """The array, or a copy if its memory may be the target's."""
    (a, b), (c, d) = _range_of(value), _range_of(target)
    return from_dlpack(value, copy=True) if value.size and a <= d and c <= b else value
