# SPDX-License-Identifier: Apache-2.0
# tags: memory
"""quern.Array: attributes, values of all dtypes, repr, conversion to numbers, the buffer protocol both ways, weak references."""

import array
import ctypes
import gc
import math
import mmap
import pickle
import struct
import sys
import weakref
from ctypes import c_char_p, c_int, c_ssize_t, c_void_p, py_object, pythonapi

import quern
from odd_producer import Producer, alive
from tap import done_testing, is_, ok, raises

# ---- Attributes ----

p = Producer([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[2, 3])
x = quern.from_dlpack(p)
is_((x.shape, x.strides, x.ndim, x.size, x.itemsize, x.nbytes, len(x)), ((2, 3), (3, 1), 2, 6, 4, 24, 2), "numbers")
is_((x.dtype, x.readonly, x.data_ptr()), (quern.float32, False, p.address), "dtype, flag, address")
is_((x.device, x.device.type, x.device.id, str(x.device)), ((1, 0), 1, 0, "cpu"), "device")
is_(x.T.shape + x.T.strides + (x.T.data_ptr(),), (3, 2, 1, 3, p.address), "T: the same memory")
is_(x.tolist(), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "tolist")
is_(x.__dlpack_device__(), (1, 0), "__dlpack_device__")
for name in ("shape", "dtype", "readonly", "T", "new"):
    raises(AttributeError, lambda: setattr(x, name, 1), "no {} can be set".format(name))
raises(TypeError, quern.Array, "not made by its name", "from_dlpack")
raises(TypeError, lambda: type("Sub", (quern.Array,), {}), "no subclasses")
raises(IndexError, lambda: x[2], "no such index", "index 2 of extent 2")
raises(TypeError, lambda: pickle.dumps(x), "not pickled")
ok(hash(x) == hash(x) and x in {x: 1} and (x != "x") is True and (x == None) is False, "hashed as an object; equal to no other things")
reference = weakref.ref(x)
del x
gc.collect()
ok(reference() is None, "weak references")
is_((p.deleted, alive()), (1, 0), "deleted once, with the last reference")
is_(pickle.loads(pickle.dumps(quern.from_dlpack(b"x").device)), (1, 0), "a device is pickled")

x = quern.from_dlpack(Producer([], shape=[1 << 61, 1 << 61, 0], strides=[1 << 62, 1 << 62, 1 << 62], data=None))
is_((x.size, x.nbytes, repr(x)), (0, 0, "quern.Array([], shape={}, dtype=float32)".format(x.shape)), "great extents of nothing")
x = quern.from_dlpack(Producer([1.0], shape=[1 << 61], strides=[0]))
is_((x.size, x.nbytes), (1 << 61, 1 << 63), "more bytes than there are addresses, all in one place")
raises(BufferError, lambda: memoryview(x), "are no buffer", "more bytes")
raises(MemoryError, x.tolist, "nor a list")

# ---- Values ----


def values(format, numbers, **dtype):
    data = struct.pack("=%d%s" % (len(numbers), format), *numbers)
    return quern.from_dlpack(Producer(data, shape=[len(numbers)], **dtype)).tolist()


for code, kinds in ((0, "bhiq"), (1, "BHIQ")):
    for kind in kinds:
        bits = 8 * struct.calcsize("=" + kind)
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if code == 0 else (0, (1 << bits) - 1)
        is_(values(kind, [low, 0, 1, high], code=code, bits=bits), [low, 0, 1, high], "values of {} bits".format(bits))
is_(values("B", [0, 1, 2, 255], code=6, bits=8), [False, True, True, True], "values of bool: all but 0 are true")
for kind, bits in (("e", 16), ("f", 32), ("d", 64)):
    numbers = list(struct.unpack("=6" + kind, struct.pack("=6" + kind, 0.1, -2.5, 6e-8, 0.0, math.inf, -math.inf)))
    is_(values(kind, numbers, code=2, bits=bits), numbers, "values of f{}".format(bits))
    ok(math.isnan(values(kind, [math.nan], code=2, bits=bits)[0]), "NaN of f{}".format(bits))
    is_(math.copysign(1, values(kind, [-0.0], code=2, bits=bits)[0]), -1.0, "-0 of f{}".format(bits))
c = quern.from_dlpack(Producer(struct.pack("=4f", 1.5, -2, 0, 3), shape=[2], code=5, bits=64))
is_(c.tolist(), [1.5 - 2j, 3j], "values of c64")
c = quern.from_dlpack(Producer(struct.pack("=2d", 0.1, -2), shape=[1], code=5, bits=128))
is_((c.tolist(), c.item(), complex(c)), ([0.1 - 2j], 0.1 - 2j, 0.1 - 2j), "values of c128")
is_(values("H", [0x3F80, 0xC000, 0x7F80, 0x0001], code=4, bits=16), [1.0, -2.0, math.inf, 2.0 ** -133], "values of bf16")


def float8(code, *bits):
    return values("B", bits, code=code, bits=8)


def same(got, wanted, name):
    is_([repr(v) for v in got], [repr(float(v)) for v in wanted], name)


same(float8(7, 0x30, 0x70, 0x71, 0x01, 0x6F), [1, math.inf, math.nan, 2.0 ** -6, 15.5], "float8_e3m4")
same(float8(8, 0x38, 0x78, 0x79, 0x01, 0x77), [1, math.inf, math.nan, 2.0 ** -9, 240], "float8_e4m3")
same(float8(9, 0x58, 0x80, 0x01, 0x7F), [1, math.nan, 2.0 ** -13, 30], "float8_e4m3b11fnuz")
same(float8(10, 0x38, 0x7E, 0x7F, 0xFF, 0x80), [1, 448, math.nan, math.nan, -0.0], "float8_e4m3fn")
same(float8(11, 0x40, 0x80, 0x7F), [1, math.nan, 240], "float8_e4m3fnuz")
same(float8(12, 0x3C, 0x7C, 0x7D, 0x7B, 0x01), [1, math.inf, math.nan, 57344, 2.0 ** -16], "float8_e5m2")
same(float8(13, 0x40, 0x80, 0x7F), [1, math.nan, 57344], "float8_e5m2fnuz")
same(float8(14, 127, 0, 254, 255), [1, 2.0 ** -127, 2.0 ** 127, math.nan], "float8_e8m0fnu")

# ---- Numbers ----

one = quern.from_dlpack(Producer([2.5]))
is_((float(one), int(one), bool(one), one.item()), (2.5, 2, True, 2.5), "an array of one item as a number")
raises(TypeError, lambda: [0][one], "a float is no index")
is_([5, 6, 7][quern.from_dlpack(Producer([2], code=0, bits=64))], 7, "an integer is")
raises(ValueError, lambda: bool(quern.from_dlpack(Producer([1.0, 2.0]))), "two items are neither true nor false")
raises(ValueError, quern.from_dlpack(Producer([], shape=[0])).item, "no item", "it has 0 items")
raises(TypeError, lambda: len(quern.from_dlpack(Producer([1.0], shape=[]))), "0 dimensions have no length")

# ---- Text ----


def text(*arguments, **keywords):
    return repr(quern.from_dlpack(Producer(*arguments, **keywords)))


is_(text([1.0, 0.1, -1e-30, 16777216.0, 1e20]), "quern.Array([1.0, 0.1, -1e-30, 16777216.0, 1e+20], dtype=float32)", "f32")
is_(text([1.0, 0.3, 7.0, 5e-324], bits=64), "quern.Array([1.0, 0.3, 7.0, 5e-324], dtype=float64)", "f64")
is_(text(struct.pack("=3e", 0.1, 65504, 6e-8), shape=[3], bits=16), "quern.Array([0.1, 65504.0, 6e-08], dtype=float16)", "f16")
is_(text([1.0, 2.0], shape=[1, 2, 1]), "quern.Array([[[1.0],\n              [2.0]]], dtype=float32)", "rows below one another")
is_(text([1.0], shape=[]), "quern.Array(1.0, dtype=float32)", "0 dimensions")
is_(text([], shape=[0, 3]), "quern.Array([], shape=(0, 3), dtype=float32)", "an empty one has its shape")
is_(text([1.0], flags=1), "quern.Array([1.0], dtype=float32, readonly=True)", "read-only")
is_(text([1.0], shape=[2000], strides=[0]),
    "quern.Array([1.0, 1.0, 1.0, ..., 1.0, 1.0, 1.0], shape=(2000,), dtype=float32)", "the ends of many")
is_(text([1.0], device=(2, 1)), "quern.Array(..., dtype=float32, device='cuda:1')", "what cannot be read is left out")
ok(len(text([1.0], shape=[10 ** 9, 3], strides=[0, 0])) < 400, "much is told in short")

# ---- The buffer protocol: in ----

for kind in "bBhHiIlLqQfd":
    a = array.array(kind, [1, 2, 3])
    x = quern.from_dlpack(a)
    ok((x.tolist(), x.itemsize, x.data_ptr()) == ([1, 2, 3], a.itemsize, a.buffer_info()[0]), "array.array of " + kind)
    raises(BufferError, lambda: a.append(1), "which is held meanwhile")
    del x
    a.append(1)
x = quern.from_dlpack(b"abc")
is_((x.tolist(), x.readonly), ([97, 98, 99], True), "bytes are read-only")
x = quern.from_dlpack(bytearray(b"abc"))
is_((x.tolist(), x.readonly), ([97, 98, 99], False), "a bytearray is not")
x = quern.from_dlpack(memoryview(b"abcdef")[::-2])
is_((x.tolist(), x.strides), ([102, 100, 98], (-2,)), "negative strides")
x = quern.from_dlpack(memoryview(b"abcdef").cast("B", (2, 3)))
is_((x.tolist(), x.strides), ([[97, 98, 99], [100, 101, 102]], (3, 1)), "two dimensions")
x = quern.from_dlpack((ctypes.c_long * 3 * 2)())
is_((x.shape, x.strides, x.dtype), ((2, 3), (3, 1), "i64"), "ctypes: a format of the length that the item has")
is_(quern.from_dlpack(ctypes.c_double(2.5)).item(), 2.5, "a ctypes scalar has 0 dimensions")
is_(quern.from_dlpack(memoryview(b"")).shape, (0,), "an empty buffer")
memory = mmap.mmap(-1, 4096)
x = quern.from_dlpack(memory)
raises(BufferError, memory.close, "mapped memory is held")
del x
memory.close()
swapped = ctypes.c_float.__ctype_be__ if sys.byteorder == "little" else ctypes.c_float.__ctype_le__
for bad, part in (((swapped * 3)(), "format"), ((ctypes.c_char * 3)(), "format"), (memoryview(b"abc").cast("c"), "format"),
                  ((ctypes.py_object * 3)(), "format")):
    raises(BufferError, lambda: quern.from_dlpack(bad), "refused: {!r}".format(type(bad).__name__), part)
released = memoryview(b"abc")
released.release()
raises(ValueError, lambda: quern.from_dlpack(released), "a released memoryview")
for name, wanted in (("sum", "quern.sum(x)"), ("power", "quern.pow(x)"), ("astype", "quern.astype(x, dtype)"), ("squeeze", "quern.array_api.squeeze(x)"),
                     ("ravel", "x.reshape((-1,))")):
    raises(AttributeError, lambda: getattr(quern.asarray([1.0]), name), "no method {}".format(name), "write " + wanted)
is_((getattr(quern.asarray([1.0]), "nothing", 7), hasattr(quern.asarray([1.0]), "__wrapped__")), (7, False), "others are not there")
is_(("{:.2f}".format(quern.asarray([1.5])), "{}".format(quern.asarray([1.5]))), ("1.50", str(quern.asarray([1.5]))), "formats, of one item")
raises(ValueError, lambda: "{:.2f}".format(quern.asarray([1.0, 2.0])), "  not of two", "only one of 1 item")
raises(AttributeError, lambda: quern.from_dlpack(5), "neither __dlpack__ nor a buffer", "__dlpack__")

# ---- The buffer protocol: out ----

x = quern.from_dlpack(array.array("f", [1, 2, 3, 4, 5, 6]))
view = memoryview(x)
is_((view.format, view.itemsize, view.shape, view.strides, view.readonly), ("f", 4, (6,), (4,), False), "a view")
view[0] = 9
is_((x.tolist()[0], view.obj is x), (9.0, True), "is the memory, and holds the array")
address = x.data_ptr()
del x
is_(quern.from_dlpack(view).data_ptr(), address, "the array lives as long as the view")
ok(memoryview(quern.from_dlpack(b"abc")).readonly, "read-only stays")
is_(memoryview(quern.from_dlpack(Producer([], shape=[0, 3], data=None))).shape, (0, 3), "an empty tensor without memory")
is_(memoryview(quern.from_dlpack(Producer([2.5], shape=[]))).tolist(), 2.5, "0 dimensions")
is_(memoryview(quern.from_dlpack(Producer([1.0, 2.0], byte_offset=4, shape=[1]))).tolist(), [2.0], "byte_offset")


class View(ctypes.Structure):
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t), ("itemsize", c_ssize_t), ("readonly", c_int),
                ("ndim", c_int), ("format", c_char_p), ("shape", c_void_p), ("strides", c_void_p), ("suboffsets", c_void_p),
                ("internal", c_void_p)]


