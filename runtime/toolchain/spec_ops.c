/* SPDX-License-Identifier: Apache-2.0
 *
 * spec_ops.c: see spec_ops.h. */
#include "toolchain/spec_ops.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "core/op/kind.h"

/* Reads the format of gen/service.lua: u32 and counted strings, little-endian. Reading past the end sets is_short. */
typedef struct packed_reader {
  const unsigned char *at, *end;
  int is_short, is_lacking; /* the latter: out of memory */
} packed_reader;

static uint64_t read_number(packed_reader *r, size_t n_bytes) {
  uint64_t value = 0;
  if ((size_t)(r->end - r->at) < n_bytes) {
    r->is_short = 1;
    return 0;
  }
  for (size_t i = 0; i < n_bytes; i++) value |= (uint64_t)*r->at++ << 8 * i;
  return value;
}

static uint32_t read_u32(packed_reader *r) { return (uint32_t)read_number(r, 4); }

/* Copies a string to *to and moves *to behind it; to NULL: only adds its size to *bytes. */
static const char *read_string(packed_reader *r, char **to, size_t *bytes) {
  const size_t size = read_u32(r);
  if ((size_t)(r->end - r->at) < size) r->is_short = 1;
  if (r->is_short) return "";
  const unsigned char *text = r->at;
  r->at += size;
  *bytes += size + 1;
  if (!to) return "";
  char *copy = *to;
  memcpy(copy, text, size);
  copy[size] = 0;
  *to += size + 1;
  return copy;
}

/* Generated, ended by NULL: all kinds. */
extern const qn_kind *const qn_kinds[];

/* The kind of a name; NULL: there is none. */
static const qn_kind *read_kind(packed_reader *r) {
  const size_t size = read_u32(r);
  if ((size_t)(r->end - r->at) < size) r->is_short = 1;
  if (r->is_short) return NULL;
  const char *name = (const char *)r->at;
  r->at += size;
  for (const qn_kind *const *kind = qn_kinds; *kind; kind++)
    if (strlen((*kind)->name) == size && memcmp((*kind)->name, name, size) == 0) return *kind;
  return NULL;
}

/* Reads at most `most` small numbers. Returns how many. */
static int32_t read_list(packed_reader *r, uint8_t *list, uint32_t most) {
  const uint32_t n = read_u32(r);
  if (n > most) r->is_short = 1;
  for (uint32_t k = 0; k < n && !r->is_short; k++) list[k] = (uint8_t)read_u32(r);
  return r->is_short ? 0 : (int32_t)n;
}

/* A reduction of a stage: what it reads, and the state that it makes. */
static void read_reduce(packed_reader *r, qn_spec_program *p, char **strings, size_t *bytes) {
  uint8_t from[QN_ROW_MAX_PARTS] = {0};
  if (p->n_reduces == QN_ROW_MAX_REDUCES) r->is_short = 1;
  if (r->is_short) return;
  qn_spec_reducer *reducer = &p->reducers[p->n_reduces];
  reducer->op = read_string(r, strings, bytes);
  reducer->combine = read_string(r, strings, bytes);
  reducer->twin = read_string(r, strings, bytes);
  const uint8_t to = (uint8_t)read_u32(r);
  const uint32_t flags = read_u32(r); /* has_empty, takes_none */
  reducer->has_empty = flags & 1;
  reducer->empty = read_number(r, 8);
  if (read_list(r, from, QN_ROW_MAX_PARTS) < 1) r->is_short = 1;
  reducer->n_parts = (uint8_t)read_list(r, reducer->parts, QN_ROW_MAX_PARTS);
  qn_row_reduce *reduce = &p->reduces[p->n_reduces++];
  *reduce = (qn_row_reduce){.from = from[0], .to = to, .takes_none = flags >> 1 & 1};
  memcpy(reduce->others, from + 1, sizeof reduce->others);
}

