/* SPDX-License-Identifier: Apache-2.0
 * tags: threads
 *
 * t270-ftz: a host that flushes subnormals, rounds toward zero or unmasks exceptions gets the same bits, and its
 * environment back, status flags apart: in calls, plans and slices on the host's threads. */
#include <fenv.h>
#include <pthread.h>

#include "tensors.h"

#if defined __x86_64__
#include <immintrin.h>
static unsigned get_word(void) {
  return _mm_getcsr();
}
static void set_word(unsigned word) {
  _mm_setcsr(word);
}
/* The control bits: all but the six status flags. */
#define CONTROL 0xffc0u
static const struct {
  unsigned word;
  const char *name;
} words[] = {
    {0x1f80, "default"},          {0x9f80, "FTZ"},          {0x1fc0, "DAZ"},           {0x9fc0, "FTZ and DAZ"},
    {0x7f80, "toward zero"},      {0x3f80, "downward"},     {0x5f80, "upward"},        {0xffc0, "FTZ, DAZ, toward zero"},
    {0x0000, "all exceptions unmasked"}, {0x1f00 & ~0x200u, "division by zero and invalid unmasked"},
};
#elif defined __aarch64__
static unsigned get_word(void) {
  unsigned long word;
  __asm__ volatile("mrs %0, fpcr" : "=r"(word));
  return (unsigned)word;
}
static void set_word(unsigned word) {
  __asm__ volatile("msr fpcr, %0" : : "r"((unsigned long)word));
}
#define CONTROL 0xffffffffu
static const struct {
  unsigned word;
  const char *name;
} words[] = {{0, "default"}, {1u << 24, "FZ"}, {3u << 22, "toward zero"}, {2u << 22, "downward"}, {1u << 22, "upward"},
             {7u << 22, "FZ, toward zero"}};
#endif
#define N_WORDS (int)(sizeof words / sizeof *words)

static const struct {
  ref_op op;
  ref_dtype in[3], out;
} cases[] = {
    {REF_ADD, {REF_F32, REF_F32}, REF_F32},   {REF_MULTIPLY, {REF_F64, REF_F64}, REF_F64},
    {REF_DIVIDE, {REF_F32, REF_F32}, REF_F32},
    {REF_EXP, {REF_F32}, REF_F32},            {REF_EXP, {REF_F64}, REF_F64},               {REF_LOG, {REF_F32}, REF_F32},
    {REF_POW, {REF_F32, REF_F32}, REF_F32},   {REF_POW, {REF_F64, REF_F64}, REF_F64},      {REF_GELU, {REF_F64}, REF_F64},
    {REF_TANH, {REF_F32}, REF_F32},           {REF_SQRT, {REF_F32}, REF_F32},
    {REF_FMA, {REF_F64, REF_F64, REF_F64}, REF_F64},
    {REF_MULTIPLY, {REF_F16, REF_F16}, REF_F16}, {REF_ADD, {REF_BF16, REF_BF16}, REF_BF16}, {REF_ASTYPE, {REF_F64}, REF_F32},
    {REF_ASTYPE, {REF_F64}, REF_F16},         {REF_ASTYPE, {REF_I64}, REF_F32},            {REF_ASTYPE, {REF_F32}, REF_I32},
    {REF_ASTYPE, {REF_F32}, REF_BOOL},        {REF_LESS, {REF_F32, REF_F32}, REF_BOOL},
    {REF_EQUAL, {REF_F64, REF_F64}, REF_BOOL},
    {REF_MAXIMUM, {REF_F32, REF_F32}, REF_F32}, {REF_RELU, {REF_F32}, REF_F32},            {REF_LEAKY_RELU, {REF_F32}, REF_F32},
    {REF_CLIP, {REF_F32}, REF_F32},           {REF_SIGMOID, {REF_F32}, REF_F32},           {REF_ERF, {REF_F32}, REF_F32},
};
#define N_CASES (int)(sizeof cases / sizeof *cases)

/* Every third element is subnormal or makes a subnormal. */
static void fill(operand *o, rng *r) {
  operand_fill(o, r);
  int size = ref_dtype_size(o->d);
  int64_t n = ref_n_elements(&o->t);
  if (ref_dtype_kind(o->d) != REF_KIND_FLOAT) return;
  uint64_t inf = ref_nan(o->d) & (ref_nan(o->d) - 1), least_normal = inf & -inf;
  for (int64_t i = 0; i < n; i += 3) {
    uint64_t sign = (rng_u64(r) & 1) << (8 * size - 1);
    ref_put(o->d, (char *)o->t.data + i * size, rng_below(r, 4 * least_normal) | sign);
  }
}

static void for_manner(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg);

typedef struct one_slice {
  void (*slice)(void *arg, int64_t i);
  void *arg;
  int64_t i;
  unsigned word;
  int *lost;
} one_slice;

static void *run_slice(void *arg) {
  one_slice *s = arg;
  set_word(s->word);
  s->slice(s->arg, s->i);
  if ((get_word() & CONTROL) != (s->word & CONTROL)) ++*s->lost;
  set_word(words[0].word);
  return NULL;
}

static unsigned slice_word;
static int slices_lost, slices_run;

/* Each slice on a thread with the odd environment. */
static void for_manner(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg) {
  (void)host;
  for (int64_t i = 0; i < n; i++) {
    pthread_t thread;
    one_slice s = {slice, arg, i, slice_word, &slices_lost};
    slices_run++;
    pthread_create(&thread, NULL, run_slice, &s);
    pthread_join(thread, NULL);
  }
}

