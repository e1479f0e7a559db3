/* SPDX-License-Identifier: Apache-2.0
 *
 * interpreter.c: see interpreter.h.
 *
 * Each node of nodes.h gets a register. Outputs are computed in place, other values in temporaries, which are reused after
 * their last reader. Values that depend on no input are computed once per tile; kernels take them as broadcast
 * operands. */
#include "run/interpret/interpreter.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "core/cpu/job.h"
#include "run/interpret/nodes.h"

/* The most bytes of a slice's scratch: of temporaries per element, and of all single values. */
#define MAX_BYTES_AT_ONCE 4096

#define STEP_PICOSECONDS 60
#define HEAVY_PICOSECONDS 1000

typedef struct builder {
  qn_nodes n;
  const qn_expression *expression;
  qn_interpreted *made;
  qn_step *steps;
  int32_t n_steps, room_steps;
  qn_register *registers;
  int32_t n_registers, room_registers;
  qn_register *of_node; /* [n_nodes]: the register of each node */
  uint8_t *temp_size;
  int32_t n_temps, room_temps;
  qn_register *free; /* TEMP and ONE registers to be reused */
  int32_t n_free, room_free;
  int32_t n_ones; /* the first ones hold the parameters of the current step */
  int32_t last_read; /* the last step that reads an input */
  int32_t written[QN_MAX_OPERANDS]; /* by output: the step that writes it, -1 */
} builder;

/* Whether a list has room for more items now; else `failed`. */
#define RESERVE_FOR(b, list, n_items, more, room) \
  ((b)->list = qn_nodes_reserve((b)->list, n_items, more, &(room), sizeof *(b)->list, &(b)->n.failed), !(b)->n.failed)
#define RESERVE(b, list, more) RESERVE_FOR(b, list, (b)->n_##list, more, (b)->room_##list)

static uint8_t size_of(uint8_t type) { return qn_dtype_infos[type].size; }
static int log2_size(uint8_t size) { return __builtin_ctz(size); }

/* Outputs count as read at the end: assign_all copies those that are not computed in place. */
static void find_last_uses(builder *b) {
  for (int32_t i = 0; i < b->n.n_nodes; i++) {
    const qn_node *node = &b->n.nodes[i];
    for (int32_t k = 0; k < node->n_args + node->n_params; k++) b->n.nodes[b->n.args[node->first_arg + k]].last_use = i;
  }
  for (int32_t k = 0; k < b->expression->n_out; k++) b->n.nodes[b->n.out[k]].last_use = INT32_MAX;
}

/* ---- Registers ---- */

static qn_register make_register(builder *b, uint8_t kind, uint8_t step, uint8_t words) {
  qn_register made = {.kind = kind, .step = step, .words = words};
  if (kind == QN_REGISTER_ONE) {
    made.index = b->n_ones;
    b->n_ones += words;
  } else if (RESERVE_FOR(b, temp_size, b->n_temps, 1, b->room_temps)) {
    b->temp_size[b->n_temps] = step;
    made.index = b->n_temps++;
  }
  return made;
}

static qn_register take_register(builder *b, uint8_t kind, uint8_t step, uint8_t words) {
  for (int32_t i = b->n_free - 1; i >= 0; i--) {
    const qn_register found = b->free[i];
    if (found.kind != kind || found.step != step || found.words != words) continue;
    b->free[i] = b->free[--b->n_free];
    return found;
  }
  return make_register(b, kind, step, words);
}

static qn_register take_temp(builder *b, uint8_t type) { return take_register(b, QN_REGISTER_TEMP, size_of(type), 0); }
static qn_register take_one(builder *b, uint8_t type) {
  return take_register(b, QN_REGISTER_ONE, 0, (uint8_t)qn_dtype_words(type));
}

static void give_register(builder *b, const qn_register *reg) {
  if (reg->kind != QN_REGISTER_TEMP && reg->kind != QN_REGISTER_ONE) return;
  if (RESERVE_FOR(b, free, b->n_free, 1, b->room_free)) b->free[b->n_free++] = *reg;
}

/* ---- Steps ---- */

