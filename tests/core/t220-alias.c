/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t220-alias: the law of aliasing. An output at the very addresses of an input works, for each pair and op; anything
 * else that shares memory is OVERLAP and nothing is written; what only looks as if it shared memory is served. */
#include "tensors.h"

/* Whether case i is in this run's part. */
static int is_today(int i) {
  const int part = test_part(4);
  return part < 0 || i % 4 == part;
}

/* Output and input k of one size: exact alias. What describe says must agree. */
static void test_exact(void) {
  rng r;
  rng_seed(&r, 1);
  group_begin("an output at an input's addresses: every op, pair and dtype of that size");
  for (int op = 0; op < REF_N_OPS; op++) {
    if (!has_op((ref_op)op)) continue;
    const ref_op_info *info = ref_op_describe((ref_op)op);
    for (int who = 0; who < info->n_in; who++) {
      for (int d = 0; d < REF_N_DTYPES; d++) {
        for (int o = 0; o < REF_N_DTYPES; o++) {
          ref_dtype in[3], result = (ref_dtype)o, compute;
          for (int k = 0; k < 3; k++) in[k] = (ref_dtype)d;
          if (op == REF_WHERE) {
            in[0] = REF_BOOL;
            if (who == 0) in[1] = in[2] = (ref_dtype)d;
          }
          if (ref_resolve((ref_op)op, in, &result, &compute) || !ref_may_store((ref_op)op, result, (ref_dtype)o)) continue;
          if (ref_dtype_size(in[who]) != ref_dtype_size((ref_dtype)o)) continue;
          for (int shape_kind = 0; shape_kind < 5; shape_kind++) {
            if (!is_today(op + who + d + o + shape_kind)) continue;
            int64_t n = shape_kind == 0 ? 9 : 1030, two[2] = {n / 3, 3}, gaps[2] = {7, 2}, turned[2] = {1, n / 3}, back[1] = {-2};
            trial t = {.op = (ref_op)op, .note = "output is an input"};
            for (int k = 0; k < info->n_in; k++) {
              if (k == who) continue;
              if (shape_kind < 2) operand_vector(&t.in[k], in[k], n, &r);
              else if (shape_kind == 4) operand_make(&t.in[k], in[k], 1, &n, back, &r);
              else operand_make(&t.in[k], in[k], 2, two, NULL, &r);
            }
            if (shape_kind < 2) operand_vector(&t.out, (ref_dtype)o, n, &r);
            else if (shape_kind == 4) operand_make(&t.out, (ref_dtype)o, 1, &n, back, &r);
            else operand_make(&t.out, (ref_dtype)o, 2, two, shape_kind == 2 ? gaps : turned, &r);
            t.in[who] = t.out;
            t.in[who].memory = t.in[who].saved = NULL;
            t.in[who].d = in[who];
            t.in[who].t.dtype = ref_dtype_dl(in[who]);
            t.in[who].t.shape = t.in[who].shape;
            t.in[who].t.strides = t.in[who].strides;
            /* The contents as the input's dtype. */
            int64_t index[2] = {0};
            do ref_put(in[who], ref_address(&t.in[who].t, index), random_bits(&r, in[who]));
            while (ref_next_index(t.in[who].t.ndim, t.in[who].t.shape, index));
            trial_run(&t);
            trial_free(&t);
          }
        }
      }
    }
  }
  group_end();

  group_begin("all inputs and the output one tensor");
  for (int op = 0; op < REF_N_OPS; op++) {
    if (!has_op((ref_op)op)) continue;
    const ref_op_info *info = ref_op_describe((ref_op)op);
    if (info->n_in < 2 || op == REF_WHERE) continue;
    for (int d = 0; d < REF_N_DTYPES; d++) {
      ref_dtype in[3] = {(ref_dtype)d, (ref_dtype)d, (ref_dtype)d}, result = REF_BOOL, compute;
      if (ref_resolve((ref_op)op, in, &result, &compute) || result != (ref_dtype)d) continue;
      trial t = {.op = (ref_op)op, .note = "all one tensor"};
      operand_vector(&t.out, (ref_dtype)d, 777, &r);
      for (int k = 0; k < info->n_in; k++) {
        t.in[k] = t.out;
        t.in[k].memory = t.in[k].saved = NULL;
        t.in[k].t.shape = t.in[k].shape;
        t.in[k].t.strides = t.in[k].strides;
      }
      trial_run(&t);
      trial_free(&t);
    }
  }
  group_end();
}

