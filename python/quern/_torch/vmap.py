# SPDX-License-Identifier: Apache-2.0
"""torch.vmap of quern.torch's ops: the batch is the outermost dimension of the call."""

import re

import torch

from .. import _quern


def _batched(x, dim, ndim):
    """x with its batch in front and as many dimensions behind it."""
    if dim is None or not isinstance(x, torch.Tensor):
        return x
    x = x.movedim(dim, 0)
    for _ in range(ndim - (x.dim() - 1)):
        x = x.unsqueeze(1)
    return x


def _axis_behind(axis, ndim):
    """The same axes, counted from the last one."""
    if axis is None:
        return tuple(range(-ndim, 0))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    for a in axes:
        if not -max(ndim, 1) <= a < max(ndim, 1):
            raise IndexError("axis {} is out of bounds for {} dimensions".format(a, ndim))
    return tuple(a - ndim if a >= 0 else a for a in axes) if ndim else ()


def _is_of_elements(op):
    """Whether an expression computes element by element: axes in its text would not count the batch."""
    words = set(re.findall(r"\w+", op.formula))
    return "index" not in words and not any(_quern.op(word)._has_axis for word in words & set(_quern.ops()))


def make_vmap(op, name):
    """None: the op has no rule, and PyTorch calls it for each element of the batch."""
    if op._class == 2 or (op._origin and op._origin[0] == "expression" and not _is_of_elements(op)):
        return None
    n_in, names = len(op.inputs), list(op.params)
    is_of_rows = op._has_axis

    def vmap(info, in_dims, *args, **kwargs):
        inputs, params = args[:n_in], list(args[n_in:])
        ndim = max(x.dim() - (dim is not None) for x, dim in zip(inputs, in_dims) if isinstance(x, torch.Tensor))
        inputs = [_batched(x, dim, ndim) for x, dim in zip(inputs, in_dims)]
        if is_of_rows:
            at = names.index("axis")
            while len(params) <= at:
                params.append(op.params[names[len(params)]])
            params[at] = _axis_behind(params[at], ndim)
        made = getattr(torch.ops.quern, name)(*inputs, *params, **kwargs)
        return made, (0,) * len(made) if isinstance(made, tuple) else 0

    return vmap
