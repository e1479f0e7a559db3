/* SPDX-License-Identifier: Apache-2.0
 *
 * isa.h: the ISA level in use: the machine's, capped by the environment. Knows no kernels. */
#ifndef QN_ISA_H
#define QN_ISA_H

#include "core/base/isa_machine.h"
#include "core/base/status.h"

/* qn_isa_machine, capped by QUERN_ISA (generic, v2, v3, v4). Decided at the first call; constant for the life of the process. */
qn_isa qn_isa_detect(void);

/* Warns if QUERN_ISA names no level: it is then ignored. Holds no lock: a log function may call the library. */
void qn_isa_say_unknown(const qn_log *log);

/* "generic", "v2", "v3", "v4". */
const char *qn_isa_name(qn_isa isa);

#endif
