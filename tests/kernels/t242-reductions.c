/* SPDX-License-Identifier: Apache-2.0
 * tags: long memory threads-full
 *
 * t242-reductions: every reduction, over any axes of random shapes, layouts, dtypes and values, called in every form, on 1 to 8
 * threads, slices in any order, at every level, bit for bit against the law of order written down once more; what is refused.
 *
 *   t242-reductions         all of it
 *   t242-reductions quick   fewer cases, in this process only: what a level's process runs */
#include <unistd.h>

#include "reductions.h"

static int is_child, n_rounds = 1, first_round, n_expressions[N_FORMS];

/* ---- The law by itself ------------------------------------------------------------------------------------------- */

/* Nodes of 16 lanes that wait to be the left side of another. */
typedef struct waiting {
  float node[64][16];
  int depth;
} waiting;

static void join_last_two(waiting *w) {
  for (int lane = 0; lane < 16; lane++) w->node[w->depth - 2][lane] += w->node[w->depth - 1][lane];
  w->depth--;
}

/* The node on top is that of this index: joined with those of which it is the right side. */
static void arrived(waiting *w, int64_t index) {
  w->depth++;
  for (; index % 2 == 1; index /= 2) join_last_two(w);
}

static void ended(waiting *w) {
  while (w->depth > 1) join_last_two(w);
}

/* An axis, and one of at least 256 elements, or one of any length alone, as kernels may do it: what is missing is 0. */
static float sum_by_chunks(const float *x, int64_t n_outer, int64_t n) {
  static waiting outer, inner;
  float *total = outer.node[0];
  memset(&outer, 0, sizeof outer);
  for (int64_t i = 0; i < n_outer; i++, x += n) {
    memset(&inner, 0, sizeof inner);
    for (int64_t chunk = 0; chunk * 256 < n; chunk++) {
      float *node = inner.node[inner.depth];
      for (int lane = 0; lane < 16; lane++) node[lane] = chunk * 256 + lane < n ? x[chunk * 256 + lane] : 0;
      for (int k = 16; k < 256; k++) node[k % 16] += chunk * 256 + k < n ? x[chunk * 256 + k] : 0;
      arrived(&inner, chunk);
    }
    ended(&inner);
    memcpy(outer.node[outer.depth], inner.node[0], sizeof inner.node[0]);
    arrived(&outer, i);
  }
  ended(&outer);
  for (int half = 8; half >= 1; half /= 2)
    for (int lane = 0; lane < half; lane++) total[lane] += total[lane + half];
  return 0 + total[0];
}

/* The law's sum is that of kernels, within the bound that goes with the law; each element is combined once. */
static void test_law(void) {
  rng r;
  rng_seed(&r, 2400);
  group_begin("the law: by nodes and by chunks, its error, each element once");
  for (int i = 0; i < 900; i++) {
    const int64_t outer = i < 700 ? 1 : 1 + (int64_t)rng_below(&r, 40);
    const int64_t n = i < 600 ? i : i < 700 ? (int64_t)rng_below(&r, 70000) : 256 + (int64_t)rng_below(&r, 1000);
    const int64_t size = outer * n;
    law_value *x = malloc((size_t)(size + 1) * sizeof *x), total = {.u64 = 0};
    float *plain = malloc((size_t)(size + 1) * sizeof *plain);
    double exact = 0, magnitude = 0;
    for (int64_t k = 0; k < size; k++) {
      const uint64_t kind = rng_below(&r, 40);
      x[k].f32 = kind == 0 ? -0.0f : kind == 1 ? 1e-45f : (float)((rng_unit(&r) - 0.5) * ldexp(1, (int)rng_range(&r, -8, 8)));
      plain[k] = x[k].f32;
      exact += plain[k];
      magnitude += fabs(plain[k]);
    }
    /* axes of which the last one alone, or two together, have 256 elements */
    const int64_t half = n % 2 == 0 && n / 2 < 256 ? 2 : 1, extents[3] = {outer, half, n / half};
    const int64_t n_nodes = outer * ((n + 255) / 256);
    law_tree(law_add_f32, 3, extents, x, &total);
    const float a = 0 + total.f32, b = sum_by_chunks(plain, outer, n);
    group_count(1);
    if (memcmp(&a, &b, sizeof a) != 0) group_fail("%" PRId64 " times %" PRId64 " elements: %.9g and %.9g", outer, n, a, b);
    if (fabs(a - exact) > (19 + ceil(log2((double)(n_nodes ? n_nodes : 1))) + (outer > 1)) * 0x1p-24 * magnitude)
      group_fail("%" PRId64 " times %" PRId64 " elements: %.9g, exactly %.9g", outer, n, a, exact);

    int64_t any[4], left = size ? size : 1;
    uint64_t sum = 0;
    for (int k = 0; k < 4; k++) {
      any[k] = 1 + (int64_t)rng_below(&r, (uint64_t)(left < 300 ? left : 300));
      left = left / any[k] ? left / any[k] : 1;
    }
    const int64_t n_any = any[0] * any[1] * any[2] * any[3];
    for (int64_t k = 0; k < n_any && k < size; k++) sum += x[k].u64 = rng_u64(&r);
    group_count(1);
    if (n_any <= size && (!law_tree(law_add_u64, 4, any, x, &total) || total.u64 != sum))
      group_fail("[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]: an element is missing", any[0], any[1], any[2], any[3]);
    free(x);
    free(plain);
  }
  group_end();
}

/* ---- Examples ----------------------------------------------------------------------------------------------------
 * What is said of single cases, as numbers: the law and the library are held to them. Vectors, over their one axis. */

