/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t246-scans: scans along an axis, bit by bit against the law written plainly: segments of 16, chunks of 256, spans of 65536, the nearest
 * carry first, logcumsumexp by the op logaddexp; the places of the largest and the smallest; any layout, dtype and number of threads; include_initial, exclusive, reverse; called, planned and in place; what is
 * refused. */
#include "reductions.h"

/* An accumulator: of floats a float or a double, of integers 64 bits. */
typedef union number {
  float f32;
  double f64;
  uint64_t u64;
} number_t;

typedef enum scan { SUM, PROD, MAX, MIN, MAX_FOUND, MIN_FOUND, N_SCANS } scan;
static const char *const names[N_SCANS] = {"cumulative_sum", "cumulative_prod", "cumulative_max", "cumulative_min", "cummax", "cummin"};
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

static int has_places(scan op) { return op >= MAX_FOUND; }
/* The scan of its values. */
static scan values_of(scan op) { return op == MAX_FOUND ? MAX : op == MIN_FOUND ? MIN : op; }

/* Whether an element is found behind one that was. */
static int is_found(scan op, how h, number_t was, number_t x) {
  if (h == F32) return (isnan(x.f32) && !isnan(was.f32)) || (op == MAX_FOUND ? x.f32 > was.f32 : x.f32 < was.f32);
  if (h == F64) return (isnan(x.f64) && !isnan(was.f64)) || (op == MAX_FOUND ? x.f64 > was.f64 : x.f64 < was.f64);
  const int is_above = h == SIGNED ? (int64_t)x.u64 > (int64_t)was.u64 : x.u64 > was.u64;
  return op == MAX_FOUND ? is_above : !is_above && x.u64 != was.u64;
}

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
  const DLTensor *places; /* of the values, or NULL */
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
  law(values_of(c->op), h, scanned, x, y);
  int64_t found = 0;
  for (int64_t k = 0; k < extent; k++) {
    index[c->axis] = c->reverse ? extent - 1 - k : k;
    const int is_shifted = c->initial || c->exclusive, is_before = is_shifted && k == 0;
    const uint64_t wanted = is_before ? initial_bits(values_of(c->op), result) : stored(result, h, y[k - is_shifted]);
    if (ref_get(result, ref_address(out, index)) != wanted) return 0;
    if (!c->places) continue;
    if (!is_before && is_found(c->op, h, x[found], x[k - is_shifted])) found = k - is_shifted;
    const int64_t place = is_before ? -1 : c->reverse ? n - 1 - found : found;
    if (ref_get(REF_I64, ref_address(c->places, index)) != (uint64_t)place) return 0;
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
  operand in, out, places;
  int64_t shape[4];
  memcpy(shape, c->shape, sizeof shape);
  shape[c->axis] += c->initial;
  int64_t n = 1;
  for (int d = 0; d < c->ndim; d++) n *= shape[d];
  operand_lay_out(&in, c->d, c->ndim, c->shape, c->form == 2, r);
  operand_fill(&in, r);
  if (rng_below(r, 3)) tame(&in, r);
  operand_lay_out(&out, result, c->ndim, shape, 1, r);
  operand_lay_out(&places, REF_I64, c->ndim, shape, 1, r);
  const int32_t n_out = 1 + has_places(c->op);
  c->places = n_out > 1 ? &places.t : NULL;
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
  DLTensor *ins = &in.t, *outs[2] = {c->form == 2 ? &in.t : &out.t, &places.t};
  quern_shape measured[2] = {{.size = sizeof measured[0]}, {.size = sizeof measured[0]}};
  quern_status status = quern_op_measure(ops[c->op][c->context], 1, &ins, n_out, measured, &p.call);
  int fine = status == QUERN_OK;
  for (int k = 0; k < n_out && fine; k++)
    fine = measured[k].ndim == c->ndim && memcmp(measured[k].shape, shape, (size_t)c->ndim * sizeof shape[0]) == 0;
  if (c->form == 1) {
    quern_plan *plan = NULL;
    status = quern_op_prepare(ops[c->op][c->context], 1, &ins, n_out, outs, &p.call, &plan);
    void *const from[1] = {(char *)ins->data + ins->byte_offset};
    void *const to[2] = {(char *)outs[0]->data + outs[0]->byte_offset, (char *)outs[1]->data + outs[1]->byte_offset};
    if (!status) status = quern_plan_run(plan, from, to, NULL);
    quern_plan_release(plan);
  } else {
    status = quern_op_call(ops[c->op][c->context], 1, &ins, n_out, outs, &p.call);
  }
  fine = fine && status == QUERN_OK && (n == 0 || is_right(c, &copy.t, outs[0]));
  if (!fine)
    group_fail("%s %s [%lld, %lld, %lld, %lld] of %d, axis %d, initial %d, exclusive %d, reverse %d, form %d, %s: %s", names[c->op],
               ref_dtype_name(c->d), (long long)c->shape[0], (long long)c->shape[1], (long long)c->shape[2], (long long)c->shape[3], c->ndim,
               c->axis, c->initial, c->exclusive, c->reverse, c->form, context_name(c->context), status ? quern_last_error() : "other bits");
  operand_free(&in);
  operand_free(&out);
  operand_free(&places);
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
  DLTensor none = x.t, result = out.t, *in_none = &none, *to_none = &result;
  none.ndim = result.ndim = 0;
  is_int(quern_op_call(op, 1, &in_none, 1, &to_none, NULL), QUERN_E_ARGUMENT, "no dimension");
  ok(strstr(quern_last_error(), "without dimensions has no axis") != NULL, "  says so: %s", quern_last_error());
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

/* Descriptors and parameters that are wrong, or odd: refused with a sentence, or right; nothing beyond the operands is touched. */
static void test_hostile(scan op) {
  rng r;
  rng_seed(&r, 2468);
  const quern_op_info *info = quern_op_describe(ops[op][0]);
  const int64_t shape[2] = {6, 7}, none[2] = {0, 7}, still[2] = {0, 1};
  const int32_t n_out = 1 + has_places(op);
  operand x, out, places;
  named_params p;
  operand_make(&x, REF_I64, 2, shape, NULL, &r);
  operand_make(&out, REF_I64, 2, shape, NULL, &r);
  operand_make(&places, REF_I64, 2, shape, NULL, &r);
  DLTensor *ins = &x.t, *outs[2] = {&out.t, &places.t};
  static const struct {
    quern_scalar axes;
    const char *said;
  } wrong[] = {{{.kind = QUERN_I64, .v.i = -2}, "-2"},          {{.kind = QUERN_I64, .v.i = 0}, "none"},
               {{.kind = QUERN_I64, .v.i = INT64_MIN}, "63"},   {{.kind = QUERN_I64, .v.i = 3}, "two"},
               {{.kind = QUERN_F64, .v.f = {NAN, 0}}, "NaN"},   {{.kind = QUERN_F64, .v.f = {1e300, 0}}, "1e300"},
               {{.kind = QUERN_F64, .v.f = {0.5, 0}}, "0.5"},   {{.kind = 77}, "no kind of number"},
               {{.kind = QUERN_U64, .v.u = UINT64_MAX - 1}, "2^64 - 2"}};
  operand_save(&out);
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    params_begin(&p);
    params_set(&p, info, "axes", wrong[k].axes);
    ok(quern_op_call(ops[op][0], 1, &ins, n_out, outs, &p.call) != QUERN_OK && operand_same(&out), "%s: axes %s: %s", names[op], wrong[k].said,
       quern_last_error());
  }
  params_begin(&p);
  params_set(&p, info, "axes", whole(1));
  void *const data = out.t.data;
  out.t.data = x.t.data;
  out.t.byte_offset += 8;
  is_int(quern_op_call(ops[op][0], 1, &ins, n_out, outs, &p.call), QUERN_E_OVERLAP, "%s: an output one item behind the input", names[op]);
  out.t.byte_offset -= 8;
  out.t.data = NULL;
  is_int(quern_op_call(ops[op][0], 1, &ins, n_out, outs, &p.call), QUERN_E_ARGUMENT, "  data that is NULL");
  out.t.data = data;
  out.t.strides = (int64_t *)still;
  is_int(quern_op_call(ops[op][0], 1, &ins, n_out, outs, &p.call), QUERN_E_OVERLAP, "  rows of the output over one another");
  out.t.strides = out.strides;
  if (n_out > 1) {
    DLTensor *twice[2] = {&out.t, &out.t};
    is_int(quern_op_call(ops[op][0], 1, &ins, 2, twice, &p.call), QUERN_E_OVERLAP, "  both outputs at one place");
    params_set(&p, info, "exclusive", whole(1));
    is_int(quern_op_call(ops[op][0], 1, &ins, 2, twice, &p.call), QUERN_E_OVERLAP, "  also shifted");
    params_set(&p, info, "exclusive", whole(0));
    DLTensor *over[2] = {&out.t, &x.t}; /* places over the elements */
    scan_case c = {.op = op, .d = REF_I64, .ndim = 2, .axis = 0, .shape = {6, 7}, .places = &places.t};
    operand copy;
    operand_make(&copy, REF_I64, 2, shape, NULL, &r);
    tame(&x, &r);
    int64_t index[QUERN_MAX_NDIM + 1] = {0};
    do ref_put(REF_I64, ref_address(&copy.t, index), ref_get(REF_I64, ref_address(&x.t, index)));
    while (ref_next_index(2, shape, index));
    is_int(quern_op_call(ops[op][0], 1, &ins, 2, over, &p.call), QUERN_OK, "  places over the elements");
    c.places = &x.t;
    ok(is_right(&c, &copy.t, &out.t), "    are right");
    operand_free(&copy);
  }
  /* No elements: data may be NULL. */
  DLTensor empty = x.t, results[2] = {out.t, places.t}, *at[2] = {&results[0], &results[1]}, *from = &empty;
  empty.shape = results[0].shape = results[1].shape = (int64_t *)none;
  empty.data = results[0].data = results[1].data = NULL;
  empty.strides = results[0].strides = results[1].strides = NULL;
  is_int(quern_op_call(ops[op][0], 1, &from, n_out, at, &p.call), QUERN_OK, "  no elements, nowhere");
  /* 32 dimensions, of which the last is scanned; another one has stride 0. */
  int64_t many[32], strides[32];
  for (int k = 0; k < 32; k++) many[k] = k < 31 ? 1 : 5, strides[k] = k == 31 ? -1 : 0;
  int64_t forth[5] = {1, 2, 3, 4, 5}, made[5], where[5];
  DLTensor wide = {.data = forth + 4, .device = {kDLCPU, 0}, .ndim = 32, .dtype = {kDLInt, 64, 1}, .shape = many, .strides = strides};
  DLTensor to[2] = {wide, wide}, *tos[2] = {&to[0], &to[1]}, *wides = &wide;
  to[0].data = made, to[1].data = where;
  to[0].strides = to[1].strides = NULL;
  params_begin(&p);
  params_set(&p, info, "axes", whole((int64_t)1 << 31));
  static const int64_t right[N_SCANS][5] = {{5, 9, 12, 14, 15}, {5, 20, 60, 120, 120}, {5, 5, 5, 5, 5}, {5, 4, 3, 2, 1}, {5, 5, 5, 5, 5}, {5, 4, 3, 2, 1}};
  is_int(quern_op_call(ops[op][0], 1, &wides, n_out, tos, &p.call), QUERN_OK, "  32 dimensions");
  ok(memcmp(made, right[op], sizeof made) == 0, "    are right");
  operand_free(&x);
  operand_free(&out);
  operand_free(&places);
}

