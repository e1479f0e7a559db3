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
local expr = require "gen.graph.body.expr"
local evaluate = require "gen.graph.dag.evaluate"
local evaluate_rows = require "gen.graph.evaluate_rows"
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
    local result = kinds.of(op).has_stages and kinds.of(op).result_dtype(model.types, op, "f32")
    without[op.name] = not kinds.of(op).has_derivative and kinds.of(op).name or #op.inputs == 0 and "no inputs"
      or #op.outputs > 1 and "several outputs"
      or op.outputs[1].type and "gives " .. op.outputs[1].type
      or result and result ~= "f32" and "gives " .. result or op.grad == false and "says so" or op.backward_failed or "?"
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
for line in io.lines(root .. "/tools/measure/accuracy/accuracy_backward.c") do
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

---------------------------------------------------------------------------------------------------- ops that reduce

local function run_row(of_model, name, values)
  local op = assert(of_model.op_of_name[name], name)
  for _, param in ipairs(op.params) do
    if not param.is_shape then values[param.name] = values[param.name] or param.value end
  end
  local dag, message = expr.op_dag(of_model, op, "f64")
  return { evaluate_rows.run(of_model, assert(dag, message), values) }
end

local function at(value, k) return type(value) == "table" and value[k] or value end

-- The derivatives of an op by its inputs, as the op <op>_backward gives them: name of the input -> list
local function backward_row(of_model, op, values, grad)
  local backward, given, by = of_model.op_of_name[op.backward], { grad = grad }, {}
  for name, value in pairs(values) do given[name] = value end
  given[op.outputs[1].name] = run_row(of_model, op.name, values)[1]
  for k, list in ipairs(run_row(of_model, backward.name, given)) do by[op.inputs[backward.by[k] + 1].name] = list end
  return by
end

-- Compares them with central differences of the results, each times its grad. values: inputs and params by name
local STEP = 0x1p-18
local function differs(of_model, op, values, n)
  local grad = {}
  for k = 1, n do grad[k] = 0.5 + k % 3 end
  if op.is_reduced then grad = 1.5 end
  local worst = 0
  for name, list in pairs(backward_row(of_model, op, values, grad)) do
    for k = 1, n do
      local sum = {}
      for side = -1, 1, 2 do
        local moved, total = {}, 0
        for other, value in pairs(values) do moved[other] = value end
        moved[name] = table.move(values[name], 1, n, 1, {})
        moved[name][k] = moved[name][k] + side * STEP
        local out = run_row(of_model, op.name, moved)[1]
        for j = 1, op.is_reduced and 1 or n do total = total + at(out, j) * at(grad, j) end
        sum[side] = total
      end
      local wanted = (sum[1] - sum[-1]) / (2 * STEP)
      worst = math.max(worst, math.abs(at(list, k) - wanted) / (1 + math.abs(wanted)))
    end
  end
  return worst
end

local PARAMS = { var = { { correction = 1 } }, std = { { correction = 1 } }, nanvar = { { correction = 1 } }, rms_norm = { { eps = 0.25 } },
                 vector_norm = { { ord = 0 }, { ord = 1 }, { ord = 3 }, { ord = 0.5 }, { ord = -1 }, { ord = math.huge }, { ord = -math.huge } } }
local n_rows = 0
for _, op in ipairs(model.ops) do
  for _, params in ipairs(op.backward and kinds.of(op).has_stages and { {}, table.unpack(PARAMS[op.name] or {}) } or {}) do
    local values, said, n = {}, "", 5
    for k, input in ipairs(op.inputs) do
      values[input.name] = input.type == "i64" and 2 or {}
      for i = 1, input.type and 0 or n do values[input.name][i] = ((7 * i + 5 * k) % 11 + 1) / 4 - (i % 2) * 0.125 end
    end
    for name, value in pairs(params) do values[name], said = value, said .. string.format(", %s = %g", name, value) end
    local worst = differs(model, op, values, n)
    n_rows = n_rows + 1
    tap.ok(worst < 1e-8, "%s%s: beside differences: %.1e", op.backward, said, worst)
  end
end
tap.ok(n_rows > 30, "%d derivatives of ops that reduce", n_rows)

-- At kinks and ends. wanted: the derivative by x for a grad of 6
local NAN, INF = 0.0 / 0.0, math.huge
local function row_is(name, values, wanted)
  local list = backward_row(model, model.op_of_name[name], values, values.grad or 6.0).x
  local fine = #list == #wanted
  for k, value in ipairs(wanted) do fine = fine and (list[k] == value or list[k] ~= list[k] and value ~= value) end
  tap.ok(fine, "%s: %s", name, table.concat(list, " "))
