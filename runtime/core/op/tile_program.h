/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_program.h: the steps of an interpreted expression, which compute a tile in place of one kernel. Made above the core; a
 * generated tree has none. Constant after it is made; knows no shapes. */
#ifndef QN_TILE_PROGRAM_H
#define QN_TILE_PROGRAM_H

#include "core/base/kernel_abi.h"

struct qn_job;

typedef struct qn_tile_program {
  /* first: the operands' first items of this tile, in the tensors; scratch: of the slice; params: of the call. */
  void (*compute)(const struct qn_job *job, char *const *first, int64_t count, char *scratch, const void *params);
  int32_t n_ones, temp_bytes; /* n_ones: scalar registers, 8 bytes each; temp_bytes: of all temporaries, an element */
  uint32_t in_place;          /* bit k: output k is written after the last read of inputs: straight to the tensor */
  int32_t picoseconds;        /* an element's rough cost */
} qn_tile_program;

#endif
