/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t309-scan-derivatives: the derivatives of scans against their sums written plainly, term by term in the widest float, of any shape, axis,
 * layout, dtype and number of threads, with include_initial, exclusive and reverse, at zeros; against differences; in place; what is
 * refused. */
#include "reductions.h"

typedef enum scan { SUM, PROD, LOGSUMEXP, MAX, MIN, N_SCANS } scan;
static const char *const names[N_SCANS] = {"cumulative_sum", "cumulative_prod", "logcumsumexp", "cummax", "cummin"};
static quern_op *forward[N_SCANS][N_CONTEXTS], *backward[N_SCANS][N_CONTEXTS];
static int has_scan[N_SCANS];

/* The derivative by element j of n, of g[i] times result i; y, places: the results. */
static long double slope(scan op, int64_t n, int64_t j, const double *x, const double *g, const double *y, const int64_t *places, long double *scale) {
  long double sum = 0, product = 1;
  *scale = 0;
  for (int64_t k = 0; k < j && op == PROD; k++) product *= (long double)x[k];
  for (int64_t i = j; i < n; i++) {
    long double term = (long double)g[i];
    if (op == PROD) {
      if (i > j) product *= (long double)x[i];
      term *= product;
    }
    if (op == LOGSUMEXP) term *= expl((long double)x[j] - (long double)y[i]);
    if (op >= MAX && places[i] != j) term = 0;
    sum += term;
    *scale += fabsl(term);
  }
  return sum;
}

typedef struct derivative_case {
  scan op;
  ref_dtype d;
  int ndim, axis, initial, exclusive, reverse, context, in_place;
  int64_t shape[4];
} derivative_case;

static double number_at(const DLTensor *t, ref_dtype d, const int64_t *index) { return (double)ref_value(d, ref_get(d, ref_address(t, index))); }

/* Along the axis at one index of the others. */
static int line_is_right(const derivative_case *c, const DLTensor *x, const DLTensor *g, const DLTensor *y, const DLTensor *places,
                         const DLTensor *got, int64_t *index) {
  const int64_t n = c->shape[c->axis], m = n + c->initial, e = c->exclusive && n ? n - 1 : n, s = c->initial || c->exclusive;
  double *const at = malloc((size_t)(4 * (n + 1)) * sizeof *at), *const gs = at + n + 1, *const ys = gs + n + 1, *const made = ys + n + 1;
  int64_t *const found = malloc((size_t)(n + 1) * sizeof *found);
  const double u = c->d == REF_F64 ? 0x1p-52 : c->d == REF_F32 ? 0x1p-23 : c->d == REF_F16 ? 0x1p-10 : 0x1p-7;
  const double least = c->d == REF_F64 ? 0x1p-1070 : c->d == REF_F16 ? 0x1p-24 : 0x1p-130;
  int fine = 1;
  for (int64_t j = 0; j < n; j++) {
    index[c->axis] = c->reverse ? n - 1 - j : j;
    at[j] = number_at(x, c->d, index);
    made[j] = number_at(got, c->d, index);
  }
  for (int64_t i = 0; i < e; i++) {
    index[c->axis] = c->reverse ? m - 1 - (i + s) : i + s;
    gs[i] = number_at(g, c->d, index);
    ys[i] = number_at(y, c->d, index);
    if (c->op < MAX) continue;
    const int64_t place = (int64_t)ref_get(REF_I64, ref_address(places, index));
    found[i] = c->reverse ? n - 1 - place : place;
  }
  for (int64_t j = 0; j < n && fine; j++) {
    long double scale = 0;
    const long double wanted = j < e ? slope(c->op, e, j, at, gs, ys, found, &scale) : 0;
    const double room = c->op == LOGSUMEXP ? 64 : c->op == PROD && (c->d == REF_F64) ? (double)(2 * n + 8) : 40;
    fine = fabsl((long double)made[j] - wanted) <= (long double)u * room * scale + (long double)least;
    if (!fine) diag("element %lld: %.17Lg, got %.17g", (long long)j, wanted, made[j]);
  }
  index[c->axis] = 0;
  free(at);
  free(found);
  return fine;
}

