/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full
 *
 * t765-cuda-expressions: random expressions on CUDA tensors give the bytes that the interpreter gives on the CPU; conversions
 * of all f16 and bf16 give what the CPU gives. With QUERN_TEST_GPU=1 also conversions of all f32 and i32 to all dtypes, and
 * functions of all f32. QUERN_TEST_DAGS: how many expressions; QUERN_TEST_SECONDS: how long the last part may take;
 * QUERN_TEST_SHARD=k/n: each n-th expression, and the rest in the first shard only; QUERN_TEST_PART=expressions or bits: that
 * part alone. */
#include "cuda/on_device.h"
#include "random_trees.h"

/* ---- Random expressions ---- */

static void one_case(quern_ctx *cpu, quern_ctx *gpu, int salt) {
  static tree_case c;
  quern_op *on_cpu = NULL, *on_gpu = NULL;
  mirror in[MAX_INPUTS] = {0}, out[2] = {0};
  DLTensor *ins[MAX_INPUTS], *outs[2];
  char what[400], how[4000] = "";
  rng r;
  rng_seed(&r, (uint64_t)salt);
  tree_case_make(&c, &r, salt);
  group_count(1);
  if (quern_op_compile(cpu, c.t.text, &on_cpu) || quern_op_compile(gpu, c.t.text, &on_gpu))
    bail("%s: %s", c.t.text, quern_last_error());
  /* One of the inputs may stay on the CPU where it is one element. */
  for (int k = 0; k < c.n_used; k++) {
    const operand *o = &c.in[c.t.order[k]];
    const int stays = c.n_used > 1 && c.ndim == 0 && rng_below(&r, 4) == 0;
    if (!stays) mirror_make(&in[k], o, 0);
    ins[k] = stays ? c.ins[k] : &in[k].t;
  }
  for (int k = 0; k < c.t.n_out; k++) {
    mirror_make(&out[k], &c.out[k], 0);
    outs[k] = &out[k].t;
  }
  const int n_kernels = n_kernels_loaded();
  if (quern_op_call(on_cpu, c.n_used, c.ins, c.t.n_out, c.outs, &c.call)) bail("%s: %s", c.t.text, quern_last_error());
  const quern_status status = quern_op_call(on_gpu, c.n_used, ins, c.t.n_out, outs, &c.call);
  quern_op_explain(on_gpu, c.n_used, ins, c.t.n_out, outs, &c.call, how, sizeof how);
  if (status) group_fail("case %d: %s: %s\n%s\n%s", salt, status_name(status), quern_last_error(), c.t.text, how);
  for (int k = 0; k < c.t.n_out && !status; k++)
    if (!mirror_same(&out[k], what, sizeof what))
      group_fail("case %d: output %d: %s\n%s\n%s", salt, k, what, c.t.text, how);
  for (int k = 0; k < c.n_used && !status; k++)
    if (in[k].memory && !mirror_same(&in[k], what, sizeof what)) group_fail("case %d: input %d: %s\n%s", salt, k, what, c.t.text);
  if (is_fake() && n_kernels_loaded() - n_kernels > 1) group_fail("case %d: one call was %d kernels\n%s", salt,
                                                                  n_kernels_loaded() - n_kernels, c.t.text);
  for (int k = 0; k < MAX_INPUTS; k++) mirror_free(&in[k]);
  for (int k = 0; k < 2; k++) mirror_free(&out[k]);
  quern_op_release(on_cpu), quern_op_release(on_gpu);
  tree_case_free(&c);
}

/* Rare blocks behind branches, for all pairs of some values. */
static void test_branches(quern_ctx *cpu, quern_ctx *gpu, ref_dtype d) {
  enum { N = sizeof branch_values / sizeof branch_values[0] };
  static operands o; /* y, then x: by rows, then by columns */
  mirror in[2] = {0}, out[3] = {0};
  const int64_t shape[2] = {N, N};
  char what[400];
  rng r;
  rng_seed(&r, 765);
  group_begin("rare blocks behind branches, %s", ref_dtype_name(d));
  for (size_t e = 0; e < sizeof branch_texts / sizeof branch_texts[0]; e++) {
    quern_op *on_cpu = op_from(cpu, branch_texts[e]), *on_gpu = op_from(gpu, branch_texts[e]);
    const quern_op_info *info = quern_op_describe(on_cpu);
    DLTensor *ins[2], *outs[3];
    memset(&o, 0, sizeof o);
    o.n_in = info->n_in, o.n_out = info->n_out;
    for (int k = 0; k < o.n_in; k++) {
      operand_make(&o.in[k], d, 2, shape, NULL, &r);
      for (int i = 0; i < N * N; i++)
        ref_put(d, (char *)o.in[k].t.data + i * ref_dtype_size(d), ref_from_double(d, branch_values[k ? i % N : i / N]));
      mirror_make(&in[k], &o.in[k], 0);
      ins[k] = &in[k].t;
    }
    for (int k = 0; k < o.n_out; k++) {
      operand_make(&o.out[k], d, 2, shape, NULL, &r);
      mirror_make(&out[k], &o.out[k], 0);
      outs[k] = &out[k].t;
    }
    operands_point(&o);
    group_count(1);
    if (operands_call(on_cpu, &o, NULL)) bail("%s: %s", branch_texts[e], quern_last_error());
    if (quern_op_call(on_gpu, o.n_in, ins, o.n_out, outs, NULL)) group_fail("%s: %s", branch_texts[e], quern_last_error());
    for (int k = 0; k < o.n_out; k++)
      if (!mirror_same(&out[k], what, sizeof what)) group_fail("%s: output %d: %s", branch_texts[e], k, what);
    for (int k = 0; k < o.n_in; k++) mirror_free(&in[k]);
    for (int k = 0; k < o.n_out; k++) mirror_free(&out[k]);
    operands_free(&o);
    quern_op_release(on_cpu), quern_op_release(on_gpu);
  }
  group_end();
}

