/* SPDX-License-Identifier: Apache-2.0
 *
 * row_stages.c: see row_stages.h. The level of a value is the number of reductions below it. Stage p computes the arguments of the
 * reductions of level p; then come the outputs, those of rows and those of elements. A stage computes again what it needs of the
 * elements of others; the results of reductions are its inputs, and what follows from these alone is computed once a row. */
#include "run/stage/row_stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "core/row/scan_op.h"
#include "run/stage/stage_text.h"

#define MAX_STAGES (QN_ROW_MAX_STAGES - 2)
#define MAX_AXES (2 * QN_ROW_MAX_REDUCES)
#define MAX_SCANS (QN_ROW_MAX_VALUES / 2)
#define STAGE_BYTES 16 /* the most bytes of one accumulator of each reduction of a stage, together */

/* A stage's code and the memory that it points to. */
typedef struct stage_memory {
  qn_stage_code code;
  qn_variant variant; /* only its dtypes */
  uint8_t values[QN_MAX_OPERANDS];
  qn_row_reduce reduces[QN_ROW_MAX_REDUCES];
  qn_row_scan scan;
  uint8_t n_picks, pick[QN_ROW_MAX_VALUES][2]; /* of each value that it computes: what row_pick.h takes it from; none, unless all are picks */
} stage_memory;

/* A stage of the program that picks. */
typedef struct picked_memory {
  uint8_t values[3];
  qn_row_reduce reduces[QN_ROW_MAX_REDUCES]; /* those of inputs as they lie */
} picked_memory;

struct qn_row_stages {
  qn_row_program program, picking;
  int32_t n_reductions;
  qn_row_reduction reduction[MAX_AXES]; /* reductions; and numbers of elements, which remain where a derivative reduces nothing */
  uint8_t row_types[QN_ROW_MAX_VALUES];
  qn_row_stage stage[QN_ROW_MAX_STAGES];
  stage_memory memory[QN_ROW_MAX_STAGES];
  qn_row_stage picked[QN_ROW_MAX_STAGES]; /* of the program `picking` */
  picked_memory picked_memory[QN_ROW_MAX_STAGES];
};

typedef struct builder {
  const qn_expression *expression;
  const qn_typed *typed;
  const qn_stage_maker *by;
  qn_row_stages *made;
  int32_t n_reductions;
  uint8_t *level, *is_row; /* [n_values] */
  int16_t *row_of;         /* the number of a reduction's result, or -1 */
  int16_t *temp_of;        /* the temporary with a value, or -1 */
  int32_t *number;         /* of a value in the stage that is being made */
  /* Of each scan, in order: its value, and the stage that runs it. The temporary of scan k is the last but k. */
  int32_t n_scans, scanned[QN_ROW_MAX_STAGES], scan_stage[QN_ROW_MAX_STAGES];
} builder;

static const qn_value *value_at(const builder *b, int32_t i) { return &b->typed->values[i]; }

static int32_t arg_at(const builder *b, const qn_value *value, int32_t k) { return b->typed->args[value->first_arg + k]; }

static quern_status too_many(const builder *b, int32_t most, const char *what) {
  return qn_status_fail(QUERN_E_LIMIT, "%s: more than %d %s: write two expressions", b->expression->name, most, what);
}

/* ---- Levels ---- */

/* Whether two values are parts of one reduction. */
static int are_one_reduction(const builder *b, const qn_value *x, const qn_value *y) {
  if (y->kind != QN_VALUE_REDUCE || x->reducer != y->reducer || x->index != y->index || x->takes_none != y->takes_none) return 0;
  if (x->inputs != y->inputs) return 0;
  for (int32_t k = 0; k < x->n_args; k++)
    if (arg_at(b, x, k) != arg_at(b, y, k)) return 0;
  return 1;
}

/* The first value of the reduction that a value is a part of. */
static int32_t first_of_reduction(const builder *b, int32_t i) {
  int32_t first = 0;
  while (!are_one_reduction(b, value_at(b, i), value_at(b, first))) first++;
  return first;
}

/* The number of a scan, or -1: it is not made yet. */
static int32_t scan_at(const builder *b, int32_t i) {
  int32_t k = b->n_scans - 1;
  while (k >= 0 && b->scanned[k] != i) k--;
  return k;
}

static uint8_t temp_of_scan(int32_t k) { return (uint8_t)(QN_ROW_TEMP + QN_ROW_MAX_VALUES - 1 - k); }

