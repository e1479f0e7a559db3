/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t290-register: ops of the host's own: found, described, called and planned like any other; overrides of built-in ops
 * that decline by code; names and structs copied; release called once, when nothing refers to the op any more. */
#include <stdatomic.h>

#include "tensors.h"

typedef struct backend {
  atomic_int calls, releases, infers, workspaces;
  quern_status answer; /* what call gives; OK: it computes out[0][i] = 3 * in[0][i] */
  const quern_call *seen_call;
  int seen_params;
  double seen_param;
} backend;

static quern_status triple(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                           const quern_call *call) {
  backend *b = self;
  b->calls++;
  b->seen_params = call ? call->n_params : -1;
  if (call && call->n_params > 0 && call->params) b->seen_param = call->params[0].v.f[0];
  if (n_in < 1 || n_out != 1) return QUERN_E_ARGUMENT;
  if (b->answer) {
    quern_set_last_error("the backend says no");
    return b->answer;
  }
  int64_t n = ref_n_elements(in[0]);
  for (int64_t i = 0; i < n; i++) ((float *)out[0]->data)[i] = 3 * ((float *)in[0]->data)[i];
  return QUERN_OK;
}

static quern_status infer_pair(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out) {
  ((backend *)self)->infers++;
  if (((backend *)self)->answer) {
    quern_set_last_error("the backend cannot infer");
    return ((backend *)self)->answer;
  }
  if (n_in != 1 || n_out != 1) return QUERN_E_ARGUMENT;
  out->device = in[0]->device;
  out->dtype = ref_dtype_dl(REF_F64);
  out->ndim = 1;
  out->shape[0] = 2;
  return QUERN_OK;
}

static quern_status workspace_of(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                                 const quern_call *call, size_t *bytes) {
  (void)n_in, (void)in, (void)n_out, (void)out, (void)call;
  ((backend *)self)->workspaces++;
  if (((backend *)self)->answer) {
    quern_set_last_error("the backend has no workspace");
    return ((backend *)self)->answer;
  }
  *bytes = 12345;
  return QUERN_OK;
}

static void release(void *self) {
  ((backend *)self)->releases++;
}

static float x[64], y[64];
static int64_t n = 64;
static DLTensor in_tensor = {.data = x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {2, 32, 1}, .shape = &n};
static DLTensor out_tensor, *ins[2] = {&in_tensor, &in_tensor}, *outs[2] = {&out_tensor, &out_tensor};

static void reset(void) {
  out_tensor = in_tensor;
  out_tensor.data = y;
  for (int i = 0; i < 64; i++) {
    x[i] = (float)(i - 30);
    y[i] = -77;
  }
}

static int all_are(float factor) {
  int good = 1;
  for (int i = 0; i < 64; i++) good &= y[i] == factor * x[i];
  return good;
}

static int untouched(void) {
  int good = 1;
  for (int i = 0; i < 64; i++) good &= y[i] == -77;
  return good;
}

static quern_op_def define(backend *b, const char *name) {
  quern_op_def def;
  memset(&def, 0, sizeof def);
  def.size = sizeof def;
  def.name = name;
  def.doc = "Three times x.";
  def.n_in = def.n_out = 1;
  def.self = b;
  def.call = triple;
  def.release = release;
  return def;
}

static quern_ctx *new_context(void) {
  quern_ctx *ctx = NULL;
  if (quern_ctx_create(NULL, &ctx)) bail("%s", quern_last_error());
  return ctx;
}

