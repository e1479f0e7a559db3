/* SPDX-License-Identifier: Apache-2.0
 *
 * why.h: how functions that complain of nothing themselves tell their callers why they failed: in one sentence. */
#ifndef QUERN_PROGRAM_WHY_H
#define QUERN_PROGRAM_WHY_H

#include <stdarg.h>
#include <stdio.h>

#define WHY_SIZE 256

/* Writes the sentence into why[WHY_SIZE], cut if it is longer. Returns 0. */
__attribute__((format(printf, 2, 3))) static inline int refuse(char *why, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, WHY_SIZE, format, arguments);
  va_end(arguments);
  return 0;
}

#endif
