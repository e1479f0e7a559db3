/* interpreter.c: see interpreter.h.
 *
 * First the values become a flat list of nodes: operands, parameters, constants, and steps, one kernel each; the op of a spec
 * becomes the primitives that the generator says. Then each node gets a register: outputs are computed in their own place,
 * others in temporaries that are used again when nobody reads them any more. What does not depend on an input is computed
 * once for a box, and kernels take it as a broadcast operand. */
#include "run/interpreter.h"

#include <stdlib.h>
#include <string.h>

#include "core/cpu/job.h"
#include "core/base/status.h"
#include "core/op/kind.h"
#include "lang/op_lines.h"

/* Bytes of a slice's area that temporaries may take for an element, and single values in all. */
#define MAX_BYTES_AT_ONCE 4096

#define STEP_PICOSECONDS 60
#define HEAVY_PICOSECONDS 1000

typedef enum node_kind { NODE_INPUT, NODE_SLOT, NODE_CONSTANT, NODE_STEP, NODE_RESULT } node_kind;

typedef struct node {
  uint8_t kind, type; /* qn_dtype */
  uint8_t uniform;    /* one value for all elements */
  uint8_t keeps_bits; /* a move: what it gives may be a NaN of another form */
  uint8_t heavy;
  int32_t index;                /* INPUT, SLOT: which; CONSTANT: where in the pool */
  const qn_variant *variants;   /* STEP: the kernels to choose from, the all-contiguous one first */
  int32_t n_variants;
  int32_t first_arg, n_args, n_params; /* nodes: the arguments, then the op's parameters */
  int32_t n_more;               /* STEP: results beside its own: as many nodes RESULT stand behind it */
  int32_t last_use;             /* the last node that reads it */
  int32_t table_items;          /* CONSTANT: of a table */
} node;

/* A call of an op of several outputs, which the values of its outputs share. */
typedef struct results_of {
  int32_t value; /* the first of them that was met */
  int32_t nodes[QN_MAX_OUTPUTS];
} results_of;

/* Lists that grow; `failed` remembers the lack of memory. */
typedef struct builder {
  const qn_expression *expression;
  qn_generator *generator;
  qn_interpreted *made;
  node *nodes;
  int32_t n_nodes, room_nodes;
  int32_t *args;
  int32_t n_args, room_args;
  uint64_t *pool;
  int32_t n_pool, room_pool;
  qn_step *steps;
  int32_t n_steps, room_steps;
  qn_register *registers;
  int32_t n_registers, room_registers;
  qn_register *place; /* [n_nodes]: where each node's value is */
  uint8_t *temp_size;
  int32_t n_temps, room_temps;
  qn_register *free; /* TEMP and ONE whose value nobody reads any more */
  int32_t n_free, room_free;
  int32_t n_ones; /* the first of them take the parameters of the step at hand */
  int32_t last_read; /* the last step that reads an input */
  int32_t written[QN_MAX_OPERANDS]; /* by output: the step that writes it, -1 */
  results_of *results;
  int32_t n_results, room_results;
  int failed;
} builder;

/* A list of n items, with room for `more`; where there is no memory for them, as it was, and `failed`. */
static void *reserve(builder *b, void *list, int32_t n, int32_t more, int32_t *room, size_t size) {
  if (b->failed || n + more <= *room) return list;
  int32_t wanted = *room ? *room * 2 : 32;
  while (wanted < n + more) wanted *= 2;
  void *grown = realloc(list, (size_t)wanted * size);
  b->failed = !grown;
  if (!grown) return list;
  *room = wanted;
  return grown;
}
/* Whether there is room now. */
#define RESERVE_FOR(b, list, n, more, room) ((b)->list = reserve(b, (b)->list, n, more, &(room), sizeof *(b)->list), !(b)->failed)
#define RESERVE(b, list, more) RESERVE_FOR(b, list, (b)->n_##list, more, (b)->room_##list)

static uint8_t size_of(uint8_t type) { return qn_dtype_infos[type].size; }
static int log2_size(uint8_t size) { return __builtin_ctz(size); }

