/* SPDX-License-Identifier: Apache-2.0
 *
 * context.h: quern.Context, a set of ops and what compiles them. */
#ifndef QUERN_PYTHON_CONTEXT_H
#define QUERN_PYTHON_CONTEXT_H

#include "limited.h"

/* Makes the type, adds it to the module, and with it the functions of the default context and the built-in ops. -1: an
 * exception. */
int context_add(PyObject *module);

#endif
