/* SPDX-License-Identifier: Apache-2.0
 *
 * t418-tvm-ffi.c: a C caller of a tree's functions for tvm-ffi, by Quern's own declarations. With AS_LIBRARY it is libtvm_ffi itself, as
 * far as the functions need one, and counts objects and tensors; without it there is none in the process. Built by t418-tvm-ffi.sh. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/tvm_ffi_abi.h"
#include "acme.h"
#include "tap.h"

#define OP(name)                                                                          \
  qn_tvm_function __tvm_ffi_##name, __tvm_ffi__doc_##name, __tvm_ffi__metadata_##name
OP(acme_named);
OP(acme_swish);
OP(arange);
OP(astype);
OP(clip);
OP(divmod);
OP(ldexp);
OP(multiply);
OP(sum);
OP(where);

/* ---- Tensors and values ---- */

typedef struct tensor { /* as an ffi.Tensor lies in memory */
  qn_tvm_object head;
  DLTensor dl;
  int64_t shape[2];
} tensor;

static const DLDataType F32 = {kDLFloat, 32, 1}, F64 = {kDLFloat, 64, 1}, F16 = {kDLFloat, 16, 1}, BF16 = {kDLBfloat, 16, 1},
                        I32 = {kDLInt, 32, 1}, BOOL = {kDLBool, 8, 1};

static tensor tensor_of(void *data, DLDataType dtype, int64_t rows, int64_t columns) {
  return (tensor){.head = {.counts = 1, .type_index = QN_TVM_TENSOR},
                  .dl = {.data = data, .device = {kDLCPU, 0}, .ndim = 2, .dtype = dtype},
                  .shape = {rows, columns}};
}
#define AS_OBJECT(t) ((t)->dl.shape = (t)->shape, (qn_tvm_any){.type_index = QN_TVM_TENSOR, .v.object = &(t)->head})
#define AS_POINTER(t) ((t)->dl.shape = (t)->shape, (qn_tvm_any){.type_index = QN_TVM_DLTENSOR, .v.pointer = &(t)->dl})
static qn_tvm_any a_float(double x) { return (qn_tvm_any){.type_index = QN_TVM_FLOAT, .v.f = x}; }
static qn_tvm_any an_int(int64_t x) { return (qn_tvm_any){.type_index = QN_TVM_INT, .v.i = x}; }
static qn_tvm_any a_bool(int x) { return (qn_tvm_any){.type_index = QN_TVM_BOOL, .v.i = x}; }
static const qn_tvm_any none = {0};
#define CALL(op, result, ...) \
  __tvm_ffi_##op(NULL, (const qn_tvm_any[]){__VA_ARGS__}, (int32_t)(sizeof(qn_tvm_any[]){__VA_ARGS__} / sizeof(qn_tvm_any)), result)

/* ---- The library ---- */

static char raised_kind[64], raised[1100];
#if defined(AS_LIBRARY)
static char text[4096];
#define EXPORTED __attribute__((visibility("default")))
static int n_objects, n_managed, fails_at = -1, asked_type, asked_id;
static quern_allocator allocator;

typedef struct made { /* a tensor made of a managed one; or an array */
  qn_tvm_object head;
  DLTensor dl;
  struct DLManagedTensorVersioned *managed;
  struct made *items[4];
} made;

