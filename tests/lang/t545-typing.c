/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t545-typing: what expressions mean for given dtypes: promotion, weak numbers and parameters, casts and rounding, ops with
 * their rules, conditions, shifts; each refusal with its words. A table of expression, dtypes and what comes of them; the
 * values are printed as nested calls, each with the type it is computed in. That Lua means the same is t550's. */
#include "runtime/core/op/registry.h"

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/lang/typing/typing.h"
#include "tap.h"

#define COUNT(list) (sizeof list / sizeof *list)

static const char *type_name(int dtype) { return qn_dtype_infos[dtype].name; }

/* ---- Printing ----------------------------------------------------------------------------------------------------- */

#define OUT_BYTES 4000
static void append(char *out, const char *text) { strncat(out, text, OUT_BYTES - 1 - strlen(out)); }

static void print_constant(const qn_value *v, char text[100]) {
  float f;
  double d;
  memcpy(&f, &v->bits, sizeof f);
  memcpy(&d, &v->bits, sizeof d);
  if (v->type == QN_F32) snprintf(text, 100, "%.9g", f);
  else if (v->type == QN_F64) snprintf(text, 100, "%.17g", d);
  else snprintf(text, 100, "%llu", (unsigned long long)v->bits);
}

static void print_value(const qn_typed *t, int32_t value, char *out) {
  const qn_value *v = &t->values[value];
  char text[100];
  switch (v->kind) {
    case QN_VALUE_INPUT: snprintf(text, sizeof text, "x%d", v->index); break;
    case QN_VALUE_PARAM: snprintf(text, sizeof text, "p%d", v->index); break;
    case QN_VALUE_CONSTANT: print_constant(v, text); break;
    case QN_VALUE_PRIMITIVE: snprintf(text, sizeof text, "%s", v->primitive->op); break;
    default: snprintf(text, sizeof text, "%s[%s]", v->op->info->name, type_name(v->kernel_dtype));
  }
  append(out, text);
  append(out, ":");
  append(out, type_name(v->type));
  if (v->kind < QN_VALUE_OP) return;
  for (int32_t k = 0; k < v->n_args + v->n_params; k++) {
    append(out, k == 0 ? "(" : k == v->n_args ? "; " : ", ");
    print_value(t, t->args[v->first_arg + k], out);
  }
  append(out, ")");
}

/* "DTYPE = value; ..." of the outputs. */
static void print_outputs(const qn_typed *t, char *out) {
  *out = 0;
  for (int32_t k = 0; k < t->n_out; k++) {
    if (k) append(out, "; ");
    append(out, type_name(t->out_dtypes[k]));
    append(out, " = ");
    print_value(t, t->out[k], out);
  }
}

static int dtype_of(const char *name) {
  for (int d = 0; d < QN_B8; d++)
    if (strcmp(type_name(d), name) == 0) return d;
  bail("no dtype %s", name);
}

static void read_dtypes(const char *text, uint8_t *dtypes) {
  char word[16];
  int n = 0, length;
  while (sscanf(text, "%15s%n", word, &length) == 1) {
    dtypes[n++] = (uint8_t)dtype_of(word);
    text += length;
  }
}

/* The outputs as text, or the status and the first line of the message. */
static quern_status outcome(const char *dtypes_text, const char *text, char out[OUT_BYTES]) {
  uint8_t dtypes[QN_MAX_OPERANDS] = {0};
  qn_expression *e = NULL;
  qn_typed *typed = NULL;
  read_dtypes(dtypes_text, dtypes);
  quern_status status = qn_expression_parse(qn_registry_ctx(NULL), text, &e);
  if (status == QUERN_OK) status = qn_typing_run(e, dtypes, &typed);
  if (status == QUERN_OK) print_outputs(typed, out);
  else snprintf(out, OUT_BYTES, "%.*s", (int)strcspn(quern_last_error(), "\n"), quern_last_error());
  qn_typing_free(typed);
  qn_expression_free(e);
  return status;
}

typedef struct row {
  const char *dtypes, *text, *wanted;
} row;

/* Whether a row calls what is a primitive and an op, and this build has the primitive alone, which is typed in other words. */
static int lacks_op(const char *text) {
  static const char *const names[] = {"floor", "ceil", "trunc", "rint", "copysign", "gcd"};
  for (size_t k = 0; k < COUNT(names); k++) {
    quern_op *op = NULL;
    const char *at = strstr(text, names[k]);
    if (!at || at[strlen(names[k])] != '(') continue;
    if (quern_op_find(NULL, names[k], &op)) return 1;
    quern_op_release(op);
  }
  return 0;
}

