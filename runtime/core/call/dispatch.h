/* dispatch.h: from an op and its operands to a job: reads and checks everything, in the order in which a sentence about it
 * helps most, and has it run. After dispatch has said yes nothing can fail on the CPU; on a CUDA device the launch still may. */
#ifndef QN_DISPATCH_H
#define QN_DISPATCH_H

#include "core/op/fused.h"
#include "core/cpu/job.h"
#include "core/op/params.h"
#include "core/op/registry.h"
#include "core/base/status.h"

/* A call of an op with kernels here, decided. */
typedef struct qn_decision {
  qn_params params;
  uint8_t param_dtype;            /* what parameters of later runs are converted to */
  const quern_op *op;             /* whose kernels run: the op that was called, or what stands in for it on CUDA devices */
  DLDevice device;                /* that computes: the cpu, or a CUDA device */
  uint32_t values;                /* CUDA: bit k: input k is one value on the CPU */
  uint32_t pinned;                /* CUDA: bit k: operand k is the host's memory, which the device may see elsewhere */
  uint8_t dtypes[QN_MAX_OPERANDS];
  uint8_t sizes[QN_MAX_OPERANDS]; /* bytes an item */
  char *data[QN_MAX_OPERANDS];    /* as the tensors have it; where it is NULL, some address apart from the others */
  const qn_specialised *specialised;      /* of an expression, else NULL: */
  const qn_compiled *compiled;    /* its code, which need not be there yet, or NULL where none is wanted */
  qn_job job;                     /* nest.n_elements 0, or CUDA: only the nest is set */
} qn_decision;

/* Counts are those of the op; `call` is of this library's size, or NULL. `needs_data` 0: data pointers may be NULL; the
 * overlap of operands is then checked only if none is. `later` (may be NULL): for decision->compiled without code so far, the
 * job that it will run; else not written. */
quern_status qn_dispatch_decide(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                                int needs_data, qn_decision *decision, qn_job *later);

/* A call's parameters as the decision needs them. */
quern_status qn_dispatch_convert(const quern_op_info *info, const qn_decision *decision, const quern_call *call,
                                 qn_params *params);

static inline int qn_dispatch_is_cuda(const qn_decision *decision) { return decision->device.device_type == kDLCUDA; }

/* Whether a registered op, which has answered with `status`, leaves the call to the built-in one, if there is one. `kept`:
 * the sentence before it was asked, which is put back where its own is not the call's. */
int qn_dispatch_falls_back(int has_builtin, quern_status status, const qn_sentence *kept);

quern_status qn_dispatch_call(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call);

quern_status qn_dispatch_workspace(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                                   size_t *bytes);

/* Whether anything is built that runs here, for operands of which none is a CUDA device's. */
quern_status qn_dispatch_check_cpu_kernels(const quern_op_info *info);

/* Whether there are kernels for the device that is to compute; of the CPU's the function above says. */
quern_status qn_dispatch_check_device(const quern_op_info *info, DLDevice device);

/* On a CUDA device: decision->op becomes what stands in for the built-in one there, and `specialised` is set for these dtypes. */
quern_status qn_dispatch_stand_in(const quern_op *op, const uint8_t *dtypes, qn_decision *decision);

/* An output that its owner calls read-only: flags as in quern_call.out_flags, NULL = none. */
quern_status qn_dispatch_check_flags(const quern_op_info *info, const uint64_t *out_flags);

#endif
