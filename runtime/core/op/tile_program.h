/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_program.h: what computes a tile in place of one kernel: an expression's steps. Made above the core; in a generated tree there
 * is none. Never changed after it is made; knows no shapes. */
#ifndef QN_TILE_PROGRAM_H
#define QN_TILE_PROGRAM_H

#include "core/base/kernel_abi.h"

/* Where the values of a tile are. */
typedef struct qn_tile_values {
  int64_t count, room;             /* items of the tile; items that temporaries have room for */
  char *ones, *temps;              /* in the slice's scratch: values of 8 bytes, one for the whole tile; blocks */
  const void *params;              /* of the call, converted: 8 bytes each */
  char *operand[QN_MAX_OPERANDS];  /* their blocks, or the tensors themselves */
} qn_tile_values;

typedef struct qn_tile_program {
  void (*compute)(const struct qn_tile_program *program, const qn_tile_values *values);
  int32_t n_ones, temp_bytes; /* n_ones: words of 8 bytes; temp_bytes: of all temporaries, an element */
  uint32_t in_place;          /* bit k: output k is written when no input is read any more: it may be the tensor itself */
  int32_t picoseconds;        /* roughly what an element takes */
} qn_tile_program;

#endif
