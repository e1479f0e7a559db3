#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t297-preview.sh: dtypes in preview, f8_e4m3fn and complex128, are a row each. With --preview a tree and a library have them, typed,
# packed, copied and cast (t297-preview.c), the library every third day; without it nothing of them is there.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
here=$source/tests/core
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t297.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
build_lua() { lua5.4 "$source/build.lua" "$@"; }
# Nothing is optimised here: t285 says that bits do not depend on it.
ops=add,astype,copy,where,less,full,compress,nonzero
dtypes=bool,u8,i32,i64,f16,bf16,f32,f64,f8_e4m3fn,complex128
warnings='-std=gnu11 -Wall -Wextra -Werror'
compiler=$quick_cc

# What a program prints, under this one's names.
passes() { # passes NAME COMMAND...
  title=$1
  shift
  "$@" >said 2>&1 && ! grep -q '^not ok' said && grep -q '^1\.\.' said
  ok $? "$title"
}

try 'a tree' build_lua generate --single --preview --prefix tiny --ops $ops --dtypes $dtypes --out tree
# shellcheck disable=SC2086
try '  is compiled, and checked by the sanitizers' $compiler $warnings -O0 -g1 -fsanitize=address,undefined \
  -fno-sanitize-recover=all -DOF_TREE -Itree -o of_tree "$here/t297-preview.c" tree/tiny.c -lpthread -lm
passes '  does all of that' ./of_tree casts.bin

