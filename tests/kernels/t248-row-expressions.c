/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full
 *
 * t248-row-expressions: random expressions with reductions in them, over any axes, of any shapes, layouts and dtypes, with outputs of rows
 * and of elements: bit for bit the composition of calls, of expressions without reductions and of the built reductions that t242 holds to
 * the law; interpreted and compiled, planned and not, on 1 to 8 threads, at every level. What is refused, and how.
 *
 *   t248-row-expressions         all of it
 *   t248-row-expressions quick   fewer cases, interpreted: what a level's process runs */
#include <stdarg.h>

#include "expressions.h"
#include "reductions.h"

enum { MOST_IN = 3, MOST_STEPS = 5, MOST_OUT = 3, MOST_TEXT = 3000, MOST_NDIM = 6 };

static int is_child;

/* Contexts that interpret, by threads; and with compilers. */
enum { BY_HOST = MOST_THREADS + 1, BY_CLANG, BY_CC, N_WAYS };
static quern_ctx *ways[N_WAYS]; /* NULL: none here */

static const char *way_name(int way) {
  return way == BY_CLANG ? "clang" : way == BY_CC ? "cc" : way == BY_HOST ? "interpreted by a host" : "interpreted";
}

/* ---- Texts ------------------------------------------------------------------------------------------------------- */

/* A part of an expression; cut: with r0, r1 ... in the places of reductions. */
typedef struct piece {
  char full[MOST_TEXT], cut[MOST_TEXT];
  int is_element, has_x; /* it varies along the axes; the input of all elements is in it, not reduced */
} piece;

/* What is computed by a call of a built op: of the value of a text over the inputs and the steps before. */
typedef struct step {
  const char *name;
  char arg[MOST_TEXT];
} step;

typedef struct subject {
  rng r;
  ref_dtype work; /* what it computes in */
  int ndim, n_in, n_steps, n_out, has_param, keepdims[MOST_OUT];
  int64_t shape[MOST_NDIM];
  uint64_t axes;
  operand in[MOST_IN];
  step steps[MOST_STEPS];
  piece out[MOST_OUT];
  char text[3 * MOST_TEXT + 100];
  int keeps; /* of the output that is being made: a call in it has keepdims=1 */
} subject;

static int is_real(const subject *s) { return ref_dtype_kind(s->work) == REF_KIND_FLOAT; }

__attribute__((format(printf, 2, 3))) static void put(char *to, const char *text, ...) {
  va_list args;
  va_start(args, text);
  if (vsnprintf(to, MOST_TEXT, text, args) >= MOST_TEXT) bail("a text is too long");
  va_end(args);
}

/* `form` with %s in it for each of a, b, c. */
static void join(piece *made, const char *form, const piece *a, const piece *b, const piece *c) {
  piece p;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
  snprintf(p.full, MOST_TEXT, form, a->full, b ? b->full : "", c ? c->full : "");
  snprintf(p.cut, MOST_TEXT, form, a->cut, b ? b->cut : "", c ? c->cut : "");
#pragma GCC diagnostic pop
  if (strlen(p.full) >= MOST_TEXT - 1) bail("a text is too long");
  p.is_element = a->is_element | (b ? b->is_element : 0) | (c ? c->is_element : 0);
  p.has_x = a->has_x | (b ? b->has_x : 0) | (c ? c->has_x : 0);
  *made = p;
}

static const char *const input_names[MOST_IN] = {"x", "y", "z"};

static void draw_input(subject *s, piece *made, int k) {
  const ref_dtype d = s->in[k].d;
  if (d == s->work) put(made->full, "%s", input_names[k]);
  else put(made->full, "(%s)%s", ref_dtype_name(s->work), input_names[k]);
  memcpy(made->cut, made->full, sizeof made->cut);
  made->is_element = 1;
  made->has_x = k == 0;
}

/* The axes as a call has them: in any order, counted from either end, or left out where they are all. */
static void text_axes(subject *s, char *text) {
  int order[MOST_NDIM], n = 0, at = 0;
  for (int d = 0; d < s->ndim; d++)
    if (s->axes >> d & 1) order[n++] = d;
  *text = 0;
  if (n == s->ndim && rng_below(&s->r, 2)) return;
  for (int k = n - 1; k > 0; k--) {
    const int other = (int)rng_below(&s->r, (uint64_t)k + 1), was = order[k];
    order[k] = order[other];
    order[other] = was;
  }
  at += sprintf(text, ", axis%s%s", rng_below(&s->r, 2) ? "=" : " = ", n == 1 ? "" : "(");
  for (int k = 0; k < n; k++) at += sprintf(text + at, "%s%d", k ? ", " : "", rng_below(&s->r, 2) ? order[k] : order[k] - s->ndim);
  sprintf(text + at, "%s", n == 1 ? "" : rng_below(&s->r, 4) || n == 0 ? ")" : ",)");
}

static void draw_piece(subject *s, piece *made, int depth);

/* Everything that reduces, and what it takes. */
static const struct reducing {
  const char *name, *result; /* NULL: its argument's */
  int takes_reals, takes_integers, is_full;
} reducing[] = {
    {"sum", NULL, 1, 0, 0}, {"sum", "i64", 0, 1, 0}, {"prod", NULL, 1, 0, 0}, {"prod", "i64", 0, 1, 0}, {"max", NULL, 1, 1, 0},
    {"min", NULL, 1, 1, 0}, {"mean", NULL, 1, 0, 0}, {"any", "bool", 1, 1, 0}, {"all", "bool", 1, 1, 0},
    {"count_nonzero", "i64", 1, 1, 0}, {"softmax", NULL, 1, 0, 1}, {"logsumexp", NULL, 1, 0, 0},
};

