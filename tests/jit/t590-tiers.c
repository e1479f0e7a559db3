/* SPDX-License-Identifier: Apache-2.0
 *
 * t590-tiers: ops from expressions, as a host uses them: outputs, parameters, dtypes, layouts, aliases; first interpreted and
 * then compiled, with the same bits. */
#include "expressions.h"

/* Ways to run; the second only where there is a compiler. */
typedef struct way {
  const char *name, *tier;
  quern_ctx *ctx;
} way;

static way ways[2];
static int n_ways;

static quern_call with_params(const quern_scalar *params, int32_t n) {
  return (quern_call){.size = sizeof(quern_call), .params = params, .n_params = n};
}

/* ---- Values ----------------------------------------------------------------------------------------------------- */

static uint64_t bits_at(const operand *o, int64_t i) {
  const int64_t index[1] = {i};
  return ref_get(o->d, ref_address(&o->t, index));
}

static void wanted_bits(const way *way, const operand *out, int64_t i, uint64_t wanted, const char *what) {
  char a[64], b[64];
  if (bits_at(out, i) != wanted)
    group_fail("%s: %s at %d: got %s, wanted %s", way->name, what, (int)i, ref_text(out->d, bits_at(out, i), a),
               ref_text(out->d, wanted, b));
}

static void test_outputs(const way *way) {
  enum { N = 1003 };
  rng r;
  operands o;
  quern_op *op =
      op_from(way->ctx, "several: sum = x + w; difference = x - w; f32 t = sum * difference; product = t; x < w");
  rng_seed(&r, 1);
  operands_vector(&o, "f32 f32", "f32 f32 f64 bool", N, &r);
  is_int(operands_call(op, &o, NULL), QUERN_OK, "%s: four outputs, one of them f64", way->name);
  is_str(tier_of(op, &o, NULL), way->tier, "  tier");
  group_begin("  each of them");
  const ref_dtype f32[2] = {REF_F32, REF_F32};
  for (int64_t i = 0; i < N; i++) {
    const uint64_t x[2] = {bits_at(&o.in[0], i), bits_at(&o.in[1], i)};
    const uint64_t y[2] = {ref_eval(REF_ADD, f32, x, NULL, REF_F32).low,
                           ref_eval(REF_SUBTRACT, f32, x, NULL, REF_F32).low};
    const uint64_t product = ref_eval(REF_MULTIPLY, f32, y, NULL, REF_F32).low;
    group_count(1);
    wanted_bits(way, &o.out[0], i, y[0], "sum");
    wanted_bits(way, &o.out[1], i, y[1], "difference");
    wanted_bits(way, &o.out[2], i, ref_cast(REF_F64, ref_value(REF_F32, product), REF_KIND_FLOAT), "product");
    wanted_bits(way, &o.out[3], i, ref_eval(REF_LESS, f32, x, NULL, REF_BOOL).low, "x < w");
  }
  group_end();
  operands_free(&o);
  quern_op_release(op);
}

/* Numbers small enough that all that is computed is exact. */
static void fill_small(operands *o, rng *r) {
  for (int k = 0; k < o->n_in; k++) {
    for (int64_t i = 0; i < o->in[k].t.shape[0]; i++) {
      const int64_t index[1] = {i};
      const double value = o->in[k].d == REF_BOOL ? (double)rng_below(r, 2) : (double)rng_below(r, 100);
      ref_put(o->in[k].d, ref_address(&o->in[k].t, index), ref_from_double(o->in[k].d, value));
    }
  }
}

static double number_at(const operand *o, int64_t i) { return (double)ref_value(o->d, bits_at(o, i)); }

