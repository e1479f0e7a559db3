/* SPDX-License-Identifier: Apache-2.0
 *
 * stage_text.h: the values of a stage of a row as a text, which the generator compiles as it compiles an expression's
 * (gen/graph/stage_text.lua). Items are separated by "; ", values are named by their number:
 *   rows: in INDEX DTYPE [computed] | param INDEX DTYPE | count | const DTYPE HEX | prim OP DTYPE VALUE... | op NAME K OUTPUT VALUE...
 *         | kernel NAME OUTPUT VALUE... | out VALUE
 *         | reduce NAME DTYPE
 * A KERNEL is named as built ones are, or, of a spec, OP:DTYPE:STAGE, OP:DTYPE:combine. */
#ifndef QN_STAGE_TEXT_H
#define QN_STAGE_TEXT_H

#include "core/row/row_program.h"
#include "lang/typing/values.h"

/* malloc'ed; NULL: out of memory. */
char *qn_stage_text(const qn_typed *typed);

/* Adds that the kernel reduces its value; frees the text. NULL: out of memory. */
char *qn_stage_text_reduce(char *text, const qn_reducer *by);

#endif