/* Numbers with products that neither vanish nor grow fast; `zeros`: some are 0. */
static void put_numbers(operand *o, scan op, int zeros, rng *r) {
  int64_t index[QUERN_MAX_NDIM + 1] = {0};
  if (ref_n_elements(&o->t) == 0) return;
  do {
    double x = op == PROD ? (rng_below(r, 2) ? -1 : 1) * (0.5 + 1.2 * rng_unit(r)) : 4 * rng_unit(r) - 2;
    if (zeros && rng_below(r, 9) == 0) x = rng_below(r, 2) ? 0.0 : -0.0;
    ref_put(o->d, ref_address(&o->t, index), ref_from_double(o->d, x));
  } while (ref_next_index(o->t.ndim, o->t.shape, index));
}

static void set_scan_params(named_params *p, const quern_op_info *info, const derivative_case *c) {
  params_begin(p);
  params_set(p, info, "axes", whole((int64_t)1 << c->axis));
  params_set(p, info, "include_initial", whole(c->initial));
  params_set(p, info, "exclusive", whole(c->exclusive));
  params_set(p, info, "reverse", whole(c->reverse));
}

static int run_case(const derivative_case *c, int zeros, rng *r) {
  quern_op *const op = forward[c->op][c->context], *const back = backward[c->op][c->context];
  const quern_op_info *info = quern_op_describe(back);
  operand x, g, y, places, got;
  int64_t shape[4];
  memcpy(shape, c->shape, sizeof shape);
  shape[c->axis] += c->initial;
  operand_lay_out(&x, c->d, c->ndim, c->shape, 0, r);
  operand_lay_out(&g, c->d, c->ndim, shape, c->in_place, r);
  operand_lay_out(&y, c->d, c->ndim, shape, 1, r);
  operand_lay_out(&places, REF_I64, c->ndim, shape, 1, r);
  operand_lay_out(&got, c->d, c->ndim, c->shape, 1, r);
  put_numbers(&x, c->op, zeros, r);
  put_numbers(&g, LOGSUMEXP, 0, r);
  named_params p;
  set_scan_params(&p, quern_op_describe(op), c);
  const int n_out = 1 + (c->op >= MAX);
  DLTensor *ins = &x.t, *outs[2] = {&y.t, &places.t};
  quern_status status = quern_op_call(op, 1, &ins, n_out, outs, &p.call);
  operand grads; /* what is read of g, where the result takes its place */
  operand_describe(&grads, c->d, c->ndim, shape, NULL);
  operand_allocate(&grads, 0, GUARD_NONE);
  int64_t index[QUERN_MAX_NDIM + 1] = {0};
  if (ref_n_elements(&g.t))
    do ref_put(c->d, ref_address(&grads.t, index), ref_get(c->d, ref_address(&g.t, index)));
    while (ref_next_index(c->ndim, shape, index));
  set_scan_params(&p, info, c);
  DLTensor *given[3] = {&g.t, c->op >= MAX ? &places.t : &x.t, &y.t}, *result = c->in_place ? &g.t : &got.t;
  quern_shape measured = {.size = sizeof measured};
  if (!status) status = quern_op_measure(back, info->n_in, given, 1, &measured, &p.call);
  int fine = !status && measured.ndim == c->ndim && memcmp(measured.shape, c->shape, (size_t)c->ndim * sizeof shape[0]) == 0;
  if (!status) status = quern_op_call(back, info->n_in, given, 1, &result, &p.call);
  fine &= status == QUERN_OK;
  int64_t others[4] = {0}, extents[4];
  int n = 0, where[4];
  for (int d = 0; d < c->ndim; d++)
    if (d != c->axis) where[n] = d, extents[n++] = c->shape[d];
  if (ref_n_elements(&got.t))
    do {
      for (int k = 0; k < n; k++) index[where[k]] = others[k];
      fine = fine && line_is_right(c, &x.t, &grads.t, &y.t, &places.t, result, index);
    } while (fine && ref_next_index(n, extents, others));
  if (!fine)
    group_fail("%s %s [%lld, %lld, %lld, %lld] of %d, axis %d, initial %d, exclusive %d, reverse %d, in place %d, %s: %s", names[c->op],
               ref_dtype_name(c->d), (long long)c->shape[0], (long long)c->shape[1], (long long)c->shape[2], (long long)c->shape[3], c->ndim,
               c->axis, c->initial, c->exclusive, c->reverse, c->in_place, context_name(c->context), status ? quern_last_error() : "other numbers");
  operand_free(&x);
  operand_free(&g);
  operand_free(&grads);
  operand_free(&y);
  operand_free(&places);
  operand_free(&got);
  return fine;
}

