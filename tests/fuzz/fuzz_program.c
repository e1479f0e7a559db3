/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_program: specs that are valid, and what their ops give. The bytes choose declarations of every kind that bodies can be written
 * for, their bodies, and calls of each op and of its derivative, interpreted and, of some, compiled: call_check.h says what must hold
 * of them. A spec that is refused is a mistake, unless a limit is said. */
#include <stdarg.h>

#include "call_check.h"

/* ---- Bodies ---- */

enum { FLOATING, INTEGER, NUMERIC, N_SETS };
static const char *const set_names[N_SETS] = {"floating", "integer", "numeric"};

typedef struct body {
  char *text;
  size_t n, size;
  rng *r;
  int set;
  char names[12][16]; /* of values of type T */
  int n_names;
  int is_row; /* reductions may be called, unless inside of one */
  char space[16]; /* the namespace of the ops */
} body;

__attribute__((format(printf, 2, 3))) static void put(body *b, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(b->text + b->n, b->size - b->n, format, args);
  va_end(args);
  REQUIRE(n >= 0 && (size_t)n < b->size - b->n, "the text is too long");
  b->n += (size_t)n;
}

static const char *pick(body *b, const char *const *list, size_t n) { return list[rng_below(b->r, n)]; }
#define PICK(b, ...) \
  pick(b, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void put_value(body *b, int depth);

static void put_condition(body *b, int depth) {
  switch (depth <= 0 ? 0 : rng_below(b->r, 5)) {
    case 3:
      put(b, "(");
      put_condition(b, depth - 1);
      put(b, " %s ", PICK(b, "&&", "||"));
      put_condition(b, depth - 1);
      put(b, ")");
      return;
    case 4:
      put(b, "!");
      put_condition(b, depth - 1);
      return;
    default:
      put(b, "(");
      put_value(b, depth - 1);
      put(b, " %s ", PICK(b, "<", "<=", ">", ">=", "==", "!="));
      put_value(b, depth - 1);
      put(b, ")");
  }
}

static void put_call(body *b, const char *name, int n_args, int depth) {
  put(b, "%s(", name);
  for (int k = 0; k < n_args; k++) {
    if (k) put(b, ", ");
    put_value(b, depth - 1);
  }
  put(b, ")");
}

static void put_value(body *b, int depth) {
  if (depth <= 0 || b->n > 3000 || rng_below(b->r, 8) == 0) {
    if (rng_below(b->r, 4)) put(b, "%s", b->names[rng_below(b->r, (uint64_t)b->n_names)]);
    else if (b->set == FLOATING) put(b, "(T)%s", PICK(b, "0.5", "1", "2", "3.25", "0", "1e3", "0x1p-20", "INFINITY"));
    else put(b, "(T)%s", PICK(b, "0", "1", "2", "3", "7", "31"));
    return;
  }
  switch (rng_below(b->r, b->is_row ? 9 : 8)) {
    case 0:
    case 1:
      put(b, "(");
      put_value(b, depth - 1);
      put(b, " %s ", b->set == FLOATING ? PICK(b, "+", "-", "*", "/") : b->set == INTEGER ? PICK(b, "+", "-", "*", "&", "|", "^") : PICK(b, "+", "-", "*"));
      put_value(b, depth - 1);
      put(b, ")");
      return;
    case 2: put_call(b, PICK(b, "maximum", "minimum"), 2, depth); return;
    case 3:
      put(b, "(");
      put_condition(b, depth - 1);
      put(b, " ? ");
      put_value(b, depth - 1);
      put(b, " : ");
      put_value(b, depth - 1);
      put(b, ")");
      return;
    case 4: put_call(b, PICK(b, "abs", "square", "positive"), 1, depth); return;
    case 5:
      put(b, "(T)(");
      put_value(b, depth - 1);
      put(b, ")");
      return;
    case 6:
      if (b->set == FLOATING) put_call(b, PICK(b, "sqrt", "floor", "ceil", "rint", "exp", "log", "tanh", "sigmoid", "sin", "expm1", "gelu"), 1, depth);
      else if (b->set == INTEGER) put_call(b, PICK(b, "quot", "rem", "gcd"), 2, depth);
      else put_call(b, "sign", 1, depth);
      return;
    case 7:
      if (b->set == FLOATING) put_call(b, PICK(b, "hypot", "atan2", "copysign", "fmod", "pow", "fmin"), 2, depth);
      else put_call(b, "abs", 1, depth);
      return;
    default:
      b->is_row = 0;
      put_call(b, PICK(b, "sum", "max", "min", "mean", "prod"), 1, depth < 2 ? depth : 2);
      b->is_row = 1;
  }
}

static void add_name(body *b, const char *name) { snprintf(b->names[b->n_names++], sizeof b->names[0], "%s", name); }

/* Locals, then the result or the named outputs. */
static void put_statements(body *b, int n_outputs) {
  const int n_locals = (int)rng_below(b->r, 3);
  for (int k = 0; k < n_locals; k++) {
    char name[16];
    put(b, "T t%d = ", k);
    put_value(b, 3);
    put(b, "; ");
    snprintf(name, sizeof name, "t%d", k);
    add_name(b, name);
  }
  for (int k = 0; k < n_outputs; k++) {
    put(b, n_outputs == 1 ? "return " : "o%d = ", k);
    put_value(b, 3);
    put(b, "; ");
  }
}

/* ---- Specs ---- */

enum { MOST_OPS = 3, MOST_TEXT = 16384 };

static void put_op(body *b, int k) {
  const int kind = (int)rng_below(b->r, 6);
  b->n_names = 0;
  b->is_row = 0;
  b->set = kind >= 3 ? FLOATING : (int)rng_below(b->r, N_SETS);
  const int n_in = kind == 0 ? 1 : kind == 1 ? 2 : kind == 2 ? 1 + (int)rng_below(b->r, 4) : 1;
  const int n_outputs = kind == 2 && rng_below(b->r, 3) == 0 ? 2 : 1;
  const int has_param = kind <= 3 && rng_below(b->r, 3) == 0;
  static const char *const inputs[] = {"x", "y", "z", "w"};
  for (int i = 0; i < n_in; i++) add_name(b, inputs[i]);
  if (has_param) add_name(b, "p");
  put(b, "%s \"%s.op%d\" { doc = \"d\", dtypes = %s, ", ((const char *const[]){"unary", "binary", "op", "row", "reduction", "scan"})[kind], b->space, k,
      set_names[b->set]);
  if (kind == 2) {
    put(b, "inputs = \"x");
    for (int i = 1; i < n_in; i++) put(b, ", %s", inputs[i]);
    put(b, "\", ");
    if (n_outputs == 2) put(b, "outputs = \"o0, o1\", ");
  }
  if (has_param) put(b, "params = { p = %s }, ", b->set == FLOATING ? PICK(b, "0.5", "2", "-1.25") : PICK(b, "1", "3", "5"));
  if (kind <= 3) {
    b->is_row = kind == 3;
    put(b, "body = [[ ");
    if (kind == 3) { /* it must reduce */
      put(b, "T m = %s(x); ", PICK(b, "sum", "max", "mean"));
      add_name(b, "m");
    }
    put_statements(b, n_outputs);
    put(b, "]], ");
    if (rng_below(b->r, 4) == 0) put(b, "grad = false, ");
  } else if (kind == 4) {
    b->names[0][0] = 'x';
    put(b, "lift = [[ ");
    put_value(b, 3);
    put(b, " ]], combine = \"%s\", empty = %s, ", PICK(b, "a + b", "maximum(a, b)", "minimum(a, b)", "a * b", "hypot(a, b)"), PICK(b, "0", "1", "false"));
    if (rng_below(b->r, 2)) put(b, "finish = \"%s\", ", PICK(b, "sqrt(abs(a))", "a * 2", "exp(a)", "a"));
  } else {
    put(b, "combine = \"%s\", initial = %s, ", PICK(b, "a + b", "maximum(a, b)", "minimum(a, b)", "a * b", "logaddexp(a, b)"), PICK(b, "0", "1", "-INFINITY"));
  }
  put(b, "}\n");
}

/* ---- Calls ---- */

static const char *shown_text; /* of the spec */

static void call_named(rng *r, quern_ctx *interpreting, quern_ctx *compiling, const char *name) {
  quern_op *op = NULL, *other = NULL;
  const quern_status status = quern_op_find(interpreting, name, &op);
  if (status == QUERN_E_LIMIT && strstr(name, "_backward")) return; /* it is made now */
  REQUIRE(status == QUERN_OK, "%s\n%s", quern_last_error(), shown_text);
  REQUIRE(!compiling || quern_op_find(compiling, name, &other) == QUERN_OK, "%s", quern_last_error());
  const quern_op_info *info = quern_op_describe(op);
  for (int k = 0; k < 2; k++) fuzz_one_call(r, op, other);
  if (info->backward && !strstr(name, "_backward")) call_named(r, interpreting, compiling, info->backward);
  quern_op_release(op);
  quern_op_release(other);
}

/* Contexts take longer to make than a spec to load, so some inputs share them, each with names of its own. */
static quern_ctx *spec_ctx[2]; /* interpreting, compiling */
static unsigned n_inputs;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static char text[MOST_TEXT];
  rng r;
  rng_from(&r, bytes, size);
  body b = {.text = text, .size = sizeof text, .r = &r};
  if (n_inputs++ % 32 == 0) {
    for (int k = 0; k < 2; k++) {
      const quern_options options = {.size = sizeof options, .jit = k ? QUERN_JIT_SYNC : QUERN_JIT_OFF, .threads = 2, .cache_dir = ""};
      quern_ctx_release(spec_ctx[k]);
      REQUIRE(quern_ctx_create(&options, &spec_ctx[k]) == QUERN_OK, "%s", quern_last_error());
    }
  }
  const int compiles = rng_below(&r, 4) == 0;
  text[0] = 0;
  snprintf(b.space, sizeof b.space, "fz%u", n_inputs);
  const int n_ops = 1 + (int)rng_below(&r, MOST_OPS);
  for (int k = 0; k < n_ops; k++) put_op(&b, k);
  shown_text = text;
  quern_status status = quern_spec_load_text(spec_ctx[0], "fuzz.lua", text, b.n);
  if (status == QUERN_OK && compiles) status = quern_spec_load_text(spec_ctx[1], "fuzz.lua", text, b.n);
  const int is_lacking = status == QUERN_E_UNSUPPORTED && is_subset() && strstr(quern_last_error(), "built without");
  REQUIRE(status == QUERN_OK || status == QUERN_E_LIMIT || is_lacking, "%s\n%s", text, quern_last_error());
  for (int k = 0; status == QUERN_OK && k < n_ops; k++) {
    char name[40];
    snprintf(name, sizeof name, "%s.op%d", b.space, k);
    call_named(&r, spec_ctx[0], compiles ? spec_ctx[1] : NULL, name);
  }
  return 0;
}
