/* SPDX-License-Identifier: Apache-2.0
 *
 * typing_values.c: the values that typing makes, of weak operands too; errors at the instruction's place. See typing_parts.h. */
#include <string.h>

#include "lang/typing/typing_parts.h"
#include "lang/typing/weak.h"

const qn_source *qn_typing_source(const qn_typing *t, qn_source *source) {
  const qn_expression *e = t->expression;
  *source = (qn_source){.text = e->text, .size = (uint32_t)strlen(e->text), .name = e->name, .name_size = (uint32_t)strlen(e->name)};
  return source;
}

int qn_typing_fail_common(qn_typing *t, uint8_t a, uint8_t b) {
  return QN_TYPING_FAIL(t, "%s with %s has no common dtype: cast one, (i64)x or (f64)x", qn_typing_dtype_name(a), qn_typing_dtype_name(b));
}

int qn_typing_fail_no_dtype(qn_typing *t, const qn_typing_operand *x) {
  if (x->kind == QN_NUMBER) return QN_TYPING_FAIL(t, "this has no dtype: literals take the other operand's; write a cast, (f32)1");
  return QN_TYPING_FAIL(t, "this has no dtype: parameters take the other operand's; write a cast, (f32)(...)");
}

/* ---- Values: their number, or -1 with the status set ---- */

int32_t qn_typing_no_room(qn_typing *t) {
  if (t->values.exceeded) return QN_TYPING_FAIL_AS(t, QUERN_E_LIMIT, "more than %d values", QN_MAX_VALUES) - 1;
  t->status = qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", t->expression->name);
  return -1;
}

int32_t qn_typing_add(qn_typing *t, qn_value like, const int32_t *args) {
  int32_t value = qn_values_add(&t->values, &like, args);
  return value >= 0 ? value : qn_typing_no_room(t);
}

int32_t qn_typing_constant(qn_typing *t, uint8_t type, uint64_t bits) {
  return qn_typing_add(t, (qn_value){.kind = QN_VALUE_CONSTANT, .type = type, .bits = bits}, NULL);
}

int32_t qn_typing_primitive(qn_typing *t, const char *op, uint8_t type, int32_t n, const int32_t *args) {
  for (int32_t k = 0; k < n; k++)
    if (args[k] < 0) return -1;
  const qn_primitive *found = qn_primitive_find(op, type, qn_typing_type_of(t, args[n - 1]));
  if (!found)
    return QN_TYPING_FAIL_AS(t, QUERN_E_UNSUPPORTED, "this build has no kernel for %s of %s", op,
                   qn_typing_dtype_name(qn_typing_type_of(t, args[n - 1]))) - 1;
  return qn_typing_add(t, (qn_value){.kind = QN_VALUE_PRIMITIVE, .type = type, .primitive = found, .n_args = n}, args);
}

int32_t qn_typing_unary(qn_typing *t, const char *op, uint8_t type, int32_t a) { return qn_typing_primitive(t, op, type, 1, (int32_t[]){a}); }
int32_t qn_typing_binary(qn_typing *t, const char *op, uint8_t type, int32_t a, int32_t b) {
  return qn_typing_primitive(t, op, type, 2, (int32_t[]){a, b});
}

int32_t qn_typing_converted(qn_typing *t, int32_t value, uint8_t type) {
  if (value < 0 || qn_typing_type_of(t, value) == type) return value;
  return qn_typing_unary(t, "cast", type, value);
}

int32_t qn_typing_rounded(qn_typing *t, int32_t value, uint8_t dtype) {
  const uint8_t from = qn_typing_type_of(t, value);
  const qn_primitive *round = qn_primitive_round(dtype, from);
  if (!round)
    return QN_TYPING_FAIL_AS(t, QUERN_E_UNSUPPORTED, "this build has no kernel for %s of %s", qn_typing_dtype_name(dtype), qn_typing_dtype_name(from)) - 1;
  return qn_typing_add(t, (qn_value){.kind = QN_VALUE_PRIMITIVE, .type = round->type, .primitive = round, .n_args = 1}, &value);
}

/* ---- Weak operands become values ---- */

