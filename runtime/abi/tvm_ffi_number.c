/* SPDX-License-Identifier: Apache-2.0
 *
 * tvm_ffi_number.c: see tvm_ffi_number.h. */
#include "abi/tvm_ffi_number.h"

#include <string.h>

#include "abi/tvm_ffi_library.h"

/* The order of kinds in promotion. */
static int tvm_kind_of_dtype(DLDataType type) {
  if (type.code == kDLBool) return 0;
  return type.code == kDLInt || type.code == kDLUInt ? 1 : 2;
}

static int is_tvm_wide_integer(DLDataType type) { return type.bits >= 32 && tvm_kind_of_dtype(type) == 1; }

/* What decides beside numbers: the higher kind, then more bits; of f16 and bf16 f32. */
static DLDataType tvm_stronger(DLDataType a, DLDataType b) {
  const int kind_a = tvm_kind_of_dtype(a), kind_b = tvm_kind_of_dtype(b);
  if (kind_a != kind_b) return kind_a > kind_b ? a : b;
  if (kind_a == 2 && a.bits == b.bits && a.code != b.code) return (DLDataType){kDLFloat, 32, 1};
  return a.bits >= b.bits ? a : b;
}

/* The dtype of a number beside `others`: a bool takes any, an int any but bool, a float floats only. */
static DLDataType tvm_weak_dtype(int32_t type_index, DLDataType others) {
  if (type_index == QN_TVM_FLOAT && tvm_kind_of_dtype(others) < 2)
    return (DLDataType){kDLFloat, is_tvm_wide_integer(others) ? 64 : 32, 1};
  if (type_index == QN_TVM_INT && tvm_kind_of_dtype(others) < 1) return (DLDataType){kDLInt, 64, 1};
  return others;
}

/* The bits of a double in a float dtype of 16 bits, rounded to nearest, ties to even. digits: stored ones of the significand */
static uint64_t tvm_narrow_bits(double value, int digits) {
  const int bias = digits == 10 ? 15 : 127;
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint64_t sign = bits >> 63 << 15, infinite = (uint64_t)(2 * bias + 1) << digits;
  const int exponent = (int)(bits >> 52 & 0x7ff) - 1023 + bias;
  uint64_t significand = bits & 0xfffffffffffffu;
  if (exponent == 1024 + bias) return sign | infinite | (significand ? (uint64_t)1 << (digits - 1) : 0);
  if (exponent > 2 * bias) return sign | infinite;
  int dropped = 52 - digits;
  if (exponent <= 0) { /* subnormal */
    dropped += 1 - exponent;
    significand |= (uint64_t)1 << 52;
    if (dropped > 54) return sign;
  }
  const uint64_t kept = significand >> dropped, rest = significand & (((uint64_t)1 << dropped) - 1),
                 half = (uint64_t)1 << (dropped - 1);
  const uint64_t rounded = kept + (rest > half || (rest == half && (kept & 1)));
  return sign | (rounded + (exponent > 0 ? (uint64_t)exponent << digits : 0)); /* a carry goes into the exponent */
}

static int set_tvm_item(const quern_op_info *info, int32_t index, const qn_tvm_any *arg, qn_tvm_number *number) {
  const DLDataType type = number->tensor.dtype;
  const char *const name = info->args[index].name;
  if (tvm_kind_of_dtype(type) < 2) {
    const int64_t value = arg->v.i;
    if (type.code == kDLBool) return number->item.u = value != 0, 0;
    if (type.bits != 8 && type.bits != 16 && type.bits != 32 && type.bits != 64)
      return qn_tvm_fail("TypeError", info, "input %d (%s): a number beside items of %d bits", index + 1, name, type.bits);
    const int64_t limit = type.bits == 64 ? INT64_MAX : ((int64_t)1 << (type.bits - (type.code == kDLInt))) - 1;
    if (value > limit || (value < 0 && type.code == kDLUInt) || (value < 0 && value < -limit - 1))
      return qn_tvm_fail("ValueError", info, "input %d (%s): the number %lld does not fit into %s%d, the dtype of the others",
                         index + 1, name, (long long)value, type.code == kDLUInt ? "u" : "i", type.bits);
    number->item.u = (uint64_t)value; /* (little-endian: the low bytes are the item) */
    return 0;
  }
  const double value = arg->type_index == QN_TVM_FLOAT ? arg->v.f : (double)arg->v.i;
  if (type.code == kDLFloat && type.bits == 64)
    number->item.f64 = value;
  else if (type.code == kDLFloat && type.bits == 32)
    number->item.f32 = (float)value;
  else if (type.bits == 16 && (type.code == kDLFloat || type.code == kDLBfloat))
    number->item.u = tvm_narrow_bits(value, type.code == kDLFloat ? 10 : 7);
  else
    return qn_tvm_fail("TypeError", info,
                       "input %d (%s): a number beside tensors of another dtype than bool, integers, f16, bf16, f32, f64",
                       index + 1, name);
  return 0;
}

int qn_tvm_numbers(const quern_op_info *info, const qn_tvm_any *args, DLTensor **in, qn_tvm_number *numbers) {
  DLDataType others = {0};
  int32_t n_tensors = 0;
  for (int32_t k = 0; k < info->n_in; k++)
    if (in[k]) others = n_tensors++ ? tvm_stronger(others, in[k]->dtype) : in[k]->dtype;
  if (n_tensors == info->n_in) return 0;
  if (!n_tensors) return qn_tvm_fail("TypeError", info, "all inputs are numbers, which have no dtype of their own");
  if (info->n_out == 1 && strcmp(info->args[info->n_in].dtypes, "f64") == 0) others = (DLDataType){kDLFloat, 64, 1};
  for (int32_t k = 0; k < info->n_in; k++) {
    if (in[k]) continue;
    const int is_condition = strcmp(info->args[k].dtypes, "bool") == 0;
    const int is_count = (info->counts >> k & 1) != 0 && args[k].type_index == QN_TVM_INT; /* a narrow float could round it */
    DLDataType type = is_count ? (DLDataType){kDLInt, 64, 1} : tvm_weak_dtype(args[k].type_index, others);
    if (is_condition) {
      if (args[k].type_index != QN_TVM_BOOL)
        return qn_tvm_fail("TypeError", info, "input %d (%s): a number, expected a bool", k + 1, info->args[k].name);
      type = (DLDataType){kDLBool, 8, 1};
    }
    numbers[k].item.u = 0;
    numbers[k].tensor = (DLTensor){.data = &numbers[k].item, .device = {kDLCPU, 0}, .dtype = type};
    if (set_tvm_item(info, k, &args[k], &numbers[k])) return -1;
    in[k] = &numbers[k].tensor;
  }
  return 0;
}
