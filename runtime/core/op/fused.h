/* SPDX-License-Identifier: Apache-2.0
 *
 * fused.h: ops that are expressions, as the core sees them: what an expression is for given dtypes, and what runs it.
 * Implemented above the core, and only in the library; in a generated tree no op is fused. */
#ifndef QN_FUSED_H
#define QN_FUSED_H

#include "core/op/params.h"
#include "core/op/resolve.h"

/* An expression for operands of certain dtypes. Lives as long as its op. */
typedef struct qn_specialised {
  qn_signature signature; /* of the interpreter: `program`; or, where the expression is one built op, of that */
  const uint8_t *dtypes;  /* of the operands: compiled kernels take them as they are */
  int32_t n_slots;
  const qn_slot *slots; /* the parameters of either; NULL though there are some: they are converted as the built op's are */
  uint8_t heavy, is_built;
  int32_t n_nodes;
} qn_specialised;

typedef struct qn_fused {
  /* What the op is for operands of these dtypes (inputs, then outputs); checks them. */
  quern_status (*specialise)(const quern_op *op, const uint8_t *dtypes, const qn_specialised **specialised);
  /* The dtypes that outputs have of themselves. */
  quern_status (*infer)(const quern_op *op, const uint8_t *in_dtypes, uint8_t *out_dtypes);
  const struct qn_backend *cpu; /* what runs it on the CPU */
} qn_fused;

#endif
