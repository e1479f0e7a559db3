/* SPDX-License-Identifier: Apache-2.0
 * tags: long
 *
 * t760-cuda-ops: every op of the library on CUDA tensors of every dtype and layout: the bytes must be those that the CPU gives,
 * those around the outputs included. Without a GPU, by the fake driver, some cases of each op and of each layout, until it was
 * given so many kernels, others each day; with QUERN_TEST_GPU=1 all. QUERN_TEST_CASE=n repeats one case, QUERN_TEST_SHARD=k/n takes each n-th,
 * QUERN_TEST_LAYOUT=name one layout; QUERN_TEST_KERNELS is how many kernels the fake driver may be given, QUERN_TEST_SECONDS how
 * long it may take. */
#include "cuda/on_device.h"

enum { MOST = 4, MOST_OPS = 400 };

/* ---- A problem: an op, its operands on the CPU, then the same on the device ---- */

typedef struct problem {
  quern_op *op;
  const quern_op_info *info;
  int n, n_in;
  operand at[MOST]; /* inputs, then outputs */
  mirror on[MOST];
  ref_dtype d[MOST];
  int is_host[MOST]; /* a 0-d tensor that stays on the CPU */
  int is_in_place;   /* the output is input 0 */
  quern_scalar params[3];
  quern_call call;
  int guard, unaligned; /* of all operands; bit k: operand k lies one element off */
  int64_t number;
  const char *layout;
} problem;

static void lay(problem *p, int k, int ndim, const int64_t *shape, const int64_t *strides, rng *r) {
  operand *o = &p->at[k];
  operand_describe(o, p->d[k], ndim, shape, strides);
  operand_allocate(o, p->unaligned >> k & 1 ? ref_dtype_size(p->d[k]) : 0, p->guard);
  operand_fill(o, r);
}

/* Every operand alike. strides may be NULL. */
static void lay_all(problem *p, int ndim, const int64_t *shape, const int64_t *strides, rng *r) {
  for (int k = 0; k < p->n; k++) lay(p, k, ndim, shape, strides, r);
}

static void report(const problem *p, const char *what) {
  char text[6000], how[2000] = "";
  DLTensor *t[MOST];
  int n = snprintf(text, sizeof text, "case %" PRId64 ", %s, %s: %s; seed 0x%" PRIx64 "\n", p->number, p->info->name, p->layout,
                   what, test_seed());
  for (int k = 0; k < p->n; k++) {
    char name[16];
    snprintf(name, sizeof name, k < p->n_in ? "in %d%s" : "out%.0d%s", k < p->n_in ? k + 1 : 0, p->is_host[k] ? " (cpu)" : "");
    n += text_operand(text + n, sizeof text - (size_t)n - 2100, name, &p->at[k]);
    t[k] = (DLTensor *)(p->is_host[k] ? &p->at[k].t : &p->on[k].t);
  }
  if (p->on[p->n - 1].memory) quern_op_explain(p->op, p->n_in, t, p->n - p->n_in, t + p->n_in, &p->call, how, sizeof how);
  snprintf(text + n, sizeof text - (size_t)n, "%s", how);
  group_fail("%s", text);
}

/* The call, or, of every other case, a plan and a run of it. */
static quern_status call_there(const problem *p, DLTensor *const *t, int n_out) {
  quern_plan *plan = NULL;
  void *data[MOST];
  if (p->number % 2 == 0) return quern_op_call(p->op, p->n_in, t, n_out, t + p->n_in, &p->call);
  for (int k = 0; k < p->n; k++) data[k] = (char *)t[k]->data + t[k]->byte_offset;
  quern_status status = quern_op_prepare(p->op, p->n_in, t, n_out, t + p->n_in, &p->call, &plan);
  if (status == QUERN_OK) status = quern_plan_run(plan, data, data + p->n_in, NULL);
  quern_plan_release(plan);
  return status;
}

