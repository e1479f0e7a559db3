# SPDX-License-Identifier: Apache-2.0
"""How an op is called in each language, from its facts."""


def python_name(op):
    """How Python names it: ops of specs are not in the module."""
    return 'quern.op("{}")'.format(op["name"]) if "." in op["name"] else "quern." + op["name"]


def _number(value, none, infinity):
    if value == "":
        return none
    return str(value).replace("inf", infinity) if isinstance(value, str) else str(value)


def rows(op):
    """[(language, code)]. Of parameters that a kind of op has, C++ and expressions are given the axes alone."""
    inputs, outputs = [i["name"] for i in op["inputs"]], [o["name"] for o in op["outputs"]]
    own = [param for param in op["params"] if not param["role"]]
    has_axes = any(param["role"] in ("axes", "axis") for param in op["params"])
    takes_all = op["takes_all"] and any(param["role"] == "axes" for param in op["params"])
    c = "quern_{}({}, NULL);".format(op["c_name"], ", ".join("&" + name for name in inputs + outputs))
    params = ['{"axes", quern::Axes{-1}}'] if has_axes else []
    params += ['{{"{}", {}}}'.format(p["name"], _number(p["value"], "0", "INFINITY")) for p in own]
    cpp = "quern::{}({}{});".format(op["c_name"], ", ".join(inputs + outputs), ", {" + ", ".join(params) + "}" if params else "")
    words = (["axis=None" if takes_all else "axis=-1"] if has_axes else [])
    for p in op["params"]:
        if p["role"] == "keepdims":
            words.append("keepdims=False")
        elif p["role"] not in ("axes", "axis"):
            words.append("{}={}".format(p["name"], _number(p["value"], "None", "inf")))
    out = [("C", c), ("C++", cpp), ("Python", "{}({})".format(python_name(op), ", ".join(inputs + words)))]
    if op["inputs"] and op["kind"] not in ("compact", "adjoint", "cast") and (op["kind"] != "scan" or len(outputs) == 1):
        text = ", ".join(inputs + [p["name"] for p in own] + ["axis=-1"] * has_axes)
        declared = "".join("param {}; ".format(p["name"]) for p in own)
        result = next(name for name in ("y", "z", "out", "result") if name not in inputs)
        out.append(("expression", "{}{} = {}{}({})".format(declared, result, op["name"], "." + outputs[0] if len(outputs) > 1 else "", text)))
    out.append(("program", "quern run {} {}".format(op["name"], " ".join(f"{name}={name}.npy" for name in inputs + outputs))))
    return out
