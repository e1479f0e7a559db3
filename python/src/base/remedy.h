/* SPDX-License-Identifier: Apache-2.0
 *
 * remedy.h: what to write instead of what was refused, which the module quern._remedies knows. Asked after a failure only. */
#ifndef QUERN_PYTHON_REMEDY_H
#define QUERN_PYTHON_REMEDY_H

#include "base/limited.h"

/* The answer of one of the module's functions, "; give ...", or "": a new str. NULL: an exception that must be passed on. */
PyObject *remedy_of(const char *function, PyObject *object);

/* The text of the pending exception of the object's own library, with the remedy behind it: a new str, and the exception is cleared.
 * NULL: there is no remedy, and the exception stays. */
PyObject *remedy_of_refusal(PyObject *object);

#endif
