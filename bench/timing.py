# SPDX-License-Identifier: Apache-2.0
"""Shared by the benchmarks in Python: options, medians, and tables in Markdown."""
import argparse
import datetime
import os
import platform
import statistics
import subprocess
import time


def options_of_command_line(rounds, more=None):
    """more: adds a program's own options to the parser."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--out")
    parser.add_argument("--note", default="", help="a sentence about the machine, for the head of the tables")
    parser.add_argument("--all", action="store_true", help="of run.py, families.py and reductions.py")
    parser.add_argument("filter", nargs="?", default="")
    if more:
        more(parser)
    return parser.parse_args()


def call_for(seconds, call):
    """Untimed calls, in which threads wake up."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        call()


def median_ns(f, most=101):
    """As median_ns in measure.c: calls grouped to 200 us, the median of the groups, which are not more than `most`."""
    f()
    calls = 1
    while True:
        start = time.perf_counter_ns()
        for _ in range(calls):
            f()
        took = time.perf_counter_ns() - start
        if took >= 200e3:
            break
        calls = calls * 10 if took < 20e3 else int(calls * 220e3 / took) + 1
    times, begin = [], time.perf_counter_ns()
    while len(times) < most and (len(times) < 9 or time.perf_counter_ns() - begin < 150e6):
        start = time.perf_counter_ns()
        for _ in range(calls):
            f()
        times.append((time.perf_counter_ns() - start) / calls)
    return statistics.median(times)


def row(cells):
    return "| " + " | ".join(cells) + " |"


def head(cells):
    return [row(cells), "|---" * len(cells) + "|"]


def cpu_name():
    with open("/proc/cpuinfo") as lines:
        return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def git(*words):
    here = os.path.dirname(os.path.abspath(__file__))
    return subprocess.run(["git", "-C", os.path.dirname(here), *words], check=True, capture_output=True, text=True).stdout.strip()


def commit():
    """The sources' commit. Tables and pictures that a run has written are no change of the sources."""
    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/results", ":!docs/pictures")
        return git("describe", "--always", "--exclude=*") + (" and changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine(note=""):
    """What a table of times is of: the machine, the sources' commit, the date."""
    parts = [f"{cpu_name()}, {os.cpu_count()} processors", platform.system(), f"commit {commit()}", str(datetime.date.today())]
    return "; ".join(parts) + "." + (f" {note}" if note else "")
