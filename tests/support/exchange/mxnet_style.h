/* SPDX-License-Identifier: Apache-2.0
 *
 * mxnet_style.h: an array library as those from before DLPack 1.0 are: NDArrays that share reference-counted chunks, and hand
 * them out and take them in as legacy managed tensors. Strides are NULL, bools are bits by name, a consumer keeps a copy of the
 * struct and calls the deleter with that. Knows DLPack, not Quern. */
#ifndef QUERN_TESTS_MXNET_STYLE_H
#define QUERN_TESTS_MXNET_STYLE_H

#include "quern/dlpack.h"

/* The numbers of its dtypes. */
typedef enum mx_dtype { MX_F32, MX_F64, MX_F16, MX_U8, MX_I32, MX_I8, MX_I64, MX_BOOL } mx_dtype;

enum { MX_NDIM = 6 };

typedef struct mx_chunk mx_chunk;
typedef struct mx_ndarray {
  mx_chunk *chunk;
  int64_t offset; /* bytes into the chunk */
  int ndim;
  int64_t shape[MX_NDIM];
  mx_dtype dtype;
} mx_ndarray;

/* How a bool is written: it has changed over the years. */
typedef enum mx_bool_form { MX_BOOL_IS_U1, MX_BOOL_IS_U8, MX_BOOL_IS_BOOL } mx_bool_form;

/* Arrays are compact, and each is one reference to its chunk. */
mx_ndarray *mx_ndarray_make(mx_dtype dtype, int ndim, const int64_t *shape);
mx_ndarray *mx_ndarray_rows(const mx_ndarray *array, int64_t from, int64_t to); /* the same chunk */
void mx_ndarray_free(mx_ndarray *array);
void *mx_ndarray_data(const mx_ndarray *array);
int mx_ndarray_references(const mx_ndarray *array);

/* Out: one more reference, until the deleter is called. */
DLManagedTensor *mx_ndarray_to_dlpack(const mx_ndarray *array, mx_bool_form bools);

/* In: the tensor's memory is the array's chunk; its deleter is called with the last reference. NULL: refused, and the tensor is
 * still the caller's. */
mx_ndarray *mx_ndarray_from_dlpack(DLManagedTensor *tensor);

/* How many chunks and tensors there are now; what it would leave behind. */
int mx_n_chunks(void);
int mx_n_tensors(void);

#endif
