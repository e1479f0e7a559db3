/* SPDX-License-Identifier: Apache-2.0
 *
 * environment_none.c: an environment in which every variable is unset (environment.h). */
#include "core/base/environment.h"

int32_t qn_environment_number(const char *name, int32_t otherwise) {
  (void)name;
  return otherwise;
}
int qn_environment_log(void) { return -1; }
