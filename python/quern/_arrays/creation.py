# SPDX-License-Identifier: Apache-2.0
"""The array API's functions that make arrays of a shape, of numbers in a line, or like another array."""

import math as _math
import operator as _operator

from .. import _quern
from .._quern import from_dlpack
from .dtypes import iinfo


def dtype_of(value):
    """The default dtype of one of Python's numbers: f32 for floats, as in expressions."""
    if isinstance(value, bool):
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
    fill_value = number_of(fill_value)
    if isinstance(fill_value, complex) or dtype is not None and _quern.dtype(dtype).kind == "c":
        result = empty(shape, dtype=_quern.complex64 if dtype is None else dtype, device=device)
        result[...] = fill_value
        return result
    result = empty(shape, dtype=dtype_of(fill_value) if dtype is None else dtype, device=device)
    if isinstance(fill_value, int) and result.dtype.kind in "iu":
        limits = iinfo(result.dtype)
        if not limits.min <= fill_value <= limits.max:
            raise OverflowError("full: {} does not fit into {}".format(fill_value, result.dtype))
    return _quern.full(value=fill_value, out=result)


def number_of(value):
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
    numbers = start, stop, step = tuple(map(number_of, (start, stop, step)))
    if dtype is None:
        dtype = max(map(dtype_of, numbers), key=(_quern.bool, _quern.int64, _quern.float32).index)
    if step == 0:
        raise ValueError("arange: step is 0")
    if all(isinstance(number, int) for number in numbers):
        count = len(range(start, stop, step))
    else:
        length = (stop - start) / step
        if not _math.isfinite(length):
            raise ValueError("arange: from {} to {} by {} is no finite number of elements".format(*numbers))
        count = max(0, _math.ceil(length))
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
    start, stop, num = number_of(start), number_of(stop), _operator.index(num)
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


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """A new array of two dimensions: ones on the k-th diagonal, else zeros."""
    n_cols = n_rows if n_cols is None else n_cols
    result = zeros((n_rows, n_cols), dtype=dtype, device=device)
    count = min(n_rows + min(k, 0), n_cols - max(k, 0))
    if count > 0:
        diagonal = _quern._strided(result, (count,), (n_cols + 1,), k if k > 0 else -k * n_cols)
        diagonal[...] = 1
    return result
