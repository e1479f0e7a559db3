/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_index.c: ops without inputs that compute each element from its position (arange). The caller chooses the dtype T of the
 * output. The first operand of the kernels is the positions (qn_nest.n_positions), which are in no memory: a virtual row-major
 * tensor of 1-byte items with the output's shape, so that reordering, flipping, merging and tiling treat it as the output. The
 * number of elements follows the parameters. Both are in f64 for floats, in i64, modulo 2^64, for integers. */
#include "core/kinds/kind_index.h"

#include <string.h>

#include "core/base/status.h"
#include "core/kinds/elementwise.h"
#include "core/op/decide.h"
#include "core/tensor/device.h"

/* The dtype of positions: one byte, and not a dtype of tensors. ORDER INDEX_DTYPE of gen/targets/cuda/variants.lua */
#define POSITION_DTYPE QN_B8

extern const qn_kind qn_kind_index;

/* dtypes: those of the positions and the output. */
static quern_status resolve_index(const qn_builtin *builtin, const uint8_t *dtypes, qn_signature *signature) {
  const uint8_t dtype = dtypes[1];
  const int is_float = qn_dtype_infos[dtype].kind == QN_KIND_FLOAT;
  if (!(builtin->dtypes >> dtype & 1))
    return qn_tensor_fail(QUERN_E_DTYPE, builtin->info.name, &builtin->info.args[0], 0,
                          "dtype %s, which it does not give (it gives %s); cast the result with astype",
                          qn_dtype_infos[dtype].name, builtin->info.args[0].dtypes);
  qn_signature_begin(signature, 0, 0);
  signature->position = qn_index_packs[is_float];
  signature->param = is_float ? QN_F64 : QN_B64;
  signature->compute_dtypes[0] = signature->compute_dtypes[1] = is_float ? QN_F64 : QN_I64;
  qn_resolve_variants(builtin, signature->compute_dtypes[0], signature);
  return QUERN_OK;
}

static quern_status index_result(const qn_builtin *builtin, const uint8_t *in_dtypes, int32_t k, DLDataType chosen,
                                 uint8_t *dtype) {
  const quern_op_info *info = &builtin->info;
  qn_signature signature;
  (void)in_dtypes;
  quern_status status = qn_tensor_read_dtype(chosen, info->name, &info->args[info->n_in + k], k, dtype);
  return status ? status : resolve_index(builtin, (const uint8_t[]){POSITION_DTYPE, *dtype}, &signature);
}

static void bind_count(const qn_decision *decision, qn_params *params) {
  const int64_t count = decision->nest.n_elements;
  const double as_float = (double)count; /* exact for every count that fits memory */
  uint64_t *slot = &params->slot[decision->called->builtin->info.n_params];
  if (decision->param_dtype == QN_F64)
    memcpy(slot, &as_float, sizeof as_float);
  else
    *slot = (uint64_t)count;
}

/* Reads the output and checks that it can be written: its device, its flags. */
static quern_status read_index_output(const quern_op_info *info, DLTensor *const *out, const quern_call *call, int needs_data,
                                      qn_tensor *tensor, qn_decision *decision) {
  DLDevice device;
  quern_status status = qn_tensor_read(out[0], info->name, info->args, 0, needs_data, tensor);
  if (status) return status;
  if ((status = qn_tensor_check_devices(info->name, info->args, 0, NULL, 1, tensor, &device))) return status;
  if ((status = qn_decide_choose_backend(info, device, decision))) return status;
  if ((status = qn_decide_check_backend(info, decision))) return status;
  return call ? qn_decide_check_flags(info, call->out_flags) : QUERN_OK;
}

/* Not inlined, so that its stack is free when the op runs. */
__attribute__((noinline)) static quern_status decide_index(const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                                                           const quern_call *call, int needs_data, qn_decision *decision) {
  const quern_op_info *info = qn_registry_own_info(op);
  qn_tensor tensor;
  quern_status status = read_index_output(info, out, call, needs_data, &tensor, decision);
  (void)in;
  if (status) return status;
  decision->called = decision->op = op;
  decision->n_slots = info->n_params;
  decision->slots = NULL;
  decision->specialised = NULL;
  decision->signature = &decision->own_signature;
  decision->device_types[0] = decision->device_types[1] = (uint8_t)decision->device.device_type;
  decision->n_in = 1;
  decision->n_operands = 2;
  decision->dtypes[0] = POSITION_DTYPE;
  decision->dtypes[1] = tensor.dtype;
  decision->sizes[0] = 0;
  decision->sizes[1] = tensor.size;
  decision->byte_offset[0] = 0;
  decision->byte_offset[1] = tensor.ref.offset;
  if ((status = resolve_index(op->builtin, decision->dtypes, &decision->own_signature))) return status;
  decision->param_dtype = decision->own_signature.param;
  if (decision->backend && decision->backend->stand_in &&
      (status = decision->backend->stand_in(op, decision->dtypes, decision)))
    return status;

  qn_tensor positions = tensor;
  positions.ref = (qn_ref){NULL, 0};
  positions.strides = NULL;
  positions.size = positions.compact = 1;
  positions.dtype = POSITION_DTYPE;
  qn_tensor_normalise(tensor.ndim, tensor.shape, 1, &positions, 1, &tensor, &decision->nest);
  decision->nest.n_positions = 1;
  decision->nest.has_handles = decision->backend->has_handles;
  if ((status = qn_decide_convert(info, decision, call, &decision->params))) return status;
  if (decision->nest.n_elements == 0) return QUERN_OK;
  return qn_tensor_check_itself(info->name, info->args, &decision->nest, 1, decision->sizes);
}

const qn_kind qn_kind_index = {
    .name = "index", .has_own_entry = 1, .chooses_dtype = 1, .n_positions = 1, .n_own_params = 1,
    .resolve = resolve_index, .result = index_result, .infer = qn_elementwise_infer, .decide = decide_index, .bind = bind_count};
