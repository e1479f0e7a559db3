# SPDX-License-Identifier: Apache-2.0
"""The reference of the C API, of quern.h, in reStructuredText: each function with its parameters, errors and examples."""

import os
import re

import header
from rst import heading, sentence

# What a parameter of this name is, in every function that has it, unless FUNCTION.NAME says otherwise.
PARAMETERS = {
    "ctx": "the context; NULL: the process-wide default. Borrowed.",
    "op": "the op. Borrowed; a plan keeps a reference of its own.",
    "plan": "the plan. Borrowed.",
    "n_in": "the number of inputs; the op's, exactly.",
    "in": "`n_in` tensors. The descriptors and their memory are borrowed for the call, and only read.",
    "n_out": "the number of outputs; the op's, exactly.",
    "out": "`n_out` tensors of the caller's. The descriptors are only read, their memory is written.",
    "call": "params, stream and workspace of the call; NULL: the defaults. Borrowed for the call.",
    "name": "a text that ends in 0, borrowed for the call.",
    "path": "a file's path, borrowed for the call.",
    "text": "memory of the caller, for a text that ends in 0.",
    "size": "the bytes of `text`.",
    "arg": "passed to the callback.",
    "quern_set_last_error.text": "a sentence that ends in 0, borrowed for the call.",
    "quern_ctx_create.options": "NULL: the defaults. Read during the call; its texts are copied.",
    "quern_ctx_create.ctx": "out: the new context, which the caller releases by quern_ctx_release.",
    "quern_ctx_release.ctx": "one reference is taken back. NULL is allowed.",
    "quern_ctx_cancel.ctx": "the context; NULL: the process-wide default. Borrowed.",
    "quern_ctx_configure_default.options": "NULL: the defaults. Read during the call; its texts are copied.",
    "quern_op_at.index": "0-based, below quern_op_count.",
    "quern_op_at.op": "out: a reference, which the caller releases by quern_op_release.",
    "quern_op_find.op": "out: a reference, which the caller releases by quern_op_release.",
    "quern_op_release.op": "one reference is taken back. NULL is allowed.",
    "quern_op_infer.out": "`n_out` structs, `size` set in each. Written. Where the dtype is the caller's choice it is read from here.",
    "quern_op_infer.in": "`n_in` tensors; `data` may be NULL, no data is read.",
    "quern_op_measure.out": "`n_out` structs, `size` set in each. Written.",
    "quern_op_measure.in": "`n_in` tensors. Of an op of QUERN_CLASS_DYNAMIC the values are read, else `data` may be NULL.",
    "quern_op_call_alloc.shapes": "NULL, or `n_out` structs, `size` set in each: dtypes of the caller's choice are read, shapes are written.",
    "quern_op_call_alloc.out": "out: `n_out` managed tensors, owned by the caller, who calls the deleter of each.",
    "quern_op_call_alloc.allocate": "makes the outputs; NULL: quern_managed_alloc.",
    "quern_op_workspace.bytes": "out: the largest useful number of bytes of quern_call.workspace.",
    "quern_op_prepare.plan": "out: the plan, which the caller releases by quern_plan_release.",
    "quern_op_prepare.in": "`n_in` tensors; their descriptors are read, `data` is not kept.",
    "quern_plan_run.in": "one pointer for each input: the address of its first item.",
    "quern_plan_run.out": "one pointer for each output: the address of its first item.",
    "quern_plan_release.plan": "NULL is allowed. Runs that other threads have begun must have ended.",
    "quern_op_register.def": "read during the call; names and structs are copied, `self` is kept.",
    "quern_op_compile.expression": "a text that ends in 0, borrowed for the call.",
    "quern_op_compile.op": "out: a reference, which the caller releases by quern_op_release.",
    "quern_spec_load_text.name": "what errors call the text; ends in 0, borrowed for the call.",
    "quern_spec_load_text.text": "the spec; borrowed for the call, it need not end in 0.",
    "quern_spec_load_text.size": "the bytes of `text`.",
    "quern_op_source.text": "out: a text that ends in 0, which the caller frees by quern_free.",
    "quern_scalar_store.number": "the number. Borrowed.",
    "quern_scalar_store.dtype": "what to write it as.",
    "quern_scalar_store.item": "out: as many bytes as the dtype has, of any alignment.",
    "quern_free.memory": "what a function of Quern has returned to be freed. NULL is allowed.",
    "quern_cache_list.each": "called for each entry on this thread: its key, borrowed for the call, bytes, time of the last use.",
    "quern_cache_clear.n_removed": "out: how many entries were removed. NULL is allowed.",
    "quern_kernels_register.table": "borrowed for the life of the process.",
    "quern_record.path": "the file to append to, borrowed for the call; NULL ends recording.",
}


