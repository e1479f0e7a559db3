-- SPDX-License-Identifier: Apache-2.0
--
-- Positions in a spec file: the tokens of a declaration, the position of a field's text, the line of a token. `state` is
-- that of a file being loaded (spec.lua): its source, tokens, index, and where errors go.

local source = require "gen.base.source"

local M = {}

-- The index of a file: { starts = of lines, names = "word name" -> indices of tokens that begin such a declaration,
-- words = word -> the same whatever the name, strings = content -> index of the token, false where several have it }.
function M.index_of(src, tokens)
  local index = { starts = { 1 }, names = {}, words = {}, strings = {} }
  for stop in src.text:gmatch "\n()" do index.starts[#index.starts + 1] = stop end
  local function add(map, key, k)
    map[key] = map[key] or {}
    table.insert(map[key], k)
  end
  for k, token in ipairs(tokens) do
    if token.kind == "name" then
      local follows = tokens[k + 1]
      if follows and follows.text == "(" then follows = tokens[k + 2] end
      add(index.words, token.text, k)
      if follows and follows.value then add(index.names, token.text .. " " .. follows.value, k) end
    elseif token.kind == "string" then
      index.strings[token.value] = index.strings[token.value] == nil and k
    end
  end
  return index
end

-- The first k in [low, high] for which holds(k); high + 1 if there is none. What holds for k holds behind it.
function M.search(low, high, holds)
  while low <= high do
    local middle = (low + high) // 2
    if holds(middle) then high = middle - 1 else low = middle + 1 end
  end
  return low
end

function M.line_at(state, at)
  local starts = state.index.starts
  return M.search(1, #starts, function(k) return starts[k] > at end) - 1
end

-- The tokens of a declaration, first and last index: the word, its name if it has one, { ... }. It starts on `line`; of
-- several on one line it is the `skip`-th more.
function M.declaration_range(state, line, word, name, skip)
  local tokens, starts = state.tokens, state.index.starts
  local from = starts[line] or starts[#starts]
  local found = (name and state.index.names[word .. " " .. name]) or (not name and state.index.words[word]) or {}
  local first = found[M.search(1, #found, function(k) return tokens[found[k]].at >= from end) + skip]
  if not first then
    first = math.min(#tokens, M.search(1, #tokens, function(k) return tokens[k].at >= from end))
    return first, first
  end
  local depth = 0
  for last = first + 1, #tokens do
    if tokens[last].text == "{" then depth = depth + 1 end
    if tokens[last].text == "}" then
      depth = depth - 1
      if depth == 0 then return first, last end
    end
  end
  return first, first
end

function M.fail(state, at, ...)
  state.fail(source.message(state.src, at, string.format(...)))
end

-- The text of a field of the declaration at hand, with its position: that of `field = "..."` in it, else of the only string
-- with that content in the file (a local's), else none.
function M.text_of(state, index, field, value)
  local tokens = state.tokens
  for k = index, state.last - 2 do
    local token = tokens[k + 2]
    if tokens[k].text == field and tokens[k + 1].text == "=" and token.kind == "string" and token.value == value then
      return source.part(state.src, token.value_at, value)
    end
  end
  local found = state.index.strings[value]
  return found and source.part(state.src, tokens[found].value_at, value) or source.new(state.src.name, value)
end

-- Keys of the table constructor `field = { a = ..., b = ... }` of the declaration at hand, as they are written.
function M.written_order(state, index, field)
  local tokens, written = state.tokens, {}
  for k = index, state.last - 2 do
    if tokens[k].text == field and tokens[k + 1].text == "=" and tokens[k + 2].text == "{" then
      local depth = 1
      for j = k + 3, #tokens do
        local t = tokens[j].text
        if t == "{" then depth = depth + 1 elseif t == "}" then depth = depth - 1 end
        if depth == 0 then return written end
        if depth == 1 and tokens[j].kind == "name" and tokens[j + 1] and tokens[j + 1].text == "=" then
          written[#written + 1] = tokens[j]
        end
      end
    end
  end
  return written
end

return M
