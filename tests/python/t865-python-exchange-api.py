# SPDX-License-Identifier: Apache-2.0
# tags: memory
"""DLPack's C exchange API of quern.Array, called as C would: by its function pointers."""

import ctypes
import gc
from ctypes import POINTER, PYFUNCTYPE, Structure, byref, c_char_p, c_int, c_int32, c_int64, c_uint32, c_void_p, py_object
from ctypes import pythonapi

import quern
from odd_producer import READ_ONLY, Device, DType, Producer, Tensor, Versioned, alive, capsule_name, capsule_pointer
from tap import done_testing, is_, ok, raises

SetError = PYFUNCTYPE(None, c_void_p, c_char_p, c_char_p)


class API(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("older", c_void_p),
                ("allocate", PYFUNCTYPE(c_int, POINTER(Tensor), POINTER(c_void_p), c_void_p, SetError)),
                ("from_object", PYFUNCTYPE(c_int, py_object, POINTER(c_void_p))),
                ("to_object", PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))),
                ("borrow", PYFUNCTYPE(c_int, py_object, POINTER(Tensor))),
                ("current_stream", PYFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p)))]


capsule = quern.Array.__dlpack_c_exchange_api__
is_(capsule_name(capsule), b"dlpack_exchange_api", "a capsule on the type")
api = API.from_address(capsule_pointer(capsule, b"dlpack_exchange_api"))
is_((api.major, api.minor, api.older), (1, 3, None), "its version")
ok(all((api.allocate, api.from_object, api.to_object, api.borrow, api.current_stream)), "all five functions")


def taken(address):
    """The object of a managed tensor, which it takes over."""
    out = c_void_p()
    api.to_object(address, byref(out))
    x = ctypes.cast(out, py_object).value
    pythonapi.Py_DecRef(py_object(x))
    return x


# ---- Out: owned, borrowed ----

p = Producer([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[2, 3])
x = quern.from_dlpack(p)
out = c_void_p()
is_(api.from_object(x, byref(out)), 0, "an owned tensor")
managed = Versioned.from_address(out.value)
is_((managed.major, managed.flags, managed.tensor.data, managed.tensor.shape[0:2], managed.tensor.strides[0:2]),
    (1, 0, p.address, [2, 3], [3, 1]), "is the array's")
del x
gc.collect()
is_(p.deleted, 0, "and outlives it")
managed.deleter(out)
is_(p.deleted, 1, "until it is deleted")

p = Producer([1.0, 2.0])
x = quern.from_dlpack(p)
tensor = Tensor()
is_(api.borrow(x, byref(tensor)), 0, "a borrowed tensor")
is_((tensor.data, tensor.ndim, tensor.shape[0], tensor.strides[0], tensor.dtype.bits), (p.address, 1, 2, 1, 32), "is the array's")
locked = quern.from_dlpack(Producer([1.0], flags=READ_ONLY))
raises(BufferError, lambda: api.borrow(locked, byref(tensor)), "a bare tensor cannot say read-only", "read-only")
api.from_object(locked, byref(out))
managed = Versioned.from_address(out.value)
is_(managed.flags, READ_ONLY, "an owned one can")
managed.deleter(out)
for bad in (None, 5, bytearray(4), quern.float32, quern.Array):
    raises(TypeError, lambda: api.from_object(bad, byref(out)), "no array: {!r}".format(bad))
    raises(TypeError, lambda: api.borrow(bad, byref(tensor)), "nor borrowed")

# ---- In ----

p = Producer([1.0, 2.0], strides=None)
x = taken(ctypes.addressof(p.managed()))
is_((type(x), x.tolist(), x.strides, x.data_ptr()), (quern.Array, [1.0, 2.0], (1,), p.address), "an object of anybody's tensor")
del x
gc.collect()
is_(p.deleted, 1, "which deletes it")
p = Producer([1.0], lanes=2)
raises(BufferError, lambda: taken(ctypes.addressof(p.managed())), "what cannot be imported", "lanes")
is_(p.deleted, 1, "has been deleted")

# ---- Allocation ----

errors = []


@SetError
def set_error(context, kind, message):
    errors.append((context, kind, message))


shape = (c_int64 * 2)(3, 5)
prototype = Tensor(None, Device(1, 0), 2, DType(2, 64, 1), shape, None, 0)
is_(api.allocate(byref(prototype), byref(out), 0, set_error), 0, "a new tensor")
x = taken(out.value)
is_((x.shape, x.strides, x.dtype, x.readonly, x.data_ptr() % 256), ((3, 5), (5, 1), quern.float64, False, 0), "as its prototype")
shape[0] = -1
is_(api.allocate(byref(prototype), byref(out), 77, set_error), -1, "one that cannot be")
is_([(context, kind) for context, kind, _ in errors], [(77, b"ValueError")], "the allocator's error goes to set_error")
is_(api.allocate(byref(prototype), byref(out), 0, SetError()), -1, "or nowhere")

# ---- Streams ----

out = c_void_p(1)
is_((api.current_stream(1, 0, byref(out)), out.value), (0, None), "the CPU has no stream")

# ---- Of others, which hand over what cannot be ----


def type_with(borrowed=None):
    """A type with an API that hands over such tensors: borrowed ones, or NULL with success as owned ones."""

    def fill(object, tensor):
        tensor[0] = borrowed.tensor
        return 0

    def give(object, out):
        out[0] = ctypes.addressof(borrowed.managed()) if borrowed else None
        return 0

    kinds = dict(API._fields_)
    own = API(1, 3, None, api.allocate, kinds["from_object"](give), api.to_object,
              kinds["borrow"](fill) if borrowed else kinds["borrow"](), api.current_stream)
    capsule_new = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", pythonapi))
    return type("Other", (), {"__dlpack_c_exchange_api__": capsule_new(ctypes.addressof(own), b"dlpack_exchange_api", None),
                              "api": own, "tensor": borrowed})


one = quern.asarray([1.0])
is_(quern.add(type_with(Producer([2.0]))(), one).tolist(), [3.0], "another type's tensor")
for name, fields in (("no shape", {"shape": None, "ndim": 1}), ("33 dimensions", {"ndim": 33}), ("-1 dimensions", {"ndim": -1})):
    raises(BufferError, lambda: quern.add(type_with(Producer([2.0], **fields))(), one), name, "add: input 1 (x)")
raises(TypeError, lambda: quern.add(type_with()(), one), "no tensor, and success", "__dlpack__")
raises(TypeError, lambda: quern.add(one, one, out=type_with()()), "the same as out", "__dlpack__")
raises(ValueError, lambda: quern.add(type_with(Producer([2.0], shape=[-2**62, 4]))(), one), "shapes that no count holds")
is_(quern.isnan(quern.empty((2, 2**62, 0))).shape, (2, 2**62, 0), "of nothing, in more rows than can be counted")

del x, locked
gc.collect()
is_(alive(), 0, "nothing is left")

done_testing()
