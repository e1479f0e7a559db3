/* SPDX-License-Identifier: Apache-2.0
 *
 * canonical.h: the canonical text of a parsed expression: tokens joined by one blank, variables renamed, and spellings of Python as
 * those of C: x ** 2 is pow ( x0 , 2 ). */
#ifndef QN_CANONICAL_H
#define QN_CANONICAL_H

#include <stddef.h>

#include "lang/parse/parsed.h"

/* The ops that spellings call. */
typedef enum qn_lowered { QN_LOWERED_POW, QN_LOWERED_FLOOR_DIVIDE, QN_LOWERED_NONE } qn_lowered;

/* What is written before a token: "(", or an op's name and "(". */
struct qn_opening {
  uint8_t lowered; /* a qn_lowered */
  uint16_t inner;  /* the one before, at the same token and inside this one, plus 1; 0: there is none */
};

/* Puts parentheses, those of a call or plain ones, around the tokens from `first` to `last`. Of openings at one token the last is the
 * outermost. */
void qn_canonical_enclose(qn_parsed *parsed, qn_lowered lowered, int32_t first, int32_t last);

/* How many there may be at most. */
size_t qn_canonical_most_openings(const qn_token *tokens, int32_t n);

/* Writes the canonical text with a 0 to out (NULL: counts only). Returns its bytes without the 0. */
size_t qn_canonical_write(const qn_parsed *parsed, char *out);

/* Sorts the called ops by where the canonical text calls them first. room: for as many */
void qn_canonical_sort_ops(qn_parsed *parsed, const quern_op **room);

#endif
