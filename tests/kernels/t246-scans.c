/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t246-scans: scans along an axis, bit by bit against the law written plainly: segments of 16, chunks of 256, spans of 65536, the nearest
 * carry first; any layout, dtype and number of threads; include_initial, exclusive, reverse; called, planned and in place; what is
 * refused. */
#include "reductions.h"

/* An accumulator: of floats a float or a double, of integers 64 bits. */
typedef union number {
  float f32;
  double f64;
  uint64_t u64;
} number_t;

typedef enum scan { SUM, PROD, MAX, MIN, N_SCANS } scan;
static const char *const names[N_SCANS] = {"cumulative_sum", "cumulative_prod", "cumulative_max", "cumulative_min"};
static quern_op *ops[N_SCANS][N_CONTEXTS];

typedef enum how { F32, F64, SIGNED, UNSIGNED } how;

static how how_of(ref_dtype d) {
  if (ref_dtype_kind(d) == REF_KIND_FLOAT) return d == REF_F64 ? F64 : F32;
  return ref_dtype_name(d)[0] == 'u' ? UNSIGNED : SIGNED;
}

static number_t loaded(ref_dtype d, how h, uint64_t bits) {
  const ref_real value = ref_value(d, bits);
  number_t x = {.u64 = 0};
  if (h == F32) x.f32 = (float)value;
  else if (h == F64) x.f64 = (double)value;
  else x.u64 = h == SIGNED ? (uint64_t)(int64_t)value : (uint64_t)value;
  return x;
}

#define EXTREME(a, b, is_max) \
  (isnan(a) || isnan(b) ? NAN : (a) == (b) ? ((signbit(a) != 0) == is_max ? (b) : (a)) : ((a) > (b)) == is_max ? (a) : (b))

static number_t combined(scan op, how h, number_t a, number_t b) {
  number_t y = {.u64 = 0};
  if (h == F32)
    y.f32 = op == SUM ? a.f32 + b.f32 : op == PROD ? a.f32 * b.f32 : (float)EXTREME(a.f32, b.f32, (op == MAX));
  else if (h == F64)
    y.f64 = op == SUM ? a.f64 + b.f64 : op == PROD ? a.f64 * b.f64 : EXTREME(a.f64, b.f64, (op == MAX));
  else if (op <= PROD)
    y.u64 = op == SUM ? a.u64 + b.u64 : a.u64 * b.u64;
  else
    y = (h == SIGNED ? (int64_t)a.u64 > (int64_t)b.u64 : a.u64 > b.u64) == (op == MAX) ? a : b;
  return y;
}

static uint64_t stored(ref_dtype d, how h, number_t x) {
  if (h == F32 || h == F64) {
    const ref_real value = h == F32 ? (ref_real)x.f32 : (ref_real)x.f64;
    return value != value ? ref_nan(d) : ref_cast(d, value, REF_KIND_FLOAT);
  }
  return ref_cast(d, h == SIGNED ? (ref_real)(int64_t)x.u64 : (ref_real)x.u64, REF_KIND_INTEGER);
}

/* x: n numbers in the order of the scan; y: the inclusive scan. */
static void law(scan op, how h, int64_t n, const number_t *x, number_t *y) {
  number_t run = {.u64 = 0}, of_segment = run, of_chunk = run, of_span = run;
  for (int64_t k = 0; k < n; k++) {
    run = k % 16 ? combined(op, h, run, x[k]) : x[k];
    const number_t v1 = k % 256 >= 16 ? combined(op, h, of_segment, run) : run;
    const number_t v2 = k % 65536 >= 256 ? combined(op, h, of_chunk, v1) : v1;
    y[k] = k >= 65536 ? combined(op, h, of_span, v2) : v2;
    if (k % 16 == 15) of_segment = v1;
    if (k % 256 == 255) of_chunk = v2;
    if (k % 65536 == 65535) of_span = y[k];
  }
}

static uint64_t initial_bits(scan op, ref_dtype d) {
  static const double values[N_SCANS] = {0, 1, -INFINITY, INFINITY};
  if (op <= PROD || ref_dtype_kind(d) == REF_KIND_FLOAT) return ref_from_double(d, values[op]);
  const int bits = 8 * ref_dtype_size(d), is_signed = how_of(d) == SIGNED;
  const uint64_t all = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1, top = (uint64_t)1 << (bits - 1);
  return op == MAX ? is_signed ? top : 0 : is_signed ? top - 1 : all;
}

static ref_dtype result_of(scan op, ref_dtype d) {
  if (op > PROD || ref_dtype_kind(d) == REF_KIND_FLOAT) return d;
  return how_of(d) == UNSIGNED ? REF_U64 : REF_I64;
}

typedef struct scan_case {
  scan op;
  ref_dtype d;
  int ndim, axis, initial, exclusive, reverse, form, context; /* form: 0 called, 1 planned, 2 in place */
  int64_t shape[4];
} scan_case;

