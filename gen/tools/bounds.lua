-- SPDX-License-Identifier: Apache-2.0
--
-- The declared accuracy of ops that reduce: the field `bound` of their specs, a body that computes the largest absolute error of the
-- result. Beside the op's inputs and parameters and `count` it has two names. `u` is half of the last place of 1 in the dtype that is
-- computed in (of integers: f64). `depth` is the number of additions that an element takes part in at most: 19, and one for each
-- doubling of the number of chunks of 256 elements (docs/reductions.md). A result narrower than what is computed in is rounded once more.
-- A scan's bound has a result for each element, and may call scans over the same axis: it is read as an expression (bound_is_expression of kinds).
-- depth is that of the kind, for scans the function `scan_depth` of tools/measure/accuracy/accuracy_reductions.c.
-- A bound holds where nothing overflows or underflows on the way, to the first order of u.

local evaluate_rows = require "gen.graph.evaluate_rows"
local expr = require "gen.graph.body.expr"
local host = require "gen.graph.host"
local kinds = require "gen.kinds.kinds"
local number = require "gen.base.number"
local row_shape = require "gen.front.row_shape"

local M = {}

M.NAMES = { "u", "depth" }

-- The bound of an op as an op: the bound is its body.
local function as_op(model, op)
  local of = { name = op.name, c_name = op.c_name, kind = kinds.of(op).bound_kind, builtin = op.builtin, file = op.file, line = op.line, location = op.location,
               constants = op.constants, tables = op.tables, inputs = op.inputs, outputs = {}, assigns = op.assigns,
               dtypes = op.dtypes, bodies = op.bound, params = {} }
  for k, output in ipairs(op.outputs) do of.outputs[k] = { name = output.name } end
  for k, param in ipairs(op.params) do of.params[k] = param end
  for _, name in ipairs(M.NAMES) do of.params[#of.params + 1] = { name = name, value = 0.0 } end
  of.is_reduced = row_shape.is_reduced(model, of)
  return of
end

-- The dtypes that an op computes in: dtype of the inputs -> K.
local function computed(types, op)
  local of = {}
  for _, name in ipairs(op.dtypes) do of[name] = kinds.of(op).compute_type(types, op, name) end
  return of
end

-- A bound as an expression of the op's input, with these parameters. Returns its DAG as evaluate_rows.run takes it; or nil, message.
local PARAMS = { "u", "depth", "count" }
local function dag_of_expression(model, op, K)
  local body, input = expr.body_of(model.types, { bodies = op.bound }, K), op.inputs[1].name
  local text = "param u; param depth; param count; " .. body.text
  local dag, message = host.host_dag(model, text, { K }, nil, true)
  local _, names = host.canonical(model, text)
  if dag and names and names.inputs[1] ~= input then message = string.format("unknown name '%s', expected %s", names.inputs[1], input) end
  if not dag and names and #names.inputs > 1 then
    message = string.format("unknown name '%s', expected %s", names.inputs[1] == input and names.inputs[2] or names.inputs[1], input)
  end
  if message then
    return nil, string.format("%s:1: %s: bound: %s", op.location, op.name, message:gsub("^expression:%d+:%d+: ", ""):gsub("\n.*", ""))
  end
  dag.values = {}
  for _, node in ipairs(dag.slots) do dag.values[node.name] = PARAMS[node.index + 1] end
  return dag
end

-- The bound of an op as a graph, or nil, message.
local function dag_of(model, op, K)
  if kinds.of(op).bound_is_expression then return dag_of_expression(model, op, K) end
  return expr.op_dag(model, as_op(model, op), K)
end

local function at(value, k) return type(value) == "table" and value[k] or value end

-- Numbers of f32 that do not change from run to run, within the op's domain.
local function numbers(op, n, turn)
  local state, low, high, list = 0x9e3779b97f4a7c15 + turn, op.domain and op.domain[1] or -8, op.domain and op.domain[2] or 8, {}
  for k = 1, n do
    state = state * 6364136223846793005 + 1442695040888963407
    list[k] = number.f32_value(number.f32_bits(low + (high - low) * ((state >> 33) / (1 << 31))))
  end
  return list
end

local COUNTS = { 1, 17, 300, 700 } -- elements that a bound is tried on
local FAR = 2.0 ^ 100 -- what lies beyond may have overflowed or underflowed on the way

-- Whether the bound of an op is tried: of one float input and one output, in f32, for which f64 is exact.
function M.is_tried(types, op)
  local of = op.bound and computed(types, op) or {}
  return of.f32 == "f32" and of.f64 == "f64" and #op.inputs == 1 and not op.inputs[1].type and #op.outputs == 1 and not op.outputs[1].type
    and expr.body_of(types, { bodies = op.bound }, "f32") ~= nil
end

-- Where results in f32 are not within the bound, computed in f64, of those in f64: a sentence, or nil.
local function broken(model, op)
  local kind, types = kinds.of(op), model.types
  if not M.is_tried(types, op) then return nil end
  local bound = dag_of(model, op, "f64")
  local x, run = op.inputs[1].name, {}
  for _, K in ipairs { "f32", "f64" } do
    local dag, f = evaluate_rows.of(model, op, K)
    run[K] = function(values) return (f(dag, values)) end
  end
  for turn, n in ipairs(COUNTS) do
    local values = { [x] = numbers(op, n, turn), u = 2.0 ^ -types.by_name.f32.digits, depth = kind.depth(n), count = n }
    for _, param in ipairs(op.params) do values[param.name] = param.value end
    local given = values
    if kind.bound_is_expression then
      given = { [bound.inputs[1].name] = values[x] }
      for node, name in pairs(bound.values) do given[node] = values[name] + 0.0 end
    end
    local got, wanted, most = run.f32(values), run.f64(values), evaluate_rows.run(model, bound, given)
    for k = 1, type(got) == "table" and #got or 1 do
      local g, w, m = at(got, k), at(wanted, k), at(most, k)
      local is_tame = g == g and m == m and math.abs(g) < FAR and math.abs(w) < FAR and (w == 0 or math.abs(w) > 1 / FAR)
      if is_tame and math.abs(g - w) > m then
        return string.format("%s:1: %s: bound does not hold in f32: of %d numbers from %s to %s%s the error is %.3g, the bound %.3g", op.location,
                             op.name, n, op.domain and op.domain[1] or -8, op.domain and op.domain[2] or 8,
                             type(got) == "table" and " at place " .. k - 1 or "", math.abs(g - w), m)
      end
    end
  end
end

-- A message about an error in the bound of an op, or nil.
function M.failure(model, op)
  if not op.bound then return nil end
  for _, operands in ipairs { op.inputs, op.outputs, op.params } do
    for _, operand in ipairs(operands) do
      for _, name in ipairs(M.NAMES) do
        if operand.name == name then return string.format("%s:1: %s: bound: '%s' has a meaning there already", op.location, op.name, name) end
      end
    end
  end
  local none = kinds.of(op).no_bound and kinds.of(op).no_bound(op)
  if none then return string.format("%s:1: %s: bound: %s", op.location, op.name, none) end
  for _, K in pairs(computed(model.types, op)) do
    if model.types.by_name[K].kind == "float" and expr.body_of(model.types, { bodies = op.bound }, K) then
      local dag, message = dag_of(model, op, K)
      if not dag then return message end
    end
  end
  return broken(model, op)
end

-- The text of the bound for inputs of a dtype, on one line, and its u; nil where the op declares none for it.
function M.text(types, op, dtype)
  local K = op.bound and computed(types, op)[dtype]
  local body = K and expr.body_of(types, { bodies = op.bound }, K)
  if not body then return nil end
  local t = types.by_name[types.by_name[K].kind == "float" and K or "f64"]
  return body.text:gsub("%s+", " "):match "^ ?(.-) ?$", 2.0 ^ -t.digits
end

return M
