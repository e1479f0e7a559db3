# SPDX-License-Identifier: Apache-2.0
# tags: threads-full
"""quern.torch: ops, expressions and specs as PyTorch's custom ops. Fake results have the shapes, strides and dtypes of real ones,
symbols included; gradcheck of every derivative; opcheck of every op, dtype and a layout with gaps (QUERN_TEST_EXHAUSTIVE=1;
else a sample that changes by day); torch.compile, torch.export, vmap."""

import copy
import os
import pickle
import random
import sys
import tempfile
import threading

import quern
from tap import diag, done_testing, is_, ok, raises, skip, skip_all

is_early = "torch" in sys.modules
try:
    import torch
except ImportError:
    skip_all("there is no PyTorch here")
if not hasattr(torch.library, "opcheck"):
    skip_all("PyTorch {} has no torch.library.opcheck".format(torch.__version__))
is_(is_early, False, "importing quern imports no PyTorch")

import quern.torch as q
from quern._derived import functions
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

diag("PyTorch " + torch.__version__)
EXHAUSTIVE = os.environ.get("QUERN_TEST_EXHAUSTIVE") == "1"
DAY = int(os.environ.get("QUERN_TEST_DAY", "0"))
rng = random.Random(DAY)
torch.manual_seed(DAY)
OPS = [name for name in quern.ops() if name in dir(q)]
INPUTS = [name for name in OPS if quern.op(name).inputs]
SHORT = {quern.dtype(d).short_name: d for d in (
    torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64)}
FLOATS = ("f64", "f32", "f16", "bf16")
is_(sorted(set(quern.ops()) - set(OPS)), [], "every op is there")


# ---- Operands ----


def laid_out(values, layout):
    """The same values in memory of another layout."""
    if layout == "gaps" and values.dim():
        wide = torch.zeros(*values.shape[:-1], 2 * values.shape[-1], dtype=values.dtype)
        wide[..., ::2] = values
        return wide[..., ::2]
    if layout == "transposed" and values.dim() > 1:
        return values.transpose(-1, -2).contiguous().transpose(-1, -2)
    return values


def drawn(shape, dtype, low=0.1, high=0.45):
    """Different numbers of these bounds; whole ones for integers."""
    n = 1
    for extent in shape:
        n *= extent
    if dtype.is_floating_point:
        return (low + (high - low) * torch.randperm(n).double() / max(n, 1)).to(dtype).reshape(shape)
    return torch.randint(0, 2 if dtype == torch.bool else 3, shape).to(dtype)


def operands(op, dtype, layout="contiguous", shape=(3, 4)):
    """One call's inputs: of the dtype where an input takes it, with kept axes where derivatives read results of reductions."""
    name, made = op.__name__, []
    forward = quern.op(name[:-len("_backward")]) if name.endswith("_backward") else op
    is_reduced = forward is not op and "keepdims" in forward.params
    for k, (word, words) in enumerate(zip(op.inputs, op._dtypes)):
        own = SHORT[dtype] if dtype in words.split() else SHORT[words.split()[0]]
        kept = is_reduced and word in ("grad", *forward.outputs)
        here = (1,) * len(shape) if kept else shape
        if word == "t":
            here = (*shape[:-1], 1) if not op.params["axis"] and op.params["axis"] is not None else (1,) * len(shape)
        low, high = (0.1, 0.45) if k == 0 else (0.55, 0.95)
        if name == "acosh":
            low, high = 1.2, 2.5
        made.append(laid_out(drawn(here, own, low, high), layout if here == shape else "contiguous"))
    return made


def options(op, dtype=torch.float16):
    return {"dtype": dtype} if op.__name__ in ("astype", "saturate_cast") else {}


def are_numbers(made):
    return not any(x.isnan().any() for x in (made if isinstance(made, tuple) else (made,)) if x.is_floating_point())


