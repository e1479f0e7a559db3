/* SPDX-License-Identifier: Apache-2.0
 *
 * generator.c: opens the module, keeps its states one per generator, turns its answers into statuses. See generator.h.
 *
 * The module is opened so that it finds its own Lua before one of the host (RTLD_DEEPBIND). Its memory comes from this
 * library: the host may have a malloc of its own that the module would not see. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* RTLD_DEEPBIND, uselocale */
#endif
#include "toolchain/generator.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

#include "core/base/float_env.h"
#include "core/base/status.h"
#include "toolchain/gen_module.h"
#include "base/threads/clock.h"
#include "base/files/module.h"
#include "base/threads/transient.h"

#define MODULE_FILE "quern-gen.so"
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FORK_WAIT_MS 30000 /* a sanitizer's allocator is not ready for a fork while another thread is in it */
#else
#define FORK_WAIT_MS 20
#endif

/* The text of a spec that was loaded, for a child that has to make the state anew. */
typedef struct kept_spec {
  struct kept_spec *next;
  size_t size;
  char *text; /* behind the name */
  char name[];
} kept_spec;

struct qn_generator {
  pthread_mutex_t lock;    /* held while its state runs */
  pthread_mutex_t loading; /* held while a spec is loaded, before `lock` */
  int is_lock_free, is_loading_free; /* at a fork: the forking thread has them */
  kept_spec *specs; /* the last one first */
  quern_gen_state *state; /* NULL: not needed so far */
  quern_gen_limits limits;
  qn_generator *next, *previous; /* in all_generators */
};

/* Locks are taken in this order: `listing`, generators', `opening`. */
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;
static qn_generator *all_generators;

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static const quern_gen_interface *module; /* under `opening` */
static char failure[512];              /* why there is no module; written once, before module_state is set to -1 */
static locale_t c_locale;              /* set before module_state is set to 1 */
static atomic_int module_state;        /* 0: not opened so far; 1: ready; -1: unusable, for good */

/* ---- Forks ---- */

/* A fork waits a moment for the generators that run. Of one that runs longer the child has a new state, made of the texts of its
 * specs; the old one is leaked. */
static void before_generator_fork(void) {
  const struct timespec until = qn_clock_deadline(FORK_WAIT_MS);
  pthread_mutex_lock(&listing);
  for (qn_generator *g = all_generators; g; g = g->next) {
    g->is_loading_free = pthread_mutex_trylock(&g->loading) == 0;
    g->is_lock_free = pthread_mutex_timedlock(&g->lock, &until) == 0;
  }
  pthread_mutex_lock(&opening);
}

static void after_generator_fork(void) {
  pthread_mutex_unlock(&opening);
  for (qn_generator *g = all_generators; g; g = g->next) {
    if (g->is_lock_free) pthread_mutex_unlock(&g->lock);
    if (g->is_loading_free) pthread_mutex_unlock(&g->loading);
  }
  pthread_mutex_unlock(&listing);
}

static void after_generator_fork_in_child(void) {
  for (qn_generator *g = all_generators; g; g = g->next) {
    if (!g->is_lock_free) {
      g->state = NULL;
      pthread_mutex_init(&g->lock, NULL);
    }
    if (!g->is_loading_free) pthread_mutex_init(&g->loading, NULL);
  }
  after_generator_fork();
}

/* Registered before the fork handlers of the other files: prepare handlers run in reverse order, so these locks are taken last.
 * A thread that holds one of the other locks may wait for these. */
__attribute__((constructor)) static void watch_generator_forks(void) {
  pthread_atfork(before_generator_fork, after_generator_fork, after_generator_fork_in_child);
}

/* ---- The module ---- */

/* 0: why has the reason. */
static int load(char *why, size_t size) {
  if (!c_locale) c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!c_locale) {
    snprintf(why, size, "out of memory");
    qn_transient_note(ENOMEM);
    return 0;
  }
  module = qn_module_open(MODULE_FILE, QUERN_GEN_SYMBOL, QUERN_GEN_ABI, QUERN_GEN_VERSION, why, size);
  return module != NULL;
}