/* Of integers and bool, an op that computes in floats has floats: the smallest that hold all of them. */
static void test_integers(void) {
  static const ref_dtype dtypes[3][2] = {{REF_BOOL, REF_F32}, {REF_U8, REF_F32}, {REF_I32, REF_F64}};
  quern_op *op = NULL;
  if (quern_op_find(contexts[0], "logcumsumexp", &op)) {
    skip(1, "this build has no logcumsumexp");
    return;
  }
  for (int k = 0; k < 3; k++) {
    uint64_t of[4] = {0}, numbers[4] = {0}, made[2][4] = {{0}};
    int64_t n = 3;
    DLTensor x = {.data = of, .device = {kDLCPU, 0}, .ndim = 1, .dtype = ref_dtype_dl(dtypes[k][0]), .shape = &n}, as_float = x, y = x, z;
    as_float.data = numbers, y.data = made[0];
    as_float.dtype = y.dtype = ref_dtype_dl(dtypes[k][1]);
    z = y, z.data = made[1];
    for (int i = 0; i < 3; i++) {
      const double value = dtypes[k][0] == REF_BOOL ? i % 2 : i;
      ref_put(dtypes[k][0], (char *)of + i * ref_dtype_size(dtypes[k][0]), ref_from_double(dtypes[k][0], value));
      ref_put(dtypes[k][1], (char *)numbers + i * ref_dtype_size(dtypes[k][1]), ref_from_double(dtypes[k][1], value));
    }
    DLTensor *in = &x, *out = &y;
    quern_shape shape = {.size = sizeof shape};
    quern_status status = quern_op_measure(op, 1, &in, 1, &shape, NULL);
    if (!status) status = quern_op_call(op, 1, &in, 1, &out, NULL);
    in = &as_float, out = &z;
    if (!status) status = quern_op_call(op, 1, &in, 1, &out, NULL);
    ok(!status && shape.dtype.code == kDLFloat && shape.dtype.bits == y.dtype.bits && memcmp(made[0], made[1], sizeof made[0]) == 0,
       "logcumsumexp of %s has %s, the bits of the same numbers in it: %s", ref_dtype_name(dtypes[k][0]), ref_dtype_name(dtypes[k][1]),
       status ? quern_last_error() : "fine");
  }
  quern_op_release(op);
}

