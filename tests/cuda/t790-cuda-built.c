/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full
 *
 * t790-cuda-built: CUDA kernels built ahead: ops run by them with no compiler at all, by more general ones until there is a
 * kernel for the very layout; what they are loaded from, and what is wrong with that. On the fakes of tests/cuda. */
#include "cuda/built.h"

static const int64_t line[] = {3001}, square[] = {40, 40}, cube[] = {5, 6, 7};
#define CALL_PAIR(p, op, call) pair_call(p, op, call, __LINE__)
#define OFF() ctx_of(QUERN_JIT_OFF)
static const char no_compiler[] = "FAKE_NVRTC_VERSION=99.0"; /* of a later driver than there is */

/* ---- Parts ---- */

static int n_logged(const char *what) {
  int n = 0;
  for (const char *at = cuda.log(); (at = strstr(at, what)); at++) n++;
  return n;
}

/* Of rank 3, one operand broadcast along a dimension, one transposed inside. */
static void odd_layout(pair *p) {
  pair_make(p, "f32 f32", "f32", 3, cube);
  p->o.in[0].strides[0] = 0;
  p->o.in[1].strides[2] = 6, p->o.in[1].strides[1] = 1;
}

/* ---- Without a compiler ---- */

static void one_op(quern_ctx *ctx, const char *name, const char *in, const char *out, const quern_call *call) {
  static pair p;
  quern_op *op = op_named(ctx, name);
  pair_make(&p, in, out, 1, line);
  CALL_PAIR(&p, op, call);
  want_has(pair_explained(&p, op, call, "tier"), "built");
  want_has(pair_explained(&p, op, call, "reason"), "as they lie");
  want_has(pair_explained(&p, op, call, "variant"), strcmp(in, "") || quern_op_describe(op)->n_params < 2 ? "1d c" : "1d bc");
  pair_free(&p);
}

static void runs_ops(void) {
  quern_ctx *ctx = OFF();
  const quern_scalar slope = scalar_f(0.3), seven = scalar_i(7);
  const quern_call with_slope = {.size = sizeof with_slope, .params = &slope, .n_params = 1};
  const quern_call with_seven = {.size = sizeof with_seven, .params = &seven, .n_params = 1};
  one_op(ctx, "add", "f32 f32", "f32", NULL);
  one_op(ctx, "add", "f16 f16", "f16", NULL);
  one_op(ctx, "add", "i32 i32", "i32", NULL);
  want(cuda.count("cuLibraryLoadData") == 1, "one library for a file, not %d", cuda.count("cuLibraryLoadData"));
  want(cuda.count("cuLibraryGetKernel") == 3, "three kernels, not %d", cuda.count("cuLibraryGetKernel"));
  one_op(ctx, "gelu", "f32", "f32", NULL);
  one_op(ctx, "leaky_relu", "f16", "f16", &with_slope);
  one_op(ctx, "leaky_relu", "f32", "f32", NULL);
  one_op(ctx, "less", "f32 f32", "bool", NULL);
  one_op(ctx, "where", "bool f32 f32", "f32", NULL);
  one_op(ctx, "where", "bool bool bool", "bool", NULL);
  one_op(ctx, "copy", "f16", "f16", NULL);
  one_op(ctx, "astype", "f32", "f16", NULL);
  one_op(ctx, "astype", "f32", "f32", NULL);
  one_op(ctx, "astype", "i32", "bool", NULL);
  one_op(ctx, "full", "", "i32", &with_seven);
  one_op(ctx, "arange", "", "i32", NULL);
  one_op(ctx, "linspace", "", "f16", NULL);
  want_has(described(ctx, "cuda_built"), "kernels for sm_80, sm_90, sm_100");
  quern_ctx_release(ctx);
}

static void runs_expressions(void) {
  static pair p;
  quern_ctx *ctx = OFF();
  quern_op *op = op_from(ctx, "y = gelu(a)");
  pair_make(&p, "f32", "f32", 1, line);
  CALL_PAIR(&p, op, NULL);
  want_has(pair_explained(&p, op, NULL, "tier"), "built");
  quern_op_release(op);
  op = op_from(ctx, "y = gelu(a) + 1");
  want(quern_op_call(op, 1, p.ins, 1, p.outs, NULL) == QUERN_E_COMPILER, "two ops have no kernel built ahead");
  want_has(pair_explained(&p, op, NULL, "built"), "none: no built op computes all of it");
  quern_op_release(op);
  pair_free(&p);
  quern_ctx_release(ctx);
}

/* Layouts for which only a more general kernel is built. */
static void runs_more_general(void) {
  static pair p;
  quern_ctx *ctx = OFF();
  quern_op *add = op_named(ctx, "add");
  pair_make(&p, "f32 f32", "f32", 2, square);
  pair_transpose(&p, 1); /* tiles: they are built */
  CALL_PAIR(&p, add, NULL);
  want_has(pair_explained(&p, add, NULL, "variant"), "2d ctc");
  pair_free(&p);
  odd_layout(&p);
  CALL_PAIR(&p, add, NULL);
  want_has(pair_explained(&p, add, NULL, "tier"), "built");
  want_has(pair_explained(&p, add, NULL, "reason"), "more general");
  want_has(pair_explained(&p, add, NULL, "reason"), "compiling at run time is off");
  want_has(pair_explained(&p, add, NULL, "variant"), "nd sss");
  pair_free(&p);
  quern_op_release(add);
  quern_ctx_release(ctx);
}

