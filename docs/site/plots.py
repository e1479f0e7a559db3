# SPDX-License-Identifier: Apache-2.0
"""Pictures of ops, from calls of this build: functions with their derivatives. SVG texts, the same in each run."""

import io
import math
import warnings

import matplotlib
import numpy

import quern

matplotlib.use("svg")
matplotlib.rcParams.update({
    "svg.hashsalt": "quern", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9, "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "grid.linewidth": 0.4, "grid.alpha": 0.5, "lines.linewidth": 1.4,
    "legend.frameon": False, "figure.figsize": (6.4, 3.2), "figure.constrained_layout.use": True})
from matplotlib import pyplot  # noqa: E402

COLOURS = {"quern": "#2b6cb0", "derivative": "#dd6b20", "numpy": "#38a169", "torch": "#9f7aea", "bound": "#c53030", "second": "#718096"}


def svg(figure):
    """The picture's text; lines and words are of the page's colour."""
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    text = file.getvalue()
    text = text[text.index("<svg"):]
    for black in ("#000000", "rgb(0, 0, 0)"):
        text = text.replace(black, "currentColor")
    text = text.replace("<text ", '<text fill="currentColor" ')
    return text.replace("<svg ", '<svg class="plot" role="img" ', 1)


def _is_float(op):
    return "f32" in op["dtypes"] and any("f32" in output["dtypes"] for output in op["outputs"])


def _float_dtype(op):
    """The widest float that the op takes, or None. A picture of bf16 is one of what it casts to, which NumPy has."""
    found = next((name for name in ("f64", "f32", "f16") if name in op["dtypes"]), None)
    return found and {"f64": numpy.float64, "f32": numpy.float32, "f16": numpy.float16}[found]


def interval(op, widest=12.0):
    """Where a function is drawn. widest: of bounds of the domain that are far, what is drawn of them"""
    if op["domain"]:
        low, high = (float(x) for x in op["domain"][:2])
        low, high = (x if abs(x) <= widest else math.copysign(12.0, x) for x in (low, high))
        return (low, high) if high > low else (low, low + 1)
    return -4.0, 4.0


def _masked(y):
    y = numpy.asarray(y, numpy.float64)
    return numpy.where(numpy.isfinite(y), y, numpy.nan)


def _limits(axes, curves):
    """Leaves poles out of the picture: the range of the middle 96 % of the values, widened."""
    values = numpy.concatenate([numpy.ravel(curve) for curve in curves])
    values = values[numpy.isfinite(values)]
    if not values.size:
        return
    low, high = numpy.percentile(values, [2, 98])
    margin = max(high - low, 1e-3) * 0.6
    bottom, top = max(values.min(), low - margin), min(values.max(), high + margin)
    room = max(top - bottom, 1e-3) * 0.05
    axes.set_ylim(bottom - room, top + room)


# Values of parameters for plots where the defaults give a flat line.
_PARAMS = {"clip": {"min": -1, "max": 2}}


def call(op, operands, params=None):
    result = quern.op(op["name"])(*operands, **(params or {}))
    return result if isinstance(result, tuple) else (result,)


def _derivative(op, by_name, operands):
    """The op's derivative by its first input, where there is one; else None."""
    backward = by_name.get(op["backward"])
    if not backward or op["kind"] != "elementwise":
        return None
    values = {"grad": numpy.ones_like(operands[0])}
    values.update({item["name"]: operand for item, operand in zip(op["inputs"], operands)})
    results = call(op, operands)
    values.update({item["name"]: result for item, result in zip(op["outputs"], results)})
    try:
        return call(backward, [values[item["name"]] for item in backward["inputs"]])[0]
    except (KeyError, TypeError, ValueError):
        return None


def _second_values(op):
    """The values of the inputs behind the first, for which a function of several inputs is drawn."""
    kinds = [item["type"] for item in op["inputs"]]
    if len(kinds) == 2:
        return [(value,) for value in (-1.5, 0.5, 2.0)]
    return [tuple([0.5, 2.0, -1.0, 1.0, 3.0][:len(kinds) - 1])]