/* Both ways, and what is different. */
static void run(problem *p) {
  DLTensor *host[MOST], *device[MOST];
  char what[800];
  group_count(1);
  if (p->is_in_place) {
    operand *out = &p->at[p->n - 1];
    operand_free(out);
    *out = p->at[0]; /* one memory: freed once */
    out->t.shape = out->shape, out->t.strides = out->strides;
    out->memory = NULL;
  }
  for (int k = 0; k < p->n; k++) {
    if (p->is_in_place && k == p->n - 1) mirror_share(&p->on[k], &p->at[0], &p->on[0]);
    else if (!p->is_host[k]) mirror_make(&p->on[k], &p->at[k], 0);
    host[k] = &p->at[k].t;
    device[k] = p->is_host[k] ? &p->at[k].t : &p->on[k].t;
    if (p->number % 3 == 0 && !p->is_host[k]) {
      p->on[k].t.data = (char *)p->on[k].t.data - 48;
      p->on[k].t.byte_offset = 48;
    }
  }
  const int n_out = p->n - p->n_in;
  const quern_status wanted = quern_op_call(p->op, p->n_in, host, n_out, host + p->n_in, &p->call);
  char why[300];
  snprintf(why, sizeof why, "%s", wanted ? quern_last_error() : "");
  const quern_status got = call_there(p, device, n_out);
  if (got != wanted) { /* parameters may not suit dtypes: neither way then */
    snprintf(what, sizeof what, "%s, %s; on the CPU %s, %s", status_name(got), got ? quern_last_error() : "",
             status_name(wanted), why);
    report(p, what);
  }
  for (int k = 0; k < p->n && got == wanted; k++) {
    char which[840];
    if (p->is_host[k] || p->on[k].is_shared || mirror_same(&p->on[k], what, sizeof what)) continue;
    snprintf(which, sizeof which, "%s %d: %s", k < p->n_in && !p->is_in_place ? "input" : "output", k, what);
    report(p, which);
  }
  for (int k = 0; k < p->n; k++) {
    mirror_free(&p->on[k]);
    operand_free(&p->at[k]);
  }
}

/* ---- Layouts: each makes the step-th problem of its kind and gives 1, or 0 where there is none ---- */

static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 1000, 1003};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

static int contiguous(problem *p, int step, rng *r) {
  if (step >= 3 * N_SIZES) return 0;
  p->unaligned = step < N_SIZES ? 0 : step < 2 * N_SIZES ? 15 : (int)rng_below(r, 15);
  if (step % 2) p->guard = GUARD_BACK, p->unaligned = 0;
  return lay_all(p, 1, &sizes[step % N_SIZES], NULL, r), 1;
}

static int in_place(problem *p, int step, rng *r) {
  if (step >= 5 || p->n_in == 0 || p->d[0] != p->d[p->n - 1]) return 0;
  const int64_t n = sizes[(step * 3 + 2) % N_SIZES], back = -1;
  p->is_in_place = 1;
  p->unaligned = step & 1 ? 15 : 0;
  return lay_all(p, 1, &n, step == 3 ? &back : NULL, r), 1;
}

static int zero_d(problem *p, int step, rng *r) {
  if (step) return 0;
  return lay_all(p, 0, NULL, NULL, r), 1;
}

/* Rows that do not join, with gaps that keep vectors aligned or do not. */
static int rows(problem *p, int step, rng *r) {
  static const int64_t widths[] = {64, 301, 1, 5, 17, 128, 31, 1000};
  if (step >= 8) return 0;
  for (int k = 0; k < p->n; k++) {
    const int64_t gap = step % 2 ? 1 + (int)rng_below(r, 7) : 16;
    const int64_t shape[2] = {step < 4 ? 3 : 40, widths[step]}, strides[2] = {widths[step] + gap, 1};
    lay(p, k, 2, shape, strides, r);
  }
  return 1;
}

static int many_rows(problem *p, int step, rng *r) {
  if (step >= 3) return 0;
  const int64_t n = 16 * step + 80, shape[3] = {3, 5, n}, strides[3] = {7 * (n + 3), n + 3, 1};
  return lay_all(p, 3, shape, strides, r), 1;
}

