/* SPDX-License-Identifier: Apache-2.0
 *
 * explain.c: see explain.h. */
#include "core/call/explain.h"

#include "core/base/float_env.h"
#include "core/base/status.h"
#include "core/op/backend.h"
#include "core/op/kind.h"

/* Introduces the library's own op after a registered implementation. */
static void add_otherwise(qn_strbuf *buf, const quern_op *op) {
  if (op->registered) qn_strbuf_add(buf, "otherwise: as follows\n");
}

static quern_status explain_own(qn_strbuf *buf, const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                                const quern_call *call) {
  const qn_kind *kind = qn_kind_of(op);
  qn_decision decision;
  if (kind->explain) {
    add_otherwise(buf, op);
    return kind->explain(op, in, out, call, buf);
  }
  qn_float_env was = qn_float_env_enter();
  quern_status status = kind->decide(op, in, out, call, 0, &decision);
  qn_float_env_leave(was);
  if (status) return status;
  add_otherwise(buf, op);
  return decision.backend->explain(&decision, call, buf);
}

quern_status qn_explain(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call, char *text,
                        size_t size) {
  qn_strbuf buf = {text, size, 0};
  text[0] = 0;
  if (op->registered)
    qn_strbuf_add(&buf, "tier: registered\nreason: an implementation of this op is registered and asked first\n");
  if (qn_kind_is_there(op)) {
    const size_t length = buf.length;
    qn_sentence kept;
    qn_status_keep(&kept);
    quern_status status = explain_own(&buf, op, in, out, call);
    if (status && !op->registered) return status;
    if (status) {
      buf.length = length; /* drops the partial text of a backend that failed */
      qn_strbuf_add(&buf, "otherwise: %s\n", quern_last_error());
      qn_status_restore(&kept);
    }
  }
  if (buf.length < size) return QUERN_OK;
  return qn_status_fail(QUERN_E_LIMIT, "%s: the explanation needs %zu bytes, %zu were given", op->info->name, buf.length + 1,
                        size);
}