static const qn_register no_params = {.kind = QN_REGISTER_CONSTANT};

static void add_step(builder *b, const qn_variant *variant, const qn_register *registers, int32_t n, int32_t n_out,
                     int single, qn_register params) {
  if (!RESERVE(b, steps, 1) || !RESERVE(b, registers, n)) return;
  for (int32_t k = 0; k < n; k++) {
    int is_input = registers[k].kind == QN_REGISTER_OPERAND && registers[k].index < b->expression->n_in;
    if (is_input) b->last_read = b->n_steps;
    b->registers[b->n_registers + k] = registers[k];
  }
  /* `registers` is set later: the list may still be reallocated. */
  b->steps[b->n_steps++] = (qn_step){.kernel = qn_job_kernel(variant, NULL), .variant = variant, .n_registers = (uint8_t)n,
                                     .n_out = (uint8_t)n_out, .single = (uint8_t)single, .params = params};
  b->n_registers += n;
}

/* A step that broadcasts one value over a block, or copies it to a ONE. */
static void add_fill(builder *b, qn_register from, uint8_t size, qn_register to) {
  const qn_register registers[2] = {from, to};
  add_step(b, qn_packs.fill[log2_size(size)], registers, 2, 1, to.kind == QN_REGISTER_ONE, no_params);
}

/* The kernel that takes the most uniform arguments as broadcast ones. */
static const qn_variant *choose_variant(const builder *b, const qn_node *step) {
  const qn_variant *best = &step->variants[0];
  int best_broadcasts = 0;
  if (step->uniform) return best;
  for (int32_t i = 1; i < step->n_variants; i++) {
    const qn_variant *variant = &step->variants[i];
    int fits = variant->rank == 1 || variant->rank == 2, broadcasts = 0;
    for (int32_t k = 0; k <= step->n_args + step->n_more && fits; k++) {
      int is_broadcast = k < step->n_args && variant->classes[k] == QN_CLASS_BROADCAST;
      fits = variant->dtypes[k] == step->variants[0].dtypes[k] &&
             (variant->classes[k] == QN_CLASS_CONTIGUOUS || (is_broadcast && b->n.nodes[b->n.args[step->first_arg + k]].uniform));
      broadcasts += is_broadcast;
    }
    if (!fits || broadcasts <= best_broadcasts) continue;
    best = variant;
    best_broadcasts = broadcasts;
  }
  return best;
}

/* The parameters of an op side by side, in the words of each: constants, or for the time of its step in the first registers. */
static qn_register gather_params(builder *b, const qn_node *step) {
  const int32_t *params = b->n.args + step->first_arg + step->n_args;
  int constant = 1;
  if (step->n_params == 0) return no_params;
  for (int32_t k = 0; k < step->n_params; k++) constant &= b->n.nodes[params[k]].kind == QN_NODE_CONSTANT;
  qn_register first = {.kind = QN_REGISTER_CONSTANT, .index = b->n.n_pool};
  if (constant) {
    for (int32_t k = 0; k < step->n_params; k++) {
      const qn_node *param = &b->n.nodes[params[k]];
      for (int32_t word = 0; word < qn_dtype_words(param->type); word++) {
        uint64_t bits = b->n.pool[param->index + word];
        qn_nodes_add_constant(&b->n, &bits, 8);
      }
    }
    return first;
  }
  int32_t at = 0;
  for (int32_t k = 0; k < step->n_params; k++) {
    const uint8_t type = b->n.nodes[params[k]].type, words = (uint8_t)qn_dtype_words(type);
    add_fill(b, b->of_node[params[k]], size_of(type), (qn_register){.kind = QN_REGISTER_ONE, .words = words, .index = at});
    at += words;
  }
  return (qn_register){.kind = QN_REGISTER_ONE};
}

/* The words that the parameters of a step take. */
static int32_t param_words(const builder *b, const qn_node *step) {
  int32_t words = 0;
  for (int32_t k = 0; k < step->n_params; k++)
    words += qn_dtype_words(b->n.nodes[b->n.args[step->first_arg + step->n_args + k]].type);
  return words;
}

