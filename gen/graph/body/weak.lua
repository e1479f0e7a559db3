-- SPDX-License-Identifier: Apache-2.0
--
-- Weak values: values that take the dtype of the other operand. { weak = number } is a literal or an expression of literals
-- alone; { tree = operation, [is_float], values } is a host's parameter, or an expression with one. runtime/lang/typing/weak.c computes
-- the same. is_pattern: a hex literal from 2^63 on, in Lua an integer below 0: signed types take that integer, others the number
-- as written. Expressions of literals are signed. Pure: knows dtypes as tables, no nodes and no positions.

local primitives = require "gen.graph.dag.primitives"

local M = {}

function M.is_weak(value) return value.weak ~= nil or value.tree ~= nil end

-- Whether an integer that meets the weak value becomes a float.
function M.is_float(weak) return weak.is_float or math.type(weak.weak) == "float" end

-- An integer as a float, a pattern by its unsigned value; any other value unchanged.
function M.as_float(value)
  if math.type(value.weak) ~= "integer" then return value end
  return { weak = value.is_pattern and (value.weak >> 1 | value.weak & 1) * 2.0 or value.weak + 0.0 }
end

---------------------------------------------------------------------------------------------------- numbers to constants

-- A number as an f64 that is rounded to the type once: an integer to a narrower one not by way of f64, so what f64 cannot hold
-- of it is folded into the last bit. A float is left as it is: -0.0 + 0.0 is another number.
function M.rounded(t, number, is_pattern)
  if is_pattern then return M.rounded(t, number >> 1 | number & 1) * 2.0 end
  if math.type(number) == "float" then return number end
  if t.digits >= 53 or (number > -0x20000000000000 and number < 0x20000000000000) then return number + 0.0 end
  local kept = number & ~0x7ff
  return (kept == number and kept or kept | 0x800) + 0.0
end

-- Whether an integer type has the number, or, as hex literals may name any bit pattern, its low bits.
function M.fits(t, integer)
  if t.bits == 64 or (integer >= 0 and integer >> t.bits == 0) then return true end
  return (t.signed or false) and integer < 0 and integer >= -(1 << (t.bits - 1))
end

-- The whole number that an integer type has for a number, the nearest end of its range if need be; nil if there is none.
function M.saturated(t, number, is_pattern)
  if is_pattern and not t.signed then return t.bits == 64 and number or (1 << t.bits) - 1 end
  if math.type(number) == "float" then
    if math.floor(number) ~= number then return nil end
    if number >= 0x1p63 then
      if t.bits == 64 and not t.signed then -- holds some of them
        return number >= 0x1p64 and -1 or math.tointeger(number - 0x1p63) + math.mininteger
      end
      number = math.maxinteger
    else
      number = number < -0x1p63 and math.mininteger or math.tointeger(number)
    end
  end
  number = math.max(number, t.signed and -(1 << (t.bits - 1)) or 0)
  if t.bits == 64 then return number end
  return math.min(number, (1 << (t.signed and t.bits - 1 or t.bits)) - 1)
end

---------------------------------------------------------------------------------------------------- numbers among themselves

-- These return a weak value, or nil and what is wrong.
function M.arithmetic(op, a, b)
  if a.tree or b.tree then
    return { tree = primitives.of_operator[op].name, a, b, is_float = M.is_float(a) or M.is_float(b) or op == "/" }
  end
  local x, y = a.weak, b.weak
  if op == "/" then return { weak = x / y } end -- true division, as for operands
  local result
  if op == "+" then result = x + y elseif op == "-" then result = x - y else result = x * y end
  if math.type(result) == "integer" then
    local exact = op == "+" and (x + 0.0) + y or op == "-" and (x + 0.0) - y or (x + 0.0) * y
    if exact ~= result + 0.0 and math.abs(exact) >= 0x1p63 then return nil, "the number does not fit 64 bits" end
  end
  return { weak = result }
end

function M.negative(a)
  if a.tree then return { tree = "neg", a, is_float = a.is_float } end
  return { weak = -a.weak }
end

-- Of numbers only.
function M.bitwise(op, a, b)
  local x, y = a.weak, b.weak
  if math.type(x) ~= "integer" or math.type(y) ~= "integer" then return nil, string.format("'%s' of floats", op) end
  if op == "&" then return { weak = x & y } elseif op == "|" then return { weak = x | y } end
  return { weak = x ~ y }
end

function M.shift(op, a, count)
  local n = count.weak
  if math.type(a.weak) ~= "integer" or math.type(n) ~= "integer" or n < 0 or n > 62 then return nil, "cannot shift these numbers" end
  return { weak = op == "<<" and a.weak << n or a.weak // (1 << n) }
end

return M
