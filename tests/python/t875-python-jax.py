# SPDX-License-Identifier: Apache-2.0
# tags: threads-full
"""quern.jax with the real JAX: every op and its derivative in a few programs, bit for bit what Quern gives for NumPy's arrays; vmap, grad,
expressions, specs; dtypes with and without 64 bits; errors; other threads and processes. XLA's interface as jaxlib's header has it."""

import ctypes
import os
import subprocess
import sys
import tempfile
import threading

import quern
from tap import diag, done_testing, is_, ok, raises, skip

is_(["jax" in sys.modules, "quern.jax" in sys.modules], [False, False], "import quern imports no JAX")
absent = subprocess.run([sys.executable, "-c", "import sys; sys.modules['jax'] = None; import quern.jax"], capture_output=True, text=True)
ok("ImportError: quern.jax needs JAX 0.5 or later" in absent.stderr, "without JAX the error says what is wanted")
is_sanitized = "san" in os.environ.get("LD_PRELOAD", "")  # XLA is not built for that
try:
    import jax
except ImportError:
    jax = None
if is_sanitized or jax is None or not hasattr(jax, "ffi"):
    skip(1, "there is no JAX with jax.ffi here, or a sanitizer: QUERN_TEST_PYTHON may have it")
    done_testing()
    sys.exit(0)

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax.numpy as jnp
import numpy

import quern.jax as qj

diag("JAX " + jax.__version__)
jax.config.update("jax_enable_x64", True)
rng = numpy.random.default_rng(19)
KNOWN = quern.ops()
BACKWARD = {quern.op(name).backward for name in KNOWN}
NAMES = [name for name in KNOWN if name not in BACKWARD and quern.op(name).inputs and quern.op(name)._class != 2]
LONG = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "bool": "bool"}
LONG.update({"iu"[u] + str(n): "u" * u + "int" + str(n) for n in (8, 16, 32, 64) for u in (0, 1)})


def of_kind(short, shape):
    """Values of a dtype, special ones among them."""
    values = rng.standard_normal(shape) * 3 if short[0] in "fb" and short != "bool" else rng.integers(0, 2 if short == "bool" else 100, shape)
    values = numpy.asarray(values)
    if short in ("f16", "bf16", "f32", "f64") and values.size > 6:
        values.flat[:5] = 0.0, -0.0, numpy.inf, numpy.nan, 1.0
    return jnp.asarray(values.astype(jnp.dtype(LONG[short])))


def own(x):
    """A quern.Array of the same memory."""
    return quern.from_dlpack(x)


def same(got, wanted):
    """The same dtype, shape and bytes. wanted: of Quern."""
    if isinstance(wanted, tuple):
        return isinstance(got, tuple) and len(got) == len(wanted) and all(map(same, got, wanted))
    raw = numpy.asarray(jnp.from_dlpack(wanted)).tobytes()
    return got.dtype.name == wanted.dtype.name and got.shape == wanted.shape and numpy.asarray(got).tobytes() == raw


def dtypes_of(op, short):
    """A dtype for each input: the wanted one where the op takes it. None: it takes it nowhere."""
    choices = [words.split() for words in op._dtypes[:len(op.inputs)]]
    if not any(short in each for each in choices):
        return None
    return [short if short in each else "i32" if "i32" in each else each[0] for each in choices]


def operands_of(name, dtypes):
    """Arrays of these dtypes; of the losses the places of what is right."""
    if name in ("cross_entropy", "nll_loss"):
        return [of_kind(dtypes[0], (3, 5)), jnp.asarray([[4], [0], [2]], LONG[dtypes[1]])]
    return [of_kind(each, (3, 5)) for each in dtypes]


def params_of(op):
    params = {name: 2 if name == "decimals" else 1 for name, value in op.params.items() if value is None and name not in ("axis", "initial")}
    return dict(params, axis=-1) if op._has_axis else params


