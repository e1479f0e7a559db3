/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_steps.c: see cuda_steps.h.
 *
 * A chunk is as many whole rows of the nest as the workspace holds. Inputs that are not contiguous in the program's dtype are
 * first copied to the workspace, outputs from there at the end; so all steps run over contiguous elements. Uniform
 * values (one for all elements) are computed on the host by the C kernels, and passed as by-value scalars. */
#include "cuda/cuda_steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own_ops.h"
#include "core/base/status.h"
#include "core/simt/cuda.h"
#include "cuda/cuda_built.h"
#include "run/interpret/program.h"
#include "run/fused/specialised.h"

#define MOST_ELEMENTS ((int64_t)1 << 22) /* of a chunk: enough to make the cost of launches negligible */
#define LEAST_ELEMENTS 1024
#define ALIGNMENT 256

/* ---- The memory and kernels of a decision ---- */

static const qn_program *program_of(const qn_decision *decision) {
  return decision->specialised ? (const qn_program *)decision->specialised->signature.program : NULL;
}

/* The program's dtype of an operand. */
static uint8_t compute_dtype_of(const qn_decision *decision, int32_t k) {
  return decision->specialised->signature.compute_dtypes[k];
}
static uint8_t compute_size_of(const qn_decision *decision, int32_t k) {
  return qn_dtype_infos[compute_dtype_of(decision, k)].size;
}

/* Whether the steps use the operand's own memory: it is contiguous and in the program's dtype; an output is not in to_blocks. */
static int is_direct(const qn_decision *decision, int32_t k) {
  const qn_nest *nest = &decision->nest;
  int64_t step = decision->sizes[k];
  if (compute_dtype_of(decision, k) != decision->dtypes[k] || qn_cuda_values(decision) >> k & 1) return 0;
  if (program_of(decision)->head.to_blocks >> k & 1) return 0;
  for (int32_t d = 0; d < nest->rank; d++) {
    if (nest->stride[k][d] != step) return 0;
    step *= nest->n[d];
  }
  return 1;
}

static int32_t temp_size(const qn_program *program, int32_t i) { return program->temp_before[i + 1] - program->temp_before[i]; }

/* Bytes of the workspace: per element of a chunk, and in all for alignment. */
static void measure(const qn_decision *decision, int64_t *of_element, int64_t *fixed) {
  const qn_program *program = program_of(decision);
  int32_t n_blocks = program->n_temps;
  *of_element = program->temp_before[program->n_temps];
  for (int32_t k = 0; k < decision->n_operands; k++) {
    if (is_direct(decision, k)) continue;
    *of_element += compute_size_of(decision, k);
    n_blocks++;
  }
  *fixed = (int64_t)(n_blocks + 1) * ALIGNMENT;
}

/* Whether a step broadcasts one value over a block. */
static int is_fill(const qn_step *step) {
  int is_one = 0;
  for (size_t i = 0; i < sizeof qn_packs.fill / sizeof qn_packs.fill[0]; i++) is_one |= step->variant == qn_packs.fill[i];
  return is_one;
}

static const qn_cuda_variant *kernel_of(const qn_step *step, int32_t capability, const char **why) {
  return qn_cuda_built_step(step->variant, capability, why);
}

/* The kernels that copy an operand to the workspace or back. */
static const qn_cuda_variant *movers_of(const qn_decision *decision, int32_t k, int32_t capability, int32_t *n,
                                        const char **why) {
  const int is_input = k < decision->n_in;
  const uint8_t own = decision->dtypes[k], compute = compute_dtype_of(decision, k);
  const uint8_t dtypes[2] = {is_input ? own : compute, is_input ? compute : own};
  const qn_builtin *op = own == compute ? qn_own_ops.copy : qn_own_ops.convert;
  if (op) return qn_cuda_built_find(op, dtypes, 2, capability, n, why);
  *n = 0;
  *why = "this library is built without the op that copies its operands";
  return NULL;
}

