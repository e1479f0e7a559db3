# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for arrays that note what is done to them, and the expression that is made of the notes."""

import keyword
import os
import re
import sys

from . import _quern
from ._names import ours

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_LONGEST_TEXT = 60000

# Words of expressions that no input can be called; further ones are tried when the text is compiled.
_RESERVED = frozenset("""param auto and or not grad axis keepdims pi inf nan e E PI INFINITY NAN true false bool i8 i16 i32 i64 u8
u16 u32 u64 f16 bf16 f32 f64 T sizeof return if else for while int float double char long short void const static""".split())


class FuseError(TypeError):
    """A function cannot be traced; filename and lineno are where."""

    filename = lineno = None


class FuseAttributeError(FuseError, AttributeError):
    """The same for an attribute, so that hasattr says no."""


def _place():
    """(file name, line, its text) of the code outside this package that runs."""
    frame = sys._getframe(1)
    while frame is not None and os.path.dirname(os.path.abspath(frame.f_code.co_filename)) == _FOLDER:
        frame = frame.f_back
    while frame is not None and frame.f_back is not None and "{0}numpy{0}".format(os.sep) in frame.f_code.co_filename:
        frame = frame.f_back
    if frame is None:
        return "?", 0, ""
    import linecache
    name, line = frame.f_code.co_filename, frame.f_lineno
    return name, line, linecache.getline(name, line, frame.f_globals).strip()


def refuse_foreign(trace, error):
    """The FuseError for what a function that is not made of ops has said of a stand-in."""
    frames, at = [], error.__traceback__
    while at is not None:
        frames.append((at.tb_frame.f_code.co_filename, at.tb_lineno))
        at = at.tb_next
    while len(frames) > 1 and os.path.dirname(os.path.abspath(frames[0][0])) == _FOLDER:
        del frames[0]
    return _refuse(trace, "this function is none of operators and ops ({})".format(error),
                   "use these, or call it before or behind the fused function", place=frames[0])


def _refuse(trace, what, write, kind=FuseError, place=None):
    import linecache
    name, line, source = place + (linecache.getline(*place).strip(),) if place else _place()
    error = kind("{}: {}:{}: {}{}; {}".format(trace.name, name, line, "`{}`: ".format(source) if source else "", what, write))
    error.filename, error.lineno = name, line
    return error


# ---- Nodes ----


class Node:
    """A value of the expression: text, in which {0}, {1}, ... are its arguments; a name or a literal has none."""

    __slots__ = ("text", "args")

    def __init__(self, text, *args):
        self.text, self.args = text, args


def _literal(value):
    """A number as the language writes it."""
    if isinstance(value, bool):
        return "((bool){})".format(int(value))
    if isinstance(value, int) and -2**63 <= value < 2**64:
        text = "{:#x}".format(value) if value >= 2**63 else str(value)
    else:
        value = float(value)
        text = repr(value)
        if value != value or value in (float("inf"), -float("inf")):
            text = "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"
    return "({})".format(text) if text.startswith("-") else text


def _has_auto():
    """Whether this library's texts have `auto t = ...;`."""
    global _auto
    if _auto is None:
        try:
            _quern.compile("auto t = x; y = t * t")
            _auto = True
        except SyntaxError:
            _auto = False
    return _auto


_auto = None


def _text_of(nodes, local, taken):
    """The texts of some nodes. local: makes a local of a node that is used more than once; None: it is written as often."""
    uses, texts = {}, {}
    stack = [node for node in nodes]
    while stack:
        node = stack.pop()
        uses[node] = uses.get(node, 0) + 1
        if uses[node] == 1:
            stack.extend(node.args)
    for root in nodes:  # without recursion: long sums are deep
        stack = [root]
        while stack:
            node = stack[-1]
            missing = [arg for arg in node.args if arg not in texts]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if node not in texts:
                parts = [texts[arg] for arg in node.args]
                if not node.text.startswith("("):  # a call: its arguments need no parentheses
                    parts = [_bare(part) for part in parts]
                text = node.text.format(*parts) if parts else node.text
                if node.args and uses[node] > 1 and local is not None:
                    text = local(text)
                if len(text) > _LONGEST_TEXT:
                    raise taken("its expression is longer than {} characters".format(_LONGEST_TEXT),
                                "cut it into several functions")
                texts[node] = text
    return [texts[node] for node in nodes]


