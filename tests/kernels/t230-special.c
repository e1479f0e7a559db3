/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t230-special: special values. All pairs of them through every float op and dtype against ref.c; NaN in every form and
 * its one form at the outputs; corners of the integers; conversions at their edges; bool bytes other than 0 and 1. What the
 * standards say of special cases, which are exact whatever the ULP bound, is t232's. */
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
    const uint64_t some[] = {0, 1, 2, 3, 7, 10, 31, 63, 64, 127, 128, 200, 255, top - 2, top - 1, top, top + 1, all - 2, all - 1,
                             all};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) list[n++] = some[i] & all;
    return n;
  }
  uint64_t quiet = ref_nan(d), inf = quiet & (quiet - 1), one_quiet = quiet ^ inf;
  static const double some[] = {0.5, 1, 1.5, 2, 2.5, 3, 4, 10, 16, 88.5, 100, 104, 710, 745.2, 1e4, 65504, 8388609, 1e10,
                                9007199254740992, 1e20, 1e37, 1e300,
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
          ref_put((ref_dtype)d, (char *)t.in[who].t.data + i * ref_dtype_size((ref_dtype)d),
                  inf | payload | (rng_u64(&r) & sign));
        }
        trial_run(&t);
        trial_free(&t);
      }
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
      const double edges[] = {255, 255.5, 256, -0.5, -0.99, -1, 2147483647.0, 2147483648.0, -2147483648.0, -2147483649.0,
                              9223372036854775807.0, -9223372036854775808.0, 65519.99, 65520, 3.3961e38, 3.4e38};
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
  test_casts(REF_ASTYPE);
  test_casts(REF_SATURATE_CAST);
  test_bool_bytes();
  return done_testing();
}
