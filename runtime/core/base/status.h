/* SPDX-License-Identifier: Apache-2.0
 *
 * status.h: the core's reports of failures. Owns the thread's error sentence (quern_last_error, quern_set_last_error);
 * knows no tensors and no ops. */
#ifndef QN_STATUS_H
#define QN_STATUS_H

#include <stdarg.h>

#include "quern/quern.h"

/* Records a printf-formatted sentence as this thread's last error and returns `status`. Locale-free: only %s %d %u
 * %lld %llu %zu %c %x %% are used. errno is kept. */
quern_status qn_status_fail(quern_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with a prefix before the sentence. */
void qn_status_vfail(const char *prefix, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* A saved error sentence. It is saved before an attempt with a fallback, and restored if the fallback is taken. */
#define QN_STATUS_BYTES 1024
typedef struct qn_sentence {
  char text[QN_STATUS_BYTES];
} qn_sentence;
void qn_status_keep(qn_sentence *kept);
void qn_status_restore(const qn_sentence *kept);

/* Reports a bug of the library, which is never a status; qn_assert is compiled out with NDEBUG. The sentence is recorded and,
 * if QUERN_LOG is set, printed; then the process aborts. */
void qn_status_bug(const char *condition, const char *file, int line) __attribute__((noreturn));
#ifdef NDEBUG
#define qn_assert(condition) ((void)0)
#else
#define qn_assert(condition) ((condition) ? (void)0 : qn_status_bug(#condition, __FILE__, __LINE__))
#endif

#endif
