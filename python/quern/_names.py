# SPDX-License-Identifier: Apache-2.0
"""Names that are not there: the nearest one that is, NumPy's and PyTorch's names of ops, and what is said of those that Quern has not."""

import sys

from . import _quern


# Names of other packages that are no ops: what to write.
_PACKAGES = {
    "ElementwiseKernel": "write quern.compile(text)", "ReductionKernel": "write quern.compile(text)", "Tensor": "write quern.Array",
    "array": "write quern.asarray(x)", "as_tensor": "write quern.asarray(x)", "asnumpy": "write numpy.asarray(x)",
    "cat": "quern.array_api.concat is there", "concatenate": "quern.array_api.concat is there", "eval": "write quern.evaluate(text)",
    "from_numpy": "write quern.asarray(x)", "jit": "write @quern.fuse", "linalg": "quern.vector_norm and quern.array_api.matmul are there",
    "load": "write quern.asarray(numpy.load(path))", "ndarray": "write quern.Array", "nn": "its functions are there by themselves, such as quern.gelu",
    "no_grad": "only quern.torch has gradients", "random": "there are no random numbers: make them by NumPy",
    "save": "write numpy.save(path, x)", "set_num_threads": "write quern.Context(threads=n), or set QUERN_NUM_THREADS",
    "tensor": "write quern.asarray(x)", "to_numpy": "write numpy.asarray(x)", "vectorize": "write @quern.fuse",
}


def ours(name):
    """Quern's name of another library's function; None."""
    from ._facts import ALIASES  # a large table: not when the package is imported
    return ALIASES.get(name)


def advice(name, known):
    """"; did you mean ...?", or ""."""
    own = ours(name)
    if own in known:
        return "; it is called {!r} here".format(own)
    if name in _PACKAGES:
        return "; " + _PACKAGES[name]
    from . import array_api
    if hasattr(array_api, name):
        return "; quern.array_api.{} is there".format(name)
    import importlib.util
    if name.isidentifier() and importlib.util.find_spec("quern." + name):
        return "; write import quern." + name
    from ._facts import SENTENCES
    if name in SENTENCES:
        return "; " + SENTENCES[name]
    import difflib
    near = [other for other in known if other == name.lower()] or difflib.get_close_matches(name, known, 3, 0.6)
    if not near:
        return "; quern.ops() names the ops"
    return "; did you mean {}?".format(" or ".join(map(repr, near)))


def missing(name):
    """For the package's __getattr__: names the nearest name."""
    message = "module 'quern' has no attribute {!r}".format(name)
    if not name.startswith("_"):
        message += advice(name, [known for known in vars(sys.modules.get("quern", _quern)) if not known.startswith("_")])
    raise AttributeError(message)
