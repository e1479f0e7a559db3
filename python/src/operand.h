/* operand.h: a Python object as an operand of one call, and new objects for results of the same kind. The only place that
 * tells kinds of objects apart. */
#ifndef QUERN_PYTHON_OPERAND_H
#define QUERN_PYTHON_OPERAND_H

#include "exchange.h"

/* How an object's tensor is had, best first. Kept per type. */
typedef enum operand_kind {
  OPERAND_ARRAY,    /* quern.Array */
  OPERAND_EXCHANGE, /* the type has DLPack's C exchange API */
  OPERAND_NUMPY,    /* numpy.ndarray, by its public layout: no capsule, no NumPy at build time */
  OPERAND_DLPACK,   /* __dlpack__ */
  OPERAND_BUFFER,   /* the buffer protocol */
  OPERAND_NUMBER,   /* int, float, bool: weak, takes the dtype of the other operands */
  OPERAND_NONE
} operand_kind;

typedef struct operand {
  DLTensor *tensor;
  uint64_t flags;      /* DLPack's */
  operand_kind kind;
  PyObject *object;    /* borrowed: the caller's reference outlives the call */
  const DLPackExchangeAPI *api;
  struct DLManagedTensorVersioned *managed; /* held for the call; NULL: the producer's object is enough */
  DLTensor own;        /* where tensor points, unless managed */
  int64_t strides[QUERN_MAX_NDIM];
  uint64_t number[2];  /* a number's value */
} operand;

/* Fills the operand from the object. stream: for producers that are told. -1: an exception, nothing to release. A number's
 * tensor is set later, by operand_number. */
int operand_take(PyObject *object, void *stream, operand *operand);

/* Gives a number its dtype: 0-d, on the CPU. -1: OverflowError, TypeError. */
int operand_number(operand *operand, DLDataType type);

static inline void operand_release(operand *operand) {
  if (operand->managed) quern_managed_release(operand->managed);
}

/* A result of the kind of `like` (an operand that is no number): a new object, and its tensor to be written. NumPy's for
 * NumPy, the producer's own by its exchange API, else a quern.Array; operand_wrap makes the object after the call (an array
 * API namespace's from_dlpack for other producers that have one), operand_drop gives it up. */
int operand_result(const operand *like, const quern_shape *shape, operand *result);
PyObject *operand_wrap(const operand *like, operand *result);
void operand_drop(operand *result);

#endif
