# SPDX-License-Identifier: Apache-2.0
"""Quern: tensor kernels made from one definition each, on whatever tensors there are.

    quern.gelu(x)                            one op; quern.ops() names all of them
    quern.add(x, 1, out=y)                   into memory that is there
    f = quern.compile("y = gelu(x*w + b)")   an expression as one kernel: f(x, w, b)
    quern.evaluate("a*b + c")                the same at once, over the variables a, b and c
    @quern.fuse                              a Python function of arrays as one kernel
    quern.load_spec("swishy.lua")            ops of one's own

Operands are objects that speak DLPack (NumPy's arrays, PyTorch's tensors, quern.Array, ...) or have a buffer. Nothing is copied
on the way in or out, and without `out` the result is of the first operand's kind. pandas', xarray's and pyarrow's objects,
lists and numbers alone are taken, too, and given back as their kind."""

try:
    from ._quern import *
    from ._quern import __version__
except (ImportError, SystemError) as trouble: # SystemError: of a free-threaded interpreter
    raise ImportError(f"{trouble} (quern's extension does not load here. Its distribution is called pyquern: "
                      "pip install pyquern; quern on the index is another project.)") from trouble

from . import _functions, array_api
from ._explain import Explanation
from ._fuse import FuseError, fuse
from ._names import missing as __getattr__  # a function made here would keep the module in a cycle, and so alive to the very end
from .array_api import asarray, astype, empty, full

# Where the array API has an op of that name in another form, it is the array API's; quern.op(name) is the op itself. (A build
# may lack ops.)
_known = ops()
for _name in ("arange", "clip", "linspace", "nonzero"):
    if _name in _known:
        globals()[_name] = getattr(array_api, _name)
for _name, _op in (("diff", "subtract"), ("vecdot", "vecdot"), ("group_norm", "layer_norm"), ("instance_norm", "layer_norm")):
    if _op in _known:
        globals()[_name] = getattr(_functions, _name)
del _known, _name, _op
