-- SPDX-License-Identifier: Apache-2.0
--
-- copies.lua: the built-in specs read once in a process that loads them hundreds of times: each load has a copy of its own.

local M = {}

-- A copy of all tables that can be reached; a table that is reached twice is copied once. Functions are shared.
local function copy(value, seen)
  if type(value) ~= "table" then return value end
  local made = seen[value]
  if made then return made end
  made = {}
  seen[value] = made
  for k, v in next, value do made[copy(k, seen)] = copy(v, seen) end
  return setmetatable(made, getmetatable(value))
end

-- Replaces the function of that name in gen/products/load.lua.
function M.of_builtin_model(load)
  local read, kept = load.builtin_model, {}
  function load.builtin_model(root, is_preview)
    local key = root .. (is_preview and " preview" or "")
    kept[key] = kept[key] or table.pack(read(root, is_preview))
    local result = copy(kept[key], {})
    return table.unpack(result, 1, result.n)
  end
end

return M
