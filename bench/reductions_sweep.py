# SPDX-License-Identifier: Apache-2.0
"""`reductions.py --all`: every op that reduces or scans and that NumPy or PyTorch has, too, over dtypes, shapes and axes, on one thread,
about 10^5 elements. All allocate their results. A ratio is the quickest peer's time over Quern's, the median of the turns' ratios; in a
turn each calls several times in a row, and the best of two such times counts. A peer's first result is compared with Quern's."""
import collections
import math
import statistics
import time
import warnings

import numpy as np
import quern

LIMIT = 0.95
TURNS = 7
FEWEST_TURNS = 2      # of a peer that is FAR slower
FAR = 4.0
GROUP_NS = 2e5        # of a time that counts
MOST_CALLS = 300
FLOATS, NUMBERS, ALL = ("f32", "f64", "f16"), ("f32", "f64", "f16", "i32", "i64", "i8"), ("f32", "f64", "f16", "i32", "i64", "i8", "bool")
CODES = {"f32": "f4", "f64": "f8", "f16": "f2", "i32": "i4", "i64": "i8", "i8": "i1", "bool": "?"}
# Shape, axis
PLACES = (((100000,), 0), ((2000,), 0), ((333, 300), 1), ((333, 300), 0), ((4000, 20), 1), ((4000, 20), 0), ((20000, 5), 1), ((20, 4000), 0),
          ((5, 20000), 0), ((50, 40, 50), 1))

# op, dtypes, the names in NumPy and in torch or torch.linalg; None: it is not there
Op = collections.namedtuple("Op", "name dtypes numpy torch")
OPS = (
    Op("sum", ALL, "sum", "sum"), Op("prod", NUMBERS, "prod", "prod"), Op("mean", FLOATS, "mean", "mean"), Op("var", FLOATS, "var", "var"),
    Op("std", FLOATS, "std", "std"), Op("max", NUMBERS, "max", "amax"), Op("min", NUMBERS, "min", "amin"), Op("argmax", NUMBERS, "argmax", "argmax"),
    Op("argmin", NUMBERS, "argmin", "argmin"), Op("any", ALL, "any", "any"), Op("all", ALL, "all", "all"),
    Op("count_nonzero", ALL, "count_nonzero", "count_nonzero"), Op("ptp", NUMBERS, "ptp", None), Op("aminmax", NUMBERS, None, "aminmax"),
    Op("nansum", FLOATS, "nansum", "nansum"), Op("nanmean", FLOATS, "nanmean", "nanmean"), Op("nanvar", FLOATS, "nanvar", None),
    Op("nanmax", FLOATS, "nanmax", None), Op("nanmin", FLOATS, "nanmin", None), Op("nanargmax", FLOATS, "nanargmax", None),
    Op("nanargmin", FLOATS, "nanargmin", None), Op("logsumexp", FLOATS, None, "logsumexp"), Op("vector_norm", FLOATS, None, "vector_norm"),
    Op("softmax", FLOATS, None, "softmax"), Op("log_softmax", FLOATS, None, "log_softmax"), Op("cumulative_sum", NUMBERS, "cumsum", "cumsum"),
    Op("cumulative_prod", NUMBERS, "cumprod", "cumprod"), Op("cummax", NUMBERS, None, "cummax"), Op("cummin", NUMBERS, None, "cummin"),
    Op("logcumsumexp", FLOATS, None, "logcumsumexp"),
)


def values(op, dtype, shape):
    """From 0 to 3; for products around 1."""
    numbers = np.random.default_rng(7).random(shape)
    if "prod" in op.name and dtype in FLOATS:
        return (1 + (numbers - 0.5) * 1e-3).astype(CODES[dtype])
    return (numbers * 3).astype(CODES[dtype])


def peers_of(op, x, axis, torch):
    """The calls of the peers, by name. A peer that refuses the array has none."""
    calls = {}
    if op.numpy and x.dtype != np.float16:  # a row of f16 is summed otherwise
        function = getattr(np, op.numpy)
        calls["NumPy"] = lambda: function(x, axis=axis)
    if op.torch and torch:
        tensor = torch.from_numpy(x)
        one = getattr(torch, op.torch, None) or getattr(torch.linalg, op.torch)
        words = {"dim": axis, "correction": 0} if op.name in ("var", "std") else {"dim": axis}
        calls["PyTorch"] = lambda: one(tensor, **words)
    for who, call in list(calls.items()):
        try:
            call()
        except (RuntimeError, TypeError, ValueError):  # not of this dtype
            del calls[who]
    return calls


def first_of(result):
    """The first of several results, as an array of f64."""
    return np.asarray(result[0] if isinstance(result, tuple) else result).astype("f8")


def is_same(ours, theirs, x):
    """To the digits that sums in any order have."""
    digits = {2: 2e-2, 4: 1e-3, 8: 1e-9}[x.dtype.itemsize] if x.dtype.kind == "f" else 0
    return np.allclose(first_of(ours), first_of(theirs), rtol=digits, atol=digits)


def time_of(call, calls):
    start = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return (time.perf_counter_ns() - start) / calls


def measure(mine, peers):
    """Nanoseconds of a call, and by peer the ratio."""
    calls = int(min(max(GROUP_NS / max(time_of(mine, 2), 100), 3), MOST_CALLS))
    ratios, times = collections.defaultdict(list), []
    for _ in range(TURNS):
        mine()
        times.append(min(time_of(mine, calls) for _ in range(2)))
        for who, call in peers.items():
            if len(ratios[who]) < FEWEST_TURNS or min(ratios[who]) < FAR:
                ratios[who].append(min(time_of(call, max(calls // 2, 1)) for _ in range(2)) / times[-1])
    return statistics.median(times), {who: statistics.median(r) for who, r in ratios.items()}


def table(context, torch, wanted, head, row):
    """The lines of the table of what is behind, and of the summary. wanted: a part of the cases' names."""
    warnings.simplefilter("ignore")
    lines, best, differ = head(["case", "Quern, ns an element", "NumPy/", "PyTorch/"]), [], []
    for op in OPS:
        function = context.op(op.name)
        for dtype in op.dtypes:
            for shape, axis in PLACES:
                name = f"{op.name} {dtype} {'x'.join(map(str, shape))} axis {axis}"
                if wanted not in name:
                    continue
                x = values(op, dtype, shape)
                peers = peers_of(op, x, axis, torch)
                if not peers:
                    continue

                def mine():
                    return function(x, axis=axis)
                if not all(is_same(mine(), call(), x) for call in peers.values()):
                    differ.append(name)
                took, ratios = measure(mine, peers)
                best.append((min(ratios.values()), name))
                if best[-1][0] < LIMIT:
                    lines.append(row([name, f"{took / x.size:.3f}"] + [f"{ratios[who]:.2f}" if who in ratios else "" for who in ("NumPy", "PyTorch")]))
                    print(lines[-1], flush=True)
    if not best:
        return lines
    behind = sum(r < LIMIT for r, _ in best)
    mean = math.exp(statistics.fmean(math.log(r) for r, _ in best))
    summary = f"{len(best)} cases; behind {LIMIT}: {behind}; least: {min(best)[0]:.2f} ({min(best)[1]}); geometric mean: {mean:.2f}."
    if differ:
        summary += " Other results than a peer's: " + ", ".join(differ) + "."
    return [summary, "", *lines] if behind else [summary]
