/* SPDX-License-Identifier: Apache-2.0
 *
 * t590-tiers: ops from expressions, as a host uses them: outputs, parameters, dtypes, layouts, aliases, plans; first
 * interpreted and then compiled, with the same bits; how often a compiler runs; what may be released when; what a call
 * takes of time, stack and memory; what is said of an op, and of what is none. */
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>

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

static void refuses(quern_op *op, operands *o, const quern_call *call, quern_status status, const char *words,
                    const char *name) {
  for (int k = 0; k < o->n_out; k++)
    if (o->out[k].memory) operand_save(&o->out[k]);
  const quern_status got = operands_call(op, o, call);
  ok(got == status, "%s: %s, wanted %s", name, status_name(got), status_name(status));
  if (got == status) has_str(quern_last_error(), words, "  said");
  quern_plan *plan = NULL;
  int is_same = 1;
  for (int k = 0; k < o->n_out; k++) is_same &= !o->out[k].memory || operand_same(&o->out[k]);
  ok(is_same, "  nothing was written");
  if (status == QUERN_E_OVERLAP) return; /* of data pointers, which plans do not have */
  is_int(quern_op_prepare(op, o->n_in, o->ins, o->n_out, o->outs, call, &plan), status, "  no plan");
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
  is_int(operands_call(op, &o, &call), QUERN_OK, "other flags are nobody's business");
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
  static const ref_dtype wanted[4] = {REF_F16, REF_BOOL, REF_F16, REF_F32};
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

/* ---- Interpreted, then compiled --------------------------------------------------------------------------------- */

#define SUBJECT "y = gelu(a * b + c) * d; z = y > c"

/* Whether a call (of a plan, or of an op) runs compiled code: without the right to execute what is mapped for it, it
 * dies. */
typedef struct execution {
  quern_plan *plan;
  quern_op *op;
  operands *o;
} execution;

static void on_fault(int signal) {
  (void)signal;
  _exit(42);
}

static int forbid_and_run(void *arg) {
  const execution *e = arg;
  void *in[4], *out[2];
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  int n = 0;
  stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
  struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
  sigaltstack(&stack, NULL);
  sigaction(SIGSEGV, &action, NULL);
  while (maps && fgets(line, sizeof line, maps)) {
    unsigned long low, high, inode;
    char rights[8];
    if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &low, &high, rights, &inode) != 4) continue;
    if (rights[2] != 'x' || inode || strchr(line, '[')) continue;
    mprotect((void *)low, high - low, PROT_READ);
    n++;
  }
  if (maps) fclose(maps);
  for (int k = 0; k < 4; k++) in[k] = e->o->in[k].t.data;
  for (int k = 0; k < 2; k++) out[k] = e->o->out[k].t.data;
  const quern_status status = e->plan ? quern_plan_run(e->plan, in, out, NULL) : operands_call(e->op, e->o, NULL);
  return status ? 43 : n ? 0 : 44;
}

static void test_plans(void) {
  enum { N = 3001 };
  rng r;
  operands o, first;
  quern_plan *early = NULL, *late = NULL;
  quern_ctx *ctx = ctx_of(QUERN_JIT_ASYNC);
  quern_op *op = op_from(ctx, SUBJECT);
  rng_seed(&r, 9);
  operands_vector(&o, "f32 f32 f32 f32", "f32 bool", N, &r);
  void *in[4], *out[2];
  for (int k = 0; k < 4; k++) in[k] = o.in[k].t.data;
  for (int k = 0; k < 2; k++) out[k] = o.out[k].t.data;
  const int is_held = strcmp(compiler, "clang") == 0;
  if (is_held) hold_compiles(300);
  is_int(quern_op_prepare(op, 4, o.ins, 2, o.outs, NULL, &early), QUERN_OK, "a plan before there is code");
  if (is_held) {
    is_str(tier_of(op, &o, NULL), "interpreter", "  tier");
    has_str(explained(op, &o, NULL, "reason"), "being compiled", "  reason");
  } else {
    skip(2, "only Clang in process can be held");
  }
  is_int(quern_plan_run(early, in, out, NULL), QUERN_OK, "  runs, interpreted");
  operands_vector(&first, "f32 f32 f32 f32", "f32 bool", N, &r);
  for (int k = 0; k < 2; k++)
    memcpy(first.out[k].t.data, o.out[k].t.data, (size_t)N * (size_t)ref_dtype_size(o.out[k].d));
  ok(becomes(op, &o, NULL, compiler), "  the code comes");
  hold_compiles(0);
  memset(out[0], 0x55, N * 4), memset(out[1], 0x55, N);
  is_int(quern_plan_run(early, in, out, NULL), QUERN_OK, "  the same plan runs on");
  ok(same_elements(&o.out[0], &first.out[0]) && same_elements(&o.out[1], &first.out[1]), "  with the same bits");
  is_int(quern_op_prepare(op, 4, o.ins, 2, o.outs, NULL, &late), QUERN_OK, "a plan when there is code");
  memset(out[0], 0x55, N * 4), memset(out[1], 0x55, N);
  is_int(quern_plan_run(late, in, out, NULL), QUERN_OK, "  runs");
  ok(same_elements(&o.out[0], &first.out[0]) && same_elements(&o.out[1], &first.out[1]), "  with the same bits");
  if (SANITIZED) {
    skip(4, "a sanitizer forks and faults in ways of its own");
  } else {
    quern_op *plain = op_from(ways[0].ctx, SUBJECT);
    is_int(in_child(forbid_and_run, &(execution){.plan = early, .o = &o}), 42, "the early plan runs the compiled code");
    is_int(in_child(forbid_and_run, &(execution){.plan = late, .o = &o}), 42, "so does the late one");
    is_int(in_child(forbid_and_run, &(execution){.op = op, .o = &o}), 42, "and a call");
    is_int(in_child(forbid_and_run, &(execution){.op = plain, .o = &o}), 0, "what is interpreted does not");
    quern_op_release(plain);
  }
  quern_op_release(op);
  quern_ctx_release(ctx);
  memset(out[0], 0x55, N * 4), memset(out[1], 0x55, N);
  is_int(quern_plan_run(early, in, out, NULL), QUERN_OK, "the plan outlives its op and its context");
  ok(same_elements(&o.out[0], &first.out[0]), "  and its code");
  quern_plan_release(early);
  quern_plan_release(late);
  operands_free(&o);
  operands_free(&first);
}

