/* jit.c: from a kernel that is wanted to code; see jit.h.
 *
 * What takes time is done by a *work*, without the lock of jit_queue.h: it counts code and context, and stands in a
 * list by which a context that ends knows whom to wait for, and a forked child whose work is lost. A look into the disk
 * cache is done on the caller's thread, so that a warm process has its code at once; all else on the background thread,
 * in mode sync as well: it has the stack, the signal mask and the floating point environment that a caller may not
 * have. A caller's thread is not cancelled in here: others would wait for its lock, or for the work in its hand. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* clock_gettime, strdup */
#endif
#include "jit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "build_id.h"
#include "core/isa.h"
#include "core/status.h"
#include "core/thread.h"
#include "jit_cc.h"
#include "jit_clang.h"
#include "jit_code.h"
#include "jit_environment.h"
#include "jit_queue.h"
#include "jit_record.h"
#include "object_loader.h"

#define DEFAULT_LIMIT ((size_t)64 << 20)
/* A disk where looks take long is left to the background thread: after MOST_SLOW of them. */
#define SLOW_LOOK_NS 1000000
#define MOST_SLOW 3

struct qn_jit {
  qn_table table;
  int32_t mode;
  int is_dying;
  int64_t references; /* the owner's, and one for each work */
  qn_generator *generator;
  qn_jit_cache *cache;
  char *cc; /* NULL: not opted in */
  qn_log log;
  qn_record record;
  int n_slow; /* looks into the disk cache that took long */
  const char *unsaid; /* what keeps the background thread from its jobs; said when the lock is free */
  int said_unsaid;
  atomic_int is_mode_unknown; /* QUERN_JIT says no mode, and that has not been said */
  atomic_int said_why;        /* that nothing can be compiled here */
  atomic_int said_worse;      /* that the compiler which the host named failed */
};

typedef struct work {
  struct work *next;
  qn_entry *entry;
  qn_jit *jit;
  pthread_t thread;
  int uses_context; /* its generator, its log: not to go on after qn_jit_destroy */
  /* What came of it: */
  qn_loaded *loaded;
  qn_bytes object; /* for the disk */
  const char *tier;
  int64_t compiles;
  int64_t ns;      /* that source and compilers took */
  int is_quiet;    /* it failed as it must: there is nothing here to compile with */
  char identity[2048], why[4096];
} work;

static work *works;

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* For texts: a host's locale has its say about floating point numbers. */
static int tenths_of_ms(int64_t ns) { return (int)((ns + 50000) / 100000); }

/* ---- Works: begun and ended with the lock held ---- */

static void jit_free(qn_jit *jit);
static void forget_works(void);

static void begin(work *w, qn_entry *entry) {
  memset(w, 0, offsetof(work, identity));
  w->identity[0] = w->why[0] = 0;
  w->entry = entry;
  w->jit = entry->table->jit;
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

/* Gives the lock up for a moment if there is something to free. */
static void end(work *w) {
  qn_entry *dead = NULL;
  unlink_work(w);
  qn_entry_unref(w->entry, &dead);
  const int is_last = --w->jit->references == 0;
  qn_jit_queue_tell();
  if (!dead && !is_last) return;
  qn_jit_queue_unlock();
  qn_entry_bury(dead);
  if (is_last) jit_free(w->jit);
  qn_jit_queue_lock();
}

/* Whether another thread uses what a context lends. This one may be at it as well: a log may release the context. */
static int is_used(const qn_jit *jit) {
  for (const work *w = works; w; w = w->next) {
    if (w->jit == jit && w->uses_context && !pthread_equal(w->thread, pthread_self())) return 1;
  }
  return 0;
}

/* Who has the entry in hand; NULL: nobody. */
static const work *work_of(const qn_entry *entry) {
  const work *w = works;
  while (w && w->entry != entry) w = w->next;
  return w;
}

/* In a forked child, with the lock held: works of other threads are lost. A context that only they still counted stays
 * in memory: what they were at with it is not known. */
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
  qn_entry_bury(dead);
}

