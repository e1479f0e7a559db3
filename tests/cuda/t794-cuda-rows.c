/* SPDX-License-Identifier: Apache-2.0
 * tags: long
 *
 * t794-cuda-rows: the CUDA text of every op that reduces, compiled for the CPU and run thread by thread, gives the bits of the law of
 * order: every dtype and index width, any shape, axes, strides and order of threads, in blocks of 32 to 512 threads, rows shared out in
 * every way, kept in shared memory, cut into pieces for several launches, or a row a thread; nothing else is written. rows.c packs the arguments, and a kernel built ahead is
 * picked by it. Each day has other cases, and a fifth of the ops; QUERN_TEST_SEED repeats a run. */
#include "runtime/core/simt/rows/row_pieces.h"
#include "runtime/core/simt/rows/rows.h"
#include "runtime/core/simt/rows/short_rows.h"

#include <dlfcn.h>
#include <stdarg.h>

#include "core/op/registry.h"
#include "core/row/row_nest.h"
#include "cuda/grid.h"
#include "cuda/row_cases.h"

enum { WORDS = QN_LAUNCH_ARGS, SLOTS = 128, CASES = 10, MOST_ELEMENTS = 9500 };

/* A kernel takes its struct of arguments by value: one of 4 KB begins like any smaller one. */
typedef struct words {
  uint64_t at[WORDS];
} words;
typedef void kernel_function(words arguments);

static int64_t n_kept, n_short; /* launches */
static char folder[200];
static void *library; /* of the op under test */

__attribute__((format(printf, 1, 2))) static int shell(const char *format, ...) {
  char command[4000];
  va_list args;
  va_start(args, format);
  vsnprintf(command, sizeof command, format, args);
  va_end(args);
  return system(command);
}

static void generate(void) {
  char ops[400] = "";
  const char *tmp = getenv("TMPDIR");
  for (int op = 0; op < LAW_N_OPS; op++)
    if (law_ops[op][0]) snprintf(ops + strlen(ops), sizeof ops - strlen(ops), "%s%s", *ops ? "," : "", law_name((law_op)op));
  snprintf(folder, sizeof folder, "%.150s/quern-rows.XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(folder)) bail("no scratch folder");
  if (shell("lua5.4 '%s/build.lua' generate --library --target c,cuda --ops %s --out '%s' >/dev/null", getenv("QUERN_SOURCE_DIR"), ops,
            folder))
    bail("the kernels cannot be generated");
}

/* The op's kernels for the CPU: without optimisation, as t710 compiles them. */
static void open_op(law_op op) {
  char path[300];
  const char *source = getenv("QUERN_SOURCE_DIR"), *name = law_name(op);
  const int status =
      shell("cd '%s' && $(command -v clang++-19 || echo c++) -x c++ -std=c++17 -DQC_HOST -I'%s/tests/support/cuda' -ffp-contract=off -Wall -Wextra -Werror "
            "-Wno-unknown-pragmas -Wno-tautological-compare -Wno-type-limits -O0 -shared -fPIC cuda/op_%s.cu -o %s.so",
            folder, source, name, name);
  ok(status == 0, "%s: its text compiles for the CPU without a warning", name);
  snprintf(path, sizeof path, "%s/%s.so", folder, name);
  library = status ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) bail("%s: %s", name, status ? "not compiled" : dlerror());
}

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

typedef struct row_case {
  reduction c;
  qn_nest nest;
  int64_t count;
  uint8_t sizes[2];
  const qn_row_program *program;
  qn_row_work work;
  qn_launch launch;
  uint32_t shared_bytes;
  qn_row_pieces pieces; /* n_launches 0: whole rows */
  char *workspace;
  char how[200];
} row_case;

static void read_tensor(const DLTensor *t, qn_tensor *read) {
  static const quern_arg_info arg = {.name = "x"};
  if (qn_tensor_read(t, "t794", &arg, 0, 1, read)) bail("%s", quern_last_error());
}

