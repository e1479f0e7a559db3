/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.h: from a loop nest to the launch of a CUDA kernel: the kernel's form, its packed arguments, its
 * grid. Knows no driver and no pointers. For the use of the arguments in kernels see docs/internals/cuda-kernel.md. */
#ifndef QN_LAUNCH_H
#define QN_LAUNCH_H

#include "core/tensor/tensor.h"

/* The most arguments of a kernel, in fields of 8 bytes: 4 KB, which every driver accepts. */
#define QN_LAUNCH_ARGS 512

/* Threads of every block, as in the templates' __launch_bounds__. */
#define QN_LAUNCH_THREADS 256

/* A CUDA kernel built ahead of time. Its arguments: qn_launch.args. */
typedef struct qn_cuda_variant {
  const char *name;       /* "qc_add_f32_f32_f32_2d_ccc_i64" */
  const uint8_t *dtypes;  /* qn_dtype per operand, of the tensors */
  const uint8_t *classes; /* qn_class per operand */
  uint8_t rank;           /* 1, 2, 3; 0 = any up to qn_launch_max_rank */
  uint8_t is_wide;        /* 1: 64-bit indices */
  uint8_t items_per_thread; /* in one step of its grid-stride loop */
  const void *function;   /* for cudaLaunchKernel */
} qn_cuda_variant;

/* The form of an op's kernel: the part of its name after the dtypes. */
typedef struct qn_launch_form {
  uint8_t rank;    /* 1, 2, 3; 0: any up to qn_launch_max_rank */
  uint8_t is_wide; /* 1: 64-bit indices; 0: items and extents below 2^31 and strides of an int32_t; offsets of any size */
  uint8_t n_operands;
  uint8_t classes[QN_MAX_OPERANDS]; /* qn_class */
} qn_launch_form;

typedef struct qn_launch {
  qn_launch_form form;
  uint8_t is_tiled;  /* blocks of 32 x 8 threads over tiles; else of 256 x 1 */
  uint32_t item_elements; /* elements of an item, which is a tile if is_tiled */
  uint64_t n_items;
  uint32_t shared_bytes; /* that the launch asks for */
  int32_t n_args;    /* fields in use: the kernel's whole struct */
  int32_t at_params; /* where the parameters begin; the addresses are the first n_operands fields */
  /* The dimensions that a kernel of rank 0 has no room for: the launch is repeated over them, with addresses advanced by the
   * strides. A value's strides are 0: its bits do not change. */
  int32_t repeat_rank;
  int64_t repeat_n[QUERN_MAX_NDIM];
  int64_t repeat_stride[QN_MAX_OPERANDS][QUERN_MAX_NDIM]; /* bytes */
  uint64_t args[QN_LAUNCH_ARGS];
} qn_launch;

/* The most dimensions that a kernel of rank 0 takes. */
int32_t qn_launch_max_rank(int32_t n_operands);

/* Chooses the best form of a kernel made for a nest with elements. sizes: bytes an item; 0: the positions of an index op, which
 * are in no memory and always of class b. values: bit k: input k is one value: its strides are 0, its class is b (in kernels
 * built ahead also s), and its argument is not an address but its bits, zero-extended to 8 bytes. Addresses and nest->ref are
 * not read. */
void qn_launch_choose(const qn_nest *nest, const uint8_t *sizes, int32_t n_out, uint32_t values, qn_launch_form *form);

/* The first of an op's kernels for these dtypes. variants: built ahead, sorted by dtypes. *n: the number of kernels for them. */
const qn_cuda_variant *qn_launch_of_dtypes(const qn_cuda_variant *variants, int32_t n_variants, const uint8_t *dtypes,
                                           int32_t n_operands, int32_t *n);

/* Picks the best kernel built ahead that can run the nest with these dtypes, and its form; the first of equals. A kernel of rank
 * 1, 2 or 3 runs no nest of more dimensions, one with 32-bit indices none that is too large for them. Returns NULL, with *form
 * unchanged, if there is none. */
const qn_cuda_variant *qn_launch_pick(const qn_cuda_variant *variants, int32_t n_variants, const uint8_t *dtypes,
                                      const qn_nest *nest, const uint8_t *sizes, int32_t n_out, uint32_t values,
                                      qn_launch_form *form);

/* Packs all but addresses and parameters, for a form from qn_launch_choose or qn_launch_pick for this nest. Fields of *launch
 * that no kernel reads, such as unused extents, are not written. Outputs of 32 MiB or more together are streamed. */
void qn_launch_pack(const qn_nest *nest, const uint8_t *sizes, int32_t n_out, uint32_t values, const qn_launch_form *form,
                    int32_t n_params, qn_launch *launch);

/* The two fields of fast division by d, which is above 0: see q_fast_divide of kernel_items.h. */
void qn_launch_divisor(uint64_t d, int is_wide, uint64_t by[2]);

/* Whether the outputs are written past the cache. */
int qn_launch_is_streamed(const qn_launch *launch);

/* The shape of a block of threads. */
void qn_launch_block(const qn_launch *launch, uint32_t *x, uint32_t *y);

/* The blocks of the grid, at least 1: as many as there is work for; if that exceeds `resident`, a number that gives all blocks
 * the same work, but for the last step. items_per_thread: in one step of the grid-stride loop (1 for tiles: a block takes one);
 * resident: the number of blocks that the device runs at once. */
uint32_t qn_launch_grid(const qn_launch *launch, uint32_t items_per_thread, uint32_t resident);

/* The same of a launch of other items. */
uint32_t qn_launch_grid_of(const qn_launch *launch, uint64_t n_items, uint32_t items_per_thread, uint32_t resident);

#endif
