/* SPDX-License-Identifier: Apache-2.0
 *
 * profile.c: see profile.h. A call is timed as a whole. The backend of a plan is wrapped, too. */
#include "run/profile.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/float_env.h"
#include "core/base/status.h"
#include "core/op/backend.h"

#define MOST_EXPLANATION 4096

/* A kind before another one. Lives until the process ends. */
typedef struct profiled_kind {
  qn_kind base;
  const qn_kind *own;
  qn_profile *profile;
  struct profiled_kind *next;
} profiled_kind;

/* A backend before another one, for plans of one op on operands of the same dtypes and shapes. Lives until the process ends. */
typedef struct profiled_plan {
  qn_backend base;
  const qn_backend *own;
  qn_profile *profile;
  qn_profile_subject subject;
  struct profiled_plan *next;
} profiled_plan;

enum { N_BUCKETS = 256 };
static _Atomic(profiled_kind *) kinds;
static _Atomic(profiled_plan *) plans[N_BUCKETS];

/* base is the first field. */
static const profiled_kind *kind_of(const quern_op *op) { return (const profiled_kind *)(const void *)qn_kind_of(op); }
static const profiled_plan *plan_of(const qn_decision *decision) { return (const profiled_plan *)(const void *)decision->backend; }

static int has_text(const quern_op *op) { return op->fused && !op->builtin; }

/* ---- Calls ---- */

/* Writes the line of a call. decision: NULL where the kind runs its calls itself. Not inlined, for its stack. */
__attribute__((noinline)) static void say_call(const profiled_kind *kind, const quern_op *op, DLTensor *const *in,
                                               DLTensor *const *out, const quern_call *call, const qn_decision *decision,
                                               int64_t ns) {
  char text[MOST_EXPLANATION] = "";
  qn_strbuf buf = {text, sizeof text, 0};
  qn_profile_subject subject;
  qn_sentence kept;
  qn_status_keep(&kept);
  if (decision)
    decision->backend->explain(decision, call, &buf);
  else
    kind->own->explain(op, in, out, call, &buf);
  qn_status_restore(&kept);
  qn_profile_describe(op->info, in, out, has_text(op), &subject);
  qn_profile_add(kind->profile, "call", &subject, text, ns);
}

/* As a call of a kind that does not run its calls itself. */
static quern_status call_decided(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call) {
  const profiled_kind *kind = kind_of(op);
  QN_IN_SCRATCH(qn_decision, decision);
  const int64_t start = qn_profile_now();
  const qn_float_env was = qn_float_env_enter();
  quern_status status = kind->own->decide(op, in, out, call, 1, decision);
  if (status == QUERN_OK && decision->nest.n_elements) status = decision->backend->call(decision, call);
  qn_float_env_leave(was);
  if (status == QUERN_OK) say_call(kind, op, in, out, call, decision, qn_profile_now() - start);
  return status;
}

static quern_status call_itself(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call) {
  const profiled_kind *kind = kind_of(op);
  const int64_t start = qn_profile_now();
  const quern_status status = kind->own->call(op, in, out, call);
  if (status == QUERN_OK) say_call(kind, op, in, out, call, NULL, qn_profile_now() - start);
  return status;
}

/* ---- Plans ---- */

static quern_status plan_call(const qn_decision *decision, const quern_call *call) { return plan_of(decision)->own->call(decision, call); }

static quern_status plan_prepare(const qn_decision *decision, const quern_call *call, qn_run **run) {
  return plan_of(decision)->own->prepare(decision, call, run);
}

static quern_status plan_explain(const qn_decision *decision, const quern_call *call, qn_strbuf *buf) {
  return plan_of(decision)->own->explain(decision, call, buf);
}

__attribute__((noinline)) static void say_run(const profiled_plan *plan, const qn_decision *decision, const quern_call *call,
                                              int64_t ns) {
  char text[MOST_EXPLANATION] = "";
  qn_strbuf buf = {text, sizeof text, 0};
  qn_sentence kept;
  qn_status_keep(&kept);
  plan->own->explain(decision, call, &buf);
  qn_status_restore(&kept);
  qn_profile_add(plan->profile, "run", &plan->subject, text, ns);
}

static quern_status plan_launch(const qn_decision *decision, const qn_run *run, const qn_ref *ref, const qn_params *params,
                                const quern_call *call) {
  const profiled_plan *plan = plan_of(decision);
  const int64_t start = qn_profile_now();
  const quern_status status = plan->own->launch(decision, run, ref, params, call);
  if (status == QUERN_OK) say_run(plan, decision, call, qn_profile_now() - start);
  return status;
}

