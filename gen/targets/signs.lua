-- SPDX-License-Identifier: Apache-2.0
--
-- Bodies of 16-bit floats that only change signs (neg, abs, copysign), computed on the stored bits, for any target. This saves the casts
-- to f32 and back. The results have the same bits as with the casts: every NaN becomes the canonical NaN.
--
-- The inputs and the result are i16 nodes marked is_stored: targets load and store them without a cast.

local dag_of = require "gen.graph.dag.dag"

local M = {}

local SIGN = -0x8000

-- The dtype of a record's operands if all have the same, a float of 16 bits that is only stored; else nil.
local function dtype_of(types, record, dag)
  local t = types.by_name[record.dtypes[1]]
  if not t or t.kind ~= "float" or t.bits ~= 16 or t.compute ~= "f32" or #dag.outputs ~= 1 then return nil end
  for _, dtype in ipairs(record.dtypes) do
    if dtype ~= t.name then return nil end
  end
  return t
end

-- The bits of infinity of such a dtype; those above it are NaN's.
function M.infinity(t) return ((1 << t.exponent) - 1) << (t.digits - 1) end

-- A record's operands as stored bits: { t = their dtype as above, inputs, of_input = input -> its bits, bits(op, x, y) = an operation of
-- two i16, y a node or a number, result(is_nan, value) = the DAG with the bits `value` as its result, or the canonical NaN }. nil: it has none.
function M.stored(types, record, dag)
  local t, made, inputs, of_input = dtype_of(types, record, dag), dag.dag, {}, {}
  if not t then return nil end
  for k, node in ipairs(dag.inputs) do
    inputs[k] = made:node("input", "i16", {}, { index = node.index or k - 1, name = node.name, is_stored = true })
    of_input[node] = inputs[k]
  end
  local function result(is_nan, value)
    local out = made:make("select", "i16", { is_nan, made:constant("i16", M.infinity(t) | 1 << (t.digits - 2)), value })
    out.is_stored = true
    return setmetatable({ inputs = inputs, outputs = { out } }, { __index = dag })
  end
  local function bits(op, x, y) return made:make(op, "i16", { x, type(y) == "table" and y or made:constant("i16", y) }) end
  return { t = t, of_input = of_input, bits = bits, result = result }
end

-- The DAG of a record on stored bits. nil: the record has no such body.
function M.dag(types, record, dag)
  local stored = M.stored(types, record, dag)
  if not stored then return nil end
  local made, of_input, bits, number, opaque = dag.dag, stored.of_input, stored.bits, nil, nil
  -- The bits of a node, but of NaN; `number` has those of a number that is NaN if the input is.
  local function signed(node)
    local x, y = node.args[1], node.args[2]
    if dag_of.is_operand(node) and of_input[node] then
      number = of_input[node]
      return number
    elseif node.op == "neg" or node.op == "abs" or node.op == "canon" or node.op == "copysign" and of_input[y] and dag_of.is_operand(y) then
      local value = signed(x)
      if not value or node.op == "canon" then return value end
      if node.op == "neg" then
        -- NaN as the operand is. An opaque mask keeps GCC from testing the operand instead, and loading it twice.
        number = bits("xor", value, SIGN)
        opaque = made:node("const", "i16", {}, { value = 0x7fff, name = "opaque", is_opaque = true })
        return number
      end
      local size = bits("and", value, 0x7fff)
      return node.op == "abs" and size or bits("or", size, bits("and", of_input[y], SIGN))
    end
  end
  local value = signed(dag.outputs[1])
  if not value then return nil end
  local is_nan = made:make("gt", "bool", { bits("and", number, opaque or 0x7fff), made:constant("i16", M.infinity(stored.t)) })
  return stored.result(is_nan, value)
end

return M