static void test_params(const way *way) {
  enum { N = 200 };
  rng r;
  operands o;
  char compiles[64];
  quern_op *op = op_from(way->ctx, "param scale; param shift; y = scale * x + shift");
  rng_seed(&r, 2);
  operands_vector(&o, "f32", "f32", N, &r);
  fill_small(&o, &r);
  operand_save(&o.out[0]);
  const quern_scalar two[] = {scalar_f(0.5), scalar_i(3), scalar_i(1)};
  const quern_scalar gap[] = {{.kind = QUERN_NONE}, scalar_i(3)},
                     complex[] = {{.kind = QUERN_C128, .v.f = {1, 1}}, scalar_i(0)};
  quern_call call = with_params(NULL, 0);
  is_int(operands_call(op, &o, NULL), QUERN_E_ARGUMENT, "%s: no parameters given", way->name);
  has_str(quern_last_error(), "scale", "  named");
  is_int(operands_call(op, &o, &call), QUERN_E_ARGUMENT, "  nor in a call's struct");
  call = with_params(two, 1);
  is_int(operands_call(op, &o, &call), QUERN_E_ARGUMENT, "one of two given");
  has_str(quern_last_error(), "shift", "  the other one named");
  call = with_params(two, 3);
  is_int(operands_call(op, &o, &call), QUERN_E_ARGUMENT, "more than there are");
  call = with_params(gap, 2);
  is_int(operands_call(op, &o, &call), QUERN_E_ARGUMENT, "one that is no number");
  has_str(quern_last_error(), "scale", "  named");
  call = with_params(complex, 2);
  ok(operands_call(op, &o, &call) != QUERN_OK, "a complex one");
  ok(operand_same(&o.out[0]), "  nothing was written");
  group_begin("  values");
  for (int turn = 0; turn < 4; turn++) {
    const quern_scalar values[] = {scalar_f(turn * 0.25), scalar_i(turn * 7)};
    call = with_params(values, 2);
    if (operands_call(op, &o, &call)) group_fail("%s", quern_last_error());
    for (int64_t i = 0; i < N; i++) {
      group_count(1);
      if (number_at(&o.out[0], i) != turn * 0.25 * number_at(&o.in[0], i) + turn * 7)
        group_fail("turn %d, element %d", turn, (int)i);
    }
    if (turn == 0) snprintf(compiles, sizeof compiles, "%s", explained(op, &o, &call, "compiles"));
    if (strcmp(compiles, explained(op, &o, &call, "compiles")) != 0)
      group_fail("compiles went from %s to %s", compiles, explained(op, &o, &call, "compiles"));
    if (strcmp(tier_of(op, &o, &call), way->tier) != 0) group_fail("tier %s", tier_of(op, &o, &call));
  }
  group_end();
  is_str(compiles, strcmp(way->tier, "interpreter") ? "1" : "0", "  are no part of what is compiled");
  quern_plan *plan = NULL;
  void *in[1] = {o.in[0].t.data}, *out[1] = {o.out[0].t.data};
  is_int(quern_op_prepare(op, 1, o.ins, 1, o.outs, NULL, &plan), QUERN_E_ARGUMENT, "a plan without them");
  call = with_params(two, 2);
  is_int(quern_op_prepare(op, 1, o.ins, 1, o.outs, &call, &plan), QUERN_OK, "a plan with them");
  is_int(quern_plan_run(plan, in, out, NULL), QUERN_OK, "  keeps them");
  ok(number_at(&o.out[0], 5) == 0.5 * number_at(&o.in[0], 5) + 3, "  computes with them");
  const quern_scalar other[] = {scalar_i(2), scalar_i(1)};
  call = with_params(other, 2);
  is_int(quern_plan_run(plan, in, out, &call), QUERN_OK, "  takes others for a run");
  ok(number_at(&o.out[0], 5) == 2 * number_at(&o.in[0], 5) + 1, "  computes with those");
  call = with_params(other, 1);
  is_int(quern_plan_run(plan, in, out, &call), QUERN_E_ARGUMENT, "  and wants all of them");
  quern_plan_release(plan);
  operands_free(&o);
  quern_op_release(op);

  /* One parameter, two dtypes: each is made from what was given. */
  op = op_from(way->ctx, "param a; y = x * a; z = k + a");
  operands_vector(&o, "f32 i64", "f32 i64", N, &r);
  fill_small(&o, &r);
  const quern_scalar large[] = {scalar_i(9007199254740993)}, half[] = {scalar_f(2.5)}, huge[] = {scalar_f(1e300)};
  call = with_params(large, 1);
  is_int(operands_call(op, &o, &call), QUERN_OK, "%s: one parameter for f32 and i64", way->name);
  ok((int64_t)bits_at(&o.out[1], 3) == (int64_t)bits_at(&o.in[1], 3) + 9007199254740993 &&
         number_at(&o.out[0], 3) == (double)(float)((float)number_at(&o.in[0], 3) * 9007199254740992.0f),
     "  exact for one, rounded for the other");
  operand_save(&o.out[0]), operand_save(&o.out[1]);
  call = with_params(half, 1);
  is_int(operands_call(op, &o, &call), QUERN_E_DTYPE, "  2.5 is no i64");
  has_str(quern_last_error(), "a", "  named");
  ok(operand_same(&o.out[0]) && operand_same(&o.out[1]), "  nothing was written");
  call = with_params(huge, 1);
  is_int(operands_call(op, &o, &call), QUERN_OK, "  1e300 saturates");
  ok(bits_at(&o.out[1], 0) == (uint64_t)INT64_MAX + bits_at(&o.in[1], 0), "  as i64, and the sum wraps");
  operands_free(&o);
  quern_op_release(op);
}

