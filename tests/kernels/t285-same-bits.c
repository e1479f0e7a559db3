/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads-full long
 *
 * t285-same-bits: every op of the registry gives the same bits for every dtype that its inputs take, in whatever way it runs: the
 * built kernel in all layouts, in pieces, in place, by plans, on one thread and several, at every SIMD level; and as a part of an
 * expression, many ops in one, interpreted, compiled by Clang in process and by cc, which here has -O1 as its last word: no
 * result may depend on a flag, and -O3, with which the built kernels are compiled anyway, takes ten times as long: a few ops of
 * each dtype have it. Of f32 and f64 every fourth op is compiled by one of them, of other dtypes, half of them each day, every 24th;
 * which, says the row's number, the dtype, QUERN_TEST_SEED and QUERN_TEST_DAY. There is no list of ops here: what is added to dsl/ is
 * walked. What is right other tests say; here all ways must agree with the built kernel on contiguous operands.
 *
 * The program runs itself for each level lower than the machine's, of generic and v2 for each every fourth day, which prints a hash
 * of each op's results, of one dtype and of several; a third of the ops in all layouts, others each day.
 * QUERN_TEST_FULL=1: these compile, too, and every op goes by all compilers. QUERN_TEST_OP=name: that op alone. */
#include <stdarg.h>

#include "expressions.h"

enum { ROWS_OF = SANITIZED ? 13 : 37, COLUMNS_OF = SANITIZED ? 67 : 111, N = ROWS_OF * COLUMNS_OF, N_MIXED = 700 };
enum { MOST_IN = 6, MOST_OUT = 6, MOST_ROWS = 1000, MOST_PARAMS = 8, MOST_ITEMS = 24, OUTPUT = 7 };

/* How operands lie. The last two broadcast: every other operand along either dimension. */
enum { CONTIGUOUS, UNALIGNED, STRIDED, FLIPPED, TURNED, OUTPUT_TURNED, BROADCAST, OTHERS_BROADCAST, N_LAYOUTS };

/* What is wanted of a row: on all elements, and where operands are broadcast. */
enum { PLAIN, BROADCAST_VALUES, OTHERS_VALUES, N_WANTED };

/* An op with dtypes for its inputs and outputs, and the bytes that it must give, contiguous. */
typedef struct row {
  quern_op *op, *threaded;
  const quern_op_info *info;
  int n_in, n_out, has_params;
  ref_dtype in[MOST_IN], out[MOST_OUT];
  unsigned char *wanted[N_WANTED][MOST_OUT];
} row;

enum { JIT_OFF, JIT_OFF_THREADED, JIT_CLANG, JIT_CC_PLAIN, JIT_CC, N_TIERS };
static const char *const tier_names[N_TIERS] = {"interpreter", "interpreter", "clang", "cc -O1", "cc"};

enum { CC_TURNS = 64 }; /* cc with its own flags has every so manieth op of a dtype */
static char cc_plain[300]; /* a compiler: cc, but for what it optimises */

static quern_ctx *contexts[N_TIERS]; /* NULL: none of that kind here */
static int is_child, is_full;
static const char *only;

static const quern_scalar explicit_params[MOST_PARAMS] = {{QUERN_I64, {.i = 2}},  {QUERN_I64, {.i = 50}}, {QUERN_I64, {.i = 3}},
                                                          {QUERN_I64, {.i = 1}},  {QUERN_I64, {.i = 4}},  {QUERN_I64, {.i = 5}},
                                                          {QUERN_I64, {.i = 7}},  {QUERN_I64, {.i = 6}}};

/* ---- Counting and saying ---- */

enum { MOST_WAYS = 100 };
static struct way_count {
  char name[64];
  long long n; /* outputs compared */
} counts[MOST_WAYS];
static int n_counts;

static void count(const char *way) {
  int k = 0;
  while (k < n_counts && strcmp(counts[k].name, way) != 0) k++;
  if (k == n_counts) {
    if (n_counts++ == MOST_WAYS) bail("more than %d ways", MOST_WAYS);
    snprintf(counts[k].name, sizeof counts[k].name, "%s", way);
  }
  counts[k].n++;
  if (!is_child) group_count(1);
}

__attribute__((format(printf, 1, 2))) static void bad(const char *text, ...) {
  char line[3000];
  va_list args;
  va_start(args, text);
  vsnprintf(line, sizeof line, text, args);
  va_end(args);
  if (is_child) printf("bad %s\n", line);
  else group_fail("%s", line);
}

/* Reasons why something was left out, each once. */
static char left_out[200][300];
static int n_left_out;

__attribute__((format(printf, 1, 2))) static void leave_out(const char *text, ...) {
  char line[300];
  va_list args;
  va_start(args, text);
  vsnprintf(line, sizeof line, text, args);
  va_end(args);
  for (int k = 0; k < n_left_out; k++)
    if (strcmp(left_out[k], line) == 0) return;
  if (n_left_out < 200) memcpy(left_out[n_left_out++], line, sizeof line);
}

/* ---- Values, the same for every op ---- */

static size_t size_of(ref_dtype d) { return (size_t)ref_dtype_size(d); }

/* Memory for results, in which there is none. */
static unsigned char *fresh(size_t bytes) {
  unsigned char *memory = malloc(bytes + 1);
  if (!memory) bail("no memory for %zu bytes", bytes);
  return memset(memory, 0xa5, bytes);
}

static int special_values(ref_dtype d, uint64_t *list) {
  int n = 0;
  if (d == REF_BOOL) {
    list[n++] = 0, list[n++] = 1;
  } else if (ref_dtype_kind(d) == REF_KIND_INTEGER) {
    const int bits = 8 * ref_dtype_size(d);
    const uint64_t mask = ~(uint64_t)0 >> (64 - bits), top = (uint64_t)1 << (bits - 1);
    const uint64_t some[] = {0, 1, 2, 3, 5, 7, (uint64_t)bits - 1, (uint64_t)bits, 64, 100, 127, top, top - 1, top + 1,
                             mask, mask - 1, mask - 2, mask / 3, mask / 7, top / 2, top + top / 2};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) list[n++] = some[i] & mask;
  } else {
    const uint64_t sign = (uint64_t)1 << (8 * ref_dtype_size(d) - 1), inf = ref_nan(d) & ~(ref_nan(d) & -ref_nan(d)),
                   least = inf & -inf;
    const double numbers[] = {1, 2, 3, 0.5, 1.5, 2.5, 0.75, 10, 88.75, 1e4, 1e-4};
    const uint64_t some[] = {0, 1, least - 1, least, inf - 1, inf};
    const uint64_t nans[] = {ref_nan(d), ref_nan(d) + 1, inf + 1, ref_nan(d) | sign}; /* one that signals */
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) list[n++] = some[i], list[n++] = some[i] | sign;
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) list[n++] = nans[i];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
      list[n++] = ref_from_double(d, numbers[i]), list[n++] = ref_from_double(d, numbers[i]) | sign;
  }
  return n;
}

/* Elements of input k: with those of input 1 - k every pair of special values, then any. */
static const unsigned char *values(int k, ref_dtype d) {
  static unsigned char *made[MOST_IN][REF_N_DTYPES];
  if (made[k][d]) return made[k][d];
  uint64_t special[64];
  const int n = special_values(d, special);
  unsigned char *at = made[k][d] = malloc(N * size_of(d));
  rng r;
  rng_seed(&r, (uint64_t)(k * REF_N_DTYPES + d));
  for (int i = 0; i < N; i++) {
    const int which = k == 0 ? i % n : k == 1 ? i / n % n : (i * (2 * k + 3) + i / n) % n;
    /* by columns: where operands are broadcast along a row, its elements are special, too */
    ref_put(d, at + (size_t)i * size_of(d), i < n * n && i < N / 2 ? special[which] : random_bits(&r, d));
  }
  return at;
}

