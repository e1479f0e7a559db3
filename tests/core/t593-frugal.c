/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full
 *
 * t593-frugal: what expressions take of memory and stack: many of them, made and released, interpreted and compiled; a call on
 * a small stack; a large call. */
#include <malloc.h>

#include "expressions.h"

static quern_ctx *interpreting; /* nothing is compiled for it */

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

static size_t heap_bytes(void) { return mallinfo2().uordblks + mallinfo2().hblkhd; }

/* Mappings that may be executed and are no file's. */
static int n_code_mappings(void) {
  char line[4096];
  int n = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) {
    unsigned long inode;
    char rights[8];
    n += sscanf(line, "%*s %7s %*s %*s %lu", rights, &inode) == 2 && rights[2] == 'x' && !inode && !strchr(line, '[');
  }
  if (maps) fclose(maps);
  return n;
}

static void many_expressions(quern_ctx *ctx, operands *o, int from, int n) {
  char text[64];
  for (int i = from; i < from + n; i++) {
    snprintf(text, sizeof text, "y = (x * %d + w) * %d", i, i % 7 + 2);
    quern_op *op = op_from(ctx, text);
    if (operands_call(op, o, NULL)) bail("%s", quern_last_error());
    quern_op_release(op);
  }
}

/* To be called first: what Clang does in the background would count, too. */
static void test_many_interpreted(void) {
  rng r;
  operands o;
  rng_seed(&r, 14);
  operands_vector(&o, "f32 f32", "f32", 100, &r);
  if (SANITIZED) {
    skip(3, "memory is the sanitizer's");
  } else {
    /* What a process makes once; malloc counts what it keeps of freed pieces for the next as in use: as many as there will be. */
    const quern_options frugal = {.jit = QUERN_JIT_OFF, .threads = 1, .kernel_memory_limit = 1 << 16};
    quern_ctx *ctx = ctx_with(frugal);
    many_expressions(ctx, &o, 0, 2000);
    quern_ctx_release(ctx);
    const size_t before = heap_bytes();
    ctx = ctx_with(frugal);
    many_expressions(ctx, &o, 0, 400);
    const size_t start = heap_bytes();
    many_expressions(ctx, &o, 400, 2000);
    const size_t end = heap_bytes();
    ok(end < start + 65536, "2000 expressions, made, called and released: %ld bytes more", (long)(end - start));
    quern_ctx_release(ctx);
    const size_t after = heap_bytes();
    ok(after < before + 16384, "  all of it is given back with the context: %ld bytes left", (long)(after - before));
    ctx = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 1});
    quern_op *op = op_from(ctx, "y = x * w + 1");
    operands_call(op, &o, NULL);
    const size_t one = heap_bytes();
    for (int i = 0; i < 2000; i++) {
      quern_op *again = op_from(ctx, "y = x * w + 1");
      operands_call(again, &o, NULL);
      quern_op_release(again);
    }
    ok(heap_bytes() < one + 4096, "the same one 2000 times: %ld bytes more", (long)(heap_bytes() - one));
    quern_op_release(op);
    quern_ctx_release(ctx);
  }
  operands_free(&o);
}

static void test_many_compiled(void) {
  rng r;
  operands o;
  rng_seed(&r, 14);
  operands_vector(&o, "f32 f32", "f32", 100, &r);
  if (!compiler) {
    skip(3, "no compiler here");
  } else {
    const int before = n_code_mappings();
    quern_ctx *ctx = ctx_with(
        (quern_options){.jit = QUERN_JIT_SYNC, .threads = 1, .cc = compiler_option, .kernel_memory_limit = 1 << 15});
    many_expressions(ctx, &o, 0, 30);
    const int some = n_code_mappings();
    ok(some - before < 20, "30 compiled, 32 KB kept: %d of them are mapped", some - before);
    quern_op *op = op_from(ctx, "y = (x * 29 + w) * 3");
    is_int(operands_call(op, &o, NULL), QUERN_OK, "  the last one is called again");
    is_str(explained(op, &o, NULL, "compiles"), "1", "  it was kept");
    quern_op_release(op);
    quern_ctx_release(ctx);
    is_int(n_code_mappings() - before, 0, "  none is mapped when the context is gone");
  }
  operands_free(&o);
}

