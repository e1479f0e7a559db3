/* SPDX-License-Identifier: Apache-2.0
 *
 * row_cases.h: shapes, axes, layouts and values that tests of reductions on CUDA draw. Header-only. */
#ifndef QUERN_TESTS_CUDA_ROW_CASES_H
#define QUERN_TESTS_CUDA_ROW_CASES_H

#include "reductions.h"

/* At most `most` elements. */
UNUSED static void row_shape(rng *r, int64_t most, int64_t *shape, int *ndim) {
  static const int64_t extents[] = {1, 2, 3, 5, 15, 16, 17, 31, 64, 100, 255, 256, 257, 300, 513, 1000, 4097, 9000};
  int64_t n = 1;
  *ndim = (int)rng_below(r, 6);
  for (int k = 0; k < *ndim; k++) {
    shape[k] = extents[rng_below(r, k == 0 ? 18 : 8)];
    if (n * shape[k] > most) shape[k] = 1 + (int64_t)rng_below(r, (uint64_t)(most / n));
    n *= shape[k];
  }
  for (int k = *ndim - 1; k > 0; k--) {
    const int at = (int)rng_below(r, (uint64_t)k + 1);
    const int64_t was = shape[k];
    shape[k] = shape[at], shape[at] = was;
  }
  if (*ndim && rng_below(r, 25) == 0) shape[rng_below(r, (uint64_t)*ndim)] = 0;
}

/* Any order of the dimensions, gaps, walked up or down; some of an input's repeated. */
UNUSED static void row_layout(operand *o, ref_dtype d, int ndim, const int64_t *shape, int is_output, rng *r) {
  int64_t strides[QUERN_MAX_NDIM], step = 1;
  int order[QUERN_MAX_NDIM];
  const int is_plain = rng_below(r, 3) == 0;
  for (int k = 0; k < ndim; k++) order[k] = k;
  for (int k = ndim - 1; k > 0 && !is_plain; k--) {
    const int at = (int)rng_below(r, (uint64_t)k + 1), was = order[k];
    order[k] = order[at], order[at] = was;
  }
  for (int k = ndim - 1; k >= 0; k--) {
    const int at = order[k], is_repeated = !is_plain && !is_output && rng_below(r, 8) == 0;
    if (!is_plain && rng_below(r, 4) == 0) step += (int64_t)rng_below(r, 4);
    strides[at] = is_repeated ? 0 : !is_plain && rng_below(r, 4) == 0 ? -step : step;
    if (!is_repeated) step *= shape[at] ? shape[at] : 1;
  }
  operand_describe(o, d, ndim, shape, strides);
  operand_allocate(o, 0, is_plain ? GUARD_BACK : GUARD_NONE);
}

UNUSED static void row_fill(operand *o, rng *r) {
  int64_t index[QUERN_MAX_NDIM + 1] = {0};
  const int kind = (int)rng_below(r, 4), is_float = ref_dtype_kind(o->d) == REF_KIND_FLOAT;
  operand_fill(o, r);
  if (kind == 0 || ref_n_elements(&o->t) == 0) return;
  do {
    const double x = kind == 1 ? 8 * (2 * rng_unit(r) - 1) : kind == 2 ? -0.0 : (2 * rng_unit(r) - 1) * ldexp(1, (int)rng_range(r, -9, 9));
    ref_put(o->d, ref_address(&o->t, index), is_float ? ref_from_double(o->d, x) : rng_below(r, 6) ? random_bits(r, o->d) : 0);
  } while (ref_next_index(o->t.ndim, o->t.shape, index));
}

/* Axes of at most so many rows. */
UNUSED static int64_t row_axes(rng *r, int64_t most_rows, int ndim, const int64_t *shape) {
  int64_t axes = rng_below(r, 4) ? (int64_t)(rng_u64(r) & (((uint64_t)1 << ndim) - 1)) : -1, n = 1;
  for (int k = 0; k < ndim; k++) {
    if (!(axes >> k & 1) && n * shape[k] > most_rows) axes |= (int64_t)1 << k;
    n *= axes >> k & 1 ? 1 : shape[k];
  }
  return axes;
}

UNUSED static int row_takes(law_op op, ref_dtype d) {
  const char *name = ref_dtype_name(d), *at = quern_op_describe(law_ops[op][0])->args[0].dtypes;
  const size_t length = strlen(name);
  for (; (at = strstr(at, name)); at += length)
    if ((at[length] == 0 || at[length] == ' ') && (at == quern_op_describe(law_ops[op][0])->args[0].dtypes || at[-1] == ' ')) return 1;
  return 0;
}

#endif