static void test_async(void) {
  rng r;
  operands o;
  rng_seed(&r, 10);
  operands_vector(&o, "f32 f32 f32 f32", "f32 bool", 1000, &r);
  hold_compiles(500);
  quern_ctx *ctx = ctx_of(QUERN_JIT_ASYNC);
  double start = now_ms();
  quern_op *op = op_from(ctx, SUBJECT);
  const quern_status status = operands_call(op, &o, NULL);
  const double first = now_ms() - start;
  is_int(status, QUERN_OK, "with the compiler held for 500 ms");
  ok(first < 100, "  the first result comes after %.2f ms (10 wanted, 100 allowed)", first);
  is_str(tier_of(op, &o, NULL), "interpreter", "  from the interpreter");
  is_str(explained(op, &o, NULL, "compiles"), "0", "  nothing was compiled by then");
  quern_op *other = op_from(ctx, "y = a * b - c * d; z = y < 0");
  start = now_ms();
  is_int(operands_call(other, &o, NULL), QUERN_OK, "a second expression");
  ok(now_ms() - start < 100, "  its first result comes after %.2f ms (1 wanted, 100 allowed)", now_ms() - start);
  ok(becomes(op, &o, NULL, compiler), "the first one is compiled");
  ok(now_ms() - start > 300, "  when it may be");
  is_int(operands_call(op, &o, NULL), QUERN_OK, "  a later call");
  is_str(explained(op, &o, NULL, "compiles"), "1", "  one compile");
  ok(strtod(explained(op, &o, NULL, "compile_ms"), NULL) > 0, "  that took %s ms",
     explained(op, &o, NULL, "compile_ms"));
  hold_compiles(0); /* the second one's turn will not have come */
  quern_op_release(op);
  quern_op_release(other);
  quern_ctx_release(ctx);
  operands_free(&o);
}

/* ---- Threads ---------------------------------------------------------------------------------------------------- */

#define N_THREADS 32

typedef struct crowd {
  quern_ctx *ctx;
  const char *const *texts;
  int n_texts;
  pthread_barrier_t barrier;
  atomic_int n_failed, n_next;
  operands reference;
} crowd;

static void *one_of_many(void *arg) {
  crowd *c = arg;
  rng r;
  operands o;
  quern_op *op = NULL;
  const int me = atomic_fetch_add(&c->n_next, 1);
  rng_seed(&r, 11);
  operands_vector(&o, "f32 f32", "f32", 2000, &r);
  pthread_barrier_wait(&c->barrier);
  if (quern_op_compile(c->ctx, c->texts[me % c->n_texts], &op) || operands_call(op, &o, NULL) ||
      !same_elements(&o.out[0], &c->reference.out[0]))
    atomic_fetch_add(&c->n_failed, 1);
  if (!becomes(op, &o, NULL, compiler) || strcmp(explained(op, &o, NULL, "compiles"), "1") != 0) {
    diag("thread %d: tier %s, compiles %s", me, tier_of(op, &o, NULL), explained(op, &o, NULL, "compiles"));
    atomic_fetch_add(&c->n_failed, 1);
  }
  if (operands_call(op, &o, NULL) || !same_elements(&o.out[0], &c->reference.out[0])) atomic_fetch_add(&c->n_failed, 1);
  quern_op_release(op);
  operands_free(&o);
  return NULL;
}

typedef struct ear {
  atomic_int n_compiled, n_warnings;
  char warning[512];
} ear;

static void hear(void *host, int level, const char *text) {
  ear *e = host;
  if (strstr(text, "compiled by")) atomic_fetch_add(&e->n_compiled, 1);
  if (level > 1) return;
  atomic_fetch_add(&e->n_warnings, 1);
  snprintf(e->warning, sizeof e->warning, "%s", text);
}

