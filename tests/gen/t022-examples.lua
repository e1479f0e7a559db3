-- SPDX-License-Identifier: Apache-2.0
--
-- t022-examples: the examples of all built-in ops hold, and one that does not is told; the evaluator that says so gives
-- what compiled kernels give (exactly, but for the last bit of an f64 fma).

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. root .. "/?.lua;" .. package.path
local tap = require "tap"
local main = require "gen.main"
local evaluate = require "gen.graph.dag.evaluate"

local model, _, errors = main.load(root, {})
tap.is(#errors, 0, "the built-in specs are read")
local plan = assert(main.plan(model, {}))
local n_examples, without = 0, {}
for _, op in ipairs(plan.ops) do
  n_examples = n_examples + #op.examples
  if #op.examples == 0 and not op.backward_of then without[#without + 1] = op.name end
end
local wrong = main.check_examples(plan)
tap.ok(#wrong == 0 and n_examples > 0, "%d examples of %d ops hold", n_examples, #plan.ops)
tap.is(table.concat(without, " "), "compress nonzero", "and each op has one, but those of class dynamic")
for _, message in ipairs(wrong) do tap.diag("%s", message) end

local file = os.tmpname()
local function check(text)
  local handle = assert(io.open(file, "w"))
  handle:write(text)
  handle:close()
  local rows, why = main.check(root, file)
  return rows, why and table.concat(why, "\n") or ""
end
local rows, why = check 'unary "acme.twice" { doc = "d", dtypes = floating, body = "x + x", examples = { { x = 1.5, y = 3.0 } } }'
tap.ok(rows, "an example that holds")
rows, why = check 'unary "acme.twice" { doc = "d", dtypes = floating, body = "x + x", examples = { { x = 1.5, y = 3.5 } } }'
tap.ok(not rows and why:find("example 1 in f32 gives 0x1.8p+1, not 0x1.cp+1", 1, true), "an example that does not: %s", why)
rows, why = check 'unary "acme.zero" { doc = "d", dtypes = floating, body = "x * 0", examples = { { x = -1.0, y = 0.0 } } }'
tap.ok(not rows and why:find("-0", 1, true), "the sign of zero counts")
rows, why = check 'unary "acme.zero" { doc = "d", dtypes = floating, body = "x * 0", examples = { { x = -1.0 } } }'
tap.ok(not rows, "an example without its result")
rows, why = check 'reduction "acme.dot" { doc = "d", dtypes = floating, combine = "a + b", empty = 0, examples = { { x = { 1, 2 }, out = 3 } } }'
tap.ok(rows, "a list of elements: %s", why)
rows, why = check 'row "acme.last" { doc = "d", dtypes = floating, body = "sum(index == count - 1 ? x : 0)", examples = { { x = { 1, 2 }, out = 1 } } }'
tap.ok(not rows and why:find("gives 0x1p+1, not 0x1p+0", 1, true), "one that does not hold: %s", why)

-- What reductions claim.
local claims = require "gen.tools.claims"
local part, of_day = tap.test_part(3), {}
for k, op in ipairs(plan.ops) do
  if not part or k % 3 == part then of_day[#of_day + 1] = op end
end
local broken = claims.errors { ops = of_day, model = plan.model, wanted = plan.wanted }
tap.is(#broken, 0, "the built-in reductions are what they claim%s", part and ": a third of them" or "")
for _, message in ipairs(broken) do tap.diag("%s", message) end
local function claim(fields, words)
  rows, why = check('reduction "acme.r" { doc = "d", dtypes = floating, ' .. fields .. " }")
  if words then tap.ok(not rows and why:find(words, 1, true), "%s: %s", fields, why) else tap.ok(rows, "%s: %s", fields, why) end
end
claim('lift = "x * x", combine = "a + b", finish = "sqrt(a)"')
claim('combine = "a + b", order = "free"', 'not associative in f32, as order = "free"')
claim('combine = "a - b"', "not commutative")
claim('combine = "(a + b) * 0.5"', "not associative in f32:")
claim('combine = "a > b ? a : b", order = "free"', "not commutative") -- NaN, and zeros of both signs
claim('combine = "maximum(a, b)", order = "free"')
claim [[state = "T m, i64 n", lift = "m = x; n = 1;", finish = "a.m / (T)a.n", combine = "m = a.m + b.m; n = a.n + b.n;"]]
claim([[state = "T m, i64 n", lift = "m = x; n = index;", finish = "a.m", combine = "m = a.m; n = a.n;"]], "not commutative")
claim([[state = "T m", finish = "a.m", combine = "m = a.m + b.m;"]], "lift is missing")
claim([[state = "f16 m", lift = "m = x;", finish = "a.m", combine = "m = a.m;"]], "state: 'f16 m'")
claim('combine = "a + b", bound = "u * depth * sum(abs(x))"')
claim('combine = "a + b", bound = "u * depht * sum(abs(x))"', "unknown name 'depht'")
rows, why = check 'row "acme.r" { doc = "d", dtypes = floating, params = { u = 1 }, body = "x * u / sum(x)", bound = "u" }'
tap.ok(not rows and why:find("acme.r: bound: 'u' has a meaning there already", 1, true), "a parameter u beside a bound: %s", why)
claim('combine = "a + b", bound = "0.01 * u * abs(acme.r(x))"', "bound does not hold in f32: of 17 numbers from -8 to 8 the error is ")

-- The same of scans; and examples of them and of their derivatives; those that hold are in t207.
local function scanned(fields, words)
  rows, why = check('scan "acme.r" { doc = "d", dtypes = floating, initial = 0, ' .. fields .. " }")
  if words then tap.ok(not rows and why:find(words, 1, true), "%s: %s", fields, why) else tap.ok(rows, "%s: %s", fields, why) end
end
local STATE = 'state = "T sum, i64 n", lift = "sum = x; n = 1;", combine = "sum = a.sum + b.sum; n = a.n + b.n;", '
scanned('combine = "a - b"', "not associative in f32:")
scanned(STATE .. 'finish = "a.sum / (T)a.n", bound = "u * (depth + 2) * cumulative_sum(abs(x)) + u * abs(acme.r(x))" }\n'
        .. 'scan "acme.q" { doc = "d", dtypes = floating, initial = 0, combine = "b", examples = { { x = { 1, 2 }, out = { 1, 2 } } }') -- not commutative
scanned(STATE .. 'finish = "a.sum / (T)a.n", examples = { { x = { 3, 5 }, out = { 3, 5 } } }', "example 1 in f32 gives 0x1p+2, not 0x1.4p+2")
scanned('combine = "a + b", bound = "u * abs(acme.r(x)) * 0.01"', "bound does not hold in f32: of 17 numbers from -8 to 8 at place ")
scanned('combine = "a + b", bound = "u * depht * cumulative_sum(abs(x))"', "bound: unknown name 'depht', expected x")
local function derived(example)
  return check('scan "acme.s" { doc = "d", dtypes = floating, combine = "a + b", initial = 0 } adjoint "acme.s_backward" { doc = "d", of = "acme.s", '
               .. 'inputs = "grad", dtypes = floating, combine = "a + b", examples = { { grad = { 1, 2, 4 }, grad_x = ' .. example .. " } } }")
end
rows, why = derived "{ 7, 6, 2 }"
tap.ok(not rows and why:find("acme.s_backward: example 1 in f32 gives 0x1p+2, not 0x1p+1", 1, true), "one that does not hold: %s", why)
os.remove(file)

-- Values with known results, through long bodies.
local function value(name, K, values) return evaluate.run(model.types, plan.dag_for(model.op_of_name[name], K), values) end
local function near(got, wanted, relative, what)
  tap.ok(math.abs(got - wanted) <= relative * math.abs(wanted), "%s: %.17g", what, got)
end
near(value("exp", "f64", { x = 1.0 }), 2.718281828459045, 2e-16, "exp(1) in f64")
near(value("exp", "f32", { x = 1.0 }), 2.718281828459045, 6e-8, "exp(1) in f32")
near(value("log", "f64", { x = 10.0 }), 2.302585092994046, 2e-16, "log(10) in f64")
near(value("erf", "f64", { x = 0.5 }), 0.5204998778130465, 3e-16, "erf(0.5) in f64")
near(value("tanh", "f32", { x = 0.5 }), 0.46211715726000975, 6e-8, "tanh(0.5) in f32")
near(value("pow", "f64", { x = 3.0, y = 0.5 }), 1.7320508075688772, 3e-16, "pow(3, 0.5) in f64")
tap.is(value("pow", "i64", { x = 3, y = 20 }), 3486784401, "pow of integers")
tap.is(value("pow", "u8", { x = 3, y = 20 }), 3486784401 & 255, "wraps")
tap.is(value("exp", "f32", { x = -math.huge }), 0.0, "exp(-inf)")
tap.ok(value("log", "f64", { x = -1.0 }) ~= value("log", "f64", { x = -1.0 }), "log(-1) is NaN")
tap.done_testing()