/* The index of an output that is this node's result: the node may be computed straight into its block. -1: there is none. */
static int32_t output_for(builder *b, int32_t at) {
  const qn_node *node = &b->n.nodes[at];
  if (node->uniform || node->keeps_bits) return -1;
  for (int32_t k = 0; k < b->expression->n_out; k++)
    if (b->n.out[k] == at) return k;
  return -1;
}

static void assign_step(builder *b, int32_t at) {
  qn_node *step = &b->n.nodes[at];
  const qn_variant *variant = choose_variant(b, step);
  qn_register registers[QN_MAX_OPERANDS + QN_MAX_OUTPUTS], params = gather_params(b, step);
  for (int32_t k = 0; k < step->n_args; k++) {
    const qn_node *arg = &b->n.nodes[b->n.args[step->first_arg + k]];
    registers[k] = b->of_node[b->n.args[step->first_arg + k]];
    if (!arg->uniform || step->uniform || variant->classes[k] == QN_CLASS_BROADCAST) continue;
    qn_register spread = take_temp(b, arg->type);
    add_fill(b, registers[k], spread.step, spread);
    registers[k] = spread;
  }
  /* Kernels load an element before they store it: the result may overwrite an argument. */
  for (int32_t k = 0; k < step->n_args + step->n_params; k++) {
    const int32_t arg = b->n.args[step->first_arg + k];
    const qn_register *reg = &b->of_node[arg];
    int is_spread = k < step->n_args && (registers[k].kind != reg->kind || registers[k].index != reg->index);
    int is_repeated = 0;
    for (int32_t j = 0; j < k; j++) is_repeated |= b->n.args[step->first_arg + j] == arg;
    if (is_spread) give_register(b, &registers[k]);
    if (b->n.nodes[arg].last_use == at && !is_repeated) give_register(b, reg);
  }
  for (int32_t k = 0; k <= step->n_more; k++) {
    const int32_t output = output_for(b, at + k);
    const uint8_t type = b->n.nodes[at + k].type;
    qn_register *result = &registers[step->n_args + k];
    if (step->uniform)
      *result = take_one(b, type);
    else if (output >= 0)
      *result = (qn_register){.kind = QN_REGISTER_OPERAND, .step = size_of(type), .index = b->expression->n_in + output};
    else
      *result = take_temp(b, type);
    if (b->n.failed) return;
    b->of_node[at + k] = *result;
    if (output >= 0) b->written[output] = b->n_steps;
  }
  const int32_t n_out = 1 + step->n_more;
  add_step(b, variant, registers, step->n_args + n_out, n_out, step->uniform, params);
  for (int32_t k = 0; k < n_out && n_out > 1; k++)
    if (!b->n.nodes[at + k].last_use) give_register(b, &b->of_node[at + k]); /* it is not used */
}

/* Copies the value of node `from` to output k: an input, a uniform value, the value of another output, or a copied one. */
static void copy_output(builder *b, int32_t k, int32_t from) {
  const qn_node *node = &b->n.nodes[from];
  uint8_t size = size_of(node->type);
  qn_register registers[2] = {b->of_node[from],
                              {.kind = QN_REGISTER_OPERAND, .step = size, .index = b->expression->n_in + k}};
  const qn_primitive *canon = qn_primitive_find("canon", node->type, node->type);
  b->written[k] = b->n_steps;
  if (node->uniform)
    add_fill(b, registers[0], size, registers[1]);
  else
    add_step(b, canon ? &canon->variants[0] : qn_packs.gather[log2_size(size)], registers, 2, 1, 0, no_params);
}

