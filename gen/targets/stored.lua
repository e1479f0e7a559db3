-- SPDX-License-Identifier: Apache-2.0
--
-- Storage types and casts of float dtypes, generated from their rows in dsl/types.lua, for any target. They serve the dtypes that
-- the hand-written headers of templates/ do not have (is_made). A build without such dtypes has no text of this.

local template = require "gen.base.template"

local M = {}

M.MOST_DIGITS = 14 -- of such a float: a limit of the rounding to odd in the headers

local FOLDER = "templates/c/headers/"

-- Whether a build has a dtype with generated text.
function M.has_any(types)
  for _, t in ipairs(types.list) do
    if t.is_made then return true end
  end
  return false
end

local function hex(value) return string.format("0x%x", value) end

-- The dtypes that a generated float has casts with, by way of f32. Three lists: all of them; those with no number that f32 lacks
-- (exact); the others (wide). made: the generated dtypes before it, as a set
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
local function float_values(types, t, made, has_masks)
  if t.digits > M.MOST_DIGITS or t.compute ~= "f32" or 1 + t.exponent + t.digits - 1 ~= t.bits then
    error(string.format("bug: dsl/types.lua: %s: no casts can be made of its row", t.name))
  end
  local fraction, bias = t.digits - 1, (1 << (t.exponent - 1)) - 1
  local low, top = (1 << (t.bits - 1)) - 1, (1 << t.exponent) - 1
  local infinity = t.finite and low or top << fraction
  local others, exact, wide = casts_of(types, t, made)
  return {
    name = t.name, word = "u" .. t.bits, has_masks = has_masks, is_finite = t.finite or false,
    low = hex(low), sign = hex(low + 1), sign_shift = 32 - t.bits, drop = 23 - fraction, half = hex(1 << (22 - fraction)),
    rebias = hex((127 - bias) << 23), unit = hex((151 - bias - fraction) << 23), hidden = hex(1 << fraction),
    least = hex((128 - bias) << 23), beyond = hex((127 + (t.finite and top + 1 or top) - bias) << 23),
    infinity = hex(infinity), nan = hex(t.finite and low or infinity | 1 << (fraction - 1)), one = hex(bias << fraction),
    others = others, exact = exact, wide = wide,
  }
end

-- The text of a template of dtypes. read: path under the root -> text
function M.text_of(read, name, values)
  local file = FOLDER .. name .. ".h.in"
  return template.render(template.parse(file, read(file), read), values)
end

-- The texts of the generated floats of a build. has_masks: the text is C, with selections by masks; else CUDA, by conditions
function M.floats(types, read, has_masks)
  local out, made = {}, {}
  for _, t in ipairs(types.list) do
    if t.is_made and t.kind == "float" then
      out[#out + 1] = M.text_of(read, "stored_float", float_values(types, t, made, has_masks))
      made[t.name] = true
    end
  end
  return table.concat(out, "\n")
end

return M
