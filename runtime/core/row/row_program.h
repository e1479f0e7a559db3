/* SPDX-License-Identifier: Apache-2.0
 *
 * row_program.h: the program of an op that reduces over axes: stages of kernels, and the reductions between them. A row is all
 * elements that one result is made of. Immutable; knows no shapes. The tables are generated (op_table.c). */
#ifndef QN_ROW_PROGRAM_H
#define QN_ROW_PROGRAM_H

#include "core/base/status.h"
#include "core/op/params.h"

#define QN_DTYPE_MAX_BYTES (1 << (QN_DTYPE_N_SIZES - 1)) /* of an element, of the dtypes that are built */
#define QN_DTYPE_MAX_WORDS ((QN_DTYPE_MAX_BYTES + 7) / 8) /* of a value in a table: its bits are in the first bytes */

/* The lanes of a node, and the elements of a chunk: docs/internals/reductions.md. */
#define QN_ROW_LANES 16
#define QN_ROW_CHUNK 256

/* n / by, rounded up; n may be the largest number. */
static inline int64_t qn_ceil_div(int64_t n, int64_t by) { return n / by + (n % by != 0); }

#define QN_ROW_STRIDES 320 /* of all operands of a kernel for a device. ORDER STRIDES of gen/targets/cuda/rows.lua */

#define QN_ROW_FOUND 64    /* the fewest elements that are searched: templates/c/rows/reduce_parts.c.in */
#define QN_ROW_MAX_PARTS 4 /* of a state; gen/kinds/reduction.lua */

struct qn_row_steps;

/* A reduction for one accumulator dtype. A node has room for QN_ROW_LANES states: first the accumulators of all states' first parts, then
 * those of the next parts. Of fewer than 16 elements only the first states are set. A kernel has an operand for each part of its inputs,
 * then of its outputs. */
typedef struct qn_reducer {
  const char *name;
  /* "cc", rank 2: each row of n[0] elements: its node, or where the parameter, an i64, is 1, its result. Of reductions that join: where it is
   * QN_ROW_AS_ONE, one node, that of at most QN_ROW_JOINED_AT_ONCE rows by the aligned binary tree over them; where it is QN_ROW_FOLDED, of
   * n[0] accumulators that one by the tree over their places; they are overwritten. */
  const qn_variant *inner;
  /* "cc", rank 2: n[1] rows, 1 to 16, of n[0] columns combined one after the other: a row of n[0] accumulators. Where the first parameter, an
   * i64, is 1, this row is there already, and they are combined with it; where it is QN_ROW_AT_ONCE, the rows are all that is reduced, 1 to
   * QN_ROW_MOST_AT_ONCE: the row is the result. The second one, an i64, is the distance of rows that are
   * prefetched, in bytes; 0: none are. NULL: of several parts. */
  const qn_variant *columns;
  const qn_variant *both; /* "ccc", rank 2: elementwise; the result may be the first input */
  uint64_t empty[QN_DTYPE_MAX_WORDS]; /* the bits of the result of no elements */
  uint8_t has_empty;      /* 0: no elements are an error, but for a qn_row_reduce with takes_none */
  uint8_t dtype;          /* of accumulators: of a state's first part */
  uint8_t n_parts;
  uint8_t finds;          /* `inner` searches: of QN_ROW_FOUND or more elements it reads only the first index, which the others follow */
  uint8_t others[QN_ROW_MAX_PARTS - 1]; /* the dtypes of its further parts */
  const qn_variant *narrow[QN_DTYPE_COUNT]; /* as `inner`, for elements of a narrower dtype; NULL: there is none */
  uint8_t has_absorbing;  /* accumulators of a byte: one with the value `absorbing` is the result, whatever else there is */
  uint8_t absorbing;
  const struct qn_row_steps *steps; /* of a reduction without kernels of its own: what `inner` and `both` combine by. Else NULL */
  uint8_t fuses; /* kernels of elements combine them themselves */
  uint8_t joins; /* `inner` and `narrow` join the nodes of rows */
  uint8_t at_once; /* `columns` takes QN_ROW_AT_ONCE */
  const qn_variant *narrow_columns[QN_DTYPE_COUNT]; /* as `columns` of all rows at once, for elements of a narrower dtype; NULL: there is none */
} qn_reducer;

#define QN_ROW_AT_ONCE 2
#define QN_ROW_MOST_AT_ONCE 1024
#define QN_ROW_AS_ONE 2
#define QN_ROW_FOLDED 3
#define QN_ROW_JOINED_AT_ONCE 64

/* The parameters of `inner` and `both`. Built kernels read no more than the first. */
typedef struct qn_row_reducing {
  int64_t is_whole;
  const qn_reducer *by;
} qn_row_reducing;

static inline uint8_t qn_reducer_dtype(const qn_reducer *by, int32_t part) { return part ? by->others[part - 1] : by->dtype; }

extern const qn_reducer qn_reducers[];
extern const int32_t qn_n_reducers;

/* Values of a program. ORDER VALUE of gen/kinds/row.lua */
#define QN_ROW_INPUT 0x00  /* + the index of an input */
#define QN_ROW_INDEX 0x1f  /* the place of an element in its row, an i64 */
#define QN_ROW_OUTPUT 0x20 /* + the index of an output */
#define QN_ROW_VALUE 0x40  /* + the number of a row value */
#define QN_ROW_TEMP 0x80   /* + the number of a temporary: an element */

typedef struct qn_row_reduce {
  uint8_t from; /* a value of elements */
  uint8_t to;   /* the number of a row value; those of further parts follow */
  const qn_reducer *by;
  uint8_t others[QN_ROW_MAX_PARTS - 1]; /* values of elements: the further parts */
  uint8_t takes_none; /* no elements are no error */
} qn_row_reduce;