static long status_kb(const char *key) {
  char line[256];
  long kb = -1;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status)) {
    if (strncmp(line, key, strlen(key)) == 0) kb = strtol(line + strlen(key) + 1, NULL, 10);
  }
  if (status) fclose(status);
  return kb;
}

static void test_large(void) {
  enum { N = 10000000 };
  rng r;
  operands o, small;
  rng_seed(&r, 16);
  quern_op *op = op_from(interpreting, "y = gelu(a * b + c) * (a - c)");
  int64_t n = SANITIZED ? N / 20 : N;
  operands_vector(&small, "f32 f32 f32", "f32", n / 10, &r);
  operands_vector(&o, "f32 f32 f32", "f32", n, &r);
  is_int(operands_call(op, &small, NULL), QUERN_OK, "interpreted: 10^6 elements");
  const long before = status_kb("VmRSS");
  FILE *clear = fopen("/proc/self/clear_refs", "w");
  int is_cleared = clear && fputs("5", clear) >= 0;
  if (clear) is_cleared &= fclose(clear) == 0;
  is_int(operands_call(op, &o, NULL), QUERN_OK, "10^7 elements");
  const long most = status_kb("VmHWM");
  is_str(tier_of(op, &o, NULL), "interpreter", "  interpreted");
  if (SANITIZED || !is_cleared || before < 0)
    skip(1, "what a call takes cannot be told here");
  else
    ok(most - before <= 1024, "  %ld KB beyond the operands", most - before);
  operands_free(&o);
  operands_free(&small);
  quern_op_release(op);
}

/* ---- Stack ------------------------------------------------------------------------------------------------------ */

#define DOZEN "y = exp((a + b * c - d) * (e + f) / (abs(g) + 1)) * h + a - minimum(b, c)"

/* A thread on a stack of ours, painted before: how much of it was used. */
typedef struct small_thread {
  void (*body)(void *arg);
  void *arg;
} small_thread;

static void *run_small(void *arg) {
  small_thread *t = arg;
  t->body(t->arg);
  return NULL;
}

#define SMALL_STACK (64 * 1024)

static long taken; /* what a thread takes of it before it does anything: this program's thread-local variables */

static long stack_used(void (*body)(void *arg), void *arg) {
  pthread_attr_t attributes;
  pthread_t thread;
  small_thread t = {body, arg};
  const size_t guard = 65536, size = taken ? (size_t)(SMALL_STACK + taken + 4095) / 4096 * 4096 : 1 << 20;
  unsigned char *memory = mmap(NULL, size + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                *low = memory + guard;
  if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE)) bail("no stack");
  memset(low, 0xa5, size);
  pthread_attr_init(&attributes);
  if (pthread_attr_setstack(&attributes, low, size) || pthread_create(&thread, &attributes, run_small, &t))
    bail("no thread");
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  size_t untouched = 0;
  while (untouched < size && low[untouched] == 0xa5) untouched++;
  munmap(memory, size + guard);
  return (long)(size - untouched) - taken;
}

typedef struct small_call {
  quern_ctx *ctx;
  quern_op *op;
  operands o;
  const char *text;
  quern_status status;
} small_call;

static void do_nothing(void *arg) { (void)arg; }
static void call_small(void *arg) {
  small_call *c = arg;
  c->status = operands_call(c->op, &c->o, NULL);
}
static void make_small(void *arg) {
  small_call *c = arg;
  c->status = quern_op_compile(c->ctx, c->text, &c->op);
}

