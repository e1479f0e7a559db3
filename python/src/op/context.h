/* SPDX-License-Identifier: Apache-2.0
 *
 * context.h: quern.Context, a set of ops and the means to compile them. */
#ifndef QUERN_PYTHON_CONTEXT_H
#define QUERN_PYTHON_CONTEXT_H

#include "base/limited.h"

/* Adds to the module the type, the functions of the default context and the built-in ops. -1: an
 * exception. */
int context_add(PyObject *module);

#endif