static void strides_of(int layout, int k, int64_t *strides) {
  const int is_output = k == OUTPUT;
  strides[0] = COLUMNS_OF;
  strides[1] = 1;
  if (layout == STRIDED) {
    strides[1] = 2 + k % 3;
    strides[0] = strides[1] * COLUMNS_OF + 3;
  } else if (layout == FLIPPED) {
    if (k % 2) strides[0] = -COLUMNS_OF;
    else strides[1] = -1;
  } else if ((layout == TURNED && !is_output && k % 2 == 0) || (layout == OUTPUT_TURNED && is_output)) {
    strides[0] = 1;
    strides[1] = ROWS_OF;
  } else if ((layout == BROADCAST || layout == OTHERS_BROADCAST) && !is_output) {
    if ((k % 2 == 0) == (layout == BROADCAST)) strides[0] = 0;
    else strides[1] = 0;
  }
}

/* Elements of a [ROWS_OF, COLUMNS_OF] operand from or to contiguous bytes. */
static void move_elements(const operand *o, unsigned char *bytes, int is_read) {
  const size_t size = size_of(o->d);
  for (int64_t i = 0; i < ROWS_OF; i++) {
    char *at = (char *)o->t.data + o->t.byte_offset + i * o->strides[0] * (int64_t)size;
    for (int64_t j = 0; j < COLUMNS_OF; j++, at += o->strides[1] * (int64_t)size, bytes += size) {
      if (is_read) memcpy(bytes, at, size);
      else memcpy(at, bytes, size);
    }
  }
}

static void lay_out(operand *o, ref_dtype d, int layout, int k) {
  const int64_t shape[2] = {ROWS_OF, COLUMNS_OF};
  int64_t strides[2];
  strides_of(layout, k, strides);
  operand_describe(o, d, 2, shape, strides);
  operand_allocate(o, layout == UNALIGNED ? 1 + k % 2 * 2 : 0, GUARD_NONE);
  memset(body_of(o), 0x5a, body_bytes(o));
}

/* Input k in a layout; kept, and only read. */
static operand *input_in(int k, ref_dtype d, int layout) {
  static operand made[MOST_IN][REF_N_DTYPES][N_LAYOUTS];
  operand *o = &made[k][d][layout];
  if (o->memory) return o;
  lay_out(o, d, layout, k);
  if (layout == BROADCAST || layout == OTHERS_BROADCAST)
    memcpy(o->memory + RED_ZONE, values(k, d), N * size_of(d) < o->bytes - RED_ZONE ? N * size_of(d) : o->bytes - RED_ZONE);
  else
    move_elements(o, (unsigned char *)(uintptr_t)values(k, d), 0);
  return o;
}

/* What a broadcast input has for each element. */
static const unsigned char *broadcast_values(int k, ref_dtype d, int layout) {
  static unsigned char *made[MOST_IN][REF_N_DTYPES][2];
  unsigned char **at = &made[k][d][layout == OTHERS_BROADCAST];
  if (!*at) {
    *at = malloc(N * size_of(d));
    move_elements(input_in(k, d, layout), *at, 1);
  }
  return *at;
}

/* Contiguous input k, for what is wanted of a row. */
static const unsigned char *wanted_values(int k, ref_dtype d, int w) {
  return w == PLAIN ? values(k, d) : broadcast_values(k, d, w == BROADCAST_VALUES ? BROADCAST : OTHERS_BROADCAST);
}

/* A descriptor of contiguous elements, as one dimension. */
static DLTensor vector_at(const void *data, ref_dtype d, int64_t *n) {
  return (DLTensor){.data = (void *)(uintptr_t)data, .device = {kDLCPU, 0}, .ndim = 1, .dtype = ref_dtype_dl(d), .shape = n};
}

/* ---- Rows ---- */

static const quern_call *call_of(const row *r) {
  static quern_call call = {.size = sizeof call, .params = explicit_params};
  call.n_params = r->info->n_params;
  return r->has_params ? &call : NULL;
}

static const char *row_text(const row *r) {
  static char text[300];
  int n = snprintf(text, sizeof text, "%s(", r->info->name);
  for (int k = 0; k < r->n_in; k++)
    n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", k ? ", " : "", ref_dtype_name(r->in[k]));
  n += snprintf(text + n, sizeof text - (size_t)n, "%s) ->", r->has_params ? "; with parameters" : "");
  for (int k = 0; k < r->n_out; k++) n += snprintf(text + n, sizeof text - (size_t)n, " %s", ref_dtype_name(r->out[k]));
  return text;
}

/* Does the input or output take the dtype? */
static int takes(const quern_arg_info *arg, ref_dtype d) {
  const char *name = ref_dtype_name(d);
  const size_t n = strlen(name);
  for (const char *at = arg->dtypes; at && (at = strstr(at, name)); at += n)
    if ((at == arg->dtypes || at[-1] == ' ') && (at[n] == 0 || at[n] == ' ')) return 1;
  return 0;
}

static ref_dtype last_of(const quern_arg_info *arg) {
  for (int d = REF_N_DTYPES; d-- > 0;)
    if (takes(arg, (ref_dtype)d)) return (ref_dtype)d;
  return REF_N_DTYPES;
}

/* The outputs' dtypes; `wish`: where they are the caller's choice. Not a shape of N: of ops without inputs. */
static quern_status infer(row *r, ref_dtype wish) {
  DLTensor t[MOST_IN], *in[MOST_IN];
  quern_shape shapes[MOST_OUT];
  int64_t n = N;
  memset(shapes, 0, sizeof shapes);
  for (int k = 0; k < r->n_in; k++) {
    t[k] = vector_at(values(k, r->in[k]), r->in[k], &n);
    in[k] = &t[k];
  }
  for (int k = 0; k < r->n_out; k++) {
    shapes[k].size = sizeof shapes[k];
    shapes[k].dtype = ref_dtype_dl(wish);
    shapes[k].ndim = 1;
    shapes[k].shape[0] = N;
    shapes[k].device.device_type = kDLCPU;
  }
  const quern_status status = quern_op_infer(r->op, r->n_in, in, r->n_out, shapes);
  for (int k = 0; k < r->n_out && !status; k++) r->out[k] = ref_dtype_of(shapes[k].dtype);
  return status;
}

/* 64 bits of a result, for other levels. */
static uint64_t hash_of(const unsigned char *p, size_t n) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3u;
  return h;
}

static char *lines; /* `ROW hash` */
static size_t n_lines, lines_size;

static void hash_line(const row *r, const char *what, uint64_t h) {
  char line[400];
  const int n = snprintf(line, sizeof line, "%s %s %016" PRIx64 "\n", row_text(r), what, h);
  if (is_child) {
    printf("= %s", line);
    return;
  }
  if (n_lines + (size_t)n + 1 > lines_size) lines = realloc(lines, lines_size = 2 * lines_size + 4096);
  memcpy(lines + n_lines, line, (size_t)n + 1);
  n_lines += (size_t)n;
}

/* Compares bytes with what is wanted; 1: the same. */
static int compare(const row *r, int output, const unsigned char *got, const unsigned char *wanted, int64_t n, const char *way) {
  const size_t size = size_of(r->out[output]);
  char a[64], b[64], x[400] = "";
  count(way);
  if (memcmp(got, wanted, (size_t)n * size) == 0) return 1;
  int64_t i = 0, n_bad = 0, first = -1;
  for (; i < n; i++)
    if (memcmp(got + (size_t)i * size, wanted + (size_t)i * size, size) != 0 && n_bad++ == 0) first = i;
  int at = 0;
  for (int k = 0; k < r->n_in && first < N; k++) {
    char number[64];
    at += snprintf(x + at, sizeof x - (size_t)at, "%s%s", k ? ", " : "",
                   ref_text(r->in[k], ref_get(r->in[k], values(k, r->in[k]) + (size_t)first * size_of(r->in[k])), number));
  }
  bad("%s, %s: %" PRId64 " of %" PRId64 " elements differ, the first is %" PRId64 " (of %s where nothing is broadcast): %s, "
      "wanted %s",
      row_text(r), way, n_bad, n, first, x, ref_text(r->out[output], ref_get(r->out[output], got + (size_t)first * size), a),
      ref_text(r->out[output], ref_get(r->out[output], wanted + (size_t)first * size), b));
  return 0;
}