/* ---- Nodes ---- */

static int32_t add_node(builder *b, node node) {
  if (!RESERVE(b, nodes, 1)) return 0;
  b->nodes[b->n_nodes] = node;
  return b->n_nodes++;
}

/* Where `bytes` stand in the pool of constants, 8 bytes aligned. */
static int32_t add_constant(builder *b, const void *bytes, size_t size) {
  int32_t words = (int32_t)((size + 7) / 8);
  if (!RESERVE(b, pool, words)) return 0;
  int32_t at = b->n_pool;
  b->pool[at + words - 1] = 0;
  memcpy(b->pool + at, bytes, size);
  b->n_pool += words;
  return at;
}

static int32_t constant_node(builder *b, uint8_t type, uint64_t bits) {
  return add_node(b, (node){.kind = NODE_CONSTANT, .type = type, .uniform = 1, .index = add_constant(b, &bits, 8)});
}

/* A step over nodes args[0 ... n_args + n_params). */
static int32_t step_node(builder *b, node step, const int32_t *args) {
  int32_t n = step.n_args + step.n_params;
  if (!RESERVE(b, args, n)) return 0;
  step.kind = NODE_STEP;
  step.first_arg = b->n_args;
  step.uniform = 1;
  for (int32_t k = 0; k < n; k++) {
    b->args[b->n_args++] = args[k];
    if (k < step.n_args) step.uniform &= b->nodes[args[k]].uniform;
  }
  return add_node(b, step);
}

static int32_t primitive_node(builder *b, const qn_primitive *primitive, const int32_t *args, int32_t n_params) {
  return step_node(b, (node){.type = primitive->type, .variants = primitive->variants, .n_variants = primitive->n_variants,
                             .n_args = primitive->n_args, .n_params = n_params}, args);
}

/* The slot of a parameter in a dtype. Slots are sorted before any node is made. */
static int32_t slot_of(const builder *b, int32_t param, uint8_t dtype) {
  const qn_interpreted *made = b->made;
  for (int32_t k = 0; k < made->n_slots; k++)
    if (made->slots[k].param == param && made->slots[k].dtype == dtype) return k;
  return -1;
}

/* By parameter, then dtype. */
static quern_status collect_slots(builder *b, const qn_typed *typed) {
  qn_interpreted *made = b->made;
  for (int32_t i = 0; i < typed->n_values; i++) {
    const qn_value *value = &typed->values[i];
    if (value->kind != QN_VALUE_PARAM || slot_of(b, value->index, value->type) >= 0) continue;
    if (made->n_slots == QN_MAX_SLOTS)
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
  b->failed |= !items;
  if (!items) return 0;
  size_t k = 0;
  for (; k < n && qn_op_lines_item(lines, &item); k++) memcpy(items + k * size, &item, size);
  const int32_t index = k == n ? add_constant(b, items, n * size) : -1;
  free(items);
  if (index < 0) return -1;
  return add_node(b, (node){.kind = NODE_CONSTANT, .type = table->type, .uniform = 1, .index = index, .table_items = (int32_t)n});
}

/* values: the nodes of the lines before */
static int32_t line_node(builder *b, const qn_op_line *line, const int32_t *values) {
  int32_t args[QN_OP_LINE_MAX_ARGS + 1];
  const int32_t n_args = line->primitive->n_args;
  for (int32_t k = 0; k < n_args; k++) args[k] = values[line->args[k]];
  if (strcmp(line->primitive->op, "lookup") != 0) return primitive_node(b, line->primitive, args, 0);
  args[n_args] = constant_node(b, QN_I64, (uint64_t)b->nodes[args[0]].table_items - 1); /* the last item, a parameter */
  return primitive_node(b, line->primitive, args, 1);
}

/* The nodes of a spec's op, of n_out outputs, for the arguments `args` (inputs, then parameters). 0: the text is not what it
 * should be, or `failed`. */
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
    if (made < 0 || b->failed) return 0;
    values[lines.n_values - 1] = made;
  }
  return is_line == 0 && n_made == n_out;
}

