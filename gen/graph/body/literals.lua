-- SPDX-License-Identifier: Apache-2.0
--
-- Expressions of literals alone, as scope.lua's methods. Such an expression is a literal itself: a weak number or a constant condition.
-- A call is computed by the op's body, in i64 if all arguments are integers and the op takes i64, else in f64. At run time the kernels
-- do the same: runtime/lang/typing/typing_literals.c calls them.

local arithmetic = require "gen.base.arithmetic"
local evaluate = require "gen.graph.dag.evaluate"
local kinds = require "gen.kinds.kinds"
local op_types = require "gen.graph.body.op_types"
local primitives = require "gen.graph.dag.primitives"
local scope = require "gen.graph.body.scope"
local weak_of = require "gen.graph.body.weak"

local Scope, node_of = scope.Scope, scope.node_of

-- Whether the value is a constant condition, and whether it holds.
local function constant_condition(value)
  local node = not weak_of.is_weak(value) and node_of(value)
  if not node or node.op ~= "const" or node.type ~= "bool" then return false end
  return true, node.value ~= 0
end

function Scope.constant_condition(_, value) return constant_condition(value) end

function Scope:given_condition(holds) return self.state.dag:constant("bool", holds and 1 or 0) end

local COMPARE = {
  ["=="] = function(a, b) return a == b end, ["!="] = function(a, b) return a ~= b end,
  ["<"] = function(a, b) return a < b end, ["<="] = function(a, b) return a <= b end,
  [">"] = function(a, b) return a > b end, [">="] = function(a, b) return a >= b end,
}

-- The comparison of two literals: a condition; nil: they are none.
function Scope:literal_compare(op, a, b)
  local is_p, p = constant_condition(a)
  local is_q, q = constant_condition(b)
  if is_p and is_q then return self:given_condition(COMPARE[op](p and 1 or 0, q and 1 or 0)) end
  if not a.weak or not b.weak then return nil end
  local are_whole = math.type(a.weak) == "integer" and math.type(b.weak) == "integer" and not a.is_pattern and not b.is_pattern
  if not are_whole then a, b = weak_of.as_float(a), weak_of.as_float(b) end
  return self:given_condition(COMPARE[op](a.weak, b.weak))
end

