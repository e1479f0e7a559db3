/* SPDX-License-Identifier: Apache-2.0
 *
 * ndarray.h: an operand of the program: its tensor, its memory and its file. Says what is wrong by itself; a function
 * returns 1, or 0 when it has. Calls no op, but asks the library for the dtypes that it takes. */
#ifndef QUERN_PROGRAM_NDARRAY_H
#define QUERN_PROGRAM_NDARRAY_H

#include <quern/quern.h>

#include "files/array_source.h"
#include "operand.h"
#include "files/output_file.h"

typedef struct ndarray {
  const operand_word *word;
  DLTensor tensor; /* points to the arrays below */
  int64_t shape[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM];
  int64_t bytes; /* of the items */
  void *memory;  /* NULL: none yet */
  array_source source;
  output_file target;  /* of standard output its `fd` alone */
  char *archive;       /* of an output in an .npz file: that file's path; else NULL */
  const char *member;  /* its name in there */
  struct ndarray *first, *next; /* of those in one archive: the first, which writes it; the next */
  int is_packed;       /* its archive is compressed */
} ndarray;

/* A zeroed struct may be ended. */
void ndarray_end(ndarray *array);

/* Fills in what the command line gives: a dtype and a shape, no memory. */
int ndarray_describe(ndarray *array, const operand_word *word);

/* An input: opens its file and learns shape and dtype; then reads it. */
int ndarray_open(ndarray *array, const operand_word *word, quern_ctx *ctx);
int ndarray_read(ndarray *array);

/* An output of that shape, and of its dtype where the word says none; no memory. Its word's path may be that of an .npz file. */
int ndarray_infer(ndarray *array, const operand_word *word, const quern_shape *shape);

/* Into the archive of an earlier output, if it is the same file: 1. */
int ndarray_join(ndarray *array, ndarray *earlier);

/* Makes sure that its file can be written, and takes memory. Writes the temporary file; moves it into its place. Of a word without a path
 * there is no file. The path - is standard output, of one array at most: what is printed goes to standard error from then on. */
int ndarray_begin(ndarray *array);
int ndarray_write(ndarray *array);
int ndarray_publish(ndarray *array);

#endif
