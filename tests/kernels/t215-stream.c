/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t215-stream: results too large for the cache go past it by another path, but for those of heavy ops; inputs of narrow results are read far
 * ahead: the same bits as from calls on small parts, at every alignment, in rows with a pitch, with periodic operands, and not a byte beside them. */
#include <malloc.h>

#include "tensors.h"

static const struct {
  ref_op op;
  ref_dtype in[3], out;
} cases[] = {
    {REF_ADD, {REF_F32, REF_F32}, REF_F32},   {REF_NEGATIVE, {REF_I32}, REF_I32},      {REF_EXP, {REF_F32}, REF_F32},
    {REF_ADD, {REF_F16, REF_F16}, REF_F16},   {REF_MAXIMUM, {REF_U8, REF_U8}, REF_U8}, {REF_ASTYPE, {REF_U8}, REF_F32},
    {REF_COPY, {REF_F64}, REF_F64},           {REF_FULL, {REF_F32}, REF_BF16},
    {REF_WHERE, {REF_BOOL, REF_F32, REF_F32}, REF_F32},
    {REF_LESS, {REF_F64, REF_I32}, REF_BOOL}, {REF_MULTIPLY, {REF_BF16, REF_F32}, REF_F64},
    {REF_ASTYPE, {REF_F64}, REF_U16},         {REF_ASTYPE, {REF_F64}, REF_U16}, /* read far ahead; the second is not streamed */
};
#define N_CASES (int)(sizeof cases / sizeof *cases)
#define MEGABYTES(c) ((c) + 1 < N_CASES ? 49 : 40) /* of all operands; QN_STREAM_BYTES is between them */

/* Where an output lies, `elements` and `bytes` behind a multiple of 64 (by_case: and the case's number, modulo 7, bytes more),
 * and its rows. */
static const struct {
  int elements, bytes, by_case;
  int64_t cols, pitch;
  int is_periodic;
} places[] = {
    {0, 0, 0, 1000, 1000, 0}, /* one long line */
    {1, 0, 0, 1000, 1000, 0}, {-1, 64, 0, 999, 999, 0},
    {0, 1, 1, 1000, 1000, 0}, /* off by bytes */
    {0, 32, 0, 1000, 1003, 0}, {0, 5, 0, 270000, 270013, 0}, /* rows with gaps: short and long */
    {0, 0, 0, 3, 3, 1}, /* [n, 3] with [3] */
    {1, 0, 0, 1001, 1001, 1}, /* pieces go on from row to row */
    {0, 0, 0, 300000, 300001, 1},
};
#define N_PLACES (int)(sizeof places / sizeof *places)

static int n_streamed;

