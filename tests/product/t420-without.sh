#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t420-without.sh: trees generated with --no-threads and --no-environment: nothing of pthread, no getenv, fewer files; the bits of a
# whole tree; the host's own threads serve; variables do nothing; a single file likewise; what these options do not go with;
# ops without parameters have no conversion of them, others have those to the dtypes that they need.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t420.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
said=$work/said
strict='-std=c11 -O0 -Wall -Wextra -Werror'
compiler=$quick_cc
! in_part 0 3 || compiler=gcc
generate() { lua5.4 "$source/build.lua" generate --ops gelu,add,clip --dtypes f32 "$@"; }
# undefined PATTERN OBJECT...: what objects refer to
undefined() {
  pattern=$1
  shift
  nm -u "$@" | grep -E "$pattern" >"$said"
}

try 'a whole tree' generate --prefix whole --out "$work/whole"
try '  compiles' sh "$source/tests/support/build-tree.sh" $compiler "$work/whole" "$work/whole.o" $strict
undefined ' pthread_create$' "$work/whole.o"/*.o; ok $? '  makes threads'
undefined ' (secure_)?getenv$' "$work/whole.o"/*.o; ok $? '  and reads the environment'

try '--no-threads --no-environment' generate --no-threads --no-environment --prefix lean --out "$work/lean"
try '  compiles' sh "$source/tests/support/build-tree.sh" $compiler "$work/lean" "$work/lean.o" $strict
! undefined ' (pthread_|sched_yield|sem_|thrd_|syscall)' "$work/lean.o"/*.o; ok $? '  nothing of threads'
! undefined 'getenv' "$work/lean.o"/*.o; ok $? '  nothing of the environment'
! grep -rnE 'pthread|getenv|Threads::|package\(Threads' "$work/lean" --include='*.[ch]' --include=CMakeLists.txt --include=sources.txt >"$said"; ok $? '  not in the text either'
! grep -rinE 'cuda|nvrtc|nvcc' "$work/lean" --exclude='*_device.[ch]' --exclude=lean.d | grep -v 'lean\.h:[0-9]*: *kDLCUDA' >"$said"; ok $? '  nothing of CUDA but DLPack'"'"'s numbers of devices'
grep -q 'threads of lean_options are given' "$work/lean/lean.h"; ok $? '  and the header says so'
grep -h '^| `' "$work/lean/FILES.md" | grep -o '`[a-z_]*\.[ch]`' | tr -d '\140' | sort >"$work/named"
(cd "$work/lean" && ls core) | sort >"$work/there"
grep -v '^lean\.h$' "$work/named" | diff - "$work/there" >"$said"; ok $? '  FILES.md has a line for each file of the runtime'
! grep -E '^\|.*\|  *\|$' "$work/lean/FILES.md" | grep '\.[ch]`' >"$said"; ok $? '  that says what it is'
try '--no-environment alone' generate --no-environment --prefix quiet --out "$work/quiet"
! grep -q getenv "$work/quiet"/core/* && grep -q pthread_create "$work/quiet"/core/* && grep -q Threads "$work/quiet/CMakeLists.txt"
ok $? '  leaves the pool'
try 'both as a single file' generate --no-threads --no-environment --single --prefix one --out "$work/one"
try '  compiles' $compiler -std=gnu11 -O0 -Wall -Wextra -Werror -c -o "$work/one.o" "$work/one/one.c"
! undefined 'pthread_|getenv' "$work/one.o"; ok $? '  likewise'

# What no op needs: parameters.
bare() { lua5.4 "$source/build.lua" generate --ops add,multiply,gelu --dtypes f32 --prefix bare "$@"; }
try 'ops without parameters' bare --out "$work/bare"
! ls "$work/bare/core" | grep -qx bare_params.c; ok $? '  leave out their conversion'
! ls "$work/bare/core" | grep 'bare_\(params_[^n]\|apart\|kind_[^e]\)' >"$said"; ok $? '  nothing of other dtypes and kinds either'
generate_mixed() { lua5.4 "$source/build.lua" generate --ops add,clip,gelu --dtypes f16,f32 --prefix mixed --out "$work/mixed"; }
try 'one with parameters and two dtypes' generate_mixed
! ls "$work/mixed/core" | grep 'mixed_\(params_\|apart\|kind_[^e]\)' >"$said"; ok $? '  converts them to f32 alone, which it computes in'
generate_dtypes() { lua5.4 "$source/build.lua" generate --ops add,clip,gelu --prefix dtypes --out "$work/dtypes"; }
try 'the same ops with all dtypes' generate_dtypes
lines=$(ls "$work"/dtypes/core/*.[ch] | grep -v '_\(op\|dtype\)_table\.[ch]$' | xargs cat | wc -l)
[ "$lines" -lt 5500 ] || { echo "# $lines lines"; false; }; ok $? '  the core, without the tables generated for it, has less than 5,500 lines'
! ls "$work/dtypes/core" | grep 'dtypes_\(params_[^i]\|apart\|kind_[^e]\)' >"$said"; ok $? '  converts parameters to f32, f64 and integers'
for tree in bare mixed; do
  lines=$(cat "$work/$tree"/core/*.[ch] | wc -l)
  [ "$lines" -lt 5600 ] || { echo "# $lines lines"; false; }; ok $? "  the core of '$tree' has less than 5,600 lines"
done
cat >"$work/bare.c" <<'C'
#include <string.h>
#include "bare.h"
int main(void) {
  float a[2] = {1, 2}, sum[2] = {0, 0};
  int64_t shape = 2;
  DLTensor x = {a, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &shape, NULL, 0}, y = x;
  y.data = sum;
  const bare_scalar one = {BARE_F64, {.f = {1, 0}}};
  const bare_call given = {.size = sizeof given, .params = &one, .n_params = 1};
  if (bare_add(&x, &x, &y, &given) != BARE_E_ARGUMENT || sum[0] != 0) return 1;
  if (strcmp(bare_last_error(), "add: 1 parameters given, it has 0")) return 2;
  return bare_add(&x, &x, &y, NULL) || sum[0] != 2 || sum[1] != 4;
}
C
try '  a single file likewise' bare --single --out "$work/bare1"
try '  compiles' $compiler -std=gnu11 -O0 -Wall -Wextra -Werror -I"$work/bare1" -o "$work/bare.run" "$work/bare.c" "$work/bare1/bare.c" -lpthread -lm
try '  a parameter is refused, a call without runs' "$work/bare.run"

# A tree of one op with all dtypes: what a program gains by it, and that it has the conversions of every call.
cat >"$work/pairs.c" <<'C'
#include <stdio.h>
#include "sole.h"
static const DLDataType dtypes[] = {{kDLBool, 8, 1},  {kDLInt, 8, 1},   {kDLInt, 16, 1},    {kDLInt, 32, 1},  {kDLInt, 64, 1},
                                    {kDLUInt, 8, 1},  {kDLUInt, 16, 1}, {kDLUInt, 32, 1},   {kDLUInt, 64, 1}, {kDLFloat, 16, 1},
                                    {kDLBfloat, 16, 1}, {kDLFloat, 32, 1}, {kDLFloat, 64, 1}};
enum { N = sizeof dtypes / sizeof *dtypes };
static int kind(int k) { return k == 0 ? 0 : k < 9 ? 1 : 2; }
/* Whether two dtypes have a common one: u64 and a signed integer have none. */
static int has_common(int a, int b) { return !((a == 8 && b > 0 && b < 5) || (b == 8 && a > 0 && a < 5)); }
static int64_t shape = 37;
int main(void) {
  int n_run = 0;
  for (int i = 0; i < N * N * N; i++) {
    const int a = i % N, b = i / N % N, c = i / N / N;
    double x[37] = {0}, y[37] = {0}, out[37];
    DLTensor in[2] = {{x, {kDLCPU, 0}, 1, dtypes[a], &shape, NULL, 0}, {y, {kDLCPU, 0}, 1, dtypes[b], &shape, NULL, 0}};
    DLTensor to = {out, {kDLCPU, 0}, 1, dtypes[c], &shape, NULL, 0};
    for (int k = 0; k < 37; k++) out[k] = 1;
    const sole_status status = sole_add(&in[0], &in[1], &to, NULL);
    if (status == SOLE_OK ? out[0] != 0 : status != SOLE_E_DTYPE) return printf("# %d %d %d: %d, %s\n", a, b, c, status, sole_last_error());
    const int last = a > b ? a : b;
    if ((status == SOLE_OK) != (has_common(a, b) && kind(last) > 0 && kind(c) >= kind(last)))
      return printf("# %d %d %d: %d\n", a, b, c, status);
    n_run += status == SOLE_OK;
  }
  return n_run < 900;
}
C
if in_part 1 3; then
  try 'a tree of add' lua5.4 "$source/build.lua" generate --ops add --prefix sole --out "$work/sole"
  try '  compiles' env QUERN_TREE_FLAGS=1 sh "$source/tests/support/build-tree.sh" gcc "$work/sole" "$work/sole.o" -std=gnu11 -O2 -DNDEBUG
  try '  links' gcc -s -I"$work/sole" -o "$work/pairs" "$work/pairs.c" "$work/sole.o"/*.o -lpthread -lm
  bytes=$(wc -c <"$work/pairs")
  [ "$bytes" -lt 500000 ] || { echo "# $bytes bytes"; false; }; ok $? '  a program of less than 500,000 bytes'
  try '  inputs and outputs of any dtypes are added or refused' "$work/pairs"
else
  skip 'a tree of add, optimised' 'every third day'
fi

# Conversions of parameters, in trees of one dtype each, for each of the kinds of op that have them.
cat >"$work/number.c" <<'C'
#include <stdio.h>
#include <string.h>
#include "one.h"
static int64_t shape = 3;
static DLTensor tensor(void *data) { return (DLTensor){data, {kDLCPU, 0}, 1, {CODE, 8 * sizeof(ITEM), 1}, &shape, NULL, 0}; }
int main(void) {
  const one_scalar two = {ONE_F64, {.f = {2, 0}}}, three = {ONE_I64, {.i = 3}}, pair[2] = {two, three};
  const one_call single = {.size = sizeof single, .params = &two, .n_params = 1}, both = {.size = sizeof both, .params = pair, .n_params = 2};
  ITEM x[3], y[3], zero = 0;
  DLTensor in = tensor(x), out = tensor(y);
  if (one_arange(&in, NULL) || x[0] != zero || x[1] == zero) return printf("arange: %s\n", one_last_error()), 1;
  if (one_full(&out, &single) || y[0] == zero || memcmp(&y[0], &y[2], sizeof(ITEM))) return printf("full: %s\n", one_last_error()), 2;
  if (memcmp(&x[2], &y[0], sizeof(ITEM))) return printf("2 is not 2\n"), 3;
  if (one_clip(&in, &out, &both) || memcmp(&y[0], &x[2], sizeof(ITEM))) return printf("clip: %s\n", one_last_error()), 4;
  return 0;
}
C
for row in 'f16 2 uint16_t' 'bf16 4 uint16_t' 'f64 2 double' 'i8 0 int8_t' 'u64 1 uint64_t'; do
  set -- $row
  number() { lua5.4 "$source/build.lua" generate --single --ops clip,full,arange --dtypes $1 --prefix one --out "$work/one_$1" &&
    $compiler -std=gnu11 -O0 -Wall -Wextra -Werror -DCODE=$2 -DITEM=$3 -I"$work/one_$1" -o "$work/one_$1/run" "$work/number.c" "$work/one_$1/one.c" \
      -lpthread -lm && "$work/one_$1/run"; }
  try "parameters in a tree of $1" number "$@"
done

cat >"$work/same.c" <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lean.h"
#include "whole.h"
enum { N = 1 << 20, CALLERS = 4 };
static float x[N], a[N], b[CALLERS][N];
static int64_t shape = N;
static int n_slices;
static DLTensor tensor(float *data) { return (DLTensor){data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &shape, NULL, 0}; }
static void slices_of_host(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg) {
  (void)host;
  n_slices = (int)n;
  for (int64_t i = n; i-- > 0;) slice(arg, i);
}
static void *call(void *out) {
  DLTensor in = tensor(x), y = tensor(out);
  return (void *)(intptr_t)(lean_gelu(&in, &y, NULL) || lean_add(&in, &y, &y, NULL));
}
static int explained(const char *wanted) {
  char text[4096];
  lean_op *op;
  DLTensor in = tensor(x), y = tensor(b[0]);
  DLTensor *ins[1] = {&in}, *outs[1] = {&y};
  const int has = lean_op_find(NULL, "gelu", &op) == 0 && lean_op_explain(op, 1, ins, 1, outs, NULL, text, sizeof text) == 0 && strstr(text, wanted);
  if (!has) printf("# wanted %s in\n%s\n", wanted, text);
  return has;
}
int main(int argc, char **argv) {
  int bad = 0;
  if (argc > 1) return !explained(argv[1]);
  for (int i = 0; i < N; i++) x[i] = (float)(i - N / 2) * 1e-5f;
  DLTensor in = tensor(x), y = tensor(a);
  if (whole_gelu(&in, &y, NULL) || whole_add(&in, &y, &y, NULL)) return 2;
  pthread_t threads[CALLERS];
  for (int k = 0; k < CALLERS; k++) bad |= pthread_create(&threads[k], NULL, call, b[k]);
  for (int k = 0; k < CALLERS; k++) {
    void *failed;
    pthread_join(threads[k], &failed);
    bad |= failed != NULL || memcmp(a, b[k], sizeof a) != 0;
  }
  if (bad) printf("# calls from several threads\n");
  /* the option means nothing without a host's threads, and is taken */
  const lean_options many = {.size = sizeof many, .threads = 8}, host = {.size = sizeof host, .threads = 4, .parallel_for = slices_of_host};
  lean_ctx *ctx;
  lean_op *op;
  DLTensor again = tensor(b[0]);
  DLTensor *ins[1] = {&in}, *outs[1] = {&again};
  if (whole_gelu(&in, &y, NULL)) return 3;
  for (int k = 0; k < 2; k++) {
    memset(b[0], 0, sizeof b[0]);
    if (lean_ctx_create(k ? &host : &many, &ctx) || lean_op_find(ctx, "gelu", &op) || lean_op_call(op, 1, ins, 1, outs, NULL)) return 4;
    if (memcmp(a, b[0], sizeof a) != 0) printf("# other bits\n"), bad = 1;
    if (k ? n_slices < 2 : n_slices != 0) printf("# %d slices\n", n_slices), bad = 1;
    lean_op_release(op);
    lean_ctx_release(ctx);
  }
  return bad;
}
C
try 'both trees in one program' gcc -std=gnu11 -O1 -Wall -Wextra -Werror -I"$work/lean" -I"$work/whole" -o "$work/same" "$work/same.c" \
  "$work/lean.o"/*.o "$work/whole.o"/*.o -lpthread
try '  the same bits: from several threads, on the host'"'"'s, with an option of threads' "$work/same"
try '  explain: one thread' env LEAN_NUM_THREADS=3 "$work/same" 'threads: 1'
isa=$(LEAN_ISA= "$work/same" 'isa: none such' | sed -n 's/^isa: /isa: /p')
try '  no variable caps the level' env LEAN_ISA=generic "$work/same" "$isa"
LEAN_ISA=nonsense LEAN_LOG=3 "$work/same" >"$said" 2>&1 && [ ! -s "$said" ]; ok $? '  none makes it talk'

refused '--library' 'no-threads: not with --library' lua5.4 "$source/build.lua" generate --library --no-threads --out "$work/o"
refused '--kernels-only' 'no-environment: not with --kernels-only' generate --kernels-only --no-environment --out "$work/o"
refused '--scan' 'does not go with --scan' lua5.4 "$source/build.lua" generate --scan x.c --no-threads --out "$work/o"
[ ! -e "$work/o" ]; ok $? 'nothing is written then'

done_testing
