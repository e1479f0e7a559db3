# SPDX-License-Identifier: Apache-2.0
"""What a transformer block computes beside its matrix products: RMSNorm of a sum, softmax of masked scores, SwiGLU and cross
entropy, each one expression. Checked against f64 and, where it is installed, PyTorch; timed in turn with PyTorch, else with NumPy,
on one thread. The digests are those of the C program, examples/transformer: the same numbers in, the same bits out."""

import os
import statistics
import time
import zlib

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import numpy
import quern

try:
    import torch
except ImportError:
    torch = None

TOKENS, WIDTH, HEADS, HIDDEN, WORDS = 256, 512, 8, 1408, 8192
EPS, SCALE = 1e-5, (WIDTH // HEADS) ** -0.5


# ---- Inputs ----

def drawn(seed, *shape):
    """32-bit numbers that look random."""
    v = (numpy.arange(numpy.prod(shape), dtype="u4") + numpy.uint32(seed << 24)) * numpy.uint32(0x9E3779B1)
    v = (v ^ v >> 15) * numpy.uint32(0x85EBCA77)
    return (v ^ v >> 13).reshape(shape)


def uniform(seed, spread, *shape):
    return (((drawn(seed, *shape) >> 8) * 2.0**-23 - 1) * spread).astype("f4")


operands = dict(
    x=uniform(0, 2, TOKENS, WIDTH), attended=uniform(1, 2, TOKENS, WIDTH), weight=uniform(2, 2, WIDTH),
    scores=uniform(5, 64, HEADS, TOKENS, TOKENS), mask=numpy.tri(TOKENS, dtype=bool),  # a token sees those up to itself
    gate=uniform(8, 8, TOKENS, HIDDEN), up=uniform(9, 2, TOKENS, HIDDEN),
    logits=uniform(11, 8, TOKENS, WORDS), target=(drawn(12, TOKENS, 1) % WORDS).astype("i8"))


# ---- The four parts: in Quern; in NumPy, which has f64 for the exact results; in PyTorch ----

# h = x + attended is an output of its own: the block goes on with it.
TEXTS = {
    "RMSNorm of a sum": f"h = x + attended; y = rms_norm_affine(h, weight, {EPS}, axis=-1)",
    "masked softmax": f"p = softmax(mask ? scores * {SCALE} : -INFINITY, axis=-1)",
    "SwiGLU": "y = swiglu(gate, up)",
    "cross entropy": "loss = cross_entropy(logits, target, axis=-1)",
}


def exp_of_shifted(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted, numpy.exp(shifted)


def plain_rms_norm(x, attended, weight):
    h = (x + attended).astype("f4")
    wide = h.astype(x.dtype)
    return h, wide / numpy.sqrt((wide * wide).mean(-1, keepdims=True) + EPS) * weight


def plain_softmax(mask, scores):
    _, e = exp_of_shifted(numpy.where(mask, scores * SCALE, -numpy.inf))
    return e / e.sum(-1, keepdims=True)


def plain_swiglu(gate, up):
    return gate / (1 + numpy.exp(-gate)) * up


def plain_cross_entropy(logits, target):
    shifted, e = exp_of_shifted(logits)
    return numpy.log(e.sum(-1)) - numpy.take_along_axis(shifted, target, -1)[:, 0]


PLAIN = dict(zip(TEXTS, (plain_rms_norm, plain_softmax, plain_swiglu, plain_cross_entropy)))


def torch_rms_norm(x, attended, weight):
    h = x + attended
    return h, torch.nn.functional.rms_norm(h, (WIDTH,), weight, EPS)


TORCH = dict(zip(TEXTS, (
    torch_rms_norm,
    lambda mask, scores: (scores * SCALE).masked_fill(~mask, -torch.inf).softmax(-1),
    lambda gate, up: torch.nn.functional.silu(gate) * up,
    lambda logits, target: torch.nn.functional.cross_entropy(logits, target[:, 0], reduction="none"))))


# ---- Checks and times ----

def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


def largest_error(results, exact):
    """Of any result; relative to what is exact where that is above 1."""
    pairs = zip(as_tuple(results), exact)
    return max(numpy.max(numpy.abs(numpy.asarray(got) - want) / numpy.maximum(1, numpy.abs(want))) for got, want in pairs)


def microseconds(calls, rounds=15):
    """The median of each call's times, and that of the ratios of the second's to the first's; the calls take turns."""
    times = [[] for _ in calls]
    for _ in range(rounds):
        for call, taken in zip(calls, times):
            start = time.perf_counter_ns()
            call()
            taken.append((time.perf_counter_ns() - start) / 1000)
    ratios = [b / a for a, b in zip(*times)]
    return [statistics.median(taken) for taken in times] + [statistics.median(ratios)]


compiling = quern.Context(jit="sync", threads=1)
interpreting = quern.Context(jit="off", threads=2)
peer = "PyTorch" if torch else "NumPy"
if torch:
    torch.set_num_threads(1)
else:
    print("PyTorch is not installed: beside NumPy")
print(f"{'':18}{'Quern':>10}{peer:>10}   (us)  ratio   error: Quern, {peer:9}digest")
for name, text in TEXTS.items():
    op = compiling.compile(text)
    inputs = {key: operands[key] for key in op.inputs}
    results = op(**inputs)
    exact = as_tuple(PLAIN[name](**{key: x.astype(float) if x.dtype == numpy.float32 else x for key, x in inputs.items()}))
    of_peer = {key: torch.from_numpy(x) for key, x in inputs.items()} if torch else inputs
    function = (TORCH if torch else PLAIN)[name]
    errors = [largest_error(of, exact) for of in (results, function(**of_peer))]
    taken = microseconds((lambda: op(**inputs, out=results), lambda: function(**of_peer)))
    digest = zlib.crc32(as_tuple(results)[-1].tobytes())
    print("{:18}{:10.0f}{:10.0f}{:14.2f}   {:.1e}, {:.1e}         {:08x}".format(name, *taken, *errors, digest))
    assert max(errors) < 2e-6, errors

    # The same bits by the interpreter, on two threads.
    for got, want in zip(as_tuple(interpreting.compile(text)(**inputs)), as_tuple(results)):
        assert got.tobytes() == want.tobytes()
print("the interpreter, on two threads, gives the same bits")
print(f"mean loss {quern.mean(results):.9g}")
