-- SPDX-License-Identifier: Apache-2.0
--
-- The type system of the dtypes of dsl/types.lua: sets, promotion, names that follow from a dtype.
-- Knows no ops and no C.

local M = {}

-- The rows of dsl/types.lua that a build has, and the names of dtypes in preview that it has not, as a set. is_preview: it has them
function M.kept(dtypes, is_preview)
  local list, has_bits, left_out = {}, {}, {}
  local function is_kept(t)
    if t.kind == "bits" then return has_bits[t.bits] end
    return t.built ~= "preview" or is_preview
  end
  for _, t in ipairs(dtypes) do
    if t.kind ~= "bits" and is_kept(t) then has_bits[t.bits] = true end
    if t.kind ~= "bits" and not is_kept(t) then left_out[t.name] = true end
  end
  for _, t in ipairs(dtypes) do
    if is_kept(t) then list[#list + 1] = t end
  end
  return list, left_out
end

-- The dtype of a value of dtype t where a float is needed. A float or complex dtype stays. An integer or a bool becomes the smallest
-- float compute dtype with all its values, or the largest one if none has them (integers of 64 bits).
local function floating(dtypes, t)
  if t.kind ~= "integer" and t.kind ~= "bool" then return t.name end
  local digits, largest = t.kind == "bool" and 1 or t.bits - (t.signed and 1 or 0), nil
  for _, float in ipairs(dtypes) do
    if float.kind == "float" and float.compute == float.name then
      if float.digits >= digits then return float.name end
      largest = float.name
    end
  end
  return largest
end

-- dtypes: list of dtype tables in order, made by spec.lua. Returns the type system.
function M.new(dtypes)
  local self = { list = dtypes, by_name = {}, sets = {} }
  local sets = { floating = {}, integer = {}, integral = {}, numeric = {}, real = {}, all = {} }
  for index, t in ipairs(dtypes) do
    t.index = index - 1
    t.size = t.bits // 8
    if not t.c then -- of its row: see gen/targets/stored.lua
      t.is_made, t.c = true, t.kind == "complex" and t.name or t.name .. "_s"
    end
    t.floating = floating(dtypes, t)
    self.by_name[t.name] = t
    if t.kind == "float" then table.insert(sets.floating, t.name) end
    if t.kind == "integer" then table.insert(sets.integer, t.name) end
    if t.kind == "bool" or t.kind == "integer" then table.insert(sets.integral, t.name) end
    if t.kind == "float" or t.kind == "integer" then table.insert(sets.numeric, t.name) end
    if t.kind ~= "bits" and t.kind ~= "complex" then table.insert(sets.real, t.name) end
    if t.kind ~= "bits" then table.insert(sets.all, t.name) end
  end
  self.sets = sets
  return self
end

-- The dtype of the bits of a dtype's elements, which copies use.
function M.bits_dtype(t)
  return "b" .. t.bits
end

local function integer_of(types, signed, bits)
  for _, t in ipairs(types.list) do
    if t.kind == "integer" and (t.signed or false) == signed and t.bits == bits then return t.name end
  end
end

-- Whether a float dtype has every number of another.
local function holds(x, y) return x.exponent >= y.exponent and x.digits >= y.digits end

-- The least dtype of a kind that has every number of both: one of them, or, as for f16 with bf16, a third.
local function least_of_both(types, kind, x, y)
  local least
  for _, t in ipairs(types.list) do
    if t.kind == kind and holds(t, x) and holds(t, y) and (not least or t.bits < least.bits) then least = t end
  end
  return least and least.name
end

-- The common dtype of two operands, or nil and the reason. a, b: names
function M.common(types, a, b)
  if a == b then return a end
  local x, y = types.by_name[a], types.by_name[b]
  if x.kind == "bits" or y.kind == "bits" then return nil, "bits do not promote" end
  if x.kind == "bool" then return b end
  if y.kind == "bool" then return a end
  if x.kind == "integer" and y.kind ~= "integer" then return b end
  if y.kind == "integer" and x.kind ~= "integer" then return a end
  if x.kind ~= "integer" then
    return least_of_both(types, (x.kind == "complex" or y.kind == "complex") and "complex" or "float", x, y)
  end
  if (x.signed or false) == (y.signed or false) then return x.bits > y.bits and a or b end
  local signed, unsigned = x, y
  if not x.signed then signed, unsigned = y, x end
  if signed.bits > unsigned.bits then return signed.name end
  local wider = integer_of(types, true, unsigned.bits * 2)
  if not wider then
    return nil, string.format("%s with %s has no common dtype: cast one, (i64)x or (f64)x", a, b)
  end
  return wider
end

return M
