-- SPDX-License-Identifier: Apache-2.0
--
-- The grammar of the expression language: text -> syntax tree. Knows no types and no ops.
--
--   body       := { statement } [ "return" expression ";" | expression [ ";" ] ]
--   statement  := type name "=" expression ";" | name "=" expression ";" | "param" name ";"
--               | "rare" "(" expression ")" "{" { [ type ] name "=" expression ";" } "}"
--   expression := C's, from "?:" down to unary operators, casts, calls, names and numbers
--
-- A host's expression has no rare and no T, and may begin with a name of its own: name ":". In it a call of an op that reduces takes
-- keywords behind its arguments: "axis" "=" (axis | "(" [ axis { "," axis } [ "," ] ] ")"), "keepdims" "=" ("0" | "1"); an axis is a
-- whole number with or without "-".
--
-- A node is { kind = ..., at = byte position in the text, ... }. Errors are thrown as { at, message, [kind] } and caught in
-- expr.lua and host.lua; kind is "limit" where a text is too much, not wrong.

local M = {}

M.MAX_BYTES = 64 << 10
M.MAX_NAME = 64 -- of each part of a name with dots
M.MAX_DEPTH = 200
M.MAX_CHAIN = 2000
M.MAX_AXES = 32
M.MAX_SHOWN = 40 -- letters of a word in a message

-- Binary operators by precedence, loosest first, as in C.
local LEVELS = {
  { ["||"] = true }, { ["&&"] = true }, { ["|"] = true }, { ["^"] = true }, { ["&"] = true },
  { ["=="] = true, ["!="] = true }, { ["<"] = true, ["<="] = true, [">"] = true, [">="] = true },
  { ["<<"] = true, [">>"] = true }, { ["+"] = true, ["-"] = true }, { ["*"] = true, ["/"] = true, ["%"] = true },
}
local COMPARISON = { ["<"] = true, ["<="] = true, [">"] = true, [">="] = true, ["=="] = true, ["!="] = true }

-- Words with a meaning of their own in a host's expression: no names of variables.
M.WORDS = { ["return"] = true, param = true, rare = true, lookup = true, T = true }

local function fail(at, ...) error({ at = at, message = string.format(...) }, 0) end
local function exceed(at, ...) error({ at = at, message = string.format(...), kind = "limit" }, 0) end

