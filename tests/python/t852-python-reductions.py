# SPDX-License-Identifier: Apache-2.0
# tags: memory
"""Reducing ops from Python: axis, keepdims, dtype and out as in the array API, beside a definition in Python, and beside NumPy
over random axes, layouts and dtypes; PyTorch's tensors and other producers; what is refused."""

import array
import inspect
import itertools
import math
import os
import random
import tempfile
import warnings

import quern
from tap import diag, done_testing, is_, ok, raises, skip, skip_all

try:
    import numpy as np
except ImportError:
    np = None
try:
    import torch
except ImportError:
    torch = None


def first_of(best):
    return lambda values: values.index(best(values))


# Of a list, in row-major order of the axes that are reduced.
REFERENCE = {"sum": sum, "prod": math.prod, "max": max, "min": min, "mean": lambda values: sum(values) / len(values),
             "argmax": first_of(max), "argmin": first_of(min), "any": any, "all": all,
             "count_nonzero": lambda values: sum(map(bool, values))}
NAMES = [name for name in REFERENCE if hasattr(quern, name)]
if "sum" not in NAMES:
    skip_all("this build has some ops only, and no sum")
diag("ops: " + " ".join(NAMES))


def get(nested, index):
    for i in index:
        nested = nested[i]
    return nested


def indices(extents):
    return itertools.product(*map(range, extents))


def reduced(name, nested, shape, axes, keepdims=False):
    """The definition: nested lists."""
    axes = range(len(shape)) if axes is None else [axis % len(shape) for axis in ((axes,) if isinstance(axes, int) else axes)]
    kept = [1 if k in axes else n for k, n in enumerate(shape)]

    def value(at):
        return REFERENCE[name]([get(nested, [i if k in axes else at[k] for k, i in enumerate(index)])
                                for index in indices(n if k in axes else 1 for k, n in enumerate(shape))])

    def build(at):
        k = len(at)
        if k == len(shape):
            return value(at)
        if k in axes and not keepdims:
            return build(at + [0])
        return [build(at + [i]) for i in range(kept[k])]

    return build([])


def numbers(shape, make):
    return [numbers(shape[1:], make) for _ in range(shape[0])] if shape else make()


# ---- Axes, without NumPy ----

random.seed(852)
AXES = [None, (), 0, 1, 2, -1, -3, (0,), (0, 1), (1, 0), (-1, 0), (2, -2), (0, 1, 2), (-3, -1, 1)]
shape = (3, 4, 5)
integers = numbers(shape, lambda: random.randint(-3, 3))
x = quern.asarray(integers, dtype="f32")
for name in NAMES:
    op = getattr(quern, name)
    for axes in AXES:
        for keepdims in (False, True):
            got = op(x, axis=axes, keepdims=keepdims)
            wanted = reduced(name, integers, shape, axes, keepdims)
            if name == "mean":
                wanted = quern.asarray(wanted, dtype="f32").tolist()
            is_(got.tolist(), wanted, "{} axis={} keepdims={}".format(name, axes, keepdims))
    is_(op(x).tolist(), op(x, axis=None).tolist(), name + ": None is what it is without")
is_((quern.sum(x).shape, quern.sum(x, axis=()).shape, quern.sum(x, keepdims=True).shape), ((), (3, 4, 5), (1, 1, 1)), "shapes")
is_(quern.sum(x, 1).tolist(), quern.sum(x, axis=1).tolist(), "axis by place")
is_(quern.sum(x, 1, True).tolist(), quern.sum(x, axis=1, keepdims=True).tolist(), "keepdims, too")
is_(quern.sum(keepdims=True, axis=1, x=x).shape, (3, 1, 5), "all by name")
is_(quern.sum(x, keepdims=1).shape, (1, 1, 1), "keepdims=1")
is_(quern.sum(x, keepdims=None).shape, (), "keepdims=None is the default")
is_(quern.call("sum", x, axis=0).tolist(), quern.sum(x, axis=0).tolist(), "quern.call")
is_(quern.Context().call("sum", x, axis=0).tolist(), quern.sum(x, axis=0).tolist(), "a context's")


