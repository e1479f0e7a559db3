/* SPDX-License-Identifier: Apache-2.0
 *
 * dtypes.h: one table of dtypes: DLPack's code and bits, the names of Quern and the array API, NumPy's type numbers, the
 * buffer protocol's formats. */
#ifndef QUERN_PYTHON_DTYPES_H
#define QUERN_PYTHON_DTYPES_H

#include <quern/dlpack_exchange.h>

#include "base/limited.h"

typedef struct dtype_row {
  const char *name;      /* "f32" */
  const char *long_name; /* "float32" */
  uint8_t code, bits;    /* DLPack's */
  const char *format;    /* the buffer protocol's, native: "f"; NULL: it has none */
  int numpy;             /* NPY_FLOAT ...; -1: NumPy has none */
} dtype_row;

/* NULL: there is none; no exception is set. Formats: with native byte order or none; itemsize decides the length ("l" is 4 or 8
 * bytes). */
const dtype_row *dtype_of(DLDataType type);
const dtype_row *dtype_by_name(const char *name); /* either name */
const dtype_row *dtype_by_format(const char *format, Py_ssize_t itemsize);
const dtype_row *dtype_by_numpy(int number);
static inline DLDataType dtype_dlpack(const dtype_row *row) { return (DLDataType){row->code, row->bits, 1}; }

/* A name for messages: "f32", "(code 9, 8 bits, 4 lanes)". Written into text. */
#define DTYPE_CHARS 48
const char *dtype_text(DLDataType type, char text[DTYPE_CHARS]);

/* The object, such as quern.float32, of a row (a new reference); and the row named by an object: such an object, its names as
 * str, or an object with such a name at its end: numpy.float32, numpy.dtype, torch.float32, Python's bool, int, float. NULL:
 * TypeError. */
PyObject *dtype_object(const dtype_row *row);
const dtype_row *dtype_from_object(PyObject *object);

/* Makes the type quern.dtype and adds it and its objects to the module. -1: an exception. */
int dtypes_add(PyObject *module);

#endif