/* Cuts the nest into chunks of *rows along dimension *split and all of the dimensions before it. Returns a chunk's elements. */
static int64_t cut_nest(const qn_nest *nest, int64_t most, int32_t *split, int64_t *rows) {
  int64_t inner = 1;
  *split = 0;
  *rows = 1;
  if (nest->rank == 0) return 1;
  while (*split + 1 < nest->rank && inner * nest->n[*split] <= most) inner *= nest->n[(*split)++];
  *rows = most / inner < nest->n[*split] ? most / inner : nest->n[*split];
  if (*rows < 1) *rows = 1;
  const int64_t n = (nest->n[*split] + *rows - 1) / *rows; /* chunks along it, of equal length */
  *rows = (nest->n[*split] + n - 1) / n;
  return inner * *rows;
}

const char *qn_cuda_steps_refuse(const qn_decision *decision, int32_t capability, size_t bytes, qn_cuda_chunks *chunks) {
  const qn_program *program = program_of(decision);
  const qn_nest *nest = &decision->nest;
  const char *why;
  int64_t of_element, fixed, rows;
  int32_t n, split;
  *chunks = (qn_cuda_chunks){0, 0, 0};
  if (!program) return "it is no program of steps";
  for (int32_t i = 0; i < program->n_steps; i++) {
    if (program->steps[i].single) continue;
    if (!kernel_of(&program->steps[i], capability, &why)) return why;
    chunks->n_steps++;
  }
  for (int32_t k = 0; k < decision->n_operands; k++) {
    if (is_direct(decision, k)) continue;
    if (program->signs >> k & 1 && compute_dtype_of(decision, k) != decision->dtypes[k]) return "the cast of an operand would take a NaN's sign";
    if (!movers_of(decision, k, capability, &n, &why)) return why;
    chunks->n_steps++;
  }
  measure(decision, &of_element, &fixed);
  int64_t most = MOST_ELEMENTS;
  if (of_element) {
    const int64_t room = bytes > (size_t)INT64_MAX ? INT64_MAX : (int64_t)bytes;
    const int64_t fitting = room > fixed ? (room - fixed) / of_element : 0;
    if (fitting < most) most = fitting;
  }
  const int64_t least = nest->n_elements < LEAST_ELEMENTS ? nest->n_elements : LEAST_ELEMENTS;
  if (most < least) return "the workspace is too small";
  chunks->n_elements = cut_nest(nest, most, &split, &rows);
  chunks->n = 1;
  for (int32_t d = split; d < nest->rank; d++) chunks->n *= d == split ? (nest->n[d] + rows - 1) / rows : nest->n[d];
  return NULL;
}

size_t qn_cuda_steps_workspace(const qn_decision *decision, int32_t capability) {
  qn_cuda_chunks chunks;
  int64_t of_element, fixed;
  if (qn_cuda_steps_refuse(decision, capability, SIZE_MAX, &chunks)) return 0;
  const int64_t n = decision->nest.n_elements;
  measure(decision, &of_element, &fixed);
  return (size_t)(of_element * (n < MOST_ELEMENTS ? n : MOST_ELEMENTS) + fixed);
}

/* ---- A run ---- */

/* On the heap: hosts' stacks may be small. */
typedef struct walk {
  const qn_decision *decision;
  const qn_cuda_facts *facts;
  const qn_cuda_scope *scope;
  void *stream;
  const qn_params *params;
  int is_dry;                        /* load the kernels, launch nothing */
  int64_t count;                     /* elements of the chunk */
  int32_t split;
  int64_t rows;                      /* of the chunk, along `split` */
  uint64_t operand[QN_MAX_OPERANDS]; /* address of the chunk in the tensor, or a by-value scalar's bits */
  uint64_t chunk[QN_MAX_OPERANDS];   /* address of the chunk for the program */
  uint64_t *temps;                   /* [n_temps], then [n_ones]: */
  uint64_t *ones;
  qn_nest nest;                      /* of one kernel */
  qn_launch launch;
} walk;

