/* SPDX-License-Identifier: Apache-2.0
 *
 * transient.c: see transient.h. */
#include "base/threads/transient.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const int transient[] = {EMFILE, ENFILE, ENOMEM, EAGAIN, ENOSPC, EINTR};
#define N_TRANSIENT (sizeof transient / sizeof transient[0])

static _Thread_local int is_noted;

void qn_transient_note(int error) {
  for (size_t i = 0; i < N_TRANSIENT; i++) is_noted |= transient[i] == error;
}

void qn_transient_note_text(int error, const char *text) {
  /* Words of the loader for a mapping that was refused; it gives no errno with all of them. */
  static const char *const words[] = {"Too many open files", "Cannot allocate memory", "failed to map segment", "cannot map zero-fill",
                                      "cannot allocate", "cannot create"};
  qn_transient_note(error);
  for (size_t i = 0; text && i < sizeof words / sizeof words[0]; i++) is_noted |= strstr(text, words[i]) != NULL;
}

int qn_transient_take(void) {
  const int was_noted = is_noted;
  is_noted = 0;
  return was_noted;
}
