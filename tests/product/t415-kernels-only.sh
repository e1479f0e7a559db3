#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t415-kernels-only.sh: `generate --kernels-only`: kernels without a runtime. The example with a dispatcher of its own, in C++, by
# CMake; by sources.txt with GCC and Clang without a warning; the header in C and C++; nothing undefined, so neither threads nor
# environment nor libc; every row of the table, at every level, gives the bits of a whole tree; what it refuses. Each day has
# one compiler, which optimises the kernels of one level, and one dtype beside floats; in full both have those of all levels, and all dtypes.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${QUERN_BUILD_DIR:-$source/build}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t415.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
said=$work/said
strict='-Wall -Wextra -Werror'
generate() { lua5.4 "$source/build.lua" generate "$@"; }

# ---- the example; kept in the build folder, so that a second run compiles nothing
launcher= # optimised, and by the machine's compiler, in full only; examples/demo is so in every build
[ "${QUERN_TEST_EXHAUSTIVE-}" = 1 ] || launcher="sh;$source/tests/support/unoptimised.sh"
[ "${QUERN_TEST_EXHAUSTIVE-}" = 1 ] || export CC="$quick_cc" CXX="$quick_cxx"
try 'the example configures and generates' cmake -S "$source/examples/dispatcher" -B "$build/dispatcher" -G Ninja \
  -DCMAKE_BUILD_TYPE=Release -DQUERN_BUILD_LUA="$source/build.lua" \
  -DCMAKE_C_COMPILER_LAUNCHER="$launcher" -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher"
try '  builds' cmake --build "$build/dispatcher"
unset CC CXX
try '  and all of its checks pass' runs "$build/dispatcher/granite-try"

# ---- what is written
ops=add,leaky_relu,frexp,clip,copy,astype
! in_part 0 3 || ops=$ops,where # its variants are as many as all others'
dtypes= turn=0 # f16, f32 and one of three each day
for dtype in bool i8 u8; do
  turn=$((turn + 1))
  ! in_part $turn 3 || dtypes=$dtypes$dtype,
done
try 'kernels' generate --kernels-only --prefix only --variants full --ops $ops --dtypes ${dtypes}f16,f32 --out "$work/only"
find "$work/only" -type f -name '*.[ch]' | sed "s|$work/only/||" | grep -v '^kernels/' | sort | tr '\n' ' ' >"$said"
[ "$(cat "$said")" = 'only.h only_isa_machine.c only_isa_machine.h only_table.c ' ]; ok $? 'beside them: a header, a table, the level'
python3 - "$work/only/manifest.json" <<'P' >"$said" 2>&1
import json, sys
manifest = json.load(open(sys.argv[1]))
assert all(op["function"] is None for op in manifest["ops"])
assert {kernel["role"] for kernel in manifest["kernels"] if not kernel["op"]} == {"convert", "widen", "narrow"}
P
ok $? 'the manifest has no functions of ops, and conversions'
try 'f32 alone' generate --kernels-only --prefix few --ops add,gelu --dtypes f32 --out "$work/few"
[ ! -e "$work/few/kernels/few_conversions.c" ] && ! grep -q conversions "$work/few/few.h"; ok $? '  needs no conversions'

# ---- compiled by sources.txt
turn=0 rows_of=
for compiler in gcc clang-19; do
  all=-O1 one=
  for level in v2 v3 v4; do
    turn=$((turn + 1))
    [ "${QUERN_TEST_EXHAUSTIVE-}" = 1 ] || all=-O0
    ! in_part $turn 6 || one=$level
  done
  [ -n "$one" ] || continue
  if ! command -v $compiler >/dev/null; then
    skip "$compiler" 'it is not installed'
    rows_of=
    continue
  fi
  if [ "${QUERN_TEST_EXHAUSTIVE-}" = 1 ]; then rows_of="gcc clang-19"; else rows_of=$compiler; fi
  try "$compiler: sources.txt, C11, no warning${one:+, optimised}" env QUERN_TREE_O1="core $one" sh "$source/tests/support/build-tree.sh" $compiler \
    "$work/only" "$work/$compiler" -std=c11 $all $strict
  nm -u "$work/$compiler"/kernels_*.o | grep -E ' [Uu] ' >"$said"
  [ ! -s "$said" ]; ok $? '  the kernels refer to nothing'
  nm -u "$work/$compiler"/only_*.o | grep -E ' U ' | grep -vE ' U (only_|_GLOBAL_OFFSET_TABLE_)' >"$said"
  [ ! -s "$said" ]; ok $? '  the table to kernels only'
done
echo '#include "only.h"
int main() { return only_n_kernels + only_n_conversions > 0 && only_kernel_function(&only_kernels[0], only_machine_level()) ? 0 : 1; }' \
  >"$work/header.c"
