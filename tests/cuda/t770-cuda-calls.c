/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full
 *
 * t770-cuda-calls: calls and plans on CUDA tensors as hosts make them: on any stream and from many threads, inside captures, on
 * several devices, with managed and pinned memory, of index ops, in forked children; what they leave as they found it, what they
 * refuse, what explain says. Where the driver is the fake one (on_device.h), its log tells which calls were made. */
#include "cuda/on_device.h"

/* ---- Vectors ---- */

enum { N = 1000 };

typedef struct vector {
  DLTensor t;
  int64_t n;
  float *at;  /* what the host has */
  char *there;
} vector;

static void vector_make_on(vector *v, int device, int64_t n, float first, float step) {
  *v = (vector){.n = n};
  v->at = malloc((size_t)n * 4);
  v->there = device_allocate((size_t)n * 4);
  for (int64_t i = 0; i < n; i++) v->at[i] = first + step * (float)i;
  device_write(v->there, v->at, (size_t)n * 4);
  v->t = (DLTensor){v->there, {kDLCUDA, device}, 1, {kDLFloat, 32, 1}, &v->n, NULL, 0};
}
static void vector_make(vector *v, float first, float step) { vector_make_on(v, 0, N, first, step); }

static void vector_free(vector *v) {
  device_free(v->there);
  free(v->at);
}

/* How many elements are not first + step i. Waits for the device. */
static int n_wrong(vector *v, float first, float step) {
  int n = 0;
  device_read(v->at, v->there, (size_t)v->n * 4);
  for (int64_t i = 0; i < v->n; i++) n += v->at[i] != first + step * (float)i;
  return n;
}

static quern_status call_of(quern_op *op, vector *a, vector *b, vector *out, void *stream) {
  DLTensor *in[2] = {&a->t, b ? &b->t : NULL}, *outs[1] = {&out->t};
  const quern_call call = {.size = sizeof call, .stream = stream};
  return quern_op_call(op, b ? 2 : 1, in, 1, outs, &call);
}

static quern_plan *plan_of(quern_op *op, vector *a, vector *b, vector *out, void *stream) {
  DLTensor *in[2] = {&a->t, b ? &b->t : NULL}, *outs[1] = {&out->t};
  const quern_call call = {.size = sizeof call, .stream = stream};
  quern_plan *plan = NULL;
  if (quern_op_prepare(op, b ? 2 : 1, in, 1, outs, &call, &plan)) bail("prepare: %s", quern_last_error());
  return plan;
}

static quern_status run_of(quern_plan *plan, vector *a, vector *b, vector *out, void *stream) {
  void *in[2] = {a->there, b ? b->there : NULL}, *outs[1] = {out->there};
  const quern_call call = {.size = sizeof call, .stream = stream};
  return quern_plan_run(plan, in, outs, &call);
}

/* It succeeds, and leaves the last error as it was. */
#define good(call, ...)                                                             \
  do {                                                                              \
    quern_set_last_error("kept");                                                   \
    const quern_status good_status = (call);                                        \
    const int good_kept = strcmp(quern_last_error(), "kept") == 0;                  \
    if (!ok(good_status == QUERN_OK && good_kept, __VA_ARGS__)) diag("%d: %s", good_status, quern_last_error()); \
  } while (0)

static quern_op *add;

/* ---- The fake driver's log ---- */

static void log_begin(void) {
  if (is_fake()) cuda.clear();
}

static int n_logged(const char *what) {
  int n = 0;
  for (const char *at = cuda.log(); (at = strstr(at, what)); at++) n++;
  return n;
}

/* Since log_begin: `launches` launches on that stream, each of blocks of 256 threads, and no call that waits or allocates. */
static void log_end(void *stream, int launches, const char *name) {
  char handle[40], wanted[60];
  if (!is_fake()) return;
  snprintf(handle, sizeof handle, ", 0, %p\n", stream);
  snprintf(wanted, sizeof wanted, "1 1, 256 1 1%s", handle);
  is_int(n_logged("cuLaunchKernel"), launches, "%s: so many launches", name);
  is_int(n_logged(wanted), launches, "  in rows of blocks of 256 on the stream");
  is_int(n_logged("Synchronize") + n_logged("cuMemAlloc") + n_logged("cuMemFree") + n_logged("cuMemcpy"), 0,
         "  nothing waits, allocates or copies");
}

/* ---- Streams ---- */

