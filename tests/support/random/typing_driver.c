/* SPDX-License-Identifier: Apache-2.0
 *
 * typing_driver: what runtime/lang/parse/expression.c and runtime/lang/typing/typing.c make of expressions, as text: for t550-agree.lua.
 * Standard input: for each case a line `DTYPE... BYTES`, then so many bytes of text, then a newline. For each case it
 * prints, in this order, as far as it comes:
 *   canonical TEXT / name NAME / inputs NAME... / outputs NAME... / params NAME...
 *   value lines, numbered from 0: input TYPE INDEX | param TYPE INDEX | const TYPE HEX | prim OP TYPE VALUE... |
 *     op NAME K OUTPUT VALUE... | kernel NAME OUTPUT VALUE... | reduce NAME TYPE AXES PART ACCUMULATOR VALUE... | count | index
 *   out VALUE DTYPE
 *   end OK, or end STATUS and the message, its lines joined by '|' */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/base/status.h"
#include "runtime/core/row/row_program.h"
#include "runtime/lang/typing/typing.h"

static const char *type_name(int dtype) { return qn_dtype_infos[dtype].name; }

static void print_names(const char *what, int n, const char *const *names) {
  printf("%s", what);
  for (int k = 0; k < n; k++) printf(" %s", names[k]);
  printf("\n");
}

static void print_expression(const qn_expression *e) {
  printf("canonical %s\nname %s\n", e->canonical, e->name);
  print_names("inputs", e->n_in, e->in_names);
  print_names("outputs", e->n_out, e->out_names);
  print_names("params", e->n_params, e->param_names);
}

static void print_typed(const qn_typed *typed) {
  for (int i = 0; i < typed->n_values; i++) {
    const qn_value *v = &typed->values[i];
    switch (v->kind) {
      case QN_VALUE_INPUT: printf("input %s %d", type_name(v->type), v->index); break;
      case QN_VALUE_PARAM: printf("param %s %d", type_name(v->type), v->index); break;
      case QN_VALUE_CONSTANT: printf("const %s %llx", type_name(v->type), (unsigned long long)v->bits); break;
      case QN_VALUE_PRIMITIVE: printf("prim %s %s", v->primitive->op, type_name(v->type)); break;
      case QN_VALUE_KERNEL: printf("kernel %s %d", v->kernel->name, v->index); break;
      case QN_VALUE_REDUCE: printf("reduce %s %s %d %d %s", v->reducer->name, type_name(v->type), v->index, v->reducer->n_parts > 1 ? (int)v->bits + 1 : 0,
                                    type_name(v->reducer->dtype)); break;
      case QN_VALUE_SCAN: printf("scan %s %s %d %d", v->op->info->name, type_name(v->type), v->index, (int)v->bits); break;
      case QN_VALUE_INDEX: printf("index"); break;
      case QN_VALUE_COUNT: printf("count"); break;
      default: printf("op %s %s %d", v->op->info->name, type_name(v->kernel_dtype), v->index);
    }
    for (int k = 0; k < v->n_args + v->n_params; k++) printf(" %d", typed->args[v->first_arg + k]);
    printf("\n");
  }
  for (int k = 0; k < typed->n_out; k++) printf("out %d %s\n", typed->out[k], type_name(typed->out_dtypes[k]));
}

static void print_end(quern_status status) {
  if (status == QUERN_OK) {
    printf("end OK\n");
    return;
  }
  printf("end %d ", status);
  for (const char *c = quern_last_error(); *c; c++) putchar(*c == '\n' ? '|' : *c);
  printf("\n");
}

/* The dtypes of the line, and the number of bytes behind them; -1: it is not as it should be. */
static long read_header(char *line, uint8_t *dtypes) {
  int n = 0;
  long bytes = -1;
  for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
    int d = 0;
    while (d < QN_DTYPE_COUNT && strcmp(type_name(d), word) != 0) d++;
    if (d < QN_DTYPE_COUNT && n < QN_MAX_OPERANDS)
      dtypes[n++] = (uint8_t)d;
    else
      bytes = atol(word);
  }
  return bytes;
}

int main(void) {
  static char line[1000];
  while (fgets(line, sizeof line, stdin)) {
    uint8_t dtypes[QN_MAX_OPERANDS] = {0};
    long bytes = read_header(line, dtypes);
    char *text = bytes < 0 ? NULL : malloc((size_t)bytes + 1);
    if (!text || fread(text, 1, (size_t)bytes, stdin) != (size_t)bytes || getchar() != '\n') return 1;
    text[bytes] = 0;
    qn_expression *expression = NULL;
    qn_typed *typed = NULL;
    quern_status status = qn_expression_parse(qn_registry_ctx(NULL), text, &expression);
    if (status == QUERN_OK) {
      print_expression(expression);
      status = qn_typing_run(expression, dtypes, &typed);
      if (status == QUERN_OK) print_typed(typed);
    }
    print_end(status);
    qn_typing_free(typed);
    qn_expression_free(expression);
    free(text);
  }
  return 0;
}
