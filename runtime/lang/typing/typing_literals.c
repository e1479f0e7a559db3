/* SPDX-License-Identifier: Apache-2.0
 *
 * typing_literals.c: see typing_literals.h. */
#include "lang/typing/typing_literals.h"

#include <string.h>

#include "base/op_traits.h"
#include "core/cpu/job.h"
#include "core/op/backend.h"
#include "core/op/kind.h"
#include "core/op/params.h"
#include "lang/parse/callee.h"
#include "lang/typing/weak.h"

#define MOST_ARGS 3 /* of a primitive */

/* ---- Conditions ---- */

int qn_typing_is_constant_condition(const qn_typing *t, int32_t value, int *holds) {
  const qn_value *at = &t->values.values[value];
  *holds = at->bits != 0;
  return at->kind == QN_VALUE_CONSTANT && at->type == QN_BOOL;
}

static int is_condition(const qn_typing *t, const qn_typing_operand *x, int *holds) {
  return x->kind == QN_STRONG && qn_typing_is_constant_condition(t, x->value, holds);
}

static int gives_condition(qn_typing *t, int holds, qn_typing_operand *made) {
  return qn_typing_gives(qn_typing_constant(t, QN_BOOL, (uint64_t)holds), QN_BOOL, made) ? 1 : -1;
}

static int order_holds(qn_sign sign, int is_less, int is_equal, int is_greater) {
  switch (sign) {
    case QN_SIGN_EQ: return is_equal;
    case QN_SIGN_NE: return !is_equal;
    case QN_SIGN_LT: return is_less;
    case QN_SIGN_LE: return is_less || is_equal;
    case QN_SIGN_GT: return is_greater;
    default: return is_greater || is_equal;
  }
}

int qn_typing_literal_compare(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  const qn_number a = x[0].number, b = x[1].number;
  const qn_sign sign = t->at->what;
  int p, q;
  if (is_condition(t, &x[0], &p) && is_condition(t, &x[1], &q)) return gives_condition(t, order_holds(sign, p < q, p == q, p > q), made);
  if (x[0].kind != QN_NUMBER || x[1].kind != QN_NUMBER) return 0;
  if (!a.is_float && !b.is_float && !a.is_pattern && !b.is_pattern)
    return gives_condition(t, order_holds(sign, a.v.i < b.v.i, a.v.i == b.v.i, a.v.i > b.v.i), made);
  const double y = qn_weak_as_float(a).v.f, z = qn_weak_as_float(b).v.f;
  return gives_condition(t, order_holds(sign, y < z, y == z, y > z), made);
}

int qn_typing_literal_logic(qn_typing *t, qn_sign sign, int32_t a, int32_t b, qn_typing_operand *made) {
  int p, q;
  if (!qn_typing_is_constant_condition(t, a, &p) || !qn_typing_is_constant_condition(t, b, &q)) return 0;
  const int is_or = sign == QN_SIGN_OR || sign == QN_SIGN_OR_ELSE;
  return gives_condition(t, sign == QN_SIGN_XOR ? p != q : is_or ? p || q : p && q, made);
}

/* ---- Results ---- */

/* The number with these bits of a dtype. */
static qn_number number_of(uint64_t bits, uint8_t dtype) {
  qn_number number = {.is_float = qn_dtype_infos[dtype].kind == QN_KIND_FLOAT};
  if (number.is_float) {
    memcpy(&number.v.f, &bits, sizeof bits);
    return number;
  }
  const int unused = 64 - qn_dtype_infos[dtype].bits;
  bits <<= unused;
  const uint64_t fill = qn_weak_is_signed(dtype) && bits >> 63 && unused ? UINT64_MAX << (64 - unused) : 0;
  bits = bits >> unused | fill;
  memcpy(&number.v.i, &bits, sizeof bits);
  return number;
}

static int made_of(qn_typing *t, uint64_t bits, uint8_t dtype, qn_typing_operand *made) {
  if (dtype == QN_BOOL) return gives_condition(t, (bits & 0xff) != 0, made);
  return qn_typing_number_made(t, NULL, number_of(bits, dtype), made);
}

/* ---- Ops ---- */

/* The dtype to compute a call in: i64 of integers alone, else f64; QN_DTYPE_NONE: it takes neither. */
static uint8_t dtype_of(const qn_builtin *builtin, int32_t n_in, int32_t n, const qn_typing_operand *x) {
  int is_whole = builtin->promotion == QN_PROMOTION_COMMON && builtin->dtypes >> QN_I64 & 1;
  for (int32_t k = 0; k < n; k++) is_whole &= x[k].kind != QN_NUMBER || !x[k].number.is_float || (k < n_in && builtin->bool_in >> k & 1);
  const uint32_t fraction_in = is_whole && builtin->traits ? builtin->traits->fraction_in : 0;
  for (int32_t k = 0; k < n; k++)
    if (fraction_in >> k & 1 && x[k].number.v.i < 0 && !x[k].number.is_pattern) is_whole = 0;
  if (is_whole) return QN_I64;
  return builtin->dtypes >> QN_F64 & 1 ? QN_F64 : QN_DTYPE_NONE;
}