/* The same of many times N elements: the first of them that differ, or the last. */
static void compare_tiles(const row *r, int output, const unsigned char *got, const unsigned char *wanted, int64_t n_tiles,
                          const char *way) {
  const size_t bytes = N * size_of(r->out[output]);
  int64_t i = 0;
  while (i + 1 < n_tiles && memcmp(got + (size_t)i * bytes, wanted, bytes) == 0) i++;
  compare(r, output, got + (size_t)i * bytes, wanted, N, way);
}

/* ---- The built kernel ---- */

/* The op on contiguous bytes. */
static quern_status call_vector(const row *r, quern_op *op, const unsigned char *const *in, unsigned char *const *out, int64_t n,
                                quern_plan **plan) {
  DLTensor it[MOST_IN], ot[MOST_OUT], *ins[MOST_IN], *outs[MOST_OUT];
  for (int k = 0; k < r->n_in; k++) it[k] = vector_at(in[k], r->in[k], &n), ins[k] = &it[k];
  for (int k = 0; k < r->n_out; k++) ot[k] = vector_at(out[k], r->out[k], &n), outs[k] = &ot[k];
  if (plan) return quern_op_prepare(op, r->n_in, ins, r->n_out, outs, call_of(r), plan);
  return quern_op_call(op, r->n_in, ins, r->n_out, outs, call_of(r));
}

static const char *const layout_names[N_LAYOUTS] = {"contiguous", "unaligned", "strided", "flipped", "transposed inputs",
                                                    "transposed output", "broadcast", "broadcast the other way"};

static int wanted_of(int layout) {
  return layout == BROADCAST ? BROADCAST_VALUES : layout == OTHERS_BROADCAST ? OTHERS_VALUES : PLAIN;
}

static void try_layout(const row *r, int layout) {
  static unsigned char got[N * 8];
  operand out[MOST_OUT];
  DLTensor *ins[MOST_IN], *outs[MOST_OUT];
  char way[80];
  for (int k = 0; k < r->n_in; k++) ins[k] = &input_in(k, r->in[k], layout)->t;
  for (int k = 0; k < r->n_out; k++) lay_out(&out[k], r->out[k], layout, OUTPUT), outs[k] = &out[k].t;
  for (int is_plan = 0; is_plan < 2; is_plan++) {
    quern_status status;
    snprintf(way, sizeof way, "%s%s", is_plan ? "a plan, " : "built, ", layout_names[layout]);
    if (is_plan) {
      quern_plan *plan = NULL;
      void *in[MOST_IN], *to[MOST_OUT];
      for (int k = 0; k < r->n_in; k++) in[k] = ins[k]->data;
      for (int k = 0; k < r->n_out; k++) to[k] = outs[k]->data, memset(body_of(&out[k]), 0x77, body_bytes(&out[k]));
      status = quern_op_prepare(r->op, r->n_in, ins, r->n_out, outs, call_of(r), &plan);
      if (!status) status = quern_plan_run(plan, in, to, NULL);
      quern_plan_release(plan);
    } else {
      status = quern_op_call(r->op, r->n_in, ins, r->n_out, outs, call_of(r));
    }
    if (status) bad("%s, %s: %s", row_text(r), way, quern_last_error());
    for (int k = 0; k < r->n_out && !status; k++) {
      move_elements(&out[k], got, 1);
      compare(r, k, got, r->wanted[wanted_of(layout)][k], N, way);
    }
  }
  for (int k = 0; k < r->n_out; k++) operand_free(&out[k]);
}

/* Calls of few elements, one after the other. */
static void try_pieces(const row *r) {
  static const int sizes[] = {1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 63, 65, 100, 127, 129, 255, 257};
  unsigned char *got[MOST_OUT];
  if (r->n_in == 0) return; /* what it gives may depend on how many there are */
  for (int k = 0; k < r->n_out; k++) got[k] = fresh(N * size_of(r->out[k]));
  for (int64_t at = 0, turn = 0, n; at < N; at += n, turn++) {
    const unsigned char *in[MOST_IN];
    unsigned char *out[MOST_OUT];
    n = sizes[turn % (int)(sizeof sizes / sizeof *sizes)];
    if (n > N - at) n = N - at;
    for (int k = 0; k < r->n_in; k++) in[k] = values(k, r->in[k]) + (size_t)at * size_of(r->in[k]);
    for (int k = 0; k < r->n_out; k++) out[k] = got[k] + (size_t)at * size_of(r->out[k]);
    if (call_vector(r, r->op, in, out, n, NULL)) bad("%s: %s", row_text(r), quern_last_error());
  }
  for (int k = 0; k < r->n_out; k++) {
    compare(r, k, got[k], r->wanted[PLAIN][k], N, "built, in pieces");
    free(got[k]);
  }
}

static void try_in_place(const row *r) {
  for (int o = 0; o < r->n_out; o++) {
    for (int k = 0; k < r->n_in; k++) {
      if (!(r->info->args[r->n_in + o].may_alias >> k & 1) || size_of(r->in[k]) != size_of(r->out[o])) continue;
      const unsigned char *in[MOST_IN];
      unsigned char *out[MOST_OUT], *shared = fresh(N * size_of(r->in[k]));
      memcpy(shared, values(k, r->in[k]), N * size_of(r->in[k]));
      for (int i = 0; i < r->n_in; i++) in[i] = i == k ? shared : values(i, r->in[i]);
      for (int i = 0; i < r->n_out; i++) out[i] = i == o ? shared : fresh(N * size_of(r->out[i]));
      if (call_vector(r, r->op, in, out, N, NULL)) bad("%s, in place: %s", row_text(r), quern_last_error());
      for (int i = 0; i < r->n_out; i++) {
        compare(r, i, out[i], r->wanted[PLAIN][i], N, "built, in place");
        free(out[i]);
      }
    }
  }
}

/* How many threads a call on [tiles, n] would have. */
static int n_threads(quern_op *op, int n_in, DLTensor *const *ins, int n_out, DLTensor *const *outs, const quern_call *call) {
  char text[16384];
  if (quern_op_explain(op, n_in, ins, n_out, outs, call, text, sizeof text)) return 0;
  return atoi(line_of(text, "threads"));
}

enum { FIRST_TILES = SANITIZED ? 64 : 32, MOST_TILES = 4096 };

/* Every row of the output the same N elements, so many of them that the call is cut for threads. */
static void try_threads(const row *r) {
  int64_t shape[2] = {FIRST_TILES, N}, still[2] = {0, 1};
  DLTensor it[MOST_IN], ot[MOST_OUT], *ins[MOST_IN], *outs[MOST_OUT];
  unsigned char *got[MOST_OUT];
  for (int k = 0; k < r->n_in; k++) {
    it[k] = vector_at(values(k, r->in[k]), r->in[k], shape);
    it[k].ndim = 2, it[k].strides = still, ins[k] = &it[k];
  }
  for (int k = 0; k < r->n_out; k++) {
    ot[k] = vector_at((void *)(((uintptr_t)k + 1) << 40), r->out[k], shape); /* explain looks for overlaps */
    ot[k].ndim = 2, outs[k] = &ot[k];
  }
  while (shape[0] < MOST_TILES && n_threads(r->threaded, r->n_in, ins, r->n_out, outs, call_of(r)) < 2) shape[0] *= 2;
  for (int k = 0; k < r->n_out; k++) ot[k].data = got[k] = fresh((size_t)shape[0] * N * size_of(r->out[k]));
  const int n = n_threads(r->threaded, r->n_in, ins, r->n_out, outs, call_of(r));
  if (n < 2) bad("%s: %d threads for %" PRId64 " elements", row_text(r), n, shape[0] * N);
  if (quern_op_call(r->threaded, r->n_in, ins, r->n_out, outs, call_of(r))) bad("%s: %s", row_text(r), quern_last_error());
  if (r->n_in == 0) { /* as one thread has it */
    for (int k = 0; k < r->n_out; k++) ot[k].data = fresh((size_t)shape[0] * N * size_of(r->out[k]));
    if (quern_op_call(r->op, 0, ins, r->n_out, outs, call_of(r))) bad("%s: %s", row_text(r), quern_last_error());
    for (int k = 0; k < r->n_out; k++) {
      compare(r, k, got[k], ot[k].data, shape[0] * N, "built, several threads");
      free(ot[k].data);
    }
  }
  for (int k = 0; k < r->n_out; k++) {
    if (r->n_in) compare_tiles(r, k, got[k], r->wanted[PLAIN][k], shape[0], "built, several threads");
    free(got[k]);
  }
}

