# SPDX-License-Identifier: Apache-2.0
"""Bodies of specs as MathML: a reader of the expression language and a writer of formulas."""

import re

_TOKEN = re.compile(r"""\s+|//[^\n]*|/\*.*?\*/|(?P<number>0[xX][0-9a-fA-F.]+(?:[pP][-+]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
    |(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?)|(?P<sign>&&|\|\||<<|>>|<=|>=|==|!=|[-+*/%<>=!~&|^?:;,(){}])""", re.X | re.S)
_TYPES = {"T", "f16", "bf16", "f32", "f64", "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "auto"}
_BINARY = [("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"), ("*", "/", "%")]
_LEVEL = {sign: level for level, signs in enumerate(_BINARY) for sign in signs}
_UNARY, _ATOM = len(_BINARY), len(_BINARY) + 1


class NotReadable(ValueError):
    """The body has what this reader does not know."""


def _tokens(text):
    at, out = 0, []
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            raise NotReadable(text[at:at + 20])
        at = match.end()
        if match.lastgroup:
            out.append((match.lastgroup, match.group()))
    out.append(("end", ""))
    return out


class _Reader:
    """Recursive descent. A node is a tuple: ("number", text), ("name", text), ("call", name, arguments), ("unary", sign, x),
    ("binary", sign, x, y), ("choose", condition, x, y), ("cast", type, x)."""

    def __init__(self, text):
        self.tokens, self.at = _tokens(text), 0

    def peek(self, ahead=0):
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][1]

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, sign):
        if self.peek() == sign:
            self.at += 1
            return True
        return False

    def expect(self, sign):
        if not self.accept(sign):
            raise NotReadable("expected " + sign + ", found " + self.peek())

    def statements(self):
        """[(name or None, node)]: assignments, and what is returned."""
        out = []
        while self.tokens[self.at][0] != "end":
            if self.accept(";"):
                continue
            name = None
            if self.peek() in _TYPES and self.tokens[self.at + 1][0] == "name":
                self.take()
            if self.tokens[self.at][0] == "name" and self.peek(1) == "=":
                name = self.take()[1]
                self.take()
            elif self.peek() == "return":
                self.take()
            out.append((name, self.expression()))
            if self.tokens[self.at][0] != "end":
                self.expect(";")
        return out

    def expression(self):
        condition = self.binary(0)
        if not self.accept("?"):
            return condition
        then = self.expression()
        self.expect(":")
        return ("choose", condition, then, self.expression())

    def binary(self, level):
        if level == len(_BINARY):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in _BINARY[level]:
            sign = self.take()[1]
            left = ("binary", sign, left, self.binary(level + 1))
        return left

    def unary(self):
        if self.peek() in ("-", "+", "!", "~"):
            return ("unary", self.take()[1], self.unary())
        if self.peek() == "(" and self.peek(1) in _TYPES and self.peek(2) == ")":
            self.take()
            to = self.take()[1]
            self.take()
            return ("cast", to, self.unary())
        return self.atom()

    def atom(self):
        kind, text = self.take()
        if kind == "number":
            return ("number", text)
        if text == "(":
            inside = self.expression()
            self.expect(")")
            return inside
        if kind != "name":
            raise NotReadable("unexpected " + text)
        if not self.accept("("):
            return ("name", text)
        arguments = []
        while not self.accept(")"):
            if self.tokens[self.at][0] == "name" and self.peek(1) == "=":
                self.at += 2
                self.expression()
            else:
                arguments.append(self.expression())
            self.accept(",")
        return ("call", text, arguments)


# ---- Writing ----

_GREEK = {name: chr(code) for name, code in (("alpha", 0x3B1), ("beta", 0x3B2), ("gamma", 0x3B3), ("lambda", 0x3BB), ("eps", 0x3B5),
                                             ("pi", 0x3C0), ("PI", 0x3C0), ("sigma", 0x3C3), ("mu", 0x3BC), ("threshold", 0x3B8))}
_CONSTANTS = {"INFINITY": "<mi>∞</mi>", "NAN": "<mtext>NaN</mtext>", "E": "<mi>e</mi>", "inf": "<mi>∞</mi>"}
_SIGNS = {"<=": "≤", ">=": "≥", "==": "=", "!=": "≠", "&&": "∧", "||": "∨", "*": "⁢", "-": "−", "<<": "≪", ">>": "≫", "<": "&lt;", ">": "&gt;",
          "&": "&amp;"}


