-- SPDX-License-Identifier: Apache-2.0
--
-- Storage types and casts of the dtypes that the headers of templates/ do not have: made of their rows in dsl/types.lua. A build
-- without such dtypes has no text of this.

local template = require "gen.base.template"

local M = {}

M.HEADER = "kernel_dtypes.h" -- of the C target
M.MOST_DIGITS = 14 -- of such a float: what rounding to odd in the headers leaves room for

local FOLDER = "templates/c/"

local function has_any(types)
  for _, t in ipairs(types.list) do
    if t.is_made then return true end
  end
  return false
end

local function hex(value) return string.format("0x%x", value) end

-- The casts between a float and the other dtypes: those that it casts to by way of f32; those that f32 has all numbers of; the
-- others. made: those that stand before it
local function casts_of(types, float, made)
  local others, exact, wide, f32 = {}, {}, {}, types.by_name.f32
  for _, t in ipairs(types.list) do
    local is_there = not t.is_made or made[t.name]
    if is_there and (t.kind == "integer" or t.kind == "float") and t ~= f32 and t ~= float then
      local digits = t.digits or t.bits - (t.signed and 1 or 0)
      others[#others + 1] = t.name
      table.insert(digits <= f32.digits and (t.exponent or 0) <= f32.exponent and exact or wide, t.name)
    end
  end
  return others, exact, wide
end

-- The values of stored_float.h.in for a dtype.
local function float_values(types, t, made, is_cuda)
  if t.digits > M.MOST_DIGITS or t.compute ~= "f32" or 1 + t.exponent + t.digits - 1 ~= t.bits then
    error(string.format("bug: dsl/types.lua: %s: no casts can be made of its row", t.name))
  end
  local fraction, bias = t.digits - 1, (1 << (t.exponent - 1)) - 1
  local low, top = (1 << (t.bits - 1)) - 1, (1 << t.exponent) - 1
  local infinity = t.finite and low or top << fraction
  local others, exact, wide = casts_of(types, t, made)
  return {
    name = t.name, word = "u" .. t.bits, is_cuda = is_cuda, is_finite = t.finite or false,
    low = hex(low), sign = hex(low + 1), sign_shift = 32 - t.bits, drop = 23 - fraction, half = hex(1 << (22 - fraction)),
    rebias = hex((127 - bias) << 23), unit = hex((151 - bias - fraction) << 23), hidden = hex(1 << fraction),
    least = hex((128 - bias) << 23), beyond = hex((127 + (t.finite and top + 1 or top) - bias) << 23),
    infinity = hex(infinity), nan = hex(t.finite and low or infinity | 1 << (fraction - 1)), one = hex(bias << fraction),
    others = others, exact = exact, wide = wide,
  }
end

-- The values of complex.h.in for a dtype, whose parts are the float of its exponent and digits.
local function complex_values(types, complex)
  local part, others = nil, {}
  for _, t in ipairs(types.list) do
    if t.kind == "float" and t.exponent == complex.exponent and t.digits == complex.digits then part = t end
  end
  for _, t in ipairs(types.list) do
    if t ~= part and t.kind ~= "complex" and t.kind ~= "bits" then others[#others + 1] = t.name end
  end
  return { name = complex.name, element = types.by_name["b" .. complex.bits].c, part = part.name, part_bits = part.bits, others = others }
end

local function text_of(read, name, values)
  local file = FOLDER .. name .. ".h.in"
  return template.render(template.parse(file, read(file), read), values)
end

-- The texts of the floats of a build, for a target; "" in a build that has none.
local function floats(types, read, is_cuda)
  local out, made = {}, {}
  for _, t in ipairs(types.list) do
    if t.is_made and t.kind == "float" then
      out[#out + 1] = text_of(read, "stored_float", float_values(types, t, made, is_cuda))
      made[t.name] = true
    end
  end
  return table.concat(out, "\n")
end

-- A line that includes the header, behind that of kernel.h; "" in a build that has none.
function M.include(types) return has_any(types) and string.format('#include "%s"\n', M.HEADER) or "" end

-- The header, or nil. read: path under the root -> text
function M.header(types, read)
  if not has_any(types) then return nil end
  local out = { "#ifndef QUERN_KERNEL_DTYPES_H\n#define QUERN_KERNEL_DTYPES_H\n\n#define Q_WHERE(condition) Q_MASK(m32, condition)\n",
                floats(types, read, false), "#undef Q_WHERE\n" }
  for _, t in ipairs(types.list) do
    if t.kind == "bits" and t.bits > 64 then
      out[#out + 1] = text_of(read, "wide", { name = t.name, bits = t.bits, bytes = t.size })
    end
  end
  for _, t in ipairs(types.list) do
    if t.kind == "complex" then out[#out + 1] = text_of(read, "complex", complex_values(types, t)) end
  end
  out[#out + 1] = "#endif\n"
  return table.concat(out, "\n")
end

-- The same for a target whose conditions are bool and no masks; "" in a build that has none.
function M.text(types, read)
  if not has_any(types) then return "" end
  return "#define Q_WHERE(condition) (condition)\n\n" .. floats(types, read, true) .. "#undef Q_WHERE\n"
end

return M
