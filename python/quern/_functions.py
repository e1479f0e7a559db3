# SPDX-License-Identifier: Apache-2.0
"""Functions that are ops on views of their operands, or have other defaults than the op of that name."""

import operator as _operator

from . import _quern
from ._asarray import asarray
from ._quern import from_dlpack


def _tensor(x):
    """x, or a quern.Array of its memory: something with a shape."""
    if hasattr(x, "shape") and hasattr(x, "__getitem__") and hasattr(x, "reshape"):
        return x
    return asarray(x)


def _axis_of(name, axis, ndim):
    axis = _operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError("{}: axis {} is out of bounds for {} dimensions".format(name, axis, ndim))
    return axis % ndim


def _between(x, axis, start, stop):
    """The elements start to stop along an axis: a view."""
    if not isinstance(x, _quern.Array):
        return x[(slice(None),) * axis + (slice(start, stop),)]
    shape = x.shape[:axis] + (max(stop - start, 0),) + x.shape[axis + 1:]
    return _quern._strided(x, shape, x.strides, start * x.strides[axis])


def _split(x, axis, extents):
    """One dimension as several: a view."""
    shape = tuple(x.shape[:axis]) + tuple(extents) + tuple(x.shape[axis + 1:])
    if not isinstance(x, _quern.Array):
        return x.reshape(shape)
    strides = [x.strides[axis]]
    for extent in extents[:0:-1]:
        strides.insert(0, strides[0] * extent)
    return _quern._strided(x, shape, x.strides[:axis] + tuple(strides) + x.strides[axis + 1:], 0)


def _joined(x, axis, count, stream=None):
    """Several dimensions as one: a view, or a copy if they are apart in memory."""
    if count == 1:
        return x
    extent = 1
    for n in x.shape[axis:axis + count]:
        extent *= n
    shape = tuple(x.shape[:axis]) + (extent,) + tuple(x.shape[axis + count:])
    if not isinstance(x, _quern.Array):
        return x.reshape(shape)
    ruling = [k for k in range(axis, axis + count) if x.shape[k] != 1] or [axis]
    if any(x.strides[a] != x.strides[b] * x.shape[b] for a, b in zip(ruling, ruling[1:])):
        x, ruling = _quern.copy(x, out=_quern._empty(x.shape, x.dtype, x.device), stream=stream), [axis + count - 1]
    return _quern._strided(x, shape, x.strides[:axis] + (x.strides[ruling[-1]],) + x.strides[axis + count:], 0)


def vecdot(x1, x2, /, *, axis=-1, keepdims=False, out=None, dtype=None, stream=None):
    """The sum of x1 * x2 along an axis, which counts in the shape that they broadcast to. Integers are multiplied and added as 64
    bits, modulo 2^64. The op of this name, quern.op("vecdot"), takes all axes unless axis= says otherwise; the function of
    quern.array_api gives the dtype that x1 and x2 promote to."""
    return _quern.vecdot(x1, x2, axis=axis, keepdims=keepdims, out=out, dtype=dtype, stream=stream)


def _differences(x, axis, stream):
    n = x.shape[axis]
    return _quern.subtract(_between(x, axis, min(n, 1), n), _between(x, axis, 0, max(n - 1, 0)), stream=stream)