def _row(*parts):
    return "<mrow>" + "".join(parts) + "</mrow>"


def _operator(text):
    return "<mo>" + text + "</mo>"


def _fenced(inside, opened="(", closed=")"):
    return _row(f'<mo fence="true">{opened}</mo>', inside, f'<mo fence="true">{closed}</mo>')


def _power(base, exponent):
    return f"<msup>{_row(base)}{_row(exponent)}</msup>"


def _number(text):
    if re.match("0[xX]", text):
        return "<mn>" + ("{:.6g}".format(float.fromhex(text)) if re.search("[.pP]", text) else str(int(text, 16))) + "</mn>"
    mantissa, e, exponent = text.lower().partition("e")
    if len(mantissa) > 9:
        mantissa = "{:.6g}".format(float(mantissa)) + "…"
    if not e:
        return "<mn>" + mantissa + "</mn>"
    return _row("<mn>" + mantissa + "</mn>", _operator("·"), _power("<mn>10</mn>", "<mn>" + exponent.replace("-", "−") + "</mn>"))


def _name(text):
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text in _GREEK:
        return "<mi>" + _GREEK[text] + "</mi>"
    match = re.fullmatch(r"([A-Za-z])(\d+)", text)
    if match:
        return f"<msub><mi>{match[1]}</mi><mn>{match[2]}</mn></msub>"
    return "<mi>" + text.replace("_", " ") + "</mi>"


def _plain(name):
    """A function by its name, f(x, y)."""
    def write(*arguments):
        inside = _operator(",").join(_text(a, 0) for a in arguments)
        return _row(f"<mi mathvariant=\"normal\">{name}</mi>", _operator("⁡"), _fenced(inside))
    return write


def _over(a, b):
    return f"<mfrac>{_row(a)}{_row(b)}</mfrac>"


_locals = set() # of the body that is being written


def _exp(base):
    """A power; by its name where the exponent is a choice, which would be too small to be read, or a local is called e."""
    def write(x):
        if base == "<mi>e</mi>" and (x[0] == "choose" or "e" in _locals):
            return _plain("exp")(x)
        return _power(base, _text(x, 0))
    return write


def _meets_word(node, side):
    """Whether a factor begins (side 1) or ends (side 2) with a name of several letters: beside one a product needs its sign."""
    while node[0] in ("binary", "cast", "unary"):
        if node[0] == "binary" and node[1] != "*":
            return False
        node = node[1 + side] if node[0] == "binary" else node[2]
    return node[0] == "name" and len(_name(node[1])) > len("<mi>x</mi>") and "<msub>" not in _name(node[1]) or node[0] == "call" and side == 1


def _log(base):
    def write(x):
        head = f"<msub><mi>log</mi><mn>{base}</mn></msub>" if base else "<mi>ln</mi>"
        return _row(head, _operator("⁡"), _text(x, _UNARY))
    return write


def _sum_of_squares(*arguments):
    squares = _operator("+").join(_power(_text(a, _ATOM), "<mn>2</mn>") for a in arguments)
    return "<msqrt>" + squares + "</msqrt>"


def _one_minus_exp(x):
    return _over("<mn>1</mn>", _row("<mn>1</mn>", _operator("+"), _power("<mi>e</mi>", _row(_operator("−"), _text(x, _UNARY)))))


