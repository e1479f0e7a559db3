/* SPDX-License-Identifier: Apache-2.0
 *
 * jit.c: contexts, and waiting for code; see jit.h.
 *
 * The disk cache is polled on the caller's thread, so that a warm process has its code at once. Everything else runs on the
 * background thread, in mode sync too: it has a known stack, signal mask and floating-point environment. Cancellation of
 * the caller's thread is disabled here: other threads would wait for its lock or its work for good. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* strdup */
#endif
#include "jit/jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "base/threads/idle.h"
#include "base/threads/thread_shield.h"
#include "base/jit_environment.h"
#include "jit/jit_queue.h"
#include "jit/jit_work.h"

#define DEFAULT_LIMIT ((size_t)64 << 20)
#define DEFAULT_KERNELS 4096

/* ---- Jobs ---- */

static void run_task(qn_jit_task *task) {
  qn_entry *entry = (qn_entry *)((char *)task - offsetof(qn_entry, task));
  qn_work_run(entry);
}

static void drop_task(qn_jit_task *task, const char *why) {
  qn_entry *entry = (qn_entry *)((char *)task - offsetof(qn_entry, task));
  qn_entry_set_wanted(entry, why);
  qn_entry_unref_later(entry);
  qn_jit_queue_notify();
}

static void start_job(qn_jit *jit, qn_entry *entry) {
  qn_entry_set_reason(entry, "being compiled");
  entry->task = (qn_jit_task){.is_urgent = jit->mode == QUERN_JIT_SYNC, .run = run_task, .drop = drop_task};
  qn_entry_ref(entry);
  if (entry->task.is_urgent && qn_jit_queue_is_here()) { /* called from the host's log function on the background thread */
    run_task(&entry->task);
    return;
  }
  qn_idle_note_signals();
  const char *why = qn_jit_queue_add(&entry->task);
  if (why) {
    (qn_jit_queue_is_ending() ? qn_entry_set_failed : qn_entry_set_transient)(entry, why);
    qn_entry_unref_later(entry);
    if (!jit->said_unsaid && !qn_jit_queue_is_ending()) jit->unsaid = why;
    jit->said_unsaid = 1;
  }
}

static void start(qn_jit *jit, qn_entry *entry) {
  if (jit->mode == QUERN_JIT_OFF) {
    qn_entry_set_failed(entry, "compiling at run time is off");
    return;
  }
  if (jit->table.n_loaded >= jit->table.most && !jit->table.oldest) {
    qn_entry_set_transient(entry, "as many kernels are in use as kernel_limit allows");
    return;
  }
  qn_entry_set_making(entry, "being looked for on disk");
  qn_work_poll_disk(entry);
  if (entry->state == QN_ENTRY_MAKING) start_job(jit, entry);
}

/* Starts making the code, unless that is under way. In mode sync, or if `waits`, waits until it is done, with its log messages
 * and its cache entry. A thread does not wait for itself: the host's log function, called during a work, may make a call. */
static void request_work(qn_entry *entry, int waits) {
  for (int is_waiting = 0; entry->table && !entry->table->jit->is_dying; is_waiting = 1) {
    qn_jit *jit = entry->table->jit;
    int is_mine;
    if (entry->state == QN_ENTRY_WANTED && !is_waiting && qn_entry_is_due(entry)) start(jit, entry); /* else cancelled */
    const int has_work = qn_work_has(entry, &is_mine);
    const int is_under_way = entry->state == QN_ENTRY_MAKING || (is_waiting && has_work);
    if ((jit->mode != QUERN_JIT_SYNC && !waits) || !is_under_way || is_mine || qn_jit_queue_is_here()) return;
    qn_jit_queue_raise_priority(&entry->task);
    qn_jit_queue_wait();
  }
}

/* ---- Code ---- */