static void read_stage(packed_reader *r, qn_spec_program *p, char **strings, size_t *bytes) {
  const int32_t i = p->program.n_stages;
  if (i == QN_ROW_MAX_STAGES) r->is_short = 1;
  if (r->is_short) return;
  p->program.n_stages++;
  qn_row_stage *stage = &p->stages[i];
  const char *name = read_string(r, strings, bytes);
  stage->is_row = (uint8_t)read_u32(r);
  stage->is_again = (uint8_t)read_u32(r);
  stage->n_in = (uint8_t)read_u32(r);
  const int32_t n = read_list(r, p->values[i], QN_MAX_OPERANDS), has_kernel = read_list(r, p->dtypes[i], QN_MAX_OPERANDS);
  if (stage->n_in > n || (has_kernel && has_kernel != n)) r->is_short = 1;
  stage->n_out = (uint8_t)(n - stage->n_in);
  stage->values = p->values[i];
  stage->reduces = &p->reduces[p->n_reduces];
  p->variants[i] = (qn_variant){.name = name, .dtypes = p->dtypes[i]};
  stage->variant = has_kernel ? &p->variants[i] : NULL;
  for (uint32_t k = read_u32(r); k > 0 && !r->is_short; k--, stage->n_reduces++) read_reduce(r, p, strings, bytes);
}

static void read_program(packed_reader *r, qn_spec_program *p, char **strings, size_t *bytes) {
  memset(p, 0, sizeof *p);
  const uint8_t dtype = (uint8_t)read_u32(r);
  uint8_t slots[QN_MAX_PARAMS];
  p->program.has_empty = (uint8_t)read_u32(r);
  const uint64_t empty = read_number(r, 8);
  memcpy(&p->program.empty, &empty, sizeof empty);
  p->program.n_slots = (uint8_t)read_list(r, slots, QN_MAX_PARAMS);
  for (int32_t k = 0; k < p->program.n_slots; k++) p->slots[k] = (qn_slot){slots[k], dtype};
  p->program.n_rows = (uint8_t)read_list(r, p->row_types, QN_ROW_MAX_VALUES);
  p->program.stages = p->stages;
  p->program.row_types = p->row_types;
  p->program.slots = p->slots;
  for (uint32_t k = read_u32(r); k > 0 && !r->is_short; k--) read_stage(r, p, strings, bytes);
}

/* What an op that reduces has beyond others. programs: room for them; NULL: they are counted, and their strings. */
static void read_row(packed_reader *r, qn_row_op *row, qn_spec_program *programs, char **strings, size_t *bytes, int32_t *n_programs) {
  *n_programs = 0;
  *row = (qn_row_op){.is_reduced = 0};
  if (!read_u32(r)) return;
  row->is_reduced = (uint8_t)read_u32(r);
  row->row_in = read_u32(r);
  *n_programs = (int32_t)read_u32(r);
  qn_spec_program *counted = programs ? NULL : malloc(sizeof *counted);
  for (int32_t k = 0; k < *n_programs && !r->is_short && (programs || counted); k++)
    read_program(r, programs ? &programs[k] : counted, strings, bytes);
  if (!programs && !counted) r->is_lacking = 1;
  free(counted);
  for (uint32_t k = read_u32(r); k > 0 && !r->is_short; k--) {
    const uint32_t dtype = read_u32(r), at = read_u32(r), result = read_u32(r);
    if (dtype >= QN_DTYPE_COUNT || at >= (uint32_t)*n_programs) r->is_short = 1;
    if (r->is_short) return;
    if (programs) row->programs[dtype] = &programs[at].program;
    row->results[dtype] = (uint8_t)result;
  }
}

/* The lengths of an op's arrays. */
typedef struct op_lengths {
  int32_t args, params, programs;
} op_lengths;

static size_t arrays_bytes(const op_lengths *n) {
  return (size_t)n->args * sizeof(quern_arg_info) + (size_t)n->params * sizeof(quern_param_info) +
         (size_t)n->programs * sizeof(qn_spec_program);
}

/* The programs of an op with states, and the dtypes that they have; parts: of a state */
static void read_states(packed_reader *r, qn_spec_states *states, qn_spec_reducer *reducer, char **strings, size_t *bytes) {
  states->lift = read_string(r, strings, bytes);
  states->finish = read_string(r, strings, bytes);
  reducer->n_parts = (uint8_t)read_list(r, reducer->parts, QN_ROW_MAX_PARTS);
  states->n_in = (uint8_t)read_list(r, states->in, QN_SPEC_MAX_SCANNED);
  states->n_out = (uint8_t)read_list(r, states->out, QN_SCAN_MAX_OUTPUTS);
  if (!reducer->n_parts || !states->n_in || !states->n_out) r->is_short = 1;
}

