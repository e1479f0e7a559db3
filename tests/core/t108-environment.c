/* SPDX-License-Identifier: Apache-2.0
 *
 * t108: the variables of the environment, the ISA level that they cap, what is said where they ask for it; what a context's log hears. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quern/quern.h>

#include "runtime/core/base/environment.h"
#include "runtime/core/base/isa.h"
#include "tap.h"

static void threads(const char *text, int wanted) {
  setenv("QUERN_NUM_THREADS", text, 1);
  is_int(qn_environment_number("QUERN_NUM_THREADS", 0), wanted, "QUERN_NUM_THREADS='%s'", text);
}

static void level(const char *text, int wanted) {
  setenv("QUERN_LOG", text, 1);
  is_int(qn_environment_log(), wanted, "QUERN_LOG='%s'", text);
}

/* The level that a process with QUERN_ISA=text decides for. */
static int isa_with(const char *text) {
  int status = 0;
  const pid_t pid = fork();
  if (pid == 0) {
    if (text) {
      setenv("QUERN_ISA", text, 1);
    } else {
      unsetenv("QUERN_ISA");
    }
    const int first = (int)qn_isa_detect();
    setenv("QUERN_ISA", "generic", 1);
    _exit(first == (int)qn_isa_detect() ? first : 99);
  }
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char heard[400];

static void hear(void *host, int level, const char *text) {
  const size_t n = strlen(heard);
  snprintf(heard + n, sizeof heard - n, "%d %s %s\n", level, (const char *)host, text);
}

/* What a process with QUERN_ISA=isa and QUERN_LOG=log says on standard error while it makes a context with that log. */
static const char *said_with(const char *isa, const char *log, const quern_options *options) {
  static char text[400];
  int ends[2];
  if (pipe(ends)) bail("no pipe");
  const pid_t pid = fork();
  if (pid == 0) {
    quern_ctx *ctx = NULL;
    dup2(ends[1], 2);
    setenv("QUERN_ISA", isa, 1);
    setenv("QUERN_LOG", log, 1);
    if (quern_ctx_create(options, &ctx)) _exit(1);
    quern_ctx_release(ctx);
    if (write(2, heard, strlen(heard)) < 0) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  const ssize_t n = read(ends[0], text, sizeof text - 1);
  text[n < 0 ? 0 : n] = 0;
  close(ends[0]);
  waitpid(pid, NULL, 0);
  return text;
}

static void test_log(void) {
  const char *words = "QUERN_ISA is 'v9', none of generic, v2, v3, v4: it caps nothing\n";
  char wanted[400], host[] = "host";
  const quern_options options = {.size = sizeof options, .log = hear, .host = host};
  is_str(said_with("v9", "warning", NULL), words, "an unknown QUERN_ISA is said where QUERN_LOG asks for warnings");
  is_str(said_with("v9", "error", NULL), "", "not where it asks for errors only");
  is_str(said_with("v9", "", NULL), "", "nor where it is empty");
  is_str(said_with("v2", "debug", NULL), "", "a known one is not worth a word");
  snprintf(wanted, sizeof wanted, "1 host %s", words);
  is_str(said_with("v9", "", &options), wanted, "a context's own log hears it whatever QUERN_LOG is");
}

/* A number of parameters without parameters is logged once in a process. */
static void test_unused_params(void) {
  char host[] = "host";
  const quern_options options = {.size = sizeof options, .log = hear, .host = host};
  float item = -3;
  DLTensor x = {&item, {kDLCPU, 0}, 0, {kDLFloat, 32, 1}, NULL, NULL, 0}, *in[1] = {&x};
  quern_call call = {.size = sizeof call, .n_params = 2};
  quern_ctx *ctx = NULL;
  quern_op *clip = NULL;
  if (quern_ctx_create(&options, &ctx) || quern_op_find(ctx, "clip", &clip)) bail("no context");
  heard[0] = 0;
  is_int(quern_op_call(clip, 1, in, 1, in, &call), QUERN_OK, "two parameters, but params NULL: the defaults");
  is_str(heard, "1 host clip: call.n_params is 2, but call.params is NULL: all have their defaults (said once)\n", "  which is logged");
  is_int(quern_op_call(clip, 1, in, 1, in, &call), QUERN_OK, "  and again");
  ok(strlen(heard) < 120, "  once");
  quern_op_release(clip);
  quern_ctx_release(ctx);
}

int main(void) {
  threads("", 0);
  threads("1", 1);
  threads("9999", 9999);
  threads("10000", 0);
  threads("-3", 0);
  threads("4 ", 0);
  threads("0x4", 0);
  unsetenv("QUERN_NUM_THREADS");
  is_int(qn_environment_number("QUERN_NUM_THREADS", 0), 0, "QUERN_NUM_THREADS unset");

  level("", -1);
  level("0", 0);
  level("error", 0);
  level("warning", 1);
  level("2", 2);
  level("debug", 3);
  level("yes", 2);
  unsetenv("QUERN_LOG");
  is_int(qn_environment_log(), -1, "QUERN_LOG unset");

  const int all = isa_with(NULL);
  ok(all >= 0 && all < QN_ISA_COUNT, "a level: %s", all >= 0 && all < QN_ISA_COUNT ? qn_isa_name((qn_isa)all) : "none");
#if defined(__x86_64__) && defined(__GNUC__) && (!defined(__clang__) || __clang_major__ >= 17) && __GNUC__ >= 12
  const int v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                 __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd");
  is_int(all >= QN_ISA_V3, v3, "v3 as the compiler's runtime sees it");
  is_int(all >= QN_ISA_V4, v4, "v4 as the compiler's runtime sees it");
#else
  skip(2, "no second opinion on this target");
#endif
  static const char *const names[] = {"generic", "v2", "v3", "v4"};
  for (int i = 0; i < 4; i++) {
    is_str(qn_isa_name((qn_isa)i), names[i], "name of level %d", i);
    is_int(isa_with(names[i]), i < all ? i : all, "QUERN_ISA=%s", names[i]);
  }
  is_int(isa_with("v9"), all, "an unknown cap caps nothing");
  is_int(isa_with(""), all, "nor does an empty one");
  test_log();
  test_unused_params();
  return done_testing();
}
