/* SPDX-License-Identifier: Apache-2.0
 *
 * derive.c: see derive.h.
 *
 * Forward differentiation: ops work element by element, and the derivative of a value is linear in those of its arguments. So
 * derivatives follow in the order in which the values were made.
 *
 * Calls that reduce are gone through backwards, from the last to the first. An adjoint is the derivative of the result by a value, summed
 * over the results of the row. That of an input of a call is what the backward op gives for the adjoint of the call's result. Between
 * the calls, and from the values of a row that elements read to these elements, derivatives go forwards. gen/graph/derive_rows.lua takes
 * the same steps. */
#include "lang/typing/derive.h"

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
  const uint8_t *is_cut; /* of these values: derivatives do not go through it */
  const char *wrong; /* what has no derivative; NULL: nothing was met */
  qn_derived refusal; /* the result that says so */
  int failed;
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

/* Notes why there is no derivative; the first reason stays. */
static int32_t refuse_as(walk *w, qn_derived refusal, const char *name) {
  if (w->wrong) return -1;
  w->wrong = name;
  w->refusal = refusal;
  return -1;
}

static int32_t refuse(walk *w, const char *name) { return refuse_as(w, QN_DERIVED_NOT, name); }

/* The same of an op without a backward op. */
static int32_t refuse_op(walk *w, const quern_op *op) {
  const qn_op_traits *traits = op->builtin->traits;
  return refuse_as(w, traits && traits->is_backward ? QN_DERIVED_NOT_TWICE : QN_DERIVED_NOT, op->builtin->info.name);
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
  if (primitive_of->role == QN_PRIMITIVE_CONVERT || primitive_of->role == QN_PRIMITIVE_ROUND)
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
  if (!backward) return refuse_op(w, call->op);
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

static int32_t of_scan(walk *w, int32_t value) {
  if (!is_float(w, value) || w->grads[argument(w, value, 0)] < 0) return -1;
  return refuse_as(w, QN_DERIVED_NOT_HERE, value_of(w, value)->op->builtin->info.name);
}

/* ---- Forwards ---- */

/* Marks with -2 the values that `of` depends on, but not through `by` and others that are cut; the others are skipped. */
static void mark_needed(walk *w, int32_t of, int32_t by) {
  for (int32_t i = 0; i <= of; i++) w->grads[i] = -1;
  w->grads[of] = -2;
  for (int32_t i = of; i >= 0; i--) {
    if (w->grads[i] != -2 || i == by || (w->is_cut[i] && i != of)) continue;
    for (int32_t k = 0; k < value_of(w, i)->n_args; k++) w->grads[argument(w, i, k)] = -2;
  }
}

/* The derivative of `of` by `by` times seed; seed -1: it is 1. Reductions and their kernels, behind cuts, have no rule. */
static int32_t forwards(walk *w, int32_t of, int32_t by, int32_t seed) {
  mark_needed(w, of, by);
  for (int32_t i = 0; i <= of && !w->wrong && !w->failed; i++) {
    if (w->grads[i] != -2) continue;
    const uint8_t kind = value_of(w, i)->kind;
    w->grads[i] = i == by                      ? (seed >= 0 ? seed : constant(w, type_of(w, i), 1))
                  : w->is_cut[i] && i != of    ? -1
                  : kind == QN_VALUE_PRIMITIVE ? of_primitive(w, i)
                  : kind == QN_VALUE_OP        ? of_op(w, i)
                  : kind == QN_VALUE_SCAN      ? of_scan(w, i)
                                               : -1;
  }
  return w->grads[of];
}

/* ---- Through calls that reduce ---- */

typedef struct rows {
  walk *w;
  qn_row_calls *calls;
  int32_t n_calls; /* without those that are made here */
  int32_t of, by, axes; /* axes: of the sums, */
  uint32_t argument; /* and which inputs' they are */
  int32_t n_known;
  uint8_t is_row[QN_MAX_VALUES]; /* of values below n_known: whether it is constant along the axes */
  /* Of values up to `of`: */
  uint8_t depends[QN_MAX_VALUES];   /* on `by`, through floats */
  uint8_t is_target[QN_MAX_VALUES]; /* the result of a call, a row value that elements read, or `by` */
  uint8_t has_adjoint[QN_MAX_VALUES];
  int32_t adjoint[QN_MAX_VALUES]; /* -1: it is 1 */
  int16_t call_of[QN_MAX_VALUES]; /* the first call with this result, or -1 */
} rows;

static int is_fine(const rows *r) { return !r->w->wrong && !r->w->failed; }

static int is_row(rows *r, int32_t value) {
  for (; r->n_known <= value; r->n_known++) {
    const qn_value *at = value_of(r->w, r->n_known);
    int row = at->kind != QN_VALUE_INPUT && at->kind != QN_VALUE_INDEX;
    for (int32_t k = 0; k < at->n_args && at->kind != QN_VALUE_REDUCE; k++) row &= r->is_row[argument(r->w, r->n_known, k)];
    r->is_row[r->n_known] = (uint8_t)row;
  }
  return r->is_row[value];
}

/* A value in another type; -1: failed. */
static int32_t cast(rows *r, int32_t value, uint8_t type) {
  if (value < 0) return -1;
  switch (qn_row_cast(r->w->values, &value, type)) {
    case QN_ROW_MADE: return value;
    case QN_ROW_MADE_NO_CAST: return refuse(r->w, "a cast");
    default: r->w->failed = 1; return -1;
  }
}

static int32_t seed_of(rows *r, int32_t adjoint, uint8_t type) {
  return adjoint < 0 ? constant(r->w, type, 1) : cast(r, adjoint, type);
}

static const quern_op *op_named(const walk *w, const char *name) {
  for (int32_t k = 0; k < w->n_ops; k++)
    if (strcmp(w->ops[k]->builtin->info.name, name) == 0) return w->ops[k];
  return NULL;
}

/* The outputs of a call. */
static int make_call(rows *r, qn_row_call *call, int32_t *outputs) {
  const qn_row_op *row = qn_row_op_of(call->op->builtin);
  if (!row || !row->programs[call->dtype]) return refuse(r->w, call->op->builtin->info.name) >= 0;
  const qn_row_made made = qn_row_values(r->w->values, call, outputs);
  if (made == QN_ROW_MADE_NO_CAST) refuse(r->w, "a cast");
  r->w->failed |= made == QN_ROW_MADE_NOT;
  return made == QN_ROW_MADE;
}

/* Notes a call, for second derivatives. */
static void note(rows *r, const qn_row_call *call) {
  if (call->result >= 0 && !qn_row_note(r->calls, call)) r->w->failed = 1;
}

/* The sum over a row of an element's, or a row value's, part of an adjoint. */
static int32_t total(rows *r, int32_t part) {
  const uint8_t type = type_of(r->w, part);
  if (is_row(r, part)) {
    const int32_t count = add(r->w, (qn_value){.kind = QN_VALUE_COUNT, .type = QN_I64, .index = r->axes, .inputs = r->argument}, NULL);
    const int32_t args[2] = {part, cast(r, count, type)};
    return primitive(r->w, "mul", type, 2, args);
  }
  qn_row_call call = {.op = op_named(r->w, "sum"), .axes = r->axes, .argument = r->argument, .dtype = type, .inputs = {part}};
  int32_t outputs[QN_MAX_OUTPUTS];
  if (!call.op) return refuse(r->w, "sum");
  call.result = make_call(r, &call, outputs) ? cast(r, outputs[0], type) : -1;
  note(r, &call);
  return call.result;
}

/* Adds a part to the adjoint of a value. is_element: it is what an element gives. */
static void give(rows *r, int32_t value, int32_t part, int is_element) {
  part = cast(r, part, type_of(r->w, value));
  if (part >= 0 && is_element && is_row(r, value)) part = total(r, part);
  if (part < 0) return;
  r->adjoint[value] = r->has_adjoint[value] ? plus(r->w, r->adjoint[value], part) : part;
  r->has_adjoint[value] = 1;
}

/* What a call gives to the adjoints of its inputs. */
static void through_call(rows *r, qn_row_call call, int32_t adjoint) {
  walk *w = r->w;
  const quern_op_info *info = &call.op->builtin->info;
  const quern_op *backward = info->backward ? op_named(w, info->backward) : NULL;
  const uint8_t type = qn_dtype_infos[call.dtype].compute;
  int32_t outputs[QN_MAX_OUTPUTS];
  if (!backward) {
    refuse_op(w, call.op);
    return;
  }
  const quern_op_info *of_backward = &backward->builtin->info;
  const qn_op_traits *traits = backward->builtin->traits;
  qn_row_call made = call;
  made.op = backward;
  made.dtype = type;
  for (int32_t k = 0; k < of_backward->n_in; k++) {
    const uint8_t read = traits->reads[k];
    made.inputs[k] = read == QN_READS_GRAD ? seed_of(r, adjoint, type) : read == QN_READS_OUTPUT ? call.result : call.inputs[read];
    if (made.inputs[k] < 0) return;
  }
  for (int32_t k = 0; k < info->n_in; k++) {
    int is_known = !r->depends[call.inputs[k]];
    for (int32_t out = 0; out < of_backward->n_out; out++) is_known |= traits->by[out] == k;
    if (is_known) continue;
    refuse_as(w, QN_DERIVED_NOT_BY, info->args[k].name);
    return;
  }
  if (!make_call(r, &made, outputs)) return;
  for (int32_t k = 0; k < of_backward->n_out && is_fine(r); k++) {
    const int32_t input = call.inputs[traits->by[k]];
    made.result = cast(r, outputs[k], type);
    note(r, &made);
    if (r->depends[input]) give(r, input, made.result, 1);
  }
}

/* What a value that is no call's result gives to those that it depends on. */
static void through_elements(rows *r, int32_t value, int32_t adjoint) {
  const int is_element = !is_row(r, value);
  for (int32_t target = 0; target < value && is_fine(r); target++) {
    if (!r->is_target[target]) continue;
    const int32_t seed = seed_of(r, adjoint, type_of(r->w, target));
    const int32_t part = seed < 0 ? -1 : forwards(r->w, value, target, seed);
    if (part >= 0) give(r, target, part, is_element);
  }
}

/* What a value is made of: the inputs of the call that it is the result of, or its own arguments. Returns their number. */
static int32_t sources(const rows *r, int32_t value, const qn_row_call **call) {
  *call = r->call_of[value] < 0 ? NULL : &r->calls->list[r->call_of[value]];
  return *call ? (*call)->op->builtin->info.n_in : value_of(r->w, value)->n_args;
}

static int32_t source(const rows *r, const qn_row_call *call, int32_t value, int32_t k) {
  return call ? call->inputs[k] : argument(r->w, value, k);
}

/* Finds which values depend on `by`, the calls between, and the row values that elements read. Returns whether there are calls. */
static int find_targets(rows *r) {
  const walk *w = r->w;
  uint8_t *const is_reached = r->has_adjoint; /* until there are any */
  int any = 0;
  for (int32_t i = 0; i <= r->of; i++) r->call_of[i] = -1;
  for (int32_t k = r->n_calls - 1; k >= 0; k--)
    if (r->calls->list[k].result <= r->of) r->call_of[r->calls->list[k].result] = (int16_t)k;
  for (int32_t i = 0; i <= r->of; i++) {
    const qn_row_call *call;
    const int32_t n = sources(r, i, &call);
    r->depends[i] = i == r->by;
    for (int32_t k = 0; k < n && is_float(w, i); k++) r->depends[i] |= r->depends[source(r, call, i, k)];
  }
  is_reached[r->of] = 1;
  for (int32_t i = r->of; i >= 0; i--) {
    if (!is_reached[i] || !r->depends[i] || i == r->by) continue;
    const qn_row_call *call;
    const int32_t n = sources(r, i, &call);
    for (int32_t k = 0; k < n; k++) {
      const int32_t arg = source(r, call, i, k);
      is_reached[arg] = 1;
      if (r->depends[arg] && is_row(r, arg) && (call || !is_row(r, i))) r->is_target[arg] = 1;
    }
    if (call) r->is_target[i] = 1, any = 1;
  }
  memset(is_reached, 0, (size_t)r->of + 1);
  r->is_target[r->by] = 1;
  for (int32_t k = r->n_calls - 1; k >= 0; k--)
    if (r->calls->list[k].result <= r->of && r->is_target[r->calls->list[k].result] && any) {
      r->axes = r->calls->list[k].axes;
      r->argument = r->calls->list[k].argument;
    }
  return any;
}

static int32_t through_rows(rows *r) {
  walk *w = r->w;
  if (!find_targets(r)) return forwards(w, r->of, r->by, -1);
  w->is_cut = r->is_target;
  r->adjoint[r->of] = -1;
  r->has_adjoint[r->of] = 1;
  for (int32_t i = r->of; i > r->by && is_fine(r); i--) {
    if (!r->has_adjoint[i]) continue;
    if (r->call_of[i] >= 0) through_call(r, r->calls->list[r->call_of[i]], r->adjoint[i]);
    else through_elements(r, i, r->adjoint[i]);
  }
  return r->has_adjoint[r->by] ? seed_of(r, r->adjoint[r->by], type_of(w, r->by)) : -1;
}

/* ---- The whole ---- */

qn_derived qn_derive(qn_values *values, const quern_op *const *ops, int32_t n_ops, qn_row_calls *calls, int32_t of, int32_t by,
                     int32_t *derivative, const char **name) {
  walk w = {.values = values, .ops = ops, .n_ops = n_ops};
  rows *r = calloc(1, sizeof *r);
  w.grads = malloc(((size_t)of + 1) * sizeof *w.grads);
  if (!w.grads || !r) {
    free(w.grads);
    free(r);
    return QN_DERIVED_FULL;
  }
  w.is_cut = r->is_target; /* none yet */
  r->w = &w;
  r->calls = calls;
  r->n_calls = calls->n;
  r->of = of;
  r->by = by;
  *derivative = through_rows(r);
  *name = w.wrong;
  free(w.grads);
  free(r);
  if (w.failed) return QN_DERIVED_FULL;
  if (w.wrong) return w.refusal;
  return *derivative < 0 ? QN_DERIVED_ZERO : QN_DERIVED;
}
