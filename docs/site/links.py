# SPDX-License-Identifier: Apache-2.0
"""The links of a site that lead nowhere: to a file or an anchor that is not there. Links to other sites are not followed."""

import os
from html.parser import HTMLParser
from urllib.parse import unquote


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.anchors = [], set()

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def pages(folder):
    """{path of a page: its links and anchors}"""
    out = {}
    for where, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".html"):
                path = os.path.join(where, name)
                with open(path) as file:
                    page = _Page()
                    page.feed(file.read())
                out[path] = page
    return out


def broken(folder):
    """["page: link", ...]"""
    known, out = pages(folder), []
    for path, page in sorted(known.items()):
        for link in page.links:
            target, _, anchor = link.partition("#")
            if ":" in target or target.startswith("//"):
                continue
            to = os.path.normpath(os.path.join(os.path.dirname(path), unquote(target.partition("?")[0]))) if target else path
            if not os.path.exists(to) or anchor and to in known and unquote(anchor) not in known[to].anchors:
                out.append(os.path.relpath(path, folder) + ": " + link)
    return out
