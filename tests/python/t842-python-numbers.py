# SPDX-License-Identifier: Apache-2.0
"""Numbers of Python's as operands: weak, they take the dtype of the others, and what does not fit is refused."""

import array
import enum

import quern
from tap import done_testing, is_, ok, raises, skip

try:
    import numpy as np
except ImportError:
    np = None

f32, i16, i32, i64, u8 = (array.array(code, [1, 2]) for code in "fhiqB")
flags = quern.less(f32, 2.0)


for operand, number, wanted in ((f32, 1, "float32"), (f32, 1.5, "float32"), (f32, True, "float32"), (i32, 1, "int32"),
                                (i32, True, "int32"), (u8, 255, "uint8"), (i64, -2**63, "int64"), (i64, 1.5, "float64"),
                                (i32, 1.5, "float64"), (i16, 1.5, "float32"), (u8, 1.5, "float32")):
    got = quern.where(True, number, operand)
    is_((str(got.dtype), got.tolist()), (wanted, [number, number]), "{!r} beside {}".format(number, operand.typecode))
for number, wanted in ((True, "bool"), (7, "int64"), (1.5, "float32")):
    got = quern.where(flags, number, number)
    is_((str(got.dtype), got.tolist()), (wanted, [number, number]), "{!r} beside bools".format(number))
is_(str(quern.where(flags, 7, f32).dtype), "float32", "an int beside bools and floats")
is_(str(quern.where(False, flags, True).dtype), "bool", "a bool as a condition, and as a value")
half = quern.op("astype")(f32, dtype="f16")
is_((str(quern.add(half, 1.0009765625).dtype), quern.add(half, 0.5).tolist()), ("float16", [1.5, 2.5]), "a float beside f16")
is_(str(quern.add(half, quern.add(f32, 0)).dtype), "float32", "f16 with f32")
is_(quern.multiply(quern.op("fma")(half, 0.1, f32), 1).tolist(), quern.op("fma")(f32, 0.1, f32).tolist(),
    "a number is rounded to what all others promote to")
tenth = quern.op("astype")(array.array("f", [0.1]), dtype="f16")
is_((quern.equal(tenth, 0.1).tolist(), quern.compile("x == 0.1")(tenth).tolist(), quern.compile("x == (f16)0.1")(tenth).tolist()),
    ([True], [False], [True]), "a number of an expression is of the precision that f16 is computed in")
brain = quern.op("astype")(f32, dtype="bf16")
is_((str(quern.add(brain, 1.5).dtype), str(quern.where(True, brain, half).dtype)), ("bfloat16", "float32"), "bf16")
if hasattr(quern, "float_power"):
    for operand in (half, f32, i32):
        got = quern.float_power(operand, 0.1)
        ok(str(got.dtype) == "float64" and abs(got.tolist()[1] - 2 ** 0.1) < 1e-15, "a float keeps its digits where the result is f64")
else:
    skip(3, "this build has some ops only, and no float_power")
if hasattr(quern, "ldexp"):
    least = quern.op("astype")(array.array("d", [2.0**-133, 2.0**-120]), dtype="bf16")
    got = quern.ldexp(least, 257)
    is_((str(got.dtype), got.tolist()), ("bfloat16", [2.0**124, float("inf")]), "how often ldexp doubles is not rounded to bf16")
    is_(quern.ldexp(quern.ldexp(least, -2**70), 2**70).tolist(), [0.0, 0.0], "  nor need it fit an integer")
    is_(quern.ldexp(3, array.array("b", [2])).tolist(), [12.0], "  the number that is doubled is weak")
    is_((str(quern.ldexp(i32, 2).dtype), str(quern.ldexp(i16, 2).dtype)), ("float64", "float32"), "  as is the other beside integers")
else:
    skip(4, "this build has some ops only, and no ldexp")
