/* SPDX-License-Identifier: Apache-2.0
 *
 * isa_machine.c: x86-64 levels by cpuid and xgetbv; see isa_machine.h. A level counts only if the operating system saves its
 * registers. */
#include "core/base/isa_machine.h"

#include <stdatomic.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>

typedef struct leaf {
  unsigned a, b, c, d;
} leaf;

/* A cpuid leaf; all zero if the processor has no such leaf. */
static leaf cpuid(unsigned number, unsigned sub) {
  leaf l = {0, 0, 0, 0};
  if (!__get_cpuid_count(number, sub, &l.a, &l.b, &l.c, &l.d)) return (leaf){0, 0, 0, 0};
  return l;
}

/* The register states that the operating system saves; needs OSXSAVE. */
static uint64_t saved_states(void) {
  unsigned low, high;
  __asm__ volatile(".byte 0x0f, 0x01, 0xd0" /* xgetbv */ : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static int has(unsigned word, unsigned bits) { return (word & bits) == bits; }

#define BIT(n) (1u << (n))

static qn_isa ask_machine(void) {
  const leaf basic = cpuid(1, 0), more = cpuid(7, 0), extended = cpuid(0x80000001u, 0);
  /* sse3, ssse3, cmpxchg16b, sse4.1, sse4.2, popcnt; lahf */
  if (!has(basic.c, BIT(0) | BIT(9) | BIT(13) | BIT(19) | BIT(20) | BIT(23)) || !has(extended.c, BIT(0))) return QN_ISA_GENERIC;
  /* fma, movbe, osxsave, avx, f16c; bmi1, avx2, bmi2; lzcnt; xmm and ymm saved */
  if (!has(basic.c, BIT(12) | BIT(22) | BIT(27) | BIT(28) | BIT(29)) || !has(more.b, BIT(3) | BIT(5) | BIT(8)) ||
      !has(extended.c, BIT(5)) || (saved_states() & 0x06) != 0x06) {
    return QN_ISA_V2;
  }
  /* avx512 f, dq, cd, bw, vl; mask and zmm registers saved */
  if (!has(more.b, BIT(16) | BIT(17) | BIT(28) | BIT(30) | BIT(31)) || (saved_states() & 0xe6) != 0xe6) return QN_ISA_V3;
  return QN_ISA_V4;
}
#else
static qn_isa ask_machine(void) { return QN_ISA_GENERIC; }
#endif

/* Cached: under a hypervisor that traps cpuid, each takes 10 us or more. */
qn_isa qn_isa_machine(void) {
  static atomic_int known; /* level + 1; racing threads find the same */
  int level = atomic_load_explicit(&known, memory_order_relaxed) - 1;
  if (level < 0) {
    level = (int)ask_machine();
    atomic_store_explicit(&known, level + 1, memory_order_relaxed);
  }
  return (qn_isa)level;
}
