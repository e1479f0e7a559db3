-- SPDX-License-Identifier: Apache-2.0
--
-- Picks: sums of one element, replaced by a load. If t is constant along the axes, `sum(index == t ? x : 0)` is the element of x at
-- the index t, and `sum((i64)(index == t))` is 1 if there is such an element, else 0. The replaced program compares no indices.

local rows = require "gen.graph.dag.rows"

local M = {}

-- What an output of a stage's DAG picks: { element = a value { input = k }, or nil: 1; at = the value of the place }, or nil.
local function pick_of(stage, root, is_row_input)
  local value_of = {}
  for k, node in ipairs(stage.dag.inputs) do value_of[node] = stage.ins[k] end
  local test, element = root.args[1], nil
  if root.op == "select" then
    local none = root.args[3]
    if none.op ~= "const" or none.value ~= 0 or math.type(none.value) == "float" and 1 / none.value < 0 then return nil end
    element = value_of[root.args[2]]
    if not (element and element.input and element.input ~= rows.INDEX) then return nil end
  elseif root.op ~= "cast" or root.type ~= "i64" then
    return nil
  end
  if test.op ~= "eq" then return nil end
  local a, b = value_of[test.args[1]], value_of[test.args[2]]
  if b and b.input == rows.INDEX then a, b = b, a end
  if not (a and b and a.input == rows.INDEX and b.input and is_row_input(b.input)) then return nil end
  return { element = element, at = b }
end

-- The program (of rows.lua) with its picks. A pick is a stage of row values without a kernel: ins { the input, or the index: 1 },
-- { the place }, outs { row }. nil: there are none. is_row_input(k): whether input k has extent 1 along the axes
function M.program(program, is_row_input)
  local made, is_any = setmetatable({ stages = {} }, { __index = program }), false
  for _, stage in ipairs(program.stages) do
    local picks, left = {}, {}
    for k, out in ipairs(stage.dag and not stage.is_row and stage.outs or {}) do
      picks[out] = pick_of(stage, stage.dag.outputs[k], is_row_input)
      if not picks[out] then picks = nil break end -- its kernel is needed
    end
    for _, reduce in ipairs(stage.reduces) do
      local pick = picks and picks[reduce.from]
      if pick and reduce.op.reducer.picks then
        made.stages[#made.stages + 1] = { is_row = true, ins = { pick.element or { input = rows.INDEX }, pick.at }, outs = { { row = reduce.to } }, reduces = {} }
        is_any = true
      else
        left[#left + 1] = reduce
        if pick then return nil end
      end
    end
    if not next(picks or {}) then
      made.stages[#made.stages + 1] = stage
    elseif #left > 0 then
      made.stages[#made.stages + 1] = { ins = {}, outs = {}, reduces = left }
    end
  end
  return is_any and #made.stages <= rows.MAX_STAGES and made or nil
end

return M