/* Its result: KB of stack; 200: an error. */
static int first_in_child(void *arg) {
  small_call *c = arg;
  const long used = stack_used(call_small, c);
  return c->status ? 200 : (int)((used + 1023) / 1024);
}
static int made_in_child(void *arg) {
  small_call *c = arg;
  const long used = stack_used(make_small, c);
  return c->status ? 200 : (int)((used + 1023) / 1024);
}
static int refused_in_child(void *arg) {
  small_call *c = arg;
  const long used = stack_used(make_small, c);
  return c->status != QUERN_E_LIMIT ? 200 : (int)((used + 1023) / 1024);
}

typedef struct slice_of {
  void (*slice)(void *arg, int64_t i);
  void *arg;
  int64_t i;
} slice_of;

static void run_slice(void *arg) {
  const slice_of *s = arg;
  s->slice(s->arg, s->i);
}

static long most_of_a_slice;
static int n_slices_seen;

static void host_slices(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg) {
  (void)host;
  for (int64_t i = 0; i < n; i++) {
    slice_of s = {slice, arg, i};
    const long used = stack_used(run_slice, &s);
    n_slices_seen++;
    if (used > most_of_a_slice) most_of_a_slice = used;
  }
}

/* Calls of ops, as quern.h has it: most take MOST_OF_A_CALL; where kernels keep blocks of their own, MOST_OF_ANY. */
#define MOST_OF_A_CALL 8192
#define MOST_OF_ANY 16384
#define MOST_OF_WORST 32768 /* vector_norm, lp_normalize of any ord */
#define MOST_OF_A_FIRST 12 /* KB: also of quern_op_compile */
#define MOST_OF_AN_EXPLANATION 16384

typedef struct stack_case {
  const char *text, *ins, *outs;
  int64_t rows, columns;
  long most;
} stack_case;

static const stack_case stack_cases[] = {
    {"add", "f32 f32", "f32", 90, 70, MOST_OF_A_CALL},
    {"gelu", "f16", "f16", 90, 70, MOST_OF_A_CALL},
    {"clip", "f32", "f32", 1000, 1000, MOST_OF_A_CALL},
    {"y = sum(x, axis=-1)", "f32", "f32", 90, 700, MOST_OF_A_CALL},
    {"y = x - max(x, axis=-1)", "bf16", "f32", 90, 700, MOST_OF_A_CALL},
    {"softmax", "f32", "f32", 90, 700, MOST_OF_A_CALL},
    {"softmax", "f16", "f16", 3, 70000, MOST_OF_A_CALL},
    {"cumulative_sum", "f16", "f16", 90, 700, MOST_OF_A_CALL},
    {"log_softmax", "f64", "f64", 90, 700, MOST_OF_ANY},
    {"y = vector_norm(x, 3, axis=-1)", "f32", "f32", 90, 700, MOST_OF_WORST},
};

static quern_status call_on_last_axis(quern_op *op, operands *o) {
  const quern_op_info *info = quern_op_describe(op);
  const quern_scalar last = QUERN_I64(2), axis = QUERN_I64(-1);
  const quern_scalar *first = info->n_params && !strcmp(info->params[0].name, "axes") ? &last : &axis;
  const int is_along = info->n_params && !strncmp(info->params[0].name, "ax", 2);
  const quern_call call = {.size = sizeof call, .params = is_along ? first : NULL, .n_params = is_along};
  return operands_call(op, o, &call);
}

static void call_case(void *arg) {
  small_call *c = arg;
  c->status = call_on_last_axis(c->op, &c->o);
}

static void explain_case(void *arg) {
  char text[4000];
  small_call *c = arg;
  c->status = quern_op_explain(c->op, c->o.n_in, c->o.ins, c->o.n_out, c->o.outs, NULL, text, sizeof text);
}

