/* bench.c: times Quern's ops and hand-written loops, case by case. Prints one line a case: name, nanoseconds a call
 * (median), bytes the operands have. run.py puts them beside NumPy and PyTorch; names are its keys.
 *   quern-bench [FILTER]      all cases whose name contains FILTER
 *   quern-bench --first       nanoseconds from main to the end of the first built op of this process
 *   quern-bench --memory      bytes beyond the operands that a process takes for one op of 10^8 elements */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include <quern/ops.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

typedef void measured(void *arg);

/* The median of repeated timings, each of as many calls as take 200 us or more. */
static double median_ns(measured *f, void *arg) {
  enum { MOST = 101 };
  double times[MOST];
  int n = 0;
  long calls = 1;
  f(arg);
  for (;;) {
    double start = now();
    for (long i = 0; i < calls; i++) f(arg);
    double took = now() - start;
    if (took >= 200e3) break;
    calls = took < 20e3 ? calls * 10 : (long)((double)calls * 220e3 / took) + 1;
  }
  for (double start = now(); n < MOST && (n < 9 || now() - start < 150e6); n++) {
    double begin = now();
    for (long i = 0; i < calls; i++) f(arg);
    times[n] = (now() - begin) / (double)calls;
  }
  qsort(times, (size_t)n, sizeof times[0], ascending);
  return times[n / 2];
}

static const char *filter = "";
static int is_wanted(const char *name) { return strstr(name, filter) != NULL; }

static void report(const char *name, double ns, double bytes) {
  printf("%s\t%.2f\t%.0f\n", name, ns, bytes);
  fflush(stdout);
}

/* ---- Tensors ---- */

typedef struct array {
  DLTensor t;
  int64_t shape[3], strides[3];
  void *memory;
} array;

static DLDataType dtype_of(const char *name) {
  DLDataType d = {kDLFloat, 32, 1};
  if (name[0] == 'i') d.code = kDLInt;
  if (name[0] == 'u') d.code = kDLUInt;
  if (name[0] == 'b') d.code = !strcmp(name, "bool") ? kDLBool : kDLBfloat;
  d.bits = d.code == kDLBool ? 8 : d.code == kDLBfloat ? 16 : (uint8_t)atoi(name + 1);
  return d;
}

static void array_make(array *a, const char *dtype, int32_t ndim, int64_t n0, int64_t n1, int64_t n2) {
  int64_t n[3] = {n0, n1, n2}, count = 1;
  memset(a, 0, sizeof *a);
  for (int d = ndim - 1; d >= 0; d--) {
    a->shape[d] = n[d];
    a->strides[d] = count;
    count *= n[d];
  }
  a->t = (DLTensor){NULL, {kDLCPU, 0}, ndim, dtype_of(dtype), a->shape, a->strides, 0};
  size_t size = (size_t)count * a->t.dtype.bits / 8;
  if (posix_memalign(&a->memory, 1 << 21, size + 64)) abort();
  madvise(a->memory, size, MADV_HUGEPAGE); /* as NumPy and PyTorch do for large arrays */
  a->t.data = a->memory;
  for (int64_t i = 0; i < count; i++) { /* values near 1, in every format */
    double v = 0.25 + (double)(i % 1000) / 600.0;
    float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, 4);
    if (a->t.dtype.code == kDLBfloat) ((uint16_t *)a->memory)[i] = (uint16_t)(u >> 16);
    else if (a->t.dtype.code == kDLFloat && a->t.dtype.bits == 16)
      ((uint16_t *)a->memory)[i] = (uint16_t)(((u >> 13) & 0x3ff) | ((((u >> 23) & 0xff) - 112) << 10));
    else if (a->t.dtype.code == kDLFloat && a->t.dtype.bits == 32) ((float *)a->memory)[i] = f;
    else if (a->t.dtype.code == kDLFloat) ((double *)a->memory)[i] = v;
    else if (a->t.dtype.bits == 64) ((int64_t *)a->memory)[i] = i % 100;
    else if (a->t.dtype.bits == 32) ((int32_t *)a->memory)[i] = (int32_t)(i % 100);
    else ((uint8_t *)a->memory)[i] = (uint8_t)(i % 2);
  }
}

typedef struct op_call {
  quern_op *op;
  quern_plan *plan;
  array in[3], out;
  DLTensor *ins[3], *outs[1];
  int n_in;
} op_call;

static void fail(void) {
  fprintf(stderr, "quern-bench: %s\n", quern_last_error());
  exit(1);
}
static void run_op(void *arg) {
  op_call *c = arg;
  if (quern_op_call(c->op, c->n_in, c->ins, 1, c->outs, NULL)) fail();
}
static void run_plan(void *arg) {
  op_call *c = arg;
  void *in[3] = {c->in[0].t.data, c->in[1].t.data, c->in[2].t.data}, *out[1] = {c->out.t.data};
  if (quern_plan_run(c->plan, in, out, NULL)) fail();
}
static void run_typed_add(void *arg) {
  op_call *c = arg;
  if (quern_add(c->ins[0], c->ins[1], c->outs[0], NULL)) fail();
}

