/* SPDX-License-Identifier: Apache-2.0
 *
 * stage_text.c: see stage_text.h. */
#include "run/stage/stage_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"

static const char *dtype_name(uint8_t dtype) { return qn_dtype_infos[dtype].name; }

static void write_value(qn_strbuf *buf, const qn_typed *typed, const qn_value *value) {
  switch (value->kind) {
    case QN_VALUE_INPUT:
      qn_strbuf_add(buf, "in %d %s%s", value->index, dtype_name(value->type), value->bits ? " computed" : "");
      break;
    case QN_VALUE_PARAM: qn_strbuf_add(buf, "param %d %s", value->index, dtype_name(value->type)); break;
    case QN_VALUE_COUNT: qn_strbuf_add(buf, "count"); break;
    case QN_VALUE_CONSTANT: qn_strbuf_add(buf, "const %s %016" PRIx64, dtype_name(value->type), value->bits); break;
    case QN_VALUE_PRIMITIVE: qn_strbuf_add(buf, "prim %s %s", value->primitive->op, dtype_name(value->type)); break;
    case QN_VALUE_OP:
      qn_strbuf_add(buf, "op %s %s %d", value->op->info->name, dtype_name(value->kernel_dtype), value->index);
      break;
    default: qn_strbuf_add(buf, "kernel %s %d", value->kernel->name, value->index); break;
  }
  for (int32_t k = 0; k < value->n_args + value->n_params; k++) qn_strbuf_add(buf, " %d", typed->args[value->first_arg + k]);
}

static void write_all(qn_strbuf *buf, const qn_typed *typed) {
  for (int32_t i = 0; i < typed->n_values; i++) {
    qn_strbuf_add(buf, i ? "; " : "rows: ");
    write_value(buf, typed, &typed->values[i]);
  }
  for (int32_t k = 0; k < typed->n_out; k++) qn_strbuf_add(buf, "; out %d", typed->out[k]);
}

char *qn_stage_text(const qn_typed *typed) {
  char none[1] = "";
  qn_strbuf counted = {none, sizeof none, 0};
  write_all(&counted, typed);
  char *text = malloc(counted.length + 1);
  qn_strbuf buf = {text, counted.length + 1, 0};
  if (text) write_all(&buf, typed);
  return text;
}

char *qn_stage_text_reduce(char *text, const qn_reducer *by) {
  const size_t length = strlen(text), most = length + strlen(by->name) + 32;
  char *grown = realloc(text, most);
  if (!grown) free(text);
  if (grown) snprintf(grown + length, most - length, "; reduce %s %s", by->name, dtype_name(by->dtype));
  return grown;
}
