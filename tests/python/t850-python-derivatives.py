# SPDX-License-Identifier: Apache-2.0
"""Derivatives beside PyTorch's own, in f64: each <op>_backward, and grad(op(...), x), at kinks, bounds, zeros of both signs,
equal operands, infinities and NaN. Where the two differ, the reason stands here, and a difference that has gone is said."""

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
done_testing()
