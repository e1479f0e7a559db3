# SPDX-License-Identifier: Apache-2.0
"""Derivatives beside PyTorch's own, in f64: each <op>_backward, and grad(op(...), x), at kinks, bounds, zeros of both signs,
equal operands, infinities and NaN. Where the two differ, the reason is given here, and a difference that has gone is said."""

import itertools
import math

import quern
from tap import diag, done_testing, ok, skip_all

try:
    import torch
except ImportError:
    skip_all("there is no PyTorch here")

diag("PyTorch " + torch.__version__)
INF, NAN = math.inf, math.nan
functional = torch.nn.functional
ONE = [(x,) for x in (0.0, -0.0, 1.0, -1.0, 0.25, 0.5, -0.5, 1.5, -1.5, 2.0, -2.0, 2.5, 3.0, -3.0, 40.0, -40.0, 1e10, -1e10,
                      1e-300, -1e-300, 1e300, -1e300, INF, -INF, NAN)]
TWO = list(itertools.product((0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, INF, -INF, NAN), repeat=2))
OPS = {
    "abs": torch.abs, "acos": torch.acos, "acosh": torch.acosh, "asin": torch.asin, "asinh": torch.asinh, "atan": torch.atan,
    "atanh": torch.atanh, "ceil": torch.ceil, "copy": torch.clone, "cos": torch.cos, "cosh": torch.cosh, "degrees": torch.rad2deg,
    "erf": torch.erf, "erfc": torch.erfc, "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "fix": torch.trunc,
    "floor": torch.floor, "gelu": functional.gelu, "leaky_relu": lambda x: functional.leaky_relu(x, 0.01), "log": torch.log,
    "log10": torch.log10, "log1p": torch.log1p, "log2": torch.log2, "negative": torch.neg, "positive": torch.positive,
    "radians": torch.deg2rad, "reciprocal": torch.reciprocal, "relu": torch.relu, "rint": torch.round, "round": torch.round,
    "sigmoid": torch.sigmoid, "sign": torch.sign, "sin": torch.sin, "sinc": torch.sinc, "sinh": torch.sinh, "sqrt": torch.sqrt,
    "square": torch.square, "tan": torch.tan, "tanh": torch.tanh, "trunc": torch.trunc,
    "add": torch.add, "atan2": torch.atan2, "copysign": torch.copysign, "divide": torch.div, "float_power": torch.float_power,
    "floor_divide": lambda x, y: torch.div(x, y, rounding_mode="floor"), "fmax": torch.fmax, "fmin": torch.fmin,
    "fmod": torch.fmod,
    "hypot": torch.hypot, "ldexp": torch.ldexp, "logaddexp": torch.logaddexp, "logaddexp2": torch.logaddexp2,
    "maximum": torch.maximum, "minimum": torch.minimum, "multiply": torch.mul, "pow": torch.pow, "remainder": torch.remainder,
    "subtract": torch.sub, "trunc_divide": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
}
IN_TWO = ("add atan2 copysign divide float_power floor_divide fmax fmin fmod hypot ldexp logaddexp logaddexp2 maximum minimum "
          "multiply pow remainder subtract trunc_divide").split()
CLIPS = [(-1.0, 2.0), (0.0, 0.0), (2.0, -1.0), (-INF, INF), (1.0, INF)]


def is_nan(x):
    return x != x


def at_bounds():
    x = torch.ones((), requires_grad=True)
    torch.clamp(x, 1, 2).backward()
    return x.grad.item()


# What differs, and why: by op the input, the reason, and of which points.
OUTSIDE = "the result is NaN: outside of its domain"
LOST = "theirs is computed from the rounded result, in which it is lost, or overflows on the way"
OF_NAN = "NaN gives NaN"
DIFFERENT = {
    "abs": [("x", OF_NAN, is_nan)],
    "pow": [("x", OF_NAN, lambda x, y: is_nan(x) and y == 1)],
    "float_power": [("x", OF_NAN, lambda x, y: is_nan(x) and y == 1)],
    "acosh": [("x", OUTSIDE, lambda x: x < 1), ("x", LOST, lambda x: x == 1e300)],
    "asinh": [("x", LOST, lambda x: abs(x) == 1e300)],
    "expm1": [("x", LOST, lambda x: x == -40)],
    "sigmoid": [("x", LOST, lambda x: x == 40)],
    "sinc": [("x", LOST, lambda x: abs(x) in (1e-300, 1e10, 1e300))],
    "tanh": [("x", LOST, lambda x: abs(x) == 40)],
    "gelu": [("x", "theirs is infinity times 0; the limits are 1 and 0", lambda x: abs(x) == INF)],
    "copysign": [("x", "theirs is result / x, infinity over infinity; NaN has no sign", lambda x, y: is_nan(x) or abs(x) == INF)],
    "ldexp": [("x", "an exponent is rounded to a whole number", lambda x, y: abs(y) == 0.5)],
    "remainder": [("y", OUTSIDE, lambda x, y: y == 0)],
}
if at_bounds() == 1:  # https://github.com/pytorch/pytorch/pull/191142
    SPLIT = "before 2026 PyTorch split nothing between equal operands, and gave clamp all of grad at its bounds"
    DIFFERENT.update({name: [(word, SPLIT, lambda x, y: x == y) for word in "xy"] for name in ("fmax", "fmin")})
    DIFFERENT["clip"] = [("x", SPLIT, lambda x: True)]


