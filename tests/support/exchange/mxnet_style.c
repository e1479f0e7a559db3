/* SPDX-License-Identifier: Apache-2.0
 *
 * mxnet_style.c: see mxnet_style.h. */
#include "mxnet_style.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_chunks, n_tensors;

/* ---- Storage ---- */

struct mx_chunk {
  char *memory;
  int n_references;
  DLManagedTensor taken; /* a copy; deleter NULL: the memory is its own, or is not to be freed */
  int is_taken;
};

static mx_chunk *chunk_make(size_t bytes) {
  mx_chunk *chunk = calloc(1, sizeof *chunk);
  chunk->memory = calloc(1, bytes ? bytes : 1);
  chunk->n_references = 1;
  pthread_mutex_lock(&lock);
  n_chunks++;
  pthread_mutex_unlock(&lock);
  return chunk;
}

static mx_chunk *chunk_take(const DLManagedTensor *tensor) {
  mx_chunk *chunk = chunk_make(0);
  free(chunk->memory);
  chunk->memory = (char *)tensor->dl_tensor.data + tensor->dl_tensor.byte_offset;
  chunk->taken = *tensor;
  chunk->is_taken = 1;
  return chunk;
}

static mx_chunk *chunk_retain(mx_chunk *chunk) {
  pthread_mutex_lock(&lock);
  chunk->n_references++;
  pthread_mutex_unlock(&lock);
  return chunk;
}

static void chunk_release(mx_chunk *chunk) {
  pthread_mutex_lock(&lock);
  const int is_last = --chunk->n_references == 0;
  n_chunks -= is_last;
  pthread_mutex_unlock(&lock);
  if (!is_last) return;
  if (!chunk->is_taken) free(chunk->memory);
  if (chunk->is_taken && chunk->taken.deleter) chunk->taken.deleter(&chunk->taken);
  free(chunk);
}

/* ---- Arrays ---- */

static const struct { uint8_t code, bits; } types[] = {[MX_F32] = {kDLFloat, 32}, [MX_F64] = {kDLFloat, 64},
                                                       [MX_F16] = {kDLFloat, 16}, [MX_U8] = {kDLUInt, 8},
                                                       [MX_I32] = {kDLInt, 32},   [MX_I8] = {kDLInt, 8},
                                                       [MX_I64] = {kDLInt, 64},   [MX_BOOL] = {kDLBool, 8}};

static mx_ndarray *array_of(mx_chunk *chunk, int64_t offset, mx_dtype dtype, int ndim, const int64_t *shape) {
  mx_ndarray *array = calloc(1, sizeof *array);
  *array = (mx_ndarray){.chunk = chunk, .offset = offset, .ndim = ndim, .dtype = dtype};
  if (ndim) memcpy(array->shape, shape, (size_t)ndim * sizeof *shape);
  return array;
}

mx_ndarray *mx_ndarray_make(mx_dtype dtype, int ndim, const int64_t *shape) {
  size_t bytes = types[dtype].bits / 8;
  for (int i = 0; i < ndim; i++) bytes *= (size_t)shape[i];
  return array_of(chunk_make(bytes), 0, dtype, ndim, shape);
}

mx_ndarray *mx_ndarray_rows(const mx_ndarray *array, int64_t from, int64_t to) {
  int64_t row = types[array->dtype].bits / 8;
  for (int i = 1; i < array->ndim; i++) row *= array->shape[i];
  mx_ndarray *rows = array_of(chunk_retain(array->chunk), array->offset + from * row, array->dtype, array->ndim, array->shape);
  rows->shape[0] = to - from;
  return rows;
}

void mx_ndarray_free(mx_ndarray *array) {
  chunk_release(array->chunk);
  free(array);
}

void *mx_ndarray_data(const mx_ndarray *array) { return array->chunk->memory + array->offset; }

int mx_ndarray_references(const mx_ndarray *array) {
  pthread_mutex_lock(&lock);
  const int n = array->chunk->n_references;
  pthread_mutex_unlock(&lock);
  return n;
}

/* ---- DLPack ---- */

/* The array behind a tensor, with the tensor itself: the deleter frees both. */
typedef struct manager {
  mx_ndarray *array;
  DLManagedTensor tensor;
} manager;

static void delete_manager(DLManagedTensor *self) {
  manager *m = self->manager_ctx;
  mx_ndarray_free(m->array);
  memset(m, 0xdd, sizeof *m);
  free(m);
  pthread_mutex_lock(&lock);
  n_tensors--;
  pthread_mutex_unlock(&lock);
}

DLManagedTensor *mx_ndarray_to_dlpack(const mx_ndarray *array, mx_bool_form bools) {
  manager *m = calloc(1, sizeof *m);
  m->array = array_of(chunk_retain(array->chunk), array->offset, array->dtype, array->ndim, array->shape);
  DLDataType dtype = {types[array->dtype].code, types[array->dtype].bits, 1};
  if (array->dtype == MX_BOOL && bools != MX_BOOL_IS_BOOL) dtype.code = kDLUInt;
  if (array->dtype == MX_BOOL && bools == MX_BOOL_IS_U1) dtype.bits = 1;
  m->tensor.dl_tensor = (DLTensor){mx_ndarray_data(array), {kDLCPU, 0}, array->ndim, dtype, m->array->shape, NULL, 0};
  m->tensor.manager_ctx = m;
  m->tensor.deleter = delete_manager;
  pthread_mutex_lock(&lock);
  n_tensors++;
  pthread_mutex_unlock(&lock);
  return &m->tensor;
}

static int dtype_from(DLDataType dtype) {
  if (dtype.lanes != 1) return -1;
  if (dtype.code == kDLUInt && dtype.bits == 1) return MX_BOOL;
  for (int i = MX_F32; i <= MX_BOOL; i++)
    if (types[i].code == dtype.code && types[i].bits == dtype.bits) return i;
  return -1;
}

mx_ndarray *mx_ndarray_from_dlpack(DLManagedTensor *tensor) {
  const DLTensor *t = &tensor->dl_tensor;
  const int dtype = dtype_from(t->dtype);
  int64_t next = 1;
  if (dtype < 0 || t->ndim > MX_NDIM || t->device.device_type != kDLCPU) return NULL;
  for (int i = t->ndim - 1; i >= 0 && t->strides; i--) {
    if (t->shape[i] != 1 && t->strides[i] != next) return NULL; /* compact ones only */
    next *= t->shape[i];
  }
  return array_of(chunk_take(tensor), 0, (mx_dtype)dtype, t->ndim, t->shape);
}

int mx_n_chunks(void) { return n_chunks; }
int mx_n_tensors(void) { return n_tensors; }
