/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t822-call-alloc: quern_op_call_alloc, for ops of every class: results, what an allocator is asked for, allocators that fail
 * or give something else, each tensor deleted once; and registered ops of class dynamic, measured and called. */
#include "quern/dlpack_exchange.h"
#include "tensors.h"

/* ---- An allocator that counts, and misbehaves on request ---- */

enum { FINE, FAILS, FAILS_SILENTLY, FAILS_WITH_NULLS, GIVES_NOTHING, OTHER_SHAPE, OTHER_RANK, OTHER_DTYPE, OTHER_DEVICE,
       READ_ONLY, MAJOR_2, NO_DATA, SELF_OVERLAP, NO_DELETER, NO_SHAPE, STRIDED, WRITES_PROTOTYPE, N_MANNERS };

static int manner, bad_from, n_made, n_deleted; /* allocations from bad_from on are made in that manner */
static DLTensor asked;
static int64_t asked_shape[QUERN_MAX_NDIM];

typedef struct made {
  DLManagedTensorVersioned managed;
  int64_t shape[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM];
  unsigned char data[];
} made;

static made *last;

static void delete_made(DLManagedTensorVersioned *self) {
  quern_op *op;
  n_deleted++;
  quern_op_find(NULL, "no_such_op", &op); /* sets a sentence of its own */
  free(self);
}

static int make(DLTensor *prototype, DLManagedTensorVersioned **managed, void *ctx,
                void (*set_error)(void *ctx, const char *kind, const char *message)) {
  int how = n_made >= bad_from ? manner : FINE;
  int64_t n = 1;
  asked = *prototype;
  if (prototype->ndim) memcpy(asked_shape, prototype->shape, sizeof *asked_shape * (size_t)prototype->ndim);
  if (how == FAILS) set_error(ctx, "MemoryError", "no more of it");
  if (how == FAILS) set_error(ctx, "ValueError", "a second complaint");
  if (how == FAILS_WITH_NULLS) set_error(ctx, NULL, NULL);
  if (how >= FAILS && how <= FAILS_WITH_NULLS) return -1;
  if (how == GIVES_NOTHING) return 0;
  for (int d = 0; d < prototype->ndim; d++) n *= prototype->shape[d];
  size_t bytes = (size_t)n * (size_t)(prototype->dtype.bits / 8);
  made *m = last = malloc(sizeof *m + 2 * bytes + 64);
  memset(m, 0, sizeof *m);
  memset(m->data, 0xee, 2 * bytes + 64);
  m->managed.version = (DLPackVersion){how == MAJOR_2 ? 2 : 1, 3};
  m->managed.deleter = how == NO_DELETER ? NULL : delete_made;
  m->managed.flags = how == READ_ONLY ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  m->managed.dl_tensor = *prototype;
  m->managed.dl_tensor.data = how == NO_DATA ? NULL : m->data;
  m->managed.dl_tensor.shape = how == NO_SHAPE ? NULL : m->shape;
  m->managed.dl_tensor.strides = m->strides;
  for (int d = prototype->ndim - 1, step = how == STRIDED ? 2 : 1; d >= 0; d--) {
    m->shape[d] = prototype->shape[d];
    m->strides[d] = how == SELF_OVERLAP ? 0 : step;
    step *= (int)m->shape[d];
  }
  if (how == OTHER_SHAPE) m->shape[0]++;
  if (how == OTHER_RANK) m->managed.dl_tensor.ndim++;
  if (how == OTHER_DTYPE) m->managed.dl_tensor.dtype.code = kDLUInt, m->managed.dl_tensor.dtype.bits = 8;
  if (how == OTHER_DEVICE) m->managed.dl_tensor.device = (DLDevice){kDLCUDAHost, 0};
  if (how == WRITES_PROTOTYPE) memset(prototype->shape, 0x7f, sizeof *prototype->shape * QUERN_MAX_NDIM), prototype->ndim = 99;
  n_made++;
  *managed = &m->managed;
  return 0;
}

static void behave(int how, int from) {
  manner = how;
  bad_from = from;
  n_made = n_deleted = 0;
}

