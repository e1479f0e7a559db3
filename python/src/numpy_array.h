/* SPDX-License-Identifier: Apache-2.0
 *
 * numpy_array.h: NumPy's arrays by their public layout in memory, for calls that cost less than a capsule. NumPy is never
 * imported and not needed to build: what is used is looked up in sys.modules, and only if its binary interface is one that
 * is known here (NumPy 1.x since 1.7, 2.x). Knows no ops. */
#ifndef QUERN_PYTHON_NUMPY_ARRAY_H
#define QUERN_PYTHON_NUMPY_ARRAY_H

#include "dtypes.h"
#include "tensor_operand.h"

/* What a type is to NumPy. */
typedef enum numpy_kind {
  NUMPY_NONE,
  NUMPY_ARRAY,  /* numpy.ndarray, or a subclass whose memory is all there is to it */
  NUMPY_MASKED, /* numpy.ma.MaskedArray: its mask would be lost */
  NUMPY_SCALAR  /* numpy.generic */
} numpy_kind;

/* No exception. */
numpy_kind numpy_kind_of(PyTypeObject *type);

/* The array's tensor and flags, from its memory; shape and strides are copied. -1: TypeError (its dtype), BufferError. */
int numpy_read(operand *operand);

/* A new numpy.ndarray, not initialised, row-major. NULL: an exception. Only where numpy_kind_of has found one. */
PyObject *numpy_new(const dtype_row *dtype, int32_t ndim, const int64_t *shape);

#endif
