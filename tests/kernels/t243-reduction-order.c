/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t243-reduction-order: sums of floats: every count of elements to 1099, then those around chunks and nodes of the tree; the
 * order follows from the shape alone: the same bits in C order, F order and as slices of a larger array; a row's sum is that of
 * its copy, whatever is beside it; callers of one plan at once. */
#include <pthread.h>

#include "reductions.h"

static const ref_dtype dtypes[] = {REF_F32, REF_F64};
enum { N_DTYPES = 2 };

/* Sums that depend on the order, zeros that show what is added to them. */
enum { BINADES, NEGATIVE_ZEROS, ZEROS, N_KINDS };
static const char *const kinds[N_KINDS] = {"16 binades", "all -0", "zeros and the least numbers"};

static uint64_t draw(rng *r, ref_dtype d, int kind) {
  const uint64_t minus = (rng_u64(r) & 1) << (8 * ref_dtype_size(d) - 1);
  if (kind == NEGATIVE_ZEROS) return bits_of(d, -0.0);
  if (kind == ZEROS) return minus | rng_below(r, 2);
  const double x = (1 + rng_unit(r)) * ldexp(1, (int)rng_range(r, -8, 8));
  return bits_of(d, minus ? -x : x);
}

/* n numbers, malloc'd. */
static char *numbers(rng *r, ref_dtype d, int kind, int64_t n) {
  const int size = ref_dtype_size(d);
  char *x = malloc((size_t)(n + 1) * (size_t)size);
  uint64_t bag[997];
  for (int k = 0; k < 997; k++) bag[k] = draw(r, d, kind);
  for (int64_t k = 0; k < n; k++) ref_put(d, x + k * size, n < 5000 ? draw(r, d, kind) : bag[rng_u64(r) % 997]);
  return x;
}

typedef struct view {
  DLTensor t;
  int64_t shape[4], strides[4];
} view;

/* At element `offset` of data. */
static void look(view *v, ref_dtype d, void *data, int64_t offset, int ndim, const int64_t *shape, const int64_t *strides) {
  memset(v, 0, sizeof *v);
  memcpy(v->shape, shape, sizeof *shape * (size_t)ndim);
  if (strides) memcpy(v->strides, strides, sizeof *strides * (size_t)ndim);
  else compact_strides(ndim, shape, v->strides);
  v->t = (DLTensor){data, {kDLCPU, 0}, ndim, ref_dtype_dl(d), v->shape, v->strides, (uint64_t)(offset * ref_dtype_size(d))};
}

/* The sums, in row-major order, into `out`; 0: refused. */
static int sum(int context, view *x, int64_t axes, void *out) {
  quern_op *op = law_ops[LAW_SUM][context];
  int64_t shape[4];
  int ndim = 0;
  for (int k = 0; k < x->t.ndim; k++)
    if (!(axes >> k & 1)) shape[ndim++] = x->shape[k];
  DLTensor y = {.data = out, .device = {kDLCPU, 0}, .ndim = ndim, .dtype = x->t.dtype, .shape = shape};
  DLTensor *in = &x->t, *outs = &y;
  named_params p;
  params_begin(&p);
  if (!params_set(&p, quern_op_describe(op), "axes", whole(axes))) bail("sum has no parameter axes");
  if (!quern_op_call(op, 1, &in, 1, &outs, &p.call)) return 1;
  group_fail("axes %" PRId64 ": %s", axes, quern_last_error());
  return 0;
}

static void compare(ref_dtype d, uint64_t got, uint64_t wanted, const char *what, int64_t n, int kind, int context) {
  char a[64], b[64];
  group_count(1);
  if (got != wanted)
    group_fail("%s %" PRId64 " in %s, %s, %s: got %s, wanted %s; seed 0x%" PRIx64, what, n, ref_dtype_name(d), kinds[kind],
               context_name(context), ref_text(d, got, a), ref_text(d, wanted, b), test_seed());
}

