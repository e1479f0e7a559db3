/* SPDX-License-Identifier: Apache-2.0
 *
 * ref.h: what each op must give, written out once more in the plainest way: one element at a time, in 113-bit
 * arithmetic, indices by multiplication. Shares no code and no table with the generator, the templates or the runtime;
 * sources are docs/internals/arithmetic.md and C Annex F. Knows DLTensor, not the library. */
#ifndef QUERN_TESTS_REF_H
#define QUERN_TESTS_REF_H

#include <stdint.h>

#include "quern/dlpack.h"

#ifdef __aarch64__
typedef long double ref_real; /* 113 bits there */
#else
__extension__ typedef __float128 ref_real;
#endif

/* Every value of these dtypes is exact in a ref_real. */
typedef enum ref_dtype {
  REF_BOOL, REF_I8, REF_I16, REF_I32, REF_I64, REF_U8, REF_U16, REF_U32, REF_U64, REF_F16, REF_BF16, REF_F32, REF_F64,
  REF_N_DTYPES
} ref_dtype;

typedef enum ref_kind { REF_KIND_BOOL, REF_KIND_INTEGER, REF_KIND_FLOAT } ref_kind;

const char *ref_dtype_name(ref_dtype d);
DLDataType ref_dtype_dl(ref_dtype d);
int ref_dtype_size(ref_dtype d);
ref_kind ref_dtype_kind(ref_dtype d);
ref_dtype ref_dtype_of(DLDataType dl);          /* REF_N_DTYPES for another */
ref_dtype ref_floating(ref_dtype d); /* where a float is needed: f32 of bool and of integers of 8 and 16 bits, f64 of wider ones */
ref_dtype ref_promote(ref_dtype a, ref_dtype b); /* REF_N_DTYPES where they have no common dtype, or one is that */
ref_dtype ref_compute(ref_dtype d);              /* that it is computed in: f32 for narrower floats, else itself */
int ref_digits(ref_dtype d);                     /* of a float's significand */
int ref_least_exponent(ref_dtype d), ref_largest_exponent(ref_dtype d); /* of a float's smallest normal number, largest binade */

/* Elements as raw bits (low bytes), at any address. */
uint64_t ref_get(ref_dtype d, const void *at);
void ref_put(ref_dtype d, void *at, uint64_t bits);
/* The exact value of an element; NaN as NaN. */
ref_real ref_value(ref_dtype d, uint64_t bits);
/* The one cast: `value` comes from a dtype of kind `from`. Rounds once to nearest even, saturates, wraps; one NaN. */
uint64_t ref_cast(ref_dtype to, ref_real value, ref_kind from);
int ref_is_nan(ref_dtype d, uint64_t bits);
uint64_t ref_nan(ref_dtype d); /* the canonical one */
uint64_t ref_from_double(ref_dtype d, double x);

/* One unit in the last place of `d` at x: the distance of neighbours in x's binade, subnormals' below. */
ref_real ref_ulp(ref_dtype d, ref_real x);
/* |got - exact| in ULPs of d; 0 where both are NaN or the same infinity or zero. */
double ref_ulp_error(ref_dtype d, uint64_t got, ref_real exact);

typedef enum ref_op {
  REF_NEGATIVE, REF_ABS, REF_SQRT, REF_EXP, REF_LOG, REF_TANH, REF_ERF, REF_SIGMOID, REF_RELU, REF_GELU,
  REF_ADD, REF_SUBTRACT, REF_MULTIPLY, REF_DIVIDE, REF_MAXIMUM, REF_MINIMUM, REF_POW,
  REF_LESS, REF_EQUAL, REF_ISNAN, REF_SIGNBIT,
  REF_WHERE, REF_CLIP, REF_FMA, REF_ASTYPE, REF_COPY, REF_FULL, REF_LEAKY_RELU,
  REF_ATAN, REF_ATAN2, REF_ASIN, REF_ACOS, REF_HYPOT,
  REF_EXP2, REF_EXPM1, REF_LOG2, REF_LOG10, REF_LOG1P, REF_SINH, REF_COSH, REF_ASINH, REF_ACOSH, REF_ATANH, REF_ERFC, REF_CBRT,
  REF_LOGADDEXP, REF_LOGADDEXP2,
  REF_SIN, REF_COS, REF_TAN, REF_DEGREES, REF_RADIANS, REF_SINC,
  REF_POSITIVE, REF_SIGN, REF_SQUARE, REF_RECIPROCAL, REF_FMAX, REF_FMIN, REF_COPYSIGN, REF_HEAVISIDE,
  REF_LESS_EQUAL, REF_GREATER, REF_GREATER_EQUAL, REF_NOT_EQUAL, REF_ISFINITE, REF_ISINF,
  REF_LOGICAL_AND, REF_LOGICAL_OR, REF_LOGICAL_XOR, REF_LOGICAL_NOT,
  REF_BITWISE_AND, REF_BITWISE_OR, REF_BITWISE_XOR, REF_BITWISE_INVERT, REF_BITWISE_LEFT_SHIFT, REF_BITWISE_RIGHT_SHIFT,
  REF_FLOOR, REF_CEIL, REF_TRUNC, REF_FIX, REF_ROUND, REF_RINT,
  REF_FLOOR_DIVIDE, REF_TRUNC_DIVIDE, REF_REMAINDER, REF_FMOD, REF_GCD, REF_LCM,
  REF_LDEXP, REF_NEXTAFTER, REF_SPACING, REF_BITWISE_COUNT, REF_FLOAT_POWER, REF_SATURATE_CAST,
  REF_SILU, REF_GELU_TANH, REF_MISH, REF_SOFTPLUS, REF_LOG_SIGMOID, REF_SOFTSIGN, REF_ELU, REF_CELU, REF_SELU,
  REF_HARD_SIGMOID, REF_HARD_SWISH, REF_THRESHOLDED_RELU, REF_PRELU, REF_SWIGLU, REF_GEGLU,
  REF_N_OPS,
  /* Outputs of ops that have several: NAME.OUTPUT. */
  REF_MODF_FRACTION = REF_N_OPS, REF_MODF_INTEGRAL, REF_FREXP_MANTISSA, REF_FREXP_EXPONENT,
  REF_DIVMOD_QUOTIENT, REF_DIVMOD_REMAINDER,
  REF_N_ALL
} ref_op;

