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
  int is_short;
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

/* Reads one op. The first pass (`op` NULL) counts its strings and arrays, the second writes them behind the op. */
static void read_op(packed_reader *r, qn_spec_op *op, size_t *bytes, int32_t *n_args, int32_t *n_params) {
  const size_t arrays = (size_t)*n_args * sizeof(quern_arg_info) + (size_t)*n_params * sizeof(quern_param_info);
  char *text = op ? (char *)(op + 1) + arrays : NULL, **strings = op ? &text : NULL;
  qn_builtin rule = {.info = {.size = sizeof(quern_op_info), .op_class = QUERN_CLASS_BASIC, .preferred_alignment = 64}};
  *bytes = 0;
  rule.info.name = read_string(r, strings, bytes);
  rule.info.doc = read_string(r, strings, bytes);
  rule.info.formula = read_string(r, strings, bytes);
  rule.info.backward = read_string(r, strings, bytes);
  if (!*rule.info.backward) rule.info.backward = NULL;
  rule.kind = read_kind(r);
  rule.promotion = (uint8_t)read_u32(r);
  rule.dtypes = read_u32(r);
  rule.own = read_u32(r);
  rule.bool_in = read_u32(r);
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
  qn_op_traits traits = {.is_backward = (uint8_t)read_u32(r)};
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
  if (!op) return;
  rule.info.args = args;
  rule.info.params = *n_params ? params : NULL;
  op->traits = traits;
  op->rule = rule;
  op->rule.traits = &op->traits;
}

static qn_spec_op *make_op(packed_reader *r) {
  packed_reader counted = *r;
  size_t bytes;
  int32_t n_args = 0, n_params = 0;
  read_op(&counted, NULL, &bytes, &n_args, &n_params);
  qn_assert(!counted.is_short); /* the module is of this build */
  const size_t arrays = (size_t)n_args * sizeof(quern_arg_info) + (size_t)n_params * sizeof(quern_param_info);
  qn_spec_op *op = malloc(sizeof *op + arrays + bytes);
  if (op) read_op(r, op, &bytes, &n_args, &n_params);
  return op;
}
_Static_assert(sizeof(qn_spec_op) % _Alignof(quern_arg_info) == 0, "arrays follow it");
_Static_assert(sizeof(quern_arg_info) % _Alignof(quern_param_info) == 0, "arrays follow each other");

qn_spec_op **qn_spec_ops_unpack(const qn_bytes *packed, int32_t *n_ops) {
  packed_reader reader = {(const unsigned char *)packed->data, (const unsigned char *)packed->data + packed->size, 0};
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