enum { MOST_EXAMPLE = 5 };
static const struct {
  law_op op;
  ref_dtype d, result;
  int n;
  double x[MOST_EXAMPLE], wanted;
} examples[] = {
    {LAW_SUM, REF_F32, REF_F32, 0, {0}, 0.0},
    {LAW_SUM, REF_F32, REF_F32, 1, {-0.0}, 0.0},
    {LAW_SUM, REF_F64, REF_F64, 3, {-0.0, -0.0, -0.0}, 0.0},
    {LAW_SUM, REF_F16, REF_F16, 2, {INFINITY, -INFINITY}, NAN},
    {LAW_SUM, REF_F16, REF_F16, 4, {65504, 65504, -65504, -65504}, 0},
    {LAW_SUM, REF_F16, REF_F16, 2, {65504, 65504}, INFINITY},
    {LAW_SUM, REF_F32, REF_F32, 3, {0x1p127, 0x1p127, -0x1p127}, 0x1p127}, /* the third is added to the first */
    {LAW_SUM, REF_F32, REF_F32, 3, {0x1p127, -0x1p127, 0x1p127}, INFINITY},
    {LAW_SUM, REF_BF16, REF_BF16, 3, {256, 1, -256}, 1},
    {LAW_SUM, REF_I8, REF_I64, 3, {127, 127, 127}, 381},
    {LAW_SUM, REF_U8, REF_U64, 2, {255, 255}, 510},
    {LAW_SUM, REF_U32, REF_U64, 2, {4294967295.0, 1}, 4294967296.0},
    {LAW_SUM, REF_I32, REF_I64, 2, {-2147483648.0, -1}, -2147483649.0},
    {LAW_SUM, REF_BOOL, REF_I64, 3, {1, 0, 1}, 2},
    {LAW_SUM, REF_I16, REF_I64, 0, {0}, 0},
    {LAW_PROD, REF_F32, REF_F32, 0, {0}, 1},
    {LAW_PROD, REF_U16, REF_U64, 0, {0}, 1},
    {LAW_PROD, REF_I32, REF_I64, 2, {65536, -65536}, -4294967296.0},
    {LAW_PROD, REF_BOOL, REF_I64, 2, {1, 1}, 1},
    {LAW_PROD, REF_F64, REF_F64, 3, {2, 3, -4}, -24},
    {LAW_PROD, REF_F32, REF_F32, 2, {INFINITY, 0}, NAN},
    {LAW_MEAN, REF_F32, REF_F32, 0, {0}, NAN},
    {LAW_MEAN, REF_I16, REF_F32, 0, {0}, NAN},
    {LAW_MEAN, REF_F64, REF_F64, 2, {-0.0, -0.0}, 0.0},
    {LAW_MEAN, REF_I8, REF_F32, 2, {127, 127}, 127},
    {LAW_MEAN, REF_BOOL, REF_F32, 4, {1, 0, 0, 0}, 0.25},
    {LAW_MEAN, REF_I32, REF_F64, 2, {2147483647, 2147483646}, 2147483646.5},
    {LAW_MEAN, REF_U32, REF_F64, 2, {4294967295.0, 4294967295.0}, 4294967295.0},
    {LAW_MEAN, REF_I64, REF_F64, 2, {9007199254740992.0, 0}, 4503599627370496.0},
    {LAW_MEAN, REF_F16, REF_F16, 2, {65504, 65504}, 65504},
    {LAW_MEAN, REF_F32, REF_F32, 2, {3e38, 3e38}, INFINITY},
    {LAW_MAX, REF_F32, REF_F32, 2, {-0.0, 0.0}, 0.0},
    {LAW_MAX, REF_F32, REF_F32, 2, {0.0, -0.0}, 0.0},
    {LAW_MAX, REF_F64, REF_F64, 3, {-0.0, -0.0, -1}, -0.0},
    {LAW_MAX, REF_F32, REF_F32, 3, {1, NAN, 2}, NAN},
    {LAW_MAX, REF_F16, REF_F16, 3, {NAN, INFINITY, 2}, NAN},
    {LAW_MAX, REF_F32, REF_F32, 2, {-INFINITY, -INFINITY}, -INFINITY},
    {LAW_MAX, REF_I8, REF_I8, 3, {-128, -127, -128}, -127},
    {LAW_MAX, REF_U64, REF_U64, 2, {0, 9223372036854775808.0}, 9223372036854775808.0},
    {LAW_MAX, REF_I64, REF_I64, 1, {-9223372036854775808.0}, -9223372036854775808.0},
    {LAW_MIN, REF_F32, REF_F32, 2, {-0.0, 0.0}, -0.0},
    {LAW_MIN, REF_F32, REF_F32, 2, {0.0, -0.0}, -0.0},
    {LAW_MIN, REF_F64, REF_F64, 3, {1, NAN, -INFINITY}, NAN},
    {LAW_MIN, REF_U8, REF_U8, 3, {255, 254, 255}, 254},
    {LAW_ANY, REF_F32, REF_BOOL, 0, {0}, 0},
    {LAW_ANY, REF_F32, REF_BOOL, 2, {-0.0, 0.0}, 0},
    {LAW_ANY, REF_F32, REF_BOOL, 2, {0, NAN}, 1},
    {LAW_ANY, REF_I16, REF_BOOL, 2, {0, 256}, 1},
    {LAW_ANY, REF_F64, REF_BOOL, 1, {5e-324}, 1},
    {LAW_ALL, REF_F32, REF_BOOL, 0, {0}, 1},
    {LAW_ALL, REF_F32, REF_BOOL, 2, {1, -0.0}, 0},
    {LAW_ALL, REF_F32, REF_BOOL, 2, {1, NAN}, 1},
    {LAW_ALL, REF_I64, REF_BOOL, 2, {4294967296.0, 1}, 1},
    {LAW_COUNT_NONZERO, REF_F32, REF_I64, 0, {0}, 0},
    {LAW_COUNT_NONZERO, REF_F32, REF_I64, 5, {NAN, 0, -0.0, 1, -INFINITY}, 3},
    {LAW_ARGMAX, REF_F32, REF_I64, 4, {1, 3, 3, 2}, 1},
    {LAW_ARGMAX, REF_F32, REF_I64, 2, {-0.0, 0.0}, 0},
    {LAW_ARGMAX, REF_F64, REF_I64, 5, {1, INFINITY, NAN, 2, NAN}, 2},
    {LAW_ARGMAX, REF_F32, REF_I64, 3, {-INFINITY, -INFINITY, -INFINITY}, 0},
    {LAW_ARGMAX, REF_I8, REF_I64, 3, {-128, -128, -127}, 2},
    {LAW_ARGMAX, REF_U8, REF_I64, 3, {127, 128, 128}, 1},
    {LAW_ARGMIN, REF_F32, REF_I64, 2, {0.0, -0.0}, 0},
    {LAW_ARGMIN, REF_F32, REF_I64, 3, {2, NAN, 1}, 1},
    {LAW_ARGMIN, REF_BF16, REF_I64, 3, {2, 1, 1}, 1},
    {LAW_LOGSUMEXP, REF_F32, REF_F32, 0, {0}, -INFINITY},
    {LAW_LOGSUMEXP, REF_F32, REF_F32, 2, {-INFINITY, -INFINITY}, -INFINITY},
    {LAW_LOGSUMEXP, REF_F64, REF_F64, 2, {INFINITY, 1}, INFINITY},
    {LAW_LOGSUMEXP, REF_F64, REF_F64, 2, {INFINITY, NAN}, NAN},
    {LAW_LOGSUMEXP, REF_F16, REF_F16, 1, {1000}, 1000},
    {LAW_VAR, REF_F32, REF_F32, 4, {1, 2, 3, 4}, 1.25},
    {LAW_VAR, REF_F64, REF_F64, 1, {7}, 0},
    {LAW_STD, REF_F32, REF_F32, 2, {1, 5}, 2},
    {LAW_SOFTMAX, REF_F32, REF_F32, 1, {1000}, 1},
    {LAW_SOFTMAX, REF_F64, REF_F64, 1, {-INFINITY}, NAN},
    {LAW_SOFTMAX, REF_F32, REF_F32, 1, {INFINITY}, NAN},
    {LAW_LOG_SOFTMAX, REF_F32, REF_F32, 1, {-1000}, 0},
};

