/* SPDX-License-Identifier: Apache-2.0
 * tags: long
 *
 * t205-outputs: ops of several outputs: by one call, over dtypes, layouts, sizes, in place, streamed, planned, against ref.c;
 * each output in an expression, interpreted and compiled; the ops of dsl/parts.lua told again as a spec's, bit for bit; what is
 * refused, with no output written. Of dtypes, sizes and layouts it takes a fifth, others each day, and larger than the cache is
 * one op. */
#include "tensors.h"

static const struct {
  const char *name;
  ref_op output[2];
} ops[] = {
    {"modf", {REF_MODF_FRACTION, REF_MODF_INTEGRAL}},
    {"frexp", {REF_FREXP_MANTISSA, REF_FREXP_EXPONENT}},
    {"divmod", {REF_DIVMOD_QUOTIENT, REF_DIVMOD_REMAINDER}},
};
enum { N_OPS = sizeof ops / sizeof *ops };

enum { CONTIGUOUS, STRIDED, REVERSED, TRANSPOSED, ROW, ONE, SMALL_INNER, N_LAYOUTS };

typedef struct problem {
  int which; /* in ops */
  operand in[2], out[2];
  const char *note;
} problem;

/* An operand of about n elements; broadcast only where it is an input. */
static void lay(operand *o, ref_dtype d, int layout, int64_t n, int is_output, rng *r) {
  const int64_t rows = n > 8 ? 7 : 1, columns = n / rows;
  const int64_t shape[2] = {layout == SMALL_INNER ? n / 3 : rows, layout == SMALL_INNER ? 3 : columns};
  int64_t strides[2] = {shape[1], 1};
  switch (layout) {
    case STRIDED: strides[0] = 3 * shape[1] + 1; strides[1] = 3; break;
    case REVERSED: strides[0] = shape[1]; strides[1] = -1; break;
    case TRANSPOSED: strides[0] = 1; strides[1] = shape[0]; break;
    case ROW: strides[0] = is_output ? shape[1] + 2 : 0; break;
    case ONE: strides[0] = is_output ? shape[1] : 0; strides[1] = is_output; break;
    default: break;
  }
  operand_describe(o, d, 2, shape, strides);
  operand_allocate(o, ref_dtype_size(d) * (int)rng_below(r, 8), GUARD_NONE);
  operand_fill(o, r);
}

static int n_inputs(const problem *p) { return ref_op_describe(ops[p->which].output[0])->n_in; }

static void problem_free(problem *p) {
  for (int k = 0; k < 2; k++) {
    operand_free(&p->in[k]);
    operand_free(&p->out[k]);
  }
}

static quern_op *op_of(int which) {
  static quern_op *found[N_OPS];
  if (!found[which] && quern_op_find(NULL, ops[which].name, &found[which])) bail("%s", quern_last_error());
  return found[which];
}

static void tensors_of(problem *p, DLTensor **in, DLTensor **out) {
  for (int k = 0; k < 2; k++) {
    in[k] = &p->in[k].t;
    out[k] = &p->out[k].t;
  }
}

static void say(problem *p, const char *what) {
  char text[2000], how[1000] = "";
  DLTensor *in[2], *out[2];
  int n = snprintf(text, sizeof text, "%s: %s; %s, seed 0x%" PRIx64 "\n", ops[p->which].name, what, p->note, test_seed());
  for (int k = 0; k < n_inputs(p); k++) n += text_operand(text + n, 300, "in", &p->in[k]);
  for (int k = 0; k < 2; k++) n += text_operand(text + n, 300, "out", &p->out[k]);
  tensors_of(p, in, out);
  quern_op_explain(op_of(p->which), n_inputs(p), in, 2, out, NULL, how, sizeof how);
  group_fail("%s%s", text, how);
}

