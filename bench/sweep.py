# SPDX-License-Identifier: Apache-2.0
"""`families.py --all`: each row of catalogue.py in each dtype that a peer has, in the cache and out of it, on one thread and two,
from an aligned address and from one element behind it, in two patterns: calls of one library that follow one another, and the
libraries' calls in turn. A ratio is the best peer's time over Quern's; of calls in a row each library's best of a turn is taken,
and of the turns' ratios the median. A case that is behind its limit is measured again, in processes of their own, and counts with
the median of all.

On several threads each library begins after a pause, in which the threads of the one before fall asleep: OpenMP's keep a core to
themselves until then, for 1 to 3 ms with GOMP_SPINCOUNT=30000. Calls in a row follow untimed ones; calls in turn find all threads
asleep."""
import collections
import json
import math
import os
import statistics
import subprocess
import sys
import time
import zlib

from catalogue import FLOATS, ROWS
from timing import call_for

SIZES = {"1e5": 100000, "5e6": 5000000}
LIMITS = {"1e5": 0.95, "5e6": 0.9}
IN_A_ROW = {"1e5": 8, "5e6": 3}
TURNS = {"1e5": 11, "5e6": 5}
SECONDS = 0.25       # of a case and pattern, but at least LEAST turns
LEAST = 3
CHECKED = 4096       # elements by which a peer's op is known to be the same
SAMPLE = 100000      # elements that errors are measured of
OFFSETS = (0, 1)     # elements
PATTERNS = ("row", "turn")
WAKE_SECONDS = 0.02  # of untimed calls before a case of several threads
PAUSE_SECONDS = 0.005  # before a library's calls, on several threads
SETTLE_SECONDS = 0.005  # of untimed calls then
SHORT_SPIN = {"GOMP_SPINCOUNT": "30000"}  # OpenMP's threads wait awake for 1 to 3 ms, not for ten times that
# Of the dispatch of peers, so that they have no more than the level of QUERN_ISA.
# NumPy before 2.4 has other names; PyTorch's gelu is oneDNN's.
HELD_TO_AVX2 = {"QUERN_ISA": "v3", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
                "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4"}

Case = collections.namedtuple("Case", "row dtype size threads offset")


def name_of(case):
    said = f"{case.row.op} {case.dtype}"
    if case.row.op == "astype":
        said += f" to {case.row.out}"
    return said


def place_of(case):
    return f"{case.size}, {case.threads} thread{'s' if case.threads > 1 else ''}{', unaligned' if case.offset else ''}"


def cases_of(options):
    """All, in an order that has nothing to do with their names: a part of them is a fair sample."""
    cases = [Case(row, dtype, size, threads, offset)
             for row in ROWS for dtype in row.dtypes.split() for size in options.sizes.split(",")
             for threads in map(int, options.threads.split(",")) for offset in OFFSETS]
    wanted = [case for case in cases if not options.only or name_of(case).startswith(tuple(options.only))]
    return sorted(wanted, key=lambda case: zlib.crc32(f"{name_of(case)} {place_of(case)}".encode()))


# ---- One case ----

def dotted(module, name):
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def peers_of(row, threads):
    import numpy as np
    found = [("NumPy", np, row.numpy, np.from_dlpack)] if row.numpy and threads == 1 else []
    if row.scipy and threads == 1:
        try:
            import scipy.special
            found.append(("SciPy", scipy.special, row.scipy, np.from_dlpack))
        except ImportError:
            pass
    if row.torch:
        try:
            import torch
            torch.set_num_threads(threads)
            found.append(("PyTorch", torch, row.torch, torch.from_dlpack))
        except ImportError:
            pass
    return found


def bound(value, operand, dtype):
    value = value[operand] if isinstance(value, list) else value
    return max(value, 0) if dtype == "bool" or dtype.startswith("u") else value


def operands(case):
    """Inputs and output, views of Quern's arrays that begin `offset` elements behind their memory's begin."""
    import numpy as np
    import quern
    n, row, ins = SIZES[case.size], case.row, []
    for k, (step, period) in enumerate(((7919, 10007), (7907, 10009))[:row.n_in]):
        dtype = row.dtype_of.get(k, case.dtype)
        low, high = bound(row.low, k, dtype), bound(row.high, k, dtype)
        numbers = low + (high - low) * ((np.arange(n + 1, dtype="i8") * step % period) / (period - 1))
        if dtype == "bool":
            numbers = numbers > 0.5
        ins.append(quern.astype(quern.from_dlpack(numbers), dtype)[case.offset:n + case.offset])
    made = quern.Context(threads=1).op(row.op)
    dtype = row.out or str(made(*(a[:8] for a in ins), **row.params).dtype)
    return ins, quern.empty(n + 1, dtype=dtype)[case.offset:n + case.offset]


def caller(function, ins, out, more, keywords):
    return lambda: function(*ins, *more, out=out, **keywords)


def as_f64(a, n):
    import numpy as np
    import quern
    return np.from_dlpack(quern.astype(a[:n], "f64"))


def same(got, wanted):
    import numpy as np
    return np.allclose(got, wanted, rtol=0.05, atol=0.05, equal_nan=True)


