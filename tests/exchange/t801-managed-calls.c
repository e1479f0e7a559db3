/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t801-managed-calls: quern_op_call_managed: operands of every form, flags obeyed, each deleter called once on every path; and
 * descriptors at random, through all ways in. */
#include "producers.h"

enum { N = 6, READ_ONLY = 1, PADDED = 4 };
static const int64_t shape[2] = {2, 3}, strides[2] = {3, 1};
static float x[N], y[N], z[N];
static quern_op *add, *negative, *where;
static quern_status status;

static void fill(void) {
  for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = 10, z[i] = -77;
}

/* z is x + y. */
static int is_sum(void) {
  int n = 0;
  for (int i = 0; i < N; i++) n += z[i] == (float)i + 10;
  return n == N;
}
static int is_untouched(void) {
  int n = 0;
  for (int i = 0; i < N; i++) n += z[i] == -77;
  return n == N;
}

static void f32_of(producer *p, float *data) { produce(p, data, a_f32, 2, shape, strides); }

/* ---- Forms ---- */

static void test_forms(void) {
  for (int form = 0; form < 27; form++) {
    producer p[3];
    quern_operand of[3];
    float *const data[3] = {x, y, z};
    int wanted = 0, got = 0;
    fill();
    for (int k = 0, rest = form; k < 3; k++, rest /= 3) {
      f32_of(&p[k], data[k]);
      if (rest % 3 == 1 && form % 2) p[k].legacy.dl_tensor.strides = NULL;
      const int consume = (form + k) % 2;
      of[k] = rest % 3 == 0 ? bare_operand(&p[k].versioned.dl_tensor)
              : rest % 3 == 1 ? legacy_operand(&p[k], consume) : versioned_operand(&p[k], consume);
      wanted += rest % 3 && consume;
    }
    status = quern_op_call_managed(add, 2, of, 1, of + 2, NULL);
    for (int k = 0; k < 3; k++) got += p[k].n_deleted;
    ok(status == QUERN_OK && is_sum(), "operands of forms %d, %d, %d", form % 3, form / 3 % 3, form / 9);
    is_int(got, wanted, "  what is consumed is deleted, what is borrowed is not");
  }
}

static void test_same_tensor(void) {
  producer p;
  fill();
  f32_of(&p, z);
  for (int i = 0; i < N; i++) z[i] = (float)i;
  quern_operand of[3] = {versioned_operand(&p, 1), versioned_operand(&p, 1), versioned_operand(&p, 1)};
  status = quern_op_call_managed(add, 2, of, 1, of + 2, NULL);
  ok(status == QUERN_OK && z[5] == 10, "one tensor for all operands");
  is_int(p.n_deleted, 1, "  is deleted once");
  f32_of(&p, z);
  of[0] = versioned_operand(&p, 0);
  status = quern_op_call_managed(add, 2, of, 1, of + 2, NULL);
  is_int(p.n_deleted, 1, "borrowed and consumed is consumed");
  f32_of(&p, z);
  of[1] = of[0];
  of[2] = bare_operand(&p.versioned.dl_tensor);
  status = quern_op_call_managed(add, 2, of, 1, of + 2, NULL);
  ok(status == QUERN_OK && p.n_deleted == 0, "borrowed throughout is not");
  f32_of(&p, z);
  for (int k = 0; k < 3; k++) of[k] = legacy_operand(&p, 1);
  of[2].form = 9;
  status = quern_op_call_managed(add, 2, of, 1, of + 2, NULL);
  ok(status == QUERN_E_ARGUMENT && p.n_deleted == 1, "once also where the call fails");
  f32_of(&p, z);
  p.versioned.deleter = NULL;
  for (int k = 0; k < 3; k++) of[k] = versioned_operand(&p, 1);
  status = quern_op_call_managed(add, 2, of, 1, of + 2, NULL);
  is_int(status, QUERN_OK, "a deleter of NULL is none");
}

static void test_params(void) {
  producer p, q;
  fill();
  const uint64_t flags[1] = {READ_ONLY};
  const quern_call call = {.size = sizeof call, .out_flags = flags};
  f32_of(&p, x), f32_of(&q, z);
  quern_operand in = versioned_operand(&p, 1), out = versioned_operand(&q, 1);
  status = quern_op_call_managed(negative, 1, &in, 1, &out, &call);
  ok(status == QUERN_E_READONLY && is_untouched(), "the call's own flags count, too");
  ok(p.n_deleted == 1 && q.n_deleted == 1, "  all is deleted");
}