/* Along the axis at one index of the others: whether out has what the law says. */
static int line_is_right(const scan_case *c, const DLTensor *in, const DLTensor *out, int64_t *index, number_t *x, number_t *y) {
  const int64_t n = c->shape[c->axis], extent = out->shape[c->axis], scanned = c->exclusive && n ? n - 1 : n;
  const how h = how_of(c->d);
  const ref_dtype result = result_of(c->op, c->d);
  for (int64_t k = 0; k < n; k++) {
    index[c->axis] = c->reverse ? n - 1 - k : k;
    x[k] = loaded(c->d, h, ref_get(c->d, ref_address(in, index)));
  }
  law(c->op, h, scanned, x, y);
  for (int64_t k = 0; k < extent; k++) {
    index[c->axis] = c->reverse ? extent - 1 - k : k;
    const int is_shifted = c->initial || c->exclusive;
    const uint64_t wanted = is_shifted && k == 0 ? initial_bits(c->op, result) : stored(result, h, y[k - is_shifted]);
    if (ref_get(result, ref_address(out, index)) != wanted) return 0;
  }
  index[c->axis] = 0;
  return 1;
}

static int is_right(const scan_case *c, const DLTensor *in, const DLTensor *out) {
  int64_t index[QUERN_MAX_NDIM + 1] = {0}, others[4], extents[4];
  number_t *x = malloc((size_t)(c->shape[c->axis] + 1) * 2 * sizeof *x);
  int fine = 1, n = 0, where[4];
  for (int d = 0; d < c->ndim; d++)
    if (d != c->axis) where[n] = d, extents[n++] = c->shape[d];
  memset(others, 0, sizeof others);
  do {
    for (int k = 0; k < n; k++) index[where[k]] = others[k];
    fine = line_is_right(c, in, out, index, x, x + c->shape[c->axis] + 1);
  } while (fine && ref_next_index(n, extents, others));
  free(x);
  return fine;
}

static void tame(operand *o, rng *r) {
  int64_t index[QUERN_MAX_NDIM + 1] = {0};
  if (ref_n_elements(&o->t) == 0) return;
  do ref_put(o->d, ref_address(&o->t, index), ref_from_double(o->d, ref_dtype_kind(o->d) == REF_KIND_FLOAT ? 2 * rng_unit(r) - 1 : (double)rng_below(r, 90)));
  while (ref_next_index(o->t.ndim, o->t.shape, index));
}

/* Runs a case. Returns 0 after a failure. */
static int run_case(scan_case *c, rng *r) {
  const quern_op_info *info = quern_op_describe(ops[c->op][c->context]);
  const ref_dtype result = result_of(c->op, c->d);
  operand in, out;
  int64_t shape[4];
  memcpy(shape, c->shape, sizeof shape);
  shape[c->axis] += c->initial;
  int64_t n = 1;
  for (int d = 0; d < c->ndim; d++) n *= shape[d];
  operand_lay_out(&in, c->d, c->ndim, c->shape, c->form == 2, r);
  operand_fill(&in, r);
  if (rng_below(r, 3)) tame(&in, r);
  operand_lay_out(&out, result, c->ndim, shape, 1, r);
  named_params p;
  params_begin(&p);
  params_set(&p, info, "axes", whole((int64_t)1 << c->axis));
  params_set(&p, info, "include_initial", whole(c->initial));
  params_set(&p, info, "exclusive", whole(c->exclusive));
  params_set(&p, info, "reverse", whole(c->reverse));
  operand copy;
  operand_describe(&copy, c->d, c->ndim, c->shape, NULL);
  operand_allocate(&copy, 0, GUARD_NONE);
  int64_t index[QUERN_MAX_NDIM + 1] = {0};
  if (ref_n_elements(&in.t))
    do ref_put(c->d, ref_address(&copy.t, index), ref_get(c->d, ref_address(&in.t, index)));
    while (ref_next_index(c->ndim, c->shape, index));
  DLTensor *ins = &in.t, *outs = c->form == 2 ? &in.t : &out.t;
  quern_shape measured = {.size = sizeof measured};
  quern_status status = quern_op_measure(ops[c->op][c->context], 1, &ins, 1, &measured, &p.call);
  int fine = status == QUERN_OK && measured.ndim == c->ndim && memcmp(measured.shape, shape, (size_t)c->ndim * sizeof shape[0]) == 0;
  if (c->form == 1) {
    quern_plan *plan = NULL;
    status = quern_op_prepare(ops[c->op][c->context], 1, &ins, 1, &outs, &p.call, &plan);
    void *const from[1] = {(char *)ins->data + ins->byte_offset}, *const to[1] = {(char *)outs->data + outs->byte_offset};
    if (!status) status = quern_plan_run(plan, from, to, NULL);
    quern_plan_release(plan);
  } else {
    status = quern_op_call(ops[c->op][c->context], 1, &ins, 1, &outs, &p.call);
  }
  fine = fine && status == QUERN_OK && (n == 0 || is_right(c, &copy.t, outs));
  if (!fine)
    group_fail("%s %s [%lld, %lld, %lld, %lld] of %d, axis %d, initial %d, exclusive %d, reverse %d, form %d, %s: %s", names[c->op],
               ref_dtype_name(c->d), (long long)c->shape[0], (long long)c->shape[1], (long long)c->shape[2], (long long)c->shape[3], c->ndim,
               c->axis, c->initial, c->exclusive, c->reverse, c->form, context_name(c->context), status ? quern_last_error() : "other bits");
  operand_free(&in);
  operand_free(&out);
  operand_free(&copy);
  return fine;
}

