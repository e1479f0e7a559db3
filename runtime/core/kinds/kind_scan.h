/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_scan.h: what op_table.c includes for ops that scan. */
#ifndef QN_KIND_SCAN_H
#define QN_KIND_SCAN_H

#include "core/row/scan_op.h"

#endif