def bit_for_bit(got, wanted, what):
    bad = [key for key in wanted if not same(got[key], wanted[key])]
    ok(not bad, what)
    for key in bad[:8]:
        diag("{}: {} wanted {}".format(key, got[key], wanted[key]))


def every_op():
    for short in ("f32", "bf16", "f64", "i32", "bool"):
        operands, wanted = {}, {}
        for name in NAMES:
            op = quern.op(name)
            dtypes = dtypes_of(op, short)
            if dtypes is None:
                continue
            arrays = operands_of(name, dtypes)
            more = {"dtype": "int32"} if name in ("astype", "saturate_cast") else {}
            try:
                wanted[name] = op(*map(own, arrays), **params_of(op), **more)
            except TypeError as error:  # this dtype beside the others
                diag("{} of {}: {}".format(name, dtypes, error))
                continue
            operands[name] = arrays
        program = jax.jit(lambda given: {name: getattr(qj, name)(
            *given[name], **params_of(quern.op(name)), **({"dtype": "int32"} if name in ("astype", "saturate_cast") else {})) for name in given})
        bit_for_bit(program(operands), wanted, "{} ops in one program: {}".format(len(wanted), short))


def known_backward(op, arrays, grad):
    """The derivative by each input, by Quern's backward op on quern.Arrays."""
    backward, params = quern.op(op.backward), params_of(op)
    if "keepdims" in op.params:
        params["keepdims"] = True
    results = op(*map(own, arrays), **params)
    results = results if isinstance(results, tuple) else (results,)
    known = dict(zip(op.inputs, map(own, arrays)))
    known.update(zip(op.outputs, results), grad=own(jnp.reshape(grad, results[0].shape)))
    params.pop("keepdims", None)
    found = backward(*[known[name] for name in backward.inputs], **{name: params[name] for name in params if name in backward.params})
    return dict(zip(backward.outputs, found if isinstance(found, tuple) else (found,)))


def every_derivative():
    for short in ("f32", "bf16"):
        operands, wanted, places = {}, {}, {}
        for name in NAMES:
            op = quern.op(name)
            dtypes = dtypes_of(op, short)
            if not op.backward or dtypes is None or short not in dtypes:
                continue
            arrays = operands_of(name, dtypes)
            result = op(*map(own, arrays), **params_of(op))
            result = result[0] if isinstance(result, tuple) else result
            grad = jnp.asarray(rng.standard_normal(result.shape)).astype(result.dtype.name)
            found = known_backward(op, arrays, grad)
            for k, each in enumerate(op.inputs):
                if "grad_" + each in found and dtypes[k] == short and found["grad_" + each].dtype.name == LONG[short]:
                    wanted[name, each] = found["grad_" + each]
                    places[name, each] = k
            operands[name] = arrays, grad

        def program(given):
            made = {}
            for name, (arrays, grad) in given.items():
                function = qj.op(name)
                first = lambda *xs: (lambda y: y[0] if isinstance(y, tuple) else y)(function(*xs, **params_of(function.op)))
                pulled = jax.vjp(first, *arrays)[1](grad)
                made[name] = [None if x.dtype == jax.dtypes.float0 else x for x in pulled]
            return made
        got = jax.jit(program)(operands)
        bit_for_bit({key: got[key[0]][places[key]] for key in wanted}, wanted, "{} derivatives, of {} ops: {}".format(
            len(wanted), len(operands), short))


def every_dtype():
    given = {short: of_kind(short, (2, 9)) for short in LONG}
    wanted = {short: quern.copy(own(x)) for short, x in given.items()}
    bit_for_bit(jax.jit(lambda given: {short: qj.copy(x) for short, x in given.items()})(given), wanted, "{} dtypes".format(len(LONG)))


def as_numpy(x):
    return numpy.asarray(x)


