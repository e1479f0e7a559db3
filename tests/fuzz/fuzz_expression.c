/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_expression: any bytes as an expression: parsed; if they parse, the canonical text is parsed again and must be itself,
 * and the expression is typed for several choices of dtypes. For clang's -fsanitize=fuzzer,address,undefined, linked with a
 * static library built with -fsanitize=fuzzer-no-link,address,undefined; the seeds are in corpus/expression/. */
#include <stdlib.h>
#include <string.h>

#include "runtime/lang/typing/typing.h"

#define REQUIRE(condition) \
  do { \
    if (!(condition)) abort(); \
  } while (0)

/* A failure has a status of the list and a sentence with a place in it. */
static void check_failure(quern_status status) {
  const char *said = quern_last_error();
  REQUIRE(status == QUERN_E_SYNTAX || status == QUERN_E_LIMIT || status == QUERN_E_NOTFOUND || status == QUERN_E_DTYPE);
  REQUIRE(strlen(said) < 1023 && said[strlen(said) - 1] == '^');
}

static void check_typed(const qn_expression *e, const uint8_t *dtypes) {
  qn_typed *typed = NULL;
  quern_status status = qn_typing_run(e, dtypes, &typed);
  if (status) {
    check_failure(status);
    return;
  }
  REQUIRE(typed->n_out == e->n_out && typed->n_values <= QN_MAX_VALUES);
  for (int32_t i = 0; i < typed->n_values; i++) {
    const qn_value *v = &typed->values[i];
    REQUIRE(v->type <= QN_F64 && v->first_arg + v->n_args + v->n_params <= typed->n_args);
    for (int32_t k = 0; k < v->n_args + v->n_params; k++) REQUIRE(typed->args[v->first_arg + k] < i);
    if (v->kind == QN_VALUE_PRIMITIVE) {
      REQUIRE(v->primitive->n_args == v->n_args && v->primitive->type == v->type);
      REQUIRE(typed->values[typed->args[v->first_arg + v->n_args - 1]].type == v->primitive->arg_type);
    }
  }
  for (int32_t k = 0; k < typed->n_out; k++)
    REQUIRE(qn_dtype_infos[typed->out_dtypes[k]].compute == typed->values[typed->out[k]].type);
  qn_typing_free(typed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint8_t choices[][4] = {{QN_F32, QN_F32, QN_F32, QN_F32}, {QN_I32, QN_U8, QN_I64, QN_BOOL},
                                       {QN_F16, QN_BF16, QN_F64, QN_I32}, {QN_BOOL, QN_BOOL, QN_F32, QN_F16},
                                       {QN_U64, QN_I8, QN_U32, QN_I16}};
  char *text = malloc(size + 1);
  qn_expression *e = NULL, *again = NULL;
  if (!text) return 0;
  if (size) memcpy(text, data, size);
  text[size] = 0;
  quern_status status = qn_expression_parse(qn_registry_ctx(NULL), text, &e);
  free(text); /* the expression has its own copy */
  if (status) {
    check_failure(status);
    return 0;
  }
  if (strlen(e->canonical) <= QN_SYNTAX_MAX_BYTES) {
    REQUIRE(qn_expression_parse(qn_registry_ctx(NULL), e->canonical, &again) == QUERN_OK);
    REQUIRE(strcmp(again->canonical, e->canonical) == 0 && again->n_code == e->n_code);
    qn_expression_free(again);
  }
  for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
    uint8_t dtypes[QN_MAX_OPERANDS];
    for (int k = 0; k < QN_MAX_OPERANDS; k++) dtypes[k] = choices[i][k % 4];
    check_typed(e, dtypes);
  }
  qn_expression_free(e);
  return 0;
}
