/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t240-errors: every status code that this version can give, with its sentence; hostile descriptors; struct sizes. After
 * each refusal: outputs untouched, out-parameters hold nothing, the sentence names op and argument. */
#include <pthread.h>

#include "tensors.h"

/* A good call of add on f32[4], to be spoilt. */
static float x_data[64], y_data[64], out_data[64];
static int64_t shape_x[40], shape_y[40], shape_out[40], strides_x[40], strides_y[40], strides_out[40];
static DLTensor x, y, out, *ins[4] = {&x, &y, &x, &y}, *outs[2] = {&out, &out};

static void set_tensor(DLTensor *t, void *data, int64_t *shape, int64_t *strides) {
  memset(t, 0, sizeof *t);
  t->data = data;
  t->device.device_type = kDLCPU;
  t->dtype = ref_dtype_dl(REF_F32);
  t->ndim = 1;
  t->shape = shape;
  t->strides = strides;
  for (int i = 0; i < 40; i++) shape[i] = strides[i] = 1;
  shape[0] = 4;
}

static void reset(void) {
  set_tensor(&x, x_data, shape_x, strides_x);
  set_tensor(&y, y_data, shape_y, strides_y);
  set_tensor(&out, out_data, shape_out, strides_out);
  for (int i = 0; i < 64; i++) {
    x_data[i] = y_data[i] = (float)i;
    out_data[i] = -77;
  }
}

static int untouched(void) {
  int good = 1;
  for (int i = 0; i < 64; i++) good &= out_data[i] == -77;
  return good;
}

/* The spoilt call is refused by call, prepare, and explain alike; every part of `words` (separated by '|') is in the
 * sentence. Then the stage is reset. */
static void refused(ref_op op, int n_in, int n_out, const quern_call *call, quern_status wanted, const char *words,
                    const char *name) {
  quern_plan *plan = (quern_plan *)&plan;
  char text[2048], sentence[1200], part[200];
  quern_set_last_error("stale");
  quern_status s = quern_op_call(the_op(op), n_in, ins, n_out, outs, call);
  snprintf(sentence, sizeof sentence, "%s", quern_last_error());
  int good = ok(s == wanted, "%s: %s", name, status_name(wanted));
  if (!good) diag("got %s: %s", status_name(s), sentence);
  for (const char *w = words; *w;) {
    size_t n = strcspn(w, "|");
    snprintf(part, sizeof part, "%.*s", (int)n, w);
    if (!has_str(sentence, part, "  %s: the sentence has `%s`", name, part)) good = 0;
    w += n + (w[n] == '|');
  }
  ok(untouched(), "  %s: output untouched", name);
  is_int(quern_op_prepare(the_op(op), n_in, ins, n_out, outs, call, &plan), wanted, "  %s: prepare", name);
  ok(plan == (quern_plan *)&plan || plan == NULL, "  %s: no plan to release", name);
  is_int(quern_op_explain(the_op(op), n_in, ins, n_out, outs, call, text, sizeof text), wanted, "  %s: explain", name);
  reset();
}

#define ADD(wanted, words, name) refused(REF_ADD, 2, 1, NULL, wanted, words, name)

