# SPDX-License-Identifier: Apache-2.0
"""quern.array_api: the standard's names, creation, shapes, what ops have in another form, and the rules of dtypes: those of the functions
here, and those of the ops, are the same. quern.Array's operators, and its indexing, beside NumPy's."""

import array
import inspect
import itertools
import math
import random

import quern
from quern import array_api as xp
from tap import done_testing, is_, ok, raises, skip

REAL = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64"]

# ---- Names ----

x = quern.asarray([1.0, 2.0])
ok(x.__array_namespace__() is xp and x.__array_namespace__(api_version="2023.12") is xp, "__array_namespace__")
ok(all(getattr(quern, name) is getattr(xp, name) for name in ("asarray", "astype", "empty", "full", "from_dlpack")), "in quern")
is_((xp.e, xp.pi, xp.inf, xp.newaxis), (math.e, math.pi, math.inf, None), "constants")
ops = [name for name in quern.ops() if hasattr(xp, name)]
ok({"add", "exp", "multiply"} <= set(ops), "the ops of the standard's names ({})".format(len(ops)))
public = [name for name in vars(xp) if not name.startswith("_")]
is_([name for name in public if inspect.ismodule(getattr(xp, name))], [], "no modules among its names")
for name, signature in {
        "asarray": "(obj, /, *, dtype=None, device=None, copy=None)",
        "empty": "(shape, *, dtype=None, device=None)",
        "full": "(shape, fill_value, *, dtype=None, device=None)",
        "zeros": "(shape, *, dtype=None, device=None)",
        "ones_like": "(x, /, *, dtype=None, device=None)",
        "full_like": "(x, /, fill_value, *, dtype=None, device=None)",
        "astype": "(x, dtype, /, *, copy=True, device=None)",
        "clip": "(x, /, min=None, max=None, *, out=None, dtype=None, stream=None)",
        "arange": "(start, /, stop=None, step=1, *, dtype=None, device=None)",
        "linspace": "(start, stop, /, num, *, dtype=None, device=None, endpoint=True)",
        "nonzero": "(x, /)",
        "diff": "(x, /, *, axis=-1, n=1, prepend=None, append=None, stream=None)",
        "vecdot": "(x1, x2, /, *, axis=-1)",
        "unstack": "(x, /, *, axis=0)",
        "isdtype": "(dtype, kind)",
        "result_type": "(*arrays_and_dtypes)",
        "can_cast": "(from_, to, /)"}.items():
    is_(str(inspect.signature(getattr(xp, name))), signature, name + ": the standard's signature")

# ---- vecdot ----

if hasattr(quern, "vecdot"):
    small = xp.asarray([[100, 2], [3, 4]], dtype="int8")
    is_((xp.vecdot(small, small).tolist(), str(xp.vecdot(small, small).dtype)), ([20, 25], "int8"), "vecdot: integers of their own dtype wrap")
    is_(str(xp.vecdot(small, xp.asarray([1, 2], dtype="int16"), axis=-1).dtype), "int16", "  which is the promoted one")
    is_(xp.vecdot(xp.asarray([[1.0, 2.0], [3.0, 4.0]]), xp.asarray([1.0, 0.5])).tolist(), [2.0, 5.0], "  floats")
    is_(xp.vecdot(small, small, axis=0).tolist(), [25, 20], "  along the first axis")
    raises(ValueError, lambda: xp.vecdot(small, xp.asarray([1], dtype="int8")), "  of other lengths", "2 and 1 elements")
    raises(ValueError, lambda: xp.vecdot(small, small, axis=2), "  no such axis", "axis 2")
else:
    skip(6, "this build has no vecdot")

# ---- Creation ----

for value, wanted in (([[1, 2, 3], [4, 5, 6]], "int64"), ([1.5, 2], "float32"), ([True, False], "bool"), ([[True], [2]], "int64"),
                      (3, "int64"), (2.5, "float32"), (True, "bool"), ([[], []], "float32"), ([], "float32"), ((1, 2), "int64")):
    x = xp.asarray(value)
    is_((x.dtype, x.tolist()), (wanted, value if not isinstance(value, tuple) else list(value)), "asarray({!r})".format(value))
for bad, error in (([[1], [2, 3]], ValueError), ([[1], 2], ValueError), ([1, [2]], ValueError), (["a"], TypeError),
                   ([None], TypeError), ([1 << 70], OverflowError), (None, AttributeError)):
    raises(error, lambda: xp.asarray(bad), "asarray({!r})".format(bad))