/* Calls and compares; inputs without memory of their own share an output's. */
static void check(problem *p, int planned) {
  DLTensor *in[2], *out[2];
  ref_expect *expect[2];
  char what[300];
  quern_status status;
  tensors_of(p, in, out);
  for (int k = 0; k < 2; k++) {
    expect[k] = ref_eval_tensor(ops[p->which].output[k], in, NULL, out[k]);
    operand_save(&p->out[k]);
  }
  if (planned) {
    quern_plan *plan;
    void *data[2][2];
    for (int k = 0; k < 2; k++) {
      data[0][k] = p->in[k].t.data;
      data[1][k] = p->out[k].t.data;
    }
    status = quern_op_prepare(op_of(p->which), n_inputs(p), in, 2, out, NULL, &plan);
    if (!status) {
      status = quern_plan_run(plan, data[0], data[1], NULL);
      quern_plan_release(plan);
    }
  } else {
    status = quern_op_call(op_of(p->which), n_inputs(p), in, 2, out, NULL);
  }
  group_count(1);
  if (status) {
    snprintf(what, sizeof what, "status %s: %s", status_name(status), quern_last_error());
    say(p, what);
  }
  for (int k = 0; k < 2 && !status; k++) {
    ref_difference diff;
    char got[64], wanted[64];
    if (!ref_check_tensor(out[k], expect[k], &diff)) {
      snprintf(what, sizeof what, "output %d: %" PRId64 " bad, first %" PRId64 ": got %s, wanted %s", k + 1, diff.n_bad,
               diff.first, ref_text(p->out[k].d, diff.got, got), ref_text(p->out[k].d, diff.wanted.low, wanted));
      say(p, what);
    }
    operand_forgive(&p->out[k]);
    if (!operand_same(&p->out[k])) say(p, "bytes outside an output's elements were written");
  }
  for (int k = 0; k < 2; k++) free(expect[k]);
}

/* The dtypes of both outputs; -1: refused. */
static int resolve(int which, const ref_dtype *in, ref_dtype *result) {
  ref_dtype compute;
  return ref_resolve(ops[which].output[0], in, &result[0], &compute) |
         ref_resolve(ops[which].output[1], in, &result[1], &compute);
}

static void run(int which, const ref_dtype *in, const ref_dtype *out, const int *layouts, int64_t n, int planned, rng *r) {
  problem p = {.which = which, .note = planned ? "planned" : "called"};
  for (int k = 0; k < n_inputs(&p); k++) lay(&p.in[k], in[k], layouts[k], n, 0, r);
  for (int k = 0; k < 2; k++) lay(&p.out[k], out[k], layouts[2 + k], n, 1, r);
  check(&p, planned);
  problem_free(&p);
}

/* Whether case i is in this run's part. */
static int is_today(int i) {
  const int part = test_part(10);
  return part < 0 || i % 10 == part;
}

static void test_op(int which) {
  static const int64_t sizes[] = {0, 1, 7, 15, 16, 17, 255, 256, 257, 1023, 1025, 5000};
  const problem like = {.which = which};
  const int n_in = n_inputs(&like), n_combos = n_in == 1 ? REF_N_DTYPES : REF_N_DTYPES * REF_N_DTYPES;
  rng r;
  rng_seed(&r, (uint64_t)which);
  group_begin("%s: dtypes, layouts and sizes", ops[which].name);
  for (int combo = 0; combo < n_combos; combo++) {
    const ref_dtype in[2] = {(ref_dtype)(combo % REF_N_DTYPES), (ref_dtype)(combo / REF_N_DTYPES)};
    ref_dtype result[2];
    if (resolve(which, in, result)) continue;
    const int n_sizes = n_in == 1 || in[0] == in[1] ? 12 : 2;
    for (int i = 0; i < n_sizes; i++) {
      for (int layout = 0; layout < N_LAYOUTS; layout++) {
        if (!is_today(combo + i + layout)) continue;
        const int64_t n = n_sizes == 2 ? (int64_t)rng_below(&r, 600) : sizes[i];
        const int all[4] = {layout, layout, layout, layout};
        const int any[4] = {(int)rng_below(&r, ROW), (int)rng_below(&r, ROW), (int)rng_below(&r, ROW), (int)rng_below(&r, ROW)};
        run(which, in, result, all, n, 0, &r);
        run(which, in, result, any, n, layout & 1, &r);
      }
    }
    for (int turn = 0; turn < 20; turn++) {
      if (!is_today(turn)) continue;
      const int plain[4] = {CONTIGUOUS, CONTIGUOUS, (int)rng_below(&r, ROW), (int)rng_below(&r, ROW)};
      ref_dtype out[2];
      for (int k = 0; k < 2; k++) {
        do out[k] = (ref_dtype)rng_below(&r, REF_N_DTYPES);
        while (!ref_may_store(ops[which].output[k], result[k], out[k]));
      }
      run(which, in, out, plain, 1 + (int64_t)rng_below(&r, 700), turn & 1, &r);
    }
  }
  group_end();

  group_begin("%s: larger than the cache, and in place", ops[which].name);
  for (int d = REF_F16; d <= REF_F64; d++) {
    const ref_dtype in[2] = {(ref_dtype)d, (ref_dtype)d};
    ref_dtype result[2];
    const int contiguous[4] = {CONTIGUOUS}, strided[4] = {STRIDED, STRIDED, CONTIGUOUS, STRIDED};
    resolve(which, in, result);
    const int part = test_part(2 * N_OPS); /* the reference of so many takes long */
    if (d >= REF_F32 && (part < 0 || 2 * which + (d == REF_F64) == part))
      run(which, in, result, contiguous, SANITIZED ? 100000 : 2100001, 0, &r);
    run(which, in, result, strided, 100001, 0, &r);
    for (int shared = 0; shared < 2; shared++) {
      problem p = {.which = which, .note = "in place"};
      for (int k = 0; k < n_in; k++) lay(&p.in[k], in[k], CONTIGUOUS, 3001, 0, &r);
      for (int k = 0; k < 2; k++) lay(&p.out[k], result[k], CONTIGUOUS, 3001, 1, &r);
      if (result[shared] == p.in[0].d) {
        operand_free(&p.in[0]);
        p.in[0] = p.out[shared];
        p.in[0].memory = p.in[0].saved = NULL;
        p.in[0].t.shape = p.in[0].shape;
        p.in[0].t.strides = p.in[0].strides;
        check(&p, 0);
      }
      problem_free(&p);
    }
  }
  group_end();
}

