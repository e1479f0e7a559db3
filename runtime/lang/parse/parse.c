/* SPDX-License-Identifier: Apache-2.0
 *
 * parse.c: the expressions of a text: see parse.h.
 *
 * Statements are read by recursive descent (parse_statements.c), expressions by two stacks in one loop, so that no nest takes more of a
 * host's small stack. Nothing is allocated while parsing: all sizes follow from the number of tokens. */
#include "core/row/row_program.h"
#include "lang/parse/callee.h"
#include "lang/parse/canonical.h"
#include "lang/parse/parser.h"

#define MAX_CHAIN 2000
#define LEVEL_AND 2 /* the precedence of "and" */

/* ---- Functions ---- */

/* Each op is listed once. */
int32_t qn_parser_note_op(qn_parser *p, const quern_op *op) {
  for (int32_t k = 0; k < p->parsed.n_ops; k++)
    if (p->parsed.ops[k] == op) return k;
  p->parsed.ops[p->parsed.n_ops] = op;
  return p->parsed.n_ops++;
}

/* Finds the op that a spelling of Python calls with two arguments; `token` is its operator. */
static int find_lowered(qn_parser *p, qn_lowered lowered, qn_token *token) {
  static const char *const names[] = {"pow", "floor_divide"};
  qn_instruction call;
  p->status = qn_callee_find_name(p->ctx, &p->parsed.source, token, names[lowered], &call);
  if (p->status) return 0;
  if (call.kind != QN_CODE_OP || qn_callee_has_axes(&call))
    return QN_PARSER_WRONG(p, token->at, "%s is no op of two operands here", names[lowered]);
  p->status = qn_callee_check(&p->parsed.source, token, &call, 2);
  if (p->status) return 0;
  p->parsed.lowered_ops[lowered] = call.v.op;
  qn_parser_note_op(p, call.v.op);
  token->written = QN_WRITTEN_COMMA;
  return 1;
}

/* Calls that op on the last two operands: `left`, and that of p->form, which ends with the last token taken. */
static int end_lowered(qn_parser *p, qn_lowered lowered, uint32_t at, const qn_form *left) {
  const int16_t height = (int16_t)(1 + (left->height > p->form.height ? left->height : p->form.height));
  if (p->depth + height > QN_PARSER_MAX_DEPTH)
    return QN_PARSER_FAIL(p, QUERN_E_LIMIT, at, "nested deeper than %d", QN_PARSER_MAX_DEPTH);
  qn_parser_emit(p, QN_CODE_OP, 0, at, 2, 1)->v.op = p->parsed.lowered_ops[lowered];
  qn_canonical_enclose(&p->parsed, lowered, left->start, p->next - 1);
  p->form = (qn_form){.start = left->start, .height = height};
  return 1;
}

/* ---- Expressions ----
 * The parser has two states: an operand must come next, or an operand has just been read. In the first, begin_operand reads a
 * number, a name, or the beginning of a nest: a sign, a cast, '(', a call. In the second, go_on reads an operator, a '?', or
 * the end of a nest. Open nests are in p->nests, operators without their right operands in p->waiting. Code is emitted in
 * postfix order, as soon as an operation has its operands. Example: -(a + b) * c
 *   read      nests   waiting   code
 *   - (       - (
 *   a + b     - (     +         a b
 *   )                           a b + -
 *   * c               *         a b + - c
 *   the end                     a b + - c * */

/* FAILED is 0, as everywhere here. */
typedef enum parse_state { FAILED, WANTS_OPERAND, HAS_OPERAND } parse_state;

static qn_nest *innermost(const qn_parser *p) { return p->depth ? &p->nests[p->depth - 1] : NULL; }

/* Opens a nest, unless there are too many levels. */
static parse_state begin_nest(qn_parser *p, qn_nest_kind kind, qn_token *token) {
  if (p->depth == QN_PARSER_MAX_DEPTH) return QN_PARSER_FAIL(p, QUERN_E_LIMIT, token->at, "nested deeper than %d", QN_PARSER_MAX_DEPTH);
  p->nests[p->depth++] = (qn_nest){.kind = kind, .n_outside = p->n_waiting, .token = token};
  return WANTS_OPERAND;
}

/* ---- Operands ---- */

