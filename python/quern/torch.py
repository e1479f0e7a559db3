# SPDX-License-Identifier: Apache-2.0
"""Quern's ops as PyTorch's: torch.ops.quern.NAME, with fake implementations for torch.compile and derivatives for autograd.

    import quern.torch
    y = quern.torch.gelu(x)                            every op that quern.ops() names
    f = quern.torch.compile("y = gelu(x*w + b)")       an expression; f(x, w, b)
    quern.torch.load_spec("swishy.lua")                ops of one's own

Operands are tensors, and numbers beside them. Importing this module imports PyTorch; importing quern does not."""

import hashlib
import itertools
import threading
from typing import Any

import torch as _torch

from . import _quern
from ._derived import derivative
from ._names import advice
from ._torch.fake import make_fake
from ._torch.grad import gives_floats, make_autograd
from ._torch.schema import detached, make_kernel, make_schema, make_source_schema, make_source
from ._torch.vmap import make_vmap

_Tensor = _torch.Tensor
_library = _torch.library.Library("quern", "FRAGMENT")
_lock = threading.RLock()
_functions: dict = {}  # name in torch.ops.quern -> Function
_TAGS = tuple(getattr(_torch.Tag, name) for name in ("pt2_compliant_tag", "needs_exact_strides") if hasattr(_torch.Tag, name))
_MOST_WITH_NUMBERS = 3  # inputs: an op with more takes numbers as tensors of no dimensions

# ---- What tells that a call is a plain one: no tracing, no modes, no transforms ----

_is_compiling = _torch.compiler.is_compiling
_n_modes = _torch._C._len_torch_dispatch_stack
_has_function_modes = _torch._C._is_torch_function_mode_enabled
_transform = _torch._C._functorch.peek_interpreter_stack
_is_profiling = _torch.autograd._profiler_enabled
_tracing_state = _torch._C._get_tracing_state
_any_requires_grad = _torch._C._any_requires_grad
_forward_ad = _torch.autograd.forward_ad
_PLAIN_NUMBERS = frozenset((int, float, bool))
_PLAIN_OPTIONS = frozenset((int, float, bool, tuple, _torch.dtype))
_NUMBERS = (int, float, _torch.SymInt, _torch.SymFloat, _torch.SymBool)


def _is_plain():
    return (not _n_modes() and _transform() is None and not _has_function_modes() and not _is_profiling()
            and _tracing_state() is None)


def _are_plain(options):
    """Whether arguments by name are parameters, as Quern's op takes them."""
    for name, value in options.items():
        if name in ("out", "stream") or type(value) not in _PLAIN_OPTIONS:
            return False
    return True


def _refuse_tangents(name, args):
    """Forward-mode derivatives: there are none, and PyTorch would take them for zeros."""
    for x in args:
        if isinstance(x, _Tensor) and _forward_ad.unpack_dual(x).tangent is not None:
            raise NotImplementedError("{}: forward-mode derivatives (jvp) are not there; write it with reverse mode".format(name))


def _differentiable(function, overload):
    """Two forms of an autograd.Function: one for plain calls, cheaper than the dispatcher's, and one that torch.func's transforms
    know."""
    kernel, setup, backward = function._rules

    def forward(ctx, dtype, *args):
        if all(type(x) is _Tensor for x in args if isinstance(x, _Tensor)) and _is_plain():
            output = kernel(*map(detached, args), dtype=dtype)
        else:
            output = overload(*args, dtype=dtype)
        setup_context(ctx, (dtype, *args), output)
        return output

    def forward_only(dtype, *args):
        return overload(*args, dtype=dtype)

    def setup_context(ctx, inputs, output):
        setup(ctx, inputs[1:], None, output)
        ctx.first = 1

    def backward_(ctx, *grads):
        return (None, *backward(ctx, *grads))

    def made(**members):
        return type("Quern_" + function.__name__, (_torch.autograd.Function,), {
            name: value if value is True else staticmethod(value) for name, value in members.items()})

    return (made(forward=forward, backward=backward_),
            made(forward=forward_only, setup_context=setup_context, backward=backward_, generate_vmap_rule=True))