static void test_streams(void) {
  device_stream usual, apart;
  device_do(cuda.stream_create(&usual, 0));
  device_do(cuda.stream_create(&apart, DEVICE_NONBLOCKING));
  const struct { const char *name; void *stream; } all[] = {
      {"NULL", NULL}, {"legacy", (void *)1}, {"the thread's", (void *)2}, {"a stream", usual},
      {"one that is not blocked", apart}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    vector x, y, z;
    vector_make(&x, 1, 2), vector_make(&y, 3, 0), vector_make(&z, 0, 0);
    good(call_of(add, &x, &y, &z, all[i].stream), "add on %s", all[i].name);
    is_int(n_wrong(&z, 4, 2), 0, "  is right");
    log_begin();
    for (int k = 0; k < 20; k++) /* each needs what the one before has done */
      if (call_of(add, &z, &y, &z, all[i].stream)) fail("%s", quern_last_error());
    log_end(all[i].stream, 20, "20 more");
    is_int(n_wrong(&z, 64, 2), 0, "  in the order of the stream");
    quern_plan *plan = plan_of(add, &x, &y, &z, all[i].stream);
    log_begin();
    good(run_of(plan, &x, &y, &z, all[i].stream), "a plan on %s", all[i].name);
    log_end(all[i].stream, 1, "a run");
    if (is_fake() && i == 0) diag("one run is these calls:\n%s", cuda.log());
    is_int(n_wrong(&z, 4, 2), 0, "  is right");
    quern_plan_release(plan);
    vector_free(&x), vector_free(&y), vector_free(&z);
  }
  /* Ordered by an event between two streams. */
  vector x, y, z;
  device_event event;
  device_do(cuda.event_create(&event, 0));
  vector_make(&x, 1, 2), vector_make(&y, 3, 0), vector_make(&z, 0, 0);
  for (int k = 0; k < 10; k++) {
    good(call_of(add, &x, &y, &z, usual), "one stream");
    device_do(cuda.event_record(event, usual));
    device_do(cuda.stream_wait(apart, event, 0));
    good(call_of(add, &z, &y, &x, apart), "  another, after it");
    device_do(cuda.event_record(event, apart));
    device_do(cuda.stream_wait(usual, event, 0));
  }
  is_int(n_wrong(&x, 61, 2), 0, "streams that wait for one another");
  vector_free(&x), vector_free(&y), vector_free(&z);
  device_do(cuda.event_destroy(event));
  device_do(cuda.stream_destroy(usual));
  device_do(cuda.stream_destroy(apart));
}

static void test_sizes(void) {
  vector x, y, z;
  vector_make(&x, 1, 2), vector_make(&y, 3, 0), vector_make(&z, 0, 0);
  x.n = y.n = z.n = 0;
  log_begin();
  good(call_of(add, &x, &y, &z, NULL), "no elements");
  if (is_fake()) is_int(n_logged("cuLaunchKernel"), 0, "  no launch");
  for (int64_t n = 1; n < 40; n++) {
    x.n = y.n = z.n = n;
    if (call_of(add, &x, &y, &z, NULL)) fail("%s", quern_last_error());
  }
  if (is_fake()) is_int(n_kernels_loaded(), 0, "one kernel serves every size");
  is_int(n_wrong(&z, 4, 2), 0, "  is right");
  vector_free(&x), vector_free(&y), vector_free(&z);
}

/* ---- Threads ---- */

enum { N_THREADS = 8, N_TURNS = 40 };

typedef struct worker {
  quern_plan *plan; /* shared */
  quern_op *op;     /* shared, cold at the start */
  void *stream;
  vector x, y, z, w;
  const char *why;
  pthread_barrier_t *start;
} worker;

static void *work(void *arg) {
  worker *w = arg;
  device_context after = NULL;
  pthread_barrier_wait(w->start);
  w->why = NULL;
  if (call_of(w->op, &w->x, &w->y, &w->w, w->stream)) w->why = "the first call";
  for (int k = 0; k < N_TURNS && !w->why; k++)
    if (run_of(w->plan, &w->z, &w->y, &w->z, w->stream)) w->why = "a run";
  if (w->why) {
    diag("%s: %s", w->why, quern_last_error());
    return NULL;
  }
  if (cuda.context_get(&after) || after) w->why = "a context is current afterwards";
  return NULL;
}

