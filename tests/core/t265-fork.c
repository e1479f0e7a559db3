/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads-full
 *
 * t265-fork: a process that has used its threads forks: the child computes, alone, the same bits, and may fork and exit;
 * the parent goes on. Also while other threads are inside of calls. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tensors.h"

#define N 1000003
static float x[N], y[N], wanted[N];
static int64_t n = N;
static DLTensor in_tensor = {.data = x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {2, 32, 1}, .shape = &n};

static int compute(quern_op *op) {
  DLTensor out_tensor = in_tensor, *in = &in_tensor, *out = &out_tensor;
  out_tensor.data = y;
  memset(y, 0x55, sizeof y);
  return quern_op_call(op, 1, &in, 1, &out, NULL) == QUERN_OK && memcmp(y, wanted, sizeof y) == 0;
}

/* The child's exit status: 0 when all went well. */
static int child_status(pid_t pid) {
  int status = -1;
  if (pid < 0) return -1;
  for (int waited = 0; waited < 600; waited++) {
    pid_t done = waitpid(pid, &status, WNOHANG);
    if (done == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    usleep(100000);
  }
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  return -2; /* hung */
}

static int child_work(quern_op *op, quern_ctx *ctx) {
  quern_op *found = NULL, *own = NULL;
  quern_ctx *fresh = NULL;
  if (!compute(op)) return 1;
  if (quern_op_find(ctx, "gelu", &found) || !compute(found)) return 2;
  quern_options options = {.size = sizeof options, .threads = 4};
  if (quern_ctx_create(&options, &fresh) || quern_op_find(fresh, "gelu", &own) || !compute(own)) return 3;
  quern_op_release(found);
  quern_op_release(own);
  quern_ctx_release(fresh);
  return 0;
}

static atomic_int stop, n_inside;

/* Whether malloc's locks are free in a forked child; of AddressSanitizer's allocator they need not be. */
#if defined(__SANITIZE_ADDRESS__)
#define MALLOC_FORKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MALLOC_FORKS 0
#endif
#endif
#ifndef MALLOC_FORKS
#define MALLOC_FORKS 1
#endif

static void *busy(void *arg) {
  quern_op *op = arg;
  int64_t m = 300000;
  float *a = calloc((size_t)m, sizeof *a), *b = calloc((size_t)m, sizeof *b);
  DLTensor ta = {.data = a, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {2, 32, 1}, .shape = &m}, tb = ta, *in = &ta, *out = &tb;
  tb.data = b;
  n_inside++;
  while (!stop) quern_op_call(op, 1, &in, 1, &out, NULL);
  free(a);
  free(b);
  return NULL;
}

static quern_status declines(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                             const quern_call *call) {
  (void)self, (void)n_in, (void)in, (void)n_out, (void)out, (void)call;
  return QUERN_E_UNSUPPORTED;
}

static void *registers(void *ctx) {
  for (int i = 0; !stop && i < 4000; i++) {
    char name[32];
    snprintf(name, sizeof name, "parent.op%d", i);
    quern_op_def def = {.size = sizeof def, .name = name, .n_in = 1, .n_out = 1, .call = declines};
    if (quern_op_register(ctx, &def)) break;
  }
  while (!stop) usleep(100);
  return NULL;
}

int main(void) {
#if defined __SANITIZE_THREAD__
  skip_all("the thread sanitizer does not let a forked child start threads");
#endif
  rng r;
  rng_seed(&r, 1);
  for (int i = 0; i < N; i++) x[i] = (float)(20 * rng_unit(&r) - 10);
  if (!has_op(REF_GELU)) return done_testing();
  quern_options options = {.size = sizeof options, .threads = 4};
  quern_ctx *ctx = NULL;
  quern_op *op = NULL;
  if (quern_ctx_create(&options, &ctx) || quern_op_find(ctx, "gelu", &op)) bail("%s", quern_last_error());
  DLTensor out_tensor = in_tensor, *in = &in_tensor, *out = &out_tensor;
  out_tensor.data = wanted;
  is_int(quern_op_call(op, 1, &in, 1, &out, NULL), QUERN_OK, "the parent's threads are at work");
  ok(compute(op), "and again");
  fflush(stdout);

  for (int i = 0; i < 5; i++) {
    pid_t pid = fork();
    if (pid == 0) _exit(child_work(op, ctx));
    is_int(child_status(pid), 0, "child %d computes the same bits with old ops and new contexts", i);
  }
  pid_t pid = fork();
  if (pid == 0) {
    pid_t grandchild = fork();
    if (grandchild == 0) _exit(child_work(op, ctx));
    _exit(child_status(grandchild));
  }
  is_int(child_status(pid), 0, "a grandchild");
  fflush(stdout);
  pid = fork();
  if (pid == 0) {
    quern_op_release(op);
    quern_ctx_release(ctx);
    freopen("/dev/null", "w", stdout); /* the parent's buffer is not ours to write */
    exit(0); /* through every destructor */
  }
  is_int(child_status(pid), 0, "a child that only releases and exits");
  ok(compute(op), "the parent computes on");

  pthread_t threads[3];
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, busy, op);
  while (n_inside < 3) usleep(100);
  int bad = 0;
  for (int i = 0; i < (SANITIZED ? 4 : 12); i++) {
    usleep(3000);
    pid = fork();
    if (pid == 0) _exit(child_work(op, ctx));
    int status = child_status(pid);
    if (status) {
      diag("fork %d among busy threads: status %d (-2: hung)", i, status);
      bad++;
    }
  }
  stop = 1;
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  is_int(bad, 0, "forks while 3 threads are inside of calls");
  ok(compute(op), "the parent computes on");

  /* A fork while another thread registers: the child may register, too. Both allocate. */
  if (!MALLOC_FORKS) {
    skip(1, "40 children register while their parent does: the sanitizer's malloc may stay locked in a child");
    quern_op_release(op);
    quern_ctx_release(ctx);
    return done_testing();
  }
  pthread_t registering;
  stop = 0;
  pthread_create(&registering, NULL, registers, ctx);
  bad = 0;
  for (int i = 0; i < 40; i++) {
    usleep(500);
    pid = fork();
    if (pid == 0) {
      quern_op_def def = {.size = sizeof def, .name = "child.op", .n_in = 1, .n_out = 1, .call = declines};
      _exit(quern_op_register(ctx, &def) ? 1 : 0);
    }
    int status = child_status(pid);
    if (status) {
      diag("fork %d beside a registration: status %d (-2: hung)", i, status);
      bad++;
    }
  }
  stop = 1;
  pthread_join(registering, NULL);
  is_int(bad, 0, "40 children register while their parent does");
  quern_op_release(op);
  quern_ctx_release(ctx);
  return done_testing();
}