a = array.array("f", [1, 2, 3])
address = a.buffer_info()[0]
is_(xp.asarray(a).data_ptr(), address, "asarray of a buffer: the memory")
ok(xp.asarray(a, copy=True).data_ptr() != address, "or a copy")
is_(xp.asarray(a, copy=False, dtype="f32").data_ptr(), address, "copy=False")
raises(ValueError, lambda: xp.asarray(a, copy=False, dtype="f64"), "copy=False to another dtype")
raises(ValueError, lambda: xp.asarray([1], copy=False), "copy=False of a list")
for dtype in ["bool", *REAL]:
    x = xp.empty((2, 3), dtype=dtype)
    is_((x.shape, x.strides, x.dtype, x.readonly, x.data_ptr() % 256), ((2, 3), (3, 1), dtype, False, 0), "empty: " + dtype)
is_((xp.empty(3).shape, xp.empty(()).shape, xp.empty([2, 0]).size, xp.empty(1).dtype), ((3,), (), 0, "float32"), "empty: shapes")
is_(xp.empty_like(a).shape, (3,), "empty_like")
for bad, error in ((-1, ValueError), ((2, -3), ValueError), ("3", TypeError), ((1.0,), TypeError), ([1] * 33, ValueError),
                   (1 << 80, OverflowError), (None, TypeError)):
    raises(error, lambda: xp.empty(bad), "empty({!r})".format(bad if not isinstance(bad, list) else "33 dimensions"))
raises(MemoryError, lambda: xp.empty(1 << 45), "empty: too much")
raises(TypeError, lambda: xp.empty(3, dtype="f33"), "empty: no dtype")
raises(ValueError, lambda: xp.empty(3, device="gpu"), "empty: no device")

# ---- In a line ----


def test_lines():
    for args in ((5,), (2, 9), (2, 9, 3), (9, 2, -3), (2, 2), (3, 1), (0,), (0, 1, 0.3), (1.5,), (1, 1.3, 0.1), (0, -1, -0.25),
                 (True, 4)):
        wanted = [args[0] + k * args[2] if len(args) == 3 else (args[0] if len(args) == 2 else 0) + k for k in range(50)]
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (args + (1,))[:3]
        count = max(0, math.ceil((stop - start) / step))
        x = xp.arange(*args)
        is_(x.dtype, "float32" if any(isinstance(a, float) for a in args) else "int64", "arange{}: the dtype".format(args))
        is_(xp.arange(*args, dtype="f64").tolist(), [float(w) for w in wanted[:count]], "arange{}: its numbers".format(args))
    for dtype in REAL:
        x = xp.arange(1, 8, 3, dtype=dtype)
        is_((x.dtype, xp.astype(x, "f64").tolist()), (dtype, [1.0, 4.0, 7.0]), "arange: " + dtype)
    is_(xp.arange(2**64 - 1, 2**64 - 8, -3, dtype="u64").tolist(), [2**64 - 1, 2**64 - 4, 2**64 - 7], "arange: unsigned")
    is_(xp.arange(-2**63, 2**63 - 1, 2**63 - 1).tolist(), [-2**63, -1, 2**63 - 2], "arange: 64 bits")
    is_(xp.arange(7, 8, 1 << 70).tolist(), [7], "arange: a step beyond any dtype")
    for bad, error in (((0, 5, 0), ValueError), ((math.inf,), ValueError), ((0, math.nan), ValueError), ((0, 1, 0.0), ValueError),
                       ((None,), TypeError), (("a",), TypeError)):
        raises(error, lambda: xp.arange(*bad), "arange{}".format(bad))
    raises(OverflowError, lambda: xp.arange(0, 300, dtype="u8"), "arange: beyond u8")
    raises(OverflowError, lambda: xp.arange(-1, 3, dtype="u16"), "arange: below u16")
    raises(TypeError, lambda: xp.arange(3, dtype="bool"), "arange: no bool")
    is_(xp.arange(256, dtype="u8").tolist(), list(range(256)), "arange: all of u8")

    is_(xp.linspace(0, 1, 5).tolist(), [0.0, 0.25, 0.5, 0.75, 1.0], "linspace")
    is_(xp.linspace(0, 1, 4, endpoint=False).tolist(), [0.0, 0.25, 0.5, 0.75], "linspace: no endpoint")
    is_(xp.linspace(0, 1, 4).dtype, "float32", "linspace: its dtype")
    is_([xp.linspace(3, 4, n, dtype="f64").tolist() for n in (0, 1, 2)], [[], [3.0], [3.0, 4.0]], "linspace: none, one and two")
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = xp.astype(xp.linspace(-2, 6, 9, dtype=dtype), "f64")
        is_((xp.linspace(-2, 6, 9, dtype=dtype).dtype, x.tolist()), (dtype, [float(k) for k in range(-2, 7)]),
            "linspace: " + dtype)
    for bad, error in (((0, 1, -1), ValueError), ((0, 1, 2.0), TypeError), ((None, 1, 2), TypeError), ((0, 1), TypeError)):
        raises(error, lambda: xp.linspace(*bad), "linspace{}".format(bad))
    raises(TypeError, lambda: xp.linspace(0, 1, 3, dtype="i32"), "linspace: no integers")
    ok(quern.arange is xp.arange and quern.linspace is xp.linspace, "in quern")
    try:
        import numpy
    except ImportError:
        skip(1, "no NumPy")
    else:
        # NumPy's step of arange is start + step - start, and it multiplies and adds: the last bits differ
        bad = 0
        for k in range(200):
            start, stop, n = (k - 100) * 0.37, (k * 7919 % 1000 - 400) * 1.3, k + 2
            x = numpy.asarray(xp.linspace(start, stop, n, dtype="f64", endpoint=k % 2))
            y = numpy.linspace(start, stop, n, endpoint=k % 2)
            bad += not numpy.allclose(x, y, rtol=0, atol=1e-15 * (abs(start) + abs(stop)))
            step = (stop - start) / n
            x, y = numpy.asarray(xp.arange(start, stop, step, dtype="f64")), numpy.arange(start, stop, step)
            bad += x.shape != y.shape or not numpy.allclose(x, y, rtol=0, atol=1e-13 * (abs(start) + abs(stop)))
            bad += not (numpy.asarray(xp.arange(-k, 3 * k, 7)) == numpy.arange(-k, 3 * k, 7)).all()
        is_(bad, 0, "as NumPy's, but for the last bits")
        x = xp.arange(numpy.int32(1), numpy.int64(9), numpy.uint8(3))
        is_((x.dtype, x.tolist(), xp.arange(numpy.float32(2)).dtype), ("int64", [1, 4, 7], "float32"), "numbers of NumPy's")


