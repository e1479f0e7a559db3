/* SPDX-License-Identifier: Apache-2.0
 *
 * call_check.h: one call of an op on operands that the fuzzer's bytes choose: dtypes, shapes, strides, offsets, parameters, whether
 * the output is an input, and what of it is spoilt; and what must hold of it. It is refused with nothing written; or it writes
 * nothing but the elements of its outputs, and gives the bits of the same call on contiguous copies, of a plan, of the op in another
 * context, of an expression of the op, interpreted and compiled, and the values of ref.c. Calls that would leave the operands'
 * memory are prepared and explained only: that memory is the caller's word. Header-only. */
#ifndef QUERN_TESTS_CALL_CHECK_H
#define QUERN_TESTS_CALL_CHECK_H

#include "fuzz.h"

enum { MOST_OPERANDS = 8, MOST_PARAMS = 16, MOST_ELEMENTS = 2000 };

/* Operands of one call; in[k] and out[k] own their memory, copies in `plain`. */
typedef struct operand_set {
  int n_in, n_out;
  operand in[MOST_OPERANDS], out[MOST_OPERANDS];
  DLTensor *ins[MOST_OPERANDS], *outs[MOST_OPERANDS];
} operand_set;

typedef struct problem {
  quern_op *op, *other; /* other: the same op in a context that compiles; NULL: there is none */
  const quern_op_info *info;
  operand_set set;
  quern_scalar params[MOST_PARAMS];
  uint64_t flags[MOST_OPERANDS];
  quern_call call;
  int has_default_params;
} problem;

static int is_named(const quern_param_info *param, const char *name) { return strcmp(param->name, name) == 0; }

static operand *operand_at(operand_set *set, int k) { return k < set->n_in ? &set->in[k] : &set->out[k - set->n_in]; }

static void set_free(operand_set *set) {
  for (int k = 0; k < MOST_OPERANDS; k++) {
    operand_free(&set->in[k]);
    operand_free(&set->out[k]);
  }
}

/* Its operands, for reports. */
static const char *described_call(const problem *p) {
  static char text[4096];
  int n = snprintf(text, sizeof text, "%s, %d parameters\n", p->info->name, p->call.n_params);
  for (int k = 0; k < p->set.n_in + p->set.n_out; k++) {
    const operand *o = k < p->set.n_in ? &p->set.in[k] : &p->set.out[k - p->set.n_in];
    char name[16];
    snprintf(name, sizeof name, k < p->set.n_in ? "in %d" : "out %d", k < p->set.n_in ? k : k - p->set.n_in);
    if (n < (int)sizeof text - 700) n += text_operand(text + n, 700, name, o);
  }
  return text;
}

/* ---- Making one ---- */

static int64_t random_extent(rng *r) {
  static const int64_t some[] = {1, 2, 3, 5, 16, 17, 33, 0, 64, 100, 257};
  return some[rng_below(r, rng_below(r, 4) ? 6 : sizeof some / sizeof *some)];
}

static int random_shape(rng *r, int64_t *shape) {
  const int ndim = rng_below(r, 40) ? (int)rng_below(r, 5) : (int)rng_below(r, QUERN_MAX_NDIM + 1);
  int64_t n = 1;
  for (int d = 0; d < ndim; d++) {
    shape[d] = random_extent(r);
    if (n * shape[d] > MOST_ELEMENTS) shape[d] = 1;
    n *= shape[d] ? shape[d] : 1;
  }
  return ndim;
}