/* The dtype that output k of a call is a number of where that is not the type it goes on in; QN_DTYPE_NONE. */
static uint8_t rounded_dtype(const qn_value *value, int32_t k) {
  const qn_builtin *builtin = value->op->builtin;
  uint8_t dtype = builtin->results[k];
  if (dtype == QN_DTYPE_NONE) dtype = value->kernel_dtype;
  return dtype != qn_dtype_infos[dtype].compute && !builtin->kind->keeps_bits ? dtype : QN_DTYPE_NONE;
}

static quern_status add_spec_op(builder *b, const qn_value *value, const int32_t *args, int32_t *made) {
  const int32_t n_out = value->op->builtin->info.n_out;
  int is_whole = 0;
  qn_bytes text;
  quern_status status =
      qn_generator_program(b->generator, value->op->info->name, qn_dtype_infos[value->kernel_dtype].name, &text);
  if (status) return status;
  int32_t *values = malloc((size_t)qn_op_lines_count(text.data) * sizeof *values);
  if (values)
    is_whole = read_op(b, text.data, args, value->n_args + value->n_params, values, n_out, made);
  else
    b->failed = 1;
  free(values);
  free(text.data);
  for (int32_t k = 0; k < n_out && is_whole; k++) {
    const uint8_t dtype = rounded_dtype(value, k);
    if (dtype == QN_DTYPE_NONE) continue;
    const qn_primitive *round = qn_primitive_find(dtype == QN_F16 ? "round_f16" : "round_bf16", QN_F32, QN_F32);
    is_whole = round != NULL;
    if (round) made[k] = primitive_node(b, round, &made[k], 0);
  }
  if (b->failed || is_whole) return QUERN_OK;
  return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: %s has a part that no built kernel computes", b->expression->name,
                        value->op->info->name);
}

/* ---- Values to nodes ---- */

/* A number in another dtype: what a kernel takes or gives beside the type in which numbers go on. */
static int32_t converted_node(builder *b, int32_t from, uint8_t dtype) {
  const qn_variant *const convert = qn_packs.convert[b->nodes[from].type][dtype];
  qn_assert(convert);
  return step_node(b, (node){.type = dtype, .variants = convert, .n_variants = 1, .n_args = 1}, &from);
}

static void builtin_nodes(builder *b, const qn_value *value, const int32_t *args, int32_t *made) {
  const qn_builtin *builtin = value->op->builtin;
  const int32_t n_out = builtin->info.n_out;
  int is_move = builtin->kind->keeps_bits;
  uint8_t K = is_move ? qn_dtype_infos[value->kernel_dtype].bits_dtype : value->kernel_dtype;
  const qn_variant *variants = builtin->variants + builtin->first[K];
  int32_t own[QN_MAX_OPERANDS + QN_MAX_PARAMS];
  for (int32_t k = 0; k < value->n_args + value->n_params; k++) {
    const int is_other = k < value->n_args && !is_move && b->nodes[args[k]].type != variants[0].dtypes[k];
    own[k] = is_other ? converted_node(b, args[k], variants[0].dtypes[k]) : args[k];
    if (b->failed) return;
  }
  made[0] = step_node(b, (node){.type = is_move ? value->type : variants[0].dtypes[value->n_args], .variants = variants,
                                .n_variants = builtin->first[K + 1] - builtin->first[K], .n_args = value->n_args,
                                .n_params = value->n_params, .n_more = n_out - 1, .keeps_bits = (uint8_t)is_move,
                                .heavy = builtin->heavy}, own);
  for (int32_t k = 1; k < n_out && !b->failed; k++)
    made[k] = add_node(b, (node){.kind = NODE_RESULT, .type = variants[0].dtypes[value->n_args + k],
                                 .uniform = b->nodes[made[0]].uniform});
  for (int32_t k = 0; k < n_out && !b->failed; k++) {
    const uint8_t dtype = rounded_dtype(value, k);
    if (dtype != QN_DTYPE_NONE) made[k] = converted_node(b, made[k], qn_dtype_infos[dtype].compute);
  }
}