/* What only params and numbers go into is computed once for a block: hundreds of such values one after the other, clip's
 * bounds among them, take little memory. */
static void test_param_terms(void) {
  enum { TERMS = 450 };
  static char text[64 * TERMS];
  const quern_scalar two[] = {scalar_i(2)};
  const quern_call call = with_params(two, 1);
  double wanted = 0;
  rng r;
  operands o;
  char *at = stpcpy(text, "param p; y = clip(x, 0, p * 3 + 1)");
  for (int k = 0; k < TERMS; k++) {
    at += sprintf(at, " + (p * %d + %d) / p", 2 * (k % 50), k % 9 * 2);
    wanted += 2 * (k % 50) + k % 9;
  }
  quern_op *op = op_from(ways[0].ctx, text);
  rng_seed(&r, 3);
  operands_vector(&o, "f32", "f32", 3000, &r);
  fill_small(&o, &r);
  is_int(operands_call(op, &o, &call), QUERN_OK, "%d terms of a parameter, interpreted", TERMS);
  group_begin("  values");
  for (int64_t i = 0; i < 3000; i++) {
    const double x = number_at(&o.in[0], i), y = x < 0 ? 0 : x > 7 ? 7 : x;
    group_count(1);
    if (fabs(number_at(&o.out[0], i) - (y + wanted)) > 1e-2) group_fail("element %d", (int)i);
  }
  group_end();
  operands_free(&o);
  quern_op_release(op);
}

/* Expressions of casts and mixed dtypes on numbers for which doubles are exact. */
static double of_mixed(const double *x) { return x[0] * x[1] + x[2]; }
static double of_division(const double *x) { return (double)((float)x[0] / (float)(x[1] + 1)); }
static double of_choice(const double *x) { return x[0] != 0 ? x[1] : -x[2]; }
static double of_rounds(const double *x) {
  return (double)(2048 + 2 * (int)(x[0] / 4) +
                  (fmod(x[0], 4) >= 2 ? (int)(x[0] / 4) % 2 || fmod(x[0], 4) > 2 ? 2 : 0 : 0));
}
static double of_bytes(const double *x) { return fmod(x[0] * 3, 256) + x[1]; }
static double of_floor(const double *x) { return floor(x[0] / 8) - x[1]; }
static double of_compare(const double *x) { return (x[0] > x[1]) + 2 * (x[0] == x[1]); }

static void test_dtypes(const way *way) {
  static const struct {
    const char *text, *in, *out;
    double (*value)(const double *x);
  } cases[] = {
      {"x * w + b", "f32 f32 f32", "f32", of_mixed},
      {"x * w + b", "f16 f32 f64", "f64", of_mixed},
      {"x * w + b", "bf16 f16 i32", "f32", of_mixed},
      {"x * w + b", "u8 i32 i64", "i64", of_mixed},
      {"x * w + b", "i64 u8 i32", "f32", of_mixed},
      {"x * w + b", "f64 i64 bf16", "f64", of_mixed},
      {"x / (w + 1)", "i32 u8", "f32", of_division},
      {"x / (w + 1)", "f32 i64", "f32", of_division},
      {"c ? x : -w", "bool i32 i64", "i64", of_choice},
      {"c ? x : -w", "bool f16 f16", "f16", of_choice},
      {"c ? x : -w", "bool u8 f64", "f64", of_choice},
      {"(f16)(2048 + x / 2)", "f32", "f32", of_rounds},
      {"f16 t = 2048 + x / 2; return t", "f32", "f64", of_rounds},
      {"(i32)(u8)((i32)x * 3) + (i32)w", "f32 f16", "i32", of_bytes},
      {"(f64)floor(x / 8) - w", "f32 i32", "f64", of_floor},
      {"(i32)(x > w) + 2 * (i32)(x == w)", "f32 f32", "i32", of_compare},
      {"(i32)(x > w) + 2 * (i32)(x == w)", "i64 f16", "f32", of_compare},
  };
  enum { N = 300 };
  rng r;
  rng_seed(&r, 3);
  group_begin("%s: casts and mixed dtypes", way->name);
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    operands o;
    quern_op *op = op_from(way->ctx, cases[c].text);
    operands_vector(&o, cases[c].in, cases[c].out, N, &r);
    fill_small(&o, &r);
    group_count(1);
    if (operands_call(op, &o, NULL)) group_fail("%s of %s: %s", cases[c].text, cases[c].in, quern_last_error());
    if (strcmp(tier_of(op, &o, NULL), way->tier) != 0)
      group_fail("%s of %s: tier %s", cases[c].text, cases[c].in, tier_of(op, &o, NULL));
    for (int64_t i = 0; i < N; i++) {
      double x[3];
      for (int k = 0; k < o.n_in; k++) x[k] = number_at(&o.in[k], i);
      const double wanted = cases[c].value(x), got = number_at(&o.out[0], i);
      if (got == wanted) continue;
      group_fail("%s of %s at (%g, %g): got %g, wanted %g", cases[c].text, cases[c].in, x[0], o.n_in > 1 ? x[1] : 0,
                 got, wanted);
      break;
    }
    operands_free(&o);
    quern_op_release(op);
  }
  group_end();
}

