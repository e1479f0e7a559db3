/* SPDX-License-Identifier: Apache-2.0
 *
 * spec_rows.c: what a spec's ops of the kind row have beyond others: the programs of their stages (gen/kinds/row_packed.lua). */
#include <stdlib.h>

#include "toolchain/spec/spec_forms.h"

/* A reduction of a stage: what it reads, and the state that it makes. */
static void read_reduce(qn_packed *r, qn_spec_program *p) {
  uint8_t from[QN_ROW_MAX_PARTS] = {0};
  if (p->n_reduces == QN_ROW_MAX_REDUCES) r->is_short = 1;
  if (r->is_short) return;
  qn_spec_reducer *reducer = &p->reducers[p->n_reduces];
  reducer->op = qn_packed_string(r);
  reducer->combine = qn_packed_string(r);
  reducer->twin = qn_packed_string(r);
  const uint8_t to = (uint8_t)qn_packed_u32(r);
  const uint32_t flags = qn_packed_u32(r); /* has_empty, takes_none */
  reducer->has_empty = flags & 1;
  reducer->empty = qn_packed_number(r, 8);
  if (qn_packed_list(r, from, QN_ROW_MAX_PARTS) < 1) r->is_short = 1;
  reducer->n_parts = (uint8_t)qn_packed_list(r, reducer->parts, QN_ROW_MAX_PARTS);
  qn_row_reduce *reduce = &p->reduces[p->n_reduces++];
  *reduce = (qn_row_reduce){.from = from[0], .to = to, .takes_none = flags >> 1 & 1};
  memcpy(reduce->others, from + 1, sizeof reduce->others);
}

static void read_stage(qn_packed *r, qn_spec_program *p) {
  const int32_t i = p->program.n_stages;
  if (i == QN_ROW_MAX_STAGES) r->is_short = 1;
  if (r->is_short) return;
  p->program.n_stages++;
  qn_row_stage *stage = &p->stages[i];
  const char *name = qn_packed_string(r);
  stage->is_row = (uint8_t)qn_packed_u32(r);
  stage->is_again = (uint8_t)qn_packed_u32(r);
  stage->n_in = (uint8_t)qn_packed_u32(r);
  const int32_t n = qn_packed_list(r, p->values[i], QN_MAX_OPERANDS), has_kernel = qn_packed_list(r, p->dtypes[i], QN_MAX_OPERANDS);
  if (stage->n_in > n || (has_kernel && has_kernel != n)) r->is_short = 1;
  stage->n_out = (uint8_t)(n - stage->n_in);
  stage->values = p->values[i];
  stage->reduces = &p->reduces[p->n_reduces];
  p->variants[i] = (qn_variant){.name = name, .dtypes = p->dtypes[i]};
  stage->variant = has_kernel ? &p->variants[i] : NULL;
  for (uint32_t k = qn_packed_u32(r); k > 0 && !r->is_short; k--, stage->n_reduces++) read_reduce(r, p);
}

static void read_program(qn_packed *r, qn_spec_program *p) {
  memset(p, 0, sizeof *p);
  const uint8_t dtype = (uint8_t)qn_packed_u32(r);
  uint8_t slots[QN_MAX_PARAMS];
  p->program.has_empty = (uint8_t)qn_packed_u32(r);
  const uint64_t empty = qn_packed_number(r, 8);
  memcpy(&p->program.empty, &empty, sizeof empty);
  p->program.n_slots = (uint8_t)qn_packed_list(r, slots, QN_MAX_PARAMS);
  for (int32_t k = 0; k < p->program.n_slots; k++) p->slots[k] = (qn_slot){slots[k], dtype};
  p->program.n_rows = (uint8_t)qn_packed_list(r, p->row_types, QN_ROW_MAX_VALUES);
  p->program.stages = p->stages;
  p->program.row_types = p->row_types;
  p->program.slots = p->slots;
  for (uint32_t k = qn_packed_u32(r); k > 0 && !r->is_short; k--) read_stage(r, p);
}

/* An op's shape, its programs, and for each dtype which of them, and the result's dtype. The first pass counts the programs. */
static const void *read_rows(qn_packed *r, qn_spec_op *op, int32_t *n_programs) {
  qn_row_op *row = &op->row;
  row->is_reduced = (uint8_t)qn_packed_u32(r);
  row->row_in = qn_packed_u32(r);
  *n_programs = (int32_t)qn_packed_u32(r);
  qn_spec_program *counted = op->programs ? NULL : malloc(sizeof *counted);
  for (int32_t k = 0; k < *n_programs && !r->is_short && (op->programs || counted); k++)
    read_program(r, op->programs ? &op->programs[k] : counted);
  if (!op->programs && !counted) r->is_lacking = 1;
  free(counted);
  for (uint32_t k = qn_packed_u32(r); k > 0 && !r->is_short; k--) {
    const uint32_t dtype = qn_packed_u32(r), at = qn_packed_u32(r), result = qn_packed_u32(r);
    if (dtype >= QN_DTYPE_COUNT || at >= (uint32_t)*n_programs) r->is_short = 1;
    if (r->is_short) return NULL;
    if (op->programs) row->programs[dtype] = &op->programs[at].program;
    row->results[dtype] = (uint8_t)result;
  }
  return row;
}

const qn_spec_form qn_spec_rows = {read_rows};