/* ---- A combination that kernels run in vectors ---- */

typedef struct heavy_case {
  ref_dtype d, of; /* of: what it is computed in */
  int64_t n, lines;
  int axis, context;
} heavy_case;

/* to = a combined with b, of c->lines lines, by the op that the scan combines with. */
static quern_status heavy_combined(const heavy_case *c, quern_op *op, void *a, void *b, void *to) {
  int64_t n = c->lines;
  DLTensor x = {.data = a, .device = {kDLCPU, 0}, .ndim = 1, .dtype = ref_dtype_dl(c->of), .shape = &n}, y = x, z = x;
  DLTensor *ins[2] = {&x, &y}, *out = &z;
  y.data = b, z.data = to;
  return quern_op_call(op, 2, ins, 1, &out, NULL);
}

/* As law, of the lines x, [n][lines], each row in place of an element. */
static quern_status heavy_law(const heavy_case *c, quern_op *op, char *x) {
  const size_t row = (size_t)c->lines * (size_t)ref_dtype_size(c->of);
  char *const carries = calloc(4, row), *const run = carries, *const of_segment = run + row, *const of_chunk = of_segment + row, *const of_span = of_chunk + row;
  quern_status status = QUERN_OK;
  for (int64_t k = 0; k < c->n && !status; k++, x += row) {
    if (k % 16) status = heavy_combined(c, op, run, x, x);
    memcpy(run, x, row);
    if (k % 256 >= 16 && !status) status = heavy_combined(c, op, of_segment, x, x);
    if (k % 16 == 15) memcpy(of_segment, x, row);
    if (k % 65536 >= 256 && !status) status = heavy_combined(c, op, of_chunk, x, x);
    if (k % 256 == 255) memcpy(of_chunk, x, row);
    if (k >= 65536 && !status) status = heavy_combined(c, op, of_span, x, x);
    if (k % 65536 == 65535) memcpy(of_span, x, row);
  }
  free(carries);
  return status;
}

