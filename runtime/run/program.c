/* SPDX-License-Identifier: Apache-2.0
 *
 * program.c: runs a program over a tile. See program.h. */
#include "run/program.h"

#include "core/cpu/job.h"

/* The current tile. */
typedef struct tile {
  const qn_job *job;
  char *const *first;
  char *scratch;
  const uint64_t *params;
} tile;

static char *register_at(const qn_program *program, const qn_register *reg, const tile *at) {
  const qn_job *job = at->job;
  const qn_operand *operand;
  switch (reg->kind) {
    case QN_REGISTER_OPERAND:
      operand = &job->operand[reg->index];
      return operand->packing == QN_PACKING_IN_PLACE ? at->first[reg->index] : at->scratch + operand->block;
    case QN_REGISTER_TEMP:
      return at->scratch + job->temps + qn_program_ones_bytes(program) + (int64_t)program->temp_before[reg->index] * job->items;
    case QN_REGISTER_ONE: return at->scratch + job->temps + 8 * reg->index;
    case QN_REGISTER_CONSTANT: return (char *)(uintptr_t)(program->constants + reg->index);
    default: return (char *)(uintptr_t)(at->params + reg->index);
  }
}

void qn_program_compute(const qn_job *job, char *const *first, int64_t count, char *scratch, const void *params) {
  const qn_program *program = (const qn_program *)job->program;
  const tile at = {job, first, scratch, params};
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