/* A scalar on the CPU is one of the arguments. */
static void takes_values(void) {
  static pair p;
  quern_ctx *ctx = OFF();
  quern_op *add = op_named(ctx, "add");
  pair_make(&p, "f32 f32", "f32", 1, line);
  p.o.in[1].t.ndim = 0;
  p.ins[1] = &p.o.in[1].t;
  CALL_PAIR(&p, add, NULL);
  want_has(pair_explained(&p, add, NULL, "variant"), "1d cbc");
  pair_free(&p);
  quern_op_release(add);
  quern_ctx_release(ctx);
}

/* ---- With a compiler ---- */

static void is_replaced(void) {
  static pair p;
  quern_ctx *ctx = ctx_of(QUERN_JIT_ASYNC);
  quern_op *add = op_named(ctx, "add");
  quern_plan *plan = NULL;
  void *in[2], *out[1];
  char what[300];
  odd_layout(&p);
  want(quern_op_prepare(add, 2, p.ins, 1, p.outs, NULL, &plan) == 0, "%s", quern_last_error());
  in[0] = p.in[0].t.data, in[1] = p.in[1].t.data, out[0] = p.out[0].t.data;
  cuda.clear();
  want(quern_plan_run(plan, in, out, NULL) == 0, "%s", quern_last_error());
  want(n_logged("cuLaunchKernel qc_add_f32_f32_f32_nd_sss") == 1, "the kernel built ahead runs first: %s", cuda.log());
  want(operands_call(add, &p.o, NULL) == 0, "%s", quern_last_error());
  want(mirror_same(&p.out[0], what, sizeof what), "%s", what);
  want(pair_becomes(&p, add, NULL, "nvrtc"), "it is compiled: %s", pair_explained(&p, add, NULL, "reason"));
  device_write(p.out[0].t.data, body_of(&p.o.in[0]), 16); /* other contents, which are to go */
  cuda.clear();
  want(quern_plan_run(plan, in, out, NULL) == 0, "%s", quern_last_error());
  want(n_logged("cuLaunchKernel qj_") == 1, "then the one that was compiled: %s", cuda.log());
  want(mirror_same(&p.out[0], what, sizeof what), "%s", what);
  quern_plan_release(plan);
  pair_free(&p);
  /* A layout that a kernel is built for is never compiled. */
  pair_make(&p, "f32 f32", "f32", 1, line);
  CALL_PAIR(&p, add, NULL);
  want_has(pair_explained(&p, add, NULL, "tier"), "built");
  want_has(pair_explained(&p, add, NULL, "compiles"), "0");
  pair_free(&p);
  quern_op_release(add);
  quern_ctx_release(ctx);
}

static void is_captured(void) {
  static pair p;
  quern_ctx *ctx = ctx_of(QUERN_JIT_ASYNC);
  quern_op *add = op_named(ctx, "add"), *gelu = op_named(ctx, "gelu");
  device_stream stream;
  device_graph graph;
  device_do(cuda.stream_create(&stream, DEVICE_NONBLOCKING));
  const quern_call call = {.size = sizeof call, .stream = stream};
  odd_layout(&p);
  want(quern_op_call(add, 2, p.ins, 1, p.outs, &call) == 0, "%s", quern_last_error());
  want(pair_becomes(&p, add, &call, "nvrtc"), "it is compiled");
  pair_free(&p);
  odd_layout(&p);
  device_do(cuda.capture_begin(stream, DEVICE_CAPTURE_GLOBAL));
  want(quern_op_call(add, 2, p.ins, 1, p.outs, &call) == 0, "what is loaded can be captured: %s", quern_last_error());
  want(quern_op_call(gelu, 1, p.ins, 1, p.outs, &call) == QUERN_E_CAPTURING, "what is not loaded cannot: %s", quern_last_error());
  device_do(cuda.capture_end(stream, &graph));
  pair_free(&p);
  quern_op_release(add), quern_op_release(gelu);
  quern_ctx_release(ctx);
}

/* ---- Their files ---- */

/* There is none of use: NVRTC serves, and explain says what is wrong. */
static const char *trouble;
static void is_compiled_instead(void) {
  static pair p;
  quern_ctx *ctx = ctx_of(QUERN_JIT_ASYNC);
  quern_op *add = op_named(ctx, "add");
  pair_make(&p, "f32 f32", "f32", 1, line);
  quern_set_last_error("kept");
  CALL_PAIR(&p, add, NULL);
  want_has(quern_last_error(), "kept");
  want_has(pair_explained(&p, add, NULL, "tier"), "nvrtc");
  want_has(pair_explained(&p, add, NULL, "built"), trouble);
  CALL_PAIR(&p, add, NULL);
  pair_free(&p);
  quern_op_release(add);
  quern_ctx_release(ctx);
}

