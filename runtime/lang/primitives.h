/* SPDX-License-Identifier: Apache-2.0
 *
 * primitives.h: the built kernels of the expression language's primitives, one operation each, found by name and
 * types; and the names by which an expression may call them. The tables are generated (primitive_table.c); the library
 * has them, a generated tree does not. */
#ifndef QN_PRIMITIVES_H
#define QN_PRIMITIVES_H

#include "core/base/kernel_abi.h"

/* What is special about a primitive. ORDER ROLES of gen/products/primitive_kernels.lua */
typedef enum qn_primitive_role {
  QN_PRIMITIVE_PLAIN,
  QN_PRIMITIVE_SELECT,
  QN_PRIMITIVE_CONVERT,   /* the same number in another type, or rounded to a dtype that is computed in another */
  QN_PRIMITIVE_BITS,      /* the bits of a float as an integer */
  QN_PRIMITIVE_FROM_BITS, /* and back */
  QN_PRIMITIVE_LOOKUP
} qn_primitive_role;

/* What each argument of a primitive, x, y or z, adds to a derivative: postfix words, these, out (its result), grad (the
 * argument's derivative), #N (N / 2), and primitives. "": nothing; NULL: there is no rule. Of gen/graph/primitives.lua. */
typedef struct qn_derivative_rule {
  const char *by[3];
} qn_derivative_rule;

/* A node operation of gen/graph/primitives.lua on one choice of types. Operands: its arguments, then the result. Conditions are bool
 * bytes: any nonzero byte in, 0 or 1 out. select takes bool, T, T. lookup takes a table ('b': its first item), an index
 * of the items' width, and as its one parameter the number of items (a power of two) less one, an i64. A float result
 * that is NaN is the one NaN. One kernel may serve types that are the same bits to it (add of u32 is that of i32,
 * select of i32 that of "where"): a variant's name and dtypes are the kernel's own, of the same sizes. */
typedef struct qn_primitive {
  const char *op;       /* "add", "select", "cast", "round_f16", ... */
  uint8_t type;         /* qn_dtype of the result */
  uint8_t arg_type;     /* qn_dtype of its last argument */
  uint8_t n_args;
  uint8_t role;         /* qn_primitive_role */
  int32_t n_variants;
  const qn_variant *variants; /* of rank 1 or 2: all contiguous first (lookup: its only one); then, for two or three
                                 arguments, those with broadcast ones, any but all of them */
  const qn_derivative_rule *derivative; /* NULL: there is none */
} qn_primitive;

/* NULL: there is none. */
const qn_primitive *qn_primitive_find(const char *op, uint8_t type, uint8_t arg_type);

/* Rounds a number to a dtype that is computed in another type, and gives it in that type. NULL: the dtype is computed in itself. */
const qn_primitive *qn_primitive_round(uint8_t dtype, uint8_t arg_type);

typedef enum qn_function_kind {
  QN_FUNCTION_FLOAT,   /* of floats; integers become f32 */
  QN_FUNCTION_WHOLE,   /* of floats; an integer stays as it is */
  QN_FUNCTION_NUMBER,  /* of any numbers */
  QN_FUNCTION_INTEGER, /* of integers */
  QN_FUNCTION_AS       /* the bits of one type as another of its size */
} qn_function_kind;

/* A primitive that an expression may call by name. */
typedef struct qn_function {
  const char *name;
  uint8_t n_args, kind;
  uint8_t type; /* qn_dtype of the result; QN_DTYPE_NONE: that of the arguments */
} qn_function;

/* Sorted by name. */
extern const qn_function qn_functions[];
extern const int32_t qn_n_functions;

/* The constants an expression may name: PI, E, ... */
typedef struct qn_named_constant {
  const char *name;
  double value;
} qn_named_constant;

extern const qn_named_constant qn_named_constants[];
extern const int32_t qn_n_named_constants;

#endif