static parse_state end_call(qn_parser *p) {
  const qn_nest *nest = &p->nests[--p->depth];
  p->status = qn_callee_check(&p->parsed.source, nest->token, &nest->call, nest->n_args);
  if (p->status) return FAILED;
  if (nest->call.kind == QN_CODE_GRAD) {
    /* code in postfix order that ends with an input is that input alone */
    if (p->parsed.code[p->parsed.n_code - 1].kind != QN_CODE_INPUT)
      return QN_PARSER_WRONG(p, nest->call.at, "grad(expression, x): x must be an input");
    p->has_grad = 1;
  }
  p->form = (qn_form){.start = (int32_t)(nest->token - p->parsed.tokens), .height = (int16_t)(1 + nest->height)};
  qn_instruction *made = qn_parser_emit(p, nest->call.kind, nest->call.what, nest->call.at, nest->n_args, 1);
  made->v = nest->call.v;
  made->axes = nest->call.axes;
  return HAS_OPERAND;
}

/* ---- Axes ---- */

/* A whole number, with its sign. */
static int axis_number(qn_parser *p, int64_t most, const char *what, int64_t *value) {
  const int is_negative = qn_parser_accept(p, QN_SIGN_SUB);
  const qn_token *token = qn_parser_take(p);
  qn_number number;
  if (token->kind != QN_TOKEN_NUMBER) return qn_parser_missing(p, what, "", NULL, token);
  p->status = qn_syntax_number(&p->parsed.source, token, &number);
  if (p->status) return 0;
  if (number.is_float || number.is_pattern || number.v.i > most)
    return QN_PARSER_WRONG(p, token->at, "expected %s, found '%.*s'", what, QN_PARSER_SHOWN(p, token));
  *value = is_negative ? -number.v.i : number.v.i;
  return 1;
}

static int one_axis(qn_parser *p, qn_axes *axes) {
  int64_t axis;
  if (!axis_number(p, QN_MAX_AXES, "an axis, a whole number", &axis)) return 0;
  if (axes->n == QN_MAX_AXES) return QN_PARSER_FAIL(p, QUERN_E_LIMIT, qn_parser_peek(p, 0)->at, "more than %d axes", QN_MAX_AXES);
  axes->axis[axes->n++] = (int8_t)axis;
  return 1;
}

/* The 0 or 1 of the keyword `name`. */
static int read_flag(qn_parser *p, const qn_token *name, uint8_t *flag) {
  int64_t value;
  if (!axis_number(p, 1, "0 or 1", &value)) return 0;
  if (value < 0) return QN_PARSER_WRONG(p, name->at, "%.*s: expected 0 or 1", QN_PARSER_SHOWN(p, name));
  *flag = (uint8_t)value;
  return 1;
}

/* reverse = 0 or 1, exclusive = 0 or 1 of a call that scans. */
static int scan_keyword(qn_parser *p, const qn_token *name, qn_axes *axes) {
  uint8_t *flag = qn_parser_is_word(p, name, "reverse") ? &axes->reverse : qn_parser_is_word(p, name, "exclusive") ? &axes->exclusive : NULL;
  if (qn_parser_is_word(p, name, "include_initial"))
    return QN_PARSER_FAIL(p, QUERN_E_UNSUPPORTED, name->at, "include_initial gives one element more than the others have; call the op by itself");
  if (!flag) return QN_PARSER_WRONG(p, name->at, "unknown keyword '%.*s': expected axis, reverse or exclusive; others go by place, before these", QN_PARSER_SHOWN(p, name));
  return read_flag(p, name, flag);
}

/* keepdims = 0 or 1 of a call that reduces. */
static int keepdims(qn_parser *p, const qn_token *name, qn_nest *nest) {
  if (!qn_parser_is_word(p, name, "keepdims"))
    return QN_PARSER_WRONG(p, name->at, "unknown keyword '%.*s': expected axis or keepdims; others go by place, before these", QN_PARSER_SHOWN(p, name));
  if (!qn_row_op_of(nest->call.v.op->builtin)->is_reduced)
    return QN_PARSER_WRONG(p, name->at, "keepdims: %.*s keeps all dimensions", QN_PARSER_SHOWN(p, nest->token));
  if (nest->has_keepdims) return QN_PARSER_WRONG(p, name->at, "keepdims is given twice");
  nest->has_keepdims = 1;
  return read_flag(p, name, &p->parsed.axes[nest->call.axes].keepdims);
}

