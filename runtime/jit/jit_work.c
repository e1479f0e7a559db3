/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_work.c: see jit_work.h.
 *
 * A *work* makes one kernel, without the lock. It holds references to its entry and its context, and is in a list: a context
 * that ends waits for its works, and a forked child drops those of other threads. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* base/clock.h */
#endif
#include "jit/jit_work.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads/clock.h"
#include "base/threads/transient.h"
#include "build_id.h"
#include "core/base/status.h"

/* After MOST_SLOW polls that took longer than this, the disk is polled on the background thread only. */
#define SLOW_LOOK_NS 1000000
#define MOST_SLOW 3
#define LARGE_COST 1024 /* instructions: from here on a compile takes most of a second, and more */

typedef struct work {
  struct work *next;
  qn_entry *entry;
  qn_jit *jit;
  qn_target_kernel kernel; /* the entry's, for compilers and loader */
  pthread_t thread;
  atomic_int is_cancelled;
  int uses_context; /* its generator or log: qn_jit_destroy waits for it */
  qn_bytes source;  /* NULL: not generated */
  /* Results: */
  qn_target_code loaded;
  qn_bytes object; /* for the disk cache */
  const char *tier;
  int64_t compiles;
  int64_t ns;      /* time for source and compilers */
  int is_costly;   /* the source is that of a large kernel */
  int is_quiet;    /* a failure that is no warning: there is nothing here to compile with */
  int is_transient; /* the failure may not occur again */
  char identity[2048], why[4096];
} work;

static work *works;

/* For messages: printing floating-point numbers would depend on the host's locale. */
static int tenths_of_ms(int64_t ns) { return (int)((ns + 50000) / 100000); }

void qn_work_free(qn_jit *jit) {
  qn_jit_cache_close(jit->cache);
  qn_record_free(&jit->record);
  free(jit->cc);
  free(jit);
}

/* ---- Works: begun and ended with the lock held ---- */

static void forget_works(void);

static void begin(work *w, qn_entry *entry) {
  memset(w, 0, offsetof(work, identity));
  w->identity[0] = w->why[0] = 0;
  w->entry = entry;
  w->jit = entry->table->jit;
  w->kernel = (qn_target_kernel){.symbol = entry->name, .capability = entry->capability, .is_wide = entry->is_wide,
                                   .most_ms = w->jit->compile_ms, .is_cancelled = &w->is_cancelled};
  w->thread = pthread_self();
  w->uses_context = 1;
  qn_entry_ref(entry);
  w->jit->references++;
  w->next = works;
  works = w;
  qn_jit_queue_on_fork(forget_works);
}

static void unlink_work(work *w) {
  work **at = &works;
  while (*at != w) at = &(*at)->next;
  *at = w->next;
}

/* Ends a work. Releases the lock for a moment if there is something to free. */
static void end(work *w) {
  qn_entry *dead = NULL;
  unlink_work(w);
  qn_entry_unref(w->entry, &dead);
  const int is_last = --w->jit->references == 0;
  qn_jit_queue_notify();
  if (!dead && !is_last) return;
  qn_jit_queue_unlock();
  qn_entries_free(dead);
  if (is_last) qn_work_free(w->jit);
  qn_jit_queue_lock();
}

int qn_work_uses(const qn_jit *jit) {
  for (const work *w = works; w; w = w->next) {
    if (w->jit == jit && w->uses_context && !pthread_equal(w->thread, pthread_self())) return 1;
  }
  return 0;
}

void qn_work_cancel(const qn_jit *jit) {
  for (work *w = works; w; w = w->next)
    if (w->jit == jit && (w->kernel.is_large || !jit->is_dying)) atomic_store(&w->is_cancelled, 1);
}

int qn_work_has(const qn_entry *entry, int *is_mine) {
  const work *w = works;
  while (w && w->entry != entry) w = w->next;
  *is_mine = w && pthread_equal(w->thread, pthread_self());
  return w != NULL;
}

/* In a forked child, with the lock held: drops the works of other threads. A context that only they referred to is leaked,
 * since its state is not known. */
static void forget_works(void) {
  qn_entry *dead = NULL;
  for (work *w = works, *next; w; w = next) {
    next = w->next;
    if (pthread_equal(w->thread, pthread_self())) continue;
    unlink_work(w);
    if (w->entry->state == QN_ENTRY_MAKING) qn_entry_set_wanted(w->entry, "forked");
    qn_entry_unref(w->entry, &dead);
    w->jit->references--;
  }
  qn_entries_free(dead);
}

