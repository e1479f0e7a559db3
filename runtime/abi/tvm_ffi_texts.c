/* SPDX-License-Identifier: Apache-2.0
 *
 * tvm_ffi_texts.c: an op's description as tvm-ffi's tools want it: a docstring, and the schema of the function's type. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/tvm_ffi.h"
#include "abi/tvm_ffi_library.h"

/* A text that is written twice: first counted, then put into memory of that size. */
typedef struct qn_tvm_text {
  char *data;
  size_t size, capacity;
} qn_tvm_text;

__attribute__((format(printf, 2, 3))) static void put_tvm_text(qn_tvm_text *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n =
      vsnprintf(text->data ? text->data + text->size : NULL, text->data ? text->capacity - text->size : 0, format, args);
  va_end(args);
  text->size += n > 0 ? (size_t)n : 0;
}

static int is_tvm_condition(const quern_arg_info *arg) { return strcmp(arg->dtypes, "bool") == 0; }

static void put_tvm_default(qn_tvm_text *text, const quern_scalar *value) {
  switch (value->kind) {
    case QUERN_I64: put_tvm_text(text, ", default %lld", (long long)value->v.i); return;
    case QUERN_U64: put_tvm_text(text, ", default %llu", (unsigned long long)value->v.u); return;
    case QUERN_F64: put_tvm_text(text, ", default %.15g", value->v.f[0]); return;
    default: put_tvm_text(text, ", optional");
  }
}

static void put_tvm_doc(qn_tvm_text *text, const quern_op_info *info) {
  put_tvm_text(text, "%s\n", info->doc);
  if (info->formula[0]) put_tvm_text(text, "\nFormula: %s\n", info->formula);
  put_tvm_text(text, "\nParameters\n----------\n");
  for (int32_t k = 0; k < info->n_in; k++)
    put_tvm_text(text, "%s : Tensor or %s\n    %s\n", info->args[k].name, is_tvm_condition(&info->args[k]) ? "bool" : "number",
                 info->args[k].dtypes);
  for (int32_t k = 0; k < info->n_params; k++) {
    const int is_axes = qn_tvm_is_axes(info, k);
    put_tvm_text(text, "%s : %s", info->params[k].name, is_axes ? "tuple of ints, or a bit for each" : "number");
    put_tvm_default(text, &info->params[k].value);
    put_tvm_text(text, "\n");
  }
  for (int32_t k = info->n_in; k < info->n_in + info->n_out; k++)
    put_tvm_text(text, "%s : Tensor, optional\n    written; %s\n", info->args[k].name, info->args[k].dtypes);
  put_tvm_text(text, "\nReturns\n-------\nNone. Without the output%s: %s.\n", info->n_out > 1 ? "s" : "",
               info->n_out > 1 ? "new tensors, as an Array" : "a new Tensor");
}

/* The schema is JSON in a string of JSON. */
#define TVM_TYPE(name) "{\\\"type\\\":\\\"" name "\\\"}"
#define TVM_TYPE_OF(name, args) "{\\\"type\\\":\\\"" name "\\\",\\\"args\\\":[" args "]}"
#define TVM_INPUT TVM_TYPE_OF("Variant", TVM_TYPE("ffi.Tensor") "," TVM_TYPE("float"))
#define TVM_CONDITION TVM_TYPE_OF("Variant", TVM_TYPE("ffi.Tensor") "," TVM_TYPE("bool"))
#define TVM_NUMBER TVM_TYPE_OF("Optional", TVM_TYPE("float"))
#define TVM_AXES TVM_TYPE_OF("Optional", TVM_TYPE_OF("Variant", TVM_TYPE_OF("ffi.Array", TVM_TYPE("int")) "," TVM_TYPE("int")))
#define TVM_OUTPUT TVM_TYPE_OF("Optional", TVM_TYPE("ffi.Tensor"))
#define TVM_OUTPUTS TVM_TYPE_OF("Optional", TVM_TYPE_OF("ffi.Array", TVM_TYPE("ffi.Tensor")))

static void put_tvm_metadata(qn_tvm_text *text, const quern_op_info *info) {
  const char *comma = "";
  put_tvm_text(text, "%s", "{\"type_schema\":\"{\\\"type\\\":\\\"ffi.Function\\\",\\\"named_args\\\":{\\\"return\\\":[");
  put_tvm_text(text, "%s],\\\"params\\\":[", info->n_out > 1 ? TVM_OUTPUTS : TVM_OUTPUT);
  for (int32_t k = 0; k < info->n_in; k++, comma = ",")
    put_tvm_text(text, "%s%s", comma, is_tvm_condition(&info->args[k]) ? TVM_CONDITION : TVM_INPUT);
  for (int32_t k = 0; k < info->n_params; k++, comma = ",")
    put_tvm_text(text, "%s%s", comma, qn_tvm_is_axes(info, k) ? TVM_AXES : TVM_NUMBER);
  for (int32_t k = 0; k < info->n_out; k++, comma = ",") put_tvm_text(text, "%s%s", comma, TVM_OUTPUT);
  put_tvm_text(text, "%s", "]}}\"}");
}

static int give_tvm_text(void (*put)(qn_tvm_text *text, const quern_op_info *info), const quern_op *op, qn_tvm_any *result) {
  if (!op) return qn_tvm_raise("MemoryError"); /* for the process-wide context */
  const quern_op_info *const info = quern_op_describe(op);
  qn_tvm_string_from_bytes *const string_from_bytes = qn_tvm_find_string_from_bytes();
  qn_tvm_text text = {0};
  if (!result || !string_from_bytes) return qn_tvm_fail("RuntimeError", info, "no libtvm_ffi is loaded, which makes strings");
  put(&text, info);
  text.capacity = text.size + 1;
  text.data = malloc(text.capacity);
  if (!text.data) return qn_tvm_fail("MemoryError", info, "there is no memory for its description");
  text.size = 0;
  put(&text, info);
  const int failed = string_from_bytes(&(qn_tvm_bytes){text.data, text.size}, result);
  free(text.data);
  return failed;
}

int qn_tvm_doc(const quern_op *op, qn_tvm_any *result) { return give_tvm_text(put_tvm_doc, op, result); }

int qn_tvm_metadata(const quern_op *op, qn_tvm_any *result) { return give_tvm_text(put_tvm_metadata, op, result); }