static quern_status refuse_both_ends(const builder *b, const char *what) {
  return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: %s: write two expressions, first r = the scan with reverse=1, then this one with r in that place",
                        b->expression->name, what);
}

/* Notes axes, for the check that all are the same dimensions. */
static quern_status note_axes(builder *b, int32_t axes, uint32_t inputs, uint32_t elements, const quern_op *scan) {
  qn_row_stages *made = b->made;
  for (int32_t k = 0; k < made->n_reductions; k++) {
    const qn_row_reduction *known = &made->reduction[k];
    if (known->axes == axes && known->inputs == inputs && known->scan == scan && (known->elements == elements || elements == ~0u)) return QUERN_OK;
  }
  if (made->n_reductions == MAX_AXES) return too_many(b, MAX_AXES, "reductions and scans");
  made->reduction[made->n_reductions++] = (qn_row_reduction){axes, inputs, elements, scan};
  return QUERN_OK;
}

/* Numbers the results of a reduction, all parts of it at its first value. */
static quern_status number_reduction(builder *b, int32_t i, uint32_t inputs, uint32_t elements) {
  const qn_value *value = value_at(b, i);
  qn_row_stages *made = b->made;
  const int32_t first = first_of_reduction(b, i), n = value->reducer->n_parts;
  if (first < i) {
    const int32_t base = b->row_of[first] - (int32_t)value_at(b, first)->bits;
    b->row_of[i] = (int16_t)(base + (int32_t)value->bits);
    return QUERN_OK;
  }
  if (b->n_reductions++ == QN_ROW_MAX_REDUCES || made->program.n_rows + n > QN_ROW_MAX_VALUES)
    return too_many(b, QN_ROW_MAX_REDUCES, "reductions, those of several parts counted by their parts");
  b->row_of[i] = (int16_t)(made->program.n_rows + (int32_t)value->bits);
  for (int32_t p = 0; p < n; p++) made->row_types[made->program.n_rows++] = qn_reducer_dtype(value->reducer, p);
  return note_axes(b, value->index, inputs, elements, NULL);
}

static quern_status find_levels(builder *b) {
  const size_t n = (size_t)b->typed->n_values + 1;
  uint32_t *inputs = calloc(2 * n, sizeof *inputs), *elements = inputs + n; /* elements: behind no reduction */
  quern_status status = QUERN_OK;
  if (!inputs) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", b->expression->name);
  for (int32_t i = 0; i < b->typed->n_values && status == QUERN_OK; i++) {
    const qn_value *value = value_at(b, i);
    b->row_of[i] = -1;
    b->is_row[i] = value->kind != QN_VALUE_INPUT && value->kind != QN_VALUE_INDEX;
    b->level[i] = 0;
    if (value->kind == QN_VALUE_INPUT) inputs[i] = elements[i] = 1u << value->index;
    for (int32_t k = 0; k < value->n_args + value->n_params; k++) {
      const int32_t arg = arg_at(b, value, k);
      if (b->level[arg] > b->level[i]) b->level[i] = b->level[arg];
      b->is_row[i] &= b->is_row[arg];
      inputs[i] |= inputs[arg];
      elements[i] |= elements[arg];
    }
    if (value->kind == QN_VALUE_SCAN)
      status = b->is_row[i] ? qn_status_fail(QUERN_E_UNSUPPORTED, "%s: %s of a value that is reduced, or of numbers alone, which has one element a row",
                                             b->expression->name, value->op->info->name)
                            : note_axes(b, value->index, inputs[i], elements[i], value->op);
    if (value->kind != QN_VALUE_REDUCE) continue;
    if (value->inputs) inputs[i] = value->inputs, elements[i] = value->elements; /* what is broadcast is added as often as it is used */
    status = b->is_row[i] ? qn_status_fail(QUERN_E_UNSUPPORTED, "%s: %s of a value that is reduced already, or of numbers alone; leave it out",
                                           b->expression->name, value->reducer->name)
                          : number_reduction(b, i, inputs[i], elements[i]);
    b->level[i]++;
    b->is_row[i] = 1;
    elements[i] = 0;
  }
  for (int32_t i = 0; i < b->typed->n_values && status == QUERN_OK; i++)
    if (value_at(b, i)->kind == QN_VALUE_COUNT) status = note_axes(b, value_at(b, i)->index, value_at(b, i)->inputs, ~0u, NULL);
  free(inputs);
  return status;
}