static void test_threads(void) {
  static worker workers[N_THREADS];
  pthread_t threads[N_THREADS];
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_ASYNC});
  quern_op *cold = op_from(ctx, "x * y - 1");
  pthread_barrier_t start;
  pthread_barrier_init(&start, NULL, N_THREADS);
  quern_plan *plan = NULL;
  for (int i = 0; i < N_THREADS; i++) {
    worker *w = &workers[i];
    *w = (worker){.op = cold, .start = &start};
    if (i == 0) w->stream = (void *)2;
    else if (i == 1) w->stream = NULL;
    else device_do(cuda.stream_create(&w->stream, i & 1 ? DEVICE_NONBLOCKING : 0));
    vector_make(&w->x, (float)i, 1), vector_make(&w->y, 2, 0), vector_make(&w->z, (float)i, 1), vector_make(&w->w, 0, 0);
    if (!plan) plan = plan_of(add, &w->z, &w->y, &w->z, NULL);
    w->plan = plan;
  }
  log_begin();
  for (int i = 0; i < N_THREADS; i++) pthread_create(&threads[i], NULL, work, &workers[i]);
  for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
  if (is_fake()) is_int(n_kernels_loaded() - n_logged("Unload"), 1, "one kernel was kept for all threads");
  for (int i = 0; i < N_THREADS; i++) {
    worker *w = &workers[i];
    is_str(w->why ? w->why : "", "", "thread %d", i);
    is_int(n_wrong(&w->z, (float)(i + 2 * N_TURNS), 1) + n_wrong(&w->w, (float)(2 * i - 1), 2), 0, "  is right");
    vector_free(&w->x), vector_free(&w->y), vector_free(&w->z), vector_free(&w->w);
    if (i > 1) device_do(cuda.stream_destroy(w->stream));
  }
  quern_plan_release(plan);
  quern_op_release(cold);
  quern_ctx_release(ctx);
}

/* ---- Captures ---- */

static int capture_status(device_stream stream) {
  int status = -1;
  device_do(cuda.stream_is_capturing(stream, &status));
  return status;
}

static void test_captures(void) {
  static const char *const modes[] = {"global", "of the thread", "relaxed"};
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC});
  device_stream stream, other;
  device_do(cuda.stream_create(&stream, DEVICE_NONBLOCKING));
  device_do(cuda.stream_create(&other, DEVICE_NONBLOCKING));
  quern_op *op = op_from(ctx, "(x + y) * 2"), *cold[3];
  vector x, y, z, w;
  vector_make(&x, 1, 1), vector_make(&y, 2, 0), vector_make(&z, 0, 0), vector_make(&w, 0, 0);
  quern_plan *plan = plan_of(op, &x, &y, &z, stream);
  good(call_of(add, &z, &y, &w, stream), "a call before the capture");
  for (int mode = 0; mode < 3; mode++) {
    char text[40];
    device_graph graph = NULL, made = NULL;
    size_t n_nodes = 0;
    snprintf(text, sizeof text, "x - y * %d", mode + 3);
    cold[mode] = op_from(ctx, text);
    device_write(z.there, memset(z.at, 0, N * 4), N * 4);
    device_write(w.there, w.at, N * 4);
    device_do(cuda.capture_begin(stream, mode));
    good(run_of(plan, &x, &y, &z, stream), "a capture, %s: a plan is run", modes[mode]);
    good(call_of(add, &z, &y, &w, stream), "  a call with its kernel there");
    is_int(call_of(cold[mode], &x, &y, &z, stream), QUERN_E_CAPTURING, "  one without: CAPTURING");
    has_str(quern_last_error(), "captured", "  said");
    is_int(capture_status(stream), 1, "  the capture goes on");
    quern_plan *none = NULL;
    DLTensor *in[2] = {&x.t, &y.t}, *outs[1] = {&z.t};
    const quern_call call = {.size = sizeof call, .stream = stream};
    is_int(quern_op_prepare(cold[mode], 2, in, 1, outs, &call, &none), QUERN_E_CAPTURING, "  no plan of it either");
    is_int(capture_status(stream), 1, "  the capture goes on");
    good(call_of(cold[mode], &x, &y, &z, other), "  on a stream that is not captured it is compiled and loaded");
    is_int(capture_status(stream), 1, "  the capture goes on");
    char said[4096];
    DLTensor *sum_in[2] = {&z.t, &y.t}, *sum_out[1] = {&w.t};
    good(quern_op_explain(add, 2, sum_in, 1, sum_out, &call, said, sizeof said), "  a call is explained");
    is_int(capture_status(stream), 1, "  the capture goes on");
    good(run_of(plan, &z, &y, &z, stream), "  so that one more run goes into it");
    device_do(cuda.capture_end(stream, &graph));
    device_do(cuda.graph_nodes(graph, NULL, &n_nodes));
    is_int(n_nodes, 3, "  three kernels are in the graph");
    device_do(cuda.context_synchronize());
    device_write(z.there, memset(z.at, 0, N * 4), N * 4);
    device_write(w.there, w.at, N * 4);
    device_do(cuda.graph_make(&made, graph, 0));
    for (int turn = 0; turn < 3; turn++) {
      for (int i = 0; i < N; i++) x.at[i] = (float)(i * (turn + 1) + turn);
      device_write(x.there, x.at, N * 4);
      device_do(cuda.graph_launch(made, stream));
      const float first = (float)turn, step = (float)(turn + 1);
      is_int(n_wrong(&w, (first + 2) * 2 + 2, step * 2) + n_wrong(&z, ((first + 2) * 2 + 2) * 2, step * 4), 0,
             "  replayed with other data");
    }
    device_do(cuda.graph_unmake(made));
    device_do(cuda.graph_destroy(graph));
    good(call_of(cold[mode], &x, &y, &z, stream), "  after it the call is made");
    is_int(n_wrong(&z, 2 - 2 * (float)(mode + 3), 3), 0, "  and is right");
    quern_op_release(cold[mode]);
  }
  quern_plan_release(plan);
  quern_op_release(op);
  vector_free(&x), vector_free(&y), vector_free(&z), vector_free(&w);
  device_do(cuda.stream_destroy(stream));
  device_do(cuda.stream_destroy(other));
  quern_ctx_release(ctx);
}

