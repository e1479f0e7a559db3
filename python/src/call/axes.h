/* SPDX-License-Identifier: Apache-2.0
 *
 * axes.h: the argument axis= of reducing ops: an int, a tuple of ints or None, as the bit mask that the library takes. Knows no
 * operands. */
#ifndef QUERN_PYTHON_AXES_H
#define QUERN_PYTHON_AXES_H

#include <quern/quern.h>

#include "base/limited.h"

typedef enum axis_kind {
  AXIS_DEFAULT, /* not given */
  AXIS_ALL,     /* None */
  AXIS_GIVEN    /* these; () is none */
} axis_kind;

typedef struct axis_request {
  axis_kind kind;
  uint32_t from_start; /* bit k: axis k */
  uint32_t from_end;   /* bit k: axis -1-k */
  PyObject *beyond;    /* borrowed: the first one that no tensor has; NULL */
} axis_request;

/* Reads what was given as axis=. name: of the op, for messages. -1: TypeError, ValueError (an axis that is there twice). */
int axes_take(PyObject *value, const char *name, axis_request *request);

/* The bits of the axes of ndim dimensions, by a request that was not left out. -1: ValueError. */
int axes_mask(const axis_request *request, const char *name, int32_t ndim, int64_t *mask);

#endif
