/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full
 *
 * t597-spec-contexts: specs that arrive at run time, and the context they come into: what is there already never changes, what
 * fails leaves nothing; names that the host has taken; hostile texts; many threads, small stacks; no module. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "spec_tiers.h"

static int is_there(quern_ctx *ctx, const char *name) {
  quern_op *op = NULL;
  if (quern_op_find(ctx, name, &op)) return 0;
  quern_op_release(op);
  return 1;
}

/* ---- What is there does not change ------------------------------------------------------------------------------ */

static float value_of(quern_op *op, float x, quern_status *status) {
  float y = -777;
  int64_t n = 1;
  DLTensor in = {&x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0}, out = in, *ins[1] = {&in}, *outs[1] = {&out};
  out.data = &y;
  *status = quern_op_call(op, 1, ins, 1, outs, NULL);
  return y;
}

static void gives(quern_op *op, float x, float wanted, const char *name) {
  quern_status status;
  const float got = value_of(op, x, &status);
  ok(status == QUERN_OK && got == wanted, "%s: %g, wanted %g%s%s", name, (double)got, (double)wanted,
     status ? ": " : "", status ? quern_last_error() : "");
}

static void test_snapshots(const spec_tier *tier) {
  quern_ctx *ctx = ctx_of(tier->jit), *other = ctx_of(tier->jit);
  is_int(load_spec(ctx, "one.lua",
              "func \"acme_h\" { doc = \"h\", args = \"x\", body = [[ x * 2 ]] }\n"
              "unary \"acme.f\" { doc = \"f\", dtypes = floating, body = [[ acme_h(x) + 1 ]] }\n"),
         QUERN_OK, "%s: a spec", tier->name);
  quern_op *f = op_named(ctx, "acme.f"), *in_use = op_from(ctx, "acme.f(x) * 10"), *unused = op_from(ctx, "acme.f(x) - 1");
  gives(in_use, 3, 70, "  used in an expression");
  const int32_t count = quern_op_count(ctx);

  static const struct {
    const char *text;
    quern_status status;
    const char *words, *name;
  } bad[] = {
      {"unary \"acme.fresh\" { doc = \"n\", dtypes = floating, body = [[ x ]] }\n"
       "unary \"acme.f\" { doc = \"f\", dtypes = floating, body = [[ x * 100 ]] }\n",
       QUERN_E_EXISTS, "acme.f", "an op that is there"},
      {"unary \"gelu\" { doc = \"g\", dtypes = floating, body = [[ x ]] }\n", QUERN_E_EXISTS, "gelu", "a built-in op"},
      {"func \"acme_h\" { doc = \"h\", args = \"x\", body = [[ x * 3 ]] }\n", QUERN_E_EXISTS, "acme_h",
       "a function that is there"},
      {"unary \"acme.twin\" { doc = \"t\", dtypes = floating, body = [[ x ]] }\n"
       "unary \"acme.twin\" { doc = \"t\", dtypes = floating, body = [[ x ]] }\n",
       QUERN_E_EXISTS, "acme.twin", "an op twice"},
      {"func \"acme_k\" { doc = \"k\", args = \"x\", body = [[ x * 3 ]] }\n"
       "unary \"acme.fresh\" { doc = \"n\", dtypes = floating, body = [[ acme_k(x) + nothing ]] }\n",
       QUERN_E_SYNTAX, "bad.lua:2:", "a body with an error"},
      {"unary \"acme.fresh\" { doc = \"n\", dtypes = floating, body = [[ geluu(x) ]] }\n", QUERN_E_SYNTAX, "'gelu'",
       "a body with an unknown function"},
      {"unary \"acme.fresh\" { dtypes = floating }\n", QUERN_E_SYNTAX, "bad.lua:1:", "no body"},
      {"unary \"acme.fresh\" { doc = \"n\", dtypes = floating, body = [[ x ]]\n", QUERN_E_SYNTAX,
       "bad.lua:", "a table that is not closed"},
      {"unary \"acme.fresh\" { doc = \"n\", dtypes = all, moves = true, body = [[ x ]] }\n", QUERN_E_UNSUPPORTED,
       "acme.fresh", "an op that moves"},
      {"unary \"acme.fresh\" { doc = \"n\", dtypes = all, casts = true, body = [[ x ]] }\n", QUERN_E_UNSUPPORTED,
       "acme.fresh", "an op that casts"},
      {"reduction \"acme.fresh\" { doc = \"n\", dtypes = floating, combine = \"a + \" }\n", QUERN_E_SYNTAX,
       "bad.lua:1:71: acme.fresh: expected a value, found the end", "a reduction with an error in combine"},
      {"reduction \"acme.fresh\" { doc = \"n\", dtypes = floating, combine = \"a > b\" }\n", QUERN_E_SYNTAX,
       "combine gives bool, expected f32", "one with a combine that gives another dtype"},
      {"reduction \"acme.fresh\" { doc = \"n\", dtypes = numeric, combine = \"a + b\", empty = -INFINITY }\n", QUERN_E_SYNTAX,
       "empty is -inf, which is no i8", "one with a result of nothing that is no number of its dtype"},
      {"row \"acme.fresh\" { doc = \"n\", dtypes = floating, body = [[ acme.late(x) ]] }\n"
       "reduction \"acme.late\" { doc = \"n\", dtypes = floating, combine = \"a + b\" }\n", QUERN_E_SYNTAX,
       "declare it behind the ops that its body calls", "a row before the reduction that it calls"},
      {"row \"acme.fresh\" { doc = \"n\", dtypes = floating, body = [[ x - max(x - max(x - max(x - max(x - max(x - max(x - max(x - max(x\n"
       " - max(x - max(x - max(x - max(x)))))))))))) ]] }\n", QUERN_E_LIMIT, "passes over its elements; at most 12", "a row of too many passes"},
      {"format(99)\nunary \"acme.fresh\" { doc = \"n\", dtypes = floating, body = [[ x ]] }\n", QUERN_E_SYNTAX, "",
       "another format"},
      {"unary \"acme.fresh\" { doc = \"n\", dtypes = { \"f8e4m3\" }, body = [[ x ]] }\n", QUERN_E_SYNTAX, "",
       "a dtype that is none"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    const quern_status status = load_spec(ctx, "bad.lua", bad[i].text);
    ok(status == bad[i].status, "  %s: %s, wanted %s", bad[i].name, status_name(status), status_name(bad[i].status));
    has_str(quern_last_error(), bad[i].words, "    said");
    ok(quern_op_count(ctx) == count && !is_there(ctx, "acme.fresh"), "    and leaves nothing");
  }
  is_int(load_spec(ctx, "later.lua",
              "func \"acme_k\" { doc = \"k\", args = \"x\", body = [[ x * 5 ]] }\n"
              "unary \"acme.fresh\" { doc = \"n\", dtypes = floating, body = [[ acme_k(x) + acme.f(x) ]] }\n"),
         QUERN_OK, "  what a failing one brought can be brought again, and an op of an earlier spec be used");
  quern_op *fresh = op_named(ctx, "acme.fresh");
  gives(fresh, 2, 15, "  the new op");
  gives(f, 3, 7, "  the old op");
  gives(in_use, 4, 90, "  the expression in use");
  gives(unused, 4, 8, "  the one that had not been used");
  is_int(load_spec(other, "two.lua", "unary \"acme.f\" { doc = \"f\", dtypes = floating, body = [[ x * 1000 ]] }\n"),
         QUERN_OK, "  another context has its own");
  quern_op *f2 = op_named(other, "acme.f"), *same_text = op_from(other, "acme.f(x) * 10");
  gives(f2, 3, 3000, "  op");
  gives(same_text, 3, 30000, "  and expressions");
  gives(in_use, 3, 70, "  the first one's stay");
  ok(!is_there(NULL, "acme.f"), "  the process-wide context has none of it");
  quern_ctx_release(ctx);
  quern_ctx_release(other);
  gives(unused, 5, 10, "  ops outlive their contexts");
  quern_op_release(f), quern_op_release(f2), quern_op_release(fresh);
  quern_op_release(in_use), quern_op_release(unused), quern_op_release(same_text);
}

/* ---- A name that the host has taken ----------------------------------------------------------------------------- */

static quern_status forty_two(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                              const quern_call *call) {
  (void)self, (void)n_in, (void)in, (void)n_out, (void)call;
  *(float *)out[0]->data = 42;
  return QUERN_OK;
}

static void test_host_names(const spec_tier *tier) {
  quern_ctx *ctx = ctx_of(tier->jit);
  const quern_op_def def = {.size = sizeof def, .name = "acme.k", .n_in = 1, .n_out = 1, .call = forty_two};
  const char *two = "unary \"acme.m\" { doc = \"m\", dtypes = floating, body = [[ x * 3 ]] }\n"
                    "unary \"acme.k\" { doc = \"k\", dtypes = floating, body = [[ x + 1 ]] }\n";
  const char *one = "unary \"acme.m\" { doc = \"m\", dtypes = floating, body = [[ x * 4 ]] }\n";
  is_int(quern_op_register(ctx, &def), QUERN_OK, "%s: an op of the host's", tier->name);
  const int32_t count = quern_op_count(ctx);
  is_int(load_spec(ctx, "two.lua", two), QUERN_E_EXISTS, "  a spec with its name for the second op");
  has_str(quern_last_error(), "acme.k", "    said");
  ok(quern_op_count(ctx) == count && !is_there(ctx, "acme.m"), "    and leaves nothing");
  is_int(load_spec(ctx, "one.lua", one), QUERN_OK, "  its first op, loaded by itself and in another form");
  quern_op *m = op_named(ctx, "acme.m"), *fused = op_from(ctx, "acme.m(x) + 1");
  gives(m, 2, 8, "    is the new one");
  gives(fused, 2, 9, "    in expressions, too");
  /* The digest of the specs is that of what was loaded: kernels are found again by it. */
  quern_ctx *same = ctx_of(tier->jit);
  is_int(load_spec(same, "one.lua", one), QUERN_OK, "  a context without the failure");
  quern_op *twin = op_from(same, "acme.m(x) + 1");
  gives(twin, 2, 9, "    computes the same");

  const quern_op_def over = {.size = sizeof over, .name = "acme.m", .n_in = 1, .n_out = 1, .call = forty_two};
  is_int(quern_op_register(ctx, &over), QUERN_OK, "  an op of the host's over a spec's");
  quern_op *found = op_named(ctx, "acme.m"), *later = op_from(ctx, "acme.m(x) + 2");
  gives(found, 2, 42, "    is called by its name");
  gives(m, 2, 8, "    a handle from before keeps the spec's");
  gives(later, 2, 10, "    and so does an expression");
  quern_op_release(found), quern_op_release(later), quern_op_release(twin), quern_op_release(m), quern_op_release(fused);
  quern_ctx_release(same);
  quern_ctx_release(ctx);
}

/* ---- Derivatives ------------------------------------------------------------------------------------------------ */

static void test_derivatives(const spec_tier *tier) {
  quern_ctx *ctx = ctx_of(tier->jit);
  const int32_t before = quern_op_count(ctx);
  quern_op *op = NULL;
  is_int(load_spec(ctx, "one.lua",
              "unary \"acme.cube\" { doc = \"c\", dtypes = floating, body = [[ x * x * x ]] }\n"
              "binary \"acme.two\" { doc = \"t\", dtypes = floating, body = [[ acme.cube(x) * y ]] }\n"
              "unary \"acme.given\" { doc = \"g\", dtypes = floating, body = [[ x * 2 ]], grad = [[ grad * 2 ]] }\n"
              "unary \"acme.bits\" { doc = \"b\", dtypes = { \"f32\" }, body = [[ as_f32(as_i32(x)) ]] }\n"
              "unary \"acme.over\" { doc = \"o\", dtypes = floating, body = [[ x * 5 ]] }\n"),
         QUERN_OK, "%s: ops with derivatives", tier->name);
  is_int(quern_op_count(ctx), before + 5 + 1, "  that which is written is there, the others are made when they are asked for");
  quern_op *cube = op_named(ctx, "acme.cube"), *bits = op_named(ctx, "acme.bits");
  is_str(quern_op_describe(cube)->backward, "acme.cube_backward", "  what exists is named");
  ok(!quern_op_describe(bits)->backward, "  what does not is not");
  is_int(quern_op_find(ctx, "acme.bits_backward", &op), QUERN_E_NOTFOUND, "  nor found");
  is_int(quern_op_find(ctx, "acme.cub_backward", &op), QUERN_E_NOTFOUND, "  nor is that of no op");
  is_int(quern_op_find(ctx, "_backward", &op), QUERN_E_NOTFOUND, "  nor that of no name");

  /* by an expression, of several outputs, in a spec */
  quern_op *sum = op_from(ctx, "acme.two_backward.grad_x(x, x, x) + acme.two_backward.grad_y(x, x, x)");
  gives(sum, 2, 2 * (12 * 2) + 2 * 8, "  one of two outputs in an expression");
  quern_op *third = op_from(ctx, "grad(acme.cube(x * 2), x)");
  gives(third, 1, 24, "  by grad(...)");
  is_int(load_spec(ctx, "two.lua", "unary \"acme.uses\" { doc = \"u\", dtypes = floating, body = [[ acme.over_backward(x) ]] }\n"), QUERN_OK,
         "  one in another spec's body");
  quern_op *uses = op_named(ctx, "acme.uses");
  gives(uses, 3, 15, "    is computed");
  is_int(load_spec(ctx, "bad.lua", "unary \"acme.over_backward\" { doc = \"u\", dtypes = floating, body = [[ x ]] }\n"), QUERN_E_EXISTS,
         "  its name is taken");
  quern_op *found = op_named(ctx, "acme.over_backward");
  gives(found, 3, 15, "  it can be called");
  is_int(quern_op_find(ctx, "acme.over_backward", &op), QUERN_OK, "  and found again");
  ok(op == found, "    the same one");

  /* a host's function */
  const quern_op_def over = {.size = sizeof over, .name = "acme.bits_backward", .n_in = 1, .n_out = 1, .call = forty_two};
  const quern_op_def before_it = {.size = sizeof before_it, .name = "acme.late_backward", .n_in = 2, .n_out = 1, .call = forty_two};
  is_int(quern_op_register(ctx, &over), QUERN_OK, "  an op of the host's where there is none");
  is_int(quern_op_register(ctx, &before_it), QUERN_OK, "  one of the name of a derivative");
  is_int(load_spec(ctx, "late.lua", "unary \"acme.late\" { doc = \"l\", dtypes = floating, body = [[ x * x ]] }\n"), QUERN_E_EXISTS,
         "    that a spec would have");
  const quern_op_def instead = {.size = sizeof instead, .name = "acme.ours_backward", .n_in = 2, .n_out = 1, .call = forty_two};
  const quern_op_def wrong = {.size = sizeof wrong, .name = "acme.ours_backward", .n_in = 5, .n_out = 1, .call = forty_two};
  is_int(load_spec(ctx, "ours.lua", "unary \"acme.ours\" { doc = \"l\", dtypes = floating, body = [[ x * x ]] }\n"), QUERN_OK, "  a spec");
  is_int(quern_op_register(ctx, &wrong), QUERN_E_ARGUMENT, "    a function of the host's for its derivative, of other operands");
  is_int(quern_op_register(ctx, &instead), QUERN_OK, "    of the same");
  quern_op *ours = op_from(ctx, "grad(acme.ours(x), x)");
  gives(ours, 4, 8, "    expressions go on with the spec's");
  quern_op_release(op), quern_op_release(found), quern_op_release(uses), quern_op_release(third), quern_op_release(sum);
  quern_op_release(cube), quern_op_release(bits), quern_op_release(ours);
  quern_ctx_release(ctx);
}

static void test_where(void) {
  quern_ctx *ctx = ctx_of(QUERN_JIT_OFF);
  const char *text = "unary \"acme.f\" { doc = \"f\", dtypes = floating, body = [[ x + 1 ]] }\n";
  is_int(load_spec(NULL, "s.lua", text), QUERN_E_ARGUMENT, "not on the process-wide context");
  has_str(quern_last_error(), "quern_ctx_create", "  said");
  is_int(quern_spec_load(NULL, "/nonexistent.lua"), QUERN_E_ARGUMENT, "  nor from a file");
  is_int(quern_spec_load(ctx, NULL), QUERN_E_ARGUMENT, "no path");
  is_int(quern_spec_load_text(ctx, NULL, text, strlen(text)), QUERN_E_ARGUMENT, "no name");
  is_int(quern_spec_load_text(ctx, "s.lua", NULL, 5), QUERN_E_ARGUMENT, "no text");
  is_int(quern_spec_load(ctx, "/nonexistent/spec.lua"), QUERN_E_IO, "a file that is not there");
  has_str(quern_last_error(), "/nonexistent/spec.lua", "  named");
  is_int(quern_spec_load(ctx, "/proc"), QUERN_E_IO, "a folder");
  char fifo[] = "/tmp/quern-t597-XXXXXX";
  const int unique = mkstemp(fifo);
  if (unique < 0 || close(unique) || unlink(fifo) || mkfifo(fifo, 0600)) bail("no FIFO");
  is_int(quern_spec_load(ctx, fifo), QUERN_E_IO, "a FIFO: there is no waiting for a writer");
  unlink(fifo);
  is_int(quern_spec_load(ctx, "/dev/zero"), QUERN_E_IO, "a device");
  has_str(quern_last_error(), "/dev/zero: not a regular file", "  said");
  char path[256];
  const char *tmp = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/quern-t597.XXXXXX", tmp ? tmp : "/tmp");
  const int file = mkstemp(path);
  if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text) || close(file)) bail("%s", path);
  is_int(quern_spec_load(ctx, path), QUERN_OK, "a file");
  quern_op *f = op_named(ctx, "acme.f");
  gives(f, 1, 2, "  its op");
  is_int(quern_spec_load(ctx, path), QUERN_E_EXISTS, "  once more");
  has_str(quern_last_error(), path, "  the file is named");
  unlink(path);
  quern_op_release(f);
  quern_ctx_release(ctx);
}