static quern_op *op_of(quern_ctx *ctx, const char *name) {
  quern_op *op = NULL;
  if (quern_op_find(ctx, name, &op)) bail("%s", quern_last_error());
  return op;
}

/* ---- Results ---- */

static void test_results(void) {
  rng r;
  rng_seed(&r, 1);
  operand a, b, condition;
  const int64_t shape[2] = {3, 50};
  operand_make(&a, REF_F32, 2, shape, NULL, &r);
  operand_make(&b, REF_F32, 1, shape + 1, NULL, &r);
  operand_make(&condition, REF_BOOL, 2, shape, NULL, &r);
  DLTensor *in[2] = {&a.t, &b.t}, *found_in[2] = {&condition.t, &a.t};
  DLManagedTensorVersioned *out = NULL;
  quern_op *add = op_of(NULL, "add"), *compress = op_of(NULL, "compress");
  quern_op *astype = op_of(NULL, "astype"), *full = op_of(NULL, "full");

  for (int how = FINE; how <= STRIDED; how += STRIDED) {
    operand wanted;
    operand_make(&wanted, REF_F32, 2, shape, NULL, &r);
    DLTensor *outs[1] = {&wanted.t};
    behave(how, 0);
    is_int(quern_op_call_alloc(add, 2, in, 1, NULL, &out, make, NULL), QUERN_OK, "add");
    is_int(quern_op_call(add, 2, in, 1, outs, NULL), QUERN_OK, "  and into memory of ours");
    int same = out->dl_tensor.ndim == 2 && n_made == 1 && n_deleted == 0;
    for (int i = 0; i < 150 && same; i++)
      same = !memcmp((char *)out->dl_tensor.data + 4 * i * (how == STRIDED ? 2 : 1), (char *)wanted.t.data + 4 * i, 4);
    ok(same, "  the same bytes");
    out->deleter(out);
    operand_free(&wanted);
  }
  ok(asked.data == NULL && asked.ndim == 2 && asked_shape[0] == 3 && asked_shape[1] == 50 && asked.dtype.bits == 32 &&
         asked.device.device_type == kDLCPU && asked.byte_offset == 0,
     "what is asked for");

  behave(FINE, 0);
  quern_shape shapes = {.size = sizeof shapes};
  int64_t n_true = 0;
  for (int i = 0; i < 150; i++) n_true += ((char *)condition.t.data)[i] != 0;
  is_int(quern_op_call_alloc(compress, 2, found_in, 1, &shapes, &out, make, NULL), QUERN_OK, "compress");
  ok(shapes.ndim == 1 && shapes.shape[0] == n_true && out->dl_tensor.shape[0] == n_true, "  as many as hold, and shapes say so");
  int right = 1, at = 0;
  for (int i = 0; i < 150; i++)
    if (((char *)condition.t.data)[i]) right &= !memcmp((char *)out->dl_tensor.data + 4 * at++, (char *)a.t.data + 4 * i, 4);
  ok(right, "  the right ones");
  out->deleter(out);

  is_int(quern_op_call_alloc(compress, 2, found_in, 1, NULL, &out, NULL, NULL), QUERN_OK, "by the library's own allocator");
  ok(out->dl_tensor.shape[0] == n_true && out->version.major == 1, "  as many");
  quern_managed_release(out);

  behave(FINE, 0);
  out = (DLManagedTensorVersioned *)&n_made;
  is_int(quern_op_call_alloc(astype, 1, in, 1, NULL, &out, make, NULL), QUERN_E_ARGUMENT, "astype without a dtype");
  has_str(quern_last_error(), "shapes is NULL", "  said so");
  shapes.dtype = ref_dtype_dl(REF_F64);
  is_int(quern_op_call_alloc(astype, 1, in, 1, &shapes, &out, make, NULL), QUERN_OK, "astype with one");
  ok(out->dl_tensor.dtype.bits == 64 && shapes.ndim == 2 && shapes.shape[1] == 50, "  of that dtype");
  out->deleter(out);
  is_int(quern_op_call_alloc(full, 0, NULL, 1, NULL, &out, make, NULL), QUERN_E_ARGUMENT, "full without a shape");
  shapes = (quern_shape){.size = sizeof shapes, .device = {kDLCPU, 0}, .dtype = ref_dtype_dl(REF_I32), .ndim = 1, .shape = {7}};
  const quern_scalar seven = {QUERN_I64, {.i = 7}};
  const quern_call call = {.size = sizeof call, .params = &seven, .n_params = 1};
  is_int(quern_op_call_alloc(full, 0, NULL, 1, &shapes, &out, make, &call), QUERN_OK, "full with one");
  is_int(((int32_t *)out->dl_tensor.data)[6], 7, "  filled");
  out->deleter(out);
  shapes.ndim = 33;
  is_int(quern_op_call_alloc(full, 0, NULL, 1, &shapes, &out, make, &call), QUERN_E_ARGUMENT, "33 dimensions");
  shapes.ndim = 1;
  shapes.shape[0] = -1;
  is_int(quern_op_call_alloc(full, 0, NULL, 1, &shapes, &out, make, &call), QUERN_E_SHAPE, "a negative extent");
  shapes.size = 8;
  is_int(quern_op_call_alloc(full, 0, NULL, 1, &shapes, &out, make, &call), QUERN_E_VERSION, "a struct of no version");
  is_int(quern_op_call_alloc(add, 2, in, 1, NULL, NULL, make, NULL), QUERN_E_ARGUMENT, "no place for the output");
  is_int(quern_op_call_alloc(add, 1, in, 1, NULL, &out, make, NULL), QUERN_E_ARGUMENT, "an input too few");

  quern_op *fused = NULL;
  DLManagedTensorVersioned *two[2] = {NULL, NULL};
  behave(FINE, 0);
  is_int(quern_op_compile(NULL, "y = a * b + 1; z = y > 0", &fused), QUERN_OK, "an expression of two outputs");
  is_int(quern_op_call_alloc(fused, 2, in, 2, NULL, two, make, NULL), QUERN_OK, "  called");
  ok(two[0] && two[1] && two[0] != two[1] && two[1]->dl_tensor.dtype.code == kDLBool && n_made == 2, "  two tensors");
  for (int k = 0; k < 2; k++) two[k]->deleter(two[k]);
  quern_op_release(fused);
  quern_op_release(add);
  quern_op_release(compress);
  quern_op_release(astype);
  quern_op_release(full);
  operand_free(&a);
  operand_free(&b);
  operand_free(&condition);
}

