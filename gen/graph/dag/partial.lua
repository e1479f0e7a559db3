-- SPDX-License-Identifier: Apache-2.0
--
-- Partial evaluation: the DAG of an op, with one parameter replaced by a number. Comparisons of two numbers are folded, and branches
-- never taken are dropped. Only exact operations are folded, so results have the same bits as those of the op's own DAG.

local arithmetic = require "gen.base.arithmetic"
local dag_of = require "gen.graph.dag.dag"
local number = require "gen.base.number"

local M = {}

local COMPARED = {
  eq = function(x, y) return x == y end, ne = function(x, y) return x ~= y end,
  lt = arithmetic.less, gt = function(x, y, t) return arithmetic.less(y, x, t) end,
  le = function(x, y, t) return arithmetic.less(x, y, t) or x == y end, ge = function(x, y, t) return arithmetic.less(y, x, t) or x == y end,
}

local function is_const(node) return node.op == "const" end

-- The folded node for the operation op on args: a constant, or one of the args. nil: it cannot be folded.
local function decided(dag, op, type_name, args)
  local a, b = args[1], args[2]
  local t = a and dag.types.by_name[a.type]
  if op == "select" and is_const(a) then return a.value ~= 0 and b or args[3] end
  if op == "lnot" and is_const(a) then return dag:constant("bool", 1 - a.value) end
  if (op == "and" or op == "or") and type_name == "bool" then
    local known, other = a, b
    if not is_const(known) then known, other = b, a end
    if is_const(known) then return (known.value ~= 0) == (op == "and") and other or known end
  end
  if op == "cast" and is_const(a) and a.type == "f32" and type_name == "f64" then return dag:constant("f64", number.float_value(a.value, t)) end
  if not COMPARED[op] or not (is_const(a) and is_const(b)) or t.kind ~= "float" then return nil end
  local x, y = number.float_value(a.value, t), number.float_value(b.value, t)
  return dag:constant("bool", COMPARED[op](x, y, t) and 1 or 0)
end

-- source: of expr.op_dag. index: of the parameter, from 1
function M.dag(types, source, index, value)
  local dag, copy, groups = dag_of.new(types), {}, {}
  local function copies(list)
    local result = {}
    for k, node in ipairs(list) do result[k] = copy[node] end
    return result
  end
  local leaves = table.move(source.inputs, 1, #source.inputs, 1, {})
  table.move(source.params, 1, #source.params, #leaves + 1, leaves)
  leaves[#leaves + 1] = source.index
  for _, node in ipairs(leaves) do copy[node] = dag:node(node.op, node.type, {}, { index = node.index, name = node.name }) end
  local params = copies(source.params)
  copy[source.params[index]] = dag:constant(params[index].type, value)
  for _, node in ipairs(dag_of.order(source.outputs)) do
    if not copy[node] then
      local args, extra = copies(node.args), { value = node.value, index = node.index, name = node.name, table = node.table }
      local made = decided(dag, node.op, node.type, args)
      if not made and node.op == "reduce" then
        made = dag:node("reduce", node.type, args, { index = node.index, name = node.name, reducer = node.reducer })
        if node.group then
          groups[node.group] = groups[node.group] or {}
          made.group, made.accumulator = groups[node.group], node.accumulator
        end
      end
      made = made or (#args == 0 and dag:node(node.op, node.type, args, extra) or dag:make(node.op, node.type, args, next(extra) and extra))
      made.is_canonical = made.is_canonical or node.is_canonical
      if node.label and #made.args > 0 then made.label = made.label or node.label end
      copy[node] = made
    end
  end
  for of, group in pairs(groups) do
    for k, part in ipairs(of) do
      group[k] = copy[part] or dag:node("reduce", part.type, copies(part.args), { index = part.index, name = part.name, reducer = part.reducer })
      group[k].group, group[k].accumulator = group, part.accumulator
    end
  end
  return { dag = dag, inputs = copies(source.inputs), params = params, outputs = copies(source.outputs), type = source.type, steps = source.steps,
           files = source.files, index = copy[source.index], first_output = source.first_output, combine_of = source.combine_of }
end

return M
