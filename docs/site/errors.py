# SPDX-License-Identifier: Apache-2.0
"""What a page says of an op's measured error: a picture, or a sentence. Measured are f32 results of this build against the op's own
results in f64, of the same operands; those are good to 2^-28 of an f32's last place (ACCURACY.md). Ops over axes are measured by the
length of a row, elementwise ops over an interval."""

import functools
import warnings
from collections import namedtuple

import numpy

import quern
from plots import COLOURS, call, interval, pyplot, svg
from quern._facts import ALIASES

POINTS = 1 << 17  # operands of an elementwise op, and elements of the longest rows
ROW_ELEMENTS = 1 << 14  # of each length of shorter rows, at least
BINS = 320
WIDEST = 200.0  # an interval's half width, at most
MOST_LINEAR = 16.0  # errors above are drawn on a logarithmic axis
OTHER_FUNCTION = 1e4  # ULP: the name means another function there

# picture: SVG or ""; kind: "error" (some results differ from the exact ones), "exact" (none does), "none" (there is nothing to measure),
# "above" (an error is larger than the spec declares)
Measured = namedtuple("Measured", "picture words kind")


# ---- Other libraries ----

def _numpy_function(name):
    """NumPy's function of an op, under its name or an alias of it."""
    names = [name] + [alias for alias, ours in ALIASES.items() if ours == name]
    return next((getattr(numpy, other) for other in names if hasattr(numpy, other)), None)


_TORCH_NAMES = {"log_sigmoid": "logsigmoid", "hard_sigmoid": "hardsigmoid", "hard_swish": "hardswish"}


@functools.cache
def _peers():
    """[(name, key of its colour, the word for an axis, function(op name) -> callable of arrays, or None)]"""
    peers = [("NumPy", "numpy", "axis", _numpy_function)]
    try:
        import torch
    except ImportError:
        return peers

    def find(name):
        name = _TORCH_NAMES.get(name, name)
        places = (torch.nn.functional, torch, torch.special) if name not in ("sigmoid", "tanh") else (torch,)
        found = next((getattr(place, name) for place in places if hasattr(place, name)), None)

        def run(*arrays, **words):
            result = found(*(torch.from_numpy(a) for a in arrays), **words)
            return tuple(r.numpy() for r in result) if isinstance(result, tuple) else result.numpy()

        return found and run

    return peers + [("PyTorch", "torch", "dim", find)]


# ---- Operands ----

def _numbers(item, shape, random, draw, classes=None):
    """An operand: of its own dtype where it has one."""
    if item["type"] == "bool":
        return random.integers(0, 2, shape).astype(numpy.bool_)
    if item["type"]:
        if classes:
            return random.integers(0, classes, (shape[0], 1)).astype(item["type"].replace("i", "int"))
        return random.integers(-16, 17, shape).astype(item["type"].replace("i", "int"))
    return draw(shape).astype(numpy.float32)


def _with_results(op, forward, values, words):
    """Adds what the derivative of an op takes: the op's results, and a gradient for each of them."""
    results = call(forward, [values[item["name"]] for item in forward["inputs"]], dict(_params(forward), **words))
    values.update({item["name"]: numpy.asarray(result) for item, result in zip(forward["outputs"], results)})
    return next((numpy.shape(result) for result in results if result.dtype == numpy.float32), numpy.shape(results[0]))


def _missing(op, values, shape, random):
    """Adds a number for each input that has none yet: gradients, and what else a part of a derivative takes."""
    for item in op["inputs"]:
        if item["name"] not in values:
            values[item["name"]] = random.uniform(-4, 4, shape).astype(numpy.float32)


def _wide(values):
    """The operands in f64."""
    return [value.astype(numpy.float64) if value.dtype == numpy.float32 else value for value in values]


# ---- Errors ----

def _ulp(exact):
    """The distance of two f32 at the exact values."""
    return 2.0 ** (numpy.floor(numpy.log2(numpy.maximum(numpy.abs(exact), 2.0 ** -126))) - 23)


def _params(op):
    """The op's own parameters, of which an f32 call and one in f64 compute with the same numbers: those of f32."""
    numbers = {param["name"]: param["value"] for param in op["params"] if param["name"] not in ("axes", "keepdims") and param["value"] != ""}
    return {name: value if isinstance(value, int) else float(numpy.float32(value)) for name, value in numbers.items()}


