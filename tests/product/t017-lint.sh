#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t017-lint.sh: the settings of the house hold: luacheck finds nothing (.luacheckrc), and every source has its licence line.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
cd "$source" || bail "no $source"
said=$(mktemp) || bail 'no temporary file'
trap 'rm -f "$said"' EXIT

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
done_testing
