# SPDX-License-Identifier: Apache-2.0
"""Quern's ops in JAX's programs: under jax.jit, jax.grad and jax.vmap, through XLA's foreign function interface.

    import quern.jax

    y = quern.jax.gelu(x)                                       every op that quern.ops() lists
    f = quern.jax.compile("y = gelu(x*w + b)")                  an expression as one kernel: f(x, w, b)
    swish, = quern.jax.load_spec("swishy.lua")                  ops of one's own
    jax.jit(jax.grad(lambda x: f(x, w, b).sum()))(x)            derivatives are Quern's

Results have the bits of the ops on NumPy's arrays. Dtypes are those that JAX has: where 64 bits are off, a result of f64 or i64 is
computed in that and stored as f32 or i32. Parameters are numbers, part of the program. Docs: python/README.md."""

import uuid as _uuid
from typing import Any as _Any, Tuple as _Tuple

from . import _quern
from ._derived import derivative as _derivative, functions as _functions_of, reduced_axes as _reduced_axes
from ._names import advice as _advice

try:
    import jax
    from jax import ffi as _ffi
except ImportError as _trouble:
    raise ImportError("quern.jax needs JAX 0.5 or later ({}): pip install jax".format(_trouble)) from _trouble

import jax.numpy as _jnp
import numpy as _numpy

_TARGET = "quern"
_MOST_CALLS = 1024  # kept per op: one for each shape, dtype and parameter
_AXES_FROM_END = 16  # xla_call.h
_KINDS = {"f": 1.0, "V": 1.0, "i": 1, "u": 1, "b": True}
# The derivatives of these by weight and bias are sums over the other axes, by ops of their own.
_AFFINE = {"layer_norm_affine": "layer_norm_backward_affine", "rms_norm_affine": "rms_norm_backward_affine"}
_CASTS = ("astype", "saturate_cast")

for _platform in ("cpu", "CUDA"):
    _ffi.register_ffi_target(_TARGET, _quern._xla_target(_platform), platform=_platform)
del _platform


def _dtype_of(dtype):
    """JAX's dtype of a quern.dtype."""
    return _jnp.dtype(dtype.name)


def _canonical(dtype):
    return _numpy.dtype(jax.dtypes.canonicalize_dtype(dtype))


def _is_float(dtype):
    return _jnp.issubdtype(dtype, _jnp.floating)


def _stand_in(dtype, shape):
    """An array of that shape, without memory but for one item."""
    return _quern._strided(_quern._empty((), dtype.name, None), tuple(shape), (0,) * len(shape), 0)


def _mark(value):
    """The key of a parameter."""
    if isinstance(value, (tuple, list)):
        return tuple(map(_mark, value))
    return type(value), repr(value)


def _key_of(op):
    """The name by which XLA's programs know the op: one that another process understands, if there is any (xla_ops.h)."""
    kind, text, options, spec, specs = op._origin or ("op", op.__name__, (), None, ())
    if options is None and not spec and not (kind == "expression" and specs):
        key = "{} {}".format(kind, text)
    else:
        key = "here {} {}".format(_uuid.uuid4().hex, op.__name__)
    _quern._xla_keep(key, op)
    return key


