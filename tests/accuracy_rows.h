/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_rows.h: the rows of ACCURACY.md, read: by the program that writes it anew, and by t300, which holds it to what is
 * measured. */
#ifndef QUERN_TESTS_ACCURACY_ROWS_H
#define QUERN_TESTS_ACCURACY_ROWS_H

#include "ref.h"

typedef struct accuracy_row {
  char found[24]; /* empty: no row */
  char at[120], points[32], reference[24];
} accuracy_row;

/* Rows of unknown ops are passed over. 0: there is no such file, and no row. */
int accuracy_read(const char *file, accuracy_row rows[][REF_N_DTYPES]);

#endif /* QUERN_TESTS_ACCURACY_ROWS_H */