/* NaNs of every payload, both signs. */
static void fill_nans(operand *o, int64_t n, rng *r) {
  const uint64_t inf = ref_cast(o->d, INFINITY, REF_KIND_FLOAT), below = (inf & (0 - inf)) - 1; /* the fraction's bits */
  for (int64_t i = 0; i < n; i++) {
    const int64_t index[1] = {i};
    const uint64_t sign = rng_below(r, 2) ? (uint64_t)1 << (8 * ref_dtype_size(o->d) - 1) : 0;
    ref_put(o->d, ref_address(&o->t, index), sign | inf | (1 + rng_u64(r) % below));
  }
}

/* An expression that is one op that moves values is that op, of whatever dtypes: what needs no cast keeps all bits. */
static void test_moves(const way *way) {
  static const struct {
    const char *text, *in, *out;
    int is_the_op;
  } cases[] = {
      {"where(c, x, y)", "bool f32 f32", "f32", 1},        {"where(c, x, y)", "bool f16 f32", "f32", 1},
      {"where(c, x, y)", "bool f32 f64", "f64", 1},        {"where(c, x, y)", "bool f64 bf16", "f64", 1},
      {"w: y = where(c, x, z);", "bool f64 f32", "f64", 1}, {"where(c, x, y)", "bool f32 f32", "f64", 1},
      {"where(c, (f64)x, y)", "bool f32 f64", "f64", 0},   {"c ? x : y", "bool f64 f32", "f64", 0},
      {"where(c, x, y) * 1", "bool f64 f32", "f64", 0},
  };
  enum { N = 200 };
  rng r;
  rng_seed(&r, 23);
  quern_op *where = op_named(NULL, "where");
  group_begin("%s: NaNs in an expression that is one moving op, and in others", way->name);
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    operands o, of_op;
    quern_op *op = op_from(way->ctx, cases[c].text);
    operands_vector(&o, cases[c].in, cases[c].out, N, &r);
    operands_vector(&of_op, cases[c].in, cases[c].out, N, &r);
    for (int k = 1; k < 3; k++) fill_nans(&o.in[k], N, &r);
    for (int k = 0; k < 3; k++) of_op.ins[k] = o.ins[k];
    group_count(2);
    if (operands_call(op, &o, NULL) || operands_call(where, &of_op, NULL))
      group_fail("%s of %s: %s", cases[c].text, cases[c].in, quern_last_error());
    if (cases[c].is_the_op != (strcmp(tier_of(op, &o, NULL), "built") == 0))
      group_fail("%s of %s: tier %s", cases[c].text, cases[c].in, tier_of(op, &o, NULL));
    for (int64_t i = 0; i < N; i++)
      wanted_bits(way, &o.out[0], i, cases[c].is_the_op ? bits_at(&of_op.out[0], i) : ref_cast(o.out[0].d, NAN, REF_KIND_FLOAT),
                  cases[c].text);
    operands_free(&of_op);
    operands_free(&o);
    quern_op_release(op);
  }
  group_end();
  quern_op_release(where);
}

/* ---- In place --------------------------------------------------------------------------------------------------- */