/* One operand along the last dimension only, along the first only, or one element. */
static int broadcast_of(problem *p, rng *r, int which, int64_t n0, int64_t n1) {
  const int64_t shape[2] = {n0, n1}, row[1] = {n1}, column[2] = {n0, 1}, one[1] = {1};
  const int chosen = p->n_in ? (int)rng_below(r, (uint64_t)p->n_in) : -1;
  for (int k = 0; k < p->n; k++) {
    if (k != chosen) lay(p, k, 2, shape, NULL, r);
    else if (which == 0) lay(p, k, 1, row, NULL, r);
    else if (which == 1) lay(p, k, 2, column, NULL, r);
    else lay(p, k, 1, one, NULL, r);
  }
  return 1;
}
static int row_broadcast(problem *p, int step, rng *r) {
  if (step >= 3 || p->n_in < 2) return 0;
  return broadcast_of(p, r, 0, 7, step == 0 ? 129 : step == 1 ? 64 : 1003);
}
static int column_broadcast(problem *p, int step, rng *r) {
  if (step >= 3 || p->n_in < 2) return 0;
  return broadcast_of(p, r, 1, 9, step == 0 ? 129 : step == 1 ? 64 : 1003);
}
static int scalar_broadcast(problem *p, int step, rng *r) {
  if (step >= 3 || p->n_in < 2) return 0;
  return broadcast_of(p, r, 2, step == 0 ? 1 : 3, step == 1 ? 64 : 333);
}
/* [n, 3] + [3] */
static int periodic(problem *p, int step, rng *r) {
  if (step >= 2 || p->n_in < 2) return 0;
  return broadcast_of(p, r, 0, step ? 700 : 40, 3);
}
/* All inputs are broadcast to the output by strides of 0. */
static int all_broadcast(problem *p, int step, rng *r) {
  if (step >= 2 || p->n_in == 0) return 0;
  const int64_t shape[2] = {6, 90}, zero[2] = {0, 0}, row[2] = {0, 1};
  for (int k = 0; k < p->n; k++) lay(p, k, 2, shape, k >= p->n_in ? NULL : step ? row : zero, r);
  return 1;
}

static int host_scalar(problem *p, int step, rng *r) {
  if (step >= 3 || p->n_in < 2) return 0;
  const int64_t shape[2] = {4, step == 2 ? 100 : 33}, strides[2] = {111, step == 1 ? 3 : 1};
  const int chosen = (int)rng_below(r, (uint64_t)p->n_in);
  for (int k = 0; k < p->n; k++) {
    if (k == chosen) lay(p, k, 0, NULL, NULL, r), p->is_host[k] = 1;
    else lay(p, k, 2, shape, step == 0 ? NULL : strides, r);
  }
  return 1;
}

static int transposed(problem *p, int step, rng *r) {
  static const int64_t shapes[][2] = {{64, 64}, {33, 100}, {100, 33}, {16, 40}, {3, 70}, {257, 31}};
  if (step >= 6 || p->n_in == 0) return 0;
  const int64_t *shape = shapes[step], strides[2] = {1, shape[0] + (step == 1)};
  const int chosen = step == 2 ? -1 : (int)rng_below(r, (uint64_t)p->n_in); /* -1: all inputs */
  for (int k = 0; k < p->n; k++) lay(p, k, 2, shape, k < p->n_in && (chosen < 0 || k == chosen) ? strides : NULL, r);
  return 1;
}

static int transposed_in_batches(problem *p, int step, rng *r) {
  if (step >= 2 || p->n_in == 0) return 0;
  const int64_t shape[3] = {3, 40, 50}, turned[3] = {2200, 1, 44}, outer[3] = {1, 150, 3};
  for (int k = 0; k < p->n; k++) lay(p, k, 3, shape, k ? NULL : step ? outer : turned, r);
  return 1;
}

static int negative(problem *p, int step, rng *r) {
  if (step >= 3) return 0;
  const int64_t shape[2] = {5, 77}, ways[3][2] = {{-77, 1}, {80, -1}, {-160, -2}};
  for (int k = 0; k < p->n; k++) lay(p, k, 2, shape, step == 2 && k == p->n - 1 ? NULL : ways[(step + k) % 3], r);
  return 1;
}

static int strided(problem *p, int step, rng *r) {
  if (step >= 4) return 0;
  const int64_t shape = step == 3 ? 1003 : 90;
  for (int k = 0; k < p->n; k++) {
    const int is_last = k == p->n - 1;
    const int64_t strides[] = {2, is_last ? 1 : 3, is_last ? 5 : 1, 1 + (int64_t)rng_below(r, 3)}, stride = strides[step];
    lay(p, k, 1, &shape, &stride, r);
  }
  return 1;
}

static int permuted(problem *p, int step, rng *r) {
  if (step >= 3) return 0;
  const int64_t shape[5] = {3, 4, 5, 6, 2};
  const int ndim = step == 2 ? 5 : 4;
  for (int k = 0; k < p->n; k++) {
    int64_t strides[5], next = 1;
    int order[5] = {0, 1, 2, 3, 4};
    for (int i = ndim - 1; i > 0; i--) {
      const int j = (int)rng_below(r, (uint64_t)i + 1), kept = order[i];
      order[i] = order[j], order[j] = kept;
    }
    for (int i = 0; i < ndim; i++) {
      strides[order[i]] = rng_below(r, 5) ? next : -next;
      next *= shape[order[i]];
      if (rng_below(r, 3) == 0) next += 3;
    }
    lay(p, k, ndim, shape, strides, r);
  }
  return 1;
}

