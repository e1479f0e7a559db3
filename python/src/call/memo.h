/* SPDX-License-Identifier: Apache-2.0
 *
 * memo.h: caches one plan per op, for a layout and parameters that several calls in a row had: small calls become cheap. Called
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
  int32_t is_running; /* the plan is in use: a host's function may release the GIL */
  int64_t words[MEMO_WORDS];
} memo;

/* Borrows the plan for these operands and the parameters of `how`, until memo_end; it is run without parameters. NULL: there is
 * none, call the op. */
quern_plan *memo_begin(memo *memo, quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                       const quern_call *how);
static inline void memo_end(memo *memo) { memo->is_running = 0; }

void memo_clear(memo *memo);

#endif
