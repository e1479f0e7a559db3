/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t103-nest: loop nests over several tensors: normalisation, against a walk index by index; the aliasing law, against sets of bytes
 * and in single cases; devices with handles in place of addresses. */
#include <limits.h>
#include <stdio.h>
#include <time.h>

#include "runtime/core/base/status.h"
#include "descriptors.h"

/* ---- Random nests ---- */

typedef struct nest_case {
  int n_in, n_out, ndim;
  int64_t shape[8];
  tensor t[5];
  qn_tensor in[3], out[2];
  uint8_t sizes[5];
} nest_case;

/* Strides of `t` over its own shape: compact, permuted, with gaps, negative, zero, or any. Extents are small. */
static void random_strides(rng *r, tensor *t, int wild, int64_t most) {
  int order[8], n = t->dl.ndim;
  int64_t step = 1;
  const int kind = (int)rng_below(r, 4), plain = rng_below(r, 2) == 0;
  for (int d = 0; d < n; d++) order[d] = n - 1 - d;
  if (!plain) {
    for (int d = n - 1; d > 0; d--) {
      const int e = (int)rng_below(r, (uint64_t)d + 1), o = order[d];
      order[d] = order[e];
      order[e] = o;
    }
  }
  for (int i = 0; i < n; i++) {
    const int d = order[i];
    t->strides[d] = step;
    step *= t->shape[d];
    if (kind == 1 && rng_below(r, 3) == 0) step += rng_range(r, 0, 3);
    if (kind >= 2 && rng_below(r, 3) == 0) t->strides[d] = -t->strides[d];
    if (wild && rng_below(r, 4) == 0) t->strides[d] = rng_range(r, -most, most);
    if (wild && rng_below(r, 6) == 0) t->strides[d] = 0;
    if (t->shape[d] == 1 && rng_below(r, 2)) t->strides[d] = rng_range(r, -99, 99);
  }
  t->dl.strides = t->strides;
}

/* span: where the tensors start, in a stretch of this many bytes. */
static int random_case(rng *r, nest_case *c, int most_extent, int64_t wild_stride, int64_t span) {
  const int shared_size = rng_below(r, 2) ? (int)rng_below(r, 4) : -1;
  c->n_in = (int)rng_below(r, 4);
  c->n_out = (int)rng_range(r, 1, 2);
  c->ndim = (int)rng_below(r, rng_below(r, 3) ? 4 : 7);
  for (int d = 0; d < c->ndim; d++) {
    c->shape[d] = rng_below(r, 40) == 0 ? 0 : rng_range(r, 1, most_extent);
    if (rng_below(r, 5) == 0) c->shape[d] = 1;
  }
  for (int k = 0; k < c->n_in + c->n_out; k++) {
    const int is_out = k >= c->n_in, type = shared_size >= 0 ? shared_size : (int)rng_below(r, 4);
    int ndim = c->ndim, lead = 0;
    int64_t shape[8];
    if (!is_out && rng_below(r, 4) == 0) lead = (int)rng_below(r, (uint64_t)ndim + 1);
    ndim -= lead;
    for (int d = 0; d < ndim; d++) {
      shape[d] = c->shape[lead + d];
      if (!is_out && rng_below(r, 8) == 0) shape[d] = 1;
    }
    make(&c->t[k], (void *)((uintptr_t)0x100000 + rng_below(r, (uint64_t)span)), types[type], ndim, shape, NULL);
    if (rng_below(r, 4)) random_strides(r, &c->t[k], rng_below(r, 3) == 0, wild_stride);
    if (k > 0 && rng_below(r, 3) == 0) { /* near or exactly an earlier one */
      const tensor *other = &c->t[rng_below(r, (uint64_t)k)];
      c->t[k].dl.data = other->dl.data;
      if (other->dl.ndim == ndim) {
        memcpy(c->t[k].strides, other->strides, sizeof other->strides);
        c->t[k].dl.strides = other->dl.strides ? c->t[k].strides : NULL;
      }
      if (rng_below(r, 2)) c->t[k].dl.dtype = other->dl.dtype;
      if (rng_below(r, 4) == 0) c->t[k].dl.byte_offset = rng_below(r, 16);
    }
  }
  for (int k = 0; k < c->n_in + c->n_out; k++) {
    qn_tensor *read = k < c->n_in ? &c->in[k] : &c->out[k - c->n_in];
    if (qn_tensor_read(&c->t[k].dl, "add", &args[k], k, 1, read)) return 0;
    c->sizes[k] = read->size;
  }
  return 1;
}