/* Every way in which three outputs can be three inputs: each the very tensor of one, or apart. */
static void test_in_place(const way *way) {
  static const struct {
    const char *text, *in, *out;
  } cases[] = {
      {"a = x + 1; b = a * w; c = x - v", "f32 f32 f32", "f32 f32 f32"},
      {"a = v; b = x; c = w", "f64 f64 f64", "f64 f64 f64"}, /* a rotation */
      {"a = x * w; b = exp(minimum(v, 3)); c = x + w + v", "f16 f16 f16", "f16 f16 f16"},
      {"a = x + w; b = (f32)x * 0.5; c = w ^ v", "i32 i32 i32", "i32 f32 i32"},
      {"a = x > w; b = v; c = x == v", "bool u8 u8", "bool u8 bool"},
  };
  enum { N = 5003, MOST_RUNS = 64 };
  rng r;
  rng_seed(&r, 4);
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    operands apart, o;
    quern_op *op = op_from(way->ctx, cases[c].text);
    operands_vector(&apart, cases[c].in, cases[c].out, N, &r);
    if (operands_call(op, &apart, NULL)) bail("%s", quern_last_error());
    group_begin("%s: outputs that are inputs: %s of %s", way->name, cases[c].text, cases[c].in);
    for (int choice = 1; choice < MOST_RUNS; choice++) {
      int twin[3] = {choice & 3, choice >> 2 & 3, choice >> 4}; /* 0: none, else input twin - 1 */
      int taken = 0, is_valid = 1;
      for (int k = 0; k < 3; k++) {
        is_valid &= !twin[k] || (!(taken >> twin[k] & 1) &&
                                 ref_dtype_size(apart.in[twin[k] - 1].d) == ref_dtype_size(apart.out[k].d));
        taken |= twin[k] ? 1 << twin[k] : 0;
      }
      if (!is_valid) continue;
      operands_vector(&o, cases[c].in, cases[c].out, N, &r);
      for (int k = 0; k < 3; k++)
        memcpy(o.in[k].t.data, apart.in[k].t.data, (size_t)N * (size_t)ref_dtype_size(o.in[k].d));
      for (int k = 0; k < 3; k++)
        if (twin[k]) o.out[k].t.data = o.in[twin[k] - 1].t.data;
      group_count(1);
      if (operands_call(op, &o, NULL)) group_fail("%d %d %d: %s", twin[0], twin[1], twin[2], quern_last_error());
      for (int k = 0; k < 3; k++)
        if (!same_elements(&o.out[k], &apart.out[k]))
          group_fail("outputs are inputs %d %d %d: output %d is another", twin[0], twin[1], twin[2], k + 1);
      for (int k = 0; k < 3; k++)
        if (!(taken >> (k + 1) & 1) &&
            memcmp(o.in[k].t.data, apart.in[k].t.data, (size_t)N * (size_t)ref_dtype_size(o.in[k].d)) != 0)
          group_fail("outputs are inputs %d %d %d: input %d was written", twin[0], twin[1], twin[2], k + 1);
      operands_free(&o);
    }
    group_end();
    operands_free(&apart);
    quern_op_release(op);
  }
}

static void test_overlap(void) {
  enum { N = 400 };
  rng r;
  operands o;
  quern_op *op = op_from(ways[0].ctx, "y = x * 2 + w; z = x - w");
  rng_seed(&r, 5);
  operands_vector(&o, "f32 f32", "f32 f32", N, &r);
  void *mine = o.out[0].t.data;
  o.out[0].t.data = (char *)o.in[0].t.data + 4;
  refuses(op, &o, NULL, QUERN_E_OVERLAP, "y", "an output one element behind an input");
  o.out[0].t.data = o.out[1].t.data;
  refuses(op, &o, NULL, QUERN_E_OVERLAP, "z", "one tensor for both outputs");
  o.out[0].t.data = o.in[1].t.data;
  o.out[1].t.data = (char *)o.in[1].t.data + 2 * N;
  refuses(op, &o, NULL, QUERN_E_OVERLAP, "", "an output over an input that is the other one's twin");
  operands_free(&o);
  (void)mine;
  operands_vector(&o, "f32 f32", "f64 f32", N / 2, &r);
  o.out[0].t.data = o.in[0].t.data;
  refuses(op, &o, NULL, QUERN_E_OVERLAP, "y", "an input's address, and larger items");
  operands_free(&o);
  int64_t shape[2] = {20, 20}, turned[2] = {1, 20}, still[2] = {20, 0};
  operands_make(&o, "f32 f32", "f32 f32", 2, shape, &r);
  memcpy(o.out[1].strides, turned, sizeof turned);
  o.out[1].t.data = o.in[1].t.data;
  refuses(op, &o, NULL, QUERN_E_OVERLAP, "z", "an input's transpose");
  operands_free(&o);
  operands_make(&o, "f32 f32", "f32 f32", 2, shape, &r);
  memcpy(o.out[0].strides, still, sizeof still);
  refuses(op, &o, NULL, QUERN_E_OVERLAP, "y", "an output on top of itself");
  operands_free(&o);
  quern_op_release(op);
}

