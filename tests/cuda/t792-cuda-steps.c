/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full long
 *
 * t792-cuda-steps: expressions on CUDA tensors without a kernel of their own, by kernels built ahead in the caller's
 * workspace: random ones give the bytes of the interpreter on the CPU, in workspaces from tiny to ample, beside which nothing
 * is written; plans see the compiled kernel later; captures. On the fakes of tests/cuda. QUERN_TEST_DAGS: how many expressions.
 * The kernels for random ones take long to build: they have every third day. */
#include "cuda/built.h"
#include "random_trees.h"

#define CALL_PAIR(p, op, call) pair_call(p, op, call, __LINE__)
static const char no_compiler[] = "FAKE_NVRTC_VERSION=99.0"; /* of a later driver than there is */
static const int64_t line[] = {5000};

static int n_logged(const char *what) {
  int n = 0;
  for (const char *at = cuda.log(); (at = strstr(at, what)); at++) n++;
  return n;
}

/* ---- Random expressions ---- */

static int n_by_steps, n_chunks;

static void one_case(quern_ctx *cpu, quern_ctx *gpu, int salt) {
  static tree_case c;
  quern_op *on_cpu = NULL, *on_gpu = NULL;
  mirror in[MAX_INPUTS] = {0}, out[2] = {0};
  DLTensor *ins[MAX_INPUTS], *outs[2];
  char what[400], how[4000] = "";
  size_t most = 0;
  rng r;
  rng_seed(&r, (uint64_t)salt);
  tree_case_make(&c, &r, salt);
  if (quern_op_compile(cpu, c.t.text, &on_cpu) || quern_op_compile(gpu, c.t.text, &on_gpu))
    bail("%s: %s", c.t.text, quern_last_error());
  for (int k = 0; k < c.n_used; k++) {
    const operand *o = &c.in[c.t.order[k]];
    const int stays = c.n_used > 1 && c.ndim == 0 && rng_below(&r, 4) == 0;
    if (!stays) mirror_make(&in[k], o, 0);
    ins[k] = stays ? c.ins[k] : &in[k].t;
  }
  for (int k = 0; k < c.t.n_out; k++) mirror_make(&out[k], &c.out[k], 0), outs[k] = &out[k].t;
  if (quern_op_call(on_cpu, c.n_used, c.ins, c.t.n_out, c.outs, &c.call)) bail("%s: %s", c.t.text, quern_last_error());
  want(quern_op_workspace(on_gpu, c.n_used, ins, c.t.n_out, outs, &c.call, &most) == 0, "%s", quern_last_error());
  for (int way = 0; way < 2; way++) { /* ample, then less */
    quern_call call = c.call;
    const size_t bytes = way == 0 ? most + 64 : 8192 + (size_t)rng_below(&r, most + 1);
    workspace w = workspace_make(bytes, way ? (int)rng_below(&r, 64) : 0, &call);
    const quern_status status = quern_op_call(on_gpu, c.n_used, ins, c.t.n_out, outs, &call);
    if (quern_op_explain(on_gpu, c.n_used, ins, c.t.n_out, outs, &call, how, sizeof how))
      snprintf(how, sizeof how, "%s", quern_last_error());
    const int is_steps = strcmp(line_of(how, "tier"), "steps") == 0;
    want(status == 0 || (status == QUERN_E_COMPILER && !is_steps), "case %d: %d: %s\n%s", salt, status, quern_last_error(),
         c.t.text);
    want(way == 1 || (status == 0) == (most > 0) || is_steps || !strcmp(line_of(how, "tier"), "built"),
         "case %d: a workspace of %zu: %s\n%s", salt, most, how, c.t.text);
    n_by_steps += is_steps;
    n_chunks += is_steps ? atoi(line_of(how, "chunks")) : 0;
    for (int k = 0; k < c.t.n_out && !status; k++)
      want(mirror_same(&out[k], what, sizeof what), "case %d: output %d: %s\n%s\n%s", salt, k, what, c.t.text, how);
    for (int k = 0; k < c.n_used; k++)
      want(!in[k].memory || mirror_same(&in[k], what, sizeof what), "case %d: input %d: %s", salt, k, what);
    want(workspace_is_kept(&w), "case %d: it writes beside its workspace\n%s", salt, how);
    device_free(w.allocated);
  }
  for (int k = 0; k < MAX_INPUTS; k++) mirror_free(&in[k]);
  for (int k = 0; k < 2; k++) mirror_free(&out[k]);
  quern_op_release(on_cpu), quern_op_release(on_gpu);
  tree_case_free(&c);
}