def _difference(got, exact):
    """|got - exact|, infinite where only one of them is NaN; 0 where the exact result is no f32."""
    got, exact = numpy.asarray(got, numpy.float64), numpy.asarray(exact, numpy.float64)
    error = numpy.where(got == exact, 0, numpy.abs(got - exact))
    error = numpy.where(numpy.isnan(got) & numpy.isnan(exact), 0, numpy.where(numpy.isnan(error), numpy.inf, error))
    return numpy.where(numpy.abs(exact) >= 3.4e38, 0, error)


def _in_units(got, exact, unit):
    """|got - exact| in units, which matter only where the two differ."""
    error = _difference(got, exact)
    return numpy.where(error == 0, 0, error / unit)


def _pairs(got, exact):
    """[(got, exact)] of the outputs that are floats; whether the others are the same."""
    floats, is_same = [], True
    for ours, wanted in zip(got, exact):
        if ours.dtype == numpy.float32 and wanted.dtype == numpy.float64 and ours.shape == wanted.shape:
            floats.append((ours, wanted))
        else:
            is_same = is_same and ours.dtype == wanted.dtype and numpy.array_equal(ours, wanted, equal_nan=ours.dtype.kind == "f")
    return floats, is_same


def _tuple(result):
    return tuple(numpy.asarray(r) for r in result) if isinstance(result, tuple) else (numpy.asarray(result),)


def _f32_results(function, operands, words, like):
    """The results of another library, or None where it refuses, or answers in another dtype or shape."""
    try:
        results = _tuple(function(*operands, **words))
    except (TypeError, ValueError, RuntimeError, IndexError):
        return None
    if len(results) != len(like) or any(a.dtype != b.dtype or a.size != b.size for a, b in zip(results, like)):
        return None
    return [a.reshape(b.shape) for a, b in zip(results, like)]


def _largest(arrays):
    """The largest absolute value at each place of the arrays."""
    return functools.reduce(numpy.maximum, [numpy.abs(a) for a in arrays])


def _said(largest, unit):
    return ", ".join("{} {:.3g}".format(name, value) for name, value in largest.items()) + " " + unit


def _finish(axes, most):
    """Chooses the axis of errors, by the largest of them, and writes the legend."""
    if most > MOST_LINEAR:
        axes.set_yscale("symlog", linthresh=0.5)
    axes.set_ylabel("error in ULP, f32")
    axes.set_ylim(bottom=0)
    axes.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.2))


def _above(words):
    return Measured("", f"**Errors are above the declared bound**: {words}\n", "above")


def _about_bound(op, largest, is_declared):
    """What a page says where no bound is declared."""
    words = ""
    if op["backward_of"] and largest["Quern"] > MOST_LINEAR:
        words = " Where terms of a derivative cancel, its error is large in units of a small result."
    return words + ("" if is_declared else " Derivatives declare no bound." if op["backward_of"] else " No bound is declared.")


# ---- Elementwise ops ----

def _worst(x, error, edges):
    place = numpy.clip(numpy.searchsorted(edges, x, "right") - 1, 0, len(edges) - 2)
    worst = numpy.zeros(len(edges) - 1)
    numpy.maximum.at(worst, place, error)
    return worst


def _over_interval(x, low, high, label, curves, bound):
    """(picture, {library: largest error}) of errors by x: the largest of each part of the interval. curves: (library, colour, errors)"""
    edges = numpy.linspace(low, high, BINS + 1)
    figure, axes = pyplot.subplots(figsize=(6.4, 2.6))
    largest = {}
    for library, key, error in curves:
        if library != "Quern" and not error.max() <= OTHER_FUNCTION:
            continue
        largest[library] = float(error.max())
        axes.step(edges[:-1], _worst(x, error, edges), where="post", label=library, color=COLOURS[key], linewidth=1.0,
                  zorder=3 if key == "quern" else 2)
    if bound is not None:
        axes.axhline(bound, color=COLOURS["bound"], linestyle="--", linewidth=1, label=f"declared: {bound:g}")
    axes.set_xlabel(label)
    _finish(axes, max(largest.values()))
    if max(largest.values()) <= MOST_LINEAR:
        axes.set_ylim(0, max([bound or 0] + [value for value in largest.values() if bound is None or value < 8 * bound]) * 1.15)
    return svg(figure), largest