# ---- The trace ----


class Trace:
    """One run of a function with stand-ins."""

    def __init__(self, name):
        self.name = name
        self.asks = False  # shapes or dtypes were read
        self.params = []   # names of numbers that are parameters of ops
        self.names = set()

    def argument(self, name, value):
        """The stand-in for an argument."""
        usable = name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and not keyword.iskeyword(name) else "x"
        while usable in _RESERVED or usable in self.names:
            usable += "_"
        self.names.add(usable)
        return Traced(self, Node(usable), of=value)

    def finish(self, result):
        """The expression's text, and what makes the function's result of the op's: None: it is that."""
        many = isinstance(result, (tuple, list))
        parts = list(result) if many else [result]
        outputs = [part for part in parts if isinstance(part, Traced)]
        for part in parts:
            if not isinstance(part, (Traced, int, float, type(None))):
                raise FuseError("{}: it returns {!r}; a fused function returns arrays, or a tuple of them".format(
                    self.name, type(part)))
        if not outputs:
            raise FuseError("{}: its result does not depend on an array among its arguments; return one that does".format(
                self.name))
        lines, names = ["param {};".format(name) for name in self.params], []

        def new_name(stem):
            name, k = stem, 0
            while name in self.names:
                name, k = "{}{}".format(stem, k), k + 1
            self.names.add(name)
            return name

        def local(text):
            name = new_name("t")
            lines.append("auto {} = {};".format(name, _bare(text)))
            return name

        texts = _text_of([part._node for part in outputs], local if _has_auto() else None,
                         lambda what, write: FuseError("{}: {}; {}".format(self.name, what, write)))
        for k, text in enumerate(texts):
            names.append(new_name("out" if len(texts) == 1 else "out{}".format(k)))
            lines.append("{} = {};".format(names[-1], _bare(text)))
        prefix = self.name + ": " if re.fullmatch(r"[a-z][a-z0-9_]*", self.name) and self.name not in _RESERVED else ""
        return prefix + " ".join(lines).rstrip(";"), _rebuilder(result, parts) if many else None

    def compile(self, text):
        try:
            return _quern.compile(text)
        except (SyntaxError, NameError, NotImplementedError, ValueError) as error:
            said = error.msg if isinstance(error, SyntaxError) else error
            raise FuseError("{}: its expression is refused: {} (in: {})".format(self.name, said, text)) from error


