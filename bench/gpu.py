# SPDX-License-Identifier: Apache-2.0
"""Quern's CUDA kernels beside a device-to-device copy and, where they are installed, PyTorch, torch.compile, jiterator, CuPy and
Triton: bandwidth, the cost of a launch, and the first call. Run by gpu.sh; the driver and libquern are called by ctypes.

    python3 bench/gpu.py [--build build] [--out FILE.md] [--bytes N] [--rounds N] [--seconds N] [--no-peers] [--small] [FILTER]

Everything is on one stream and timed by the device's events, in rounds in turn; medians. Arrays are far larger than the L2.
Each result is compared with the correct one before it is timed. Exit status 0 if it ran: targets are reported, not asserted."""
import argparse
import ctypes
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from gpu_cases import EXPRESSIONS, REDUCTIONS, Array, Wrong, check_all, check_some, launch_case, make_cases, torch_reference
from gpu_driver import CudaError, Driver, Quern, QuernError

FIRST_EXPRESSIONS = ["y = gelu(a * b + c) * d", "y = tanh(a * b - c) + d * 0.5"]
HOLD_LAUNCH_US = 3.0


def first_line(e):
    text = str(e).strip().splitlines()
    return f"{type(e).__name__}: {text[0][:160]}" if text else type(e).__name__


class Contender:
    """An implementation of a case: `run`, or the reason why there is none."""

    def __init__(self, name):
        self.name, self.run, self.reason, self.times, self.first_ms = name, None, None, [], None


class Session:
    def __init__(self, options, cache):
        self.options, self.started, self.reasons = options, time.monotonic(), []
        self.torch, self.peers, self.versions = None, [], []
        if not options.no_peers:
            self.find_torch()
        self.driver = Driver()
        if self.torch:
            torch = self.torch
            torch.cuda.set_stream(torch.cuda.ExternalStream(self.driver.stream.value))
            self.find_peers()
        self.quern = Quern(os.path.join(options.build, "libquern.so"), self.driver, cache)

    def find_torch(self):
        try:
            import torch
            torch.zeros(1, device="cuda:0")
            self.torch = torch
        except Exception as e:  # each build of PyTorch has reasons of its own
            self.reasons.append(f"PyTorch, and so every peer: {first_line(e)}")

    def find_peers(self):
        import gpu_peers
        for make in gpu_peers.PEERS:
            try:
                peer = make(self.torch, self.driver.stream.value)
                peer.seconds = self.options.seconds * make.share
                self.peers.append(peer)
                self.versions.append(peer.version)
            except Exception as e:
                self.reasons.append(f"{make.name}: {first_line(e)}")

    def is_late(self):
        return time.monotonic() - self.started > self.options.seconds

    def make_peer(self, peer, case, inputs, output, reference):
        """Compiles, tunes, and checks the result."""
        contender, start = Contender(peer.name), time.monotonic()
        try:
            if peer.seconds <= 0 or self.is_late():
                raise TimeoutError("no time is left for it")
            output.tensor.fill_(float("nan"))
            self.driver.synchronize()
            begin = time.perf_counter_ns()
            contender.run = peer.make(case.kind, [x.tensor for x in inputs], output.tensor)
            result = contender.run()
            self.driver.synchronize()
            contender.first_ms = (time.perf_counter_ns() - begin) / 1e6
            result = output.tensor if result is None else self.torch.as_tensor(result, device="cuda")
            if reference is not None:
                check_all(case, result, reference)
        except Exception as e:
            contender.run, contender.reason = None, first_line(e)
            self.reasons.append(f"{peer.name}, {case.name}: {contender.reason}")
        peer.seconds -= time.monotonic() - start
        return contender


# ---- Bandwidth ----


class Row:
    """The results of a case."""

    def __init__(self, case):
        self.case, self.copy_us, self.us, self.first_ms, self.facts, self.error = case, None, {}, {}, {}, None


def copy_runner(driver, n_bytes):
    """A copy that moves as many bytes as the case, half of them read; and a function that frees its memory."""
    half = n_bytes // 2
    a, b = driver.allocate(half), driver.allocate(half)
    return (lambda: driver.copy(b, a, half)), lambda: (driver.free(a), driver.free(b))


