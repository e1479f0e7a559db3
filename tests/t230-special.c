/* SPDX-License-Identifier: Apache-2.0
 *
 * t230-special: special values. All pairs of them through every float op and dtype against ref.c; NaN in every form and
 * its one form at the outputs; the rows of C Annex F, which are exact whatever the ULP bound; corners of the integers;
 * conversions at their edges; bool bytes other than 0 and 1. */
#include "tensors.h"

/* ---- All specials against all ----------------------------------------------------------------------------------- */

static int specials_of(ref_dtype d, uint64_t *list) {
  int n = 0, bits = 8 * ref_dtype_size(d);
  uint64_t top = (uint64_t)1 << (bits - 1), all = ~(uint64_t)0 >> (64 - bits);
  if (d == REF_BOOL) {
    list[n++] = 0;
    list[n++] = 1;
    return n;
  }
  if (ref_dtype_kind(d) == REF_KIND_INTEGER) {
    const uint64_t some[] = {0, 1, 2, 3, 7, 10, 31, 63, 64, 127, 128, 200, 255, top - 2, top - 1, top, top + 1, all - 2, all - 1, all};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) list[n++] = some[i] & all;
    return n;
  }
  uint64_t quiet = ref_nan(d), inf = quiet & (quiet - 1), one_quiet = quiet ^ inf;
  static const double some[] = {0.5, 1, 1.5, 2, 2.5, 3, 4, 10, 16, 88.5, 100, 104, 710, 745.2, 1e4, 65504, 8388609, 1e10, 9007199254740992, 1e20, 1e37, 1e300,
                                1e-3, 1e-5, 1e-10, 1e-38, 1e-44, 1e-300, 5e-324, 0.1, 0.7, 0.999, 1.001};
  const uint64_t patterns[] = {0, 1, 2, (inf & -inf) - 1, inf & -inf, (inf & -inf) + 1, inf - 1, inf, quiet, inf + 1, quiet + 1,
                               quiet | (one_quiet - 1), one_quiet * 3 & ~inf};
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    list[n++] = patterns[i] & (all >> 1);
    list[n++] = (patterns[i] & (all >> 1)) | top;
  }
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    list[n++] = ref_from_double(d, some[i]);
    list[n++] = ref_from_double(d, -some[i]);
  }
  return n;
}

static void test_all_pairs(void) {
  rng r;
  rng_seed(&r, 1);
  for (int op = 0; op < REF_N_OPS; op++) {
    if (!has_op((ref_op)op)) continue;
    const ref_op_info *info = ref_op_describe((ref_op)op);
    if (info->n_in == 0) continue;
    group_begin("%s: special values, all combinations", info->name);
    for (int d = 0; d < REF_N_DTYPES; d++) {
      ref_dtype in[3] = {(ref_dtype)d, (ref_dtype)d, (ref_dtype)d}, result = REF_BOOL, compute;
      uint64_t list[200], conditions[2] = {0, 1};
      if (op == REF_WHERE) in[0] = REF_BOOL;
      if (ref_resolve((ref_op)op, in, &result, &compute)) continue;
      int n = specials_of((ref_dtype)d, list), third = info->n_in == 3;
      /* Three inputs: the first runs over a sample. */
      int64_t n0 = op == REF_WHERE ? 2 : third ? 9 : n, total = n0 * (info->n_in > 1 ? n : 1) * (third ? n : 1);
      for (int out = 0; out < REF_N_DTYPES; out++) {
        if (!ref_may_store((ref_op)op, result, (ref_dtype)out)) continue;
        if ((ref_dtype)out != result && info->n_in > 1) continue;
        trial t = {.op = (ref_op)op, .note = "special values"};
        for (int k = 0; k < info->n_in; k++) operand_vector(&t.in[k], in[k], total, &r);
        operand_vector(&t.out, (ref_dtype)out, total, &r);
        for (int64_t i = 0; i < total; i++) {
          int64_t rest = i;
          for (int k = 0; k < info->n_in; k++) {
            int64_t m = k == 0 ? n0 : n, pick = rest % m;
            rest /= m;
            uint64_t x = op == REF_WHERE && k == 0 ? conditions[pick] : third && k == 0 ? list[pick * n / 9] : list[pick];
            ref_put(in[k], (char *)t.in[k].t.data + i * ref_dtype_size(in[k]), x);
          }
        }
        trial_run(&t);
        trial_free(&t);
      }
    }
    group_end();
  }
}

/* ---- One NaN ---------------------------------------------------------------------------------------------------- */

/* Whatever NaN goes in, whatever kernel part takes it, the canonical one comes out; moves keep the bits. */
static void test_nan(void) {
  rng r;
  rng_seed(&r, 2);
  group_begin("a NaN of any payload and sign comes out as the one NaN, or unchanged from moves");
  for (int op = 0; op < REF_N_OPS; op++) {
    if (!has_op((ref_op)op)) continue;
    const ref_op_info *info = ref_op_describe((ref_op)op);
    if (info->n_in == 0) continue;
    for (int d = REF_F16; d <= REF_F64; d++) {
      ref_dtype in[3] = {(ref_dtype)d, (ref_dtype)d, (ref_dtype)d}, result = (ref_dtype)d, compute;
      if (op == REF_WHERE) in[0] = REF_BOOL;
      if (ref_resolve((ref_op)op, in, &result, &compute)) continue;
      for (int who = op == REF_WHERE; who < info->n_in; who++) {
        trial t = {.op = (ref_op)op, .note = "NaN in one input"};
        uint64_t inf = ref_nan((ref_dtype)d) & (ref_nan((ref_dtype)d) - 1), low = (inf & -inf) - 1;
        uint64_t sign = (uint64_t)1 << (8 * ref_dtype_size((ref_dtype)d) - 1);
        int64_t n = 517;
        for (int k = 0; k < info->n_in; k++) operand_vector(&t.in[k], in[k], n, &r);
        operand_vector(&t.out, result, n, &r);
        for (int64_t i = 0; i < n; i++) {
          uint64_t payload = 1 + rng_below(&r, low);
          ref_put((ref_dtype)d, (char *)t.in[who].t.data + i * ref_dtype_size((ref_dtype)d), inf | payload | (rng_u64(&r) & sign));
        }
        trial_run(&t);
        trial_free(&t);
      }
    }
  }
  group_end();
}

