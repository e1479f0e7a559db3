# SPDX-License-Identifier: Apache-2.0
"""Quern's ops under the names and signatures of the Python array API standard, as far as there are such ops. Beside them:
creation, dtypes, and functions of the standard that differ from the op of that name. New arrays without an operand are
quern.Arrays."""

import array as _array
import builtins as _builtins
import math as _math
import operator as _operator

from . import _quern
from ._dtypes import can_cast, finfo, iinfo, isdtype, result_type
from ._functions import diff
from ._gather import take, take_along_axis
from ._info import __array_namespace_info__
from ._quern import from_dlpack
from ._views import (broadcast_arrays, broadcast_shapes, broadcast_to, concat, expand_dims, flip, matrix_transpose, meshgrid, moveaxis,
                     permute_dims, repeat, reshape, roll, squeeze, stack, tile, unstack)

__array_api_version__ = "2024.12"

e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi

_DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
           "complex64", "complex128")

# The standard's functions that are ops of the same name, positional inputs and result.
_OPS = """abs acos acosh add all any argmax argmin asin asinh atan atan2 atanh bitwise_and bitwise_invert
bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor ceil copysign cos cosh count_nonzero cumulative_prod
cumulative_sum divide equal exp expm1 floor floor_divide greater greater_equal hypot isfinite isinf isnan less
less_equal log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor max maximum mean min minimum
multiply negative nextafter not_equal positive pow prod reciprocal remainder round sign signbit sin sinh sqrt
square std subtract sum tan tanh trunc var where""".split()

for _name in _DTYPES:
    globals()[_name] = getattr(_quern, _name)
for _name in _OPS:
    if hasattr(_quern, _name):
        globals()[_name] = getattr(_quern, _name)
del _name

# ---- Creation ----


def _dtype_of(value):
    """The default dtype of one of Python's numbers: f32 for floats, as in expressions."""
    if isinstance(value, _builtins.bool):
        return _quern.bool
    if isinstance(value, int):
        return _quern.int64
    if isinstance(value, float):
        return _quern.float32
    if isinstance(value, complex):
        return _quern.complex64
    raise TypeError("{!r} is no number, and no dtype was given".format(value))


def _shape_of(shape):
    return (_operator.index(shape),) if hasattr(shape, "__index__") else tuple(shape)


def empty(shape, *, dtype=None, device=None):
    """A new array, uninitialised."""
    return _quern._empty(_shape_of(shape), _quern.float32 if dtype is None else dtype, device)


def full(shape, fill_value, *, dtype=None, device=None):
    """A new array that holds one value."""
    fill_value = _number_of(fill_value)
    if isinstance(fill_value, complex) or dtype is not None and _quern.dtype(dtype).kind == "c":
        result = empty(shape, dtype=_quern.complex64 if dtype is None else dtype, device=device)
        result[...] = fill_value
        return result
    result = empty(shape, dtype=_dtype_of(fill_value) if dtype is None else dtype, device=device)
    if isinstance(fill_value, int) and result.dtype.kind in "iu":
        limits = iinfo(result.dtype)
        if not limits.min <= fill_value <= limits.max:
            raise OverflowError("full: {} does not fit into {}".format(fill_value, result.dtype))
    return _quern.full(value=fill_value, out=result)


def _number_of(value):
    """One of Python's numbers, from one of them, NumPy's scalars, or an array of one item."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (int, float, complex)):
        return value
    if hasattr(value, "__index__"):
        return _operator.index(value)
    if hasattr(value, "__float__"):
        return float(value)
    raise TypeError("{!r} is no number".format(value))


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """A new array of one dimension: start + k * step for k = 0, 1, ... below stop; with one number, 0 to below it. Of dtype int64
    where all numbers are integers, else f32."""
    if stop is None:
        start, stop = 0, start
    numbers = start, stop, step = tuple(map(_number_of, (start, stop, step)))
    if dtype is None:
        dtype = _builtins.max(map(_dtype_of, numbers), key=(_quern.bool, _quern.int64, _quern.float32).index)
    if step == 0:
        raise ValueError("arange: step is 0")
    if _builtins.all(isinstance(number, int) for number in numbers):
        count = len(range(start, stop, step))
    else:
        length = (stop - start) / step
        if not _math.isfinite(length):
            raise ValueError("arange: from {} to {} by {} is no finite number of elements".format(*numbers))
        count = _builtins.max(0, _math.ceil(length))
    result = empty(count, dtype=dtype, device=device)
    if result.dtype.kind in "iu" and count:
        limits, last = iinfo(result.dtype), start + (count - 1) * step
        for number in (start, last):
            if not limits.min <= number <= limits.max:
                raise OverflowError("arange: {} does not fit into {}".format(number, result.dtype))
    return _quern.arange(start=start, step=_step_of(step, count), out=result)


def _step_of(step, count):
    """The step for so many elements: a single one has none, so that any step is allowed."""
    return step if count > 1 else 0


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """A new array of num numbers in a line, from start to stop, both exactly; without the endpoint, stop is one step behind the
    last. Each is within half a unit in the last place of the line, next to zero within 2^-103 of the larger end."""
    start, stop, num = _number_of(start), _number_of(stop), _operator.index(num)
    if num < 0:
        raise ValueError("linspace: num is {}, expected 0 or more".format(num))
    result = empty(num, dtype=dtype, device=device)
    if result.dtype.kind != "f":
        raise TypeError("linspace: dtype {}, expected a float".format(result.dtype))
    return _quern.linspace(start=start, stop=stop, endpoint=int(endpoint), out=result)


def zeros(shape, *, dtype=None, device=None):
    """A new array of zeros."""
    return full(shape, 0, dtype=_quern.float32 if dtype is None else dtype, device=device)


def ones(shape, *, dtype=None, device=None):
    """A new array of ones."""
    return full(shape, 1, dtype=_quern.float32 if dtype is None else dtype, device=device)


def _like(x, dtype, device):
    x = from_dlpack(x)
    return {"shape": x.shape, "dtype": x.dtype if dtype is None else dtype, "device": x.device if device is None else device}


def empty_like(x, /, *, dtype=None, device=None):
    """empty, of another array's shape, dtype and device."""
    return empty(**_like(x, dtype, device))


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """full, of another array's shape, dtype and device."""
    return full(fill_value=fill_value, **_like(x, dtype, device))