class Axis:
    """An int of some library."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


is_(quern.sum(x, axis=Axis(-2)).tolist(), quern.sum(x, axis=1).tolist(), "axis: what has __index__")
is_(quern.sum(x, axis=(Axis(0), 1)).tolist(), quern.sum(x, axis=(0, 1)).tolist(), "in a tuple, too")

# ---- One layout, other axes in turn: plans are remembered with their axes ----

square = [[1.0, 2.0], [4.0, 8.0]]
y, out = quern.asarray(square), quern.empty(2)
for axes in (0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, -2, -1, 0, 1, 0, 1):
    is_(quern.sum(y, axis=axes, out=out).tolist(), reduced("sum", square, (2, 2), axes), "again: axis={}".format(axes))
whole = quern.empty((1, 1))
for keepdims in (True, False) * 8:
    got = quern.sum(y, keepdims=keepdims, out=whole if keepdims else None)
    is_(got.tolist(), [[15.0]] if keepdims else 15.0, "again: keepdims={}".format(keepdims))
if hasattr(quern, "leaky_relu"):
    negative, place = quern.asarray([-1.0]), quern.empty(1)
    for slope in (0.5,) * 7 + (0.25,) * 7 + (0.5, 0.25, 0.5, 0.0, -0.0):
        is_(str(quern.leaky_relu(negative, slope, out=place).tolist()), str([-slope]), "another parameter: {}".format(slope))
else:
    skip(19, "this build has some ops only, and no leaky_relu")

# ---- Dtypes and out ----

small = quern.asarray([[100, 100], [1, 2]], dtype="i8")
is_((quern.sum(small).dtype, quern.sum(small, axis=1).tolist()), ("int64", [200, 3]), "sum of i8: i64")
is_(str(quern.sum(quern.asarray([1], dtype="u8")).dtype), "uint64", "of u8: u64")
flags = quern.asarray([True, False, True])
is_((quern.sum(flags).dtype, quern.sum(flags).tolist()), ("int64", 2), "of bools: i64, a count")
for dtype, wanted in (("i8", [-56, 3]), ("i16", [200, 3]), ("i32", [200, 3]), ("f32", [200.0, 3.0]), ("f64", [200.0, 3.0]),
                      ("u64", [200, 3])):
    got = quern.sum(small, axis=1, dtype=dtype)
    is_((got.dtype == dtype, got.tolist()), (True, wanted), "sum of i8 with dtype={}".format(dtype))
wide = quern.asarray([2.0**24, 1.0, 1.0])
is_((quern.sum(wide).tolist(), quern.sum(wide, dtype="f32").tolist()), (2.0**24, 2.0**24), "a sum in f32")
is_(quern.sum(wide, dtype="f64").tolist(), 2.0**24 + 2, "dtype=f64: values are converted before they are added")
into = quern.empty((), dtype="f64")
ok(quern.sum(wide, dtype="f64", out=into) is into and into.tolist() == 2.0**24 + 2, "with out, too")
is_(quern.sum(quern.asarray([0.5, 0.5, 1.5]), dtype="i32").tolist(), 1, "floats to integers: each is cut")
is_(str(quern.sum(flags, dtype="f32").dtype), "float32", "bools to f32")
ok("tier" in quern.sum.explain(small, axis=1, dtype="f64"), "explain of it")
raises(TypeError, lambda: quern.sum(wide, out=into, dtype="f32"), "dtype beside another out", "either out or dtype")
if "mean" in NAMES:
    for dtype, wanted in (("i8", "float32"), ("u16", "float32"), ("i32", "float64"), ("i64", "float64"), ("f16", "float16"),
                          ("f64", "float64")):
        is_(str(quern.mean(quern.asarray([1, 2], dtype=dtype)).dtype), wanted, "mean of {}".format(dtype))
    is_(quern.mean(small, dtype="f64").tolist(), 50.75, "mean with dtype")
if "argmax" in NAMES:
    halves = quern.asarray([0.25, 0.75])
    is_((quern.argmax(halves).dtype, quern.argmax(halves).tolist()), ("int64", 1), "argmax: i64")
    is_(quern.argmax(halves, dtype="f64").tolist(), 1.0, "a dtype of the index does not cast what is compared")
out = quern.empty((3, 5))
ok(quern.sum(x, axis=1, out=out) is out and out.tolist() == reduced("sum", integers, shape, 1), "out")
ok(quern.sum(x, axis=1, out=(out,)) is out, "a tuple of it")
for wrong in ((3,), (5, 3), (3, 1, 5), ()):
    raises(ValueError, lambda: quern.sum(x, axis=1, out=quern.empty(wrong)), "out of shape {}".format(wrong), "sum")
raises(ValueError, lambda: quern.sum(x, axis=1, keepdims=True, out=out), "out without the kept dimension", "sum")
raises(TypeError, lambda: quern.sum(x, axis=1, out=quern.empty((3, 5), dtype="i32")), "out of a lower kind", "sum")
buffer = array.array("f", [0, 0])
ok(quern.sum(y, axis=0, out=buffer) is buffer and list(buffer) == [5.0, 10.0], "out is a buffer")

# ---- Nothing, and no dimensions ----

for name, wanted in (("sum", 0.0), ("prod", 1.0), ("any", False), ("all", True), ("count_nonzero", 0)):
    if name in NAMES:
        op = getattr(quern, name)
        is_(op(quern.empty((0,))).tolist(), wanted, name + " of nothing")
        is_(op(quern.empty((2, 0)), axis=1).tolist(), [wanted] * 2, "  of empty rows")
        is_(op(quern.empty((2, 0)), axis=0).tolist(), [], "  no rows of nothing")
if "mean" in NAMES:
    ok(math.isnan(quern.mean(quern.empty((0,))).tolist()), "mean of nothing: NaN")
for name in ("max", "min", "argmax", "argmin"):
    if name in NAMES:
        op = getattr(quern, name)
        raises(ValueError, lambda: op(quern.empty((0,))), name + " of nothing is refused", name)
        raises(ValueError, lambda: op(quern.empty((2, 0)), axis=1), "  of empty rows", name)
        is_(op(quern.empty((2, 0)), axis=0).tolist(), [], "  no rows are none")
scalar = quern.asarray(3.0)
for axes in (None, ()):
    is_(quern.sum(scalar, axis=axes).tolist(), 3.0, "0-d, axis={}".format(axes))
for name in NAMES:
    is_(getattr(quern, name)(scalar).tolist(), REFERENCE[name]([3.0]), "0-d: " + name)

for name, wanted in (("sum", 7.5), ("prod", 7.5), ("max", 7.5), ("min", 7.5)):
    if name in NAMES:
        op = getattr(quern, name)
        is_(op(quern.empty((0,)), initial=7.5).tolist(), wanted, name + " of nothing with initial")
        is_(op(quern.empty((2, 0)), axis=1, initial=7.5).tolist(), [wanted] * 2, "  of empty rows")
        is_(op(y, axis=0, initial=None).tolist(), op(y, axis=0).tolist(), "  None is none")
        is_(op.params["initial"], None, "  the default")
if "min" in NAMES:
    is_(quern.max(y, axis=1, initial=3).tolist(), [3.0, 8.0], "max with initial")
    is_(quern.min(small, axis=1, initial=-5).tolist(), [-5, -5], "min of i8 with initial")
    is_(quern.sum(small, initial=1000).tolist(), 1203, "sum of i8 with an initial beyond i8")
    is_(quern.sum(y, axis=1, keepdims=True, initial=0.5).tolist(), [[3.5], [12.5]], "  beside keepdims")
else:
    skip(4, "this build has no min")
raises(TypeError, lambda: quern.max(y, initial="1"), "initial is a number", "initial")
raises(TypeError, lambda: quern.mean(y, initial=1), "mean has none", "initial")

# ---- Ops of rows: softmax and its like ----

rows = [name for name in quern.ops() if "axis" in quern.op(name).params and "keepdims" not in quern.op(name).params]
diag("of rows: " + " ".join(rows))
if hasattr(quern, "softmax"):
    equal = quern.asarray([[1.0] * 4] * 2)
    is_(quern.softmax.params["axis"], -1, "softmax: the last axis")
    is_(quern.softmax(equal).tolist(), [[0.25] * 4] * 2, "  which it takes")
    is_(quern.softmax(equal, axis=0).tolist(), [[0.5] * 4] * 2, "  or another")
    is_(quern.softmax(equal, axis=None).tolist(), [[0.125] * 4] * 2, "  or all")
    is_(quern.softmax(equal, axis=(0, 1)).tolist(), [[0.125] * 4] * 2, "  or two")
    is_(quern.softmax(scalar).tolist(), 1.0, "  of a number")
    is_(quern.softmax(quern.asarray([1, 1]), dtype="f64").tolist(), [0.5, 0.5], "  with dtype")
    z = quern.asarray([[1.0] * 4] * 2)
    ok(quern.softmax(z, out=z) is z and z.tolist() == [[0.25] * 4] * 2, "  in place")
    raises(TypeError, lambda: quern.softmax(equal, keepdims=True), "  it has no keepdims", "keepdims")
else:
    skip(9, "this build has no softmax")
if hasattr(quern, "mean_backward"):
    is_((quern.mean_backward.params["axis"], quern.softmax_backward.params["axis"]), (None, -1), "derivatives: the axes of what they are of")
    is_(quern.mean_backward(quern.asarray([[8.0]]), y).tolist(), [[2.0] * 2] * 2, "  of mean: all")
    is_(quern.mean_backward(quern.asarray([[8.0], [4.0]]), y, axis=1).tolist(), [[4.0] * 2, [2.0] * 2], "  or one")
else:
    skip(3, "this build has no mean_backward")
if hasattr(quern, "nll_loss_backward"):
    # of t alone, of extent 1, a row has as many places as x has elements
    x2, t2, g2 = quern.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]), quern.asarray([[2], [0]], dtype="i32"), quern.asarray([[2.0], [3.0]])
    for name in ("nll_loss_backward", "cross_entropy_backward"):
        text = name + "(g, x, t, axis=-1)"
        is_(quern.compile(text)(g2, x2, t2).tolist(), quern.op(name)(g2, x2, t2, axis=-1).tolist(), "in an expression: " + text)
    is_(quern.compile("nll_loss_backward(g, x, t)")(quern.asarray(2.0), x2, quern.asarray(4)).tolist(), [[0, 0, 0], [0, -2, 0]],
        "  of fewer dimensions")
else:
    skip(3, "this build has no nll_loss_backward")
if hasattr(quern, "cosine_similarity"):
    for dtype in ("f32", "f64"):
        none = quern.empty((2, 0), dtype=dtype)
        is_(quern.cosine_similarity(none, none, axis=1).tolist(), [0.0, 0.0], "cosine_similarity of nothing, " + dtype)
else:
    skip(2, "this build has no cosine_similarity")
if hasattr(quern, "cumulative_sum"):
    steps = quern.asarray([[1, 2], [3, 4]])
    is_(quern.cumulative_sum(steps).tolist(), [[1, 3], [3, 7]], "cumulative_sum")
    is_(quern.cumulative_sum(steps, axis=0).tolist(), [[1, 2], [4, 6]], "  along another axis")
    is_(quern.cumulative_sum(quern.asarray([1, 2]), axis=None).tolist(), [1, 3], "  axis=None of one dimension")
    for axis in ((0, 1), (), None):
        try:
            quern.cumulative_sum(steps, axis=axis)
            words = ""
        except ValueError as error:
            words = str(error)
        ok("give an int from -2 to 1" in words, "  along {}: {}".format(axis, words))
    text = "y = cumulative_sum(x / sum(x, axis=-1), axis=-1, exclusive=1)"
    is_(quern.compile(text)(quern.asarray([[1.0, 3.0], [2.0, 2.0]])).tolist(), [[0, 0.25], [0, 0.5]], "  in an expression")
else:
    skip(7, "this build has no cumulative_sum")
if hasattr(quern, "cross_entropy"):
    none, classes = quern.empty((2, 0), dtype="f32"), quern.asarray([[0], [0]])
    for name in ("cross_entropy", "nll_loss"):
        got = quern.op(name)(none, classes, axis=-1).tolist()
        ok(all(x != x for x in got), "{} of no classes is NaN".format(name))
else:
    skip(2, "this build has no cross_entropy")
if hasattr(quern, "cummax") and hasattr(quern, "cummin"):
    steps = quern.asarray([[3, 1, 3], [1, 5, 5]])
    is_([out.tolist() for out in quern.cummax(steps)], [[[3, 3, 3], [1, 5, 5]], [[0, 0, 0], [0, 1, 1]]], "cummax: values and places")
    is_([out.tolist() for out in quern.cummin(steps, axis=0)], [[[3, 1, 3], [1, 1, 3]], [[0, 0, 0], [1, 0, 0]]], "cummin")
    is_([out.tolist() for out in quern.cummax(steps, reverse=1)], [[[3, 3, 3], [5, 5, 5]], [[2, 2, 2], [2, 2, 2]]], "  from the end")
    values, places = quern.cummax(quern.asarray([1.0, math.nan, 2.0, math.nan]))
    is_(places.tolist(), [0, 1, 1, 1], "  the first NaN")
    is_(str(places.dtype), "int64", "  i64")
else:
    skip(5, "this build has no cummax and cummin")
if hasattr(quern, "argmax") and hasattr(quern, "argmin"):
    ties = quern.asarray([[1, 2, 2], [2, 2, 0]])
    is_((quern.argmax(ties, axis=1).tolist(), quern.argmax(ties, axis=1, select_last_index=1).tolist()), ([1, 0], [2, 1]), "argmax: the last")
    is_((quern.argmin(ties).tolist(), quern.argmin(quern.asarray([0, 0]), select_last_index=True).tolist()), (5, 1), "argmin: the last")
    raises(ValueError, lambda: quern.argmax(ties, select_last_index=2), "  0 or 1", "select_last_index")
else:
    skip(3, "this build has no argmax")
if hasattr(quern, "diff"):
    line = quern.asarray([[1, 4, 9], [2, 2, 2]])
    is_(quern.diff(line).tolist(), [[3, 5], [0, 0]], "diff")
    is_(quern.diff(line, axis=0).tolist(), [[1, -2, -7]], "  along another axis")
    is_(quern.diff(line, n=2).tolist(), [[2], [0]], "  twice")
    is_((quern.diff(line, n=0).tolist(), quern.diff(line, n=4).shape), (line.tolist(), (2, 0)), "  not at all; too often")
    ends = quern.asarray([[0], [1]])
    is_(quern.diff(line, prepend=ends, append=ends).tolist(), [[1, 3, 5, -9], [1, 0, 0, -1]], "  with ends")
    is_(quern.diff(quern.asarray([200, 100], dtype="u8")).tolist(), [156], "  integers wrap")
    raises(ValueError, lambda: quern.diff(line, axis=2), "  of an axis that is not there", "diff: axis 2")
    raises(ValueError, lambda: quern.diff(line, n=-1), "  less than not at all", "n is -1")
    raises(ValueError, lambda: quern.diff(line, prepend=quern.asarray([0])), "  ends of another shape", "shapes")
else:
    skip(9, "this build has no diff")
if hasattr(quern, "group_norm"):
    images = quern.asarray([[[1.0, 3.0], [1.0, 3.0], [2.0, 2.0], [0.0, 4.0]]])
    groups = [[[-1.0, 1.0], [-1.0, 1.0], [0.0, 0.0], [-2 / 2**0.5, 2 / 2**0.5]]]
    close = lambda a, b: all(abs(p - q) < 1e-6 for r, s in zip(a[0], b[0]) for p, q in zip(r, s))
    ok(close(quern.group_norm(images, 2, eps=0).tolist(), groups), "group_norm")
    weight, bias = quern.asarray([1.0, 2.0, 3.0, 4.0]), quern.asarray([0.0, 1.0, 0.0, 1.0])
    got = quern.group_norm(images, 2, weight, bias, eps=0)
    wanted = [[[w * v + b for v in row] for row, w, b in zip(groups[0], (1, 2, 3, 4), (0, 1, 0, 1))]]
    ok(got.shape == (1, 4, 2) and close(got.tolist(), wanted), "  with weight and bias")
    into = quern.empty((1, 4, 2))
    ok(quern.group_norm(images, 2, weight, bias, eps=0, out=into) is into and into.tolist() == got.tolist(), "  with out")
    ok(close(quern.instance_norm(images, weight, bias, eps=1e-12).tolist(), [[[-1, 1], [-1, 3], [0, 0], [-3, 5]]]), "instance_norm")
    raises(ValueError, lambda: quern.group_norm(images, 3), "4 channels in 3 groups", "4 channels in 3 groups")
    raises(ValueError, lambda: quern.group_norm(images, 2, quern.asarray([1.0])), "  a weight of another length", "weight has shape")
else:
    skip(6, "this build has no layer_norm")
if hasattr(quern, "var"):
    v = quern.asarray([[1.0, 3.0], [5.0, 5.0]])
    is_(quern.var(v, axis=1).tolist(), [1.0, 0.0], "var")
    is_(quern.var(v, axis=1, correction=1).tolist(), [2.0, 0.0], "  with a correction")
    is_(quern.var(v, axis=1, correction=1, keepdims=True).tolist(), [[2.0], [0.0]], "  and keepdims")
    is_(quern.std(v, axis=1).tolist(), [1.0, 0.0], "std")
else:
    skip(4, "this build has no var")
if hasattr(quern, "vecdot"):
    a, b = quern.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), quern.asarray([1.0, 10.0, 100.0])
    is_(quern.vecdot(a, b, axis=-1).tolist(), [321.0, 654.0], "axes of several operands count in what they broadcast to")
    is_(quern.vecdot(b, a, axis=-2).tolist(), [5.0, 70.0, 900.0], "  also beyond the first one's")
    raises(ValueError, lambda: quern.vecdot(b, a, axis=2), "  but not beyond all of them", "vecdot: axis 2")
    is_((quern.vecdot(a, b).tolist(), quern.op("vecdot")(a, b).tolist()), ([321.0, 654.0], 975.0), "  the last axis, unlike the op")
else:
    skip(4, "this build has no vecdot")

# ---- What is refused ----

for axes, part in ((3, "axis 3 is out of bounds for 3 dimensions"), (-4, "axis -4 is out of bounds"), ((0, 7), "axis 7 "),
                   (32, "axis 32 "), (-33, "axis -33 "), (10**30, "axis 1000000000000000000000000000000 "),
                   ((0, 0), "0 is there twice"), ((1, -2), "1 and -2 are the same"), ((0, 1, 0), "0 is there twice")):
    raises(ValueError, lambda: quern.sum(x, axis=axes), "axis={}".format(axes), "sum: axis")
    raises(ValueError, lambda: quern.sum(x, axis=axes), "  and why", part)
for axes in (True, False, 1.0, "0", [0], (0, True), (1.0,), ((0,),), {0}, b"0"):
    raises(TypeError, lambda: quern.sum(x, axis=axes), "axis={!r}".format(axes), "sum: axis: ")
for axes in (0, -1):
    raises(ValueError, lambda: quern.sum(scalar, axis=axes), "0-d, axis={}".format(axes), "out of bounds for 0 dimensions")
for keepdims in ("no", 1.0, 1j, [], ()):
    raises(TypeError, lambda: quern.sum(x, keepdims=keepdims), "keepdims={!r}".format(keepdims), "sum: keepdims: ")
raises(TypeError, lambda: quern.sum(x, axes=1), "the mask is the library's", "no argument axes")
raises(TypeError, lambda: quern.sum(x, 0, axis=0), "axis twice", "axis is given twice")
raises(TypeError, lambda: quern.sum(x, 0, True, keepdims=True), "keepdims twice", "keepdims is given twice")
is_(quern.sum(1.0), 1.0, "a number alone gives a number")
raises(TypeError, lambda: quern.add(x, x, axis=0), "an op that reduces nothing", "no argument axis")


class Raises:
    def __index__(self):
        raise RuntimeError("not now")


raises(RuntimeError, lambda: quern.sum(x, axis=Raises()), "an exception of foreign code", "not now")
raises(RuntimeError, lambda: quern.sum(x, axis=(0, Raises())), "in a tuple", "not now")
is_(quern.sum(quern.asarray(numbers((1,) * 32, lambda: 2.0)), axis=(31, -32, 7)).shape, (1,) * 29, "32 dimensions")

# ---- Expressions: the axes are part of the text ----

f = quern.compile("s = sum(x * x, axis=-1)")
for turn in range(8):  # interpreted, then by a plan, then maybe compiled
    is_(f(y).tolist(), [5.0, 80.0], "an expression that reduces, call {}".format(turn + 1))
out = quern.empty(2)
ok(f(y, out=out) is out and out.tolist() == [5.0, 80.0], "with out")
raises(ValueError, lambda: f(y, out=quern.empty(3)), "of another shape", "output 1 (s)")
raises(TypeError, lambda: f(y, axis=0), "axis is none of its arguments", "no argument axis")
is_(f(quern.empty((3, 0))).tolist(), [0.0] * 3, "of nothing")
is_(quern.compile("s = sum(x, axis=0, keepdims=1)")(y).tolist(), [[5.0, 10.0]], "keepdims")
total, rest = quern.compile("a = sum(x); b = x - max(x)")(y)
is_((total.tolist(), rest.tolist()), (15.0, [[-7.0, -6.0], [-4.0, 0.0]]), "outputs of several shapes")
is_(quern.compile("param k; s = k * sum(x)")(y, k=2).tolist(), 30.0, "a parameter")
is_(quern.compile("s = sum(x + 1)")(small).tolist(), 207, "integers")
is_(quern.compile("s = sum(a * b, axis=-1)")(y, quern.asarray([1.0, 10.0])).tolist(), [21.0, 84.0], "inputs broadcast")
ok("tier" in f.explain(y), "explain")

# A parameter of this name is a number as any other.
f = quern.compile("param axes; y = axes * x")
is_((f.params, f(y, axes=2.0).tolist()), ({"axes": None}, [[2.0, 4.0], [8.0, 16.0]]), "a parameter called axes")

# ---- Attributes ----

is_((quern.sum.params["axis"], quern.sum.params["keepdims"]), (None, False), "params")
ok(str(inspect.signature(quern.sum)).startswith("(x, axis=None, keepdims=False"), "signature")
ok(quern.sum.__doc__.startswith("sum(x, axis=None, keepdims=False"), "docstring")
ok(all("axes" not in quern.op(name).params for name in NAMES + rows), "the mask is no parameter")
ok(all(getattr(quern.array_api, name) is getattr(quern, name) for name in NAMES), "in quern.array_api")

# ---- Producers of capsules ----


class Producer:
    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **keywords):
        return self.x.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


is_(quern.sum(Producer(x), axis=(0, 2)).tolist(), quern.sum(x, axis=(0, 2)).tolist(), "an object with __dlpack__")
is_(quern.sum(Producer(small), axis=1, dtype="f64").tolist(), [200.0, 3.0], "with dtype")
is_(quern.sum(array.array("i", [1, 2, 3])).tolist(), 6, "a buffer")

# ---- PyTorch ----

if torch:
    t = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    for axes in (0, 1, -1, (0, 2)):
        got = quern.sum(t, axis=axes)
        ok(type(got) is torch.Tensor and torch.equal(got, t.sum(dim=axes)), "PyTorch: sum, axis={}".format(axes))
    ok(torch.equal(quern.sum(t.permute(2, 0, 1), axis=0), t.sum(2)), "PyTorch: permuted")
    ok(quern.sum(t, dtype=torch.float64).dtype is torch.float64, "PyTorch: dtype")
    ok(torch.equal(quern.sum(t[:, :, :1].to(torch.int8), axis=0, dtype="i32"), t[:, :, :1].sum(0).int()), "PyTorch: cast first")
else:
    skip(7, "there is no PyTorch here")

# ---- NumPy ----

if not np:
    skip(1, "there is no NumPy here")
    done_testing()
diag("NumPy " + np.__version__)
is_(type(quern.sum(np.ones((2, 2)), axis=0)), np.ndarray, "NumPy in, NumPy out")
is_((type(quern.sum(np.ones(3))), quern.sum(np.ones(3)).shape), (np.ndarray, ()), "0-d, too")
is_(quern.sum(np.ones((2, 3)), axis=np.int64(1)).tolist(), [3.0, 3.0], "an int of NumPy's")
is_(quern.sum(np.ones((2, 3)), axis=np.array(-1)).tolist(), [3.0, 3.0], "0-d as an axis")
is_(quern.sum(np.ones((2, 3)), keepdims=np.bool_(True)).shape, (1, 1), "a bool of NumPy's")
raises(TypeError, lambda: quern.sum(np.ones(2), axis=np.float32(0)), "a float of NumPy's is no axis")
big = np.arange(300 * 400, dtype="i4").reshape(300, 400)
ok((quern.sum(big, axis=0) == big.sum(0)).all() and (quern.sum(big, axis=0, dtype="f64") == big.sum(0)).all(), "many items")



def reverse(x):
    return x[(slice(None, None, -1),) * x.ndim]


LAYOUTS = {"C": lambda x: x, "Fortran": lambda x: np.array(x, order="F"),
           "reversed": lambda x: reverse(np.array(reverse(x), order="C")),
           "swapped": lambda x: np.array(x.swapaxes(0, -1), order="C").swapaxes(0, -1) if x.ndim else x,
           "every other": lambda x: np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x,
           "broadcast": lambda x: np.broadcast_to(x[:1], x.shape) if x.ndim else x}
WIDE = {"b": "i8", "i": "i8", "u": "u8"}


def numpys(name, x, axes, keepdims):
    """NumPy's own, in Quern's dtypes."""
    kind = x.dtype.kind
    if name in ("argmax", "argmin"):
        return getattr(np, name)(x, axis=axes, keepdims=keepdims)
    if name == "count_nonzero":
        return np.count_nonzero(x, axis=axes, keepdims=keepdims)
    function = getattr(np, name)
    if name in ("sum", "prod"):
        return function(x, axis=axes, keepdims=keepdims, dtype=WIDE.get(kind, x.dtype))
    if name == "mean":
        to = x.dtype if kind == "f" else "f4" if x.dtype.itemsize <= 2 else "f8"
        return function(x, axis=axes, keepdims=keepdims, dtype="f8").astype(to)
    return function(x, axis=axes, keepdims=keepdims)


wrong = []
n_cases = 0
draw = np.random.default_rng(852)
for case in range(600):
    ndim = int(draw.integers(0, 5))
    shape = tuple(int(n) for n in draw.integers(0 if case % 10 == 0 else 1, 6, ndim))
    dtype = draw.choice(["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"])
    layout = draw.choice(list(LAYOUTS))
    name = NAMES[case % len(NAMES)]
    low = 0 if dtype[0] == "u" or dtype in ("bool", "f2") else -1 if name == "prod" else -3  # all sums and products are exact
    x = LAYOUTS[layout](np.asarray(draw.integers(low, 2 if name == "prod" or low == 0 else 4, shape)).astype(dtype))
    count = int(draw.integers(0, ndim + 1))
    axes = tuple(int(axis) - (ndim if draw.integers(2) else 0) for axis in draw.permutation(ndim)[:count])
    axes = None if draw.integers(4) == 0 else axes[0] if len(axes) == 1 and draw.integers(2) else axes
    keepdims = bool(draw.integers(2))
    if name in ("argmax", "argmin") and isinstance(axes, tuple):
        axes = axes[0] if axes else None
    if name in ("max", "min", "argmax", "argmin") and dtype == "bool":
        x = x.view("u1")
    said = "{} of {} {} {}, axis={}, keepdims={}".format(name, shape, dtype, layout, axes, keepdims)
    try:
        with np.errstate(all="ignore"):
            wanted = np.asarray(numpys(name, x, axes, keepdims))
    except ValueError:  # of nothing
        try:
            wrong.append((said, getattr(quern, name)(x, axis=axes, keepdims=keepdims)))
        except ValueError:
            n_cases += 1
        continue
    for turn in range(2):
        got = getattr(quern, name)(x, axis=axes, keepdims=keepdims)
        same = got.shape == wanted.shape and got.dtype == wanted.dtype
        if not same or not np.array_equal(got, wanted, equal_nan=got.dtype.kind == "f"):
            wrong.append((said, got, wanted))
    out = np.full(wanted.shape[::-1], 77, wanted.dtype).T
    got = getattr(quern, name)(x, axis=axes, keepdims=keepdims, out=out)
    if got is not out or not np.array_equal(out, wanted, equal_nan=out.dtype.kind == "f"):
        wrong.append((said + ", out", out, wanted))
    n_cases += 1
is_(wrong[:3], [], "beside NumPy: {} cases".format(n_cases))
ok(n_cases > 500, "which are many")

# Along one axis: scans, places, differences, products of what broadcasts; all exact.
wrong = []
n_cases = 0


def wide(x):
    return WIDE.get(x.dtype.kind, x.dtype)


def shared(name, x, axis, y, keepdims):
    """(Quern's, NumPy's in Quern's dtypes) of a function along one axis."""
    if name in ("cumulative_sum", "cumulative_prod"):
        function = np.cumsum if name == "cumulative_sum" else np.cumprod
        return getattr(quern, name)(x, axis=axis), function(x, axis=axis, dtype=wide(x))
    if name == "cummax" or name == "cummin":
        values, places = getattr(quern, name)(x, axis=axis)
        function = np.maximum if name == "cummax" else np.minimum
        return np.stack([values, np.take_along_axis(x, places, axis=axis)]), np.stack([function.accumulate(x, axis=axis)] * 2)
    if name == "diff":
        return quern.diff(x, axis=axis, n=2, prepend=x, append=y), np.diff(x, axis=axis, n=2, prepend=x, append=y)
    if name == "vecdot":
        y = np.expand_dims(x.take(0, axis=0), 0) if axis % x.ndim else x
        return quern.vecdot(x, y, axis=axis), np.sum(x.astype(wide(x)) * y, axis=axis, dtype=wide(x))
    if name in ("argmax", "argmin"):
        wanted = x.shape[axis] - 1 - getattr(np, name)(np.flip(x, axis), axis=axis, keepdims=keepdims)
        return getattr(quern, name)(x, axis=axis, keepdims=keepdims, select_last_index=1), wanted
    if name == "ptp":
        return quern.ptp(x, axis=axis, keepdims=keepdims), np.ptp(x, axis=axis, keepdims=keepdims)
    if name.startswith("nan"):
        x = np.where(x == 1, np.nan, x).astype(x.dtype) if x.dtype.kind == "f" else x
        more = {"dtype": wide(x)} if name in ("nansum", "nanprod") else {}
        return getattr(quern, name)(x, axis=axis, keepdims=keepdims), getattr(np, name)(x, axis=axis, keepdims=keepdims, **more)
    more = {"dtype": wide(x)} if name in ("sum", "prod") else {}
    return (getattr(quern, name)(x, axis=axis, keepdims=keepdims, initial=2),
            getattr(np, name)(x, axis=axis, keepdims=keepdims, initial=2, **more))


# An element-wise op with parameters called like those of a reduction: they are numbers.
SPEC = """binary "acme.named" {
  doc = "Names say nothing.", dtypes = floating, body = [[ x + y * axes + keepdims * 100 + initial * 1000 + exclusive * 10000 ]],
  params = { axes = -1, keepdims = 0, initial = 0, exclusive = 0 }, grad = { x = [[ grad ]], y = [[ grad * axes ]] },
}"""
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "named.lua")
    with open(path, "w") as file:
        file.write(SPEC)
    context = quern.Context()
    try:
        context.load_spec(path)
    except quern.QuernError as error:
        skip(8, str(error))
    else:
        named, x, y = context.op("acme.named"), np.array([1.0, 2]), np.array([3.0, 4])
        is_(named.params, {"axes": -1, "keepdims": 0, "initial": 0, "exclusive": 0}, "parameters called like a reduction's keep their names")
        is_((named._has_axis, named._roles), (False, {}), "  they have no role")
        is_(named(x, y, axes=2.5).tolist(), [8.5, 12], "  axes is a number")
        is_(named(x, y, 1, keepdims=2.5, initial=0.5, exclusive=-1).tolist(), [-9246, -9244], "  and so are the others")
        raises(TypeError, lambda: named(x, y, axis=0), "  there is no axis", "it has no argument axis")
        is_(named(x, y, initial=None).tolist(), [-2, -2], "  initial=None is its default")
        is_(str(inspect.signature(named)).split(", *")[0], "(x, y, axes=-1, keepdims=0, initial=0, exclusive=0", "  its signature")
        backward = context.op(named.backward)
        is_([backward(np.ones(2), *(x, y)[:len(backward.inputs) - 1], axes=2.5)[1].tolist(), backward._has_axis], [[2.5, 2.5], False], "  its derivative")