/* ---- Memory of other kinds ---- */

static void test_memory(void) {
  vector x, z;
  uint64_t managed = 0;
  void *pinned = NULL;
  vector_make(&x, 1, 2), vector_make(&z, 0, 0);
  device_do(cuda.managed_allocate(&managed, N * 4, DEVICE_MANAGED_GLOBAL));
  device_do(cuda.pinned_allocate(&pinned, N * 4, 0));
  float *m = (float *)(uintptr_t)managed, *p = pinned;
  for (int i = 0; i < N; i++) m[i] = 3, p[i] = (float)i;
  DLTensor on_managed = x.t, on_pinned = x.t, *outs[1] = {&z.t};
  on_managed.data = m, on_managed.device = (DLDevice){kDLCUDAManaged, 0};
  on_pinned.data = p, on_pinned.device = (DLDevice){kDLCUDAHost, 0};
  DLTensor *in[2] = {&x.t, &on_managed};
  good(quern_op_call(add, 2, in, 1, outs, NULL), "managed memory joins a device's");
  is_int(n_wrong(&z, 4, 2), 0, "  is right");
  in[1] = &on_pinned;
  good(quern_op_call(add, 2, in, 1, outs, NULL), "pinned memory, too");
  is_int(n_wrong(&z, 1, 3), 0, "  is right");
  DLTensor *inputs[2] = {&x.t, &z.t}, *to_pinned[1] = {&on_pinned};
  good(quern_op_call(add, 2, inputs, 1, to_pinned, NULL), "the output is pinned");
  device_do(cuda.context_synchronize());
  int n = 0;
  for (int i = 0; i < N; i++) n += p[i] != (float)(2 + 5 * i);
  is_int(n, 0, "  is right");
  DLTensor *both[2] = {&on_managed, &on_pinned}, *to_managed[1] = {&on_managed};
  log_begin();
  good(quern_op_call(add, 2, both, 1, to_managed, NULL), "what the host can read is the CPU's, where nothing is a device's");
  for (int i = n = 0; i < N; i++) n += m[i] != (float)(5 + 5 * i);
  is_int(n, 0, "  is right");
  if (is_fake()) is_int(cuda.count("cuLaunchKernel"), 0, "  no launch");
  device_do(cuda.memory_free(managed));
  device_do(cuda.pinned_free(pinned));
  vector_free(&x), vector_free(&z);
}

/* A number that lies on the CPU is read when the call is made. */
static void test_host_values(void) {
  vector x, z;
  vector_make(&x, 1, 2), vector_make(&z, 0, 0);
  float number = 3;
  DLTensor scalar = {&number, {kDLCPU, 0}, 0, {kDLFloat, 32, 1}, NULL, NULL, 0}, *in[2] = {&x.t, &scalar}, *outs[1] = {&z.t};
  good(quern_op_call(add, 2, in, 1, outs, NULL), "a number on the CPU");
  number = 1e9f;
  is_int(n_wrong(&z, 4, 2), 0, "  is what it was when the call was made");
  quern_plan *plan = NULL;
  good(quern_op_prepare(add, 2, in, 1, outs, NULL, &plan), "a plan with one");
  void *ins[2] = {x.there, &number}, *to[1] = {z.there};
  number = 10;
  good(quern_plan_run(plan, ins, to, NULL), "  is run");
  number = 1e9f;
  is_int(n_wrong(&z, 11, 2), 0, "  with what the number is then");
  quern_plan_release(plan);
  vector_free(&x), vector_free(&z);
}

/* ---- Ops of indices ---- */