static void test_threads(int32_t jit, const char *name) {
  /* One kernel: names and blanks do not make another. */
  static const char *const texts[] = {"y = tanh(x * w) + 7", "out = tanh(a*b) +7;", "named: other = tanh ( q * r ) + 7",
                                      "r=tanh(x/*the*/*w)+7"};
  pthread_t threads[N_THREADS];
  ear heard = {0};
  rng r;
  crowd c = {.texts = texts, .n_texts = 4};
  c.ctx = ctx_with((quern_options){.jit = jit, .threads = 1, .cc = compiler_option, .log = hear, .host = &heard});
  rng_seed(&r, 11);
  operands_vector(&c.reference, "f32 f32", "f32", 2000, &r);
  quern_op *op = op_from(ways[0].ctx, texts[0]);
  if (operands_call(op, &c.reference, NULL)) bail("%s", quern_last_error());
  quern_op_release(op);
  pthread_barrier_init(&c.barrier, NULL, N_THREADS);
  for (int i = 0; i < N_THREADS; i++)
    if (pthread_create(&threads[i], NULL, one_of_many, &c)) bail("no thread");
  for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
  is_int(c.n_failed, 0, "%s: 32 threads on one new expression, written in four ways: right results", name);
  quern_ctx_release(c.ctx);
  is_int(heard.n_compiled, 1, "  one compile");
  is_int(heard.n_warnings, 0, "  no warning");
  pthread_barrier_destroy(&c.barrier);
  operands_free(&c.reference);
}

/* ---- QUERN_JIT -------------------------------------------------------------------------------------------------- */

static const char *described(quern_ctx *ctx, const char *key) {
  static char text[8192];
  if (quern_ctx_describe(ctx, text, sizeof text)) bail("%s", quern_last_error());
  return line_of(text, key);
}

static void test_variable(void) {
  static const char *const names[] = {"off", "sync", "async"};
  rng r;
  operands o;
  rng_seed(&r, 12);
  operands_vector(&o, "f32", "f32", 100, &r);
  for (int i = 0; i < 3; i++) {
    setenv("QUERN_JIT", names[i], 1);
    quern_ctx *ctx = ctx_of(QUERN_JIT_DEFAULT);
    is_str(described(ctx, "jit"), names[i], "QUERN_JIT=%s", names[i]);
    quern_op *op = op_from(ctx, "x * x + 3");
    is_int(operands_call(op, &o, NULL), QUERN_OK, "  a call");
    if (i == 0 || (i == 1 && compiler))
      is_str(tier_of(op, &o, NULL), i ? compiler : "interpreter", "  runs as it says");
    quern_op_release(op);
    quern_ctx_release(ctx);
    ctx = ctx_of(QUERN_JIT_OFF);
    is_str(described(ctx, "jit"), "off", "  the host's own word goes before it");
    quern_ctx_release(ctx);
  }
  setenv("QUERN_JIT", "never", 1);
  ear heard = {0};
  quern_ctx *ctx = ctx_with((quern_options){.cc = compiler_option, .log = hear, .host = &heard});
  is_str(described(ctx, "jit"), "async", "QUERN_JIT=never: async");
  for (int i = 0; i < 3; i++) {
    char text[40];
    snprintf(text, sizeof text, "x * x + %d", i);
    quern_op *op = op_from(ctx, text);
    operands_call(op, &o, NULL);
    quern_op_release(op);
  }
  is_int(heard.n_warnings, 1, "  one warning");
  has_str(heard.warning, "never", "  names it");
  quern_ctx_release(ctx);
  unsetenv("QUERN_JIT");
  ctx = ctx_of(QUERN_JIT_DEFAULT);
  is_str(described(ctx, "jit"), "async", "unset: async");
  quern_ctx_release(ctx);
  quern_options bad = {.size = sizeof bad, .jit = 7};
  is_int(quern_ctx_create(&bad, &ctx), QUERN_E_ARGUMENT, "a mode that is none");
  operands_free(&o);
}

/* ---- Releases --------------------------------------------------------------------------------------------------- */

static void test_releases(void) {
  rng r;
  operands o, reference;
  const int is_held = strcmp(compiler, "clang") == 0;
  rng_seed(&r, 13);
  operands_vector(&o, "f32 f32 f32 f32", "f32 bool", 1000, &r);
  operands_vector(&reference, "f32 f32 f32 f32", "f32 bool", 1000, &r);
  for (int k = 0; k < 4; k++) memcpy(reference.in[k].t.data, o.in[k].t.data, 4000);
  quern_op *plain = op_from(ways[0].ctx, SUBJECT);
  operands_call(plain, &reference, NULL);
  quern_op_release(plain);

  if (is_held) hold_compiles(200);
  quern_ctx *ctx = ctx_of(QUERN_JIT_ASYNC);
  quern_op *op = op_from(ctx, SUBJECT);
  is_int(operands_call(op, &o, NULL), QUERN_OK, "an op is released while its code is being compiled");
  quern_op_release(op);
  sleep_ms(300);
  op = op_from(ctx, SUBJECT);
  is_int(operands_call(op, &o, NULL), QUERN_OK, "  the same expression once more");
  ok(becomes(op, &o, NULL, compiler), "  comes to code");
  is_str(explained(op, &o, NULL, "compiles"), "1", "  that was not made twice");

  quern_op *late = op_from(ctx, "y = a + b * c - d; z = y == 0");
  is_int(operands_call(late, &o, NULL), QUERN_OK, "an op whose code is being compiled");
  quern_ctx_release(ctx);
  ok(becomes(late, &o, NULL, compiler), "  gets it though its context was released");
  is_int(operands_call(op, &o, NULL), QUERN_OK, "  ops outlive the release of their context");
  ok(same_elements(&o.out[0], &reference.out[0]), "  with all they have");
  quern_op_release(op);
  quern_op_release(late);

  if (is_held) hold_compiles(600);
  ctx = ctx_of(QUERN_JIT_ASYNC);
  for (int i = 0; i < 20; i++) {
    char text[64];
    snprintf(text, sizeof text, "y = a * b + c * d + %d; z = y > 0", i);
    op = op_from(ctx, text);
    if (operands_call(op, &o, NULL)) bail("%s", quern_last_error());
    quern_op_release(op);
  }
  sleep_ms(30); /* the first is under way */
  double start = now_ms();
  quern_ctx_release(ctx);
  if (is_held)
    ok(now_ms() - start < 300, "a context with 20 compiles to come is gone after %.1f ms", now_ms() - start);
  else
    skip(1, "only Clang in process can be held");
  hold_compiles(0);
  ctx = ctx_of(QUERN_JIT_SYNC);
  op = op_from(ctx, SUBJECT);
  is_int(operands_call(op, &o, NULL), QUERN_OK, "another context compiles after that");
  is_str(tier_of(op, &o, NULL), compiler, "  tier");
  ok(same_elements(&o.out[0], &reference.out[0]) && same_elements(&o.out[1], &reference.out[1]), "  the same bits");
  quern_op_release(op);
  quern_ctx_release(ctx);
  operands_free(&o);
  operands_free(&reference);
}