def _declared(op):
    """The declared bound in ULP of f32, or None."""
    if op["backward_of"]:
        return None
    bound = op.get("ulp", {}).get("f32")
    return bound if bound is not None else 0.5 if op["error"].startswith("correctly") else None


def _elementwise(op, by_name):
    forward = by_name.get(op["backward_of"])
    of = forward if forward and forward["kind"] in ("elementwise", "copy") else op
    low, high = interval(of, WIDEST)
    random = numpy.random.default_rng(7)
    values = {item["name"]: _numbers(item, (POINTS,), random, lambda shape: random.uniform(low, high, shape)) for item in of["inputs"]}
    if of is not op:
        _with_results(op, of, values, {})
    _missing(op, values, (POINTS,), random)
    operands = [values[item["name"]] for item in op["inputs"]]
    along = next((item["name"] for item in of["inputs"] if not item["type"]), of["inputs"][0]["name"])
    got, exact = (call(op, given, _params(op)) for given in (operands, _wide(operands)))
    floats, is_same = _pairs(got, exact)
    if not floats:
        return _same_outputs(op, is_same, POINTS)
    peers = [(label, key, _f32_results(find(op["name"]), operands, {}, got)) for label, key, _, find in _peers() if find(op["name"])]
    is_of_operands = "ULP of the larger operand" in op["doc"]
    units = [_ulp(_largest([b] + _wide(operands) * is_of_operands)) for _, b in floats]
    errors = lambda results: functools.reduce(numpy.maximum, [_in_units(a, b, unit) for (a, b), unit in zip(_pairs(results, exact)[0], units)])
    ours, bound = errors(got), _declared(op)
    if is_same and not ours.any():
        return Measured("", f"All of {POINTS} f32 results, of operands from {low:g} to {high:g}, are exactly those in f64.\n", "exact")
    if bound is not None and float(ours.max()) > bound:
        if any(label == "NumPy" and results and all(map(numpy.array_equal, results, got)) for label, _, results in peers):
            return Measured("", f"The function depends on the dtype: all of {POINTS} f32 results are NumPy's, bit for bit.\n", "exact")
        return _above(f"{ours.max():g} ULP, declared are {bound:g}.")
    curves = [("Quern", "quern", ours)] + [(label, key, errors(results)) for label, key, results in peers if results]
    picture, largest = _over_interval(values[along].astype(numpy.float64), low, high, along, curves, bound)
    unit = "ULP" + " of the largest of the result and its operands" * is_of_operands
    return Measured(picture, f"The largest error in each part of the interval, of {POINTS} f32 operands drawn from it; in all of it: "
                    f"{_said(largest, unit)}. Exact values are the op's own in f64.{_about_bound(op, largest, bound is not None)}\n", "error")


def _same_outputs(op, is_same, count):
    if not is_same: # the op rounds before it compares, or counts
        return Measured("", f"Not all of {count} results of f32 operands are those of the same operands in f64.\n", "error")
    if op["outputs"][0]["dtypes"] == ["f64"]:
        return Measured("", f"Results are f64: all of {count} of f32 operands are those of the same operands in f64.\n", "exact")
    return Measured("", f"Nothing is rounded: all of {count} results of f32 operands are those of the same operands in f64.\n", "exact")


# ---- Ops over axes ----

