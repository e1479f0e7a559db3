/* SPDX-License-Identifier: Apache-2.0
 *
 * isa.c: see isa.h. */
#include "core/base/isa.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/environment.h"
#include "core/base/spelled.h"

/* ORDER ISA */
static const char *const names[] = {"generic", "v2", "v3", "v4"};
_Static_assert(sizeof names / sizeof names[0] == QN_ISA_COUNT, "a name for each level");

qn_isa qn_isa_detect(void) {
  static atomic_int decided; /* level + 1; racing threads decide the same */
  int level = atomic_load_explicit(&decided, memory_order_relaxed) - 1;
  if (level < 0) {
    const char *cap = qn_environment_isa();
    level = (int)qn_isa_machine();
    for (int i = 0; cap && i < level; i++) {
      if (strcmp(cap, names[i]) == 0) level = i;
    }
    /* The first store wins if the environment changes in between. */
    int expected = 0;
    if (!atomic_compare_exchange_strong(&decided, &expected, level + 1)) level = expected - 1;
  }
  return (qn_isa)level;
}

void qn_isa_say_unknown(const qn_log *log) {
  const char *cap = qn_environment_isa();
  for (int i = 0; cap && i < QN_ISA_COUNT; i++) {
    if (strcmp(cap, names[i]) == 0) cap = NULL;
  }
  if (cap) qn_log_say(log, QN_LOG_WARNING, QN_SPELLED(QUERN_ISA) " is '%.64s', none of generic, v2, v3, v4: it caps nothing", cap);
}

const char *qn_isa_name(qn_isa isa) {
  return names[isa];
}
