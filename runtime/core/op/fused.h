/* SPDX-License-Identifier: Apache-2.0
 *
 * fused.h: the interface of ops that are expressions: an expression specialised for dtypes, and the backend that runs it.
 * Implemented above the core, in the library only: no op of a generated tree is fused. */
#ifndef QN_FUSED_H
#define QN_FUSED_H

#include "core/op/params.h"
#include "core/op/resolve.h"

/* An expression specialised for its operands' dtypes. Lives as long as its op. */
typedef struct qn_specialised {
  qn_signature signature; /* with a `program` for the interpreter; or, of an expression that is one built op, that op's */
  const uint8_t *dtypes;  /* of the operands: compiled kernels take them without conversion */
  int32_t n_slots;
  const qn_slot *slots; /* the parameters; NULL with n_slots > 0: they are converted as the built op's are */
  uint8_t heavy, is_built;
  int32_t n_nodes;
} qn_specialised;

typedef struct qn_fused {
  /* Specialises the op for these dtypes (inputs, then outputs) and checks them. */
  quern_status (*specialise)(const quern_op *op, const uint8_t *dtypes, const qn_specialised **specialised);
  /* The dtypes of the outputs where the caller asks for none. */
  quern_status (*infer)(const quern_op *op, const uint8_t *in_dtypes, uint8_t *out_dtypes);
  const struct qn_backend *cpu; /* the backend that runs it on the CPU */
} qn_fused;

#endif
