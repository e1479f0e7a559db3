/* SPDX-License-Identifier: Apache-2.0
 *
 * typing.c: the meaning of an expression for given dtypes. See typing.h.
 *
 * One walk over the instructions with a stack of operands (typing_parts.h). Here: casts, assignments, calls, derivatives. */
#include "lang/typing/typing.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/float_env.h"
#include "core/op/params.h"
#include "core/row/scan_op.h"
#include "lang/parse/callee.h"
#include "lang/typing/derive.h"
#include "lang/typing/typing_literals.h"
#include "lang/typing/weak.h"

/* ---- Casts and assignments ---- */

/* An explicit cast. To a dtype with another compute type it rounds; the result has the compute type. */
static int cast_to(qn_typing *t, int32_t value, uint8_t dtype, qn_typing_operand *made) {
  if (value < 0) return 0;
  if (qn_typing_compute_of(dtype) == dtype) return qn_typing_gives(qn_typing_converted(t, value, dtype), dtype, made);
  return qn_typing_gives(qn_typing_rounded(t, value, dtype), dtype, made);
}

static int type_cast(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  const uint8_t dtype = t->at->what;
  if (!qn_typing_is_weak(x)) return cast_to(t, x->value, dtype, made);
  /* A weak float is truncated as an f64. */
  const int truncates = x->is_float && qn_typing_kind_of(dtype) < QN_KIND_FLOAT;
  return cast_to(t, qn_typing_weak_value(t, x, truncates ? QN_F64 : qn_typing_compute_of(dtype)), dtype, made);
}

static int type_assign(qn_typing *t, qn_typing_operand *x) {
  const uint8_t dtype = t->at->what;
  if (dtype == QN_DTYPE_NONE || dtype == QN_ASSIGN_AUTO) {
    const int is_literal = dtype == QN_ASSIGN_AUTO && x->kind == QN_NUMBER;
    if (qn_typing_is_weak(x) && !is_literal) return qn_typing_fail_no_dtype(t, x);
  } else {
    int32_t value = qn_typing_is_weak(x) ? qn_typing_weak_value(t, x, qn_typing_compute_of(dtype)) : x->value;
    if (value < 0) return 0;
    if (qn_typing_kind_of(qn_typing_type_of(t, value)) >= QN_KIND_FLOAT && qn_typing_kind_of(dtype) < QN_KIND_FLOAT)
      return QN_TYPING_FAIL(t, "a %s where %s is declared: write the cast, (%s)", qn_typing_dtype_name(x->dtype), qn_typing_dtype_name(dtype),
                  qn_typing_dtype_name(dtype));
    if (!cast_to(t, value, dtype, x)) return 0;
  }
  t->variables[t->at->v.index] = *x;
  return 1;
}

/* ---- Calls ---- */

/* A parameter of an op: a number outside of an integer type's range saturates. */
static int32_t parameter(qn_typing *t, const quern_op_info *info, int32_t k, const qn_typing_operand *x, uint8_t type) {
  if (x && !qn_typing_is_weak(x))
    return QN_TYPING_NO_VALUE(t, "%.64s: %.64s is a parameter: a number or a param, no operand", info->name, info->params[k].name);
  quern_scalar scalar = info->params[k].value;
  if (x) {
    if (x->kind == QN_TREE || qn_typing_kind_of(type) >= QN_KIND_FLOAT) return qn_typing_weak_value(t, x, type);
    scalar.kind = x->is_float ? QUERN_F64 : x->number.is_pattern && !qn_weak_is_signed(type) ? QUERN_U64 : QUERN_I64;
    if (x->is_float)
      scalar.v.f[0] = x->number.v.f;
    else
      scalar.v.i = x->number.v.i;
  }
  uint64_t bits;
  if (qn_typing_kind_of(type) == QN_KIND_COMPLEX) /* its default */
    return QN_TYPING_NO_VALUE(t, "%.64s: a parameter where %s is expected: call the op by itself", info->name, qn_typing_dtype_name(type));
  qn_assert(scalar.kind >= QUERN_I64 && scalar.kind <= QUERN_F64);
  const char *wrong = qn_params_number(&scalar, type, &bits);
  if (!wrong) return qn_typing_constant(t, type, bits & UINT64_MAX >> (64 - qn_dtype_infos[type].bits));
  return QN_TYPING_NO_VALUE(t,
                  "%.64s: parameter %d (%.64s): %s, but it computes in %s here; give a whole number, or cast its operands to a "
                  "float dtype",
                  info->name, k + 1, info->params[k].name, wrong, qn_typing_dtype_name(type));
}