static void draw_reduction(subject *s, piece *made, int depth) {
  piece arg, x;
  char axes[100], keeps[20] = "", cast[20] = "";
  const struct reducing *by;
  do by = &reducing[rng_below(&s->r, sizeof reducing / sizeof *reducing)];
  while (!(is_real(s) ? by->takes_reals : by->takes_integers));
  draw_piece(s, &arg, depth - 1);
  if (s->n_steps == MOST_STEPS) {
    *made = arg;
    return;
  }
  draw_input(s, &x, 0);
  if (!arg.has_x) join(&arg, rng_below(&s->r, 2) ? "%s + %s" : "%s * %s", &x, &arg, NULL);
  text_axes(s, axes);
  if (!by->is_full && rng_below(&s->r, 4) == 0) {
    strcpy(keeps, rng_below(&s->r, 3) ? ", keepdims=1" : ", keepdims=0");
    s->keeps |= keeps[11] == '1';
  }
  if (by->result && strcmp(by->result, ref_dtype_name(s->work)) != 0) sprintf(cast, "(%s)", ref_dtype_name(s->work));
  put(made->full, "%s%s(%s%s%s)", cast, by->name, arg.full, axes, keeps);
  put(made->cut, "%sr%d", cast, s->n_steps);
  made->is_element = made->has_x = by->is_full;
  step *of = &s->steps[s->n_steps++];
  of->name = by->name;
  memcpy(of->arg, arg.cut, sizeof of->arg);
}

static void draw_piece(subject *s, piece *made, int depth) {
  static const char *const real[] = {"(%s + %s)", "(%s - %s)", "%s * %s", "%s / %s", "maximum(%s, %s)", "(%s > %s ? %s : 0.25)"};
  static const char *const whole_ones[] = {"(%s + %s)", "(%s - %s)", "%s * %s", "(%s & %s)", "maximum(%s, %s)", "(%s > %s ? %s : p)"};
  static const char *const real_ones[] = {"exp(%s)", "abs(%s)", "sqrt(abs(%s))", "(%s * 0.5)", "-(%s)", "tanh(%s)", "(1 - %s)",
                                          "(p * %s)", "square(%s)", "(%s * p + 1)"};
  static const char *const integer_ones[] = {"(%s + 3)", "abs(%s)", "-(%s)", "(%s | 1)", "(p - %s)", "(%s >> 2)"};
  piece a, b, c;
  const uint64_t kind = depth <= 0 ? 0 : rng_below(&s->r, 9);
  if (kind < 2) {
    draw_input(s, made, (int)rng_below(&s->r, (uint64_t)s->n_in));
  } else if (kind < 5) {
    draw_reduction(s, made, depth);
  } else if (kind < 7) {
    draw_piece(s, &a, depth - 1);
    join(made, is_real(s) ? real_ones[rng_below(&s->r, 10)] : integer_ones[rng_below(&s->r, 6)], &a, NULL, NULL);
  } else {
    draw_piece(s, &a, depth - 1);
    draw_piece(s, &b, depth - 1);
    draw_input(s, &c, (int)rng_below(&s->r, (uint64_t)s->n_in));
    const uint64_t which = rng_below(&s->r, 6);
    join(made, (is_real(s) ? real : whole_ones)[which], &a, &b, which == 5 ? &c : NULL);
  }
}

/* ---- Shapes and inputs ------------------------------------------------------------------------------------------- */

/* At most `most` elements, in up to six dimensions, of which one may be long. */
static void draw_shape(subject *s, int64_t most) {
  static const int64_t small[] = {1, 1, 2, 3, 4, 5, 7, 8, 13, 17}, large[] = {15, 16, 17, 64, 100, 255, 256, 257, 511, 513, 1000, 1023, 1025, 2049, 4100};
  int64_t n = 1;
  s->ndim = (int)rng_below(&s->r, MOST_NDIM + 1);
  for (int k = 0; k < s->ndim; k++) s->shape[k] = 1;
  if (s->ndim && rng_below(&s->r, 3)) {
    const int64_t extent = large[rng_below(&s->r, sizeof large / sizeof *large)];
    n = s->shape[rng_below(&s->r, (uint64_t)s->ndim)] = extent <= most ? extent : most;
  }
  for (int k = 0; k < s->ndim; k++) {
    const int64_t extent = small[rng_below(&s->r, sizeof small / sizeof *small)];
    if (s->shape[k] == 1 && n * extent <= most) n *= s->shape[k] = extent;
  }
  if (s->ndim && rng_below(&s->r, 20) == 0) s->shape[rng_below(&s->r, (uint64_t)s->ndim)] = 0;
  const uint64_t all = ((uint64_t)1 << s->ndim) - 1, kind = rng_below(&s->r, 6);
  s->axes = kind == 0 ? all : kind == 1 && s->ndim ? (uint64_t)1 << (s->ndim - 1) : kind == 2 && s->ndim ? 1 : rng_u64(&s->r) & all;
}

/* x has all elements; the others may lack dimensions, or have 1 along some. */
static void draw_inputs(subject *s) {
  static const ref_dtype works[] = {REF_F32, REF_F32, REF_F64, REF_I32, REF_I64};
  s->work = works[rng_below(&s->r, 5)];
  s->n_in = 1 + (int)rng_below(&s->r, MOST_IN);
  for (int k = 0; k < s->n_in; k++) {
    ref_dtype d = s->work;
    int64_t shape[MOST_NDIM];
    const int missing = k && s->ndim ? (int)rng_below(&s->r, (uint64_t)s->ndim + 1) / 2 : 0;
    if (rng_below(&s->r, 3) == 0) do d = (ref_dtype)rng_below(&s->r, REF_N_DTYPES);
      while (ref_dtype_kind(d) > ref_dtype_kind(s->work));
    for (int i = missing; i < s->ndim; i++) shape[i - missing] = k && rng_below(&s->r, 4) == 0 ? 1 : s->shape[i];
    operand_lay_out(&s->in[k], d, s->ndim - missing, shape, 0, &s->r);
    operand_fill(&s->in[k], &s->r);
  }
}

static void draw_subject(subject *s, int64_t most) {
  draw_shape(s, most);
  draw_inputs(s);
  s->n_out = 1 + (int)rng_below(&s->r, 2);
  int at = sprintf(s->text, "param p; ");
  for (int k = 0; k < s->n_out; k++) {
    piece *out = &s->out[k], x;
    s->keeps = 0;
    draw_piece(s, out, 4);
    if (k == 0 && s->n_steps == 0) draw_reduction(s, out, 2);
    draw_input(s, &x, 0);
    if (out->is_element && !out->has_x) join(out, "%s - %s", out, &x, NULL);
    s->keepdims[k] = s->keeps;
    at += sprintf(s->text + at, "out%d = %s;%s", k, out->full, k + 1 < s->n_out ? " " : "");
  }
}

