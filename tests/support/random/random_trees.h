/* SPDX-License-Identifier: Apache-2.0
 *
 * random_trees.h: random expressions over all that the language has, and tensors of random dtypes and layouts for them. The same
 * stream of random numbers gives the same case. Header-only, as tensors.h. */
#ifndef QUERN_TESTS_RANDOM_TREES_H
#define QUERN_TESTS_RANDOM_TREES_H

#include "tensors.h"

#define MAX_NODES 512
#define MANY_NODES 30
#define MAX_INPUTS 4

enum kind { INPUT, NUMBER, PARAM, UNARY, BINARY, CALL, COMPARE, SELECT, CAST };

typedef struct node {
  int kind, op, n_args, args[3];
  ref_dtype dtype, type; /* what promotion sees, what it is computed in; of weak ones, those of their partner */
  double number;
} node;

typedef struct tree {
  node nodes[MAX_NODES];
  int n, n_in, n_out, uses_param, has_math;
  int seen[MAX_INPUTS], order[MAX_INPUTS]; /* inputs in order of appearance */
  ref_dtype in[MAX_INPUTS];
  int out[2];
  char text[8192];
} tree;

static const double param_value = 3;

UNUSED static ref_dtype compute_type(ref_dtype d) { return ref_compute(d); }
UNUSED static int is_float(ref_dtype d) { return ref_dtype_kind(d) == REF_KIND_FLOAT; }

/* ---- Making one ---- */

static const char *const binary_signs[] = {"+", "-", "*", "/"};
UNUSED static const ref_op binary_ops[] = {REF_ADD, REF_SUBTRACT, REF_MULTIPLY, REF_DIVIDE};
#define N_CALLS 19
#define N_EXACT 12 /* the first ones are rounded exactly */
#define N_OWN 9    /* of these the first are the language's own, or in every build */
static const char *const call_names[N_CALLS] = {"sqrt", "abs", "maximum", "minimum", "fma", "negative", "where", "floor", "rem",
                                                "remainder", "fmod", "floor_divide",
                                                "exp", "log", "tanh", "erf", "sigmoid", "gelu", "pow"};
UNUSED static const ref_op call_ops[N_EXACT] = {REF_SQRT, REF_ABS, REF_MAXIMUM, REF_MINIMUM, REF_FMA, REF_NEGATIVE, REF_WHERE,
                                                REF_FLOOR, REF_FMOD, REF_REMAINDER, REF_FMOD, REF_FLOOR_DIVIDE};
static const int call_args[N_CALLS] = {1, 1, 2, 2, 3, 1, 3, 1, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 2};
static int is_float_call(int op) { return op == 0 || op == 4 || (op >= N_EXACT && op < N_CALLS - 1); }
static const char *const compare_signs[] = {"<", "<=", ">", ">=", "==", "!="};

static int add(tree *t, node n) {
  t->nodes[t->n] = n;
  return t->n++;
}

static int grow(tree *t, rng *r, int depth);

/* A number or param for the partner `d`. */
static int weak(tree *t, rng *r, ref_dtype d) {
  static const double wholes[] = {0, 1, 2, 3, 7, 100}, parts[] = {0.5, 0.25, 1.5, 6.0};
  int is_param = rng_below(r, 3) == 0;
  double number = is_param ? param_value : is_float(d) && rng_below(r, 2) ? parts[rng_below(r, 4)] : wholes[rng_below(r, 6)];
  t->uses_param |= is_param;
  return add(t, (node){.kind = is_param ? PARAM : NUMBER, .dtype = d, .type = compute_type(d), .number = number});
}

static int strong_number(tree *t, rng *r, int depth) {
  for (;;) {
    int at = grow(t, r, depth);
    if (t->nodes[at].dtype != REF_BOOL) return at;
    if (depth <= 0 || t->n > MANY_NODES) /* make it a number */
      return add(t, (node){.kind = CAST, .n_args = 1, .args = {at}, .dtype = REF_F32, .type = REF_F32});
  }
}

/* `at`, or a cast of it to `d` where the two have no common dtype. */
static int promotable(tree *t, int at, ref_dtype d) {
  if (ref_promote(t->nodes[at].dtype, d) != REF_N_DTYPES) return at;
  return add(t, (node){.kind = CAST, .n_args = 1, .args = {at}, .dtype = d, .type = compute_type(d)});
}