static void test_index_ops(void) {
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC});
  quern_op *arange = op_named(ctx, "arange");
  device_stream stream;
  device_graph graph = NULL;
  size_t n_nodes = 0;
  vector z;
  vector_make(&z, 0, 0);
  device_do(cuda.stream_create(&stream, DEVICE_NONBLOCKING));
  const quern_scalar five[2] = {scalar_i(5), scalar_f(-0.5)};
  const quern_call call = {.size = sizeof call, .stream = stream},
                   given = {.size = sizeof given, .stream = stream, .params = five, .n_params = 2};
  DLTensor *out[1] = {&z.t}, between = z.t, *wrong[1] = {&between};
  void *data[1] = {z.there}, *odd[1] = {z.there + 2};
  device_do(cuda.capture_begin(stream, DEVICE_CAPTURE_GLOBAL));
  is_int(quern_op_call(arange, 0, NULL, 1, out, &call), QUERN_E_CAPTURING, "indices without their kernel, in a capture");
  device_do(cuda.capture_end(stream, &graph));
  device_do(cuda.graph_destroy(graph));
  quern_plan *plan = NULL;
  good(quern_op_prepare(arange, 0, NULL, 1, out, &call, &plan), "a plan of indices");
  device_do(cuda.capture_begin(stream, DEVICE_CAPTURE_GLOBAL));
  good(quern_plan_run(plan, NULL, data, &given), "  a run of it with other parameters, in a capture");
  device_do(cuda.capture_end(stream, &graph));
  device_do(cuda.graph_nodes(graph, NULL, &n_nodes));
  is_int((int)n_nodes, 1, "  one kernel is in the graph");
  device_do(cuda.graph_destroy(graph));
  log_begin();
  good(quern_plan_run(plan, NULL, data, &call), "  a run of it");
  log_end(stream, 1, "  a run");
  is_int(n_wrong(&z, 0, 1), 0, "  is right");
  good(quern_plan_run(plan, NULL, data, &given), "  with other parameters");
  is_int(n_wrong(&z, 5, -0.5f), 0, "  is right");
  is_int(quern_plan_run(plan, NULL, odd, &call), QUERN_E_ALIGNMENT, "items between addresses of theirs: ALIGNMENT");
  has_str(quern_last_error(), "arange: output 1 (out): its address is no multiple of 4", "  said");
  odd[0] = NULL;
  is_int(quern_plan_run(plan, NULL, odd, &call), QUERN_E_ARGUMENT, "no data: ARGUMENT");
  good(quern_op_call(arange, 0, NULL, 1, out, &given), "a call");
  is_int(n_wrong(&z, 5, -0.5f), 0, "  is right");
  quern_plan_release(plan);

  char text[4096];
  size_t bytes = 1;
  good(quern_op_explain(arange, 0, NULL, 1, out, &call, text, sizeof text), "explained");
  has_str(text, "tier: nvrtc\n", "  the tier");
  has_str(text, " 1d bc\n", "  the kernel");
  good(quern_op_workspace(arange, 0, NULL, 1, out, &call, &bytes), "a workspace");
  is_int((int)bytes, 0, "  is not wanted");
  int64_t many = ((int64_t)1 << 33) + 3, shape[2] = {1000, 1000}, strides[2] = {1, (int64_t)1 << 32}, still[2] = {1, 0};
  between = (DLTensor){NULL, {kDLCUDA, 0}, 1, {kDLInt, 8, 1}, &many, NULL, 0};
  good(quern_op_explain(arange, 0, NULL, 1, wrong, &call, text, sizeof text), "more than 2^31 of them");
  has_str(text, " 1d bc i64\n", "  are counted in 64 bits");
  between.ndim = 2, between.shape = shape, between.strides = strides;
  good(quern_op_explain(arange, 0, NULL, 1, wrong, &call, text, sizeof text), "rows far apart");
  has_str(text, " 2d bc i64\n", "  likewise, and written in rows");
  between.data = z.there, between.strides = still;
  is_int(quern_op_call(arange, 0, NULL, 1, wrong, &call), QUERN_E_OVERLAP, "an output that meets itself: OVERLAP");
  device_do(cuda.stream_destroy(stream));
  vector_free(&z);
  quern_op_release(arange);
  quern_ctx_release(ctx);
}

/* ---- What is left as it was ---- */

/* What a call gave, and whether this context is current after it. */
static struct { device_context context; int n_status, n_moved; } left;
static void leave(quern_status got, quern_status wanted) {
  device_context now = NULL;
  device_do(cuda.context_get(&now));
  left.n_status += got != wanted;
  left.n_moved += now != left.context;
}