def copier(name, ins, out):
    if name == "PyTorch":
        return lambda: out.copy_(ins[0])
    import numpy as np
    return lambda: np.copyto(out, ins[0])


def calls_of(case, ins, out):
    """name -> a call, Quern's first; peers that have neither op nor dtype, or give other results, are left out."""
    import quern
    row = case.row
    calls = {"Quern": caller(quern.Context(threads=case.threads).op(row.op), ins, out, (), row.params)}
    calls["Quern"]()
    wanted = as_f64(out, CHECKED)
    clear = quern.Context(threads=1).op("full")
    for name, module, wished, convert in peers_of(row, case.threads):
        try:
            *peer_ins, peer_out = (convert(a) for a in (*ins, out))
            if wished == "copy":
                call = copier(name, peer_ins, peer_out)
            else:
                call = caller(dotted(module, wished), peer_ins, peer_out, row.more, {})
            clear(value=0, out=out)
            call()
        except Exception:  # whatever a library raises where it lacks the dtype
            continue
        if same(as_f64(out, CHECKED), wanted):
            calls[name] = call
    return calls


def exact_of(case, ins):
    """The results in a wider dtype, of the sample that errors are counted of; None where no library has them."""
    import numpy as np
    row = case.row
    if row.dtype_of or row.out or not (row.numpy or row.torch):
        return None
    wide = [as_f64(a, SAMPLE) for a in ins]
    if row.numpy and (case.dtype != "f64" or np.finfo(np.longdouble).nmant > 52):
        return getattr(np, row.numpy)(*(a.astype(np.longdouble) for a in wide), *row.more)
    if case.dtype == "f64":
        return None
    import torch
    return dotted(torch, row.torch)(*map(torch.from_numpy, wide), *row.more).numpy()


def worst_ulp(got, exact, dtype):
    """The largest error of finite results, in units in the last place."""
    import numpy as np
    digits, least = {"f16": (11, -24), "bf16": (8, -133), "f32": (24, -149), "f64": (53, -1074)}[dtype]
    _, exponent = np.frexp(np.abs(exact))
    unit = np.ldexp(np.ones_like(exact), np.maximum(exponent - digits, least))
    error = np.abs(got.astype(exact.dtype) - exact) / unit
    return float(error[np.isfinite(error)].max(initial=0))


def errors(case, ins, out, calls):
    """name -> the largest error; nothing for integers and where the exact results are not to be had."""
    is_float = case.dtype in FLOATS.split() and str(out.dtype) == str(ins[0].dtype)
    exact = exact_of(case, ins) if is_float else None
    found = {}
    for name, call in calls.items() if exact is not None else ():
        call()
        found[name] = worst_ulp(as_f64(out, SAMPLE), exact, case.dtype)
    return found


def timed(call):
    begin = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - begin


def settle(call, pattern):
    """Before calls on several threads."""
    time.sleep(PAUSE_SECONDS)
    if pattern == "row":
        call_for(SETTLE_SECONDS, call)


def ratios(case, calls, pattern, turns):
    """Of each turn the best peer's time over Quern's, and the medians of all times."""
    found, times, begin = [], collections.defaultdict(list), time.perf_counter()
    many = IN_A_ROW[case.size] if pattern == "row" else 1
    names = list(calls)
    for turn in range(turns * (1 if pattern == "row" or case.threads > 1 else IN_A_ROW[case.size])):
        now, order = {}, names[turn % len(names):] + names[:turn % len(names)]
        for name in order[::-1] if turn % 2 else order:  # none always follows the same other one
            if case.threads > 1:
                settle(calls[name], pattern)
            now[name] = min(timed(calls[name]) for _ in range(many))
            times[name].append(now[name])
        found.append(min(took for name, took in now.items() if name != "Quern") / now["Quern"])
        if len(found) >= LEAST and time.perf_counter() - begin > SECONDS:
            break
    return statistics.median(found), {name: statistics.median(list_of) for name, list_of in times.items()}


def measured(case, turns):
    """pattern -> [ratio, times], and the errors where a ratio is behind; nothing where no peer has the case."""
    ins, out = operands(case)
    calls = calls_of(case, ins, out)
    if len(calls) < 2:
        return {}
    for call in calls.values():
        call()
        call_for(WAKE_SECONDS if case.threads > 1 else 0, call)
    found = {pattern: ratios(case, calls, pattern, turns or TURNS[case.size]) for pattern in PATTERNS}
    is_behind = min(ratio for ratio, _ in found.values()) < LIMITS[case.size]
    return {"found": found, "errors": errors(case, ins, out, calls) if is_behind else {}}


def work(options):
    """Standard input: places in the list of cases. Standard output: a line of JSON for each."""
    import numpy as np
    np.seterr(all="ignore")
    cases = cases_of(options)
    for k in json.load(sys.stdin):
        print(json.dumps([k, measured(cases[k], options.turns)]), flush=True)


# ---- All cases ----

