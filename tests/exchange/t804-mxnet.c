/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t804-mxnet: beside an array library as MXNet is (mxnet_style.h): its arrays computed on in place, by what they hand out, and
 * its arrays made from Quern's tensors, with one memory throughout, nothing copied, nothing left over. */
#include <string.h>

#include "mxnet_style.h"
#include "producers.h"

enum { ROWS = 4, COLUMNS = 3, N = ROWS * COLUMNS };
static const int64_t shape[2] = {ROWS, COLUMNS};
static quern_status status;

static quern_op *op_named(const char *name) {
  quern_op *op = NULL;
  if (quern_op_find(NULL, name, &op)) skip_all("this build has some ops only");
  return op;
}

static mx_ndarray *counted(float first) {
  mx_ndarray *array = mx_ndarray_make(MX_F32, 2, shape);
  for (int i = 0; i < N; i++) ((float *)mx_ndarray_data(array))[i] = first + (float)i;
  return array;
}

/* How many of n elements are not first + step i. */
static int n_wrong(const mx_ndarray *array, int n, float first, float step) {
  int n_bad = 0;
  for (int i = 0; i < n; i++) n_bad += ((float *)mx_ndarray_data(array))[i] != first + step * (float)i;
  return n_bad;
}

static quern_operand taken(DLManagedTensor *tensor) { return (quern_operand){QUERN_OPERAND_LEGACY, 1, {.legacy = tensor}}; }

/* Nothing of either library is there any more. */
static void is_clean(const char *name) { ok(mx_n_chunks() == 0 && mx_n_tensors() == 0, "%s: nothing is left over", name); }

/* ---- Its arrays, our ops ---- */

static void test_calls(void) {
  quern_op *add = op_named("add");
  mx_ndarray *a = counted(0), *b = counted(100), *c = counted(0);
  quern_operand in[2] = {taken(mx_ndarray_to_dlpack(a, 0)), taken(mx_ndarray_to_dlpack(b, 0))},
                out = taken(mx_ndarray_to_dlpack(c, 0));
  ok(in[0].of.legacy->dl_tensor.data == mx_ndarray_data(a), "its arrays' memory is handed out");
  is_int(quern_op_call_managed(add, 2, in, 1, &out, NULL), QUERN_OK, "and added");
  is_int(n_wrong(c, N, 100, 2), 0, "  where its own array lies");
  is_int(mx_n_tensors(), 0, "  all that was handed out is given back");
  is_int(mx_ndarray_references(a) + mx_ndarray_references(b) + mx_ndarray_references(c), 3, "  no references are left");

  /* In place: the array twice as an input, and as the output, handed out each time. */
  in[0] = taken(mx_ndarray_to_dlpack(a, 0)), in[1] = taken(mx_ndarray_to_dlpack(a, 0)), out = taken(mx_ndarray_to_dlpack(a, 0));
  is_int(mx_ndarray_references(a), 4, "one array, handed out three times");
  is_int(quern_op_call_managed(add, 2, in, 1, &out, NULL), QUERN_OK, "  is added to itself in place");
  ok(n_wrong(a, N, 0, 2) == 0 && mx_ndarray_references(a) == 1, "  is right");

  /* Handed out once, used three times. */
  in[0] = in[1] = out = taken(mx_ndarray_to_dlpack(a, 0));
  is_int(quern_op_call_managed(add, 2, in, 1, &out, NULL), QUERN_OK, "handed out once");
  ok(n_wrong(a, N, 0, 4) == 0 && mx_ndarray_references(a) == 1, "  is right");

  mx_ndarray *rows = mx_ndarray_rows(a, 1, 3);
  in[0] = in[1] = out = taken(mx_ndarray_to_dlpack(rows, 0));
  mx_ndarray_free(rows); /* what is handed out holds the chunk */
  is_int(quern_op_call_managed(add, 2, in, 1, &out, NULL), QUERN_OK, "two rows of it");
  const float *data = mx_ndarray_data(a);
  ok(data[2] == 8 && data[3] == 24 && data[8] == 64 && data[9] == 36, "  and no other are doubled");

  /* Another shape: refused, and all is given back. */
  const int64_t other[2] = {ROWS, 1};
  mx_ndarray *d = mx_ndarray_make(MX_F32, 2, other);
  in[0] = taken(mx_ndarray_to_dlpack(a, 0)), in[1] = taken(mx_ndarray_to_dlpack(b, 0)), out = taken(mx_ndarray_to_dlpack(d, 0));
  is_int(quern_op_call_managed(add, 2, in, 1, &out, NULL), QUERN_E_SHAPE, "an output of another shape");
  is_int(mx_n_tensors(), 0, "  all that was handed out is given back");
  mx_ndarray_free(a), mx_ndarray_free(b), mx_ndarray_free(c), mx_ndarray_free(d);
  is_clean("calls");
  quern_op_release(add);
}