/* Strides of any order, with gaps, to either side; of an input also 0, and windows that overlap. */
static void random_strides(rng *r, int ndim, const int64_t *shape, int is_output, int64_t *strides) {
  int order[QUERN_MAX_NDIM];
  int64_t step = 1;
  int n_gaps = 0; /* few: dimensions of extent 1 count, and 60 of them could ask for any number of bytes */
  const int is_plain = rng_below(r, 3) == 0;
  for (int d = 0; d < ndim; d++) order[d] = d;
  for (int d = ndim - 1; d > 0 && !is_plain; d--) {
    const int other = (int)rng_below(r, (uint64_t)d + 1), kept = order[d];
    order[d] = order[other];
    order[other] = kept;
  }
  for (int d = ndim - 1; d >= 0; d--) {
    const int dim = order[d];
    const uint64_t way = is_plain ? 0 : rng_below(r, 10);
    strides[dim] = way == 1 ? -step : step;
    if (way == 2 && !is_output) strides[dim] = 0;
    else if (way == 3 && !is_output) strides[dim] = 1;
    else step *= (shape[dim] > 0 ? shape[dim] : 1) * (way == 4 && n_gaps++ < 6 ? 2 : 1);
  }
}

static void make_operand(rng *r, operand *o, ref_dtype d, int ndim, const int64_t *shape, int is_output) {
  int64_t strides[QUERN_MAX_NDIM + 1];
  rng contents;
  random_strides(r, ndim, shape, is_output, strides);
  operand_describe(o, d, ndim, shape, strides);
  const int guard = rng_below(r, 8) ? GUARD_NONE : rng_below(r, 2) ? GUARD_FRONT : GUARD_BACK;
  operand_allocate(o, rng_below(r, 3) ? 0 : (int)rng_below(r, 16), guard);
  rng_seed(&contents, rng_below(r, 256));
  operand_fill(o, &contents);
  if (rng_below(r, 6) == 0) { /* between data and byte_offset */
    const uint64_t shift = rng_below(r, 64);
    o->t.data = (char *)o->t.data - shift;
    o->t.byte_offset = shift;
  }
}

static ref_dtype random_dtype(rng *r) { return (ref_dtype)rng_below(r, REF_N_DTYPES); }

static quern_scalar random_scalar(rng *r, const quern_param_info *param, int ndim) {
  static const double floats[] = {0, 1, -1, 0.5, 2, 3, 6, 1e30, -1e-30, INFINITY, -INFINITY, NAN};
  quern_scalar x = param->value;
  if (is_named(param, "axes") && rng_below(r, 8)) {
    x = (quern_scalar){QUERN_I64, {.i = rng_below(r, 4) ? (int64_t)1 << rng_below(r, (uint64_t)(ndim ? ndim : 1)) :
                                                          (int64_t)rng_below(r, (uint64_t)1 << (ndim < 8 ? ndim : 8))}};
    return x;
  }
  switch (rng_below(r, 8)) {
    case 0: return (quern_scalar){QUERN_I64, {.i = rng_range(r, -3, 8)}};
    case 1: return (quern_scalar){QUERN_F64, {.f = {floats[rng_below(r, sizeof floats / sizeof *floats)], 0}}};
    case 2: return (quern_scalar){QUERN_U64, {.u = rng_u64(r)}};
    case 3: return (quern_scalar){QUERN_I64, {.i = (int64_t)rng_u64(r)}};
    case 4: return (quern_scalar){(int32_t)rng_below(r, 9) - 3, {.f = {1, 2}}};
    default: return x;
  }
}