/* ---- The end of the process ------------------------------------------------------------------------------------- */

/* What this program does when it is given a number: asks for code, and ends so many microseconds later. */
static int ends_soon(int us) {
  rng r;
  operands o;
  rng_seed(&r, 20);
  operands_vector(&o, "f32 f32 f32 f32", "f32 bool", 1000, &r);
  if (SANITIZED && strncmp(described(NULL, "clang"), "not found", 9) != 0) { /* see test_exit */
    operands first;
    quern_op *op = op_from(NULL, "y = a * 5 - 2");
    operands_vector(&first, "f32", "f32", 100, &r);
    if (operands_call(op, &first, NULL) || !becomes(op, &first, NULL, "clang")) return 2;
    operands_free(&first);
    quern_op_release(op);
  }
  quern_op *op = op_from(NULL, SUBJECT), *other = op_from(NULL, "y = exp(a) * tanh(b) + c; z = d > 0");
  if (operands_call(op, &o, NULL) || operands_call(other, &o, NULL)) return 1;
  usleep((useconds_t)us);
  operands_free(&o);
  quern_op_release(op);
  quern_op_release(other);
  return 0;
}

static int run_again(void *arg) {
  if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) return 99;
  execl("/proc/self/exe", "t590-tiers", (const char *)arg, (char *)NULL);
  return 98;
}

/* From when nothing is loaded to when all is compiled. */
static void test_exit(void) {
  enum { N = 28 };
  char us[16];
  unsetenv("QUERN_JIT");
  hold_compiles(0);
  if (SANITIZED && strcmp(compiler, "clang") == 0) /* module.c says why */
    skip(1, "the process ends while Clang is being opened: a sanitizer lets LLVM's destructors run then");
  group_begin("the process ends while code is being compiled");
  for (int i = 0; i < N; i++) {
    snprintf(us, sizeof us, "%d", i * 3500);
    const double start = now_ms();
    const int status = in_child(run_again, us);
    group_count(1);
    if (status == -1) {
      group_fail("%s us after it asked: it hangs", us);
      break;
    }
    if (status) group_fail("%s us after it asked: %s %d", us, status > 1000 ? "signal" : "status", status % 1000);
    if (!SANITIZED && now_ms() - start > 5000) group_fail("%s us after it asked: it ends after %.0f ms", us, now_ms() - start);
  }
  group_end();
}

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

static size_t heap_bytes(void) { return mallinfo2().uordblks + mallinfo2().hblkhd; }

/* Mappings that may be executed and are no file's. */
static int n_code_mappings(void) {
  char line[4096];
  int n = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) {
    unsigned long inode;
    char rights[8];
    n += sscanf(line, "%*s %7s %*s %*s %lu", rights, &inode) == 2 && rights[2] == 'x' && !inode && !strchr(line, '[');
  }
  if (maps) fclose(maps);
  return n;
}

static void many_expressions(quern_ctx *ctx, operands *o, int from, int n) {
  char text[64];
  for (int i = from; i < from + n; i++) {
    snprintf(text, sizeof text, "y = (x * %d + w) * %d", i, i % 7 + 2);
    quern_op *op = op_from(ctx, text);
    if (operands_call(op, o, NULL)) bail("%s", quern_last_error());
    quern_op_release(op);
  }
}

/* To be called first: what Clang does in the background would count, too. */
static void test_many_interpreted(void) {
  rng r;
  operands o;
  rng_seed(&r, 14);
  operands_vector(&o, "f32 f32", "f32", 100, &r);
  if (SANITIZED) {
    skip(3, "memory is the sanitizer's");
  } else {
    quern_ctx *ctx = ctx_of(QUERN_JIT_OFF);
    many_expressions(ctx, &o, 0, 2); /* what a process makes once */
    quern_ctx_release(ctx);
    const size_t before = heap_bytes();
    ctx = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 1, .kernel_memory_limit = 1 << 16});
    many_expressions(ctx, &o, 0, 400);
    const size_t start = heap_bytes();
    many_expressions(ctx, &o, 400, 2000);
    const size_t end = heap_bytes();
    ok(end < start + 65536, "2000 expressions, made, called and released: %ld bytes more", (long)(end - start));
    quern_ctx_release(ctx);
    const size_t after = heap_bytes();
    ok(after < before + 16384, "  all of it is given back with the context: %ld bytes left", (long)(after - before));
    ctx = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 1});
    quern_op *op = op_from(ctx, "y = x * w + 1");
    operands_call(op, &o, NULL);
    const size_t one = heap_bytes();
    for (int i = 0; i < 2000; i++) {
      quern_op *again = op_from(ctx, "y = x * w + 1");
      operands_call(again, &o, NULL);
      quern_op_release(again);
    }
    ok(heap_bytes() < one + 4096, "the same one 2000 times: %ld bytes more", (long)(heap_bytes() - one));
    quern_op_release(op);
    quern_ctx_release(ctx);
  }
  operands_free(&o);
}

