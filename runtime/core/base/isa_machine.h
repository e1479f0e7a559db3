/* SPDX-License-Identifier: Apache-2.0
 *
 * isa_machine.h: the instruction set levels of compiled kernels, and the level of this machine. Knows no
 * kernels and no environment; includes nothing. */
#ifndef QN_ISA_MACHINE_H
#define QN_ISA_MACHINE_H

/* ORDER ISA: lowest first. V2, V3, V4: x86-64-v2 and so on; GENERIC: any other machine. */
typedef enum qn_isa { QN_ISA_GENERIC, QN_ISA_V2, QN_ISA_V3, QN_ISA_V4, QN_ISA_COUNT } qn_isa;

/* The highest level that processor and operating system support. cpuid runs once. */
qn_isa qn_isa_machine(void);

#endif