static quern_status find(const walk *w, const qn_cuda_variant *variant, const qn_cuda_kernel_info **kernel) {
  qn_cuda_image *image = qn_cuda_built_image(variant);
  const char *name = w->decision->op->info->name;
  if (!image) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", name);
  if ((*kernel = qn_cuda_image_find(image, w->scope, QN_LAUNCH_THREADS))) return QUERN_OK;
  if (qn_cuda_is_capturing(w->scope->driver, w->stream))
    return qn_status_fail(QUERN_E_CAPTURING, "%s: one of its steps is not loaded yet, and its stream is being captured; prepare "
                          "the call, or make it once, before the capture", name);
  quern_status status = qn_cuda_image_load(image, w->scope, QN_LAUNCH_THREADS, kernel);
  if (status == QUERN_OK) return QUERN_OK;
  if (status == QUERN_E_IO || status == QUERN_E_COMPILER) qn_cuda_built_refuse(variant);
  qn_sentence said;
  qn_status_keep(&said);
  return qn_status_fail(status, "%s: %s", name, said.text);
}

/* Launches the kernel over w->nest; w->launch is packed, with operands and parameters in its arguments. */
static quern_status put(walk *w, const qn_cuda_variant *variant) {
  const qn_cuda_kernel_info *kernel;
  void *arguments[] = {w->launch.args};
  uint32_t x, y;
  quern_status status = find(w, variant, &kernel);
  if (status || w->is_dry) return status;
  qn_launch_block(&w->launch, &x, &y);
  const uint32_t resident = (uint32_t)(kernel->blocks_per_multiprocessor * w->facts->multiprocessors);
  const uint32_t grid = qn_launch_grid(&w->launch, (uint32_t)kernel->items_per_thread, resident);
  const qn_cuda_result result = w->scope->driver->launch(kernel->function, grid, 1, 1, x, y, 1, 0, (qn_cuda_stream)w->stream,
                                                         arguments, NULL);
  return result ? qn_cuda_fail(w->scope->driver, result, w->decision->op->info->name) : QUERN_OK;
}

/* Sets w->nest to the chunk of operand k and its contiguous copy, with as few dimensions as possible. */
static void nest_of_move(walk *w, int32_t k) {
  const qn_nest *whole = &w->decision->nest;
  const int is_input = k < w->decision->n_in;
  const int32_t own = is_input ? 0 : 1;
  qn_nest *nest = &w->nest;
  int64_t step = compute_size_of(w->decision, k);
  nest->rank = 0;
  nest->n_operands = 2;
  nest->n_elements = w->count;
  for (int32_t d = 0; d <= w->split && d < whole->rank; d++) {
    const int64_t n = d == w->split ? w->rows : whole->n[d];
    const int32_t last = nest->rank - 1;
    if (n == 1) continue;
    if (last >= 0 && nest->stride[own][last] * nest->n[last] == whole->stride[k][d]) { /* the copy never has gaps */
      nest->n[last] *= n;
    } else {
      nest->n[nest->rank] = n;
      nest->stride[own][nest->rank] = whole->stride[k][d];
      nest->stride[1 - own][nest->rank++] = step;
    }
    step *= n;
  }
}

static quern_status move(walk *w, int32_t k) {
  const qn_decision *decision = w->decision;
  const int is_input = k < decision->n_in;
  const uint8_t own = decision->sizes[k], compute = compute_size_of(decision, k);
  const uint8_t sizes[2] = {is_input ? own : compute, is_input ? compute : own};
  const uint32_t values = qn_cuda_values(decision) >> k & 1;
  const char *why;
  qn_launch_form form;
  int32_t n;
  const qn_cuda_variant *movers = movers_of(decision, k, w->facts->capability, &n, &why);
  nest_of_move(w, k);
  const qn_cuda_variant *mover = n ? qn_launch_pick(movers, n, movers->dtypes, &w->nest, sizes, 1, values, &form) : NULL;
  if (!mover) return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: no kernel built ahead moves an operand", decision->op->info->name);
  qn_launch_pack(&w->nest, sizes, 1, values, &form, 0, &w->launch);
  w->launch.args[is_input ? 0 : 1] = w->operand[k];
  w->launch.args[is_input ? 1 : 0] = w->chunk[k];
  return put(w, mover);
}