static void test_many_compiled(void) {
  rng r;
  operands o;
  rng_seed(&r, 14);
  operands_vector(&o, "f32 f32", "f32", 100, &r);
  if (!compiler) {
    skip(3, "no compiler here");
  } else {
    const int before = n_code_mappings();
    quern_ctx *ctx = ctx_with(
        (quern_options){.jit = QUERN_JIT_SYNC, .threads = 1, .cc = compiler_option, .kernel_memory_limit = 1 << 15});
    many_expressions(ctx, &o, 0, 30);
    const int some = n_code_mappings();
    ok(some - before < 20, "30 compiled, 32 KB kept: %d of them are mapped", some - before);
    quern_op *op = op_from(ctx, "y = (x * 29 + w) * 3");
    is_int(operands_call(op, &o, NULL), QUERN_OK, "  the last one is called again");
    is_str(explained(op, &o, NULL, "compiles"), "1", "  it was kept");
    quern_op_release(op);
    quern_ctx_release(ctx);
    is_int(n_code_mappings() - before, 0, "  none is mapped when the context is gone");
  }
  operands_free(&o);
}

#define DOZEN "y = exp((a + b * c - d) * (e + f) / (abs(g) + 1)) * h + a - minimum(b, c)"

/* A thread on a stack of ours, painted before: how much of it was used. */
typedef struct small_thread {
  void (*body)(void *arg);
  void *arg;
} small_thread;

static void *run_small(void *arg) {
  small_thread *t = arg;
  t->body(t->arg);
  return NULL;
}

#define SMALL_STACK (64 * 1024)

static long taken; /* what a thread takes of it before it does anything: this program's thread-local variables */

static long stack_used(void (*body)(void *arg), void *arg) {
  pthread_attr_t attributes;
  pthread_t thread;
  small_thread t = {body, arg};
  const size_t guard = 65536, size = taken ? (size_t)(SMALL_STACK + taken + 4095) / 4096 * 4096 : 1 << 20;
  unsigned char *memory = mmap(NULL, size + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                *low = memory + guard;
  if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE)) bail("no stack");
  memset(low, 0xa5, size);
  pthread_attr_init(&attributes);
  if (pthread_attr_setstack(&attributes, low, size) || pthread_create(&thread, &attributes, run_small, &t))
    bail("no thread");
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  size_t untouched = 0;
  while (untouched < size && low[untouched] == 0xa5) untouched++;
  munmap(memory, size + guard);
  return (long)(size - untouched) - taken;
}

typedef struct small_call {
  quern_ctx *ctx;
  quern_op *op;
  operands o;
  const char *text;
  quern_status status;
} small_call;

static void do_nothing(void *arg) { (void)arg; }
static void call_small(void *arg) {
  small_call *c = arg;
  c->status = operands_call(c->op, &c->o, NULL);
}
static void make_small(void *arg) {
  small_call *c = arg;
  c->status = quern_op_compile(c->ctx, c->text, &c->op);
}

/* Its result: KB of stack; 200: an error. */
static int first_in_child(void *arg) {
  small_call *c = arg;
  const long used = stack_used(call_small, c);
  return c->status ? 200 : (int)((used + 1023) / 1024);
}
static int made_in_child(void *arg) {
  small_call *c = arg;
  const long used = stack_used(make_small, c);
  return c->status ? 200 : (int)((used + 1023) / 1024);
}
static int refused_in_child(void *arg) {
  small_call *c = arg;
  const long used = stack_used(make_small, c);
  return c->status != QUERN_E_LIMIT ? 200 : (int)((used + 1023) / 1024);
}

static void host_slices(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg);

typedef struct slice_of {
  void (*slice)(void *arg, int64_t i);
  void *arg;
  int64_t i;
} slice_of;

static void run_slice(void *arg) {
  const slice_of *s = arg;
  s->slice(s->arg, s->i);
}

static long most_of_a_slice;
static int n_slices_seen;

static void host_slices(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg) {
  (void)host;
  for (int64_t i = 0; i < n; i++) {
    slice_of s = {slice, arg, i};
    const long used = stack_used(run_slice, &s);
    n_slices_seen++;
    if (used > most_of_a_slice) most_of_a_slice = used;
  }
}