_FUNCTIONS = {
    "exp": _exp("<mi>e</mi>"), "exp2": _exp("<mn>2</mn>"), "exp10": _exp("<mn>10</mn>"), "exp_any": _exp("<mi>e</mi>"),
    "log": _log(None), "log2": _log(2), "log10": _log(10),
    "log1p": lambda x: _row("<mi>ln</mi>", _operator("⁡"), _fenced(_row("<mn>1</mn>", _operator("+"), _text(x, 8)))),
    "expm1": lambda x: _row(_power("<mi>e</mi>", _text(x, 0)), _operator("−"), "<mn>1</mn>"),
    "sqrt": lambda x: "<msqrt>" + _text(x, 0) + "</msqrt>", "cbrt": lambda x: f"<mroot>{_row(_text(x, 0))}<mn>3</mn></mroot>",
    "rsqrt": lambda x: _over("<mn>1</mn>", "<msqrt>" + _text(x, 0) + "</msqrt>"),
    "abs": lambda x: _fenced(_text(x, 0), "|", "|"), "floor": lambda x: _fenced(_text(x, 0), "⌊", "⌋"),
    "ceil": lambda x: _fenced(_text(x, 0), "⌈", "⌉"), "square": lambda x: _power(_text(x, _ATOM), "<mn>2</mn>"),
    "pow": lambda x, y: _power(_text(x, _ATOM), _text(y, 0)), "hypot": _sum_of_squares,
    "fma": lambda x, y, z: _text(("binary", "+", ("binary", "*", x, y), z), 0), "sigmoid": _one_minus_exp,
    "gelu": lambda x: _row(_text(x, 9), _operator("⁢"), "<mi mathvariant=\"normal\">Φ</mi>", _operator("⁡"), _fenced(_text(x, 0))),
    "logaddexp": lambda x, y: _row("<mi>ln</mi>", _operator("⁡"), _fenced(_row(_power("<mi>e</mi>", _text(x, 0)), _operator("+"),
                                                                              _power("<mi>e</mi>", _text(y, 0))))),
    "maximum": _plain("max"), "minimum": _plain("min"), "reciprocal": lambda x: _over("<mn>1</mn>", _text(x, 0)),
    "sum": lambda x: _row(_operator("∑"), _text(x, 9)),
}
_NEEDS_FENCE = {"expm1", "fma"}  # their formulas are sums


def _choose(node):
    rows = []
    while node[0] == "choose":
        rows.append((node[2], node[1]))
        node = node[3]
    text = "".join(f"<mtr><mtd>{_row(_text(value, 0))}</mtd><mtd>{_row('<mtext>if&#xa0;</mtext>', _text(condition, 0))}</mtd></mtr>"
                   for value, condition in rows)
    text += f"<mtr><mtd>{_row(_text(node, 0))}</mtd><mtd><mtext>else</mtext></mtd></mtr>"
    return _row('<mo fence="true">{</mo>', f'<mtable columnalign="left left">{text}</mtable>')


def _text(node, level):
    """MathML of a node, within parentheses where it binds less than the level."""
    kind = node[0]
    if kind == "number":
        return _number(node[1])
    if kind == "name":
        return _name(node[1])
    if kind == "cast":
        return _text(node[2], level)
    if kind == "choose":
        return _choose(node) if level == 0 else _fenced(_choose(node))
    if kind == "call":
        writer = _FUNCTIONS.get(node[1])
        try:
            text = writer(*node[2]) if writer else _plain(node[1].replace("_", " "))(*node[2])
        except TypeError:
            text = _plain(node[1].replace("_", " "))(*node[2])
        return _fenced(text) if node[1] in _NEEDS_FENCE and level > _LEVEL["+"] else text
    if kind == "unary":
        text = _row(_operator({"-": "−", "!": "¬", "~": "~", "+": "+"}[node[1]]), _text(node[2], _UNARY))
        return _fenced(text) if level > _LEVEL["+"] else text
    sign, x, y = node[1:]
    if sign == "*" and x[:2] == ("unary", "-"):
        return _text(("unary", "-", ("binary", "*", x[2], y)), level)
    if sign == "+" and y[:2] == ("unary", "-"):
        return _text(("binary", "-", x, y[2]), level)
    if sign == "/":
        return _over(_text(x, 0), _text(y, 0))
    own = _LEVEL[sign]
    if sign == "*":
        if x == y and x[0] == "name":
            return _power(_text(x, _ATOM), "<mn>2</mn>")
        first, second = _text(x, own), _text(y, own + 1)
        between = "·" if _meets_word(x, 2) or _meets_word(y, 1) or second.startswith("<mn>") or second.startswith("<mrow><mn>") else "⁢"
        text = _row(first, _operator(between), second)
    else:
        text = _row(_text(x, own), _operator(_SIGNS.get(sign, sign)), _text(y, own + 1))
    return _fenced(text) if level > own else text


def mathml(body, result):
    """The <math> elements of a body, one a statement; result: the name of what is returned. Raises NotReadable."""
    out, statements = [], _Reader(body).statements()
    _locals.clear()
    _locals.update(name for name, _ in statements if name)
    for name, node in statements:
        left = _row(_name(name or result), _operator("="))
        out.append(f'<math display="block">{_row(left, _text(node, 0))}</math>')
    return out
