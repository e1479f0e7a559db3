-- SPDX-License-Identifier: Apache-2.0
--
-- Casts that saturate, for an op with casts = "saturate": an integer that does not fit becomes the nearest one that does.
-- Plain casts are used for pairs of dtypes in which every integer fits, and for floats, which saturate in any case. Knows dtypes and DAGs, makes no
-- text.

local dag_of = require "gen.graph.dag.dag"

local M = {}

-- Whether an integer dtype's least number is below another's, and whether its largest is above.
local function exceeds(from, to)
  local digits_from, digits_to = from.bits - (from.signed and 1 or 0), to.bits - (to.signed and 1 or 0)
  local is_below = from.signed and (not to.signed or digits_from > digits_to) or false
  return is_below, digits_from > digits_to
end

-- The DAG of such a cast, as expr.op_dag gives one, or nil if a plain cast does. from, to: names
function M.dag(types, from, to)
  local f, t = types.by_name[from], types.by_name[to]
  if f.kind ~= "integer" or t.kind ~= "integer" then return nil end
  local is_below, is_above = exceeds(f, t)
  if not is_below and not is_above then return nil end
  local dag = dag_of.new(types)
  local input = dag:node("input", from, {}, { index = 1, name = "x" })
  local value, digits = input, t.bits - (t.signed and 1 or 0)
  if is_below then
    value = dag:make("maximum", from, { value, dag:constant(from, t.signed and -(1 << digits) or 0) })
  end
  if is_above then value = dag:make("minimum", from, { value, dag:constant(from, (1 << digits) - 1) }) end
  return { dag = dag, inputs = { input }, params = {}, outputs = { dag:make("cast", to, { value }) }, type = to }
end

return M
