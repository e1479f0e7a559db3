/* SPDX-License-Identifier: Apache-2.0
 *
 * nodes.c: see nodes.h. */
#include "run/interpret/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/op_traits.h"
#include "core/base/status.h"
#include "core/op/kind.h"
#include "lang/op_lines.h"

/* A call of an op of several outputs, or of the kernel of a stage. The values of its outputs share it. */
typedef struct results_of {
  int32_t value; /* the first of these values */
  int32_t nodes[QN_MAX_OPERANDS]; /* a stage of a row may have more outputs than an op */
} results_of;

typedef struct builder {
  qn_nodes n; /* the result */
  const qn_expression *expression;
  qn_generator *generator;
  results_of *results;
  int32_t n_results, room_results;
} builder;

void *qn_nodes_reserve(void *list, int32_t n, int32_t more, int32_t *room, size_t size, int *failed) {
  if (*failed || n + more <= *room) return list;
  int32_t wanted = *room ? *room * 2 : 32;
  while (wanted < n + more) wanted *= 2;
  void *grown = realloc(list, (size_t)wanted * size);
  *failed = !grown;
  if (!grown) return list;
  *room = wanted;
  return grown;
}
/* Makes room in a list; 0: `failed`. */
#define RESERVE(b, list, n_items, more, room) \
  ((b)->list = qn_nodes_reserve((b)->list, n_items, more, &(room), sizeof *(b)->list, &(b)->n.failed), !(b)->n.failed)

static uint8_t size_of(uint8_t type) { return qn_dtype_infos[type].size; }

/* ---- Nodes ---- */

static int32_t add_node(builder *b, qn_node node) {
  if (!RESERVE(b, n.nodes, b->n.n_nodes, 1, b->n.room_nodes)) return 0;
  b->n.nodes[b->n.n_nodes] = node;
  return b->n.n_nodes++;
}

int32_t qn_nodes_add_constant(qn_nodes *all, const void *bytes, size_t size) {
  const int32_t words = (int32_t)((size + 7) / 8), at = all->n_pool;
  all->pool = qn_nodes_reserve(all->pool, at, words, &all->room_pool, sizeof *all->pool, &all->failed);
  if (all->failed) return 0;
  all->pool[at + words - 1] = 0;
  memcpy(all->pool + at, bytes, size);
  all->n_pool += words;
  return at;
}

static int32_t constant_node(builder *b, uint8_t type, uint64_t bits) {
  qn_assert(qn_dtype_words(type) == 1); /* typing has refused others */
  const int32_t index = qn_nodes_add_constant(&b->n, &bits, 8);
  return add_node(b, (qn_node){.kind = QN_NODE_CONSTANT, .type = type, .uniform = 1, .index = index});
}

/* A step over nodes args[0 ... n_args + n_params). */
static int32_t step_node(builder *b, qn_node step, const int32_t *args) {
  int32_t n = step.n_args + step.n_params;
  if (!RESERVE(b, n.args, b->n.n_args, n, b->n.room_args)) return 0;
  step.kind = QN_NODE_STEP;
  step.first_arg = b->n.n_args;
  step.uniform = 1;
  for (int32_t k = 0; k < n; k++) {
    b->n.args[b->n.n_args++] = args[k];
    if (k < step.n_args) step.uniform &= b->n.nodes[args[k]].uniform;
  }
  return add_node(b, step);
}

/* An argument of which the sign is read. An operand is noted in `signs` and keeps its NaN; a copied value's NaN becomes canonical. */
static int32_t sign_of(builder *b, int32_t at) {
  const qn_node *node = &b->n.nodes[at];
  const qn_primitive *canon = node->keeps_bits ? qn_primitive_find("canon", node->type, node->type) : NULL;
  if (node->kind == QN_NODE_INPUT && !node->keeps_bits) b->n.signs |= 1u << node->index;
  return canon ? step_node(b, (qn_node){.type = node->type, .variants = canon->variants, .n_variants = canon->n_variants, .n_args = 1}, &at) : at;
}