static void test_counts(void) {
  refused(REF_ADD, 1, 1, NULL, QUERN_E_ARGUMENT, "add|2|1", "one input of two");
  refused(REF_ADD, 3, 1, NULL, QUERN_E_ARGUMENT, "add|2|3", "three inputs of two");
  refused(REF_ADD, 0, 1, NULL, QUERN_E_ARGUMENT, "add", "no input");
  refused(REF_ADD, -1, 1, NULL, QUERN_E_ARGUMENT, "add", "minus one input");
  refused(REF_ADD, INT32_MAX, 1, NULL, QUERN_E_ARGUMENT, "add", "2^31 - 1 inputs");
  refused(REF_ADD, 2, 0, NULL, QUERN_E_ARGUMENT, "add", "no output");
  refused(REF_ADD, 2, 2, NULL, QUERN_E_ARGUMENT, "add", "two outputs");
  refused(REF_ADD, 2, INT32_MIN, NULL, QUERN_E_ARGUMENT, "add", "-2^31 outputs");
  DLTensor *keep = ins[1];
  ins[1] = NULL;
  ADD(QUERN_E_ARGUMENT, "add: input 2", "a NULL input");
  ins[1] = keep;
  outs[0] = NULL;
  ADD(QUERN_E_ARGUMENT, "add: output 1", "a NULL output");
  outs[0] = &out;

  quern_plan *plan = NULL;
  size_t bytes = 7;
  char text[64];
  quern_shape shape = {.size = sizeof shape};
  is_int(quern_op_call(NULL, 2, ins, 1, outs, NULL), QUERN_E_ARGUMENT, "call without an op");
  is_int(quern_op_call(the_op(REF_ADD), 2, NULL, 1, outs, NULL), QUERN_E_ARGUMENT, "call without inputs");
  is_int(quern_op_call(the_op(REF_ADD), 2, ins, 1, NULL, NULL), QUERN_E_ARGUMENT, "call without outputs");
  is_int(quern_op_prepare(NULL, 2, ins, 1, outs, NULL, &plan), QUERN_E_ARGUMENT, "prepare without an op");
  is_int(quern_op_prepare(the_op(REF_ADD), 2, ins, 1, outs, NULL, NULL), QUERN_E_ARGUMENT, "prepare without a plan");
  is_int(quern_plan_run(NULL, NULL, NULL, NULL), QUERN_E_ARGUMENT, "run without a plan");
  is_int(quern_op_infer(NULL, 2, ins, 1, &shape), QUERN_E_ARGUMENT, "infer without an op");
  is_int(quern_op_infer(the_op(REF_ADD), 2, ins, 1, NULL), QUERN_E_ARGUMENT, "infer without a shape");
  is_int(quern_op_workspace(the_op(REF_ADD), 2, ins, 1, outs, NULL, NULL), QUERN_E_ARGUMENT, "workspace without bytes");
  is_int(quern_op_workspace(NULL, 2, ins, 1, outs, NULL, &bytes), QUERN_E_ARGUMENT, "workspace without an op");
  is_int(quern_op_explain(the_op(REF_ADD), 2, ins, 1, outs, NULL, NULL, 100), QUERN_E_ARGUMENT, "explain without text");
  is_int(quern_op_explain(NULL, 2, ins, 1, outs, NULL, text, sizeof text), QUERN_E_ARGUMENT, "explain without an op");
  is_int(quern_op_find(NULL, "add", NULL), QUERN_E_ARGUMENT, "find without an op");
  quern_op *op = NULL;
  is_int(quern_op_find(NULL, NULL, &op), QUERN_E_ARGUMENT, "find without a name");
  is_int(quern_op_at(NULL, 0, NULL), QUERN_E_ARGUMENT, "at without an op");
  is_int(quern_op_register(NULL, NULL), QUERN_E_ARGUMENT, "register without a definition");
  is_int(quern_ctx_create(NULL, NULL), QUERN_E_ARGUMENT, "create without a context");
  ok(quern_op_describe(NULL) == NULL, "describe without an op");
  quern_op_release(NULL);
  quern_plan_release(NULL);
  quern_ctx_release(NULL);
  pass("release of NULL is allowed");
}