/* Address of operand k at the index of the shape, straight from the definition. */
static uintptr_t address_of(const nest_case *c, int k, const int64_t *index) {
  const DLTensor *t = &c->t[k].dl;
  const int64_t *shape = c->shape, lead = c->ndim - t->ndim;
  uintptr_t at = (uintptr_t)t->data + t->byte_offset;
  int64_t compact = 1;
  (void)shape;
  for (int d = t->ndim - 1; d >= 0; d--) {
    const int64_t i = t->shape[d] == 1 ? 0 : index[lead + d];
    at += (uintptr_t)(i * (t->strides ? t->strides[d] : compact) * (t->dtype.bits / 8));
    compact *= t->shape[d];
  }
  return at;
}

static int next_index(int ndim, const int64_t *shape, int64_t *index) {
  for (int d = ndim - 1; d >= 0; d--) {
    if (++index[d] < shape[d]) return 1;
    index[d] = 0;
  }
  return 0;
}

typedef struct row {
  uintptr_t a[5];
} row;

static int compare_rows(const void *a, const void *b) {
  return memcmp(a, b, sizeof(row));
}

static row *rows_wanted, *rows_got;
#define MAX_ROWS 200000

static int64_t walk_definition(const nest_case *c, row *rows) {
  int64_t n = 0, index[8] = {0};
  for (int d = 0; d < c->ndim; d++) {
    if (c->shape[d] == 0) return 0;
  }
  do {
    memset(&rows[n], 0, sizeof(row));
    for (int k = 0; k < c->n_in + c->n_out; k++) rows[n].a[k] = address_of(c, k, index);
    n++;
  } while (next_index(c->ndim, c->shape, index));
  return n;
}

static int64_t walk_nest(const qn_nest *nest, row *rows) {
  int64_t n = 0, index[QUERN_MAX_NDIM] = {0};
  if (nest->n_elements == 0) return 0;
  for (;;) {
    memset(&rows[n], 0, sizeof(row));
    for (int k = 0; k < nest->n_operands; k++) {
      rows[n].a[k] = (uintptr_t)qn_ref_address(nest->ref[k]);
      for (int d = 0; d < nest->rank; d++) rows[n].a[k] += (uintptr_t)(index[d] * nest->stride[k][d]);
    }
    n++;
    int d = 0;
    for (; d < nest->rank && ++index[d] == nest->n[d]; d++) index[d] = 0;
    if (d == nest->rank) return n;
  }
}

static int64_t absolute(int64_t x) {
  return x < 0 ? -x : x;
}

/* What a normalised nest must look like; NULL, or what is wrong. */
static const char *not_normal(const qn_nest *nest, int key) {
  for (int d = 0; d < nest->rank; d++) {
    int up = 0, down = 0, even = d > 0;
    if (nest->n[d] < 2) return "an extent below 2";
    for (int k = 0; k < nest->n_operands; k++) {
      up |= nest->stride[k][d] > 0;
      down |= nest->stride[k][d] < 0;
      even = even && nest->stride[k][d] == nest->stride[k][d - 1] * nest->n[d - 1];
    }
    if (down && !up) return "a dimension not flipped";
    if (even) return "dimensions not merged";
    if (d && absolute(nest->stride[key][d]) < absolute(nest->stride[key][d - 1])) return "dimensions out of order";
  }
  return NULL;
}

