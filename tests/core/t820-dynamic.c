/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t820-dynamic: nonzero and compress against the plainest loops: every dtype, layouts of all kinds, broadcast, sizes around
 * blocks, densities, threads, every level; shapes that are inferred, measured, wrong; what overlaps; inputs that another
 * thread writes meanwhile. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tensors.h"

static quern_op *nonzero, *compress; /* of the default context */

static quern_op *op_of(quern_ctx *ctx, const char *name) {
  quern_op *op = NULL;
  if (quern_op_find(ctx, name, &op)) bail("%s", quern_last_error());
  return op;
}

/* ---- Operands ---- */

/* Strides of any kind that do not overlap, or, of inputs, that may repeat items. */
static void random_strides(int ndim, const int64_t *shape, int64_t *strides, int is_output, rng *r) {
  int order[QUERN_MAX_NDIM];
  int64_t step = rng_below(r, 3) ? 1 : 3;
  int permuted = rng_below(r, 2) == 0;
  for (int i = 0; i < ndim; i++) order[i] = ndim - 1 - i;
  for (int i = ndim - 1; i > 0 && permuted; i--) {
    int j = (int)rng_below(r, (uint64_t)i + 1), t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
  for (int i = 0; i < ndim; i++) {
    int d = order[i];
    strides[d] = rng_below(r, 4) ? step : -step;
    if (!is_output && rng_below(r, 8) == 0) strides[d] = 0;
    step *= shape[d] > 0 ? shape[d] : 1;
    if (rng_below(r, 4) == 0) step += 2;
  }
}

static void make_input(operand *o, ref_dtype d, int ndim, const int64_t *shape, rng *r) {
  int64_t strides[QUERN_MAX_NDIM];
  random_strides(ndim, shape, strides, 0, r);
  operand_describe(o, d, ndim, shape, rng_below(r, 2) ? strides : NULL);
  operand_allocate(o, (int)rng_below(r, 4), GUARD_NONE);
  operand_fill(o, r);
}

/* Of all elements, one in `rarity` is not zero; 0: none is. Conditions that hold are any byte but 0. */
static void thin_out(operand *o, int64_t rarity, rng *r) {
  int64_t index[QUERN_MAX_NDIM + 1] = {0};
  if (ref_n_elements(&o->t) == 0) return;
  do {
    char *at = ref_address(&o->t, index);
    if (rarity == 0 || rng_below(r, (uint64_t)rarity)) ref_put(o->d, at, 0);
    else if (o->d == REF_BOOL) *(unsigned char *)at = (unsigned char)(1 + rng_below(r, 255));
    else if (rarity == 1) ref_put(o->d, at, ref_from_double(o->d, 1));
  } while (ref_next_index(o->t.ndim, o->t.shape, index));
}

static int holds(ref_dtype d, const char *at) {
  uint64_t bits = d == REF_BOOL ? *(const unsigned char *)at : ref_get(d, at);
  if (ref_dtype_kind(d) == REF_KIND_FLOAT) bits &= ((uint64_t)1 << (8 * ref_dtype_size(d) - 1)) - 1;
  return bits != 0;
}

/* ---- The reference ---- */

/* What is to come out: items of x, or indices. */
typedef struct found {
  int64_t count;
  uint64_t *values; /* [count * columns] */
} found;

/* x NULL: nonzero. */
static found reference(const operand *condition, const operand *x, int ndim, const int64_t *shape) {
  found f = {0, NULL};
  int64_t index[QUERN_MAX_NDIM + 1] = {0}, n = 1, room;
  for (int i = 0; i < ndim; i++) n *= shape[i];
  room = n * (x ? 1 : ndim) + 1;
  f.values = malloc((size_t)room * sizeof f.values[0]);
  if (n == 0) return f;
  do {
    if (!holds(condition->d, ref_broadcast_address(&condition->t, ndim, index))) continue;
    if (x) f.values[f.count] = ref_get(x->d, ref_broadcast_address(&x->t, ndim, index));
    for (int i = 0; i < ndim && !x; i++) f.values[f.count * ndim + i] = (uint64_t)index[i];
    f.count++;
  } while (ref_next_index(ndim, shape, index));
  return f;
}

/* Calls, and checks everything: measured and inferred shapes, status, elements, the bytes around them and of the inputs. */
static void check(quern_op *op, operand *condition, operand *x, int ndim, const int64_t *shape, rng *r, const char *note) {
  found f = reference(condition, x, ndim, shape);
  DLTensor *in[2] = {&condition->t, x ? &x->t : NULL};
  const int n_in = x ? 2 : 1, out_ndim = x ? 1 : 2;
  const int64_t wanted[2] = {f.count, ndim};
  ref_dtype d = x ? x->d : REF_I64;
  quern_shape measured = {.size = sizeof measured}, inferred = {.size = sizeof inferred};
  operand out;
  int64_t strides[2];
  char what[300] = "";
  random_strides(out_ndim, wanted, strides, 1, r);
  operand_describe(&out, d, out_ndim, wanted, rng_below(r, 2) ? strides : NULL);
  operand_allocate(&out, (int)rng_below(r, 3), GUARD_NONE);
  operand_fill(&out, r);
  operand_save(&out);
  operand_save(condition);
  if (x) operand_save(x);
  DLTensor *outs[1] = {&out.t};
  group_count(1);
  quern_status status = quern_op_infer(op, n_in, in, 1, &inferred);
  if (status || inferred.ndim != out_ndim || inferred.shape[0] != -1 || (!x && inferred.shape[1] != ndim))
    snprintf(what, sizeof what, "infer: %s", status_name(status));
  status = quern_op_measure(op, n_in, in, 1, &measured, NULL);
  if (status || measured.ndim != out_ndim || measured.shape[0] != f.count || (!x && measured.shape[1] != ndim) ||
      ref_dtype_of(measured.dtype) != d || measured.device.device_type != kDLCPU)
    snprintf(what, sizeof what, "measure: %s, %" PRId64 " found, wanted %" PRId64, status_name(status), measured.shape[0],
             f.count);
  status = quern_op_call(op, n_in, in, 1, outs, NULL);
  if (status) snprintf(what, sizeof what, "%s: %s", status_name(status), quern_last_error());
  int64_t index[QUERN_MAX_NDIM + 1] = {0}, at = 0, n = ref_n_elements(&out.t);
  for (; at < n && !what[0]; at++) {
    uint64_t got = ref_get(d, ref_address(&out.t, index));
    if (got != f.values[at])
      snprintf(what, sizeof what, "element %" PRId64 " of %" PRId64 ": got 0x%" PRIx64 ", wanted 0x%" PRIx64, at, n, got,
               f.values[at]);
    ref_next_index(out_ndim, out.t.shape, index);
  }
  if (!what[0]) {
    operand_forgive(&out);
    if (!operand_same(&out)) snprintf(what, sizeof what, "bytes around the output were written");
    if (!operand_same(condition) || (x && !operand_same(x))) snprintf(what, sizeof what, "an input was written");
  }
  if (what[0]) {
    char text[3000];
    int length = snprintf(text, sizeof text, "%s: %s; %s, seed 0x%" PRIx64 "\n", x ? "compress" : "nonzero", what, note,
                          test_seed());
    length += text_operand(text + length, sizeof text - (size_t)length, "in 1", condition);
    if (x) length += text_operand(text + length, sizeof text - (size_t)length, "in 2", x);
    text_operand(text + length, sizeof text - (size_t)length, "out", &out);
    group_fail("%s", text);
  }
  operand_free(&out);
  free(f.values);
}

static const int64_t RARITIES[] = {0, 1, 2, 3, 17, 200};

static int64_t any_rarity(rng *r) { return RARITIES[rng_below(r, sizeof RARITIES / sizeof *RARITIES)]; }

/* ---- Contiguous vectors, of lengths around what kernels and blocks take at a time ---- */

static void check_vectors(int quick) {
  static const int64_t sizes[] = {0,  1,   2,   7,   8,   9,    15,   16,   17,   63,   64,
                                  65, 127, 128, 129, 255, 1023, 1024, 1025, 2047, 2049, 5000};
  rng r;
  rng_seed(&r, 1);
  for (int d = 0; d < REF_N_DTYPES; d++) {
    group_begin("%s, vectors", ref_dtype_name((ref_dtype)d));
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s += quick ? 3 : 1) {
      for (size_t k = 0; k < sizeof RARITIES / sizeof *RARITIES; k++) {
        operand condition, x;
        operand_vector(&condition, REF_BOOL, sizes[s], &r);
        operand_vector(&x, (ref_dtype)d, sizes[s], &r);
        thin_out(&condition, RARITIES[k], &r);
        check(compress, &condition, &x, 1, &sizes[s], &r, "vectors");
        check(nonzero, &x, NULL, 1, &sizes[s], &r, "a vector"); /* as random as it comes: with NaN, -0, subnormals */
        thin_out(&x, RARITIES[k], &r);
        check(nonzero, &x, NULL, 1, &sizes[s], &r, "a vector");
        operand_free(&condition);
        operand_free(&x);
      }
    }
    group_end();
  }
}

