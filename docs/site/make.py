# SPDX-License-Identifier: Apache-2.0
"""Builds the manual: puts its sources together in OUT/source, of docs/ and of what is made from the specs, the header and calls of
this build, and runs Sphinx into OUT/html.

    python3 docs/site/make.py --build BUILD --out OUT [--spec FILE]... [--ops LIST]

BUILD: a build of the library with its Python package. --spec: pages of the ops of these specs, too. --ops: only pages of these."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Pages from outside of docs/: the file, the page.
OUTSIDE = {"ACCURACY.md": "ACCURACY.md", "CHANGELOG.md": "CHANGELOG.md", "python/README.md": "python.md"}


def run(words, **more):
    return subprocess.run(words, cwd=ROOT, check=True, text=True, **more)


def facts_of(specs):
    return json.loads(run(["lua5.4", "docs/site/facts.lua"] + specs, stdout=subprocess.PIPE).stdout)


def tree_of(out, specs):
    """A generated tree of all ops, for the kernels' text: (folder, manifest)."""
    folder = os.path.join(out, "tree")
    words = ["lua5.4", "build.lua", "generate", "--target", "c,cuda", "--dtypes", "bool,i64,f32", "--out", folder]
    for spec in specs:
        words += ["--spec", spec]
    run(words, stdout=subprocess.DEVNULL)
    with open(os.path.join(folder, "manifest.json")) as file:
        return folder, json.load(file)


# ---- Sources ----

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
        return f"[{match[1]}]({to})" if to else (match[1] if match[1].startswith("`") else f"{match[1]} (`{match[2]}`)")
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


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def copy_documents(source):
    known = documents()
    known["OPS.md"] = "ops/index.md"
    for path, page in known.items():
        if path == "OPS.md":
            continue
        to = os.path.join(source, page)
        if not path.endswith((".md", ".rst")):
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copyfile(os.path.join(ROOT, path), to)
            continue
        with open(os.path.join(ROOT, path)) as file:
            write(to, adapted(file.read(), (path, page), known))


def commands_page(facts):
    out = ["# Commands\n", "What `quern help COMMAND` and `quern-gen help COMMAND` print (in the sources: `lua5.4 build.lua help COMMAND`).\n"]
    for program in facts["programs"]:
        out.append(f"## {program['name']}\n\n{program['about'].capitalize()}.\n")
        for command in program["commands"]:
            out.append(f"### {program['name']} {command['name']}\n\n```text\n{command['help'].rstrip()}\n```\n")
    return "\n".join(out)


def status_page():
    import c_api
    import status_examples
    out = ["# Status codes\n", "What functions return, and the sentences that `quern_last_error` then has, of calls made by this build "
           "through Python (which raises the exception beside each).\n"]
    examples = status_examples.sentences()
    for name, number, meaning in c_api.statuses(os.path.join(ROOT, "include/quern/quern.h")):
        out.append(f"## {name}\n\n`{number}`: {meaning}.\n")
        for call, kind, sentence in examples.get(name, []):
            out.append(f"```python\n{call}\n```\n```text\n{kind}: {sentence}\n```\n")
    return "\n".join(out)


# ---- The whole ----

def gallery(source, facts, specs, out, wanted):
    import gallery as pages
    tree, manifest = tree_of(out, specs)
    accuracy = pages.accuracy_table(os.path.join(ROOT, "ACCURACY.md"))
    by_name = {op["name"]: op for op in facts["ops"]}
    counts = {"pages": 0, "plot": 0, "error": 0, "example": 0}
    for op in facts["ops"]:
        if wanted and op["name"] not in wanted:
            continue
        text, has = pages.page(op, by_name, facts, manifest, tree, accuracy)
        write(os.path.join(source, "ops", op["name"] + ".md"), text)
        counts["pages"] += 1
        for key, number in has.items():
            counts[key] += number
    if wanted:
        facts = dict(facts, ops=[op for op in facts["ops"] if op["name"] in wanted])
    write(os.path.join(source, "ops", "index.md"), pages.index(facts, by_name))
    return counts


def c_reference(source):
    import c_api
    files = {}
    for path, text in c_api.read_sources(ROOT, ["docs", "examples"]).items():
        if not path.startswith(("docs/site", "docs/internals")):
            page = path.startswith("docs/") and path.endswith(".md")
            files[":doc:`/{}`".format(path[5:-3]) if page else f"``{path}``"] = text
    with open(os.path.join(ROOT, "README.md")) as file:
        files["README"] = file.read()
    text, unused = c_api.page(os.path.join(ROOT, "include/quern/quern.h"), files)
    write(os.path.join(source, "reference", "c_api.rst"), text)
    return unused


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--spec", action="append", default=[])
    parser.add_argument("--ops", default="")
    options = parser.parse_args()
    out = os.path.abspath(options.out)
    sys.path.insert(0, os.path.join(os.path.abspath(options.build), "python"))
    sys.path.insert(0, HERE)
    source = os.path.join(out, "source")
    shutil.rmtree(source, ignore_errors=True)
    specs = [os.path.abspath(spec) for spec in options.spec]
    facts = facts_of(specs)
    copy_documents(source)
    write(os.path.join(source, "facts.json"), json.dumps(facts))
    shutil.copyfile(os.path.join(HERE, "conf.py"), os.path.join(source, "conf.py"))
    shutil.copytree(os.path.join(HERE, "static"), os.path.join(source, "_static"))
    import quern
    if specs:
        for spec in specs:
            for op in quern.load_spec(spec):
                quern.__dict__.setdefault(op.__name__, op)
    write(os.path.join(source, "reference", "commands.md"), commands_page(facts))
    write(os.path.join(source, "reference", "status.md"), status_page())
    import python_api
    write(os.path.join(source, "reference", "python_api.rst"), python_api.page(quern))
    unused = c_reference(source)
    counts = gallery(source, facts, specs, out, set(options.ops.split(",")) - {""})
    run([sys.executable, "-m", "sphinx", "-q", "-j", "2", "-b", "html", source, os.path.join(out, "html")])
    if unused:
        print("without an example: " + ", ".join(unused))
    print("{pages} pages of ops: {plot} with a plot, {error} with measured errors, {example} with an example that was run".format(**counts))
    print(os.path.join(out, "html", "index.html"))


if __name__ == "__main__":
    main()