static void test_bools(void) {
  quern_op *less = op_named("less"), *where = op_named("where");
  static const char *const names[] = {"uint of 1 bit", "uint of 8 bits", "bool"};
  for (int form = MX_BOOL_IS_U1; form <= MX_BOOL_IS_BOOL; form++) {
    mx_ndarray *a = counted(0), *b = counted(0), *c = mx_ndarray_make(MX_BOOL, 2, shape);
    for (int i = 0; i < N; i++) ((float *)mx_ndarray_data(b))[i] = 5;
    quern_operand in[3] = {taken(mx_ndarray_to_dlpack(a, 0)), taken(mx_ndarray_to_dlpack(b, 0))};
    quern_operand out = taken(mx_ndarray_to_dlpack(c, (mx_bool_form)form));
    struct DLManagedTensorVersioned *condition = NULL;
    if (form == MX_BOOL_IS_U8) { /* that it means a bool has to be said: by an import */
      status = quern_managed_import_legacy(out.of.legacy, QUERN_IMPORT_U8_IS_BOOL, &condition);
      if (status) bail("%s", quern_last_error());
      out = (quern_operand){QUERN_OPERAND_VERSIONED, 1, {.versioned = condition}};
    }
    is_int(quern_op_call_managed(less, 2, in, 1, &out, NULL), QUERN_OK, "a bool as %s: written", names[form]);
    int n_good = 0;
    for (int i = 0; i < N; i++) n_good += ((unsigned char *)mx_ndarray_data(c))[i] == (i < 5);
    is_int(n_good, N, "  a byte each, in its array");

    status = quern_managed_import_legacy(mx_ndarray_to_dlpack(c, (mx_bool_form)form), QUERN_IMPORT_U8_IS_BOOL, &condition);
    ok(status == QUERN_OK && condition->dl_tensor.dtype.code == kDLBool && condition->dl_tensor.dtype.bits == 8 &&
           condition->dl_tensor.data == mx_ndarray_data(c), "  imported: a bool, the same memory");
    in[0] = (quern_operand){QUERN_OPERAND_VERSIONED, 1, {.versioned = condition}};
    in[1] = taken(mx_ndarray_to_dlpack(a, 0)), in[2] = taken(mx_ndarray_to_dlpack(b, 0)), out = taken(mx_ndarray_to_dlpack(b, 0));
    is_int(quern_op_call_managed(where, 3, in, 1, &out, NULL), QUERN_OK, "  read");
    ok(((float *)mx_ndarray_data(b))[4] == 4 && ((float *)mx_ndarray_data(b))[5] == 5, "  chooses");
    mx_ndarray_free(a), mx_ndarray_free(b), mx_ndarray_free(c);
    is_clean("  bools");
  }
  quern_op_release(less);
  quern_op_release(where);
}

/* ---- Round and round ---- */

/* Its array, through every form, and back to itself. */
static void test_round(void) {
  mx_ndarray *a = counted(1);
  void *const address = mx_ndarray_data(a);
  struct DLManagedTensorVersioned *ours = NULL;
  DLManagedTensor *legacy = NULL;
  status = quern_managed_import_legacy(mx_ndarray_to_dlpack(a, 0), 0, &ours);
  if (status) bail("%s", quern_last_error());
  const int64_t *strides = ours->dl_tensor.strides;
  ok(strides && strides[0] == COLUMNS && strides[1] == 1 && ours->dl_tensor.data == address, "imported: strides, its address");
  mx_ndarray_free(a);
  is_int(mx_n_chunks(), 1, "  it outlives its array");
  if (quern_managed_downgrade(ours, &legacy)) bail("%s", quern_last_error());
  mx_ndarray *back = mx_ndarray_from_dlpack(legacy);
  ok(back && mx_ndarray_data(back) == address && n_wrong(back, N, 1, 1) == 0, "legacy again, and its array again: one memory");

  quern_op *negative = op_named("negative");
  quern_operand in = taken(mx_ndarray_to_dlpack(back, 0)), out = taken(mx_ndarray_to_dlpack(back, 0));
  is_int(quern_op_call_managed(negative, 1, &in, 1, &out, NULL), QUERN_OK, "  computed on in place");
  is_int(n_wrong(back, N, -1, -1), 0, "  is right");
  mx_ndarray_free(back);
  is_clean("round");
  quern_op_release(negative);
}

