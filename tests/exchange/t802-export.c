/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t802-export: quern_managed_export: when the memory itself is given and when a copy, of any item and any layout, on the host
 * and between it and CUDA devices; what the copy says, when the owner is released, what is refused and why; and new tensors on a
 * device. Without a GPU: on the fake driver (on_device.h); its log tells what was called. */
#include "cuda/on_device.h"
#include "producers.h"

enum { READ_ONLY = 1, IS_COPIED = 2 };
static const DLDevice anywhere = {0, 0}, cpu = {kDLCPU, 0}, cuda0 = {kDLCUDA, 0};
static quern_status status;
static struct DLManagedTensorVersioned *managed;
static atomic_int n_released;

static quern_status export_to(const DLTensor *t, uint64_t flags, int copy, DLDevice device, void *stream) {
  const quern_export wish = {sizeof wish, copy, device, stream};
  n_released = 0;
  managed = (void *)&n_released;
  return status = quern_managed_export(t, flags, count_release, &n_released, &wish, &managed);
}

/* It is given, and the last error is as it was. */
#define good(call, name)                                                                             \
  do {                                                                                               \
    quern_set_last_error("kept");                                                                    \
    if (!ok((call) == QUERN_OK, "%s", name)) bail("%s", quern_last_error());                         \
    is_str(quern_last_error(), "kept", "  the last error is as it was");                             \
  } while (0)

/* It is not, and nothing is released. */
#define refused(call, wanted, part, name)                       \
  do {                                                          \
    quern_set_last_error("");                                   \
    is_int((call), wanted, "%s", name);                         \
    has_str(quern_last_error(), part, "  and says why");        \
    ok(n_released == 0 && !managed, "  nothing is released");   \
  } while (0)

/* ---- Sources ---- */

/* A tensor of some layout in memory of random bytes, on the host. */
typedef struct source {
  DLTensor t;
  int64_t shape[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM];
  unsigned char *memory;
  size_t bytes;
  int64_t item, first; /* bytes; where the first item is, in items */
} source;

static void source_make(source *s, rng *r, int item, int ndim, const int64_t *shape, const int64_t *strides, int misaligned) {
  int64_t low, high;
  memset(s, 0, sizeof *s);
  memcpy(s->shape, shape, (size_t)ndim * sizeof *shape);
  if (strides) memcpy(s->strides, strides, (size_t)ndim * sizeof *strides);
  else compact_strides(ndim, shape, s->strides);
  extent_of(ndim, s->shape, s->strides, &low, &high);
  s->item = item;
  s->first = -low;
  s->bytes = (size_t)(high - low + 1) * (size_t)item + (size_t)misaligned;
  s->memory = malloc(s->bytes + 1);
  for (size_t i = 0; i < s->bytes; i++) s->memory[i] = (unsigned char)rng_u64(r);
  s->t = (DLTensor){s->memory, cpu, ndim, {kDLOpaqueHandle, (uint8_t)(8 * item), 1}, s->shape, strides ? s->strides : NULL,
                    (uint64_t)(s->first * item + misaligned)};
}

/* In row-major order, by multiplication. */
static unsigned char *in_order(const source *s, size_t *bytes) {
  int64_t n = 1, index[QUERN_MAX_NDIM] = {0}, at = 0;
  for (int i = 0; i < s->t.ndim; i++) n *= s->shape[i];
  unsigned char *all = malloc((size_t)(n * s->item) + 1);
  *bytes = (size_t)(n * s->item);
  if (n == 0) return all;
  do {
    int64_t offset = (int64_t)s->t.byte_offset;
    for (int i = 0; i < s->t.ndim; i++) offset += index[i] * s->strides[i] * s->item;
    memcpy(all + s->item * at++, s->memory + offset, (size_t)s->item);
  } while (ref_next_index(s->t.ndim, s->shape, index));
  return all;
}

