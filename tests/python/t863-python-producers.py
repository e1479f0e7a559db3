# SPDX-License-Identifier: Apache-2.0
# tags: memory
"""quern.from_dlpack of whatever there may be behind __dlpack__: producers from before versions, and those that break the protocol
in one place: each is served or refused with the reason, and its deleter is called once."""

import ctypes
import gc
import sys

import quern
from odd_producer import (IS_COPIED, LEGACY, PADDED, READ_ONLY, VERSIONED, BareProducer, Legacy, OldProducer, Producer, alive,
                          capsule_name, capsule_new)
from tap import done_testing, is_, ok, raises


def taken(producer, wanted, name, **options):
    """It is the producer's memory, and is deleted with the array."""
    x = quern.from_dlpack(producer, **options)
    ok(x.tolist() == wanted and (x.size == 0 or x.data_ptr() == producer.address + producer.tensor.byte_offset), name)
    is_(producer.deleted, 0, name + ": held")
    strides = x.strides
    del x
    gc.collect()
    is_(producer.deleted, 1 if producer.has_deleter else 0, name + ": deleted once")
    return strides


def refused(producer, name, part, error=BufferError):
    raises(error, lambda: quern.from_dlpack(producer), name, part)
    gc.collect()
    is_(producer.deleted, 1 if producer.has_deleter else 0, name + ": deleted once")


# ---- Signatures ----

for kind, wanted in ((Producer, {"max_version": (1, 3)}), (OldProducer, {}), (BareProducer, {})):
    p = kind([1.0, 2.0])
    taken(p, [1.0, 2.0], kind.__name__)
    is_(p.calls, [wanted], kind.__name__ + ": what it was asked for")
for device, stream in (((2, 0), 1), ((13, 0), 1), ((10, 0), 0), ((3, 0), None), ((8, 0), None)):
    for kind in (Producer, OldProducer):
        p = kind([1.0], device=device)
        is_(quern.from_dlpack(p).device, device, "a device {} of {}".format(device, kind.__name__))
        is_(p.calls[0].get("stream"), stream, "is told the stream: the legacy default one")

# ---- Forms and versions ----

taken(Producer([1.0], form=Legacy), [1.0], "a legacy capsule in answer to max_version")
taken(Producer([1.0], version=(1, 99)), [1.0], "a later minor version")
taken(Producer([1.0], version=(1, 0)), [1.0], "the first one")
refused(Producer([1.0], version=(2, 0)), "a later major version", "version")
refused(Producer([1.0], version=(0, 8)), "an earlier one", "version")
refused(Producer([1.0], version=(2, 0), shape=None, ndim=1 << 30, data=1), "of another version only the deleter is used", "")
taken(Producer([1.0, 2.0], deleter=False), [1.0, 2.0], "no deleter")
taken(Producer([1.0, 2.0], form=Legacy, deleter=False), [1.0, 2.0], "legacy, no deleter")

# ---- Layouts ----

is_(taken(Producer([1.0, 2.0, 3.0, 4.0], shape=[2, 2], strides=None), [[1.0, 2.0], [3.0, 4.0]], "NULL strides"), (2, 1),
    "NULL strides: compact")