if hasattr(quern, "arange") and hasattr(quern, "linspace"):
    test_lines()
else:
    skip(1, "this build has some ops only, and no arange and linspace")

# ---- Ops ----

is_(xp.full((2, 2), 7).tolist(), [[7, 7], [7, 7]], "full")
is_([xp.full(1, v).dtype for v in (True, 3, 2.5)], ["bool", "int64", "float32"], "full: dtypes of numbers")
is_(xp.full((), 2.5, dtype="f64").tolist(), 2.5, "full: a dtype")
is_(xp.full(1, 2**70, dtype="f32").tolist(), [2.0**70], "full: a large int")
is_(xp.full(1, xp.full((), 2.5)).tolist(), [2.5], "full: an array of one number")
is_(xp.full(1, xp.full((), True)).dtype, "bool", "full: of one bool")
raises(TypeError, lambda: xp.full(2, None), "full: nothing", "None is no number")
is_((xp.zeros(2).tolist(), xp.ones((1, 2), dtype="i32").tolist()), ([0.0, 0.0], [[1, 1]]), "zeros, ones")
is_((xp.zeros_like(a).tolist(), xp.ones_like(a, dtype="i64").tolist(), xp.full_like(a, 5).dtype), ([0.0] * 3, [1] * 3, "f32"),
    "_like")
x = xp.asarray([0.5, -1.5, 2.5])
is_((xp.astype(x, xp.int32).tolist(), xp.astype(x, "i32").dtype), ([0, -1, 2], "int32"), "astype")
ok(xp.astype(x, "f32", copy=False) is x and xp.astype(x, "f32").data_ptr() != x.data_ptr(), "astype: copy")
is_(xp.clip(x, -1, 1).tolist(), [0.5, -1.0, 1.0], "clip: numbers")
is_((xp.clip(x, max=0).tolist(), xp.clip(x, 0).tolist(), xp.clip(x).tolist()), ([0.0, -1.5, 0.0], [0.5, 0.0, 2.5], x.tolist()),
    "clip: one, none")
if {"maximum", "minimum"} <= set(quern.ops()):
    is_(xp.clip(x, xp.asarray([1.0, -2.0, 0.0]), xp.asarray([1.0])).tolist(), [1.0, -1.5, 1.0], "clip: arrays")
else:
    skip(1, "this build has no maximum and minimum")
x = xp.asarray([[1, 2], [3, 4], [5, 6]])
is_([row.tolist() for row in xp.unstack(x)], [[1, 2], [3, 4], [5, 6]], "unstack")
is_([row.data_ptr() - x.data_ptr() for row in xp.unstack(x)], [0, 16, 32], "unstack: the same memory")
is_([row.tolist() for row in xp.unstack(x.T)], [[1, 3, 5], [2, 4, 6]], "unstack: columns")
is_([r.item() for r in xp.unstack(xp.from_dlpack(memoryview(a)[::-1]))], [3.0, 2.0, 1.0], "unstack: backwards")
is_(xp.unstack(xp.empty((0, 3))), (), "unstack: none")
raises(ValueError, lambda: xp.unstack(xp.asarray(1)), "unstack: 0 dimensions")
if "nonzero" in quern.ops():
    x = xp.asarray([[0, 1, 0], [2, 0, 3]])
    is_([indices.tolist() for indices in xp.nonzero(x)], [[0, 1, 1], [1, 0, 2]], "nonzero: indices of each dimension")
    is_([indices.shape for indices in xp.nonzero(xp.zeros((2, 3, 4)))], [(0,)] * 3, "nonzero: none")
    raises(ValueError, lambda: xp.nonzero(xp.asarray(1)), "nonzero: 0 dimensions")
    is_([indices.tolist() for indices in quern.nonzero(memoryview(a))], [[0, 1, 2]], "nonzero: of the package, too")
