/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t535-generator: the generator at run time as the library sees it: specs that come in whole or not at all, hostile ones
 * among them; programs of all built-in ops, of primitives that the library has; sources that are the same whatever the host
 * has set for its threads; memory that runs out at any place; threads, forks, small stacks; no module at all. */
#include <errno.h>
#include <fenv.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/toolchain/generator.h"
#include "runtime/core/op/kind.h"
#include "runtime/core/row/row_program.h"
#include "runtime/lang/primitives.h"
#include "tap.h"

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

/* ---- Memory that runs out ---------------------------------------------------------------------------------------- */

#if !SANITIZED
static atomic_int armed, countdown, n_asked, n_failures;
static atomic_llong used, most_used;

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static int must_fail(void) {
  if (!armed) return 0;
  n_asked++;
  if (--countdown != 0) return 0;
  n_failures++;
  errno = ENOMEM;
  return 1;
}

static void *counted(void *p) {
  if (p) {
    long long now = atomic_fetch_add(&used, (long long)malloc_usable_size(p)) + (long long)malloc_usable_size(p);
    if (now > most_used) most_used = now;
  }
  return p;
}

static void discounted(void *p) {
  if (p) used -= (long long)malloc_usable_size(p);
}

void *malloc(size_t n) { return must_fail() ? NULL : counted(__libc_malloc(n)); }
void *calloc(size_t n, size_t m) { return must_fail() ? NULL : counted(__libc_calloc(n, m)); }
void *realloc(void *p, size_t n) {
  if (must_fail()) return NULL;
  size_t was = p ? malloc_usable_size(p) : 0;
  void *q = __libc_realloc(p, n);
  if (!q) return NULL;
  used -= (long long)was;
  return counted(q);
}
void free(void *p) {
  discounted(p);
  __libc_free(p);
}
#endif

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

static quern_status load(qn_generator *g, const char *name, const char *text, size_t size, int *n) {
  qn_spec_op **ops = NULL;
  int32_t count = 0;
  quern_status s = qn_generator_load_spec(g, name, text, size, &ops, &count);
  for (int32_t k = 0; k < count; k++) free(ops[k]);
  free(ops);
  if (n) *n = count;
  return s;
}

static quern_status load_text(qn_generator *g, const char *text) { return load(g, "s.lua", text, strlen(text), NULL); }

/* The source of an expression with operands of one dtype; NULL when there is none. To be freed. */
static char *source(qn_generator *g, const char *canonical, const char *dtype, int32_t n_in, int32_t n_out, quern_status *status) {
  const char *dtypes[32];
  char classes[33] = "";
  for (int32_t k = 0; k < n_in + n_out; k++) dtypes[k] = dtype;
  memset(classes, 'c', (size_t)(n_in + n_out));
  const qn_source_request request = {.symbol = "qj_0123456789abcdef", .canonical = canonical, .dtypes = dtypes, .n_in = n_in,
                                     .n_out = n_out, .classes = classes, .rank = 1};
  qn_bytes text = {NULL, 0};
  quern_status s = qn_generator_source(g, &request, &text, NULL);
  if (status) *status = s;
  if (s == QUERN_OK && strlen(text.data) != text.size) return NULL;
  return s == QUERN_OK ? text.data : NULL;
}

static const char *const expressions[] = {"gelu ( x0 * x1 + x2 ) * x3", "v0 = pow ( x0 , 2.5 ) + 0.1 ; v1 = v0 > 1e-3 ; x1 * x2 / x3",
                                          "param p0 ; leaky_relu ( x0 - x1 , p0 ) * ( x2 + 0.7 * x3 )", "x0 + x1 + x2 + x3"};
static const int32_t n_outputs[] = {1, 3, 1, 1};
#define N_EXPRESSIONS 4

#define SWISH \
  "unary \"acme.swish\" { doc = \"x, gated\", params = { k = 1, b = 0.5 }, dtypes = floating, " \
  "body = [[ x * sigmoid(k * x) + b ]], ulp = { f32 = 4 } }\n"

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- No module --------------------------------------------------------------------------------------------------- */

static int without_module(void) {
  qn_generator *g = qn_generator_create();
  quern_status s;
  qn_bytes text;
  if (!g || strcmp(qn_generator_state(), "not loaded yet")) return 1;
  errno = 77;
  if (load_text(g, SWISH) != QUERN_E_UNSUPPORTED || errno != 77) return 2;
  if (!strstr(quern_last_error(), "quern-gen.so is not in /nonexistent/quern") || !strstr(quern_last_error(), "works without it")) return 3;
  if (source(g, expressions[0], "f32", 4, 1, &s) || s != QUERN_E_UNSUPPORTED) return 4;
  if (qn_generator_program(g, "abs", "f32", &text) != QUERN_E_UNSUPPORTED) return 5;
  if (!strstr(qn_generator_state(), "quern-gen.so is not in")) return 6;
  qn_generator_destroy(g);
  return 0;
}

