/* SPDX-License-Identifier: Apache-2.0
 *
 * slices.c: slices on the caller's thread, on the library's pool or by the host's parallel_for; see slices.h. */
#include "core/base/slices.h"

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

void qn_slices_run(qn_slices *slices, int32_t n, void (*body)(void *arg, int64_t i), void *arg) {
  slice_call call = {body, arg};
  if (n > 1 && !inside && slices && slices->threads > 1) {
    if (slices->host_for) {
      slices->host_for(slices->host, n, run_slice, &call);
      return;
    }
    if (qn_workers_run(&slices->log, slices->threads, n, run_slice, &call)) return;
  }
  for (int32_t i = 0; i < n; i++) run_slice(&call, i);
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
  if (slices->threads <= 0) slices->threads = qn_environment_threads();
  if (slices->threads <= 0) slices->threads = qn_workers_most();
  return slices;
}

void qn_slices_destroy(qn_slices *slices) { free(slices); }

const qn_log *qn_slices_log(const qn_slices *slices) { return &slices->log; }

int32_t qn_slices_limit(const qn_slices *slices) {
  if (inside || !slices) return 1;
  return slices->host_for ? slices->threads : qn_workers_limit(slices->threads);
}