/* ---- Compilers ---- */

static const qn_target *target_of(const work *w) { return w->entry->target; }

/* Whether the compiler is to be used in this context. */
static int is_meant(const work *w, const qn_compiler *compiler) { return !compiler->wants_cc || w->jit->cc; }

/* The target's first compiler from `by` on that is to be used; NULL: none. */
static const qn_compiler *compiler_from(const work *w, const qn_compiler *by) {
  const qn_target *target = target_of(w);
  const qn_compiler *end = target->compilers + target->n_compilers;
  while (by < end && !is_meant(w, by)) by++;
  return by < end ? by : NULL;
}
static const qn_compiler *first_compiler(const work *w) { return compiler_from(w, target_of(w)->compilers); }

/* Whether a compiler is known to be there; sets w->identity, "" if none is. */
static int find_compiler(work *w) {
  for (const qn_compiler *by = first_compiler(w); by; by = compiler_from(w, by + 1)) {
    if (by->identity(w->jit->cc, w->identity, sizeof w->identity)) return 1;
  }
  w->identity[0] = 0;
  return 0;
}

/* Whether a compiler is there, or may be; 0: sets w->why. */
static int has_compiler(work *w) {
  int may_be_there = 0;
  char why[1024] = "";
  if (find_compiler(w)) return 1;
  for (const qn_compiler *by = first_compiler(w); by; by = compiler_from(w, by + 1))
    may_be_there |= by->may_be_there(why, sizeof why);
  if (!may_be_there) snprintf(w->why, sizeof w->why, "no compiler: %s", why);
  const int is_asked_for = first_compiler(w) && first_compiler(w)->wants_cc; /* the host named a C compiler */
  w->is_quiet = !is_asked_for && !find_compiler(w); /* may_be_there may have opened one */
  return may_be_there;
}

/* ---- What a work does, without the lock ---- */

/* The key in the disk cache: the kernel's key, the machine, the library's build; malloc'ed. */
static char *disk_key(const work *w, size_t *size) {
  char machine[64];
  const size_t most = w->entry->size + sizeof machine + sizeof "\nbuild \n" QN_BUILD_ID;
  char *key = target_of(w)->machine(machine, sizeof machine) ? malloc(most) : NULL;
  if (key) *size = (size_t)snprintf(key, most, "%s%s\nbuild %s\n", w->entry->key, machine, QN_BUILD_ID);
  return key;
}

/* 1: loaded. The code must be by the compiler that would be used now. If that is not known, code by any compiler will do: the
 * results have the same bits. */
static int load_from_disk(work *w) {
  qn_bytes object = {NULL, 0};
  size_t key_size = 0;
  char *key = disk_key(w, &key_size);
  const char *check = find_compiler(w) ? w->identity : NULL;
  if (key && qn_jit_cache_get(w->jit->cache, key, key_size, check, check ? strlen(check) : 0, &object)) {
    target_of(w)->load(&w->kernel, &object, &w->loaded, w->why, sizeof w->why);
    w->tier = "disk";
    free(object.data);
  }
  free(key);
  return w->loaded.handle != NULL;
}

/* 0: w->why has the reason. */
static int generate(work *w) {
  const qn_entry *entry = w->entry;
  const char *dtypes[QN_MAX_OPERANDS];
  int64_t cost = 0;
  if (!has_compiler(w)) return 0;
  for (int32_t k = 0; k < entry->n_in + entry->n_out; k++) dtypes[k] = qn_dtype_infos[entry->dtypes[k]].name;
  const qn_source_request request = {.symbol = entry->name, .op = entry->op, .canonical = entry->canonical, .dtypes = dtypes,
                                     .n_in = entry->n_in, .n_out = entry->n_out, .classes = entry->classes,
                                     .rank = entry->rank, .target = entry->target->name, .is_wide = entry->is_wide, .cost = &cost};
  qn_bytes *source = &w->source;
  const quern_status status = qn_generator_source(w->jit->generator, &request, source, &w->kernel.items_per_thread);
  if (status != QUERN_OK) {
    snprintf(w->why, sizeof w->why, "%s", quern_last_error());
    w->is_quiet = status == QUERN_E_UNSUPPORTED;
    return 0;
  }
  w->is_costly = cost > LARGE_COST;
  qn_record_dump(&w->jit->record, entry->name, target_of(w)->suffix, source->data, source->size, &w->jit->log);
  return 1;
}