/* Calls that succeed and calls that fail, with this context current. */
static void leaves(device_context context, const char *name) {
  vector x, y, z;
  device_do(cuda.context_set(cuda.contexts[0]));
  vector_make(&x, 1, 2), vector_make(&y, 3, 0), vector_make(&z, 0, 0);
  DLTensor *in[2] = {&x.t, &y.t}, *outs[1] = {&z.t}, wrong = z.t, *wrongs[1] = {&wrong};
  char text[8192];
  quern_plan *plan = NULL;
  device_do(cuda.context_set(context));
  left.context = context, left.n_status = left.n_moved = 0;
  leave(quern_op_call(add, 2, in, 1, outs, NULL), QUERN_OK);
  leave(quern_op_prepare(add, 2, in, 1, outs, NULL, &plan), QUERN_OK);
  leave(run_of(plan, &x, &y, &z, NULL), QUERN_OK);
  leave(quern_op_explain(add, 2, in, 1, outs, NULL, text, sizeof text), QUERN_OK);
  wrong.device.device_id = 99;
  leave(quern_op_call(add, 2, in, 1, wrongs, NULL), QUERN_E_DEVICE);
  wrong.device = (DLDevice){kDLCPU, 0};
  leave(quern_op_call(add, 2, in, 1, wrongs, NULL), QUERN_E_DEVICE);
  wrong = z.t, wrong.dtype = (DLDataType){kDLInt, 32, 1};
  leave(quern_op_call(add, 2, in, 1, wrongs, NULL), QUERN_E_DTYPE);
  wrong = x.t, wrong.data = x.there + 4;
  leave(quern_op_call(add, 2, in, 1, wrongs, NULL), QUERN_E_OVERLAP);
  is_int(left.n_status, 0, "%s: calls do what they do", name);
  is_int(left.n_moved, 0, "  and it stays so");
  device_do(cuda.context_set(cuda.contexts[0]));
  is_int(n_wrong(&z, 4, 2), 0, "  the results are right");
  quern_plan_release(plan);
  vector_free(&x), vector_free(&y), vector_free(&z);
}

static void test_left_alone(void) {
  leaves(cuda.contexts[0], "its context is current");
  leaves(NULL, "no context is current");
  if (cuda.n_devices > 1) leaves(cuda.contexts[1], "another device's context is current");
  else skip(1, "there is one device only");
}

static void test_two_devices(void) {
  if (cuda.n_devices < 2) {
    skip(1, "there is one device only");
    return;
  }
  vector x, y, z, far_x, far_y, far_z;
  device_stream near_stream, far_stream;
  vector_make(&x, 1, 2), vector_make(&y, 3, 0), vector_make(&z, 0, 0);
  device_do(cuda.stream_create(&near_stream, 0));
  device_do(cuda.context_set(cuda.contexts[1]));
  vector_make_on(&far_x, 1, N, 1, 2), vector_make_on(&far_y, 1, N, 5, 0), vector_make_on(&far_z, 1, N, 0, 0);
  device_do(cuda.stream_create(&far_stream, 0));
  device_do(cuda.context_set(cuda.contexts[0]));
  good(call_of(add, &far_x, &far_y, &far_z, NULL), "tensors of the second device");
  good(call_of(add, &x, &y, &z, NULL), "  and of the first");
  good(call_of(add, &far_x, &far_y, &far_z, far_stream), "  on a stream of the second");
  is_int(call_of(add, &far_x, &far_y, &far_z, near_stream), QUERN_E_DEVICE, "on a stream of the first: DEVICE");
  is_int(call_of(add, &x, &far_y, &z, NULL), QUERN_E_DEVICE, "tensors of both: DEVICE");
  is_int(n_wrong(&z, 4, 2), 0, "the first is right");
  device_do(cuda.context_set(cuda.contexts[1]));
  is_int(n_wrong(&far_z, 6, 2), 0, "the second, too");
  device_do(cuda.stream_destroy(far_stream));
  vector_free(&far_x), vector_free(&far_y), vector_free(&far_z);
  device_do(cuda.context_set(cuda.contexts[0]));
  device_do(cuda.stream_destroy(near_stream));
  vector_free(&x), vector_free(&y), vector_free(&z);
}

/* ---- Lives ---- */

static void test_lives(void) {
  vector x, y, z;
  vector_make(&x, 1, 2), vector_make(&y, 3, 0), vector_make(&z, 0, 0);
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC});
  quern_op *op = op_from(ctx, "x * y + x");
  log_begin();
  quern_plan *plan = plan_of(op, &x, &y, &z, NULL);
  if (is_fake()) is_int(n_kernels_loaded(), 1, "a plan has loaded its kernel");
  quern_op_release(op);
  quern_ctx_release(ctx);
  log_begin();
  good(run_of(plan, &x, &y, &z, NULL), "a plan outlives its op and its context");
  if (is_fake()) is_int(n_kernels_loaded(), 0, "  and loads nothing");
  is_int(n_wrong(&z, 4, 8), 0, "  is right");
  log_begin();
  quern_plan_release(plan);
  if (is_fake()) is_int(n_logged("Unload"), 0, "  a kernel that may be on its way is not unloaded");
  vector_free(&x), vector_free(&y), vector_free(&z);
}

/* ---- Ops of specs and of hosts ---- */

static int n_host_calls;
static quern_status host_call(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                              const quern_call *call) {
  (void)self, (void)n_in, (void)n_out, (void)out, (void)call;
  if (in[0]->device.device_type != kDLCUDA) return QUERN_E_DEVICE;
  n_host_calls++;
  if (in[0]->shape[0] != N) return QUERN_OK;
  quern_set_last_error("not for so many");
  return QUERN_E_LAYOUT;
}

