# SPDX-License-Identifier: Apache-2.0
"""@quern.fuse: a Python function of arrays, traced into one expression. The function is called with Traced objects, which note
what is done to them (_traced.py); what comes back is compiled, and called for all later arguments of the same kinds."""

import functools

from . import _quern
from ._traced import FuseError, Trace, Traced, refuse_foreign

MOST_TRACES = 256
_OPTIONS = ("out", "dtype", "stream")
_STATIC = (bool, str, bytes, type(None), type, slice, type(Ellipsis))


def _is_static(value):
    if isinstance(value, tuple):
        return all(map(_is_static, value)) or all(type(item) in (int, float) or _is_static(item) for item in value)
    return isinstance(value, _STATIC) or isinstance(value, _quern.dtype) or callable(value) and not hasattr(value, "__dlpack__")


def _mark(value):
    """The key of a value. 1, 1.0 and True have different keys, as have 0.0 and -0.0."""
    if isinstance(value, tuple):
        return tuple(map(_mark, value))
    return type(value), repr(value) if isinstance(value, float) else value


class _Entry:
    """One trace: its op, which of the flat arguments are the op's, and what makes the function's result of the op's. outside: the
    numbers from outside the function that it has."""

    __slots__ = ("op", "picks", "rebuild", "outside", "is_straight")

    def __init__(self, op, picks, rebuild, outside, n):
        self.op, self.picks, self.rebuild, self.outside = op, picks, rebuild, outside
        self.is_straight = picks == tuple(range(n))


class Fused:
    """What quern.fuse makes of a function. Called as it; beside its own arguments with out=, dtype= and stream=, as an op.
    op(...): the op for such arguments; explain(...): how such a call runs."""

    def __init__(self, function, static_argnames=()):
        import inspect
        functools.update_wrapper(self, function)
        self._signature = inspect.signature(function)
        parameters = self._signature.parameters
        self._static = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
        for name in self._static:
            if name not in parameters:
                raise ValueError("fuse: {} has no argument {!r}, which static_argnames names".format(self._name(), name))
        self._names = tuple(parameters)
        by_position = [p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters.values()]
        self._is_plain = not self._static and all(by_position)
        self._options = tuple(name for name in _OPTIONS if name not in parameters)
        self._entries = {}
        self._quick = {}        # types of arguments, which are all arrays and numbers, by position -> the last entry for these
        self._asks = False      # a trace has read shapes or dtypes: they are part of the key
        self._outside = ()      # global names: their numbers are in the traces
        self._cells = getattr(function, "__closure__", None) or ()

    def _name(self):
        return getattr(self.__wrapped__, "__name__", "function")

    def __call__(self, *args, **kwargs):
        if not kwargs:
            entry = self._quick.get(tuple(map(type, args)))
            if entry is not None and (entry.outside == () or entry.outside == self._outside_values()):
                result = entry.op(*args) if entry.is_straight else entry.op(*[args[k] for k in entry.picks])
                return result if entry.rebuild is None else entry.rebuild(result)
        entry, flat, options = self._find(args, kwargs)
        if entry is None:
            return self.__wrapped__(*args, **kwargs)
        result = entry.op(*[flat[k] for k in entry.picks], **options)
        return result if entry.rebuild is None else entry.rebuild(result)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def op(self, *args, **kwargs):
        """The quern.Op for such arguments."""
        return self._find(args, kwargs, True)[0].op

    def explain(self, *args, **kwargs):
        """How such a call runs: a quern.Explanation."""
        entry, flat, options = self._find(args, kwargs, True)
        return entry.op.explain(*[flat[k] for k in entry.picks], **options)

    def __reduce__(self):
        return self.__wrapped__.__qualname__  # by name, as functions are pickled

    def __repr__(self):
        texts = [entry.op.formula for entry in self._entries.values()]
        return "<quern.fuse {}{}: {}>".format(self._name(), self._signature, "; ".join(dict.fromkeys(texts)) or "not traced yet")

    # ---- From arguments to a trace ----

    def _find(self, args, kwargs, is_forced=False):
        """The entry, the flat arguments, the options of the op's call. None: it is called in a trace, so Python calls it."""
        options = {}
        if kwargs:
            options = {name: kwargs[name] for name in self._options if name in kwargs}
            kwargs = {name: value for name, value in kwargs.items() if name not in options}
        if self._is_plain and not kwargs and len(args) == len(self._names):
            flat, names = args, self._names
        else:
            flat, names = self._flatten(args, kwargs)
        key = self._key(flat, names)
        if key is None:
            if is_forced or options:
                raise TypeError("fuse: {}: out, dtype, stream, op and explain are not for a call that is traced".format(
                    self._name()))
            return None, flat, options
        entry = self._entries.get(key)
        if entry is None:
            entry = self._trace(flat, names)
            if len(self._entries) >= MOST_TRACES:
                self._entries.pop(next(iter(self._entries), None), None)
            key = self._key(flat, names)
            self._entries[key] = entry
        if flat is args and not self._asks and all(mark in ("a", "n") for mark in key[1:1 + len(flat)]):
            if len(self._quick) >= MOST_TRACES:
                self._quick.clear()
            self._quick[tuple(map(type, flat))] = entry
        return entry, flat, options

    def _flatten(self, args, kwargs):
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        flat, names = [], []
        for name, value in bound.arguments.items():
            parameter = self._signature.parameters[name]
            kind = parameter.kind
            if kind is parameter.VAR_POSITIONAL:
                flat.extend(value)
                names.extend("{}_{}".format(name, k) for k in range(len(value)))
            elif kind is parameter.VAR_KEYWORD:
                flat.extend(value.values())
                names.extend(value)
            else:
                flat.append(value)
                names.append(name)
        return tuple(flat), tuple(names)

    def _key(self, flat, names):
        """What a trace depends on; None: an argument is traced itself."""
        key = [len(flat)] if len(flat) == len(self._names) and names is self._names else [names]
        for name, value in zip(names, flat):
            kind = type(value)
            if kind is Traced:
                return None
            if name in self._static:
                key.append(_mark(value))
            elif kind is int or kind is float:
                key.append("n")
            elif _is_static(value):
                key.append(_mark(value))
            elif self._asks:
                key.append((str(getattr(value, "dtype", None)), tuple(getattr(value, "shape", ()))))
            else:
                key.append("a")
        key.append(self._outside_values())
        try:
            hash(key := tuple(key))
        except TypeError as error:
            raise TypeError("fuse: {}: a static argument must be hashable: {}".format(self._name(), error)) from None
        return key

    def _outside_values(self):
        """Marks of the numbers from outside that the function reads."""
        if not self._outside and not self._cells:
            return ()
        values = [_mark(self.__wrapped__.__globals__.get(name)) for name in self._outside]
        for cell in self._cells:
            try:
                value = cell.cell_contents
            except ValueError:  # not set yet
                continue
            values.append(_mark(value) if isinstance(value, (int, float, str, bool)) else id(value))
        return tuple(values)

    def _note_outside(self):
        """Numbers among the globals that the function reads become part of the key: a trace has their values."""
        code, space = getattr(self.__wrapped__, "__code__", None), getattr(self.__wrapped__, "__globals__", {})
        names = getattr(code, "co_names", ())
        self._outside = tuple(name for name in names if isinstance(space.get(name), (int, float, bool, str)))

    def _trace(self, flat, names):
        trace = Trace(self._name())
        standing = [value if name in self._static or type(value) not in (int, float) and _is_static(value)
                    else trace.argument(name, value) for name, value in zip(names, flat)]
        try:
            result = self._run(standing, names)
        except FuseError:
            raise
        except (TypeError, ValueError, AttributeError) as error:
            if "traced" not in str(error).lower():
                raise
            raise refuse_foreign(trace, error) from error
        text, rebuild = trace.finish(result)
        op = trace.compile(text)
        if trace.asks:
            self._asks = True
            self._quick.clear()
        self._note_outside()
        places = {place.text: k for k, place in enumerate(standing_nodes(standing))}
        picks = tuple(places[name] for name in op.inputs + tuple(op.params))
        return _Entry(op, picks, rebuild, self._outside_values(), len(flat))

    def _run(self, standing, names):
        """Calls the function, the flat arguments in their places again."""
        args, kwargs, rest = [], {}, list(standing)
        n_fixed = sum(p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in self._signature.parameters.values())
        n_many = len(rest) - n_fixed
        for name, parameter in self._signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                count = sum(each.startswith(name + "_") for each in names)
                args.extend(rest[:count])
                del rest[:count]
                n_many -= count
            elif parameter.kind is parameter.VAR_KEYWORD:
                kwargs.update(zip(names[len(names) - len(rest):], rest))
            elif parameter.kind is parameter.KEYWORD_ONLY:
                kwargs[name] = rest.pop(0)
            else:
                args.append(rest.pop(0))
        return self.__wrapped__(*args, **kwargs)


