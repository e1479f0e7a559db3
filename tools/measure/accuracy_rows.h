/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_rows.h: the rows of ACCURACY.md, read: by the program that writes it anew, and by t300, which holds it to what is
 * measured; and which text of an op each row was measured of. */
#ifndef QUERN_TESTS_ACCURACY_ROWS_H
#define QUERN_TESTS_ACCURACY_ROWS_H

#include "accuracy_backward.h"

typedef struct accuracy_row {
  char found[24]; /* empty: no row */
  char at[120], points[32], reference[24];
} accuracy_row;

/* Rows of unknown ops are passed over. 0: there is no such file, and no row. */
int accuracy_read(const char *file, accuracy_row rows[][REF_N_DTYPES]);

/* A digest of the text that an op's results follow from, in a dtype (tools/measure/programs.lua); empty: none. */
typedef char accuracy_programs[REF_N_OPS][REF_N_DTYPES][20];

/* The digests that stood when the rows of ACCURACY.md in the folder `root` were measured, and those of the sources there. 0: there
 * are none. */
int accuracy_programs_read(const char *root, accuracy_programs digests);
int accuracy_programs_now(const char *root, accuracy_programs digests);
/* 0: cannot be written. */
int accuracy_programs_write(const char *root, accuracy_programs digests);

/* The table of derivatives: a row for each output, by backward_op. */
typedef struct backward_row {
  char output[24], found[24]; /* found is empty: no row */
  char at[160], points[32];
} backward_row;

int accuracy_read_backward(const char *file, backward_row rows[BACKWARD_MAX_ROWS][REF_N_DTYPES][BACKWARD_MAX_OUT]);

#endif /* QUERN_TESTS_ACCURACY_ROWS_H */
