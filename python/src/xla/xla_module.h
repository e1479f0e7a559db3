/* SPDX-License-Identifier: Apache-2.0
 *
 * xla_module.h: what quern/jax.py needs of C. */
#ifndef QUERN_PYTHON_XLA_MODULE_H
#define QUERN_PYTHON_XLA_MODULE_H

#include "base/limited.h"

/* Adds _xla_target(platform), a capsule of the function that XLA calls there ("cpu", "CUDA"), and _xla_keep(key, op), which gives the
 * op to a key for good. -1: an exception. */
int xla_add(PyObject *module);

#endif