static quern_ctx *ctx;

static void setup(op_call *c, const char *op, int n_in) {
  if (quern_op_find(ctx, op, &c->op)) fail();
  c->plan = NULL;
  c->n_in = n_in;
  for (int k = 0; k < 3; k++) c->ins[k] = &c->in[k].t;
  c->outs[0] = &c->out.t;
}

static double bytes_of(const array *a) {
  double n = a->t.dtype.bits / 8.0;
  for (int d = 0; d < a->t.ndim; d++) n *= (double)a->shape[d];
  return n;
}

static void finish(op_call *c, const char *name) {
  double bytes = bytes_of(&c->out);
  for (int k = 0; k < c->n_in; k++) bytes += bytes_of(&c->in[k]);
  report(name, median_ns(run_op, c), bytes);
  for (int k = 0; k < c->n_in; k++) free(c->in[k].memory);
  free(c->out.memory);
  quern_op_release(c->op);
}

/* One op over contiguous operands of n elements. */
static void contiguous(const char *op, int n_in, const char *in_dtype, const char *out_dtype, int64_t n, const char *size_name) {
  char name[64];
  op_call c;
  snprintf(name, sizeof name, "%s_%s_%s", op, in_dtype, size_name);
  if (!is_wanted(name)) return;
  for (int k = 0; k < n_in; k++) array_make(&c.in[k], k == 0 && !strcmp(op, "where") ? "bool" : in_dtype, 1, n, 0, 0);
  array_make(&c.out, out_dtype, 1, n, 0, 0);
  setup(&c, op, n_in);
  finish(&c, name);
}

/* ---- What a person would write by hand ---- */

typedef struct loop { const float *x, *y; float *out; int64_t n; } loop;

static void run_plain_add(void *arg) {
  const loop *l = arg;
  for (int64_t i = 0; i < l->n; i++) l->out[i] = l->x[i] + l->y[i];
}

/* Streams both inputs and writes past the cache: the floor of an out-of-cache add. */
typedef float vec __attribute__((vector_size(32)));
__attribute__((target("avx2"))) static void run_streamed_add(void *arg) {
  const loop *l = arg;
  for (int64_t i = 0; i < l->n; i += 8) {
    vec sum = *(const vec *)(l->x + i) + *(const vec *)(l->y + i);
    __builtin_ia32_movntps256(l->out + i, sum);
  }
  __builtin_ia32_sfence();
}

static void hand_written(void) {
  loop l = {.n = 10000000};
  array x, y, out;
  if (!is_wanted("hand_add_f32_1e7") && !is_wanted("hand_streamed_add_f32_1e7")) return;
  array_make(&x, "f32", 1, l.n, 0, 0);
  array_make(&y, "f32", 1, l.n, 0, 0);
  array_make(&out, "f32", 1, l.n, 0, 0);
  l.x = x.t.data, l.y = y.t.data, l.out = out.t.data;
  report("hand_add_f32_1e7", median_ns(run_plain_add, &l), 12.0 * (double)l.n);
  if (__builtin_cpu_supports("avx2"))
    report("hand_streamed_add_f32_1e7", median_ns(run_streamed_add, &l), 12.0 * (double)l.n);
  free(x.memory), free(y.memory), free(out.memory);
}

/* ---- Cases ---- */

static void overhead(void) {
  op_call c;
  if (!is_wanted("call_8_prepared") && !is_wanted("call_8_op") && !is_wanted("call_8_typed")) return;
  for (int k = 0; k < 3; k++) array_make(&c.in[k], "f32", 1, 8, 0, 0);
  array_make(&c.out, "f32", 1, 8, 0, 0);
  setup(&c, "add", 2);
  if (quern_op_prepare(c.op, 2, c.ins, 1, c.outs, NULL, &c.plan)) fail();
  report("call_8_prepared", median_ns(run_plan, &c), 96);
  report("call_8_op", median_ns(run_op, &c), 96);
  report("call_8_typed", median_ns(run_typed_add, &c), 96);
  quern_plan_release(c.plan);
}

static void transposed(void) {
  op_call c;
  if (!is_wanted("transposed_add_3000")) return;
  for (int k = 0; k < 2; k++) array_make(&c.in[k], "f32", 2, 3000, 3000, 0);
  array_make(&c.out, "f32", 2, 3000, 3000, 0);
  c.in[0].strides[0] = 1, c.in[0].strides[1] = 3000;
  setup(&c, "add", 2);
  finish(&c, "transposed_add_3000");
}

