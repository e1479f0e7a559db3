-- SPDX-License-Identifier: Apache-2.0
--
-- The common part of the targets' emitters: filling a spelling of a primitive's row (graph/dag/primitives.lua).

local dag_of = require "gen.graph.dag.dag"
local primitives = require "gen.graph.dag.primitives"

local M = {}

-- Whether a value is an fma's result as it is, or may be.
local function is_fused(node)
  return node.op == "fma" or node.op == "select" and (is_fused(node.args[2]) or is_fused(node.args[3]))
end

-- The spelling of a node in a target, which is a key of its row.
local function spelling_of(types, target, node)
  local row = primitives.of[node.op]
  local spelling = row and row[target]
  if type(spelling) ~= "table" then return spelling end
  local first, last = node.args[1], node.args[#node.args]
  return last.op == "const" and spelling.constant or dag_of.is_operand(last) and spelling.of_operand
    or spelling.of_fused and is_fused(first) and spelling.of_fused or first.type == "bool" and spelling.of_bool or spelling[node.type]
    or spelling[types.by_name[node.type].kind] or spelling.any
end

-- A node's expression in a target, or, target "exact", in numbers of 113 bits. words: the values of a target's own $words;
-- tables: list -> C name; argument(k): text
function M.expression(types, target, node, words, tables, argument)
  local spelling = spelling_of(types, target, node)
  if not spelling then error(string.format("bug: no spelling for %s of %s in %s", node.op, node.type, target)) end
  local values = { t = node.type, f = node.args[1].type, n = node.name, b = types.by_name[node.type].bits }
  for word, value in pairs(words) do values[word] = value end
  if node.op == "lookup" then
    values.table = tables[node.table]
    values.last = #node.table.items - 1
  end
  local text = spelling:gsub("%$(%a+)", function(word)
    return tostring(values[word] or error("bug: spelling of " .. node.op .. ": $" .. word))
  end)
  return (text:gsub("%$(%d)", function(k) return argument(tonumber(k)) end))
end

return M
