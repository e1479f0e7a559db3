/* SPDX-License-Identifier: Apache-2.0
 *
 * primitives.h: the built kernels of the expression language's primitives, one operation each, found by name and
 * types; and their function names in expressions. The tables are generated (primitive_table.c), for the library only;
 * a generated tree does not have them. */
#ifndef QN_PRIMITIVES_H
#define QN_PRIMITIVES_H

#include "core/base/kernel_abi.h"

/* Special roles of primitives. ORDER ROLES of gen/products/library/primitive_kernels.lua */
typedef enum qn_primitive_role {
  QN_PRIMITIVE_PLAIN,
  QN_PRIMITIVE_SELECT,
  QN_PRIMITIVE_CONVERT,   /* the same number in another type */
  QN_PRIMITIVE_ROUND,     /* the number rounded to a dtype with another compute type, in that type */
  QN_PRIMITIVE_BITS,      /* the bits of a float as an integer */
  QN_PRIMITIVE_FROM_BITS, /* and back */
  QN_PRIMITIVE_LOOKUP
} qn_primitive_role;

/* The contribution of each argument x, y, z of a primitive to its derivative, as postfix words: x, y, z, out (the result), grad
 * (the argument's derivative), #N (N / 2), and primitives. "": none; NULL: no rule. From gen/graph/dag/primitives.lua. */
typedef struct qn_derivative_rule {
  const char *by[3];
} qn_derivative_rule;

/* A primitive of gen/graph/dag/primitives.lua for one choice of types. Operands: its arguments, then the result. Conditions are
 * bool bytes: any nonzero byte in, 0 or 1 out. select takes bool, T, T. lookup takes a table ('b': its first item), an index
 * of the items' width, and one parameter, an i64: the number of items (a power of two) minus 1. A NaN result is
 * canonical. One kernel may serve several types of one size (add of i32 also u32, select of i32 also "where"): the
 * name and dtypes of a variant are those of the kernel. */
typedef struct qn_primitive {
  const char *op;       /* "add", "select", "cast", "round_f16", ... */
  uint8_t type;         /* qn_dtype of the result */
  uint8_t arg_type;     /* qn_dtype of its last argument */
  uint8_t n_args;
  uint8_t role;         /* qn_primitive_role */
  uint8_t looks_at_sign; /* of its last argument, of a NaN too */
  int32_t n_variants;
  const qn_variant *variants; /* of rank 1 or 2: all contiguous first (the only one of lookup); then, for two or three
                                 arguments, every proper subset of them broadcast */
  const qn_derivative_rule *derivative; /* NULL: there is none */
} qn_primitive;

/* NULL: there is none. */
const qn_primitive *qn_primitive_find(const char *op, uint8_t type, uint8_t arg_type);

/* Rounds a number to a dtype, with the result in the dtype's compute type. NULL: the two are the same. */
const qn_primitive *qn_primitive_round(uint8_t dtype, uint8_t arg_type);

typedef enum qn_function_kind {
  QN_FUNCTION_FLOAT,   /* of floats; an integer becomes one */
  QN_FUNCTION_WHOLE,   /* of floats; an integer stays as it is */
  QN_FUNCTION_NUMBER,  /* of any numbers */
  QN_FUNCTION_INTEGER, /* of integers */
  QN_FUNCTION_AS       /* the bits as another type of the same size */
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
