/* SPDX-License-Identifier: Apache-2.0
 *
 * typing.c: the meaning of an expression for given dtypes. See typing.h.
 *
 * One walk over the instructions with a stack of operands. An operand is strong: a value and the dtype that promotion sees (an
 * f16 is computed in f32, and stays an f16); or weak: a number, or a tree of numbers and parameters, which becomes a value
 * in whatever dtype it meets. */
#include "lang/typing.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/float_env.h"
#include "core/op/params.h"
#include "core/row/scan_op.h"
#include "lang/callee.h"
#include "lang/derive.h"
#include "lang/row_values.h"
#include "lang/values.h"
#include "lang/weak.h"

typedef enum operand_kind { STRONG, NUMBER, TREE } operand_kind;

typedef struct operand {
  uint8_t kind;
  uint8_t dtype;    /* STRONG */
  uint8_t is_float; /* weak: an integer operand beside it is converted to a float */
  int32_t value;    /* STRONG: the value; TREE: its root branch; its nodes are the branches from `first` to it */
  int32_t first;
  int32_t finer; /* STRONG: the value before it was rounded to the dtype, and 1, of which an output is rounded; 0: this one */
  qn_number number; /* NUMBER */
} operand;

/* A node of a weak tree. Arguments come before the branches that use them. */
typedef struct branch {
  const char *op; /* NULL: a leaf */
  int32_t n_args, args[2];
  int32_t param; /* leaf: which, or -1: the number */
  qn_number number;
  int32_t value; /* while the tree is instantiated */
} branch;

typedef struct typing {
  const qn_expression *expression;
  const uint8_t *in_dtypes;
  const qn_instruction *at; /* what is being typed */
  quern_status status;
  qn_values values;
  operand *stack, *variables;
  branch *branches;
  qn_row_calls row_calls; /* those that have been typed, for derivatives */
  int32_t n_stack, n_branches;
} typing;

static const char *dtype_name(uint8_t dtype) { return qn_dtype_infos[dtype].name; }
static uint8_t compute_of(uint8_t dtype) { return qn_dtype_infos[dtype].compute; }
static uint8_t floating_of(uint8_t dtype) { return qn_dtype_infos[dtype].floating; }
static uint8_t kind_of(uint8_t dtype) { return qn_dtype_infos[dtype].kind; }
static int is_weak(const operand *x) { return x->kind != STRONG; }
static operand strong(int32_t value, uint8_t dtype) { return (operand){.kind = STRONG, .dtype = dtype, .value = value}; }

/* ---- Errors at the instruction's place ---- */

static const qn_source *source_of(const typing *t, qn_source *source) {
  const qn_expression *e = t->expression;
  *source = (qn_source){e->text, (uint32_t)strlen(e->text), e->name, (uint32_t)strlen(e->name)};
  return source;
}

/* FAIL is 0, for functions that return a success flag; NO_VALUE is -1, for functions that return a value. */
#define FAIL_AS(t, code, ...) ((t)->status = qn_syntax_fail(source_of(t, &(qn_source){0}), code, (t)->at->at, __VA_ARGS__), 0)
#define FAIL(t, ...) FAIL_AS(t, QUERN_E_DTYPE, __VA_ARGS__)
#define NO_VALUE(t, ...) (FAIL(t, __VA_ARGS__) - 1)

static int fail_common(typing *t, uint8_t a, uint8_t b) {
  return FAIL(t, "%s with %s has no common dtype: cast one, (i64)x or (f64)x", dtype_name(a), dtype_name(b));
}

static int fail_no_dtype(typing *t, const operand *x) {
  if (x->kind == NUMBER) return FAIL(t, "this has no dtype: literals take the other operand's; write a cast, (f32)1");
  return FAIL(t, "this has no dtype: parameters take the other operand's; write a cast, (f32)(...)");
}

/* The sign of the operator that is being typed, for messages. */
static const char *sign_text(const typing *t) { return qn_syntax_signs[t->at->what]; }

/* ---- Values: their number, or -1 with the status set ---- */

/* Sets the status: too many values, or out of memory. */
static int32_t no_room(typing *t) {
  if (t->values.exceeded) return FAIL_AS(t, QUERN_E_LIMIT, "more than %d values", QN_MAX_VALUES) - 1;
  t->status = qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", t->expression->name);
  return -1;
}

static int32_t add(typing *t, qn_value like, const int32_t *args) {
  int32_t value = qn_values_add(&t->values, &like, args);
  return value >= 0 ? value : no_room(t);
}

static uint8_t type_of(const typing *t, int32_t value) { return t->values.values[value].type; }

static int32_t constant(typing *t, uint8_t type, uint64_t bits) {
  return add(t, (qn_value){.kind = QN_VALUE_CONSTANT, .type = type, .bits = bits}, NULL);
}

