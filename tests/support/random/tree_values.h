/* SPDX-License-Identifier: Apache-2.0
 *
 * tree_values.h: what an expression of random_trees.h is worth for an element, by the plainest evaluation: operations that are
 * rounded exactly in 113-bit arithmetic (ref.h), the others by the built op on a single element. Header-only. */
#ifndef QUERN_TESTS_TREE_VALUES_H
#define QUERN_TESTS_TREE_VALUES_H

#include "random_trees.h"

UNUSED static uint64_t cast_bits(ref_dtype from, uint64_t bits, ref_dtype to) {
  return from == to ? bits : ref_cast(to, ref_value(from, bits), ref_dtype_kind(from));
}

/* What the built op makes of single elements, which are of the dtype that it computes in. */
UNUSED static uint64_t built_value(int call, ref_dtype d, const uint64_t *x) {
  static quern_op *ops[N_CALLS];
  uint64_t in[2] = {0}, out = 0;
  const DLTensor scalar = {NULL, {kDLCPU, 0}, 0, ref_dtype_dl(d), NULL, NULL, 0};
  DLTensor t[3] = {scalar, scalar, scalar}, *ins[2] = {&t[0], &t[1]}, *outs[1] = {&t[2]};
  for (int k = 0; k < call_args[call]; k++) {
    t[k].data = &in[k];
    ref_put(d, &in[k], x[k]);
  }
  t[2].data = &out;
  if (!ops[call] && quern_op_find(NULL, call_names[call], &ops[call])) bail("%s", quern_last_error());
  if (quern_op_call(ops[call], call_args[call], ins, 1, outs, NULL)) bail("%s", quern_last_error());
  return ref_get(d, &out);
}

UNUSED static uint64_t tree_value(const tree *t, int at, const uint64_t *in) {
  const node *n = &t->nodes[at];
  uint64_t x[3];
  ref_dtype types[3];
  if (n->kind == INPUT) return cast_bits(t->in[n->op], in[n->op], n->type);
  if (n->kind == NUMBER || n->kind == PARAM) return ref_from_double(n->type, n->number);
  ref_dtype meet = n->dtype;
  if (n->kind == COMPARE) meet = ref_promote(t->nodes[n->args[0]].dtype, t->nodes[n->args[1]].dtype);
  for (int k = 0; k < n->n_args; k++) {
    const node *arg = &t->nodes[n->args[k]];
    int is_condition = k == 0 && (n->kind == SELECT || (n->kind == CALL && n->op == 6));
    types[k] = n->kind == CAST ? arg->type : is_condition ? REF_BOOL : compute_type(meet);
    x[k] = tree_value(t, n->args[k], in);
    if (n->kind != CAST) x[k] = arg->kind == NUMBER || arg->kind == PARAM ? ref_from_double(types[k], arg->number)
                                                                          : cast_bits(arg->type, x[k], types[k]);
  }
  switch (n->kind) {
    case CAST: {
      uint64_t rounded = ref_cast(n->dtype, ref_value(types[0], x[0]), ref_dtype_kind(types[0]));
      return cast_bits(n->dtype, rounded, n->type);
    }
    case SELECT: return x[0] ? x[1] : x[2];
    case COMPARE: {
      ref_real a = ref_value(types[0], x[0]), b = ref_value(types[1], x[1]);
      int results[6] = {a < b, a <= b, a > b, a >= b, a == b, a != b};
      return (uint64_t)results[n->op];
    }
    case CALL:
      if (n->op >= N_EXACT) return built_value(n->op, n->type, x);
      return ref_eval(call_ops[n->op], types, x, NULL, n->type).low;
    default: return ref_eval(binary_ops[n->op], types, x, NULL, n->type).low;
  }
}

#endif