static void test_random(scan op) {
  static const int64_t extents[] = {0, 1, 2, 3, 5, 15, 16, 17, 33, 64, 255, 256, 257, 300, 400, 513};
  static const ref_dtype floats[] = {REF_F64, REF_F64, REF_F32, REF_F16, REF_BF16};
  rng r;
  rng_seed(&r, 3090 + (unsigned)op);
  group_begin("%s_backward: any shape, axis, layout, dtype, threads", names[op]);
  for (int i = 0; i < 100; i++) {
    derivative_case c = {.op = op, .shape = {1, 1, 1, 1}, .d = floats[rng_below(&r, 5)]};
    int64_t n = 1;
    const int is_narrow = c.d == REF_F16 || c.d == REF_BF16;
    c.ndim = 1 + (int)rng_below(&r, 4);
    c.axis = (int)rng_below(&r, (uint64_t)c.ndim);
    for (int k = 0; k < c.ndim; k++) {
      c.shape[k] = extents[k == c.axis ? rng_below(&r, is_narrow && op == PROD ? 6 : 16) : 1 + rng_below(&r, 9)];
      if (n * c.shape[k] > 4000) c.shape[k] = 2;
      n *= c.shape[k];
    }
    const int shift = (int)rng_below(&r, 5);
    c.initial = shift == 0;
    c.exclusive = shift == 1;
    c.reverse = rng_below(&r, 3) == 0;
    c.context = (int)rng_below(&r, N_CONTEXTS);
    c.in_place = !c.initial && !c.exclusive && rng_below(&r, 4) == 0;
    group_count(1);
    run_case(&c, rng_below(&r, 3) == 0 && op != LOGSUMEXP, &r);
  }
  derivative_case c = {.op = op, .ndim = 1, .shape = {3000, 1, 1, 1}, .d = REF_F64}; /* several chunks */
  group_count(1);
  run_case(&c, 0, &r);
  group_end();
}

/* grad times the results, in f64. */
static double total(quern_op *op, int64_t n, double *x, const double *g, const quern_call *call) {
  double y[64], sum = 0;
  int64_t places[64];
  DLTensor in = {.data = x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 64, 1}, .shape = &n}, out = in, found = in;
  DLTensor *ins = &in, *outs[2] = {&out, &found};
  out.data = y;
  found.data = places;
  found.dtype.code = kDLInt;
  if (quern_op_call(op, 1, &ins, quern_op_describe(op)->n_out, outs, call)) bail("%s", quern_last_error());
  for (int64_t k = 0; k < n; k++) sum += g[k] * y[k];
  return sum;
}