static void test_examples(void) {
  group_begin("examples");
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
    const law_op op = examples[i].op;
    const int64_t n = examples[i].n;
    reduction c = {.op = op, .axes = -1, .is_default = 1, .values = "an example"};
    rng r;
    int64_t count;
    rng_seed(&r, 2402);
    operand_make(&c.in, examples[i].d, 1, &n, NULL, &r);
    operand_make(&c.out, examples[i].result, law_is_full(op), &n, NULL, &r);
    const ref_kind kind = ref_dtype_kind(examples[i].d);
    for (int64_t k = 0; k < n; k++) ref_put(c.in.d, ref_address(&c.in.t, &k), ref_cast(c.in.d, (ref_real)examples[i].x[k], kind));
    uint64_t *by_law = law_eval(op, &c.in.t, 1, 0, examples[i].result, map_by_library, &count);
    const uint64_t wanted = ref_cast(examples[i].result, (ref_real)examples[i].wanted, ref_dtype_kind(examples[i].result));
    group_count(1);
    if (count != 1 || by_law[0] != wanted || law_result(op, c.in.d) != examples[i].result)
      group_fail("example %zu, %s: the law gives 0x%" PRIx64 ", not 0x%" PRIx64, i, law_name(op), by_law[0], wanted);
    if (law_ops[op][0]) reduction_run(&c, &wanted, 1);
    free(by_law);
    operand_free(&c.in);
    operand_free(&c.out);
  }
  group_end();
}

/* Nothing to reduce, or nowhere to put it, over any axes. */
static void test_empty(law_op op) {
  static const int64_t shapes[][3] = {{0, 1, 1}, {3, 0, 1}, {0, 3, 1}, {0, 0, 1}, {2, 0, 3}, {0, 2, 0}, {1, 1, 1}, {1, 1, 0}};
  rng r;
  rng_seed(&r, 2404);
  group_begin("%s: empty axes", law_name(op));
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int ndim = 1; ndim <= 3; ndim++)
      for (int axes = 0; axes < 1 << ndim; axes++)
        for (int keepdims = 0; keepdims < (law_is_full(op) ? 1 : 2); keepdims++) {
          reduction c = {
              .op = op, .axes = axes, .keepdims = keepdims, .form = s % 2 ? CALLED : ALLOCATED, .values = "of empty axes"};
          const ref_dtype d = ndim == 2 && law_must_take(op, REF_I16) ? REF_I16 : REF_F32;
          int64_t shape[QUERN_MAX_NDIM], count;
          operand_make(&c.in, d, ndim, shapes[s], NULL, &r);
          operand_make(&c.out, law_result(op, d), output_shape(&c, shape), shape, NULL, &r);
          uint64_t *wanted = law_eval(op, &c.in.t, (uint64_t)axes, 0, c.out.d, map_by_library, &count);
          reduction_run(&c, wanted, count);
          free(wanted);
          operand_free(&c.in);
          operand_free(&c.out);
        }
  group_end();
}

/* Ones: a sum is rounded once and may be infinite, a mean divides before that; i8 does not wrap. */
static void test_ones(void) {
  static const struct {
    law_op op;
    ref_dtype d;
    double wanted;
  } ones[] = {{LAW_SUM, REF_F16, INFINITY}, {LAW_MEAN, REF_F16, 1},    {LAW_SUM, REF_BF16, 70144}, {LAW_MEAN, REF_BF16, 1},
              {LAW_SUM, REF_I8, 70000},     {LAW_MEAN, REF_U8, 1},     {LAW_SUM, REF_F32, 70000},  {LAW_MAX, REF_I8, 1},
              {LAW_ARGMAX, REF_U8, 0},      {LAW_SUM, REF_BOOL, 70000}};
  const int64_t n = 70000, still = 0;
  for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
    const law_op op = ones[i].op;
    if (!law_ops[op][0]) continue;
    for (int is_broadcast = 0; is_broadcast < 2; is_broadcast++) {
      reduction c = {.op = op, .axes = -1, .is_default = 1, .values = "70000 ones"};
      const ref_dtype result = law_result(op, ones[i].d);
      rng r;
      rng_seed(&r, 2403);
      group_begin("%s of 70000 %s in %s", law_name(op), is_broadcast ? "times 1" : "ones", ref_dtype_name(ones[i].d));
      operand_make(&c.in, ones[i].d, 1, &n, is_broadcast ? &still : NULL, &r);
      operand_make(&c.out, result, 0, NULL, NULL, &r);
      for (int64_t k = 0; k < n; k++) ref_put(c.in.d, ref_address(&c.in.t, &k), ref_cast(c.in.d, 1, ref_dtype_kind(c.in.d)));
      const uint64_t wanted = ref_cast(result, (ref_real)ones[i].wanted, ref_dtype_kind(result));
      reduction_run(&c, &wanted, 1);
      operand_free(&c.in);
      operand_free(&c.out);
      group_end();
    }
  }
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

enum {
  TAME, BINADES, MANY_BINADES, NEGATIVE_ZEROS, ZEROS, FEW_SPECIAL, INFINITIES, TIES, ANYTHING, NEAR_ONE, ENORMOUS, N_VALUES
};
static const char *const value_names[N_VALUES] = {
    "tame", "16 binades", "many binades", "all -0", "zeros and the least numbers", "few special ones", "infinities",
    "ties", "anything",   "near one",     "huge"};

