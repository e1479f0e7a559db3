/* SPDX-License-Identifier: Apache-2.0
 * tags: long
 *
 * t200-ops: every op, every combination of input dtypes, every dtype of output that is allowed, layouts and sizes,
 * against ref.c; every combination that is refused, refused with DTYPE and an untouched output. Of combinations of several dtypes
 * and of layouts at one size each it takes an eighth, of sizes a third, others each day: t285 has all layouts of every op. */
#include "tensors.h"

enum { CONTIGUOUS, LEFT_SCALAR, RIGHT_SCALAR, ZERO_D, STRIDED, NEGATIVE, TRANSPOSED, OUT_TRANSPOSED, SMALL_INNER, ROWS, PERMUTED,
       MIXED, N_LAYOUTS };
static const char *const layout_names[] = {"contiguous", "left scalar", "right scalar", "0-d input", "strided", "negative",
                                           "transposed", "output transposed", "[n, 3] with [3]", "rows with a pitch",
                                           "permuted 3-D", "each operand different"};

/* One operand of a layout, about n elements; k counts the inputs, -1 is the output. */
static void lay_out(operand *o, ref_dtype d, int layout, int64_t n, int k, int n_in, rng *r) {
  int64_t three = n / 3 ? n / 3 : n, side = (int64_t)sqrt((double)n), shape[3], strides[3];
  if (layout == MIXED) {
    /* [a, b]: compact, columns, pitch with a negative step, a broadcast row: one each, the output gapped. */
    int64_t a = side, b = side ? n / side : 0;
    shape[0] = a;
    shape[1] = b;
    switch (k) {
      case 0: strides[0] = 1; strides[1] = a; break;
      case 1: strides[0] = 2 * b + 1; strides[1] = -2; break;
      case 2: strides[0] = 0; strides[1] = 1; break;
      default: strides[0] = 3 * b; strides[1] = 3; break;
    }
    operand_describe(o, d, 2, shape, strides);
  } else if (layout == TRANSPOSED || layout == OUT_TRANSPOSED) {
    int64_t a = side, b = side ? n / side : 0;
    int flip = layout == OUT_TRANSPOSED ? k < 0 : k == 0;
    shape[0] = a;
    shape[1] = b;
    strides[0] = flip ? 1 : b;
    strides[1] = flip ? a : 1;
    operand_describe(o, d, 2, shape, strides);
  } else if (layout == SMALL_INNER) {
    shape[0] = three;
    shape[1] = 3;
    strides[0] = 3;
    strides[1] = 1;
    if (k == 1) operand_describe(o, d, 1, shape + 1, strides + 1);
    else operand_describe(o, d, 2, shape, strides);
  } else if (layout == ROWS) {
    shape[0] = side;
    shape[1] = side ? n / side : 0;
    strides[0] = shape[1] + 5 + k;
    strides[1] = 1;
    operand_describe(o, d, 2, shape, strides);
  } else if (layout == PERMUTED) {
    int64_t a = n / 6 ? n / 6 : n;
    shape[0] = 2;
    shape[1] = a;
    shape[2] = 3;
    strides[0] = k == 0 ? 1 : 3 * a;
    strides[1] = k == 0 ? 6 : k == 1 ? 1 : 3;
    strides[2] = k == 0 ? 2 : k == 1 ? a : 1;
    operand_describe(o, d, 3, shape, strides);
  } else {
    shape[0] = n;
    strides[0] = layout == STRIDED ? 2 + (k + 1) % 3 : layout == NEGATIVE ? (k == 1 ? -3 : -1) : 1;
    if ((layout == LEFT_SCALAR && k == 0) || (layout == RIGHT_SCALAR && k == 1)) strides[0] = 0;
    if (layout == ZERO_D && (k == 0 || n_in == 1)) operand_describe(o, d, 0, shape, NULL);
    else operand_describe(o, d, 1, shape, strides);
  }
  operand_allocate(o, ref_dtype_size(d) * (int)rng_below(r, 8), GUARD_NONE);
  operand_fill(o, r);
}

static int run_case(ref_op op, const ref_dtype *in, ref_dtype out, int layout, int64_t n, rng *r) {
  const ref_op_info *info = ref_op_describe(op);
  trial t = {.op = op, .note = layout_names[layout]};
  for (int k = 0; k < info->n_in; k++) lay_out(&t.in[k], in[k], layout, n, k, info->n_in, r);
  lay_out(&t.out, out, layout, n, -1, info->n_in, r);
  int good = trial_run(&t);
  trial_free(&t);
  return good;
}

/* The call must be refused with DTYPE, the output left alone. */
static void run_refused(ref_op op, const ref_dtype *in, ref_dtype out, rng *r) {
  trial t = {.op = op, .note = "to be refused"};
  DLTensor *ins[REF_MAX_INPUTS], *outs = &t.out.t;
  int n_in = ref_op_describe(op)->n_in;
  for (int k = 0; k < n_in; k++) {
    lay_out(&t.in[k], in[k], CONTIGUOUS, 40, k, n_in, r);
    ins[k] = &t.in[k].t;
  }
  lay_out(&t.out, out, CONTIGUOUS, 40, -1, n_in, r);
  operand_save(&t.out);
  quern_status status = quern_op_call(the_op(op), n_in, ins, 1, &outs, NULL);
  char what[300];
  group_count(1);
  if (status != QUERN_E_DTYPE) {
    snprintf(what, sizeof what, "status %s, wanted DTYPE", status_name(status));
    trial_report(&t, what);
  } else if (!operand_same(&t.out)) {
    trial_report(&t, "refused, but the output was written");
  } else if (strncmp(quern_last_error(), ref_op_describe(op)->name, strlen(ref_op_describe(op)->name)) != 0) {
    snprintf(what, sizeof what, "the sentence does not begin with the op: %s", quern_last_error());
    trial_report(&t, what);
  }
  trial_free(&t);
}

