/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads-full long
 *
 * t600-fused: random expressions on tensors of random dtypes and layouts, in every way that they can run here: interpreted,
 * compiled by Clang in process, compiled by cc. All of them must give the bits that the plainest evaluation gives, element
 * by element: operations that are rounded exactly in 113-bit arithmetic (ref.h), the others, which every fourth
 * expression has, by the built op on a single element. */
#include "tree_values.h"

static quern_ctx *make_ctx(int jit, const char *cc) {
  quern_options options = {.size = sizeof options, .jit = jit, .threads = 2, .cache_dir = "", .cc = cc};
  quern_ctx *ctx = NULL;
  if (quern_ctx_create(&options, &ctx)) bail("ctx: %s", quern_last_error());
  return ctx;
}

typedef struct way {
  const char *name, *tier;
  quern_ctx *ctx;
  long n_run;
} way;

static void one_case(way *ways, int n_ways, rng *r, int salt) {
  static tree_case c;
  tree_case_make(&c, r, salt);
  for (int k = 0; k < c.t.n_out; k++) operand_save(&c.out[k]);
  for (int w = 0; w < n_ways; w++) {
    quern_op *op = NULL;
    quern_status status = quern_op_compile(ways[w].ctx, c.t.text, &op);
    group_count(1);
    if (status) {
      group_fail("case %d, %s: compile: %s\n%s", salt, ways[w].name, quern_last_error(), c.t.text);
      break;
    }
    char explain[8192] = "", tier[64];
    status = quern_op_call(op, c.n_used, c.ins, c.t.n_out, c.outs, &c.call);
    if (status) {
      group_fail("case %d, %s: status %d: %s\n%s", salt, ways[w].name, status, quern_last_error(), c.t.text);
    } else {
      int64_t index[3] = {0};
      int bad = 0;
      do {
        uint64_t x[MAX_INPUTS] = {0};
        for (int k = 0; k < c.t.n_in; k++) x[k] = ref_get(c.t.in[k], ref_broadcast_address(&c.in[k].t, c.ndim, index));
        for (int k = 0; k < c.t.n_out && !bad; k++) {
          const node *n = &c.t.nodes[c.t.out[k]];
          uint64_t wanted = tree_value(&c.t, c.t.out[k], x), got = ref_get(c.out[k].d, ref_address(c.outs[k], index));
          wanted = ref_cast(c.out[k].d, ref_value(n->type, wanted), ref_dtype_kind(n->type));
          if (got == wanted) continue;
          char a[80], b[80];
          quern_op_explain(op, c.n_used, c.ins, c.t.n_out, c.outs, &c.call, explain, sizeof explain);
          group_fail("case %d, %s: output %d at (%d, %d): got %s, wanted %s\n%s\n%s", salt, ways[w].name, k, (int)index[0],
                     (int)index[1], ref_text(c.out[k].d, got, a), ref_text(c.out[k].d, wanted, b), c.t.text, explain);
          bad = 1;
        }
      } while (!bad && ref_next_index(c.ndim, c.shape, index));
      quern_op_explain(op, c.n_used, c.ins, c.t.n_out, c.outs, &c.call, explain, sizeof explain);
      snprintf(tier, sizeof tier, "tier: %s\n", ways[w].tier);
      ways[w].n_run += strstr(explain, tier) != NULL;
      if (!strstr(explain, tier) && !strstr(explain, "tier: built\n"))
        group_fail("case %d, %s: another tier\n%s\n%s", salt, ways[w].name, c.t.text, explain);
    }
    for (int k = 0; k < c.t.n_out; k++) {
      operand_forgive(&c.out[k]);
      if (!operand_same(&c.out[k])) group_fail("case %d, %s: wrote beside output %d\n%s", salt, ways[w].name, k, c.t.text);
    }
    quern_op_release(op);
  }
  tree_case_free(&c);
}

/* ---- Rare blocks behind branches ---- */

