# SPDX-License-Identifier: Apache-2.0
"""Derivatives of quern.torch's ops, by Quern's backward ops."""

import torch

from .. import _quern
from .fake import kind_of, make_rule


def _short(dtype):
    return _quern.dtype(dtype).short_name


def _compute_dtype(grad, metas):
    """The dtype that a derivative is computed in: of grad and of the inputs that are floats."""
    dtype = grad.dtype
    for meta in metas:
        if meta and meta[1].is_floating_point:
            dtype = torch.promote_types(dtype, meta[1])
    return dtype


def _operand(x, dtypes, dtype, device):
    """An input of a backward op: floats, and what it takes as floats, as the dtype of the call; class indices and conditions as
    they are."""
    words = dtypes.split()
    as_float = _short(dtype) in words
    if isinstance(x, torch.Tensor):
        return x.to(dtype) if as_float and x.dtype != dtype else x
    return torch.full((), x, dtype=dtype if as_float else torch.bool if words == ["bool"] else torch.int64, device=device)


def _axes(axis, ndim):
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (list, tuple)) else (axis,)
    return tuple(sorted(a % ndim for a in axes)) if ndim else ()


def _with_axes(x, axes):
    for a in axes:
        x = x.unsqueeze(a)
    return x


def _fit(grad, shape, dtype):
    """grad as the derivative by an input of this shape and dtype, which was broadcast and cast."""
    if grad is None:
        return None
    grad = grad if grad.shape == shape else grad.sum_to_size(shape)
    return grad if grad.dtype == dtype else grad.to(dtype)


# ---- The state of a call: what the derivative reads ----


class _Call:
    """One call in its derivative: operands and results by name, shapes and dtypes of the inputs, parameters, and the derivatives
    of the outputs."""

    def __init__(self, op, ctx, grads):
        self.op = op
        self.known = dict(ctx.numbers, **dict(zip(ctx.words, ctx.saved_tensors)))
        self.metas, self.params = ctx.metas, ctx.params
        self.needs = ctx.needs_input_grad[getattr(ctx, "first", 0):]
        self.grads = dict(zip(op.outputs, grads))
        self.kinds = tuple(meta[1] if meta else kind_of(self.known[name]) for name, meta in zip(op.inputs, self.metas))
        self.ndim = max(len(meta[0]) for meta in self.metas if meta)

    def fitted(self, made):
        """made: derivatives by the name of the input. One for each positional argument."""
        return tuple(_fit(made.get(name), *meta) if meta and needs else None
                     for name, meta, needs in zip(self.op.inputs, self.metas, self.needs)) + (None,) * len(self.op.params)


def _setup_of(op, wanted):
    """wanted: the names of inputs and outputs that the derivative reads."""
    n_in = len(op.inputs)

    def setup(ctx, inputs, keyword_only_inputs, output):
        outputs = output if isinstance(output, tuple) else (output,)
        ctx.mark_non_differentiable(*[x for x in outputs if not x.is_floating_point()])
        named = [*zip(op.inputs, inputs), *zip(op.outputs, outputs)]
        saved = [(word, x) for word, x in named if word in wanted and isinstance(x, torch.Tensor)]
        ctx.words = [word for word, _ in saved]
        ctx.numbers = {word: x for word, x in named if not isinstance(x, torch.Tensor)}
        ctx.metas = [(x.shape, x.dtype) if isinstance(x, torch.Tensor) else None for x in inputs[:n_in]]
        ctx.params = dict(zip(op.params, inputs[n_in:]))
        ctx.save_for_backward(*[x for _, x in saved])

    return setup


# ---- By the op NAME_backward ----


def _run(backward, known, params, dtype, device):
    """The derivatives that a backward op gives, by the name of the input."""
    op = backward.op
    operands = [_operand(known[word], words, dtype, device) for word, words in zip(op.inputs, op._dtypes)]
    made = backward(*operands, *[params[name] for name in op.params])
    return dict(zip((word[len("grad_"):] for word in op.outputs), made if isinstance(made, tuple) else (made,)))


def _is_reduced(call):
    return "keepdims" in call.op._roles and not call.params["keepdims"]


def _by_op(call, backward, output=0):
    """The derivatives by way of one output."""
    name = call.op.outputs[output]
    grad, known = call.grads[name], dict(call.known)
    if _is_reduced(call):
        axes = _axes(call.params["axis"], call.ndim)
        grad = _with_axes(grad, axes)
        known.update({word: _with_axes(known[word], axes) for word in call.op.outputs if word in known})
    dtype = _compute_dtype(grad, call.metas)
    return _run(backward, dict(known, grad=grad), call.params, dtype, grad.device)


def _general(op, derivative_of):
    backward = derivative_of(op)
    initial = derivative_of(_quern.op(op.__name__ + "_initial")) if "initial" in op._roles else None
    wanted = set(backward.op.inputs) | set(initial.op.inputs if initial else ())

    def derivative(call):
        return _by_op(call, backward if initial is None or call.params["initial"] is None else initial)

    return wanted, derivative


# ---- Ops with a derivative made of several ----


def _astype(op, derivative_of):
    return set(), lambda call: {op.inputs[0]: call.grads[op.outputs[0]]}


def _compress(op, derivative_of):
    def derivative(call):
        condition, grad = call.known["condition"], call.grads["out"]
        shape = torch.broadcast_shapes(condition.shape, call.metas[1][0])
        return {"x": torch.zeros(shape, dtype=grad.dtype, device=grad.device).masked_scatter(condition.expand(shape), grad)}

    return {"condition"}, derivative


