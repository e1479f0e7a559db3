/* SPDX-License-Identifier: Apache-2.0
 *
 * t206-index: ops with elements that follow from their places: arange and linspace, in every dtype and layout, called and
 * planned, on one thread and several, against integers modulo 2^64, libc's fma and 113 bits; what is refused. */
#include <float.h>

#include "tensors.h"

enum { ARANGE, LINSPACE, N_WHICH };
static const char *const names[N_WHICH] = {"arange", "linspace"};
static quern_op *ops[N_WHICH];

/* One call. */
typedef struct problem {
  int which, n_params;
  quern_scalar param[3];
  operand out;
  const char *note;
} problem;

static quern_scalar whole(int64_t x) { return (quern_scalar){.kind = QUERN_I64, .v.i = x}; }
static quern_scalar real(double x) { return (quern_scalar){.kind = QUERN_F64, .v.f = {x, 0}}; }
static double as_double(quern_scalar s) {
  return s.kind == QUERN_F64 ? s.v.f[0] : s.kind == QUERN_U64 ? (double)s.v.u : (double)s.v.i;
}
static uint64_t as_bits(quern_scalar s) {
  if (s.kind != QUERN_F64) return s.v.u;
  return s.v.f[0] >= 0x1p63 ? (uint64_t)s.v.f[0] : (uint64_t)(int64_t)s.v.f[0];
}

static ref_real magnitude(ref_real x) { return x < 0 ? -x : x; }

/* Whether element i of `count` may be `got`; else what is wanted. */
static int is_right(const problem *p, int64_t i, int64_t count, uint64_t got, uint64_t *wanted) {
  const ref_dtype d = p->out.d;
  if (p->which == ARANGE && ref_dtype_kind(d) == REF_KIND_INTEGER) {
    uint64_t exact = as_bits(p->param[0]) + (uint64_t)i * as_bits(p->param[1]);
    *wanted = exact << (64 - 8 * ref_dtype_size(d)) >> (64 - 8 * ref_dtype_size(d));
    return got == *wanted;
  }
  const double start = as_double(p->param[0]), second = as_double(p->param[1]);
  if (p->which == ARANGE) {
    *wanted = ref_from_double(d, fma((double)i, second, start));
    return got == *wanted;
  }
  const int has_end = as_double(p->param[2]) != 0;
  const int64_t last = has_end ? count - 1 : count;
  if (i == 0 || i == last) {
    *wanted = ref_from_double(d, i == 0 ? start : second);
    return got == *wanted;
  }
  if (!isfinite(start) || !isfinite(second)) { /* then nothing is promised between the ends */
    *wanted = got;
    return 1;
  }
  const ref_real exact = ((ref_real)start * (ref_real)(last - i) + (ref_real)second * (ref_real)i) / (ref_real)last;
  const double largest = fmax(fabs(start), fabs(second));
  ref_real bound = 0.501 * ref_ulp(d, exact) + (ref_real)largest * 0x1p-103;
  if (d != REF_F64) bound += ref_ulp(REF_F64, exact);                             /* rounded twice, */
  if (magnitude(exact) < (ref_real)DBL_MIN) bound += magnitude(exact) * 0x1p-53; /* as what is subnormal is */
  *wanted = ref_cast(d, exact, REF_KIND_FLOAT);
  return got == *wanted || magnitude(ref_value(d, got) - exact) <= bound;
}

static void say(problem *p, const char *what) {
  char text[1500], how[1000] = "";
  DLTensor *out = &p->out.t;
  const quern_call call = {.size = sizeof call, .params = p->param, .n_params = p->n_params};
  int n = snprintf(text, sizeof text, "%s(%.17g, %.17g, %g): %s; %s, seed 0x%" PRIx64 "\n", names[p->which],
                   as_double(p->param[0]), as_double(p->param[1]), as_double(p->param[2]), what, p->note, test_seed());
  text_operand(text + n, 300, "out", &p->out);
  quern_op_explain(ops[p->which], 0, NULL, 1, &out, &call, how, sizeof how);
  group_fail("%s%s", text, how);
}