def run(options, chosen, until):
    """place in the list -> what a process measured, until the time is over."""
    environment = dict(os.environ, **SHORT_SPIN, **(HELD_TO_AVX2 if options.avx2 else {}))
    child = subprocess.Popen([sys.executable, *sys.argv, "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env=environment)
    child.stdin.write(json.dumps(chosen))
    child.stdin.close()
    results = {}
    for line in child.stdout:
        k, result = json.loads(line)
        results[k] = result
        if until and time.monotonic() > until:
            child.kill()
            break
    if child.wait() and not until:
        raise SystemExit("a process that measured has failed")
    return results


def summary_line(ratios_of_cases, limit):
    worst = min(ratios_of_cases, key=ratios_of_cases.get)
    values = list(ratios_of_cases.values())
    mean = math.exp(statistics.fmean(map(math.log, values)))
    return [f"{len(values)}", f"{sum(v < limit for v in values)}", f"{sum(v < 0.8 for v in values)}",
            f"{ratios_of_cases[worst]:.2f} ({worst})", f"{mean:.2f}"]


def behind_table(cases, figures, times, found_errors):
    from timing import head, row
    out = head(["case", "where", "pattern", "ratio", "Quern, ns", "best peer, ns", "largest error, Quern", "peer"])
    for v, k, p in sorted((v, k, p) for (k, p), v in figures.items() if v < LIMITS[cases[k].size]):
        peer = min((took, name) for name, took in times[k, p].items() if name != "Quern")
        ulps = [f"{found_errors[k][who]:.2f}" if who in found_errors.get(k, ()) else "" for who in ("Quern", peer[1])]
        out.append(row([name_of(cases[k]), place_of(cases[k]), p, f"{v:.2f}", f"{times[k, p]['Quern']:.0f}",
                        f"{peer[0]:.0f} {peer[1]}", *ulps]))
    return out


def table_of_all(cases, figures, places):
    from timing import head, row
    table = collections.defaultdict(dict)
    for (k, p), v in figures.items():
        table[name_of(cases[k])].setdefault(place_of(cases[k]), {})[p] = f"{v:.2f}"
    cells = {name: [" / ".join(at.get(place, {}).get(p, "") for p in PATTERNS) if place in at else "" for place in places]
             for name, at in table.items()}
    return [*head(["case", *places]), *(row([name, *cells[name]]) for name in sorted(cells))]


def document(cases, figures, times, found_errors, title):
    from timing import head, row
    out = [title, "", *head(["where", "pattern", "cases", "behind its limit", "behind 0.8", "least", "geometric mean"])]
    places = sorted({place_of(case) for case in cases}, key=lambda place: (place[:3], place))
    for place in places:
        for pattern in PATTERNS:
            here = {name_of(cases[k]): v for (k, p), v in figures.items() if p == pattern and place_of(cases[k]) == place}
            if here:
                said = "in a row" if pattern == "row" else "in turn"
                out.append(row([place, said, *summary_line(here, LIMITS[place[:3]])]))
    out += ["", "Behind, with the largest errors in units in the last place:", "",
            *behind_table(cases, figures, times, found_errors), "", "All, ratios in a row / in turn:", "",
            *table_of_all(cases, figures, places)]
    if figures:
        worst = min(figures, key=figures.get)
        n_behind = sum(v < LIMITS[cases[k].size] for (k, _), v in figures.items())
        mean = math.exp(statistics.fmean(map(math.log, figures.values())))
        out += ["", f"All: {len(figures)} cases, {n_behind} behind, least {figures[worst]:.2f} ({name_of(cases[worst[0]])}, "
                    f"{place_of(cases[worst[0]])}, {worst[1]}), geometric mean {mean:.2f}."]
    return "\n".join(out) + "\n"


def main(options, machine):
    if options.worker:
        work(options)
        return
    cases = cases_of(options)
    until = time.monotonic() + options.budget if options.budget else None
    first = run(options, list(range(len(cases))), until)
    found, times = collections.defaultdict(list), {}
    found_errors = {k: result.get("errors", {}) for k, result in first.items()}
    for k, result in first.items():
        for pattern, (ratio, took) in result.get("found", {}).items():
            found[k, pattern].append(ratio)
            times[k, pattern] = took
    again = sorted({k for (k, _), v in found.items() if v[0] < LIMITS[cases[k].size]})
    for _ in range(options.runs - 1 if again else 0):
        for k, result in run(options, again, None).items():
            for pattern, (ratio, _) in result.get("found", {}).items():
                found[k, pattern].append(ratio)
    figures = {key: statistics.median(v) for key, v in found.items()}
    held = ", QUERN_ISA=v3 and peers held to AVX2" if options.avx2 else ""
    title = (f"{machine}{held}. {len(first)} of {len(cases)} cases were\n"
             f"measured; those behind {options.runs} times, each in a process of its own, and count with the median. "
             f"Limits: {', '.join(f'{limit} of {size}' for size, limit in LIMITS.items())} elements.\n"
             "The ratio is the best peer's time over Quern's: above 1 Quern is quicker.")
    text = document(cases, figures, times, found_errors, title)
    sys.stdout.write(text)
    if options.out:
        with open(options.out, "w") as f:
            f.write(text)
