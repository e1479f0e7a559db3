/* SPDX-License-Identifier: Apache-2.0
 *
 * reductions.h: what tests of reductions share: contexts of every number of threads, the ops in each of them, parameters by name,
 * calls in every form compared bit for bit with reduction_law.h. Header-only. */
#ifndef QUERN_TESTS_REDUCTIONS_H
#define QUERN_TESTS_REDUCTIONS_H

#include "reduction_law.h"
#include "tensors.h"

#include "quern/dlpack_exchange.h"

#ifndef QUERN_CLASS_REDUCTION
#define QUERN_CLASS_REDUCTION 3
#endif

/* ---- Contexts --------------------------------------------------------------------------------------------------- */

/* A host that runs slices one by one, from the last to the first or from the middle: what depends on their order is seen. */
static int64_t n_host_slices;
UNUSED static void backwards_for(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg) {
  n_host_slices += n;
  for (int64_t i = n - 1; i >= 0; i--) slice(arg, (i + (host ? n / 2 : 0)) % n);
}

enum { MOST_THREADS = 8, N_CONTEXTS = 3 + MOST_THREADS }; /* 0: the default one; k: k threads; then two hosts */
static quern_ctx *contexts[N_CONTEXTS];
static quern_op *law_ops[LAW_N_OPS][N_CONTEXTS]; /* NULL: this build has no such op */
static int n_missing;

UNUSED static const char *context_name(int c) {
  static char text[40];
  if (c == 0) return "the default context";
  if (c > MOST_THREADS) return c == MOST_THREADS + 1 ? "a host, backwards" : "a host, from the middle";
  snprintf(text, sizeof text, "%d threads", c);
  return text;
}

UNUSED static void make_contexts(void) {
  static int is_from_the_middle;
  for (int c = 1; c < N_CONTEXTS; c++) {
    quern_options options = {.size = sizeof options, .threads = c};
    if (c > MOST_THREADS) options.threads = c == MOST_THREADS + 1 ? 7 : 64, options.parallel_for = backwards_for;
    if (c == MOST_THREADS + 2) options.host = &is_from_the_middle;
    if (quern_ctx_create(&options, &contexts[c])) bail("%s", quern_last_error());
  }
  for (int op = 0; op < LAW_N_OPS; op++)
    for (int c = 0; c < N_CONTEXTS; c++) {
      const quern_status status = quern_op_find(contexts[c], law_name((law_op)op), &law_ops[op][c]);
      if (status && status != QUERN_E_NOTFOUND) bail("%s", quern_last_error());
      if (!status) continue;
      law_ops[op][c] = NULL;
      n_missing += c == 0;
    }
}

UNUSED static void release_contexts(void) {
  for (int c = 0; c < N_CONTEXTS; c++) {
    for (int op = 0; op < LAW_N_OPS; op++) quern_op_release(law_ops[op][c]);
    quern_ctx_release(contexts[c]);
  }
}

/* A missing op is skipped once, aloud. */
UNUSED static int is_there(law_op op) {
  if (law_ops[op][0]) return 1;
  skip(1, "no op %s yet", law_name(op));
  return 0;
}

/* The library's own exp and log, on contiguous numbers. */
UNUSED static void map_by_library(const char *name, law_type type, int64_t n, const law_value *x, law_value *y) {
  static quern_op *found[2];
  quern_op **op = &found[strcmp(name, "log") == 0];
  if (!*op && quern_op_find(NULL, name, op)) bail("%s", quern_last_error());
  const size_t size = type == LAW_F32 ? 4 : 8;
  char *memory = malloc((size_t)n * size + 1);
  DLTensor t = {.data = memory, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, (uint8_t)(8 * size), 1}, .shape = &n};
  DLTensor *in = &t;
  for (int64_t k = 0; k < n; k++) memcpy(memory + (size_t)k * size, &x[k], size);
  if (quern_op_call(*op, 1, &in, 1, &in, NULL)) bail("%s", quern_last_error());
  for (int64_t k = 0; k < n; k++) memcpy(&y[k], memory + (size_t)k * size, size);
  free(memory);
}

/* ref_from_double, faster for the wide floats. */
UNUSED static uint64_t bits_of(ref_dtype d, double x) {
  const float narrow = (float)x;
  uint64_t bits = 0;
  if (d == REF_F64) memcpy(&bits, &x, sizeof x);
  else if (d == REF_F32) memcpy(&bits, &narrow, sizeof narrow);
  else return ref_from_double(d, x);
  return bits;
}

/* ---- Parameters ------------------------------------------------------------------------------------------------- */

typedef struct named_params {
  quern_scalar value[16];
  quern_call call;
} named_params;

