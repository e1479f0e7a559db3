-- SPDX-License-Identifier: Apache-2.0
--
-- fma and sqrt of f64, rounded once. Knows numbers only.

local number = require "gen.base.number"

local M = {}

---------------------------------------------------------------------------------------------------- sums and products without error

-- Knuth's sum: s + e is x + y exactly.
function M.two_sum(x, y)
  local s = x + y
  local v = s - x
  return s, (x - (s - v)) + (y - v)
end
local two_sum = M.two_sum

local function split(a)
  local t = 0x1p27 * a + a
  local high = t - (t - a)
  return high, a - high
end

-- Dekker's product: p + e is x * y exactly, away from overflow and underflow.
local function two_product(x, y)
  local p = x * y
  local a, b = split(x)
  local c, d = split(y)
  return p, ((a * c - p) + a * d + b * c) + b * d
end

-- x + y rounded to odd: where it is not exact, the neighbour with an odd last bit.
function M.odd_sum(x, y)
  local s, e = two_sum(x, y)
  if e ~= e or e == 0 then return s end
  local bits = number.f64_bits(s)
  if bits & 1 == 0 then s = number.f64_value(((e > 0) == (s > 0)) and bits + 1 or bits - 1) end
  return s
end

---------------------------------------------------------------------------------------------------- fma

local WIDTH, MASK = 24, 0xffffff -- bits of a limb
local ORIGIN = 2208 -- the place of the bit of value 1

-- The whole number m and the exponent e with x = m * 2^e, for a finite x that is not 0; m > 0.
local function parts_of(x)
  local bits = number.f64_bits(x)
  local exponent, mantissa = bits >> 52 & 0x7ff, bits & 0xfffffffffffff
  if exponent == 0 then return mantissa, -1074 end
  return mantissa | 0x10000000000000, exponent - 1075
end

local function limbs_of(m) return { m & MASK, m >> WIDTH & MASK, m >> 2 * WIDTH } end

-- Adds a number of some limbs, times 2^exponent and the sign, to `sum`.
local function accumulate(sum, limbs, exponent, sign)
  local place = ORIGIN + exponent
  local at, shift = place // WIDTH, place % WIDTH
  for k, limb in ipairs(limbs) do
    local low, high = (limb & (1 << WIDTH - shift) - 1) << shift, limb >> WIDTH - shift
    sum[at + k] = (sum[at + k] or 0) + sign * low
    sum[at + k + 1] = (sum[at + k + 1] or 0) + sign * high
  end
end

-- Carries, so that all limbs are of WIDTH bits. Returns the sign; the number is then its magnitude.
local function normalise(sum, last)
  local carry = 0
  for k = 1, last do
    local total = (sum[k] or 0) + carry
    sum[k] = total & MASK
    carry = (total - sum[k]) // (1 << WIDTH)
  end
  if carry >= 0 then return 1 end
  for k = 1, last do sum[k] = -sum[k] end
  sum[last] = sum[last] - carry * (1 << WIDTH)
  normalise(sum, last)
  return -1
end

-- The f64 nearest to the number.
local function rounded(sum, last, sign)
  while last > 0 and sum[last] == 0 do last = last - 1 end
  if last == 0 then return 0.0 end
  local top = (last - 1) * WIDTH
  while sum[last] >> top - (last - 1) * WIDTH > 1 do top = top + 1 end
  local function bit(place) return place < 0 and 0 or sum[place // WIDTH + 1] >> place % WIDTH & 1 end
  local lowest = math.max(top - 52, ORIGIN - 1074)
  local kept, is_more = 0, false
  for place = top, lowest, -1 do kept = kept << 1 | bit(place) end
  for place = lowest - 2, 0, -1 do
    if bit(place) == 1 then
      is_more = true
      break
    end
  end
  if bit(lowest - 1) == 1 and (is_more or kept & 1 == 1) then kept = kept + 1 end
  return (sign + 0.0) * kept * 2.0 ^ (lowest - ORIGIN)
end

-- x * y + z in whole numbers, of finite numbers that are not 0.
local function fma_slowly(x, y, z)
  local sum, last = {}, (ORIGIN + 2100) // WIDTH
  local m, e = parts_of(x)
  local n, f = parts_of(y)
  local a, b, product = limbs_of(m), limbs_of(n), { 0, 0, 0, 0, 0, 0, 0 }
  for j = 1, 3 do
    for k = 1, 3 do
      product[j + k - 1] = product[j + k - 1] + (a[j] * b[k] & MASK)
      product[j + k] = product[j + k] + (a[j] * b[k] >> WIDTH)
    end
  end
  for k = 1, 6 do
    product[k + 1] = product[k + 1] + (product[k] >> WIDTH)
    product[k] = product[k] & MASK
  end
  accumulate(sum, product, e + f, (x < 0) == (y < 0) and 1 or -1)
  local k, g = parts_of(z)
  accumulate(sum, limbs_of(k), g, z < 0 and -1 or 1)
  return rounded(sum, last, normalise(sum, last))
end

local function is_within(x, low, high)
  x = math.abs(x)
  return x >= low and x <= high
end

-- x * y + z, rounded once.
function M.fma(x, y, z)
  local p = x * y
  if x == 0 or y == 0 or x ~= x or y ~= y or z ~= z or math.abs(x) == math.huge or math.abs(y) == math.huge then return p + z end
  if math.abs(z) == math.huge then return z end
  if z == 0 then return p end
  if is_within(x, 0x1p-450, 0x1p450) and is_within(y, 0x1p-450, 0x1p450) and is_within(z, 0x1p-800, 0x1p1000) then
    -- Boldo and Melquiond: the sum of three numbers by a rounding to odd
    local high, low = two_product(x, y)
    local t, u = two_sum(z, low)
    local v, w = two_sum(high, t)
    return v + M.odd_sum(u, w)
  end
  return fma_slowly(x, y, z)
end

M.fma_slowly = fma_slowly -- for tests

---------------------------------------------------------------------------------------------------- sqrt

-- The square root, rounded once; of -0 it is -0.
function M.sqrt(x)
  if x ~= x or x < 0 then return 0 / 0 end
  if x == 0 or x == math.huge then return x end
  if x < 0x1p-500 then return M.sqrt(x * 0x1p600) * 0x1p-300 end
  if x > 0x1p500 then return M.sqrt(x * 0x1p-600) * 0x1p300 end
  local r = x ^ 0.5 -- within a unit in the last place
  local bits = number.f64_bits(r)
  local up, down = number.f64_value(bits + 1) - r, r - number.f64_value(bits - 1)
  local rest = M.fma(-r, r, x) -- exact: a multiple of the square of these distances
  if rest > r * up then return r + up end
  if rest <= -r * down then return r - down end
  return r
end

return M