/* Every op of one set of dtypes, with default parameters, where it takes operands of one shape. */
static void test_ops_on_stack(const char *dtype, rng *r) {
  const int64_t shape[2] = {20, 300};
  long most = 0, most_explained = 0;
  char few[2000] = "", worst[64] = "";
  int n = 0, n_few = 0;
  for (int32_t i = 0; i < quern_op_count(interpreting); i++) {
    small_call c = {.ctx = interpreting};
    if (quern_op_at(interpreting, i, &c.op)) bail("%s", quern_last_error());
    const quern_op_info *info = quern_op_describe(c.op);
    char ins[200] = "";
    quern_shape out[MOST_OPERANDS];
    for (int32_t k = 0; k < info->n_in; k++) {
      const char *takes = info->args[k].dtypes;
      strcat(strcat(ins, k ? " " : ""), strstr(takes, dtype) ? dtype : strstr(takes, "f32") ? "f32" : strstr(takes, "i32") ? "i32" : "bool");
    }
    operands_make(&c.o, ins, "", 2, shape, r);
    for (int32_t k = 0; k < info->n_out; k++) {
      out[k].size = sizeof *out;
      out[k].dtype = (DLDataType){kDLFloat, 32, 1};
      out[k].ndim = 2;
      memcpy(out[k].shape, shape, sizeof shape);
      out[k].device = (DLDevice){kDLCPU, 0};
    }
    if (info->n_in == 0 || quern_op_measure(c.op, info->n_in, c.o.ins, info->n_out, out, NULL)) {
      operands_free(&c.o);
      quern_op_release(c.op);
      continue;
    }
    void *memory[MOST_OPERANDS];
    DLTensor made[MOST_OPERANDS];
    c.o.n_out = info->n_out;
    for (int32_t k = 0; k < info->n_out; k++) {
      int64_t bytes = out[k].dtype.bits / 8;
      for (int32_t d = 0; d < out[k].ndim; d++) bytes *= out[k].shape[d];
      memory[k] = malloc((size_t)bytes + 1);
      made[k] = (DLTensor){.data = memory[k], .device = {kDLCPU, 0}, .ndim = out[k].ndim, .dtype = out[k].dtype, .shape = out[k].shape};
      c.o.outs[k] = &made[k];
    }
    call_small(&c);
    const long used = stack_used(call_small, &c);
    if (c.status == QUERN_OK) {
      n++;
      if (used > most) snprintf(worst, sizeof worst, "%s", info->name);
      if (used > most) most = used;
      if (used > MOST_OF_A_CALL && strlen(few) < 1900) strcat(strcat(few, " "), info->name);
      if (used > MOST_OF_A_CALL) n_few++;
      const long explained = stack_used(explain_case, &c);
      if (c.status) bail("%s", quern_last_error());
      if (explained > most_explained) most_explained = explained;
    }
    for (int32_t k = 0; k < info->n_out; k++) free(memory[k]);
    c.o.n_out = 0;
    operands_free(&c.o);
    quern_op_release(c.op);
  }
  ok(n > 150 && n_few * 6 < n && most <= MOST_OF_ANY, "%d ops of %s: at most %ld bytes (%s), %d of them more than %d", n, dtype, most, worst, n_few,
     MOST_OF_A_CALL);
  ok(most_explained > 0 && most_explained <= MOST_OF_AN_EXPLANATION, "  an explanation of any takes %ld bytes at most", most_explained);
  if (n_few) diag("more:%s", few);
}

/* A registered op asks for its own shapes, again and again: more blocks than the library keeps are taken at a time. */
typedef struct deep_op {
  quern_op *op;
  int left;
} deep_op;

static quern_status infer_deep(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out) {
  deep_op *deep = self;
  if (deep->left-- > 0) return quern_op_infer(deep->op, n_in, in, n_out, out);
  out->dtype = in[0]->dtype;
  out->ndim = 1;
  out->shape[0] = 7;
  return QUERN_OK;
}

static quern_status call_deep(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out, const quern_call *call) {
  (void)self, (void)n_in, (void)in, (void)n_out, (void)out, (void)call;
  return QUERN_E_UNSUPPORTED;
}

typedef struct deep_case {
  deep_op *deep;
  DLTensor *in[1];
  quern_shape out;
  quern_status status;
} deep_case;