taken(Producer([1.0, 2.0, 3.0, 4.0], shape=[2, 2], strides=None, form=Legacy), [[1.0, 2.0], [3.0, 4.0]], "legacy, NULL strides")
taken(Producer([1.0], shape=None, strides=None, ndim=0), 1.0, "0 dimensions, shape and strides NULL")
taken(Producer([], shape=[0, 3], data=None), [], "an empty tensor, data NULL")
taken(Producer([], shape=[2, 0], strides=[1 << 62, -(1 << 62)]), [[], []], "an empty tensor's strides mean nothing")
taken(Producer([5.0], shape=[1, 1], strides=[1 << 62, -3]), [[5.0]], "nor do those of extents of 1")
taken(Producer([1.0, 2.0, 3.0], byte_offset=4, shape=[2]), [2.0, 3.0], "byte_offset")
taken(Producer([1.0, 2.0, 3.0], byte_offset=8, shape=[3], strides=[-1]), [3.0, 2.0, 1.0], "negative strides")
taken(Producer([1.0], shape=[3], strides=[0]), [1.0, 1.0, 1.0], "strides of 0")
taken(Producer(bytes([0, 0, 0, 128, 63, 0]), shape=[1], byte_offset=1), [1.0], "misaligned")
taken(Producer([7.0], shape=[1] * 32), eval("[" * 32 + "7.0" + "]" * 32), "32 dimensions")
refused(Producer([7.0], shape=[1] * 33), "33 dimensions", "33")
refused(Producer([7.0], ndim=-1), "less than none", "", error=(BufferError, ValueError))
refused(Producer([7.0], shape=[-1]), "a negative extent", "", error=(BufferError, ValueError))
refused(Producer([7.0], shape=None, ndim=1), "no shape", "", error=(BufferError, ValueError))
refused(Producer([7.0], shape=[3], data=None), "items and no memory", "", error=(BufferError, ValueError))
refused(Producer([7.0], shape=[1 << 40, 1 << 40], strides=[0, 0]), "more items than can be counted", "")
refused(Producer([7.0], shape=[2], strides=[1 << 62]), "items further apart than memory", "")

# ---- Dtypes ----

taken(Producer([0, 1, 2], code=6, bits=8), [False, True, True], "bool")
is_(taken(Producer([0, 1, 1], code=1, bits=1, form=Legacy), [False, True, True], "bool of one bit, legacy"), (1,), "is bool")
taken(Producer([0, 1, 1], code=1, bits=1, flags=PADDED), [False, True, True], "bool of one bit, padded")
refused(Producer([0, 1, 1], code=1, bits=1), "items of one bit, packed", "bit")
refused(Producer([1.0, 2.0], lanes=2, shape=[1]), "two lanes", "lanes")
refused(Producer([1.0], lanes=0), "no lanes", "lanes")
refused(Producer(bytes(4), code=17, bits=4), "float4", "float4_e2m1fn")
refused(Producer(bytes(4), code=15, bits=6), "float6", "float6_e2m3fn")
refused(Producer(bytes(4), code=0, bits=4), "i4", "4")
refused(Producer(bytes(8), code=0, bits=12), "i12", "12")
refused(Producer(bytes(8), code=99, bits=8), "an unknown code", "99")
refused(Producer(bytes(8), bits=0), "no bits", "")
for code in range(7, 15):
    x = quern.from_dlpack(Producer(bytes(4), code=code, bits=8))
    is_(x.dtype.dlpack, (code, 8, 1), "float8: {}".format(x.dtype))
for code, bits in ((0, 128), (1, 128), (2, 128), (2, 24), (3, 64), (5, 32), (4, 32)):
    p = Producer(bytes(32), code=code, bits=bits, shape=[1])
    try:
        x = quern.from_dlpack(p)
        raises(TypeError, lambda: x.dtype, "code {}, {} bits: no name".format(code, bits))
        raises(TypeError, x.tolist, "no values")
        ok(isinstance(repr(x), str), "but a text")
        raises(BufferError, lambda: memoryview(x), "no format")
        del x
    except BufferError:
        pass
    gc.collect()
    is_(p.deleted, 1, "code {}, {} bits: deleted once".format(code, bits))

# ---- Flags ----

is_(quern.from_dlpack(Producer([1.0], flags=READ_ONLY)).readonly, True, "read-only")
is_(quern.from_dlpack(Producer([1.0], flags=1 << 63 | 1 << 20)).readonly, False, "unknown flags")

# ---- What is no tensor ----


class Odd:
    """Answers as it is told; an exception is raised."""

    def __init__(self, capsule, device=(1, 0)):
        self.answer, self.device = capsule, device

    def __dlpack_device__(self):
        return self.say(self.device)

    def __dlpack__(self, **keywords):
        return self.say(self.answer)

    def say(self, answer):
        if isinstance(answer, BaseException):
            raise answer
        return answer() if callable(answer) else answer