static void describe(const nest_case *c, char *text, size_t size) {
  size_t at = 0;
  for (int k = 0; k < c->n_in + c->n_out; k++) {
    const DLTensor *t = &c->t[k].dl;
    at += (size_t)snprintf(text + at, size - at, "%s 0x%llx +%llu x%d shape", k < c->n_in ? "in" : "out",
                           (unsigned long long)(uintptr_t)t->data, (unsigned long long)t->byte_offset, t->dtype.bits / 8);
    for (int d = 0; d < t->ndim; d++) at += (size_t)snprintf(text + at, size - at, " %lld", (long long)t->shape[d]);
    at += (size_t)snprintf(text + at, size - at, t->strides ? " strides" : " compact");
    for (int d = 0; t->strides && d < t->ndim; d++) {
      at += (size_t)snprintf(text + at, size - at, " %lld", (long long)t->strides[d]);
    }
    at += (size_t)snprintf(text + at, size - at, "\n");
  }
}

static void test_normalise(void) {
  static nest_case c;
  static char text[4096];
  qn_nest nest;
  rng r;
  rng_seed(&r, 1);
  int low_rank = 0;
  group_begin("normalised nests walk the same addresses together");
  for (int i = 0; i < 30000; i++) {
    if (!random_case(&r, &c, 4, 1000, 4096)) {
      group_fail("case %d: not read: %s", i, quern_last_error());
      continue;
    }
    memset(&nest, 0x5a, sizeof nest);
    qn_tensor_normalise(c.ndim, c.shape, c.n_in, c.in, c.n_out, c.out, &nest);
    const int64_t wanted = walk_definition(&c, rows_wanted);
    group_count(1);
    const char *wrong = NULL;
    if (nest.n_elements != wanted || nest.n_operands != c.n_in + c.n_out) {
      wrong = "counts";
    } else if (!(wrong = not_normal(&nest, c.n_in)) && walk_nest(&nest, rows_got) != wanted) {
      wrong = "number of elements walked";
    } else if (!wrong) {
      qsort(rows_wanted, (size_t)wanted, sizeof(row), compare_rows);
      qsort(rows_got, (size_t)wanted, sizeof(row), compare_rows);
      if (memcmp(rows_wanted, rows_got, (size_t)wanted * sizeof(row))) wrong = "addresses";
    }
    low_rank += nest.rank <= 1;
    if (wrong) {
      describe(&c, text, sizeof text);
      group_fail("case %d: %s (rank %d)\n%s", i, wrong, nest.rank, text);
    }
  }
  group_end();
  diag("%d of 30000 nests have rank 0 or 1", low_rank);
}

/* ---- Overlap ---- */

#define ARENA 8192
static uint8_t touched[5][ARENA]; /* how often: 0, 1, 2 = more */

/* The law by sets of bytes. */
static int lawful(const nest_case *c) {
  const int n = c->n_in + c->n_out;
  uintptr_t low = UINTPTR_MAX;
  const int64_t n_rows = walk_definition(c, rows_wanted);
  for (int64_t i = 0; i < n_rows; i++) {
    for (int k = 0; k < n; k++) low = rows_wanted[i].a[k] < low ? rows_wanted[i].a[k] : low;
  }
  memset(touched, 0, sizeof touched);
  for (int64_t i = 0; i < n_rows; i++) {
    for (int k = 0; k < n; k++) {
      for (int b = 0; b < c->sizes[k]; b++) {
        const uintptr_t at = rows_wanted[i].a[k] - low + (uintptr_t)b;
        if (at >= ARENA) return -1;
        if (touched[k][at] < 2) touched[k][at]++;
      }
    }
  }
  for (int k = c->n_in; k < n; k++) {
    for (int b = 0; b < ARENA; b++) {
      if (touched[k][b] > 1) return 0;
    }
    for (int j = 0; j < k; j++) {
      int same = j < c->n_in && c->sizes[j] == c->sizes[k], disjoint = 1;
      for (int64_t i = 0; i < n_rows && same; i++) same = rows_wanted[i].a[j] == rows_wanted[i].a[k];
      for (int b = 0; b < ARENA && !same && disjoint; b++) disjoint = !(touched[k][b] && touched[j][b]);
      if (!same && !disjoint) return 0;
    }
  }
  return 1;
}