/* The shapes and dtypes that the op says; where it refuses, something. */
static void make_outputs(rng *r, problem *p, int ndim, const int64_t *shape) {
  operand_set *s = &p->set;
  quern_shape said[MOST_OPERANDS];
  memset(said, 0, sizeof said);
  for (int k = 0; k < s->n_out; k++) {
    said[k].size = sizeof *said;
    said[k].dtype = ref_dtype_dl(random_dtype(r));
    said[k].device = (DLDevice){kDLCPU, 0};
    said[k].ndim = ndim;
    memcpy(said[k].shape, shape, sizeof *shape * (size_t)ndim);
  }
  const quern_status status = quern_op_measure(p->op, s->n_in, s->ins, s->n_out, said, &p->call);
  if (status) check_refused(status);
  for (int k = 0; k < s->n_out; k++) {
    ref_dtype d = status ? REF_N_DTYPES : ref_dtype_of(said[k].dtype);
    int64_t room = 8 * MOST_ELEMENTS, dims[QUERN_MAX_NDIM];
    REQUIRE(status || (said[k].ndim >= 0 && said[k].ndim <= QUERN_MAX_NDIM), "ndim %d", said[k].ndim);
    if (status) said[k].ndim = ndim, memcpy(said[k].shape, shape, sizeof *shape * (size_t)ndim);
    if (d == REF_N_DTYPES || rng_below(r, 5) == 0) d = random_dtype(r);
    memcpy(dims, said[k].shape, sizeof dims);
    for (int i = 0; i < said[k].ndim; i++) {
      REQUIRE(status || dims[i] >= 0, "extent %" PRId64, dims[i]);
      if (dims[i] > room) dims[i] = 1;
      if (dims[i] > 0) room /= dims[i]; /* a 0 may become another extent below */
    }
    if (said[k].ndim && rng_below(r, 24) == 0) dims[rng_below(r, (uint64_t)said[k].ndim)] = (int64_t)rng_below(r, 4);
    make_operand(r, &s->out[k], d, said[k].ndim, dims, rng_below(r, 24) != 0);
    s->outs[k] = &s->out[k].t;
  }
}

/* The first output lies in an input's memory: as it, or elsewhere. */
static void make_alias(rng *r, problem *p) {
  operand_set *s = &p->set;
  operand *o = &s->out[0];
  const operand *in = &s->in[rng_below(r, (uint64_t)s->n_in)];
  o->t.data = in->t.data;
  o->t.byte_offset = in->t.byte_offset;
  if (in->t.ndim == o->t.ndim && rng_below(r, 4)) memcpy(o->strides, in->strides, sizeof o->strides);
  if (rng_below(r, 3) == 0) o->t.data = (char *)o->t.data + rng_range(r, -32, 32);
}

/* 0: an op of more operands than there is room for. */
static int problem_make(rng *r, problem *p, quern_op *op, quern_op *other) {
  int64_t shape[QUERN_MAX_NDIM];
  operand_set *s = &p->set;
  memset(p, 0, sizeof *p);
  p->op = op;
  p->other = other;
  p->info = quern_op_describe(p->op);
  if (p->info->n_in > MOST_OPERANDS || p->info->n_out > MOST_OPERANDS || p->info->n_params > MOST_PARAMS) return 0;
  s->n_in = p->info->n_in;
  s->n_out = p->info->n_out;
  const int ndim = random_shape(r, shape);
  const ref_dtype main = random_dtype(r);
  for (int k = 0; k < s->n_in; k++) {
    int64_t own[QUERN_MAX_NDIM];
    const int dropped = rng_below(r, 6) || !ndim ? 0 : (int)rng_below(r, (uint64_t)ndim + 1);
    ref_dtype d = rng_below(r, 5) ? main : random_dtype(r);
    if (strcmp(p->info->args[k].dtypes, "bool") == 0 && rng_below(r, 8)) d = REF_BOOL;
    memcpy(own, shape + dropped, sizeof *own * (size_t)(ndim - dropped));
    for (int i = 0; i < ndim - dropped; i++)
      if (rng_below(r, 12) == 0) own[i] = 1;
    make_operand(r, &s->in[k], d, ndim - dropped, own, 0);
    s->ins[k] = &s->in[k].t;
  }
  p->has_default_params = rng_below(r, 3) != 0;
  p->call = (quern_call){.size = sizeof p->call, .params = p->params};
  const int n_params = p->has_default_params ? 0 : (int)rng_below(r, (uint64_t)p->info->n_params + 1);
  for (int k = 0; k < n_params; k++) p->params[k] = random_scalar(r, &p->info->params[k], ndim);
  p->call.n_params = n_params;
  p->has_default_params = n_params == 0;
  make_outputs(r, p, ndim, shape);
  if (s->n_in && s->n_out && rng_below(r, 4) == 0) make_alias(r, p);
  return 1;
}

/* ---- Spoiling it ---- */

enum { KEPT, UNKNOWN, MUST_FAIL };

