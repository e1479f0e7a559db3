/* SPDX-License-Identifier: Apache-2.0
 *
 * parse.c: see parse.h.
 *
 * Statements are read by recursive descent, expressions by two stacks in one loop, so that no nest takes more of a host's small
 * stack. Nothing is allocated while parsing: all sizes follow from the number of tokens. */
#include "lang/parse.h"

#include <stdlib.h>
#include <string.h>

#include "core/row/row_program.h"
#include "lang/callee.h"
#include "lang/dtype_name.h"

#define MAX_DEPTH 200
#define MAX_CHAIN 2000
#define NOWHERE UINT32_MAX

/* A binary operator that still lacks its right operand. */
typedef struct waiting {
  uint8_t sign, level;
  uint16_t chain; /* operators of its precedence in a row, including it */
  uint32_t at;
} waiting;

/* A construct that has begun and has not ended. The first two kinds end with their operand. */
typedef enum nest_kind { IN_PREFIX, IN_CAST, IN_PARENTHESES, IN_CALL, IN_FIRST_BRANCH, IN_SECOND_BRANCH } nest_kind;

typedef struct open_nest {
  nest_kind kind;
  int32_t n_outside;     /* operators that were waiting when it began; they belong to outer nests */
  const qn_token *token; /* the name of a call, else the token that begins it */
  qn_instruction call;
  int32_t n_args;        /* read so far */
  int has_keepdims;      /* of a call that reduces */
} open_nest;

typedef struct parser {
  quern_ctx *ctx;
  quern_status status;
  qn_parsed parsed;
  int32_t next;        /* the next token */
  uint32_t comparison; /* position of its operator if the last operand is a comparison without parentheses, else NOWHERE */
  waiting *waiting;    /* the outermost first */
  int32_t n_waiting;
  open_nest *nests;         /* likewise */
  int32_t depth;       /* of nests */
  int32_t *names;      /* by hash: the first token of each variable's name, plus 1; 0: free */
  uint32_t names_mask;
  int32_t held;        /* operands on the stack */
  int has_grad;
} parser;

/* Records an error and returns 0. After it every function here returns 0. */
#define FAIL(p, code, at, ...) ((p)->status = qn_syntax_fail(&(p)->parsed.source, code, at, __VA_ARGS__), 0)
#define WRONG(p, at, ...) FAIL(p, QUERN_E_SYNTAX, at, __VA_ARGS__)

/* A token in a message. */
#define SHOWN(p, token) (int)((token)->size > 40 ? 40 : (token)->size), (p)->parsed.source.text + (token)->at

/* ---- Tokens ---- */

static qn_token *peek(parser *p, int32_t offset) {
  int32_t at = p->next + offset;
  return &p->parsed.tokens[at < p->parsed.n_tokens ? at : p->parsed.n_tokens - 1];
}

static qn_token *take(parser *p) {
  qn_token *token = peek(p, 0);
  if (p->next < p->parsed.n_tokens - 1) p->next++;
  return token;
}

static int is_word(const parser *p, const qn_token *token, const char *word) {
  return token->kind == QN_TOKEN_NAME && token->size == strlen(word) &&
         memcmp(p->parsed.source.text + token->at, word, token->size) == 0;
}

static int is_type(const parser *p, const qn_token *token) {
  return token->kind == QN_TOKEN_NAME && (token->dtype != QN_DTYPE_NONE || is_word(p, token, "T"));
}

static int accept(parser *p, qn_sign sign) {
  if (!qn_token_is_sign(peek(p, 0), sign)) return 0;
  take(p);
  return 1;
}

/* "expected WHAT WHERE NAME, found ..."; name: a token or NULL */
static int missing(parser *p, const char *what, const char *where, const qn_token *name, const qn_token *found) {
  const qn_token none = {.size = 0};
  if (!name) name = &none;
  if (found->kind == QN_TOKEN_END)
    return WRONG(p, found->at, "expected %s%s%.*s, found the end", what, where, SHOWN(p, name));
  return WRONG(p, found->at, "expected %s%s%.*s, found '%.*s'", what, where, SHOWN(p, name), SHOWN(p, found));
}