/* n numbers as a vector: contiguous, every other one of twice as many, and from the end. */
static void test_count(rng *r, ref_dtype d, int kind, int64_t n, const int *some, int n_some) {
  const int size = ref_dtype_size(d);
  const int64_t two = 2, minus = -1;
  char *x = numbers(r, d, kind, n), *other = malloc((size_t)(2 * n + 2) * (size_t)size);
  int64_t count;
  view v;
  look(&v, d, x, 0, 1, &n, NULL);
  uint64_t *wanted = law_eval(LAW_SUM, &v.t, 1, 0, d, NULL, &count), got = 0;
  for (int k = 0; k < n_some; k++) {
    look(&v, d, x, 0, 1, &n, NULL);
    if (sum(some[k], &v, 1, &got)) compare(d, got, *wanted, "contiguous", n, kind, some[k]);
  }
  for (int64_t k = 0; k < n; k++) {
    memcpy(other + 2 * k * size, x + k * size, (size_t)size);
    ref_put(d, other + (2 * k + 1) * size, draw(r, d, kind));
  }
  look(&v, d, other, 0, 1, &n, &two);
  if (sum(some[0], &v, 1, &got)) compare(d, got, *wanted, "every other one", n, kind, some[0]);
  for (int64_t k = 0; k < n; k++) memcpy(other + (n - 1 - k) * size, x + k * size, (size_t)size);
  look(&v, d, other, n ? n - 1 : 0, 1, &n, &minus);
  if (sum(some[0], &v, 1, &got)) compare(d, got, *wanted, "from the end", n, kind, some[0]);
  free(wanted);
  free(x);
  free(other);
}

static void test_counts(void) {
  static const int one[] = {0}, all[N_CONTEXTS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  rng r;
  rng_seed(&r, 2411);
  for (int k = 0; k < N_DTYPES; k++) {
    group_begin("%s: every count of elements to 1099", ref_dtype_name(dtypes[k]));
    for (int64_t n = 0; n < 1100; n += SANITIZED ? 17 : 1)
      for (int kind = 0; kind < N_KINDS; kind++) test_count(&r, dtypes[k], kind, n, one, 1);
    group_end();
    group_begin("%s: counts around chunks and nodes, on 1 to 8 threads", ref_dtype_name(dtypes[k]));
    for (int64_t n = 2048; n < (SANITIZED ? 100000 : 3000000); n *= 2)
      for (int64_t more = -1; more <= 1; more++)
        if (n < 100000 || more == n / 262144 % 3 - 1) test_count(&r, dtypes[k], BINADES, n + more, all, N_CONTEXTS);
    test_count(&r, dtypes[k], BINADES, 65536 + 256, all, N_CONTEXTS);
    test_count(&r, dtypes[k], NEGATIVE_ZEROS, 131073, all, N_CONTEXTS);
    test_count(&r, dtypes[k], ZEROS, 200001, all, N_CONTEXTS);
    test_count(&r, dtypes[k], BINADES, SANITIZED ? 300001 : 4500001, all, N_CONTEXTS);
    group_end();
  }
}

/* The same numbers in C order, in F order, and as a slice with steps of a larger array. */
static void test_layouts(void) {
  static const int64_t shapes[][4] = {{3, 5, 1, 7},     {2, 3, 5, 17},    {16, 16, 1, 1},  {15, 17, 2, 1},  {1, 257, 255, 1},
                                      {300, 200, 1, 1}, {4, 300, 1, 50},  {31, 1, 33, 40}, {7, 256, 3, 16}, {1000, 3, 2, 1},
                                      {3, 2, 1000, 5},  {100, 30, 1, 30}, {2, 2, 2, 4097}, {4097, 2, 2, 2}, {64, 64, 64, 1},
                                      {5, 5, 5, 255},   {1, 1, 600, 600}, {1, 1, 1030, 257}, {1, 1, 5000, 100}, {1, 1, 9000, 17}, {1, 1, 130, 2100},
                                      {3, 700, 2, 50}};
  rng r;
  rng_seed(&r, 2412);
  for (int k = 0; k < N_DTYPES; k++) {
    const ref_dtype d = dtypes[k];
    const int size = ref_dtype_size(d);
    group_begin("%s: C order, F order, a slice of a larger array; any axes", ref_dtype_name(d));
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
      const int64_t *shape = shapes[s];
      const int64_t n = shape[0] * shape[1] * shape[2] * shape[3];
      const int64_t f[4] = {1, shape[0], shape[0] * shape[1], shape[0] * shape[1] * shape[2]};
      const int64_t wide = 2 * shape[3] + 3; /* a row of the larger array, which is walked from its last row up */
      const int64_t sliced[4] = {-shape[1] * shape[2] * wide, shape[2] * wide, wide, 2};
      const int64_t first = (shape[0] - 1) * shape[1] * shape[2] * wide + 1;
      char *c_order = numbers(&r, d, BINADES, n), *f_order = malloc((size_t)n * (size_t)size);
      char *larger = numbers(&r, d, BINADES, n / shape[3] * wide + 1);
      view a, b, e;
      look(&a, d, c_order, 0, 4, shape, NULL);
      look(&b, d, f_order, 0, 4, shape, f);
      look(&e, d, larger, first, 4, shape, sliced);
      int64_t index[4] = {0};
      for (int64_t i = 0; i < n; i++, ref_next_index(4, shape, index)) {
        memcpy(ref_address(&b.t, index), c_order + i * size, (size_t)size);
        memcpy(ref_address(&e.t, index), c_order + i * size, (size_t)size);
      }
      for (int axes = 0; axes < 16; axes += SANITIZED ? 3 : 1) {
        int64_t count;
        const int context = (int)rng_below(&r, N_CONTEXTS);
        uint64_t *wanted = law_eval(LAW_SUM, &a.t, (uint64_t)axes, 0, d, NULL, &count);
        char *got = malloc((size_t)(count * size));
        view *const views[] = {&a, &b, &e};
        static const char *const names[] = {"C order", "F order", "a slice"};
        for (int way = 0; way < 3; way++) {
          group_count(1);
          if (!sum(context, views[way], axes, got)) continue;
          for (int64_t i = 0; i < count; i++)
            if (ref_get(d, got + i * size) != wanted[i]) {
              group_fail("[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "], axes 0x%x, %s, %s: element %" PRId64
                         " of %" PRId64,
                         shape[0], shape[1], shape[2], shape[3], axes, names[way], context_name(context), i, count);
              break;
            }
        }
        free(got);
        free(wanted);
      }
      free(c_order);
      free(f_order);
      free(larger);
    }
    group_end();
  }
}

