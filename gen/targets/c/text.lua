-- SPDX-License-Identifier: Apache-2.0
--
-- C's spelling: literals as bits, strings, comments. Pure.

local number = require "gen.base.number"

local M = {}

-- Text for inside a comment: nothing in it can end the comment, splice a line, or form a trigraph.
function M.comment_text(text)
  text = text:gsub("[%z\1-\31\127]+", " ")
  -- a valid UTF-8 sequence by its code points, any other byte by its number
  if utf8.len(text) then
    text = text:gsub("[\194-\244][\128-\191]+", function(c)
      return string.format("<U+%04X>", utf8.codepoint(c))
    end)
  end
  text = text:gsub("[\128-\255]", function(c) return string.format("<%02X>", c:byte()) end)
  text = text:gsub("%?%?", "? ?"):gsub("%?%?", "? ?"):gsub("%*/", "* /"):gsub("/%*", "/ *"):gsub("\\", "|")
  return (text:gsub("%s+$", ""))
end

-- Lines for a block comment " * ...", wrapped at 110 columns.
function M.comment_lines(text)
  local lines, line = {}, ""
  for word in M.comment_text(text):gmatch "%S+" do
    if #line + #word > 110 then
      lines[#lines + 1] = line
      line = word
    else
      line = line == "" and word or line .. " " .. word
    end
  end
  if line ~= "" then lines[#lines + 1] = line end
  return lines
end

-- A string literal for any bytes.
function M.string(text)
  text = text:gsub('[%z\1-\31"\\\127-\255]', function(c)
    if c == '"' then return '\\"' elseif c == "\\" then return "\\\\" elseif c == "\n" then return "\\n" end
    return string.format("\\%03o", c:byte())
  end)
  return '"' .. text:gsub("%?", "\\?") .. '"'
end

-- JSON's string literal; bytes that are no UTF-8 become U+FFFD.
function M.json_string(text)
  if not utf8.len(text) then text = text:gsub("[\128-\255]", "\u{fffd}") end
  return '"' .. text:gsub('[%z\1-\31"\\\127]', function(c) return string.format("\\u%04x", c:byte()) end) .. '"'
end

-- A finite number in C: as a short decimal, else in hexadecimal. is_exact: a decimal must be the number itself
local function finite(type_name, f, is_exact)
  local is_f32 = type_name == "f32"
  return (number.short(f, is_f32 and number.F32 or number.F64, is_exact) or number.hex(f)) .. (is_f32 and "f" or "")
end

-- A literal of a dtype. value: bits for floats, a number for integers, 0 or 1 for bool (a mask of the width given);
-- is_exact: a float is a decimal only where that is the very number, so that the columns of a table stay hexadecimal
function M.literal(type_name, value, mask_bits, is_exact)
  if type_name == "f32" or type_name == "f64" then
    local f = type_name == "f32" and number.f32_value(value) or number.f64_value(value)
    if f ~= f or f == math.huge or f == -math.huge then
      if type_name == "f32" then return string.format("q_from_f32(0x%08xu)", value) end
      return string.format("q_from_f64(0x%016xULL)", value)
    end
    if f == 0 then return (1 / f < 0 and "-0.0" or "0.0") .. (type_name == "f32" and "f" or "") end
    return finite(type_name, f, is_exact)
  elseif type_name == "bool" then
    return string.format("(m%d)%d", mask_bits, value ~= 0 and -1 or 0)
  elseif type_name == "i64" then
    if value == math.mininteger then return "(-0x7fffffffffffffffLL - 1)" end
    return string.format("%dLL", value)
  elseif type_name == "u64" then
    return string.format("0x%xULL", value)
  elseif type_name == "u32" then
    return string.format("0x%xu", value)
  elseif type_name == "i32" then
    if value == -0x80000000 then return "(-0x7fffffff - 1)" end
    return string.format("%d", value)
  elseif type_name == "i8" or type_name == "i16" then -- C computes with narrow integers as ints
    return string.format("%d", value)
  elseif type_name == "u8" or type_name == "u16" then
    return string.format(value < 10 and "%d" or "0x%x", value)
  end
  return string.format("(%s)%d", type_name, value)
end

-- An item of a constant table: a constant expression.
function M.table_item(type_name, value)
  local suffix = type_name == "f32" and "f" or ""
  if type_name == "f32" then value = number.f32_value(number.f32_bits(value + 0.0)) end
  if value ~= value then return string.format('__builtin_nan%s("")', suffix) end
  if value == math.huge or value == -math.huge then return string.format("%s__builtin_inf%s()", value < 0 and "-" or "", suffix) end
  if type_name == "f32" then return M.literal("f32", number.f32_bits(value + 0.0), nil, true) end
  if type_name == "f64" then return M.literal("f64", number.f64_bits(value + 0.0), nil, true) end
  return M.literal(type_name, math.tointeger(value))
end

return M
