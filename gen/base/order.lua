-- SPDX-License-Identifier: Apache-2.0
--
-- The order of names: by bytes, whatever the locale of the process (Lua's own < follows it).

local M = {}

function M.less(a, b)
  for k = 1, math.min(#a, #b) do
    local x, y = a:byte(k), b:byte(k)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- Sorts a list of strings in place and returns it.
function M.sort(list)
  table.sort(list, M.less)
  return list
end

-- The items of a list that are in a set (name to true), in the list's order.
function M.those_in(list, set)
  local kept = {}
  for _, name in ipairs(list) do
    if set[name] then kept[#kept + 1] = name end
  end
  return kept
end

-- The keys of a map, sorted.
function M.keys(map)
  local list = {}
  for key in next, map do list[#list + 1] = key end
  return M.sort(list)
end

return M