class Function:
    """An op on tensors, and numbers beside them: function(*inputs, *params, dtype=None). `op` is Quern's op, `torch_op` PyTorch's
    of the same name, with an overload for each place where a number may be (T: a tensor, S: a number). In a plain call it is
    Quern's op that is called, with gradients as an autograd.Function; where something is traced or compiled, PyTorch's."""

    def __init__(self, name, op, overloads, rules):
        self.__name__ = self.__qualname__ = name
        self.op = op
        self.__doc__ = op.doc
        self._inputs = op.inputs
        self._n_in = len(op.inputs)
        self._overloads = overloads
        self._rules = rules  # (kernel, setup_context, backward); None
        self._differentiable = {}  # letters -> autograd.Functions
        self.overload = overloads["T" * self._n_in] if self._n_in else overloads[""]

    @property
    def torch_op(self):
        return getattr(_torch.ops.quern, self.__name__)

    def __call__(self, *args, **kwargs):
        if not _is_compiling() and self._n_in <= len(args):
            n_tensors = 0
            for x in args:
                if type(x) is _Tensor and not x.requires_grad:
                    n_tensors += 1
                elif type(x) not in _PLAIN_NUMBERS:
                    break
            else:
                if n_tensors and _is_plain() and (not kwargs or _are_plain(kwargs)):
                    try:
                        return self.op(*args, **kwargs)
                    except (BufferError, ValueError):  # a view that must be computed first, a device that Quern has not
                        pass
        n = self._n_in
        if len(args) < n:
            args += tuple([kwargs.pop(name) for name in self._inputs[len(args):] if name in kwargs])
        letters = "".join(["T" if isinstance(x, _Tensor) else "S" for x in args[:n]])
        if "S" in letters:
            self._check_numbers(args)
        overload = self._overloads.get(letters)
        if overload is None:
            args = self._with_tensors(args)
            overload, letters = self.overload, "T" * n
        if self._rules and not _is_compiling() and not _n_modes():
            if _forward_ad._current_level >= 0:
                _refuse_tangents(self.__name__, args)
            if _torch.is_grad_enabled() and (_transform() is not None or _any_requires_grad(*args)):
                return self._with_gradients(letters, overload, args, kwargs)
        return overload(*args, **kwargs)

    def _with_gradients(self, letters, overload, args, kwargs):
        known = self._differentiable.get(letters)
        if known is None:
            known = self._differentiable[letters] = _differentiable(self, overload)
        values = [*args, *[kwargs.pop(name, value) for name, value in list(self.op.params.items())[len(args) - self._n_in:]]]
        dtype = kwargs.pop("dtype", None)
        if kwargs:
            return overload(*args, **kwargs)  # it names what it does not know
        return known[_transform() is not None].apply(dtype, *values)

    def _check_numbers(self, args):
        for k, x in enumerate(args[:self._n_in]):
            if not isinstance(x, (_Tensor, *_NUMBERS)):
                raise TypeError("{}: input {} ({}): {}, expected a tensor or a number".format(
                    self.__name__, k + 1, self._inputs[k], type(x).__name__))

    def _with_tensors(self, args):
        """Numbers as tensors of no dimensions, of the dtype that a number has beside the others."""
        tensors = [x for x in args[:self._n_in] if isinstance(x, _Tensor)]
        if not tensors or len(args) < self._n_in:
            raise TypeError("{}: {} inputs, {} of them tensors; expected {}, at least one of them a tensor".format(
                self.__name__, min(len(args), self._n_in), len(tensors), ", ".join(self._inputs)))
        made = []
        for x in args[:self._n_in]:
            if not isinstance(x, _Tensor):
                dtype = _torch.result_type(tensors[0], x)
                x = _torch.full((), x, dtype=dtype, device=tensors[0].device)
            made.append(x)
        return (*made, *args[self._n_in:])

    def __repr__(self):
        return "<quern.torch.{}>".format(self.__name__)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _restored, (self.op, self.__name__)


def _restored(op, name):
    return _function_of(op, name)


