# SPDX-License-Identifier: Apache-2.0
"""Shapes, strides and dtypes of results without their values, for quern.torch: extents may be symbols (torch.SymInt)."""

import torch

from .. import _quern

# ---- Decisions about symbols ----


def is_true(condition):
    """Whether a comparison of extents holds; False where nothing is known of them (unbacked symbols)."""
    if isinstance(condition, bool):
        return condition
    from torch.fx.experimental.symbolic_shapes import guard_or_false  # loads SymPy
    return guard_or_false(condition)


# ---- What an op makes of dtypes and extents, asked of the library once for each kind of call ----


def dtype_of(dtype):
    """PyTorch's dtype for one of ours."""
    return getattr(torch, _quern.dtype(dtype).name)


class Rule:
    """dtypes: of each output. extents: of each output a list of (base, dims): an extent of the result is base and, for each of
    these dimensions of the operands' common shape, its extent less 1."""

    def __init__(self, dtypes, extents):
        self.dtypes, self.extents = dtypes, extents

    def shapes(self, common):
        return [[sum((common[d] - 1 for d in dims), base) if base != len(dims) or base != 1 else common[dims[0]]
                 for base, dims in dimensions] for dimensions in self.extents]


def _probe(op, kinds, dtype, extents, params, first_only=False):
    """The shapes and dtypes of the outputs for operands of these extents: no memory behind them, nothing is computed."""
    operands, ndim = [], len(extents)
    for kind in kinds:
        if isinstance(kind, type):
            operands.append(kind(1))
        else:
            one = _quern._empty((1,), _quern.dtype(kind), None)
            operands.append(_quern._strided(one, extents, (0,) * ndim, 0))
            extents = (1,) * ndim if first_only else extents
    made = op.explain(*operands, dtype=dtype, **params).operands
    made = [operand for operand in made if operand.is_output]
    return [operand.shape for operand in made], [dtype_of(operand.dtype) for operand in made]


def make_rule(op, kinds, dtype, ndim, params):
    """kinds: of each input the dtype, or int, float, bool of a number. params: those that decide shapes."""
    params = dict(params)
    for name, value in op.params.items():
        if value is None and name not in op._roles:
            params[name] = 1
    shapes, dtypes = _probe(op, kinds, dtype, (1,) * ndim, params)
    if op._class != 3:
        return Rule(dtypes, [[(1, (d,)) for d in range(ndim)] for _ in shapes])
    extents = [[(base, []) for base in shape] for shape in shapes]
    for d in range(ndim):
        long = (1,) * d + (2,) + (1,) * (ndim - d - 1)
        try:
            longer = _probe(op, kinds, dtype, long, params)[0]
        except ValueError:  # cross_entropy's classes are constant along the axes
            longer = _probe(op, kinds, dtype, long, params, first_only=True)[0]
        for dimensions, shape in zip(extents, longer):
            for (base, dims), extent in zip(dimensions, shape):
                if extent != base:
                    dims.append(d)
    return Rule(dtypes, [[(base, tuple(dims)) for base, dims in dimensions] for dimensions in extents])


# ---- The layout of results: docs/layouts.md, as runtime/core/tensor/layout.c ----


def _steps(x, ndim):
    """Of each dimension of the common shape the stride; 0: the dimension does not rule."""
    missing = ndim - x.dim()
    return [0] * missing + [0 if is_true(extent == 1) else stride for extent, stride in zip(x.shape, x.stride())]


def _is_compact(x):
    wanted = 1
    for extent, stride in zip(reversed(x.shape), reversed(x.stride())):
        if not is_true(extent == 1):
            if not is_true(stride == wanted):
                return False
            wanted = wanted * extent
    return True


def _is_full(x, common):
    missing = len(common) - x.dim()
    return all(is_true(extent == 1) for extent in common[:missing]) and all(
        is_true(own == extent) for own, extent in zip(x.shape, common[missing:]))


def _compare(rulers, a, b):
    """-1: dimension a is inside dimension b; 1: outside; 0: no operand tells."""
    for steps in rulers:
        x, y = steps[a], steps[b]
        if not is_true(x == 0) and not is_true(y == 0):
            if is_true(x < y):
                return -1
            if is_true(x > y):
                return 1
    return 0


