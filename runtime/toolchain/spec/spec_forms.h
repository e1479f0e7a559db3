/* SPDX-License-Identifier: Apache-2.0
 *
 * spec_forms.h: readers of the data that a spec's ops of the kinds row, scan and adjoint have in addition. gen/kinds packs it. */
#ifndef QN_SPEC_FORMS_H
#define QN_SPEC_FORMS_H

#include "toolchain/spec/packed.h"
#include "toolchain/spec/spec_op.h"

typedef struct qn_spec_form {
  /* Reads it into the op. Returns the rule's of_kind. The first pass reads into an op that is thrown away and has no `programs`; it gives
   * their number. */
  const void *(*read)(qn_packed *r, qn_spec_op *op, int32_t *n_programs);
} qn_spec_form;

extern const qn_spec_form qn_spec_rows, qn_spec_scan, qn_spec_adjoint;

#endif
