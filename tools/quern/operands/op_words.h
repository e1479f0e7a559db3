/* SPDX-License-Identifier: Apache-2.0
 *
 * op_words.h: the words of a command line for an op, sorted into operands and numbers for its parameters. */
#ifndef QUERN_PROGRAM_OP_WORDS_H
#define QUERN_PROGRAM_OP_WORDS_H

#include "binding.h"

#define OP_WORDS_PARAMS 64

/* --param NAME=NUMBER */
typedef struct param_word {
  char name[OPERAND_NAME_SIZE];
  quern_scalar value;
} param_word;

typedef struct op_words {
  word_list operands;
  param_word given[OP_WORDS_PARAMS];
  int n_given;
  const char *axes; /* axis=TEXT, for an op that has axes; else NULL */
  quern_scalar params[OP_WORDS_PARAMS];
  int32_t n_params; /* those of the op that the call has */
} op_words;

/* Takes an op's name, or an expression. Returns an exit status. *is_op: it is the name of one, and no word has that name. */
int op_words_open(quern_ctx *ctx, const char *text, const word_list *words, quern_op **op, int *is_op);

/* Divides the words: what has the name of a parameter is a number. Of an op with one output, a word of no other name is that.
 * Returns an exit status. */
int op_words_divide(const quern_op_info *info, int is_op, const word_list *words, op_words *divided);

/* The parameters' values, in declared order, with their defaults, up to the last one given; `ndim`: the most dimensions of an input.
 * Those of an expression have no default. */
int op_words_bind(const quern_op_info *info, int is_op, int32_t ndim, op_words *divided);

#endif