/* An operand for an op with kernels of its own for a dtype like f16: rounded to that dtype, in its compute type. */
static int32_t own_operand(qn_typing *t, const qn_typing_operand *x, uint8_t dtype) {
  qn_typing_operand made;
  const int32_t value = qn_typing_is_weak(x) ? qn_typing_weak_value(t, x, qn_typing_compute_of(dtype)) : x->value;
  if (value < 0) return -1;
  if (!qn_typing_is_weak(x) && x->dtype == dtype && t->values.values[value].kind == QN_VALUE_INPUT) return value;
  return cast_to(t, value, dtype, &made) ? made.value : -1;
}

/* ---- Calls that reduce ---- */

/* The number of the first axes that are written alike: equal reductions are one value, however their results are stored. */
static int32_t first_axes(const qn_typing *t) {
  const qn_axes *axes = t->expression->axes, *own = &axes[t->at->axes];
  int32_t i = 0;
  while (axes[i].is_all != own->is_all || axes[i].n != own->n || memcmp(axes[i].axis, own->axis, own->n) != 0) i++;
  return i;
}

/* An input of an op that reduces: of the promoted dtype, a condition, or an integer of its own. */
static int32_t row_input(qn_typing *t, const qn_builtin *builtin, int32_t k, const qn_typing_operand *x, uint8_t dtype) {
  if (builtin->bool_in >> k & 1) return qn_typing_condition(t, x);
  if (!(builtin->whole_in >> k & 1)) return qn_typing_promoted(t, x, dtype);
  if (qn_typing_is_weak(x)) return qn_typing_weak_value(t, x, QN_I64);
  if (qn_typing_kind_of(x->dtype) != QN_KIND_INTEGER)
    return QN_TYPING_NO_VALUE(t, "%.64s: %s is %s, expected an integer", builtin->info.name, builtin->info.args[k].name, qn_typing_dtype_name(x->dtype));
  return qn_typing_converted(t, x->value, QN_I64);
}

/* A call of an op that reduces, for inputs of the promoted dtype: its stages as values. */
static int type_row(qn_typing *t, const qn_row_op *row, uint8_t dtype, const qn_typing_operand *x, qn_typing_operand *made) {
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
    case QN_ROW_MADE_NO_CAST: return QN_TYPING_FAIL_AS(t, QUERN_E_UNSUPPORTED, "this build has no kernel for a cast that %.64s needs", info->name);
    default: qn_typing_no_room(t); return 0;
  }
  const uint8_t fixed = t->at->v.op->builtin->results[t->at->what], result = fixed != QN_DTYPE_NONE ? fixed : row->results[dtype];
  const int32_t output = outputs[t->at->what];
  call.result = qn_typing_converted(t, output, qn_typing_compute_of(result));
  if (call.result >= 0 && !qn_row_note(&t->row_calls, &call)) {
    qn_typing_no_room(t);
    return 0;
  }
  if (!qn_typing_gives(call.result, result, made)) return 0;
  if (call.result != output && qn_typing_kind_of(qn_typing_type_of(t, output)) == QN_KIND_FLOAT) made->finer = output + 1;
  return 1;
}

/* A call of an op that scans, for an input of the promoted dtype. */
static int type_scan(qn_typing *t, uint8_t dtype, const qn_typing_operand *x, qn_typing_operand *made) {
  const qn_scan_op *scans = qn_scan_op_of(t->at->v.op->builtin);
  const qn_axes *axes = &t->expression->axes[t->at->axes];
  const uint8_t type = scans->scans[dtype].dtype, result = scans->results[dtype];
  const int32_t arg = qn_typing_converted(t, qn_typing_promoted(t, x, dtype), type);
  if (arg < 0) return 0;
  const qn_value scan = {.kind = QN_VALUE_SCAN, .type = type, .kernel_dtype = dtype, .index = first_axes(t), .op = t->at->v.op, .n_args = 1,
                         .bits = (axes->reverse ? QN_SCAN_REVERSE : 0) | (axes->exclusive ? QN_SCAN_EXCLUSIVE : 0)};
  return qn_typing_gives(qn_typing_converted(t, qn_typing_add(t, scan, &arg), qn_typing_compute_of(result)), result, made);
}

