# SPDX-License-Identifier: Apache-2.0
"""What an op shows of itself: repr and _repr_html_. Called by the extension."""

from html import escape

from ._signature import groups


def _operands(names, dtypes):
    return "; ".join(groups(names, dtypes))


def facts(op):
    """(what, text) of the op, in the order in which they are shown."""
    n_in, params = len(op.inputs), op.params
    yield "text", op.formula
    yield "inputs", _operands(op.inputs, op._dtypes[:n_in])
    if params:
        yield "parameters", ", ".join(name if value is None else "{}={}".format(name, value) for name, value in params.items())
    yield "outputs", _operands(op.outputs, op._dtypes[n_in:])
    origin = op._origin
    if origin and origin[3]:
        yield "spec", origin[3]
    last = op._last()
    if last is not None:
        sides = [", ".join(str(x) for x in last.operands if x.is_output == side) for side in (False, True)]
        yield "last call", " -> ".join(sides)
        yield "tier", "{}: {}".format(last.tier, last.reason)


def is_expression(op):
    return op._origin is not None and op._origin[0] == "expression"


def op_text(op):
    """repr: one line of a built-in op; of an expression its operands, and the tier of the last call."""
    if not is_expression(op):
        return "<quern.Op {}{}>".format(op.__name__, ": " + op.formula if op.formula else "")
    words = dict(facts(op))
    text = "<quern.Op \"{}\"; inputs {}".format(words["text"], ", ".join(op.inputs))
    if "parameters" in words:
        text += "; parameters " + words["parameters"]
    text += "; outputs " + ", ".join(op.outputs)
    if "tier" in words:
        text += "; last call {}, {}".format(words["last call"], words["tier"])
    return text + ">"


def op_html(op):
    """The same as a table, for notebooks."""
    rows = "".join("<tr><td>{}</td><td><code>{}</code></td></tr>".format(escape(key), escape(value)) for key, value in facts(op))
    return "<table><caption>quern.Op {}</caption>{}</table>".format(escape(op.__name__), rows)
