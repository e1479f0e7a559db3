/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_program.h: what computes a tile in place of one kernel: an expression's steps. Made above the core; in a generated tree there
 * is none. Never changed after it is made; knows no shapes. */
#ifndef QN_TILE_PROGRAM_H
#define QN_TILE_PROGRAM_H

#include "core/base/kernel_abi.h"

struct qn_job;

typedef struct qn_tile_program {
  /* first: the operands' first items of this tile, in the tensors; scratch, params: the slice's, the call's. */
  void (*compute)(const struct qn_job *job, char *const *first, int64_t count, char *scratch, const void *params);
  int32_t n_ones, temp_bytes; /* n_ones: words of 8 bytes; temp_bytes: of all temporaries, an element */
  uint32_t in_place;          /* bit k: output k is written when no input is read any more: it may be the tensor itself */
  int32_t picoseconds;        /* roughly what an element takes */
} qn_tile_program;

#endif