/* ---- Rows of C Annex F ------------------------------------------------------------------------------------------- */

typedef struct row {
  ref_op op;
  double x, y, result;
} row;

#define INF INFINITY
#define PI 0x1.921fb54442d18p1
static const row annex_f[] = {
    /* F.10.3.1 exp, F.10.3.7 log, F.10.4.7 sqrt, F.10.2.6 tanh, F.10.5.1 erf */
    {REF_EXP, 0, 0, 1}, {REF_EXP, -0.0, 0, 1}, {REF_EXP, -INF, 0, 0}, {REF_EXP, INF, 0, INF}, {REF_EXP, 1e9, 0, INF},
    {REF_EXP, -1e9, 0, 0}, {REF_LOG, 0, 0, -INF}, {REF_LOG, -0.0, 0, -INF}, {REF_LOG, 1, 0, 0}, {REF_LOG, -1, 0, NAN},
    {REF_LOG, -INF, 0, NAN}, {REF_LOG, INF, 0, INF}, {REF_LOG, -1e-30, 0, NAN}, {REF_SQRT, 0, 0, 0}, {REF_SQRT, -0.0, 0, -0.0},
    {REF_SQRT, INF, 0, INF}, {REF_SQRT, -1, 0, NAN}, {REF_SQRT, -INF, 0, NAN}, {REF_SQRT, 4, 0, 2}, {REF_TANH, 0, 0, 0},
    {REF_TANH, -0.0, 0, -0.0}, {REF_TANH, INF, 0, 1}, {REF_TANH, -INF, 0, -1}, {REF_TANH, 50, 0, 1}, {REF_TANH, -50, 0, -1},
    {REF_ERF, 0, 0, 0}, {REF_ERF, -0.0, 0, -0.0}, {REF_ERF, INF, 0, 1}, {REF_ERF, -INF, 0, -1}, {REF_ERF, 20, 0, 1}, {REF_ERF, -20, 0, -1},
    {REF_SIGMOID, 0, 0, 0.5}, {REF_SIGMOID, -0.0, 0, 0.5}, {REF_SIGMOID, INF, 0, 1}, {REF_SIGMOID, -INF, 0, 0}, {REF_SIGMOID, 1000, 0, 1},
    {REF_SIGMOID, -1e9, 0, 0}, {REF_GELU, 0, 0, 0}, {REF_GELU, -0.0, 0, -0.0}, {REF_GELU, INF, 0, INF}, {REF_GELU, 64, 0, 64},
    {REF_GELU, -INF, 0, -0.0}, {REF_GELU, -1000, 0, -0.0}, {REF_RELU, -0.0, 0, 0}, {REF_RELU, NAN, 0, NAN}, {REF_RELU, -INF, 0, 0},
    {REF_RELU, INF, 0, INF}, {REF_ABS, -0.0, 0, 0}, {REF_ABS, -INF, 0, INF}, {REF_NEGATIVE, 0, 0, -0.0}, {REF_NEGATIVE, -0.0, 0, 0},
    /* F.10.3, F.10.2, F.10.4.1, F.10.5.2: exponentials, logarithms, hyperbolic functions, cbrt, erfc */
    {REF_EXP2, 0, 0, 1}, {REF_EXP2, -0.0, 0, 1}, {REF_EXP2, -INF, 0, 0}, {REF_EXP2, INF, 0, INF}, {REF_EXP2, 3, 0, 8},
    {REF_EXP2, -1, 0, 0.5}, {REF_EXP2, 1e9, 0, INF}, {REF_EXP2, -1e9, 0, 0}, {REF_EXP2, 10, 0, 1024}, {REF_EXP2, NAN, 0, NAN},
    {REF_EXPM1, 0, 0, 0}, {REF_EXPM1, -0.0, 0, -0.0}, {REF_EXPM1, -INF, 0, -1}, {REF_EXPM1, INF, 0, INF},
    {REF_EXPM1, -1000, 0, -1}, {REF_EXPM1, 1e9, 0, INF}, {REF_EXPM1, NAN, 0, NAN},
    {REF_LOG2, 0, 0, -INF}, {REF_LOG2, -0.0, 0, -INF}, {REF_LOG2, 1, 0, 0}, {REF_LOG2, -1, 0, NAN}, {REF_LOG2, -INF, 0, NAN},
    {REF_LOG2, INF, 0, INF}, {REF_LOG2, 8, 0, 3}, {REF_LOG2, 0.5, 0, -1}, {REF_LOG2, 1024, 0, 10}, {REF_LOG2, NAN, 0, NAN},
    {REF_LOG10, 0, 0, -INF}, {REF_LOG10, -0.0, 0, -INF}, {REF_LOG10, 1, 0, 0}, {REF_LOG10, -1, 0, NAN},
    {REF_LOG10, -INF, 0, NAN}, {REF_LOG10, INF, 0, INF}, {REF_LOG10, 10, 0, 1}, {REF_LOG10, 1000, 0, 3},
    {REF_LOG10, NAN, 0, NAN},
    {REF_LOG1P, 0, 0, 0}, {REF_LOG1P, -0.0, 0, -0.0}, {REF_LOG1P, -1, 0, -INF}, {REF_LOG1P, -2, 0, NAN},
    {REF_LOG1P, -INF, 0, NAN}, {REF_LOG1P, INF, 0, INF}, {REF_LOG1P, NAN, 0, NAN},
    {REF_SINH, 0, 0, 0}, {REF_SINH, -0.0, 0, -0.0}, {REF_SINH, INF, 0, INF}, {REF_SINH, -INF, 0, -INF},
    {REF_SINH, 1e9, 0, INF}, {REF_SINH, -1e9, 0, -INF}, {REF_SINH, NAN, 0, NAN},
    {REF_COSH, 0, 0, 1}, {REF_COSH, -0.0, 0, 1}, {REF_COSH, INF, 0, INF}, {REF_COSH, -INF, 0, INF}, {REF_COSH, 1e9, 0, INF},
    {REF_COSH, -1e9, 0, INF}, {REF_COSH, NAN, 0, NAN},
    {REF_ASINH, 0, 0, 0}, {REF_ASINH, -0.0, 0, -0.0}, {REF_ASINH, INF, 0, INF}, {REF_ASINH, -INF, 0, -INF},
    {REF_ASINH, NAN, 0, NAN},
    {REF_ACOSH, 1, 0, 0}, {REF_ACOSH, 0.5, 0, NAN}, {REF_ACOSH, 0, 0, NAN}, {REF_ACOSH, -0.0, 0, NAN},
    {REF_ACOSH, -1, 0, NAN}, {REF_ACOSH, -INF, 0, NAN}, {REF_ACOSH, INF, 0, INF}, {REF_ACOSH, NAN, 0, NAN},
    {REF_ATANH, 0, 0, 0}, {REF_ATANH, -0.0, 0, -0.0}, {REF_ATANH, 1, 0, INF}, {REF_ATANH, -1, 0, -INF},
    {REF_ATANH, 2, 0, NAN}, {REF_ATANH, -2, 0, NAN}, {REF_ATANH, INF, 0, NAN}, {REF_ATANH, -INF, 0, NAN},
    {REF_ATANH, NAN, 0, NAN},
    {REF_ERFC, 0, 0, 1}, {REF_ERFC, -0.0, 0, 1}, {REF_ERFC, INF, 0, 0}, {REF_ERFC, -INF, 0, 2}, {REF_ERFC, 40, 0, 0},
    {REF_ERFC, -40, 0, 2}, {REF_ERFC, NAN, 0, NAN},
    {REF_CBRT, 0, 0, 0}, {REF_CBRT, -0.0, 0, -0.0}, {REF_CBRT, INF, 0, INF}, {REF_CBRT, -INF, 0, -INF}, {REF_CBRT, 8, 0, 2},
    {REF_CBRT, -27, 0, -3}, {REF_CBRT, 1000, 0, 10}, {REF_CBRT, 0.125, 0, 0.5}, {REF_CBRT, NAN, 0, NAN},
    /* logaddexp, as the array API has it */
    {REF_LOGADDEXP, -INF, -INF, -INF}, {REF_LOGADDEXP, INF, INF, INF}, {REF_LOGADDEXP, INF, -INF, INF},
    {REF_LOGADDEXP, -INF, INF, INF}, {REF_LOGADDEXP, -INF, 2, 2}, {REF_LOGADDEXP, -3, -INF, -3}, {REF_LOGADDEXP, INF, 1, INF},
    {REF_LOGADDEXP, NAN, 1, NAN}, {REF_LOGADDEXP, 1, NAN, NAN}, {REF_LOGADDEXP, NAN, INF, NAN},
    {REF_LOGADDEXP, -INF, NAN, NAN}, {REF_LOGADDEXP, -0.0, -INF, 0}, {REF_LOGADDEXP, 5000, -5000, 5000},
    {REF_LOGADDEXP2, -INF, -INF, -INF}, {REF_LOGADDEXP2, INF, INF, INF}, {REF_LOGADDEXP2, INF, -INF, INF},
    {REF_LOGADDEXP2, -INF, INF, INF}, {REF_LOGADDEXP2, -INF, 2, 2}, {REF_LOGADDEXP2, -3, -INF, -3},
    {REF_LOGADDEXP2, INF, 1, INF}, {REF_LOGADDEXP2, NAN, 1, NAN}, {REF_LOGADDEXP2, 1, NAN, NAN},
    {REF_LOGADDEXP2, NAN, INF, NAN}, {REF_LOGADDEXP2, -INF, NAN, NAN}, {REF_LOGADDEXP2, -0.0, -INF, 0},
    {REF_LOGADDEXP2, 5000, -5000, 5000},
    /* Law 5 of HACKING.md */
    {REF_MAXIMUM, -0.0, 0, 0}, {REF_MAXIMUM, 0, -0.0, 0}, {REF_MAXIMUM, -0.0, -0.0, -0.0}, {REF_MINIMUM, -0.0, 0, -0.0}, {REF_MINIMUM, 0, -0.0, -0.0},
    {REF_MINIMUM, 0, 0, 0}, {REF_MAXIMUM, NAN, INF, NAN}, {REF_MAXIMUM, -INF, NAN, NAN}, {REF_MINIMUM, NAN, -INF, NAN}, {REF_MINIMUM, 1, NAN, NAN},
    {REF_MAXIMUM, -INF, INF, INF}, {REF_MINIMUM, -INF, INF, -INF},
    /* IEEE arithmetic */
    {REF_ADD, 0, -0.0, 0}, {REF_ADD, -0.0, -0.0, -0.0}, {REF_ADD, INF, -INF, NAN}, {REF_SUBTRACT, 0, 0, 0}, {REF_SUBTRACT, -0.0, 0, -0.0},
    {REF_SUBTRACT, INF, INF, NAN}, {REF_MULTIPLY, 0, INF, NAN}, {REF_MULTIPLY, -0.0, 1, -0.0}, {REF_DIVIDE, 1, 0, INF}, {REF_DIVIDE, 1, -0.0, -INF},
    {REF_DIVIDE, 0, 0, NAN}, {REF_DIVIDE, INF, INF, NAN}, {REF_DIVIDE, -1, INF, -0.0},
    /* F.10.4.4 pow */
    {REF_POW, 0, -3, INF}, {REF_POW, -0.0, -3, -INF}, {REF_POW, -0.0, -1, -INF}, {REF_POW, 0, -1, INF}, {REF_POW, 0, -2, INF}, {REF_POW, -0.0, -2, INF},
    {REF_POW, 0, -0.5, INF}, {REF_POW, -0.0, -0.5, INF}, {REF_POW, 0, -INF, INF}, {REF_POW, -0.0, -INF, INF}, {REF_POW, 0, 3, 0}, {REF_POW, -0.0, 3, -0.0},
    {REF_POW, 0, 2, 0}, {REF_POW, -0.0, 2, 0}, {REF_POW, 0, 0.5, 0}, {REF_POW, -0.0, 0.5, 0}, {REF_POW, 0, INF, 0}, {REF_POW, -0.0, INF, 0},
    {REF_POW, -1, INF, 1}, {REF_POW, -1, -INF, 1}, {REF_POW, 1, NAN, 1}, {REF_POW, 1, INF, 1}, {REF_POW, 1, -INF, 1}, {REF_POW, 1, 12.5, 1},
    {REF_POW, NAN, 0, 1}, {REF_POW, NAN, -0.0, 1}, {REF_POW, INF, 0, 1}, {REF_POW, -INF, -0.0, 1}, {REF_POW, 0, 0, 1}, {REF_POW, -0.0, -0.0, 1}, {REF_POW, 7, 0, 1},
    {REF_POW, -2, 0.5, NAN}, {REF_POW, -2, -1.5, NAN}, {REF_POW, -1, 0.5, NAN}, {REF_POW, 0.5, -INF, INF}, {REF_POW, -0.5, -INF, INF},
    {REF_POW, 2, -INF, 0}, {REF_POW, -2, -INF, 0}, {REF_POW, 0.5, INF, 0}, {REF_POW, -0.5, INF, 0}, {REF_POW, 2, INF, INF}, {REF_POW, -2, INF, INF},
    {REF_POW, -INF, -3, -0.0}, {REF_POW, -INF, -2, 0}, {REF_POW, -INF, -0.5, 0}, {REF_POW, -INF, 3, -INF}, {REF_POW, -INF, 2, INF}, {REF_POW, -INF, 0.5, INF},
    {REF_POW, -INF, INF, INF}, {REF_POW, -INF, -INF, 0}, {REF_POW, INF, -2, 0}, {REF_POW, INF, -0.5, 0}, {REF_POW, INF, 2, INF}, {REF_POW, INF, 0.5, INF},
    {REF_POW, NAN, 1, NAN}, {REF_POW, 2, NAN, NAN}, {REF_POW, 0, NAN, NAN}, {REF_POW, INF, NAN, NAN}, {REF_POW, NAN, INF, NAN}, {REF_POW, -1, NAN, NAN},
    /* F.10.1 atan2, atan, asin, acos */
    {REF_ATAN, 0, 0, 0}, {REF_ATAN, -0.0, 0, -0.0}, {REF_ATAN, INF, 0, PI / 2}, {REF_ATAN, -INF, 0, -PI / 2},
    {REF_ATAN, NAN, 0, NAN},
    {REF_ASIN, 0, 0, 0}, {REF_ASIN, -0.0, 0, -0.0}, {REF_ASIN, 1, 0, PI / 2}, {REF_ASIN, -1, 0, -PI / 2}, {REF_ASIN, 2, 0, NAN},
    {REF_ASIN, -1.5, 0, NAN}, {REF_ASIN, INF, 0, NAN}, {REF_ASIN, -INF, 0, NAN}, {REF_ASIN, NAN, 0, NAN},
    {REF_ACOS, 1, 0, 0}, {REF_ACOS, -1, 0, PI}, {REF_ACOS, 0, 0, PI / 2}, {REF_ACOS, -0.0, 0, PI / 2}, {REF_ACOS, 1.5, 0, NAN},
    {REF_ACOS, -2, 0, NAN}, {REF_ACOS, INF, 0, NAN}, {REF_ACOS, -INF, 0, NAN}, {REF_ACOS, NAN, 0, NAN},
    {REF_ATAN2, 0, -0.0, PI}, {REF_ATAN2, -0.0, -0.0, -PI}, {REF_ATAN2, 0, 0, 0}, {REF_ATAN2, -0.0, 0, -0.0},
    {REF_ATAN2, 0, -3, PI}, {REF_ATAN2, -0.0, -3, -PI},
    {REF_ATAN2, 0, 3, 0}, {REF_ATAN2, -0.0, 3, -0.0}, {REF_ATAN2, -3, 0, -PI / 2}, {REF_ATAN2, -3, -0.0, -PI / 2},
    {REF_ATAN2, 3, 0, PI / 2}, {REF_ATAN2, 3, -0.0, PI / 2},
    {REF_ATAN2, 3, -INF, PI}, {REF_ATAN2, -3, -INF, -PI}, {REF_ATAN2, 3, INF, 0}, {REF_ATAN2, -3, INF, -0.0},
    {REF_ATAN2, 0, INF, 0}, {REF_ATAN2, -0.0, -INF, -PI},
    {REF_ATAN2, INF, 3, PI / 2}, {REF_ATAN2, INF, -3, PI / 2}, {REF_ATAN2, -INF, 0, -PI / 2}, {REF_ATAN2, -INF, -0.0, -PI / 2},
    {REF_ATAN2, INF, -INF, 3 * PI / 4}, {REF_ATAN2, -INF, -INF, -3 * PI / 4}, {REF_ATAN2, INF, INF, PI / 4},
    {REF_ATAN2, -INF, INF, -PI / 4},
    {REF_ATAN2, NAN, 0, NAN}, {REF_ATAN2, 0, NAN, NAN}, {REF_ATAN2, NAN, INF, NAN}, {REF_ATAN2, -INF, NAN, NAN},
    {REF_ATAN2, NAN, NAN, NAN},
    {REF_ATAN2, 1, 1, PI / 4}, {REF_ATAN2, -1, 1, -PI / 4}, {REF_ATAN2, 1, -1, 3 * PI / 4}, {REF_ATAN2, 1024, -1024, 3 * PI / 4},
    /* F.10.4.3 hypot */
    {REF_HYPOT, 0, 0, 0}, {REF_HYPOT, -0.0, -0.0, 0}, {REF_HYPOT, -0.0, 0, 0}, {REF_HYPOT, -7, -0.0, 7}, {REF_HYPOT, 0, -7, 7},
    {REF_HYPOT, INF, NAN, INF}, {REF_HYPOT, NAN, -INF, INF}, {REF_HYPOT, -INF, 3, INF}, {REF_HYPOT, 0, INF, INF},
    {REF_HYPOT, NAN, 0, NAN}, {REF_HYPOT, 3, NAN, NAN}, {REF_HYPOT, NAN, NAN, NAN},
    {REF_HYPOT, 3, -4, 5}, {REF_HYPOT, -512, 384, 640},
    /* Exact and rounded where anything else would be laughed at. */
    {REF_POW, 2, 10, 1024}, {REF_POW, 3, 2, 9}, {REF_POW, -2, 3, -8}, {REF_POW, 4, 0.5, 2}, {REF_POW, 2, -1, 0.5}, {REF_POW, 9, 1, 9}, {REF_POW, -1, 3, -1}, {REF_POW, -1, 4, 1},
    {REF_POW, 10, 3, 1000}, {REF_POW, -8, 1, -8},
    /* F.10.6 ceil, floor, rint, round (here ties to even, as in the array API), trunc; a zero keeps its sign */
    {REF_FLOOR, 0, 0, 0}, {REF_FLOOR, -0.0, 0, -0.0}, {REF_FLOOR, INF, 0, INF}, {REF_FLOOR, -INF, 0, -INF},
    {REF_FLOOR, NAN, 0, NAN}, {REF_FLOOR, -1.5, 0, -2}, {REF_FLOOR, 1.5, 0, 1}, {REF_FLOOR, 7, 0, 7},
    {REF_FLOOR, -512, 0, -512}, {REF_FLOOR, 0.25, 0, 0}, {REF_FLOOR, -0.25, 0, -1},
    {REF_CEIL, 0, 0, 0}, {REF_CEIL, -0.0, 0, -0.0}, {REF_CEIL, INF, 0, INF}, {REF_CEIL, -INF, 0, -INF}, {REF_CEIL, NAN, 0, NAN},
    {REF_CEIL, -1.5, 0, -1}, {REF_CEIL, 1.5, 0, 2}, {REF_CEIL, 7, 0, 7}, {REF_CEIL, -512, 0, -512}, {REF_CEIL, 0.25, 0, 1},
    {REF_CEIL, -0.25, 0, -0.0},
    {REF_TRUNC, 0, 0, 0}, {REF_TRUNC, -0.0, 0, -0.0}, {REF_TRUNC, INF, 0, INF}, {REF_TRUNC, -INF, 0, -INF},
    {REF_TRUNC, NAN, 0, NAN}, {REF_TRUNC, -1.5, 0, -1}, {REF_TRUNC, 1.5, 0, 1}, {REF_TRUNC, 7, 0, 7},
    {REF_TRUNC, -512, 0, -512}, {REF_TRUNC, 0.25, 0, 0}, {REF_TRUNC, -0.25, 0, -0.0},
    {REF_FIX, 0, 0, 0}, {REF_FIX, -0.0, 0, -0.0}, {REF_FIX, INF, 0, INF}, {REF_FIX, -INF, 0, -INF}, {REF_FIX, NAN, 0, NAN},
    {REF_FIX, -1.5, 0, -1}, {REF_FIX, 1.5, 0, 1}, {REF_FIX, 7, 0, 7}, {REF_FIX, -512, 0, -512}, {REF_FIX, 0.25, 0, 0},
    {REF_FIX, -0.25, 0, -0.0},
    {REF_ROUND, 0, 0, 0}, {REF_ROUND, -0.0, 0, -0.0}, {REF_ROUND, INF, 0, INF}, {REF_ROUND, -INF, 0, -INF},
    {REF_ROUND, NAN, 0, NAN}, {REF_ROUND, -1.5, 0, -2}, {REF_ROUND, 1.5, 0, 2}, {REF_ROUND, 7, 0, 7},
    {REF_ROUND, -512, 0, -512}, {REF_ROUND, 0.25, 0, 0}, {REF_ROUND, -0.25, 0, -0.0}, {REF_ROUND, 0.5, 0, 0},
    {REF_ROUND, -0.5, 0, -0.0}, {REF_ROUND, 2.5, 0, 2}, {REF_ROUND, 3.5, 0, 4},
    {REF_RINT, 0, 0, 0}, {REF_RINT, -0.0, 0, -0.0}, {REF_RINT, INF, 0, INF}, {REF_RINT, -INF, 0, -INF}, {REF_RINT, NAN, 0, NAN},
    {REF_RINT, -1.5, 0, -2}, {REF_RINT, 1.5, 0, 2}, {REF_RINT, 7, 0, 7}, {REF_RINT, -512, 0, -512}, {REF_RINT, 0.25, 0, 0},
    {REF_RINT, -0.25, 0, -0.0}, {REF_RINT, 0.5, 0, 0}, {REF_RINT, -0.5, 0, -0.0}, {REF_RINT, 2.5, 0, 2}, {REF_RINT, 3.5, 0, 4},
    /* The array API, floor_divide, and the same for trunc_divide */
    {REF_FLOOR_DIVIDE, INF, INF, NAN}, {REF_FLOOR_DIVIDE, INF, -INF, NAN}, {REF_FLOOR_DIVIDE, -INF, INF, NAN},
    {REF_FLOOR_DIVIDE, -INF, -INF, NAN}, {REF_FLOOR_DIVIDE, 0, 0, NAN}, {REF_FLOOR_DIVIDE, 0, -0.0, NAN},
    {REF_FLOOR_DIVIDE, -0.0, 0, NAN}, {REF_FLOOR_DIVIDE, -0.0, -0.0, NAN}, {REF_FLOOR_DIVIDE, NAN, 1, NAN},
    {REF_FLOOR_DIVIDE, 1, NAN, NAN}, {REF_FLOOR_DIVIDE, NAN, NAN, NAN}, {REF_FLOOR_DIVIDE, NAN, INF, NAN},
    {REF_FLOOR_DIVIDE, 0, NAN, NAN}, {REF_FLOOR_DIVIDE, 0, 3, 0}, {REF_FLOOR_DIVIDE, -0.0, 3, -0.0},
    {REF_FLOOR_DIVIDE, 0, -3, -0.0}, {REF_FLOOR_DIVIDE, -0.0, -3, 0}, {REF_FLOOR_DIVIDE, 0, INF, 0},
    {REF_FLOOR_DIVIDE, -0.0, INF, -0.0}, {REF_FLOOR_DIVIDE, 0, -INF, -0.0}, {REF_FLOOR_DIVIDE, -0.0, -INF, 0},
    {REF_FLOOR_DIVIDE, 3, 0, INF}, {REF_FLOOR_DIVIDE, 3, -0.0, -INF}, {REF_FLOOR_DIVIDE, -3, 0, -INF},
    {REF_FLOOR_DIVIDE, -3, -0.0, INF}, {REF_FLOOR_DIVIDE, INF, 3, INF}, {REF_FLOOR_DIVIDE, INF, -3, -INF},
    {REF_FLOOR_DIVIDE, -INF, 3, -INF}, {REF_FLOOR_DIVIDE, -INF, -3, INF}, {REF_FLOOR_DIVIDE, INF, 0, INF},
    {REF_FLOOR_DIVIDE, -INF, 0, -INF}, {REF_FLOOR_DIVIDE, 3, INF, 0}, {REF_FLOOR_DIVIDE, 3, -INF, -0.0},
    {REF_FLOOR_DIVIDE, -3, INF, -0.0}, {REF_FLOOR_DIVIDE, -3, -INF, 0}, {REF_FLOOR_DIVIDE, 7, 2, 3},
    {REF_FLOOR_DIVIDE, -7, 2, -4}, {REF_FLOOR_DIVIDE, 7, -2, -4}, {REF_FLOOR_DIVIDE, -7, -2, 3}, {REF_FLOOR_DIVIDE, 6, 3, 2},
    {REF_FLOOR_DIVIDE, -6, 3, -2}, {REF_FLOOR_DIVIDE, 0.25, 3, 0}, {REF_FLOOR_DIVIDE, -0.25, 3, -1},
    {REF_FLOOR_DIVIDE, 0.25, -3, -1}, {REF_FLOOR_DIVIDE, -0.25, -3, 0},
    {REF_TRUNC_DIVIDE, INF, INF, NAN}, {REF_TRUNC_DIVIDE, INF, -INF, NAN}, {REF_TRUNC_DIVIDE, -INF, INF, NAN},
    {REF_TRUNC_DIVIDE, -INF, -INF, NAN}, {REF_TRUNC_DIVIDE, 0, 0, NAN}, {REF_TRUNC_DIVIDE, 0, -0.0, NAN},
    {REF_TRUNC_DIVIDE, -0.0, 0, NAN}, {REF_TRUNC_DIVIDE, -0.0, -0.0, NAN}, {REF_TRUNC_DIVIDE, NAN, 1, NAN},
    {REF_TRUNC_DIVIDE, 1, NAN, NAN}, {REF_TRUNC_DIVIDE, NAN, NAN, NAN}, {REF_TRUNC_DIVIDE, NAN, INF, NAN},
    {REF_TRUNC_DIVIDE, 0, NAN, NAN}, {REF_TRUNC_DIVIDE, 0, 3, 0}, {REF_TRUNC_DIVIDE, -0.0, 3, -0.0},
    {REF_TRUNC_DIVIDE, 0, -3, -0.0}, {REF_TRUNC_DIVIDE, -0.0, -3, 0}, {REF_TRUNC_DIVIDE, 0, INF, 0},
    {REF_TRUNC_DIVIDE, -0.0, INF, -0.0}, {REF_TRUNC_DIVIDE, 0, -INF, -0.0}, {REF_TRUNC_DIVIDE, -0.0, -INF, 0},
    {REF_TRUNC_DIVIDE, 3, 0, INF}, {REF_TRUNC_DIVIDE, 3, -0.0, -INF}, {REF_TRUNC_DIVIDE, -3, 0, -INF},
    {REF_TRUNC_DIVIDE, -3, -0.0, INF}, {REF_TRUNC_DIVIDE, INF, 3, INF}, {REF_TRUNC_DIVIDE, INF, -3, -INF},
    {REF_TRUNC_DIVIDE, -INF, 3, -INF}, {REF_TRUNC_DIVIDE, -INF, -3, INF}, {REF_TRUNC_DIVIDE, INF, 0, INF},
    {REF_TRUNC_DIVIDE, -INF, 0, -INF}, {REF_TRUNC_DIVIDE, 3, INF, 0}, {REF_TRUNC_DIVIDE, 3, -INF, -0.0},
    {REF_TRUNC_DIVIDE, -3, INF, -0.0}, {REF_TRUNC_DIVIDE, -3, -INF, 0}, {REF_TRUNC_DIVIDE, 7, 2, 3},
    {REF_TRUNC_DIVIDE, -7, 2, -3}, {REF_TRUNC_DIVIDE, 7, -2, -3}, {REF_TRUNC_DIVIDE, -7, -2, 3}, {REF_TRUNC_DIVIDE, 6, 3, 2},
    {REF_TRUNC_DIVIDE, -6, 3, -2}, {REF_TRUNC_DIVIDE, 0.25, 3, 0}, {REF_TRUNC_DIVIDE, -0.25, 3, -0.0},
    {REF_TRUNC_DIVIDE, 0.25, -3, -0.0}, {REF_TRUNC_DIVIDE, -0.25, -3, 0},
    /* The array API, remainder */
    {REF_REMAINDER, INF, INF, NAN}, {REF_REMAINDER, INF, -INF, NAN}, {REF_REMAINDER, -INF, INF, NAN},
    {REF_REMAINDER, -INF, -INF, NAN}, {REF_REMAINDER, 0, 0, NAN}, {REF_REMAINDER, 0, -0.0, NAN}, {REF_REMAINDER, -0.0, 0, NAN},
    {REF_REMAINDER, -0.0, -0.0, NAN}, {REF_REMAINDER, NAN, 1, NAN}, {REF_REMAINDER, 1, NAN, NAN},
    {REF_REMAINDER, NAN, NAN, NAN}, {REF_REMAINDER, NAN, INF, NAN}, {REF_REMAINDER, 0, NAN, NAN}, {REF_REMAINDER, 3, 0, NAN},
    {REF_REMAINDER, 3, -0.0, NAN}, {REF_REMAINDER, -3, 0, NAN}, {REF_REMAINDER, -3, -0.0, NAN}, {REF_REMAINDER, INF, 3, NAN},
    {REF_REMAINDER, INF, -3, NAN}, {REF_REMAINDER, -INF, 3, NAN}, {REF_REMAINDER, -INF, -3, NAN}, {REF_REMAINDER, INF, 0, NAN},
    {REF_REMAINDER, 0, 3, 0}, {REF_REMAINDER, -0.0, 3, 0}, {REF_REMAINDER, 0, -3, -0.0}, {REF_REMAINDER, -0.0, -3, -0.0},
    {REF_REMAINDER, 0, INF, 0}, {REF_REMAINDER, -0.0, INF, 0}, {REF_REMAINDER, 0, -INF, -0.0}, {REF_REMAINDER, 3, INF, 3},
    {REF_REMAINDER, 3, -INF, -INF}, {REF_REMAINDER, -3, INF, INF}, {REF_REMAINDER, -3, -INF, -3}, {REF_REMAINDER, 7, 2, 1},
    {REF_REMAINDER, -7, 2, 1}, {REF_REMAINDER, 7, -2, -1}, {REF_REMAINDER, -7, -2, -1}, {REF_REMAINDER, 6, 3, 0},
    {REF_REMAINDER, -6, 3, 0}, {REF_REMAINDER, 6, -3, -0.0}, {REF_REMAINDER, -6, -3, -0.0}, {REF_REMAINDER, 1, 3, 1},
    {REF_REMAINDER, -1, 3, 2}, {REF_REMAINDER, 1, -3, -2}, {REF_REMAINDER, -1, -3, -1},
    /* F.10.7.1 fmod */
    {REF_FMOD, INF, INF, NAN}, {REF_FMOD, INF, -INF, NAN}, {REF_FMOD, -INF, INF, NAN}, {REF_FMOD, -INF, -INF, NAN},
    {REF_FMOD, 0, 0, NAN}, {REF_FMOD, 0, -0.0, NAN}, {REF_FMOD, -0.0, 0, NAN}, {REF_FMOD, -0.0, -0.0, NAN},
    {REF_FMOD, NAN, 1, NAN}, {REF_FMOD, 1, NAN, NAN}, {REF_FMOD, NAN, NAN, NAN}, {REF_FMOD, NAN, INF, NAN},
    {REF_FMOD, 0, NAN, NAN}, {REF_FMOD, 3, 0, NAN}, {REF_FMOD, 3, -0.0, NAN}, {REF_FMOD, -3, 0, NAN}, {REF_FMOD, -3, -0.0, NAN},
    {REF_FMOD, INF, 3, NAN}, {REF_FMOD, INF, -3, NAN}, {REF_FMOD, -INF, 3, NAN}, {REF_FMOD, -INF, -3, NAN},
    {REF_FMOD, INF, 0, NAN}, {REF_FMOD, 0, 3, 0}, {REF_FMOD, -0.0, 3, -0.0}, {REF_FMOD, 0, -3, 0}, {REF_FMOD, -0.0, -3, -0.0},
    {REF_FMOD, 0, INF, 0}, {REF_FMOD, -0.0, -INF, -0.0}, {REF_FMOD, 3, INF, 3}, {REF_FMOD, 3, -INF, 3}, {REF_FMOD, -3, INF, -3},
    {REF_FMOD, -3, -INF, -3}, {REF_FMOD, 7, 2, 1}, {REF_FMOD, -7, 2, -1}, {REF_FMOD, 7, -2, 1}, {REF_FMOD, -7, -2, -1},
    {REF_FMOD, 6, 3, 0}, {REF_FMOD, -6, 3, -0.0}, {REF_FMOD, 6, -3, 0}, {REF_FMOD, 1, 3, 1}, {REF_FMOD, -1, 3, -1},
};