/* More than a wave; outputs beyond what is streamed, on a GPU. */
static int large(problem *p, int step, rng *r) {
  if (step >= 2) return 0;
  if (step == 0) {
    const int64_t n = is_on_gpu() ? 1200007 : 70003;
    return lay_all(p, 1, &n, NULL, r), 1;
  }
  const int64_t shape[2] = {is_on_gpu() ? 1000 : 130, is_on_gpu() ? 1300 : 257}, strides[2] = {shape[1] + 3, 1};
  return lay_all(p, 2, shape, strides, r), 1;
}

static const struct layout {
  const char *name;
  int (*make)(problem *p, int step, rng *r);
  int is_mixed; /* dtypes at random */
} layouts[] = {
    {"contiguous", contiguous, 0},          {"rows", rows, 0},
    {"host scalar", host_scalar, 0},        {"transposed", transposed, 0},
    {"row broadcast", row_broadcast, 0},    {"strided", strided, 0},
    {"mixed dtypes", contiguous, 1},        {"permuted", permuted, 0},
    {"negative strides", negative, 0},      {"column broadcast", column_broadcast, 0},
    {"large", large, 0},                    {"in place", in_place, 0},
    {"periodic", periodic, 0},              {"many rows", many_rows, 0},
    {"scalar broadcast", scalar_broadcast, 0}, {"mixed rows", rows, 1},
    {"batches transposed", transposed_in_batches, 0}, {"all broadcast", all_broadcast, 0},
    {"mixed transposed", transposed, 1},    {"0-d", zero_d, 0},
    {"mixed permuted", permuted, 1},
};
enum { N_LAYOUTS = sizeof layouts / sizeof layouts[0] };

/* ---- Dtypes and parameters ---- */

static int takes(const quern_arg_info *arg, ref_dtype d) {
  char list[200], word[20];
  snprintf(list, sizeof list, " %s ", arg->dtypes);
  snprintf(word, sizeof word, " %s ", ref_dtype_name(d));
  return strstr(list, word) != NULL;
}

static ref_dtype any_of(const quern_arg_info *arg, rng *r) {
  for (;;) {
    const ref_dtype d = (ref_dtype)rng_below(r, REF_N_DTYPES);
    if (takes(arg, d)) return d;
  }
}

/* Dtypes of all operands, inputs of `main` where they take it; 0: the op takes none such. */
static int choose_dtypes(problem *p, ref_dtype main, int is_mixed, rng *r) {
  quern_shape shapes[MOST];
  DLTensor t[MOST], *in[MOST];
  if (!takes(&p->info->args[0], main) && !(p->n_in > 1 && takes(&p->info->args[1], main))) return 0;
  for (int attempt = 0; attempt < 40; attempt++) {
    for (int k = 0; k < p->n_in; k++) {
      const quern_arg_info *arg = &p->info->args[k];
      p->d[k] = takes(arg, main) && !(is_mixed && (k || p->n_in == 1) && rng_below(r, 4)) ? main : any_of(arg, r);
      t[k] = (DLTensor){.device = {kDLCPU, 0}, .dtype = ref_dtype_dl(p->d[k])};
      in[k] = &t[k];
    }
    /* The op's choice, which a cast leaves to the caller; with mixed dtypes another one. */
    const ref_dtype wish = p->n_in && !is_mixed ? (ref_dtype)rng_below(r, REF_N_DTYPES) : p->n_in ? p->d[0] : main;
    for (int k = 0; k < p->n - p->n_in; k++) shapes[k] = (quern_shape){.size = sizeof shapes[k], .dtype = ref_dtype_dl(wish)};
    if (quern_op_infer(p->op, p->n_in, in, p->n - p->n_in, shapes)) continue;
    for (int k = p->n_in; k < p->n; k++) {
      p->d[k] = ref_dtype_of(shapes[k - p->n_in].dtype);
      if (!is_mixed || !rng_below(r, 2)) continue;
      const ref_dtype wider = any_of(&p->info->args[k], r);
      if (ref_dtype_kind(wider) >= ref_dtype_kind(p->d[k])) p->d[k] = wider;
    }
    return 1;
  }
  return 0;
}