/* Of `managed`: of the source's shape and dtype, compact, a copy, with its bytes. NULL, or what is wrong. */
static const char *wrong_copy(const source *s, DLDevice device) {
  const DLTensor *t = &managed->dl_tensor;
  int64_t compact[QUERN_MAX_NDIM];
  size_t bytes;
  const char *wrong = NULL;
  if (managed->flags != IS_COPIED) return "flags";
  if (t->device.device_type != device.device_type || t->device.device_id != device.device_id) return "device";
  if (t->ndim != s->t.ndim || !same_dtype(t->dtype, s->t.dtype) || t->byte_offset) return "ndim, dtype or byte_offset";
  compact_strides(t->ndim, s->shape, compact);
  unsigned char *wanted = in_order(s, &bytes), *got = malloc(bytes + 1);
  for (int i = 0; i < t->ndim; i++)
    if (t->shape[i] != s->shape[i] || (bytes && t->strides[i] != compact[i])) wrong = "layout";
  if ((uintptr_t)t->data % 256 || (!t->data && bytes)) wrong = "alignment";
  if (bytes && device.device_type == kDLCUDA) device_read(got, t->data, bytes);
  else if (bytes) memcpy(got, t->data, bytes);
  if (!wrong && memcmp(got, wanted, bytes)) wrong = "bytes";
  free(wanted);
  free(got);
  return wrong;
}

static const struct { const char *name; int ndim; int64_t shape[4], strides[4]; int is_compact; } layouts[] = {
    {"compact", 3, {2, 3, 5}, {0}, 1},
    {"0 dimensions", 0, {0}, {0}, 1},
    {"empty", 2, {0, 4}, {9, 9}, 0},
    {"extents of 1", 3, {1, 1, 1}, {5, -5, 7}, 0},
    {"transposed", 2, {7, 9}, {1, 7}, 0},
    {"turned around", 2, {5, 6}, {-6, -1}, 0},
    {"every other", 2, {8, 3}, {6, 2}, 0},
    {"broadcast", 3, {4, 3, 2}, {0, 1, 0}, 0},
    {"four of them", 4, {3, 2, 4, 2}, {1, 100, -7, 51}, 0}};
enum { N_LAYOUTS = sizeof layouts / sizeof layouts[0] };

static void layout_make(source *s, rng *r, size_t i, int item, int misaligned) {
  source_make(s, r, item, layouts[i].ndim, layouts[i].shape, layouts[i].is_compact ? NULL : layouts[i].strides, misaligned);
}

/* ---- The host ---- */

static void test_itself(void) {
  rng r;
  source s;
  rng_seed(&r, 1);
  layout_make(&s, &r, 5, 4, 0);
  const struct { const char *name; int copy; DLDevice device; } all[] = {
      {"if needed, anywhere", QUERN_COPY_IF_NEEDED, anywhere}, {"if needed, on the cpu", QUERN_COPY_IF_NEEDED, cpu},
      {"never, anywhere", QUERN_COPY_NEVER, anywhere},         {"never, on the cpu", QUERN_COPY_NEVER, cpu}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    good(export_to(&s.t, READ_ONLY, all[i].copy, all[i].device, NULL), all[i].name);
    ok(managed->dl_tensor.data == s.memory && managed->dl_tensor.byte_offset == s.t.byte_offset &&
           managed->dl_tensor.strides[0] == -6 && managed->flags == READ_ONLY, "  is the memory itself, read-only as it was");
    is_int(n_released, 0, "  which is held");
    quern_managed_release(managed);
    is_int(n_released, 1, "  and released");
  }
  managed = NULL;
  n_released = 0;
  good(quern_managed_export(&s.t, 0, count_release, &n_released, NULL, &managed), "without a wish");
  ok(managed->dl_tensor.data == s.memory && n_released == 0, "  it is the memory itself");
  quern_managed_release(managed);
  is_int(n_released, 1, "  and released");
  DLTensor there = s.t;
  there.device = (DLDevice){kDLMetal, 1};
  good(export_to(&there, 0, QUERN_COPY_IF_NEEDED, there.device, NULL), "on a device that nothing is known of");
  ok(managed->dl_tensor.device.device_type == kDLMetal, "  if that is where it is wanted");
  quern_managed_release(managed);
  free(s.memory);
}