/* A tensor of a host's own memory, for its arrays; a read-only one cannot be. */
static void test_wrapped(void) {
  float memory[N];
  atomic_int n_released = 0;
  DLManagedTensor *legacy = NULL;
  DLTensor t = {memory, {kDLCPU, 0}, 2, a_f32, (int64_t *)(uintptr_t)shape, NULL, 0};
  for (int i = 0; i < N; i++) memory[i] = (float)i;
  is_int(quern_managed_wrap_legacy(&t, DLPACK_FLAG_BITMASK_READ_ONLY, count_release, &n_released, &legacy), QUERN_E_READONLY,
         "read-only memory is not handed to a consumer who cannot see that");
  is_int(quern_managed_wrap_legacy(&t, 0, count_release, &n_released, &legacy), QUERN_OK, "a host's memory");
  mx_ndarray *a = mx_ndarray_from_dlpack(legacy), *rows = mx_ndarray_rows(a, 2, 4);
  mx_ndarray_free(a);
  ok(mx_ndarray_data(rows) == &memory[2 * COLUMNS] && n_released == 0, "  is its array's, and that of a part of it");
  mx_ndarray_free(rows);
  is_int(n_released, 1, "  until the last is freed");
  is_clean("wrapped");
}

/* Memory that Quern makes, filled by an op, freed by it. */
static void test_made(void) {
  quern_op *add = op_named("add");
  mx_ndarray *a = counted(0);
  struct DLManagedTensorVersioned *made = NULL;
  DLManagedTensor *legacy = NULL, *of_a = mx_ndarray_to_dlpack(a, 0);
  if (quern_managed_alloc(&of_a->dl_tensor, &made, NULL, NULL)) bail("%s", quern_last_error());
  void *const address = made->dl_tensor.data;
  quern_operand in[2] = {taken(of_a), taken(of_a)}, out = {QUERN_OPERAND_VERSIONED, 0, {.versioned = made}};
  is_int(quern_op_call_managed(add, 2, in, 1, &out, NULL), QUERN_OK, "a new tensor like its array, computed");
  if (quern_managed_downgrade(made, &legacy)) bail("%s", quern_last_error());
  mx_ndarray *b = mx_ndarray_from_dlpack(legacy);
  ok(b && mx_ndarray_data(b) == address && n_wrong(b, N, 0, 2) == 0, "  is its array");
  mx_ndarray_free(a), mx_ndarray_free(b);
  is_clean("made");
  quern_op_release(add);
}

/* ---- Many at once ---- */

static void *go_round(void *arg) {
  const mx_ndarray *a = arg;
  for (int i = 0; i < 200; i++) {
    struct DLManagedTensorVersioned *ours = NULL;
    DLManagedTensor *legacy = NULL;
    if (quern_managed_import_legacy(mx_ndarray_to_dlpack(a, 0), 0, &ours) || quern_managed_downgrade(ours, &legacy)) return arg;
    mx_ndarray *back = mx_ndarray_from_dlpack(legacy);
    if (!back || mx_ndarray_data(back) != mx_ndarray_data(a)) return arg;
    mx_ndarray_free(back);
  }
  return NULL;
}

static void test_threads(void) {
  pthread_t threads[4];
  int n_failed = 0;
  void *end;
  mx_ndarray *a = counted(0);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, go_round, a);
  for (int i = 0; i < 4; i++) n_failed += pthread_join(threads[i], &end) || end;
  ok(n_failed == 0 && mx_ndarray_references(a) == 1, "threads that share an array");
  mx_ndarray_free(a);
  is_clean("threads");
}

int main(void) {
  test_calls();
  test_bools();
  test_round();
  test_wrapped();
  test_made();
  test_threads();
  return done_testing();
}