static double signed_unit(rng *r) { return 2 * rng_unit(r) - 1; }

static uint64_t draw_float(rng *r, ref_dtype d, int values, int64_t rarity) {
  const uint64_t minus = rng_u64(r) & 1 ? (uint64_t)1 << (8 * ref_dtype_size(d) - 1) : 0;
  const int reach = ref_largest_exponent(d) < 100 ? ref_largest_exponent(d) : ref_largest_exponent(d) / 2;
  switch (values) {
    case BINADES: return bits_of(d, copysign(1 + rng_unit(r), signed_unit(r)) * ldexp(1, (int)rng_range(r, -8, 8)));
    case MANY_BINADES:
      return bits_of(d, copysign(1 + rng_unit(r), signed_unit(r)) * ldexp(1, (int)rng_range(r, -reach, reach - 4)));
    case NEGATIVE_ZEROS: return bits_of(d, -0.0);
    case ZEROS: return minus | rng_below(r, 2);
    case INFINITIES:
      return rng_below(r, (uint64_t)rarity) ? bits_of(d, signed_unit(r)) : bits_of(d, INFINITY) | minus;
    case TIES: return bits_of(d, (double)rng_range(r, -2, 2)) | (rng_below(r, 5) ? 0 : minus);
    case ANYTHING: return random_bits(r, d);
    case NEAR_ONE: return bits_of(d, copysign(1 + signed_unit(r) / 64, rng_below(r, 3) ? 1 : -1));
    case ENORMOUS: return bits_of(d, signed_unit(r) * ldexp(1.9, ref_largest_exponent(d)));
    case FEW_SPECIAL:
      if (rng_below(r, (uint64_t)rarity) == 0) return random_bits(r, d);
      return bits_of(d, signed_unit(r) * 8);
    default: return bits_of(d, signed_unit(r) * 8);
  }
}

static uint64_t draw_integer(rng *r, ref_dtype d, int values, int64_t rarity) {
  const int bits = 8 * ref_dtype_size(d);
  const uint64_t mask = ~(uint64_t)0 >> (64 - bits), top = (uint64_t)1 << (bits - 1);
  const int is_special = (values == ZEROS || values == FEW_SPECIAL) && rng_below(r, (uint64_t)rarity) == 0;
  if (values == ZEROS) return (uint64_t)is_special;
  if (d == REF_BOOL) return values == NEGATIVE_ZEROS ? 0 : values == FEW_SPECIAL ? !is_special : rng_u64(r) & 1;
  switch (values) {
    case NEGATIVE_ZEROS: return 0;
    case TIES: return (uint64_t)rng_range(r, d >= REF_U8 ? 0 : -2, 2) & mask;
    case NEAR_ONE: return rng_below(r, 9) ? 1 : (d >= REF_U8 ? 3 : mask);
    case ENORMOUS: return (rng_u64(r) & 1 ? top : top - 1) ^ (rng_u64(r) & 3);
    case TAME: return (uint64_t)rng_range(r, d >= REF_U8 ? 0 : -20, 20) & mask;
    case FEW_SPECIAL: return is_special ? random_bits(r, d) : 1 + rng_below(r, 100);
    default: return rng_u64(r) & mask;
  }
}

static uint64_t draw(rng *r, ref_dtype d, int values, int64_t rarity) {
  return ref_dtype_kind(d) == REF_KIND_FLOAT ? draw_float(r, d, values, rarity) : draw_integer(r, d, values, rarity);
}

/* row: how many elements a row has, of which some one may be special. */
static void fill(operand *o, rng *r, int values, int64_t row) {
  enum { BAG = 1021 };
  uint64_t bag[BAG];
  int64_t index[QUERN_MAX_NDIM + 1] = {0};
  const int64_t n = ref_n_elements(&o->t), rarity = row < 2 ? 2 : row;
  const int is_float = ref_dtype_kind(o->d) == REF_KIND_FLOAT, is_bagged = n > BAG;
  const int is_rare = values == FEW_SPECIAL || (is_float ? values == INFINITIES : values == ZEROS);
  scribble(o, r);
  if (n == 0) return;
  for (int k = 0; k < BAG && is_bagged; k++) bag[k] = draw(r, o->d, values, is_rare ? INT64_MAX : rarity);
  const run along = run_of(&o->t);
  do {
    char *at = ref_address(&o->t, index);
    for (int64_t k = 0; k < along.n; k++, at += along.step) {
      const int is_drawn = !is_bagged || (is_rare && rng_below(r, (uint64_t)rarity) == 0);
      ref_put(o->d, at, is_drawn ? draw(r, o->d, values, is_bagged ? 1 : rarity) : bag[rng_u64(r) % BAG]);
    }
  } while (ref_next_index(o->t.ndim - 1, o->t.shape, index));
}

/* ---- Shapes and layouts ------------------------------------------------------------------------------------------ */

static int64_t draw_extent(rng *r, int is_large, int64_t most) {
  static const int64_t large[] = {1,    2,    15,   16,   17,   30,    64,    100,   127,   128,   240,  255,
                                  256,  257,  272,  511,  513,  767,   768,   769,   1000,  1024,  1025, 2048,
                                  4095, 4096, 4097, 5000, 8191, 16385, 65535, 65536, 65537, 262145};
  static const int64_t small[] = {1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33};
  const int64_t extent =
      is_large ? large[rng_below(r, sizeof large / sizeof *large)] : small[rng_below(r, sizeof small / sizeof *small)];
  return extent <= most ? extent : is_large ? 1 + (int64_t)rng_below(r, (uint64_t)most) : 1;
}

/* At most `most` elements. */
static int draw_shape(rng *r, int64_t most, int64_t *shape) {
  const int ndim = rng_below(r, 20) == 0 ? (int)rng_range(r, 7, 32) : (int)rng_below(r, 7);
  int64_t n = 1;
  for (int k = 0; k < ndim; k++) shape[k] = 1;
  for (int k = 0; k < 2 && ndim; k++) {
    const int at = (int)rng_below(r, (uint64_t)ndim);
    n /= shape[at];
    n *= shape[at] = draw_extent(r, 1, most / n);
    if (rng_below(r, 3) == 0) break;
  }
  for (int k = 0; k < ndim; k++)
    if (shape[k] == 1 && (ndim < 8 || rng_below(r, 3) == 0)) n *= shape[k] = draw_extent(r, 0, most / n);
  if (ndim && rng_below(r, 25) == 0) shape[rng_below(r, (uint64_t)ndim)] = 0;
  return ndim;
}