static void ask_deep(void *arg) {
  deep_case *c = arg;
  c->status = quern_op_infer(c->deep->op, 1, c->in, 1, &c->out);
}

static void test_shapes_on_stack(void) {
  deep_op deep = {NULL, 0};
  int64_t n[1] = {3};
  float x[3] = {0};
  DLTensor t = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, n, NULL, 0};
  deep_case c = {.deep = &deep, .in = {&t}, .out = {.size = sizeof c.out}};
  quern_ctx *ctx = ctx_of(QUERN_JIT_OFF);
  const quern_op_def def = {.size = sizeof def, .name = "acme.deep", .n_in = 1, .n_out = 1, .self = &deep, .call = call_deep, .infer = infer_deep};
  if (quern_op_register(ctx, &def) || quern_op_find(ctx, "acme.deep", &deep.op)) bail("%s", quern_last_error());
  const long used = stack_used(ask_deep, &c);
  ok(c.status == QUERN_OK && c.out.shape[0] == 7 && used <= MOST_OF_A_CALL, "shapes of a registered op: %ld bytes", used);
  deep.left = 300;
  c.out.shape[0] = 0;
  ask_deep(&c);
  ok(c.status == QUERN_OK && c.out.ndim == 1 && c.out.shape[0] == 7 && deep.left == -1, "  asked for within themselves, 300 deep");
  quern_op_release(deep.op);
  quern_ctx_release(ctx);
}

static void test_calls_on_stack(void) {
  rng r;
  if (SANITIZED) {
    skip(8 + (int)(sizeof stack_cases / sizeof *stack_cases), "frames are larger where sanitizers look on");
    return;
  }
  rng_seed(&r, 17);
  test_shapes_on_stack();
  test_ops_on_stack("f32", &r);
  test_ops_on_stack("f64", &r);
  test_ops_on_stack("f16", &r);
  for (size_t i = 0; i < sizeof stack_cases / sizeof *stack_cases; i++) {
    const stack_case *k = &stack_cases[i];
    int64_t shape[2] = {k->rows, k->columns};
    small_call c = {.ctx = interpreting};
    if (strchr(k->text, '='))
      c.op = op_from(interpreting, k->text);
    else if (quern_op_find(interpreting, k->text, &c.op))
      bail("%s", quern_last_error());
    operands_make(&c.o, k->ins, k->outs, 2, shape, &r);
    if (strchr(k->text, '=') && !strstr(k->text, "x - ")) c.o.out[0].t.ndim = 1;
    for (int turn = 0; turn < 2; turn++) call_case(&c);
    const long used = stack_used(call_case, &c);
    if (c.status) diag("%s", quern_last_error());
    ok(c.status == QUERN_OK && used <= k->most, "%s of %s: %ld bytes", k->text, k->ins, used);
    operands_free(&c.o);
    quern_op_release(c.op);
  }
}