static void test_overlap(void) {
  static nest_case c;
  static char text[4096];
  qn_nest nest;
  rng r;
  int n_lawful = 0, n_checked = 0;
  rng_seed(&r, 2);
  group_begin("the aliasing law agrees with sets of bytes");
  for (int i = 0; i < 60000; i++) {
    const int64_t spans[] = {64, 256, 1024};
    if (!random_case(&r, &c, i % 3 ? 4 : 3, 30, spans[i % 3])) continue;
    const int wanted = lawful(&c);
    if (wanted < 0) continue;
    qn_tensor_normalise(c.ndim, c.shape, c.n_in, c.in, c.n_out, c.out, &nest);
    const quern_arg_info named[] = {args[0], args[1], args[2], args[OUT], args[OUT + 1]};
    const quern_status got = qn_tensor_check_overlap("add", named, &nest, c.n_out, c.sizes);
    group_count(1);
    n_checked++;
    n_lawful += wanted;
    if (got != (wanted ? 0 : QUERN_E_OVERLAP)) {
      describe(&c, text, sizeof text);
      group_fail("case %d: got %d (%s), wanted %s\n%s", i, (int)got, got ? quern_last_error() : "", wanted ? "lawful" : "overlap",
                 text);
    }
  }
  group_end();
  diag("%d of %d are lawful", n_lawful, n_checked);
  ok(n_lawful > n_checked / 5 && n_lawful < n_checked * 4 / 5, "the cases are mixed");
}