static void test_host_copies(void) {
  rng r;
  rng_seed(&r, 2);
  for (size_t i = 0; i < N_LAYOUTS; i++) {
    group_begin("copies on the host: %s", layouts[i].name);
    for (int item = 1; item < 32; item++) {
      for (int misaligned = 0; misaligned < 2; misaligned++) {
        source s;
        layout_make(&s, &r, i, item, misaligned);
        group_count(1);
        if (export_to(&s.t, READ_ONLY, QUERN_COPY_ALWAYS, item % 2 ? anywhere : cpu, NULL)) {
          group_fail("items of %d: %s", item, quern_last_error());
        } else {
          const char *wrong = wrong_copy(&s, cpu);
          if (wrong) group_fail("items of %d: %s", item, wrong);
          if (n_released != 1) group_fail("items of %d: released %d times before the copy is", item, n_released);
          quern_managed_release(managed);
        }
        if (n_released != 1) group_fail("items of %d: released %d times", item, n_released);
        free(s.memory);
      }
    }
    group_end();
  }
  /* As many dimensions as there may be, of items that are no word; and lanes. */
  int64_t shape[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM];
  for (int i = 0; i < QUERN_MAX_NDIM; i++) shape[i] = i % 4 ? 1 : 2, strides[i] = i % 4 ? 1000 : 1 << (i / 4);
  source s;
  source_make(&s, &r, 16, QUERN_MAX_NDIM, shape, strides, 0);
  s.t.dtype = (DLDataType){kDLComplex, 128, 1};
  good(export_to(&s.t, 0, QUERN_COPY_ALWAYS, cpu, NULL), "32 dimensions of complex128");
  ok(!wrong_copy(&s, cpu), "  are right");
  quern_managed_release(managed);
  s.t.dtype = (DLDataType){kDLFloat, 32, 4};
  good(export_to(&s.t, 0, QUERN_COPY_ALWAYS, cpu, NULL), "four lanes of float32");
  ok(!wrong_copy(&s, cpu), "  are right");
  quern_managed_release(managed);
  free(s.memory);

  rng_seed(&r, 3);
  group_begin("copies on the host at random");
  for (int i = 0; i < 2000; i++) {
    const int ndim = (int)rng_below(&r, 7);
    for (int k = 0; k < ndim; k++) shape[k] = (int64_t)rng_below(&r, 6), strides[k] = rng_range(&r, -20, 20);
    source_make(&s, &r, 1 + (int)rng_below(&r, 31), ndim, shape, rng_below(&r, 8) ? strides : NULL, (int)rng_below(&r, 3));
    group_count(1);
    const char *wrong = export_to(&s.t, 0, QUERN_COPY_ALWAYS, cpu, NULL) ? quern_last_error() : wrong_copy(&s, cpu);
    if (wrong) group_fail("case %d: %s", i, wrong);
    if (!status) quern_managed_release(managed);
    free(s.memory);
  }
  group_end();
}