UNUSED static int param_index(const quern_op_info *info, const char *name) {
  for (int k = 0; k < info->n_params; k++)
    if (strcmp(info->params[k].name, name) == 0) return k;
  return -1;
}

UNUSED static void params_begin(named_params *p) {
  memset(p, 0, sizeof *p);
  p->call.size = sizeof p->call;
  p->call.params = p->value;
}

/* Those before it that are not given have their defaults. 0: there is no such parameter. */
UNUSED static int params_set(named_params *p, const quern_op_info *info, const char *name, quern_scalar value) {
  const int at = param_index(info, name);
  if (at < 0 || at >= 16) return 0;
  for (; p->call.n_params <= at; p->call.n_params++) p->value[p->call.n_params] = info->params[p->call.n_params].value;
  p->value[at] = value;
  return 1;
}

UNUSED static quern_scalar whole(int64_t x) { return (quern_scalar){.kind = QUERN_I64, .v.i = x}; }
UNUSED static quern_scalar real(double x) { return (quern_scalar){.kind = QUERN_F64, .v.f = {x, 0}}; }

/* ---- Elements --------------------------------------------------------------------------------------------------- */

/* Elements along the last dimension, and bytes from one to the next: faster than an index for each. */
typedef struct run {
  int64_t n, step;
} run;

UNUSED static run run_of(const DLTensor *t) {
  if (t->ndim == 0) return (run){1, 0};
  const int last = t->ndim - 1;
  return (run){t->shape[last], (t->strides ? t->strides[last] : 1) * (t->dtype.bits / 8)};
}

/* Random bytes. */
UNUSED static void scribble(operand *o, rng *r) {
  unsigned char *body = body_of(o);
  for (size_t i = 0; i + 8 <= body_bytes(o); i += 8) {
    const uint64_t x = rng_u64(r);
    memcpy(body + i, &x, 8);
  }
}

/* ---- Layouts ---------------------------------------------------------------------------------------------------- */

/* C or F order, or any other, with gaps, walked up or down; an input may be broadcast. */
UNUSED static void operand_lay_out(operand *o, ref_dtype d, int ndim, const int64_t *shape, int is_output, rng *r) {
  int64_t strides[QUERN_MAX_NDIM], step = 1, n = 1; /* n: elements so far */
  int order[QUERN_MAX_NDIM];
  const int kind = (int)rng_below(r, is_output ? 7 : 8);
  for (int k = 0; k < ndim; k++) order[k] = k;
  if (kind == 3)
    for (int k = 0; k < ndim; k++) order[k] = ndim - 1 - k;
  for (int k = ndim - 1; k > 0 && kind >= 4; k--) {
    const int at = (int)rng_below(r, (uint64_t)k + 1), was = order[k];
    if (kind == 7 && rng_below(r, 2)) continue;
    order[k] = order[at];
    order[at] = was;
  }
  for (int k = ndim - 1; k >= 0; k--) {
    const int at = order[k], is_repeated = kind == 7 && rng_below(r, 2);
    if (kind >= 5 && rng_below(r, 3) == 0 && step < 4 * n) step = rng_below(r, 2) ? 2 * step : step + (int64_t)rng_below(r, 5);
    strides[at] = is_repeated ? 0 : kind >= 5 && rng_below(r, 4) == 0 ? -step : step;
    if (!is_repeated) step *= shape[at] ? shape[at] : 1, n *= shape[at] ? shape[at] : 1;
  }
  operand_describe(o, d, ndim, shape, strides);
  if (kind == 0) o->t.strides = NULL;
  const int item = ref_dtype_size(d),
            offset = kind < 2 ? 0 : item * (int)rng_below(r, 9) + (rng_below(r, 8) == 0 ? (int)rng_below(r, 8) : 0);
  if (rng_below(r, 12) == 0) operand_allocate(o, 0, rng_below(r, 2) ? GUARD_FRONT : GUARD_BACK);
  else operand_allocate(o, offset, GUARD_NONE);
  const int64_t moved = kind % 2 ? item * (int64_t)rng_below(r, 300) : 0;
  o->t.data = (char *)o->t.data - moved;
  o->t.byte_offset = (uint64_t)moved;
}

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

enum { CALLED, PLANNED, PLANNED_WITHOUT_DATA, ALLOCATED, IN_PLACE, INTERPRETED, COMPILED, N_FORMS };

typedef struct reduction {
  law_op op;
  operand in, out;
  int64_t axes; /* as given: -1 = all */
  int keepdims, is_default;  /* is_default: no parameter is given */
  double correction;
  int form, context;
  const char *values; /* what kind of values, for reports */
  const char *note;   /* more of that, or NULL */
  quern_op *expression; /* INTERPRETED, COMPILED: the call as an expression; its axes are in its text */
} reduction;