static quern_status overlap_of(int n_in, tensor *const *t, int n_out) {
  qn_tensor in[3], out[2];
  uint8_t sizes[5];
  int64_t shape[QUERN_MAX_NDIM];
  int32_t ndim;
  qn_nest nest;
  quern_arg_info named[5];
  for (int k = 0; k < n_in + n_out; k++) {
    qn_tensor *read = k < n_in ? &in[k] : &out[k - n_in];
    named[k] = args[k < n_in ? k : k - n_in + OUT];
    if (qn_tensor_read(&t[k]->dl, "add", &named[k], k < n_in ? k : k - n_in, 1, read)) return 1;
    sizes[k] = read->size;
  }
  if (qn_tensor_broadcast("add", named, n_in, in, shape, &ndim)) return 1;
  ndim = out[0].ndim;
  memcpy(shape, out[0].shape, (size_t)ndim * sizeof *shape);
  qn_tensor_normalise(ndim, shape, n_in, in, n_out, out, &nest);
  return qn_tensor_check_overlap("add", named, &nest, n_out, sizes);
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void test_overlap_cases(void) {
  tensor a, o, p;
  const DLDataType f32 = {kDLFloat, 32, 1};
  char *m = (char *)(uintptr_t)0x10000000;
  make(&a, m, f32, 1, (int64_t[]){100}, NULL);
  make(&o, m, f32, 1, (int64_t[]){100}, NULL);
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), 0, "in place");
  o.dl.byte_offset = 4;
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "an item on");
  is_str(quern_last_error(), "add: output 1 (out): overlaps input 1 (x) other than item by item at the same addresses", "words");
  o.dl.byte_offset = 400;
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), 0, "right behind");
  o.dl.byte_offset = 399;
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "a byte less");
  make(&o, m, f32, 1, (int64_t[]){100}, (int64_t[]){-1});
  o.dl.byte_offset = 99 * 4;
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "reversed in place");
  make(&o, m, f32, 1, (int64_t[]){100}, (int64_t[]){0});
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "an output of stride 0");
  is_str(quern_last_error(), "add: output 1 (out): overlaps itself", "words");
  make(&a, m, f32, 2, (int64_t[]){10, 10}, (int64_t[]){1, 10});
  make(&o, m, f32, 2, (int64_t[]){10, 10}, NULL);
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "transposed in place");
  make(&a, m, f32, 1, (int64_t[]){100}, (int64_t[]){2});
  make(&o, m + 4, f32, 1, (int64_t[]){100}, (int64_t[]){2});
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), 0, "interleaved");
  make(&a, m, f32, 2, (int64_t[]){1000, 50}, (int64_t[]){100, 1});
  make(&o, m + 200, f32, 2, (int64_t[]){1000, 50}, (int64_t[]){100, 1});
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), 0, "left and right half of a matrix");
  o.dl.byte_offset = 1;
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "a byte on: the rows meet the next");
  make(&a, m, f32, 0, NULL, NULL);
  make(&o, m, f32, 1, (int64_t[]){10}, NULL);
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "an element of the output as a scalar");
  make(&a, m, f32, 1, (int64_t[]){10}, NULL);
  make(&o, m + 40, f32, 1, (int64_t[]){10}, NULL);
  make(&p, m + 40, f32, 1, (int64_t[]){10}, NULL);
  is_int(overlap_of(1, (tensor *[]){&a, &o, &p}, 2), QUERN_E_OVERLAP, "two outputs in one place");
  is_str(quern_last_error(), "add: output 2 (out2): overlaps output 1 (out)", "words");
  make(&a, m, types[3], 1, (int64_t[]){10}, NULL);
  make(&o, m, f32, 1, (int64_t[]){10}, (int64_t[]){2});
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "same addresses, other item sizes");
  make(&a, m, f32, 1, (int64_t[]){0}, NULL);
  make(&o, m, f32, 1, (int64_t[]){0}, (int64_t[]){0});
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), 0, "nothing overlaps nothing");
  make(&o, m, f32, 2, (int64_t[]){4, 3}, (int64_t[]){2, 3});
  is_int(overlap_of(0, (tensor *[]){&o}, 1), QUERN_E_OVERLAP, "strides 2 and 3 meet");
  make(&o, m, f32, 2, (int64_t[]){3, 4}, (int64_t[]){2, 3});
  is_int(overlap_of(0, (tensor *[]){&o}, 1), 0, "but not within 3 x 4");
  make(&o, m, types[0], 2, (int64_t[]){INT64_C(1) << 29, INT64_C(1) << 29},
       (int64_t[]){INT64_C(1) << 30, (INT64_C(1) << 30) + 1});
  const quern_status huge = overlap_of(0, (tensor *[]){&o}, 1);
  is_int(huge, 0, "2^30 and 2^30 + 1 over 2^29 x 2^29");

  /* Nests made to be hard: many coprime strides. Whatever the answer, it comes soon. */
  rng r;
  rng_seed(&r, 3);
  double worst = 0;
  int n_refused = 0, n_told = 0;
  for (int i = 0; i < 2000; i++) {
    int64_t shape[12], sa[12], so[12];
    const int ndim = (int)rng_range(&r, 3, 12);
    for (int d = 0; d < ndim; d++) {
      shape[d] = rng_range(&r, 2, i % 2 ? 3 : 30);
      sa[d] = rng_range(&r, 1, i % 5 ? 1000000 : 1000000000);
      so[d] = rng_range(&r, 1, i % 5 ? 1000000 : 1000000000);
    }
    make(&a, m, f32, ndim, shape, sa);
    make(&o, m + 4 * rng_range(&r, 0, 1000000), f32, ndim, shape, so);
    const double start = seconds();
    const quern_status got = overlap_of(1, (tensor *[]){&a, &o}, 1);
    const double took = seconds() - start;
    if (took > worst) worst = took;
    n_refused += got == QUERN_E_OVERLAP;
    n_told += got == QUERN_E_OVERLAP && strstr(quern_last_error(), "may overlap");
  }
  diag("hard nests: %d of 2000 refused, %d of them undecided; the slowest took %.0f us", n_refused, n_told, worst * 1e6);
  ok(worst < 0.2, "the work is bounded");

  /* Overlaps by construction, too large to enumerate: never taken for disjoint. */
  group_begin("large overlapping nests are refused");
  for (int i = 0; i < 3000; i++) {
    int64_t shape[6], sa[6], so[6], shift = 0;
    const int ndim = (int)rng_range(&r, 1, 6);
    for (int d = 0; d < ndim; d++) {
      shape[d] = rng_range(&r, 2, 1000);
      sa[d] = rng_range(&r, -100000000, 100000000);
      so[d] = rng_range(&r, -100000000, 100000000);
      shift += rng_range(&r, 0, shape[d] - 1) * sa[d] - rng_range(&r, 0, shape[d] - 1) * so[d];
    }
    make(&a, (char *)(uintptr_t)(INT64_C(1) << 62), f32, ndim, shape, sa);
    make(&o, (char *)(uintptr_t)((INT64_C(1) << 62) + 4 * shift + rng_range(&r, -3, 3)), f32, ndim, shape, so);
    const quern_status got = overlap_of(1, (tensor *[]){&a, &o}, 1);
    group_count(1);
    if (got != QUERN_E_OVERLAP) group_fail("case %d: %d", i, (int)got);
  }
  group_end();
}

