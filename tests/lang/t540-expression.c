/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads-full
 *
 * t540-expression: the C reader of the expression language: grammar and precedence, names and canonical text, every refusal
 * with its status and place, the limits exactly at and one beyond, a registered op's place in it, locale and errno, lack of
 * memory, a small stack, hostile bytes. What expressions mean is t545's; that Lua reads the same is t550's. */
#include "runtime/core/op/registry.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/lang/parse/expression.h"
#include "runtime/lang/typing/typing.h"
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

#define COUNT(list) (sizeof list / sizeof *list)

static const char *status_name(quern_status status) {
  switch (status) {
    case QUERN_OK: return "OK";
    case QUERN_E_DTYPE: return "DTYPE";
    case QUERN_E_MEMORY: return "MEMORY";
    case QUERN_E_UNSUPPORTED: return "UNSUPPORTED";
    case QUERN_E_SYNTAX: return "SYNTAX";
    case QUERN_E_NOTFOUND: return "NOTFOUND";
    case QUERN_E_LIMIT: return "LIMIT";
    default: return "another status";
  }
}

static quern_ctx *ctx;

/* ---- Trees -------------------------------------------------------------------------------------------------------- */

/* The code as text: operators with parentheses around, calls, statements. Returns how many values the stack holds at most. */
static int print_tree(const qn_expression *e, char *out, size_t size) {
  static char stack[64][2000];
  char made[4000];
  int n = 0, most = 0;
  *out = 0;
  for (int i = 0; i < e->n_code; i++) {
    const qn_instruction *at = &e->code[i];
    char(*x)[2000] = &stack[n - at->n_args];
    switch (at->kind) {
      case QN_CODE_NUMBER:
        if (at->v.number.is_float) snprintf(made, sizeof made, "%.17gf", at->v.number.v.f);
        else snprintf(made, sizeof made, "%lld", (long long)at->v.number.v.i);
        break;
      case QN_CODE_INPUT: snprintf(made, sizeof made, "%s", e->in_names[at->v.index]); break;
      case QN_CODE_PARAM: snprintf(made, sizeof made, "$%s", e->param_names[at->v.index]); break;
      case QN_CODE_VARIABLE: snprintf(made, sizeof made, "v%d", at->v.index); break;
      case QN_CODE_UNARY: snprintf(made, sizeof made, "(%s%s)", qn_syntax_signs[at->what], x[0]); break;
      case QN_CODE_BINARY: snprintf(made, sizeof made, "(%s %s %s)", x[0], qn_syntax_signs[at->what], x[1]); break;
      case QN_CODE_SELECT: snprintf(made, sizeof made, "(%s ? %s : %s)", x[0], x[1], x[2]); break;
      case QN_CODE_CAST: snprintf(made, sizeof made, "((%s)%s)", qn_dtype_infos[at->what].name, x[0]); break;
      case QN_CODE_ASSIGN:
        snprintf(made, sizeof made, "%s%sv%d = %s; ",
                 at->what == QN_DTYPE_NONE ? "" : at->what == QN_ASSIGN_AUTO ? "auto" : qn_dtype_infos[at->what].name,
                 at->what == QN_DTYPE_NONE ? "" : " ", at->v.index, x[0]);
        strncat(out, made, size - strlen(out) - 1);
        n = 0;
        continue;
      default: {
        int length = snprintf(made, sizeof made, "%s(", at->kind == QN_CODE_OP ? at->v.op->info->name : at->v.function->name);
        for (int k = 0; k < at->n_args; k++)
          length += snprintf(made + length, sizeof made - (size_t)length, "%s%s", k ? ", " : "", x[k]);
        snprintf(made + length, sizeof made - (size_t)length, ")");
      }
    }
    n -= at->n_args;
    snprintf(stack[n++], sizeof stack[0], "%.1990s", made);
    if (n > most) most = n;
  }
  if (*out) out[strlen(out) - 1] = 0;
  return most;
}

