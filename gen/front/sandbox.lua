-- SPDX-License-Identifier: Apache-2.0
--
-- Running untrusted Lua data: its tokens, the words it may not use, the run itself under limits. Knows nothing of what
-- specs mean.
--
-- A spec is data: it may use the declarators it is given, tables, numbers, strings and arithmetic. Everything else of Lua
-- is refused by its word before anything runs (a loop, a function, string concatenation, a method call), then the chunk
-- runs without any library, without the string metatable, under a limit of steps and memory.

local source = require "gen.base.source"

local M = {}

M.MAX_BYTES = 1 << 20
M.MAX_STEPS = 2000000
M.MAX_KILOBYTES = 64 << 10

local REFUSED = {}
for word in ("while for repeat until function goto break return do end if then else elseif _ENV"):gmatch "[%a_]+" do
  REFUSED[word] = true
end

---------------------------------------------------------------------------------------------------- scanning

local function long_bracket(text, position)
  local level = text:match("^%[(=*)%[", position)
  return level and #level, level and position + #level + 2
end

-- Tokens of a Lua text: { kind = "name" | "string" | "number" | "op", text, at, [value, value_at] }, or nil, position, why
function M.scan(text)
  local tokens, at = {}, 1
  while true do
    at = text:find("%S", at)
    if not at then return tokens end
    local two = text:sub(at, at + 1)
    if two == "--" then
      local level, start = long_bracket(text, at + 2)
      if level then
        local _, stop = text:find("]" .. ("="):rep(level) .. "]", start, true)
        if not stop then return nil, at, "unfinished comment" end
        at = stop + 1
      else
        at = text:find("\n", at, true) or #text + 1
      end
    else
      local c = text:sub(at, at)
      local level, start = long_bracket(text, at)
      if level then
        local first, stop = text:find("]" .. ("="):rep(level) .. "]", start, true)
        if not stop then return nil, at, "unfinished string" end
        if text:sub(start, start) == "\n" then start = start + 1 end
        tokens[#tokens + 1] = { kind = "string", at = at, value = text:sub(start, first - 1), value_at = start }
        at = stop + 1
      elseif c == '"' or c == "'" then
        local stop = at + 1
        while true do
          local s = text:sub(stop, stop)
          if s == "" or s == "\n" then return nil, at, "unfinished string" end
          if s == c then break end
          stop = stop + (s == "\\" and 2 or 1)
        end
        tokens[#tokens + 1] = { kind = "string", at = at, value = text:sub(at + 1, stop - 1), value_at = at + 1 }
        at = stop + 1
      elseif c:find "[A-Za-z_]" then
        local word = text:match("^[A-Za-z0-9_]+", at)
        tokens[#tokens + 1] = { kind = "name", text = word, at = at }
        at = at + #word
      elseif c:find "%d" or text:find("^%.%d", at) then
        local word = text:match("^0[xX][%x%.]*[pP][+-]?%d+", at) or text:match("^0[xX][%x%.]+", at)
          or text:match("^[%d%.]+[eE][+-]?%d+", at) or text:match("^[%d%.]+", at)
        tokens[#tokens + 1] = { kind = "number", text = word, at = at }
        at = at + #word
      else
        local op = text:match("^%.%.%.?", at) or text:match("^::", at) or text:match("^[=~<>]=", at) or c
        tokens[#tokens + 1] = { kind = "op", text = op, at = at }
        at = at + #op
      end
    end
  end
end

-- The first token that is not data, and why.
local function refuse(tokens)
  for _, token in ipairs(tokens) do
    if token.kind == "name" and REFUSED[token.text] then
      return token.at, string.format("'%s': a spec is data, without control flow or functions", token.text)
    elseif token.kind == "op" and (token.text == ".." or token.text == "...") then
      return token.at, "'..': a spec is data, without string assembly"
    elseif token.kind == "op" and (token.text == ":" or token.text == "::") then
      return token.at, "':': a spec is data, without methods or labels"
    end
  end
end

---------------------------------------------------------------------------------------------------- running

-- Runs a spec's text with the declarators in `env`. Returns true, or nil, position, message.
function M.run(src, tokens, env)
  local at, why = refuse(tokens)
  if at then return nil, at, why end
  if src.text:sub(1, 1) == "\27" then return nil, 1, "compiled Lua is not a spec" end
  local globals = setmetatable({}, {
    __index = function(_, name)
      local value = env[name]
      if value == nil then
        error({ unknown = tostring(name) }, 0)
      end
      return value
    end,
    __newindex = function(_, name) error({ assigned = tostring(name) }, 0) end,
    __metatable = false,
  })
  local chunk, syntax = load(src.text, "=spec", "t", globals)
  if not chunk then
    local line, message = tostring(syntax):match "^spec:(%d+): (.*)$"
    return nil, M.line_start(src, tonumber(line) or 1), message or tostring(syntax)
  end
  local limit = collectgarbage "count" + M.MAX_KILOBYTES
  local steps = 0
  local strings = debug.getmetatable ""
  debug.setmetatable("", nil)
  local hook, mask, count = debug.gethook()
  debug.sethook(function()
    steps = steps + 100
    if steps > M.MAX_STEPS then error({ limit = "more steps than a spec may take" }, 0) end
    if collectgarbage "count" > limit then error({ limit = "more memory than a spec may take" }, 0) end
  end, "", 100)
  local line_of_error
  local ok, err = xpcall(chunk, function(e)
    for level = 2, 8 do
      local info = debug.getinfo(level, "Sl")
      if not info then break end
      if info.source == "=spec" then
        line_of_error = info.currentline
        break
      end
    end
    return e
  end)
  debug.sethook(hook, mask, count)
  debug.setmetatable("", strings)
  if ok then return true end
  local position = M.line_start(src, line_of_error or 1)
  if type(err) == "table" then
    local word = err.unknown or err.assigned
    if word then
      for _, token in ipairs(tokens) do
        if token.kind == "name" and token.text == word and token.at >= position then
          position = token.at
          break
        end
      end
      if err.unknown then
        return nil, position, string.format("unknown word '%s'%s", source.shown(word), source.suggest(word, env))
      end
      return nil, position, string.format("'%s' is not a field here; use local %s = ...", source.shown(word),
                                          source.shown(word))
    end
    if err.limit then return nil, position, err.limit end
    return nil, err.at or position, err.message
  end
  return nil, position, (tostring(err):gsub("^spec:%d+: ", ""))
end

-- The byte position where a line starts (its first word).
function M.line_start(src, line)
  local at = 1
  for _ = 2, line do
    local stop = src.text:find("\n", at, true)
    if not stop then break end
    at = stop + 1
  end
  return src.text:find("%S", at) or at
end

return M
