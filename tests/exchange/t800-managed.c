/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t800-managed: managed tensors out, in and made anew: what they say, and that every deleter and every release is called
 * once, on every path. Calls on them are t801's. */
#include "producers.h"

static float data[64];
static quern_status status;
static struct DLManagedTensorVersioned *managed;
static DLManagedTensor *legacy;
static const int64_t shape23[2] = {2, 3};

/* It fails for that reason, and says so. */
#define fails(call, wanted, part, name)                \
  do {                                                 \
    quern_set_last_error("");                          \
    is_int((call), wanted, "%s", name);                \
    has_str(quern_last_error(), part, "  and says so"); \
  } while (0)

static DLTensor tensor_of(void *memory, DLDataType dtype, int32_t ndim, const int64_t *shape, const int64_t *strides) {
  return (DLTensor){memory, {kDLCPU, 0}, ndim, dtype, (int64_t *)(uintptr_t)shape, (int64_t *)(uintptr_t)strides, 0};
}

/* ---- Out ---- */

static void test_wrap(void) {
  atomic_int n = 0;
  int64_t shape[3] = {2, 1, 3}, strides[3] = {3, 77, 1};
  DLTensor t = tensor_of(data, a_f32, 3, shape, strides);
  t.byte_offset = 8;
  status = quern_managed_wrap(&t, DLPACK_FLAG_BITMASK_READ_ONLY, count_release, &n, &managed);
  is_int(status, QUERN_OK, "a wrapped tensor");
  shape[0] = strides[0] = -5;
  const DLTensor *own = &managed->dl_tensor;
  ok(managed->version.major == 1 && managed->version.minor == 3, "  of DLPack 1.3");
  ok(managed->flags == DLPACK_FLAG_BITMASK_READ_ONLY, "  with its flags");
  ok(own->data == data && own->byte_offset == 8 && own->ndim == 3 && same_dtype(own->dtype, a_f32), "  it is that tensor");
  ok(own->shape[0] == 2 && own->shape[1] == 1 && own->shape[2] == 3, "  its shape is copied");
  ok(own->strides[0] == 3 && own->strides[1] == 77 && own->strides[2] == 1, "  its strides too, as given where the extent is 1");
  is_int(n, 0, "  it is held");
  quern_managed_release(managed);
  is_int(n, 1, "  until it is deleted");

  shape[0] = 2;
  t.strides = NULL;
  quern_managed_wrap(&t, 0, count_release, &n, &managed);
  ok(managed->dl_tensor.strides && managed->dl_tensor.strides[0] == 3 && managed->dl_tensor.strides[1] == 3 &&
         managed->dl_tensor.strides[2] == 1, "compact strides stand for NULL");
  struct DLManagedTensorVersioned copy = *managed; /* as some consumers do */
  copy.deleter(&copy);
  is_int(n, 2, "  the deleter takes a copy of the struct");

  t = tensor_of(data, a_f32, 0, NULL, NULL);
  status = quern_managed_wrap(&t, 0, NULL, NULL, &managed);
  ok(status == QUERN_OK && managed->dl_tensor.ndim == 0, "0 dimensions, and nothing to release");
  quern_managed_release(managed);

  int64_t empty[3] = {(int64_t)1 << 40, (int64_t)1 << 40, 0};
  t = tensor_of(NULL, a_f32, 3, empty, NULL);
  is_int(quern_managed_wrap(&t, 0, count_release, &n, &managed), QUERN_OK, "an empty tensor with large other extents");
  ok(managed->dl_tensor.strides != NULL, "  has strides");
  quern_managed_release(managed);
  is_int(n, 3, "  and is released");

  const int64_t backwards[2] = {-3, -1};
  t = tensor_of(data + 5, a_f32, 2, shape23, backwards);
  is_int(quern_managed_wrap(&t, 0, NULL, NULL, &managed), QUERN_OK, "negative strides");
  ok(managed->dl_tensor.strides[0] == -3 && managed->dl_tensor.data == data + 5, "  as they are");
  quern_managed_release(managed);

  t = tensor_of(data, (DLDataType){kDLFloat4_e2m1fn, 4, 1}, 2, shape23, NULL);
  t.device = (DLDevice){kDLMetal, 3};
  is_int(quern_managed_wrap(&t, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, NULL, NULL, &managed), QUERN_OK,
         "any dtype on any device");
  ok(managed->dl_tensor.device.device_type == kDLMetal && managed->dl_tensor.dtype.bits == 4 && managed->flags == 4,
     "  as it is");
  quern_managed_release(managed);
  quern_managed_release(NULL);
  pass("NULL is nothing to release");
}