/* The item of element k of a line. */
static int64_t heavy_at(const heavy_case *c, int64_t line, int64_t k) { return c->axis ? line * c->n + k : k * c->lines + line; }

static int heavy_is_right(const heavy_case *c, quern_op *scan, quern_op *combine, rng *r) {
  const int64_t size = ref_dtype_size(c->d), wide = ref_dtype_size(c->of);
  int64_t shape[2] = {c->axis ? c->lines : c->n, c->axis ? c->n : c->lines};
  char *const x = calloc((size_t)(c->n * c->lines), (size_t)(size + wide)), *const wanted = x + c->n * c->lines * size;
  for (int64_t line = 0; line < c->lines; line++)
    for (int64_t k = 0; k < c->n; k++) {
      const uint64_t odd = rng_below(r, (uint64_t)c->n);
      const double value = odd == 0 && line % 4 == 1 ? NAN : odd == 1 && line % 4 == 2 ? INFINITY : odd < 9 && line % 4 == 3 ? -INFINITY : 16 * rng_unit(r) - 8;
      const uint64_t bits = value != value ? ref_nan(c->d) : ref_from_double(c->d, value);
      ref_put(c->d, x + heavy_at(c, line, k) * size, bits);
      ref_put(c->of, wanted + (k * c->lines + line) * wide, value != value ? ref_nan(c->of) : ref_cast(c->of, ref_value(c->d, bits), REF_KIND_FLOAT));
    }
  DLTensor in = {.data = x, .device = {kDLCPU, 0}, .ndim = 2, .dtype = ref_dtype_dl(c->d), .shape = shape}, *place = &in;
  named_params p;
  params_begin(&p);
  params_set(&p, quern_op_describe(scan), "axes", whole(1 << c->axis));
  int fine = heavy_law(c, combine, wanted) == QUERN_OK && quern_op_call(scan, 1, &place, 1, &place, &p.call) == QUERN_OK;
  for (int64_t line = 0; line < c->lines && fine; line++)
    for (int64_t k = 0; k < c->n && fine; k++) {
      const uint64_t bits = ref_get(c->of, wanted + (k * c->lines + line) * wide);
      const ref_real value = ref_value(c->of, bits);
      fine = ref_get(c->d, x + heavy_at(c, line, k) * size) == (value != value ? ref_nan(c->d) : ref_cast(c->d, value, REF_KIND_FLOAT));
    }
  free(x);
  return fine;
}

