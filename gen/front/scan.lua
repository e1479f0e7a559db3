-- SPDX-License-Identifier: Apache-2.0
--
-- Finds uses of QUERN_KERNEL in C and C++ sources, without a preprocessor: it reads tokens, and skips code under conditions of a
-- plain 0. Knows no expressions, opens no files.

local parse = require "gen.front.parse"
local source = require "gen.base.source"

local M = {}

local COMMENT = "C removes '//' and what is behind it in the line: write floor_divide(x, y), or a comment /* ... */"

-- The position behind the comment that begins at `at`, or nil. A backslash continues a line's comment in the next line.
local function skip_comment(text, at)
  local two = text:sub(at, at + 1)
  if two == "//" then
    repeat
      at = text:find("\n", at + 1, true)
    until not at or not text:sub(at - 2, at - 1):find "\\\r?$"
    return at or #text + 1
  end
  if two ~= "/*" then return nil end
  local _, stop = text:find("*/", at + 2, true)
  return (stop or #text) + 1
end

-- The position behind the string or the character that begins at `at`. One that is not closed ends with its line.
local function skip_quoted(text, at)
  local quote = text:sub(at, at)
  at = at + 1
  while at <= #text do
    local char = text:sub(at, at)
    if char == "\n" then return at end
    if char == quote then return at + 1 end
    at = at + (char == "\\" and 2 or 1)
  end
  return at
end

-- The position behind the number that begins at `at`, or nil. A mark may separate two digits: 1'000.
local function skip_number(text, at)
  local stop, behind = nil, text:match("^%.?%d()", at)
  while behind do
    stop = behind
    behind = text:match("^[eEpP][-+]()", stop) or text:match("^'[%w_]()", stop) or text:match("^[%w_.]()", stop)
  end
  return stop
end

local RAW = { R = true, LR = true, uR = true, UR = true, u8R = true }

-- The end of the raw string of C++ with its first word before `at`, or nil.
local function skip_raw(text, word, at)
  local mark, inside = text:match('^"([^ ()\\\t\v\f\n]*)%(()', at)
  if not RAW[word] or not mark then return nil end
  local _, stop = text:find(")" .. mark .. '"', inside, true)
  return stop and stop + 1
end

-- The token of C at `at`: the position behind it, and its kind: "comment", "word", or anything else: "other".
local function next_token(text, at)
  local comment = skip_comment(text, at)
  if comment then return comment, "comment" end
  local word = text:match("^[%a_][%w_]*", at)
  if word then
    local raw = skip_raw(text, word, at + #word)
    return raw or at + #word, raw and "other" or "word"
  end
  if text:find("^[\"']", at) then return skip_quoted(text, at), "other" end
  return skip_number(text, at) or text:match("^\\\r?\n()", at) or at + 1, "other"
end

-- The text with blanks in place of comments; positions stay.
local function without_comments(text)
  local parts, at = {}, 1
  while at <= #text do
    local stop, kind = next_token(text, at)
    local token = text:sub(at, stop - 1)
    parts[#parts + 1] = kind == "comment" and (" "):rep(#token) or token
    at = stop
  end
  return table.concat(parts)
end

-- The directive with its # at `at`: its first word, the rest of the line, and the line's end.
local function directive_at(text, at)
  local line = {}
  at = at + 1
  while at <= #text and text:sub(at, at) ~= "\n" do
    local behind = text:match("^\\\r?\n()", at)
    line[#line + 1] = behind and " " or text:sub(at, at)
    at = behind or at + 1
  end
  local word, rest = table.concat(line):match "^%s*(%a*)%s*(.-)%s*$"
  return word, rest, at
end

local BRANCHES = { ["else"] = true, ["elif"] = true, ["elifdef"] = true, ["elifndef"] = true }

-- The parts of a text that #if 0 leaves out. Of all other conditions each branch counts as compiled.
-- Returns two functions. The first takes the position of a # that begins a line: the position to go on from, or nil if no
-- condition begins or ends there. The second tells whether the following text is left out.
local function new_conditions(text)
  local is_out, n_out = {}, 0 -- of each condition that is open: whether its present branch is left out; how many are
  local function enter(value)
    is_out[#is_out + 1] = value
    n_out = n_out + (value and 1 or 0)
  end
  local function leave()
    if table.remove(is_out) then n_out = n_out - 1 end
  end
  local function take(at)
    local word, rest, stop = directive_at(text, at)
    if word == "if" or word == "ifdef" or word == "ifndef" then
      enter(word == "if" and rest == "0")
    elseif BRANCHES[word] and #is_out > 0 then
      leave()
      enter(word == "elif" and rest == "0")
    elseif word == "endif" then
      leave()
    elseif word ~= "undef" then
      return nil
    end
    return stop
  end
  return take, function() return n_out > 0 end
end

-- The position of the ) of a QUERN_KERNEL( ... ) with its arguments from `at` on, or nil.
local function closing_of(text, at)
  local depth = 1
  while at <= #text do
    local char = text:sub(at, at)
    if char == "(" then depth = depth + 1 elseif char == ")" then depth = depth - 1 end
    if depth == 0 then return at end
    at = next_token(text, at)
  end
end

-- The position of a "//" from `at` to `stop` that would divide if C left it: behind a value; or nil.
local function comment_in(text, at, stop)
  local follows_value = false
  while at < stop do
    local behind, kind = next_token(text, at)
    if follows_value and text:sub(at, at + 1) == "//" then return at end
    local token = text:sub(at, behind - 1)
    if kind ~= "comment" and token:find "%S" then follows_value = kind == "word" or token == ")" or token:find "^%.?%d" ~= nil end
    at = behind
  end
end

-- The uses of QUERN_KERNEL(name, text) in a C source -> list of { kernel, text, source, at }, and a list of errors. There are
-- none in comments, in strings, and between #if 0 and its #else or #endif.
function M.uses(name, text)
  local src, list, errors, at, begins_line, whole = source.new(name, text), {}, {}, 1, true, text
  text = without_comments(text)
  local take_condition, is_left_out = new_conditions(text)
  while at <= #text do
    local stop = next_token(text, at)
    local token = text:sub(at, stop - 1)
    if token == "#" and begins_line then stop = take_condition(at) or stop end
    begins_line = token == "\n" or begins_line and token:find "^%s$" ~= nil
    if token == "define" then
      -- a macro's own definition is no use of it
      stop = text:match("^[ \t]+[%a_][%w_]*()", stop) or stop
    elseif token == "QUERN_KERNEL" and text:find("^%s*%(", stop) and not is_left_out() then
      local kernel, body = text:match("^%s*%(%s*([%a_][%w_]*)%s*,()", stop)
      local close = kernel and closing_of(text, body)
      if kernel and #kernel > parse.MAX_NAME then
        errors[#errors + 1] = source.message(src, at, string.format("a name may have %d letters", parse.MAX_NAME))
      elseif close and comment_in(whole, body, close) then
        errors[#errors + 1] = source.message(src, comment_in(whole, body, close), COMMENT)
      elseif close then
        list[#list + 1] = { kernel = kernel, text = (text:sub(body, close - 1):gsub("\\\r?\n", "  ")), source = src, at = body }
        stop = close
      else
        local comment = comment_in(whole, at, whole:find("\n", at, true) or #whole)
        errors[#errors + 1] = source.message(src, comment or at, comment and COMMENT or "expected QUERN_KERNEL(name, expression)")
      end
    end
    at = stop
  end
  return list, errors
end

return M