static quern_status run(problem *p, int planned) {
  DLTensor *out = &p->out.t;
  const quern_call call = {.size = sizeof call, .params = p->param, .n_params = p->n_params};
  if (!planned) return quern_op_call(ops[p->which], 0, NULL, 1, &out, &call);
  quern_plan *plan;
  void *data = (char *)p->out.t.data + p->out.t.byte_offset;
  /* prepared with other parameters, without data */
  out->data = planned == 1 ? out->data : NULL;
  const uint64_t offset = out->byte_offset;
  if (!out->data) out->byte_offset = 0;
  quern_status status = quern_op_prepare(ops[p->which], 0, NULL, 1, &out, planned == 1 ? &call : NULL, &plan);
  out->byte_offset = offset;
  out->data = (char *)data - offset;
  if (status) return status;
  status = quern_plan_run(plan, NULL, &data, planned == 1 ? NULL : &call);
  quern_plan_release(plan);
  return status;
}

/* Runs it, and looks at every element, and at every byte beside them. */
static void check(problem *p, int planned) {
  char what[300], got_text[64], wanted_text[64];
  int64_t index[QUERN_MAX_NDIM + 1] = {0}, i = 0, n_bad = 0;
  const int64_t count = ref_n_elements(&p->out.t);
  operand_save(&p->out);
  p->note = planned ? "planned" : "called";
  group_count(1);
  const quern_status status = run(p, planned);
  if (status) {
    snprintf(what, sizeof what, "status %s: %s", status_name(status), quern_last_error());
    say(p, what);
    return;
  }
  for (; i < count; i++) {
    const int is_looked_at = p->which == ARANGE || count < 500000 || i < 5000 || i % 7 == 0; /* 113 bits are slow */
    uint64_t wanted, got = ref_get(p->out.d, ref_address(&p->out.t, index));
    if (is_looked_at && !is_right(p, i, count, got, &wanted) && n_bad++ == 0)
      snprintf(what, sizeof what, "element %" PRId64 " of %" PRId64 ": got %s, wanted %s", i, count,
               ref_text(p->out.d, got, got_text), ref_text(p->out.d, wanted, wanted_text));
    ref_next_index(p->out.t.ndim, p->out.shape, index);
  }
  if (n_bad) say(p, what);
  operand_forgive(&p->out);
  if (!operand_same(&p->out)) say(p, "bytes outside the output's elements were written");
}

/* Parameters: tame ones, and those at the ends of what there is. */
static void draw(problem *p, rng *r) {
  static const double hard[] = {0,        -0.0,    1,         -1,         0.1,    1e16,  DBL_MAX, -DBL_MAX,
                                0x1p1023, DBL_MIN, 0x1p-1074, -0x1p-1070, 1e-300, 65504, 3};
  static const int64_t harder[] = {0, 1, -1, INT64_MAX, INT64_MIN, 255, -129, (int64_t)1 << 40, 12345678901};
  const int is_integer = ref_dtype_kind(p->out.d) == REF_KIND_INTEGER;
  p->n_params = p->which == ARANGE ? 2 : 3;
  for (int k = 0; k < 2; k++) {
    const uint64_t kind = rng_below(r, 4);
    if (is_integer)
      p->param[k] = whole(kind == 0 ? harder[rng_below(r, 9)] : kind == 1 ? (int64_t)rng_u64(r) : rng_range(r, -100, 100));
    else if (kind == 0)
      p->param[k] = real(hard[rng_below(r, sizeof hard / sizeof *hard)]);
    else
      p->param[k] = kind == 1 ? whole(rng_range(r, -9, 9)) : real((rng_unit(r) - 0.5) * ldexp(1, (int)rng_range(r, -20, 20)));
  }
  p->param[2] = whole((int64_t)rng_below(r, 2));
}

