/* SPDX-License-Identifier: Apache-2.0
 *
 * environment.c: every getenv; see environment.h. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "core/base/environment.h"

#include <stdlib.h>
#include <string.h>

const char *qn_environment_get(const char *name) {
#if defined(__linux__)
  const char *text = secure_getenv(name);
#else
  const char *text = getenv(name);
#endif
  return text && text[0] ? text : NULL;
}

int32_t qn_environment_number(const char *name, int32_t otherwise) {
  const char *text = qn_environment_get(name);
  int32_t n = 0;
  if (!text || strlen(text) > 4) return otherwise;
  for (; *text; text++) {
    if (*text < '0' || *text > '9') return otherwise;
    n = n * 10 + (*text - '0');
  }
  return n;
}

int qn_environment_log(void) {
  static const char *const levels[] = {"error", "warning", "info", "debug"};
  const char *text = qn_environment_get(QN_SPELLED(QUERN_LOG));
  if (!text) return -1;
  for (int i = 0; i < 4; i++)
    if (strcmp(text, levels[i]) == 0 || (text[0] == '0' + i && text[1] == 0)) return i;
  return 2;
}
