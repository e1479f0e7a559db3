# SPDX-License-Identifier: Apache-2.0
# tags: memory
"""Calls of ops from Python: what is given by place and by name, outputs, dtypes, results, layouts, attributes of an Op."""

import array
import inspect
import pickle
import pydoc

import quern
from tap import diag, done_testing, is_, ok, raises, skip

try:
    import numpy as np
except ImportError:
    np = None

# ---- Without NumPy: buffers and quern.Array ----

x = array.array("f", range(8))
y = array.array("f", [1] * 8)
z = array.array("f", bytes(32))

ok(quern.add(x, y, out=z) is z, "out is what comes back")
is_(list(z), [float(k + 1) for k in range(8)], "and has the result")
ok(isinstance(quern.add(x, y), quern.Array), "buffers in: a quern.Array out")
a, b = quern.from_dlpack(x), quern.from_dlpack(y)
is_(quern.add(a, b).tolist(), [float(k + 1) for k in range(8)], "quern.Array in, quern.Array out")
is_(quern.add(y=b, x=a).tolist(), [float(k + 1) for k in range(8)], "operands by name")
is_(quern.add(a, y=b, out=z) is z and z[7], 8.0, "operands by place and name")
ok(quern.add(a, b, out=(z,)) is z, "a tuple of the only output")
if hasattr(quern, "frexp") and hasattr(quern, "modf"):
    mantissa, exponent = quern.frexp(quern.asarray([8.0, -0.75], dtype="f16"))
    is_((mantissa.tolist(), mantissa.dtype, exponent.tolist(), exponent.dtype), ([0.5, -0.75], "float16", [4, 0], "int32"), "two outputs")
    whole = quern.empty(2, dtype="f64")
    fraction, integral = quern.modf(quern.asarray([2.5, -0.0]), out=(None, whole))
    ok(integral is whole, "one of two outputs given")
    is_((fraction.tolist(), integral.tolist()), ([0.5, -0.0], [2.0, -0.0]), "and the other made")
    is_(quern.modf.outputs, ("fraction", "integral"), "their names")
else:
    skip(5, "this build has some ops only, and no frexp or modf")
ok(isinstance(quern.add(a, b, out=None), quern.Array), "out=None is no out")
ok(quern.add(x, x, out=x) is x and x[3] == 6.0, "in place")
is_(list(quern.call("add", y, y, out=z)), [2.0] * 8, "quern.call")
is_(list(quern.call("add", *[y], **{"y": y, "out": z})), [2.0] * 8, "quern.call with names")
is_(quern.add(**{"".join(["x"]): y, "".join(["y"]): y, "".join(["ou", "t"]): z}) is z, True, "names that are not interned")
text = bytes(array.array("f", [1, 2]))
is_(quern.add(memoryview(text).cast("f"), y[:2]).tolist(), [2.0, 3.0], "a read-only buffer as an input")

is_(quern.clip(y, 0, 0.5).tolist(), [0.5] * 8, "parameters by place")
is_(quern.clip(y, max=0.5).tolist(), [0.5] * 8, "parameters by name")
is_(quern.op("clip")(y, None, 0.5).tolist(), [0.5] * 8, "None: the default")
is_(quern.leaky_relu(array.array("f", [-1]), slope=True).tolist(), [-1.0], "a bool as a parameter")
is_(quern.op("full")(value=2**63, out=array.array("f", [0]))[0], 2.0**63, "a parameter of 64 bits without a sign")

for dtype in ("f64", "float64", float, quern.float64):
    is_(quern.add(y, y, dtype=dtype).dtype, "float64", "dtype={!r}".format(dtype))
is_(quern.op("astype")(y, dtype="i32").dtype, "int32", "astype by dtype")
is_(list(quern.op("astype")(y, out=array.array("i", [0] * 8))), [1] * 8, "astype by out")
is_(quern.op("nonzero")(array.array("f", [0, 3, 0, 4])).tolist(), [[1], [3]], "nonzero: as many rows as there are")
is_(quern.compress(quern.less(x, 7), x).tolist(), [0.0, 2.0, 4.0, 6.0], "compress")
is_(quern.add(array.array("f"), 1).shape, (0,), "empty")

# ---- Expressions ----

f = quern.compile("y = x*w + b; z = y > 3")
first, second = f(x, w=2, b=y)
is_((first.dtype, second.dtype), ("float32", "bool"), "an expression's outputs")
is_(second.tolist(), [v > 3 for v in first.tolist()], "and their values")
given = (array.array("f", bytes(32)), quern.less(x, 0))
ok(f(x, 2, y, out=given) is given, "a tuple of outputs")
result = f(x, 2, y, out=(given[0], None))
ok(result[0] is given[0] and isinstance(result[1], quern.Array), "None among them is made")
is_(quern.compile("param k; y = k*x")(y, 3).tolist(), [3.0] * 8, "a declared parameter by place")
is_(quern.compile("param k; y = k*x")(y, k=3).tolist(), [3.0] * 8, "and by name")
g = quern.compile("y = lambda + out")
is_(g(y, y).tolist(), [2.0] * 8, "inputs with names that are Python's")
is_(str(inspect.signature(g)), "(lambda_, out_, /, *, out=None, dtype=None, stream=None)", "their signature")
for n in range(1, 9):  # layouts that come again are prepared
    is_(quern.compile("y = x + 1")(y, out=z) is z and z[0], 2.0, "expression, call {}".format(n))

