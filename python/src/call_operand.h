/* call_operand.h: a Python object as an operand of one call, and new objects for results of the same kind. The only place that
 * tells kinds of objects apart. */
#ifndef QUERN_PYTHON_CALL_OPERAND_H
#define QUERN_PYTHON_CALL_OPERAND_H

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

/* An operand is had in steps, each for all operands before the next: foreign code may change the objects that others have been
 * borrowed from, so what may run any comes first, and what is borrowed comes last. Each returns 0, or -1 with an exception; the
 * operand is to be released in both cases.
 *
 * operand_take tells the kind, asks whether the tensor is handed over at all, and imports what comes by Python's protocols.
 * index: among info->args. stream: for producers that are told, as quern_call.stream. */
int operand_take(PyObject *object, const quern_op_info *info, int32_t index, void *stream, operand *operand);

/* Reads the tensors that are borrowed. Runs no foreign code, but may leave a doubt. Nothing for numbers. */
int operand_read(operand *operand);

/* Takes a share in a tensor that is borrowed: before foreign code runs, the GIL is released, an object is made. */
int operand_hold(operand *operand);

/* Settles what a CPU's operand without a doubt needs not: asks for what is in doubt, tells producers the stream that the work
 * goes on. Runs foreign code. The operands have been held. */
int operand_settle(operand *operand, void *stream);

/* What an op makes of numbers. */
typedef struct number_rules {
  uint32_t conditions; /* bit k: input k can only be bool */
  uint32_t counts;     /* bit k: input k is a whole number whatever the dtype (ldexp's y): an int beside f16 or bf16 is i64 */
  uint8_t gives_f64;   /* whatever it takes (float_power): numbers are f64 */
} number_rules;

/* Gives the numbers among n inputs, 0-d and on the CPU, the dtype that the others, which have been read, promote to: numbers are
 * weak. A float beside integers is f32, an int beside bools i64. OverflowError, TypeError (there are no others). */
int operand_numbers(operand *operands, int32_t n, const number_rules *rules);

/* In the presence of an exception, which stays, or of none. */
static inline void operand_release(operand *operand) {
  struct DLManagedTensorVersioned *managed = operand->managed;
  if (!managed || !managed->deleter) return;
  if (PyErr_Occurred())
    managed_drop(managed);
  else
    managed->deleter(managed);
}

/* ---- result.c ---- */

/* A result of the kind of `like` (an input that is no number; NULL: there is none): its tensor to be written, in memory that is
 * NumPy's for NumPy, the producer's own by its exchange API, else Quern's. info and index are set. -1: nothing to give up. */
int operand_result(const operand *like, const quern_shape *shape, operand *result);

/* Makes the object, after the call: for other producers by their namespace's from_dlpack, where they have one, else a
 * quern.Array. NULL: an exception; the result is given up in both cases. */
PyObject *operand_wrap(const operand *like, operand *result);
void operand_drop(operand *result);

#endif