static void test_dtypes(void) {
  static const struct {
    DLDataType dtype;
    const char *name;
  } bad[] = {
      {{2, 32, 2}, "lanes 2"}, {{2, 32, 0}, "lanes 0"}, {{2, 32, 65535}, "lanes 65535"}, {{2, 8, 1}, "float of 8 bits"},
      {{2, 128, 1}, "float of 128 bits"},
      {{1, 4, 1}, "uint of 4 bits"}, {{0, 4, 1}, "int of 4 bits"}, {{0, 0, 1}, "int of 0 bits"}, {{6, 1, 1}, "bool of one bit"},
      {{6, 16, 1}, "bool of 16 bits"}, {{3, 64, 1}, "opaque handle"}, {{17, 4, 1}, "float4"}, {{15, 6, 1}, "float6"},
      {{200, 32, 1}, "unknown code"}, {{255, 255, 65535}, "all bits"},
      {{4, 32, 1}, "bfloat of 32 bits"}, {{0, 33, 1}, "int of 33 bits"},
      {{5, 64, 1}, "c64"}, {{5, 128, 1}, "c128"}, {{12, 8, 1}, "f8_e5m2"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    y.dtype = bad[i].dtype;
    ADD(QUERN_E_DTYPE, "add: input 2", bad[i].name);
    out.dtype = bad[i].dtype;
    ADD(QUERN_E_DTYPE, "add: output 1", bad[i].name);
  }
  x.dtype = ref_dtype_dl(REF_U64), y.dtype = ref_dtype_dl(REF_I8);
  ADD(QUERN_E_DTYPE, "add: input 2 (y)|i8|u64", "integers without a common dtype: both are named");
  x.dtype = y.dtype = ref_dtype_dl(REF_F32);
  out.dtype = ref_dtype_dl(REF_I32);
  ADD(QUERN_E_DTYPE, "add|i32|f32", "float into integer: both are named");
  x.dtype = y.dtype = out.dtype = ref_dtype_dl(REF_BOOL);
  ADD(QUERN_E_DTYPE, "add|bool", "bool and bool");

  /* The bool of before DLPack 0.8: a byte each, said to be a uint of one bit. */
  unsigned char old_bools[4] = {0, 1, 2, 255};
  x.data = old_bools;
  x.dtype = (DLDataType){1, 1, 1};
  is_int(quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL), QUERN_OK, "a uint of one bit is a bool");
  ok(out_data[0] == 0 && out_data[1] == 2 && out_data[2] == 3 && out_data[3] == 4, "and read as such");
  reset();
}

static void test_shapes(void) {
  shape_y[0] = 3;
  ADD(QUERN_E_SHAPE, "add|input 2|3|4", "4 with 3");
  shape_out[0] = 3;
  ADD(QUERN_E_SHAPE, "add|output 1|4", "output too small");
  shape_out[0] = 5;
  ADD(QUERN_E_SHAPE, "add|output 1", "output too large");
  shape_x[0] = shape_y[0] = 1;
  ADD(QUERN_E_SHAPE, "output 1", "output larger than the broadcast");
  shape_out[0] = 1;
  ADD(QUERN_E_SHAPE, "output 1", "output that would have to broadcast");
  out.ndim = 2;
  shape_out[0] = 1;
  shape_out[1] = 4;
  ADD(QUERN_E_SHAPE, "output 1", "output of one dimension more");
  out.ndim = 0;
  ADD(QUERN_E_SHAPE, "output 1", "output of rank 0");
  shape_y[0] = 0;
  ADD(QUERN_E_SHAPE, "add", "4 with 0");
  shape_x[0] = -1;
  ADD(QUERN_E_SHAPE, "add: input 1", "extent -1");
  shape_out[0] = INT64_MIN;
  ADD(QUERN_E_SHAPE, "add: output 1", "extent -2^63");
  x.ndim = 2;
  shape_x[0] = 0;
  shape_x[1] = -4;
  ADD(QUERN_E_SHAPE, "add: input 1", "extent -4 beside 0");
}

static void test_layouts(void) {
  x.ndim = -1;
  ADD(QUERN_E_ARGUMENT, "add: input 1", "rank -1");
  out.ndim = INT32_MIN;
  ADD(QUERN_E_ARGUMENT, "add: output 1", "rank -2^31");
  x.ndim = 33;
  ADD(QUERN_E_LAYOUT, "add: input 1|33|32", "rank 33");
  y.ndim = INT32_MAX;
  ADD(QUERN_E_LAYOUT, "add: input 2", "rank 2^31 - 1");
  x.shape = NULL;
  ADD(QUERN_E_ARGUMENT, "add: input 1", "no shape");
  out.shape = NULL;
  ADD(QUERN_E_ARGUMENT, "add: output 1", "output without shape");
  /* Only where data is touched: preparing and explaining need none. */
  x.data = NULL;
  is_int(quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL), QUERN_E_ARGUMENT, "data NULL in a tensor with elements");
  has_str(quern_last_error(), "add: input 1", "  the sentence names it");
  ok(untouched(), "  output untouched");
  reset();
  out.data = NULL;
  is_int(quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL), QUERN_E_ARGUMENT, "output data NULL");
  has_str(quern_last_error(), "add: output 1", "  the sentence names it");
  reset();
}