/* ---- Allocators that fail, or give something else ---- */

static void test_manners(void) {
  static const struct {
    int how;
    quern_status status;
    const char *words;
  } cases[] = {
      {FAILS, QUERN_E_MEMORY, "the allocator failed: MemoryError: no more of it"},
      {FAILS_SILENTLY, QUERN_E_MEMORY, "the allocator failed"},
      {FAILS_WITH_NULLS, QUERN_E_MEMORY, "the allocator failed"},
      {GIVES_NOTHING, QUERN_E_MEMORY, "gave no tensor"},
      {OTHER_SHAPE, QUERN_E_SHAPE, "expected ["},
      {OTHER_RANK, QUERN_E_SHAPE, "3 dimensions, expected 2"},
      {OTHER_DTYPE, QUERN_E_DTYPE, "code 1 of 8 bits"},
      {OTHER_DEVICE, QUERN_E_DEVICE, "cuda_host:0, expected cpu"},
      {READ_ONLY, QUERN_E_READONLY, "read-only"},
      {MAJOR_2, QUERN_E_VERSION, "DLPack 2.3"},
      {NO_DATA, QUERN_E_ARGUMENT, "data is NULL"},
      {SELF_OVERLAP, QUERN_E_OVERLAP, "overlaps itself"},
      {NO_SHAPE, QUERN_E_SHAPE, "without extents"},
  };
  rng r;
  rng_seed(&r, 2);
  operand x;
  const int64_t shape[2] = {4, 30};
  operand_make(&x, REF_F32, 2, shape, NULL, &r);
  *(float *)x.t.data = 1; /* something is found */
  DLTensor *in[1] = {&x.t};
  quern_op *ops[2] = {op_of(NULL, "nonzero"), NULL};
  if (quern_op_compile(NULL, "y = x + 1; z = x * 2", &ops[1])) bail("%s", quern_last_error());
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    for (int from = 0; from < 3; from++) { /* nonzero's output, the first or the second of two */
      quern_op *op = ops[from > 0];
      int n_out = from > 0 ? 2 : 1;
      DLManagedTensorVersioned *mine = (DLManagedTensorVersioned *)&r, *out[2] = {mine, mine};
      behave(cases[k].how, from > 1);
      quern_status status = quern_op_call_alloc(op, 1, in, n_out, NULL, out, make, NULL);
      const int is_right = status == cases[k].status && strstr(quern_last_error(), cases[k].words);
      ok(is_right, "%s: %s", status_name(cases[k].status), cases[k].words);
      if (!is_right) diag("%s: %s", status_name(status), quern_last_error());
      ok(out[0] == mine && out[1] == mine && n_made == n_deleted, "  nothing is given, all %d deleted", n_made);
    }
  }
  DLManagedTensorVersioned *out = NULL;
  behave(NO_DELETER, 0);
  is_int(quern_op_call_alloc(ops[0], 1, in, 1, NULL, &out, make, NULL), QUERN_OK, "a tensor without a deleter");
  free(last);
  x.t.data = NULL;
  behave(FINE, 0);
  is_int(quern_op_call_alloc(ops[0], 1, in, 1, NULL, &out, make, NULL), QUERN_E_ARGUMENT, "an input without data");
  is_int(n_made, 0, "  before anything is allocated");
  x.t.data = NULL;
  quern_op_release(ops[0]);
  quern_op_release(ops[1]);
  operand_free(&x);
}