static int condition(tree *t, rng *r, int depth) {
  int a = strong_number(t, r, depth - 1), b = rng_below(r, 2) ? weak(t, r, t->nodes[a].dtype) : strong_number(t, r, depth - 1);
  b = promotable(t, b, t->nodes[a].dtype);
  return add(t, (node){.kind = COMPARE, .op = (int)rng_below(r, 6), .n_args = 2, .args = {a, b}, .dtype = REF_BOOL,
                       .type = REF_BOOL});
}

/* One more reader of what an output is: y = m; z = (m + 1) * m; m a move, often: those are copied to their outputs. */
static int read_again(tree *t, int at) {
  ref_dtype d = t->nodes[at].dtype;
  if (d == REF_BOOL) return at;
  int one = add(t, (node){.kind = NUMBER, .dtype = d, .type = compute_type(d), .number = 1});
  int more = add(t, (node){.kind = BINARY, .op = 0, .n_args = 2, .args = {at, one}, .dtype = d, .type = compute_type(d)});
  return add(t, (node){.kind = BINARY, .op = 2, .n_args = 2, .args = {more, at}, .dtype = d, .type = compute_type(d)});
}

/* where(condition, at, -at) */
static int moved(tree *t, rng *r, int at) {
  ref_dtype d = t->nodes[at].dtype;
  int when = condition(t, r, 1);
  int minus = add(t, (node){.kind = CALL, .op = 5, .n_args = 1, .args = {at}, .dtype = d, .type = compute_type(d)});
  return add(t, (node){.kind = CALL, .op = 6, .n_args = 3, .args = {when, at, minus}, .dtype = d, .type = compute_type(d)});
}

static int grow(tree *t, rng *r, int depth) {
  int choice = depth <= 0 || t->n > MANY_NODES ? 0 : (int)rng_below(r, 9);
  if (t->has_math && choice > 0 && rng_below(r, 3) == 0) choice = rng_below(r, 2) ? 5 : 7;
  node n = {.kind = INPUT};
  int a, b;
  switch (choice) {
    default: /* 0, 1 */
      n.op = (int)rng_below(r, (uint64_t)t->n_in);
      n.dtype = t->in[n.op];
      break;
    case 2:
    case 3:
    case 4:
      n.kind = BINARY;
      n.op = (int)rng_below(r, 4);
      a = strong_number(t, r, depth - 1);
      b = rng_below(r, 3) ? strong_number(t, r, depth - 1) : weak(t, r, t->nodes[a].dtype);
      b = promotable(t, b, t->nodes[a].dtype);
      n.n_args = 2;
      n.args[0] = a, n.args[1] = b;
      if (t->nodes[b].kind <= PARAM && t->nodes[b].kind != INPUT && rng_below(r, 2)) n.args[0] = b, n.args[1] = a;
      n.dtype = ref_promote(t->nodes[a].dtype, t->nodes[b].dtype);
      if (n.op == 3) n.dtype = ref_floating(n.dtype);
      break;
    case 5:
      n.kind = CALL;
      n.op = (int)rng_below(r, N_EXACT);
      if (t->has_math && rng_below(r, 3)) n.op = N_EXACT + (int)rng_below(r, N_CALLS - N_EXACT);
      if (n.op >= N_OWN && !has_op(ref_op_find(call_names[n.op]))) n.op = 0; /* which the language has by itself */
      n.n_args = call_args[n.op];
      n.dtype = REF_N_DTYPES;
      for (int k = 0; k < n.n_args; k++) {
        if (n.op == 6 && k == 0) {
          n.args[0] = condition(t, r, depth - 2);
          continue;
        }
        n.args[k] = strong_number(t, r, depth - 1);
        if (n.dtype != REF_N_DTYPES) n.args[k] = promotable(t, n.args[k], n.dtype);
        ref_dtype d = t->nodes[n.args[k]].dtype;
        n.dtype = n.dtype == REF_N_DTYPES ? d : ref_promote(n.dtype, d);
      }
      if (is_float_call(n.op)) n.dtype = ref_floating(n.dtype);
      break;
    case 6: return condition(t, r, depth);
    case 7:
      n.kind = SELECT;
      n.n_args = 3;
      n.args[0] = condition(t, r, depth - 1);
      n.args[1] = a = strong_number(t, r, depth - 1);
      b = rng_below(r, 2) ? strong_number(t, r, depth - 1) : weak(t, r, t->nodes[a].dtype);
      n.args[2] = b = promotable(t, b, t->nodes[a].dtype);
      n.dtype = ref_promote(t->nodes[a].dtype, t->nodes[b].dtype);
      break;
    case 8:
      n.kind = CAST;
      n.n_args = 1;
      n.args[0] = grow(t, r, depth - 1);
      n.dtype = (ref_dtype)(REF_I8 + rng_below(r, REF_N_DTYPES - REF_I8));
  }
  n.type = compute_type(n.dtype);
  return add(t, n);
}