/* The row's bytes, which all else is compared with. 0: it failed. */
static int want(row *r) {
  for (int w = 0; w < N_WANTED; w++) {
    const unsigned char *in[MOST_IN];
    for (int k = 0; k < r->n_in; k++)
      in[k] = wanted_values(k, r->in[k], w);
    for (int k = 0; k < r->n_out; k++) r->wanted[w][k] = fresh(N * size_of(r->out[k]));
    if (call_vector(r, r->op, in, r->wanted[w], N, NULL)) {
      bad("%s: %s", row_text(r), quern_last_error());
      return 0;
    }
  }
  for (int k = 0; k < r->n_out; k++)
    hash_line(r, r->info->args[r->n_in + k].name, hash_of(r->wanted[PLAIN][k], N * size_of(r->out[k])));
  return 1;
}

/* Every number of f16 or bf16: a contiguous kernel may have a body of its own (`narrow` in dsl/), other layouts go by way of f32. */
static void try_all_halves(const row *r) {
  enum { ALL = 1 << 16 };
  static uint16_t all[ALL], apart[2 * ALL], got[ALL], strided[2 * ALL];
  int64_t shape = ALL, stride = 2;
  if (r->n_in != 1 || r->n_out != 1 || size_of(r->in[0]) != 2 || size_of(r->out[0]) != 2 || ref_dtype_kind(r->in[0]) != REF_KIND_FLOAT) return;
  for (int i = 0; i < ALL; i++) all[i] = apart[2 * i] = (uint16_t)i;
  DLTensor x = vector_at(all, r->in[0], &shape), y = vector_at(got, r->out[0], &shape), *in = &x, *out = &y;
  quern_status status = quern_op_call(r->op, 1, &in, 1, &out, call_of(r));
  x.data = apart, y.data = strided, x.strides = y.strides = &stride;
  if (!status) status = quern_op_call(r->op, 1, &in, 1, &out, call_of(r));
  if (status) {
    bad("%s, of every number: %s", row_text(r), quern_last_error());
    return;
  }
  count("built, of every number");
  for (int i = 0; i < ALL; i++) {
    if (got[i] == strided[2 * i]) continue;
    bad("%s, of every number: of the bits %04x contiguous %04x, strided %04x", row_text(r), (unsigned)i, (unsigned)got[i], (unsigned)strided[2 * i]);
    break;
  }
  hash_line(r, "of every number", hash_of((const unsigned char *)got, sizeof got));
}

/* Whole numbers as i32, every one that matters: a contiguous kernel may take them as they are, others as numbers of the row's dtype. */
static void try_all_counts(const row *r) {
  enum { MOST = 2300, ALL = 2 * MOST, TURNS = 23 };
  static int32_t all[ALL], apart[2 * ALL];
  static unsigned char x_bytes[ALL * 8], got[ALL * 8], converted[ALL * 8];
  int64_t shape = ALL, stride = 2;
  const size_t size = size_of(r->in[0]);
  if (r->n_in != 2 || r->n_out != 1 || r->info->counts != 2 || ref_dtype_kind(r->in[0]) != REF_KIND_FLOAT) return;
  for (int i = 0; i < ALL; i++) {
    const int32_t far[] = {INT32_MIN, INT32_MIN + 1, -(1 << 24) - 1, (1 << 24) + 1, INT32_MAX - 1, INT32_MAX};
    all[i] = apart[2 * i] = i < 6 ? far[i] : i - MOST;
  }
  count("built, of every whole number");
  for (int turn = 0; turn < TURNS; turn++) {
    for (size_t i = 0; i < ALL; i++) memcpy(x_bytes + i * size, values(0, r->in[0]) + (i + (size_t)turn) % N * size, size);
    DLTensor x = vector_at(x_bytes, r->in[0], &shape), y = vector_at(all, REF_I32, &shape), out = vector_at(got, r->out[0], &shape);
    DLTensor *ins[] = {&x, &y}, *outs = &out;
    quern_status status = quern_op_call(r->op, 2, ins, 1, &outs, NULL);
    y.data = apart, y.strides = &stride, out.data = converted;
    if (!status) status = quern_op_call(r->op, 2, ins, 1, &outs, NULL);
    if (status) bad("%s, of every whole number: %s", row_text(r), quern_last_error());
    for (size_t i = 0; i < ALL && !status; i++) {
      if (memcmp(got + i * size, converted + i * size, size) == 0) continue;
      bad("%s, of every whole number: of x %zu and %d", row_text(r), (i + (size_t)turn) % N, all[i]);
      return;
    }
    if (turn == 0) hash_line(r, "of every whole number", hash_of(got, ALL * size));
  }
}

static void row_end(row *r) {
  for (int w = 0; w < N_WANTED; w++)
    for (int k = 0; k < MOST_OUT; k++) free(r->wanted[w][k]);
  quern_op_release(r->op);
  quern_op_release(r->threaded);
}

static void try_built(const row *r) {
  try_pieces(r);
  for (int layout = 1; layout < N_LAYOUTS && (!is_child || layout < FLIPPED); layout++) try_layout(r, layout);
  try_in_place(r);
  if (!is_child) try_threads(r);
}

/* ---- Ops with an output as large as values say ---- */

static unsigned char *measured(const row *r, quern_op *op, DLTensor *const *ins, size_t *bytes, const char *way) {
  quern_shape shape = {.size = sizeof shape};
  size_t n = 1;
  *bytes = 0;
  if (quern_op_measure(op, r->n_in, ins, 1, &shape, NULL)) {
    bad("%s, %s: %s", row_text(r), way, quern_last_error());
    return NULL;
  }
  for (int i = 0; i < shape.ndim; i++) n *= (size_t)shape.shape[i];
  *bytes = n * size_of(r->out[0]);
  unsigned char *memory = fresh(*bytes);
  DLTensor t = vector_at(memory, r->out[0], shape.shape), *outs = &t;
  t.ndim = shape.ndim;
  if (quern_op_call(op, r->n_in, ins, 1, &outs, NULL)) bad("%s, %s: %s", row_text(r), way, quern_last_error());
  return memory;
}

