/* SPDX-License-Identifier: Apache-2.0
 *
 * managed_call.c: quern_op_call on managed tensors. Handles version, flags and ownership of the operands, then makes an
 * ordinary call. */
#include "core/op/registry.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "exchange/managed.h"

/* ---- Consumed operands ---- */

typedef struct operands {
  int32_t n_in, n_out;
  const quern_operand *in, *out;
} operands;

static const quern_operand *operand_at(const operands *all, int32_t k) {
  return k < all->n_in ? &all->in[k] : &all->out[k - all->n_in];
}

/* The managed tensor that an operand hands over; NULL: none. */
static void *consumed(const quern_operand *operand) {
  if (!operand->consume) return NULL;
  if (operand->form == QUERN_OPERAND_LEGACY) return operand->of.legacy;
  return operand->form == QUERN_OPERAND_VERSIONED ? operand->of.versioned : NULL;
}

/* Deletes each consumed tensor once, even if it is several operands. */
static void delete_consumed(const operands *all) {
  for (int32_t k = 0; k < all->n_in + all->n_out; k++) {
    const quern_operand *operand = operand_at(all, k);
    void *managed = consumed(operand);
    int32_t first = 0;
    if (!managed) continue;
    while (consumed(operand_at(all, first)) != managed) first++;
    if (first < k) continue;
    if (operand->form == QUERN_OPERAND_LEGACY)
      qn_managed_delete_legacy(managed);
    else
      qn_managed_delete(managed);
  }
}

/* ---- The call ---- */

/* *tensor: the descriptor for the op: the operand's, or a changed copy in *own. */
static quern_status read_operand(const quern_op_info *info, int32_t k, const quern_operand *operand, DLTensor *own,
                                 DLTensor **tensor) {
  const quern_arg_info *arg = &info->args[k];
  const int32_t index = k < info->n_in ? k : k - info->n_in;
  const DLDataType a_bool = {kDLBool, 8, 1};
  char text[QN_TENSOR_DTYPE_CHARS];
  uint64_t flags = 0;
  /* All members of the union are pointers: this checks each of them. */
  if (operand->form < QUERN_OPERAND_TENSOR || operand->form > QUERN_OPERAND_VERSIONED)
    return qn_tensor_fail(QUERN_E_ARGUMENT, info->name, arg, index, "its form is %d, none of QUERN_OPERAND_*",
                          (int)operand->form);
  if (!operand->of.tensor) return qn_tensor_fail(QUERN_E_ARGUMENT, info->name, arg, index, "the tensor is NULL");
  if (operand->form == QUERN_OPERAND_TENSOR) {
    *tensor = operand->of.tensor;
    return QUERN_OK;
  }
  if (operand->form == QUERN_OPERAND_VERSIONED) {
    const DLPackVersion version = operand->of.versioned->version;
    if (version.major != DLPACK_MAJOR_VERSION)
      return qn_tensor_fail(QUERN_E_VERSION, info->name, arg, index, "it is of DLPack %u.%u, expected version %d",
                            version.major, version.minor, DLPACK_MAJOR_VERSION);
    flags = operand->of.versioned->flags;
    *tensor = &operand->of.versioned->dl_tensor;
  } else {
    *tensor = &operand->of.legacy->dl_tensor;
  }
  const DLDataType dtype = (*tensor)->dtype;
  const int is_legacy = operand->form == QUERN_OPERAND_LEGACY;
  const int is_padded = (flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0;
  if (arg->is_output && flags & DLPACK_FLAG_BITMASK_READ_ONLY)
    return qn_tensor_fail(QUERN_E_READONLY, info->name, arg, index, "it is flagged read-only");
  if (qn_managed_is_old_bool(dtype) && (is_legacy || is_padded)) {
    *own = **tensor;
    own->dtype = a_bool;
    *tensor = own;
  } else if (dtype.bits % 8 && !is_padded) {
    return qn_tensor_fail(QUERN_E_DTYPE, info->name, arg, index, "dtype %s has items of %u bits, packed, expected whole bytes",
                          qn_tensor_dtype_text(dtype, text), (unsigned)dtype.bits);
  }
  return QUERN_OK;
}

static quern_status call_operands(quern_op *op, const operands *all, const quern_call *call) {
  DLTensor own[QN_MAX_OPERANDS], *tensors[QN_MAX_OPERANDS];
  if (!op) return qn_status_fail(QUERN_E_ARGUMENT, "op_call_managed: the op is NULL");
  const quern_op_info *info = op->info;
  if (all->n_in != info->n_in || all->n_out != info->n_out)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: %d inputs and %d outputs given, it has %d and %d", info->name,
                          (int)all->n_in, (int)all->n_out, info->n_in, info->n_out);
  for (int32_t k = 0; k < all->n_in + all->n_out; k++) {
    const quern_status status = read_operand(info, k, operand_at(all, k), &own[k], &tensors[k]);
    if (status) return status;
  }
  return quern_op_call(op, all->n_in, tensors, all->n_out, tensors + all->n_in, call);
}

quern_status quern_op_call_managed(quern_op *op, int32_t n_in, const quern_operand *in, int32_t n_out, const quern_operand *out,
                                   const quern_call *call) {
  /* A NULL array has no operands, whatever its length. */
  const operands all = {in && n_in > 0 ? n_in : 0, out && n_out > 0 ? n_out : 0, in, out};
  const quern_status status = call_operands(op, &all, call);
  delete_consumed(&all);
  return status;
}