/* ---- Random cases ------------------------------------------------------------------------------------------------ */

static int takes(law_op op, ref_dtype d) {
  const quern_arg_info *arg = &quern_op_describe(law_ops[op][0])->args[0];
  const char *name = ref_dtype_name(d), *at = arg->dtypes;
  const size_t length = strlen(name);
  for (; (at = strstr(at, name)); at += length)
    if ((at == arg->dtypes || at[-1] == ' ') && (at[length] == 0 || at[length] == ' ')) return 1;
  return 0;
}

/* Of the result's kind or a higher one. */
static ref_dtype draw_output(rng *r, ref_dtype result) {
  ref_dtype d = result;
  if (rng_below(r, 4)) return d;
  do d = (ref_dtype)rng_below(r, REF_N_DTYPES);
  while (ref_dtype_kind(d) < ref_dtype_kind(result));
  return d;
}

static int64_t draw_axes(rng *r, int ndim) {
  const uint64_t all = ((uint64_t)1 << ndim) - 1, kind = rng_below(r, 8);
  if (kind == 0) return -1;
  if (kind == 1) return (int64_t)all;
  if (kind == 2 && ndim) return (int64_t)1 << (ndim - 1);
  if (kind == 3 && ndim) return 1;
  return (int64_t)(rng_u64(r) & all);
}

/* The case once more as an expression: `y = sum(x, axis=(0, -1), keepdims=1)`, interpreted or compiled. */
static int run_expression(reduction *c, int form, const uint64_t *wanted, int64_t count, rng *r) {
  static quern_ctx *expressing[N_FORMS];
  char text[400];
  int n = snprintf(text, sizeof text, "y = %s(x", law_name(c->op)), n_axes = 0;
  const int is_backwards = rng_below(r, 2) == 0, ndim = c->in.t.ndim;
  if (!expressing[form]) {
    const quern_options options = {
        .size = sizeof options, .threads = 3, .jit = form == COMPILED ? QUERN_JIT_SYNC : QUERN_JIT_OFF, .cache_dir = ""};
    if (quern_ctx_create(&options, &expressing[form])) bail("%s", quern_last_error());
  }
  if (c->axes != -1) n += snprintf(text + n, sizeof text - (size_t)n, ", axis=(");
  for (int k = 0; k < ndim && c->axes != -1; k++) {
    const int axis = is_backwards ? ndim - 1 - k : k;
    if (mask_of(c) >> axis & 1)
      n += snprintf(text + n, sizeof text - (size_t)n, "%s%d", n_axes++ ? ", " : "", rng_below(r, 2) ? axis : axis - ndim);
  }
  if (c->axes != -1) n += snprintf(text + n, sizeof text - (size_t)n, n_axes == 1 ? ",)" : ")");
  if (c->keepdims) n += snprintf(text + n, sizeof text - (size_t)n, ", keepdims=1");
  snprintf(text + n, sizeof text - (size_t)n, ")");
  c->form = form;
  c->expression = NULL;
  scribble(&c->out, r);
  if (quern_op_compile(expressing[form], text, &c->expression)) {
    group_count(1);
    group_fail("%s: %s", text, quern_last_error());
    return 0;
  }
  c->note = text;
  n_expressions[form]++;
  const int good = reduction_run(c, wanted, count);
  quern_op_release(c->expression);
  c->expression = NULL;
  c->note = NULL;
  return good;
}

static void random_case(law_op op, ref_dtype d, int64_t most, rng *r) {
  reduction c = {.op = op};
  int64_t shape[QUERN_MAX_NDIM], out_shape[QUERN_MAX_NDIM], count, row = 1;
  const int ndim = draw_shape(r, most, shape);
  c.axes = draw_axes(r, ndim);
  c.keepdims = !law_is_full(op) && rng_below(r, 2);
  c.is_default = rng_below(r, 12) == 0;
  if (c.is_default) c.axes = -1, c.keepdims = 0;
  c.context = (int)rng_below(r, N_CONTEXTS);
  c.form = (int)rng_below(r, 10);
  if (c.form > IN_PLACE) c.form = CALLED;
  const ref_dtype result = law_result(op, d);
  if (c.form == IN_PLACE && (!law_is_full(op) || result != d)) c.form = CALLED;
  const int values = (int)rng_below(r, N_VALUES);
  c.values = value_names[values];
  operand_lay_out(&c.in, d, ndim, shape, c.form == IN_PLACE, r);
  for (int k = 0; k < ndim; k++)
    if (mask_of(&c) >> k & 1) row *= shape[k];
  fill(&c.in, r, values, row);
  if (law_has_correction(op) && !c.is_default && row > 2 && rng_below(r, 2)) c.correction = 1;
  if (law_has_initial(op)) {
    static const double initials[] = {0, 1, 2, 100, -3, 0.375, -1e30, INFINITY, NAN};
    const ref_kind kind = ref_dtype_kind(d);
    const int n_initials = kind == REF_KIND_FLOAT ? 9 : d >= REF_U8 || d == REF_BOOL ? 4 : 5;
    c.correction = c.is_default || rng_below(r, 3) == 0 ? law_default(op) : initials[rng_below(r, (uint64_t)n_initials)];
  }
  const ref_dtype out = c.form == ALLOCATED || c.form == IN_PLACE ? result : draw_output(r, result);
  const int out_ndim = output_shape(&c, out_shape);
  if (c.form != IN_PLACE) {
    operand_lay_out(&c.out, out, out_ndim, out_shape, 1, r);
    scribble(&c.out, r);
  }
  uint64_t *wanted = law_eval(op, &c.in.t, mask_of(&c), c.correction, out, map_by_library, &count);
  int good = reduction_run(&c, wanted, count);
  /* Large ones on every number of threads. */
  const int64_t n = ref_n_elements(&c.in.t);
  if (good && (n > 200000 || (n > 60000 && rng_below(r, 4) == 0)) && c.form != IN_PLACE && !is_child)
    for (c.context = 0; c.context < N_CONTEXTS && good; c.context++) good = reduction_run(&c, wanted, count);
  const int turn = (int)rng_below(r, SANITIZED ? 6 : 60);
  if (good && c.form != IN_PLACE && c.correction == law_default(op) && turn < 12 && !law_is_refused(op, &c.in.t, mask_of(&c))) {
    c.context = 3;
    run_expression(&c, turn == 0 && !is_child && !SANITIZED ? COMPILED : INTERPRETED, wanted, count, r);
  }
  free(wanted);
  operand_free(&c.in);
  operand_free(&c.out);
}

