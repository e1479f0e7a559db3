# SPDX-License-Identifier: Apache-2.0
"""quern.dtype: names, equality with others' dtypes, hash, pickling."""

import copy
import pickle

import quern
from tap import done_testing, is_, ok, raises, skip

NAMES = {"bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
         "uint32": "u32", "uint64": "u64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
         "complex64": "c64", "complex128": "c128"}
FLOAT8 = ["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
          "float8_e5m2fnuz", "float8_e8m0fnu"]

for name, short in NAMES.items():
    dtype = getattr(quern, name)
    is_((dtype.name, dtype.short_name, str(dtype), repr(dtype)), (name, short, name, "quern." + name), name + ": names")
    ok(dtype == name and dtype == short and name == dtype and not dtype != short, name + ": equal to its names")
    is_([other for other in NAMES if dtype == other], [name], name + ": equal to no other's name")
    is_({name: 1}.get(dtype), 1, name + ": hash of its name")
    is_(dtype.itemsize, int(name.strip("boluintfcmpexa") or 8) // 8, name + ": itemsize")
    ok(quern.dtype(name) is dtype and quern.dtype(short) is dtype and quern.dtype(dtype) is dtype, name + ": one object")
    ok(pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype) is dtype, name + ": pickled and copied, it is itself")
is_("".join(getattr(quern, name).kind for name in NAMES), "biiiiuuuuffffcc", "kinds, as NumPy's")
is_([getattr(quern, name).dlpack for name in FLOAT8], [(code, 8, 1) for code in range(7, 15)], "float8: DLPack's codes")
is_({(getattr(quern, name).kind, getattr(quern, name).itemsize) for name in FLOAT8}, {("f", 1)}, "float8: kind and itemsize")
is_(quern.bfloat16.dlpack, (4, 16, 1), "bfloat16: DLPack's code")

is_([quern.dtype(t).name for t in (bool, int, float, complex)], ["bool", "int64", "float64", "complex128"], "Python's types")
ok(quern.float64 == float and quern.float32 != float, "equal to Python's type")
ok(quern.float32 != None and quern.float32 != 4 and not quern.float32 == [], "different from what is no dtype")  # noqa: E711
ok(quern.float32 != "no such", "different from a str that names none")
for bad in ("f33", "", "f32\0", "torch.", "\ud800", 3, None, [], object(), str, type):
    raises(TypeError, lambda: quern.dtype(bad), "{!r} names none".format(bad), "dtype: ")
raises(TypeError, lambda: quern.float32 < quern.float64, "no order")
raises(TypeError, quern.dtype, "a dtype of nothing")


class Named:
    def __init__(self, name):
        self.name = name


class Raises:
    def __getattr__(self, name):
        raise RuntimeError(name)

    def __str__(self):
        raise RuntimeError("str")


class DType:
    def __str__(self):
        return "some.package.float32"


ok(quern.float32 == Named("float32"), "equal to what has its name")
ok(quern.float32 != Named(5) and quern.float32 != Raises(), "different from what has none, or raises")
ok(quern.dtype(DType()) is quern.float32, "named behind the last dot of a dtype's text")

try:
    import numpy
except ImportError:
    skip(4, "NumPy is not there")
else:
    both = [name for name in NAMES if name != "bfloat16"]
    ok(all(getattr(quern, n) == numpy.dtype(n) and numpy.dtype(n) == getattr(quern, n) for n in both), "numpy.dtype, both ways")
    ok(all(quern.dtype(numpy.dtype(n).type) is getattr(quern, n) for n in both), "numpy's scalar types")
    ok(quern.float32 != numpy.dtype(">f4") and quern.int8 == numpy.dtype("i1"), "a foreign order of bytes is another dtype")
    is_([n for n in ("M8[s]", "V4", "U3", "g", "O") if quern.float32 == numpy.dtype(n)], [], "no others of NumPy's")

try:
    import torch
except ImportError:
    skip(2, "PyTorch is not there")
else:
    names = [n for n in [*NAMES, *FLOAT8] if hasattr(torch, n)]
    ok(all(getattr(quern, n) == getattr(torch, n) and getattr(torch, n) == getattr(quern, n) for n in names), "torch.dtype")
    is_(quern.dtype(torch.half), quern.float16, "PyTorch's other names")

try:
    import numpy as np
except ImportError:
    skip(2, "there is no NumPy here")
else:
    is_(quern.float32.__numpy_dtype__, np.dtype("f4"), "its NumPy dtype")
    if tuple(map(int, np.__version__.split(".")[:2])) >= (2, 4):
        is_(np.zeros(2, dtype=quern.int16).dtype, np.int16, "  which NumPy takes")
    else:
        skip(1, "NumPy asks for it since 2.4")
for name, other in (("f4", "float32"), ("<f8", "float64"), ("d", "float64"), ("int", "int64"), ("half", "float16"), ("Int64", "int64")):
    raises(TypeError, lambda: quern.dtype(name), "NumPy's, C's or pandas' {}".format(name), "write '{}'".format(other))
done_testing()
