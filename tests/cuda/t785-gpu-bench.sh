#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t785-gpu-bench.sh: bench/gpu.sh from end to end against the fake driver, with small arrays and without peers: each case is
# computed rightly, and every table is there. The times are those of a CPU and mean nothing.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-.}
build=${QUERN_BUILD_DIR:-build}
for file in "$build/libquern.so" "$build/tests/fake/libcuda.so.1"; do
  if [ ! -e "$file" ]; then
    skip_all "this build has no $file"
  fi
done
if ! command -v python3 >/dev/null; then
  skip_all 'there is no python3'
fi
if ! "$build/bin/quern" info 2>&1 | grep -q '^generator: ready'; then
  skip_all 'this build has no generator at run time'
fi
case $(nm -D "$build/libquern.so" 2>&1) in
  *__asan_* | *__tsan_*)
    skip_all 'a sanitizer must be the first library of a process'
    ;;
esac
work=$(mktemp -d "${TMPDIR:-/tmp}/quern t785.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
said=$work/said why=$work/why
QUERN_CUDA_PATH=$(cd "$build/tests/fake" && pwd)
export QUERN_CUDA_PATH
unset QUERN_JIT QUERN_LOG FAKE_CUDA_FAIL FAKE_CUDA_DEVICES FAKE_NVRTC_FAIL

sh "$source/bench/gpu.sh" --build "$build" --small --no-peers --out "$work/table.md" >"$said" 2>"$why"
ok $? 'it runs'
cmp "$said" "$work/table.md" >>"$why" 2>&1; ok $? 'what is printed is in the file'
head -1 "$said" | grep -q '^Fake 0, sm_90, 4 multiprocessors, .*; Quern [0-9]'; ok $? 'it says on what it ran'
for part in Bandwidth Kernels Launches 'The first call'; do
  grep -qx "## $part" "$said"; ok $? "there is a part: $part"
done
! grep -q '^## Not measured' "$said"; ok $? 'everything was measured'
! grep -q '^Quern, ' "$said"; ok $? 'no case was refused or wrong'
part() { sed -n "/^## $1/,/^## /p" "$said"; }
[ "$(part Bandwidth | grep -c '^| .* | yes \|^| .* | NO ')" = 15 ]; ok $? 'fifteen cases'
[ "$(part Kernels | grep -c '| nvrtc |.*| 32 | 0 |')" = 15 ]; ok $? "  and their kernels' registers and spills"
grep -q '^| Quern, prepared | [0-9.]* | [0-9.]* | [0-9.]* |$' "$said"; ok $? 'what a launch costs'
first='^| the first expression in a process'
grep -q "$first, nothing in the cache | [0-9.]* | nvrtc |\$" "$said"; ok $? 'the first call'
grep -q "$first, from the disk cache | [0-9.]* | disk |\$" "$said"; ok $? '  and that of the next process'

QUERN_CUDA_PATH=$work
echo 'not a library' >"$work/libcuda.so.1"
fails() { # fails NAME WORDS BUILD
  ! sh "$source/bench/gpu.sh" --build "$3" --small --no-peers >"$said" 2>"$why" && grep -q "$2" "$why"
  ok $? "$1: it fails, and says why"
}
fails 'without a driver' '^gpu.py: .*libcuda' "$build"
fails 'without a library' '^gpu.sh: .*libquern.so is not there' "$work"

done_testing
