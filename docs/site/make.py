# SPDX-License-Identifier: Apache-2.0
"""Builds the manual: puts its sources together in OUT/source, of docs/ and of what is made from the specs, the headers and calls of
a build, and runs Sphinx into OUT/html.

    PYTHONPATH=BUILD/python python3 docs/site/make.py --out OUT [--spec FILE]... [--ops LIST]

BUILD: a build of the library with its Python package. --spec: pages of the ops of these specs, too. --ops: only pages of these."""

import argparse
import json
import os
import shutil
import subprocess
import sys

import c_api
import cpp_api
import documents
import gallery
import links
import python_api
import quern
import status_examples
from documents import HERE, ROOT, write

C_HEADER, CPP_HEADER = (os.path.join(ROOT, "include/quern/quern" + end) for end in (".h", ".hpp"))


def run(words, **more):
    return subprocess.run(words, cwd=ROOT, check=True, text=True, **more)


def facts_of(specs):
    result = subprocess.run(["lua5.4", "docs/site/facts.lua"] + specs, cwd=ROOT, text=True, stdout=subprocess.PIPE)
    if result.returncode:
        sys.exit(result.returncode) # it has said what is wrong in a spec
    return json.loads(result.stdout)


def tree_of(out, specs):
    """A generated tree of all ops, for the kernels' text: (folder, manifest)."""
    folder = os.path.join(out, "tree")
    words = ["lua5.4", "build.lua", "generate", "--target", "c,cuda", "--dtypes", "bool,i64,f32", "--out", folder]
    for spec in specs:
        words += ["--spec", spec]
    run(words, stdout=subprocess.DEVNULL)
    with open(os.path.join(folder, "manifest.json")) as file:
        return folder, json.load(file)


def commands_page(facts):
    out = ["# Commands\n", "What `quern help COMMAND` and `quern-gen help COMMAND` print (in the sources: `lua5.4 build.lua help COMMAND`). "
           "`man quern` and `man quern-gen` are made from the same tables.\n"]
    for program in facts["programs"]:
        out.append(f"## {program['name']}\n\n{program['about'].capitalize()}.\n")
        for command in program["commands"]:
            out.append(f"### {program['name']} {command['name']}\n\n```text\n{command['help'].rstrip()}\n```\n")
        out += [f"**{title}.** {text}\n" for title, text in program["notes"]]
    return "\n".join(out)


def status_page():
    out = ["# Status codes\n", "What functions return, and the sentences that `quern_last_error` then has, of calls made by this build "
           "through Python (which raises the exception beside each).\n"]
    examples = status_examples.sentences()
    for name, number, meaning in c_api.statuses(C_HEADER):
        out.append(f"## {name}\n\n`{number}`: {meaning}.\n")
        for call, kind, sentence in examples.get(name, []):
            out.append(f"```python\n{call}\n```\n```text\n{kind}: {sentence}\n```\n")
    return "\n".join(out)


def ops_pages(source, facts, specs, out, wanted):
    """Writes the gallery; returns what it has: {"pages": number, ...}."""
    tree, manifest = tree_of(out, specs)
    accuracy = gallery.accuracy_table(os.path.join(ROOT, "ACCURACY.md"))
    by_name = {op["name"]: op for op in facts["ops"]}
    shown = [op for op in facts["ops"] if op["name"] in (wanted or by_name)]
    shown_names = {op["name"] for op in shown}
    uses = documents.calls([op["name"] for op in shown])
    counts = {"pages": 0, "plot": 0, "error": 0, "exact": 0, "none": 0, "above": 0, "example": 0}
    for op in shown:
        text, has = gallery.page(op, by_name, shown_names, uses[op["name"]], facts, manifest, tree, accuracy)
        write(os.path.join(source, "ops", op["name"] + ".md"), text)
        counts["pages"] += 1
        for key, number in has.items():
            counts[key] += number
        if has["above"]:
            print(f"{op['name']}: errors above the declared bound")
    write(os.path.join(source, "ops", "index.md"), gallery.index(shown, by_name))
    return counts


def names_page(facts):
    """Names of other libraries, with what an expression has instead."""
    rows = "".join(f"| `{name}` | {sentence.replace('|', chr(92) + '|')} |\n" for name, sentence in sorted(facts["foreign"].items()))
    return "# Names of other libraries\n\nWhat the error of an [expression](../expressions.md) says of each.\n\n| name | sentence |\n|---|---|\n" + rows


def references(source, facts):
    """Writes the references; returns the C functions that no example has."""
    files = {}
    for path, text in c_api.read_sources(ROOT, ["docs", "examples"]).items():
        if not path.startswith(("docs/site", "docs/internals")):
            page = path.startswith("docs/") and path.endswith(".md")
            files[":doc:`/{}`".format(path[5:-3]) if page else f"``{path}``"] = text
    text, unused = c_api.page(C_HEADER, files)
    pages = {"c_api.rst": text, "cpp_api.rst": cpp_api.page(CPP_HEADER), "python_api.rst": python_api.page(quern),
             "commands.md": commands_page(facts), "status.md": status_page(), "names.md": names_page(facts)}
    for name, text in pages.items():
        write(os.path.join(source, "reference", name), text)
    return unused


def made_pages(facts):
    return [f"ops/{op['name']}.md" for op in facts["ops"]] + ["ops/index.md"] + [
        "reference/" + name for name in ("c_api.rst", "cpp_api.rst", "python_api.rst", "commands.md", "status.md", "names.md")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--spec", action="append", default=[])
    parser.add_argument("--ops", default="")
    options = parser.parse_args()
    out = os.path.abspath(options.out)
    source = os.path.join(out, "source")
    shutil.rmtree(source, ignore_errors=True)
    specs = [os.path.abspath(spec) for spec in options.spec]
    facts = facts_of(specs)
    wanted = set(options.ops.split(",")) - {""}
    documents.copy(source, made_pages(dict(facts, ops=[op for op in facts["ops"] if op["name"] in wanted]) if wanted else facts))
    write(os.path.join(source, "facts.json"), json.dumps(facts))
    shutil.copyfile(os.path.join(HERE, "conf.py"), os.path.join(source, "conf.py"))
    shutil.copytree(os.path.join(HERE, "static"), os.path.join(source, "_static"))
    for spec in specs:
        for op in quern.load_spec(spec):
            quern.__dict__.setdefault(op.__name__, op)
    unused = references(source, facts)
    counts = ops_pages(source, facts, specs, out, wanted)
    run([sys.executable, "-m", "sphinx", "-q", "-j", "2", "-b", "html", source, os.path.join(out, "html")])
    broken = [] if wanted else links.broken(os.path.join(out, "html"))
    if broken:
        sys.exit("links that lead nowhere:\n" + "\n".join(broken))
    if unused:
        print("without an example: " + ", ".join(unused))
    print("{pages} pages of ops: {plot} with a plot, {example} with an example that was run; {error} with measured errors, {exact} where all "
          "measured results are exact, {none} without, {above} above the declared bound".format(**counts))
    print(os.path.join(out, "html", "index.html"))


if __name__ == "__main__":
    main()
