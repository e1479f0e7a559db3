-- SPDX-License-Identifier: Apache-2.0
--
-- The grammar of the expression language: text -> syntax tree. Knows no types and no ops.
--
--   body       := { statement } [ "return" expression ";" | expression [ ";" ] ]
--   statement  := type name "=" expression ";" | "auto" name "=" expression ";" | name "=" expression ";" | "param" name ";"
--               | "rare" "(" expression ")" "{" { [ type | "auto" ] name "=" expression ";" } "}"
--   expression := C's, from "?:" down to unary operators, casts, calls, names and numbers
--
-- In a host's expression "and" and "or" are && and ||, "not" binds between these and comparisons, "//" binds as "*", and "**" as in
-- Python. A host's expression has no rare and no T, and may begin with a name of its own: name ":". In it a call of an op that reduces or scans
-- takes keywords behind its arguments: "axis" "=" (axis | "(" [ axis { "," axis } [ "," ] ] ")"), "keepdims" "=" ("0" | "1"); an axis is a
-- whole number with or without "-".
--
-- A node is { kind = ..., at = byte position in the text, ... }. Errors are thrown as { at, message, [kind] } and caught in
-- expr.lua and host.lua; kind is "limit" where a text is too much, not wrong.

local hint = require "gen.front.hint"
local tokens_of = require "gen.front.tokens"

local M = {}

M.MAX_BYTES, M.MAX_NAME = tokens_of.MAX_BYTES, tokens_of.MAX_NAME
M.MAX_DEPTH = 200
M.MAX_CHAIN = 2000
M.MAX_AXES = 32
M.MAX_SHOWN = 40 -- letters of a word in a message

-- Binary operators by precedence, loosest first, as in C.
local LEVELS = {
  { ["||"] = true }, { ["&&"] = true }, { ["|"] = true }, { ["^"] = true }, { ["&"] = true },
  { ["=="] = true, ["!="] = true }, { ["<"] = true, ["<="] = true, [">"] = true, [">="] = true },
  { ["<<"] = true, [">>"] = true }, { ["+"] = true, ["-"] = true }, { ["*"] = true, ["/"] = true, ["%"] = true, ["//"] = true },
}
local LEVEL_NOT = 3 -- of the operands of "and"
local COMPARISON = { ["<"] = true, ["<="] = true, [">"] = true, [">="] = true, ["=="] = true, ["!="] = true }

-- Words with a meaning of their own in a host's expression: no names of variables.
M.WORDS = { ["return"] = true, param = true, rare = true, lookup = true, T = true }

local function fail(at, ...) error({ at = at, message = string.format(...) }, 0) end
local function exceed(at, ...) error({ at = at, message = string.format(...), kind = "limit" }, 0) end

local Parser = {}
Parser.__index = Parser

