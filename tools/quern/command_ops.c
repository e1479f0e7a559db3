/* SPDX-License-Identifier: Apache-2.0
 *
 * command_ops.c: quern ops: the ops that expressions can call, as text or as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "command_tables.h"
#include "commands.h"
#include "operands/operand.h"
#include "say.h"

/* ---- Text ---- */

/* "leaky_relu(x, slope=0.01)": how an expression calls it. */
static void signature(const quern_op_info *info, char *text, size_t size) {
  char number[OPERAND_NUMBER_SIZE];
  size_t n = (size_t)snprintf(text, size, "%s(", info->name);
  for (int32_t k = 0; k < info->n_in && n < size; k++)
    n += (size_t)snprintf(text + n, size - n, "%s%s", k ? ", " : "", info->args[k].name);
  for (int32_t k = 0; k < info->n_params && n < size; k++) {
    const quern_scalar *value = &info->params[k].value;
    n += (size_t)snprintf(text + n, size - n, "%s%s", info->n_in + k ? ", " : "", info->params[k].name);
    if (n < size && value->kind != QUERN_NONE)
      n += (size_t)snprintf(text + n, size - n, "=%s", operand_number_text(value, number));
  }
  if (n < size) snprintf(text + n, size - n, ")");
}

/* A text of several lines as one. */
static void print_joined(const char *text) {
  for (; *text; text++) putchar(*text == '\n' ? ' ' : *text);
}

static void print_row(const quern_op_info *info) {
  char text[512];
  signature(info, text, sizeof text);
  printf("%-36s ", text);
  print_joined(info->doc);
  putchar('\n');
}

static void print_all(const quern_op_info *info) {
  static const char *const classes[] = {"basic", "workspace", "dynamic", "reduction"};
  char text[512];
  signature(info, text, sizeof text);
  printf("op: %s\ndoc: ", text);
  print_joined(info->doc);
  if (info->formula[0]) {
    printf("\nformula: ");
    print_joined(info->formula);
  }
  putchar('\n');
  for (int32_t k = 0; k < info->n_in + info->n_out; k++)
    printf("%s %s: %s\n", info->args[k].is_output ? "output" : "input", info->args[k].name, info->args[k].dtypes);
  for (int32_t k = 0; k < info->n_params; k++)
    printf("param %s: %s\n", info->params[k].name, operand_number_text(&info->params[k].value, text));
  printf("class: %s\n", info->op_class >= 0 && info->op_class < 4 ? classes[info->op_class] : "unknown");
  if (info->backward) printf("backward: %s\n", info->backward);
}

/* ---- JSON ---- */

/* How many bytes the UTF-8 character at `text` has; 0: it is none. */
static int utf8_length(const unsigned char *text) {
  const int n = text[0] < 0x80                      ? 1
                : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                : text[0] >= 0xe0 && text[0] < 0xf0 ? 3
                : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                    : 0;
  for (int k = 1; k < n; k++)
    if ((text[k] & 0xc0) != 0x80) return 0;
  const int second = n > 2 ? text[1] : 0; /* too long a form, a surrogate, beyond the last character */
  if ((text[0] == 0xe0 && second < 0xa0) || (text[0] == 0xed && second > 0x9f) || (text[0] == 0xf0 && second < 0x90) ||
      (text[0] == 0xf4 && second > 0x8f))
    return 0;
  return n;
}

static void json_string(const char *text) {
  putchar('"');
  for (const unsigned char *at = (const unsigned char *)(text ? text : ""); *at;) {
    const int n = utf8_length(at);
    if (*at == '"' || *at == '\\')
      printf("\\%c", *at);
    else if (*at == '\n')
      fputs("\\n", stdout);
    else if (*at < ' ' || *at == 0x7f)
      printf("\\u%04x", *at);
    else if (n == 0)
      fputs("\\ufffd", stdout);
    else
      fwrite(at, 1, (size_t)n, stdout);
    at += n ? n : 1;
  }
  putchar('"');
}

/* "f16 f32" as a list of strings. */
static void json_words(const char *words) {
  char word[64];
  putchar('[');
  for (int k = 0; *words; k++) {
    const size_t n = strcspn(words, " ");
    snprintf(word, sizeof word, "%.*s", (int)(n < 60 ? n : 60), words);
    if (k) fputs(", ", stdout);
    json_string(word);
    words += n + (words[n] == ' ');
  }
  putchar(']');
}

/* JSON has no infinities and no NaN: those are strings. A parameter that must be given has null. */
static void json_number(const quern_scalar *number) {
  char text[OPERAND_NUMBER_SIZE];
  operand_number_text(number, text);
  if (number->kind != QUERN_I64 && number->kind != QUERN_U64 && number->kind != QUERN_F64)
    fputs("null", stdout);
  else if (number->kind == QUERN_F64 && !isfinite(number->v.f[0]))
    json_string(text);
  else
    fputs(text, stdout);
}

static void json_args(const char *key, const quern_arg_info *args, int32_t n) {
  printf(", \"%s\": [", key);
  for (int32_t k = 0; k < n; k++) {
    fputs(k ? ", {\"name\": " : "{\"name\": ", stdout);
    json_string(args[k].name);
    fputs(", \"dtypes\": ", stdout);
    json_words(args[k].dtypes);
    putchar('}');
  }
  putchar(']');
}

