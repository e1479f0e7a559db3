/* SPDX-License-Identifier: Apache-2.0
 *
 * demo.c: develops a photograph with Quern's ops, one of which comes from a spec file of its own (filmic.lua, in a
 * generated tree under the prefix demo_), measures each beside a plain C loop, and checks every sample of the result
 * against a reference computed elsewhere (reference.py). Then the same as one expression (develop.c). Ends with 1 when
 * anything is wrong.
 *
 *   quern-demo DATA OUT    reads DATA/raccoon.* and DATA/../demo/filmic.lua, writes OUT/raccoon.ppm and OUT/raccoon.png */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <quern/quern.h>

#include "demo.h"
#include "develop.h"
#include "picture.h"
#include "plain.h"
#include "support.h"

static const float gain[3] = {1.12f, 1.00f, 0.84f};
#define EXPOSURE 0.7f

/* ---- The tensors: the picture, what is computed in between, and the numbers that are broadcast over it. */
enum { PICTURE, RESULT, X, T, MASK, GAIN, NUMBERS, N_TENSORS = NUMBERS + 10 };
static const float numbers[] = {1.0f / 255.0f, 0.04045f, 0.055f, 1.055f, 2.4f, 12.92f, 0.0031308f, 1.0f / 2.4f, 255.0f, 0.5f};
enum { PER_255 = NUMBERS, DECODE_LOW, OFFSET, FACTOR, GAMMA, SLOPE, ENCODE_LOW, PER_GAMMA, WHITE, HALF };
static const float minus_offset = -0.055f;
enum { MINUS_OFFSET = N_TENSORS };
static DLTensor tensors[N_TENSORS + 1];
static int64_t picture_shape[3], gain_shape[1] = {3};

/* ---- The steps. An op of the tree runs under demo_, all others under quern_. */
typedef struct step {
  const char *title, *op;
  int in[3], out; /* -1: none */
} step;

static const step steps[] = {
    {"8-bit to float", "astype", {PICTURE, -1, -1}, X},
    {"x / 255", "multiply", {X, PER_255, -1}, X},
    {"decode: low?", "less", {DECODE_LOW, X, -1}, MASK},
    {"  x + 0.055", "add", {X, OFFSET, -1}, T},
    {"  / 1.055", "divide", {T, FACTOR, -1}, T},
    {"  to the 2.4", "pow", {T, GAMMA, -1}, T},
    {"  x / 12.92", "divide", {X, SLOPE, -1}, X},
    {"  either", "where", {MASK, T, X}, X},
    {"gain of r, g, b", "multiply", {X, GAIN, -1}, X},
    {"tone curve", "demo.filmic", {X, -1, -1}, X},
    {"encode: low?", "less", {ENCODE_LOW, X, -1}, MASK},
    {"  to the 1/2.4", "pow", {X, PER_GAMMA, -1}, T},
    {"  * 1.055 - 0.055", "fma", {T, FACTOR, MINUS_OFFSET}, T},
    {"  x * 12.92", "multiply", {X, SLOPE, -1}, X},
    {"  either", "where", {MASK, T, X}, X},
    {"within 0 and 1", "clip", {X, -1, -1}, X},
    {"* 255 + 0.5", "fma", {X, WHITE, HALF}, X},
    {"float to 8-bit", "astype", {X, -1, -1}, RESULT},
};
enum { N_STEPS = sizeof steps / sizeof *steps, GAIN_STEP = 8 };

/* ---- Quern: every step looked up once per context, then called. */
typedef struct machine {
  quern_ctx *ctx;
  demo_ctx *tree;
  quern_op *ops[N_STEPS]; /* NULL where the op is of the tree */
  demo_op *tree_ops[N_STEPS];
} machine;

static int is_of_tree(const step *s) { return strncmp(s->op, "demo.", 5) == 0; }

static void machine_open(machine *m, int threads) {
  quern_options options = {.size = sizeof options, .threads = threads};
  demo_options tree_options = {.size = sizeof tree_options, .threads = threads};
  memset(m, 0, sizeof *m);
  if (quern_ctx_create(&options, &m->ctx) != 0) fail("a context", quern_last_error());
  if (demo_ctx_create(&tree_options, &m->tree) != 0) fail("a context of the tree", demo_last_error());
  for (int k = 0; k < N_STEPS; k++) {
    if (is_of_tree(&steps[k])) {
      if (demo_op_find(m->tree, steps[k].op, &m->tree_ops[k]) != 0) fail(steps[k].op, demo_last_error());
    } else if (quern_op_find(m->ctx, steps[k].op, &m->ops[k]) != 0) {
      fail(steps[k].op, quern_last_error());
    }
  }
}

