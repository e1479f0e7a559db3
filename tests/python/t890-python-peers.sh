#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t890-python-peers.sh: the tests in Python once more with NumPy 2, in each CPython from 3.9 on that is here: one module for all
# of them, one interpreter each day. Its virtual environment stays in the build folder. Where no index can be reached: skipped.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${QUERN_BUILD_DIR:-$source/build}
[ -e "$build/python/quern/_quern.abi3.so" ] || skip_all 'this build has no Python package'
case $(nm -D "$build/libquern.so" 2>&1) in
  *__asan_* | *__tsan_*) skip_all 'the plain build is enough for this' ;;
esac
said=$(mktemp "${TMPDIR:-/tmp}/quern-t890.XXXXXX") || exit 1
peers=$said.peers
trap 'rm -f "$said" "$peers"' EXIT
unset PYTHONPATH VIRTUAL_ENV

# environment MINOR PYTHON: the virtual environment of that interpreter, with NumPy 2; $reason says why there is none.
environment() {
  folder=$build/python-peers/3.$1
  if ! "$folder/bin/python" -c 'import numpy, sys; sys.exit(numpy.__version__ < "2")' 2>/dev/null; then
    "$2" -m venv --clear "$folder" >"$said" 2>&1 || { reason='it makes no virtual environments'; return 1; }
    timeout 300 "$folder/bin/python" -m pip install -q --only-binary :all: 'numpy>=2' >"$said" 2>&1 ||
      { reason="pip gets no NumPy 2: $(grep -v '^WARNING' "$said" | tail -1)"; return 1; }
  fi
}

# Those that are here, a line each: minor version, path.
for minor in 9 10 11 12 13 14; do
  for python in "$(command -v python3.$minor)" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python; do
    [ "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = 3.$minor ] || continue
    echo "$minor $python"
    break
  done
done >"$peers"
count=$(wc -l <"$peers")
[ "$count" -gt 0 ] || skip_all 'there is no CPython from 3.9 on by the name of its version'

number=0
while read -r minor python; do
  number=$((number + 1))
  in_part $number "$count" || continue
  if ! environment $minor "$python"; then
    skip "Python 3.$minor" "$reason"
    continue
  fi
  numpy=$("$folder/bin/python" -c 'import numpy; print(numpy.__version__)')
  for test in "$source"/tests/python/t8*.py; do
    QUERN_TEST_PYTHON=$folder/bin/python timeout 600 sh "$source/tests/support/python.sh" "$build" "$test" >"$said" 2>&1 </dev/null
    status=$?
    name="Python 3.$minor, NumPy $numpy: $(basename "$test" .py)"
    if [ $status = 0 ] && grep -q '^1\.\.0 # SKIP' "$said"; then
      skip "$name" "$(sed -n 's/^1\.\.0 # SKIP //p' "$said")"
    else
      [ $status = 0 ] && ! grep -q '^not ok' "$said"
      ok $? "$name: $(grep -c '^ok ' "$said") tests"
    fi
  done
done <"$peers"
done_testing
