/* SPDX-License-Identifier: Apache-2.0
 *
 * typing_operators.c: operators, and where operands meet. See typing_parts.h. */
#include "lang/typing/typing_literals.h"
#include "lang/typing/weak.h"

/* ---- Where operands meet ---- */

/* The common dtype of two operands, at least one strong. 0 with the status set. */
static int unify(qn_typing *t, const qn_typing_operand *a, const qn_typing_operand *b, uint8_t *dtype) {
  if (!qn_typing_is_weak(a) && !qn_typing_is_weak(b)) {
    *dtype = qn_dtype_promotion[a->dtype][b->dtype];
    return *dtype != QN_DTYPE_NONE ? 1 : qn_typing_fail_common(t, a->dtype, b->dtype);
  }
  const qn_typing_operand *weak = qn_typing_is_weak(a) ? a : b;
  *dtype = qn_typing_is_weak(a) ? b->dtype : a->dtype;
  if (*dtype == QN_BOOL && !weak->is_float) {
    if (weak->kind == QN_TREE) return QN_TYPING_FAIL(t, "bool with a parameter: compare with a condition, or cast: (i32)x");
    return QN_TYPING_FAIL(t, "bool with the number %lld: compare with a condition, or cast: (i32)x", (long long)weak->number.v.i);
  }
  if (weak->is_float) *dtype = qn_typing_floating_of(*dtype);
  return 1;
}

int qn_typing_unify_arguments(qn_typing *t, int32_t n, const qn_typing_operand *args, uint32_t conditions, uint8_t *dtype) {
  const qn_typing_operand *weak = NULL;
  int has_float = 0;
  *dtype = QN_DTYPE_NONE;
  for (int32_t k = 0; k < n; k++) {
    if (conditions >> k & 1) continue;
    if (qn_typing_is_weak(&args[k])) {
      if (!weak) weak = &args[k];
      has_float |= args[k].is_float;
    } else if (*dtype == QN_DTYPE_NONE) {
      *dtype = args[k].dtype;
    } else {
      const uint8_t before = *dtype;
      *dtype = qn_dtype_promotion[before][args[k].dtype];
      if (*dtype == QN_DTYPE_NONE) return qn_typing_fail_common(t, before, args[k].dtype);
    }
  }
  if (*dtype == QN_DTYPE_NONE && weak) return qn_typing_fail_no_dtype(t, weak);
  if (*dtype == QN_DTYPE_NONE) *dtype = QN_BOOL;
  if (has_float) *dtype = qn_typing_floating_of(*dtype);
  return 1;
}

int32_t qn_typing_condition(qn_typing *t, const qn_typing_operand *x) {
  if (x->kind == QN_NUMBER) return qn_typing_constant(t, QN_BOOL, (uint64_t)qn_weak_is_true(x->number));
  if (x->kind == QN_TREE) return qn_typing_fail_no_dtype(t, x) - 1;
  const uint8_t type = qn_typing_type_of(t, x->value);
  return type == QN_BOOL ? x->value : qn_typing_binary(t, "ne", QN_BOOL, x->value, qn_typing_constant(t, type, 0));
}

/* ---- Operators: 1 with *made, or 0 with the status set ---- */

static const qn_typing_operand *tree_among(const qn_typing_operand *a, const qn_typing_operand *b) { return a->kind == QN_TREE ? a : b; }

static int arithmetic(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  static const char *const names[] = {"add", "sub", "mul", "div"};
  const qn_sign sign = t->at->what;
  const char *op = names[sign - QN_SIGN_ADD];
  uint8_t dtype;
  if (x[0].kind == QN_NUMBER && x[1].kind == QN_NUMBER) {
    qn_number number;
    const char *wrong = qn_weak_arithmetic(sign, x[0].number, x[1].number, &number);
    return qn_typing_number_made(t, wrong, number, made);
  }
  if (qn_typing_is_weak(&x[0]) && qn_typing_is_weak(&x[1])) {
    *made = qn_typing_tree_of(t, op, 2, x);
    made->is_float |= sign == QN_SIGN_DIV;
    return 1;
  }
  if (!unify(t, &x[0], &x[1], &dtype)) return 0;
  if (dtype == QN_BOOL) return QN_TYPING_FAIL(t, "'%s' of two bools: write &, | or ^, or cast one: (i32)x", qn_typing_sign_text(t));
  if (sign == QN_SIGN_DIV) dtype = qn_typing_floating_of(dtype);
  int32_t a = qn_typing_promoted(t, &x[0], dtype), b = a < 0 ? -1 : qn_typing_promoted(t, &x[1], dtype);
  return b >= 0 && qn_typing_gives(qn_typing_binary(t, op, qn_typing_compute_of(dtype), a, b), dtype, made);
}