/* What an op that scans, or an adjoint, has beyond others. op: NULL: its strings are counted. Returns whether it is one. */
static int read_scan(packed_reader *r, qn_spec_op *op, char **strings, size_t *bytes) {
  qn_spec_op unwanted, *to = op ? op : &unwanted;
  memset(&to->scan, 0, sizeof to->scan);
  memset(to->scans, 0, sizeof to->scans);
  memset(to->states, 0, sizeof to->states);
  to->adjoint = (qn_adjoint_op){.before = -1};
  if (!read_u32(r)) return 0;
  to->scan.has_states = (uint8_t)read_u32(r);
  const uint32_t n_initials = read_u32(r);
  if (n_initials > QN_SCAN_MAX_OUTPUTS) r->is_short = 1;
  for (uint32_t k = 0; k < n_initials && !r->is_short; k++) {
    const uint64_t bits = read_number(r, 8);
    memcpy(k ? &to->scan.others[k - 1] : &to->scan.initial, &bits, sizeof bits);
  }
  to->adjoint.initial = to->scan.initial;
  to->adjoint.before = (int8_t)(int32_t)read_u32(r);
  to->adjoint.elements = (uint8_t)read_u32(r);
  for (uint32_t k = read_u32(r); k > 0 && !r->is_short; k--) {
    const uint32_t dtype = read_u32(r);
    if (dtype >= QN_DTYPE_COUNT) r->is_short = 1;
    if (r->is_short) break;
    qn_spec_reducer *reducer = &to->scans[dtype];
    reducer->n_parts = 1;
    to->scan.scans[dtype].dtype = reducer->parts[0] = (uint8_t)read_u32(r);
    to->scan.results[dtype] = (uint8_t)read_u32(r);
    reducer->op = read_string(r, strings, bytes);
    reducer->combine = read_string(r, strings, bytes);
    if (to->scan.has_states) read_states(r, &to->states[dtype], reducer, strings, bytes);
  }
  return 1;
}