static void test_other_ops(void) {
  vector x, z;
  operand host_x = {0}, host_z = {0};
  const int64_t n = N;
  rng r;
  rng_seed(&r, 771);
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC});
  vector_make(&x, -3, 0.01f), vector_make(&z, 0, 0);
  if (load_spec(ctx, "shop", "unary \"shop.swish\" { doc = \"d\", params = { k = 1.5 }, dtypes = floating,\n"
                             "  body = [[ x * sigmoid(k * x) ]] }")) bail("%s", quern_last_error());
  quern_op *op = op_named(ctx, "shop.swish");
  operand_make(&host_x, REF_F32, 1, &n, NULL, &r), operand_make(&host_z, REF_F32, 1, &n, NULL, &r);
  memcpy(host_x.t.data, x.at, N * 4);
  DLTensor *in = &x.t, *out = &z.t, *host_in = &host_x.t, *host_out = &host_z.t;
  good(quern_op_call(op, 1, &host_in, 1, &host_out, NULL), "an op of a spec on the CPU");
  good(quern_op_call(op, 1, &in, 1, &out, NULL), "  and on the device");
  device_read(z.at, z.there, N * 4);
  ok(memcmp(z.at, host_z.t.data, N * 4) == 0, "  the bytes are the same");
  quern_op_release(op);
  /* A host's function is asked first, and may decline. */
  const quern_op_def def = {.size = sizeof def, .name = "sqrt", .n_in = 1, .n_out = 1, .call = host_call};
  if (quern_op_register(ctx, &def)) bail("%s", quern_last_error());
  op = op_named(ctx, "sqrt");
  for (int i = 0; i < N; i++) x.at[i] = (float)i * (float)i;
  device_write(x.there, x.at, N * 4);
  good(quern_op_call(op, 1, &in, 1, &out, NULL), "a host's function that declines");
  is_int(n_host_calls, 1, "  was asked");
  is_int(n_wrong(&z, 0, 1), 0, "  the library's own kernel serves");
  x.n = z.n = 10;
  device_write(z.there, memset(z.at, 0, N * 4), N * 4);
  good(quern_op_call(op, 1, &in, 1, &out, NULL), "a host's function that serves");
  is_int(n_host_calls, 2, "  was asked");
  is_int(n_wrong(&z, 0, 0), 0, "  and nothing else was done");
  x.n = z.n = N;
  if (is_fake()) { /* what the library's own could do does not matter where the host's serves */
    char text[2000];
    cuda.plan("cuCtxGetCurrent:1+:UNKNOWN");
    good(quern_op_explain(op, 1, &in, 1, &out, NULL, text, sizeof text), "a host's op is explained while the driver fails");
    has_str(text, "otherwise: sqrt: cuda:0: cuCtxGetCurrent", "  which is said");
    cuda.plan("");
  }
  quern_op_release(op);
  quern_ctx_release(ctx);
  operand_free(&host_x), operand_free(&host_z);
  vector_free(&x), vector_free(&z);
}

/* ---- Forks ---- */

static int in_a_child(void *arg) {
  vector *v = arg;
  float a[4] = {1, 2, 3, 4}, b[4] = {0};
  int64_t n = 4;
  DLTensor x = {a, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0}, y = x, *in[2] = {&x, &x}, *out = &y;
  y.data = b;
  if (call_of(add, &v[0], &v[1], &v[2], NULL) != QUERN_E_DEVICE) return 1;
  if (!strstr(quern_last_error(), "forked")) return 2;
  if (quern_op_call(add, 2, in, 1, &out, NULL) || b[3] != 8) return 3;
  return 0;
}

static void test_forks(void) {
  vector v[3];
  for (int i = 0; i < 3; i++) vector_make(&v[i], 1, 2);
  is_int(in_child(in_a_child, v), 0, "a forked child: no CUDA, and it says why; the CPU's calls go on");
  good(call_of(add, &v[0], &v[1], &v[2], NULL), "  the parent goes on");
  is_int(n_wrong(&v[2], 2, 4), 0, "  and is right");
  for (int i = 0; i < 3; i++) vector_free(&v[i]);
}

/* ---- Refusals, modes, words ---- */