static void subject_free(subject *s) {
  for (int k = 0; k < MOST_IN; k++) operand_free(&s->in[k]);
}

/* ---- The composition --------------------------------------------------------------------------------------------- */

static quern_call call_with(const subject *s, quern_scalar *value) {
  *value = is_real(s) ? real(0.75) : whole(3);
  return (quern_call){.size = sizeof(quern_call), .n_params = 1, .params = value};
}

/* A compact tensor as measured. */
static void make_as(operand *o, const quern_shape *shape) {
  operand_describe(o, ref_dtype_of(shape->dtype), shape->ndim, shape->shape, NULL);
  operand_allocate(o, 0, GUARD_NONE);
}

/* The value of a text over the inputs and r0, r1, .... */
static void value_of(subject *s, const char *text, operand *r, operand *value) {
  char line[MOST_TEXT + 20];
  quern_op *op;
  quern_scalar p;
  const quern_call call = call_with(s, &p);
  DLTensor *in[MOST_IN + MOST_STEPS], *out = &value->t;
  quern_shape shape = {.size = sizeof shape};
  snprintf(line, sizeof line, "param p; v = %s", text);
  op = op_from(ways[1], line);
  const quern_op_info *info = quern_op_describe(op);
  for (int k = 0; k < info->n_in; k++) {
    const char *name = info->args[k].name;
    in[k] = name[0] == 'r' ? &r[atoi(name + 1)].t : &s->in[name[0] - 'x'].t;
  }
  if (quern_op_measure(op, info->n_in, in, 1, &shape, &call)) bail("%s: %s", line, quern_last_error());
  make_as(value, &shape);
  if (quern_op_call(op, info->n_in, in, 1, &out, &call)) bail("%s: %s", line, quern_last_error());
  quern_op_release(op);
}

/* A step's value by a built op; 0: it is refused. */
static int run_step(subject *s, const step *of, operand *arg, operand *value) {
  named_params p;
  quern_op *op = op_named(ways[1], of->name);
  const quern_op_info *info = quern_op_describe(op);
  DLTensor *in = &arg->t, *out = &value->t;
  quern_shape shape = {.size = sizeof shape};
  params_begin(&p);
  params_set(&p, info, "axes", whole((int64_t)s->axes));
  params_set(&p, info, "keepdims", whole(1));
  if (quern_op_measure(op, 1, &in, 1, &shape, &p.call)) bail("%s: %s", of->name, quern_last_error());
  make_as(value, &shape);
  memset(body_of(value), 0, body_bytes(value));
  const quern_status status = quern_op_call(op, 1, &in, 1, &out, &p.call);
  quern_op_release(op);
  return status == QUERN_OK;
}

/* What the outputs must be; 0: a reduction of no elements is refused. */
static int compose(subject *s, operand *wanted) {
  operand r[MOST_STEPS] = {0};
  int good = 1;
  for (int k = 0; k < s->n_steps; k++) {
    operand arg;
    value_of(s, s->steps[k].arg, r, &arg);
    good &= run_step(s, &s->steps[k], &arg, &r[k]);
    operand_free(&arg);
  }
  for (int k = 0; k < s->n_out; k++) value_of(s, s->out[k].cut, r, &wanted[k]);
  for (int k = 0; k < s->n_steps; k++) operand_free(&r[k]);
  return good;
}

/* ---- Comparison -------------------------------------------------------------------------------------------------- */

static void report(const subject *s, int way, const char *form, const char *what) {
  char text[8000];
  int n = snprintf(text, sizeof text, "%s\n  %s, %s, axes 0x%" PRIx64 ", seed 0x%" PRIx64 ": %s\n", s->text, way_name(way), form, s->axes,
                   test_seed(), what);
  for (int k = 0; k < s->n_in; k++) n += text_operand(text + n, sizeof text - (size_t)n, input_names[k], &s->in[k]);
  group_fail("%s", text);
}

static int output_dims(const subject *s, int k, int64_t *shape) {
  int n = 0;
  for (int d = 0; d < s->ndim; d++) {
    const int is_reduced = !s->out[k].is_element && s->axes >> d & 1;
    if (!is_reduced || s->keepdims[k]) shape[n++] = is_reduced ? 1 : s->shape[d];
  }
  return n;
}