static void test_trees(void) {
  static const char *const cases[][2] = {
      {"a + b * c", "v0 = (a + (b * c));"},
      {"a - b - c", "v0 = ((a - b) - c);"},
      {"a / b * c", "v0 = ((a / b) * c);"},
      {"a - (b - c)", "v0 = (a - (b - c));"},
      {"-a * b", "v0 = ((-a) * b);"},
      {"-(a * b)", "v0 = (-(a * b));"},
      {"- - a", "v0 = (-(-a));"},
      {"a - -b", "v0 = (a - (-b));"},
      {"!a && b", "v0 = ((!a) && b);"},
      {"~a & b", "v0 = ((~a) & b);"},
      {"a || b && c | d ^ e & f == g << h + i * j", "v0 = (a || (b && (c | (d ^ (e & (f == (g << (h + (i * j)))))))));"},
      {"e & f < g << h", "v0 = (e & (f < (g << h)));"},
      {"a * b + c << d & e ^ f | g && h || i", "v0 = ((((((((a * b) + c) << d) & e) ^ f) | g) && h) || i);"},
      {"a + b << c >= d & e", "v0 = ((((a + b) << c) >= d) & e);"},
      {"a < b && c >= d", "v0 = ((a < b) && (c >= d));"},
      {"(a < b) == c", "v0 = ((a < b) == c);"},
      {"a == (b < c)", "v0 = (a == (b < c));"},
      {"!(a < b) < c", "v0 = ((!(a < b)) < c);"},
      {"a ? b : c ? d : e", "v0 = (a ? b : (c ? d : e));"},
      {"a ? b ? c : d : e", "v0 = (a ? (b ? c : d) : e);"},
      {"a + b ? c + d : e + f", "v0 = ((a + b) ? (c + d) : (e + f));"},
      {"(a ? b : c) + d", "v0 = ((a ? b : c) + d);"},
      {"(f32)a * b", "v0 = (((f32)a) * b);"},
      {"(f32)(a * b)", "v0 = ((f32)(a * b));"},
      {"(f16)-a", "v0 = ((f16)(-a));"},
      {"-(i32)a", "v0 = (-((i32)a));"},
      {"(f32)(i32)a", "v0 = ((f32)((i32)a));"},
      {"(bool)a ^ (u64)b", "v0 = (((bool)a) ^ ((u64)b));"},
      {"exp(a)", "v0 = exp(a);"},
      {"fma(a, b + c, -d)", "v0 = fma(a, (b + c), (-d));"},
      {"exp(exp(a)) + exp(b)", "v0 = (exp(exp(a)) + exp(b));"},
      {"floor(a) + as_u32(b)", "v0 = (floor(a) + as_u32(b));"},
      {"where(a > 0, b, c)", "v0 = where((a > 0), b, c);"},
      {"clip(a)", "v0 = clip(a);"},
      {"clip(a, 0)", "v0 = clip(a, 0);"},
      {"clip(a, 0, 1)", "v0 = clip(a, 0, 1);"},
      {"y = a; z = y + y", "v0 = a; v1 = (v0 + v0);"},
      {"y = a; z = y; y", "v0 = a; v1 = v0; v2 = v0;"},
      {"f16 t = a * 2; return t * t;", "f16 v0 = (a * 2); v1 = (v0 * v0);"},
      {"param s; a * s", "v0 = (a * $s);"},
      {"a * 2; ", "v0 = (a * 2);"},
      {"return a", "v0 = a;"},
      {"exp = a; y = exp(exp)", "v0 = a; v1 = exp(v0);"},
      {"f32 exp = a; exp(exp)", "f32 v0 = a; v1 = exp(v0);"},
      {"f32 out = a; out", "f32 v0 = a; v1 = v0;"},
      {"a /* b */ + /* c \n */ d # e", "v0 = (a + d);"},
      {"a#\n+b", "v0 = (a + b);"},
      {"// a\ny = // b\n a; // c\n z = (// d\n b) # e", "v0 = a; v1 = b;"},
      {"(f32) // a\n b; // c", "v0 = ((f32)b);"},
      /* spellings of Python */
      {"a//\n+b", "v0 = floor_divide(a, (+b));"},
      {"a // b", "v0 = floor_divide(a, b);"},
      {"a * b // c / d", "v0 = (floor_divide((a * b), c) / d);"},
      {"(a) // 2 + b", "v0 = (floor_divide(a, 2) + b);"},
      {"exp(a) // -b // 3", "v0 = floor_divide(floor_divide(exp(a), (-b)), 3);"},
      {"a ** b", "v0 = pow(a, b);"},
      {"-a ** b", "v0 = (-pow(a, b));"},
      {"a ** -b ** c", "v0 = pow(a, (-pow(b, c)));"},
      {"a ** b ** c", "v0 = pow(a, pow(b, c));"},
      {"(a ** b) ** c * d", "v0 = (pow(pow(a, b), c) * d);"},
      {"a * b ** c // d", "v0 = floor_divide((a * pow(b, c)), d);"},
      {"(f64)a ** 2", "v0 = ((f64)pow(a, 2));"},
      {"exp(a) ** (b + c) < d", "v0 = (pow(exp(a), (b + c)) < d);"},
      {"a and b or c", "v0 = ((a && b) || c);"},
      {"a or b and c | d", "v0 = (a || (b && (c | d)));"},
      {"not a and not b", "v0 = ((!a) && (!b));"},
      {"not a < b or c", "v0 = ((!(a < b)) || c);"},
      {"not a == b ? c : d", "v0 = ((!(a == b)) ? c : d);"},
      {"not not a | b", "v0 = (!(!(a | b)));"},
      {"not -a ** 2 > b", "v0 = (!((-pow(a, 2)) > b));"},
      {"where(not a, not b == c, d)", "v0 = where((!a), (!(b == c)), d);"},
      {"a * pi", "v0 = (a * 3.1415926535897931f);"},
      {"a + inf - nan", "v0 = ((a + inff) - nanf);"},
      {"pi = a; pi * 2", "v0 = a; v1 = (v0 * 2);"},
      {"param inf; a * inf", "v0 = (a * $inf);"},
      {"a * e", "v0 = (a * e);"},
      {"auto t = a * 2; t + b", "auto v0 = (a * 2); v1 = (v0 + b);"},
      {"auto = a; auto * 2", "v0 = a; v1 = (v0 * 2);"},
      {"a/**/+b", "v0 = (a + b);"},
      {"a<<b>>c", "v0 = ((a << b) >> c);"},
      {"a<=b", "v0 = (a <= b);"},
      {"a!=!b", "v0 = (a != (!b));"},
      {"\r\n\ta\r\n", "v0 = a;"},
      /* numbers */
      {"a + 0", "v0 = (a + 0);"},
      {"a + 9223372036854775807", "v0 = (a + 9223372036854775807);"},
      {"a + 0xffffffffffffffff", "v0 = (a + -1);"},
      {"a + 0x00000000000000000000ff", "v0 = (a + 255);"},
      {"a + 0XfF", "v0 = (a + 255);"},
      {"a + 0xaAfF0", "v0 = (a + 700400);"},
      {"a + 0.5", "v0 = (a + 0.5f);"},
      {"a + .5", "v0 = (a + 0.5f);"},
      {"a + 5.", "v0 = (a + 5f);"},
      {"a + 0.", "v0 = (a + 0f);"},
      {"a + 00.5", "v0 = (a + 0.5f);"},
      {"a + 0e1", "v0 = (a + 0f);"},
      {"a + 1e3", "v0 = (a + 1000f);"},
      {"a + 1E+3", "v0 = (a + 1000f);"},
      {"a + 1e-3", "v0 = (a + 0.001f);"},
      {"a + 0.1", "v0 = (a + 0.10000000000000001f);"},
      {"a + 0x1.8p3", "v0 = (a + 12f);"},
      {"a + 0x1.8", "v0 = (a + 1.5f);"},
      {"a + 0x.8p0", "v0 = (a + 0.5f);"},
      {"a + 0x1p-1074", "v0 = (a + 4.9406564584124654e-324f);"},
      {"a + 1e-400", "v0 = (a + 0f);"},
      {"a + 1.7976931348623157e308", "v0 = (a + 1.7976931348623157e+308f);"},
      {"a + 9007199254740993.0", "v0 = (a + 9007199254740992f);"},
      {"a + 0x1e+5", "v0 = ((a + 30) + 5);"},
      {"a + PI", "v0 = (a + 3.1415926535897931f);"},
      {"a * INFINITY", "v0 = (a * inff);"},
  };
  char tree[4000];
  group_begin("grammar, precedence and numbers, as trees");
  for (size_t i = 0; i < COUNT(cases); i++) {
    qn_expression *e = NULL;
    group_count(1);
    if (qn_expression_parse(ctx, cases[i][0], &e)) {
      group_fail("%s: %s", cases[i][0], quern_last_error());
      continue;
    }
    if (print_tree(e, tree, sizeof tree) != e->stack) group_fail("%s: a stack of %d", cases[i][0], e->stack);
    if (strcmp(tree, cases[i][1])) group_fail("%s\n  got    %s\n  wanted %s", cases[i][0], tree, cases[i][1]);
    qn_expression_free(e);
  }
  group_end();
}

/* ---- Names and canonical text ------------------------------------------------------------------------------------- */

static void join(char *text, int n, const char *const *names) {
  *text = 0;
  for (int k = 0; k < n; k++) strcat(strcat(text, k ? " " : ""), names[k]);
}

