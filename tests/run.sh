#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh: gives the tests to prove.
#   sh tests/run.sh BUILD [SANITISED BUILD]...   every test: programs and .py files on each build, other scripts on the first; on a
#                                                build of one tag (QUERN_TEST_TAG) those that have it
#   sh tests/run.sh --one TEST                   one test: a program, a .lua, .py or .sh file (what prove calls). With
#                                                QUERN_TEST_RESULTS its TAP is left in that folder, too
# A whole run leaves BUILD/results, and what support/figures.lua counts in it in BUILD/figures.md.
# Exports QUERN_SOURCE_DIR and QUERN_BUILD_DIR; the latter is the build a program lies in. BUILD/tests/tNNN-name.py is
# tests/tNNN-name.py on that build's package. QUERN_TEST_JOBS: how many run at a time (default: one per core).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."
QUERN_SOURCE_DIR=$PWD
export QUERN_SOURCE_DIR

if [ "${1-}" = --one ] && [ -n "${QUERN_TEST_RESULTS-}" ]; then
  tap=$QUERN_TEST_RESULTS/$(echo "$2" | tr / :).tap status=0
  env -u QUERN_TEST_RESULTS sh "$here/run.sh" --one "$2" >"$tap" || status=$?
  # A test that bails out has failed; prove would not run the others.
  sed 's/^Bail out!/not ok - bail out:/' "$tap"
  exit $status
fi
if [ "${1-}" = --one ]; then
  test=$2
  case $test in
    *.lua) LUA_PATH="$here/support/?.lua;$here/support/random/?.lua;$PWD/?.lua;;" exec lua5.4 "$test" ;;
    *.sh) exec sh "$test" ;;
    tests/*.py) exec sh "$here/support/python.sh" "${QUERN_BUILD_DIR:-build}" "$here/python/$(basename "$test")" ;;
    *.py) exec sh "$here/support/python.sh" "$(dirname "$(dirname "$test")")" "$here/python/$(basename "$test")" ;;
  esac
  QUERN_BUILD_DIR=$(cd "$(dirname "$test")/.." && pwd)
  # A program that has the library in itself does not lie beside the modules.
  QUERN_MODULE_DIR=$QUERN_BUILD_DIR/quern
  export QUERN_BUILD_DIR QUERN_MODULE_DIR
  # Every bit pattern once, in the plain build: the sanitized ones look for other mistakes, and are slow.
  case $QUERN_BUILD_DIR in
    *asan* | *tsan*) unset QUERN_TEST_EXHAUSTIVE ;;
  esac
  case $test in
    */*) exec "$test" ;;
    *) exec "./$test" ;;
  esac
fi

[ $# -ge 1 ] || { echo 'usage: sh tests/run.sh BUILD [SANITISED BUILD]...' >&2; exit 2; }
QUERN_BUILD_DIR=$(cd "$1" && pwd)
export QUERN_BUILD_DIR
# A report of a sanitizer is a failure, whatever the test makes of it.
ASAN_OPTIONS=${ASAN_OPTIONS-detect_stack_use_after_return=1:allocator_may_return_null=1}
UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1}
TSAN_OPTIONS=${TSAN_OPTIONS-halt_on_error=1:second_deadlock_stack=1}
export ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS

# The day says which part of their cases some tests take; in `full` they take all.
QUERN_TEST_DAY=${QUERN_TEST_DAY-$(($(date +%s) / 86400))}
export QUERN_TEST_DAY

# Where both are here, a test of both tags runs on one of them each day, half of these tests on each; in full on both.
both=
if [ "${QUERN_TEST_EXHAUSTIVE-}" != 1 ]; then
  both=$(for folder in "$@"; do sed -n 's/^QUERN_TEST_TAG:[A-Z]*=//p' "$folder/CMakeCache.txt"; done | grep . | sort -u | tr '\n' ' ')
  [ "$both" = 'memory threads ' ] || both=
fi

# Whether the head of the file has the tag.
has_tag() { sed -n '1,3p' "$2" | grep -q "^[ #-]*[*]* *tags:.* $1\( \|\$\)"; }
# Whether a test of the file belongs to this pass, on a build of this tag.
is_wanted() {
  if [ -n "$tag" ]; then
    has_tag "$tag" "$1" || return 1
    if [ -n "$both" ] && has_tag memory "$1" && has_tag threads "$1"; then
      number=${1##*/t} number=${number%%-*}
      if [ $(((number / 2 + QUERN_TEST_DAY) % 2)) = 0 ]; then [ $tag = memory ] || return 1; else [ $tag = threads ] || return 1; fi
    fi
  fi
  if has_tag long "$1"; then [ $pass = long ]; else [ $pass = rest ]; fi
}

# The longest first, so that all jobs end together. The tests are put behind the builds.
n_builds=$#
for pass in long rest; do
  build=0
  while [ $build -lt $n_builds ]; do
    build=$((build + 1))
    eval "folder=\${$build}"
    tag=$(sed -n 's/^QUERN_TEST_TAG:[A-Z]*=//p' "$folder/CMakeCache.txt")
    for source in tests/*/t[0-9]*.c; do
      name=$(basename "$source" .c)
      [ ! -f "${source%.c}.sh" ] || continue # that script builds and runs it
      is_wanted "$source" || continue
      if [ ! -x "$folder/tests/$name" ]; then
        echo "run.sh: $folder/tests/$name is not built" >&2
        exit 1
      fi
      set -- "$@" "$folder/tests/$name"
    done
    for script in tests/*/t[0-9]*.py; do
      if is_wanted "$script"; then set -- "$@" "$folder/tests/$(basename "$script")"; fi
    done
  done
  tag=
  for script in tests/*/t[0-9]*.lua tests/*/t[0-9]*.sh; do
    if is_wanted "$script"; then set -- "$@" "$script"; fi
  done
done
shift $n_builds
QUERN_TEST_RESULTS=$QUERN_BUILD_DIR/results
export QUERN_TEST_RESULTS
rm -rf "$QUERN_TEST_RESULTS"
mkdir "$QUERN_TEST_RESULTS"
status=0
prove --timer --jobs "${QUERN_TEST_JOBS:-$(nproc)}" --exec 'sh tests/run.sh --one' "$@" || status=$?
LUA_PATH="$here/support/?.lua;;" lua5.4 "$here/support/figures.lua" "$QUERN_TEST_RESULTS" >"$QUERN_BUILD_DIR/figures.md" || :
exit $status
