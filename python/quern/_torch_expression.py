# SPDX-License-Identifier: Apache-2.0
"""The text of an expression's derivative, from its text."""

import re

_COMMENT = re.compile(r"#[^\n]*|/\*.*?\*/", re.DOTALL)
_LINE_COMMENT = re.compile(r"(^|[^\w.)\s])(\s*)//[^\n]*")  # `//` behind a value divides
_ASSIGNED = re.compile(r"\s*(\w+)\s*=(?!=)")
_DECLARED = re.compile(r"\s*(param\b|\w+\s+\w+\s*=(?!=))")
_LABEL = re.compile(r"\s*\w+\s*:")


def _statements(text):
    text = _COMMENT.sub(" ", text)
    text = _LINE_COMMENT.sub(r"\1\2", text)
    text = text[_LABEL.match(text).end():] if _LABEL.match(text) else text
    return [statement.strip() for statement in text.split(";") if statement.strip()]


def _as_local(statement, output):
    """The assignment of an output as one of a local."""
    if _DECLARED.match(statement):
        return statement
    return "auto " + statement if _ASSIGNED.match(statement) else "auto {} = {}".format(output, statement)


def _unused(text, prefix):
    while re.search(r"\b" + prefix, text):
        prefix += "_"
    return prefix


def derivative_text(text, op, outputs, inputs):
    """An expression of the derivatives, by these inputs, of the sum of these outputs, each times an operand that is named as the
    output behind a prefix. Returns it and the prefix."""
    by, of = _unused(text, "by_"), _unused(text, "of_")
    lines = [_as_local(statement, op.outputs[-1]) for statement in _statements(text)]
    total = " + ".join("{}{} * {}".format(of, name, name) for name in outputs)
    lines += ["{}{} = grad({}, {})".format(by, name, total, name) for name in inputs]
    return "; ".join(lines), of
