/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_call: the library's ops on any descriptors: call_check.h. The first bytes choose the op. */
#include "call_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  quern_op *op = NULL;
  rng r;
  rng_from(&r, bytes, size);
  REQUIRE(quern_op_at(NULL, (int32_t)rng_below(&r, (uint64_t)quern_op_count(NULL)), &op) == QUERN_OK, "%s", quern_last_error());
  fuzz_one_call(&r, op, NULL);
  quern_op_release(op);
  return 0;
}
