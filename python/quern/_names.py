# SPDX-License-Identifier: Apache-2.0
"""Names that are not there: the nearest one that is, NumPy's and PyTorch's names of ops, and what is said of those that Quern has not."""

import sys

from . import _quern


def ours(name):
    """Quern's name of another library's function; None."""
    from ._facts import ALIASES  # a large table: not when the package is imported
    return ALIASES.get(name)


def advice(name, known):
    """"; did you mean ...?", or ""."""
    own = ours(name)
    if own in known:
        return "; it is called {!r} here".format(own)
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
