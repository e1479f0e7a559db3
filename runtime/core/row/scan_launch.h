/* SPDX-License-Identifier: Apache-2.0
 *
 * scan_launch.h: the fields of a decision for the launch of a scan, or of the derivative of a scan, on a device. */
#ifndef QN_SCAN_LAUNCH_H
#define QN_SCAN_LAUNCH_H

#include <string.h>

#include "core/op/decision.h"

/* What the arguments have beside the nest. */
typedef struct qn_scan_launch {
  int32_t is_first_stored; /* a result of no elements is stored, before the others */
  int32_t state_bytes, n_more;
  uint64_t first;          /* its bits in the output's dtype */
  int64_t first_offset;    /* bytes from a row's first other result to it */
  uint64_t more[9];        /* the fields that these kernels have and others have not */
} qn_scan_launch;

_Static_assert(sizeof(qn_scan_launch) <= sizeof(((qn_decision *)0)->launch), "qn_decision.launch");

static inline void qn_scan_launch_set(qn_decision *decision, qn_scan_launch scan) { memcpy(decision->launch, &scan, sizeof scan); }

#endif