static void test_canonical(void) {
  static const struct {
    const char *text, *canonical, *name, *in, *out, *params;
  } cases[] = {
      {"y=gelu(x*w+b)", "v0 = gelu ( x0 * x1 + x2 )", "expression", "x w b", "y", ""},
      {"bias_gelu: y = gelu(x + b)", "v0 = gelu ( x0 + x1 )", "bias_gelu", "x b", "y", ""},
      {"bias_gelu:gelu(x + b);", "gelu ( x0 + x1 )", "bias_gelu", "x b", "out", ""},
      {"f32: x", "x0", "f32", "x", "out", ""},
      {"b - a + b", "x0 - x1 + x0", "expression", "b a", "out", ""},
      {"param s; param t; x * t + s", "param p0 ; param p1 ; x0 * p1 + p0", "expression", "x", "out", "s t"},
      {"y = x; param s; z = y * s", "v0 = x0 ; param p0 ; v1 = v0 * p0", "expression", "x", "y z", "s"},
      {"y = x; param s", "v0 = x0 ; param p0", "expression", "x", "y", "s"},
      {"f16 t = x; y = t; t * PI", "f16 v0 = x0 ; v1 = v0 ; v0 * PI", "expression", "x", "y out", ""},
      {"return x ;", "return x0", "expression", "x", "out", ""},
      {"x # no\n + 0x1.80P+3 /* no */", "x0 + 0x1.80P+3", "expression", "x", "out", ""},
      {"x ** 2", "pow ( x0 , 2 )", "expression", "x", "out", ""},
      {"-x**2", "- pow ( x0 , 2 )", "expression", "x", "out", ""},
      {"a * b // c // d", "floor_divide ( floor_divide ( x0 * x1 , x2 ) , x3 )", "expression", "a b c d", "out", ""},
      {"y = (a // b) ** c ** 2; z = y", "v0 = pow ( ( floor_divide ( x0 , x1 ) ) , pow ( x2 , 2 ) ) ; v1 = v0", "expression", "a b c", "y z", ""},
      {"not a and not b // c < d or e", "! x0 && ! ( floor_divide ( x1 , x2 ) < x3 ) || x4", "expression", "a b c d e", "out", ""},
      {"not a // b", "! floor_divide ( x0 , x1 )", "expression", "a b", "out", ""},
      {"x * pi + inf * nan", "x0 * PI + INFINITY * NAN", "expression", "x", "out", ""},
      {"f32 pi = x; pi * inf", "f32 v0 = x0 ; v0 * INFINITY", "expression", "x", "out", ""},
      {"k: auto t = x ** 0.5; t // 1;", "auto v0 = pow ( x0 , 0.5 ) ; floor_divide ( v0 , 1 )", "k", "x", "out", ""},
      {"auto auto = x; auto", "auto v0 = x0 ; v0", "expression", "x", "out", ""},
      {"exp = x; y = exp(exp)", "v0 = x0 ; v1 = exp ( v0 )", "expression", "x", "exp y", ""},
      {"x0 = x1; x1 + v0", "v0 = x0 ; x0 + x1", "expression", "x1 v0", "x0 out", ""},
      {"y = (f32)1", "v0 = ( f32 ) 1", "expression", "", "y", ""},
      {"_ + __a1", "x0 + x1", "expression", "_ __a1", "out", ""},
  };
  char names[400];
  group_begin("canonical texts, names, and canonical texts of these");
  for (size_t i = 0; i < COUNT(cases); i++) {
    qn_expression *e = NULL, *again = NULL;
    group_count(1);
    if (qn_expression_parse(ctx, cases[i].text, &e)) {
      group_fail("%s: %s", cases[i].text, quern_last_error());
      continue;
    }
    if (strcmp(e->canonical, cases[i].canonical)) group_fail("%s\n  got    %s\n  wanted %s", cases[i].text, e->canonical, cases[i].canonical);
    if (strcmp(e->name, cases[i].name) || strcmp(e->text, cases[i].text)) group_fail("%s: name %s, text %s", cases[i].text, e->name, e->text);
    join(names, e->n_in, e->in_names);
    if (strcmp(names, cases[i].in)) group_fail("%s: inputs %s", cases[i].text, names);
    join(names, e->n_out, e->out_names);
    if (strcmp(names, cases[i].out)) group_fail("%s: outputs %s", cases[i].text, names);
    join(names, e->n_params, e->param_names);
    if (strcmp(names, cases[i].params)) group_fail("%s: params %s", cases[i].text, names);
    if (qn_expression_parse(ctx, e->canonical, &again))
      group_fail("%s: %s", e->canonical, quern_last_error());
    else if (strcmp(again->canonical, e->canonical) || again->n_code != e->n_code)
      group_fail("%s becomes %s", e->canonical, again->canonical);
    qn_expression_free(again);
    qn_expression_free(e);
  }
  group_end();

  qn_expression *e = NULL;
  is_int(qn_expression_parse(ctx, "exp(x) + gelu(exp(x)) + rem(gelu(y), 2)", &e), QUERN_OK, "an expression that calls");
  ok(e->n_ops == 2 && !strcmp(e->ops[0]->info->name, "exp") && !strcmp(e->ops[1]->info->name, "gelu"), "lists each op once, and no primitive");
  qn_expression_free(e);
  is_int(qn_expression_parse(ctx, "exp(x) * log(y) // gelu(x) ** exp(y)", &e), QUERN_OK, "an expression with operators that call");
  static const char *const called[] = {"floor_divide", "exp", "log", "pow", "gelu"};
  int n_right = 0;
  for (int k = 0; k < e->n_ops && k < 5; k++) n_right += !strcmp(e->ops[k]->info->name, called[k]);
  ok(e->n_ops == 5 && n_right == 5, "lists its ops in the order of its canonical text, %s", e->canonical);
  qn_expression_free(e);
}

/* ---- Refusals ----------------------------------------------------------------------------------------------------- */