static int32_t primitive(typing *t, const char *op, uint8_t type, int32_t n, const int32_t *args) {
  for (int32_t k = 0; k < n; k++)
    if (args[k] < 0) return -1;
  const qn_primitive *found = qn_primitive_find(op, type, type_of(t, args[n - 1]));
  if (!found)
    return FAIL_AS(t, QUERN_E_UNSUPPORTED, "this build has no kernel for %s of %s", op,
                   dtype_name(type_of(t, args[n - 1]))) - 1;
  return add(t, (qn_value){.kind = QN_VALUE_PRIMITIVE, .type = type, .primitive = found, .n_args = n}, args);
}

static int32_t unary(typing *t, const char *op, uint8_t type, int32_t a) { return primitive(t, op, type, 1, (int32_t[]){a}); }
static int32_t binary(typing *t, const char *op, uint8_t type, int32_t a, int32_t b) {
  return primitive(t, op, type, 2, (int32_t[]){a, b});
}

static int32_t converted(typing *t, int32_t value, uint8_t type) {
  if (value < 0 || type_of(t, value) == type) return value;
  return unary(t, "cast", type, value);
}

/* A value rounded to a dtype, in its compute type. */
static int32_t rounded(typing *t, int32_t value, uint8_t dtype) {
  const uint8_t from = type_of(t, value);
  const qn_primitive *round = qn_primitive_round(dtype, from);
  if (!round)
    return FAIL_AS(t, QUERN_E_UNSUPPORTED, "this build has no kernel for %s of %s", dtype_name(dtype), dtype_name(from)) - 1;
  return add(t, (qn_value){.kind = QN_VALUE_PRIMITIVE, .type = round->type, .primitive = round, .n_args = 1}, &value);
}

/* ---- Weak operands become values ---- */

static int32_t number_value(typing *t, qn_number number, uint8_t type) {
  uint64_t bits;
  switch (qn_weak_constant(number, type, &bits)) {
    case QN_WEAK_FLOAT: return NO_VALUE(t, "a float literal where %s is expected: write a cast", dtype_name(type));
    case QN_WEAK_TOO_BIG: return NO_VALUE(t, "%lld does not fit %s", (long long)number.v.i, dtype_name(type));
    case QN_WEAK_NO_BOOL: return NO_VALUE(t, "a number that is neither 0 nor 1 is no bool");
    case QN_WEAK_COMPLEX: return NO_VALUE(t, "a number where %s is expected: give it as an operand", dtype_name(type));
    default: return constant(t, type, bits);
  }
}

static int32_t branch_value(typing *t, const branch *at, uint8_t type) {
  if (at->param >= 0) return add(t, (qn_value){.kind = QN_VALUE_PARAM, .type = type, .index = at->param}, NULL);
  if (!at->op) return number_value(t, at->number, type);
  if (type == QN_BOOL) return NO_VALUE(t, "arithmetic with a parameter where bool is expected: write a comparison");
  int32_t args[2] = {0};
  for (int32_t k = 0; k < at->n_args; k++) args[k] = t->branches[at->args[k]].value;
  return primitive(t, at->op, type, at->n_args, args);
}

static int32_t weak_value(typing *t, const operand *x, uint8_t type) {
  if (x->kind == NUMBER) return number_value(t, x->number, type);
  if (kind_of(type) == QN_KIND_COMPLEX)
    return NO_VALUE(t, "a parameter where %s is expected: give it as an operand", dtype_name(type));
  if (x->is_float && kind_of(type) != QN_KIND_FLOAT)
    return NO_VALUE(t, "a float where %s is expected: write a cast", dtype_name(type));
  for (int32_t i = x->first; i <= x->value; i++) {
    t->branches[i].value = branch_value(t, &t->branches[i], type);
    if (t->branches[i].value < 0) return -1;
  }
  return t->branches[x->value].value;
}

/* An operand converted to the compute type of a dtype; not rounded. */
static int32_t promoted(typing *t, const operand *x, uint8_t dtype) {
  return is_weak(x) ? weak_value(t, x, compute_of(dtype)) : converted(t, x->value, compute_of(dtype));
}

static operand tree_leaf(typing *t, branch leaf) {
  t->branches[t->n_branches] = leaf;
  return (operand){.kind = TREE, .value = t->n_branches, .first = t->n_branches++};
}

/* A tree over weak operands, at least one of which is a tree. */
static operand tree_of(typing *t, const char *op, int32_t n, const operand *args) {
  branch root = {.op = op, .n_args = n, .param = -1};
  operand made = {.kind = TREE, .first = INT32_MAX};
  for (int32_t k = 0; k < n; k++) {
    operand leaf = args[k];
    if (leaf.kind == NUMBER) leaf = tree_leaf(t, (branch){.param = -1, .number = leaf.number});
    root.args[k] = leaf.value;
    if (leaf.first < made.first) made.first = leaf.first;
    made.is_float |= args[k].is_float;
  }
  made.value = t->n_branches;
  t->branches[t->n_branches++] = root;
  return made;
}