/* The op that is called: of two, the one with the shorter name, with a parameter. */
UNUSED static quern_op *built_of_case(const reduction *c) {
  return law_ops[c->context % 2 && !c->is_default ? law_plain(c->op) : c->op][c->context];
}
UNUSED static quern_op *op_of_case(const reduction *c) { return c->expression ? c->expression : built_of_case(c); }

UNUSED static uint64_t mask_of(const reduction *c) { return (uint64_t)c->axes & (((uint64_t)1 << c->in.t.ndim) - 1); }

UNUSED static int output_shape(const reduction *c, int64_t *shape) {
  int n = 0;
  for (int k = 0; k < c->in.t.ndim; k++) {
    const int is_reduced = !law_is_full(c->op) && mask_of(c) >> k & 1;
    if (!is_reduced || c->keepdims) shape[n++] = is_reduced ? 1 : c->in.shape[k];
  }
  return n;
}

UNUSED static void set_params(const reduction *c, named_params *p) {
  const quern_op_info *info = quern_op_describe(built_of_case(c));
  params_begin(p);
  if (c->is_default || c->expression) return;
  if (!params_set(p, info, "axes", whole(c->axes))) group_fail("%s has no parameter axes", info->name);
  if (!law_is_full(c->op) && !params_set(p, info, "keepdims", whole(c->keepdims)))
    group_fail("%s has no parameter keepdims", info->name);
  if (law_has_correction(c->op) && !params_set(p, info, "correction", real(c->correction)))
    group_fail("%s has no parameter correction", info->name);
  if (law_has_initial(c->op) && !params_set(p, info, "initial", real(c->correction)))
    group_fail("%s has no parameter initial", info->name);
  const int is_last = c->op == LAW_ARGMAX_LAST || c->op == LAW_ARGMIN_LAST;
  if (is_last && built_of_case(c) != law_ops[c->op][c->context] && !params_set(p, info, "select_last_index", whole(1)))
    group_fail("%s has no parameter select_last_index", info->name);
}

UNUSED static void reduction_report(const reduction *c, const char *what) {
  static const char *const forms[N_FORMS] = {"called",   "planned",     "planned without data", "with memory from an allocator",
                                             "in place", "interpreted", "compiled"};
  char text[6000], how[2000] = "";
  named_params p;
  DLTensor *in = (DLTensor *)&c->in.t, *out = (DLTensor *)(c->form == IN_PLACE ? &c->in.t : &c->out.t);
  int n = snprintf(text, sizeof text,
                   "%s, axes %" PRId64 " (0x%" PRIx64 "), keepdims %d%s, correction %g: %s\n"
                   "  values: %s; %s; %s%s%s; seed 0x%" PRIx64 "\n",
                   law_name(c->op), c->axes, mask_of(c), c->keepdims, c->is_default ? ", by default" : "", c->correction, what,
                   c->values, forms[c->form], context_name(c->context), c->note ? ", " : "", c->note ? c->note : "", test_seed());
  n += text_operand(text + n, sizeof text - (size_t)n - 2100, "in", &c->in);
  n += text_operand(text + n, sizeof text - (size_t)n - 2100, "out", &c->out);
  set_params(c, &p);
  quern_op_explain(op_of_case(c), 1, &in, 1, &out, &p.call, how, sizeof how);
  snprintf(text + n, sizeof text - (size_t)n, "%s", how);
  group_fail("%s", text);
}

/* The first element that is not as wanted, told. */
UNUSED static int compare_elements(const DLTensor *t, const uint64_t *wanted, int64_t count, char *what, size_t size) {
  const ref_dtype d = ref_dtype_of(t->dtype);
  int64_t index[QUERN_MAX_NDIM + 1] = {0}, n_bad = 0;
  const run along = run_of(t);
  const char *at = NULL;
  for (int64_t i = 0; i < count; i++, at += along.step) {
    if (i % along.n == 0) {
      if (i) ref_next_index(t->ndim - 1, t->shape, index);
      at = ref_address(t, index);
    }
    const uint64_t got = ref_get(d, at);
    char a[64], b[64];
    if (got != wanted[i] && n_bad++ == 0)
      snprintf(what, size, "element %" PRId64 " of %" PRId64 ": got %s, wanted %s", i, count, ref_text(d, got, a),
               ref_text(d, wanted[i], b));
  }
  if (n_bad > 1) snprintf(what + strlen(what), size - strlen(what), "; %" PRId64 " bad", n_bad);
  return n_bad == 0;
}