get_buffer = ctypes.PYFUNCTYPE(c_int, py_object, c_void_p, c_int)(("PyObject_GetBuffer", pythonapi))
release = ctypes.PYFUNCTYPE(None, c_void_p)(("PyBuffer_Release", pythonapi))
SIMPLE, WRITABLE, FORMAT, ND, STRIDES, C, F, ANY = 0, 1, 4, 8, 0x18, 0x38, 0x58, 0x98


def serves(x, flags):
    view = View()
    try:
        get_buffer(x, ctypes.addressof(view), flags)
    except BufferError:
        return "refused" if not view.obj else "an obj is left"
    result = ("f" if view.format else "") + ("n" if view.shape else "") + ("s" if view.strides else "")
    release(ctypes.addressof(view))
    return result


rows = quern.from_dlpack(Producer(range(6), shape=[2, 3]))
columns = rows.T
gaps = quern.from_dlpack(Producer(range(6), shape=[2, 2], strides=[3, 1]))
locked = quern.from_dlpack(Producer(range(6), shape=[2, 3], flags=1))
scales = quern.from_dlpack(Producer(bytes(6), shape=[2, 3], code=14, bits=8))
no = "refused"
for flags, wanted in ((SIMPLE, ("", no, no, "")), (WRITABLE, ("", no, no, no)), (ND, ("n", no, no, "n")),
                      (ND | FORMAT, ("fn", no, no, "fn")), (STRIDES, ("ns", "ns", "ns", "ns")), (C, ("ns", no, no, "ns")),
                      (F, (no, "ns", no, no)), (ANY, ("ns", "ns", no, "ns")), (STRIDES | WRITABLE, ("ns", "ns", "ns", no))):
    is_(tuple(serves(x, flags) for x in (rows, columns, gaps, locked)), wanted, "a consumer's flags {:#x}".format(flags))
is_((serves(scales, C), serves(scales, C | FORMAT)), ("ns", no), "a dtype without a format goes without one")
raises(BufferError, lambda: memoryview(quern.from_dlpack(Producer([1.0], device=(2, 0)))), "a device's memory", "device='cpu'")

# ---- Nothing is left ----

del rows, columns, gaps, locked, scales, one, c, view
gc.collect()
is_(alive(), 0, "every tensor that came has been deleted")
counts = []
for _ in range(2):
    for _ in range(1000):
        x = quern.from_dlpack(bytearray(16))
        memoryview(x).release()
        repr(x), x.tolist(), x.shape, x.strides, x.device, x.T, x.dtype, x.size
        try:
            quern.from_dlpack((ctypes.c_char * 3)())
        except BufferError:
            pass
    del x
    gc.collect()
    counts.append([sys.getrefcount(each) for each in (quern.Array, quern.uint8, quern.Device, quern.dtype)])
is_(counts[0], counts[1], "no references are left")

done_testing()