static void test_read_only(void) {
  rng r;
  operands o;
  quern_op *op = op_from(ways[0].ctx, "y = x * 2; z = x - 1");
  const uint64_t flags[2] = {0, 1}, none[2] = {2, 4};
  quern_call call = {.size = sizeof call, .out_flags = flags};
  rng_seed(&r, 6);
  operands_vector(&o, "f32", "f32 f32", 100, &r);
  refuses(op, &o, &call, QUERN_E_READONLY, "z", "the second of two outputs is read-only");
  call.out_flags = none;
  is_int(operands_call(op, &o, &call), QUERN_OK, "other flags are ignored");
  operands_free(&o);
  quern_op_release(op);
}

/* ---- Shapes ----------------------------------------------------------------------------------------------------- */

static void test_shapes(const way *way) {
  rng r;
  operands o;
  rng_seed(&r, 7);
  quern_op *op = op_from(way->ctx, "y = x * 2 + w; z = x > w");
  int64_t nothing[3] = {3, 0, 2};
  operands_make(&o, "f32 f32", "f32 bool", 3, nothing, &r);
  for (int k = 0; k < 2; k++) o.in[k].t.data = o.out[k].t.data = NULL;
  is_int(operands_call(op, &o, NULL), QUERN_OK, "%s: no elements, and no data", way->name);
  has_str(explained(op, &o, NULL, "reason"), "no elements", "  explained");
  is_str(explained(op, &o, NULL, "compiles"), "0", "  nothing is compiled for it");
  for (int k = 0; k < 2; k++) o.in[k].t.data = o.out[k].t.data = o.in[k].memory; /* operand_free's */
  operands_free(&o);

  operands_make(&o, "f32 f32", "f32 bool", 0, NULL, &r);
  ref_put(REF_F32, o.in[0].t.data, ref_from_double(REF_F32, 3));
  ref_put(REF_F32, o.in[1].t.data, ref_from_double(REF_F32, -0.5));
  is_int(operands_call(op, &o, NULL), QUERN_OK, "%s: no dimensions", way->name);
  ok(ref_get(REF_F32, o.out[0].t.data) == ref_from_double(REF_F32, 5.5) && *(unsigned char *)o.out[1].t.data == 1,
     "  one element");
  is_str(tier_of(op, &o, NULL), way->tier, "  tier");
  operands_free(&o);

  /* 32 dimensions, ten of them of 2, each input's in an order of its own. */
  int64_t shape[33], strides[2][33], rows[33], flat = 1024;
  for (int d = 0; d < 32; d++) shape[d] = d % 3 == 0 && d < 30 ? 2 : 1;
  shape[32] = 1;
  operands deep;
  operands_make(&deep, "f32 f32", "f32 bool", 32, shape, &r);
  compact_strides(32, shape, rows);
  for (int k = 0, n = 0; k < 10; k++, n++) strides[0][3 * k] = 1 << n;
  for (int d = 0; d < 32; d++) {
    if (shape[d] == 1) strides[0][d] = 7 - d;
    strides[1][d] = shape[d] == 1 ? -3 : rows[d];
  }
  memcpy(deep.in[0].strides, strides[0], sizeof rows);
  memcpy(deep.in[1].strides, strides[1], sizeof rows);
  is_int(operands_call(op, &deep, NULL), QUERN_OK, "%s: 32 dimensions", way->name);
  is_str(tier_of(op, &deep, NULL), way->tier, "  tier");
  group_begin("  all elements");
  for (int64_t i = 0; i < flat; i++) {
    int64_t reversed = 0;
    for (int b = 0; b < 10; b++) reversed |= (i >> b & 1) << (9 - b);
    const ref_dtype f32[2] = {REF_F32, REF_F32};
    const uint64_t x = ref_get(REF_F32, (char *)deep.in[0].t.data + 4 * reversed),
                   w = ref_get(REF_F32, (char *)deep.in[1].t.data + 4 * i);
    const uint64_t twice[2] = {x, ref_from_double(REF_F32, 2)},
                   sum[2] = {ref_eval(REF_MULTIPLY, f32, twice, NULL, REF_F32).low, w};
    group_count(1);
    if (ref_get(REF_F32, (char *)deep.out[0].t.data + 4 * i) != ref_eval(REF_ADD, f32, sum, NULL, REF_F32).low)
      group_fail("element %d", (int)i);
  }
  group_end();
  deep.in[0].t.ndim = 33;
  ok(operands_call(op, &deep, NULL) < 0, "  33 are refused");
  has_str(quern_last_error(), "x", "  named");
  operands_free(&deep);

  /* Broadcast: x [5, 1, 7], w [3, 1] */
  int64_t left[3] = {5, 1, 7}, right[2] = {3, 1}, both[3] = {5, 3, 7};
  operands_make(&o, "f32 f32", "f32 bool", 3, both, &r);
  operand_free(&o.in[0]), operand_free(&o.in[1]);
  operand_make(&o.in[0], REF_F32, 3, left, NULL, &r);
  operand_make(&o.in[1], REF_F32, 2, right, NULL, &r);
  is_int(operands_call(op, &o, NULL), QUERN_OK, "%s: [5, 1, 7] with [3, 1]", way->name);
  group_begin("  all elements");
  for (int64_t i = 0; i < 105; i++) {
    const ref_dtype f32[2] = {REF_F32, REF_F32};
    const uint64_t x[2] = {ref_get(REF_F32, (char *)o.in[0].t.data + 4 * (i / 21 * 7 + i % 7)),
                           ref_get(REF_F32, (char *)o.in[1].t.data + 4 * (i / 7 % 3))};
    group_count(1);
    if (((unsigned char *)o.out[1].t.data)[i] !=
        (x[1] == x[0] ? 0 : ref_eval(REF_LESS, f32, (uint64_t[2]){x[1], x[0]}, NULL, REF_BOOL).low))
      group_fail("element %d", (int)i);
  }
  group_end();
  o.out[0].t.shape[1] = 2;
  is_int(operands_call(op, &o, NULL), QUERN_E_SHAPE, "  an output of another shape");
  has_str(quern_last_error(), "y", "  named");
  o.out[0].t.shape[1] = 3;
  o.in[1].t.shape[0] = 4;
  is_int(operands_call(op, &o, NULL), QUERN_E_SHAPE, "  inputs that do not broadcast");
  o.in[1].t.shape[0] = 3;
  operands_free(&o);
  quern_op_release(op);

  op = op_from(way->ctx, "y = (f32)1.5; z = (i32)-3");
  operands_vector(&o, "", "f32 i32", 77, &r);
  is_int(operands_call(op, &o, NULL), QUERN_OK, "%s: no inputs", way->name);
  ok(number_at(&o.out[0], 76) == 1.5 && number_at(&o.out[1], 0) == -3, "  its outputs say how large it is");
  operands_free(&o);
  quern_op_release(op);
}

