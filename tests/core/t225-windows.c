/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t225-windows: inputs made of overlapping windows beside a transposed one. A window's step may equal the extent of a tile:
 * the last, shorter tile of a row must not be taken for one that lies in a run. */
#include <stdlib.h>

#include "tensors.h"

static int64_t index_of(int64_t i, int64_t j, int64_t rows, int64_t step) { return i * rows + j * step; }

/* out[i][j] = windows[i][j] + turned[i][j], with any step between windows and several output dtypes */
static void check(int64_t n1, int64_t n0, int64_t step, const char *out_dtype) {
  int64_t shape[2] = {n1, n0}, window_strides[2] = {step, 1}, turned_strides[2] = {1, n1};
  size_t n_windows = (size_t)(step * (n1 - 1) + n0), count = (size_t)(n1 * n0);
  int wide = !strcmp(out_dtype, "f64");
  float *windows = malloc(n_windows * 4), *turned = malloc(count * 4);
  char *result = malloc(count * 8);
  for (size_t i = 0; i < n_windows; i++) windows[i] = (float)(i % 1021);
  for (size_t i = 0; i < count; i++) turned[i] = (float)(i % 509) * 0.5f;
  DLTensor a = {windows, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, window_strides, 0};
  DLTensor b = {turned, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, turned_strides, 0};
  DLTensor out = {result, {kDLCPU, 0}, 2, {kDLFloat, wide ? 64 : 32, 1}, shape, NULL, 0};
  DLTensor *in[2] = {&a, &b}, *outs[1] = {&out};
  quern_op *op = NULL;
  quern_status status = quern_op_find(NULL, "add", &op);
  if (!status) status = quern_op_call(op, 2, in, 1, outs, NULL);
  group_count(1);
  if (status) {
    group_fail("[%lld, %lld] step %lld: %s", (long long)n1, (long long)n0, (long long)step, quern_last_error());
  } else {
    for (int64_t i = 0; i < n1; i++)
      for (int64_t j = 0; j < n0; j++) {
        float wanted = windows[index_of(i, j, step, 1)] + turned[index_of(i, j, 1, n1)];
        double got = wide ? ((double *)result)[i * n0 + j] : ((float *)result)[i * n0 + j];
        if (got != (double)wanted) {
          group_fail("[%lld, %lld] step %lld to %s: at [%lld, %lld] %g, wanted %g", (long long)n1, (long long)n0, (long long)step,
                     out_dtype, (long long)i, (long long)j, got, (double)wanted);
          i = n1;
          break;
        }
      }
  }
  quern_op_release(op);
  free(windows), free(turned), free(result);
}

int main(void) {
  group_begin("overlapping windows beside a transposed operand");
  for (int64_t n0 = 20; n0 < 300; n0 += 27)
    for (int64_t step = 1; step <= n0; step += step < 70 ? 1 : 13) {
      check(40, n0, step, "f64");
      check(33, n0, step, "f32");
    }
  group_end();
  return done_testing();
}
