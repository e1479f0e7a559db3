-- A DAG on numbers, in Lua: what the examples of a spec are checked with, without a compiler. f32 is rounded after each
-- operation; fma of f64 may miss its one rounding by the last bit. Not how anything is computed at run time.

local number = require "gen.base.number"
local dag_of = require "gen.graph.dag"

local M = {}

local function f32(x) return number.f32_value(number.f32_bits(x)) end

-- Knuth's sum: s + e is x + y exactly.
local function two_sum(x, y)
  local s = x + y
  local v = s - x
  return s, (x - (s - v)) + (y - v)
end

-- Dekker's product: p + e is x * y exactly, away from overflow and underflow.
local function two_product(x, y)
  local function split(a)
    local t = 0x1p27 * a + a
    local high = t - (t - a)
    return high, a - high
  end
  local p = x * y
  local a, b = split(x)
  local c, d = split(y)
  return p, ((a * c - p) + a * d + b * c) + b * d
end

local function fma(x, y, z, type_name)
  if type_name == "f32" then
    -- the product is exact in f64; the sum is rounded to odd, so that its rounding to f32 is the only one
    local s, e = two_sum(x * y, z)
    if e == e and e ~= 0 then
      local bits = number.f64_bits(s)
      if bits & 1 == 0 then
        bits = ((e > 0) == (s > 0)) and bits + 1 or bits - 1
        s = number.f64_value(bits)
      end
    end
    return f32(s)
  end
  local p, e = two_product(x, y)
  if e ~= e then return x * y + z end
  local s, lost = two_sum(p, z)
  return s + (lost + e)
end

local function rint(x)
  if x ~= x or math.abs(x) >= 0x1p52 then return x end
  local magic = x < 0 and -0x1p52 or 0x1p52
  local r = (x + magic) - magic
  return r == 0 and (x < 0 or 1 / x < 0) and -0.0 or r
end

local function sign_kept(x, r) return r == 0 and (x < 0 or 1 / x < 0) and -0.0 or r + 0.0 end
local function floor(x) return (x ~= x or math.abs(x) >= 0x1p52) and x or sign_kept(x, math.floor(x)) end
local function ceil(x) return (x ~= x or math.abs(x) >= 0x1p52) and x or sign_kept(x, math.ceil(x)) end
local function is_negative(x) return x < 0 or (x == 0 and math.type(x) == "float" and 1 / x < 0) end

local function larger(x, y)
  if x ~= x or y ~= y then return 0 / 0 end
  if x == y then return is_negative(x) and y or x end
  return x > y and x or y
end
local function smaller(x, y)
  if x ~= x or y ~= y then return 0 / 0 end
  if x == y then return is_negative(x) and x or y end
  return x < y and x or y
end

-- A float as an integer type: truncated, saturated, NaN to 0.
local function to_integer(x, t)
  if x ~= x then return 0 end
  local low = t.signed and -(2.0 ^ (t.bits - 1)) or 0.0
  local high = 2.0 ^ (t.signed and t.bits - 1 or t.bits)
  if x <= low then return t.bits == 64 and t.signed and math.mininteger or math.tointeger(low) end
  if x >= high then return t.bits == 64 and (t.signed and math.maxinteger or -1) or (1 << (t.signed and t.bits - 1 or t.bits)) - 1 end
  x = x < 0 and math.ceil(x) or math.floor(x)
  if x >= 0x1p63 then return math.tointeger(x - 0x1p64) end
  return math.tointeger(x)
end

local function from_integer(x, t)
  if not t.signed and t.bits == 64 and x < 0 then return (x >> 1 | x & 1) * 2.0 end
  return x + 0.0
end

local function less(x, y, t)
  if t.kind == "integer" and not t.signed then return math.ult(x, y) end
  return x < y
end

local UNARY_FLOAT = {
  neg = function(x) return -x end, abs = function(x) return is_negative(x) and -x or x end, rint = rint, floor = floor, ceil = ceil,
  trunc = function(x) return is_negative(x) and ceil(x) or floor(x) end,
  sqrt = function(x) return x < 0 and 0 / 0 or x == 0 and x or x ^ 0.5 end,
}
local BINARY_FLOAT = {
  add = function(x, y) return x + y end, sub = function(x, y) return x - y end, mul = function(x, y) return x * y end,
  div = function(x, y) return x / y end, maximum = larger, minimum = smaller,
  rem = function(x, y)
    if x ~= x or y ~= y or math.abs(x) == math.huge or y == 0 then return 0 / 0 end
    return math.fmod(x, y)
  end,
  copysign = function(x, y)
    x = is_negative(x) and -x or x
    return y == y and is_negative(y) and -x or x
  end,
}
local INTEGER = {
  add = function(x, y) return x + y end, sub = function(x, y) return x - y end, mul = function(x, y) return x * y end,
  ["and"] = function(x, y) return x & y end, ["or"] = function(x, y) return x | y end, xor = function(x, y) return x ~ y end,
  neg = function(x) return -x end, ["not"] = function(x) return ~x end,
}

