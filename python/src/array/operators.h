/* SPDX-License-Identifier: Apache-2.0
 *
 * operators.h: quern.Array's operators and indexing: calls of quern._operators, which has them in Python. */
#ifndef QUERN_PYTHON_OPERATORS_H
#define QUERN_PYTHON_OPERATORS_H

#include "base/limited.h"

/* A function of quern._operators, called with the objects; b, c may be NULL. */
PyObject *operator_call(const char *name, PyObject *a, PyObject *b, PyObject *c);

PyObject *array_compare(PyObject *a, PyObject *b, int comparison);
Py_hash_t array_hash(PyObject *self);
PyObject *array_iterate(PyObject *self);
PyObject *array_get_items(PyObject *self, PyObject *key);
int array_set_items(PyObject *self, PyObject *key, PyObject *value);
PyObject *array_matrix_transposed(PyObject *self, void *unused);
PyObject *array_reshape(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *array_power(PyObject *a, PyObject *b, PyObject *modulus);
PyObject *array_inplace_power(PyObject *a, PyObject *b, PyObject *modulus);

/* DO(slot, name): what has two operands, also in place; WITH(slot, name): what has one. */
#define ARRAY_BINARY_OPERATORS(DO)                                                                                      \
  DO(add, add) DO(subtract, subtract) DO(multiply, multiply) DO(true_divide, divide) DO(floor_divide, floor_divide)     \
  DO(remainder, remainder) DO(and, bitwise_and) DO(or, bitwise_or) DO(xor, bitwise_xor) DO(lshift, bitwise_left_shift)  \
  DO(rshift, bitwise_right_shift) DO(matrix_multiply, matmul)
#define ARRAY_UNARY_OPERATORS(WITH) \
  WITH(negative, negative) WITH(positive, positive) WITH(absolute, abs) WITH(invert, bitwise_invert)

#define ARRAY_DECLARE_BINARY(slot, name)                  \
  PyObject *array_operator_##slot(PyObject *a, PyObject *b); \
  PyObject *array_inplace_##slot(PyObject *a, PyObject *b);
#define ARRAY_DECLARE_UNARY(slot, name) PyObject *array_operator_##slot(PyObject *a);
ARRAY_BINARY_OPERATORS(ARRAY_DECLARE_BINARY)
ARRAY_UNARY_OPERATORS(ARRAY_DECLARE_UNARY)
PyObject *array_divmod(PyObject *a, PyObject *b);
#undef ARRAY_DECLARE_BINARY
#undef ARRAY_DECLARE_UNARY

#endif
