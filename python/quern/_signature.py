# SPDX-License-Identifier: Apache-2.0
"""Signatures and docstrings of ops, for inspect and help. Called by the extension when an op's attribute is read."""

import keyword
from inspect import Parameter, Signature

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
        is_default = value is not None or is_behind_default or (op._has_axis and name in ("axis", "initial"))
        defaults.append(value if is_default else Parameter.empty)
    parameters = [Parameter(name, kind, default=default) for name, default in zip(names, defaults)]
    parameters += [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in _OPTIONS]
    return Signature(parameters)


def doc(op):
    """The docstring: how it is called, what it computes, its formula."""
    parts = [op.__name__ + str(signature(op)), op.doc, "\n".join("    " + line for line in op.formula.strip().splitlines())]
    return "\n\n".join(part for part in parts if part)
