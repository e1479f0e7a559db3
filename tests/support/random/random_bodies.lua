-- SPDX-License-Identifier: Apache-2.0
--
-- random_bodies.lua: owns the making of random bodies over all primitives of the language: what t350 and t710 run everywhere.
-- Uses math.random: who wants the same bodies again seeds it.

local M = {}

local function pick(list) return list[math.random(#list)] end

-- An expression of a type, no deeper than `depth`. names: of variables by type.
local expression
local LITERALS = {
  float = { "0.5", "1", "-1", "2.5", "1e30", "1e-30", "0x1p-130", "-0.0", "3", "INFINITY", "0x1.8p23", "1e9", "PI" },
  integer = { "1", "2", "3", "7", "31", "100", "0", "64" },
}
local UNSIGNED = { f32 = "u32", f64 = "u64" }
local SIGNED = { f32 = "i32", f64 = "i64" }

local function condition(names, t, depth)
  local k = math.random(6)
  if k <= 3 then
    return string.format("(%s %s %s)", expression(names, t, depth - 1), pick { "<", "<=", ">", ">=", "==", "!=" },
                         expression(names, t, depth - 1))
  elseif k == 4 then
    return string.format("(%s %s %s)", condition(names, t, depth - 1), pick { "&&", "||" }, condition(names, t, depth - 1))
  elseif k == 5 then
    return "!" .. condition(names, t, depth - 1)
  end
  return (t == "f32" or t == "f64") and "signbit(" .. expression(names, t, depth - 1) .. ")"
    or string.format("(%s != 0)", expression(names, t, depth - 1))
end

-- One of a rare block: often of the kinds that kernels look for by the largest of an integer, some of them always or never met.
local function rare_condition(names, t)
  local function e() return expression(names, t, 1) end
  local kinds = { function() return condition(names, t, 2) end }
  if UNSIGNED[t] then
    kinds[2] = function()
      return string.format("!(abs(%s) < %s)", pick(names[t]), pick { "1", "1e30", "0x1p-130", "INFINITY", "-1", "0" })
    end
    kinds[3] = function()
      return string.format("as_%s(%s) - %s >= %s", UNSIGNED[t], e(), pick { "1", "0x800000" }, pick { "0", "1", "0x7f000000" })
    end
  elseif t == "u32" or t == "u64" then
    kinds[2] = function() return string.format("%s - 1 >= %s", e(), pick { "0", "1", "100", "0x7fffffff" }) end
  end
  local text = pick(kinds)()
  return math.random(3) == 1 and string.format("%s || %s", text, pick(kinds)()) or text
end

-- Tables of sizes that kernels look up in registers, and of another.
local SIZES = { 8, 16, 32 }

local function tables_text()
  local rows = {}
  for _, t in ipairs { "f32", "f64" } do
    for _, size in ipairs(SIZES) do
      local items = {}
      for k = 1, size do items[k] = string.format("%.9g", (math.random() - 0.5) * 2 ^ math.random(-20, 20)) end
      rows[#rows + 1] = string.format('  DAG_%s_%d = { "%s", %s },', t:upper(), size, t, table.concat(items, ", "))
    end
  end
  return "tables {\n" .. table.concat(rows, "\n") .. "\n}\n\n"
end

local function looked_up(names, t, depth)
  local index = expression(names, pick { UNSIGNED[t], SIGNED[t] }, depth - 1)
  return string.format("lookup(DAG_%s_%d, %s)", t:upper(), pick(SIZES), index)
end

local function float_expression(names, t, depth)
  local function e() return expression(names, t, depth - 1) end
  local makers = {
    function() return string.format("(%s %s %s)", e(), pick { "+", "-", "*", "/" }, e()) end,
    function() return string.format("(%s %s %s)", e(), pick { "+", "-", "*" }, e()) end,
    function() return string.format("fma(%s, %s, %s)", e(), e(), e()) end,
    function() return string.format("%s(%s)", pick { "sqrt", "rint", "floor", "ceil", "trunc", "abs", "-" }, e()) end,
    function() return string.format("%s(%s, %s)", pick { "maximum", "minimum", "copysign", "rem" }, e(), e()) end,
    function() return string.format("(%s ? %s : %s)", condition(names, t, depth - 1), e(), e()) end,
    function() return string.format("(%s)%s", t, expression(names, pick { "i32", "i64", "u32", "u8" }, depth - 1)) end,
    function() return string.format("(%s)(%s)%s", t, pick { "i32", "i64", "u8", "u32" }, e()) end,
    function() return string.format("(%s)%s", t, expression(names, t == "f32" and "f64" or "f32", depth - 1)) end,
    function() return string.format("(%s)(%s)%s", t, pick { "f16", "bf16" }, e()) end,
    function() return string.format("as_%s(%s)", t, expression(names, UNSIGNED[t], depth - 1)) end,
    function() return looked_up(names, t, depth) end,
    function() return looked_up(names, t, depth) end,
  }
  return pick(makers)()
end

local BITS = { i8 = 8, i16 = 16, i32 = 32, i64 = 64, u8 = 8, u16 = 16, u32 = 32, u64 = 64 }
local function integer_expression(names, t, depth)
  local function e() return expression(names, t, depth - 1) end
  local makers = {
    function() return string.format("(%s)(%s %s %s)", t, e(), pick { "+", "-", "*", "&", "|", "^" }, e()) end,
    function() return string.format("(%s)(%s %s %d)", t, e(), pick { "<<", ">>" }, math.random(0, BITS[t] + 2)) end,
    function()
      return string.format("(%s)(%s %s %s)", t, e(), pick { "<<", ">>" },
                           expression(names, pick { t, "i32", "u8", "i64", "u64" }, depth - 1))
    end,
    function() return string.format("%s(%s)", pick { "-", "~", "abs", "count_bits" }, e()) end,
    function() return string.format("%s(%s, %s)", pick { "maximum", "minimum", "quot", "rem", "gcd" }, e(), e()) end,
    function() return string.format("%s(%s, %s)", pick { "quot", "rem", "gcd" }, e(), e()) end,
    function() return string.format("(%s ? %s : %s)", condition(names, t, depth - 1), e(), e()) end,
    function() return string.format("(%s)%s", t, expression(names, pick { "i32", "i64", "u8", "u32", "u64" }, depth - 1)) end,
    function() return string.format("(%s)%s", t, expression(names, pick { "f32", "f64" }, depth - 1)) end,
  }
  if BITS[t] >= 32 then
    makers[#makers + 1] = function()
      return string.format("as_%s(%s)", t, expression(names, BITS[t] == 32 and "f32" or "f64", depth - 1))
    end
  end
  return pick(makers)()
end

function expression(names, t, depth)
  local is_float = t == "f32" or t == "f64"
  if depth <= 0 or math.random(12) == 1 then
    if math.random(5) > 1 then
      if names[t] then return pick(names[t]) end
      return string.format("(%s)%s", t, pick(names[names.main]))
    end
    return string.format("(%s)%s", t, pick(LITERALS[is_float and "float" or "integer"]))
  end
  if is_float then return float_expression(names, t, depth) end
  return integer_expression(names, t, depth)
end

local OF_BODIES = { "f32", "f64", "i32", "f32", "u8", "i64", "f64", "i16", "u32", "f32", "i8", "u64", "u16" }

-- n ops: the text of a spec, their names in order, name -> body.
function M.spec(n_ops)
  local bodies, spec = {}, {}
  for k = 1, n_ops do
    local t = OF_BODIES[(k - 1) % #OF_BODIES + 1]
    local n_in = math.random(3)
    local inputs = table.move({ "x", "y", "z" }, 1, n_in, 1, {})
    local names = { [t] = inputs, main = t }
    local lines = {}
    if SIGNED[t] then
      lines[#lines + 1] = string.format("%s k = %s;", SIGNED[t], expression(names, SIGNED[t], 2))
      names[SIGNED[t]] = { "k" }
    end
    lines[#lines + 1] = string.format("%s a = %s;", t, expression(names, t, 3))
    names = setmetatable({ [t] = table.move(inputs, 1, n_in, 2, { "a" }) }, { __index = names })
    lines[#lines + 1] = string.format("%s b = %s;", t, expression(names, t, 3))
    if math.random(3) == 1 then
      lines[#lines + 1] = string.format("rare (%s) { b = %s; }", rare_condition(names, t), expression(names, t, 2))
    end
    lines[#lines + 1] = string.format("return (%s)(%s);", t,
                                      expression(setmetatable({ [t] = { "a", "b", "x" } }, { __index = names }), t, 2))
    local name = string.format("dag_%02d_%s", k, t)
    bodies[name] = table.concat(lines, "\n    ")
    spec[#spec + 1] = string.format('op "%s" { doc = "random", inputs = "%s", dtypes = "%s", body = [=[\n    %s\n  ]=] }', name,
                                    table.concat(inputs, ", "), t, bodies[name])
  end
  for _, t in ipairs { "f32", "f64" } do -- not random: what a compiler may make of them has another zero's sign
    local name = "dag_negative_" .. t
    bodies[name] = string.format("%s p = copysign(0, x);\n    %s q = copysign(0, y);\n    %s r = copysign(2, z);\n    "
                                 .. "return z < 2 ? -fma(p, r, q) : fma(q, r, -fma(p, 2, q));", t, t, t)
    spec[#spec + 1] = string.format('op "%s" { doc = "signs of zeros", inputs = "x, y, z", dtypes = "%s", body = [=[\n    %s\n  ]=] }', name, t,
                                    bodies[name])
  end
  local names = {}
  for name in pairs(bodies) do names[#names + 1] = name end
  table.sort(names)
  return tables_text() .. table.concat(spec, "\n\n") .. "\n", names, bodies
end

return M