static void test_new(void) {
  backend b = {0};
  quern_ctx *ctx = new_context();
  quern_op *op = NULL;
  char name[] = "acme.triple", doc[] = "Three times x.", arg[] = "x", result[] = "tripled", parameter[] = "weight";
  const char *args[] = {arg, result};
  quern_param_info params[] = {{.name = parameter, .value = {.kind = QUERN_F64, .v.f = {2.5, 0}}}};
  quern_op_def def = define(&b, name);
  def.doc = doc;
  def.arg_names = args;
  def.params = params;
  def.n_params = 1;
  int32_t before = quern_op_count(ctx), before_default = quern_op_count(NULL);
  is_int(quern_op_register(ctx, &def), QUERN_OK, "register");
  memset(name, 'z', strlen(name));
  memset(doc, 'z', strlen(doc));
  memset(arg, 'z', strlen(arg));
  memset(result, 'z', strlen(result));
  memset(parameter, 'z', strlen(parameter));
  memset(&def, 0, sizeof def);
  memset(params, 0, sizeof params);
  is_int(quern_op_count(ctx), before + 1, "one op more");
  is_int(quern_op_count(NULL), before_default, "not in other contexts");
  is_int(quern_op_find(NULL, "acme.triple", &op), QUERN_E_NOTFOUND, "not found elsewhere");
  is_int(quern_op_find(ctx, "acme.triple", &op), QUERN_OK, "found");
  const quern_op_info *info = quern_op_describe(op);
  is_str(info->name, "acme.triple", "its name was copied");
  is_str(info->doc, "Three times x.", "its doc was copied");
  ok(info->formula != NULL && info->formula[0] == 0, "its formula is empty");
  ok(info->n_in == 1 && info->n_out == 1 && info->n_params == 1 && info->op_class == QUERN_CLASS_BASIC, "its counts");
  is_str(info->args[0].name, "x", "input name");
  is_str(info->args[1].name, "tripled", "output name");
  ok(!info->args[0].is_output && info->args[1].is_output, "roles");
  ok(info->args[0].dtypes != NULL && info->args[1].dtypes != NULL, "dtypes are never NULL");
  is_str(info->params[0].name, "weight", "parameter name");
  ok(info->params[0].value.kind == QUERN_F64 && info->params[0].value.v.f[0] == 2.5, "parameter default");
  is_int(info->size, sizeof *info, "size of the struct");
  /* Sorted among the others. */
  int sorted = 1, seen = 0;
  const char *last = "";
  char kept[200] = "";
  for (int32_t i = 0; i < quern_op_count(ctx); i++) {
    quern_op *at = NULL;
    if (quern_op_at(ctx, i, &at)) bail("%s", quern_last_error());
    const char *this_name = quern_op_describe(at)->name;
    sorted &= strcmp(last, this_name) < 0;
    seen += strcmp(this_name, "acme.triple") == 0;
    snprintf(kept, sizeof kept, "%s", this_name);
    last = kept;
    quern_op_release(at);
  }
  ok(sorted && seen == 1, "listed once, sorted by name");

  reset();
  is_int(quern_op_call(op, 1, ins, 1, outs, NULL), QUERN_OK, "call");
  ok(all_are(3) && b.calls == 1, "it ran");
  quern_scalar weight = {.kind = QUERN_F64, .v.f = {7.25, 0}};
  quern_call call = {.size = sizeof call, .params = &weight, .n_params = 1};
  is_int(quern_op_call(op, 1, ins, 1, outs, &call), QUERN_OK, "call with a parameter");
  ok(b.seen_params == 1 && b.seen_param == 7.25, "which it sees");

  reset();
  quern_plan *plan = NULL;
  void *pi = x, *po = y;
  is_int(quern_op_prepare(op, 1, ins, 1, outs, &call, &plan), QUERN_OK, "prepare");
  ok(untouched(), "computes nothing yet");
  in_tensor.shape = NULL; /* descriptors are borrowed for prepare only */
  b.seen_param = 0;
  is_int(quern_plan_run(plan, &pi, &po, NULL), QUERN_OK, "run");
  in_tensor.shape = &n;
  ok(all_are(3), "right");
  ok(b.seen_param == 7.25, "with the plan's parameters");
  quern_plan_release(plan);

  reset();
  b.answer = QUERN_E_DTYPE;
  is_int(quern_op_call(op, 1, ins, 1, outs, NULL), QUERN_E_DTYPE, "its refusal is the call's status");
  is_str(quern_last_error(), "the backend says no", "and its sentence the last error");
  b.answer = -12345;
  quern_status s = quern_op_call(op, 1, ins, 1, outs, NULL);
  ok(s < 0, "an unknown code is a failure: %d", s);
  b.answer = 0;

  quern_shape shape = {.size = sizeof shape};
  is_int(quern_op_infer(op, 1, ins, 1, &shape), QUERN_OK, "infer without a function: elementwise");
  ok(shape.ndim == 1 && shape.shape[0] == 64 && shape.dtype.code == 2 && shape.dtype.bits == 32, "shape and dtype of the input");
  size_t bytes = 99;
  is_int(quern_op_workspace(op, 1, ins, 1, outs, NULL, &bytes), QUERN_OK, "workspace without a function");
  is_int(bytes, 0, "is 0");

  is_int(b.releases, 0, "not released yet");
  quern_ctx_release(ctx);
  is_int(b.releases, 0, "not while the op is held");
  is_int(quern_op_call(op, 1, ins, 1, outs, NULL), QUERN_OK, "and it still runs");
  quern_op_release(op);
  is_int(b.releases, 1, "released once, at the end");
}

