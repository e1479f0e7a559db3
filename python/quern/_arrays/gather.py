# SPDX-License-Identifier: Apache-2.0
"""Items of quern.Arrays by arrays of whole numbers, as NumPy's: new arrays."""

import operator as _operator

from .. import _quern
from . import views
from .creation import arange
from .numbers import from_numbers, numbers_of


def _is_indices(part):
    return isinstance(part, (list, range)) or getattr(part, "ndim", 0) > 0 and hasattr(part, "dtype")


def _indices_of(part):
    """An array of indices, a list of them, or one of them, as a quern.Array."""
    if hasattr(part, "dtype"):
        part = views.array_of(part)
    else:
        part = from_numbers(numbers_of(part, "quern.Array"), None if part else "int64")
    if part.dtype.kind not in "iu":
        raise IndexError("quern.Array: indices of dtype {}; whole numbers are wanted, or one array of bools alone".format(part.dtype))
    return part


def names_items(key):
    """Whether a key has arrays of whole numbers, or lists."""
    return any(map(_is_indices, key)) if isinstance(key, tuple) else _is_indices(key)


def _places_of(parts):
    """Where the numbers and the arrays of them are."""
    return [place for place, part in enumerate(parts) if not (part is None or part is Ellipsis or isinstance(part, slice))]


def gather(x, key):
    """x[key] where parts of the key are arrays of whole numbers. These broadcast, numbers with them; their dimensions come in their
    place, or first if slices, None or ... are between them."""
    parts = views.expanded(x, key)
    places = _places_of(parts)
    indices = [_indices_of(parts[place]) for place in places]
    try:
        indices = views.broadcast_arrays(*indices)
    except ValueError:
        raise IndexError("quern.Array: arrays of indices of shapes {} do not broadcast".format(", ".join(str(x.shape) for x in indices))) from None
    view = views.view_at(x, tuple(slice(None) if place in places else part for place, part in enumerate(parts)))
    others = [place for place in range(view.ndim) if place not in places]
    rest = _quern._strided(view, tuple(view.shape[d] for d in others), tuple(view.strides[d] for d in others), 0)
    shape = indices[0].shape
    result = _quern._empty(shape + rest.shape, x.dtype, x.device)
    _quern._gather(result, rest, tuple(indices), tuple((view.shape[d], view.strides[d]) for d in places))
    first, written = places[0], _places_of(key) if isinstance(key, tuple) else [0]  # there a ... of no dimensions parts them, too
    if written != list(range(written[0], written[-1] + 1)) or first == 0 or not shape:
        return result
    return views.moveaxis(result, tuple(range(len(shape))), tuple(range(first, first + len(shape))))


def take(x, indices, /, *, axis=None):
    """The items along an axis that a vector of whole numbers names. axis may be left out of a vector."""
    x, indices = views.array_of(x), _indices_of(indices)
    if axis is None and x.ndim != 1:
        raise ValueError("take: x has {} dimensions, axis is wanted".format(x.ndim))
    if indices.ndim != 1:
        raise ValueError("take: indices of {} dimensions, expected 1".format(indices.ndim))
    return gather(x, (slice(None),) * views.axis_of("take", axis or 0, x.ndim) + (indices,))


def take_along_axis(x, indices, /, *, axis=-1):
    """For each place of `indices` the item of x at that place, but for the axis: there at the index. Other dimensions broadcast."""
    x, indices = views.array_of(x), _indices_of(indices)
    if x.ndim != indices.ndim:
        raise ValueError("take_along_axis: {} dimensions and {} of indices".format(x.ndim, indices.ndim))
    axis = views.axis_of("take_along_axis", _operator.index(axis), x.ndim)
    before, after = (views.broadcast_shapes(x.shape[part], indices.shape[part]) for part in (slice(axis), slice(axis + 1, None)))
    x = views.broadcast_to(x, before + (x.shape[axis],) + after)
    indices = views.broadcast_to(indices, before + (indices.shape[axis],) + after)
    key = [views.reshape(arange(extent), (extent,) + (1,) * (x.ndim - 1 - d)) for d, extent in enumerate(x.shape)]
    key[axis] = indices
    return gather(x, tuple(key))