static void say_unknown_mode(qn_jit *jit) {
  if (!atomic_load_explicit(&jit->is_mode_unknown, memory_order_relaxed)) return;
  if (!atomic_exchange(&jit->is_mode_unknown, 0)) return;
  const char *text = qn_environment_jit();
  qn_log_say(&jit->log, QN_LOG_WARNING, "QUERN_JIT is '%.64s', none of off, sync, async: taken for async",
             text ? text : "");
}

qn_code *qn_jit_acquire(qn_jit *jit, const qn_code_request *request) {
  const int kept_errno = errno;
  qn_record_text recorded = {0};
  char *key = qn_code_key(request);
  if (!key) return NULL;
  const qn_digest digest = qn_digest_of(key, strlen(key));
  const int kept_cancel = qn_thread_shield();
  if (jit->mode != QUERN_JIT_OFF) qn_jit_queue_keep_library();
  qn_jit_queue_lock();
  qn_entry *entry = qn_table_find(&jit->table, digest, key);
  if (entry)
    qn_entry_ref(entry);
  else
    entry = qn_table_add(&jit->table, request, digest, key);
  if (entry) {
    if (entry->target->is_recorded) qn_record_add(&jit->record, &recorded, digest, entry->name, key);
    qn_entry_poll_frozen(entry);
    request_work(entry, 0);
  }
  const char *unsaid = jit->unsaid;
  jit->unsaid = NULL;
  qn_jit_queue_unlock();
  if (unsaid) qn_log_say(&jit->log, QN_LOG_WARNING, "nothing is compiled now: %s", unsaid);
  free(key);
  qn_record_write(&jit->record, &recorded, &jit->log);
  say_unknown_mode(jit);
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
  return entry ? &entry->code : NULL;
}

void qn_code_want(qn_code *code) {
  qn_entry *entry = (qn_entry *)code;
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  qn_jit_queue_lock();
  if (entry->state == QN_ENTRY_WANTED) request_work(entry, 0);
  qn_jit_queue_unlock();
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
}

void qn_code_wait(qn_code *code) {
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  qn_jit_queue_lock();
  request_work((qn_entry *)code, 1);
  qn_jit_queue_unlock();
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
}

void qn_code_release(qn_code *code) {
  if (!code) return;
  const int kept_errno = errno;
  qn_entry *dead = NULL;
  qn_jit_queue_lock();
  qn_entry_unref((qn_entry *)code, &dead);
  qn_jit_queue_unlock();
  qn_entries_free(dead);
  errno = kept_errno;
}

void qn_code_describe(const qn_code *code, qn_code_info *info) {
  qn_jit_queue_lock();
  *info = ((const qn_entry *)code)->info;
  info->failed = ((const qn_entry *)code)->state == QN_ENTRY_FAILED;
  qn_jit_queue_unlock();
}

/* ---- Contexts ---- */

static int32_t mode_of(const quern_options *options, int *is_unknown) {
  static const char *const names[] = {"off", "sync", "async"}; /* ORDER QUERN_JIT_OFF ... */
  const char *text = qn_environment_jit();
  if (options && options->jit != QUERN_JIT_DEFAULT) return options->jit;
  for (int i = 0; text && i < 3; i++) {
    if (strcmp(text, names[i]) == 0) return QUERN_JIT_OFF + i;
  }
  *is_unknown = text != NULL;
  return QUERN_JIT_ASYNC;
}

/* 0: out of memory. text NULL: *copy is NULL. */
static int copy_text(const char *text, char *(*copier)(const char *text), char **copy) {
  *copy = text ? copier(text) : NULL;
  return !text || *copy;
}

