-- SPDX-License-Identifier: Apache-2.0
--
-- Evaluates a DAG on numbers, in Lua: for the examples of a spec, which need no compiler, and for calls with literals only.
-- Each operation is rounded once, to its type, so the bits are those of kernels.

local arithmetic = require "gen.base.arithmetic"
local number = require "gen.base.number"
local dag_of = require "gen.graph.dag.dag"
local kinds = require "gen.kinds.kinds"
local primitives = require "gen.graph.dag.primitives"

local M = {}

local function apply(node, v, types)
  local t, row = types.by_name[node.type], primitives.of[node.op]
  if node.op == "const" then return t.kind == "float" and number.float_value(node.value, t) or node.value end
  if row.fold and t.kind ~= "float" then return arithmetic.normal(row.fold(v[1], v[2], t), t) end
  local f = type(row.evaluate) == "table" and row.evaluate[t.kind] or row.evaluate
  local at = { type = t, of = types.by_name[node.args[1].type], node = node, types = types }
  return arithmetic.normal(f(v[1], v[2], v[3], at), t)
end

-- A number as a value of a type, or nil if it is none.
local function value_of(x, t)
  if t.kind == "bool" then return x == 0 and 0 or x == 1 and 1 or nil end
  if t.kind == "float" then return number.rounded(x * 1.0, t) end -- not + 0.0: -0 stays
  if x == math.huge or x == -math.huge then return arithmetic.to_integer(x, t) end
  local integer = math.tointeger(x)
  if not integer or (integer < 0 and not t.signed) then return nil end -- wrapped to 64 bits it would be itself
  return number.wrap(integer, t.bits, t.signed) == integer and integer or nil
end

M.apply, M.value_of = apply, value_of

-- The outputs of a DAG, as many results, for inputs and params given by name; nil where one of these is no value of its type.
-- sign_of: input node -> a number with the sign that operations see in it, or nil
function M.run(types, dag, values, sign_of)
  local result = {}
  for _, node in ipairs(dag_of.order(dag.outputs)) do
    if node.op == "input" or node.op == "param" then
      result[node] = value_of(values[node.name] or error("bug: no value of " .. node.name), types.by_name[node.type])
      if result[node] == nil then return nil end
    else
      local args = {}
      for k, arg in ipairs(node.args) do args[k] = result[arg] end
      local sign = sign_of and dag_of.looks_at_sign(node.op) and sign_of[node.args[#args]]
      args[#args] = sign or args[#args]
      result[node] = apply(node, args, types)
    end
  end
  local list = {}
  for k, node in ipairs(dag.outputs) do list[k] = result[node] end
  return table.unpack(list)
end

local OTHERS = { 0.5, -2.0, 0.0 }

-- Whether some output of a DAG depends on the sign of a NaN in an input. Tried with a few values of the others.
function M.sees_signs(types, dag)
  local seen = {}
  for _, node in ipairs(dag_of.order(dag.outputs)) do
    local last = node.args[#node.args]
    if dag_of.looks_at_sign(node.op) and dag_of.is_operand(last) then seen[last] = true end
  end
  for input in pairs(seen) do
    for _, other in ipairs(OTHERS) do
      local values = {}
      for _, list in ipairs { dag.inputs, dag.params } do
        for _, node in ipairs(list) do values[node.name] = types.by_name[node.type].kind == "float" and other or 0 end
      end
      values[input.name] = 0 / 0
      local plus, minus = { M.run(types, dag, values, { [input] = 1.0 }) }, { M.run(types, dag, values, { [input] = -1.0 }) }
      for k, x in ipairs(plus) do
        if x ~= minus[k] and (x == x or minus[k] == minus[k]) then return true end
      end
    end
  end
  return false
end

-- The distance of two floats in units in the last place of `wanted`.
local function ulps_apart(got, wanted, t)
  if got ~= got or wanted ~= wanted then return got ~= got and wanted ~= wanted and 0 or math.huge end
  if got == wanted then return arithmetic.is_negative(got) == arithmetic.is_negative(wanted) and 0 or math.huge end
  if math.abs(got) == math.huge or math.abs(wanted) == math.huge then return math.huge end
  local exponent = math.max((number.f64_bits(math.abs(wanted)) >> 52) - 1023, 2 - (1 << (t.exponent - 1)))
  return math.abs(got - wanted) / 2.0 ^ (exponent - t.digits + 1)
end

-- Checks the examples of an op in one compute type. run(dag, values): as M.run, or nil: that. Returns a list of sentences about those that
-- do not hold.
function M.check_examples(types, op, dag, K, run)
  run = run or function(...) return M.run(types, ...) end
  local wrong = {}
  local compare
  function compare(k, name, got, wanted, t)
    if type(got) == "table" then
      for at, value in ipairs(got) do compare(k, name, value, type(wanted) == "table" and wanted[at] or wanted, t) end
      return
    end
    local goal = value_of(wanted, t)
    if goal == nil then return end
    local bound = t.kind == "float" and (op.ulp[K] or 0.5) + 0.5 or 0
    local distance = t.kind == "float" and ulps_apart(got, goal, t) or got == goal and 0 or math.huge
    if distance > bound then
      local is_float = t.kind == "float"
      wrong[#wrong + 1] = string.format("example %d in %s gives %s%s, not %s%s", k, K, #op.outputs > 1 and name .. " = " or "",
        is_float and number.hex(got) or tostring(got), is_float and number.hex(goal) or tostring(goal),
        is_float and string.format(" (%.9g, not %.9g)", got, goal) or "")
    end
  end
  for k, example in ipairs(op.examples) do
    local values = {}
    for _, input in ipairs(op.inputs) do values[input.name] = example[input.name] end
    for _, param in ipairs(op.params) do values[param.name] = example[param.name] or param.value end
    local complete, missing = true, nil
    for _, name in ipairs(not kinds.of(op).has_stages and kinds.of(op).names or {}) do
      values[name] = example[name]
      complete = complete and values[name] ~= nil
    end
    for _, input in ipairs(op.inputs) do complete = complete and values[input.name] ~= nil end
    for _, output in ipairs(op.outputs) do missing = missing or example[output.name] == nil and output.name or nil end
    if not complete or missing then
      wrong[#wrong + 1] = string.format("example %d names not all of its inputs and '%s'", k, missing or op.outputs[1].name)
    else
      local got = { run(dag, values) }
      for at, output in ipairs(got[1] ~= nil and op.outputs or {}) do
        compare(k, output.name, got[at], example[output.name], types.by_name[dag.outputs[at].type])
      end
    end
  end
  return wrong
end

return M