static DLTensor tensor_of(uint64_t *bits, uint8_t dtype) {
  const qn_dtype_info *info = &qn_dtype_infos[dtype];
  return (DLTensor){.data = bits, .device = {kDLCPU, 0}, .dtype = {info->code, info->bits, 1}};
}

/* The parameter k of the call: given, or its default. */
static quern_scalar scalar_of(const qn_typing *t, int32_t k, const qn_typing_operand *x) {
  const quern_op_info *info = &t->at->v.op->builtin->info;
  if (info->n_in + k >= t->at->n_args) return info->params[k].value;
  const qn_number number = x[info->n_in + k].number;
  if (number.is_float) return (quern_scalar){.kind = QUERN_F64, .v.f[0] = number.v.f};
  return (quern_scalar){.kind = number.is_pattern ? QUERN_U64 : QUERN_I64, .v.i = number.v.i};
}

static int check_params(qn_typing *t, const qn_typing_operand *x, uint8_t dtype) {
  const quern_op_info *info = &t->at->v.op->builtin->info;
  for (int32_t k = 0; k < info->n_params; k++) {
    const quern_scalar scalar = scalar_of(t, k, x);
    uint64_t bits;
    const char *wrong = qn_params_number(&scalar, dtype, &bits);
    if (wrong)
      return QN_TYPING_FAIL(t, "%.64s: parameter %d (%.64s): %s, but it computes in %s here", info->name, k + 1, info->params[k].name, wrong,
                            qn_typing_dtype_name(dtype));
  }
  return 1;
}

/* The input k as bits, of `dtype` or of a condition. */
static uint64_t input_bits(const qn_typing *t, const qn_typing_operand *x, int32_t k, uint8_t dtype) {
  uint64_t bits = 0;
  int holds = 0;
  if (is_condition(t, &x[k], &holds)) return (uint64_t)holds;
  if (t->at->v.op->builtin->bool_in >> k & 1) return (uint64_t)qn_weak_is_true(x[k].number);
  qn_weak_constant(x[k].number, dtype, &bits);
  return bits;
}

/* Runs the built kernel of an op; 0: there is none. */
static int compute_built(const qn_typing *t, const qn_typing_operand *x, uint8_t dtype, uint64_t *result) {
  static const int64_t stride[QN_MAX_OPERANDS][2], extent[2] = {1, 1};
  const qn_builtin *builtin = t->at->v.op->builtin;
  const quern_op_info *info = &builtin->info;
  uint64_t bits[QN_MAX_OPERANDS], params[QN_MAX_PARAMS];
  char *ptr[QN_MAX_OPERANDS];
  if (t->at->v.op->fused || !builtin->n_variants || builtin->first[dtype] == builtin->first[dtype + 1]) return 0;
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) {
    bits[k] = k < info->n_in ? input_bits(t, x, k, dtype) : 0;
    ptr[k] = (char *)&bits[k];
  }
  for (int32_t k = 0; k < info->n_params; k++) {
    const quern_scalar scalar = scalar_of(t, k, x);
    qn_params_number(&scalar, dtype, &params[k]); /* check_params */
  }
  qn_job_kernel(&builtin->variants[builtin->first[dtype]], NULL)(ptr, stride, extent, params);
  *result = bits[info->n_in + t->at->what];
  return 1;
}

/* Calls an op on single elements of `dtype`, by the library's own implementation. Not inlined, for its stack. */
__attribute__((noinline)) static quern_status call_own(const qn_typing *t, const qn_typing_operand *x, uint8_t dtype, uint64_t *result) {
  const quern_op *op = t->at->v.op;
  const qn_builtin *builtin = op->builtin;
  const quern_op_info *info = &builtin->info;
  const int32_t n = info->n_in + info->n_out;
  uint64_t bits[QN_MAX_OPERANDS] = {0};
  DLTensor tensors[QN_MAX_OPERANDS], *in[QN_MAX_OPERANDS], *out[QN_MAX_OPERANDS];
  quern_scalar params[QN_MAX_PARAMS];
  QN_IN_SCRATCH(qn_decision, decision);
  for (int32_t k = 0; k < n; k++) {
    const int is_in = k < info->n_in, is_bool = is_in && builtin->bool_in >> k & 1;
    const uint8_t fixed = is_in ? QN_DTYPE_NONE : builtin->results[k - info->n_in];
    tensors[k] = tensor_of(&bits[k], is_bool ? QN_BOOL : fixed != QN_DTYPE_NONE ? fixed : dtype);
    if (is_in) in[k] = &tensors[k];
    else out[k - info->n_in] = &tensors[k];
    if (!is_in) continue;
    bits[k] = input_bits(t, x, k, dtype);
  }
  for (int32_t k = 0; k < info->n_params; k++) params[k] = scalar_of(t, k, x);
  const quern_call call = {.size = sizeof call, .params = params, .n_params = info->n_params};
  quern_status status = qn_kind_of(op)->decide(op, in, out, &call, 1, decision);
  if (status == QUERN_OK) status = decision->backend->call(decision, &call);
  *result = bits[info->n_in + t->at->what];
  return status;
}

