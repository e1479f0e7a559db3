#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t775-gpu-script.sh: gpu.sh itself: what it says and how it ends, by the fake driver: parts that pass, a part that fails, no
# device. The parts' own tests run as tests of their own.
set -u
: "${QUERN_SOURCE_DIR:?the top folder of the sources}" "${QUERN_BUILD_DIR:?the folder of the build}"
work=$(mktemp -d) || { echo 'Bail out! no temporary folder'; exit 1; }
trap 'rm -rf "$work"' EXIT
fake=$QUERN_BUILD_DIR/tests/fake
[ -f "$fake/libcuda.so.1" ] || { echo '1..0 # SKIP the fake driver is not built'; exit 0; }
command -v c++ >/dev/null || { echo '1..0 # SKIP no c++ for the fake driver'; exit 0; }
number=0 n_bad=0
ok() { # ok STATUS NAME
  number=$((number + 1))
  if [ "$1" -eq 0 ]; then
    echo "ok $number - $2"
  else
    echo "not ok $number - $2"
    n_bad=$((n_bad + 1))
    sed 's/^/# /' "$work/out"
  fi
}
gpu() { env "$@" sh "$QUERN_SOURCE_DIR/tests/gpu.sh" "$QUERN_BUILD_DIR" >"$work/out" 2>&1; }
has() { grep -q "$1" "$work/out"; }

echo 'TAP version 13'
gpu QUERN_CUDA_PATH="$fake" QUERN_GPU_PARTS='header ops expressions memcheck' QUERN_TEST_KERNELS=2 QUERN_TEST_DAGS=1
ok $? 'small forms by the fake driver pass'
has '^ok [0-9]* - ops: [1-9][0-9]* tests, [0-9]* s$'
ok $? '  a part is a test, with its seconds'
has '^    ok 1 - '
ok $? '  its own tests stand above it'
has '^ok [0-9]* - memcheck # SKIP the driver is the fake one$'
ok $? '  a part that cannot run is skipped, and why'
has '^1\.\.4$'
ok $? '  the plan'
has '^# 4 parts, 0 failed, [1-9] skipped; [1-9][0-9]* tests in [0-9]* s$'
ok $? '  and the totals'
! gpu QUERN_CUDA_PATH="$fake" QUERN_GPU_PARTS=expressions QUERN_TEST_DAGS=1 FAKE_CUDA_FAIL='cuLaunchKernel:1+:LAUNCH_FAILED' &&
  has '^not ok 1 - expressions: 2 of 2 tests failed' && has '^# 1 parts, 1 failed'
ok $? 'a part that fails makes it fail'
! gpu QUERN_CUDA_PATH="$fake" FAKE_CUDA_DEVICES=0 && has '^not ok 1 - a GPU: no device: '
ok $? 'no device: it says why, and fails'
! sh "$QUERN_SOURCE_DIR/tests/gpu.sh" "$work" >"$work/out" 2>&1 && has '^Bail out! the tests are not built in '
ok $? 'no build: likewise'
echo "1..$number"
[ $n_bad -eq 0 ]