static void test_refused(void) {
  rng r;
  source s;
  rng_seed(&r, 4);
  layout_make(&s, &r, 0, 4, 0);
  DLTensor t = s.t;
  refused(export_to(&t, 0, 3, cpu, NULL), QUERN_E_ARGUMENT, "copy is 3", "no way of copying");
  refused(export_to(&t, 0, -1, cpu, NULL), QUERN_E_ARGUMENT, "copy is -1", "no way of copying");
  quern_export wish = {4, 0, cpu, NULL};
  refused(quern_managed_export(&t, 0, count_release, &n_released, &wish, &managed), QUERN_E_VERSION, "quern_export.size is 4",
          "a wish of no version");
  wish.size = (size_t)1 << 40;
  refused(quern_managed_export(&t, 0, count_release, &n_released, &wish, &managed), QUERN_E_VERSION, "quern_export.size",
          "a wish of no size");
  struct { quern_export wish; int64_t later[3]; } newer = {{sizeof newer, QUERN_COPY_NEVER, cpu, NULL}, {-1, -1, -1}};
  good(quern_managed_export(&t, 0, count_release, &n_released, &newer.wish, &managed), "a wish of a later version");
  quern_managed_release(managed);
  n_released = 0;
  is_int(quern_managed_export(&t, 0, count_release, &n_released, &newer.wish, NULL), QUERN_E_ARGUMENT, "no place");
  refused(export_to(NULL, 0, 0, cpu, NULL), QUERN_E_ARGUMENT, "the tensor is NULL", "no tensor");
  t.ndim = -1;
  refused(export_to(&t, 0, 0, cpu, NULL), QUERN_E_ARGUMENT, "ndim is -1", "ndim -1");
  t = s.t, t.data = NULL;
  refused(export_to(&t, 0, QUERN_COPY_ALWAYS, cpu, NULL), QUERN_E_ARGUMENT, "data is NULL", "no data");
  t = s.t, t.dtype.bits = 4;
  refused(export_to(&t, 0, QUERN_COPY_ALWAYS, cpu, NULL), QUERN_E_UNSUPPORTED, "opaque_handle4", "a copy of half bytes");
  good(export_to(&t, 0, QUERN_COPY_NEVER, cpu, NULL), "  but the memory itself");
  quern_managed_release(managed);
  t = s.t;
  refused(export_to(&t, 0, QUERN_COPY_NEVER, cuda0, NULL), QUERN_E_DEVICE, "on cpu, and it takes a copy to have it on cuda:0",
          "never, but elsewhere");
  refused(export_to(&t, 0, QUERN_COPY_IF_NEEDED, (DLDevice){kDLMetal, 2}, NULL), QUERN_E_DEVICE, "not on metal:2", "to metal");
  refused(export_to(&t, 0, QUERN_COPY_ALWAYS, (DLDevice){kDLCUDAHost, 0}, NULL), QUERN_E_DEVICE, "not on cuda_host:0",
          "to pinned memory");
  t.device = (DLDevice){kDLROCM, 1};
  refused(export_to(&t, 0, QUERN_COPY_ALWAYS, anywhere, NULL), QUERN_E_DEVICE, "on rocm:1, which nothing here copies from",
          "a copy of what is on another device");
  refused(export_to(&t, 0, QUERN_COPY_IF_NEEDED, cpu, NULL), QUERN_E_DEVICE, "on rocm:1", "from there to the cpu");
  free(s.memory);
}

/* ---- CUDA ---- */

/* The source's memory once more, on a device. */
static void source_send(source *s, int device) {
  char *there = device_allocate(s->bytes);
  device_write(there, s->memory, s->bytes);
  s->t.data = there;
  s->t.device = (DLDevice){kDLCUDA, device};
}

static void source_free(source *s) {
  if (s->t.device.device_type == kDLCUDA) device_free(s->t.data);
  free(s->memory);
}

static int n_calls(const char *function) { return is_fake() ? cuda.count(function) : 0; }
static void forget_calls(void) {
  if (is_fake()) cuda.clear();
}

