/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t210-layout: any rank, any strides, byte_offset, every alignment, operands between unmapped pages, empty tensors,
 * tensors of more than 2^31 elements. Few ops, all ways to lie in memory. */
#include <unistd.h>

#include "tensors.h"

/* Ops and dtypes that between them take every road through the library: arithmetic, conversion, move, mask, heavy. */
static const struct {
  ref_op op;
  ref_dtype in[3], out;
} cases[] = {
    {REF_ADD, {REF_F32, REF_F32}, REF_F32},
    {REF_ADD, {REF_F16, REF_F16}, REF_F16},
    {REF_SUBTRACT, {REF_F64, REF_F64}, REF_F64},
    {REF_MULTIPLY, {REF_U8, REF_F32}, REF_F32},
    {REF_MULTIPLY, {REF_I64, REF_I32}, REF_I64},
    {REF_MAXIMUM, {REF_BF16, REF_BF16}, REF_BF16},
    {REF_WHERE, {REF_BOOL, REF_F64, REF_F64}, REF_F64},
    {REF_WHERE, {REF_BOOL, REF_F32, REF_I32}, REF_F32},
    {REF_LESS, {REF_F32, REF_F32}, REF_BOOL},
    {REF_EQUAL, {REF_U8, REF_U8}, REF_BOOL},
    {REF_FMA, {REF_F32, REF_F32, REF_F32}, REF_F32},
    {REF_COPY, {REF_BOOL}, REF_BOOL},
    {REF_COPY, {REF_F16}, REF_F16},
    {REF_COPY, {REF_F32}, REF_F32},
    {REF_COPY, {REF_F64}, REF_F64},
    {REF_ASTYPE, {REF_F32}, REF_U8},
    {REF_ASTYPE, {REF_U8}, REF_F16},
    {REF_ASTYPE, {REF_I64}, REF_BF16},
    {REF_SATURATE_CAST, {REF_I64}, REF_I8},
    {REF_SATURATE_CAST, {REF_F32}, REF_U8},
    {REF_NEGATIVE, {REF_I32}, REF_I32},
    {REF_EXP, {REF_F32}, REF_F32},
    {REF_TANH, {REF_F16}, REF_F16},
    {REF_FULL, {REF_F32}, REF_F32},
    {REF_ADD, {REF_F32, REF_F32}, REF_F64},
};
#define N_CASES (int)(sizeof cases / sizeof *cases)

/* Strides of a memory without overlap: dimensions in random order, random gaps, random signs. */
static void scattered_strides(int ndim, const int64_t *shape, int64_t *strides, rng *r) {
  int order[QUERN_MAX_NDIM];
  int64_t step = 1;
  for (int i = 0; i < ndim; i++) order[i] = i;
  if (rng_below(r, 3)) {
    for (int i = ndim - 1; i > 0; i--) {
      int j = (int)rng_below(r, (uint64_t)i + 1), swap = order[i];
      order[i] = order[j];
      order[j] = swap;
    }
  } else { /* mostly row-major */
    for (int i = 0; i < ndim; i++) order[i] = ndim - 1 - i;
  }
  int gaps = rng_below(r, 3) == 0, signs = rng_below(r, 3) == 0;
  for (int i = 0; i < ndim; i++) {
    int d = order[i];
    if (gaps && rng_below(r, 4) == 0) step += (int64_t)rng_below(r, 4);
    strides[d] = signs && rng_below(r, 2) ? -step : step;
    /* A dimension of one element may have any stride. */
    if (shape[d] == 1 && rng_below(r, 2)) strides[d] = 0;
    step *= shape[d];
  }
}

