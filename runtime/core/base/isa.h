/* SPDX-License-Identifier: Apache-2.0
 *
 * isa.h: which of the ISA levels that kernels are built for this machine runs. Knows no kernels. */
#ifndef QN_ISA_H
#define QN_ISA_H

#include "core/base/kernel_abi.h"

/* The highest level that processor and operating system support, capped by QUERN_ISA (generic, v2, v3, v4). Decided at
 * the first call; the same for the life of the process. */
qn_isa qn_isa_detect(void);

/* The same without the cap. */
qn_isa qn_isa_machine(void);

/* The text of QUERN_ISA where it names no level: then it caps nothing. NULL where it is unset or names one. */
const char *qn_isa_unknown_cap(void);

/* "generic", "v2", "v3", "v4". */
const char *qn_isa_name(qn_isa isa);

#endif