class Missing(Exception):
    """The header or this page lacks what a function's reference needs."""


FUNCTIONS = set()  # of the header that a page is made of


def _rst(text):
    """A header's sentence as reStructuredText; names of functions are links, those of types are code."""
    return re.sub(r"(?<![`\w])(quern_[a-z_]+[a-z])(?![\w`*.(])",
                  lambda match: f":c:func:`{match[1]}`" if match[1] in FUNCTIONS else f"``{match[1]}``", sentence(text))


def uses_of(names, files):
    """{name: [file, ...]}: which examples and pages call each function. files: {label: text}"""
    return {name: [label for label, text in files.items() if re.search(r"\b" + name + r"\s*\(", text)] for name in names}


def functions(groups):
    """All functions, in the header's order."""
    return [item for group in groups for item in group["items"] if item["kind"] == "function"]


def _function(item, uses, out):
    out.append(f".. c:function:: {item['text']}\n")
    for paragraph in item["comment"]:
        out.append("   " + _rst(paragraph) + "\n")
    for parameter in item["parameters"]:
        sentence = PARAMETERS.get(item["name"] + "." + parameter) or PARAMETERS.get(parameter)
        if not sentence:
            raise Missing(f"{item['name']}: nothing is said of its parameter {parameter}")
        out.append(f"   :param {parameter}: {_rst(sentence)}")
    if item["parameters"]:
        out.append("")
    if not item["comment"]:
        raise Missing(f"quern.h: no comment on {item['name']}")
    if item["text"].startswith("quern_status"):
        out.append("   :returns: 0, or :doc:`a negative status <status>`\n")
    if uses:
        out.append("   Used in " + ", ".join(uses[:4]) + ".\n")


def page(path, files):
    """(text, functions without an example) of the reference. files: {reST of a reference to a page: text}"""
    groups = header.read(path)
    uses = uses_of([item["name"] for item in functions(groups)], files)
    FUNCTIONS.update(uses)
    out = heading("C API", "=") + ["Everything that ``<quern/quern.h>`` declares. Functions of single ops, ``quern_gelu(&x, &y, NULL)``, are in "
           "``<quern/ops.h>``: one for each of :doc:`the ops </ops/index>`.", ""]
    for group in groups:
        out += heading(group["title"], "-")
        out += [_rst(paragraph) + "\n" for paragraph in group["law"]]
        for item in group["items"]:
            if item["kind"] == "function":
                _function(item, uses[item["name"]], out)
            elif item["kind"] == "struct":
                out.append(f".. c:struct:: {item['name']}\n")
                out += ["   " + _rst(paragraph) + "\n" for paragraph in item["comment"]]
                for declaration, comment in item["members"]:
                    out.append("   ``" + declaration + "``" + ("\n      " + _rst(comment) if comment else "") + "\n")
            elif item["kind"] == "macro":
                name = re.match(r"#define (\w+(?:\([^)]*\))?)\s*(.*)", item["code"].replace("\\\n", " "))
                value = name[2].strip()
                out.append(f".. c:macro:: {name[1]}\n")
                if re.fullmatch(r"[-(\d)]+", value):
                    out.append(f"   ``{value.strip('()')}``. " + " ".join(_rst(p) for p in item["comment"]) + "\n")
                else:
                    out += ["   " + _rst(paragraph) + "\n" for paragraph in item["comment"]]
            else:
                out.append(f".. c:type:: {item['name']}\n" if item["kind"] == "type" else f"``{item['text']}``\n")
                if item["kind"] == "type":
                    out.append("   ``" + item["text"] + "``\n")
                out += ["   " + _rst(paragraph) + "\n" for paragraph in item["comment"]]
    return "\n".join(out), [name for name, where in uses.items() if not where]


def statuses(path):
    """[(name, number, meaning)]"""
    group = header.read(path)[0]
    out = []
    for item in group["items"]:
        match = item["kind"] == "macro" and re.match(r"#define (QUERN_E_\w+) \((-\d+)\)", item["code"])
        if match:
            out.append((match[1], int(match[2]), " ".join(item["comment"])))
    return out


def read_sources(root, folders):
    """{path: text} of the files in folders."""
    out = {}
    for folder in folders:
        for where, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if name.endswith((".c", ".cc", ".h", ".py", ".md")):
                    path = os.path.join(where, name)
                    with open(path, errors="replace") as file:
                        out[os.path.relpath(path, root)] = file.read()
    return out