static int32_t primitive_node(builder *b, const qn_primitive *primitive, const int32_t *given, int32_t n_params) {
  const int32_t last = primitive->n_args - 1;
  int32_t args[QN_OP_LINE_MAX_ARGS + 1];
  memcpy(args, given, (size_t)(primitive->n_args + n_params) * sizeof *args);
  if (primitive->looks_at_sign) args[last] = sign_of(b, args[last]);
  return step_node(b, (qn_node){.type = primitive->type, .variants = primitive->variants, .n_variants = primitive->n_variants,
                             .n_args = primitive->n_args, .n_params = n_params}, args);
}

/* The word of a parameter in a dtype; -1: it has no slot yet. Slots are sorted before any node is made. */
static int32_t slot_of(const builder *b, int32_t param, uint8_t dtype) {
  const qn_nodes *made = &b->n;
  int32_t at = 0;
  for (int32_t k = 0; k < made->n_slots; at += qn_dtype_words(made->slots[k++].dtype))
    if (made->slots[k].param == param && made->slots[k].dtype == dtype) return at;
  return -1;
}

/* The words of all slots; the number of elements of a row follows them. */
static int32_t slot_words(const builder *b) {
  int32_t words = 0;
  for (int32_t k = 0; k < b->n.n_slots; k++) words += qn_dtype_words(b->n.slots[k].dtype);
  return words;
}

/* Makes the slots, sorted by parameter, then dtype. */
static quern_status collect_slots(builder *b, const qn_typed *typed) {
  qn_nodes *made = &b->n;
  int32_t words = 0;
  for (int32_t i = 0; i < typed->n_values; i++) {
    const qn_value *value = &typed->values[i];
    if (value->kind != QN_VALUE_PARAM || slot_of(b, value->index, value->type) >= 0) continue;
    words += qn_dtype_words(value->type);
    if (words > QN_MAX_SLOTS)
      return qn_status_fail(QUERN_E_LIMIT, "%s: parameters in more than %d dtypes in all", b->expression->name, QN_MAX_SLOTS);
    int32_t k = made->n_slots++;
    for (; k > 0; k--) {
      const qn_slot *before = &made->slots[k - 1];
      if (before->param < value->index || (before->param == value->index && before->dtype < value->type)) break;
      made->slots[k] = *before;
    }
    made->slots[k] = (qn_slot){(uint8_t)value->index, value->type};
  }
  return QUERN_OK;
}

/* ---- Ops of specs ---- */

static int32_t table_node(builder *b, qn_op_lines *lines, const qn_op_line *table) {
  const size_t n = (size_t)table->number, size = size_of(table->type);
  uint64_t item;
  char *items = malloc(n * size);
  b->n.failed |= !items;
  if (!items) return 0;
  size_t k = 0;
  for (; k < n && qn_op_lines_item(lines, &item); k++) memcpy(items + k * size, &item, size);
  const int32_t index = k == n ? qn_nodes_add_constant(&b->n, items, n * size) : -1;
  free(items);
  if (index < 0) return -1;
  return add_node(b, (qn_node){.kind = QN_NODE_CONSTANT, .type = table->type, .uniform = 1, .index = index,
                               .table_items = (int32_t)n});
}

/* values: the nodes of the lines before */
static int32_t line_node(builder *b, const qn_op_line *line, const int32_t *values) {
  int32_t args[QN_OP_LINE_MAX_ARGS + 1];
  const int32_t n_args = line->primitive->n_args;
  for (int32_t k = 0; k < n_args; k++) args[k] = values[line->args[k]];
  if (line->primitive->role != QN_PRIMITIVE_LOOKUP) return primitive_node(b, line->primitive, args, 0);
  args[n_args] = constant_node(b, QN_I64, (uint64_t)b->n.nodes[args[0]].table_items - 1); /* the last item, a parameter */
  return primitive_node(b, line->primitive, args, 1);
}

/* Makes the nodes of a spec's op, of n_out outputs, for the arguments `args` (inputs, then parameters). 0: the text is
 * malformed, or `failed`. */