/* Calls the expression in one context; 1: as wanted. */
static int run_subject(subject *s, const operand *wanted, int is_defined, int way, int form) {
  static const char *const forms[] = {"called", "planned", "planned without data", "with memory from an allocator"};
  char what[800] = "";
  quern_op *op = NULL;
  quern_scalar p;
  const quern_call call = call_with(s, &p);
  operand out[MOST_OUT] = {0};
  DLTensor *in[MOST_IN], *outs[MOST_OUT];
  DLManagedTensorVersioned *made[MOST_OUT] = {NULL};
  quern_shape shapes[MOST_OUT];
  int is_reduced = 0, of[MOST_IN];
  group_count(1);
  if (quern_op_compile(ways[way], s->text, &op)) {
    report(s, way, "compiled", quern_last_error());
    return 0;
  }
  const quern_op_info *info = quern_op_describe(op);
  for (int k = 0; k < info->n_in; k++) {
    of[k] = info->args[k].name[0] - 'x';
    in[k] = &s->in[of[k]].t;
    operand_save(&s->in[of[k]]);
  }
  memset(shapes, 0, sizeof shapes);
  for (int k = 0; k < s->n_out; k++) shapes[k].size = sizeof shapes[k], is_reduced |= !s->out[k].is_element;
  quern_status status = quern_op_measure(op, info->n_in, in, s->n_out, shapes, &call);
  if (status) snprintf(what, sizeof what, "measured: %s", quern_last_error());
  for (int k = 0; k < s->n_out && !*what; k++) {
    int64_t shape[MOST_NDIM];
    const int ndim = output_dims(s, k, shape);
    if (shapes[k].ndim != ndim || (ndim && memcmp(shapes[k].shape, shape, sizeof *shape * (size_t)ndim) != 0) ||
        ref_dtype_of(shapes[k].dtype) != wanted[k].d)
      snprintf(what, sizeof what, "output %d is measured with %d dimensions of %s", k, shapes[k].ndim,
               ref_dtype_name(ref_dtype_of(shapes[k].dtype)));
    else operand_lay_out(&out[k], wanted[k].d, ndim, shape, 1, &s->r);
    if (*what) break;
    operand_fill(&out[k], &s->r);
    operand_save(&out[k]);
    outs[k] = &out[k].t;
  }
  if (!*what && form == 3) {
    status = quern_op_call_alloc(op, info->n_in, in, s->n_out, shapes, made, NULL, &call);
  } else if (!*what && form == 0) {
    status = quern_op_call(op, info->n_in, in, s->n_out, outs, &call);
  } else if (!*what) {
    quern_plan *plan = NULL;
    DLTensor x[MOST_IN], y[MOST_OUT], *px[MOST_IN], *py[MOST_OUT];
    void *x_data[MOST_IN], *y_data[MOST_OUT];
    for (int k = 0; k < info->n_in; k++) {
      x[k] = *in[k], px[k] = &x[k], x_data[k] = (char *)x[k].data + x[k].byte_offset;
      if (form == 2) x[k].data = NULL, x[k].byte_offset = 0;
    }
    for (int k = 0; k < s->n_out; k++) {
      y[k] = *outs[k], py[k] = &y[k], y_data[k] = (char *)y[k].data + y[k].byte_offset;
      if (form == 2) y[k].data = NULL, y[k].byte_offset = 0;
    }
    status = quern_op_prepare(op, info->n_in, px, s->n_out, py, &call, &plan);
    if (!status && form == 1 && way != BY_CC && rng_below(&s->r, 2)) status = quern_plan_run(plan, x_data, y_data, NULL);
    if (!status) status = quern_plan_run(plan, x_data, y_data, &call);
    quern_plan_release(plan);
  }
  const int is_refused = !is_defined && is_reduced;
  if (!*what && is_refused) {
    if (status != QUERN_E_ARGUMENT) snprintf(what, sizeof what, "no elements are taken: %s", status_name(status));
  } else if (!*what && status) {
    snprintf(what, sizeof what, "%s: %s", status_name(status), quern_last_error());
  }
  for (int k = 0; k < s->n_out && !*what && !status; k++) {
    const int64_t n = ref_n_elements(&wanted[k].t);
    uint64_t *bits = malloc(((size_t)n + 1) * sizeof *bits);
    int64_t index[QUERN_MAX_NDIM + 1] = {0};
    for (int64_t i = 0; i < n; i++, ref_next_index(wanted[k].t.ndim, wanted[k].t.shape, index))
      bits[i] = ref_get(wanted[k].d, ref_address(&wanted[k].t, index));
    const DLTensor *got = made[k] ? &made[k]->dl_tensor : &out[k].t;
    char where[600];
    if (ref_n_elements(got) != n) snprintf(what, sizeof what, "output %d has %" PRId64 " elements", k, ref_n_elements(got));
    else if (!compare_elements(got, bits, n, where, sizeof where)) snprintf(what, sizeof what, "output %d: %s", k, where);
    free(bits);
    if (!made[k]) operand_forgive(&out[k]);
  }
  for (int k = 0; k < s->n_out && !*what; k++)
    if (out[k].memory && !operand_same(&out[k])) snprintf(what, sizeof what, "bytes beside output %d are written", k);
  for (int k = 0; k < info->n_in && !*what; k++)
    if (!operand_same(&s->in[of[k]])) snprintf(what, sizeof what, "an input is written");
  if (!*what && way >= BY_CLANG && !status && form != 3) {
    char text[4000];
    quern_op_explain(op, info->n_in, in, s->n_out, outs, &call, text, sizeof text);
    const char *tier = line_of(text, "tier");
    if (strcmp(tier, way_name(way)) != 0 && strcmp(tier, "built") != 0)
      snprintf(what, sizeof what, "the tier is %s: %s", tier, line_of(text, "reason"));
  }
  if (*what) report(s, way, forms[form], what);
  for (int k = 0; k < s->n_out; k++) {
    operand_free(&out[k]);
    if (made[k]) made[k]->deleter(made[k]);
  }
  quern_op_release(op);
  return !*what;
}

static void test_random(int n, int every_clang, int every_cc) {
  static subject s;
  group_begin("random expressions");
  for (int i = 0; i < n; i++) {
    operand wanted[MOST_OUT] = {0};
    memset(&s, 0, sizeof s);
    rng_seed(&s.r, 24400 + (uint64_t)i);
    draw_subject(&s, i % 16 == 5 ? 60000 : 3000);
    const int is_defined = compose(&s, wanted);
    int good = run_subject(&s, wanted, is_defined, 1 + (int)rng_below(&s.r, BY_HOST), (int)rng_below(&s.r, 4));
    if (good && i % 16 == 5)
      for (int way = 1; way <= BY_HOST && good; way++) good = run_subject(&s, wanted, is_defined, way, 0);
    if (good && every_clang && i % every_clang == 1 && ways[BY_CLANG]) good = run_subject(&s, wanted, is_defined, BY_CLANG, (int)rng_below(&s.r, 4));
    if (good && every_cc && i % every_cc == 2 && ways[BY_CC]) run_subject(&s, wanted, is_defined, BY_CC, 0);
    for (int k = 0; k < s.n_out; k++) operand_free(&wanted[k]);
    subject_free(&s);
  }
  group_end();
}

/* ---- Single cases ------------------------------------------------------------------------------------------------ */

/* A shape as text: "4,3"; "-": none. */
static int read_shape(const char *text, int64_t *shape) {
  int n = 0, used;
  if (*text == '-') return 0;
  for (long long extent; sscanf(text, "%lld%n", &extent, &used) == 1; text += used + (text[used] == ','), n++) shape[n] = extent;
  return n;
}

