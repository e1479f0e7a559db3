-- SPDX-License-Identifier: Apache-2.0
--
-- Hints that are added to an error at a place of a text, by the tokens there: that "//" divides, or what to write for another language's word.
-- runtime/lang/parse/syntax.c gives the same.

local foreign = require "gen.front.foreign"

local M = {}

M.COMMENT = "; '//' behind a value is floor_divide: a comment begins with '#'"

-- Whether a "//" before token `index`, which divides, may have been meant as a comment. Such a "//" is one of the two tokens before it; or,
-- where the text beyond cannot be read, it is on the same line.
local function may_be_comment(text, tokens, index, at)
  local is_unread = index > #tokens
  for k = index - 1, 1, -1 do
    if not is_unread and k < index - 2 then return false end
    if is_unread and text:sub(tokens[k].at, at - 1):find("\n", 1, true) then return false end
    if tokens[k].kind == "op" and tokens[k].text == "//" then return true end
  end
  return false
end

-- What the name of a cast's dtype means here, as in "(float)x", which reads as a value in parentheses; index: the token behind it.
local function cast_before(tokens, index)
  local open, name, close = tokens[index - 3], tokens[index - 2], tokens[index - 1]
  if not open or open.text ~= "(" or name.kind ~= "name" or close.text ~= ")" then return nil end
  local word = foreign.words[name.text]
  return word and word[1] or foreign.functions[name.text]
end

-- "" where there is nothing to say. tokens: those read so far
function M.at(text, tokens, at)
  local index = 1
  while index <= #tokens and tokens[index].at < at do index = index + 1 end
  if may_be_comment(text, tokens, index, at) then return M.COMMENT end
  local function word_at(k) return tokens[k] and tokens[k].kind == "name" and foreign.words[tokens[k].text] end
  local word
  if index <= #tokens then word = word_at(index) else word = foreign.words[text:match("^.[\x80-\xBF]?[\x80-\xBF]?[\x80-\xBF]?", at)] end
  word = word or word_at(index - 1)
  local sentence = word and word[1] or cast_before(tokens, index)
  return sentence and ": " .. sentence or ""
end

return M
