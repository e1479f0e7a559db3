/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_image.h: a CUDA kernel's machine code: from NVRTC, with a header for the disk cache that is checked when it is read; or
 * in a file of kernels built by nvcc. Loaded by the driver into contexts on demand. Knows no tensors and no launches. */
#ifndef QN_CUDA_IMAGE_H
#define QN_CUDA_IMAGE_H

#include <stdatomic.h>

#include "base/bytes.h"
#include "cuda/cuda_context.h"

/* ---- The format ---- */

typedef struct qn_cuda_code {
  const char *data; /* a cubin; or PTX with a 0 as its last byte */
  size_t size;
  int32_t is_ptx;
  int32_t capability; /* of the devices it was made for: 90 */
  int32_t items_per_thread;
} qn_cuda_code;

/* data NULL: out of memory. */
qn_bytes qn_cuda_image_pack(const qn_cuda_code *code);

/* 1: the bytes, which may be hostile, are an image of qn_cuda_image_pack; code->data is within them. Else why is a sentence. */
int qn_cuda_image_parse(const char *bytes, size_t size, qn_cuda_code *code, char *why, size_t why_size);

#define QN_CUDA_ITEMS 0xff /* bits of qn_cuda_code.items_per_thread */

/* ---- Images ---- */

typedef struct qn_cuda_image qn_cuda_image;

/* Copies the bytes. symbol: the kernel's name. NULL: why is a sentence. Opens nothing. */
qn_cuda_image *qn_cuda_image_make(const char *bytes, size_t size, const char *symbol, char *why, size_t why_size);

/* NULL is allowed. Does not call the driver: loaded code stays loaded (see cuda_image.c), and is found again by an image of the
 * same bytes. */
void qn_cuda_image_free(qn_cuda_image *image);

/* Of the host's memory. */
size_t qn_cuda_image_size(const qn_cuda_image *image);

/* A fatbin of several kernels, which is loaded once for all of them: as one library for the process or, if the driver has no
 * libraries, as a module per context. Never freed. */
typedef struct qn_cuda_shelf {
  const char *path;
  _Atomic(qn_cuda_library) library;
  _Atomic(struct qn_shelf_module *) modules;
} qn_cuda_shelf;

/* The image of one of its kernels; never freed. Both strings are borrowed for good. Opens nothing. NULL: out of memory. */
qn_cuda_image *qn_cuda_image_of_shelf(qn_cuda_shelf *shelf, const char *symbol, int32_t items_per_thread);

/* A kernel in one context. */
typedef struct qn_cuda_kernel_info {
  qn_cuda_function function;
  int32_t items_per_thread, registers, local_bytes, shared_bytes; /* items, registers, bytes per thread; bytes per block */
  int32_t dynamic_bytes;             /* of shared memory, which a launch may ask for beside shared_bytes */
  int32_t blocks_per_multiprocessor; /* of `block` threads each */
} qn_cuda_kernel_info;

/* The items per thread alone: of an expression that reduces, the number says more (gen/targets/cuda/rows.lua). */
static inline int32_t qn_cuda_items(const qn_cuda_kernel_info *kernel) { return kernel->items_per_thread & QN_CUDA_ITEMS; }

/* The kernel in the scope's context; static. NULL: it is not loaded there. block: threads per block. Takes no lock and does not
 * call the driver. */
const qn_cuda_kernel_info *qn_cuda_image_find(qn_cuda_image *image, const qn_cuda_scope *scope, int32_t block);

/* The same, loaded first if needed; not to be called while the stream is being captured. Errors: COMPILER (the device cannot run
 * it), IO (a shelf's file is missing or damaged), MEMORY, DEVICE, DRIVER. errno is kept. */
quern_status qn_cuda_image_load(qn_cuda_image *image, const qn_cuda_scope *scope, int32_t block,
                                const qn_cuda_kernel_info **info);

#endif
