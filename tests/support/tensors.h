/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.h: what the op tests share: operands of any layout between red zones or guard pages, random contents with
 * special values, and the one way to run a case: call the op, compare each element with ref.c, compare every byte
 * around the elements, report all that is needed to repeat it. Header-only, so that each test stays one file. */
#ifndef QUERN_TESTS_TENSORS_H
#define QUERN_TESTS_TENSORS_H

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "quern/quern.h"
#include "ref.h"
#include "tap.h"

#define UNUSED __attribute__((unused))
#define RED_ZONE 128

/* A tensor with its memory. Zero it before first use; operand_free puts it back to zero. */
typedef struct operand {
  DLTensor t;
  ref_dtype d;
  int64_t shape[QUERN_MAX_NDIM + 1], strides[QUERN_MAX_NDIM + 1];
  unsigned char *memory; /* NULL: someone else's */
  size_t bytes;
  int guarded; /* from mmap */
  unsigned char *saved;
} operand;

enum { GUARD_NONE, GUARD_FRONT, GUARD_BACK }; /* the operand's lowest byte, or its last, touches an unmapped page */

UNUSED static void compact_strides(int ndim, const int64_t *shape, int64_t *strides) {
  int64_t step = 1;
  for (int i = ndim - 1; i >= 0; i--) {
    strides[i] = step;
    step *= shape[i];
  }
}

/* Lowest and highest element offset; 0, -1 for an empty tensor. */
UNUSED static void extent_of(int ndim, const int64_t *shape, const int64_t *strides, int64_t *low, int64_t *high) {
  *low = *high = 0;
  for (int i = 0; i < ndim; i++) {
    if (shape[i] != 0) continue;
    *high = -1;
    return;
  }
  for (int i = 0; i < ndim; i++) {
    int64_t reach = (shape[i] - 1) * strides[i];
    if (reach < 0) *low += reach;
    else *high += reach;
  }
}

/* A descriptor only; strides NULL = compact, given. data NULL. */
UNUSED static void operand_describe(operand *o, ref_dtype d, int ndim, const int64_t *shape, const int64_t *strides) {
  memset(o, 0, sizeof *o);
  o->d = d;
  o->t.dtype = ref_dtype_dl(d);
  o->t.device.device_type = kDLCPU;
  o->t.ndim = ndim;
  if (ndim) memcpy(o->shape, shape, sizeof *shape * (size_t)ndim);
  if (strides && ndim) memcpy(o->strides, strides, sizeof *strides * (size_t)ndim);
  else compact_strides(ndim, shape, o->strides);
  o->t.shape = o->shape;
  o->t.strides = o->strides;
}

/* Gives it memory: `offset` bytes off a 64-byte boundary (its lowest element), split at random between data and
 * byte_offset; or against a guard page. */