else:
    skip(4, "this build has no nonzero")

# ---- Numbers of Python's ----

is_(xp.asarray(0.1, dtype="f64").item(), 0.1, "asarray: in the dtype that is asked for, at once")
is_(xp.asarray([1e300, 2.0], dtype=xp.float64).tolist(), [1e300, 2.0], "asarray: beyond f32")
is_(xp.asarray([2**53 + 1, 0.5], dtype="i64").tolist(), [2**53 + 1, 0], "asarray: integers as such")
is_(xp.asarray([1, 2], dtype="bf16").tolist() if "astype" in quern.ops() else [1.0, 2.0], [1.0, 2.0], "asarray: of 16 bits")
raises(OverflowError, lambda: xp.asarray(300, dtype="u8"), "asarray: a number that does not fit")
raises(OverflowError, lambda: xp.full((1,), -1, dtype="u8"), "full: the same")
circle = []
circle.append(circle)
raises(ValueError, lambda: xp.asarray(circle), "asarray: a list in itself")
is_(str(inspect.signature(quern.compile("y = out + out_"))), "(out_, out__, /, *, out=None, dtype=None, stream=None)",
    "operands that are called as arguments are")
raises(TypeError, lambda: str(quern.Device(())), "a Device of nothing")
raises(ValueError, lambda: xp.empty(3, device="cpu\0x"), "a device behind a NUL")
if "clip" in quern.ops():
    x = memoryview(array.array("f", [0, 1, 2, 3]))
    out = array.array("f", [0] * 4)
    ok(quern.clip(x, 1, 2, out=out) is out, "quern.clip: numbers, and out")
    is_(list(out), [1, 1, 2, 2], "  are obeyed")
    if "minimum" in quern.ops():
        is_(quern.clip(x, xp.full((4,), 1.5), 2).tolist(), [1.5, 1.5, 2, 2], "  and arrays")

# ---- Dtypes ----

kinds = {"bool": ["bool"], "signed integer": REAL[:4], "unsigned integer": REAL[4:8], "integral": REAL[:8],
         "real floating": REAL[8:], "complex floating": ["complex64", "complex128"],
         "numeric": [*REAL, "complex64", "complex128"]}
for kind, members in kinds.items():
    is_([n for n in ["bool", *REAL, "complex64", "complex128"] if xp.isdtype(quern.dtype(n), kind)], members, "isdtype: " + kind)
ok(xp.isdtype(xp.float32, xp.float32) and xp.isdtype(xp.int8, ("bool", "integral")) and not xp.isdtype(xp.int8, ()), "isdtype")
raises((TypeError, ValueError), lambda: xp.isdtype(xp.int8, "real integer"), "isdtype: no kind")

# The standard's table, and what it leaves open.
WIDER = {("int8", "uint8"): "int16", ("int8", "uint16"): "int32", ("int8", "uint32"): "int64", ("int16", "uint8"): "int16",
         ("int32", "uint16"): "int32", ("int64", "uint32"): "int64", ("float16", "bfloat16"): "float32", ("bool", "int8"): "int8",
         ("int64", "float16"): "float16", ("uint8", "float32"): "float32", ("float32", "complex64"): "complex64",
         ("float64", "complex64"): "complex128", ("float8_e5m2", "float16"): "float16",
         ("float8_e5m2", "float8_e4m3fn"): "float32"}
for (a, b), wanted in WIDER.items():
    is_((xp.result_type(quern.dtype(a), quern.dtype(b)), xp.result_type(quern.dtype(b), quern.dtype(a))), (wanted, wanted),
        "result_type: {}, {}".format(a, b))
raises(TypeError, lambda: xp.result_type(xp.uint64, xp.int8), "result_type: uint64 with a signed one")
is_([xp.result_type(xp.float32, 2), xp.result_type(xp.int8, 2), xp.result_type(xp.int8, 2.5), xp.result_type(xp.bool, 2),
     xp.result_type(xp.bool, True)], ["float32", "int8", "float32", "int64", "bool"], "result_type: numbers are weak")
