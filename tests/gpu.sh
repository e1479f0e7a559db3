#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# gpu.sh: what only a machine with a GPU can show, in one command of at most 8 minutes, as TAP:
#   sh tests/gpu.sh [BUILD]      BUILD: a build, made here or carried from another machine; default ./build
# Each part is one test, with its own output indented above it; the exit status is 0 where all passed. Wants no Lua, no Clang and
# no network; compilers and compute-sanitizer where they are. Without a GPU it says why and fails; but where QUERN_CUDA_PATH names
# the fake driver of a build (BUILD/tests/fake) the parts run in their small forms. QUERN_GPU_PARTS: the parts to run, by name.
set -u
here=$(cd "$(dirname "$0")" && pwd)

# --shards COUNT OF PROGRAM...: COUNT copies of a program at a time, the k-th with QUERN_TEST_SHARD=k/OF.
if [ "${1-}" = --shards ]; then
  count=$2 of=$3 k=0 pids='' status=0
  shift 3
  folder=$(mktemp -d) || exit 1
  trap 'rm -rf "$folder"' EXIT
  while [ $k -lt "$count" ]; do
    QUERN_TEST_SHARD=$k/$of "$@" >"$folder/$k" 2>&1 &
    pids="$pids $!"
    k=$((k + 1))
  done
  trap 'kill $pids 2>/dev/null; cat "$folder"/*; exit 143' TERM INT
  for pid in $pids; do wait "$pid" || status=$?; done
  cat "$folder"/*
  exit $status
fi

build=$(cd "${1-build}" 2>/dev/null && pwd) || { echo "Bail out! there is no build in ${1-build}"; exit 2; }
[ -x "$build/tests/t760-cuda-ops" ] || { echo "Bail out! the tests are not built in $build"; exit 2; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
started=$(date +%s) number=0 n_bad=0 n_tests=0 n_skipped=0

count_of() { grep -c "$1" "$work/out"; }
said() { sed -n "s/^1\.\.0 # SKIP *//p" "$work/out" | head -1; }
# part NAME SECONDS COMMAND...
part() {
  name=$1 limit=$2
  [ $is_fake -eq 0 ] || limit=$((10 * limit)) # what it costs on a processor that others use, too, says nothing
  shift 2
  case " ${QUERN_GPU_PARTS-$name} " in *" $name "*) ;; *) return ;; esac
  from=$(date +%s)
  timeout -k 5 "$limit" "$@" >"$work/out" 2>&1
  status=$?
  seconds=$(($(date +%s) - from))
  number=$((number + 1))
  sed 's/^/    /' "$work/out"
  passed=$(count_of '^ok ') failed=$(count_of '^not ok \|^Bail out')
  n_tests=$((n_tests + passed + failed))
  verdict=ok note="$passed tests, $seconds s"
  if [ $status -eq 0 ] && [ -n "$(said)" ]; then
    note="# SKIP $(said)"
    n_skipped=$((n_skipped + 1))
  elif [ $status -ne 0 ] || [ "$failed" -ne 0 ] || [ "$passed" -eq 0 ]; then
    verdict='not ok' note="$failed of $((passed + failed)) tests failed, $seconds s, status $status"
    [ $status -ne 124 ] || note="out of time: $limit s"
    n_bad=$((n_bad + 1))
  fi
  echo "$verdict $number - $name: $note"
}
absent() { # absent NAME REASON
  case " ${QUERN_GPU_PARTS-$1} " in *" $1 "*) ;; *) return ;; esac
  number=$((number + 1)) n_skipped=$((n_skipped + 1))
  echo "ok $number - $1 # SKIP $2"
}

echo 'TAP version 13'
gpu=QUERN_TEST_GPU=1 is_fake=0
if [ -n "${QUERN_CUDA_PATH-}" ] && grep -q fake_cuda_log "$QUERN_CUDA_PATH/libcuda.so.1" 2>/dev/null; then
  gpu=QUERN_TEST_GPU=0 is_fake=1
  echo '# the driver is the fake one: small forms'
fi
# Absent where the tests are to set it themselves.
unset QUERN_TEST_SHARD QUERN_TEST_PART
env $gpu QUERN_TEST_PART=none "$build/tests/t765-cuda-expressions" >"$work/out" 2>&1
if [ -n "$(said)" ] || ! grep -q '^# [1-9][0-9]* device' "$work/out"; then
  sed 's/^/    /' "$work/out"
  echo "not ok 1 - a GPU: $(said)"
  echo '1..1'
  exit 1