def is_same_layout(real, fake):
    real, fake = (x if isinstance(x, tuple) else (x,) for x in (real, fake))
    return [(tuple(x.shape), x.stride(), x.dtype) for x in real], [
        (tuple(map(int, x.shape)), tuple(map(int, x.stride())), x.dtype) for x in fake]


def faked(function, args, kwargs, is_symbolic):
    mode = FakeTensorMode(shape_env=ShapeEnv() if is_symbolic else None)

    def fake(x):
        if not isinstance(x, torch.Tensor):
            return x
        context = StatelessSymbolicContext([DimDynamic.DYNAMIC] * x.dim()) if is_symbolic else None
        return mode.from_tensor(x, symbolic_context=context, static_shapes=not is_symbolic)

    args = [fake(x) for x in args]
    with mode:
        return function(*args, **kwargs)


def check_fake(name, function, args, kwargs=None, quiet=False):
    """Whether the fake results, of numbers and of symbols, are laid out as the real one. (Quiet ones: one of both.)"""
    kwargs = kwargs or {}
    real = function(*args, **kwargs)
    for is_symbolic in (False, True) if EXHAUSTIVE or not quiet else (rng.random() < 0.5,):
        wanted, got = is_same_layout(real, faked(function, args, kwargs, is_symbolic))
        if wanted != got:
            ok(False, "{}: fake results, {}".format(name, "symbolic" if is_symbolic else "of numbers"))
            of = [(x.shape, x.stride()) if isinstance(x, torch.Tensor) else x for x in args]
            diag("real {}\nfake {}\nof {}".format(wanted, got, of))
            return False
    if not quiet:
        ok(True, name)
    return True


# ---- Fake results: every op ----

LAYOUTS = (("contiguous", (3, 4)), ("gaps", (3, 4)), ("transposed", (2, 3, 4)), ("contiguous", ()), ("contiguous", (0, 3)))
n_fake = n_wrong = 0
for name in INPUTS:
    op, function = quern.op(name), getattr(torch.ops.quern, name)
    if op._class == 2:
        continue
    for layout, shape in LAYOUTS if EXHAUSTIVE else (rng.choice(LAYOUTS[:3] if op._has_axis else LAYOUTS),):
        if not shape and op._has_axis:
            continue
        if 0 in shape and ("max" in name or "min" in name or "ptp" in name) and op._has_axis:
            continue
        dtype = "f32" if "f32" in op._dtypes[0] else op._dtypes[0].split()[-1]
        n_fake += 1
        args = operands(op, dtype, layout, shape)
        n_wrong += not check_fake("{} {} {}".format(name, layout, shape), function, args, options(op), quiet=True)
ok(n_fake > 0.9 * len(INPUTS) and not n_wrong, "fake results of {} ops, {} calls".format(len(INPUTS), n_fake))


def random_operand(shape):
    """A tensor of this shape or one that is broadcast to it, of any layout."""
    shape = list(shape)
    if rng.random() < 0.3:
        shape = [1 if rng.random() < 0.4 else extent for extent in shape]
        shape = shape[rng.randrange(len(shape) + 1):] if rng.random() < 0.5 else shape
    order = list(range(len(shape)))
    rng.shuffle(order)
    strides, step = [0] * len(shape), rng.choice((1, 1, 2))
    for d in order:
        strides[d] = 0 if rng.random() < 0.08 else step
        step *= max(shape[d], 1) * rng.choice((1, 1, 1, 2))
    return torch.rand(step + 1).as_strided(shape, strides)


RANDOM = (("add", {}), ("fma", {}), ("where", {}), ("softmax", {"axis": [0]}), ("sum", {}), ("cummax", {"axis": [0]}),
          ("cumulative_sum", {"axis": [-1], "include_initial": True}), ("vecdot", {"axis": [-1]}))