/* ---- Where operands meet ---- */

/* The common dtype of two operands, at least one strong. 0 with the status set. */
static int unify(typing *t, const operand *a, const operand *b, uint8_t *dtype) {
  if (!is_weak(a) && !is_weak(b)) {
    *dtype = qn_dtype_promotion[a->dtype][b->dtype];
    return *dtype != QN_DTYPE_NONE ? 1 : fail_common(t, a->dtype, b->dtype);
  }
  const operand *weak = is_weak(a) ? a : b;
  *dtype = is_weak(a) ? b->dtype : a->dtype;
  if (*dtype == QN_BOOL && !weak->is_float) {
    if (weak->kind == TREE) return FAIL(t, "bool with a parameter: compare with a condition, or cast: (i32)x");
    return FAIL(t, "bool with the number %lld: compare with a condition, or cast: (i32)x", (long long)weak->number.v.i);
  }
  if (weak->is_float) *dtype = floating_of(*dtype);
  return 1;
}

/* The common dtype of a call's arguments, except `conditions` (bit k: argument k); bool if all are conditions. */
static int unify_arguments(typing *t, int32_t n, const operand *args, uint32_t conditions, uint8_t *dtype) {
  const operand *weak = NULL;
  int has_float = 0;
  *dtype = QN_DTYPE_NONE;
  for (int32_t k = 0; k < n; k++) {
    if (conditions >> k & 1) continue;
    if (is_weak(&args[k])) {
      if (!weak) weak = &args[k];
      has_float |= args[k].is_float;
    } else if (*dtype == QN_DTYPE_NONE) {
      *dtype = args[k].dtype;
    } else {
      const uint8_t before = *dtype;
      *dtype = qn_dtype_promotion[before][args[k].dtype];
      if (*dtype == QN_DTYPE_NONE) return fail_common(t, before, args[k].dtype);
    }
  }
  if (*dtype == QN_DTYPE_NONE && weak) return fail_no_dtype(t, weak);
  if (*dtype == QN_DTYPE_NONE) *dtype = QN_BOOL;
  if (has_float) *dtype = floating_of(*dtype);
  return 1;
}

/* An operand converted to a condition. */
static int32_t condition(typing *t, const operand *x) {
  if (x->kind == NUMBER) return constant(t, QN_BOOL, (uint64_t)qn_weak_is_true(x->number));
  if (x->kind == TREE) return fail_no_dtype(t, x) - 1;
  const uint8_t type = type_of(t, x->value);
  return type == QN_BOOL ? x->value : binary(t, "ne", QN_BOOL, x->value, constant(t, type, 0));
}

/* ---- Operators: 1 with *made, or 0 with the status set ---- */

static int gives(int32_t value, uint8_t dtype, operand *made) {
  *made = strong(value, dtype);
  return value >= 0;
}

static int number_made(typing *t, const char *wrong, qn_number number, operand *made) {
  *made = (operand){.kind = NUMBER, .is_float = (uint8_t)number.is_float, .number = number};
  return wrong ? FAIL(t, "%s", wrong) : 1;
}

static const operand *tree_among(const operand *a, const operand *b) { return a->kind == TREE ? a : b; }

static int arithmetic(typing *t, const operand *x, operand *made) {
  static const char *const names[] = {"add", "sub", "mul", "div"};
  const qn_sign sign = t->at->what;
  const char *op = names[sign - QN_SIGN_ADD];
  uint8_t dtype;
  if (x[0].kind == NUMBER && x[1].kind == NUMBER) {
    qn_number number;
    const char *wrong = qn_weak_arithmetic(sign, x[0].number, x[1].number, &number);
    return number_made(t, wrong, number, made);
  }
  if (is_weak(&x[0]) && is_weak(&x[1])) {
    *made = tree_of(t, op, 2, x);
    made->is_float |= sign == QN_SIGN_DIV;
    return 1;
  }
  if (!unify(t, &x[0], &x[1], &dtype)) return 0;
  if (dtype == QN_BOOL) return FAIL(t, "'%s' of two bools: write &, | or ^, or cast one: (i32)x", sign_text(t));
  if (sign == QN_SIGN_DIV) dtype = floating_of(dtype);
  int32_t a = promoted(t, &x[0], dtype), b = a < 0 ? -1 : promoted(t, &x[1], dtype);
  return b >= 0 && gives(binary(t, op, compute_of(dtype), a, b), dtype, made);
}

