/* dispatch.c: see dispatch.h. */
#include "core/call/dispatch.h"

#include "core/call/cuda.h"
#include "core/kinds/dynamic.h"
#include "core/cpu/engine.h"
#include "core/base/float_env.h"
#include "core/kinds/index.h"
#include "core/base/isa.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

/* The operands of one call, read: inputs, then outputs. */
typedef struct operands {
  qn_tensor tensor[QN_MAX_OPERANDS];
  uint8_t dtype[QN_MAX_OPERANDS];
  int32_t ndim;
  uint8_t has_data; /* no data pointer is NULL */
  uint8_t has_cuda; /* some operand is in a CUDA device's own memory */
  int64_t shape[QUERN_MAX_NDIM];
} operands;

/* Stands for data that is to come later: offsets can be counted from it, in either direction. */
static char *placeholder(int32_t k) { return (char *)(uintptr_t)(QN_TENSOR_MAX_SPAN + 64 * k); }

static quern_status read_operands(const quern_op_info *info, DLTensor *const *in, DLTensor *const *out, int needs_data,
                                  operands *operands) {
  operands->has_data = 1;
  operands->has_cuda = 0;
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) {
    int is_output = k >= info->n_in;
    int32_t index = is_output ? k - info->n_in : k;
    const DLTensor *tensor = is_output ? out[index] : in[index];
    quern_status status =
        qn_tensor_read(tensor, info->name, &info->args[k], index, needs_data, &operands->tensor[k]);
    if (status) return status;
    if (!tensor->data) { /* tensor.data is byte_offset alone then */
      operands->tensor[k].data = placeholder(k);
      operands->has_data = 0;
    }
    operands->dtype[k] = operands->tensor[k].dtype;
    operands->has_cuda |= tensor->device.device_type == kDLCUDA;
  }
  return QUERN_OK;
}

static quern_status check_shapes(const quern_op_info *info, operands *operands) {
  const qn_tensor *out = operands->tensor + info->n_in;
  quern_status status =
      qn_tensor_broadcast(info->name, info->args, info->n_in, operands->tensor, operands->shape, &operands->ndim);
  if (status) return status;
  if (info->n_in == 0) { /* then the first output says how large it is */
    operands->ndim = out[0].ndim;
    for (int32_t d = 0; d < out[0].ndim; d++) operands->shape[d] = out[0].shape[d];
  }
  for (int32_t k = 0; k < info->n_out; k++) {
    status = qn_tensor_check_shape(info->name, &info->args[info->n_in + k], k, &out[k], operands->ndim, operands->shape);
    if (status) return status;
  }
  return QUERN_OK;
}

quern_status qn_dispatch_check_device(const quern_op_info *info, DLDevice device) {
  char text[QN_TENSOR_DEVICE_CHARS];
  if (device.device_type == kDLCPU || (device.device_type == kDLCUDA && qn_cuda)) return QUERN_OK;
  return qn_status_fail(QUERN_E_DEVICE, "%s: its tensors are on %s, which this library has no kernels for; copy them to the cpu",
                        info->name, qn_tensor_device_text(device, text));
}

static quern_status check_device(const quern_op_info *info, const operands *operands, qn_decision *decision) {
  quern_status status = qn_tensor_check_devices(info->name, info->args, info->n_in, operands->tensor, info->n_out,
                                                operands->tensor + info->n_in, &decision->device);
  return status ? status : qn_dispatch_check_device(info, decision->device);
}

quern_status qn_dispatch_stand_in(const quern_op *op, const uint8_t *dtypes, qn_decision *decision) {
  if (!(decision->op = qn_cuda->stand_in(op))) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", op->info->name);
  return decision->op->fused ? decision->op->fused->specialise(decision->op, dtypes, &decision->specialised) : QUERN_OK;
}

/* Checks dtypes, and finds out whose kernels run. */
static quern_status resolve(const quern_op *op, const operands *operands, qn_decision *decision, qn_signature *signature) {
  decision->op = op;
  decision->param_dtype = 0;
  if (!op->fused) {
    quern_status status = qn_resolve(op->builtin, operands->dtype, signature);
    if (status) return status;
    decision->param_dtype = signature->param;
    return operands->has_cuda && qn_cuda ? qn_dispatch_stand_in(op, operands->dtype, decision) : QUERN_OK;
  }
  return op->fused->specialise(op, operands->dtype, &decision->specialised);
}

/* How the operands of a call on a CUDA device get there. */
static void note_cuda(const quern_op_info *info, const operands *operands, qn_decision *decision) {
  decision->values = decision->pinned = 0;
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) {
    DLDeviceType type = operands->tensor[k].device.device_type;
    decision->values |= (uint32_t)(type == kDLCPU) << k;
    decision->pinned |= (uint32_t)(type == kDLCUDAHost) << k;
  }
}

#define DLPACK_READ_ONLY 1u

