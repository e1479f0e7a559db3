-- SPDX-License-Identifier: Apache-2.0
--
-- Numbers as bits: f64 and f32 bit patterns made and rounded with integers only, so that neither a locale nor the
-- rounding mode of a host can change what is generated. Knows no ops and no C.

local M = {}

-- Bits of an f64.
function M.f64_bits(value)
  if value ~= value then return 0x7ff8000000000000 end
  return (string.unpack("<i8", string.pack("<d", value)))
end

-- The bits of infinity and of the canonical NaN of a float dtype. t: its row, { exponent, digits, finite }. A dtype without
-- infinity (finite) has one pattern, all ones, for both: a number that is too large becomes NaN.
function M.float_limits(t)
  if t.finite then
    local all_ones = (1 << (t.exponent + t.digits - 1)) - 1
    return all_ones, all_ones
  end
  local infinity = ((1 << t.exponent) - 1) << (t.digits - 1)
  return infinity, infinity | 1 << (t.digits - 2)
end

-- The bits of the float nearest to an f64 (ties to even).
function M.float_bits(value, t)
  if t.exponent == 11 then return M.f64_bits(value) end
  local fraction = t.digits - 1 -- bits of the field
  local largest, nan = M.float_limits(t)
  if value ~= value then return nan end
  local bits = M.f64_bits(value)
  local sign = (bits >> 63) << (t.exponent + fraction)
  local exponent = (bits >> 52) & 0x7ff
  local mantissa = bits & 0xfffffffffffff
  if exponent == 0x7ff then return t.finite and nan or sign | largest end
  if exponent == 0 then return sign end -- an f64 subnormal is far below half of the least number
  mantissa = mantissa | 0x10000000000000
  local shift = 52 - fraction
  local e = exponent - 1023 + (1 << (t.exponent - 1)) - 1
  if e <= 0 then
    shift = shift + 1 - e
    e = 0
  end
  if shift > 54 then return sign end
  local kept = mantissa >> shift
  local rest = mantissa & ((1 << shift) - 1)
  local half = 1 << (shift - 1)
  if rest > half or (rest == half and kept & 1 == 1) then kept = kept + 1 end
  -- the implicit bit, and a carry out of the mantissa, both add into the exponent field
  local result = e > 0 and ((e - 1) << fraction) + kept or kept
  if t.finite and result >= nan then return nan end
  return sign | math.min(result, largest)
end

-- The rows of f32 and f64, as far as this file reads rows.
M.F32, M.F64 = { exponent = 8, digits = 24 }, { exponent = 11, digits = 53 }

function M.f32_bits(value) return M.float_bits(value, M.F32) end

-- The value of the float with these bits, as an f64; every NaN becomes the canonical NaN.
function M.float_value(bits, t)
  if t.exponent == 11 then return M.f64_value(bits) end
  local fraction = t.digits - 1
  local mantissa, exponent = bits & ((1 << fraction) - 1), bits >> fraction & ((1 << t.exponent) - 1)
  local value
  if t.finite and bits & M.float_limits(t) == M.float_limits(t) then
    value = 0 / 0
  elseif exponent == (1 << t.exponent) - 1 and not t.finite then
    value = mantissa == 0 and math.huge or 0 / 0
  else
    local lead = exponent == 0 and 0 or 1 << fraction
    value = (lead | mantissa) * 2.0 ^ (math.max(exponent, 1) - (1 << (t.exponent - 1)) + 1 - fraction)
  end
  return bits >> (t.exponent + fraction) & 1 == 1 and -value or value
end

-- An f64 rounded to a float dtype.
function M.rounded(value, t)
  if t.exponent == 11 or value ~= value then return value end
  return M.float_value(M.float_bits(value, t), t)
end

-- The value of the f32 with these bits, as an f64.
function M.f32_value(bits)
  return (string.unpack("<f", string.pack("<I4", bits)))
end

function M.f64_value(bits)
  return (string.unpack("<d", string.pack("<i8", bits)))
end

-- The bits of 1 / x, for the bits of x: nil unless x is a power of two, either sign, and its inverse is a number. t: f32 or f64
function M.exact_inverse(bits, t)
  local x = M.float_value(bits, t)
  local is_power = bits & (1 << (t.digits - 1)) - 1 == 0 and x ~= 0 and x - x == 0
  return is_power and M.float_bits(1 / x, t) or nil
