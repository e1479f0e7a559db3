-- SPDX-License-Identifier: Apache-2.0
--
-- The derivative of a graph of units through calls of ops that reduce. An adjoint is the derivative of the result by a node, summed over
-- the results of the row. Adjoints are computed backwards from call to call: the backward op of a called op gives the adjoints of the
-- inputs from the adjoint of the result. Between the calls, and from row values to the elements that read them, the derivative is
-- computed forwards, as in derive.lua: of `c ? f(x) : g(x)` only the branch taken counts. The adjoint of a row value is the sum of
-- the contributions of its row's elements. Knows no C. runtime/lang/typing/derive.c takes the same steps.

local dag_of = require "gen.graph.dag.dag"
local expr = require "gen.graph.body.expr"

local M = {}

local Rows = {}
Rows.__index = Rows

-- Whether a node is constant along the axes: it depends on no element but through reductions.
function Rows:is_row(node)
  if self.row[node] == nil then
    local is_row = node.op ~= "input"
    for _, arg in ipairs(node.op ~= "reduce" and node.args or {}) do is_row = is_row and self:is_row(arg) end
    self.row[node] = is_row
  end
  return self.row[node]
end

-- Whether a node depends on the one that is differentiated by, through floats.
function Rows:depends(node)
  if self.dependent[node] == nil then
    local depends, is_float = false, self.scope.state.types.by_name[node.type].kind == "float"
    local call = self.call_of[node]
    for k, arg in ipairs(is_float and (call and call.args or node.args) or {}) do
      depends = depends or ((not call or k <= #call.op.inputs) and self:depends(arg))
    end
    self.dependent[node] = depends
  end
  return self.dependent[node]
end

-- Finds the calls between `root` and x, and the row values that elements read.
function Rows:find(root, x)
  local seen = {}
  local function visit(node)
    if seen[node] or not self:depends(node) then return end
    seen[node] = true
    local call = self.call_of[node]
    for k, arg in ipairs(call and call.args or node.args) do
      if not call or k <= #call.op.inputs then
        visit(arg)
        if self:depends(arg) and self:is_row(arg) and (call or not self:is_row(node)) then self.is_target[arg] = true end
      end
    end
    if call then self.is_target[node], self.any = true, true end
  end
  visit(root)
  self.is_target[x] = true
end

function Rows:make(op, a, b) return self.scope.state.dag:make(op, a.type, { a, b }) end

-- The sum over a row of an element's, or a row value's, part of an adjoint.
function Rows:total(part)
  local scope = self.scope
  if self:is_row(part) then return self:make("mul", part, scope:cast(scope.state.count, part.type)) end
  local op = scope.state.model.op_of_name.sum
  local sum = scope:call_reduction(op, { part }, self.at)
  self.made[#self.made + 1] = { op = op, result = sum, args = { part }, T = part.type, axes = self.axes }
  return sum
end

-- Adds what `from` gives to the adjoint of a node. is_element: `from` is one
function Rows:give(node, part, is_element)
  part = self.scope:cast(part, node.type)
  if is_element and self:is_row(node) then part = self:total(part) end
  local sum = self.adjoint[node]
  if not sum then self.nodes[#self.nodes + 1] = node end
  self.adjoint[node] = sum and self:make("add", sum, part) or part
end

-- The contributions of a call to the adjoints of its inputs.
function Rows:through_call(call, adjoint)
  local scope, op = self.scope, call.op
  local model, types = scope.state.model, scope.state.types
  local backward = self.backward_of(model, op)
  if not backward then scope:fail(self.at, "%s has no derivative%s", op.name, op.backward_of and self.no_second or "") end
  local of_name = { grad = self:seed(adjoint, call.T), [op.outputs[1].name] = call.result }
  for k, input in ipairs(op.inputs) do of_name[input.name] = call.args[k] end
  local k = #op.inputs
  for _, param in ipairs(op.params) do
    if not param.role then
      k = k + 1
      of_name[param.name] = call.args[k]
    end
  end
  local is_known = {}
  for _, input in ipairs(backward.by) do is_known[input + 1] = true end
  for j, input in ipairs(op.inputs) do
    if not is_known[j] and self:depends(call.args[j]) then
      scope:fail(self.at, "an op has no derivative by its argument %s", input.name)
    end
  end
  if self.is_trial then
    for _, input in ipairs(backward.by) do
      if self:depends(call.args[input + 1]) then self:give(call.args[input + 1], call.args[input + 1], true) end
    end
    return
  end
  local env, values = { count = scope.state.count, index = scope.state.index }, {}
  for _, operands in ipairs { backward.inputs, backward.params } do
    for _, operand in ipairs(operands) do
      if not operand.role then
        env[operand.name] = of_name[operand.name]
        values[#values + 1] = of_name[operand.name]
      end
    end
  end
  scope.state.axes = call.axes
  local parts = scope:inline(backward, expr.body_of(types, backward, call.T), env, values, call.T, self.at)
  if not backward.assigns then parts = { parts } end
  for which, input in ipairs(backward.by) do
    local arg, part = call.args[input + 1], scope:cast(parts[which], call.T)
    self.made[#self.made + 1] = { op = backward, result = part, args = values, T = call.T, axes = call.axes }
    if self:depends(arg) then self:give(arg, part, true) end
  end
  scope.state.axes = self.axes
end

-- An adjoint in a type.
function Rows:seed(adjoint, type_name)
  if adjoint then return self.scope:cast(adjoint, type_name) end
  return self.scope.state.dag:constant(type_name, 1.0)
end

-- The contributions of a node that is no call to the adjoints of the nodes that it depends on.
function Rows:through_elements(node, adjoint, targets)
  local is_element = not self:is_row(node)
  for _, target in ipairs(targets) do
    if target.id < node.id then
      local seeds = {}
      for _, other in ipairs(targets) do
        if other ~= node then seeds[other] = false end
      end
      seeds[target] = self:seed(adjoint, target.type)
      local part = self.walk(self.scope, seeds):of(node, self.at)
      if part then self:give(target, part, is_element) end
    end
  end
end

-- The derivative of `root` by x, or nil: it does not depend on x. scope: makes the nodes; its state has `row_calls`, the calls that
-- reduce, and count. seed: the adjoint of root, or nil: it is 1; at: where errors are reported. given: is_row (a set of inputs that are row values),
-- walk(scope, seeds) of derive.lua, backward_of, no_second; is_trial: nothing is inlined, an argument stands in for its adjoint
function M.derivative(scope, root, seed, x, at, given)
  local state = scope.state
  local self = setmetatable({ scope = scope, at = at, row = {}, dependent = { [x] = true }, call_of = {}, is_target = {}, adjoint = {},
                              nodes = {}, made = {}, walk = given.walk, backward_of = given.backward_of, no_second = given.no_second,
                              is_trial = given.is_trial }, Rows)
  for node, is_row in pairs(given.is_row or {}) do self.row[node] = is_row or nil end
  local calls = state.row_calls or {}
  for _, call in ipairs(calls) do self.call_of[call.result] = self.call_of[call.result] or call end
  self:find(root, x)
  if not self.any then return given.walk(scope, { [x] = self:seed(seed, x.type) }):of(root, at) end
  local was, targets = state.axes, {}
  state.row_calls = nil
  for _, node in ipairs(dag_of.order { root }) do
    if self.is_target[node] then targets[#targets + 1] = node end
  end
  table.sort(targets, function(a, b) return a.id < b.id end)
  for _, call in ipairs(calls) do
    if self.is_target[call.result] and not self.axes then self.axes = call.axes end
  end
  state.axes = self.axes
  self.nodes[1], self.adjoint[root] = root, seed -- nothing else is given to it
  while true do -- users first
    local at_node, last = nil, 0
    for k, node in ipairs(self.nodes) do
      if node.id > last then at_node, last = k, node.id end
    end
    local node = at_node and table.remove(self.nodes, at_node)
    if not node or node == x then break end
    local adjoint, call = self.adjoint[node], self.call_of[node]
    if call then
      self:through_call(call, adjoint)
    else
      self:through_elements(node, adjoint, targets)
    end
  end
  table.move(self.made, 1, #self.made, #calls + 1, calls) -- for second derivatives
  state.row_calls, state.axes = calls, was
  return self.adjoint[x]
end

return M