/* Each output by itself, as a host's expression has it. */
static void test_expressions(int32_t jit, const char *tier) {
  const quern_options options = {.size = sizeof options, .jit = jit, .cache_dir = "none"};
  quern_ctx *ctx;
  rng r;
  if (quern_ctx_create(&options, &ctx)) bail("%s", quern_last_error());
  group_begin("each output in an expression, %s", tier);
  rng_seed(&r, (uint64_t)jit);
  for (int k = 0; k < 2 * N_OPS; k++) {
    const ref_op op = ops[k / 2].output[k & 1];
    const ref_op_info *info = ref_op_describe(op);
    char text[100];
    quern_op *handle;
    snprintf(text, sizeof text, "%s(%s)", info->name, info->n_in == 2 ? "x, y" : "x");
    if (quern_op_compile(ctx, text, &handle)) bail("%s", quern_last_error());
    for (int d = 0; d < REF_N_DTYPES; d++) {
      const ref_dtype in[2] = {(ref_dtype)d, (ref_dtype)d};
      ref_dtype result, compute;
      if (ref_resolve(op, in, &result, &compute)) continue;
      for (int layout = 0; layout <= (jit == QUERN_JIT_OFF ? TRANSPOSED : CONTIGUOUS); layout++) {
        trial t = {.op = op, .handle = handle, .note = tier};
        for (int i = 0; i < info->n_in; i++) lay(&t.in[i], in[i], layout, 700, 0, &r);
        lay(&t.out, result, CONTIGUOUS, 700, 1, &r);
        trial_run(&t);
        trial_free(&t);
      }
    }
    quern_op_release(handle);
  }
  group_end();
  quern_ctx_release(ctx);
}

/* Outputs of one call, and that call is made once. */
static void test_sharing(void) {
  const quern_options options = {.size = sizeof options, .jit = QUERN_JIT_OFF, .cache_dir = "none"};
  quern_ctx *ctx;
  quern_op *op;
  operand x, out;
  rng r;
  char text[2000] = "";
  rng_seed(&r, 9);
  if (quern_ctx_create(&options, &ctx)) bail("%s", quern_last_error());
  operand_vector(&x, REF_F32, 500, &r);
  operand_vector(&out, REF_F32, 500, &r);
  DLTensor *in = &x.t, *outs = &out.t;
  is_int(quern_op_compile(ctx, "frexp.exponent(x) + frexp.mantissa(x) * frexp.exponent(x)", &op), QUERN_OK,
         "two outputs in one expression");
  is_int(quern_op_call(op, 1, &in, 1, &outs, NULL), QUERN_OK, "  computed");
  quern_op_explain(op, 1, &in, 1, &outs, NULL, text, sizeof text);
  const char *first = strstr(text, "step: qk_frexp_f32_f32_i32");
  if (!ok(first && !strstr(first + 1, "step: qk_frexp"), "  by one step")) diag("%s", text);
  int n_wrong = 0;
  for (int i = 0; i < 500; i++) {
    const float got = ((float *)out.t.data)[i];
    const ref_dtype d = REF_F32;
    const uint64_t bits = ref_get(d, (char *)x.t.data + 4 * i);
    const float e = (float)ref_eval(REF_FREXP_EXPONENT, &d, &bits, NULL, REF_I32).exact;
    const float m = (float)ref_eval(REF_FREXP_MANTISSA, &d, &bits, NULL, REF_F32).exact;
    volatile float product = m * e, sum = e + product;
    n_wrong += sum == sum ? got != sum : got == got;
  }
  is_int(n_wrong, 0, "  what it should be");
  quern_op_release(op);
  operand_free(&x);
  operand_free(&out);
  quern_ctx_release(ctx);
}