/* axis = N or axis = (N, ...), or another keyword; behind '(' or ',' of a call that reduces or scans. */
static int keyword(qn_parser *p, qn_nest *nest) {
  qn_axes *axes = &p->parsed.axes[nest->call.axes];
  const qn_token *name = qn_parser_take(p);
  qn_parser_take(p);
  if (!qn_parser_is_word(p, name, "axis")) return qn_callee_scans(&nest->call) ? scan_keyword(p, name, axes) : keepdims(p, name, nest);
  if (!axes->is_all) return QN_PARSER_WRONG(p, name->at, "axis is given twice");
  axes->is_all = 0;
  if (!qn_parser_accept(p, QN_SIGN_OPEN)) return one_axis(p, axes);
  while (!qn_parser_accept(p, QN_SIGN_CLOSE)) {
    if (!one_axis(p, axes)) return 0;
    if (!qn_parser_accept(p, QN_SIGN_COMMA)) return qn_parser_expect(p, QN_SIGN_CLOSE, " after the axes", NULL);
  }
  return 1;
}

static int is_keyword(qn_parser *p) {
  return qn_parser_peek(p, 0)->kind == QN_TOKEN_NAME && qn_token_is_sign(qn_parser_peek(p, 1), QN_SIGN_ASSIGN);
}

/* Reads keywords up to the end of the call. */
static parse_state end_keywords(qn_parser *p) {
  qn_nest *nest = innermost(p);
  do {
    if (!is_keyword(p)) return QN_PARSER_WRONG(p, qn_parser_peek(p, 0)->at, qn_callee_scans(&nest->call) ? "an argument after a keyword" : "an argument after axis or keepdims");
    if (!keyword(p, nest)) return FAILED;
  } while (qn_parser_accept(p, QN_SIGN_COMMA));
  return qn_parser_expect(p, QN_SIGN_CLOSE, " after the arguments of ", nest->token) ? end_call(p) : FAILED;
}

/* Whether a keyword comes next in a call that takes keywords. */
static int takes_keyword(qn_parser *p) { return qn_callee_has_axes(&innermost(p)->call) && is_keyword(p); }

/* `token` is the name; its '(' comes next. */
static parse_state begin_call(qn_parser *p, qn_token *token) {
  qn_instruction call;
  p->status = qn_callee_find(p->ctx, &p->parsed.source, token, &call);
  if (p->status) return FAILED;
  if (call.kind == QN_CODE_OP) token->variable = 1 + qn_parser_note_op(p, call.v.op);
  if (!begin_nest(p, QN_IN_CALL, token)) return FAILED;
  if (qn_callee_has_axes(&call)) {
    call.axes = (uint16_t)p->parsed.n_axes;
    p->parsed.axes[p->parsed.n_axes++] = (qn_axes){.is_all = 1};
  }
  innermost(p)->call = call;
  qn_parser_take(p);
  if (takes_keyword(p)) return end_keywords(p);
  return qn_parser_accept(p, QN_SIGN_CLOSE) ? end_call(p) : WANTS_OPERAND;
}

/* Whether "not" is allowed here: at the beginning of an operand of "and" or of a looser operator, or of an expression. */
static int takes_not(const qn_parser *p) {
  const qn_nest *nest = innermost(p);
  if (nest && nest->kind <= QN_IN_POWER) return 0;
  const int32_t n_outside = nest ? nest->n_outside : 0;
  return p->n_waiting == n_outside || p->waiting[p->n_waiting - 1].level <= LEVEL_AND;
}

static int is_prefix(const qn_token *token) {
  return qn_token_is_sign(token, QN_SIGN_SUB) || qn_token_is_sign(token, QN_SIGN_ADD) || qn_token_is_sign(token, QN_SIGN_NOT) ||
         qn_token_is_sign(token, QN_SIGN_INVERT);
}

/* Whether the '=' of "x += 1" or "x := 1" is the token: right behind another sign. */
static int is_update(const qn_parser *p, const qn_token *token) {
  if (token == p->parsed.tokens || !qn_token_is_sign(token, QN_SIGN_ASSIGN)) return 0;
  const qn_token *sign = token - 1;
  return sign->kind == QN_TOKEN_SIGN && sign->at + sign->size == token->at && strchr(":+-*/&|^", p->parsed.source.text[sign->at]);
}

