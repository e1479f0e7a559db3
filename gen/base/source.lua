-- SPDX-License-Identifier: Apache-2.0
--
-- A text with a name, and errors about positions in it: line, column, caret, the nearest known word.
-- Errors are collected as a list of strings; only the command line prints them.

local order = require "gen.base.order"

local M = {}

-- name: how errors call it; text: its content
function M.new(name, text)
  return { name = name, text = text }
end

-- A part of a source: positions in it are reported as positions in the whole.
function M.part(source, offset, text)
  return { name = source.name, text = text, whole = source, offset = offset }
end

-- line and column (1-based) of a byte position, and that line's text
function M.position(source, position)
  if source.whole then return M.position(source.whole, source.offset + position - 1) end
  local text = source.text
  position = math.max(1, math.min(position, #text + 1))
  local line, start = 1, 1
  while true do
    local stop = text:find("\n", start, true)
    if not stop or stop >= position then
      return line, position - start + 1, text:sub(start, (stop or #text + 1) - 1)
    end
    line, start = line + 1, stop + 1
  end
end

-- "file:line:col: message", the line, a caret
function M.message(source, position, message)
  local line, column, text = M.position(source, position)
  local shown = text:gsub("[%c\128-\255]", " ")
  local first = 1
  if #shown > 160 then
    first = math.max(1, column - 80)
    shown = shown:sub(first, first + 159)
  end
  return string.format("%s:%d:%d: %s\n  %s\n  %s^", source.name, line, column, message, shown,
                       (" "):rep(column - first))
end

-- How many letters must be inserted, removed, changed or exchanged with the next one to make `a` of `b`. For suggestions only.
local function distance(a, b)
  a, b = a:lower(), b:lower()
  local before, last, row = nil, nil, {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    before, last, row = last, row, { [0] = i }
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      row[j] = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + cost)
      local is_swapped = i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j)
      if is_swapped then row[j] = math.min(row[j], before[j - 2] + 1) end
    end
  end
  return row[#b]
end

local LONGEST_GUESS = 63

-- The known word nearest to `word`, or nil when none is near. Each further argument: a list or a set of names; of equally near
-- ones that of an earlier set, then the first in order: as runtime/core/base/status.c guesses.
function M.nearest(word, ...)
  if #word > LONGEST_GUESS then return nil end
  local best, best_distance = nil, (#word + 2) // 3 + 1
  for _, known in ipairs { ... } do
    local names = {}
    for key, value in pairs(known) do names[#names + 1] = type(key) == "string" and key or value end
    for _, name in ipairs(order.sort(names)) do
      if #name <= LONGEST_GUESS and math.abs(#name - #word) < best_distance then
        local d = distance(word, name)
        if d < best_distance then best, best_distance = name, d end
      end
    end
  end
  return best
end

-- ", did you mean 'x'?" or ""
function M.suggest(word, ...)
  local name = M.nearest(word, ...)
  return name and string.format(", did you mean '%s'?", name) or ""
end

-- A word of a user's text, safe to print.
function M.shown(word)
  word = tostring(word):gsub("[%c\127-\255]", "?")
  return #word > 40 and word:sub(1, 37) .. "..." or word
end

return M
