/* SPDX-License-Identifier: Apache-2.0
 *
 * describe.c: see describe.h. */
#include "run/describe.h"

#include "core/base/isa.h"
#include "core/base/status.h"
#include "run/extension.h"
#include "jit/jit_cache.h"
#include "toolchain/target.h"
#include "base/jit_environment.h"
#include "base/files/module.h"

quern_status qn_describe(quern_ctx *ctx, char *text, size_t size) {
  static const char *const modes[] = {"default", "off", "sync", "async"};
  qn_strbuf buf = {text, size, 0};
  qn_jit *jit = qn_extension_jit(ctx);
  text[0] = 0;
  if (!jit) return qn_status_fail(QUERN_E_MEMORY, "ctx_describe: out of memory");
  const qn_jit_cache *cache = qn_jit_disk(jit);
  const quern_options *options = qn_extension_options(ctx);
  const char *cc = options->cc ? options->cc : qn_environment_cc();
  const char *dir = qn_jit_cache_dir(cache), *failure = qn_jit_cache_failure(cache);
  qn_strbuf_add(&buf, "version: %d.%d.%d\n", QUERN_VERSION_MAJOR, QUERN_VERSION_MINOR, QUERN_VERSION_PATCH);
  qn_strbuf_add(&buf, "isa: %s\nmachine: %s\n", qn_isa_name(qn_isa_detect()), qn_isa_name(qn_isa_machine()));
  qn_strbuf_add(&buf, "threads: %d\n", qn_slices_limit(qn_registry_slices(qn_registry_at(ctx, 0))));
  qn_strbuf_add(&buf, "ops: %d\njit: %s\n", qn_registry_count(ctx), modes[qn_jit_mode(jit)]);
  qn_module_describe(&buf, "generator", "quern-gen.so", qn_generator_state());
  for (int32_t i = 0; i < qn_n_targets; i++) qn_targets[i]->describe(cc, &buf);
  qn_strbuf_add(&buf, "cache: %s\ncache_state: %s\n", *dir ? dir : "none", *failure ? failure : "used");
  if (buf.length < size) return QUERN_OK;
  return qn_status_fail(QUERN_E_LIMIT, "ctx_describe: the description needs %zu bytes, %zu were given", buf.length + 1, size);
}