def _bare(text):
    """Without the outermost pair of parentheses."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for k, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and k < len(text) - 1:
            return text
    return text[1:-1]


def _rebuilder(result, parts):
    is_traced, make = [isinstance(part, Traced) for part in parts], list if isinstance(result, list) else tuple

    def rebuild(results):
        given = iter(results if sum(is_traced) > 1 else (results,))
        return make(next(given) if traced else part for traced, part in zip(is_traced, parts))
    return rebuild


# ---- Stand-ins ----

_IF = ("a condition on an array's values: the kernel computes all elements at once",
       "write quern.where(condition, a, b), and & | ~ for and, or, not and for chained comparisons")
_NUMBER = ("a number of Python's is wanted, but the values are not known while a function is traced",
           "write quern.NAME in place of math.NAME; a count or exponent is named by fuse(static_argnames=...)")
_INDEX = ("indexing is no part of an expression",
          "index the argument before the call; of elements by a mask write quern.where(mask, a, b)")
_WRITE = ("writing into elements is no part of an expression", "write x = quern.where(mask, a, b), and return it")


def _binary(text):
    """x + y, y + x and x += y of an operator."""
    def forward(self, other):
        return _operation(self._trace, text, (self, other))

    def backward(self, other):
        return _operation(self._trace, text, (other, self))

    def in_place(self, other):
        return self._in_place(_operation(self._trace, text, (self, other)))
    return forward, backward, in_place


def _comparison(text):
    return _binary(text)[0]


def _unary(text):
    return lambda self: _operation(self._trace, text, (self,))


class Traced:
    """A stand-in for an array, or for a number, of a function that is traced."""

    __slots__ = ("_trace", "_node", "_of", "_is_argument", "_reduced")
    __array_priority__ = 1000

    def __init__(self, trace, node, of=None, reduced=None):
        self._trace, self._node, self._of, self._is_argument, self._reduced = trace, node, of, of is not None, reduced

    def _is_number(self):
        return type(self._of) in (int, float)

    def __repr__(self):
        return "<traced {}>".format(self._node.text if not self._node.args else "value")

    # What is known of an argument.

    def _fact(self, name):
        if not self._is_argument or not hasattr(self._of, name):
            raise _refuse(self._trace, "the {} of a value in between is not known while a function is traced".format(name),
                          "take it of an argument that is an array", FuseAttributeError)
        self._trace.asks = True
        return getattr(self._of, name)

    @property
    def shape(self):
        return tuple(self._fact("shape"))

    @property
    def ndim(self):
        return len(self._fact("shape"))

    @property
    def dtype(self):
        return self._fact("dtype")

    @property
    def size(self):
        return self._fact("size")

    def __len__(self):
        return self.shape[0]

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        function = _function(name)
        if self._is_argument and not _is_operand(self._of):
            raise _refuse(self._trace, "an argument of type {}".format(type(self._of).__name__),
                          "give what it has as arguments, or, where that never changes, fuse(static_argnames={!r})".format(
                              self._node.text), FuseAttributeError)
        if function is None:
            raise _refuse(self._trace, "arrays have no .{} in a function that is traced".format(name),
                          "use operators and quern's ops, and make views before the call", FuseAttributeError)
        return lambda *args, **kwargs: _called(self._trace, function, (self,) + args, kwargs)

    def astype(self, dtype, **unused):
        """A cast."""
        return Traced(self._trace, Node("((" + _quern.dtype(dtype).short_name + "){0})", self._node), reduced=self._reduced)

    # What cannot be traced.

    def __bool__(self):
        raise _refuse(self._trace, *_IF)

    def __index__(self):
        raise _refuse(self._trace, *_NUMBER)

    __int__ = __float__ = __complex__ = __index__

    def __getitem__(self, index):
        raise _refuse(self._trace, *_INDEX)

    def __setitem__(self, index, value):
        raise _refuse(self._trace, *_WRITE)

    def __iter__(self):
        raise _refuse(self._trace, "a loop over elements", "write what is done to all of them, as one operation")

    def __contains__(self, value):
        raise _refuse(self._trace, "a search for a value", "write quern.any(x == value)")

    def __array__(self, *args, **kwargs):
        raise _refuse(self._trace, "an array of NumPy's is wanted, but the values are not known while a function is traced",
                      "leave asarray out, and use quern's ops")

    def __matmul__(self, other):
        raise _refuse(self._trace, "matrix products are no part of an expression", "multiply before or behind the call")

    __rmatmul__ = __imatmul__ = __matmul__

    # Functions of other libraries.

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return _foreign_function(self._trace, ufunc.__name__, "numpy." + ufunc.__name__, inputs, kwargs, method == "__call__")

    def __array_function__(self, function, types, args, kwargs):
        return _foreign_function(self._trace, function.__name__, "numpy." + function.__name__, args, kwargs)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        trace = next(x._trace for x in args if isinstance(x, Traced))
        name = getattr(function, "__name__", "?").strip("_")
        return _foreign_function(trace, name, "torch." + name, args, kwargs or {})

    # Operators.

    __add__, __radd__, __iadd__ = _binary("({0} + {1})")
    __sub__, __rsub__, __isub__ = _binary("({0} - {1})")
    __mul__, __rmul__, __imul__ = _binary("({0} * {1})")
    __truediv__, __rtruediv__, __itruediv__ = _binary("({0} / {1})")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary("floor_divide({0}, {1})")
    __mod__, __rmod__, __imod__ = _binary("remainder({0}, {1})")
    __pow__, __rpow__, __ipow__ = _binary("pow({0}, {1})")
    __and__, __rand__, __iand__ = _binary("bitwise_and({0}, {1})")
    __or__, __ror__, __ior__ = _binary("bitwise_or({0}, {1})")
    __xor__, __rxor__, __ixor__ = _binary("bitwise_xor({0}, {1})")
    __lshift__, __rlshift__, __ilshift__ = _binary("bitwise_left_shift({0}, {1})")
    __rshift__, __rrshift__, __irshift__ = _binary("bitwise_right_shift({0}, {1})")
    __lt__, __le__ = _comparison("({0} < {1})"), _comparison("({0} <= {1})")
    __gt__, __ge__ = _comparison("({0} > {1})"), _comparison("({0} >= {1})")
    __eq__, __ne__ = _comparison("({0} == {1})"), _comparison("({0} != {1})")
    __neg__, __abs__, __invert__ = _unary("(-{0})"), _unary("abs({0})"), _unary("bitwise_invert({0})")

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __round__(self, digits=None):
        if digits:
            raise _refuse(self._trace, "rounding to digits", "write quern.round(x * 10**n) / 10**n")
        return _called(self._trace, _function("round"), (self,), {})

    def __pos__(self):
        return self

    def _in_place(self, made):
        """What += and the like do: to a value in between all names of it see it; an argument is the caller's."""
        if self._is_argument:
            raise _refuse(self._trace, "this would write into the caller's array", "write x = x + y, and return it")
        self._node, self._reduced = made._node, made._reduced
        return self


