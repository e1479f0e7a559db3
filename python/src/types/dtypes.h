/* SPDX-License-Identifier: Apache-2.0
 *
 * dtypes.h: one table of dtypes: DLPack's code and bits, the names of Quern and the array API, NumPy's and XLA's type
 * numbers, the buffer protocol's formats, the formats of floats. */
#ifndef QUERN_PYTHON_DTYPES_H
#define QUERN_PYTHON_DTYPES_H

#include <quern/dlpack_exchange.h>

#include "base/limited.h"

/* The meaning of an exponent of all ones, and of the code of -0. */
typedef enum float_form {
  NO_FLOAT,
  IEEE,
  FINITE,        /* all ones: NaN */
  ZERO_UNSIGNED, /* -0: NaN */
  POWERS         /* only an exponent */
} float_form;

/* The format of a float; of a complex dtype, of its parts. */
typedef struct float_format {
  float_form form;
  int exponent_bits, fraction_bits, bias;
} float_format;

typedef struct dtype_row {
  const char *name;      /* "f32" */
  const char *long_name; /* "float32" */
  uint8_t code, bits;    /* DLPack's */
  const char *format;    /* the buffer protocol's, native: "f"; NULL: it has none */
  int numpy;             /* NPY_FLOAT ...; -1: NumPy has none */
  int xla;               /* XLA_F32 ...: xla_dtypes.h */
  float_format number;
} dtype_row;

/* NULL: there is none; no exception is set. Formats: with native byte order or none; itemsize decides the length ("l" is 4 or 8
 * bytes). */
const dtype_row *dtype_of(DLDataType type);
const dtype_row *dtype_by_name(const char *name); /* either name */
const dtype_row *dtype_by_format(const char *format, Py_ssize_t itemsize);
const dtype_row *dtype_by_numpy(int number);
const dtype_row *dtype_by_xla(int number); /* needs no interpreter */
static inline DLDataType dtype_dlpack(const dtype_row *row) { return (DLDataType){row->code, row->bits, 1}; }

/* Writes a dtype's name for messages: "f32", "(code 9, 8 bits, 4 lanes)". Returns text. */
#define DTYPE_CHARS 48
const char *dtype_text(DLDataType type, char text[DTYPE_CHARS]);

/* The object of a row, such as quern.float32: a new reference. */
PyObject *dtype_object(const dtype_row *row);

/* The row that an object names: a quern.dtype; a str, either name; Python's bool, int, float, complex; dtypes and scalar types of
 * other libraries, by their names: numpy.float32, numpy.dtype("f4"), torch.float32. NULL: TypeError. */
const dtype_row *dtype_from_object(PyObject *object);

/* Makes the type quern.dtype and adds it and its objects to the module. -1: an exception. */
int dtypes_add(PyObject *module);

#endif
