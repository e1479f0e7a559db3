/* SPDX-License-Identifier: Apache-2.0
 *
 * t600-fused: random expressions on tensors of random dtypes and layouts, in every way that they can run here: interpreted,
 * compiled by Clang in process, compiled by cc. All of them must give the bits that the plainest evaluation gives, element
 * by element: operations that are rounded exactly in 113-bit arithmetic (ref.h), the others, which every fourth
 * expression has, by the built op on a single element. */
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

static ref_dtype compute_type(ref_dtype d) { return d == REF_F16 || d == REF_BF16 ? REF_F32 : d; }
static int is_float(ref_dtype d) { return ref_dtype_kind(d) == REF_KIND_FLOAT; }

/* ---- Making one ---- */

static const char *const binary_signs[] = {"+", "-", "*", "/"};
static const ref_op binary_ops[] = {REF_ADD, REF_SUBTRACT, REF_MULTIPLY, REF_DIVIDE};
#define N_CALLS 14
#define N_EXACT 7 /* the first ones are rounded exactly */
static const char *const call_names[N_CALLS] = {"sqrt", "abs", "maximum", "minimum", "fma", "negative", "where",
                                                "exp", "log", "tanh", "erf", "sigmoid", "gelu", "pow"};
static const ref_op call_ops[N_EXACT] = {REF_SQRT, REF_ABS, REF_MAXIMUM, REF_MINIMUM, REF_FMA, REF_NEGATIVE, REF_WHERE};
static const int call_args[N_CALLS] = {1, 1, 2, 2, 3, 1, 3, 1, 1, 1, 1, 1, 1, 2};
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

