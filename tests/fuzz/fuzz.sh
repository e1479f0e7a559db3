#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh: builds the fuzz targets and runs each for a while, beginning with the seeds in corpus/. What they find stays in
# build-fuzz/; the exit status is 1 if there is anything.
#   sh tests/fuzz/fuzz.sh SECONDS [TARGET]...      TARGET: expression, jit_cache, npy, object_loader, spec; none: all
set -eu
cd "$(dirname "$0")/../.."
[ $# -ge 1 ] || { sed -n '4,6s/^# \{0,1\}//p' tests/fuzz/fuzz.sh >&2; exit 2; }
seconds=$1
shift
[ $# -ge 1 ] || set -- expression jit_cache npy object_loader spec
cmake --preset fuzz >/dev/null
cmake --build build-fuzz >/dev/null
QUERN_MODULE_DIR=$PWD/build-fuzz/quern
export QUERN_MODULE_DIR
found=0
for target; do
  mkdir -p "build-fuzz/new/$target"
  dictionary=
  [ ! -f "tests/fuzz/$target.dict" ] || dictionary=-dict=tests/fuzz/$target.dict
  case $target in
    npy) longest=512 ;;
    expression) longest=8000 ;;
    *) longest=4096 ;;
  esac
  if "build-fuzz/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=$longest -timeout=20 -rss_limit_mb=3000 $dictionary \
    -artifact_prefix="build-fuzz/$target-" "build-fuzz/new/$target" "tests/fuzz/corpus/$target" >"build-fuzz/$target.log" 2>&1; then
    echo "$target: clean; $(grep -o 'Done [0-9]* runs in [0-9]* second' "build-fuzz/$target.log")s"
  else
    found=1
    echo "$target: found something: see build-fuzz/$target.log"
    tail -5 "build-fuzz/$target.log"
  fi
done
exit $found