static int child_status(pid_t pid) {
  int status = -1;
  if (pid < 0) return -1;
  for (int waited = 0; waited < 600; waited++) {
    if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    usleep(50000);
  }
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  return -2; /* hung */
}

/* ---- Programs ---------------------------------------------------------------------------------------------------- */

static int dtype_of(const char *name) {
  for (int d = 0; d < QN_DTYPE_COUNT; d++)
    if (strcmp(qn_dtype_infos[d].name, name) == 0) return d;
  return -1;
}

/* What is wrong with a program, or NULL. */
static const char *check_program(char *text, const qn_builtin *rule) {
  int n = 0, n_in = 0, n_out = 0;
  char *rest_of_text = NULL;
  for (char *line = strtok_r(text, "\n", &rest_of_text); line; line = strtok_r(NULL, "\n", &rest_of_text)) {
    char *rest = NULL, *word = strtok_r(line, " ", &rest), *words[6] = {NULL};
    int n_words = 0;
    if (strcmp(word, "table") == 0) { /* long: its first words only */
      const char *type = strtok_r(NULL, " ", &rest), *items = strtok_r(NULL, " ", &rest);
      int left = atoi(items);
      if (dtype_of(type) < 0 || left < 1 || (left & (left - 1))) return "a table";
      for (const char *item = strtok_r(NULL, " ", &rest); item; item = strtok_r(NULL, " ", &rest), left--)
        if (strlen(item) != 16) return "an item of a table";
      if (left) return "the items of a table";
      n++;
      continue;
    }
    for (char *w = strtok_r(NULL, " ", &rest); w && n_words < 6; w = strtok_r(NULL, " ", &rest)) words[n_words++] = w;
    if (strcmp(word, "out") == 0) {
      if (n_words != 1 || atoi(words[0]) >= n) return "an output";
      n_out++;
      continue;
    }
    if (n_out) return "a line behind the outputs";
    if (strcmp(word, "in") == 0) {
      if (n_words != 1 || dtype_of(words[0]) < 0 || n != n_in++) return "an input";
    } else if (strcmp(word, "param") == 0) {
      if (n_words != 2 || dtype_of(words[0]) < 0 || atoi(words[1]) >= rule->info.n_params) return "a parameter";
    } else if (strcmp(word, "const") == 0) {
      if (n_words != 2 || dtype_of(words[0]) < 0 || strlen(words[1]) != 16) return "a constant";
    } else if (strcmp(word, "prim") == 0) {
      int type = n_words < 4 ? -1 : dtype_of(words[1]), arg_type = n_words < 4 ? -1 : dtype_of(words[2]);
      const qn_primitive *p = type < 0 || arg_type < 0 ? NULL : qn_primitive_find(words[0], (uint8_t)type, (uint8_t)arg_type);
      if (!p) return "a primitive that is not there";
      if (p->n_args != n_words - 3) return "the arguments of a primitive";
      for (int k = 3; k < n_words; k++)
        if (atoi(words[k]) >= n) return "an argument";
    } else {
      return "a word";
    }
    n++;
  }
  return n_in != rule->info.n_in ? "the number of inputs" : n_out != rule->info.n_out ? "the number of outputs" : NULL;
}

static void check_programs(qn_generator *g) {
  group_begin("the program of every built-in op in every kernel dtype");
  for (int32_t i = 0; i < qn_n_builtins; i++) {
    const qn_builtin *b = &qn_builtins[i];
    if (b->kind->call || b->kind->n_positions) continue; /* no part of expressions, nor a cast */
    if (qn_row_op_of(b)) continue;                       /* in stages */
    for (int K = 0; K < QN_DTYPE_COUNT; K++) {
      if (b->first[K] == b->first[K + 1]) continue;
      qn_bytes program = {NULL, 0};
      group_count(1);
      if (qn_generator_program(g, b->info.name, qn_dtype_infos[K].name, &program)) {
        group_fail("%s %s: %s", b->info.name, qn_dtype_infos[K].name, quern_last_error());
        continue;
      }
      const char *wrong = check_program(program.data, b);
      if (wrong) group_fail("%s %s: %s", b->info.name, qn_dtype_infos[K].name, wrong);
      free(program.data);
    }
  }
  group_end();
}

