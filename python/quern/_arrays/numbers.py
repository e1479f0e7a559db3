# SPDX-License-Identifier: Apache-2.0
"""New arrays of Python's numbers, and of nested sequences of them."""

import array as _array

from .. import _quern
from .._quern import from_dlpack
from .creation import dtype_of, empty
from .views import reshape

_MOST_DIMENSIONS = 32


def is_list(x):
    return isinstance(x, (list, tuple, range))


def _first_number(x, where):
    for _ in range(_MOST_DIMENSIONS + 1):
        if not is_list(x) or not len(x):
            return x
        x = x[0]
    raise ValueError("{}: sequences nested more than {} deep".format(where, _MOST_DIMENSIONS))


def _plain(x):
    return [_plain(item) for item in x] if is_list(x) else x.item() if hasattr(x, "item") else x


def _as_lists(x):
    return [_as_lists(item) for item in x] if isinstance(x, range) or is_list(x) and any(map(is_list, x)) else x


def numbers_of(x, where):
    """Lists, tuples and ranges of numbers, NumPy's too, as lists of Python's numbers."""
    first = _first_number(x, where)
    if getattr(first, "shape", ()) != ():
        raise TypeError("{}: a list of arrays; give numpy.stack(x), or one array".format(where))
    return _as_lists(_plain(x) if hasattr(first, "item") else x)


def _flatten(value, shape, depth, numbers):
    """Appends the numbers of nested sequences, all of one length at one depth."""
    if not isinstance(value, (list, tuple)):
        if depth != len(shape):
            raise ValueError("asarray: sequences of different depths")
        numbers.append(value)
        return
    if depth == len(shape) or len(value) != shape[depth]:
        raise ValueError("asarray: sequences of different lengths or depths")
    for element in value:
        _flatten(element, shape, depth + 1, numbers)


_ORDER = (_quern.bool, _quern.int64, _quern.float32, _quern.complex64)

# dtype: its type code in the module array, and what makes one of a number. Other floats are rounded from f64, once, by astype.
_ITEMS = {"bool": ("B", bool), "int8": ("b", int), "int16": ("h", int), "int32": ("i", int), "int64": ("q", int),
          "uint8": ("B", int), "uint16": ("H", int), "uint32": ("I", int), "uint64": ("Q", int), "float32": ("f", float),
          "float64": ("d", float)}


def from_numbers(value, dtype):
    """A new array of a number or of nested sequences of them; dtype None: the one that all of them fit into."""
    shape, first = [], value
    while isinstance(first, (list, tuple)):
        if len(shape) == _MOST_DIMENSIONS:
            raise ValueError("asarray: sequences nested more than {} deep".format(_MOST_DIMENSIONS))
        shape.append(len(first))
        if not first:
            break
        first = first[0]
    numbers = []
    _flatten(value, shape, 0, numbers)
    if not numbers:
        return empty(shape, dtype=dtype)
    widest = max(map(dtype_of, numbers), key=_ORDER.index)
    dtype = widest if dtype is None else _quern.dtype(dtype)
    if dtype.kind == "c":
        return _from_complex(numbers, shape, dtype)
    code, make = _ITEMS.get(dtype.name, _ITEMS["float64"])
    memory = memoryview(_array.array(code, map(make, numbers))).cast("B")
    x = from_dlpack(memory.cast("?" if dtype == "bool" else code, shape))
    return x if x.dtype == dtype else _quern.astype(x, dtype=dtype)


def _from_complex(numbers, shape, dtype):
    """A new array of complex numbers: its parts are stored."""
    x = empty(len(numbers), dtype=dtype)
    wide = _array.array("d", [part for z in map(complex, numbers) for part in (z.real, z.imag)])
    parts = from_dlpack(wide)
    for k in (0, 1):
        _quern.astype(parts[k::2], out=_quern._part(x, k), dtype="f32" if dtype.itemsize == 8 else "f64")
    return reshape(x, tuple(shape))
