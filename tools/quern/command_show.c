/* SPDX-License-Identifier: Apache-2.0
 *
 * command_show.c: quern show: the C text that an expression becomes for operands of given dtypes and shapes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operands/binding.h"
#include "command_line.h"
#include "command_tables.h"
#include "commands.h"
#include "operands/ndarray.h"
#include "say.h"

/* An output takes its dtype from the command line where it is there, its shape from the inputs. */
static int print_source(quern_op *op, int32_t n_in, int32_t n_out, const operand_word *const *of, ndarray *arrays,
                        DLTensor **tensors, quern_shape *shapes) {
  char *text = NULL;
  operand_word unnamed[BINDING_MAX] = {0};
  for (int32_t k = 0; k < n_in; k++)
    if (!ndarray_describe(&arrays[k], of[k])) return STATUS_FAILED;
  for (int32_t k = 0; k < n_out; k++) shapes[k] = (quern_shape){.size = sizeof shapes[k], .device = {kDLCPU, 0}};
  if (quern_op_infer(op, n_in, tensors, n_out, shapes)) return complain_library();
  for (int32_t k = 0; k < n_out; k++)
    if (!ndarray_infer(&arrays[n_in + k], of[n_in + k] ? of[n_in + k] : &unnamed[k], &shapes[k])) return STATUS_FAILED;
  if (quern_op_source(op, n_in, tensors, n_out, tensors + n_in, &text)) return complain_library();
  fputs(text, stdout);
  quern_free(text);
  return finish_output();
}

static int has_dtype(const char *dtypes, const char *name) {
  const size_t n = strlen(name);
  for (const char *at = dtypes; (at = strstr(at, name)); at += n)
    if ((at == dtypes || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return 1;
  return 0;
}

/* Operands of an op where none are given: f32, or i32, or the first dtype that it takes; of one dimension. */
static int usual_words(const quern_op_info *info, word_list *list) {
  for (int32_t k = 0; k < info->n_in; k++) {
    operand_word word = {.has_dtype = 1, .has_shape = 1, .ndim = 1, .shape = {1024}};
    const char *dtypes = info->args[k].dtypes, *dtype = has_dtype(dtypes, "f32") ? "f32" : has_dtype(dtypes, "i32") ? "i32" : dtypes;
    snprintf(word.name, sizeof word.name, "%s", info->args[k].name);
    if (!operand_dtype_find(dtype, strcspn(dtype, " "), &word.dtype)) return complain("%s: its dtypes are not known", info->name);
    if (word_list_add(list, &word, show_usage)) return STATUS_MISUSE;
  }
  return STATUS_GOOD;
}

/* An op by its name is the expression that calls it. */
static int show_op(quern_ctx *ctx, const char *text, const word_list *words, char *call, size_t size, word_list *usual) {
  quern_op *op = NULL;
  int status = STATUS_GOOD;
  for (int k = 0; k < words->n; k++)
    if (strcmp(words->words[k].name, text) == 0) return STATUS_GOOD;
  if (quern_op_find(ctx, text, &op)) return refuse_name(ctx, text);
  write_call(quern_op_describe(op), call, size);
  if (words->n == 0) status = usual_words(quern_op_describe(op), usual);
  quern_op_release(op);
  return status;
}

static int show(quern_ctx *ctx, const char *expression, const word_list *given) {
  const operand_word *of[BINDING_MAX];
  word_list usual = {.n = 0};
  const word_list *words = given->n ? given : &usual;
  char call[480] = "";
  quern_op *op = NULL;
  int status = show_op(ctx, expression, given, call, sizeof call, &usual);
  if (status) return status;
  if (quern_op_compile(ctx, call[0] ? call : expression, &op)) return complain_library();
  const quern_op_info *info = quern_op_describe(op);
  status = bind_words(ctx, info, words, 0, of);
  const size_t n = (size_t)info->n_in + (size_t)info->n_out;
  ndarray *arrays = calloc(n, sizeof arrays[0]);
  DLTensor **tensors = calloc(n, sizeof tensors[0]);
  quern_shape *shapes = calloc((size_t)info->n_out, sizeof shapes[0]);
  if (!status && (!arrays || !tensors || !shapes)) status = complain("out of memory");
  for (size_t k = 0; k < n && !status; k++) tensors[k] = &arrays[k].tensor;
  if (!status) status = print_source(op, info->n_in, info->n_out, of, arrays, tensors, shapes);
  for (size_t k = 0; k < n && arrays; k++) ndarray_end(&arrays[k]);
  free(arrays);
  free(tensors);
  free(shapes);
  quern_op_release(op);
  return status;
}

int command_show(int argc, char **argv) {
  command_line line = {.usage = show_usage, .argc = argc, .argv = argv};
  spec_list specs = {0};
  word_list words = {.n = 0};
  operand_word word;
  char why[WHY_SIZE];
  const char *value, *expression = NULL;
  int status = STATUS_GOOD, got;
  while (!status && (got = command_line_next(&line, show_options, &value)) != COMMAND_LINE_END) {
    if (got == SHOW_SPEC)
      status = spec_list_add(&specs, value) ? STATUS_GOOD : STATUS_FAILED;
    else if (got == COMMAND_LINE_MISUSE)
      status = STATUS_MISUSE;
    else if (!expression)
      expression = value;
    else if (!operand_parse_shape(value, &word, why))
      status = misuse(show_usage, "%s", why);
    else
      status = word_list_add(&words, &word, show_usage);
  }
  if (!status && !expression) status = misuse(show_usage, "an expression is wanted, such as \"y = x * w\"");
  quern_ctx *ctx = status ? NULL : open_context(NULL, &specs);
  if (!status) status = ctx ? show(ctx, expression, &words) : STATUS_FAILED;
  quern_ctx_release(ctx);
  spec_list_free(&specs);
  return status;
}
