/* SPDX-License-Identifier: Apache-2.0
 *
 * op_text.c: see op_text.h. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* stpcpy */
#endif
#include "run/fused/op_text.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"

/* Whether the outputs have to be named: a result is called out, as an input of a backward op may be. */
static int names_outputs(const quern_op_info *info) {
  int is_taken = info->n_out > 1;
  for (int32_t k = 0; k < info->n_in; k++) is_taken |= strcmp(info->args[k].name, "out") == 0;
  return is_taken;
}

char *qn_op_text_call(const quern_op_info *info, int32_t n_shape) {
  const int named = names_outputs(info);
  size_t of_call = strlen(info->name) + 8, bytes = 1;
  for (int32_t k = 0; k < info->n_in; k++) of_call += strlen(info->args[k].name) + 2;
  for (int32_t k = 0; k < info->n_params; k++) {
    of_call += strlen(info->params[k].name) + 2;
    bytes += strlen(info->params[k].name) + 12;
  }
  for (int32_t k = 0; k < info->n_out; k++) bytes += of_call + 2 * strlen(info->args[info->n_in + k].name);
  char *text = malloc(bytes), *at = text;
  if (!text) return NULL;
  for (int32_t k = 0; k < info->n_params; k++) at = stpcpy(stpcpy(stpcpy(at, "param "), info->params[k].name), "; ");
  for (int32_t out = 0; out < info->n_out; out++) {
    const char *output = info->args[info->n_in + out].name;
    if (named) at = stpcpy(stpcpy(at, output), " = ");
    at = stpcpy(at, info->name);
    if (info->n_out > 1) at = stpcpy(stpcpy(at, "."), output);
    at = stpcpy(at, "(");
    for (int32_t k = 0; k < info->n_in; k++) at = stpcpy(stpcpy(at, k ? ", " : ""), info->args[k].name);
    for (int32_t k = n_shape; k < info->n_params; k++) at = stpcpy(stpcpy(at, k > n_shape || info->n_in ? ", " : ""), info->params[k].name);
    at = stpcpy(at, named ? "); " : ")");
  }
  return text;
}

void qn_op_text_key(const quern_op_info *info, char *text, size_t size) {
  qn_strbuf buf = {text, size, 0};
  text[0] = 0;
  qn_strbuf_add(&buf, "%s(", info->name);
  for (int32_t k = 0; k < info->n_in; k++) qn_strbuf_add(&buf, "%s%s", k ? "," : "", info->args[k].name);
  qn_strbuf_add(&buf, ")");
}