/* Of some n elements: dimensions in any order, with gaps or without, walked up or down. */
static void lay_out(operand *o, ref_dtype d, int64_t n, rng *r) {
  int64_t shape[5], strides[5], step = 1;
  int order[5], ndim = (int)rng_below(r, 6);
  for (int k = 0; k < ndim; k++) {
    int64_t most = n < 2 ? 2 : n, extent = most;
    if (k < ndim - 1) extent = 1 + (int64_t)rng_below(r, k ? 5 : (uint64_t)(most < 40 ? most : 40));
    shape[k] = extent;
    n = n / extent ? n / extent : 1;
    order[k] = k;
  }
  if (ndim && rng_below(r, 20) == 0) shape[rng_below(r, (uint64_t)ndim)] = 0;
  for (int k = ndim - 1; k > 0; k--) {
    const int at = (int)rng_below(r, (uint64_t)k + 1), was = order[k];
    order[k] = order[at];
    order[at] = was;
  }
  const int is_gapped = rng_below(r, 3) == 0, is_ordered = rng_below(r, 3) == 0;
  for (int k = ndim - 1; k >= 0; k--) {
    const int at = is_ordered ? k : order[k];
    if (is_gapped && rng_below(r, 2)) step = step * 2 + 1;
    strides[at] = rng_below(r, 5) == 0 ? -step : step;
    step *= shape[at] ? shape[at] : 1;
  }
  operand_describe(o, d, ndim, shape, strides);
  operand_allocate(o, ref_dtype_size(d) * (int)rng_below(r, 8), GUARD_NONE);
  operand_fill(o, r);
}

static int is_taken(int which, ref_dtype d) {
  return d != REF_BOOL && (which == ARANGE || ref_dtype_kind(d) == REF_KIND_FLOAT);
}

static void test_layouts(int which) {
  static const int64_t sizes[] = {0, 1, 2, 3, 15, 16, 17, 64, 65, 255, 256, 257, 1000, 1023, 1024, 1025, 3000, 4097};
  rng r;
  const int part = test_part(3); /* of the dtypes */
  rng_seed(&r, 600 + (uint64_t)which);
  for (int d = 0; d < REF_N_DTYPES; d++) {
    if (!is_taken(which, (ref_dtype)d)) continue;
    if (part >= 0 && (which + d) % 3 != part) continue;
    group_begin("%s in %s: every size, any layout", names[which], ref_dtype_name((ref_dtype)d));
    for (int i = 0; i < 18; i++) {
      problem p = {.which = which};
      operand_vector(&p.out, (ref_dtype)d, sizes[i], &r);
      for (int planned = 0; planned < 3; planned++) {
        draw(&p, &r);
        check(&p, planned);
      }
      operand_free(&p.out);
    }
    for (int i = 0; i < (SANITIZED ? 60 : 400); i++) {
      problem p = {.which = which};
      lay_out(&p.out, (ref_dtype)d, (int64_t)rng_below(&r, 20) ? (int64_t)rng_below(&r, 6000) : 40000, &r);
      draw(&p, &r);
      check(&p, i % 3);
      operand_free(&p.out);
    }
    group_end();
  }
}

/* Large enough for threads, and to be written past the cache: the same bits on any number of threads. */
static void test_large(void) {
  static const struct {
    int which;
    ref_dtype d;
    int64_t shape[2], strides[2];
  } cases[] = {
      {ARANGE, REF_F64, {1, 3000017}, {1, 1}},      {ARANGE, REF_I16, {2003, 2001}, {1, 2003}},
      {ARANGE, REF_U8, {700, 1501}, {-1501, -1}},   {ARANGE, REF_U64, {3, 700001}, {1, 5}},
      {LINSPACE, REF_F32, {4001, 1201}, {1201, 1}}, {LINSPACE, REF_F16, {1201, 1001}, {1, 1201}},
      {LINSPACE, REF_F64, {100003, 3}, {4, 1}},
  };
  rng r;
  rng_seed(&r, 650);
  group_begin("large outputs on one thread and on four");
  for (int c = 0; c < (int)(sizeof cases / sizeof *cases); c++) {
    int64_t shape[2] = {SANITIZED ? (cases[c].shape[0] + 5) / 6 : cases[c].shape[0], cases[c].shape[1]};
    quern_op *const was = ops[cases[c].which];
    for (int32_t threads = 1; threads <= 4; threads += 3) {
      problem p = {.which = cases[c].which};
      quern_options options = {.size = sizeof options, .threads = threads};
      quern_ctx *ctx;
      if (quern_ctx_create(&options, &ctx) || quern_op_find(ctx, names[p.which], &ops[p.which])) bail("%s", quern_last_error());
      operand_make(&p.out, cases[c].d, 2, shape, cases[c].strides, &r);
      draw(&p, &r);
      if (cases[c].d == REF_F64) p.param[0] = real(0.1), p.param[1] = real(p.which == ARANGE ? 1e-3 : 7.7);
      check(&p, 0);
      operand_free(&p.out);
      quern_op_release(ops[p.which]);
      quern_ctx_release(ctx);
    }
    ops[cases[c].which] = was;
  }
  group_end();
}

