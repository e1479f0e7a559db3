# SPDX-License-Identifier: Apache-2.0
"""Ops in pickles: by name, expressions by their text. Ops of specs are named with their spec, which whoever reads the pickle
loads: a pickle reads no files."""

import sys

from . import _quern

_contexts: dict = {}  # options -> the context for ops of a context that had these


def reduce(op):
    """For Op.__reduce__."""
    name, origin = op.__name__, op._origin
    if getattr(sys.modules.get("quern"), name, None) is op:
        return name
    if origin is None:
        raise TypeError("quern.Op {} cannot be pickled: it is unknown where it comes from; make it anew".format(name))
    kind, text, options, spec, specs = origin
    if options is not None and (spec or (kind == "expression" and specs)):
        raise TypeError("quern.Op {} cannot be pickled: its quern.Context has ops of the spec {}, and contexts are not pickled; "
                        "load the spec by quern.load_spec, and make the op by quern.compile or quern.op".format(
                            name, spec or specs[0]))
    return _restored, (kind, text, options, spec, specs)


def _context(options):
    if options is None:
        return _quern
    known = _contexts.get(options)
    return known if known is not None else _contexts.setdefault(options, _quern.Context(*options))


def _restored(kind, text, options, spec, specs):
    context = _context(options)
    try:
        return context.op(text) if kind == "op" else context.compile(text)
    except (KeyError, NameError) as error:
        needed = [spec] if spec else list(specs)
        if not needed:
            raise
        loads = " and ".join("quern.load_spec({!r})".format(path) for path in needed)
        what = "the op {}".format(text) if kind == "op" else "the expression {!r}".format(text)
        raise RuntimeError("{} of a pickle needs {} in this process first: {}".format(
            what, loads, error.args[0] if error.args else error)) from error