/* ---- Compilers ---- */

typedef struct compiler {
  const char *tier;
  int (*identity)(const qn_jit *jit, char *text, size_t size);
  int (*compile)(const qn_jit *jit, const qn_compile_request *request, qn_bytes *object, char *why, size_t why_size);
} compiler;

static int clang_identity(const qn_jit *jit, char *text, size_t size) {
  (void)jit;
  return qn_clang_identity(text, size);
}

static int clang_compile(const qn_jit *jit, const qn_compile_request *request, qn_bytes *object, char *why,
                         size_t why_size) {
  (void)jit;
  return qn_clang_compile(request, object, why, why_size);
}

static int cc_identity(const qn_jit *jit, char *text, size_t size) { return qn_cc_identity(jit->cc, text, size); }

static int cc_compile(const qn_jit *jit, const qn_compile_request *request, qn_bytes *object, char *why,
                      size_t why_size) {
  return qn_cc_compile(jit->cc, request, object, why, why_size);
}

/* In the order in which they are asked: who names a C compiler means it. */
static const compiler compilers[] = {{"cc", cc_identity, cc_compile}, {"clang", clang_identity, clang_compile}};
#define N_COMPILERS (sizeof compilers / sizeof compilers[0])
static const compiler *compilers_of(const qn_jit *jit) { return jit->cc ? compilers : compilers + 1; }
static const compiler *const compilers_end = compilers + N_COMPILERS;

/* Whether any is there; the first one's identity, else "". */
static int find_compiler(work *w) {
  for (const compiler *by = compilers_of(w->jit); by != compilers_end; by++) {
    if (by->identity(w->jit, w->identity, sizeof w->identity)) return 1;
  }
  w->identity[0] = 0;
  return 0;
}

/* ---- What a work does, without the lock ---- */

/* What finds code on disk: the kernel's key, and what for and by which library it was made; malloc'ed. */
static char *disk_key(const qn_entry *entry, size_t *size) {
  const size_t most = entry->size + sizeof "isa generic\nbuild \n" QN_BUILD_ID;
  const char *isa = qn_isa_name(qn_isa_detect());
  char *key = malloc(most);
  if (key) *size = (size_t)snprintf(key, most, "%sisa %s\nbuild %s\n", entry->key, isa, QN_BUILD_ID);
  return key;
}

/* 1: there is code, made by who would make it now; where nobody would, by anybody: only the clock tells compilers
 * apart. */
static int load_from_disk(work *w) {
  qn_bytes object = {NULL, 0};
  size_t key_size = 0;
  char *key = disk_key(w->entry, &key_size);
  const char *check = find_compiler(w) ? w->identity : NULL;
  if (key && qn_jit_cache_get(w->jit->cache, key, key_size, check, check ? strlen(check) : 0, &object)) {
    w->loaded = qn_object_load(object.data, object.size, w->entry->name, w->why, sizeof w->why);
    w->tier = "disk";
    free(object.data);
  }
  free(key);
  return w->loaded != NULL;
}

/* 0: w->why says why there is none. */
static int generate(work *w, qn_bytes *source) {
  const qn_entry *entry = w->entry;
  const char *dtypes[QN_MAX_OPERANDS];
  if (!find_compiler(w)) {
    const char *why = qn_clang_state();
    w->is_quiet = !w->jit->cc;
    /* One that was never asked does not know yet what it lacks: then it is asked. */
    if (strcmp(why, "ready") != 0 && strcmp(why, "not loaded yet") != 0) {
      snprintf(w->why, sizeof w->why, "no compiler: %s", why);
      return 0;
    }
  }
  for (int32_t k = 0; k < entry->n_in + entry->n_out; k++) dtypes[k] = qn_dtype_infos[entry->dtypes[k]].name;
  const qn_source_request request = {.symbol = entry->name, .canonical = entry->canonical, .dtypes = dtypes,
                                     .n_in = entry->n_in, .n_out = entry->n_out, .classes = entry->classes,
                                     .rank = entry->rank};
  const quern_status status = qn_generator_source(w->jit->generator, &request, source, NULL);
  if (status != QUERN_OK) {
    snprintf(w->why, sizeof w->why, "%s", quern_last_error());
    w->is_quiet = status == QUERN_E_UNSUPPORTED;
    return 0;
  }
  qn_record_dump(&w->jit->record, entry->name, ".c", source->data, source->size, &w->jit->log);
  return 1;
}