/* Each refusal; nothing is released, and nothing is left in the place. */
static void test_wrap_refused(void) {
  atomic_int n = 0;
  const int64_t negative[2] = {2, -3}, huge[3] = {(int64_t)1 << 31, (int64_t)1 << 31, 4}, far[2] = {INT64_MAX / 2, 1};
  int64_t many[QUERN_MAX_NDIM + 1];
  for (int i = 0; i <= QUERN_MAX_NDIM; i++) many[i] = 1;
  DLTensor high = tensor_of(data, a_f32, 2, shape23, NULL);
  high.byte_offset = UINT64_MAX - 16;
  const struct { const char *name, *part; DLTensor t; quern_status wanted; } all[] = {
      {"ndim -1", "ndim is -1", tensor_of(data, a_f32, -1, shape23, NULL), QUERN_E_ARGUMENT},
      {"ndim INT32_MIN", "ndim is -2147483648", tensor_of(data, a_f32, INT32_MIN, shape23, NULL), QUERN_E_ARGUMENT},
      {"33 dimensions", "33 dimensions", tensor_of(data, a_f32, 33, many, NULL), QUERN_E_LAYOUT},
      {"INT32_MAX dimensions", "at most 32", tensor_of(data, a_f32, INT32_MAX, many, NULL), QUERN_E_LAYOUT},
      {"no shape", "shape is NULL", tensor_of(data, a_f32, 1, NULL, NULL), QUERN_E_ARGUMENT},
      {"a negative extent", "extent 2 is -3", tensor_of(data, a_f32, 2, negative, NULL), QUERN_E_ARGUMENT},
      {"too many elements", "2^61", tensor_of(data, a_f32, 3, huge, NULL), QUERN_E_LAYOUT},
      {"too far apart", "2^61", tensor_of(data, a_f32, 2, shape23, far), QUERN_E_LAYOUT},
      {"no bits", "no bits", tensor_of(data, (DLDataType){kDLFloat, 0, 1}, 2, shape23, NULL), QUERN_E_DTYPE},
      {"no lanes", "no bits", tensor_of(data, (DLDataType){kDLFloat, 32, 0}, 2, shape23, NULL), QUERN_E_DTYPE},
      {"no data", "data is NULL, with 6", tensor_of(NULL, a_f32, 2, shape23, NULL), QUERN_E_ARGUMENT},
      {"past the address space", "address space", high, QUERN_E_LAYOUT},
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    managed = (void *)data, legacy = (void *)data;
    fails(quern_managed_wrap(&all[i].t, 0, count_release, &n, &managed), all[i].wanted, all[i].part, all[i].name);
    is_int(quern_managed_wrap_legacy(&all[i].t, 0, count_release, &n, &legacy), all[i].wanted, "  for legacy consumers, too");
    ok(!managed && !legacy, "  nothing is given");
  }
  DLTensor t = tensor_of(data, a_f32, 2, shape23, NULL);
  fails(quern_managed_wrap(NULL, 0, count_release, &n, &managed), QUERN_E_ARGUMENT, "the tensor is NULL", "no tensor");
  fails(quern_managed_wrap(&t, 0, count_release, &n, NULL), QUERN_E_ARGUMENT, "the place", "no place");
  fails(quern_managed_wrap_legacy(&t, 0, count_release, &n, NULL), QUERN_E_ARGUMENT, "the place", "no place for legacy");
  fails(quern_managed_wrap_legacy(&t, 1, count_release, &n, &legacy), QUERN_E_READONLY, "read-only", "read-only for legacy");
  t.dtype = (DLDataType){kDLInt, 4, 1};
  fails(quern_managed_wrap_legacy(&t, 4, count_release, &n, &legacy), QUERN_E_DTYPE, "int4", "padded int4 for legacy");
  is_int(n, 0, "what is refused is not released");
}