for compiler in gcc clang-19; do
  command -v $compiler >/dev/null || continue
  for standard in c99 c11 c17; do
    try "$compiler: the header as $standard" $compiler -std=$standard -pedantic-errors $strict -fsyntax-only -I"$work/only" \
      -Wno-strict-prototypes "$work/header.c"
  done
done
for compiler in g++ clang++-19; do
  command -v $compiler >/dev/null || continue
  for standard in c++17 c++20; do
    try "$compiler: the header as $standard" $compiler -x c++ -std=$standard -pedantic-errors $strict -Wold-style-cast -fsyntax-only \
      -I"$work/only" "$work/header.c"
  done
done
try 'for one level' env QUERN_TREE_LEVEL=generic sh "$source/tests/support/build-tree.sh" $quick_cc "$work/few" "$work/one" -std=c11 -O0 $strict -DFEW_QN_ONE_LEVEL
sed 's/only/few/g; s/ + few_n_conversions//' "$work/header.c" >"$work/one.c"
try '  links' cc -DFEW_QN_ONE_LEVEL -I"$work/few" -o "$work/one/try" "$work/one.c" "$work/one"/*.o
try '  and runs' "$work/one/try"

# ---- every row at every level against a whole tree
try 'a whole tree' generate --single --prefix whole --ops $ops --dtypes bool,i8,u8,u16,u32,f16,f32 --out "$work/whole"
cat >"$work/rows.c" <<'C'
#include <stdio.h>
#include <string.h>
#include "only.h"
#include "whole.h"
enum { BYTES = 1 << 16, MARGIN = 4096, MOST = 4 };
static char memory[MOST][BYTES], expected[MOST][BYTES], before[MOST][BYTES];
static int bad, n_run;
static uint32_t state = 1;
static DLDataType dlpack_of(int dtype) {
  switch (dtype) {
    case ONLY_DTYPE_BOOL: return (DLDataType){kDLBool, 8, 1};
    case ONLY_DTYPE_I8: return (DLDataType){kDLInt, 8, 1};
    case ONLY_DTYPE_I32: return (DLDataType){kDLInt, 32, 1};
    case ONLY_DTYPE_F16: return (DLDataType){kDLFloat, 16, 1};
    case ONLY_DTYPE_F32: return (DLDataType){kDLFloat, 32, 1};
    case ONLY_DTYPE_B16: return (DLDataType){kDLUInt, 16, 1};
    case ONLY_DTYPE_B32: return (DLDataType){kDLUInt, 32, 1};
    default: return (DLDataType){kDLUInt, 8, 1};
  }
}
static void fail(const only_kernel_row *row, int level, const char *what) {
  if (bad++ < 10) printf("# %s at level %d: %s\n", row->name, level, what);
}
static void run(const only_kernel_row *row, const char *op_name, int level) {
  const int n_operands = row->n_in + row->n_out, rank = row->rank ? row->rank : 5;
  const int64_t extents[6] = {row->rank == 1 ? 317 : 37, rank > 1 ? 3 : 0, rank > 2 ? 2 : 0, rank > 3 ? 2 : 0, rank > 4 ? 2 : 0, 0};
  int64_t stride[3 * MOST][2], items[MOST][5], shape[5];
  char *ptr[MOST];
  DLTensor tensor[MOST];
  DLTensor *at[MOST];
  if (rank < 2) memset(stride, 0x55, sizeof stride); /* not read */
  for (int k = 0; k < n_operands; k++) {
    const DLDataType dtype = dlpack_of(row->dtypes[k]);
    const int64_t size = (dtype.bits + 7) / 8;
    int64_t step = row->classes[k] == 'b' ? 0 : row->classes[k] == 'c' ? 1 : k % 2 ? -2 : 3;
    for (int d = 0; d < rank; d++) {
      items[k][rank - 1 - d] = step;
      stride[d / 2 * n_operands + k][d % 2] = step * size;
      shape[rank - 1 - d] = extents[d];
      step = d ? step * extents[d] : (step < 0 ? -step : step ? step : 1) * extents[0] + 1;
    }
    for (int64_t i = 0; i < BYTES; i++) {
      state = state * 1664525u + 1013904223u;
      memory[k][i] = (char)(state >> 24);
      if (dtype.code == kDLFloat && i % size == size - 1 && state & 0x10000) memory[k][i] = dtype.bits == 16 ? 0x3a : 0x3f;
    }
    memcpy(before[k], memory[k], BYTES);
    memcpy(expected[k], memory[k], BYTES);
    ptr[k] = memory[k] + MARGIN + 1; /* any alignment */
    tensor[k] = (DLTensor){expected[k] + MARGIN + 1, {kDLCPU, 0}, rank, dtype, shape, items[k], 0};
    at[k] = &tensor[k];
  }
  const int is_float = row->param_dtype == ONLY_DTYPE_F32;
  const whole_scalar floats[2] = {{WHOLE_F64, {.f = {0.25}}}, {WHOLE_F64, {.f = {0.75}}}};
  const whole_scalar integers[2] = {{WHOLE_I64, {.i = 5}}, {WHOLE_I64, {.i = 100}}};
  const whole_call call = {.size = sizeof call, .params = is_float ? floats : integers, .n_params = row->n_params};
  char params[2][8] = {{0}};
  for (int p = 0; p < row->n_params; p++) {
    if (is_float) memcpy(params[p], &(const float){p ? 0.75f : 0.25f}, 4);
    else memcpy(params[p], &integers[p].v.i, 8); /* its low bytes */
  }
  whole_op *op;
  if (whole_op_find(NULL, op_name, &op) || whole_op_call(op, row->n_in, at, row->n_out, at + row->n_in, &call)) {
    fail(row, level, whole_last_error());
    return;
  }
  whole_op_release(op);
  row->function[level](ptr, (const int64_t(*)[2])stride, extents, row->n_params ? params : NULL);
  for (int k = 0; k < n_operands; k++)
    if (memcmp(memory[k], k < row->n_in ? before[k] : expected[k], BYTES) != 0) fail(row, level, k < row->n_in ? "an input" : "an output");
  n_run++;
}
int main(void) {
  int n_levels = 0;
  for (int level = 0; level <= (int)only_machine_level(); level++) {
    const int had = n_run;
    for (int32_t k = 0; k < only_n_kernels; k++)
      if (only_kernels[k].function[level]) run(&only_kernels[k], only_kernels[k].op, level);
    for (int32_t k = 0; k < only_n_conversions; k++) {
      if (!only_conversions[k].function[level] || strcmp(only_conversions[k].op, "convert") != 0) continue;
      run(&only_conversions[k], "astype", level);
    }
    n_levels += n_run > had;
  }
  for (int32_t k = 1; k < only_n_kernels; k++) bad += strcmp(only_kernels[k - 1].op, only_kernels[k].op) > 0;
  printf("# %d kernels run, %d levels\n", n_run, n_levels);
  return bad || n_run < 500 || !n_levels;
}
C
for dtype in BOOL I8; do # those of another day
  grep -q "ONLY_DTYPE_$dtype\>" "$work/only/only.h" || sed -i "/case ONLY_DTYPE_$dtype:/d" "$work/rows.c"
