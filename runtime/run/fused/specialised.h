/* SPDX-License-Identifier: Apache-2.0
 *
 * specialised.h: an expression specialised for its operands' dtypes, as the backends see it. */
#ifndef QN_SPECIALISED_H
#define QN_SPECIALISED_H

#include "core/op/params.h"
#include "core/op/resolve.h"

/* Lives as long as its op. */
typedef struct qn_specialised {
  qn_signature signature; /* with a `program` for the interpreter; or, of an expression that is one built op, that op's */
  const uint8_t *dtypes;  /* of the operands: compiled kernels take them without conversion */
  int32_t n_slots;
  const qn_slot *slots; /* the parameters; NULL with n_slots > 0: they are converted as the built op's are */
  uint8_t heavy, n_heavy, is_built; /* n_heavy: as in qn_signature */
  int32_t n_nodes;
} qn_specialised;

#endif
