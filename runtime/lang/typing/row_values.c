/* SPDX-License-Identifier: Apache-2.0
 *
 * row_values.c: see row_values.h. */
#include "lang/typing/row_values.h"

#include <stdlib.h>
#include <string.h>

int qn_row_note(qn_row_calls *calls, const qn_row_call *call) {
  if (calls->n == calls->room) {
    const int32_t room = calls->room ? 2 * calls->room : 8;
    qn_row_call *list = realloc(calls->list, (size_t)room * sizeof *list);
    if (!list) return 0;
    calls->list = list;
    calls->room = room;
  }
  calls->list[calls->n++] = *call;
  return 1;
}

typedef struct row_values {
  int32_t input[QN_MAX_OPERANDS], index, output[QN_MAX_OUTPUTS], row[QN_ROW_MAX_VALUES], temp[QN_ROW_MAX_VALUES];
} row_values;

static int32_t *row_value(row_values *values, uint8_t code) {
  if (code >= QN_ROW_TEMP) return &values->temp[code - QN_ROW_TEMP];
  if (code >= QN_ROW_VALUE) return &values->row[code - QN_ROW_VALUE];
  if (code >= QN_ROW_OUTPUT) return &values->output[code - QN_ROW_OUTPUT];
  return code == QN_ROW_INDEX ? &values->index : &values->input[code];
}

qn_row_made qn_row_cast(qn_values *all, int32_t *value, uint8_t type) {
  const uint8_t from = all->values[*value].type;
  if (from == type) return QN_ROW_MADE;
  const qn_primitive *cast = qn_primitive_find("cast", type, from);
  if (!cast) return QN_ROW_MADE_NO_CAST;
  *value = qn_values_add(all, &(qn_value){.kind = QN_VALUE_PRIMITIVE, .type = type, .primitive = cast, .n_args = 1}, value);
  return *value < 0 ? QN_ROW_MADE_NOT : QN_ROW_MADE;
}

enum { HAS_INDEX = 1, BEHIND_NO_REDUCTION = 2 };

/* The inputs that values depend on, as bits; flags BEHIND_NO_REDUCTION: other than by a reduction. HAS_INDEX is set where they depend
 * on the place of the element. */
static uint32_t inputs_of(const qn_values *all, int32_t n, const int32_t *roots, int *flags) {
  uint8_t is_needed[QN_MAX_VALUES];
  uint32_t inputs = 0;
  memset(is_needed, 0, (size_t)all->n_values);
  for (int32_t k = 0; k < n; k++) is_needed[roots[k]] = 1;
  for (int32_t i = all->n_values - 1; i >= 0; i--) {
    const qn_value *value = &all->values[i];
    if (!is_needed[i]) continue;
    if (value->kind == QN_VALUE_INPUT) inputs |= 1u << value->index;
    if (value->kind == QN_VALUE_REDUCE && *flags & BEHIND_NO_REDUCTION) continue;
    if (value->kind == QN_VALUE_INDEX) *flags |= HAS_INDEX;
    for (int32_t k = 0; k < value->n_args; k++) is_needed[all->args[value->first_arg + k]] = 1;
  }
  return inputs;
}

/* The results of a stage's kernel. params: the values of the op's own parameters, then of the number of elements. */
static int make_stage(qn_values *all, const quern_op *op, const qn_row_stage *stage, int32_t n_params, const int32_t *params, row_values *values) {
  int32_t args[QN_MAX_OPERANDS + QN_MAX_PARAMS + 1];
  if (!stage->variant) {
    if (stage->n_out) *row_value(values, stage->values[stage->n_in]) = *row_value(values, stage->values[0]);
    return 1;
  }
  for (int32_t k = 0; k < stage->n_in; k++) args[k] = *row_value(values, stage->values[k]);
  for (int32_t k = 0; k < n_params; k++) args[stage->n_in + k] = params[k];
  for (int32_t k = 0; k < stage->n_out; k++) {
    const qn_value call = {.kind = QN_VALUE_KERNEL, .type = stage->variant->dtypes[stage->n_in + k], .index = k,
                           .bits = stage->n_out, .op = op, .kernel = stage->variant, .n_args = stage->n_in, .n_params = n_params};
    const int32_t value = qn_values_add(all, &call, args);
    if (value < 0) return 0;
    *row_value(values, stage->values[stage->n_in + k]) = value;
  }
  return 1;
}

