#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t894-python-types.sh: the type stub by mypy: of itself, beside the module, and for who calls: results are of the first array's
# type, what is wrong is found. Its virtual environment stays in the build folder. Where no index can be reached: skipped.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${QUERN_BUILD_DIR:-$source/build}
[ -e "$build/python/quern/__init__.pyi" ] || skip_all 'this build has no type stub of the Python package'
python=${QUERN_TEST_PYTHON:-$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || echo python3)}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern t894.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
said=$work/said
unset PYTHONPATH VIRTUAL_ENV
folder=$build/python-peers/mypy
if ! "$folder/bin/python" -c 'import mypy, numpy' 2>/dev/null; then
  "$python" -m venv --clear "$folder" >"$said" 2>&1 || skip_all "$python makes no virtual environments (Debian: python3-venv)"
  timeout 300 "$folder/bin/python" -m pip install -q --only-binary :all: mypy 'numpy>=2' >"$said" 2>&1 ||
    skip_all "pip gets no mypy: $(grep -v '^WARNING' "$said" | tail -1)"
fi
MYPYPATH=$build/python PYTHONPATH=$build/python PYTHONDONTWRITEBYTECODE=1
export MYPYPATH PYTHONPATH PYTHONDONTWRITEBYTECODE
cd "$work" || exit 1

mypy() { "$folder/bin/python" -m mypy --strict --cache-dir "$folder/cache" "$@" >"$said" 2>&1; }

mypy "$build/python/quern/__init__.pyi"; ok $? 'the stub, strictly'
# (Each op has a class of its own in the stub, for its arguments' names. Array's buffer has no name before 3.12. There is no JAX.)
"$folder/bin/python" -c 'import quern
print("quern.Op", "quern.Array.__buffer__", "quern.jax", r"quern\.(torch|_torch\..+)", *["quern._?%s" % name for name in quern.ops()], sep="\n")' >ops
# quern._quern has no stub of its own; pandas' and others' need not be here. quern.torch is imported where there is PyTorch.
printf '[mypy]\n[mypy-quern.*,pandas.*,xarray.*,pyarrow.*,torch.*,jax.*]\nignore_missing_imports = True\n' >settings
if in_part 0 2; then
  "$folder/bin/python" -m mypy.stubtest --mypy-config-file settings --allowlist ops --ignore-unused-allowlist quern >"$said" 2>&1
  ok $? '  says what the module has'
else
  skip '  says what the module has' 'of another day'
fi
cat >right.py <<'PY'
from typing import Any
import array
import numpy as np
import numpy.typing as npt
import quern

x: npt.NDArray[np.float32] = np.zeros(8, np.float32)
mask: npt.NDArray[np.bool_] = np.zeros(8, np.bool_)
y: npt.NDArray[np.float32] = quern.gelu(x)
z: npt.NDArray[np.float32] = quern.add(1.0, x)
quern.add(x, 2, out=y)
quern.where(mask, x, 0.0)
quern.leaky_relu(x, slope=0.1)
quern.leaky_relu(x, 0.1)
y = quern.sum(x, axis=0)
y = quern.max(x, (0, -1), keepdims=True)
quern.softmax(x, axis=None, out=y)
buffer: "array.array[float]" = array.array("f", [1, 2])
quern.exp(buffer)
a: quern.Array = quern.from_dlpack(x, copy=True)
b: quern.Array = quern.multiply(a, x)
f: quern.Op = quern.compile("y = gelu(x * w + b)")
result: Any = f(x, x, 0.5, out=y)
shape: tuple[int, ...] = a.shape
context = quern.Context(threads=1)
names: tuple[str, ...] = context.ops()
listed: list[float] = quern.exp([0.0, 1.0])
total: float = quern.add(1, 2)
c: Any = quern.evaluate("x*2", {"x": x}, out=y)
explained: quern.Explanation = f.explain(x, x)
steps: tuple[str, ...] = explained.steps
threads: int = explained.threads


@quern.fuse
def swish(x: npt.NDArray[np.float32], beta: float) -> npt.NDArray[np.float32]:
    return quern.multiply(x, quern.sigmoid(quern.multiply(x, beta)))


y = swish(x, 0.5)
PY
mypy right.py; ok $? 'calls that are right'
cat >wrong.py <<'PY'
import numpy as np
import quern

x = np.zeros(8, np.float32)
quern.gelu()
quern.gelu("x")
quern.add(x)
quern.add("1", 2)
quern.leaky_relu(x, incline=0.1)
quern.sum(x, axis="0")
quern.gelu(x).nothing
quern.geluu(x)
quern.from_dlpack(3)
quern.Context(threads="two")
PY
mypy wrong.py
grep -o '^wrong.py:[0-9]*: error' "$said" | sort -u | wc -l >count
[ "$(cat count)" = 10 ]; ok $? "ten that are wrong: $(cat count) found"

done_testing