/* ---- A stage ---- */

/* Marks what a stage computes for `roots`: number[i] = 1. Results of reductions and scans are its inputs; what is before them is not marked. */
static void mark(builder *b, int32_t n, const int32_t *roots) {
  memset(b->number, 0, (size_t)b->typed->n_values * sizeof *b->number);
  for (int32_t k = 0; k < n; k++) b->number[roots[k]] = 1;
  for (int32_t i = b->typed->n_values - 1; i >= 0; i--) {
    const qn_value *value = value_at(b, i);
    if (value->kind == QN_VALUE_PARAM) b->number[i] = 1; /* parameters have the same places in all stages */
    if (!b->number[i] || value->kind == QN_VALUE_REDUCE || value->kind == QN_VALUE_SCAN) continue;
    for (int32_t k = 0; k < value->n_args + value->n_params; k++) b->number[arg_at(b, value, k)] = 1;
  }
}

/* The scanning stages that feed a stage with the marked values, as bits. *is_reverse: they begin at the end. *status: UNSUPPORTED if they begin
 * at both ends. */
static uint16_t feeders_of(const builder *b, uint8_t *is_reverse, quern_status *status) {
  uint16_t feeders = 0;
  int from_end = 0, from_begin = 0;
  for (int32_t k = 0; k < b->n_scans; k++) {
    if (!b->number[b->scanned[k]]) continue;
    feeders |= (uint16_t)(1u << b->scan_stage[k] | b->made->stage[b->scan_stage[k]].feeders);
  }
  for (int32_t k = 0; k < b->n_scans; k++) {
    if (!(feeders >> b->scan_stage[k] & 1)) continue;
    const int reverse = (value_at(b, b->scanned[k])->bits & QN_SCAN_REVERSE) != 0;
    from_end |= reverse, from_begin |= !reverse;
  }
  *is_reverse = (uint8_t)from_end;
  if (from_end && from_begin) *status = refuse_both_ends(b, "scans from both ends meet");
  return feeders;
}

/* The marked values, as an expression of their own. Its inputs are tensors, and results of reductions and scans. */
static qn_typed *extract(builder *b, int32_t n, const int32_t *roots, qn_row_stage *stage, stage_memory *memory) {
  const int32_t n_values = b->typed->n_values;
  qn_typed *typed = malloc(sizeof *typed + (size_t)n_values * sizeof(qn_value) + (size_t)b->typed->n_args * sizeof(int32_t));
  if (!typed) return NULL;
  *typed = (qn_typed){.n_out = n, .values = (qn_value *)(typed + 1)};
  typed->args = (int32_t *)(typed->values + n_values);
  int32_t count = -1; /* all axes are the same dimensions: there is one */
  for (int32_t i = 0; i < n_values; i++) {
    const qn_value *value = value_at(b, i);
    if (!b->number[i]) continue;
    if (value->kind == QN_VALUE_COUNT && count >= 0) {
      b->number[i] = count;
      continue;
    }
    if (value->kind == QN_VALUE_COUNT) count = typed->n_values;
    qn_value *copy = &typed->values[typed->n_values];
    *copy = *value;
    b->number[i] = typed->n_values++;
    const int is_cut = value->kind == QN_VALUE_REDUCE, is_scanned = value->kind == QN_VALUE_SCAN;
    if (is_cut || is_scanned || value->kind == QN_VALUE_INPUT || value->kind == QN_VALUE_INDEX) {
      *copy = (qn_value){.kind = QN_VALUE_INPUT, .type = value->type, .dtype = value->type, .is_row = is_cut && !stage->is_row,
                         .index = stage->n_in, .bits = is_cut || is_scanned};
      memory->values[stage->n_in++] = (uint8_t)(is_cut                            ? QN_ROW_VALUE + b->row_of[i]
                                                          : is_scanned ? temp_of_scan(scan_at(b, i))
                                                          : value->kind == QN_VALUE_INDEX ? QN_ROW_INDEX
                                                                                          : QN_ROW_INPUT + value->index);
      continue;
    }
    copy->first_arg = typed->n_args;
    for (int32_t k = 0; k < value->n_args + value->n_params; k++)
      typed->args[typed->n_args++] = b->number[arg_at(b, value, k)];
  }
  for (int32_t k = 0; k < n; k++) typed->out[k] = b->number[roots[k]];
  return typed;
}

