# SPDX-License-Identifier: Apache-2.0
"""Shared by the benchmarks in Python: options, medians, and tables in Markdown."""
import argparse
import statistics
import time


def options_of_command_line(rounds):
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--out")
    parser.add_argument("filter", nargs="?", default="")
    return parser.parse_args()


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
    import platform
    with open("/proc/cpuinfo") as lines:
        return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