static void test_modes(void) {
  vector x, y, z;
  vector_make(&x, 1, 2), vector_make(&y, 3, 0), vector_make(&z, 0, 0);
  DLTensor *in[2] = {&x.t, &y.t}, *outs[1] = {&z.t};
  char text[8192] = "";
  quern_ctx *off = ctx_with((quern_options){.jit = QUERN_JIT_OFF}), *later = ctx_with((quern_options){.jit = QUERN_JIT_ASYNC});
  quern_op *op = op_from(off, "x - y");
  is_int(quern_op_call(op, 2, in, 1, outs, NULL), QUERN_E_COMPILER, "compiling is off: COMPILER");
  has_str(quern_last_error(), "compiling at run time is off", "  said");
  is_int(n_wrong(&z, 0, 0), 0, "  nothing is written");
  good(quern_op_explain(op, 2, in, 1, outs, NULL, text, sizeof text), "  it can be explained");
  is_str(line_of(text, "tier"), "none", "  nothing serves");
  has_str(line_of(text, "reason"), "off", "  for that reason");
  quern_op_release(op);
  op = op_from(later, "x - y");
  good(quern_op_call(op, 2, in, 1, outs, NULL), "asynchronous: the call waits");
  is_int(n_wrong(&z, -2, 2), 0, "  is right");
  good(quern_op_explain(op, 2, in, 1, outs, NULL, text, sizeof text), "  explained");
  diag("%s", text);
  is_str(line_of(text, "tier"), "nvrtc", "  tier");
  has_str(line_of(text, "variant"), " 1d ccc", "  variant");
  is_str(line_of(text, "path"), "cuda", "  path");
  has_str(line_of(text, "device"), "cuda:0, ", "  device");
  is_str(line_of(text, "block"), "256 x 1", "  block");
  ok(atoi(line_of(text, "grid")) == 1, "  grid: 1000 elements are one block's: %s", line_of(text, "grid"));
  is_str(line_of(text, "slot"), "4", "  slot");
  is_str(line_of(text, "spills"), "0", "  spills");
  is_str(line_of(text, "streamed"), "no", "  streamed");
  is_str(line_of(text, "compiles"), "1", "  compiles");
  quern_op_release(op);
  quern_ctx_release(off);
  quern_ctx_release(later);
  vector_free(&x), vector_free(&y), vector_free(&z);
}

static void test_refusals(void) {
  vector x, y, z;
  vector_make(&x, 1, 2), vector_make(&y, 3, 0), vector_make(&z, 0, 0);
  operand host = {0};
  rng r;
  rng_seed(&r, 770);
  operand_vector(&host, REF_F32, N, &r);
  DLTensor *in[2] = {&x.t, &host.t}, *outs[1] = {&z.t};
  is_int(quern_op_call(add, 2, in, 1, outs, NULL), QUERN_E_DEVICE, "a vector on the CPU: DEVICE");
  has_str(quern_last_error(), "input 2 (y)", "  which");
  in[1] = &y.t;
  const uint64_t read_only = 1;
  const quern_call call = {.size = sizeof call, .out_flags = &read_only};
  is_int(quern_op_call(add, 2, in, 1, outs, &call), QUERN_E_READONLY, "an output that is read-only");
  z.t.data = x.there + 4, z.n = x.n = y.n = N - 1;
  is_int(quern_op_call(add, 2, in, 1, outs, NULL), QUERN_E_OVERLAP, "an output over an input");
  z.t.data = z.there, z.n = x.n = y.n = N;
  if (is_fake()) {
    cuda.plan("cuLaunchKernel:1:LAUNCH_OUT_OF_RESOURCES");
    is_int(call_of(add, &x, &y, &z, NULL), QUERN_E_DRIVER, "a launch that fails: DRIVER");
    has_str(quern_last_error(), "LAUNCH_OUT_OF_RESOURCES", "  said");
    cuda.plan("");
    is_int(call_of(add, &x, &y, &z, NULL), QUERN_OK, "  the next is made");
  }
  is_int(n_wrong(&x, 1, 2) + n_wrong(&y, 3, 0), 0, "inputs are as they were");
  /* Items that do not lie at multiples of their size, which no load of CUDA's can read: in a broken context nothing would
   * work any more. */
  x.n = y.n = z.n = N - 1;
  x.t.data = x.there + 1;
  quern_plan *plan = plan_of(add, &y, &y, &z, NULL);
  void *between[2] = {x.there + 1, y.there}, *to[1] = {z.there};
  is_int(call_of(add, &x, &y, &z, NULL), QUERN_E_ALIGNMENT, "items between addresses of theirs: ALIGNMENT");
  has_str(quern_last_error(), "input 1 (x)", "  which");
  is_int(quern_plan_run(plan, between, to, NULL), QUERN_E_ALIGNMENT, "  a run likewise");
  quern_plan_release(plan);
  x.n = y.n = z.n = N;
  x.t.data = x.there;
  good(call_of(add, &x, &y, &z, NULL), "  the device works on");
  operand_free(&host);
  vector_free(&x), vector_free(&y), vector_free(&z);
}

int main(void) {
  device_begin();
  add = op_named(NULL, "add");
  test_streams();
  test_sizes();
  test_threads();
  test_captures();
  test_memory();
  test_host_values();
  test_index_ops();
  test_left_alone();
  test_two_devices();
  test_lives();
  test_other_ops();
  test_forks();
  test_modes();
  test_refusals();
  quern_op_release(add);
  return done_testing();
}
