-- SPDX-License-Identifier: Apache-2.0
--
-- Bodies of 16-bit floats that only choose the larger or the smaller of numbers, computed on the stored bits: no casts to f32 and
-- back. The results have the same bits as with the casts: +0 is larger than -0, a NaN is the canonical NaN. A parameter is rounded to the
-- dtype first: what lies between two numbers of it would be rounded last, with the same result.
--
-- A place is a number's bits as an i16 in the order of numbers: the bits below the sign flipped where it is set.

local dag_of = require "gen.graph.dag.dag"
local signs = require "gen.targets.signs"

local M = {}

local SIZE = 0x7fff

M.MOST = 64 -- nodes of such a body

-- The bits of a constant of f32 in a dtype that is its upper half, or of 0; nil: it is no such number.
local function bits_of(t, node)
  if node.type ~= "f32" or node.value ~= 0 and (t.digits ~= 8 or node.value & 0xffff ~= 0) then return nil end
  local bits = node.value >> 16
  return bits & SIZE <= signs.infinity(t) and bits or nil
end

-- Whether a node is x <= c ? c : x for a constant c, not -0: the maximum of both, a NaN included.
local function is_choice(node)
  local condition, c, x = table.unpack(node.args)
  return node.op == "select" and condition.op == "le" and condition.args[1] == x and condition.args[2] == c and c.op == "const"
    and c.value ~= 0x80000000
end

-- Whether a body consists of such choices alone. list: its nodes, arguments first
local function is_served(stored, list)
  local is_there, has_operand, n_conditions, n_choices = false, false, 0, 0
  for _, node in ipairs(list) do
    if stored.of_input[node] and dag_of.is_operand(node) then
      has_operand = true
    elseif node.op == "le" then
      n_conditions = n_conditions + 1
    elseif is_choice(node) then
      n_choices, is_there = n_choices + 1, true
    elseif node.op == "maximum" or node.op == "minimum" then
      is_there = true
    elseif node.op ~= "canon" and node.op ~= "param" and not (node.op == "const" and bits_of(stored.t, node)) then
      return false
    end
  end
  return is_there and has_operand and n_conditions == n_choices
end

-- The DAG of a record on stored bits. nil: the record has no such body.
function M.dag(types, record, dag)
  local stored = signs.stored(types, record, dag)
  local list = stored and dag_of.order(dag.outputs)
  if not stored or #list > M.MOST or not is_served(stored, list) then return nil end
  local bits, made, place, largest, of_param, params = stored.bits, dag.dag, {}, nil, {}, {}
  local function flipped(x) return bits("xor", x, bits("and", bits("shr", x, 15), SIZE)) end
  -- largest: of all inputs and parameters, without a sign: a NaN, if one is
  local function put(node, number)
    local size = bits("and", number, SIZE)
    largest, place[node] = largest and bits("maximum", largest, size) or size, flipped(number)
  end
  for k, node in ipairs(dag.params) do -- before the inputs: what does not depend on an element is in one operation
    params[k] = made:node("param", "i16", {}, { index = node.index, name = node.name, stored_as = stored.t.name })
    of_param[node] = params[k]
  end
  for _, node in ipairs(list) do
    if of_param[node] then put(node, of_param[node]) end
  end
  for _, node in ipairs(list) do
    local number, n = stored.of_input[node], #node.args
    if number then
      put(node, number)
    elseif node.op == "const" then
      local value = bits_of(stored.t, node)
      place[node] = made:constant("i16", value >> 15 == 0 and value or value ~ SIZE)
    elseif node.op == "canon" then
      place[node] = place[node.args[1]]
    elseif node.op ~= "le" and node.op ~= "param" then
      place[node] = bits(node.op == "minimum" and "minimum" or "maximum", place[node.args[n]], place[node.args[n - 1]])
    end
  end
  local is_nan = made:make("gt", "bool", { largest, made:constant("i16", signs.infinity(stored.t)) })
  local result = stored.result(is_nan, flipped(place[dag.outputs[1]]))
  result.params = params
  return result
end

return M