/* Asks the compilers one by one; w->why is what those that failed had to say. */
static void compile(work *w, const qn_bytes *source) {
  const qn_compile_request request = {source->data, source->size, qn_isa_detect()};
  char why[2048];
  w->why[0] = 0;
  for (const compiler *by = compilers_of(w->jit); by != compilers_end && !w->loaded; by++) {
    why[0] = 0;
    if (!by->identity(w->jit, w->identity, sizeof w->identity)) w->identity[0] = 0;
    w->compiles = 1;
    if (by->compile(w->jit, &request, &w->object, why, sizeof why)) {
      w->tier = by->tier;
      w->loaded = qn_object_load(w->object.data, w->object.size, w->entry->name, why, sizeof why);
      if (!w->loaded) free(w->object.data);
    }
    if (w->loaded) return;
    w->object = (qn_bytes){NULL, 0};
    const size_t said = strlen(w->why);
    snprintf(w->why + said, sizeof w->why - said, "%s%s: %s", said ? "; " : "", by->tier, why);
  }
}

static void keep_on_disk(const work *w) {
  size_t key_size = 0;
  char *key = w->object.data && w->identity[0] ? disk_key(w->entry, &key_size) : NULL;
  if (key)
    qn_jit_cache_put(w->jit->cache, key, key_size, w->identity, strlen(w->identity), w->object.data, w->object.size);
  free(key);
}

static void tell_log(const work *w) {
  const qn_log *log = &w->jit->log;
  const char *name = w->entry->name;
  const int line = (int)strcspn(w->why, "\n"), tenths = tenths_of_ms(w->ns);
  if (w->loaded && w->compiles && w->why[0] && !atomic_exchange(&w->jit->said_worse, 1))
    qn_log_say(log, QN_LOG_WARNING, "%s: compiled by %s, since %.*s", name, w->tier, line, w->why);
  else if (w->loaded && w->compiles)
    qn_log_say(log, QN_LOG_INFO, "%s: compiled by %s in %d.%d ms", name, w->tier, tenths / 10, tenths % 10);
  else if (w->loaded)
    qn_log_say(log, QN_LOG_DEBUG, "%s: found in the disk cache", name);
  else if (!w->is_quiet)
    qn_log_say(log, QN_LOG_WARNING, "%s: not compiled: %.*s", name, line, w->why);
  else if (!atomic_exchange(&w->jit->said_why, 1))
    qn_log_say(log, QN_LOG_INFO, "nothing is compiled here: %.*s", line, w->why);
}

/* ---- A work's way: with the lock held, given up in between ---- */

static void try_disk(work *w) {
  qn_jit_queue_unlock();
  const int64_t start = now_ns();
  load_from_disk(w);
  const int is_slow = now_ns() - start > SLOW_LOOK_NS;
  qn_jit_queue_lock();
  w->entry->looked = 1;
  w->jit->n_slow += is_slow;
}

static void try_compilers(work *w) {
  qn_bytes source = {NULL, 0};
  qn_jit_queue_unlock();
  const int64_t start = now_ns();
  const int has_source = generate(w, &source);
  qn_jit_queue_lock();
  if (!has_source) return;
  w->uses_context = 0;
  qn_jit_queue_tell();
  qn_jit_queue_unlock();
  compile(w, &source);
  free(source.data);
  w->ns = now_ns() - start;
  qn_jit_queue_lock();
  w->uses_context = !w->jit->is_dying;
}

