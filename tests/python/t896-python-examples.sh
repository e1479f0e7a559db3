#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t896-python-examples.sh: the programs of examples/python run on the build's package, and say what they are to say; so does the
# Python of docs/tour.md and of docs/reductions.md. examples/transformer, in C, gives the bits of transformer.py. bench/python_call.py
# runs. QUERN_TEST_PYTHON may be an interpreter that has PyTorch.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${QUERN_BUILD_DIR:-$source/build}
case $(nm -D "$build/libquern.so" 2>&1) in
  *__asan_* | *__tsan_*) skip_all 'the plain build is enough for this' ;;
esac
work=$(mktemp -d "${TMPDIR:-/tmp}/quern t896.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
python() { sh "$source/tests/support/python.sh" "$build" "$@" >said 2>&1; }

says() { grep -q "$1" said; ok $? "  says: $1"; }

echo 'import numpy' >has.py
python has.py || skip_all 'there is no NumPy here'
! grep -q '^1\.\.0' said || skip_all "$(sed 's/.*SKIP //' said)"
echo 'import torch' >has.py
python has.py && torch=yes || torch=

python "$source/examples/python/one_memory.py"; ok $? 'one_memory.py'
if [ $torch ]; then addresses=4; else addresses=3; fi
[ "$(grep -c '0x' said)" = $addresses ] && [ "$(grep -o '0x[0-9a-f]*' said | sort -u | wc -l)" = 1 ]
ok $? "  shows one address, $addresses times"
[ $torch ] || says 'left out, PyTorch is not installed'
python "$source/examples/python/two_sides.py"; ok $? 'two_sides.py'
says 'NumPy wrote, Quern sees'
if "$build/bin/quern" info 2>&1 | grep -q '^generator: ready'; then
  python "$source/examples/python/custom_op.py"; ok $? 'custom_op.py'
  if [ $torch ]; then says '^torch tensor'; else says 'PyTorch is not installed: on a NumPy array'; fi
else
  skip 'custom_op.py' 'this build has no generator at run time'
fi
python "$source/examples/python/transformer.py"; ok $? 'transformer.py: its results are right'
if [ $torch ]; then says 'Quern *PyTorch'; else says 'PyTorch is not installed: beside NumPy'; fi
says 'the interpreter, on two threads, gives the same bits'
program=$build/examples/transformer/quern-transformer
if [ -x "$program" ]; then
  grep -oE '[0-9a-f]{8}$|^mean.*' said >digests
  "$program" >said 2>&1; ok $? 'examples/transformer: its results are right'
  grep -oE '[0-9a-f]{8}$|^mean.*' said >digests.of.c
  [ "$(wc -l <digests)" = 5 ] && cmp digests digests.of.c >>said; ok $? '  and those of transformer.py, bit for bit'
else
  skip 'examples/transformer' 'the examples are not built here'
fi
awk '/^```python$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$source/docs/tour.md" >readme.py
[ -s readme.py ] && python readme.py; ok $? "the tour's Python"
for language in lua python; do
  awk -v first="^\`\`\`$language\$" '$0 ~ first { inside = 1; next } /^```$/ { inside = 0 } inside' "$source/docs/reductions.md" >page.$language
done
mv page.lua acme.lua
[ -s page.python ] && python page.python; ok $? 'the Python of docs/reductions.md'
printf 'import numpy\nb = numpy.float32(1)\n' >package.py
awk '/^```python$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$source/python/README.md" >>package.py
python package.py; ok $? "the package's README"
printf 'import runpy, sys\nsys.path.insert(0, "%s/bench")\nsys.argv += ["--rounds", "1"]\nrunpy.run_path("%s/bench/python_call.py", run_name="__main__")\n' "$source" "$source" >bench.py
python bench.py; ok $? 'bench/python_call.py'
says '^| add(a, b, out=c) | [0-9]* | [0-9]* | [-+][0-9]* | [0-9.]* |$'
cat >tables.py <<END
import sys
sys.path.insert(0, "$source/bench")
import run
times = run.Times()
for name, who, ns in (("call_8_op", "Quern", 90.0), ("call_8_op", "NumPy", 240.0), ("fused_light_1e5", "Quern", 1e4), ("fused_light_1e5", "JAX", 2e4)):
    times.add(name, who, ns, 1000)
peer = lambda name: (name, {}, None)
print(*run.ops_table(times, [peer("NumPy")]), *run.fused_table(times, [peer("JAX")]), run.chart(times, [peer("JAX")], "Beside other work."), sep="\n")
END
python tables.py; ok $? 'bench/run.py: tables and a chart of times'
says '^| call_8_op | 90 | 11.1 | 240 | 2.67 |$'
says '^| fused_light_1e5 | 10000 | 0.1 |  |  | 20000 | 2.00 |$'
grep -q 'Longer is better' said && grep -q 'commit .* Beside other work' said && grep -q '>5.00 JAX<' said; ok $? '  the chart says what it is of'

done_testing