static int condition(tree *t, rng *r, int depth) {
  int a = strong_number(t, r, depth - 1), b = rng_below(r, 2) ? weak(t, r, t->nodes[a].dtype) : strong_number(t, r, depth - 1);
  return add(t, (node){.kind = COMPARE, .op = (int)rng_below(r, 6), .n_args = 2, .args = {a, b}, .dtype = REF_BOOL, .type = REF_BOOL});
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
      n.n_args = 2;
      n.args[0] = a, n.args[1] = b;
      if (t->nodes[b].kind <= PARAM && t->nodes[b].kind != INPUT && rng_below(r, 2)) n.args[0] = b, n.args[1] = a;
      n.dtype = ref_promote(t->nodes[a].dtype, t->nodes[b].dtype);
      if (n.op == 3 && !is_float(n.dtype)) n.dtype = REF_F32;
      break;
    case 5:
      n.kind = CALL;
      n.op = (int)rng_below(r, N_EXACT);
      if (t->has_math && rng_below(r, 3)) n.op = N_EXACT + (int)rng_below(r, N_CALLS - N_EXACT);
      if (n.op >= N_EXACT && !has_op(ref_op_find(call_names[n.op]))) n.op = 0; /* which the language has by itself */
      n.n_args = call_args[n.op];
      n.dtype = REF_N_DTYPES;
      for (int k = 0; k < n.n_args; k++) {
        if (n.op == 6 && k == 0) {
          n.args[0] = condition(t, r, depth - 2);
          continue;
        }
        n.args[k] = strong_number(t, r, depth - 1);
        ref_dtype d = t->nodes[n.args[k]].dtype;
        n.dtype = n.dtype == REF_N_DTYPES ? d : ref_promote(n.dtype, d);
      }
      if (is_float_call(n.op) && !is_float(n.dtype)) n.dtype = REF_F32;
      break;
    case 6: return condition(t, r, depth);
    case 7:
      n.kind = SELECT;
      n.n_args = 3;
      n.args[0] = condition(t, r, depth - 1);
      n.args[1] = a = strong_number(t, r, depth - 1);
      n.args[2] = b = rng_below(r, 2) ? strong_number(t, r, depth - 1) : weak(t, r, t->nodes[a].dtype);
      n.dtype = ref_promote(t->nodes[a].dtype, t->nodes[b].dtype);
      break;
    case 8:
      n.kind = CAST;
      n.n_args = 1;
      n.args[0] = grow(t, r, depth - 1);
      n.dtype = (ref_dtype)(REF_U8 + rng_below(r, REF_N_DTYPES - REF_U8));
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

/* ---- What it is worth ---- */

static uint64_t cast_bits(ref_dtype from, uint64_t bits, ref_dtype to) {
  return from == to ? bits : ref_cast(to, ref_value(from, bits), ref_dtype_kind(from));
}

/* What the built op makes of single elements, which are of the dtype that it computes in. */
static uint64_t built_value(int call, ref_dtype d, const uint64_t *x) {
  static quern_op *ops[N_CALLS];
  uint64_t in[2] = {0}, out = 0;
  const DLTensor scalar = {NULL, {kDLCPU, 0}, 0, ref_dtype_dl(d), NULL, NULL, 0};
  DLTensor t[3] = {scalar, scalar, scalar}, *ins[2] = {&t[0], &t[1]}, *outs[1] = {&t[2]};
  for (int k = 0; k < call_args[call]; k++) {
    t[k].data = &in[k];
    ref_put(d, &in[k], x[k]);
  }
  t[2].data = &out;
  if (!ops[call] && quern_op_find(NULL, call_names[call], &ops[call])) bail("%s", quern_last_error());
  if (quern_op_call(ops[call], call_args[call], ins, 1, outs, NULL)) bail("%s", quern_last_error());
  return ref_get(d, &out);
}

static uint64_t value(const tree *t, int at, const uint64_t *in) {
  const node *n = &t->nodes[at];
  uint64_t x[3];
  ref_dtype types[3];
  if (n->kind == INPUT) return cast_bits(t->in[n->op], in[n->op], n->type);
  if (n->kind == NUMBER || n->kind == PARAM) return ref_from_double(n->type, n->number);
  ref_dtype meet = n->dtype;
  if (n->kind == COMPARE) meet = ref_promote(t->nodes[n->args[0]].dtype, t->nodes[n->args[1]].dtype);
  for (int k = 0; k < n->n_args; k++) {
    const node *arg = &t->nodes[n->args[k]];
    int is_condition = k == 0 && (n->kind == SELECT || (n->kind == CALL && n->op == 6));
    types[k] = n->kind == CAST ? arg->type : is_condition ? REF_BOOL : compute_type(meet);
    x[k] = value(t, n->args[k], in);
    if (n->kind != CAST) x[k] = arg->kind == NUMBER || arg->kind == PARAM ? ref_from_double(types[k], arg->number)
                                                                          : cast_bits(arg->type, x[k], types[k]);
  }
  switch (n->kind) {
    case CAST: {
      uint64_t rounded = ref_cast(n->dtype, ref_value(types[0], x[0]), ref_dtype_kind(types[0]));
      return cast_bits(n->dtype, rounded, n->type);
    }
    case SELECT: return x[0] ? x[1] : x[2];
    case COMPARE: {
      ref_real a = ref_value(types[0], x[0]), b = ref_value(types[1], x[1]);
      int results[6] = {a < b, a <= b, a > b, a >= b, a == b, a != b};
      return (uint64_t)results[n->op];
    }
    case CALL:
      if (n->op >= N_EXACT) return built_value(n->op, n->type, x);
      return ref_eval(call_ops[n->op], types, x, NULL, n->type).low;
    default: return ref_eval(binary_ops[n->op], types, x, NULL, n->type).low;
  }
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

static quern_ctx *make_ctx(int jit, const char *cc) {
  quern_options options = {.size = sizeof options, .jit = jit, .threads = 2, .cache_dir = "", .cc = cc};
  quern_ctx *ctx = NULL;
  if (quern_ctx_create(&options, &ctx)) bail("ctx: %s", quern_last_error());
  return ctx;
}

typedef struct way {
  const char *name, *tier;
  quern_ctx *ctx;
  long n_run;
} way;

static void one_case(way *ways, int n_ways, rng *r, int salt) {
  tree t = {.n_in = 1 + (int)rng_below(r, MAX_INPUTS), .n_out = 1 + (rng_below(r, 4) == 0), .has_math = salt % 4 == 0,
            .order = {-1, -1, -1, -1}};
  ref_dtype all = rng_below(r, 2) ? REF_N_DTYPES : (ref_dtype)rng_below(r, REF_N_DTYPES);
  for (int k = 0; k < t.n_in; k++) t.in[k] = all < REF_N_DTYPES ? all : (ref_dtype)rng_below(r, REF_N_DTYPES);
  for (int k = 0; k < t.n_out; k++) t.out[k] = grow(&t, r, 1 + (int)rng_below(r, 4));
  if (t.n_out == 2 && rng_below(r, 2)) {
    if (rng_below(r, 2) && t.nodes[t.out[0]].dtype != REF_BOOL) t.out[0] = moved(&t, r, t.out[0]);
    t.out[1] = read_again(&t, t.out[0]);
  }
  for (int k = 0; k < t.n_out; k++) {
    sprintf(t.text + strlen(t.text), "%c = ", 'y' + k);
    print(&t, t.out[k]);
    strcat(t.text, "; ");
  }
  if (t.uses_param) {
    char rest[sizeof t.text];
    strcpy(rest, t.text);
    snprintf(t.text, sizeof t.text, "param p; %.8000s", rest);
  }
  /* The inputs that it uses, in the order that it has them. */
  int n_used = 0;
  while (n_used < t.n_in && t.order[n_used] >= 0) n_used++;
  int ndim = (int)rng_below(r, 3);
  int64_t shape[3] = {1 + (int64_t)rng_below(r, rng_below(r, 3) ? 40 : 3), 1 + (int64_t)rng_below(r, rng_below(r, 3) ? 70 : 3000), 1};
  if (ndim == 1) shape[0] = shape[1];
  operand in[MAX_INPUTS] = {0}, out[2] = {0};
  DLTensor *ins[MAX_INPUTS];
  for (int k = 0; k < t.n_in; k++) random_layout(&in[k], t.in[k], shape, ndim, 0, r);
  for (int k = 0; k < n_used; k++) ins[k] = &in[t.order[k]].t;
  for (int k = 0; k < t.n_out; k++) {
    const node *n = &t.nodes[t.out[k]];
    ref_dtype d = n->dtype;
    if (rng_below(r, 3) == 0) d = (ref_dtype)rng_below(r, REF_N_DTYPES);
    if (ref_dtype_kind(d) < ref_dtype_kind(n->dtype)) d = n->dtype;
    random_layout(&out[k], d, shape, ndim, 1, r);
    operand_save(&out[k]);
  }
  for (int w = 0; w < n_ways; w++) {
    quern_op *op = NULL;
    quern_status status = quern_op_compile(ways[w].ctx, t.text, &op);
    group_count(1);
    if (status) {
      group_fail("case %d, %s: compile: %s\n%s", salt, ways[w].name, quern_last_error(), t.text);
      break;
    }
    DLTensor *outs[2] = {&out[0].t, &out[1].t};
    quern_scalar param = {QUERN_F64, {.f = {param_value, 0}}};
    quern_call call = {.size = sizeof call, .params = &param, .n_params = t.uses_param};
    char explain[8192] = "", tier[64];
    status = quern_op_call(op, n_used, ins, t.n_out, outs, &call);
    if (status) {
      group_fail("case %d, %s: status %d: %s\n%s", salt, ways[w].name, status, quern_last_error(), t.text);
    } else {
      int64_t index[3] = {0};
      int bad = 0;
      do {
        uint64_t x[MAX_INPUTS] = {0};
        for (int k = 0; k < t.n_in; k++) x[k] = ref_get(t.in[k], ref_broadcast_address(&in[k].t, ndim, index));
        for (int k = 0; k < t.n_out && !bad; k++) {
          const node *n = &t.nodes[t.out[k]];
          uint64_t wanted = value(&t, t.out[k], x), got = ref_get(out[k].d, ref_address(outs[k], index));
          wanted = ref_cast(out[k].d, ref_value(n->type, wanted), ref_dtype_kind(n->type));
          if (got == wanted) continue;
          char a[80], b[80];
          quern_op_explain(op, n_used, ins, t.n_out, outs, &call, explain, sizeof explain);
          group_fail("case %d, %s: output %d at (%d, %d): got %s, wanted %s\n%s\n%s", salt, ways[w].name, k, (int)index[0],
                     (int)index[1], ref_text(out[k].d, got, a), ref_text(out[k].d, wanted, b), t.text, explain);
          bad = 1;
        }
      } while (!bad && ref_next_index(ndim, shape, index));
      quern_op_explain(op, n_used, ins, t.n_out, outs, &call, explain, sizeof explain);
      snprintf(tier, sizeof tier, "tier: %s\n", ways[w].tier);
      ways[w].n_run += strstr(explain, tier) != NULL;
      if (!strstr(explain, tier) && !strstr(explain, "tier: built\n"))
        group_fail("case %d, %s: another tier\n%s\n%s", salt, ways[w].name, t.text, explain);
    }
    for (int k = 0; k < t.n_out; k++) {
      operand_forgive(&out[k]);
      if (!operand_same(&out[k])) group_fail("case %d, %s: wrote beside output %d\n%s", salt, ways[w].name, k, t.text);
    }
    quern_op_release(op);
  }
  for (int k = 0; k < MAX_INPUTS; k++) operand_free(&in[k]);
  for (int k = 0; k < 2; k++) operand_free(&out[k]);
}

/* ---- Rare blocks behind branches ---- */

/* log and pow leave some arguments to a path that compiled code takes for a block of elements if one of them needs it, and,
 * behind `?:`, needs it for the branch it takes. So each pair of values comes as a tensor of its own. */
static void test_branches(quern_ctx *interpreted, quern_ctx *compiled, ref_dtype d) {
  static const char *const texts[] = {
      "z = x > 0 ? log(x) : 7", "z = x > 0 ? 7 : log(x)", "z = y > 0.5 ? log(x) : pow(x, y)",
      "z = x > 0 ? (y > 0 ? log(x) : pow(x, y)) : log(-x)", "z = log(x) > 0 ? log(y) : pow(x, y)",
      "f32 t = log(x); z = (y > 0 ? t : 1) + (y < 1 ? t : 2)", "f32 t = log(x); z = (y > 0 ? t : 1) + t",
      "z = log(y > 0 ? log(x) : 3)", "z = (y > 0 ? (y > 1 ? (y > 2 ? (y > 3 ? (y > 4 ? log(x) : 1) : 2) : 3) : 4) : 5)",
      "z = y > 0.5 ? pow(x, y) : 7; w = x > 0 ? 7 : pow(y, x)", "z = pow(x > 0 ? pow(y, x) : 3, y)",
      "z = isnan(log(x)) ? pow(y, x) : log(y)", "z = where(x < 1, clip(y < 1 ? log(x) : 0, -5, 5), log(y))",
      "z = x > 0 ? log(x) : 7; w = x > 0 ? 7 : log(x)", "z = y > 0 ? log(x) : 0; w = y > 0 ? 0 : log(x); v = x > 1 ? pow(x, y) : z"};
  static const double values[] = {0, -0.0, 1, -1, 0.5, 2.5, 3, 1e-40, -1e-40, 1e-310, 1e38, -3, INFINITY, -INFINITY, NAN};
  enum { N = sizeof values / sizeof values[0], ALL = N * N };
  uint64_t x[ALL], y[ALL], got[3][ALL], wanted[3][ALL];
  char *at[5] = {(char *)x, (char *)y, NULL, NULL, NULL};
  const int size = ref_dtype_size(d);
  for (int i = 0; i < ALL; i++) {
    ref_put(d, (char *)x + i * size, ref_from_double(d, values[i / N]));
    ref_put(d, (char *)y + i * size, ref_from_double(d, values[i % N]));
  }
  for (size_t e = 0; e < sizeof texts / sizeof texts[0]; e++) {
    quern_op *ops[2];
    if (strstr(texts[e], "log") && !has_op(REF_LOG)) continue;
    if (quern_op_compile(interpreted, texts[e], &ops[0]) || quern_op_compile(compiled, texts[e], &ops[1]))
      bail("%s: %s", texts[e], quern_last_error());
    const quern_op_info *info = quern_op_describe(ops[0]);
    for (int i = -1; i < ALL; i++) { /* -1: all of them at once */
      int64_t n = i < 0 ? ALL : 1;
      DLTensor t[5], *p[5];
      for (int w = 0; w < 2; w++) {
        for (int k = 0; k < 3; k++) at[2 + k] = (char *)(w ? got[k] : wanted[k]);
        for (int k = 0; k < 5; k++) {
          t[k] = (DLTensor){at[k] + (i < 0 ? 0 : i * size), {kDLCPU, 0}, 1, ref_dtype_dl(d), &n, NULL, 0};
          p[k] = &t[k];
        }
        DLTensor *ins[2] = {p[0], p[1]};
        if (quern_op_call(ops[w], info->n_in, ins, info->n_out, p + 2, NULL)) bail("%s: %s", texts[e], quern_last_error());
      }
      for (int k = 0; k < info->n_out; k++) {
        group_count(1);
        const size_t from = i < 0 ? 0 : (size_t)(i * size), bytes = (size_t)(n * size);
        if (memcmp((char *)got[k] + from, (char *)wanted[k] + from, bytes))
          group_fail("%s, output %d: x = %g, y = %g%s", texts[e], k, values[i < 0 ? 0 : i / N], values[i < 0 ? 0 : i % N],
                     i < 0 ? " or another" : "");
      }
    }
    quern_op_release(ops[0]), quern_op_release(ops[1]);
  }
}

/* Whether an expression is compiled in this context. */
static int is_compiled(quern_ctx *ctx, const char *tier) {
  float x[8] = {0}, y[8];
  int64_t n = 8;
  DLTensor tx = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0}, ty = {y, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0};
  DLTensor *in[1] = {&tx}, *out[1] = {&ty};
  quern_op *op;
  char explain[4096] = "", wanted[64];
  if (quern_op_compile(ctx, "x * x + 1", &op)) return 0;
  quern_op_call(op, 1, in, 1, out, NULL);
  quern_op_explain(op, 1, in, 1, out, NULL, explain, sizeof explain);
  quern_op_release(op);
  snprintf(wanted, sizeof wanted, "tier: %s\n", tier);
  if (strstr(explain, wanted)) return 1;
  diag("%s", explain);
  return 0;
}

int main(void) {
  const char *scale = getenv("QUERN_TEST_DAGS");
  int n_cases = scale ? atoi(scale) : 400;
  way ways[3] = {{"interpreted", "interpreter", make_ctx(QUERN_JIT_OFF, NULL), 0},
                 {"clang", "clang", make_ctx(QUERN_JIT_SYNC, NULL), 0},
                 {"cc", "cc", make_ctx(QUERN_JIT_SYNC, "cc"), 0}};
  int n_ways = 1;
  rng r;
  if (is_compiled(ways[1].ctx, "clang")) n_ways = 2;
  else skip(1, "Clang in process is not there");
  group_begin("random expressions");
  for (int i = 0; i < n_cases; i++) {
    rng_seed(&r, (uint64_t)i);
    one_case(ways, n_ways, &r, i);
  }
  group_end();
  if (n_ways > 1) {
    group_begin("rare blocks behind branches");
    test_branches(ways[0].ctx, ways[1].ctx, REF_F32);
    test_branches(ways[0].ctx, ways[1].ctx, REF_F64);
    group_end();
  }
  for (int w = 0; w < n_ways; w++) diag("%s: %ld of %d cases", ways[w].name, ways[w].n_run, n_cases);
  if (is_compiled(ways[2].ctx, "cc")) {
    group_begin("random expressions by cc");
    for (int i = 0; i < n_cases / 10; i++) {
      rng_seed(&r, (uint64_t)i);
      one_case(&ways[2], 1, &r, i);
    }
    group_end();
  } else {
    skip(1, "no cc here");
  }
  for (int w = 0; w < 3; w++) quern_ctx_release(ways[w].ctx);
  return done_testing();
}
