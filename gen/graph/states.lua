-- SPDX-License-Identifier: Apache-2.0
--
-- The bodies of an op that carries states along an axis -> DAGs: a scan with `lift`, `combine` and `finish` (gen/kinds/scan.lua), or an
-- adjoint (gen/kinds/adjoint.lua). A scan without lift and finish has a combine alone.

local expr = require "gen.graph.body.expr"
local kinds = require "gen.kinds.kinds"
local scope = require "gen.graph.body.scope"
local source = require "gen.base.source"

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

-- The state itself, of an op without that body.
local function same(model, operand)
  local state = expr.new_state(model)
  local x = state.dag:node("input", operand.type, {}, { index = 1, name = operand.name })
  return { dag = state.dag, inputs = { x }, params = {}, outputs = { x } }
end

local INDEX = { name = "index", type = "i64" }

-- The states of an op that computes in K: { lift, combine, finish = DAGs, parts = list of { name, type } }. Inputs of lift: the op's, and the place; of
-- combine: the parts of a, then of b; of finish: the parts of a, the op's inputs, the place.
function M.of(model, op, K)
  local combine = expr.combine(model, op, K)
  local parts = combine.parts or { { name = "v", type = K } }
  local lifted, finished = {}, {}
  for k, input in ipairs(op.inputs) do lifted[k] = { name = input.name, type = input.type or K } end
  for k, part in ipairs(parts) do finished[k] = { name = combine.parts and "a." .. part.name or "a", type = part.type } end
  table.move(lifted, 1, #lifted, #finished + 1, finished)
  lifted[#lifted + 1], finished[#finished + 1] = INDEX, INDEX
  local outputs = op.assigns and op.has_states and {} or nil
  for k, output in ipairs(outputs and op.outputs or {}) do outputs[k] = { name = output.name, type = output.type or K } end
  return { parts = parts, combine = combine,
           lift = op.reducer.lift and dag_of_body(model, op, "lift", K, lifted, combine.parts) or same(model, lifted[1]),
           finish = op.reducer.finish and dag_of_body(model, op, "finish", K, finished, outputs) or same(model, finished[1]) }
end

-- An error in the bodies of an op for a dtype that it takes: a message and its kind, or nil.
function M.failure(model, op, K)
  local A = kinds.of(op).accumulator(model.types, op, K)
  local ok, failure = pcall(op.has_states and M.of or expr.combine, model, op, A)
  if ok then return nil end
  if type(failure) ~= "table" then error(failure, 0) end
  if not failure.source then return string.format("%s: %s: %s", op.location, op.name, failure.message), failure.kind or "syntax" end
  return source.message(failure.source, failure.at or 1, string.format("%s: %s", op.name, failure.message)), failure.kind or "syntax"
end

return M