/* Hands over the code or the reason. */
static void publish(work *w) {
  qn_entry *entry = w->entry, *dead = NULL;
  qn_loaded *lost = NULL;
  entry->info.compiles += w->compiles;
  entry->info.compile_ms += (double)w->ns / 1e6;
  if (w->jit->is_dying) {
    lost = w->loaded;
    w->loaded = NULL;
    qn_entry_set_failed(entry, "its context was released");
  } else if (!w->loaded) {
    qn_entry_set_failed(entry, w->why);
  } else {
    const int tenths = tenths_of_ms(w->ns);
    qn_kernel *kernel;
    void *address = qn_object_entry(w->loaded);
    memcpy(&kernel, &address, sizeof kernel); /* no cast makes a function of it */
    if (w->compiles)
      qn_entry_say(entry, "compiled by %s in %d.%d ms", w->tier, tenths / 10, tenths % 10);
    else
      qn_entry_say(entry, "found in the disk cache");
    qn_entry_set_ready(entry, w->tier, qn_isa_detect(), kernel, w->loaded, &dead);
  }
  qn_jit_queue_tell();
  if (!dead && !lost) return;
  qn_jit_queue_unlock();
  qn_entry_bury(dead);
  if (lost) qn_object_unload(lost);
  qn_jit_queue_lock();
}

/* What is left to write and to say. To write it is worth while for a context that is gone, too: the next process has it. */
static void conclude(work *w) {
  const int is_dying = w->jit->is_dying, has_listener = !is_dying && !qn_jit_queue_is_ending();
  qn_jit_queue_unlock();
  keep_on_disk(w);
  if (!is_dying && w->compiles && w->why[0])
    qn_record_dump(&w->jit->record, w->entry->name, ".log", w->why, strlen(w->why), &w->jit->log);
  if (has_listener) tell_log(w);
  qn_jit_queue_lock();
  free(w->object.data);
}

static void make(work *w) {
  if (!w->entry->looked) try_disk(w);
  if (!w->loaded && !w->jit->is_dying) try_compilers(w);
  publish(w);
  conclude(w);
  end(w);
}

/* ---- Jobs ---- */

static void run_job(qn_jit_job *job) {
  qn_entry *entry = (qn_entry *)((char *)job - offsetof(qn_entry, job));
  work w;
  begin(&w, entry);
  entry->references--; /* the job's, now the work's */
  make(&w);
}

static void drop_job(qn_jit_job *job, const char *why) {
  qn_entry *entry = (qn_entry *)((char *)job - offsetof(qn_entry, job));
  qn_entry_set_wanted(entry, why);
  qn_entry_put_down(entry);
  qn_jit_queue_tell();
}

static void start_job(qn_jit *jit, qn_entry *entry) {
  const char *why;
  qn_entry_say(entry, "being compiled");
  entry->job = (qn_jit_job){.is_urgent = jit->mode == QUERN_JIT_SYNC, .run = run_job, .drop = drop_job};
  qn_entry_ref(entry);
  if (entry->job.is_urgent && qn_jit_queue_is_here()) { /* a log that the background thread called computes something */
    run_job(&entry->job);
  } else if ((why = qn_jit_queue_add(&entry->job))) {
    qn_entry_set_failed(entry, why);
    qn_entry_put_down(entry);
    if (!jit->said_unsaid && !qn_jit_queue_is_ending()) jit->unsaid = why;
    jit->said_unsaid = 1;
  }
}

static void start(qn_jit *jit, qn_entry *entry) {
  if (jit->mode == QUERN_JIT_OFF) {
    qn_entry_set_failed(entry, "compiling at run time is off");
    return;
  }
  qn_entry_set_making(entry, "being looked for on disk");
  /* On the heap: callers' stacks may be small. */
  work *w = !entry->looked && jit->n_slow < MOST_SLOW ? malloc(sizeof *w) : NULL;
  if (w) {
    qn_sentence kept;
    qn_status_keep(&kept);
    begin(w, entry);
    try_disk(w);
    if (w->loaded) {
      publish(w);
      conclude(w);
    }
    end(w);
    free(w);
    qn_status_restore(&kept);
  }
  if (entry->state == QN_ENTRY_MAKING) start_job(jit, entry);
}