/* Compact f32 inputs x and y, of which y may be missing (NULL). */
static int make_pair(operand *in, const char *x, const char *y, rng *r) {
  int64_t shape[8];
  operand_make(&in[0], REF_F32, read_shape(x, shape), shape, NULL, r);
  if (y) operand_make(&in[1], REF_F32, read_shape(y, shape), shape, NULL, r);
  return 1 + (y != NULL);
}

static const struct refused {
  const char *text, *x, *y;
  quern_status status;
  const char *words;
} refused_ones[] = {
    {"sum(x, axis=2)", "4,3", NULL, QUERN_E_ARGUMENT, "axis 2 of an argument of 2 dimensions"},
    {"sum(x, axis=-3)", "4,3", NULL, QUERN_E_ARGUMENT, "axis -3 of an argument of 2 dimensions"},
    {"sum(x, axis=-32)", "4", NULL, QUERN_E_ARGUMENT, "axis -32 of an argument of 1 dimension"},
    {"sum(x, axis=0)", "-", NULL, QUERN_E_ARGUMENT, "axis 0 of an argument of 0 dimensions"},
    {"sum(x, axis=(0, 0))", "4,3", NULL, QUERN_E_ARGUMENT, "axis 0 is given twice"},
    {"sum(x, axis=(1, -1))", "4,3", NULL, QUERN_E_ARGUMENT, "axis -1 is given twice"},
    {"sum(x, axis=0) + sum(x, axis=1)", "4,3", NULL, QUERN_E_UNSUPPORTED, "write two expressions, first r = sum(..., axis=0, keepdims=1), then"},
    {"softmax(x, axis=0) * max(x)", "4,3", NULL, QUERN_E_UNSUPPORTED,
     "different axes, softmax over axis=0 and max over axis=(0, 1): write two expressions, first r = softmax(..., axis=0), then this one with r in"},
    {"y = max(sum(x, axis=-1), axis=0)", "4,3", NULL, QUERN_E_UNSUPPORTED,
     "of a value that is reduced already"},
    {"mean(x * sum(x, axis=1), axis=0)", "4,3", NULL, QUERN_E_UNSUPPORTED, "first r = sum(..., axis=1, keepdims=1), then"},
    {"sum(sum(x))", "4,3", NULL, QUERN_E_UNSUPPORTED, "reduced already"},
    {"sum(sum(x, axis=0), axis=1)", "4,3", NULL, QUERN_E_UNSUPPORTED, "reduced already"},
    {"sum((f32)2) + x", "4,3", NULL, QUERN_E_UNSUPPORTED, "numbers alone"},
    {"x + sum(y)", "4,3", "1,3", QUERN_E_UNSUPPORTED, "extent 1 along axis 0"},
    {"sum(max(x, axis=0) * y, axis=0)", "4,3", "1,3", QUERN_E_UNSUPPORTED, "extent 1 along axis 0"},
    {"sum(x, axis=0) + sum(y, axis=0)", "4,3", "3", QUERN_E_UNSUPPORTED, "different axes"},
    {"sum(x * y, axis=1)", "4,3", "2,3", QUERN_E_SHAPE, "y"},
    {"max(x, axis=0)", "0,4", NULL, QUERN_E_ARGUMENT, "max of none is not defined"},
    {"grad(sum_backward(x, y), x)", "4", "4", QUERN_E_DTYPE, "no derivative"},
    {"grad(sum(x, axis=0) * mean(x, axis=1), x)", "4,3", NULL, QUERN_E_UNSUPPORTED, "different axes"},
};

static void test_refused(void) {
  rng r;
  rng_seed(&r, 24490);
  for (size_t i = 0; i < sizeof refused_ones / sizeof *refused_ones; i++) {
    const struct refused *c = &refused_ones[i];
    operands o;
    quern_shape shape = {.size = sizeof shape};
    DLManagedTensorVersioned *made = NULL;
    char text[2000];
    int64_t extents[2] = {4, 3};
    quern_op *op = op_from(ways[2], c->text);
    memset(&o, 0, sizeof o);
    o.n_in = make_pair(o.in, c->x, c->y, &r);
    o.n_out = 1;
    operand_make(&o.out[0], REF_F32, strstr(c->text, "x +") || strstr(c->text, "softmax") ? 2 : 1, extents, NULL, &r);
    operands_point(&o);
    refuses(op, &o, NULL, c->status, c->words, c->text);
    if (!strstr(c->words, "none")) { /* shapes can be told of no elements */
      is_int(quern_op_measure(op, o.n_in, o.ins, 1, &shape, NULL), c->status, "  nor measured");
      is_int(quern_op_infer(op, o.n_in, o.ins, 1, &shape), c->status, "  nor inferred");
    }
    is_int(quern_op_call_alloc(op, o.n_in, o.ins, 1, &shape, &made, NULL, NULL), c->status, "  nor called with memory");
    is_int(quern_op_explain(op, o.n_in, o.ins, 1, o.outs, NULL, text, sizeof text), c->status, "  nor explained");
    ok(!made, "  nothing was made");
    operands_free(&o);
    quern_op_release(op);
  }
}

