/* SPDX-License-Identifier: Apache-2.0
 *
 * guess.h: the known name nearest to an unknown one, for error sentences. */
#ifndef QN_GUESS_H
#define QN_GUESS_H

typedef struct qn_guess {
  const char *wanted;
  const char *nearest; /* the nearest of the names offered, the first of equals; NULL: none is near */
  int distance;
} qn_guess;

qn_guess qn_guess_begin(const char *wanted);
void qn_guess_offer(qn_guess *guess, const char *name);

#endif