static int expect(parser *p, qn_sign sign, const char *where, const qn_token *name) {
  if (accept(p, sign)) return 1;
  const char what[] = {'\'', qn_syntax_signs[sign][0], '\'', 0};
  return missing(p, what, where, name, peek(p, 0));
}

/* Refuses the name T: the dtype variable of op bodies, not of expressions. */
static int refuse_T(parser *p, const qn_token *token) {
  return token->dtype == QN_DTYPE_NONE ? WRONG(p, token->at, "T has no meaning here: write a dtype") : 1;
}

static int refuse_rare(parser *p, const qn_token *token) {
  return WRONG(p, token->at, "rare belongs to the body of an op");
}

/* Marks the names of dtypes. */
static void find_types(parser *p) {
  for (int32_t i = 0; i < p->parsed.n_tokens; i++) {
    qn_token *token = &p->parsed.tokens[i];
    const int is_name = token->kind == QN_TOKEN_NAME;
    token->dtype = is_name ? qn_dtype_of_name(p->parsed.source.text + token->at, token->size) : QN_DTYPE_NONE;
  }
}

/* ---- Code ---- */

/* Adds an instruction that pops `n` values and pushes `made`. */
static qn_instruction *emit(parser *p, qn_code_kind kind, uint8_t what, uint32_t at, int32_t n, int32_t made) {
  qn_instruction *instruction = &p->parsed.code[p->parsed.n_code++];
  qn_assert(p->parsed.n_code <= p->parsed.n_tokens);
  *instruction = (qn_instruction){.kind = (uint8_t)kind, .what = what, .n_args = (uint16_t)n, .at = at};
  p->held += made - n;
  if (p->held > p->parsed.stack) p->parsed.stack = p->held;
  return instruction;
}

/* ---- Names ---- */

/* The hash table's entry for a token's name: its own, or the free one for it. */
static int32_t *name_entry(parser *p, const qn_token *token) {
  const char *name = p->parsed.source.text + token->at;
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < token->size; i++) hash = (hash ^ (unsigned char)name[i]) * 16777619u;
  for (hash ^= hash >> 15;; hash++) {
    int32_t *entry = &p->names[hash & p->names_mask];
    if (!*entry) return entry;
    const qn_token *first = &p->parsed.tokens[*entry - 1];
    if (first->size == token->size && memcmp(p->parsed.source.text + first->at, name, token->size) == 0) return entry;
  }
}

/* Defines a name at its first token. */
static void name_define(parser *p, int32_t *entry, qn_token *token, char letter, int32_t number) {
  *entry = (int32_t)(token - p->parsed.tokens) + 1;
  token->renamed = (uint8_t)letter;
  token->variable = number;
}

static const qn_named_constant *find_constant(const parser *p, const qn_token *token) {
  for (int32_t k = 0; k < qn_n_named_constants; k++)
    if (is_word(p, token, qn_named_constants[k].name)) return &qn_named_constants[k];
  return NULL;
}

/* Words and constants that no variable may be called. */
static int check_variable(parser *p, const qn_token *token) {
  if (is_word(p, token, "rare")) return refuse_rare(p, token);
  if (is_word(p, token, "return") || is_word(p, token, "param") || is_word(p, token, "lookup"))
    return WRONG(p, token->at, "'%.*s' cannot be a variable's name", SHOWN(p, token));
  if (memchr(p->parsed.source.text + token->at, '.', token->size))
    return WRONG(p, token->at, "unknown name '%.*s': only a function may have a namespace", SHOWN(p, token));
  return 1;
}

static int check_operands(parser *p, uint32_t at) {
  if (p->parsed.n_in + p->parsed.n_out < QN_MAX_OPERANDS) return 1;
  return FAIL(p, QUERN_E_LIMIT, at, "more than %d inputs and outputs", QN_MAX_OPERANDS);
}

