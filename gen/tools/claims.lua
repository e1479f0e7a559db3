-- SPDX-License-Identifier: Apache-2.0
--
-- Whether the states of a reduction can be combined in any order, and those of a scan in any grouping: tried on random triples. With
-- order = "free" exactly; else nearly.

local evaluate = require "gen.graph.dag.evaluate"
local evaluate_rows = require "gen.graph.evaluate_rows"
local expr = require "gen.graph.body.expr"
local kinds = require "gen.kinds.kinds"
local number = require "gen.base.number"
local states = require "gen.graph.states"

local M = {}

M.TRIPLES = 200

local SPECIAL = { 0.0, -0.0, 1.0, -1.0, 0.0 / 0.0, math.huge, -math.huge }

-- Numbers that do not change from run to run.
local function random()
  local state = 0x9e3779b97f4a7c15
  return function(n)
    state = state * 6364136223846793005 + 1442695040888963407
    return (state >> 33) % n
  end
end

-- A random element of a dtype. is_exact: any number, special ones too; else one near 1 in magnitude, so that rounding errors stay comparable
local function element(draw, t, is_exact)
  if t.kind == "bool" then return draw(2) end
  if t.kind == "integer" then return t.signed and draw(21) - 10 or draw(21) end
  if is_exact and draw(3) == 0 then return SPECIAL[draw(#SPECIAL) + 1] end
  return (draw(2) == 0 and -1 or 1) * (0.5 + draw(1 << 30) / (1 << 30))
end

local function is_same(a, b) return a ~= a and b ~= b or a == b and (a ~= 0 or 1 / a == 1 / b) end

-- Whether parts agree. scale: the largest of the numbers that they come from
local function agree(left, right, is_exact, scale, types)
  for k, a in ipairs(left) do
    local b, t = right[k], types[k]
    if t.kind ~= "float" or is_exact then
      if not is_same(a, b) then return false end
    elseif not (is_same(a, b) or math.abs(a - b) <= 64 * 2.0 ^ -t.digits * math.max(scale, math.abs(a), math.abs(b))) then
      return false
    end
  end
  return true
end

local function shown(state)
  local list = {}
  for k, value in ipairs(state) do list[k] = number.text(value) end
  return #list == 1 and list[1] or "(" .. table.concat(list, ", ") .. ")"
end

-- As expr.lift, for an op of states alone: its elements have the accumulator's dtype.
local function lift_of_states(model, op, dtype)
  local A = kinds.of(op).accumulator(model.types, op, dtype)
  local lift = states.of(model, op, A).lift
  return { dag = lift.dag, inputs = lift.inputs, params = {}, outputs = lift.outputs, accumulator = A }
end

-- What does not hold of an op's combine for elements of a dtype: a sentence, or nil.
local function broken(model, op, dtype)
  local kind, is_exact = kinds.of(op), op.reducer.is_free
  local lift
  if kind.has_body then lift = expr.lift(model, op, dtype) else lift = lift_of_states(model, op, dtype) end
  if not lift then return nil end
  local both, draw, types = evaluate_rows.combine(model, op, lift.accumulator), random(), {}
  for k, node in ipairs(lift.outputs) do types[k] = model.types.by_name[node.type] end
  local function state(index)
    return { evaluate.run(model.types, lift, { [lift.inputs[1].name] = element(draw, model.types.by_name[lift.inputs[1].type], is_exact), index = index }) }
  end
  for _ = 1, M.TRIPLES do
    local first = draw(100)
    local a, b, c, scale = state(first), state(first + 1 + draw(9)), state(first + 10 + draw(9)), 0
    for _, of in ipairs { a, b, c } do
      for _, value in ipairs(of) do scale = math.max(scale, value == value and math.abs(value) < math.huge and math.abs(value) or 0) end
    end
    local left, right = both(a, b), both(b, a)
    if kind.combine_claims.commutative and not agree(left, right, is_exact, scale, types) then
      return string.format("combine is not commutative in %s: of %s and %s it gives %s, the other way round %s", dtype, shown(a), shown(b),
                           shown(left), shown(right))
    end
    left, right = both(both(a, b), c), both(a, both(b, c))
    if not agree(left, right, is_exact, scale, types) then
      return string.format("combine is not associative in %s%s: of %s, %s and %s it gives %s from the left, %s from the right", dtype,
                           is_exact and ", as order = \"free\" needs it" or "", shown(a), shown(b), shown(c), shown(left), shown(right))
    end
  end
end

-- What does not hold of the ops of a plan: a list of sentences.
function M.errors(plan)
  local errors, model = {}, plan.model
  for _, op in ipairs(plan.ops) do
    for _, dtype in ipairs(kinds.of(op).combine_claims and op.dtypes or {}) do
      local message = plan.wanted[dtype] and model.types.by_name[dtype].compute == dtype and broken(model, op, dtype)
      if message then
        errors[#errors + 1] = string.format("%s:1: %s: %s", op.location, op.name, message)
        break
      end
    end
  end
  return errors
end

return M