static void test_refusals(void) {
  static const struct {
    const char *text;
    quern_status status;
    const char *place, *part;
  } cases[] = {
      {"", QUERN_E_SYNTAX, "1:1", "no output"},
      {"  \n ", QUERN_E_SYNTAX, "2:2", "no output"},
      {"name:", QUERN_E_SYNTAX, "1:6", "no output"},
      {"f32 t = x;", QUERN_E_SYNTAX, "1:11", "no output"},
      {"param a;", QUERN_E_SYNTAX, "1:9", "no output"},
      {"x +", QUERN_E_SYNTAX, "1:4", "expected a value, found the end"},
      {"x + * y", QUERN_E_SYNTAX, "1:5", "expected a value, found '*'"},
      {"(x", QUERN_E_SYNTAX, "1:3", "expected ')' to close '(', found the end"},
      {"(x + y z)", QUERN_E_SYNTAX, "1:8", "expected ')' to close '(', found 'z'"},
      {"x)", QUERN_E_SYNTAX, "1:2", "expected ';' after the expression, found ')'"},
      {"x y", QUERN_E_SYNTAX, "1:3", "expected ';' after the expression, found 'y'"},
      {"x; y", QUERN_E_SYNTAX, "1:4", "nothing may follow the result"},
      {"return x; y", QUERN_E_SYNTAX, "1:11", "nothing may follow return"},
      {"return x y", QUERN_E_SYNTAX, "1:10", "expected ';' after return"},
      {"return", QUERN_E_SYNTAX, "1:7", "expected a value, found the end"},
      {";", QUERN_E_SYNTAX, "1:1", "expected a value, found ';'"},
      {"y = x;;", QUERN_E_SYNTAX, "1:7", "expected a value, found ';'"},
      {"y = x z", QUERN_E_SYNTAX, "1:7", "expected ';' after the value of y, found 'z'"},
      {"f32 = x;", QUERN_E_SYNTAX, "1:5", "expected a name, found '='"},
      {"f32 y x;", QUERN_E_SYNTAX, "1:7", "expected '=' after y, found 'x'"},
      {"f32 i32 = x", QUERN_E_SYNTAX, "1:5", "expected a name, found 'i32'"},
      {"f32", QUERN_E_SYNTAX, "1:4", "expected a name, found the end"},
      {"x + f32", QUERN_E_SYNTAX, "1:5", "type 'f32' where a value is expected"},
      {"x ? y", QUERN_E_SYNTAX, "1:6", "expected ':' in '? :', found the end"},
      {"x ? y : ", QUERN_E_SYNTAX, "1:9", "expected a value"},
      {"exp(x", QUERN_E_SYNTAX, "1:6", "expected ')' after the arguments of exp, found the end"},
      {"exp(x,)", QUERN_E_SYNTAX, "1:7", "expected a value, found ')'"},
      {"fma(x y)", QUERN_E_SYNTAX, "1:7", "expected ')' after the arguments of fma, found 'y'"},
      {"x = = y", QUERN_E_SYNTAX, "1:5", "expected a value"},
      {"x <<= y", QUERN_E_SYNTAX, "1:3", "expected ';' after the expression, found '<<='"},
      {"x === y", QUERN_E_SYNTAX, "1:5", "expected a value, found '='"},
      {"x += 1", QUERN_E_SYNTAX, "1:3", "'+=' is no operator: nothing is changed in place; write y = x + ..."},
      {"y = x; x **= y", QUERN_E_SYNTAX, "1:10", "'**=' is no operator: nothing is changed in place; write y = x ** ..."},
      {"x + = 1", QUERN_E_SYNTAX, "1:5", "expected a value, found '='"},
      {"= 1", QUERN_E_SYNTAX, "1:1", "expected a value, found '='"},
      {"clip(x, min=0, max=1)", QUERN_E_SYNTAX, "1:12", "'=' in a call: clip takes its arguments in their order, without names"},
      {"exp((x = y))", QUERN_E_SYNTAX, "1:8", "expected ')' to close '(', found '='"},
      {"softmax(x, dim=0)", QUERN_E_SYNTAX, "1:12", "unknown keyword 'dim': expected axis or keepdims; others go by place, before these"},
      {"x.sum()", QUERN_E_NOTFOUND, "1:1", "unknown function 'x.sum': no registered op, and operands have no methods: write sum"},
      {"acme.sum(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'acme.sum': no registered op, and operands have no methods: write sum"},
      {"x.astype(y)", QUERN_E_NOTFOUND, "1:1", "unknown function 'x.astype': write a cast, (f32)x"},
      {"x.astype(f32)", QUERN_E_NOTFOUND, "1:1", "unknown function 'x.astype': write a cast, (f32)x"},
      {"x.to(f32)", QUERN_E_NOTFOUND, "1:1", "unknown function 'x.to': write a cast, (f32)x"},
      {"x.float()", QUERN_E_NOTFOUND, "1:1", "unknown function 'x.float': the dtypes are f32 and f64"},
      {"max.initial(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'max.initial': write max_initial"},
      {"gelu.exp(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'gelu.exp'\n"},
      {"jax.nn.gelu(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'jax.nn.gelu': write gelu"},
      {"np.linalg.norm(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'np.linalg.norm': write vector_norm"},
      {"print(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'print': an expression gives values"},
      {"len(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'len': of a vector write sum(0 * x + 1)"},
      {"x + f32(y)", QUERN_E_SYNTAX, "1:5", "type 'f32' where a value is expected: a cast is (f32)x"},
      {"x++", QUERN_E_SYNTAX, "1:2", "'++' is no operator: nothing is changed in place; write y = x + 1"},
      {"(x--) * 2", QUERN_E_SYNTAX, "1:3", "'--' is no operator: nothing is changed in place; write y = x - 1"},
      {"sum(x, keepdims=True)", QUERN_E_SYNTAX, "1:17", "expected 0 or 1, found 'True': flags are 1 and 0"},
      {"x \xc3\x97 2", QUERN_E_SYNTAX, "1:3", "the byte 0xc3 does not belong to the expression language: write *"},
      {"x\xc2\xb2", QUERN_E_SYNTAX, "1:2", "language: write ** 2"},
      {"x \xe2\x89\xa4 1", QUERN_E_SYNTAX, "1:3", "language: write <="},
      {"\xe2\x80\x9c" "x\xe2\x80\x9d", QUERN_E_SYNTAX, "1:1", "language: names are written without quotes"},
      {"x ? y := 1", QUERN_E_SYNTAX, "1:7", "':=' is no operator: write y = ..."},
      {"x.T + 1", QUERN_E_SYNTAX, "1:1", "unknown name 'x.T': only a function may have a namespace, and operands have no attributes: give a view"},
      {"x {y}", QUERN_E_SYNTAX, "1:3", "found '{'"},
      /* operators that mislead */
      {"x % y", QUERN_E_SYNTAX, "1:3", "remainder"},
      {"x < y < z", QUERN_E_SYNTAX, "1:7", "chained comparison: write a < b && b < c"},
      {"x < y == z", QUERN_E_SYNTAX, "1:7", "chained comparison"},
      {"x == y < z", QUERN_E_SYNTAX, "1:8", "chained comparison"},
      {"x == y != z", QUERN_E_SYNTAX, "1:8", "chained comparison"},
      {"x + 1 < y + 2 < z", QUERN_E_SYNTAX, "1:15", "chained comparison"},
      /* tokens and numbers */
      {"x $ y", QUERN_E_SYNTAX, "1:3", "'$' does not belong to the expression language: names have letters"},
      {"x @ y", QUERN_E_SYNTAX, "1:3", "'@' does not belong to the expression language: there is no matrix product"},
      {"x[0]", QUERN_E_SYNTAX, "1:2", "'[' does not belong to the expression language: operands are whole tensors: give a view"},
      /* a comment that divides */
      {"x // ", QUERN_E_SYNTAX, "1:6", "expected a value, found the end; '//' behind a value is floor_divide: a comment begins with '#'"},
      {"y = x // twice it\n", QUERN_E_SYNTAX, "1:16", "found 'it'; '//' behind a value is floor_divide"},
      {"y = x // twice\nz = y", QUERN_E_SYNTAX, "2:1", "found 'z'; '//' behind a value is floor_divide"},
      {"y = x // don't", QUERN_E_SYNTAX, "1:13", "does not belong to the expression language; '//' behind a value is floor_divide"},
      {"y = x // 2nd order", QUERN_E_SYNTAX, "1:11", "literals have no suffix; '//' behind a value is floor_divide"},
      {"y = x // see(1)", QUERN_E_NOTFOUND, "1:10", "'//' behind a value is floor_divide"},
      {"y = x // 2; z = y y", QUERN_E_SYNTAX, "1:19", "found 'y'\n"},
      /* words of other languages */
      {"x ** ", QUERN_E_SYNTAX, "1:6", "expected a value, found the end"},
      {"a == not b", QUERN_E_SYNTAX, "1:6", "'not' binds looser than what is before it: write (not ...)"},
      {"-not b", QUERN_E_SYNTAX, "1:2", "'not' binds looser"},
      {"a ** not b", QUERN_E_SYNTAX, "1:6", "'not' binds looser"},
      {"and = x", QUERN_E_SYNTAX, "1:1", "expected a value, found 'and'"},
      {"f32 or = x", QUERN_E_SYNTAX, "1:5", "expected a name, found 'or'"},
      {"auto f32 = x", QUERN_E_SYNTAX, "1:6", "expected a name, found 'f32'"},
      {"auto t = x", QUERN_E_SYNTAX, "1:11", "no output"},
      {"pi * x; pi = x", QUERN_E_SYNTAX, "1:9", "nothing may follow the result"},
      {"y = pi * x; pi = x", QUERN_E_SYNTAX, "1:13", "'pi' is an input: it was read before"},
      {"x if x > 0 else y", QUERN_E_SYNTAX, "1:3", "found 'if': a choice is condition ? x : y, or where(condition, x, y)"},
      {"if (x > 0) x", QUERN_E_NOTFOUND, "1:1", "unknown function 'if': a choice is condition ? x : y"},
      {"for (i = 0", QUERN_E_NOTFOUND, "1:1", "unknown function 'for': there are no loops"},
      {"for i in x", QUERN_E_SYNTAX, "1:1", "'for' is no value: there are no loops"},
      {"x > 0 and True", QUERN_E_SYNTAX, "1:11", "'True' is no value: flags are 1 and 0, conditions are comparisons"},
      {"x * M_PI", QUERN_E_SYNTAX, "1:5", "'M_PI' is no value: write PI\n"},
      {"x < Inf", QUERN_E_SYNTAX, "1:5", "'Inf' is no value: write INFINITY\n"},
      {"x + NULL", QUERN_E_SYNTAX, "1:5", "'NULL' is no value: there is no such value"},
      {"x + FLT_EPSILON", QUERN_E_SYNTAX, "1:5", "'FLT_EPSILON' is no value: write the number"},
      {"float t = x", QUERN_E_SYNTAX, "1:7", "found 't': the dtypes are f32 and f64"},
      {"(float)x", QUERN_E_SYNTAX, "1:8", "found 'x': the dtypes are f32 and f64"},
      {"2 * (float32) (x)", QUERN_E_SYNTAX, "1:15", "found '(': write a cast, (f32)x"},
      {"(y)x", QUERN_E_SYNTAX, "1:4", "found 'x'\n"},
      {"Gelu(x)", QUERN_E_NOTFOUND, "1:1", "did you mean 'gelu'?"},
      {"ReLU(x)", QUERN_E_NOTFOUND, "1:1", "did you mean 'relu'?"},
      {"arcsin(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'arcsin': write asin"},
      {"power(x, 2)", QUERN_E_NOTFOUND, "1:1", "unknown function 'power': write pow"},
      {"absolute(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'absolute': write abs"},
      {"mod(x, 2)", QUERN_E_NOTFOUND, "1:1", "unknown function 'mod': write remainder(x, y), with the sign of y, or fmod(x, y)"},
      {"fabs(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'fabs': write abs"},
      {"fmaf(x, 0, 1)", QUERN_E_NOTFOUND, "1:1", "unknown function 'fmaf': write fma"},
      {"fabsf(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'fabsf': write abs"},
      {"sinl(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'sinl': write sin"},
      {"np.sin(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'np.sin': write sin"},
      {"np.arctan2(x, y)", QUERN_E_NOTFOUND, "1:1", "unknown function 'np.arctan2': write atan2"},
      {"x * np.pi", QUERN_E_SYNTAX, "1:5", "unknown name 'np.pi': write pi"},
      {"math.e * x", QUERN_E_SYNTAX, "1:1", "unknown name 'math.e': write E"},
      {"float(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'float': the dtypes are f32 and f64"},
      {"x \001", QUERN_E_SYNTAX, "1:3", "the byte 0x01 does not belong"},
      {"x \303\244", QUERN_E_SYNTAX, "1:3", "the byte 0xc3 does not belong"},
      {"2 * \316\261", QUERN_E_SYNTAX, "1:5", "language: names have the letters a to z, digits and _"},
      {"x + \\\n y", QUERN_E_SYNTAX, "1:5", "language: a text may have several lines as it is"},
      {"full_like(x, 2)", QUERN_E_NOTFOUND, "1:1", "unknown function 'full_like': write 0 * x + value"},
      {"x . y", QUERN_E_SYNTAX, "1:3", "'.' does not belong"},
      {"x /* y", QUERN_E_SYNTAX, "1:3", "unfinished comment"},
      {"x /*/", QUERN_E_SYNTAX, "1:3", "unfinished comment"},
      {"x + 1f", QUERN_E_SYNTAX, "1:6", "'f' after a number: literals have no suffix"},
      {"x + 1.5.x", QUERN_E_SYNTAX, "1:9", "'x' after a number"},
      {"x + 0x", QUERN_E_SYNTAX, "1:6", "'x' after a number"},
      {"x + 1e", QUERN_E_SYNTAX, "1:6", "'e' after a number"},
      {"x + 0x1p", QUERN_E_SYNTAX, "1:8", "'p' after a number"},
      {"x + 1.2.3", QUERN_E_SYNTAX, "1:5", "'1.2.3' is no number"},
      {"x + 0x.", QUERN_E_SYNTAX, "1:5", "'0x.' is no number"},
      {"x + 0xp1", QUERN_E_SYNTAX, "1:5", "'0xp1' is no number"},
      {"x + 010", QUERN_E_SYNTAX, "1:5", "octal"},
      {"x + 00", QUERN_E_SYNTAX, "1:5", "octal"},
      {"x + 9223372036854775808", QUERN_E_SYNTAX, "1:5", "does not fit 64 bits with a sign: write it in hex, or as a float"},
      {"x + 0x10000000000000000", QUERN_E_SYNTAX, "1:5", "does not fit 64 bits"},
      {"x + 1e309", QUERN_E_SYNTAX, "1:5", "'1e309' is too large: write INFINITY"},
      {"x + 0x1p1024", QUERN_E_SYNTAX, "1:5", "too large"},
      /* names */
      {"y = x; y = z", QUERN_E_SYNTAX, "1:8", "'y' is already defined"},
      {"f32 y = x; y = z", QUERN_E_SYNTAX, "1:12", "'y' is already defined"},
      {"y = x; f32 y = z", QUERN_E_SYNTAX, "1:12", "'y' is already defined"},
      {"y = y + 1", QUERN_E_SYNTAX, "1:1", "'y' is an input: it was read before"},
      {"y = x; x = y", QUERN_E_SYNTAX, "1:8", "'x' is an input"},
      {"y = a; param a; z = a", QUERN_E_SYNTAX, "1:14", "'a' is an input"},
      {"param a; param a; x * a", QUERN_E_SYNTAX, "1:16", "'a' is already defined"},
      {"param a; a = x", QUERN_E_SYNTAX, "1:10", "'a' is already defined"},
      {"PI = x", QUERN_E_SYNTAX, "1:1", "'PI' is a constant"},
      {"param E; x * E", QUERN_E_SYNTAX, "1:7", "'E' is a constant"},
      {"f32 NAN = x; NAN", QUERN_E_SYNTAX, "1:5", "'NAN' is a constant"},
      {"out = x; out + 1", QUERN_E_SYNTAX, "1:10", "named out"},
      {"out + 1", QUERN_E_SYNTAX, "1:1", "named out"},
      {"x + acme.y", QUERN_E_SYNTAX, "1:5", "unknown name 'acme.y'"},
      {"acme.y = x", QUERN_E_SYNTAX, "1:1", "unknown name 'acme.y'"},
      {"param a.b; x", QUERN_E_SYNTAX, "1:7", "unknown name 'a.b'"},
      {"a.b: y = x", QUERN_E_SYNTAX, "1:1", "unknown name 'a.b'"},
      {"param f32; x", QUERN_E_SYNTAX, "1:7", "expected a name after param, found 'f32'"},
      {"param a x", QUERN_E_SYNTAX, "1:9", "expected ';' after param"},
      {"param 1; x", QUERN_E_SYNTAX, "1:1", "'param' cannot be a variable's name"},
      {"x + return", QUERN_E_SYNTAX, "1:5", "'return' cannot be a variable's name"},
      {"x + param", QUERN_E_SYNTAX, "1:5", "'param' cannot be a variable's name"},
      {"param = x", QUERN_E_SYNTAX, "1:1", "'param' cannot be a variable's name"},
      {"x + lookup", QUERN_E_SYNTAX, "1:5", "'lookup' cannot be a variable's name"},
      /* what belongs to the bodies of ops */
      {"T t = x; t", QUERN_E_SYNTAX, "1:1", "T has no meaning here"},
      {"(T)x", QUERN_E_SYNTAX, "1:2", "T has no meaning here"},
      {"x * T", QUERN_E_SYNTAX, "1:5", "T has no meaning here"},
      {"rare (x > 0) { y = x; }", QUERN_E_SYNTAX, "1:1", "rare belongs to the body of an op"},
      {"x + rare", QUERN_E_SYNTAX, "1:5", "rare belongs"},
      {"rare = x", QUERN_E_SYNTAX, "1:1", "rare belongs"},
      {"raw_u32(x)", QUERN_E_SYNTAX, "1:1", "raw_u32 is for the library's own math; write as_u32"},
      {"lookup(t, x)", QUERN_E_SYNTAX, "1:1", "lookup is for the library's own math"},
      /* calls */
      {"exp()", QUERN_E_SYNTAX, "1:1", "exp takes 1 argument, got 0"},
      {"exp(x, y)", QUERN_E_SYNTAX, "1:1", "exp takes 1 argument, got 2"},
      {"add(x)", QUERN_E_SYNTAX, "1:1", "add takes 2 arguments, got 1"},
      {"sum(x, 0)", QUERN_E_SYNTAX, "1:1", "sum takes 1 argument, got 2: axes have a name, axis=0"},
      {"floor(x, y)", QUERN_E_SYNTAX, "1:1", "floor takes 1 argument, got 2"},
      {"clip(x, 0, 1, 2)", QUERN_E_SYNTAX, "1:1", "clip takes 1 argument and at most 2 parameters, got 4"},
      {"leaky_relu(x, 1, 2)", QUERN_E_SYNTAX, "1:1", "leaky_relu takes 1 argument and at most 1 parameter, got 3"},
      {"astype(x)", QUERN_E_SYNTAX, "1:1", "astype is no part of an expression: write a cast, (f32)x"},
      {"full()", QUERN_E_SYNTAX, "1:1", "full is no part of an expression: write the number"},
      {"y = gelo(x)", QUERN_E_NOTFOUND, "1:5", "unknown function 'gelo', did you mean 'gelu'?"},
      {"gleu(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'gleu', did you mean 'gelu'?"},
      {"lgo(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'lgo', did you mean 'log'?"},
      {"flor(x)", QUERN_E_NOTFOUND, "1:1", "did you mean 'floor'?"},
      {"as_u3(x)", QUERN_E_NOTFOUND, "1:1", "did you mean 'as_u32'?"},
      {"as_q99(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'as_q99'\n"},
      {"Exp(x)", QUERN_E_NOTFOUND, "1:1", "did you mean 'exp'?"},
      {"acme.swishy(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'acme.swishy'"},
      {"quite_another_thing(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'quite_another_thing'"},
      {"PI(x)", QUERN_E_NOTFOUND, "1:1", "unknown function 'PI'"},
      {"y = x;\n z = y +\n  ;", QUERN_E_SYNTAX, "3:3", "expected a value, found ';'"},
      {"vendor.op(x)", QUERN_E_UNSUPPORTED, "1:1", "vendor.op is an op that the host registered"},
      {"1 + vendor(x)", QUERN_E_UNSUPPORTED, "1:5", "vendor is an op that the host registered"},
      /* the last: a build of some ops only has it not */
      {"saturate_cast(x)", QUERN_E_SYNTAX, "1:1", "a cast wraps; clip before it: (i8)clip(x, -128, 127)"},
  };
  quern_op *last;
  const int has_last = !quern_op_find(ctx, "saturate_cast", &last);
  if (has_last) quern_op_release(last);
  group_begin("refusals: status, place, words");
  for (size_t i = 0; i < COUNT(cases) - !has_last; i++) {
    char wanted[200];
    qn_expression *e = NULL;
    quern_status status = qn_expression_parse(ctx, cases[i].text, &e);
    group_count(1);
    const char *colon = strchr(cases[i].text, ':');
    int named = colon && strspn(cases[i].text, "abcdefghijklmnopqrstuvwxyz") == (size_t)(colon - cases[i].text);
    snprintf(wanted, sizeof wanted, "%.*s:%s: ", named ? (int)(colon - cases[i].text) : 10, named ? cases[i].text : "expression",
             cases[i].place);
    if (status != cases[i].status)
      group_fail("%s: %s, wanted %s: %s", cases[i].text, status_name(status), status_name(cases[i].status), quern_last_error());
    else if (strncmp(quern_last_error(), wanted, strlen(wanted)) || !strstr(quern_last_error(), cases[i].part))
      group_fail("%s\n  got %s\n  wanted %s... %s", cases[i].text, quern_last_error(), wanted, cases[i].part);
    if (status == QUERN_OK) qn_expression_free(e);
  }
  group_end();
}

