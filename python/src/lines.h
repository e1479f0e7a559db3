/* SPDX-License-Identifier: Apache-2.0
 *
 * lines.h: the library's lines `key: value` as a dict. */
#ifndef QUERN_PYTHON_LINES_H
#define QUERN_PYTHON_LINES_H

#include "limited.h"

/* A new dict of str; lines without a key, and one that was cut off, are left out. The text is written to. */
PyObject *lines_dict(char *text);

#endif
