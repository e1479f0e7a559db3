#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t775-gpu-script.sh: gpu.sh itself: what it says and how it ends, by the fake driver: parts that pass, a part that fails, no
# device. The parts' own tests run as tests of their own.
set -u
. "$(dirname "$0")/../support/tap.sh"
: "${QUERN_SOURCE_DIR:?the top folder of the sources}" "${QUERN_BUILD_DIR:?the folder of the build}"
work=$(mktemp -d) || bail 'no temporary folder'
trap 'rm -rf "$work"' EXIT
said=$work/out
fake=$QUERN_BUILD_DIR/tests/fake
[ -f "$fake/libcuda.so.1" ] || skip_all 'the fake driver is not built'
command -v c++ >/dev/null || skip_all 'no c++ for the fake driver'
gpu() { env "$@" sh "$QUERN_SOURCE_DIR/tests/gpu.sh" "$QUERN_BUILD_DIR" >"$said" 2>&1; }
has() { grep -q "$1" "$said"; }

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
! sh "$QUERN_SOURCE_DIR/tests/gpu.sh" "$work" >"$said" 2>&1 && has '^Bail out! the tests are not built in '
ok $? 'no build: likewise'
done_testing