static void test_functions(void) {
  backend b = {0};
  quern_ctx *ctx = new_context();
  quern_op *op = NULL;
  quern_op_def def = define(&b, "acme.pair");
  def.infer = infer_pair;
  def.workspace = workspace_of;
  def.op_class = QUERN_CLASS_WORKSPACE;
  is_int(quern_op_register(ctx, &def), QUERN_OK, "register with infer and workspace");
  is_int(quern_op_find(ctx, "acme.pair", &op), QUERN_OK, "find");
  reset();
  quern_shape shape = {.size = sizeof shape};
  is_int(quern_op_infer(op, 1, ins, 1, &shape), QUERN_OK, "infer");
  ok(b.infers == 1 && shape.ndim == 1 && shape.shape[0] == 2 && shape.dtype.bits == 64, "asks the function");
  size_t bytes = 0;
  is_int(quern_op_workspace(op, 1, ins, 1, outs, NULL, &bytes), QUERN_OK, "workspace");
  ok(b.workspaces == 1 && bytes == 12345, "asks the function");
  is_int(quern_op_describe(op)->op_class, QUERN_CLASS_WORKSPACE, "its class");
  quern_op_release(op);
  quern_ctx_release(ctx);
  is_int(b.releases, 1, "released once");
}

/* An op that reduces keeps its class, by which callers know that its shapes follow from axes. */
static void test_reduction(void) {
  static const int32_t classes[] = {QUERN_CLASS_BASIC, QUERN_CLASS_WORKSPACE, QUERN_CLASS_REDUCTION};
  for (int k = 0; k < 3; k++) {
    backend b = {0};
    quern_ctx *ctx = new_context();
    quern_op *op = NULL;
    if (quern_op_find(ctx, "sum", &op)) {
      skip(3, "this build has no sum");
      quern_ctx_release(ctx);
      continue;
    }
    quern_op_def def = define(&b, "sum");
    def.op_class = classes[k];
    def.n_params = quern_op_describe(op)->n_params;
    def.params = quern_op_describe(op)->params;
    quern_op_release(op);
    is_int(quern_op_register(ctx, &def), QUERN_OK, "an override of a reduction, of class %d", (int)classes[k]);
    is_int(quern_op_find(ctx, "sum", &op), QUERN_OK, "found");
    const quern_op_info *info = quern_op_describe(op);
    ok(info->op_class == QUERN_CLASS_REDUCTION && quern_param_role(info, 0) == QUERN_ROLE_AXES, "it has its class and its axes");
    quern_op_release(op);
    quern_ctx_release(ctx);
  }
}

