#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# coverage.sh: which lines and branches of the runtime the suite's programs and Python tests run, by gcov. The table becomes
# tests/coverage.txt, which TESTING.md shows; what did not run is listed in build-coverage/missed.txt.
#   sh tests/coverage.sh           builds, runs, counts. About ten minutes. QUERN_TEST_JOBS: how many at a time
# The runtime is compiled by -O0, so that a line is a line; kernels are those of the plain build. Scripts are not run: what they
# build and install has no counters. Processes that a test ends by force do not count.
set -eu
cd "$(dirname "$0")/.."
cmake --preset coverage -DQUERN_CLANG_MODULE="$(ls "$PWD/build/quern/quern-clang.so" 2>/dev/null || :)" >/dev/null
cmake --build build-coverage ${QUERN_TEST_JOBS:+-j"$QUERN_TEST_JOBS"} >/dev/null
find build-coverage -name '*.gcda' -exec rm -f {} +
set --
for source in tests/*/t[0-9]*.c; do
  name=$(basename "$source" .c)
  [ -f "${source%.c}.sh" ] || set -- "$@" "build-coverage/tests/$name"
done
for source in tests/*/t[0-9]*.py; do set -- "$@" "build-coverage/tests/$(basename "$source")"; done
QUERN_BUILD_DIR=$PWD/build-coverage
QUERN_TEST_RESULTS=$QUERN_BUILD_DIR/results
export QUERN_BUILD_DIR QUERN_TEST_RESULTS
rm -rf "$QUERN_TEST_RESULTS"
mkdir "$QUERN_TEST_RESULTS"
prove --jobs "${QUERN_TEST_JOBS:-$(nproc)}" --exec 'sh tests/run.sh --one' "$@" || echo 'coverage.sh: some tests failed; what they ran is counted'
python3 tests/support/coverage.py build-coverage build-coverage/missed.txt >build-coverage/coverage.txt
cp build-coverage/coverage.txt tests/coverage.txt
cat tests/coverage.txt