end

-- An integer wrapped to a width: signed or unsigned value range (u64 stays in two's complement)
function M.wrap(value, bits, signed)
  if bits >= 64 then return value end
  value = value & ((1 << bits) - 1)
  if signed and value >> (bits - 1) == 1 then value = value - (1 << bits) end
  return value
end

-- Truncated division of 64-bit integers: quotient and remainder. By zero both are 0; MIN / -1 wraps to MIN.
function M.divided(a, b, signed)
  if b == 0 then return 0, 0 end
  if signed then
    local q = a // b
    local r = a - q * b
    if r ~= 0 and (a ~ b) < 0 then return q + 1, r - b end
    return q, r
  end
  if b < 0 then -- 2^63 or more
    if math.ult(a, b) then return 0, a end
    return 1, a - b
  end
  local q = ((a >> 1) // b) << 1
  local r = a - q * b
  if not math.ult(r, b) then return q + 1, r - b end
  return q, r
end

-- The greatest common divisor of two integers, as an unsigned one.
function M.gcd(a, b, signed)
  if signed and a < 0 then a = -a end
  if signed and b < 0 then b = -b end
  while b ~= 0 do
    local _, r = M.divided(a, b, false)
    a, b = b, r
  end
  return a
end

-- A number from 0 to 10^6 with at most three decimals: "0.5", "1"
function M.decimal(value)
  local thousandths = math.floor(value * 1000 + 0.5)
  local text = string.format("%d.%03d", thousandths // 1000, thousandths % 1000)
  return (text:gsub("0+$", ""):gsub("%.$", ""))
end

-- A number as people write it, with the point of the C locale.
function M.text(value)
  if math.type(value) == "integer" then return string.format("%d", value) end
  if value ~= value or value == math.huge or value == -math.huge then return M.hex(value) end
  local text = string.format("%.17g", value)
  local short = string.format("%.15g", value)
  if tonumber(short) == value then text = short end
  return (text:gsub("[^%d%-+e]", "."))
end

-- A finite number of a float dtype as a decimal of at most 6 digits, "0.5", "-3.0", or nil. The decimal reads back as the same
-- number; with is_exact it equals the number.
function M.short(value, t, is_exact)
  local size = math.abs(value)
  if size < 1e-4 or size >= 1e6 then return nil end
  local bits = M.f64_bits(size)
  -- size is m / 2^k, and m has all bits of the dtype's significand
  local m, k = (bits & 0xfffffffffffff | 0x10000000000000) >> 53 - t.digits, 1075 - (bits >> 52) - (53 - t.digits)
  local power, nearness = 1, 2.0 ^ (3 - t.digits)
  for digits = 0, 9 do
    local n = math.floor(size * power + 0.5)
    if n >= 1000000 then return nil end
    -- n is near size * power, so the exact distance, in units of 2^-k / power, is small and right even if its terms wrap
    if math.abs(size * power - n) <= n * nearness then
      local distance = math.abs((k < 64 and n << k or 0) - m * power)
      -- within half a unit of m is read as m; below a power of two within a quarter
      local factor = m == 1 << (t.digits - 1) and 4 or 2
      if distance == 0 or (not is_exact and factor * distance < power) then
        local text = string.format("%0" .. digits + 1 .. "d", n)
        return (value < 0 and "-" or "") .. text:sub(1, #text - digits) .. "." .. (digits == 0 and "0" or text:sub(-digits))
      end
    end
    power = power * 10
  end
end

-- "0x1.8p+1" of a finite f64, by integers
function M.hex(value)
  if value ~= value then return "nan" end
  if value == math.huge then return "inf" elseif value == -math.huge then return "-inf" end
  local bits = M.f64_bits(value)
  local sign = bits < 0 and "-" or ""
  local exponent, mantissa = (bits >> 52) & 0x7ff, bits & 0xfffffffffffff
  if exponent == 0 and mantissa == 0 then return sign .. "0" end
  local digits = string.format("%013x", mantissa):gsub("0+$", "")
  local lead = exponent == 0 and 0 or 1
  local power = exponent == 0 and -1022 or exponent - 1023
  return string.format("%s0x%d%s%sp%+d", sign, lead, digits == "" and "" or ".", digits, power)
end

return M
