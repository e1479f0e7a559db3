/* SPDX-License-Identifier: Apache-2.0
 *
 * block.c: what a transformer block computes beside its matrix products: RMSNorm of a sum, softmax of masked scores, SwiGLU, cross
 * entropy. Two are expressions, two are ops of the library. Each is checked against plain loops in f64 and timed beside plain
 * loops in f32, one thread each. The digests are those that examples/python/transformer.py prints: it has the same numbers as
 * inputs and checks the results against PyTorch. Ends with 1 when anything is wrong. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <quern/ops.h>

#include "plain_block.h"

static void fail(const char *what) {
  fflush(stdout);
  fprintf(stderr, "quern-transformer: %s: %s\n", what, quern_last_error());
  exit(1);
}

/* ---- Tensors ---- */

enum { X, ATTENDED, WEIGHT, H, NORM, SCORES, MASK, P, GATE, UP, GATED, LOGITS, TARGET, LOSS, MEAN, N_TENSORS };

#define F32 {kDLFloat, 32, 1}
static const struct {
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[3];
  double spread; /* inputs are uniform in -spread to spread */
} forms[N_TENSORS] = {
    [X] = {F32, 2, {TOKENS, WIDTH}, 2},
    [ATTENDED] = {F32, 2, {TOKENS, WIDTH}, 2},
    [WEIGHT] = {F32, 1, {WIDTH}, 2},
    [H] = {F32, 2, {TOKENS, WIDTH}, 0},
    [NORM] = {F32, 2, {TOKENS, WIDTH}, 0},
    [SCORES] = {F32, 3, {HEADS, TOKENS, TOKENS}, 64},
    [MASK] = {{kDLBool, 8, 1}, 2, {TOKENS, TOKENS}, 0},
    [P] = {F32, 3, {HEADS, TOKENS, TOKENS}, 0},
    [GATE] = {F32, 2, {TOKENS, HIDDEN}, 8},
    [UP] = {F32, 2, {TOKENS, HIDDEN}, 2},
    [GATED] = {F32, 2, {TOKENS, HIDDEN}, 0},
    [LOGITS] = {F32, 2, {TOKENS, WORDS}, 8},
    [TARGET] = {{kDLInt, 64, 1}, 2, {TOKENS, 1}, 0},
    [LOSS] = {F32, 1, {TOKENS}, 0},
    [MEAN] = {F32, 0, {0}, 0},
};
static DLTensor tensors[N_TENSORS];

static size_t items_of(int t) {
  size_t n = 1;
  for (int32_t k = 0; k < forms[t].ndim; k++) n *= (size_t)forms[t].shape[k];
  return n;
}

static size_t bytes_of(int t) { return items_of(t) * forms[t].dtype.bits / 8; }

/* Numbers that look random: of tensor t, at place k. */
static uint32_t drawn(uint32_t t, uint32_t k) {
  uint32_t v = (k + t * 0x1000000u) * 0x9e3779b1u;
  v = (v ^ v >> 15) * 0x85ebca77u;
  return v ^ v >> 13;
}

static void make_tensors(void) {
  for (int t = 0; t < N_TENSORS; t++) {
    tensors[t] = (DLTensor){.data = malloc(bytes_of(t)), .device = {kDLCPU, 0}, .ndim = forms[t].ndim, .dtype = forms[t].dtype,
                            .shape = (int64_t *)forms[t].shape};
    if (!tensors[t].data) fail("no memory");
    float *x = tensors[t].data;
    for (size_t k = 0; forms[t].spread != 0 && k < items_of(t); k++) /* exact */
      x[k] = (float)(((double)(drawn((uint32_t)t, (uint32_t)k) >> 8) * 0x1p-23 - 1) * forms[t].spread);
  }
  unsigned char *mask = tensors[MASK].data;
  for (int k = 0; k < TOKENS * TOKENS; k++) mask[k] = k % TOKENS <= k / TOKENS; /* a token sees those up to itself */
  int64_t *target = tensors[TARGET].data;
  for (uint32_t k = 0; k < TOKENS; k++) target[k] = drawn(TARGET, k) % WORDS;
}

/* ---- The four parts ---- */

static quern_op *norm_op, *softmax_op;

static void make_ops(quern_ctx *ctx) {
  char text[200];
  snprintf(text, sizeof text, "h = x + attended; y = rms_norm_affine(h, weight, %g, axis=-1)", EPS);
  if (quern_op_compile(ctx, text, &norm_op) != 0) fail(text);
  snprintf(text, sizeof text, "p = softmax(mask ? scores * %g : -INFINITY, axis=-1)", SCALE);
  if (quern_op_compile(ctx, text, &softmax_op) != 0) fail(text);
}

/* Inputs are in the order of their first appearance in the text. h is also an output: the block goes on with it. */
static void rms_norm(void) {
  DLTensor *in[] = {&tensors[X], &tensors[ATTENDED], &tensors[WEIGHT]}, *out[] = {&tensors[H], &tensors[NORM]};
  if (quern_op_call(norm_op, 3, in, 2, out, NULL) != 0) fail("RMSNorm");
}

static void masked_softmax(void) {
  DLTensor *in[] = {&tensors[MASK], &tensors[SCORES]}, *out[] = {&tensors[P]};
  if (quern_op_call(softmax_op, 2, in, 1, out, NULL) != 0) fail("softmax");
}