static void test_annex_f(void) {
  int n = (int)(sizeof annex_f / sizeof *annex_f);
  rng r;
  rng_seed(&r, 3);
  group_begin("rows of Annex F and of the laws, every float dtype, body and tail");
  for (int i = 0; i < n; i++) {
    const row *w = &annex_f[i];
    int n_in = ref_op_describe(w->op)->n_in;
    if (!has_op(w->op)) continue;
    for (int d = REF_F16; d <= REF_F64; d++) {
      uint64_t x = ref_from_double((ref_dtype)d, w->x), y = ref_from_double((ref_dtype)d, w->y);
      /* Where the row's numbers do not survive in this dtype, it is another row. */
      if (w->x == w->x && (double)ref_value((ref_dtype)d, x) != w->x && fabs(w->x) < 1e6 && w->x != -1e-30) continue;
      uint64_t wanted = ref_from_double((ref_dtype)d, w->result);
      if (w->op == REF_LOG && w->x == -1e-30 && ref_value((ref_dtype)d, x) == 0) wanted = ref_from_double((ref_dtype)d, -INF);
      operand a, b, c;
      operand_vector(&a, (ref_dtype)d, 67, &r);
      operand_vector(&b, (ref_dtype)d, 67, &r);
      operand_vector(&c, (ref_dtype)d, 67, &r);
      int size = ref_dtype_size((ref_dtype)d);
      for (int k = 0; k < 67; k++) {
        ref_put((ref_dtype)d, (char *)a.t.data + k * size, x);
        ref_put((ref_dtype)d, (char *)b.t.data + k * size, y);
      }
      DLTensor *in[2] = {&a.t, &b.t}, *out = &c.t;
      quern_status s = quern_op_call(the_op(w->op), n_in, in, 1, &out, NULL);
      for (int k = 0; k < 67; k++) {
        uint64_t got = ref_get((ref_dtype)d, (char *)c.t.data + k * size);
        group_count(1);
        if (s == QUERN_OK && got == wanted) continue;
        char text[64], should[64];
        group_fail("%s(%g, %g) in %s at %d of 67: got %s, wanted %s (%s)", ref_op_describe(w->op)->name, w->x, w->y,
                   ref_dtype_name((ref_dtype)d), k, ref_text((ref_dtype)d, got, text), ref_text((ref_dtype)d, wanted, should), status_name(s));
        break;
      }
      operand_free(&a);
      operand_free(&b);
      operand_free(&c);
    }
  }
  group_end();
}