/* Tries the target's compilers in order until one makes code that loads. w->why: the error messages of the others. */
static void compile(work *w, const qn_bytes *source) {
  char why[2048];
  w->why[0] = 0;
  for (const qn_compiler *by = first_compiler(w); by; by = compiler_from(w, by + 1)) {
    why[0] = 0;
    if (!by->identity(w->jit->cc, w->identity, sizeof w->identity)) w->identity[0] = 0;
    w->compiles = 1;
    if (by->compile(w->jit->cc, &w->kernel, source, &w->object, why, sizeof why)) {
      w->tier = by->tier;
      if (target_of(w)->load(&w->kernel, &w->object, &w->loaded, why, sizeof why)) return;
      free(w->object.data);
    }
    w->object = (qn_bytes){NULL, 0};
    const size_t said = strlen(w->why);
    snprintf(w->why + said, sizeof w->why - said, "%s%s: %s", said ? "; " : "", by->tier, why);
  }
}

static void keep_on_disk(const work *w) {
  size_t key_size = 0;
  char *key = w->object.data && w->identity[0] ? disk_key(w, &key_size) : NULL;
  if (key)
    qn_jit_cache_put(w->jit->cache, key, key_size, w->identity, strlen(w->identity), w->object.data, w->object.size);
  free(key);
}

static void log_outcome(const work *w) {
  const qn_log *log = &w->jit->log;
  const char *name = w->entry->name;
  const int line = (int)strcspn(w->why, "\n"), tenths = tenths_of_ms(w->ns), is_made = w->loaded.handle != NULL;
  if (is_made && w->compiles && w->why[0] && !atomic_exchange(&w->jit->said_worse, 1))
    qn_log_say(log, QN_LOG_WARNING, "%s: compiled by %s, since %.*s", name, w->tier, line, w->why);
  else if (is_made && w->compiles)
    qn_log_say(log, QN_LOG_INFO, "%s: compiled by %s in %d.%d ms", name, w->tier, tenths / 10, tenths % 10);
  else if (is_made)
    qn_log_say(log, QN_LOG_DEBUG, "%s: found in the disk cache", name);
  else if (!w->is_quiet)
    qn_log_say(log, QN_LOG_WARNING, "%s: not compiled: %.*s", name, line, w->why);
  else if (!atomic_exchange(&w->jit->said_why, 1))
    qn_log_say(log, QN_LOG_INFO, "nothing is compiled here: %.*s", line, w->why);
}

/* ---- The steps of a work: called with the lock held, which they release in between ---- */

static void try_disk(work *w) {
  qn_jit_queue_unlock();
  const int64_t start = qn_clock_ns();
  load_from_disk(w);
  const int is_slow = qn_clock_ns() - start > SLOW_LOOK_NS;
  qn_jit_queue_lock();
  w->entry->is_polled = 1;
  w->jit->n_slow += is_slow;
}

static void try_generator(work *w) {
  qn_jit_queue_unlock();
  const int64_t start = qn_clock_ns();
  generate(w);
  w->ns = qn_clock_ns() - start;
  qn_jit_queue_lock();
  w->kernel.is_large = w->is_costly;
  w->uses_context = !w->source.data && !w->jit->is_dying;
  qn_jit_queue_notify();
}

static void try_compilers(work *w) {
  qn_jit_queue_unlock();
  const int64_t start = qn_clock_ns();
  compile(w, &w->source);
  w->ns += qn_clock_ns() - start;
  qn_jit_queue_lock();
  w->uses_context = !w->jit->is_dying;
}