/* ---- Any layout ---- */

static int random_shape(int most, int64_t *shape, rng *r) {
  static const int64_t extents[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33};
  int ndim = (int)rng_below(r, (uint64_t)most + 1);
  int64_t room = 6000;
  for (int i = 0; i < ndim; i++) {
    shape[i] = rng_below(r, 30) ? extents[1 + rng_below(r, sizeof extents / sizeof *extents - 1)] : 0;
    if (ndim <= 2 && rng_below(r, 3) == 0) shape[i] = rng_range(r, 1, 1500);
    if (shape[i] > room) shape[i] = 1;
    if (shape[i]) room /= shape[i];
  }
  return ndim;
}

/* Of a shape: some extents are 1, some leading dimensions are left out. Returns how many there are. */
static int broadcast_part(int ndim, const int64_t *shape, int64_t *part, rng *r) {
  int skip = rng_below(r, 2) ? 0 : (int)rng_below(r, (uint64_t)ndim + 1);
  for (int i = skip; i < ndim; i++) part[i - skip] = rng_below(r, 4) ? shape[i] : 1;
  return ndim - skip;
}

static void check_layouts(quern_ctx *ctx, int n_cases, const char *note) {
  quern_op *find_items = op_of(ctx, "compress"), *find_places = op_of(ctx, "nonzero");
  rng r;
  rng_seed(&r, 2);
  group_begin("any layout: %s", note);
  for (int i = 0; i < n_cases; i++) {
    int64_t shape[QUERN_MAX_NDIM], part[QUERN_MAX_NDIM];
    operand condition, x;
    int ndim = random_shape(i % 16 ? 5 : 9, shape, &r), is_first = rng_below(&r, 2) == 0;
    ref_dtype d = (ref_dtype)rng_below(&r, REF_N_DTYPES);
    int n_part = broadcast_part(ndim, shape, part, &r);
    make_input(&condition, REF_BOOL, is_first ? ndim : n_part, is_first ? shape : part, &r);
    make_input(&x, d, is_first ? n_part : ndim, is_first ? part : shape, &r);
    thin_out(&condition, any_rarity(&r), &r);
    check(find_items, &condition, &x, ndim, shape, &r, note);
    if (rng_below(&r, 2)) thin_out(&x, any_rarity(&r), &r);
    check(find_places, &x, NULL, x.t.ndim, x.t.shape, &r, note);
    operand_free(&condition);
    operand_free(&x);
  }
  group_end();
  quern_op_release(find_items);
  quern_op_release(find_places);
}

