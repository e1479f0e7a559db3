/* SPDX-License-Identifier: Apache-2.0
 *
 * memo.h: what an op remembers of its last calls: the plan of a layout that comes again and again, so that small calls cost no
 * more than they must. Everything here is called with the GIL, which is what guards it. Knows no Python objects. */
#ifndef QUERN_PYTHON_MEMO_H
#define QUERN_PYTHON_MEMO_H

#include <quern/quern.h>

/* Dtypes, shapes and strides of all operands; larger ones are not remembered. */
#define MEMO_WORDS 48

typedef struct memo {
  quern_plan *plan;   /* of the layout in words; NULL: none yet */
  int32_t n_words;    /* 0: nothing is remembered */
  int32_t n_seen;     /* how often it came, in a row */
  int32_t is_running; /* the plan is in use: a host's function may let go of the GIL and others come in */
  int64_t words[MEMO_WORDS];
} memo;

/* The plan for operands in the CPU's memory that lie as before, to be given back with memo_end; NULL: call the op. */
quern_plan *memo_begin(memo *memo, quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out);
static inline void memo_end(memo *memo) { memo->is_running = 0; }

void memo_clear(memo *memo);

#endif
