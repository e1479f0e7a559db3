-- SPDX-License-Identifier: Apache-2.0
--
-- t530-host: what a host's expression means: gen/graph/host.lua and gen/service.lua by themselves. Names and canonical text; for
-- texts and dtypes the typed graph, written out; what is refused, with which word and where; limits; hostile texts; the C
-- text of kernels; programs of ops; specs that come and are taken back.

local root = os.getenv "QUERN_SOURCE_DIR" or (arg[0]:match "^(.*)/[^/]*$" or ".") .. "/../.."
package.path = root .. "/tests/support/?.lua;" .. root .. "/?.lua;" .. package.path
local tap = require "tap"
local main = require "gen.main"
local host = require "gen.graph.host"
local expr = require "gen.graph.body.expr"
local foreign = require "gen.front.foreign"
local kinds = require "gen.kinds.kinds"
local number = require "gen.base.number"
local service = require "gen.service"
local variants = require "gen.targets.variants"
local emit = require "gen.base.files"

local model = main.builtin_model(root)
local types = model.types

---------------------------------------------------------------------------------------------------- names

tap.diag "canonical text"
-- { text, canonical, inputs, outputs, params, [name] }
for _, row in ipairs {
  { "x", "x0", "x", "out", "" },
  { "return x;", "return x0", "x", "out", "" },
  { "  y=x*w+b ; ", "v0 = x0 * x1 + x2", "x w b", "y", "" },
  { "y = gelu(x * w + b); z = y > 0", "v0 = gelu ( x0 * x1 + x2 ) ; v1 = v0 > 0", "x w b", "y z", "" },
  { "f32 t = x; t*t", "f32 v0 = x0 ; v0 * v0", "x", "out", "" },
  { "param a; param b; y = b*x + a;", "param p0 ; param p1 ; v0 = p1 * x0 + p0", "x", "y", "a b" },
  { "k : // none\n x+1 # one\n /* two */ + PI; // three", "x0 + 1 + PI", "x", "out", "", "k" },
  { "-x ** 2 // w", "floor_divide ( - pow ( x0 , 2 ) , x1 )", "x w", "out", "" },
  { "auto t = not a < b and pi > 3; t or c", "auto v0 = ! ( x0 < x1 ) && PI > 3 ; v0 || x2", "a b c", "out", "" },
  { "exp = x; y = exp(exp)", "v0 = x0 ; v1 = exp ( v0 )", "x", "exp y", "" },
  { "x1 + x0", "x0 + x1", "x1 x0", "out", "" },
  { "v0 = p0; x0 = v0", "v0 = x0 ; v1 = v0", "p0", "v0 x0", "" },
  { "acme.f(x, .5, 0x1p-3)", "acme.f ( x0 , .5 , 0x1p-3 )", "x", "out", "" },
  { "(f16)x<<=y", false },
  { "a<b?c:d", "x0 < x1 ? x2 : x3", "a b c d", "out", "" },
  { "y = (f32)1", "v0 = ( f32 ) 1", "", "y", "" },
  { "f32 out = x; out + 1", "f32 v0 = x0 ; v0 + 1", "x", "out", "" },
  { "b8 + b16", "x0 + x1", "b8 b16", "out", "" },
  { "f32 : x", "x0", "x", "out", "", "f32" },
} do
  local canonical, names = host.canonical(model, row[1])
  if row[2] == false then
    tap.ok(not canonical, "refused: %s", row[1])
  else
    tap.is(canonical, row[2], "%s", row[1])
    if canonical then
      local list = { table.concat(names.inputs, " "), table.concat(names.outputs, " "), table.concat(names.params, " "), names.name }
      tap.is(table.concat(list, "|"), table.concat({ row[3], row[4], row[5], row[6] or "expression" }, "|"), "  its names")
      tap.is(host.canonical(model, canonical), canonical, "  the same again")
    end
  end
end

tap.group_begin("names of other libraries: what is to be written is there, and what is there is no other library's name")
for name, sentence in pairs(foreign.functions) do
  tap.group_count()
  local op = model.op_of_name[name]
  local is_called = op and not kinds.of(op).refusal -- astype, which is not, has a row as a method
  if is_called or expr.PRIMITIVES[name] then tap.group_fail("%s is an op", name) end
  local whole = sentence:match "^write ([%a_][%w_]*)$"
  for called in (whole and whole .. "(" or sentence):gmatch "([%a_][%w_.]*)%(" do
    if not expr.op_called(model, called) and not expr.PRIMITIVES[called] then tap.group_fail("%s: %s: no %s", name, sentence, called) end
  end
end
tap.group_end()

tap.diag "the ops that are called"
for text, wanted in pairs {
  ["y = gelu(exp(x)) + gelu(x) * PI"] = "gelu exp", ["y = frexp.mantissa(x); z = frexp.exponent(x)"] = "frexp",
  ["exp(x) * tanh(y) // gelu(x) ** exp(y)"] = "floor_divide exp tanh pow gelu", ["not x ** 2 // exp(y) < 1"] = "floor_divide pow exp",
  ["exp = x; y = where(exp > 0, as_i32(x), 2)"] = "where", ["y = grad(exp(x) * tanh(x), x) + floor(x)"] =
    "exp tanh floor exp_backward tanh_backward floor_backward", ["y = ("] = "", ["x + 1"] = "",
} do
  local list = {}
  for k, op in ipairs(host.ops_called(model, text)) do list[k] = op.name end
  tap.is(table.concat(list, " "), wanted, "%s: %s", text, wanted)
end

---------------------------------------------------------------------------------------------------- meaning

-- A node as text: op:type(arguments), constants by their value.
local function shown(node)
  if node.op == "input" then return node.name end
  if node.op == "param" then return string.format("p%d:%s", node.index, node.type) end
  if node.op == "const" then
    local value = node.value
    if node.type == "f32" then value = number.f32_value(value) elseif node.type == "f64" then value = number.f64_value(value) end
    return string.format("%s:%s", number.text(value), node.type)
  end
  local args = {}
  for k, arg in ipairs(node.args) do args[k] = shown(arg) end
  return string.format("%s%s:%s(%s)", node.op, node.name and "_" .. node.name or "", node.type, table.concat(args, " "))
end