static void test_random(scan op) {
  static const int64_t extents[] = {0, 1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 64, 255, 256, 257, 300, 513, 1000};
  rng r;
  rng_seed(&r, 2460 + (unsigned)op);
  group_begin("%s: any shape, axis, layout, dtype, threads", names[op]);
  for (int i = 0; i < 350; i++) {
    scan_case c = {.op = op, .shape = {1, 1, 1, 1}};
    int64_t n = 1;
    do c.d = (ref_dtype)rng_below(&r, REF_N_DTYPES);
    while (op > PROD && c.d == REF_BOOL);
    c.ndim = 1 + (int)rng_below(&r, 4);
    c.axis = (int)rng_below(&r, (uint64_t)c.ndim);
    for (int k = 0; k < c.ndim; k++) {
      c.shape[k] = extents[k == c.axis ? rng_below(&r, 18) : 1 + rng_below(&r, 9)];
      if (n * c.shape[k] > 20000) c.shape[k] = 2;
      n *= c.shape[k];
    }
    if (c.ndim == 1 && rng_below(&r, 8) == 0) c.shape[0] = 65530 + (int64_t)rng_below(&r, 80000);
    const int shift = (int)rng_below(&r, 5);
    c.initial = shift == 0;
    c.exclusive = shift == 1;
    c.reverse = rng_below(&r, 3) == 0;
    c.context = (int)rng_below(&r, N_CONTEXTS);
    c.form = c.initial || c.exclusive ? 0 : (int)rng_below(&r, result_of(op, c.d) == c.d ? 3 : 2);
    group_count(1);
    run_case(&c, &r);
  }
  group_end();
}

static void test_refused(void) {
  rng r;
  rng_seed(&r, 2469);
  quern_op *op = ops[SUM][0];
  const quern_op_info *info = quern_op_describe(op);
  const int64_t shape[2] = {6, 7};
  operand x, out;
  named_params p;
  operand_make(&x, REF_F32, 2, shape, NULL, &r);
  operand_make(&out, REF_F32, 2, shape, NULL, &r);
  DLTensor *ins = &x.t, *outs = &out.t;
  is_int(quern_op_call(op, 1, &ins, 1, &outs, NULL), QUERN_E_ARGUMENT, "all axes of two dimensions: %s", quern_last_error());
  static const struct {
    const char *name, *other;
  } wrong[] = {{"axes", NULL}, {"reverse", NULL}, {"include_initial", "exclusive"}};
  for (int k = 0; k < 3; k++) {
    params_begin(&p);
    params_set(&p, info, "axes", whole(k ? 1 : 4));
    if (k) params_set(&p, info, wrong[k].name, whole(k == 1 ? 2 : 1));
    if (wrong[k].other) params_set(&p, info, wrong[k].other, whole(1));
    is_int(quern_op_call(op, 1, &ins, 1, &outs, &p.call), QUERN_E_ARGUMENT, "%s: %s", wrong[k].name, quern_last_error());
  }
  params_begin(&p);
  params_set(&p, info, "axes", whole(1));
  params_set(&p, info, "include_initial", whole(1));
  is_int(quern_op_call(op, 1, &ins, 1, &outs, &p.call), QUERN_E_SHAPE, "an output without room for the initial result");
  params_begin(&p);
  params_set(&p, info, "axes", whole(1));
  params_set(&p, info, "exclusive", whole(1));
  outs = &x.t;
  is_int(quern_op_call(op, 1, &ins, 1, &outs, &p.call), QUERN_E_OVERLAP, "shifted in place: %s", quern_last_error());
  operand_free(&x);
  operand_free(&out);
}

int main(void) {
  setenv("QUERN_CACHE_DIR", "none", 1);
  make_contexts();
  for (int op = 0; op < N_SCANS; op++)
    for (int c = 0; c < N_CONTEXTS; c++)
      if (quern_op_find(contexts[c], names[op], &ops[op][c])) ops[op][c] = NULL; /* a build of some ops */
  for (int op = 0; op < N_SCANS; op++) {
    if (ops[op][0]) test_random((scan)op);
    else skip(1, "this build has no op %s", names[op]);
  }
  if (ops[SUM][0]) test_refused();
  else skip(1, "this build has no op %s", names[SUM]);
  release_contexts();
  return done_testing();
}