def is_same(a, b):
    return is_nan(a) and is_nan(b) or a == b or abs(a - b) <= 1e-13 * abs(b)


def tensors(points, columns):
    return [torch.tensor([p[k] for p in points], dtype=torch.float64) for k in range(columns)]


def derivatives(name, function, points, params=()):
    """PyTorch's and ours, by input."""
    inputs = tensors(points, len(points[0]))
    leaves = [x.clone().requires_grad_() for x in inputs]
    grad = torch.full((len(points),), 3.0, dtype=torch.float64)
    function(*leaves).backward(grad)
    op, backward = quern.op(name), quern.op(name + "_backward")
    known = dict(zip(op.inputs, inputs))
    known.update(zip(op.params, params), grad=grad)
    known[op.outputs[0]] = op(*inputs, **dict(zip(op.params, params)))
    got = backward(*[known[word] for word in backward.inputs], **dict(zip(op.params, params)))
    got = dict(zip(backward.outputs, got if isinstance(got, tuple) else (got,)))
    for word, leaf in zip(op.inputs, leaves):
        if "grad_" + word in got:
            yield word, got["grad_" + word].tolist(), leaf.grad.tolist()


def compare(name, function, points, params=()):
    for word, ours, theirs in derivatives(name, function, points, params):
        wrong, met = [], set()
        for point, a, b in zip(points, ours, theirs):
            if is_same(a, b):
                continue
            reasons = {reason for by, reason, of in DIFFERENT.get(name, ()) if by == word and of(*point)}
            met |= reasons
            if not reasons:
                wrong.append("{}: {!r}, PyTorch has {!r}".format(point, a, b))
        ok(not wrong, "{} by {}{}: {} points".format(name, word, params or "", len(points)))
        for line in wrong[:10]:
            diag(line)
        for by, reason, _ in DIFFERENT.get(name, ()):
            if by == word and name != "clip":
                ok(reason in met, "  it differs: " + reason)


for name in sorted(OPS):
    compare(name, OPS[name], TWO if name in IN_TWO else ONE)
for low, high in CLIPS:
    compare("clip", lambda x: torch.clamp(x, low, high), ONE + [(low,), (high,)], (low, high))

# where: of the branch that is taken, whatever the other is.
x, y = (torch.tensor(v, dtype=torch.float64) for v in ([1.0, INF, NAN, 0.0], [NAN, 1.0, 2.0, INF]))
condition = torch.tensor([True, False, True, False])
leaves = [x.clone().requires_grad_(), y.clone().requires_grad_()]
torch.where(condition, *leaves).backward(torch.ones(4, dtype=torch.float64))
got = quern.op("where_backward")(torch.ones(4, dtype=torch.float64), condition)
ok([v.tolist() for v in got] == [v.grad.tolist() for v in leaves], "where")

# In expressions: the same as the op that is the derivative, and by way of several.
for name in ("abs", "maximum", "relu", "hypot", "atan2", "pow", "sinc"):
    points = TWO if name in IN_TWO else ONE
    call = name + ("(x, y)" if name in IN_TWO else "(x)")
    (_, ours, _), *_ = derivatives(name, OPS[name], points)
    columns = tensors(points, len(points[0]))
    got = (3 * quern.compile("grad({}, x)".format(call))(*columns)).tolist()
    ok(all(is_same(a, b) for a, b in zip(got, ours)), "grad({}, x)".format(call))