/* A name where a value is expected. */
static int reference(parser *p, qn_token *token) {
  if (!check_variable(p, token)) return 0;
  int32_t *entry = name_entry(p, token);
  const qn_named_constant *constant = *entry ? NULL : find_constant(p, token);
  if (constant) {
    emit(p, QN_CODE_NUMBER, 0, token->at, 0, 1)->v.number = (qn_number){.is_float = 1, .v.f = constant->value};
    return 1;
  }
  if (!*entry) {
    if (!check_operands(p, token->at)) return 0;
    p->parsed.in[p->parsed.n_in] = (int32_t)(token - p->parsed.tokens);
    name_define(p, entry, token, 'x', p->parsed.n_in++);
  }
  token->renamed = p->parsed.tokens[*entry - 1].renamed;
  token->variable = p->parsed.tokens[*entry - 1].variable;
  qn_code_kind kind = token->renamed == 'x' ? QN_CODE_INPUT : token->renamed == 'p' ? QN_CODE_PARAM : QN_CODE_VARIABLE;
  emit(p, kind, 0, token->at, 0, 1)->v.index = token->variable;
  return 1;
}

/* Checks the name that a statement defines; *entry: its entry in the table. */
static int new_name(parser *p, const qn_token *token, int32_t **entry) {
  if (!check_variable(p, token)) return 0;
  *entry = name_entry(p, token);
  if (**entry && p->parsed.tokens[**entry - 1].renamed == 'x')
    return WRONG(p, token->at, "'%.*s' is an input: it was read before", SHOWN(p, token));
  if (**entry) return WRONG(p, token->at, "'%.*s' is already defined", SHOWN(p, token));
  if (!find_constant(p, token)) return 1;
  return WRONG(p, token->at, "'%.*s' is a constant: choose another name", SHOWN(p, token));
}

/* ---- Functions ---- */

/* Each op is listed once. */
static void note_op(parser *p, const quern_op *op) {
  for (int32_t k = 0; k < p->parsed.n_ops; k++)
    if (p->parsed.ops[k] == op) return;
  p->parsed.ops[p->parsed.n_ops++] = op;
}