/* The address of a register on the host. */
static char *host_register(const walk *w, const qn_register *reg) {
  if (reg->kind == QN_REGISTER_ONE) return (char *)(w->ones + reg->index);
  if (reg->kind == QN_REGISTER_CONSTANT) return (char *)(uintptr_t)(program_of(w->decision)->constants + reg->index);
  return (char *)(uintptr_t)(w->params->slot + reg->index);
}

static void run_on_host(const walk *w, const qn_step *step) {
  const int64_t extent[3] = {1, 1, 0};
  char *ptr[QN_MAX_OPERANDS];
  int64_t stride[QN_MAX_OPERANDS][2];
  for (int32_t k = 0; k < step->n_registers; k++) {
    ptr[k] = host_register(w, &step->registers[k]);
    stride[k][0] = stride[k][1] = 0;
  }
  step->kernel(ptr, (const int64_t(*)[2])stride, extent, host_register(w, &step->params));
}

/* The number of parameters of a step's op. */
static int32_t n_params_of(const qn_step *step) {
  const uintptr_t at = (uintptr_t)step->variant;
  for (int32_t i = 0; i < qn_n_builtins; i++) {
    const qn_builtin *builtin = &qn_builtins[i];
    const uintptr_t first = (uintptr_t)builtin->variants, end = (uintptr_t)(builtin->variants + builtin->n_variants);
    if (at >= first && at < end) return builtin->info.n_params;
  }
  return 0;
}

static void fill_nest(walk *w, int32_t n_operands) {
  w->nest.rank = w->count > 1;
  w->nest.n_operands = n_operands;
  w->nest.n_elements = w->nest.n[0] = w->count;
}

/* Runs one step's kernel over the chunk: operands are contiguous registers and uniform values. */
static quern_status run_on_device(walk *w, const qn_step *step) {
  const char *why;
  const int fills = is_fill(step);
  const qn_cuda_variant *kernel = kernel_of(step, w->facts->capability, &why);
  if (!kernel) return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: %s", w->decision->op->info->name, why);
  const int32_t first = fills ? 1 : 0, n = step->n_registers - first, n_params = fills ? 1 : n_params_of(step);
  uint8_t sizes[QN_MAX_OPERANDS];
  uint64_t at[QN_MAX_OPERANDS];
  uint32_t values = 0;
  qn_launch_form form = {.rank = 1, .n_operands = (uint8_t)n};
  fill_nest(w, n);
  for (int32_t k = 0; k < n; k++) {
    const qn_register *reg = &step->registers[first + k];
    const int is_operand = reg->kind == QN_REGISTER_OPERAND, is_temp = reg->kind == QN_REGISTER_TEMP;
    sizes[k] = qn_dtype_infos[step->variant->dtypes[first + k]].size;
    form.classes[k] = kernel->classes[k];
    w->nest.stride[k][0] = is_operand || is_temp ? sizes[k] : 0;
    at[k] = is_operand ? w->chunk[reg->index] : is_temp ? w->temps[reg->index] : 0;
    if (is_operand || is_temp) continue;
    values |= 1u << k;
    memcpy(&at[k], host_register(w, reg), sizes[k]);
  }
  qn_launch_pack(&w->nest, sizes, step->n_out, values, &form, n_params, &w->launch);
  memcpy(w->launch.args, at, (size_t)n * sizeof at[0]);
  uint64_t *param = w->launch.args + w->launch.at_params;
  if (fills) {
    *param = 0;
    memcpy(param, host_register(w, &step->registers[0]), sizes[0]);
  } else if (n_params) {
    memcpy(param, host_register(w, &step->params), (size_t)n_params * sizeof *param);
  }
  return put(w, kernel);
}