/* 15 to 1025: around vector widths and block sizes. */
static const int64_t sizes[] = {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 255, 256, 257, 511, 512, 513, 1000, 1023, 1024, 1025};
#define N_SIZES (int)(sizeof sizes / sizeof *sizes)

/* Whether case i is in this run's part of cases that are cut in n: 3, 8, 12 or 32. */
static int is_today(int i, int n) {
  const int part = test_part(96);
  return part < 0 || i % n == part % n;
}

static void test_op(ref_op op) {
  const ref_op_info *info = ref_op_describe(op);
  int n_in = info->n_in, n_combos = 1;
  rng r;
  rng_seed(&r, (uint64_t)op);
  for (int k = 0; k < n_in; k++) n_combos *= REF_N_DTYPES;

  group_begin("%s: one dtype, all layouts and sizes", info->name);
  for (int d = 0; d < REF_N_DTYPES; d++) {
    ref_dtype in[REF_MAX_INPUTS] = {(ref_dtype)d, (ref_dtype)d, (ref_dtype)d}, result = (ref_dtype)d, compute;
    if (op == REF_WHERE) in[0] = REF_BOOL;
    if (ref_resolve(op, in, &result, &compute)) continue;
    for (int i = 0; i < N_SIZES; i++)
      if (is_today((int)op + d + i, 12)) run_case(op, in, result, CONTIGUOUS, sizes[i], &r);
    for (int layout = 1; layout < N_LAYOUTS; layout++) {
      static const int64_t some[] = {0, 1, 7, 100, 257, 1030};
      for (int i = 0; i < 6; i++)
        if (is_today((int)op + d + layout + i, 32)) run_case(op, in, result, layout, some[i], &r);
    }
    static const int larger[] = {STRIDED, TRANSPOSED, SMALL_INNER};
    for (int i = 0; i < 3; i++)
      if (is_today((int)op + d + i, 12)) run_case(op, in, result, larger[i], 5000, &r);
  }
  group_end();

  group_begin("%s: mixed dtypes of inputs and output", info->name);
  for (int combo = 0; combo < n_combos; combo++) {
    ref_dtype in[REF_MAX_INPUTS], result = REF_N_DTYPES, compute;
    int same = 1, turn = combo, sum = (int)op;
    for (int k = 0; k < n_in; k++) {
      in[k] = (ref_dtype)(turn % REF_N_DTYPES);
      turn /= REF_N_DTYPES;
      sum += (int)in[k];
      if (in[k] != in[0]) same = 0;
    }
    if (info->cast) result = REF_BOOL;
    if (n_in > 1 && !is_today(sum, 8)) continue;
    if (ref_resolve(op, in, &result, &compute)) continue;
    for (int out = 0; out < REF_N_DTYPES; out++) {
      if (!ref_may_store(op, result, (ref_dtype)out)) continue;
      if (n_in == 1 && !is_today((int)op + combo + out, 3)) continue;
      /* Three inputs have 512 combinations: other outputs for a sample of them. */
      if (n_in == 3 && (ref_dtype)out != result && rng_below(&r, 8)) continue;
      if ((ref_dtype)out == result && !same) run_case(op, in, (ref_dtype)out, CONTIGUOUS, 1 + (int64_t)rng_below(&r, 300), &r);
      run_case(op, in, (ref_dtype)out, (int)rng_below(&r, N_LAYOUTS), 1 + (int64_t)rng_below(&r, 600), &r);
      if (n_in == 1) run_case(op, in, (ref_dtype)out, CONTIGUOUS, 1025, &r);
    }
  }
  group_end();

  int n_refused = 0;
  for (int pass_number = 0; pass_number < 2; pass_number++) {
    if (pass_number && n_refused) group_begin("%s: combinations that are refused", info->name);
    if (pass_number && !n_refused) break;
    for (int combo = 0; combo < n_combos; combo++) {
      ref_dtype in[REF_MAX_INPUTS], result = REF_BOOL, compute;
      int turn = combo;
      for (int k = 0; k < n_in; k++) {
        in[k] = (ref_dtype)(turn % REF_N_DTYPES);
        turn /= REF_N_DTYPES;
      }
      int refused = ref_resolve(op, in, &result, &compute);
      for (int out = 0; out < REF_N_DTYPES; out++) {
        if (!refused && ref_may_store(op, result, (ref_dtype)out)) continue;
        if (pass_number) run_refused(op, in, (ref_dtype)out, &r);
        n_refused++;
      }
    }
    if (pass_number) group_end();
  }
}

int main(void) {
  for (int op = 0; op < REF_N_OPS; op++) {
    if (has_op((ref_op)op)) test_op((ref_op)op);
  }
  return done_testing();
}
