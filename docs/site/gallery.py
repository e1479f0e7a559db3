# SPDX-License-Identifier: Apache-2.0
"""The gallery: a page for each op, of its spec's facts, its kernels' text, and calls of this build. Pages are MyST, with HTML where
Markdown has no word for it."""

import html
import os
import re

import numpy

import calls
import errors
import formula
import plots
import quern

_FAMILIES = (
    ("unary", "Basic functions"), ("binary", "Arithmetic of two operands"), ("exponential", "Exponentials and logarithms"),
    ("trigonometric", "Trigonometric functions"), ("inverse_trigonometric", "Inverse trigonometric functions"),
    ("hyperbolic", "Hyperbolic functions"), ("activation", "Activations"), ("rounding", "Rounding"), ("division", "Division"),
    ("parts", "Parts of numbers"), ("compare", "Comparisons and logic"), ("bitwise", "Bits"), ("reduction", "Reductions and rows"),
    ("statistics", "Statistics"), ("vector", "Vectors, norms and losses"), ("search", "Searching"), ("scan", "Scans"),
    ("scan_backward", "Derivatives of scans"), ("move", "Copies and casts"), ("index", "Sequences"),
    ("dynamic", "Outputs of a size that depends on values"))
_SPECIAL = ("-inf", "-1", "-0.0", "0.0", "0.5", "1", "inf", "nan")


def _code(text, language):
    return f"```{language}\n{text.rstrip()}\n```\n"


def _folded(title, inside):
    return f"<details><summary>{html.escape(title)}</summary>\n\n{inside}\n</details>\n"


def _raw(text):
    """HTML as it is: a blank line would end it."""
    return "```{raw} html\n" + re.sub(r"\n\s*\n", "\n", text).rstrip() + "\n```\n"


def _rendered(text, result):
    return _raw('<div class="formula">' + "".join(formula.mathml(text, result)) + "</div>")


def _formula(op):
    out = []
    result = op["outputs"][0]["name"]
    for key, text, by in op["bodies"]:
        words = "" if key == "any" else f"For {key}:\n\n"
        body = re.sub(r"^\s+", "", re.sub(r"\n    ", "\n", text)).rstrip()
        try:
            rendered = "" if by else _rendered(text, result)
        except formula.NotReadable:
            rendered = ""
        if by:
            out.append(f"{words}Derived from `{body}`, by {by.replace(' ', ', ')}.\n" + "".join(_rendered(*reversed(row)) for row in op["derived"]))
        elif rendered:
            out.append(words + rendered + _folded("The body in the spec", _code(body, "c")))
        else:
            out.append(words + _code(body, "c"))
    for key, text, _ in op.get("parts", []):
        out.append(f"`{key}`: `{' '.join(text.split())}`\n")
    return "\n".join(out)


def _calls(op):
    return "| | |\n|---|---|\n" + "".join(f"| {language} | `{code}` |\n" for language, code in calls.rows(op))


def _dtypes(op, names):
    head = "| | " + " | ".join(names) + " |\n|---|" + ":-:|" * len(names) + "\n"
    rows = [("in", op["dtypes"])] + [(output["name"], output["dtypes"]) for output in op["outputs"]]
    return head + "".join("| {} | {} |\n".format(label, " | ".join("•" if name in has else " " for name in names)) for label, has in rows)


def _accuracy(op, table):
    out = []
    if op["error"]:
        out.append("Declared: " + ("`" + op["error"] + "`" if "error" in op["error"] else op["error"]) + ".\n")
    head, rows = table.get(op["name"], ([], []))
    if rows:
        words = [{"declared": "declared, ULP", "found": "largest error found"}.get(name, name) for name in head]
        out.append("Measured ([all](../ACCURACY.md)):\n\n| " + " | ".join(words) + " |\n" + "|---" * len(words) + "|\n"
                   + "".join("| " + " | ".join(row[:len(words)]) + " |\n" for row in rows))
    return "\n".join(out)