def _is_operand(x):
    """Whether it may be an operand of a call: an array, a number, a list."""
    if isinstance(x, (int, float, list, tuple)) or any(hasattr(x, name) for name in ("__dlpack__", "__array__", "shape")):
        return True
    try:
        memoryview(x)
    except (TypeError, BufferError):
        return False
    return True


def _operand(trace, x):
    """The node of an operand."""
    if isinstance(x, Traced):
        return x._node
    if isinstance(x, (bool, int, float)) and not hasattr(x, "dtype"):
        return Node(_literal(x))
    if hasattr(x, "dtype") and hasattr(x, "item") and getattr(x, "shape", None) == ():  # a scalar of NumPy's has its dtype
        return Node("(({}){})".format(_quern.dtype(x.dtype).short_name, _literal(x.item())))
    if isinstance(x, (list, tuple)) or hasattr(x, "shape") or hasattr(x, "__dlpack__"):
        raise _refuse(trace, "an array from outside the function would be part of the kernel", "make it an argument")
    raise _refuse(trace, "an operand of type {}".format(type(x).__name__), "give arrays and numbers")


def _operation(trace, text, operands):
    """A new value of some operands."""
    known = [x for x in operands if isinstance(x, Traced) and not x._is_number()]
    reduced = {x._reduced for x in known} - {"all"}
    if len(reduced) > 1:
        raise _refuse(trace, "a value that was reduced over an axis beside one that was not, or over another",
                      "write keepdims=True in the reduction, so that its shape fits whatever the rank")
    common = reduced.pop() if reduced else "all" if known else None
    return Traced(trace, Node(text, *[_operand(trace, x) for x in operands]), reduced=common)


# ---- Calls ----

# PyTorch's functions over axes that mean what Quern's do.
_TORCH = frozenset("sum mean prod amax amin all any softmax log_softmax logsumexp".split())


def _function(name):
    """quern.NAME, of that name or of what other libraries call it, where that is an op or made of ops; None."""
    quern = sys.modules["quern"]
    name = name if name in quern.__dict__ else ours(name)
    found = quern.__dict__.get(name)
    return found if isinstance(found, _quern.Op) or name in ("clip", "astype") else None


def _called(trace, function, args, kwargs):
    try:
        return function(*args, **kwargs)
    except FuseError:
        raise
    except (TypeError, ValueError) as error:
        raise _refuse(trace, str(error), "see help(quern.{})".format(function.__name__)) from error


def _foreign_function(trace, name, shown, args, kwargs, is_call=True):
    function = _function(name) if is_call else None
    if shown.startswith("torch") and getattr(function, "_has_axis", False) and name not in _TORCH:
        function = None  # var, max and others have other defaults or results there
    kwargs = {key: value for key, value in kwargs.items() if value is not None and "NoValue" not in type(value).__name__}
    if "dim" in kwargs:
        kwargs["axis"] = kwargs.pop("dim")
    if "keepdim" in kwargs:
        kwargs["keepdims"] = kwargs.pop("keepdim")
    if function is None:
        raise _refuse(trace, "{} is not known to Quern".format(shown), "use operators and quern's ops (quern.ops() names them)")
    if name == "clip" and "a_min" in kwargs or "a_max" in kwargs:
        kwargs = {{"a_min": "min", "a_max": "max"}.get(key, key): value for key, value in kwargs.items()}
    return _called(trace, function, args, kwargs)


