# SPDX-License-Identifier: Apache-2.0
# tags: memory
"""Calls on operands of every kind, chosen by bytes: tests/fuzz/operands.py, without a fuzzer: its corpus, then changed and random bytes
for a few seconds. QUERN_FUZZ_SECONDS: how many. What a day tries differs; QUERN_TEST_DAY=k repeats it."""

import glob
import os
import random
import sys
import time
import traceback

try:
    import numpy  # noqa: F401
except ImportError:
    print("1..0 # SKIP no NumPy here")
    sys.exit(0)
from tap import diag, done_testing, ok

source = os.environ["QUERN_SOURCE_DIR"]
sys.path.insert(0, source + "/tests/fuzz")
import operands  # noqa: E402

seconds = float(os.environ.get("QUERN_FUZZ_SECONDS", "3"))
day = int(os.environ.get("QUERN_TEST_DAY") or time.time() / 86400)
diag("QUERN_TEST_DAY={}".format(day))
rng = random.Random(day)
corpus = [open(path, "rb").read() for path in sorted(glob.glob(source + "/tests/fuzz/corpus/operands/*"))]
ok(corpus, "there is a corpus: {} files".format(len(corpus)))


def next_input():
    if rng.random() < 0.4:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(120)))
    data = bytearray(rng.choice(corpus))
    for _ in range(1 + rng.randrange(5)):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


n, bad, end = 0, 0, time.monotonic() + seconds
while bad < 5 and (n < len(corpus) or time.monotonic() < end):
    data = corpus[n] if n < len(corpus) else next_input()
    n += 1
    try:
        operands.one(data)
    except BaseException:
        bad += 1
        diag("input {}\n{}".format(data.hex(), traceback.format_exc()))
ok(bad == 0, "operands ({} cases)".format(n))
done_testing()