def measure_case(session, case):
    row, driver, options = Row(case), session.driver, session.options
    inputs = [Array(layout, driver, session.torch, k) for k, layout in enumerate(case.inputs)]
    output = Array(case.output, driver, session.torch, 7)
    more = [Array(layout, driver, session.torch, 0) for layout in case.more]
    quern = Contender("Quern")
    copy, end_copy = copy_runner(driver, case.bytes)
    bound = reference = None
    try:
        start = time.perf_counter_ns()
        name, axes = REDUCTIONS.get(case.kind) or (None, None)
        op = session.quern.find(name) if name else session.quern.compile(EXPRESSIONS[case.kind])
        bound = session.quern.bind(op, inputs, output, axes, more)
        quern.run = bound.runner()
        session.quern.check(quern.run())
        driver.synchronize()
        quern.first_ms = (time.perf_counter_ns() - start) / 1e6
        check_some(case, inputs, output)
        if session.torch:
            reference = torch_reference(session.torch, case, inputs)
            check_all(case, output.tensor, reference)
        row.facts = bound.explain()
    except (QuernError, Wrong) as e:
        quern.run, row.error = None, str(e)
    contenders = [quern] + [session.make_peer(peer, case, inputs, output, reference) for peer in session.peers]
    reference = None
    repeats = options.repeats or (3 if options.small else 20)
    copies, warm = [], 1 if options.small or repeats == 1 else 3
    for _ in range(options.rounds):
        driver.times_us(copy, warm)
        copies += driver.times_us(copy, repeats)
        for c in contenders:
            if c.run:
                driver.times_us(c.run, warm)
                c.times += driver.times_us(c.run, repeats)
    if quern.run:
        try:  # checks that the timed launches ran and computed
            session.quern.check(quern.run())
            check_some(case, inputs, output)
        except (QuernError, Wrong) as e:
            quern.times, row.error = [], f"after it was timed: {e}"
    row.copy_us = statistics.median(copies)
    for c in contenders:
        row.first_ms[c.name] = c.first_ms
        if c.times:
            row.us[c.name] = statistics.median(c.times)
    end_copy()
    if bound:
        bound.release()
    for array in [*inputs, output, *more]:
        array.release()
    if session.torch:
        contenders = None
        session.torch.cuda.empty_cache()
    return row


# ---- Launches ----


def measure_launches(session):
    """For each implementation of an add of 8 elements: microseconds of host and device; and milliseconds of the first calls."""
    case, driver, quern = launch_case(), session.driver, session.quern
    calls, repeats, graph = (20, 2, 5) if session.options.small else (500, 21, 200)
    inputs = [Array(layout, driver, session.torch, k) for k, layout in enumerate(case.inputs)]
    output = Array(case.output, driver, session.torch, 7)
    reference = torch_reference(session.torch, case, inputs) if session.torch else None
    runs, lines, first_ms = [], [], {}
    try:
        start = time.perf_counter_ns()
        built = quern.bind(quern.find("add"), inputs, output)
        quern.check(built.runner()())
        driver.synchronize()
        first_ms["Quern"] = (time.perf_counter_ns() - start) / 1e6
        fused = quern.bind(quern.compile("y = gelu(a * b + a) * b"), inputs, output)
        runs = [("Quern, prepared", built.runner()), ("Quern, by op", built.caller()),
                ("Quern, an expression, prepared", fused.runner()), ("Quern, an expression, by op", fused.caller())]
        for _, run in runs:
            quern.check(run())
        quern.check(built.runner()())
        check_some(case, inputs, output, 20)
    except (QuernError, Wrong) as e:
        session.reasons.append(f"Quern, {case.name}: {e}")
        runs = []
    for peer in session.peers:
        contender = session.make_peer(peer, case, inputs, output, reference)
        if contender.run:
            runs.append((peer.name, contender.run))
            first_ms[peer.name] = contender.first_ms
    empty = ctypes.CDLL(None).memcpy  # as many arguments as quern_plan_run has; nothing to do
    empty.argtypes, empty.restype = [ctypes.c_void_p] * 4, ctypes.c_int32
    place = ctypes.create_string_buffer(8)
    at = ctypes.addressof(place)
    lines.append(("a call of C from Python that does nothing", driver.host_us(lambda: empty(at, at, 0, 0), calls, repeats), None))
    for name, run in runs:
        try:
            host = driver.host_us(run, calls, repeats)
            if name.startswith("Quern"):
                quern.check(run())
        except Exception as e:
            session.reasons.append(f"{name}, {case.name}: {first_line(e)}")
            continue
        try:
            device = driver.graph_us(run, graph, 2 if session.options.small else 20)
        except Exception as e:
            device = None
            session.reasons.append(f"{name}, {case.name}, in a graph: {first_line(e)}")
        lines.append((name, host, device))
    return lines, first_ms


