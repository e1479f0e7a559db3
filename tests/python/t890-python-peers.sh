#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t890-python-peers.sh: the tests in Python once more with NumPy 2, in each CPython from 3.9 on that is here: one module for all
# of them, and one for each that is free-threaded, built as by `pip install ./python`. One interpreter and a fifth of
# the tests each day. Its virtual environment stays in the build folder. Where no index can be reached: skipped.
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
trap 'rm -rf "$said" "$peers" "$said.prefix"' EXIT
unset PYTHONPATH VIRTUAL_ENV CFLAGS

# environment NAME PYTHON: the virtual environment of that interpreter, with NumPy 2; $reason says why there is none.
environment() {
  folder=$build/python-peers/$1
  if ! "$folder/bin/python" -c 'import numpy, sys; sys.exit(numpy.__version__ < "2")' 2>/dev/null; then
    "$2" -m venv --clear "$folder" >"$said" 2>&1 || { reason='it makes no virtual environments'; return 1; }
    timeout 300 "$folder/bin/python" -m pip install -q --only-binary :all: 'numpy>=2' >"$said" 2>&1 ||
      { reason="pip gets no NumPy 2: $(grep -v '^WARNING' "$said" | tail -1)"; return 1; }
  fi
}

# own_module PYTHON: a package for a free-threaded interpreter, on this build's library; exports its place.
own_module() {
  QUERN_TEST_PACKAGE=$folder/package
  export QUERN_TEST_PACKAGE
  cmake --install "$build" --prefix "$said.prefix" >"$said" 2>&1 &&
    cmake -S "$source/python" -B "$QUERN_TEST_PACKAGE" -DPython3_EXECUTABLE="$1" -DQUERN_PREFIX="$said.prefix" >"$said" 2>&1 &&
    cmake --build "$QUERN_TEST_PACKAGE" >"$said" 2>&1 && ! ls "$QUERN_TEST_PACKAGE"/quern/*.abi3.so >>"$said" 2>/dev/null
}

# Those that are here, a line each: version, with a t where there is no GIL; path.
for name in 3.9 3.10 3.11 3.12 3.13 3.14 3.15 3.13t 3.14t 3.15t; do
  for python in "$(command -v python$name)" "${PYENV_ROOT:-$HOME/.pyenv}/versions/${name%t}".*/bin/python; do
    version=$("$python" -c 'import sys, sysconfig
print("%d.%d" % sys.version_info[:2] + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""))' 2>/dev/null)
    [ "$version" = $name ] || continue
    echo "$name $python"
    break
  done
done >"$peers"
count=$(wc -l <"$peers")
[ "$count" -gt 0 ] || skip_all 'there is no CPython from 3.9 on by the name of its version'
grep -q '^[0-9.]*t ' "$peers" || skip 'a free-threaded Python' 'there is none here by the name of its version, as python3.13t'

number=0
while read -r name python; do
  number=$((number + 1))
  in_part $number "$count" || continue
  if ! environment $name "$python"; then
    skip "Python $name" "$reason"
    continue
  fi
  unset QUERN_TEST_PACKAGE
  case $name in
    *t) own_module "$python" </dev/null; ok $? "Python $name: a module of its own" ;;
  esac
  numpy=$("$folder/bin/python" -c 'import numpy; print(numpy.__version__)')
  turn=0
  for test in "$source"/tests/python/t8*.py; do
    turn=$((turn + 1))
    in_part $turn 5 || continue
    QUERN_TEST_PYTHON=$folder/bin/python timeout 600 sh "$source/tests/support/python.sh" "$build" "$test" >"$said" 2>&1 </dev/null
    status=$?
    title="Python $name, NumPy $numpy: $(basename "$test" .py)"
    if [ $status = 0 ] && grep -q '^1\.\.0 # SKIP' "$said"; then
      skip "$title" "$(sed -n 's/^1\.\.0 # SKIP //p' "$said")"
    else
      [ $status = 0 ] && ! grep -q '^not ok' "$said"
      ok $? "$title: $(grep -c '^ok ' "$said") tests"
    fi
  done
done <"$peers"
done_testing