static const int64_t hostile[] = {-1,        INT64_MAX,      INT64_MIN,      INT64_MIN + 1,       (int64_t)1 << 31, (int64_t)1 << 32, (int64_t)1 << 62,
                                  INT64_MAX / 2, INT32_MIN, -2, 0, 1, 3, (int64_t)1 << 40};
static int64_t random_hostile(rng *r) {
  return rng_below(r, 4) ? hostile[rng_below(r, sizeof hostile / sizeof *hostile)] : (int64_t)rng_u64(r);
}

static int spoil(rng *r, problem *p) {
  operand_set *s = &p->set;
  const int n = s->n_in + s->n_out, k = (int)rng_below(r, (uint64_t)n);
  operand *o = operand_at(s, k);
  DLTensor *t = &o->t;
  const int has_elements = ref_n_elements(t) > 0;
  static const int32_t ndims[] = {-1, QUERN_MAX_NDIM + 1, INT32_MAX, INT32_MIN};
  switch (rng_below(r, 16)) {
    case 0:
    case 1:
      if (t->ndim) o->strides[rng_below(r, (uint64_t)t->ndim)] = random_hostile(r);
      return UNKNOWN;
    case 2:
    case 3:
      if (t->ndim) o->shape[rng_below(r, (uint64_t)t->ndim)] = random_hostile(r);
      return UNKNOWN;
    case 4: t->byte_offset = (uint64_t)random_hostile(r); return UNKNOWN;
    case 5: t->data = (char *)t->data + rng_range(r, -8, 8); return UNKNOWN;
    case 6: t->strides = NULL; return UNKNOWN;
    case 7: t->ndim = ndims[rng_below(r, 4)]; return MUST_FAIL;
    case 8:
      if (!t->ndim) return KEPT;
      t->shape = NULL;
      return MUST_FAIL;
    case 9:
      if (!has_elements) return KEPT;
      t->data = NULL;
      t->byte_offset = 0;
      return MUST_FAIL;
    case 10:
      t->dtype = (DLDataType){(uint8_t)rng_below(r, 20), (uint8_t)rng_below(r, 130), (uint16_t)rng_below(r, 3)};
      if (ref_dtype_of(t->dtype) == REF_N_DTYPES) return MUST_FAIL;
      o->d = ref_dtype_of(t->dtype);
      return UNKNOWN;
    case 11:
      t->device.device_type = (DLDeviceType)(2 + rng_below(r, 20));
      t->device.device_id = (int32_t)rng_range(r, -1, 3);
      if (rng_below(r, 2)) /* a call for a device, which is never made: QUERN_CUDA_PATH may name a driver without one */
        for (int i = 0; i < n; i++) operand_at(s, i)->t.device = (DLDevice){rng_below(r, 8) ? kDLCUDA : kDLCUDAManaged, (int32_t)rng_below(r, 3)};
      return UNKNOWN; /* memory that the CPU reads, too; or none of this machine's */
    case 12:
      if (k < s->n_in) s->ins[k] = NULL;
      else s->outs[k - s->n_in] = NULL;
      return MUST_FAIL;
    case 13: p->call.size = (size_t)random_hostile(r); return UNKNOWN;
    case 14:
      p->call.out_flags = p->flags;
      for (int i = 0; i < s->n_out; i++) p->flags[i] = rng_u64(r);
      if (s->n_out == 0 || !(p->flags[0] & 1)) return UNKNOWN;
      return MUST_FAIL;
    default:
      p->has_default_params = 0;
      p->call.n_params = (int32_t)rng_range(r, -1, MOST_PARAMS);
      return UNKNOWN;
  }
}

/* ---- What it is in memory ---- */

