/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_operand.h: a Python object as an operand of one call: its tensor, and the holder of it. Filled in by call_operand.c,
 * numpy_array.c, number.c and result.c. */
#ifndef QUERN_PYTHON_TENSOR_OPERAND_H
#define QUERN_PYTHON_TENSOR_OPERAND_H

#include "base/limited.h"
#include "exchange/holder.h"

/* The ways to take an object's tensor, best first. Cached per type. */
typedef enum operand_kind {
  OPERAND_ARRAY,    /* quern.Array */
  OPERAND_EXCHANGE, /* the type has DLPack's C exchange API */
  OPERAND_NUMPY,    /* numpy.ndarray, by its public layout: no capsule, no NumPy at build time */
  OPERAND_DLPACK,   /* __dlpack__ */
  OPERAND_BUFFER,   /* the buffer protocol */
  OPERAND_NUMBER,   /* int, float, bool: weak, takes the dtype of the other operands */
  OPERAND_NONE
} operand_kind;

/* A question about a borrowed tensor that only foreign code can answer. */
typedef enum operand_doubt {
  OPERAND_SURE,
  OPERAND_LAZY,   /* it may be a view that negates or conjugates its memory */
  OPERAND_REFUSED /* the exchange API refused it: __dlpack__ decides */
} operand_doubt;

typedef struct operand {
  DLTensor *tensor;
  uint64_t flags; /* DLPack's */
  operand_kind kind;
  operand_doubt doubt;
  uint8_t makes_numpy; /* results of this kind are NumPy arrays */
  const quern_op_info *info;
  int32_t index;       /* among info->args, for messages */
  PyObject *object;    /* borrowed: the caller's reference outlives the call */
  const DLPackExchangeAPI *api;
  void *stream;        /* given to the producer */
  struct DLManagedTensorVersioned *managed; /* held for the call; NULL: `object` holds the tensor */
  DLTensor own;        /* where tensor points, unless managed */
  int64_t shape[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM]; /* of NumPy's arrays */
  union {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    float f32;
    double f64;
    char bytes[16];
  } number; /* an item of any dtype */
} operand;

static inline int operand_is_output(const operand *operand) { return operand->index >= operand->info->n_in; }

/* Sets an exception that names the operand, and returns -1. */
int operand_fail(const operand *operand, PyObject *exception, const char *format, ...);

/* Releases the operand. A pending exception is kept. */
static inline void operand_release(operand *operand) {
  struct DLManagedTensorVersioned *managed = operand->managed;
  if (!managed || !managed->deleter) return;
  if (PyErr_Occurred())
    managed_drop(managed);
  else
    managed->deleter(managed);
}

#endif