/* Extents and strides that reach beyond all addresses. No kernel may start. */
static void test_overflow(void) {
  static const int64_t huge[] = {INT64_MAX, INT64_MAX / 2, INT64_MAX / 4, (int64_t)1 << 62, (int64_t)1 << 61};
  for (int i = 0; i < 5; i++) {
    /* All operands agree; inputs repeat one element. */
    shape_x[0] = shape_y[0] = shape_out[0] = huge[i];
    strides_x[0] = strides_y[0] = 0;
    char name[80];
    snprintf(name, sizeof name, "extent %" PRId64, huge[i]);
    quern_status s = quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL);
    ok(s == QUERN_E_SHAPE || s == QUERN_E_LAYOUT || s == QUERN_E_LIMIT, "%s: refused: %s", name, status_name(s));
    ok(untouched(), "  %s: output untouched", name);
    reset();
  }
  /* Without data there is no limit but 2^63 elements: the largest that can be prepared, and one more kind of refusal. */
  static const int64_t large[] = {(int64_t)1 << 59, ((int64_t)1 << 59) - 1, INT64_MAX, (int64_t)1 << 62};
  for (int i = 0; i < 4; i++) {
    quern_plan *plan = NULL;
    char text[2048];
    shape_x[0] = shape_y[0] = shape_out[0] = large[i];
    strides_x[0] = strides_y[0] = 0;
    strides_out[0] = i < 2;
    x.data = y.data = out.data = NULL;
    is_int(quern_op_explain(the_op(REF_ADD), 2, ins, 1, outs, NULL, text, sizeof text), QUERN_OK,
           "%" PRId64 " elements without data: explained", large[i]);
    ok(i >= 2 || strstr(text, "streamed: yes"), "  streamed");
    quern_status s = quern_op_prepare(the_op(REF_ADD), 2, ins, 1, outs, NULL, &plan);
    is_int(s, i < 2 ? QUERN_OK : QUERN_E_OVERLAP, "  %s", i < 2 ? "prepared" : "an output all in one place: OVERLAP");
    quern_plan_release(plan);
    reset();
  }
  /* Products beyond 2^63. */
  x.ndim = y.ndim = out.ndim = 4;
  for (int i = 0; i < 4; i++) {
    shape_x[i] = shape_y[i] = shape_out[i] = (int64_t)1 << 17;
    strides_x[i] = strides_y[i] = 0;
  }
  quern_status s = quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL);
  ok(s == QUERN_E_SHAPE || s == QUERN_E_LAYOUT || s == QUERN_E_LIMIT, "2^68 elements: refused: %s", status_name(s));
  reset();
  /* The same with a zero among them is empty, and nothing is touched. */
  x.ndim = y.ndim = out.ndim = 5;
  for (int i = 0; i < 5; i++) shape_x[i] = shape_y[i] = shape_out[i] = i == 4 ? 0 : (int64_t)1 << 17;
  x.strides = y.strides = out.strides = NULL;
  is_int(quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL), QUERN_OK, "2^68 * 0 elements are none");
  ok(untouched(), "  output untouched");
  reset();

  static const int64_t steps[] = {INT64_MAX, INT64_MIN, INT64_MAX / 4, INT64_MIN / 4, INT64_MAX / 3, (int64_t)1 << 61,
                                  (int64_t)1 << 60};
  for (int who = 0; who < 3; who++) {
    for (int i = 0; i < 7; i++) {
      (who == 0 ? strides_x : who == 1 ? strides_y : strides_out)[0] = steps[i];
      s = quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL);
      ok(s == QUERN_E_LAYOUT, "stride %" PRId64 " of operand %d: LAYOUT", steps[i], who + 1);
      if (s != QUERN_E_LAYOUT) diag("%s: %s", status_name(s), quern_last_error());
      ok(untouched(), "  output untouched");
      reset();
    }
  }
  /* An offset that leaves the address space, alone and together with strides. */
  x.byte_offset = UINT64_MAX;
  s = quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL);
  ok(s == QUERN_E_LAYOUT, "byte_offset 2^64 - 1: LAYOUT, got %s", status_name(s));
  reset();
  out.byte_offset = UINT64_MAX - 7;
  s = quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL);
  ok(s == QUERN_E_LAYOUT, "byte_offset 2^64 - 8 of the output: LAYOUT, got %s", status_name(s));
  ok(untouched(), "  output untouched");
  reset();
  /* Each fits alone, the last element does not. */
  y.data = (void *)(uintptr_t)(UINT64_MAX - 64);
  strides_y[0] = 16;
  s = quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL);
  ok(s == QUERN_E_LAYOUT, "elements past the end of the address space: LAYOUT, got %s", status_name(s));
  reset();
  y.data = (void *)(uintptr_t)64;
  strides_y[0] = -16;
  s = quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL);
  ok(s == QUERN_E_LAYOUT, "elements below address 0: LAYOUT, got %s", status_name(s));
  reset();
}

