/* SPDX-License-Identifier: Apache-2.0
 *
 * spec_ops.c: see spec_ops.h. */
#include "toolchain/spec/spec_ops.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "core/op/kind.h"
#include "toolchain/spec/spec_forms.h"

/* By the number that begins them: packed_form of gen/kinds. */
static const qn_spec_form *const forms[] = {NULL, &qn_spec_rows, &qn_spec_scan, &qn_spec_adjoint};

/* Generated, ended by NULL: all kinds. */
extern const qn_kind *const qn_kinds[];

/* The kind of a name; NULL: there is none. */
static const qn_kind *read_kind(qn_packed *r) {
  size_t size;
  const char *name = qn_packed_bytes(r, &size);
  for (const qn_kind *const *kind = qn_kinds; *kind && name; kind++)
    if (strlen((*kind)->name) == size && memcmp((*kind)->name, name, size) == 0) return *kind;
  return NULL;
}

/* The lengths of an op's arrays. */
typedef struct op_lengths {
  int32_t args, params, programs, roles;
} op_lengths;

static size_t arrays_bytes(const op_lengths *n) {
  return (size_t)n->args * sizeof(quern_arg_info) + (size_t)n->params * sizeof(quern_param_info) +
         (size_t)n->programs * sizeof(qn_spec_program) + (size_t)n->roles;
}

/* Reads one op. The first pass (`op` NULL) counts its strings and arrays, the second writes them behind the op. */
static void read_op(qn_packed *r, qn_spec_op *op, op_lengths *lengths) {
  int32_t *n_args = &lengths->args, *n_params = &lengths->params;
  qn_spec_op unwanted, *to = op ? op : &unwanted;
  memset(to, 0, sizeof *to);
  to->adjoint.before = -1;
  qn_builtin rule = {.info = {.size = sizeof(quern_op_info), .preferred_alignment = 64}};
  rule.info.name = qn_packed_string(r);
  rule.info.doc = qn_packed_string(r);
  rule.info.formula = qn_packed_string(r);
  rule.info.backward = qn_packed_string(r);
  if (!*rule.info.backward) rule.info.backward = NULL;
  const char *refusal = qn_packed_string(r);
  const uint32_t is_limit = qn_packed_u32(r);
  rule.kind = read_kind(r);
  rule.info.op_class = (int32_t)qn_packed_u32(r);
  rule.promotion = (uint8_t)qn_packed_u32(r);
  rule.dtypes = qn_packed_u32(r);
  rule.own = qn_packed_u32(r);
  rule.bool_in = qn_packed_u32(r);
  rule.whole_in = qn_packed_u32(r);
  rule.heavy = (uint8_t)qn_packed_u32(r);
  rule.info.n_in = (int32_t)qn_packed_u32(r);
  rule.info.n_out = (int32_t)qn_packed_u32(r);
  rule.info.n_params = (int32_t)qn_packed_u32(r);
  rule.info.counts = qn_packed_u32(r);
  const uint8_t fraction_in = (uint8_t)qn_packed_u32(r);
  uint8_t roles[QN_MAX_PARAMS];
  lengths->roles = (int32_t)qn_packed_u32(r);
  if (lengths->roles != 0 && lengths->roles != rule.info.n_params) r->is_short = 1;
  if (rule.info.n_in < 0 || rule.info.n_in >= QN_MAX_OPERANDS || rule.info.n_out < 1 ||
      rule.info.n_out > QN_MAX_OUTPUTS || rule.info.n_params < 0 || rule.info.n_params > QN_MAX_PARAMS ||
      !rule.kind || rule.promotion > QN_PROMOTION_DOUBLE)
    r->is_short = 1;
  if (r->is_short) return;
  for (int32_t k = 0; k < lengths->roles; k++) roles[k] = (uint8_t)qn_packed_u32(r);
  for (int32_t k = 0; k < rule.info.n_out; k++) rule.results[k] = (uint8_t)qn_packed_u32(r);
  qn_op_traits traits = {.refusal = *refusal ? refusal : NULL, .is_limit = (uint8_t)is_limit, .fraction_in = fraction_in,
                         .is_backward = (uint8_t)qn_packed_u32(r)};
  for (int32_t k = 0; traits.is_backward && k < rule.info.n_in; k++) traits.reads[k] = (uint8_t)qn_packed_u32(r);
  for (int32_t k = 0; traits.is_backward && k < rule.info.n_out; k++) traits.by[k] = (uint8_t)qn_packed_u32(r);
  quern_arg_info *args = op ? (quern_arg_info *)(op + 1) : NULL;
  quern_param_info *params = op ? (quern_param_info *)(args + *n_args) : NULL;
  *n_args = rule.info.n_in + rule.info.n_out;
  *n_params = rule.info.n_params;
  for (int32_t k = 0; k < *n_args; k++) {
    quern_arg_info arg;
    arg.name = qn_packed_string(r);
    arg.dtypes = qn_packed_string(r);
    arg.is_output = (int32_t)qn_packed_u32(r);
    arg.may_alias = qn_packed_u32(r);
    if (args) args[k] = arg;
  }
  for (int32_t k = 0; k < *n_params; k++) {
    quern_param_info param = {.name = qn_packed_string(r)};
    param.value.kind = (int32_t)qn_packed_u32(r);
    uint64_t bits = qn_packed_number(r, 8);
    memcpy(&param.value.v, &bits, sizeof bits);
    if (params) params[k] = param;
  }
  to->programs = op && lengths->programs ? (qn_spec_program *)(void *)(params + *n_params) : NULL;
  const uint32_t form = qn_packed_u32(r);
  if (form >= sizeof forms / sizeof forms[0]) r->is_short = 1;
  if (form && !r->is_short) rule.of_kind = forms[form]->read(r, to, &lengths->programs);
  if (!op) return;
  op->n_programs = lengths->programs;
  rule.info.args = args;
  rule.info.params = *n_params ? params : NULL;
  if (lengths->roles) {
    uint8_t *behind = (uint8_t *)(params + *n_params) + (size_t)lengths->programs * sizeof(qn_spec_program);
    rule.info.roles = memcpy(behind, roles, (size_t)lengths->roles);
  }
  op->traits = traits;
  op->rule = rule;
  op->rule.traits = &op->traits;
}

static qn_spec_op *make_op(qn_packed *r) {
  qn_packed counted = *r;
  op_lengths n = {0};
  read_op(&counted, NULL, &n);
  if (counted.is_lacking) return NULL;
  qn_assert(!counted.is_short); /* the module is of this build */
  qn_spec_op *op = malloc(sizeof *op + arrays_bytes(&n) + counted.bytes);
  if (!op) return NULL;
  char *text = (char *)(op + 1) + arrays_bytes(&n);
  r->strings = &text;
  read_op(r, op, &n);
  r->strings = NULL;
  r->bytes = 0;
  return op;
}
_Static_assert(sizeof(qn_spec_op) % _Alignof(quern_arg_info) == 0, "arrays follow it");
_Static_assert(sizeof(quern_arg_info) % _Alignof(quern_param_info) == 0, "arrays follow each other");
_Static_assert(sizeof(quern_param_info) % _Alignof(qn_spec_program) == 0, "arrays follow each other");

qn_spec_op **qn_spec_ops_unpack(const qn_bytes *packed, int32_t *n_ops) {
  qn_packed reader = {.at = (const unsigned char *)packed->data, .end = (const unsigned char *)packed->data + packed->size};
  const int32_t n = (int32_t)qn_packed_u32(&reader);
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