static quern_status compute(const qn_typing *t, const qn_typing_operand *x, uint8_t dtype, uint64_t *result) {
  return compute_built(t, x, dtype, result) ? QUERN_OK : call_own(t, x, dtype, result);
}

/* Whether it is an integer beyond 64 bits, which wrapped. */
static int is_wrapped(const qn_typing *t, const qn_typing_operand *x, quern_status *status) {
  uint64_t bits = 0;
  double value;
  if (!(t->at->v.op->builtin->dtypes >> QN_F64 & 1)) return 0;
  *status = compute(t, x, QN_F64, &bits);
  memcpy(&value, &bits, sizeof value);
  return value >= 0x1p63 || value < -0x1p63;
}

int qn_typing_literal_op(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  const qn_builtin *builtin = t->at->v.op->builtin;
  const quern_op_info *info = &builtin->info;
  const int32_t n = t->at->n_args;
  uint64_t bits;
  int holds;
  if (info->n_in == 0 || qn_callee_has_axes(t->at) || qn_kind_of(t->at->v.op)->call) return 0;
  for (int32_t k = 0; k < n; k++) {
    const int takes_condition = k < info->n_in && builtin->bool_in >> k & 1;
    if (x[k].kind != QN_NUMBER && !(takes_condition && is_condition(t, &x[k], &holds))) return 0;
  }
  const uint8_t dtype = dtype_of(builtin, info->n_in, n, x), fixed = builtin->results[t->at->what];
  if (dtype == QN_DTYPE_NONE)
    return QN_TYPING_FAIL(t, "%.64s does not take f64: cast to one of %.100s", info->name, info->args[info->n_in - 1].dtypes) - 1;
  if (!check_params(t, x, dtype)) return -1;
  t->status = compute(t, x, dtype, &bits);
  if (t->status) return -1;
  if (dtype == QN_I64 && fixed == QN_DTYPE_NONE) {
    if (is_wrapped(t, x, &t->status)) return QN_TYPING_FAIL(t, "the number does not fit 64 bits") - 1;
    if (t->status) return -1;
  }
  return made_of(t, bits, fixed != QN_DTYPE_NONE ? fixed : dtype, made);
}

/* ---- Functions ---- */

/* Runs a primitive's kernel on single elements. */
static uint64_t run(const qn_primitive *primitive, const uint64_t *args) {
  static const int64_t stride[MOST_ARGS + 1][2], extent[2] = {1, 1};
  uint64_t bits[MOST_ARGS + 1] = {0};
  char *ptr[MOST_ARGS + 1];
  memcpy(bits, args, primitive->n_args * sizeof *bits);
  for (int32_t k = 0; k <= primitive->n_args; k++) ptr[k] = (char *)&bits[k];
  qn_job_kernel(&primitive->variants[0], NULL)(ptr, stride, extent, NULL);
  return bits[primitive->n_args];
}

int qn_typing_literal_function(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  const qn_function *function = t->at->v.function;
  uint64_t args[MOST_ARGS];
  int is_whole = function->kind != QN_FUNCTION_FLOAT;
  for (int32_t k = 0; k < function->n_args; k++) {
    if (x[k].kind != QN_NUMBER) return 0;
    is_whole &= !x[k].number.is_float;
  }
  if (function->kind == QN_FUNCTION_AS || function->n_args > MOST_ARGS) return 0;
  if (is_whole && function->kind == QN_FUNCTION_WHOLE) return qn_typing_number_made(t, NULL, x[0].number, made);
  if (!is_whole && function->kind == QN_FUNCTION_INTEGER) return QN_TYPING_FAIL(t, "%s of f64: it takes integers", function->name) - 1;
  const uint8_t type = is_whole ? QN_I64 : QN_F64, result = function->type != QN_DTYPE_NONE ? function->type : type;
  const qn_primitive *primitive = qn_primitive_find(function->name, result, type);
  if (!primitive) return 0;
  for (int32_t k = 0; k < function->n_args; k++) qn_weak_constant(x[k].number, type, &args[k]);
  return made_of(t, run(primitive, args), result, made);
}