def zeros_like(x, /, *, dtype=None, device=None):
    """zeros, of another array's shape, dtype and device."""
    return zeros(**_like(x, dtype, device))


def ones_like(x, /, *, dtype=None, device=None):
    """ones, of another array's shape, dtype and device."""
    return ones(**_like(x, dtype, device))


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
_ITEMS = {"bool": ("B", _builtins.bool), "int8": ("b", int), "int16": ("h", int), "int32": ("i", int), "int64": ("q", int),
          "uint8": ("B", int), "uint16": ("H", int), "uint32": ("I", int), "uint64": ("Q", int), "float32": ("f", float),
          "float64": ("d", float)}


def _from_numbers(value, dtype):
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
    widest = _builtins.max(map(_dtype_of, numbers), key=_ORDER.index)
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


def _values_of(obj):
    """The array behind labels; an object without them as it is."""
    from . import _arrow, _labels
    for module in (_labels, _arrow):
        if module.owns(obj):
            return module.take(obj, "asarray")
    return obj


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """The array that obj is (see from_dlpack; of pandas', xarray's and pyarrow's objects that of their values), or a new one of a number
    or of nested sequences of numbers."""
    if type(obj) in (int, float, complex, _builtins.bool) or isinstance(obj, (list, tuple, range)):
        if copy is False:
            raise ValueError("asarray: numbers of Python's cannot be shared")
        from ._foreign import numbers_of
        x = _from_numbers(numbers_of(obj, "asarray"), dtype)
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


# ---- Functions that differ from the op of their name ----


def astype(x, dtype, /, *, copy=True, device=None):
    """x cast to a dtype; x itself where it has it already and copy is False."""
    if device is not None:
        x = from_dlpack(x, device=device)
    if not copy and from_dlpack(x).dtype == dtype:
        return x
    return _quern.astype(x, dtype=dtype)


def _parts_of(name, x):
    x = from_dlpack(x)
    if x.dtype.kind == "b":
        raise TypeError("{}: bools are no numbers".format(name))
    return x, x.dtype.kind == "c"


def real(x, /):
    """The real parts of complex numbers, a view; x itself if it is real."""
    x, is_complex = _parts_of("real", x)
    return _quern._part(x, 0) if is_complex else x


def imag(x, /):
    """The imaginary parts of complex numbers, a view; zeros of real ones."""
    x, is_complex = _parts_of("imag", x)
    return _quern._part(x, 1) if is_complex else zeros_like(x)


def conj(x, /):
    """The complex conjugates, a new array; x itself if it is real."""
    x, is_complex = _parts_of("conj", x)
    if is_complex:
        x = from_dlpack(x, copy=True)
        _quern.negative(_quern._part(x, 1), out=_quern._part(x, 1))
    return x


def _is_number(x):
    return x is None or isinstance(x, (int, float))


def clip(x, /, min=None, max=None, *, out=None, dtype=None, stream=None):
    """x kept within [min, max], numbers or arrays; None is no bound. out, dtype, stream: as for every op."""
    options = {"out": out, "dtype": dtype, "stream": stream}
    if _is_number(min) and _is_number(max):
        return _quern.clip(x, min=-inf if min is None else min, max=inf if max is None else max, **options)
    if min is None:
        return _quern.minimum(x, max, **options)
    if max is None:
        return _quern.maximum(x, min, **options)
    return _quern.minimum(_quern.maximum(x, min, stream=stream), max, **options)