def broadcast():
    x, w, row, one = (jnp.asarray(rng.standard_normal(shape), "float32") for shape in ((4, 3, 5), (3, 1), (5,), ()))
    pairs = {"multiply": jnp.multiply, "add": jnp.add, "maximum": jnp.maximum, "divide": jnp.divide, "pow": lambda x, y: jnp.abs(x) ** y}
    pairs = {name: theirs for name, theirs in pairs.items() if name in KNOWN}
    sides = ((x, w), (row, x), (x, one), (one, row))

    def grads(f):
        return [jax.grad(lambda a, b: jnp.sum(f(jnp.abs(a), b) * 0.5), (0, 1))(a, b) for a, b in sides]
    got, wanted = jax.jit(lambda: ({name: grads(getattr(qj, name)) for name in pairs}, {name: grads(f) for name, f in pairs.items()}))()
    for name in pairs:
        ok(all(g.shape == t.shape and numpy.allclose(g, t, 1e-4, 1e-5) for of_g, of_t in zip(got[name], wanted[name]) for g, t in zip(of_g, of_t)),
           "grad of {} of operands that broadcast".format(name))
    mixed = jax.grad(lambda a, b: qj.multiply(a, b).astype("float32").sum(), (0, 1))(x.astype("bfloat16"), row)
    is_([str(g.dtype) for g in mixed], ["bfloat16", "float32"], "derivatives have their operands' dtypes")
    weight = {"layer_norm_affine": (row, row + 1), "rms_norm_affine": (row,)}

    def norm(name, x, *more):
        if name[0] == "l":
            normal = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-3)
            return normal * more[0] + more[1]
        return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * more[0]
    for name, more in weight.items():
        if name in KNOWN and all(each in KNOWN for each in ("mean_rstd", "mean", "multiply", "add", "sqrt", "reciprocal")):
            every = tuple(range(len(more) + 1))
            got, wanted = jax.jit(lambda *given: [jax.grad(lambda *a: jnp.sum(f(*a) * x), every)(*given) for f in (
                lambda *a: getattr(qj, name)(*a, axis=-1, eps=1e-3), lambda *a: norm(name, *a))])(x, *more)
            ok(all(g.shape == t.shape and numpy.allclose(g, t, 1e-3, 1e-4) for g, t in zip(got, wanted)), "grad of {}".format(name))
    if "prod" in KNOWN and "sum" in KNOWN:
        y = jnp.asarray([[0.0, 2, 3], [4, 5, 6]])
        got = jax.grad(lambda y: qj.prod(y, axis=1, initial=2.0).sum())(y)
        is_(got.tolist(), [[12, 0, 0], [60, 48, 40]], "the derivative of prod with initial=")
        got = jax.grad(lambda y: qj.sum(y.astype("bfloat16"), axis=0, dtype="float32", keepdims=True).sum())(y)
        is_(got.tolist(), [[1] * 3] * 2, "of sum with dtype=")