static void test_stack(void) {
  static const char *const ins = "f32 f32 f32 f32 f32 f32 f32 f32";
  static const char *const odd = "f16 f32 u8 f32 i32 bf16 f32 f16";
  rng r;
  if (SANITIZED) {
    skip(11, "frames are larger where sanitizers look on");
    return;
  }
  rng_seed(&r, 15);
  taken = stack_used(do_nothing, NULL);
  diag("a thread takes %ld bytes for itself", taken);
  for (int is_odd = 0; is_odd < 2; is_odd++) {
    int64_t shape[2] = {90, 70};
    small_call c = {.ctx = interpreting, .op = op_from(interpreting, DOZEN)};
    operands_make(&c.o, is_odd ? odd : ins, "f32", 2, shape, &r);
    for (int k = 0; is_odd && k < 8; k += 3) { /* transposed: through blocks, by tables */
      c.o.in[k].strides[0] = 1;
      c.o.in[k].strides[1] = 90;
    }
    const int kb = in_child(first_in_child, &c);
    ok(kb <= MOST_OF_A_FIRST, "%s: 12 ops on 8 operands, on 64 KB of stack: the first call takes %d KB",
       is_odd ? "mixed dtypes" : "f32", kb);
    is_int(operands_call(c.op, &c.o, NULL), QUERN_OK, "  a call elsewhere");
    const long used = stack_used(call_small, &c);
    ok(c.status == QUERN_OK && used <= MOST_OF_A_CALL, "  a call takes %ld bytes", used);
    operands_free(&c.o);
    quern_op_release(c.op);
  }
  /* Where a first call asks for code, too: it looks for the compiler's files, and waits or does not. */
  for (int is_sync = 0; is_sync < 2; is_sync++) {
    const char *name = is_sync ? "sync" : "async";
    if (!compiler) {
      skip(1, "%s: no compiler of kernels is here", name);
      continue;
    }
    quern_ctx *ctx = ctx_of(is_sync ? QUERN_JIT_SYNC : QUERN_JIT_ASYNC);
    small_call c = {.ctx = ctx, .op = op_from(ctx, "y = exp(a * 3 + b) - 7")};
    operands_vector(&c.o, "f32 f32", "f32", 100, &r);
    const int kb = in_child(first_in_child, &c);
    ok(kb <= MOST_OF_A_FIRST, "%s, on 64 KB of stack: the first call takes %d KB", name, kb);
    operands_free(&c.o);
    quern_op_release(c.op);
    quern_ctx_release(ctx);
  }
  /* Code with a rare path keeps a block of each output on the stack. */
  if (compiler) {
    char many[2000] = "", outs[200] = "";
    for (int k = 0; k < 31; k++) {
      sprintf(many + strlen(many), "y%d = log(x + %d); ", k, k);
      strcat(outs, k ? " f64" : "f64");
    }
    quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 2, .cc = compiler_option, .compile_cost_limit = 1 << 20});
    small_call c = {.ctx = ctx, .op = op_from(ctx, many)};
    operands_vector(&c.o, "f64", outs, 1000, &r);
    is_int(operands_call(c.op, &c.o, NULL), QUERN_OK, "31 logarithms");
    const long used = stack_used(call_small, &c);
    ok(c.status == QUERN_OK && used <= MOST_OF_ANY, "  a call takes %ld bytes", used);
    operands_free(&c.o);
    quern_op_release(c.op);
    quern_ctx_release(ctx);
  } else {
    skip(1, "no compiler of kernels is here");
  }
  /* Slices on the host's threads */
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 4, .parallel_for = host_slices});
  quern_op *op = op_from(ctx, DOZEN);
  operands o;
  operands_vector(&o, odd, "f32", 1000003, &r);
  is_int(operands_call(op, &o, NULL), QUERN_OK, "slices on threads of 64 KB");
  ok(n_slices_seen >= 2 && most_of_a_slice <= MOST_OF_A_CALL, "  %d slices take %ld bytes at most", n_slices_seen,
     most_of_a_slice);
  operands_free(&o);
  quern_op_release(op);
  quern_ctx_release(ctx);
  /* Reading a text: as deep as may be, and deeper */
  char text[2000] = "y = ";
  for (int i = 0; i < 200; i++) strcat(text, "(");
  strcat(text, "x");
  for (int i = 0; i < 200; i++) strcat(text, ")");
  small_call c = {.ctx = interpreting, .text = text};
  int kb = in_child(made_in_child, &c);
  ok(kb <= MOST_OF_A_FIRST, "200 parentheses are read on 64 KB of stack: %d KB", kb);
  text[4] = 0;
  for (int i = 0; i < 190; i++) strcat(text, "-~exp(");
  kb = in_child(refused_in_child, &c);
  ok(kb <= MOST_OF_A_FIRST, "  what is too deep is refused there: %d KB", kb);
}

int main(void) {
  forget_environment();
  test_many_interpreted();
  find_compiler();
  interpreting = ctx_of(QUERN_JIT_OFF);
  test_many_compiled();
  test_stack();
  test_calls_on_stack();
  test_large();
  quern_ctx_release(interpreting);
  return done_testing();
}