static void test_override(void) {
  static const quern_status declines[] = {QUERN_E_UNSUPPORTED, QUERN_E_DTYPE, QUERN_E_DEVICE, QUERN_E_LAYOUT, QUERN_E_ALIGNMENT};
  static const quern_status refusals[] = {QUERN_E_ARGUMENT, QUERN_E_MEMORY, QUERN_E_DRIVER, QUERN_E_SHAPE};
  backend b = {0};
  quern_ctx *ctx = new_context();
  quern_op *old_op = NULL, *op = NULL;
  int32_t before = quern_op_count(ctx);
  is_int(quern_op_find(ctx, "negative", &old_op), QUERN_OK, "the built-in op, found before");
  quern_op_def def = define(&b, "negative");
  def.infer = infer_pair;
  def.workspace = workspace_of;
  is_int(quern_op_register(ctx, &def), QUERN_OK, "an override of a built-in op");
  is_int(quern_op_count(ctx), before, "is no new name");
  is_int(quern_op_find(ctx, "negative", &op), QUERN_OK, "found");
  reset();
  is_int(quern_op_call(op, 1, ins, 1, outs, NULL), QUERN_OK, "call");
  ok(all_are(3) && b.calls == 1, "the override ran");
  reset();
  is_int(quern_op_call(old_op, 1, ins, 1, outs, NULL), QUERN_OK, "the op found before");
  ok(all_are(-1) && b.calls == 1, "is as it was");
  char text[2000] = "";
  is_int(quern_op_explain(op, 1, ins, 1, outs, NULL, text, sizeof text), QUERN_OK, "explain");
  has_str(text, "tier:", "tells a tier");
  for (int i = 0; i < 5; i++) {
    reset();
    quern_set_last_error("an older sentence");
    b.answer = declines[i];
    int calls = b.calls;
    is_int(quern_op_call(op, 1, ins, 1, outs, NULL), QUERN_OK, "declined with %s", status_name(declines[i]));
    ok(all_are(-1) && b.calls == calls + 1, "the built-in one ran, after the override was asked");
    reset();
    quern_plan *plan = NULL;
    void *pi = x, *po = y;
    is_int(quern_op_prepare(op, 1, ins, 1, outs, NULL, &plan), QUERN_OK, "prepare");
    is_int(quern_plan_run(plan, &pi, &po, NULL), QUERN_OK, "run declined");
    ok(all_are(-1), "the built-in one ran");
    quern_plan_release(plan);
    quern_shape declined = {.size = sizeof declined};
    is_int(quern_op_infer(op, 1, ins, 1, &declined), QUERN_OK, "infer declined");
    ok(declined.ndim == 1 && declined.shape[0] == 64 && declined.dtype.bits == 32, "the built-in one inferred");
    size_t bytes = 99;
    ok(quern_op_workspace(op, 1, ins, 1, outs, NULL, &bytes) == QUERN_OK && bytes == 0, "workspace declined: 0");
    is_str(quern_last_error(), "an older sentence", "all of them succeeded, and left the last error as it was");
  }
  for (int i = 0; i < 4; i++) {
    reset();
    b.answer = refusals[i];
    is_int(quern_op_call(op, 1, ins, 1, outs, NULL), refusals[i], "%s is no declining", status_name(refusals[i]));
    ok(untouched(), "the built-in one did not run");
    is_str(quern_last_error(), "the backend says no", "the sentence is the override's");
    quern_shape refused = {.size = sizeof refused};
    is_int(quern_op_infer(op, 1, ins, 1, &refused), refusals[i], "nor to infer");
  }
  b.answer = 0;
  const quern_op_info *info = quern_op_describe(op);
  is_str(info->name, "negative", "described by the built-in's name");

  /* Other contexts are not touched. */
  quern_op *other = NULL;
  int calls = b.calls;
  reset();
  is_int(quern_op_find(NULL, "negative", &other), QUERN_OK, "the default context's");
  is_int(quern_op_call(other, 1, ins, 1, outs, NULL), QUERN_OK, "runs");
  ok(all_are(-1) && b.calls == calls, "as ever");
  quern_op_release(other);
  quern_op_release(old_op);
  quern_ctx_release(ctx);
  is_int(b.releases, 0, "held by the op");
  quern_op_release(op);
  is_int(b.releases, 1, "released once");
}

/* Takes complex numbers, which no built-in op here does. */
static quern_status conjugate(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                              const quern_call *call) {
  (void)self, (void)n_in, (void)n_out, (void)call;
  if (in[0]->dtype.code != kDLComplex || in[0]->strides != NULL || out[0]->strides[0] != 1) return QUERN_E_DTYPE;
  for (int64_t i = 0; i < 2 * in[0]->shape[0]; i++) {
    ((float *)out[0]->data)[i] = i % 2 ? -((float *)in[0]->data)[i] : ((float *)in[0]->data)[i];
  }
  return QUERN_OK;
}