FURTHER = [name for name in ("cumulative_sum", "cumulative_prod", "cummax", "cummin", "diff", "vecdot", "argmax", "argmin", "ptp", "nansum",
                             "nanprod", "nanmax", "nanmin", "sum", "prod", "max", "min") if hasattr(quern, name)]
for case in range(600 if FURTHER else 0):
    ndim = int(draw.integers(1, 6))
    dtype = draw.choice(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"])
    name = FURTHER[case % len(FURTHER)]
    low = 0 if dtype[0] == "u" else -1
    x = np.asarray(draw.integers(low, 3, tuple(int(n) for n in draw.integers(1, 5, ndim)))).astype(dtype)
    x = LAYOUTS[draw.choice(list(LAYOUTS))](x)
    axis = int(draw.integers(-ndim, ndim))
    said = "{} of {} {} {}, axis={}".format(name, x.shape, dtype, x.strides, axis)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        got, wanted = shared(name, x, axis, np.flip(x, axis), bool(draw.integers(2)))
    wanted = np.asarray(wanted)
    if type(got) is not np.ndarray or got.dtype != wanted.dtype or not np.array_equal(got, wanted, equal_nan=got.dtype.kind == "f"):
        wrong.append((said, got, wanted))
    n_cases += 1
is_(wrong[:3], [], "along one axis, beside NumPy: {} cases of {} functions".format(n_cases, len(FURTHER)))
if hasattr(quern, "softmax"):
    x = draw.standard_normal((3, 4, 5)).astype("f4")
    for axes in (0, 1, 2, -1, None, (0, 2)):
        wanted = np.exp(x.astype("f8"))
        wanted /= wanted.sum(axis=axes, keepdims=True)
        ok(np.allclose(quern.softmax(x, axis=axes), wanted, rtol=1e-6), "softmax, axis={}".format(axes))
    view = draw.integers(-4, 5, (513, 279)).astype("f4")[:, :255].T  # columns of a wider array: their number is no power of two
    for n in (1, 2, 3):
        got = [float(quern.Context(threads=n).op("sum")(view)) for _ in range(20)]
        is_(set(got), {float(view.sum(dtype="f8"))}, "all of a transposed view, on {} threads".format(n))
else:
    skip(9, "this build has no softmax")
done_testing()
