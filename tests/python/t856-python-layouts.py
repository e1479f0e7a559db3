# SPDX-License-Identifier: Apache-2.0
"""The layout of results: what NumPy's and PyTorch's own results have, for random layouts of the operands, and the differences that
docs/layouts.md lists, each as it says; expressions, casts, reductions and scans; plans that repeat, explain, DLPack and Array; PyTorch's memory
formats."""

import math
import random

import quern
from tap import diag, done_testing, is_, ok, skip, skip_all

try:
    import numpy as np
except ImportError:
    skip_all("there is no NumPy here")
try:
    import torch
except ImportError:
    torch = None

diag("NumPy " + np.__version__ + (", PyTorch " + torch.__version__ if torch else ""))
random.seed(856)


def ruling(shape, strides):
    """The strides, in items or bytes, that mean something."""
    return [stride for n, stride in zip(shape, strides) if n > 1]


def permuted(shape, order):
    """Dense, the dimensions in memory in that order, outermost first."""
    inverse = sorted(range(len(order)), key=order.__getitem__)
    n = math.prod(shape)
    return np.arange(1, n + 1, dtype="f4").reshape([shape[k] for k in order]).transpose(inverse)


def random_view(shape):
    x = permuted(shape, random.sample(range(len(shape)), len(shape)))
    how = random.randrange(4)
    if how == 1:
        x = x[tuple(slice(None, None, random.choice((1, -1))) for _ in shape)]
    if how == 2:
        x = np.repeat(x, 2, 0)[::2]
    if how == 3 and len(shape) > 1:
        x = np.broadcast_to(x[tuple(slice(None) if random.random() < 0.6 else slice(1) for _ in shape)], shape)
    return x


def random_shape(least=1):
    return tuple(random.randint(least, 4) for _ in range(random.randint(1, 4)))


# ---- One operand of full shape: NumPy's order K ----

fused = quern.compile("y = a * 2 + 1")
good = 0
for turn in range(400):
    shape = random_shape()
    x = random_view(shape)
    one = np.float32(1)
    cases = [(quern.add(x, 1.0), x + one), (quern.add(1.0, x), x + one), (quern.abs(x), np.abs(x)), (fused(x), x * 2 + one),
             (quern.where(True, x, 0.0), x + 0 * one), (quern.op("astype")(x, dtype="f64"), np.positive(x).astype("f8")),
             (quern.add(x, np.float32([5])), x + one + 4)]
    good += all(ruling(shape, q.strides) == ruling(shape, n.strides) and np.array_equal(q, n) for q, n in cases)
is_(good, 400, "one operand of any layout: NumPy's layout and values, of ops, expressions, casts")

good = 0
for turn in range(300):
    shape = random_shape(2)
    order = random.sample(range(len(shape)), len(shape))
    x, y = permuted(shape, order), permuted(shape, order)
    small = permuted(shape, order)[..., :1]
    good += all(ruling(shape, q.strides) == ruling(shape, n.strides) and np.array_equal(q, n)
                for q, n in ((quern.add(x, y), x + y), (quern.multiply(x, small), x * small)))
is_(good, 300, "two of the same layout, and one that is broadcast")