/* body, tail, blocks, strides: 1, 40, 1030 elements and a transposed plane. */
static void make_case(trial *t, int c, int kind, rng *r) {
  int64_t shape[2] = {kind == 0 ? 1 : kind == 1 ? 40 : kind == 2 ? 1030 : 17, 29}, turned[2] = {1, 17};
  memset(t, 0, sizeof *t);
  t->op = cases[c].op;
  for (int k = -1; k < ref_op_describe(t->op)->n_in; k++) {
    operand *o = k < 0 ? &t->out : &t->in[k];
    operand_describe(o, k < 0 ? cases[c].out : cases[c].in[k], kind == 3 ? 2 : 1, shape, kind == 3 && k == 0 ? turned : NULL);
    operand_allocate(o, 0, GUARD_NONE);
    fill(o, r);
  }
}

/* One case in all environments, by call and by plan, against the default one's bits, which ref.c checks. */
static void test_case(int c, int kind, rng *r) {
  trial t;
  make_case(&t, c, kind, r);
  int n_in = ref_op_describe(t.op)->n_in;
  DLTensor *in[3] = {&t.in[0].t, &t.in[1].t, &t.in[2].t}, *out = &t.out.t;
  quern_op *op = the_op(t.op);
  quern_plan *plan = NULL;
  size_t bytes = body_bytes(&t.out);
  unsigned char *wanted = malloc(bytes);
  void *pi[3] = {t.in[0].t.data, t.in[1].t.data, t.in[2].t.data}, *po = t.out.t.data;
  trial_run(&t);
  memcpy(wanted, body_of(&t.out), bytes);
  if (quern_op_prepare(op, n_in, in, 1, &out, NULL, &plan)) bail("%s", quern_last_error());
  for (int w = 0; w < N_WORDS; w++) {
    for (int by_plan = 0; by_plan < 2; by_plan++) {
      int64_t index[2] = {0};
      do memset(ref_address(out, index), 0x77, (size_t)ref_dtype_size(t.out.d));
      while (ref_next_index(out->ndim, out->shape, index));
      set_word(words[w].word);
      quern_status s = by_plan ? quern_plan_run(plan, pi, &po, NULL) : quern_op_call(op, n_in, in, 1, &out, NULL);
      unsigned after = get_word();
      set_word(words[0].word);
      char what[200];
      snprintf(what, sizeof what, "%s, %s: %s", words[w].name, by_plan ? "plan" : "call",
               s ? quern_last_error() : "other bits than in the default environment");
      group_count(1);
      if (s || memcmp(wanted, body_of(&t.out), bytes)) trial_report(&t, what);
      if ((after & CONTROL) != (words[w].word & CONTROL)) {
        group_fail("%s: control word 0x%x became 0x%x", words[w].name, words[w].word, after);
      }
    }
  }
  quern_plan_release(plan);
  free(wanted);
  trial_free(&t);
}

int main(void) {
#if !defined __x86_64__ && !defined __aarch64__
  skip_all("no way to set the floating-point environment is known here");
#else
  rng r;
  rng_seed(&r, 1);
  for (int c = 0; c < N_CASES; c++) {
    if (!has_op(cases[c].op)) continue;
    group_begin("%s to %s: same bits and the environment given back, %d environments", ref_op_describe(cases[c].op)->name,
                ref_dtype_name(cases[c].out), N_WORDS);
    for (int kind = 0; kind < 4; kind++) test_case(c, kind, &r);
    group_end();
  }

  /* On the host's threads. */
  quern_options options = {.size = sizeof options, .threads = 3, .parallel_for = for_manner};
  quern_ctx *ctx = NULL;
  if (quern_ctx_create(&options, &ctx)) bail("%s", quern_last_error());
  for (int c = 0; c < N_CASES; c += 5) {
    if (!has_op(cases[c].op)) continue;
    const ref_op_info *info = ref_op_describe(cases[c].op);
    operand in[3], out;
    DLTensor *ins[3] = {&in[0].t, &in[1].t, &in[2].t}, *outs = &out.t;
    int64_t n = 300000;
    quern_op *op = NULL;
    for (int k = 0; k < info->n_in; k++) {
      operand_vector(&in[k], cases[c].in[k], n, &r);
      fill(&in[k], &r);
    }
    operand_vector(&out, cases[c].out, n, &r);
    if (quern_op_find(ctx, info->name, &op)) bail("%s", quern_last_error());
    unsigned char *first = malloc(body_bytes(&out));
    int s0 = quern_op_call(the_op(cases[c].op), info->n_in, ins, 1, &outs, NULL);
    memcpy(first, body_of(&out), body_bytes(&out));
    group_begin("%s on the host's threads, each in another environment", info->name);
    for (int w = 1; w < N_WORDS; w++) {
      memset(out.t.data, 0x77, (size_t)n * (size_t)ref_dtype_size(out.d));
      slices_run = slices_lost = 0;
      slice_word = words[w].word;
      int s1 = quern_op_call(op, info->n_in, ins, 1, &outs, NULL);
      group_count(1);
      if (s0 || s1 || memcmp(first, body_of(&out), body_bytes(&out))) {
        group_fail("%s: other bits (status %d %d)", words[w].name, s0, s1);
      }
      if (slices_lost) group_fail("%s: %d slices lost the host's environment", words[w].name, slices_lost);
      if (!slices_run) group_fail("%s: no slice ran on the host's threads", words[w].name);
    }
    group_end();
    free(first);
    quern_op_release(op);
    for (int k = 0; k < info->n_in; k++) operand_free(&in[k]);
    operand_free(&out);
  }
  quern_ctx_release(ctx);
  return done_testing();
#endif
}