for made in (lambda: quern.op("full")(value=3, dtype="f32"),
             lambda: quern.Context().call("full", value=3, dtype="i8"),
             lambda: quern.compile("param a; y = (f32)a * 2")(a=3)):
    raises(TypeError, made, "no inputs, and no out", "out is wanted: it has no inputs")

# ---- Attributes ----

op = quern.op("leaky_relu")
is_((op.__name__, op.__qualname__, op.__module__), ("leaky_relu", "leaky_relu", "quern"), "names")
is_((op.inputs, op.outputs, op.params), (("x",), ("out",), {"slope": 0.01}), "operands and parameters")
is_(str(inspect.signature(op)), "(x, slope=0.01, *, out=None, dtype=None, stream=None)", "signature")
ok(op.__signature__ is op.__signature__, "which is made once")
ok(op.doc in op.__doc__ and op.formula in op.__doc__ and op.__doc__.startswith("leaky_relu(x"), "docstring")
ok(quern.Op.__module__ == op.__module__ == "quern" and "out=None" in quern.Op.__doc__, "the type's own")
is_(str(inspect.signature(quern.call)), "(name, /, *operands, out=None, dtype=None, stream=None, **params)", "quern.call's")
ok(op.doc in pydoc.render_doc(quern) and "Context" in pydoc.render_doc(quern), "help(quern)")
ok("leaky_relu" in repr(op) and op.formula in repr(op), "repr")
ok(quern.op("add") is quern.add and quern.op("add") is quern.op("add"), "one op, one object")
ok(pickle.loads(pickle.dumps(quern.add)) is quern.add, "pickled by name")
is_(pickle.loads(pickle.dumps(f)).formula, f.formula, "an expression by its text")
ok(callable(op) and not hasattr(op, "__dict__"), "callable")
is_(quern.ops(), tuple(sorted(quern.ops())), "ops are sorted")
ok(all(callable(quern.op(name)) for name in quern.ops()), "and found")
lines = quern.add.explain(x, y)
ok(lines["tier"] == "built" and isinstance(lines["threads"], str), "explain")
is_((lines.tier, lines.threads, type(lines)), ("built", 1, quern.Explanation), "  its attributes have values")
is_(quern.add.explain(x, y, out=z)["tier"], "built", "explain with out")
ok("tier" in quern.compress.explain(quern.less(x, 3), x), "explain of a dynamic op")
ok("isa" in quern.describe(), "describe")

# ---- NumPy ----

if not np:
    skip(1, "there is no NumPy here")
    done_testing()

diag("NumPy " + np.__version__)
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
          "float64")
a = np.arange(8, dtype="f4")
ok(type(quern.add(a, a)) is np.ndarray, "NumPy in, NumPy out")
ok(type(quern.add(1, a)) is np.ndarray and type(quern.add(np.float32(1), a)) is np.ndarray, "behind a number, too")
is_(type(quern.add(np.float32(1), np.float32(2))), np.ndarray, "scalars of NumPy's are tensors")
ok(type(quern.add(x, a)) is quern.Array and type(quern.add(a, x)) is np.ndarray, "the first operand says of what kind")
out = np.empty(8, "f4")
ok(quern.add(a, x, out=out) is out, "out of another kind than the operands")
for name in DTYPES:
    v = np.ones((3, 4), name)
    result = quern.copy(v)
    ok(result.dtype == v.dtype and (result == v).all() and result.shape == v.shape, "copy of " + name)
for code in "bhilqBHILQ":  # NumPy's names by C's types
    v = np.ones(3, code)
    result = quern.add(v, v)
    ok((result == 2).all() and result.dtype == v.dtype, "dtype code " + code)

base = np.arange(120, dtype="f8").reshape(4, 5, 6)
for name, view in {"transposed": base.T, "reversed": base[::-1, :, ::-2], "broadcast": np.broadcast_to(base[0], (4, 5, 6)),
                   "sliced": base[1:, ::2, 3:], "0-d": base[1, 2, 3:4].reshape(()), "empty": base[:0], "axis": base[:, None],
                   "Fortran": np.asfortranarray(base)}.items():
    for round in range(6):
        got = quern.multiply(view, view)
    ok(got.shape == view.shape and (got == view * view).all(), "layout: " + name)
    target = np.zeros(view.shape[::-1]).T
    ok(quern.multiply(view, view, out=target) is target and (target == view * view).all(), "into a transposed one: " + name)
