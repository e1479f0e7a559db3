-- What the targets' tables of spellings have in common: which row a node uses, and the filling of a spelling.
--
-- A row is a spelling, or spellings by the computed type's name or kind. In a spelling, $1 $2 $3 are the arguments, $t the
-- type computed in, $f the type the first argument has; other words are the target's.

local M = {}

local COMPARES = { lt = true, le = true, gt = true, ge = true, eq = true, ne = true }

-- The row of the spelling table a node uses.
local function row_of(node)
  local op, first = node.op, node.args[1]
  if COMPARES[op] and first.type == "bool" then return op .. "_bool" end
  if op == "cast" and node.type == "bool" then return "cast_to_bool" end
  if op == "cast" and first.type == "bool" then return "cast_from_bool" end
  if (op == "select" or op == "rare") then return node.type == "bool" and "select_bool" or "select" end
  if (op == "shl" or op == "shr") and node.args[2].op == "const" then return op .. "_constant" end
  return op
end

-- A node's expression. words: what a target's own $words stand for; tables: list -> C name; argument(k): text
function M.expression(types, spellings, node, words, tables, argument)
  local row = row_of(node)
  local spelling = spellings[row]
  if type(spelling) == "table" then spelling = spelling[node.type] or spelling[types.by_name[node.type].kind] end
  if not spelling then error(string.format("bug: no spelling for %s of %s", row, node.type)) end
  local values = { t = node.type, f = node.args[1].type, n = node.name, b = types.by_name[node.type].bits }
  for word, value in pairs(words) do values[word] = value end
  if node.op == "lookup" then
    values.table = tables[node.table]
    values.last = #node.table.items - 1
  end
  local text = spelling:gsub("%$(%a+)", function(word)
    return tostring(values[word] or error("bug: spelling of " .. row .. ": $" .. word))
  end)
  return (text:gsub("%$(%d)", function(k) return argument(tonumber(k)) end))
end

return M
