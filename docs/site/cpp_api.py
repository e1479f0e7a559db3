# SPDX-License-Identifier: Apache-2.0
"""The reference of the C++ API, of quern.hpp, in reStructuredText: the classes and functions with their comments."""

import re

from rst import heading, sentence

_SECTION = re.compile(r"^// ---- (.*?) -{2,}\n", re.M)
_IGNORED = re.compile(r"class \w+;|[^(]*\boperator=|~|friend ")


def _end_of_braces(text, at):
    """Behind the brace that closes the one at `at`."""
    depth = 0
    for k in range(at, len(text)):
        depth += (text[k] == "{") - (text[k] == "}")
        if depth == 0:
            return k + 1
    raise ValueError("quern.hpp: a brace is not closed: " + text[at:at + 60])


def _outside(text, at, sign):
    """Where the sign is next outside of parentheses; the text's length if nowhere."""
    depth = 0
    for k in range(at, len(text)):
        depth += (text[k] == "(") - (text[k] == ")")
        if depth == 0 and text[k] == sign:
            return k
    return len(text)


def _without_details(text):
    """The text without what is not public: namespace Detail, and preprocessor lines."""
    while match := re.search(r"^namespace Detail \{", text, re.M):
        text = text[:match.start()] + text[_end_of_braces(text, match.end() - 1):]
    return re.sub(r"^#.*\n|^ *// </?run time>\n|^// namespace Detail\n", "", text, flags=re.M)


def _declaration(text):
    """A function's or member's declaration, without its body and initialisers."""
    text = re.sub(r"\)(\s*const)?(\s*noexcept)? : [\w:]+\(.*", lambda m: ")" + (m[1] or "") + (m[2] or ""), text, flags=re.S)
    return re.sub(r"\s+", " ", text).strip().rstrip(";").strip().removesuffix(" = default")


def _items(text):
    """[(declarations, comment, body or None)]: a comment holds for the declarations behind it up to a blank line. body: of a class"""
    out, comment, at, is_open = [], [], 0, False
    while at < len(text):
        line = text[at:text.find("\n", at) % (len(text) + 1)]
        stripped = line.strip()
        if not stripped or stripped.startswith("//"):
            if stripped and is_open or not stripped:
                comment = []
            is_open = False
            if stripped:
                comment.append(stripped[2:].strip())
            at += len(line) + 1
            continue
        if stripped == "public:":
            at += len(line) + 1
            continue
        brace, semicolon = (_outside(text, at, sign) for sign in "{;")
        end = _end_of_braces(text, brace) if brace < semicolon else semicolon + 1
        if text[end:end + 1] == ";":
            end += 1
        head = text[at:min(brace, end)]
        is_class = re.match(r"\s*(template <.*?>\s*)?(class|struct) \w+[^(]*$", head, re.S)
        at = text.find("\n", end) + 1 or len(text)
        if _IGNORED.match(stripped):
            continue
        body = None if not is_class else text[brace + 1:_end_of_braces(text, brace) - 1] if brace < semicolon else ""
        if out and is_open and not is_class and out[-1][2] is None:
            out[-1][0].append(_declaration(head))
        else:
            out.append(([_declaration(head)], " ".join(comment), body))
        is_open = True
    return out


def _public(body):
    """The public part of a class."""
    return re.split(r"^ (?:private|protected):\n", body, flags=re.M)[0]


def read(path):
    """[(title, [(declarations, comment, members or None)])]: members have the same form."""
    with open(path) as file:
        text = file.read()
    inside = text[text.index("namespace quern {"):text.rindex("} // namespace quern")]
    parts = _SECTION.split(_without_details(inside))
    out = []
    for title, part in zip(parts[1::2], parts[2::2]):
        items = []
        for declarations, comment, body in _items(part):
            # Neither a member's definition nor a specialisation.
            if declarations[0].startswith("inline") and "::" in declarations[0].split("(")[0] or re.search(r"struct \w+<", declarations[0]):
                continue
            items.append((declarations, comment, None if body is None else _items(_public(body))))
        out.append((title, items))
    return out


def class_names(path):
    """The names of the public classes and functions."""
    return [re.match(r"(?:template <.*?> )?(?:\w+ )?(\w+)", declarations[0].replace("inline ", ""))[1] for _, items in read(path)
            for declarations, _, _ in items]


def _is_shown(declaration, owner):
    """Copies and moves are not."""
    return not re.match(rf"(const )?{owner}\((const )?{owner} &&?\w+\)", declaration)


def page(path):
    out = heading("C++ API", "=") + [
        "What ``<quern/quern.hpp>`` declares, for C++17 and later, in namespace ``quern``. ``<quern/ops.hpp>`` has a function for each of "
        ":doc:`the ops </ops/index>` as well: ``quern::clip(x, y, {{\"min\", 0}, {\"max\", 6}})``. A generated tree has the same, in a "
        "namespace of its own prefix. :doc:`/howto/cpp` is a program that uses it.", ""]
    with open(path) as file:
        head = re.search(r"/\*(.*?)\*/", file.read(), re.S)[1]
    paragraphs = re.split(r"\n \*\n", head)[1:]
    for paragraph in paragraphs:
        lines = [re.sub(r"^ \* ?", "", line) for line in paragraph.split("\n")]
        if lines[0].startswith("  "):
            out += [".. code-block:: cpp", ""] + ["   " + line[2:] for line in lines] + [""]
        elif "quern.hpp:" not in lines[0]:
            out += [sentence(" ".join(lines)), ""]
    for title, items in read(path):
        out += heading(title, "-")
        for declarations, comment, members in items:
            kind = "function" if members is None else "class"
            shown = [re.sub(r"^(inline|class|struct) ", "", re.sub(r"(>) (class|struct) ", r"\1 ", d)) for d in declarations]
            out += [f".. cpp:{kind}:: " + ("\n" + " " * (len(kind) + 12)).join(shown), ""]
            out += ["   " + sentence(comment), ""] if comment else []
            owner = re.match(r"(?:template <.*> )?(\w+)", shown[0])[1]
            for texts, words, _ in members or []:
                texts = [text for text in texts if _is_shown(text, owner)]
                if not texts:
                    continue
                member = "function" if "(" in texts[0] else "member"
                out += [f"   .. cpp:{member}:: " + ("\n" + " " * (len(member) + 15)).join(texts), ""]
                out += ["      " + sentence(words), ""] if words else []
    return "\n".join(out) + "\n"