/* The call in its form. */
UNUSED static quern_status reduction_call(reduction *c, const named_params *p) {
  quern_op *op = op_of_case(c);
  DLTensor *in = &c->in.t, *out = c->form == IN_PLACE ? &c->in.t : &c->out.t;
  if (c->form != PLANNED && c->form != PLANNED_WITHOUT_DATA) return quern_op_call(op, 1, &in, 1, &out, &p->call);
  DLTensor x = c->in.t, y = c->out.t;
  DLTensor *px = &x, *py = &y;
  void *x_data = (char *)x.data + x.byte_offset, *y_data = (char *)y.data + y.byte_offset;
  quern_plan *plan = NULL;
  if (c->form == PLANNED_WITHOUT_DATA) x.data = y.data = NULL, x.byte_offset = y.byte_offset = 0;
  quern_status status = quern_op_prepare(op, 1, &px, 1, &py, &p->call, &plan);
  if (status) return status;
  status = quern_plan_run(plan, &x_data, &y_data, c->form == PLANNED ? &p->call : NULL);
  quern_plan_release(plan);
  return status;
}

/* Runs a case. wanted: of law_eval, count elements of the output. Looks at shapes as measured, at each element, at every byte
 * beside them. */
UNUSED static int reduction_run(reduction *c, const uint64_t *wanted, int64_t count) {
  named_params p;
  char what[600] = "";
  quern_op *op = op_of_case(c);
  DLTensor *in = &c->in.t;
  DLManagedTensorVersioned *made = NULL;
  quern_shape shape = {.size = sizeof shape};
  int64_t out_shape[QUERN_MAX_NDIM];
  const int out_ndim = output_shape(c, out_shape), is_refused = law_is_refused(c->op, in, mask_of(c));
  operand *out = c->form == IN_PLACE ? &c->in : &c->out;
  int good = 0;
  group_count(1);
  set_params(c, &p);
  operand_save(&c->in);
  if (c->form != IN_PLACE) operand_save(&c->out);
  DLTensor described = *in;
  DLTensor *described_in = &described;
  described.data = NULL;
  described.byte_offset = 0;
  quern_status status = quern_op_measure(op, 1, &described_in, 1, &shape, c->is_default ? NULL : &p.call);
  const int is_as_measured = !status && shape.ndim == out_ndim &&
                             (!out_ndim || memcmp(shape.shape, out_shape, sizeof *out_shape * (size_t)out_ndim) == 0) &&
                             ref_dtype_of(shape.dtype) == law_result(c->op, c->in.d);
  if (!is_as_measured && !(is_refused && status)) {
    snprintf(what, sizeof what, "measure: status %s, %d dimensions, dtype %d.%d: %s", status_name(status), shape.ndim,
             shape.dtype.code, shape.dtype.bits, status ? quern_last_error() : "");
    reduction_report(c, what);
    return 0;
  }
  if (c->form == ALLOCATED) {
    quern_shape result = {.size = sizeof result};
    status = quern_op_call_alloc(op, 1, &in, 1, &result, &made, NULL, c->is_default ? NULL : &p.call);
    if (!status && (made->dl_tensor.ndim != out_ndim || result.ndim != out_ndim ||
                    ref_dtype_of(made->dl_tensor.dtype) != law_result(c->op, c->in.d)))
      snprintf(what, sizeof what, "the tensor made has %d dimensions", made->dl_tensor.ndim);
    for (int k = 0; k < out_ndim && !status && !*what; k++)
      if (made->dl_tensor.shape[k] != out_shape[k] || result.shape[k] != out_shape[k])
        snprintf(what, sizeof what, "the tensor made has %" PRId64 " along axis %d", made->dl_tensor.shape[k], k);
  } else {
    status = reduction_call(c, &p);
  }
  if (is_refused) {
    const char *sentence = quern_last_error();
    if (!status) snprintf(what, sizeof what, "an empty axis is taken");
    else if (!strstr(sentence, law_name(c->op)) || !strstr(sentence, "axis"))
      snprintf(what, sizeof what, "refused, but op and axis are not named: %s", sentence);
    else if (!operand_same(out)) snprintf(what, sizeof what, "refused, but the output is written");
    else good = 1;
  } else if (status) {
    snprintf(what, sizeof what, "status %s: %s", status_name(status), quern_last_error());
  } else if (!*what && compare_elements(made ? &made->dl_tensor : &out->t, wanted, count, what, sizeof what)) {
    if (!made) operand_forgive(out);
    if (!operand_same(out)) {
      size_t i = 0;
      while (out->saved[i] == body_of(out)[i]) i++;
      snprintf(what, sizeof what, "byte %zd from data, outside the output's elements, was written",
               body_of(out) + i - (unsigned char *)out->t.data);
    } else if (!operand_same(&c->in)) {
      snprintf(what, sizeof what, "memory of the input was written");
    } else {
      good = 1;
    }
  }
  if (made) made->deleter(made);
  if (!good) reduction_report(c, what);
  return good;
}

#endif /* QUERN_TESTS_REDUCTIONS_H */