static DLManagedTensorVersioned *only;
static int make_one(DLTensor *prototype, DLManagedTensorVersioned **managed, void *ctx,
                    void (*set_error)(void *ctx, const char *kind, const char *message)) {
  if (!only) make(prototype, &only, ctx, set_error);
  *managed = only;
  return 0;
}

static void test_one_for_two(void) {
  rng r;
  rng_seed(&r, 3);
  operand x;
  quern_op *op = NULL;
  DLManagedTensorVersioned *out[2];
  operand_vector(&x, REF_F32, 10, &r);
  DLTensor *in[1] = {&x.t};
  if (quern_op_compile(NULL, "y = x + 1; z = x * 2", &op)) bail("%s", quern_last_error());
  behave(FINE, 0);
  is_int(quern_op_call_alloc(op, 1, in, 2, NULL, out, make_one, NULL), QUERN_E_OVERLAP, "one tensor for two outputs");
  is_int(n_deleted, 1, "  is deleted once");
  behave(WRITES_PROTOTYPE, 0);
  is_int(quern_op_call_alloc(op, 1, in, 2, NULL, out, make, NULL), QUERN_OK, "an allocator that writes to the prototype");
  for (int k = 0; k < 2; k++) out[k]->deleter(out[k]);
  quern_op_release(op);
  operand_free(&x);
}

/* ---- Registered ops of class dynamic ---- */

static int n_measured, n_called, declines, opens;

/* The first x[0] numbers of 0, 1, 2 ... */
static quern_status infer_count(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out) {
  (void)self, (void)n_in, (void)n_out;
  out->device = in[0]->device;
  out->dtype = in[0]->dtype;
  out->ndim = 1;
  out->shape[0] = -1;
  return QUERN_OK;
}
static quern_status measure_count(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out,
                                  const quern_call *call) {
  (void)call;
  n_measured++;
  if (declines) return QUERN_E_UNSUPPORTED;
  infer_count(self, n_in, in, n_out, out);
  if (!opens) out->shape[0] = *(int64_t *)in[0]->data;
  return QUERN_OK;
}
static quern_status call_count(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                               const quern_call *call) {
  (void)self, (void)n_in, (void)in, (void)n_out, (void)call;
  n_called++;
  if (declines) return QUERN_E_UNSUPPORTED;
  for (int64_t i = 0; i < out[0]->shape[0]; i++) ((int64_t *)out[0]->data)[i] = i;
  return QUERN_OK;
}