def accuracy_table(path):
    """ACCURACY.md's rows of ops and of derivatives: {op: (the names of the columns, [[dtype, ...]])}"""
    table, head = {}, []
    with open(path) as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if cells[0] in ("op", "derivative"):
                head = cells[1:7]
            if len(cells) >= 7 and cells[1] in ("f16", "bf16", "f32", "f64"):
                table.setdefault(cells[0], (head, []))[1].append(cells[1:])
    return table


def _special_row(label, values):
    return f"| {label} | " + " | ".join(f"`{value}`" for value in values) + " |\n"


def _special(op):
    """Results at zeros, infinities, NaN: a table of calls."""
    if op["kind"] != "elementwise" or op["backward_of"] or not 1 <= len(op["inputs"]) <= 2 or any(i["type"] for i in op["inputs"]):
        return ""
    if "f64" not in op["dtypes"]:
        return ""
    values = numpy.array([float(text) for text in _SPECIAL])
    names = [item["name"] for item in op["inputs"]]
    call = quern.op(op["name"])
    with numpy.errstate(all="ignore"):
        result = call(values) if len(names) == 1 else call(values[:, None], values[None, :])
    results = result if isinstance(result, tuple) else (result,)
    if len(names) == 1:
        rows = [(output["name"], values_of) for output, values_of in zip(op["outputs"], results)]
    elif len(results) == 1:
        rows = [(f"`{text}`", values_of) for text, values_of in zip(_SPECIAL, result)]
    else:
        return ""
    head = _special_row(" \\ ".join(names), _SPECIAL) + "|---|" + "---|" * len(_SPECIAL) + "\n"
    return head + "".join(_special_row(label, [_shown(value) for value in values_of]) for label, values_of in rows)


def _shown(value):
    value = value.item()
    if isinstance(value, bool):
        return str(value)
    return "{:.6g}".format(value) if not (value == 0 and str(value).startswith("-")) else "-0"


class Wrong(Exception):
    """What the spec says is not what this build computes."""


def _example(op):
    """The spec's example, run."""
    if len(op["example"]) < 2:
        return ""
    arguments, wanted = op["example"]
    names = {"array": numpy.array, "quern": quern, "float": float, "True": True, "False": False}
    depth, parts = 0, [""]
    for sign in arguments:
        depth += (sign in "[(") - (sign in "])")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    given = []
    for k, part in enumerate(part.strip() for part in parts):
        if "=" in part:
            given.append(part)
            continue
        dtype = op["inputs"][k]["type"] or next(d for d in ("f64", "i64", "bool") if d in op["dtypes"])
        given.append("array({}, {!r})".format(part, {"f64": "float64", "i64": "int64", "bool": "bool", "i32": "int32"}.get(dtype, "float64")))
    text = "{}({})".format(calls.python_name(op), ", ".join(given))
    result = eval(text, names) # from our specs
    expected = eval(wanted, names)
    for a, b in zip(result if isinstance(result, tuple) else (result,), expected if isinstance(result, tuple) else (expected,)):
        if not numpy.allclose(numpy.asarray(a, "f8"), numpy.asarray(b, "f8"), rtol=1e-6, equal_nan=True):
            raise Wrong(f"{op['name']}: {text} is {a}, the spec says {b}")
    return _code(f">>> {text}\n{result!r}", "pycon")


# ---- Kernels' texts ----

def _function(text, name):
    """A function, with the comment above it."""
    match = re.search(r"(/\*[^\n]*\*/\n)?[^\n]*\b" + name + r"\)?\([^\n]*\n", text)
    if not match:
        return None
    end = text.find("\n}\n", match.end())
    return text[match.start():end + 2] if end > 0 else None