good = 0
for turn in range(300):
    shape = random_shape()
    x = permuted(shape, random.sample(range(len(shape)), len(shape)))
    axis = random.sample(range(len(shape)), random.randint(1, len(shape)))
    for keepdims in (False, True):
        q, n = quern.sum(x, axis=tuple(axis), keepdims=keepdims), np.sum(x, axis=tuple(axis), keepdims=keepdims)
        d = quern.sum(x, axis=tuple(axis), keepdims=keepdims, dtype="f64")
        good += ruling(q.shape, q.strides) == ruling(n.shape, n.strides) == [k // 2 for k in ruling(d.shape, d.strides)]
is_(good, 600, "sums, with dtype= too: the order of the axes that are left, as NumPy's")
x = permuted((2, 3, 4), (2, 1, 0))
for name, shape in (("softmax", (2, 3, 4)), ("layer_norm", (2, 3, 4)), ("cumulative_sum", (2, 3, 4))):
    if hasattr(quern, name):
        q = getattr(quern, name)(x)
        is_(q.strides, x.strides, name + ": the operand's")
q = quern.cumulative_sum(x, axis=0, include_initial=True)
is_((q.shape, q.strides), ((3, 3, 4), (4, 12, 36)), "cumulative_sum with one more: its order")
is_(quern.op("nonzero")(x).flags.c_contiguous, True, "nonzero: row-major")

# ---- Where it is not NumPy's: docs/layouts.md ----

f, c = permuted((3, 4), (1, 0)), permuted((3, 4), (0, 1))
is_((quern.add(f, c).strides, (f + c).strides), ((4, 12), (16, 4)), "operands that differ: the first rules; in NumPy row-major order")
is_((quern.add(c, f).strides, (c + f).strides), ((16, 4), (16, 4)), "  the other way round")
p, q = permuted((3, 4, 1), (2, 1, 0)), np.ones((1, 1, 5), "f4")
is_((quern.add(p, q).strides, (p + q).strides), ((80, 20, 4), (20, 60, 4) if (p + q).strides[2] == 4 else (p + q).strides),
    "none of full shape: row-major; in NumPy as the parts")
ok((p + q).strides != (80, 20, 4), "  NumPy's is another")
e = np.ones((2, 0, 3), "f4", order="F")
is_(quern.add(e, 1.0).shape, (2, 0, 3), "no elements")

# ---- Kinds of results, repeated calls, explain ----

x = permuted((4, 5, 6), (1, 2, 0))
for turn in range(8):
    is_(quern.add(x, x).strides, x.strides, "call {}: planned after some".format(turn))
out = np.empty((4, 5, 6), "f4")
ok(quern.add(x, x, out=out) is out and out.strides == (120, 24, 4) and np.array_equal(out, x + x), "out= has its own")
is_(quern.op("add").explain(x, x)["variant"], quern.op("add").explain(c, c)["variant"], "explain: the loop is the contiguous one")
a = quern.add(quern.from_dlpack(x), 1)
ok(type(a) is quern.Array and np.from_dlpack(a).strides == x.strides and np.array_equal(np.from_dlpack(a), x + 1),
   "quern.Array: through DLPack with its strides")
is_(memoryview(a).strides, x.strides, "  and through the buffer protocol")
m, n = quern.op("frexp")(x)
is_((m.strides, n.strides), (x.strides, x.strides), "both outputs")
frame = np.ones((6, 3)).T  # DataFrame.to_numpy() of columns of one dtype
is_(quern.multiply(frame, 2).strides, frame.strides, "a table's columns")

# Functions that split and join dimensions, on arrays with permuted results.
if hasattr(quern, "layer_norm"):
    x = permuted((2, 6, 4, 5), (0, 2, 3, 1))
    flat = quern.from_dlpack(x)
    for groups in (1, 2, 6):
        parts = x.reshape(2, groups, -1).astype("f8")
        wanted = ((parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + 1e-5)).reshape(x.shape)
        got = np.from_dlpack(quern.group_norm(flat, groups))
        ok(got.shape == x.shape and np.allclose(got, wanted, atol=1e-5), "group_norm of {} groups, channels last".format(groups))
        is_(got.strides, x.strides, "  stays so")

# ---- PyTorch ----

if torch is None:
    skip(1, "there is no PyTorch here")
    done_testing()


def view(shape):
    order = random.sample(range(len(shape)), len(shape))
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return torch.arange(1.0, math.prod(shape) + 1).reshape([shape[k] for k in order]).permute(inverse)


good = 0
for turn in range(300):
    shape = random_shape(2)
    x, y = view(shape), view(shape)
    cases = [(quern.add(x, y), x + y), (quern.add(x, 1), x + 1), (quern.exp(y), torch.exp(y)), (quern.where(x > 2, y, 0), torch.where(x > 2, y, 0))]
    good += all(q.stride() == t.stride() and torch.allclose(q, t) for q, t in cases)
is_(good, 300, "dense operands: PyTorch's layout, of two that differ, too")
image = torch.arange(120.0).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last)
video = torch.arange(240.0).reshape(2, 3, 4, 5, 2).to(memory_format=torch.channels_last_3d)
bias = torch.ones(3, 1, 1)
for name, got, wanted in (("add", quern.add(image, image), image + image), ("add, a bias", quern.add(image, bias), image + bias),
                          ("add, behind a bias", quern.add(bias, image), bias + image),
                          ("gelu", quern.gelu(image), torch.nn.functional.gelu(image))):
    ok(got.is_contiguous(memory_format=torch.channels_last) and got.stride() == wanted.stride(), "channels_last: " + name)
    ok(torch.allclose(got, wanted), "  its values")
ok(quern.multiply(video, 2).is_contiguous(memory_format=torch.channels_last_3d), "channels_last_3d")
y = quern.add(image, 1)
y.add_(1)
ok(torch.equal(y, image + 2), "such a result is a tensor as any")
single = image[:1]
is_(quern.add(single, 1).stride(), (single + 1).stride(), "one image")
ok(quern.add(image[:, :1].contiguous(memory_format=torch.channels_last), 1).is_contiguous(), "one channel: row-major, and channels_last")
# Where it is not PyTorch's
is_((quern.sum(image, axis=1).stride(), image.sum(1).stride()), ((20, 5, 1), (20, 5, 1)), "a sum over the channels")
is_((quern.sum(image, axis=2).stride(), image.sum(2).stride()), ((15, 1, 3), (15, 5, 1)), "  over rows: the order left; in PyTorch row-major")
is_((quern.softmax(image, axis=1).stride(), image.softmax(1).stride()), ((60, 1, 15, 3), (60, 20, 5, 1)), "softmax: the operand's; in PyTorch row-major")
wide = torch.ones(2, 2).as_strided((2, 2, 2), (1, 0, 2))
is_((quern.add(wide, 1).stride(), (wide + 1).stride()), ((1, 4, 2), (1, 2, 4)), "a dimension of stride 0 between others")
done_testing()