static void test_dtypes(law_op op) {
  group_begin("%s: its dtypes", law_name(op));
  for (int d = 0; d < REF_N_DTYPES; d++) {
    operand x;
    quern_shape shape = {.size = sizeof shape};
    const int64_t extents[2] = {3, 4};
    operand_describe(&x, (ref_dtype)d, 2, extents, NULL);
    DLTensor *in = &x.t;
    const quern_status status = quern_op_infer(law_ops[op][0], 1, &in, 1, &shape);
    group_count(1);
    if (law_must_take(op, (ref_dtype)d) && !takes(op, (ref_dtype)d)) group_fail("%s is missing", ref_dtype_name((ref_dtype)d));
    if (!takes(op, (ref_dtype)d)) {
      if (status != QUERN_E_DTYPE) group_fail("%s: status %s", ref_dtype_name((ref_dtype)d), status_name(status));
      continue;
    }
    if (status) group_fail("%s: %s", ref_dtype_name((ref_dtype)d), quern_last_error());
    else if (shape.ndim != (law_is_full(op) ? 2 : 0))
      group_fail("%s: inferred with %d dimensions", ref_dtype_name((ref_dtype)d), shape.ndim);
    else if (ref_dtype_of(shape.dtype) != law_result(op, (ref_dtype)d))
      group_fail("%s: gives %d, wanted %s", ref_dtype_name((ref_dtype)d), ref_dtype_of(shape.dtype),
                 ref_dtype_name(law_result(op, (ref_dtype)d)));
  }
  group_end();
}

/* Does the library's definition of the op for this dtype stand in the law? That of rows of integers does not. */
static int is_defined(law_op op, ref_dtype d) { return ref_dtype_kind(d) == REF_KIND_FLOAT || !law_has_correction(op); }

static void test_random(law_op op) {
  const int is_most = op == LAW_SUM || op == LAW_MEAN || op == LAW_MAX || op == LAW_ARGMAX || op == LAW_SOFTMAX;
  const int is_like_others = (op >= LAW_PTP && op <= LAW_ARGMIN_LAST) || op >= LAW_SOFTMIN; /* made of the same parts */
  group_begin("%s: any shape, axes, layout, values", law_name(op));
  for (int round = first_round; round < first_round + n_rounds; round++)
    for (int d = 0; d < REF_N_DTYPES; d++) {
      rng r;
      if (!takes(op, (ref_dtype)d) || !is_defined(op, (ref_dtype)d)) continue;
      rng_seed(&r, 2410 + 100 * (uint64_t)op + (uint64_t)d + 10000 * (uint64_t)round);
      const int is_wide = d == REF_F32 || d == REF_F64;
      int n = (is_most ? 20 : is_like_others ? 4 : 8) * (is_wide ? 3 : 1);
      if (is_child || SANITIZED) n = (n + 3) / 4;
      for (int i = 0; i < n; i++) {
        int64_t most = rng_below(&r, 8) ? 5000 : 80000;
        if (i % 40 == 3 && is_wide && !SANITIZED) most = 600000;
        if ((law_is_full(op) || op == LAW_LOGSUMEXP) && most > 5000) most /= 8; /* exp and log by calls */
        random_case(op, (ref_dtype)d, most, &r);
      }
    }
  group_end();
}

/* ---- What is refused --------------------------------------------------------------------------------------------- */

typedef struct parts {
  quern_op *op;
  const quern_op_info *info;
  operand in, out;
} parts;

static void check_refused(parts *p, const quern_call *call, quern_status wanted, const char *what) {
  DLTensor *in = &p->in.t, *out = &p->out.t;
  operand_save(&p->out);
  const quern_status status = quern_op_call(p->op, 1, &in, 1, &out, call);
  is_int(status, wanted, "%s: %s: %s", p->info->name, what, status ? quern_last_error() : "");
  ok(operand_same(&p->out), "  and the output is as it was");
}

static const quern_call *with(named_params *p, const quern_op_info *info, const char *name, quern_scalar value) {
  params_begin(p);
  if (!params_set(p, info, name, value)) fail("%s has no parameter %s", info->name, name);
  return &p->call;
}

/* QUERN_AXES: axes as NumPy counts them, as bits. */
static void test_axes(void) {
  static const struct {
    int32_t ndim, n, axes[3];
    int64_t bits;
  } rows[] = {{3, 1, {-1}, 4}, {3, 2, {0, -1}, 5}, {3, 3, {2, 1, 0}, 7}, {1, 1, {-1}, 1}, {3, 0, {0}, 0}, {32, 1, {-1}, INT64_C(1) << 31},
              {3, 1, {3}, INT64_MIN}, {3, 1, {-4}, INT64_MIN}, {3, 2, {2, -1}, INT64_MIN}, {0, 1, {0}, INT64_MIN}, {0, 1, {-1}, INT64_MIN},
              {33, 1, {32}, INT64_MIN}, {3, 1, {INT32_MIN}, INT64_MIN}, {3, 1, {INT32_MAX}, INT64_MIN}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    const quern_scalar made = quern_scalar_axes(rows[k].ndim, rows[k].n, rows[k].axes);
    ok(made.kind == (QUERN_I64) && made.v.i == rows[k].bits, "axes: row %zu", k);
  }
  ok(QUERN_AXES(3, 0, -1).v.i == 5 && QUERN_AXES(2, -1).v.i == 2 && QUERN_ALL_AXES.v.i == -1, "axes: the macros");
}

