# SPDX-License-Identifier: Apache-2.0
"""Writes the package's type stub: stubs.pyi, then the dtypes and ops that the package has.

    python3 stubs.py FOLDER FILE     the package is FOLDER/quern, the stub is written to FILE"""
import inspect
import math
import sys
import textwrap
from pathlib import Path


def annotated_params(op):
    for name, value in op.params.items():
        if value is None:
            yield name + ": float"
        else:
            yield "{}: float = {}".format(name, repr(value) if math.isfinite(value) else "...")


def signature(op, inputs, result, out=None):
    words = ["self", *["{}: {}".format(name, type) for name, type in zip(op.inputs, inputs)], *annotated_params(op), "*"]
    words += ["out: " + out] if out else ["dtype: Optional[_DType] = None"]
    return "    @overload\n    def __call__({}, stream: Optional[int] = None) -> {}: ...\n".format(", ".join(words), result)


def signatures(op):
    """With `out` that is what comes back; else a new object like the first operand that is no number."""
    count = len(op.inputs)
    one = len(op.outputs) == 1
    text = signature(op, ["_Operand"] * count, "_Out", "_Out")
    for k in range(count):
        inputs = ["float"] * k + ["_T"] + ["_Operand"] * (count - k - 1)
        text += signature(op, inputs, "_T" if one else "tuple[{}]".format(", ".join(["_T"] * len(op.outputs))))
    return text


def docstring(text, indent):
    text = text.replace("\\", "\\\\").replace('"""', "'''").strip()
    if "\n" not in text:
        text = "\n".join(textwrap.wrap(text, 120))
    return textwrap.indent('"""' + text + '"""\n', indent)


def op_text(name, op):
    return "class _{0}(Op):\n{1}\n{2}\n{0}: _{0}\n".format(name, docstring(op.__doc__ or name, "    "), signatures(op))


def write(folder, file):
    sys.path.insert(0, folder)
    import quern
    text = (Path(__file__).parent / "stubs.pyi").read_text("utf-8")
    dtypes = sorted(name for name, value in vars(quern).items() if isinstance(value, getattr(quern, "dtype", ())))
    text += "\n" + "".join(name + ": dtype\n" for name in dtypes)
    for name in sorted(quern.ops()):
        op = getattr(quern, name, None)
        if isinstance(op, quern.Op) and op.inputs:
            text += "\n" + op_text(name, op)
    Path(file).write_text(text, "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(inspect.cleandoc(__doc__))
    write(*sys.argv[1:])