def _row_operands(op, forward, n, random):
    """Rows of n elements from 3/4 to 4/3 for each input of the op; of a derivative, of a call of the op that it is the derivative of."""
    of = forward or op
    rows = max(8, ROW_ELEMENTS // n)
    values = {item["name"]: _numbers(item, (rows, n), random, lambda shape: (4 / 3) ** random.uniform(-1, 1, shape), n) for item in of["inputs"]}
    if forward:
        words = {"axis": -1}
        if any(param["name"] == "keepdims" for param in of["params"]):
            words["keepdims"] = True
        shape = _with_results(op, of, values, words)
        _missing(op, values, shape, random)
    return [values[item["name"]] for item in op["inputs"]]


def _bound_of(op, n, k, operands, like):
    """The declared bound of each result of each row of n = 2^k elements, for each output, computed in f64; empty: none is declared."""
    declared = _declared(op)
    if declared is not None:
        return [declared * _ulp(exact) for exact in like]
    if "bound" not in op:
        return []
    text, names = op["bound"]["text"], [output["name"] for output in op["outputs"]]
    if len(names) == 1:
        text = f"bound_of_{names[0]} = {text}"
    params = dict(_params(op), u=op["bound"]["u"], depth=op["bound"]["depths"][k], count=n)
    function = quern.compile("".join(f"param {name}; " for name in params) + text)
    given = [operand for item, operand in zip(op["inputs"], _wide(operands)) if item["name"] in function.inputs]
    order = [item["name"] for item in op["inputs"] if item["name"] in function.inputs]
    given = [given[order.index(name)] for name in function.inputs]
    out = [numpy.empty(wanted.shape) for wanted in like]
    for row in range(len(operands[0])):
        for place, result in zip(out, _tuple(function(*(operand[row] for operand in given), **params))):
            place[row] = result.reshape(place[row].shape)
    is_narrowed = op["bound"]["u"] < 2.0 ** -30 # computed in f64, and rounded
    return [bound + 0.5 * _ulp(exact) if is_narrowed else bound for bound, exact in zip(out, like)]


def _largest_of_rows(arrays):
    """The largest absolute value of each row of the arrays; of what is reduced a row has one number."""
    return _largest([numpy.abs(a).max(axis=-1, keepdims=True) for a in arrays])


def _rows(op, by_name):
    forward = by_name.get(op["backward_of"])
    if forward and forward["kind"] not in ("row", "reduction", "scan"):
        forward = None
    random = numpy.random.default_rng(7)
    lengths = [1 << k for k in range(15)]
    is_own_unit = (op["is_reduced"] or op["kind"] == "scan") and not op["backward_of"]
    curves, bounds, total, is_same, has_floats = {}, {}, 0, True, False
    for k, n in enumerate(lengths):
        operands = _row_operands(op, forward, n, random)
        words = dict(_params(op), axis=-1)
        got, exact = call(op, operands, words), call(op, _wide(operands), words)
        floats, same = _pairs(got, exact)
        total += sum(result.size for result in got)
        is_same, has_floats = is_same and same, has_floats or bool(floats)
        if not floats:
            continue
        units = [_ulp(b if is_own_unit else _largest_of_rows([b] + [operands[0]] * bool(op["backward_of"]))) for _, b in floats]
        worst = lambda results: max(float(_in_units(a, b, unit).max()) for (a, b), unit in zip(_pairs(results, exact)[0], units))
        curves.setdefault("Quern", {})[n] = worst(got)
        for label, _, word, find in _peers():
            function = None if forward else find(op["name"])
            results = function and _f32_results(function, operands, {word: -1}, got)
            if results:
                curves.setdefault(label, {})[n] = worst(results)
        for (a, b), unit, bound in zip(floats, units, _bound_of(op, n, k, operands, [b for _, b in floats])):
            if (_difference(a, b) > bound).any():
                return _above(f"in rows of {n} elements.")
            bounds[n] = max(bounds.get(n, 0), float((bound / unit).max()))
    if not has_floats:
        return _same_outputs(op, is_same, total)
    if is_same and not any(curves["Quern"].values()):
        return Measured("", f"All of {total} f32 results, of rows of 1 to {lengths[-1]} elements, are exactly those in f64.\n", "exact")
    figure, axes = pyplot.subplots(figsize=(6.4, 2.6))
    largest = {}
    for label, key in (("Quern", "quern"), ("NumPy", "numpy"), ("PyTorch", "torch")):
        curve = curves.get(label)
        if not curve or not max(curve.values()) <= OTHER_FUNCTION and label != "Quern":
            continue
        largest[label] = max(curve.values())
        axes.plot(list(curve), list(curve.values()), label=label, color=COLOURS[key], marker=".", markersize=4, linewidth=1.0,
                  zorder=3 if key == "quern" else 2)
    most = max(largest.values())
    if bounds: # of a row of one element it can be without limit
        axes.plot(list(bounds), [min(bound, 100 * most) for bound in bounds.values()], color=COLOURS["bound"], linestyle="--", linewidth=1,
                  label="declared")
        most = max(most, *(bound for bound in bounds.values() if bound < 100 * most), 0)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("elements of a row")
    _finish(axes, most)
    unit = "ULP" if is_own_unit else "ULP of the row's largest " + ("result or gradient" if op["backward_of"] else "result")
    text = (f"The largest error of rows of 1 to {lengths[-1]} elements, drawn from 3/4 to 4/3, {total} results in all: {_said(largest, unit)}. "
            "Exact values are the op's own in f64." + " Gradients are drawn from -4 to 4." * bool(op["backward_of"]) +
            " The declared bound is that of these rows, in the same unit." * ("bound" in op))
    return Measured(svg(figure), text + _about_bound(op, largest, bool(bounds)) + "\n", "error")


# ---- All ----

_NONE = {
    "copy": "Elements are moved, with every bit: nothing is computed.\n",
    "compact": "Elements are chosen and moved, with every bit; indices are counted: nothing is rounded.\n",
    "cast": "A cast rounds once, to the nearest value of the output's dtype, ties to even.\n",
}


def _cast(op):
    """f32 results of f64 operands beside NumPy's casts."""
    random = numpy.random.default_rng(7)
    x = random.uniform(-1e3, 1e3, POINTS)
    out = numpy.empty(POINTS, numpy.float32)
    if op["inputs"]:
        quern.op(op["name"])(x, out=out)
        is_same = numpy.array_equal(out, x.astype(numpy.float32))
    else:
        is_same = True
        for value in x[:256]:
            quern.op(op["name"])(value, out=out)
            is_same = is_same and bool((out == numpy.float32(value)).all())
    if not is_same:
        raise ValueError(f"{op['name']}: a cast to f32 is not NumPy's")
    return Measured("", _NONE["cast"].rstrip() + f" All of {POINTS} results from f64 to f32 are NumPy's.\n", "exact")


def _index(op):
    """Sequences of POINTS elements in f32 and f64."""
    is_step = any(param["name"] == "step" for param in op["params"])
    words = {"start": 0.1, "step": 0.3} if is_step else {"start": 0.1, "stop": 97.3}
    got, exact = numpy.empty(POINTS, numpy.float32), numpy.empty(POINTS, numpy.float64)
    for out in (got, exact):
        quern.op(op["name"])(out=out, **words)
    curves = [("Quern", "quern", got)]
    if is_step:
        curves.append(("NumPy", "numpy", numpy.arange(0.1, 0.1 + 0.3 * (POINTS + 1), 0.3, numpy.float32)[:POINTS]))
    else:
        curves.append(("NumPy", "numpy", numpy.linspace(0.1, 97.3, POINTS, dtype=numpy.float32)))
    curves = [(label, key, _in_units(results, exact, _ulp(exact))) for label, key, results in curves]
    picture, largest = _over_interval(numpy.arange(POINTS, dtype=numpy.float64), 0, POINTS, "index", curves, None)
    said = ", ".join(f"{name} = {value:g}" for name, value in words.items())
    return Measured(picture, f"The largest error in each part of {POINTS} f32 results ({said}); in all of them: {_said(largest, 'ULP')}. "
                    f"Exact values are the same sequence in f64.{_about_bound(op, largest, False)}\n", "error")


def measured(op, by_name):
    """What the page of an op says of its errors."""
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if op["kind"] in ("copy", "compact"):
            return Measured("", _NONE[op["kind"]], "none")
        if op["kind"] == "cast":
            return _cast(op)
        if op["kind"] == "index":
            return _index(op)
        if "f32" not in op["dtypes"]:
            return Measured("", "No operand is f32: nothing is measured.\n" if {"f64", "f16", "bf16"} & set(op["dtypes"]) else
                            "Its operands are no floats: nothing is rounded.\n", "none")
        if "f64" not in op["dtypes"]:
            return Measured("", "It is not computed in f64, which errors of f32 are measured against.\n", "none")
        return _elementwise(op, by_name) if op["kind"] == "elementwise" else _rows(op, by_name)