static void choose_params(problem *p, rng *r) {
  static const double values[] = {0.25, -3, 7, 1e30, 0, -0.0, INFINITY, NAN};
  p->call = (quern_call){.size = sizeof p->call};
  if (p->info->n_params == 0 || p->info->n_params > 3) return;
  if (rng_below(r, 4) == 0 && p->info->params[0].value.kind != QUERN_NONE) return;
  for (int k = 0; k < p->info->n_params; k++)
    p->params[k] = rng_below(r, 3) ? scalar_f(values[rng_below(r, 8)]) : scalar_i(rng_range(r, -5, 100));
  p->call.params = p->params;
  p->call.n_params = p->info->n_params;
}

/* ---- All of it ---- */

static quern_op *ops[MOST_OPS];
static int n_ops;
static double end_ms;
static const char *only_layout;
static int64_t most_kernels, shard, n_shards = 1, only = -1, n_cases, n_problems;

/* One op, dtype and layout: every step of the layout, or, in the small form, two. 0: there is no such case. */
static int one_case(int64_t number, int op, ref_dtype main, int layout) {
  static const int small_steps[] = {13, 1, 40, 14, 27, 5, 2, 0, 3, 4};
  int n = 0;
  n_cases++;
  for (int turn = 0; turn < (is_on_gpu() ? 64 : 10); turn++) {
    const int step = is_on_gpu() ? turn : small_steps[(turn + number) % 10];
    problem p = {.op = ops[op], .info = quern_op_describe(ops[op]), .number = number, .layout = layouts[layout].name};
    rng r;
    p.n_in = p.info->n_in;
    p.n = p.n_in + p.info->n_out;
    if (p.n > MOST) return 0;
    rng_seed(&r, (uint64_t)number);
    if (!choose_dtypes(&p, main, layouts[layout].is_mixed, &r)) return 0;
    rng_seed(&r, (uint64_t)number << 8 | (uint64_t)step);
    if (!layouts[layout].make(&p, step, &r)) {
      if (is_on_gpu()) break;
      continue;
    }
    choose_params(&p, &r);
    run(&p);
    n_problems++;
    if (++n >= 3 && !is_on_gpu()) break;
  }
  return n > 0;
}

static int is_over(void) { return now_ms() > end_ms || (is_fake() && !is_on_gpu() && n_kernels_loaded() >= most_kernels); }

/* A seeded round through ops, dtypes and layouts: every op, then every op again with other dtypes and layouts. */
static void small_form(void) {
  rng r;
  rng_seed(&r, 760);
  const int first = (int)rng_below(&r, (uint64_t)n_ops);
  const int part = test_part(10);
  const int64_t begin = only >= 0 ? only : part < 0 ? 0 : part * 40;
  for (int64_t i = begin; i < begin + 400 && !is_over(); i++) {
    const int op = (int)((first + i) % n_ops), layout = (int)((i * 8 + i / N_LAYOUTS) % N_LAYOUTS);
    rng_seed(&r, (uint64_t)i ^ 0x76000000);
    for (int attempt = 0; attempt < 30 && (only < 0 || only == i); attempt++)
      if (one_case(i, op, (ref_dtype)rng_below(&r, REF_N_DTYPES), attempt < 10 ? layout : attempt % N_LAYOUTS)) break;
  }
}

/* Index ops have no inputs to be unlike their output: in each layout that there is without, in some dtype. */
static void index_ops(void) {
  int64_t number = 1000;
  for (int op = 0; op < n_ops; op++) {
    const char *name = quern_op_describe(ops[op])->name;
    if ((strcmp(name, "arange") && strcmp(name, "linspace")) || most_kernels < 10) continue;
    for (int layout = 0; layout < N_LAYOUTS; layout++, number++) {
      const int part = test_part(4);
      if (part >= 0 && (op + layout) % 4 != part && only < 0) continue;
      if (layouts[layout].is_mixed || (only >= 0 && only != number)) continue;
      for (int d = 0; d < REF_N_DTYPES; d++)
        if (one_case(number, op, (ref_dtype)((d + number) % REF_N_DTYPES), layout)) break;
    }
  }
}

/* In an order that meets all ops early, should time be short. */
static void large_form(void) {
  const int64_t n = (int64_t)n_ops * REF_N_DTYPES * N_LAYOUTS;
  int64_t turn = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t number = i * 7919 % n; /* a prime */
    const int layout = (int)(number % N_LAYOUTS), op = (int)(number / N_LAYOUTS / REF_N_DTYPES);
    if (only_layout && strcmp(only_layout, layouts[layout].name)) continue;
    if (turn++ % n_shards != shard || (only >= 0 && only != number) || is_over()) continue;
    one_case(number, op, (ref_dtype)(number / N_LAYOUTS % REF_N_DTYPES), layout);
  }
}

