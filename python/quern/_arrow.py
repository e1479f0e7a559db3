# SPDX-License-Identifier: Apache-2.0
"""pyarrow's arrays as operands, and results as pyarrow's. Imports pyarrow never: who has its objects has."""

import sys

from . import _quern
from ._arrays.numbers import from_numbers

_NAMES = {"bool": "bool_", "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "uint8": "uint8",
          "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "float16": "float16", "float32": "float32",
          "float64": "float64"}


def _classes(*names):
    arrow = sys.modules.get("pyarrow")
    return tuple(found for found in (getattr(arrow, name, None) for name in names) if found is not None)


def owns(x):
    """Whether it is an array or a scalar of pyarrow's."""
    return isinstance(x, _classes("Array", "ChunkedArray", "Scalar"))


def advice(x):
    """What to write instead of another object of pyarrow's; None."""
    return "give a column, x['name']" if isinstance(x, _classes("Table", "RecordBatch")) else None


def _is_primitive(kind):
    from pyarrow import types
    return types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)


def take(x, where):
    """A quern.Array of its memory (of bools, which pyarrow packs, a new one); a number of a scalar."""
    if not _is_primitive(x.type):
        raise TypeError("{}: a pyarrow {} of type {}; cast it, x.cast('float64')".format(where, type(x).__name__, x.type))
    if isinstance(x, _classes("Scalar")):
        if not x.is_valid:
            raise ValueError("{}: a null of pyarrow's".format(where))
        return x.as_py()
    if x.null_count:
        raise ValueError("{}: {} nulls, which tensors have not; give x.fill_null(value)".format(where, x.null_count))
    if isinstance(x, _classes("ChunkedArray")):
        x = x.combine_chunks()
    if str(x.type) == "bool":
        return from_numbers(x.to_pylist(), "bool") if len(x) else _quern._empty((0,), "bool", None)
    if not len(x):
        return _quern._empty((0,), _dtype_of(x.type), None)
    return _quern.from_dlpack(x)


def _dtype_of(kind):
    return {"halffloat": "float16", "float": "float32", "double": "float64"}.get(str(kind), str(kind))


def wrap(result, like):
    """A result of one dimension as an array, of none as a scalar; of more, and of dtypes that pyarrow has not, a quern.Array."""
    import pyarrow
    if not isinstance(result, _quern.Array) or result.dtype.name not in _NAMES or result.ndim > 1:
        return result
    kind = getattr(pyarrow, _NAMES[result.dtype.name])()
    if result.ndim == 0:
        return pyarrow.scalar(result.item(), kind)
    if result.dtype.name == "bool" or not result.size:
        made = pyarrow.array(result.tolist(), kind)
    else:
        made = pyarrow.Array.from_buffers(kind, result.size, [None, pyarrow.py_buffer(memoryview(result).cast("B"))])
    return pyarrow.chunked_array([made]) if isinstance(like, _classes("ChunkedArray")) else made