def under_vmap():
    x, row = jnp.asarray(rng.standard_normal((4, 3, 5)), "float32"), jnp.asarray(rng.standard_normal(5), "float32")
    cases = {"gelu": lambda x, r: qj.gelu(x), "add": qj.add, "multiply": lambda x, r: qj.multiply(r, x),
             "sum": lambda x, r: qj.sum(x, axis=0), "max": lambda x, r: qj.max(x, axis=(0, 1), keepdims=True), "mean": lambda x, r: qj.mean(x),
             "softmax": lambda x, r: qj.softmax(x, axis=0), "vecdot": lambda x, r: qj.vecdot(x, r),
             "cumulative_sum": lambda x, r: qj.cumulative_sum(x, axis=0), "argmax": lambda x, r: qj.argmax(x, axis=1)}
    cases = {name: f for name, f in cases.items() if name in KNOWN}
    expressions = {"y = tanh(x*r); z = x > r": ("multiply", "tanh"), "param a; y = sum(x*r*a, axis=0)": ("sum",)}
    for text, wants in expressions.items():
        if all(name in KNOWN for name in wants):
            made = qj.compile(text)
            cases[text] = lambda x, r, made=made: made(x, r, **({"a": 2.0} if "a" in made.op.params else {}))
    for rows, places in ((row, (0, None)), (jnp.stack([row, row * 2, row, -row]), (0, 0)), (jnp.stack([row] * 4, 1), (0, 1))):
        got = jax.jit(lambda x, r: {name: jax.vmap(f, places)(x, r) for name, f in cases.items()})(x, rows)
        rows = rows if rows.ndim == 1 else rows if places[1] == 0 else rows.T
        each = [{name: f(x[k], rows if rows.ndim == 1 else rows[k]) for name, f in cases.items()} for k in range(4)]
        bad = [name for name in cases if not all(jax.tree.leaves(jax.tree.map(
            lambda whole, *parts: as_numpy(whole).tobytes() == numpy.stack([as_numpy(part) for part in parts]).tobytes(),
            got[name], *[one[name] for one in each])))]
        is_(bad, [], "vmap, axes {}: {} functions".format(places, len(cases)))
    if "softmax" in KNOWN:
        got = jax.jit(jax.vmap(jax.grad(lambda v: qj.softmax(v)[0])))(x[0])
        wanted = jax.vmap(jax.grad(lambda v: jax.nn.softmax(v)[0]))(x[0])
        ok(numpy.allclose(got, wanted, 1e-5, 1e-6), "vmap of grad")


def expressions():
    x, w, b = (jnp.asarray(rng.standard_normal(shape), "float32") for shape in ((3, 5), (5,), ()))
    f = qj.compile("# comment; and = more\n t = x*w;  // a comment\n y = t*t*x + b; z = t > 0")
    arrays = [as_numpy(each) for each in (x, w, b)]
    wanted = f.op(*[dict(zip("xwb", arrays))[name] for name in f.op.inputs])
    got = jax.jit(lambda x, w, b: f(x=x, w=w, b=b))(x, w, b)
    ok(all(as_numpy(g).tobytes() == t.tobytes() for g, t in zip(got, wanted)) and len(got) == 3, "an expression of three results")
    loss = lambda x, w, b: f(x=x, w=w, b=b)[1].sum() + f(x=x, w=w, b=b)[0].sum() * 2
    theirs = lambda x, w, b: ((x * w) ** 2 * x + b).sum() + (x * w).sum() * 2
    got, wanted = (jax.jit(jax.grad(each, (0, 1, 2)))(x, w, b) for each in (loss, theirs))
    ok(all(g.shape == t.shape and numpy.allclose(g, t, 1e-4, 1e-4) for g, t in zip(got, wanted)), "  its derivative")
    cube = qj.compile("param a; x*x*x*a")
    got = jax.grad(jax.grad(lambda x: cube(x, a=2)))(jnp.float32(1.5))
    is_(float(got), 18.0, "a second derivative, of what has no ops")
    if "sum" in KNOWN and "exp" in KNOWN and "max" in KNOWN:
        soft = qj.compile("e = exp(x - max(x, axis=-1)); y = e / sum(e, axis=-1)")
        got = jax.grad(lambda x: (soft(x)[1] * w).sum())(x)
        ok(numpy.allclose(got, jax.grad(lambda x: (jax.nn.softmax(x) * w).sum())(x), 1e-4, 1e-5), "of an expression that reduces")
        total = qj.compile("s = sum(x*w, axis=1)")
        got = jax.grad(lambda x, w: (total(x, w) * jnp.arange(3.0)).sum(), (0, 1))(x, w)
        wanted = jax.grad(lambda x, w: ((x * w).sum(1) * jnp.arange(3.0)).sum(), (0, 1))(x, w)
        ok(all(numpy.allclose(g, t, 1e-4, 1e-4) for g, t in zip(got, wanted)), "of one with a reduced result")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t875.lua")
        with open(path, "w") as file:
            file.write('unary "acme.cubed" { doc = "x*x*x.", dtypes = floating, params = { by = 1 }, body = [[ x * x * x * by ]], '
                       'ulp = { f32 = 4, f64 = 4 } }\n')
        try:
            cubed, = qj.load_spec(path)
        except NotImplementedError as error:
            diag(error)
            return
        got = jax.jit(lambda x: (cubed(x, by=2.0), jax.grad(lambda x: cubed(x, by=2.0).sum())(x)))(x)
        ok(as_numpy(got[0]).tobytes() == cubed.op(arrays[0], by=2.0).tobytes() and numpy.allclose(got[1], 6 * x * x, 1e-5), "an op of a spec")
        context = quern.Context(jit="off")
        mine, = qj.load_spec(path, context)
        is_(float(jax.grad(lambda x: mine(x))(jnp.float32(2))), 12.0, "of a context's spec")