def _kernel(op, manifest, tree, key):
    """The text of one kernel: of f32 and contiguous operands, and of the op's own, where there is one. (Some ops share code.)"""
    def nearness(kernel):
        return (all(dtype == "f32" for dtype in kernel["dtypes"]), "code" not in kernel, bool(re.search(r"_1d_c+$", kernel["name"])),
                "f32" in kernel["dtypes"], not re.search(r"_v[234]$|_i64$", kernel["name"]))
    kernels = [k for k in manifest[key] if k["op"] == op["name"]]
    if not kernels:
        return None
    wanted = max(kernels, key=nearness)
    name = wanted.get("code", wanted["name"])
    with open(os.path.join(tree, wanted["file"])) as file:
        text = _function(file.read(), name)
    if not text:
        return None
    lines = text.split("\n")
    if len(lines) > 160:
        lines = lines[:160] + ["  /* ... {} lines more */".format(len(lines) - 160)]
    return name.replace("kernels_", "", 1), "\n".join(lines).replace("kernels_", "")


# ---- Pages ----

def _reference(name, shown):
    """An op's name, as a link where it has a page. shown: the names of those that have."""
    return f"[{name}]({name}.md)" if name in shown else f"`{name}`"


def page(op, by_name, shown, uses, facts, manifest, tree, accuracy):
    """(text, counts) of an op's page."""
    has = {"plot": 0, "error": 0, "exact": 0, "none": 0, "above": 0, "example": 0}
    out = [f"# {op['name']}\n", " ".join(op["doc"].split()).replace("*", "\\*").replace("_", "\\_") + "\n", _formula(op)]
    out.append("## Calls\n\n" + _calls(op))
    example = _example(op)
    if example:
        has["example"] = 1
        out.append("## Example\n\n" + example)
    out.append("## Plot\n\n" + _raw(plots.function(op, by_name)))
    has["plot"] = 1
    out.append("## Dtypes\n\n" + _dtypes(op, facts["dtypes"]))
    stated = _accuracy(op, accuracy)
    measured = errors.measured(op, by_name)
    has[measured.kind] = 1
    out.append("## Accuracy\n\n" + stated + "\n" + (_raw(measured.picture) + "\n" if measured.picture else "") + measured.words)
    special = _special(op)
    if special:
        out.append("## Special values\n\n" + special)
    if op["backward"]:
        out.append("## Derivative\n\n" + _reference(op["backward"], shown) + ":\n\n" + _formula(by_name[op["backward"]]))
    if op["backward_of"]:
        out.append(f"The derivative of {_reference(op['backward_of'], shown)}.\n")
    if uses:
        out.append("Used in " + ", ".join(f"[{title}](../{path})" for title, path in uses) + ".\n")
    texts = []
    for title, key, language in (("C", "kernels", "c"), ("CUDA", "cuda_kernels", "cuda")):
        found = _kernel(op, manifest, tree, key)
        if found:
            texts.append(_folded(f"{title}: {found[0]}", _code(found[1], language)))
    if texts:
        out.append("## What it becomes\n\n" + "\n".join(texts))
    out.append(f"Spec: `{op['spec']}`\n")
    return "\n".join(out), has


def index(shown, by_name):
    """The gallery's index: families, with small pictures. shown: the ops that have a page"""
    out = ["# Ops\n", "A page for each op, made from its spec and from this build.\n"]
    forward = [op for op in shown if not op["backward_of"]]
    known = dict(_FAMILIES)
    families = list(_FAMILIES) + [(name, name) for name in sorted({op["family"] for op in forward} - set(known))]
    for family, title in families:
        ops = [op for op in forward if op["family"] == family]
        if not ops:
            continue
        out.append(f"## {title}\n")
        cards = []
        for op in ops:
            cards.append('<a class="card" href="{}.html">{}<span>{}</span></a>'.format(op["name"], plots.small(op, by_name) or "", op["name"]))
        out.append(_raw('<div class="cards">' + "".join(cards) + "</div>"))
    backward = [op for op in shown if op["backward_of"]]
    out.append("## Derivatives\n\n" + ", ".join(f"[{op['name']}]({op['name']}.md)" for op in backward) + "\n")
    out.append("```{toctree}\n:hidden:\n:maxdepth: 1\n\n" + "\n".join(op["name"] for op in shown) + "\n```\n")
    return "\n".join(out)
