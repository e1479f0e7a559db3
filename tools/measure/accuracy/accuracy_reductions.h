/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_reductions.h: how far the results of ops that reduce lie from the exact ones, which MPFR has, beside the bounds that
 * their specs declare (tools/measure/bounds.lua prints them). What t300 tests, and the table of reductions in ACCURACY.md is
 * written from. */
#ifndef QUERN_TESTS_ACCURACY_REDUCTIONS_H
#define QUERN_TESTS_ACCURACY_REDUCTIONS_H

#include "ref.h"

enum { REDUCTION_MAX_ROWS = 400 };

/* An op for inputs of a dtype. */
typedef struct reduction_row {
  char name[64], dtype[16];
  double ulp, u;      /* a bound in ULPs of the result; or 0, */
  char bound[1000];   /* and the text of an absolute one, with its u */
  char found[24];     /* the worst: in ULPs, or as a part of the bound; empty: not measured */
  char at[64];        /* there: the number of elements, which of them, and the seed */
  char points[32];    /* how many results */
} reduction_row;

typedef struct reduction_rows {
  int n;
  reduction_row rows[REDUCTION_MAX_ROWS];
} reduction_rows;

/* What the specs in the folder `root` declare. 0: it cannot be had. */
int reductions_declared(const char *root, reduction_rows *rows);

/* Is this op, of inputs of this dtype, known here? */
int reduction_is_known(const reduction_row *row);

/* Measures it and sets found, at and points. is_sample: fewer and shorter ones of the same. Returns the error that `found` says;
 * it is beyond what is declared if it is above `ulp`, or above 1. Bails out where a call fails. */
double reduction_measure(reduction_row *row, int is_sample);

/* The error at the place that `at` names; negative: there is no such place. */
double reduction_error_at(const reduction_row *row, const char *at);

/* Reads found, at and points of the rows of ACCURACY.md, each into the row of its op and dtype; a row that has other declared
 * bounds is passed over. Returns how many were read. */
int reductions_read(const char *file, reduction_rows *rows);

#endif /* QUERN_TESTS_ACCURACY_REDUCTIONS_H */
