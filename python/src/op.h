/* op.h: quern.Op, an op as a callable. */
#ifndef QUERN_PYTHON_OP_H
#define QUERN_PYTHON_OP_H

#include <quern/quern.h>

#include "call_operand.h"
#include "limited.h"
#include "memo.h"

/* What an op of the library has at most. */
#define OP_MAX_OPERANDS 32
#define OP_MAX_PARAMS 16

typedef struct op_object {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject *weak_references;
  quern_op *op;              /* owned */
  const quern_op_info *info; /* of op */
  PyObject *names;           /* tuple of str, interned: inputs, then parameters */
  PyObject *signature;       /* an inspect.Signature, made when first asked for; NULL */
  number_rules numbers;
  uint8_t may_compile;       /* a call may have to wait for a compiler */
  memo memo;
} op_object;

/* A new quern.Op, which takes the op over. NULL: an exception, and the op has been released. */
PyObject *op_new(quern_op *op, int may_compile);
int op_check(PyObject *object);

/* Makes the type and adds it to the module. -1: an exception. */
int op_add(PyObject *module);

#endif