fi
grep '^# [1-9][0-9]* device' "$work/out"
QUERN_SOURCE_DIR=$(dirname "$here") QUERN_BUILD_DIR=$build
export QUERN_SOURCE_DIR QUERN_BUILD_DIR
shards=$(nproc)
[ "$shards" -le 8 ] || shards=8
[ $is_fake -eq 0 ] || shards=1

part header 10 env $gpu "$build/tests/t735-cuda-header"
part calls 40 env $gpu "$build/tests/t770-cuda-calls"
if [ $is_fake -eq 1 ]; then
  absent primitives 'the driver is the fake one'
elif ! command -v c++ >/dev/null; then
  absent primitives 'no C++ compiler here'
else
  part primitives 60 env $gpu sh "$here/t700-cuda-primitives.sh"
fi
part ops 110 env $gpu QUERN_TEST_SECONDS="${QUERN_TEST_SECONDS-90}" sh "$0" --shards $shards $shards "$build/tests/t760-cuda-ops"
part reductions 60 env $gpu sh "$0" --shards $shards $shards "$build/tests/t796-cuda-reductions"
part row-expressions 60 env $gpu sh "$0" --shards $shards $shards "$build/tests/t797-cuda-row-expressions"
part scans 40 env $gpu sh "$0" --shards $shards $shards "$build/tests/t798-cuda-scans"
part expressions 50 env $gpu QUERN_TEST_PART=expressions sh "$0" --shards $shards $shards "$build/tests/t765-cuda-expressions"
part bits 100 env $gpu QUERN_TEST_PART=bits QUERN_TEST_SECONDS="${QUERN_TEST_SECONDS-75}" "$build/tests/t765-cuda-expressions"

PATH=$PATH:/usr/local/cuda/bin
sanitizer=$(command -v compute-sanitizer)
if [ $is_fake -eq 1 ]; then
  absent memcheck 'the driver is the fake one'
  absent racecheck 'the driver is the fake one'
elif [ -z "$sanitizer" ]; then
  absent memcheck 'no compute-sanitizer here'
  absent racecheck 'no compute-sanitizer here'
else
  # What calls refuse is no error here: reports are of what kernels do.
  part memcheck 50 env $gpu QUERN_TEST_SECONDS=25 sh "$0" --shards 4 300 "$sanitizer" --tool memcheck --report-api-errors no \
    --error-exitcode 9 "$build/tests/t760-cuda-ops"
  part memcheck-reductions 40 env $gpu sh "$0" --shards 4 60 "$sanitizer" --tool memcheck --report-api-errors no \
    --error-exitcode 9 "$build/tests/t796-cuda-reductions"
  part racecheck 40 env $gpu QUERN_TEST_SECONDS=15 QUERN_TEST_LAYOUT=transposed sh "$0" --shards 2 40 "$sanitizer" \
    --tool racecheck --error-exitcode 9 "$build/tests/t760-cuda-ops"
  part racecheck-reductions 40 env $gpu sh "$0" --shards 2 60 "$sanitizer" --tool racecheck --error-exitcode 9 \
    "$build/tests/t796-cuda-reductions"
  part racecheck-row-expressions 40 env $gpu sh "$0" --shards 2 60 "$sanitizer" --tool racecheck --error-exitcode 9 \
    "$build/tests/t797-cuda-row-expressions"
  part racecheck-scans 30 env $gpu sh "$0" --shards 2 40 "$sanitizer" --tool racecheck --error-exitcode 9 \
    "$build/tests/t798-cuda-scans"
  # Barriers that some threads of a block do not reach.
  part synccheck-reductions 30 env $gpu sh "$0" --shards 2 60 "$sanitizer" --tool synccheck --error-exitcode 9 \
    "$build/tests/t796-cuda-reductions"
  part synccheck-scans 20 env $gpu sh "$0" --shards 2 40 "$sanitizer" --tool synccheck --error-exitcode 9 \
    "$build/tests/t798-cuda-scans"
fi
echo "1..$number"
echo "# $number parts, $n_bad failed, $n_skipped skipped; $n_tests tests in $(($(date +%s) - started)) s"
[ $n_bad -eq 0 ] && [ $number -gt 0 ]
