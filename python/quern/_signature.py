# SPDX-License-Identifier: Apache-2.0
"""Signatures and docstrings of ops, for inspect and help. Called by the extension when an op's attribute is read."""

import keyword
import sys
from inspect import Parameter, Signature

from ._facts import FACTS

_OPTIONS = ("out", "dtype", "stream")


def _names(op):
    """The names of inputs and parameters, changed where Python does not allow them, and whether none had to be changed."""
    names = op.inputs + tuple(op.params)
    usable = []
    for name in names:
        while keyword.iskeyword(name) or name in _OPTIONS or name in usable or (name not in names and name + "_" in names):
            name += "_"
        usable.append(name)
    return tuple(usable), tuple(usable) == names


def signature(op):
    """An inspect.Signature: the inputs, then the parameters with their defaults, then the keywords of every op."""
    names, are_real = _names(op)
    kind = Parameter.POSITIONAL_OR_KEYWORD if are_real else Parameter.POSITIONAL_ONLY
    defaults = [Parameter.empty] * len(op.inputs)
    for name, value in op.params.items():
        is_behind_default = defaults and defaults[-1] is not Parameter.empty
        is_default = value is not None or is_behind_default or op._roles.get(name) in ("axes", "axis", "initial")
        defaults.append(value if is_default else Parameter.empty)
    parameters = [Parameter(name, kind, default=default) for name, default in zip(names, defaults)]
    parameters += [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in _OPTIONS]
    return Signature(parameters)


def groups(names, dtypes):
    """["x, y: f32 f64", "c: bool"]: neighbours of the same dtypes together."""
    made = []
    for name, words in zip(names, dtypes):
        if made and made[-1][1] == words:
            made[-1][0].append(name)
        else:
            made.append(([name], words))
    return ["{}: {}".format(", ".join(group), words) for group, words in made]


def _example(op):
    """As one would type it; "" where the op's spec has none."""
    arguments, result = FACTS.get(op.__name__, ("", "", ""))[1:] if op._origin and not op._origin[3] else ("", "")
    if not arguments:
        return ""
    name = op.__name__
    called = "quern." + name if is_attribute(op) else "quern.op({!r})".format(name)
    return "    >>> {}({})\n    {}".format(called, arguments, result)


def is_attribute(op):
    """Whether it is quern.NAME."""
    return getattr(sys.modules.get("quern"), op.__name__, None) is op


def error_bound(op):
    """What the op declares of its error; "" where it is exact, or of a spec loaded at run time."""
    return FACTS.get(op.__name__, ("", "", ""))[0] if op._origin and not op._origin[3] else ""


def doc(op):
    """The docstring: how it is called, what it computes, its formula, dtypes, error, derivative, an example."""
    dtypes = "\n".join("    " + line for line in groups(op.inputs + op.outputs, op._dtypes))
    bound, example = error_bound(op), _example(op)
    parts = [op.__name__ + str(signature(op)), op.doc, "\n".join("    " + line for line in op.formula.strip().splitlines()),
             "Dtypes:\n" + dtypes if dtypes else "",
             "Error: " + bound if bound else "",
             "Derivative: quern.op({!r})".format(op.backward) if op.backward else "",
             "Example:\n" + example if example else ""]
    return "\n\n".join(part for part in parts if part)
