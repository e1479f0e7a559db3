/* SPDX-License-Identifier: Apache-2.0
 *
 * resolve.h: from the dtypes of a call's operands to the dtype it is computed in and the kernels that can: what kinds of op
 * have in common there. Every refusal says what to write instead. Knows no shapes and no memory. */
#ifndef QN_RESOLVE_H
#define QN_RESOLVE_H

#include "core/base/kernel_abi.h"

/* What a call computes in. */
typedef struct qn_signature {
  uint8_t param;               /* the dtype that parameters are converted to */
  uint8_t heavy;
  uint8_t temp_bytes;          /* that a kind which runs its calls itself wants of an element beside its blocks */
  uint8_t computes;            /* 1: the kernels take any NaN for one, and store the canonical one; 0: they may move bits */
  int32_t n_variants;
  const qn_variant *variants;  /* the kernels to pick from; the all-contiguous one first */
  uint8_t compute_dtypes[QN_MAX_OPERANDS]; /* qn_dtype of each operand's values as the kernel takes or gives them */
  const qn_variant *position;  /* writes the positions of elements, "sc", rank 2, for a nest that has them; else NULL */
  const struct qn_tile_program *program; /* of an expression that is interpreted: instead of variants; else NULL */
} qn_signature;

/* What a kind's `resolve` begins with. */
static inline void qn_signature_begin(qn_signature *signature, uint8_t heavy, uint8_t computes) {
  signature->heavy = heavy;
  signature->computes = computes;
  signature->temp_bytes = 0;
  signature->position = NULL;
  signature->program = NULL;
}

/* What the inputs promote to by the op's rule (qn_promotion), if it takes that. in_dtypes: [n_in]. */
quern_status qn_resolve_promoted(const qn_builtin *builtin, const uint8_t *in_dtypes, uint8_t *promoted);

/* The dtype that output k has before it is stored. */
static inline uint8_t qn_resolve_result(const qn_builtin *builtin, uint8_t promoted, int32_t k) {
  return builtin->results[k] != QN_DTYPE_NONE ? builtin->results[k] : promoted;
}

/* A result may be stored in any dtype of its own kind or a higher one. */
quern_status qn_resolve_stored(const quern_op_info *info, int32_t k, uint8_t result, uint8_t given);

/* The kernels of one kernel dtype. */
void qn_resolve_variants(const qn_builtin *builtin, uint8_t kernel_dtype, qn_signature *signature);

/* The whole of it where inputs promote: parameters are converted to `param`; kernels take and give `value`, but for conditions
 * and outputs of a dtype of their own, and are those of kernel_dtype. dtypes: of the inputs, then of the outputs. */
quern_status qn_resolve_elements(const qn_builtin *builtin, const uint8_t *dtypes, uint8_t promoted, uint8_t value,
                                 uint8_t kernel_dtype, qn_signature *signature);

/* For an op without a row (registered): what the inputs promote to. */
quern_status qn_resolve_promotion(const quern_op_info *info, const uint8_t *in_dtypes, uint8_t *dtype);

#endif
