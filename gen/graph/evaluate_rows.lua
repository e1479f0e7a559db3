-- SPDX-License-Identifier: Apache-2.0
--
-- Evaluates the DAG of an op that reduces on numbers, in Lua, over one axis: for examples, and to test the declared properties of a
-- reduction. A value is a number, which is constant along the axis, or a list of numbers.

local dag_of = require "gen.graph.dag.dag"
local evaluate = require "gen.graph.dag.evaluate"
local evaluate_scans = require "gen.graph.evaluate_scans"
local expr = require "gen.graph.body.expr"
local kinds = require "gen.kinds.kinds"

local M = {}

local LANES, CHUNK = 16, 256

-- List of states -> one, in the order of docs/internals/reductions.md. both: of two states
local function combined(states, both)
  local lanes = {}
  for l = 1, math.min(LANES, #states) do
    local runs = {}
    for first = l, #states, CHUNK do
      local run = states[first]
      for k = first + LANES, math.min(first - l + CHUNK, #states), LANES do run = both(run, states[k]) end
      runs[#runs + 1] = run
    end
    while #runs > 1 do
      local joined = {}
      for k = 1, #runs, 2 do joined[#joined + 1] = runs[k + 1] and both(runs[k], runs[k + 1]) or runs[k] end
      runs = joined
    end
    lanes[l] = runs[1]
  end
  for _, half in ipairs { 8, 4, 2, 1 } do
    for l = 1, half do
      if lanes[l + half] then lanes[l] = both(lanes[l], lanes[l + half]) end
    end
  end
  return lanes[1]
end

local dags = setmetatable({}, { __mode = "k" }) -- op -> accumulator -> the DAG of its combine

-- The function of two states, lists of numbers, of a reduction's combine for an accumulator.
function M.combine(model, op, A)
  dags[op] = dags[op] or {}
  local dag = dags[op][A] or expr.combine(model, op, A)
  dags[op][A] = dag
  local n = #dag.inputs // 2
  return function(a, b)
    local values = {}
    for k = 1, n do values[dag.inputs[k].name], values[dag.inputs[n + k].name] = a[k], b[k] end
    return { evaluate.run(model.types, dag, values) }
  end
end

-- For evaluate.check_examples, of an op over axes: a DAG, or in its place a table with the outputs' types; and a function (DAG or table,
-- values of operands by name) -> results.
function M.of(model, op, K)
  if not kinds.of(op).has_body then return evaluate_scans.of(model, op, K) end
  local dag = expr.op_dag(model, op, K)
  return dag, function(of, values) return M.run(model, of, values) end
end

local function at(value, k) return type(value) == "table" and value[k] or value end

-- The outputs of the DAG of expr.op_dag, for inputs (lists, or numbers for all of their elements) and params by name; nil where one is no
-- value of its type, or a reduction has none of no elements.
function M.run(model, dag, values)
  local types, result, count = model.types, {}, 0
  for _, node in ipairs(dag.inputs) do
    local given = values[node.name]
    count = math.max(count, type(given) == "table" and #given or 1)
  end
  local function map(f, is_element)
    if not is_element then return f(1) end
    local list = {}
    for k = 1, count do
      list[k] = f(k)
      if list[k] == nil then return nil end
    end
    return list
  end
  for _, node in ipairs(dag_of.order(dag.outputs)) do
    local args, is_element = {}, node.op == "input"
    for k, arg in ipairs(node.args) do
      args[k] = result[arg]
      is_element = is_element or type(args[k]) == "table"
    end
    if node == dag.index then
      result[node] = map(function(k) return k - 1 end, true)
    elseif node.op == "param" and node.name == "count" then
      result[node] = count
    elseif node.op == "input" or node.op == "param" then
      local given = values[node.name] or error("bug: no value of " .. node.name)
      result[node] = map(function(k) return evaluate.value_of(at(given, k), types.by_name[node.type]) end, is_element)
    elseif node.op == "reduce" then
      local states, part = {}, 1
      for k = 1, count do
        states[k] = {}
        for p, arg in ipairs(args) do states[k][p] = at(arg, k) end
      end
      for p, other in ipairs(node.group or {}) do part = other == node and p or part end
      local total = combined(states, M.combine(model, node.reducer, node.accumulator or node.type))
      result[node] = total and total[part] or not total and node.reducer.reducer.empty or nil
    elseif node.op == "scan" then
      local _, run = evaluate_scans.of(model, node.reducer, node.type)
      result[node] = run(nil, { [node.reducer.inputs[1].name] = args[1] })
    else
      result[node] = map(function(k)
        local of = {}
        for p = 1, #args do of[p] = at(args[p], k) end
        return evaluate.apply(node, of, types)
      end, is_element)
    end
    if result[node] == nil then return nil end
  end
  local list = {}
  for k, node in ipairs(dag.outputs) do list[k] = result[node] end
  return table.unpack(list)
end

return M