static void *release_elsewhere(void *arg) {
  quern_managed_release(arg);
  return NULL;
}

static void test_threads(void) {
  atomic_int n = 0;
  pthread_t thread[8];
  DLTensor t = tensor_of(data, a_f32, 2, shape23, NULL);
  for (int i = 0; i < 8; i++) {
    quern_managed_wrap(&t, 0, count_release, &n, &managed);
    pthread_create(&thread[i], NULL, release_elsewhere, managed);
  }
  for (int i = 0; i < 8; i++) pthread_join(thread[i], NULL);
  is_int(n, 8, "threads that own nothing else release");
}

static void test_legacy(void) {
  atomic_int n = 0;
  DLTensor t = tensor_of(data, a_f32, 2, shape23, NULL);
  is_int(quern_managed_wrap_legacy(&t, 0, count_release, &n, &legacy), QUERN_OK, "a legacy one");
  ok(legacy->dl_tensor.strides && legacy->dl_tensor.strides[0] == 3 && legacy->dl_tensor.data == data, "  it is that tensor");
  DLManagedTensor copy = *legacy;
  copy.deleter(&copy);
  is_int(n, 1, "  is deleted by a copy of the struct");

  producer p;
  produce(&p, data, a_f32, 2, shape23, NULL);
  is_int(quern_managed_downgrade(&p.versioned, &legacy), QUERN_OK, "a versioned one becomes legacy");
  ok(legacy->dl_tensor.data == data && legacy->dl_tensor.strides[0] == 3 && p.n_deleted == 0, "  holds the other");
  legacy->deleter(legacy);
  is_int(p.n_deleted, 1, "  and gives it up");
  produce(&p, data, a_f32, 2, shape23, NULL);
  p.versioned.deleter = NULL;
  quern_managed_downgrade(&p.versioned, &legacy);
  legacy->deleter(legacy);
  pass("a source without a deleter");

  const struct {
    const char *name;
    uint32_t major;
    uint64_t flags;
    DLDataType dtype;
    int32_t ndim;
    quern_status wanted;
  } all[] = {
      {"read-only", 1, 1, a_f32, 2, QUERN_E_READONLY},       {"of DLPack 2", 2, 0, a_f32, 2, QUERN_E_VERSION},
      {"padded int4", 1, 4, {kDLInt, 4, 1}, 2, QUERN_E_DTYPE}, {"bools of a bit, packed", 1, 0, a_bit, 2, QUERN_E_DTYPE},
      {"ndim -1", 1, 0, a_f32, -1, QUERN_E_ARGUMENT},        {"33 dimensions", 1, 0, a_f32, 33, QUERN_E_LAYOUT}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    produce(&p, data, all[i].dtype, all[i].ndim, NULL, NULL);
    p.versioned.version.major = all[i].major;
    p.versioned.flags = all[i].flags;
    p.says = "of the deleter";
    is_int(quern_managed_downgrade(&p.versioned, &legacy), all[i].wanted, "not to legacy: %s", all[i].name);
    has_str(quern_last_error(), "managed_downgrade: ", "  the sentence is not the deleter's");
    ok(p.n_deleted == 1 && !legacy, "  it was taken over all the same");
  }
  produce(&p, data, a_f32, 2, shape23, NULL);
  fails(quern_managed_downgrade(&p.versioned, NULL), QUERN_E_ARGUMENT, "the place", "no place for it");
  is_int(p.n_deleted, 1, "  it was taken over all the same");
  fails(quern_managed_downgrade(NULL, &legacy), QUERN_E_ARGUMENT, "is NULL", "nothing to take over");
}

