/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_pairs.h: all 2^32 pairs of f16s or bf16s, a row (one x, every y) at a time: exact values in f64 and errors against
 * them, as vectors. It only reports suspects, results that may be wrong or worse than the worst known: the caller examines them. */
#ifndef QUERN_TESTS_ACCURACY_PAIRS_H
#define QUERN_TESTS_ACCURACY_PAIRS_H

#include "accuracy_functions.h"

#define PAIRS_ROW 65536 /* y: every pattern, in the order of their bits */

typedef struct accuracy_pairs accuracy_pairs;

/* NULL: it does not know the op, or d is no dtype of 16 bits. is_exact: a result must be the correctly rounded f32, rounded
 * once more, bit for bit. */
accuracy_pairs *accuracy_pairs_open(ref_op op, ref_dtype d, const accuracy_format *format, int is_exact);
void accuracy_pairs_close(accuracy_pairs *p);

/* Stores suspect values of y in suspects[PAIRS_ROW], and returns how many. got[PAIRS_ROW]: the results. Suspect are results that may be wrong
 * or beyond `bound`, and the one of the largest error if that is beyond `worst`. Errors are known to 2^-24 of an ULP. */
int accuracy_pairs_check(accuracy_pairs *p, uint16_t x, const uint16_t *got, double worst, double bound, uint16_t *suspects);

#endif /* QUERN_TESTS_ACCURACY_PAIRS_H */