static void test_devices(void) {
  static const int32_t types[] = {2, 4, 7, 8, 9, 10, 12, 14, 15, 16, 17, 18, 0, 5, 6, 99, -1, INT32_MAX};
  for (int i = 0; i < 18; i++) {
    char name[40];
    snprintf(name, sizeof name, "device type %d", types[i]);
    y.device.device_type = (DLDeviceType)types[i];
    ADD(QUERN_E_DEVICE, "add", name);
    x.device.device_type = y.device.device_type = out.device.device_type = (DLDeviceType)types[i];
    ADD(QUERN_E_DEVICE, "add", name);
  }
  out.device.device_type = kDLCUDA;
  ADD(QUERN_E_DEVICE, "add: output 1|cuda", "the sentence names the device");
  /* Memory that a host can read serves. */
  static const int32_t hosts[] = {kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged};
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < 3; k++) {
      (k == 0 ? &x : k == 1 ? &y : &out)->device.device_type = (DLDeviceType)hosts[i];
      ok(quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL) == QUERN_OK && out_data[3] == 6,
         "operand %d in host-readable memory of kind %d", k + 1, hosts[i]);
      reset();
    }
  }
}

static void test_flags(void) {
  uint64_t flags = 1;
  quern_call call = {.size = sizeof call, .out_flags = &flags};
  refused(REF_ADD, 2, 1, &call, QUERN_E_READONLY, "add: output 1", "a read-only output");
  flags = 2;
  is_int(quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, &call), QUERN_OK, "the flag that says a copy is no hindrance");
  reset();
  flags = 3;
  refused(REF_ADD, 2, 1, &call, QUERN_E_READONLY, "add: output 1", "read-only among other flags");
}

static void test_overlap(void) {
  x.data = out_data + 1;
  ADD(QUERN_E_OVERLAP, "add|output 1|input 1", "overlap with input 1");
  out.data = out_data + 4;
  y.data = out_data + 3;
  ADD(QUERN_E_OVERLAP, "add|output 1|input 2", "overlap with input 2");
  strides_out[0] = 0;
  ADD(QUERN_E_OVERLAP, "add|output 1", "an output that repeats itself");
}