/* ---- Hostile texts ---------------------------------------------------------------------------------------------- */

static char *repeated(const char *before, const char *piece, size_t n, const char *after) {
  char *text = malloc(strlen(before) + n * strlen(piece) + strlen(after) + 1), *at = stpcpy(text, before);
  for (size_t i = 0; i < n; i++) at = stpcpy(at, piece);
  strcpy(at, after);
  return text;
}

static void test_hostile(void) {
  quern_ctx *ctx = ctx_of(QUERN_JIT_OFF);
  char *const texts[] = {
      strdup("while true do end"),
      strdup("local x = 1 :: a :: goto a"),
      strdup("unary \"acme.x\" { doc = (\"x\"):rep(1e9), dtypes = floating, body = [[ x ]] }"),
      strdup("os.exit(0)"),
      strdup("require \"os\""),
      strdup("io.open(\"/etc/passwd\")"),
      strdup("load_spec(\"return 1\")()"),
      strdup("\x1bLua and more"),
      strdup("setmetatable({}, {})"),
      strdup("unary = nil"),
      strdup("local t = {} t[1] = t unary \"acme.x\" (t)"),
      strdup("error({})"),
      strdup("_G.unary = 1"),
      strdup("unary \"acme.x\" { doc = \"x\", dtypes = floating, body = [[ x */ system(\"ls\"); /* ]] }"),
      strdup("unary \"acme.x\" { doc = \"x */ int evil;\", dtypes = floating, body = [[ evil(x) ]] }"),
      repeated("unary \"acme.x\" { doc = \"x\", dtypes = floating, body = [[ ", "(", 100000, " ]] }"),
      repeated("unary \"acme.x\" { doc = \"x\", dtypes = floating, body = [[ x", " + x * x", 20000, " ]] }"),
      repeated("unary \"acme.x\" ", "{", 200000, ""),
      repeated("local a = ", "-", 300000, "1"),
      repeated("-- ", "x", (1 << 20) + 100, "\n"),
      repeated("unary \"acme.", "x", 5000, "\" { doc = \"x\", dtypes = floating, body = [[ x ]] }"),
      /* 2^40 calls, each function twice the one before */
      strdup(
          "func \"a0\" { doc = \"a\", args = \"x\", body = [[ x * x + 1 ]] }\n"
          "func \"a1\" { doc = \"a\", args = \"x\", body = [[ a0(a0(a0(a0(x)))) ]] }\n"
          "func \"a2\" { doc = \"a\", args = \"x\", body = [[ a1(a1(a1(a1(x)))) ]] }\n"
          "func \"a3\" { doc = \"a\", args = \"x\", body = [[ a2(a2(a2(a2(x)))) ]] }\n"
          "func \"a4\" { doc = \"a\", args = \"x\", body = [[ a3(a3(a3(a3(x)))) ]] }\n"
          "func \"a5\" { doc = \"a\", args = \"x\", body = [[ a4(a4(a4(a4(x)))) ]] }\n"
          "func \"a6\" { doc = \"a\", args = \"x\", body = [[ a5(a5(a5(a5(x)))) ]] }\n"
          "func \"a7\" { doc = \"a\", args = \"x\", body = [[ a6(a6(a6(a6(x)))) ]] }\n"
          "func \"a8\" { doc = \"a\", args = \"x\", body = [[ a7(a7(a7(a7(x)))) ]] }\n"
          "unary \"acme.x\" { doc = \"x\", dtypes = floating, body = [[ a8(a8(x)) ]] }\n"),
      strdup(
          "func \"b0\" { doc = \"b\", args = \"x\", body = [[ b0(x) + 1 ]] }\n"
          "unary \"acme.x\" { doc = \"x\", dtypes = floating, body = [[ b0(x) ]] }\n"),
      strdup("unary \"acme.x\" { doc = \"x\", dtypes = floating, body = [[ acme.x(x) ]] }\n"),
  };
  const int32_t count = quern_op_count(ctx);
  double most = 0;
  size_t slowest = 0;
  group_begin("hostile texts are refused");
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    const double start = now_ms();
    const quern_status status = load_spec(ctx, "hostile.lua", texts[i]);
    const double took = now_ms() - start;
    group_count(1);
    if (took > most) most = took, slowest = i;
    if (status != QUERN_E_SYNTAX && status != QUERN_E_LIMIT)
      group_fail("%.60s: %s: %s", texts[i], status_name(status), status ? quern_last_error() : "taken");
    if (status && (strstr(quern_last_error(), "bug:") || strstr(quern_last_error(), "stack traceback")))
      group_fail("%.60s: %s", texts[i], quern_last_error());
    if (took > 3000) group_fail("%.60s: after %.0f ms", texts[i], took);
    if (quern_op_count(ctx) != count) group_fail("%.60s: leaves ops", texts[i]);
    free(texts[i]);
  }
  group_end();
  diag("the slowest, %d, took %.1f ms", (int)slowest, most);
  static const char odd[] = "unary \"acme.z\" { doc = \"z\", dtypes = floating, body = [[ x + 1 ]] }\0\n os.exit(0)";
  ok(quern_spec_load_text(ctx, "odd.lua", odd, sizeof odd - 1) != QUERN_OK, "a text with a 0 in it");
  is_int(quern_spec_load_text(ctx, "empty.lua", "", 0), QUERN_OK, "an empty one is one without ops");
  is_int(load_spec(ctx, "good.lua", "unary \"acme.good\" { doc = \"g\", dtypes = floating, body = [[ x + 1 ]] }\n"),
         QUERN_OK, "a good one comes in after all that");
  quern_op *good = op_named(ctx, "acme.good");
  gives(good, 1, 2, "  its op");
  quern_op_release(good);
  quern_ctx_release(ctx);
}