/* ---- Refusals ---- */

/* One wrong output, the rest right: what the call says, and that each was deleted. */
static void refused(const char *name, producer *out, quern_operand of_out, quern_status wanted, const char *part) {
  producer a, b;
  fill();
  f32_of(&a, x), f32_of(&b, y);
  a.says = b.says = out->says = "of a deleter";
  const quern_operand in[2] = {versioned_operand(&a, 1), legacy_operand(&b, 1)};
  const int is_managed = of_out.form == QUERN_OPERAND_LEGACY || of_out.form == QUERN_OPERAND_VERSIONED;
  status = quern_op_call_managed(add, 2, in, 1, &of_out, NULL);
  is_int(status, wanted, "%s", name);
  has_str(quern_last_error(), part, "  says so");
  has_str(quern_last_error(), "add: output 1", "  and names the operand");
  ok(is_untouched(), "  nothing is written");
  ok(a.n_deleted == 1 && b.n_deleted == 1 && (out->n_deleted == 1 || !is_managed || !of_out.of.tensor), "  all is deleted");
}

static void test_refusals(void) {
  producer p;
  f32_of(&p, z), p.versioned.flags = READ_ONLY;
  refused("a read-only output", &p, versioned_operand(&p, 1), QUERN_E_READONLY, "read-only");
  f32_of(&p, z), p.versioned.version.major = 2, memset(&p.versioned.dl_tensor, 0xee, sizeof p.versioned.dl_tensor);
  refused("of DLPack 2", &p, versioned_operand(&p, 1), QUERN_E_VERSION, "DLPack 2.3");
  f32_of(&p, z), p.versioned.version.major = 0;
  refused("of DLPack 0", &p, versioned_operand(&p, 1), QUERN_E_VERSION, "DLPack 0.3");
  f32_of(&p, z);
  refused("NULL", &p, (quern_operand){QUERN_OPERAND_VERSIONED, 1, {.versioned = NULL}}, QUERN_E_ARGUMENT, "NULL");
  refused("NULL, legacy", &p, (quern_operand){QUERN_OPERAND_LEGACY, 1, {.legacy = NULL}}, QUERN_E_ARGUMENT, "NULL");
  refused("NULL, bare", &p, (quern_operand){QUERN_OPERAND_TENSOR, 1, {.tensor = NULL}}, QUERN_E_ARGUMENT, "NULL");
  refused("no form", &p, (quern_operand){3, 1, {.versioned = &p.versioned}}, QUERN_E_ARGUMENT, "form is 3");
  refused("no form", &p, (quern_operand){-1, 1, {.versioned = &p.versioned}}, QUERN_E_ARGUMENT, "form is -1");
  produce(&p, z, (DLDataType){kDLInt, 4, 1}, 2, shape, strides);
  refused("packed int4", &p, versioned_operand(&p, 1), QUERN_E_DTYPE, "int4 has items of 4 bits, packed");
  produce(&p, z, (DLDataType){kDLInt, 4, 1}, 2, shape, strides);
  refused("packed int4, legacy", &p, legacy_operand(&p, 1), QUERN_E_DTYPE, "int4 has items of 4 bits, packed");
  produce(&p, z, (DLDataType){kDLInt, 4, 1}, 2, shape, strides), p.versioned.flags = PADDED;
  refused("padded int4, which no op takes", &p, versioned_operand(&p, 1), QUERN_E_DTYPE, "int4");
  produce(&p, z, a_bit, 2, shape, strides);
  refused("packed bools", &p, versioned_operand(&p, 1), QUERN_E_DTYPE, "uint1");
  f32_of(&p, z), p.versioned.dl_tensor.ndim = 40;
  refused("40 dimensions", &p, versioned_operand(&p, 1), QUERN_E_LAYOUT, "40 dimensions");
  f32_of(&p, NULL);
  refused("no data", &p, versioned_operand(&p, 1), QUERN_E_ARGUMENT, "data is NULL");
  produce(&p, z, (DLDataType){200, 8, 1}, 2, shape, strides), p.versioned.version.minor = 77;
  refused("a code of the future", &p, versioned_operand(&p, 1), QUERN_E_DTYPE, "code 200");

  f32_of(&p, x), p.versioned.flags = READ_ONLY;
  producer q;
  fill(), f32_of(&q, z), q.versioned.version.minor = 99;
  quern_operand in = versioned_operand(&p, 1), out = versioned_operand(&q, 1);
  is_int(quern_op_call_managed(negative, 1, &in, 1, &out, NULL), QUERN_OK, "a read-only input, an output of DLPack 1.99");
  ok(z[5] == -5 && p.n_deleted == 1 && q.n_deleted == 1, "  are well");
}