static void test_sentences(void) {
  qn_expression *e;
  qn_expression_parse(ctx, "bias: y = x;\nz = y +\t* x\n", &e);
  is_str(quern_last_error(), "bias:2:9: expected a value, found '*'\n  z = y + * x\n          ^", "the line and a caret, control bytes as blanks");
  char text[1000];
  memset(text, ' ', sizeof text);
  text[999] = 0;
  memcpy(text, "x + y", 5);
  memcpy(text + 500, "* * z", 6);
  qn_expression_parse(ctx, text, &e);
    const char *said = quern_last_error(), *line = strchr(said, '\n');
  ok(strstr(said, "expression:1:503: ") == said && line, "a long line: the place is that in the text");
  line += 3;
  const char *caret = strchr(line, '\n');
  ok(caret && caret - line <= 160 && line[(strchr(caret, '^') - caret) - 3] == '*', "what is shown of it is cut, the caret under its place");
  memset(text, 'a', 999);
  is_int(qn_expression_parse(ctx, text, &e), QUERN_E_SYNTAX, "a name of 999 letters");
  has_str(quern_last_error(), "a name may have 64 letters", "is too long");
  text[64] = ' ';
  memcpy(text + 65, "+ 1", 4);
  is_int(qn_expression_parse(ctx, text, &e), QUERN_OK, "64 letters are not");
  qn_expression_free(e);
  text[64] = '(';
  qn_expression_parse(ctx, text, &e);
  has_str(quern_last_error(), "unknown function 'aaaaaaaa", "nor for a function");
}