static void try_dynamic(const row *r) {
  DLTensor t[MOST_IN], *ins[MOST_IN];
  int64_t shape[2] = {ROWS_OF, COLUMNS_OF}, tiles[3] = {64, ROWS_OF, COLUMNS_OF}, still[3] = {0, COLUMNS_OF, 1};
  unsigned char *wanted[N_WANTED], *got;
  size_t n_wanted[N_WANTED], n;
  for (int w = 0; w < N_WANTED; w++) {
    for (int k = 0; k < r->n_in; k++) {
      t[k] = vector_at(wanted_values(k, r->in[k], w), r->in[k], shape);
      t[k].ndim = 2, ins[k] = &t[k];
    }
    wanted[w] = measured(r, r->op, ins, &n_wanted[w], "built");
  }
  hash_line(r, "out", hash_of(wanted[0], n_wanted[0]));
  for (int layout = 1; layout < N_LAYOUTS; layout++) {
    char way[80];
    snprintf(way, sizeof way, "built, %s", layout_names[layout]);
    for (int k = 0; k < r->n_in; k++) ins[k] = &input_in(k, r->in[k], layout)->t;
    got = measured(r, r->op, ins, &n, way);
    if (n != n_wanted[wanted_of(layout)]) bad("%s, %s: %zu bytes, wanted %zu", row_text(r), way, n, n_wanted[wanted_of(layout)]);
    else if (got) compare(r, 0, got, wanted[wanted_of(layout)], (int64_t)(n / size_of(r->out[0])), way);
    free(got);
  }
  for (int k = 0; k < r->n_in; k++) {
    t[k] = vector_at(values(k, r->in[k]), r->in[k], tiles);
    t[k].ndim = 3, t[k].strides = still, ins[k] = &t[k];
  }
  unsigned char *one = measured(r, r->op, ins, &n_wanted[0], "one thread");
  got = measured(r, r->threaded, ins, &n, "several threads");
  if (n != n_wanted[0]) bad("%s, several threads: %zu bytes, wanted %zu", row_text(r), n, n_wanted[0]);
  else if (got && one) compare(r, 0, got, one, (int64_t)(n / size_of(r->out[0])), "built, several threads");
  free(one), free(got);
  for (int w = 0; w < N_WANTED; w++) free(wanted[w]);
}

/* ---- In expressions ---- */

/* One output of a row, as a part of an expression. */
typedef struct item {
  const row *r;
  int output;
} item;

/* Up to MOST_ITEMS of them, an output each, and one more where they are all of one op: its built kernel would serve them. */
typedef struct batch {
  int n, n_in, has_more;
  item items[MOST_ITEMS];
  int in_k[MOST_OPERANDS];
  ref_dtype in_d[MOST_OPERANDS];
  unsigned char *wanted[N_WANTED][MOST_ITEMS];
  char text[8192];
} batch;

/* Its op is spelt (f32)x in expressions. */
static int is_cast(const row *r) { return strcmp(r->info->name, "astype") == 0; }

static int item_text(char *text, size_t size, const item *it) {
  const row *r = it->r;
  if (is_cast(r)) return snprintf(text, size, "(%s)x0_%s", ref_dtype_name(r->out[0]), ref_dtype_name(r->in[0]));
  int n = snprintf(text, size, "%s%s%s(", r->info->name, r->n_out > 1 ? "." : "",
                   r->n_out > 1 ? r->info->args[r->n_in + it->output].name : "");
  for (int k = 0; k < r->n_in; k++)
    n += snprintf(text + n, size - (size_t)n, "%sx%d_%s", k ? ", " : "", k, ref_dtype_name(r->in[k]));
  for (int k = 0; k < r->info->n_params && r->has_params; k++)
    n += snprintf(text + n, size - (size_t)n, "%s%d", k || r->n_in ? ", " : "", (int)explicit_params[k].v.i);
  return n + snprintf(text + n, size - (size_t)n, ")");
}

/* In an expression a NaN is the one NaN, that of an op that moves bits, too. */
static void one_nan(ref_dtype d, unsigned char *at, int n) {
  for (int i = 0; i < n && ref_dtype_kind(d) == REF_KIND_FLOAT; i++, at += size_of(d))
    if (ref_is_nan(d, ref_get(d, at))) ref_put(d, at, ref_nan(d));
}

/* Text, inputs and what is wanted. */
static void batch_begin(batch *b) {
  size_t n = 0;
  b->n_in = 0;
  for (int i = 0; i < b->n; i++) {
    const row *r = b->items[i].r;
    n += (size_t)snprintf(b->text + n, sizeof b->text - n, "%sy%d = ", i ? "; " : "", i);
    n += (size_t)item_text(b->text + n, sizeof b->text - n, &b->items[i]);
    for (int k = 0; k < r->n_in; k++) {
      int at = 0;
      while (at < b->n_in && (b->in_k[at] != k || b->in_d[at] != r->in[k])) at++;
      b->in_k[at] = k;
      b->in_d[at] = r->in[k];
      b->n_in += at == b->n_in;
    }
    const ref_dtype d = r->out[b->items[i].output];
    for (int w = 0; w < N_WANTED; w++) {
      b->wanted[w][i] = fresh(N * size_of(d));
      memcpy(b->wanted[w][i], r->wanted[w][b->items[i].output], N * size_of(d));
      one_nan(d, b->wanted[w][i], N);
    }
  }
  b->has_more = 1;
  for (int i = 1; i < b->n; i++) b->has_more &= b->items[i].r == b->items[0].r;
  if (b->has_more) snprintf(b->text + n, sizeof b->text - n, "; more = x%d_%s", b->in_k[0], ref_dtype_name(b->in_d[0]));
}

static void batch_end(batch *b) {
  for (int w = 0; w < N_WANTED; w++)
    for (int i = 0; i < b->n; i++) free(b->wanted[w][i]);
}

static int batch_outputs(const batch *b) { return b->n + b->has_more; }
static ref_dtype batch_out(const batch *b, int i) { return i < b->n ? b->items[i].r->out[b->items[i].output] : b->in_d[0]; }

/* The tier that a call has, and how many compiles it takes. */
static int is_tier(quern_op *op, const batch *b, DLTensor *const *ins, DLTensor *const *outs, int tier, const char *way) {
  static char text[1 << 16];
  if (quern_op_explain(op, b->n_in, ins, batch_outputs(b), outs, NULL, text, sizeof text) == 0 &&
      strncmp(tier_names[tier], line_of(text, "tier"), strcspn(tier_names[tier], " ")) == 0)
    return 1;
  bad("%s, %s: tier %s, %s", b->text, way, line_of(text, "tier"), line_of(text, "reason"));
  return 0;
}

static void expression_layout(const batch *b, quern_op *op, int tier, int layout) {
  static unsigned char got[N * 8];
  operand out[MOST_OPERANDS];
  DLTensor *ins[MOST_OPERANDS], *outs[MOST_OPERANDS];
  const int n_out = batch_outputs(b);
  char way[80];
  for (int k = 0; k < b->n_in; k++) ins[k] = &input_in(b->in_k[k], b->in_d[k], layout)->t;
  for (int i = 0; i < n_out; i++) lay_out(&out[i], batch_out(b, i), layout, OUTPUT), outs[i] = &out[i].t;
  for (int is_plan = 0; is_plan < 2; is_plan++) {
    quern_status status;
    snprintf(way, sizeof way, "%s%s, %s", tier_names[tier], is_plan ? ", a plan" : "", layout_names[layout]);
    if (is_plan) {
      quern_plan *plan = NULL;
      void *in[MOST_OPERANDS], *to[MOST_OPERANDS];
      for (int k = 0; k < b->n_in; k++) in[k] = ins[k]->data;
      for (int i = 0; i < n_out; i++) to[i] = outs[i]->data, memset(body_of(&out[i]), 0x77, body_bytes(&out[i]));
      status = quern_op_prepare(op, b->n_in, ins, n_out, outs, NULL, &plan);
      if (!status) status = quern_plan_run(plan, in, to, NULL);
      quern_plan_release(plan);
    } else {
      status = quern_op_call(op, b->n_in, ins, n_out, outs, NULL);
      is_tier(op, b, ins, outs, tier, way);
    }
    if (status) bad("%s, %s: %s", b->text, way, quern_last_error());
    for (int i = 0; i < b->n && !status; i++) {
      move_elements(&out[i], got, 1);
      compare(b->items[i].r, b->items[i].output, got, b->wanted[wanted_of(layout)][i], N, way);
    }
  }
  for (int i = 0; i < n_out; i++) operand_free(&out[i]);
}