class _Layout:
    """How a call of some shapes and dtypes runs: what its operands are converted to, its results, its parameters."""

    def __init__(self, op, marks, dtype, params, wanted):
        stand = self._stand(op, marks)
        ins, outs, words = op._infer(*stand, dtype=dtype, **params)
        wide = [k for k, (its, _, item) in enumerate(ins) if item is not None and _canonical(_dtype_of(its)) != _dtype_of(its)]
        for k in wide:  # a number of f64 or i64, which JAX does not have now
            stand[k] = _stand_in(_canonical(_dtype_of(ins[k][0])), ())
        if wide:
            ins, outs, words = op._infer(*stand, dtype=dtype, **params)
        self.constants = {}
        for k, mark in enumerate(marks):
            if isinstance(mark[0], type):
                item = ins[k][2]
                its = _dtype_of(ins[k][0])
                self.constants[k] = _numpy.frombuffer(item, its)[0] if item is not None else its.type(mark[2])
        self.dtypes = [_dtype_of(each) for each, _, _ in ins]
        self.shapes = [tuple(shape) for _, shape, _ in ins]
        self.ndim = max(map(len, self.shapes), default=0)
        self.results = [jax.ShapeDtypeStruct(shape, wanted[k] if wanted and wanted[k] else _canonical(_dtype_of(each)))
                        for k, (each, shape, _) in enumerate(outs)]
        self.axes = None  # of a reducing op: bit k is axis -1-k
        self.words = self._params(op, words)

    @staticmethod
    def _stand(op, marks):
        is_weak = [isinstance(mark[0], type) or mark[2] for mark in marks]
        stand = []
        for mark, weak in zip(marks, is_weak):
            if isinstance(mark[0], type):
                stand.append(mark[2])
            elif weak and not all(is_weak):
                stand.append(_KINDS.get(mark[0].kind, 1.0))
            else:
                stand.append(_stand_in(mark[0], mark[1]))
        return stand

    def _params(self, op, words):
        words = _numpy.frombuffer(words, "<i8").reshape(-1, 3).copy()
        if op._has_axis:
            at = list(op.params).index("axis")
            mask = int(words[at, 1])  # -1: all
            self.axes = sum((mask >> d & 1) << (self.ndim - 1 - d) for d in range(self.ndim))
            words[at] = _AXES_FROM_END, self.axes, 0
        return words.reshape(-1)

    def axis_tuple(self):
        """The axes, counted from the end."""
        return tuple(-1 - k for k in range(self.ndim) if self.axes >> k & 1)

    def kept_shape(self, shape):
        """The broadcast shape with extent 1 along the axes."""
        ndim = len(shape)
        return tuple(1 if self.axes >> (ndim - 1 - d) & 1 else n for d, n in enumerate(shape))


