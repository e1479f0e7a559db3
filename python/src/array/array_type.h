/* SPDX-License-Identifier: Apache-2.0
 *
 * array_type.h: the Python type quern.Array: attributes, values, protocols. */
#ifndef QUERN_PYTHON_ARRAY_TYPE_H
#define QUERN_PYTHON_ARRAY_TYPE_H

#include "base/limited.h"

/* Makes the types Array and Device and adds them to the module. -1: an exception. */
int array_add(PyObject *module);

#endif