static void test_call_struct(void) {
  quern_call call = {.size = sizeof call};
  call.size = 0;
  refused(REF_ADD, 2, 1, &call, QUERN_E_VERSION, "quern_call", "quern_call of size 0");
  call.size = 3;
  refused(REF_ADD, 2, 1, &call, QUERN_E_VERSION, "quern_call", "quern_call of size 3");
  call.size = (size_t)-1;
  refused(REF_ADD, 2, 1, &call, QUERN_E_VERSION, "quern_call", "quern_call of size 2^64 - 1");
  call.size = sizeof call;
  quern_scalar p[3] = {{.kind = QUERN_F64}, {.kind = QUERN_F64}, {.kind = QUERN_F64}};
  call.params = p;
  call.n_params = 1;
  refused(REF_ADD, 2, 1, &call, QUERN_E_ARGUMENT, "add", "a parameter for an op that has none");
  call.n_params = -1;
  refused(REF_CLIP, 1, 1, &call, QUERN_E_ARGUMENT, "clip", "minus one parameter");
  call.n_params = 3;
  refused(REF_CLIP, 1, 1, &call, QUERN_E_ARGUMENT, "clip", "three parameters of two");
  call.n_params = 1;
  call.params = NULL;
  is_int(quern_op_call(the_op(REF_CLIP), 1, ins, 1, outs, &call), QUERN_OK,
         "params NULL means the defaults, whatever their number");
  ok(out_data[3] == 3, "  and it ran with them");
  reset();
  p[0].kind = 9;
  call.params = p;
  refused(REF_CLIP, 1, 1, &call, QUERN_E_ARGUMENT, "clip", "a parameter of unknown kind");
  p[0].kind = QUERN_C128;
  p[0].v.f[1] = 1;
  quern_status s = quern_op_call(the_op(REF_CLIP), 1, ins, 1, outs, &call);
  ok(s == QUERN_E_ARGUMENT || s == QUERN_E_DTYPE, "a complex parameter for a real op is refused: %s", status_name(s));
  reset();
}

static void test_shape_struct(void) {
  quern_shape shape;
  memset(&shape, 0x5a, sizeof shape);
  shape.size = 0;
  is_int(quern_op_infer(the_op(REF_ADD), 2, ins, 1, &shape), QUERN_E_VERSION, "quern_shape of size 0");
  shape.size = 5;
  is_int(quern_op_infer(the_op(REF_ADD), 2, ins, 1, &shape), QUERN_E_VERSION, "quern_shape of size 5");
  shape.size = sizeof shape;
  is_int(quern_op_infer(the_op(REF_ADD), 2, ins, 2, &shape), QUERN_E_ARGUMENT, "two shapes of one output");
}

static void test_contexts(void) {
  quern_ctx *ctx = NULL;
  quern_op *op = NULL;
  quern_options options = {.size = 0};
  is_int(quern_ctx_create(&options, &ctx), QUERN_E_VERSION, "options of size 0");
  ok(ctx == NULL, "  no context");
  has_str(quern_last_error(), "quern_options", "  the sentence names the struct");
  options.size = 4;
  is_int(quern_ctx_create(&options, &ctx), QUERN_E_VERSION, "options of size 4");
  options.size = (size_t)1 << 40;
  is_int(quern_ctx_create(&options, &ctx), QUERN_E_VERSION, "options of size 2^40");
  options.size = sizeof options;
  options.threads = -1;
  is_int(quern_ctx_create(&options, &ctx), QUERN_E_ARGUMENT, "minus one thread");
  options.threads = 0;
  options.jit = 77;
  is_int(quern_ctx_create(&options, &ctx), QUERN_E_ARGUMENT, "an unknown jit mode");
  options.jit = 0;
  is_int(quern_ctx_create(&options, &ctx), QUERN_OK, "default options");
  is_int(quern_spec_load(NULL, "x.lua"), QUERN_E_ARGUMENT, "spec_load into the process-wide context");
  quern_status s = quern_spec_load(ctx, "no/such/file.lua");
  ok(s == QUERN_E_IO || s == QUERN_E_UNSUPPORTED, "spec_load of no file: %s", status_name(s));
  ok(strlen(quern_last_error()) > 10, "  with a sentence");
  static const char spec[] = "unary \"third\" { doc = \"x / 3\", dtypes = floating, body = [[ x / 3 ]], examples = { { x = 3.0, y = 1.0 } } }";
  s = quern_spec_load_text(ctx, "third.lua", spec, sizeof spec - 1);
  ok(s == QUERN_OK || s == QUERN_E_UNSUPPORTED, "spec_load_text: %s", status_name(s));
  if (s != QUERN_OK) ok(strlen(quern_last_error()) > 10, "  with a sentence: %s", quern_last_error());
  s = quern_op_compile(ctx, "y = gelu(x * w + b)", &op);
  ok(s == QUERN_OK || s == QUERN_E_UNSUPPORTED, "op_compile: %s", status_name(s));
  if (s != QUERN_OK) {
    ok(op == NULL, "  no op");
    ok(strlen(quern_last_error()) > 10, "  with a sentence: %s", quern_last_error());
  }
  quern_op_release(op);
  quern_ctx_release(ctx);
}

