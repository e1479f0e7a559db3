# SPDX-License-Identifier: Apache-2.0
"""Names that are not there: the nearest one that is, and NumPy's and PyTorch's names of ops."""

import sys

from . import _quern

# Another library's name: ours.
FOREIGN = {"absolute": "abs", "fabs": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
           "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "power": "pow", "float_power": "pow", "mod": "remainder",
           "true_divide": "divide", "bitwise_not": "bitwise_invert", "invert": "bitwise_invert",
           "left_shift": "bitwise_left_shift",
           "right_shift": "bitwise_right_shift", "conjugate": "conj", "fix": "trunc", "around": "round", "amax": "max",
           "amin": "min", "product": "prod", "cumsum": "cumulative_sum", "cumprod": "cumulative_prod", "deg2rad": "radians",
           "rad2deg": "degrees", "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negative", "eq": "equal",
           "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "clamp": "clip",
           "norm": "vector_norm", "swish": "silu", "logistic": "sigmoid", "expit": "sigmoid"}


def advice(name, known):
    """"; did you mean ...?", or ""."""
    ours = FOREIGN.get(name)
    if ours in known:
        return "; it is called {!r} here".format(ours)
    import difflib
    near = difflib.get_close_matches(name, known, 3, 0.6)
    if not near:
        return "; quern.ops() names the ops"
    return "; did you mean {}?".format(" or ".join(map(repr, near)))


def missing(name):
    """For the package's __getattr__: names the nearest name."""
    message = "module 'quern' has no attribute {!r}".format(name)
    if not name.startswith("_"):
        message += advice(name, [known for known in vars(sys.modules.get("quern", _quern)) if not known.startswith("_")])
    raise AttributeError(message)
