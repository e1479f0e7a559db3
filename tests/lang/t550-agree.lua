-- SPDX-License-Identifier: Apache-2.0
--
-- t550-agree: an expression means the same to the two readers of the language: gen/graph/host.lua, which compiled kernels are made
-- by, and runtime/lang/parse/expression.c with runtime/lang/typing/typing.c, which the interpreter runs by. Random expressions on random dtypes,
-- right and wrong ones: both refuse, or both give the same canonical text, names, output dtypes and parameter slots, and the
-- values that C gives, made into nodes of the DAG that Lua gave, are that DAG's own nodes. For a misspelt name both suggest the same.
-- QUERN_TEST_SEED repeats a run; QUERN_TEST_EXPRESSIONS: how many.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. root .. "/?.lua;" .. package.path
local tap = require "tap"
local main = require "gen.main"
local host = require "gen.graph.host"
local kinds = require "gen.kinds.kinds"
local expr = require "gen.graph.body.expr"
local rows = require "gen.graph.dag.rows"
local stage_text = require "gen.graph.stage_text"
local number = require "gen.base.number"

local build = os.getenv "QUERN_BUILD_DIR" or root .. "/build"
local of_day = tap.test_part(5) -- 400 expressions in place of 2000, others each day
local n_cases = tonumber(os.getenv "QUERN_TEST_EXPRESSIONS" or "") or of_day and 400 or 2000
local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir -p '" .. folder .. "'"))