/* The sentence is the thread's own. */
static void *other_thread(void *arg) {
  (void)arg;
  ok(strcmp(quern_last_error(), "") == 0, "a fresh thread has no error");
  quern_set_last_error("of the other thread");
  is_str(quern_last_error(), "of the other thread", "set in the other thread");
  return NULL;
}

static void test_last_error(void) {
  pthread_t thread;
  quern_set_last_error("of the first thread");
  pthread_create(&thread, NULL, other_thread, NULL);
  pthread_join(thread, NULL);
  is_str(quern_last_error(), "of the first thread", "threads do not share it");
  is_int(quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL), QUERN_OK, "a call that succeeds");
  is_str(quern_last_error(), "of the first thread", "leaves it");
  reset();
  char text[3000];
  memset(text, 'q', sizeof text);
  text[2999] = 0;
  quern_set_last_error(text);
  is_int(strlen(quern_last_error()), 1023, "cut at 1023 bytes");
  quern_set_last_error(NULL);
  ok(quern_last_error() != NULL, "never NULL, not even after NULL");
  quern_set_last_error("%s%n%d");
  is_str(quern_last_error(), "%s%n%d", "no format");
  /* Its own text given back. */
  quern_set_last_error(quern_last_error());
  is_str(quern_last_error(), "%s%n%d", "its own text");
}

static void test_find(void) {
  static const struct {
    const char *asked, *nearest;
  } names[] = {{"ad", "add"}, {"addd", "add"}, {"clipp", "clip"}, {"multiplied", "multiply"}, {"sgnbit", "signbit"},
               {"substract", "subtract"}, {"leakyrelu", "leaky_relu"}, {"maximun", "maximum"}};
  static const char *const others[] = {"dot", "foo", "q", "conv2d", "matmul", "nonzero_counts"}; /* not meant: log, cos */
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    quern_op *op = NULL;
    is_int(quern_op_find(NULL, others[i], &op), QUERN_E_NOTFOUND, "find %s", others[i]);
    ok(!strstr(quern_last_error(), "nearest"), "  nothing is near: %s", quern_last_error());
  }
  static const char *const foreign[][3] = {{"arcsin", "asin", "asin"}, {"np.sin", "sin", "sin"}, {"expf", "exp", "exp"}, {"ln", "log", "log"},
                                           {"clampf", "clip", "clip"}, {"relu6", "clip", "clip(x, 0, 6)"}, {"sqr", "square", "square"}};
  for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
    if (!has_op(ref_op_find(foreign[i][1]))) continue;
    char said[100];
    quern_op *op = NULL;
    snprintf(said, sizeof said, "there is no op %s: write %s", foreign[i][0], foreign[i][2]);
    is_int(quern_op_find(NULL, foreign[i][0], &op), QUERN_E_NOTFOUND, "find %s, as other libraries call it", foreign[i][0]);
    is_str(quern_last_error(), said, "  it is said what it is here");
  }
  for (int i = 0; i < 8; i++) {
    if (!has_op(ref_op_find(names[i].nearest))) continue;
    quern_op *op = (quern_op *)&op;
    is_int(quern_op_find(NULL, names[i].asked, &op), QUERN_E_NOTFOUND, "find %s", names[i].asked);
    has_str(quern_last_error(), names[i].asked, "  the sentence repeats it");
    has_str(quern_last_error(), names[i].nearest, "  and names %s", names[i].nearest);
    ok(op == NULL || op == (quern_op *)&op, "  nothing to release");
  }
  quern_op *op = NULL;
  is_int(quern_op_find(NULL, "", &op), QUERN_E_NOTFOUND, "find nothing");
  char name[5001];
  memset(name, 'a', sizeof name);
  name[5000] = 0;
  is_int(quern_op_find(NULL, name, &op), QUERN_E_NOTFOUND, "find 5000 letters");
  memcpy(name, "np.", 3);
  is_int(quern_op_find(NULL, name, &op), QUERN_E_NOTFOUND, "find 5000 letters of a module");
  name[4999] = 'f';
  is_int(quern_op_find(NULL, name + 3, &op), QUERN_E_NOTFOUND, "find 4997 letters and an f");
  is_int(quern_op_find(NULL, "np.%s%n", &op), QUERN_E_NOTFOUND, "find a format in a module");
  is_int(quern_op_find(NULL, "add\n%s%n", &op), QUERN_E_NOTFOUND, "find a format");
  is_int(quern_op_at(NULL, -1, &op), QUERN_E_ARGUMENT, "at -1");
  is_int(quern_op_at(NULL, quern_op_count(NULL), &op), QUERN_E_ARGUMENT, "at count");
  is_int(quern_op_at(NULL, INT32_MAX, &op), QUERN_E_ARGUMENT, "at 2^31 - 1");
}