/* Offsets beyond 31 bits: rows that lie a gigabyte apart. Only the rows are looked at. */
static void test_far_rows(void) {
  enum { ROWS = 3, N = 1000, PAD = 64 };
  const int64_t apart = (int64_t)1 << 30, shape[2] = {ROWS, N}, strides[2] = {apart, 1};
  rng r;
  rng_seed(&r, 761);
  quern_op *op = op_named(NULL, "relu");
  static int8_t in[ROWS][N + 2 * PAD], out[ROWS][N + 2 * PAD], got[ROWS][N + 2 * PAD];
  char *device_in = device_allocate((size_t)(ROWS - 1) * (size_t)apart + N + 2 * PAD);
  char *device_out = device_allocate((size_t)(ROWS - 1) * (size_t)apart + N + 2 * PAD);
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < N + 2 * PAD; j++) in[i][j] = (int8_t)rng_u64(&r), out[i][j] = (int8_t)rng_u64(&r);
    device_write(device_in + i * apart, in[i], sizeof in[i]);
    device_write(device_out + i * apart, out[i], sizeof out[i]);
  }
  const DLDataType u8 = ref_dtype_dl(REF_U8);
  int64_t near[2] = {N + 2 * PAD, 1}, sizes_of[2] = {shape[0], shape[1]}, far[2] = {strides[0], strides[1]};
  DLTensor host[2] = {{in, {kDLCPU, 0}, 2, u8, sizes_of, near, PAD}, {out, {kDLCPU, 0}, 2, u8, sizes_of, near, PAD}};
  DLTensor device[2] = {{device_in, {kDLCUDA, 0}, 2, u8, sizes_of, far, PAD},
                        {device_out, {kDLCUDA, 0}, 2, u8, sizes_of, far, PAD}};
  DLTensor *host_in = &host[0], *host_out = &host[1], *in_there = &device[0], *out_there = &device[1];
  if (quern_op_call(op, 1, &host_in, 1, &host_out, NULL)) bail("%s", quern_last_error());
  const quern_status status = quern_op_call(op, 1, &in_there, 1, &out_there, NULL);
  for (int i = 0; i < ROWS; i++) device_read(got[i], device_out + i * apart, sizeof got[i]);
  ok(status == QUERN_OK && memcmp(got, out, sizeof out) == 0, "rows a gigabyte apart%s%s", status ? ": " : "",
     status ? quern_last_error() : "");
  device_free(device_in), device_free(device_out);
  quern_op_release(op);
}

int main(void) {
  const char *text = getenv("QUERN_TEST_SHARD");
  if (text && (sscanf(text, "%" SCNd64 "/%" SCNd64, &shard, &n_shards) != 2 || n_shards < 1))
    bail("QUERN_TEST_SHARD=%s", text);
  only = number_from("QUERN_TEST_CASE", -1);
  only_layout = getenv("QUERN_TEST_LAYOUT");
  most_kernels = number_from("QUERN_TEST_KERNELS", test_part(2) < 0 ? 120 : 36);
  end_ms = now_ms() + 1e3 * (double)number_from("QUERN_TEST_SECONDS", is_on_gpu() ? 300 : 100);
  device_begin();
  const int all = quern_op_count(NULL);
  for (int i = 0; i < all && n_ops < MOST_OPS; i++)
    if (quern_op_at(NULL, i, &ops[n_ops]) == QUERN_OK) {
      const quern_op_info *info = quern_op_describe(ops[n_ops]);
      if (info->op_class == QUERN_CLASS_BASIC && !has_axes(info)) n_ops++; /* others run on the CPU */
      else quern_op_release(ops[n_ops]);
    }
  group_begin("%d ops on CUDA tensors: the bytes of the CPU", n_ops);
  if (is_on_gpu()) large_form();
  else small_form(), index_ops();
  group_end();
  diag("%" PRId64 " cases, %" PRId64 " problems, %d kernels in %.0f s%s", n_cases, n_problems, n_kernels_loaded(),
       (now_ms() - end_ms) / 1e3 + (double)number_from("QUERN_TEST_SECONDS", is_on_gpu() ? 300 : 100),
       now_ms() > end_ms ? ": out of time, the rest was not run" : "");
  if (only < 0 && !only_layout && shard == 0) test_far_rows();
  for (int i = 0; i < n_ops; i++) quern_op_release(ops[i]);
  return done_testing();
}
