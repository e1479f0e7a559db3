/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.h: from a loop nest to the launch of a CUDA kernel: how the operands are run over, the kernel's packed arguments, its
 * grid. Knows no driver and no pointers. What a kernel does with its arguments is said in docs/internals/cuda-kernel.md. */
#ifndef QN_LAUNCH_H
#define QN_LAUNCH_H

#include "core/tensor/tensor.h"

/* The arguments of any kernel, in fields of 8 bytes: 4 KB, what every driver takes. */
#define QN_LAUNCH_ARGS 512

/* Threads of every block: what the templates' __launch_bounds__ says. */
#define QN_LAUNCH_THREADS 256

/* One CUDA kernel built ahead: what it is given follows below. */
typedef struct qn_cuda_variant {
  const char *name;       /* "qc_add_f32_f32_f32_2d_ccc_i64" */
  const uint8_t *dtypes;  /* qn_dtype per operand, as the tensors have it */
  const uint8_t *classes; /* qn_class per operand */
  uint8_t rank;           /* 1, 2, 3; 0 = any up to qn_launch_max_rank */
  uint8_t is_wide;        /* 1: counts in 64 bits */
  uint8_t items_per_thread; /* in one step of its grid-stride loop */
  const void *function;   /* what the CUDA runtime launches */
} qn_cuda_variant;

/* Which kernel of an op: what is after the dtypes in its name. */
typedef struct qn_launch_form {
  uint8_t rank;    /* 1, 2, 3; 0: any up to qn_launch_max_rank */
  uint8_t is_wide; /* counts in 64 bits; others take items and extents below 2^31, and strides of an int32_t, at any offset */
  uint8_t n_operands;
  uint8_t classes[QN_MAX_OPERANDS]; /* qn_class */
} qn_launch_form;

typedef struct qn_launch {
  qn_launch_form form;
  uint8_t is_tiled;  /* blocks of 32 x 8 threads over tiles; else of 256 x 1 */
  uint32_t item_elements; /* elements of an item; of a tile */
  uint64_t n_items;
  int32_t n_args;    /* fields in use: the kernel's whole struct */
  int32_t at_params; /* where the parameters begin; the addresses are the first n_operands fields */
  /* What a kernel of rank 0 has no room for: the launch is repeated over these dimensions, every address moved on by the
   * strides. Those of a value are 0: its bits stay. */
  int32_t repeat_rank;
  int64_t repeat_n[QUERN_MAX_NDIM];
  int64_t repeat_stride[QN_MAX_OPERANDS][QUERN_MAX_NDIM]; /* bytes */
  uint64_t args[QN_LAUNCH_ARGS];
} qn_launch;

/* The most dimensions that a kernel of rank 0 takes. */
int32_t qn_launch_max_rank(int32_t n_operands);

/* How the operands of a nest, which has elements, are best run over by a kernel made for it. sizes: bytes an item; 0: the
 * indices of an index op, which are in no memory: of class b, whatever their strides. values: bit k: input k is one value, whose
 * strides are 0, and which is passed in the arguments (its bits, the rest of the 8 bytes 0, instead of an address): of class b,
 * of kernels built ahead also s. No address is looked at, nor are nest->ptr. */
void qn_launch_choose(const qn_nest *nest, const uint8_t *sizes, int32_t n_out, uint32_t values, qn_launch_form *form);

/* The first of an op's kernels built ahead, sorted by dtypes, that take these; *n: how many there are. */
const qn_cuda_variant *qn_launch_of_dtypes(const qn_cuda_variant *variants, int32_t n_variants, const uint8_t *dtypes,
                                           int32_t n_operands, int32_t *n);

/* The same of kernels built ahead, all of them for other dtypes or these: the best that can run the nest, and its form. Of equal
 * ones the first. A kernel of rank 1, 2 or 3 runs no nest of more dimensions, one for 32 bits none that is too large. NULL: there
 * is none; *form is as it was. */
const qn_cuda_variant *qn_launch_pick(const qn_cuda_variant *variants, int32_t n_variants, const uint8_t *dtypes,
                                      const qn_nest *nest, const uint8_t *sizes, int32_t n_out, uint32_t values,
                                      qn_launch_form *form);

/* Packs all but addresses and parameters, for a form that one of these two has made of the nest. What no kernel reads of
 * *launch, such as extents beyond those in use, stays as it is. Outputs that are 32 MiB and more together are streamed. */
void qn_launch_pack(const qn_nest *nest, const uint8_t *sizes, int32_t n_out, uint32_t values, const qn_launch_form *form,
                    int32_t n_params, qn_launch *launch);

/* Whether its outputs are written past the cache. */
int qn_launch_is_streamed(const qn_launch *launch);

/* How the threads of a block lie. */
void qn_launch_block(const qn_launch *launch, uint32_t *x, uint32_t *y);

/* Blocks of the grid, at least 1: as many as there is work for, or, where that is more than run at once, so many that all have
 * the same to do, but for the last step. items_per_thread: in one step of the grid-stride loop (1 for tiles: a block takes one);
 * resident: blocks that the device runs at once. */
uint32_t qn_launch_grid(const qn_launch *launch, uint32_t items_per_thread, uint32_t resident);

#endif
