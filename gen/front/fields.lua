-- SPDX-License-Identifier: Apache-2.0
--
-- Fields of declarations: a table against its schema, and lists of names.

local names = require "gen.front.names"
local order = require "gen.base.order"
local positions = require "gen.front.positions"
local source = require "gen.base.source"

local M = {}

local fail = positions.fail

-- Checks a table against a schema { field = "types, separated by blanks" }; unknown fields are named with the nearest known one.
function M.check_fields(state, index, what, fields, schema)
  local at = state.tokens[index].at
  if type(fields) ~= "table" then
    fail(state, at, "%s: expected a table { ... }", what)
    return false
  end
  local keys = {}
  for key in pairs(fields) do keys[#keys + 1] = tostring(key) end
  order.sort(keys)
  for _, key in ipairs(keys) do
    local wanted, value = schema[key], fields[key]
    if not wanted then
      local where = at
      for k = index, #state.tokens do
        if state.tokens[k].text == key then
          where = state.tokens[k].at
          break
        end
      end
      fail(state, where, "%s: unknown field '%s'%s", what, source.shown(key), source.suggest(key, schema))
      return false
    end
    if not (" " .. wanted .. " "):find(" " .. type(value) .. " ", 1, true) then
      fail(state, at, "%s: field '%s' is a %s, expected %s", what, key, type(value), (wanted:gsub(" ", " or ")))
      return false
    end
  end
  return true
end

-- "bool condition, x, y" -> { { name, type, is_row }, ... }. is_row: "row i64 t", where types has row: of extent 1 along the axes
function M.parse_names(state, at, what, text, types)
  local model = state.model
  local list, seen = {}, {}
  if text:find "^%s*$" then return list end
  for item in (text .. ","):gmatch "([^,]*)," do
    local rest = types.row and item:match "^%s*row%s+(.+)$"
    local word, name = (rest or item):match "^%s*([%w_]+)%s+([%w_]+)%s*$"
    if not name then name = (rest or item):match "^%s*([%w_]+)%s*$" end
    if not name or not names.is_free_name(name) or names.TYPED_FUNCTION[name] or names.is_word_of_bodies(model, name) then
      fail(state, at, "%s: '%s' is not a name", what, source.shown(item))
      return nil
    end
    if seen[name] then
      fail(state, at, "%s: '%s' occurs twice", what, name)
      return nil
    end
    if word and (word == "row" or not types[word]) then
      fail(state, at, "%s: unknown type '%s'%s", what, source.shown(word), source.suggest(word, types))
      return nil
    end
    seen[name] = true
    list[#list + 1] = { name = name, type = word, is_row = rest ~= nil or nil }
  end
  return list
end

return M