static void test_differences(scan op) {
  rng r;
  rng_seed(&r, 3099 + (unsigned)op);
  int64_t n = 40;
  for (int turn = 0; turn < 4; turn++) {
    double x[64], g[64], y[64], got[64], worst = 0;
    int64_t places[64];
    const derivative_case c = {.op = op, .exclusive = turn & 1, .reverse = turn >> 1};
    named_params p;
    for (int64_t k = 0; k < n; k++) x[k] = op == PROD ? 0.6 + 0.8 * rng_unit(&r) : 2 * rng_unit(&r), g[k] = 2 * rng_unit(&r) - 1;
    if (op == PROD) x[7] = x[21] = 0;
    set_scan_params(&p, quern_op_describe(forward[op][0]), &c);
    total(forward[op][0], n, x, g, &p.call);
    DLTensor t[4] = {{.data = g, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 64, 1}, .shape = &n}};
    t[1] = t[2] = t[3] = t[0];
    t[1].data = x;
    t[2].data = y;
    t[3].data = got;
    DLTensor *ins = &t[1], found = t[0], *outs[2] = {&t[2], &found}, *to = &t[3];
    found.data = places;
    found.dtype.code = kDLInt;
    if (quern_op_call(forward[op][0], 1, &ins, 1 + (op >= MAX), outs, &p.call)) bail("%s", quern_last_error());
    DLTensor *given[3] = {&t[0], op >= MAX ? &found : &t[1], &t[2]};
    if (quern_op_call(backward[op][0], quern_op_describe(backward[op][0])->n_in, given, 1, &to, &p.call)) bail("%s", quern_last_error());
    for (int64_t k = 0; k < n; k++) {
      const double was = x[k], h = 0x1p-20;
      x[k] = was + h;
      const double above = total(forward[op][0], n, x, g, &p.call);
      x[k] = was - h;
      const double below = total(forward[op][0], n, x, g, &p.call), error = fabs((above - below) / (2 * h) - got[k]);
      x[k] = was;
      if (error > worst) worst = error;
    }
    ok(worst < 1e-7, "%s_backward is the slope of differences%s%s: %.2g off at most", names[op], turn & 1 ? ", exclusive" : "", turn >> 1 ? ", reverse" : "", worst);
  }
}

static void test_special(void) {
  static const struct {
    scan op;
    double x[4], g[4], wanted[4];
  } rows[] = {
      {PROD, {2, 0, 3, 5}, {1, 1, 1, 1}, {1, 38, 0, 0}},
      {PROD, {0, 0, 3, 5}, {1, 1, 1, 1}, {1, 0, 0, 0}},
      {PROD, {1e200, 1e-200, 1e200, 1e-200}, {0, 0, 0, 1}, {1e-200, 1e200, 1e-200, 1e200}},
      {LOGSUMEXP, {-INFINITY, -INFINITY, 0, -INFINITY}, {1, 1, 1, 1}, {0, 0, 2, 0}},
      {LOGSUMEXP, {1000, -1000, 1000, -1000}, {1, 1, 0, 0}, {2, 0, 0, 0}},
      {MAX, {1, NAN, 3, NAN}, {1, 2, 4, INFINITY}, {1, INFINITY, 0, 0}},
      {MAX, {2, 2, INFINITY, 1}, {1, 2, INFINITY, 4}, {3, 0, INFINITY, 0}},
      {MIN, {0.0, -0.0, -1, 5}, {1, 2, 3, 4}, {3, 0, 7, 0}},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    const int64_t n = 4;
    double y[4], got[4];
    int64_t places[4];
    DLTensor t[5] = {{.data = (void *)(uintptr_t)rows[k].x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 64, 1}, .shape = (int64_t *)(uintptr_t)&n}};
    t[1] = t[2] = t[3] = t[4] = t[0];
    t[1].data = (void *)(uintptr_t)rows[k].g;
    t[2].data = y;
    t[3].data = places;
    t[3].dtype.code = kDLInt;
    t[4].data = got;
    const scan op = rows[k].op;
    if (!has_scan[op]) continue;
    DLTensor *ins = &t[0], *outs[2] = {&t[2], &t[3]}, *given[3] = {&t[1], op >= MAX ? &t[3] : &t[0], &t[2]}, *to = &t[4];
    quern_status status = quern_op_call(forward[op][0], 1, &ins, 1 + (op >= MAX), outs, NULL);
    if (!status) status = quern_op_call(backward[op][0], quern_op_describe(backward[op][0])->n_in, given, 1, &to, NULL);
    int fine = status == QUERN_OK;
    for (int i = 0; i < 4; i++) fine &= got[i] == rows[k].wanted[i];
    ok(fine, "%s_backward of {%g, %g, %g, %g}: %g %g %g %g", names[op], rows[k].x[0], rows[k].x[1], rows[k].x[2], rows[k].x[3], got[0], got[1],
       got[2], got[3]);
  }
}