EXPORTED void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) {
  snprintf(raised_kind, sizeof raised_kind, "%s", kind);
  snprintf(raised, sizeof raised, "%s", message);
}
EXPORTED void *TVMFFIEnvGetStream(int32_t type, int32_t id) {
  asked_type = type, asked_id = id;
  return &asked_type;
}
EXPORTED quern_allocator TVMFFIEnvGetDLPackManagedTensorAllocator(void) { return allocator; }
EXPORTED int TVMFFITensorFromDLPackVersioned(struct DLManagedTensorVersioned *from, int32_t alignment, int32_t contiguous, void **out) {
  if (alignment || contiguous || fails_at-- == 0) return TVMFFIErrorSetRaisedFromCStr("RuntimeError", "no more tensors"), -1;
  made *const tensor = calloc(1, sizeof *tensor);
  tensor->head = (qn_tvm_object){.counts = 1, .type_index = QN_TVM_TENSOR};
  tensor->dl = from->dl_tensor;
  tensor->managed = from;
  n_objects++;
  *out = tensor;
  return 0;
}
EXPORTED int TVMFFIObjectDecRef(void *object) {
  made *const it = object;
  if (--it->head.counts) return 0;
  if (it->managed) it->managed->deleter(it->managed);
  for (int k = 0; k < 4; k++)
    if (it->items[k]) TVMFFIObjectDecRef(it->items[k]);
  free(it);
  n_objects--;
  return 0;
}
EXPORTED int TVMFFIStringFromByteArray(const qn_tvm_bytes *bytes, qn_tvm_any *out) {
  snprintf(text, sizeof text, "%.*s", (int)bytes->size, bytes->data);
  out->type_index = QN_TVM_STRING;
  return bytes->size >= sizeof text;
}
EXPORTED int TVMFFIFunctionGetGlobal(const qn_tvm_bytes *name, void **out) {
  made *const function = calloc(1, sizeof *function);
  function->head.counts = 1;
  n_objects++;
  *out = function;
  return name->size != 9 || memcmp(name->data, "ffi.Array", 9) != 0;
}
EXPORTED int TVMFFIFunctionCall(void *function, qn_tvm_any *args, int32_t n, qn_tvm_any *result) {
  made *const array = calloc(1, sizeof *array);
  (void)function;
  array->head = (qn_tvm_object){.counts = 1, .type_index = QN_TVM_ARRAY};
  n_objects++;
  for (int32_t k = 0; k < n; k++) {
    array->items[k] = (made *)args[k].v.object;
    array->items[k]->head.counts++;
  }
  *result = (qn_tvm_any){.type_index = QN_TVM_ARRAY, .v.object = &array->head};
  return 0;
}

/* An environment's allocator: of rows that are not dense. */
static void delete_sparse(struct DLManagedTensorVersioned *managed) {
  free(managed->dl_tensor.data);
  free(managed);
  n_managed--;
}
static int alloc_sparse(DLTensor *wanted, struct DLManagedTensorVersioned **out, void *context,
                        void (*set_error)(void *context, const char *kind, const char *message)) {
  struct place {
    struct DLManagedTensorVersioned managed;
    int64_t shape[2], strides[2];
  } *const it = calloc(1, sizeof *it);
  if (wanted->ndim != 2) return free(it), set_error(context, "MemoryError", "two dimensions only"), -1;
  it->managed.version.major = DLPACK_MAJOR_VERSION;
  it->managed.deleter = delete_sparse;
  it->managed.dl_tensor = *wanted;
  it->managed.dl_tensor.data = calloc((size_t)wanted->shape[0], (size_t)wanted->shape[1] * 2 * wanted->dtype.bits / 8);
  it->managed.dl_tensor.shape = memcpy(it->shape, wanted->shape, sizeof it->shape);
  it->managed.dl_tensor.strides = it->strides;
  it->strides[0] = wanted->shape[1] * 2;
  it->strides[1] = 1;
  n_managed++;
  *out = &it->managed;
  return 0;
}
#endif

/* ---- What is said ---- */

/* A failing call says this, of this kind. */
static void fails(int status, const char *kind, const char *part, const char *name) {
#if defined(AS_LIBRARY)
  is_int(status, -1, "%s", name);
  is_str(raised_kind, kind, "  is a %s", kind);
  is_str(raised, acme_last_error(), "  the sentence is the thread's");
#else
  (void)kind;
  is_int(status, -1, "%s", name);
#endif
  has_str(acme_last_error(), part, "  says why");
  raised_kind[0] = raised[0] = 0;
  acme_set_last_error("");
}