static void machine_close(machine *m) {
  for (int k = 0; k < N_STEPS; k++) {
    quern_op_release(m->ops[k]);
    demo_op_release(m->tree_ops[k]);
  }
  quern_ctx_release(m->ctx);
  demo_ctx_release(m->tree);
}

/* Parameters are given in the order of the op's declaration. Their names are asked, not assumed. */
static double param_of(const char *name) {
  if (strcmp(name, "min") == 0) return 0.0;
  if (strcmp(name, "max") == 0) return 1.0;
  if (strcmp(name, "exposure") == 0) return EXPOSURE;
  fail(name, "an unknown parameter");
  return 0;
}

static void run_step(const machine *m, int k) {
  const step *s = &steps[k];
  DLTensor *in[3], *out[1] = {&tensors[s->out]};
  int32_t n_in = 0;
  while (n_in < 3 && s->in[n_in] >= 0) {
    in[n_in] = &tensors[s->in[n_in]];
    n_in++;
  }
  if (is_of_tree(s)) {
    demo_scalar params[2] = {{DEMO_F64, {.f = {0}}}, {DEMO_F64, {.f = {0}}}};
    const demo_op_info *info = demo_op_describe(m->tree_ops[k]);
    for (int p = 0; p < info->n_params; p++) params[p].v.f[0] = param_of(info->params[p].name);
    const demo_call call = {.size = sizeof call, .params = params, .n_params = info->n_params};
    if (demo_op_call(m->tree_ops[k], n_in, in, 1, out, &call) != 0) fail(s->op, demo_last_error());
  } else {
    quern_scalar params[2] = {{QUERN_F64, {.f = {0}}}, {QUERN_F64, {.f = {0}}}};
    const quern_op_info *info = quern_op_describe(m->ops[k]);
    for (int p = 0; p < info->n_params; p++) params[p].v.f[0] = param_of(info->params[p].name);
    const quern_call call = {.size = sizeof call, .params = params, .n_params = info->n_params};
    if (quern_op_call(m->ops[k], n_in, in, 1, out, &call) != 0) fail(s->op, quern_last_error());
  }
}

static void run_steps(void *m) {
  for (int k = 0; k < N_STEPS; k++) run_step(m, k);
}

/* ---- The same step as a plain loop, in one of its two compilations; all of them, one by one and as one loop. */
static size_t n_samples(void) { return (size_t)(picture_shape[0] * picture_shape[1] * picture_shape[2]); }

#define RUN_PLAIN(name)                                                                                                   \
  static void run_##name(int k, size_t n) {                                                                              \
    const step *s = &steps[k];                                                                                            \
    float *y = tensors[s->out].data;                                                                                      \
    const float *x = tensors[s->in[0]].data, *b = s->in[1] >= 0 ? tensors[s->in[1]].data : NULL;                          \
    if (s->in[0] == PICTURE) name##_u8_to_f32(tensors[PICTURE].data, y, n);                                               \
    else if (s->out == RESULT) name##_f32_to_u8(x, tensors[RESULT].data, n);                                              \
    else if (s->in[1] == GAIN) name##_gain(x, gain, y, n);                                                                \
    else if (strcmp(s->op, "multiply") == 0) name##_multiply(x, *b, y, n);                                                \
    else if (strcmp(s->op, "add") == 0) name##_add(x, *b, y, n);                                                          \
    else if (strcmp(s->op, "divide") == 0) name##_divide(x, *b, y, n);                                                    \
    else if (strcmp(s->op, "pow") == 0) name##_pow(x, *b, y, n);                                                          \
    else if (strcmp(s->op, "fma") == 0) name##_fma(x, *b, *(float *)tensors[s->in[2]].data, y, n);                        \
    else if (strcmp(s->op, "less") == 0) name##_less(*x, b, tensors[s->out].data, n);                                     \
    else if (strcmp(s->op, "where") == 0)                                                                                 \
      name##_where(tensors[s->in[0]].data, tensors[s->in[1]].data, tensors[s->in[2]].data, y, n);                         \
    else if (strcmp(s->op, "clip") == 0) name##_clip(x, 0.0f, 1.0f, y, n);                                                \
    else name##_filmic(x, EXPOSURE, y, n);                                                                                \
  }                                                                                                                       \
  static void run_##name##_steps(void *unused) {                                                                          \
    (void)unused;                                                                                                         \
    for (int k = 0; k < N_STEPS; k++) run_##name(k, n_samples());                                                         \
  }                                                                                                                       \
  static void run_##name##_loop(void *unused) {                                                                           \
    (void)unused;                                                                                                         \
    name##_all(tensors[PICTURE].data, gain, EXPOSURE, tensors[RESULT].data, n_samples());                                 \
  }
