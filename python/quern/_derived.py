# SPDX-License-Identifier: Apache-2.0
"""The derivative of an expression as the text of another: its assigned names become locals, followed by
grad_NAME = grad(y * g_y, NAME), the derivative by each input NAME, where g_y is the derivative by the result y."""

import re

_STATEMENT = re.compile(r"(?:(?P<type>[a-z][a-z0-9]*)\s+)?(?P<name>[A-Za-z_]\w*)\s*=(?!=)")
_LABEL = re.compile(r"\s*[A-Za-z_]\w*\s*:(?!:)(?![^;=]*\?)")


def _without_comments(text):
    """`#` begins a comment; `//` does if no operand precedes it."""
    kept, k = [], 0
    while k < len(text):
        before = "".join(kept).rstrip()
        if text[k] == "#" or (text.startswith("//", k) and not re.search(r"[\w.)\]]$", before)):
            while k < len(text) and text[k] != "\n":
                k += 1
        elif text.startswith("/*", k):
            k = max(text.find("*/", k), k) + 2
            kept.append(" ")
        else:
            kept.append(text[k])
            k += 1
    return "".join(kept)


def statements(text):
    """(word, name, statement) of each statement: word is "param", a local's type, "" of an output; name None: no name is assigned."""
    text = _without_comments(text)
    label = _LABEL.match(text)
    if label:
        text = text[label.end():]
    for statement in text.split(";"):
        statement = statement.strip()
        found = _STATEMENT.match(statement)
        if statement.split(None, 1)[:1] == ["param"]:
            yield "param", None, statement
        elif found:
            yield found["type"] or "", found["name"], statement
        elif statement:
            yield "", None, statement


def functions(text):
    """The names of what the text calls."""
    return set(re.findall(r"([A-Za-z_][\w.]*)\s*\(", _without_comments(text)))


def reduced_axes(text):
    """The value of the first axis= of a text, as Python's value; None: all axes."""
    found = re.search(r"\baxis\s*=\s*(\([^)]*\)|[-+]?\s*\d+)", _without_comments(text))
    if not found:
        return None
    numbers = tuple(int(word.replace(" ", "")) for word in re.findall(r"[-+]?\s*\d+", found[1]))
    return numbers if found[1].startswith("(") else numbers[0]


def derivative(text, outputs, wanted_in, wanted_out):
    """The text of the derivative by the inputs wanted_in of the outputs wanted_out, and the names of the inputs g_y."""
    names = set(re.findall(r"[A-Za-z_]\w*", text))

    def unused(name):
        while name in names:
            name += "_"
        names.add(name)
        return name

    parts, name_of = [], {}
    for word, name, statement in statements(text):
        if word or statement.startswith("param"):
            parts.append(statement)
        elif name is None:
            name_of[outputs[-1]] = unused(outputs[-1])
            parts.append("auto {} = {}".format(name_of[outputs[-1]], statement))
        else:
            name_of[name] = name
            parts.append("auto " + statement)
    grads = {name: unused("g_" + name) for name in wanted_out}
    total = " + ".join("{} * {}".format(name_of[name], grads[name]) for name in wanted_out)
    parts += ["{} = grad({}, {})".format(unused("grad_" + name), total, name) for name in wanted_in]
    return "; ".join(parts), grads
