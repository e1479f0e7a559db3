/* SPDX-License-Identifier: Apache-2.0
 *
 * guess.c: see guess.h. gen/base/source.lua guesses the same. */
#include "core/base/guess.h"

#include <stddef.h>
#include <string.h>

#define LONGEST 63

/* The Levenshtein distance of `a` and `b`, both at most LONGEST long. */
static int edit_distance(const char *a, const char *b) {
  int row[LONGEST + 1], n = (int)strlen(b);
  for (int j = 0; j <= n; j++) row[j] = j;
  for (int i = 1; *a; i++, a++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= n; j++) {
      int best = diagonal + (*a != b[j - 1]);
      diagonal = row[j];
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
    }
  }
  return row[n];
}

qn_guess qn_guess_begin(const char *wanted) {
  const size_t length = strlen(wanted);
  /* A name is near if at most a third of the letters, rounded up, differ. */
  return (qn_guess){.wanted = wanted, .distance = length <= LONGEST ? (int)(length + 2) / 3 + 1 : 0};
}

void qn_guess_offer(qn_guess *guess, const char *name) {
  if (guess->distance == 0 || strlen(name) > LONGEST) return;
  const int distance = edit_distance(guess->wanted, name);
  if (distance >= guess->distance) return;
  guess->distance = distance;
  guess->nearest = name;
}