/* ---- Threads ---------------------------------------------------------------------------------------------------- */

typedef struct crowd {
  quern_ctx *ctx;
  quern_op *shared;
  atomic_int next, n_loaded, n_exists;
} crowd;

static void *load_and_use(void *arg) {
  crowd *c = arg;
  const int me = atomic_fetch_add(&c->next, 1);
  char text[400], name[40];
  quern_status status;
  for (int turn = 0; turn < 3; turn++) {
    const int i = me * 3 + turn;
    snprintf(text, sizeof text, "unary \"acme.f%d\" { doc = \"f\", dtypes = floating, body = [[ x * %d + 1 ]] }\n", i,
             i);
    if (load_spec(c->ctx, "mine.lua", text)) return "its own spec is refused";
    snprintf(name, sizeof name, "acme.f%d", i);
    quern_op *op = NULL, *expression = NULL;
    if (quern_op_find(c->ctx, name, &op)) return "its own op is not found";
    snprintf(text, sizeof text, "acme.f%d(x) + acme.shared(x)", i);
    if (quern_op_compile(c->ctx, text, &expression)) return "its own op is not known to an expression";
    for (int k = 0; k < 20; k++) {
      if (value_of(op, (float)k, &status) != (float)(k * i + 1) || status) return "its own op is wrong";
      if (value_of(expression, (float)k, &status) != (float)(k * i + 1 + k * 7) || status)
        return "its own expression is wrong";
      if (value_of(c->shared, (float)k, &status) != (float)(k * 7) || status) return "the op of all is wrong";
    }
    quern_op_release(op);
    quern_op_release(expression);
    /* Derivatives are made when they are asked for, one's own and one that all ask for. */
    snprintf(name, sizeof name, "acme.f%d_backward", i);
    if (quern_op_find(c->ctx, name, &op)) return "its own derivative is not found";
    if (value_of(op, 2, &status) != (float)(2 * i) || status) return "its own derivative is wrong";
    quern_op_release(op);
    if (quern_op_compile(c->ctx, "grad(acme.shared(x), x) + x * 0", &expression)) return "the derivative of all in an expression";
    if (value_of(expression, 3, &status) != 7 || status) return "the derivative of all is wrong";
    quern_op_release(expression);
    /* All want the same one: one brings it. */
    snprintf(text, sizeof text, "unary \"acme.common%d\" { doc = \"c\", dtypes = floating, body = [[ x - 1 ]] }\n",
             turn);
    status = load_spec(c->ctx, "common.lua", text);
    if (status == QUERN_OK)
      atomic_fetch_add(&c->n_loaded, 1);
    else if (status == QUERN_E_EXISTS)
      atomic_fetch_add(&c->n_exists, 1);
    else
      return "the common spec";
  }
  return NULL;
}