static void test_refused(law_op op) {
  const int is_full = law_is_full(op);
  const int64_t shape[2] = {6, 50}, wrong[2] = {6, 49}, shape_of_rows = 6, wrong_rows = 7, still[1] = {0};
  const ref_dtype result = law_result(op, REF_F32);
  named_params n;
  parts p = {.op = law_ops[op][0]};
  p.info = quern_op_describe(p.op);
  rng r;
  rng_seed(&r, 2401);
  is_int(p.info->op_class, is_full ? QUERN_CLASS_BASIC : QUERN_CLASS_REDUCTION, "%s: its class", p.info->name);
  ok(p.info->n_in == 1 && p.info->n_out == 1, "  one input, one output");
  ok(param_index(p.info, "axes") >= 0, "  axes");
  ok((param_index(p.info, "keepdims") >= 0) == !is_full, "  keepdims where axes vanish");

  operand_make(&p.in, REF_F32, 2, shape, NULL, &r);
  if (is_full) operand_make(&p.out, result, 2, wrong, NULL, &r);
  else operand_make(&p.out, result, 1, &wrong_rows, NULL, &r);
  check_refused(&p, with(&n, p.info, "axes", whole(2)), QUERN_E_SHAPE, "an output of another shape");
  operand_free(&p.out);
  if (!is_full) {
    operand_make(&p.out, result, 1, &shape_of_rows, NULL, &r);
    check_refused(&p, NULL, QUERN_E_SHAPE, "an output for other axes than all");
    with(&n, p.info, "axes", whole(2));
    params_set(&n, p.info, "keepdims", whole(1));
    check_refused(&p, &n.call, QUERN_E_SHAPE, "an output without the kept dimension");
    check_refused(&p, with(&n, p.info, "keepdims", whole(2)), QUERN_E_ARGUMENT, "keepdims 2");
    check_refused(&p, with(&n, p.info, "keepdims", whole(-1)), QUERN_E_ARGUMENT, "keepdims -1");
    operand_free(&p.out);
    operand_make(&p.out, result, 0, NULL, NULL, &r);
  } else {
    operand_make(&p.out, result, 2, shape, NULL, &r);
  }
  check_refused(&p, with(&n, p.info, "axes", whole(4)), QUERN_E_ARGUMENT, "axis 2 of two");
  check_refused(&p, with(&n, p.info, "axes", whole((int64_t)1 << 40)), QUERN_E_ARGUMENT, "axis 40");
  check_refused(&p, with(&n, p.info, "axes", whole(INT64_MIN)), QUERN_E_ARGUMENT, "axis 63");
  check_refused(&p, with(&n, p.info, "axes", whole(-2)), QUERN_E_ARGUMENT, "axes -2");
  check_refused(&p, with(&n, p.info, "axes", whole(INT64_MAX)), QUERN_E_ARGUMENT, "63 axes");
  check_refused(&p, with(&n, p.info, "axes", QUERN_AXES(2, 2)), QUERN_E_ARGUMENT, "QUERN_AXES: 2 of two");
  ok(strstr(quern_last_error(), "axes were made of an axis that is out of bounds, or given twice") != NULL, "  its sentence");
  params_begin(&n);
  n.call.n_params = p.info->n_params + 1;
  check_refused(&p, &n.call, QUERN_E_ARGUMENT, "a parameter too many");
  n.call.n_params = -1;
  check_refused(&p, &n.call, QUERN_E_ARGUMENT, "less than no parameters");
  with(&n, p.info, "axes", real(0.5));
  DLTensor *in = &p.in.t, *out = &p.out.t, *none = NULL;
  operand_save(&p.out);
  ok(quern_op_call(p.op, 1, &in, 1, &out, &n.call) != QUERN_OK && operand_same(&p.out), "%s: half an axis: %s", p.info->name,
     quern_last_error());
  with(&n, p.info, "axes", real(NAN));
  ok(quern_op_call(p.op, 1, &in, 1, &out, &n.call) != QUERN_OK && operand_same(&p.out), "%s: axes NaN: %s", p.info->name,
     quern_last_error());
  with(&n, p.info, "axes", (quern_scalar){.kind = QUERN_U64, .v.u = UINT64_MAX});
  quern_shape measured = {.size = sizeof measured};
  const quern_status most = quern_op_measure(p.op, 1, &in, 1, &measured, &n.call);
  ok(most == QUERN_OK || most == QUERN_E_ARGUMENT, "%s: axes 2^64 - 1", p.info->name);

  const uint64_t flags = 1;
  const quern_call read_only = {.size = sizeof read_only, .out_flags = &flags};
  check_refused(&p, &read_only, QUERN_E_READONLY, "a read-only output");
  is_int(quern_op_call(p.op, 1, NULL, 1, &out, NULL), QUERN_E_ARGUMENT, "%s: no inputs", p.info->name);
  is_int(quern_op_call(p.op, 1, &none, 1, &out, NULL), QUERN_E_ARGUMENT, "%s: an input that is NULL", p.info->name);
  is_int(quern_op_call(p.op, 1, &in, 1, NULL, NULL), QUERN_E_ARGUMENT, "%s: no outputs", p.info->name);
  is_int(quern_op_call(p.op, 0, NULL, 1, &out, NULL), QUERN_E_ARGUMENT, "%s: 0 inputs", p.info->name);
  is_int(quern_op_call(p.op, 1, &in, 2, &out, NULL), QUERN_E_ARGUMENT, "%s: 2 outputs", p.info->name);
  is_int(quern_op_measure(p.op, 1, &in, 1, NULL, NULL), QUERN_E_ARGUMENT, "%s: nothing to measure into", p.info->name);
  void *data = p.in.t.data;
  p.in.t.data = NULL;
  check_refused(&p, NULL, QUERN_E_ARGUMENT, "data that is NULL");
  p.in.t.data = data;
  operand_free(&p.out);
  /* A dtype of a lower kind; none at all. */
  const ref_dtype lower = ref_dtype_kind(result) == REF_KIND_FLOAT ? REF_I64 : REF_BOOL;
  if (lower != result) {
    operand_make(&p.out, lower, is_full ? 2 : 0, shape, NULL, &r);
    check_refused(&p, NULL, QUERN_E_DTYPE, "an output of a lower kind");
    operand_free(&p.out);
  }
  operand_make(&p.out, result, is_full ? 2 : 0, shape, NULL, &r);
  p.in.t.dtype.lanes = 2;
  check_refused(&p, NULL, QUERN_E_DTYPE, "vectors as items");
  p.in.t.dtype.lanes = 1;
  p.in.t.ndim = 33;
  check_refused(&p, NULL, QUERN_E_LAYOUT, "33 dimensions");
  p.in.t.ndim = 2;

  /* Outputs that share memory. */
  const DLTensor apart = p.out.t;
  if (is_full) {
    p.out.t.data = (char *)p.in.t.data + 4;
  } else {
    p.out.t.data = p.in.t.data;
  }
  p.out.t.byte_offset = 0;
  operand_save(&p.in);
  in = &p.in.t, out = &p.out.t;
  is_int(quern_op_call(p.op, 1, &in, 1, &out, NULL), QUERN_E_OVERLAP, "%s: an output in the input: %s", p.info->name,
         quern_last_error());
  ok(operand_same(&p.in), "  and both are as they were");
  p.out.t = apart;
  if (is_full) { /* all elements of a row at one place */
    const int64_t along[2][2] = {{1, 0}, {0, 1}};
    for (int axis = 0; axis < 2; axis++) {
      p.out.t.strides = (int64_t *)along[!axis];
      check_refused(&p, with(&n, p.info, "axes", whole(1 + axis)), QUERN_E_OVERLAP, "an output with stride 0 along the axis");
    }
    p.out.t.strides = apart.strides;
  }
  operand_free(&p.out);
  operand_free(&p.in);
  if (is_full) return;

  /* An output over itself. */
  operand_make(&p.in, REF_F32, 2, shape, NULL, &r);
  operand_describe(&p.out, result, 1, &shape_of_rows, still);
  operand_allocate(&p.out, 0, GUARD_NONE);
  operand_fill(&p.out, &r);
  check_refused(&p, with(&n, p.info, "axes", whole(2)), QUERN_E_OVERLAP, "an output over itself");
  operand_free(&p.out);

  /* A plan is for its axes. */
  operand_make(&p.out, result, 1, &shape_of_rows, NULL, &r);
  in = &p.in.t, out = &p.out.t;
  with(&n, p.info, "axes", whole(2));
  quern_plan *plan = NULL;
  is_int(quern_op_prepare(p.op, 1, &in, 1, &out, &n.call, &plan), QUERN_OK, "%s: planned", p.info->name);
  if (plan) {
    operand_save(&p.out);
    is_int(quern_plan_run(plan, &p.in.t.data, &p.out.t.data, with(&n, p.info, "axes", whole(1))), QUERN_E_ARGUMENT,
           "  and run over another axis");
    with(&n, p.info, "axes", whole(2));
    params_set(&n, p.info, "keepdims", whole(1));
    is_int(quern_plan_run(plan, &p.in.t.data, &p.out.t.data, &n.call), QUERN_E_ARGUMENT, "  and run with keepdims");
    is_int(quern_plan_run(plan, &p.in.t.data, &p.out.t.data, with(&n, p.info, "axes", whole(4))), QUERN_E_ARGUMENT,
           "  and run over an axis that is not there");
    ok(operand_same(&p.out), "  nothing of which writes");
    is_int(quern_plan_run(plan, &p.in.t.data, &p.out.t.data, with(&n, p.info, "axes", whole(2))), QUERN_OK,
           "  and run as planned");
    is_int(quern_plan_run(plan, &p.in.t.data, &p.out.t.data, NULL), QUERN_OK, "  and run with what it keeps");
  }
  quern_plan_release(plan);
  operand_free(&p.in);
  operand_free(&p.out);
}

