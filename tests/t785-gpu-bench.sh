#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t785-gpu-bench.sh: bench/gpu.sh from end to end against the fake driver, with small arrays and without peers: each case is
# computed rightly, and every table is there. The times are those of a CPU and mean nothing.
set -u
source=${QUERN_SOURCE_DIR:-.}
build=${QUERN_BUILD_DIR:-build}
for file in "$build/libquern.so" "$build/tests/fake/libcuda.so.1"; do
  if [ ! -e "$file" ]; then
    echo "1..0 # SKIP this build has no $file"
    exit 0
  fi
done
if ! command -v python3 >/dev/null; then
  echo '1..0 # SKIP there is no python3'
  exit 0
fi
if ! "$build/bin/quern" info 2>&1 | grep -q '^generator: ready'; then
  echo '1..0 # SKIP this build has no generator at run time'
  exit 0
fi
case $(nm -D "$build/libquern.so" 2>&1) in
  *__asan_* | *__tsan_*)
    echo '1..0 # SKIP a sanitizer must be the first library of a process'
    exit 0
    ;;
esac
work=$(mktemp -d "${TMPDIR:-/tmp}/quern t785.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
QUERN_CUDA_PATH=$(cd "$build/tests/fake" && pwd)
export QUERN_CUDA_PATH
unset QUERN_JIT QUERN_LOG FAKE_CUDA_FAIL FAKE_CUDA_DEVICES FAKE_NVRTC_FAIL

n=0 bad=0
ok() { # ok STATUS NAME: passes when STATUS is 0
  n=$((n + 1))
  if [ "$1" = 0 ]; then
    echo "ok $n - $2"
  else
    bad=$((bad + 1))
    echo "not ok $n - $2"
    sed 's/^/# /' "$work/why" "$work/said" | head -60
  fi
}

sh "$source/bench/gpu.sh" --build "$build" --small --no-peers --out "$work/table.md" >"$work/said" 2>"$work/why"
ok $? 'it runs'
cmp "$work/said" "$work/table.md" >>"$work/why" 2>&1; ok $? 'what is printed is in the file'
head -1 "$work/said" | grep -q '^Fake 0, sm_90, 4 multiprocessors, .*; Quern [0-9]'; ok $? 'it says on what it ran'
for part in Bandwidth Kernels Launches 'The first call'; do
  grep -qx "## $part" "$work/said"; ok $? "there is a part: $part"
done
! grep -q '^## Not measured' "$work/said"; ok $? 'everything was measured'
! grep -q '^Quern, ' "$work/said"; ok $? 'no case was refused or wrong'
part() { sed -n "/^## $1/,/^## /p" "$work/said"; }
[ "$(part Bandwidth | grep -c '^| .* | yes \|^| .* | NO ')" = 7 ]; ok $? 'seven cases'
[ "$(part Kernels | grep -c '| nvrtc |.*| 32 | 0 |')" = 7 ]; ok $? "  and their kernels' registers and spills"
grep -q '^| Quern, prepared | [0-9.]* | [0-9.]* | [0-9.]* |$' "$work/said"; ok $? 'what a launch costs'
first='^| the first expression in a process'
grep -q "$first, nothing in the cache | [0-9.]* | nvrtc |\$" "$work/said"; ok $? 'the first call'
grep -q "$first, from the disk cache | [0-9.]* | disk |\$" "$work/said"; ok $? '  and that of the next process'

QUERN_CUDA_PATH=$work
echo 'not a library' >"$work/libcuda.so.1"
fails() { # fails NAME WORDS BUILD
  ! sh "$source/bench/gpu.sh" --build "$3" --small --no-peers >"$work/said" 2>"$work/why" && grep -q "$2" "$work/why"
  ok $? "$1: it fails, and says why"
}
fails 'without a driver' '^gpu.py: .*libcuda' "$build"
fails 'without a library' '^gpu.sh: .*libquern.so is not there' "$work"

echo "1..$n"
[ $bad = 0 ]