#define REF_MAX_INPUTS 3
#define REF_MAX_PARAMS 2

typedef struct ref_op_info {
  const char *name;
  int n_in, n_params;
  int cast;        /* the output's dtype is free: any cast is meant (astype, saturate_cast, full) */
  int move;        /* bits pass as they are when no dtype changes */
  double ulp;      /* the declared bound in the compute dtype, see ref_op_bound; 0.5 = exact */
  ref_real param[REF_MAX_PARAMS]; /* defaults */
} ref_op_info;

const ref_op_info *ref_op_describe(ref_op op);
double ref_op_bound(ref_op op, ref_dtype compute); /* `ulp`, or that of f64 where it is less */
ref_op ref_op_find(const char *name); /* REF_N_OPS when unknown */

/* The dtype of the result for inputs of these dtypes, and the dtype the op computes in. -1: refused. For `full`,
 * astype: *result is the output's choice, given in it. */
int ref_resolve(ref_op op, const ref_dtype *in, ref_dtype *result, ref_dtype *compute);
/* May a result of that dtype be stored as `out`? */
int ref_may_store(ref_op op, ref_dtype result, ref_dtype out);

/* The outputs that are allowed: all bits from low to high in the order of values (exact: low == high). */
typedef struct ref_expect {
  uint64_t low, high;
  ref_real exact; /* before the last rounding; for ULP figures */
} ref_expect;

/* One element. in[k]: dtype, x[k]: bits; param: values (NULL = defaults). */
ref_expect ref_eval(ref_op op, const ref_dtype *in, const uint64_t *x, const ref_real *param, ref_dtype out);
/* Does `got` lie within? */
int ref_within(ref_dtype d, uint64_t got, const ref_expect *expect);

/* The mathematical functions behind ref_eval, in 113 bits. */
ref_real ref_function(ref_op op, ref_real x, ref_real y, const ref_real *param);

/* ---- Tensors ---------------------------------------------------------------------------------------------------- */

int64_t ref_n_elements(const DLTensor *t);
/* The address of element `index` (length ndim) of t: data + byte_offset + size * sum(index * stride). */
char *ref_address(const DLTensor *t, const int64_t *index);
/* The same where t is broadcast to an index of `ndim` >= t->ndim entries. */
char *ref_broadcast_address(const DLTensor *t, int ndim, const int64_t *index);
/* Steps a row-major index; 0 after the last. */
int ref_next_index(int ndim, const int64_t *shape, int64_t *index);

/* Evaluates op over the broadcast of `in`, in row-major order of `out`: expect[ref_n_elements(out)], malloc'd. */
ref_expect *ref_eval_tensor(ref_op op, DLTensor *const *in, const ref_real *param, const DLTensor *out);

/* A difference found by ref_check_tensor. */
typedef struct ref_difference {
  int64_t n_bad, first; /* row-major positions */
  uint64_t got;
  ref_expect wanted;
  double ulp; /* of the first bad one */
} ref_difference;

/* Compares out's elements with what was expected; 1 = all within. */
int ref_check_tensor(const DLTensor *out, const ref_expect *expect, ref_difference *difference);

/* Text of bits as a number of that dtype, with its hex bits, into buffer (at least 64 bytes); returned. */
char *ref_text(ref_dtype d, uint64_t bits, char *buffer);

#endif /* QUERN_TESTS_REF_H */
