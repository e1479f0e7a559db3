/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_target.c: see cpu_target.h. */
#include "toolchain/cpu_target.h"

#include <stdio.h>
#include <string.h>

#include "base/files/module.h"
#include "core/base/isa.h"
#include "toolchain/jit_cc.h"
#include "toolchain/jit_clang.h"
#include "toolchain/object_loader.h"

/* ---- The C compiler that the host named ---- */

static int cc_may_be_there(char *why, size_t why_size) { return (void)why, (void)why_size, 0; }

static int cc_compile(const char *cc, const qn_target_kernel *kernel, const qn_bytes *source, qn_bytes *object, char *why,
                      size_t why_size) {
  const qn_compile_request request = {source->data, source->size, qn_isa_detect(), kernel->most_ms, kernel->is_large};
  return qn_cc_compile(cc, &request, object, why, why_size);
}

/* ---- Clang in process ---- */

static int clang_identity(const char *cc, char *text, size_t size) { return (void)cc, qn_clang_identity(text, size); }

static int clang_may_be_there(char *why, size_t why_size) {
  snprintf(why, why_size, "%s", qn_clang_state());
  return qn_clang_may_compile();
}

static int clang_compile(const char *cc, const qn_target_kernel *kernel, const qn_bytes *source, qn_bytes *object, char *why,
                         size_t why_size) {
  const qn_compile_request request = {source->data, source->size, qn_isa_detect(), kernel->most_ms, kernel->is_large};
  (void)cc;
  return qn_clang_compile(&request, object, why, why_size);
}

/* ---- The target ---- */

/* A C compiler that the host named comes first. */
static const qn_compiler compilers[] = {
  {"cc", 1, qn_cc_identity, cc_may_be_there, cc_compile},
  {"clang", 0, clang_identity, clang_may_be_there, clang_compile},
};

static int machine(char *text, size_t size) {
  snprintf(text, size, "isa %s", qn_isa_name(qn_isa_detect()));
  return 1;
}

static int load(const qn_target_kernel *kernel, const qn_bytes *object, qn_target_code *code, char *why, size_t why_size) {
  qn_loaded *loaded = qn_object_load(object->data, object->size, kernel->symbol, why, why_size);
  if (!loaded) return 0;
  void *address = qn_object_entry(loaded);
  *code = (qn_target_code){.handle = loaded, .bytes = qn_object_size(loaded)};
  memcpy(&code->kernel, &address, sizeof code->kernel); /* C has no cast from void * to a function pointer */
  return 1;
}

static void unload(void *handle) { qn_object_unload(handle); }

static void describe(const char *cc, qn_strbuf *buf) {
  char identity[1024];
  qn_module_describe(buf, "clang", "quern-clang.so", qn_clang_state());
  if (!cc)
    qn_strbuf_add(buf, "cc: none given\n");
  else
    qn_strbuf_add(buf, "cc: %s%s\n", cc, qn_cc_identity(cc, identity, sizeof identity) ? "" : " (not found)");
}

const qn_target qn_cpu_target = {.name = "c", .suffix = ".c", .is_recorded = 1, .machine = machine, .compilers = compilers,
                                 .n_compilers = sizeof compilers / sizeof compilers[0], .load = load, .unload = unload,
                                 .describe = describe};
