# SPDX-License-Identifier: Apache-2.0
"""The cases of `families.py --all`: every element-wise op that NumPy, SciPy or PyTorch has too, with bounds of its values."""
import collections

FLOATS, INTS = "f16 bf16 f32 f64", "i8 i16 i32 i64 u8 u16 u32 u64"
NUMBERS = f"{FLOATS} {INTS}"

# op: Quern's name; dtypes: one case each; low, high: bounds of the values, a list where those of the operands differ, cut to what
# an integer dtype holds; numpy, torch, scipy: the function there, a dotted name; params: Quern's; more: further arguments of the
# peers; dtype_of: operand -> the dtype it always has; out: the output's dtype if it is not what the inputs meet in.
Row = collections.namedtuple("Row", "op n_in dtypes low high numpy torch scipy params more dtype_of out",
                             defaults=(None, None, None, {}, (), {}, None))


def unary(names, dtypes, low, high, **more):
    """Rows of ops that NumPy and PyTorch call alike."""
    return [Row(name, 1, dtypes, low, high, **{"numpy": name, "torch": name, **more}) for name in names.split()]


def binary(names, dtypes, low, high, **more):
    return [Row(name, 2, dtypes, low, high, **{"numpy": name, "torch": name, **more}) for name in names.split()]


NN = "_C._nn."
ROWS = [
    *binary("add subtract multiply", NUMBERS, 0.25, 2),
    *binary("divide", FLOATS, 0.25, 4),
    *binary("maximum minimum fmax fmin", NUMBERS, -100, 100),
    *binary("remainder fmod", "f32 f64 " + INTS, 1, 100),
    *binary("floor_divide", "f32 f64 " + INTS, 1, 100),
    *binary("gcd lcm", INTS, 1, 100),
    *(Row(op, 2, NUMBERS, -100, 100, op, name) for op, name in (("less", "lt"), ("less_equal", "le"), ("greater", "gt"),
                                                               ("greater_equal", "ge"), ("equal", "eq"), ("not_equal", "ne"))),
    *binary("logical_and logical_or logical_xor", "bool f32 i32 u8", 0, 1),
    *unary("logical_not", "bool f32 i32 u8", 0, 1),
    *binary("bitwise_and bitwise_or bitwise_xor", INTS, 0, 100),
    *unary("bitwise_invert", INTS, 0, 100, torch="bitwise_not"),
    *binary("bitwise_left_shift bitwise_right_shift", INTS, [1, 0], [100, 6]),
    *unary("bitwise_count", INTS, 0, 100, torch=None),
    *unary("negative abs square", f"{FLOATS} i8 i16 i32 i64", -100, 100),
    *unary("sign", f"{FLOATS} i32 i64 u8", -100, 100),
    *unary("positive", "f32 f64", -100, 100),
    *unary("reciprocal", FLOATS, 0.25, 4),
    *unary("floor ceil trunc", FLOATS, -100, 100),
    *unary("rint", FLOATS, -100, 100, torch="round"),
    *unary("sqrt", FLOATS, 0, 100),
    *unary("cbrt", FLOATS, -100, 100, torch=None, scipy="cbrt"),
    *unary("exp exp2 expm1", FLOATS, -10, 10),
    *unary("log log2 log10", FLOATS, 0.01, 100),
    *unary("log1p", FLOATS, -0.9, 100),
    *unary("sin cos tan", FLOATS, -3, 3),
    *unary("asin acos atanh", FLOATS, -0.99, 0.99),
    *unary("atan asinh", FLOATS, -10, 10),
    *unary("acosh", FLOATS, 1, 100),
    *unary("sinh cosh tanh", FLOATS, -4, 4),
    *unary("sinc", FLOATS, -3, 3, numpy=None),
    *unary("degrees radians", FLOATS, -3, 3, torch=None),
    *unary("isnan isfinite isinf signbit", FLOATS, -100, 100),
    *binary("hypot", FLOATS, 0.25, 100),
    *binary("atan2", FLOATS, -4, 4),
    *binary("copysign nextafter", FLOATS, -4, 4),
    *binary("heaviside", FLOATS, -4, 4),
    *binary("logaddexp logaddexp2", FLOATS, -4, 4),
    *binary("pow", FLOATS, [0.25, -4], [4, 4], numpy="power"),
    *binary("float_power", "f64", [0.25, -4], [4, 4]),
    *binary("ldexp", "f16 f32 f64", -10, 10, dtype_of={1: "i32"}),
    *unary("erf", FLOATS, -3, 3, numpy=None, scipy="erf"),
    *unary("erfc", FLOATS, -3, 6, numpy=None, scipy="erfc"),
    *unary("sigmoid", FLOATS, -6, 6, numpy=None, scipy="expit"),
    *unary("log_sigmoid", "f32 f64", -6, 6, numpy=None, torch=None, scipy="log_expit"),
    Row("clip", 1, NUMBERS, 0, 100, "clip", "clamp", params={"min": 10, "max": 50}, more=(10, 50)),
    Row("relu", 1, FLOATS, -4, 4, None, "clamp_min", more=(0,)),
    Row("gelu", 1, FLOATS, -4, 4, None, NN + "gelu"),
    Row("silu", 1, FLOATS, -4, 4, None, NN + "silu"),
    Row("mish", 1, FLOATS, -4, 4, None, NN + "mish"),
    Row("softplus", 1, FLOATS, -4, 4, None, NN + "softplus"),
    Row("elu", 1, FLOATS, -4, 4, None, NN + "elu"),
    Row("leaky_relu", 1, FLOATS, -4, 4, None, NN + "leaky_relu"),
    Row("hard_sigmoid", 1, FLOATS, -4, 4, None, NN + "hardsigmoid"),
    Row("hard_swish", 1, FLOATS, -4, 4, None, NN + "hardswish"),
    Row("copy", 1, "f32 f64 u8", 0, 100, "positive"),
    Row("astype", 1, "f32 i64", -1000, 1000, "copy", "copy", out="f64"),
    Row("astype", 1, "f64 i32 f16 bf16", 0, 100, "copy", "copy", out="f32"),
]
ROWS = [row for row in ROWS if row.numpy or row.torch or row.scipy]
