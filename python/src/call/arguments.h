/* SPDX-License-Identifier: Apache-2.0
 *
 * arguments.h: binds a call's arguments by position and name. Converts parameters, dtypes and streams; does not look at
 * operands. */
#ifndef QUERN_PYTHON_ARGUMENTS_H
#define QUERN_PYTHON_ARGUMENTS_H

#include "call/axes.h"
#include "call/op_object.h"
#include "types/dtypes.h"

typedef struct arguments {
  PyObject *in[OP_MAX_OPERANDS];  /* borrowed; all are there */
  PyObject *out[OP_MAX_OPERANDS]; /* borrowed; NULL: to be made */
  PyObject *out_given;            /* as it was given: the object of the only output, or a tuple; NULL */
  int32_t n_made;                 /* outputs to be made */
  int32_t is_foreign;             /* set by a call: an operand is of a kind that operand/foreign.h converts */
  const dtype_row *dtype;         /* of these; NULL: as the op infers it */
  void *stream;
  int32_t has_stream;
  int32_t n_params;               /* given, those before them filled up with their defaults */
  quern_scalar params[OP_MAX_PARAMS];
  axis_request axis;              /* of a reducing op; its mask among params is set when the operands are known */
} arguments;

/* Binds the arguments of a vectorcall. -1: an exception. */
int arguments_bind(const op_object *op, PyObject *const *args, Py_ssize_t n, PyObject *keywords, arguments *bound);

/* Makes the interned keywords. -1: an exception. */
int arguments_start(void);

#endif