static void json_op(const quern_op_info *info) {
  fputs("{\"name\": ", stdout);
  json_string(info->name);
  fputs(", \"doc\": ", stdout);
  json_string(info->doc);
  fputs(", \"formula\": ", stdout);
  json_string(info->formula);
  json_args("inputs", info->args, info->n_in);
  json_args("outputs", info->args + info->n_in, info->n_out);
  fputs(", \"params\": [", stdout);
  for (int32_t k = 0; k < info->n_params; k++) {
    fputs(k ? ", {\"name\": " : "{\"name\": ", stdout);
    json_string(info->params[k].name);
    fputs(", \"default\": ", stdout);
    json_number(&info->params[k].value);
    putchar('}');
  }
  fputs("], \"backward\": ", stdout);
  if (info->backward)
    json_string(info->backward);
  else
    fputs("null", stdout);
  putchar('}');
}

/* ---- The command ---- */

typedef enum list_form { ROWS, NAMES, AS_JSON } list_form;

/* Whether the op is the derivative of one of the context. */
static int is_backward(quern_op *const *ops, int32_t n, const char *name) {
  for (int32_t k = 0; k < n; k++) {
    const char *backward = quern_op_describe(ops[k])->backward;
    if (backward && strcmp(backward, name) == 0) return 1;
  }
  return strstr(name, "_backward") != NULL; /* layer_norm_backward_affine: of weights */
}

/* part 0: ops; 1: backward ops; 2: both, in order of names. Returns how many were listed. */
static int32_t list_part(quern_op *const *ops, int32_t n, int part, list_form form, const char *filter) {
  int32_t n_listed = 0;
  for (int32_t k = 0; k < n; k++) {
    const quern_op_info *info = quern_op_describe(ops[k]);
    if (part != 2 && is_backward(ops, n, info->name) != part) continue;
    if (filter && !strcasestr(info->name, filter) && !strcasestr(info->doc, filter)) continue;
    if (form == ROWS && part == 1 && !n_listed) puts("\nbackward ops, the derivatives of others:");
    if (form == AS_JSON)
      fputs(n_listed ? ",\n " : "\n ", stdout), json_op(info);
    else if (form == NAMES)
      puts(info->name);
    else
      print_row(info);
    n_listed++;
  }
  return n_listed;
}

/* Has the derivatives of specs' ops made, which come behind their ops. One that is too large is none of the ops. */
static void ask_for_derivatives(quern_ctx *ctx) {
  quern_op *op, *backward;
  for (int32_t k = 0; k < quern_op_count(ctx) && quern_op_at(ctx, k, &op) == QUERN_OK; k++) {
    const char *name = quern_op_describe(op)->backward;
    if (name && quern_op_find(ctx, name, &backward) == QUERN_OK) quern_op_release(backward);
    quern_op_release(op);
  }
}

static int list_ops(quern_ctx *ctx, list_form form, const char *filter) {
  ask_for_derivatives(ctx);
  const int32_t n = quern_op_count(ctx);
  int32_t n_ops = 0, n_listed = 0;
  quern_op **ops = calloc((size_t)n + 1, sizeof ops[0]);
  int status = ops ? STATUS_GOOD : complain("out of memory");
  for (; !status && n_ops < n; n_ops++)
    if (quern_op_at(ctx, n_ops, &ops[n_ops])) status = complain_library();
  if (form == AS_JSON && !status) putchar('[');
  if (!status) n_listed = list_part(ops, n, form == ROWS ? 0 : 2, form, filter);
  if (!status && form == ROWS) n_listed += list_part(ops, n, 1, form, filter);
  if (form == AS_JSON && !status) puts("\n]");
  for (int32_t k = 0; k < n_ops; k++) quern_op_release(ops[k]);
  free(ops);
  if (!status && !n_listed && filter && form != AS_JSON) status = complain("no op has '%.100s' in its name or description", filter);
  return status;
}

static int tell_op(quern_ctx *ctx, const char *name, int is_json) {
  quern_op *op = NULL;
  if (quern_op_find(ctx, name, &op)) return complain_library();
  if (is_json)
    json_op(quern_op_describe(op)), putchar('\n');
  else
    print_all(quern_op_describe(op));
  quern_op_release(op);
  return STATUS_GOOD;
}

int command_ops(int argc, char **argv) {
  command_line line = {.usage = ops_usage, .argc = argc, .argv = argv};
  spec_list specs = {0};
  const char *value, *name = NULL, *filter = NULL;
  list_form form = ROWS;
  int status = STATUS_GOOD, got;
  while (!status && (got = command_line_next(&line, ops_options, &value)) != COMMAND_LINE_END) {
    if (got == OPS_JSON)
      form = AS_JSON;
    else if (got == OPS_NAMES)
      form = NAMES;
    else if (got == OPS_FILTER)
      filter = value;
    else if (got == OPS_SPEC)
      status = spec_list_add(&specs, value) ? STATUS_GOOD : STATUS_FAILED;
    else if (got == COMMAND_LINE_MISUSE)
      status = STATUS_MISUSE;
    else if (name)
      status = misuse(ops_usage, "one name at most: '%.100s'", value);
    else
      name = value;
  }
  if (!status && name && filter) status = misuse(ops_usage, "--filter goes with no name");
  quern_ctx *ctx = status ? NULL : open_context(NULL, &specs);
  if (!status && !ctx) status = STATUS_FAILED;
  if (!status) status = name ? tell_op(ctx, name, form == AS_JSON) : list_ops(ctx, form, filter);
  if (!status) status = finish_output();
  quern_ctx_release(ctx);
  spec_list_free(&specs);
  return status;
}