qn_jit *qn_jit_create(const quern_options *options, qn_generator *generator) {
  const int kept_errno = errno;
  qn_jit *jit = calloc(1, sizeof *jit);
  if (!jit) return NULL;
  int is_unknown = 0;
  const char *cc = options && options->cc ? options->cc : qn_environment_cc();
  const size_t limit = options ? options->kernel_memory_limit : 0;
  jit->references = 1;
  jit->mode = mode_of(options, &is_unknown);
  atomic_init(&jit->is_mode_unknown, is_unknown);
  jit->generator = generator;
  if (options) jit->log = (qn_log){options->log, options->host};
  if (!qn_table_init(&jit->table, jit, limit ? limit : DEFAULT_LIMIT) ||
      !copy_text(cc && cc[0] ? cc : NULL, strdup, &jit->cc) ||
      !copy_text(qn_environment_record(), qn_record_absolute, &jit->record.path) ||
      !copy_text(qn_environment_dump(), qn_record_absolute, &jit->record.dump)) {
    free(jit->table.buckets);
    qn_work_free(jit);
    return NULL;
  }
  jit->table.most = options && options->kernel_limit > 0 ? (size_t)options->kernel_limit : DEFAULT_KERNELS;
  jit->compile_ms = options && options->compile_ms_limit > 0 ? options->compile_ms_limit : 0;
  jit->cache = qn_jit_cache_open(options ? options->cache_dir : NULL, &jit->log);
  if (jit->cache && options && options->cache_bytes_limit > 0) qn_jit_cache_limit(jit->cache, options->cache_bytes_limit);
  errno = kept_errno;
  return jit;
}

static void say_nothing(void *host, int level, const char *text) { (void)host, (void)level, (void)text; }

static int is_of(const qn_jit_task *task, const void *jit) {
  const qn_entry *entry = (const qn_entry *)((const char *)task - offsetof(qn_entry, task));
  return entry->table->jit == jit;
}

void qn_jit_cancel(qn_jit *jit) {
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  qn_jit_queue_lock();
  qn_jit_queue_drop(is_of, jit, "cancelled");
  qn_work_cancel(jit);
  qn_jit_queue_notify();
  qn_jit_queue_unlock();
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
}

void qn_jit_destroy(qn_jit *jit) {
  if (!jit) return;
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  qn_entry *dead = NULL;
  qn_jit_queue_lock();
  jit->is_dying = 1;
  qn_jit_cache_disable_log(jit->cache); /* before a work can see is_dying: the cache's log ends with the context */
  qn_jit_queue_drop(is_of, jit, "its context was released");
  qn_work_cancel(jit);
  while (qn_work_uses(jit)) qn_jit_queue_wait();
  qn_table_clear(&jit->table, &dead);
  jit->log = (qn_log){say_nothing, NULL}; /* for an unfinished work of this thread */
  const int is_last = --jit->references == 0;
  qn_jit_queue_unlock();
  qn_entries_free(dead);
  if (is_last) qn_work_free(jit);
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
}

int32_t qn_jit_mode(const qn_jit *jit) { return jit->mode; }
qn_jit_cache *qn_jit_disk(const qn_jit *jit) { return jit->cache; }

quern_status qn_jit_record(qn_jit *jit, const char *path) {
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  qn_record_text recorded = {0};
  quern_status status = QUERN_OK;
  char *absolute = NULL, why[900];
  const int is_copied = copy_text(path, qn_record_absolute, &absolute);
  const int failed = !is_copied ? ENOMEM : path ? qn_record_append(absolute, "", 0, why, sizeof why) : 0;
  if (failed) {
    if (failed == ENOMEM) status = qn_status_fail(QUERN_E_MEMORY, "record: out of memory");
    else status = qn_status_fail(QUERN_E_IO, "record: %s", why);
    free(absolute);
  } else {
    qn_jit_queue_lock();
    qn_record_set(&jit->record, absolute);
    for (size_t i = 0; path && i < jit->table.n_buckets; i++) {
      for (const qn_entry *entry = jit->table.buckets[i]; entry; entry = entry->chain) {
        if (entry->target->is_recorded) qn_record_add(&jit->record, &recorded, entry->digest, entry->name, entry->key);
      }
    }
    qn_jit_queue_unlock();
    qn_record_write(&jit->record, &recorded, &jit->log);
  }
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
  return status;
}