static void hostile(void) {
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
  tensor tx = tensor_of(x, F32, 2, 3), ty = tensor_of(y, F32, 2, 3), other = tx, odd = tx;
  const qn_tvm_any in = AS_OBJECT(&tx), out = AS_OBJECT(&ty), two[2] = {in, out};
  qn_tvm_object *nothing = NULL;
  qn_tvm_any result = none;
  fails(__tvm_ffi_acme_swish(NULL, two, -1, &result), "TypeError", "-1 arguments, expected acme.swish(x, [out])", "a negative count");
  fails(__tvm_ffi_acme_swish(NULL, two, INT_MIN, &result), "TypeError", "arguments, expected", "the smallest");
  fails(__tvm_ffi_acme_swish(NULL, NULL, 2, &result), "TypeError", "2 arguments", "arguments at NULL");
  fails(__tvm_ffi_acme_swish(NULL, NULL, 0, &result), "TypeError", "0 arguments", "no arguments");
  fails(__tvm_ffi_acme_swish(NULL, two, INT_MAX, &result), "TypeError", "2147483647 arguments", "more than there are");
  fails(CALL(acme_swish, &result, in, out, out), "TypeError", "3 arguments", "too many");
  fails(CALL(clip, &result, in, none, none, none, none), "TypeError", "clip(x, [min], [max], [out])", "too many parameters");
  static const int32_t types[] = {-1, INT_MIN, 4, 5, 6, 8, 9, 10, 11, 12, 13, 64, 65, 69, 71, 74, 78, 200, INT_MAX};
  group_begin("no tensor and no number");
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    const qn_tvm_any it = {.type_index = types[k]};
    group_count(2);
    if (CALL(acme_swish, &result, it, out) != -1 || !strstr(acme_last_error(), "input 1 (x): ")) group_fail("%d as an input: %s", types[k], acme_last_error());
    if (types[k] != QN_TVM_DTYPE && (CALL(acme_swish, &result, in, it) != -1 || !strstr(acme_last_error(), "output 1 (out): ")))
      group_fail("%d as an output: %s", types[k], acme_last_error());
  }
  group_end();
  fails(CALL(acme_swish, &result, (qn_tvm_any){.type_index = QN_TVM_TENSOR}, out), "TypeError", "a tensor that is NULL", "an object at NULL");
  fails(CALL(acme_swish, &result, (qn_tvm_any){.type_index = QN_TVM_DLTENSOR}, out), "TypeError", "a tensor that is NULL", "a tensor at NULL");
  fails(CALL(acme_swish, &result, (qn_tvm_any){.type_index = QN_TVM_RVALUE, .v.pointer = &nothing}, out), "TypeError", "input 1", "a reference to NULL");
  other.head.type_index = QN_TVM_SHAPE;
  fails(CALL(acme_swish, &result, AS_OBJECT(&other), out), "TypeError", "input 1", "an object that says that it is another one");
  odd.dl.shape = NULL;
  fails(CALL(acme_swish, &result, (qn_tvm_any){.type_index = QN_TVM_TENSOR, .v.object = &odd.head}, out), "ValueError", "input 1 (x)", "no shape");
  odd.dl.data = NULL;
  fails(CALL(acme_swish, &result, AS_OBJECT(&odd), out), "ValueError", "input 1 (x)", "no memory");
  odd = tx, odd.dl.ndim = -1;
  fails(CALL(acme_swish, &result, AS_OBJECT(&odd), out), "ValueError", "input 1 (x)", "a negative rank");
  odd = tx, odd.shape[0] = INT64_MAX;
  fails(CALL(acme_swish, &result, AS_OBJECT(&odd), out), "ValueError", "input 1 (x)", "an extent that is too large");
  group_begin("numbers beside dtypes that no op has");
  for (int bits = 0; bits < 256; bits++)
    for (int code = 0; code < 20; code++) {
      odd = tx, odd.dl.dtype = (DLDataType){(uint8_t)code, (uint8_t)bits, 1};
      if ((code < 3 || code == kDLBfloat || code == kDLBool) && (bits == 1 || bits % 8 == 0)) continue;
      group_count(1);
      if (CALL(multiply, &result, AS_OBJECT(&odd), an_int(3), out) != -1) group_fail("code %d, %d bits", code, bits);
    }
  group_end();
  fails(CALL(multiply, &result, a_float(1), an_int(3), out), "TypeError", "all inputs are numbers", "numbers alone");
  fails(CALL(where, &result, an_int(1), in, in, out), "TypeError", "expected a bool", "an int as a condition");
  fails(CALL(divmod, &result, in, in, out, none), "TypeError", "all outputs are tensors, or none is", "one output of two");
  fails(CALL(acme_swish, &result, in, AS_OBJECT(&tx), none), "TypeError", "3 arguments", "None beside an output");
  tensor row = tensor_of(y, F32, 1, 3), whole = tensor_of(y, I32, 2, 3);
  fails(CALL(acme_swish, &result, in, AS_OBJECT(&row)), "ValueError", "shape [1, 3], expected [2, 3]", "an output of another shape");
  fails(CALL(acme_swish, &result, in, AS_OBJECT(&whole)), "TypeError", "dtype i32 cannot take", "of another dtype");
  fails(CALL(multiply, &result, AS_OBJECT(&whole), an_int(1LL << 31), AS_OBJECT(&whole)), "ValueError", "2147483648 does not fit into i32", "a number that is too large");
  fails(CALL(multiply, &result, AS_OBJECT(&whole), an_int(INT64_MIN), AS_OBJECT(&whole)), "ValueError", "does not fit into i32", "too small");
  fails(CALL(arange, &result, none), "TypeError", "pass the output", "no output where its shape is the caller's choice");
  fails(CALL(acme_swish, NULL, in), "RuntimeError", "pass the outputs", "no place for a result");
  is_int(result.type_index, QN_TVM_NONE, "failing calls give None");
}

