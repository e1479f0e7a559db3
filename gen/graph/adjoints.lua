-- SPDX-License-Identifier: Apache-2.0
--
-- The bodies of an adjoint (gen/kinds/adjoint.lua) -> DAGs.

local expr = require "gen.graph.expr"
local scope = require "gen.graph.scope"

local M = {}

-- A body of an op on given operands: list of { name, type }. outputs: what it assigns, or nil: it has a result of dtype K
local function dag_of_body(model, op, field, K, operands, outputs)
  local state = expr.new_state(model)
  local inputs, env = {}, {}
  for k, operand in ipairs(operands) do
    inputs[k] = state.dag:node("input", operand.type, {}, { index = k, name = operand.name })
    env[operand.name] = inputs[k]
  end
  local root = setmetatable({ state = state, env = env, T = K, default_type = K, trusted = op.builtin, owner = op }, scope.Scope)
  local result = root:reduction_body(op, field, K, env, { at = 1 }, outputs)
  local list = outputs and result or { root:cast(result, K) }
  for k, value in ipairs(list) do list[k] = scope.node_of(value) end
  return { dag = state.dag, inputs = inputs, params = {}, outputs = list }
end

-- Of an adjoint that computes in K: { lift, combine, finish = DAGs, parts = list of { name, type } }. Inputs of lift: the op's; of combine:
-- the parts of a, then of b; of finish: the parts of a, the op's inputs, the place.
function M.of(model, op, K)
  local combine = expr.combine(model, op, K)
  local inputs, finished = {}, {}
  for k, input in ipairs(op.inputs) do inputs[k] = { name = input.name, type = input.type or K } end
  for k, part in ipairs(combine.parts) do finished[k] = { name = "a." .. part.name, type = part.type } end
  table.move(inputs, 1, #inputs, #finished + 1, finished)
  finished[#finished + 1] = { name = "index", type = "i64" }
  return { parts = combine.parts, combine = combine, lift = dag_of_body(model, op, "lift", K, inputs, combine.parts),
           finish = dag_of_body(model, op, "finish", K, finished) }
end

return M