static void test_threads(const spec_tier *tier) {
  enum { N = 12 };
  pthread_t threads[N];
  crowd c = {.ctx = ctx_of(tier->jit)};
  const char *trouble = NULL;
  const int32_t before = quern_op_count(c.ctx);
  if (load_spec(c.ctx, "shared.lua", "unary \"acme.shared\" { doc = \"s\", dtypes = floating, body = [[ x * 7 ]] }\n"))
    bail("%s", quern_last_error());
  c.shared = op_named(c.ctx, "acme.shared");
  for (int i = 0; i < N; i++)
    if (pthread_create(&threads[i], NULL, load_and_use, &c)) bail("no thread");
  for (int i = 0; i < N; i++) {
    void *said;
    pthread_join(threads[i], &said);
    if (said) trouble = said;
  }
  ok(!trouble, "%s: 12 threads load specs into one context and use them %s", tier->name, trouble ? trouble : "");
  is_int(c.n_loaded, 3, "  of a spec that all bring one comes in");
  is_int(c.n_exists, 3 * N - 3, "  the others are told so");
  is_int(quern_op_count(c.ctx), before + 2 * (1 + 3 * N) + 3, "  all ops are there, and the derivatives that were asked for, once each");
  quern_op_release(c.shared);
  quern_ctx_release(c.ctx);
}

