/* cuda.c: see cuda.h. */
#include "core/call/cuda.h"

#include <string.h>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

static int is_value(const qn_decision *decision, int32_t k) { return decision->values >> k & 1; }

quern_status qn_cuda_launch(const qn_decision *decision, const qn_cuda_run *run, char *const *ptr, const qn_params *params,
                            const quern_call *call) {
  const quern_op_info *info = decision->op->info;
  const int32_t first = qn_cuda_first(decision);
  for (int32_t k = first; k < decision->job.n_operands; k++) {
    if ((uintptr_t)ptr[k] % decision->sizes[k] == 0 || is_value(decision, k)) continue;
    return qn_tensor_fail(QUERN_E_ALIGNMENT, info->name, &info->args[k - first], k < info->n_in ? k : k - decision->job.n_in,
                          "its address is no multiple of %d, the bytes of an item, which a CUDA device cannot read or write",
                          decision->sizes[k]);
  }
  return qn_cuda->launch(decision->op, decision, run, ptr, params, call);
}

void qn_cuda_arguments(const qn_decision *decision, const qn_cuda_run *run, char *const *ptr, const qn_params *params,
                       uint64_t args[QN_LAUNCH_ARGS]) {
  const qn_launch *launch = &run->launch;
  memcpy(args, launch->args, (size_t)launch->n_args * sizeof args[0]);
  memcpy(args + launch->at_params, params->slot, (size_t)(launch->n_args - launch->at_params) * sizeof args[0]);
  for (int32_t k = 0; k < launch->form.n_operands; k++) {
    args[k] = is_value(decision, k) ? 0 : (uint64_t)(uintptr_t)ptr[k];
    if (is_value(decision, k)) memcpy(&args[k], ptr[k], decision->sizes[k]); /* little-endian, as all hosts of CUDA */
  }
}

int qn_cuda_next(const qn_decision *decision, const qn_launch *launch, int64_t *at, uint64_t *args) {
  for (int32_t d = 0; d < launch->repeat_rank; d++) {
    const int is_end = ++at[d] == launch->repeat_n[d];
    const int64_t steps = is_end ? 1 - launch->repeat_n[d] : 1;
    for (int32_t k = 0; k < launch->form.n_operands; k++)
      if (!is_value(decision, k)) args[k] += (uint64_t)(steps * launch->repeat_stride[k][d]);
    if (!is_end) return 1;
    at[d] = 0;
  }
  return 0;
}