static int compare(typing *t, const operand *x, operand *made) {
  static const char *const names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  uint8_t dtype;
  if (is_weak(&x[0]) && is_weak(&x[1])) return fail_no_dtype(t, tree_among(&x[0], &x[1]));
  if (!unify(t, &x[0], &x[1], &dtype)) return 0;
  int32_t a = promoted(t, &x[0], dtype), b = a < 0 ? -1 : promoted(t, &x[1], dtype);
  return b >= 0 && gives(binary(t, names[t->at->what - QN_SIGN_EQ], QN_BOOL, a, b), QN_BOOL, made);
}

static int bitwise(typing *t, const operand *x, operand *made) {
  static const char *const names[] = {"or", "xor", "and"};
  uint8_t dtype;
  if (x[0].kind == NUMBER && x[1].kind == NUMBER) {
    qn_number number = {0};
    const char *wrong = qn_weak_bitwise(t->at->what, x[0].number, x[1].number, &number);
    return wrong ? FAIL(t, "'%s' %s", sign_text(t), wrong) : number_made(t, NULL, number, made);
  }
  if (is_weak(&x[0]) && is_weak(&x[1])) return fail_no_dtype(t, tree_among(&x[0], &x[1]));
  if (!unify(t, &x[0], &x[1], &dtype)) return 0;
  if (kind_of(dtype) == QN_KIND_FLOAT) return FAIL(t, "'%s' of floats: as_u32(x) or as_u64(x) gives the bits", sign_text(t));
  int32_t a = promoted(t, &x[0], dtype), b = a < 0 ? -1 : promoted(t, &x[1], dtype);
  return b >= 0 && gives(binary(t, names[t->at->what - QN_SIGN_OR], dtype, a, b), dtype, made);
}

/* A shift count converted to the shifted type; a count outside of its width stays outside. */
static int32_t shift_count(typing *t, int32_t count, uint8_t type) {
  const uint8_t from = type_of(t, count), width = qn_dtype_infos[type].bits;
  if (from == type) return count;
  if (t->values.values[count].kind == QN_VALUE_CONSTANT) {
    const uint64_t bits = t->values.values[count].bits; /* a negative count is above any width */
    return constant(t, type, bits < width ? bits : width);
  }
  int32_t is_outside = binary(t, "ge", QN_BOOL, count, constant(t, from, width));
  if (qn_weak_is_signed(from))
    is_outside = binary(t, "or", QN_BOOL, is_outside, binary(t, "lt", QN_BOOL, count, constant(t, from, 0)));
  return primitive(t, "select", type, 3, (int32_t[]){is_outside, constant(t, type, width), converted(t, count, type)});
}

static int shift(typing *t, const operand *x, operand *made) {
  if (x[0].kind == NUMBER && x[1].kind == NUMBER) {
    qn_number number = {0};
    const char *wrong = qn_weak_shift(t->at->what, x[0].number, x[1].number, &number);
    return number_made(t, wrong, number, made);
  }
  if (is_weak(&x[0])) return fail_no_dtype(t, &x[0]);
  const uint8_t dtype = x[0].dtype;
  if (kind_of(dtype) != QN_KIND_INTEGER || (!is_weak(&x[1]) && kind_of(x[1].dtype) != QN_KIND_INTEGER))
    return FAIL(t, "'%s' wants integers", sign_text(t));
  int32_t count = is_weak(&x[1]) ? weak_value(t, &x[1], dtype) : x[1].value;
  if (count >= 0) count = shift_count(t, count, dtype);
  return count >= 0 && gives(binary(t, t->at->what == QN_SIGN_SHL ? "shl" : "shr", dtype, x[0].value, count), dtype, made);
}

static int logic(typing *t, const operand *x, operand *made) {
  int32_t a = condition(t, &x[0]), b = a < 0 ? -1 : condition(t, &x[1]);
  return b >= 0 && gives(binary(t, t->at->what == QN_SIGN_AND_ALSO ? "and" : "or", QN_BOOL, a, b), QN_BOOL, made);
}

static int type_binary(typing *t, const operand *x, operand *made) {
  const uint8_t sign = t->at->what;
  if (sign >= QN_SIGN_ADD) return arithmetic(t, x, made);
  if (sign >= QN_SIGN_SHL) return shift(t, x, made);
  if (sign >= QN_SIGN_EQ) return compare(t, x, made);
  return sign >= QN_SIGN_OR ? bitwise(t, x, made) : logic(t, x, made);
}