/* A random operand that broadcasts to `shape` (an output does not broadcast). */
static void random_operand(operand *o, ref_dtype d, int ndim, const int64_t *shape, int is_output, int guard, rng *r) {
  int64_t own[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM];
  int skipped = 0;
  if (!is_output && rng_below(r, 4) == 0 && ndim) skipped = (int)rng_below(r, (uint64_t)ndim + 1);
  for (int i = skipped; i < ndim; i++) own[i - skipped] = shape[i];
  ndim -= skipped;
  if (!is_output && rng_below(r, 2) == 0) {
    for (int i = 0; i < ndim; i++) {
      if (rng_below(r, 4) == 0) own[i] = 1;
    }
  }
  scattered_strides(ndim, own, strides, r);
  if (!is_output && rng_below(r, 3) == 0) { /* broadcast by stride, and windows that overlap themselves */
    for (int i = 0; i < ndim; i++) {
      if (rng_below(r, 3) == 0) strides[i] = (int64_t)rng_below(r, 3) - 1;
    }
  }
  int compact = rng_below(r, 5) == 0;
  operand_describe(o, d, ndim, own, compact ? NULL : strides);
  operand_allocate(o, (int)rng_below(r, 64), guard);
  if (compact && rng_below(r, 2)) o->t.strides = NULL;
  if (ndim == 0 && rng_below(r, 2)) o->t.shape = o->t.strides = NULL;
  if (rng_below(r, 2)) {
    o->t.byte_offset = rng_below(r, 5000);
    o->t.data = (char *)o->t.data - o->t.byte_offset;
  }
  operand_fill(o, r);
}

static void run_random(int c, int ndim, const int64_t *shape, int guard, const char *note, rng *r) {
  if (!has_op(cases[c].op)) return;
  trial t = {.op = cases[c].op, .note = note};
  int n_in = ref_op_describe(t.op)->n_in;
  for (int k = 0; k < n_in; k++) random_operand(&t.in[k], cases[c].in[k], ndim, shape, 0, guard, r);
  /* The broadcast shape may be smaller than planned: the output has what the inputs make of it. */
  int64_t out_shape[QUERN_MAX_NDIM];
  int out_ndim = n_in ? 0 : ndim;
  for (int k = 0; k < n_in; k++) {
    if (t.in[k].t.ndim > out_ndim) out_ndim = t.in[k].t.ndim;
  }
  for (int i = 0; i < out_ndim; i++) {
    out_shape[i] = n_in ? 1 : shape[i];
    for (int k = 0; k < n_in; k++) {
      int at = i - (out_ndim - t.in[k].t.ndim);
      if (at >= 0 && t.in[k].shape[at] != 1) out_shape[i] = t.in[k].shape[at];
    }
  }
  random_operand(&t.out, cases[c].out, out_ndim, out_shape, 1, guard, r);
  trial_run(&t);
  trial_free(&t);
}

static void test_ranks(void) {
  rng r;
  rng_seed(&r, 1);
  group_begin("ranks 0 to 32, random layouts");
  for (int ndim = 0; ndim <= QUERN_MAX_NDIM; ndim++) {
    for (int c = 0; c < N_CASES; c++) {
    if (!has_op(cases[c].op)) continue;
      int64_t shape[QUERN_MAX_NDIM], n = 1;
      for (int i = 0; i < ndim; i++) {
        shape[i] = 1 + (int64_t)rng_below(&r, ndim > 12 ? 2 : 4);
        if (n * shape[i] > 3000) shape[i] = 1;
        n *= shape[i];
      }
      run_random(c, ndim, shape, GUARD_NONE, "random layout of this rank", &r);
    }
  }
  group_end();
}

static void test_shapes(void) {
  rng r;
  rng_seed(&r, 2);
  group_begin("random shapes of 1 to 5 dimensions, random layouts");
  for (int i = 0; i < 4000; i++) {
    int64_t shape[5], left = 1 + (int64_t)rng_below(&r, 2000);
    int ndim = 1 + (int)rng_below(&r, 5);
    for (int k = 0; k < ndim; k++) {
      shape[k] = rng_below(&r, 3) ? 1 + (int64_t)rng_below(&r, 9) : 1 + (int64_t)rng_below(&r, 600);
      if (shape[k] > left) shape[k] = left;
      left /= shape[k];
      if (rng_below(&r, 200) == 0) shape[k] = 0;
    }
    for (int k = ndim - 1; k > 0; k--) {
      int j = (int)rng_below(&r, (uint64_t)k + 1);
      int64_t swap = shape[k];
      shape[k] = shape[j];
      shape[j] = swap;
    }
    run_random((int)rng_below(&r, N_CASES), ndim, shape, GUARD_NONE, "random shape and layout", &r);
  }
  group_end();
}