static void runs_expressions(void) {
  quern_ctx *cpu = ctx_of(QUERN_JIT_OFF), *gpu = ctx_of(QUERN_JIT_OFF);
  const int n = (int)number_from("QUERN_TEST_DAGS", 150);
  for (int salt = 0; salt < n && n_wants < 10; salt++) one_case(cpu, gpu, salt);
  fprintf(stderr, "# %d of %d calls by steps, in %d chunks\n", n_by_steps, 2 * n, n_chunks);
  want(n_by_steps > n, "most go by steps");
  want(n_chunks > n_by_steps, "some in several chunks");
  quern_ctx_release(cpu), quern_ctx_release(gpu);
}

/* ---- Layouts ---- */

static void by_steps(pair *p, quern_op *op, quern_call *call, int many) {
  size_t most = 0;
  want(quern_op_workspace(op, p->o.n_in, p->ins, p->o.n_out, p->outs, call, &most) == 0 && most > 0, "%s", quern_last_error());
  for (int way = 0; way < 3; way++) {
    workspace w = workspace_make(way == 0 ? most : way == 1 ? most / 2 : most / 4, 0, call);
    CALL_PAIR(p, op, call);
    want_has(pair_explained(p, op, call, "tier"), "steps");
    want(way == 0 || !many || atoi(pair_explained(p, op, call, "chunks")) > 1, "in chunks");
    want(way != 0 || atoi(pair_explained(p, op, call, "chunks")) == 1, "in one chunk");
    want(workspace_is_kept(&w), "the workspace is kept to");
    device_free(w.allocated);
  }
  call->workspace = NULL;
}

static void runs_layouts(void) {
  static pair p;
  static const int64_t square[] = {90, 90}, cube[] = {11, 23, 37};
  quern_ctx *ctx = ctx_of(QUERN_JIT_OFF);
  quern_call call = {.size = sizeof call};
  quern_op *op = op_from(ctx, "y = gelu(a) * b + 1.5");
  pair_make(&p, "f32 f32", "f32", 1, line), by_steps(&p, op, &call, 1), pair_free(&p);
  pair_make(&p, "f16 f32", "f32", 1, line), by_steps(&p, op, &call, 1), pair_free(&p);
  pair_make(&p, "f16 bf16", "f64", 1, line), by_steps(&p, op, &call, 1), pair_free(&p);
  pair_make(&p, "f32 f32", "f32", 2, square), pair_transpose(&p, 1), by_steps(&p, op, &call, 1), pair_free(&p);
  pair_make(&p, "f32 f32", "f16", 3, cube);
  p.o.in[0].strides[1] = 0;
  p.o.in[1].strides[0] = 0;
  by_steps(&p, op, &call, 1);
  pair_free(&p);
  /* In place: the output is the first input. */
  pair_make(&p, "f32 f32", "f32", 1, line);
  p.o.outs[0] = p.o.ins[0];
  p.outs[0] = p.ins[0];
  workspace w = workspace_make(100000, 0, &call);
  char what[300];
  want(operands_call(op, &p.o, NULL) == 0 && quern_op_call(op, 2, p.ins, 1, p.outs, &call) == 0, "%s", quern_last_error());
  want(mirror_same(&p.in[0], what, sizeof what), "in place: %s", what);
  device_free(w.allocated);
  pair_free(&p);
  quern_op_release(op);
  /* The first output is written before the input is read for the last time, and may be that input. */
  op = op_from(ctx, "y = a * 2; z = a + y * b");
  pair_make(&p, "f32 f32", "f32 f32", 1, line);
  p.o.outs[0] = p.o.ins[0];
  p.outs[0] = p.ins[0];
  w = workspace_make(100000, 0, &call);
  want(operands_call(op, &p.o, NULL) == 0 && quern_op_call(op, 2, p.ins, 2, p.outs, &call) == 0, "%s", quern_last_error());
  want(mirror_same(&p.in[0], what, sizeof what) && mirror_same(&p.out[1], what, sizeof what), "in place, two: %s", what);
  device_free(w.allocated);
  pair_free(&p);
  quern_op_release(op);
  /* Parameters, of an op and of the expression; values that are the same for all elements. */
  const quern_scalar scalars[2] = {scalar_f(0.3), scalar_f(-2)};
  call = (quern_call){.size = sizeof call, .params = scalars, .n_params = 2};
  op = op_from(ctx, "param p; param q; y = leaky_relu(a, p) + clip(b, q, p + 2) * (p + q * 3)");
  pair_make(&p, "f32 f32", "f32", 1, line), by_steps(&p, op, &call, 1), pair_free(&p);
  pair_make(&p, "f64 f32", "f64", 1, line), by_steps(&p, op, &call, 1), pair_free(&p);
  quern_op_release(op);
  call = (quern_call){.size = sizeof call};
  op = op_from(ctx, "y = a + 1; z = (f32)3; w = a");
  pair_make(&p, "f32", "f32 f32 f32", 1, line), by_steps(&p, op, &call, 0), pair_free(&p);
  quern_op_release(op);
  /* A workspace too small. */
  op = op_from(ctx, "y = gelu(a) * b + 1.5");
  pair_make(&p, "f32 f32", "f32", 1, line);
  w = workspace_make(4000, 0, &call);
  want(quern_op_call(op, 2, p.ins, 1, p.outs, &call) == QUERN_E_COMPILER, "%s", quern_last_error());
  want_has(pair_explained(&p, op, &call, "steps"), "none: the workspace is too small");
  device_free(w.allocated);
  pair_free(&p);
  quern_op_release(op);
  quern_ctx_release(ctx);
}