RUN_PLAIN(plain)
RUN_PLAIN(native)

/* ---- Checking */
static int compare(const char *name, const unsigned char *got, size_t n, const unsigned char *in, unsigned char curve[256][3]) {
  size_t off_by_one = 0, wrong = 0;
  for (size_t i = 0; i < n; i++) {
    const int difference = abs((int)got[i] - (int)curve[in[i]][i % 3]);
    off_by_one += difference == 1;
    wrong += difference > 1;
  }
  printf("%-26s %zu of %zu samples one step of 255 off, %zu more than that\n", name, off_by_one, n, wrong);
  return wrong != 0;
}

static void read_reference(const char *folder, unsigned char curve[256][3], unsigned *crc) {
  char path[4096];
  snprintf(path, sizeof path, "%s/raccoon.curve", folder);
  FILE *file = fopen(path, "r");
  if (!file) fail(path, strerror(errno));
  for (int k = 0; k < 256; k++)
    if (fscanf(file, "%hhu %hhu %hhu", &curve[k][0], &curve[k][1], &curve[k][2]) != 3) fail(path, "is too short");
  fclose(file);
  snprintf(path, sizeof path, "%s/raccoon.crc", folder);
  file = fopen(path, "r");
  if (!file) fail(path, strerror(errno));
  if (fscanf(file, "%x", crc) != 1) fail(path, "holds no number");
  fclose(file);
}