/* Whether "x++" or "x--" is before the token, which is no operand. */
static int is_step(const qn_parser *p, const qn_token *token) {
  if (token - p->parsed.tokens < 2) return 0;
  const qn_token *sign = token - 2;
  return (qn_token_is_sign(sign, QN_SIGN_ADD) || qn_token_is_sign(sign, QN_SIGN_SUB)) && qn_token_is_sign(sign + 1, sign->sign) && sign[1].at == sign->at + 1;
}

static parse_state begin_operand(qn_parser *p) {
  qn_token *token = qn_parser_take(p);
  p->form = (qn_form){.start = (int32_t)(token - p->parsed.tokens)};
  if (token->kind == QN_TOKEN_NUMBER) {
    qn_instruction *instruction = qn_parser_emit(p, QN_CODE_NUMBER, 0, token->at, 0, 1);
    p->status = qn_syntax_number(&p->parsed.source, token, &instruction->v.number);
    return p->status == QUERN_OK ? HAS_OPERAND : FAILED;
  }
  if (token->kind == QN_TOKEN_NAME) {
    if (qn_parser_is_type(p, token))
      return qn_parser_refuse_T(p, token) && QN_PARSER_WRONG(p, token->at, "type '%.*s' where a value is expected", QN_PARSER_SHOWN(p, token));
    if (qn_parser_is_word(p, token, "rare")) return (parse_state)qn_parser_refuse_rare(p, token);
    if (qn_token_is_sign(qn_parser_peek(p, 0), QN_SIGN_OPEN)) return begin_call(p, token);
    return qn_parser_reference(p, token) ? HAS_OPERAND : FAILED;
  }
  if (qn_token_is_sign(token, QN_SIGN_OPEN) && qn_parser_is_type(p, qn_parser_peek(p, 0)) && qn_token_is_sign(qn_parser_peek(p, 1), QN_SIGN_CLOSE)) {
    if (!qn_parser_refuse_T(p, qn_parser_peek(p, 0))) return FAILED;
    p->next += 2;
    return begin_nest(p, QN_IN_CAST, token);
  }
  if (qn_token_is_sign(token, QN_SIGN_OPEN)) return begin_nest(p, QN_IN_PARENTHESES, token);
  if (is_prefix(token)) return begin_nest(p, QN_IN_PREFIX, token);
  if (qn_token_is_sign(token, QN_SIGN_NOT_WORD)) {
    if (takes_not(p)) return begin_nest(p, QN_IN_NOT, token);
    return QN_PARSER_WRONG(p, token->at, "'not' binds looser than what is before it: write (not ...)");
  }
  if (is_update(p, token) && qn_token_is_sign(token - 1, QN_SIGN_COLON))
    return QN_PARSER_WRONG(p, token[-1].at, "':=' is no operator: write y = ...");
  if (is_step(p, token)) {
    const char sign = p->parsed.source.text[token[-1].at];
    return QN_PARSER_WRONG(p, token[-2].at, "'%c%c' is no operator: nothing is changed in place; write y = x %c 1", sign, sign, sign);
  }
  if (is_update(p, token))
    return QN_PARSER_WRONG(p, token[-1].at, "'%.*s=' is no operator: nothing is changed in place; write y = x %.*s ...",
                           QN_PARSER_SHOWN(p, token - 1), QN_PARSER_SHOWN(p, token - 1));
  return (parse_state)qn_parser_missing(p, "a value", "", NULL, token);
}

/* Begins a power where "**" follows a number, a name, a call or parentheses: it binds tighter than signs before these. */
static parse_state begin_power(qn_parser *p) {
  const qn_form left = p->form;
  qn_token *token = qn_parser_take(p);
  if (!find_lowered(p, QN_LOWERED_POW, token) || !begin_nest(p, QN_IN_POWER, token)) return FAILED;
  innermost(p)->left = left;
  return WANTS_OPERAND;
}

/* Ends the signs, casts and powers that the operand just read is the end of, the nearest first. */
static int end_prefixes(qn_parser *p) {
  for (const qn_nest *nest; (nest = innermost(p)) && nest->kind <= QN_IN_POWER;) {
    p->depth--;
    if (nest->kind == QN_IN_POWER) {
      if (!end_lowered(p, QN_LOWERED_POW, nest->token->at, &nest->left)) return 0;
      continue;
    }
    if (nest->kind == QN_IN_CAST)
      qn_parser_emit(p, QN_CODE_CAST, nest->token[1].dtype, nest->token->at, 1, 1);
    else
      qn_parser_emit(p, QN_CODE_UNARY, nest->token->sign, nest->token->at, 1, 1);
    p->form = (qn_form){.start = (int32_t)(nest->token - p->parsed.tokens), .height = (int16_t)(1 + p->form.height)};
  }
  p->comparison = QN_NOWHERE;
  return 1;
}