static void test_stack(void) {
  static const char *const ins = "f32 f32 f32 f32 f32 f32 f32 f32";
  static const char *const odd = "f16 f32 u8 f32 i32 bf16 f32 f16";
  rng r;
  if (SANITIZED) {
    skip(11, "frames are larger where sanitizers look on");
    return;
  }
  rng_seed(&r, 15);
  taken = stack_used(do_nothing, NULL);
  diag("a thread takes %ld bytes for itself", taken);
  for (int is_odd = 0; is_odd < 2; is_odd++) {
    int64_t shape[2] = {90, 70};
    small_call c = {.ctx = ways[0].ctx, .op = op_from(ways[0].ctx, DOZEN)};
    operands_make(&c.o, is_odd ? odd : ins, "f32", 2, shape, &r);
    for (int k = 0; is_odd && k < 8; k += 3) { /* transposed: through blocks, by tables */
      c.o.in[k].strides[0] = 1;
      c.o.in[k].strides[1] = 90;
    }
    const int kb = in_child(first_in_child, &c);
    ok(kb <= 64, "%s: 12 ops on 8 operands, on 64 KB of stack: the first call takes %d KB",
       is_odd ? "mixed dtypes" : "f32", kb);
    is_int(operands_call(c.op, &c.o, NULL), QUERN_OK, "  a call elsewhere");
    const long used = stack_used(call_small, &c);
    ok(c.status == QUERN_OK && used <= 32768, "  a call takes %ld bytes", used);
    operands_free(&c.o);
    quern_op_release(c.op);
  }
  /* Where a first call asks for code, too: it looks for the compiler's files, and waits or does not. */
  for (int is_sync = 0; is_sync < 2; is_sync++) {
    const char *name = is_sync ? "sync" : "async";
    if (!compiler) {
      skip(1, "%s: no compiler of kernels is here", name);
      continue;
    }
    quern_ctx *ctx = ctx_of(is_sync ? QUERN_JIT_SYNC : QUERN_JIT_ASYNC);
    small_call c = {.ctx = ctx, .op = op_from(ctx, "y = exp(a * 3 + b) - 7")};
    operands_vector(&c.o, "f32 f32", "f32", 100, &r);
    const int kb = in_child(first_in_child, &c);
    ok(kb <= 40, "%s, on 64 KB of stack: the first call takes %d KB", name, kb);
    operands_free(&c.o);
    quern_op_release(c.op);
    quern_ctx_release(ctx);
  }
  /* Slices on the host's threads */
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 4, .parallel_for = host_slices});
  quern_op *op = op_from(ctx, DOZEN);
  operands o;
  operands_vector(&o, odd, "f32", 1000003, &r);
  is_int(operands_call(op, &o, NULL), QUERN_OK, "slices on threads of 64 KB");
  ok(n_slices_seen >= 2 && most_of_a_slice <= 32768, "  %d slices take %ld bytes at most", n_slices_seen,
     most_of_a_slice);
  operands_free(&o);
  quern_op_release(op);
  quern_ctx_release(ctx);
  /* Reading a text: as deep as may be, and deeper */
  char text[2000] = "y = ";
  for (int i = 0; i < 200; i++) strcat(text, "(");
  strcat(text, "x");
  for (int i = 0; i < 200; i++) strcat(text, ")");
  small_call c = {.ctx = ways[0].ctx, .text = text};
  int kb = in_child(made_in_child, &c);
  ok(kb <= 64, "200 parentheses are read on 64 KB of stack: %d KB", kb);
  text[4] = 0;
  for (int i = 0; i < 190; i++) strcat(text, "-~exp(");
  kb = in_child(refused_in_child, &c);
  ok(kb <= 64, "  what is too deep is refused there: %d KB", kb);
}

static long status_kb(const char *key) {
  char line[256];
  long kb = -1;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status)) {
    if (strncmp(line, key, strlen(key)) == 0) kb = strtol(line + strlen(key) + 1, NULL, 10);
  }
  if (status) fclose(status);
  return kb;
}

static void test_large(void) {
  enum { N = 10000000 };
  rng r;
  operands o, small;
  rng_seed(&r, 16);
  quern_op *op = op_from(ways[0].ctx, "y = gelu(a * b + c) * (a - c)");
  int64_t n = SANITIZED ? N / 20 : N;
  operands_vector(&small, "f32 f32 f32", "f32", n / 10, &r);
  operands_vector(&o, "f32 f32 f32", "f32", n, &r);
  is_int(operands_call(op, &small, NULL), QUERN_OK, "interpreted: 10^6 elements");
  const long before = status_kb("VmRSS");
  FILE *clear = fopen("/proc/self/clear_refs", "w");
  int is_cleared = clear && fputs("5", clear) >= 0;
  if (clear) is_cleared &= fclose(clear) == 0;
  is_int(operands_call(op, &o, NULL), QUERN_OK, "10^7 elements");
  const long most = status_kb("VmHWM");
  is_str(tier_of(op, &o, NULL), "interpreter", "  interpreted");
  if (SANITIZED || !is_cleared || before < 0)
    skip(1, "what a call takes cannot be told here");
  else
    ok(most - before <= 1024, "  %ld KB beyond the operands", most - before);
  operands_free(&o);
  operands_free(&small);
  quern_op_release(op);
}

/* ---- What is said ----------------------------------------------------------------------------------------------- */