/* Sees to it that somebody makes the code, if anybody can; in mode sync, waits until that is done, with all that is
 * said and kept of it. But not for itself, where a log that this thread called comes back for a kernel. */
static void want(qn_entry *entry) {
  qn_jit *jit = entry->table->jit;
  for (int waits = 0;; waits = 1) {
    if (entry->state == QN_ENTRY_WANTED) start(jit, entry);
    const work *w = work_of(entry);
    const int is_under_way = entry->state == QN_ENTRY_MAKING || (waits && w);
    const int is_mine = qn_jit_queue_is_here() || (w && pthread_equal(w->thread, pthread_self()));
    if (jit->mode != QUERN_JIT_SYNC || !is_under_way || is_mine) return;
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
    qn_record_add(&jit->record, &recorded, digest, entry->name, key);
    qn_entry_look_frozen(entry);
    want(entry);
  }
  const char *unsaid = jit->unsaid;
  jit->unsaid = NULL;
  qn_jit_queue_unlock();
  if (unsaid) qn_log_say(&jit->log, QN_LOG_WARNING, "nothing is compiled: %s", unsaid);
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
  if (entry->table && entry->state == QN_ENTRY_WANTED) want(entry);
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
  qn_entry_bury(dead);
  errno = kept_errno;
}

void qn_code_describe(const qn_code *code, qn_code_info *info) {
  qn_jit_queue_lock();
  *info = ((const qn_entry *)code)->info;
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
    jit_free(jit);
    return NULL;
  }
  jit->cache = qn_jit_cache_open(options ? options->cache_dir : NULL, &jit->log);
  errno = kept_errno;
  return jit;
}

static void jit_free(qn_jit *jit) {
  qn_jit_cache_close(jit->cache);
  qn_record_free(&jit->record);
  free(jit->cc);
  free(jit);
}

static void say_nothing(void *host, int level, const char *text) { (void)host, (void)level, (void)text; }

static int is_of(const qn_jit_job *job, const void *jit) {
  const qn_entry *entry = (const qn_entry *)((const char *)job - offsetof(qn_entry, job));
  return entry->table->jit == jit;
}

void qn_jit_destroy(qn_jit *jit) {
  if (!jit) return;
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  qn_entry *dead = NULL;
  qn_jit_queue_lock();
  jit->is_dying = 1;
  qn_jit_cache_hush(jit->cache); /* before a work can find the context dying: the cache's log goes with it */
  qn_jit_queue_drop(is_of, jit, "its context was released");
  while (is_used(jit)) qn_jit_queue_wait();
  qn_table_clear(&jit->table, &dead);
  jit->log = (qn_log){say_nothing, NULL}; /* for a work of this thread that is not at its end */
  const int is_last = --jit->references == 0;
  qn_jit_queue_unlock();
  qn_entry_bury(dead);
  if (is_last) jit_free(jit);
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
  if (!copy_text(path, qn_record_absolute, &absolute)) {
    status = qn_status_fail(QUERN_E_MEMORY, "record: out of memory");
  } else if (path && qn_record_append(absolute, "", 0, why, sizeof why)) {
    status = qn_status_fail(QUERN_E_IO, "record: %s", why);
    free(absolute);
  } else {
    qn_jit_queue_lock();
    qn_record_set(&jit->record, absolute);
    for (size_t i = 0; path && i < jit->table.n_buckets; i++) {
      for (const qn_entry *entry = jit->table.buckets[i]; entry; entry = entry->chain)
        qn_record_add(&jit->record, &recorded, entry->digest, entry->name, entry->key);
    }
    qn_jit_queue_unlock();
    qn_record_write(&jit->record, &recorded, &jit->log);
  }
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
  return status;
}
