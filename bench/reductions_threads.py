# SPDX-License-Identifier: Apache-2.0
"""Reductions, scans and row programs on two threads beside one, and beside PyTorch on two: calls that follow one another, after
untimed ones in which threads wake up."""
import statistics
import time

from timing import call_for, median_ns

SPIN_SECONDS = 0.02  # sleep before a library's turn: threads of the one before spin for about this time
WAKE_SECONDS = 0.02  # of untimed calls
GROUPS = 5  # of calls in each turn
ROUNDS = 9

# op, shape, axis
CASES = (
    ("sum", (10**5,), 0), ("sum", (3 * 10**5,), 0), ("sum", (10**6,), 0), ("sum", (10**7,), 0),
    ("max", (10**6,), 0), ("argmax", (10**6,), 0), ("var", (10**6,), 0),
    ("sum", (300, 300), 1), ("sum", (1000, 1000), 1), ("sum", (100000, 30), 1),
    ("sum", (1000, 1000), 0), ("sum", (3000, 3000), 0), ("sum", (100000, 30), 0),
    ("logsumexp", (1, 10**6), 1), ("softmax", (1000, 1000), 1), ("softmax", (1, 10**6), 1),
    ("layer_norm", (1000, 1000), 1), ("rms_norm", (1000, 1000), 1),
    ("cumulative_sum", (1000, 1000), 1), ("cumulative_sum", (10**6,), 0),
)


def timed(call):
    """Nanoseconds a call."""
    time.sleep(SPIN_SECONDS)
    call_for(WAKE_SECONDS, call)
    return median_ns(call, GROUPS)


def torch_call(torch, op, x, axis):
    if op in ("layer_norm", "rms_norm"):
        return lambda: getattr(torch.nn.functional, op)(x, x.shape[-1:])
    function = getattr(torch, {"max": "amax", "cumulative_sum": "cumsum"}.get(op, op))
    return lambda: function(x, axis)


def table(quern, torch, head, row):
    """Lines of a table in Markdown."""
    import numpy as np
    contexts = [quern.Context(threads=n) for n in (1, 2)]
    out = head(["case, f32", "Quern on one", "on two", "one/two", "PyTorch on two", "PyTorch/Quern on two"])
    for op, shape, axis in CASES:
        x = quern.from_dlpack(np.random.default_rng(1).uniform(-2, 2, shape).astype("f4"))
        calls = []
        for context in contexts:
            function, to = context.op(op), context.op(op)(x, axis=axis)
            calls.append(lambda function=function, to=to: function(x, axis=axis, out=to))
        if torch:
            calls.append(torch_call(torch, op, torch.from_dlpack(x), axis))
            torch.set_num_threads(2)
        turns = [[timed(call) / 1e3 for call in calls] for _ in range(ROUNDS)]
        of = [statistics.median(times) for times in zip(*turns)]
        cells = [f"{op} {'x'.join(map(str, shape))} axis {axis}", f"{of[0]:.1f}", f"{of[1]:.1f}", f"{statistics.median(t[0] / t[1] for t in turns):.2f}"]
        if torch:
            cells += [f"{of[2]:.1f}", f"{statistics.median(t[2] / t[1] for t in turns):.2f}"]
            torch.set_num_threads(1)
        out.append(row(cells + [""] * (6 - len(cells))))
        print(out[-1], flush=True)
    return out