is_(xp.result_type(xp.asarray([1]), xp.float64), "float64", "result_type: of arrays")
raises(ValueError, xp.result_type, "result_type: of nothing")
ok(xp.can_cast(xp.int8, xp.int16) and xp.can_cast(xp.int64, xp.float32) and not xp.can_cast(xp.float32, xp.int64) and
   not xp.can_cast(xp.uint64, xp.int64), "can_cast")

bad = []
one = {name: xp.astype(xp.asarray([1.0]), name) for name in ["bool", *REAL]}
for a, b in itertools.product(one, repeat=2):
    if a == b == "bool":
        continue  # no arithmetic
    try:
        wanted = xp.result_type(quern.dtype(a), quern.dtype(b)).name
    except TypeError:
        wanted = "refused"
    try:
        got = quern.add(one[a], one[b]).dtype.name
    except TypeError:
        got = "refused"
    if got != wanted:
        bad.append((a, b, got, wanted))
is_(bad, [], "add promotes as result_type says")
bad = [(name, value) for name in one for value in (1, 2.5) if name != "bool" and
       quern.add(one[name], value).dtype != xp.result_type(quern.dtype(name), value)]
is_(bad, [], "with numbers too")

for name, bits in (("int8", 8), ("uint64", 64), ("int32", 32)):
    info = xp.iinfo(quern.dtype(name))
    low = -(1 << bits - 1) if name[0] == "i" else 0
    is_((info.bits, info.min, info.max, info.dtype), (bits, low, low + (1 << bits) - 1, name), "iinfo: " + name)
info = xp.finfo(xp.float32)
is_((info.bits, info.eps, info.max, info.min, info.smallest_normal, info.dtype),
    (32, 2.0 ** -23, 3.4028234663852886e38, -3.4028234663852886e38, 2.0 ** -126, "float32"), "finfo")
is_((xp.finfo(xp.asarray([1.0])).eps, xp.finfo(xp.complex128).dtype, xp.finfo(quern.float16).max),
    (2.0 ** -23, "float64", 65504.0), "finfo: of an array, of a complex dtype, of f16")
raises(TypeError, lambda: xp.finfo(xp.int8), "finfo: no float")
is_(xp.finfo(quern.float8_e5m2)[:5], (8, 0.25, 57344.0, -57344.0, 2.0 ** -14), "finfo: of 8 bits")
raises(TypeError, lambda: xp.finfo(quern.float8_e4m3fn), "finfo: a float without infinity")
raises(TypeError, lambda: xp.iinfo(xp.float32), "iinfo: no integer")

# ---- The namespace ----

is_(xp.__array_api_version__, "2024.12", "__array_api_version__")
info = xp.__array_namespace_info__()
is_((info.capabilities()["max dimensions"], info.default_device(), info.devices(), info.default_dtypes()["integral"]),
    (32, (1, 0), [(1, 0)], "int64"), "__array_namespace_info__")
is_(sorted(info.dtypes(kind="unsigned integer")), ["uint16", "uint32", "uint64", "uint8"], "  dtypes of a kind")
is_(sorted(info.dtypes(kind=("bool", "complex floating"))), ["bool", "complex128", "complex64"], "  of several")
is_(len(info.dtypes()), 13, "  all of them")
raises(ValueError, lambda: xp.asarray([1]).__array_namespace__(api_version="2019.12"), "no such version", "2024.12")
is_((xp.asarray([1j, 2]).tolist(), str(xp.asarray(1j).dtype), xp.full(2, 1j).tolist()), ([1j, 2 + 0j], "complex64", [1j, 1j]), "complex numbers")

z = xp.asarray([[1 + 2j, 3j]], dtype="complex128")
is_((xp.real(z).tolist(), xp.imag(z).tolist(), xp.conj(z).tolist()), ([[1.0, 0.0]], [[2.0, 3.0]], [[1 - 2j, -3j]]), "real, imag, conj")
is_((xp.imag(z).data_ptr() - z.data_ptr(), str(xp.real(z).dtype), xp.imag(xp.asarray([1.0])).tolist()), (8, "float64", [0.0]), "  views of the parts")
z[0, 0] = 5
z[:, 1:] = xp.asarray([1j])
is_((z.tolist(), xp.concat([z, z])[1, 0].item(), xp.eye(2, dtype="complex64").tolist()), ([[5 + 0j, 1j]], 5 + 0j, [[1 + 0j, 0j], [0j, 1 + 0j]]),
    "  stored")
raises(TypeError, lambda: xp.asarray([1.0]).__setitem__(0, 1j), "  into complex arrays only", "complex")

# ---- Shapes ----


def shown(y):
    return y.shape, y.tolist()


def is_within(y, x):
    """Whether a view is of the memory of a contiguous array."""
    return 0 <= y.data_ptr() - x.data_ptr() < x.nbytes