quern_status qn_dispatch_check_flags(const quern_op_info *info, const uint64_t *out_flags) {
  if (!out_flags) return QUERN_OK;
  for (int32_t k = 0; k < info->n_out; k++)
    if (out_flags[k] & DLPACK_READ_ONLY)
      return qn_tensor_fail(QUERN_E_READONLY, info->name, &info->args[info->n_in + k], k, "it is flagged read-only");
  return QUERN_OK;
}

/* Plans the job of a kernel that is compiled for this expression, these dtypes, and the operands as they lie along the inner
 * dimension: broadcast, or contiguous, which what lies otherwise is made in blocks. */
static void plan_compiled(const quern_op *op, const qn_specialised *specialised, const qn_nest *nest, int32_t n_out, qn_job *job,
                          const qn_compiled **compiled) {
  uint8_t contiguous[QN_MAX_OPERANDS], broadcast[QN_MAX_OPERANDS];
  int32_t n_broadcast = 0;
  uint8_t rank = nest->rank >= 2 && nest->n[0] >= QN_ROW_WORTHWHILE && nest->n[0] < QN_CALL_WORTHWHILE ? 2 : 1;
  for (int32_t k = 0; k < nest->n_operands; k++) {
    int is_broadcast = k < nest->n_operands - n_out && nest->rank && nest->stride[k][0] == 0;
    contiguous[k] = QN_CLASS_CONTIGUOUS;
    broadcast[k] = is_broadcast ? QN_CLASS_BROADCAST : QN_CLASS_CONTIGUOUS;
    n_broadcast += is_broadcast;
  }
  const qn_variant wanted[2] = {{.name = "", .dtypes = specialised->dtypes, .classes = contiguous, .rank = rank},
                                {.name = "", .dtypes = specialised->dtypes, .classes = broadcast, .rank = rank}};
  qn_signature signature = {.heavy = specialised->heavy, .n_variants = n_broadcast ? 2 : 1, .variants = wanted};
  for (int32_t k = 0; k < nest->n_operands; k++) signature.value[k] = specialised->dtypes[k];
  qn_job_plan(&signature, specialised->dtypes, n_out, job);
  *compiled = op->fused->compiled(op, specialised, job->variant->classes, rank);
  job->variant = NULL; /* it goes with this function */
  if (!*compiled) return;
  job->variant = &(*compiled)->variant;
  job->kernel = qn_compiled_kernel(*compiled);
  job->isa = (*compiled)->isa;
}

/* The job of an expression: its compiled code's, or, until there is some, the interpreter's. */
static void plan_fused(const quern_op *op, int32_t n_out, qn_decision *decision, qn_job *later) {
  const qn_specialised *specialised = decision->specialised;
  qn_job *job = &decision->job;
  if (!specialised->is_built) {
    plan_compiled(op, specialised, &job->nest, n_out, job, &decision->compiled);
    if (job->kernel) return;
    if (decision->compiled && later) *later = *job;
  }
  qn_job_plan(&specialised->signature, specialised->dtypes, n_out, job);
}

quern_status qn_dispatch_convert(const quern_op_info *info, const qn_decision *decision, const quern_call *call,
                                 qn_params *params) {
  const quern_scalar *given = call ? call->params : NULL;
  int32_t n_given = given ? call->n_params : 0;
  const qn_specialised *specialised = decision->specialised;
  if (!specialised || (specialised->n_slots && !specialised->slots))
    return qn_params_convert(info, decision->param_dtype, n_given, given, params);
  return qn_params_convert_slots(info, specialised->n_slots, specialised->slots, n_given, given, params);
}

quern_status qn_dispatch_check_cpu_kernels(const quern_op_info *info) {
  if (!qn_packs.stream)
    return qn_status_fail(QUERN_E_DEVICE, "%s: its tensors are on the cpu, which no kernels are built for; copy them to a CUDA "
                          "device", info->name);
  if (!qn_job_kernel(qn_packs.stream, NULL))
    return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: this machine is of level %s, and no kernels are built for that or below",
                          info->name, qn_isa_name(qn_isa_machine()));
  return QUERN_OK;
}