/* 1: the module is open. -1: it cannot be used. Both are final. 0: it cannot be opened now; why has the reason. */
static int open_module(char *why, size_t size) {
  int state = atomic_load_explicit(&module_state, memory_order_acquire);
  if (state) return state;
  pthread_mutex_lock(&opening);
  state = atomic_load_explicit(&module_state, memory_order_relaxed);
  if (!state) {
    qn_transient_take();
    state = load(why, size) ? 1 : qn_transient_take() ? 0 : -1;
    if (state < 0) snprintf(failure, sizeof failure, "%s", why);
    if (state == 0) qn_transient_note(ENOMEM); /* for the caller */
    atomic_store_explicit(&module_state, state, memory_order_release);
  }
  pthread_mutex_unlock(&opening);
  return state;
}

/* Marks an open module as unusable. */
static void give_module_up(const char *why) {
  pthread_mutex_lock(&opening);
  if (atomic_load_explicit(&module_state, memory_order_relaxed) > 0) {
    snprintf(failure, sizeof failure, "%s", why ? why : "it cannot be used");
    atomic_store_explicit(&module_state, -1, memory_order_release);
  }
  pthread_mutex_unlock(&opening);
}

const char *qn_generator_state(void) {
  const int state = atomic_load_explicit(&module_state, memory_order_acquire);
  return state > 0 ? "ready" : state < 0 ? failure : "not loaded yet";
}

static quern_status refuse_without_module(void) {
  return qn_status_fail(QUERN_E_UNSUPPORTED, "the generator cannot be used: %s; what is built works without it", failure);
}

/* ---- Generators ---- */

qn_generator *qn_generator_create(void) {
  qn_generator *generator = calloc(1, sizeof *generator);
  if (!generator) return NULL;
  pthread_mutex_init(&generator->lock, NULL);
  pthread_mutex_init(&generator->loading, NULL);
  pthread_mutex_lock(&listing);
  generator->next = all_generators;
  if (all_generators) all_generators->previous = generator;
  all_generators = generator;
  pthread_mutex_unlock(&listing);
  return generator;
}

void qn_generator_begin_load(qn_generator *generator) { pthread_mutex_lock(&generator->loading); }
void qn_generator_end_load(qn_generator *generator) { pthread_mutex_unlock(&generator->loading); }

static void drop_kept(qn_generator *generator) {
  kept_spec *last = generator->specs;
  if (!last) return;
  generator->specs = last->next;
  free(last);
}

/* 0: out of memory. */
static int keep_spec(qn_generator *generator, const char *name, const char *text, size_t size) {
  const size_t name_size = strlen(name) + 1;
  kept_spec *kept = malloc(sizeof *kept + name_size + size + 1);
  if (!kept) return 0;
  memcpy(kept->name, name, name_size);
  kept->text = kept->name + name_size;
  memcpy(kept->text, text, size);
  kept->text[size] = 0;
  kept->size = size;
  kept->next = generator->specs;
  generator->specs = kept;
  return 1;
}

void qn_generator_limit(qn_generator *generator, int64_t nodes, int64_t cost, int64_t steps) {
  generator->limits = (quern_gen_limits){nodes, cost, steps};
}

int64_t qn_generator_node_limit(const qn_generator *generator) { return generator->limits.nodes; }

void qn_generator_destroy(qn_generator *generator) {
  if (!generator) return;
  pthread_mutex_lock(&listing);
  if (generator->next) generator->next->previous = generator->previous;
  if (generator->previous)
    generator->previous->next = generator->next;
  else
    all_generators = generator->next;
  pthread_mutex_unlock(&listing);
  if (generator->state) module->close(generator->state);
  while (generator->specs) drop_kept(generator);
  pthread_mutex_destroy(&generator->loading);
  pthread_mutex_destroy(&generator->lock);
  free(generator);
}