end
row_is("max", { x = { 3.0, 1.0, 3.0, 3.0 } }, { 2.0, 0.0, 2.0, 2.0 })
row_is("min", { x = { 0.0, 1.0, -0.0 } }, { 3.0, 0.0, 3.0 })
row_is("max", { x = { 3.0, NAN } }, { NAN, NAN })
row_is("max", { x = { INF, INF } }, { 3.0, 3.0 })
row_is("nanmax", { x = { 3.0, NAN } }, { 6.0, 0.0 })
row_is("nanmin", { x = { NAN, NAN } }, { NAN, NAN })
row_is("prod", { x = { 2.0, 0.0, 3.0 } }, { 0.0, 36.0, 0.0 })
row_is("prod", { x = { 0.0, 0.0, 3.0 } }, { 0.0, 0.0, 0.0 })
row_is("prod", { x = { 2.0, -3.0, 0.5 } }, { -9.0, 6.0, -36.0 })
row_is("nanprod", { x = { 2.0, NAN, 0.0 } }, { 0.0, 0.0, 12.0 })
row_is("nansum", { x = { 2.0, NAN } }, { 6.0, 0.0 })
row_is("reduce_l2", { x = { 0.0, 0.0 } }, { 0.0, 0.0 })
row_is("reduce_l2", { x = { 0x3p600, 0x4p600 }, grad = 5.0 }, { 3.0, 4.0 })
row_is("vector_norm", { x = { 0.0, 0.0 } }, { 0.0, 0.0 })
row_is("vector_norm", { x = { -2.0, 1.0, 2.0 }, ord = INF }, { -3.0, 0.0, 3.0 })
row_is("vector_norm", { x = { -2.0, 0.0 }, ord = 1.0 }, { -6.0, 0.0 })
row_is("vector_norm", { x = { -2.0, 0.0 }, ord = 0.5 }, { -6.0, 0.0 })
row_is("std", { x = { 2.0, 2.0 } }, { 0.0, 0.0 })
row_is("var", { x = { 2.0 }, correction = 1.0 }, { NAN })
row_is("logsumexp", { x = { -INF, -INF } }, { 0.0, 0.0 })
row_is("logsumexp", { x = { 1000.0, -INF } }, { 6.0, 0.0 })
row_is("normalize", { x = { 0.0, 0.0 }, eps = 0.5, grad = { 1.0, 2.0 } }, { 2.0, 4.0 })
row_is("nll_loss", { x = { 1.0, 2.0 }, t = 1 }, { 0.0, -6.0 })
row_is("nll_loss", { x = { 1.0, 2.0 }, t = 2 }, { NAN, NAN })
row_is("cross_entropy", { x = { 1.0, 1.0 }, t = 0 }, { -3.0, 3.0 })
row_is("cross_entropy", { x = { 1.0, 1.0 }, t = -1 }, { NAN, NAN })
row_is("softmax", { x = { -INF, 0.0 }, grad = { 1.0, 2.0 } }, { 0.0, 0.0 })

