/* SPDX-License-Identifier: Apache-2.0
 *
 * t108: the variables of the environment, and the ISA level that they cap. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../runtime/core/environment.h"
#include "../runtime/core/isa.h"
#include "tap.h"

static void threads(const char *text, int wanted) {
  setenv("QUERN_NUM_THREADS", text, 1);
  is_int(qn_environment_threads(), wanted, "QUERN_NUM_THREADS='%s'", text);
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

int main(void) {
  threads("", 0);
  threads("1", 1);
  threads("9999", 9999);
  threads("10000", 0);
  threads("-3", 0);
  threads("4 ", 0);
  threads("0x4", 0);
  unsetenv("QUERN_NUM_THREADS");
  is_int(qn_environment_threads(), 0, "QUERN_NUM_THREADS unset");

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
  return done_testing();
}