def dtypes():
    whole = jnp.arange(6, dtype="int32").reshape(2, 3)
    is_([str(y.dtype) for y in (qj.add(whole, whole), qj.divide(whole, 2), qj.add(jnp.ones(2, "bfloat16"), 0.1))],
        ["int32", "float64", "bfloat16"], "dtypes with 64 bits; numbers are weak")
    is_(str(qj.add(jnp.ones(2, "float16"), jnp.float64(2)).dtype), "float64", "an array of 0 dimensions is not")
    is_(str(jax.jit(qj.add)(jnp.ones(2, "float16"), 2.0).dtype), "float16", "but a number that jit has made an array is")
    jax.config.update("jax_enable_x64", False)
    try:
        got = [qj.divide(whole, 2), qj.add(whole, 0.5)] + ([qj.sum(whole)] if "sum" in KNOWN else [])
        is_([str(y.dtype) for y in got], ["float32", "float32", "int32"][:len(got)], "without: 64-bit results are stored in 32")
        is_([y.tolist() for y in got], [[[0, 0.5, 1], [1.5, 2, 2.5]], [[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]], 15][:len(got)], "  the same values")
        raises(TypeError, lambda: qj.astype(whole, dtype="float64"), "  and asking for them is an error", "jax_enable_x64")
    finally:
        jax.config.update("jax_enable_x64", True)
    is_(qj.add(jnp.ones((0, 3)), 1).shape, (0, 3), "no elements")
    is_(float(qj.add(jnp.float32(1), jnp.float32(2))), 3.0, "no dimensions")
    is_(float(qj.add(1, 2.5)), 3.5, "numbers alone")
    ok(numpy.array_equal(jax.jit(lambda x: qj.add(x, 1), donate_argnums=0)(jnp.zeros(1000)), numpy.ones(1000)), "a donated operand")
    both = jax.jit(lambda x: qj.multiply(qj.add(x.T, x), x[::-1]))(jnp.arange(9.0).reshape(3, 3))
    x = numpy.arange(9.0).reshape(3, 3)
    ok(numpy.array_equal(both, (x.T + x) * x[::-1]), "transposed and reversed operands")