static void set_tensor(int k, void *data, uint8_t code, uint8_t bits, int ndim, int64_t *shape) {
  tensors[k] = (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = ndim, .dtype = {code, bits, 1}, .shape = shape};
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: quern-demo DATA OUT\n");
    return 2;
  }
  char path[4096];
  picture p, result;
  snprintf(path, sizeof path, "%s/raccoon.ppm", argv[1]);
  if (picture_read_ppm(path, &p) != 0) fail(path, strerror(errno));
  unsigned char curve[256][3];
  unsigned wanted_crc = 0;
  read_reference(argv[1], curve, &wanted_crc);

  const size_t n = (size_t)p.width * (size_t)p.height * 3;
  result = p;
  result.rgb = malloc(n);
  float *x = malloc(n * sizeof *x), *t = malloc(n * sizeof *t);
  unsigned char *mask = malloc(n);
  if (!result.rgb || !x || !t || !mask) fail("memory", strerror(errno));

  picture_shape[0] = p.height;
  picture_shape[1] = p.width;
  picture_shape[2] = 3;
  set_tensor(PICTURE, p.rgb, kDLUInt, 8, 3, picture_shape);
  set_tensor(RESULT, result.rgb, kDLUInt, 8, 3, picture_shape);
  set_tensor(X, x, kDLFloat, 32, 3, picture_shape);
  set_tensor(T, t, kDLFloat, 32, 3, picture_shape);
  set_tensor(MASK, mask, kDLBool, 8, 3, picture_shape);
  set_tensor(GAIN, (void *)gain, kDLFloat, 32, 1, gain_shape); /* [3], broadcast over [height, width, 3] */
  for (int k = 0; k < N_TENSORS - NUMBERS; k++) set_tensor(NUMBERS + k, (void *)&numbers[k], kDLFloat, 32, 0, NULL);
  set_tensor(MINUS_OFFSET, (void *)&minus_offset, kDLFloat, 32, 0, NULL);

  const unsigned version = quern_version();
  printf("Quern %u.%u.%u: a photograph of %d x %d pixels, %zu samples\n\n", version >> 16, version >> 8 & 255, version & 255, p.width,
         p.height, n);

  /* The result first, with all threads; then one, which must give the same bytes. */
  machine one, all;
  machine_open(&one, 1);
  machine_open(&all, 0);
  run_steps(&all);
  int bad = compare("Quern, all threads:", result.rgb, n, p.rgb, curve);
  const uint32_t crc = picture_crc32(0, result.rgb, n);
  printf("%-26s %08x, the reference has %08x\n", "CRC-32 of the picture:", (unsigned)crc, wanted_crc);
  if (mkdir(argv[2], 0777) != 0 && errno != EEXIST) fail(argv[2], strerror(errno));
  snprintf(path, sizeof path, "%s/raccoon.ppm", argv[2]);
  if (picture_write_ppm(path, &result) != 0) fail(path, strerror(errno));
  printf("written: %s", path);
  snprintf(path, sizeof path, "%s/raccoon.png", argv[2]);
  if (picture_write_png(path, &result) != 0) fail(path, strerror(errno));
  printf(" and %s\n", path);

  memset(result.rgb, 0, n);
  run_steps(&one);
  bad |= compare("Quern, one thread:", result.rgb, n, p.rgb, curve);
  if (picture_crc32(0, result.rgb, n) != crc) {
    printf("one thread and all threads differ\n");
    bad = 1;
  }
  memset(result.rgb, 0, n);
  run_plain_loop(NULL);
  bad |= compare("the plain loop:", result.rgb, n, p.rgb, curve);

  /* Times: medians, every step's input being what it is in the pipeline. */
  static double times[4][N_STEPS][N_RUNS], sum[4];
  for (int r = 0; r < N_RUNS; r++) {
    for (int way = 0; way < 4; way++) {
      for (int k = 0; k < N_STEPS; k++) {
        const double start = now();
        if (way == 0) run_step(&all, k);
        else if (way == 1) run_step(&one, k);
        else if (way == 2) run_plain(k, n);
        else run_native(k, n);
        times[way][k][r] = now() - start;
      }
    }
  }
  printf("\nMedians of %d runs in milliseconds. A loop per op:     plain C         plain C\n", N_RUNS);
  printf("%-20s %-12s %7s %10s %10s %15s\n", "step", "op", "Quern", "1 thread", "-O3", "-march=native");
  for (int k = 0; k < N_STEPS; k++) {
    double ms[4];
    for (int way = 0; way < 4; way++) {
      ms[way] = 1e3 * median(times[way][k]);
      sum[way] += ms[way];
    }
    printf("%-20s %-12s %7.2f %10.2f %10.2f %15.2f\n", steps[k].title, steps[k].op, ms[0], ms[1], ms[2], ms[3]);
  }
  printf("%-20s %-12s %7.2f %10.2f %10.2f %15.2f\n", "all of them", "", sum[0], sum[1], sum[2], sum[3]);

  DLTensor *in[] = {&tensors[X], &tensors[GAIN]}, *out[] = {&tensors[X]};
  char text[2048];
  if (quern_op_explain(all.ops[GAIN_STEP], 2, in, 1, out, NULL, text, sizeof text) != 0) fail("explain", quern_last_error());
  printf("\nHow the gain of r, g, b runs:\n%s", text);

  snprintf(path, sizeof path, "%s/../demo/filmic.lua", argv[1]);
  const develop_job job = {.spec = path, .out = argv[2], .picture = &tensors[PICTURE], .gain = &tensors[GAIN],
                         .result = &tensors[RESULT], .exposure = EXPOSURE, .crc = wanted_crc};
  const develop_way ways[] = {{"Quern, op by op", {run_steps, run_steps}, {&all, &one}},
                            {"plain C, a loop per op, -O3", {NULL, run_plain_steps}, {NULL, NULL}},
                            {"plain C, a loop per op, native", {NULL, run_native_steps}, {NULL, NULL}},
                            {"plain C, one loop, -O3", {NULL, run_plain_loop}, {NULL, NULL}},
                            {"plain C, one loop, native", {NULL, run_native_loop}, {NULL, NULL}}};
  bad |= develop_show(&job, ways, sizeof ways / sizeof *ways);

  machine_close(&one);
  machine_close(&all);
  free(p.rgb);
  free(result.rgb);
  free(x);
  free(t);
  free(mask);
  printf("\n%s\n", bad ? "WRONG: see above" : "The picture is what the reference says.");
  return bad;
}