/* ---- Every value of a dtype ---- */

enum { MOST_THREADS = 16 };
typedef struct comparison {
  const char *a, *b;
  size_t from, to, bad; /* bad: the first byte that differs, or `to` */
} comparison;

static void *compare(void *arg) {
  comparison *c = arg;
  c->bad = c->to;
  if (memcmp(c->a + c->from, c->b + c->from, c->to - c->from) == 0) return NULL;
  for (c->bad = c->from; c->a[c->bad] == c->b[c->bad];) c->bad++;
  return NULL;
}

/* The first byte that differs, or n; by several threads where there is much. */
static size_t first_difference(const char *a, const char *b, size_t n) {
  comparison part[MOST_THREADS];
  pthread_t threads[MOST_THREADS];
  const int n_parts = n < (1 << 22) ? 1 : MOST_THREADS;
  for (int i = 0; i < n_parts; i++) {
    const size_t each = n / (size_t)n_parts, from = each * (size_t)i;
    part[i] = (comparison){a, b, from, i == n_parts - 1 ? n : from + each, 0};
    if (n_parts == 1) compare(&part[i]);
    else if (pthread_create(&threads[i], NULL, compare, &part[i])) bail("no thread");
  }
  for (int i = 0; i < n_parts && n_parts > 1; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < n_parts; i++)
    if (part[i].bad < part[i].to) return part[i].bad;
  return n;
}

static struct {
  int64_t n; /* elements of a slice */
  uint32_t *values; /* on the host, as the others but the two for the device */
  char *wanted, *got;
  char *values_there, *result_there;
} whole;

static void whole_make(int64_t n) {
  void *pinned[2];
  whole.n = n;
  device_do(cuda.pinned_allocate(&pinned[0], (size_t)n * 4, 0));
  device_do(cuda.pinned_allocate(&pinned[1], (size_t)n * 8, 0));
  whole.values = pinned[0], whole.got = pinned[1];
  whole.wanted = malloc((size_t)n * 8);
  whole.values_there = device_allocate((size_t)n * 4);
  whole.result_there = device_allocate((size_t)n * 8);
  if (!whole.wanted) bail("no memory");
}

static void whole_free(void) {
  device_do(cuda.pinned_free(whole.values));
  device_do(cuda.pinned_free(whole.got));
  device_free(whole.values_there);
  device_free(whole.result_there);
  free(whole.wanted);
}

/* The slice's values, 16 bits or 32. */
static void fill(ref_dtype d, uint64_t first) {
  for (int64_t i = 0; i < whole.n; i++) {
    if (ref_dtype_size(d) == 2) ((uint16_t *)whole.values)[i] = (uint16_t)(first + (uint64_t)i);
    else whole.values[i] = (uint32_t)(first + (uint64_t)i);
  }
  device_write(whole.values_there, whole.values, (size_t)(whole.n * ref_dtype_size(d)));
}

/* One op on the slice; 0: it failed, and that was said. */
static int check_slice(quern_op *op, const char *name, ref_dtype from, ref_dtype to, uint64_t first) {
  int64_t n = whole.n;
  DLTensor x = {whole.values, {kDLCPU, 0}, 1, ref_dtype_dl(from), &n, NULL, 0}, y = x, *in = &x, *out = &y;
  y.data = whole.wanted, y.dtype = ref_dtype_dl(to);
  group_count(n);
  if (quern_op_call(op, 1, &in, 1, &out, NULL)) bail("%s: %s", name, quern_last_error());
  x.data = whole.values_there, y.data = whole.result_there;
  x.device.device_type = y.device.device_type = kDLCUDA;
  if (quern_op_call(op, 1, &in, 1, &out, NULL)) return group_fail("%s: %s", name, quern_last_error()), 0;
  const size_t bytes = (size_t)(n * ref_dtype_size(to));
  device_read(whole.got, whole.result_there, bytes);
  const size_t bad = first_difference(whole.got, whole.wanted, bytes);
  if (bad == bytes) return 1;
  const size_t at = bad / (size_t)ref_dtype_size(to);
  char a[80], b[80], c[80];
  group_fail("%s, %s to %s: of %s: got %s, wanted %s", name, ref_dtype_name(from), ref_dtype_name(to),
             ref_text(from, first + at, c), ref_text(to, ref_get(to, whole.got + at * (size_t)ref_dtype_size(to)), a),
             ref_text(to, ref_get(to, whole.wanted + at * (size_t)ref_dtype_size(to)), b));
  return 0;
}

