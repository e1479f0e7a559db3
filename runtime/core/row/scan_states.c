/* SPDX-License-Identifier: Apache-2.0
 *
 * scan_states.c: requests and explains the programs that scans and adjoints with states run in place of built kernels: see scan_op.h. */
#include "core/row/row_program.h"
#include "core/row/scan_op.h"

void qn_scan_states_ask(const qn_scan_states *states) {
  for (int32_t k = 0; k < 3; k++)
    if (states->steps[k]) states->steps[k]->kernel(states->steps[k]);
}

void qn_scan_states_explain(const qn_scan_states *states, qn_strbuf *buf) {
  char reason[256], of[256];
  const char *tier = states->steps[1]->tier(states->steps[1], reason);
  for (int32_t k = 0; k < 3 && tier[0]; k++) /* compiled is what all of them are */
    if (states->steps[k]) tier = states->steps[k]->tier(states->steps[k], of);
  qn_strbuf_add(buf, "tier: %s\nreason: %s\n", tier[0] ? tier : "interpreter", reason);
  for (int32_t k = 0; k < 3; k++)
    if (states->steps[k]) states->steps[k]->explain(states->steps[k], buf);
}
