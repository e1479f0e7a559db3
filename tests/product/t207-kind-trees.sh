#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t207-kind-trees.sh: a generated tree with ops of the kinds index and compact. arange and linspace: called and planned, with kernels
# for CUDA. nonzero and compress: measured, called, their outputs made by the host's allocator; for CUDA alone they are left out, or
# refused by name. Specs of others cannot declare such ops; bodies and expressions cannot call them.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t207.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
build_lua() { lua5.4 "$source/build.lua" "$@"; }

cat >host.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acme.h"

static int n_deleted;
static void delete_it(DLManagedTensorVersioned *self) {
  n_deleted++;
  free(self->manager_ctx);
  free(self);
}
static int make(DLTensor *prototype, DLManagedTensorVersioned **managed, void *ctx,
                void (*set_error)(void *ctx, const char *kind, const char *message)) {
  DLManagedTensorVersioned *m = calloc(1, sizeof *m);
  int64_t *memory = calloc(1, 8192);
  (void)ctx, (void)set_error;
  m->version.major = 1;
  m->manager_ctx = memory;
  m->deleter = delete_it;
  m->dl_tensor = *prototype;
  m->dl_tensor.data = memory + 8;
  m->dl_tensor.shape = memcpy(memory, prototype->shape, sizeof(int64_t) * (size_t)prototype->ndim);
  *managed = m;
  return 0;
}

#define MUST(what) \
  if (!(what)) return printf("%s: %s\n", #what, acme_last_error()), 1;
static int use_index(void) {
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
static int use_compact(void) {
  float items[6] = {0, 1.5f, 0, -0.0f, 2.5f, 3.5f}, found[4];
  unsigned char holds[3] = {1, 0, 9};
  int64_t shape[2] = {2, 3}, three = 3, rows[2] = {3, 2}, indices[6], four = 4;
  DLTensor x = {items, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
  DLTensor condition = {holds, {kDLCPU, 0}, 1, {kDLBool, 8, 1}, &three, NULL, 0};
  DLTensor y = {indices, {kDLCPU, 0}, 2, {kDLInt, 64, 1}, rows, NULL, 0};
  DLTensor out = {found, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &four, NULL, 0};
  DLTensor *in[2] = {&condition, &x};
  acme_shape measured = {.size = sizeof measured};
  DLManagedTensorVersioned *made = NULL;
  MUST(acme_nonzero(&x, &y, NULL) == ACME_OK);
  MUST(indices[0] == 0 && indices[1] == 1 && indices[2] == 1 && indices[3] == 1 && indices[4] == 1 && indices[5] == 2);
  MUST(acme_compress(&condition, &x, &out, NULL) == ACME_OK); /* both rows: 0, 0, -0, 3.5 */
  MUST(acme_op_measure(acme_builtin_compress(), 2, in, 1, &measured, NULL) == ACME_OK && measured.shape[0] == 4);
  MUST(acme_op_call_alloc(acme_builtin_compress(), 2, in, 1, NULL, &made, NULL, NULL) == ACME_E_ARGUMENT && !made);
  MUST(acme_op_call_alloc(acme_builtin_compress(), 2, in, 1, NULL, &made, make, NULL) == ACME_OK);
  MUST(((float *)made->dl_tensor.data)[3] == 3.5f && n_deleted == 0);
  made->deleter(made);
  return 0;
}
int main(void) { return use_index() || use_compact(); }
C
try 'a tree' build_lua generate --single --prefix acme --ops arange,linspace,nonzero,compress --dtypes f32,i16,u8 --out tree
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
if in_part 1 4; then
  try 'for CUDA alone, all ops' build_lua generate --target cuda --dtypes f32 --prefix acme --out every --report
  grep -q '^nonzero  *left out' said && ! grep -qw nonzero every/acme.h; ok $? '  compact ops are left out, and the report says so'
else
  skip 'for CUDA alone, all ops' 'every fourth day'
fi
try 'for CUDA alone' build_lua generate --target cuda --dtypes f32 --ops arange,linspace --prefix acme --out alone
grep -q acme_linspace alone/acme.h && [ ! -f alone/kernels/acme_op_linspace_cpu.c ]; ok $? '  index ops are there, without C kernels'
[ "$(names alone/kernels/acme_op_arange_cuda.cu f32)" = '1d_bc 1d_bc_i64 2d_bc nd_bs nd_bs_i64 ' ]; ok $? '  kernels for rows and for any strides'
refused '  nonzero, asked for by name: refused' 'nonzero runs on the CPU only' build_lua generate --target cuda --ops nonzero,add --prefix acme --out no
try 'beside C' build_lua generate --target c,cuda --dtypes i16 --ops arange,nonzero,add --rank 2 --class s --prefix acme --out both
[ -f both/kernels/acme_op_nonzero_cpu.c ] && [ ! -f both/kernels/acme_op_nonzero_cuda.cu ] && [ -f both/kernels/acme_op_add_cuda.cu ]; ok $? '  there is no CUDA file of nonzero'
[ -f both/kernels/acme_op_arange_cpu.c ]; ok $? '  there are both of arange'
[ "$(names both/kernels/acme_op_arange_cuda.cu i16)" = '2d_bs 2d_bs_i64 ' ]; ok $? '  the rank and the class that were asked for'
try 'a tree without them' build_lua generate --ops add --prefix acme --out none
! grep -q 'pack_index\|pack_count\|pack_coordinate' none/kernels/acme_conversions.c; ok $? '  has none of their kernels'

# refuses NAME FIELDS MARK CALL REASON: a spec of others with these fields; the call in a body and in an expression
refuses() {
  printf 'op "acme.%s" { doc = "d", %s }\n' "$1" "$2" >"$1.lua"
  refused "$1: a spec of others" "$3: only the library's own ops" build_lua check "$1.lua"
  printf 'unary "acme.sum" { doc = "d", dtypes = floating, body = [[ x + %s ]] }\n' "$4" >sum.lua
  refused '  in a body' "$5" build_lua check sum.lua
  printf '#include <quern/quern.h>\nconst char *k = QUERN_KERNEL(%s, y = x + %s);\n' "$1" "$4" >use.c
  refused '  in an expression built ahead' "$5" build_lua generate --scan use.c --out frozen
}
refuses ramp 'inputs = "", index = true, dtypes = floating, body = [[ index ]]' index 'arange()' 'its elements follow from where they stand'
refuses found 'inputs = "x", dtypes = all, finds = "places"' finds 'nonzero(x)' "its output's shape depends on values"
done_testing