/* ---- In ---- */

static void test_import(void) {
  producer p;
  const int64_t strides[2] = {3, 1}, odd[2] = {1, 77}, one[2] = {6, 1};
  produce(&p, data, a_f32, 2, shape23, strides);
  is_int(quern_managed_import(&p.versioned, 0, &managed), QUERN_OK, "a tensor without surprises");
  ok(managed == &p.versioned && p.n_deleted == 0, "  is the same struct");
  quern_managed_release(managed);
  is_int(p.n_deleted, 1, "  deleted once");

  const uint32_t minors[] = {0, 1, 2, 4, 999};
  for (size_t i = 0; i < sizeof minors / sizeof minors[0]; i++) {
    produce(&p, data, a_f32, 2, shape23, strides);
    p.versioned.version.minor = minors[i];
    p.versioned.flags = 3;
    is_int(quern_managed_import(&p.versioned, 0, &managed), QUERN_OK, "of DLPack 1.%u", minors[i]);
    ok(managed->version.minor == 3 && managed->flags == 3 && managed->dl_tensor.data == data && !p.n_deleted,
       "  is one of 1.3 with its flags and memory");
    quern_managed_release(managed);
    is_int(p.n_deleted, 1, "  that gives the old one up");
  }

  produce(&p, data, a_f32, 2, shape23, NULL);
  quern_managed_import(&p.versioned, 0, &managed);
  ok(managed != &p.versioned && managed->dl_tensor.strides[0] == 3 && managed->dl_tensor.strides[1] == 1,
     "NULL strides are filled in");
  quern_managed_release(managed);
  is_int(p.n_deleted, 1, "  the old one is given up");

  produce(&p, data, a_f32, 2, shape23, NULL);
  is_int(quern_managed_import_legacy(&p.legacy, 0, &managed), QUERN_OK, "a legacy one");
  ok(managed->version.major == 1 && managed->flags == 0 && managed->dl_tensor.strides[0] == 3, "  is one of 1.3");
  quern_managed_release(managed);
  is_int(p.n_deleted, 1, "  that gives the old one up");

  produce(&p, (char *)data + 1, a_f32, 2, one, odd);
  quern_managed_import(&p.versioned, 0, &managed);
  ok(managed == &p.versioned && managed->dl_tensor.data == (char *)data + 1, "misaligned, an odd stride in an extent of 1");
  quern_managed_release(managed);

  produce(&p, data, a_f32, 0, NULL, NULL);
  p.versioned.dl_tensor.shape = NULL;
  quern_managed_import(&p.versioned, 0, &managed);
  ok(managed == &p.versioned, "0 dimensions need no layout");
  quern_managed_release(managed);

  produce(&p, data, a_f32, 2, shape23, NULL);
  p.versioned.deleter = NULL;
  quern_managed_import(&p.versioned, 0, &managed);
  quern_managed_release(managed);
  produce(&p, data, a_f32, 2, shape23, NULL);
  p.legacy.deleter = NULL;
  quern_managed_import_legacy(&p.legacy, 0, &managed);
  quern_managed_release(managed);
  pass("a deleter of NULL is none");

  produce(&p, data, a_f32, 2, shape23, strides);
  managed = &p.versioned;
  is_int(quern_managed_import(managed, 8, &managed), QUERN_E_ARGUMENT, "options that are none");
  ok(p.n_deleted == 1 && managed == NULL, "  it was taken over; in place there is nothing left");
}