static int compare(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  static const char *const names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  uint8_t dtype;
  const int is_literal = qn_typing_literal_compare(t, x, made);
  if (is_literal) return is_literal > 0;
  if (qn_typing_is_weak(&x[0]) && qn_typing_is_weak(&x[1])) return qn_typing_fail_no_dtype(t, tree_among(&x[0], &x[1]));
  if (!unify(t, &x[0], &x[1], &dtype)) return 0;
  int32_t a = qn_typing_promoted(t, &x[0], dtype), b = a < 0 ? -1 : qn_typing_promoted(t, &x[1], dtype);
  return b >= 0 && qn_typing_gives(qn_typing_binary(t, names[t->at->what - QN_SIGN_EQ], QN_BOOL, a, b), QN_BOOL, made);
}

static int bitwise(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  static const char *const names[] = {"or", "xor", "and"};
  uint8_t dtype;
  if (x[0].kind == QN_NUMBER && x[1].kind == QN_NUMBER) {
    qn_number number = {0};
    const char *wrong = qn_weak_bitwise(t->at->what, x[0].number, x[1].number, &number);
    return wrong ? QN_TYPING_FAIL(t, "'%s' %s", qn_typing_sign_text(t), wrong) : qn_typing_number_made(t, NULL, number, made);
  }
  if (qn_typing_is_weak(&x[0]) && qn_typing_is_weak(&x[1])) return qn_typing_fail_no_dtype(t, tree_among(&x[0], &x[1]));
  if (!unify(t, &x[0], &x[1], &dtype)) return 0;
  if (qn_typing_kind_of(dtype) == QN_KIND_FLOAT)
    return QN_TYPING_FAIL(t, "'%s' of floats: %sas_u32(x) or as_u64(x) gives the bits", qn_typing_sign_text(t),
                          t->at->what == QN_SIGN_XOR ? "a power is pow(x, y); " : "");
  int32_t a = qn_typing_promoted(t, &x[0], dtype), b = a < 0 ? -1 : qn_typing_promoted(t, &x[1], dtype);
  const int is_literal = b < 0 ? 0 : qn_typing_literal_logic(t, t->at->what, a, b, made);
  if (is_literal) return is_literal > 0;
  return b >= 0 && qn_typing_gives(qn_typing_binary(t, names[t->at->what - QN_SIGN_OR], dtype, a, b), dtype, made);
}

/* A shift count converted to the shifted type; a count outside of its width stays outside. */
static int32_t shift_count(qn_typing *t, int32_t count, uint8_t type) {
  const uint8_t from = qn_typing_type_of(t, count), width = qn_dtype_infos[type].bits;
  if (from == type) return count;
  if (t->values.values[count].kind == QN_VALUE_CONSTANT) {
    const uint64_t bits = t->values.values[count].bits; /* a negative count is above any width */
    return qn_typing_constant(t, type, bits < width ? bits : width);
  }
  int32_t is_outside = qn_typing_binary(t, "ge", QN_BOOL, count, qn_typing_constant(t, from, width));
  if (qn_weak_is_signed(from))
    is_outside = qn_typing_binary(t, "or", QN_BOOL, is_outside, qn_typing_binary(t, "lt", QN_BOOL, count, qn_typing_constant(t, from, 0)));
  return qn_typing_primitive(t, "select", type, 3, (int32_t[]){is_outside, qn_typing_constant(t, type, width), qn_typing_converted(t, count, type)});
}

static int shift(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  if (x[0].kind == QN_NUMBER && x[1].kind == QN_NUMBER) {
    qn_number number = {0};
    const char *wrong = qn_weak_shift(t->at->what, x[0].number, x[1].number, &number);
    return qn_typing_number_made(t, wrong, number, made);
  }
  if (qn_typing_is_weak(&x[0])) return qn_typing_fail_no_dtype(t, &x[0]);
  const uint8_t dtype = x[0].dtype;
  if (qn_typing_kind_of(dtype) != QN_KIND_INTEGER || (!qn_typing_is_weak(&x[1]) && qn_typing_kind_of(x[1].dtype) != QN_KIND_INTEGER))
    return QN_TYPING_FAIL(t, "'%s' wants integers", qn_typing_sign_text(t));
  int32_t count = qn_typing_is_weak(&x[1]) ? qn_typing_weak_value(t, &x[1], dtype) : x[1].value;
  if (count >= 0) count = shift_count(t, count, dtype);
  return count >= 0 && qn_typing_gives(qn_typing_binary(t, t->at->what == QN_SIGN_SHL ? "shl" : "shr", dtype, x[0].value, count), dtype, made);
}

