# SPDX-License-Identifier: Apache-2.0
"""Arrays between the CPU and CUDA devices, on the fake driver: copies both ways, where they end, what waits, what is refused."""

import os

from tap import done_testing, is_, ok, raises, skip, skip_all

folder = os.path.join(os.environ.get("QUERN_BUILD_DIR", "build"), "tests", "fake")
if not os.path.exists(os.path.join(folder, "libcuda.so.1")):
    skip_all("this build has no fake driver: " + folder)
os.environ["QUERN_CUDA_PATH"] = folder

import ctypes  # noqa: E402

import quern  # noqa: E402
from odd_producer import IS_COPIED, READ_ONLY, OldProducer, Producer, managed_of  # noqa: E402

driver = ctypes.CDLL(os.path.join(folder, "libcuda.so.1"))
driver.fake_cuda_log.restype = ctypes.c_char_p


def calls(function):
    """How often the driver's function is called by this one."""
    driver.fake_cuda_clear()
    function()
    return {line.split()[0] for line in driver.fake_cuda_log().decode().splitlines()}


host = quern.from_dlpack(Producer([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[2, 3], flags=READ_ONLY))
there = quern.from_dlpack(host, device="cuda")
is_((there.device, str(there.device), there.shape, there.readonly), ((2, 0), "cuda:0", (2, 3), False), "to a device")
is_(there.tolist(), host.tolist(), "its values are read here")
is_(repr(there), repr(host).replace("readonly=True", "device='cuda:0'"), "and told")
is_(quern.from_dlpack(host, device=(2, 1)).device, (2, 1), "to another one")
back = quern.from_dlpack(there, device="cpu")
ok(back.device == (1, 0) and back.tolist() == host.tolist() and back.data_ptr() != host.data_ptr(), "back")
is_(there.to_device("cpu").tolist(), host.tolist(), "to_device")
is_(quern.from_dlpack(there).data_ptr(), there.data_ptr(), "no wish, no copy")
is_(quern.from_dlpack(there, device="cuda:0").data_ptr(), there.data_ptr(), "it is there")
copy = quern.from_dlpack(there, copy=True)
ok(copy.device == (2, 0) and copy.data_ptr() != there.data_ptr() and copy.tolist() == host.tolist(), "a copy where it is")
is_(quern.from_dlpack(host.T, device="cuda").tolist(), host.T.tolist(), "transposed, to a device")
is_(quern.from_dlpack(there.T, device="cpu").tolist(), host.T.tolist(), "transposed, from it")

capsule = there.__dlpack__(dl_device=(1, 0), max_version=(1, 3))
tensor = managed_of(capsule).tensor
is_((tensor.device.type, managed_of(capsule).flags), (1, IS_COPIED), "__dlpack__ with dl_device: a copy on the CPU")
is_(ctypes.cast(tensor.data, ctypes.POINTER(ctypes.c_float))[0:6], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "which is complete")
is_(managed_of(there.__dlpack__(stream=1)).tensor.data, there.data_ptr(), "__dlpack__ without: the memory")
raises(ValueError, lambda: there.__dlpack__(dl_device=(1, 0), stream=2), "the CPU has no stream")
for wish in ({"copy": False, "dl_device": (1, 0)}, {"dl_device": (2, 1)}, {"dl_device": (2, 9)}, {"dl_device": (8, 0)}):
    raises(BufferError, lambda: there.__dlpack__(**wish), "refused: {}".format(wish))
raises(BufferError, lambda: quern.from_dlpack(host, device="cuda", copy=False), "no way without a copy")
raises(BufferError, lambda: memoryview(there), "a device's memory is no buffer", "device='cpu'")
raises((TypeError, BufferError), there.__array__, "nor NumPy's", "device='cpu'")

made = quern.empty((3, 4), dtype="f16", device="cuda:1")
is_((made.device, made.strides, made.dtype), ((2, 1), (4, 1), "f16"), "memory of a device")
is_(quern.empty(0, device="cuda").size, 0, "none of it")
if hasattr(quern, "arange"):
    made = []
    logged = calls(lambda: made.append(quern.arange(2, 12, 3, dtype="i16", device="cuda")))
    is_((made[0].device, made[0].tolist()), ((2, 0), [2, 5, 8, 11]), "arange on a device")
    ok("cuLaunchKernel" in logged and not any("Memcpy" in name for name in logged), "is computed there")
    is_(quern.linspace(0, 1, 5, device="cuda:1").tolist(), [0.0, 0.25, 0.5, 0.75, 1.0], "linspace")
else:
    skip(3, "this build has some ops only, and no arange")

ok("cuStreamSynchronize" in calls(there.tolist), "what is read here is waited for")
is_([name for name in calls(lambda: there.__dlpack__(stream=2)) if "Sync" in name], [], "nothing waits for the memory itself")

# A producer's tensor of a device: asked first, then served here.
p = OldProducer(host.tolist()[0], device=(2, 0), data=there.data_ptr())
x = quern.from_dlpack(p, device="cpu")
is_((x.device, x.tolist(), p.deleted), ((1, 0), [1.0, 2.0, 3.0], 1), "of a producer that knows no dl_device")
is_(p.calls, [{"stream": 1}], "which was told the stream that the copy is made on")

del made, there, copy, back, x, capsule, tensor
ok(any("Free" in name for name in calls(lambda: quern.empty(4, device="cuda"))), "memory of a device is given back")

done_testing()