for text, function in (
        ("relu(x) * abs(x - 1)", lambda x: torch.relu(x) * torch.abs(x - 1)),
        ("maximum(x, 2 * x) + minimum(x, 0)", lambda x: torch.maximum(x, 2 * x) + torch.minimum(x, torch.zeros_like(x))),
        ("x > 0 ? log(x) : x", lambda x: torch.where(x > 0, torch.log(torch.where(x > 0, x, torch.ones_like(x))), x)),
        ("sqrt(x * x)", lambda x: torch.sqrt(x * x))):
    points = [p for p in ONE if abs(p[0]) <= 40 or is_nan(p[0])]
    leaf = tensors(points, 1)[0].requires_grad_()
    function(leaf).sum().backward()
    got = quern.compile("grad({}, x)".format(text))(leaf.detach()).tolist()
    wrong = [(p, a, b) for p, a, b in zip(points, got, leaf.grad.tolist()) if not is_same(a, b) and not is_nan(p[0])]
    ok(not wrong, "grad({}, x)".format(text))
    for line in wrong:
        diag(line)
# ---- Ops that reduce: any axes, ties, zeros, infinities ----

def norm(order):
    return lambda x, dim: torch.linalg.vector_norm(x, order, dim, keepdim=True)


# What PyTorch has of a reduced op keeps the axes, as grad and the output of the op's derivative do.
ROWS = {
    "sum": lambda x, dim: x.sum(dim, keepdim=True), "mean": lambda x, dim: x.mean(dim, keepdim=True),
    "max": lambda x, dim: x.amax(dim, keepdim=True), "min": lambda x, dim: x.amin(dim, keepdim=True),
    "prod": lambda x, dim: x.prod(dim, keepdim=True) if isinstance(dim, int) else None,
    "nansum": lambda x, dim: x.nansum(dim, keepdim=True), "nanmean": lambda x, dim: x.nanmean(dim, keepdim=True),
    "logsumexp": lambda x, dim: x.logsumexp(dim, keepdim=True),
    "var": lambda x, dim: x.var(dim, correction=0, keepdim=True), "std": lambda x, dim: x.std(dim, correction=0, keepdim=True),
    "reduce_l1": norm(1), "reduce_l2": norm(2), "reduce_sum_square": lambda x, dim: (x * x).sum(dim, keepdim=True),
    "reduce_log_sum": lambda x, dim: x.sum(dim, keepdim=True).log(), "ptp": lambda x, dim: x.amax(dim, keepdim=True) - x.amin(dim, keepdim=True),
    "softmax": torch.softmax, "softmin": functional.softmin, "log_softmax": torch.log_softmax,
    "normalize": lambda x, dim: functional.normalize(x, dim=dim) if isinstance(dim, int) else None,
    "layer_norm": lambda x, dim: functional.layer_norm(x, x.shape[-1:]) if dim == -1 else None,
    "rms_norm": lambda x, dim: functional.rms_norm(x, x.shape[-1:], eps=1e-5) if dim == -1 else None,
}
PAIRS = {
    "vecdot": lambda x, y, dim: (x * y).sum(dim, keepdim=True),
    "average": lambda x, y, dim: (x * y).sum(dim, keepdim=True) / y.sum(dim, keepdim=True),
    "cosine_similarity": lambda x, y, dim: functional.cosine_similarity(x, y, dim).unsqueeze(dim) if isinstance(dim, int) else None,
}
SPECIAL_ROWS = ", special rows"
SPECIAL = {"prod", "max", "min", "sum", "mean", "nansum", "nanmean", "logsumexp", "reduce_l1", "reduce_sum_square", "vecdot", "softmax",
           "log_softmax"}  # their derivatives have limits, which are compared too


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


# What differs in special rows, and why: of the elements of x where it does.
DIFFERENT_ROWS = {
    "prod": ("x", "theirs multiplies the others where the tensor has a zero anywhere, else it divides as ours",
             lambda x: torch.isinf(x) | torch.isnan(x)),
    "logsumexp": ("x", "of a row of -inf nothing grows; theirs is -inf less -inf", lambda x: x == -INF),
    "reduce_l1": ("x", OF_NAN, is_nan),
}