/* Not inlined: what it needs on the stack is to be free again when the job runs. */
__attribute__((noinline)) quern_status qn_dispatch_decide(const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                                                          const quern_call *call, int needs_data, qn_decision *decision,
                                                          qn_job *later) {
  const quern_op_info *info = qn_registry_own_info(op);
  qn_job *job = &decision->job;
  operands operands;
  qn_signature signature;
  if (info->n_in == 0 && qn_registry_is_index(op)) return qn_index_decide(op, out, call, needs_data, decision);
  decision->specialised = NULL;
  decision->compiled = NULL;
  quern_status status = read_operands(info, in, out, needs_data, &operands);
  if (status) return status;
  if (!operands.has_cuda && (status = qn_dispatch_check_cpu_kernels(info))) return status;
  if ((status = resolve(op, &operands, decision, &signature))) return status;
  if ((status = check_shapes(info, &operands))) return status;
  if ((status = check_device(info, &operands, decision))) return status;
  if (call && (status = qn_dispatch_check_flags(info, call->out_flags))) return status;
  if (info->n_params || (call && call->n_params)) {
    status = qn_dispatch_convert(info, decision, call, &decision->params);
    if (status) return status;
  }
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) {
    decision->dtypes[k] = operands.dtype[k];
    decision->sizes[k] = operands.tensor[k].size;
    decision->data[k] = operands.tensor[k].data;
  }
  qn_tensor_normalise(operands.ndim, operands.shape, info->n_in, operands.tensor, info->n_out, operands.tensor + info->n_in,
                      &job->nest);
  if (job->nest.n_elements == 0) return QUERN_OK;
  if (operands.has_data) {
    status = qn_tensor_check_overlap(info->name, info->args, &job->nest, info->n_out, decision->sizes);
    if (status) return status;
  }
  if (qn_dispatch_is_cuda(decision)) {
    note_cuda(info, &operands, decision);
    job->n_in = info->n_in;
    job->n_operands = info->n_in + info->n_out;
  } else if (op->fused) {
    plan_fused(op, info->n_out, decision, later);
  } else {
    qn_job_plan(&signature, operands.dtype, info->n_out, job);
  }
  return QUERN_OK;
}

int qn_dispatch_falls_back(int has_builtin, quern_status status, const qn_sentence *kept) {
  int declined = status == QUERN_E_UNSUPPORTED || status == QUERN_E_DTYPE || status == QUERN_E_DEVICE ||
                 status == QUERN_E_LAYOUT || status == QUERN_E_ALIGNMENT;
  if (status && !(declined && has_builtin)) return 0;
  qn_status_restore(kept);
  return declined;
}

/* Not inlined: its stack is for calls on CUDA devices alone. */
__attribute__((noinline)) static quern_status call_cuda(const qn_decision *decision, const quern_call *call) {
  qn_cuda_run run;
  quern_status status = qn_cuda->prepare(decision->op, decision, call, &run);
  if (status) return status;
  return qn_cuda_launch(decision, &run, decision->job.nest.ptr, &decision->params, call);
}

static quern_status call_own(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call) {
  qn_decision decision;
  qn_float_env was = qn_float_env_enter(); /* parameters are rounded in it, too */
  quern_status status = qn_dispatch_decide(op, in, out, call, 1, &decision, NULL);
  if (status == QUERN_OK && decision.job.nest.n_elements) {
    if (qn_dispatch_is_cuda(&decision))
      status = call_cuda(&decision, call);
    else
      qn_engine_run(&decision.job, decision.job.kernel, decision.job.nest.ptr, &decision.params, qn_registry_slices(op));
  }
  qn_float_env_leave(was);
  return status;
}

/* Whether the built-in op is to run instead; else *status is the call's. Not inlined, for its stack. */
__attribute__((noinline)) static int is_declined(const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                                                 const quern_call *call, quern_status *status) {
  const quern_op_def *def = op->registered;
  qn_sentence kept;
  qn_status_keep(&kept);
  *status = def->call(def->self, def->n_in, in, def->n_out, out, call);
  return qn_dispatch_falls_back(op->builtin || op->fused, *status, &kept);
}

quern_status qn_dispatch_call(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call) {
  quern_status status;
  if (op->registered && !is_declined(op, in, out, call, &status)) return status;
  return qn_registry_is_dynamic(op) ? qn_dynamic_call(op, in, out, call) : call_own(op, in, out, call);
}

/* Of the library's own kernels: those on the CPU have no use for one, of others the backend says. */
static quern_status own_workspace(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                                  size_t *bytes) {
  const quern_op_info *info = qn_registry_own_info(op);
  qn_decision decision;
  int has_cuda = 0;
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) {
    const DLTensor *tensor = k < info->n_in ? in[k] : out[k - info->n_in];
    has_cuda |= tensor && tensor->device.device_type == kDLCUDA;
  }
  *bytes = 0;
  if (!has_cuda || !qn_cuda || !(op->builtin || op->fused) || qn_registry_is_dynamic(op)) return QUERN_OK;
  quern_status status = qn_dispatch_decide(op, in, out, call, 0, &decision, NULL);
  if (status || decision.job.nest.n_elements == 0) return status;
  return qn_cuda->workspace(decision.op, &decision, call, bytes);
}

quern_status qn_dispatch_workspace(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                                   size_t *bytes) {
  const quern_op_def *def = op->registered;
  *bytes = 0;
  if (!def) return own_workspace(op, in, out, call, bytes);
  if (!def->workspace) return QUERN_OK;
  qn_sentence kept;
  qn_status_keep(&kept);
  quern_status status = def->workspace(def->self, def->n_in, in, def->n_out, out, call, bytes);
  if (!qn_dispatch_falls_back(op->builtin || op->fused, status, &kept)) return status;
  return own_workspace(op, in, out, call, bytes);
}