RANDOM = [case for case in RANDOM if case[0] in OPS]
n_random = 0 if not RANDOM else 4000 if EXHAUSTIVE else 60
n_wrong = 0
for _ in range(n_random):
    shape = tuple(rng.choice((1, 2, 3, 4, 0) if rng.random() < 0.1 else (1, 2, 3, 4)) for _ in range(rng.randrange(1, 6)))
    name, params = rng.choice(RANDOM)
    op = quern.op(name)
    args = [random_operand(shape) for _ in op.inputs]
    if name == "where":
        args[0] = args[0] > 0.5
    if name == "sum":
        params = {"axis": rng.sample(range(args[0].dim()), rng.randrange(args[0].dim() + 1)), "keepdims": rng.random() < 0.5}
    if op._has_axis and not args[0].dim():
        continue
    if name == "cumulative_sum" and args[0].numel() == 0:
        continue
    if name == "vecdot" and max(x.dim() for x in args) == 0:
        continue
    n_wrong += not check_fake("{} {}".format(name, params), getattr(torch.ops.quern, name), args, params, quiet=True)
ok(not n_wrong, "fake results of {} random layouts".format(n_random))
x = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
ok(q.add(x, 1.0).is_contiguous(memory_format=torch.channels_last), "channels_last is kept")

# ---- Derivatives ----


def float_inputs(op):
    backward = quern.op(op.backward) if op.backward else None
    return {word[len("grad_"):] for word in backward.outputs} if backward else set(op.inputs)


HAS_DERIVATIVE = [name for name in INPUTS if quern.op(name).backward] + ["astype", "compress", "std_mean", "var_mean", "aminmax"]
HAS_DERIVATIVE = [name for name in HAS_DERIVATIVE if name in OPS]


def gradcheck(name, function, args, wanted, **kwargs):
    args = [x.clone().requires_grad_() if k in wanted else x for k, x in enumerate(args)]

    def floats(*a):
        made = function(*a, **kwargs)
        return tuple(x for x in made if x.is_floating_point()) if isinstance(made, tuple) else made

    try:
        torch.autograd.gradcheck(floats, args)
        return True
    except Exception as error:
        ok(False, "gradcheck " + name)
        diag(str(error)[:600])
        return False


n_grad = n_wrong = 0
for name in HAS_DERIVATIVE:
    op, function = quern.op(name), getattr(q, name)
    words = float_inputs(op)
    if name in ("layer_norm_affine", "rms_norm_affine"):
        words = set(op.inputs)
    if name == "compress":
        words = {"x"}
    args = operands(op, "f64", "transposed", (2, 3))
    wanted = [k for k, word in enumerate(op.inputs) if word in words]
    calls = [(args, options(op, torch.float64))]
    if "keepdims" in op.params:
        calls.append((args if "t" not in op.inputs else [args[0], torch.tensor([[1], [0]])], {"axis": -1, "keepdims": True}))
        calls.append((args if "t" not in op.inputs else [args[0], torch.tensor([[1], [0]])], {"axis": 1}))
    elif op._has_axis:
        calls.append((args, {"axis": 0}))
    if op.params.get("initial", 0) is None:
        calls.append((args, {"axis": 0, "initial": 0.3}))
    if name in ("cumulative_sum", "cumulative_prod"):  # of others the first one is infinite
        calls += [(args, {"include_initial": True}), (args, {"reverse": True, "exclusive": True})]
    if len(wanted) > 1 and not op._has_axis:
        calls.append((args[:-1] + [args[-1][0].clone()], {}))  # broadcast
    if name.endswith("_affine"):
        calls.append(([args[0]] + [x[0].clone() for x in args[1:]], {}))
    if len(op.inputs) == 2 and not op._has_axis and name not in ("compress", "ldexp"):
        calls.append(([args[0], 0.75], {}))
    for given, kwargs in calls:
        n_grad += 1
        of = [k for k in wanted if isinstance(given[k], torch.Tensor)]
        n_wrong += not gradcheck("{} {}".format(name, kwargs), function, given, of, **kwargs)