/* dsl/parts.lua with a namespace before each op's name. */
static char *spec_text(void) {
  const char *root = getenv("QUERN_SOURCE_DIR");
  char path[4096], *text = calloc(1, 1 << 17), line[1000];
  snprintf(path, sizeof path, "%s/dsl/parts.lua", root ? root : ".");
  FILE *f = fopen(path, "r");
  while (f && fgets(line, sizeof line, f)) {
    char *name = strchr(line, '"');
    if (!strncmp(line, "  narrow ", 9)) continue; /* only the library's own ops may have one */
    const int is_head = name && (!strncmp(line, "op ", 3) || !strncmp(line, "unary ", 6) || !strncmp(line, "binary ", 7));
    if (is_head) {
      *name = 0;
      strcat(strcat(strcat(text, line), "\"acme."), name + 1);
    } else {
      strcat(text, line);
    }
  }
  if (f) fclose(f);
  return text;
}

/* One call of a built op and of the spec's that says the same. 0: both refuse these dtypes. */
static int same_bits(quern_op *built, quern_op *told, const ref_dtype *in, const char *tier, rng *r) {
  const quern_op_info *info = quern_op_describe(built);
  operand x[2] = {{.d = REF_BOOL}}, y[2][2] = {{{.d = REF_BOOL}}};
  DLTensor *ins[2], *outs[2][2];
  quern_shape shapes[2][2];
  for (int k = 0; k < info->n_in; k++) {
    lay(&x[k], in[k], (int)rng_below(r, ROW), 700, 0, r);
    ins[k] = &x[k].t;
  }
  for (int side = 0; side < 2; side++)
    for (int k = 0; k < 2; k++) shapes[side][k].size = sizeof(quern_shape);
  const quern_status status = quern_op_infer(built, info->n_in, ins, info->n_out, shapes[0]);
  const quern_status again = quern_op_infer(told, info->n_in, ins, info->n_out, shapes[1]);
  group_count(1);
  if (status != again) group_fail("%s: %s, told again %s", info->name, status_name(status), status_name(again));
  for (int side = 0; side < 2 && !status && !again; side++) {
    for (int k = 0; k < info->n_out; k++) {
      lay(&y[side][k], ref_dtype_of(shapes[side][k].dtype), CONTIGUOUS, 700, 1, r);
      outs[side][k] = &y[side][k].t;
    }
    if (quern_op_call(side ? told : built, info->n_in, ins, info->n_out, outs[side], NULL)) group_fail("%s", quern_last_error());
  }
  for (int k = 0; k < info->n_out && !status && !again; k++) {
    const size_t bytes = (size_t)ref_dtype_size(y[0][k].d) * 700;
    if (y[0][k].d == y[1][k].d && memcmp(y[0][k].t.data, y[1][k].t.data, bytes) == 0) continue;
    group_fail("%s of %s: output %d differs, %s", info->name, ref_dtype_name(in[0]), k + 1, tier);
  }
  for (int k = 0; k < 2; k++) {
    operand_free(&x[k]);
    operand_free(&y[0][k]);
    operand_free(&y[1][k]);
  }
  return !status;
}

