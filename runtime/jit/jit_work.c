/* jit_work.c: see jit_work.h.
 *
 * What takes time is done by a *work*, without the lock: it counts code and context, and stands in a list by which a context
 * that ends knows whom to wait for, and a forked child whose work is lost. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* clock_gettime */
#endif
#include "jit/jit_work.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "build_id.h"
#include "core/base/isa.h"
#include "core/base/status.h"
#include "cuda/cuda_nvrtc.h"
#include "toolchain/jit_cc.h"
#include "toolchain/jit_clang.h"

/* A disk where looks take long is left to the background thread: after MOST_SLOW of them. */
#define SLOW_LOOK_NS 1000000
#define MOST_SLOW 3

typedef struct work {
  struct work *next;
  qn_entry *entry;
  qn_jit *jit;
  pthread_t thread;
  int uses_context; /* its generator, its log: not to go on after qn_jit_destroy */
  /* What came of it: */
  qn_made made;
  qn_bytes object; /* for the disk */
  const char *tier;
  int32_t turn;    /* cuda_image.h */
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
  if (is_last) qn_work_free(w->jit);
  qn_jit_queue_lock();
}

int qn_work_uses(const qn_jit *jit) {
  for (const work *w = works; w; w = w->next) {
    if (w->jit == jit && w->uses_context && !pthread_equal(w->thread, pthread_self())) return 1;
  }
  return 0;
}