static inline uint8_t qn_row_from(const qn_row_reduce *reduce, int32_t part) { return part ? reduce->others[part - 1] : reduce->from; }

struct qn_scan;

/* A scan of the elements that a stage computes, along the one axis. */
typedef struct qn_row_scan {
  const struct qn_scan *scan;
  const char *name;
  uint8_t from; /* a value of elements */
  uint8_t to;   /* a temporary; may be `from` */
  uint8_t is_exclusive;
  uint64_t initial[QN_DTYPE_MAX_WORDS]; /* the bits of the result of no elements */
} qn_row_scan;

typedef struct qn_row_stage {
  const qn_variant *variant; /* NULL: no kernel. Of elements of rank 2, row values broadcast; of row values of rank 1 */
  const qn_variant *across; /* the same kernel of elements for row values that are contiguous: of neighbouring rows; NULL: there is none */
  /* [n_in + n_out]: the kernel's operands. Without a kernel, of row values: one is stored as the other; of two inputs, the first one's
   * element at the place that the second one gives (row_pick.h). */
  const uint8_t *values;
  const qn_row_reduce *reduces;
  uint8_t n_in, n_out, n_reduces;
  uint8_t is_row;   /* it computes row values */
  uint8_t is_again; /* the last stage once more, without the value that is kept */
  uint8_t fuses;    /* where the kernel's n[2] is 1, it gives the node of each row's elements in place of these, where it is 2 the result */
  /* Of an interpreted expression: runs in place of the variant's kernel. The dtypes are still those of the variant. Else NULL. */
  const struct qn_row_steps *steps;
  /* Not NULL: the stage is no pass of its own; it runs on each block before the stages that read `to`. */
  const qn_row_scan *scan;
  uint16_t feeders;   /* bit k: stage k, which scans, runs before it on each block, in order */
  uint8_t is_reverse; /* these scans begin at the end, and so do the blocks; then the stage reduces nothing */
} qn_row_stage;

/* Whether a stage takes an element of each row from its place (row_pick.h), and its bytes of scratch for each row. */
static inline int qn_row_picks(const qn_row_stage *stage) { return stage->is_row && !stage->variant && stage->n_in == 2; }
#define QN_ROW_PICK_BYTES 24

/* The steps of an interpreted stage. Made above the core; a generated tree has none. */
typedef struct qn_row_steps {
  /* One row of `count` elements. ptr: of the stage's values; stride: bytes from element to element. */
  void (*compute)(const struct qn_row_steps *steps, char *const *ptr, const int64_t *stride, int64_t count, char *scratch,
                  const void *params);
  int32_t n_ones, temp_bytes; /* 8 bytes each at the beginning of the scratch; bytes an element behind them */
  uint32_t in_place;          /* bit k: output k of the stage is written after the last read of inputs */
  /* The compiled kernel of the stage, as `variant` describes it; requests it. NULL: there is none yet. */
  qn_kernel *(*kernel)(const struct qn_row_steps *steps);
  /* For explain: the tier of the compiled kernel, "" while there is none, with the reason; and the lines of the stage. */
  const char *(*tier)(const struct qn_row_steps *steps, char reason[256]);
  void (*explain)(const struct qn_row_steps *steps, qn_strbuf *buf);
} qn_row_steps;

#define QN_ROW_MAX_STAGES 12
#define QN_ROW_MAX_VALUES 16
#define QN_ROW_MAX_REDUCES 16 /* of a program */

typedef struct qn_row_program {
  const qn_row_stage *stages;
  const uint8_t *row_types; /* qn_dtype of each row value */
  const qn_slot *slots;     /* the parameters of its kernels; the number of elements of a row, an i64, follows */
  double empty;      /* the result of no elements, if has_empty; else the stages give it */
  uint8_t n_stages, n_rows, n_slots, has_empty;
  /* A program without parameters that gives the same bits where the first parameter's slot is special_of; NULL: there is none. */
  const struct qn_row_program *special;
  uint64_t special_of;
  uint8_t kept; /* the temporary that the last stage but one, `is_again` after it, may read in the output's place; 0: there is none */
  uint8_t n_scans;
  /* The same with elements taken from their places where the program compares all places and adds: what a call of the op runs on the CPU.
   * NULL: there is none. */
  const struct qn_row_program *picking;
  /* Programs with a number in the place of the first parameter: what a call of the op with this number runs on the CPU. They have the
   * same parameters. */
  const struct qn_row_case *cases;
  int32_t n_cases;
} qn_row_program;

typedef struct qn_row_case {
  uint64_t value; /* of the parameter's slot */
  const qn_row_program *program;
} qn_row_case;

/* The row of an op beside its qn_builtin. By the dtype that its inputs promote to. */
typedef struct qn_row_op {
  uint8_t is_reduced; /* its outputs are row values, and it has the parameter keepdims; else they have the inputs' shape */
  uint32_t row_in;    /* bit k: input k has extent 1 along the axes */
  const char *twin;   /* the op that a call which gives a further parameter, behind keepdims, goes to; NULL: it has none */
  const qn_row_program *programs[QN_DTYPE_COUNT]; /* NULL: the op does not take it */
  uint8_t results[QN_DTYPE_COUNT];                /* the dtype of outputs without one of their own */
} qn_row_op;

/* The row of an op of this kind; NULL: it is of another. */
const qn_row_op *qn_row_op_of(const qn_builtin *builtin);

/* The number of its first parameters, which no kernel of its own has: axes, keepdims, that of the twin. */
static inline int32_t qn_row_n_shape_params(const qn_row_op *row) { return 1 + row->is_reduced + (row->twin != NULL); }

#endif