/* dtype, flags, options -> what it is; a status where it is refused, and the name in the sentence. */
static void test_import_dtypes(void) {
  enum { PADDED = 4 };
  const struct {
    DLDataType in;
    uint64_t flags;
    uint32_t options;
    quern_status versioned, legacy;
    int is_bool;
    const char *part;
  } all[] = {
      {{kDLBool, 8, 1}, 0, 0, 0, 0, 1, ""},
      {{kDLUInt, 1, 1}, 0, 0, QUERN_E_DTYPE, 0, 1, "uint1 "},
      {{kDLUInt, 1, 1}, PADDED, 0, 0, 0, 1, ""},
      {{kDLBool, 1, 1}, 0, 0, QUERN_E_DTYPE, 0, 1, "bool1 "},
      {{kDLBool, 1, 1}, PADDED, 0, 0, 0, 1, ""},
      {{kDLUInt, 8, 1}, 0, 0, 0, 0, 0, ""},
      {{kDLUInt, 8, 1}, 0, QUERN_IMPORT_U8_IS_BOOL, 0, 0, 1, ""},
      {{kDLInt, 8, 1}, 0, QUERN_IMPORT_U8_IS_BOOL, 0, 0, 0, ""},
      {{kDLUInt, 1, 8}, PADDED, 0, QUERN_E_DTYPE, QUERN_E_DTYPE, 0, "uint1 x 8 lanes"},
      {{kDLInt, 1, 1}, PADDED, 0, QUERN_E_DTYPE, QUERN_E_DTYPE, 0, "int1 "},
      {{kDLBool, 16, 1}, 0, 0, QUERN_E_DTYPE, QUERN_E_DTYPE, 0, "bool16 has items of 16 bits, expected 8"},
      {{kDLComplex, 128, 1}, 0, 0, 0, 0, 0, ""},
      {{kDLOpaqueHandle, 64, 1}, 0, 0, 0, 0, 0, ""},
      {{kDLFloat8_e4m3fn, 8, 1}, 0, 0, 0, 0, 0, ""},
      {{kDLFloat8_e5m2, 16, 1}, 0, 0, QUERN_E_DTYPE, QUERN_E_DTYPE, 0, "float8_e5m2 has items of 16 bits"},
      {{kDLFloat6_e2m3fn, 6, 1}, 0, 0, QUERN_E_DTYPE, QUERN_E_DTYPE, 0, "float6_e2m3fn"},
      {{kDLFloat6_e3m2fn, 8, 1}, 0, 0, QUERN_E_DTYPE, QUERN_E_DTYPE, 0, "float6_e3m2fn"},
      {{kDLFloat4_e2m1fn, 4, 1}, PADDED, 0, QUERN_E_DTYPE, QUERN_E_DTYPE, 0, "float4_e2m1fn"},
      {{kDLFloat4_e2m1fn, 4, 2}, 0, 0, QUERN_E_DTYPE, QUERN_E_DTYPE, 0, "float4_e2m1fn x 2 lanes"},
      {{kDLInt, 4, 1}, 0, 0, QUERN_E_DTYPE, QUERN_E_DTYPE, 0, "int4 "},
      {{kDLFloat, 32, 4}, 0, 0, QUERN_E_DTYPE, QUERN_E_DTYPE, 0, "float32 x 4 lanes"},
      {{kDLFloat, 32, 0}, 0, 0, QUERN_E_DTYPE, QUERN_E_DTYPE, 0, "no bits"},
      {{kDLFloat, 0, 1}, 0, 0, QUERN_E_DTYPE, QUERN_E_DTYPE, 0, "no bits"},
      {{18, 8, 1}, 0, 0, QUERN_E_DTYPE, QUERN_E_DTYPE, 0, "code 18, 8 bits is none of DLPack 1.3"},
      {{255, 255, 65535}, 0, 0, QUERN_E_DTYPE, QUERN_E_DTYPE, 0, "code 255"},
  };
  const int64_t strides[2] = {3, 1};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    for (int is_legacy = 0; is_legacy < 2; is_legacy++) {
      producer p;
      produce(&p, data, all[i].in, 2, shape23, strides);
      p.versioned.flags = all[i].flags;
      const quern_status wanted = is_legacy ? all[i].legacy : all[i].versioned;
      status = is_legacy ? quern_managed_import_legacy(&p.legacy, all[i].options, &managed)
                         : quern_managed_import(&p.versioned, all[i].options, &managed);
      is_int(status, wanted, "code %d, %d bits, %d lanes, flags %d, options %d, %s", all[i].in.code, all[i].in.bits,
             all[i].in.lanes, (int)all[i].flags, (int)all[i].options, is_legacy ? "legacy" : "versioned");
      if (wanted) {
        has_str(quern_last_error(), all[i].part, "  by name");
        ok(p.n_deleted == 1 && !managed, "  taken over all the same");
      } else if (status == QUERN_OK) {
        ok(same_dtype(managed->dl_tensor.dtype, all[i].is_bool ? a_bool : all[i].in), "  is what it means");
        ok(!(managed->flags & PADDED && all[i].in.bits == 1), "  is not padded any more");
        ok(managed->dl_tensor.data == data && p.n_deleted == 0, "  its memory is not touched");
        quern_managed_release(managed);
        is_int(p.n_deleted, 1, "  deleted once");
      }
    }
  }
}