static void check(const char *what, const row *rows, size_t n, quern_status status) {
  char out[OUT_BYTES];
  group_begin("%s", what);
  for (size_t i = 0; i < n; i++) {
    if (lacks_op(rows[i].text)) {
      diag("left out: %s: this build has some ops only", rows[i].text);
      continue;
    }
    quern_status got = outcome(rows[i].dtypes, rows[i].text, out);
    group_count(1);
    if (got != status || (status == QUERN_OK ? strcmp(out, rows[i].wanted) != 0 : strstr(out, rows[i].wanted) == NULL))
      group_fail("%s on %s\n  got    %d %s\n  wanted %s", rows[i].text, rows[i].dtypes, got, out, rows[i].wanted);
  }
  group_end();
}
#define CHECK(what, status, ...) check(what, (const row[]){__VA_ARGS__}, COUNT(((const row[]){__VA_ARGS__})), status)

int main(void) {
  CHECK("inputs, promotion", QUERN_OK,
        {"f32", "x", "f32 = x0:f32"},
        {"f16", "x", "f16 = x0:f32"},
        {"bool", "x", "bool = x0:bool"},
        {"i32", "x", "i32 = x0:i32"},
        {"f32 f32", "x + y", "f32 = add:f32(x0:f32, x1:f32)"},
        {"f16 f16", "x + y", "f16 = add:f32(x0:f32, x1:f32)"},
        {"f16 bf16", "x - y", "f32 = sub:f32(x0:f32, x1:f32)"},
        {"f16 f32", "x * y", "f32 = mul:f32(x0:f32, x1:f32)"},
        {"f16 f64", "x * y", "f64 = mul:f64(cast:f64(x0:f32), x1:f64)"},
        {"i32 f16", "x * y", "f16 = mul:f32(cast:f32(x0:i32), x1:f32)"},
        {"i64 f32", "x * y", "f32 = mul:f32(cast:f32(x0:i64), x1:f32)"},
        {"u8 i32", "x + y", "i32 = add:i32(cast:i32(x0:u8), x1:i32)"},
        {"u8 i64", "y + x", "i64 = add:i64(cast:i64(x0:u8), x1:i64)"},
        {"bool i32", "x + y", "i32 = add:i32(cast:i32(x0:bool), x1:i32)"},
        {"bool f16", "x * y", "f16 = mul:f32(cast:f32(x0:bool), x1:f32)"},
        {"i32 i32", "x / y", "f64 = div:f64(cast:f64(x0:i32), cast:f64(x1:i32))"},
        {"i64 u8", "x / y", "f64 = div:f64(cast:f64(x0:i64), cast:f64(x1:u8))"},
        {"i16 u8", "x / y", "f32 = div:f32(cast:f32(x0:i16), cast:f32(x1:u8))"},
        {"i16 u16", "x / y", "f64 = div:f64(cast:f64(x0:i16), cast:f64(x1:u16))"},
        {"u64 f16", "x / y", "f16 = div:f32(cast:f32(x0:u64), x1:f32)"},
        {"i32 f64", "x / y", "f64 = div:f64(cast:f64(x0:i32), x1:f64)"},
        {"i32", "(i8)x + (u8)x", "i16 = add:i16(cast:i16(cast:i8(x0:i32)), cast:i16(cast:u8(x0:i32)))"},
        {"i32", "(u32)x + x", "i64 = add:i64(cast:i64(cast:u32(x0:i32)), cast:i64(x0:i32))"},
        {"f32 f32", "y = x; z = y * w; y + z", "f32 = x0:f32; f32 = mul:f32(x0:f32, x1:f32); f32 = add:f32(x0:f32, mul:f32(x0:f32, x1:f32))"});

  CHECK("weak numbers", QUERN_OK,
        {"f16", "x * 2", "f16 = mul:f32(x0:f32, 2:f32)"},
        {"f64", "0.1 * x", "f64 = mul:f64(0.10000000000000001:f64, x0:f64)"},
        {"f32", "0.1 * x", "f32 = mul:f32(0.100000001:f32, x0:f32)"},
        {"f16", "x == 0.1", "bool = eq:bool(x0:f32, 0.100000001:f32)"}, /* not f16's */
        {"i32", "x * 2", "i32 = mul:i32(x0:i32, 2:i32)"},
        {"i32", "x * 2.0", "f64 = mul:f64(cast:f64(x0:i32), 2:f64)"},
        {"i64", "x + 0.5", "f64 = add:f64(cast:f64(x0:i64), 0.5:f64)"},
        {"bool", "x * 0.5", "f32 = mul:f32(cast:f32(x0:bool), 0.5:f32)"},
        {"f64", "1 / 2 * x", "f64 = mul:f64(0.5:f64, x0:f64)"},
        {"i32", "1 / 2 * x", "f64 = mul:f64(0.5:f64, cast:f64(x0:i32))"},
        {"i32", "x / 3", "f64 = div:f64(cast:f64(x0:i32), 3:f64)"},
        {"u8", "x / 300", "f32 = div:f32(cast:f32(x0:u8), 300:f32)"},
        {"u8", "x / -1", "f32 = div:f32(cast:f32(x0:u8), -1:f32)"},
        {"i32", "x + (1 << 4 | 3)", "i32 = add:i32(x0:i32, 19:i32)"},
        {"i32", "x + (6 * 7 - 50)", "i32 = add:i32(x0:i32, 4294967288:i32)"},
        {"i32", "x + (-7 >> 1)", "i32 = add:i32(x0:i32, 4294967292:i32)"},
        {"i32", "x + ~0", "i32 = add:i32(x0:i32, 4294967295:i32)"},
        {"i32", "x + 0xffffffff", "i32 = add:i32(x0:i32, 4294967295:i32)"},
        {"u8", "x + 0xff", "u8 = add:u8(x0:u8, 255:u8)"},
        {"i64", "x + 0xffffffffffffffff", "i64 = add:i64(x0:i64, 18446744073709551615:i64)"},
        {"f32", "x + 0xffffff8000000001", "f32 = add:f32(x0:f32, 1.84467441e+19:f32)"}, /* to what has no sign it is what it says */
        {"f64", "x + 0x8000000000000401", "f64 = add:f64(x0:f64, 9.2233720368547779e+18:f64)"},
        {"f32", "x + 16777217", "f32 = add:f32(x0:f32, 16777216:f32)"},
        {"f32", "x + 9007199791611905", "f32 = add:f32(x0:f32, 9.00720033e+15:f32)"}, /* above a tie: through f64 it would be one */
        {"f32", "x * -0.0", "f32 = mul:f32(x0:f32, -0:f32)"},
        {"f32", "x * 1e-50", "f32 = mul:f32(x0:f32, 0:f32)"},
        {"f32", "x * 1e39", "f32 = mul:f32(x0:f32, inf:f32)"},
        {"f32", "x + NAN", "f32 = add:f32(x0:f32, nan:f32)"},
        {"f64", "x + 0 / 0", "f64 = add:f64(x0:f64, nan:f64)"},
        {"f32", "x - INFINITY", "f32 = sub:f32(x0:f32, inf:f32)"},
        {"f32", "x < 1", "bool = lt:bool(x0:f32, 1:f32)"},
        {"i32", "1.5 < x", "bool = lt:bool(1.5:f64, cast:f64(x0:i32))"},
        {"f32", "!1", "bool = 0:bool"},
        {"bool", "x && NAN", "bool = and:bool(x0:bool, 1:bool)"},
        {"f32", "0.0 ? x : 1", "f32 = select:f32(0:bool, x0:f32, 1:f32)"},
        {"f32", "(f32)1 / 3", "f32 = div:f32(1:f32, 3:f32)"},
        {"", "(f32)1", "f32 = 1:f32"});

  CHECK("params", QUERN_OK,
        {"f16", "param a; x * a", "f16 = mul:f32(x0:f32, p0:f32)"},
        {"f64", "param a; a * x", "f64 = mul:f64(p0:f64, x0:f64)"},
        {"i32", "param a; x + a", "i32 = add:i32(x0:i32, p0:i32)"},
        {"i32", "param a; x / a", "f64 = div:f64(cast:f64(x0:i32), p0:f64)"},
        {"f32", "param a; x * (a + 1)", "f32 = mul:f32(x0:f32, add:f32(p0:f32, 1:f32))"},
        {"i32", "param a; x * (a + 1)", "i32 = mul:i32(x0:i32, add:i32(p0:i32, 1:i32))"},
        {"i32", "param a; x * (a + 1.0)", "f64 = mul:f64(cast:f64(x0:i32), add:f64(p0:f64, 1:f64))"},
        {"i32", "param a; x * (a / 2)", "f64 = mul:f64(cast:f64(x0:i32), div:f64(p0:f64, 2:f64))"},
        {"i32", "param a; x * (2 / 4 * a)", "f64 = mul:f64(cast:f64(x0:i32), mul:f64(0.5:f64, p0:f64))"},
        {"f32", "param a; param b; x * (3 - -a * +b)", "f32 = mul:f32(x0:f32, sub:f32(3:f32, mul:f32(neg:f32(p0:f32), p1:f32)))"},
        {"f32", "param a; x * (1 + 2 + a)", "f32 = mul:f32(x0:f32, add:f32(3:f32, p0:f32))"},
        {"f32", "param a; x * (a + 1 + 2)", "f32 = mul:f32(x0:f32, add:f32(add:f32(p0:f32, 1:f32), 2:f32))"},
        {"f32 f64", "param a; y = x * a; z = w * a", "f32 = mul:f32(x0:f32, p0:f32); f64 = mul:f64(x1:f64, p0:f64)"},
        {"bool", "param a; x * (a / 2)", "f32 = mul:f32(cast:f32(x0:bool), div:f32(p0:f32, 2:f32))"},
        {"f32", "param a; x > a ? x : a", "f32 = select:f32(gt:bool(x0:f32, p0:f32), x0:f32, p0:f32)"},
        {"f32", "param a; (f64)a * x", "f64 = mul:f64(p0:f64, cast:f64(x0:f32))"},
        {"f32", "param a; (f16)a + x", "f32 = add:f32(round_f16:f32(p0:f32), x0:f32)"},
        {"f32", "param a; (i32)a * x", "f32 = mul:f32(cast:f32(p0:i32), x0:f32)"},
        {"f32", "param a; (i32)(a / 2) * x", "f32 = mul:f32(cast:f32(cast:i32(div:f64(p0:f64, 2:f64))), x0:f32)"},
        {"f32", "param a; (bool)a ? x : 0", "f32 = select:f32(p0:bool, x0:f32, 0:f32)"},
        {"f32", "param a; f16 t = a; x * t", "f32 = mul:f32(x0:f32, round_f16:f32(p0:f32))"},
        {"i32", "param a; x << a", "i32 = shl:i32(x0:i32, p0:i32)"},
        {"f32", "param a; leaky_relu(x, a)", "f32 = leaky_relu[f32]:f32(x0:f32; p0:f32)"},
        {"f32", "param a; leaky_relu(x, a * 2)", "f32 = leaky_relu[f32]:f32(x0:f32; mul:f32(p0:f32, 2:f32))"},
        {"i32", "param a; clip(x, a)", "i32 = clip[i32]:i32(x0:i32; p0:i32, 2147483647:i32)"},
        {"i32", "param a; exp(x + a)", "f64 = exp[f64]:f64(cast:f64(add:i32(x0:i32, p0:i32)))"},
        {"i32", "param a; pow(x, a)", "i32 = pow[i32]:i32(x0:i32, p0:i32)"},
        {"i32", "param a; divide(x, a)", "f64 = divide[f64]:f64(cast:f64(x0:i32), p0:f64)"},
        {"bool bool", "param a; where(x, y, a)", "bool = where[bool]:bool(x0:bool, x1:bool, p0:bool)"});

  CHECK("casts and rounding", QUERN_OK,
        {"f32", "(f32)x", "f32 = x0:f32"},
        {"f16", "(f32)x", "f32 = x0:f32"},
        {"f16", "(f16)x", "f16 = round_f16:f32(x0:f32)"},
        {"f32", "(bf16)x", "bf16 = round_bf16:f32(x0:f32)"},
        {"f64", "(f16)x", "f16 = round_f16:f32(x0:f64)"},
        {"i64", "(bf16)x", "bf16 = round_bf16:f32(x0:i64)"},
        {"bool", "(f16)x", "f16 = round_f16:f32(x0:bool)"},
        {"f16", "(f16)(x * 2) * x", "f16 = mul:f32(round_f16:f32(mul:f32(x0:f32, 2:f32)), x0:f32)"},
        {"f64", "(i32)x", "i32 = cast:i32(x0:f64)"},
        {"f16", "(u64)x", "u64 = cast:u64(x0:f32)"},
        {"f32", "(bool)x", "bool = cast:bool(x0:f32)"},
        {"f32", "(f32)(f16)x", "f32 = round_f16:f32(x0:f32)"},
        {"f32", "(i32)2.5 * x", "f32 = mul:f32(cast:f32(cast:i32(2.5:f64)), x0:f32)"},
        {"f32", "(f16)2.5 * x", "f32 = mul:f32(round_f16:f32(2.5:f32), x0:f32)"},
        {"f32", "(bool)0.5 ? x : 0", "f32 = select:f32(cast:bool(0.5:f64), x0:f32, 0:f32)"},
        {"f32", "(u8)255 + x", "f32 = add:f32(cast:f32(255:u8), x0:f32)"},
        {"f32", "f16 t = x; t", "f16 = round_f16:f32(x0:f32)"},
        {"f32", "f64 t = x; t * t", "f64 = mul:f64(cast:f64(x0:f32), cast:f64(x0:f32))"},
        {"i32", "f16 t = x; t", "f16 = round_f16:f32(x0:i32)"},
        {"i64", "i32 t = x; t", "i32 = cast:i32(x0:i64)"},
        {"i32", "bool t = x; t", "bool = cast:bool(x0:i32)"},
        {"f32", "f32 t = 3; t + x", "f32 = add:f32(3:f32, x0:f32)"},
        {"f32", "i32 t = 3; x + t", "f32 = add:f32(x0:f32, cast:f32(3:i32))"},
        {"f32", "f16 t = 3; t", "f16 = round_f16:f32(3:f32)"},
        {"f32", "as_u32(x)", "u32 = bits:u32(x0:f32)"},
        {"f64", "as_i64(x)", "i64 = bits:i64(x0:f64)"},
        {"i32", "as_f32(x)", "f32 = from_bits:f32(x0:i32)"},
        {"i32", "as_u32(x)", "u32 = cast:u32(x0:i32)"},
        {"i32", "as_i32(x)", "i32 = x0:i32"},
        {"f32", "as_f32(x)", "f32 = x0:f32"});

  CHECK("operators on integers and conditions", QUERN_OK,
        {"i32 i32", "x & y | x ^ y", "i32 = or:i32(and:i32(x0:i32, x1:i32), xor:i32(x0:i32, x1:i32))"},
        {"u8 i32", "x & y", "i32 = and:i32(cast:i32(x0:u8), x1:i32)"},
        {"bool bool", "x & y", "bool = and:bool(x0:bool, x1:bool)"},
        {"bool i32", "x | y", "i32 = or:i32(cast:i32(x0:bool), x1:i32)"},
        {"i32", "~x", "i32 = not:i32(x0:i32)"},
        {"bool", "~x", "bool = lnot:bool(x0:bool)"},
        {"f32", "!x", "bool = lnot:bool(ne:bool(x0:f32, 0:f32))"},
        {"i32 bool", "x && y", "bool = and:bool(ne:bool(x0:i32, 0:i32), x1:bool)"},
        {"f16 f64", "x || y", "bool = or:bool(ne:bool(x0:f32, 0:f32), ne:bool(x1:f64, 0:f64))"},
        {"i32", "x << 3", "i32 = shl:i32(x0:i32, 3:i32)"},
        {"i32", "x >> 40", "i32 = shr:i32(x0:i32, 40:i32)"},
        {"u8 u8", "x >> y", "u8 = shr:u8(x0:u8, x1:u8)"},
        {"i64", "x << (u8)3", "i64 = shl:i64(x0:i64, 3:i64)"},
        {"i64", "x << (i32)3", "i64 = shl:i64(x0:i64, 3:i64)"},
        {"u8", "x << (i32)300", "u8 = shl:u8(x0:u8, 8:u8)"},
        {"u8", "x << (i32)-1", "u8 = shl:u8(x0:u8, 8:u8)"},
        {"i32 u8", "x << y", "i32 = shl:i32(x0:i32, select:i32(ge:bool(x1:u8, 32:u8), 32:i32, cast:i32(x1:u8)))"},
        {"u8 i32", "x >> y", "u8 = shr:u8(x0:u8, select:u8(or:bool(ge:bool(x1:i32, 8:i32), lt:bool(x1:i32, 0:i32)), 8:u8, cast:u8(x1:i32)))"},
        {"f32", "-x", "f32 = neg:f32(x0:f32)"},
        {"f16", "+x", "f16 = x0:f32"},
        {"u8", "-x", "u8 = neg:u8(x0:u8)"},
        {"f32 i32", "x ? y : 1.5", "f64 = select:f64(ne:bool(x0:f32, 0:f32), cast:f64(x1:i32), 1.5:f64)"},
        {"bool f16 bf16", "m ? x : y", "f32 = select:f32(x0:bool, x1:f32, x2:f32)"},
        {"bool bool", "x == y", "bool = eq:bool(x0:bool, x1:bool)"},
        {"bool f16", "x != y", "bool = ne:bool(cast:f32(x0:bool), x1:f32)"});

  CHECK("calls", QUERN_OK,
        {"f16", "gelu(x)", "f16 = gelu[f32]:f32(x0:f32)"},
        {"f64", "exp(x)", "f64 = exp[f64]:f64(x0:f64)"},
        {"i32", "exp(x)", "f64 = exp[f64]:f64(cast:f64(x0:i32))"},
        {"bool", "exp(x)", "f32 = exp[f32]:f32(cast:f32(x0:bool))"},
        {"i32 f16", "add(x, y)", "f16 = add[f32]:f32(cast:f32(x0:i32), x1:f32)"},
        {"u8", "add(x, 1)", "u8 = add[u8]:u8(x0:u8, 1:u8)"},
        {"u8", "add(x, 1.5)", "f32 = add[f32]:f32(cast:f32(x0:u8), 1.5:f32)"},
        {"u8", "divide(x, 300)", "f32 = divide[f32]:f32(cast:f32(x0:u8), 300:f32)"},
        {"i16", "exp(x)", "f32 = exp[f32]:f32(cast:f32(x0:i16))"},
        {"bool", "exp(x)", "f32 = exp[f32]:f32(cast:f32(x0:bool))"},
        {"i32", "fma(x, 2, x)", "f64 = fma[f64]:f64(cast:f64(x0:i32), 2:f64, cast:f64(x0:i32))"},
        {"i32 f64", "less(x, y)", "bool = less[f64]:bool(cast:f64(x0:i32), x1:f64)"},
        {"bool bool", "less(x, y)", "bool = less[bool]:bool(x0:bool, x1:bool)"},
        {"bool", "equal(x, 1)", "bool = equal[bool]:bool(x0:bool, 1:bool)"},
        {"f32 f16 bf16", "where(x, y, z)", "f32 = where[f32]:f32(ne:bool(x0:f32, 0:f32), x1:f32, x2:f32)"},
        {"bool f16", "where(x, y, 1)", "f16 = where[f32]:f32(x0:bool, x1:f32, 1:f32)"},
        {"bool i64 u8", "where(x, y, z)", "i64 = where[i64]:i64(x0:bool, x1:i64, cast:i64(x2:u8))"},
        {"f16", "copy(x)", "f16 = copy[f32]:f32(x0:f32)"},
        {"f32", "clip(x)", "f32 = clip[f32]:f32(x0:f32; -inf:f32, inf:f32)"},
        {"i32", "clip(x)", "i32 = clip[i32]:i32(x0:i32; 2147483648:i32, 2147483647:i32)"},
        {"u8", "clip(x, -5, 300)", "u8 = clip[u8]:u8(x0:u8; 0:u8, 255:u8)"},
        {"u64", "clip(x, 0x8000000000000000, 0xfffffffffffffff0)",
         "u64 = clip[u64]:u64(x0:u64; 9223372036854775808:u64, 18446744073709551600:u64)"},
        {"u8", "clip(x, 1, 0xffffffffffffffff)", "u8 = clip[u8]:u8(x0:u8; 1:u8, 255:u8)"},
        {"i64", "clip(x, 0xffffffffffffffff, 5)", "i64 = clip[i64]:i64(x0:i64; 18446744073709551615:i64, 5:i64)"},
        {"u8", "clip(x, 5.0)", "u8 = clip[u8]:u8(x0:u8; 5:u8, 255:u8)"},
        {"i64", "clip(x, -1e300, 1e300)", "i64 = clip[i64]:i64(x0:i64; 9223372036854775808:i64, 9223372036854775807:i64)"},
        {"f16", "leaky_relu(x)", "f16 = leaky_relu[f32]:f32(x0:f32; 0.00999999978:f32)"},
        {"f64", "leaky_relu(x, 1 / 4)", "f64 = leaky_relu[f64]:f64(x0:f64; 0.25:f64)"},
        {"i32", "leaky_relu(x, 1)", "f64 = leaky_relu[f64]:f64(cast:f64(x0:i32); 1:f64)"},
        {"f16", "floor(x)", "f16 = floor[f32]:f32(x0:f32)"},
        {"i32", "floor(x)", "i32 = floor[i32]:i32(x0:i32)"},
        {"u8", "floor(x + 0.5)", "f32 = floor[f32]:f32(add:f32(cast:f32(x0:u8), 0.5:f32))"},
        {"i32", "rint(x)", "f64 = rint[f64]:f64(cast:f64(x0:i32))"},
        {"i16 u8", "quot(x, y)", "i16 = quot:i16(x0:i16, cast:i16(x1:u8))"},
        {"u64", "gcd(x, 12)", "u64 = gcd[u64]:u64(x0:u64, 12:u64)"},
        /* literals alone */
        {"f32", "exp(1) * x", "f32 = mul:f32(2.71828175:f32, x0:f32)"},
        {"f64", "x * exp(-0.03)", "f64 = mul:f64(x0:f64, 0.97044553354850815:f64)"},
        {"f64", "2 * PI * x", "f64 = mul:f64(6.2831853071795862:f64, x0:f64)"},
        {"i32", "x * maximum(2, 3)", "i32 = mul:i32(x0:i32, 3:i32)"},
        {"i32", "x * (7 // 2) + 2 ** 10", "i32 = add:i32(mul:i32(x0:i32, 3:i32), 1024:i32)"},
        {"i32", "x + gcd(12, 18)", "i32 = add:i32(x0:i32, 6:i32)"},
        {"i32", "x + quot(-7, 2)", "i32 = add:i32(x0:i32, 4294967293:i32)"},
        {"i32", "x * 2 ** -1", "f64 = mul:f64(cast:f64(x0:i32), 0.5:f64)"},
        {"i32", "x + sqrt(4)", "f64 = add:f64(cast:f64(x0:i32), 2:f64)"},
        {"i32", "x + floor(2.5)", "f64 = add:f64(cast:f64(x0:i32), 2:f64)"},
        {"f32", "x + (1 < 2 ? 3 : 4)", "f32 = add:f32(x0:f32, 3:f32)"},
        {"f32", "x + (1 < 2)", "f32 = add:f32(x0:f32, cast:f32(1:bool))"},
        {"f32", "x + where(not 1 > 2 and signbit(-0.0), 3, 4.5)", "f32 = add:f32(x0:f32, 3:f32)"},
        {"i64", "x + 2 ** 62", "i64 = add:i64(x0:i64, 4611686018427387904:i64)"},
        {"f32", "x + frexp.exponent(8.0)", "f32 = add:f32(x0:f32, 4:f32)"},
        {"f16", "leaky_relu(x, exp(-3))", "f16 = leaky_relu[f32]:f32(x0:f32; 0.0497870669:f32)"},
        {"f32", "auto t = 2 * pi; x * t", "f32 = mul:f32(x0:f32, 6.28318548:f32)"},
        {"f16 f32", "auto t = x * 2; t", "f16 = mul:f32(x0:f32, 2:f32)"},
        {"f16 f32", "auto t = x * 2; t + y", "f32 = add:f32(mul:f32(x0:f32, 2:f32), x1:f32)"},
        {"i32", "rem(x, 7)", "i32 = rem:i32(x0:i32, 7:i32)"},
        {"i32", "rem(x, 0.5)", "f64 = rem:f64(cast:f64(x0:i32), 0.5:f64)"},
        {"bf16 i8", "rem(x, y)", "bf16 = rem:f32(x0:f32, cast:f32(x1:i8))"},
        {"i32", "copysign(x, -1)", "f64 = copysign[f64]:f64(cast:f64(x0:i32), -1:f64)"},
        {"i32", "negative((i64)x)", "i64 = negative[i64]:i64(cast:i64(x0:i32))"},
        {"f32", "rint(trunc(ceil(x)))", "f32 = rint[f32]:f32(trunc[f32]:f32(ceil[f32]:f32(x0:f32)))"});

  CHECK("refusals", QUERN_E_DTYPE,
        {"", "1", "expression:1:1: this has no dtype: literals take the other operand's; write a cast, (f32)1"},
        {"", "y = 1 + 2", "expression:1:1: this has no dtype"},
        {"", "param a; y = a", "expression:1:10: this has no dtype: parameters take the other operand's"},
        {"f32", "param a; x * (a < 1)", "1:17: this has no dtype: parameters"},
        {"f32", "x > 0 ? 1 : 2", "1:7: this has no dtype: literals"},
        {"f32", "param a; x > 0 ? 1 : a", "1:16: this has no dtype: parameters"},
        {"f32", "param a; a ? x : 0", "1:12: this has no dtype: parameters"},
        {"f32", "param a; !a && x", "1:10: this has no dtype: parameters"},
        {"f32", "param a; x && a", "1:12: this has no dtype: parameters"},
        {"f32", "exp(1)", "1:1: this has no dtype: literals"},
        {"f32", "as_u32(exp(1)) * x", "1:1: this has no dtype"},
        {"f32", "sum(1) + x", "1:1: this has no dtype"},
        {"f32", "x + 2 ** 63", "1:7: the number does not fit 64 bits"},
        {"f32", "x + add(9223372036854775807, 1)", "1:5: the number does not fit 64 bits"},
        {"f32", "gcd(1.5, 2) * x", "does not take f64"},
        {"f32", "quot(1.5, 2) * x", "1:1: quot of f64: it takes integers"},
        {"f32", "param a; auto t = a * 2; x * t", "this has no dtype: parameters"},
        {"f32", "param a; exp(a) * x", "1:10: this has no dtype: parameters"},
        {"f32", "x > 0 ? exp(1) : 2", "1:7: this has no dtype: literals"},
        {"f32", "as_u32(1) + x", "1:1: this has no dtype"},
        {"i32", "1 << x", "1:3: this has no dtype"},
        {"i32", "param a; a << x", "1:12: this has no dtype"},
        {"i32", "param a; x + (a & 1)", "1:17: this has no dtype"},
        {"i32", "param a; x + ~a", "1:14: this has no dtype"},
        {"bool", "x + 1", "1:3: bool with the number 1: compare with a condition, or cast: (i32)x"},
        {"bool", "x == 1", "bool with the number 1"},
        {"bool", "param a; x * a", "bool with a parameter"},
        {"bool", "param a; x ? x : a + 1", "bool with a parameter"},
        {"bool bool", "x + y", "'+' of two bools: write &, | or ^, or cast one: (i32)x"},
        {"bool bool", "x / y", "'/' of two bools"},
        {"bool", "-x", "'-' of a bool: write !x, or cast: (i32)x"},
        {"bool", "+x", "'+' of a bool"},
        {"i64", "x + (u64)x", "1:3: i64 with u64 has no common dtype: cast one, (i64)x or (f64)x"},
        {"i64", "pow((u64)x, x)", "1:1: u64 with i64 has no common dtype"},
        {"f32", "x & 1", "'&' of floats: as_u32(x) or as_u64(x) gives the bits"},
        {"i32", "x & 1.5", "'&' of floats"},
        {"f32", "x + (1.5 | 1)", "'|' of floats"},
        {"f32", "~x", "'~' of a float: as_u32(x) or as_u64(x) gives the bits"},
        {"f32", "x + ~1.5", "'~' of a float"},
        {"f32", "x << 1", "'<<' wants integers"},
        {"i32 f32", "x >> y", "'>>' wants integers"},
        {"bool", "x << 1", "'<<' wants integers"},
        {"i32 bool", "x << y", "'<<' wants integers"},
        {"i32", "x << 1.5", "a float literal where i32 is expected: write a cast"},
        {"i32", "param a; x << a / 2", "a float where i32 is expected: write a cast"},
        {"f32", "x + (1 << 63)", "cannot shift these numbers"},
        {"f32", "x + (1 >> -1)", "cannot shift these numbers"},
        {"f32", "x + 9223372036854775807 * 2", "1:25: the number does not fit 64 bits"},
        {"f32", "x + (-9223372036854775807 - 2)", "1:27: the number does not fit 64 bits"},
        {"f32", "x + (9223372036854775807 + 1)", "1:26: the number does not fit 64 bits"},
        {"u8", "x + 256", "256 does not fit u8"},
        {"u8", "x + -1", "-1 does not fit u8"},
        {"i32", "x + 4294967296", "4294967296 does not fit i32"},
        {"i32", "param a; x + (a + 4294967296)", "4294967296 does not fit i32"},
        {"f32", "(u8)300 + x", "300 does not fit u8"},
        {"f32", "(bool)2 ? x : 0", "neither 0 nor 1"},
        {"f32", "param a; (bool)(a + 1) ? x : 0", "arithmetic with a parameter where bool is expected"},
        {"f32", "i32 t = x; t", "1:5: a f32 where i32 is declared: write the cast, (i32)"},
        {"f16", "bool t = x; t", "a f16 where bool is declared: write the cast, (bool)"},
        {"f32", "i32 t = 1.5; x + t", "a float literal where i32 is expected"},
        {"f32", "param a; i32 t = a / 2; x + t", "a float where i32 is expected"},
        {"i32", "as_u64(x)", "as_u64 of i32: the sizes differ"},
        {"f16", "as_u32(x)", "as_u32 of f16: the sizes differ"},
        {"bool", "as_u32(x)", "as_u32 of bool: the sizes differ"},
        {"f16", "quot(x, 2)", "1:1: quot of f16: it takes integers"},
        {"i32", "gcd(x, 2.5)", "1:1: gcd does not take f64"},
        {"bool", "rem(x, x)", "rem of bool: cast it first, (i32)x"},
        {"bool", "floor(x)", "floor does not take bool"},
        {"bool", "negative(x)", "negative does not take bool"},
        {"i32", "negative((bool)x)", "negative does not take bool"},
        {"i32", "add((u64)x, x)", "1:1: u64 with i32 has no common dtype"},
        {"f32 f32", "leaky_relu(x, y)", "leaky_relu: slope is a parameter: a number or a param, no operand"},
        {"i32", "clip(x, 0.5)", "clip: parameter 1 (min): not a whole number, but it computes in i32 here"},
        {"i32", "clip(x, NAN)", "clip: parameter 1 (min): NaN, but it computes in i32 here"},
        {"i32", "param a; clip(x, a / 2)", "a float where i32 is expected"},
        {"bool", "equal(x, 2)", "neither 0 nor 1"},
        {"bool", "param a; equal(x, a + 1)", "arithmetic with a parameter where bool is expected"},
        {"f32", "kernel: y = x;\n z = ~y", "kernel:2:6: '~' of a float"});

  /* Values are made once, in an order in which arguments come first, and only those that are needed. */
  static const uint8_t floats[] = {QN_F32, QN_F32, QN_F32};
  qn_expression *e;
  qn_typed *typed;
  qn_expression_parse(qn_registry_ctx(NULL), "param a; param b; f32 dead = exp(x * b); f32 t = x * y + 1; y1 = t * t; y2 = (x * y + 1) * a - (y + z)", &e);
  is_int(qn_typing_run(e, floats, &typed), QUERN_OK, "an expression with a common part and a dead one");
  int n_kind[QN_VALUE_PRIMITIVE + 1] = {0}, in_order = 1;
  for (int32_t i = 0; i < typed->n_values; i++) {
    const qn_value *v = &typed->values[i];
    n_kind[v->kind]++;
    for (int32_t k = 0; k < v->n_args + v->n_params; k++) in_order &= typed->args[v->first_arg + k] < i;
  }
  ok(in_order, "arguments come first");
  is_int(n_kind[QN_VALUE_OP], 0, "the dead call is left out");
  is_int(n_kind[QN_VALUE_PRIMITIVE], 6, "common parts are made once");
  is_int(n_kind[QN_VALUE_INPUT], 3, "inputs are all there");
  is_int(n_kind[QN_VALUE_PARAM], 2, "and params, that of the dead part, too");
  is_int(typed->n_out, 2, "two outputs");
  qn_typing_free(typed);
  qn_expression_free(e);

  /* So it is when there are many. */
  char *text = malloc(60000), *at = text;
  for (int round = 0; round < 2; round++)
    for (int k = 0; k < 500; k++) at += sprintf(at, "f32 t%d_%d = x * %d + %d;", round, k, k, round);
  sprintf(at, "t0_0");
  for (int k = 0; k < 1000; k++) strcat(at, k % 2 ? " - t0_" : " + t1_"), sprintf(at + strlen(at), "%d", k / 2);
  qn_expression_parse(qn_registry_ctx(NULL), text, &e);
  is_int(qn_typing_run(e, floats, &typed), QUERN_OK, "an expression of many values");
  is_int(typed->n_values, 1 + 500 + 500 + 2 * 500 + 1000, "each is made once");
  qn_typing_free(typed);
  qn_expression_free(e);
  free(text);

  /* Numbers are folded and rounded in the default environment, whatever the thread's. */
  char out[OUT_BYTES];
  fesetround(FE_UPWARD);
  quern_status status = qn_expression_parse(qn_registry_ctx(NULL), "x * 0.1 + 1 / 3", &e);
  if (status == QUERN_OK) status = qn_typing_run(e, floats, &typed);
  fesetround(FE_TONEAREST);
  if (status) bail("%s", quern_last_error());
  print_outputs(typed, out);
  is_str(out, "f32 = add:f32(mul:f32(x0:f32, 0.100000001:f32), 0.333333343:f32)", "numbers are the same under another rounding mode");
  qn_typing_free(typed);
  qn_expression_free(e);
  return done_testing();
}