static void test_infer(void) {
  rng r;
  operands o;
  rng_seed(&r, 8);
  quern_op *op = op_from(ways[0].ctx, "y = x * w; z = x > w; h = (f16)x; x / 3");
  const int64_t left[3] = {5, 1, 7}, right[2] = {3, 1}, both[3] = {5, 3, 7};
  operands_make(&o, "i32 f16", "f16 bool f16 f32", 3, both, &r);
  operand_free(&o.in[0]), operand_free(&o.in[1]);
  operand_describe(&o.in[0], REF_I32, 3, left, NULL);
  operand_describe(&o.in[1], REF_F16, 2, right, NULL);
  quern_shape out[4];
  memset(out, 0x7f, sizeof out);
  for (int k = 0; k < 4; k++) out[k].size = sizeof out[0];
  is_int(quern_op_infer(op, 2, o.ins, 4, out), QUERN_OK, "infer");
  static const ref_dtype wanted[4] = {REF_F16, REF_BOOL, REF_F16, REF_F64};
  for (int k = 0; k < 4; k++) {
    const DLDataType d = ref_dtype_dl(wanted[k]);
    ok(out[k].dtype.code == d.code && out[k].dtype.bits == d.bits && out[k].dtype.lanes == 1, "  output %d is %s", k,
       ref_dtype_name(wanted[k]));
    ok(out[k].ndim == 3 && memcmp(out[k].shape, both, sizeof both) == 0 && out[k].device.device_type == kDLCPU,
       "  [5, 3, 7] on the CPU");
  }
  o.in[1].d = REF_BOOL;
  o.in[1].t.dtype = ref_dtype_dl(REF_BOOL);
  o.in[0].t.dtype = ref_dtype_dl(REF_BOOL);
  is_int(quern_op_infer(op, 2, o.ins, 4, out), QUERN_E_DTYPE, "  of dtypes that it does not take");
  is_int(quern_op_infer(op, 1, o.ins, 4, out), QUERN_E_ARGUMENT, "  of too few inputs");
  size_t bytes = 99;
  o.in[0].t.dtype = o.in[1].t.dtype = ref_dtype_dl(REF_F32);
  o.in[0].t.data = o.out[0].t.data;
  is_int(quern_op_workspace(op, 2, o.ins, 4, o.outs, NULL, &bytes), QUERN_OK, "workspace");
  is_int(bytes, 0, "  none");
  for (int k = 0; k < 2; k++) o.in[k].t.data = NULL;
  operands_free(&o);
  quern_op_release(op);
}

