/* SPDX-License-Identifier: Apache-2.0
 *
 * describe.h: the lines of quern_ctx_describe: a context's resources, for people. Opens nothing. */
#ifndef QN_DESCRIBE_H
#define QN_DESCRIBE_H

#include "core/op/registry.h"

quern_status qn_describe(quern_ctx *ctx, char *text, size_t size);

#endif