/* ---- Limits ------------------------------------------------------------------------------------------------------- */

/* head, then middle n times, then tail. */
static char *repeated(const char *head, const char *middle, int n, const char *tail) {
  char *text = malloc(strlen(head) + strlen(middle) * (size_t)n + strlen(tail) + 1), *at = text;
  at += sprintf(at, "%s", head);
  for (int i = 0; i < n; i++) at += sprintf(at, "%s", middle);
  sprintf(at, "%s", tail);
  return text;
}

/* Like it, the i-th time with i for each %d. */
static char *numbered(const char *head, const char *middle, int n, const char *tail) {
  char *text = malloc(strlen(head) + (strlen(middle) + 12) * (size_t)n + strlen(tail) + 1), *at = text;
  at += sprintf(at, "%s", head);
  for (int i = 0; i < n; i++) {
    for (const char *c = middle; *c; c++) {
      if (c[0] == '%') at += sprintf(at, "%d", i);
      else *at++ = *c;
    }
  }
  sprintf(at, "%s", tail);
  return text;
}

static void limit(char *text, quern_status wanted, const char *what) {
  qn_expression *e = NULL;
  quern_status status = qn_expression_parse(ctx, text, &e);
  is_int(status, wanted, "%s: %s", what, status_name(wanted));
  if (status == QUERN_E_LIMIT && wanted == status) has_str(quern_last_error(), ":1:", "with its place");
  if (status == QUERN_OK) qn_expression_free(e);
  else if (wanted == QUERN_OK) diag("%s", quern_last_error());
  free(text);
}