/* [N, 3] + [3] and [N, 3, 3] + [3, 3] turned: small inner dimensions, broadcast. */
static void small_inner(void) {
  op_call c;
  if (is_wanted("rows3_add")) {
    array_make(&c.in[0], "f32", 2, 1000000, 3, 0);
    array_make(&c.in[1], "f32", 1, 3, 0, 0);
    array_make(&c.out, "f32", 2, 1000000, 3, 0);
    setup(&c, "add", 2);
    finish(&c, "rows3_add");
  }
  if (is_wanted("rows33_add")) {
    array_make(&c.in[0], "f32", 3, 300000, 3, 3);
    c.in[0].strides[1] = 1, c.in[0].strides[2] = 3; /* each 3 x 3 block transposed */
    array_make(&c.in[1], "f32", 2, 3, 3, 0);
    array_make(&c.out, "f32", 3, 300000, 3, 3);
    setup(&c, "add", 2);
    finish(&c, "rows33_add");
  }
}

static void sliced(void) {
  op_call c;
  if (!is_wanted("sliced_rows_add")) return;
  for (int k = 0; k < 2; k++) {
    array_make(&c.in[k], "f32", 2, 3000, 1024, 0);
    c.in[k].shape[1] = 1000;
  }
  array_make(&c.out, "f32", 2, 3000, 1000, 0);
  setup(&c, "add", 2);
  finish(&c, "sliced_rows_add");
}

static int first_call(double start) {
  op_call c;
  for (int k = 0; k < 2; k++) array_make(&c.in[k], "f32", 1, 8, 0, 0);
  array_make(&c.out, "f32", 1, 8, 0, 0);
  setup(&c, "add", 2);
  run_op(&c);
  report("first_op_in_process", now() - start, 96);
  return 0;
}

static long peak_kilobytes(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/* 10^8 u8 elements, mixed dtypes and a transposition, so that every block is in use. The caller's memory is touched
 * before, so that what is added is the library's. */
static int memory(void) {
  op_call c;
  array_make(&c.in[0], "u8", 2, 10000, 10000, 0);
  array_make(&c.in[1], "f16", 1, 10000, 0, 0);
  c.in[0].strides[0] = 1, c.in[0].strides[1] = 10000;
  array_make(&c.out, "f16", 2, 10000, 10000, 0);
  setup(&c, "add", 2);
  long before = peak_kilobytes();
  run_op(&c);
  report("memory_beyond_operands", 1024.0 * (double)(peak_kilobytes() - before), 0);
  return 0;
}

int main(int argc, char **argv) {
  double start = now();
  quern_options options = {.size = sizeof options, .threads = 1};
  const char *threads = getenv("QUERN_BENCH_THREADS");
  if (threads) options.threads = atoi(threads);
  if (quern_ctx_create(&options, &ctx)) fail();
  if (argc > 1 && !strcmp(argv[1], "--first")) return first_call(start);
  if (argc > 1 && !strcmp(argv[1], "--memory")) return memory();
  if (argc > 1) filter = argv[1];
  overhead();
  static const char *const unary[] = {"negative", "abs", "sqrt", "exp", "log", "tanh", "erf", "sigmoid", "relu", "gelu"};
  for (size_t k = 0; k < sizeof unary / sizeof unary[0]; k++) {
    contiguous(unary[k], 1, "f32", "f32", 100000, "1e5");
    contiguous(unary[k], 1, "f64", "f64", 100000, "1e5");
  }
  static const char *const binary[] = {"add", "multiply", "divide", "maximum", "pow"};
  for (size_t k = 0; k < sizeof binary / sizeof binary[0]; k++) {
    contiguous(binary[k], 2, "f32", "f32", 100000, "1e5");
    contiguous(binary[k], 2, "f64", "f64", 100000, "1e5");
  }
  contiguous("add", 2, "i32", "i32", 100000, "1e5");
  contiguous("add", 2, "u8", "u8", 100000, "1e5");
  contiguous("less", 2, "f32", "bool", 100000, "1e5");
  contiguous("where", 3, "f32", "f32", 100000, "1e5");
  contiguous("astype", 1, "f32", "f64", 100000, "1e5");
  contiguous("add", 2, "f16", "f16", 100000, "1e5");
  contiguous("add", 2, "bf16", "bf16", 100000, "1e5");
  contiguous("add", 2, "f32", "f32", 10000000, "1e7");
  contiguous("add", 2, "f16", "f16", 10000000, "1e7");
  contiguous("add", 2, "bf16", "bf16", 10000000, "1e7");
  contiguous("exp", 1, "f32", "f32", 10000000, "1e7");
  hand_written();
  transposed();
  small_inner();
  sliced();
  quern_ctx_release(ctx);
  return 0;
}