static void test_import_refused(void) {
  producer p;
  const uint32_t majors[] = {0, 2, 1000, UINT32_MAX};
  for (size_t i = 0; i < sizeof majors / sizeof majors[0]; i++) {
    produce(&p, data, a_f32, 2, shape23, NULL);
    memset(&p.versioned.dl_tensor, 0xee, sizeof p.versioned.dl_tensor); /* laid out otherwise */
    p.versioned.version.major = majors[i];
    p.says = "of the deleter";
    fails(quern_managed_import(&p.versioned, 0, &managed), QUERN_E_VERSION, "expected version 1", "another major version");
    ok(p.n_deleted == 1 && !managed, "  nothing but the deleter is used");
  }
  const int64_t negative[2] = {2, -3}, far[2] = {INT64_MAX, INT64_MIN}, large[2] = {INT64_MAX, INT64_MAX};
  const struct { const char *name; int ndim; const int64_t *shape, *strides; void *data; quern_status wanted; } all[] = {
      {"ndim -1", -1, shape23, NULL, data, QUERN_E_ARGUMENT},
      {"33 dimensions", 33, NULL, NULL, data, QUERN_E_LAYOUT},
      {"a negative extent", 2, negative, NULL, data, QUERN_E_ARGUMENT},
      {"strides beyond all", 2, shape23, far, data, QUERN_E_LAYOUT},
      {"extents beyond all", 2, large, NULL, data, QUERN_E_LAYOUT},
      {"no data", 2, shape23, NULL, NULL, QUERN_E_ARGUMENT}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    produce(&p, all[i].data, a_f32, all[i].ndim, all[i].shape, all[i].strides);
    is_int(quern_managed_import(&p.versioned, 0, &managed), all[i].wanted, "%s", all[i].name);
    is_int(p.n_deleted, 1, "  taken over all the same");
    produce(&p, all[i].data, a_f32, all[i].ndim, all[i].shape, all[i].strides);
    is_int(quern_managed_import_legacy(&p.legacy, 0, &managed), all[i].wanted, "  legacy likewise");
    is_int(p.n_deleted, 1, "  taken over all the same");
  }
  produce(&p, data, a_f32, 2, NULL, NULL);
  p.versioned.dl_tensor.shape = NULL;
  fails(quern_managed_import(&p.versioned, 0, &managed), QUERN_E_ARGUMENT, "shape is NULL", "no shape");
  is_int(p.n_deleted, 1, "  taken over all the same");
  produce(&p, data, a_f32, 2, shape23, NULL);
  fails(quern_managed_import(&p.versioned, 0, NULL), QUERN_E_ARGUMENT, "the place", "no place");
  is_int(p.n_deleted, 1, "  taken over all the same");
  produce(&p, data, a_f32, 2, shape23, NULL);
  fails(quern_managed_import_legacy(&p.legacy, 0, NULL), QUERN_E_ARGUMENT, "the place", "no place, legacy");
  is_int(p.n_deleted, 1, "  taken over all the same");
  fails(quern_managed_import(NULL, 0, &managed), QUERN_E_ARGUMENT, "is NULL", "nothing");
  fails(quern_managed_import_legacy(NULL, 0, &managed), QUERN_E_ARGUMENT, "is NULL", "nothing, legacy");
}