static void test_limits(void) {
  limit(repeated("x", " ", 65535, ""), QUERN_OK, "65536 bytes");
  limit(repeated("x", " ", 65536, ""), QUERN_E_LIMIT, "65537 bytes");
  limit(repeated("x /*", "a", 65530, "*/"), QUERN_OK, "65536 bytes with a comment");
  static const struct {
    const char *what, *open, *inside, *close;
  } nests[] = {{"parentheses", "(", "x", ")"}, {"calls", "exp(", "x", ")"}, {"second arguments", "add(x, ", "x", ")"},
               {"signs", "-", "x", ""}, {"casts", "(f32)", "x", ""}, {"selects", "x ? x : ", "x", ""},
               {"first branches", "x ? ", "x", " : x"}, {"parentheses behind operators", "x + x * (", "x", ")"}};
  char name[100], *text;
  for (size_t i = 0; i < COUNT(nests); i++) {
    for (int n = 200; n <= 201; n++) {
      text = repeated("", nests[i].open, n, nests[i].inside);
      snprintf(name, sizeof name, "%d %s", n, nests[i].what);
      limit(repeated(text, nests[i].close, n, ""), n == 200 ? QUERN_OK : QUERN_E_LIMIT, name);
      free(text);
    }
  }
  has_str(quern_last_error(), "expression:1:1809: nested deeper than 200", "at the 201st parenthesis");
  text = repeated("", "(-", 100, "x");
  limit(repeated(text, ")", 100, ""), QUERN_OK, "100 parentheses and 100 signs");
  limit(repeated(text, ")", 99, ") + (x) + ((x))"), QUERN_OK, "what is closed does not count");
  free(text);
  text = repeated("-", "(-", 100, "x");
  limit(repeated(text, ")", 100, ""), QUERN_E_LIMIT, "100 parentheses and 101 signs");
  free(text);
  text = repeated("exp(", "(x) + exp(-x) + (x ? x : -x) + ", 500, "x)");
  limit(repeated(text, " + (x)", 500, ""), QUERN_OK, "nor one beside the other");
  free(text);
  limit(repeated("", "(", 60000, ""), QUERN_E_LIMIT, "60000 open parentheses");
  limit(repeated("", "-", 60000, "x"), QUERN_E_LIMIT, "60000 signs");
  limit(repeated("x", " + x", 2000, ""), QUERN_OK, "a chain of 2000 operators");
  limit(repeated("x", " + x", 2001, ""), QUERN_E_LIMIT, "a chain of 2001 operators");
  limit(repeated("x", " + x * x", 2000, ""), QUERN_OK, "2000 of one level with others between");
  limit(repeated("x", " * x - x", 2001, ""), QUERN_E_LIMIT, "2001 of one level with others between");
  limit(numbered("x", " + x%", 30, ""), QUERN_OK, "31 inputs and an output");
  limit(numbered("x", " + x%", 31, ""), QUERN_E_LIMIT, "32 inputs and an output");
  limit(numbered("x", " + x%", 300, ""), QUERN_E_LIMIT, "301 inputs");
  has_str(quern_last_error(), "expression:1:181: more than 32 inputs and outputs", "at the 33rd");
  limit(numbered("", "y% = x;", 31, ""), QUERN_OK, "31 outputs and an input");
  limit(numbered("", "y% = x;", 32, ""), QUERN_E_LIMIT, "32 outputs and an input");
  limit(numbered("", "y% = x;", 31, "x"), QUERN_E_LIMIT, "31 outputs, a result and an input");
  limit(numbered("", "y% = x;", 31, "z = w"), QUERN_E_LIMIT, "31 outputs and two inputs");
  limit(numbered("", "param a%;", 16, "x"), QUERN_OK, "16 params");
  limit(numbered("", "param a%;", 17, "x"), QUERN_E_LIMIT, "17 params");
  limit(numbered("", "f32 a% = x;", 4500, "x"), QUERN_OK, "4500 locals");
  text = repeated("", "9", 65000, "");
  limit(repeated(text, "", 0, ".0 * x"), QUERN_E_SYNTAX, "a number of 65000 digits");
  free(text);
  limit(repeated("x * 1.", "3", 65000, ""), QUERN_OK, "one of as many decimals");
  limit(repeated("x * 0x", "0", 65000, "1"), QUERN_OK, "one of as many zeros");
  limit(repeated("exp(x", ", x", 20000, ")"), QUERN_E_SYNTAX, "20001 arguments");
}

static void test_values(void) {
  uint8_t dtypes[1] = {QN_F32};
  for (int more = 0; more < 2; more++) {
    /* x and 195 values of each statement; 4095 + more in all beside x */
    char *text = malloc(60000), *at = text;
    int left = 4095 + more, k = 0;
    at += sprintf(at, "f32 a0 = ");
    for (; left > 0; k++) {
      int n = left < 195 ? left : 195;
      for (int i = 0; i < n; i++) *at++ = '-';
      left -= n;
      if (k == 0) at += sprintf(at, "x;");
      else at += sprintf(at, "a%d;", k - 1);
      if (left) at += sprintf(at, "f32 a%d = ", k + 1);
    }
    sprintf(at, "a%d", k - 1);
    qn_expression *e = NULL;
    qn_typed *typed = NULL;
    is_int(qn_expression_parse(ctx, text, &e), QUERN_OK, "%d values are no question of syntax", 4096 + more);
    is_int(qn_typing_run(e, dtypes, &typed), more ? QUERN_E_LIMIT : QUERN_OK, "%d values", 4096 + more);
    if (more) has_str(quern_last_error(), "more than 4096 values", "are too many");
    else is_int(typed->n_values, 4096, "are there");
    qn_typing_free(typed);
    qn_expression_free(e);
    free(text);
  }
}

/* ---- Ops of hosts ------------------------------------------------------------------------------------------------- */

static quern_status nothing(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out, const quern_call *call) {
  (void)self, (void)n_in, (void)in, (void)n_out, (void)out, (void)call;
  return QUERN_E_UNSUPPORTED;
}

static void test_registered(void) {
  quern_op_def def = {.size = sizeof def, .name = "exp", .n_in = 1, .n_out = 1, .call = nothing};
  qn_expression *e = NULL;
  quern_ctx *own;
  quern_ctx_create(NULL, &own);
  is_int(quern_op_register(own, &def), QUERN_OK, "an op over a built-in one");
  is_int(qn_expression_parse(own, "exp(x)", &e), QUERN_OK, "an expression has the built-in meaning of it");
  ok(e->n_ops == 1 && e->ops[0]->builtin && e->ops[0]->registered, "and says which op of the context it is");
  qn_expression_free(e);
  is_int(qn_expression_parse(own, "vendor(x)", &e), QUERN_E_NOTFOUND, "another context's op is not there");
  quern_ctx_release(own);
}

/* ---- Locale, errno ------------------------------------------------------------------------------------------------ */

static void test_locale(void) {
  static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", "ru_RU.UTF-8"};
  int found = 0;
  for (size_t i = 0; i < COUNT(locales) && !found; i++) found = setlocale(LC_ALL, locales[i]) && localeconv()->decimal_point[0] == ',';
  qn_expression *e = NULL;
  errno = 77;
  is_int(qn_expression_parse(ctx, "x * 0.5 + 1e-400", &e), QUERN_OK, "numbers are read");
  is_int(errno, 77, "errno is kept");
  ok(e->code[1].v.number.v.f == 0.5, "and 0.5 is a half%s", found ? " where the locale has a comma" : "");
  qn_expression_free(e);
  qn_expression_parse(ctx, "x * 1e999", &e);
  is_int(errno, 77, "and when they are refused");
  if (!found) skip(1, "no locale with a comma is installed");
  else pass("locale with a comma");
  setlocale(LC_ALL, "C");
}

/* ---- Memory ------------------------------------------------------------------------------------------------------- */

#if !SANITIZED
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static int armed, countdown, sticky, n_failures, n_live;
static size_t asked;

static int must_fail(size_t size) {
  if (!armed) return 0;
  asked += size;
  countdown--;
  if (countdown != 0 && !(sticky && countdown < 0)) return 0;
  n_failures++;
  return 1;
}
void *malloc(size_t n) {
  if (must_fail(n)) return NULL;
  n_live += armed;
  return __libc_malloc(n);
}
void *calloc(size_t n, size_t m) {
  if (must_fail(n * m)) return NULL;
  n_live += armed;
  return __libc_calloc(n, m);
}
void *realloc(void *p, size_t n) {
  if (must_fail(n)) return NULL;
  n_live += armed && !p;
  return __libc_realloc(p, n);
}
void free(void *p) {
  n_live -= armed && p;
  __libc_free(p);
}

static quern_status use(const char *text, const uint8_t *dtypes) {
  qn_expression *e = NULL;
  qn_typed *typed = NULL;
  quern_status status = qn_expression_parse(ctx, text, &e);
  if (status == QUERN_OK) status = qn_typing_run(e, dtypes, &typed);
  if (status == QUERN_OK) qn_typing_free(typed);
  qn_expression_free(e);
  return status;
}

