/* SPDX-License-Identifier: Apache-2.0
 *
 * slices.c: slices on the caller's thread, on the library's pool or by the host's parallel_for; see slices.h. */
#include "core/base/slices.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/environment.h"
#include "core/base/float_env.h"
#include "core/base/workers.h"

static _Thread_local int inside; /* this thread is running a slice */

struct qn_slices {
  int32_t threads;
  void (*host_for)(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg);
  void *host;
  qn_log log;
};

/* ---- Running ---- */

/* The caller's body and argument. */
typedef struct slice_call {
  void (*body)(void *arg, int64_t i);
  void *arg;
} slice_call;

static void run_slice(void *arg, int64_t i) {
  const slice_call *call = arg;
  const int was_inside = inside;
  const qn_float_env was = qn_float_env_enter();
  inside = 1;
  call->body(call->arg, i);
  inside = was_inside;
  qn_float_env_leave(was);
}

/* ---- The host's parallel_for ----
 * What it does is checked. The argument that it passes on names a stage and the stage's turn, so that a call with another argument, or
 * after the end, is refused; each part of the slices runs once, the missing ones on the caller's thread. */

#define N_HOST_STAGES 64 /* hosts' calls at one time; others run on their caller's thread */
#define MOST_HOST_PARTS 1024
#define HOST_GATE_OPEN 0x10000u /* below it: the threads inside; above it: the turn */

static struct host_stage {
  _Atomic uint64_t gate;
  slice_call call;
  int32_t n, n_parts;
  atomic_int n_refused;
  _Atomic uint32_t begun[MOST_HOST_PARTS / 32]; /* a bit for each part */
} host_stages[N_HOST_STAGES];
static _Atomic uint64_t host_stages_taken; /* bit k: host_stages[k] */

static void *host_pass(const struct host_stage *stage, uint64_t gate) {
  return (void *)(uintptr_t)(gate / HOST_GATE_OPEN / 2 * N_HOST_STAGES + (uint64_t)(stage - host_stages));
}

/* Returns 0 if the part was run before, or is none. */
static int run_once(struct host_stage *stage, int64_t i) {
  if (i < 0 || i >= stage->n_parts || atomic_fetch_or(&stage->begun[i / 32], 1u << i % 32) >> i % 32 & 1) return 0;
  for (int64_t k = i * stage->n / stage->n_parts; k < (i + 1) * stage->n / stage->n_parts; k++) run_slice(&stage->call, k);
  return 1;
}

static void run_for_host(void *pass, int64_t i) {
  struct host_stage *stage = &host_stages[(uintptr_t)pass % N_HOST_STAGES];
  uint64_t gate = atomic_load(&stage->gate);
  do
    if (!(gate & HOST_GATE_OPEN) || host_pass(stage, gate) != pass) return;
  while (!atomic_compare_exchange_weak(&stage->gate, &gate, gate + 1));
  if (!run_once(stage, i)) atomic_fetch_add(&stage->n_refused, 1);
  atomic_fetch_sub(&stage->gate, 1);
}

/* Returns 0 if no stage is free; else *status may be set. */
static int run_on_host(const qn_slices *slices, int32_t n, const slice_call *call, quern_status *status) {
  uint64_t taken = atomic_load(&host_stages_taken), bit;
  int32_t n_missing = 0;
  do
    if (!(bit = ~taken & (taken + 1))) return 0;
  while (!atomic_compare_exchange_weak(&host_stages_taken, &taken, taken | bit));
  struct host_stage *stage = &host_stages[__builtin_ctzll(bit)];
  stage->call = *call;
  stage->n = n;
  stage->n_parts = n < MOST_HOST_PARTS ? n : MOST_HOST_PARTS;
  stage->n_refused = 0;
  for (int32_t i = 0; i < stage->n_parts; i += 32) stage->begun[i / 32] = 0;
  const uint64_t gate = atomic_fetch_add(&stage->gate, 3 * HOST_GATE_OPEN) + 3 * HOST_GATE_OPEN; /* the next turn, open */
  slices->host_for(slices->host, stage->n_parts, run_for_host, host_pass(stage, gate));
  atomic_fetch_and(&stage->gate, ~(uint64_t)HOST_GATE_OPEN);
  while (atomic_load(&stage->gate) % HOST_GATE_OPEN) {} /* it has returned too early */
  for (int32_t i = 0; i < stage->n_parts; i++) n_missing += run_once(stage, i);
  if (n_missing || stage->n_refused)
    *status = qn_status_fail(QUERN_E_ARGUMENT, "options.parallel_for left out %d of %d slices, and ran %d again or that are none",
                             n_missing, stage->n_parts, stage->n_refused);
  atomic_fetch_and(&host_stages_taken, ~bit);
  return 1;
}

quern_status qn_slices_run(qn_slices *slices, int32_t n, void (*body)(void *arg, int64_t i), void *arg) {
  slice_call call = {body, arg};
  quern_status status = QUERN_OK;
  if (n > 1 && !inside && slices && slices->threads > 1) {
    if (slices->host_for ? run_on_host(slices, n, &call, &status)
                         : qn_workers_run(&slices->log, slices->threads, n, run_slice, &call)) return status;
  }
  for (int32_t i = 0; i < n; i++) run_slice(&call, i);
  return status;
}

/* ---- Contexts ---- */

qn_slices *qn_slices_create(const quern_options *options) {
  qn_slices *slices = calloc(1, sizeof *slices);
  if (!slices) return NULL;
  if (options) {
    slices->threads = options->threads;
    slices->host_for = options->parallel_for;
    slices->host = options->host;
    slices->log = (qn_log){options->log, options->host};
  }
  if (slices->threads <= 0) slices->threads = qn_environment_number(QN_SPELLED(QUERN_NUM_THREADS), 0);
  if (slices->threads <= 0) slices->threads = qn_workers_most();
  return slices;
}

void qn_slices_destroy(qn_slices *slices) { free(slices); }

const qn_log *qn_slices_log(const qn_slices *slices) { return &slices->log; }

int32_t qn_slices_limit(const qn_slices *slices) {
  if (inside || !slices) return 1;
  return slices->host_for ? slices->threads : qn_workers_limit(slices->threads);
}

int32_t qn_slices_worth(const qn_slices *slices, int32_t woken) {
  if (woken <= 1) return 1;
  const int32_t limit = qn_slices_limit(slices);
  return woken < limit ? woken : limit;
}

/* The limit, or 1 if threads would have to be woken for this call alone. */
__attribute__((noinline)) static int32_t awake(const qn_slices *slices) {
  return slices && !slices->host_for && slices->threads > 1 && qn_workers_are_awake() ? qn_slices_limit(slices) : 1;
}

int32_t qn_slices_now(const qn_slices *slices, int32_t woken, int32_t most) {
  const int32_t worth = qn_slices_worth(slices, woken);
  if (worth >= most) return worth;
  const int32_t of_awake = awake(slices), n = most < of_awake ? most : of_awake;
  return n > worth ? n : worth;
}
