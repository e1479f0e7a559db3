/* SPDX-License-Identifier: Apache-2.0
 *
 * lines.h: the library's lines `key: value` as a dict. */
#ifndef QUERN_PYTHON_LINES_H
#define QUERN_PYTHON_LINES_H

#include "base/limited.h"

/* A new dict of str, without lines that have no key or were cut off. Modifies the text. */
PyObject *lines_dict(char *text);

#endif
