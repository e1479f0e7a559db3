-- SPDX-License-Identifier: Apache-2.0
--
-- The tokens of a text of the expression language, and the values of numbers. A host's text has spellings of Python beside those of C:
-- a "//" behind a value divides, "#" begins a comment, "**" is one sign, "and", "or" and "not" are signs. runtime/lang/parse/syntax.c reads the
-- same. Errors are thrown as in parse.lua.

local M = {}

M.MAX_BYTES = 64 << 10
M.MAX_NAME = 64 -- of each part of a name with dots

local function fail(at, ...) error({ at = at, message = string.format(...) }, 0) end

-- Words that end no value.
local RESERVED = { T = true, param = true, rare = true, ["return"] = true }

-- T is the type that a body is instantiated for.
function M.is_type(types, name) return name == "T" or (types[name] ~= nil and types[name].kind ~= "bits") end

-- Whether the last of n tokens ends a value: "//" behind it divides.
local function ends_value(tokens, n, types)
  local last = tokens[n]
  if not last then return false end
  if last.kind == "number" then return true end
  if last.kind == "name" then return not RESERVED[last.text] and not M.is_type(types, last.text) end
  if last.text ~= ")" then return false end
  local open, name = tokens[n - 2], tokens[n - 1]
  local is_cast = open and open.kind == "op" and open.text == "(" and name.kind == "name" and not ends_value(tokens, n - 1, types)
  return not is_cast
end

-- Words that are signs of C in a host's text.
local LOGIC = { ["and"] = "&&", ["or"] = "||", ["not"] = "not" }

-- Adds the tokens of a text to the list `tokens`: { kind = "name" | "number" | "op" | "end", text, at, [written = as in the text] }. An
-- op's name may have its namespace before it and an output behind it, and dots between. types: of a host's text; nil: a body's
function M.scan(text, max_bytes, tokens, types)
  if #text > max_bytes then error({ at = 1, message = string.format("longer than %d bytes", max_bytes), kind = "limit" }, 0) end
  local at = 1
  while true do
    at = text:find("[^ \t\n\r]", at)
    if not at then break end
    local two, c = text:sub(at, at + 1), text:sub(at, at)
    local divides = types and two == "//" and ends_value(tokens, #tokens, types)
    if (two == "//" and not divides) or (types and c == "#") then
      at = text:find("\n", at, true) or #text + 1
    elseif two == "/*" then
      local _, stop = text:find("*/", at + 2, true)
      if not stop then fail(at, "unfinished comment") end
      at = stop + 1
    else
      local kind, word
      if c:find "[A-Za-z_]" then
        kind, word = "name", text:match("^[A-Za-z_][A-Za-z0-9_]*", at)
        local longest = #word
        for _ = 1, 2 do
          local after = text:match("^%.[A-Za-z_][A-Za-z0-9_]*", at + #word) or ""
          word, longest = word .. after, math.max(longest, #after - 1)
        end
        if longest > M.MAX_NAME then fail(at, "a name may have %d letters", M.MAX_NAME) end
      elseif c:find "[0-9]" or text:find("^%.[0-9]", at) then
        kind = "number"
        word = text:match("^0[xX][%x%.]*[pP][+-]?%d+", at) or text:match("^0[xX][%x%.]+", at)
          or text:match("^[%d%.]+[eE][+-]?%d+", at) or text:match("^[%d%.]+", at)
        local after = text:match("^[%w_.]+", at + #word)
        if after then fail(at + #word, "'%s' after a number: literals have no suffix", after:sub(1, 20)) end
      else
        kind = "op"
        word = divides and two or types and text:match("^%*%*", at)
        word = word or text:match("^<<=?", at) or text:match("^>>=?", at) or text:match("^[<>=!]=", at) or text:match("^&&", at)
          or text:match("^||", at) or text:match("^[-+*/%%&|^<>=!~?:;,(){}]", at)
        if not word then
          local shown = c:find "[%c\127-\255]" and string.format("the byte 0x%02x", c:byte()) or "'" .. c .. "'"
          fail(at, "%s does not belong to the expression language", shown)
        end
      end
      local sign = types and LOGIC[word]
      tokens[#tokens + 1] = { kind = sign and "op" or kind, text = sign or word, at = at, written = sign and word }
      at = at + #word
    end
  end
  tokens[#tokens + 1] = { kind = "end", text = "the end", at = #text + 1 }
  return tokens
end

-- A number's value: an integer (64 bits, two's complement for hex) or a float.
function M.number_value(token)
  local text = token.text
  if text:find "^0%d" and not text:find "[%.eE]" then
    fail(token.at, "'%s': octal numbers are not meant here; drop the leading 0", text)
  end
  local value = tonumber(text)
  if not value then fail(token.at, "'%s' is no number", text) end
  if math.type(value) == "float" and not text:find "[%.eEpP]" then
    fail(token.at, "'%s' does not fit 64 bits with a sign: write it in hex, or as a float", text)
  end
  if text:find "^0[xX]" and math.type(value) == "integer" and #text:gsub("^0[xX]0*", "") > 16 then
    fail(token.at, "'%s' does not fit 64 bits", text)
  end
  if value == math.huge then fail(token.at, "'%s' is too large: write INFINITY", text) end
  return value
end

return M
