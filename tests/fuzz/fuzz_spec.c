/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_spec: any bytes as a spec: refused with a status of the list and a sentence that has a place in it, or taken; then each
 * op of it has a description, programs and sources. Built from this file and runtime/{generator,module,jit_environment,
 * core/status,core/log,core/environment}.c, with clang -fsanitize=fuzzer,address,undefined; QUERN_MODULE_DIR says where
 * quern-gen.so is, built with the same sanitizers. Lua is not instrumented: what counts as news to the fuzzer is what is said.
 *   ./fuzz_spec -max_len=4096 -dict=tests/fuzz/spec.dict NEW-FOLDER tests/fuzz/corpus/spec */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/digest.h"
#include "runtime/toolchain/generator.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define REQUIRE(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, quern_last_error()); \
      abort(); \
    } \
  } while (0)

/* What libFuzzer takes for coverage. */
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[8192];

/* A sentence counts by its words: without the place, quoted names and numbers. */
static void count(int status, const char *text) {
  char words[256];
  size_t n = 0;
  int quoted = 0;
  for (; *text && *text != '\n' && n < sizeof words; text++) {
    if (*text == '\'') quoted = !quoted;
    if (!quoted && (*text < '0' || *text > '9')) words[n++] = *text;
  }
  const qn_digest digest = qn_digest_add(qn_digest_of(&status, sizeof status), words, n);
  counters[digest.low % sizeof counters] = 1;
}

static void check_text(const char *text, size_t size) { REQUIRE(text && strlen(text) == size); }

/* What is said of a failure; `bug` is never a word of it. */
static void check_failure(quern_status status) {
  const char *said = quern_last_error();
  REQUIRE(status == QUERN_E_SYNTAX || status == QUERN_E_LIMIT || status == QUERN_E_EXISTS || status == QUERN_E_UNSUPPORTED ||
          status == QUERN_E_DTYPE || status == QUERN_E_NOTFOUND);
  REQUIRE(said[0] && strlen(said) < 1024 && strncmp(said, "bug", 3) != 0 && strncmp(said, "the generator", 13) != 0);
  count(status, said);
}

static void use_op(qn_generator *g, const qn_builtin *rule) {
  const quern_op_info *info = &rule->info;
  REQUIRE(info->size == sizeof *info && info->n_in >= 0 && info->n_in <= 8 && info->n_out >= 1 && info->n_out <= QN_MAX_OUTPUTS && info->n_params <= QN_MAX_PARAMS);
  char call[4096];
  size_t n = (size_t)snprintf(call, sizeof call, "%s (", info->name);
  for (int32_t k = 0; k < info->n_in; k++) n += (size_t)snprintf(call + n, sizeof call - n, "%s x%d", k ? " ," : "", k);
  snprintf(call + n, sizeof call - n, " )");
  for (int K = QN_BOOL; K <= QN_F64; K++) {
    const char *name = qn_dtype_infos[K].name, *dtypes[9];
    if (!(rule->dtypes >> K & 1)) continue;
    qn_bytes text = {NULL, 0};
    quern_status status = QUERN_OK;
    if (qn_dtype_infos[K].compute == K) status = qn_generator_program(g, info->name, name, &text);
    if (status) check_failure(status);
    else if (text.data) check_text(text.data, text.size);
    free(text.data);
    text.data = NULL;
    if (rule->of_kind || info->n_out > 1) continue; /* kernels of passes; fuzz_program calls them */
    for (int32_t k = 0; k < info->n_in; k++) dtypes[k] = rule->bool_in >> k & 1 ? "bool" : name;
    dtypes[info->n_in] = rule->results[0] == QN_DTYPE_NONE ? name : qn_dtype_infos[rule->results[0]].name;
    const qn_source_request request = {.symbol = "qj_0", .canonical = call, .dtypes = dtypes, .n_in = info->n_in, .n_out = 1,
                                       .classes = &"ccccccccc"[8 - info->n_in], .rank = 1};
    status = qn_generator_source(g, &request, &text, NULL);
    if (status) {
      REQUIRE(status == QUERN_E_LIMIT || status == QUERN_E_DTYPE); /* a parameter's default that the dtype has not */
      check_failure(status);
    } else {
      check_text(text.data, text.size);
    }
    free(text.data);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static qn_generator *g; /* until it has taken something: a state takes longer to make than most inputs */
  static const char good[] = "unary \"acme.good\" { doc = \"d\", dtypes = floating, body = \"x\" }";
  static int n_refused;
  qn_spec_op **ops = NULL;
  int32_t n = 0;
  if (!g) g = qn_generator_create();
  REQUIRE(g);
  quern_status status = qn_generator_load_spec(g, "spec.lua", (const char *)bytes, size, &ops, &n);
  if (status) {
    check_failure(status);
    REQUIRE(strncmp(quern_last_error(), "spec.lua:", 9) == 0);
    if (++n_refused % 64) return 0;
    status = qn_generator_load_spec(g, "good.lua", good, sizeof good - 1, &ops, &n);
    REQUIRE(status == QUERN_OK && n >= 1); /* nothing of the others is left */
  }
  for (int32_t k = 0; k < n; k++) {
    use_op(g, &ops[k]->rule);
    free(ops[k]);
  }
  counters[n < 20 ? n : 20] = 1;
  free(ops);
  if (n || n_refused % 64 == 0) {
    qn_generator_destroy(g);
    g = NULL;
  }
  return 0;
}