def standing_nodes(standing):
    """The node of each argument; of a static one a node without a name."""
    return [value._node if isinstance(value, Traced) else _NO_NODE for value in standing]


class _NoNode:
    text = None


_NO_NODE = _NoNode()


def fuse(function=None, /, *, static_argnames=()):
    """A function of arrays as one kernel, by decoration, as CuPy's fuse:

        @quern.fuse
        def swish(x, beta):
            return x * quern.sigmoid(beta * x)

        swish(x, 0.5)

    At the first call the function runs once with stand-ins for its arguments; what it does to them becomes an expression, of
    which every later call runs the kernel, without Python's function. It may use operators, quern's ops, NumPy's and PyTorch's
    functions that Quern has under such names, other fused functions, and Python's own control flow on everything but values of
    arrays. What cannot be traced (if x > 0, x[i], x += 1 on an argument, unknown methods, arrays from outside) is a
    quern.FuseError with file, line and what to write.

    Arguments: arrays of any kind that ops take; numbers, which the kernel gets anew with each call; bools, None, str, tuples and
    functions, which are traced as they are, a kernel for each value. static_argnames: names of numbers that are traced so, too:
    counts of loops, exponents. Reading x.shape, x.ndim or x.dtype of an argument makes a kernel for each. Numbers among the
    globals and in closures are traced as they are, and once more when they change."""
    if function is None:
        return functools.partial(fuse, static_argnames=static_argnames)
    if isinstance(function, (staticmethod, classmethod)) or not callable(function):
        raise TypeError("fuse: {!r}, expected a function".format(function))
    return Fused(function, static_argnames)