/* What is wrong with the call itself. */
static void test_wrong_calls(void) {
  producer p, q;
  const struct { const char *name; quern_op *op; int32_t n_in, n_out; int has_in, has_out, n_p, n_q; } all[] = {
      {"no op", NULL, 1, 1, 1, 1, 1, 1},          {"no inputs", negative, 0, 1, 1, 1, 0, 1},
      {"no array of inputs", negative, 1, 1, 0, 1, 0, 1}, {"no array of outputs", negative, 1, 1, 1, 0, 1, 0},
      {"no arrays", negative, 1, 1, 0, 0, 0, 0},  {"counts below 0", negative, -5, -7, 1, 1, 0, 0},
      {"too few inputs", add, 1, 1, 1, 1, 1, 1}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    f32_of(&p, x), f32_of(&q, z);
    const quern_operand in = versioned_operand(&p, 1), out = legacy_operand(&q, 1);
    is_int(quern_op_call_managed(all[i].op, all[i].n_in, all[i].has_in ? &in : NULL, all[i].n_out,
                                 all[i].has_out ? &out : NULL, NULL), QUERN_E_ARGUMENT, "%s", all[i].name);
    ok(p.n_deleted == all[i].n_p && q.n_deleted == all[i].n_q, "  what was there is deleted");
  }
  producer many[50];
  quern_operand of[50];
  int n = 0;
  for (int i = 0; i < 50; i++) f32_of(&many[i], x), of[i] = versioned_operand(&many[i], 1);
  f32_of(&q, z);
  const quern_operand out = versioned_operand(&q, 0);
  is_int(quern_op_call_managed(negative, 50, of, 1, &out, NULL), QUERN_E_ARGUMENT, "50 inputs");
  for (int i = 0; i < 50; i++) n += many[i].n_deleted;
  ok(n == 50 && q.n_deleted == 0, "  all are deleted, the borrowed output is not");
  const quern_call call = {.size = 3};
  f32_of(&p, x);
  const quern_operand in = versioned_operand(&p, 1);
  is_int(quern_op_call_managed(negative, 1, &in, 1, &out, &call), QUERN_E_VERSION, "a call of a size that no version has");
  is_int(p.n_deleted, 1, "  what was there is deleted");
}

/* ---- Old bools ---- */

static void test_bools(void) {
  const struct { const char *name; DLDataType dtype; int is_legacy; uint64_t flags; int is_good; } all[] = {
      {"bool", a_bool, 0, 0, 1},
      {"bool, legacy", a_bool, 1, 0, 1},
      {"uint1, legacy", a_bit, 1, 0, 1},
      {"uint1, padded", a_bit, 0, PADDED, 1},
      {"bool1, padded", {kDLBool, 1, 1}, 0, PADDED, 1},
      {"bool1, legacy", {kDLBool, 1, 1}, 1, 0, 1},
      {"bool1, packed", {kDLBool, 1, 1}, 0, 0, 0},
      {"uint1 x 2 lanes, legacy", {kDLUInt, 1, 2}, 1, 0, 0},
      {"u8, legacy: this is not asked for", a_u8, 1, 0, 0}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    unsigned char condition[N] = {0, 1, 2, 0, 255, 0};
    producer c, p[3];
    fill();
    produce(&c, condition, all[i].dtype, 2, shape, strides);
    c.versioned.flags = all[i].flags;
    f32_of(&p[0], x), f32_of(&p[1], y), f32_of(&p[2], z);
    const quern_operand in[3] = {all[i].is_legacy ? legacy_operand(&c, 1) : versioned_operand(&c, 1), versioned_operand(&p[0], 1),
                                 versioned_operand(&p[1], 1)}, out = versioned_operand(&p[2], 1);
    status = quern_op_call_managed(where, 3, in, 1, &out, NULL);
    is_int(status, all[i].is_good ? QUERN_OK : QUERN_E_DTYPE, "a condition of %s", all[i].name);
    const float wanted[N] = {10, 1, 2, 10, 4, 10};
    ok(all[i].is_good ? memcmp(z, wanted, sizeof z) == 0 : is_untouched(), "  chooses by bytes that are not 0");
    is_int(c.n_deleted + p[0].n_deleted + p[1].n_deleted + p[2].n_deleted, 4, "  all are deleted");
  }
}

