-- SPDX-License-Identifier: Apache-2.0
--
-- Arithmetic of dtypes on Lua's numbers: one rounding per operation, integers modulo 2^bits, conversions that saturate. The
-- numbers of a float dtype are f64 here; its row says its exponent and significand bits. Knows dtypes as rows, no ops and no C.

local exact = require "gen.base.exact"
local number = require "gen.base.number"

local M = {}

function M.is_negative(x) return x < 0 or (x == 0 and math.type(x) == "float" and 1 / x < 0) end
local is_negative = M.is_negative

---------------------------------------------------------------------------------------------------- floats

-- The nearest integer, ties to even.
function M.rint(x)
  if x ~= x or math.abs(x) >= 0x1p52 then return x end
  local magic = x < 0 and -0x1p52 or 0x1p52
  local r = (x + magic) - magic
  return r == 0 and (x < 0 or 1 / x < 0) and -0.0 or r
end

local function sign_kept(x, r) return r == 0 and (x < 0 or 1 / x < 0) and -0.0 or r + 0.0 end
function M.floor(x) return (x ~= x or math.abs(x) >= 0x1p52) and x or sign_kept(x, math.floor(x)) end
function M.ceil(x) return (x ~= x or math.abs(x) >= 0x1p52) and x or sign_kept(x, math.ceil(x)) end
function M.trunc(x) return is_negative(x) and M.ceil(x) or M.floor(x) end

M.sqrt = exact.sqrt

function M.remainder(x, y)
  if x ~= x or y ~= y or math.abs(x) == math.huge or y == 0 then return 0 / 0 end
  return math.fmod(x, y)
end

function M.copysign(x, y)
  x = is_negative(x) and -x or x
  return y == y and is_negative(y) and -x or x
end

-- The larger of two numbers; NaN if either is, +0 above -0.
function M.larger(x, y)
  if x ~= x or y ~= y then return 0 / 0 end
  if x == y then return is_negative(x) and y or x end
  return x > y and x or y
end

function M.smaller(x, y)
  if x ~= x or y ~= y then return 0 / 0 end
  if x == y then return is_negative(x) and x or y end
  return x < y and x or y
end

-- x * y + z, to be rounded to t; rounded once.
function M.fma(x, y, z, t)
  if 2 * t.digits < 53 then return exact.odd_sum(x * y, z) end -- the product is exact in f64
  return exact.fma(x, y, z)
end

---------------------------------------------------------------------------------------------------- integers

function M.less(x, y, t)
  if t.kind == "integer" and not t.signed then return math.ult(x, y) end
  return x < y
end

-- How many of the type's bits are 1.
function M.count_bits(x, t)
  local count = 0
  for bit = 0, t.bits - 1 do count = count + (x >> bit & 1) end
  return count
end

-- x << count and x >> count, for counts outside the width too.
function M.shifted_left(x, count, t) return (count < 0 or count >= t.bits) and 0 or x << count end
function M.shifted_right(x, count, t)
  local is_outside = count < 0 or count >= t.bits
  if t.signed then return x // (1 << math.min(is_outside and t.bits - 1 or count, 62)) // (count > 62 and 2 or 1) end
  return is_outside and 0 or (t.bits < 64 and x & ((1 << t.bits) - 1) or x) >> count
end

---------------------------------------------------------------------------------------------------- conversions

-- A float as an integer type: truncated, saturated, NaN to 0.
function M.to_integer(x, t)
  if x ~= x then return 0 end
  local low = t.signed and -(2.0 ^ (t.bits - 1)) or 0.0
  local high = 2.0 ^ (t.signed and t.bits - 1 or t.bits)
  if x <= low then return t.bits == 64 and t.signed and math.mininteger or math.tointeger(low) end
  if x >= high then return t.bits == 64 and (t.signed and math.maxinteger or -1) or (1 << (t.signed and t.bits - 1 or t.bits)) - 1 end
  x = x < 0 and math.ceil(x) or math.floor(x)
  if x >= 0x1p63 then return math.tointeger(x - 0x1p64) end
  return math.tointeger(x)
end

-- An integer of a type as a float, not yet rounded.
function M.from_integer(x, t)
  if not t.signed and t.bits == 64 and x < 0 then return (x >> 1 | x & 1) * 2.0 end
  return x + 0.0
end

-- A result as a number of the type: rounded, wrapped.
function M.normal(x, t)
  if t.kind == "float" then return number.rounded(x, t) end
  return number.wrap(x, t.bits, t.signed)
end

-- A cast, with its one rounding.
function M.cast(x, from, to)
  if to.kind == "bool" then return x ~= 0 and 1 or 0 end
  if to.kind == "float" then
    return number.rounded(from.kind == "float" and x or from.kind == "bool" and x + 0.0 or M.from_integer(x, from), to)
  end
  if from.kind == "float" then return M.to_integer(x, to) end
  return number.wrap(x, to.bits, to.signed)
end

return M
