/* SPDX-License-Identifier: Apache-2.0
 *
 * decision.h: a call that has been read, checked and decided by its kind of op, for a backend to prepare and launch. */
#ifndef QN_DECISION_H
#define QN_DECISION_H

#include "core/op/fused.h"
#include "core/op/params.h"
#include "core/op/registry.h"
#include "core/tensor/tensor.h"

typedef struct qn_decision {
  qn_nest nest;                   /* n_elements 0: there is nothing to run */
  const quern_op *called;         /* the op */
  const quern_op *op;             /* whose kernels run: the same, or what stands in for it on the backend's devices */
  const struct qn_backend *backend;
  DLDevice device;                /* that computes */
  int32_t n_in, n_operands;       /* of the nest: positions count as inputs */
  uint32_t values;                /* bit k: input k is one value in the host's memory, on a device that does not read that */
  uint32_t pinned;                /* bit k: operand k is the host's memory, which the device may see at another address */
  uint8_t param_dtype;            /* what parameters of later runs are converted to */
  uint8_t dtypes[QN_MAX_OPERANDS];
  uint8_t sizes[QN_MAX_OPERANDS]; /* bytes an item; 0: a position */
  int64_t byte_offset[QN_MAX_OPERANDS]; /* of the tensors; nest.ref has it included, a plan's pointers do */
  const qn_specialised *specialised; /* of an expression, else NULL */
  const qn_signature *signature;     /* its, or: */
  qn_signature own_signature;
  qn_params params;
} qn_decision;

#endif