/* A stage that computes `roots` as the values `codes`. */
static quern_status add_stage(builder *b, int32_t n, const int32_t *roots, const uint8_t *codes, int is_row, qn_row_stage **made) {
  qn_row_program *program = &b->made->program;
  if (program->n_stages == QN_ROW_MAX_STAGES) return too_many(b, QN_ROW_MAX_STAGES, "stages");
  qn_row_stage *stage = &b->made->stage[program->n_stages];
  stage_memory *memory = &b->made->memory[program->n_stages++];
  *made = stage;
  stage->is_row = (uint8_t)is_row;
  stage->values = memory->values;
  stage->reduces = memory->reduces;
  if (n == 0) return QUERN_OK;
  mark(b, n, roots);
  quern_status status = QUERN_OK;
  stage->feeders = feeders_of(b, &stage->is_reverse, &status);
  if (status) return status;
  qn_typed *typed = extract(b, n, roots, stage, memory);
  if (!typed) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", b->expression->name);
  status = qn_stage_code_make(&memory->code, b->expression->name, stage->n_in, typed, b->by);
  free(typed);
  if (status) return status;
  for (int32_t k = 0; k < n; k++) memory->values[stage->n_in + k] = codes[k];
  stage->n_out = (uint8_t)n;
  memory->variant = (qn_variant){.name = "interpreter", .dtypes = memory->code.dtypes, .classes = memory->code.classes, .rank = 1};
  for (int32_t i = 0; i < stage->n_in + n; i++)
    memory->code.classes[i] = memory->values[i] >= QN_ROW_VALUE && memory->values[i] < QN_ROW_TEMP && !is_row ? QN_CLASS_BROADCAST
                                                                                                               : QN_CLASS_CONTIGUOUS;
  stage->variant = &memory->variant;
  stage->steps = &memory->code.steps;
  return QUERN_OK;
}

/* The input that a reduction takes as it lies, converted to its accumulators' dtype; -1: its argument is computed. */
static int32_t plain_input(const builder *b, int32_t i) {
  const qn_value *value = value_at(b, i);
  if (value->kind == QN_VALUE_PRIMITIVE && value->primitive->role == QN_PRIMITIVE_CONVERT)
    value = value_at(b, arg_at(b, value, 0));
  if (value->kind == QN_VALUE_INDEX && value == value_at(b, i)) return QN_ROW_INDEX;
  return value->kind == QN_VALUE_INPUT ? QN_ROW_INPUT + value->index : -1;
}

/* The code of the input that a value of a row op's stage is in a call of its kernel; -1: that is computed. */
static int32_t code_in(const builder *b, const qn_value *call, const qn_row_stage *stage, uint8_t code) {
  if (code == QN_ROW_INDEX) return code;
  for (int32_t k = 0; k < stage->n_in; k++) {
    if (stage->values[k] != code) continue;
    const int32_t plain = plain_input(b, arg_at(b, call, k));
    return plain == QN_ROW_INDEX ? -1 : plain;
  }
  return -1;
}

/* Whether the sum of value i is one element of an input, which the value's own op reads by its place. codes: that input and the place. */
static int is_pick(const builder *b, int32_t i, const qn_reducer *by, uint8_t *codes) {
  const qn_value *value = value_at(b, i);
  const qn_row_op *row = value->kind == QN_VALUE_KERNEL ? qn_row_op_of(value->op->builtin) : NULL;
  for (int32_t d = 0; d < QN_DTYPE_COUNT && row; d++) {
    const qn_row_program *program = row->programs[d];
    for (int32_t s = 0; program && program->picking && s < program->n_stages; s++) {
      const qn_row_stage *stage = &program->stages[s];
      for (int32_t r = 0; stage->variant == value->kernel && r < stage->n_reduces; r++) {
        if (stage->reduces[r].from != stage->values[stage->n_in + value->index] || stage->reduces[r].by != by) continue;
        for (int32_t p = 0; p < program->picking->n_stages; p++) {
          const qn_row_stage *pick = &program->picking->stages[p];
          if (!qn_row_picks(pick) || pick->values[2] != QN_ROW_VALUE + stage->reduces[r].to) continue;
          const int32_t from = code_in(b, value, stage, pick->values[0]), at = code_in(b, value, stage, pick->values[1]);
          codes[0] = (uint8_t)from, codes[1] = (uint8_t)at;
          return from >= 0 && at >= 0;
        }
      }
    }
  }
  return 0;
}