static quern_status run_chunk(walk *w) {
  const qn_decision *decision = w->decision;
  const qn_program *program = program_of(decision);
  quern_status status = QUERN_OK;
  for (int32_t k = 0; k < decision->n_in && !status; k++)
    if (!is_direct(decision, k)) status = move(w, k);
  for (int32_t i = 0; i < program->n_steps && !status; i++) {
    const qn_step *step = &program->steps[i];
    if (step->single)
      run_on_host(w, step);
    else
      status = run_on_device(w, step);
  }
  for (int32_t k = decision->n_in; k < decision->n_operands && !status; k++)
    if (!is_direct(decision, k)) status = move(w, k);
  return status;
}

/* Divides the workspace among the copies and temporaries, for chunks of n_elements. */
static void lay_out(walk *w, uint64_t workspace, int64_t n_elements) {
  const qn_program *program = program_of(w->decision);
  uint64_t at = workspace;
  for (int32_t i = 0; i < program->n_temps + w->decision->n_operands; i++) {
    const int32_t k = i - program->n_temps;
    if (k >= 0 && is_direct(w->decision, k)) continue;
    at = (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *(k < 0 ? &w->temps[i] : &w->chunk[k]) = at;
    at += (uint64_t)(n_elements * (k < 0 ? temp_size(program, i) : compute_size_of(w->decision, k)));
  }
}

/* Runs all chunks; a dry run: one of each length. */
static quern_status run_chunks(walk *w, const uint64_t *args, int64_t rows) {
  const qn_nest *nest = &w->decision->nest;
  int64_t at[QUERN_MAX_NDIM] = {0}, inner = 1;
  for (int32_t d = 0; d < w->split; d++) inner *= nest->n[d];
  for (;;) {
    const int64_t left = nest->rank ? nest->n[w->split] - at[w->split] : 1;
    w->rows = left < rows ? left : rows;
    w->count = inner * w->rows;
    for (int32_t k = 0; k < nest->n_operands; k++) {
      const int is_value = qn_cuda_values(w->decision) >> k & 1;
      w->operand[k] = args ? args[k] : 0;
      for (int32_t d = w->split; d < nest->rank && !is_value; d++) w->operand[k] += (uint64_t)(at[d] * nest->stride[k][d]);
      if (is_direct(w->decision, k)) w->chunk[k] = w->operand[k];
    }
    quern_status status = run_chunk(w);
    if (status || !nest->rank) return status;
    int32_t d = w->split;
    at[d] += w->is_dry && w->rows == rows && left / rows > 1 ? (left - 1) / rows * rows : w->rows;
    while (at[d] >= nest->n[d]) {
      at[d] = 0;
      if (++d == nest->rank || w->is_dry) return QUERN_OK;
      at[d]++;
    }
  }
}

quern_status qn_cuda_steps_run(const qn_decision *decision, const qn_cuda_facts *facts, const qn_cuda_scope *scope, void *stream,
                               const uint64_t *args, const qn_params *params, void *workspace, size_t bytes) {
  const qn_program *program = program_of(decision);
  const char *name = decision->op->info->name;
  const int kept_errno = errno;
  qn_cuda_chunks chunks;
  int64_t rows;
  const char *why = qn_cuda_steps_refuse(decision, facts->capability, bytes, &chunks);
  if (why) return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: %s", name, why);
  const size_t n_words = (size_t)(program->n_temps + program->n_ones);
  walk *w = calloc(1, sizeof *w + n_words * sizeof(uint64_t));
  errno = kept_errno;
  if (!w) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", name);
  w->decision = decision;
  w->facts = facts;
  w->scope = scope;
  w->stream = stream;
  w->params = params;
  w->temps = (uint64_t *)(w + 1);
  w->ones = w->temps + program->n_temps;
  cut_nest(&decision->nest, chunks.n_elements, &w->split, &rows);
  lay_out(w, (uint64_t)(uintptr_t)workspace, chunks.n_elements);
  w->is_dry = 1;
  quern_status status = run_chunks(w, args, rows);
  w->is_dry = 0;
  if (status == QUERN_OK && args) status = run_chunks(w, args, rows);
  free(w);
  return status;
}