packed = np.zeros(4, np.dtype([("a", "u1"), ("b", "f8")]))
raises(BufferError, lambda: quern.add(packed["b"], 1.0), "fields at odd distances", "strides")
packed = np.zeros(4, np.dtype([("a", "f8"), ("b", "f8")]))
packed["b"] = range(4)
is_(quern.add(packed["b"], 1.0).tolist(), [1.0, 2.0, 3.0, 4.0], "fields at even distances")
crooked = np.frombuffer(bytes(1) + np.arange(4.0).tobytes(), "f8", offset=1)
is_(quern.add(crooked, crooked).tolist(), [0.0, 2.0, 4.0, 6.0], "misaligned")
for k in range(12):  # other layouts and other memory in turn
    v = np.full((k % 3 + 1, 4), k, "f4")
    is_(quern.add(v, 1, out=np.empty_like(v)).tolist(), (v + 1).tolist(), "turns: {}".format(k))


class Sub(np.ndarray):
    pass


ok(type(quern.add(a.view(Sub), 1)) is np.ndarray, "a subclass in, an ndarray out")
ok((quern.add(np.matrix([[1.0, 2.0]]), 1.0) == [[2, 3]]).all(), "numpy.matrix")
is_(quern.add(a, a, out=out[::-1].view(Sub)).tolist(), (a + a).tolist(), "a subclass as out")
big = np.ones(100000, "f4")
is_(quern.add(big, big, out=big) is big and big.sum(), 200000.0, "many items")
for k in range(9):  # one layout in turn, in other memory
    other = np.full(100001, k, "f4")
    is_((quern.add(other[1:], big, out=np.empty_like(big)) == k + 2).all(), True, "  in turn: {}".format(k))
raises(ValueError, lambda: quern.add(other[1:], big, out=other[:-1]), "  and then over an input", "overlaps input 1 (x)")
is_(quern.op("nonzero")(np.eye(2)).tolist(), [[0, 0], [1, 1]], "nonzero")
is_(quern.op("nonzero")(np.eye(2)).dtype, np.dtype("i8"), "and its dtype")
is_(quern.compress(a > 5, a).tolist(), [6.0, 7.0], "compress")
is_(quern.where(a > 5, a, 0).tolist(), [0.0] * 6 + [6.0, 7.0], "where")
ok(isinstance(quern.op("astype")(a, dtype="bf16"), quern.Array), "a dtype that NumPy has not: a quern.Array")

# ---- Arguments that cannot be ----

scaled = quern.compile("param k; y = k*x")
raises(TypeError, lambda: scaled(y), "a parameter without a default", "parameter 1 (k) is missing")
raises(TypeError, lambda: scaled(y, k=None), "None is none either", "parameter 1 (k) is missing")
for name, op, words in (("negative_slope", "leaky_relu", "negative_slope is slope here"), ("approximate", "gelu", "the approximation is gelu_tanh(x)"),
                        ("ddof", "var", "ddof is correction here"), ("dim", "softmax", "dim is axis here"), ("keepdim", "sum", "keepdim is keepdims here"),
                        ("a_min", "sin", "it has no argument a_min; it has ('x',)"), ("other", "add", "other is y here"),
                        ("where", "sum", "write where(mask, x, 0)")):
    if op != "var" or "var" in quern.ops():  # a sanitised build has no op with a correction
        raises(TypeError, lambda op=op, name=name: getattr(quern, op)(y, **{name: 1}), "{} of {}".format(name, op), words)
raises(TypeError, lambda: quern.exp(y, y, y), "3 for 1 and 0", "exp: 3 arguments by position; it has 1 input and 0 parameters")
raises(TypeError, lambda: quern.clip(y, wrong=1), "of a function of the array API", "wrong")
is_(scaled(y, 0).tolist(), [0.0] * 8, "0 is one")
held = array.array("f", bytes(32))
raises(TypeError, lambda: quern.add(y, y, out=held, dtype="f64"), "dtype beside out", "either out or dtype")
ok(quern.add(y, y, out=held, dtype="f32") is held, "unless it is out's")
raises(KeyError, lambda: quern.op("add\0x"), "a name with a zero in it", "add")
raises(KeyError, lambda: quern.call("add\0x", y, y), "in call, too")
for stream in (True, False, "1", 1.0):
    raises(TypeError, lambda: quern.add(y, y, stream=stream), "stream={!r}".format(stream), "add: stream")
for stream in (0, -1, -2, 2**63, 2**70, -2**70):
    raises(ValueError, lambda: quern.add(y, y, stream=stream), "stream={!r}".format(stream), "add: stream")
is_(quern.add(y, y, stream=1).tolist(), quern.add(y, y).tolist(), "one of the CPU's, which has none")
done_testing()