static int logic(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  int32_t a = qn_typing_condition(t, &x[0]), b = a < 0 ? -1 : qn_typing_condition(t, &x[1]);
  const int is_literal = b < 0 ? 0 : qn_typing_literal_logic(t, t->at->what, a, b, made);
  if (is_literal) return is_literal > 0;
  return b >= 0 && qn_typing_gives(qn_typing_binary(t, t->at->what == QN_SIGN_AND_ALSO ? "and" : "or", QN_BOOL, a, b), QN_BOOL, made);
}

int qn_typing_binary_operator(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  const uint8_t sign = t->at->what;
  if (sign >= QN_SIGN_ADD) return arithmetic(t, x, made);
  if (sign >= QN_SIGN_SHL) return shift(t, x, made);
  if (sign >= QN_SIGN_EQ) return compare(t, x, made);
  return sign >= QN_SIGN_OR ? bitwise(t, x, made) : logic(t, x, made);
}

/* The opposite of a condition. */
static int opposite(qn_typing *t, int32_t value, uint8_t dtype, qn_typing_operand *made) {
  int holds;
  if (qn_typing_is_constant_condition(t, value, &holds)) return qn_typing_gives(qn_typing_constant(t, QN_BOOL, !holds), dtype, made);
  return qn_typing_gives(qn_typing_unary(t, "lnot", QN_BOOL, value), dtype, made);
}

int qn_typing_unary_operator(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  const qn_sign sign = t->at->what;
  if (sign == QN_SIGN_NOT) {
    int32_t a = qn_typing_condition(t, x);
    return a >= 0 && opposite(t, a, QN_BOOL, made);
  }
  if (x->kind == QN_NUMBER) {
    qn_number number = {0};
    const char *wrong = qn_weak_unary(sign, x->number, &number);
    return qn_typing_number_made(t, wrong, number, made);
  }
  if (x->kind == QN_TREE && sign == QN_SIGN_INVERT) return qn_typing_fail_no_dtype(t, x);
  *made = *x;
  if (x->kind == QN_TREE) {
    if (sign == QN_SIGN_SUB) *made = qn_typing_tree_of(t, "neg", 1, x);
    return 1;
  }
  const uint8_t type = qn_typing_type_of(t, x->value);
  if (sign == QN_SIGN_INVERT) {
    if (qn_typing_kind_of(type) == QN_KIND_FLOAT) return QN_TYPING_FAIL(t, "'~' of a float: as_u32(x) or as_u64(x) gives the bits");
    if (type == QN_BOOL) return opposite(t, x->value, x->dtype, made);
    return qn_typing_gives(qn_typing_unary(t, "not", type, x->value), x->dtype, made);
  }
  if (type == QN_BOOL) return QN_TYPING_FAIL(t, "'%s' of a bool: write !x, or cast: (i32)x", qn_typing_sign_text(t));
  return sign == QN_SIGN_ADD || qn_typing_gives(qn_typing_unary(t, "neg", type, x->value), x->dtype, made);
}

int qn_typing_select(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  uint8_t dtype;
  int32_t args[3] = {qn_typing_condition(t, &x[0])};
  if (args[0] < 0) return 0;
  int holds;
  if (x[1].kind == QN_NUMBER && x[2].kind == QN_NUMBER && qn_typing_is_constant_condition(t, args[0], &holds)) {
    qn_number chosen = x[holds ? 1 : 2].number;
    if (x[1].is_float != x[2].is_float) chosen = qn_weak_as_float(chosen);
    return qn_typing_number_made(t, NULL, chosen, made);
  }
  if (qn_typing_is_weak(&x[1]) && qn_typing_is_weak(&x[2])) return qn_typing_fail_no_dtype(t, tree_among(&x[1], &x[2]));
  if (!unify(t, &x[1], &x[2], &dtype)) return 0;
  for (int k = 1; k < 3; k++)
    if ((args[k] = qn_typing_promoted(t, &x[k], dtype)) < 0) return 0;
  return qn_typing_gives(qn_typing_primitive(t, "select", qn_typing_compute_of(dtype), 3, args), dtype, made);
}