static void assign_all(builder *b) {
  for (int32_t i = 0; i < b->n.n_nodes; i++) {
    const int32_t words = param_words(b, &b->n.nodes[i]);
    if (words > b->n_ones) b->n_ones = words;
  }
  for (int32_t i = 0; i < b->n.n_nodes && !b->n.failed; i++) {
    const qn_node *node = &b->n.nodes[i];
    uint8_t size = size_of(node->type);
    switch (node->kind) {
      case QN_NODE_INPUT:
        b->of_node[i] = (qn_register){.kind = QN_REGISTER_OPERAND, .step = node->uniform ? 0 : size, .index = node->index};
        break;
      case QN_NODE_SLOT: b->of_node[i] = (qn_register){.kind = QN_REGISTER_SLOT, .index = node->index}; break;
      case QN_NODE_CONSTANT: b->of_node[i] = (qn_register){.kind = QN_REGISTER_CONSTANT, .index = node->index}; break;
      case QN_NODE_STEP: assign_step(b, i); break;
      default: break; /* gets its register with its step */
    }
  }
  for (int32_t k = 0; k < b->expression->n_out && !b->n.failed; k++)
    if (b->written[k] < 0) copy_output(b, k, b->n.out[k]);
}

/* ---- The program ---- */

static quern_status finish(builder *b) {
  qn_interpreted *made = b->made;
  qn_program *program = &made->program;
  int32_t *before = malloc(((size_t)b->n_temps + 1) * sizeof *before), bytes = 0, at = 0;
  if (!before) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", b->expression->name);
  for (int32_t i = 0; i < b->n_temps; i++) {
    before[i] = bytes;
    bytes += b->temp_size[i];
  }
  before[b->n_temps] = bytes;
  *program = (qn_program){.head = {.compute = qn_program_compute}, .n_steps = b->n_steps,
                          .n_temps = b->n_temps, .n_ones = b->n_ones, .steps = b->steps, .temp_before = before,
                          .constants = b->n.pool};
  program->signs = b->n.signs;
  made->n_slots = b->n.n_slots;
  memcpy(made->slots, b->n.slots, sizeof made->slots);
  int32_t n_heavy = 0;
  for (int32_t i = 0; i < b->n.n_nodes; i++) n_heavy += b->n.nodes[i].heavy;
  program->head.picoseconds = STEP_PICOSECONDS * (b->n_steps - n_heavy) + HEAVY_PICOSECONDS * n_heavy;
  made->heavy = n_heavy > 0 || b->n_steps > 14;
  made->n_heavy = (uint8_t)(n_heavy < 255 ? n_heavy : 255);
  for (int32_t i = 0; i < b->n_steps; i++) {
    b->steps[i].registers = b->registers + at;
    at += b->steps[i].n_registers;
  }
  for (int32_t i = 0; i < b->n.n_nodes; i++)
    if (b->n.nodes[i].kind == QN_NODE_INPUT) made->value[b->n.nodes[i].index] = b->n.nodes[i].type;
  for (int32_t k = 0; k < b->expression->n_out; k++) {
    made->value[b->expression->n_in + k] = b->n.nodes[b->n.out[k]].type;
    if (b->written[k] < b->last_read) program->head.to_blocks |= 1u << (b->expression->n_in + k);
  }
  b->steps = NULL; /* owned by the program now */
  b->n.pool = NULL;
  b->registers = NULL;
  if (bytes + 8 * b->n_ones <= MAX_BYTES_AT_ONCE) return QUERN_OK;
  return qn_status_fail(QUERN_E_LIMIT, "%s: needs %d bytes of intermediate values at a time for each element; at most %d",
                        b->expression->name, bytes + 8 * b->n_ones, MAX_BYTES_AT_ONCE);
}

quern_status qn_interpreter_build(const qn_expression *expression, const qn_typed *typed, qn_generator *generator,
                                  qn_interpreted **interpreted) {
  builder b = {.expression = expression, .last_read = -1};
  for (int32_t k = 0; k < expression->n_out; k++) b.written[k] = -1;
  quern_status status = qn_nodes_make(&b.n, expression, typed, generator);
  if (!status) {
    find_last_uses(&b);
    b.made = calloc(1, sizeof *b.made);
    b.of_node = malloc((size_t)b.n.n_nodes * sizeof *b.of_node + 1);
    b.n.failed = !b.made || !b.of_node;
    if (!b.n.failed) assign_all(&b);
    if (!b.n.failed) status = finish(&b);
    if (b.n.failed) status = qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", expression->name);
  }
  qn_nodes_free(&b.n);
  free(b.steps);
  free(b.registers);
  free(b.of_node);
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
