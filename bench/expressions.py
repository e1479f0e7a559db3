#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ten expressions beside NumExpr, Numba, torch.compile and JAX: in the cache (10^5 elements) and out of it (10^7), on one and on two
threads, all called from Python, each into memory of its own that it keeps (JAX allocates its results). The libraries are timed in
turn. Times are medians; the ratio is the median of the best peer's time over Quern's of the same turn.

    python3 bench/expressions.py [--build build] [--rounds 9] [--out bench/results/NAME.md] [FILTER]

Peers that are not installed are left out, and the table says so; a cell is empty where a peer has no such expression."""
import collections
import math
import os
import platform
import statistics
import sys
import time

THREADS = (1, 2)
os.environ["OMP_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = os.environ["NUMEXPR_MAX_THREADS"] = str(max(THREADS))
os.environ.setdefault("QUERN_JIT", "sync")

from timing import call_for, head, machine, median_ns, options_of_command_line, row  # noqa: E402

OPTIONS = options_of_command_line(rounds=9)
sys.path.insert(0, os.path.join(OPTIONS.build, "python"))

import numpy as np  # noqa: E402
import quern  # noqa: E402

SIZES = {"1e5": 100000, "1e7": 10000000}
REST_SECONDS = 0.02  # before a turn on several threads: the last library's threads fall asleep
WAKE_SECONDS = 0.03  # of untimed calls then: this one's wake up

# texts: of Quern; of NumExpr or None; of arrays, for torch (t) and JAX (t is jax.numpy), with f, a table of what they call
# differently; of elements, for Numba. Several outputs are separated by ";".
Case = collections.namedtuple("Case", "name inputs outputs quern numexpr arrays elements")
D1 = "(log(s / k) + 0.065 * t) / (0.3 * sqrt(t))"
CASES = [
    Case("a*b + c", "a:f4 b:f4 c:f4", "f4", "a * b + c", "a * b + c", "a * b + c", "a * b + c"),
    Case("gelu(a*b + c)*d", "a:f4 b:f4 c:f4 d:f4", "f4", "gelu(a * b + c) * d", None, "f.gelu(a * b + c) * d",
         "half * (a * b + c) * (one + erf((a * b + c) * root)) * d"),
    Case("silu(a)*b", "a:f4 b:f4", "f4", "silu(a) * b", "a / (1 + exp(-a)) * b", "f.silu(a) * b", "a / (one + exp(-a)) * b"),
    Case("Black-Scholes f64", "s:f8 k:f8 t:f8", "f8",
         f"0.5 * (s * (1 + erf({D1} * 0.7071067811865476)) - k * exp(-0.02 * t) * (1 + erf(({D1} - 0.3 * sqrt(t)) * "
         "0.7071067811865476)))", None,
         "(lambda d, r: 0.5 * (s * (1 + f.erf(d * 0.7071067811865476)) - k * f.exp(-0.02 * t) * (1 + f.erf((d - 0.3 * r) * "
         "0.7071067811865476))))((f.log(s / k) + 0.065 * t) / (0.3 * f.sqrt(t)), f.sqrt(t))",
         f"0.5 * (s * (1 + erf({D1} * 0.7071067811865476)) - k * exp(-0.02 * t) * (1 + erf(({D1} - 0.3 * sqrt(t)) * "
         "0.7071067811865476)))"),
    Case("Adam", "p:f4 g:f4 m:f4 v:f4", "f4 f4 f4",
         "m2 = 0.9 * m + 0.1 * g; v2 = 0.999 * v + 0.001 * g * g; p2 = p - 0.001 * m2 / (sqrt(v2) + 1e-8)", None,
         "(lambda m2, v2: (m2, v2, p - 0.001 * m2 / (f.sqrt(v2) + 1e-8)))(0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g)", None),
    Case("a*b + c f16", "a:f2 b:f2 c:f2", "f2", "a * b + c", None, "a * b + c", None),
    Case("image u8", "a:u1 b:u1", "u1", "(u8) clip((f32) a * 0.7 + (f32) b * 0.4, 0, 255)", None,
         "f.u8(f.clip(f.f32(a) * 0.7 + f.f32(b) * 0.4, 0, 255))", None),
    Case("mask", "a:f4 b:f4 c:f4", "f4", "a > 0 ? a * b : c", "where(a > 0, a * b, c)", "f.where(a > 0, a * b, c)",
         "a * b if a > 0 else c"),
    Case("sin(a)*cos(b) + tanh(c)", "a:f4 b:f4 c:f4", "f4", "sin(a) * cos(b) + tanh(c)", "sin(a) * cos(b) + tanh(c)",
         "f.sin(a) * f.cos(b) + f.tanh(c)", "sin(a) * cos(b) + tanh(c)"),
    Case("i64 to f64", "a:i8 b:f8", "f8", "(f64) a * b", "a * b", "f.f64(a) * b", "a * b"),
]
OF_CODE = {"f2": "f16", "f4": "f32", "f8": "f64", "u1": "u8", "i8": "i64"}


def operands(case, n):
    """The inputs by name, and the outputs."""
    ins = {}
    for k, word in enumerate(case.inputs.split()):
        name, code = word.split(":")
        numbers = np.arange(n, dtype="i8") * (7919 + 2 * k) % 10007 / 10006
        low, high = (0, 255) if code in ("u1", "i8") else (0.1, 2) if case.name in ("Black-Scholes f64", "Adam") else (-1, 1)
        ins[name] = (low + (high - low) * numbers).astype(code)
    return ins, [np.empty(n, code) for code in case.outputs.split()]


# ---- The libraries: each gives a function that computes a case, or None ----

def quern_peer():
    contexts = {threads: quern.Context(threads=threads) for threads in THREADS}

    def make(case, ins, outs, threads):
        op = contexts[threads].compile(case.quern)
        values, out = list(ins.values()), outs[0] if len(outs) == 1 else tuple(outs)
        return lambda: op(*values, out=out)
    return "Quern", make


def numexpr_peer():
    import numexpr

    def make(case, ins, outs, threads):
        def run():
            numexpr.set_num_threads(threads)
            numexpr.evaluate(case.numexpr, local_dict=ins, global_dict={}, out=outs[0], casting="unsafe")
        return case.numexpr and run
    return "NumExpr " + numexpr.__version__, make


def numba_peer():
    import numba

    def make(case, ins, outs, threads):
        if not case.elements:
            return None
        space = {name: getattr(math, name) for name in ("exp", "log", "sqrt", "sin", "cos", "tanh", "erf")}
        space.update(half=np.float32(0.5), one=np.float32(1), root=np.float32(math.sqrt(0.5)))
        exec(f"def element({', '.join(ins)}): return {case.elements}", space)
        types = [numba.from_dtype(a.dtype) for a in (*outs, *ins.values())]
        compiled = numba.vectorize([types[0](*types[1:])], target="parallel" if threads > 1 else "cpu")(space["element"])
        values = list(ins.values())
        return lambda: compiled(*values, out=outs[0])
    return "Numba " + numba.__version__, make


class Table:
    def __init__(self, **functions):
        self.__dict__.update(functions)


def torch_peer():
    import torch
    f = Table(gelu=torch.nn.functional.gelu, silu=torch.nn.functional.silu, erf=torch.erf, exp=torch.exp, log=torch.log,
              sqrt=torch.sqrt, sin=torch.sin, cos=torch.cos, tanh=torch.tanh, where=torch.where, clip=torch.clip,
              u8=lambda x: x.to(torch.uint8), f32=lambda x: x.to(torch.float32), f64=lambda x: x.to(torch.float64))

    def make(case, ins, outs, threads):
        torch.set_num_threads(threads)
        names = list(ins)
        copies = "; ".join(f"o{k}.copy_(r{k})" for k in range(len(outs)))
        results = ", ".join(f"r{k}" for k in range(len(outs)))
        space = {"f": f}
        exec(f"def g({', '.join(names)}, {', '.join(f'o{k}' for k in range(len(outs)))}):\n {results} = {case.arrays}\n {copies}", space)
        tensors = [torch.from_numpy(a) for a in (*ins.values(), *outs)]
        torch._dynamo.reset()
        compiled = torch.compile(space["g"], dynamic=False)

        def run():
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            compiled(*tensors)
        return run
    return "torch.compile " + torch.__version__, make


def jax_peer():
    import jax
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    f = Table(gelu=lambda x: jax.nn.gelu(x, approximate=False), silu=jax.nn.silu, erf=jax.scipy.special.erf, exp=jnp.exp,
              log=jnp.log, sqrt=jnp.sqrt, sin=jnp.sin, cos=jnp.cos, tanh=jnp.tanh, where=jnp.where, clip=jnp.clip,
              u8=lambda x: x.astype("u1"), f32=lambda x: x.astype("f4"), f64=lambda x: x.astype("f8"))

    def make(case, ins, outs, threads):
        if threads != len(os.sched_getaffinity(0)):  # XLA takes what cores there are
            return None
        compiled = jax.jit(eval(f"lambda {', '.join(ins)}: {case.arrays}", {"f": f}))
        values = [jnp.asarray(a) for a in ins.values()]
        return lambda: jax.block_until_ready(compiled(*values))
    return "JAX " + jax.__version__, make


def load_peers():
    peers, missing = [quern_peer()], []
    for load in (numexpr_peer, numba_peer, torch_peer, jax_peer):
        try:
            peers.append(load())
        except ImportError as e:
            missing.append(e.name)
    return peers, missing


# ---- Times ----

def turns(case, n, threads, peers, rounds):
    ins, outs = operands(case, n)
    calls = [(name, call) for name, make in peers for call in [make(case, ins, outs, threads)] if call]
    times = collections.defaultdict(list)
    for _ in range(rounds):
        for name, call in calls:
            if threads > 1:
                time.sleep(REST_SECONDS)
            call_for(WAKE_SECONDS, call)
            times[name].append(median_ns(call, 5))
    return times


def ratio_of(times):
    best = [min(of_peers) for of_peers in zip(*(own for name, own in times.items() if name != "Quern"))]
    return statistics.median(peer / own for peer, own in zip(best, times["Quern"])) if best else None


def main():
    peers, missing = load_peers()
    names = [name for name, _ in peers]
    out = [f"{machine(OPTIONS.note)} Python {platform.python_version()}. Medians of {OPTIONS.rounds} turns.",
           "us a call; the ratio is the best peer's time over Quern's: above 1 Quern is quicker.", ""]
    if missing:
        out += ["Not there, so not beside it: " + ", ".join(missing) + ".", ""]
    ratios = []
    for threads in THREADS:
        out += [f"## {'One thread' if threads == 1 else f'{threads} threads'}", "", *head(["expression", "elements", *names, "ratio"])]
        for case in CASES:
            for size, n in SIZES.items():
                if OPTIONS.filter not in f"{case.name} {size}":
                    continue
                times = turns(case, n, threads, peers, OPTIONS.rounds)
                ratio = ratio_of(times)
                ratios += [ratio] if ratio else []
                cells = [f"{statistics.median(times[name]) / 1e3:.1f}" if name in times else "" for name in names]
                out.append(row([case.name, size, *cells, f"{ratio:.2f}" if ratio else ""]))
        out.append("")
    if ratios:
        out += [f"{len(ratios)} cases, {sum(r < 0.95 for r in ratios)} behind 0.95, the least {min(ratios):.2f}, geometric mean "
                f"{math.exp(statistics.mean(map(math.log, ratios))):.2f}.", ""]
    text = "\n".join(out)
    sys.stdout.write(text)
    if OPTIONS.out:
        with open(OPTIONS.out, "w") as f:
            f.write(text)


main()
