# SPDX-License-Identifier: Apache-2.0
"""Writes the package's type stub: stubs.pyi, then the dtypes and ops that the package has.

    python3 stubs.py FOLDER FILE     the package is FOLDER/quern, the stub is written to FILE"""
import inspect
import sys
import textwrap
from pathlib import Path


_TYPES = {"axes": "_Axis", "axis": "_Axis", "keepdims": "builtins.bool", "initial": "Optional[float]"}  # of the roles of parameters


def signature(op, inputs, result, out=None):
    """One overload: the types of the inputs, and of `out` where it is given."""
    parameters = list(op.__signature__.parameters.values())[:len(op.inputs) + len(op.params)]
    words = ["self"]
    types = [_TYPES.get(op._roles.get(name), "float") for name in op.params]
    for parameter, type in zip(parameters, inputs + types):
        words.append("{}: {}{}".format(parameter.name, type, "" if parameter.default is parameter.empty else " = ..."))
    words += ["/"] if parameters[0].kind is parameters[0].POSITIONAL_ONLY else []
    words += ["*"] + (["out: " + out] if out else [])
    words += ["dtype: Optional[_DType] = None"] if op._has_axis or not out else []
    return "    @overload\n    def __call__({}, stream: Optional[int] = None) -> {}: ...\n".format(", ".join(words), result)


def signatures(op):
    """With `out` that is what comes back; else a new object like the first operand that is no number; of numbers alone a number."""
    count = len(op.inputs)
    results = "_T" if len(op.outputs) == 1 else "tuple[{}]".format(", ".join(["_T"] * len(op.outputs)))
    text = signature(op, ["_Operand"] * count, "_Out", "_Out")
    for k in range(count):
        text += signature(op, ["float"] * k + ["_T"] + ["_Operand"] * (count - k - 1), results)
    return text + signature(op, ["float"] * count, "Any")


def docstring(op):
    text = op.doc + ("\n\nFormula: " + op.formula if op.formula else "")
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return textwrap.indent('"""' + text + ('\n"""\n' if "\n" in text else '"""\n'), "    ", lambda line: line.strip())


def op_text(name, op):
    return "class _{0}(Op):\n{1}\n{2}\n{0}: _{0}\n".format(name, docstring(op), signatures(op))


def write(folder, file):
    sys.path.insert(0, folder)
    import quern
    text = (Path(__file__).parent / "stubs.pyi").read_text("utf-8")
    dtypes = sorted(name for name, value in vars(quern).items() if isinstance(value, quern.dtype))
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