done
try 'the whole tree compiles' $quick_cc -std=gnu11 -O0 $strict -c -o "$work/whole.o" "$work/whole/whole.c"
for compiler in $rows_of; do
  try "$compiler: they link with each other" gcc -std=gnu11 -O0 $strict -I"$work/only" -I"$work/whole" -o "$work/rows" "$work/rows.c" \
    "$work/whole.o" "$work/$compiler"/*.o -lpthread
  try '  each row, at each level: the bits of the whole tree, inputs and surroundings untouched' "$work/rows"
  sed -n 's/^# [0-9]* kernels run.*/&/p' "$said"
done

# ---- what does not go together
refused '--single' 'not with --single' generate --kernels-only --single --out "$work/o"
refused '--library' 'not with --library' generate --kernels-only --library --out "$work/o"
refused '--scan' 'does not go with --scan' generate --kernels-only --scan x.c --out "$work/o"
refused '--target cuda' 'generate a whole tree' generate --kernels-only --target c,cuda --ops add --out "$work/o"
refused 'an index op' 'arange: its kernels take the indices' generate --kernels-only --ops add,arange --out "$work/o"
refused 'a dynamic op' 'nonzero: its kernels search blocks' generate --kernels-only --ops add,nonzero --out "$work/o"
[ ! -e "$work/o" ]; ok $? 'nothing is written then'
cat >"$work/mine.lua" <<'L'
unary "acme.swish" { doc = "x times its logistic.", dtypes = floating, body = [[ x / (1 + exp(-x)) ]] }
L
try "a spec's op" generate --kernels-only --prefix acme --spec "$work/mine.lua" --dtypes f32 --ops add --out "$work/acme"
grep -q '"acme.swish"' "$work/acme/acme_table.c"; ok $? '  is in the table'
sed 's/acme.swish/acme.gelu/' "$work/mine.lua" >"$work/same.lua"
refused 'a second op of the C name acme_gelu' 'is that of op gelu' generate --kernels-only --prefix acme --spec "$work/same.lua" \
  --dtypes f32 --ops gelu --out "$work/o"
if in_part 1 3; then
  try 'the report, of all ops' env CC=false lua5.4 "$source/build.lua" generate --kernels-only --dtypes f32 --report --out "$work/all"
  grep -q '^arange  *left out: its kernels take the indices' "$said"; ok $? '  says why an op is left out'
fi

done_testing