def _sum_of(names):
    """Of an op with several outputs, each of which is the output of another op."""
    def make(op, derivative_of):
        parts = [derivative_of(_quern.op(name)) for name in names]
        words = [_quern.op(name).outputs[0] for name in names]

        def derivative(call):
            total = None
            for k, (part, word) in enumerate(zip(parts, words)):
                known = dict(call.known, **{word: call.known[op.outputs[k]]})
                axes = _axes(call.params["axis"], call.ndim) if _is_reduced(call) else ()
                known[word], grad = (_with_axes(x, axes) for x in (known[word], call.grads[op.outputs[k]]))
                dtype = _compute_dtype(grad, call.metas)
                made = _run(part, dict(known, grad=grad), call.params, dtype, grad.device)["x"]
                total = made if total is None else total + made
            return {"x": total}

        return {"x", *op.outputs}, derivative

    return make


def _affine(norm):
    """layer_norm_affine and rms_norm_affine: by weight and bias it is grad times the norm, and grad, summed by _fit where they
    were broadcast."""
    def make(op, derivative_of):
        backward, plain = derivative_of(op), derivative_of(_quern.op(norm), "")

        def derivative(call):
            grad, x, params = call.grads["out"], call.known["x"], call.params
            made = _by_op(call, backward) if call.needs[0] else {}
            dtype = _compute_dtype(grad, call.metas)
            if call.needs[1]:
                shape = torch.broadcast_shapes(*(meta[0] for meta in call.metas if meta))
                made["weight"] = grad.to(dtype) * plain(x.to(dtype).expand(shape), params["axis"], params["eps"])
            made["bias"] = grad.to(dtype)
            return made

        return {"x", "weight"}, derivative

    return make


# The ops that they are made of: a build may lack some.
_NEEDED = {"layer_norm_affine": ("layer_norm",), "rms_norm_affine": ("rms_norm",), "std_mean": ("std", "mean"),
           "var_mean": ("var", "mean"), "aminmax": ("min", "max")}
_SPECIAL = {"astype": _astype, "compress": _compress, "layer_norm_affine": _affine("layer_norm"),
            "rms_norm_affine": _affine("rms_norm"), "std_mean": _sum_of(("std", "mean")),
            "var_mean": _sum_of(("var", "mean")), "aminmax": _sum_of(("min", "max"))}


# ---- Expressions ----


def _expression(op, variant_of):
    """variant_of(outputs, inputs): the function of the derivatives by these inputs, and its names of the outputs' derivatives."""
    rules = {}

    def of_elements(call, grad, k):
        """The derivative by a result, as a factor of elements. One that was reduced is read by each element of its row: the
        shares of these, in f32 at least, are added."""
        key = call.ndim, call.kinds
        if key not in rules:
            rules[key] = make_rule(op, call.kinds, None, call.ndim, {})
        left = {dims[0] for _, dims in rules[key].extents[k] if dims}
        gone = [d for d in range(call.ndim) if d not in left]
        if not gone:
            return grad
        if grad.dim() < call.ndim:
            grad = _with_axes(grad, gone)
        shape, count = torch.broadcast_shapes(*(meta[0] for meta in call.metas if meta)), 1
        for d in gone:
            count = count * shape[d]
        return grad.to(torch.promote_types(grad.dtype, torch.float32)) / count

    def derivative(call):
        outputs = tuple(name for name in op.outputs if call.grads[name].is_floating_point())
        inputs = tuple(name for name, needs in zip(op.inputs, call.needs) if needs)
        function, grads = variant_of(outputs, inputs)
        known = dict(call.known, **call.params)
        for k, name in enumerate(op.outputs):
            if name in outputs:
                known[grads[name]] = of_elements(call, call.grads[name], k)
        made = function(*[known[word] for word in (*function.op.inputs, *function.op.params)])
        return dict(zip(inputs, made if isinstance(made, tuple) else (made,)))

    return set(op.inputs), derivative


# ---- What autograd is told ----


def _none(name):
    """Of an op without a derivative: better an error than zeros."""
    def derivative(call):
        raise NotImplementedError("quern::{} has no derivative{}".format(name, (
            " of second order: write the expression in PyTorch's ops, or x.detach() where none is meant")
            if name.endswith("_backward") else ""))

    return set(), derivative


def gives_floats(op):
    """Whether some result can have a derivative."""
    return any(word in dtypes.split() for dtypes in op._dtypes[len(op.inputs):] for word in ("f16", "bf16", "f32", "f64"))


def make_autograd(op, name, derivative_of, variant_of=None):
    """(setup_context, backward) for torch.library.register_autograd. derivative_of(op): the function of NAME_backward."""
    if variant_of:
        wanted, derivative = _expression(op, variant_of)
    elif op.__name__ in _SPECIAL and all(part in _quern.ops() for part in _NEEDED.get(op.__name__, ())):
        wanted, derivative = _SPECIAL[op.__name__](op, derivative_of)
    elif op.backward:
        wanted, derivative = _general(op, derivative_of)
    else:
        wanted, derivative = _none(name)

    def backward(ctx, *grads):
        call = _Call(op, ctx, grads)
        return call.fitted(derivative(call))

    return _setup_of(op, wanted), backward