-- Tokens: { kind = "name" | "number" | "op" | "end", text, at }. An op's name may have its namespace before it and an output
-- behind it, and dots between.
local function scan(text, max_bytes)
  if #text > max_bytes then exceed(1, "longer than %d bytes", max_bytes) end
  local tokens, at = {}, 1
  while true do
    at = text:find("[^ \t\n\r]", at)
    if not at then break end
    local two, c = text:sub(at, at + 1), text:sub(at, at)
    if two == "//" then
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
        word = text:match("^<<=?", at) or text:match("^>>=?", at) or text:match("^[<>=!]=", at) or text:match("^&&", at)
          or text:match("^||", at) or text:match("^[-+*/%%&|^<>=!~?:;,(){}]", at)
        if not word then
          local shown = c:find "[%c\127-\255]" and string.format("the byte 0x%02x", c:byte()) or "'" .. c .. "'"
          fail(at, "%s does not belong to the expression language", shown)
        end
      end
      tokens[#tokens + 1] = { kind = kind, text = word, at = at }
      at = at + #word
    end
  end
  tokens[#tokens + 1] = { kind = "end", text = "the end", at = #text + 1 }
  return tokens
end

-- A number's value: an integer (64 bits, two's complement for hex) or a float.
local function number_value(token)
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

local Parser = {}
Parser.__index = Parser

function Parser:peek(offset) return self.tokens[math.min(self.next + (offset or 0), #self.tokens)] end

function Parser:take()
  local token = self.tokens[self.next]
  self.next = math.min(self.next + 1, #self.tokens)
  return token
end

function Parser:accept(text)
  local token = self:peek()
  if token.kind == "op" and token.text == text then return self:take() end
end

function Parser:expect(text, where)
  local token = self:accept(text)
  if not token then
    fail(self:peek().at, "expected '%s' %s, found %s", text, where,
         self:peek().kind == "end" and "the end" or "'" .. self:peek().text .. "'")
  end
  return token
end

-- What `read`, a method, makes of the text one level deeper: inside parentheses or a call, of a sign's operand, of a branch.
-- at: where that begins
function Parser:deeper(at, read, ...)
  self.depth = self.depth + 1
  if self.depth > M.MAX_DEPTH then exceed(at, "nested deeper than %d", M.MAX_DEPTH) end
  local node = read(self, ...)
  self.depth = self.depth - 1
  return node
end

-- T is the type that a body is instantiated for.
function Parser:is_type(name) return name == "T" or (self.types[name] ~= nil and self.types[name].kind ~= "bits") end

function Parser:is_cast()
  local open, name, close = self:peek(), self:peek(1), self:peek(2)
  return open.text == "(" and name.kind == "name" and self:is_type(name.text) and close.text == ")"
end

-- The name of a type that is written there.
function Parser:type_name()
  local token = self:take()
  if self.is_host and token.text == "T" then fail(token.at, "T has no meaning here") end
  return token.text
end

-- The name that is given to a value there.
function Parser:new_name()
  local token = self:take()
  local is_word = self.is_host and M.WORDS[token.text]
  if token.kind ~= "name" or self:is_type(token.text) or is_word or token.text:find(".", 1, true) then
    fail(token.at, "expected a name, found %s", token.kind == "end" and "the end" or "'" .. token.text .. "'")
  end
  return token
end

---------------------------------------------------------------------------------------------------- axes

-- Whether a keyword comes next in a call that takes keywords.
function Parser:is_keyword()
  local name, sign = self:peek(), self:peek(1)
  return name.kind == "name" and sign.kind == "op" and sign.text == "="
end

-- A whole number, with its sign.
function Parser:axis_number(most, what)
  local is_negative = self:accept "-"
  local token = self:take()
  local found = token.kind == "end" and "the end" or "'" .. token.text:sub(1, M.MAX_SHOWN) .. "'"
  local value = token.kind == "number" and number_value(token)
  if math.type(value) ~= "integer" or value < 0 or value > most then fail(token.at, "expected %s, found %s", what, found) end
  return is_negative and -value or value
end

function Parser:axis(axes)
  local axis = self:axis_number(M.MAX_AXES, "an axis, a whole number")
  if #axes == M.MAX_AXES then exceed(self:peek().at, "more than %d axes", M.MAX_AXES) end
  axes[#axes + 1] = axis
end

-- reverse = 0 or 1, exclusive = 0 or 1 of a call that scans.
function Parser:scan_keyword(token, axes)
  local word = token.text
  if word == "include_initial" then
    error({ at = token.at, kind = "unsupported", message = "include_initial gives one element more than the others have; call the op by itself" }, 0)
  end
  if word ~= "reverse" and word ~= "exclusive" then
    fail(token.at, "unknown keyword '%s': expected axis, reverse or exclusive", word:sub(1, M.MAX_SHOWN))
  end
  axes[word] = self:axis_number(1, "0 or 1")
  if axes[word] < 0 then fail(token.at, "%s: expected 0 or 1", word) end
end

function Parser:keyword(name, axes)
  local token = self:take()
  local word = token.text
  token.is_keyword = true
  self:take()
  if axes.scans and word ~= "axis" then return self:scan_keyword(token, axes) end
  if word ~= "axis" and word ~= "keepdims" then
    fail(token.at, "unknown keyword '%s': expected axis or keepdims", word:sub(1, M.MAX_SHOWN))
  end
  if word == "keepdims" and not axes.is_reduced then fail(token.at, "keepdims: %s keeps all dimensions", name:sub(1, M.MAX_SHOWN)) end
  if axes["has_" .. word] then fail(token.at, "%s is given twice", word) end
  axes["has_" .. word] = true
  if word == "keepdims" then
    axes.keepdims = self:axis_number(1, "0 or 1")
    if axes.keepdims < 0 then fail(token.at, "keepdims: expected 0 or 1") end
    return
  end
  if not self:accept "(" then return self:axis(axes) end
  while not self:accept ")" do
    self:axis(axes)
    if not self:accept "," then
      self:expect(")", "after the axes")
      return
    end
  end
end

-- Keywords up to the end of a call.
function Parser:keywords(name, axes)
  repeat
    if not self:is_keyword() then fail(self:peek().at, axes.scans and "an argument after a keyword" or "an argument after axis or keepdims") end
    self:keyword(name, axes)
  until not self:accept ","
  self:expect(")", "after the arguments of " .. name)
end

-- Behind the "(" of a call. axes: of a call that reduces, filled in
function Parser:arguments(name, axes)
  local args, more = {}, nil
  if axes and self:is_keyword() then
    self:keywords(name, axes)
    return args
  end
  if self:accept ")" then return args end
  repeat
    args[#args + 1] = self:expression()
    more = self:accept ","
    if more and axes and self:is_keyword() then
      self:keywords(name, axes)
      return args
    end
  until not more
  self:expect(")", "after the arguments of " .. name)
  return args
end

function Parser:primary()
  local token = self:take()
  if token.kind == "number" then return { kind = "number", at = token.at, value = number_value(token) } end
  if token.kind == "name" then
    if self:is_type(token.text) then fail(token.at, "type '%s' where a value is expected", token.text) end
    if self.is_host and M.WORDS[token.text] and not (token.text == "lookup" and self:peek().text == "(") then
      fail(token.at, "'%s' where a value is expected", token.text)
    end
    if not self:accept "(" then
      local name = { kind = "name", at = token.at, name = token.text }
      if self.reads then self.reads[#self.reads + 1] = name end
      return name
    end
    local axes = self.reduces and self.reduces(token.text, token.at)
    if axes then self.axes[#self.axes + 1] = axes end
    local call = { kind = "call", at = token.at, name = token.text, axes = axes,
                   args = self:deeper(token.at, self.arguments, token.text, axes) }
    if self.calls then self.calls[#self.calls + 1] = call end
    return call
  end
  if token.text == "(" then
    local inside = self:deeper(token.at, self.expression)
    self:expect(")", "to close '('")
    inside.parenthesised = true
    return inside
  end
  fail(token.at, "expected a value, found %s", token.kind == "end" and "the end" or "'" .. token.text .. "'")
end

function Parser:unary()
  local token = self:peek()
  if self:is_cast() then
    self:take()
    local name = self:type_name()
    self:take()
    return { kind = "cast", at = token.at, type = name, self:deeper(token.at, self.unary) }
  elseif token.kind == "op" and token.text:find "^[-+!~]$" then
    self:take()
    return { kind = "unary", at = token.at, op = token.text, self:deeper(token.at, self.unary) }
  end
  return self:primary()
end

function Parser:binary(level)
  if level > #LEVELS then return self:unary() end
  local left = self:binary(level + 1)
  local chain = 0
  while true do
    local token = self:peek()
    if token.kind ~= "op" or not LEVELS[level][token.text] then break end
    if token.text == "%" then
      fail(token.at, "'%%' is no operator: remainder(x, y) has the sign of y, fmod(x, y) that of x")
    end
    self:take()
    if COMPARISON[token.text] and left.kind == "binary" and COMPARISON[left.op] and not left.parenthesised then
      fail(token.at, "chained comparison: write a < b && b < c")
    end
    local right = self:binary(level + 1)
    if COMPARISON[token.text] and right.kind == "binary" and COMPARISON[right.op] and not right.parenthesised then
      fail(right.at, "chained comparison: write a < b && b < c")
    end
    left = { kind = "binary", at = token.at, op = token.text, left, right }
    -- a long chain is a deep tree to the left
    chain = chain + 1
    if chain > M.MAX_CHAIN then exceed(token.at, "more than %d operators in one chain", M.MAX_CHAIN) end
  end
  return left
end

function Parser:expression()
  local node = self:binary(1)
  local question = self:accept "?"
  if not question then return node end
  local yes = self:deeper(question.at, self.expression)
  self:expect(":", "in '? :'")
  return { kind = "select", at = question.at, node, yes, self:deeper(question.at, self.expression) }
end

-- [ type ] name "=" expression ";"
function Parser:assignment(last_may_end)
  local type_name = self:is_type(self:peek().text) and self:type_name() or nil
  local name = self:new_name()
  self:expect("=", "after " .. name.text)
  local value = self:expression()
  if not (last_may_end and self:peek().kind == "end") then self:expect(";", "after the value of " .. name.text) end
  return { kind = "assign", at = name.at, type = type_name, name = name.text, value = value }
end

function Parser:rare()
  local at = self:take().at
  self:expect("(", "after rare")
  local condition = self:expression()
  self:expect(")", "after the condition of rare")
  self:expect("{", "after rare (...)")
  local statements = {}
  while not self:accept "}" do
    if self:peek().kind == "end" then fail(at, "rare { ... } is not closed") end
    statements[#statements + 1] = self:assignment()
  end
  return { kind = "rare", at = at, condition = condition, statements = statements }
end

-- A statement, or the result, which is the last. Returns nil after that.
function Parser:statement(body)
  local token, second = self:peek(), self:peek(1)
  if token.kind == "end" then return nil end
  if token.kind == "name" and token.text == "return" then
    self:take()
    body.result = self:expression()
    if self:peek().kind ~= "end" then self:expect(";", "after return") end
    if self:peek().kind ~= "end" then fail(self:peek().at, "nothing may follow return") end
    return nil
  elseif token.kind == "name" and token.text == "rare" and second.text == "(" then
    if self.is_host then fail(token.at, "rare belongs to the body of an op") end
    return self:rare()
  elseif token.kind == "name" and token.text == "param" and second.kind == "name" then
    self:take()
    local name = self:new_name()
    if self:peek().kind ~= "end" then self:expect(";", "after param") end
    return { kind = "param", at = name.at, name = name.text }
  elseif token.kind == "name" and (self:is_type(token.text) or (second.kind == "op" and second.text == "=")) then
    return self:assignment(true)
  end
  body.result = self:expression()
  if self:peek().kind ~= "end" then self:expect(";", "after the expression") end
  if self:peek().kind ~= "end" then fail(self:peek().at, "nothing may follow the result") end
  return nil
end

-- text -> { statements, [result = expression] }. types: by name, the types in casts and before names
function M.parse(text, types)
  local self = setmetatable({ tokens = scan(text, M.MAX_BYTES), next = 1, depth = 0, types = types }, Parser)
  local body = { statements = {} }
  repeat
    local statement = self:statement(body)
    body.statements[#body.statements + 1] = statement
  until not statement
  return body
end

-- The same of a host's expression: { [name], statements, [result], tokens, first = index of the token after the name,
-- calls, axes }. Each statement, and the body for its result, has `reads`: the names that are read in it, in order. A call that
-- reduces has axes = { is_reduced, [has_axis], [keepdims], axis ... }, those of all calls are in body.axes, as they begin. reduces(name):
-- new axes with is_reduced, whether the op's results are; nil: the call does not reduce. Its second argument is the call's place
function M.parse_host(text, types, max_bytes, reduces)
  local tokens = scan(text, max_bytes or M.MAX_BYTES)
  local self = setmetatable({ tokens = tokens, next = 1, depth = 0, types = types, is_host = true, calls = {}, axes = {},
                              reduces = reduces }, Parser)
  local body = { statements = {}, tokens = tokens, calls = self.calls, axes = self.axes }
  if tokens[1].kind == "name" and tokens[2].text == ":" and not tokens[1].text:find(".", 1, true) then
    body.name = tokens[1].text
    self.next = 3
  end
  body.first = self.next
  while true do
    self.reads = {}
    local statement = self:statement(body)
    if not statement then break end
    statement.reads = self.reads
    body.statements[#body.statements + 1] = statement
  end
  body.reads = self.reads
  return body
end

return M
