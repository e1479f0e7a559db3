/* SPDX-License-Identifier: Apache-2.0
 *
 * lines.c: see lines.h. */
#include "base/lines.h"

#include <string.h>

PyObject *lines_dict(char *text) {
  PyObject *dict = PyDict_New();
  for (char *line = text, *end; dict && (end = strchr(line, '\n')); line = end + 1) {
    *end = '\0';
    char *colon = strstr(line, ": ");
    if (!colon) continue;
    *colon = '\0';
    PyObject *value = PyUnicode_DecodeUTF8(colon + 2, end - colon - 2, "replace");
    if (!value || PyDict_SetItemString(dict, line, value)) Py_CLEAR(dict);
    Py_XDECREF(value);
  }
  return dict;
}