/* [rows, cols], the output's rows `pitch` elements apart; input 2 a single row where `periodic`. */
static void run_case(int c, int offset, int64_t cols, int64_t pitch, int periodic, rng *r) {
  const ref_op_info *info = ref_op_describe(cases[c].op);
  int64_t size = ref_dtype_size(cases[c].out);
  for (int k = 0; k < info->n_in; k++) size += ref_dtype_size(cases[c].in[k]);
  int64_t rows = ((int64_t)MEGABYTES(c) << 20) / size / cols + 1, shape[2] = {rows, cols}, out_strides[2] = {pitch, 1};
  operand in[3], out;
  DLTensor *ins[3] = {&in[0].t, &in[1].t, &in[2].t}, *outs = &out.t;
  char text[2000];
  quern_op *op = the_op(cases[c].op);
  for (int k = 0; k < info->n_in; k++) {
    operand_describe(&in[k], cases[c].in[k], periodic && k == 1 ? 1 : 2, periodic && k == 1 ? shape + 1 : shape, NULL);
    operand_allocate(&in[k], (offset * (k + 3)) % 64, GUARD_NONE);
    /* Random memory is random elements; bools are 0 and 1. */
    unsigned char *body = body_of(&in[k]);
    for (size_t i = 0; i + 8 <= body_bytes(&in[k]); i += 8) {
      uint64_t x = rng_u64(r);
      if (in[k].d == REF_BOOL) x &= 0x0101010101010101u;
      memcpy(body + i, &x, 8);
    }
  }
  operand_describe(&out, cases[c].out, 2, shape, out_strides);
  operand_allocate(&out, offset, GUARD_NONE);
  memset(body_of(&out), 0x77, body_bytes(&out));
  unsigned char *wanted = malloc(body_bytes(&out));
  memcpy(wanted, body_of(&out), body_bytes(&out));
  quern_status s = quern_op_call(op, info->n_in, ins, 1, &outs, NULL);
  int good = s == QUERN_OK;
  quern_op_explain(op, info->n_in, ins, 1, &outs, NULL, text, sizeof text);
  n_streamed += strstr(text, "streamed: yes") != NULL;

  /* The same by small calls into `wanted`: parts of about 10^5 elements. */
  int64_t part = 100000 / cols + 1;
  for (int64_t row = 0; row < rows && good; row += part) {
    DLTensor small[4];
    DLTensor *small_in[3] = {&small[0], &small[1], &small[2]}, *small_out = &small[3];
    int64_t small_shape[2] = {rows - row < part ? rows - row : part, cols};
    for (int k = 0; k < info->n_in; k++) {
      small[k] = in[k].t;
      if (in[k].t.ndim == 1) continue;
      small[k].shape = small_shape;
      small[k].data = (char *)in[k].t.data + row * cols * ref_dtype_size(in[k].d);
    }
    small[3] = out.t;
    small[3].shape = small_shape;
    small[3].data = wanted + ((unsigned char *)out.t.data - body_of(&out)) + row * pitch * ref_dtype_size(out.d);
    s = quern_op_call(op, info->n_in, small_in, 1, &small_out, NULL);
    good = s == QUERN_OK;
  }
  group_count(1);
  if (!good) {
    group_fail("%s: %s", info->name, quern_last_error());
  } else if (memcmp(wanted, body_of(&out), body_bytes(&out))) {
    size_t i = 0;
    while (wanted[i] == body_of(&out)[i]) i++;
    int64_t at = (int64_t)(body_of(&out) + i - (unsigned char *)out.t.data);
    group_fail("%s: offset %d, [%" PRId64 ", %" PRId64 "] pitch %" PRId64 ": byte %" PRId64
               " from data differs from small calls: got 0x%02x, wanted 0x%02x\n%s", info->name, offset, rows, cols, pitch, at,
               body_of(&out)[i], wanted[i], text);
  }
  free(wanted);
  for (int k = 0; k < info->n_in; k++) operand_free(&in[k]);
  operand_free(&out);
}

int main(void) {
  rng r;
  rng_seed(&r, 1);
  mallopt(M_MMAP_THRESHOLD, 1 << 30); /* memory that was touched is used again */
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  for (int c = 0; c < N_CASES; c++) {
    if (!has_op(cases[c].op)) continue;
    int size = ref_dtype_size(cases[c].out);
    n_streamed = 0;
    group_begin("%s to %s: large results equal small ones", ref_op_describe(cases[c].op)->name, ref_dtype_name(cases[c].out));
    for (int k = 0; k < N_PLACES; k++) {
      /* What the sanitizers look for does not depend on every place, and they take long over megabytes. */
      if (SANITIZED && k % 3 != c % 3) continue;
      const int offset = places[k].elements * size + places[k].bytes + (places[k].by_case ? c % 7 : 0);
      run_case(c, offset, places[k].cols, places[k].pitch, places[k].is_periodic, &r);
    }
    group_end();
    int is_cached = MEGABYTES(c) < 48 || cases[c].op == REF_EXP; /* exp takes longer to compute than to write */
    ok(is_cached ? n_streamed == 0 : n_streamed > 0, "%d of them were streamed", n_streamed);
  }
  return done_testing();
}
