# SPDX-License-Identifier: Apache-2.0
"""Calls of a module's ops by apache-tvm-ffi, for t418: python3 tvm_ffi_calls.py MODULE.so. Prints TAP."""

import json
import sys

import numpy
import tvm_ffi
from tap import diag, done_testing, is_, ok, raises

module = tvm_ffi.load_module(sys.argv[1])
has_swish = module.implements_function("acme_swish")
diag("apache-tvm-ffi {}, NumPy {}".format(tvm_ffi.__version__, numpy.__version__))


def same(got, wanted, name):
    """The same array, dtype and shape included."""
    got = numpy.from_dlpack(got) if isinstance(got, tvm_ffi.Tensor) else numpy.asarray(got)
    ok(got.dtype == wanted.dtype and got.shape == wanted.shape and got.tobytes() == wanted.tobytes(), name)


# ---- NumPy's arrays
x = numpy.linspace(-3, 3, 6, dtype="float32").reshape(2, 3)
y = numpy.empty_like(x)
ok(module.add(x, x, y) is None, "an output that is given: None")
same(y, x + x, "  is written")
same(module.add(x, x), x + x, "a result that is made")
module.add(tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(x[:1]), tvm_ffi.from_dlpack(y))
same(y, x + x[:1], "tvm-ffi's own tensors, broadcast")
same(module.add(x, 1.5), x + numpy.float32(1.5), "a float beside f32")
same(module.multiply(x.astype("float16"), 0.1), x.astype("float16") * numpy.float16(0.1), "a float beside f16")
same(module.multiply(numpy.arange(4, dtype="int32"), -3), numpy.arange(4, dtype="int32") * numpy.int32(-3), "an int beside i32")
same(module.where(x > 0, x, 0.5), numpy.where(x > 0, x, numpy.float32(0.5)), "a bool array")
same(module.clip(x, None, 1.5), numpy.clip(x, None, numpy.float32(1.5)), "parameters: None and a number")
same(module.astype(x, tvm_ffi.dtype("float16")), x.astype("float16"), "a dtype in place of the output")
whole = numpy.rint(x)
same(module.sum(whole, (1,)), numpy.sum(whole, 1), "a reduction over an axis")
same(module.sum(whole, [-2, -1], True), numpy.sum(whole, (0, 1), keepdims=True), "  over axes from the end, which are kept")
same(module.sum(whole), numpy.sum(whole), "  over all")
same(module.sum(whole, 1 << 1), numpy.sum(whole, 1), "  over bits")
same(module.nonzero(x), numpy.argwhere(x), "a result of data-dependent size")
quotient, rest = module.divmod(numpy.arange(6, dtype="int32"), 4)
same(quotient, numpy.arange(6, dtype="int32") // 4, "two results")
same(rest, numpy.arange(6, dtype="int32") % 4, "  the second")
same(module.add(x.T, 1), (x + 1).T, "a transposed array")
is_(numpy.from_dlpack(module.add(x.T, 1)).strides, x.T.strides, "  keeps its layout")
out = numpy.zeros(3, "float32")
module.arange(out)
same(out, numpy.arange(3, dtype="float32"), "an op without inputs")
if has_swish:
    ok(numpy.allclose(numpy.from_dlpack(module.acme_swish(x)), x / (1 + numpy.exp(-x))), "an op of a spec")

# ---- errors
raises(TypeError, lambda: module.add(x), "too few arguments", "add: 1 argument, expected add(x, y, [out])")
raises(TypeError, lambda: module.add(x, x, y, y), "too many", "add: 4 arguments")
raises(TypeError, lambda: module.add("x", x), "a string", "add: input 1 (x): a string, expected a tensor or a number")
raises(TypeError, lambda: module.clip(x, "0", y), "a string as a parameter", "clip: argument 2: a string, expected clip(x, [min], [max], [out])")
raises(TypeError, lambda: module.add(x, x, "y"), "a string as the output", "add: output 1 (out): a string, expected a tensor")
raises(TypeError, lambda: module.add(x, x, y.astype("int32")), "an output of another dtype", "dtype i32 cannot take a result of dtype f32")
raises(ValueError, lambda: module.add(x, x, y[:1]), "an output of another shape", "add: output 1 (out): shape [1, 3], expected [2, 3]")
raises(ValueError, lambda: module.add(x, x[:, :2]), "shapes that do not broadcast", "add: ")
raises(TypeError, lambda: module.add(1, 2), "numbers alone", "all inputs are numbers")
raises(TypeError, lambda: module.add(x, 2**70), "a large int", "add: input 2 (y)")
raises(ValueError, lambda: module.add(numpy.arange(3, dtype="int32"), 2**40), "a number that does not fit", "does not fit into i32")
raises(ValueError, lambda: module.add(x, x.ravel()[::-1].reshape(2, 3), numpy.lib.stride_tricks.as_strided(y, (2, 3), (0, 4))), "an output that overlaps itself", "add: output 1 (out)")
raises(ValueError, lambda: module.sum(x, (2,)), "an axis that is not there", "sum: axes: 2 is out of bounds for 2 dimensions")
raises(ValueError, lambda: module.sum(x, (1, -1)), "an axis twice", "sum: axes: -1 is there twice")
raises(TypeError, lambda: module.sum(x, (0.5,)), "a part of an axis", "sum: axes: a float, expected ints")

# ---- descriptions
doc = module.get_function_doc("clip")
ok(doc and "Parameters" in doc and "min : number, default -inf" in doc and "Returns" in doc, "a docstring")
metadata = module.get_function_metadata("clip")
schema = json.loads(metadata["type_schema"])
is_(schema["type"], "ffi.Function", "metadata: a function")
is_(len(schema["named_args"]["params"]), 4, "  of four arguments")
shown = repr(tvm_ffi.core.TypeSchema.from_json_str(metadata["type_schema"]))
is_(shown, "Callable[[Tensor | float, float | None, float | None, Tensor | None], Tensor | None]", "  as tvm-ffi reads it")
is_(repr(tvm_ffi.core.TypeSchema.from_json_str(module.get_function_metadata("sum")["type_schema"])),
    "Callable[[Tensor | float, Array[int] | int | None, float | None, float | None, Tensor | None], Tensor | None]", "  of axes")
if has_swish:
    ok("axes : number, default -1" in module.get_function_doc("acme_named"), "a parameter of an element-wise op that is called axes")
    ok('x times its logistic: "SiLU".' in module.get_function_doc("acme_swish"), "quotes in a docstring")

# ---- PyTorch's tensors
try:
    import torch
except ImportError:
    diag("PyTorch: SKIP not installed")
else:
    diag("PyTorch " + torch.__version__)
    a, b = torch.from_numpy(x), torch.empty(2, 3)
    ok(module.add(a, a, b) is None and torch.equal(b, a + a), "PyTorch: an output that is given")
    made = module.add(a, 1)
    ok(isinstance(made, torch.Tensor) and torch.equal(made, a + 1), "  a result is PyTorch's, of its allocator")
    half = a.to(torch.bfloat16)
    ok(torch.equal(module.multiply(half, 0.1), half * torch.tensor(0.1, dtype=torch.bfloat16)), "  a float beside bf16")
    image = torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    made = module.add(image, image)
    ok(torch.equal(made, image + image) and made.stride() == image.stride(), "  channels_last")
    both = [torch.from_dlpack(part) for part in module.divmod(torch.arange(6), 4)]
    ok(torch.equal(both[0], torch.arange(6) // 4) and torch.equal(both[1], torch.arange(6) % 4), "  two results")
    error = raises(ValueError, lambda: module.add(a, a, b[:1]), "  errors", "shape [1, 3], expected [2, 3]")
    raises(TypeError, lambda: module.add(a, a, b.int()), "  of dtypes", "cannot take")

done_testing()