static void swiglu(void) {
  if (quern_swiglu(&tensors[GATE], &tensors[UP], &tensors[GATED], NULL) != 0) fail("SwiGLU");
}

/* The parameters of an op in order: axes, a bit for each dimension (all by default), then keepdims (0 by default). */
static void cross_entropy(void) {
  const quern_scalar axes = {QUERN_I64, {.i = 1 << 1}};
  const quern_call call = {.size = sizeof call, .params = &axes, .n_params = 1};
  if (quern_cross_entropy(&tensors[LOGITS], &tensors[TARGET], &tensors[LOSS], &call) != 0) fail("cross entropy");
}

/* The same as plain loops: in f32 for the time, and in f64 into `exact`. */
#define DATA(t) tensors[t].data
static float *h_of_plain, *spare;
static double *exact;

static void plain_rms_norm(void) { plain_f32_rms_norm(DATA(X), DATA(ATTENDED), DATA(WEIGHT), h_of_plain, spare); }
static void plain_softmax(void) { plain_f32_masked_softmax(DATA(SCORES), DATA(MASK), spare); }
static void plain_swiglu(void) { plain_f32_swiglu(DATA(GATE), DATA(UP), spare); }
static void plain_cross_entropy(void) { plain_f32_cross_entropy(DATA(LOGITS), DATA(TARGET), spare); }
static void exact_rms_norm(void) { plain_f64_rms_norm(DATA(X), DATA(ATTENDED), DATA(WEIGHT), h_of_plain, exact); }
static void exact_softmax(void) { plain_f64_masked_softmax(DATA(SCORES), DATA(MASK), exact); }
static void exact_swiglu(void) { plain_f64_swiglu(DATA(GATE), DATA(UP), exact); }
static void exact_cross_entropy(void) { plain_f64_cross_entropy(DATA(LOGITS), DATA(TARGET), exact); }

static const struct {
  const char *name;
  void (*run)(void), (*run_plain)(void), (*run_exact)(void);
  int result;
} parts[] = {
    {"RMSNorm of a sum", rms_norm, plain_rms_norm, exact_rms_norm, NORM},
    {"masked softmax", masked_softmax, plain_softmax, exact_softmax, P},
    {"SwiGLU", swiglu, plain_swiglu, exact_swiglu, GATED},
    {"cross entropy", cross_entropy, plain_cross_entropy, exact_cross_entropy, LOSS},
};

/* ---- Checks and times ---- */

/* The largest error of a result, relative to `exact` where that is above 1. */
static double largest_error(int t) {
  const float *got = tensors[t].data;
  double largest = 0;
  for (size_t k = 0; k < items_of(t); k++) {
    const double error = fabs((double)got[k] - exact[k]) / fmax(1, fabs(exact[k]));
    if (!(error <= largest)) largest = error;
  }
  return largest;
}

/* CRC-32, as zlib has it. */
static uint32_t digest(int t) {
  const unsigned char *bytes = tensors[t].data;
  uint32_t crc = 0xffffffff;
  for (size_t k = 0; k < bytes_of(t); k++) {
    crc ^= bytes[k];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}

/* Microseconds; the best of some runs. */
static double time_of(void (*run)(void)) {
  double best = INFINITY;
  for (int k = 0; k < 9; k++) {
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    run();
    clock_gettime(CLOCK_MONOTONIC, &to);
    best = fmin(best, (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) * 1e-3);
  }
  return best;
}

int main(void) {
  const quern_options options = {.size = sizeof options, .jit = QUERN_JIT_SYNC, .threads = 1};
  quern_ctx *ctx;
  int n_wrong = 0;
  if (quern_ctx_configure_default(&options) != 0) fail("the default context"); /* that of quern_swiglu and its like */
  if (quern_ctx_create(&options, &ctx) != 0) fail("a context");
  make_tensors();
  make_ops(ctx);
  h_of_plain = malloc(bytes_of(H));
  spare = malloc(bytes_of(P));
  exact = malloc(2 * bytes_of(P));
  if (!h_of_plain || !spare || !exact) fail("no memory");

  printf("%-18s%10s%10s   (us)  ratio   error    digest\n", "", "Quern", "plain C");
  for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
    const double taken = time_of(parts[k].run), of_plain = time_of(parts[k].run_plain);
    parts[k].run_exact();
    const double error = largest_error(parts[k].result);
    printf("%-18s%10.0f%10.0f%14.2f   %.1e  %08x\n", parts[k].name, taken, of_plain, of_plain / taken, error,
           (unsigned)digest(parts[k].result));
    n_wrong += !(error < 2e-6);
  }
  if (quern_mean(&tensors[LOSS], &tensors[MEAN], NULL) != 0) fail("mean");
  printf("mean loss %.9g\n", (double)*(float *)tensors[MEAN].data);

  for (int t = 0; t < N_TENSORS; t++) free(tensors[t].data);
  free(h_of_plain), free(spare), free(exact);
  quern_op_release(norm_op), quern_op_release(softmax_op);
  quern_ctx_release(ctx);
  if (n_wrong) printf("WRONG: %d of the results\n", n_wrong);
  return n_wrong > 0;
}
