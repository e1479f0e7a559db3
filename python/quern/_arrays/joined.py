# SPDX-License-Identifier: Apache-2.0
"""New arrays that hold others, or parts of one, side by side."""

import operator as _operator

from .. import _quern
from .dtypes import result_type
from .put import put
from .views import array_of, axis_of, broadcast_to, expand_dims, reshape, view_at


def concat(arrays, /, *, axis=0):
    """The arrays behind one another along an axis; None: of their items in row-major order."""
    arrays = [array_of(x) for x in arrays]
    if not arrays:
        raise ValueError("concat: no arrays")
    if axis is None:
        arrays, axis = [reshape(x, (-1,)) for x in arrays], 0
    dtype, ndim = result_type(*arrays), arrays[0].ndim
    axis = axis_of("concat", axis, ndim)
    shape = list(arrays[0].shape)
    shape[axis] = sum(x.shape[axis] for x in arrays if x.ndim == ndim)
    for x in arrays:
        if x.ndim != ndim or x.shape[:axis] + x.shape[axis + 1:] != arrays[0].shape[:axis] + arrays[0].shape[axis + 1:]:
            raise ValueError("concat: shapes {} and {} along axis {}".format(arrays[0].shape, x.shape, axis))
    result, first = _quern._empty(tuple(shape), dtype, arrays[0].device), 0
    for x in arrays:
        put(view_at(result, (slice(None),) * axis + (slice(first, first + x.shape[axis]),)), x)
        first += x.shape[axis]
    return result


def stack(arrays, /, *, axis=0):
    """The arrays, of one shape, along a new axis."""
    arrays = [array_of(x) for x in arrays]
    for x in arrays:
        if x.shape != arrays[0].shape:
            raise ValueError("stack: shapes {} and {}".format(arrays[0].shape, x.shape))
    if not arrays:
        raise ValueError("stack: no arrays")
    return concat([expand_dims(x, axis=axis) for x in arrays], axis=axis_of("stack", axis, arrays[0].ndim + 1))


def roll(x, /, shift, *, axis=None):
    """Each item moved by `shift` places along axes, and behind the last one to the first."""
    x = array_of(x)
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ValueError("roll: {} shifts along {} axes".format(len(shifts), len(axes)))
    for each, by in zip(axes, shifts):
        each = axis_of("roll", each, x.ndim)
        at = -_operator.index(by) % x.shape[each] if x.shape[each] else 0
        before = (slice(None),) * each
        x = concat([view_at(x, before + (slice(at, None),)), view_at(x, before + (slice(None, at),))], axis=each)
    return x


def tile(x, repetitions, /):
    """The array so many times along each dimension."""
    x = array_of(x)
    repetitions = tuple(map(_operator.index, repetitions))
    ndim = max(len(repetitions), x.ndim)
    repetitions = (1,) * (ndim - len(repetitions)) + repetitions
    shape = (1,) * (ndim - x.ndim) + x.shape
    x = reshape(x, tuple(part for extent in shape for part in (1, extent)))
    x = broadcast_to(x, tuple(part for pair in zip(repetitions, shape) for part in pair))
    return reshape(x, tuple(a * b for a, b in zip(repetitions, shape)), copy=True)


def repeat(x, repeats, /, *, axis=None):
    """Each item `repeats` times, a whole number, along an axis; None: of the items in row-major order."""
    x = array_of(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = axis_of("repeat", axis, x.ndim)
    repeats = array_of(repeats).tolist() if hasattr(repeats, "shape") else repeats
    if isinstance(repeats, (list, tuple)):
        if len(repeats) not in (1, x.shape[axis]):
            raise ValueError("repeat: {} numbers for extent {}".format(len(repeats), x.shape[axis]))
        if len(repeats) == x.shape[axis] != 1:
            before = (slice(None),) * axis
            parts = [repeat(view_at(x, before + (slice(k, k + 1),)), n, axis=axis) for k, n in enumerate(repeats)]
            return concat(parts or [x], axis=axis)
        repeats = repeats[0]
    repeats = _operator.index(repeats)
    shape = x.shape[:axis + 1] + (repeats,) + x.shape[axis + 1:]
    joined = x.shape[:axis] + (x.shape[axis] * repeats,) + x.shape[axis + 1:]
    return reshape(broadcast_to(expand_dims(x, axis=axis + 1), shape), joined, copy=True)