/* Lists the backward op of each op for derivatives, and what adds those of a row. There is room: a call has more than two tokens. */
static void note_backward_ops(parser *p) {
  for (int32_t k = 0; k < p->parsed.n_ops && p->has_grad; k++) {
    const char *name = p->parsed.ops[k]->builtin->info.backward;
    const quern_op *backward = name ? qn_registry_find(p->ctx, name) : NULL;
    if (backward && backward->builtin) note_op(p, backward);
  }
  const quern_op *sum = p->has_grad && p->parsed.n_axes ? qn_registry_find(p->ctx, "sum") : NULL;
  if (sum) note_op(p, sum);
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

static open_nest *innermost(const parser *p) { return p->depth ? &p->nests[p->depth - 1] : NULL; }

/* Opens a nest, unless there are too many levels. */
static parse_state begin_nest(parser *p, nest_kind kind, const qn_token *token) {
  if (p->depth == MAX_DEPTH) return FAIL(p, QUERN_E_LIMIT, token->at, "nested deeper than %d", MAX_DEPTH);
  p->nests[p->depth++] = (open_nest){.kind = kind, .n_outside = p->n_waiting, .token = token};
  return WANTS_OPERAND;
}

/* ---- Operands ---- */

static parse_state end_call(parser *p) {
  const open_nest *nest = &p->nests[--p->depth];
  p->status = qn_callee_check(&p->parsed.source, nest->token, &nest->call, nest->n_args);
  if (p->status) return FAILED;
  if (nest->call.kind == QN_CODE_GRAD) {
    /* code in postfix order that ends with an input is that input alone */
    if (p->parsed.code[p->parsed.n_code - 1].kind != QN_CODE_INPUT)
      return WRONG(p, nest->call.at, "grad(expression, x): x must be an input");
    p->has_grad = 1;
  }
  qn_instruction *made = emit(p, nest->call.kind, nest->call.what, nest->call.at, nest->n_args, 1);
  made->v = nest->call.v;
  made->axes = nest->call.axes;
  return HAS_OPERAND;
}

/* ---- Axes ---- */

/* A whole number, with its sign. */
static int axis_number(parser *p, int64_t most, const char *what, int64_t *value) {
  const int is_negative = accept(p, QN_SIGN_SUB);
  const qn_token *token = take(p);
  qn_number number;
  if (token->kind != QN_TOKEN_NUMBER) return missing(p, what, "", NULL, token);
  p->status = qn_syntax_number(&p->parsed.source, token, &number);
  if (p->status) return 0;
  if (number.is_float || number.is_pattern || number.v.i > most)
    return WRONG(p, token->at, "expected %s, found '%.*s'", what, SHOWN(p, token));
  *value = is_negative ? -number.v.i : number.v.i;
  return 1;
}

static int one_axis(parser *p, qn_axes *axes) {
  int64_t axis;
  if (!axis_number(p, QN_MAX_AXES, "an axis, a whole number", &axis)) return 0;
  if (axes->n == QN_MAX_AXES) return FAIL(p, QUERN_E_LIMIT, peek(p, 0)->at, "more than %d axes", QN_MAX_AXES);
  axes->axis[axes->n++] = (int8_t)axis;
  return 1;
}

/* reverse = 0 or 1, exclusive = 0 or 1 of a call that scans. */
static int scan_keyword(parser *p, const qn_token *name, qn_axes *axes) {
  uint8_t *flag = is_word(p, name, "reverse") ? &axes->reverse : is_word(p, name, "exclusive") ? &axes->exclusive : NULL;
  int64_t value;
  if (is_word(p, name, "include_initial"))
    return FAIL(p, QUERN_E_UNSUPPORTED, name->at, "include_initial gives one element more than the others have; call the op by itself");
  if (!flag) return WRONG(p, name->at, "unknown keyword '%.*s': expected axis, reverse or exclusive", SHOWN(p, name));
  if (!axis_number(p, 1, "0 or 1", &value)) return 0;
  if (value < 0) return WRONG(p, name->at, "%.*s: expected 0 or 1", SHOWN(p, name));
  *flag = (uint8_t)value;
  return 1;
}

/* axis = N or axis = (N, ...), keepdims = 0 or 1; behind '(' or ',' of a call that reduces. */
static int keyword(parser *p, open_nest *nest) {
  qn_axes *axes = &p->parsed.axes[nest->call.axes];
  const qn_token *name = take(p);
  const int is_axis = is_word(p, name, "axis");
  int64_t value;
  take(p);
  if (!is_axis && qn_callee_scans(&nest->call)) return scan_keyword(p, name, axes);
  if (!is_axis && !is_word(p, name, "keepdims"))
    return WRONG(p, name->at, "unknown keyword '%.*s': expected axis or keepdims", SHOWN(p, name));
  if (!is_axis) {
    if (!qn_row_op_of(nest->call.v.op->builtin)->is_reduced)
      return WRONG(p, name->at, "keepdims: %.*s keeps all dimensions", SHOWN(p, nest->token));
    if (nest->has_keepdims) return WRONG(p, name->at, "keepdims is given twice");
    nest->has_keepdims = 1;
    if (!axis_number(p, 1, "0 or 1", &value)) return 0;
    if (value < 0) return WRONG(p, name->at, "keepdims: expected 0 or 1");
    axes->keepdims = (uint8_t)value;
    return 1;
  }
  if (!axes->is_all) return WRONG(p, name->at, "axis is given twice");
  axes->is_all = 0;
  if (!accept(p, QN_SIGN_OPEN)) return one_axis(p, axes);
  while (!accept(p, QN_SIGN_CLOSE)) {
    if (!one_axis(p, axes)) return 0;
    if (!accept(p, QN_SIGN_COMMA)) return expect(p, QN_SIGN_CLOSE, " after the axes", NULL);
  }
  return 1;
}

static int is_keyword(parser *p) {
  return peek(p, 0)->kind == QN_TOKEN_NAME && qn_token_is_sign(peek(p, 1), QN_SIGN_ASSIGN);
}

/* Reads keywords up to the end of the call. */
static parse_state end_keywords(parser *p) {
  open_nest *nest = innermost(p);
  do {
    if (!is_keyword(p)) return WRONG(p, peek(p, 0)->at, qn_callee_scans(&nest->call) ? "an argument after a keyword" : "an argument after axis or keepdims");
    if (!keyword(p, nest)) return FAILED;
  } while (accept(p, QN_SIGN_COMMA));
  return expect(p, QN_SIGN_CLOSE, " after the arguments of ", nest->token) ? end_call(p) : FAILED;
}

/* Whether a keyword comes next in a call that takes keywords. */
static int takes_keyword(parser *p) { return qn_callee_has_axes(&innermost(p)->call) && is_keyword(p); }

/* `token` is the name; its '(' comes next. */
static parse_state begin_call(parser *p, const qn_token *token) {
  qn_instruction call;
  p->status = qn_callee_find(p->ctx, &p->parsed.source, token, &call);
  if (p->status) return FAILED;
  if (call.kind == QN_CODE_OP) note_op(p, call.v.op);
  if (!begin_nest(p, IN_CALL, token)) return FAILED;
  if (qn_callee_has_axes(&call)) {
    call.axes = (uint16_t)p->parsed.n_axes;
    p->parsed.axes[p->parsed.n_axes++] = (qn_axes){.is_all = 1};
  }
  innermost(p)->call = call;
  take(p);
  if (takes_keyword(p)) return end_keywords(p);
  return accept(p, QN_SIGN_CLOSE) ? end_call(p) : WANTS_OPERAND;
}

static int is_prefix(const qn_token *token) {
  return qn_token_is_sign(token, QN_SIGN_SUB) || qn_token_is_sign(token, QN_SIGN_ADD) || qn_token_is_sign(token, QN_SIGN_NOT) ||
         qn_token_is_sign(token, QN_SIGN_INVERT);
}

static parse_state begin_operand(parser *p) {
  qn_token *token = take(p);
  if (token->kind == QN_TOKEN_NUMBER) {
    qn_instruction *instruction = emit(p, QN_CODE_NUMBER, 0, token->at, 0, 1);
    p->status = qn_syntax_number(&p->parsed.source, token, &instruction->v.number);
    return p->status == QUERN_OK ? HAS_OPERAND : FAILED;
  }
  if (token->kind == QN_TOKEN_NAME) {
    if (is_type(p, token))
      return refuse_T(p, token) && WRONG(p, token->at, "type '%.*s' where a value is expected", SHOWN(p, token));
    if (is_word(p, token, "rare")) return (parse_state)refuse_rare(p, token);
    if (qn_token_is_sign(peek(p, 0), QN_SIGN_OPEN)) return begin_call(p, token);
    return reference(p, token) ? HAS_OPERAND : FAILED;
  }
  if (qn_token_is_sign(token, QN_SIGN_OPEN) && is_type(p, peek(p, 0)) && qn_token_is_sign(peek(p, 1), QN_SIGN_CLOSE)) {
    if (!refuse_T(p, peek(p, 0))) return FAILED;
    p->next += 2;
    return begin_nest(p, IN_CAST, token);
  }
  if (qn_token_is_sign(token, QN_SIGN_OPEN)) return begin_nest(p, IN_PARENTHESES, token);
  if (is_prefix(token)) return begin_nest(p, IN_PREFIX, token);
  return (parse_state)missing(p, "a value", "", NULL, token);
}

/* Applies the signs and casts before the operand just read, the nearest first. */
static void end_prefixes(parser *p) {
  for (const open_nest *nest; (nest = innermost(p)) && nest->kind <= IN_CAST; p->depth--) {
    if (nest->kind == IN_CAST)
      emit(p, QN_CODE_CAST, nest->token[1].dtype, nest->token->at, 1, 1);
    else
      emit(p, QN_CODE_UNARY, nest->token->sign, nest->token->at, 1, 1);
  }
  p->comparison = NOWHERE;
}

/* ---- Operators ---- */

/* The precedence of a binary operator; 0: the token is none. ORDER SIGN */
static int level_of(const qn_token *token) {
  static const uint8_t levels[] = {1, 2, 3, 4, 5, 6, 6, 7, 7, 7, 7, 8, 8, 9, 9, 10, 10, 10};
  _Static_assert(sizeof levels == QN_SIGN_REMAINDER + 1, "one for each binary operator");
  return token->kind == QN_TOKEN_SIGN && token->sign < sizeof levels ? levels[token->sign] : 0;
}

static int is_comparison(uint8_t sign) { return sign >= QN_SIGN_EQ && sign <= QN_SIGN_GE; }

/* Emits the last waiting operator: its right operand has been read. */
static int end_operator(parser *p) {
  const waiting op = p->waiting[--p->n_waiting];
  if (is_comparison(op.sign) && p->comparison != NOWHERE)
    return WRONG(p, p->comparison, "chained comparison: write a < b && b < c");
  emit(p, QN_CODE_BINARY, op.sign, op.at, 2, 1);
  if (op.chain > MAX_CHAIN) return FAIL(p, QUERN_E_LIMIT, op.at, "more than %d operators in one chain", MAX_CHAIN);
  p->comparison = is_comparison(op.sign) ? op.at : NOWHERE;
  return 1;
}

/* Reads the operator after an operand. First emits this nest's waiting operators of the same or higher precedence.
 * HAS_OPERAND: no operator follows, and all of them were emitted. */
static parse_state take_operator(parser *p) {
  const open_nest *nest = innermost(p);
  const int32_t n_outside = nest ? nest->n_outside : 0;
  const qn_token *token = peek(p, 0);
  const int level = level_of(token);
  int chain = 1;
  while (p->n_waiting > n_outside && p->waiting[p->n_waiting - 1].level >= level) {
    if (p->waiting[p->n_waiting - 1].level == level) chain = p->waiting[p->n_waiting - 1].chain + 1;
    if (!end_operator(p)) return FAILED;
  }
  if (!level) return HAS_OPERAND;
  if (token->sign == QN_SIGN_REMAINDER)
    return WRONG(p, token->at, "'%%' is no operator: remainder(x, y) has the sign of y, fmod(x, y) that of x");
  if (is_comparison(token->sign) && p->comparison != NOWHERE)
    return WRONG(p, token->at, "chained comparison: write a < b && b < c");
  p->waiting[p->n_waiting++] = (waiting){token->sign, (uint8_t)level, (uint16_t)chain, token->at};
  take(p);
  return WANTS_OPERAND;
}

/* ---- The whole of one ---- */

/* At the sign that ends or divides the innermost nest (parentheses, a call or a first branch): its contents have been read. */
static parse_state end_part(parser *p) {
  open_nest *nest = innermost(p);
  if (nest->kind == IN_FIRST_BRANCH) {
    nest->kind = IN_SECOND_BRANCH;
    return expect(p, QN_SIGN_COLON, " in '? :'", NULL) ? WANTS_OPERAND : FAILED;
  }
  if (nest->kind == IN_PARENTHESES) {
    p->depth--;
    return expect(p, QN_SIGN_CLOSE, " to close '('", NULL) ? HAS_OPERAND : FAILED;
  }
  nest->n_args++;
  if (accept(p, QN_SIGN_COMMA)) return takes_keyword(p) ? end_keywords(p) : WANTS_OPERAND;
  return expect(p, QN_SIGN_CLOSE, " after the arguments of ", nest->token) ? end_call(p) : FAILED;
}

/* Reads from behind an operand to the position of the next one; HAS_OPERAND: the whole expression has been read. */
static parse_state go_on(parser *p) {
  for (;;) {
    end_prefixes(p);
    parse_state state = take_operator(p);
    if (state != HAS_OPERAND) return state;
    const qn_token *question = peek(p, 0);
    if (accept(p, QN_SIGN_QUESTION)) return begin_nest(p, IN_FIRST_BRANCH, question);
    for (const open_nest *nest; (nest = innermost(p)) && nest->kind == IN_SECOND_BRANCH; p->depth--)
      emit(p, QN_CODE_SELECT, 0, nest->token->at, 3, 1);
    if (!p->depth) return HAS_OPERAND;
    state = end_part(p);
    if (state != HAS_OPERAND) return state;
  }
}

static int expression(parser *p) {
  parse_state state = WANTS_OPERAND;
  while (state == WANTS_OPERAND) {
    state = begin_operand(p);
    if (state == HAS_OPERAND) state = go_on(p);
  }
  return state == HAS_OPERAND;
}

/* ---- Statements ---- */

/* Assigns the value on the stack to a variable, which is an output unless it has a declared type. name -1: the result */
static int assign(parser *p, int32_t name, uint8_t dtype, uint32_t at) {
  if (dtype == QN_DTYPE_NONE) {
    if (!check_operands(p, at)) return 0;
    p->parsed.out[p->parsed.n_out] = name;
    p->parsed.out_variables[p->parsed.n_out++] = p->parsed.n_variables;
  }
  emit(p, QN_CODE_ASSIGN, dtype, at, 1, 0)->v.index = p->parsed.n_variables++;
  return 1;
}

/* [ type ] name = expression ; */
static int assignment(parser *p) {
  qn_token *name = take(p);
  uint8_t dtype = QN_DTYPE_NONE;
  if (is_type(p, name)) {
    if (!refuse_T(p, name)) return 0;
    dtype = name->dtype;
    name = take(p);
  }
  if (name->kind != QN_TOKEN_NAME || is_type(p, name)) return missing(p, "a name", "", NULL, name);
  if (!expect(p, QN_SIGN_ASSIGN, " after ", name) || !expression(p)) return 0;
  int32_t *entry;
  if (!new_name(p, name, &entry)) return 0;
  name_define(p, entry, name, 'v', p->parsed.n_variables);
  if (!assign(p, (int32_t)(name - p->parsed.tokens), dtype, name->at)) return 0;
  return peek(p, 0)->kind == QN_TOKEN_END || expect(p, QN_SIGN_SEMICOLON, " after the value of ", name);
}

static int param(parser *p) {
  take(p);
  qn_token *name = take(p);
  if (is_type(p, name)) return missing(p, "a name", " after param", NULL, name);
  int32_t *entry;
  if (!new_name(p, name, &entry)) return 0;
  if (p->parsed.n_params == QN_MAX_PARAMS) return FAIL(p, QUERN_E_LIMIT, name->at, "more than %d params", QN_MAX_PARAMS);
  p->parsed.params[p->parsed.n_params] = (int32_t)(name - p->parsed.tokens);
  name_define(p, entry, name, 'p', p->parsed.n_params++);
  return peek(p, 0)->kind == QN_TOKEN_END || expect(p, QN_SIGN_SEMICOLON, " after param", NULL);
}

/* The bare expression or the return at the end. where, last: for the messages */
static int result(parser *p, const char *where, const char *last) {
  const uint32_t at = peek(p, 0)->at;
  if (!expression(p)) return 0;
  if (peek(p, 0)->kind != QN_TOKEN_END && !expect(p, QN_SIGN_SEMICOLON, where, NULL)) return 0;
  if (peek(p, 0)->kind != QN_TOKEN_END) return WRONG(p, peek(p, 0)->at, "nothing may follow %s", last);
  for (int32_t k = 0; k < p->parsed.n_in + p->parsed.n_out; k++)
    if (is_word(p, &p->parsed.tokens[k < p->parsed.n_in ? p->parsed.in[k] : p->parsed.out[k - p->parsed.n_in]], "out"))
      return WRONG(p, at, "the result is an output named out, and there is one of that name");
  return assign(p, -1, QN_DTYPE_NONE, at);
}

/* The text behind the kernel's name, if it has one. */
static int body(parser *p) {
  while (peek(p, 0)->kind != QN_TOKEN_END) {
    const qn_token *token = peek(p, 0), *second = peek(p, 1);
    int is_result = 0, fine;
    if (is_word(p, token, "return")) {
      take(p);
      is_result = fine = result(p, " after return", "return");
    } else if (is_word(p, token, "param") && second->kind == QN_TOKEN_NAME) {
      fine = param(p);
    } else if (is_type(p, token) || (token->kind == QN_TOKEN_NAME && qn_token_is_sign(second, QN_SIGN_ASSIGN))) {
      fine = assignment(p);
    } else {
      is_result = fine = result(p, " after the expression", "the result");
    }
    if (!fine) return 0;
    if (is_result) return 1;
  }
  if (p->parsed.n_out) return 1;
  return WRONG(p, p->parsed.source.size, "there is no output: write an expression, or y = ...");
}

/* ---- The whole ---- */

/* Scratch memory for everything: sizes follow from the number of tokens. 0: out of memory. */
static int make_room(parser *p) {
  const size_t n = (size_t)p->parsed.n_tokens;
  size_t n_entries = 4;
  while (n_entries < n + n / 2) n_entries *= 2; /* every second token at most is a variable */
  const size_t code_bytes = n * sizeof(qn_instruction), ops_bytes = n * sizeof(quern_op *), waiting_bytes = n * sizeof(waiting);
  const size_t nests_bytes = MAX_DEPTH * sizeof(open_nest), names_bytes = n_entries * sizeof(int32_t);
  const size_t axes_bytes = (n / 2 + 1) * sizeof(qn_axes); /* a call that has begun has two tokens */
  char *at = p->parsed.scratch = malloc(nests_bytes + code_bytes + ops_bytes + waiting_bytes + names_bytes + axes_bytes);
  if (!at) return 0;
  p->nests = (open_nest *)at;
  p->parsed.code = (qn_instruction *)(at += nests_bytes);
  p->parsed.ops = (const quern_op **)(at += code_bytes);
  p->waiting = (waiting *)(at += ops_bytes);
  p->names = (int32_t *)(at += waiting_bytes);
  p->parsed.axes = (qn_axes *)(at + names_bytes);
  p->names_mask = (uint32_t)n_entries - 1;
  memset(p->names, 0, names_bytes);
  return 1;
}

quern_status qn_parse(quern_ctx *ctx, qn_parsed *parsed) {
  parser p = {.ctx = ctx, .comparison = NOWHERE,
              .parsed = {.source = parsed->source, .tokens = parsed->tokens, .n_tokens = parsed->n_tokens}};
  int is_read = 0;
  if (make_room(&p)) {
    p.next = qn_syntax_begins_with_name(p.parsed.source.text, p.parsed.tokens) ? 2 : 0;
    find_types(&p);
    is_read = body(&p);
  } else {
    p.status = qn_status_fail(QUERN_E_MEMORY, "%.*s: out of memory", (int)parsed->source.name_size, parsed->source.name);
  }
  if (is_read) note_backward_ops(&p);
  *parsed = p.parsed;
  return is_read ? QUERN_OK : p.status;
}

void qn_parse_free(qn_parsed *parsed) { free(parsed->scratch); }
