# SPDX-License-Identifier: Apache-2.0
"""The cases of gpu.py: formulas, dtypes, shapes and strides; and references, by Python's floats for some elements, and by
PyTorch for all where it is installed."""
import math
import random

from gpu_driver import DTYPES, pack, unpack

SIZE = {name: bits // 8 for name, (_, bits) in DTYPES.items()}
EXPRESSIONS = {"add": "y = a + b", "scale": "y = a * b", "bias_gelu": "y = gelu(a + b)", "gelu": "y = gelu(a * b + c) * d",
               "dot": "y = sum(a * b)", "logsumexp": "y = log(sum(exp(a - max(a, axis=-1)), axis=-1)) + max(a, axis=-1)",
               "scan expression": "y = cumulative_sum(a * b, axis=-1) * b"}
HOLD_CONTIGUOUS, HOLD_STRIDED, HOLD_TRANSPOSED = 0.95, 0.90, 0.80  # of a copy's bandwidth
# Ops that reduce or scan, by kind: the op, and its axes as bits; None: an expression that reduces.
REDUCTIONS = {"sum": ("sum", -1), "sum of rows": ("sum", 2), "sum of columns": ("sum", 1), "softmax": ("softmax", 2), "dot": None,
              "logsumexp": None, "scan": ("cumulative_sum", 1), "scan of rows": ("cumulative_sum", 2), "scan of columns": ("cumulative_sum", 1),
              "cummax of rows": ("cummax", 2), "scan backward": ("cumulative_sum_backward", 2), "scan expression": None}
# A long scan reads twice what a copy reads once: 60 % of the bandwidth are 40 % of a copy's.
HOLD_SUM, HOLD_SOFTMAX, HOLD_LONG_ROWS, HOLD_SCAN, HOLD_LONG_SCAN = 0.90, 0.85, 0.60, 0.60, 0.40


def gelu(x):
    return 0.5 * x * (1 + math.erf(x * math.sqrt(0.5)))


REFERENCES = {"add": lambda a, b: a + b, "scale": lambda a, b: a * b, "bias_gelu": lambda a, b: gelu(a + b),
              "gelu": lambda a, b, c, d: gelu(a * b + c) * d}
# The error allowed for results of each dtype, relative to 1 + |result|: one rounding, and PyTorch's own errors.
TOLERANCE = {"f32": 4e-6, "f16": 1.1e-3, "bf16": 8.5e-3}


class Layout:
    """An array without memory; strides in elements."""

    def __init__(self, dtype, shape, strides=None, storage=None):
        self.dtype, self.shape = dtype, tuple(shape)
        if strides is None:
            strides = [math.prod(shape[k + 1:]) for k in range(len(shape))]
        self.strides = tuple(strides)
        self.storage = storage or math.prod(shape)  # elements
        self.bytes = math.prod(shape) * SIZE[dtype]


class Case:
    """more: further outputs, which are not looked at."""

    def __init__(self, name, kind, hold, inputs, output, in_small=True, more=()):
        self.name, self.kind, self.hold, self.inputs, self.output, self.in_small = name, kind, hold, inputs, output, in_small
        self.more = more
        self.bytes = sum(x.bytes for x in [*inputs, output, *more])


def sliced(dtype, rows, columns, pitch):
    return Layout(dtype, (rows, columns), (pitch, 1), rows * pitch)


def transposed(dtype, rows, columns):
    return Layout(dtype, (rows, columns), (1, rows), rows * columns)


def make_cases(n, is_small):
    """n: bytes of the larger arrays; all are far larger than an L2 unless is_small."""
    side = 1 << (int(math.log2(n // 4)) // 2)  # of a square of f32
    cases = []
    for dtype in ("f32", "f16", "bf16"):
        flat = Layout(dtype, (n // SIZE[dtype],))
        cases.append(Case(f"add {dtype}", "add", HOLD_CONTIGUOUS, [flat] * 2, flat, dtype == "f32"))
    for dtype in ("f32", "f16", "bf16"):
        flat = Layout(dtype, (n // SIZE[dtype],))
        cases.append(Case(f"gelu(a*b+c)*d {dtype}", "gelu", HOLD_CONTIGUOUS, [flat] * 4, flat, dtype == "bf16"))
    for dtype in ("f32", "f16", "bf16"):
        rows = side * 4 // SIZE[dtype]
        square = Layout(dtype, (rows, side))
        cases.append(Case(f"gelu(a + row) {dtype}", "bias_gelu", HOLD_STRIDED, [square, Layout(dtype, (side,))], square,
                          dtype == "f32"))
        cases.append(Case(f"a * column {dtype}", "scale", HOLD_STRIDED, [square, Layout(dtype, (rows, 1), (1, 1))], square,
                          dtype == "f16"))
    for dtype in ("f32", "f16", "bf16"):
        rows = side * 4 // SIZE[dtype]
        square = Layout(dtype, (rows, side))
        cases.append(Case(f"a.T + b {dtype}", "add", HOLD_TRANSPOSED, [transposed(dtype, rows, side), square], square,
                          dtype == "f32"))
    mixed = n // 4
    cases.append(Case("f16 + f32 -> f32", "add", HOLD_STRIDED, [Layout("f16", (mixed,)), Layout("f32", (mixed,))],
                      Layout("f32", (mixed,))))
    cases.append(Case("f16 + bf16 -> f32", "add", HOLD_STRIDED, [Layout("f16", (mixed,)), Layout("bf16", (mixed,))],
                      Layout("f32", (mixed,)), False))
    pitch = 64 if is_small else 1024
    columns, rows = pitch - 24, n // 4 // pitch
    for dtype in ("f32", "f16"):
        part = sliced(dtype, rows, columns, pitch)
        cases.append(Case(f"sliced rows, a[:, :{columns}] + b {dtype}", "add", HOLD_STRIDED, [part, part],
                          Layout(dtype, (rows, columns)), dtype == "f32"))
    cases += reductions(n, side, is_small)
    return [case for case in cases if case.in_small or not is_small]


def reductions(n, side, is_small):
    cases = []
    for dtype in ("f32", "f16"):
        flat = Layout(dtype, (n // SIZE[dtype],))
        cases.append(Case(f"sum of all {dtype}", "sum", HOLD_SUM, [flat], Layout(dtype, ()), False))
    for length in (30, 64, 1024) if not is_small else (64,):  # up to 64: a thread has a row
        rows = Layout("f32", (n // 4 // length, length))
        cases.append(Case(f"sum of rows of {length} f32", "sum of rows", HOLD_SUM, [rows], Layout("f32", rows.shape[:1])))
    if not is_small:
        few = Layout("f32", (30, n // 120))
        cases.append(Case("sum of columns of 30 f32", "sum of columns", HOLD_SUM, [few], Layout("f32", few.shape[1:])))
    cases.append(Case("sum of columns f32", "sum of columns", HOLD_SUM, [Layout("f32", (side, side))], Layout("f32", (side,)), False))
    # Rows of 30: a thread has a row; 1024 are kept in registers, 8192 in shared memory, 32768 not.
    for dtype, length in (("f32", 30), ("f32", 1024), ("f32", 8192), ("bf16", 32768)) if not is_small else (("f32", 64),):
        rows = Layout(dtype, (n // SIZE[dtype] // length, length))
        cases.append(Case(f"softmax of rows of {length} {dtype}", "softmax", HOLD_SOFTMAX, [rows], rows))
    flat = Layout("f32", (n // 8,))
    cases.append(Case("sum(a * b) f32", "dot", HOLD_SUM, [flat, flat], Layout("f32", ())))
    for length in (30, 4096, 12288) if not is_small else (64,):
        rows = Layout("f32", (n // 4 // length, length))
        cases.append(Case(f"log-sum-exp of rows of {length}, an expression, f32", "logsumexp", HOLD_SOFTMAX, [rows],
                          Layout("f32", rows.shape[:1])))
    few = Layout("f32", (4, n // 32))  # in pieces
    cases.append(Case("softmax of 4 rows f32", "softmax", HOLD_LONG_ROWS, [few], few))
    flat = Layout("f32", (n // 8,))
    cases.append(Case("cumulative sum f32", "scan", HOLD_LONG_SCAN, [flat], flat))
    length = 64 if is_small else 4096
    rows = Layout("f32", (n // 8 // length, length))
    cases.append(Case(f"cumulative sum of rows of {length} f32", "scan of rows", HOLD_SCAN, [rows], rows, False))
    cases.append(Case(f"cummax of rows of {length} f32", "cummax of rows", HOLD_SCAN, [rows], rows, True, [Layout("i64", rows.shape)]))
    cases.append(Case(f"derivative of cumulative sum of rows of {length} f32", "scan backward", HOLD_SCAN, [rows], rows))
    cases.append(Case(f"cumulative sum of products times a factor, rows of {length}, an expression, f32", "scan expression", HOLD_SCAN, [rows, rows],
                      rows, False))
    cases.append(Case("cumulative sum of columns f32", "scan of columns", HOLD_LONG_SCAN, [Layout("f32", (side // 2, side))],
                      Layout("f32", (side // 2, side)), False))
    return cases


def launch_case():
    return Case("8 elements, f32", "add", None, [Layout("f32", (8,))] * 2, Layout("f32", (8,)))


# ---- Arrays ----

PERIOD = 997  # a prime: no extent here is a multiple of it
BASE = [(k * 7 % PERIOD) / 400 - 1.2 for k in range(PERIOD)]


class Array:
    """A layout with memory on the device, PyTorch's if it is installed, filled with the k-th pattern."""

    def __init__(self, layout, driver, torch, k):
        self.dtype, self.shape, self.strides, self.driver, self.tensor = layout.dtype, layout.shape, layout.strides, driver, None
        n_bytes = layout.storage * SIZE[layout.dtype]
        self.values = unpack(self.dtype, pack(self.dtype, BASE[131 * k % PERIOD:] + BASE[:131 * k % PERIOD]))
        if torch:
            kind = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i64": torch.int64}[self.dtype]
            flat = torch.empty(layout.storage, dtype=kind, device=f"cuda:{driver.ordinal}")
            self.tensor, self.address = torch.as_strided(flat, self.shape, self.strides), flat.data_ptr()
        else:
            self.address = driver.allocate(n_bytes)
        driver.fill(self.address, n_bytes, pack(self.dtype, self.values))

    def offset(self, index):
        """The offset in elements of an index of the result; this array may be broadcast to its shape."""
        own = index[len(index) - len(self.shape):]
        return sum((i if n > 1 else 0) * s for i, n, s in zip(own, self.shape, self.strides))

    def value(self, index):
        return self.values[self.offset(index) % PERIOD]

    def read(self, index):
        size = SIZE[self.dtype]
        return unpack(self.dtype, self.driver.read(self.address + size * self.offset(index), size))[0]

    def release(self):
        if self.tensor is None:
            self.driver.free(self.address)
        self.tensor = None


class Wrong(Exception):
    pass


def line_sum(array, start, step, n, f):
    """The sum of f over n elements from an offset on, so far apart: of a pattern with a period."""
    cycle = [f(array.values[(start + step * k) % PERIOD]) for k in range(min(n, PERIOD))]
    return n // PERIOD * math.fsum(cycle) + math.fsum(cycle[:n % PERIOD]) if n > PERIOD else math.fsum(cycle)


def reduced(case, x, index, y=None):
    """What a reduction or a scan gives at an index, and the error allowed beside the output's rounding."""
    if case.kind == "dot":
        products = [a * b for a, b in zip(x.values, y.values)]
        cycle, rest = divmod(x.shape[0], PERIOD)
        return (cycle * math.fsum(products) + math.fsum(products[:rest]),
                4e-6 * (cycle * math.fsum(map(abs, products)) + math.fsum(map(abs, products[:rest]))))
    if case.kind in ("scan", "scan of rows", "scan of columns"):
        along = 0 if case.kind == "scan of columns" else len(index) - 1
        start = x.offset(tuple(0 if k == along else i for k, i in enumerate(index)))
        line = (start, x.strides[along], index[along] + 1)
        return line_sum(x, *line, lambda value: value), 4e-6 * line_sum(x, *line, abs)
    if case.kind == "scan backward":
        line = (x.offset(index), x.strides[1], x.shape[1] - index[1])
        return line_sum(x, *line, lambda value: value), 4e-6 * line_sum(x, *line, abs)
    if case.kind == "scan expression":
        products = [x.value((index[0], k)) * y.value((index[0], k)) for k in range(index[1] + 1)]
        return math.fsum(products) * y.value(index), 4e-6 * math.fsum(map(abs, products)) * abs(y.value(index))
    if case.kind == "cummax of rows":
        start = index[0] * x.strides[0]
        return max(x.values[(start + k * x.strides[1]) % PERIOD] for k in range(min(index[1] + 1, PERIOD))), 0
    if case.kind == "logsumexp":
        line = (index[0] * x.strides[0], x.strides[1], x.shape[1])
        return math.log(line_sum(x, *line, math.exp)), 4e-6
    if case.kind == "sum":
        line = (0, 1, x.shape[0])
    elif case.kind == "sum of columns":
        line = (index[0] * x.strides[1], x.strides[0], x.shape[0])
    else:
        line = (index[0] * x.strides[0], x.strides[1], x.shape[1])
    if case.kind != "softmax":
        return line_sum(x, *line, lambda value: value), 4e-6 * line_sum(x, *line, abs)
    top = max(x.values)  # any number near the largest does
    right = math.exp(x.value(index) - top) / line_sum(x, *line, lambda value: math.exp(value - top))
    return right, 4e-6 * right


def check_some(case, inputs, output, n=200):
    """A sample of the elements, with the first and the last."""
    choose = random.Random(5)
    indices = [tuple(0 for _ in output.shape), tuple(d - 1 for d in output.shape)]
    indices += [tuple(choose.randrange(d) for d in output.shape) for _ in range(n)]
    for index in indices:
        got, slack = output.read(index), 0
        if case.kind in REDUCTIONS:
            right, slack = reduced(case, *inputs[:1], index, *inputs[1:])
        else:
            right = REFERENCES[case.kind](*[x.value(index) for x in inputs])
        if not abs(got - right) <= TOLERANCE[output.dtype] * (1 + abs(right)) + slack:
            raise Wrong(f"{got} at {index}, {right} wanted")


def torch_reference(torch, case, inputs):
    """In f32, for all elements."""
    def gelu_of(x):
        return torch.nn.functional.gelu(x)

    if case.kind in REDUCTIONS:
        return torch_reduction(torch, case.kind, *[x.tensor.double() for x in inputs])()
    x = [array.tensor.float() for array in inputs]
    if case.kind == "gelu":
        return gelu_of(x[0] * x[1] + x[2]) * x[3]
    return {"add": lambda: x[0] + x[1], "scale": lambda: x[0] * x[1], "bias_gelu": lambda: gelu_of(x[0] + x[1])}[case.kind]()


def torch_reduction(torch, kind, x, y=None, out=None):
    if kind == "dot":
        return lambda: torch.dot(x, y) if out is None else torch.dot(x, y, out=out)
    if kind == "logsumexp":
        return lambda: torch.logsumexp(x, 1) if out is None else torch.logsumexp(x, 1, out=out)
    if kind == "cummax of rows":
        if out is None:
            return lambda: torch.cummax(x, 1).values
        places = torch.empty(x.shape, dtype=torch.int64, device=x.device)
        return lambda: torch.cummax(x, 1, out=(out, places))
    if kind == "scan backward":
        return lambda: torch.flip(torch.cumsum(torch.flip(x, (1,)), 1), (1,))
    if kind == "scan expression":
        return lambda: torch.cumsum(x * y, 1) * y
    if kind in ("scan", "scan of rows", "scan of columns"):
        axis = 1 if kind == "scan of rows" else 0
        return lambda: torch.cumsum(x, axis) if out is None else torch.cumsum(x, axis, out=out)
    if kind == "softmax":
        return lambda: torch.softmax(x, 1) if out is None else torch.softmax(x, 1, out=out)
    axes = {"sum": (), "sum of rows": (1,), "sum of columns": (0,)}[kind]
    return lambda: torch.sum(x, axes) if out is None else torch.sum(x, axes, out=out)


def check_all(case, tensor, reference):
    dtype = case.output.dtype
    worst = ((tensor.to(reference.dtype) - reference).abs() / (1 + reference.abs())).max().item()
    # PyTorch rounds between operations where its own result is not one kernel: two roundings more.
    if not worst <= 4 * TOLERANCE[dtype]:
        raise Wrong(f"off by {worst:.2g}")