def _concatenated(parts, axis, stream):
    shape = list(parts[0].shape)
    for part in parts[1:]:
        if part.ndim != len(shape) or any(part.shape[d] != shape[d] for d in range(len(shape)) if d != axis):
            raise ValueError("diff: shapes {} and {} differ beside axis {}".format(parts[0].shape, part.shape, axis))
    dtype = from_dlpack(parts[0]).dtype
    for part in parts[1:]:
        if from_dlpack(part).dtype != dtype:
            raise TypeError("diff: {} beside {}; cast it first".format(from_dlpack(part).dtype, dtype))
    shape[axis] = sum(part.shape[axis] for part in parts)
    whole, at = _quern._empty(tuple(int(n) for n in shape), dtype, from_dlpack(parts[0]).device), 0
    for part in parts:
        _quern.copy(part, out=_between(whole, axis, at, at + part.shape[axis]), stream=stream)
        at += part.shape[axis]
    return whole


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None, stream=None):
    """The differences of neighbours along an axis, n times; before that, prepend and append, of x's dtype, are put to its ends.
    Integers wrap."""
    x, n = _tensor(x), _operator.index(n)
    if n < 0:
        raise ValueError("diff: n is {}, expected 0 or more".format(n))
    axis = _axis_of("diff", axis, len(x.shape))
    if prepend is None and append is None:
        for _ in range(n):
            x = _differences(x, axis, stream)
        return x
    parts = [_tensor(part) for part in (prepend, x, append) if part is not None]
    whole = _concatenated(parts, axis, stream)
    if isinstance(x, _quern.Array):
        return diff(whole, axis=axis, n=n, stream=stream)
    whole = diff(whole, axis=axis, n=n, stream=stream)
    if x.shape[axis] == 0:
        return whole
    result = _quern.bitwise_or if whole.dtype.kind in "iub" else _quern.add  # for an array of x's kind
    return _quern.copy(whole, out=result(_between(x, axis, 0, 1), whole, stream=stream), stream=stream)


def _channels(x, name):
    if len(x.shape) < 2:
        raise ValueError("{}: x has {} dimensions, expected 2 or more: batch, channels, ...".format(name, len(x.shape)))
    return x.shape[1]


def _per_channel(w, name, word, channels, extents, n_behind):
    """A weight or bias as the axes of x, split, see it."""
    w = _tensor(w)
    if tuple(w.shape) != (channels,):
        raise ValueError("{}: {} has shape {}, expected ({},)".format(name, word, tuple(w.shape), channels))
    for _ in range(n_behind):
        w = _split(w, len(w.shape) - 1, (w.shape[-1], 1))
    return w if len(extents) == 1 else _split(w, 0, extents)


def _normalised(name, x, weight, bias, eps, axes, extents, channels, out, stream):
    n_behind = len(x.shape) - 1 - len(extents)
    if weight is None and bias is None:
        return _quern.layer_norm(x, axis=axes, eps=eps, out=out, stream=stream)
    weight = 1 if weight is None else _per_channel(weight, name, "weight", channels, extents, n_behind)
    bias = 0 if bias is None else _per_channel(bias, name, "bias", channels, extents, n_behind)
    return _quern.layer_norm_affine(x, weight, bias, axis=axes, eps=eps, out=out, stream=stream)


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5, *, out=None, stream=None):
    """layer_norm over each group of channels of x, of shape (batch, channels, ...), with its other dimensions; times weight, plus
    bias, of which there is one for each channel."""
    x, num_groups = _tensor(x), _operator.index(num_groups)
    channels = _channels(x, "group_norm")
    if num_groups < 1 or channels % num_groups:
        raise ValueError("group_norm: {} channels in {} groups".format(channels, num_groups))
    extents = (num_groups, channels // num_groups)
    split = _split(x, 1, extents)
    into = None if out is None else _split(_tensor(out), 1, extents)
    y = _normalised("group_norm", split, weight, bias, eps, tuple(range(2, len(split.shape))), extents, channels, into, stream)
    return out if out is not None else _joined(y, 1, 2, stream)


def instance_norm(x, weight=None, bias=None, eps=1e-5, *, out=None, stream=None):
    """layer_norm over the dimensions behind the first two of x, of shape (batch, channels, ...); times weight, plus bias, of which
    there is one for each channel."""
    x = _tensor(x)
    channels = _channels(x, "instance_norm")
    return _normalised("instance_norm", x, weight, bias, eps, tuple(range(2, len(x.shape))), (channels,), channels, out, stream)