local function cast(x, from, to)
  if to.kind == "bool" then return x ~= 0 and 1 or 0 end
  if to.kind == "float" then
    local value = from.kind == "float" and x or from.kind == "bool" and x + 0.0 or from_integer(x, from)
    return to.name == "f32" and f32(value) or value
  end
  if from.kind == "float" then return to_integer(x, to) end
  return number.wrap(x, to.bits, to.signed)
end

-- f16 and bf16: rounded to their digits, within f32 (overflow and subnormals of f16 included)
local function round_to(x, t)
  if x ~= x or x == 0 or math.abs(x) == math.huge then return x end
  local exponent = (number.f64_bits(math.abs(x)) >> 52) - 1023
  local least = t.name == "f16" and -14 or -126
  local unit = 2.0 ^ (math.max(exponent, least) - t.digits + 1)
  local r = rint(x / unit) * unit
  if t.name == "f16" and math.abs(r) >= 65536 then r = r < 0 and -math.huge or math.huge end
  return f32(r)
end

local function bits_of(x, t)
  if t.name == "f32" then return number.f32_bits(x) end
  return number.f64_bits(x)
end

local function apply(node, v, types)
  local t, op = types.by_name[node.type], node.op
  local first = node.args[1] and types.by_name[node.args[1].type]
  if op == "const" then
    if t.name == "f32" then return number.f32_value(node.value) end
    return t.kind == "float" and number.f64_value(node.value) or node.value
  elseif op == "select" or op == "rare" then
    return v[1] ~= 0 and v[2] or v[3]
  elseif op == "fma" then
    return fma(v[1], v[2], v[3], t.name)
  elseif op == "cast" then
    return cast(v[1], first, t)
  elseif op == "round" then
    return round_to(cast(v[1], first, types.by_name.f64), types.by_name[node.name])
  elseif op == "signbit" then
    return v[1] == v[1] and is_negative(v[1]) and 1 or 0
  elseif op == "bits" or op == "raw" then
    return number.wrap(bits_of(v[1], first), t.bits, t.signed)
  elseif op == "from_bits" then
    local bits = t.name == "f32" and v[1] & 0xffffffff or v[1]
    return t.name == "f32" and number.f32_value(bits) or number.f64_value(bits)
  elseif op == "lookup" then
    local item = node.table.items[(v[1] & (#node.table.items - 1)) + 1]
    return t.name == "f32" and f32(item + 0.0) or t.kind == "float" and item + 0.0 or number.wrap(item, t.bits, t.signed)
  elseif op == "lt" or op == "le" or op == "gt" or op == "ge" or op == "eq" or op == "ne" then
    local x, y = v[1], v[2]
    local result
    if op == "lt" then result = less(x, y, first) elseif op == "gt" then result = less(y, x, first)
    elseif op == "le" then result = less(x, y, first) or x == y elseif op == "ge" then result = less(y, x, first) or x == y
    elseif op == "eq" then result = x == y else result = x ~= y end
    return result and 1 or 0
  elseif op == "lnot" then
    return 1 - v[1]
  end
  if t.kind == "float" then
    local f = UNARY_FLOAT[op] or BINARY_FLOAT[op]
    local result = f(v[1], v[2])
    return t.name == "f32" and f32(result) or result
  end
  if t.kind == "bool" then return INTEGER[op](v[1], v[2]) end
  if op == "shl" or op == "shr" then
    local count = v[2]
    local outside = count < 0 or count >= t.bits
    if op == "shl" then return outside and 0 or number.wrap(v[1] << count, t.bits, t.signed) end
    if t.signed then return v[1] // (1 << math.min(outside and t.bits - 1 or count, 62)) // (count > 62 and 2 or 1) end
    return outside and 0 or (t.bits < 64 and v[1] & ((1 << t.bits) - 1) or v[1]) >> count
  elseif op == "quot" or op == "rem" then
    local q, r = number.divided(v[1], v[2], t.signed)
    return number.wrap(op == "quot" and q or r, t.bits, t.signed)
  elseif op == "gcd" then
    return number.wrap(number.gcd(v[1], v[2], t.signed), t.bits, t.signed)
  elseif op == "abs" then
    return number.wrap(t.signed and v[1] < 0 and -v[1] or v[1], t.bits, t.signed)
  elseif op == "maximum" then
    return less(v[1], v[2], t) and v[2] or v[1]
  elseif op == "minimum" then
    return less(v[2], v[1], t) and v[2] or v[1]
  end
  return number.wrap(INTEGER[op](v[1], v[2]), t.bits, t.signed)
end

-- A number as a value of a type, or nil where it is none.
local function value_of(x, t)
  if t.kind == "bool" then return x == 0 and 0 or x == 1 and 1 or nil end
  if t.kind == "float" then return t.name == "f32" and f32(x * 1.0) or x * 1.0 end -- not + 0.0: -0 stays
  if x == math.huge or x == -math.huge then return to_integer(x, t) end
  local integer = math.tointeger(x)
  if not integer or (integer < 0 and not t.signed) then return nil end -- wrapped to 64 bits it would be itself
  return number.wrap(integer, t.bits, t.signed) == integer and integer or nil
end

-- The outputs of a DAG, as many results, for inputs and params given by name; nil where one of these is no value of its type.
function M.run(types, dag, values)
  local result = {}
  for _, node in ipairs(dag_of.order(dag.outputs)) do
    if node.op == "input" or node.op == "param" then
      result[node] = value_of(values[node.name] or error("bug: no value of " .. node.name), types.by_name[node.type])
      if result[node] == nil then return nil end
    else
      local args = {}
      for k, arg in ipairs(node.args) do args[k] = result[arg] end
      result[node] = apply(node, args, types)
    end
  end
  local list = {}
  for k, node in ipairs(dag.outputs) do list[k] = result[node] end
  return table.unpack(list)
end

-- The distance of two floats in units in the last place of `wanted`.
local function ulps_apart(got, wanted, t)
  if got ~= got or wanted ~= wanted then return got ~= got and wanted ~= wanted and 0 or math.huge end
  if got == wanted then return is_negative(got) == is_negative(wanted) and 0 or math.huge end
  if math.abs(got) == math.huge or math.abs(wanted) == math.huge then return math.huge end
  local exponent = math.max((number.f64_bits(math.abs(wanted)) >> 52) - 1023, t.name == "f32" and -126 or -1022)
  return math.abs(got - wanted) / 2.0 ^ (exponent - t.digits + 1)
end

-- Checks the examples of an op in one compute type. Returns a list of sentences about those that do not hold.
function M.check_examples(types, op, dag, K)
  local wrong = {}
  local function compare(k, name, got, wanted, t)
    local goal = value_of(wanted, t)
    if goal == nil then return end
    local bound = t.kind == "float" and (op.ulp[K] or 0.5) + 0.5 or 0
    local distance = t.kind == "float" and ulps_apart(got, goal, t) or got == goal and 0 or math.huge
    if distance > bound then
      wrong[#wrong + 1] = string.format("example %d in %s gives %s%s, not %s", k, K, #op.outputs > 1 and name .. " = " or "",
        t.kind == "float" and number.hex(got) or tostring(got), t.kind == "float" and number.hex(goal) or tostring(goal))
    end
  end
  for k, example in ipairs(op.examples) do
    local values = {}
    for _, input in ipairs(op.inputs) do values[input.name] = example[input.name] end
    for _, param in ipairs(op.params) do values[param.name] = example[param.name] or param.value end
    if op.index then values.index, values.count = example.index, example.count end
    local complete, missing = not op.index or (values.index ~= nil and values.count ~= nil), nil
    for _, input in ipairs(op.inputs) do complete = complete and values[input.name] ~= nil end
    for _, output in ipairs(op.outputs) do missing = missing or example[output.name] == nil and output.name or nil end
    if not complete or missing then
      wrong[#wrong + 1] = string.format("example %d names not all of its inputs and '%s'", k, missing or op.outputs[1].name)
    else
      local got = { M.run(types, dag, values) }
      for at, output in ipairs(got[1] ~= nil and op.outputs or {}) do
        compare(k, output.name, got[at], example[output.name], types.by_name[dag.outputs[at].type])
      end
    end
  end
  return wrong
end

return M
