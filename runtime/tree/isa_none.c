/* SPDX-License-Identifier: Apache-2.0
 *
 * isa_none.c: the level of the machine, without a cap (isa.h). */
#include "core/base/isa.h"

qn_isa qn_isa_detect(void) { return qn_isa_machine(); }
void qn_isa_say_unknown(const qn_log *log) { (void)log; }

const char *qn_isa_name(qn_isa isa) {
  static const char *const names[] = {"generic", "v2", "v3", "v4"}; /* ORDER ISA */
  _Static_assert(sizeof names / sizeof names[0] == QN_ISA_COUNT, "a name for each level");
  return names[isa];
}