/* More than 2^31 elements, where there is room for them. */
static void test_huge(void) {
  const char *exhaustive = getenv("QUERN_TEST_EXHAUSTIVE");
  if (!exhaustive || !*exhaustive) {
    skip(1, "more than 2^31 elements: with QUERN_TEST_EXHAUSTIVE=1");
    return;
  }
  const int64_t n = ((int64_t)1 << 31) + 12345;
  problem p = {.which = LINSPACE, .n_params = 3, .param = {real(-3), real(60000), whole(1)}, .note = "more than 2^31 elements"};
  operand_describe(&p.out, REF_F16, 1, &n, NULL);
  p.out.t.data = mmap(NULL, (size_t)n * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p.out.t.data == MAP_FAILED) {
    skip(1, "more than 2^31 elements: no memory for them");
    return;
  }
  group_begin("more than 2^31 elements");
  if (run(&p, 0)) group_fail("%s", quern_last_error());
  for (int64_t i = 0; i < n; i += i < n - 100000 ? 9973 : 1) {
    uint64_t wanted, got = ref_get(REF_F16, (const char *)p.out.t.data + 2 * i);
    group_count(1);
    if (!is_right(&p, i, n, got, &wanted))
      group_fail("element %" PRId64 ": got 0x%" PRIx64 ", wanted 0x%" PRIx64, i, got, wanted);
  }
  group_end();
  munmap(p.out.t.data, (size_t)n * 2);
}

/* Integers of 64 bits with a sign or without, whole floats, defaults. */
static void test_params(void) {
  rng r;
  rng_seed(&r, 660);
  group_begin("parameters of every kind");
  static const quern_scalar values[][2] = {
      {{QUERN_U64, {.u = UINT64_MAX}}, {QUERN_I64, {.i = -3}}}, {{QUERN_U64, {.u = (uint64_t)1 << 63}}, {QUERN_U64, {.u = 7}}},
      {{QUERN_F64, {.f = {0x1p63, 0}}}, {QUERN_F64, {.f = {-2, 0}}}},
      {{QUERN_F64, {.f = {-0x1p63, 0}}}, {QUERN_I64, {.i = INT64_MAX}}}};
  for (int v = 0; v < 4; v++)
    for (int d = REF_I8; d <= REF_U64; d++) {
      problem p = {.which = ARANGE, .n_params = 2, .param = {values[v][0], values[v][1]}};
      operand_vector(&p.out, (ref_dtype)d, 100, &r);
      check(&p, v % 3);
      operand_free(&p.out);
    }
  for (int which = 0; which < N_WHICH; which++)
    for (int d = 0; d < REF_N_DTYPES; d++) {
      problem p = {.which = which, .param = {whole(0), whole(1), whole(1)}};
      if (!is_taken(which, (ref_dtype)d)) continue;
      operand_vector(&p.out, (ref_dtype)d, 77, &r);
      check(&p, 0);
      operand_free(&p.out);
    }
  group_end();
  group_begin("from and to infinity");
  for (int d = REF_F16; d <= REF_F64; d++) {
    problem p = {.which = LINSPACE, .n_params = 3, .param = {real(-INFINITY), real(NAN), whole(1)}};
    operand_vector(&p.out, (ref_dtype)d, 5, &r);
    check(&p, 0);
    operand_free(&p.out);
  }
  group_end();
}

static void refuse(int which, operand *o, const quern_scalar *params, int32_t n_params, quern_status wanted, const char *part) {
  DLTensor *out = &o->t;
  const quern_call call = {.size = sizeof call, .params = params, .n_params = n_params};
  is_int(quern_op_call(ops[which], 0, NULL, 1, &out, &call), wanted, "refused: %s", part);
  has_str(quern_last_error(), part, "  which it says");
  ok(operand_same(o), "  and leaves the output");
}