x = xp.asarray([[0, 1, 2], [3, 4, 5]])
for name, made, wanted, is_view in (
        ("reshape", lambda: xp.reshape(x, (3, -1)), [[0, 1], [2, 3], [4, 5]], True),
        ("reshape, of a transposed one", lambda: xp.reshape(x.T, (6,)), [0, 3, 1, 4, 2, 5], False),
        ("reshape, of every other one", lambda: x[:, ::2].reshape((2, 1, 2)), [[[0, 2]], [[3, 5]]], True),
        ("reshape, a copy", lambda: xp.reshape(x, (6,), copy=True), [0, 1, 2, 3, 4, 5], False),
        ("permute_dims", lambda: xp.permute_dims(x, (1, 0)), [[0, 3], [1, 4], [2, 5]], True),
        ("moveaxis", lambda: xp.moveaxis(x, 0, -1), [[0, 3], [1, 4], [2, 5]], True),
        ("expand_dims", lambda: xp.expand_dims(x, axis=(0, -1)), [[[[0], [1], [2]], [[3], [4], [5]]]], True),
        ("squeeze", lambda: xp.squeeze(x[:1], 0), [0, 1, 2], True),
        ("flip", lambda: xp.flip(x, axis=-1), [[2, 1, 0], [5, 4, 3]], True),
        ("flip, all", lambda: xp.flip(x), [[5, 4, 3], [2, 1, 0]], True),
        ("broadcast_to", lambda: xp.broadcast_to(x[0], (2, 3)), [[0, 1, 2], [0, 1, 2]], True),
        ("matrix_transpose", lambda: xp.matrix_transpose(x), [[0, 3], [1, 4], [2, 5]], True),
        ("mT", lambda: x.mT, [[0, 3], [1, 4], [2, 5]], True),
        ("concat", lambda: xp.concat([x, x[:1]]), [[0, 1, 2], [3, 4, 5], [0, 1, 2]], False),
        ("concat, flat", lambda: xp.concat([x[:1], x.T[:1]], axis=None), [0, 1, 2, 0, 3], False),
        ("stack", lambda: xp.stack([x[0], x[1]], axis=1), [[0, 3], [1, 4], [2, 5]], False),
        ("roll", lambda: xp.roll(x, (1, -1), axis=(0, 1)), [[4, 5, 3], [1, 2, 0]], False),
        ("roll, flat", lambda: xp.roll(x, 2), [[4, 5, 0], [1, 2, 3]], False),
        ("tile", lambda: xp.tile(x[:1], (2, 2)), [[0, 1, 2, 0, 1, 2], [0, 1, 2, 0, 1, 2]], False),
        ("repeat", lambda: xp.repeat(x[0], 2), [0, 0, 1, 1, 2, 2], False),
        ("repeat, each so often", lambda: xp.repeat(x, xp.asarray([2, 0, 1]), axis=1), [[0, 0, 2], [3, 3, 5]], False),
        ("take", lambda: xp.take(x, xp.asarray([2, 0, -1]), axis=1), [[2, 0, 2], [5, 3, 5]], False),
        ("take of a vector", lambda: xp.take(x[1], [1]), [4], False),
        ("take_along_axis", lambda: xp.take_along_axis(x, xp.asarray([[2], [0]]), axis=1), [[2], [3]], False),
        ("take_along_axis, broadcast", lambda: xp.take_along_axis(x, xp.asarray([[1, 0, 1], [0, 0, 0]]), axis=0), [[3, 1, 5], [0, 1, 2]], False),
        ("take_along_axis, by one", lambda: xp.take_along_axis(x, xp.asarray([[1, 0]]), axis=-1), [[1, 0], [4, 3]], False),
        ("unstack", lambda: xp.unstack(x, axis=1)[2], [2, 5], True),
        ("meshgrid", lambda: xp.meshgrid(x[0], x[1][:2])[0], [[0, 1, 2], [0, 1, 2]], True),
        ("eye", lambda: xp.eye(2, 3, k=1, dtype=xp.int64), [[0, 1, 0], [0, 0, 1]], False),
        ("tril", lambda: xp.tril(x, k=-1), [[0, 0, 0], [3, 0, 0]], False),
        ("triu", lambda: xp.triu(x, k=1), [[0, 1, 2], [0, 0, 5]], False),
        ("matmul", lambda: x @ x.T, [[5, 14], [14, 50]], False),
        ("matmul of vectors", lambda: xp.matmul(x[0], x[1]), 14, False),
        ("matmul, broadcast", lambda: xp.matmul(xp.stack([x, x]), x[0]), [[5, 14], [5, 14]], False),
        ("tensordot", lambda: xp.tensordot(x, x, axes=((0, 1), (0, 1))), 55, False)):
    y = made()
    is_(y.tolist(), wanted, name)
    if is_view:
        ok(is_within(y, x), "  a view")
