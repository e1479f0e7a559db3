/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_scan.h: what op_table.c includes for ops that scan. */
#ifndef QN_KIND_SCAN_H
#define QN_KIND_SCAN_H

#include "core/op/backend.h"
#include "core/row/scan_op.h"

/* Generated: the backend of scans on the CPU; NULL: there are no kernels for it. */
extern const qn_backend *const qn_scan_backend;

#endif
