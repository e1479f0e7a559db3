/* SPDX-License-Identifier: Apache-2.0
 *
 * binding.h: which word of the command line is which operand of an op. Reads no file. */
#ifndef QUERN_PROGRAM_BINDING_H
#define QUERN_PROGRAM_BINDING_H

#include "operand.h"

#define BINDING_MAX 64 /* words; an op has at most 32 operands */

typedef struct word_list {
  operand_word words[BINDING_MAX];
  int n;
} word_list;

/* Adds a word that was parsed; returns an exit status. */
int word_list_add(word_list *list, const operand_word *word, const char *usage);

/* of[k]: the word of operand k (inputs, then outputs), NULL for an output that has none. is_op: it was
 * called by its name. Returns an exit status: names that the op has not, and names that are not there, are said. */
int bind_words(quern_ctx *ctx, const quern_op_info *info, const word_list *list, int is_op, const operand_word *of[BINDING_MAX]);

/* Refuses a text that is one name, of no op and no operand: what the library says of a call of it. Returns an exit status. */
int refuse_name(quern_ctx *ctx, const char *text);

/* The text that calls an op in an expression, of its first output if it has several: "clip(x)". */
void write_call(const quern_op_info *info, char *text, size_t size);

#endif