/* ---- Calls ---- */

/* The module's allocator. */
static void *resize(void *memory, size_t size) {
  if (size) return realloc(memory, size);
  free(memory);
  return NULL;
}

/* The caller's thread state, replaced while Lua runs: the locale affects reading and writing of numbers, the floating-point
 * environment affects arithmetic. */
typedef struct module_visit {
  locale_t locale;
  qn_float_env float_env;
  int kept_errno;
} module_visit;

static module_visit visit_begin(void) {
  module_visit visit = {.kept_errno = errno, .float_env = qn_float_env_enter()};
  visit.locale = uselocale(c_locale);
  return visit;
}

static void visit_end(module_visit visit) {
  uselocale(visit.locale);
  qn_float_env_leave(visit.float_env);
  errno = visit.kept_errno;
}

static quern_status status_of(quern_gen_kind kind) {
  switch (kind) {
    case QUERN_GEN_SYNTAX: return QUERN_E_SYNTAX;
    case QUERN_GEN_DTYPE: return QUERN_E_DTYPE;
    case QUERN_GEN_LIMIT: return QUERN_E_LIMIT;
    case QUERN_GEN_EXISTS: return QUERN_E_EXISTS;
    case QUERN_GEN_NOTFOUND: return QUERN_E_NOTFOUND;
    case QUERN_GEN_MEMORY: return QUERN_E_MEMORY;
    default: return QUERN_E_UNSUPPORTED;
  }
}

/* A request to the module: one of its functions and its arguments. */
typedef struct module_request {
  enum { LOAD_SPEC, DERIVATIVE, PROGRAM, SOURCE } what;
  const char *name, *text;
  size_t size;
  const quern_gen_request *source;
  int32_t *items_per_thread;
} module_request;

static quern_gen_kind ask(quern_gen_state *state, const module_request *request, quern_gen_answer *answer) {
  switch (request->what) {
    case LOAD_SPEC: return module->load_spec(state, request->name, request->text, request->size, answer);
    case DERIVATIVE: return module->derivative(state, request->name, answer);
    case PROGRAM: return module->program(state, request->name, request->text, answer);
    default: return module->source(state, request->source, answer, request->items_per_thread);
  }
}

/* Loads the kept specs into a new state, in their order. */
static quern_gen_kind reload(quern_gen_state *state, const kept_spec *spec, quern_gen_answer *answer) {
  if (!spec) return QUERN_GEN_OK;
  quern_gen_kind kind = reload(state, spec->next, answer);
  if (kind == QUERN_GEN_OK) kind = module->load_spec(state, spec->name, spec->text, spec->size, answer);
  if (kind == QUERN_GEN_OK) {
    free(answer->text);
    *answer = (quern_gen_answer){NULL, 0};
  }
  return kind;
}

static quern_gen_kind make_state(qn_generator *generator, quern_gen_answer *answer) {
  quern_gen_kind kind = module->open(resize, &generator->limits, &generator->state, answer);
  if (kind != QUERN_GEN_OK) return kind;
  kind = reload(generator->state, generator->specs, answer);
  if (kind == QUERN_GEN_OK) return kind;
  module->close(generator->state);
  generator->state = NULL;
  return kind;
}

