/* SPDX-License-Identifier: Apache-2.0
 *
 * spec_states.c: what a spec's ops of the kinds scan and adjoint have beyond others (gen/kinds/scan.lua, adjoint.lua). */
#include "toolchain/spec/spec_forms.h"

/* The programs of an op with states, and the dtypes that they have; parts: of a state */
static void read_states(qn_packed *r, qn_spec_states *states, qn_spec_reducer *reducer) {
  states->lift = qn_packed_string(r);
  states->finish = qn_packed_string(r);
  reducer->n_parts = (uint8_t)qn_packed_list(r, reducer->parts, QN_ROW_MAX_PARTS);
  states->n_in = (uint8_t)qn_packed_list(r, states->in, QN_SPEC_MAX_SCANNED);
  states->n_out = (uint8_t)qn_packed_list(r, states->out, QN_SCAN_MAX_OUTPUTS);
  if (!reducer->n_parts || !states->n_in || !states->n_out) r->is_short = 1;
}

static const void *read_scan(qn_packed *r, qn_spec_op *op, int32_t *n_programs) {
  (void)n_programs;
  op->scan.has_states = (uint8_t)qn_packed_u32(r);
  const uint32_t n_initials = qn_packed_u32(r);
  if (n_initials > QN_SCAN_MAX_OUTPUTS) r->is_short = 1;
  for (uint32_t k = 0; k < n_initials && !r->is_short; k++) {
    const uint64_t bits = qn_packed_number(r, 8);
    memcpy(k ? &op->scan.others[k - 1] : &op->scan.initial, &bits, sizeof bits);
  }
  for (uint32_t k = qn_packed_u32(r); k > 0 && !r->is_short; k--) {
    const uint32_t dtype = qn_packed_u32(r);
    if (dtype >= QN_DTYPE_COUNT) r->is_short = 1;
    if (r->is_short) break;
    qn_spec_reducer *reducer = &op->scans[dtype];
    reducer->n_parts = 1;
    op->scan.scans[dtype].dtype = reducer->parts[0] = (uint8_t)qn_packed_u32(r);
    op->scan.results[dtype] = (uint8_t)qn_packed_u32(r);
    reducer->op = qn_packed_string(r);
    reducer->combine = qn_packed_string(r);
    if (op->scan.has_states) read_states(r, &op->states[dtype], reducer);
  }
  return &op->scan;
}

static const void *read_adjoint(qn_packed *r, qn_spec_op *op, int32_t *n_programs) {
  op->adjoint.before = (int8_t)(int32_t)qn_packed_u32(r);
  op->adjoint.elements = (uint8_t)qn_packed_u32(r);
  read_scan(r, op, n_programs);
  op->adjoint.initial = op->scan.initial;
  return &op->adjoint;
}

const qn_spec_form qn_spec_scan = {read_scan}, qn_spec_adjoint = {read_adjoint};