/* ---- What goes right ---- */

static void outputs_given(void) {
  float x[6] = {-3, -1, 0, 1, 2, 3}, wanted[6], y[6];
  tensor tx = tensor_of(x, F32, 2, 3), ty = tensor_of(y, F32, 2, 3), tw = tensor_of(wanted, F32, 2, 3);
  qn_tvm_object *reference = &tx.head;
  const qn_tvm_any in[3] = {AS_OBJECT(&tx), AS_POINTER(&tx), {.type_index = QN_TVM_RVALUE, .v.pointer = &reference}};
  AS_OBJECT(&tw);
  if (acme_swish(&tx.dl, &tw.dl, NULL)) fail("acme_swish");
  for (int k = 0; k < 3; k++) {
    qn_tvm_any result = {.type_index = 5};
    memset(y, 0xff, sizeof y);
    is_int(CALL(acme_swish, &result, in[k], k ? AS_POINTER(&ty) : AS_OBJECT(&ty)), 0, "a tensor of form %d", k);
    ok(memcmp(y, wanted, sizeof y) == 0 && result.type_index == QN_TVM_NONE, "  the bits of the typed function, and None");
  }
  ok(reference == &tx.head, "a reference that may be taken over is left");
  is_int(CALL(acme_swish, NULL, in[0], AS_OBJECT(&ty)), 0, "no place for None");
  static const float kept[3][6] = {{0, 0, 0, 1, 1.5, 1.5}, {-3, -1, 0, 1, 1.5, 1.5}, {-3, -1, 0, 1, 2, 3}};
  for (int k = 0; k < 3; k++) {
    const int status = k == 0   ? CALL(clip, NULL, in[0], an_int(0), a_float(1.5), AS_OBJECT(&ty))
                       : k == 1 ? CALL(clip, NULL, in[0], none, a_float(1.5), AS_OBJECT(&ty))
                                : CALL(clip, NULL, in[0], AS_OBJECT(&ty));
    ok(status == 0 && memcmp(y, kept[k], sizeof y) == 0, "parameters: %s", k == 0 ? "both" : k == 1 ? "None, and one" : "left out");
  }
  uint8_t conditions[6] = {1, 0, 1, 0, 1, 0};
  tensor tc = tensor_of(conditions, BOOL, 2, 3);
  ok(CALL(where, NULL, AS_OBJECT(&tc), in[0], a_float(0.5), AS_OBJECT(&ty)) == 0 && y[0] == -3 && y[1] == 0.5f, "a number beside a condition");
  ok(CALL(where, NULL, a_bool(1), in[0], an_int(7), AS_OBJECT(&ty)) == 0 && memcmp(y, x, sizeof x) == 0, "a bool as the condition");
  int32_t whole[6] = {0, 1, 2, 3, 4, 5}, product[6];
  tensor ti = tensor_of(whole, I32, 2, 3), tp = tensor_of(product, I32, 2, 3);
  ok(CALL(multiply, NULL, AS_OBJECT(&ti), an_int(-3), AS_OBJECT(&tp)) == 0 && product[5] == -15, "an int beside integers");
  double wide[6];
  tensor td = tensor_of(wide, F64, 2, 3);
  ok(CALL(multiply, NULL, a_float(0.1), AS_OBJECT(&ti), AS_OBJECT(&td)) == 0 && wide[5] == 5 * 0.1, "a float beside i32 is f64");
  static const int64_t last[] = {-1};
  struct sequence { /* as an ffi.Shape, an ffi.Array */
    qn_tvm_object head;
    qn_tvm_items items;
  } axes = {{.counts = 1, .type_index = QN_TVM_SHAPE}, {last, 1}}, values = {{.counts = 1, .type_index = QN_TVM_ARRAY}, {in, 1}};
  const qn_tvm_any over = {.type_index = QN_TVM_SHAPE, .v.object = &axes.head}, over_values = {.type_index = QN_TVM_ARRAY, .v.object = &values.head};
  tensor sums = tensor_of(wanted, F32, 2, 1);
  sums.dl.ndim = 1;
  ok(CALL(sum, NULL, in[0], over, AS_OBJECT(&sums)) == 0 && wanted[0] == -4 && wanted[1] == 6, "axes as a shape");
  fails(CALL(sum, NULL, in[0], over_values, AS_OBJECT(&sums)), "TypeError", "sum: axes: ", "axes that are no ints");
  tensor named = tensor_of(y, F32, 2, 3);
  ok(CALL(acme_named, NULL, in[0], a_float(2.5), AS_OBJECT(&named)) == 0 && y[5] == x[5] * 2.5f, "an op's own parameter called axes is a number");
  fails(CALL(acme_named, NULL, in[0], over, AS_OBJECT(&named)), "TypeError", "argument 2: a sequence", "  and takes no sequence");
  axes.items.n = 0;
  sums.dl.ndim = 2, sums.shape[1] = 3, sums.dl.data = y;
  ok(CALL(sum, NULL, in[0], over, AS_OBJECT(&sums)) == 0 && memcmp(y, x, sizeof x) == 0, "no axes");
  axes.head.type_index = QN_TVM_ARRAY;
  fails(CALL(sum, NULL, in[0], over, AS_OBJECT(&sums)), "TypeError", "a sequence", "a shape that says that it is an array");
  uint16_t half[6] = {0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00}, scaled[6];
  tensor th = tensor_of(half, F16, 2, 3), ts = tensor_of(scaled, F16, 2, 3);
  ok(CALL(ldexp, NULL, AS_OBJECT(&th), an_int(-24), AS_OBJECT(&ts)) == 0 && scaled[0] == 1, "a count beside f16");
}

