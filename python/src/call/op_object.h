/* SPDX-License-Identifier: Apache-2.0
 *
 * op_object.h: quern.Op as a C object, for the binding of arguments and the call. Its Python type is in op.c. */
#ifndef QUERN_PYTHON_OP_OBJECT_H
#define QUERN_PYTHON_OP_OBJECT_H

#include <quern/quern.h>

#include "base/limited.h"
#include "call/memo.h"
#include "operand/number.h"

/* The library's limit of operands per op. */
#define OP_MAX_OPERANDS 32
#define OP_MAX_PARAMS 16

typedef struct op_object {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject *weak_references;
  quern_op *op;              /* owned */
  const quern_op_info *info; /* of op */
  PyObject *names;           /* tuple of str, interned: inputs, then parameters; "axis" for that of the axes */
  PyObject *signature;       /* an inspect.Signature, made when first asked for; NULL */
  number_rules numbers;
  uint8_t may_compile;       /* a call may have to wait for a compiler */
  uint8_t reduces_all;       /* of a reducing op: its axes are by default all, not the last one */
  uint8_t scans;             /* it runs along exactly one axis */
  int32_t axes, keepdims, initial; /* the parameters of these roles; -1: it has none */
  PyObject *origin;          /* owned: what pickling and repr must know beside info: see context.c; NULL: nothing */
  memo memo;
  memo_words last;
} op_object;

#endif
