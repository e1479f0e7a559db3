#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: full
#
# t019-tidy.sh: clang-tidy finds nothing in runtime/, tools/quern/ and python/src/, by the settings of .clang-tidy and as the build
# compiles them. By `./bootstrap.sh test full` only.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${QUERN_BUILD_DIR:-$source/build}
cd "$source" || bail "no $source"
skip_all() {
  echo "1..0 # SKIP $1"
  exit 0
}
[ "${QUERN_TEST_EXHAUSTIVE-}" = 1 ] || skip_all "it takes minutes: ./bootstrap.sh test full"
command -v clang-tidy-19 >/dev/null || skip_all "no clang-tidy-19 (Debian's package clang-tidy-19)"
[ -e "$build/compile_commands.json" ] || skip_all 'this build has no compile_commands.json'
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t019.XXXXXX") || bail 'no temporary folder'
said=$work/said
trap 'rm -rf "$work"' EXIT

# The files that this build compiles.
for folder in runtime tools/quern python/src; do
  find "$source/$folder" -name '*.c' | sort | while read -r file; do
    if grep -qF "\"file\": \"$file\"" "$build/compile_commands.json"; then echo "$file"; fi
  done >"$work/files"
  if [ ! -s "$work/files" ]; then
    skip "$folder" 'this build does not compile it'
    continue
  fi
  try "$folder: $(wc -l <"$work/files") files" xargs -n 8 clang-tidy-19 -p "$build" --quiet <"$work/files"
done
printf 'int is_same(int a);\nint is_same(int a) { return a == a; }\n' >"$work/bad.c"
cp .clang-tidy "$work/"
clang-tidy-19 --quiet "$work/bad.c" -- -std=c11 >"$work/said" 2>&1
[ $? -ne 0 ] && grep -q 'misc-redundant-expression' "$work/said"; ok $? 'a mistake is found'
done_testing