/* A number beside f16 and bf16 is rounded as the op astype rounds f64. */
static void narrow_numbers(void) {
  enum { N = 40000 };
  static double values[N];
  static uint16_t wanted[N];
  rng random;
  rng_seed(&random, 1);
  for (int t = 0; t < 2; t++) {
    const DLDataType dtype = t ? BF16 : F16;
    for (int k = 0; k < N; k++) {
      uint64_t bits = rng_u64(&random);
      if (k % 4) bits = (bits & 0x800fffffffffffffu) | (uint64_t)(1023 - 32 + (int)(rng_u64(&random) % 52)) << 52; /* about f16's exponents */
      if (k % 4 > 1) bits &= ~(uint64_t)0 << (t ? 44 : 41); /* ties */
      if (k % 8 == 3 && t) bits ^= (uint64_t)(rng_u64(&random) & 1) << 60;
      memcpy(&values[k], &bits, sizeof bits);
    }
    const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 65504, 65519.99, 65520, 5.9604644775390625e-8, 2.98023223876953125e-8, 1e300, 5e-324,
                              9.183549615799121e-41, 3.3961775292304957e38, 6.1035156249e-5};
    memcpy(values, special, sizeof special);
    tensor from = tensor_of(values, F64, 1, N), to = tensor_of(wanted, dtype, 1, N);
    if (CALL(astype, NULL, AS_OBJECT(&from), AS_OBJECT(&to))) fail("astype: %s", acme_last_error());
    group_begin("numbers beside %s", t ? "bf16" : "f16");
    for (int k = 0; k < N; k++) {
      uint16_t one = t ? 0x3f80 : 0x3c00, product = 0;
      tensor tone = tensor_of(&one, dtype, 1, 1), out = tensor_of(&product, dtype, 1, 1);
      const int status = CALL(multiply, NULL, AS_OBJECT(&tone), a_float(values[k]), AS_OBJECT(&out));
      group_count(1);
      if (status || (product != wanted[k] && values[k] == values[k])) group_fail("%a: %04x, expected %04x", values[k], product, wanted[k]);
    }
    group_end();
  }
}