local function split(text)
  local list = {}
  for word in text:gmatch "%S+" do list[#list + 1] = word end
  return list
end

-- What an expression comes to: "dtype = graph" of each output, then the slots.
local function meaning(text, dtypes)
  local dag, message, kind = host.host_dag(model, text, split(dtypes))
  if not dag then return nil, message, kind end
  local parts = {}
  for k, node in ipairs(dag.outputs) do parts[k] = dag.out_dtypes[k] .. " = " .. shown(node) end
  local slots = {}
  for k, node in ipairs(dag.slots) do slots[k] = shown(node) end
  if #slots > 0 then parts[#parts + 1] = "slots " .. table.concat(slots, " ") end
  return table.concat(parts, "; ")
end

-- The same of graphs that would be long as text: their nodes, each once.
local function outline(text, dtypes)
  local dag, message, kind = host.host_dag(model, text, split(dtypes))
  if not dag then return nil, message, kind end
  local parts = {}
  for _, node in ipairs(dag.dag.nodes) do
    local args = {}
    for k, arg in ipairs(node.args) do args[k] = arg.id end
    parts[#parts + 1] = string.format("%s %s %s %s %s", node.op, node.type, tostring(node.value or node.index), node.name or "", table.concat(args, " "))
  end
  for k, node in ipairs(dag.outputs) do parts[#parts + 1] = node.id .. dag.out_dtypes[k] end
  for _, node in ipairs(dag.slots) do parts[#parts + 1] = node.id end
  return table.concat(parts, "\n")
end

local function means(rows)
  for _, row in ipairs(rows) do
    local got, message = meaning(row[1], row[2])
    tap.is(got, row[3], "%s  of %s", row[1], row[2] == "" and "nothing" or row[2])
    if not got then tap.diag("%s", message) end
    local canonical = host.canonical(model, row[1])
    if got and meaning(canonical, row[2]) ~= got then tap.fail("  the canonical text means something else: %s", canonical) end
  end
end

tap.diag "promotion, weak numbers, dtypes"
means {
  { "x", "f32", "f32 = x0" },
  { "x", "f16", "f16 = x0" },
  { "x", "bool", "bool = x0" },
  { "x + y", "i32 f32", "f32 = add:f32(cast:f32(x0) x1)" },
  { "x + y", "f16 f16", "f16 = add:f32(x0 x1)" },
  { "x + y", "f16 bf16", "f32 = add:f32(x0 x1)" },
  { "x + y", "i64 f16", "f16 = add:f32(cast:f32(x0) x1)" },
  { "x * y", "f16 f64", "f64 = mul:f64(cast:f64(x0) x1)" },
  { "x + y", "u8 i32", "i32 = add:i32(cast:i32(x0) x1)" },
  { "x + y", "bool i32", "i32 = add:i32(cast:i32(x0) x1)" },
  { "x + 1", "f16", "f16 = add:f32(x0 1:f32)" },
  { "1 - x", "i64", "i64 = sub:i64(1:i64 x0)" },
  { "x + 1.5", "i32", "f64 = add:f64(cast:f64(x0) 1.5:f64)" },
  { "x + 1.5", "u8", "f32 = add:f32(cast:f32(x0) 1.5:f32)" },
  { "x + 0.5", "bool", "f32 = add:f32(cast:f32(x0) 0.5:f32)" },
  { "1/2 * x", "f64", "f64 = mul:f64(0.5:f64 x0)" },
  { "x / y", "i32 i64", "f64 = div:f64(cast:f64(x0) cast:f64(x1))" },
  { "x / y", "f64 i64", "f64 = div:f64(x0 cast:f64(x1))" },
  { "x / 2", "f16", "f16 = div:f32(x0 2:f32)" },
  { "0xffffffff & x", "i32", "i32 = and:i32(-1:i32 x0)" },
  { "x + 16777217", "f32", "f32 = add:f32(x0 16777216:f32)" },
  { "x + 9007199254740993", "f64", "f64 = add:f64(x0 9007199254740992:f64)" },
  -- to f32 rounded once, from the integer: by way of f64 it would be the even neighbour
  { "x + 0x100000100000001", "f32", "f32 = add:f32(x0 72057602627862528:f32)" },
  { "-x", "f16", "f16 = neg:f32(x0)" },
  { "+x", "bf16", "bf16 = x0" },
  { "~x", "u8", "u8 = not:u8(x0)" },
  { "~x", "bool", "bool = lnot:bool(x0)" },
  { "!x", "f16", "bool = lnot:bool(ne:bool(x0 0:f32))" },
  { "x < y", "f16 i32", "bool = lt:bool(x0 cast:f32(x1))" },
  { "x == 3", "u8", "bool = eq:bool(x0 3:u8)" },
  { "x != y", "bool bool", "bool = ne:bool(x0 x1)" },
  { "x & y", "bool u8", "u8 = and:u8(cast:u8(x0) x1)" },
  { "x && y", "f32 i64", "bool = and:bool(ne:bool(x0 0:f32) ne:bool(x1 0:i64))" },
  { "x || 0", "bool", "bool = x0" },
  { "x << 3", "i32", "i32 = shl:i32(x0 3:i32)" },
  { "x >> 40", "i32", "i32 = shr:i32(x0 31:i32)" },
  { "x << y", "i32 u8", "i32 = shl:i32(x0 select:i32(ge:bool(x1 32:u8) 32:i32 cast:i32(x1)))" },
  { "c ? x : y", "bool f16 i32", "f16 = select:f32(x0 x1 cast:f32(x2))" },
  { "c ? x : 0", "f16 bf16", "bf16 = select:f32(ne:bool(x0 0:f32) x1 0:f32)" },
  { "1 ? x : y", "i32 f64", "f64 = cast:f64(x0)" },
  { "1 < 2 ? x : y", "f32 f32", "f32 = canon:f32(x0)" },
  { "x * exp(-0.03)", "f64", "f64 = mul:f64(x0 0.97044553354850815:f64)" },
  { "auto k = 2 * pi; x * k ** 2", "f64", "f64 = mul:f64(x0 39.478417604357432:f64)" },
  { "x + (7 // 2) * maximum(2, 3)", "i32", "i32 = add:i32(x0 9:i32)" },
  { "2 + 3 * 4 - x", "i32", "i32 = sub:i32(14:i32 x0)" },
  { "PI * x", "f32", "f32 = mul:f32(3.1415927410125732:f32 x0)" },
  { "x * -0.0", "f32", "f32 = mul:f32(x0 -0:f32)" },
  { "param a; x / a", "i32", "f64 = div:f64(cast:f64(x0) p0:f64); slots p0:f64" },
  { "x * INFINITY", "f64", "f64 = mul:f64(x0 inf:f64)" },
}

tap.diag "casts and locals"
means {
  { "(f32)x", "f16", "f32 = x0" },
  { "(f64)x", "f16", "f64 = cast:f64(x0)" },
  { "(f16)x", "f32", "f16 = round_f16:f32(x0)" },
  { "(f16)x", "f64", "f16 = round_f16:f32(x0)" },
  { "(f16)x", "i64", "f16 = round_f16:f32(x0)" },
  { "(bf16)x", "f16", "bf16 = round_bf16:f32(x0)" },
  { "(f16)x", "f16", "f16 = round_f16:f32(x0)" },
  { "(f16)x + y", "i64 f16", "f16 = add:f32(round_f16:f32(x0) x1)" },
  { "(f16)(x > 0)", "f32", "f16 = round_f16:f32(gt:bool(x0 0:f32))" },
  { "(i32)x", "f16", "i32 = cast:i32(x0)" },
  { "(bool)x", "f32", "bool = cast:bool(x0)" },
  { "(i16)x * 3", "f32", "i16 = mul:i16(cast:i16(x0) 3:i16)" },
  { "(f32)1 + x", "i32", "f32 = add:f32(1:f32 cast:f32(x0))" },
  { "(f16)0.1", "", "f16 = round_f16:f32(0.10000000149011612:f32)" },
  { "(i32)2.5", "", "i32 = cast:i32(2.5:f64)" },
  { "f16 t = x * 2; y = t / q; z = t;", "i64 u8", "f16 = div:f32(round_f16:f32(mul:i64(x0 2:i64)) cast:f32(x1)); f16 = round_f16:f32(mul:i64(x0 2:i64))" },
  { "f32 t = 2; t * x", "f16", "f32 = mul:f32(2:f32 x0)" },
  { "y = x + w; z = y * y", "f16 f16", "f16 = add:f32(x0 x1); f16 = mul:f32(add:f32(x0 x1) add:f32(x0 x1))" },
  { "i64 t = x; t", "u8", "i64 = cast:i64(x0)" },
  { "f64 t = x; y = x", "f32", "f32 = x0" },
}

tap.diag "functions and ops"
means {
  { "sqrt(x)", "i32", "f64 = sqrt:f64(cast:f64(x0))" },
  { "sqrt(x)", "f16", "f16 = sqrt:f32(x0)" },
  { "abs(x)", "i64", "i64 = abs:i64(x0)" },
  { "maximum(x, 0)", "u8", "u8 = maximum:u8(x0 0:u8)" },
  { "maximum(x, 0.5)", "u8", "f32 = maximum:f32(cast:f32(x0) 0.5:f32)" },
  { "rint(x)", "bf16", "bf16 = rint:f32(x0)" },
  { "floor(x)", "bool", nil },
  { "fma(x, 300, y)", "u8 f32", "f32 = fma:f32(cast:f32(x0) 300:f32 x1)" },
  { "divide(x, 3)", "i32", "f64 = div:f64(cast:f64(x0) 3:f64)" },
  { "copysign(x, y)", "f32 f64", "f64 = copysign:f64(cast:f64(x0) x1)" },
  { "signbit(x)", "f16", "bool = signbit:bool(x0)" },
  { "isnan(x)", "f16", "bool = ne:bool(x0 x0)" },
  { "as_u32(x)", "f32", "u32 = bits:u32(x0)" },
  { "as_f32(as_u32(x) ^ 0x80000000)", "f32", "f32 = from_bits:f32(xor:u32(bits:u32(x0) 2147483648:u32))" },
  { "as_i64(x)", "f64", "i64 = bits:i64(x0)" },
  { "where(c, x, y)", "bool f16 i32", "f16 = select:f32(x0 x1 cast:f32(x2))" },
  { "where(x > 0, x, 0)", "i32", "i32 = select:i32(gt:bool(x0 0:i32) x0 0:i32)" },
  { "where(x, 1, b)", "i32 bool", "bool = select:bool(ne:bool(x0 0:i32) 1:bool x1)" },
  { "where(1, x, y)", "i32 bool", "i32 = x0" },
  { "less(x, y)", "bool bool", "bool = lt:bool(x0 x1)" },
  { "relu(x)", "i32", "i32 = select:i32(le:bool(x0 0:i32) 0:i32 x0)" },
  { "leaky_relu(x)", "f32", "f32 = select:f32(gt:bool(x0 0:f32) x0 mul:f32(0.0099999997764825821:f32 x0))" },
  { "leaky_relu(x, 0.5)", "f64", "f64 = select:f64(gt:bool(x0 0:f64) x0 mul:f64(0.5:f64 x0))" },
  { "clip(x)", "i32", "i32 = minimum:i32(maximum:i32(x0 -2147483648:i32) 2147483647:i32)" },
  { "clip(x, -1)", "u8", "u8 = minimum:u8(maximum:u8(x0 0:u8) 255:u8)" },
  { "clip(x, 0x8000000000000000, 0xfffffffffffffff0)", "u64", "u64 = minimum:u64(maximum:u64(x0 -9223372036854775808:u64) -16:u64)" },
  { "clip(x, -1e30, 1e30)", "i64", "i64 = minimum:i64(maximum:i64(x0 -9223372036854775808:i64) 9223372036854775807:i64)" },
  { "clip(x, 1.0, 300)", "u8", "u8 = minimum:u8(maximum:u8(x0 1:u8) 255:u8)" },
  { "clip(x, 0, 6)", "f16",
    "f16 = select:f32(eq:bool(x0 x0) "
    .. "from_bits:f32(cast:i32(maximum:u32(cast:u32(minimum:i32(cast:i32(minimum:u32(cast:u32(maximum:i32(raw:i32(x0) "
    .. "select:i32(or:bool(ne:bool(0:f32 0:f32) ne:bool(6:f32 6:f32)) 2143289344:i32 "
    .. "select:i32(lt:bool(bits:i32(0:f32) 0:i32) -2147483648:i32 bits:i32(0:f32))))) "
    .. "select:u32(or:bool(or:bool(ne:bool(0:f32 0:f32) ne:bool(6:f32 6:f32)) ge:bool(bits:i32(0:f32) 0:i32)) "
    .. "4294967295:u32 cast:u32(bits:i32(0:f32))))) select:i32(or:bool(or:bool(ne:bool(0:f32 0:f32) ne:bool(6:f32 "
    .. "6:f32)) lt:bool(bits:i32(6:f32) 0:i32)) 2147483647:i32 bits:i32(6:f32)))) "
    .. "select:u32(or:bool(or:bool(ne:bool(0:f32 0:f32) ne:bool(6:f32 6:f32)) ge:bool(bits:i32(6:f32) 0:i32)) "
    .. "0:u32 cast:u32(bits:i32(6:f32)))))) nan:f32)" },
  { "clip(x, NAN, 6)", "f32",
    "f32 = select:f32(eq:bool(x0 x0) "
    .. "from_bits:f32(cast:i32(maximum:u32(cast:u32(minimum:i32(cast:i32(minimum:u32(cast:u32(maximum:i32(raw:i32(x0) "
    .. "select:i32(or:bool(ne:bool(nan:f32 nan:f32) ne:bool(6:f32 6:f32)) 2143289344:i32 "
    .. "select:i32(lt:bool(bits:i32(nan:f32) 0:i32) -2147483648:i32 bits:i32(nan:f32))))) "
    .. "select:u32(or:bool(or:bool(ne:bool(nan:f32 nan:f32) ne:bool(6:f32 6:f32)) ge:bool(bits:i32(nan:f32) "
    .. "0:i32)) 4294967295:u32 cast:u32(bits:i32(nan:f32))))) select:i32(or:bool(or:bool(ne:bool(nan:f32 nan:f32) "
    .. "ne:bool(6:f32 6:f32)) lt:bool(bits:i32(6:f32) 0:i32)) 2147483647:i32 bits:i32(6:f32)))) "
    .. "select:u32(or:bool(or:bool(ne:bool(nan:f32 nan:f32) ne:bool(6:f32 6:f32)) ge:bool(bits:i32(6:f32) 0:i32)) "
    .. "0:u32 cast:u32(bits:i32(6:f32)))))) nan:f32)" },
  { "pow(x, 2)", "bool", nil },
  { "add(x, add(x, 1))", "u8", "u8 = add:u8(x0 add:u8(x0 1:u8))" },
}

tap.diag "params"
means {
  { "param a; x * a", "f16", "f16 = mul:f32(x0 p0:f32); slots p0:f32" },
  { "param a; param b; y = b * x; z = a + w", "f64 i32", "f64 = mul:f64(p1:f64 x0); i32 = add:i32(p0:i32 x1); slots p0:i32 p1:f64" },
  { "param a; x * a + y * a", "f16 f64", "f64 = add:f64(cast:f64(mul:f32(x0 p0:f32)) mul:f64(x1 p0:f64)); slots p0:f32 p0:f64" },
  { "param a; x + (a + 1) * 2", "i32", "i32 = add:i32(x0 mul:i32(add:i32(p0:i32 1:i32) 2:i32)); slots p0:i32" },
  { "param a; x + a / 2", "i32", "f64 = add:f64(cast:f64(x0) div:f64(p0:f64 2:f64)); slots p0:f64" },
  { "param a; x - -a", "u8", "u8 = sub:u8(x0 neg:u8(p0:u8)); slots p0:u8" },
  { "param a; x * (0.5 * +a)", "u8", "f32 = mul:f32(cast:f32(x0) mul:f32(0.5:f32 p0:f32)); slots p0:f32" },
  { "param a; x + a * 0.5", "bool", "f32 = add:f32(cast:f32(x0) mul:f32(p0:f32 0.5:f32)); slots p0:f32" },
  { "param a; x << a", "i32", "i32 = shl:i32(x0 p0:i32); slots p0:i32" },
  { "param a; x > a", "i64", "bool = gt:bool(x0 p0:i64); slots p0:i64" },
  { "param a; x > 0 ? x : a", "f32", "f32 = select:f32(gt:bool(x0 0:f32) x0 p0:f32); slots p0:f32" },
  { "param a; (f32)a", "", "f32 = p0:f32; slots p0:f32" },
  { "param a; (f16)(a + 1)", "", "f16 = round_f16:f32(add:f32(p0:f32 1:f32)); slots p0:f32" },
  { "param a; (i32)(a * 0.5)", "", "i32 = cast:i32(mul:f64(p0:f64 0.5:f64)); slots p0:f64" },
  { "param a; (i32)a + x", "u8", "i32 = add:i32(p0:i32 cast:i32(x0)); slots p0:i32" },
  { "param a; where(x, a, y)", "bool bool", "bool = select:bool(x0 p0:bool x1); slots p0:bool" },
  { "param a; sqrt(x + a)", "i32", "f64 = sqrt:f64(cast:f64(add:i32(x0 p0:i32))); slots p0:i32" },
  { "param a; fma(x, a, 1)", "i32", "f64 = fma:f64(cast:f64(x0) p0:f64 1:f64); slots p0:f64" },
  { "param a; leaky_relu(x, a / 4)", "f16", "f16 = select:f32(gt:bool(x0 0:f32) x0 mul:f32(div:f32(p0:f32 4:f32) x0)); slots p0:f32" },
  { "param a; clip(x, a, a + 1)", "i32", "i32 = minimum:i32(maximum:i32(x0 p0:i32) add:i32(p0:i32 1:i32)); slots p0:i32" },
  { "param a; f32 t = a; y = x", "i32", "i32 = x0; slots p0:f32" },
  { "param a; f16 t = a; y = t", "", "f16 = round_f16:f32(p0:f32); slots p0:f32" },
  { "param a; y = x", "i32", "i32 = x0" },
  { "param a; y = 1 ? x : a", "i32", "i32 = x0; slots p0:i32" },
}

---------------------------------------------------------------------------------------------------- refusals

-- { text, dtypes, kind, words, [place] }
local function refuses(rows)
  for _, row in ipairs(rows) do
    local got, message, kind = meaning(row[1], row[2])
    local place = row[5] or "expression:1:"
    local good = not got and kind == row[3] and message:find(row[4], 1, true) and message:sub(1, #place) == place
      and select(2, message:gsub("\n", "\n")) == 2
    tap.ok(good, "%s  of %s: %s", row[1]:sub(1, 60), row[2], row[4])
    if not good then tap.diag("%s: %s", tostring(kind), got or message) end
  end
end

tap.diag "what is refused"
refuses {
  { "", "", "syntax", "no output", "expression:1:1:" },
  { "f32 t = x;", "f32", "syntax", "no output" },
  { "param a;", "", "syntax", "no output" },
  { "param a", "", "syntax", "no output" },
  { "k:", "", "syntax", "no output", "k:1:3:" },
  { "k: x +", "", "syntax", "expected a value, found the end", "k:1:7:" },
  { "y = x\n  + (;", "", "syntax", "expected a value, found ';'", "expression:2:6:" },
  { "y = x; y = z", "f32 f32", "syntax", "'y' is already defined, as an output", "expression:1:8:" },
  { "f32 y = x; y = z", "f32 f32", "syntax", "'y' is already defined, as a local" },
  { "z = x; x = 1", "f32", "syntax", "'x' is read before, as an input" },
  { "y = y + 1", "f32", "syntax", "'y' is read before, as an input" },
  { "y = a; param a;", "f32", "syntax", "'a' is read before, as an input" },
  { "param a; param a; y = x", "f32", "syntax", "'a' is already defined, as a param" },
  { "param a; a = x", "f32", "syntax", "'a' is already defined, as a param" },
  { "param PI; y = x", "f32", "syntax", "'PI' is a constant" },
  { "E = x", "f32", "syntax", "'E' is a constant" },
  { "f32 NAN = x; NAN", "f32", "syntax", "'NAN' is a constant" },
  { "out = x; x", "f32", "syntax", "the result is an output named out" },
  { "out", "f32", "syntax", "the result is an output named out" },
  { "rare (x > 0) { y = x; }", "f32", "syntax", "rare belongs to the body of an op" },
  { "rare + 1", "f32", "syntax", "'rare' where a value is expected" },
  { "1 + rare(x)", "f32", "syntax", "'rare' where a value is expected" },
  { "lookup + x", "f32", "syntax", "'lookup' where a value is expected" },
  { "param = 1", "f32", "syntax", "expected a name, found 'param'" },
  { "param + 1", "f32", "syntax", "'param' where a value is expected" },
  { "param f32; x", "f32", "syntax", "expected a name, found 'f32'" },
  { "y = return x", "f32", "syntax", "'return' where a value is expected" },
  { "(T)x", "f32", "syntax", "T has no meaning here" },
  { "T t = x; t", "f32", "syntax", "T has no meaning here" },
  { "x + T", "f32", "syntax", "type 'T' where a value is expected" },
  { "f32 + x", "f32", "syntax", "expected a name, found '+'" },
  { "raw_u32(x)", "f32", "syntax", "raw_u32 is for the library's own math; write as_u32" },
  { "lookup(t, x)", "f32 i32", "syntax", "lookup is for the library's own math" },
  { "exq(x)", "f32", "notfound", "unknown function 'exq', did you mean 'exp'?" },
  { "erfinv(x)", "f32", "notfound", "unknown function 'erfinv'" },
  { "gelu.tanh(x)", "f32", "notfound", "unknown function 'gelu.tanh'" },
  { "x.sum()", "f32", "notfound", "unknown function 'x.sum': no registered op, and operands have no methods: write sum" },
  { "np.linalg.norm(x)", "f32", "notfound", "unknown function 'np.linalg.norm': write vector_norm" },
  { "a.b + 1", "f32", "syntax", "unknown name 'a.b'" },
  { "a.b = 1", "f32", "syntax", "expected a name, found 'a.b'" },
  { "x % 2", "i32", "syntax", "'%' is no operator" },
  { "a < b < c", "f32 f32 f32", "syntax", "chained comparison" },
  { "x; y = 1", "f32", "syntax", "nothing may follow the result" },
  { "x + 012", "f32", "syntax", "octal" },
  { "astype(x)", "f32", "syntax", "write a cast" },
  { "saturate_cast(x)", "i32", "syntax", "a cast wraps; clip before it: (i8)clip(x, -128, 127)" },
  { "full()", "", "syntax", "full is no part of an expression: write the number" },
  { "exp(x, y)", "f32 f32", "syntax", "exp takes 1 argument, got 2" },
  { "leaky_relu(x, 1, 2)", "f32", "syntax", "leaky_relu takes 1 argument and 1 parameter, got 3" },
  { "copysign(x)", "f32", "syntax", "copysign takes 2 arguments, got 1" },
  { "y = 1 + 2", "", "dtype", "this has no dtype: literals take the other operand's; write a cast, (f32)1" },
  { "param a; y = a", "", "dtype", "this has no dtype: parameters take the other operand's; write a cast, (f32)a" },
  { "param a; y = a * 2", "", "dtype", "this has no dtype" },
  { "x > y ? 1 : 2", "f32 f32", "dtype", "this has no dtype" },
  { "x + 2 ** 63", "f32", "dtype", "the number does not fit 64 bits" },
  { "param a; auto t = a; x * t", "f32", "dtype", "this has no dtype: parameters" },
  { "x > 0 ? 1 : 2", "f32", "dtype", "this has no dtype" },
  { "param a; a ? x : y", "f32 f32", "dtype", "this has no dtype" },
  { "param a; a & 1", "", "dtype", "this has no dtype" },
  { "param a; a << x", "i32", "dtype", "this has no dtype" },
  { "param a; ~a", "", "dtype", "this has no dtype" },
  { "sqrt(2)", "", "dtype", "this has no dtype" },
  { "exp(2)", "", "dtype", "this has no dtype" },
  { "as_u32(1)", "", "dtype", "this has no dtype" },
  { "x + 1", "bool", "dtype", "bool with the number 1" },
  { "param a; x + a", "bool", "dtype", "bool with a parameter" },
  { "param a; where(x, a + 1, y)", "bool bool", "dtype", "arithmetic of a parameter where bool is expected" },
  { "where(x, 2, y)", "bool bool", "dtype", "2 is no bool" },
  { "x + y", "bool bool", "dtype", "'+' of two bools" },
  { "-x", "bool", "dtype", "'-' of a bool" },
  { "x + 256", "u8", "dtype", "256 does not fit u8" },
  { "x & 1.5", "i32", "dtype", "'&' of floats" },
  { "x << 1.5", "i32", "dtype", "a float literal where i32 is expected" },
  { "param a; x << a * 0.5", "i32", "dtype", "a float where i32 is expected" },
  { "param a; clip(x, a / 2)", "i32", "dtype", "a float where i32 is expected" },
  { "clip(x, 0.5)", "i32", "dtype", "clip: parameter min is 0.5, which is no i32" },
  { "clip(x, NAN)", "i32", "dtype", "clip: parameter min is nan, which is no i32" },
  { "clip(x, y)", "i32 i32", "dtype", "clip: min is a parameter: a number or a param, no operand" },
  { "i32 t = x; t", "f32", "dtype", "write the cast, (i32)" },
  { "i32 t = 1.5; t", "", "dtype", "a float literal where i32 is expected" },
  { "param a; i32 t = a / 2; t", "", "dtype", "a float where i32 is expected" },
  { "as_u32(x)", "f16", "dtype", "as_u32 of f16: the sizes differ" },
  { "abs((bool)x)", "f32", "dtype", "abs does not take bool" },
  { "relu(x)", "bool", "dtype", "relu does not take bool" },
  { "sqrt(x) & y", "f16 i32", "dtype", "'&' of floats" },
  { "x + 0.5 * exp(y, ", "f32", "syntax", "expected a value" },
  { "x += 1", "f32", "syntax", "'+=' is no operator: nothing is changed in place; write y = x + ...", "expression:1:3:" },
  { "x === y", "f32", "syntax", "expected a value, found '='", "expression:1:5:" },
  { "clip(x, min=0)", "f32", "syntax", "'=' in a call: clip takes its arguments in their order, without names", "expression:1:12:" },
  { "softmax(x, dim=0)", "f32", "syntax", "expected axis or keepdims; others go by place, before these" },
  { "x.T + 1", "f32", "syntax", "operands have no attributes: give a view" },
  { "x + f32(y)", "f32 f32", "syntax", "type 'f32' where a value is expected: a cast is (f32)x" },
  { "y := x", "f32", "syntax", "':=' is no operator: write y = ...", "y:1:3:" },
  { "(x--) * 2", "f32", "syntax", "'--' is no operator: nothing is changed in place; write y = x - 1" },
  { "x \xc3\x97 2", "f32", "syntax", "the byte 0xc3 does not belong to the expression language: write *" },
  { "\xe2\x80\x9cx\xe2\x80\x9d", "f32", "syntax", "language: names are written without quotes" },
  { "x", "b32", "dtype", "unknown dtype 'b32'" },
  { "x", "f32 f32", "dtype", "dtypes of inputs: 2 given, expected 1" },
}

local dag, message, kind = host.host_dag(model, "y = x; z = x > 0", { "f32" }, { "i32", "bool" })
tap.ok(not dag and kind == "dtype" and message:find("output y: f32 does not become i32 by itself", 1, true), "an output does not change kind downward")
tap.ok(host.host_dag(model, "y = x > 0; z = x", { "f32" }, { "f16", "bf16" }), "upward it does, and narrower it may be")

---------------------------------------------------------------------------------------------------- limits

tap.diag "limits"
local function limit(text, dtypes, words)
  local start = os.clock()
  local got, why, what = outline(text, dtypes)
  local seconds = os.clock() - start
  tap.ok(not got and what == "limit" and why:find(words, 1, true) and seconds < 3, "%s", words)
  if got or what ~= "limit" then tap.diag("%s: %s", tostring(what), got or why) end
end
local canonical, _, why, what = host.canonical(model, "x" .. ("+x"):rep(33000))
tap.ok(not canonical and what == "limit" and why:find("longer than 65536 bytes", 1, true), "64 KiB")
limit("x" .. ("+x"):rep(2001), "f32", "more than 2000 operators in one chain")
limit(("("):rep(201) .. "x" .. (")"):rep(201), "f32", "nested deeper than 200")
limit(("-"):rep(300) .. "x", "f32", "nested deeper than 200")
limit(("("):rep(30000) .. "x", "f32", "nested deeper than 200")
for _, nest in ipairs { { "(", ")" }, { "sqrt(", ")" }, { "fma(x, x, ", ")" }, { "-", "" }, { "(f32)", "" }, { "x ? x : ", "" },
                        { "x ? ", " : x" } } do
  local taken, refusal = outline(nest[1]:rep(200) .. "x" .. nest[2]:rep(200), "f32")
  tap.ok(taken, "%s 200 deep %s", nest[1], refusal or "")
  limit(nest[1]:rep(201) .. "x" .. nest[2]:rep(201), "f32", "nested deeper than 200")
end
local names = {}
for k = 1, 32 do names[k] = "a" .. k end
limit(table.concat(names, "+"), ("f32 "):rep(32), "more than 32 inputs and outputs")
limit("y = x" .. ("; y%d = x"):rep(31):gsub("%%d", (function() local k = 0 return function() k = k + 1 return tostring(k) end end)()), "f32",
      "more than 32 inputs and outputs")
limit((("param p%d; "):rep(17):gsub("%%d", (function() local k = 0 return function() k = k + 1 return tostring(k) end end)())) .. "x", "f32", "more than 16 params")
local chain = { "f32 t0 = x" }
for k = 1, 200 do chain[#chain + 1] = string.format("f32 t%d = pow(t%d, %d.5)", k, k - 1, k) end
limit(table.concat(chain, "; ") .. "; t200", "f32", "more than 4096 nodes after inlining")
limit("exp(x)" .. (" + exp(x * %d)"):rep(300):gsub("%%d", (function() local k = 0 return function() k = k + 1 return tostring(k) end end)()), "f64",
      "more than 4096 nodes after inlining")
tap.ok(outline(table.concat(names, "+", 1, 31), ("f16 "):rep(31)), "31 inputs and an output are taken")
tap.ok(outline("x" .. ("+x"):rep(2000), "f32"), "2000 operators are taken")
local long = host.canonical(model, "x" .. ("+x"):rep(1999) .. ";" .. (" "):rep(60000))
tap.ok(long and outline(long, "f32"), "a canonical text is taken whatever its length")

---------------------------------------------------------------------------------------------------- hostile texts

tap.group_begin "text soup: never an error of the reader's own, and what is taken is taken again"
local rng = tap.rng(530)
local WORDS = split [[x y z w out param return rare lookup T f32 f16 i32 bool u8 i16 PI E NAN INFINITY exp pow gelu where clip abs sqrt
  maximum as_u32 as_f32 raw_u32 signbit acme.f leaky_relu ( ( ( ) ) ) ( ) ; ; ; , , = = = + - * / & | ^ ~ ! < > <= >= == != << >> && || ? :
  1 2 0.5 1.5 0x10 1e10 3 x y z = ; { } % // /* . 08 1e999 99999999999999999999]]
local DTYPES = { "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64" }
local n_taken = 0
local function try(text)
  tap.group_count()
  local ok, c, n = pcall(host.canonical, model, text)
  if not ok then return tap.group_fail("%q: %s", text, c) end
  if not c then return end
  local dtypes = {}
  for k = 1, #n.inputs do dtypes[k] = rng:pick(DTYPES) end
  dtypes = table.concat(dtypes, " ")
  local fine, got, _, got_kind = pcall(outline, text, dtypes)
  local fine_too, again, _, kind_again = pcall(outline, c, dtypes)
  if not fine or not fine_too then return tap.group_fail("%q: %s", text, fine and again or got) end
  if got then n_taken = n_taken + 1 end
  if host.canonical(model, c) ~= c or got ~= again or got_kind ~= kind_again then
    tap.group_fail("%q: %s is not the same: %s, %s", text, c, got or got_kind, again or kind_again)
  end
end
for _ = 1, 4000 do
  local words = {}
  for k = 1, rng:range(1, 14) do words[k] = rng:pick(WORDS) end
  try(table.concat(words, " "))
end
-- the same from a grammar, so that most of it is taken
local function expression(depth)
  local r = rng:range(1, depth <= 0 and 3 or 12)
  local function e() return expression(depth - 1) end
  if r <= 2 then return rng:pick { "x", "y", "z", "a", "b" } end
  if r == 3 then return rng:pick { "1", "2", "0.5", "3", "PI", "0x7", "1e3" } end
  if r <= 6 then return "(" .. e() .. rng:pick(split "+ - * / + - * < > == != && || & | ^ << >>") .. e() .. ")" end
  if r == 7 then return rng:pick { "-", "!", "~", "+", "(f32)", "(f16)", "(i32)", "(i64)", "(bool)", "(u8)", "(bf16)", "(f64)", "(i16)" } .. e() end
  if r == 8 then return "(" .. e() .. "?" .. e() .. ":" .. e() .. ")" end
  if r == 9 then return rng:pick { "sqrt", "abs", "exp", "tanh", "relu", "signbit", "rint", "negative", "isnan" } .. "(" .. e() .. ")" end
  if r == 10 then return rng:pick { "maximum", "add", "pow", "less", "copysign", "divide", "multiply" } .. "(" .. e() .. "," .. e() .. ")" end
  if r == 11 then return rng:pick { "fma", "where" } .. "(" .. e() .. "," .. e() .. "," .. e() .. ")" end
  return rng:pick { "leaky_relu(" .. e() .. "," .. e() .. ")", "clip(" .. e() .. "," .. e() .. "," .. e() .. ")", "clip(" .. e() .. ")" }
end
for _ = 1, 3000 do
  local parts = { rng:pick { "", "k: " } .. rng:pick { "", "param a; ", "param b; param a; " } }
  if rng:range(1, 3) == 1 then parts[#parts + 1] = rng:pick { "f32 t = ", "f16 t = ", "u = " } .. expression(2) .. "; " end
  parts[#parts + 1] = "q = " .. expression(4)
  try(table.concat(parts))
end
tap.group_end()
tap.ok(n_taken > 700, "%d of them have a meaning", n_taken)

tap.group_begin "bytes at random"
for _ = 1, 3000 do
  local bytes = {}
  for k = 1, rng:range(0, 40) do bytes[k] = string.char(rng:range(0, 255)) end
  try(table.concat(bytes))
end
for _, text in ipairs { "\0", "x\0y", "x;\0", "/*", "/**/", "//", "x//\n", "k:k:k:x", ":", "::", "x:y", "?", "x?", "x?:", "x??y", "\xff", "1", "-", "(((", ")))",
                        "f32", "f32 x", "f32 x =", "f32 x = 1", "param", "param x", "param x;;", ";;;", ";", "return", "return;", "x..y", "x.1", "a.b.c(x)",
                        "a.b (x)", "1.x", "x.(y)", "acme.f", "()", "f()", "exp()", "exp(,)", "exp(x,)", "(f32)", "(f32)(f32)x", "(f32)f32" } do
  try(text)
end
tap.group_end()

---------------------------------------------------------------------------------------------------- the service

tap.diag "what the module asks"
local function new_service()
  return service.new { model = function() return (main.builtin_model(root)) end, read = function(name) return emit.read(root .. "/" .. name) end }
end
local s = new_service()

-- programs: lines that runtime/lang/op_lines.c understands, of primitives that there are
local function check_program(text, n_out)
  local n, outputs, n_in = 0, 0, 0
  for line in text:gmatch "([^\n]*)\n" do
    local words = split(line)
    if words[1] == "out" then
      outputs = outputs + 1
      if tonumber(words[2]) >= n or #words ~= 2 then return "out of nothing: " .. line end
    elseif outputs > 0 then
      return "a value behind the outputs: " .. line
    else
      local t = types.by_name[words[words[1] == "prim" and 3 or 2]]
      if not t or (t.kind == "bits" or t.compute ~= t.name) then return "type: " .. line end
      if words[1] == "in" then
        if n ~= n_in then return "an input behind others: " .. line end
        n_in = n_in + 1
      elseif words[1] == "param" then
        if not math.tointeger(words[3]) then return line end
      elseif words[1] == "const" then
        if not words[3]:find "^%x+$" or #words[3] ~= 16 or (t.bits < 64 and tonumber(words[3], 16) >> t.bits ~= 0) then return line end
      elseif words[1] == "table" then
        if #words ~= 3 + tonumber(words[3]) then return line:sub(1, 60) end
      elseif words[1] == "prim" then
        if not types.by_name[words[4]] or #words < 5 then return line end
        for k = 5, #words do
          if tonumber(words[k]) >= n then return "a value that is not there yet: " .. line end
        end
      else
        return line
      end
      n = n + 1
    end
  end
  if outputs ~= n_out then return outputs .. " outputs" end
end

local built = {}
for _, t in ipairs(types.list) do built[t.name] = t.built or nil end
local ok_primitives, primitives = pcall(require, "gen.products.library.primitive_kernels")
local known
if ok_primitives then
  known = {}
  for _, p in ipairs((primitives.of_plan(assert(main.plan(model, {}))))) do
    known[string.format("%s %s %s %d", p.op, p.type, p.args[#p.args], #p.args)] = true
  end
end
tap.group_begin "the program of every op in every type"
for _, op in ipairs(model.ops) do
  local Ks = kinds.is_formula(op) and variants.kernel_dtypes(types, op, built) or {}
  -- in an expression what moves is computed with
  if kinds.of(op).is_bits and not kinds.of(op).refusal then table.move({ "bool", "i32", "f32", "f64" }, 1, 4, #Ks + 1, Ks) end
  for _, K in ipairs(Ks) do
    tap.group_count()
    local text, _, problem = s:program(op.name, K)
    local bad = not text and problem or check_program(text, #op.outputs)
    if bad then tap.group_fail("%s %s: %s", op.name, K, bad) end
    for name, result, arg, values in (text or ""):gmatch "prim (%S+) (%S+) (%S+) ([%d ]+)" do
      local key = string.format("%s %s %s %d", name, result, arg, #split(values))
      if known and not known[key] then tap.group_fail("%s %s: no primitive %s", op.name, K, key) end
    end
  end
end
tap.group_end()
tap.is(s:program("leaky_relu", "f32"), "in f32\nparam f32 0\nconst f32 0000000000000000\nprim gt bool f32 0 2\nprim mul f32 f32 1 0\n"
       .. "prim select f32 f32 3 0 4\nout 5\n", "a program")
tap.is(s:program("where", "b16"), "in bool\nin u16\nin u16\nprim select u16 u16 0 1 2\nout 3\n", "one that moves")
local _, no_op = s:program("nope", "f32")
tap.is(no_op, "notfound", "no such op")
_, no_op = s:program("exp", "i32")
tap.is(no_op, "syntax", "no such body")

local function source_of(canonical_text, dtypes, n_in, classes, rank, symbol)
  return s:source { symbol = symbol or "qj_0123456789abcdef", canonical = canonical_text, dtypes = split(dtypes), n_in = n_in, classes = classes, rank = rank }
end
local text = source_of("v0 = x0 * x1 + 1 ; v1 = v0 > 0", "f16 f32 f16 bool", 2, "cbcc", 2)
tap.has_str(text, "void Q_NAME(qj_0123456789abcdef)(char *const *ptr", "a kernel's source")
tap.has_str(text, '#include "kernel.h"', "  includes kernel.h")
tap.has_str(text, "q_f16_f32(((const f16_s_u *)row_x0)[i], q_zero)", "  reads f16 as it lies")
tap.has_str(text, "q_cast_f32_f16(", "  and writes it")
tap.is(text, source_of("v0 = x0 * x1 + 1 ; v1 = v0 > 0", "f16 f32 f16 bool", 2, "cbcc", 2), "  and is the same again")
tap.has_str(source_of("param p0 ; param p1 ; x0 * p1 + p0 * 1.0", "i32 f32", 1, "cc", 1), "(const char *)params + 8", "params stand in slots")
for _, row in ipairs {
  { { "x0 +", "f32 f32", 1, "cc", 1 }, "syntax" }, { { "foo ( x0 )", "f32 f32", 1, "cc", 1 }, "notfound" },
  { { "x0 + 1", "bool f32", 1, "cc", 1 }, "dtype" }, { { "x0", "f32 i32", 1, "cc", 1 }, "dtype" },
  { { "x0", "f32 f32", 1, "cb", 1 }, "bug" }, { { "x0", "f32 f32", 1, "ccc", 1 }, "bug" }, { { "x0", "f32 f32", 1, "cc", 3 }, "bug" },
  { { "x0", "f32 f32", 1, "cc", 1, "a b" }, "bug" }, { { "x0", "f32 f32 f32", 1, "ccc", 1 }, "dtype" },
} do
  local got, got_kind, got_message = source_of(table.unpack(row[1]))
  tap.ok(not got and got_kind == row[2] and type(got_message) == "string", "%s: %s", row[1][1], row[2])
end

local function cuda_of(canonical_text, dtypes, n_in, classes, rank, is_wide, op)
  return s:source { symbol = "qj_0", op = op, canonical = canonical_text, dtypes = split(dtypes), n_in = n_in, classes = classes,
                    rank = rank, target = "cuda", is_wide = is_wide }
end
local function op_of(op, dtypes, n_in, classes, rank) return cuda_of(nil, dtypes, n_in, classes, rank, false, op) end
local items_per_thread
text, items_per_thread = cuda_of("v0 = x0 * x1 + 1 ; v1 = v0 > 0", "f16 f32 f16 bool", 2, "cbcc", 2)
tap.has_str(text, 'extern "C" __global__ void __launch_bounds__(256, 1) qj_0(const __grid_constant__ q_args_4_2_0 args)', "a CUDA kernel")
tap.is(items_per_thread, 4, "  its items per thread")
tap.is(text:find '#include "kernel_', nil, "  is complete")
tap.has_str(cuda_of("x0 + x1", "f16 f16 f16", 2, "tsc", 0, true), "tile_x0", "  of any rank, tiled and strided")
tap.has_str(op_of("where", "bool f16 f32 f64", 3, "cccc", 1), "q_cast_f32_f64(q_from_f32(", "an op that moves")
tap.has_str(op_of("astype", "f32 f32", 1, "cc", 1), "q_canon_f32(", "a cast of NaN alone")
tap.has_str(op_of("full", "f16", 0, "c", 1), "const u16 p_value = (u16)args.param[0];", "a fill")
for _, row in ipairs {
  { { "x0", "f32 f32", 1, "tc", 1 }, "bug" }, { { "x0", "f32 f32", 1, "ct", 2 }, "bug" }, { { "x0", "f32 f32", 1, "cb", 2 }, "bug" },
  { { "x0", "f32 f32", 1, "cc", 4 }, "bug" }, { { "astype(y)", "f32 f32", 1, "cc", 1 }, "syntax" },
  { { "astype(x)", "f32 f32", 1, "cc", 1 }, "syntax" },
  { { nil, "f32 f33", 1, "cc", 1, false, "astype" }, "dtype" }, { { nil, "f32 f32 f32", 2, "ccc", 1, false, "copy" }, "dtype" },
  { { nil, "f32 f32 f32 f32", 3, "cccc", 1, false, "where" }, "dtype" }, { { nil, "f32 f32", 1, "cc", 1, false, "exp" }, "unsupported" },
  { { nil, "f32 f32", 1, "cc", 1, false, "expp" }, "notfound" }, { { "x0 +", "f32 f32", 1, "cc", 1 }, "syntax" },
} do
  local got, got_kind, got_message = cuda_of(table.unpack(row[1], 1, 7))
  tap.ok(not got and got_kind == row[2] and type(got_message) == "string", "CUDA, %s: %s", row[1][1] or row[1][7], row[2])
end

tap.diag "specs"
local swish = 'unary "acme.swish" { doc = "d", params = { k = 1 }, dtypes = floating, body = "x * sigmoid(k * x)" }\n'
tap.ok(s:load_spec("a.lua", swish .. 'func "acme_half" { body = "x * 0.5" }\nbinary "acme.two" { doc = "d", dtypes = floating, body = "x + acme.swish(y, 2)" }'),
       "a spec with two ops, of which one uses the other")
tap.ok(source_of("acme.swish ( x0 , 2 )", "f16 f16", 1, "cc", 1), "its op in an expression")
tap.ok(s:program("acme.swish", "f32"), "its program")
local function rejects(spec_text, wanted_kind, words, name)
  local before = #s.model.ops
  local got, got_kind, got_message = s:load_spec("b.lua", spec_text)
  tap.ok(not got and got_kind == wanted_kind and got_message:find(words, 1, true) and #s.model.ops == before, "%s", name)
  if got or got_kind ~= wanted_kind then tap.diag("%s: %s", tostring(got_kind), tostring(got_message)) end
end
rejects(swish, "exists", "acme.swish: an op, already defined at a.lua:1", "the same again")
rejects('unary "exp" { doc = "d", dtypes = floating, body = "x" }', "exists", "exp: a built-in op, already defined at dsl/unary.lua:", "a built-in op's name")
rejects('unary "acme.n" { doc = "d", dtypes = floating, body = "x +" }', "syntax", "acme.n: expected a value, found the end", "a body that is no expression")
rejects('unary "acme.n" { doc = "d", dtypes = floating, body = "x" }\nunary "acme.m" { doc = "d", dtypes = floating, body = "zz" }', "syntax",
        "b.lua:2:56: acme.m: unknown name 'zz'", "the second of two is wrong")
tap.ok(not s.model.op_of_name["acme.n"] and not s.model.op_of_c_name.acme_n, "then the first is not there either")
rejects('func "acme_third" { body = "x / 3" }\nunary "acme.m" { doc = "d", dtypes = floating, body = "zz" }', "syntax", "unknown name 'zz'", "nor a function")
tap.is(s.model.func_of_name.acme_third, nil, "  indeed")
rejects('unary "acme.n" { doc = "d", dtypes = all, moves = true, body = "x" }', "unsupported", "generate them ahead", "an op that moves")
rejects('unary "acme.n" { doc = "d", dtypes = all, casts = true, body = "x" }', "unsupported", "generate them ahead", "an op that casts")
rejects("while true do end", "syntax", "a spec is data", "a program")
local many = {}
for k = 1, 30 do many[k] = string.format('unary "acme.n%d" { doc = "d", dtypes = { "f32" }, body = "zz" }', k) end
rejects(table.concat(many, "\n"), "syntax", "more", "thirty errors end in a count")
local _, _, long_message = s:load_spec("b.lua", table.concat(many, "\n"))
tap.ok(#long_message < 1024, "  that fit a sentence")
for k = 1, 2001 do many[k] = string.format('unary "acme.n%d" { doc = "d", dtypes = { "f32" }, body = "x" }', k) end
rejects(table.concat(many, "\n"), "syntax", "a spec may have 2000 declarations", "too many ops")
local works = { "x" }
for k = 1, 700 do works[#works + 1] = string.format("exp(x * %d)", k) end
for k = 1, 60 do many[k] = string.format('unary "acme.n%d" { doc = "d", dtypes = floating, body = "%s" }', k, table.concat(works, " + ", 1, 100)) end
local start = os.clock()
local got, got_kind, got_message = s:load_spec("b.lua", table.concat(many, "\n", 1, 60))
tap.ok(not got and got_kind == "limit" and os.clock() - start < 8, "too much work in bodies that are each within their limits")
if got_kind ~= "limit" then tap.diag("%s: %s", tostring(got_kind), tostring(got_message)) end
tap.ok(s:load_spec("targets/c/text.lua", 'unary "acme.n" { doc = "d", dtypes = floating, body = "x" }'), "after all of that a spec is taken")
tap.is(s:forget(), "", "and taken back")
tap.is(s.model.op_of_name["acme.n"], nil, "  indeed")
tap.ok(s:load_spec("targets/c/text.lua", 'op "acme.c" { inputs = "bool a, bool b", doc = "d", dtypes = { "bool" }, body = "a & !b" }'), "an op of conditions only")
tap.is(select(2, s:program("acme.c", "bool")), nil, "  has a program")
tap.ok(source_of("acme.c ( x0 , x1 > 0 )", "i32 f32 bool", 2, "ccc", 1), "  and is part of an expression")

tap.done_testing()