static void print(tree *t, int at) {
  const node *n = &t->nodes[at];
  char *end = t->text + strlen(t->text);
  switch (n->kind) {
    case INPUT:
      if (!t->seen[n->op]) {
        int k = 0;
        while (k < t->n_in && t->order[k] >= 0) k++;
        t->order[k] = n->op;
        t->seen[n->op] = 1;
      }
      sprintf(end, "%c", 'a' + n->op);
      return;
    case NUMBER:
      if (n->number == (int)n->number && !(is_float(n->dtype) && ((int)n->number & 1))) sprintf(end, "%d", (int)n->number);
      else sprintf(end, "%d.%02d", (int)n->number, (int)(n->number * 100) % 100);
      return;
    case PARAM: strcpy(end, "p"); return;
    case CAST:
      sprintf(end, "((%s)", ref_dtype_name(n->dtype));
      print(t, n->args[0]);
      break;
    case CALL:
      sprintf(end, "%s(", call_names[n->op]);
      for (int k = 0; k < n->n_args; k++) {
        if (k) strcat(t->text, ", ");
        print(t, n->args[k]);
      }
      break;
    case SELECT:
      strcpy(end, "(");
      print(t, n->args[0]);
      strcat(t->text, " ? ");
      print(t, n->args[1]);
      strcat(t->text, " : ");
      print(t, n->args[2]);
      break;
    default:
      strcpy(end, "(");
      print(t, n->args[0]);
      sprintf(t->text + strlen(t->text), " %s ", n->kind == BINARY ? binary_signs[n->op] : compare_signs[n->op]);
      print(t, n->args[1]);
  }
  strcat(t->text, ")");
}

/* ---- Operands ---- */

static void random_layout(operand *o, ref_dtype d, const int64_t *shape, int ndim, int is_output, rng *r) {
  int64_t strides[3], step = 1, size[3];
  int order[3] = {0, 1, 2};
  if (rng_below(r, 3) == 0 && ndim == 2) order[0] = 1, order[1] = 0;
  for (int i = 0; i < ndim; i++) size[i] = shape[i];
  for (int i = ndim - 1; i >= 0; i--) {
    int dim = order[i];
    int is_broadcast = !is_output && rng_below(r, 4) == 0;
    if (rng_below(r, 5) == 0) step *= 2; /* gaps */
    strides[dim] = is_broadcast ? 0 : rng_below(r, 6) == 0 ? -step : step;
    if (!is_broadcast) step *= size[dim];
  }
  operand_describe(o, d, ndim, shape, strides);
  operand_allocate(o, (int)rng_below(r, 16), GUARD_NONE);
  operand_fill(o, r);
}

/* ---- Rare blocks behind branches ---- */

/* log and pow leave some arguments to a path that compiled code takes for a block of elements if one of them needs it, and,
 * behind `?:`, needs it for the branch it takes. So each pair of values comes as a tensor of its own. */
UNUSED static const char *const branch_texts[] = {
  "z = x > 0 ? log(x) : 7", "z = x > 0 ? 7 : log(x)", "z = y > 0.5 ? log(x) : pow(x, y)",
  "z = x > 0 ? (y > 0 ? log(x) : pow(x, y)) : log(-x)", "z = log(x) > 0 ? log(y) : pow(x, y)",
  "f32 t = log(x); z = (y > 0 ? t : 1) + (y < 1 ? t : 2)", "f32 t = log(x); z = (y > 0 ? t : 1) + t",
  "z = log(y > 0 ? log(x) : 3)", "z = (y > 0 ? (y > 1 ? (y > 2 ? (y > 3 ? (y > 4 ? log(x) : 1) : 2) : 3) : 4) : 5)",
  "z = y > 0.5 ? pow(x, y) : 7; w = x > 0 ? 7 : pow(y, x)", "z = pow(x > 0 ? pow(y, x) : 3, y)",
  "z = isnan(log(x)) ? pow(y, x) : log(y)", "z = where(x < 1, clip(y < 1 ? log(x) : 0, -5, 5), log(y))",
  "z = x > 0 ? log(x) : 7; w = x > 0 ? 7 : log(x)", "z = y > 0 ? log(x) : 0; w = y > 0 ? 0 : log(x); v = x > 1 ? pow(x, y) : z"};