static int type_op(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  const quern_op *op = t->at->v.op;
  const qn_builtin *builtin = op->builtin;
  const quern_op_info *info = &builtin->info;
  int32_t args[QN_MAX_OPERANDS + QN_MAX_PARAMS];
  uint8_t dtype = QN_F64;
  const int is_literal = qn_typing_literal_op(t, x, made);
  if (is_literal) return is_literal > 0;
  if (builtin->promotion != QN_PROMOTION_DOUBLE && !qn_typing_unify_arguments(t, info->n_in, x, builtin->bool_in | builtin->whole_in, &dtype)) return 0;
  if (builtin->promotion == QN_PROMOTION_FLOATING) dtype = qn_typing_floating_of(dtype);
  if (!(builtin->dtypes >> dtype & 1))
    return QN_TYPING_FAIL(t, "%.64s does not take %s: cast to one of %.100s", info->name, qn_typing_dtype_name(dtype),
                info->n_in ? info->args[info->n_in - 1].dtypes : "its dtypes");
  if (qn_callee_scans(t->at)) return type_scan(t, dtype, x, made);
  const qn_row_op *row = qn_row_op_of(builtin);
  if (row) return type_row(t, row, dtype, x, made);
  const uint8_t type = qn_typing_compute_of(dtype);
  const int is_own = builtin->own >> dtype & 1;
  for (int32_t k = 0; k < info->n_in; k++) {
    args[k] = builtin->bool_in >> k & 1 ? qn_typing_condition(t, &x[k]) : is_own ? own_operand(t, &x[k], dtype) : qn_typing_promoted(t, &x[k], dtype);
    if (args[k] < 0) return 0;
  }
  for (int32_t k = 0; k < info->n_params; k++)
    if ((args[info->n_in + k] = parameter(t, info, k, info->n_in + k < t->at->n_args ? &x[info->n_in + k] : NULL, type)) < 0)
      return 0;
  const uint8_t result = builtin->results[t->at->what] != QN_DTYPE_NONE ? builtin->results[t->at->what] : dtype;
  const qn_value call = {.kind = QN_VALUE_OP, .type = qn_typing_compute_of(result), .kernel_dtype = is_own ? dtype : type,
                         .index = t->at->what, .op = op, .n_args = info->n_in, .n_params = info->n_params};
  return qn_typing_gives(qn_typing_add(t, call, args), result, made);
}

/* The bits of a value as another type of the same size. */
static int type_as(qn_typing *t, const qn_function *function, const qn_typing_operand *x, qn_typing_operand *made) {
  if (qn_typing_is_weak(x)) return qn_typing_fail_no_dtype(t, x);
  const uint8_t to = function->type;
  if (x->dtype == QN_BOOL || qn_dtype_infos[x->dtype].bits != qn_dtype_infos[to].bits)
    return QN_TYPING_FAIL(t, "%s of %s: the sizes differ", function->name, qn_typing_dtype_name(x->dtype));
  if (qn_typing_kind_of(x->dtype) == qn_typing_kind_of(to)) return qn_typing_gives(qn_typing_converted(t, x->value, to), to, made);
  return qn_typing_gives(qn_typing_unary(t, qn_typing_kind_of(to) == QN_KIND_FLOAT ? "from_bits" : "bits", to, x->value), to, made);
}

static int type_function(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  const qn_function *function = t->at->v.function;
  int32_t args[QN_MAX_OPERANDS];
  uint8_t dtype;
  const int is_literal = qn_typing_literal_function(t, x, made);
  if (is_literal) return is_literal > 0;
  if (function->kind == QN_FUNCTION_AS) return type_as(t, function, x, made);
  if (!qn_typing_unify_arguments(t, function->n_args, x, 0, &dtype)) return 0;
  if (dtype == QN_BOOL) return QN_TYPING_FAIL(t, "%s of bool: cast it first, (i32)x", function->name);
  if (qn_typing_kind_of(dtype) == QN_KIND_FLOAT && function->kind == QN_FUNCTION_INTEGER)
    return QN_TYPING_FAIL(t, "%s of %s: it takes integers", function->name, qn_typing_dtype_name(dtype));
  if (qn_typing_kind_of(dtype) == QN_KIND_INTEGER) {
    if (function->kind == QN_FUNCTION_WHOLE) return qn_typing_gives(qn_typing_promoted(t, x, dtype), dtype, made);
    if (function->kind == QN_FUNCTION_FLOAT) dtype = qn_typing_floating_of(dtype);
  }
  for (int32_t k = 0; k < function->n_args; k++)
    if ((args[k] = qn_typing_promoted(t, &x[k], dtype)) < 0) return 0;
  if (function->type != QN_DTYPE_NONE) dtype = function->type;
  return qn_typing_gives(qn_typing_primitive(t, function->name, qn_typing_compute_of(dtype), function->n_args, args), dtype, made);
}

/* ---- Derivatives ---- */

#define NO_SECOND ": second derivatives go through operators and primitives, not through ops"