/* The stages that scan the elements of a level, in order: a stage for each. */
static quern_status add_scans(builder *b, int32_t level) {
  for (int32_t i = 0; i < b->typed->n_values; i++) {
    const qn_value *value = value_at(b, i);
    if (value->kind != QN_VALUE_SCAN || b->level[i] != level) continue;
    if (b->n_scans == MAX_SCANS) return too_many(b, MAX_SCANS, "scans");
    const qn_scan_op *of = qn_scan_op_of(value->op->builtin);
    const int32_t arg = arg_at(b, value, 0), plain = plain_input(b, arg), k = b->n_scans;
    const uint8_t to = temp_of_scan(k), reverse = (value->bits & QN_SCAN_REVERSE) != 0;
    qn_row_stage *stage;
    quern_status status = add_stage(b, plain < 0, &arg, &to, 0, &stage);
    if (status) return status;
    if (stage->feeders && stage->is_reverse != reverse) return refuse_both_ends(b, "a scan of a scan from the other end");
    qn_row_scan *scan = &b->made->memory[b->made->program.n_stages - 1].scan;
    *scan = (qn_row_scan){.scan = &of->scans[value->kernel_dtype], .name = value->op->info->name, .from = plain < 0 ? to : (uint8_t)plain, .to = to,
                          .is_exclusive = (value->bits & QN_SCAN_EXCLUSIVE) != 0};
    const quern_scalar initial = {.kind = QUERN_F64, .v = {.f = {of->initial, 0}}};
    qn_params_number(&initial, value->type, scan->initial);
    stage->scan = scan;
    b->scanned[k] = i;
    b->scan_stage[k] = b->made->program.n_stages - 1;
    b->made->program.n_scans = (uint8_t)++b->n_scans;
  }
  return QUERN_OK;
}

/* Whether a value is the first of a reduction of a level. */
static int begins_reduction(const builder *b, int32_t level, int32_t i) {
  return value_at(b, i)->kind == QN_VALUE_REDUCE && b->level[i] == level + 1 && first_of_reduction(b, i) == i;
}

/* Groups the reductions of a level from value `first` on into one stage: as many as certainly fit its scratch, with their nodes and
 * arguments. Returns the value at which the next group begins. *n: their number. */
static int32_t together(const builder *b, int32_t level, int32_t first, int32_t *n) {
  int32_t bytes = 0, i = first;
  for (*n = 0; i < b->typed->n_values; i++) {
    if (!begins_reduction(b, level, i)) continue;
    const qn_reducer *by = value_at(b, i)->reducer;
    for (int32_t p = 0; p < by->n_parts; p++) bytes += qn_dtype_infos[qn_reducer_dtype(by, p)].size;
    if (*n && bytes > STAGE_BYTES) break;
    ++*n;
  }
  return i;
}

