# SPDX-License-Identifier: Apache-2.0
# tags: memory
"""Streams of calls on a CUDA device, on the fake driver: the one that is named, the one that a producer with the C exchange API
works on, and what producers of capsules are told; the workspace of a long reduction."""

import os

from tap import done_testing, is_, ok, raises, skip, skip_all

folder = os.path.join(os.environ.get("QUERN_BUILD_DIR", "build"), "tests", "fake")
if not os.path.exists(os.path.join(folder, "libcuda.so.1")):
    skip_all("this build has no fake driver: " + folder)
os.environ["QUERN_CUDA_PATH"] = folder

import ctypes  # noqa: E402
from ctypes import POINTER, PYFUNCTYPE, Structure, byref, c_int, c_int32, c_uint32, c_void_p, py_object  # noqa: E402

import quern  # noqa: E402
from odd_producer import Tensor, Versioned, capsule_new, capsule_pointer, capsule_rename  # noqa: E402

driver = ctypes.CDLL(os.path.join(folder, "libcuda.so.1"))
driver.fake_cuda_log.restype = ctypes.c_char_p


class Api(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("previous", c_void_p), ("allocate", c_void_p), ("take", c_void_p),
                ("give", c_void_p), ("borrow", c_void_p), ("stream", c_void_p)]


def owned(tensor):
    """The address of a managed tensor, which is the caller's."""
    capsule = tensor.__dlpack__(max_version=(1, 3), **({"stream": -1} if tensor.device[0] == 2 else {}))
    address = capsule_pointer(capsule, b"dltensor_versioned")
    capsule_rename(capsule, b"used_dltensor_versioned")
    return address


class Framework:
    """A tensor of a framework that has the C exchange API, and a stream that it works on."""
    current = 0
    asked = []

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **wishes):
        return self.tensor.__dlpack__(**wishes)


@PYFUNCTYPE(c_int, py_object, POINTER(c_void_p))
def take(framework, out):
    out[0] = owned(framework.tensor)
    return 0


borrowed = []  # what lies behind bare tensors, until the end


@PYFUNCTYPE(c_int, py_object, POINTER(Tensor))
def borrow(framework, out):
    address = owned(framework.tensor)
    borrowed.append(address)
    ctypes.memmove(out, byref(Versioned.from_address(address).tensor), ctypes.sizeof(Tensor))
    return 0


@PYFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p))
def current_stream(device_type, device_id, out):
    Framework.asked.append((device_type, device_id))
    out[0] = Framework.current
    return 0


@PYFUNCTYPE(c_int, POINTER(Tensor), POINTER(c_void_p), c_void_p, c_void_p)
def allocate(prototype, out, context, set_error):
    shape = ctypes.cast(prototype[0].shape, POINTER(ctypes.c_int64))
    out[0] = owned(quern.empty((shape[0],), dtype="u8", device="cuda"))
    return 0


address = lambda function: ctypes.cast(function, c_void_p).value  # noqa: E731
api = Api(1, 3, None, address(allocate), address(take), address(take), address(borrow), address(current_stream))
Framework.__dlpack_c_exchange_api__ = capsule_new(ctypes.addressof(api), b"dlpack_exchange_api", None)


class Capsules:
    """A producer of capsules; what it is told."""

    def __init__(self, tensor):
        self.tensor, self.told = tensor, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, stream=None, **wishes):
        self.told.append(stream)
        return self.tensor.__dlpack__(stream=stream, **wishes)


host = quern.empty((4,), dtype="f32")
quern.op("full")(value=2.0, out=host)
x, y, z = (quern.from_dlpack(host, device="cuda", copy=True) for _ in range(3))


def new_stream():
    context, made = c_void_p(), c_void_p()
    driver.cuDevicePrimaryCtxRetain(byref(context), 0)
    driver.cuCtxPushCurrent_v2(context)
    driver.cuStreamCreate(byref(made), 1)
    driver.cuCtxPopCurrent_v2(byref(context))
    return made.value


def launched(function):
    """The streams that kernels went on."""
    driver.fake_cuda_clear()
    function()
    lines = driver.fake_cuda_log().decode().splitlines()
    return [int(line.rsplit(", ", 1)[1].replace("(nil)", "0"), 0) for line in lines if line.startswith("cuLaunchKernel ")]


mine, Framework.current = new_stream(), new_stream()
is_(launched(lambda: quern.add(x, y, out=z)), [0], "no stream: the legacy default one")
is_(z.tolist(), [4.0] * 4, "and a result")
for stream in (1, 2, mine):
    is_(launched(lambda: quern.add(x, y, out=z, stream=stream)), [stream], "stream {:#x}".format(stream))
raises(RuntimeError, lambda: quern.add(x, y, out=z, stream=0x550), "a stream that is none", "cuda:0")
ok(quern.add(x, y).device == (2, 0) and quern.add(x, y).tolist() == [4.0] * 4, "without out: on the device")
is_(quern.add(x, 1.5).tolist(), [3.5] * 4, "a number beside it")

c = Capsules(y)
is_((launched(lambda: quern.add(c, x, out=z)), c.told), ([0], [1]), "a producer of capsules is told the legacy default one")
c = Capsules(y)
is_((launched(lambda: quern.add(c, x, out=z, stream=mine)), c.told), ([mine], [mine]), "or the one that is named")
f = Framework(x)
is_(launched(lambda: quern.add(f, y, out=z)), [Framework.current], "a producer with the exchange API: the one it works on")
is_(Framework.asked, [(2, 0)], "which it is asked for")
is_(launched(lambda: quern.add(f, y, out=z, stream=mine)), [mine], "unless one is named")
is_(Framework.asked, [(2, 0)], "then it is not asked")
c = Capsules(y)
is_(launched(lambda: quern.add(c, f, out=z)), [Framework.current], "both: the one it works on")
is_(c.told[-1], Framework.current, "and the producer of capsules is told that")
is_(launched(lambda: quern.add(y, x, out=f)), [Framework.current], "as an output")
is_(x.tolist(), [4.0] * 4, "which is written")
h = Framework(host)
is_(quern.add(h, 1.0, out=host).tolist(), [3.0] * 4, "on the CPU no stream is asked for")
is_(len(Framework.asked), 3, "as was counted")
for address in borrowed:
    Versioned.from_address(address).deleter(address)

if hasattr(quern, "linspace"):
    long = quern.linspace(0, 1, 40000, dtype="f32", device="cuda")
    f, total = Framework(long), quern.empty((), dtype="f32", device="cuda")
    right = quern.sum(quern.from_dlpack(long, device="cpu"))
    is_(launched(lambda: quern.sum(f, out=total)), [Framework.current] * 2, "a long sum takes a workspace of the producer's, and two launches")
    is_(quern.from_dlpack(total, device="cpu").tolist(), right.tolist(), "with the result of the CPU")
    is_(launched(lambda: quern.sum(f, out=total, stream=mine)), [mine], "but not on a stream that it does not work on")
    is_(quern.from_dlpack(total, device="cpu").tolist(), right.tolist(), "where the result is the same")
else:
    skip(4, "this build has no linspace")

done_testing()
