# SPDX-License-Identifier: Apache-2.0
"""A producer of DLPack capsules in plain Python, by ctypes: every field of a tensor, the form and name of the capsule, and the
signature of __dlpack__ are its maker's choice, also where the protocol forbids it. Must not know Quern.

    p = Producer([1, 2, 3], code=2, bits=32)    the values as floats of 4 bytes
    p.deleted                                   how often the deleter was called"""

import ctypes
import sys
from ctypes import CFUNCTYPE, POINTER, PYFUNCTYPE, Structure, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32
from ctypes import c_uint64, c_void_p, py_object, pythonapi

# A deleter may run after Python has taken ctypes apart, from 3.13 on with what callbacks need. This reference keeps it.
pythonapi.Py_IncRef(py_object(sys.modules["_ctypes"]))


class Device(Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class DType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("device", Device), ("ndim", c_int32), ("dtype", DType), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class Legacy(Structure):
    pass


class Versioned(Structure):
    pass


Deleter = CFUNCTYPE(None, c_void_p)
Legacy._fields_ = [("tensor", Tensor), ("context", c_void_p), ("deleter", Deleter)]
Versioned._fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", Deleter),
                      ("flags", c_uint64), ("tensor", Tensor)]

READ_ONLY, IS_COPIED, PADDED = 1, 2, 4

LEGACY, LEGACY_USED = b"dltensor", b"used_dltensor"
VERSIONED, VERSIONED_USED = b"dltensor_versioned", b"used_dltensor_versioned"

Destructor = PYFUNCTYPE(None, c_void_p)
capsule_new = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", pythonapi))
capsule_name = PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", pythonapi))
capsule_pointer = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))
capsule_rename = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_SetName", pythonapi))
# For destructors, in which the capsule has no references left.
_is_valid = PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", pythonapi))
_pointer = PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", pythonapi))

_alive = {}  # address of a managed tensor: its producer and all that it points to


@Deleter
def _delete(address):
    _alive.pop(address)[0].deleted += 1


@Destructor
def _destroy(capsule):
    for name, form in ((LEGACY, Legacy), (VERSIONED, Versioned)):
        if _is_valid(capsule, name):
            address = _pointer(capsule, name)  # not by ctypes.addressof: at the end its module may be empty
            managed = form.from_address(address)
            if managed.deleter:
                managed.deleter(address)


def managed_of(capsule, hold=True):
    """The struct in a capsule of either form, consumed or not; it keeps the capsule."""
    name = capsule_name(capsule)
    form = Versioned if name in (VERSIONED, VERSIONED_USED) else Legacy
    managed = form.from_address(capsule_pointer(capsule, name))
    managed.capsule = capsule if hold else None
    return managed


class Producer:
    """values: numbers that are put one after the other into the memory, or bytes-like memory itself. strides: "compact", None
    (NULL), or numbers. shape None with ndim given: NULL."""

    def __init__(self, values=(1.0, 2.0, 3.0), *, shape="all", strides="compact", code=2, bits=32, lanes=1, device=(1, 0),
                 byte_offset=0, flags=0, version=(1, 3), form=Versioned, name=None, deleter=True, ndim=None, data="memory"):
        self.deleted = 0
        self.memory = self._memory_of(values, code, bits)
        self.device, self.form, self.flags, self.version = device, form, flags, version
        self.name = name or (VERSIONED if form is Versioned else LEGACY)
        self.calls = []
        shape = [len(values)] if shape == "all" else shape
        if strides == "compact":
            strides = []
            for extent in reversed(shape or ()):
                strides.insert(0, strides[0] * count if strides else 1)
                count = extent
        self.shape = None if shape is None else (c_int64 * max(1, len(shape)))(*shape)
        self.strides = None if strides is None else (c_int64 * max(1, len(strides)))(*strides)
        address = ctypes.addressof(self.memory)
        self.tensor = Tensor(address if data == "memory" else data, Device(*device), len(shape or ()) if ndim is None else ndim,
                             DType(code, bits, lanes), self.shape, self.strides, byte_offset)
        self.has_deleter = deleter

    @staticmethod
    def _memory_of(values, code, bits):
        if isinstance(values, (bytes, bytearray)):
            return (c_uint8 * max(1, len(values)))(*values)
        types = {(2, 32): ctypes.c_float, (2, 64): ctypes.c_double, (0, 32): c_int32, (0, 64): c_int64, (1, 8): c_uint8,
                 (1, 1): c_uint8, (6, 8): c_uint8}
        return (types.get((code, bits), c_uint64) * max(1, len(values)))(*values)

    @property
    def address(self):
        return ctypes.addressof(self.memory)

    def managed(self):
        """A new managed tensor, which lives until its deleter is called."""
        managed = self.form(tensor=self.tensor)
        if self.form is Versioned:
            managed.major, managed.minor = self.version
            managed.flags = self.flags

        if self.has_deleter:
            managed.deleter = _delete
        _alive[ctypes.addressof(managed)] = (self, managed, self.memory, self.shape, self.strides)
        return managed

    def capsule(self):
        return capsule_new(ctypes.addressof(self.managed()), self.name, ctypes.cast(_destroy, c_void_p))

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        return self.capsule()


class OldProducer(Producer):
    """From before versions: a stream, and nothing else."""

    def __dlpack__(self, stream=None):
        self.calls.append({} if stream is None else {"stream": stream})
        return self.capsule()


class BareProducer(Producer):
    """No arguments at all."""

    def __dlpack__(self):
        self.calls.append({})
        return self.capsule()


def alive():
    """How many managed tensors have not been deleted."""
    return len(_alive)
