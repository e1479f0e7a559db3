/* SPDX-License-Identifier: Apache-2.0
 *
 * reduction_law.h: what a reduction must give, bit for bit: the order in which values are combined, then each op by its
 * definition, one row at a time. Plainness before speed. Shares nothing with the generator, the templates or the runtime; knows
 * DLTensor, not the library.
 *
 * A row is the elements that are combined into one result, in row-major order of the reduced axes. */
#ifndef QUERN_TESTS_REDUCTION_LAW_H
#define QUERN_TESTS_REDUCTION_LAW_H

#include <stdint.h>

#include "ref.h"

/* ---- The order -------------------------------------------------------------------------------------------------- */

/* A number in one of the dtypes that rows are computed in. Signed and unsigned integers wrap alike. */
typedef enum law_type { LAW_F32, LAW_F64, LAW_I64, LAW_U64 } law_type;
typedef union law_value {
  float f32;
  double f64;
  int64_t i64;
  uint64_t u64;
} law_value;

typedef law_value (*law_combine)(law_value a, law_value b);
law_value law_add_f32(law_value a, law_value b), law_add_f64(law_value a, law_value b), law_add_u64(law_value a, law_value b);
law_value law_mul_f32(law_value a, law_value b), law_mul_f64(law_value a, law_value b), law_mul_u64(law_value a, law_value b);

/* Combines a row in the order of the law. n_axes 0: the one element. 0: the row is empty, *total is left. */
int law_tree(law_combine combine, int n_axes, const int64_t *extents, const law_value *x, law_value *total);

/* ---- Ops -------------------------------------------------------------------------------------------------------- */

typedef enum law_op {
  LAW_SUM, LAW_PROD, LAW_MEAN, LAW_MAX, LAW_MIN, LAW_ANY, LAW_ALL, LAW_COUNT_NONZERO, LAW_ARGMAX, LAW_ARGMIN,
  LAW_LOGSUMEXP, LAW_VAR, LAW_STD,
  LAW_PTP, LAW_NANSUM, LAW_NANPROD, LAW_NANMAX, LAW_NANMIN, LAW_NANMEAN, LAW_NANVAR, LAW_NANSTD, LAW_NANARGMAX, LAW_NANARGMIN,
  LAW_REDUCE_L1, LAW_REDUCE_L2, LAW_REDUCE_SUM_SQUARE, LAW_REDUCE_LOG_SUM,
  LAW_SUM_INITIAL, LAW_PROD_INITIAL, LAW_MAX_INITIAL, LAW_MIN_INITIAL, LAW_ARGMAX_LAST, LAW_ARGMIN_LAST,
  LAW_SOFTMAX, LAW_LOG_SOFTMAX, LAW_SOFTMIN, LAW_NORMALIZE, LAW_RMS_NORM, LAW_LAYER_NORM, /* from LAW_SOFTMAX on: of the input's shape */
  LAW_N_OPS
} law_op;

const char *law_name(law_op op);
int law_is_full(law_op op);                 /* results of the input's shape? */
int law_has_correction(law_op op);
int law_has_initial(law_op op);             /* its parameter is `initial` */
law_op law_plain(law_op op);                /* the op without `initial`, or select_last_index; else op */
double law_default(law_op op);              /* of the parameter */
ref_dtype law_result(law_op op, ref_dtype d); /* the dtype of results from an input's */
/* Must the op take this dtype? Others may be refused. */
int law_must_take(law_op op, ref_dtype d);

/* exp and log are those of the library, which other tests hold to their own definition: y[i] = op(x[i]), op "exp" or "log", in
 * f32 or f64. */
typedef void (*law_map)(const char *op, law_type type, int64_t n, const law_value *x, law_value *y);

/* Whether the call must be refused: the op has no result for an empty row, and there are such results. */
int law_is_refused(law_op op, const DLTensor *in, uint64_t axes);

/* The results in row-major order of the kept axes (of all axes, for ops of the full shape), as bits of dtype `out`, malloc'd;
 * *count of them. axes: bit k set = axis k is reduced. correction: the op's parameter, if it has one. */
uint64_t *law_eval(law_op op, const DLTensor *in, uint64_t axes, double correction, ref_dtype out, law_map map, int64_t *count);

#endif /* QUERN_TESTS_REDUCTION_LAW_H */