static void test_heavy(void) {
  static const int64_t shapes[][3] = {{66100, 1, 1}, {300, 5, 1}, {20, 37, 1}, {5, 70, 1}, {1000, 2, 1}, {16, 40, 1}, {700, 3, 0}, {600, 20, 0}, {40, 530, 0}};
  static const ref_dtype dtypes[3][2] = {{REF_F32, REF_F32}, {REF_F64, REF_F64}, {REF_F16, REF_F32}};
  rng r;
  rng_seed(&r, 2470);
  quern_op *known = NULL;
  if (quern_op_find(contexts[0], "logaddexp", &known)) {
    skip(1, "this build has no logaddexp");
    return;
  }
  quern_op_release(known);
  group_begin("logcumsumexp, in place: the law by logaddexp");
  for (int context = 0; context < N_CONTEXTS; context += 4) {
    quern_op *scan = NULL, *combine = NULL;
    if (quern_op_find(contexts[context], "logcumsumexp", &scan) || quern_op_find(contexts[context], "logaddexp", &combine)) bail("no logcumsumexp");
    for (int k = 0; k < 27; k++) {
      const int64_t *shape = shapes[k / 3];
      const heavy_case c = {dtypes[k % 3][0], dtypes[k % 3][1], shape[0], shape[1], (int)shape[2], context};
      group_count(1);
      if (!heavy_is_right(&c, scan, combine, &r))
        group_fail("%s, %lld lines of %lld, axis %d, %s", ref_dtype_name(c.d), (long long)c.lines, (long long)c.n, c.axis, context_name(context));
    }
    quern_op_release(scan);
    quern_op_release(combine);
  }
  group_end();
}

int main(void) {
  setenv("QUERN_CACHE_DIR", "none", 1);
  make_contexts();
  for (int op = 0; op < N_SCANS; op++)
    for (int c = 0; c < N_CONTEXTS; c++)
      if (quern_op_find(contexts[c], names[op], &ops[op][c])) ops[op][c] = NULL; /* a build of some ops */
  for (int op = 0; op < N_SCANS; op++) {
    if (ops[op][0]) test_random((scan)op), test_hostile((scan)op);
    else skip(1, "this build has no op %s", names[op]);
  }
  if (ops[SUM][0]) test_refused();
  else skip(1, "this build has no op %s", names[SUM]);
  test_integers();
  test_heavy();
  release_contexts();
  return done_testing();
}