static int read_op(builder *b, const char *text, const int32_t *args, int32_t n_args, int32_t *values, int32_t n_out,
                   int32_t *made_nodes) {
  int32_t n_in = 0, n_made = 0;
  qn_op_lines lines = {text, 0};
  qn_op_line line;
  int is_line;
  while ((is_line = qn_op_lines_next(&lines, &line)) > 0) {
    int32_t made = -1;
    switch (line.kind) {
      case QN_OP_LINE_IN: made = n_in < n_args ? args[n_in++] : -1; break;
      case QN_OP_LINE_PARAM: made = line.number < (uint64_t)(n_args - n_in) ? args[n_in + (int32_t)line.number] : -1; break;
      case QN_OP_LINE_CONST: made = constant_node(b, line.type, line.number); break;
      case QN_OP_LINE_TABLE: made = table_node(b, &lines, &line); break;
      case QN_OP_LINE_PRIM: made = line_node(b, &line, values); break;
      default:
        if (n_made == n_out) return 0;
        made_nodes[n_made++] = values[line.number];
        continue;
    }
    if (made < 0 || b->n.failed) return 0;
    values[lines.n_values - 1] = made;
  }
  return is_line == 0 && n_made == n_out;
}

/* The dtype that output k of a call is rounded to, if its compute type is another; else QN_DTYPE_NONE. */
static uint8_t rounded_dtype(const qn_value *value, int32_t k) {
  const qn_builtin *builtin = value->op->builtin;
  uint8_t dtype = builtin->results[k];
  if (dtype == QN_DTYPE_NONE) dtype = value->kernel_dtype;
  return dtype != qn_dtype_infos[dtype].compute && !builtin->kind->keeps_bits ? dtype : QN_DTYPE_NONE;
}

/* The nodes of a program of a spec, for the arguments of a value: its inputs, then its parameters. */
static quern_status add_program(builder *b, const char *name, const char *dtype, const qn_value *value, const int32_t *args, int32_t n_out,
                                int32_t *made, int *is_whole) {
  qn_bytes text;
  quern_status status = qn_generator_program(b->generator, name, dtype, &text);
  if (status) return status;
  int32_t *values = malloc((size_t)qn_op_lines_count(text.data) * sizeof *values);
  if (values)
    *is_whole = read_op(b, text.data, args, value->n_args + value->n_params, values, n_out, made);
  else
    b->n.failed = 1;
  free(values);
  free(text.data);
  return QUERN_OK;
}

static quern_status refuse_part(const builder *b, const char *what) {
  if (b->n.failed) return QUERN_OK;
  return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: %s has a part that no built kernel computes", b->expression->name, what);
}

static quern_status add_spec_op(builder *b, const qn_value *value, const int32_t *args, int32_t *made) {
  const int32_t n_out = value->op->builtin->info.n_out;
  int is_whole = 0;
  quern_status status =
      add_program(b, value->op->info->name, qn_dtype_infos[value->kernel_dtype].name, value, args, n_out, made, &is_whole);
  if (status) return status;
  for (int32_t k = 0; k < n_out && is_whole; k++) {
    const uint8_t dtype = rounded_dtype(value, k);
    const qn_node *node = &b->n.nodes[made[k]];
    const qn_primitive *canon = node->kind == QN_NODE_INPUT || node->keeps_bits ? qn_primitive_find("canon", node->type, node->type) : NULL;
    if (canon && qn_dtype_infos[node->type].kind == QN_KIND_FLOAT) made[k] = primitive_node(b, canon, &made[k], 0); /* the op gives its operand */
    if (dtype == QN_DTYPE_NONE) continue;
    const qn_primitive *round = qn_primitive_round(dtype, qn_dtype_infos[dtype].compute);
    is_whole = round != NULL;
    if (round) made[k] = primitive_node(b, round, &made[k], 0);
  }
  return is_whole ? QUERN_OK : refuse_part(b, value->op->info->name);
}

/* ---- Values to nodes ---- */

/* Converts a value between its compute type and the dtype of a kernel's operand. */
static int32_t converted_node(builder *b, int32_t from, uint8_t dtype) {
  const qn_variant *const convert = qn_packs.convert[b->n.nodes[from].type][dtype];
  qn_assert(convert);
  return step_node(b, (qn_node){.type = dtype, .variants = convert, .n_variants = 1, .n_args = 1}, &from);
}