/* ---- Operators ---- */

/* The precedence of a binary operator; 0: the token is none. ORDER SIGN */
static int level_of(const qn_token *token) {
  static const uint8_t levels[] = {1, LEVEL_AND, 3, 4, 5, 6, 6, 7, 7, 7, 7, 8, 8, 9, 9, 10, 10, 10, 10};
  _Static_assert(sizeof levels == QN_SIGN_FLOOR_DIVIDE + 1, "one for each binary operator");
  return token->kind == QN_TOKEN_SIGN && token->sign < sizeof levels ? levels[token->sign] : 0;
}

static int is_comparison(uint8_t sign) { return sign >= QN_SIGN_EQ && sign <= QN_SIGN_GE; }

/* Emits the last waiting operator: its right operand has been read. */
static int end_operator(qn_parser *p) {
  const qn_waiting op = p->waiting[--p->n_waiting];
  if (is_comparison(op.sign) && p->comparison != QN_NOWHERE)
    return QN_PARSER_WRONG(p, p->comparison, "chained comparison: write a < b && b < c");
  if (op.sign == QN_SIGN_FLOOR_DIVIDE) {
    if (!end_lowered(p, QN_LOWERED_FLOOR_DIVIDE, op.at, &op.left)) return 0;
  } else {
    qn_parser_emit(p, QN_CODE_BINARY, op.sign, op.at, 2, 1);
    if (op.left.height > p->form.height) p->form.height = op.left.height;
    p->form.start = op.left.start;
    p->form.is_binary = 1;
  }
  if (op.chain > MAX_CHAIN) return QN_PARSER_FAIL(p, QUERN_E_LIMIT, op.at, "more than %d operators in one chain", MAX_CHAIN);
  p->comparison = is_comparison(op.sign) ? op.at : QN_NOWHERE;
  return 1;
}

/* Ends the innermost nest, a "not": its operand has been read. That is put in parentheses if it has operators of its own. */
static int end_not(qn_parser *p) {
  const qn_nest *nest = &p->nests[--p->depth];
  const int16_t height = (int16_t)(p->form.height + 1 + p->form.is_binary);
  if (p->depth + height > QN_PARSER_MAX_DEPTH)
    return QN_PARSER_FAIL(p, QUERN_E_LIMIT, nest->token->at, "nested deeper than %d", QN_PARSER_MAX_DEPTH);
  if (p->form.is_binary) qn_canonical_enclose(&p->parsed, QN_LOWERED_NONE, p->form.start, p->next - 1);
  qn_parser_emit(p, QN_CODE_UNARY, QN_SIGN_NOT, nest->token->at, 1, 1);
  p->form = (qn_form){.start = (int32_t)(nest->token - p->parsed.tokens), .height = height};
  p->comparison = QN_NOWHERE;
  return 1;
}

/* Makes the operator just read wait for its right operand. */
static parse_state wait(qn_parser *p, qn_token *token, int level, int chain) {
  p->waiting[p->n_waiting++] =
      (qn_waiting){.sign = token->sign, .level = (uint8_t)level, .chain = (uint16_t)chain, .at = token->at, .left = p->form};
  if (token->sign != QN_SIGN_FLOOR_DIVIDE) return WANTS_OPERAND;
  return find_lowered(p, QN_LOWERED_FLOOR_DIVIDE, token) ? WANTS_OPERAND : FAILED;
}

/* Reads the operator after an operand. First emits this nest's waiting operators of the same or higher precedence.
 * HAS_OPERAND: no operator follows, and all of them were emitted. */
