/* SPDX-License-Identifier: Apache-2.0
 *
 * t594-sentences: what is said of an op from an expression, by describe and explain; of a context; and of what is no
 * expression or no call of one. */
#include "expressions.h"

/* ---- Of ops ----------------------------------------------------------------------------------------------------- */

static void test_describe(void) {
  quern_op *op = op_from(
      NULL, QUERN_KERNEL(bias_gelu, param scale; param shift; y = gelu(x + b) * scale; z = y + shift > 0; y - b));
  const quern_op_info *info = quern_op_describe(op);
  static const char *const names[] = {"x", "b", "y", "z", "out"};
  is_str(info->name, "bias_gelu", "its name");
  is_int(info->size, sizeof *info, "size");
  ok(info->n_in == 2 && info->n_out == 3 && info->n_params == 2, "2 inputs, 3 outputs, 2 parameters");
  for (int k = 0; k < 5; k++) {
    is_str(info->args[k].name, names[k], "  operand %d", k);
    is_int(info->args[k].is_output, k >= 2, "  is %s", k < 2 ? "read" : "written");
    is_int(info->args[k].may_alias, k < 2 ? 0 : 3, "  may be");
    is_str(info->args[k].dtypes, "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64", "  takes");
  }
  is_str(info->params[0].name, "scale", "  the first parameter");
  is_str(info->params[1].name, "shift", "  the second one");
  ok(info->params[0].value.kind == QUERN_NONE && info->params[1].value.kind == QUERN_NONE, "  must be given");
  has_str(info->formula, "gelu(x + b) * scale", "its text");
  ok(info->doc && info->op_class == QUERN_CLASS_BASIC && !info->backward && info->preferred_alignment == 64,
     "the rest");
  quern_op_release(op);
  op = op_from(NULL, "x * 2");
  is_str(quern_op_describe(op)->name, "expression", "one without a name");
  is_str(quern_op_describe(op)->args[1].name, "out", "  its output");
  rng r;
  operands o;
  rng_seed(&r, 17);
  operands_vector(&o, "f32", "f32", 10, &r);
  char text[64], whole[8192];
  is_int(quern_op_explain(op, 1, o.ins, 1, o.outs, NULL, text, sizeof text), QUERN_E_LIMIT, "explain with little room");
  ok(strlen(text) < sizeof text, "  ends");
  is_int(quern_op_explain(op, 1, o.ins, 1, o.outs, NULL, whole, sizeof whole), QUERN_OK, "explain");
  static const char *const keys[] = {"tier", "reason", "variant", "isa", "threads", "nodes", "compile_ms", "compiles"};
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
    ok(*line_of(whole, keys[i]), "  has %s: %s", keys[i], line_of(whole, keys[i]));
  operands_free(&o);
  quern_op_release(op);
  static const char *const facts[] = {"version",   "isa",   "machine", "threads", "ops",   "jit",
                                      "generator", "clang", "cc",      "cuda",    "cache", "cache_state"};
  for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
    ok(*described(NULL, facts[i]), "describe: %s: %s", facts[i], described(NULL, facts[i]));
  is_int(quern_ctx_describe(NULL, text, 20), QUERN_E_LIMIT, "describe with little room");
  is_int(quern_ctx_describe(NULL, NULL, 20), QUERN_E_ARGUMENT, "describe with none");
}

/* ---- Of what is wrong ------------------------------------------------------------------------------------------- */

static quern_status host_call(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                              const quern_call *call) {
  (void)self, (void)n_in, (void)in, (void)n_out, (void)out, (void)call;
  return QUERN_E_UNSUPPORTED;
}

/* Text of `n` times a piece between two others; static. */
static const char *long_text(const char *before, const char *piece, int n, const char *after) {
  static char texts[8][1 << 17];
  static int turn;
  char *text = texts[turn++ % 8], *at = stpcpy(text, before);
  for (int i = 0; i < n; i++) at += sprintf(at, piece, i, i); /* NOLINT */
  strcpy(at, after);
  return text;
}