local model, _, errors = main.builtin_model(root)
assert(#errors == 0, errors[1])
local types = model.types
math.randomseed(tap.test_seed(), 550 + (of_day or 0))

---------------------------------------------------------------------------------------------------- expressions

local function pick(list) return list[math.random(#list)] end
local function chance(percent) return math.random(100) <= percent end

local DTYPES = { "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64" }
local ALL_INTEGERS = { "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64" }
local FLOATS, INTEGERS = { "f16", "bf16", "f32", "f32", "f64" }, ALL_INTEGERS
local NUMBERS = { "0", "1", "2", "3", "0.5", "1.5", "2.0", "1e3", ".25", "7", "31", "64", "255", "256", "300", "4294967295", "4294967296",
                  "9007199254740993", "9223372036854775807", "0xff", "0xffffffff", "0xffffffffffffffff", "0x8000000000000401", "0x1.8p3", "1e-320", "1e308",
                  "0x1p-149", "-0.0", "1e39", "PI", "E", "INFINITY", "NAN", "SQRT1_2", "pi", "inf", "nan", "exp(-0.03)", "2 ** 10", "7 // 2" }
local SMALL_NUMBERS = { "0", "1", "2", "3", "0x7", "31", "100" }
local WRONG = { "T", "rare", "return", "lookup", "raw_u32(x)", "gelo(x)", "1e999", "012", "0x", "1u", "x.y", "@", "f32", "x = 1", "(x", "x)",
                "x % y", "x < y < z", "param", "copy", "astype(x)", "exp(x, y, z)", "1..2", "0x1p", "a b", "/*", "'",
                "99999999999999999999", "0x10000000000000000", "x ? y", "(f32)", ",", "{ x }", "x <<= 1", "full(x)", "nosuch.op(x)", "!", "exp()", "clip(x, y)",
                "nonzero(x)", "compress(x > 0, x)", "arange()", "linspace(x, y)",
                "frexp(x)", "frexp.sign(x)", "exp.y(x)", "modf.fraction", "modf.fraction.x(x)", "frexp.mantissa(x, y)", "a.b.c.d(x)",
                "x // 2", "**", "//", "not", "and", "x ** y", "not x", "(not x)", "x or y", "auto", "pi", "pi = x;", "np.pi", "np.exp(x)", "arcsin(x)", "(float)x",
                "sinf(x)",
                "x if y", "for", "# x", "// x", "x // a note", "True", "x[0]", "x ** not y", "x @ y", "-x ** -y",
                "grad(x)", "grad(x, -x)", "grad(x, 2)", "grad(x, x, x)", "grad", "grad(x * i, i)" }

local ops = {}
for _, op in ipairs(model.ops) do
  local is_scan = kinds.of(op).allowed_in_expression and kinds.of(op).allowed_in_expression(op)
  local outputs = kinds.of(op).refusal and not is_scan and {} or op.outputs
  for _, output in ipairs(outputs) do
    local own, kind = {}, kinds.of(op)
    for _, param in ipairs(op.params) do own[#own + 1] = not param.is_shape and param or nil end
    ops[#ops + 1] = { name = #outputs > 1 and op.name .. "." .. output.name or op.name, inputs = op.inputs, params = own,
                      reduces = kind.has_stages or is_scan, is_scan = is_scan, is_reduced = op.is_reduced, is_condition = output.type == "bool" }
  end
end
local primitives = {}
for name, count in pairs(expr.PRIMITIVES) do
  if name ~= "lookup" and not name:find "^raw_" then primitives[#primitives + 1] = { name, count } end
end
table.sort(primitives, function(a, b) return a[1] < b[1] end)

-- A random expression. names: of values by kind ("float", "integer", "bool"), of params.
local expression

local function arguments(n, names, depth, kind)
  local list = {}
  for k = 1, n do list[k] = expression(names, depth - 1, kind) end
  return table.concat(list, ", ")
end

-- A call of literals alone, or a number of them.
local LITERALS = { "0", "1", "-1", "2", "3", "-0.0", "0.5", "-0.75", "1e-300", "-1e300", "0x1p-1074", "INFINITY", "-inf", "nan", "7", "-13", "1e9", "64",
                   "4611686018427387904", "-9223372036854775807", "pi", "0x1.fffffffffffffp-1", "1 < 2", "not 1" }
local function literal(depth)
  if depth <= 0 or chance(50) then
    if chance(50) then return pick(LITERALS) end
    local x = (math.random() - 0.5) * 2.0 ^ math.random(-40, 40)
    return chance(70) and string.format("%.17g", x) or string.format("%d", math.random(-100, 100))
  end
  local k = math.random(10)
  if k == 1 then return "(" .. literal(depth - 1) .. pick { " < ", " == ", " >= ", " and ", " or " } .. literal(depth - 1) .. ")" end
  if k == 2 then return "(" .. literal(depth - 1) .. " ? " .. literal(depth - 1) .. " : " .. literal(depth - 1) .. ")" end
  if k <= 5 then return "(" .. literal(depth - 1) .. pick { " + ", " - ", " * ", " / ", " ** ", " // " } .. literal(depth - 1) .. ")" end
  local list = {}
  if chance(15) then
    local primitive = pick(primitives)
    for j = 1, primitive[2] do list[j] = literal(depth - 1) end
    return primitive[1] .. "(" .. table.concat(list, ", ") .. ")"
  end
  local op = pick(ops)
  if op.reduces then return literal(depth - 1) end
  for j = 1, #op.inputs + math.random(0, #op.params) do list[j] = literal(depth - 1) end
  return op.name .. "(" .. table.concat(list, ", ") .. ")"
end

-- Something without a dtype.
local function weak(names, depth)
  if chance(6) then return literal(2) end
  local k = math.random(8)
  if depth <= 0 or k <= 3 then
    if chance(40) and #names.params > 0 then return pick(names.params) end
    return pick(chance(60) and SMALL_NUMBERS or NUMBERS)
  end
  if k == 4 then return (chance(5) and "~" or pick { "-", "+" }) .. weak(names, depth - 1) end
  if k == 5 then return "(" .. weak(names, depth - 1) .. ")" end
  if chance(6) then return string.format("(%d %s %d)", math.random(0, 300), pick { "<<", ">>", "&", "|", "^" }, math.random(0, 70)) end
  return weak(names, depth - 1) .. " " .. (chance(3) and pick { "<<", "&" } or pick { "+", "-", "*", "/" }) .. " " .. weak(names, depth - 1)
end

local AXES = { "axis=0", "axis = -1", "axis=(0, 1)", "axis=(1,)", "axis=()", "axis=0, keepdims=1", "keepdims=0", "keepdims=1, axis=(-1,-2)",
               "axis=-3" }
local SCANNED = { "axis=0", "axis = -1, reverse=1", "exclusive=1, axis=-2", "reverse=0, exclusive=1", "axis=(1,)", "axis=(0, 1)" }

local function call(names, depth, kind)
  if chance(60) then
    local op = pick(ops)
    local list = {}
    for k, input in ipairs(op.inputs) do list[k] = expression(names, depth - 1, input.type == "bool" and "bool" or kind) end
    for k = 1, math.random(0, #op.params) do list[#op.inputs + k] = weak(names, 2) end
    local axes = op.reduces and chance(70) and pick(op.is_scan and chance(98) and SCANNED or AXES)
    if axes and (op.is_scan or op.is_reduced or not axes:find "keepdims" or chance(5)) then list[#list + 1] = axes end
    return op.name .. "(" .. table.concat(list, ", ") .. ")"
  end
  local primitive = pick(primitives)
  if primitive[1]:find "^as_" then kind = "integer" end
  return primitive[1] .. "(" .. arguments(primitive[2], names, depth, kind) .. ")"
end

local MAKERS = {
  float = {
    function(n, d) return expression(n, d, "float") .. pick { " + ", " - ", "*", " / " } .. expression(n, d, "float") end,
    function(n, d) return expression(n, d, "float") .. pick { " + ", " - ", "*", " / " } .. weak(n, 2) end,
    function(n, d) return weak(n, 2) .. pick { " + ", " - ", "*", " / " } .. expression(n, d, "float") end,
    function(n, d) return "(" .. expression(n, d, "float") .. ")" end,
    function(n, d) return pick { "-", "+" } .. expression(n, d, "float") end,
    function(n, d) return "(" .. expression(n, d, "bool") .. " ? " .. expression(n, d, "float") .. " : " .. expression(n, d, "float") .. ")" end,
    function(n, d) return expression(n, d, "bool") .. " ? " .. expression(n, d, "float") .. " : " .. weak(n, 2) end,
    function(n, d) return "(" .. pick(FLOATS) .. ")" .. expression(n, d, pick { "float", "integer", "bool" }) end,
    function(n) return "(" .. pick(FLOATS) .. ")(" .. weak(n, 3) .. ")" end,
    function(n, d) return call(n, d, pick { "float", "float", "integer" }) end,
    function(n, d) return call(n, d, "float") end,
    function(n, d) return string.format("grad(%s, %s)", expression(n, d + 1, "float"), pick { "x", "x", "y" }) end,
    function(n, d) return expression(n, d, "integer") .. " / " .. expression(n, d, "integer") end,
    function(n, d) return expression(n, d, "float") .. pick { "**", " ** ", " ** -", "//", " // " } .. expression(n, d, "float") end,
    function(n, d) return expression(n, d, "float") .. pick { " ** ", " // " } .. weak(n, 1) end,
    function(n, d) return pick { "-", "(f32)", "" } .. pick { "x", "(x)", "exp(x)" } .. " ** " .. expression(n, d, "float") end,
  },
  integer = {
    function(n, d) return "(" .. expression(n, d, "integer") .. pick { "+", "-", "*", "&", " | ", "^", "<<", ">>" } .. expression(n, d, "integer") .. ")" end,
    function(n, d) return "(" .. expression(n, d, "integer") .. pick { "+", "-", "*", "&", " | ", "^", "<<", ">>" } .. pick(SMALL_NUMBERS) .. ")" end,
    function(n, d) return "(" .. expression(n, d, "integer") .. pick { "+", "-", "*", "&", " | ", "^", "<<", ">>" } .. weak(n, 1) .. ")" end,
    function(n, d) return "(" .. expression(n, d, "integer") .. ")" end,
    function(n, d) return "(" .. expression(n, d, "integer") .. pick { "//", " ** " } .. pick { expression(n, d, "integer"), "2", "-1", "(7 // 2)" } .. ")" end,
    function(n, d) return pick { "-", "~", "+" } .. expression(n, d, "integer") end,
    function(n, d) return "(" .. pick(ALL_INTEGERS) .. ")" .. expression(n, d, pick { "float", "integer", "bool" }) end,
    function(n) return "(" .. pick(ALL_INTEGERS) .. ")(" .. weak(n, 2) .. ")" end,
    function(n, d) return "(" .. pick(DTYPES) .. ")(" .. expression(n, d, "integer") .. ")" end,
    function(n, d) return "(" .. expression(n, d, "bool") .. " ? " .. expression(n, d, "integer") .. " : " .. weak(n, 1) .. ")" end,
    function(n, d) return pick { "maximum", "minimum", "clip", "pow", "maximum" } .. "(" .. expression(n, d, "integer") .. ", " .. weak(n, 1) .. ")" end,
    function(n, d) return "as_" .. pick { "i32", "u32" } .. "((" .. pick { "f32", "i32", "u32" } .. ")" .. expression(n, d, pick { "float", "integer" }) .. ")" end,
    function(n, d) return "as_" .. pick { "i64", "u64" } .. "((" .. pick { "f64", "i64", "u64" } .. ")" .. expression(n, d, pick { "float", "integer" }) .. ")" end,
    function(n, d) return "as_" .. pick { "i32", "u32", "i64", "u64" } .. "(" .. expression(n, d, pick { "float", "integer" }) .. ")" end,
    function(n, d) return call(n, d, "integer") end,
  },
  bool = {
    function(n, d) return expression(n, d, "float") .. pick { "<", " <= ", ">", ">=", " == ", "!=" } .. expression(n, d, "float") end,
    function(n, d) return "(" .. expression(n, d, pick { "float", "integer" }) .. pick { "<", " <= ", ">", ">=", " == ", "!=" } .. weak(n, 2) .. ")" end,
    function(n, d) return "(" .. expression(n, d, "bool") .. pick { " && ", "||", "&", "|", "^" } .. expression(n, d, "bool") .. ")" end,
    function(n, d) return pick { "!", "~", "!" } .. expression(n, d, pick { "bool", "bool", "float" }) end,
    function(n, d) return expression(n, d, "bool") .. pick { " and ", " or " } .. expression(n, d, "bool") end,
    function(n, d) return "(" .. pick { "not ", "not not ", "x > 0 and not " } .. expression(n, d, pick { "bool", "bool", "float" }) .. ")" end,
    function(n, d) return "not " .. expression(n, d, "bool") end,
    function(n, d) return "(bool)" .. expression(n, d, pick { "float", "integer" }) end,
    function(n, d) return "signbit(" .. expression(n, d, "float") .. ")" end,
    function(n, d) return expression(n, d, "integer") .. " == " .. expression(n, d, "integer") end,
  },
}

function expression(names, depth, kind)
  if depth <= 0 or chance(12) then
    if #names[kind] == 0 or chance(2) then return pick(names.all) end
    return pick(names[kind])
  end
  return pick(MAKERS[kind])(names, depth - 1)
end

local COMMENTS = { " ", "\n", " /* a */ ", " // b\n", "\t", "", " # 'c\n" }

-- A text, and how its inputs are to be chosen: a list of kinds by name.
local function random_text()
  local names = { float = { "x", "y" }, integer = { "i", "j" }, bool = { "m" }, all = { "x", "y", "i", "j", "m" }, params = {} }
  local out = {}
  if chance(10) then out[#out + 1] = (chance(10) and pick { "T", "f32", "a.b", "return" } or "bias_" .. math.random(9)) .. pick { ":", " : " } end
  for k = 1, pick { 0, 0, 0, 1, 2 } do
    names.params[k] = pick { "a", "alpha" } .. k
    out[#out + 1] = "param " .. names.params[k] .. ";"
  end
  local depth = math.random(1, 4)
  for k = 1, math.random(0, 3) do
    local kind = pick { "float", "float", "integer", "bool" }
    local name = chance(4) and pick { "x", "i", "out", "PI", "exp", "t1", "pi", "inf", "auto", "not" } or "t" .. k
    local declared = ""
    if chance(50) then
      declared = chance(25) and "auto" or (chance(3) and pick(DTYPES) or kind == "float" and pick(FLOATS) or kind == "bool" and "bool" or pick(ALL_INTEGERS))
      declared = declared .. " "
    end
    out[#out + 1] = declared .. name .. " = " .. (chance(declared ~= "" and 10 or 2) and weak(names, 2) or expression(names, depth, kind)) .. ";"
    table.insert(names[kind], name)
    table.insert(names.all, name)
  end
  if chance(60) then
    out[#out + 1] = pick { "", "", "return " } .. expression(names, depth, pick { "float", "float", "integer", "bool" }) .. pick { "", ";" }
  else
    out[#out + 1] = "r = " .. expression(names, depth, pick { "float", "integer" }) .. pick { "", ";" }
    if chance(5) then out[#out + 1] = pick { ";", "" } .. "param late" .. pick { "", ";" } end
  end
  for k = 1, #out - 1 do out[k] = out[k] .. pick(COMMENTS) end
  local text = table.concat(out)
  local mutations = chance(12) and math.random(2) or 0
  for _ = 1, mutations do -- a piece that is wrong, or one taken away
    local at = math.random(#text)
    local hole = chance(50) and 0 or math.random(4)
    text = text:sub(1, at - 1) .. (chance(60) and " " .. pick(WRONG) .. " " or "") .. text:sub(at + hole)
  end
  return text
end

local KIND_OF_NAME = { x = FLOATS, y = FLOATS, i = INTEGERS, j = INTEGERS, m = { "bool" } }

-- Each case: { text, dtypes }. What Lua says of the names decides how many dtypes are wanted.
local cases, seen = {}, {}
while #cases < n_cases do
  local text = random_text()
  if not seen[text] then
    seen[text] = true
    local dtypes = {}
    local canonical, known = host.canonical(model, text)
    for k, name in ipairs(known and known.inputs or {}) do
      dtypes[k] = (chance(6) or not KIND_OF_NAME[name]) and pick(DTYPES) or pick(KIND_OF_NAME[name])
    end
    cases[#cases + 1] = { text = text, dtypes = dtypes, canonical = canonical, known = known }
  end
end

-- Calls of each op and primitive on literals alone: their bits are compared.
local n_literals = 0
local function add_literals(name, n, is_condition)
  for _ = 1, 6 do
    local list = {}
    for k = 1, n do list[k] = literal(0) end
    local called = name .. "(" .. table.concat(list, ", ") .. ")"
    local text = is_condition and called .. " ? x : y" or "(f64)x + " .. called
    local canonical, known = host.canonical(model, text)
    cases[#cases + 1] = { text = text, dtypes = is_condition and { "f64", "f32" } or { "f64" }, canonical = canonical, known = known }
    n_literals = n_literals + 1
  end
end
for _, op in ipairs(ops) do
  if not op.reduces then add_literals(op.name, #op.inputs, op.is_condition) end
end
for _, primitive in ipairs(primitives) do add_literals(primitive[1], primitive[2], primitive[1] == "signbit") end

-- Names with letters too many, too few, other ones, or two exchanged: of ops and primitives, which both readers look up, and of constants
-- and dtypes, which then are inputs, or nothing at all. said: how both refuse it; nil: neither does
local misspelt = {}
local function misspell(name)
  local at, letter = math.random(#name), string.char(math.random(97, 122))
  local way = math.random(4)
  local word = name:sub(1, at - 1) .. (way == 1 and "" or letter) .. name:sub(way == 2 and at or at + 1)
  if way == 4 then word = name:sub(1, at - 1) .. name:sub(at, at + 1):reverse() .. name:sub(at + 2) end
  return #word > 2 and chance(40) and misspell(word) or word
end
local function add_misspelt(text, said)
  misspelt[#misspelt + 1] = { text = text, said = said, at = #cases + 1 }
  local canonical, known = host.canonical(model, text)
  local dtypes = {}
  for k in ipairs(known and known.inputs or {}) do dtypes[k] = "f32" end
  cases[#cases + 1] = { text = text, dtypes = dtypes, canonical = canonical, known = known }
end
local function is_known(name) return model.op_of_name[name] or expr.PRIMITIVES[name] or types.by_name[name] or expr.CONSTANTS[name] end
local function misspell_all(names, least, form, said)
  for _, name in ipairs(names) do
    for _ = 1, 4 do
      local word = misspell(name)
      if #word >= least and word:find "^[%a_][%w_]*$" and not word:find "^raw_" and not is_known(word) then
        add_misspelt(form:format(word), said)
      end
    end
  end
end
local callable = {}
for _, op in ipairs(model.ops) do callable[#callable + 1] = op.name end
for _, primitive in ipairs(primitives) do callable[#callable + 1] = primitive[1] end
misspell_all(callable, 1, "y = x * %s(x, w)", "notfound")
misspell_all({ "SQRT1_2", "INFINITY", "LOG10E", "NAN", "PI" }, 1, "x * %s", nil)
misspell_all({ "f32", "bf16", "bool", "i64" }, 1, "x + (%s)y", "syntax")
misspell_all({ "f32", "bf16", "bool", "i64" }, 1, "%s t = x; t", "syntax")
for _, name in ipairs { "quite_another_thing", "acme.gelu", "gelu.gelu", "gelu.tanh", "x.astype", "jax.nn.gelu", ("gelu"):rep(16), ("exp"):rep(21), "lookups",
                        "GELU" } do
  add_misspelt(name .. "(x)", "notfound")
end
for word in ("cos sin tan min max mod round cosh atan2 cbrt softmax silu elu norm exp2 log10 log1p rsqrt lerp f fn foo bar sq ab "
             .. "e as_u as_f as_i3 rin fmaa"):gmatch "%S+" do
  if not is_known(word) then add_misspelt(word .. "(x)", "notfound") end
end

-- Texts with reductions: right ones, and wrong ones, of which both say the same.
local reducing = {}
local function add_reducing(text, is_right)
  reducing[#reducing + 1] = { at = #cases + 1, text = text, is_right = is_right }
  local canonical, known = host.canonical(model, text)
  local dtypes = {}
  for k, name in ipairs(known and known.inputs or {}) do dtypes[k] = KIND_OF_NAME[name] and KIND_OF_NAME[name][1] or "f32" end
  cases[#cases + 1] = { text = text, dtypes = dtypes, canonical = canonical, known = known }
end
for _, text in ipairs {
  "sum(x, axis=0)", "s = sum(exp(x - max(x, axis=-1)), axis=-1)", "sum(x, axis=(0, 2), keepdims=1)", "sum(x, axis=())", "sum(x, axis=(1,))",
  "sum(x, keepdims=0, axis=3)", "softmax(x, axis=1)", "sum(x) / (sum(x) + 1)", "sum(x, axis=(0)) + sum(x, axis=0, keepdims=1) * sum(y, axis=0)",
  "f32 axis = x * 2; keepdims = sum(axis, axis=0)", "sum(axis, axis=-1, keepdims=1) + axis * keepdims", "param axis; sum(x * axis, axis=0)",
  "axis = x", "keepdims = sum(x, keepdims = 1); t = keepdims + 1", "sum(x, axis = - 2)", "sum(x, axis=0x1, keepdims=-0)", "sum(x, axis=32)",
  "mean(i) + mean(j)", "mean(m)", "logsumexp(i)", "any(x > 0, axis=0) ? x : y", "count_nonzero(x)", "prod(m)", "all((u8)i)",
  "max(max(x)) + min(sum(x))", "grad(x * x + sum(y), x)", "grad(sum(y) * x, x)", "grad(sum((f32)(i32)x) * x, x)", "grad(sum(x), y) + y",
  "grad(sum(x), x)", "grad(softmax(x), x)", "grad(sum(x * y) * y, x)", "grad(exp(x - max(x)) / sum(exp(x)), x)", "grad(argmax(x) * x, x)",
  "grad(rms_norm(x, axis=-1) * y - max(x, axis=-1), x) * var(y, 1, axis=-1)", "grad(cross_entropy(x, i, axis=0), x)",
  "grad(vector_norm(y * x, 3, axis=0) + logsumexp(x, axis=0), y)", "grad(sum((f64)x * softmax(x)), x)", "grad(sum((f16)x), x)",
  "grad(layer_norm(x, axis=-1), x)", "grad(log_softmax(x, axis=0), x)", "grad(softmax(x) + layer_norm(y), x)",
  "cumulative_sum(x * y, axis=0, exclusive=1) + sum(x, axis=0)", "logcumsumexp(i, axis=1)", "cumulative_max((f16)x, reverse=1, axis=-1) * x",
  "cumulative_prod(cumulative_sum(x > 0, axis=0), axis=0)", "grad(cumulative_sum(y, axis=0) * x, x)", "cumulative_sum((i32)(x * 2))",
  "softmax(x - logsumexp(x, axis=0), axis=0)", "mean((f16)x) * (f16)x", "softmax((bf16)x)", "sum((f16)x, axis=0) + max((f16)x, axis=0)",
} do add_reducing(text, true) end
for _, text in ipairs {
  "sum(x, axis=)", "sum(x, axis=(0", "sum(x, axis=(0 1))", "sum(x, axis=1.5)", "sum(x, axis=1e9)", "sum(x, axis=33)", "sum(x, axis=-33)",
  "sum(x, axis=-9223372036854775808)", "sum(x, axis=-9223372036854775807)", "sum(x, axis=99999999999999999999)", "sum(x, axis=010)",
  "sum(x, axis=0xffffffffffffffff)", "sum(x, axis=+1)", "sum(x, axis=y)", "sum(x, axis=((0)))", "sum(x, axis=(((", "sum(x, axis=(0,,1))",
  "sum(x, axis=0, axis=1)", "sum(x, axis=(), axis=0)", "sum(x, keepdims=2)", "sum(x, keepdims=-1)", "sum(x, keepdims=(1))", "sum(x, keepdims=",
  "sum(x, keepdims=1, keepdims=1)", "sum(x, dim=0)", "sum(x, f32=0)", "sum(x, axis=0, y)", "sum(x, axis=0 y)", "sum(x, axis=0", "sum(x, axis=0,",
  "sum(axis=0)", "sum()", "sum(x, 1)", "sum(x, axis == 1)", "sum(x,)", "sum(x, axis=0,)", "max(x, y)", "min(x, 0)", "max(x, y, axis=0)",
  "softmax(x, keepdims=1)", "exp(x, axis=0)", "x, axis=0", "sum(x, axis=(" .. ("0,"):rep(32) .. "0))", "sum(x, " .. ("a"):rep(64) .. "=1)",
  "sum(x, axis=" .. ("1"):rep(30) .. ")", ("sum("):rep(5), ("sum("):rep(50), ("sum("):rep(200), ("sum("):rep(201), ("max(axis="):rep(7), "sum(axis",
  "grad(argmax(x), x)", "grad(max_backward(x, y, y), x)", "grad(max_with_indices.values(x), x)", "grad(sum(i), i)",
  "sum(1)", "sum(x, axis=0) = 1", "sum = x; sum(sum)(1)",
  "1 + cumulative_max(x, axis", "logcumsumexp()", "cumulative_sum(x, keepdims=1)", "cumulative_sum(x, reverse=2)", "cummax.values(x, axis=0)",
  "cumulative_sum(x, include_initial=1)", "cumulative_sum(x, y)", "grad(cumulative_sum(x, axis=0), x)",
  "cumulative_sum(1)", "cumulative_sum(x, axis=0, x)", "cumulative_sum(x, exclusive=-1)",
} do add_reducing(text, false) end

-- Texts that nest so deep that both readers take them, or deeper
local nested = {}
local function add_nested(depth, text)
  nested[#nested + 1] = { at = #cases + 1, depth = depth, text = text }
  local canonical, known = host.canonical(model, text)
  cases[#cases + 1] = { text = text, dtypes = { "f32" }, canonical = canonical, known = known }
end
local NESTS = { { "(", ")" }, { "sqrt(", ")" }, { "fma(x, x, ", ")" }, { "-", "" }, { "(f32)", "" }, -- these nest in each other
                { "!", "" }, { "x ? x : ", "" }, { "x ? ", " : x" }, { "x * x + (", ")" }, { "not ", "" }, { "", " // x" } }
for depth = 199, 202 do
  for _, nest in ipairs(NESTS) do add_nested(depth, nest[1]:rep(depth) .. "x" .. nest[2]:rep(depth)) end
  add_nested(depth, ("("):rep(depth - 1) .. "x // x" .. (")"):rep(depth - 1))
  add_nested(depth, "x // " .. ("("):rep(depth - 1) .. "x" .. (")"):rep(depth - 1))
  add_nested(depth, "x + " .. ("1 ** "):rep(depth) .. "1")
  add_nested(depth, "not " .. ("1 ** "):rep(depth - 2) .. "1 < x")
  for _ = 1, 10 do
    local open, close = {}, {}
    for k = 1, depth do
      local nest = NESTS[math.random(5)]
      open[k], close[depth + 1 - k] = nest[1], nest[2]
    end
    add_nested(depth, table.concat(open) .. "x" .. table.concat(close))
  end
end

-- Texts that are too long, with a name and without, and one that is not
local long = {}
for _, text in ipairs { "y = x" .. ("+x"):rep(33000), "bias: y = x" .. ("+x"):rep(33000), " bias :\ny = x" .. ("\n+x"):rep(33000),
                        "bias: y = x" .. (" "):rep(65536), "y = x" .. (" "):rep(65531) } do
  cases[#cases + 1] = { text = text, dtypes = { "f32" }, is_long = true }
  long[#long + 1] = { at = #cases, text = text }
end

---------------------------------------------------------------------------------------------------- the C side

local function write(name, parts)
  local file = assert(io.open(folder .. "/" .. name, "wb"))
  for _, part in ipairs(parts) do file:write(part) end
  file:close()
end

local parts = {}
for _, case in ipairs(cases) do
  parts[#parts + 1] = string.format("%s %d\n%s\n", table.concat(case.dtypes, " "), #case.text, case.text)
end
write("cases", parts)
local command = string.format("cc -std=gnu11 -Wall -Wextra -Werror -I'%s' -I'%s/runtime' -I'%s/include' -I'%s/generated' '%s/tests/support/random/typing_driver.c' "
  .. "'%s/libquern.a' -pthread -ldl -lm -o '%s/driver' 2>&1", root, root, root, build, root, build, folder)
local pipe = assert(io.popen(command))
local said = pipe:read "a"
if not pipe:close() then
  tap.diag("%s", said)
  tap.bail("the driver does not build")
end
tap.ok(os.execute(string.format("'%s/driver' < '%s/cases' > '%s/answers'", folder, folder, folder)), "the C side reads %d expressions",
       #cases)

local function words(text)
  local list = {}
  for word in text:gmatch "%S+" do list[#list + 1] = word end
  return list
end

-- { canonical, name, inputs, outputs, params, values = list of lists of words, out = list of { value, dtype }, status, message }
local answers, answer = {}, { values = {}, out = {} }
for line in io.lines(folder .. "/answers") do
  local word, rest = line:match "^(%S+) ?(.*)$"
  if word == "canonical" or word == "name" then
    answer[word] = rest
  elseif word == "inputs" or word == "outputs" or word == "params" then
    answer[word] = words(rest)
  elseif word == "out" then
    local value, dtype = rest:match "(%d+) (%S+)"
    table.insert(answer.out, { tonumber(value), dtype })
  elseif word == "end" then
    answer.status, answer.message = rest:match "^(%S+) ?(.*)$"
    answers[#answers + 1] = answer
    answer = { values = {}, out = {} }
  else
    table.insert(answer.values, words(line))
  end
end
tap.is(#answers, #cases, "and answers each")

---------------------------------------------------------------------------------------------------- comparison

local KIND_OF_STATUS = { ["-11"] = "syntax", ["-12"] = "notfound", ["-2"] = "dtype", ["-18"] = "limit", ["-10"] = "unsupported" }

-- Whether a condition is true of constants, as the test of a shift's count is when the count is one; nil: it is not constant.
local function constant_condition(node)
  if node.op == "const" then return node.value ~= 0 end
  local a, b = node.args[1], node.args[2]
  if node.op == "or" then
    local left, right = constant_condition(a), constant_condition(b)
    if left ~= nil and right ~= nil then return left or right end
  elseif (node.op == "ge" or node.op == "lt") and a.op == "const" and b.op == "const" then
    return (a.value >= b.value) == (node.op == "ge")
  end
end

-- What C says of a text, made into nodes of Lua's DAG for it: the nodes of the outputs. folds: Lua sees that a computed count
-- of a shift is a constant, C leaves that to the run.
local function rebuild(said_by_c, dag, result, folds)
  local state = expr.new_state(model)
  state.dag = dag
  local nodes = {}
  local function slot(index, type_name)
    for _, node in ipairs(result.slots) do
      if node.index == index and node.type == type_name then return node end
    end
  end
  for k, value in ipairs(said_by_c.values) do
    local kind, args = value[1], {}
    for j = kind == "op" and 5 or kind == "reduce" and 7 or kind == "scan" and 6 or 4, #value do args[#args + 1] = nodes[tonumber(value[j]) + 1] end
    if kind == "input" then
      nodes[k] = result.inputs[tonumber(value[3]) + 1]
      if nodes[k].type ~= value[2] then error("an input of another type", 0) end
    elseif kind == "param" then
      nodes[k] = slot(tonumber(value[3]), value[2]) or error("a slot that Lua has not", 0)
    elseif kind == "const" then
      local bits = math.tointeger(tonumber("0x" .. value[3]))
      local t = types.by_name[value[2]]
      nodes[k] = dag:constant(value[2], t.kind ~= "float" and bits or value[2] == "f32" and number.f32_value(bits) or number.f64_value(bits))
    elseif kind == "prim" then
      local storage = value[2]:match "^round_(%w+)$"
      nodes[k] = dag:make(storage and "round" or value[2], value[3], args, storage and { name = storage })
      if folds and nodes[k].op == "select" then
        local chosen = constant_condition(args[1])
        if chosen ~= nil then nodes[k] = chosen and args[2] or args[3] end
      end
    elseif kind == "count" then
      nodes[k] = dag.count
    elseif kind == "reduce" then
      local op = model.op_of_name[value[2]]
      local name = value[5] == "0" and op.name or string.format("%s %s %s", op.name, value[6], value[5])
      nodes[k] = dag:node("reduce", value[3], args, { index = tonumber(value[4]), name = name, reducer = op })
    elseif kind == "scan" then
      nodes[k] = dag:node("scan", value[3], args, { value = tonumber(value[5]), index = tonumber(value[4]), name = value[2],
                                                     reducer = model.op_of_name[value[2]] })
    elseif kind == "index" then
      nodes[k] = dag.index
    elseif kind == "kernel" then
      nodes[k] = rows.graft(dag, stage_text.stage_of(model, value[2]), args, tonumber(value[3]) + 1)
    else
      local op, env = model.op_of_name[value[2]], {}
      for j, input in ipairs(op.inputs) do env[input.name] = args[j] end
      for j, param in ipairs(op.params) do env[param.name] = args[#op.inputs + j] end
      local scope = setmetatable({ state = state, env = {} }, { __index = expr.Scope })
      nodes[k] = scope:call_body(op, value[3], env, args, tonumber(value[4]) + 1, { at = 1 })
    end
  end
  local out = {}
  for k, entry in ipairs(said_by_c.out) do out[k] = nodes[entry[1] + 1] end
  return out
end

local function list_text(list) return table.concat(list, " ") end

-- What differs, or nil; and whether both took it.
local function differs(case, c)
  local fine, result, message, kind = pcall(host.host_dag, model, case.text, case.dtypes)
  if not fine then return "Lua: " .. tostring(result) end
  local c_kind = c.status ~= "OK" and (KIND_OF_STATUS[c.status] or c.status) or nil
  if (result == nil) ~= (c_kind ~= nil) then
    return string.format("Lua: %s\nC: %s", result and "taken" or kind .. ": " .. message, c_kind and c_kind .. ": " .. c.message or "taken")
  end
  if c.canonical then
    if not case.known then return "canonical text of C only" end
    if c.canonical ~= case.canonical then return "canonical\n" .. c.canonical .. "\n" .. case.canonical end
    for _, field in ipairs { "inputs", "outputs", "params" } do
      if list_text(c[field]) ~= list_text(case.known[field]) then return field .. ": " .. list_text(c[field]) end
    end
    if c.name ~= case.known.name then return "name " .. c.name end
  end
  if not result then
    -- of several faults each may find another first: C what needs no dtypes
    local is_text = c_kind == "syntax" or c_kind == "notfound"
    if c_kind ~= kind and not is_text then return string.format("Lua: %s: %s\nC: %s: %s", kind, message, c_kind, c.message) end
    return nil, false, c_kind == kind and message:match "^%S+:%d+:%d+:" == c.message:match "^%S+:%d+:%d+:"
  end
  local dtypes, slots, c_slots = {}, {}, {}
  for k, entry in ipairs(c.out) do dtypes[k] = entry[2] end
  if list_text(dtypes) ~= list_text(result.out_dtypes) then
    return "output dtypes: C " .. list_text(dtypes) .. ", Lua " .. list_text(result.out_dtypes)
  end
  for k, node in ipairs(result.slots) do slots[k] = node.index .. node.type end
  for _, value in ipairs(c.values) do
    if value[1] == "param" then c_slots[#c_slots + 1] = value[3] .. value[2] end
  end
  table.sort(slots)
  table.sort(c_slots)
  if list_text(slots) ~= list_text(c_slots) then return "slots: C " .. list_text(c_slots) .. ", Lua " .. list_text(slots) end
  local wrong
  for _, folds in ipairs { false, true } do
    local is_built, out = pcall(rebuild, c, result.dag, result, folds)
    if not is_built then return type(out) == "table" and out.message or out end
    wrong = nil
    for k, node in ipairs(result.outputs) do
      if out[k] ~= node then wrong = string.format("output %d is another node: C %s of %s, Lua %s of %s", k, out[k].op, out[k].type, node.op, node.type) end
    end
    if not wrong then return nil, true end
  end
  return wrong
end

local n_taken, n_refused, n_places = 0, 0, 0
tap.group_begin("C and Lua agree")
for k, case in ipairs(cases) do
  tap.group_count()
  local what, taken, same_place
  if not case.is_long then -- those: see below
    what, taken, same_place = differs(case, answers[k] or { values = {}, out = {}, status = "none", message = "" })
  end
  if what then
    tap.group_fail("%s", string.format("%s\n  on %s:\n%s", case.text, list_text(case.dtypes), what))
  elseif k > n_cases then -- a misspelt name or a deep nest, see below
  elseif taken then
    n_taken = n_taken + 1
  else
    n_refused = n_refused + 1
    if same_place then n_places = n_places + 1 end
  end
end
tap.group_end()
tap.ok(n_taken > n_cases // 4 and n_refused > n_cases // 10, "%d taken by both, %d refused by both, %d of these at the same place", n_taken,
       n_refused, n_places)

tap.group_begin("a misspelt name: the same suggestion at the same place")
local n_suggested = 0
for _, case in ipairs(misspelt) do
  tap.group_count()
  local dtypes, c = cases[case.at].dtypes, answers[case.at]
  local dag, message, kind = host.host_dag(model, case.text, dtypes)
  local c_kind = c.status ~= "OK" and (KIND_OF_STATUS[c.status] or c.status) or nil
  local lines = (message or ""):gsub("\n", "|")
  if kind ~= case.said or c_kind ~= case.said or (dag == nil) ~= (case.said ~= nil) then
    tap.group_fail("%s: Lua: %s, C: %s, wanted %s: %s", case.text, kind or "taken", c_kind or "taken", case.said or "taken", lines)
  elseif lines:match "did you mean [^|]*" ~= (c.message or ""):match "did you mean [^|]*" then
    tap.group_fail("%s: Lua: %s, C: %s", case.text, lines, c.message)
  elseif kind and lines:match "^%S+:%d+:%d+:" ~= c.message:match "^%S+:%d+:%d+:" then
    tap.group_fail("%s: another place: Lua: %s, C: %s", case.text, lines, c.message)
  end
  if lines:find "did you mean" then n_suggested = n_suggested + 1 end
end
tap.group_end()
tap.ok(n_suggested > #callable, "%d misspelt names, %d suggestions", #misspelt, n_suggested)

tap.group_begin("reductions: taken by both, or refused with the same words at the same place")
for _, case in ipairs(reducing) do
  tap.group_count()
  local result, message = host.host_dag(model, case.text, cases[case.at].dtypes)
  local c = answers[case.at]
  local line, c_line = message and message:match "^[^\n]*", c.status ~= "OK" and c.message:match "^[^|]*" or nil
  if (result ~= nil) ~= case.is_right or (c.status == "OK") ~= case.is_right or line ~= c_line then
    tap.group_fail("%s\nLua: %s\nC: %s", case.text, line or "taken", c_line or "taken")
  end
end
tap.group_end()

tap.group_begin("200 levels are taken, 201 are not")
for _, case in ipairs(nested) do
  tap.group_count()
  local _, message, kind = host.host_dag(model, case.text, cases[case.at].dtypes)
  local c = answers[case.at]
  local c_kind = c.status ~= "OK" and (KIND_OF_STATUS[c.status] or c.status) or nil
  local wanted = case.depth > 200 and "limit" or nil
  if kind ~= wanted or c_kind ~= wanted then
    tap.group_fail("%d deep: Lua: %s, C: %s: %s: %s", case.depth, message or "taken", c_kind or "taken", c.message or "", case.text)
  elseif wanted and message:match "^%S+:%d+:%d+:[^\n]*" ~= c.message:match "^%S+:%d+:%d+:[^|]*" then
    tap.group_fail("%d deep: another place: Lua: %s, C: %s", case.depth, message, c.message)
  end
end
tap.group_end()

tap.group_begin("65536 bytes are taken, of more both say the same")
for _, case in ipairs(long) do
  tap.group_count()
  local _, _, message, kind = host.canonical(model, case.text)
  local c, lines = answers[case.at], (message or "OK"):gsub("\n", "|")
  local c_kind = c.status ~= "OK" and (KIND_OF_STATUS[c.status] or c.status) or nil
  if kind ~= (#case.text > 65536 and "limit" or nil) or c_kind ~= kind or (kind and lines ~= c.message) then
    tap.group_fail("%d bytes: Lua: %s, C: %s: %s", #case.text, lines, c_kind or "taken", c.message or "")
  end
end
tap.group_end()
os.execute("rm -rf '" .. folder .. "'")
tap.done_testing()
