/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_fused: expressions that are valid, on tensors of any dtypes and layouts: the bytes choose the tree and the operands
 * (random_trees.h). Interpreted, and, of some, compiled, they must give the bits of the plainest evaluation, element by element
 * (tree_values.h), and write nothing else. */
#include "fuzz.h"
#include "tree_values.h"

static void check_way(tree_case *c, int32_t jit) {
  quern_op *op = NULL;
  const tree *t = &c->t;
  REQUIRE(quern_op_compile(fuzz_ctx(jit), t->text, &op) == QUERN_OK, "%s\n%s", t->text, quern_last_error());
  REQUIRE(quern_op_call(op, c->n_used, c->ins, t->n_out, c->outs, &c->call) == QUERN_OK, "%s\n%s", t->text, quern_last_error());
  quern_op_release(op);
  for (int k = 0; k < t->n_out; k++) {
    const node *n = &t->nodes[t->out[k]];
    const ref_dtype d = c->out[k].d;
    int64_t index[3] = {0};
    do {
      uint64_t x[MAX_INPUTS] = {0};
      for (int i = 0; i < t->n_in; i++) x[i] = ref_get(t->in[i], ref_broadcast_address(&c->in[i].t, c->ndim, index));
      const uint64_t value = tree_value(t, t->out[k], x), got = ref_get(d, ref_address(c->outs[k], index));
      const uint64_t wanted = ref_cast(d, ref_value(n->type, value), ref_dtype_kind(n->type));
      REQUIRE(got == wanted, "%s\n%s: output %d at (%d, %d): %" PRIx64 ", not %" PRIx64, t->text,
              jit == QUERN_JIT_OFF ? "interpreted" : "compiled", k, (int)index[0], (int)index[1], got, wanted);
    } while (ref_next_index(c->ndim, c->shape, index));
    operand_forgive(&c->out[k]);
    REQUIRE(operand_same(&c->out[k]), "%s\nwrote beside output %d", t->text, k);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static tree_case c;
  rng r;
  rng_from(&r, bytes, size);
  const int salt = (int)rng_below(&r, 256);
  tree_case_make(&c, &r, salt);
  if (c.shape[0] * c.shape[1] <= 3000) {
    for (int k = 0; k < c.t.n_out; k++) operand_save(&c.out[k]);
    check_way(&c, QUERN_JIT_OFF);
    if (salt % 16 == 1) check_way(&c, QUERN_JIT_SYNC);
  }
  tree_case_free(&c);
  return 0;
}
