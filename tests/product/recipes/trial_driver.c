/* SPDX-License-Identifier: Apache-2.0
 *
 * trial_driver.c: calls what the recipes' patches have added, in a tree of their own, and compares. One line for each that holds. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trial.h"

#include "ref.h"

static DLTensor tensor(DLDevice device, DLDataType dtype, int64_t *n, void *data, int64_t *stride, uint64_t byte_offset) {
  return (DLTensor){.data = data, .device = device, .ndim = 1, .dtype = dtype, .shape = n, .strides = stride,
                    .byte_offset = byte_offset};
}

static const DLDevice cpu = {kDLCPU, 0}, plain = {kDLOpenCL, 0};
static const DLDataType f32 = {kDLFloat, 32, 1}, f64 = {kDLFloat, 64, 1}, u8 = {kDLUInt, 8, 1}, i16 = {kDLInt, 16, 1};

#define MUST(call) \
  if (call) return printf("%s: %s\n", #call, trial_last_error()), 1

static int try_op(void) {
  float x[4] = {-2.0f, 0.5f, 1e10f, -0.0f}, out[4];
  int64_t n = 4;
  const ref_op cube = ref_op_find("cube");
  DLTensor a = tensor(cpu, f32, &n, x, NULL, 0), y = tensor(cpu, f32, &n, out, NULL, 0);
  MUST(trial_cube(&a, &y, NULL));
  for (int i = 0; i < 4; i++) {
    const ref_dtype in = REF_F32;
    uint32_t bits;
    memcpy(&bits, &x[i], sizeof bits);
    const uint64_t wide = bits;
    const ref_expect wanted = ref_eval(cube, &in, &wide, NULL, REF_F32);
    memcpy(&bits, &out[i], sizeof bits);
    if (!ref_within(REF_F32, bits, &wanted)) return printf("cube: %a: %a\n", (double)x[i], (double)out[i]), 1;
  }
  return puts("op"), 0;
}

static int try_primitive(void) {
  float x[3] = {1, 5, -INFINITY}, y[3] = {4, 2, 1}, out[3];
  uint8_t a[3] = {3, 200, 0}, b[3] = {250, 100, 255}, c[3];
  int64_t n = 3;
  DLTensor p = tensor(cpu, f32, &n, x, NULL, 0), q = tensor(cpu, f32, &n, y, NULL, 0), r = tensor(cpu, f32, &n, out, NULL, 0);
  MUST(trial_gap(&p, &q, &r, NULL));
  p = tensor(cpu, u8, &n, a, NULL, 0), q = tensor(cpu, u8, &n, b, NULL, 0), r = tensor(cpu, u8, &n, c, NULL, 0);
  MUST(trial_gap(&p, &q, &r, NULL));
  if (out[0] != 3 || out[1] != 3 || out[2] != INFINITY || c[0] != 247 || c[1] != 100 || c[2] != 255) return puts("gap"), 1;
  return puts("primitive"), 0;
}

static int try_kind(void) {
  uint8_t x[5] = {255, 0, 51, 0, 102};
  int16_t z[1] = {-32767};
  double out[3], w[1];
  float narrow[3];
  int64_t n = 3, one = 1, step = 2;
  DLTensor a = tensor(cpu, u8, &n, x, &step, 0), y = tensor(cpu, f64, &n, out, NULL, 0);
  MUST(trial_fraction(&a, &y, NULL));
  if (out[0] != 1 || out[1] != 51.0 / 255 || out[2] != 102.0 / 255) return printf("fraction: %g %g %g\n", out[0], out[1], out[2]), 1;
  y = tensor(cpu, f32, &n, narrow, NULL, 0);
  MUST(trial_fraction(&a, &y, NULL));
  if (narrow[1] != (float)(51.0 / 255)) return puts("fraction to f32"), 1;
  a = tensor(cpu, i16, &one, z, NULL, 0), y = tensor(cpu, f64, &one, w, NULL, 0);
  MUST(trial_fraction(&a, &y, NULL));
  if (w[0] != -1) return puts("fraction of i16"), 1;
  DLTensor *in = &a, *other = &y;
  trial_plan *plan = NULL;
  MUST(trial_op_prepare(trial_builtin_fraction(), 1, &in, 1, &other, NULL, &plan));
  void *const from = z, *const to = w;
  z[0] = 32767;
  MUST(trial_plan_run(plan, &from, &to, NULL));
  trial_plan_release(plan);
  if (w[0] != 1) return puts("a plan of fraction"), 1;
  trial_shape shape = {.size = sizeof shape};
  MUST(trial_op_infer(trial_builtin_fraction(), 1, &in, 1, &shape));
  if (shape.dtype.code != kDLFloat || shape.dtype.bits != 64) return puts("the dtype of fraction"), 1;
  a.dtype = f32;
  if (trial_fraction(&a, &y, NULL) != TRIAL_E_DTYPE) return puts("fraction of f32 is not refused"), 1;
  return puts("kind"), 0;
}

/* The first element lies behind an offset, the others every second: of x in its own buffer. */
static int try_target(void) {
  float memory[3][8] = {{0, 0, 1, 0, 2, 0, 3, 0}, {10, 20, 30}, {0}};
  float *buffer[3] = {memory[0], memory[1], memory[2]};
  int64_t n = 3, step = 2;
  DLTensor x = tensor(plain, f32, &n, &buffer[0], &step, 8), y = tensor(plain, f32, &n, &buffer[1], NULL, 0);
  DLTensor out = tensor(plain, f32, &n, &buffer[2], NULL, 4);
  MUST(trial_add(&x, &y, &out, NULL));
  const float *sum = memory[2];
  if (sum[0] != 0 || sum[1] != 11 || sum[2] != 22 || sum[3] != 33 || sum[4] != 0) return puts("add"), 1;
  if (trial_cube(&x, &out, NULL) == TRIAL_OK) return puts("cube has no plain kernel"), 1;
  float a[3] = {1, 2, 3}, b[3] = {4, 5, 6}, c[3];
  x = tensor(cpu, f32, &n, a, NULL, 0), y = tensor(cpu, f32, &n, b, NULL, 0), out = tensor(cpu, f32, &n, c, NULL, 0);
  MUST(trial_add(&x, &y, &out, NULL));
  if (c[0] != 5 || c[1] != 7 || c[2] != 9) return puts("add on the cpu"), 1;
  return puts("target"), 0;
}

int main(void) { return try_op() | try_primitive() | try_kind() | try_target(); }
