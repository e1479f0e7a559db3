# SPDX-License-Identifier: Apache-2.0
"""The documents of the sources that become pages of the manual."""

import os
import re
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Pages from outside of docs/: the file, the page.
OUTSIDE = {"ACCURACY.md": "ACCURACY.md", "CHANGELOG.md": "CHANGELOG.md", "python/README.md": "python.md"}


def _link(target, page, known):
    """A link of a document, seen from a page of the site: to another page, else None: a source file that the site does not have."""
    path, _, anchor = target.partition("#")
    if not path or "://" in target:
        return target
    whole = os.path.normpath(os.path.join(os.path.dirname(page[0]), path))
    if whole not in known:
        return None
    return os.path.relpath(known[whole], os.path.dirname(page[1]) or ".") + ("#" + anchor if anchor else "")


def adapted(text, page, known):
    """A document's text for the site. page: (its path in the sources, in the site); links to files that are no pages become names."""
    def replace(match):
        to = _link(match[2], page, known)
        if to:
            return f"[{match[1]}]({to})"
        path = os.path.normpath(os.path.join(os.path.dirname(page[0]), match[2]))
        return match[1] if match[1].strip("`") == path else f"{match[1]} (`{path}`)"
    parts = re.split(r"(^```.*?^```$|`[^`\n]+`)", text, flags=re.S | re.M)
    return "".join(part if k % 2 else re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", replace, part) for k, part in enumerate(parts))


def documents():
    """{path in the sources: page}: everything of docs/ but what builds the site, and some files beside it."""
    pages = dict(OUTSIDE)
    for where, folders, names in os.walk(os.path.join(ROOT, "docs")):
        folders[:] = [name for name in folders if name not in ("site", "__pycache__")]
        for name in names:
            path = os.path.relpath(os.path.join(where, name), ROOT)
            pages[path] = os.path.relpath(path, "docs")
    return pages


def calls(names):
    """{function or op: [(title, page), ...]}: the tutorials, examples and guides with a block of code that calls it."""
    out = {name: [] for name in names}
    for path, page in sorted(documents().items()):
        if not page.startswith(("tutorials/", "examples/", "howto/")):
            continue
        with open(os.path.join(ROOT, path)) as file:
            text = file.read()
        code = "\n".join(re.findall(r"^```\w+\n(.*?)^```$", text, re.S | re.M))
        for name in {re.sub("^quern_", "", called) for called in re.findall(r"\b([a-z]\w*)\(", code)} & set(names):
            out[name].append((text.split("\n", 1)[0].lstrip("# "), page))
    return out


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def copy(source, made):
    """Writes the pages into the folder of the site's sources. made: pages that make.py writes; they are linked as if docs/ had them."""
    pages = documents()
    known = dict(pages, **{"docs/" + page: page for page in made}, **{"OPS.md": "ops/index.md"})
    for path, page in pages.items():
        to = os.path.join(source, page)
        if not path.endswith((".md", ".rst")):
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copyfile(os.path.join(ROOT, path), to)
            continue
        with open(os.path.join(ROOT, path)) as file:
            write(to, adapted(file.read(), (path, page), known))