def row_derivatives(name, function, inputs, dim, params):
    """By input: its name, ours and PyTorch's; None: PyTorch has no such call."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    out = function(*leaves, dim)
    if out is None:
        return
    grad = draw(*out.shape)
    out.backward(grad)
    op, backward = quern.op(name), quern.op(name + "_backward")
    known = dict(zip(op.inputs, inputs), grad=grad)
    known[op.outputs[0]] = op(*inputs, axis=dim, **(dict(params, keepdims=True) if "keepdims" in op.params else params))
    got = backward(*[known[word] for word in backward.inputs], axis=dim, **params)
    got = dict(zip(backward.outputs, got if isinstance(got, tuple) else (got,)))
    for word, leaf in zip(op.inputs, leaves):
        yield word, got["grad_" + word], torch.zeros_like(leaf) if leaf.grad is None else leaf.grad


def compare_rows(label, name, function, inputs, dim, params=()):
    for word, ours, theirs in row_derivatives(name, function, inputs, dim, dict(params)):
        wrong = ~torch.isclose(ours, theirs, rtol=1e-12, atol=1e-13, equal_nan=True)
        by, reason, of = DIFFERENT_ROWS.get(name, (None, None, None))
        if by == word and label == SPECIAL_ROWS:
            ok((wrong & of(inputs[0])).any(), "{} by {}{} differs: {}".format(name, word, label, reason))
            wrong &= ~of(inputs[0])
        ok(not wrong.any(), "{} by {}, axis={}{}{}".format(name, word, dim, params or "", label))
        if wrong.any():
            diag("ours {}, theirs {}, of {}".format(ours[wrong][:4].tolist(), theirs[wrong][:4].tolist(),
                                                    [x.expand(ours.shape)[wrong][:4].tolist() for x in inputs]))


torch.manual_seed(18)
for name, function in {**ROWS, **PAIRS}.items():
    n_in = 2 if name in PAIRS else 1
    for dim in (-1, 0, (0, 2)):
        if dim == (0, 2) and name in ("softmax", "softmin", "log_softmax"):
            continue
        inputs = [draw(3, 5, 300 if dim == -1 else 7) for _ in range(n_in)]
        if name == "reduce_log_sum":
            inputs[0] = inputs[0].abs()
        compare_rows("", name, function, inputs, dim)
    if name in SPECIAL:
        rows = [[2, 2, 1, 2], [0, 3, 0, 1], [0, 3, 5, 1], [-0.0, 0, -1, -2], [1, 2, NAN, 3], [INF, 1, 2, 3],
                [1, -INF, 2, 3], [0, 0, 0, 0]]
        if name in ("sum", "mean", "nansum", "nanmean", "max", "min", "prod", "logsumexp"):
            rows.append([-INF] * 4)
        x = torch.tensor(rows, dtype=torch.float64)
        compare_rows(SPECIAL_ROWS, name, function, [x] + [draw(*x.shape) for _ in range(n_in - 1)], -1)
for correction in (0, 1, 0.5, 4):
    for name in ("var", "std"):
        compare_rows("", name, lambda x, dim: getattr(x, name)(dim, correction=correction, keepdim=True), [draw(6, 9)], -1,
                     (("correction", correction),))
for order in (0, 1, 2, 3, 1.5, 0.5, -1, INF, -INF):
    compare_rows("", "vector_norm", norm(order), [draw(6, 9)], -1, (("ord", order),))
    x = torch.tensor([[2.0, -2, 1], [3, 0, -3]], dtype=torch.float64)
    if order not in (-1,):  # 0^-1
        compare_rows(", ties and zeros", "vector_norm", norm(order), [x], -1, (("ord", order),))

# Weight and bias: their derivatives are reductions over the other axes.
x, grad = draw(4, 5, 16), draw(4, 5, 16)
weight, bias = (draw(16).requires_grad_() for _ in range(2))
leaf = x.clone().requires_grad_()
functional.layer_norm(leaf, (16,), weight, bias, 1e-3).backward(grad)
mean, rstd = (quern.compile(text)(x) for text in
              ("mean(x, axis=-1, keepdims=1)", "1 / sqrt(var(x, axis=-1, keepdims=1) + 1e-3)"))
stats = quern.op("mean_rstd")(x, axis=-1, keepdims=True, eps=1e-3)
ok(torch.equal(stats[0], mean) and torch.equal(stats[1], rstd), "mean_rstd")
got = quern.op("layer_norm_backward_affine")(grad, x, *stats, axis=(0, 1))
ok(torch.allclose(got[0], weight.grad, rtol=1e-12) and torch.allclose(got[1], bias.grad, rtol=1e-12), "layer_norm_backward_affine")
got = quern.op("layer_norm_affine_backward")(grad, x, weight.detach(), axis=-1, eps=1e-3)
ok(torch.allclose(got, leaf.grad, rtol=1e-11), "layer_norm_affine_backward")
weight = draw(16).requires_grad_()
leaf = x.clone().requires_grad_()
functional.rms_norm(leaf, (16,), weight, 1e-3).backward(grad)
rstd = quern.compile("1 / sqrt(mean(x * x, axis=-1, keepdims=1) + 1e-3)")(x)
got = quern.op("rms_norm_backward_affine")(grad, x, rstd, axis=(0, 1))
ok(torch.allclose(got, weight.grad, rtol=1e-12), "rms_norm_backward_affine")
got = quern.op("rms_norm_affine_backward")(grad, x, weight.detach(), axis=-1, eps=1e-3)
ok(torch.allclose(got, leaf.grad, rtol=1e-11), "rms_norm_affine_backward")

# Class indices.
x, t = draw(7, 11), torch.tensor([0, 10, 3, 3, 5, 9, 1])
for name, function in (("cross_entropy", functional.cross_entropy), ("nll_loss", functional.nll_loss)):
    leaf, grad = x.clone().requires_grad_(), draw(7)
    function(leaf, t, reduction="none").backward(grad)
    got = quern.op(name + "_backward")(grad[:, None], x, t[:, None], axis=-1)
    ok(torch.allclose(got, leaf.grad, rtol=1e-12, atol=1e-14), name + " by x")
# Scans.
SCANS = {"cumulative_sum": torch.cumsum, "cumulative_prod": torch.cumprod, "logcumsumexp": torch.logcumsumexp,
         "cummax": lambda x, dim: torch.cummax(x, dim)[0], "cummin": lambda x, dim: torch.cummin(x, dim)[0]}
INITIAL = {"cumulative_sum": 0.0, "cumulative_prod": 1.0, "logcumsumexp": -INF, "cummax": -INF, "cummin": INF}


def shifted(name, function, x, dim, exclusive=False, include_initial=False, reverse=False):
    """Theirs has no such parameters."""
    x = x.flip(dim) if reverse else x
    out = function(x, dim)
    if exclusive or include_initial:
        first = torch.full_like(out.narrow(dim, 0, 1), INITIAL[name])
        out = torch.cat([first, out.narrow(dim, 0, out.shape[dim] - (1 if exclusive else 0))], dim)
    return out.flip(dim) if reverse else out


def scan_derivatives(name, function, x, dim, params, grad=None):
    leaf = x.clone().requires_grad_()
    theirs = shifted(name, function, leaf, dim, **params)
    grad = torch.randn_like(theirs) if grad is None else grad
    theirs.backward(grad)
    backward, made = quern.op(name + "_backward"), quern.op(name)(x, axis=dim, **params)
    known = {"grad": grad, "x": x, "out": made}
    if isinstance(made, tuple):
        known["indices"] = made[1]
    return backward(*[known[word] for word in backward.inputs], axis=dim, **params), leaf.grad


for name, function in SCANS.items():
    for dim in (-1, 0, 1):
        for params in ({}, {"exclusive": True}, {"include_initial": True}, {"reverse": True}, {"exclusive": True, "reverse": True},
                       {"include_initial": True, "reverse": True}):
            x = draw(4, 9, 70)
            ours, theirs = scan_derivatives(name, function, x, dim, params)
            ok(torch.allclose(ours, theirs, rtol=1e-11, atol=1e-12), "{}, axis={}{}".format(name, dim, params or ""))
    for dtype, room in ((torch.float32, 1e-4), (torch.float16, 0.02), (torch.bfloat16, 0.15)):
        x = (draw(3, 20) / 2 + (1 if name == "cumulative_prod" else 0)).to(dtype)
        ours, theirs = scan_derivatives(name, function, x, -1, {})
        ok(ours.dtype == dtype and torch.allclose(ours, theirs, rtol=room, atol=room), "  in {}".format(dtype))
for row in ([2.0, 0, 3, 5], [0.0, 2, 3, 5], [2.0, 0, 3, 0, 7], [0.0, -0.0, 2], [1.0, 2, 0]):
    ours, theirs = scan_derivatives("cumulative_prod", torch.cumprod, torch.tensor(row, dtype=torch.float64), 0, {})
    ok(torch.allclose(ours, theirs, rtol=1e-14), "cumulative_prod with zeros, {}".format(row))
row = torch.tensor([2.0, 2, NAN, 1], dtype=torch.float64)
ours, theirs = scan_derivatives("cummax", SCANS["cummax"], row, 0, {}, torch.ones(4, dtype=torch.float64))
ok(ours.tolist() == [2, 0, 2, 0], "cummax: the first of equals has the derivative, and the first NaN")
done_testing()