for answer in (None, 5, "dltensor", [], object(), Producer([1.0])):
    raises(TypeError, lambda: quern.from_dlpack(Odd(answer)), "__dlpack__ gives {}".format(type(answer).__name__), "capsule")
for device in (None, 5, (), (1,), (1, 0, 0), [1, 0], ("1", 0), (1.0, 0), "cpu"):
    raises(TypeError, lambda: quern.from_dlpack(Odd(None, device)), "__dlpack_device__ gives {!r}".format(device), "device")
raises(ValueError, lambda: quern.from_dlpack(Odd(None, (1 << 64, 0))), "a device type of 65 bits")
for error in (KeyError("k"), RuntimeError("r"), ZeroDivisionError("z"), KeyboardInterrupt("i"), TypeError("t"), BufferError("b"),
              ValueError("v"), MemoryError("m"), SystemExit("s")):
    raises(type(error), lambda: quern.from_dlpack(Odd(error)), "__dlpack__ raises {!r}".format(error), str(error))
    raises(type(error), lambda: quern.from_dlpack(Odd(None, error)), "__dlpack_device__ raises {!r}".format(error), str(error))
    if isinstance(error, (KeyError, KeyboardInterrupt, MemoryError, RuntimeError)):
        raises(type(error), lambda: quern.from_dlpack(Odd(error), copy=True), "with a wish too: {!r}".format(error))


class Half:
    def __dlpack__(self, **keywords):
        raise AssertionError


raises(AttributeError, lambda: quern.from_dlpack(Half()), "no __dlpack_device__", "__dlpack_device__")
ok(quern.from_dlpack(Producer([1.0], device=(2, 3))).device == (2, 3), "the tensor's own device counts")
x = quern.from_dlpack(Odd(Producer([1.0]).capsule, (2, 0)))
is_(x.device, (1, 0), "not the one that was announced")
once = Producer([1.0]).capsule()
quern.from_dlpack(Odd(once))
raises(ValueError, lambda: quern.from_dlpack(Odd(once)), "a capsule that was given before", "consumed")


class Instance:
    pass


p, made = Instance(), Producer([1.0, 2.0])
p.__dlpack__, p.__dlpack_device__ = (lambda **keywords: made.capsule()), (lambda: (1, 0))
is_(quern.from_dlpack(p).tolist(), [1.0, 2.0], "methods of the object alone serve, as those of a proxy must")
del p, made

# Deleters are strangers' code too: an exception that is on its way stays, one of the deleter's goes to sys.unraisablehook.
unraisable = []
sys.unraisablehook = unraisable.append


class Spiteful(Producer):
    def __setattr__(self, name, value):
        if name == "deleted" and value > 0:
            super().__setattr__(name, value)
            raise RuntimeError("spite")
        super().__setattr__(name, value)


p = Spiteful([1.0])
x = quern.from_dlpack(p)
del x
is_((p.deleted, len(unraisable)), (1, 1), "a deleter that raises")
raises(BufferError, lambda: quern.from_dlpack(Spiteful([1.0], lanes=3)), "a deleter that raises after a refusal", "lanes")
sys.unraisablehook = sys.__unraisablehook__


class Reentrant(Producer):
    """Asks for its own tensor while it is asked."""
    depth = 0

    def __dlpack__(self, **keywords):
        if self.depth < 5:
            self.depth += 1
            quern.from_dlpack(self)
        return self.capsule()


p = Reentrant([1.0])
quern.from_dlpack(p)
is_(p.deleted, 6, "a producer that calls back")

# ---- from_dlpack's own arguments ----

