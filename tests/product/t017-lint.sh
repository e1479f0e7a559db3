#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t017-lint.sh: the settings of the house hold: luacheck finds nothing (.luacheckrc), every source has its licence line, and REUSE's
# tool finds a licence and an owner for every file. Clang finds what GCC lets pass: every C file of runtime/, tools/quern/ and python/src/
# compiles by it without a warning (the sanitized and fuzzed builds are Clang's). QUERN_REUSE: the tool, of version 4 or later; else one is installed by pip into the build.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
cd "$source" || bail "no $source"
said=$(mktemp) && compiles=$(mktemp) || bail 'no temporary file'
trap 'rm -f "$said" "$compiles"' EXIT

if command -v luacheck >/dev/null; then
  try 'luacheck: no warning' luacheck --no-color -q .
else
  skip 'luacheck: no warning' "luacheck is not installed (Debian's package lua-check)"
fi
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  try 'every source has its licence line' lua5.4 tools/spdx.lua check
else
  skip 'every source has its licence line' 'this is no git checkout'
fi

# The commands of this build with another compiler, one a line.
clang=$(command -v clang-19 || command -v clang || :)
commands=${QUERN_BUILD_DIR:-$source/build}/compile_commands.json
if [ -z "$clang" ] || [ ! -e "$commands" ]; then
  skip 'Clang: no warning' "no clang, or this build has no compile_commands.json"
else
  python3 -c '
import json, re, sys
for one in json.load(open(sys.argv[1])):
    if re.search(r"/(runtime|tools/quern|python/src)/[^ ]*\.c$", one["file"]):
        words = re.sub(r" -o [^ ]+", "", one["command"])
        print(sys.argv[2], "-fsyntax-only", words[words.index(" -"):])' "$commands" "$clang" | sort -u >"$compiles"
  checked=$(wc -l <"$compiles")
  [ "$checked" -gt 100 ]; ok $? "$checked files are compiled"
  try 'Clang: no warning' xargs -a "$compiles" -P 2 -d '\n' -n 1 sh -c
fi

# Debian's is too old to read REUSE.toml.
reuse=${QUERN_REUSE-}
if [ -z "$reuse" ]; then
  venv=${QUERN_BUILD_DIR:-$source/build}/reuse
  reuse=$venv/bin/reuse
  if [ ! -x "$reuse" ] && python3 -m venv "$venv" >"$said" 2>&1; then "$venv/bin/pip" install -q reuse==6.2.0 >"$said" 2>&1; fi
fi
if [ ! -x "$reuse" ]; then
  skip 'REUSE finds a licence and an owner for every file' "no reuse, and none can be installed: $(tail -n 1 "$said")"
elif git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  try 'REUSE finds a licence and an owner for every file' "$reuse" lint
fi
done_testing
