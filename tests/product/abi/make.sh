#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# make.sh: the ABI of a build's library, as libabigail's XML: the functions of quern.h and dlpack_exchange.h, and the public types that
# they reach. The typed functions of ops.h are not in it: each is called as the others are.
#   sh tests/product/abi/make.sh BUILD FILE      the baseline: sh tests/product/abi/make.sh build tests/product/abi/quern.abi
# A release has no debug information: the files that define public functions are compiled once more with it, and linked before the
# library's own objects.
set -eu
build=$(cd "$1" && pwd)
out=$(realpath "$2")
cd "$(dirname "$0")/../../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -n 's/^QUERN_API .*[ *]\(quern_[a-z_0-9]*\)(.*/[ *]\1(/p' include/quern/quern.h include/quern/dlpack_exchange.h >"$work/functions"
for file in $(find runtime -name '*.c' ! -path 'runtime/tree/*' ! -path 'runtime/abi/*' | sort); do
  grep '^[a-z]' "$file" | grep -q -f "$work/functions" || continue
  ${CC:-cc} -std=gnu11 -g -O0 -fPIC -fvisibility=hidden -D_GNU_SOURCE '-DQN_MODULE_DIR=""' '-DQN_CLANG_LIBRARIES=""' -Iruntime \
    "-I$build/generated" "-I$build/generated/runtime" -Iinclude -c "$file" -o "$work/$(basename "$file" .c).o"
done
${CC:-cc} -shared -o "$work/libquern.so" -Wl,-soname,libquern.so.0 -Wl,-z,muldefs "$work"/*.o -Wl,--whole-archive "$build/libquern.a" \
  -Wl,--no-whole-archive -lpthread -ldl
abidw --exported-interfaces-only --suppressions tests/product/abi/typed_functions.ini --headers-dir include/quern --drop-private-types \
  --no-show-locs --no-corpus-path --no-comp-dir-path --no-write-default-sizes --no-parameter-names --type-id-style hash \
  --out-file "$out" "$work/libquern.so"
