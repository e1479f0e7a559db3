# SPDX-License-Identifier: Apache-2.0
"""What to write instead of an object, a dtype or an attribute that was refused: one sentence, behind a semicolon; or "". Imports no
other package: who has its objects has. The extension comes here only after something has failed."""

import sys

from . import _arrow, _labels, _quern


def _behind(advice):
    return "; " + advice if advice else ""


def _module(x):
    return getattr(type(x), "__module__", "") or ""


# ---- Objects ----

# An attribute that such an object has: advice. The first one counts.
_BY_ATTRIBUTE = (("to_numpy", "give x.to_numpy()"), ("toarray", "give x.toarray()"), ("collect", "give x.collect()"),
                 ("__array__", "give numpy.asarray(x)"), ("agg", "give x.agg(op)"), ("__float__", "give float(x)"))


def of_object(x):
    """Of one that is no tensor."""
    advice = _labels.advice(x) or _arrow.advice(x)
    if advice:
        return _behind(advice)
    if isinstance(x, dict):
        return _behind("give its values one by one")
    if isinstance(x, complex):
        return _behind("numbers are real here")
    for name, sentence in _BY_ATTRIBUTE:
        if hasattr(x, name):
            return _behind(sentence)
    return _behind("give list(x)") if hasattr(x, "__iter__") and not isinstance(x, (str, bytes)) else ""


def _of_torch(x, torch):
    is_wrapped = getattr(torch._C._functorch, "is_functorch_wrapped_tensor", lambda x: False)
    if type(x).__name__ == "FakeTensor" or is_wrapped(x):
        return "what is traced by PyTorch calls the functions of quern.torch"
    if x.is_nested:
        return "give its parts, x.unbind()"
    if x.is_quantized:
        return "give x.dequantize()"
    if x.layout != torch.strided:
        return "give x.to_dense()"
    if x.device.type == "meta":
        return "it has no memory"
    if x.requires_grad:
        return "the functions of quern.torch have derivatives"
    return ""


def of_refusal(x):
    """Of a tensor that its own library does not hand over."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(x, torch.Tensor):
        return _behind(_of_torch(x, torch))
    if _module(x).startswith("jax.") and hasattr(x, "aval"):
        return _behind("what is traced by JAX calls the functions of quern.jax")
    if numpy is None or not isinstance(x, numpy.ndarray):
        return ""
    known = of_dtype(x.dtype)
    if known:
        return known
    return _behind("give x.copy()") if any(step % x.itemsize for step in x.strides) else ""


# ---- Dtypes ----


def of_dtype(dtype):
    """Of NumPy's dtype of an array, where Quern has none of its kind or byte order."""
    kind = getattr(dtype, "kind", "")
    if kind == "V" and dtype.names:
        return _behind("give one of its fields, x[{!r}]".format(dtype.names[0]))
    if kind in "mM":
        return _behind("give x.astype('int64')")
    if kind == "c":
        return _behind("give x.real and x.imag")
    if kind in "OSUT" or kind == "f" and dtype.itemsize > 8:
        return _behind("give x.astype('float64')")
    return _behind("give x.astype(x.dtype.newbyteorder('='))") if not getattr(dtype, "isnative", True) else ""


# Names of dtypes in C and in NumPy's codes. (i8 and u8 are 8 bits here, 8 bytes in NumPy.)
_DTYPES = {"?": "bool", "b1": "bool", "bool_": "bool", "byte": "int8", "short": "int16", "int": "int64", "long": "int64", "i1": "int8",
           "i2": "int16", "i4": "int32", "u1": "uint8", "u2": "uint16", "u4": "uint32", "half": "float16", "float": "float64",
           "single": "float32", "double": "float64", "f2": "float16", "f4": "float32", "f8": "float64", "e": "float16", "f": "float32",
           "d": "float64"}


def of_dtype_name(wanted):
    """Of what names no dtype here."""
    if getattr(wanted, "isnative", True) is False:
        return _behind("write {}.newbyteorder('=')".format(repr(wanted)))
    name = wanted if isinstance(wanted, str) else getattr(wanted, "name", None) or getattr(wanted, "__name__", "")
    plain = name.lstrip("<=|>").lower() if isinstance(name, str) else ""
    other = _DTYPES.get(plain) or (plain if plain != name and hasattr(_quern, plain) else None)
    return _behind("write {!r}".format(other) if other else "")


# ---- Attributes of quern.Array ----

_ATTRIBUTES = {"astype": "quern.astype(x, dtype)", "numpy": "numpy.asarray(x)", "copy": "quern.copy(x)", "clone": "quern.copy(x)",
               "ravel": "x.reshape((-1,))", "flatten": "x.reshape((-1,))", "view": "x.reshape(shape)", "cpu": "x.to_device('cpu')",
               "cuda": "x.to_device('cuda:0')", "to": "x.to_device(device), or quern.astype(x, dtype)", "fill": "x[...] = value",
               "transpose": "x.T, or quern.array_api.permute_dims(x, axes)", "permute": "quern.array_api.permute_dims(x, axes)",
               "dot": "x @ y", "element_size": "x.itemsize", "numel": "x.size", "is_cuda": "x.device", "ctypes": "x.data_ptr()"}


def of_attribute(name):
    """Of an attribute that quern.Array has not: it has few methods, as the array API has it; ops are functions."""
    from ._names import ours
    known = _quern.ops()
    op = name if name in known else ours(name)
    if name in _ATTRIBUTES:
        return _behind("write " + _ATTRIBUTES[name])
    if op in known:
        return _behind("write quern.{}(x)".format(op))
    from . import array_api
    return _behind("write quern.array_api.{}(x)".format(name)) if hasattr(array_api, name) else ""