def errors():
    x = jnp.ones((2, 3))
    raises(ValueError, lambda: qj.add(x, jnp.ones(4)), "shapes", "add: ")
    raises(TypeError, lambda: jax.jit(qj.bitwise_and)(x, x) if "bitwise_and" in KNOWN else qj.gelu(x, y=1), "dtypes")
    raises(TypeError, lambda: qj.add(x), "an input that is missing", "add: input 2 (y) is missing")
    raises(TypeError, lambda: qj.add(x, x, out=x), "out=", "JAX's arrays do not change")
    raises(TypeError, lambda: quern.add(x, x, out=x), "  nor by quern.add", "are not written into")
    raises(TypeError, lambda: jax.jit(lambda x, a: qj.compile("param a; x*a")(x, a=a))(x, 2.0), "a traced parameter", "static_argnames")
    raises(TypeError, lambda: qj.add(x, "text"), "what is no array", "add: ")
    raises(AttributeError, lambda: qj.geluu, "an unknown name", "did you mean")
    raises(AttributeError, lambda: qj.arange, "what JAX has itself", "use jax.numpy")
    raises(TypeError, lambda: jax.jvp(lambda x: qj.add(x, 1), (x,), (x,)), "no forward mode", "custom_vjp")
    raises((NotImplementedError, ValueError), lambda: jax.grad(jax.grad(lambda x: qj.gelu(x)))(jnp.float32(1)), "a second derivative",
           "gelu_backward: it has no derivative")
    if "compress" in KNOWN:
        raises(NotImplementedError, lambda: qj.op("compress")(x > 0, x), "a shape that depends on values", "depends on values")
    if "nextafter" in KNOWN:
        raises(NotImplementedError, lambda: jax.grad(lambda x: qj.nextafter(x, 2.0))(jnp.float32(1)), "no derivative", "nextafter: it has no")
    if "greater" in KNOWN:
        got = jax.grad(lambda x: jnp.where(qj.greater(x, 0.5), x, 0.0).sum())(x)
        ok(numpy.array_equal(got, numpy.ones((2, 3))), "through a comparison there is none")
    gone = jax.ffi.ffi_call("quern", jax.ShapeDtypeStruct((2,), "float32"))
    for more, part in (({"op": "op no_such_op"}, "no_such_op"), ({}, "no attribute op"), ({"op": "here 00 swish"}, "another process"),
                       ({"op": "op add"}, "add: 1 operands and 1 results, expected 2 and 1"), ({"op": "expression y ="}, "expression"),
                       ({"op": "op gelu", "params": numpy.zeros(4, "int64")}, "gelu: an operand or the attribute params")):
        raises(Exception, lambda: jax.block_until_ready(gone(jnp.ones(2, "float32"), **more)), "a call by hand: {}".format(more), part)


def caches_and_threads():
    traced = []

    def f(x):
        traced.append(1)
        return qj.gelu(qj.add(x, x))
    f = jax.jit(f)
    x = jnp.asarray(rng.standard_normal(100000), "float32")
    wanted = as_numpy(f(x)).tobytes()
    f(x)
    f(x + 0)
    is_(len(traced), 1, "jit traces once")
    results = []

    def work():
        for _ in range(10):
            results.append(as_numpy(f(x)).tobytes() == wanted and as_numpy(qj.gelu(qj.add(x, x))).tobytes() == wanted)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ok(all(results) and len(results) == 40, "four threads")
    by_hand = jax.ffi.ffi_call("quern", jax.ShapeDtypeStruct((2,), "float32"))
    got = by_hand(jnp.asarray([1, 2], "float32"), op="expression y = x*x + 875")
    is_(got.tolist(), [876, 879], "a program that another process has traced: its text is compiled")