/* FNV-1a. */
static uint32_t hash_of(const qn_profile_subject *subject) {
  uint32_t hash = 2166136261u;
  for (const char *c = subject->op; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
  for (const char *c = subject->shapes; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
  return hash % N_BUCKETS;
}

static const profiled_plan *find_plan(const profiled_plan *at, const profiled_plan *wanted) {
  while (at && !(at->own == wanted->own && at->profile == wanted->profile && memcmp(&at->subject, &wanted->subject, sizeof at->subject) == 0))
    at = at->next;
  return at;
}

/* Puts a backend before the decision's. Without memory its runs have no lines. */
__attribute__((noinline)) static void profile_plan(const profiled_kind *kind, const quern_op *op, DLTensor *const *in,
                                                   DLTensor *const *out, qn_decision *decision) {
  profiled_plan *made = malloc(sizeof *made);
  if (!made) return;
  *made = (profiled_plan){.base = *decision->backend, .own = decision->backend, .profile = kind->profile};
  made->base.call = plan_call;
  made->base.prepare = plan_prepare;
  made->base.launch = plan_launch;
  made->base.explain = plan_explain;
  qn_profile_describe(op->info, in, out, has_text(op), &made->subject);
  _Atomic(profiled_plan *) *bucket = &plans[hash_of(&made->subject)];
  made->next = atomic_load(bucket);
  do {
    const profiled_plan *known = find_plan(made->next, made);
    if (!known) continue;
    free(made);
    decision->backend = &known->base;
    return;
  } while (!atomic_compare_exchange_weak(bucket, &made->next, made));
  decision->backend = &made->base;
}

/* A plan, an explanation, or the workspace of a call: calls do not come here. */
static quern_status decide(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call, int needs_data,
                           qn_decision *decision) {
  const profiled_kind *kind = kind_of(op);
  const quern_status status = kind->own->decide(op, in, out, call, needs_data, decision);
  if (status == QUERN_OK && decision->nest.n_elements) profile_plan(kind, op, in, out, decision);
  return status;
}

/* ---- Kinds ---- */

static const qn_kind *find_kind(const profiled_kind *at, const qn_profile *profile, const qn_kind *own) {
  while (at && !(at->own == own && at->profile == profile)) at = at->next;
  return at ? &at->base : NULL;
}

const qn_kind *qn_profile_kind(qn_profile *profile, const qn_kind *own) {
  profiled_kind *first = atomic_load(&kinds);
  const qn_kind *known = profile ? find_kind(first, profile, own) : own;
  profiled_kind *made = known ? NULL : malloc(sizeof *made);
  if (!made) return known ? known : own;
  *made = (profiled_kind){.base = *own, .own = own, .profile = profile, .next = first};
  made->base.call = own->call ? call_itself : call_decided;
  if (own->decide) made->base.decide = decide;
  while (!atomic_compare_exchange_weak(&kinds, &made->next, made)) {} /* one more of another thread does no harm */
  return &made->base;
}

/* ---- Ops of the host's own ---- */

/* The definition that is registered in place of the host's. */
typedef struct profiled_def {
  quern_op_def own;
  qn_profile *profile;
  quern_op_info info; /* name and counts */
  char name[];
} profiled_def;

static quern_status def_call(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                             const quern_call *call) {
  const profiled_def *def = self;
  qn_profile_subject subject;
  const int64_t start = qn_profile_now();
  const quern_status status = def->own.call(def->own.self, n_in, in, n_out, out, call);
  const int64_t ns = qn_profile_now() - start;
  if (status) return status;
  qn_profile_describe(&def->info, in, out, 0, &subject);
  qn_profile_add(def->profile, "call", &subject, "tier: registered\n", ns);
  return status;
}

static quern_status def_infer(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out) {
  const profiled_def *def = self;
  return def->own.infer(def->own.self, n_in, in, n_out, out);
}

static quern_status def_workspace(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                                  const quern_call *call, size_t *bytes) {
  const profiled_def *def = self;
  return def->own.workspace(def->own.self, n_in, in, n_out, out, call, bytes);
}

static quern_status def_measure(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out,
                                const quern_call *call) {
  const profiled_def *def = self;
  return def->own.measure(def->own.self, n_in, in, n_out, out, call);
}

static void def_release(void *self) {
  profiled_def *def = self;
  if (def->own.release) def->own.release(def->own.self);
  free(def);
}

quern_status qn_profile_define(qn_profile *profile, quern_ctx *ctx, const quern_op_def *def) {
  const size_t name_size = strlen(def->name) + 1;
  profiled_def *made = malloc(sizeof *made + name_size);
  quern_op_def shown = *def;
  if (!made) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", def->name);
  *made = (profiled_def){.own = *def, .profile = profile};
  memcpy(made->name, def->name, name_size);
  made->info = (quern_op_info){.name = made->name, .n_in = def->n_in, .n_out = def->n_out};
  shown.self = made;
  shown.call = def_call;
  shown.infer = def->infer ? def_infer : NULL;
  shown.workspace = def->workspace ? def_workspace : NULL;
  shown.measure = def->measure ? def_measure : NULL;
  shown.release = def_release;
  const quern_status status = qn_registry_register(ctx, &shown);
  if (status) free(made);
  return status;
}