def nonzero(x, /):
    """For each dimension an array of the indices where x is not zero, in row-major order; of x's kind. The op of this name,
    quern.op("nonzero"), has them as rows of one array."""
    rows = _quern.nonzero(x)
    if rows.shape[1] == 0:
        raise ValueError("nonzero: x has 0 dimensions, expected 1 or more")
    columns = rows.T if hasattr(rows, "T") else from_dlpack(rows).T
    return unstack(columns) if isinstance(columns, _quern.Array) else tuple(columns)


def vecdot(x1, x2, /, *, axis=-1):
    """The sum of x1 * x2 along an axis of the shape that they broadcast to, of the dtype that they promote to. Both have as many
    elements along it. (quern.vecdot adds integers as 64 bits.)"""
    x1, x2 = (x if hasattr(x, "shape") else from_dlpack(x) for x in (x1, x2))
    ndim = _builtins.max(len(x1.shape), len(x2.shape))
    if not -ndim <= _operator.index(axis) < ndim:
        raise ValueError("vecdot: axis {} is out of bounds for {} dimensions".format(axis, ndim))
    place = axis % ndim - ndim
    extents = [x.shape[place] if -place <= len(x.shape) else 1 for x in (x1, x2)]
    if extents[0] != extents[1]:
        raise ValueError("vecdot: {} and {} elements along axis {}".format(*extents, axis))
    dtype = result_type(from_dlpack(x1).dtype, from_dlpack(x2).dtype)
    return _quern.vecdot(x1, x2, axis=axis, dtype=dtype if dtype.kind in "iu" else None)


def matmul(x1, x2, /):
    """The matrix product over the last two dimensions, or with a vector: sums of products, as vecdot has them."""
    x1, x2 = from_dlpack(x1), from_dlpack(x2)
    if x1.ndim == 0 or x2.ndim == 0:
        raise ValueError("matmul: an operand has 0 dimensions")
    row, columns = (x1[None, :] if x1.ndim == 1 else x1), (x2[:, None] if x2.ndim == 1 else x2)
    if row.shape[-1] != columns.shape[-2]:
        raise ValueError("matmul: {} and {} elements along the summed axis".format(row.shape[-1], columns.shape[-2]))
    result = vecdot(expand_dims(row, axis=-2), expand_dims(matrix_transpose(columns), axis=-3))
    if x2.ndim == 1:
        result = squeeze(result, -1)
    return squeeze(result, -2 if x2.ndim > 1 else -1) if x1.ndim == 1 else result


def tensordot(x1, x2, /, *, axes=2):
    """The sum of products over axes of both: as many, the last of x1 and the first of x2, or two sequences of them."""
    x1, x2 = from_dlpack(x1), from_dlpack(x2)
    if isinstance(axes, int):
        axes = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
    left, right = (tuple(axis % x.ndim for axis in each) for each, x in zip(axes, (x1, x2)))
    if [x1.shape[axis] for axis in left] != [x2.shape[axis] for axis in right]:
        raise ValueError("tensordot: the extents of {} and {} along {} and {} differ".format(x1.shape, x2.shape, left, right))
    rows, columns = ([axis for axis in range(x.ndim) if axis not in named] for x, named in ((x1, left), (x2, right)))
    count = _math.prod(x1.shape[axis] for axis in left)
    shape = tuple(x1.shape[axis] for axis in rows), tuple(x2.shape[axis] for axis in columns)
    x1 = reshape(permute_dims(x1, tuple(rows) + left), (_math.prod(shape[0]), 1, count))
    x2 = reshape(permute_dims(x2, tuple(columns) + right), (1, _math.prod(shape[1]), count))
    return reshape(vecdot(x1, x2), shape[0] + shape[1])


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """A new array of two dimensions: ones on the k-th diagonal, else zeros."""
    n_cols = n_rows if n_cols is None else n_cols
    result = zeros((n_rows, n_cols), dtype=dtype, device=device)
    count = _builtins.min(n_rows + _builtins.min(k, 0), n_cols - _builtins.max(k, 0))
    if count > 0:
        diagonal = _quern._strided(result, (count,), (n_cols + 1,), k if k > 0 else -k * n_cols)
        diagonal[...] = 1
    return result


def _triangle(x, holds):
    x = from_dlpack(x)
    if x.ndim < 2:
        raise ValueError("tril, triu: {} dimensions, expected 2 or more".format(x.ndim))
    rows, columns = arange(x.shape[-2])[:, None], arange(x.shape[-1])
    return _quern.where(holds(rows, columns), x, zeros((), dtype=x.dtype, device=x.device))


def tril(x, /, *, k=0):
    """x up to the k-th diagonal of its last two dimensions, zeros above it."""
    return _triangle(x, lambda rows, columns: _quern.less_equal(columns, _quern.add(rows, k)))


def triu(x, /, *, k=0):
    """x from the k-th diagonal of its last two dimensions on, zeros below it."""
    return _triangle(x, lambda rows, columns: _quern.greater_equal(columns, _quern.add(rows, k)))
