/* SPDX-License-Identifier: Apache-2.0
 *
 * explain.c: the text that explains how a call would run. Computes nothing. See calls.h. */
#include "core/call/calls.h"

#include "core/base/float_env.h"
#include "core/op/backend.h"
#include "core/op/kind.h"

static quern_status explain_own(qn_strbuf *buf, const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                                const quern_call *call) {
  const qn_kind *kind = qn_kind_of(op);
  QN_IN_SCRATCH(qn_decision, decision);
  quern_status status = QUERN_OK;
  qn_float_env was = qn_float_env_enter();
  if (!kind->explain) status = kind->decide(op, in, out, call, 0, decision);
  qn_float_env_leave(was);
  if (status) return status;
  if (op->registered) qn_strbuf_add(buf, "otherwise: as follows\n");
  return kind->explain ? kind->explain(op, in, out, call, buf) : decision->backend->explain(decision, call, buf);
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
  return qn_status_fail(QUERN_E_LIMIT, "%s: the explanation needs %zu bytes, %zu were given", op->info->name, buf.length + 1, size);
}