static int type_unary(typing *t, const operand *x, operand *made) {
  const qn_sign sign = t->at->what;
  if (sign == QN_SIGN_NOT) {
    int32_t a = condition(t, x);
    return a >= 0 && gives(unary(t, "lnot", QN_BOOL, a), QN_BOOL, made);
  }
  if (x->kind == NUMBER) {
    qn_number number = {0};
    const char *wrong = qn_weak_unary(sign, x->number, &number);
    return number_made(t, wrong, number, made);
  }
  if (x->kind == TREE && sign == QN_SIGN_INVERT) return fail_no_dtype(t, x);
  *made = *x;
  if (x->kind == TREE) {
    if (sign == QN_SIGN_SUB) *made = tree_of(t, "neg", 1, x);
    return 1;
  }
  const uint8_t type = type_of(t, x->value);
  if (sign == QN_SIGN_INVERT) {
    if (kind_of(type) == QN_KIND_FLOAT) return FAIL(t, "'~' of a float: as_u32(x) or as_u64(x) gives the bits");
    return gives(unary(t, type == QN_BOOL ? "lnot" : "not", type, x->value), x->dtype, made);
  }
  if (type == QN_BOOL) return FAIL(t, "'%s' of a bool: write !x, or cast: (i32)x", sign_text(t));
  return sign == QN_SIGN_ADD || gives(unary(t, "neg", type, x->value), x->dtype, made);
}

static int type_select(typing *t, const operand *x, operand *made) {
  uint8_t dtype;
  int32_t args[3] = {condition(t, &x[0])};
  if (args[0] < 0) return 0;
  if (is_weak(&x[1]) && is_weak(&x[2])) return fail_no_dtype(t, tree_among(&x[1], &x[2]));
  if (!unify(t, &x[1], &x[2], &dtype)) return 0;
  for (int k = 1; k < 3; k++)
    if ((args[k] = promoted(t, &x[k], dtype)) < 0) return 0;
  return gives(primitive(t, "select", compute_of(dtype), 3, args), dtype, made);
}

/* ---- Casts and assignments ---- */

/* An explicit cast. To a dtype with another compute type it rounds; the result has the compute type. */
static int cast_to(typing *t, int32_t value, uint8_t dtype, operand *made) {
  if (value < 0) return 0;
  if (compute_of(dtype) == dtype) return gives(converted(t, value, dtype), dtype, made);
  return gives(rounded(t, value, dtype), dtype, made);
}

static int type_cast(typing *t, const operand *x, operand *made) {
  const uint8_t dtype = t->at->what;
  if (!is_weak(x)) return cast_to(t, x->value, dtype, made);
  /* A weak float is truncated as an f64. */
  const int truncates = x->is_float && kind_of(dtype) < QN_KIND_FLOAT;
  return cast_to(t, weak_value(t, x, truncates ? QN_F64 : compute_of(dtype)), dtype, made);
}

static int type_assign(typing *t, operand *x) {
  const uint8_t dtype = t->at->what;
  if (dtype == QN_DTYPE_NONE) {
    if (is_weak(x)) return fail_no_dtype(t, x);
  } else {
    int32_t value = is_weak(x) ? weak_value(t, x, compute_of(dtype)) : x->value;
    if (value < 0) return 0;
    if (kind_of(type_of(t, value)) >= QN_KIND_FLOAT && kind_of(dtype) < QN_KIND_FLOAT)
      return FAIL(t, "a %s where %s is declared: write the cast, (%s)", dtype_name(x->dtype), dtype_name(dtype),
                  dtype_name(dtype));
    if (!cast_to(t, value, dtype, x)) return 0;
  }
  t->variables[t->at->v.index] = *x;
  return 1;
}

/* ---- Calls ---- */

/* A parameter of an op: a number outside of an integer type's range saturates. */
static int32_t parameter(typing *t, const quern_op_info *info, int32_t k, const operand *x, uint8_t type) {
  if (x && !is_weak(x))
    return NO_VALUE(t, "%.64s: %.64s is a parameter: a number or a param, no operand", info->name, info->params[k].name);
  quern_scalar scalar = info->params[k].value;
  if (x) {
    if (x->kind == TREE || kind_of(type) >= QN_KIND_FLOAT) return weak_value(t, x, type);
    scalar.kind = x->is_float ? QUERN_F64 : x->number.is_pattern && !qn_weak_is_signed(type) ? QUERN_U64 : QUERN_I64;
    if (x->is_float)
      scalar.v.f[0] = x->number.v.f;
    else
      scalar.v.i = x->number.v.i;
  }
  uint64_t bits;
  if (kind_of(type) == QN_KIND_COMPLEX) /* its default */
    return NO_VALUE(t, "%.64s: a parameter where %s is expected: call the op by itself", info->name, dtype_name(type));
  qn_assert(scalar.kind >= QUERN_I64 && scalar.kind <= QUERN_F64);
  const char *wrong = qn_params_number(&scalar, type, &bits);
  if (!wrong) return constant(t, type, bits & UINT64_MAX >> (64 - qn_dtype_infos[type].bits));
  return NO_VALUE(t,
                  "%.64s: parameter %d (%.64s): %s, but it computes in %s here; give a whole number, or cast its operands to a "
                  "float dtype",
                  info->name, k + 1, info->params[k].name, wrong, dtype_name(type));
}

