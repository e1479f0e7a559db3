# SPDX-License-Identifier: Apache-2.0
"""Views of quern.Arrays: other shapes of the same memory, and what keys of whole numbers and slices name."""

import operator as _operator

from .. import _quern
from .._quern import Array, from_dlpack


def array_of(x):
    """A quern.Array of x's memory."""
    return x if isinstance(x, Array) else from_dlpack(x)


def axis_of(name, axis, ndim):
    axis = _operator.index(axis)
    if not -ndim <= axis < ndim:
        raise IndexError("{}: axis {} is out of bounds for {} dimensions".format(name, axis, ndim))
    return axis % ndim


def axes_of(name, axes, ndim):
    axes = tuple(axis_of(name, axis, ndim) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,)))
    if len(set(axes)) < len(axes):
        raise ValueError("{}: an axis is named twice".format(name))
    return axes


def extents_of(shape):
    return (_operator.index(shape),) if hasattr(shape, "__index__") and not isinstance(shape, (tuple, list)) else \
        tuple(map(_operator.index, shape))


def count_of(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


# ---- Shapes ----


def _row_major(shape):
    strides, stride = [], 1
    for extent in reversed(shape):
        strides.insert(0, stride)
        stride *= max(extent, 1)
    return tuple(strides)


def _strides_in(x, shape):
    """The strides of x's items in another shape, in row-major order; None: they are not evenly apart."""
    runs = []  # [extent, stride] of dimensions that are one in memory
    for extent, stride in zip(x.shape, x.strides):
        if extent == 1:
            continue
        if runs and runs[-1][1] == stride * extent:
            runs[-1] = [runs[-1][0] * extent, stride]
        else:
            runs.append([extent, stride])
    strides, left = [], 1
    for extent in reversed(shape):
        if extent == 1:
            strides.insert(0, 1)
            continue
        if left == 1:
            left, stride = runs.pop()
        if left % extent:
            return None
        strides.insert(0, stride)
        left //= extent
        stride *= extent
    return tuple(strides)


def reshape(x, /, shape, *, copy=None):
    """The items in another shape, in row-major order. Of the same memory if strides can say so, else of a copy; copy=True always copies,
    copy=False never. One extent may be -1."""
    x, shape = array_of(x), extents_of(shape)
    if shape.count(-1) == 1:
        others = count_of(extent for extent in shape if extent != -1)
        if others and x.size % others == 0:
            shape = tuple(x.size // others if extent == -1 else extent for extent in shape)
    if min(shape, default=0) < 0 or count_of(shape) != x.size:
        raise ValueError("reshape: {} items as {}".format(x.size, shape))
    strides = _row_major(shape) if x.size == 0 else None if copy else _strides_in(x, shape)
    if strides is None or copy:
        if copy is False:
            raise ValueError("reshape: {} with strides {} as {} makes a copy".format(x.shape, x.strides, shape))
        x, strides = from_dlpack(x, copy=True), _row_major(shape)
    return _quern._strided(x, shape, strides, 0)


def permute_dims(x, /, axes):
    """The dimensions in another order: a view."""
    x = array_of(x)
    axes = axes_of("permute_dims", axes, x.ndim)
    if len(axes) != x.ndim:
        raise ValueError("permute_dims: {} axes for {} dimensions".format(len(axes), x.ndim))
    return _quern._strided(x, tuple(x.shape[a] for a in axes), tuple(x.strides[a] for a in axes), 0)


def moveaxis(x, source, destination, /):
    """Dimensions moved to other places: a view."""
    x = array_of(x)
    source, destination = (axes_of("moveaxis", axes, x.ndim) for axes in (source, destination))
    if len(source) != len(destination):
        raise ValueError("moveaxis: {} axes to {} places".format(len(source), len(destination)))
    order = [axis for axis in range(x.ndim) if axis not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return permute_dims(x, tuple(order))


def matrix_transpose(x, /):
    """The last two dimensions exchanged: a view."""
    x = array_of(x)
    if x.ndim < 2:
        raise ValueError("matrix_transpose: {} dimensions, expected 2 or more".format(x.ndim))
    return permute_dims(x, tuple(range(x.ndim - 2)) + (x.ndim - 1, x.ndim - 2))


def expand_dims(x, /, axis=0):
    """A dimension of extent 1 more, or one for each of a tuple of axes: a view."""
    x = array_of(x)
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes = axes_of("expand_dims", axes, x.ndim + len(axes))
    return x[tuple(None if axis in axes else slice(None) for axis in range(x.ndim + len(axes)))]


def squeeze(x, /, axis):
    """Without dimensions of extent 1: a view."""
    x = array_of(x)
    axes = axes_of("squeeze", axis, x.ndim)
    for axis in axes:
        if x.shape[axis] != 1:
            raise ValueError("squeeze: extent {} along axis {}, expected 1".format(x.shape[axis], axis))
    return x[tuple(0 if axis in axes else slice(None) for axis in range(x.ndim))]


def flip(x, /, *, axis=None):
    """In the opposite order along axes: a view."""
    x = array_of(x)
    axes = range(x.ndim) if axis is None else axes_of("flip", axis, x.ndim)
    return x[tuple(slice(None, None, -1) if axis in axes else slice(None) for axis in range(x.ndim))]


def broadcast_to(x, /, shape):
    """Repeated along dimensions of extent 1 and new ones: a view."""
    x, shape = array_of(x), extents_of(shape)
    more = len(shape) - x.ndim
    if more < 0 or any(a not in (1, b) for a, b in zip(x.shape, shape[more:])):
        raise ValueError("broadcast_to: {} to {}".format(x.shape, shape))
    strides = tuple(0 if a != b else stride for a, b, stride in zip(x.shape, shape[more:], x.strides))
    return _quern._strided(x, shape, (0,) * more + strides, 0)


def broadcast_shapes(*shapes):
    """The shape that shapes broadcast to."""
    result = []
    for place in range(1, max(map(len, shapes), default=0) + 1):
        extents = {shape[-place] for shape in shapes if place <= len(shape)} - {1}
        if len(extents) > 1:
            raise ValueError("broadcast: the shapes {} do not match".format(", ".join(map(str, shapes))))
        result.insert(0, extents.pop() if extents else 1)
    return tuple(result)


def broadcast_arrays(*arrays):
    """Views of the arrays, of the shape that they broadcast to."""
    arrays = [array_of(x) for x in arrays]
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return [broadcast_to(x, shape) for x in arrays]


def meshgrid(*arrays, indexing="xy"):
    """For each vector its coordinates in the grid that all of them span: views."""
    arrays = [array_of(x) for x in arrays]
    if indexing not in ("xy", "ij"):
        raise ValueError("meshgrid: indexing {!r}, expected 'xy' or 'ij'".format(indexing))
    places = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        places[0], places[1] = 1, 0
    for x in arrays:
        if x.ndim > 1 or x.dtype != arrays[0].dtype:
            raise ValueError("meshgrid: vectors of one dtype are wanted")
    return broadcast_arrays(*(reshape(x, (1,) * place + (-1,) + (1,) * (len(arrays) - 1 - place)) for x, place in zip(arrays, places)))


def unstack(x, /, *, axis=0):
    """The arrays along an axis, which share x's memory."""
    x = array_of(x)
    if x.ndim == 0:
        raise ValueError("unstack: x has 0 dimensions, expected 1 or more")
    return _quern._unstack(moveaxis(x, axis, 0))


# ---- Indexing ----


def expanded(x, key):
    """A key as a tuple with a part for each dimension, and None."""
    key = key if isinstance(key, tuple) else (key,)
    named = sum(1 for part in key if part is not None and part is not Ellipsis)
    gaps = sum(1 for part in key if part is Ellipsis)
    if named > x.ndim or gaps > 1:
        raise IndexError("quern.Array: {} for {} dimensions".format(
            "more than one ..." if gaps > 1 else "{} indices".format(named), x.ndim))
    place = [k for k, part in enumerate(key) if part is Ellipsis] or [len(key)]
    return key[:place[0]] + (slice(None),) * (x.ndim - named) + key[place[0] + gaps:]


def view_at(x, key):
    """The view that a key of whole numbers, slices, ... and None names."""
    shape, strides, first, d = [], [], 0, 0
    for part in expanded(x, key):
        if part is None:
            shape.append(1)
            strides.append(1)
            continue
        extent, stride = x.shape[d], x.strides[d]
        d += 1
        if isinstance(part, slice):
            start, stop, step = part.indices(extent)
            count = len(range(start, stop, step))
            first += start * stride if count else 0
            shape.append(count)
            strides.append(stride * step if count > 1 else stride)
            continue
        if isinstance(part, (bool, list, tuple)) or getattr(part, "ndim", 0) > 0:
            raise IndexError("quern.Array: an index is a whole number, a slice, ..., None, or an array of whole numbers; one array of bools "
                             "alone; items are stored by a mask, x[mask] = value, or by where")
        try:
            at = _operator.index(part)
        except TypeError:
            raise IndexError("quern.Array: {!r} is no index".format(part)) from None
        if not -extent <= at < extent:
            raise IndexError("quern.Array: index {} of extent {}".format(at, extent))
        first += at % extent * stride
    return _quern._strided(x, tuple(shape), tuple(strides), first)
