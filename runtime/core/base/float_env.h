/* SPDX-License-Identifier: Apache-2.0
 *
 * float_env.h: the default floating point environment (round to nearest, subnormals kept, exceptions masked) around all
 * computation. Reading the control register costs 0.25 ns, setting and restoring it 8 ns: it is set only when it differs. */
#ifndef QN_FLOAT_ENV_H
#define QN_FLOAT_ENV_H

#include <stdint.h>

#if defined(__x86_64__)
typedef uint32_t qn_float_env;
#define QN_FLOAT_ENV_CONTROL 0xffc0u /* all but the sticky exception flags */
#define QN_FLOAT_ENV_DEFAULT 0x1f80u
static inline qn_float_env qn_float_env_enter(void) {
  uint32_t was = __builtin_ia32_stmxcsr();
  if (__builtin_expect((was & QN_FLOAT_ENV_CONTROL) != QN_FLOAT_ENV_DEFAULT, 0)) __builtin_ia32_ldmxcsr(QN_FLOAT_ENV_DEFAULT);
  return was;
}
static inline void qn_float_env_leave(qn_float_env was) {
  if (__builtin_expect((was & QN_FLOAT_ENV_CONTROL) != QN_FLOAT_ENV_DEFAULT, 0)) __builtin_ia32_ldmxcsr(was);
}
#elif defined(__aarch64__)
typedef uint64_t qn_float_env;
static inline qn_float_env qn_float_env_enter(void) {
  uint64_t was;
  __asm__ volatile("mrs %0, fpcr" : "=r"(was));
  if (__builtin_expect(was != 0, 0)) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
  return was;
}
static inline void qn_float_env_leave(qn_float_env was) {
  if (__builtin_expect(was != 0, 0)) __asm__ volatile("msr fpcr, %0" : : "r"(was));
}
#else
typedef int qn_float_env;
static inline qn_float_env qn_float_env_enter(void) { return 0; }
static inline void qn_float_env_leave(qn_float_env was) { (void)was; }
#endif

#endif