/* Outputs that are inputs: each once, as many in one call as there are inputs for them. */
static void expression_in_place(const batch *b, quern_op *op, int tier) {
  const int n_out = batch_outputs(b);
  int64_t n = N;
  char way[80];
  int done = 0;
  snprintf(way, sizeof way, "%s, in place", tier_names[tier]);
  for (int turn = 0; done < b->n && turn < b->n; turn++) {
    DLTensor it[MOST_OPERANDS], ot[MOST_OPERANDS], *ins[MOST_OPERANDS], *outs[MOST_OPERANDS];
    int twin[MOST_OPERANDS], taken[MOST_OPERANDS] = {0}, first = done, n_twins = 0;
    for (int k = 0; k < b->n_in; k++) {
      it[k] = vector_at(fresh(N * size_of(b->in_d[k])), b->in_d[k], &n);
      memcpy(it[k].data, values(b->in_k[k], b->in_d[k]), N * size_of(b->in_d[k]));
      ins[k] = &it[k];
    }
    for (int i = 0; i < n_out; i++) {
      twin[i] = -1;
      for (int k = 0; k < b->n_in && i >= first && i < b->n && i == done; k++)
        if (!taken[k] && size_of(b->in_d[k]) == size_of(batch_out(b, i))) twin[i] = k;
      if (twin[i] >= 0) taken[twin[i]] = 1, n_twins++, done++;
      else if (i == done && n_twins == 0 && i < b->n) done++; /* none has its size */
      ot[i] = vector_at(twin[i] >= 0 ? it[twin[i]].data : fresh(N * size_of(batch_out(b, i))), batch_out(b, i), &n);
      outs[i] = &ot[i];
    }
    if (n_twins) {
      if (quern_op_call(op, b->n_in, ins, n_out, outs, NULL)) bad("%s, %s: %s", b->text, way, quern_last_error());
      for (int i = first; i < b->n && i < done; i++)
        compare(b->items[i].r, b->items[i].output, ot[i].data, b->wanted[PLAIN][i], N, way);
    }
    for (int i = 0; i < n_out; i++)
      if (twin[i] < 0) free(ot[i].data);
    for (int k = 0; k < b->n_in; k++) free(it[k].data);
  }
}

static void expression_threads(const batch *b, quern_op *op, int tier) {
  const int n_out = batch_outputs(b);
  int64_t shape[2] = {4, N}, still[2] = {0, 1};
  DLTensor it[MOST_OPERANDS], ot[MOST_OPERANDS], *ins[MOST_OPERANDS], *outs[MOST_OPERANDS];
  char way[80];
  snprintf(way, sizeof way, "%s, several threads", tier_names[tier]);
  for (int k = 0; k < b->n_in; k++) {
    it[k] = vector_at(values(b->in_k[k], b->in_d[k]), b->in_d[k], shape);
    it[k].ndim = 2, it[k].strides = still, ins[k] = &it[k];
  }
  for (int i = 0; i < n_out; i++) { /* explain reads no data, but looks for overlaps */
    ot[i] = vector_at((void *)(((uintptr_t)i + 1) << 40), batch_out(b, i), shape);
    ot[i].ndim = 2, outs[i] = &ot[i];
  }
  while (shape[0] < MOST_TILES && n_threads(op, b->n_in, ins, n_out, outs, NULL) < 2) shape[0] *= 2;
  for (int i = 0; i < n_out; i++) ot[i].data = fresh((size_t)shape[0] * N * size_of(batch_out(b, i)));
  if (n_threads(op, b->n_in, ins, n_out, outs, NULL) < 2) bad("%s: one thread for %" PRId64 " elements", b->text, shape[0] * N);
  is_tier(op, b, ins, outs, tier, way);
  if (quern_op_call(op, b->n_in, ins, n_out, outs, NULL)) bad("%s, %s: %s", b->text, way, quern_last_error());
  for (int i = 0; i < n_out; i++) {
    if (i < b->n) compare_tiles(b->items[i].r, b->items[i].output, ot[i].data, b->wanted[PLAIN][i], shape[0], way);
    free(ot[i].data);
  }
}

/* Runs a batch in all ways of some tiers. */
static void try_batch(batch *b, int first_tier, int last_tier) {
  batch_begin(b);
  for (int tier = first_tier; tier <= last_tier; tier++) {
    quern_op *op;
    if (!contexts[tier]) continue;
    if (quern_op_compile(contexts[tier], b->text, &op)) {
      bad("%s: %s", b->text, quern_last_error());
      break;
    }
    if (tier == JIT_OFF_THREADED) {
      if (!is_child) expression_threads(b, op, tier);
    } else {
      const int is_compiled = tier >= JIT_CLANG;
      for (int layout = 0; layout < N_LAYOUTS && (!is_child || layout == CONTIGUOUS); layout++) {
        /* what is broadcast along a row has a kernel of its own */
        if (is_compiled && (layout == BROADCAST || layout == OTHERS_BROADCAST)) continue;
        expression_layout(b, op, tier, layout);
      }
      if (!is_child) expression_in_place(b, op, tier);
      if (is_compiled && !is_child) expression_threads(b, op, tier);
    }
    quern_op_release(op);
  }
  batch_end(b);
}

/* Whether an expression may have the op; if not, says why. */
static int is_part(const row *r) {
  char text[500];
  quern_op *op;
  const item it = {r, 0};
  if (r->n_in == 0) {
    leave_out("%s in expressions: it has no inputs", r->info->name);
    return 0;
  }
  if (is_cast(r)) return 1;
  item_text(text, sizeof text, &it);
  if (quern_op_compile(contexts[JIT_OFF], text, &op)) {
    char why[200];
    snprintf(why, sizeof why, "%.*s", (int)strcspn(quern_last_error(), "\n"), quern_last_error());
    if (!strstr(why, "is no part of an expression")) bad("%s: %s", text, quern_last_error());
    const char *colon = strstr(why, r->info->name);
    leave_out("%s in expressions: %s", r->info->name, colon ? colon : why);
    return 0;
  }
  quern_op_release(op);
  return 1;
}

/* ---- The walk ---- */

static row rows[MOST_ROWS];
static int n_rows;
static long long n_pairs;

/* Adds the op with inputs of dtype d, where they take it, with and without parameters, and for every dtype of output where that
 * is the caller's choice. */
static void add_rows(int index, ref_dtype d) {
  row r = {.has_params = 0};
  int took = 0, is_choice = 1;
  if (quern_op_at(contexts[JIT_OFF], index, &r.op)) bail("%s", quern_last_error());
  r.info = quern_op_describe(r.op);
  r.n_in = r.info->n_in;
  r.n_out = r.info->n_out;
  if ((only && strcmp(only, r.info->name) != 0) || has_axes(r.info)) { /* t242 has those, at each level */
    quern_op_release(r.op);
    return;
  }
  if (r.n_in > MOST_IN || r.n_out > MOST_OUT || r.info->n_params > MOST_PARAMS) bail("%s is larger than this test", r.info->name);
  for (int k = 0; k < r.n_in; k++) {
    const int is_taken = takes(&r.info->args[k], d);
    r.in[k] = is_taken ? d : last_of(&r.info->args[k]);
    took |= is_taken;
    if (r.in[k] == REF_N_DTYPES) bail("%s: input %d takes nothing", r.info->name, k + 1);
  }
  if (r.n_in == 0) took = takes(&r.info->args[0], d);
  if (took) {
    n_pairs++;
    for (int wish = 0; wish < REF_N_DTYPES && is_choice; wish++) {
      if (r.n_in == 0 && (ref_dtype)wish != d) continue;
      if (infer(&r, (ref_dtype)wish)) {
        bad("%s of %s, which its inputs take: %s", r.info->name, ref_dtype_name(d), quern_last_error());
        break;
      }
      /* The dtype is the caller's choice where it is what he wished, twice. */
      if (wish == 0) {
        const ref_dtype first = r.out[0];
        infer(&r, REF_I16);
        is_choice = r.out[0] == REF_I16 && first == (ref_dtype)wish;
        infer(&r, (ref_dtype)wish);
      }
      int has_none = 0;
      for (int k = 0; k < r.info->n_params; k++) has_none |= r.info->params[k].value.kind == QUERN_NONE;
      for (int with = has_none; with <= (r.info->n_params > 0); with++) {
        row *made = &rows[n_rows];
        if (n_rows++ == MOST_ROWS) bail("more than %d rows", MOST_ROWS);
        *made = r;
        made->has_params = with;
        if (quern_op_find(contexts[JIT_OFF], r.info->name, &made->op) ||
            quern_op_find(contexts[JIT_OFF_THREADED], r.info->name, &made->threaded))
          bail("%s", quern_last_error());
      }
    }
  }
  quern_op_release(r.op);
}