/* A call over views of one buffer of 4096 bytes; what status, and was anything written? */
static unsigned char buffer[4096], before[4096];

typedef struct view {
  ref_dtype d;
  int ndim;
  int64_t offset; /* bytes */
  int64_t shape[3], strides[3];
} view;

static void view_tensor(const view *v, DLTensor *t) {
  memset(t, 0, sizeof *t);
  t->data = buffer;
  t->byte_offset = (uint64_t)v->offset;
  t->device.device_type = kDLCPU;
  t->dtype = ref_dtype_dl(v->d);
  t->ndim = v->ndim;
  t->shape = (int64_t *)v->shape;
  t->strides = (int64_t *)v->strides;
}

static quern_status call_views(ref_op op, const view *in, const view *out) {
  DLTensor t[4], *ins[3] = {&t[0], &t[1], &t[2]}, *outs = &t[3];
  int n_in = ref_op_describe(op)->n_in;
  for (int k = 0; k < n_in; k++) view_tensor(&in[k], &t[k]);
  view_tensor(out, &t[3]);
  for (size_t i = 0; i < sizeof buffer; i++) buffer[i] = (unsigned char)(i * 7 + 3);
  memcpy(before, buffer, sizeof buffer);
  return quern_op_call(the_op(op), n_in, ins, 1, &outs, NULL);
}

static void refused(ref_op op, const view *in, const view *out, const char *name) {
  quern_status s = call_views(op, in, out);
  if (ok(s == QUERN_E_OVERLAP && memcmp(buffer, before, sizeof buffer) == 0, "refused: %s", name)) return;
  diag("status %s, %s; %s", status_name(s), quern_last_error(),
       memcmp(buffer, before, sizeof buffer) ? "memory was written" : "memory untouched");
}

/* Served, and equal to what the same call gives on copies of the inputs. */
static void served(ref_op op, const view *in, const view *out, const char *name) {
  DLTensor t[4], *ins[3] = {&t[0], &t[1], &t[2]};
  ref_difference diff;
  for (size_t i = 0; i < sizeof buffer; i++) buffer[i] = (unsigned char)(i * 7 + 3);
  for (int k = 0; k < ref_op_describe(op)->n_in; k++) view_tensor(&in[k], &t[k]);
  view_tensor(out, &t[3]);
  ref_expect *expect = ref_eval_tensor(op, ins, NULL, &t[3]);
  quern_status s = call_views(op, in, out);
  if (!ok(s == QUERN_OK, "served: %s", name)) diag("%s: %s", status_name(s), quern_last_error());
  else if (!ok(ref_check_tensor(&t[3], expect, &diff), "  and right")) diag("%" PRId64 " bad", diff.n_bad);
  free(expect);
}

static void test_by_one(void) {
  rng r;
  rng_seed(&r, 2);
  group_begin("overlaps by one element, or by a byte, for every op, input and dtype");
  for (int op = 0; op < REF_N_OPS; op++) {
    if (!has_op((ref_op)op)) continue;
    int n_in = ref_op_describe((ref_op)op)->n_in;
    for (int who = 0; who < n_in; who++) {
      for (int d = 0; d < REF_N_DTYPES; d++) {
        ref_dtype in[3] = {(ref_dtype)d, (ref_dtype)d, (ref_dtype)d}, result = (ref_dtype)d, compute;
        if (op == REF_WHERE) in[0] = REF_BOOL;
        if (ref_resolve((ref_op)op, in, &result, &compute)) continue;
        int is = ref_dtype_size(in[who]), os = ref_dtype_size(result);
        int64_t n = 40;
        /* The output's bytes are [1600, 1600 + 40 os). */
        const int64_t starts[] = {1600 + n * os - 1, 1600 + n * os - is, 1600 - n * is + 1, 1600 - n * is + is,
                                  1600 + os, 1600 - is, 1601, 1599};
        for (int s = 0; s < 8; s++) {
          view v[3], o = {result, 1, 1600, {n}, {1}};
          if (starts[s] == 1600) continue;
          for (int k = 0; k < n_in; k++) v[k] = (view){in[k], 1, k == who ? starts[s] : 3200 + 320 * (k & 1), {n}, {1}};
          group_count(1);
          quern_status status = call_views((ref_op)op, v, &o);
          if (status != QUERN_E_OVERLAP || memcmp(buffer, before, sizeof buffer)) {
            group_fail("%s: input %d (%s) at %" PRId64 ", output (%s) at 1600: %s%s", ref_op_describe((ref_op)op)->name,
                       who + 1, ref_dtype_name(in[who]), starts[s], ref_dtype_name(result), status_name(status),
                       memcmp(buffer, before, sizeof buffer) ? ", written" : "");
          }
        }
        /* One element further, and they are apart. */
        const int64_t apart[] = {1600 + n * os, 1600 - n * is};
        for (int s = 0; s < 2; s++) {
          view v[3], o = {result, 1, 1600, {n}, {1}};
          for (int k = 0; k < n_in; k++) v[k] = (view){in[k], 1, k == who ? apart[s] : 3200 + 320 * (k & 1), {n}, {1}};
          group_count(1);
          quern_status status = call_views((ref_op)op, v, &o);
          if (status != QUERN_OK) {
            group_fail("%s: input %d just beside the output: %s: %s", ref_op_describe((ref_op)op)->name, who + 1,
                       status_name(status), quern_last_error());
          }
        }
      }
    }
  }
  group_end();
}