/* The stage of the reductions of a level that begin among values [first, end). */
static quern_status add_reductions(builder *b, int32_t level, int32_t first, int32_t end) {
  int32_t roots[QN_ROW_MAX_VALUES], n = 0;
  uint8_t codes[QN_ROW_MAX_VALUES];
  qn_row_stage *stage;
  for (int32_t i = 0; i < b->typed->n_values; i++) b->temp_of[i] = -1; /* of this stage */
  for (int32_t i = first; i < end; i++) {
    const qn_value *value = value_at(b, i);
    if (!begins_reduction(b, level, i)) continue;
    for (int32_t k = 0; k < value->n_args; k++) {
      const int32_t arg = arg_at(b, value, k);
      if (plain_input(b, arg) >= 0 || b->temp_of[arg] >= 0) continue;
      if (n == QN_ROW_MAX_VALUES - 1 - b->n_scans) return too_many(b, n, "elements that are reduced at once");
      b->temp_of[arg] = (int16_t)n;
      codes[n] = (uint8_t)(QN_ROW_TEMP + n);
      roots[n++] = arg;
    }
  }
  quern_status status = add_stage(b, n, roots, codes, 0, &stage);
  if (status) return status;
  if (stage->is_reverse) return refuse_both_ends(b, "a reduction of a scan from the end");
  qn_row_reduce *reduces = b->made->memory[b->made->program.n_stages - 1].reduces;
  for (int32_t i = first; i < end; i++) {
    const qn_value *value = value_at(b, i);
    if (!begins_reduction(b, level, i)) continue;
    qn_row_reduce *reduce = &reduces[stage->n_reduces++];
    *reduce = (qn_row_reduce){.to = (uint8_t)(b->row_of[i] - (int32_t)value->bits), .by = value->reducer, .takes_none = value->takes_none};
    for (int32_t k = 0; k < value->n_args; k++) {
      const int32_t arg = arg_at(b, value, k), plain = plain_input(b, arg);
      const uint8_t from = (uint8_t)(plain >= 0 ? plain : QN_ROW_TEMP + b->temp_of[arg]);
      *(k ? &reduce->others[k - 1] : &reduce->from) = from;
    }
  }
  const qn_reducer *by = reduces[0].by;
  stage_memory *memory = &b->made->memory[b->made->program.n_stages - 1];
  int32_t n_sums = 0;
  for (int32_t r = 0; r < stage->n_reduces && !stage->feeders; r++) {
    const int32_t k = reduces[r].from - QN_ROW_TEMP;
    n_sums += k >= 0 && is_pick(b, roots[k], reduces[r].by, memory->pick[k]);
  }
  memory->n_picks = n_sums == n ? (uint8_t)n : 0;
  if (n != 1 || stage->n_reduces != 1 || stage->feeders || !by->fuses || memory->code.dtypes[stage->n_in] != by->dtype) return QUERN_OK;
  stage->fuses = 1;
  memory->code.text = qn_stage_text_reduce(memory->code.text, by);
  return memory->code.text ? QUERN_OK : qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", b->expression->name);
}

/* Whether a value depends on a scan from the end that is not before a reduction. */
static int is_from_end(builder *b, int32_t value) {
  uint8_t is_reverse;
  quern_status met = QUERN_OK;
  qn_sentence kept;
  qn_status_keep(&kept);
  mark(b, 1, &value);
  feeders_of(b, &is_reverse, &met);
  if (met) qn_status_restore(&kept);
  return is_reverse;
}

/* The stage of the outputs that are values of a row, or of those that are elements, with scans from the end or without. */
static quern_status add_outputs(builder *b, int is_row, int from_end) {
  int32_t roots[QN_MAX_OPERANDS], n = 0;
  uint8_t codes[QN_MAX_OPERANDS];
  qn_row_stage *stage;
  for (int32_t k = 0; k < b->typed->n_out; k++) {
    if ((int)(b->expression->reduced >> k & 1) != is_row || (b->n_scans && is_from_end(b, b->typed->out[k]) != from_end)) continue;
    roots[n] = b->typed->out[k];
    codes[n++] = (uint8_t)(QN_ROW_OUTPUT + k);
  }
  return n ? add_stage(b, n, roots, codes, is_row, &stage) : QUERN_OK;
}

static quern_status build(builder *b) {
  quern_status status = find_levels(b);
  int32_t deepest = 0;
  for (int32_t i = 0; i < b->typed->n_values && status == QUERN_OK; i++)
    if (b->level[i] > deepest) deepest = b->level[i];
  if (deepest > MAX_STAGES) return too_many(b, MAX_STAGES, "reductions, each of the one before");
  for (int32_t level = 0; level < deepest && status == QUERN_OK; level++) {
    status = add_scans(b, level);
    for (int32_t first = 0, end, n; status == QUERN_OK && (end = together(b, level, first, &n), n); first = end)
      status = add_reductions(b, level, first, end);
  }
  if (status == QUERN_OK) status = add_scans(b, deepest);
  if (status == QUERN_OK) status = add_outputs(b, 1, 0);
  if (status == QUERN_OK) status = add_outputs(b, 0, 0);
  if (status == QUERN_OK && b->n_scans) status = add_outputs(b, 0, 1);
  return status;
}