/* ---- Handles ---- */

/* A device with handles as `data`: offsets from one handle are compared; tensors with different handles are disjoint. */
static void test_handles(void) {
  static char cl_mem[2]; /* handles: one byte from each other */
  int64_t shape[1] = {8}, down[1] = {-1};
  DLTensor x = {cl_mem, {kDLOpenCL, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 16}, out = x;
  qn_tensor read[2];
  qn_nest nest;
  uint8_t sizes[2] = {4, 4};
  const quern_arg_info named[] = {args[0], args[OUT]};
  out.data = cl_mem + 1;
  x.strides = down;
  x.byte_offset = 16 + 28;
  for (int k = 0; k < 2; k++)
    if (qn_tensor_read(k ? &out : &x, "add", &named[k], 0, 1, &read[k])) bail("%s", quern_last_error());
  ok(read[0].ref.base == cl_mem && read[0].ref.offset == 44, "handle and offset stay apart");
  qn_tensor_normalise(1, shape, 1, read, 1, read + 1, &nest);
  nest.has_handles = 1;
  ok(nest.ref[0].base == cl_mem && nest.ref[1].base == cl_mem + 1 && nest.ref[1].offset == 16, "  in a nest, too");
  is_int(qn_tensor_check_overlap("add", named, &nest, 1, sizes), 0, "two handles share nothing");
  nest.has_handles = 0;
  is_int(qn_tensor_check_overlap("add", named, &nest, 1, sizes), QUERN_E_OVERLAP, "  as addresses they would");
  nest.has_handles = 1;
  nest.ref[1].base = nest.ref[0].base;
  is_int(qn_tensor_check_overlap("add", named, &nest, 1, sizes), QUERN_E_OVERLAP, "one handle, places that meet");
  nest.ref[1].offset = 48;
  is_int(qn_tensor_check_overlap("add", named, &nest, 1, sizes), 0, "  places that do not");
  nest.ref[1].offset = nest.ref[0].offset;
  nest.stride[1][0] = nest.stride[0][0];
  is_int(qn_tensor_check_overlap("add", named, &nest, 1, sizes), 0, "  the very same");
  qn_tensor_normalise(1, shape, 0, NULL, 1, read, &nest);
  ok(nest.ref[0].base == cl_mem && nest.ref[0].offset == 16 && nest.stride[0][0] == 4, "a flip moves the offset");
}

int main(void) {
  rows_wanted = malloc(MAX_ROWS * sizeof(row));
  rows_got = malloc(MAX_ROWS * sizeof(row));
  test_normalise();
  test_overlap();
  test_overlap_cases();
  test_handles();
  free(rows_wanted);
  free(rows_got);
  return done_testing();
}
