-- SPDX-License-Identifier: Apache-2.0
--
-- t024-derive: derivatives in specs: given, derived, refused; those of built-in ops; how they stand in bodies of others.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. root .. "/?.lua;" .. package.path
local tap = require "tap"
local main = require "gen.main"
local kinds = require "gen.kinds.kinds"
local spec = require "gen.front.spec"
local derive = require "gen.graph.derive"
local expr = require "gen.graph.expr"
local evaluate = require "gen.graph.evaluate"
local order = require "gen.base.order"

-- The built-in model with a spec.
local function model_of(text)
  local model, _, errors = main.builtin_model(root)
  assert(#errors == 0, errors[1])
  local first = #model.ops + 1
  errors = spec.load(model, "user.lua", text)
  if #errors == 0 then derive.complete(model, first) end
  return model, errors
end

local function inputs_of(op)
  local names = {}
  for k, input in ipairs(op.inputs) do names[k] = input.name end
  return table.concat(names, " ")
end

-- The outputs of an op for inputs by name, and params.
local function run(model, name, values)
  local op = assert(model.op_of_name[name], name)
  for _, param in ipairs(op.params) do values[param.name] = values[param.name] or param.value end
  local dag, message = expr.op_dag(model, op, "f64")
  return { evaluate.run(model.types, assert(dag, message), values) }
end

---------------------------------------------------------------------------------------------------- built-in ops

local model = model_of ""
local without = {}
for _, op in ipairs(model.ops) do
  if op.backward then
    local backward = model.op_of_name[op.backward]
    tap.ok(backward and backward.backward_of == op.name and backward.inputs[1].name == "grad", "%s: (%s)", op.backward,
           inputs_of(backward))
  elseif not op.backward_of then
    without[op.name] = not kinds.of(op).has_derivative and kinds.of(op).name or #op.inputs == 0 and "no inputs"
      or #op.outputs > 1 and "several outputs"
      or op.outputs[1].type and "gives " .. op.outputs[1].type or op.grad == false and "says so" or op.backward_failed or "?"
    local takes_floats = false
    for _, dtype in ipairs(op.dtypes) do takes_floats = takes_floats or model.types.by_name[dtype].kind == "float" end
    if without[op.name] == "?" and not takes_floats then without[op.name] = "takes no floats" end
  end
end
for _, name in ipairs(order.keys(without)) do
  tap.ok(type(without[name]) == "string" and not without[name]:find "[\n?]", "%s has none: %s", name, without[name])
end

-- What is measured is what specs declare, and nothing that declares a bound is not.
local measured, unmeasured = 0, {}
for _, op in ipairs(model.ops) do
  if op.backward_of and next(op.ulp) then unmeasured[op.name] = true end
end
for line in io.lines(root .. "/tools/measure/accuracy_backward.c") do
  local name, f32, f64 = line:match '^    {"([%w_]+)", {([%d.]+), ([%d.]+)}, '
  if name then
    local declared = model.op_of_name[name .. "_backward"].ulp
    measured = measured + 1
    unmeasured[name .. "_backward"] = nil
    local is_held = (declared.f32 or 0.5) == tonumber(f32) and (declared.f64 or 0.5) == tonumber(f64)
    tap.ok(is_held, "%s: it is held to its bounds", name)
  end
end
for name in pairs(unmeasured) do tap.ok(false, "%s is measured", name) end
tap.ok(measured > 30, "%d bounds are measured", measured)

---------------------------------------------------------------------------------------------------- specs

local text = [=[
unary "acme.cube" { doc = "d", dtypes = floating, body = [[ x * x * x ]] }
unary "acme.given" { doc = "d", dtypes = floating, body = [[ x * x * x ]], grad = [[ T z = x * x; return 3 * grad * z; ]] }
unary "acme.by_result" { doc = "d", dtypes = floating, body = [[ exp(x) ]], grad = "grad * out" }
unary "acme.by_y" { doc = "d", dtypes = floating, body = [[ exp(x) ]], grad = "grad * y", examples = { { x = 0.0, y = 1.0 } } }
op "acme.named" { doc = "d", inputs = "x", outputs = "e", dtypes = floating, body = "e = exp(x);", grad = "grad * (y + e) / 2" }
unary "acme.own_y" { doc = "d", dtypes = floating, body = [[ exp(x) ]], grad = [[ T y = out * 2; return grad * y / 2; ]] }
unary "acme.own_out" { doc = "d", dtypes = floating, body = [[ exp(x) ]], grad = [[ T out = exp(x); return grad * out; ]] }
unary "acme.local_out" { doc = "d", dtypes = floating, body = [[ T out = exp(x); return out * 1; ]] }
binary "acme.both" { doc = "d", dtypes = floating, body = [[ x * sin(y) ]], grad = { x = "grad * sin(y)", y = "grad * x * cos(y)" } }
binary "acme.assigned" { doc = "d", dtypes = floating, body = [[ x * y ]], grad = [[ grad_y = grad * x; grad_x = grad * y; ]] }
binary "acme.one" { doc = "d", dtypes = floating, body = [[ x * y ]], grad = { y = "grad * x" } }
op "acme.masked" { doc = "d", inputs = "bool m, x", params = { scale = 2.0 }, dtypes = floating, body = [[ m ? scale * log(x) : 0 ]] }
func "acme_square" { args = "v", body = "v * v" }
unary "acme.through" { doc = "d", dtypes = floating, body = [[ T t = acme_square(x); return acme.cube(t) + acme.both(x, t); ]] }
unary "acme.none" { doc = "d", dtypes = floating, body = [[ x * x ]], grad = false }
unary "acme.bits" { doc = "d", dtypes = { "f32" }, body = [[ as_f32(as_i32(x) & 0x7fffffff) ]] }
unary "acme.steps" { doc = "d", dtypes = floating, body = [[ floor(x) ]] }
unary "acme.whole" { doc = "d", dtypes = integer, body = [[ x + x ]] }
unary "acme.test" { doc = "d", dtypes = floating, result = "bool", body = [[ x > 0 ]] }
unary "acme.narrow" { doc = "d", dtypes = "bf16", body = [[ x * x ]] }
unary "acme.keyed" { doc = "d", dtypes = { "f16", "bf16" }, body = { f16 = [[ x + 1 ]], bf16 = [[ x * 2 ]] } }
unary "acme.uses_none" { doc = "d", dtypes = floating, body = [[ acme.none(x) + x ]] }
]=]
local errors
model, errors = model_of(text)
tap.is(#errors, 0, "a spec of all sorts is taken")
for _, message in ipairs(errors) do tap.diag("%s", message) end

local function inputs_are(name, wanted)
  tap.is(inputs_of(model.op_of_name[name .. "_backward"]), wanted, "%s: of %s", name, wanted)
end

inputs_are("acme.cube", "grad x")
inputs_are("acme.given", "grad x")
inputs_are("acme.by_result", "grad out")
inputs_are("acme.by_y", "grad out")
inputs_are("acme.named", "grad e")
inputs_are("acme.own_y", "grad out")
inputs_are("acme.own_out", "grad x")
inputs_are("acme.local_out", "grad x")
inputs_are("acme.both", "grad x y")
inputs_are("acme.assigned", "grad x y")
inputs_are("acme.one", "grad x")
inputs_are("acme.narrow", "grad x")
tap.ok(not model.op_of_name["acme.keyed_backward"], "bodies of storage dtypes are not derived")
inputs_are("acme.masked", "grad m x")
inputs_are("acme.steps", "grad")
for _, name in ipairs { "acme.none", "acme.bits", "acme.whole", "acme.test", "acme.uses_none" } do
  tap.ok(not model.op_of_name[name .. "_backward"], "%s has no derivative", name)
end
tap.is(#model.op_of_name["acme.one_backward"].outputs, 1, "a table may name some inputs")

local function gives(name, values, ...)
  local got, wanted = run(model, name .. "_backward", values), { ... }
  local fine = #got == #wanted
  for k, value in ipairs(wanted) do fine = fine and math.abs(got[k] - value) <= 1e-14 * math.abs(value) end
  tap.ok(fine, "%s: %s", name, table.concat(got, " "))
end
gives("acme.cube", { grad = 2.0, x = 3.0 }, 54.0)
gives("acme.given", { grad = 2.0, x = 3.0 }, 54.0)
gives("acme.by_result", { grad = 2.0, out = 5.0 }, 10.0)
gives("acme.by_y", { grad = 2.0, out = 5.0 }, 10.0)
gives("acme.named", { grad = 2.0, e = 5.0 }, 10.0)
gives("acme.own_y", { grad = 2.0, out = 5.0 }, 10.0)
gives("acme.own_out", { grad = 2.0, x = 0.0 }, 2.0)
gives("acme.local_out", { grad = 2.0, x = 0.0 }, 2.0)
gives("acme.both", { grad = 2.0, x = 3.0, y = 0.5 }, 2 * math.sin(0.5), 6 * math.cos(0.5))
gives("acme.assigned", { grad = 2.0, x = 3.0, y = 5.0 }, 10.0, 6.0)
gives("acme.masked", { grad = 3.0, m = 1, x = 4.0 }, 1.5)
gives("acme.masked", { grad = 3.0, m = 0, x = 0.0 }, 0.0) -- nothing of the branch that is not taken
gives("acme.steps", { grad = 3.0 }, 0.0)
gives("acme.through", { grad = 1.0, x = 2.0 }, 6 * 2.0 ^ 5 + math.sin(4.0) + 2 * math.cos(4.0) * 4)

-- What is given and what would be derived agree, where a built-in op's formula is one that is derived too.
local derived = model_of [=[
unary "acme.sqrt2" { doc = "d", dtypes = floating, body = [[ sqrt(x) ]] }
unary "acme.clip2" { doc = "d", dtypes = floating, body = [[ minimum(maximum(x, -1), 1) ]] }
]=]
local function agrees(given, values, of_derived, wanted)
  local a, b = run(derived, given .. "_backward", values)[1], run(derived, of_derived .. "_backward", values)[1]
  tap.ok(a == b and a == wanted, "%s and %s agree: %s, %s", given, of_derived, a, b)
end
agrees("sqrt", { grad = 2.0, x = 4.0, out = 2.0 }, "acme.sqrt2", 0.5)
agrees("clip", { grad = 2.0, x = 0.25, min = -1.0, max = 1.0 }, "acme.clip2", 2.0)
agrees("clip", { grad = 2.0, x = 3.0, min = -1.0, max = 1.0 }, "acme.clip2", 0.0)

---------------------------------------------------------------------------------------------------- what is refused

local function refuses(fields, wanted)
  local _, why = model_of('binary "acme.a" { doc = "d", dtypes = floating, ' .. fields .. " }")
  tap.ok(#why > 0 and why[1]:find(wanted, 1, true), "%s: %s", fields, wanted)
  if not (why[1] or ""):find(wanted, 1, true) then tap.diag("%s", why[1] or "taken") end
end
refuses('body = "x + y", grad = true', "expected a body")
refuses('body = "x + y", grad = "grad"', "grad assigns no grad_x")
refuses('body = "x + y", grad = { z = "grad" }', "'z' is no input with a derivative")
refuses('body = "x + y", grad = {}', "grad assigns no grad_x")
refuses('body = "x + y", grad_ulp = { f32 = 0.1 }', "grad_ulp: expected")
refuses('body = "x > y", result = "bool", grad = "grad"', "grad is for ops of one output, a float")
local _, why = model_of 'unary "grad" { doc = "d", dtypes = floating, body = "x" }'
tap.ok(why[1] and why[1]:find("'grad' cannot be an op's name", 1, true), "an op named grad")

for _, op in ipairs(order.keys(derive.RULES)) do
  for k, rule in ipairs(derive.RULES[op]) do
    local words = derive.postfix(rule)
    tap.ok(rule == "0" and words == "" or words:find "grad" ~= nil or words:find "x" ~= nil, "%s, %d: %s", op, k, words)
  end
end
tap.is(derive.postfix "x > 0 ? grad : -(grad * 0.5)", "x #0 gt grad grad #1 mul neg select", "a rule in postfix order")
tap.done_testing()
