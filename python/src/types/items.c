/* SPDX-License-Identifier: Apache-2.0
 *
 * items.c: values of all dtypes that DLPack 1.3 has in whole bytes; see items.h. */
#include "types/items.h"

#include <math.h>
#include <string.h>

#include "types/dtypes.h"

/* ---- One item ---- */

static uint64_t load(const char *address, int bytes) {
  union {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
  } word;
  memcpy(&word, address, (size_t)bytes);
  return bytes == 1 ? word.u8 : bytes == 2 ? word.u16 : bytes == 4 ? word.u32 : word.u64;
}

/* Exact: doubles have all values of these formats. */
static double decode(const float_format *format, uint64_t bits) {
  const uint64_t fraction = bits & ((UINT64_C(1) << format->fraction_bits) - 1);
  const int top = (1 << format->exponent_bits) - 1, exponent = (int)(bits >> format->fraction_bits) & top;
  const int negative = format->form != POWERS && (bits >> (format->fraction_bits + format->exponent_bits) & 1);
  const double sign = negative ? -1 : 1, unit = ldexp(1, -format->fraction_bits);
  switch (format->form) {
    case NO_FLOAT: break;
    case IEEE:
      if (exponent == top) return fraction ? NAN : sign * INFINITY;
      break;
    case FINITE:
      if (exponent == top && fraction == (UINT64_C(1) << format->fraction_bits) - 1) return NAN;
      break;
    case ZERO_UNSIGNED:
      if (negative && exponent == 0 && fraction == 0) return NAN;
      break;
    case POWERS:
      return exponent == top ? NAN : ldexp(1, exponent - format->bias);
  }
  if (exponent == 0) return sign * ldexp((double)fraction * unit, 1 - format->bias);
  return sign * ldexp(1 + (double)fraction * unit, exponent - format->bias);
}

/* The double with the fewest decimal digits that rounds to the value in its format: its repr is the shortest unique one. Whole
 * numbers of moderate size are unchanged: 448, not 450. */
static double shorten(const float_format *format, double value) {
  int exponent;
  double half_gap;
  if (format->fraction_bits == 52 || isnan(value) || isinf(value)) return value;
  if (value == floor(value) && fabs(value) < 1e6) return value;
  half_gap = frexp(fabs(value), &exponent) == 0.5 ? 0.25 : 0.5; /* below a power of two they lie closer */
  if (exponent < 2 - format->bias) exponent = 2 - format->bias;
  half_gap = ldexp(half_gap, exponent - 1 - format->fraction_bits);
  for (int digits = 1; digits < 17; digits++) {
    char *text = PyOS_double_to_string(value, 'e', digits - 1, 0, NULL);
    double rounded = value;
    if (text) rounded = PyOS_string_to_double(text, NULL, NULL);
    PyMem_Free(text);
    if (PyErr_Occurred()) return value;
    if (fabs(rounded - value) < half_gap) return rounded;
  }
  return value;
}

static PyObject *item_object(DLDataType type, const char *address, int is_short) {
  const dtype_row *row = dtype_of(type);
  double real, imaginary = 0;
  if (!row) {
    char text[DTYPE_CHARS];
    return PyErr_Format(PyExc_TypeError, "quern.Array: items of dtype %s have no value in Python", dtype_text(type, text));
  }
  const float_format *format = &row->number;
  if (format->form == NO_FLOAT) {
    const uint64_t bits = load(address, type.bits / 8);
    const int shift = 64 - type.bits;
    if (type.code == kDLBool) return PyBool_FromLong(bits != 0);
    if (type.code == kDLUInt) return PyLong_FromUnsignedLongLong(bits);
    return PyLong_FromLongLong((int64_t)(bits << shift) >> shift);
  }
  if (type.code == kDLComplex) {
    real = decode(format, load(address, type.bits / 16));
    imaginary = decode(format, load(address + type.bits / 16, type.bits / 16));
  } else {
    real = decode(format, load(address, type.bits / 8));
  }
  if (is_short) {
    real = shorten(format, real);
    imaginary = shorten(format, imaginary);
    if (PyErr_Occurred()) return NULL;
  }
  return type.code == kDLComplex ? PyComplex_FromDoubles(real, imaginary) : PyFloat_FromDouble(real);
}