raises(ValueError, lambda: xp.reshape(x.T, (6,), copy=False), "reshape: no view", "makes a copy")
raises(ValueError, lambda: xp.reshape(x, (4, -1)), "reshape: not so many items", "6 items")
raises(ValueError, lambda: xp.take(x, [0]), "take: no axis", "axis is wanted")
raises(ValueError, lambda: xp.take_along_axis(x, [0]), "take_along_axis: other dimensions", "2 dimensions and 1")
raises(ValueError, lambda: xp.squeeze(x, 0), "squeeze: of 2", "extent 2")
raises(ValueError, lambda: xp.broadcast_to(x, (3, 3)), "broadcast_to: another extent")
raises(ValueError, lambda: xp.concat([x, x[:, :1]]), "concat: other shapes")
is_(xp.reshape(xp.empty((0, 3)), (3, 0, 5)).shape, (3, 0, 5), "reshape of nothing")
great = xp.broadcast_to(xp.asarray([1.0]), (1 << 40,))
is_((great.size, great[1 << 39:].shape, great[-1].item(), xp.reshape(great, (1 << 20, 1 << 20)).shape), (1 << 40, (1 << 39,), 1.0, (1 << 20, 1 << 20)),
    "shapes beyond 32 bits")

# ---- Indexing ----

x = xp.reshape(xp.arange(24), (2, 3, 4))
for key in (0, -1, (1, 2, 3), (slice(None), 1), (Ellipsis, 0), (0, Ellipsis, -1), slice(None, None, -1), (slice(1), None, slice(2, None)),
            (Ellipsis, slice(3, 0, -2)), (None, Ellipsis, None), (1, slice(5, 9)), (slice(None),) * 3, ()):
    y, rows = x[key], [[[0] * 4] * 3] * 2
    ok(y.size == 0 or is_within(y, x), "{}: a view".format(key))
try:
    import numpy
except ImportError:
    skip(3, "no NumPy")
else:
    bad, n = [], numpy.arange(24).reshape(2, 3, 4)
    parts = [0, -1, 1, slice(None), slice(None, None, -1), slice(1, None), slice(0, 0), None, Ellipsis, slice(-2, 9, 2), slice(3, -5, -2)]
    for key in itertools.product(parts, repeat=3):
        if key.count(Ellipsis) < 2:
            y = n[key]
            if (y.shape, y.tolist()) != shown(x[key]):
                bad.append(key)
    is_(bad, [], "indexing as NumPy's")
    bad, random_of, n_keys = [], random.Random(866), 0
    for _ in range(2000):
        dims = [random_of.randint(1, 3) for _ in range(random_of.randint(1, 2))]
        key = []
        for d in range(3):
            kind, dtype = random_of.randint(0, 6), random_of.choice(("int8", "int16", "int32", "int64", "uint8", "uint64"))
            shape = [random_of.choice((dim, 1)) for dim in dims]
            low = 0 if dtype[0] == "u" else -n.shape[d] - (random_of.random() < 0.02)
            part = numpy.asarray([random_of.randrange(low, n.shape[d]) for _ in range(math.prod(shape))]).astype(dtype).reshape(shape)
            key.append((part, part[::-1], part, part[:0] if d == 0 else part, random_of.choice(parts), slice(0, 0), d)[kind])
        if sum(part is Ellipsis for part in key) > 1 or not any(isinstance(part, numpy.ndarray) for part in key):
            continue
        n_keys += 1
        try:
            wanted = n[tuple(key)]
            wanted = wanted.shape, wanted.tolist()
        except IndexError:
            wanted = ("refused",), ()
        try:
            got = shown(x[tuple(quern.from_dlpack(part) if isinstance(part, numpy.ndarray) and random_of.random() < 0.5 else part for part in key)])
        except IndexError:
            got = wanted if 0 in wanted[0] else (("refused",), ())  # NumPy before 2.4 does not check indices where nothing is copied
        if got != wanted:
            bad.append(key)
    ok(n_keys > 1000, "{} keys".format(n_keys))
    is_(bad, [], "  by arrays of whole numbers, too")
for bad in (2, (0, 0, 0, 0), (Ellipsis, Ellipsis), 1.0, "x", [0, 2], xp.asarray([-3]), xp.asarray([2**64 - 1], dtype="uint64"), [0.5], [True, False],
            (xp.asarray([0, 1]), xp.asarray([0, 1, 2])), (0, (0, 1))):
    raises(IndexError, lambda: x[bad], "no index: {!r}".format(bad))
raises(IndexError, lambda: x.__setitem__([0], 1), "nothing is stored by arrays of whole numbers", "where")
is_((x[[]].shape, x[:, xp.asarray([1])].shape, x[[1]].tolist(), x[0, [2, 0], -1].tolist()), ((0, 3, 4), (2, 1, 4), [x[1].tolist()], [11, 3]),
    "lists of indices")