/* What no built-in op takes is the registered op's to judge: when it is called, and when a plan of it is run. */
static void test_strange_dtypes(void) {
  static const char *const names[] = {"acme.conj", "negative"};
  int64_t count = 32, step = 1;
  for (int i = 0; i < 2; i++) {
    backend b = {0};
    quern_ctx *ctx = new_context();
    quern_op *op = NULL;
    quern_plan *plan = NULL;
    quern_op_def def = define(&b, names[i]);
    def.call = conjugate;
    if (quern_op_register(ctx, &def) || quern_op_find(ctx, names[i], &op)) bail("%s", quern_last_error());
    reset();
    DLTensor z = in_tensor, conj = out_tensor, *in = &z, *out = &conj;
    z.dtype = conj.dtype = (DLDataType){kDLComplex, 64, 1};
    z.shape = conj.shape = &count;
    conj.strides = &step;
    quern_set_last_error("an older sentence");
    is_int(quern_op_call(op, 1, &in, 1, &out, NULL), QUERN_OK, "%s of complex numbers: call", names[i]);
    reset();
    is_int(quern_op_prepare(op, 1, &in, 1, &out, NULL, &plan), QUERN_OK, "prepare");
    z.shape = conj.shape = conj.strides = NULL;
    void *pi = x, *po = y;
    is_int(quern_plan_run(plan, &pi, &po, NULL), QUERN_OK, "run");
    ok(y[0] == x[0] && y[1] == -x[1] && y[62] == x[62] && y[63] == -x[63], "right");
    quern_plan_release(plan);
    z.shape = conj.shape = &count;
    char text[2000] = "";
    is_int(quern_op_explain(op, 1, &in, 1, &out, NULL, text, sizeof text), QUERN_OK, "explain");
    has_str(text, i ? "otherwise: negative: input 1" : "tier: registered", "tells how");
    is_str(quern_last_error(), "an older sentence", "nothing failed, and the last error is as it was");

    /* Copying needs a descriptor that can be read. */
    z.ndim = QUERN_MAX_NDIM + 1;
    is_int(quern_op_prepare(op, 1, &in, 1, &out, NULL, &plan), QUERN_E_LAYOUT, "33 dimensions");
    z.ndim = -1;
    is_int(quern_op_prepare(op, 1, &in, 1, &out, NULL, &plan), QUERN_E_ARGUMENT, "minus one dimension");
    z.ndim = 1;
    z.shape = NULL;
    is_int(quern_op_prepare(op, 1, &in, 1, &out, NULL, &plan), QUERN_E_ARGUMENT, "no shape");
    in = NULL;
    is_int(quern_op_prepare(op, 1, &in, 1, &out, NULL, &plan), QUERN_E_ARGUMENT, "no tensor");
    quern_op_release(op);
    quern_ctx_release(ctx);
  }
}

static void test_names(void) {
  static const char *const good[] = {"a", "a1_", "acme.a", "ac_me2.a_1"};
  static const char *const bad[] = {"1a", "_a", "A", "a-b", "a.", ".a", "a..b", "a..b.", "a.b.c", "a.1", "a._b",
                                    "a b", "a.b ", "\xc3\xa4"};
  char longest[131] = "a.";
  memset(longest + 2, 'b', 127);
  backend b = {0};
  quern_ctx *ctx = new_context();
  for (int i = 0; i < 4; i++) {
    quern_op_def def = define(&b, good[i]);
    is_int(quern_op_register(ctx, &def), QUERN_OK, "the name '%s'", good[i]);
  }
  for (int i = 0; i < 14; i++) {
    quern_op_def def = define(&b, bad[i]);
    is_int(quern_op_register(ctx, &def), QUERN_E_ARGUMENT, "the name '%s' is refused", bad[i]);
    has_str(quern_last_error(), "[a-z][a-z0-9_]*", "and the sentence says what one is");
  }
  quern_op_def def = define(&b, longest);
  is_int(quern_op_register(ctx, &def), QUERN_E_ARGUMENT, "129 letters");
  longest[128] = 0;
  is_int(quern_op_register(ctx, &def), QUERN_OK, "128 letters");
  quern_ctx_release(ctx);
}