/* Each operand in turn at every byte of a cache line, then all at once; element and odd offsets. */
static void test_offsets(void) {
  rng r;
  rng_seed(&r, 3);
  group_begin("every byte offset 0 to 63 of each operand");
  for (int c = 0; c < N_CASES; c++) {
    if (!has_op(cases[c].op)) continue;
    int n_in = ref_op_describe(cases[c].op)->n_in;
    for (int who = -1; who <= n_in; who++) { /* -1: the output; n_in: all */
      for (int offset = 0; offset < 64; offset++) {
        int64_t n = 70 + (offset & 7);
        trial t = {.op = cases[c].op, .note = "moved by some bytes"};
        for (int k = -1; k < n_in; k++) {
          operand *o = k < 0 ? &t.out : &t.in[k];
          operand_describe(o, k < 0 ? cases[c].out : cases[c].in[k], 1, &n, NULL);
          operand_allocate(o, who == k || who == n_in ? offset : 0, GUARD_NONE);
          operand_fill(o, &r);
        }
        trial_run(&t);
        trial_free(&t);
      }
    }
  }
  group_end();

  group_begin("offsets of large operands");
  for (int c = 0; c < N_CASES; c++) {
    if (!has_op(cases[c].op)) continue;
    for (int offset = 0; offset < 64; offset += 7) {
      int64_t n = 3001;
      trial t = {.op = cases[c].op, .note = "moved by some bytes"};
      for (int k = -1; k < ref_op_describe(cases[c].op)->n_in; k++) {
        operand *o = k < 0 ? &t.out : &t.in[k];
        operand_describe(o, k < 0 ? cases[c].out : cases[c].in[k], 1, &n, NULL);
        operand_allocate(o, (offset * (k + 2)) % 64, GUARD_NONE);
        operand_fill(o, &r);
      }
      trial_run(&t);
      trial_free(&t);
    }
  }
  group_end();
}

/* Whether case i is in this run's part. */
static int is_today(int i) {
  const int part = test_part(8);
  return part < 0 || i % 8 == part;
}

/* A read or write one byte beyond any operand is a signal. Every op, so that no body escapes; of sizes an eighth. */
static void test_guards(void) {
  static const int64_t sizes[] = {0, 1, 3, 7, 16, 31, 64, 100, 255, 256, 257, 700, 1029};
  rng r;
  rng_seed(&r, 4);
  group_begin("every op between unmapped pages");
  for (int op = 0; op < REF_N_OPS; op++) {
    if (!has_op((ref_op)op)) continue;
    const ref_op_info *info = ref_op_describe((ref_op)op);
    for (int d = 0; d < REF_N_DTYPES; d++) {
      ref_dtype in[3] = {(ref_dtype)d, (ref_dtype)d, (ref_dtype)d}, result = (ref_dtype)d, compute;
      if (op == REF_WHERE) in[0] = REF_BOOL;
      if (ref_resolve((ref_op)op, in, &result, &compute)) continue;
      for (int guard = GUARD_FRONT; guard <= GUARD_BACK; guard++) {
        for (int s = 0; s < 13; s++) {
          if (!is_today(op + d + guard + s)) continue;
          trial t = {.op = (ref_op)op, .note = guard == GUARD_FRONT ? "page below" : "page above"};
          int64_t shape[2] = {sizes[s], 3}, strides[2] = {4, 1};
          int two = s % 4 == 3; /* [n, 3] out of [n, 4]: no room behind the last row */
          for (int k = -1; k < info->n_in; k++) {
            operand *o = k < 0 ? &t.out : &t.in[k];
            operand_describe(o, k < 0 ? result : in[k], two ? 2 : 1, shape, two ? strides : NULL);
            operand_allocate(o, 0, guard);
            operand_fill(o, &r);
          }
          trial_run(&t);
          trial_free(&t);
        }
      }
    }
  }
  group_end();

  group_begin("random layouts between unmapped pages");
  for (int i = 0; i < 1500; i++) {
    int64_t shape[4];
    int ndim = 1 + (int)rng_below(&r, 4);
    for (int k = 0; k < ndim; k++) shape[k] = 1 + (int64_t)rng_below(&r, k == ndim - 1 && ndim < 3 ? 300 : 7);
    run_random((int)rng_below(&r, N_CASES), ndim, shape, i & 1 ? GUARD_FRONT : GUARD_BACK, "unmapped pages around", &r);
  }
  group_end();
}