static void test_told_again(int32_t jit, const char *tier) {
  static const char *const names[] = {"modf", "frexp", "divmod", "ldexp", "nextafter", "spacing", "bitwise_count", "float_power"};
  const quern_options options = {.size = sizeof options, .jit = jit, .cache_dir = "none"};
  char *text = spec_text();
  quern_ctx *ctx;
  int n = 0;
  rng r;
  rng_seed(&r, 5);
  if (quern_ctx_create(&options, &ctx)) bail("%s", quern_last_error());
  is_int(quern_spec_load_text(ctx, "parts.lua", text, strlen(text)), QUERN_OK, "dsl/parts.lua as a spec");
  group_begin("its ops and the built ones, %s", tier);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char name[100];
    quern_op *built, *told;
    snprintf(name, sizeof name, "acme.%s", names[i]);
    if (quern_op_find(NULL, names[i], &built)) continue; /* a build with some ops only */
    if (quern_op_find(ctx, name, &told)) bail("%s", quern_last_error());
    const int is_binary = quern_op_describe(built)->n_in == 2;
    for (int combo = 0; combo < (is_binary ? REF_N_DTYPES : 1) * REF_N_DTYPES; combo++) {
      const ref_dtype in[2] = {(ref_dtype)(combo % REF_N_DTYPES), (ref_dtype)(combo / REF_N_DTYPES)};
      if (jit == QUERN_JIT_SYNC && is_binary && in[0] != in[1] && rng_below(&r, 12)) continue;
      n += same_bits(built, told, in, tier, &r);
    }
    quern_op_release(told);
  }
  group_end();
  ok(n > 20, "%d of them computed", n);
  quern_ctx_release(ctx);
  free(text);
}

static void refuse(problem *p, DLTensor *const *out, int n_out, quern_status wanted, const char *words, const char *what) {
  DLTensor *in[2], *own[2];
  tensors_of(p, in, own);
  for (int k = 0; k < 2; k++) operand_save(&p->out[k]);
  is_int(quern_op_call(op_of(p->which), n_inputs(p), in, n_out, out, NULL), wanted, "%s", what);
  if (!ok(strstr(quern_last_error(), words) != NULL, "  and it says so")) diag("%s", quern_last_error());
  ok(operand_same(&p->out[0]) && operand_same(&p->out[1]), "  no output is written");
}

static void test_refusals(void) {
  problem p = {.which = 1};
  DLTensor *in[2], *out[2];
  quern_op *op;
  quern_shape shapes[2] = {{.size = sizeof shapes[0]}, {.size = sizeof shapes[0]}};
  rng r;
  rng_seed(&r, 1);
  lay(&p.in[0], REF_F16, CONTIGUOUS, 50, 0, &r);
  lay(&p.out[0], REF_F32, CONTIGUOUS, 50, 1, &r);
  lay(&p.out[1], REF_BOOL, CONTIGUOUS, 50, 1, &r);
  tensors_of(&p, in, out);
  refuse(&p, out, 1, QUERN_E_ARGUMENT, "1 output given, it has 2", "one output for two");
  refuse(&p, out, 2, QUERN_E_DTYPE, "(exponent)", "an exponent in a bool");
  operand_free(&p.out[1]);
  lay(&p.out[1], REF_F32, CONTIGUOUS, 50, 1, &r);
  DLTensor *const twice[2] = {out[0], out[0]};
  refuse(&p, twice, 2, QUERN_E_OVERLAP, "frexp", "one tensor for both");
  is_int(quern_op_infer(op_of(1), 1, in, 2, shapes), QUERN_OK, "inferred");
  ok(shapes[0].dtype.code == kDLFloat && shapes[0].dtype.bits == 16 && shapes[1].dtype.code == kDLInt &&
         shapes[1].dtype.bits == 32,
     "  a mantissa of the input's dtype, an exponent of its own");
  is_int(quern_op_compile(NULL, "frexp(x)", &op), QUERN_E_SYNTAX, "both in an expression");
  ok(strstr(quern_last_error(), "write frexp.mantissa(...) or frexp.exponent(...)") != NULL, "  it says what to write");
  is_int(quern_op_compile(NULL, "frexp.sign(x)", &op), QUERN_E_NOTFOUND, "an output that it has not");
  problem_free(&p);
}

int main(void) {
  for (int k = 0; k < N_OPS; k++) {
    quern_op *op;
    if (is_subset() && quern_op_find(NULL, ops[k].name, &op)) skip_all("this build has some ops only, and no %s", ops[k].name);
  }
  for (int k = 0; k < N_OPS; k++) test_op(k);
  test_expressions(QUERN_JIT_OFF, "interpreted");
  if (!SANITIZED) test_expressions(QUERN_JIT_SYNC, "compiled");
  test_told_again(QUERN_JIT_OFF, "interpreted");
  if (!SANITIZED) test_told_again(QUERN_JIT_SYNC, "compiled");
  test_sharing();
  test_refusals();
  return done_testing();
}