/* ---- Specs ------------------------------------------------------------------------------------------------------- */

static void check_described(qn_generator *g) {
  qn_spec_op **ops = NULL;
  int32_t n = 0;
  static const char text[] = SWISH
      "op \"acme.pick\" { inputs = \"bool c, x, y\", doc = \"d\", dtypes = numeric, body = [[ c ? x : y ]] }\n"
      "binary \"acme.over\" { doc = \"d\", dtypes = { \"f32\", \"i16\", \"f64\" }, result = \"bool\", body = [[ x > y ]] }\n"
      "op \"acme.split\" { inputs = \"x\", doc = \"d\", dtypes = floating, outputs = \"high, i32 sign\", "
      "body = [[ high = rint(x); i32 sign = x < 0; ]] }\n"
      "unary \"acme.own\" { doc = \"d\", dtypes = floating, body = { floating = [[ x ]], f16 = [[ x * 2 ]] } }\n"
      "unary \"acme.wide\" { doc = \"d\", dtypes = \"f64\", result = \"u8\", body = [[ (u8)x ]] }";
  quern_status s = qn_generator_load_spec(g, "acme.lua", text, sizeof text - 1, &ops, &n);
  is_int(s, QUERN_OK, "a spec of six ops is taken");
  is_int(n, 6, "  without their derivatives");
  if (s || n != 6) bail("%d ops: %s", n, quern_last_error());
  const qn_builtin *swish = &ops[0]->rule, *pick = &ops[1]->rule, *over = &ops[2]->rule;
  is_str(swish->info.name, "acme.swish", "their order is the file's");
  is_str(swish->info.doc, "x, gated", "doc");
  is_str(swish->info.formula, "x * sigmoid(k * x) + b", "formula");
  is_int(swish->info.size, sizeof(quern_op_info), "size");
  ok(swish->info.n_in == 1 && swish->info.n_out == 1 && swish->info.n_params == 2 && swish->info.op_class == QUERN_CLASS_BASIC, "counts");
  is_str(swish->info.args[0].name, "x", "an input");
  is_str(swish->info.args[0].dtypes, "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64", "  and the dtypes it takes");
  is_str(swish->info.args[1].name, "out", "the output");
  is_str(swish->info.args[1].dtypes, "f16 bf16 f32 f64", "  and those it has");
  ok(swish->info.args[1].is_output && swish->info.args[1].may_alias == 1 && !swish->info.args[0].is_output, "  and may alias");
  ok(strcmp(swish->info.params[0].name, "k") == 0 && swish->info.params[0].value.kind == QUERN_I64 && swish->info.params[0].value.v.i == 1,
     "a parameter that is an integer");
  ok(strcmp(swish->info.params[1].name, "b") == 0 && swish->info.params[1].value.kind == QUERN_F64 && swish->info.params[1].value.v.f[0] == 0.5,
     "a parameter that is a float");
  ok(swish->kind == &qn_kind_elementwise && swish->promotion == QN_PROMOTION_FLOATING, "kind and promotion");
  is_int(swish->dtypes, 1u << QN_F16 | 1u << QN_BF16 | 1u << QN_F32 | 1u << QN_F64, "dtypes");
  ok(swish->heavy && !over->heavy, "heavy or not");
  ok(!swish->variants && !swish->n_variants && !swish->first[QN_DTYPE_COUNT], "no kernels");
  ok(pick->bool_in == 1 && pick->info.n_in == 3 && pick->promotion == QN_PROMOTION_COMMON && pick->results[0] == QN_DTYPE_NONE && !pick->info.params, "a condition among inputs");
  is_str(pick->info.args[0].dtypes, "bool", "  and its dtype");
  ok(over->results[0] == QN_BOOL && over->dtypes == (1u << QN_I16 | 1u << QN_F32 | 1u << QN_F64), "a result that is bool; the dtypes it names");
  const qn_builtin *split = &ops[3]->rule, *own = &ops[4]->rule, *wide = &ops[5]->rule;
  ok(split->info.n_out == 2 && split->results[0] == QN_DTYPE_NONE && split->results[1] == QN_I32, "outputs, one of a dtype of its own");
  is_str(split->info.args[1].name, "high", "  the first");
  is_str(split->info.args[2].name, "sign", "  the second");
  is_str(split->info.args[2].dtypes, "i32", "  and its dtype");
  ok(split->info.args[1].is_output && split->info.args[2].is_output && split->info.args[2].may_alias == 1, "  both outputs");
  ok(own->own == 1u << QN_F16 && !split->own, "kernels of f16 itself");
  ok(wide->promotion == QN_PROMOTION_DOUBLE && wide->results[0] == QN_U8, "f64 alone takes all");
  is_str(wide->info.args[0].dtypes, "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64", "  and says so");
  is_str(swish->info.backward, "acme.swish_backward", "the name of a derivative");
  ok(!over->info.backward && !split->info.backward, "  not where there is none");
  qn_spec_op **derivative = NULL;
  int32_t n_derivatives = 0;
  is_int(qn_generator_derivative(g, pick->info.name, &derivative, &n_derivatives), QUERN_OK, "the derivative of one");
  if (n_derivatives != 1) bail("%d derivatives", n_derivatives);
  const quern_op_info *of_pick = &derivative[0]->rule.info;
  is_str(of_pick->name, "acme.pick_backward", "  named");
  ok(of_pick->n_in == 2 && of_pick->n_out == 2 && strcmp(of_pick->args[1].name, "c") == 0, "  of grad and the condition alone");
  free(derivative[0]);
  free(derivative);
  is_int(qn_generator_derivative(g, "acme.over", &derivative, &n_derivatives), QUERN_E_NOTFOUND, "of an op without one");
  for (int32_t k = 0; k < n; k++) free(ops[k]);
  free(ops);

  /* An op told again under another name is described as the built-in one is. */
  for (int32_t i = 0; i < qn_n_builtins; i++) {
    const qn_builtin *b = &qn_builtins[i];
    if (strcmp(b->info.name, "leaky_relu")) continue;
    static const char again[] = "unary \"acme.leaky\" { doc = \"d\", params = { slope = 0.01 }, dtypes = floating, body = [[ x > 0 ? x : slope * x ]] }";
    if (qn_generator_load_spec(g, "again.lua", again, sizeof again - 1, &ops, &n)) {
      fail("leaky_relu again: %s", quern_last_error());
      continue;
    }
    const qn_builtin *a = &ops[0]->rule;
    ok(a->kind == b->kind && a->promotion == b->promotion && a->dtypes == b->dtypes && a->bool_in == b->bool_in && a->results[0] == b->results[0] && a->heavy == b->heavy &&
           strcmp(a->info.args[0].dtypes, b->info.args[0].dtypes) == 0 && strcmp(a->info.args[1].dtypes, b->info.args[1].dtypes) == 0 &&
           a->info.params[0].value.v.f[0] == b->info.params[0].value.v.f[0] && strcmp(a->info.formula, b->info.formula) == 0,
       "leaky_relu told again");
    for (int32_t k = 0; k < n; k++) free(ops[k]);
    free(ops);
  }
}