wide = quern.from_dlpack(memoryview(bytes(range(200)) * 1000))
at = quern.asarray([199, 0, -1] * 30000)
is_(wide[at].tolist(), [199, 0, 199] * 30000, "many items")
x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
x[0] = 5
x[:, 1] = xp.asarray([7, 8], dtype="int8")
is_(x.tolist(), [[5.0, 7.0], [3.0, 8.0]], "storing a number, an array of another dtype")
x[1:] = x[:1]
x[...] = x[:, ::-1]
is_(x.tolist(), [[7.0, 5.0], [7.0, 5.0]], "storing its own items")
raises(TypeError, lambda: xp.asarray([1]).__setitem__(0, xp.asarray(1.5)), "no floats into integers", "cast it")
raises(ValueError, lambda: x.__setitem__(0, xp.asarray([1.0, 2.0, 3.0])), "not so many")
raises(TypeError, lambda: x.__delitem__(0), "nothing is deleted")
if hasattr(quern, "compress"):
    x = xp.asarray([[1, 2, 3], [4, 5, 6]])
    is_((x[x > 2].tolist(), x[xp.asarray([False, True])].tolist(), x[x > 9].shape), ([3, 4, 5, 6], [[4, 5, 6]], (0,)), "a mask")
    is_((xp.asarray(3)[xp.asarray(True)].tolist(), x[False].shape), ([3], (0, 2, 3)), "  of no dimensions")
    x[x > 4] = 0
    x[xp.asarray([True, False])] = xp.asarray([7, 8, 9])
    is_(x.tolist(), [[7, 8, 9], [4, 0, 0]], "  storing")
    raises(IndexError, lambda: x[xp.asarray([True, False, True])], "  of another shape")

# ---- Operators ----

x, y = xp.asarray([1.0, -2.0, 3.0]), xp.asarray([2.0, 2.0, 0.5])
for name, got, wanted in (("+", x + y, [3.0, 0.0, 3.5]), ("-", 1 - x, [0.0, 3.0, -2.0]), ("*", x * 2, [2.0, -4.0, 6.0]), ("/", 6 / x, [6.0, -3.0, 2.0]),
                          ("//", x // 2, [0.0, -1.0, 1.0]), ("%", x % 2, [1.0, 0.0, 1.0]), ("**", 2 ** x, [2.0, 0.25, 8.0]), ("neg", -x, [-1.0, 2.0, -3.0]),
                          ("abs", abs(x), [1.0, 2.0, 3.0]), ("+x", +x, [1.0, -2.0, 3.0]), ("<", x < y, [True, True, False]),
                          ("<=", 1 <= x, [True, False, True]), ("==", x == xp.asarray([1.0, 2.0, 3.0]), [True, False, True]),
                          ("!=", x != 1, [False, True, True]), (">", x > y, [False, False, True]), (">=", x >= 3.0, [False, False, True])):
    is_(got.tolist(), wanted, name)
i, b = xp.asarray([6, 3]), xp.asarray([True, False])
for name, got, wanted in (("&", i & 3, [2, 3]), ("|", 1 | i, [7, 3]), ("^", i ^ i, [0, 0]), ("~", ~i, [-7, -4]), ("<<", i << 1, [12, 6]), (">>", 24 >> i, [0, 3]),
                          ("& of bools", b & True, [True, False]), ("~ of bools", ~b, [False, True])):
    is_(got.tolist(), wanted, name)
if hasattr(quern, "divmod"):
    is_([part.tolist() for part in divmod(xp.asarray([7.0, -7.0]), 2) + divmod(7, xp.asarray(2))], [[3.0, -4.0], [1.0, 1.0], 3, 1], "divmod")
z, place = x, x.data_ptr()
x += 1
x *= y
x -= 0.5
x /= 2
x **= 2
is_((x.tolist(), x is z, x.data_ptr()), ([3.0625, 1.5625, 0.5625], True, place), "in place")
i |= 8
i <<= 1
is_(i.tolist(), [28, 22], "in place, integers")


def divide_in_place():
    global i
    i /= 2


raises(TypeError, divide_in_place, "no integers of true division in place")
raises(TypeError, lambda: x + "1", "no strings")
raises(TypeError, lambda: x + [1, 2, 3], "no lists")
is_((float(x[0]), int(xp.asarray(3)), bool(xp.asarray(0)), [0, 1, 2][xp.asarray(1)], complex(xp.asarray(2.0))), (3.0625, 3, False, 1, 2 + 0j), "numbers of 0-d")
raises(TypeError, lambda: [0, 1][xp.asarray(1.0)], "no float is an index")
is_([row.tolist() for row in xp.asarray([[1, 2], [3, 4]])], [[1, 2], [3, 4]], "iterates over rows")

done_testing()