-- Those of a spec: through calls of row ops and reductions, over several levels.
local own = model_of [=[
reduction "acme.plain" { doc = "d", dtypes = floating, combine = "a + b", empty = 0 }
reduction "acme.squares" { doc = "d", dtypes = floating, lift = "x * x", combine = "a + b", finish = "sqrt(a)", empty = 0,
  grad = "grad * x / out" }
row "acme.derived" { doc = "d", dtypes = floating, params = { c = 0.5 }, body = [[
  T m = mean(x * x);
  T e = exp(x - m);
  return e / acme.squares(e) + log(c + m) * x / count;
]] }
row "acme.reduced" { doc = "d", inputs = "x, w", dtypes = floating, body = [[
  T a = sum(w * x);
  T b = logsumexp(a * x - w);
  return a > 0 ? b * sqrt(a) : b;
]] }
row "acme.none" { doc = "d", dtypes = floating, body = "acme.plain(x) + sum(x)" }
row "acme.constant" { doc = "d", dtypes = floating, body = "acme.plain(floor(x)) * sum(x)", grad = false }
row "acme.number" { doc = "d", dtypes = floating, body = "T m = sum(x); return hypot((T)3, (T)4)" }
row "acme.steps" { doc = "d", dtypes = floating, body = "floor(sum(x) + 0.5)" }
row "acme.by_place" { doc = "d", inputs = "x, w", dtypes = floating, body = "mean(x) * (T)index + floor(w / 8)" }
]=]
for _, name in ipairs { "acme.squares", "acme.derived", "acme.reduced", "acme.number", "acme.steps", "acme.by_place" } do
  local op = own.op_of_name[name]
  local values = { x = { 0.25, 1.5, -0.5, 0.75, 0.125 }, w = #op.inputs > 1 and { 1.0, 0.5, 2.0, 1.25, 0.75 } or nil }
  local worst = op.backward and differs(own, op, values, 5) or INF
  tap.ok(worst < 1e-8, "%s: beside differences: %.1e", name, worst)
end
tap.ok(not own.op_of_name["acme.plain"].backward, "a reduction without a grad has no derivative")
tap.ok(not own.op_of_name["acme.none"].backward, "  nor has what calls it")
tap.is(inputs_of(own.op_of_name["acme.reduced_backward"]), "grad x w", "a reduced op's inputs give the shape")
tap.is(inputs_of(model.op_of_name.softmax_backward), "grad out", "  an op's of elements are those that it reads")
tap.is(inputs_of(model.op_of_name.sum_backward), "grad x", "  sum reads nothing of x")

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

---------------------------------------------------------------------------------------------------- what is foreseen, and made at need

-- The same ops with derivatives that are made when they are asked for: the same ones exist, and are the same.
local nested = {}
for k = 0, 40 do
  nested[#nested + 1] = string.format('func "deep_%d" { args = "x, y", body = "%s" }', k,
                                      k == 0 and "floor(x) + y" or string.format("deep_%d(y, x) * deep_%d(x + %d, x)", k - 1, k - 1, k))
end
for _, row in ipairs { { "acme.f2", "deep_2(x, 3)" }, { "acme.only_floor", "floor(x)" }, { "acme.bits", "deep_1(as_f32(as_i32(x)), 1)" },
                       { "acme.held", "deep_1(2, 1) * x" }, { "acme.calls", "acme.f2(x) + acme.bits(floor(x))" },
                       { "acme.unheld", "acme.f2(x) + acme.bits(x)" } } do
  nested[#nested + 1] = string.format('unary "%s" { doc = "d", dtypes = "f32", body = "%s" }', row[1], row[2])
end
local function compare(what, spec_text)
  local all, lazy = model_of(spec_text), main.builtin_model(root)
  local why = spec.load(lazy, "user.lua", spec_text)
  assert(#why == 0, why[1])
  for k = #lazy.ops, 1, -1 do -- not those that are declared
    local op = lazy.ops[k]
    local of = op.backward_of and lazy.op_of_name[op.backward_of]
    if of and not of.grad and kinds.of(op).has_body then
      derive.forget(lazy, of)
      table.remove(lazy.ops, k)
    end
  end
  derive.expect(lazy, 1)
  local n, n_made, different = 0, 0, {}
  for _ in pairs(lazy.foreseen) do n = n + 1 end
  for k = 1, #lazy.ops do
    local op = lazy.ops[k]
    local wanted = all.op_of_name[op.name]
    local backward, other = op.backward and rawget(lazy.op_of_name, op.backward) == nil and lazy.op_of_name[op.backward], all.op_of_name[wanted.backward]
    local is_same = op.backward == wanted.backward
    if backward then
      n_made = n_made + 1
      is_same = is_same and inputs_of(backward) == inputs_of(other) and table.concat(backward.reads, " ") == table.concat(other.reads, " ")
        and table.concat(backward.by, " ") == table.concat(other.by, " ") and backward.doc == other.doc
    end
    if not is_same then different[#different + 1] = op.name end
  end
  tap.is(table.concat(different, " "), "", "%s: what is foreseen exists, and is made the same", what)
  tap.ok(n_made > 0 and n >= n_made and next(lazy.foreseen) == nil, "  %d were foreseen, all were made, %d of them for others", n, n - n_made)
  return lazy
end
compare("the library's", text)
nested[#nested + 1] = 'row "acme.number" { doc = "d", dtypes = floating, body = "hypot((T)3, (T)4)" }'
nested[#nested + 1] = 'row "acme.low" { doc = "d", dtypes = floating, body = "floor(mean(x)) + acme.number(x)" }'
nested[#nested + 1] = 'row "acme.norm" { doc = "d", dtypes = floating, body = "x - mean(deep_2(x, 1)) * acme.low(x)" }'
nested[#nested + 1] = 'row "acme.uses" { doc = "d", dtypes = floating, body = "acme.norm(softmax(x)) * x" }'
local deep = compare("nested functions", table.concat(nested, "\n"))
tap.ok(deep.op_of_name["acme.calls"].backward and not deep.op_of_name["acme.unheld"].backward, "  one that has none may be called where nothing is derived by")

-- In time linear in the text, however large the graph would be; that it is too large is told to who asks for it.
local huge = main.builtin_model(root)
errors = spec.load(huge, "user.lua", table.concat(nested, "\n") .. '\nunary "acme.huge" { doc = "d", dtypes = "f32", body = "deep_30(x, 1)" }')
tap.is(#errors, 0, "functions nested 30 deep, each calls the one before twice")
local before, n_steps = #huge.ops, 0
debug.sethook(function() n_steps = n_steps + 1 end, "", 10000)
local foreseen = derive.foresee(huge, huge.op_of_name["acme.huge"])
debug.sethook()
tap.ok(foreseen and #huge.ops == before, "  its derivative is foreseen")
tap.ok(n_steps < 100, "  in %d times 10,000 steps", n_steps)
local is_made, said = pcall(function() return huge.op_of_name["acme.huge_backward"] end)
tap.ok(not is_made and said.refused == "limit", "  and refused where it is asked for")
is_made, said = pcall(function() return huge.op_of_name["acme.huge_backward"] end)
tap.ok(not is_made and said.refused == "limit", "  again, too")

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