static void builtin_nodes(builder *b, const qn_value *value, const int32_t *args, int32_t *made) {
  const qn_builtin *builtin = value->op->builtin;
  const int32_t n_out = builtin->info.n_out;
  int is_move = builtin->kind->keeps_bits;
  const int is_signed = builtin->traits && builtin->traits->looks_at_sign;
  uint8_t K = is_move ? qn_dtype_infos[value->kernel_dtype].bits_dtype : value->kernel_dtype;
  const qn_variant *variants = builtin->variants + builtin->first[K];
  int32_t own[QN_MAX_OPERANDS + QN_MAX_PARAMS];
  for (int32_t k = 0; k < value->n_args + value->n_params; k++) {
    const int is_other = k < value->n_args && !is_move && b->n.nodes[args[k]].type != variants[0].dtypes[k];
    own[k] = is_other ? converted_node(b, args[k], variants[0].dtypes[k]) : args[k];
    if (is_signed && !is_other && k < value->n_args) own[k] = sign_of(b, own[k]);
    if (b->n.failed) return;
  }
  made[0] = step_node(b, (qn_node){.type = is_move ? value->type : variants[0].dtypes[value->n_args], .variants = variants,
                                .n_variants = builtin->first[K + 1] - builtin->first[K], .n_args = value->n_args,
                                .n_params = value->n_params, .n_more = n_out - 1, .keeps_bits = (uint8_t)is_move,
                                .heavy = builtin->heavy}, own);
  for (int32_t k = 1; k < n_out && !b->n.failed; k++)
    made[k] = add_node(b, (qn_node){.kind = QN_NODE_RESULT, .type = variants[0].dtypes[value->n_args + k],
                                 .uniform = b->n.nodes[made[0]].uniform});
  for (int32_t k = 0; k < n_out && !b->n.failed; k++) {
    const uint8_t dtype = rounded_dtype(value, k);
    if (dtype != QN_DTYPE_NONE) made[k] = converted_node(b, made[k], qn_dtype_infos[dtype].compute);
  }
}

static quern_status add_op(builder *b, const qn_value *value, const int32_t *args, int32_t *made) {
  if (!value->op->builtin->n_variants) return add_spec_op(b, value, args, made);
  builtin_nodes(b, value, args, made);
  return QUERN_OK;
}

/* ---- Ops that reduce ---- */

/* Whether a kernel is only the name of a spec's program. */
static int is_program(const qn_variant *variant) {
  for (int isa = 0; isa < QN_ISA_COUNT; isa++)
    if (variant->fn[isa]) return 0;
  return 1;
}

/* The kernel of a stage. Its operands have the values' own dtypes, but those that are stored in another. */
static quern_status kernel_nodes(builder *b, const qn_value *value, const int32_t *args, int32_t *made) {
  const qn_variant *variant = value->kernel;
  int32_t own[QN_MAX_OPERANDS + QN_MAX_PARAMS];
  const int32_t n_out = (int32_t)value->bits;
  for (int32_t k = 0; k < value->n_args + value->n_params; k++) {
    const int is_other = k < value->n_args && b->n.nodes[args[k]].type != variant->dtypes[k];
    own[k] = is_other ? converted_node(b, args[k], variant->dtypes[k]) : args[k];
    if (b->n.failed) return QUERN_OK;
  }
  if (is_program(variant)) {
    int is_whole = 0;
    quern_status status = add_program(b, variant->name, "", value, own, n_out, made, &is_whole);
    return status || is_whole ? status : refuse_part(b, value->op->info->name);
  }
  made[0] = step_node(b, (qn_node){.type = variant->dtypes[value->n_args], .variants = variant, .n_variants = 1, .n_args = value->n_args,
                                   .n_params = value->n_params, .n_more = n_out - 1}, own);
  for (int32_t k = 1; k < n_out && !b->n.failed; k++)
    made[k] = add_node(b, (qn_node){.kind = QN_NODE_RESULT, .type = variant->dtypes[value->n_args + k],
                                    .uniform = b->n.nodes[made[0]].uniform});
  return QUERN_OK;
}