ok(n_grad > len(HAS_DERIVATIVE) and not n_wrong, "gradcheck of {} ops in f64, {} calls".format(len(HAS_DERIVATIVE), n_grad))
if "multiply" in OPS:
    a, b = torch.rand(3, 4).requires_grad_(), torch.rand(4, dtype=torch.float64).requires_grad_()
    q.multiply(a, b).sum().backward()
    ok((a.grad.dtype, b.grad.dtype) == (torch.float32, torch.float64) and torch.allclose(a.grad, b.detach().float().expand(3, 4)),
       "operands of two dtypes: each gets its own")
    half = torch.rand(3, 4).half().requires_grad_()
    q.multiply(half, torch.ones(3, 4, dtype=torch.int32)).sum().backward()
    is_(half.grad.dtype, torch.float16, "beside integers")
    a = torch.rand(3, requires_grad=True)
    first, = torch.autograd.grad(q.multiply(a, a).sum(), a, create_graph=True)
    raises(NotImplementedError, lambda: first.sum().backward(), "a second derivative is an error", "second order")
ok(not q.equal(torch.rand(3, requires_grad=True), 1.0).requires_grad, "a bool has no derivative")
a = torch.rand(3, requires_grad=True)
raises(NotImplementedError, lambda: q.nextafter(a, 1.0).sum().backward(), "an op without a derivative says so", "nextafter")

# ---- Expressions and specs ----

SPEC = """unary "t870.swish" { doc = "x times the logistic function of beta times x.", params = { beta = 1.0 }, dtypes = floating,
  body = [[ x * sigmoid(beta * x) ]], ulp = { f32 = 64, f64 = 64 } }
unary "t870.named" { doc = "Its parameters are called like those of a reduction.", params = { axes = -1, keepdims = 0, reverse = 0.5 },
  dtypes = floating, body = [[ x * axes + keepdims + reverse * x ]] }
"""
TEXTS = (
    ("y = gelu(x*w + b)", ((3, 4), (4,), (3, 1)), 3), ("x / sum(x*w, axis=-1)", ((3, 4), (3, 4)), 2),
    ("param a; y = a*x*x; z = x > 0.3; v = sin(x); // w = x;", ((3, 4),), 1), ("s = sum(x*x, axis=0)", ((3, 4),), 1),
    ("n: auto t = exp(x); y = t*w; # y = t\n t / w", ((2, 3), (3,)), 2), ("m = max(x, axis=(0, 2), keepdims=0)", ((2, 3, 4),), 1),
    ("mean(x) * w", ((2, 3), (2, 3)), 2), ("by_x = x*x; of_ = by_x + w", ((3,), (3,)), 2))
for text, shapes, n_of in TEXTS:
    if not functions(text) <= set(OPS):
        skip(1, "this build lacks ops of " + text)
        continue
    f = q.compile(text)
    args = [drawn(shape, torch.float64, 0.1 + 0.4 * k, 0.45 + 0.4 * k) for k, shape in enumerate(shapes)]
    params = (0.75,) * len(f.op.params)
    check_fake(text, f, (*args, *params))
    ok(gradcheck(text, f, (*args, *params), range(n_of)), "gradcheck of " + text)
    leaves = [x.clone().requires_grad_() for x in args]
    if EXHAUSTIVE or text is TEXTS[DAY % len(TEXTS)][0]:
        is_(set(torch.library.opcheck(f.overload, (*leaves, *params)).values()), {"SUCCESS"}, "opcheck of " + text)
f = q.compile("y = x * w")
ok(q.compile("y = x * w") is f and copy.deepcopy(f) is f and pickle.loads(pickle.dumps(f)) is f, "one function a text")
ok(pickle.loads(pickle.dumps(q.add)) is q.add and copy.copy(q.add) is q.add, "an op in a pickle")
if "sigmoid" in OPS:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t870.lua")
        with open(path, "w") as file:
            file.write(SPEC)
        named, swish = sorted(q.load_spec(path), key=lambda op: op.op.__name__)
    x = drawn((3, 4), torch.float64)
    ok(torch.allclose(swish(x, 2.0), x * torch.sigmoid(2 * x)) and torch.ops.quern.t870_swish(x).shape == x.shape, "a spec's op")
    ok(gradcheck("t870.swish", swish, [x], [0]), "gradcheck of a spec's op")
    result = torch.library.opcheck(swish.overload, (x.clone().requires_grad_(), 2.0))
    is_(set(result.values()), {"SUCCESS"}, "opcheck of a spec's op")
    ok(torch.equal(named(x, 2.5, keepdims=0.25), x * 2.5 + 0.25 + 0.5 * x), "parameters called like a reduction's are numbers")
    ok(gradcheck("t870.named", named, [x, 2.5], [0]), "gradcheck of it")
    is_(set(torch.library.opcheck(named.overload, (x.clone().requires_grad_(), 2.5)).values()), {"SUCCESS"}, "opcheck of it")

