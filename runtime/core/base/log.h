/* SPDX-License-Identifier: Apache-2.0
 *
 * log.h: log messages, to the host's log function or, without one and if QUERN_LOG
 * asks for it, to standard error. No other file prints. Knows no contexts. */
#ifndef QN_LOG_H
#define QN_LOG_H

/* As quern_options.log has them. */
typedef enum qn_log_level { QN_LOG_ERROR, QN_LOG_WARNING, QN_LOG_INFO, QN_LOG_DEBUG } qn_log_level;

typedef struct qn_log {
  void (*write)(void *host, int level, const char *text); /* NULL: standard error, up to QUERN_LOG's level */
  void *host;
} qn_log;

/* Logs one sentence, printf-formatted, cut at 255 bytes, without a newline. log NULL: as without `write`. errno is kept. */
void qn_log_say(const qn_log *log, qn_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