#if defined(AS_LIBRARY)
static void results_made(void) {
  float x[6] = {-3, -1, 0, 1, 2, 3}, wanted[6];
  tensor tx = tensor_of(x, F32, 2, 3), tw = tensor_of(wanted, F32, 2, 3);
  const qn_tvm_any in = AS_OBJECT(&tx);
  AS_OBJECT(&tw);
  if (acme_swish(&tx.dl, &tw.dl, NULL)) fail("acme_swish");
  for (int k = 0; k < 2; k++) {
    qn_tvm_any result = none;
    is_int(k ? CALL(acme_swish, &result, in, none) : CALL(acme_swish, &result, in), 0, "an output that is %s", k ? "None" : "left out");
    const made *const it = (made *)result.v.object;
    ok(result.type_index == QN_TVM_TENSOR && it->dl.shape[1] == 3 && (uintptr_t)it->dl.data % 256 == 0, "  is made, aligned");
    ok(memcmp(it->dl.data, wanted, sizeof wanted) == 0, "  the same bits");
    TVMFFIObjectDecRef(result.v.object);
  }
  int64_t strides[2] = {1, 2};
  qn_tvm_any result = none;
  tx.dl.strides = strides;
  is_int(CALL(acme_swish, &result, in), 0, "a transposed input");
  is_int(((made *)result.v.object)->dl.strides[1], 2, "  its layout is kept");
  TVMFFIObjectDecRef(result.v.object);
  tx.dl.strides = NULL;
  is_int(CALL(astype, &result, in, (qn_tvm_any){.type_index = QN_TVM_DTYPE, .v.dtype = F16}), 0, "a dtype in place of an output");
  is_int(((made *)result.v.object)->dl.dtype.bits, 16, "  chooses it");
  TVMFFIObjectDecRef(result.v.object);
  tensor empty = tensor_of(NULL, F32, 0, 3);
  is_int(CALL(acme_swish, &result, AS_OBJECT(&empty)), 0, "no elements");
  TVMFFIObjectDecRef(result.v.object);
  allocator = alloc_sparse;
  is_int(CALL(acme_swish, &result, in), 0, "the environment's allocator");
  const made *const it = (made *)result.v.object;
  ok(it->dl.strides[0] == 6 && memcmp((float *)it->dl.data + 6, wanted + 3, 12) == 0 && n_managed == 1, "  its memory");
  TVMFFIObjectDecRef(result.v.object);
  is_int(CALL(divmod, &result, in, a_float(2)), 0, "two outputs");
  is_int(result.type_index, QN_TVM_ARRAY, "  are an array");
  made *const pair = (made *)result.v.object;
  ok(pair->items[1] && pair->items[1]->head.counts == 1 && *(float *)pair->items[1]->dl.data == 1, "  which alone has them");
  TVMFFIObjectDecRef(pair);
  tx.dl.ndim = 1;
  fails(CALL(acme_swish, &result, in), "MemoryError", "two dimensions only", "an allocator that fails");
  tx.dl.ndim = 2;
  for (int k = 0; k < 2; k++) {
    fails_at = k;
    is_int(CALL(divmod, &result, in, in), -1, "tensor %d that cannot be made", k);
    is_str(raised, "no more tensors", "  the library's own error");
    fails_at = -1;
  }
  tx.dl.device = (DLDevice){kDLCUDA, 1};
  fails(CALL(acme_swish, &result, in), "ValueError", "on cuda:1", "a tensor of a device that this tree has no kernels for");
  allocator = NULL;
  fails(CALL(acme_swish, &result, in), "MemoryError", "it makes CPU memory only; pass the outputs", "  and that no memory can be had of");
  ok(asked_type == kDLCUDA && asked_id == 1, "  its stream is asked for");
  is_int(n_objects, 0, "every object has been released");
  is_int(n_managed, 0, "and every tensor");
}