def _elementwise(op, by_name):
    low, high = interval(op)
    dtype = _float_dtype(op) or (numpy.bool_ if op["dtypes"] == ["bool"] else numpy.int32)
    is_float = dtype not in (numpy.bool_, numpy.int32)
    if is_float:
        x = numpy.linspace(low, high, 1201).astype(dtype)
    elif dtype == numpy.int32:
        x = numpy.arange(-16, 17, dtype=numpy.int32)
    else:
        x = numpy.array([False, True])
    figure, axes = pyplot.subplots()
    curves, names = [], [item["name"] for item in op["inputs"]]
    style = {} if is_float else {"drawstyle": "steps-mid", "marker": "o", "markersize": 3}
    rest = _second_values(op) if len(names) > 1 else [()]
    for k, values in enumerate(rest):
        operands = []
        for name, item, value in zip(names[1:], op["inputs"][1:], values):
            kind = numpy.bool_ if item["type"] == "bool" else numpy.int32 if item["type"] in ("i32", "i64") or dtype == numpy.int32 else dtype
            operands.append(numpy.full(x.shape, value, kind))
        first = x > 0 if op["inputs"][0]["type"] == "bool" else x
        results = call(op, [first] + operands, _PARAMS.get(op["name"]))
        if op["name"] in _PARAMS:
            label = op["name"] + ", " + ", ".join("{} = {:g}".format(*row) for row in _PARAMS[op["name"]].items())
        elif len(names) > 1:
            label = ", ".join("{} = {:g}".format(name, float(operand[0])) for name, operand in zip(names[1:], operands))
        else:
            label = op["name"]
        for j, result in enumerate(results):
            curve = _masked(result)
            suffix = "." + op["outputs"][j]["name"] if len(results) > 1 else ""
            axes.plot(x, curve, label=label + suffix, linestyle="-" if k + j == 0 else ("--", ":", "-.")[(k + j - 1) % 3],
                      color=COLOURS["quern"] if k + j == 0 else COLOURS["second"], **style)
            curves.append(curve)
        if k == 0 and len(results) == 1 and is_float and op["name"] not in _PARAMS:
            slope = _derivative(op, by_name, [first] + operands)
            if slope is not None and numpy.shape(slope) == numpy.shape(x):
                slope = _masked(slope)
                axes.plot(x, slope, label="derivative by " + names[0] + (" at " + label if len(names) > 1 else ""), color=COLOURS["derivative"])
                curves.append(slope)
    axes.set_xlabel(names[0] if names else "")
    _limits(axes, curves)
    if axes.get_legend_handles_labels()[1]:
        axes.legend()
    return svg(figure)


def _signal(n=64):
    t = numpy.arange(n)
    return numpy.sin(t * 0.37) + 0.6 * numpy.cos(t * 0.11 + 1) + 0.25 * numpy.sin(t * 1.9)


def _operands_of_row(op):
    """A row of 64 numbers, and what else the op takes, each of its own kind."""
    out = []
    for k, item in enumerate(op["inputs"]):
        if item["type"] in ("i64", "i32"):
            out.append(numpy.array([7] if op["is_reduced"] else [7] * 64, numpy.int64))
        elif item["name"] in ("weight", "weights"):
            out.append(numpy.linspace(0.5, 1.5, 64))
        elif item["name"] == "bias":
            out.append(numpy.linspace(-0.2, 0.2, 64))
        else:
            out.append(numpy.roll(_signal(), 9 * k))
    dtype = _float_dtype(op) or numpy.float64
    return [operand.astype(dtype) if operand.dtype == numpy.float64 else operand for operand in out]


def _operands_of_backward(op, forward):
    """The op's inputs, of a call of the op that it is the derivative of."""
    operands = _operands_of_row(forward)
    keeps = any(param["name"] == "keepdims" for param in forward["params"])
    results = call(forward, operands, {"keepdims": True} if keeps else None)
    values = {item["name"]: operand for item, operand in zip(forward["inputs"], operands)}
    values.update({item["name"]: numpy.asarray(result) for item, result in zip(forward["outputs"], results)})
    values["grad"] = numpy.ones_like(results[0]) # of a row's length one that is not constant: many derivatives of a constant are 0
    if results[0].size == 64:
        values["grad"] = numpy.roll(_signal(), 23).astype(results[0].dtype)
    return [values[item["name"]] for item in op["inputs"]]


def _row(op, by_name):
    forward = by_name.get(op["backward_of"])
    operands = _operands_of_backward(op, forward) if forward else _operands_of_row(op)
    results = call(op, operands)
    if forward: # its first input of a row's length is what is drawn beside it
        operands = [operand for operand in operands if operand.size == 64] or operands
    figure, axes = pyplot.subplots()
    name = (forward or op)["inputs"][0]["name"] if not forward or operands[0].size == 64 else "grad"
    axes.plot(operands[0], label=name, color=COLOURS["second"], marker=".", markersize=3, linewidth=0.8)
    for k, result in enumerate(results):
        result = _masked(result)
        label = op["name"] + ("." + op["outputs"][k]["name"] if len(results) > 1 else "")
        if result.size == 1:
            number = float(result.reshape(()))
            axes.axhline(number, label="{} = {:.6g}".format(label, number), linestyle="-" if k == 0 else "--", color=COLOURS["quern"])
        else:
            axes.plot(result.reshape(-1), label=label, color=COLOURS["quern"] if k == 0 else COLOURS["derivative"], marker=".", markersize=3)
    axes.set_xlabel("index")
    axes.legend()
    return svg(figure)


# ---- Copies, casts, sequences ----

_CASTS = {"saturate_cast": (numpy.linspace(-60, 320, 761), numpy.uint8), "astype": (numpy.linspace(-4, 4, 801), numpy.int32)}