static void test_refused(void) {
  rng r;
  rng_seed(&r, 670);
  operand o = {0};
  const int64_t shape[2] = {4, 5}, strides[2] = {0, 1};
  const quern_scalar nan = real(NAN), half[2] = {whole(0), real(0.5)};
  operand_vector(&o, REF_I32, 9, &r);
  operand_save(&o);
  refuse(LINSPACE, &o, NULL, 0, QUERN_E_DTYPE, "linspace: output 1 (out): dtype i32");
  refuse(ARANGE, &o, &nan, 1, QUERN_E_DTYPE, "parameter 1 (start): NaN, but the op computes in integers here");
  refuse(ARANGE, &o, half, 2, QUERN_E_DTYPE, "2 (step): not a whole number");
  has_str(quern_last_error(), "give a whole number, or the output a float dtype", "  which says what helps");
  refuse(ARANGE, &o, half, 3, QUERN_E_ARGUMENT, "3 parameters given, it has 2");
  o.t.device.device_type = kDLROCM;
  refuse(ARANGE, &o, NULL, 0, QUERN_E_DEVICE, "arange: its tensors are on rocm:0, which this library has no kernels for");
  o.t.device.device_type = kDLCPU;
  DLTensor *out = &o.t;
  const uint64_t flags = 1;
  const quern_call read_only = {.size = sizeof read_only, .out_flags = &flags};
  is_int(quern_op_call(ops[ARANGE], 0, NULL, 1, &out, &read_only), QUERN_E_READONLY, "read-only");
  operand_free(&o);
  operand_vector(&o, REF_BOOL, 9, &r);
  operand_save(&o);
  refuse(ARANGE, &o, NULL, 0, QUERN_E_DTYPE, "arange: output 1 (out): dtype bool");
  operand_free(&o);
  operand_describe(&o, REF_F32, 2, shape, strides);
  operand_allocate(&o, 0, GUARD_NONE);
  operand_fill(&o, &r);
  operand_save(&o);
  refuse(ARANGE, &o, NULL, 0, QUERN_E_OVERLAP, "arange: output 1 (out)");
  operand_free(&o);

  quern_op *op;
  quern_shape result = {.size = sizeof result, .dtype = {kDLInt, 16, 1}};
  is_int(quern_op_infer(ops[ARANGE], 0, NULL, 1, &result), QUERN_OK, "the dtype is the caller's choice");
  is_int(quern_op_infer(ops[LINSPACE], 0, NULL, 1, &result), QUERN_E_DTYPE, "within what it gives");
  is_int(quern_op_compile(NULL, "x + arange(x)", &op), QUERN_E_SYNTAX, "no part of an expression");
  has_str(quern_last_error(), "arange is no part of an expression", "  which it says");
  quern_ctx *ctx;
  const char *spec = "op \"acme.ramp\" { doc = \"x\", inputs = \"\", index = true, dtypes = floating, body = [[ index ]] }\n";
  if (quern_ctx_create(NULL, &ctx)) bail("%s", quern_last_error());
  is_int(quern_spec_load_text(ctx, "ramp.lua", spec, strlen(spec)), QUERN_E_SYNTAX, "not for specs that come at run time");
  has_str(quern_last_error(), "only the library's own ops", "  which it says");
  quern_ctx_release(ctx);
}

static void test_explained(void) {
  char text[2000];
  rng r;
  rng_seed(&r, 680);
  operand o = {0};
  operand_vector(&o, REF_I16, 5000, &r);
  DLTensor *out = &o.t;
  is_int(quern_op_explain(ops[ARANGE], 0, NULL, 1, &out, NULL, text, sizeof text), QUERN_OK, "explained");
  has_str(text, "the elements' indices: counted by qk_pack_index_b8_i64_2d_sc\n", "  where the indices are from");
  has_str(text, "output 1 (out): converted from i64 to i16\n", "  where the output goes");
  operand_free(&o);
}

int main(void) {
  for (int k = 0; k < N_WHICH; k++)
    if (quern_op_find(NULL, names[k], &ops[k])) {
      if (is_subset()) skip_all("this build has no %s", names[k]);
      bail("%s", quern_last_error());
    }
  for (int k = 0; k < N_WHICH; k++) test_layouts(k);
  test_large();
  test_huge();
  test_params();
  test_refused();
  test_explained();
  for (int k = 0; k < N_WHICH; k++) quern_op_release(ops[k]);
  return done_testing();
}
