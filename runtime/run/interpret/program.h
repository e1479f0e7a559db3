/* SPDX-License-Identifier: Apache-2.0
 *
 * program.h: the program of the blocked interpreter: kernels that run one after the other over a tile of elements. Made for an
 * expression and its dtypes. The engine lays out its registers in a slice's scratch and runs it. Immutable; knows no
 * shapes. */
#ifndef QN_PROGRAM_H
#define QN_PROGRAM_H

#include "core/cpu/job.h"

typedef enum qn_register_kind {
  QN_REGISTER_OPERAND,  /* operand `index` of the job: its block, or the tensor itself */
  QN_REGISTER_TEMP,     /* a block of the slice's own */
  QN_REGISTER_ONE,      /* one value, in the slice's scratch: at word `index`, in `words` words */
  QN_REGISTER_CONSTANT, /* at constants + index */
  QN_REGISTER_SLOT      /* a parameter of the call, converted: at word `index` of qn_params */
} qn_register_kind;

typedef struct qn_register {
  uint8_t kind;
  uint8_t step;  /* bytes from item to item; 0: one item for the whole tile */
  uint8_t words; /* ONE: number of words */
  int32_t index;
} qn_register;

typedef struct qn_step {
  qn_kernel *kernel;
  const qn_variant *variant;
  const qn_register *registers; /* [n_registers]: the kernel's operands, outputs last */
  uint8_t n_registers, n_out;
  uint8_t single; /* runs over one item: its result is uniform in the tile */
  qn_register params; /* where its parameters begin: CONSTANT, ONE or SLOT */
} qn_step;

typedef struct qn_program {
  qn_tile_program head; /* first: the engine's view of it */
  uint32_t signs; /* bit k: a step looks at the sign of a NaN of input k */
  int32_t n_steps, n_temps, n_ones;
  const qn_step *steps;
  const int32_t *temp_before; /* [n_temps + 1]: bytes an element of the temporaries before each, and of all */
  const uint64_t *constants;
} qn_program;

/* Runs the steps over `count` elements. operand: each operand's items; ones, temps: the registers of one value, and the temporaries,
 * which have room for `items` elements. */
void qn_program_run(const qn_program *program, char *const *operand, int64_t count, char *ones, char *temps, int64_t items,
                    const void *params);

/* Bytes of the ONEs of a program, which lie before a tile's temporaries: whole cache lines. */
static inline int32_t qn_program_ones_bytes(const qn_program *program) { return (8 * program->n_ones + 63) / 64 * 64; }

/* As qn_tile_program.compute: the steps over one tile. */
void qn_program_compute(const struct qn_job *job, char *const *first, int64_t count, char *scratch, const void *params);

#endif
