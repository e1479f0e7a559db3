/* SPDX-License-Identifier: Apache-2.0
 *
 * gather.h: items by arrays of whole numbers, for _gather.py. */
#ifndef QUERN_PYTHON_GATHER_H
#define QUERN_PYTHON_GATHER_H

#include "base/limited.h"

/* Adds _gather to the module. -1: an exception. */
int gather_add(PyObject *module);

#endif
