/* quern.c: the public functions that the library has beyond a generated tree: expressions and specs at run time. Each
 * checks its arguments; the generator that would serve them is not part of this version. */
#include "core/status.h"

static quern_status refuse(const char *function, const char *what) {
  return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: %s are built ahead of time only: this version has no run-time generator; use build.lua",
                        function, what);
}

static quern_status refuse_null(const char *function, const char *argument) {
  return qn_status_fail(QUERN_E_ARGUMENT, "%s: %s is NULL", function, argument);
}

/* Specs are loaded into contexts of the caller's own: the process-wide one is everybody's. */
static quern_status refuse_default(const char *function) {
  return qn_status_fail(QUERN_E_ARGUMENT, "%s: not on the process-wide context; make one with quern_ctx_create", function);
}

quern_status quern_spec_load(quern_ctx *ctx, const char *path) {
  if (!ctx) return refuse_default("spec_load");
  if (!path) return refuse_null("spec_load", "the path");
  return refuse("spec_load", "specs");
}

quern_status quern_spec_load_text(quern_ctx *ctx, const char *name, const char *text, size_t size) {
  if (!ctx) return refuse_default("spec_load_text");
  if (!name) return refuse_null("spec_load_text", "the name");
  if (!text && size) return refuse_null("spec_load_text", "the text");
  return refuse("spec_load_text", "specs");
}

quern_status quern_op_compile(quern_ctx *ctx, const char *expression, quern_op **op) {
  (void)ctx; /* NULL: the process-wide context */
  if (!expression) return refuse_null("op_compile", "the expression");
  if (!op) return refuse_null("op_compile", "the place for the op");
  return refuse("op_compile", "expressions");
}