/* Whether two values are outputs of one call. */
static int is_one_call(const qn_typed *typed, const qn_value *a, const qn_value *b) {
  return a->op == b->op && a->kernel == b->kernel && a->kernel_dtype == b->kernel_dtype && a->n_args == b->n_args && a->n_params == b->n_params &&
         memcmp(typed->args + a->first_arg, typed->args + b->first_arg,
                (size_t)(a->n_args + a->n_params) * sizeof *typed->args) == 0;
}

/* The node of a value of an op. If another output of the same call came first, the node exists. */
static quern_status op_node(builder *b, const qn_typed *typed, int32_t i, const int32_t *args, int32_t *made) {
  const qn_value *value = &typed->values[i];
  results_of results = {.value = i};
  int32_t at = 0;
  if (value->kind == QN_VALUE_OP && value->op->builtin->info.n_out == 1) return add_op(b, value, args, made);
  while (at < b->n_results && !is_one_call(typed, &typed->values[b->results[at].value], value)) at++;
  if (at == b->n_results) {
    quern_status status = QUERN_OK;
    if (value->kind == QN_VALUE_OP)
      status = add_op(b, value, args, results.nodes);
    else
      status = kernel_nodes(b, value, args, results.nodes);
    if (status || !RESERVE(b, results, b->n_results, 1, b->room_results)) return status;
    b->results[b->n_results++] = results;
  }
  *made = b->results[at].nodes[value->index];
  return QUERN_OK;
}

static quern_status flatten(builder *b, const qn_typed *typed, int32_t *node_of) {
  for (int32_t i = 0; i < typed->n_values && !b->n.failed; i++) {
    const qn_value *value = &typed->values[i];
    int32_t args[QN_MAX_OPERANDS + QN_MAX_PARAMS];
    for (int32_t k = 0; k < value->n_args + value->n_params; k++) args[k] = node_of[typed->args[value->first_arg + k]];
    switch (value->kind) {
      case QN_VALUE_INPUT:
        node_of[i] = add_node(b, (qn_node){.kind = QN_NODE_INPUT, .type = value->type, .uniform = value->is_row, .index = value->index,
                                        .keeps_bits = value->bits != 0});
        break;
      case QN_VALUE_COUNT:
        node_of[i] = add_node(b, (qn_node){.kind = QN_NODE_SLOT, .type = value->type, .uniform = 1, .index = slot_words(b)});
        break;
      case QN_VALUE_PARAM:
        node_of[i] = add_node(b, (qn_node){.kind = QN_NODE_SLOT, .type = value->type, .uniform = 1,
                                        .index = slot_of(b, value->index, value->type)});
        break;
      case QN_VALUE_CONSTANT: node_of[i] = constant_node(b, value->type, value->bits); break;
      case QN_VALUE_PRIMITIVE: node_of[i] = primitive_node(b, value->primitive, args, 0); break;
      default: {
        quern_status status = op_node(b, typed, i, args, &node_of[i]);
        if (status) return status;
      }
    }
  }
  return QUERN_OK;
}

quern_status qn_nodes_make(qn_nodes *all, const qn_expression *expression, const qn_typed *typed, qn_generator *generator) {
  builder b = {.expression = expression, .generator = generator};
  const uint64_t nothing = 0;
  int32_t *node_of = malloc((size_t)typed->n_values * sizeof *node_of + 1);
  b.n.failed = !node_of;
  quern_status status = b.n.failed ? QUERN_OK : collect_slots(&b, typed);
  qn_nodes_add_constant(&b.n, &nothing, 8); /* the params of kernels without parameters */
  if (!b.n.failed && !status) status = flatten(&b, typed, node_of);
  for (int32_t k = 0; k < typed->n_out && !b.n.failed && !status; k++) b.n.out[k] = node_of[typed->out[k]];
  if (b.n.failed) status = qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", expression->name);
  free(node_of);
  free(b.results);
  *all = b.n;
  return status;
}

void qn_nodes_free(qn_nodes *all) {
  free(all->nodes);
  free(all->args);
  free(all->pool);
}
