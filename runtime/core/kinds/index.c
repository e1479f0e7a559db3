/* index.c: see index.h. */
#include "core/kinds/index.h"

#include <string.h>

#include "core/call/cuda.h"
#include "core/tensor/tensor.h"

/* No element may have another's memory. This does not depend on where the output lies. */
static quern_status check_index_output(const quern_op_info *info, const qn_nest *nest, uint8_t size) {
  qn_nest alone = {.rank = nest->rank, .n_operands = 1, .n_elements = nest->n_elements};
  for (int32_t d = 0; d < nest->rank; d++) {
    alone.n[d] = nest->n[d];
    alone.stride[0][d] = nest->stride[1][d];
  }
  alone.ptr[0] = (char *)(uintptr_t)QN_TENSOR_MAX_SPAN; /* any address that its span cannot wrap around */
  return qn_tensor_check_overlap(info->name, info->args, &alone, 1, &size);
}

void qn_index_count(const qn_decision *decision, qn_params *params) {
  const int64_t count = decision->job.nest.n_elements;
  const double as_float = (double)count; /* of what fits into memory, exact */
  uint64_t *slot = &params->slot[decision->op->builtin->info.n_params];
  if (decision->param_dtype == QN_F64)
    memcpy(slot, &as_float, sizeof as_float);
  else
    *slot = (uint64_t)count;
}

/* The output is read and can be written where it is. */
static quern_status read_index_output(const quern_op_info *info, DLTensor *const *out, const quern_call *call, int needs_data,
                                      qn_tensor *tensor, qn_decision *decision) {
  quern_status status = qn_tensor_read(out[0], info->name, info->args, 0, needs_data, tensor);
  if (status) return status;
  if ((status = qn_tensor_check_devices(info->name, info->args, 0, NULL, 1, tensor, &decision->device))) return status;
  if ((status = qn_dispatch_check_device(info, decision->device))) return status;
  if (!qn_dispatch_is_cuda(decision) && (status = qn_dispatch_check_cpu_kernels(info))) return status;
  return call ? qn_dispatch_check_flags(info, call->out_flags) : QUERN_OK;
}

/* Not inlined: what it needs on the stack is to be free again when the job runs. */
__attribute__((noinline)) quern_status qn_index_decide(const quern_op *op, DLTensor *const *out, const quern_call *call,
                                                       int needs_data, qn_decision *decision) {
  const quern_op_info *info = qn_registry_own_info(op);
  qn_job *job = &decision->job;
  qn_tensor tensor;
  qn_signature signature;
  decision->op = op;
  decision->specialised = NULL;
  decision->compiled = NULL;
  decision->values = decision->pinned = 0;
  quern_status status = read_index_output(info, out, call, needs_data, &tensor, decision);
  if (status) return status;
  if ((status = qn_resolve_index(op->builtin, tensor.dtype, &signature))) return status;
  decision->param_dtype = signature.param;
  decision->dtypes[0] = QN_INDEX_DTYPE;
  decision->dtypes[1] = tensor.dtype;
  if (qn_dispatch_is_cuda(decision) && (status = qn_dispatch_stand_in(op, decision->dtypes, decision))) return status;
  if ((status = qn_dispatch_convert(info, decision, call, &decision->params))) return status;
  decision->sizes[0] = 0;
  decision->sizes[1] = tensor.size;
  if (!out[0]->data) tensor.data = (char *)(uintptr_t)QN_TENSOR_MAX_SPAN; /* stands for what is to come later */
  decision->data[0] = NULL;
  decision->data[1] = tensor.data;

  qn_tensor indices = tensor;
  indices.data = (char *)(uintptr_t)QN_INDEX_ORIGIN;
  indices.strides = NULL;
  indices.size = indices.compact = 1;
  indices.dtype = QN_INDEX_DTYPE;
  qn_tensor_normalise(tensor.ndim, tensor.shape, 1, &indices, 1, &tensor, &job->nest);
  qn_index_count(decision, &decision->params);
  if (job->nest.n_elements == 0) return QUERN_OK;
  if ((status = check_index_output(info, &job->nest, tensor.size))) return status;
  if (!qn_dispatch_is_cuda(decision)) {
    qn_job_plan_index(&signature, decision->dtypes, job);
    return QUERN_OK;
  }
  job->n_in = 1;
  job->n_operands = 2;
  job->nest.ptr[0] = (char *)((uintptr_t)job->nest.ptr[0] - (uintptr_t)QN_INDEX_ORIGIN); /* kernels have the index itself */
  return QUERN_OK;
}