static void test_all_halves(quern_op *astype) {
  rng r;
  rng_seed(&r, 16);
  whole_make(1 << 16);
  group_begin("all f16 and bf16 to %s", is_on_gpu() ? "every dtype" : "some dtypes");
  for (ref_dtype from = REF_F16; from <= REF_BF16; from++) {
    fill(from, 0);
    for (ref_dtype to = 0; to < REF_N_DTYPES; to++)
      if (is_on_gpu() || to == (from == REF_F16 ? REF_BF16 : (ref_dtype)rng_below(&r, 4)))
        check_slice(astype, "astype", from, to, 0);
  }
  group_end();
  whole_free();
}

/* All 2^32, in slices. Stops where time is out. */
static void test_all_words(quern_op *astype, double end_ms) {
  static const char *const functions[] = {"exp", "log", "tanh", "erf", "gelu", "sigmoid", "sqrt"};
  enum { N_FUNCTIONS = sizeof functions / sizeof functions[0], SLICE = 1 << 26 };
  quern_op *op[N_FUNCTIONS];
  for (int i = 0; i < N_FUNCTIONS; i++) op[i] = op_named(NULL, functions[i]);
  whole_make(SLICE);
  for (int part = 0; part < 3; part++) {
    const ref_dtype from = part == 1 ? REF_I32 : REF_F32;
    int n_slices = 0, is_good[REF_N_DTYPES + N_FUNCTIONS];
    for (int i = 0; i < REF_N_DTYPES + N_FUNCTIONS; i++) is_good[i] = 1; /* one that has failed is not run again */
    if (now_ms() > end_ms) {
      skip(1, "out of time");
      continue;
    }
    group_begin(part < 2 ? "all %s to every dtype" : "functions of all %s", ref_dtype_name(from));
    for (uint64_t k = 0; k < 64 && (k == 0 || now_ms() < end_ms); k++, n_slices++) {
      const uint64_t first = (k * 37 & 63) * SLICE; /* in an order that meets small, large and negative ones soon */
      fill(from, first);
      for (ref_dtype to = 0; part < 2 && to < REF_N_DTYPES; to++)
        if (is_good[to]) is_good[to] = check_slice(astype, "astype", from, to, first);
      for (int i = 0; part == 2 && i < N_FUNCTIONS; i++)
        if (is_good[REF_N_DTYPES + i]) is_good[REF_N_DTYPES + i] = check_slice(op[i], functions[i], from, REF_F32, first);
    }
    if (n_slices < 64) diag("out of time: %d of 64 slices", n_slices);
    group_end();
  }
  whole_free();
  for (int i = 0; i < N_FUNCTIONS; i++) quern_op_release(op[i]);
}

int main(void) {
  const char *text = getenv("QUERN_TEST_SHARD"), *part = getenv("QUERN_TEST_PART");
  int shard = 0, n_shards = 1;
  if (text && (sscanf(text, "%d/%d", &shard, &n_shards) != 2 || n_shards < 1)) bail("QUERN_TEST_SHARD=%s", text);
  device_begin();
  if (!part || !strcmp(part, "expressions")) {
    const int part = is_on_gpu() ? -1 : test_part(6); /* by the fake driver a sixth of 42, another each day */
    const int n = (int)number_from("QUERN_TEST_DAGS", is_on_gpu() ? 400 : part < 0 ? 42 : 7);
    const int start = is_on_gpu() ? 0 : 400 + (part < 0 ? 0 : part * 7);
    quern_ctx *cpu = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 2});
    quern_ctx *gpu = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 1});
    group_begin("random expressions: the bytes of the interpreter");
    for (int i = shard; i < n; i += n_shards) one_case(cpu, gpu, start + i);
    group_end();
    if (shard == 0) test_branches(cpu, gpu, REF_F32);
    if (shard == 0 && is_on_gpu()) test_branches(cpu, gpu, REF_F64);
    quern_ctx_release(cpu), quern_ctx_release(gpu);
  }
  if (shard == 0 && (!part || !strcmp(part, "bits"))) {
    quern_op *astype = op_named(NULL, "astype");
    test_all_halves(astype);
    if (is_on_gpu()) test_all_words(astype, now_ms() + 1e3 * (double)number_from("QUERN_TEST_SECONDS", 120));
    quern_op_release(astype);
  }
  return done_testing();
}