/* ---- Casts ------------------------------------------------------------------------------------------------------ */

/* Every f16, bf16 and u8; for wide dtypes the neighbourhood of every power of two and every tie of a narrower format. */
static void test_casts(ref_op op) {
  rng r;
  if (!has_op(op)) return;
  rng_seed(&r, 4);
  group_begin("%s between all dtypes: all narrow values, edges of wide ones", ref_op_describe(op)->name);
  for (int from = 0; from < REF_N_DTYPES; from++) {
    uint64_t *list = malloc(sizeof *list * 400000);
    int64_t n = 0;
    int bits = 8 * ref_dtype_size((ref_dtype)from);
    if (from == REF_BOOL) list[n++] = 0, list[n++] = 1;
    else if (bits <= 16) {
      for (int i = 0; i < 1 << bits; i++) list[n++] = (uint64_t)i;
    } else if (ref_dtype_kind((ref_dtype)from) == REF_KIND_INTEGER) {
      for (int b = 0; b < bits; b++) {
        for (int lower = 0; lower <= b; lower++) {
          for (int delta = -2; delta <= 2; delta++) {
            uint64_t x = ((uint64_t)1 << b) + (lower < b ? (uint64_t)1 << lower : 0) + (uint64_t)(int64_t)delta;
            list[n++] = x;
            list[n++] = -x;
          }
        }
      }
    } else {
      int digits = from == REF_F32 ? 24 : 53;
      for (int e = from == REF_F32 ? -150 : -160; e < (from == REF_F32 ? 128 : 135); e++) {
        /* Ties of 8, 11 and 24 digits, and of integers, with a neighbour on either side. */
        static const int places[] = {8, 11, 24};
        for (int p = 0; p < 3; p++) {
          if (places[p] >= digits) continue;
          for (int m = 0; m < 8; m++) {
            double x = ldexp(1 + (double)(2 * rng_below(&r, (uint64_t)1 << (places[p] - 1)) + 1) * ldexp(1, -places[p]), e);
            uint64_t tie = ref_from_double((ref_dtype)from, m & 4 ? -x : x);
            list[n++] = tie;
            list[n++] = tie + 1;
            list[n++] = tie - 1;
          }
        }
        uint64_t power = ref_from_double((ref_dtype)from, ldexp(1, e));
        list[n++] = power;
        list[n++] = power - 1;
        list[n++] = power + 1;
      }
      for (int i = 0; i < 3000; i++) list[n++] = ref_from_double((ref_dtype)from, (double)rng_range(&r, -600, 600) / 2);
      /* Subnormals of f16 and bf16: halves of their steps. */
      for (int i = 0; i < 3000; i++) list[n++] = ref_from_double((ref_dtype)from, ldexp((double)rng_below(&r, 4096), -26));
      for (int i = 0; i < 3000; i++) list[n++] = ref_from_double((ref_dtype)from, ldexp((double)rng_below(&r, 1024), -135));
      const double edges[] = {255, 255.5, 256, -0.5, -0.99, -1, 2147483647.0, 2147483648.0, -2147483648.0, -2147483649.0, 9223372036854775807.0, -9223372036854775808.0, 65519.99, 65520, 3.3961e38, 3.4e38};
      for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        uint64_t x = ref_from_double((ref_dtype)from, edges[i]);
        list[n++] = x;
        list[n++] = x + 1;
        list[n++] = x - 1;
      }
    }
    for (int i = 0; i < 2000 && from != REF_BOOL; i++) list[n++] = random_bits(&r, (ref_dtype)from);
    for (int to = 0; to < REF_N_DTYPES; to++) {
      trial t = {.op = op, .note = "edges of a cast"};
      operand_vector(&t.in[0], (ref_dtype)from, n, &r);
      operand_vector(&t.out, (ref_dtype)to, n, &r);
      for (int64_t i = 0; i < n; i++) ref_put((ref_dtype)from, (char *)t.in[0].t.data + i * bits / 8, list[i]);
      trial_run(&t);
      trial_free(&t);
    }
    free(list);
  }
  group_end();
}