def _sequence(op):
    """Results by their index, of an op that makes a tensor."""
    out = numpy.empty(24)
    quern.op(op["name"])(*([0.5] if op["kind"] == "cast" else []), out=out)
    figure, axes = pyplot.subplots()
    axes.plot(out, label=op["name"], color=COLOURS["quern"], marker="o", markersize=3)
    axes.set_ylim(min(0, out.min()), 1.1 * out.max())
    axes.set_xlabel("index")
    axes.legend()
    return svg(figure)


def _cast(op):
    x, dtype = _CASTS.get(op["name"], _CASTS["astype"])
    out = numpy.empty(x.shape, dtype)
    quern.op(op["name"])(x, out=out)
    figure, axes = pyplot.subplots()
    axes.plot(x, x, label="x", color=COLOURS["second"], linewidth=0.8)
    axes.plot(x, out, label="to " + out.dtype.name, color=COLOURS["quern"])
    axes.set_xlabel(op["inputs"][0]["name"])
    axes.legend()
    return svg(figure)


def _moved(op):
    """Elements that are copied or chosen: by their index."""
    values = {item["name"]: numpy.roll(_signal(), 9 * k) for k, item in enumerate(op["inputs"])}
    if "condition" in values:
        values["condition"] = values["x"] > 0
    elif op["kind"] == "compact":
        values["x"] = numpy.where(values["x"] > 0.5, values["x"], 0)
    results = call(op, [values[item["name"]] for item in op["inputs"]])
    figure, axes = pyplot.subplots()
    for name, style in (("x", "-"), ("y", ":")):
        if name in values:
            axes.plot(values[name], label=name, color=COLOURS["second"], linestyle=style, marker=".", markersize=3, linewidth=0.8)
    result = numpy.asarray(results[0]).reshape(-1)
    label = op["name"] + ("(x > 0, x)" if "condition" in values and "y" not in values else "(x > 0, x, y)" if "condition" in values else "")
    axes.plot(result, label=label, color=COLOURS["quern"], marker=".", markersize=4)
    axes.set_xlabel("index")
    axes.legend()
    return svg(figure)


def function(op, by_name):
    """A picture of what the op computes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if op["kind"] in ("row", "reduction", "scan", "adjoint"):
            return _row(op, by_name)
        if op["kind"] == "elementwise" and op["inputs"]:
            return _elementwise(op, by_name)
        if not op["inputs"]:
            return _sequence(op)
        return _cast(op) if op["kind"] == "cast" else _moved(op)


# ---- The index ----

def _path(x, y, low, high, bottom, top, colour, width):
    """A curve in a small picture, without what lies far outside."""
    parts, is_down = [], False
    for a, b in zip(x, y):
        if not math.isfinite(b) or not bottom - (top - bottom) <= b <= top + (top - bottom):
            is_down = False
            continue
        parts.append("{}{:.1f} {:.1f}".format("L" if is_down else "M", 4 + 112 * (a - low) / (high - low), 56 - 48 * (b - bottom) / (top - bottom)))
        is_down = True
    return '<path d="{}" fill="none" stroke="{}" stroke-width="{}"/>'.format("".join(parts), colour, width)


def _small_curves(op):
    """([x, y, colour, width]...) of a small picture: the first is what gives it its range."""
    if op["kind"] in ("row", "reduction", "scan"):
        operands = _operands_of_row(op)
        result = _masked(call(op, operands)[0]).reshape(-1)
        at = numpy.arange(64)
        signal = [at, _masked(operands[0]), COLOURS["second"], 0.8]
        if result.size not in (1, 64):
            return [signal]
        return [signal, [at, numpy.broadcast_to(result, (64,)), COLOURS["quern"], 1.6]]
    if op["kind"] != "elementwise" or not op["inputs"] or any(item["type"] for item in op["inputs"]):
        return []
    if "f32" in op["dtypes"]:
        low, high = interval(op)
        x = numpy.linspace(low, high, 241).astype(_float_dtype(op))
        rest = 0.5
    elif "i32" in op["dtypes"]:
        x, rest = numpy.arange(-16, 17, dtype=numpy.int32), 3
    else:
        return []
    operands = [x] + [numpy.full(x.shape, rest, x.dtype) for _ in op["inputs"][1:]]
    return [[x, _masked(call(op, operands, _PARAMS.get(op["name"]))[0]), COLOURS["quern"], 1.6]]


def small(op, by_name):
    """A small picture for the index: the curve alone; of a row its numbers, and what is made of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        curves = _small_curves(op)
    finite = numpy.concatenate([y[numpy.isfinite(y)] for _, y, _, _ in curves]) if curves else numpy.empty(0)
    if not finite.size:
        return None
    bottom, top = numpy.percentile(finite, [2, 98]) if len(curves) == 1 else (finite.min(), finite.max())
    if numpy.isin(finite, (0, 1)).all():
        bottom, top = 0, 1
    top = top if top > bottom else bottom + 1
    low, high = float(curves[0][0][0]), float(curves[0][0][-1])
    return ('<svg class="small" viewBox="0 0 120 64" role="img" aria-label="{}">{}</svg>').format(
        op["name"], "".join(_path(x, y, low, high, bottom, top, colour, width) for x, y, colour, width in curves))
