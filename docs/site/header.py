# SPDX-License-Identifier: Apache-2.0
"""Reads include/quern/quern.h, as data: groups with their laws, and the declarations of each with their comments."""

import re

_GROUP = re.compile(r"/\* ---- (.*?) -{2,}\s*\n?(.*?)\*/", re.S)


def _comment(text):
    """A comment's paragraphs, without stars."""
    lines = [re.sub(r"^\s*\* ?", "", line).rstrip() for line in text.split("\n")]
    return [re.sub(r"\s+", " ", part).strip() for part in re.split(r"\n\s*\n", "\n".join(lines)) if part.strip()]


def _declaration(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"\s+", " ", text).strip().rstrip(";").replace("QUERN_API ", "").strip()


def _members(body):
    """[(declaration, comment)] of a struct; a comment is behind its member, or on the lines before it."""
    out, before = [], []
    for match in re.finditer(r"/\*(.*?)\*/|([^;/]+(?:\{[^}]*\}[^;]*)?;)([ \t]*/\*(.*?)\*/)?", body, re.S):
        if match[1] is not None:
            before.append(" ".join(_comment(match[1])))
            continue
        out.append((_declaration(match[2]), " ".join(_comment(match[4])) if match[4] else " ".join(before)))
        before = []
    return out


def _kind(text):
    if text.startswith("#define"):
        return "macro"
    if re.match(r"(typedef )?(struct|enum)\b[^;(]*\{", text):
        return "enum" if "enum" in text.split("{")[0] else "struct"
    if text.startswith("typedef"):
        return "type"
    return "function"


def _name(kind, text):
    if kind == "macro":
        return re.match(r"#define (\w+)", text)[1]
    if kind in ("struct", "enum"):
        found = re.search(r"\}\s*(\w+)\s*;?\s*$", text) or re.match(r"enum (\w+)", text)
        return found[1] if found else "constants"
    if kind == "type":
        found = re.search(r"\(\*\s*(\w+)\)\s*\(", text) or re.search(r"(\w+)\s*\(", text) or re.search(r"(\w+)\s*;?$", text)
        return found[1]
    found = re.search(r"(\w+)\s*\(", text)
    if not found:
        raise ValueError("quern.h: not understood: " + text)
    return found[1]


def _parameters(text):
    """The names of a function's parameters."""
    inside = text[text.index("(") + 1:text.rindex(")")]
    inside = re.sub(r"\([^()]*\*\s*(\w+)\)\s*\([^()]*\)", r" \1", inside) # functions
    return [re.search(r"(\w+)\s*$", part)[1] for part in inside.split(",") if part.strip() and part.strip() != "void"]


def _items(text):
    """The declarations between two groups. A comment holds for the one that follows, and for those right behind it."""
    out, comment = [], []
    at = 0
    token = re.compile(r"\s+|/\*(?P<comment>.*?)\*/|(?P<line>#(?:\\\n|[^\n])*)|(?P<code>[^#/][^;{]*(?:\{(?:[^{}]|\{[^{}]*\})*\}[^;\n]*)?;?)", re.S)
    while at < len(text):
        match = token.match(text, at)
        at = match.end() if match else at + 1
        if not match:
            continue
        if match["comment"] is not None:
            comment = _comment(match["comment"])
            continue
        if not match["line"] and not match["code"]:
            if match[0].count("\n") > 1 and out and out[-1]["comment"] is comment:
                comment = []
            continue
        code = match["line"] or match["code"]
        if match["line"]:
            tail = re.search(r"/\*(.*?)\*/", code)
            own = _comment(tail[1]) if tail else comment
            code = re.sub(r"\s*/\*.*?\*/", "", code)
            if not re.match(r"#define QUERN_\w+[ (]", code) or re.match(r"#define QUERN_API\b", code):
                continue
        else:
            own = comment
        if re.fullmatch(r"(struct \w+|extern .*|\}?);?", code.strip()):
            continue
        kind = _kind(code.strip())
        item = {"kind": kind, "name": _name(kind, code.strip()), "comment": own, "code": code.strip()}
        if kind in ("struct",):
            item["members"] = _members(code[code.index("{") + 1:code.rindex("}")])
        elif kind == "function":
            item["text"] = _declaration(code)
            item["parameters"] = _parameters(item["text"])
        else:
            item["text"] = _declaration(code)
        out.append(item)
    return out


def read(path):
    """[{title, law: paragraphs, items}]"""
    with open(path) as file:
        text = file.read()
    text = text[:text.rindex("#ifdef __cplusplus")]
    text = re.sub(r"^static inline .*?^}\n", "", text, flags=re.S | re.M) # the macros of numbers stand for these
    groups, marks = [], list(_GROUP.finditer(text))
    for mark, after in zip(marks, marks[1:] + [None]):
        title = re.sub(r"\s*\(.*\)\s*$", "", mark[1].strip(" -"))
        groups.append({"title": title, "law": _comment(mark[2]), "items": _items(text[mark.end():after.start() if after else len(text)])})
    return groups
