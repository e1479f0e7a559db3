/* SPDX-License-Identifier: Apache-2.0
 *
 * decision.h: a call that has been read, checked and decided by its kind of op, for a backend to prepare and launch. */
#ifndef QN_DECISION_H
#define QN_DECISION_H

#include "core/op/params.h"
#include "core/op/registry.h"
#include "core/op/resolve.h"
#include "core/tensor/tensor.h"

typedef struct qn_decision {
  qn_nest nest;                   /* n_elements 0: there is nothing to run */
  const quern_op *called;         /* the op that was called */
  const quern_op *op;             /* the op with the kernels that run: `called` or its stand-in on the backend's devices */
  const struct qn_backend *backend;
  DLDevice device;                /* the device that computes */
  int32_t n_in, n_operands;       /* of the nest: positions count as inputs */
  /* The conversion of parameters, also of those of later runs: as in qn_params_convert. */
  uint8_t param_dtype;
  int32_t n_slots;
  const qn_slot *slots;
  uint8_t dtypes[QN_MAX_OPERANDS];
  uint8_t sizes[QN_MAX_OPERANDS]; /* bytes an item; 0: a position */
  int64_t byte_offset[QN_MAX_OPERANDS]; /* of the tensors; included in nest.ref and in a plan's pointers */
  const struct qn_specialised *specialised; /* of an op without kernels of its own (qn_fused), or of its stand-in */
  const qn_signature *signature;     /* of `specialised`, or own_signature */
  qn_signature own_signature;
  uint8_t device_types[QN_MAX_OPERANDS]; /* DLDeviceType of each tensor */
  qn_params params;
  const void *of_kind; /* of a kind with further data (qn_builtin.of_kind): what runs */
  int64_t count, shape_params[3]; /* the elements along the axes; the parameters that give the shape */
  uint64_t launch[13]; /* of kernels that are launched as scans are: row/scan_launch.h */
} qn_decision;

#endif