static void test_empty(void) {
  rng r;
  rng_seed(&r, 5);
  group_begin("empty tensors: data NULL or wild, any strides, nothing touched");
  for (int c = 0; c < N_CASES; c++) {
    if (!has_op(cases[c].op)) continue;
    int n_in = ref_op_describe(cases[c].op)->n_in;
    for (int i = 0; i < 12; i++) {
      operand o[4];
      DLTensor *in[3], *out = &o[3].t;
      for (int k = 0; k < 4; k++) {
        int64_t shape[3] = {3, 0, 1 + (int64_t)rng_below(&r, 5)};
        int64_t strides[3] = {(int64_t)rng_u64(&r), (int64_t)rng_u64(&r), (int64_t)rng_u64(&r)};
        if (i < 6) strides[0] = strides[1] = strides[2] = 0;
        /* [3, 0, n] against [3, 0, 1], [1, 0, n]: outputs are [3, 0, n] */
        shape[2] = 4;
        if (k < 3 && i % 3 == 1 && k) shape[2] = 1;
        if (k < 3 && i % 3 == 2 && k) shape[0] = 1;
        operand_describe(&o[k], k == 3 ? cases[c].out : cases[c].in[k], 3, shape, strides);
        if (i % 4 == 3) o[k].t.strides = NULL;
        o[k].t.data = i & 1 ? (void *)(uintptr_t)64 : NULL;
        if (k < 3) in[k] = &o[k].t;
      }
      group_count(1);
      quern_status s = quern_op_call(the_op(cases[c].op), n_in, in, 1, &out, NULL);
      if (s != QUERN_OK) group_fail("%s: %s: %s", ref_op_describe(cases[c].op)->name, status_name(s), quern_last_error());
    }
  }
  group_end();
}

/* Strides of one-element dimensions mean nothing, however wild. */
static void test_ones(void) {
  rng r;
  rng_seed(&r, 6);
  group_begin("wild strides in dimensions of one element");
  for (int c = 0; c < N_CASES; c++) {
    if (!has_op(cases[c].op)) continue;
    for (int i = 0; i < 8; i++) {
      trial t = {.op = cases[c].op, .note = "[1, 40, 1]"};
      for (int k = -1; k < ref_op_describe(cases[c].op)->n_in; k++) {
        int64_t shape[3] = {1, 40, 1}, strides[3] = {40, 1, 1};
        operand *o = k < 0 ? &t.out : &t.in[k];
        operand_make(o, k < 0 ? cases[c].out : cases[c].in[k], 3, shape, strides, &r);
        o->strides[0] = i & 1 ? (int64_t)rng_u64(&r) : INT64_MIN;
        o->strides[2] = i & 2 ? (int64_t)rng_u64(&r) : INT64_MAX;
      }
      trial_run(&t);
      trial_free(&t);
    }
  }
  group_end();
}

/* ---- More than 2^31 elements ------------------------------------------------------------------------------------ */

#if !SANITIZED
#define CHUNK ((size_t)1 << 26)