/* ---- New ---- */

static char error_kind[40], error_text[300];
static int n_errors;
static void note_error(void *ctx, const char *kind, const char *message) {
  ok(ctx == data, "the allocator's own word is kept");
  snprintf(error_kind, sizeof error_kind, "%s", kind);
  snprintf(error_text, sizeof error_text, "%s", message);
  n_errors++;
}

static void test_alloc(void) {
  const quern_allocator allocate = quern_managed_alloc; /* it is of that form */
  const DLDataType dtypes[] = {a_f32, a_bool, {kDLComplex, 128, 1}, {kDLFloat, 24, 1}, {kDLFloat8_e5m2, 8, 1}, {kDLFloat, 32, 4}};
  const int64_t shapes[][3] = {{2, 3, 5}, {1, 1, 1}, {0, 7, 7}, {1000, 1, 33}};
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
      DLTensor prototype = tensor_of(NULL, dtypes[i], 3, shapes[k], (void *)1); /* strides mean nothing */
      prototype.byte_offset = 12345;
      const int64_t n = shapes[k][0] * shapes[k][1] * shapes[k][2];
      if (!ok(allocate(&prototype, &managed, data, note_error) == 0, "allocates %d items", (int)n)) continue;
      const DLTensor *t = &managed->dl_tensor;
      ok(t->ndim == 3 && t->shape[2] == shapes[k][2] && t->strides[2] == 1 && same_dtype(t->dtype, dtypes[i]) &&
             t->byte_offset == 0 && managed->flags == 0, "  as the prototype says, compact");
      ok(n == 0 ? t->data == NULL : t->data && (uintptr_t)t->data % 256 == 0, "  at a multiple of 256");
      if (n) memset(t->data, 1, (size_t)n * dtypes[i].bits * dtypes[i].lanes / 8);
      quern_managed_release(managed);
    }
  }
  DLTensor prototype = tensor_of(NULL, a_f32, 0, NULL, NULL);
  ok(quern_managed_alloc(&prototype, &managed, NULL, NULL) == 0 && managed->dl_tensor.data, "one element");
  quern_managed_release(managed);
  is_int(n_errors, 0, "none of them was an error");

  const int64_t negative[1] = {-1}, large[1] = {(int64_t)1 << 60}, larger[2] = {INT64_MAX, 9};
  const struct { const char *kind, *part; DLDataType dtype; DLDevice device; int32_t ndim; const int64_t *shape; } all[] = {
      {"ValueError", "extent 1 is -1", a_f32, {kDLCPU, 0}, 1, negative},
      {"ValueError", "ndim is -4", a_f32, {kDLCPU, 0}, -4, negative},
      {"ValueError", "shape is NULL", a_f32, {kDLCPU, 0}, 1, NULL},
      {"BufferError", "40 dimensions", a_f32, {kDLCPU, 0}, 40, negative},
      {"BufferError", "2^61", a_f32, {kDLCPU, 0}, 2, larger},
      {"BufferError", "2^61", a_f32, {kDLCPU, 0}, 1, large},
      {"MemoryError", "out of memory", a_u8, {kDLCPU, 0}, 1, large},
      {"BufferError", "no bits", {kDLFloat, 32, 0}, {kDLCPU, 0}, 2, shape23},
      {"BufferError", "float4_e2m1fn", {kDLFloat4_e2m1fn, 4, 1}, {kDLCPU, 0}, 2, shape23},
      {"BufferError", "not on metal:1", a_f32, {kDLMetal, 1}, 2, shape23},
      {"BufferError", "not on cuda_host:0", a_f32, {kDLCUDAHost, 0}, 2, shape23},
      {"BufferError", "not on device_0:0", a_f32, {0, 0}, 2, shape23}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (SANITIZED && !strcmp(all[i].kind, "MemoryError")) continue; /* its allocator may end the program */
    prototype = tensor_of(NULL, all[i].dtype, all[i].ndim, all[i].shape, NULL);
    prototype.device = all[i].device;
    n_errors = 0;
    managed = (void *)data;
    is_int(quern_managed_alloc(&prototype, &managed, data, note_error), -1, "not allocated");
    ok(n_errors == 1 && !managed, "  one error, nothing is given");
    is_str(error_kind, all[i].kind, "  it is a %s", all[i].kind);
    has_str(error_text, all[i].part, "  that says what");
  }
  is_int(quern_managed_alloc(NULL, &managed, NULL, NULL), -1, "no prototype");
  is_int(quern_managed_alloc(&prototype, NULL, NULL, NULL), -1, "no place");
}