/* A value of a row as one of elements, the same at each place, so that it can be reduced; -1: out of memory. */
static int32_t spread(qn_values *all, int32_t index, int32_t value) {
  const uint8_t type = all->values[value].type;
  const qn_primitive *ge = qn_primitive_find("ge", QN_BOOL, QN_I64), *select = qn_primitive_find("select", type, type);
  const int32_t zero = qn_values_add(all, &(qn_value){.kind = QN_VALUE_CONSTANT, .type = QN_I64}, NULL);
  if (zero < 0 || !ge || !select) return -1;
  const qn_value test = {.kind = QN_VALUE_PRIMITIVE, .type = QN_BOOL, .primitive = ge, .n_args = 2};
  const int32_t is_there = qn_values_add(all, &test, (int32_t[]){index, zero});
  const int32_t none = is_there < 0 ? -1 : qn_values_add(all, &(qn_value){.kind = QN_VALUE_CONSTANT, .type = type}, NULL);
  const qn_value choice = {.kind = QN_VALUE_PRIMITIVE, .type = type, .primitive = select, .n_args = 3};
  return none < 0 ? -1 : qn_values_add(all, &choice, (int32_t[]){is_there, value, none});
}

/* Whether a value is constant along the axes. */
static int is_row_value(const qn_values *all, int32_t value) {
  int flags = BEHIND_NO_REDUCTION;
  return !inputs_of(all, 1, &value, &flags) && !(flags & HAS_INDEX);
}

/* The results of a reduction, one for each part of its state. A derivative reduces what may be constant along the axes, as 1 is. */
static qn_row_made make_reduction(qn_values *all, const qn_row_reduce *reduce, qn_row_call *call, int is_derived, uint32_t inputs,
                                  row_values *values) {
  const int32_t n = reduce->by->n_parts;
  int32_t args[QN_ROW_MAX_PARTS];
  int flags = 0;
  for (int32_t p = 0; p < n; p++) {
    args[p] = *row_value(values, qn_row_from(reduce, p));
    const qn_row_made made = qn_row_cast(all, &args[p], qn_reducer_dtype(reduce->by, p));
    if (made != QN_ROW_MADE) return made;
    if (is_derived && n == 1 && is_row_value(all, args[p]) && (args[p] = spread(all, values->index, args[p])) < 0) return QN_ROW_MADE_NOT;
  }
  /* What places are compared with may have extent 1: there are as many places as the call has elements. */
  const uint32_t read = inputs_of(all, n, args, &flags);
  uint32_t elements = is_derived ? ~0u : 0;
  if (!is_derived && flags & HAS_INDEX && inputs & ~read)
    elements = inputs_of(all, call->op->builtin->info.n_in, call->inputs, &(int){BEHIND_NO_REDUCTION});
  if (!call->argument) call->argument = elements ? inputs : read;
  for (int32_t p = 0; p < n; p++) {
    const qn_value result = {.kind = QN_VALUE_REDUCE, .type = qn_reducer_dtype(reduce->by, p), .index = call->axes, .bits = (uint64_t)p,
                             .takes_none = reduce->takes_none, .reducer = reduce->by, .n_args = n,
                             .inputs = elements ? call->argument : 0, .elements = elements};
    if ((values->row[reduce->to + p] = qn_values_add(all, &result, args)) < 0) return QN_ROW_MADE_NOT;
  }
  return QN_ROW_MADE;
}

/* The values of a call. Its number of elements is that along axes of `inputs`. */
static qn_row_made make_all(qn_values *all, qn_row_call *call, int is_derived, uint32_t inputs, int32_t *outputs) {
  const qn_row_program *program = qn_row_op_of(call->op->builtin)->programs[call->dtype];
  const quern_op_info *info = &call->op->builtin->info;
  const qn_value number = {.kind = QN_VALUE_COUNT, .type = QN_I64, .index = call->axes, .inputs = inputs};
  const int32_t count = qn_values_add(all, &number, NULL);
  row_values values;
  for (int32_t k = 0; k < info->n_in; k++) values.input[k] = call->inputs[k];
  values.index = count < 0 ? -1 : qn_values_add(all, &(qn_value){.kind = QN_VALUE_INDEX, .type = QN_I64}, NULL);
  if (values.index < 0) return QN_ROW_MADE_NOT;
  call->params[program->n_slots] = count;
  for (int32_t i = 0; i < program->n_stages; i++) {
    const qn_row_stage *stage = &program->stages[i];
    if (stage->is_again) continue; /* the stage before has its results */
    if (!make_stage(all, call->op, stage, program->n_slots + 1, call->params, &values)) return QN_ROW_MADE_NOT;
    for (int32_t r = 0; r < stage->n_reduces; r++) {
      const qn_row_made made = make_reduction(all, &stage->reduces[r], call, is_derived, inputs, &values);
      if (made != QN_ROW_MADE) return made;
    }
  }
  for (int32_t k = 0; k < info->n_out; k++) outputs[k] = values.output[k];
  return QN_ROW_MADE;
}

qn_row_made qn_row_values(qn_values *all, qn_row_call *call, int32_t *outputs) {
  const int is_derived = call->argument != 0;
  const uint32_t inputs = is_derived ? call->argument : inputs_of(all, call->op->builtin->info.n_in, call->inputs, &(int){0});
  qn_row_made made = make_all(all, call, is_derived, inputs, outputs);
  if (!call->argument) call->argument = inputs;
  if (made == QN_ROW_MADE && call->argument != inputs) made = make_all(all, call, 0, call->argument, outputs);
  return made;
}