static void test_describe(void) {
  quern_op *op = op_from(
      NULL, QUERN_KERNEL(bias_gelu, param scale; param shift; y = gelu(x + b) * scale; z = y + shift > 0; y - b));
  const quern_op_info *info = quern_op_describe(op);
  static const char *const names[] = {"x", "b", "y", "z", "out"};
  is_str(info->name, "bias_gelu", "its name");
  is_int(info->size, sizeof *info, "size");
  ok(info->n_in == 2 && info->n_out == 3 && info->n_params == 2, "2 inputs, 3 outputs, 2 parameters");
  for (int k = 0; k < 5; k++) {
    is_str(info->args[k].name, names[k], "  operand %d", k);
    is_int(info->args[k].is_output, k >= 2, "  is %s", k < 2 ? "read" : "written");
    is_int(info->args[k].may_alias, k < 2 ? 0 : 3, "  may be");
    is_str(info->args[k].dtypes, "bool i32 i64 u8 f16 bf16 f32 f64", "  takes");
  }
  is_str(info->params[0].name, "scale", "  the first parameter");
  is_str(info->params[1].name, "shift", "  the second one");
  ok(info->params[0].value.kind == QUERN_NONE && info->params[1].value.kind == QUERN_NONE, "  must be given");
  has_str(info->formula, "gelu(x + b) * scale", "its text");
  ok(info->doc && info->op_class == QUERN_CLASS_BASIC && !info->backward && info->preferred_alignment == 64,
     "the rest");
  quern_op_release(op);
  op = op_from(NULL, "x * 2");
  is_str(quern_op_describe(op)->name, "expression", "one without a name");
  is_str(quern_op_describe(op)->args[1].name, "out", "  its output");
  rng r;
  operands o;
  rng_seed(&r, 17);
  operands_vector(&o, "f32", "f32", 10, &r);
  char text[64], whole[8192];
  is_int(quern_op_explain(op, 1, o.ins, 1, o.outs, NULL, text, sizeof text), QUERN_E_LIMIT, "explain with little room");
  ok(strlen(text) < sizeof text, "  ends");
  is_int(quern_op_explain(op, 1, o.ins, 1, o.outs, NULL, whole, sizeof whole), QUERN_OK, "explain");
  static const char *const keys[] = {"tier", "reason", "variant", "isa", "threads", "nodes", "compile_ms", "compiles"};
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
    ok(*line_of(whole, keys[i]), "  has %s: %s", keys[i], line_of(whole, keys[i]));
  operands_free(&o);
  quern_op_release(op);
  static const char *const facts[] = {"version",   "isa",   "machine", "threads", "ops",   "jit",
                                      "generator", "clang", "cc",      "cuda",    "cache", "cache_state"};
  for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
    ok(*described(NULL, facts[i]), "describe: %s: %s", facts[i], described(NULL, facts[i]));
  is_int(quern_ctx_describe(NULL, text, 20), QUERN_E_LIMIT, "describe with little room");
  is_int(quern_ctx_describe(NULL, NULL, 20), QUERN_E_ARGUMENT, "describe with none");
}

static quern_status host_call(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                              const quern_call *call) {
  (void)self, (void)n_in, (void)in, (void)n_out, (void)out, (void)call;
  return QUERN_E_UNSUPPORTED;
}

/* Text of `n` times a piece between two others; static. */
static const char *long_text(const char *before, const char *piece, int n, const char *after) {
  static char texts[8][1 << 17];
  static int turn;
  char *text = texts[turn++ % 8], *at = stpcpy(text, before);
  for (int i = 0; i < n; i++) at += sprintf(at, piece, i, i); /* NOLINT */
  strcpy(at, after);
  return text;
}