class Op:
    """An op of Quern on JAX's arrays: op(*inputs, *params, dtype=None), as the quern.Op of that name, without out and stream."""

    def __init__(self, op, context=None):
        self.op = op
        self._context = context if context is not None else _quern
        self._places = {name: k for k, name in enumerate(op.inputs)}
        self._names = op.inputs + tuple(op.params)
        self._calls = {}
        self._key = None
        self._derivatives = {}
        self.__name__ = self.__qualname__ = op.__name__
        self.__doc__ = op.__doc__
        is_expression = bool(op._origin) and op._origin[0] == "expression"
        self._text = op._origin[1] if is_expression else None
        self._is_rows = op._has_axis or (is_expression and any(map(self._reduces, _functions_of(self._text))))

    def _reduces(self, name):
        try:
            return self._context.op(name)._has_axis
        except KeyError:
            return False

    def __repr__(self):
        return "<quern.jax.Op {!r}>".format(self.op)

    # ---- A call ----

    def __call__(self, *operands: _Any, dtype: _Any = None, **params: _Any) -> _Any:
        return self._call(operands, params, dtype, None)

    def _call(self, operands, params, dtype, wanted):
        inputs = self._bind(operands, params)
        arrays, marks = [], []
        is_array = [not type(x) in (int, float, bool) for x in inputs]
        for x, is_one in zip(inputs, is_array):
            if not is_one and any(is_array):
                marks.append((type(x), repr(x), x))
                continue
            x = self._array(x)
            arrays.append(x)
            marks.append((x.dtype, x.shape, x.ndim == 0 and bool(x.aval.weak_type)))
        key = (tuple(mark[:2] if isinstance(mark[0], type) else mark for mark in marks), dtype and str(dtype), wanted,
               tuple((name, _mark(value)) for name, value in params.items()), _canonical("int64"))
        call = self._calls.get(key)
        if call is None:
            if len(self._calls) >= _MOST_CALLS:
                self._calls.pop(next(iter(self._calls)), None)
            call = self._calls[key] = self._make(marks, self._dtype(dtype), params, wanted)
        return call(*arrays)

    def _bind(self, operands, params):
        """The inputs, by position and name; what else is given becomes one of params."""
        op, n_in = self.op, len(self.op.inputs)
        if op._class == 2:
            raise NotImplementedError("{}: the shape of its result depends on values, which a program of JAX does not allow; call "
                                      "quern.{} outside of it".format(op.__name__, op.__name__))
        if not n_in:
            raise NotImplementedError("{}: it has no inputs; use jax.numpy.{}".format(op.__name__, op.__name__))
        given = dict(zip(self._names, operands))
        for name, value in params.items():
            if name in given:
                raise TypeError("{}: {} is given twice".format(op.__name__, name))
            given[name] = value
        if len(operands) > len(self._names):
            raise TypeError("{}: {} arguments by position; it has {} inputs and {} parameters".format(
                op.__name__, len(operands), n_in, len(op.params)))
        params.clear()
        for name, value in given.items():
            if name not in self._places:
                params[name] = self._parameter(name, value)
        for k, name in enumerate(op.inputs):
            if name not in given:
                raise TypeError("{}: input {} ({}) is missing".format(op.__name__, k + 1, name))
        return [given[name] for name in op.inputs]

    def _parameter(self, name, value):
        if name in ("out", "stream"):
            raise TypeError("{}: {}: JAX's arrays do not change, and have no streams".format(self.op.__name__, name))
        if isinstance(value, jax.core.Tracer):
            raise TypeError("{}: {} is traced, but parameters are part of the program: give a number (jax.jit's static_argnames), or "
                            "make it an input".format(self.op.__name__, name))
        return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value

    def _array(self, x):
        try:
            return x if isinstance(x, jax.Array) else _jnp.asarray(x)
        except TypeError as error:
            raise TypeError("{}: {}".format(self.op.__name__, error)) from error

    def _dtype(self, dtype):
        if dtype is None:
            return None
        name = _quern.dtype(dtype).name if not hasattr(dtype, "name") else dtype.name
        if _canonical(_jnp.dtype(name)) != _jnp.dtype(name):
            raise TypeError("{}: dtype: {}, which JAX does not have while jax_enable_x64 is off".format(self.op.__name__, name))
        return name

    def _make(self, marks, dtype, params, wanted):
        if self._key is None:
            self._key = _key_of(self.op)
        layout = _Layout(self.op, marks, dtype, params, wanted)
        places = [k for k in range(len(marks)) if k not in layout.constants]
        compute = self._compute(layout, places, params)

        def call(*arrays):
            return compute(*[self._converted(x, layout.dtypes[k]) for x, k in zip(arrays, places)])

        call.__name__ = self.op.__name__ if self.op.__name__.isidentifier() else "quern"
        return jax.jit(call, inline=True)

    @staticmethod
    def _converted(x, dtype):
        """A weak scalar, or an operand of a reduction with dtype=, in the dtype in which the op takes it."""
        if x.dtype == dtype:
            return x
        if x.aval.weak_type or (_is_float(x.dtype) and _is_float(dtype)):
            return jax.lax.convert_element_type(x, dtype)
        return _of_name("astype")(x, dtype=dtype)

    def _compute(self, layout, places, params):
        """The function of the arrays among the operands, with its derivative."""
        is_sequential = self._is_rows and not self.op._has_axis
        attributes = {"op": self._key}
        if layout.words.size:
            attributes["params"] = layout.words
        many = len(layout.results) != 1

        def primal(*arrays):
            operands = dict(zip(places, arrays))
            operands = [operands[k] if k in operands else _jnp.asarray(layout.constants[k]) for k in range(len(layout.shapes))]
            if not is_sequential:  # vmap puts its axis in front: of all operands at the same place
                operands = [_jnp.reshape(x, (1,) * (layout.ndim - x.ndim) + x.shape) for x in operands]
            found = _ffi.ffi_call(_TARGET, layout.results, vmap_method="sequential" if is_sequential else "expand_dims")(
                *operands, **attributes)
            return tuple(found) if many else found[0]

        primal.__name__ = self.__name__
        computed = jax.custom_vjp(primal)

        def forwards(*arrays):
            results = computed(*arrays)  # not primal: of which there is no second derivative
            return results, (arrays, results)

        def backwards(saved, gradients):
            arrays, results = saved
            given = dict(zip(places, arrays))
            results, gradients = (results, gradients) if many else ((results,), (gradients,))
            found = self._backwards(layout, given, results, gradients, params)
            return tuple(found.get(k, _nothing(x)) for k, x in given.items())

        computed.defvjp(forwards, backwards)
        return computed

    # ---- Derivatives ----

    def _backwards(self, layout, given, results, gradients, params):
        """By the place of the input: the derivative by it, from those by the results."""
        wanted = [k for k, x in given.items() if _is_float(x.dtype)]
        if not wanted or not any(_is_float(y.dtype) for y in results):
            return {}
        name, backward = self.op.__name__, self.op.backward
        if self._text is not None:
            found = self._of_expression(layout, given, wanted, results, gradients, params)
        elif name in _CASTS:
            found = {0: gradients[0]}
        elif "initial" in self.op._roles and params.get("initial") is not None:
            full = [given[k] if k in given else layout.constants[k] for k in range(len(layout.shapes))]
            instead = _of_name(name + "_initial")  # its derivative knows the parameter
            kept = {key: value for key, value in params.items() if value is not None}
            _, pull = jax.vjp(lambda *xs: instead._call(xs, kept, None, tuple(y.dtype for y in results)), *full)
            found = dict(enumerate(pull(gradients[0])))
        elif backward is None:
            raise NotImplementedError("{}: it has no derivative; jax.lax.stop_gradient keeps it out of one".format(name))
        else:
            found = self._of_op(layout, given, results, gradients, params)
        return {k: self._summed(found[k], given[k]) for k in wanted if k in found}

    def _of_op(self, layout, given, results, gradients, params):
        op, backward = self.op, self._found(self.op.backward)
        known = {name: given[k] if k in given else _jnp.asarray(layout.constants[k]) for k, name in enumerate(op.inputs)}
        shape = _numpy.broadcast_shapes(*layout.shapes)
        expands = "keepdims" in op._roles

        def expanded(x):
            return _jnp.reshape(x, layout.kept_shape(shape)) if expands else x

        known.update({name: expanded(y) for name, y in zip(op.outputs, results)}, grad=expanded(gradients[0]))
        chosen = {name: value for name, value in params.items() if name in backward.op.params and name != "axis"}
        if backward.op._has_axis:
            chosen["axis"] = layout.axis_tuple() if op._has_axis else None
        operands = [known[name] for name in backward.op.inputs]
        places = [op.inputs.index(name[len("grad_"):]) for name in backward.op.outputs]
        # Of an operand that is not broadcast it is stored in its dtype at once.
        wanted = tuple(given[k].dtype if k in given and layout.shapes[k] == shape else None for k in places)
        found = backward._call(operands, chosen, None, wanted)
        found = dict(zip(places, found if isinstance(found, tuple) else (found,)))
        if op.__name__ in _AFFINE:
            found.update(self._of_affine(layout, known, params))
        return found

    def _of_affine(self, layout, known, params):
        """By weight, and bias: each in its shape."""
        x, grad, axis = known["x"], known["grad"], layout.axis_tuple()
        eps = params.get("eps") if params.get("eps") is not None else self.op.params["eps"]
        found = {}
        for k in range(1, len(self.op.inputs)):
            shape = (1,) * (layout.ndim - len(layout.shapes[k])) + layout.shapes[k]
            over = tuple(d - layout.ndim for d, n in enumerate(shape) if n == 1)
            if len(self.op.inputs) == 3:
                mean, rstd = _of_name("mean_rstd")(x, axis=axis, keepdims=True, eps=eps)
                sums = _of_name("layer_norm_backward_affine")(grad, x, mean, rstd, axis=over)[k - 1]
            else:
                wide = x if x.dtype.itemsize > 2 else _of_name("astype")(x, dtype="float32")
                mean = _of_name("mean")(_of_name("multiply")(wide, wide), axis=axis, keepdims=True)
                rstd = _of_name("reciprocal")(_of_name("sqrt")(_of_name("add")(mean, eps)))
                sums = _of_name("rms_norm_backward_affine")(grad, x, rstd, axis=over)
            found[k] = _jnp.reshape(sums, layout.shapes[k])
        return found

    def _of_expression(self, layout, given, wanted, results, gradients, params):
        op = self.op
        names_in = tuple(op.inputs[k] for k in wanted)
        names_out = tuple(name for name, y in zip(op.outputs, results) if _is_float(y.dtype))
        made = self._derivatives.get((names_in, names_out))
        if made is None:
            text, grads = _derivative(self._text, op.outputs, names_in, names_out)
            made = self._derivatives[names_in, names_out] = compile(text, self._context), grads
        derived, grads = made
        known = {name: given[k] if k in given else _jnp.asarray(layout.constants[k]) for k, name in enumerate(op.inputs)}
        shape = _numpy.broadcast_shapes(*layout.shapes)
        for name, gradient in zip(op.outputs, gradients):
            if name in grads:
                known[grads[name]] = self._kept(gradient, shape)
        dtypes = tuple(given[k].dtype for k in wanted)
        found = derived._call([known[name] for name in derived.op.inputs], dict(params), None, dtypes)
        return dict(zip(wanted, found if isinstance(found, tuple) else (found,)))

    def _kept(self, gradient, shape):
        """Of a reduced result: as elements of the row, of which the first has it. (Within an expression a reduced value is one
        of elements, and grad adds the results of all of them.)"""
        if not self._is_rows or gradient.shape == shape:
            return gradient
        if gradient.ndim < len(shape):
            axes = _reduced_axes(self._text)
            axes = range(len(shape)) if axes is None else (axes,) if isinstance(axes, int) else axes
            gradient = _jnp.expand_dims(gradient, tuple(d % len(shape) for d in axes))
        zero = gradient.dtype.type(0)
        return jax.lax.pad(gradient, zero, [(0, whole - n, 0) for whole, n in zip(shape, gradient.shape)])

    @staticmethod
    def _summed(gradient, x):
        """The sum over what x was broadcast along, in x's shape and dtype."""
        more = gradient.ndim - x.ndim
        over = tuple(range(more)) + tuple(d + more for d, n in enumerate(x.shape) if n == 1 and gradient.shape[d + more] != 1)
        if over:
            gradient = _of_name("sum")(gradient, axis=over) if "sum" in _quern.ops() else _jnp.sum(gradient, axis=over)
        return jax.lax.convert_element_type(_jnp.reshape(gradient, x.shape), x.dtype)

    def _found(self, name):
        """The op of that name of the same context."""
        if self._context is _quern:
            return _of_name(name)
        return self._derivatives.get(name) or self._derivatives.setdefault(name, Op(self._context.op(name), self._context))


