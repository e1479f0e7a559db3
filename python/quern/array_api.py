# SPDX-License-Identifier: Apache-2.0
"""Quern's ops under the names and signatures of the Python array API standard, as far as there are such ops. Beside them:
creation, dtypes, and functions of the standard that differ from the op of that name. New arrays without an operand are
quern.Arrays."""

import builtins as _builtins
import math as _math
import operator as _operator

from . import _quern
from ._arrays.creation import arange, empty, empty_like, eye, full, full_like, linspace, ones, ones_like, zeros, zeros_like
from ._arrays.dtypes import can_cast, finfo, iinfo, isdtype, result_type
from ._arrays.gather import take, take_along_axis
from ._arrays.info import __array_namespace_info__
from ._arrays.joined import concat, repeat, roll, stack, tile
from ._arrays.views import (broadcast_arrays, broadcast_shapes, broadcast_to, expand_dims, flip, matrix_transpose, meshgrid, moveaxis,
                            permute_dims, reshape, squeeze, unstack)
from ._asarray import asarray, astype
from ._functions import diff
from ._quern import from_dlpack

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

# ---- Functions that differ from the op of their name ----


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