-- "and", "or", "xor" (a primitive's name) of two constant conditions; nil: they are none.
function Scope:literal_logic(op, a, b)
  local is_p, p = constant_condition(a)
  local is_q, q = constant_condition(b)
  if not is_p or not is_q then return nil end
  if op == "xor" then return self:given_condition(p ~= q) end
  return self:given_condition(op == "and" and p and q or op == "or" and (p or q))
end

-- The number that a condition chooses of two; nil: these are no literals.
function Scope.literal_choice(_, condition, yes, no)
  local is_constant, holds = constant_condition(condition)
  if not is_constant or not yes.weak or not no.weak then return nil end
  local chosen = holds and yes or no
  if weak_of.is_float(yes) ~= weak_of.is_float(no) then chosen = weak_of.as_float(chosen) end
  return chosen
end

---------------------------------------------------------------------------------------------------- calls

-- Whether values are literals, and whether all numbers among them are integers.
-- takes_condition(k): whether argument k is a condition
local function literals(values, takes_condition)
  local are_whole = true
  for k, value in ipairs(values) do
    if not value.weak and not (takes_condition(k) and constant_condition(value)) then return nil end
    if value.weak and not takes_condition(k) and math.type(value.weak) == "float" then are_whole = false end
  end
  return true, are_whole
end

-- A number of a literal for an argument of a type.
local function number_for(value, t)
  if t.kind == "bool" then
    local is_constant, holds = constant_condition(value)
    if not is_constant then holds = value.weak ~= 0 end
    return holds and 1 or 0
  end
  if t.kind == "float" then return weak_of.as_float(value).weak end
  return value.weak
end

-- A result: a number of a dtype, or a condition.
function Scope:literal_result(number, dtype)
  if dtype == "bool" then return self:given_condition(number ~= 0) end
  return { weak = number }
end

-- The graph of an op in a type, once for each. A body that comes to call itself so is refused.
function Scope:literal_graph(op, K, node)
  local model = self.state.model
  model.literal_graphs = model.literal_graphs or setmetatable({}, { __mode = "k" })
  local of_op = model.literal_graphs[op] or {}
  model.literal_graphs[op] = of_op
  if of_op[K] == false then self:fail(node, "%s calls itself", op.name) end
  if not of_op[K] then
    of_op[K] = false
    local dag, message = self:op_dag(op, K)
    of_op[K] = dag
    if not dag then self:fail(node, "%s", message) end
  end
  return of_op[K]
end

-- Computes an op on literals; which: of its outputs.
function Scope:compute_literal(op, values, D, which, node)
  local types = self.state.types
  local dag, numbers = self:literal_graph(op, op_types.compute_type(types, op, D), node), {}
  self.state.steps = self.state.steps + #dag.dag.nodes
  self:step(node)
  for k, input in ipairs(op.inputs) do numbers[input.name] = number_for(values[k], types.by_name[dag.inputs[k].type]) end
  for k, param in ipairs(op_types.own_params(op)) do
    local value, t = values[#op.inputs + k] or { weak = param.value }, types.by_name[dag.params[k].type]
    local number = t.kind == "float" and weak_of.as_float(value).weak or weak_of.saturated(t, value.weak, value.is_pattern)
    if not number then self:fail(node, "%s: parameter %s is %s, which is no %s", op.name, param.name, value.weak, t.name) end
    numbers[param.name] = number
  end
  return (select(which, evaluate.run(types, dag, numbers)))
end

-- A call of an op on literals alone: a literal; nil: it is none.
function Scope:literal_op(op, values, which, node)
  local types, n_in = self.state.types, #op.inputs
  if n_in == 0 or not kinds.is_formula(op) or self.state.exact then return nil end
  local are_literals, are_whole = literals(values, function(k) return k <= n_in and op.inputs[k].type == "bool" end)
  if not are_literals then return nil end
  local is_whole = are_whole and not op_types.is_floating(types, op) and op_types.is_listed(op, "i64")
  for k = 1, is_whole and n_in or 0 do
    if (op.fraction_in or 0) >> (k - 1) & 1 == 1 and values[k].weak < 0 and not values[k].is_pattern then is_whole = false end
  end
  local D = is_whole and "i64" or "f64"
  local fixed = op.outputs[which].type
  if not op_types.compute_type(types, op, D) then self:fail(node, "%s does not take %s", op.name, D) end
  local result = self:compute_literal(op, values, D, which, node)
  if is_whole and not fixed and op_types.compute_type(types, op, "f64") then
    local float = self:compute_literal(op, values, "f64", which, node)
    if float >= 0x1p63 or float < -0x1p63 then self:fail(node, "the number does not fit 64 bits") end
  end
  return self:literal_result(result, fixed or D)
end

-- A call of a primitive on literals alone: a literal; nil: it is none.
function Scope:literal_primitive(name, values, node)
  local types, func = self.state.types, primitives.functions[name]
  if not func.takes or self.state.exact then return nil end
  local are_literals, are_whole = literals(values, function() return false end)
  if not are_literals or #values ~= func.arguments then return nil end
  local is_whole = are_whole and func.takes ~= "float"
  if is_whole and func.takes == "whole" then return values[1] end
  if not is_whole and func.takes == "integer" then self:fail(node, "%s of f64: it takes integers", name) end
  local T, numbers = is_whole and "i64" or "f64", {}
  for k, value in ipairs(values) do numbers[k] = number_for(value, types.by_name[T]) end
  local t = types.by_name[T]
  local result
  if func.fold and is_whole then
    result = func.fold(numbers[1], numbers[2], t)
  else
    local f = type(func.evaluate) == "table" and func.evaluate[t.kind] or func.evaluate
    result = f(numbers[1], numbers[2], numbers[3], { type = t, of = t, types = types })
  end
  local to = types.by_name[func.result or T]
  return self:literal_result(arithmetic.normal(result, to), to.name)
end

return Scope
