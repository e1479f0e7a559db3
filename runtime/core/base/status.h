/* SPDX-License-Identifier: Apache-2.0
 *
 * status.h: how the core reports a failure. Owns the thread's error sentence (quern_last_error, quern_set_last_error);
 * knows no tensors and no ops. */
#ifndef QN_STATUS_H
#define QN_STATUS_H

#include <stdarg.h>

#include "quern/quern.h"

/* Records a printf-formatted sentence as this thread's last error and returns `status`. Locale-free: only %s %d %u
 * %lld %llu %zu %c %x %% are used. errno is kept. */
quern_status qn_status_fail(quern_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a caller that puts words before the sentence. */
void qn_status_vfail(const char *prefix, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* The sentence, kept while something is tried whose failure may not be the call's, and put back when it is not. */
#define QN_STATUS_BYTES 1024
typedef struct qn_sentence {
  char text[QN_STATUS_BYTES];
} qn_sentence;
void qn_status_keep(qn_sentence *kept);
void qn_status_restore(const qn_sentence *kept);

/* Our own mistakes: never a status. Compiled out with NDEBUG. The sentence is recorded, and printed where QUERN_LOG is
 * set; then the process aborts. */
void qn_status_bug(const char *condition, const char *file, int line) __attribute__((noreturn));
#ifdef NDEBUG
#define qn_assert(condition) ((void)0)
#else
#define qn_assert(condition) ((condition) ? (void)0 : qn_status_bug(#condition, __FILE__, __LINE__))
#endif

#endif