/* Makes the program with picks, if there are any. */
static void add_picking(qn_row_stages *made) {
  qn_row_program *picking = &made->picking;
  int32_t n_picks = 0;
  *picking = made->program;
  picking->stages = made->picked;
  picking->n_stages = 0;
  for (int32_t i = 0; i < made->program.n_stages; i++) {
    const qn_row_stage *stage = &made->stage[i];
    const int32_t room = QN_ROW_MAX_STAGES - picking->n_stages;
    if (room < 1 + made->memory[i].n_picks) return;
    if (made->memory[i].n_picks == 0) {
      made->picked[picking->n_stages++] = *stage;
      continue;
    }
    qn_row_stage left = {.values = stage->values, .reduces = made->picked_memory[i].reduces};
    for (int32_t r = 0; r < stage->n_reduces; r++) {
      const qn_row_reduce *reduce = &stage->reduces[r];
      if (reduce->from < QN_ROW_TEMP) {
        made->picked_memory[i].reduces[left.n_reduces++] = *reduce;
        continue;
      }
      uint8_t *values = made->picked_memory[picking->n_stages].values;
      memcpy(values, made->memory[i].pick[reduce->from - QN_ROW_TEMP], 2);
      values[2] = (uint8_t)(QN_ROW_VALUE + reduce->to);
      made->picked[picking->n_stages++] = (qn_row_stage){.values = values, .n_in = 2, .n_out = 1, .is_row = 1};
      n_picks++;
    }
    if (left.n_reduces) made->picked[picking->n_stages++] = left;
  }
  if (n_picks) made->program.picking = picking;
}

quern_status qn_row_stages_build(const qn_expression *expression, const qn_typed *typed, const qn_stage_maker *by, qn_row_stages **made) {
  const size_t n = (size_t)typed->n_values + 1;
  builder b = {.expression = expression, .typed = typed, .by = by, .made = calloc(1, sizeof *b.made)};
  b.number = malloc(n * (sizeof *b.number + sizeof *b.row_of + sizeof *b.temp_of + 2));
  quern_status status = b.made && b.number ? QUERN_OK : qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", expression->name);
  if (status == QUERN_OK) {
    b.row_of = (int16_t *)(void *)(b.number + n);
    b.temp_of = b.row_of + n;
    b.level = (uint8_t *)(b.temp_of + n);
    b.is_row = b.level + n;
    if (expression->n_in + expression->n_out > QN_ROW_MAX_VALUES)
      status = qn_status_fail(QUERN_E_LIMIT, "%s: it reduces, and has more than %d inputs and outputs", expression->name, QN_ROW_MAX_VALUES);
    else
      status = build(&b);
    qn_row_program *program = &b.made->program;
    program->stages = b.made->stage;
    program->row_types = b.made->row_types;
    for (int32_t i = 0; i < program->n_stages; i++) {
      const qn_interpreted *interpreted = b.made->memory[i].code.interpreted;
      if (!interpreted) continue;
      program->slots = interpreted->slots;
      program->n_slots = (uint8_t)interpreted->n_slots;
    }
    if (status == QUERN_OK) add_picking(b.made);
  }
  free(b.number);
  if (status) {
    qn_row_stages_free(b.made);
    return status;
  }
  *made = b.made;
  return QUERN_OK;
}

void qn_row_stages_free(qn_row_stages *stages) {
  if (!stages) return;
  for (int32_t i = 0; i < QN_ROW_MAX_STAGES; i++) qn_stage_code_free(&stages->memory[i].code);
  free(stages);
}

void qn_row_stages_set_empty(qn_row_stages *stages, double empty) {
  stages->program.has_empty = stages->picking.has_empty = 1;
  stages->program.empty = stages->picking.empty = empty;
}

quern_status qn_row_stages_source(const qn_row_stages *stages, qn_generator *generator, qn_bytes *source) {
  *source = (qn_bytes){NULL, 0};
  quern_status status = QUERN_OK;
  for (int32_t i = 0; i < stages->program.n_stages && status == QUERN_OK; i++) {
    char symbol[40];
    qn_bytes text;
    if (!stages->memory[i].code.text) continue;
    snprintf(symbol, sizeof symbol, "qj_kernel_pass%d", i + 1);
    if ((status = qn_stage_code_source(&stages->memory[i].code, generator, symbol, &text))) break;
    char *grown = realloc(source->data, source->size + text.size + 2);
    if (grown) {
      if (source->size) grown[source->size++] = '\n';
      memcpy(grown + source->size, text.data, text.size + 1);
      *source = (qn_bytes){grown, source->size + text.size};
    } else {
      status = qn_status_fail(QUERN_E_MEMORY, "op_source: out of memory");
    }
    free(text.data);
  }
  if (status) free(source->data);
  return status;
}

const qn_row_program *qn_row_stages_program(const qn_row_stages *stages) { return &stages->program; }

int32_t qn_row_stages_reductions(const qn_row_stages *stages, const qn_row_reduction **reductions) {
  *reductions = stages->reduction;
  return stages->n_reductions;
}