PyObject *value_object(DLDataType type, const char *address) { return item_object(type, address, 0); }

/* ---- All of them ---- */

int64_t tensor_n_items(const DLTensor *tensor) {
  int64_t n = 1;
  for (int d = 0; d < tensor->ndim; d++) {
    if (tensor->shape[d] == 0) return 0;
  }
  for (int d = 0; d < tensor->ndim; d++) n *= tensor->shape[d];
  return n;
}

void *tensor_first(const DLTensor *tensor) { return tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL; }

/* The address of index i of dimension d. Strides of an empty tensor mean nothing, and may overflow pointer arithmetic. */
static const char *item(const DLTensor *tensor, int d, int64_t i, const char *address) {
  return (const char *)((uintptr_t)address + (uintptr_t)i * (uintptr_t)tensor->strides[d] * (tensor->dtype.bits / 8));
}

static PyObject *list_of(const DLTensor *tensor, int d, const char *address) {
  PyObject *list;
  if (d == tensor->ndim) return value_object(tensor->dtype, address);
  list = PyList_New((Py_ssize_t)tensor->shape[d]);
  for (int64_t i = 0; list && i < tensor->shape[d]; i++) {
    PyObject *element = list_of(tensor, d + 1, item(tensor, d, i, address));
    if (!element) {
      Py_DECREF(list);
      return NULL;
    }
    PyList_SetItem(list, (Py_ssize_t)i, element);
  }
  return list;
}

PyObject *values_list(const DLTensor *tensor) { return list_of(tensor, 0, tensor_first(tensor)); }

#define MANY_ITEMS 1000
#define EDGE_ITEMS 3

/* Appends a piece of text to a list, to be joined later. Takes over the reference. */
static int put(PyObject *pieces, PyObject *text) {
  const int failed = !text || PyList_Append(pieces, text);
  Py_XDECREF(text);
  return failed ? -1 : 0;
}

static int put_value(PyObject *pieces, DLDataType type, const char *address) {
  PyObject *value = item_object(type, address, 1);
  const int failed = !value || put(pieces, PyObject_Repr(value));
  Py_XDECREF(value);
  return failed ? -1 : 0;
}

/* The separator of two elements of dimension d: ", " in a row, one newline between rows, two elsewhere. */
static int put_gap(PyObject *pieces, int d, int ndim, int indent) {
  static const char blanks[] = "                                                                ";
  if (d == ndim - 1) return put(pieces, PyUnicode_FromString(", "));
  if (put(pieces, PyUnicode_FromString(d == ndim - 2 ? ",\n" : ",\n\n"))) return -1;
  return put(pieces, PyUnicode_FromStringAndSize(blanks, indent + d + 1));
}

static int put_values(PyObject *pieces, const DLTensor *tensor, int d, const char *address, int is_long, int indent) {
  const int64_t n = d < tensor->ndim ? tensor->shape[d] : 0;
  if (d == tensor->ndim) return put_value(pieces, tensor->dtype, address);
  if (put(pieces, PyUnicode_FromString("["))) return -1;
  for (int64_t i = 0; i < n; i++) {
    if (i > 0 && put_gap(pieces, d, tensor->ndim, indent)) return -1;
    if (is_long && n > 2 * EDGE_ITEMS && i == EDGE_ITEMS) {
      if (put(pieces, PyUnicode_FromString("...")) || put_gap(pieces, d, tensor->ndim, indent)) return -1;
      i = n - EDGE_ITEMS;
    }
    if (put_values(pieces, tensor, d + 1, item(tensor, d, i, address), is_long, indent)) return -1;
  }
  return put(pieces, PyUnicode_FromString("]"));
}

PyObject *values_text(const DLTensor *tensor, int indent) {
  PyObject *pieces = PyList_New(0), *nothing = PyUnicode_FromString(""), *text = NULL;
  const int64_t n_items = tensor_n_items(tensor);
  if (pieces && nothing) {
    const int failed = n_items == 0 ? put(pieces, PyUnicode_FromString("[]"))
                                    : put_values(pieces, tensor, 0, tensor_first(tensor), n_items > MANY_ITEMS, indent);
    if (!failed) text = PyUnicode_Join(nothing, pieces);
  }
  Py_XDECREF(pieces);
  Py_XDECREF(nothing);
  return text;
}
