# SPDX-License-Identifier: Apache-2.0
"""Schemas and implementations of quern.torch's ops."""

import math

import torch

from .. import _quern
from .._signature import signature

_GIVE_ANY = ("astype", "saturate_cast")  # their result has no dtype of its own


def _is_kept_in_schema(value):
    """A schema has no infinities: such a default is None there."""
    return not isinstance(value, float) or math.isfinite(value)


def _param_text(op, name, written, value):
    if name == "axis" and op._has_axis:
        return "int[1]? {}={}".format(written, value)
    if op._roles.get(name) in ("keepdims", "flag") or name == "endpoint" and not op.inputs:
        return "bool {}={}".format(written, bool(value))
    if value is None:
        return "Scalar? {}=None".format(written) if op._has_axis else "Scalar " + written
    return "Scalar {}={!r}".format(written, value) if _is_kept_in_schema(value) else "Scalar? {}=None".format(written)


def _params_text(op):
    written = list(signature(op).parameters)[len(op.inputs):]
    return [_param_text(op, name, word, value) for word, (name, value) in zip(written, op.params.items())]


def make_schema(op, letters):
    """letters: of each input T for a tensor, S for a number."""
    names = list(signature(op).parameters)
    words = [("Tensor " if letter == "T" else "Scalar ") + name for letter, name in zip(letters, names)] + _params_text(op)
    results = "Tensor" if len(op.outputs) == 1 else "({})".format(", ".join(["Tensor"] * len(op.outputs)))
    dtype = "ScalarType dtype" if op.__name__ in _GIVE_ANY else "ScalarType? dtype=None"
    return "({}, *, {}) -> {}".format(", ".join(words), dtype, results)


def detached(x):
    return x.detach() if isinstance(x, torch.Tensor) and x.requires_grad else x


def make_kernel(op):
    """The implementation on devices. The dispatcher leaves out arguments that are their defaults."""
    n_in = len(op.inputs)
    axis_at = n_in + list(op.params).index("axis") if op._has_axis else -1
    filled = [(n_in + k, value) for k, value in enumerate(op.params.values()) if not _is_kept_in_schema(value)]

    def plain(*args, dtype=None):
        try:
            return op(*args, dtype=dtype)
        except BufferError:  # below autograd a tensor still says that it wants a gradient
            if not any(isinstance(x, torch.Tensor) and x.requires_grad for x in args):
                raise
        return op(*map(detached, args), dtype=dtype)

    def adapted(*args, dtype=None):
        args = list(args)
        if 0 <= axis_at < len(args) and isinstance(args[axis_at], list):
            args[axis_at] = tuple(args[axis_at])
        for k, value in filled:
            if k < len(args) and args[k] is None:
                args[k] = value
        return plain(*args, dtype=dtype)

    return adapted if axis_at >= 0 or filled else plain


# ---- Ops without inputs ----


def make_source_schema(op):
    words = ["SymInt[] size"] + _params_text(op)
    return "({}, *, ScalarType? dtype=None, Device? device=None) -> Tensor".format(", ".join(words))


def make_source(op):
    """The implementation, and the fake one, of an op without inputs."""
    names = tuple(op.params)

    def fake(size, *params, dtype=None, device=None):
        return torch.empty(size, dtype=dtype, device=device)

    def kernel(size, *params, dtype=None, device=None):
        out = torch.empty(size, dtype=dtype, device=device)
        return op(**dict(zip(names, params)), out=out) if out.numel() else out

    return kernel, fake
