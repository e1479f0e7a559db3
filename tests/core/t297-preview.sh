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
ops=add,astype,copy,where,less,full,compress,nonzero,cumulative_sum
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

# Items of 16 bytes on each way through a scan, with a kernel by hand: no op scans complex128 yet.
cat >scan.c <<'C'
#include "tree/tiny.c"
#include <stdio.h>
typedef struct pair { double re, im; } pair;
static void sums(char *const *ptr, const int64_t (*stride)[2], const int64_t n[2], const void *params) {
  for (int64_t j = 0; j < n[1]; j++) {
    const pair *x = (const pair *)(ptr[0] + j * stride[0][1]);
    pair *carries = (pair *)(ptr[1] + j * stride[1][1]), *out = (pair *)(ptr[2] + j * stride[2][1]);
    if (*(const int64_t *)params == 0) carries[0] = carries[1] = carries[2] = (pair){0, 0};
    for (int64_t i = 0; i < n[0]; i++) {
      carries[0].re += x[i].re, carries[0].im += x[i].im;
      carries[2] = (pair){-carries[0].re, -carries[0].im};
      out[i] = carries[0];
    }
  }
}
/* Neighbouring scans at once, with four rows of carries. */
static void beside(char *const *ptr, const int64_t (*stride)[2], const int64_t n[2], const void *params) {
  pair *carries = (pair *)ptr[1];
  if (*(const int64_t *)params == 0) memset(carries, 0, 4 * (size_t)n[0] * sizeof *carries);
  for (int64_t j = 0; j < n[1]; j++)
    for (int64_t i = 0; i < n[0]; i++) {
      const pair *x = (const pair *)(ptr[0] + j * stride[0][1]) + i;
      pair *carry = carries + 3 * n[0] + i;
      *carry = (pair){carry->re + x->re, carry->im + x->im};
      ((pair *)(ptr[2] + j * stride[2][1]))[i] = *carry;
    }
}
static const uint8_t dtypes[3] = {TINY_QN_COMPLEX128, TINY_QN_COMPLEX128, TINY_QN_COMPLEX128};
static const tiny_qn_variant rows = {.name = "sums", .dtypes = dtypes, .rank = 2, .fn = {sums, sums, sums}};
static const tiny_qn_variant columns = {.name = "beside", .dtypes = dtypes, .rank = 2, .fn = {beside, beside, beside}};
#define TO_PAIRS {.rows = &rows, .columns = &columns, .dtype = TINY_QN_COMPLEX128}
static const tiny_qn_scan_op scan = {.initial = 7, .scans = {[TINY_QN_COMPLEX128] = TO_PAIRS, [TINY_QN_F64] = TO_PAIRS},
                                     .results = {[TINY_QN_COMPLEX128] = TINY_QN_COMPLEX128, [TINY_QN_F64] = TINY_QN_COMPLEX128}};
#define MOST_ROWS 300
#define MOST_ITEMS 1000
static pair x[MOST_ROWS * MOST_ITEMS * 3], out[MOST_ROWS * (MOST_ITEMS + 1) * 3];
/* gap: between items along the axis; 0: rows are beside each other. shift: 1 include_initial, 2 exclusive */
static int is_right(const tiny_op *op, int64_t n_rows, int64_t n, int64_t gap, int shift, int reverse, int is_real) {
  int64_t shape[2] = {n_rows, n}, to_shape[2] = {n_rows, n + (shift == 1)}, strides[2] = {gap ? n * gap : 1, gap ? gap : n_rows};
  int64_t to_strides[2] = {gap ? to_shape[1] * gap : 1, strides[1]};
  DLTensor in = {x, {kDLCPU, 0}, 2, {kDLComplex, 128, 1}, shape, strides, 0}, to = {out, {kDLCPU, 0}, 2, {kDLComplex, 128, 1}, to_shape, to_strides, 0};
  DLTensor *ins[1] = {&in}, *outs[1] = {&to};
  const double *real = (const double *)x;
  if (is_real) in.dtype = (DLDataType){kDLFloat, 64, 1};
  const tiny_scalar params[4] = {{TINY_I64, {.i = 2}}, {TINY_I64, {.i = shift == 1}}, {TINY_I64, {.i = shift == 2}}, {TINY_I64, {.i = reverse}}};
  const tiny_call call = {.size = sizeof call, .params = params, .n_params = 4};
  memset(out, 0x55, sizeof out);
  if (tiny_qn_kind_scan.call(op, ins, outs, &call)) return puts(tiny_last_error()), 0;
  for (int64_t j = 0; j < n_rows; j++) {
    pair sum = {0, 0};
    for (int64_t k = 0; k < to_shape[1]; k++) {
      const int64_t at = reverse ? to_shape[1] - 1 - k : k, i = shift ? k - 1 : k;
      const int64_t from = j * strides[0] + (reverse ? n - 1 - i : i) * strides[1];
      const pair got = out[j * to_strides[0] + at * to_strides[1]], item = i < 0 ? (pair){7, 0} : is_real ? (pair){real[from], 0} : x[from];
      if (i >= 0) sum.re += item.re, sum.im += item.im;
      const pair expected = i < 0 ? item : sum;
      if (memcmp(&got, &expected, sizeof got)) return printf("row %d, place %d: %g %g, not %g %g\n", (int)j, (int)k, got.re, got.im, expected.re, expected.im), 0;
    }
  }
  return 1;
}
int main(void) {
  const tiny_op *real = tiny_qn_registry_find(tiny_qn_registry_ctx(NULL), "cumulative_sum");
  tiny_qn_builtin builtin = *real->builtin;
  tiny_op op = {.ctx = real->ctx, .info = real->info, .own_kind = real->own_kind, .builtin = &builtin};
  int n = 0;
  builtin.dtypes = 1u << TINY_QN_COMPLEX128 | 1u << TINY_QN_F64;
  builtin.of_kind = &scan;
  for (int64_t i = 0; i < MOST_ROWS * MOST_ITEMS * 3; i++) x[i] = (pair){(double)(i % 17), (double)(i % 29)};
  puts("1..144");
  for (int k = 0; k < 144; k++) {
    const int good = is_right(&op, k % 2 ? MOST_ROWS : 3, k / 2 % 2 ? MOST_ITEMS : 15, k / 4 % 3, k / 12 % 3, k / 36 % 2, k / 72);
    printf("%sok %d\n", good ? "" : "not ", k + 1);
    n += good;
  }
  return n != 144;
}
C
# shellcheck disable=SC2086
try '  a scan of items of 16 bytes is compiled' $compiler $warnings -Wno-unused-function -O0 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all \
  -I. -Itree -o of_scan scan.c -lpthread -lm
passes '  and gives their sums on each of its ways' ./of_scan

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