/* Reductions that are too many, or too deep: at the first call, and none of it written. */
static void test_limits(void) {
  static char many[65536], deep[65536];
  rng r;
  rng_seed(&r, 24491);
  int n = 0, d = 0;
  for (int i = 0; i < 17; i++) n += sprintf(many + n, "%ssum(x * %d)", i ? " + " : "", i);
  for (int i = 0; i < 11; i++) d += sprintf(deep + d, "x - max(");
  d += sprintf(deep + d, "x");
  for (int i = 0; i < 11; i++) d += sprintf(deep + d, ")");
  for (int k = 0; k < 2; k++) {
    operands o;
    quern_op *op = op_from(ways[1], k ? deep : many);
    operands_vector(&o, "f32", "f32", 40, &r);
    if (!k) o.out[0].t.ndim = 0;
    refuses(op, &o, NULL, QUERN_E_LIMIT, "more than", k ? "eleven reductions of what was reduced" : "seventeen reductions");
    operands_free(&o);
    quern_op_release(op);
  }
  /* sixteen are not, over a row of any length */
  many[strrchr(many, '+') - many] = 0;
  for (int k = 0; k < 2; k++) {
    const int64_t length = k ? 300000 : 100;
    double sum = 0;
    operand x, y;
    quern_op *op = op_from(ways[1], many);
    operand_vector(&x, REF_F32, length, &r);
    for (int64_t i = 0; i < length; i++) ((float *)x.t.data)[i] = (float)(i % 5), sum += (double)(i % 5) * 120;
    operand_make(&y, REF_F32, 0, NULL, NULL, &r);
    DLTensor *in = &x.t, *out = &y.t;
    is_int(quern_op_call(op, 1, &in, 1, &out, NULL), QUERN_OK, "sixteen reductions of %d elements: %s", (int)length, quern_last_error());
    ok(fabs(*(float *)y.t.data - sum) <= 1e-5 * sum, "  and their sum is right");
    operand_free(&x);
    operand_free(&y);
    quern_op_release(op);
  }
  /* texts that are too much are refused as they are read */
  n = 0;
  for (int i = 0; i < 10000; i++) n += snprintf(many + n, sizeof many - (size_t)n, "max(");
  quern_op *op = NULL;
  is_int(quern_op_compile(ways[1], many, &op), QUERN_E_LIMIT, "ten thousand calls in each other: %s", quern_last_error());
  n = sprintf(many, "sum(x)");
  while (n < 60000) n += sprintf(many + n, "+sum(x)");
  is_int(quern_op_compile(ways[1], many, &op), QUERN_E_LIMIT, "eight thousand beside each other: %s", quern_last_error());
}

/* The value of a line of explain, summed over all of them: how many there are. */
static int count_lines(quern_op *op, DLTensor *x, DLTensor *y, const char *words) {
  char text[8000];
  int n = 0;
  if (quern_op_explain(op, 1, &x, 1, &y, NULL, text, sizeof text)) bail("%s", quern_last_error());
  for (const char *at = text; (at = strstr(at, words)); at++) n++;
  return n;
}

/* Equal reductions are one, however their axes and results are written; others are not. */
static void test_shared(void) {
  static const struct {
    const char *text;
    int n;
  } cases[] = {
      {"sum(x) / (sum(x) + 1)", 1},
      {"sum(x, axis=0) + sum(x, axis=(0)) * sum(x, keepdims=1, axis=0)", 1},
      {"sum(x, axis=(0, 1)) - sum(x, axis=(0, 1,))", 1},
      {"sum(x) + sum(x, axis=(0, 1))", 2}, /* equal by the shape alone */
      {"sum(x) + sum(x * 1)", 2},
  };
  rng r;
  rng_seed(&r, 24492);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int64_t shape[2] = {5, 7};
    operand x, y;
    quern_op *op = op_from(ways[1], cases[i].text);
    quern_shape result = {.size = sizeof result};
    operand_make(&x, REF_F32, 2, shape, NULL, &r);
    DLTensor *in = &x.t;
    is_int(quern_op_measure(op, 1, &in, 1, &result, NULL), QUERN_OK, "%s", cases[i].text);
    make_as(&y, &result);
    is_int(count_lines(op, &x.t, &y.t, "pack_sum_inner"), cases[i].n, "  reduces so often");
    operand_free(&x);
    operand_free(&y);
    quern_op_release(op);
  }
}

/* What explain says of passes: those that run, what each is over and reduces, and what is kept where. */
static void test_passes(void) {
  static const struct {
    const char *text; /* an expression, or an op's name */
    ref_dtype out;
    const char *words[4];
  } cases[] = {
      {"exp(x - max(x, axis=-1)) / sum(exp(x - max(x, axis=-1)), axis=-1)", REF_F32,
       {"passes: 3\npath: rows as a whole\n", "pass: 1\nover: elements\nreduces: max f32\n", "reduces: sum f32\n", "pass: 3\nover: elements\n"}},
      {"s = sum(x, axis=-1)", REF_F32, {"passes: 2\n", "pass: 2\nover: values of rows\n", "pass: 1\nover: elements\nreduces: sum f32", "tier: interpreter"}},
      {"softmax", REF_F32, {"passes: 4\npath: rows as a whole\n", "kept: in the output\n", "over: values of rows\n", "tier: built\n"}},
      {"softmax", REF_F64, {"passes: 4\n", "kept: in a block\n", "reduces: max f32", "reduces: sum f32"}},
  };
  rng r;
  rng_seed(&r, 24494);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int64_t shape[2] = {5, 40};
    const quern_scalar axes = {.kind = QUERN_I64, .v.i = 2};
    const int is_op = strcmp(cases[i].text, "softmax") == 0;
    const quern_call call = {.size = sizeof call, .params = &axes, .n_params = is_op};
    quern_op *op = is_op ? op_named(ways[1], cases[i].text) : op_from(ways[1], cases[i].text);
    operand x, y;
    char text[8000];
    operand_make(&x, REF_F32, 2, shape, NULL, &r);
    operand_make(&y, cases[i].out, strchr(cases[i].text, '=') == cases[i].text + 2 ? 1 : 2, shape, NULL, &r);
    DLTensor *in = &x.t, *out = &y.t;
    is_int(quern_op_explain(op, 1, &in, 1, &out, &call, text, sizeof text), QUERN_OK, "%s, explained", cases[i].text);
    for (int k = 0; k < 4; k++) has_str(text, cases[i].words[k], "  its passes");
    operand_free(&x);
    operand_free(&y);
    quern_op_release(op);
  }
}