/* ---- The same bits ---------------------------------------------------------------------------------------------- */

static void test_same_bits(void) {
  static const char *const texts[] = {
      "y = gelu(a * b + c); z = tanh(a) - sigmoid(b)",
      "y = exp(-a * a) / (1 + abs(b)); z = log(abs(c))",
      "y = pow(abs(a), b); z = fma(a, b, c)",
      "param p; y = a * p + b; z = (a > p ? b : c) / p",
      "y = sqrt(abs(a)) + erf(b) * c; z = clip(a, -1, 2.5) + leaky_relu(b, 0.2)",
  };
  static const char *const dtypes[][2] = {
      {"f32 f32 f32", "f32 f32"}, {"f64 f64 f64", "f64 f64"}, {"f16 f16 f16", "f16 f16"}, {"bf16 f32 i64", "f32 f64"}};
  rng r;
  rng_seed(&r, 19);
  group_begin("compiled, interpreted: the same bits");
  for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
      operands o, first;
      const quern_scalar p[1] = {scalar_f(1.75)};
      const quern_call call = with_params(p, strstr(texts[t], "param") ? 1 : 0);
      int64_t shape[2] = {50, 41};
      operands_make(&o, dtypes[d][0], dtypes[d][1], 2, shape, &r);
      o.in[1].strides[0] = 0;                          /* a row for all */
      o.in[2].strides[0] = 1, o.in[2].strides[1] = 50; /* transposed */
      for (int w = 0; w < n_ways; w++) {
        quern_op *op = op_from(ways[w].ctx, texts[t]);
        group_count(1);
        if (operands_call(op, &o, &call)) group_fail("%s of %s: %s", texts[t], dtypes[d][0], quern_last_error());
        if (strcmp(tier_of(op, &o, &call), ways[w].tier) != 0)
          group_fail("%s: tier %s: %s", texts[t], tier_of(op, &o, &call), explained(op, &o, &call, "reason"));
        if (w == 0) {
          operands_make(&first, dtypes[d][0], dtypes[d][1], 2, shape, &r);
          for (int k = 0; k < 2; k++)
            memcpy(first.out[k].t.data, o.out[k].t.data, (size_t)(50 * 41 * ref_dtype_size(o.out[k].d)));
        } else {
          for (int k = 0; k < 2; k++)
            if (!same_elements(&o.out[k], &first.out[k]))
              group_fail("%s of %s: output %d differs", texts[t], dtypes[d][0], k);
        }
        quern_op_release(op);
      }
      operands_free(&first);
      operands_free(&o);
    }
  }
  group_end();
}

int main(void) {
  forget_environment();
  find_compiler();
  ways[0] = (way){"interpreted", "interpreter", ctx_of(QUERN_JIT_OFF)};
  n_ways = 1;
  if (compiler) ways[n_ways++] = (way){"compiled", compiler, ctx_of(QUERN_JIT_SYNC)};
  for (int w = 0; w < n_ways; w++) {
    test_outputs(&ways[w]);
    test_params(&ways[w]);
    if (w == 0) test_param_terms();
    test_dtypes(&ways[w]);
    test_moves(&ways[w]);
    test_in_place(&ways[w]);
    test_shapes(&ways[w]);
  }
  test_overlap();
  test_read_only();
  test_infer();
  if (compiler)
    test_same_bits();
  else
    skip(1, "no compiler of kernels is here");
  for (int w = 0; w < n_ways; w++) quern_ctx_release(ways[w].ctx);
  return done_testing();
}