static void test_memory(void) {
  static const uint8_t dtypes[] = {QN_F16, QN_F32, QN_I32};
  char *text = numbered("param s; ", "f32 a% = x * % + y * (s + %);", 60, "y1 = a3 + n; leaky_relu(a7, s)");
  for (int all_after = 0; all_after < 2; all_after++) {
    int n = 0;
    group_begin(all_after ? "no allocation from the n-th on" : "the n-th allocation fails");
    do {
      n++;
      n_failures = n_live = 0;
      countdown = n;
      sticky = all_after;
      armed = 1;
      quern_status status = use(text, dtypes);
      armed = 0;
      group_count(1);
      if (status != (n_failures ? QUERN_E_MEMORY : QUERN_OK)) group_fail("allocation %d: %s: %s", n, status_name(status), quern_last_error());
      if (n_live) group_fail("allocation %d: %d blocks are left", n, n_live);
    } while (n_failures && n < 1000);
    group_end();
    ok(n > 4 && n < 1000, "it asks for %d allocations", n - 1);
  }
  free(text);

  char *const large[] = {repeated("x", "+1*x", 16383, ""), repeated("", "a(", 32768, ""), repeated("", "f32 a=x;", 8192, ""),
                         numbered("", "f32 a%=x;", 4800, "x"), repeated("param a;x", "*(a+1)", 1900, "")};
  for (size_t i = 0; i < COUNT(large); i++) {
    asked = 0;
    countdown = -1;
    sticky = n_live = 0;
    armed = 1;
    use(large[i], dtypes);
    armed = 0;
    ok(asked < 8 << 20 && n_live == 0, "a large text asks for %zu KiB in all", asked >> 10);
    free(large[i]);
  }
}
#else
static void test_memory(void) { skip(1, "malloc belongs to the sanitizer"); }
#endif

/* ---- A small stack ------------------------------------------------------------------------------------------------ */

#define SMALL_STACK (32 << 10)

static void *on_small_stack(void *arg) {
  const char *text = arg;
  uint8_t dtypes[QN_MAX_OPERANDS];
  qn_expression *e = NULL;
  qn_typed *typed = NULL;
  memset(dtypes, QN_F32, sizeof dtypes);
  quern_status status = qn_expression_parse(ctx, text, &e);
  if (status == QUERN_OK) status = qn_typing_run(e, dtypes, &typed);
  qn_typing_free(typed);
  qn_expression_free(e);
  return status == QUERN_OK || status == QUERN_E_LIMIT || status == QUERN_E_DTYPE ? arg : NULL;
}

static void test_stack(void) {
  if (SANITIZED) {
    skip(1, "sanitizers need more stack");
    return;
  }
  char *closed = repeated("x", ")", 200, ""), *params = repeated("param a; x * (", "a + (", 199, "a");
  char *texts[] = {repeated("", "(", 200, closed), repeated("", "exp(", 200, closed), repeated("", "-", 200, "x"),
                   repeated("", "x||x&&x|x^x&(x==1)<x<<x+x*(", 200, closed), repeated("", "x > 0 ? x : ", 200, "x"),
                   repeated("", "fma(x, x, ", 200, closed), repeated("", "(f16)", 200, "x"), repeated(params, ")", 200, ""),
                   repeated("", "-(-abs(", 200, "x"), repeated("x", " + x", 2000, "")};
  group_begin("the deepest texts on a stack of %d KB", SMALL_STACK >> 10);
  for (size_t i = 0; i < COUNT(texts); i++) {
    pthread_attr_t attributes;
    pthread_t thread;
    void *fine = NULL;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SMALL_STACK);
    if (pthread_create(&thread, &attributes, on_small_stack, texts[i])) bail("no thread");
    pthread_join(thread, &fine);
    pthread_attr_destroy(&attributes);
    group_count(1);
    if (!fine) group_fail("%.60s...: %s", texts[i], "another status");
    free(texts[i]);
  }
  group_end();
  free(closed);
  free(params);
}

/* ---- Hostile texts ------------------------------------------------------------------------------------------------ */

/* Parses, and types what can be parsed; statuses and sentences must be sound. */
static void try_text(const char *text, rng *r) {
  qn_expression *e = NULL;
  quern_set_last_error("");
  quern_status status = qn_expression_parse(ctx, text, &e);
  group_count(1);
  if (status == QUERN_OK) {
    uint8_t dtypes[QN_MAX_OPERANDS];
    qn_typed *typed = NULL;
    for (int k = 0; k < QN_MAX_OPERANDS; k++) dtypes[k] = (uint8_t)rng_below(r, QN_F64 + 1);
    status = qn_typing_run(e, dtypes, &typed);
    if (status != QUERN_OK && status != QUERN_E_DTYPE && status != QUERN_E_LIMIT) group_fail("%s: %s", text, status_name(status));
    qn_typing_free(typed);
    qn_expression *again = NULL;
    if (qn_expression_parse(ctx, e->canonical, &again) || strcmp(again->canonical, e->canonical)) group_fail("canonical: %s", e->canonical);
    qn_expression_free(again);
    qn_expression_free(e);
  } else if (status != QUERN_E_SYNTAX && status != QUERN_E_NOTFOUND && status != QUERN_E_LIMIT && status != QUERN_E_UNSUPPORTED) {
    group_fail("%s: %s", text, status_name(status));
  }
  if (status == QUERN_OK) return;
  const char *said = quern_last_error(), *line = strchr(said, '\n'), *caret = line ? strchr(line + 1, '\n') : NULL;
  if (!caret || caret[strlen(caret) - 1] != '^' || strlen(caret) > (size_t)(caret - line) + 1) group_fail("no place in %s", said);
}

static void test_hostile(void) {
  static const char *const words[] = {"x", "y", "z", "1", "0.5", "0xff", "PI", "+", "-", "*", "/", "<", "<=", "==", "&&", "||", "&", "^", "~", "!", "?",
                                      ":", ";", ";", ",", "(", ")", "(", ")", "=", "f32", "f16", "i32", "bool", "(f32)", "(u8)", "exp(", "fma(",
                                      "where(", "clip(", "param", "a", "param a;", "return", "rare", "T", "<<", ">>", "//", "**", "and", "or", "not", "auto", "pi", "#", "if", "/*", "*/", "\n", "%",
                                      "y =", "f32 t =", "t", "{", "}", "<<=", ".", "acme.f(", "\xff", "\x01", "as_u32(", "1e999", "012"};
  rng r;
  rng_seed(&r, 540);
  group_begin("each byte alone, and after a value");
  for (int c = 1; c < 256; c++) {
    char text[8];
    snprintf(text, sizeof text, "%c", c);
    try_text(text, &r);
    snprintf(text, sizeof text, "x%cy", c);
    try_text(text, &r);
  }
  group_end();
  group_begin("random bytes, random words");
  for (int i = 0; i < 30000; i++) {
    char text[400];
    size_t at = 0, n = rng_below(&r, 24) + 1;
    if (i % 4 == 0) {
      for (; at < n; at++) text[at] = (char)(rng_below(&r, 255) + 1);
      text[at] = 0;
    } else {
      for (size_t k = 0; k < n; k++) at += (size_t)snprintf(text + at, sizeof text - at, "%s ", words[rng_below(&r, COUNT(words))]);
    }
    try_text(text, &r);
  }
  group_end();
}

int main(void) {
  quern_op_def vendor = {.size = sizeof vendor, .name = "vendor", .n_in = 1, .n_out = 1, .call = nothing};
  if (quern_ctx_create(NULL, &ctx)) bail("no context");
  quern_op_register(ctx, &vendor);
  vendor.name = "vendor.op";
  quern_op_register(ctx, &vendor);
  test_trees();
  test_canonical();
  test_refusals();
  test_sentences();
  test_limits();
  test_values();
  test_registered();
  test_locale();
  test_memory();
  test_stack();
  test_hostile();
  quern_ctx_release(ctx);
  return done_testing();
}
