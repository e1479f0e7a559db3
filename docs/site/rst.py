# SPDX-License-Identifier: Apache-2.0
"""Words as reStructuredText."""

import re


def escaped(text, signs="\\*|`"):
    """A text in which none of the signs, nor an underscore that ends a word, is markup."""
    return re.sub(rf"[{re.escape(signs)}]|_(?=\W|$)", r"\\\g<0>", text)


def sentence(text):
    """A sentence of a C comment, with `code` in it."""
    text = re.sub(r"`([^`]*)`", r"``\1``", escaped(text, "\\*|"))
    return re.sub(r"``([^`]*)``", lambda m: "``" + m[1].replace("\\", "") + "``", text)


def heading(text, sign):
    return [text, sign * len(text), ""]