/* Random spoilt descriptors: any status, no crash, no write unless it is OK and legal. */
static void test_fuzz(void) {
  rng r;
  rng_seed(&r, 1);
  group_begin("random descriptors");
  for (int i = 0; i < 200000; i++) {
    DLTensor *t[3] = {&x, &y, &out};
    int64_t *shapes[3] = {shape_x, shape_y, shape_out}, *strides[3] = {strides_x, strides_y, strides_out};
    static const int64_t odd[] = {0, 1, -1, 2, 3, 4, 5, INT64_MAX, INT64_MIN, (int64_t)1 << 31, (int64_t)1 << 32,
                                  ((int64_t)1 << 62) - 1, -((int64_t)1 << 61), 1 << 20};
    /* Inputs broadcast over any memory they like could be read anywhere: keep strides that move inputs inside, but let the
     * output be anything that must be refused. */
    int who = (int)rng_below(&r, 3);
    switch (rng_below(&r, 7)) {
      case 0: t[who]->ndim = (int32_t)rng_range(&r, -3, 40); break;
      case 1: t[who]->dtype.code = (uint8_t)rng_u64(&r); break;
      case 2: t[who]->dtype.bits = (uint8_t)rng_u64(&r); break;
      case 3: t[who]->dtype.lanes = (uint16_t)rng_u64(&r); break;
      case 4: t[who]->device.device_type = (DLDeviceType)(int32_t)rng_u64(&r); break;
      case 5: shapes[who][rng_below(&r, 3)] = odd[rng_below(&r, 14)]; break;
      default: /* only with a shape that is refused anyway */
        strides[who][0] = odd[rng_below(&r, 14)];
        shapes[(who + 1) % 3][0] = 3;
        break;
    }
    if (rng_below(&r, 2)) {
      for (int k = 0; k < 3; k++) t[k]->ndim = 3;
      for (int k = 0; k < 3; k++) shapes[k][2] = odd[7 + rng_below(&r, 7)];
    }
    quern_status s = quern_op_call(the_op(REF_ADD), 2, ins, 1, outs, NULL);
    group_count(1);
    if (s > 0 || s < -20) group_fail("case %d: status %d", i, s);
    if (s != QUERN_OK && !untouched()) group_fail("case %d: %s, but the output was written", i, status_name(s));
    reset();
  }
  group_end();
}

int main(void) {
  reset();
  is_str(quern_last_error(), "", "no error before the first");
  is_int(quern_version(), QUERN_VERSION_MAJOR << 16 | QUERN_VERSION_MINOR << 8 | QUERN_VERSION_PATCH, "version");
  test_counts();
  test_dtypes();
  test_shapes();
  test_layouts();
  test_overflow();
  test_devices();
  test_flags();
  test_overlap();
  test_call_struct();
  test_shape_struct();
  test_contexts();
  test_last_error();
  test_find();
  test_fuzz();
  return done_testing();
}