static quern_status add_op(builder *b, const qn_value *value, const int32_t *args, int32_t *made) {
  if (!value->op->builtin->n_variants) return add_spec_op(b, value, args, made);
  builtin_nodes(b, value, args, made);
  return QUERN_OK;
}

/* Whether two values are outputs of one call. */
static int is_one_call(const qn_typed *typed, const qn_value *a, const qn_value *b) {
  return a->op == b->op && a->kernel_dtype == b->kernel_dtype && a->n_args == b->n_args && a->n_params == b->n_params &&
         memcmp(typed->args + a->first_arg, typed->args + b->first_arg,
                (size_t)(a->n_args + a->n_params) * sizeof *typed->args) == 0;
}

/* The node of a value of an op: of a call that has been met already, it is there. */
static quern_status op_node(builder *b, const qn_typed *typed, int32_t i, const int32_t *args, int32_t *made) {
  const qn_value *value = &typed->values[i];
  results_of results = {.value = i};
  int32_t at = 0;
  if (value->op->builtin->info.n_out == 1) return add_op(b, value, args, made);
  while (at < b->n_results && !is_one_call(typed, &typed->values[b->results[at].value], value)) at++;
  if (at == b->n_results) {
    quern_status status = add_op(b, value, args, results.nodes);
    if (status || !RESERVE(b, results, 1)) return status;
    b->results[b->n_results++] = results;
  }
  *made = b->results[at].nodes[value->index];
  return QUERN_OK;
}

