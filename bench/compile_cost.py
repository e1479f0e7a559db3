# SPDX-License-Identifier: Apache-2.0
"""What long expressions cost: seconds to the first result of TERM + TERM + ..., compiled before it, by the number of terms; and the tier that it
ran on. A table in Markdown.

  PYTHONPATH=build/python python3 bench/compile_cost.py [TERMS...]
"""

import sys
import time

import numpy

import quern

# '@' is the term's number.
TERMS = [
    ("gcd(x + @, z)", "i32"), ("gcd(x + @, z)", "i64"), ("rem(x + @, z)", "f32"), ("rem(x + @, z)", "f64"), ("rem(x + @, z)", "i64"),
    ("quot(x + @, z)", "i64"), ("quot(x + @, z)", "i32"), ("x / (z + @)", "f64"), ("sqrt(x + @)", "f64"), ("fma(x, z, x + @)", "f32"),
    ("maximum(x + @, z)", "f32"), ("x * @.5", "f32"), ("sin(x + @)", "f32"), ("pow(x + @, z)", "f32"),
]
DTYPES = {"i32": numpy.int32, "i64": numpy.int64, "f32": numpy.float32, "f64": numpy.float64}


def seconds(term, dtype, n):
    context = quern.Context(jit="sync", cache_dir="", threads=1)
    text = " + ".join(term.replace("@", str(k)) for k in range(n))
    f = context.compile(text)
    operands = [numpy.ones(64, DTYPES[dtype]) for _ in range(2 if "z" in term else 1)]
    start = time.perf_counter()
    f(*operands)
    passed = time.perf_counter() - start
    return passed, f.explain(*operands)["tier"]


def main():
    counts = [int(word) for word in sys.argv[1:]] or [10, 100, 400, 1000]
    quern.Context(jit="sync", cache_dir="").compile("x + 1")(numpy.ones(8))  # modules are opened
    print("| term | dtype | " + " | ".join("{} terms".format(n) for n in counts) + " |")
    print("|" + "---|" * (len(counts) + 2))
    for term, dtype in TERMS:
        cells = ["{:.2f}{}".format(passed, "" if tier == "clang" else " (" + tier + ")") for passed, tier in
                 (seconds(term, dtype, n) for n in counts)]
        print("| `{}` | {} | {} |".format(term, dtype, " | ".join(cells)), flush=True)


if __name__ == "__main__":
    main()
