# SPDX-License-Identifier: Apache-2.0
"""Items of quern.Arrays: x[key] and x[key] = value."""

from .. import _quern
from .gather import gather, names_items
from .put import apart, fitted, put
from .views import array_of, count_of, reshape, view_at


def _is_mask(key):
    return isinstance(key, bool) or hasattr(key, "dtype") and not isinstance(key, (tuple, slice)) and _quern.dtype(key.dtype) == "bool"


def _mask_of(x, mask):
    """The mask with as many dimensions as x."""
    if isinstance(mask, bool):
        mask = _quern.full(value=mask, out=_quern._empty((), "bool", x.device))
    mask = array_of(mask)
    if mask.ndim > x.ndim or mask.shape != x.shape[:mask.ndim]:
        raise IndexError("quern.Array: a mask of shape {} for {}".format(mask.shape, x.shape))
    return mask, reshape(mask, mask.shape + (1,) * (x.ndim - mask.ndim))


def get_items(x, key):
    """x[key]: a view; of an array of bools a new array of the items where it holds, of arrays of whole numbers one of those."""
    if isinstance(key, tuple) and len(key) == 1 and _is_mask(key[0]):
        key = key[0]
    if not _is_mask(key):
        return gather(x, key) if names_items(key) else view_at(x, key)
    mask, spread = _mask_of(x, key)
    items = _quern.compress(spread, x)
    rest = x.shape[mask.ndim:]
    if count_of(rest):
        return reshape(items, (-1,) + rest)
    return reshape(items, (_quern.count_nonzero(mask).item(),) + rest)


def set_items(x, key, value):
    """x[key] = value. Returns x."""
    if isinstance(key, tuple) and len(key) == 1 and _is_mask(key[0]):
        key = key[0]
    if not _is_mask(key):
        put(view_at(x, key), value)
        return x
    mask, spread = _mask_of(x, key)
    if x.dtype.kind == "c":
        raise TypeError("quern.Array: no op stores complex numbers by a mask")
    if isinstance(value, (int, float)):
        stored = _quern._empty((), x.dtype, x.device)
        put(stored, value)
    else:
        value = array_of(value)
        rest = x.shape[mask.ndim:]
        if value.ndim > len(rest) and value.shape[0] != 1:
            raise NotImplementedError("quern.Array: an item for each place of a mask; write where(mask, value, x)")
        stored = fitted("quern.Array", value, rest, x.dtype)
        stored = stored if stored.dtype == x.dtype else _quern.astype(stored, dtype=x.dtype)
    if x.size:
        _quern.where(spread, apart(stored, x), x, out=x)
    return x