function Parser:peek(offset) return self.tokens[math.min(self.next + (offset or 0), #self.tokens)] end

function Parser:take()
  local token = self.tokens[self.next]
  self.next = math.min(self.next + 1, #self.tokens)
  return token
end

-- A token in a message.
local function shown(token) return token.kind == "end" and "the end" or "'" .. (token.written or token.text) .. "'" end

function Parser:accept(text)
  local token = self:peek()
  if token.kind == "op" and token.text == text then return self:take() end
end

function Parser:expect(text, where)
  local token = self:accept(text)
  if not token then
    fail(self:peek().at, "expected '%s' %s, found %s", text, where, shown(self:peek()))
  end
  return token
end

-- Calls the method `read` one level deeper, and returns its result: inside parentheses or a call, for a sign's operand, for a branch.
-- at: where that level begins
function Parser:deeper(at, read, ...)
  self.depth = self.depth + 1
  if self.depth > M.MAX_DEPTH then exceed(at, "nested deeper than %d", M.MAX_DEPTH) end
  local node = read(self, ...)
  self.depth = self.depth - 1
  return node
end

function Parser:is_type(name) return tokens_of.is_type(self.types, name) end

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
    fail(token.at, "expected a name, found %s", shown(token))
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
  local value = token.kind == "number" and tokens_of.number_value(token)
  if math.type(value) ~= "integer" or value < 0 or value > most then fail(token.at, "expected %s, found %s", what, found) end
  return is_negative and -value or value
end

function Parser:axis(axes)
  local axis = self:axis_number(M.MAX_AXES, "an axis, a whole number")
  if #axes == M.MAX_AXES then exceed(self:peek().at, "more than %d axes", M.MAX_AXES) end
  axes[#axes + 1] = axis
end

-- The 0 or 1 of a keyword, for the field of its name.
function Parser:flag(token, axes)
  axes[token.text] = self:axis_number(1, "0 or 1")
  if axes[token.text] < 0 then fail(token.at, "%s: expected 0 or 1", token.text) end
end

-- reverse = 0 or 1, exclusive = 0 or 1 of a call that scans.
function Parser:scan_keyword(token, axes)
  local word = token.text
  if word == "include_initial" then
    error({ at = token.at, kind = "unsupported", message = "include_initial gives one element more than the others have; call the op by itself" }, 0)
  end
  if word ~= "reverse" and word ~= "exclusive" then
    fail(token.at, "unknown keyword '%s': expected axis, reverse or exclusive; others go by place, before these", word:sub(1, M.MAX_SHOWN))
  end
  self:flag(token, axes)
end

function Parser:keyword(name, axes)
  local token = self:take()
  local word = token.text
  token.is_keyword = true
  self:take()
  if axes.scans and word ~= "axis" then return self:scan_keyword(token, axes) end
  if word ~= "axis" and word ~= "keepdims" then
    fail(token.at, "unknown keyword '%s': expected axis or keepdims; others go by place, before these", word:sub(1, M.MAX_SHOWN))
  end
  if word == "keepdims" and not axes.is_reduced then fail(token.at, "keepdims: %s keeps all dimensions", name:sub(1, M.MAX_SHOWN)) end
  if axes["has_" .. word] then fail(token.at, "%s is given twice", word) end
  axes["has_" .. word] = true
  if word == "keepdims" then return self:flag(token, axes) end
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
  local sign = self:peek()
  if sign.kind == "op" and sign.text == "=" then
    fail(sign.at, "'=' in a call: %s takes its arguments in their order, without names", name:sub(1, M.MAX_SHOWN))
  end
  self:expect(")", "after the arguments of " .. name)
  return args
end

function Parser:primary()
  local token = self:take()
  if token.kind == "number" then return { kind = "number", at = token.at, value = tokens_of.number_value(token) } end
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
    local call = { kind = "call", at = token.at, name = token.text, axes = axes, height = 1,
                   args = self:deeper(token.at, self.arguments, token.text, axes) }
    for _, arg in ipairs(call.args) do call.height = math.max(call.height, 1 + (arg.height or 0)) end
    token.call = call
    if self.calls then self.calls[#self.calls + 1] = call end
    return call
  end
  if token.text == "(" then
    local inside = self:deeper(token.at, self.expression)
    self:expect(")", "to close '('")
    inside.parenthesised = true
    inside.height = (inside.height or 0) + 1
    return inside
  end
  if token.text == "not" and token.kind == "op" then
    fail(token.at, "'not' binds looser than what is before it: write (not ...)")
  end
  if not self.is_host and token.text == "*" and self.tokens[self.next - 2] and self.tokens[self.next - 2].at == token.at - 1 then
    fail(token.at - 1, "'**' is no operator here: write pow(x, y)")
  end
  local index = self.next - (token.kind == "end" and 0 or 1)
  local sign, step = self.tokens[index - 1], self.tokens[index - 2]
  local is_next = sign and sign.kind == "op" and sign.at + #sign.text == token.at
  if token.text == "=" and is_next and sign.text == ":" then fail(sign.at, "':=' is no operator: write y = ...") end
  if token.text == "=" and is_next and sign.text:find "^[-+*/&|^]" then
    fail(sign.at, "'%s=' is no operator: nothing is changed in place; write y = x %s ...", sign.text, sign.text)
  end
  if step and step.kind == "op" and sign.kind == "op" and step.at + 1 == sign.at and step.text == sign.text and step.text:find "^[-+]$" then
    fail(step.at, "'%s%s' is no operator: nothing is changed in place; write y = x %s 1", step.text, step.text, step.text)
  end
  fail(token.at, "expected a value, found %s", shown(token))
end

---------------------------------------------------------------------------------------------------- spellings of Python

-- These are calls and signs of C in the canonical text. `opens` of a token lists what is written before it, the innermost first: "(", or
-- an op's name and "("; `closes` counts the ")" behind it. `height` of a node: its levels of nesting in that text.

local function height_of(node) return node.height or 0 end

-- Puts parentheses, behind the name of a called op or (nil) plain ones, around the tokens from `first` to the last one taken.
function Parser:enclose(name, first)
  local open, close = self.tokens[first], self.tokens[self.next - 1]
  open.opens = open.opens or {}
  table.insert(open.opens, name or false)
  close.closes = (close.closes or 0) + 1
end

function Parser:check_height(height, at)
  if self.depth + height > M.MAX_DEPTH then exceed(at, "nested deeper than %d", M.MAX_DEPTH) end
end

-- Checks that an op may be called by a spelling.
function Parser:check_lowered(name, token)
  if self.reduces(name, token.at) then fail(token.at, "%s is no op of two operands here", name) end
  token.lowered = ","
end

-- The call of an op by a spelling. first: the first token of `left`
function Parser:lowered(name, token, left, right, first)
  local height = 1 + math.max(height_of(left), height_of(right))
  self:check_height(height, token.at)
  local call = { kind = "call", at = token.at, name = name, args = { left, right }, height = height }
  self.calls[#self.calls + 1] = call
  self:enclose(name, first)
  return call
end

-- "**" behind a value binds tighter than signs before it: -x ** 2 is -(x ** 2).
function Parser:power()
  local first = self.next
  local left, token = self:primary(), self:peek()
  if token.kind ~= "op" or token.text ~= "**" then return left end
  self:take()
  self:check_lowered("pow", token)
  return self:lowered("pow", token, left, self:deeper(token.at, self.unary), first)
end

-- "not" binds looser than comparisons.
function Parser:negation()
  local token = self:take()
  local first = self.next
  local operand = self:deeper(token.at, self.binary, LEVEL_NOT)
  local has_operators = operand.kind == "binary" and not operand.parenthesised
  local height = height_of(operand) + 1 + (has_operators and 1 or 0)
  self:check_height(height, token.at)
  if has_operators then self:enclose(nil, first) end
  token.lowered = "!"
  return { kind = "unary", at = token.at, op = "!", height = height, operand }
end

---------------------------------------------------------------------------------------------------- operators

function Parser:unary()
  local token = self:peek()
  if self:is_cast() then
    self:take()
    local name = self:type_name()
    self:take()
    local operand = self:deeper(token.at, self.unary)
    return { kind = "cast", at = token.at, type = name, height = 1 + height_of(operand), operand }
  elseif token.kind == "op" and token.text:find "^[-+!~]$" then
    self:take()
    local operand = self:deeper(token.at, self.unary)
    return { kind = "unary", at = token.at, op = token.text, height = 1 + height_of(operand), operand }
  end
  return self.is_host and self:power() or self:primary()
end

function Parser:binary(level)
  if level > #LEVELS then return self:unary() end
  local first = self.next
  if level == LEVEL_NOT and self.is_host and self:peek().kind == "op" and self:peek().text == "not" then return self:negation() end
  local left = self:binary(level + 1)
  local chain = 0
  while true do
    local token = self:peek()
    if token.kind ~= "op" or not LEVELS[level][token.text] then break end
    if token.text == "%" then
      fail(token.at, "'%%' is no operator: remainder(x, y) has the sign of y, fmod(x, y) that of x")
    end
    self:take()
    if token.text == "//" then self:check_lowered("floor_divide", token) end
    if COMPARISON[token.text] and left.kind == "binary" and COMPARISON[left.op] and not left.parenthesised then
      fail(token.at, "chained comparison: write a < b && b < c")
    end
    local right = self:binary(level + 1)
    if COMPARISON[token.text] and right.kind == "binary" and COMPARISON[right.op] and not right.parenthesised then
      fail(right.at, "chained comparison: write a < b && b < c")
    end
    if token.text == "//" then
      left = self:lowered("floor_divide", token, left, right, first)
    else
      left = { kind = "binary", at = token.at, op = token.text, height = math.max(height_of(left), height_of(right)), left, right }
    end
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
  local no = self:deeper(question.at, self.expression)
  local height = math.max(height_of(node), 1 + height_of(yes), 1 + height_of(no))
  return { kind = "select", at = question.at, height = height, node, yes, no }
end

-- Whether "auto" declares a name there.
function Parser:is_auto()
  local auto, name, sign = self:peek(), self:peek(1), self:peek(2)
  return auto.kind == "name" and auto.text == "auto" and name.kind == "name" and sign.kind == "op" and sign.text == "="
end

-- [ type | "auto" ] name "=" expression ";"
function Parser:assignment(last_may_end)
  local is_auto = self:is_auto()
  if is_auto then self:take().is_keyword = true end
  local type_name = not is_auto and self:is_type(self:peek().text) and self:type_name() or nil
  local name = self:new_name()
  self:expect("=", "after " .. name.text)
  local value = self:expression()
  if not (last_may_end and self:peek().kind == "end") then self:expect(";", "after the value of " .. name.text) end
  return { kind = "assign", at = name.at, type = type_name, is_auto = is_auto, name = name.text, value = value }
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
  elseif token.kind == "name" and (self:is_auto() or self:is_type(token.text) or (second.kind == "op" and second.text == "=")) then
    return self:assignment(true)
  end
  body.result = self:expression()
  if self:peek().kind ~= "end" then self:expect(";", "after the expression") end
  if self:peek().kind ~= "end" then fail(self:peek().at, "nothing may follow the result") end
  return nil
end

-- f(), with the hint at the place of an error that it throws. tokens: those read so far
local function hinted(text, tokens, f)
  local ok, result = pcall(f)
  if ok then return result end
  if type(result) == "table" and result.at then result.message = result.message .. hint.at(text, tokens, result.at) end
  error(result, 0)
end

-- text -> { statements, [result = expression] }. types: by name, the types in casts and before names
function M.parse(text, types)
  local tokens = {}
  return hinted(text, tokens, function()
    tokens_of.scan(text, M.MAX_BYTES, tokens)
    local self = setmetatable({ tokens = tokens, next = 1, depth = 0, types = types }, Parser)
    local body = { statements = {} }
    repeat
      local statement = self:statement(body)
      body.statements[#body.statements + 1] = statement
    until not statement
    return body
  end)
end

-- The same of a host's expression: { [name], statements, [result], tokens, first = index of the token after the name,
-- calls, axes }. Each statement, and the body for its result, has `reads`: the names that are read in it, in order. A call that
-- reduces has axes = { is_reduced, [has_axis], [keepdims], axis ... }, those of all calls are in body.axes, as they begin. reduces(name):
-- new axes with is_reduced, whether the op's results are; nil: the call does not reduce. Its second argument is the call's place.
-- Tokens say how they are written in the canonical text: `lowered`, `opens`, `closes`; `call`: that of which a token is the name.
function M.parse_host(text, types, max_bytes, reduces)
  local tokens = {}
  return hinted(text, tokens, function()
    tokens_of.scan(text, max_bytes or M.MAX_BYTES, tokens, types)
    local self = setmetatable({ tokens = tokens, next = 1, depth = 0, types = types, is_host = true, calls = {}, axes = {},
                                reduces = reduces or function() end }, Parser)
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
  end)
end

return M