/* A thread of the host's with 64 KB of stack (and what this program's own variables take of it). */
static int on_small_stack(void *arg) {
  pthread_attr_t attributes;
  pthread_t thread;
  void *said = NULL;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, (64 + 64) * 1024);
  if (pthread_create(&thread, &attributes, (void *(*)(void *))(uintptr_t)arg, NULL)) return 2;
  pthread_join(thread, &said);
  return said ? 1 : 0;
}

static void *specs_on_small_stack(void *arg) {
  (void)arg;
  quern_ctx *ctx = ctx_of(QUERN_JIT_OFF);
  quern_status status = QUERN_OK;
  char body[1200] = "";
  for (int i = 0; i < 95; i++) strcat(body, "(");
  strcat(body, "x");
  for (int i = 0; i < 95; i++) strcat(body, ")");
  char text[1600];
  snprintf(text, sizeof text,
           "unary \"acme.deep\" { doc = \"d\", dtypes = floating, body = [[ %s + gelu(x) - gelu(x) ]] }\n", body);
  if (load_spec(ctx, "deep.lua", text)) {
    fprintf(stderr, "# %s\n", quern_last_error());
    return (void *)1;
  }
  quern_op *op = op_named(ctx, "acme.deep");
  if (value_of(op, 3, &status) != 3 || status) return (void *)2;
  quern_op_release(op);
  if (!is_there(ctx, "acme.deep_backward")) return (void *)3;
  quern_ctx_release(ctx);
  return NULL;
}

