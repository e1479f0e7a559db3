/* SPDX-License-Identifier: Apache-2.0
 *
 * profile_lines.h: the lines of a profile: their destination, their format, the totals at exit. docs/profile.md has the columns. Takes
 * no lock: lines are written whole, totals are counted by atomics. Must not know kinds of op and backends. */
#ifndef QN_PROFILE_LINES_H
#define QN_PROFILE_LINES_H

#include "core/base/status.h"
#include "quern/quern.h"

/* A destination, and the totals of what went there. Lives until the process ends. */
typedef struct qn_profile qn_profile;

/* where: as quern_options.profile has it; NULL: as QUERN_PROFILE has it. NULL: no profile is wanted, or there can be none, which
 * is logged. Contexts with one destination share it. */
qn_profile *qn_profile_open(const char *where, const qn_log *log);

/* What a line says of a call apart from its outcome. Text that has no room is cut. */
typedef struct qn_profile_subject {
  char op[144], dtypes[320], shapes[640], text[256];
  DLDevice device;
} qn_profile_subject;

/* The tensors' descriptors have been checked, or a host's function checks them. has_text: the op has no name of its own. */
void qn_profile_describe(const quern_op_info *info, DLTensor *const *in, DLTensor *const *out, int has_text,
                         qn_profile_subject *subject);

/* Writes the line of a call that took `ns`, and adds it to the totals. event: "call", "run". explanation: the text of
 * quern_op_explain on it. errno is kept. */
void qn_profile_add(qn_profile *profile, const char *event, const qn_profile_subject *subject, const char *explanation, int64_t ns);

/* Nanoseconds of a monotonic clock. */
int64_t qn_profile_now(void);

#endif
