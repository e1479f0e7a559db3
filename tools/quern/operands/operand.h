/* SPDX-License-Identifier: Apache-2.0
 *
 * operand.h: the words of a command line: NAME[:DTYPE[SHAPE]]=FILE, NAME:DTYPE[SHAPE], NAME=NUMBER, and dtypes by name. Opens
 * no file and calls no op.
 *
 * Functions return 1, or 0 with one sentence in `why`. */
#ifndef QUERN_PROGRAM_OPERAND_H
#define QUERN_PROGRAM_OPERAND_H

#include <quern/quern.h>

#include "files/why.h"

#define OPERAND_NAME_SIZE 64
#define OPERAND_DTYPE_SIZE 8

typedef struct operand_word {
  char name[OPERAND_NAME_SIZE];
  int has_dtype;
  DLDataType dtype;
  const char *path; /* NAME=FILE: points into the word */
  int has_shape;
  int32_t ndim; /* NAME:DTYPE[SHAPE]; without brackets 0 */
  int64_t shape[QUERN_MAX_NDIM];
} operand_word;

/* x=x.npy, x:bf16=x.npy, x:f32[10]=x.npy */
int operand_parse_file(const char *word, operand_word *operand, char why[WHY_SIZE]);

/* x:f32[100,3], x:f32 */
int operand_parse_shape(const char *word, operand_word *operand, char why[WHY_SIZE]);

/* a=0.5: a whole number (decimal, hexadecimal) as such, a float (decimal, hexadecimal, inf, nan) as an f64. */
int operand_parse_number(const char *word, char name[OPERAND_NAME_SIZE], quern_scalar *number,
                         char why[WHY_SIZE]);

/* A whole number in [low, high], decimal and nothing else. */
int operand_parse_count(const char *text, int32_t low, int32_t high, int32_t *count);

/* "f32" for a dtype and back. Whether the library takes it is another matter. */
const char *operand_dtype_name(DLDataType dtype, char text[OPERAND_DTYPE_SIZE]);
int operand_dtype_find(const char *name, size_t length, DLDataType *dtype);

/* A number as one would write it, the shortest that reads back as it is. */
#define OPERAND_NUMBER_SIZE 40
const char *operand_number_text(const quern_scalar *number, char text[OPERAND_NUMBER_SIZE]);

#endif
