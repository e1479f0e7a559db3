# SPDX-License-Identifier: Apache-2.0
"""The reference of the Python package, in reStructuredText, from its docstrings. Modules that need another library are read, not imported."""

import ast
import inspect
import os
import re

from rst import escaped, heading

# In the order of the page: a heading, names of the package.
_GROUPS = (
    ("Expressions", ("compile", "evaluate", "fuse", "FuseError")),
    ("Ops", ("op", "ops", "call", "Op", "load_spec")),
    ("How a call runs", ("Explanation", "describe", "cancel", "Context")),
    ("Arrays and dtypes", ("Array", "from_dlpack", "asarray", "empty", "full", "dtype", "Device")),
    ("Functions made of ops", ("diff", "group_norm", "instance_norm")))


def docstring(text, indent):
    """A docstring's paragraphs; indented ones are code."""
    out = []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        lines = part.split("\n")
        code = [line for line in lines if line.startswith("    ")]
        words = [line for line in lines if not line.startswith("    ")]
        if words:
            out += [indent + escaped(" ".join(words)), ""]
        if code:
            out += [indent + ".. code-block:: python", ""] + [indent + "   " + line[4:] for line in code] + [""]
    return out


def _signature(item):
    try:
        return str(inspect.signature(item))
    except (TypeError, ValueError):
        return "()" if callable(item) else ""


def _members(item, path):
    out = []
    for name in sorted(vars(item)):
        member = inspect.getattr_static(item, name)
        text = getattr(member, "__doc__", None)
        if name.startswith("_") or not text:
            continue
        kind = "method" if callable(member) or isinstance(member, (classmethod, staticmethod)) else "attribute"
        out += [f"   .. py:{kind}:: {path}.{name}" + (_signature(getattr(item, name)) if kind == "method" else ""), ""]
        out += docstring(text, "      ")
    return out


def _item(package, name):
    item, path = getattr(package, name), f"{package.__name__}.{name}"
    if inspect.isclass(item):
        return [f".. py:class:: {path}", ""] + docstring(item.__doc__ or "", "   ") + _members(item, path)
    return [f".. py:function:: {path}{_signature(item)}", ""] + docstring(item.__doc__ or "", "   ")


def undocumented(package):
    """Public names of the package that the page does not have, and names on it without a docstring."""
    shown = {name for _, names in _GROUPS for name in names}
    known = {name for name in vars(package) if not name.startswith("_") and name not in package.ops() and
             not inspect.ismodule(getattr(package, name)) and not isinstance(getattr(package, name), package.dtype)}
    return sorted(known - shown - {"arange", "linspace", "clip", "nonzero", "vecdot", "astype"}) + \
        sorted(name for name in shown if not (getattr(package, name).__doc__ or "").strip())


def _from_source(folder, file):
    """A module's docstring and public functions, read from its text."""
    with open(os.path.join(folder, file)) as source:
        tree = ast.parse(source.read())
    name = "quern." + file[:-3]
    out = heading(name, "-") + docstring(ast.get_docstring(tree) or "", "")
    for node in tree.body:
        text = isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_") and ast.get_docstring(node)
        if text:
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            arguments = "" if kind == "class" else "(" + ast.unparse(node.args) + ")"
            out += [f".. py:{kind}:: {name}.{node.name}{arguments}", ""] + docstring(text, "   ")
    return out


def page(package):
    out = heading("Python API", "=") + ["``quern.NAME`` is a function for each of :doc:`the ops </ops/index>`; what else the package has is "
           "here. :doc:`/python` tells how operands are taken and results are made.", ""]
    for title, names in _GROUPS:
        out += heading(title, "-")
        for name in names:
            if hasattr(package, name):
                out += _item(package, name)
    folder = os.path.dirname(package.__file__)
    for file in ("array_api.py", "torch.py", "jax.py"):
        if os.path.exists(os.path.join(folder, file)):
            out += _from_source(folder, file)
    return "\n".join(out) + "\n"
