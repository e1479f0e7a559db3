/* SPDX-License-Identifier: Apache-2.0
 *
 * memo.h: caches one plan per op, for a layout and parameters that several calls in a row had: such calls become cheap. Called
 * with the GIL, which guards it. Knows no Python objects. */
#ifndef QUERN_PYTHON_MEMO_H
#define QUERN_PYTHON_MEMO_H

#include <quern/quern.h>

/* The most words that are compared: dtypes, shapes and strides of all operands, the parameters. More are not cached. */
#define MEMO_WORDS 48

typedef struct memo {
  quern_plan *plan;   /* of the call in words; NULL: none yet */
  int32_t n_words;    /* 0: nothing is remembered */
  int32_t n_seen;     /* consecutive calls with it */
  int32_t is_running; /* the plan is in use, maybe without the GIL */
  int32_t is_small;   /* the call has few items */
  int64_t words[MEMO_WORDS];
} memo;

/* The layout and the parameters of the last call that had no plan, as words: for memo_call. */
typedef struct memo_words {
  int32_t n; /* 0: there was none, or the plan's call came later */
  int64_t words[MEMO_WORDS];
} memo_words;

/* Keeps them for a call of any device. */
void memo_note(memo_words *last, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out, const quern_call *how);

/* The operands, without memory, and the parameters that the words say. Returns the number of parameters; -1: no words. room: of
 * 2 * MEMO_WORDS shapes and strides. */
int32_t memo_call(const memo_words *last, const memo *memo, int32_t n, DLTensor *tensors, int64_t *room, quern_scalar *params);

/* Whether the call that is remembered had these operands and the parameters of `how`. */
int memo_knows(const memo *memo, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out, const quern_call *how);

/* Remembers this call instead. 0: its operands are not in the CPU's memory, it has too many words, or the plan is in use; what is
 * remembered stays. */
int memo_keep(memo *memo, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out, const quern_call *how, int is_small);

/* Borrows the plan for the call that is remembered, until memo_end; it is run without parameters, and may be without the GIL. NULL:
 * there is none, call the op. */
quern_plan *memo_begin(memo *memo, quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                       const quern_call *how);
static inline void memo_end(memo *memo) { memo->is_running = 0; }

void memo_clear(memo *memo);

#endif
