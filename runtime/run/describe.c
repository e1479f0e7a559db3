/* describe.c: see describe.h. */
#include "run/describe.h"

#include "core/base/isa.h"
#include "core/base/status.h"
#include "core/base/strbuf.h"
#include "cuda/cuda_built.h"
#include "cuda/cuda_driver.h"
#include "run/extension.h"
#include "jit/jit_cache.h"
#include "toolchain/jit_cc.h"
#include "base/jit_environment.h"
#include "base/module.h"

/* What a module's state is, and where its file lies or was looked for. */
static void add_module(qn_strbuf *buf, const char *key, const char *file, const char *state) {
  char path[1024];
  int is_found = qn_module_path(file, path, sizeof path);
  if (is_found)
    qn_strbuf_add(buf, "%s: %s, %s\n", key, state, path);
  else
    qn_strbuf_add(buf, "%s: not found: %s\n", key, path);
}

static void add_cc(qn_strbuf *buf, const quern_options *options) {
  const char *cc = options->cc ? options->cc : qn_environment_cc();
  char identity[1024];
  if (!cc)
    qn_strbuf_add(buf, "cc: none given\n");
  else
    qn_strbuf_add(buf, "cc: %s%s\n", cc, qn_cc_identity(cc, identity, sizeof identity) ? "" : " (not found)");
}

quern_status qn_describe(quern_ctx *ctx, char *text, size_t size) {
  static const char *const modes[] = {"default", "off", "sync", "async"};
  qn_strbuf buf = {text, size, 0};
  qn_jit *jit = qn_extension_jit(ctx);
  text[0] = 0;
  if (!jit) return qn_status_fail(QUERN_E_MEMORY, "ctx_describe: out of memory");
  const qn_jit_cache *cache = qn_jit_disk(jit);
  char built[1024];
  const char *dir = qn_jit_cache_dir(cache), *trouble = qn_jit_cache_trouble(cache);
  qn_strbuf_add(&buf, "version: %d.%d.%d\n", QUERN_VERSION_MAJOR, QUERN_VERSION_MINOR, QUERN_VERSION_PATCH);
  qn_strbuf_add(&buf, "isa: %s\nmachine: %s\n", qn_isa_name(qn_isa_detect()), qn_isa_name(qn_isa_machine()));
  qn_strbuf_add(&buf, "threads: %d\n", qn_slices_limit(qn_registry_ctx_slices(ctx)));
  qn_strbuf_add(&buf, "ops: %d\njit: %s\n", qn_registry_count(ctx), modes[qn_jit_mode(jit)]);
  add_module(&buf, "generator", "quern-gen.so", qn_generator_state());
  add_module(&buf, "clang", "quern-clang.so", qn_clang_state());
  add_cc(&buf, qn_registry_options(ctx));
  qn_cuda_describe(&buf);
  qn_cuda_built_state(built, sizeof built);
  qn_strbuf_add(&buf, "cuda_built: %s\n", built);
  qn_strbuf_add(&buf, "cache: %s\ncache_state: %s\n", *dir ? dir : "none", *trouble ? trouble : "used");
  if (buf.length < size) return QUERN_OK;
  return qn_status_fail(QUERN_E_LIMIT, "ctx_describe: the description needs %zu bytes, %zu were given", buf.length + 1, size);
}