/* Gives the code, or the reason of the failure, to the entry. */
static void publish(work *w) {
  qn_entry *entry = w->entry, *dead = NULL;
  qn_target_code lost = {.handle = NULL};
  entry->info.compiles += w->compiles;
  entry->info.compile_ms += (double)w->ns / 1e6;
  if (w->jit->is_dying) {
    lost = w->loaded;
    w->loaded = (qn_target_code){.handle = NULL};
    qn_entry_set_failed(entry, "its context was released");
  } else if (!w->loaded.handle && atomic_load(&w->is_cancelled)) {
    w->is_quiet = 1;
    qn_entry_set_wanted(entry, "cancelled");
  } else if (!w->loaded.handle) {
    (w->is_transient ? qn_entry_set_transient : qn_entry_set_failed)(entry, w->why);
    w->is_quiet |= entry->n_transient > 1; /* said once */
  } else {
    const int tenths = tenths_of_ms(w->ns);
    if (w->compiles)
      qn_entry_set_reason(entry, "compiled by %s in %d.%d ms", w->tier, tenths / 10, tenths % 10);
    else
      qn_entry_set_reason(entry, "found in the disk cache");
    qn_entry_set_loaded(entry, w->tier, w->loaded, &dead);
  }
  qn_jit_queue_notify();
  if (!dead && !lost.handle) return;
  qn_jit_queue_unlock();
  qn_entries_free(dead);
  if (lost.handle) target_of(w)->unload(lost.handle);
  qn_jit_queue_lock();
}

/* Writes the cache entry and logs. The entry is written for a released context, too: the next process can use it. */
static void conclude(work *w) {
  const int is_dying = w->jit->is_dying, has_listener = !is_dying && !qn_jit_queue_is_ending();
  qn_jit_queue_unlock();
  keep_on_disk(w);
  if (!is_dying && w->compiles && w->why[0])
    qn_record_dump(&w->jit->record, w->entry->name, ".log", w->why, strlen(w->why), &w->jit->log);
  if (has_listener) log_outcome(w);
  qn_jit_queue_lock();
  free(w->object.data);
}

/* The second half of a work: from the source on. Frees it. */
static void finish(work *w) {
  if (w->source.data && !(w->kernel.is_large && w->jit->is_dying)) try_compilers(w);
  w->is_transient |= qn_transient_take();
  publish(w);
  conclude(w);
  end(w);
  free(w->source.data);
  free(w);
}

static work *work_of(const qn_jit_task *task) {
  work *w = works;
  while (&w->entry->task != task) w = w->next; /* it is there: the task is its */
  return w;
}

static void run_large(qn_jit_task *task) {
  work *w = work_of(task);
  w->thread = pthread_self();
  qn_transient_take();
  finish(w);
}

static void drop_large(qn_jit_task *task, const char *why) {
  work *w = work_of(task);
  unlink_work(w);
  qn_entry_set_wanted(w->entry, why);
  qn_entry_unref_later(w->entry);
  w->jit->references--; /* not the last one: who drops has another, or the process ends */
  qn_jit_queue_notify();
  free(w->source.data);
  free(w);
}

/* Leaves the rest of a work to the thread for large ones. 0: there is none. */
static int leave_to_other(work *w) {
  qn_jit_task *task = &w->entry->task;
  if (!w->kernel.is_large || !qn_jit_queue_is_here() || task->is_large || w->jit->is_dying) return 0;
  *task = (qn_jit_task){.is_urgent = task->is_urgent, .is_large = 1, .run = run_large, .drop = drop_large};
  if (!qn_jit_queue_add(task)) return 1;
  return 0;
}

void qn_work_run(qn_entry *entry) {
  work *w = malloc(sizeof *w);
  if (!w) {
    qn_entry_set_transient(entry, "out of memory");
    qn_entry_unref_later(entry);
    qn_jit_queue_notify();
    return;
  }
  begin(w, entry);
  entry->references--; /* the task's, now the work's */
  if (!entry->is_polled) try_disk(w);
  qn_transient_take(); /* that a look into the cache failed is no reason to try again */
  if (!w->loaded.handle && !w->jit->is_dying) try_generator(w);
  w->is_transient = qn_transient_take();
  if (!w->source.data || w->jit->is_dying || !leave_to_other(w)) finish(w);
}

void qn_work_poll_disk(qn_entry *entry) {
  /* On the heap: callers' stacks may be small. */
  work *w = !entry->is_polled && entry->table->jit->n_slow < MOST_SLOW ? malloc(sizeof *w) : NULL;
  if (!w) return;
  qn_sentence kept;
  qn_status_keep(&kept);
  begin(w, entry);
  try_disk(w);
  if (w->loaded.handle) {
    publish(w);
    conclude(w);
  }
  end(w);
  free(w);
  qn_status_restore(&kept);
}
