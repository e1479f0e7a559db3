-- SPDX-License-Identifier: Apache-2.0
--
-- Calls of reductions: scope.lua's method for NAME(x) in the body of a row op. The value of a reduction is a node "reduce", with `reducer`,
-- the op of the reduction, over the element's state; the reduction's finish is inlined on it. A state of several parts has a node for each
-- part, over the same arguments; `group` is the list of these nodes. `index` of a node: which axes, in a host's expression.

local kinds = require "gen.kinds.kinds"
local op_types = require "gen.graph.body.op_types"
local scope = require "gen.graph.body.scope"
local weak_of = require "gen.graph.body.weak"

local M = {}

local Scope, node_of, dtype_of, is_weak = scope.Scope, scope.node_of, scope.dtype_of, weak_of.is_weak

-- The body for a dtype: its own, its kind's, or that for all.
local function body_for(types, bodies, dtype)
  local t = types.by_name[dtype]
  return bodies[dtype] or bodies[t.kind == "float" and "floating" or t.kind] or bodies.any
end

-- The parts of a reduction's state for an accumulator: list of { name, type }; nil: it has no names for them.
local function parts_of(op, A)
  if not op.reducer.parts then return nil end
  local parts = {}
  for k, part in ipairs(op.reducer.parts) do parts[k] = { name = part.name, type = part.type == "T" and A or part.type } end
  return parts
end

-- One of a reduction's bodies on nodes. T: the dtype of its values; parts: what it assigns, or nil: it has a result
function Scope:reduction_body(op, field, T, env, node, parts)
  local body = body_for(self.state.types, op.reducer[field], T)
  if not body then self:fail(node, "%s%s is missing for %s", (self.owner or op) == op and "" or op.name .. ": ", field, T) end
  local inner = self:of_body(op, body, env, T)
  inner.keeps_dtypes = false
  local count = self.state.count
  self.state.count = nil -- the body of a reduction does not reduce
  local result = inner:run_body(parts)
  self.state.count = count
  if parts then return result end
  return is_weak(result) and inner:strong(result, T, node) or result
end

-- Whether a node is constant along the axes.
local function is_row(node, known)
  if known[node] == nil then
    known[node] = node.op ~= "input"
    for _, arg in ipairs(node.op ~= "reduce" and node.args or {}) do known[node] = known[node] and is_row(arg, known) end
  end
  return known[node]
end

-- Such a node as one of elements, the same at each place, so that it can be reduced: a derivative does so, of 1. other: a number that
-- the node is not; nil: 0
function Scope:spread(node, other)
  local dag, t = self.state.dag, self.state.types.by_name[node.type]
  local is_there = dag:make("ge", "bool", { self.state.index, dag:constant("i64", 0) })
  return dag:make("select", node.type, { is_there, node, dag:constant(node.type, other or t.kind == "float" and 0.0 or 0) })
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
  local parts, read = parts_of(op, A), { count = self.state.count }
  if parts then
    local lifted = self:reduction_body(op, "lift", node_of(value).type, { x = node_of(value), index = self.state.index }, node, parts)
    local group, args = {}, {}
    for k, part in ipairs(lifted) do args[k] = node_of(part) end
    for k, part in ipairs(parts) do
      group[k] = self.state.dag:node("reduce", part.type, args, { index = self.state.axes, name = string.format("%s %s %d", op.name, A, k), reducer = op })
      group[k].group, group[k].accumulator = group, A
      read["a." .. part.name] = group[k]
    end
  elseif op.reducer.lift then
    state = node_of(self:cast(self:reduction_body(op, "lift", node_of(value).type, { x = node_of(value) }, node), A))
  else
    state = node_of(self:cast(node_of(value), A))
  end
  if not parts then
    if self.state.spreads and is_row(state, {}) then state = self:spread(state) end
    state = self.state.dag:node("reduce", A, { state }, { index = self.state.axes, name = op.name, reducer = op })
    read.a = state
  end
  local result = kinds.of(op).result_dtype(types, op, D)
  if op.reducer.finish then
    state = self:reduction_body(op, "finish", A, read, node)
  end
  state = node_of(self:cast(state, types.by_name[result].compute))
  self:note_row_call(op, state, { node_of(value) }, types.by_name[D].compute)
  return self:typed(state, result)
