/* SPDX-License-Identifier: Apache-2.0
 *
 * guess.h: which of the known names was meant by one that is unknown. */
#ifndef QN_GUESS_H
#define QN_GUESS_H

typedef struct qn_guess {
  const char *wanted;
  const char *nearest; /* of the names offered, the nearest, of several the first; NULL: none is near */
  int distance;
} qn_guess;

qn_guess qn_guess_begin(const char *wanted);
void qn_guess_offer(qn_guess *guess, const char *name);

#endif
