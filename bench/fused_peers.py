# SPDX-License-Identifier: Apache-2.0
"""The expressions of bench_fused.c in NumExpr, PyTorch, torch.compile, JAX and Numba, each with one thread, in the form that is
fastest there; all on the same memory. Cases that a peer does not support are left out: NumExpr has neither gelu nor erf,
nor f16, and Numba has no f16 on a CPU. JAX makes its results anew. Each function returns the peer's name, its cases by name, and a function that takes
a number, makes a new expression with it, and computes that on 1000 elements."""
import functools
import math

import numpy as np

# name of the case: kind, dtypes of the inputs, their shapes (bench_fused.c has the same)
N5, N7, ROWS = (100000,), (10000000,), (10000, 1000)
CASES = {}
for kind, dtypes in (("light", ["f4"] * 3), ("gelu", ["f4"] * 4), ("chain12", ["f4"] * 3), ("mixed", ["f2", "f4", "f2"])):
    for size, shape in (("1e5", N5), ("1e7", N7)):
        CASES[f"fused_{kind}_{size}"] = kind, dtypes, [shape] * len(dtypes)
CASES["fused_broadcast_1e7"] = "broadcast", ["f4"] * 3, [ROWS, (ROWS[0], 1), (ROWS[1],)]


@functools.lru_cache(maxsize=None)
def array(dtype, shape, which):
    """`which` tells arrays of one dtype and shape apart; the values are those of measure.c."""
    n = math.prod(shape)
    return np.resize(np.array([0.25 + (i % 1000) / 600.0 for i in range(min(n, 1000))]), n).astype(dtype).reshape(shape)


def operands(name):
    """The inputs, then the output."""
    _, dtypes, shapes = CASES[name]
    inputs = [array(dtype, shape, k) for k, (dtype, shape) in enumerate(zip(dtypes, shapes))]
    return inputs + [array("f4", shapes[0], "out")]


def small():
    return [array("f4", (1000,), k) for k in range(3)] + [array("f4", (1000,), "out")]


def numexpr_peer():
    import numexpr as ne
    ne.set_num_threads(1)
    u = "abs((a * b + c) * half - a)"
    texts = {"light": "a * b + c", "broadcast": "a * b + c",
             "chain12": f"(({u} * b + three_halves) * {u} - c) * quarter + a + {u}"}
    constants = {"half": np.float32(0.5), "three_halves": np.float32(1.5), "quarter": np.float32(0.25)}

    def make(text, a, b, c, out):
        names = dict(constants, a=a, b=b, c=c)
        return lambda: ne.evaluate(text, local_dict=names, global_dict={}, out=out)

    cases = {name: make(texts[case[0]], *operands(name)) for name, case in CASES.items() if case[0] in texts}
    return "NumExpr " + ne.__version__, cases, lambda k: make(f"a * b + c + {k} * a", *small())()


def torch_tensors(name):
    import torch
    return [torch.from_numpy(x) for x in operands(name)]


def torch_peer():
    """Into preallocated memory, with addcmul for a * b + c."""
    import torch
    torch.set_num_threads(1)
    gelu = torch._C._nn.gelu  # the one that takes out=

    def light(a, b, c, out):
        return lambda: torch.addcmul(c, a, b, out=out)

    def mixed(a, b, c, out):
        def run():
            torch.mul(a, b, out=out)
            torch.add(out, c, out=out)
        return run

    def of_gelu(a, b, c, d, out):
        def run():
            torch.addcmul(c, a, b, out=out)
            gelu(out, out=out)
            torch.mul(out, d, out=out)
        return run

    def chain12(a, b, c, out):
        u = torch.empty_like(out)

        def run():
            torch.addcmul(c, a, b, out=u)
            torch.mul(u, 0.5, out=u)
            torch.sub(u, a, out=u)
            torch.abs(u, out=u)
            torch.mul(u, b, out=out)
            torch.add(out, 1.5, out=out)
            torch.mul(out, u, out=out)
            torch.sub(out, c, out=out)
            torch.mul(out, 0.25, out=out)
            torch.add(out, a, out=out)
            torch.add(out, u, out=out)
        return run

    makers = {"light": light, "broadcast": light, "mixed": mixed, "gelu": of_gelu, "chain12": chain12}
    cases = {name: makers[case[0]](*torch_tensors(name)) for name, case in CASES.items()}
    return "PyTorch " + torch.__version__, cases, None