static void normalise(row_case *k, int is_reduced) {
  qn_tensor in, out;
  read_tensor(&k->c.in.t, &in);
  read_tensor(&k->c.out.t, &out);
  k->sizes[0] = in.size, k->sizes[1] = out.size;
  k->program = qn_row_op_of(law_ops[k->c.op][0]->builtin)->programs[in.dtype];
  k->work = qn_rows_work(k->program, k->sizes);
  qn_row_normalise(k->c.in.t.ndim, k->c.in.shape, (uint32_t)mask_of(&k->c), is_reduced, 1, &in, 1, &out, &k->nest, &k->count);
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

static int32_t log2_of(int64_t n) { return n > 0 ? 63 - __builtin_clzll((uint64_t)n) : 0; }

/* Shares the rows out in another way: threads of a block, groups of a row, what a group takes, neighbours. */
static uint32_t share_out(row_case *k, rng *r) {
  uint64_t *fields = k->launch.args + 2;
  const qn_row_cut cut = qn_rows_cut(&k->nest, k->count);
  const uint32_t threads = 32u << rng_below(r, 5);
  const int32_t groups_bits = log2_of(threads / 16);
  int32_t waiting = log2_of((int64_t)fields[QN_ROW_CHUNKS]), bits = (int32_t)rng_below(r, (uint64_t)groups_bits + 1);
  for (int32_t d = k->nest.n_joined; d < k->nest.n_reduced; d++) waiting += log2_of(k->nest.n[d]);
  while (bits && fields[QN_ROW_ROWS] << bits >> groups_bits > 12) bits--; /* the fibers of a block cost a millisecond */
  while (waiting > SLOTS >> (groups_bits - bits)) bits++;
  const uint64_t tile_rows = 1u << (groups_bits - bits);
  fields[QN_ROW_SPREAD_BITS] = (uint64_t)bits;
  fields[QN_ROW_ITEMS] = (fields[QN_ROW_ROWS] + tile_rows - 1) / tile_rows;
  qn_rows_share(&k->nest, &cut, k->launch.form.is_wide, 1 << groups_bits, bits, fields);
  if (rng_below(r, 3) == 0) fields[QN_ROW_FLAGS] &= ~(uint64_t)QN_ROW_OWN;
  fields[QN_ROW_FLAGS] ^= rng_below(r, 4); /* streamed, turned */
  k->launch.n_items = fields[QN_ROW_ITEMS];
  snprintf(k->how, sizeof k->how, "%u threads, %d groups a row, %sturned, %s", threads, 1 << bits,
           fields[QN_ROW_FLAGS] & QN_ROW_TURNED ? "" : "not ", fields[QN_ROW_FLAGS] & QN_ROW_OWN ? "ranges" : "chunk by chunk");
  return threads;
}

/* Keeps the elements that several stages load in shared memory, where a group has several leaves. */
static void keep(row_case *k, uint32_t threads) {
  uint64_t kept;
  const size_t n = strlen(k->how);
  k->shared_bytes = qn_rows_keep(&k->work, &k->launch, 227u << 10, &kept) * threads / QN_LAUNCH_THREADS;
  k->launch.args[2 + QN_ROW_KEPT] = kept;
  if (kept) n_kept++, snprintf(k->how + n, sizeof k->how - n, ", %" PRIu64 " leaves kept", kept);
}

/* Packs them for the kernel in which a thread has a row. */
static void pack_short(row_case *k, const qn_launch_form *form, int32_t n_params, rng *r) {
  const int32_t bits = (int32_t)rng_below(r, 9);
  qn_rows_pack(&k->nest, k->sizes, 1, 0, k->count, form, n_params, &k->launch);
  if (rng_below(r, 2) && k->launch.args[2 + QN_SHORT_ROWS] >> bits < 60) qn_short_rows_set_tile(k->sizes, bits, &k->launch);
  k->shared_bytes = k->launch.shared_bytes;
  n_short++;
  snprintf(k->how, sizeof k->how, "a row a thread, %u of a block", k->launch.item_elements);
}

/* Cuts the rows into pieces of a random size, along a random axis, where they are not too many. */
static void cut_out(row_case *k, rng *r) {
  qn_row_share share = {.axis = (int32_t)rng_below(r, (uint64_t)(k->nest.n_reduced - k->nest.n_joined) + 1),
                        .spread_bits = (uint8_t)rng_below(r, 5), .unit_bits = (uint8_t)rng_below(r, 4),
                        .is_turned = (uint8_t)rng_below(r, 2)};
  int is_cut = k->count > 0 && qn_rows_set_pieces(&k->nest, &k->work, k->count, &k->launch, &share, &k->pieces);
  if (is_cut && k->pieces.room[0] > 150) is_cut = 0;
  if (!is_cut) k->pieces.n_launches = 0;
  if (is_cut)
    snprintf(k->how, sizeof k->how, "%" PRId64 " pieces in %d launches, axis %d, spread 1 << %d, units 1 << %d, %sturned",
             k->pieces.room[0], k->pieces.n_launches, share.axis, share.spread_bits, share.unit_bits, share.is_turned ? "" : "not ");
}

typedef struct launched {
  kernel_function *function;
  words *arguments;
} launched;

static void run_thread(void *arg) {
  const launched *l = arg;
  l->function(*l->arguments);
}

static int launch(const row_case *k, const char *name, uint32_t threads, rng *r, char *what, size_t size) {
  static words arguments;
  launched l = {NULL, &arguments};
  struct grid_place *at;
  void *const symbol = dlsym(library, name), *const place = dlsym(library, "qc_host");
  if (!symbol || !place) return snprintf(what, size, "no kernel %s", name), 0;
  memcpy(&l.function, &symbol, sizeof symbol);
  memset(&arguments, 0xa5, sizeof arguments);
  memcpy(arguments.at, k->launch.args, (size_t)k->launch.n_args * sizeof *arguments.at);
  for (int i = 0; i < 2; i++) arguments.at[i] = (uint64_t)(uintptr_t)qn_ref_address(k->nest.ref[i]);
  for (int i = k->launch.at_params; i < k->launch.n_args; i++) arguments.at[i] = 0; /* correction 0 */
  arguments.at[k->launch.n_args - 1] = (uint64_t)k->count;
  enum { GUARD = 64 };
  char *const memory = malloc(k->shared_bytes + 2 * GUARD);
  memset(memory, 0x5a, k->shared_bytes + 2 * GUARD);
  memcpy(&at, &place, sizeof at);
  at->shared = memory + GUARD, at->n_shared = k->shared_bytes;
  int is_good = 1;
  const struct grid_dim block = threads == QN_LAUNCH_THREADS ? (struct grid_dim){32, 8, 1} : (struct grid_dim){threads, 1, 1};
  for (int i = 0; i < (k->pieces.n_launches ? k->pieces.n_launches : 1); i++) {
    uint64_t items = k->launch.n_items;
    if (k->pieces.n_launches) qn_rows_set_piece(&k->pieces, i, (uint64_t)(uintptr_t)k->workspace, &k->launch, arguments.at, &items);
    const struct grid_dim grid_size = {(unsigned)(items < 3 ? items : 1 + rng_below(r, 4)), 1, 1};
    if (grid_run(place, grid_size, block, (enum grid_order)rng_below(r, 3), run_thread, &l) == GRID_DONE) continue;
    is_good = 0;
    snprintf(what, size, "some threads of a block are at a barrier, the others have ended");
  }
  for (int i = 0; i < GUARD && is_good; i++)
    if (memory[i] != 0x5a || memory[GUARD + k->shared_bytes + i] != 0x5a)
      is_good = 0, snprintf(what, size, "something beside the shared memory that it asks for was written");
  free(memory);
  return is_good;
}

static void run_ways(row_case *k, const uint64_t *wanted, int64_t count, rng *r) {
  const law_op op = k->c.op;
  char name[200], what[600] = "";
  qn_launch_form form;
  const int is_given = rng_below(r, 3) == 0; /* as rows.c shares the rows out */
  enum { GUARD = 64 };
  qn_rows_choose(&k->nest, k->sizes, k->count, NULL, &form);
  const int is_short = !form.is_wide && rng_below(r, 4) && qn_short_rows_fit(&k->nest, k->sizes, k->count) &&
                       qn_short_rows_states(k->program) <= QN_SHORT_STATES;
  if (is_short) form.rank = QN_SHORT_RANK;
  if (!is_short && rng_below(r, 3) == 0) form.is_wide = 1;
  memset(&k->launch, 0, sizeof k->launch);
  const int32_t n_params = quern_op_describe(law_ops[op][0])->n_params - (law_is_full(op) ? 1 : 2) + 1; /* those of the body, the count */
  k->shared_bytes = 0;
  if (is_short)
    pack_short(k, &form, n_params, r);
  else
    qn_rows_pack(&k->nest, k->sizes, 1, 0, k->count, &form, n_params, &k->launch);
  if (!is_short) snprintf(k->how, sizeof k->how, "256 threads, as packed: flags %" PRIu64 ", spread 1 << %" PRIu64, k->launch.args[4], k->launch.args[11]);
  k->pieces.n_launches = 0;
  if (!is_given && !is_short && rng_below(r, 2)) cut_out(k, r);
  const int is_as_packed = is_given || is_short || k->pieces.n_launches;
  const uint32_t threads = is_as_packed ? QN_LAUNCH_THREADS : share_out(k, r);
  if (!is_short && !k->pieces.n_launches && rng_below(r, 4)) keep(k, threads);
  char *const memory = malloc(k->pieces.n_launches ? k->pieces.bytes + 2 * GUARD : 1);
  if (k->pieces.n_launches) memset(memory, 0xa5, k->pieces.bytes + 2 * GUARD);
  k->workspace = memory + GUARD;
  snprintf(name, sizeof name, "qc_%s_%s_%s_%sd_ss%s", law_name(op), ref_dtype_name(k->c.in.d), ref_dtype_name(k->c.out.d),
           is_short ? "2" : "n", form.is_wide ? "_i64" : "");
  operand_save(&k->c.in);
  operand_save(&k->c.out);
  group_count(1);
  int good = launch(k, name, threads, r, what, sizeof what);
  if (good && !compare_elements(&k->c.out.t, wanted, count, what, sizeof what)) good = 0;
  operand_forgive(&k->c.out);
  if (good && !operand_same(&k->c.out)) good = 0, snprintf(what, sizeof what, "something beside the output was written");
  for (size_t i = 0; good && k->pieces.n_launches && i < GUARD; i++)
    if (memory[i] != (char)0xa5 || memory[k->pieces.bytes + GUARD + i] != (char)0xa5)
      good = 0, snprintf(what, sizeof what, "something beside the workspace was written");
  free(memory);
  if (good && !operand_same(&k->c.in)) good = 0, snprintf(what, sizeof what, "the input was written");
  if (good) return;
  char text[3000];
  int n = text_operand(text, 1400, "in", &k->c.in);
  text_operand(text + n, 1400, "out", &k->c.out);
  group_fail("%s, axes 0x%" PRIx64 ", %s: %s; seed 0x%" PRIx64 "\n%s", name, mask_of(&k->c), k->how, what, test_seed(), text);
}

/* is_short: of rows of a few elements, of which some lie beside each other. */
static void test_case(law_op op, ref_dtype d, int is_short, rng *r) {
  row_case k = {.c = {.op = op}};
  int64_t shape[QUERN_MAX_NDIM], out_shape[QUERN_MAX_NDIM], count;
  int ndim;
  row_shape(r, MOST_ELEMENTS, shape, &ndim);
  k.c.axes = row_axes(r, 150, ndim, shape);
  if (is_short) {
    const int along = (int)rng_below(r, 2);
    ndim = 2;
    shape[along] = 1 + (int64_t)rng_below(r, 64), shape[1 - along] = 1 + (int64_t)rng_below(r, rng_below(r, 3) ? 90 : 700);
    k.c.axes = 1 << along;
  }
  row_layout(&k.c.in, d, ndim, shape, 0, r);
  row_fill(&k.c.in, r);
  row_layout(&k.c.out, law_result(op, d), output_shape(&k.c, out_shape), out_shape, 1, r);
  operand_fill(&k.c.out, r);
  normalise(&k, !law_is_full(op));
  if (k.nest.n_elements && !law_is_refused(op, &k.c.in.t, mask_of(&k.c))) {
    uint64_t *wanted = law_eval(op, &k.c.in.t, mask_of(&k.c), 0, k.c.out.d, map_by_library, &count);
    for (int i = 0; i < 3; i++) run_ways(&k, wanted, count, r);
    free(wanted);
  }
  operand_free(&k.c.in);
  operand_free(&k.c.out);
}

static void test_op(law_op op) {
  const int day = test_part(7);
  open_op(op);
  group_begin("%s: any shape, axes, strides, blocks", law_name(op));
  for (int d = 0; d < REF_N_DTYPES; d++) {
    rng r;
    if (!row_takes(op, (ref_dtype)d)) continue;
    rng_seed(&r, 79400 + 100 * (uint64_t)op + (uint64_t)d + 10000 * (uint64_t)(day < 0 ? 0 : day));
    for (int i = 0; i < (day < 0 ? 6 : 1) * (d == REF_F32 ? 4 : 1) * CASES; i++) test_case(op, (ref_dtype)d, i % 5 == 0, &r);
  }
  group_end();
  dlclose(library);
}

int main(void) {
#ifdef __SANITIZE_THREAD__
  skip_all("it has one thread, which runs a block's threads as contexts: ThreadSanitizer does not follow swapcontext");
#endif
  if (!getenv("QUERN_SOURCE_DIR")) skip_all("QUERN_SOURCE_DIR is not set");
  if (system("c++ --version >/dev/null 2>&1")) skip_all("there is no c++");
  setenv("QUERN_CACHE_DIR", "none", 1);
  make_contexts();
  generate();
  const int day = test_part(10); /* of the ops */
  for (int op = 0; op < LAW_N_OPS; op++) {
    if (day >= 0 && op % 10 != day) continue;
    if (!is_there((law_op)op)) continue;
    const quern_op_info *info = quern_op_describe(law_ops[op][0]);
    int n_own = -(law_is_full((law_op)op) ? 1 : 2) - (param_index(info, "select_last_index") >= 0);
    for (int k = 0; k < info->n_params; k++) n_own += info->params[k].value.kind != QUERN_NONE;
    if (n_own > 0 && op != LAW_VAR && op != LAW_STD) continue; /* defaults are not 0: t796 has them */
    test_op((law_op)op);
  }
  ok(n_kept > 0 && n_short > 0, "%" PRId64 " launches kept rows in shared memory, %" PRId64 " had a row a thread", n_kept, n_short);
  release_contexts();
  shell("rm -rf '%s'", folder);
  return done_testing();
}