static void test_device_copies(device_stream stream) {
  rng r;
  rng_seed(&r, 5);
  const int items[] = {1, 2, 3, 4, 8, 12, 16};
  for (size_t i = 0; i < N_LAYOUTS; i++) {
    group_begin("copies from, to and on a device: %s", layouts[i].name);
    for (size_t k = 0; k < sizeof items / sizeof items[0]; k++) {
      for (int way = 0; way < 3; way++) {
        const DLDevice to = way == 0 ? cpu : cuda0;
        void *on = way == 1 ? NULL : stream;
        source s;
        layout_make(&s, &r, i, items[k], k % 3 == 1);
        if (way != 1) source_send(&s, 0);
        forget_calls();
        group_count(1);
        if (export_to(&s.t, READ_ONLY, way == 2 ? QUERN_COPY_ALWAYS : QUERN_COPY_IF_NEEDED, to, on)) {
          group_fail("items of %d, way %d: %s", items[k], way, quern_last_error());
          source_free(&s);
          continue;
        }
        const int n_waits = n_calls("cuStreamSynchronize"), n_launches = n_calls("cuLaunchKernel");
        const int n_made = n_calls("cuMemAlloc"), n_freed = n_calls("cuMemFree");
        const char *wrong = wrong_copy(&s, to);
        if (wrong) group_fail("items of %d, way %d: %s", items[k], way, wrong);
        if (n_released != 1) group_fail("items of %d, way %d: released %d times", items[k], way, n_released);
        if (way == 2 && n_waits) group_fail("items of %d: it is waited for on a device", items[k]);
        if (layouts[i].is_compact && n_launches)
          group_fail("items of %d, way %d: a kernel for what lies compact", items[k], way);
        if (n_made != n_freed + (is_fake() && way > 0 && managed->dl_tensor.data))
          group_fail("items of %d, way %d: %d made, %d freed", items[k], way, n_made, n_freed);
        quern_managed_release(managed);
        if (way > 0 && n_calls("cuMemFree") != n_made) group_fail("items of %d, way %d: memory is left", items[k], way);
        source_free(&s);
      }
    }
    group_end();
  }
}

static void test_there_already(device_stream stream) {
  rng r;
  source s;
  rng_seed(&r, 6);
  layout_make(&s, &r, 4, 4, 0);
  source_send(&s, 0);
  forget_calls();
  good(export_to(&s.t, READ_ONLY, QUERN_COPY_IF_NEEDED, cuda0, stream), "on the device where it is");
  ok(managed->dl_tensor.data == s.t.data && managed->flags == READ_ONLY, "  it is the memory itself");
  if (is_fake()) is_int(n_calls("*"), 0, "  and CUDA has no part in it");
  quern_managed_release(managed);
  good(export_to(&s.t, 0, QUERN_COPY_NEVER, anywhere, stream), "never, anywhere");
  quern_managed_release(managed);
  refused(export_to(&s.t, 0, QUERN_COPY_NEVER, cpu, stream), QUERN_E_DEVICE, "on cuda:0, and it takes a copy to have it on cpu",
          "never, but on the cpu");
  if (cuda.n_devices > 1)
    refused(export_to(&s.t, 0, QUERN_COPY_IF_NEEDED, (DLDevice){kDLCUDA, 1}, NULL), QUERN_E_DEVICE, "from cuda:0 to cuda:1",
            "to another device");
  s.t.dtype.bits = 4;
  refused(export_to(&s.t, 0, QUERN_COPY_ALWAYS, anywhere, stream), QUERN_E_UNSUPPORTED, "4 bits", "half bytes");
  s.t.dtype.bits = 32;
  source_free(&s);
  layout_make(&s, &r, 4, 4, 0);
  const DLDevice none = {kDLCUDA, 9}, negative = {kDLCUDA, -1};
  refused(export_to(&s.t, 0, QUERN_COPY_IF_NEEDED, none, NULL), QUERN_E_DEVICE, "no such device", "to cuda:9");
  refused(export_to(&s.t, 0, QUERN_COPY_IF_NEEDED, negative, NULL), QUERN_E_DEVICE, "no such device", "to cuda:-1");
  source_free(&s);
}