/* ---- Large: slices ---- */

static void check_large(quern_ctx *ctx, const char *note) {
  static const int64_t shapes[][3] = {{1, 1, 300001}, {7, 50021, 1}, {411, 3, 251}, {20011, 5, 3}};
  quern_op *find_items = op_of(ctx, "compress"), *find_places = op_of(ctx, "nonzero");
  rng r;
  rng_seed(&r, 3);
  const int part = SANITIZED ? test_part(4) : -1;
  group_begin("large: %s", note);
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    for (size_t k = 0; k < sizeof RARITIES / sizeof *RARITIES; k++) {
      operand condition, x;
      if (part >= 0 && (int)((s + k) % 4) != part) continue;
      operand_make(&condition, REF_BOOL, 3, shapes[s], NULL, &r);
      make_input(&x, k % 2 ? REF_F32 : REF_U8, 3, shapes[s], &r);
      thin_out(&condition, RARITIES[k], &r);
      check(find_items, &condition, &x, 3, shapes[s], &r, note);
      check(find_places, &condition, NULL, 3, shapes[s], &r, note);
      operand_free(&condition);
      operand_free(&x);
    }
  }
  group_end();
  quern_op_release(find_items);
  quern_op_release(find_places);
}

static void *run_range(void *arg) {
  void **of = arg;
  ((void (*)(void *, int64_t))of[0])(of[1], *(int64_t *)of[2]);
  return NULL;
}

