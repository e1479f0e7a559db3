/* SPDX-License-Identifier: Apache-2.0
 *
 * memo.h: an op's cached plan, for the layout of its last calls if that repeats: it makes small calls cheap. Called with the
 * GIL, which guards it. Knows no Python objects. */
#ifndef QUERN_PYTHON_MEMO_H
#define QUERN_PYTHON_MEMO_H

#include <quern/quern.h>

/* Dtypes, shapes and strides of all operands; larger ones are not remembered. */
#define MEMO_WORDS 48

typedef struct memo {
  quern_plan *plan;   /* of the layout in words; NULL: none yet */
  int32_t n_words;    /* 0: nothing is remembered */
  int32_t n_seen;     /* consecutive calls with it */
  int32_t is_running; /* the plan is in use: a host's function may release the GIL */
  int64_t words[MEMO_WORDS];
} memo;

/* The plan for operands in the CPU's memory with the remembered layout, to be returned by memo_end; NULL: call the op. */
quern_plan *memo_begin(memo *memo, quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out);
static inline void memo_end(memo *memo) { memo->is_running = 0; }

void memo_clear(memo *memo);

#endif