/* Memory of CUDA's that the host reads. */
static void test_host_memory(device_stream stream) {
  rng r;
  source s;
  void *pinned = NULL;
  uint64_t unified = 0;
  rng_seed(&r, 7);
  layout_make(&s, &r, 4, 4, 0);
  device_do(cuda.pinned_allocate(&pinned, s.bytes, 0));
  device_do(cuda.managed_allocate(&unified, s.bytes, DEVICE_MANAGED_GLOBAL));
  const struct { const char *name; DLDeviceType type; void *memory; } all[] = {
      {"pinned memory", kDLCUDAHost, pinned}, {"managed memory", kDLCUDAManaged, (void *)(uintptr_t)unified}};
  for (size_t i = 0; i < 2; i++) {
    memcpy(all[i].memory, s.memory, s.bytes);
    s.t.data = all[i].memory;
    s.t.device = (DLDevice){all[i].type, 0};
    forget_calls();
    good(export_to(&s.t, 0, QUERN_COPY_NEVER, cpu, stream), all[i].name);
    ok(managed->dl_tensor.data == all[i].memory && managed->dl_tensor.device.device_type == kDLCPU && !managed->flags,
       "  is itself what the cpu reads");
    if (is_fake()) is_int(n_calls("cuStreamSynchronize"), 1, "  once it is done on the stream");
    quern_managed_release(managed);
    good(export_to(&s.t, 0, QUERN_COPY_IF_NEEDED, anywhere, stream), "  it stays where it is");
    ok(managed->dl_tensor.device.device_type == all[i].type, "  under its own name");
    quern_managed_release(managed);
    good(export_to(&s.t, 0, QUERN_COPY_ALWAYS, anywhere, NULL), "  a copy of it");
    ok(!wrong_copy(&s, cpu), "  is the cpu's");
    quern_managed_release(managed);
    good(export_to(&s.t, 0, QUERN_COPY_IF_NEEDED, cuda0, stream), "  to a device it is copied");
    ok(!wrong_copy(&s, cuda0), "  and is right there");
    quern_managed_release(managed);
    if (cuda.n_devices > 1) { /* by another device's stream, or in its context */
      device_stream other;
      device_do(cuda.context_set(cuda.contexts[1]));
      device_do(cuda.stream_create(&other, 0));
      device_do(cuda.context_set(cuda.contexts[0]));
      good(export_to(&s.t, 0, QUERN_COPY_NEVER, cpu, other), "  it may be another device's stream");
      quern_managed_release(managed);
      device_do(cuda.stream_destroy(other));
    }
    device_do(cuda.context_set(NULL));
    good(export_to(&s.t, 0, QUERN_COPY_NEVER, cpu, NULL), "  where no context is current");
    quern_managed_release(managed);
    device_context current = NULL;
    cuda.context_get(&current);
    ok(current == NULL, "  none is afterwards");
    device_do(cuda.context_set(cuda.contexts[0]));
  }
  device_do(cuda.pinned_free(pinned));
  device_do(cuda.memory_free(unified));
  free(s.memory);
}

static void test_capture(device_stream stream) {
  rng r;
  source there, here;
  device_graph graph = NULL;
  rng_seed(&r, 8);
  layout_make(&there, &r, 4, 4, 0);
  source_send(&there, 0);
  layout_make(&here, &r, 0, 4, 0);
  device_do(cuda.capture_begin(stream, DEVICE_CAPTURE_GLOBAL));
  refused(export_to(&there.t, 0, QUERN_COPY_IF_NEEDED, cpu, stream), QUERN_E_CAPTURING, "captured", "to the cpu in a capture");
  refused(export_to(&there.t, 0, QUERN_COPY_ALWAYS, cuda0, stream), QUERN_E_CAPTURING, "captured", "on the device");
  refused(export_to(&here.t, 0, QUERN_COPY_IF_NEEDED, cuda0, stream), QUERN_E_CAPTURING, "captured", "from the cpu");
  DLTensor pinned = here.t;
  pinned.device.device_type = kDLCUDAHost;
  refused(export_to(&pinned, 0, QUERN_COPY_IF_NEEDED, cpu, stream), QUERN_E_CAPTURING, "captured", "waiting for pinned memory");
  good(export_to(&there.t, 0, QUERN_COPY_NEVER, cuda0, stream), "the memory itself");
  quern_managed_release(managed);
  DLTensor prototype = here.t;
  prototype.device = cuda0;
  is_int(quern_managed_alloc(&prototype, &managed, NULL, NULL), 0, "a new tensor: no work for a stream");
  quern_managed_release(managed);
  is_int(cuda.capture_end(stream, &graph), 0, "the capture is not lost");
  if (graph) device_do(cuda.graph_destroy(graph));
  source_free(&there);
  source_free(&here);
}

