/* SPDX-License-Identifier: Apache-2.0
 *
 * status.h: what the core says: failures, by the thread's error sentence (quern_last_error, quern_set_last_error); log messages, to
 * the host's log function or, without one and if QUERN_LOG asks for it, to standard error (no other file prints); texts for the
 * caller's buffers. Knows no tensors, ops and contexts. */
#ifndef QN_STATUS_H
#define QN_STATUS_H

#include <stdarg.h>
#include <stddef.h>

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

/* As quern_options.log has them. */
typedef enum qn_log_level { QN_LOG_ERROR, QN_LOG_WARNING, QN_LOG_INFO, QN_LOG_DEBUG } qn_log_level;

typedef struct qn_log {
  void (*write)(void *host, int level, const char *text); /* NULL: standard error, up to QUERN_LOG's level */
  void *host;
} qn_log;

/* Logs one sentence, printf-formatted, cut at 255 bytes, without a newline. log NULL: as without `write`. errno is kept. */
void qn_log_say(const qn_log *log, qn_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Text appended to a buffer of the caller's; what does not fit is cut, but counted. Initialised to {text, size, 0}, with text[0] = 0. */
typedef struct qn_strbuf {
  char *text;
  size_t size, length; /* length: of all text appended, also of that cut */
} qn_strbuf;

/* Appends formatted text. Not for numbers that depend on the locale (%f, %'d). */
void qn_strbuf_add(qn_strbuf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The known name nearest to an unknown one, for sentences. */
typedef struct qn_guess {
  const char *wanted;
  const char *nearest; /* the nearest of the names offered, the first of equals; NULL: none is near */
  int distance;
} qn_guess;

qn_guess qn_guess_begin(const char *wanted);
void qn_guess_offer(qn_guess *guess, const char *name);

#endif
