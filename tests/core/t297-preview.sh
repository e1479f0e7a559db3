#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t297-preview.sh: dtypes in preview, f8_e4m3fn and complex128, are a row each: with --preview a tree and a library have them, typed,
# packed, copied and cast (t297-preview.c); without it nothing of them is there.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
here=$source/tests/core
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t297.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
build_lua() { lua5.4 "$source/build.lua" "$@"; }
ops=add,astype,copy,where,less,full,compress,nonzero
dtypes=bool,u8,i32,i64,f16,bf16,f32,f64,f8_e4m3fn,complex128
warnings='-std=gnu11 -Wall -Wextra -Werror'
compiler=gcc
command -v gcc >/dev/null || compiler=cc

# What a program prints, under this one's names.
passes() { # passes NAME COMMAND...
  title=$1
  shift
  "$@" >said 2>&1 && ! grep -q '^not ok' said && grep -q '^1\.\.' said
  ok $? "$title"
}

try 'a tree' build_lua generate --single --preview --prefix tiny --ops $ops --dtypes $dtypes --out tree
# shellcheck disable=SC2086
try '  is compiled, and checked by the sanitizers' $compiler $warnings -O1 -g -fsanitize=address,undefined \
  -fno-sanitize-recover=all -DOF_TREE -Itree -o of_tree "$here/t297-preview.c" tree/tiny.c -lpthread -lm
passes '  does all of that' ./of_tree

# The library's runtime with these dtypes: kernels of one level, no modules.
compile_library() {
  mkdir -p objects
  { find "$source/runtime" -name '*.c' | grep -v '/tree/\|/gen_module\.c'
    ls library/core/*.c library/runtime/*.c library/kernels/*.c; } >files
  xargs -P 2 -n 1 sh -c '
    name=$(echo "$2" | tr / _)
    exec $0 -O1 -D_GNU_SOURCE -DQN_ONE_LEVEL -DQN_MODULE_DIR="\"/nowhere\"" -I"$1/runtime" -Ilibrary -Ilibrary/runtime \
      -I"$1/include" -c -o "objects/$name.o" "$2"' "$compiler $warnings" "$source" <files
}
try 'a library' build_lua generate --library --preview --ops $ops --out library
try '  is compiled' compile_library
# shellcheck disable=SC2086
try '  and linked' $compiler $warnings -O1 -I"$source/include" -o of_library "$here/t297-preview.c" objects/*.o -lpthread -lm -ldl
passes '  does all of that, and expressions' env QUERN_JIT=off ./of_library

try 'for CUDA' build_lua generate --preview --target c,cuda --prefix tiny --ops astype,add --dtypes f32,f8_e4m3fn --out device
grep -q 'q_cast_f32_f8_e4m3fn' device/kernels/op_astype.cu; ok $? '  f8_e4m3fn is cast there, too'
refused '  complex128 is refused by name' 'complex128 has elements of 16 bytes' \
  build_lua generate --preview --target cuda --prefix tiny --ops copy --dtypes complex128 --out no
refused 'without --preview they are unknown' "unknown dtype 'complex128'" \
  build_lua generate --prefix tiny --ops copy --dtypes complex128 --out no
try 'a tree without them' build_lua generate --prefix tiny --ops $ops --out plain
! grep -rqi 'e4m3\|complex128\|b128\|kernel_dtypes' plain/core plain/kernels; ok $? '  has nothing of them'
done_testing