/* ---- Later ---- */

static void is_replaced(void) {
  static pair p;
  char what[300];
  quern_ctx *ctx = ctx_of(QUERN_JIT_ASYNC);
  quern_call call = {.size = sizeof call};
  quern_op *op = op_from(ctx, "y = gelu(a) * b + 1.5");
  quern_plan *plan = NULL;
  pair_make(&p, "f32 f32", "f32", 1, line);
  workspace w = workspace_make(100000, 0, &call);
  void *in[2] = {p.in[0].t.data, p.in[1].t.data}, *out[1] = {p.out[0].t.data};
  want(operands_call(op, &p.o, NULL) == 0, "%s", quern_last_error());
  want(quern_op_prepare(op, 2, p.ins, 1, p.outs, &call, &plan) == 0, "%s", quern_last_error());
  cuda.clear();
  want(quern_plan_run(plan, in, out, &call) == 0, "%s", quern_last_error());
  want(n_logged("cuLaunchKernel qc_gelu") == 1, "steps run first: %s", cuda.log());
  want(n_logged("cuLibraryLoadData") == 0, "loaded when it was prepared");
  want(mirror_same(&p.out[0], what, sizeof what), "%s", what);
  want(pair_becomes(&p, op, &call, "nvrtc"), "it is compiled");
  size_t bytes = 1;
  want(quern_op_workspace(op, 2, p.ins, 1, p.outs, &call, &bytes) == 0 && bytes == 0, "then a workspace does not help");
  device_write(p.out[0].t.data, p.o.in[0].t.data, 400);
  cuda.clear();
  want(quern_plan_run(plan, in, out, &call) == 0, "%s", quern_last_error());
  want(n_logged("cuLaunchKernel qj_") == 1 && n_logged("cuLaunchKernel") == 1, "then the one of its own: %s", cuda.log());
  want(mirror_same(&p.out[0], what, sizeof what), "%s", what);
  quern_plan_release(plan);
  device_free(w.allocated);
  pair_free(&p);
  quern_op_release(op);
  quern_ctx_release(ctx);
}

