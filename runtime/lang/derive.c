/* SPDX-License-Identifier: Apache-2.0
 *
 * derive.c: see derive.h.
 *
* Forward differentiation: ops work element by element, and the derivative of a value is linear in those of its arguments. So
 * derivatives follow in the order in which the values were made. */
#include "lang/derive.h"

#include <stdlib.h>
#include <string.h>

#include "base/op_traits.h"
#include "core/base/status.h"

#define MAX_STACK 8

typedef struct walk {
  qn_values *values;
  const quern_op *const *ops;
  int32_t n_ops;
  int32_t *grads; /* the derivative of each value up to the one asked for; -1: none (it is 0) */
  const char *wrong;
  int failed, is_twice;
} walk;

static const qn_value *value_of(const walk *w, int32_t value) { return &w->values->values[value]; }
static int32_t argument(const walk *w, int32_t value, int32_t k) {
  return w->values->args[value_of(w, value)->first_arg + k];
}
static uint8_t type_of(const walk *w, int32_t value) { return value_of(w, value)->type; }
static int is_float(const walk *w, int32_t value) { return qn_dtype_infos[type_of(w, value)].kind == QN_KIND_FLOAT; }

static int32_t add(walk *w, qn_value like, const int32_t *args) {
  int32_t value = qn_values_add(w->values, &like, args);
  w->failed |= value < 0;
  return value;
}

static int32_t refuse(walk *w, const char *name) {
  if (!w->wrong) w->wrong = name;
  return -1;
}

static int32_t constant(walk *w, uint8_t type, double number) {
  const float narrow = (float)number;
  qn_value like = {.kind = QN_VALUE_CONSTANT, .type = type};
  if (type == QN_F32)
    memcpy(&like.bits, &narrow, sizeof narrow);
  else
    memcpy(&like.bits, &number, sizeof number);
  return add(w, like, NULL);
}

static int32_t primitive(walk *w, const char *op, uint8_t type, int32_t n, const int32_t *args) {
  for (int32_t k = 0; k < n; k++)
    if (args[k] < 0) return -1;
  const qn_primitive *found = qn_primitive_find(op, type, type_of(w, args[n - 1]));
  if (!found) return refuse(w, op);
  return add(w, (qn_value){.kind = QN_VALUE_PRIMITIVE, .type = type, .primitive = found, .n_args = n}, args);
}

/* sum + part; sum -1: there is none yet. */
static int32_t plus(walk *w, int32_t sum, int32_t part) {
  if (sum < 0 || part < 0) return part;
  return primitive(w, "add", type_of(w, part), 2, (int32_t[]){sum, part});
}

/* ---- Primitives ---- */

static int is_word(const char *word, size_t size, const char *other) {
  return strlen(other) == size && memcmp(word, other, size) == 0;
}

/* The value named by a word of the rule of primitive `value`; -1: the word is an operation. */
static int32_t operand(walk *w, const char *word, size_t size, int32_t value, int32_t grad) {
  if (*word == '#') { /* in halves */
    int halves = 0;
    for (size_t i = 1; i < size; i++) halves = halves * 10 + word[i] - '0';
    return constant(w, type_of(w, value), halves / 2.0);
  }
  if (is_word(word, size, "grad")) return grad;
  if (is_word(word, size, "out")) return value;
  return size == 1 && *word >= 'x' && *word <= 'z' ? argument(w, value, *word - 'x') : -1;
}

/* An operation of a rule on the topmost values of the stack; -1: w->failed or w->wrong is set. */
static int32_t operation(walk *w, const char *word, size_t size, uint8_t type, int32_t *stack, int *n_stack) {
  char op[16] = {0};
  qn_assert(size < sizeof op && *n_stack > 0);
  memcpy(op, word, size);
  const uint8_t arg_type = type_of(w, stack[*n_stack - 1]);
  const qn_primitive *found = qn_primitive_find(op, type, arg_type);
  if (!found) found = qn_primitive_find(op, QN_BOOL, arg_type); /* a comparison */
  if (!found) return refuse(w, "a part of a rule");
  qn_assert(found->n_args <= *n_stack);
  *n_stack -= found->n_args;
  return add(w, (qn_value){.kind = QN_VALUE_PRIMITIVE, .type = found->type, .primitive = found, .n_args = found->n_args},
             stack + *n_stack);
}

/* One argument's contribution to the derivative of the primitive `value`, by its rule: words in postfix order. */
static int32_t by_rule(walk *w, const char *rule, int32_t value, int32_t grad) {
  int32_t stack[MAX_STACK];
  int n_stack = 0;
  for (const char *word = rule; *word; word += *word == ' ') {
    const size_t size = strcspn(word, " ");
    int32_t made = operand(w, word, size, value, grad);
    if (made < 0 && *word != '#') made = operation(w, word, size, type_of(w, value), stack, &n_stack);
    if (made < 0) return -1;
    qn_assert(n_stack < MAX_STACK);
    stack[n_stack++] = made;
    word += size;
  }
  return stack[0];
}

static int32_t of_select(walk *w, int32_t value) {
  const uint8_t type = type_of(w, value);
  int32_t args[3] = {argument(w, value, 0)}, any = 0;
  for (int32_t k = 1; k < 3; k++) {
    args[k] = w->grads[argument(w, value, k)];
    any |= args[k] >= 0;
  }
  if (!any) return -1;
  for (int32_t k = 1; k < 3; k++)
    if (args[k] < 0) args[k] = constant(w, type, 0);
  return primitive(w, "select", type, 3, args);
}