static quern_status flatten(builder *b, const qn_typed *typed, int32_t *node_of) {
  for (int32_t i = 0; i < typed->n_values && !b->failed; i++) {
    const qn_value *value = &typed->values[i];
    int32_t args[QN_MAX_OPERANDS + QN_MAX_PARAMS];
    for (int32_t k = 0; k < value->n_args + value->n_params; k++) args[k] = node_of[typed->args[value->first_arg + k]];
    switch (value->kind) {
      case QN_VALUE_INPUT:
        node_of[i] = add_node(b, (node){.kind = NODE_INPUT, .type = value->type, .index = value->index});
        break;
      case QN_VALUE_PARAM:
        node_of[i] = add_node(b, (node){.kind = NODE_SLOT, .type = value->type, .uniform = 1,
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

/* Outputs are read at the end: place_all copies those that are not computed in their own place. */
static void find_last_uses(builder *b, const qn_typed *typed, const int32_t *node_of) {
  for (int32_t i = 0; i < b->n_nodes; i++) {
    const node *node = &b->nodes[i];
    for (int32_t k = 0; k < node->n_args + node->n_params; k++) b->nodes[b->args[node->first_arg + k]].last_use = i;
  }
  for (int32_t k = 0; k < typed->n_out; k++) b->nodes[node_of[typed->out[k]]].last_use = INT32_MAX;
}

/* ---- Registers ---- */

static qn_register make_register(builder *b, uint8_t kind, uint8_t step) {
  if (kind == QN_REGISTER_ONE) return (qn_register){kind, step, b->n_ones++};
  if (!RESERVE_FOR(b, temp_size, b->n_temps, 1, b->room_temps)) return (qn_register){kind, step, 0};
  b->temp_size[b->n_temps] = step;
  return (qn_register){kind, step, b->n_temps++};
}

/* TEMP of items of `step` bytes, or ONE and 0. */
static qn_register take_register(builder *b, uint8_t kind, uint8_t step) {
  for (int32_t i = b->n_free - 1; i >= 0; i--) {
    const qn_register found = b->free[i];
    if (found.kind != kind || found.step != step) continue;
    b->free[i] = b->free[--b->n_free];
    return found;
  }
  return make_register(b, kind, step);
}

static void give_register(builder *b, const qn_register *reg) {
  if (reg->kind != QN_REGISTER_TEMP && reg->kind != QN_REGISTER_ONE) return;
  if (RESERVE_FOR(b, free, b->n_free, 1, b->room_free)) b->free[b->n_free++] = *reg;
}

/* ---- Steps ---- */

static const qn_register no_params = {QN_REGISTER_CONSTANT, 0, 0};

static void add_step(builder *b, const qn_variant *variant, const qn_register *registers, int32_t n, int32_t n_out,
                     int single, qn_register params) {
  if (!RESERVE(b, steps, 1) || !RESERVE(b, registers, n)) return;
  for (int32_t k = 0; k < n; k++) {
    int is_input = registers[k].kind == QN_REGISTER_OPERAND && registers[k].index < b->expression->n_in;
    if (is_input) b->last_read = b->n_steps;
    b->registers[b->n_registers + k] = registers[k];
  }
  /* `registers` is set when the list has stopped moving. */
  b->steps[b->n_steps++] = (qn_step){.kernel = qn_job_kernel(variant, NULL), .variant = variant, .n_registers = (uint8_t)n,
                                     .n_out = (uint8_t)n_out, .single = (uint8_t)single, .params = params};
  b->n_registers += n;
}

/* One value over a block, or to a place of 8 bytes. */
static void add_fill(builder *b, qn_register from, uint8_t size, qn_register to) {
  const qn_register registers[2] = {from, to};
  add_step(b, qn_packs.fill[log2_size(size)], registers, 2, 1, to.kind == QN_REGISTER_ONE, no_params);
}

/* The kernel that takes the most uniform arguments as broadcast ones. */
static const qn_variant *choose_variant(const builder *b, const node *step) {
  const qn_variant *best = &step->variants[0];
  int best_broadcasts = 0;
  if (step->uniform) return best;
  for (int32_t i = 1; i < step->n_variants; i++) {
    const qn_variant *variant = &step->variants[i];
    int fits = variant->rank == 1 || variant->rank == 2, broadcasts = 0;
    for (int32_t k = 0; k <= step->n_args + step->n_more && fits; k++) {
      int is_broadcast = k < step->n_args && variant->classes[k] == QN_CLASS_BROADCAST;
      fits = variant->dtypes[k] == step->variants[0].dtypes[k] &&
             (variant->classes[k] == QN_CLASS_CONTIGUOUS || (is_broadcast && b->nodes[b->args[step->first_arg + k]].uniform));
      broadcasts += is_broadcast;
    }
    if (!fits || broadcasts <= best_broadcasts) continue;
    best = variant;
    best_broadcasts = broadcasts;
  }
  return best;
}

/* The parameters of an op side by side, 8 bytes each: constants, or for the time of its step in the first registers. */
static qn_register gather_params(builder *b, const node *step) {
  const int32_t *params = b->args + step->first_arg + step->n_args;
  int constant = 1;
  if (step->n_params == 0) return no_params;
  for (int32_t k = 0; k < step->n_params; k++) constant &= b->nodes[params[k]].kind == NODE_CONSTANT;
  qn_register first = {QN_REGISTER_CONSTANT, 0, b->n_pool};
  if (constant) {
    for (int32_t k = 0; k < step->n_params; k++) {
      uint64_t bits = b->pool[b->nodes[params[k]].index];
      add_constant(b, &bits, 8);
    }
    return first;
  }
  for (int32_t k = 0; k < step->n_params; k++)
    add_fill(b, b->place[params[k]], size_of(b->nodes[params[k]].type), (qn_register){QN_REGISTER_ONE, 0, k});
  return (qn_register){QN_REGISTER_ONE, 0, 0};
}

/* The output that a node's value may be computed in; -1. */
static int32_t output_for(builder *b, const qn_typed *typed, const int32_t *node_of, int32_t at) {
  const node *node = &b->nodes[at];
  if (node->uniform || node->keeps_bits) return -1;
  for (int32_t k = 0; k < typed->n_out; k++)
    if (node_of[typed->out[k]] == at) return k;
  return -1;
}

static void place_step(builder *b, const qn_typed *typed, const int32_t *node_of, int32_t at) {
  node *step = &b->nodes[at];
  const qn_variant *variant = choose_variant(b, step);
  qn_register registers[QN_MAX_OPERANDS + QN_MAX_OUTPUTS], params = gather_params(b, step);
  for (int32_t k = 0; k < step->n_args; k++) {
    const node *arg = &b->nodes[b->args[step->first_arg + k]];
    registers[k] = b->place[b->args[step->first_arg + k]];
    if (!arg->uniform || step->uniform || variant->classes[k] == QN_CLASS_BROADCAST) continue;
    qn_register spread = take_register(b, QN_REGISTER_TEMP, size_of(arg->type));
    add_fill(b, registers[k], spread.step, spread);
    registers[k] = spread;
  }
  /* A kernel loads an element before it stores one: the result may take the place of an argument. */
  for (int32_t k = 0; k < step->n_args + step->n_params; k++) {
    const int32_t arg = b->args[step->first_arg + k];
    const qn_register *place = &b->place[arg];
    int is_spread = k < step->n_args && (registers[k].kind != place->kind || registers[k].index != place->index);
    int is_repeated = 0;
    for (int32_t j = 0; j < k; j++) is_repeated |= b->args[step->first_arg + j] == arg;
    if (is_spread) give_register(b, &registers[k]);
    if (b->nodes[arg].last_use == at && !is_repeated) give_register(b, place);
  }
  for (int32_t k = 0; k <= step->n_more; k++) {
    const int32_t output = output_for(b, typed, node_of, at + k);
    const uint8_t size = size_of(b->nodes[at + k].type);
    qn_register *result = &registers[step->n_args + k];
    if (step->uniform)
      *result = take_register(b, QN_REGISTER_ONE, 0);
    else if (output >= 0)
      *result = (qn_register){QN_REGISTER_OPERAND, size, b->expression->n_in + output};
    else
      *result = take_register(b, QN_REGISTER_TEMP, size);
    if (b->failed) return;
    b->place[at + k] = *result;
    if (output >= 0) b->written[output] = b->n_steps;
  }
  const int32_t n_out = 1 + step->n_more;
  add_step(b, variant, registers, step->n_args + n_out, n_out, step->uniform, params);
  for (int32_t k = 0; k < n_out && n_out > 1; k++)
    if (!b->nodes[at + k].last_use) give_register(b, &b->place[at + k]); /* nobody wants it */
}

/* What output k is to have and has not: a value that is an input, one for all elements, another output's, or moved. */
static void copy_output(builder *b, int32_t k, int32_t from) {
  const node *node = &b->nodes[from];
  uint8_t size = size_of(node->type);
  qn_register registers[2] = {b->place[from], {QN_REGISTER_OPERAND, size, b->expression->n_in + k}};
  const qn_primitive *canon = qn_primitive_find("canon", node->type, node->type);
  b->written[k] = b->n_steps;
  if (node->uniform)
    add_fill(b, registers[0], size, registers[1]);
  else
    add_step(b, canon ? &canon->variants[0] : qn_packs.gather[log2_size(size)], registers, 2, 1, 0, no_params);
}

static void place_all(builder *b, const qn_typed *typed, const int32_t *node_of) {
  for (int32_t i = 0; i < b->n_nodes; i++)
    if (b->nodes[i].n_params > b->n_ones) b->n_ones = b->nodes[i].n_params;
  for (int32_t i = 0; i < b->n_nodes && !b->failed; i++) {
    const node *node = &b->nodes[i];
    uint8_t size = size_of(node->type);
    switch (node->kind) {
      case NODE_INPUT: b->place[i] = (qn_register){QN_REGISTER_OPERAND, size, node->index}; break;
      case NODE_SLOT: b->place[i] = (qn_register){QN_REGISTER_SLOT, 0, node->index}; break;
      case NODE_CONSTANT: b->place[i] = (qn_register){QN_REGISTER_CONSTANT, 0, node->index}; break;
      case NODE_STEP: place_step(b, typed, node_of, i); break;
      default: break; /* placed with its step */
    }
  }
  for (int32_t k = 0; k < typed->n_out && !b->failed; k++)
    if (b->written[k] < 0) copy_output(b, k, node_of[typed->out[k]]);
}

/* ---- The program ---- */

static quern_status finish(builder *b, const qn_typed *typed, const int32_t *node_of) {
  qn_interpreted *made = b->made;
  qn_program *program = &made->program;
  int32_t *before = malloc(((size_t)b->n_temps + 1) * sizeof *before), bytes = 0, at = 0;
  if (!before) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", b->expression->name);
  for (int32_t i = 0; i < b->n_temps; i++) {
    before[i] = bytes;
    bytes += b->temp_size[i];
  }
  before[b->n_temps] = bytes;
  *program = (qn_program){.n_steps = b->n_steps, .n_temps = b->n_temps, .n_ones = b->n_ones, .steps = b->steps,
                          .temp_before = before, .constants = b->pool};
  int32_t n_heavy = 0;
  for (int32_t i = 0; i < b->n_nodes; i++) n_heavy += b->nodes[i].heavy;
  program->picoseconds = STEP_PICOSECONDS * (b->n_steps - n_heavy) + HEAVY_PICOSECONDS * n_heavy;
  made->heavy = n_heavy > 0 || b->n_steps > 14;
  for (int32_t i = 0; i < b->n_steps; i++) {
    b->steps[i].registers = b->registers + at;
    at += b->steps[i].n_registers;
  }
  for (int32_t k = 0; k < typed->n_out; k++) {
    made->value[b->expression->n_in + k] = b->nodes[node_of[typed->out[k]]].type;
    if (b->written[k] >= b->last_read) program->in_place |= 1u << k;
  }
  b->steps = NULL; /* the program has them now */
  b->pool = NULL;
  b->registers = NULL;
  if (bytes + 8 * b->n_ones <= MAX_BYTES_AT_ONCE) return QUERN_OK;
  return qn_status_fail(QUERN_E_LIMIT, "%s: needs %d bytes of intermediate values at a time for each element; at most %d",
                        b->expression->name, bytes + 8 * b->n_ones, MAX_BYTES_AT_ONCE);
}

quern_status qn_interpreter_build(const qn_expression *expression, const qn_typed *typed, qn_generator *generator,
                                  qn_interpreted **interpreted) {
  builder b = {.expression = expression, .generator = generator, .last_read = -1};
  quern_status status = QUERN_OK;
  int32_t *node_of = malloc((size_t)typed->n_values * sizeof *node_of + 1);
  const uint64_t nothing = 0;
  b.made = calloc(1, sizeof *b.made);
  b.failed = !node_of || !b.made;
  for (int32_t k = 0; k < typed->n_out; k++) b.written[k] = -1;
  if (!b.failed) status = collect_slots(&b, typed);
  add_constant(&b, &nothing, 8); /* what kernels without parameters are given */
  if (!b.failed && !status) status = flatten(&b, typed, node_of);
  if (!b.failed && !status) {
    find_last_uses(&b, typed, node_of);
    b.place = malloc((size_t)b.n_nodes * sizeof *b.place + 1);
    b.failed = !b.place;
    for (int32_t i = 0; i < typed->n_values && !b.failed; i++)
      if (typed->values[i].kind == QN_VALUE_INPUT) b.made->value[typed->values[i].index] = typed->values[i].type;
    if (!b.failed) place_all(&b, typed, node_of);
  }
  if (!b.failed && !status) status = finish(&b, typed, node_of);
  if (b.failed) status = qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", expression->name);
  free(node_of);
  free(b.nodes);
  free(b.results);
  free(b.args);
  free(b.pool);
  free(b.steps);
  free(b.registers);
  free(b.place);
  free(b.temp_size);
  free(b.free);
  if (status) {
    qn_interpreter_free(b.made);
    return status;
  }
  *interpreted = b.made;
  return QUERN_OK;
}

void qn_interpreter_free(qn_interpreted *interpreted) {
  if (!interpreted) return;
  const qn_program *program = &interpreted->program;
  if (program->n_steps) free((void *)(uintptr_t)program->steps[0].registers);
  free((void *)(uintptr_t)program->steps);
  free((void *)(uintptr_t)program->temp_before);
  free((void *)(uintptr_t)program->constants);
  free(interpreted);
}