def traced_call(op, method, inputs, params, named):
    """An op called with stand-ins: for quern._foreign."""
    given = list(inputs) + list(params) + list(named.values())
    trace = next(x._trace for x in given if isinstance(x, Traced))
    name = op.__name__
    if method is not None:
        raise _refuse(trace, "{} of values in a function that is traced".format(method), "call it on the fused function")
    for word, write in (("out", "return the result, and give out to the fused function"),
                        ("stream", "give it to the fused function")):
        if named.get(word) is not None:
            raise _refuse(trace, "{}= in a function that is traced".format(word), write)
    dtype = named.get("dtype")
    if name == "astype" and dtype is not None:
        return inputs[0].astype(dtype)
    if dtype is not None:
        raise _refuse(trace, "dtype= in a function that is traced", "cast by quern.astype(x, dtype)")
    if op._origin is not None and op._origin[0] == "expression":
        raise _refuse(trace, "a compiled expression in a function that is traced",
                      "write its text as Python, or as a fused function")
    if op._class == 2:
        raise _refuse(trace, "{} has results of a shape that depends on values".format(name),
                      "call it before or behind the fused function")
    return _op_value(trace, op, inputs, params, named)


def _op_value(trace, op, inputs, params, named):
    try:
        bound = op.__signature__.bind(*inputs, *params, **{key: value for key, value in named.items() if value is not None})
    except TypeError as error:
        raise _refuse(trace, "{}: {}".format(op.__name__, error), "see help(quern.{})".format(op.__name__)) from None
    usable = list(op.__signature__.parameters)[:len(op.inputs) + len(op.params)]
    given = dict(zip(list(op.inputs) + list(op.params), (bound.arguments.get(name) for name in usable)))
    words = ["{" + str(k) + "}" for k in range(len(op.inputs))]
    words += _param_words(trace, op, given)
    axes, reduced = _axis_words(trace, op, given) if op._has_axis else ([], None)
    operands = tuple(given[name] for name in op.inputs)
    made = _operation(trace, "", operands)
    reduced = made._reduced if reduced is None else None if reduced == "kept" else reduced

    def value(function):
        text = "{}({})".format(function, ", ".join(words + axes))
        return Traced(trace, Node(text, *made._node.args), reduced=reduced)
    if len(op.outputs) == 1:
        return value(op.__name__)
    return tuple(value("{}.{}".format(op.__name__, output)) for output in op.outputs)


def _param_words(trace, op, given):
    """The parameters as the language writes them: behind the inputs, the last ones that have their defaults left out."""
    words, n = [], 0
    for name, default in op.params.items():
        role = op._roles.get(name)
        if role in ("axes", "axis", "keepdims"):
            continue
        value = given[name]
        if role == "initial":
            if value is not None:
                raise _refuse(trace, "initial= in a function that is traced", "combine it with the result")
            continue
        if isinstance(value, Traced):
            if not value._is_number():
                raise _refuse(trace, "{}: an array as the parameter {}".format(op.__name__, name), "write a number, or operators")
            if value._node.text not in trace.params:
                trace.params.append(value._node.text)
            words.append(value._node.text)
        else:
            words.append(_literal(default if value is None else value))
        n = len(words) if value is not None and not (not isinstance(value, Traced) and value == default) else n
    return words[:n]


def _axis_words(trace, op, given):
    """axis= and keepdims=, and what is reduced: None: nothing; "all"; the axes; "kept": with its dimensions."""
    axis = given["axis"] if given["axis"] is not None else op.params["axis"]
    text = "({})".format(", ".join(map(str, axis))) if isinstance(axis, tuple) else str(axis)
    words = [] if axis is None else ["axis=" + text]
    if "keepdims" not in op._roles:
        return words, None
    if given["keepdims"]:
        return words + ["keepdims=1"], "kept"
    return words, "all" if axis is None else words[0]