/* Whether all that the descriptor names lies in the memory of one operand; what must be refused in any case does not. */
static int lies_in(operand_set *s, const DLTensor *t) {
  __int128 low = 0, high = 0, step = 1;
  if (!t || t->device.device_type != kDLCPU || t->ndim < 0 || t->ndim > QUERN_MAX_NDIM || !t->shape) return 0;
  const ref_dtype d = ref_dtype_of(t->dtype);
  if (d == REF_N_DTYPES) return 0;
  for (int i = t->ndim - 1; i >= 0; i--) {
    const __int128 stride = t->strides ? t->strides[i] : step;
    if (t->shape[i] < 0 || t->shape[i] > 1 << 30 || stride > (__int128)1 << 62 || stride < -((__int128)1 << 62)) return 0;
    if (t->shape[i] == 0) return 1; /* nothing of it is read */
    const __int128 reach = (t->shape[i] - 1) * stride;
    if (reach < 0) low += reach;
    else high += reach;
    step *= t->shape[i];
  }
  const int size = ref_dtype_size(d);
  const __int128 from = (__int128)(uintptr_t)t->data + t->byte_offset + low * size, to = (__int128)(uintptr_t)t->data + t->byte_offset + (high + 1) * size;
  for (int k = 0; k < s->n_in + s->n_out; k++) {
    const operand *o = operand_at(s, k);
    const __int128 body = (__int128)(uintptr_t)body_of(o);
    if (from >= body && to <= body + (__int128)body_bytes(o)) return 1;
  }
  return 0;
}

static int all_lie_in(operand_set *s) {
  for (int k = 0; k < s->n_in; k++)
    if (!lies_in(s, s->ins[k])) return 0;
  for (int k = 0; k < s->n_out; k++)
    if (!lies_in(s, s->outs[k])) return 0;
  return 1;
}

static int64_t n_elements(const DLTensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->ndim; i++) { /* far more than any that is called: 2^24 */
    const int64_t extent = t->shape[i] < 0 || t->shape[i] > 1 << 24 ? 1 << 24 : t->shape[i];
    n = n * extent > 1 << 24 ? 1 << 24 : n * extent;
  }
  return n;
}

static void save_all(operand_set *s) {
  for (int k = 0; k < s->n_in + s->n_out; k++) operand_save(operand_at(s, k));
}

/* Takes the elements of an output over into the copy of the block that they lie in. */
static void forgive(operand_set *s, const DLTensor *t) {
  int64_t index[QUERN_MAX_NDIM + 1] = {0};
  const size_t size = t->dtype.bits / 8u;
  if (n_elements(t) == 0) return;
  do {
    const unsigned char *at = (const unsigned char *)ref_address(t, index);
    for (int k = 0; k < s->n_in + s->n_out; k++) {
      operand *o = operand_at(s, k);
      if (at >= body_of(o) && at + size <= body_of(o) + body_bytes(o)) memcpy(o->saved + (at - body_of(o)), at, size);
    }
  } while (ref_next_index(t->ndim, t->shape, index));
}

static void check_memory(problem *p, const char *what) {
  for (int k = 0; k < p->set.n_in + p->set.n_out; k++) {
    const operand *o = operand_at(&p->set, k);
    REQUIRE(operand_same(o), "%s%s: memory of operand %d was written", described_call(p), what, k);
  }
}

static void restore_all(operand_set *s, unsigned char *const *kept) {
  for (int k = 0; k < s->n_in + s->n_out; k++) memcpy(body_of(operand_at(s, k)), kept[k], body_bytes(operand_at(s, k)));
}

/* ---- What it gives ---- */

static void plain_copy(operand *to, const DLTensor *from) {
  int64_t index[QUERN_MAX_NDIM + 1] = {0}, dims[QUERN_MAX_NDIM + 1] = {0};
  const ref_dtype d = ref_dtype_of(from->dtype);
  memcpy(dims, from->shape, sizeof *dims * (size_t)from->ndim);
  operand_describe(to, d, from->ndim, dims, NULL);
  operand_allocate(to, 0, GUARD_NONE);
  memset(to->memory, 0x5a, to->bytes);
  if (n_elements(from) == 0) return;
  do ref_put(d, ref_address(&to->t, index), ref_get(d, ref_address(from, index)));
  while (ref_next_index(from->ndim, from->shape, index));
}