static char *repeated(const char *head, const char *part, int n, const char *tail) {
  size_t size = strlen(head) + strlen(part) * (size_t)n + strlen(tail) + 1, at = strlen(head);
  char *text = malloc(size);
  memcpy(text, head, at);
  for (int i = 0; i < n; i++, at += strlen(part)) memcpy(text + at, part, strlen(part));
  memcpy(text + at, tail, strlen(tail) + 1);
  return text;
}

static void refuses(qn_generator *g, const char *text, size_t size, quern_status wanted, const char *words, const char *name) {
  const double start = seconds();
  quern_status s = load(g, "s.lua", text, size, NULL);
  const double took = seconds() - start;
  const char *said = quern_last_error();
  int good = (wanted ? s == wanted : s == QUERN_E_SYNTAX || s == QUERN_E_LIMIT || s == QUERN_E_UNSUPPORTED) && strstr(said, words) && took < (SANITIZED ? 60 : 6);
  ok(good, "%s", name);
  if (!good) diag("status %d after %.1f s: %s", s, took, s ? said : "taken");
}

#define BODY(body) "unary \"acme.n\" { doc = \"d\", dtypes = floating, body = [[ " body " ]] }"

static void check_refused(qn_generator *g) {
  static const struct {
    const char *text;
    quern_status status;
    const char *words, *name;
  } rows[] = {
    {SWISH, QUERN_E_EXISTS, "acme.swish: an op, already defined at acme.lua:1", "a name that was loaded"},
    {"unary \"gelu\" { doc = \"d\", dtypes = floating, body = \"x\" }", QUERN_E_EXISTS, "a built-in op, already defined at dsl/", "a built-in op"},
    {"unary \"acme_swish\" { doc = \"d\", dtypes = floating, body = \"x\" }", QUERN_E_EXISTS, "its C name acme_swish is that of op acme.swish", "its C name"},
    {"\n  " BODY("x + "), QUERN_E_SYNTAX, "s.lua:2:65: acme.n: expected a value, found the end\n  ", "a body: the place, the line, a caret"},
    {BODY("zz"), QUERN_E_SYNTAX, "unknown name 'zz'", "an unknown name"},
    {BODY("x") "\n" "unary \"acme.m\" { doc = \"d\", dtypes = floating, body = \"x +\" }", QUERN_E_SYNTAX, "acme.m", "the second is wrong"},
    {"unary \"acme.n\" { doc = \"d\", dtypes = all, moves = true, body = \"x\" }", QUERN_E_UNSUPPORTED, "generate them ahead", "an op that moves"},
    {"unary \"acme.n\" { doc = \"d\", dtypes = all, casts = true, body = \"x\" }", QUERN_E_UNSUPPORTED, "generate them ahead", "an op that casts"},
    {"unary \"acme.n\" { doc = \"d\", dtypes = { \"c64\" }, body = \"x\" }", QUERN_E_SYNTAX, "unknown dtype 'c64'", "a dtype that is not there"},
    {"while true do end", QUERN_E_SYNTAX, "a spec is data", "a loop"},
    {"local function f() return f() end f()", QUERN_E_SYNTAX, "a spec is data", "a function"},
    {"local s = (\"x\"):rep(1e9)", QUERN_E_SYNTAX, "a spec is data", "a method"},
    {"local a = io.open", QUERN_E_SYNTAX, "unknown word 'io'", "io"},
    {"local a = os", QUERN_E_SYNTAX, "unknown word 'os'", "os"},
    {"local a = require \"gen.expr\"", QUERN_E_SYNTAX, "unknown word 'require'", "require"},
    {"local a = debug", QUERN_E_SYNTAX, "unknown word 'debug'", "debug"},
    {"local a = load", QUERN_E_SYNTAX, "unknown word 'load'", "load"},
    {"local a = collectgarbage", QUERN_E_SYNTAX, "unknown word 'collectgarbage'", "collectgarbage"},
    {"_ENV.x = 1", QUERN_E_SYNTAX, "a spec is data", "_ENV"},
    {"\033Lua", QUERN_E_SYNTAX, "s.lua:1:1: ", "bytecode"},
    {"unary \"acme.n\"(floating)", QUERN_E_SYNTAX, "s.lua:1:1: ", "a list for an op"},
    {"local t = {} t[1] = t unary \"acme.n\" { doc = \"d\", dtypes = t, body = \"x\" }", QUERN_E_SYNTAX, "s.lua:1:", "a table in itself"},
    {BODY("param a; a + x"), QUERN_E_SYNTAX, "param belongs to a host's expression", "a param"},
    {BODY("raw_u32(x)"), QUERN_E_SYNTAX, "for the library's own math", "a raw cast"},
    {BODY("acme.n(x)"), QUERN_E_SYNTAX, "acme.n calls itself", "itself"},
    {"func \"f\" { body = \"h(x)\" }\nfunc \"h\" { body = \"f(x)\" }\nunary \"acme.n\" { doc = \"d\", dtypes = floating, body = \"f(x)\" }", QUERN_E_SYNTAX,
     "calls itself", "functions in a circle"},
    {"unary \"acme.n*/\" { doc = \"d\", dtypes = floating, body = \"x\" }", QUERN_E_SYNTAX, "cannot be an op's name", "a name that would end a comment"},
    {"unary \"acme.n\" { doc = \"d\", dtypes = floating, body = \"x", QUERN_E_SYNTAX, "unfinished string", "an open string"},
    {"--[[ ", QUERN_E_SYNTAX, "unfinished comment", "an open comment"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    refuses(g, rows[i].text, strlen(rows[i].text), rows[i].status, rows[i].words, rows[i].name);
  refuses(g, "unary \"acme.n\0\" { doc = \"d\", dtypes = floating, body = \"x\" }", 57, QUERN_E_SYNTAX, "", "a zero byte");

  char *text = repeated("-- ", "xxxxxxxxxxxxxxxx", 1 << 16, "\n");
  refuses(g, text, strlen(text), QUERN_E_SYNTAX, "a spec may have 1048576 bytes", "1 MiB and more");
  free(text);
  text = repeated("local a = ", "{", 100000, "");
  refuses(g, text, strlen(text), QUERN_E_SYNTAX, "", "tables in tables");
  free(text);
  text = repeated("local a = 1", "^1", 100000, "");
  refuses(g, text, strlen(text), QUERN_E_SYNTAX, "", "powers of powers");
  free(text);
  text = repeated("local t = {}\n", "t = { t, t, t, t, t, t, t, t }\n", 30000, "unary \"acme.n\" { doc = t, dtypes = floating, body = \"x\" }");
  refuses(g, text, strlen(text), 0, "", "tables of tables of tables");
  free(text);
  text = repeated("", "unary \"acme.n\" { doc = \"d\", dtypes = floating, body = \"x\" } ", 17000, "");
  refuses(g, text, strlen(text), 0, "", "17000 ops on a line");
  free(text);
  text = repeated("constants { A = 1 }\n", "constants { A = 1 }\n", 50000, "");
  refuses(g, text, strlen(text), 0, "", "50000 constants");
  free(text);
  text = repeated("unary \"acme.n\" { doc = \"d\", dtypes = floating, body = [[ x", " + exp(x)", 6000, " ]] }");
  refuses(g, text, strlen(text), QUERN_E_LIMIT, "more than 2000 operators in one chain", "a long body");
  free(text);
  text = repeated("unary \"acme.n\" { doc = \"d\", dtypes = floating, body = [[ ", "-", 5000, "x ]] }");
  refuses(g, text, strlen(text), QUERN_E_LIMIT, "nested deeper than 200", "a deep body");
  free(text);
  char big[6000] = "unary \"acme.n\" { doc = \"d\", dtypes = floating, body = [[ T a0 = x; ";
  for (int i = 1; i < 150; i++) {
    char line[40];
    snprintf(line, sizeof line, "T a%d = pow(a%d, %d.5); ", i, i - 1, i);
    strcat(big, line);
  }
  strcat(big, "return a149; ]] }");
  refuses(g, big, strlen(big), QUERN_E_LIMIT, "more than 4096 nodes after inlining", "a body of 150 powers");
#if !SANITIZED
  ok(most_used < (300ll << 20), "and no more than %lld MB at any time", most_used >> 20);
#endif
  int n = -1;
  is_int(load(g, "s.lua", BODY("x"), strlen(BODY("x")), &n), QUERN_OK, "after all that the name is free, and taken");
  is_int(n, 1, "  once");
  is_int(load(g, "s.lua", "-- nothing\n", 11, &n), QUERN_OK, "a spec without ops");
  is_int(n, 0, "  has none");
}

/* ---- Sources ----------------------------------------------------------------------------------------------------- */

static char *wanted[N_EXPRESSIONS];

static int is_as_wanted(qn_generator *g, int e) {
  char *text = source(g, expressions[e], "f32", 4, n_outputs[e], NULL);
  int good = text && strcmp(text, wanted[e]) == 0;
  free(text);
  return good;
}

static void check_sources(qn_generator *g) {
  quern_status s;
  for (int e = 0; e < N_EXPRESSIONS; e++) {
    wanted[e] = source(g, expressions[e], "f32", 4, n_outputs[e], &s);
    ok(wanted[e] && strstr(wanted[e], "Q_KERNELS_BEGIN") && strstr(wanted[e], "qj_0123456789abcdef"), "%s", expressions[e]);
    if (!wanted[e]) bail("%s", quern_last_error());
  }
  const char *const mixed[] = {"bool", "f16", "f32", "f64"};
  qn_source_request request = {.symbol = "qj_0", .op = "where", .dtypes = mixed, .n_in = 3, .n_out = 1,
                               .classes = "cbcc", .rank = 0, .target = "cuda", .is_wide = 1};
  qn_bytes of_cuda;
  int32_t turn = 0;
  s = qn_generator_source(g, &request, &of_cuda, &turn);
  if (s) bail("%s", quern_last_error());
  ok(turn == 2 && strstr(of_cuda.data, "extern \"C\" __global__") && strstr(of_cuda.data, "qj_0(") &&
         strstr(of_cuda.data, "QUERN_KERNEL_ITEMS_H"), "a CUDA kernel");
  free(of_cuda.data);
  request.op = "astype", request.n_in = 1, request.classes = "cc";
  is_int(qn_generator_source(g, &request, &of_cuda, NULL), QUERN_OK, "  of a cast");
  free(of_cuda.data);
  request.target = "c", request.rank = 1;
  is_int(qn_generator_source(g, &request, &of_cuda, &turn), QUERN_E_UNSUPPORTED, "  in C it has none");
  request.op = NULL, request.canonical = "astype(x)";
  is_int(qn_generator_source(g, &request, &of_cuda, &turn), QUERN_E_SYNTAX, "  and is no expression");
  char *text = source(g, "acme.swish ( x0 , 2 )", "bf16", 1, 1, &s);
  ok(text && strstr(text, "q_bf16_f32"), "an op of a spec");
  free(text);
  static const struct {
    const char *canonical, *dtype;
    int32_t n_in;
    quern_status status;
    const char *words;
  } rows[] = {{"x0 + ", "f32", 1, QUERN_E_SYNTAX, "expression:1:6: expected a value"},
              {"expp ( x0 )", "f32", 1, QUERN_E_NOTFOUND, "unknown function 'expp', did you mean 'exp'?"},
              {"x0 + 1", "bool", 1, QUERN_E_DTYPE, "bool with the number 1"},
              {"x0", "f32", 2, QUERN_E_DTYPE, "dtypes of inputs: 2 given, expected 1"},
              {"x0", "f33", 1, QUERN_E_DTYPE, "unknown dtype 'f33'"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    text = source(g, rows[i].canonical, rows[i].dtype, rows[i].n_in, 1, &s);
    ok(!text && s == rows[i].status && strstr(quern_last_error(), rows[i].words), "%s", rows[i].words);
    if (s != rows[i].status) diag("%d: %s", s, quern_last_error());
  }
}

/* What a host's thread may have set changes nothing, and is as it was afterwards. */
static void check_environment(qn_generator *g) {
  int good = 1;
  static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
    fesetround(modes[m]);
    for (int e = 0; e < N_EXPRESSIONS; e++) good &= is_as_wanted(g, e);
    good &= fegetround() == modes[m];
  }
  fesetround(FE_TONEAREST);
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(0x9fc0); /* subnormals to zero, in and out */
  for (int e = 0; e < N_EXPRESSIONS; e++) good &= is_as_wanted(g, e);
  good &= (__builtin_ia32_stmxcsr() & 0xffc0) == 0x9fc0;
  __builtin_ia32_ldmxcsr(0x1f80);
#endif
  ok(good, "rounding modes and flushed subnormals do not reach the generator");
  errno = 77;
  free(source(g, "x0 + ", "f32", 1, 1, NULL));
  free(source(g, "x0", "f32", 1, 1, NULL));
  is_int(errno, 77, "errno stays");
}

/* ---- Threads and forks ------------------------------------------------------------------------------------------- */

static qn_generator *shared;
static atomic_int n_wrong, stop;

static void *use_shared(void *arg) {
  for (int i = 0; i < (SANITIZED ? 4 : 20); i++)
    if (!is_as_wanted(shared, (int)((i + (intptr_t)arg) % N_EXPRESSIONS))) n_wrong++;
  return NULL;
}

static void *use_own(void *arg) {
  qn_generator *own = qn_generator_create();
  char name[20], text[200];
  snprintf(name, sizeof name, "t%d.lua", (int)(intptr_t)arg);
  snprintf(text, sizeof text, "unary \"acme.mine\" { doc = \"d\", dtypes = floating, body = [[ x + %d ]] }", (int)(intptr_t)arg);
  if (load(own, name, text, strlen(text), NULL)) n_wrong++;
  for (int i = 0; i < (SANITIZED ? 4 : 20); i++) {
    char *mine = source(own, "acme.mine ( x0 )", "f32", 1, 1, NULL), part[40];
    snprintf(part, sizeof part, "in_x0 + %d.0f;", (int)(intptr_t)arg);
    if (!mine || !strstr(mine, part) || !is_as_wanted(own, i % N_EXPRESSIONS)) n_wrong++;
    free(mine);
  }
  qn_generator_destroy(own);
  return NULL;
}

static void *keep_busy(void *arg) {
  while (!stop)
    if (!is_as_wanted(shared, (int)(intptr_t)arg % N_EXPRESSIONS)) n_wrong++;
  return NULL;
}

static void check_threads(void) {
  pthread_t threads[8];
  for (intptr_t k = 0; k < 8; k++) pthread_create(&threads[k], NULL, k % 2 ? use_own : use_shared, (void *)(k + 2));
  for (int k = 0; k < 8; k++) pthread_join(threads[k], NULL);
  is_int(n_wrong, 0, "threads with one generator, threads with their own");

  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, SANITIZED ? 1 << 20 : 64 << 10);
  n_wrong = 0;
  if (pthread_create(&threads[0], &small, use_shared, NULL) == 0) pthread_join(threads[0], NULL);
  is_int(n_wrong, 0, "a thread with a stack of 64 KiB");

  for (intptr_t k = 0; k < 2; k++) pthread_create(&threads[k], NULL, keep_busy, (void *)k);
  int n_bad = 0;
  for (int i = 0; i < 10; i++) {
    usleep(3000);
    pid_t pid = fork();
    if (pid == 0) {
      int good = 1;
      for (int e = 0; e < N_EXPRESSIONS; e++) good &= is_as_wanted(shared, e);
      qn_generator *own = qn_generator_create();
      good &= load_text(own, SWISH) == QUERN_OK;
      qn_generator_destroy(own);
      _exit(good ? 0 : 1);
    }
    n_bad += child_status(pid) != 0;
  }
  stop = 1;
  for (int k = 0; k < 2; k++) pthread_join(threads[k], NULL);
  is_int(n_bad, 0, "children of a process with threads that are generating");
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

#if !SANITIZED
/* What is asked with memory running out: a spec, then an expression with its op. 1: all of it worked. */
static int try_all(qn_generator *g, int *n_bad) {
  armed = 1;
  quern_status s = load_text(g, SWISH);
  armed = 0;
  if (s == QUERN_E_MEMORY) { /* nothing of it is left */
    s = load_text(g, SWISH);
    if (s) ++*n_bad, diag("after that: %s", quern_last_error());
    return 0;
  }
  if (s) return ++*n_bad, diag("spec: %d: %s", s, quern_last_error()), 0;
  armed = 1;
  char *text = source(g, "gelu ( acme.swish ( x0 , 2 ) )", "f16", 1, 1, &s);
  armed = 0;
  free(text);
  if (s && s != QUERN_E_MEMORY) ++*n_bad, diag("source: %d: %s", s, quern_last_error());
  return s == QUERN_OK;
}

static void check_memory(void) {
  int n_bad = 0, n_tried = 0;
  qn_generator *g = qn_generator_create();
  countdown = 0;
  n_asked = 0;
  if (!try_all(g, &n_bad)) n_bad++;
  qn_generator_destroy(g);
  const int all = n_asked;
  const long long before = used;
  /* a third of them each day; under sanitizers fewer, for t535 looks for other things there */
  const int part = test_part(3), step = part < 0 ? 7 : SANITIZED ? 63 : 21;
  for (int n = part < 0 ? 1 : 1 + 7 * part; n <= all; n += n < 300 ? step : n * step / 280) {
    g = qn_generator_create();
    countdown = n;
    n_failures = 0;
    /* Where not all failed, which is what a collection in Lua can make up for, it worked. */
    if (!try_all(g, &n_bad) && !n_failures) n_bad++;
    countdown = 0;
    for (int e = 0; e < 1; e++)
      if (!is_as_wanted(g, e)) n_bad++, diag("%d: the next one fails: %s", n, quern_last_error());
    qn_generator_destroy(g);
    n_tried++;
  }
  is_int(n_bad, 0, "the n-th of %d allocations fails, for %d n", all, n_tried);
  ok(used <= before, "nothing is lost");
  if (used > before) diag("%lld bytes", (long long)used - before);
}
#endif

int main(void) {
  pid_t pid = fork();
  if (pid == 0) {
    setenv("QUERN_MODULE_DIR", "/nonexistent/quern", 1);
    _exit(without_module());
  }
  is_int(child_status(pid), 0, "without the module each function says so, and where it was looked for");
  const char *build = getenv("QUERN_BUILD_DIR");
  if (build && !getenv("QUERN_MODULE_DIR")) {
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/quern", build);
    setenv("QUERN_MODULE_DIR", folder, 1);
  }
  qn_generator *g = qn_generator_create();
  qn_bytes program = {NULL, 0};
  if (qn_generator_program(g, "abs", "f32", &program)) {
    skip(1, "%s", quern_last_error());
    return done_testing();
  }
  is_str(program.data, "in f32\nprim abs f32 f32 0\nout 1\n", "a program");
  free(program.data);
  is_str(qn_generator_state(), "ready", "the module is there");
  is_int(qn_generator_program(g, "nope", "f32", &program), QUERN_E_NOTFOUND, "no such op");
  is_int(qn_generator_program(g, "exp", "f33", &program), QUERN_E_DTYPE, "no such dtype");
  check_programs(g);
  check_described(g);
  check_refused(g);
  check_sources(g);
  check_environment(g);
  shared = g;
  check_threads();
#if !SANITIZED
  check_memory();
#endif
  for (int e = 0; e < N_EXPRESSIONS; e++) free(wanted[e]);
  qn_generator_destroy(g);
  return done_testing();
}