/* ---- No module -------------------------------------------------------------------------------------------------- */

static int without_module(void) {
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_ASYNC});
  quern_status status;
  quern_op *op = NULL;
  char text[4000];
  if (load_spec(ctx, "s.lua", "unary \"acme.f\" { doc = \"f\", dtypes = floating, body = [[ x ]] }\n") !=
      QUERN_E_UNSUPPORTED)
    return 1;
  if (!strstr(quern_last_error(), "quern-gen.so")) return 2;
  if (is_there(ctx, "acme.f")) return 3;
  if (quern_op_find(ctx, "abs", &op) || value_of(op, -3, &status) != 3) return 4;
  quern_op_release(op);
  if (quern_op_compile(ctx, "exp(x * 0) + x", &op) || value_of(op, 3, &status) != 4) return 5;
  quern_op_release(op);
  if (quern_ctx_describe(ctx, text, sizeof text) || !strstr(line_of(text, "generator"), "not found")) return 6;
  quern_ctx_release(ctx);
  return 0;
}

/* The library copied to where no module is. */
static int run_alone(void *arg) {
  char library[512];
  Dl_info info;
  FILE *in, *out;
  static char bytes[1 << 16];
  size_t n;
  if (!dladdr(dlsym(RTLD_DEFAULT, "quern_version"), &info)) return 90;
  snprintf(library, sizeof library, "%s/libquern.so.0", (const char *)arg);
  if (!(in = fopen(info.dli_fname, "rb")) || !(out = fopen(library, "wb"))) return 91;
  while ((n = fread(bytes, 1, sizeof bytes, in)))
    if (fwrite(bytes, 1, n, out) != n) return 92;
  if (fclose(out) || fclose(in)) return 92;
  setenv("LD_PRELOAD", library, 1);
  execl("/proc/self/exe", "t597-spec-contexts", "alone", (char *)NULL);
  return 93;
}