static int32_t qn_typing_number_value(qn_typing *t, qn_number number, uint8_t type) {
  uint64_t bits;
  switch (qn_weak_constant(number, type, &bits)) {
    case QN_WEAK_FLOAT: return QN_TYPING_NO_VALUE(t, "a float literal where %s is expected: write a cast", qn_typing_dtype_name(type));
    case QN_WEAK_TOO_BIG: return QN_TYPING_NO_VALUE(t, "%lld does not fit %s", (long long)number.v.i, qn_typing_dtype_name(type));
    case QN_WEAK_NO_BOOL: return QN_TYPING_NO_VALUE(t, "a number that is neither 0 nor 1 is no bool");
    case QN_WEAK_COMPLEX: return QN_TYPING_NO_VALUE(t, "a number where %s is expected: give it as an operand", qn_typing_dtype_name(type));
    default: return qn_typing_constant(t, type, bits);
  }
}

static int32_t branch_value(qn_typing *t, const qn_typing_branch *at, uint8_t type) {
  if (at->param >= 0) return qn_typing_add(t, (qn_value){.kind = QN_VALUE_PARAM, .type = type, .index = at->param}, NULL);
  if (!at->op) return qn_typing_number_value(t, at->number, type);
  if (type == QN_BOOL) return QN_TYPING_NO_VALUE(t, "arithmetic with a parameter where bool is expected: write a comparison");
  int32_t args[2] = {0};
  for (int32_t k = 0; k < at->n_args; k++) args[k] = t->branches[at->args[k]].value;
  return qn_typing_primitive(t, at->op, type, at->n_args, args);
}

int32_t qn_typing_weak_value(qn_typing *t, const qn_typing_operand *x, uint8_t type) {
  if (x->kind == QN_NUMBER) return qn_typing_number_value(t, x->number, type);
  if (qn_typing_kind_of(type) == QN_KIND_COMPLEX)
    return QN_TYPING_NO_VALUE(t, "a parameter where %s is expected: give it as an operand", qn_typing_dtype_name(type));
  if (x->is_float && qn_typing_kind_of(type) != QN_KIND_FLOAT)
    return QN_TYPING_NO_VALUE(t, "a float where %s is expected: write a cast", qn_typing_dtype_name(type));
  for (int32_t i = x->first; i <= x->value; i++) {
    t->branches[i].value = branch_value(t, &t->branches[i], type);
    if (t->branches[i].value < 0) return -1;
  }
  return t->branches[x->value].value;
}

int32_t qn_typing_promoted(qn_typing *t, const qn_typing_operand *x, uint8_t dtype) {
  return qn_typing_is_weak(x) ? qn_typing_weak_value(t, x, qn_typing_compute_of(dtype)) : qn_typing_converted(t, x->value, qn_typing_compute_of(dtype));
}

qn_typing_operand qn_typing_tree_leaf(qn_typing *t, qn_typing_branch leaf) {
  t->branches[t->n_branches] = leaf;
  return (qn_typing_operand){.kind = QN_TREE, .value = t->n_branches, .first = t->n_branches++};
}

qn_typing_operand qn_typing_tree_of(qn_typing *t, const char *op, int32_t n, const qn_typing_operand *args) {
  qn_typing_branch root = {.op = op, .n_args = n, .param = -1};
  qn_typing_operand made = {.kind = QN_TREE, .first = INT32_MAX};
  for (int32_t k = 0; k < n; k++) {
    qn_typing_operand leaf = args[k];
    if (leaf.kind == QN_NUMBER) leaf = qn_typing_tree_leaf(t, (qn_typing_branch){.param = -1, .number = leaf.number});
    root.args[k] = leaf.value;
    if (leaf.first < made.first) made.first = leaf.first;
    made.is_float |= args[k].is_float;
  }
  made.value = t->n_branches;
  t->branches[t->n_branches++] = root;
  return made;
}

int qn_typing_gives(int32_t value, uint8_t dtype, qn_typing_operand *made) {
  *made = qn_typing_strong(value, dtype);
  return value >= 0;
}

int qn_typing_number_made(qn_typing *t, const char *wrong, qn_number number, qn_typing_operand *made) {
  *made = (qn_typing_operand){.kind = QN_NUMBER, .is_float = (uint8_t)number.is_float, .number = number};
  return wrong ? QN_TYPING_FAIL(t, "%s", wrong) : 1;
}