/* Shapes are found without a look at the data, however large: 2^40 elements at one address, 32 dimensions. */
static void test_measured(law_op op) {
  const int64_t huge[3] = {(int64_t)1 << 20, 3, (int64_t)1 << 20}, still[3] = {0, 0, 0};
  int64_t many[32];
  operand x;
  named_params n;
  quern_op *o = law_ops[op][0];
  const quern_op_info *info = quern_op_describe(o);
  quern_shape shape = {.size = sizeof shape};
  operand_describe(&x, REF_F32, 3, huge, still);
  DLTensor *in = &x.t;
  is_int(quern_op_measure(o, 1, &in, 1, &shape, with(&n, info, "axes", whole(5))), QUERN_OK, "%s: 3 * 2^40 elements measured",
         info->name);
  if (law_is_full(op))
    ok(shape.ndim == 3 && shape.shape[0] == huge[0] && shape.shape[2] == huge[2], "  the shape is the input's");
  else ok(shape.ndim == 1 && shape.shape[0] == 3, "  one dimension is left");
  is_int(quern_op_infer(o, 1, &in, 1, &shape), QUERN_OK, "  inferred");
  is_int(shape.ndim, law_is_full(op) ? 3 : 0, "  over all axes");
  for (int k = 0; k < 32; k++) many[k] = 1 + k % 2;
  operand_describe(&x, REF_F32, 32, many, NULL);
  is_int(quern_op_measure(o, 1, &in, 1, &shape, with(&n, info, "axes", whole((int64_t)1 << 31))), QUERN_OK, "  32 dimensions");
  ok(shape.ndim == (law_is_full(op) ? 32 : 31), "  of which the last one vanishes");
  is_int(quern_op_measure(o, 1, &in, 1, &shape, with(&n, info, "axes", whole((int64_t)1 << 32))), QUERN_E_ARGUMENT,
         "  but there is no axis 32");
}

/* ---- Every level ------------------------------------------------------------------------------------------------- */

static void test_levels(const char *program, int round) {
  static const char *const levels[] = {"generic", "v2", "v3"};
  for (int k = 0; k < 3; k++) {
    char command[4400], line[4000];
    int n = 0;
    snprintf(command, sizeof command, "QUERN_ISA=%s '%s' quick %d 2>&1", levels[k], program, round);
    FILE *f = popen(command, "r");
    if (!f) bail("no child");
    while (fgets(line, sizeof line, f)) {
      if (strncmp(line, "not ok", 6) == 0) n = 40;
      if (n-- > 0) diag("%.*s", (int)strcspn(line, "\n"), line);
    }
    is_int(pclose(f), 0, "as right at level %s", levels[k]);
  }
}

int main(int argc, char **argv) {
  is_child = argc > 1 && strcmp(argv[1], "quick") == 0;
  setenv("QUERN_CACHE_DIR", "none", 1);
  if (is_child) first_round = argc > 2 ? atoi(argv[2]) : 0;
  else first_round = test_part(28);
  if (first_round < 0) first_round = 0, n_rounds = SANITIZED ? 1 : 8;
  make_contexts();
  test_law();
  test_axes();
  test_examples();
  test_ones();
  for (int op = 0; op < LAW_N_OPS; op++) {
    if (!is_there((law_op)op)) continue;
    test_dtypes((law_op)op);
    test_empty((law_op)op);
    test_random((law_op)op);
    if (is_child) continue;
    test_refused((law_op)op);
    test_measured((law_op)op);
  }
  diag("as expressions: %d interpreted, %d compiled", n_expressions[INTERPRETED], n_expressions[COMPILED]);
  if (!is_child && n_missing < LAW_N_OPS) test_levels(argv[0], first_round);
  release_contexts();
  return done_testing();
}