/* `bytes` of address space. Its middle is one chunk of memory, mapped over and over; the ends are memory of their own. */
static unsigned char *map_folded(size_t bytes) {
  size_t n = bytes / CHUNK;
  unsigned char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  int fd = memfd_create("quern-test", 0);
  if (base == MAP_FAILED || fd < 0 || ftruncate(fd, (off_t)CHUNK)) return NULL;
  for (size_t i = 1; i + 1 < n; i++) {
    void *at = mmap(base + i * CHUNK, CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (at == MAP_FAILED) return NULL;
  }
  close(fd);
  return base;
}
#endif

#if SANITIZED
static void test_huge(void) {
  skip(8, "2^31 elements through the kernels of a sanitised build take minutes");
}
#else
static void test_huge(void) {
  size_t bytes = ((size_t)1 << 31) + 2 * CHUNK; /* u8: more elements than an int32 counts */
  unsigned char *in = map_folded(bytes), *out = map_folded(bytes);
  DLTensor a, c;
  DLTensor *ins[2] = {&a, &a}, *outs[1] = {&c};
  int64_t n = (int64_t)bytes - 3, one = 1, zero = 0;
  memset(&a, 0, sizeof a);
  if (!in || !out) {
    skip(6, "no address space for tensors of 2^31 elements");
    return;
  }
  a.dtype = ref_dtype_dl(REF_U8);
  a.device.device_type = kDLCPU;
  a.ndim = 1;
  a.shape = &n;
  a.strides = &one;
  a.data = in;
  c = a;
  c.data = out;
  memset(in, 1, CHUNK);
  memset(in + CHUNK, 2, CHUNK);
  memset(in + bytes - CHUNK, 3, CHUNK);
  memset(out + bytes - CHUNK, 0xee, CHUNK);
  is_int(quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL), QUERN_OK, "2^31 + 2^27 elements");
  int good = 1;
  for (size_t i = 0; i < CHUNK; i++) {
    good &= out[i] == 2 && out[CHUNK + i] == 4 && out[bytes - CHUNK + i] == (i < CHUNK - 3 ? 6 : 0xee);
  }
  ok(good, "both ends and the middle are right, nothing behind");

  /* Reversed: negative strides beyond 2^31 bytes. */
  int64_t back = -1;
  a.strides = &back;
  a.byte_offset = (uint64_t)n - 1;
  memset(out, 0xee, CHUNK);
  is_int(quern_op_call(the_op(REF_NEGATIVE), 1, ins, 1, outs, NULL), QUERN_OK, "the same backwards");
  good = 1;
  for (size_t i = 0; i < CHUNK; i++) {
    int first = i < CHUNK - 3 ? -3 : -2, last = i < CHUNK - 3 ? -1 : 0xee;
    good &= out[i] == (unsigned char)first && out[bytes - CHUNK + i] == (unsigned char)last;
  }
  ok(good, "both ends are right");

  /* One element, broadcast over all. */
  a.strides = &zero;
  a.byte_offset = bytes - CHUNK;
  is_int(quern_op_call(the_op(REF_COPY), 1, ins, 1, outs, NULL), QUERN_OK, "one element broadcast over 2^31");
  good = 1;
  for (size_t i = 0; i < CHUNK; i++) good &= out[i] == 3 && out[bytes - CHUNK + i] == (i < CHUNK - 3 ? 3 : 0xee);
  ok(good, "filled to the end");
  munmap(in, bytes);
  munmap(out, bytes);

  /* Few elements, far apart. */
  size_t far = (size_t)1 << 37;
  float *wide = mmap(NULL, far, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (wide == MAP_FAILED) {
    skip(2, "no address space of 2^37 bytes");
    return;
  }
  int64_t count = 31, step = (int64_t)1 << 30;
  float y[31];
  for (int64_t i = 0; i < count; i++) wide[i * step] = (float)i;
  a.dtype = c.dtype = ref_dtype_dl(REF_F32);
  a.shape = c.shape = &count;
  a.strides = &step;
  a.data = wide;
  a.byte_offset = 0;
  c.data = y;
  is_int(quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL), QUERN_OK, "strides of 4 GiB");
  good = 1;
  for (int i = 0; i < 31; i++) good &= y[i] == 2.0f * (float)i;
  ok(good, "right elements");
  munmap(wide, far);
}
#endif

int main(void) {
  test_ranks();
  test_shapes();
  test_offsets();
  test_guards();
  test_empty();
  test_ones();
  test_huge();
  return done_testing();
}