static void test_branches(quern_ctx *interpreted, quern_ctx *compiled, ref_dtype d) {
  enum { N = sizeof branch_values / sizeof branch_values[0], ALL = N * N };
  uint64_t x[ALL], y[ALL], got[3][ALL], wanted[3][ALL];
  char *at[5] = {(char *)x, (char *)y, NULL, NULL, NULL};
  const int size = ref_dtype_size(d);
  for (int i = 0; i < ALL; i++) {
    ref_put(d, (char *)x + i * size, ref_from_double(d, branch_values[i / N]));
    ref_put(d, (char *)y + i * size, ref_from_double(d, branch_values[i % N]));
  }
  for (size_t e = 0; e < sizeof branch_texts / sizeof branch_texts[0]; e++) {
    quern_op *ops[2];
    if (strstr(branch_texts[e], "log") && !has_op(REF_LOG)) continue;
    if (quern_op_compile(interpreted, branch_texts[e], &ops[0]) || quern_op_compile(compiled, branch_texts[e], &ops[1]))
      bail("%s: %s", branch_texts[e], quern_last_error());
    const quern_op_info *info = quern_op_describe(ops[0]);
    for (int i = -1; i < ALL; i++) { /* -1: all of them at once */
      int64_t n = i < 0 ? ALL : 1;
      DLTensor t[5], *p[5];
      for (int w = 0; w < 2; w++) {
        for (int k = 0; k < 3; k++) at[2 + k] = (char *)(w ? got[k] : wanted[k]);
        for (int k = 0; k < 5; k++) {
          t[k] = (DLTensor){at[k] + (i < 0 ? 0 : i * size), {kDLCPU, 0}, 1, ref_dtype_dl(d), &n, NULL, 0};
          p[k] = &t[k];
        }
        DLTensor *ins[2] = {p[0], p[1]};
        if (quern_op_call(ops[w], info->n_in, ins, info->n_out, p + 2, NULL)) bail("%s: %s", branch_texts[e], quern_last_error());
      }
      for (int k = 0; k < info->n_out; k++) {
        group_count(1);
        const size_t from = i < 0 ? 0 : (size_t)(i * size), bytes = (size_t)(n * size);
        if (memcmp((char *)got[k] + from, (char *)wanted[k] + from, bytes))
          group_fail("%s, output %d: x = %g, y = %g%s", branch_texts[e], k, branch_values[i < 0 ? 0 : i / N], branch_values[i < 0 ? 0 : i % N],
                     i < 0 ? " or another" : "");
      }
    }
    quern_op_release(ops[0]), quern_op_release(ops[1]);
  }
}

/* Whether an expression is compiled in this context. */
static int is_compiled(quern_ctx *ctx, const char *tier) {
  float x[8] = {0}, y[8];
  int64_t n = 8;
  DLTensor tx = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0}, ty = {y, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0};
  DLTensor *in[1] = {&tx}, *out[1] = {&ty};
  quern_op *op;
  char explain[4096] = "", wanted[64];
  if (quern_op_compile(ctx, "x * x + 1", &op)) return 0;
  quern_op_call(op, 1, in, 1, out, NULL);
  quern_op_explain(op, 1, in, 1, out, NULL, explain, sizeof explain);
  quern_op_release(op);
  snprintf(wanted, sizeof wanted, "tier: %s\n", tier);
  if (strstr(explain, wanted)) return 1;
  diag("%s", explain);
  return 0;
}

int main(void) {
  const char *scale = getenv("QUERN_TEST_DAGS");
  /* without a number: a sixth of 400, others each day */
  const int part = scale ? -1 : test_part(6), first = part < 0 ? 0 : part * 66;
  const int n_cases = scale ? atoi(scale) : part < 0 ? 400 : SANITIZED ? 40 : 67, n_by_cc = part < 0 ? n_cases / 10 : 6;
  way ways[3] = {{"interpreted", "interpreter", make_ctx(QUERN_JIT_OFF, NULL), 0},
                 {"clang", "clang", make_ctx(QUERN_JIT_SYNC, NULL), 0},
                 {"cc", "cc", make_ctx(QUERN_JIT_SYNC, "cc"), 0}};
  int n_ways = 1;
  rng r;
  if (is_compiled(ways[1].ctx, "clang")) n_ways = 2;
  else skip(1, "Clang in process is not there");
  group_begin("random expressions");
  for (int i = first; i < first + n_cases; i++) {
    rng_seed(&r, (uint64_t)i);
    one_case(ways, n_ways, &r, i);
  }
  group_end();
  if (n_ways > 1) {
    group_begin("rare blocks behind branches");
    test_branches(ways[0].ctx, ways[1].ctx, REF_F32);
    test_branches(ways[0].ctx, ways[1].ctx, REF_F64);
    group_end();
  }
  for (int w = 0; w < n_ways; w++) diag("%s: %ld of %d cases", ways[w].name, ways[w].n_run, n_cases);
  if (is_compiled(ways[2].ctx, "cc")) {
    group_begin("random expressions by cc");
    for (int i = first; i < first + n_by_cc; i++) {
      rng_seed(&r, (uint64_t)i);
      one_case(&ways[2], 1, &r, i);
    }
    group_end();
  } else {
    skip(1, "no cc here");
  }
  for (int w = 0; w < 3; w++) quern_ctx_release(ways[w].ctx);
  return done_testing();
}
