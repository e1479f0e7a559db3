/* SPDX-License-Identifier: Apache-2.0
 *
 * producers.h: managed tensors of a test's own, of either form, that count how often they are deleted and are unusable
 * afterwards. Header-only, as tensors.h. */
#ifndef QUERN_TESTS_PRODUCERS_H
#define QUERN_TESTS_PRODUCERS_H

#include <pthread.h>
#include <stdatomic.h>

#include "quern/dlpack_exchange.h"
#include "tensors.h"

enum { PRODUCER_NDIM = QUERN_MAX_NDIM + 2 };

typedef struct producer {
  struct DLManagedTensorVersioned versioned;
  DLManagedTensor legacy;
  int64_t shape[PRODUCER_NDIM], strides[PRODUCER_NDIM];
  atomic_int n_deleted;
  pthread_t deleted_by;
  const char *says; /* what its deleter sets the last error to */
} producer;

UNUSED static void deleted(producer *p) {
  p->deleted_by = pthread_self();
  if (p->says) quern_set_last_error(p->says);
  /* Nothing in there may be used any more. */
  memset(&p->versioned, 0xdd, sizeof p->versioned);
  memset(&p->legacy, 0xdd, sizeof p->legacy);
  memset(p->shape, 0xdd, sizeof p->shape);
  memset(p->strides, 0xdd, sizeof p->strides);
  p->n_deleted++;
}
UNUSED static void delete_produced(struct DLManagedTensorVersioned *self) { deleted(self->manager_ctx); }
UNUSED static void delete_produced_legacy(DLManagedTensor *self) { deleted(self->manager_ctx); }

/* Both forms of one tensor, of which one is to be used; shape and strides are copied. strides NULL: it has none. */
UNUSED static void produce(producer *p, void *data, DLDataType dtype, int ndim, const int64_t *shape, const int64_t *strides) {
  memset(p, 0, sizeof *p);
  if (ndim > 0 && shape) memcpy(p->shape, shape, (size_t)ndim * sizeof *shape);
  if (ndim > 0 && strides) memcpy(p->strides, strides, (size_t)ndim * sizeof *strides);
  const DLTensor tensor = {data, {kDLCPU, 0}, ndim, dtype, p->shape, strides ? p->strides : NULL, 0};
  p->versioned = (struct DLManagedTensorVersioned){{1, 3}, p, delete_produced, 0, tensor};
  p->legacy = (DLManagedTensor){tensor, p, delete_produced_legacy};
}

UNUSED static quern_operand versioned_operand(producer *p, int consume) {
  return (quern_operand){QUERN_OPERAND_VERSIONED, consume, {.versioned = &p->versioned}};
}
UNUSED static quern_operand legacy_operand(producer *p, int consume) {
  return (quern_operand){QUERN_OPERAND_LEGACY, consume, {.legacy = &p->legacy}};
}
UNUSED static quern_operand bare_operand(DLTensor *tensor) {
  return (quern_operand){QUERN_OPERAND_TENSOR, 0, {.tensor = tensor}};
}

/* As `release` of quern_managed_wrap: counts. */
UNUSED static void count_release(void *owner) { ++*(atomic_int *)owner; }

UNUSED static const DLDataType a_f32 = {kDLFloat, 32, 1}, an_i32 = {kDLInt, 32, 1}, a_u8 = {kDLUInt, 8, 1},
                               a_bool = {kDLBool, 8, 1}, a_bit = {kDLUInt, 1, 1};

UNUSED static int same_dtype(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

#endif
