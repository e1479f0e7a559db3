/* SPDX-License-Identifier: Apache-2.0
 *
 * xla_ops.h: the ops that XLA's programs call, by their keys. A program outlives the Python objects that it was traced with, and can be
 * read by another process. So a key says what the op is: "op NAME", a built-in op; "expression TEXT", of the default context; "here WORDS",
 * known to this process only. Knows neither Python nor XLA. Any thread may call these. */
#ifndef QUERN_PYTHON_XLA_OPS_H
#define QUERN_PYTHON_XLA_OPS_H

#include <quern/quern.h>

/* Whether the key has an op already. */
int xla_ops_has(const char *key, size_t n);

/* Gives the op to the key for good: it must stay valid. 0, or MEMORY. */
quern_status xla_ops_put(const char *key, size_t n, quern_op *op);

/* The op of a key, which is found or compiled if it is new. Errors: those of that; NOTFOUND for what another process knows. */
quern_status xla_ops_get(const char *key, size_t n, quern_op **op);

#endif
