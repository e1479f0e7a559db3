# SPDX-License-Identifier: Apache-2.0
"""The words of the manual's prose, one a line, for a spelling checker: code, links and names are left out.

    python3 docs/site/words.py | aspell list --lang=en --ignore-case --personal=FILE"""

import os
import re

from documents import ROOT, documents


def prose(text):
    """A Markdown text without code, links' targets, HTML and formulas."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", " ", text, flags=re.S | re.M)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)|https?://\S+|<[^>\n]+>", " ", text)
    # Names, such as quern_op, f32, NumPy, O(n) and file.c, are no words of a language.
    text = re.sub(r"\S*[_/@=\\]\S*|\S*\w\.\w\S*|\S*\d\S*|\b\w*[a-z][A-Z]\w*|\b[A-Z]{2,}\w*", " ", text)
    return re.findall(r"[A-Za-z]+(?:'[a-z]+)?", text)


def pages():
    """{path: its words}: pages, README and what Python's users read."""
    out = {}
    for path in sorted(documents()) + ["README.md", "OPS.md", "CONTRIBUTING.md", "HACKING.md"]:
        if path.endswith(".md") and path != "ACCURACY.md":
            with open(os.path.join(ROOT, path)) as file:
                out[path] = prose(file.read())
    return out


if __name__ == "__main__":
    print("\n".join(sorted({word for words in pages().values() for word in words})))
