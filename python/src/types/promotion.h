/* SPDX-License-Identifier: Apache-2.0
 *
 * promotion.h: the dtype that operands of two dtypes promote to, by the library. Called with the GIL. */
#ifndef QUERN_PYTHON_PROMOTION_H
#define QUERN_PYTHON_PROMOTION_H

#include <quern/dlpack.h>

#include "base/limited.h"

/* Sets *common, and returns 1. 0: the library has no common dtype for them, or does not know one of them. No exception. */
int promotion_of(DLDataType a, DLDataType b, DLDataType *common);

/* Sets *floating to the dtype that a float number beside operands of dtype a has, and returns 1. 0: the library does not know a. No
 * exception. */
int promotion_with_fractions(DLDataType a, DLDataType *floating);

/* Adds _promote(a, b) and _with_fractions(a) to the module: a dtype, or None where there is none. -1: an exception. */
int promotion_add(PyObject *module);

#endif