# ---- Compiled, exported, transformed ----


def compiled(function, backend="aot_eager"):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, dynamic=True, backend=backend)


def block(x, w):
    return q.softmax(q.add(q.gelu(q.multiply(x, w)), 2.0))


if all(name in OPS for name in ("softmax", "gelu", "multiply", "compress", "nonzero", "sum")):
    fused = q.compile("param a; y = gelu(x * a) + sum(x, axis=-1)")
    sizes = ((3, 4), (5, 6), (2, 9))
    for backend in ("aot_eager", "inductor") if EXHAUSTIVE or DAY % 4 == 0 else ("aot_eager",):
        function, wrong = compiled(block, backend), 0
        for shape in sizes:
            x, w = (torch.rand(shape, requires_grad=True) for _ in range(2))
            for operand in (x, x.t().contiguous().t()):
                mine, theirs = function(operand, w), block(operand, w)
                wrong += not torch.equal(mine, theirs) or mine.stride() != theirs.stride()
            got, wanted = (torch.autograd.grad(f(x, w).square().sum(), (x, w)) for f in (function, block))
            wrong += not all(map(torch.allclose, got, wanted))
        ok(not wrong, "torch.compile by {}: shapes, layouts, derivatives".format(backend))
    function = compiled(lambda x, a: fused(x, a))
    ok(all(torch.equal(function(torch.ones(shape), a), fused(torch.ones(shape), a)) for shape, a in zip(sizes, (0.5, 2.0, 3.0))),
       "torch.compile of an expression with a parameter")
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        x = torch.rand(4, 5)
        function = compiled(lambda x: (q.add(q.compress(x > 0.5, x), 1.0), q.nonzero(x > 0.5)))
        items, places = function(x)
        ok(torch.equal(items, x[x > 0.5] + 1) and torch.equal(places, (x > 0.5).nonzero()), "shapes that depend on values")

    class Block(torch.nn.Module):
        def forward(self, x):
            return block(x, x)

    exported = torch.export.export(Block(), (x,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    more = torch.rand(7, 5)
    ok(torch.equal(exported.module()(more), block(more, more)), "torch.export")
    ok(torch.equal(torch.vmap(q.softmax, in_dims=1)(x), q.softmax(x.t())) and torch.equal(
        torch.vmap(lambda row, y: q.sum(q.add(row, y)), in_dims=(0, None))(x, torch.ones(5)), q.sum(q.add(x, 1.0), 1)), "vmap")
    ok(torch.equal(torch.vmap(q.compile("y = x * w"), in_dims=(1, None))(x, torch.ones(4)), x.t()), "vmap of an expression")
    per_row = torch.vmap(torch.func.grad(lambda row: q.sum(q.multiply(row, row))))
    ok(torch.allclose(per_row(x), 2 * x), "vmap of torch.func.grad")
    raises(NotImplementedError, lambda: torch.func.jvp(q.gelu, (x,), (x,)), "forward mode says that it is not there", "jvp")

# ---- What is odd ----

x = torch.rand(3, 4)
if "add" in OPS and "sum" in OPS:
    for name, given in (("a list", [1, 2]), ("NumPy's kind", object())):
        raises(TypeError, lambda: q.add(x, given), "beside " + name, "expected a tensor or a number")
    raises(TypeError, lambda: q.add(1, 2), "numbers alone", "at least one")
    raises(TypeError, lambda: q.add(torch.zeros(3, dtype=torch.complex64), torch.zeros(3)), "a dtype that there is not")
    raises(ValueError, lambda: q.add(x, torch.rand(5)), "shapes that do not broadcast", "broadcast")
    raises(ValueError, lambda: q.sum(x, 2), "an axis too many", "axis")
    raises(ValueError, lambda: q.sum(x.to("meta"), 2), "  without memory", "axis")
    raises(AttributeError, lambda: q.gelo, "an unknown name", "gelu")
    raises((ValueError, BufferError), lambda: q.add(torch.rand((1,) * 33), 1), "33 dimensions", "33")
    check_fake("32 dimensions", torch.ops.quern.sum, [torch.rand((1,) * 29 + (2, 1, 3)), [-1]])
    is_((q.add(x=x, y=x).shape, q.add(x, y=1).shape, q.sum(x, axis=1, keepdims=True).shape), ((3, 4), (3, 4), (3, 1)), "by name")
    is_(q.add(x.to("meta"), 1.0).shape, (3, 4), "without memory")
    is_(q.add(torch._neg_view(x), 0.0).tolist(), (-x).tolist(), "a negated view")
    parameter = torch.nn.Parameter(x)
    ok(q.add(parameter, 1.0).requires_grad and not q.add(parameter.detach(), 1.0).requires_grad, "a parameter")
    is_(q.full((2, 3), 2, dtype=torch.int32).tolist(), [[2, 2, 2]] * 2, "an op without inputs")
    wrong = []

    def work():
        try:
            for k in range(50):
                leaf = torch.rand(3, 4, requires_grad=True)
                q.sum(q.multiply(leaf, 2.0)).backward()
                made = q.compile("y = x + {}".format(k % 7))(leaf.detach())
                if leaf.grad.tolist() != [[2.0] * 4] * 3 or not torch.equal(made, leaf.detach() + k % 7):
                    wrong.append(k)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    is_(wrong, [], "threads")


# ---- opcheck ----


def cases():
    for name in OPS:
        op = quern.op(name)
        if not op.inputs:
            yield name, "default", (([3, 4],), {})
            continue
        for k, dtype in enumerate(op._dtypes[0].split()):
            for layout in (*(("contiguous",) if k == 0 else ()), ("transposed", "gaps")[k % 2]):
                args = operands(op, dtype, layout)
                for value in (1, 0, 2):  # opcheck takes NaN for a difference
                    if not are_numbers(op(*args, **options(op))):
                        for x in args:
                            x.fill_(value)
                for x in args:
                    if x.is_floating_point() and name in HAS_DERIVATIVE:
                        x.requires_grad_()
                yield name, "{} {}".format(dtype, layout), (args, options(op))
        if 2 <= len(op.inputs) <= 3 and not name.endswith("_backward") and "t" not in op.inputs:  # no number is a class
            dtype = op._dtypes[0].split()[-1]
            args = [*operands(op, dtype)[:-1], 1]
            yield name, "a number", (args, {})


def overload_of(name, args):
    letters = "".join("T" if isinstance(x, torch.Tensor) else "S" for x in args)
    return getattr(getattr(torch.ops.quern, name), "default" if "S" not in letters or not quern.op(name).inputs else letters)


every = list(cases())
chosen = every if EXHAUSTIVE else rng.sample(every, 25)
n_wrong = 0
for name, what, (args, kwargs) in chosen:
    try:
        overload = overload_of(name, args)
        result = torch.library.opcheck(overload, tuple(args), kwargs)
    except Exception as error:
        result = {"": str(error)[:500]}
    if set(result.values()) != {"SUCCESS"}:
        n_wrong += 1
        ok(False, "opcheck {} {}".format(name, what))
        diag(result)
ok(not n_wrong, "opcheck of {} calls of {}".format(len(chosen), len(every)))

done_testing()
