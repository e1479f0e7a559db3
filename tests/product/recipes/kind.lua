-- SPDX-License-Identifier: Apache-2.0
--
-- A throwaway kind of op, for t330-recipes: "ranged", ops of an integer that know the largest number of its dtype, a parameter of
-- their kernels that the runtime gives. Their results are f64 whatever the integer.

return {
  new = {
    ["gen/kinds/ranged.lua"] = [==[
-- SPDX-License-Identifier: Apache-2.0
--
-- The kind ranged (`ranged = true`): of one integer. A body has one more name, `largest`, the largest number of its dtype. It is
-- computed in f64, which the result is.

local elementwise = require "gen.kinds.elementwise"

local M = {}

M.name, M.mark, M.schema = "ranged", "ranged", { ranged = "boolean" }
M.has_body, M.may_alias = true, true
M.only_cpu = true
M.own_params = { "largest" }

function M.failure(_, is_builtin)
  return not is_builtin and "ranged: only the library's own ops may ask for the range of a dtype" or nil
end

function M.declare(op) op.ranged = true end

-- What is wrong with the op, or nil.
function M.check(op) return #op.inputs ~= 1 and "what is ranged has one input" or nil end

-- The dtype of the output.
function M.result() return "f64" end

-- Why it is no part of an expression.
function M.refusal() return "it depends on the dtype of its operand; call it by itself" end

function M.compute_type(_, op, T) return elementwise.is_listed(op, T) and "f64" or nil end

function M.promotion() return "COMMON" end

function M.add_dtypes(_, _, wanted) wanted.f64 = true end

return M
]==],
    ["runtime/core/kinds/kind_ranged.c"] = [==[
/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_ranged.c: ops of one integer that have, behind their parameters, the largest number of its dtype. All in f64. */
#include <string.h>

#include "core/kinds/elementwise.h"
#include "core/op/decide.h"

extern const qn_kind qn_kind_ranged;

static quern_status resolve_ranged(const qn_builtin *builtin, const uint8_t *dtypes, qn_signature *signature) {
  uint8_t promoted;
  quern_status status = qn_resolve_promoted(builtin, dtypes, &promoted);
  if (status) return status;
  qn_signature_begin(signature, builtin->heavy, 1);
  signature->param = QN_F64;
  return qn_resolve_elements(builtin, dtypes, promoted, QN_F64, QN_F64, signature);
}

static void bind_largest(const qn_decision *decision, qn_params *params) {
  const qn_dtype_info *dtype = &qn_dtype_infos[decision->dtypes[0]];
  const double largest = (double)(~(uint64_t)0 >> (64 - dtype->bits + (dtype->code == kDLInt)));
  memcpy(&params->slot[decision->called->builtin->info.n_params], &largest, sizeof largest);
}

static quern_status decide_ranged(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                                  int needs_data, qn_decision *decision) {
  quern_status status = qn_elementwise_decide(op, in, out, call, needs_data, decision);
  return status ? status : qn_decide_convert(op->info, decision, call, &decision->params);
}

const qn_kind qn_kind_ranged = {.name = "ranged", .n_own_params = 1, .resolve = resolve_ranged,
                                .result = qn_elementwise_result, .infer = qn_elementwise_infer, .decide = decide_ranged,
                                .bind = bind_largest};
]==],
    ["dsl/ranged.lua"] = [==[
-- SPDX-License-Identifier: Apache-2.0
--
-- Ops of an integer that know the range of its dtype: `ranged = true`. A body has the name `largest` beside its input.

op "fraction" {
  doc    = "x as a fraction of the largest number of its dtype.",
  inputs = "x",
  ranged = true,
  dtypes = { "i8", "i16", "i32", "u8", "u16", "u32" },
  body   = [[ x / largest ]],
  examples = { { x = 51, largest = 255, y = 0.2 } },
}
]==],
  },
  edits = {
    ["gen/kinds/kinds.lua"] = { { after = [[M.list = { require "gen.kinds.reduction",]], text = [[ require "gen.kinds.ranged",]] } },
  },
}
