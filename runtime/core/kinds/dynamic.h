/* dynamic.h: ops of class dynamic, whose output is as large as values say: it is counted first, then filled. Owns both passes,
 * on the CPU; what a block holds is found by kernels. Memory beyond the operands: the slice's stack. */
#ifndef QN_DYNAMIC_H
#define QN_DYNAMIC_H

#include "core/op/registry.h"
#include "core/op/resolve.h"
#include "core/tensor/tensor.h"
#include "core/cpu/job.h"

/* The condition, and items. There is one output. */
#define QN_DYNAMIC_INPUTS 2

/* A call of such an op, decided: what is found is not known yet. */
typedef struct qn_dynamic {
  const qn_builtin *builtin;
  DLDevice device;
  uint8_t sizes[QN_DYNAMIC_INPUTS + 1]; /* bytes an item */
  qn_tensor out;                  /* if there is one */
  int32_t ndim;
  int64_t shape[QUERN_MAX_NDIM];  /* that the inputs broadcast to */
  qn_signature signature;
  qn_job job;                     /* nest.n_elements 0: only the nest is set */
} qn_dynamic;

/* For all of these the op is qn_registry_is_dynamic, counts are its own, and `call` is of this library's size, or NULL. */

/* Checks all that does not depend on values. out: NULL where there is none yet; needs_data 0: pointers may be NULL. */
quern_status qn_dynamic_decide(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                               int needs_data, qn_dynamic *dynamic);

/* Whether this machine can run it where its tensors are: shapes can be inferred in any case. */
quern_status qn_dynamic_check_machine(const qn_dynamic *dynamic);

/* Shapes as quern_op_infer gives them, -1 what depends on values; and as quern_op_measure does. */
quern_status qn_dynamic_infer(const quern_op *op, DLTensor *const *in, quern_shape *out);
quern_status qn_dynamic_measure(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *call);

/* Counts, checks the output against that, and fills it. */
quern_status qn_dynamic_call(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call);

#endif
