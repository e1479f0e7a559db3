-- SPDX-License-Identifier: Apache-2.0
--
-- Evaluates an op that scans, or its derivative, on lists of numbers, in Lua, in the order of docs/internals/reductions.md: for examples, and
-- for declared bounds.

local evaluate = require "gen.graph.dag.evaluate"
local kinds = require "gen.kinds.kinds"
local states = require "gen.graph.states"

local M = {}

-- The values of a DAG's inputs, by name.
local function operands(dag, list)
  local values = {}
  for k, node in ipairs(dag.inputs) do values[node.name] = list[k] end
  return values
end

-- Runs a scan that has states. values: input name -> a list with a number for each element, or one number for all elements. Returns a list of
-- results for each output; nil if a number is no value of the input's type.
local function carried(model, op, dags, values)
  local kind, count, results = kinds.of(op), 0, {}
  for k in ipairs(op.outputs) do results[k] = {} end
  for _, input in ipairs(op.inputs) do
    local given = values[input.name]
    count = math.max(count, type(given) == "table" and #given or 1)
  end
  local function elements(k)
    local list = {}
    for at, input in ipairs(op.inputs) do
      local given, place = values[input.name], input.name == op.before and k - 1 or k
      local value = given
      if place == 0 then value = op.initial elseif type(given) == "table" then value = given[place] end
      list[at] = evaluate.value_of(value, model.types.by_name[dags.lift.inputs[at].type])
      if list[at] == nil then return nil end
    end
    return list
  end
  local function run(dag, list) return { evaluate.run(model.types, dag, operands(dag, list)) } end
  local function both(x, y)
    if not x then return y end
    return run(dags.combine, table.move(y, 1, #y, #x + 1, table.move(x, 1, #x, 1, {})))
  end
  local segment, B, R, Q -- since the beginning of a segment; the carries of a segment, a chunk and a span
  for step = 1, count do
    local k, at = kind.from_end and count + 1 - step or step, step - 1
    local list = elements(k)
    if not list then return nil end
    list[#list + 1] = k - 1
    segment = both(at % 16 > 0 and segment, run(dags.lift, list))
    local v1 = both(at % 256 > 15 and B, segment)
    local v2 = both(at % 65536 > 255 and R, v1)
    local a = both(at > 65535 and Q, v2)
    if at % 16 == 15 then B = v1 end
    if at % 256 == 255 then R = v2 end
    if at % 65536 == 65535 then Q = a end
    for result, value in ipairs(run(dags.finish, table.move(list, 1, #list, #a + 1, table.move(a, 1, #a, 1, {})))) do results[result][k] = value end
  end
  return table.unpack(results)
end

-- For evaluate.check_examples: what has the types of the outputs of an op that computes in K, and the function of its inputs.
function M.of(model, op, K)
  local A = kinds.of(op).accumulator(model.types, op, K)
  if op.has_states then
    local dags = states.of(model, op, A)
    return { outputs = dags.finish.outputs }, function(_, values) return carried(model, op, dags, values) end
  end
  local dags, sought = states.of(model, op, A), kinds.of(op).sought(op)
  local function run(_, values)
    local results, places, found, place = carried(model, op, dags, values), {}, nil, nil
    local given = values[op.inputs[1].name]
    for k, x in ipairs(sought and (type(given) == "table" and given or { given }) or {}) do
      if found == nil or kinds.of(op).is_found(op, found, x) then found, place = x, k - 1 end
      places[k] = place
    end
    return results, sought and places or nil
  end
  return { outputs = { { type = A }, { type = "i64" } } }, run
end

return M
