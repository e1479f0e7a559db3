/* SPDX-License-Identifier: Apache-2.0
 *
 * number.c: Python's numbers as operands: their dtype, which follows from the other operands, and their value in it. */
#include "operand/number.h"

#include "types/dtypes.h"
#include "types/promotion.h"
#include "types/scalar.h"

/* ---- Values ---- */

static int overflows(const operand *operand) {
  char text[DTYPE_CHARS];
  PyErr_Clear();
  return operand_fail(operand, PyExc_OverflowError, "the number %.100R does not fit into %s, the dtype of the others",
                      operand->object, dtype_text(operand->own.dtype, text));
}

/* Of a float dtype, or a complex one. */
static int set_float(operand *operand) {
  const DLDataType type = operand->own.dtype;
  quern_scalar scalar;
  if (scalar_from_object(operand->object, &scalar)) return overflows(operand);
  if (scalar.kind == QUERN_F64 && type.code == kDLFloat && type.bits >= 32) { /* a NaN keeps its sign */
    if (type.bits == 64)
      operand->number.f64 = scalar.v.f[0];
    else
      operand->number.f32 = (float)scalar.v.f[0];
    return 0;
  }
  if (quern_scalar_store(&scalar, type, operand->number.bytes) == 0) return 0;
  operand->own.dtype = (DLDataType){kDLFloat, 64, 1}; /* the library does not know the others' dtype, and says so */
  operand->number.f64 = 0;
  return 0;
}

static int set_bits(operand *operand, uint64_t value) {
  switch (operand->own.dtype.bits) {
    case 8: operand->number.u8 = (uint8_t)value; break;
    case 16: operand->number.u16 = (uint16_t)value; break;
    case 32: operand->number.u32 = (uint32_t)value; break;
    default: operand->number.u64 = value;
  }
  return 0;
}

static int set_signed(operand *operand) {
  int overflow;
  int64_t value = PyLong_AsLongLongAndOverflow(operand->object, &overflow);
  int64_t limit = INT64_MAX >> (64 - operand->own.dtype.bits);
  if (value == -1 && PyErr_Occurred()) return -1;
  return overflow || value > limit || value < -limit - 1 ? overflows(operand) : set_bits(operand, (uint64_t)value);
}

static int set_unsigned(operand *operand) {
  uint64_t value = PyLong_AsUnsignedLongLong(operand->object);
  uint64_t limit = UINT64_MAX >> (64 - operand->own.dtype.bits);
  return value > limit || (value == UINT64_MAX && PyErr_Occurred()) ? overflows(operand) : set_bits(operand, value);
}

static void set_tensor(operand *operand, DLDataType type) {
  operand->own = (DLTensor){.data = &operand->number, .device = {kDLCPU, 0}, .dtype = type};
  operand->tensor = &operand->own;
  operand->flags = DLPACK_FLAG_BITMASK_READ_ONLY;
}

static int set_value(operand *operand, DLDataType type) {
  set_tensor(operand, type);
  switch (type.code) {
    case kDLInt: return set_signed(operand);
    case kDLUInt: return set_unsigned(operand);
    case kDLBool: return set_bits(operand, operand->object == Py_True);
    default: return set_float(operand);
  }
}

/* ---- Dtypes ---- */

static int kind_rank(DLDataType type) {
  switch (type.code) {
    case kDLBool: return 0;
    case kDLInt:
    case kDLUInt: return 1;
    case kDLComplex: return 3;
    default: return 2;
  }
}

/* If there is no common dtype, either will do: the library refuses the call with its own message. */
static DLDataType promote(DLDataType a, DLDataType b) {
  DLDataType common;
  if (a.code == b.code && a.bits == b.bits) return a;
  return promotion_of(a, b, &common) ? common : a;
}

/* The dtype of a number beside operands of that dtype. A bool takes any dtype, an int any but bool, a float only floats. If the library
 * does not know the dtype, any will do: it refuses the call with its own message. */
static DLDataType weak_dtype(PyObject *number, DLDataType others) {
  int is_float = PyFloat_Check(number), is_int = !is_float && !PyBool_Check(number);
  DLDataType floating;
  if (is_float && kind_rank(others) < 2) return promotion_with_fractions(others, &floating) ? floating : others;
  if (is_int && kind_rank(others) < 1) return (DLDataType){kDLInt, 64, 1};
  return others;
}

/* Sets a count as i64, since a float could round it; saturates. */
static int set_count(operand *operand) {
  int overflow;
  int64_t value = PyLong_AsLongLongAndOverflow(operand->object, &overflow);
  if (value == -1 && PyErr_Occurred()) return -1;
  set_tensor(operand, (DLDataType){kDLInt, 64, 1});
  return set_bits(operand, overflow ? (overflow > 0 ? (uint64_t)INT64_MAX : (uint64_t)INT64_MIN) : (uint64_t)value);
}

static int is_rounded_count(const operand *operand, DLDataType type) {
  return kind_rank(type) == 2 && type.bits < 32 && !PyFloat_Check(operand->object) && !PyBool_Check(operand->object);
}

static int set_condition(operand *operand) {
  if (PyBool_Check(operand->object)) return set_value(operand, (DLDataType){kDLBool, 8, 1});
  return operand_fail(operand, PyExc_TypeError, "the number %.100R, expected a bool", operand->object);
}

static int set_number(operand *operand, DLDataType others, int is_condition, int is_count) {
  if (is_condition) return set_condition(operand);
  if (is_count && is_rounded_count(operand, others)) return set_count(operand);
  return set_value(operand, weak_dtype(operand->object, others));
}

int operand_numbers(operand *operands, int32_t n, const number_rules *rules) {
  DLDataType others = {0};
  int32_t n_others = 0;
  for (int32_t k = 0; k < n; k++) {
    if (operands[k].kind == OPERAND_NUMBER) continue;
    others = n_others++ ? promote(others, operands[k].tensor->dtype) : operands[k].tensor->dtype;
  }
  if (n && !n_others)
    return operand_fail(operands, PyExc_TypeError, "all inputs are numbers, which have no dtype of their own");
  if (rules->gives_f64) others = (DLDataType){kDLFloat, 64, 1};
  for (int32_t k = 0; k < n; k++) {
    if (operands[k].kind != OPERAND_NUMBER) continue;
    if (set_number(&operands[k], others, rules->conditions >> k & 1, rules->counts >> k & 1)) return -1;
  }
  return 0;
}