static void test_refused(void) {
  rng r;
  rng_seed(&r, 3098);
  const int64_t shape[2] = {6, 7}, longer[2] = {7, 7}, none[2] = {0, 7};
  quern_op *op = backward[PROD][0];
  const quern_op_info *info = quern_op_describe(op);
  ok(info->op_class == QUERN_CLASS_REDUCTION && strcmp(quern_op_describe(forward[PROD][0])->backward, info->name) == 0, "its class, its name");
  operand g, x, y, z, i;
  operand_make(&g, REF_F64, 2, shape, NULL, &r);
  operand_make(&x, REF_F64, 2, shape, NULL, &r);
  operand_make(&y, REF_F64, 2, shape, NULL, &r);
  operand_make(&z, REF_F64, 2, shape, NULL, &r);
  operand_make(&i, REF_F64, 2, longer, NULL, &r);
  DLTensor *given[3] = {&g.t, &x.t, &y.t}, *to = &z.t;
  derivative_case c = {.op = PROD, .axis = 0};
  named_params p;
  is_int(quern_op_call(op, 3, given, 1, &to, NULL), QUERN_E_ARGUMENT, "all axes of two dimensions: %s", quern_last_error());
  c.initial = 1;
  set_scan_params(&p, info, &c);
  is_int(quern_op_call(op, 3, given, 1, &to, &p.call), QUERN_E_SHAPE, "include_initial, but the elements are as many: %s", quern_last_error());
  given[0] = given[2] = &i.t;
  is_int(quern_op_call(op, 3, given, 1, &to, &p.call), QUERN_OK, "  one more");
  to = &x.t;
  is_int(quern_op_call(op, 3, given, 1, &to, &p.call), QUERN_E_OVERLAP, "  in place: %s", quern_last_error());
  c.initial = 0;
  set_scan_params(&p, info, &c);
  given[0] = &g.t, given[2] = &y.t, to = &y.t;
  is_int(quern_op_call(op, 3, given, 1, &to, &p.call), QUERN_E_OVERLAP, "over the products: %s", quern_last_error());
  quern_plan *plan = NULL;
  to = &z.t;
  is_int(quern_op_prepare(op, 3, given, 1, &to, &p.call, &plan), QUERN_E_UNSUPPORTED, "a plan: %s", quern_last_error());
  c.exclusive = 1, c.initial = 1;
  set_scan_params(&p, info, &c);
  is_int(quern_op_call(op, 3, given, 1, &to, &p.call), QUERN_E_ARGUMENT, "both shifts: %s", quern_last_error());
  operand e;
  operand_make(&e, REF_F64, 2, none, NULL, &r);
  DLTensor *of_none = &e.t;
  c.exclusive = 0;
  set_scan_params(&p, info, &c);
  to = &e.t;
  is_int(quern_op_call(backward[SUM][0], 1, &of_none, 1, &to, &p.call), QUERN_E_SHAPE, "include_initial of nothing: %s", quern_last_error());
  char text[2000];
  c.initial = 0;
  set_scan_params(&p, info, &c);
  to = &z.t;
  ok(quern_op_explain(op, 3, given, 1, &to, &p.call, text, sizeof text) == QUERN_OK && strstr(text, "tier: built"), "explained");
  operand_free(&g);
  operand_free(&x);
  operand_free(&y);
  operand_free(&z);
  operand_free(&i);
  operand_free(&e);
}

int main(void) {
  make_contexts();
  for (int op = 0; op < N_SCANS; op++)
    for (int c = 0; c < N_CONTEXTS; c++) {
      char name[64];
      snprintf(name, sizeof name, "%s_backward", names[op]);
      const int is_missing = quern_op_find(contexts[c], names[op], &forward[op][c]) || quern_op_find(contexts[c], name, &backward[op][c]);
      if (is_missing && !is_subset()) bail("%s", quern_last_error());
      has_scan[op] = !is_missing;
    }
  for (int op = 0; op < N_SCANS; op++) {
    if (!has_scan[op]) {
      skip(1, "this build has some ops only, and no %s_backward", names[op]);
      continue;
    }
    test_random((scan)op);
    test_differences((scan)op);
  }
  test_special();
  if (has_scan[PROD] && has_scan[SUM]) test_refused();
  for (int op = 0; op < N_SCANS; op++)
    for (int c = 0; c < N_CONTEXTS; c++) {
      quern_op_release(forward[op][c]);
      quern_op_release(backward[op][c]);
    }
  release_contexts();
  return done_testing();
}
