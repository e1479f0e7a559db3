/* SPDX-License-Identifier: Apache-2.0
 *
 * isa.c: see isa.h. */
#include "core/base/isa.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/environment.h"

/* ORDER ISA */
static const char *const names[] = {"generic", "v2", "v3", "v4"};
_Static_assert(sizeof names / sizeof names[0] == QN_ISA_COUNT, "a name for each level");

/* The level that QUERN_ISA names; QN_ISA_COUNT: none. *text: the variable's, or NULL. */
static int level_named(const char **text) {
  int level = 0;
  *text = qn_environment_get(QN_SPELLED(QUERN_ISA));
  while (level < QN_ISA_COUNT && !(*text && strcmp(*text, names[level]) == 0)) level++;
  return level;
}

qn_isa qn_isa_detect(void) {
  static atomic_int decided; /* level + 1; racing threads decide the same */
  int level = atomic_load_explicit(&decided, memory_order_relaxed) - 1;
  if (level < 0) {
    const char *text;
    const int cap = level_named(&text), machine = (int)qn_isa_machine();
    level = cap < machine ? cap : machine;
    /* The first store wins if the environment changes in between. */
    int expected = 0;
    if (!atomic_compare_exchange_strong(&decided, &expected, level + 1)) level = expected - 1;
  }
  return (qn_isa)level;
}

void qn_isa_say_unknown(const qn_log *log) {
  const char *text;
  if (level_named(&text) < QN_ISA_COUNT || !text) return;
  qn_log_say(log, QN_LOG_WARNING, QN_SPELLED(QUERN_ISA) " is '%.64s', none of generic, v2, v3, v4: it caps nothing", text);
}

const char *qn_isa_name(qn_isa isa) { return names[isa]; }