/* ---- New tensors, and who frees them ---- */

static void *release_elsewhere(void *arg) {
  device_context current = arg;
  quern_managed_release(arg);
  cuda.context_get(&current);
  return current;
}

static char error_kind[40];
static void note_error(void *ctx, const char *kind, const char *message) {
  (void)ctx, (void)message;
  snprintf(error_kind, sizeof error_kind, "%s", kind);
}

static void test_new(void) {
  int64_t shape[2] = {3, 5};
  DLTensor prototype = {NULL, cuda0, 2, a_f32, shape, NULL, 0};
  pthread_t thread;
  void *current;
  forget_calls();
  is_int(quern_managed_alloc(&prototype, &managed, NULL, note_error), 0, "a new tensor on a device");
  ok(managed->dl_tensor.device.device_type == kDLCUDA && (uintptr_t)managed->dl_tensor.data % 256 == 0 && managed->flags == 0,
     "  is there");
  pthread_create(&thread, NULL, release_elsewhere, managed);
  pthread_join(thread, &current);
  ok(current == NULL, "  is freed by a thread without a context, which has none afterwards");
  if (is_fake()) is_int(n_calls("cuMemFree"), 1, "  once");
  shape[0] = 0;
  is_int(quern_managed_alloc(&prototype, &managed, NULL, note_error), 0, "one without elements");
  ok(managed->dl_tensor.data == NULL, "  has no memory");
  quern_managed_release(managed);
  shape[0] = (int64_t)1 << 45;
  is_int(quern_managed_alloc(&prototype, &managed, NULL, note_error), -1, "more than there is");
  is_str(error_kind, "MemoryError", "  is a MemoryError");
  shape[0] = 1;
  prototype.device.device_id = 7;
  is_int(quern_managed_alloc(&prototype, &managed, NULL, note_error), -1, "no such device");
  is_str(error_kind, "BufferError", "  is a BufferError");
  prototype.device.device_id = 0;

  if (!is_fake()) return;
  quern_managed_alloc(&prototype, &managed, NULL, NULL);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    quern_set_last_error("kept");
    quern_managed_release(managed);
    _exit(strcmp(quern_last_error(), "kept") != 0);
  }
  int how = -1;
  waitpid(child, &how, 0);
  is_int(how, 0, "a deleter in a forked child is quiet");
  quern_managed_release(managed);
}

static void test_call(device_stream stream) {
  quern_op *negative = NULL;
  float here[6] = {0, 1, 2, 3, 4, 5};
  const int64_t shape[1] = {6}, strides[1] = {1};
  producer p, q;
  char *there = device_allocate(sizeof here);
  device_write(there, here, sizeof here);
  if (quern_op_find(NULL, "negative", &negative)) bail("%s", quern_last_error());
  produce(&p, there, a_f32, 1, shape, strides), produce(&q, there, a_f32, 1, shape, strides);
  p.versioned.dl_tensor.device = q.versioned.dl_tensor.device = cuda0;
  const quern_operand in = versioned_operand(&p, 1), out = versioned_operand(&q, 0);
  const quern_call call = {.size = sizeof call, .stream = stream};
  forget_calls();
  good(quern_op_call_managed(negative, 1, &in, 1, &out, &call), "a call on managed tensors of a device");
  ok(p.n_deleted == 1 && q.n_deleted == 0 && n_calls("cuStreamSynchronize") == 0, "  nothing waits");
  device_read(here, there, sizeof here);
  is_int((int)here[5], -5, "  is right");
  device_free(there);
  quern_op_release(negative);
}

