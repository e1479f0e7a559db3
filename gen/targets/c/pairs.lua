-- SPDX-License-Identifier: Apache-2.0
--
-- Kernels of contiguous bf16, the upper half of an f32, that take two elements at a time, in a u32: templates/c/elementwise_pairs.c.in. One
-- operation casts either of them to f32, and no vector is made of the halves of two others.

local access = require "gen.targets.c.access"

local M = {}

M.FORM = "elementwise_pairs"

M.DTYPE = "bf16"
local LOADS = { low = "q_low_bf16(%s)", high = "q_high_bf16(%s)" }

local function pair_of(operand) return "pair_" .. operand.short end

-- The names in the kernel's text that belong to the pairs: a list.
function M.names(operands, outputs)
  local list = {}
  for _, operand in ipairs(operands) do list[#list + 1] = pair_of(operand) end
  for k in ipairs(outputs) do table.move({ "low_" .. k - 1, "high_" .. k - 1 }, 1, 2, #list + 1, list) end
  return list
end

-- Whether a kernel built ahead (only its records have a D) is one of pairs: all that is not broadcast is bf16, computed in f32.
function M.serves(record, operands, dag)
  if record.D ~= M.DTYPE or record.fused then return false end
  local n_in, has_pair = #dag.inputs, false
  for k, node in ipairs(dag.inputs) do
    local operand = operands[k]
    local is_pair = operand.class == "c" and operand.dtype == M.DTYPE and node.type == "f32"
    if operand.is_used and not is_pair and operand.class ~= "b" then return false end
    has_pair = has_pair or operand.is_used and is_pair
  end
  for k, node in ipairs(dag.outputs) do
    local operand = operands[n_in + k]
    if operand.class ~= "c" or operand.dtype ~= M.DTYPE or node.type ~= "f32" then return false end
  end
  return has_pair
end

-- The template's own values. text_of(load_of): the lines that compute an element, of an input's load by load_of(operand, node), and their emitter
function M.values(operands, dag, text_of)
  local takes, halves, joins = {}, {}, {}
  for k in ipairs(dag.inputs) do
    local operand = operands[k]
    if operand.is_used and operand.class == "c" then
      takes[#takes + 1] = string.format("const u32 %s = ((const u32_u *)%s)[i];", pair_of(operand), operand.row)
    end
  end
  for _, half in ipairs { "low", "high" } do
    local lines, emitter = text_of(function(operand, node)
      return string.format("const %s %s = %s;", node.type, operand.name, LOADS[half]:format(pair_of(operand)))
    end)
    for k, node in ipairs(dag.outputs) do
      local format = access.is_canonical(node) and "%s_%d = q_half_bf16(%s);" or "%s_%d = q_cast_half_bf16(%s);"
      lines[#lines + 1] = format:format(half, k - 1, emitter:argument(node))
    end
    halves[#halves + 1] = { lines = lines }
  end
  for k in ipairs(dag.outputs) do
    local row = operands[#dag.inputs + k].row
    joins[k] = { declared = string.format("u32 low_%d, high_%d;", k - 1, k - 1),
                 stored = string.format("((u32_u *)%s)[i] = q_join_bf16(low_%d, high_%d);", row, k - 1, k - 1) }
  end
  return { takes = takes, halves = halves, joins = joins }
end

return M
