# SPDX-License-Identifier: Apache-2.0
"""New arrays of Python's numbers, and of nested sequences of them."""

import array as _array

from .. import _quern
from .._quern import from_dlpack
from .creation import dtype_of, empty
from .views import reshape


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


_MOST_DIMENSIONS = 32
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