static parse_state take_operator(qn_parser *p) {
  qn_token *token = qn_parser_peek(p, 0);
  const int level = level_of(token);
  int chain = 1;
  for (;;) {
    const qn_nest *nest = innermost(p);
    const int32_t n_outside = nest ? nest->n_outside : 0;
    while (p->n_waiting > n_outside && p->waiting[p->n_waiting - 1].level >= level) {
      if (p->waiting[p->n_waiting - 1].level == level) chain = p->waiting[p->n_waiting - 1].chain + 1;
      if (!end_operator(p)) return FAILED;
    }
    if (!nest || nest->kind != QN_IN_NOT || level > LEVEL_AND) break;
    if (!end_not(p)) return FAILED;
  }
  if (!level) return HAS_OPERAND;
  if (token->sign == QN_SIGN_REMAINDER)
    return QN_PARSER_WRONG(p, token->at, "'%%' is no operator: remainder(x, y) has the sign of y, fmod(x, y) that of x");
  if (is_comparison(token->sign) && p->comparison != QN_NOWHERE)
    return QN_PARSER_WRONG(p, token->at, "chained comparison: write a < b && b < c");
  return wait(p, qn_parser_take(p), level, chain);
}

/* ---- The whole of one ---- */

/* At the sign that ends or divides the innermost nest (parentheses, a call or a first branch): its contents have been read. */
static parse_state end_part(qn_parser *p) {
  qn_nest *nest = innermost(p);
  if (nest->height < p->form.height) nest->height = p->form.height;
  if (nest->kind == QN_IN_FIRST_BRANCH) {
    nest->kind = QN_IN_SECOND_BRANCH;
    return qn_parser_expect(p, QN_SIGN_COLON, " in '? :'", NULL) ? WANTS_OPERAND : FAILED;
  }
  if (nest->kind == QN_IN_PARENTHESES) {
    p->depth--;
    p->form = (qn_form){.start = (int32_t)(nest->token - p->parsed.tokens), .height = (int16_t)(1 + nest->height)};
    return qn_parser_expect(p, QN_SIGN_CLOSE, " to close '('", NULL) ? HAS_OPERAND : FAILED;
  }
  nest->n_args++;
  if (qn_parser_accept(p, QN_SIGN_COMMA)) return takes_keyword(p) ? end_keywords(p) : WANTS_OPERAND;
  if (qn_token_is_sign(qn_parser_peek(p, 0), QN_SIGN_ASSIGN))
    return QN_PARSER_WRONG(p, qn_parser_peek(p, 0)->at, "'=' in a call: %.*s takes its arguments in their order, without names", QN_PARSER_SHOWN(p, nest->token));
  return qn_parser_expect(p, QN_SIGN_CLOSE, " after the arguments of ", nest->token) ? end_call(p) : FAILED;
}

/* Begins the branches behind a condition and its '?'. */
static parse_state begin_branches(qn_parser *p, qn_token *question) {
  const qn_form condition = p->form;
  if (!begin_nest(p, QN_IN_FIRST_BRANCH, question)) return FAILED;
  innermost(p)->left = condition;
  return WANTS_OPERAND;
}

/* Ends the "? :" that the operand just read is the last branch of. */
static void end_branches(qn_parser *p) {
  for (const qn_nest *nest; (nest = innermost(p)) && nest->kind == QN_IN_SECOND_BRANCH; p->depth--) {
    const int16_t inside = (int16_t)(1 + (nest->height > p->form.height ? nest->height : p->form.height));
    qn_parser_emit(p, QN_CODE_SELECT, 0, nest->token->at, 3, 1);
    p->form = (qn_form){.start = nest->left.start, .height = nest->left.height > inside ? nest->left.height : inside};
  }
}

/* Reads from behind an operand to the position of the next one; HAS_OPERAND: the whole expression has been read. */
static parse_state go_on(qn_parser *p) {
  for (;;) {
    if (qn_token_is_sign(qn_parser_peek(p, 0), QN_SIGN_POWER)) return begin_power(p);
    if (!end_prefixes(p)) return FAILED;
    parse_state state = take_operator(p);
    if (state != HAS_OPERAND) return state;
    qn_token *question = qn_parser_peek(p, 0);
    if (qn_parser_accept(p, QN_SIGN_QUESTION)) return begin_branches(p, question);
    end_branches(p);
    if (!p->depth) return HAS_OPERAND;
    state = end_part(p);
    if (state != HAS_OPERAND) return state;
  }
}

int qn_parser_expression(qn_parser *p) {
  parse_state state = WANTS_OPERAND;
  while (state == WANTS_OPERAND) {
    state = begin_operand(p);
    if (state == HAS_OPERAND) state = go_on(p);
  }
  return state == HAS_OPERAND;
}
