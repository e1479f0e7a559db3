/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda.c: see cuda.h. */
#include "core/simt/cuda.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "core/tensor/device.h"

static int is_value(const qn_decision *decision, int32_t k) { return decision->device_types[k] == kDLCPU; }

uint32_t qn_cuda_values(const qn_decision *decision) {
  uint32_t values = 0;
  for (int32_t k = 0; k < decision->n_operands; k++) values |= (uint32_t)is_value(decision, k) << k;
  return values;
}

/* ---- Over items ---- */

static void choose_items(const qn_decision *decision, qn_launch_form *form) {
  qn_launch_choose(&decision->nest, decision->sizes, decision->op->info->n_out, qn_cuda_values(decision), form);
}

static const qn_cuda_variant *pick_items(const qn_decision *decision, const qn_cuda_variant *variants, int32_t n_variants,
                                         qn_launch_form *form) {
  return qn_launch_pick(variants, n_variants, decision->dtypes, &decision->nest, decision->sizes, decision->op->info->n_out,
                        qn_cuda_values(decision), form);
}

static void pack_items(const qn_decision *decision, const qn_launch_form *form, qn_launch *launch) {
  qn_launch_pack(&decision->nest, decision->sizes, decision->op->info->n_out, qn_cuda_values(decision), form,
                 decision->n_slots + qn_kind_of(decision->called)->n_own_params, launch);
}

const qn_launcher qn_launcher_items = {choose_items, pick_items, pack_items, NULL, NULL, NULL};

/* ---- Arguments ---- */

quern_status qn_cuda_check_addresses(const qn_decision *decision, const qn_ref *ref) {
  const quern_op_info *info = decision->op->info;
  const int32_t first = decision->nest.n_positions;
  for (int32_t k = first; k < decision->n_operands; k++) {
    if (!decision->sizes[k]) continue; /* in no memory */
    if (is_value(decision, k) && decision->sizes[k] > sizeof(uint64_t))
      return qn_tensor_fail(QUERN_E_DEVICE, info->name, &info->args[k - first], k,
                            "one value of dtype %s on the cpu: its %d bytes do not fit a kernel's argument; copy it to the device",
                            qn_dtype_infos[decision->dtypes[k]].name, decision->sizes[k]);
    if ((uintptr_t)qn_ref_address(ref[k]) % decision->sizes[k] == 0 || is_value(decision, k)) continue;
    return qn_tensor_fail(QUERN_E_ALIGNMENT, info->name, &info->args[k - first], k < info->n_in ? k : k - decision->n_in,
                          "its address is no multiple of %d, the bytes of an item, which a CUDA device cannot read or write",
                          decision->sizes[k]);
  }
  return QUERN_OK;
}

void qn_cuda_arguments(const qn_decision *decision, const qn_cuda_run *run, const qn_ref *ref, const qn_params *params,
                       uint64_t args[QN_LAUNCH_ARGS]) {
  const qn_launch *launch = &run->launch;
  memcpy(args, launch->args, (size_t)launch->n_args * sizeof args[0]);
  memcpy(args + launch->at_params, params->slot, (size_t)(launch->n_args - launch->at_params) * sizeof args[0]);
  for (int32_t k = 0; k < launch->form.n_operands; k++) {
    const char *at = qn_ref_address(ref[k]);
    args[k] = is_value(decision, k) ? 0 : (uint64_t)(uintptr_t)at;
    if (is_value(decision, k)) memcpy(&args[k], at, decision->sizes[k]); /* little-endian, as all hosts of CUDA */
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

/* ---- Launches ---- */

void qn_cuda_cut(const qn_decision *decision, const qn_launch *launch, int32_t items, uint32_t most_shared, const quern_call *call,
                 qn_cuda_pieces *pieces) {
  const qn_launcher *launcher = qn_launcher_of(decision);
  pieces->launcher = launcher;
  pieces->bytes = 0;
  pieces->shared_bytes = launch->shared_bytes;
  if (call && call->workspace && launcher->cut) launcher->cut(decision, launch, items, pieces);
  if (pieces->bytes && pieces->bytes <= call->workspace_bytes) return;
  pieces->bytes = 0;
  pieces->n_launches = 1;
  if (!launcher->keep || !launcher->keep(decision, launch, items, most_shared, pieces)) pieces->launcher = NULL;
}

typedef struct launch_and_pieces {
  qn_launch launch;
  qn_cuda_pieces pieces;
} launch_and_pieces;

size_t qn_cuda_workspace(const qn_decision *decision, const qn_launch_form *form) {
  const qn_launcher *launcher = qn_launcher_of(decision);
  if (!launcher->cut) return 0;
  QN_IN_SCRATCH(launch_and_pieces, of);
  launcher->pack(decision, form, &of->launch);
  of->pieces.bytes = 0;
  launcher->cut(decision, &of->launch, 0, &of->pieces);
  return of->pieces.bytes;
}

uint64_t qn_cuda_piece(const qn_cuda_pieces *pieces, int32_t i, const quern_call *call, const qn_launch *launch, uint64_t *args) {
  uint64_t n_items = launch->n_items;
  const uint64_t workspace = pieces->bytes ? (uint64_t)(uintptr_t)call->workspace : 0;
  if (pieces->launcher) pieces->launcher->set_piece(pieces, i, workspace, launch, args, &n_items);
  return n_items;
}

/* ---- For backends ---- */

quern_status qn_cuda_decide(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                            qn_decision *decision) {
  const qn_kind *kind = qn_kind_of(op);
  decision->nest.n_elements = 0;
  return kind->decide ? kind->decide(op, in, out, call, 0, decision) : QUERN_OK;
}

void qn_cuda_explain_empty(const qn_decision *decision, qn_strbuf *buf) {
  char device[QN_DEVICE_CHARS];
  qn_strbuf_add(buf, "tier: none\nreason: there are no elements\ndevice: %s\n", qn_device_text(decision->device, device));
}

quern_status qn_cuda_keep(quern_status (*prepare)(const qn_decision *decision, const quern_call *call, qn_cuda_run *run),
                          const qn_decision *decision, const quern_call *call, qn_run **run) {
  qn_cuda_run *made = malloc(sizeof *made);
  if (!made) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for a plan", decision->op->info->name);
  quern_status status = prepare(decision, call, made);
  if (status)
    free(made);
  else
    *run = (qn_run *)made;
  return status;
}
