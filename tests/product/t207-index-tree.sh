#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t207-index-tree.sh: a generated tree has arange and linspace, called and planned, and kernels of them for CUDA; specs of others
# cannot declare such ops, bodies and expressions cannot call them.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t207.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
build_lua() { lua5.4 "$source/build.lua" "$@"; }

cat >host.c <<'C'
#include <stdio.h>

#include "acme.h"

#define MUST(what) \
  if (!(what)) return printf("%s: %s\n", #what, acme_last_error()), 1;
int main(void) {
  float line[2][3];
  short numbers[5];
  int64_t shape[2] = {2, 3}, turned[2] = {1, 2}, five = 5, backwards = -1;
  DLTensor x = {line, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, turned, 0};
  DLTensor y = {numbers + 4, {kDLCPU, 0}, 1, {kDLInt, 16, 1}, &five, &backwards, 0}, *out = &y;
  const acme_scalar ends[2] = {{ACME_I64, {.i = 1}}, {ACME_F64, {.f = {3.5, 0}}}};
  const acme_scalar steps[2] = {{ACME_I64, {.i = 32766}}, {ACME_I64, {.i = 1}}};
  const acme_call between = {.size = sizeof between, .params = ends, .n_params = 2};
  const acme_call from = {.size = sizeof from, .params = steps, .n_params = 2};
  acme_plan *plan;
  void *data = numbers + 4;
  MUST(acme_linspace(&x, &between) == ACME_OK);
  /* columns lie one behind the other */
  MUST(line[0][0] == 1 && line[0][2] == 1.5f && line[1][1] == 2 && line[0][1] == 2.5f && line[1][0] == 3 && line[1][2] == 3.5f);
  MUST(acme_arange(&y, NULL) == ACME_OK);
  MUST(numbers[4] == 0 && numbers[3] == 1 && numbers[0] == 4);
  MUST(acme_op_prepare(acme_builtin_arange(), 0, NULL, 1, &out, NULL, &plan) == ACME_OK);
  MUST(acme_plan_run(plan, NULL, &data, &from) == ACME_OK);
  MUST(numbers[4] == 32766 && numbers[3] == 32767 && numbers[2] == -32768 && numbers[0] == -32766);
  MUST(acme_plan_run(plan, NULL, &data, NULL) == ACME_OK);
  MUST(numbers[4] == 0 && numbers[0] == 4);
  acme_plan_release(plan);
  return 0;
}
C
try 'a tree' build_lua generate --single --prefix acme --ops arange,linspace --dtypes f32,i16 --out tree
turn=0
for compiler in gcc clang-19; do # one each day
  turn=$((turn + 1))
  in_part $turn 2 || continue
  command -v $compiler >/dev/null || { skip "  compiled by $compiler" 'it is not here'; continue; }
  try "  compiled by $compiler" $compiler -std=gnu11 -O0 -Wall -Wextra -Werror -Itree -o host host.c tree/acme.c -lpthread -lm
  try '  does what the library does' ./host
done

names() { # names FILE DTYPE
  sed -n "s/^extern .* acme_qc_arange_b8_$2_\([a-z0-9_]*\)(.*/\1/p" "$1" | tr '\n' ' '
}
try 'for CUDA alone' build_lua generate --target cuda --dtypes f32 --prefix acme --out alone --report
grep -q acme_linspace alone/acme.h && [ ! -f alone/kernels/acme_op_linspace_cpu.c ]; ok $? '  without C kernels'
[ "$(names alone/kernels/acme_op_arange_cuda.cu f32)" = '1d_bc 1d_bc_i64 2d_bc nd_bs nd_bs_i64 ' ]; ok $? '  kernels for rows and for any strides'
try 'beside C' build_lua generate --target c,cuda --dtypes i16 --ops arange,add --rank 2 --class s --prefix acme --out both
[ -f both/kernels/acme_op_arange_cpu.c ]; ok $? '  there are both'
[ "$(names both/kernels/acme_op_arange_cuda.cu i16)" = '2d_bs 2d_bs_i64 ' ]; ok $? '  the rank and the class that were asked for'
try "a tree without them" build_lua generate --ops add --prefix acme --out none
! grep -q pack_index none/kernels/acme_conversions.c; ok $? '  has none of their kernels'

printf 'op "acme.ramp" { doc = "d", inputs = "", index = true, dtypes = floating, body = [[ index ]] }\n' >ramp.lua
refused 'a spec of others' "index: only the library's own ops" build_lua check ramp.lua
printf 'unary "acme.sum" { doc = "d", dtypes = floating, body = [[ x + arange() ]] }\n' >sum.lua
refused 'in a body' 'its elements follow from where they stand' build_lua check sum.lua
printf '#include <quern/quern.h>\nconst char *k = QUERN_KERNEL(ramp, y = x + arange());\n' >use.c
refused 'in an expression built ahead' 'its elements follow from where they stand' build_lua generate --scan use.c --out frozen
done_testing