# Ours, theirs; fields, ours and theirs.
STRUCTS = {
    ("xla_extension", "XLA_FFI_Extension_Base"): "size struct_size type type next next",
    ("xla_version", "XLA_FFI_Api_Version"): "size struct_size extension extension_start major major_version minor minor_version",
    ("xla_metadata", "XLA_FFI_Metadata"): "size struct_size version api_version traits traits",
    ("xla_metadata_extension", "XLA_FFI_Metadata_Extension"): "base extension_base metadata metadata",
    ("xla_buffer", "XLA_FFI_Buffer"): "size struct_size extension extension_start dtype dtype data data rank rank dims dims",
    ("xla_span", "XLA_FFI_ByteSpan"): "text ptr n len",
    ("xla_array", "XLA_FFI_Array"): "dtype dtype n size items data",
    ("xla_list", "XLA_FFI_Args"): "size struct_size extension extension_start n size types types items args",
    ("xla_list ", "XLA_FFI_Rets"): "size struct_size extension extension_start n size types types items rets",
    ("xla_attributes", "XLA_FFI_Attrs"): "size struct_size extension extension_start n size types types names names items attrs",
    ("xla_error_args", "XLA_FFI_Error_Create_Args"): "size struct_size extension extension_start message message code errc",
    ("xla_error_destroy_args", "XLA_FFI_Error_Destroy_Args"): "size struct_size extension extension_start error error",
    ("xla_stream_args", "XLA_FFI_Stream_Get_Args"): "size struct_size extension extension_start execution ctx stream stream",
    ("xla_ordinal_args", "XLA_FFI_DeviceOrdinal_Get_Args"): "size struct_size extension extension_start execution ctx ordinal device_ordinal",
    ("xla_allocate_args", "XLA_FFI_DeviceMemory_Allocate_Args"):
        "size struct_size extension extension_start execution ctx bytes size alignment alignment data data",
    ("xla_free_args", "XLA_FFI_DeviceMemory_Free_Args"): "size struct_size extension extension_start execution ctx bytes size data data",
    ("xla_api", "XLA_FFI_Api"):
        "size struct_size extension extension_start version api_version internal internal_api error_create XLA_FFI_Error_Create error_destroy "
        "XLA_FFI_Error_Destroy stream_get XLA_FFI_Stream_Get device_allocate XLA_FFI_DeviceMemory_Allocate device_free "
        "XLA_FFI_DeviceMemory_Free ordinal_get XLA_FFI_DeviceOrdinal_Get",
    ("xla_frame", "XLA_FFI_CallFrame"):
        "size struct_size extension extension_start api api execution ctx stage stage in args out rets attributes attrs",
}
# Of these theirs may be larger: versions append.
GROWING = ("xla_api", "xla_frame", "xla_metadata")
CODES = {"METADATA": "Extension_Metadata", "ARG_BUFFER": "ArgType_BUFFER", "ATTR_ARRAY": "AttrType_ARRAY", "ATTR_STRING": "AttrType_STRING",
         "EXECUTE": "ExecutionStage_EXECUTE", "INVALID_ARGUMENT": "Error_Code_INVALID_ARGUMENT", "NOT_FOUND": "Error_Code_NOT_FOUND",
         "RESOURCE_EXHAUSTED": "Error_Code_RESOURCE_EXHAUSTED", "UNIMPLEMENTED": "Error_Code_UNIMPLEMENTED", "INTERNAL": "Error_Code_INTERNAL"}
DTYPES = ("PRED S8 S16 S32 S64 U8 U16 U32 U64 F16 F32 F64 C64 BF16 C128 F8E5M2 F8E4M3FN F8E4M3B11FNUZ F8E5M2FNUZ F8E4M3FNUZ F8E4M3 F8E3M4 "
          "F8E8M0FNU").split()


def header():
    lines = ["#include <xla/ffi/api/c_api.h>", '#include "xla/xla_ffi.h"',
             "_Static_assert(XLA_MAJOR == XLA_FFI_API_MAJOR && XLA_MINOR <= XLA_FFI_API_MINOR, \"version\");"]
    n = 0
    for (ours, theirs), fields in STRUCTS.items():
        ours, words = ours.strip(), fields.split()
        lines.append("_Static_assert(sizeof({}) {} sizeof({}), \"{}\");".format(ours, "<=" if ours in GROWING else "==", theirs, theirs))
        for mine, its in zip(words[::2], words[1::2]):
            n += 1
            lines.append("_Static_assert(offsetof({0}, {1}) == offsetof({2}, {3}) && sizeof((({0} *)0)->{1}) {4} sizeof((({2} *)0)->{3}), "
                         "\"{2}.{3}\");".format(ours, mine, theirs, its, "=="))
    for mine, its in dict(CODES, **{each: "DataType_" + each for each in DTYPES}).items():
        lines.append("_Static_assert((int)XLA_{} == (int)XLA_FFI_{}, \"{}\");".format(mine, its, its))
    source = os.path.join(os.environ["QUERN_SOURCE_DIR"], "python", "src")
    command = [os.environ.get("CC", "cc"), "-std=c11", "-fsyntax-only", "-isystem", jax.ffi.include_dir(), "-I" + source, "-x", "c", "-"]
    try:
        done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True)
    except FileNotFoundError:
        diag("jaxlib's header is not compared: there is no C compiler")
        return
    ok(done.returncode == 0, "{} fields of jaxlib's c_api.h are where ours are".format(n))
    if done.returncode:
        diag(done.stderr[-3000:])
    wrong = "\n".join(lines).replace("offsetof(xla_buffer, data)", "offsetof(xla_buffer, dims)")
    done = subprocess.run(command, input=wrong + "\n", capture_output=True, text=True)
    ok("XLA_FFI_Buffer.data" in done.stderr and done.returncode, "  and one that is elsewhere is seen")


