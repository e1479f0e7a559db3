/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_operand.h: a Python object as an operand of one call: where its tensor is, and who holds it. How it got there is in
 * call_operand.c, numpy_array.c, number.c and result.c. */
#ifndef QUERN_PYTHON_OPERAND_H
#define QUERN_PYTHON_OPERAND_H

#include "holder.h"
#include "limited.h"

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

/* What is still to be asked, by foreign code, of a tensor that was borrowed. */
typedef enum operand_doubt {
  OPERAND_SURE,
  OPERAND_LAZY,   /* it may be a view that negates or conjugates what is in its memory */
  OPERAND_REFUSED /* the exchange API had none: __dlpack__ has the last word */
} operand_doubt;

typedef struct operand {
  DLTensor *tensor;
  uint64_t flags; /* DLPack's */
  operand_kind kind;
  operand_doubt doubt;
  uint8_t makes_numpy; /* results of its kind are NumPy's arrays */
  const quern_op_info *info;
  int32_t index;       /* among info->args: who it is, for messages */
  PyObject *object;    /* borrowed: the caller's reference outlives the call */
  const DLPackExchangeAPI *api;
  void *stream;        /* as the producer was told */
  struct DLManagedTensorVersioned *managed; /* held for the call; NULL: the producer's object is enough */
  DLTensor own;        /* where tensor points, unless managed */
  int64_t shape[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM]; /* of NumPy's arrays */
  union {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    float f32;
    double f64;
  } number;
} operand;

static inline int operand_is_output(const operand *operand) { return operand->index >= operand->info->n_in; }

/* Sets an exception that names the operand, and returns -1. */
int operand_fail(const operand *operand, PyObject *exception, const char *format, ...);

/* In the presence of an exception, which stays, or of none. */
static inline void operand_release(operand *operand) {
  struct DLManagedTensorVersioned *managed = operand->managed;
  if (!managed || !managed->deleter) return;
  if (PyErr_Occurred())
    managed_drop(managed);
  else
    managed->deleter(managed);
}

#endif