is_(quern.add(f32, float("inf")).tolist(), [float("inf")] * 2, "infinity")
ok(quern.isnan(quern.add(f32, float("nan"))).tolist() == [True, True], "NaN")
is_(quern.add(f32, 2**70).tolist(), [2.0**70] * 2, "a large int beside floats")
is_(quern.add(quern.multiply(f32, 0), 2**54 + 2**30 + 1).tolist(), [2.0**54 + 2.0**31] * 2, "  is rounded once")

for operand, number in ((u8, 256), (u8, -1), (i32, 2**31), (i32, -2**31 - 1), (i64, 2**63), (i64, -2**63 - 1), (u8, 10**40),
                        (i64, 10**40), (f32, 10**400)):
    error = raises(OverflowError, lambda: quern.add(operand, number), "{:.9} beside {}".format(str(number), operand.typecode))
    ok("add: input 2 (y)" in str(error), "which names the operand")
raises(TypeError, lambda: quern.add(1, 2, out=f32), "numbers alone, beside out", "add: input 1 (x): all inputs are numbers")
raises(TypeError, lambda: quern.where(1, f32, f32), "an int as a condition", "where: input 1 (condition)")
raises(TypeError, lambda: quern.add(f32, 1j), "complex numbers", "add: input 2 (y)")
raises(TypeError, lambda: quern.add(f32, 1, out=1), "a number as out", "add: output 1 (out)")


class Count(enum.IntEnum):
    TWO = 2


class Real(float):
    pass


is_(quern.add(i32, Count.TWO).tolist(), [3, 4], "an int's subclass")
is_(quern.add(f32, Real(0.5)).tolist(), [1.5, 2.5], "a float's subclass")

# Parameters are weak as well, and take what can be a number.


class Index:
    def __index__(self):
        return 2


class Float:
    def __float__(self):
        return 2.0


for value in (2, 2.0, Index(), Float(), Count.TWO, quern.add(array.array("f", [1]), 1), quern.add(array.array("q", [1]), 1)):
    is_(quern.leaky_relu(array.array("f", [-1]), value).tolist(), [-2.0], "a parameter: " + type(value).__name__)
for value in ("2", [2], {}, f32):
    raises(TypeError, lambda: quern.leaky_relu(f32, value), "no parameter: " + type(value).__name__,
           "leaky_relu: parameter 1 (slope)")
minus = array.array("f", [-1.0])
is_([quern.leaky_relu(minus, slope).tolist() for slope in (2**63, 2**64, -2**70)], [[-2.0**63], [-2.0**64], [2.0**70]],
    "ints of more than 64 bits as parameters")
is_(quern.clip(i64, 2**70, 10**30).tolist(), [2**63 - 1] * 2, "  saturate")
raises(OverflowError, lambda: quern.leaky_relu(f32, 10**400), "  but for one that is no float", "leaky_relu: parameter 1 (slope)")


class Angry:
    def __float__(self):
        raise ZeroDivisionError("my own")


raises(ZeroDivisionError, lambda: quern.leaky_relu(f32, Angry()), "what a number's own code raises", "my own")

if np:
    is_(quern.add(np.ones(2, "f4"), np.float64(1)).dtype, np.dtype("f8"), "numpy.float64 is strong, though it is a float")
    is_(quern.add(np.ones(2, "f4"), np.float32(1)).dtype, np.dtype("f4"), "numpy.float32")
    is_(quern.where(np.bool_(True), np.ones(2), np.zeros(2)).tolist(), [1.0, 1.0], "numpy.bool_ as a condition")
    is_(quern.leaky_relu(np.array([-1.0]), slope=np.float16(2)).tolist(), [-2.0], "a scalar as a parameter")
    is_(quern.leaky_relu(np.array([-1.0]), slope=np.int8(2)).tolist(), [-2.0], "an integer scalar")
    is_(quern.leaky_relu(np.array([-1.0]), slope=np.array(2)).tolist(), [-2.0], "a 0-d array as a parameter")
else:
    skip(6, "there is no NumPy here")
done_testing()