static int32_t of_primitive(walk *w, int32_t value) {
  const qn_primitive *primitive_of = value_of(w, value)->primitive;
  const int32_t n = value_of(w, value)->n_args, grad = w->grads[argument(w, value, 0)];
  const uint8_t type = type_of(w, value);
  const qn_derivative_rule *rule = primitive_of->derivative;
  int32_t sum = -1;
  if (primitive_of->role == QN_PRIMITIVE_BITS) return grad < 0 ? -1 : refuse(w, "as_i32 and as_i64");
  if (!is_float(w, value) || primitive_of->role == QN_PRIMITIVE_FROM_BITS) return -1;
  if (primitive_of->role == QN_PRIMITIVE_SELECT) return of_select(w, value);
  if (primitive_of->role == QN_PRIMITIVE_CONVERT)
    return grad < 0 || type_of(w, grad) == type ? grad : primitive(w, "cast", type, 1, &grad);
  for (int32_t k = 0; k < n && !w->wrong && !w->failed; k++) {
    const int32_t of_argument = w->grads[argument(w, value, k)];
    if (of_argument < 0) continue;
    if (!rule || !rule->by[k]) return refuse(w, primitive_of->op);
    if (*rule->by[k]) sum = plus(w, sum, by_rule(w, rule->by[k], value, of_argument));
  }
  return sum;
}

/* ---- Ops ---- */

/* The backward op of an op, and the index of its output for `input`; NULL: there is none. */
static const quern_op *backward_of(const walk *w, const quern_op_info *info, int32_t input, int32_t *which) {
  for (int32_t k = 0; k < w->n_ops && info->backward; k++) {
    const quern_op_info *found = &w->ops[k]->builtin->info;
    if (strcmp(found->name, info->backward) != 0) continue;
    for (*which = 0; *which < found->n_out; ++*which)
      if (w->ops[k]->builtin->traits->by[*which] == input) return w->ops[k];
  }
  return NULL;
}

/* Input k's contribution to the derivative of the op `value`. */
static int32_t by_backward(walk *w, int32_t value, int32_t k, int32_t grad) {
  const qn_value *call = value_of(w, value);
  const quern_op_info *info = &call->op->builtin->info;
  int32_t which;
  const quern_op *backward = backward_of(w, info, k, &which);
  if (!backward) {
    const qn_op_traits *traits = call->op->builtin->traits;
    w->is_twice = traits && traits->is_backward;
    return refuse(w, info->name);
  }
  const quern_op_info *of_backward = &backward->builtin->info;
  int32_t args[QN_MAX_OPERANDS + QN_MAX_PARAMS];
  for (int32_t i = 0; i < of_backward->n_in; i++) {
    const uint8_t read = backward->builtin->traits->reads[i];
    args[i] = read == QN_READS_GRAD ? grad : read == QN_READS_OUTPUT ? value : argument(w, value, read);
  }
  for (int32_t j = 0; j < info->n_params; j++) args[of_backward->n_in + j] = argument(w, value, info->n_in + j);
  return add(w, (qn_value){.kind = QN_VALUE_OP, .type = call->type, .kernel_dtype = qn_dtype_infos[call->kernel_dtype].compute, .index = which,
                           .op = backward, .n_args = of_backward->n_in, .n_params = info->n_params}, args);
}

static int32_t of_op(walk *w, int32_t value) {
  const int32_t n = value_of(w, value)->n_args;
  int32_t sum = -1;
  if (!is_float(w, value)) return -1;
  for (int32_t k = 0; k < n && !w->wrong && !w->failed; k++) {
    const int32_t grad = w->grads[argument(w, value, k)];
    if (grad >= 0) sum = plus(w, sum, by_backward(w, value, k, grad));
  }
  return sum;
}

/* A reduction, or a kernel of an op that reduces: no rule here. */
static int32_t of_row(walk *w, int32_t value) {
  for (int32_t k = 0; k < value_of(w, value)->n_args; k++)
    if (w->grads[argument(w, value, k)] >= 0) w->wrong = "an expression that reduces";
  return -1;
}

/* ---- The whole ---- */

/* Marks with -2 the values that `of` depends on; the others are skipped. */
static void mark_needed(walk *w, int32_t of) {
  for (int32_t i = 0; i <= of; i++) w->grads[i] = -1;
  w->grads[of] = -2;
  for (int32_t i = of; i >= 0; i--) {
    if (w->grads[i] != -2) continue;
    for (int32_t k = 0; k < value_of(w, i)->n_args; k++) w->grads[argument(w, i, k)] = -2;
  }
}

qn_derived qn_derive(qn_values *values, const quern_op *const *ops, int32_t n_ops, int32_t of, int32_t by, int32_t *derivative,
                     const char **name) {
  walk w = {.values = values, .ops = ops, .n_ops = n_ops};
  w.grads = malloc(((size_t)of + 1) * sizeof *w.grads);
  if (!w.grads) return QN_DERIVED_FULL;
  mark_needed(&w, of);
  for (int32_t i = 0; i <= of && !w.wrong && !w.failed; i++) {
    if (w.grads[i] != -2) continue;
    const uint8_t kind = value_of(&w, i)->kind;
    w.grads[i] = i == by                      ? constant(&w, type_of(&w, i), 1)
                 : kind == QN_VALUE_PRIMITIVE ? of_primitive(&w, i)
                 : kind == QN_VALUE_OP        ? of_op(&w, i)
                 : kind == QN_VALUE_REDUCE || kind == QN_VALUE_KERNEL ? of_row(&w, i)
                                              : -1;
  }
  *derivative = w.grads[of];
  *name = w.wrong;
  free(w.grads);
  if (w.failed) return QN_DERIVED_FULL;
  if (w.wrong) return w.is_twice ? QN_DERIVED_NOT_TWICE : QN_DERIVED_NOT;
  return *derivative < 0 ? QN_DERIVED_ZERO : QN_DERIVED;
}