/* The folder with something done to its copy. */
static void spoiled(const char *name, const char *how, const char *what) {
  static char folder[300];
  snprintf(folder, sizeof folder, "QUERN_MODULE_DIR=%s/spoiled", built_folder);
  shell("cd '%s' && rm -rf spoiled && mkdir spoiled && cp -R cuda spoiled && cd spoiled/cuda && %s", built_folder, how);
  trouble = what;
  run_case(name, folder, NULL, is_compiled_instead);
}

static void calls_anyhow(void) {
  static pair p;
  quern_ctx *ctx = OFF();
  quern_op *add = op_named(ctx, "add");
  pair_make(&p, "f32 f32", "f32", 1, line);
  quern_op_call(add, 2, p.ins, 1, p.outs, NULL);
  described(ctx, "cuda_built");
  pair_free(&p);
  quern_op_release(add);
  quern_ctx_release(ctx);
}

/* Nothing that an index may say ends a process. */
static void test_indexes(char *folder) {
  char name[300], *text = NULL;
  size_t room = 0;
  rng r;
  snprintf(name, sizeof name, "%s/cuda/kernels.txt", built_folder);
  FILE *file = fopen(name, "re");
  const ssize_t n = getdelim(&text, &room, 0, file);
  fclose(file);
  rng_seed(&r, 790);
  group_begin("indexes with mistakes");
  for (int i = 0; i < 100; i++) {
    static const char letters[] = "0123456789 \nabcz-_";
    char *copy = malloc((size_t)n);
    memcpy(copy, text, (size_t)n);
    for (int k = 0; k < 1 + i % 5; k++) copy[rng_below(&r, (uint64_t)n)] = letters[rng_below(&r, sizeof letters - 1)];
    const size_t length = i % 3 ? (size_t)n : (size_t)rng_below(&r, (uint64_t)n);
    snprintf(name, sizeof name, "%s/spoiled/cuda/kernels.txt", built_folder);
    file = fopen(name, "we");
    fwrite(copy, 1, length, file);
    fclose(file);
    free(copy);
    group_count(1);
    const int status = case_status(folder, "FAKE_NVRTC_VERSION=99.0", calls_anyhow);
    if (status) group_fail("change %d: the process ended with %#x", i, (unsigned)status);
  }
  group_end();
  free(text);
}

/* A driver without libraries: a module for a file and context. */
static void runs_on_old_drivers(void) {
  quern_ctx *ctx = OFF();
  one_op(ctx, "add", "f32 f32", "f32", NULL);
  one_op(ctx, "add", "f16 f16", "f16", NULL);
  want(cuda.count("cuModuleLoadData") == 1, "one module for a file, not %d", cuda.count("cuModuleLoadData"));
  quern_ctx_release(ctx);
}

int main(void) {
  static char old[600], spoiled_folder[300];
  built_make("--ops add,gelu,leaky_relu,less,where,copy,astype,full,arange,linspace --dtypes f32,f16,i32,bool", "op_*.cu");
  run_case("ops without a compiler", no_compiler, NULL, runs_ops);
  run_case("expressions that are one op", no_compiler, NULL, runs_expressions);
  run_case("more general kernels", no_compiler, NULL, runs_more_general);
  run_case("values", no_compiler, NULL, takes_values);
  run_case("until one is compiled", NULL, NULL, is_replaced);
  run_case("captures", NULL, NULL, is_captured);
  spoiled("no index", "rm kernels.txt", "kernels.txt is not in");
  spoiled("an index of another build", "sed -i '1s/2 ..../2 0123/' kernels.txt", "is of another build than this library");
  spoiled("other chips", "sed -i '2s/.*/chips 70/' kernels.txt", "for other chips");
  spoiled("a bad line", "sed -i '5s/kernel/colonel/' kernels.txt", "is damaged in line 5");
  spoiled("an index that ends", "sed -i '$d' kernels.txt", "is damaged in line");
  spoiled("no fatbin", "rm op_add.fatbin", "op_add.fatbin cannot be read");
  spoiled("half a fatbin", "truncate -s 5000 op_add.fatbin", "op_add.fatbin is damaged");
  spoiled("no bytes", "truncate -s 0 op_add.fatbin", "op_add.fatbin is damaged");
  spoiled("other kernels", "cp op_gelu.fatbin op_add.fatbin", "op_add.fatbin has no kernel qc_add");
  spoiled("what the driver refuses", "printf 'another__________' | dd of=op_add.fatbin bs=1 seek=16 conv=notrunc 2>/dev/null",
          "device kernel image is invalid");
  snprintf(spoiled_folder, sizeof spoiled_folder, "QUERN_MODULE_DIR=%s/spoiled", built_folder);
  test_indexes(spoiled_folder);
  ssize_t n = readlink("/proc/self/exe", old + 16, sizeof old - 40);
  old[16 + (n < 0 ? 0 : n)] = 0;
  memcpy(old, "QUERN_CUDA_PATH=", 16);
  strcpy(strrchr(old, '/'), "/fake-old");
  run_case("a driver without libraries", old, no_compiler, runs_on_old_drivers);
  built_remove();
  return done_testing();
}
