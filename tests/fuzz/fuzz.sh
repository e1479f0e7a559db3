#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh: builds the fuzz targets and runs each for a while, beginning with corpus/. What they find stays in build-fuzz/; the exit
# status is 1 if there is anything. How much was run is added to tests/fuzz/totals.txt, which TESTING.md shows.
#   sh tests/fuzz/fuzz.sh SECONDS [TARGET]...      TARGET: call, expression, fused, jit_cache, npy, npz, object_loader, operands,
#                                                  program, spec; none: all
#   sh tests/fuzz/fuzz.sh --keep [TARGET]...       adds to corpus/ those of the new inputs that reach what its files do not, the
#                                                  smallest first, up to 40 files of a target
set -eu
cd "$(dirname "$0")/../.."
[ $# -ge 1 ] || { sed -n '4,10s/^# \{0,1\}//p' tests/fuzz/fuzz.sh >&2; exit 2; }
seconds=$1
shift
[ $# -ge 1 ] || set -- call expression fused jit_cache npy npz object_loader operands program spec
most=40

# Clang in process, for what is compiled at run time: of the plain build, since LLVM has no counters.
clang=$(ls "$PWD/build/quern/quern-clang.so" 2>/dev/null || :)
cmake --preset fuzz -DQUERN_WITH_CLANG="${clang:+ON}" -DQUERN_CLANG_MODULE="$clang" >/dev/null
cmake --build build-fuzz ${QUERN_FUZZ_JOBS:+-j"$QUERN_FUZZ_JOBS"} >/dev/null
QUERN_MODULE_DIR=$PWD/build-fuzz/quern
PYTHONPATH=$PWD/build-fuzz/python:$PWD/tests/fuzz
PYTHONDONTWRITEBYTECODE=1 PYTHONMALLOC=malloc QUERN_TEST_SUBSET=1 QUERN_CACHE_DIR=none
QUERN_CUDA_PATH=$PWD/build/tests/fake FAKE_NVRTC_VERSION=99.0 # a driver without a device or compiler, of the plain build
export QUERN_CUDA_PATH FAKE_NVRTC_VERSION
export QUERN_MODULE_DIR PYTHONPATH PYTHONDONTWRITEBYTECODE PYTHONMALLOC QUERN_TEST_SUBSET QUERN_CACHE_DIR
ASAN_OPTIONS=${ASAN_OPTIONS-allocator_may_return_null=1}
export ASAN_OPTIONS

longest_of() {
  case $1 in
    call) echo 256 ;;
    operands) echo 160 ;;
    fused | npy | program) echo 512 ;;
    npz) echo 1024 ;;
    expression) echo 8000 ;;
    *) echo 4096 ;;
  esac
}

keep() { # keep TARGET
  merged=$(mktemp -d)
  cp "tests/fuzz/corpus/$1/"* "$merged"
  "build-fuzz/tests/fuzz/fuzz_$1" -set_cover_merge=1 -max_len="$(longest_of "$1")" -detect_leaks=0 "$merged" "build-fuzz/new/$1" \
    >"build-fuzz/$1.merge.log" 2>&1
  there=$(ls "tests/fuzz/corpus/$1" | wc -l)
  for file in $(ls -Sr "$merged"); do
    [ "$there" -lt $most ] || break
    [ ! -e "tests/fuzz/corpus/$1/$file" ] || continue
    cp "$merged/$file" "tests/fuzz/corpus/$1/$(printf %.12s "$file")"
    there=$((there + 1))
  done
  echo "$1: $there files, $(ls "$merged" | wc -l) with all that reach something"
  rm -rf "$merged"
}

add_to_totals() { # add_to_totals TARGET RUNS SECONDS
  awk -v target="$1" -v runs="$2" -v seconds="$3" '
    $1 == target { $2 += runs; $3 += seconds; found = 1 }
    { print }
    END { if (!found) print target, runs, seconds }' tests/fuzz/totals.txt >build-fuzz/totals.new
  cp build-fuzz/totals.new tests/fuzz/totals.txt
}

found=0
for target; do
  mkdir -p "build-fuzz/new/$target"
  if [ "$seconds" = --keep ]; then
    keep "$target"
    continue
  fi
  more= asan=$ASAN_OPTIONS
  [ ! -f "tests/fuzz/$target.dict" ] || more=-dict=tests/fuzz/$target.dict
  [ "$target" != operands ] || more=-detect_leaks=0 asan=$ASAN_OPTIONS:detect_leaks=0 # the interpreter's own
  if ASAN_OPTIONS=$asan "build-fuzz/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len="$(longest_of "$target")" -timeout=60 -rss_limit_mb=4000 $more \
    -print_final_stats=1 -artifact_prefix="build-fuzz/$target-" "build-fuzz/new/$target" "tests/fuzz/corpus/$target" \
    >"build-fuzz/$target.log" 2>&1; then
    echo "$target: clean; $(grep -a -o 'Done [0-9]* runs in [0-9]* second' "build-fuzz/$target.log")s"
  else
    found=1
    echo "$target: found something: see build-fuzz/$target.log"
    tail -5 "build-fuzz/$target.log"
  fi
  set -- $(sed -n 's/^stat::number_of_executed_units: *\([0-9]*\).*/\1/p' "build-fuzz/$target.log") "$seconds"
  [ $# -lt 2 ] || add_to_totals "$target" "$1" "$2"
done
exit $found