# The library's runtime with these dtypes: kernels of one level, no modules.
compile_library() {
  mkdir -p objects
  { find "$source/runtime" -name '*.c' | grep -v '/tree/\|/gen_module\.c'
    ls library/core/*.c library/runtime/*.c library/kernels/*.c; } >files
  xargs -P 2 -n 1 sh -c '
    name=$(echo "$2" | tr / _)
    exec $0 -O0 -fPIC -fvisibility=hidden -D_GNU_SOURCE -DQN_ONE_LEVEL -DQN_MODULE_DIR="\"/nowhere\"" \
      -I"$1/runtime" -Ilibrary -Ilibrary/runtime \
      -I"$1/include" -c -o "objects/$name.o" "$2"' "$compiler $warnings" "$source" <files
}
with_library() {
  try 'a library' build_lua generate --library --preview --ops $ops --out library
  try '  is compiled' compile_library
  # shellcheck disable=SC2086
  try '  and linked' $compiler $warnings -O0 -I"$source/include" -o of_library "$here/t297-preview.c" objects/*.o -lpthread -lm -ldl
  passes '  does all of that, and expressions' env QUERN_JIT=off ./of_library

  # The generator of the build does not have these dtypes: what it is asked for with them is interpreted.
  modules=${QUERN_BUILD_DIR:-$source/build}/quern
  case $(nm -D "$modules/quern-clang.so" 2>&1) in
    *'No such file'* | *'no symbols'* | *__asan_* | *__tsan_*) skip '  likewise where expressions are compiled' 'this build has no plain module for Clang' ;;
    *)
      passes '  likewise where expressions are compiled' \
        env QUERN_JIT=sync QUERN_MODULE_DIR="$modules" QUERN_CACHE_DIR="$work/cache" T297_COMPILES=1 ./of_library
      grep -q 'compiled where the generator knows' said; ok $? '  all but those with such dtypes'
      ;;
  esac

  # The Python package, which finds libquern.so.0 two folders up, with this library.
  package=${QUERN_BUILD_DIR:-$source/build}/python/quern
  case $(nm -D "$package/_quern.abi3.so" 2>&1) in
    *'no symbols'* | *'No such file'* | *__asan_* | *__tsan_*) skip 'the Python package with it' 'this build has no plain one' ;;
    *)
      mkdir -p of_python/python && cp -R "$package" of_python/python/ && ln -s libquern.so.0 of_python/libquern.so &&
        $compiler -shared -Wl,-soname,libquern.so.0 -o of_python/libquern.so.0 objects/*.o -lpthread -lm -ldl
      passes 'the Python package with it' sh "$source/tests/support/python.sh" of_python \
        "$source/tests/python/t869-python-preview.py"
      grep -q 'f64 to complex128' said; ok $? '  has these dtypes'
      ;;
  esac
}
if in_part 0 3; then with_library; else skip 'a library' 'every third day'; fi

# CUDA's text of the casts, compiled for the CPU, gives what the tree's kernels gave.
try 'for CUDA' build_lua generate --preview --target cuda --prefix tiny --ops astype \
  --dtypes bool,u8,i32,i64,f16,bf16,f32,f64,f8_e4m3fn --out device
grep -q 'const f8_e4m3fn_s' device/kernels/tiny_op_astype_cuda.cu; ok $? '  there are kernels of f8_e4m3fn'
sed '/^extern "C" __global__/,$d' device/kernels/tiny_op_astype_cuda.cu >head.inc
cat >casts.cc <<'C'
#include "head.inc"
#include <cstdio>
#include <cstring>
#define F8 f8_e4m3fn
typedef f8_e4m3fn_s F8_S;
static unsigned char x[1 << 19], y[1 << 19];
static int n_compared, n_wrong;
template <typename A, typename B> static void compare(const char *name, int n, B (*cast)(A)) {
  for (int i = 0; i < n; i++) {
    A from;
    memcpy(&from, x + i * sizeof(A), sizeof(A));
    const B got = cast(from);
    n_compared++;
    if (memcmp(&got, y + i * sizeof(B), sizeof(B)) && n_wrong++ < 10) printf("%s: item %d\n", name, i);
  }
}
#define TO(A, S) compare<S, F8_S>("from " #A, head[4], [](S x) -> F8_S { return q_cast_##A##_f8_e4m3fn(x); })
#define FROM(B, S) compare<F8_S, S>("to " #B, head[4], [](F8_S x) -> S { return q_cast_f8_e4m3fn_##B(x); })
#define EITHER(CODE, BITS, A, S)                            \
  if (head[0] == CODE && head[1] == BITS) TO(A, S);         \
  else if (head[2] == CODE && head[3] == BITS) FROM(A, S);
int main(int, char **argv) {
  FILE *table = fopen(argv[1], "rb");
  for (int head[5]; fread(head, sizeof head, 1, table) == 1;) {
    const size_t n = head[4];
    if (fread(x, head[1] / 8, n, table) != n || fread(y, head[3] / 8, n, table) != n) return 1;
    EITHER(6, 8, bool, bool_s) EITHER(0, 32, i32, i32) EITHER(0, 64, i64, i64) EITHER(1, 8, u8, u8) EITHER(2, 16, f16, f16_s)
    EITHER(4, 16, bf16, bf16_s) EITHER(2, 32, f32, f32) EITHER(2, 64, f64, f64)
  }
  printf("%d compared, %d wrong\n", n_compared, n_wrong);
  return n_wrong || n_compared < 250000;
}
C
if command -v g++ >/dev/null; then
  try '  they are compiled' "$quick_cxx" -std=c++17 -O1 -ffp-contract=off -Wall -Wextra -Werror -Wno-unknown-pragmas -DQC_HOST \
    -I"$source/tests/support/cuda" -o casts casts.cc
  try '  and cast as the CPU does' ./casts casts.bin
else
  skip '  and cast as the CPU does' 'no g++'
fi
refused '  complex128 is refused by name' 'complex128 has elements of 16 bytes' \
  build_lua generate --preview --target cuda --prefix tiny --ops copy --dtypes complex128 --out no
# Another float is one more row: f8_e5m2, the upper byte of an f16, in a copy of the sources.
mkdir copy
(cd "$source" && tar cf - build.lua dsl gen templates include runtime/core runtime/tree) | tar xf - -C copy
sed -i 's/^dtype "complex128"/dtype "f8_e5m2" { code = 12, bits = 8, kind = "float", compute = "f32", built = "preview", exponent = 5, digits = 3 }\n&/' \
  copy/dsl/types.lua
cat >row.c <<'C'
#include <stdio.h>
#include "tiny.h"
int main(void) {
  static unsigned short halves[1 << 16], back[256];
  static unsigned char codes[1 << 16], all[256];
  int64_t n = 1 << 16, few = 256;
  int wrong = 0;
  DLTensor x = {halves, {kDLCPU, 0}, 1, {kDLFloat, 16, 1}, &n, NULL, 0}, y = {codes, {kDLCPU, 0}, 1, {12, 8, 1}, &n, NULL, 0};
  DLTensor a = {all, {kDLCPU, 0}, 1, {12, 8, 1}, &few, NULL, 0}, b = {back, {kDLCPU, 0}, 1, {kDLFloat, 16, 1}, &few, NULL, 0};
  for (int i = 0; i < 1 << 16; i++) halves[i] = (unsigned short)i;
  for (int i = 0; i < 256; i++) all[i] = (unsigned char)i;
  if (tiny_astype(&x, &y, NULL) || tiny_astype(&a, &b, NULL)) return printf("%s\n", tiny_last_error()), 1;
  for (int i = 0; i < 1 << 16; i++) {
    const int magnitude = i & 0x7fff, rounded = (magnitude + 0x7f + (magnitude >> 8 & 1)) >> 8;
    wrong += codes[i] != (magnitude > 0x7c00 ? 0x7e : rounded | (i >> 8 & 0x80));
  }
  for (int i = 0; i < 256; i++) wrong += back[i] != ((i & 0x7f) > 0x7c ? 0x7e00 : i << 8);
  return wrong ? printf("%d casts are wrong\n", wrong), 1 : 0;
}
C
try 'a float of one more row' lua5.4 copy/build.lua generate --single --preview --prefix tiny --ops astype --dtypes f16,f8_e5m2 --out row
# shellcheck disable=SC2086
try '  is compiled' $compiler $warnings -O0 -Irow -o row_test row.c row/tiny.c -lpthread -lm
try '  and cast' ./row_test

refused 'without --preview they are refused' 'complex128 is in preview: give --preview, too' \
  build_lua generate --prefix tiny --ops copy --dtypes complex128 --out no
try 'a tree without them' build_lua generate --prefix tiny --ops $ops --out plain
! grep -rqi '[^o]f8_e4m3\|qn_complex\|complex128_\|[^a-z]b128\|kernel_dtypes' plain/core plain/kernels; ok $? '  has nothing of them'
done_testing