/* Into the memory of an input: the same as into another. */
static void test_in_place(void) {
  static const struct {
    const char *text;
    int64_t shape[3];
  } cases[] = {
      {"y = softmax(x, axis=-1)", {3, 5, 40}},        {"y = softmax(x, axis=1)", {3, 50, 4}},
      {"y = x - max(x, axis=-1)", {2, 2, 3000}},      {"e = exp(x - max(x, axis=0)); y = e / sum(e, axis=0)", {30, 3, 3}},
      {"y = (x - mean(x, axis=-1)) / sqrt(mean(square(x - mean(x, axis=-1)), axis=-1) + 1e-5)", {4, 3, 300}},
      {"y = x / sum(x)", {7, 11, 13}},
  };
  rng r;
  rng_seed(&r, 24493);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int way = 1; way < N_WAYS; way += way == 1 ? BY_HOST - 1 : 1) {
      operand x, y[2];
      if (!ways[way]) continue;
      quern_op *op = op_from(ways[way], cases[i].text);
      const int n_out = quern_op_describe(op)->n_out;
      operand_make(&x, REF_F32, 3, cases[i].shape, NULL, &r);
      for (int k = 0; k < 2; k++) operand_make(&y[k], REF_F32, 3, cases[i].shape, NULL, &r);
      DLTensor *in = &x.t, *out[2] = {&y[0].t, &y[1].t};
      is_int(quern_op_call(op, 1, &in, n_out, out, NULL), QUERN_OK, "%s, %s", cases[i].text, way_name(way));
      const operand wanted = y[n_out - 1];
      out[n_out - 1] = in;
      is_int(quern_op_call(op, 1, &in, n_out, out, NULL), QUERN_OK, "  in place: %s", quern_last_error());
      ok(same_elements(&x, &wanted), "  the same");
      operand_free(&x);
      for (int k = 0; k < 2; k++) operand_free(&y[k]);
      quern_op_release(op);
    }
}

/* Beside results of rows without elements an output of elements, which has none, may stand still: NumPy's do. */
static void test_still(void) {
  int64_t shape[2] = {3, 0}, rows = 3, strides[2] = {0, 0};
  float sums[3] = {7, 7, 7};
  DLTensor x = {.data = sums, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape, .strides = strides}, y = x, s = x;
  s.ndim = 1, s.shape = &rows, s.strides = NULL;
  DLTensor *in = &x, *out[2] = {&y, &s};
  quern_op *op = op_from(ways[1], "y = x - max(x, axis=-1); s = sum(x, axis=-1)");
  is_int(quern_op_call(op, 1, &in, 2, out, NULL), QUERN_E_ARGUMENT, "max of none: %s", quern_last_error());
  quern_op_release(op);
  op = op_from(ways[1], "y = x - mean(x, axis=-1); s = sum(x, axis=-1)");
  is_int(quern_op_call(op, 1, &in, 2, out, NULL), QUERN_OK, "an output without elements, all strides 0: %s", quern_last_error());
  ok(sums[0] == 0 && sums[1] == 0 && sums[2] == 0, "  the sums of none");
  quern_op_release(op);
}

/* Rows of one element: a result of a row in the place of its element, which another output reads later. */
static void test_rows_of_one(void) {
  static const char *const texts[] = {"y = sign(x); z = 0 - mean(w, axis=-1)", "y = x * sum(w, axis=-1); z = sum(w, axis=-1)"};
  int64_t shape[2] = {3, 1}, rows = 3;
  for (int i = 0; i < 4; i++) {
    float x[3] = {4, 5, 6}, w[3] = {1, 2, 3}, y[3] = {0};
    DLTensor t[4] = {{.data = x, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape}};
    t[1] = t[2] = t[3] = t[0];
    t[1].data = w, t[2].data = y;
    t[3].ndim = 1, t[3].shape = &rows;
    DLTensor *in[2] = {&t[0], &t[1]}, *out[2] = {&t[2], &t[3]};
    quern_op *op = op_from(ways[1], texts[i / 2]);
    float z[3];
    quern_plan *plan = NULL;
    void *ins[2] = {x, w}, *outs[2] = {y, x};
    t[3].data = z;
    if (i % 2 && quern_op_prepare(op, 2, in, 2, out, NULL, &plan)) bail("%s", quern_last_error());
    t[3].data = x;
    const quern_status status = i % 2 ? quern_plan_run(plan, ins, outs, NULL) : quern_op_call(op, 2, in, 2, out, NULL);
    is_int(status, QUERN_E_OVERLAP, "%s: z over x%s: %s", texts[i / 2], i % 2 ? ", planned" : "", quern_last_error());
    ok(x[0] == 4 && y[0] == 0, "  nothing is written");
    quern_plan_release(plan);
    quern_op_release(op);
  }
  float x[3] = {4, 5, 6};
  DLTensor in = {.data = x, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape}, out = in, *from = &in, *to = &out;
  out.ndim = 1, out.shape = &rows;
  quern_op *op = op_from(ways[1], "sum(x * 2, axis=-1)");
  is_int(quern_op_call(op, 1, &from, 1, &to, NULL), QUERN_OK, "one output, the sum of one element, in its place: %s", quern_last_error());
  ok(x[0] == 8 && x[1] == 10 && x[2] == 12, "  is right");
  quern_op_release(op);
}

/* A reduction that no output needs; outputs of params alone; a derivative that is 0. */
static void test_odd(void) {
  static const struct {
    const char *text;
    int is_full, is_right;
    float wanted;
  } cases[] = {
      {"f32 t = sum(x); y = x * 0 + 3", 1, 1, 3}, {"param p; f32 t = sum(x); y = (f32)p", 1, 1, 0.5f},
      {"param p; y = sum(x * 0) + p", 0, 1, 0.5f}, {"param p; y = p * (f32)count_nonzero(x) / (f32)count_nonzero(x)", 0, 1, 0.5f},
      {"y = sum(x, axis=()) - x", 1, 1, 0},        {"y = grad(sum(x * x, axis=0) * w, w) * 0 + 2", 0, 1, 2},
  };
  rng r;
  rng_seed(&r, 24494);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int64_t shape[2] = {3, 4};
    const quern_scalar half = real(0.5);
    quern_op *op = op_from(ways[1], cases[i].text);
    const quern_op_info *info = quern_op_describe(op);
    const quern_call call = {.size = sizeof call, .params = &half, .n_params = info->n_params};
    operand x[2], y;
    quern_shape result = {.size = sizeof result};
    for (int k = 0; k < 2; k++) {
      operand_make(&x[k], REF_F32, 2, shape, NULL, &r);
      for (int j = 0; j < 12; j++) ((float *)x[k].t.data)[j] = (float)(j + 1);
    }
    DLTensor *in[2] = {&x[0].t, &x[1].t}, *out = &y.t;
    is_int(quern_op_measure(op, info->n_in, in, 1, &result, &call), QUERN_OK, "%s: %s", cases[i].text, quern_last_error());
    make_as(&y, &result);
    is_int(quern_op_call(op, info->n_in, in, 1, &out, &call), QUERN_OK, "  called: %s", quern_last_error());
    int is_right = 1;
    for (int64_t j = 0; j < ref_n_elements(&y.t); j++) is_right &= ref_get(y.d, (char *)y.t.data + j * ref_dtype_size(y.d)) == ref_from_double(y.d, cases[i].wanted);
    ok(is_right && ref_n_elements(&y.t) > 0, "  every element is %g", (double)cases[i].wanted);
    DLTensor *none = NULL;
    is_int(quern_op_call(op, info->n_in, in, 1, &none, &call), QUERN_E_ARGUMENT, "  not without an output");
    has_str(quern_last_error(), "the tensor is NULL", "    said");
    for (int k = 0; k < 2; k++) operand_free(&x[k]);
    operand_free(&y);
    quern_op_release(op);
  }
}