static void test_errors(void) {
  quern_ctx *ctx = ctx_of(QUERN_JIT_OFF);
  const quern_op_def def = {
      .size = sizeof def, .name = "acme.host", .doc = "", .n_in = 1, .n_out = 1, .call = host_call};
  if (quern_op_register(ctx, &def)) bail("%s", quern_last_error());
  const struct {
    const char *text;
    quern_status status;
    const char *words;
  } cases[] = {
      {"", QUERN_E_SYNTAX, "expression:1:"},
      {"y = x +", QUERN_E_SYNTAX, "expression:1:8"},
      {"broken: y = x +\n  * 2", QUERN_E_SYNTAX, "broken:2:3"},
      {"y = (x + 1", QUERN_E_SYNTAX, "^"},
      {"y = x $ 2", QUERN_E_SYNTAX, "$"},
      {"y = a < b < c", QUERN_E_SYNTAX, "expression:1:"},
      {"y = a % b", QUERN_E_SYNTAX, "remainder"},
      {"y = x; y = x", QUERN_E_SYNTAX, "'y'"},
      {"y = x; x = y", QUERN_E_SYNTAX, "'x'"},
      {"PI = x", QUERN_E_SYNTAX, "PI"},
      {"f32 t = x;", QUERN_E_SYNTAX, "no output"},
      {"y = exp(x, x)", QUERN_E_SYNTAX, "exp"},
      {"y = lookup(x)", QUERN_E_SYNTAX, "lookup"},
      {"y = gleu(x)", QUERN_E_NOTFOUND, "gelu"},
      {"y = acme.swish(x)", QUERN_E_NOTFOUND, "acme.swish"},
      {"y = acme.host(x)", QUERN_E_UNSUPPORTED, "acme.host"},
      {long_text("y = ", "(", 201, "x"), QUERN_E_LIMIT, "200"},
      {long_text("y = x0", " + x%d", 32, ""), QUERN_E_LIMIT, "32"},
      {long_text("", "param p%d; ", 17, "y = x * p0"), QUERN_E_LIMIT, "16"},
      {long_text("y = x /*", "..........", 6600, "*/"), QUERN_E_LIMIT, "65536"},
      {long_text("y = x", " + 1", 2100, ""), QUERN_E_LIMIT, "2000"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    quern_op *op = NULL;
    const quern_status got = quern_op_compile(ctx, cases[i].text, &op);
    ok(got == cases[i].status, "'%.40s': %s, wanted %s",
       cases[i].text[0] == '\0'      ? ""
       : strchr(cases[i].text, '\n') ? "two lines"
                                     : cases[i].text,
       status_name(got), status_name(cases[i].status));
    has_str(quern_last_error(), cases[i].words, "  said");
    if (!got) quern_op_release(op);
  }
  quern_op *op = NULL;
  is_int(quern_op_compile(ctx, NULL, &op), QUERN_E_ARGUMENT, "no text");
  is_int(quern_op_compile(ctx, "x", NULL), QUERN_E_ARGUMENT, "no place for the op");

  static const struct {
    const char *text, *in, *out, *words;
  } calls[] = {
      {"x ^ w", "f32 f32", "f32", "as_u32"},
      {"x + w", "bool bool", "bool", ""},
      {"x + w", "f32 f32", "i32", "cast"},
      {"x > w", "f32 f32", "f32", NULL},
      {"x << w", "f32 i32", "f32", ""},
      {"remainder(x, w)", "f32 f32", "f32", NULL},
      {"y = 1; x", "f32", "i32 f32", "has no dtype"},
      {"i32 t = x; t", "f32", "i32", "cast"},
      {"x + 300", "u8", "u8", "300"},
  };
  rng r;
  rng_seed(&r, 18);
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    operands o;
    if (quern_op_compile(ctx, calls[i].text, &op)) {
      if (calls[i].words) fail("%s: %s", calls[i].text, quern_last_error());
      continue;
    }
    operands_vector(&o, calls[i].in, calls[i].out, 10, &r);
    if (calls[i].words)
      refuses(op, &o, NULL, QUERN_E_DTYPE, calls[i].words, calls[i].text);
    else
      is_int(operands_call(op, &o, NULL), QUERN_OK, "%s of %s", calls[i].text, calls[i].in);
    operands_free(&o);
    quern_op_release(op);
  }
  operands o;
  op = op_from(ctx, "x + w * 2");
  operands_vector(&o, "f32 f32", "f32", 10, &r);
  is_int(quern_op_call(op, 1, o.ins, 1, o.outs, NULL), QUERN_E_ARGUMENT, "too few inputs");
  is_int(quern_op_call(op, 2, o.ins, 0, NULL, NULL), QUERN_E_ARGUMENT, "no outputs");
  is_int(quern_op_call(op, 2, NULL, 1, o.outs, NULL), QUERN_E_ARGUMENT, "inputs are NULL");
  o.ins[1] = NULL;
  is_int(operands_call(op, &o, NULL), QUERN_E_ARGUMENT, "an input is NULL");
  has_str(quern_last_error(), "w", "  named");
  operands_point(&o);
  o.in[1].t.data = NULL;
  is_int(operands_call(op, &o, NULL), QUERN_E_ARGUMENT, "an input has no data");
  has_str(quern_last_error(), "w", "  named");
  operands_free(&o);
  operands_vector(&o, "f32 f32", "f32", 10, &r);
  o.in[0].t.device.device_type = o.in[1].t.device.device_type = o.out[0].t.device.device_type = kDLCUDA;
  is_int(operands_call(op, &o, NULL), QUERN_E_DEVICE, "tensors elsewhere");
  o.in[0].t.device.device_type = o.in[1].t.device.device_type = o.out[0].t.device.device_type = kDLCPU;
  o.in[1].t.dtype.bits = 24;
  is_int(operands_call(op, &o, NULL), QUERN_E_DTYPE, "a dtype that is none");
  operands_free(&o);
  quern_op_release(op);
  quern_ctx_release(ctx);
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

int main(int argc, char **argv) {
  forget_environment();
  if (argc == 2) return ends_soon(atoi(argv[1]));
  test_many_interpreted();
  find_compiler();
  ways[0] = (way){"interpreted", "interpreter", ctx_of(QUERN_JIT_OFF)};
  n_ways = 1;
  if (compiler) ways[n_ways++] = (way){"compiled", compiler, ctx_of(QUERN_JIT_SYNC)};
  for (int w = 0; w < n_ways; w++) {
    test_outputs(&ways[w]);
    test_params(&ways[w]);
    if (w == 0) test_param_terms();
    test_dtypes(&ways[w]);
    test_in_place(&ways[w]);
    test_shapes(&ways[w]);
  }
  test_overlap();
  test_read_only();
  test_infer();
  if (compiler) {
    test_same_bits();
    test_plans();
    if (strcmp(compiler, "clang") == 0)
      test_async();
    else
      skip(1, "only Clang in process can be held");
    test_threads(QUERN_JIT_SYNC, "sync");
    test_threads(QUERN_JIT_ASYNC, "async");
    test_releases();
    test_exit();
  } else {
    skip(1, "no compiler of kernels is here");
  }
  test_variable();
  test_many_compiled();
  test_stack();
  test_large();
  test_describe();
  test_errors();
  for (int w = 0; w < n_ways; w++) quern_ctx_release(ways[w].ctx);
  return done_testing();
}
