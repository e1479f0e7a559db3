/* SPDX-License-Identifier: Apache-2.0
 *
 * resolve.h: from the dtypes of a call's operands to its compute dtype and its kernels: the steps that kinds of op
 * share. Every refusal says what to write instead. Knows no shapes and no memory. */
#ifndef QN_RESOLVE_H
#define QN_RESOLVE_H

#include "core/base/kernel_abi.h"

struct qn_job;

/* What computes a tile in place of one kernel: an interpreted expression. Made above the core; constant. */
typedef struct qn_tile_program {
  /* first: the operands' first items of this tile, in the tensors; scratch: of the slice; params: of the call. */
  void (*compute)(const struct qn_job *job, char *const *first, int64_t count, char *scratch, const void *params);
  uint32_t to_blocks;   /* bit k: operand k, an output, is written before the last read of inputs: not straight to the tensor */
  int32_t picoseconds;  /* an element's rough cost */
} qn_tile_program;

/* The compute dtypes of a call, and its kernels. */
typedef struct qn_signature {
  uint8_t param;               /* the dtype that parameters are converted to */
  uint8_t heavy, n_heavy;      /* as in qn_builtin; the operations of an expression that are heavy */
  uint8_t computes;            /* 1: the kernels treat all NaNs alike and store the canonical one; 0: they may copy bits */
  int32_t n_variants;
  const qn_variant *variants;  /* the kernels to pick from; the all-contiguous one first */
  uint8_t compute_dtypes[QN_MAX_OPERANDS]; /* qn_dtype of each operand as the kernel reads or writes it */
  const qn_variant *position;  /* the kernel that writes elements' positions, "sc", rank 2; NULL: the nest has none */
  int32_t temp_bytes, fixed_bytes; /* of a tile's temporaries: an element; in all */
  const qn_tile_program *program; /* instead of variants; else NULL */
} qn_signature;

/* Sets the defaults of a signature: the first step of a kind's `resolve`. */
static inline void qn_signature_begin(qn_signature *signature, uint8_t heavy, uint8_t computes) {
  signature->heavy = signature->n_heavy = heavy;
  signature->computes = computes;
  signature->temp_bytes = signature->fixed_bytes = 0;
  signature->position = NULL;
  signature->program = NULL;
}

/* The promoted dtype of the inputs by the op's rule (qn_promotion). DTYPE where the op does not take it. in_dtypes: [n_in]. */
quern_status qn_resolve_promoted(const qn_builtin *builtin, const uint8_t *in_dtypes, uint8_t *promoted);

/* The dtype that output k has before it is stored. */
static inline uint8_t qn_resolve_result(const qn_builtin *builtin, uint8_t promoted, int32_t k) {
  return builtin->results[k] != QN_DTYPE_NONE ? builtin->results[k] : promoted;
}

/* A result may be stored in any dtype of its own kind or a higher one. */
quern_status qn_resolve_stored(const quern_op_info *info, int32_t k, uint8_t result, uint8_t given);

/* The kernels of one kernel dtype. */
void qn_resolve_variants(const qn_builtin *builtin, uint8_t kernel_dtype, qn_signature *signature);

/* Sets the compute dtypes and the kernels of an op with promoted inputs. compute: the compute dtype, except for conditions (bool)
 * and outputs with a dtype of their own; kernel_dtype: that of the kernels. dtypes: of the inputs, then of the outputs. */
quern_status qn_resolve_elements(const qn_builtin *builtin, const uint8_t *dtypes, uint8_t promoted, uint8_t compute,
                                 uint8_t kernel_dtype, qn_signature *signature);

/* The promoted dtype of the inputs of a registered op without a row. */
quern_status qn_resolve_promotion(const quern_op_info *info, const uint8_t *in_dtypes, uint8_t *dtype);

#endif
