-- SPDX-License-Identifier: Apache-2.0
--
-- Whether the body of a row op gives elements or values of a row. The ops that it calls are declared before it; in dsl the order of the
-- files' names ensures that. Names are not checked here: that is gen/graph's, which reports them.

local kinds = require "gen.kinds.kinds"
local parse = require "gen.front.parse"

local M = {}

-- Whether an expression varies along the axes. elements: the names that do, as a set
local function is_element(model, node, elements)
  if node.kind == "name" then return elements[node.name] or false end
  if node.kind == "number" then return false end
  if node.kind == "call" then
    local op = model.op_of_name[node.name]
    if op and kinds.of(op).has_stages and op.is_reduced then return false end
  end
  for _, arg in ipairs(node.kind == "call" and node.args or node) do
    if is_element(model, arg, elements) then return true end
  end
  return false
end

-- Whether all outputs of an op are reduced. A body that does not parse counts as one that is not.
function M.is_reduced(model, op)
  for _, source in pairs(op.bodies) do
    local elements = {}
    for _, input in ipairs(op.inputs) do elements[input.name] = true end
    local ok, body = pcall(parse.parse, source.text, model.types.by_name)
    if not ok then return false end
    local is_assigned = false
    for _, statement in ipairs(body.statements) do
      if statement.value then elements[statement.name] = is_element(model, statement.value, elements) end
      for _, output in ipairs(op.assigns and op.outputs or {}) do
        is_assigned = is_assigned or (output.name == statement.name and elements[statement.name])
      end
    end
    if is_assigned or (body.result and is_element(model, body.result, elements)) then return false end
  end
  return true
end

return M