end

-- A call of an op that scans along the axes `state.axes`: a node "scan" over its argument in the accumulator's dtype, with `reducer`, the op;
-- value: 1, from the end, and 2, exclusive.
function Scope:call_scan(op, values, node)
  local types, axes = self.state.types, node.axes
  local value = self:settle(values[1], node)
  local D = dtype_of(value)
  if not op_types.compute_type(types, op, D) then self:fail(node, "%s does not take %s", op.name, D) end
  if op_types.is_floating(types, op) then D = types.by_name[D].floating end
  local A = kinds.of(op).accumulator(types, op, D)
  local arg, way = node_of(self:cast(node_of(self:promoted(value, D)), A)), (axes.reverse or 0) + 2 * (axes.exclusive or 0)
  local made = self.state.dag:node("scan", A, { arg }, { value = way, index = self.state.axes, name = op.name, reducer = op })
  local result = kinds.of(op).result_dtype(types, op, D)
  return self:typed(node_of(self:cast(made, types.by_name[result].compute)), result)
end

-- Notes a call that reduces, for derivatives: its result, and the nodes of its inputs and parameters. T: what it computes in
function Scope:note_row_call(op, result, args, T)
  local calls = self.state.row_calls
  for _, arg in ipairs(args) do
    if arg == result then return end -- an op that returns its input is none
  end
  if calls then calls[#calls + 1] = { op = op, result = result, args = args, T = T, axes = self.state.axes } end
end

-- The DAG of the state of an element of a dtype that is computed in itself: inputs x and index, numbers of these; with `accumulator`. nil:
-- the reduction does not take it.
function M.lift(state, op, dtype)
  local A = kinds.of(op).accumulator(state.types, op, dtype)
  local x = state.dag:node("input", dtype, {}, { index = 1, name = "x" })
  local index = state.dag:node("input", "i64", {}, { index = 2, name = "index" })
  local root = setmetatable({ state = state, env = {}, T = dtype, default_type = dtype, trusted = op.builtin }, Scope)
  local outputs, parts = { x }, parts_of(op, A)
  if op.reducer.lift then
    if not body_for(state.types, op.reducer.lift, dtype) then return nil end
    local lifted = root:reduction_body(op, "lift", dtype, { x = x, index = index }, { at = 1 }, parts)
    outputs = parts and lifted or { lifted }
  end
  for k, value in ipairs(outputs) do outputs[k] = node_of(root:cast(node_of(value), parts and parts[k].type or A)) end
  return { dag = state.dag, inputs = { x, index }, params = {}, outputs = outputs, accumulator = A }
end

-- The DAG of a reduction's combine for an accumulator: inputs a and b.
function M.combine(state, op, A)
  local inputs, env, parts = {}, {}, parts_of(op, A)
  for _, name in ipairs { "a", "b" } do
    for _, part in ipairs(parts or { { type = A } }) do
      local k = #inputs + 1
      inputs[k] = state.dag:node("input", part.type, {}, { index = k, name = parts and name .. "_" .. part.name or name })
      env[parts and name .. "." .. part.name or name] = inputs[k]
    end
  end
  local body = body_for(state.types, op.reducer.combine, A)
  local root = setmetatable({ state = state, env = env, T = A, default_type = A, trusted = op.builtin, source = body, owner = op }, Scope)
  local result = root:reduction_body(op, "combine", A, env, { at = 1 }, parts)
  if parts then
    for k, part in ipairs(result) do result[k] = node_of(part) end
    return { dag = state.dag, inputs = inputs, params = {}, outputs = result, type = A, files = state.files, first_output = "out",
             parts = parts }
  end
  if result.type ~= A then root:fail({ at = 1 }, "combine gives %s, expected %s", result.type, A) end
  return { dag = state.dag, inputs = inputs, params = {}, outputs = { result }, type = A, files = state.files, first_output = "out" }
end

return M
