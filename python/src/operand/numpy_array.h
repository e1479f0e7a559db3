/* SPDX-License-Identifier: Apache-2.0
 *
 * numpy_array.h: NumPy's arrays by their public layout in memory, which is faster than a capsule. NumPy is never imported, and
 * not needed to build: it is looked up in sys.modules, and used only if its binary interface is known here (NumPy 1.x since
 * 1.7, 2.x). Knows no ops. */
#ifndef QUERN_PYTHON_NUMPY_ARRAY_H
#define QUERN_PYTHON_NUMPY_ARRAY_H

#include "operand/tensor_operand.h"
#include "types/dtypes.h"

/* NumPy's kinds of types. */
typedef enum numpy_kind {
  NUMPY_NONE,
  NUMPY_ARRAY,  /* numpy.ndarray, or a subclass without further data */
  NUMPY_MASKED, /* numpy.ma.MaskedArray: its mask would be lost */
  NUMPY_SCALAR  /* numpy.generic */
} numpy_kind;

/* No exception. */
numpy_kind numpy_kind_of(PyTypeObject *type);

/* The array's tensor and flags, from its memory; shape and strides are copied. -1: TypeError (its dtype), BufferError. */
int numpy_read(operand *operand);

/* Makes a result a new numpy.ndarray, uninitialised, of that shape and dense with its strides. -1: an exception. Only after
 * numpy_kind_of has found NumPy. */
int numpy_make(const dtype_row *dtype, const quern_shape *shape, operand *result);

#endif