/* Compiles are what this test costs: whether row i of dtype d has this one. */
static int is_turn(int tier, int i, ref_dtype d) {
  static int part = -1; /* of 48: all that is modulo 2, 6, 16 and 48 */
  if (is_full || only || tier < JIT_CLANG) return 1;
  if (part < 0 && (part = test_part(48)) < 0) part = 0;
  const uint64_t turn = (uint64_t)i + d + test_seed() + (uint64_t)part;
  if (tier == JIT_CC) return turn % CC_TURNS == 0 && ((int)d + part) % 6 == 0;
  if (getenv("QUERN_TEST_EXHAUSTIVE") && *getenv("QUERN_TEST_EXHAUSTIVE") == '1')
    return d == REF_F32 || d == REF_F64 || turn % 2 == (tier == JIT_CLANG);
  return turn % 2 == (tier == JIT_CLANG) && (d == REF_F32 || d == REF_F64 ? turn % 16 / 2 == 0 : turn % 48 / 2 == 0 && ((int)d + part) % 2 == 0);
}

static void walk(ref_dtype d) {
  static batch b;
  const double start = now_ms();
  const int n = quern_op_count(contexts[JIT_OFF]);
  const int part = is_child && !is_full && !only ? test_part(6) : -1; /* of another level: the rows with layouts */
  n_rows = 0;
  for (int index = 0; index < n; index++) add_rows(index, d);
  if (n_rows == 0 && only) return;
  if (!is_child) group_begin("inputs of %s: %d ops, parameters and dtypes of the output", ref_dtype_name(d), n_rows);
  for (int i = 0; i < n_rows; i++) {
    if (rows[i].info->op_class == QUERN_CLASS_DYNAMIC) try_dynamic(&rows[i]);
    else if (want(&rows[i]) && (part < 0 || i % 6 == part)) try_built(&rows[i]);
    try_all_halves(&rows[i]);
    try_all_counts(&rows[i]);
  }
  const double middle = now_ms();
  for (int last_tier = JIT_OFF_THREADED; last_tier < N_TIERS; last_tier++) {
    const int first_tier = last_tier == JIT_OFF_THREADED ? JIT_OFF : last_tier;
    b.n = 0;
    for (int i = 0; i < n_rows && contexts[last_tier]; i++) {
      if (!is_turn(last_tier, i, d)) continue;
      if (!is_part(&rows[i])) continue;
      for (int k = 0; k < rows[i].n_out; k++) {
        b.items[b.n++] = (item){&rows[i], k};
        if (b.n == MOST_ITEMS) try_batch(&b, first_tier, last_tier), b.n = 0;
      }
    }
    if (b.n) try_batch(&b, first_tier, last_tier);
  }
  for (int i = 0; i < n_rows; i++) row_end(&rows[i]);
  if (!is_child) {
    group_end();
    diag("%s: %.1f s built, %.1f s in expressions", ref_dtype_name(d), (middle - start) / 1e3, (now_ms() - middle) / 1e3);
  }
}

/* ---- Inputs of two dtypes, and outputs of a wider one: built and interpreted ---- */

typedef struct mixed {
  item it;
  ref_dtype out;
  unsigned char *wanted;
} mixed;

static void try_mixed_batch(mixed *some, int n, const char *way) {
  batch b = {.n = n};
  DLTensor it[MOST_OPERANDS], ot[MOST_OPERANDS], *ins[MOST_OPERANDS], *outs[MOST_OPERANDS];
  int64_t length = N_MIXED;
  quern_op *op;
  for (int i = 0; i < n; i++) b.items[i] = some[i].it;
  if (n == 1) b.items[b.n++] = some[0].it; /* the wish of another output: the same again, not the op alone */
  size_t at = 0;
  for (int i = 0; i < b.n; i++) {
    const row *r = b.items[i].r;
    at += (size_t)snprintf(b.text + at, sizeof b.text - at, "%sy%d = ", i ? "; " : "", i);
    at += (size_t)item_text(b.text + at, sizeof b.text - at, &b.items[i]);
    for (int k = 0; k < r->n_in; k++) {
      int in = 0;
      while (in < b.n_in && (b.in_k[in] != k || b.in_d[in] != r->in[k])) in++;
      b.in_k[in] = k, b.in_d[in] = r->in[k];
      b.n_in += in == b.n_in;
    }
  }
  for (int k = 0; k < b.n_in; k++) it[k] = vector_at(values(b.in_k[k], b.in_d[k]), b.in_d[k], &length), ins[k] = &it[k];
  for (int i = 0; i < b.n; i++) {
    const ref_dtype d = some[i < n ? i : 0].out;
    ot[i] = vector_at(fresh(N_MIXED * size_of(d)), d, &length), outs[i] = &ot[i];
  }
  if (quern_op_compile(contexts[JIT_OFF], b.text, &op)) bail("%s: %s", b.text, quern_last_error());
  if (quern_op_call(op, b.n_in, ins, b.n, outs, NULL)) bad("%s: %s", b.text, quern_last_error());
  for (int i = 0; i < b.n; i++) {
    row r = *b.items[i].r;
    r.out[b.items[i].output] = some[i < n ? i : 0].out;
    if (i < n) compare(&r, b.items[i].output, ot[i].data, some[i].wanted, N_MIXED, way);
    free(ot[i].data);
  }
  quern_op_release(op);
}

/* The rows that `rows` has, of inputs of d, or of d and other ones in turn; each with its own dtype of output, or a wider one. */
static void try_mixed(ref_dtype d, ref_dtype other, int is_wider, const char *way) {
  static mixed some[MOST_ITEMS];
  const int n = quern_op_count(contexts[JIT_OFF]);
  int n_some = 0;
  n_rows = 0;
  for (int index = 0; index <= n; index++) {
    row *r = &rows[n_rows];
    memset(r, 0, sizeof *r);
    if (index < n) {
      if (quern_op_at(contexts[JIT_OFF], index, &r->op)) bail("%s", quern_last_error());
      r->info = quern_op_describe(r->op);
      r->n_in = r->info->n_in, r->n_out = r->info->n_out;
      n_rows++;
      int is_taken = r->info->op_class != QUERN_CLASS_DYNAMIC && r->n_in >= (d == other ? 1 : 2);
      is_taken &= (!only || strcmp(only, r->info->name) == 0) && !has_axes(r->info);
      for (int k = 0; k < r->info->n_params; k++) r->has_params |= r->info->params[k].value.kind == QUERN_NONE;
      for (int k = 0; k < r->n_in && is_taken; k++) is_taken &= takes(&r->info->args[k], r->in[k] = k % 2 ? other : d);
      if (!is_taken || infer(r, REF_F32) || is_cast(r) || !is_part(r)) continue;
      unsigned char *out[MOST_OUT];
      const unsigned char *in[MOST_IN];
      ref_dtype wish[MOST_OUT];
      for (int k = 0; k < r->n_out; k++) {
        wish[k] = r->out[k];
        if (is_wider) wish[k] = ref_compute(wish[k]) != wish[k] ? ref_compute(wish[k]) : REF_F64;
        out[k] = fresh(N_MIXED * size_of(wish[k]));
      }
      for (int k = 0; k < r->n_in; k++) in[k] = values(k, r->in[k]);
      memcpy(r->out, wish, sizeof wish);
      const quern_status status = call_vector(r, r->op, in, out, N_MIXED, NULL);
      if (status) bad("%s: %s", row_text(r), quern_last_error());
      for (int k = 0; k < r->n_out; k++) {
        hash_line(r, way, hash_of(out[k], N_MIXED * size_of(wish[k])));
        one_nan(wish[k], out[k], N_MIXED);
        some[n_some++] = (mixed){{r, k}, wish[k], out[k]};
      }
    }
    if (n_some && (index == n || n_some + MOST_OUT > MOST_ITEMS)) {
      if (!is_child) try_mixed_batch(some, n_some, way);
      for (int i = 0; i < n_some; i++) free(some[i].wanted);
      n_some = 0;
    }
  }
  for (int i = 0; i < n_rows; i++) quern_op_release(rows[i].op);
}