def order_of(common, tensors):
    """The dimensions in the order of memory, innermost first; None: row-major."""
    if any(is_true(extent == 0) for extent in common):
        return None
    rulers = [x for x in tensors if _is_full(x, common)]
    if not rulers or _is_compact(rulers[0]):
        return None
    rulers = [_steps(x, len(common)) for x in rulers]
    order = []
    for d in reversed(range(len(common))):  # each is put among those behind it
        at = len(order)
        for place in reversed(range(len(order))):
            side = _compare(rulers, d, order[place])
            if side > 0:
                break
            if side < 0:
                at = place
        order.insert(at, d)
    return order


def _empty(shape, order, dtype, device):
    if order is None:
        return torch.empty(shape, dtype=dtype, device=device)
    strides, step = [1] * len(shape), 1
    for d in order:
        strides[d] = step
        step = step * shape[d]
    return torch.empty_strided(shape, strides, dtype=dtype, device=device)


def _order_of_result(order, dimensions):
    """The order of a result's dimensions: that of the common shape's without those that went."""
    if order is None or len(dimensions) == len(order):
        return order
    place = {dims[0]: k for k, (_, dims) in enumerate(dimensions) if dims}
    return [place[d] for d in order if d in place]


# ---- Fake implementations ----

_DECIDE = ("axis", "keepdims", "include_initial")  # parameters on which shapes depend


def kind_of(x):
    """The dtype of a tensor; of a number its type in Python."""
    if isinstance(x, torch.Tensor):
        return x.dtype
    return bool if isinstance(x, (bool, torch.SymBool)) else int if isinstance(x, (int, torch.SymInt)) else float


def _device_of(op, tensors):
    for x in tensors[1:]:
        if x.device != tensors[0].device:
            raise RuntimeError("{}: operands on {} and {}, expected one device".format(op.__name__, tensors[0].device, x.device))
    return tensors[0].device


def _dynamic(op, kinds, dtype, tensors):
    """nonzero and compress: the number of elements depends on values."""
    rule = make_rule(op, kinds, dtype, 1, {})
    n = torch.library.get_ctx().new_dynamic_size()
    shape = (n, tensors[0].dim()) if op.__name__ == "nonzero" else (n,)
    return torch.empty(shape, dtype=rule.dtypes[0], device=tensors[0].device)


def _without_initial(grad, axis):
    """The shape of a scan's derivative, with include_initial: an element less than grad has."""
    axis, shape = (axis[0] if isinstance(axis, tuple) else axis) % grad.dim(), list(grad.shape)
    shape[axis] = shape[axis] - 1
    return shape


def make_fake(op):
    """The fake implementation of an op with inputs."""
    names, n_in, rules = tuple(op.params), len(op.inputs), {}
    of_scan = op.__name__.endswith("_backward") and "include_initial" in op._roles
    decide = [name for name in _DECIDE if name in op._roles]

    def fake(*args, dtype=None):
        inputs = args[:n_in]
        params = dict(op.params, **dict(zip(names, args[n_in:])))
        params = {name: params[name] for name in decide}
        if isinstance(params.get("axis"), list):
            params["axis"] = tuple(params["axis"])
        kinds = tuple(map(kind_of, inputs))
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        device = _device_of(op, tensors)
        is_short = of_scan and params["include_initial"]
        if is_short:
            params["include_initial"] = False
        if is_short:
            common = _without_initial(inputs[0], params["axis"])
        else:
            common = list(torch.broadcast_shapes(*(x.shape for x in tensors)))
        if op._class == 2:
            return _dynamic(op, kinds, dtype, tensors)
        key = kinds, dtype, len(common), tuple(params.items())
        rule = rules.get(key)
        if rule is None:
            rule = rules[key] = make_rule(op, kinds, dtype, len(common), params)
        order = order_of(common, tensors)
        made = [_empty(shape, _order_of_result(order, dimensions), dtype_, device)
                for shape, dimensions, dtype_ in zip(rule.shapes(common), rule.extents, rule.dtypes)]
        return made[0] if len(made) == 1 else tuple(made)

    return fake