# ---- Registering ----


def _letters_of(n):
    """ "TT", "TS", "ST": where an op of n inputs may have numbers."""
    if n > _MOST_WITH_NUMBERS:
        return ["T" * n]
    made = ["".join(letters) for letters in itertools.product("TS", repeat=n)]
    return [letters for letters in made if "T" in letters or not n]


def _define(name, letters, schema):
    plain = "S" not in letters
    _library.define((name if plain else name + "." + letters) + schema, tags=_TAGS)
    overload = getattr(getattr(_torch.ops.quern, name), "default" if plain else letters)
    if hasattr(overload, "_enable_pyobj_dispatch"):
        overload._enable_pyobj_dispatch()
    return overload, "quern::" + name + ("" if plain else "." + letters)


def _register_source(name, op):
    """An op without inputs: its first argument is the shape of the result."""
    overload, qualified = _define(name, "", make_source_schema(op))
    kernel, fake = make_source(op)
    _library.impl(qualified, kernel, "CompositeExplicitAutograd")
    _torch.library.register_fake(qualified, fake, lib=_library)
    return {"": overload}, None


def _register(name, op, variant_of=None):
    if not op.inputs:
        return _register_source(name, op)
    kernel, fake, vmap = make_kernel(op), make_fake(op), make_vmap(op, name)
    setup, backward = make_autograd(op, name, _derivative_of, variant_of)
    overloads = {}
    for letters in _letters_of(len(op.inputs)) if not name.endswith("_backward") else ["T" * len(op.inputs)]:
        overload, qualified = _define(name, letters, make_schema(op, letters))
        overloads[letters] = overload
        for key in ("CPU", "CUDA"):
            _library.impl(qualified, kernel, key)
        _torch.library.register_fake(qualified, fake, lib=_library)
        if gives_floats(op):
            _torch.library.register_autograd(qualified, backward, setup_context=setup, lib=_library)
        if vmap is not None:
            _torch.library.register_vmap(qualified, vmap, lib=_library)
    return overloads, (kernel, setup, backward) if gives_floats(op) else None


def _function_of(op, name, variant_of=None):
    name = name.replace(".", "_")  # of a spec with a prefix
    known = _functions.get(name)
    if known is None:
        with _lock:
            known = _functions.get(name)
            if known is None:
                known = _functions[name] = Function(name, op, *_register(name, op, variant_of))
    return known


def _derivative_of(op, end="_backward"):
    """The function of an op's derivative."""
    name = op.__name__ + end
    return _function_of(_quern.op(name), name)


def compile(text: str) -> Function:
    """The function of an expression; see quern.compile. It is torch.ops.quern.expression_..., named by a digest of the text."""
    name = "expression_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    known = _functions.get(name)
    if known is not None:
        return known
    op = _quern.compile(text)

    def variant_of(outputs, inputs):
        by_inputs, grads = derivative(text, op.outputs, inputs, outputs)
        end = "" if (outputs, inputs) == (op.outputs, op.inputs) else "_" + "_".join((*outputs, "by", *inputs))
        return _function_of(_quern.compile(by_inputs), name + "_backward" + end), grads

    function = _function_of(op, name, variant_of)
    try:
        variant_of(op.outputs, op.inputs)  # known before a graph that was compiled by another process names it
    except (TypeError, NotImplementedError, SyntaxError):
        pass  # one of them has no derivative
    return function


def load_spec(path: Any) -> tuple:
    """The functions of a spec's ops; see quern.load_spec."""
    return tuple(_function_of(op, op.__name__) for op in _quern.load_spec(path))


def __getattr__(name: str) -> Function:
    if name.startswith("_"):
        raise AttributeError("module 'quern.torch' has no attribute {!r}".format(name))
    known = _functions.get(name)
    if known is None:
        raise AttributeError("module 'quern.torch' has no attribute {!r}{}".format(name, advice(name, list(_functions))))
    return known


def __dir__():
    return sorted([*globals(), *_functions])


for _name in _quern.ops():
    _function_of(_quern.op(_name), _name)
del _name