/* ---- The driver fails ---- */

static void test_failures(device_stream stream) {
  const struct { const char *name, *plan; int way; quern_status wanted; } all[] = {
      {"no memory for a copy on the device", "cuMemAlloc:1:OUT_OF_MEMORY", 2, QUERN_E_MEMORY},
      {"no memory for a copy to the device", "cuMemAlloc:1:OUT_OF_MEMORY", 1, QUERN_E_MEMORY},
      {"no memory to gather in", "cuMemAlloc:1:OUT_OF_MEMORY", 0, QUERN_E_MEMORY},
      {"a copy to the host fails", "cuMemcpyDtoHAsync:1:ILLEGAL_ADDRESS", 0, QUERN_E_DRIVER},
      {"waiting for it fails", "cuStreamSynchronize:1:LAUNCH_FAILED", 0, QUERN_E_DRIVER},
      {"a copy to the device fails", "cuMemcpyHtoDAsync:1:INVALID_VALUE", 1, QUERN_E_DRIVER},
      {"waiting for that fails", "cuStreamSynchronize:1:LAUNCH_FAILED", 1, QUERN_E_DRIVER},
      {"a copy on the device fails", "cuMemcpyAsync:1:INVALID_VALUE", 3, QUERN_E_DRIVER},
      {"a launch fails", "cuLaunchKernel:1:LAUNCH_OUT_OF_RESOURCES", 2, QUERN_E_DRIVER},
      {"a launch before a copy to the host fails", "cuLaunchKernel:1:LAUNCH_OUT_OF_RESOURCES", 0, QUERN_E_DRIVER},
      {"no context", "cuCtxGetCurrent:1+:UNKNOWN", 0, QUERN_E_DRIVER}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    rng r;
    source s;
    rng_seed(&r, 9);
    layout_make(&s, &r, all[i].way == 3 ? 0 : 4, 4, 0);
    if (all[i].way != 1) source_send(&s, 0);
    cuda.plan(all[i].plan);
    refused(export_to(&s.t, 0, QUERN_COPY_ALWAYS, all[i].way ? cuda0 : cpu, stream), all[i].wanted, "CUDA_ERROR_", all[i].name);
    is_int(cuda.count("cuMemFree"), cuda.count("cuMemAlloc") - (all[i].wanted == QUERN_E_MEMORY), "  no memory is left");
    cuda.plan("");
    source_free(&s);
  }
}

int main(void) {
  quern_op *copy = NULL;
  device_stream stream;
  if (quern_op_find(NULL, "copy", &copy)) skip_all("this build has some ops only");
  quern_op_release(copy);
  setenv("QUERN_CACHE_DIR", "none", 1);
  const char *why = device_open();
  test_itself();
  test_host_copies();
  test_refused();
  if (why) {
    skip(1, "%s", why);
    return done_testing();
  }
  device_do(cuda.context_set(cuda.contexts[0]));
  device_do(cuda.stream_create(&stream, DEVICE_NONBLOCKING));
  test_device_copies(stream);
  test_there_already(stream);
  test_host_memory(stream);
  test_capture(stream);
  test_new();
  test_call(stream);
  if (is_fake()) test_failures(stream);
  device_context current = NULL;
  cuda.context_get(&current);
  ok(current == cuda.contexts[0], "the current context is as it was");
  device_do(cuda.stream_destroy(stream));
  return done_testing();
}