/* ---- A host's op sees what it is given ---- */

static quern_status see(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                        const quern_call *call) {
  (void)n_in, (void)n_out, (void)call;
  ((DLDataType *)self)[0] = in[0]->dtype;
  ((DLDataType *)self)[1] = out[0]->dtype;
  return QUERN_OK;
}

static void test_host_op(void) {
  DLDataType seen[2];
  quern_ctx *ctx = NULL;
  quern_op *op = NULL;
  const quern_op_def def = {.size = sizeof def, .name = "acme.see", .n_in = 1, .n_out = 1, .self = seen, .call = see};
  if (quern_ctx_create(NULL, &ctx) || quern_op_register(ctx, &def) || quern_op_find(ctx, "acme.see", &op))
    bail("%s", quern_last_error());
  producer p, q;
  produce(&p, x, a_bit, 2, shape, strides);
  produce(&q, z, (DLDataType){kDLFloat4_e2m1fn, 4, 1}, 2, shape, strides), q.versioned.flags = PADDED;
  quern_operand in = legacy_operand(&p, 0), out = versioned_operand(&q, 0);
  status = quern_op_call_managed(op, 1, &in, 1, &out, NULL);
  ok(status == QUERN_OK && same_dtype(seen[0], a_bool) && seen[1].code == kDLFloat4_e2m1fn, "a host's op: bools, padded fp4");
  ok(same_dtype(p.legacy.dl_tensor.dtype, a_bit), "  the tensor itself is as it was");
  q.versioned.flags = PADDED | READ_ONLY;
  is_int(quern_op_call_managed(op, 1, &in, 1, &out, NULL), QUERN_E_READONLY, "  it is not given read-only outputs");
  q.versioned.flags = 0;
  is_int(quern_op_call_managed(op, 1, &in, 1, &out, NULL), QUERN_E_DTYPE, "  nor packed items");
  quern_op_release(op);
  quern_ctx_release(ctx);
}

/* ---- At random ---- */

static int64_t odd_number(rng *r) {
  static const int64_t odd[] = {0, 1, -1, 2, 3, 7, 1000, INT32_MAX, INT64_MAX, INT64_MIN, INT64_MAX / 4, (int64_t)1 << 61, -4};
  return rng_below(r, 4) ? rng_range(r, -2, 6) : odd[rng_below(r, sizeof odd / sizeof odd[0])];
}

static void produce_any(producer *p, rng *r, void *memory) {
  const int ndim = rng_below(r, 8) ? (int)rng_below(r, 5) : (int)rng_range(r, -3, PRODUCER_NDIM);
  DLDataType dtype = {(uint8_t)rng_below(r, 20), (uint8_t)(1u << rng_below(r, 8)), 1};
  if (rng_below(r, 2)) dtype = a_f32;
  if (rng_below(r, 10) == 0) dtype = (DLDataType){(uint8_t)rng_u64(r), (uint8_t)rng_u64(r), (uint16_t)rng_u64(r)};
  produce(p, rng_below(r, 10) ? memory : NULL, dtype, 0, NULL, p->strides);
  for (int i = 0; i < PRODUCER_NDIM; i++) p->shape[i] = odd_number(r), p->strides[i] = odd_number(r);
  DLTensor *t = &p->versioned.dl_tensor;
  t->ndim = ndim;
  if (rng_below(r, 3) == 0) t->strides = NULL;
  if (rng_below(r, 20) == 0) t->shape = NULL;
  if (rng_below(r, 5) == 0) t->byte_offset = rng_u64(r) >> rng_below(r, 64);
  if (rng_below(r, 10) == 0) t->device = (DLDevice){(DLDeviceType)rng_below(r, 20), (int32_t)rng_u64(r)};
  p->legacy.dl_tensor = *t;
  p->versioned.flags = rng_below(r, 3) ? 0 : rng_u64(r);
  if (rng_below(r, 4) == 0) p->versioned.version = (DLPackVersion){(uint32_t)rng_below(r, 3), (uint32_t)rng_below(r, 5)};
}

