/* SPDX-License-Identifier: Apache-2.0
 *
 * spec_op.h: an op of a spec, for the registry and typing. */
#ifndef QN_SPEC_OP_H
#define QN_SPEC_OP_H

#include "base/op_traits.h"
#include "core/base/kernel_abi.h"
#include "core/kinds/kind_adjoint.h"
#include "core/kinds/kind_scan.h"
#include "core/row/row_program.h"

#define QN_SPEC_MAX_SCANNED 3 /* inputs of an adjoint: MOST_IN of kind_adjoint.c */

/* A reduction that a program needs, described: the program's owner finds a qn_reducer for it. */
typedef struct qn_spec_reducer {
  const char *op, *combine; /* the names of the reduction, and of its combine as a program of qn_generator_program */
  const char *twin;         /* a built reduction with the same combine; "" or NULL: there is none */
  uint64_t empty;           /* these as in qn_reducer */
  uint8_t has_empty, n_parts, parts[QN_ROW_MAX_PARTS];
} qn_spec_reducer;

/* What a scan with states, or an adjoint, has beyond a combine: the names of the programs of lift and finish, "" where the state is the
 * element, or the result; and the dtypes of inputs and results. */
typedef struct qn_spec_states {
  const char *lift, *finish;
  uint8_t n_in, n_out, in[QN_SPEC_MAX_SCANNED], out[QN_SCAN_MAX_OUTPUTS];
} qn_spec_states;

/* The program of an op that reduces, for a kernel dtype. Its kernels have no functions: their names are those of programs of
 * qn_generator_program. */
typedef struct qn_spec_program {
  qn_row_program program; /* what it points to is here: */
  qn_row_stage stages[QN_ROW_MAX_STAGES];
  qn_variant variants[QN_ROW_MAX_STAGES];
  uint8_t values[QN_ROW_MAX_STAGES][QN_MAX_OPERANDS], dtypes[QN_ROW_MAX_STAGES][QN_MAX_OPERANDS];
  uint8_t row_types[QN_ROW_MAX_VALUES];
  qn_slot slots[QN_MAX_PARAMS];
  int32_t n_reduces;
  qn_row_reduce reduces[QN_ROW_MAX_REDUCES]; /* `by` is set by the owner, from: */
  qn_spec_reducer reducers[QN_ROW_MAX_REDUCES];
} qn_spec_program;

/* An op. It and all that it points to are one allocation, freed with free(). */
typedef struct qn_spec_op {
  qn_builtin rule; /* info, rule, dtypes, own, bool_in, whole_in, results, heavy, of_kind; without variants */
  qn_op_traits traits; /* the rule's */
  qn_row_op row;       /* of an op that reduces: the rule's of_kind */
  int32_t n_programs;
  qn_spec_program *programs;
  qn_adjoint_op adjoint; /* of a derivative of a scan: likewise */
  qn_scan_op scan;     /* of an op that scans: likewise; its kernels are set by the owner, for each dtype with: */
  qn_spec_reducer scans[QN_DTYPE_COUNT]; /* combine NULL: the op does not take it */
  qn_spec_states states[QN_DTYPE_COUNT];  /* lift NULL: it has none */
} qn_spec_op;

#endif