def _nothing(x):
    """No derivative: zero, of what is no float of the type that JAX has for it."""
    return _jnp.zeros_like(x) if _jnp.issubdtype(x.dtype, _jnp.inexact) else _numpy.zeros(x.shape, jax.dtypes.float0)


# ---- Making ops ----

_known: dict = {}


def _of_name(name):
    made = _known.get(name)
    op = _quern.op(name)
    if made is None or made.op is not op:
        made = _known[name] = Op(op)
    return made


def op(which: _Any, context: _Any = None) -> Op:
    """The quern.jax.Op of a name, or of a quern.Op. context: the quern.Context that it is of."""
    if isinstance(which, Op):
        return which
    if not isinstance(which, str):
        return Op(which, context)
    return _of_name(which) if context is None else Op(context.op(which), context)


def compile(expression: str, context: _Any = None) -> Op:
    """A quern.jax.Op for an expression, as quern.compile makes one; its derivative is that of the expression."""
    return Op((context if context is not None else _quern).compile(expression), context)


def load_spec(path: _Any, context: _Any = None) -> _Tuple[Op, ...]:
    """The ops of a spec file, a tuple sorted by name, as quern.load_spec gives them."""
    return tuple(Op(each, context) for each in (context if context is not None else _quern).load_spec(path))


def vecdot(x1: _Any, x2: _Any, /, *, axis: _Any = -1, keepdims: bool = False, dtype: _Any = None) -> _Any:
    """The sum of x1 * x2 along an axis, as quern.vecdot."""
    return _of_name("vecdot")(x1, x2, axis=axis, keepdims=keepdims, dtype=dtype)


_OTHERS = ("arange", "asarray", "diff", "empty", "full", "group_norm", "instance_norm", "linspace", "nonzero")


def __getattr__(name: str) -> Op:
    if name in _OTHERS:
        raise AttributeError("quern.jax has no {0}, which is no function of arrays alone: use jax.numpy".format(name))
    try:
        if name.startswith("_"):
            raise KeyError(name)
        return _of_name(name)  # no attribute of the module: `max` and others would hide Python's
    except KeyError:
        message = "module 'quern.jax' has no attribute {!r}".format(name)
        raise AttributeError(message if name.startswith("_") else message + _advice(name, _quern.ops())) from None


def __dir__():
    return sorted(set(globals()) | set(_quern.ops()))
