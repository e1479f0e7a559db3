# SPDX-License-Identifier: Apache-2.0
# tags: memory
"""The capsules of quern.Array.__dlpack__, by the letter of DLPack: names, forms, versions, flags, who deletes, what each argument
does, and what it must not."""

import ctypes
import gc

import quern
from odd_producer import (IS_COPIED, LEGACY, LEGACY_USED, READ_ONLY, VERSIONED, VERSIONED_USED, Producer,
                          alive, capsule_name, capsule_new, capsule_rename, managed_of)
from tap import done_testing, is_, ok, raises

ADDRESS = ctypes.addressof


def array(**keywords):
    producer = Producer([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[2, 3], **keywords)
    return producer, quern.from_dlpack(producer)


# ---- Form and name ----

p, x = array()
for arguments, name in (({}, LEGACY), ({"max_version": None}, LEGACY), ({"max_version": (0, 8)}, LEGACY),
                        ({"max_version": (1, 0)}, VERSIONED), ({"max_version": (1, 3)}, VERSIONED),
                        ({"max_version": (2, 0)}, VERSIONED)):
    capsule = x.__dlpack__(**arguments)
    is_(capsule_name(capsule), name, "the form for {}".format(arguments))
    tensor = managed_of(capsule).tensor
    is_((tensor.data, tensor.ndim, tensor.shape[0:2], tensor.strides[0:2], tensor.byte_offset,
         (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes), (tensor.device.type, tensor.device.id)),
        (p.address, 2, [2, 3], [3, 1], 0, (2, 32, 1), (1, 0)), "the tensor in it")
is_((managed_of(capsule).major, managed_of(capsule).flags), (1, 0), "version and flags")
ok(managed_of(capsule).deleter, "a deleter")
for bad in (1, (1,), (1, 2, 3), [1, 0], "10", ("1", 0), (None, 0)):
    raises(TypeError, lambda: x.__dlpack__(max_version=bad), "max_version={!r}".format(bad))
raises(OverflowError, lambda: x.__dlpack__(max_version=(1 << 80, 0)), "max_version that is no version")
raises(TypeError, lambda: x.__dlpack__(None), "arguments are named")
raises(TypeError, lambda: x.__dlpack__(other=1), "and known")

# ---- Who deletes ----

del x, capsule, tensor
gc.collect()
is_(p.deleted, 1, "capsules that were not consumed have released the tensor")

p, x = array()
capsule = x.__dlpack__(max_version=(1, 3))
del x
gc.collect()
is_(p.deleted, 0, "a capsule outlives the array")
y = quern.from_dlpack(capsule)
is_(capsule_name(capsule), VERSIONED_USED, "a consumed capsule has the other name")
is_(y.data_ptr(), p.address, "consumed: the same memory")
raises(ValueError, lambda: quern.from_dlpack(capsule), "no second time", "consumed")
del capsule
gc.collect()
is_((p.deleted, y.tolist()[0][0]), (0, 1.0), "the end of a consumed capsule deletes nothing")
del y
gc.collect()
is_(p.deleted, 1, "the consumer does, once")

p, x = array()
capsule = x.__dlpack__()
managed = managed_of(capsule, hold=False)
capsule_rename(capsule, LEGACY_USED)
del capsule, x
gc.collect()
is_(p.deleted, 0, "who has renamed a capsule owns the tensor")
managed.deleter(ADDRESS(managed))
is_(p.deleted, 1, "and deletes it")

p, x = array()
shares = [x.__dlpack__(max_version=(1, 0)) for _ in range(10)] + [x.__dlpack__() for _ in range(10)]
shares = [quern.from_dlpack(capsule) for capsule in shares]
del x
while shares:
    is_(p.deleted, 0, "{} shares".format(len(shares))) if len(shares) in (20, 1) else None
    shares.pop()
is_(p.deleted, 1, "the last share deletes")

# ---- Consuming what is no such capsule ----

word = ctypes.c_uint64(0)
for name in (b"dltensor_v", b"DLTENSOR", b"", b"arrow_array", None):
    capsule = capsule_new(ADDRESS(word), name, None)
    raises(ValueError, lambda: quern.from_dlpack(capsule), "a capsule named {!r}".format(name), "named")
    is_(capsule_name(capsule), name, "is left as it was")

# ---- Flags ----

p, x = array(flags=READ_ONLY)
ok(x.readonly and x.T.readonly, "read-only")
raises(BufferError, x.__dlpack__, "read-only memory has no legacy form", "read-only")
is_(managed_of(x.__dlpack__(max_version=(1, 0))).flags, READ_ONLY, "and is flagged in the other one")
is_(managed_of(x.__dlpack__(max_version=(1, 0), copy=True)).flags, IS_COPIED, "a copy is the consumer's own")
is_(capsule_name(x.__dlpack__(copy=True)), LEGACY, "also in the legacy form")
p, x = array(flags=IS_COPIED)
is_(managed_of(x.__dlpack__(max_version=(1, 0))).flags, 0, "what was the array's own copy is not its consumers'")

# ---- copy, dl_device, stream ----

p, x = array()
capsule = x.__dlpack__(max_version=(1, 3), copy=True)
y = quern.from_dlpack(capsule)
ok(y.data_ptr() != p.address and y.tolist() == x.tolist() and y.data_ptr() % 256 == 0, "copy=True: aligned memory of its own")
is_(quern.from_dlpack(x.T.__dlpack__(copy=True)).strides, (2, 1), "copies are compact")
is_(managed_of(x.__dlpack__(copy=False)).tensor.data, p.address, "copy=False: the memory")
is_(managed_of(x.__dlpack__(copy=None, dl_device=(1, 0))).tensor.data, p.address, "dl_device: where it is, no copy")
is_(managed_of(x.__dlpack__(dl_device=None)).tensor.data, p.address, "dl_device=None")
for device, error in (((2, 0), BufferError), ((7, 0), BufferError), ((-1, 0), BufferError),
                      ((1,), TypeError), ((1.0, 0), TypeError), ((1 << 40, 0), ValueError)):
    raises(error, lambda: x.__dlpack__(dl_device=device), "dl_device={!r}".format(device))
raises(BufferError, lambda: x.__dlpack__(dl_device=(2, 0), copy=False), "dl_device elsewhere without a copy")
for stream in (0, 1, 2, -1, 12345678, -5):
    raises(ValueError, lambda: x.__dlpack__(stream=stream), "the CPU has no stream {}".format(stream), "stream")
raises(TypeError, lambda: x.__dlpack__(stream="1"), "a stream is an int")

cuda = quern.from_dlpack(Producer([1.0, 2.0], device=(2, 0)))
is_(cuda.__dlpack_device__(), (2, 0), "memory of a device")
for stream in (None, 1, 2, -1, 0x7F0012345600):
    ok(managed_of(cuda.__dlpack__(stream=stream, max_version=(1, 3))).tensor.data, "CUDA: stream {}".format(stream))
raises(ValueError, lambda: cuda.__dlpack__(stream=0), "CUDA: stream 0 may mean two streams", "0")
raises(ValueError, lambda: cuda.__dlpack__(stream=-2), "CUDA: no stream is negative")
raises(ValueError, lambda: cuda.__dlpack__(stream=1, dl_device=(1, 0)), "a copy on the CPU has no stream")
raises(OverflowError, lambda: cuda.__dlpack__(stream=1 << 70), "CUDA: no pointer")

# ---- Odd layouts go through ----

for keywords, wanted in (({"shape": []}, (0, None, None)), ({"shape": [0, 2]}, (2, [0, 2], None)),
                         ({"shape": [2, 1, 2], "strides": [2, -77, 1]}, (3, [2, 1, 2], [2, -77, 1])),
                         ({"shape": [2], "strides": [0]}, (1, [2], [0]))):
    x = quern.from_dlpack(Producer([1.0, 2.0, 3.0, 4.0], **keywords))
    tensor = managed_of(x.__dlpack__(max_version=(1, 3))).tensor
    ok(tensor.ndim == wanted[0] and (wanted[1] is None or tensor.shape[0:tensor.ndim] == wanted[1]) and
       (wanted[2] is None or tensor.strides[0:tensor.ndim] == wanted[2]), "as it came: {}".format(keywords))
    ok(tensor.ndim == 0 or tensor.strides, "with strides")

del x, y, cuda, capsule, shares, tensor, managed
gc.collect()
is_(alive(), 0, "nothing is left")

done_testing()
