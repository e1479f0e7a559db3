-- SPDX-License-Identifier: Apache-2.0
--
-- The formulas of derived backward ops, as bodies of the spec language: { { output, text }, ... }.

local expr = require "gen.graph.body.expr"
local number = require "gen.base.number"
local primitives = require "gen.graph.dag.primitives"

local M = {}

local SIGNS = { add = "+", sub = "-", mul = "*", div = "/", lt = "<", le = "<=", gt = ">", ge = ">=", eq = "==", ne = "!=", ["and"] = "&", ["or"] = "|" }

-- No function is inlined.
local EVERY = setmetatable({}, { __index = function() return true end })

local function text_of(types, node)
  local args = {}
  for k, arg in ipairs(node.args) do args[k] = text_of(types, arg) end
  if node.op == "input" or node.op == "param" then return node.name end
  if node.op == "const" then
    local t = types.by_name[node.type]
    local value = t.kind == "float" and number.float_value(node.value, t) or node.value
    return value == math.tointeger(value) and string.format("%d", value) or number.text(value)
  end
  if SIGNS[node.op] then return string.format("(%s %s %s)", args[1], SIGNS[node.op], args[2]) end
  if node.op == "neg" then return "(-" .. args[1] .. ")" end
  if node.op == "select" then return string.format("(%s ? %s : %s)", args[1], args[2], args[3]) end
  if node.op == "cast" then return args[1] end
  local name = node.name or primitives.of[node.op] and node.op
  return name and string.format("%s(%s)", name, table.concat(args, ", "))
end

-- nil: the op has a body of its own, or one that has no such text
function M.of(model, op)
  local forward = model.op_of_name[op.backward_of or ""]
  if not forward or forward.grad then return nil end
  local is_right, dag = pcall(expr.op_dag, model, op, "f64", EVERY)
  if not is_right or not dag then return nil end
  local out = {}
  for k, node in ipairs(dag.outputs) do
    out[k] = { op.outputs[k].name, text_of(model.types, node) }
    if not out[k][2] or #out[k][2] > 300 then return nil end
  end
  return out
end

return M