/* All of an array in F order of which the contiguous axis takes several tiles, on 1 to 8 threads. */
static void test_tiles(void) {
  rng r;
  rng_seed(&r, 2414);
  group_begin("f64: F order, tiles of the contiguous axis, on 1 to 8 threads");
  for (int64_t more = 0; more < 3; more++) {
    const int64_t shape[2] = {(SANITIZED ? 1500 : 11000) + more * 77, 256 + more}, f[2] = {1, shape[0]}, n = shape[0] * shape[1];
    char *x = numbers(&r, REF_F64, BINADES, n);
    view v;
    int64_t count;
    look(&v, REF_F64, x, 0, 2, shape, f);
    uint64_t *wanted = law_eval(LAW_SUM, &v.t, 3, 0, REF_F64, NULL, &count), got;
    for (int context = 0; context < N_CONTEXTS; context++) {
      group_count(1);
      if (sum(context, &v, 3, (char *)&got) && got != *wanted) group_fail("[%" PRId64 ", %" PRId64 "], %s", shape[0], shape[1], context_name(context));
    }
    free(wanted);
    free(x);
  }
  group_end();
}

/* sum(x, axis)[i] is sum(x[i].copy()), in C and in F order, of some of the rows and of all. */
static void test_rows(void) {
  static const int64_t lengths[] = {1, 2, 7, 15, 16, 17, 30, 31, 100, 255, 256, 257, 300, 511, 512, 513, 1000, 1024, 1100, 4097};
  static const int64_t heights[] = {1, 2, 3, 5, 8, 15, 16, 17, 33, 64, 200};
  rng r;
  rng_seed(&r, 2413);
  for (int k = 0; k < N_DTYPES; k++) {
    const ref_dtype d = dtypes[k];
    const int size = ref_dtype_size(d);
    group_begin("%s: a row's sum is that of its copy", ref_dtype_name(d));
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
      for (size_t j = 0; j < sizeof heights / sizeof *heights; j++) {
        const int64_t length = lengths[i], height = heights[j], shape[2] = {height, length}, f[2] = {1, height};
        if (length * height > 100000) continue;
        char *x = numbers(&r, d, rng_below(&r, 5) ? BINADES : ZEROS, length * height),
             *y = malloc((size_t)(length * height * size));
        char *got = malloc((size_t)(height * size)), *got_f = malloc((size_t)(height * size)),
             *part = malloc((size_t)(height * size));
        const int context = (int)rng_below(&r, N_CONTEXTS);
        view rows, columns, some, one;
        for (int64_t a = 0; a < height; a++)
          for (int64_t b = 0; b < length; b++) memcpy(y + (b * height + a) * size, x + (a * length + b) * size, (size_t)size);
        look(&rows, d, x, 0, 2, shape, NULL);
        look(&columns, d, y, 0, 2, shape, f);
        const int64_t from = height / 3, fewer[2] = {(height + 1) / 2, length};
        look(&some, d, y, from, 2, fewer, f);
        if (!sum(context, &rows, 2, got) || !sum(context, &columns, 2, got_f) || !sum(context, &some, 2, part)) continue;
        for (int64_t a = 0; a < height; a++) {
          char *copy = malloc((size_t)(length * size));
          uint64_t alone = 0;
          memcpy(copy, x + a * length * size, (size_t)(length * size));
          look(&one, d, copy, 0, 1, &length, NULL);
          group_count(1);
          if (!sum(0, &one, 1, &alone)) break;
          if (ref_get(d, got + a * size) != alone || ref_get(d, got_f + a * size) != alone ||
              (a >= from && a < from + fewer[0] && ref_get(d, part + (a - from) * size) != alone))
            group_fail("[%" PRId64 ", %" PRId64 "], row %" PRId64 ", %s", height, length, a, context_name(context));
          free(copy);
        }
        free(x);
        free(y);
        free(got);
        free(got_f);
        free(part);
      }
    group_end();
  }
}