static void test_refused(void) {
  backend b = {0};
  quern_ctx *ctx = new_context();
  quern_op_def def = define(&b, "acme.triple");
  is_int(quern_op_register(ctx, &def), QUERN_OK, "register");
  is_int(quern_op_register(ctx, &def), QUERN_E_EXISTS, "again: EXISTS");
  has_str(quern_last_error(), "acme.triple", "the sentence names it");
  def.size = 0;
  is_int(quern_op_register(ctx, &def), QUERN_E_VERSION, "size 0");
  def.size = 12;
  is_int(quern_op_register(ctx, &def), QUERN_E_VERSION, "size 12");
  def.size = (size_t)1 << 30;
  is_int(quern_op_register(ctx, &def), QUERN_E_VERSION, "size 2^30");
  def = define(&b, NULL);
  is_int(quern_op_register(ctx, &def), QUERN_E_ARGUMENT, "no name");
  def = define(&b, "");
  is_int(quern_op_register(ctx, &def), QUERN_E_ARGUMENT, "an empty name");
  def = define(&b, "acme.other");
  def.call = NULL;
  is_int(quern_op_register(ctx, &def), QUERN_E_ARGUMENT, "no call");
  def = define(&b, "acme.other");
  def.n_in = -1;
  is_int(quern_op_register(ctx, &def), QUERN_E_ARGUMENT, "minus one input");
  def = define(&b, "acme.other");
  def.n_out = 0;
  is_int(quern_op_register(ctx, &def), QUERN_E_ARGUMENT, "no output");
  def = define(&b, "acme.other");
  def.n_in = INT32_MAX;
  quern_status s = quern_op_register(ctx, &def);
  ok(s == QUERN_E_ARGUMENT || s == QUERN_E_LIMIT, "2^31 - 1 inputs: %s", status_name(s));
  def = define(&b, "acme.other");
  def.n_params = 3;
  is_int(quern_op_register(ctx, &def), QUERN_E_ARGUMENT, "parameters but no list of them");
  def = define(&b, "acme.other");
  def.op_class = 17;
  is_int(quern_op_register(ctx, &def), QUERN_E_ARGUMENT, "an unknown class");
  is_int(b.releases, 0, "no refused registration releases");
  quern_ctx_release(ctx);
  is_int(b.releases, 1, "the registered one does, with its context");

  /* Names NULL: made up, never NULL. */
  backend c = {0};
  quern_op *op = NULL;
  ctx = new_context();
  def = define(&c, "acme.plain");
  def.doc = NULL;
  def.release = NULL;
  def.n_in = 2;
  is_int(quern_op_register(ctx, &def), QUERN_OK, "without doc, names, release");
  is_int(quern_op_find(ctx, "acme.plain", &op), QUERN_OK, "found");
  const quern_op_info *info = quern_op_describe(op);
  ok(info->doc && info->args[0].name && info->args[1].name && info->args[2].name, "no NULL in its description");
  reset();
  is_int(quern_op_call(op, 2, ins, 1, outs, NULL), QUERN_OK, "runs");
  is_int(quern_op_call(op, 1, ins, 1, outs, NULL), QUERN_E_ARGUMENT, "with one input of two: ARGUMENT");
  ok(c.calls == 1, "which the library saw, not the backend");
  quern_op_release(op);
  quern_ctx_release(ctx);
}

static void test_many(void) {
  enum { MANY = 3000 };
  backend b = {0};
  quern_ctx *ctx = new_context();
  int bad = 0;
  char name[40];
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof name, "acme.op_%d", i * 7919 % MANY);
    quern_op_def def = define(&b, name);
    bad += quern_op_register(ctx, &def) != QUERN_OK;
  }
  for (int i = 0; i < MANY; i++) {
    quern_op *op = NULL;
    snprintf(name, sizeof name, "acme.op_%d", i);
    if (quern_op_find(ctx, name, &op) || strcmp(quern_op_describe(op)->name, name)) bad++;
    quern_op_release(op);
  }
  is_int(bad, 0, "3000 ops registered and found");
  quern_ctx_release(ctx);
  is_int(b.releases, MANY, "each released once");
}

int main(void) {
  reset();
  test_new();
  test_functions();
  test_reduction();
  test_override();
  test_strange_dtypes();
  test_names();
  test_refused();
  test_many();
  return done_testing();
}
