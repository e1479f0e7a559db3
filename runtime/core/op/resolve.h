/* resolve.h: from the dtypes of a call's operands to the dtype it is computed in and the kernels that can. Every refusal
 * says what to write instead. Knows no shapes and no memory. */
#ifndef QN_RESOLVE_H
#define QN_RESOLVE_H

#include "core/base/kernel_abi.h"

/* What a call computes in. */
typedef struct qn_signature {
  uint8_t param;               /* the dtype that parameters are converted to */
  uint8_t heavy;
  uint8_t computes;            /* 1: the kernels take any NaN for one, and store the canonical one; 0: they may move bits */
  int32_t n_variants;
  const qn_variant *variants;  /* the kernels to pick from; the all-contiguous one first */
  uint8_t value[QN_MAX_OPERANDS]; /* qn_dtype of each operand's values as the kernel takes or gives them */
  const struct qn_program *program; /* of an expression that is interpreted: instead of variants; else NULL */
} qn_signature;

/* dtypes: of the inputs, then of the outputs. Checks both. */
quern_status qn_resolve(const qn_builtin *builtin, const uint8_t *dtypes, qn_signature *signature);

/* The dtype that output k has if the caller has no wish: in_dtypes: [n_in]. Not for rule CAST, where only he knows. */
quern_status qn_resolve_result(const qn_builtin *builtin, const uint8_t *in_dtypes, int32_t k, uint8_t *dtype);

/* The same in two steps for an op of class dynamic, which is planned before it has an output. in_dtypes: [n_in]. */
quern_status qn_resolve_inputs(const qn_builtin *builtin, const uint8_t *in_dtypes, qn_signature *signature);
quern_status qn_resolve_output(const qn_builtin *builtin, const qn_signature *signature, uint8_t dtype);

/* For an index op, of the output's dtype alone. The signature's operands are the indices, of the dtype they are computed with,
 * and the output. param: f64, or QN_B64: integers modulo 2^64. */
quern_status qn_resolve_index(const qn_builtin *builtin, uint8_t dtype, qn_signature *signature);

/* For an op without rules of its own (registered): what the inputs promote to. */
quern_status qn_resolve_promotion(const quern_op_info *info, const uint8_t *in_dtypes, uint8_t *dtype);

#endif