/* Callers at once, each on several threads, of one plan, with data of their own. */
enum { CALLERS = 4 };
static quern_plan *shared_plan;
typedef struct caller {
  char *x, *got;
  const uint64_t *wanted;
  int64_t n;
  int n_bad;
} caller;

static void *call_on(void *arg) {
  caller *c = arg;
  for (int i = 0; i < (SANITIZED ? 5 : 50); i++) {
    void *in = c->x, *out = c->got;
    c->n_bad += quern_plan_run(shared_plan, &in, &out, NULL) != QUERN_OK;
    for (int64_t k = 0; k < c->n; k++) c->n_bad += ref_get(REF_F32, c->got + 4 * k) != c->wanted[k];
  }
  return NULL;
}

static void test_callers(void) {
  static const struct {
    int64_t shape[2], axes;
  } cases[] = {{{1, 120001}, 3}, {{300, 400}, 2}, {{400, 300}, 1}};
  rng r;
  rng_seed(&r, 2414);
  group_begin("one plan, several callers at once");
  for (int k = 0; k < 3; k++) {
    caller callers[CALLERS];
    pthread_t threads[CALLERS];
    view in;
    int64_t count, n = cases[k].shape[0] * cases[k].shape[1],
                   n_out = cases[k].axes == 3 ? 0 : cases[k].shape[cases[k].axes == 2 ? 0 : 1];
    for (int c = 0; c < CALLERS; c++) {
      callers[c] = (caller){.x = numbers(&r, REF_F32, BINADES, n)};
      look(&in, REF_F32, callers[c].x, 0, 2, cases[k].shape, NULL);
      callers[c].wanted = law_eval(LAW_SUM, &in.t, (uint64_t)cases[k].axes, 0, REF_F32, NULL, &count);
      callers[c].got = malloc((size_t)count * 4);
      callers[c].n = count;
    }
    DLTensor out = {callers[0].got, {kDLCPU, 0}, cases[k].axes == 3 ? 0 : 1, ref_dtype_dl(REF_F32), &n_out, NULL, 0};
    DLTensor *ins = &in.t, *outs = &out;
    named_params p;
    params_begin(&p);
    params_set(&p, quern_op_describe(law_ops[LAW_SUM][3]), "axes", whole(cases[k].axes));
    if (quern_op_prepare(law_ops[LAW_SUM][3], 1, &ins, 1, &outs, &p.call, &shared_plan)) bail("%s", quern_last_error());
    for (int c = 0; c < CALLERS; c++) pthread_create(&threads[c], NULL, call_on, &callers[c]);
    for (int c = 0; c < CALLERS; c++) {
      pthread_join(threads[c], NULL);
      group_count(1);
      if (callers[c].n_bad) group_fail("case %d, caller %d: %d bad", k, c, callers[c].n_bad);
      free(callers[c].x);
      free(callers[c].got);
      free((void *)callers[c].wanted);
    }
    quern_plan_release(shared_plan);
  }
  group_end();
}

int main(void) {
  setenv("QUERN_CACHE_DIR", "none", 1);
  make_contexts();
  if (!law_ops[LAW_SUM][0]) skip_all("no op sum yet");
  test_counts();
  test_layouts();
  test_tiles();
  test_rows();
  test_callers();
  ok(n_host_slices > 0, "hosts ran %" PRId64 " slices", n_host_slices);
  release_contexts();
  return done_testing();
}