/* A descriptor may have no strides; ref.c's functions want them. */
static DLTensor with_strides(const DLTensor *t, int64_t *strides) {
  DLTensor copy = *t;
  if (!copy.strides) {
    compact_strides(t->ndim, t->shape, strides);
    copy.strides = strides;
  }
  return copy;
}

static void check_same(const problem *p, const operand_set *plain, const char *what) {
  for (int k = 0; k < p->set.n_out; k++) {
    int64_t index[QUERN_MAX_NDIM + 1] = {0}, strides[QUERN_MAX_NDIM + 1];
    const DLTensor got = with_strides(p->set.outs[k], strides);
    const ref_dtype d = ref_dtype_of(got.dtype);
    if (n_elements(&got) == 0) continue;
    do {
      const uint64_t a = ref_get(d, ref_address(&got, index)), b = ref_get(d, ref_address(&plain->out[k].t, index));
      REQUIRE(a == b, "%s%s: output %d: %" PRIx64 ", of contiguous copies %" PRIx64, described_call(p), what, k, a, b);
    } while (ref_next_index(got.ndim, got.shape, index));
  }
}

static void check_reference(const problem *p, operand_set *plain) {
  const ref_op op = ref_op_find(p->info->name);
  ref_difference difference;
  if (op == REF_N_OPS || !p->has_default_params || p->set.n_out != 1 || n_elements(plain->outs[0]) > 300) return;
  ref_expect *expect = ref_eval_tensor(op, plain->ins, NULL, plain->outs[0]);
  REQUIRE(ref_check_tensor(plain->outs[0], expect, &difference), "%s%" PRId64 " bad, the first at %" PRId64 ": %" PRIx64 ", not %" PRIx64,
          described_call(p), difference.n_bad, difference.first, difference.got, difference.wanted.low);
  free(expect);
}

/* The same call as an expression of the op alone. */
static void check_expression(problem *p, const operand_set *plain, int32_t jit) {
  char text[200];
  quern_op *op = NULL;
  if (p->info->op_class != QUERN_CLASS_BASIC || has_axes(p->info) || !p->has_default_params || p->set.n_out != 1 || p->set.n_in == 0) return;
  size_t n = (size_t)snprintf(text, sizeof text, "%s(", p->info->name);
  for (int k = 0; k < p->set.n_in; k++) n += (size_t)snprintf(text + n, sizeof text - n, "%sx%d", k ? ", " : "", k);
  snprintf(text + n, sizeof text - n, ")");
  quern_status status = quern_op_compile(fuzz_ctx(jit), text, &op);
  if (status) {
    check_refused(status);
    return;
  }
  status = quern_op_call(op, p->set.n_in, p->set.ins, p->set.n_out, p->set.outs, NULL);
  REQUIRE(status == QUERN_OK, "%s: as an expression: %s", text, quern_last_error());
  quern_op_release(op);
  forgive(&p->set, p->set.outs[0]);
  check_memory(p, text);
  check_same(p, plain, jit == QUERN_JIT_OFF ? "interpreted" : "compiled");
}

static void check_other(problem *p, const operand_set *plain) {
  const quern_status status = quern_op_call(p->other, p->set.n_in, p->set.ins, p->set.n_out, p->set.outs, &p->call);
  REQUIRE(status == QUERN_OK, "%s: compiled: %s", p->info->name, quern_last_error());
  for (int k = 0; k < p->set.n_out; k++) {
    int64_t strides[QUERN_MAX_NDIM + 1];
    const DLTensor t = with_strides(p->set.outs[k], strides);
    forgive(&p->set, &t);
  }
  check_memory(p, "compiled");
  check_same(p, plain, "compiled");
}

