#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t825-dynamic-tree.sh: a generated tree has nonzero and compress, measured, called, their outputs made by the host's allocator;
# for CUDA alone they are left out, or refused by name; specs of others cannot declare such ops.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t825.XXXXXX") || exit 1
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
int main(void) {
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
C
try 'a tree' build_lua generate --single --prefix acme --ops nonzero,compress --dtypes f32,u8 --out tree
turn=0
for compiler in gcc clang-19; do # one each day
  turn=$((turn + 1))
  in_part $turn 2 || continue
  command -v $compiler >/dev/null || { skip "  compiled by $compiler" 'it is not here'; continue; }
  try "  compiled by $compiler" $compiler -std=gnu11 -O0 -Wall -Wextra -Werror -Itree -o host host.c tree/acme.c -lpthread -lm
  try '  does what the library does' ./host
done

try 'for CUDA alone' build_lua generate --target cuda --dtypes f32 --prefix acme --out alone --report
grep -q '^nonzero  *left out' said && ! grep -q nonzero alone/acme.h; ok $? '  they are left out, and the report says so'
refused '  asked for by name: refused' 'nonzero runs on the CPU only' build_lua generate --target cuda --ops nonzero,add --prefix acme --out no
try 'beside C' build_lua generate --target c,cuda --dtypes f32 --ops nonzero,add --prefix acme --out both
[ -f both/kernels/acme_op_nonzero_cpu.c ] && [ ! -f both/kernels/acme_op_nonzero_cuda.cu ] && [ -f both/kernels/acme_op_add_cuda.cu ]; ok $? '  there is no CUDA file of them'
try "a tree without them" build_lua generate --ops add --prefix acme --out none
! grep -q 'pack_count\|pack_coordinate' none/kernels/acme_conversions.c; ok $? '  has none of their kernels'

printf 'op "acme.found" { doc = "d", inputs = "x", dtypes = all, finds = "places" }\n' >found.lua
refused 'a spec of others' "finds: only the library's own ops" build_lua check found.lua
printf 'unary "acme.sum" { doc = "d", dtypes = floating, body = [[ x + nonzero(x) ]] }\n' >sum.lua
refused 'in a body' "its output's shape depends on values" build_lua check sum.lua
printf '#include <quern/quern.h>\nconst char *k = QUERN_KERNEL(found, y = nonzero(x));\n' >use.c
refused 'in an expression built ahead' "its output's shape depends on values" build_lua generate --scan use.c --out frozen
done_testing
