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

/* Digests of the text that an op's results in a dtype follow from (tools/measure/programs.lua). */
typedef struct accuracy_programs {
  int n;
  struct {
    char name[64], dtype[16], digest[20];
  } rows[2000];
} accuracy_programs;

/* Those that stood when the rows of ACCURACY.md in the folder `root` were measured, and those of the sources there. 0: none. */
int accuracy_programs_read(const char *root, accuracy_programs *programs);
int accuracy_programs_now(const char *root, accuracy_programs *programs);
/* 0: cannot be written. */
int accuracy_programs_write(const char *root, const accuracy_programs *programs);
const char *accuracy_program(const accuracy_programs *programs, const char *name, const char *dtype); /* "": none */
void accuracy_program_set(accuracy_programs *programs, const char *name, const char *dtype, const char *digest);

/* The table of derivatives: a row for each output, by backward_op. */
typedef struct backward_row {
  char output[24], found[24]; /* found is empty: no row */
  char at[160], points[32];
} backward_row;

int accuracy_read_backward(const char *file, backward_row rows[BACKWARD_MAX_ROWS][REF_N_DTYPES][BACKWARD_MAX_OUT]);

#endif /* QUERN_TESTS_ACCURACY_ROWS_H */
