-- SPDX-License-Identifier: Apache-2.0
--
-- Calls of reductions: scope.lua's method for NAME(x) in the body of a row op. The value of a reduction is a node "reduce", with `reducer`,
-- the op of the reduction, over the element's state; the reduction's finish is inlined on it.

local kinds = require "gen.kinds.kinds"
local op_types = require "gen.graph.op_types"
local scope = require "gen.graph.scope"
local weak_of = require "gen.graph.weak"

local M = {}

local Scope, node_of, dtype_of, is_weak = scope.Scope, scope.node_of, scope.dtype_of, weak_of.is_weak

-- The body of a list of bodies for a dtype.
local function body_for(types, bodies, dtype)
  local t = types.by_name[dtype]
  return bodies[dtype] or bodies[t.kind == "float" and "floating" or t.kind] or bodies.any
end

-- One of a reduction's bodies on nodes. T: the dtype of its values
function Scope:reduction_body(op, field, T, env, node)
  local body = body_for(self.state.types, op.reducer[field], T)
  if not body then self:fail(node, "%s has no %s for %s", op.name, field, T) end
  local inner = self:of_body(op, body, env, T)
  inner.keeps_dtypes = false
  local result = inner:run_body()
  return is_weak(result) and inner:strong(result, T, node) or result
end

function Scope:call_reduction(op, values, node)
  local types = self.state.types
  if #values ~= 1 then self:fail_as("syntax", node, "%s takes 1 argument, got %d", op.name, #values) end
  if not self.state.count then self:fail_as("syntax", node, "%s reduces, which only the body of a row does", op.name) end
  local value = self:settle(values[1], node)
  local D = dtype_of(value)
  local K = op_types.compute_type(types, op, D)
  if not K then self:fail(node, "%s does not take %s", op.name, D) end
  if op_types.is_floating(types, op) then D = types.by_name[D].floating end
  value = self:promoted(value, D)
  local A = kinds.of(op).accumulator(types, op, D)
  local state
  if op.reducer.lift then
    state = node_of(self:cast(self:reduction_body(op, "lift", node_of(value).type, { x = node_of(value) }, node), A))
  else
    state = node_of(self:cast(node_of(value), A))
  end
  state = self.state.dag:node("reduce", A, { state }, { name = op.name, reducer = op })
  local result = kinds.of(op).result_dtype(types, op, D)
  if op.reducer.finish then
    state = self:reduction_body(op, "finish", A, { a = state, count = self.state.count }, node)
  end
  return self:typed(node_of(self:cast(state, types.by_name[result].compute)), result)
end

-- The DAG of a reduction's combine for an accumulator: inputs a and b.
function M.combine(state, op, A)
  local inputs, env = {}, {}
  for k, name in ipairs { "a", "b" } do
    inputs[k] = state.dag:node("input", A, {}, { index = k, name = name })
    env[name] = inputs[k]
  end
  local body = body_for(state.types, op.reducer.combine, A)
  local root = setmetatable({ state = state, env = env, T = A, default_type = A, trusted = op.builtin, source = body }, Scope)
  local result = root:reduction_body(op, "combine", A, env, { at = 1 })
  if result.type ~= A then root:fail({ at = 1 }, "%s: combine gives %s, expected %s", op.name, result.type, A) end
  return { dag = state.dag, inputs = inputs, params = {}, outputs = { result }, type = A, files = state.files, first_output = "out" }
end

return M
