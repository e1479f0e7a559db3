/* SPDX-License-Identifier: Apache-2.0
 *
 * program.c: runs a program over a tile. See program.h. */
#include "run/program.h"

static char *register_at(const qn_program *program, const qn_register *reg, const qn_tile_values *values) {
  switch (reg->kind) {
    case QN_REGISTER_OPERAND: return values->operand[reg->index];
    case QN_REGISTER_TEMP: return values->temps + (int64_t)program->temp_before[reg->index] * values->room;
    case QN_REGISTER_ONE: return values->ones + 8 * reg->index;
    case QN_REGISTER_CONSTANT: return (char *)(uintptr_t)(program->constants + reg->index);
    default: return (char *)(uintptr_t)((const uint64_t *)values->params + reg->index);
  }
}

void qn_program_compute(const qn_tile_program *head, const qn_tile_values *values) {
  const qn_program *program = (const qn_program *)head;
  for (int32_t i = 0; i < program->n_steps; i++) {
    const qn_step *step = &program->steps[i];
    const int64_t extent[3] = {step->single ? 1 : values->count, 1, 0};
    char *ptr[QN_MAX_OPERANDS];
    int64_t stride[QN_MAX_OPERANDS][2];
    for (int32_t k = 0; k < step->n_registers; k++) {
      ptr[k] = register_at(program, &step->registers[k], values);
      stride[k][0] = step->registers[k].step;
      stride[k][1] = 0;
    }
    step->kernel(ptr, (const int64_t(*)[2])stride, extent, register_at(program, &step->params, values));
  }
}