p = Producer([1.0, 2.0])
x = quern.from_dlpack(p, copy=True)
ok(x.data_ptr() != p.address and x.tolist() == [1.0, 2.0] and p.deleted == 1, "copy=True: made here if the producer did not")
is_(p.calls, [{"max_version": (1, 3), "copy": True}], "it was asked")
p = Producer([1.0, 2.0], flags=IS_COPIED)
ok(quern.from_dlpack(p, copy=True).data_ptr() == p.address, "copy=True: once is enough")
raises(BufferError, lambda: quern.from_dlpack(p, copy=False), "copy=False, and a copy comes", "copy")
for kind in (OldProducer, BareProducer):
    p = kind([1.0, 2.0])
    ok(quern.from_dlpack(p, copy=True).data_ptr() != p.address and p.deleted == 1, "copy=True of {}".format(kind.__name__))
    ok(quern.from_dlpack(p, copy=False).data_ptr() == p.address, "copy=False of {}".format(kind.__name__))
p = Producer([1.0, 2.0], flags=READ_ONLY)
is_(quern.from_dlpack(p, copy=True).readonly, False, "a copy can be written")
for device in ((1, 0), "cpu", "cpu:0", quern.from_dlpack(b"").device):
    p = Producer([1.0])
    is_(quern.from_dlpack(p, device=device).data_ptr(), p.address, "device={!r}: it is there".format(device))
    is_(p.calls, [{"max_version": (1, 3), "dl_device": (1, 0)}], "it was asked")
p = OldProducer([1.0])
is_(quern.from_dlpack(p, device="cpu", copy=False).data_ptr(), p.address, "device, of one that knows none")
for device, error in (("gpu", ValueError), ("", ValueError), ("cuda:", ValueError), ("cuda:x", ValueError), (5, ValueError),
                      ("cuda:-1", ValueError), ("cuda:99999999999", ValueError), ((1,), TypeError), (("cuda", 0), TypeError)):
    raises(error, lambda: quern.from_dlpack(p, device=device), "device={!r}".format(device), "device")
p = Producer([1.0], device=(8, 0))
raises(BufferError, lambda: quern.from_dlpack(p, device="cpu"), "a device from which there is no way")
raises(BufferError, lambda: quern.from_dlpack(Producer([1.0]), device="metal"), "a device to which there is no way")
raises(BufferError, lambda: quern.from_dlpack(Producer([1.0], device=(2, 0)), device="cpu", copy=False), "no way without a copy")
raises(TypeError, lambda: quern.from_dlpack(), "nothing")
raises(TypeError, lambda: quern.from_dlpack(p, p), "too much")
raises(TypeError, lambda: quern.from_dlpack(x=p), "x has no name")
raises(TypeError, lambda: quern.from_dlpack(p, stream=1), "stream is not its argument", "stream")

x = quern.from_dlpack(Producer([1.0, 2.0]))
y = quern.from_dlpack(x)
ok(y is not x and y.data_ptr() == x.data_ptr(), "an array of an array shares")
ok(quern.from_dlpack(x, copy=True).data_ptr() != x.data_ptr(), "or is a copy")
is_(x.to_device("cpu").data_ptr(), x.data_ptr(), "to_device: it is there")


class Both(bytearray):
    """Refuses by DLPack, as NumPy before 2.1 does for read-only memory, and has a buffer."""
    error = BufferError("no DLPack")

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **keywords):
        raise self.error


is_(quern.from_dlpack(Both(b"abc")).tolist(), [97, 98, 99], "what DLPack refuses may have a buffer")
b = Both(b"abc")
b.error = KeyError("other")
raises(KeyError, lambda: quern.from_dlpack(b), "other exceptions are not hidden")

is_(capsule_name(Producer([1.0]).capsule()), VERSIONED, "(the producer's own names)")
is_(capsule_name(Producer([1.0], form=Legacy).capsule()), LEGACY, "(of both forms)")
never = Producer([1.0]).managed()
quern.from_dlpack(capsule_new(ctypes.addressof(never), VERSIONED, None))
del x, y, once, p, b
gc.collect()
is_(alive(), 2, "every tensor has been deleted, but for the two without a deleter")

done_testing()