static void descriptions(void) {
  qn_tvm_any result = none;
  is_int(__tvm_ffi__doc_clip(NULL, NULL, 0, &result), 0, "a docstring");
  has_str(text, "Parameters\n----------\nx : Tensor or number\n    i32 i64 f16 bf16 f32 f64\nmin : number, default -inf\n", "  its inputs and parameters");
  has_str(text, "Formula: ", "  its formula");
  is_int(__tvm_ffi__metadata_where(NULL, NULL, 0, &result), 0, "metadata");
#define TENSOR "{\\\"type\\\":\\\"ffi.Tensor\\\"}"
#define OPTIONAL "{\\\"type\\\":\\\"Optional\\\",\\\"args\\\":[" TENSOR "]}"
#define EITHER(other) "{\\\"type\\\":\\\"Variant\\\",\\\"args\\\":[" TENSOR ",{\\\"type\\\":\\\"" other "\\\"}]}"
  is_str(text, "{\"type_schema\":\"{\\\"type\\\":\\\"ffi.Function\\\",\\\"named_args\\\":{\\\"return\\\":[" OPTIONAL "],\\\"params\\\":[" EITHER("bool") ","
         EITHER("float") "," EITHER("float") "," OPTIONAL "]}}\"}", "  a function's schema");
  fails(__tvm_ffi__doc_clip(NULL, NULL, 0, NULL), "RuntimeError", "clip: ", "no place for a docstring");
}
#else
static void without_library(void) {
  float x[2] = {1, 2};
  tensor tx = tensor_of(x, F32, 1, 2);
  qn_tvm_any result = none;
  fails(CALL(acme_swish, &result, AS_OBJECT(&tx)), "RuntimeError", "no libtvm_ffi is loaded", "without the library no tensor is made");
  fails(__tvm_ffi__doc_clip(NULL, NULL, 0, &result), "RuntimeError", "no libtvm_ffi is loaded", "and no string");
}
#endif

int main(void) {
  outputs_given();
  narrow_numbers();
  hostile();
#if defined(AS_LIBRARY)
  results_made();
  descriptions();
#else
  without_library();
#endif
  return done_testing();
}
