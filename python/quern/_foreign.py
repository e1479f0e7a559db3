# SPDX-License-Identifier: Apache-2.0
"""Calls with operands that are no tensors by themselves: pandas', xarray's and pyarrow's objects (_labels.py, _arrow.py), lists,
numbers alone, and what @quern.fuse traces. The extension comes here only after it has met one.

An adapter has owns(x), take(x, where) -> a tensor or number, and the rest that it needs to give results back."""

import operator
import sys

from . import _arrow, _labels, _quern
from ._arrays.numbers import from_numbers, is_list, numbers_of
from ._quern import from_dlpack


def _is_number(x):
    return isinstance(x, (int, float))


def _is_traced(x):
    traced = sys.modules.get("quern._traced")
    return traced is not None and isinstance(x, traced.Traced)


def knows(x):
    """Whether an object is converted here."""
    return is_list(x) or _is_traced(x) or _labels.owns(x) or _arrow.owns(x)


# ---- Lists and numbers ----


def _kind_of(x):
    """ "b", "i" or "f": what the numbers of nested lists are; "" where there are none."""
    if not is_list(x):
        return "b" if isinstance(x, bool) else "i" if isinstance(x, int) else "f" if isinstance(x, float) else ""
    return max(map(_kind_of, x), key="bif".find, default="")


def _dtype_beside(kind, others):
    """The dtype of a list of such numbers: weak, as a number has it beside tensors of these dtypes; Python's own without any."""
    if not others or kind == "b":
        return {"b": _quern.bool, "i": _quern.int64}.get(kind, _quern.float64)
    common = others[0]
    for dtype in others[1:]:
        common = _quern._promote(common, dtype) or common
    if kind == "f" and common.kind in "biu":
        return _quern._with_fractions(common)
    return _quern.int64 if common.kind == "b" else common


def _from_list(x, others, where):
    x = numbers_of(x, where)
    try:
        return from_numbers(x, _dtype_beside(_kind_of(x), others))
    except (TypeError, ValueError, OverflowError) as error:
        raise type(error)("{}: {}".format(where, error)) from None


def _own(result):
    """A result of lists and numbers alone: as these."""
    return result.item() if not result.shape else result.tolist()


# ---- The call ----


def _inputs_of(op, args, kwargs):
    """The inputs in order, and the other arguments: those by position behind them, those by name."""
    names = op.inputs
    inputs = list(args[:len(names)]) + [kwargs[name] for name in names[len(args):]]
    return inputs, args[len(names):], {name: value for name, value in kwargs.items() if name not in names}


def _where(op, k):
    return "{}: input {} ({})".format(op.__name__, k + 1, op.inputs[k])


def _tensor_of(x, where):
    try:
        return from_dlpack(x)
    except BufferError as error:
        raise BufferError("{}: {}".format(where, error)) from None


def _as_kind_of(x, first):
    """The array of a list as the first tensor's kind, which the results then have."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and isinstance(first, numpy.ndarray):
        return numpy.asarray(x)
    return torch.from_dlpack(x) if torch is not None and isinstance(first, torch.Tensor) else x


def _take_all(op, inputs):
    """The inputs as tensors and numbers."""
    taken, dtypes = list(inputs), []
    for k, x in enumerate(inputs):
        if _labels.owns(x):
            taken[k] = _labels.take(x, _where(op, k))
        elif _arrow.owns(x):
            taken[k] = _arrow.take(x, _where(op, k))
        if not is_list(x) and not _is_number(taken[k]):
            dtypes.append(_tensor_of(taken[k], _where(op, k)).dtype)
    is_alone = not dtypes
    first = next((x for x in taken if not is_list(x) and not _is_number(x)), None)
    for k, x in enumerate(inputs):
        if is_list(x):
            taken[k] = _as_kind_of(_from_list(x, dtypes, _where(op, k)), first)
    if is_alone and all(map(_is_number, taken)):
        taken = [_from_list([x], [], _where(op, k)) for k, x in enumerate(taken)]
        taken = [_quern._strided(x, (), (), 0) for x in taken]
    return taken, is_alone


def _check_out(op, out):
    for x in out if isinstance(out, tuple) else (out,):
        if is_list(x) or _is_traced(x) or _arrow.owns(x) or _labels.owns(x) and not _labels.is_writable(x):
            raise TypeError("{}: out: a {} cannot be written into; call without out, or give an array".format(
                op.__name__, type(x).__name__))


def _taken_out(out, frame):
    if isinstance(out, tuple):
        return tuple(_taken_out(x, frame) for x in out)
    return frame.out(out) if _labels.owns(out) else out


def call(op, method, args, kwargs):
    """op(*args, **kwargs), or its method, with operands as this module takes them. Its arguments have been bound once."""
    inputs, params, named = _inputs_of(op, args, kwargs)
    out = named.get("out")
    if any(map(_is_traced, inputs)) or any(map(_is_traced, params)) or any(map(_is_traced, named.values())):
        from ._traced import traced_call
        return traced_call(op, method, inputs, params, named)
    if out is not None:
        _check_out(op, out)
    frame = _labels.frame_of(op, inputs)
    taken, is_alone = _take_all(op, inputs)
    taken = frame.broadcast(taken)
    if out is not None:
        named = dict(named, out=_taken_out(out, frame))
    if method is not None:
        return getattr(op, method)(*taken, *params, **named)
    results = op(*taken, *params, **named)
    if out is not None and not isinstance(out, tuple):
        return out
    outs = out if isinstance(out, tuple) else (None,) * len(op.outputs)
    if len(op.outputs) == 1:
        return _given_back(op, inputs, taken, params, named, frame, is_alone, results)
    return tuple(given if given is not None else _given_back(op, inputs, taken, params, named, frame, is_alone, result)
                 for given, result in zip(outs, results))


def _given_back(op, inputs, taken, params, named, frame, is_alone, result):
    """A result as what the operands were."""
    if is_alone and not any(map(_arrow.owns, inputs)):
        return _own(result)
    if frame.is_labelled:
        return frame.wrap(result, _axes_of(op, params, named, frame.ndim(taken)), taken)
    first = next(x for x in inputs if not _is_number(x) and not is_list(x))
    return _arrow.wrap(result, first) if _arrow.owns(first) else result


def _axes_of(op, params, named, ndim):
    """(the axes that an op reduces, keepdims), or None where the op has no axis."""
    if not op._has_axis:
        return None
    values = dict(zip(op.params, params))
    axis = named.get("axis", values.get("axis", op.params["axis"]))
    keepdims = named.get("keepdims", values.get("keepdims", "keepdims" not in op._roles or op.params["keepdims"]))
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return {operator.index(x) % ndim for x in axes} if ndim else set(), bool(keepdims)