static void test_views(void) {
  const view row = {REF_F32, 1, 2048, {10}, {1}};
#define F(offset, n, step) ((view){REF_F32, 1, offset, {n}, {step}})
#define F2(offset, n0, n1, s0, s1) ((view){REF_F32, 2, offset, {n0, n1}, {s0, s1}})
  refused(REF_ADD, (view[]){F(0, 10, 1), row}, &F(0, 10, 0), "output of stride 0");
  refused(REF_ADD, (view[]){F2(0, 5, 4, 4, 1), F(2048, 4, 1)}, &F2(512, 5, 4, 1, 1), "output with windows that overlap");
  refused(REF_ADD, (view[]){F2(0, 5, 4, 4, 1), F(2048, 4, 1)}, &F2(512, 5, 4, 3, 1), "output with rows that overlap by one");
  refused(REF_ADD, (view[]){F2(0, 5, 4, 4, 1), F(2048, 4, 1)}, &F2(512, 5, 4, 3, 2), "output with one shared element");
  served(REF_ADD, (view[]){F2(0, 4, 3, 4, 1), F(2048, 3, 1)}, &F2(512, 4, 3, 3, 4), "output of strides (3, 4): all different");
  served(REF_ADD, (view[]){F(0, 10, 2), row}, &F(4, 10, 2), "even elements in, odd elements out");
  refused(REF_ADD, (view[]){F(0, 10, 2), row}, &F(8, 10, 2), "even elements in, shifted by two out");
  refused(REF_ADD, (view[]){F(0, 10, 1), row}, &F(36, 10, -1), "an input reversed onto itself");
  refused(REF_ADD, (view[]){F2(0, 6, 6, 6, 1), F(2048, 6, 1)}, &F2(0, 6, 6, 1, 6), "an input transposed onto itself");
  refused(REF_ADD, (view[]){F2(0, 6, 6, 0, 1), F(2048, 6, 1)}, &F2(0, 6, 6, 6, 1), "a broadcast row that is the output's first");
  refused(REF_ADD, (view[]){F(20, 10, 0), row}, &F(0, 10, 1), "a scalar input inside the output");
  served(REF_ADD, (view[]){F(40, 10, 0), row}, &F(0, 10, 1), "a scalar input behind the output");
  served(REF_ADD, (view[]){F2(0, 10, 3, 8, 1), F(2048, 3, 1)}, &F2(16, 10, 3, 8, 1), "left columns in, right columns out");
  refused(REF_ADD, (view[]){F2(0, 10, 5, 8, 1), F(2048, 5, 1)}, &F2(16, 10, 4 + 1, 8, 1), "columns that share one");
  served(REF_ADD, (view[]){F(0, 10, 3), row}, &F(4, 10, 3), "interleaved triples");
  refused(REF_ADD, (view[]){F(0, 10, 3), row}, &F(4, 10, 2), "strides 3 and 2 meet");
  served(REF_ADD, (view[]){F(0, 10, 6), row}, &F(4, 10, 4), "strides 6 and 4, odd shift: never meet");
  served(REF_ADD, (view[]){F(400, 10, -1), row}, &F(404, 10, 1), "backwards and forwards from a middle");
  served(REF_ADD, (view[]){F(36, 10, -1), row}, &F(36, 10, -1), "the same element by element, backwards");
  served(REF_ADD, (view[]){F2(0, 1, 10, 77, 1), row}, &F2(0, 1, 10, 3, 1), "strides that differ only where there is one element");
  served(REF_ADD, (view[]){F2(0, 4, 5, 5, 1), F(2048, 1, 1)}, &F2(0, 4, 5, 5, 1), "in place with a scalar");
  served(REF_ADD, (view[]){F(0, 10, 1), F(0, 10, 1)}, &F(2048, 10, 1), "inputs may share as they like");
  served(REF_ADD, (view[]){F(0, 10, 1), F(4, 10, 1)}, &F(2048, 10, 1), "inputs may overlap");
  served(REF_ADD, (view[]){F(0, 0, 1), F(0, 0, 1)}, &F(0, 0, 0), "empty tensors share nothing");
  /* Other item sizes. */
  refused(REF_ASTYPE, (view[]){{REF_F32, 1, 0, {10}, {1}}}, &(view){REF_F64, 1, 0, {10}, {1}}, "f32 widened onto itself");
  refused(REF_ASTYPE, (view[]){{REF_F64, 1, 0, {10}, {1}}}, &(view){REF_F32, 1, 0, {10}, {1}}, "f64 narrowed onto itself");
  refused(REF_ASTYPE, (view[]){{REF_F64, 1, 0, {10}, {1}}}, &(view){REF_F32, 1, 0, {10}, {2}},
          "f64 narrowed onto its own low halves: addresses are the same, items are not of one size");
  served(REF_ASTYPE, (view[]){{REF_F32, 1, 0, {10}, {2}}}, &(view){REF_F32, 1, 4, {10}, {2}}, "interleaved f32");
  served(REF_ASTYPE, (view[]){{REF_F64, 1, 0, {10}, {2}}}, &(view){REF_F32, 1, 8, {10}, {4}}, "f64 and f32 interleaved");
  refused(REF_ASTYPE, (view[]){{REF_U8, 1, 2, {10}, {4}}}, &(view){REF_F32, 1, 0, {10}, {1}},
          "bytes inside of the output's items");
  refused(REF_ADD, (view[]){F(2, 10, 1), row}, &F(0, 10, 1), "half an element apart");
}