/* *text: malloc'ed. */
static quern_status call(qn_generator *generator, const module_request *request, qn_bytes *text) {
  const int kept_errno = errno;
  char unopened[sizeof failure];
  const int state = open_module(unopened, sizeof unopened);
  errno = kept_errno;
  if (state < 0) return refuse_without_module();
  if (state == 0) return qn_status_fail(QUERN_E_MEMORY, "the generator cannot be opened now: %s", unopened);
  quern_gen_answer answer = {NULL, 0};
  quern_gen_kind kind = QUERN_GEN_OK;
  pthread_mutex_lock(&generator->lock);
  module_visit visit = visit_begin();
  if (!generator->state) kind = make_state(generator, &answer);
  if (kind == QUERN_GEN_OK) kind = ask(generator->state, request, &answer);
  if (kind == QUERN_GEN_OK && request->what == LOAD_SPEC && !keep_spec(generator, request->name, request->text, request->size)) {
    module->forget(generator->state);
    free(answer.text);
    answer = (quern_gen_answer){NULL, 0};
    kind = QUERN_GEN_MEMORY;
  }
  visit_end(visit);
  pthread_mutex_unlock(&generator->lock);
  if (kind == QUERN_GEN_OK) {
    *text = (qn_bytes){answer.text, answer.size};
    return QUERN_OK;
  }
  quern_status status = status_of(kind);
  const char *why = kind == QUERN_GEN_MEMORY ? "the generator is out of memory" : "the generator failed";
  if (kind == QUERN_GEN_UNUSABLE) {
    give_module_up(answer.text);
    refuse_without_module();
  } else {
    if (kind == QUERN_GEN_MEMORY) qn_transient_note(ENOMEM);
    qn_status_fail(status, "%s", answer.text ? answer.text : why);
  }
  free(answer.text);
  errno = kept_errno;
  return status;
}

quern_status qn_generator_program(qn_generator *generator, const char *op, const char *kernel_dtype, qn_bytes *program) {
  const module_request request = {.what = PROGRAM, .name = op, .text = kernel_dtype};
  return call(generator, &request, program);
}

quern_status qn_generator_source(qn_generator *generator, const qn_source_request *wanted, qn_bytes *source,
                                 int32_t *items_per_thread) {
  int32_t unwanted;
  const quern_gen_request names = {.symbol = wanted->symbol, .op = wanted->op, .canonical = wanted->canonical,
                                   .dtypes = wanted->dtypes, .n_in = wanted->n_in, .n_out = wanted->n_out,
                                   .classes = wanted->classes, .rank = wanted->rank, .target = wanted->target, .is_wide = wanted->is_wide,
                                   .cost = wanted->cost};
  const module_request request = {.what = SOURCE, .source = &names,
                           .items_per_thread = items_per_thread ? items_per_thread : &unwanted};
  return call(generator, &request, source);
}

/* ---- Specs ---- */

/* 0: out of memory. Frees the bytes. */
static int unpack(qn_bytes *packed, qn_spec_op ***ops, int32_t *n_ops) {
  *ops = qn_spec_ops_unpack(packed, n_ops);
  free(packed->data);
  return *ops != NULL;
}

static quern_status no_memory(void) { return qn_status_fail(QUERN_E_MEMORY, "the generator is out of memory"); }

quern_status qn_generator_derivative(qn_generator *generator, const char *op, qn_spec_op ***ops, int32_t *n_ops) {
  const module_request request = {.what = DERIVATIVE, .name = op};
  qn_bytes packed;
  const quern_status status = call(generator, &request, &packed);
  return status || unpack(&packed, ops, n_ops) ? status : no_memory();
}

quern_status qn_generator_load_spec(qn_generator *generator, const char *name, const char *text, size_t size, qn_spec_op ***ops,
                                    int32_t *n_ops) {
  const module_request request = {.what = LOAD_SPEC, .name = name, .text = text ? text : "", .size = size};
  qn_bytes packed;
  quern_status status = call(generator, &request, &packed);
  if (status) return status;
  if (unpack(&packed, ops, n_ops)) return QUERN_OK;
  qn_generator_forget_spec(generator);
  return no_memory();
}

void qn_generator_forget_spec(qn_generator *generator) {
  pthread_mutex_lock(&generator->lock);
  module_visit visit = visit_begin();
  if (generator->state) {
    module->forget(generator->state);
    drop_kept(generator);
  }
  visit_end(visit);
  pthread_mutex_unlock(&generator->lock);
}