/* An operand for an op with kernels of its own for a dtype like f16: rounded to that dtype, in its compute type. */
static int32_t own_operand(typing *t, const operand *x, uint8_t dtype) {
  operand made;
  const int32_t value = is_weak(x) ? weak_value(t, x, compute_of(dtype)) : x->value;
  if (value < 0) return -1;
  if (!is_weak(x) && x->dtype == dtype && t->values.values[value].kind == QN_VALUE_INPUT) return value;
  return cast_to(t, value, dtype, &made) ? made.value : -1;
}

/* ---- Calls that reduce ---- */

/* The number of the first axes that are written alike: equal reductions are one value, however their results are stored. */
static int32_t first_axes(const typing *t) {
  const qn_axes *axes = t->expression->axes, *own = &axes[t->at->axes];
  int32_t i = 0;
  while (axes[i].is_all != own->is_all || axes[i].n != own->n || memcmp(axes[i].axis, own->axis, own->n) != 0) i++;
  return i;
}

/* An input of an op that reduces: of the promoted dtype, a condition, or an integer of its own. */
static int32_t row_input(typing *t, const qn_builtin *builtin, int32_t k, const operand *x, uint8_t dtype) {
  if (builtin->bool_in >> k & 1) return condition(t, x);
  if (!(builtin->whole_in >> k & 1)) return promoted(t, x, dtype);
  if (is_weak(x)) return weak_value(t, x, QN_I64);
  if (kind_of(x->dtype) != QN_KIND_INTEGER)
    return NO_VALUE(t, "%.64s: %s is %s, expected an integer", builtin->info.name, builtin->info.args[k].name, dtype_name(x->dtype));
  return converted(t, x->value, QN_I64);
}

/* A call of an op that reduces, for inputs of the promoted dtype: its stages as values. */
static int type_row(typing *t, const qn_row_op *row, uint8_t dtype, const operand *x, operand *made) {
  const quern_op_info *info = &t->at->v.op->builtin->info;
  const qn_row_program *program = row->programs[dtype];
  const int32_t first = qn_row_n_shape_params(row);
  qn_row_call call = {.op = t->at->v.op, .axes = first_axes(t), .dtype = dtype};
  int32_t outputs[QN_MAX_OUTPUTS];
  for (int32_t k = 0; k < info->n_in; k++)
    if ((call.inputs[k] = row_input(t, t->at->v.op->builtin, k, &x[k], dtype)) < 0) return 0;
  for (int32_t k = 0; k < program->n_slots; k++) {
    const int32_t given = info->n_in + program->slots[k].param - first;
    call.params[k] = parameter(t, info, program->slots[k].param, given < t->at->n_args ? &x[given] : NULL, program->slots[k].dtype);
    if (call.params[k] < 0) return 0;
  }
  switch (qn_row_values(&t->values, &call, outputs)) {
    case QN_ROW_MADE: break;
    case QN_ROW_MADE_NO_CAST: return FAIL_AS(t, QUERN_E_UNSUPPORTED, "this build has no kernel for a cast that %.64s needs", info->name);
    default: no_room(t); return 0;
  }
  const uint8_t fixed = t->at->v.op->builtin->results[t->at->what], result = fixed != QN_DTYPE_NONE ? fixed : row->results[dtype];
  const int32_t output = outputs[t->at->what];
  call.result = converted(t, output, compute_of(result));
  if (call.result >= 0 && !qn_row_note(&t->row_calls, &call)) {
    no_room(t);
    return 0;
  }
  if (!gives(call.result, result, made)) return 0;
  if (call.result != output && kind_of(type_of(t, output)) == QN_KIND_FLOAT) made->finer = output + 1;
  return 1;
}

/* A call of an op that scans, for an input of the promoted dtype. */
static int type_scan(typing *t, uint8_t dtype, const operand *x, operand *made) {
  const qn_scan_op *scans = t->at->v.op->builtin->of_kind;
  const qn_axes *axes = &t->expression->axes[t->at->axes];
  const uint8_t type = scans->scans[dtype].dtype, result = scans->results[dtype];
  const int32_t arg = converted(t, promoted(t, x, dtype), type);
  if (arg < 0) return 0;
  const qn_value scan = {.kind = QN_VALUE_SCAN, .type = type, .kernel_dtype = dtype, .index = first_axes(t), .op = t->at->v.op, .n_args = 1,
                         .bits = (axes->reverse ? QN_SCAN_REVERSE : 0) | (axes->exclusive ? QN_SCAN_EXCLUSIVE : 0)};
  return gives(converted(t, add(t, scan, &arg), compute_of(result)), result, made);
}