int qn_work_has(const qn_entry *entry, int *is_mine) {
  const work *w = works;
  while (w && w->entry != entry) w = w->next;
  *is_mine = w && pthread_equal(w->thread, pthread_self());
  return w != NULL;
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

/* ---- Targets and compilers: all that differs between them ---- */

typedef struct target {
  const char *suffix; /* of a dumped source */
  int (*machine)(char *text, size_t size); /* the key's line on disk: what the code must fit; 0: there is no such machine */
  qn_made (*load)(const work *w, const qn_bytes *object, char *why, size_t why_size);
} target;

static int cpu_machine(char *text, size_t size) {
  snprintf(text, size, "isa %s", qn_isa_name(qn_isa_detect()));
  return 1;
}

static qn_made cpu_load(const work *w, const qn_bytes *object, char *why, size_t why_size) {
  return (qn_made){.loaded = qn_object_load(object->data, object->size, w->entry->name, why, why_size)};
}

/* The chip is in the kernel's key. A driver runs what an NVRTC of no later version has made, and PTX does not outlive it. */
static int cuda_machine(char *text, size_t size) {
  quern_status status;
  const qn_cuda_driver *driver = qn_cuda_open(&status);
  if (driver) snprintf(text, size, "driver %d.%d", driver->version / 1000, driver->version % 1000 / 10);
  return driver != NULL;
}

static qn_made cuda_load(const work *w, const qn_bytes *object, char *why, size_t why_size) {
  return (qn_made){.image = qn_cuda_image_make(object->data, object->size, w->entry->name, why, why_size)};
}

static const target cpu = {".c", cpu_machine, cpu_load}, cuda = {".cu", cuda_machine, cuda_load};
static const target *target_of(const work *w) { return w->entry->capability ? &cuda : &cpu; }

typedef struct compiler {
  const char *tier;
  const target *target;
  int (*is_meant)(const qn_jit *jit);
  /* Who would compile, opening nothing; 0: that is not known, or nobody. */
  int (*identity)(const qn_jit *jit, char *text, size_t size);
  /* Of one without an identity: whether it is worth asking. It may be opened for that. */
  int (*may_be_there)(char *why, size_t why_size);
  int (*compile)(const work *w, const qn_bytes *source, qn_bytes *object, char *why, size_t why_size);
} compiler;

static int is_named(const qn_jit *jit) { return jit->cc != NULL; }

static int cc_identity(const qn_jit *jit, char *text, size_t size) { return qn_cc_identity(jit->cc, text, size); }

static int cc_may_be_there(char *why, size_t why_size) { return (void)why, (void)why_size, 0; }

static int cc_compile(const work *w, const qn_bytes *source, qn_bytes *object, char *why, size_t why_size) {
  const qn_compile_request request = {source->data, source->size, qn_isa_detect()};
  return qn_cc_compile(w->jit->cc, &request, object, why, why_size);
}

static int is_meant_always(const qn_jit *jit) { return (void)jit, 1; }

static int clang_identity(const qn_jit *jit, char *text, size_t size) { return (void)jit, qn_clang_identity(text, size); }

/* One that was never asked does not know yet what it lacks: then it is asked. */
static int clang_may_be_there(char *why, size_t why_size) {
  const char *state = qn_clang_state();
  snprintf(why, why_size, "%s", state);
  return strcmp(state, "ready") == 0 || strcmp(state, "not loaded yet") == 0;
}

static int clang_compile(const work *w, const qn_bytes *source, qn_bytes *object, char *why, size_t why_size) {
  const qn_compile_request request = {source->data, source->size, qn_isa_detect()};
  (void)w;
  return qn_clang_compile(&request, object, why, why_size);
}

static int nvrtc_identity(const qn_jit *jit, char *text, size_t size) { return (void)jit, qn_nvrtc_identity(text, size); }

static int nvrtc_compile(const work *w, const qn_bytes *source, qn_bytes *object, char *why, size_t why_size) {
  char file[sizeof w->entry->name + sizeof ".cu"];
  snprintf(file, sizeof file, "%s.cu", w->entry->name);
  const qn_nvrtc_request request = {source->data, file, w->entry->capability, w->turn};
  return qn_nvrtc_compile(&request, object, why, why_size);
}

/* In the order in which they are asked: who names a C compiler means it. */
static const compiler compilers[] = {
  {"cc", &cpu, is_named, cc_identity, cc_may_be_there, cc_compile},
  {"clang", &cpu, is_meant_always, clang_identity, clang_may_be_there, clang_compile},
  {"nvrtc", &cuda, is_meant_always, nvrtc_identity, qn_nvrtc_is_there, nvrtc_compile},
};

/* The first from `by` on that is meant for this work; NULL: none. */
static const compiler *compiler_from(const work *w, const compiler *by) {
  static const compiler *const end = compilers + sizeof compilers / sizeof compilers[0];
  while (by < end && !(by->target == target_of(w) && by->is_meant(w->jit))) by++;
  return by < end ? by : NULL;
}

/* Whether any is known to be there; the first one's identity, else "". */
static int find_compiler(work *w) {
  for (const compiler *by = compilers; (by = compiler_from(w, by)); by++) {
    if (by->identity(w->jit, w->identity, sizeof w->identity)) return 1;
  }
  w->identity[0] = 0;
  return 0;
}

/* The same, or that one may be there; else w->why. */
static int has_compiler(work *w) {
  int may_be_there = 0;
  char why[1024] = "";
  if (find_compiler(w)) return 1;
  for (const compiler *by = compilers; (by = compiler_from(w, by)); by++) may_be_there |= by->may_be_there(why, sizeof why);
  if (!may_be_there) snprintf(w->why, sizeof w->why, "no compiler: %s", why);
  const int is_asked_for = w->jit->cc && target_of(w) == &cpu;
  w->is_quiet = !is_asked_for && !find_compiler(w); /* it may have been opened */
  return may_be_there;
}

/* ---- What a work does, without the lock ---- */

/* What finds code on disk: the kernel's key, and what for and by which library it was made; malloc'ed. */
static char *disk_key(const work *w, size_t *size) {
  char machine[64];
  const size_t most = w->entry->size + sizeof machine + sizeof "\nbuild \n" QN_BUILD_ID;
  char *key = target_of(w)->machine(machine, sizeof machine) ? malloc(most) : NULL;
  if (key) *size = (size_t)snprintf(key, most, "%s%s\nbuild %s\n", w->entry->key, machine, QN_BUILD_ID);
  return key;
}

/* 1: there is code, made by who would make it now; where that is nobody, or not known before it is opened, by anybody: only the
 * clock tells compilers apart. */
static int load_from_disk(work *w) {
  qn_bytes object = {NULL, 0};
  size_t key_size = 0;
  char *key = disk_key(w, &key_size);
  const char *check = find_compiler(w) ? w->identity : NULL;
  if (key && qn_jit_cache_get(w->jit->cache, key, key_size, check, check ? strlen(check) : 0, &object)) {
    w->made = target_of(w)->load(w, &object, w->why, sizeof w->why);
    w->tier = "disk";
    free(object.data);
  }
  free(key);
  return qn_made_is_any(w->made);
}

/* 0: w->why says why there is none. */
static int generate(work *w, qn_bytes *source) {
  const qn_entry *entry = w->entry;
  const char *dtypes[QN_MAX_OPERANDS];
  if (!has_compiler(w)) return 0;
  for (int32_t k = 0; k < entry->n_in + entry->n_out; k++) dtypes[k] = qn_dtype_infos[entry->dtypes[k]].name;
  const qn_source_request request = {.symbol = entry->name, .canonical = entry->canonical, .dtypes = dtypes,
                                     .n_in = entry->n_in, .n_out = entry->n_out, .classes = entry->classes,
                                     .rank = entry->rank, .is_cuda = entry->capability != 0, .is_wide = entry->is_wide};
  const quern_status status = qn_generator_source(w->jit->generator, &request, source, &w->turn);
  if (status != QUERN_OK) {
    snprintf(w->why, sizeof w->why, "%s", quern_last_error());
    w->is_quiet = status == QUERN_E_UNSUPPORTED;
    return 0;
  }
  qn_record_dump(&w->jit->record, entry->name, target_of(w)->suffix, source->data, source->size, &w->jit->log);
  return 1;
}

/* Asks the compilers one by one; w->why is what those that failed had to say. */
static void compile(work *w, const qn_bytes *source) {
  char why[2048];
  w->why[0] = 0;
  for (const compiler *by = compilers; (by = compiler_from(w, by)); by++) {
    why[0] = 0;
    if (!by->identity(w->jit, w->identity, sizeof w->identity)) w->identity[0] = 0;
    w->compiles = 1;
    if (by->compile(w, source, &w->object, why, sizeof why)) {
      w->tier = by->tier;
      w->made = by->target->load(w, &w->object, why, sizeof why);
      if (qn_made_is_any(w->made)) return;
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

static void tell_log(const work *w) {
  const qn_log *log = &w->jit->log;
  const char *name = w->entry->name;
  const int line = (int)strcspn(w->why, "\n"), tenths = tenths_of_ms(w->ns), is_made = qn_made_is_any(w->made);
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
  qn_made lost = {NULL, NULL};
  entry->info.compiles += w->compiles;
  entry->info.compile_ms += (double)w->ns / 1e6;
  if (w->jit->is_dying) {
    lost = w->made;
    w->made = (qn_made){NULL, NULL};
    qn_entry_set_failed(entry, "its context was released");
  } else if (!qn_made_is_any(w->made)) {
    qn_entry_set_failed(entry, w->why);
  } else {
    const int tenths = tenths_of_ms(w->ns);
    if (w->compiles)
      qn_entry_say(entry, "compiled by %s in %d.%d ms", w->tier, tenths / 10, tenths % 10);
    else
      qn_entry_say(entry, "found in the disk cache");
    qn_entry_set_made(entry, w->tier, w->made, &dead);
  }
  qn_jit_queue_tell();
  if (!dead && !qn_made_is_any(lost)) return;
  qn_jit_queue_unlock();
  qn_entry_bury(dead);
  qn_made_free(lost);
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
  if (!qn_made_is_any(w->made) && !w->jit->is_dying) try_compilers(w);
  publish(w);
  conclude(w);
  end(w);
}

void qn_work_run(qn_entry *entry) {
  work w;
  begin(&w, entry);
  entry->references--; /* the job's, now the work's */
  make(&w);
}

void qn_work_look(qn_entry *entry) {
  /* On the heap: callers' stacks may be small. */
  work *w = !entry->looked && entry->table->jit->n_slow < MOST_SLOW ? malloc(sizeof *w) : NULL;
  if (!w) return;
  qn_sentence kept;
  qn_status_keep(&kept);
  begin(w, entry);
  try_disk(w);
  if (qn_made_is_any(w->made)) {
    publish(w);
    conclude(w);
  }
  end(w);
  free(w);
  qn_status_restore(&kept);
}