/* ---- No memory ---- */

#if SANITIZED
static void test_no_memory(void) { skip(1, "malloc belongs to the sanitizer"); }
#else
extern void *__libc_malloc(size_t), *__libc_memalign(size_t, size_t);
static __thread int countdown; /* the n-th allocation of this thread fails; 0: none does */
void *malloc(size_t n) { return countdown && !--countdown ? NULL : __libc_malloc(n); }
void *aligned_alloc(size_t alignment, size_t n) {
  return countdown && !--countdown ? NULL : __libc_memalign(alignment, n);
}

/* With the n-th allocation failing: the status. */
#define without(n, call) (countdown = (n), status = (call), countdown = 0, status)

static void test_no_memory(void) {
  atomic_int n = 0;
  producer p;
  DLTensor t = tensor_of(data, a_f32, 2, shape23, NULL);
  const int64_t turned[2] = {1, 2};
  is_int(without(1, quern_managed_wrap(&t, 0, count_release, &n, &managed)), QUERN_E_MEMORY, "no memory to wrap");
  is_int(without(1, quern_managed_wrap_legacy(&t, 0, count_release, &n, &legacy)), QUERN_E_MEMORY, "nor for legacy");
  ok(n == 0 && !managed && !legacy, "  nothing is released");
  produce(&p, data, a_f32, 2, shape23, NULL);
  is_int(without(1, quern_managed_import(&p.versioned, 0, &managed)), QUERN_E_MEMORY, "no memory to import");
  is_int(p.n_deleted, 1, "  taken over all the same");
  produce(&p, data, a_f32, 2, shape23, NULL);
  is_int(without(1, quern_managed_import_legacy(&p.legacy, 0, &managed)), QUERN_E_MEMORY, "no memory to import a legacy one");
  is_int(p.n_deleted, 1, "  taken over all the same");
  produce(&p, data, a_f32, 2, shape23, NULL);
  is_int(without(1, quern_managed_downgrade(&p.versioned, &legacy)), QUERN_E_MEMORY, "no memory to downgrade");
  is_int(p.n_deleted, 1, "  taken over all the same");
  for (int k = 1; k <= 2; k++) {
    n_errors = 0;
    is_int(without(k, quern_managed_alloc(&t, &managed, data, note_error)), -1, "allocation %d of a new tensor fails", k);
    is_str(error_kind, "MemoryError", "  it is a MemoryError");
    quern_export wish = {sizeof wish, QUERN_COPY_ALWAYS, {0, 0}, NULL};
    t.strides = (int64_t *)(uintptr_t)turned;
    is_int(without(k, quern_managed_export(&t, 0, count_release, &n, &wish, &managed)), QUERN_E_MEMORY, "and of a copy");
    ok(n == 0 && !managed, "  nothing is released");
    t.strides = NULL;
  }
}
#endif

int main(void) {
  test_wrap();
  test_wrap_refused();
  test_threads();
  test_legacy();
  test_import();
  test_import_dtypes();
  test_import_refused();
  test_alloc();
  test_no_memory();
  return done_testing();
}