static void check_call(rng *r, problem *p, int outlook) {
  operand_set *s = &p->set, plain;
  unsigned char *kept[2 * MOST_OPERANDS];
  char text[4096];
  quern_plan *plan = NULL;
  size_t workspace;
  const int n = s->n_in + s->n_out, is_in = all_lie_in(s);
  save_all(s);
  const quern_status prepared = quern_op_prepare(p->op, s->n_in, s->ins, s->n_out, s->outs, &p->call, &plan);
  if (prepared) {
    check_refused(prepared);
    REQUIRE(!plan, "a plan beside status %d", prepared);
  }
  const quern_status explained = quern_op_explain(p->op, s->n_in, s->ins, s->n_out, s->outs, &p->call, text, sizeof text);
  if (explained) check_refused(explained);
  const quern_status needed = quern_op_workspace(p->op, s->n_in, s->ins, s->n_out, s->outs, &p->call, &workspace);
  if (needed) check_refused(needed);
  check_memory(p, "prepared");
  if (!is_in && outlook != MUST_FAIL) {
    quern_plan_release(plan);
    return;
  }
  memset(&plain, 0, sizeof plain);
  plain.n_in = s->n_in;
  plain.n_out = s->n_out;
  for (int k = 0; is_in && k < s->n_in; k++) {
    int64_t strides[QUERN_MAX_NDIM + 1];
    const DLTensor t = with_strides(s->ins[k], strides);
    if (n_elements(&t) <= 1 << 18) plain_copy(&plain.in[k], &t);
    plain.ins[k] = &plain.in[k].t;
  }
  const quern_status status = quern_op_call(p->op, s->n_in, s->ins, s->n_out, s->outs, &p->call);
  REQUIRE(!status || outlook != KEPT || status != QUERN_E_MEMORY, "%s", quern_last_error());
  if (status) {
    check_refused(status);
    check_memory(p, "refused");
  } else {
    REQUIRE(outlook != MUST_FAIL, "%s: a call that must be refused is not", p->info->name);
    for (int k = 0; k < n; k++) {
      kept[k] = malloc(body_bytes(operand_at(s, k)) + 1);
      REQUIRE(kept[k], "memory");
      memcpy(kept[k], operand_at(s, k)->saved, body_bytes(operand_at(s, k)));
    }
    for (int k = 0; k < s->n_out; k++) {
      int64_t strides[QUERN_MAX_NDIM + 1];
      const DLTensor t = with_strides(s->outs[k], strides);
      forgive(s, &t);
      plain_copy(&plain.out[k], &t);
      memset(plain.out[k].memory, 0x5a, plain.out[k].bytes);
      plain.outs[k] = &plain.out[k].t;
    }
    check_memory(p, "called");
    const quern_status again = quern_op_call(p->op, s->n_in, plain.ins, s->n_out, plain.outs, &p->call);
    REQUIRE(again == QUERN_OK, "%s: on contiguous copies: %s", p->info->name, quern_last_error());
    check_same(p, &plain, "called");
    check_reference(p, &plain);
    if (plan) {
      void *in[MOST_OPERANDS], *out[MOST_OPERANDS];
      restore_all(s, kept);
      for (int k = 0; k < s->n_in; k++) in[k] = (void *)((uintptr_t)s->ins[k]->data + s->ins[k]->byte_offset);
      for (int k = 0; k < s->n_out; k++) out[k] = (void *)((uintptr_t)s->outs[k]->data + s->outs[k]->byte_offset);
      REQUIRE(quern_plan_run(plan, in, out, &p->call) == QUERN_OK, "%s: the plan: %s", p->info->name, quern_last_error());
      check_same(p, &plain, "planned");
    }
    restore_all(s, kept);
    if (p->other) {
      check_other(p, &plain);
    } else if (!strchr(p->info->name, '.')) { /* in the library's context */
      check_expression(p, &plain, QUERN_JIT_OFF);
      restore_all(s, kept);
      if (rng_below(r, 32) == 0) check_expression(p, &plain, QUERN_JIT_SYNC);
    }
    for (int k = 0; k < n; k++) free(kept[k]);
  }
  quern_plan_release(plan);
  set_free(&plain);
}

/* One call of the op by the bytes. */
static void fuzz_one_call(rng *r, quern_op *op, quern_op *other) {
  static problem p;
  if (problem_make(r, &p, op, other)) {
    const int outlook = rng_below(r, 3) ? KEPT : spoil(r, &p);
    check_call(r, &p, outlook);
  }
  set_free(&p.set);
}

#endif