/* Reads one op. The first pass (`op` NULL) counts its strings and arrays, the second writes them behind the op. */
static void read_op(packed_reader *r, qn_spec_op *op, size_t *bytes, op_lengths *lengths) {
  int32_t *n_args = &lengths->args, *n_params = &lengths->params;
  char *text = op ? (char *)(op + 1) + arrays_bytes(lengths) : NULL, **strings = op ? &text : NULL;
  qn_builtin rule = {.info = {.size = sizeof(quern_op_info), .op_class = QUERN_CLASS_BASIC, .preferred_alignment = 64}};
  *bytes = 0;
  rule.info.name = read_string(r, strings, bytes);
  rule.info.doc = read_string(r, strings, bytes);
  rule.info.formula = read_string(r, strings, bytes);
  rule.info.backward = read_string(r, strings, bytes);
  if (!*rule.info.backward) rule.info.backward = NULL;
  const char *refusal = read_string(r, strings, bytes);
  rule.kind = read_kind(r);
  if (read_u32(r)) rule.info.op_class = QUERN_CLASS_REDUCTION;
  rule.promotion = (uint8_t)read_u32(r);
  rule.dtypes = read_u32(r);
  rule.own = read_u32(r);
  rule.bool_in = read_u32(r);
  rule.whole_in = read_u32(r);
  rule.heavy = (uint8_t)read_u32(r);
  rule.info.n_in = (int32_t)read_u32(r);
  rule.info.n_out = (int32_t)read_u32(r);
  rule.info.n_params = (int32_t)read_u32(r);
  rule.info.counts = read_u32(r);
  if (rule.info.n_in < 0 || rule.info.n_in >= QN_MAX_OPERANDS || rule.info.n_out < 1 ||
      rule.info.n_out > QN_MAX_OUTPUTS || rule.info.n_params < 0 || rule.info.n_params > QN_MAX_PARAMS ||
      !rule.kind || rule.promotion > QN_PROMOTION_DOUBLE)
    r->is_short = 1;
  if (r->is_short) return;
  for (int32_t k = 0; k < rule.info.n_out; k++) rule.results[k] = (uint8_t)read_u32(r);
  qn_op_traits traits = {.refusal = *refusal ? refusal : NULL, .is_backward = (uint8_t)read_u32(r)};
  for (int32_t k = 0; traits.is_backward && k < rule.info.n_in; k++) traits.reads[k] = (uint8_t)read_u32(r);
  for (int32_t k = 0; traits.is_backward && k < rule.info.n_out; k++) traits.by[k] = (uint8_t)read_u32(r);
  quern_arg_info *args = op ? (quern_arg_info *)(op + 1) : NULL;
  quern_param_info *params = op ? (quern_param_info *)(args + *n_args) : NULL;
  *n_args = rule.info.n_in + rule.info.n_out;
  *n_params = rule.info.n_params;
  for (int32_t k = 0; k < *n_args; k++) {
    quern_arg_info arg;
    arg.name = read_string(r, strings, bytes);
    arg.dtypes = read_string(r, strings, bytes);
    arg.is_output = (int32_t)read_u32(r);
    arg.may_alias = read_u32(r);
    if (args) args[k] = arg;
  }
  for (int32_t k = 0; k < *n_params; k++) {
    quern_param_info param = {.name = read_string(r, strings, bytes)};
    param.value.kind = (int32_t)read_u32(r);
    uint64_t bits = read_number(r, 8);
    memcpy(&param.value.v, &bits, sizeof bits);
    if (params) params[k] = param;
  }
  qn_row_op row;
  qn_spec_program *programs = op && lengths->programs ? (qn_spec_program *)(void *)(params + *n_params) : NULL;
  read_row(r, &row, programs, strings, bytes, &lengths->programs);
  const int is_scan = read_scan(r, op, strings, bytes);
  if (!op) return;
  op->row = row;
  op->n_programs = lengths->programs;
  op->programs = programs;
  rule.info.args = args;
  rule.info.params = *n_params ? params : NULL;
  op->traits = traits;
  const int is_adjoint = is_scan && !rule.kind->is_scan;
  op->traits.may_come = (uint8_t)(is_scan && rule.kind->is_scan);
  op->rule = rule;
  op->rule.traits = &op->traits;
  op->rule.of_kind = programs ? (const void *)&op->row : is_adjoint ? &op->adjoint : is_scan ? (const void *)&op->scan : NULL;
}

static qn_spec_op *make_op(packed_reader *r) {
  packed_reader counted = *r;
  size_t bytes;
  op_lengths n = {0};
  read_op(&counted, NULL, &bytes, &n);
  if (counted.is_lacking) return NULL;
  qn_assert(!counted.is_short); /* the module is of this build */
  qn_spec_op *op = malloc(sizeof *op + arrays_bytes(&n) + bytes);
  if (op) read_op(r, op, &bytes, &n);
  return op;
}
_Static_assert(sizeof(qn_spec_op) % _Alignof(quern_arg_info) == 0, "arrays follow it");
_Static_assert(sizeof(quern_arg_info) % _Alignof(quern_param_info) == 0, "arrays follow each other");
_Static_assert(sizeof(quern_param_info) % _Alignof(qn_spec_program) == 0, "arrays follow each other");

qn_spec_op **qn_spec_ops_unpack(const qn_bytes *packed, int32_t *n_ops) {
  packed_reader reader = {(const unsigned char *)packed->data, (const unsigned char *)packed->data + packed->size, 0, 0};
  const int32_t n = (int32_t)read_u32(&reader);
  qn_spec_op **ops = malloc(((size_t)n + 1) * sizeof *ops);
  for (int32_t k = 0; ops && k < n; k++) {
    ops[k] = make_op(&reader);
    if (ops[k]) continue;
    while (k-- > 0) free(ops[k]);
    free(ops);
    return NULL;
  }
  *n_ops = n;
  return ops;
}
