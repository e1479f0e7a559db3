#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t207-kind-trees.sh: a generated tree with ops of the kinds index and compact, and of a user's scans with states. arange and linspace: called and planned, with kernels
# for CUDA. nonzero and compress: measured, called, their outputs made by the host's allocator; for CUDA alone they are left out, or
# refused by name. Specs of others cannot declare such ops; bodies and expressions cannot call them.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t207.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
build_lua() { lua5.4 "$source/build.lua" "$@"; }

cat >scans.lua <<'LUA'
scan "acme.first_max" { doc = "The largest element so far, and its place.", dtypes = numeric, outputs = "values, i64 indices",
  initial = { values = -INFINITY, indices = -1 }, state = "T v, i64 i", lift = "v = x; i = index;",
  combine = "take = b.v > a.v; v = take ? b.v : a.v; i = take ? b.i : a.i;", finish = "values = a.v; indices = a.i;",
  examples = { { x = { 2, 7, 7, 3 }, values = { 2, 7, 7, 7 }, indices = { 0, 1, 1, 1 } } } }
scan "acme.running_mean" { doc = "The mean of the elements so far.", dtypes = floating, initial = NAN, bound = "u * depth * cumulative_sum(abs(x))",
  state = "i64 n, T sum", lift = "n = 1; sum = x;", combine = "n = a.n + b.n; sum = a.sum * ((T)a.n / (T)(a.n + b.n)) + b.sum * ((T)b.n / (T)(a.n + b.n));",
  finish = "a.sum", examples = { { x = { 3, 5 }, out = { 3, 4 } } } }
reduction "acme.joints" { doc = "The sum, and the number of combinations.", dtypes = integer, accumulate = "wide", result = "wide", combine = "a + b + 1",
  empty = false, examples = { { x = { 3, 5 }, out = 9 } } }
scan "acme.running_norm" { doc = "Norms.", dtypes = floating, lift = "x * x", combine = "a + b", finish = "sqrt(a)", initial = 0 }
adjoint "acme.running_norm_backward" { doc = "The derivative.", of = "acme.running_norm", inputs = "grad, x", reads = "out", dtypes = floating,
  lift = "out == 0 ? 0 : grad / out", combine = "a + b", finish = "x * a",
  examples = { { grad = { 1, 1 }, x = { 3, 4 }, out = { 3, 5 }, grad_x = { 1.6, 0.8 } } } }
LUA
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
static int use_scans(void) {
  float items[600], largest[600], means[600], norms[601], grads[600], back[600];
  int64_t places[600], n = 600, more = 601;
  DLTensor x = {items, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0}, values = x, mean = x, norm = x, grad = x, out = x;
  DLTensor indices = {places, {kDLCPU, 0}, 1, {kDLInt, 64, 1}, &n, NULL, 0};
  const acme_scalar backwards[4] = {{ACME_I64, {.i = 1}}, {ACME_I64, {.i = 0}}, {ACME_I64, {.i = 1}}, {ACME_I64, {.i = 1}}};
  const acme_scalar first[2] = {{ACME_I64, {.i = 1}}, {ACME_I64, {.i = 1}}};
  const acme_call call = {.size = sizeof call, .params = backwards, .n_params = 4}, initial = {.size = sizeof initial, .params = first, .n_params = 2};
  values.data = largest, mean.data = means, norm.data = norms, grad.data = grads, out.data = back;
  for (int i = 0; i < 600; i++) items[i] = (float)(i * 37 % 600 / 2), grads[i] = 1;
  MUST(acme_first_max(&x, &values, &indices, &call) == ACME_OK); /* exclusive, from the end */
  MUST(places[599] == -1 && largest[599] < -1e38f && places[598] == 599);
  for (int i = 597; i >= 0; i--) {
    const int is_new = items[i + 1] > largest[i + 1];
    MUST(places[i] == (is_new ? i + 1 : places[i + 1]) && largest[i] == (is_new ? items[i + 1] : largest[i + 1]));
  }
  double sum = 0;
  MUST(acme_running_mean(&x, &mean, NULL) == ACME_OK);
  for (int i = 0; i < 600; i++) {
    sum += items[i];
    MUST(means[i] - sum / (i + 1) < 1e-3 && means[i] - sum / (i + 1) > -1e-3);
  }
  norm.shape = &more;
  MUST(acme_running_norm(&x, &norm, &initial) == ACME_OK && norms[0] == 0 && norms[1] == items[0]);
  norm.shape = &n, norm.data = norms + 1;
  MUST(acme_running_norm_backward(&grad, &x, &norm, &out, NULL) == ACME_OK);
  for (int i = 599, end = 1; i >= 0; i--, end = 0) {
    sum = (end ? 0 : sum) + (norms[i + 1] > 0 ? 1 / (double)norms[i + 1] : 0);
    MUST(back[i] - items[i] * sum < 1e-4 * (1 + items[i] * sum) && back[i] - items[i] * sum > -1e-4 * (1 + items[i] * sum));
  }
  MUST(strcmp(acme_op_describe(acme_builtin_running_norm())->backward, "acme.running_norm_backward") == 0);
  return 0;
}
/* A combine of which a + b is a part, of i16: along rows and down columns, short and long. */
static int use_reduction(void) {
  static short items[300 * 300];
  int64_t sums[300], kept = 300;
  const int64_t shapes[6][2] = {{5, 20}, {3, 5}, {2, 300}, {5, 200}, {40, 63}, {300, 300}};
  for (int i = 0; i < 300 * 300; i++) items[i] = (short)(i % 97 - 40);
  for (int k = 0; k < 12; k++) {
    int64_t shape[2] = {shapes[k / 2][0], shapes[k / 2][1]}, n = shape[k % 2];
    DLTensor x = {items, {kDLCPU, 0}, 2, {kDLInt, 16, 1}, shape, NULL, 0}, y = {sums, {kDLCPU, 0}, 1, {kDLInt, 64, 1}, &kept, NULL, 0};
    const acme_scalar axis = {ACME_I64, {.i = 1 << k % 2}};
    const acme_call call = {.size = sizeof call, .params = &axis, .n_params = 1};
    kept = shape[1 - k % 2];
    MUST(acme_joints(&x, &y, &call) == ACME_OK);
    for (int64_t j = 0; j < kept; j++) {
      int64_t sum = n - 1;
      for (int64_t i = 0; i < n; i++) sum += items[k % 2 ? j * n + i : i * kept + j];
      if (sums[j] != sum) return printf("case %d, %d: %d, not %d\n", k, (int)j, (int)sums[j], (int)sum), 1;
    }
  }
  return 0;
}
int main(void) { return use_index() || use_compact() || use_scans() || use_reduction(); }
C
try "a user's scans with states" build_lua check scans.lua
try 'a tree' build_lua generate --single --prefix acme --spec scans.lua --dtypes f32,i16,u8 --out tree \
  --ops arange,linspace,nonzero,compress,acme.first_max,acme.running_mean,acme.running_norm,acme.running_norm_backward,acme.joints
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
! ls alone/core | grep -E 'row|scan' >said; ok $? '  nothing that launches reductions and scans'
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