/* ---- Levels ---- */

static void make_contexts(void) {
  contexts[JIT_OFF] = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 1});
  contexts[JIT_OFF_THREADED] = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 3});
  if ((is_child && !is_full) || SANITIZED) return;
  if (compiles_with(NULL, "clang")) contexts[JIT_CLANG] = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 3});
  if (!compiles_with("cc", "cc")) return;
  contexts[JIT_CC] = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 3, .cc = "cc"});
  const char *tmp = getenv("TMPDIR");
  snprintf(cc_plain, sizeof cc_plain, "%s/quern-cc.XXXXXX", tmp ? tmp : "/tmp");
  const int file = mkstemp(cc_plain);
  static const char script[] = "#!/bin/sh\nexec cc \"$@\" -O1\n";
  if (file < 0 || write(file, script, sizeof script - 1) != (ssize_t)sizeof script - 1 || fchmod(file, 0700) || close(file))
    bail("no file in %s", cc_plain);
  contexts[JIT_CC_PLAIN] = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 3, .cc = cc_plain});
}

static const char *level_here(void) {
  static char level[40];
  snprintf(level, sizeof level, "%.39s", described(contexts[JIT_OFF], "isa"));
  level[strcspn(level, " ,(")] = 0;
  return level;
}

/* The walk at another level, and its lines beside this process's. */
static void compare_level(const char *program, const char *level) {
  char command[5000], *line = NULL, ran[40] = "";
  size_t size = 0, at = 0;
  long long n = 0, n_ways = 0;
  int is_good = 1;
  const double start = now_ms();
  snprintf(command, sizeof command, "QUERN_ISA=%s '%s' child", level, program);
  FILE *f = popen(command, "r");
  if (!f) bail("no child");
  while (getline(&line, &size, f) > 0) {
    if (strncmp(line, "level ", 6) == 0) {
      snprintf(ran, sizeof ran, "%.*s", (int)strcspn(line + 6, "\n"), line + 6);
      if (strcmp(ran, level) != 0) break;
      group_begin("level %s: the bits of %s", level, level_here());
    } else if (strncmp(line, "bad ", 4) == 0) {
      group_fail("%s", line + 4);
    } else if (strncmp(line, "= ", 2) == 0) {
      const size_t length = strcspn(lines + at, "\n") + 1;
      group_count(1);
      n++;
      if (at >= n_lines || strncmp(lines + at, line + 2, length) != 0)
        group_fail("%s gives\n%s%s gives\n%.*s", level, line + 2, level_here(), at < n_lines ? (int)length : 0, lines + at);
      if (at < n_lines) at += length;
    } else if (strncmp(line, "ways ", 5) == 0) {
      n_ways = atoll(line + 5);
    }
  }
  is_good = pclose(f) == 0;
  free(line);
  if (strcmp(ran, level) != 0) {
    skip(1, "QUERN_ISA=%s runs %s: this CPU or this build has no %s", level, *ran ? ran : "nothing", level);
    return;
  }
  if (!is_good || at != n_lines) group_fail("it ended early");
  group_end();
  diag("%s: %lld outputs, and %lld times one compared within the level, %.1f s", level, n, n_ways, (now_ms() - start) / 1e3);
}

int main(int argc, char **argv) {
  static const char *const names[] = {"QUERN_JIT", "QUERN_CC", "QUERN_RECORD", "QUERN_DUMP", "QUERN_TEST_COMPILER",
                                      "QUERN_LOG", "QUERN_NUM_THREADS"};
  static const char *const levels[] = {"generic", "v2", "v3", "v4"};
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  is_child = argc > 1 && strcmp(argv[1], "child") == 0;
  is_full = getenv("QUERN_TEST_FULL") && *getenv("QUERN_TEST_FULL") == '1';
  only = getenv("QUERN_TEST_OP");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
  setenv("QUERN_CACHE_DIR", "none", 1);
  make_contexts();
  if (is_child) printf("level %s\n", level_here());
  for (int d = 0; d < REF_N_DTYPES; d++) walk((ref_dtype)d);
  long long n_walked = 0, n_all = 0;
  const double start = now_ms();
  if (!only) {
    if (!is_child) group_begin("inputs of two dtypes, interpreted");
    for (int d = 0; d < REF_N_DTYPES; d++)
      for (int other = 0; other < REF_N_DTYPES; other++)
        if (d != other) try_mixed((ref_dtype)d, (ref_dtype)other, 0, "interpreter, inputs of two dtypes");
    if (!is_child) group_end(), group_begin("outputs of a wider dtype, interpreted");
    for (int d = 0; d < REF_N_DTYPES; d++) try_mixed((ref_dtype)d, (ref_dtype)d, 1, "interpreter, a wider output");
    if (!is_child) group_end();
  }
  for (int k = 0; k < n_counts; k++) n_walked += counts[k].n;
  if (*cc_plain) unlink(cc_plain);
  if (is_child) {
    printf("ways %lld\n", n_walked);
    return 0;
  }
  diag("mixed: %.1f s", (now_ms() - start) / 1e3);
  if (length <= 0) {
    skip(1, "/proc/self/exe cannot be read");
  } else {
    program[length] = 0;
    const int part = is_full ? -1 : test_part(6); /* those without fma take long */
    for (int i = 0; i < 4; i++)
      if (strcmp(levels[i], level_here()) != 0 && (part < 0 || i > 1 || i == part)) compare_level(program, levels[i]);
  }
  for (int k = 0; k < n_counts; k++) n_all += counts[k].n;
  for (int k = 0; k < n_counts; k++) diag("%6lld %s", counts[k].n, counts[k].name);
  for (int tier = JIT_CLANG; tier < N_TIERS; tier++)
    if (!contexts[tier])
      leave_out("expressions compiled by %s: %s", tier_names[tier], SANITIZED ? "sanitizers" : "it is not here");
  leave_out("compiled expressions broadcast along a row: a kernel, and a compile, of their own (t600)");
  if (!is_full && contexts[JIT_CLANG] && contexts[JIT_CC_PLAIN])
    leave_out("a 16th of ops by clang, another by cc -O1, of inputs other than f32, f64 a 96th: QUERN_TEST_FULL=1 has all by both");
  if (!is_full && contexts[JIT_CC])
    leave_out("by cc -O3 all but one op of %d of each dtype: QUERN_TEST_FULL=1 has them", CC_TURNS);
  leave_out("the CUDA text: t710 runs it on the CPU beside the C kernels");
  for (int k = 0; k < n_left_out; k++) diag("left out: %s", left_out[k]);
  diag("%d ops, %lld pairs of op and dtype, %d ways: %lld outputs compared", quern_op_count(contexts[JIT_OFF]), n_pairs, n_counts,
       n_all);
  ok(n_pairs > 10 || only || is_subset(), "%lld pairs of op and dtype", n_pairs);
  for (int tier = 0; tier < N_TIERS; tier++) quern_ctx_release(contexts[tier]);
  free(lines);
  return done_testing();
}