/* A host's threads: a new one for each slice, the last first. */
static void in_threads(void *host, int64_t n, void (*slice)(void *, int64_t), void *arg) {
  pthread_t threads[64];
  void *of[64][3];
  int64_t at[64];
  (void)host;
  for (int64_t i = n - 1; i >= 0; i--) {
    at[i] = i;
    of[i][0] = (void *)slice, of[i][1] = arg, of[i][2] = &at[i];
    if (pthread_create(&threads[i], NULL, run_range, of[i])) bail("no thread");
  }
  for (int64_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

/* ---- Zero dimensions, rank 32 ---- */

static void check_ranks(void) {
  rng r;
  rng_seed(&r, 4);
  group_begin("0 dimensions, and 32");
  for (int true_or_false = 0; true_or_false < 2; true_or_false++) {
    operand condition, x;
    operand_make(&condition, REF_BOOL, 0, NULL, NULL, &r);
    operand_make(&x, REF_F64, 0, NULL, NULL, &r);
    thin_out(&condition, true_or_false, &r);
    check(compress, &condition, &x, 0, NULL, &r, "0-d");
    check(nonzero, &condition, NULL, 0, NULL, &r, "0-d");
    operand_free(&condition);
    operand_free(&x);
  }
  int64_t shape[QUERN_MAX_NDIM];
  for (int i = 0; i < QUERN_MAX_NDIM; i++) shape[i] = i % 3 == 0 ? 2 : 1;
  operand condition, x;
  make_input(&condition, REF_BOOL, QUERN_MAX_NDIM, shape, &r);
  make_input(&x, REF_I32, QUERN_MAX_NDIM, shape, &r);
  check(compress, &condition, &x, QUERN_MAX_NDIM, shape, &r, "32-d");
  check(nonzero, &x, NULL, QUERN_MAX_NDIM, shape, &r, "32-d");
  operand_free(&condition);
  operand_free(&x);
  group_end();
}

/* ---- Refusals ---- */

static void check_refusals(void) {
  rng r;
  rng_seed(&r, 5);
  operand condition, x, out, places;
  const int64_t n = 100, three = 3, rows[2] = {3, 1};
  operand_vector(&condition, REF_BOOL, n, &r);
  operand_vector(&x, REF_F32, n, &r);
  thin_out(&condition, 0, &r);
  for (int i = 0; i < 3; i++) ((char *)condition.t.data)[i * 40] = 1;
  operand_vector(&out, REF_F32, three, &r);
  operand_make(&places, REF_I64, 2, rows, NULL, &r);
  operand_save(&out);
  operand_save(&places);
  DLTensor *in[2] = {&condition.t, &x.t}, *outs[1] = {&out.t}, *place_outs[1] = {&places.t};
  quern_shape shape = {.size = sizeof shape};

  out.shape[0] = 4;
  is_int(quern_op_call(compress, 2, in, 1, outs, NULL), QUERN_E_SHAPE, "an output that is too long");
  is_str(quern_last_error(), "compress: output 1 (out): shape [4], expected [3]", "wanted and given");
  out.shape[0] = 2;
  is_int(quern_op_call(compress, 2, in, 1, outs, NULL), QUERN_E_SHAPE, "one that is too short");
  out.shape[0] = 3;
  places.t.ndim = 1;
  is_int(quern_op_call(nonzero, 1, in, 1, place_outs, NULL), QUERN_E_SHAPE, "one of another rank");
  is_str(quern_last_error(), "nonzero: output 1 (out): shape [3], expected [3, 1]", "wanted and given");
  places.t.ndim = 2;

  DLDataType f32 = out.t.dtype;
  out.t.dtype = ref_dtype_dl(REF_I32);
  is_int(quern_op_call(compress, 2, in, 1, outs, NULL), QUERN_E_DTYPE, "compress into another dtype");
  has_str(quern_last_error(), "compress: output 1 (out): dtype i32, expected f32", "named");
  out.t.dtype = f32;
  places.t.dtype = ref_dtype_dl(REF_F64);
  is_int(quern_op_call(nonzero, 1, in, 1, place_outs, NULL), QUERN_E_DTYPE, "nonzero into another dtype than i64");
  places.t.dtype = ref_dtype_dl(REF_I64);
  DLTensor *swapped[2] = {&x.t, &condition.t};
  is_int(quern_op_call(compress, 2, swapped, 1, outs, NULL), QUERN_E_DTYPE, "a condition that is not bool");
  has_str(quern_last_error(), "expected bool", "named");

  const uint64_t read_only = 1;
  const quern_call flagged = {.size = sizeof flagged, .out_flags = &read_only};
  is_int(quern_op_call(compress, 2, in, 1, outs, &flagged), QUERN_E_READONLY, "a read-only output");
  const quern_scalar number = {QUERN_F64, {.f = {1, 0}}};
  const quern_call with_param = {.size = sizeof with_param, .params = &number, .n_params = 1};
  is_int(quern_op_call(compress, 2, in, 1, outs, &with_param), QUERN_E_ARGUMENT, "a parameter too many");
  is_int(quern_op_measure(compress, 2, in, 1, &shape, &with_param), QUERN_E_ARGUMENT, "also to measure");

  x.shape[0] = 99;
  is_int(quern_op_call(compress, 2, in, 1, outs, NULL), QUERN_E_SHAPE, "shapes that do not broadcast");
  is_int(quern_op_measure(compress, 2, in, 1, &shape, NULL), QUERN_E_SHAPE, "also to measure");
  x.shape[0] = n;
  x.t.device.device_type = condition.t.device.device_type = kDLCUDA;
  is_int(quern_op_measure(compress, 2, in, 1, &shape, NULL), QUERN_E_DEVICE, "tensors of a CUDA device cannot be measured");
  has_str(quern_last_error(), "cuda:0", "named");
  is_int(quern_op_infer(compress, 2, in, 1, &shape), QUERN_OK, "but inferred");
  is_int(shape.device.device_type, kDLCUDA, "there");
  x.t.device.device_type = condition.t.device.device_type = kDLCPU;
  void *data = condition.t.data;
  condition.t.data = NULL;
  is_int(quern_op_measure(compress, 2, in, 1, &shape, NULL), QUERN_E_ARGUMENT, "no data to measure");
  is_int(quern_op_infer(compress, 2, in, 1, &shape), QUERN_OK, "none needed to infer");
  condition.t.data = data;
  is_int(quern_op_measure(compress, 2, in, 1, NULL, NULL), QUERN_E_ARGUMENT, "no place for shapes");
  shape.size = 8;
  is_int(quern_op_measure(compress, 2, in, 1, &shape, NULL), QUERN_E_VERSION, "a struct of no version");

  quern_plan *plan = NULL;
  is_int(quern_op_prepare(compress, 2, in, 1, outs, NULL, &plan), QUERN_E_UNSUPPORTED, "there are no plans");
  has_str(quern_last_error(), "depends on values", "and a reason");
  size_t bytes = 7;
  is_int(quern_op_workspace(compress, 2, in, 1, outs, NULL, &bytes), QUERN_OK, "workspace");
  is_int(bytes, 0, "none");
  quern_op *op = NULL;
  is_int(quern_op_compile(NULL, "y = nonzero(x) + 1", &op), QUERN_E_SYNTAX, "no part of an expression");
  has_str(quern_last_error(), "its output's shape depends on values", "and a reason");
  char *source = NULL;
  is_int(quern_op_source(nonzero, 1, in, 1, place_outs, &source), QUERN_E_UNSUPPORTED, "no source at run time");

  ok(operand_same(&out) && operand_same(&places), "no output was written");
  operand_free(&condition);
  operand_free(&x);
  operand_free(&out);
  operand_free(&places);
}

static void check_overlaps(void) {
  static unsigned char memory[4096];
  memset(memory, 1, sizeof memory);
  int64_t n = 64, strides[1] = {1}, places[2] = {64, 1}, place_strides[2] = {1, 1};
  DLTensor condition = {memory, {kDLCPU, 0}, 1, ref_dtype_dl(REF_BOOL), &n, strides, 0};
  DLTensor x = {memory + 1024, {kDLCPU, 0}, 1, ref_dtype_dl(REF_U8), &n, NULL, 0};
  DLTensor out = {memory + 1024, {kDLCPU, 0}, 1, ref_dtype_dl(REF_U8), &n, strides, 0};
  DLTensor *in[2] = {&condition, &x}, *outs[1] = {&out};
  is_int(quern_op_call(compress, 2, in, 1, outs, NULL), QUERN_E_OVERLAP, "the output is x");
  is_str(quern_last_error(), "compress: output 1 (out): overlaps input 2 (x)", "said so");
  out.data = memory + 63;
  is_int(quern_op_call(compress, 2, in, 1, outs, NULL), QUERN_E_OVERLAP, "a byte of the condition");
  out.data = memory + 64;
  is_int(quern_op_call(compress, 2, in, 1, outs, NULL), QUERN_OK, "behind it");
  out.data = memory + 1024 - 64;
  is_int(quern_op_call(compress, 2, in, 1, outs, NULL), QUERN_OK, "before x");
  strides[0] = 0;
  out.data = memory + 2048;
  is_int(quern_op_call(compress, 2, in, 1, outs, NULL), QUERN_E_OVERLAP, "an output that overlaps itself");
  strides[0] = 2;
  x.strides = strides;
  out.data = memory + 1025;
  is_int(quern_op_call(compress, 2, in, 1, outs, NULL), QUERN_OK, "between the items of x");
  n = 63;
  places[0] = 63;
  strides[0] = 1;
  DLTensor indices = {memory + 2048, {kDLCPU, 0}, 2, ref_dtype_dl(REF_I64), places, place_strides, 0};
  outs[0] = &indices;
  is_int(quern_op_call(nonzero, 1, in, 1, outs, NULL), QUERN_OK, "a column's stride does not matter where there is one");
  indices.data = memory + 56;
  is_int(quern_op_call(nonzero, 1, in, 1, outs, NULL), QUERN_E_OVERLAP, "indices over x");
  place_strides[0] = 0;
  indices.data = memory + 2048;
  is_int(quern_op_call(nonzero, 1, in, 1, outs, NULL), QUERN_E_OVERLAP, "indices over themselves");
  for (int i = 0; i < 64; i++) memory[i] = 0;
  n = 64;
  places[0] = 0;
  indices.data = memory;
  is_int(quern_op_call(nonzero, 1, in, 1, outs, NULL), QUERN_OK, "where nothing is found nothing overlaps");
}

static void check_explain(void) {
  rng r;
  rng_seed(&r, 6);
  operand condition, x, out;
  char text[2000];
  int64_t n = 5000, any = 17;
  operand_vector(&condition, REF_BOOL, n, &r);
  operand_vector(&x, REF_F16, n, &r);
  operand_vector(&out, REF_F16, any, &r);
  out.t.data = NULL;
  DLTensor *in[2] = {&condition.t, &x.t}, *outs[1] = {&out.t};
  is_int(quern_op_explain(compress, 2, in, 1, outs, NULL, text, sizeof text), QUERN_OK, "explain");
  has_str(text, "variant: qk_compress_bool_b16_b16_i64_1d_cccb", "the kernel");
  has_str(text, "input 2 (x): in place", "and how operands get to it");
  is_int(quern_op_explain(compress, 2, in, 1, outs, NULL, text, 20), QUERN_E_LIMIT, "too little room");
  operand_free(&condition);
  operand_free(&x);
  operand_free(&out);
}

/* ---- Another thread writes to the inputs meanwhile ---- */

#if !defined __SANITIZE_THREAD__
static atomic_int stop_writing;

static void *write_on(void *arg) {
  operand *o = arg;
  rng r;
  rng_seed(&r, 7);
  while (!stop_writing) {
    uint64_t at = rng_below(&r, 20000 - 512), byte = rng_u64(&r) & 1;
    for (int i = 0; i < 512; i++) ((volatile unsigned char *)o->t.data)[at + (uint64_t)i] = (unsigned char)byte;
  }
  return NULL;
}

/* Whatever is found: no byte outside the output is written. */
static void check_writer(void) {
  rng r;
  rng_seed(&r, 8);
  operand condition, x;
  const int64_t n = 20000;
  int n_done = 0, n_refused = 0;
  pthread_t writer;
  quern_ctx *ctx = NULL;
  const quern_options options = {.size = sizeof options, .threads = 3};
  if (quern_ctx_create(&options, &ctx)) bail("%s", quern_last_error());
  quern_op *ops[2] = {op_of(ctx, "compress"), op_of(ctx, "nonzero")};
  operand_vector(&condition, REF_BOOL, n, &r);
  operand_vector(&x, REF_I32, n, &r);
  DLTensor *in[2] = {&condition.t, &x.t};
  pthread_create(&writer, NULL, write_on, &condition);
  group_begin("another thread writes to the inputs");
  for (int i = 0; i < (SANITIZED ? 600 : 3000); i++) {
    const int is_places = i & 1;
    operand out;
    quern_shape shape = {.size = sizeof shape};
    quern_op_measure(ops[is_places], is_places ? 1 : 2, in, 1, &shape, NULL);
    operand_make(&out, is_places ? REF_I64 : REF_I32, shape.ndim, shape.shape, NULL, &r);
    operand_save(&out);
    DLTensor *outs[1] = {&out.t};
    quern_status status = quern_op_call(ops[is_places], is_places ? 1 : 2, in, 1, outs, NULL);
    group_count(1);
    n_done += status == QUERN_OK;
    n_refused += status == QUERN_E_SHAPE;
    if (status == QUERN_OK || strstr(quern_last_error(), "another thread")) operand_forgive(&out);
    if ((status && status != QUERN_E_SHAPE) || !operand_same(&out))
      group_fail("%s, or bytes outside the output were written", status_name(status));
    operand_free(&out);
  }
  group_end();
  stop_writing = 1;
  pthread_join(writer, NULL);
  ok(n_done + n_refused > 0, "%d were filled, %d had another shape by then", n_done, n_refused);
  operand_free(&condition);
  operand_free(&x);
  quern_op_release(ops[0]);
  quern_op_release(ops[1]);
  quern_ctx_release(ctx);
}

/* What becomes 0 between the two passes: the writer's worst moment. */
static operand *vanishing;
static int n_passes;

static void vanish(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg) {
  (void)host;
  if (n_passes++ == 1) memset((char *)vanishing->t.data + 100000, 0, 200000);
  for (int64_t i = 0; i < n; i++) slice(arg, i);
}

/* Fewer elements are found than were counted: SHAPE, and zeros in place of the others. */
static void check_lost(void) {
  static const char *const names[] = {"nonzero", "compress", "compress"};
  static unsigned char out[16 * 300000];
  const int64_t n = 300000;
  rng r;
  rng_seed(&r, 9);
  operand condition, x;
  quern_ctx *ctx = NULL;
  const quern_options options = {.size = sizeof options, .threads = 3, .parallel_for = vanish};
  if (quern_ctx_create(&options, &ctx)) bail("%s", quern_last_error());
  operand_vector(&condition, REF_BOOL, n, &r);
  operand_vector(&x, REF_U8, n, &r);
  memset(x.t.data, 7, (size_t)n);
  vanishing = &condition;
  for (int form = 0; form < 3; form++) {
    const int is_places = form == 0;
    quern_op *op = op_of(ctx, names[form]);
    DLTensor *in[2] = {&condition.t, &x.t};
    int64_t shape[2] = {n, 1}, strides[2] = {form == 2 ? 2 : 1, 1};
    DLTensor to = {out, {kDLCPU, 0}, is_places ? 2 : 1, {is_places ? kDLInt : kDLUInt, is_places ? 64 : 8, 1}, shape, strides, 0};
    DLTensor *outs[1] = {&to};
    int64_t n_left = 0, n_other = 0;
    memset(condition.t.data, 1, (size_t)n);
    memset(out, 99, sizeof out);
    n_passes = 0;
    const quern_status status = quern_op_call(op, is_places ? 1 : 2, in, 1, outs, NULL);
    const char *why = quern_last_error();
    ok(status == QUERN_E_SHAPE && strstr(why, "another thread changed"), "%s: %s", names[form], why);
    for (int64_t i = 0; i < n; i++) {
      const int64_t found = is_places ? ((int64_t *)(void *)out)[i] : out[i * strides[0]];
      n_left += found == 0;
      n_other += found != 0 && (is_places ? found >= n : found != 7);
    }
    ok(n_other == 0 && n_left >= 200000 && n_left <= 200001, "  what is not found is 0 (%d of %d)", (int)n_left, (int)n);
    quern_op_release(op);
  }
  operand_free(&condition);
  operand_free(&x);
  quern_ctx_release(ctx);
}

/* ---- Every level ---- */

/* This program again, under a cap. */
static void check_levels(const char *program) {
  static const char *const levels[] = {"generic", "v2", "v3"};
  for (int k = 0; k < 3; k++) {
    char command[4200];
    snprintf(command, sizeof command, "QUERN_ISA=%s '%s' quick >/dev/null 2>&1", levels[k], program);
    is_int(system(command), 0, "as right at level %s", levels[k]);
  }
}
#endif

int main(int argc, char **argv) {
  const int is_child = argc > 1 && strcmp(argv[1], "quick") == 0;
#if defined __SANITIZE_THREAD__
  const int quick = 1; /* of what runs on one thread */
#else
  const int quick = is_child;
#endif
  if (is_subset() && quern_op_find(NULL, "compress", &compress) == QUERN_E_NOTFOUND)
    skip_all("this build has some ops only, and no compress");
  quern_op_release(compress);
  compress = op_of(NULL, "compress");
  nonzero = op_of(NULL, "nonzero");
  check_vectors(quick);
  check_layouts(NULL, quick ? 300 : 3000, "the default context");
  if (!is_child) {
    const quern_options three = {.size = sizeof three, .threads = 3};
    const quern_options host = {.size = sizeof host, .threads = 7, .parallel_for = in_threads};
    quern_ctx *ctx = NULL;
    check_large(NULL, "the default context");
    if (quern_ctx_create(&three, &ctx)) bail("%s", quern_last_error());
    check_large(ctx, "three threads");
    quern_ctx_release(ctx);
    if (quern_ctx_create(&host, &ctx)) bail("%s", quern_last_error());
    check_large(ctx, "a host's threads");
    quern_ctx_release(ctx);
    is_int(quern_op_describe(nonzero)->op_class, QUERN_CLASS_DYNAMIC, "its class");
    check_ranks();
    check_refusals();
    check_overlaps();
    check_explain();
#if defined __SANITIZE_THREAD__
    skip(2, "a race by design");
#else
    check_writer();
    check_lost();
    check_levels(argv[0]);
#endif
  }
  quern_op_release(compress);
  quern_op_release(nonzero);
  return done_testing();
}