# ---- The first call, each in a process of its own ----


def first_call(options):
    """A child process: prints the time of each expression from its text to its result, and its tier."""
    driver = Driver()
    quern = Quern(os.path.join(options.build, "libquern.so"), driver, options.first)
    case = launch_case()
    inputs, output = [Array(case.inputs[0], driver, None, k) for k in range(4)], Array(case.output, driver, None, 7)
    found = []
    for expression in FIRST_EXPRESSIONS[:1] if options.small else FIRST_EXPRESSIONS:
        start = time.perf_counter_ns()
        bound = quern.bind(quern.compile(expression), inputs, output)
        quern.check(bound.runner()())
        driver.synchronize()
        found.append(((time.perf_counter_ns() - start) / 1e6, bound.explain().get("tier", "?")))
    print(json.dumps(found))


def measure_first(options):
    """[(what, ms, tier)]"""
    rounds, lists = 1 if options.small else 5, {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            for state in ("nothing in the cache", "from the disk cache"):
                command = [sys.executable, os.path.abspath(__file__), "--build", options.build, "--first", cache]
                done = subprocess.run(command + ["--small"] * options.small, capture_output=True, text=True)
                if done.returncode:
                    raise QuernError("a fresh process: " + (done.stderr.strip().splitlines() or ["it failed"])[-1])
                for k, (ms, tier) in enumerate(json.loads(done.stdout)):
                    what = "the first expression in a process" if k == 0 else "the next one"
                    lists.setdefault((f"{what}, {state}", tier), []).append(ms)
    return [(what, statistics.median(times), tier) for (what, tier), times in lists.items()]


# ---- What is printed ----


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"] + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def us(value):
    return "" if value is None else f"{value:.1f}"


def bandwidth_table(rows, names):
    out, held = [], 0
    for row in rows:
        mine, case, theirs = row.us.get("Quern"), row.case, [row.us[name] for name in names if name in row.us]
        cells = [case.name, f"{case.bytes / 1e6:.0f}", us(row.copy_us)]
        if mine:
            part, best = row.copy_us / mine, min(theirs, default=None)
            is_held = part >= case.hold
            held += is_held
            cells += [us(mine), f"{case.bytes / mine / 1e6:.2f}", f"{part:.3f}", f"{case.hold:.2f}", "yes" if is_held else "NO"]
            cells += [f"{best / mine:.2f}" if best else ""]
        else:
            cells += ["", "", "", f"{case.hold:.2f}", "NO", ""]
        out.append(cells + [us(row.us.get(name)) for name in names])
    head = ["case", "MB", "predicted us (a copy's)", "Quern us", "TB/s", "of a copy", "hold", "holds", "best peer / Quern"]
    text = table(head + [name + " us" for name in names], out)
    if rows:
        speed = statistics.median(row.case.bytes / row.copy_us / 1e6 for row in rows)
        text += [f"{held} of {len(rows)} hold. A copy reads and writes {speed:.2f} TB/s.", ""]
    return text


def kernels_table(rows):
    keys = ["variant", "tier", "grid", "block", "turn", "registers", "spills", "shared", "occupancy", "compile_ms"]
    return table(["case"] + keys, [[row.case.name] + [row.facts.get(key, "") for key in keys] for row in rows])


def launch_table(lines):
    empty = lines[0][1]
    out = [[name, f"{host:.2f}", f"{max(host - empty, 0):.2f}", "" if device is None else f"{device:.2f}"]
           for name, host, device in lines]
    text = table(["8 elements", "host us a call", "less the call of C", "device us, in a graph"], out)
    mine = [host - empty for name, host, _ in lines if name == "Quern, prepared"]
    if mine:
        text += [f"Launch, prepared: {mine[0]:.2f} us of the host's; to hold: {HOLD_LAUNCH_US} us: "
                 f"{'yes' if mine[0] <= HOLD_LAUNCH_US else 'NO'}.", ""]
    return text


def first_table(lines, first_ms, rows, names):
    text = table(["Quern, 8 elements, from the text to the result", "ms", "tier"],
                 [[what, f"{ms:.1f}", tier] for what, ms, tier in lines])
    mine = [("in this process, the first: add", first_ms)]
    mine += [(f"in this process, a later one: {row.case.name}", row.first_ms) for row in rows if row.case.kind == "gelu"][:1]
    known = [name for name in ["Quern", *names] if any(ms.get(name) for _, ms in mine)]
    cells = [[what] + [us(ms.get(name)) for name in known] for what, ms in mine]
    return text + table(["first call, nothing in any cache, ms"] + known, cells)


def report(session, rows, launches, first_ms, firsts):
    names = [peer.name for peer in session.peers]
    out = [f"{session.driver.describe()}; {session.quern.version()}" + "".join("; " + v for v in session.versions)
           + f"; Python {platform.python_version()}.", "",
           f"Medians of {session.options.rounds} rounds in turn, by the device's events. The bytes are those that the case reads "
           "and writes; the prediction is what a copy that moves as many takes, in the same rounds. A ratio to the best peer "
           "above 1: Quern is quicker.", "", "## Bandwidth", ""]
    out += bandwidth_table(rows, names)
    for row in rows:
        if row.error:
            out += [f"Quern, {row.case.name}: {row.error}", ""]
    out += ["## Kernels", ""] + kernels_table(rows)
    if launches:
        out += ["## Launches", ""] + launch_table(launches)
    if firsts:
        out += ["## The first call", ""] + first_table(firsts, first_ms, rows, names)
    if session.reasons:
        out += ["## Not measured", ""] + [f"- {reason}" for reason in dict.fromkeys(session.reasons)] + [""]
    out += [f"All of this took {time.monotonic() - session.started:.0f} s."]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--out")
    parser.add_argument("--bytes", type=int, default=1 << 28, help="of one array")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, help="timed runs of a case in each round")
    parser.add_argument("--seconds", type=float, default=380, help="peers are left out when they are over")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--small", action="store_true", help="tiny arrays and few runs: to see whether it works")
    parser.add_argument("--first", help=argparse.SUPPRESS)
    parser.add_argument("filter", nargs="?", default="")
    options = parser.parse_args()
    if options.small:
        options.bytes, options.rounds = 1 << 14, 1
    if options.first:
        return first_call(options)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUPY_CACHE_DIR", "PYTORCH_KERNEL_CACHE_PATH"):
            os.environ[name] = os.path.join(folder, name.lower())
            os.mkdir(os.environ[name])
        session = Session(options, os.path.join(folder, "quern"))
        rows, launches, first_ms, firsts = [], [], {}, []
        if options.filter in "launches":  # first, while each peer has time
            launches, first_ms = measure_launches(session)
        for case in make_cases(options.bytes, options.small):
            if options.filter in case.name:
                rows.append(measure_case(session, case))
                sys.stderr.write(f"{case.name}: {rows[-1].error or us(rows[-1].us['Quern']) + ' us'}\n")
        if options.filter in "first":
            try:
                firsts = measure_first(options)
            except QuernError as e:
                session.reasons.append(f"The first call: {e}")
        text = report(session, rows, launches, first_ms, firsts)
    sys.stdout.write(text)
    if options.out:
        with open(options.out, "w") as f:
            f.write(text)
    return None


try:
    main()
except (OSError, CudaError, QuernError) as problem:
    sys.exit(f"gpu.py: {problem}")