UNUSED static void operand_allocate(operand *o, int offset, int guard) {
  int size = ref_dtype_size(o->d);
  int64_t low, high;
  extent_of(o->t.ndim, o->shape, o->strides, &low, &high);
  size_t extent = (size_t)(high - low + 1) * (size_t)size;
  unsigned char *lowest;
  if (guard == GUARD_NONE) {
    o->bytes = (extent + 2 * RED_ZONE + 64 + 63) / 64 * 64;
    o->memory = aligned_alloc(64, o->bytes);
    if (!o->memory) bail("no memory for %zu bytes", o->bytes);
    lowest = o->memory + RED_ZONE + offset;
  } else {
    size_t page = 4096, body = (extent + page - 1) / page * page;
    if (body == 0) body = page;
    o->bytes = body + 2 * page;
    o->memory = mmap(NULL, o->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (o->memory == MAP_FAILED) bail("no address space for %zu bytes", o->bytes);
    if (mprotect(o->memory + page, body, PROT_READ | PROT_WRITE)) bail("mprotect failed");
    o->guarded = 1;
    lowest = o->memory + page + (guard == GUARD_FRONT ? 0 : body - extent);
  }
  o->t.data = lowest - low * size;
}

/* The whole accessible memory. */
UNUSED static unsigned char *body_of(const operand *o) {
  return o->memory + (o->guarded ? 4096 : 0);
}

UNUSED static size_t body_bytes(const operand *o) {
  return o->bytes - (o->guarded ? 2 * 4096 : 0);
}

UNUSED static void operand_free(operand *o) {
  if (o->memory && o->guarded) munmap(o->memory, o->bytes);
  else free(o->memory);
  free(o->saved);
  memset(o, 0, sizeof *o);
}

/* ---- Contents --------------------------------------------------------------------------------------------------- */

/* One element: every fourth a special value or a neighbour of one, a third any bits at all, else a tame number. */
UNUSED static uint64_t random_bits(rng *r, ref_dtype d) {
  uint64_t any = rng_u64(r) >> (64 - 8 * ref_dtype_size(d)), kind = rng_below(r, 12);
  if (d == REF_BOOL) return any & 1;
  if (ref_dtype_kind(d) == REF_KIND_INTEGER) {
    int bits = 8 * ref_dtype_size(d);
    uint64_t mask = ~(uint64_t)0 >> (64 - bits), top = (uint64_t)1 << (bits - 1);
    const uint64_t special[] = {0, 1, 2, 3, top, top - 1, top + 1, mask, mask - 1, 255 & mask, 256 & mask, 16777217 & mask};
    if (kind < 2) return special[rng_below(r, sizeof special / sizeof *special)];
    if (kind < 6) return any;
    return (uint64_t)rng_range(r, d >= REF_U8 ? 0 : -20, 20) & mask;
  }
  if (kind < 3) {
    uint64_t inf = ref_nan(d) & ~(ref_nan(d) & -ref_nan(d)), sign = (uint64_t)1 << (8 * ref_dtype_size(d) - 1);
    const uint64_t special[] = {0,       inf,     ref_nan(d),         ref_nan(d) + 1, inf + 1, 1, 2, (inf & -inf) - 1,
                                inf & -inf, inf - 1, ref_from_double(d, 1), ref_from_double(d, 2), ref_from_double(d, 0.5)};
    return special[rng_below(r, sizeof special / sizeof *special)] | (any & sign);
  }
  if (kind < 6) return any;
  double scale[] = {1, 8, 100};
  return ref_from_double(d, (2 * rng_unit(r) - 1) * scale[rng_below(r, 3)]);
}

/* Random elements; every byte that is no element is random too. */
UNUSED static void operand_fill(operand *o, rng *r) {
  unsigned char *body = body_of(o);
  size_t n = body_bytes(o), i;
  for (i = 0; i + 8 <= n; i += 8) {
    uint64_t x = rng_u64(r);
    memcpy(body + i, &x, 8);
  }
  for (; i < n; i++) body[i] = 0x5a;
  int64_t index[QUERN_MAX_NDIM + 1] = {0};
  int64_t n_elements = ref_n_elements(&o->t);
  if (n_elements == 0) return;
  if (n_elements < 20000) {
    do ref_put(o->d, ref_address(&o->t, index), random_bits(r, o->d));
    while (ref_next_index(o->t.ndim, o->t.shape, index));
    return;
  }
  /* Large ones draw from a bag, for speed. */
  static _Thread_local uint64_t bag[4096];
  for (int k = 0; k < 4096; k++) bag[k] = random_bits(r, o->d);
  do ref_put(o->d, ref_address(&o->t, index), bag[rng_u64(r) & 4095]);
  while (ref_next_index(o->t.ndim, o->t.shape, index));
}

UNUSED static void operand_save(operand *o) {
  free(o->saved);
  o->saved = malloc(body_bytes(o) + 1);
  memcpy(o->saved, body_of(o), body_bytes(o));
}

/* Described, allocated, filled. */
UNUSED static void operand_make(operand *o, ref_dtype d, int ndim, const int64_t *shape, const int64_t *strides, rng *r) {
  operand_describe(o, d, ndim, shape, strides);
  operand_allocate(o, 0, GUARD_NONE);
  operand_fill(o, r);
}

/* Compact, one dimension. */
UNUSED static void operand_vector(operand *o, ref_dtype d, int64_t n, rng *r) {
  operand_make(o, d, 1, &n, NULL, r);
}

/* Every byte as saved? For outputs, call operand_forgive first: it takes the elements over into the copy. */
UNUSED static int operand_same(const operand *o) {
  return memcmp(o->saved, body_of(o), body_bytes(o)) == 0;
}

UNUSED static void operand_forgive(operand *o) {
  int64_t index[QUERN_MAX_NDIM + 1] = {0};
  if (ref_n_elements(&o->t) == 0) return;
  do {
    char *at = ref_address(&o->t, index);
    memcpy(o->saved + ((unsigned char *)at - body_of(o)), at, (size_t)ref_dtype_size(o->d));
  } while (ref_next_index(o->t.ndim, o->t.shape, index));
}

/* ---- Ops -------------------------------------------------------------------------------------------------------- */

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Whether an op computes another's derivative. */
UNUSED static int is_backward(const char *name) {
  const int32_t n = quern_op_count(NULL);
  int found = 0;
  for (int32_t i = 0; i < n && !found; i++) {
    quern_op *op = NULL;
    if (quern_op_at(NULL, i, &op)) bail("%s", quern_last_error());
    const char *backward = quern_op_describe(op)->backward;
    found = backward && strcmp(backward, name) == 0;
    quern_op_release(op);
  }
  return found;
}

/* Whether elements of an op's output depend on more than their own place: a reduction, or an op on rows such as softmax. Both have
 * the parameter axes. t242 has them. */
UNUSED static int has_axes(const quern_op_info *info) {
  for (int k = 0; k < info->n_params; k++)
    if (strcmp(info->params[k].name, "axes") == 0) return 1;
  return 0;
}

/* Was the library built with some ops only, as sanitised builds are? QUERN_TEST_SUBSET=1, or CMake's cache, says so. */
UNUSED static int is_subset(void) {
  const char *subset = getenv("QUERN_TEST_SUBSET"), *build = getenv("QUERN_BUILD_DIR");
  char path[4096], line[4096];
  int found = 0;
  if (subset) return *subset == '1';
  snprintf(path, sizeof path, "%s/CMakeCache.txt", build ? build : "");
  FILE *f = build ? fopen(path, "r") : NULL;
  while (f && fgets(line, sizeof line, f)) {
    if (strncmp(line, "QUERN_OPS:", 10) == 0) found = strchr(line, '=') && strcspn(strchr(line, '=') + 1, "\n") > 0;
  }
  if (f) fclose(f);
  return found;
}

/* Does this build have the op? A missing one is a failure, except in a subset: then each is skipped once, aloud. */
UNUSED static int has_op(ref_op op) {
  static signed char known[REF_N_OPS]; /* 0 not asked, 1 there, -1 not */
  if (known[op] == 0) {
    quern_op *found = NULL;
    known[op] = 1;
    if (is_subset() && quern_op_find(NULL, ref_op_describe(op)->name, &found) == QUERN_E_NOTFOUND) {
      known[op] = -1;
      skip(1, "this build has some ops only, and no %s", ref_op_describe(op)->name);
    }
    quern_op_release(found);
  }
  return known[op] > 0;
}

/* The op in the default context; bails out where the library lacks it. Kept until the process ends. */
UNUSED static quern_op *the_op(ref_op op) {
  static quern_op *found[REF_N_OPS];
  if (!found[op] && quern_op_find(NULL, ref_op_describe(op)->name, &found[op]) != QUERN_OK) {
    bail("%s", quern_last_error());
  }
  return found[op];
}

UNUSED static const char *status_name(quern_status s) {
  static const char *const names[] = {"OK",       "ARGUMENT", "DTYPE",    "SHAPE",  "DEVICE", "LAYOUT",    "ALIGNMENT",
                                      "OVERLAP",  "READONLY", "MEMORY",   "UNSUPPORTED", "SYNTAX", "NOTFOUND", "EXISTS",
                                      "COMPILER", "DRIVER",   "IO",       "VERSION", "LIMIT", "WORKSPACE", "CAPTURING"};
  return s <= 0 && s >= -20 ? names[-s] : "not a status";
}

/* A case: inputs, an output, parameters. */
typedef struct trial {
  ref_op op;
  operand in[REF_MAX_INPUTS], out;
  const ref_real *param;      /* for ref.c; NULL = defaults */
  const quern_call *call;     /* for the library */
  quern_op *handle;           /* NULL: the_op(op) */
  const char *note;           /* what kind of case, for reports */
} trial;

UNUSED static void trial_free(trial *t) {
  for (int k = 0; k < REF_MAX_INPUTS; k++) operand_free(&t->in[k]);
  operand_free(&t->out);
  memset(t, 0, sizeof *t);
}

UNUSED static int text_operand(char *text, size_t size, const char *name, const operand *o) {
  int n = snprintf(text, size, "  %s: %s [", name, ref_dtype_name(o->d));
  for (int i = 0; i < o->t.ndim && n < (int)size - 40; i++) {
    n += snprintf(text + n, size - (size_t)n, "%s%" PRId64, i ? ", " : "", o->t.shape[i]);
  }
  n += snprintf(text + n, size - (size_t)n, "] strides ");
  if (!o->t.strides) n += snprintf(text + n, size - (size_t)n, "NULL");
  for (int i = 0; o->t.strides && i < o->t.ndim && n < (int)size - 60; i++) {
    n += snprintf(text + n, size - (size_t)n, "%s%" PRId64, i ? ", " : "[", o->t.strides[i]);
  }
  n += snprintf(text + n, size - (size_t)n, "%s, data %p, byte_offset %" PRIu64 "\n",
                o->t.strides && o->t.ndim ? "]" : "", o->t.data, o->t.byte_offset);
  return n;
}

/* Everything needed to repeat the case, then what went wrong. */
UNUSED static void trial_report(const trial *t, const char *what) {
  char text[6000], how[2048] = "";
  const ref_op_info *info = ref_op_describe(t->op);
  DLTensor *in[REF_MAX_INPUTS], *out = (DLTensor *)&t->out.t;
  int n = snprintf(text, sizeof text, "%s: %s%s%s, seed 0x%" PRIx64 "\n", info->name, what, t->note ? "; " : "",
                   t->note ? t->note : "", test_seed());
  for (int k = 0; k < info->n_in; k++) {
    char name[16];
    snprintf(name, sizeof name, "in %d", k + 1);
    n += text_operand(text + n, sizeof text - (size_t)n - 2100, name, &t->in[k]);
    in[k] = (DLTensor *)&t->in[k].t;
  }
  n += text_operand(text + n, sizeof text - (size_t)n - 2100, "out", &t->out);
  quern_op_explain(t->handle ? t->handle : the_op(t->op), info->n_in, in, 1, &out, t->call, how, sizeof how);
  snprintf(text + n, sizeof text - (size_t)n, "%s", how);
  group_fail("%s", text);
}

/* Inputs of element i (row-major) of the output, as text. */
UNUSED static void text_inputs(const trial *t, int64_t at, char *text, size_t size) {
  int64_t index[QUERN_MAX_NDIM + 1] = {0};
  for (int i = t->out.t.ndim - 1; i >= 0; i--) {
    index[i] = at % t->out.t.shape[i];
    at /= t->out.t.shape[i];
  }
  size_t n = 0;
  for (int k = 0; k < ref_op_describe(t->op)->n_in; k++) {
    char number[64];
    uint64_t bits = ref_get(t->in[k].d, ref_broadcast_address(&t->in[k].t, t->out.t.ndim, index));
    n += (size_t)snprintf(text + n, size - n, "%s%s", k ? ", " : "", ref_text(t->in[k].d, bits, number));
  }
}

/* Calls the op and checks: status, elements, all bytes around the output's elements, all inputs' bytes. Inputs that
 * have no memory of their own are taken to share the output's. Returns 1 when all is well. */
UNUSED static int trial_run(trial *t) {
  const ref_op_info *info = ref_op_describe(t->op);
  DLTensor *in[REF_MAX_INPUTS], *out = &t->out.t;
  char what[400];
  for (int k = 0; k < info->n_in; k++) {
    in[k] = &t->in[k].t;
    if (t->in[k].memory) operand_save(&t->in[k]);
  }
  ref_expect *expect = ref_eval_tensor(t->op, in, t->param, out);
  operand_save(&t->out);
  quern_status status = quern_op_call(t->handle ? t->handle : the_op(t->op), info->n_in, in, 1, &out, t->call);
  ref_difference diff;
  int good = 1;
  group_count(1);
  if (status != QUERN_OK) {
    snprintf(what, sizeof what, "status %s: %s", status_name(status), quern_last_error());
    good = 0;
  } else if (!ref_check_tensor(out, expect, &diff)) {
    char got[64], low[64], high[64], x[200] = "";
    int shared = 0;
    for (int k = 0; k < info->n_in; k++) shared |= !t->in[k].memory;
    if (!shared) text_inputs(t, diff.first, x, sizeof x);
    snprintf(what, sizeof what, "%" PRId64 " bad of %" PRId64 ", first %" PRId64 ": got %s, wanted %s%s%s, %.3f ULP; of %s",
             diff.n_bad, ref_n_elements(out), diff.first, ref_text(t->out.d, diff.got, got),
             ref_text(t->out.d, diff.wanted.low, low), diff.wanted.low == diff.wanted.high ? "" : " to ",
             diff.wanted.low == diff.wanted.high ? "" : ref_text(t->out.d, diff.wanted.high, high), diff.ulp, x);
    good = 0;
  } else {
    operand_forgive(&t->out);
    if (!operand_same(&t->out)) {
      size_t i = 0;
      while (t->out.saved[i] == body_of(&t->out)[i]) i++;
      snprintf(what, sizeof what, "byte %zd from data, outside the output's elements, was written",
               body_of(&t->out) + i - (unsigned char *)t->out.t.data);
      good = 0;
    }
  }
  for (int k = 0; k < info->n_in && good; k++) {
    if (t->in[k].memory && !operand_same(&t->in[k])) {
      snprintf(what, sizeof what, "memory of input %d was written", k + 1);
      good = 0;
    }
  }
  if (!good) trial_report(t, what);
  free(expect);
  return good;
}

#endif /* QUERN_TESTS_TENSORS_H */