static void is_captured(void) {
  static pair p;
  char what[300];
  quern_ctx *ctx = ctx_of(QUERN_JIT_OFF);
  device_stream stream;
  device_graph graph, made;
  device_do(cuda.stream_create(&stream, DEVICE_NONBLOCKING));
  quern_call call = {.size = sizeof call, .stream = stream};
  quern_op *op = op_from(ctx, "y = gelu(a) * b + 1.5");
  pair_make(&p, "f32 f32", "f32", 1, line);
  workspace w = workspace_make(100000, 0, &call);
  want(operands_call(op, &p.o, NULL) == 0, "%s", quern_last_error());
  device_do(cuda.capture_begin(stream, DEVICE_CAPTURE_GLOBAL));
  want(quern_op_call(op, 2, p.ins, 1, p.outs, &call) == QUERN_E_CAPTURING, "not loaded: %s", quern_last_error());
  device_do(cuda.capture_end(stream, &graph));
  quern_plan *plan = NULL;
  want(quern_op_prepare(op, 2, p.ins, 1, p.outs, &call, &plan) == 0, "%s", quern_last_error());
  device_do(cuda.capture_begin(stream, DEVICE_CAPTURE_GLOBAL));
  want(quern_op_call(op, 2, p.ins, 1, p.outs, &call) == 0, "loaded: %s", quern_last_error());
  device_do(cuda.capture_end(stream, &graph));
  device_do(cuda.graph_make(&made, graph, 0));
  device_do(cuda.graph_launch(made, stream));
  want(mirror_same(&p.out[0], what, sizeof what), "%s", what);
  quern_plan_release(plan);
  device_free(w.allocated);
  pair_free(&p);
  quern_op_release(op);
  quern_ctx_release(ctx);
}

/* Without a workspace, or without kernels, calls wait, and a workspace does not help. */
static int has_index;
static void waits(void) {
  static pair p;
  quern_ctx *ctx = ctx_of(QUERN_JIT_ASYNC);
  quern_call call = {.size = sizeof call};
  quern_op *op = op_from(ctx, "y = gelu(a) * b + 2.5");
  size_t bytes = 1;
  pair_make(&p, "f32 f32", "f32", 1, line);
  want(quern_op_workspace(op, 2, p.ins, 1, p.outs, &call, &bytes) == 0, "%s", quern_last_error());
  want(has_index || bytes == 0, "there is nothing that a workspace helps");
  workspace w = workspace_make(100000, 0, &call);
  CALL_PAIR(&p, op, &call);
  want_has(pair_explained(&p, op, &call, "tier"), "nvrtc");
  device_free(w.allocated);
  pair_free(&p);
  quern_op_release(op);
  quern_ctx_release(ctx);
}

int main(void) {
  static char spoiled[300];
  const int is_random = test_part(3) <= 0 || getenv("QUERN_TEST_DAGS");
  /* The ops of random_trees.h and those below, but for pow: GCC takes minutes for that of i64. */
  if (!is_random)
    built_make("--ops add,multiply,subtract,gelu,leaky_relu,clip,astype,copy,full,maximum,minimum --dtypes f16,bf16,f32,f64",
               "$(ls *.cu | grep -v _backward)");
  else built_make("--ops sqrt,abs,maximum,minimum,fma,negative,where,floor,remainder,fmod,floor_divide,exp,log,tanh,erf,sigmoid,gelu,add,"
             "subtract,multiply,divide,less,less_equal,greater,greater_equal,equal,not_equal,astype,copy,full,leaky_relu,clip",
             "$(ls *.cu | grep -v _backward)");
  if (is_random) run_case("random expressions", no_compiler, NULL, runs_expressions);
  run_case("layouts, in place, parameters", no_compiler, NULL, runs_layouts);
  run_case("until it is compiled", NULL, NULL, is_replaced);
  run_case("captures", NULL, NULL, is_captured);
  snprintf(spoiled, sizeof spoiled, "QUERN_MODULE_DIR=%s/spoiled", built_folder);
  shell("cd '%s' && mkdir spoiled", built_folder);
  run_case("no kernels", spoiled, NULL, waits);
  shell("cd '%s' && cp -R cuda spoiled && rm spoiled/cuda/op_multiply.fatbin", built_folder);
  has_index = 1;
  run_case("one file is not there", spoiled, NULL, waits);
  built_remove();
  return done_testing();
}