/* x[0]: an expression, x[1]: the input to differentiate by. The result has the input's dtype. */
static int type_grad(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made) {
  const qn_expression *e = t->expression;
  if (qn_typing_is_weak(&x[0])) return qn_typing_fail_no_dtype(t, &x[0]);
  if (qn_typing_kind_of(x[0].dtype) != QN_KIND_FLOAT) return QN_TYPING_FAIL(t, "grad of a %s: cast it first, (f32)x", qn_typing_dtype_name(x[0].dtype));
  if (qn_typing_kind_of(x[1].dtype) != QN_KIND_FLOAT)
    return QN_TYPING_FAIL(t, "grad by a %s: only floats have derivatives", qn_typing_dtype_name(x[1].dtype));
  const uint8_t type = qn_typing_type_of(t, x[1].value);
  int32_t value = -1;
  const char *name;
  switch (qn_derive(&t->values, e->ops, e->n_ops, &t->row_calls, x[0].value, x[1].value, &value, &name)) {
    case QN_DERIVED: value = qn_typing_converted(t, value, type); break;
    case QN_DERIVED_ZERO: value = qn_typing_constant(t, type, 0); break;
    case QN_DERIVED_NOT: return QN_TYPING_FAIL(t, "%.64s has no derivative", name);
    case QN_DERIVED_NOT_HERE:
      return QN_TYPING_FAIL(t, "%.64s has no derivative in an expression; call %.64s_backward by itself", name, name);
    case QN_DERIVED_NOT_BY: return QN_TYPING_FAIL(t, "an op has no derivative by its argument %.64s", name);
    case QN_DERIVED_NOT_TWICE: return QN_TYPING_FAIL(t, "%.64s has no derivative" NO_SECOND, name);
    default: qn_typing_no_room(t);
  }
  return qn_typing_gives(value, x[1].dtype, made);
}

/* ---- The whole ---- */

static int step(qn_typing *t) {
  const qn_instruction *at = t->at;
  qn_typing_operand *x = t->stack + t->n_stack - at->n_args, made = {0};
  int fine = 1;
  switch (at->kind) {
    case QN_CODE_NUMBER: qn_typing_number_made(t, NULL, at->v.number, &made); break;
    case QN_CODE_VARIABLE: made = t->variables[at->v.index]; break;
    case QN_CODE_PARAM: made = qn_typing_tree_leaf(t, (qn_typing_branch){.param = at->v.index}); break;
    case QN_CODE_INPUT: {
      const uint8_t dtype = t->in_dtypes[at->v.index];
      const qn_value input = {.kind = QN_VALUE_INPUT, .type = qn_typing_compute_of(dtype), .dtype = dtype, .index = at->v.index};
      fine = qn_typing_gives(qn_typing_add(t, input, NULL), dtype, &made);
      break;
    }
    case QN_CODE_UNARY: fine = qn_typing_unary_operator(t, x, &made); break;
    case QN_CODE_BINARY: fine = qn_typing_binary_operator(t, x, &made); break;
    case QN_CODE_SELECT: fine = qn_typing_select(t, x, &made); break;
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

static quern_status run(qn_typing *t, qn_typed **typed) {
  const qn_expression *e = t->expression;
  for (int32_t i = 0; i < e->n_code; i++) {
    t->at = &e->code[i];
    if (!step(t)) return t->status;
  }
  int32_t out[QN_MAX_OPERANDS];
  for (int32_t k = 0; k < e->n_out; k++) {
    const qn_typing_operand *of = &t->variables[e->out_variables[k]];
    out[k] = of->finer ? of->finer - 1 : of->value;
  }
  *typed = qn_values_keep(&t->values, e->n_out, out);
  if (!*typed) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", e->name);
  for (int32_t k = 0; k < e->n_out; k++) (*typed)->out_dtypes[k] = t->variables[e->out_variables[k]].dtype;
  return QUERN_OK;
}

quern_status qn_typing_run(const qn_expression *expression, const uint8_t *in_dtypes, qn_typed **typed) {
  qn_typing t = {.expression = expression, .in_dtypes = in_dtypes};
  const size_t n_operands = (size_t)(expression->stack + expression->n_variables);
  const size_t n_branches = expression->n_params ? (size_t)expression->n_code : 0; /* at most one per instruction */
  t.stack = malloc(n_operands * sizeof *t.stack + n_branches * sizeof *t.branches);
  if (!t.stack) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", expression->name);
  t.variables = t.stack + expression->stack;
  t.branches = (qn_typing_branch *)(t.stack + n_operands);
  const qn_float_env was = qn_float_env_enter(); /* numbers are folded */
  quern_status status = run(&t, typed);
  qn_float_env_leave(was);
  qn_values_free(&t.values);
  free(t.stack);
  free(t.row_calls.list);
  return status;
}

void qn_typing_free(qn_typed *typed) { free(typed); }