/* A zero extent or a hostile product must not make the overlap search run away. */
static void test_bound(void) {
  int64_t shape[6] = {3, 5, 3, 7, 3, 2}, in_strides[6] = {37, 11, 101, 13, 203, 97}, out_strides[6];
  rng r;
  rng_seed(&r, 3);
  compact_strides(6, shape, out_strides);
  operand a, b;
  operand_make(&a, REF_F32, 6, shape, in_strides, &r);
  operand_make(&b, REF_F32, 6, shape, out_strides, &r);
  DLTensor *in[1] = {&a.t}, *out[1] = {&b.t};
  is_int(quern_op_call(the_op(REF_NEGATIVE), 1, in, 1, out, NULL), QUERN_OK, "odd strides in memory of their own");
  /* 1890 elements within 902 places. */
  operand_save(&a);
  is_int(quern_op_call(the_op(REF_NEGATIVE), 1, out, 1, in, NULL), QUERN_E_OVERLAP, "an output with these strides is refused");
  ok(operand_same(&a), "and not written");
  operand_free(&a);
  operand_free(&b);
}

/* Six bounded dimensions with pairwise prime strides: exact answers from a brute-force count. */
static void test_self(void) {
  rng r;
  rng_seed(&r, 4);
  int n_overlapping = 0;
  group_begin("outputs with random strides: overlap with themselves found exactly");
  for (int i = 0; i < 3000; i++) {
    int ndim = 1 + (int)rng_below(&r, 3);
    int64_t shape[3], strides[3], index[3] = {0}, low, high;
    for (int k = 0; k < ndim; k++) {
      shape[k] = 1 + (int64_t)rng_below(&r, 6);
      strides[k] = rng_range(&r, -12, 12);
    }
    extent_of(ndim, shape, strides, &low, &high);
    unsigned char seen[256] = {0};
    int overlaps = 0;
    do {
      int64_t at = -low;
      for (int k = 0; k < ndim; k++) at += index[k] * strides[k];
      overlaps |= seen[at]++;
    } while (ref_next_index(ndim, shape, index));
    trial t = {.op = REF_NEGATIVE};
    operand_make(&t.in[0], REF_F32, ndim, shape, NULL, &r);
    operand_make(&t.out, REF_F32, ndim, shape, strides, &r);
    DLTensor *in = &t.in[0].t, *out = &t.out.t;
    group_count(1);
    if (overlaps) {
      n_overlapping++;
      operand_save(&t.out);
      quern_status s = quern_op_call(the_op(REF_NEGATIVE), 1, &in, 1, &out, NULL);
      if (s != QUERN_E_OVERLAP || !operand_same(&t.out)) {
        trial_report(&t, "overlaps itself and was not refused");
      }
    } else {
      trial_run(&t);
    }
    trial_free(&t);
  }
  diag("%d of 3000 overlapped", n_overlapping);
  group_end();

  group_begin("an input and an output in one buffer, random strides: served exactly when apart or the same");
  for (int i = 0; i < 6000; i++) {
    int ndim = 1 + (int)rng_below(&r, 2);
    view in = {REF_I32, ndim, 0, {0}, {0}}, out = in;
    int64_t index[3] = {0}, out_low, in_low, unused;
    for (int k = 0; k < ndim; k++) {
      in.shape[k] = out.shape[k] = 1 + (int64_t)rng_below(&r, 7);
      in.strides[k] = rng_range(&r, -9, 9);
      out.strides[k] = rng_below(&r, 3) ? rng_range(&r, -20, 20) : in.strides[k];
    }
    extent_of(ndim, in.shape, in.strides, &in_low, &unused);
    extent_of(ndim, out.shape, out.strides, &out_low, &unused);
    in.offset = 4 * (-in_low + (int64_t)rng_below(&r, 40));
    out.offset = rng_below(&r, 4) ? 4 * (-out_low + (int64_t)rng_below(&r, 60)) : in.offset;
    if (out.offset + 4 * out_low < 0) out.offset = -4 * out_low;
    /* Brute force. */
    static unsigned char written[1024];
    memset(written, 0, sizeof written);
    int wrong = 0, same = 1;
    do {
      int64_t a = in.offset / 4, b = out.offset / 4;
      for (int k = 0; k < ndim; k++) {
        a += index[k] * in.strides[k];
        b += index[k] * out.strides[k];
      }
      if (written[b]) wrong = 1; /* itself */
      written[b] = 1;
      same &= a == b;
    } while (ref_next_index(ndim, in.shape, index));
    int meet = 0;
    do {
      int64_t a = in.offset / 4;
      for (int k = 0; k < ndim; k++) a += index[k] * in.strides[k];
      meet |= written[a];
    } while (ref_next_index(ndim, in.shape, index));
    int legal = !wrong && (same || !meet);
    quern_status s = call_views(REF_NEGATIVE, &in, &out);
    group_count(1);
    if (s != (legal ? QUERN_OK : QUERN_E_OVERLAP) || (!legal && memcmp(buffer, before, sizeof buffer))) {
      group_fail("shape [%" PRId64 ", %" PRId64 "] in at %" PRId64 " strides %" PRId64 " %" PRId64 ", out at %" PRId64
                 " strides %" PRId64 " %" PRId64 ": %s, wanted %s", in.shape[0], in.shape[1], in.offset / 4, in.strides[0],
                 in.strides[1], out.offset / 4, out.strides[0], out.strides[1], status_name(s), legal ? "OK" : "OVERLAP");
    }
  }
  group_end();
}

static void test_described(void) {
  group_begin("describe: may_alias allows every input of an elementwise op");
  for (int op = 0; op < REF_N_OPS; op++) {
    if (!has_op((ref_op)op)) continue;
    const quern_op_info *info = quern_op_describe(the_op((ref_op)op));
    group_count(1);
    if (info->args[info->n_in].may_alias != (uint32_t)((1u << info->n_in) - 1)) {
      group_fail("%s: may_alias 0x%x", info->name, info->args[info->n_in].may_alias);
    }
  }
  group_end();
}

int main(void) {
  test_exact();
  test_by_one();
  test_views();
  test_bound();
  test_self();
  test_described();
  return done_testing();
}