UNUSED static const double branch_values[] = {0,      -0.0,   1,    -1, 0.5,      2.5,       3,
                                              1e-40, -1e-40, 1e-310, 1e38, -3, INFINITY, -INFINITY, NAN};

/* ---- A case ---- */

/* An expression with its operands; tree_case_free ends it. */
typedef struct tree_case {
  tree t;
  int ndim, n_used; /* inputs that the expression has, in the order that it has them: ins */
  int64_t shape[3];
  operand in[MAX_INPUTS], out[2];
  DLTensor *ins[MAX_INPUTS], *outs[2];
  quern_scalar param;
  quern_call call;
} tree_case;

/* salt: which case; every fourth has functions that are rounded to a bound only. The case must stay where it is. */
UNUSED static void tree_case_make(tree_case *c, rng *r, int salt) {
  tree *t = &c->t;
  memset(c, 0, sizeof *c);
  t->n_in = 1 + (int)rng_below(r, MAX_INPUTS);
  t->n_out = 1 + (rng_below(r, 4) == 0);
  t->has_math = salt % 4 == 0;
  for (int k = 0; k < MAX_INPUTS; k++) t->order[k] = -1;
  ref_dtype all = rng_below(r, 2) ? REF_N_DTYPES : (ref_dtype)rng_below(r, REF_N_DTYPES);
  for (int k = 0; k < t->n_in; k++) t->in[k] = all < REF_N_DTYPES ? all : (ref_dtype)rng_below(r, REF_N_DTYPES);
  for (int k = 0; k < t->n_out; k++) t->out[k] = grow(t, r, 1 + (int)rng_below(r, 4));
  if (t->n_out == 2 && rng_below(r, 2)) {
    if (rng_below(r, 2) && t->nodes[t->out[0]].dtype != REF_BOOL) t->out[0] = moved(t, r, t->out[0]);
    t->out[1] = read_again(t, t->out[0]);
  }
  for (int k = 0; k < t->n_out; k++) {
    sprintf(t->text + strlen(t->text), "%c = ", 'y' + k);
    print(t, t->out[k]);
    strcat(t->text, "; ");
  }
  if (t->uses_param) {
    char rest[sizeof t->text];
    strcpy(rest, t->text);
    snprintf(t->text, sizeof t->text, "param p; %.8000s", rest);
  }
  while (c->n_used < t->n_in && t->order[c->n_used] >= 0) c->n_used++;
  c->ndim = (int)rng_below(r, 3);
  c->shape[0] = 1 + (int64_t)rng_below(r, rng_below(r, 3) ? 40 : 3);
  c->shape[1] = 1 + (int64_t)rng_below(r, rng_below(r, 3) ? 70 : 3000);
  c->shape[2] = 1;
  if (c->ndim == 1) c->shape[0] = c->shape[1];
  for (int k = 0; k < t->n_in; k++) random_layout(&c->in[k], t->in[k], c->shape, c->ndim, 0, r);
  for (int k = 0; k < c->n_used; k++) c->ins[k] = &c->in[t->order[k]].t;
  for (int k = 0; k < t->n_out; k++) {
    const node *n = &t->nodes[t->out[k]];
    ref_dtype d = n->dtype;
    if (rng_below(r, 3) == 0) d = (ref_dtype)rng_below(r, REF_N_DTYPES);
    if (ref_dtype_kind(d) < ref_dtype_kind(n->dtype)) d = n->dtype;
    random_layout(&c->out[k], d, c->shape, c->ndim, 1, r);
    c->outs[k] = &c->out[k].t;
  }
  c->param = (quern_scalar){QUERN_F64, {.f = {param_value, 0}}};
  c->call = (quern_call){.size = sizeof c->call, .params = &c->param, .n_params = t->uses_param};
}

UNUSED static void tree_case_free(tree_case *c) {
  for (int k = 0; k < MAX_INPUTS; k++) operand_free(&c->in[k]);
  for (int k = 0; k < 2; k++) operand_free(&c->out[k]);
}

#endif