static void test_errors(void) {
  quern_ctx *ctx = ctx_of(QUERN_JIT_OFF);
  const quern_op_def def = {
      .size = sizeof def, .name = "acme.host", .doc = "", .n_in = 1, .n_out = 1, .call = host_call};
  if (quern_op_register(ctx, &def)) bail("%s", quern_last_error());
  const struct {
    const char *text;
    quern_status status;
    const char *words;
  } cases[] = {
      {"", QUERN_E_SYNTAX, "expression:1:"},
      {"y = x +", QUERN_E_SYNTAX, "expression:1:8"},
      {"broken: y = x +\n  * 2", QUERN_E_SYNTAX, "broken:2:3"},
      {"y = (x + 1", QUERN_E_SYNTAX, "^"},
      {"y = x $ 2", QUERN_E_SYNTAX, "$"},
      {"y = a < b < c", QUERN_E_SYNTAX, "expression:1:"},
      {"y = a % b", QUERN_E_SYNTAX, "remainder"},
      {"y = x; y = x", QUERN_E_SYNTAX, "'y'"},
      {"y = x; x = y", QUERN_E_SYNTAX, "'x'"},
      {"PI = x", QUERN_E_SYNTAX, "PI"},
      {"f32 t = x;", QUERN_E_SYNTAX, "no output"},
      {"y = exp(x, x)", QUERN_E_SYNTAX, "exp"},
      {"y = lookup(x)", QUERN_E_SYNTAX, "lookup"},
      {"y = sigmiod(x)", QUERN_E_NOTFOUND, "sigmoid"},
      {"y = acme.swish(x)", QUERN_E_NOTFOUND, "acme.swish"},
      {"y = acme.host(x)", QUERN_E_UNSUPPORTED, "acme.host"},
      {long_text("y = ", "(", 201, "x"), QUERN_E_LIMIT, "200"},
      {long_text("y = x0", " + x%d", 32, ""), QUERN_E_LIMIT, "32"},
      {long_text("", "param p%d; ", 17, "y = x * p0"), QUERN_E_LIMIT, "16"},
      {long_text("y = x /*", "..........", 6600, "*/"), QUERN_E_LIMIT, "65536"},
      {long_text("y = x", " + 1", 2100, ""), QUERN_E_LIMIT, "2000"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    quern_op *op = NULL;
    const quern_status got = quern_op_compile(ctx, cases[i].text, &op);
    ok(got == cases[i].status, "'%.40s': %s, wanted %s",
       cases[i].text[0] == '\0'      ? ""
       : strchr(cases[i].text, '\n') ? "two lines"
                                     : cases[i].text,
       status_name(got), status_name(cases[i].status));
    has_str(quern_last_error(), cases[i].words, "  said");
    if (!got) quern_op_release(op);
  }
  quern_op *op = NULL;
  is_int(quern_op_compile(ctx, NULL, &op), QUERN_E_ARGUMENT, "no text");
  is_int(quern_op_compile(ctx, "x", NULL), QUERN_E_ARGUMENT, "no place for the op");

  static const struct {
    const char *text, *in, *out, *words;
  } calls[] = {
      {"x ^ w", "f32 f32", "f32", "as_u32"},
      {"x + w", "bool bool", "bool", ""},
      {"x + w", "f32 f32", "i32", "cast"},
      {"x > w", "f32 f32", "f32", NULL},
      {"x << w", "f32 i32", "f32", ""},
      {"remainder(x, w)", "f32 f32", "f32", NULL},
      {"y = 1; x", "f32", "i32 f32", "has no dtype"},
      {"i32 t = x; t", "f32", "i32", "cast"},
      {"x + 300", "u8", "u8", "300"},
  };
  rng r;
  rng_seed(&r, 18);
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    operands o;
    if (quern_op_compile(ctx, calls[i].text, &op)) {
      if (calls[i].words) fail("%s: %s", calls[i].text, quern_last_error());
      continue;
    }
    operands_vector(&o, calls[i].in, calls[i].out, 10, &r);
    if (calls[i].words)
      refuses(op, &o, NULL, QUERN_E_DTYPE, calls[i].words, calls[i].text);
    else
      is_int(operands_call(op, &o, NULL), QUERN_OK, "%s of %s", calls[i].text, calls[i].in);
    operands_free(&o);
    quern_op_release(op);
  }
  operands o;
  op = op_from(ctx, "x + w * 2");
  operands_vector(&o, "f32 f32", "f32", 10, &r);
  is_int(quern_op_call(op, 1, o.ins, 1, o.outs, NULL), QUERN_E_ARGUMENT, "too few inputs");
  is_int(quern_op_call(op, 2, o.ins, 0, NULL, NULL), QUERN_E_ARGUMENT, "no outputs");
  is_int(quern_op_call(op, 2, NULL, 1, o.outs, NULL), QUERN_E_ARGUMENT, "inputs are NULL");
  o.ins[1] = NULL;
  is_int(operands_call(op, &o, NULL), QUERN_E_ARGUMENT, "an input is NULL");
  has_str(quern_last_error(), "w", "  named");
  operands_point(&o);
  o.in[1].t.data = NULL;
  is_int(operands_call(op, &o, NULL), QUERN_E_ARGUMENT, "an input has no data");
  has_str(quern_last_error(), "w", "  named");
  operands_free(&o);
  operands_vector(&o, "f32 f32", "f32", 10, &r);
  o.in[0].t.device.device_type = o.in[1].t.device.device_type = o.out[0].t.device.device_type = kDLCUDA;
  is_int(operands_call(op, &o, NULL), QUERN_E_DEVICE, "tensors elsewhere");
  o.in[0].t.device.device_type = o.in[1].t.device.device_type = o.out[0].t.device.device_type = kDLCPU;
  o.in[1].t.dtype.bits = 24;
  is_int(operands_call(op, &o, NULL), QUERN_E_DTYPE, "a dtype that is none");
  operands_free(&o);
  quern_op_release(op);
  quern_ctx_release(ctx);
}

int main(void) {
  forget_environment();
  test_describe();
  test_errors();
  return done_testing();
}