/* ---- Many threads, a child --------------------------------------------------------------------------------------- */

typedef struct shared_call {
  quern_op *op;
  float x[6][50];
  float wanted[6];
  int n_bad;
} shared_call;

static void *call_often(void *arg) {
  shared_call *s = arg;
  const int64_t shape[2] = {6, 50}, rows = 6;
  int n_bad = 0;
  for (int i = 0; i < 30; i++) {
    float y[6] = {0};
    DLTensor x = {.data = s->x, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = (int64_t *)(uintptr_t)shape},
             t = {.data = y, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = (int64_t *)(uintptr_t)&rows};
    DLTensor *in = &x, *out = &t;
    n_bad += quern_op_call(s->op, 1, &in, 1, &out, NULL) != QUERN_OK || memcmp(y, s->wanted, sizeof y) != 0;
  }
  __atomic_add_fetch(&s->n_bad, n_bad, __ATOMIC_RELAXED);
  return NULL;
}

static int call_in_child(void *arg) {
  shared_call *s = arg;
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 2});
  quern_op *old = s->op;
  call_often(s);
  s->op = op_from(ctx, "logsumexp(x * 2, axis=1)");
  call_often(s);
  quern_op_release(s->op);
  quern_ctx_release(ctx);
  s->op = old;
  return s->n_bad != 0;
}

/* The first calls of one op come from many threads at once; and from a child of the process. */
static void test_threads(void) {
  static const int32_t modes[] = {QUERN_JIT_OFF, QUERN_JIT_ASYNC, QUERN_JIT_SYNC};
  rng r;
  rng_seed(&r, 24495);
  for (int m = 0; m < 3; m++) {
    static shared_call s;
    pthread_t threads[8];
    quern_ctx *ctx = ctx_with((quern_options){.jit = modes[m], .threads = 2});
    memset(&s, 0, sizeof s);
    for (int i = 0; i < 6; i++)
      for (int j = 0; j < 50; j++) s.x[i][j] = (float)(4 * rng_unit(&r) - 2);
    const char *text = "logsumexp(x * 2, axis=1)";
    quern_op *first = op_from(ways[1], text);
    const int64_t shape[2] = {6, 50}, rows = 6;
    DLTensor x = {.data = s.x, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = (int64_t *)(uintptr_t)shape},
             t = {.data = s.wanted, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = (int64_t *)(uintptr_t)&rows};
    DLTensor *in = &x, *out = &t;
    if (quern_op_call(first, 1, &in, 1, &out, NULL)) bail("%s", quern_last_error());
    quern_op_release(first);
    s.op = op_from(ctx, text);
    for (int k = 0; k < 8; k++) pthread_create(&threads[k], NULL, call_often, &s);
    for (int k = 0; k < 8; k++) pthread_join(threads[k], NULL);
    is_int(s.n_bad, 0, "eight threads make the first calls, mode %d", (int)modes[m]);
    is_int(in_child(call_in_child, &s), 0, "  and a child goes on");
    quern_op_release(s.op);
    quern_ctx_release(ctx);
  }
}

/* ---- Levels ------------------------------------------------------------------------------------------------------ */

static void test_levels(const char *program) {
  static const char *const levels[] = {"generic", "v2", "v3"};
  for (int k = 0; k < 3; k++) {
    char command[4400], line[4000];
    int n = 0;
    snprintf(command, sizeof command, "QUERN_ISA=%s '%s' quick 2>&1", levels[k], program);
    FILE *f = popen(command, "r");
    if (!f) bail("no child");
    while (fgets(line, sizeof line, f)) {
      if (strncmp(line, "not ok", 6) == 0) n = 40;
      if (n-- > 0) diag("%.*s", (int)strcspn(line, "\n"), line);
    }
    is_int(pclose(f), 0, "as right at level %s", levels[k]);
  }
}

int main(int argc, char **argv) {
  is_child = argc > 1 && strcmp(argv[1], "quick") == 0;
  const char *isa = getenv("QUERN_ISA");
  char level[20] = "";
  if (isa) snprintf(level, sizeof level, "%s", isa);
  forget_environment();
  if (is_child) setenv("QUERN_ISA", level, 1);
  for (int k = 1; k <= MOST_THREADS; k++) ways[k] = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = k});
  ways[BY_HOST] = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 7, .parallel_for = backwards_for});
  if (!is_child && compiles_with(NULL, "clang")) ways[BY_CLANG] = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 2});
  if (!is_child && compiles_with("cc", "cc")) ways[BY_CC] = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 2, .cc = "cc"});
  const int n = is_child ? 60 : SANITIZED ? 150 : 400;
  test_random(n, 12, 200);
  if (!is_child) {
    test_refused();
    test_limits();
    test_shared();
    test_passes();
    test_in_place();
    test_still();
    test_rows_of_one();
    test_odd();
    test_threads();
    test_levels(argv[0]);
  }
  for (int k = 0; k < N_WAYS; k++) quern_ctx_release(ways[k]);
  return done_testing();
}