static int type_op(typing *t, const operand *x, operand *made) {
  const quern_op *op = t->at->v.op;
  const qn_builtin *builtin = op->builtin;
  const quern_op_info *info = &builtin->info;
  int32_t args[QN_MAX_OPERANDS + QN_MAX_PARAMS];
  uint8_t dtype;
  dtype = QN_F64;
  if (builtin->promotion != QN_PROMOTION_DOUBLE && !unify_arguments(t, info->n_in, x, builtin->bool_in | builtin->whole_in, &dtype)) return 0;
  if (builtin->promotion == QN_PROMOTION_FLOATING) dtype = floating_of(dtype);
  if (!(builtin->dtypes >> dtype & 1))
    return FAIL(t, "%.64s does not take %s: cast to one of %.100s", info->name, dtype_name(dtype),
                info->n_in ? info->args[info->n_in - 1].dtypes : "its dtypes");
  if (qn_callee_scans(t->at)) return type_scan(t, dtype, x, made);
  const qn_row_op *row = qn_row_op_of(builtin);
  if (row) return type_row(t, row, dtype, x, made);
  const uint8_t type = compute_of(dtype);
  const int is_own = builtin->own >> dtype & 1;
  for (int32_t k = 0; k < info->n_in; k++) {
    args[k] = builtin->bool_in >> k & 1 ? condition(t, &x[k]) : is_own ? own_operand(t, &x[k], dtype) : promoted(t, &x[k], dtype);
    if (args[k] < 0) return 0;
  }
  for (int32_t k = 0; k < info->n_params; k++)
    if ((args[info->n_in + k] = parameter(t, info, k, info->n_in + k < t->at->n_args ? &x[info->n_in + k] : NULL, type)) < 0)
      return 0;
  const uint8_t result = builtin->results[t->at->what] != QN_DTYPE_NONE ? builtin->results[t->at->what] : dtype;
  const qn_value call = {.kind = QN_VALUE_OP, .type = compute_of(result), .kernel_dtype = is_own ? dtype : type,
                         .index = t->at->what, .op = op, .n_args = info->n_in, .n_params = info->n_params};
  return gives(add(t, call, args), result, made);
}

/* The bits of a value as another type of the same size. */
static int type_as(typing *t, const qn_function *function, const operand *x, operand *made) {
  if (is_weak(x)) return fail_no_dtype(t, x);
  const uint8_t to = function->type;
  if (x->dtype == QN_BOOL || qn_dtype_infos[x->dtype].bits != qn_dtype_infos[to].bits)
    return FAIL(t, "%s of %s: the sizes differ", function->name, dtype_name(x->dtype));
  if (kind_of(x->dtype) == kind_of(to)) return gives(converted(t, x->value, to), to, made);
  return gives(unary(t, kind_of(to) == QN_KIND_FLOAT ? "from_bits" : "bits", to, x->value), to, made);
}

static int type_function(typing *t, const operand *x, operand *made) {
  const qn_function *function = t->at->v.function;
  int32_t args[QN_MAX_OPERANDS];
  uint8_t dtype;
  if (function->kind == QN_FUNCTION_AS) return type_as(t, function, x, made);
  if (!unify_arguments(t, function->n_args, x, 0, &dtype)) return 0;
  if (dtype == QN_BOOL) return FAIL(t, "%s of bool: cast it first, (i32)x", function->name);
  if (kind_of(dtype) == QN_KIND_FLOAT && function->kind == QN_FUNCTION_INTEGER)
    return FAIL(t, "%s of %s: it takes integers", function->name, dtype_name(dtype));
  if (kind_of(dtype) == QN_KIND_INTEGER) {
    if (function->kind == QN_FUNCTION_WHOLE) return gives(promoted(t, x, dtype), dtype, made);
    if (function->kind == QN_FUNCTION_FLOAT) dtype = floating_of(dtype);
  }
  for (int32_t k = 0; k < function->n_args; k++)
    if ((args[k] = promoted(t, &x[k], dtype)) < 0) return 0;
  if (function->type != QN_DTYPE_NONE) dtype = function->type;
  return gives(primitive(t, function->name, compute_of(dtype), function->n_args, args), dtype, made);
}

/* ---- Derivatives ---- */

#define NO_SECOND ": second derivatives go through operators and primitives, not through ops"

