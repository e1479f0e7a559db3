# SPDX-License-Identifier: Apache-2.0
"""quern.Explanation: how a call runs. Made by the extension from the library's lines `key: value`."""

import re
from typing import NamedTuple, Optional


class Operand(NamedTuple):
    """An operand of the call. access: "in place", or how it is packed; None where the library does not say."""

    name: str
    is_output: bool
    dtype: str
    shape: tuple
    access: Optional[str]

    def __str__(self):
        return "{} {}[{}]".format(self.name, self.dtype, ", ".join(map(str, self.shape)))


class Pass(NamedTuple):
    """A pass over memory of a call that reduces. over: "elements" or "values of rows"; variants: its kernels; steps: those of its
    operations, where they are interpreted; reduces: what it reduces, as "sum f32"."""

    number: int
    over: Optional[str]
    variants: tuple
    steps: tuple
    reduces: tuple
    kept: Optional[str]


_PASS_KEYS = ("over", "variant", "step", "reduces", "kept")


def _value(text):
    """A number, a bool, extents, or the text."""
    if text in ("yes", "no"):
        return text == "yes"
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d+", text):
        return float(text)
    return text


def _passes(lines):
    made = []
    for key, value in lines:
        if key == "pass":
            made.append([int(value), []])
        elif made and key in _PASS_KEYS:
            made[-1][1].append((key, value))
    for number, facts in made:
        every = {key: tuple(value for name, value in facts if name == key) for key in _PASS_KEYS}
        yield Pass(number, every["over"][0] if every["over"] else None, every["variant"], every["step"], every["reduces"],
                   every["kept"][0] if every["kept"] else None)


def _access(lines, name, is_output):
    pattern = re.compile(r"{} \d+ \({}\)".format("output" if is_output else "input", re.escape(name)))
    return next((value for key, value in lines if pattern.fullmatch(key)), None)


class Explanation(dict):
    """How a call runs. As a dict it has the library's keys with their texts, of a repeated key the last one. Attributes have
    values: e.tier, e.reason, e.threads (an int), e.streamed (a bool), e.box (ints), and any other key; None: this call has
    none such.

    name, formula   of the op
    operands        tuple of (name, is_output, dtype, shape, access)
    variants, steps all kernels; the kernels of the interpreted operations, in order
    passes          of a call that reduces: tuple of (number, over, variants, steps, reduces, kept)
    lines           all (key, text), in order, as str(e) prints them
    as_dict()       of all this, for JSON"""

    def __init__(self, text, name="", formula="", operands=()):
        lines = tuple((key, value) for key, colon, value in (line.partition(": ") for line in text.split("\n")) if colon)
        super().__init__(lines)
        self.lines, self.name, self.formula = lines, name, formula
        self.operands = tuple(Operand(*facts, _access(lines, facts[0], facts[1])) for facts in operands)
        self.steps = tuple(value for key, value in lines if key == "step")
        self.variants = tuple(value for key, value in lines if key == "variant" and value != "none")
        self.passes = tuple(_passes(lines))
        self.box = tuple(map(int, self["box"].split(" x "))) if "box" in self else None

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return _value(self[name]) if name in self else None

    def __reduce__(self):
        return Explanation, (str(self), self.name, self.formula, tuple(operand[:4] for operand in self.operands))

    def __str__(self):
        return "".join("{}: {}\n".format(*line) for line in self.lines)

    def __repr__(self):
        operands = ", ".join(map(str, self.operands))
        return "<quern.Explanation of {}({}): {}, {}>".format(self.name, operands, self.tier, self.reason)

    def __dir__(self):
        return sorted(set(super().__dir__()) | {key for key in self if key.isidentifier()})

    def as_dict(self):
        """Everything, as dicts, lists, numbers and str."""
        structured = ("pass", "box", "passes", "steps") + _PASS_KEYS
        plain = {key: _value(value) for key, value in self.items() if key not in structured and " (" not in key}
        return dict(plain, name=self.name, formula=self.formula, operands=[operand._asdict() for operand in self.operands],
                    variants=list(self.variants), steps=list(self.steps), passes=[each._asdict() for each in self.passes],
                    box=self.box)

    def _repr_html_(self):
        from html import escape
        rows = "".join("<tr><td>{}</td><td>{}</td></tr>".format(escape(key), escape(value)) for key, value in self.lines)
        return "<table><caption>{}</caption>{}</table>".format(escape(self.formula or self.name), rows)