/* What an import promises. */
static const char *broken_promise(const struct DLManagedTensorVersioned *m) {
  const DLTensor *t = &m->dl_tensor;
  if (m->version.major != 1 || m->version.minor != 3) return "version";
  if (t->ndim < 0 || t->ndim > QUERN_MAX_NDIM) return "ndim";
  if (t->ndim && (!t->shape || !t->strides)) return "layout";
  if (t->dtype.lanes != 1 || !t->dtype.bits || t->dtype.bits % 8) return "items";
  if (t->dtype.code > 17 || (t->dtype.code == kDLBool && t->dtype.bits != 8)) return "code";
  for (int i = 0; i < t->ndim; i++)
    if (t->shape[i] < 0) return "extent";
  return NULL;
}

static void test_random(void) {
  static float memory[4096];
  rng r;
  int n_good = 0;
  rng_seed(&r, 801);
  group_begin("descriptors at random: imported, downgraded, called, exported");
  for (int i = 0; i < 40000; i++) {
    producer p, q;
    struct DLManagedTensorVersioned *managed = NULL;
    DLManagedTensor *legacy = NULL;
    atomic_int n_released = 0;
    produce_any(&p, &r, memory + 2048);
    const int way = (int)rng_below(&r, 6), is_legacy = (int)rng_below(&r, 2);
    const char *broken = NULL;
    int wanted = 1;
    if (way == 0) {
      status = quern_managed_import(&p.versioned, (uint32_t)rng_below(&r, 2), &managed);
    } else if (way == 1) {
      status = quern_managed_import_legacy(&p.legacy, (uint32_t)rng_below(&r, 2), &managed);
    } else if (way == 2) {
      status = quern_managed_downgrade(&p.versioned, &legacy);
    } else if (way == 3) { /* inputs only: the output's memory need not be that large */
      quern_operand in[2] = {is_legacy ? legacy_operand(&p, 1) : versioned_operand(&p, 1)};
      in[1] = in[0];
      f32_of(&q, z);
      const quern_operand out = versioned_operand(&q, 1);
      for (int k = 0; k < 2; k++) in[k].consume = k;
      q.versioned.dl_tensor.data = NULL;
      status = quern_op_call_managed(add, 2, in, 1, &out, NULL);
      wanted = 1;
      if (q.n_deleted != 1) group_fail("case %d: the output was deleted %d times", i, q.n_deleted);
    } else if (way == 4) {
      status = quern_managed_wrap(&p.versioned.dl_tensor, p.versioned.flags, count_release, &n_released, &managed);
      wanted = 0;
    } else { /* no copies: there need not be so much memory */
      quern_export wish = {sizeof wish, (int32_t)rng_below(&r, 2), {(DLDeviceType)rng_below(&r, 2), 0}, NULL};
      if (p.versioned.dl_tensor.device.device_type != kDLCPU) wish.copy = QUERN_COPY_NEVER;
      status = quern_managed_export(&p.versioned.dl_tensor, p.versioned.flags, count_release, &n_released, &wish, &managed);
      wanted = 0;
    }
    group_count(1);
    if (status && (managed || legacy)) group_fail("case %d: something is given on failure", i);
    if (status && way != 3 && p.n_deleted != wanted) group_fail("case %d: deleted %d times on failure", i, p.n_deleted);
    if (managed && way < 2) broken = broken_promise(managed);
    if (broken) group_fail("case %d: imported, but %s", i, broken);
    n_good += status == QUERN_OK;
    if (managed) quern_managed_release(managed);
    if (legacy) legacy->deleter(legacy);
    if (p.n_deleted != wanted) group_fail("case %d, way %d: deleted %d times", i, way, p.n_deleted);
    if (way > 3 && n_released != (status == QUERN_OK)) group_fail("case %d: released %d times", i, n_released);
  }
  group_end();
  ok(n_good > 2000, "%d of them were good", n_good);
}

int main(void) {
  if (quern_op_find(NULL, "add", &add) || quern_op_find(NULL, "negative", &negative) || quern_op_find(NULL, "where", &where))
    skip_all("this build has some ops only");
  test_forms();
  test_same_tensor();
  test_params();
  test_refusals();
  test_wrong_calls();
  test_bools();
  test_host_op();
  test_random();
  quern_op_release(add);
  quern_op_release(negative);
  quern_op_release(where);
  return done_testing();
}
