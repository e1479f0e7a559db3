# SPDX-License-Identifier: Apache-2.0
"""Calls of the Python package on operands of every kind, chosen by bytes: arrays of any dtype and layout, read-only, byte-swapped and
of no native dtype; numbers; memoryviews; producers that raise, lie or change their minds; strings, None and worse; out, axis, dtype and
parameters likewise. one(bytes) makes a few calls and raises AssertionError where one does not hold: errors are of the kinds that the
manual names, no argument keeps a reference, a result has the bits of the same call on contiguous copies, and inputs stay as they are.
fuzz_operands.c and t880 call it."""

import sys
import warnings

import numpy as np
import quern

warnings.simplefilter("ignore")

NAMES = [name for name in quern.ops() if hasattr(quern, name)]
DTYPES = "? b h i l B H I L e f d".split()
STRANGE = [">f4", "F", "S3", "U2", "M8[s]", "O", "V4", ">i2", "g"]
ERRORS = (TypeError, ValueError, IndexError, BufferError, OverflowError, NotImplementedError, MemoryError, AttributeError, KeyError,
          ZeroDivisionError, RuntimeError)
# Ops that one call may make large, of the number that is their size, or that take what has no copies.
UNSIZED = {"full", "arange", "linspace", "empty"}


class Choices:
    def __init__(self, data):
        self.data, self.at, self.state = data, 0, len(data)

    def below(self, n):
        if self.at < len(self.data):
            self.at += 1
            return self.data[self.at - 1] % n
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def of(self, list):
        return list[self.below(len(list))]


class Producer:
    """DLPack by an array's own, with one thing wrong."""

    def __init__(self, tensor, wrong):
        self.tensor, self.wrong = tensor, wrong

    def __dlpack_device__(self):
        if self.wrong == 1:
            raise ZeroDivisionError("mine")
        if self.wrong == 2:
            return (99, -1)
        if self.wrong == 3:
            return "cpu"
        return (1, 0)

    def __dlpack__(self, **wishes):
        if self.wrong == 4:
            raise KeyError("mine")
        if self.wrong == 5:
            return None
        if self.wrong == 6:
            return self.tensor.__dlpack__()  # without max_version
        if self.wrong == 7:
            capsule = self.tensor.__dlpack__()
            np.from_dlpack(Taken(capsule))
            return capsule  # used already
        return self.tensor.__dlpack__(**wishes)


class Taken:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **wishes):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        if isinstance(self.value, int):
            return self.value
        raise ZeroDivisionError("mine")


def array_of(c, shape):
    """An array of that shape in any layout."""
    dtype = np.dtype(c.of(DTYPES))
    n = max(1, int(np.prod([max(e, 1) * 2 for e in shape])))
    seed = c.below(256)
    raw = np.random.default_rng(seed).integers(0, 256, n * dtype.itemsize + 16, dtype=np.uint8)
    offset = 0 if c.below(4) else dtype.itemsize * c.below(2) + c.below(3) * 0
    if dtype.kind == "b":
        raw &= 1
    base = raw[offset:offset + n * dtype.itemsize].view(dtype)
    x = base[:int(np.prod(shape))].reshape(shape)
    way = c.below(10)
    if way == 0:
        x = x.T.copy().T
    elif way == 1 and x.ndim:
        x = x[::-1]
    elif way == 2 and x.ndim:
        x = base[:2 * int(np.prod(shape))].reshape(shape[:-1] + (shape[-1] * 2,))[..., ::2] if shape else x
    elif way == 3 and x.ndim and shape[0]:
        x = np.broadcast_to(x[:1], shape)
    elif way == 4:
        x = x.copy()
        x.flags.writeable = False
    elif way == 5 and x.ndim and shape[-1] > 1:
        x = np.lib.stride_tricks.sliding_window_view(base[:2 * shape[-1]], shape[-1])[:1].reshape(shape[-1:])
    return x