def by_frame():
    """The handlers by themselves, in a call that is made here word by word: what they ask XLA for, on CUDA too, without a device."""
    asked, keep = [], []
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))

    def words(*values):
        keep.append((ctypes.c_int64 * len(values))(*[ctypes.addressof(v) if isinstance(v, ctypes.Array) else v for v in values]))
        return keep[-1]

    def error_create(args):
        asked.append("error: " + ctypes.string_at(args[2]).decode())
        return 1

    def stream_get(args):
        asked.append("stream")
        args[3] = 2
        return None

    def ordinal_get(args):
        asked.append("ordinal")
        args[3] = 0
        return None

    def callback(f):
        keep.append(function(f))
        return ctypes.cast(keep[-1], ctypes.c_void_p).value

    def span(text):
        keep.append(ctypes.create_string_buffer(text.encode()))
        return words(ctypes.addressof(keep[-1]), len(text))

    api = [0] * 24
    api[0], api[6], api[10], api[23] = 24 * 8, callback(error_create), callback(stream_get), callback(ordinal_get)
    api = words(*api)
    items = [numpy.asarray(each, "float32") for each in ([1, 2, 3], [10, 20, 30], [0, 0, 0])]

    def run(platform, key, n_in=2, extent=3, stage=3):
        asked.clear()
        buffers = [words(48, 0, 11, x.ctypes.data, 1, words(extent)) for x in items]
        kinds = (ctypes.c_int32 * 4)(1, 1, 1, 1)
        of_string = (ctypes.c_int32 * 1)(4)
        keep.extend((kinds, of_string))
        frame = words(176, 0, api, 0, stage, 40, 0, n_in, kinds, words(*buffers[:2]), 40, 0, 1, kinds, words(buffers[2]),
                      48, 0, 1, of_string, words(span("op")), words(span(key)), 0)
        handler = ctypes.pythonapi.PyCapsule_GetPointer
        handler.restype, handler.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        capsule = quern._quern._xla_target(platform)
        return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(handler(capsule, b"xla._CUSTOM_CALL_TARGET"))(ctypes.addressof(frame))

    is_((run("cpu", "op add", stage=1), items[2].tolist()), (None, [0, 0, 0]), "by hand: in another stage nothing is done")
    is_((run("cpu", "op add"), items[2].tolist(), asked), (None, [11, 22, 33], []), "  a call")
    is_((run("cpu", "op add", n_in=1), asked), (1, ["error: add: 1 operands and 1 results, expected 2 and 1"]), "  a wrong one")
    run("CUDA", "op add", extent=0)
    is_(asked[:2], ["stream", "ordinal"], "  on CUDA XLA's stream and device are asked for")


every_op()
every_derivative()
every_dtype()
broadcast()
under_vmap()
expressions()
dtypes()
errors()
caches_and_threads()
header()
by_frame()
done_testing()