static void test_alone(void) {
  if (SANITIZED) {
    skip(1, "a sanitizer wants to be loaded first");
    return;
  }
  char folder[256], command[300];
  const char *tmp = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/quern-t597.XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(folder)) bail("no folder");
  const int result = in_child(run_alone, folder);
  if (result == 6 && access("/usr/local/lib/quern/quern-gen.so", F_OK) == 0)
    skip(1, "a module is installed on this machine");
  else
    is_int(result, 0, "where the module is not: specs are refused, with a reason, and all else works");
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command)) diag("%s is left", folder);
}

int main(int argc, char **argv) {
  forget_environment();
  if (argc == 2 && strcmp(argv[1], "alone") == 0) return without_module();
  test_alone();
  if (!has_specs()) return done_testing();
  is_int(in_child(on_small_stack, (void *)(uintptr_t)specs_on_small_stack), 0,
         "a spec is loaded and used in a thread with a stack of 64 KB");
  find_spec_tiers();
  for (int w = 0; w < n_spec_tiers; w++) {
    test_snapshots(&spec_tiers[w]);
    test_host_names(&spec_tiers[w]);
    test_derivatives(&spec_tiers[w]);
    test_threads(&spec_tiers[w]);
  }
  test_where();
  test_hostile();
  return done_testing();
}