def operand(c, shape):
    way = c.below(24)
    if way < 12:
        drop = 0 if c.below(5) else c.below(len(shape) + 1)
        own = tuple(1 if c.below(10) == 0 else e for e in shape[drop:])
        return array_of(c, own)
    if way == 12:
        return c.of([0, 1, -1, 0.5, True, 2**31, -2**63, 2**64, 2**200, float("nan"), float("inf"), 1e400, 1j, -0.0])
    if way == 13:
        return c.of([np.float32(1.5), np.int8(-3), np.bool_(True), np.float16(2), np.uint64(2**63), np.complex64(1), np.str_("a")])
    if way == 14:
        return memoryview(np.ascontiguousarray(array_of(c, shape)))
    if way == 15:
        x = array_of(c, shape)
        try:
            return quern.asarray(x)
        except ERRORS:
            return x
    if way == 16:
        x = np.ascontiguousarray(array_of(c, shape))
        return Producer(x, c.below(9))
    if way == 17:
        return np.zeros(shape, np.dtype(c.of(STRANGE)))
    if way == 18:
        return c.of([None, "text", b"bytes", [], [1, 2], [[1.0], [2]], (), {}, object(), type, NAMES, Ellipsis, slice(1), range(3)])
    if way == 19:
        return Index(c.of([1, 0, -1, 2**70, None]))
    if way == 20:
        return bytearray(b"12345678")
    return array_of(c, shape)


def shape_of(c):
    return tuple(c.of([1, 2, 3, 4, 5, 7, 16, 33, 0]) for _ in range(c.below(4)))


def keywords(c, shape, op):
    kw = {}
    if c.below(5) == 0:
        kw["out"] = operand(c, shape) if c.below(6) else (operand(c, shape), operand(c, shape))
    if c.below(5) == 0:
        kw["axis"] = c.of([0, 1, -1, -2, None, (0, 1), (0, 0), (), 5, -9, 2**40, "0", 1.0, True, [0], Index(0)])
    if c.below(8) == 0:
        kw["keepdims"] = c.of([True, False, 1, 0, None, "yes", 2, np.True_])
    if c.below(8) == 0:
        kw["dtype"] = c.of([np.float32, "f4", quern.float64, quern.bfloat16, int, np.dtype(">f8"), "nothing", None, 3, quern.int8, np.complex64])
    if c.below(10) == 0:
        kw["stream"] = c.of([None, 0, 1, 2, -1, 2**64, "s", 0.5])
    for param in op.params if isinstance(op, quern.Op) else ():
        if c.below(4) == 0:
            kw[param if isinstance(param, str) else param[0]] = c.of([0, 1, 2, -1, 0.5, 1e30, float("nan"), 2**70, None, "x", np.float32(2), 1j])
    if c.below(20) == 0:
        kw["nonsense"] = 1
    return kw


def plain(x):
    return np.array(x, order="C", copy=True) if isinstance(x, np.ndarray) else x


def arrays_in(x):
    if isinstance(x, (tuple, list)):
        return [a for part in x for a in arrays_in(part)]
    return [np.asarray(x)] if isinstance(x, (np.ndarray, np.generic)) else []


def bits(x):
    return [(a.dtype.str, a.shape, np.ascontiguousarray(a).tobytes()) for a in arrays_in(x)]


def one_call(c):
    name = c.of(NAMES) if c.below(2) else NAMES[(c.below(256) * 256 + c.below(256)) % len(NAMES)]
    if name in UNSIZED:
        return
    op = getattr(quern, name)
    shape = shape_of(c)
    n_args = len(op.inputs) if isinstance(op, quern.Op) and c.below(12) else c.below(5)
    args = [operand(c, shape) for _ in range(n_args)]
    kw = keywords(c, shape, op)
    is_plain = all(isinstance(a, (np.ndarray, int, float)) for a in args) and "out" not in kw
    before = [a.tobytes() if isinstance(a, np.ndarray) and a.dtype.kind != "O" else None for a in args]
    counts = [sys.getrefcount(args[k]) for k in range(n_args)]
    result = failed = None
    try:
        result = op(*args, **kw)
    except ERRORS as error:
        failed = type(error)
        error.__traceback__ = None
        del error
    if is_plain:
        after = [a.tobytes() if isinstance(a, np.ndarray) and a.dtype.kind != "O" else None for a in args]
        assert before == after, name + ": an input was written"
    if result is not None and is_plain:
        again = op(*[plain(a) for a in args], **kw)
        assert bits(result) == bits(again), "{}: other bits than of contiguous copies: {} {}".format(name, args, kw)
    if failed is not None:
        for k in range(n_args):
            is_shared = isinstance(args[k], (int, str, bytes, type(None), type, tuple))
            assert is_shared or sys.getrefcount(args[k]) <= counts[k], "{}: keeps {} after {}".format(name, type(args[k]), failed)


def one(data):
    c = Choices(data)
    for _ in range(1 + c.below(3)):
        with np.errstate(all="ignore"):
            one_call(c)