def torch_compile_peer():
    import torch
    torch.set_num_threads(1)

    def light(a, b, c, out):
        out.copy_(a * b + c)

    def of_gelu(a, b, c, d, out):
        out.copy_(torch.nn.functional.gelu(a * b + c) * d)

    def chain12(a, b, c, out):
        u = torch.abs((a * b + c) * 0.5 - a)
        out.copy_(((u * b + 1.5) * u - c) * 0.25 + a + u)

    functions = {"light": light, "broadcast": light, "mixed": light, "gelu": of_gelu, "chain12": chain12}

    def make(f, tensors):
        torch._dynamo.config.recompile_limit = 64
        compiled = torch.compile(f, dynamic=False)
        return lambda: compiled(*tensors)

    def fresh(k):
        make(eval(f"lambda a, b, c, out: out.copy_(a * b + c + {k} * a)"), [torch.from_numpy(x) for x in small()])()

    fresh(0.5)  # whether its C++ compiler is there
    return "torch.compile", {name: make(functions[case[0]], torch_tensors(name)) for name, case in CASES.items()}, fresh


def jax_peer():
    """XLA's threads are set by XLA_FLAGS, before this: see run.py."""
    import jax

    def chain12(a, b, c):
        u = abs((a * b + c) * 0.5 - a)
        return ((u * b + 1.5) * u - c) * 0.25 + a + u

    functions = {"light": lambda a, b, c: a * b + c, "gelu": lambda a, b, c, d: jax.nn.gelu(a * b + c, approximate=False) * d,
                 "chain12": chain12}
    functions["mixed"] = functions["broadcast"] = functions["light"]

    def make(f, arrays):
        compiled, inputs = jax.jit(f), [jax.device_put(x) for x in arrays[:-1]]
        return lambda: compiled(*inputs).block_until_ready()

    def fresh(k):
        make(lambda a, b, c: a * b + c + k * a, small())()

    fresh(0.5)
    return "JAX " + jax.__version__, {name: make(functions[case[0]], operands(name)) for name, case in CASES.items()}, fresh


def numba_peer():
    import numba
    half, one, quarter, three_halves, root = (np.float32(x) for x in (0.5, 1, 0.25, 1.5, math.sqrt(0.5)))
    jit = numba.njit(error_model="numpy")

    @jit
    def light(a, b, c, out):
        for i in range(out.size):
            out[i] = a[i] * b[i] + c[i]

    @jit
    def of_gelu(a, b, c, d, out):
        for i in range(out.size):
            u = a[i] * b[i] + c[i]
            out[i] = half * u * (one + math.erf(u * root)) * d[i]

    @jit
    def chain12(a, b, c, out):
        for i in range(out.size):
            u = abs((a[i] * b[i] + c[i]) * half - a[i])
            out[i] = ((u * b[i] + three_halves) * u - c[i]) * quarter + a[i] + u

    @jit
    def broadcast(a, b, c, out):
        for i in range(out.shape[0]):
            for k in range(out.shape[1]):
                out[i, k] = a[i, k] * b[i, 0] + c[k]

    functions = {"light": light, "gelu": of_gelu, "chain12": chain12, "broadcast": broadcast}

    def make(f, tensors):
        return lambda: f(*tensors)

    def fresh(k):
        space = {}
        exec(f"def f(a, b, c, out):\n for i in range(out.size): out[i] = a[i] * b[i] + c[i] + {k} * a[i]", space)
        jit(space["f"])(*small())

    cases = {name: make(functions[case[0]], operands(name)) for name, case in CASES.items() if case[0] in functions}
    return "Numba " + numba.__version__, cases, fresh


PEERS = {"numexpr": numexpr_peer, "torch": torch_peer, "torch.compile": torch_compile_peer, "jax": jax_peer, "numba": numba_peer}