static void test_registered(void) {
  quern_ctx *ctx = NULL;
  quern_op *op = NULL;
  int64_t five = 5;
  DLTensor x = {&five, {kDLCPU, 0}, 0, ref_dtype_dl(REF_I64), NULL, NULL, 0}, *in[1] = {&x};
  DLManagedTensorVersioned *out = NULL;
  quern_shape shape = {.size = sizeof shape};
  quern_op_def def = {.size = sizeof def, .name = "acme.count", .op_class = QUERN_CLASS_DYNAMIC, .n_in = 1, .n_out = 1,
                      .call = call_count, .infer = infer_count, .measure = measure_count};
  if (quern_ctx_create(NULL, &ctx)) bail("%s", quern_last_error());
  is_int(quern_op_register(ctx, &def), QUERN_OK, "an op of the host's own");
  op = op_of(ctx, "acme.count");
  is_int(quern_op_infer(op, 1, in, 1, &shape), QUERN_OK, "  inferred");
  is_int(shape.shape[0], -1, "  open");
  is_int(quern_op_measure(op, 1, in, 1, &shape, NULL), QUERN_OK, "  measured");
  is_int(shape.shape[0], 5, "  exact");
  behave(FINE, 0);
  is_int(quern_op_call_alloc(op, 1, in, 1, NULL, &out, make, NULL), QUERN_OK, "  called, its output made");
  ok(out->dl_tensor.shape[0] == 5 && ((int64_t *)out->dl_tensor.data)[4] == 4 && n_called == 1, "  right");
  out->deleter(out);
  opens = 1;
  is_int(quern_op_measure(op, 1, in, 1, &shape, NULL), QUERN_E_UNSUPPORTED, "  one that leaves its measure open");
  is_int(quern_op_call_alloc(op, 1, in, 1, NULL, &out, make, NULL), QUERN_E_UNSUPPORTED, "  cannot be allocated for");
  opens = 0;
  quern_op_release(op);

  def.name = "acme.unknown";
  def.infer = NULL;
  def.measure = NULL;
  is_int(quern_op_register(ctx, &def), QUERN_OK, "one that says nothing of shapes");
  op = op_of(ctx, "acme.unknown");
  is_int(quern_op_infer(op, 1, in, 1, &shape), QUERN_E_UNSUPPORTED, "  is not inferred");
  is_int(quern_op_measure(op, 1, in, 1, &shape, NULL), QUERN_E_UNSUPPORTED, "  nor measured");
  quern_op_release(op);

  def.name = "nonzero";
  def.op_class = QUERN_CLASS_BASIC;
  is_int(quern_op_register(ctx, &def), QUERN_E_ARGUMENT, "nonzero of another class is refused");
  def.op_class = QUERN_CLASS_DYNAMIC;
  def.measure = measure_count;
  is_int(quern_op_register(ctx, &def), QUERN_OK, "nonzero of a host");
  op = op_of(ctx, "nonzero");
  declines = 1;
  n_measured = n_called = 0;
  behave(FINE, 0);
  is_int(quern_op_call_alloc(op, 1, in, 1, &shape, &out, make, NULL), QUERN_OK, "  that declines");
  ok(n_measured == 1 && n_called == 1 && shape.ndim == 2 && shape.shape[0] == 1 && shape.shape[1] == 0,
     "  leaves it to the library's");
  out->deleter(out);
  char text[1000];
  DLTensor empty = {NULL, {kDLCPU, 0}, 2, ref_dtype_dl(REF_I64), shape.shape, NULL, 0}, *outs[1] = {&empty};
  is_int(quern_op_explain(op, 1, in, 1, outs, NULL, text, sizeof text), QUERN_OK, "  explained");
  has_str(text, "otherwise: as follows\ntier: built", "  both");
  quern_op_release(op);
  quern_ctx_release(ctx);
}

int main(void) {
  setenv("QUERN_JIT", "sync", 1); /* a sanitized process must not exit while LLVM is being opened: see runtime/base/files/module.c */
  quern_op *compress = NULL;
  if (is_subset() && quern_op_find(NULL, "compress", &compress) == QUERN_E_NOTFOUND)
    skip_all("this build has some ops only, and no compress");
  quern_op_release(compress);
  test_results();
  test_manners();
  test_one_for_two();
  test_registered();
  return done_testing();
}
