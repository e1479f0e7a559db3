/* SPDX-License-Identifier: Apache-2.0
 *
 * program.c: runs a program over a tile. See program.h. */
#include "run/interpret/program.h"

#include "core/cpu/job.h"

/* The registers of one run. */
typedef struct registers {
  char *const *operand;
  char *ones, *temps;
  int64_t items;
  const uint64_t *params;
} registers;

static char *register_at(const qn_program *program, const qn_register *reg, const registers *at) {
  switch (reg->kind) {
    case QN_REGISTER_OPERAND: return at->operand[reg->index];
    case QN_REGISTER_TEMP: return at->temps + program->temp_before[reg->index] * at->items;
    case QN_REGISTER_ONE: return at->ones + 8 * reg->index;
    case QN_REGISTER_CONSTANT: return (char *)(uintptr_t)(program->constants + reg->index);
    default: return (char *)(uintptr_t)(at->params + reg->index);
  }
}

void qn_program_run(const qn_program *program, char *const *operand, int64_t count, char *ones, char *temps, int64_t items,
                    const void *params) {
  const registers at = {operand, ones, temps, items, params};
  for (int32_t i = 0; i < program->n_steps; i++) {
    const qn_step *step = &program->steps[i];
    const int64_t extent[3] = {step->single ? 1 : count, 1, 0};
    char *ptr[QN_MAX_OPERANDS];
    int64_t stride[QN_MAX_OPERANDS][2];
    for (int32_t k = 0; k < step->n_registers; k++) {
      ptr[k] = register_at(program, &step->registers[k], &at);
      stride[k][0] = step->registers[k].step;
      stride[k][1] = 0;
    }
    step->kernel(ptr, (const int64_t(*)[2])stride, extent, register_at(program, &step->params, &at));
  }
}

void qn_program_compute(const qn_job *job, char *const *first, int64_t count, char *scratch, const void *params) {
  char *operand[QN_MAX_OPERANDS];
  for (int32_t k = 0; k < job->n_operands; k++)
    operand[k] = job->operand[k].packing == QN_PACKING_IN_PLACE ? first[k] : scratch + job->operand[k].block;
  const qn_program *program = (const qn_program *)job->program;
  char *const ones = scratch + job->temps;
  qn_program_run(program, operand, count, ones, ones + qn_program_ones_bytes(program), job->items, params);
}