/* ---- Bool ------------------------------------------------------------------------------------------------------- */

/* Producers write other bytes than 0 and 1. They count as true wherever a number is made of them. */
static void test_bool_bytes(void) {
  rng r;
  rng_seed(&r, 5);
  int64_t n = 300;
  group_begin("bool bytes 0 to 255: any but 0 is true");
  for (int to = 0; to < REF_N_DTYPES; to++) {
    for (int op = 0; op < 5; op++) {
      static const ref_op which[] = {REF_ASTYPE, REF_WHERE, REF_ADD, REF_EQUAL, REF_LESS};
      if (!has_op(which[op])) continue;
      trial t = {.op = which[op], .note = "bool bytes"};
      if (which[op] == REF_ADD && to == REF_BOOL) continue;
      operand_vector(&t.in[0], REF_BOOL, n, &r);
      for (int i = 0; i < n; i++) *((unsigned char *)t.in[0].t.data + i) = (unsigned char)i;
      for (int k = 1; k < ref_op_describe(which[op])->n_in; k++) operand_vector(&t.in[k], (ref_dtype)to, n, &r);
      operand_vector(&t.out, which[op] == REF_EQUAL || which[op] == REF_LESS ? REF_BOOL : (ref_dtype)to, n, &r);
      trial_run(&t);
      trial_free(&t);
    }
  }
  group_end();
}

int main(void) {
  test_all_pairs();
  test_nan();
  test_annex_f();
  test_casts(REF_ASTYPE);
  test_casts(REF_SATURATE_CAST);
  test_bool_bytes();
  return done_testing();
}