/* x[0]: an expression, x[1]: the input to differentiate by. The result has the input's dtype. */
static int type_grad(typing *t, const operand *x, operand *made) {
  const qn_expression *e = t->expression;
  if (is_weak(&x[0])) return fail_no_dtype(t, &x[0]);
  if (kind_of(x[0].dtype) != QN_KIND_FLOAT) return FAIL(t, "grad of a %s: cast it first, (f32)x", dtype_name(x[0].dtype));
  if (kind_of(x[1].dtype) != QN_KIND_FLOAT)
    return FAIL(t, "grad by a %s: only floats have derivatives", dtype_name(x[1].dtype));
  const uint8_t type = type_of(t, x[1].value);
  int32_t value = -1;
  const char *name;
  switch (qn_derive(&t->values, e->ops, e->n_ops, &t->row_calls, x[0].value, x[1].value, &value, &name)) {
    case QN_DERIVED: value = converted(t, value, type); break;
    case QN_DERIVED_ZERO: value = constant(t, type, 0); break;
    case QN_DERIVED_NOT: return FAIL(t, "%.64s has no derivative", name);
    case QN_DERIVED_NOT_HERE:
      return FAIL(t, "%.64s has no derivative in an expression; call %.64s_backward by itself", name, name);
    case QN_DERIVED_NOT_BY: return FAIL(t, "an op has no derivative by its argument %.64s", name);
    case QN_DERIVED_NOT_TWICE: return FAIL(t, "%.64s has no derivative" NO_SECOND, name);
    default: no_room(t);
  }
  return gives(value, x[1].dtype, made);
}

/* ---- The whole ---- */

static int step(typing *t) {
  const qn_instruction *at = t->at;
  operand *x = t->stack + t->n_stack - at->n_args, made = {0};
  int fine = 1;
  switch (at->kind) {
    case QN_CODE_NUMBER: number_made(t, NULL, at->v.number, &made); break;
    case QN_CODE_VARIABLE: made = t->variables[at->v.index]; break;
    case QN_CODE_PARAM: made = tree_leaf(t, (branch){.param = at->v.index}); break;
    case QN_CODE_INPUT: {
      const uint8_t dtype = t->in_dtypes[at->v.index];
      const qn_value input = {.kind = QN_VALUE_INPUT, .type = compute_of(dtype), .dtype = dtype, .index = at->v.index};
      fine = gives(add(t, input, NULL), dtype, &made);
      break;
    }
    case QN_CODE_UNARY: fine = type_unary(t, x, &made); break;
    case QN_CODE_BINARY: fine = type_binary(t, x, &made); break;
    case QN_CODE_SELECT: fine = type_select(t, x, &made); break;
    case QN_CODE_CAST: fine = type_cast(t, x, &made); break;
    case QN_CODE_OP: fine = type_op(t, x, &made); break;
    case QN_CODE_FUNCTION: fine = type_function(t, x, &made); break;
    case QN_CODE_GRAD: fine = type_grad(t, x, &made); break;
    default:
      t->n_stack = t->n_branches = 0; /* the end of a statement: trees end with it */
      return type_assign(t, x);
  }
  t->n_stack -= at->n_args;
  t->stack[t->n_stack++] = made;
  return fine;
}

static quern_status run(typing *t, qn_typed **typed) {
  const qn_expression *e = t->expression;
  for (int32_t i = 0; i < e->n_code; i++) {
    t->at = &e->code[i];
    if (!step(t)) return t->status;
  }
  int32_t out[QN_MAX_OPERANDS];
  for (int32_t k = 0; k < e->n_out; k++) {
    const operand *of = &t->variables[e->out_variables[k]];
    out[k] = of->finer ? of->finer - 1 : of->value;
  }
  *typed = qn_values_keep(&t->values, e->n_out, out);
  if (!*typed) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", e->name);
  for (int32_t k = 0; k < e->n_out; k++) (*typed)->out_dtypes[k] = t->variables[e->out_variables[k]].dtype;
  return QUERN_OK;
}

quern_status qn_typing_run(const qn_expression *expression, const uint8_t *in_dtypes, qn_typed **typed) {
  typing t = {.expression = expression, .in_dtypes = in_dtypes};
  const size_t n_operands = (size_t)(expression->stack + expression->n_variables);
  const size_t n_branches = expression->n_params ? (size_t)expression->n_code : 0; /* at most one per instruction */
  t.stack = malloc(n_operands * sizeof *t.stack + n_branches * sizeof *t.branches);
  if (!t.stack) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", expression->name);
  t.variables = t.stack + expression->stack;
  t.branches = (branch *)(t.stack + n_operands);
  const qn_float_env was = qn_float_env_enter(); /* numbers are folded */
  quern_status status = run(&t, typed);
  qn_float_env_leave(was);
  qn_values_free(&t.values);
  free(t.stack);
  free(t.row_calls.list);
  return status;
}

void qn_typing_free(qn_typed *typed) { free(typed); }
