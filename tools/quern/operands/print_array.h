/* SPDX-License-Identifier: Apache-2.0
 *
 * print_array.h: prints a small array: an output that no file was given for. */
#ifndef QUERN_PROGRAM_PRINT_ARRAY_H
#define QUERN_PROGRAM_PRINT_ARRAY_H

#include "ndarray.h"

#define PRINT_MOST 100 /* elements */

/* Whether it has few enough elements; if not, says so. */
int print_array_fits(const ndarray *array);

/* On standard output, without a line's end: 6.5, or [[1, 2], [3, 4]]. A float has the fewest digits that read back as it. */
void print_array(const ndarray *array);

#endif
