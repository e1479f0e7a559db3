-- SPDX-License-Identifier: Apache-2.0
--
-- The kind reduction (declared by `reduction`): what runs along axes, and the op that does nothing else, NAME(x). Bodies: `lift` makes
-- the state of an element x (left out: x, in the accumulator's dtype), `combine` one state of two, a and b, `finish` the result of the
-- state a of `count` elements (left out: a). The states of a row are combined by the tree of docs/internals/reductions.md.

local row = require "gen.kinds.row"

local M = {}

for key, value in pairs(row) do M[key] = value end

M.name, M.declarator = "reduction", "reduction"
M.has_body = true -- a call of itself
M.calls_itself = true
M.schema = { accumulate = "string", result = "string", combine = "string table", lift = "string table", finish = "string table",
             identity = "number boolean", empty = "number boolean", order = "string" }

local EXCLUDED = { "body", "outputs", "params", "grad", "grad_ulp", "counts" }

-- What is wrong with its fields, or nil.
function M.trouble(fields, is_builtin, types)
  if fields.combine == nil then return "combine is missing" end
  for _, field in ipairs(EXCLUDED) do
    if fields[field] ~= nil then return field .. " is not for a reduction; write a row that calls it" end
  end
  if fields.order ~= nil and fields.order ~= "free" then return "order: expected \"free\", or nothing: the tree" end
  if fields.empty == true then return "empty: expected a number, or false: an error" end
  return row.trouble(fields, is_builtin, types)
end

-- bodies(field): the bodies of a field, by dtype or kind
function M.declare(op, fields, bodies)
  op.accumulate, op.result, op.is_reduced = fields.accumulate, fields.result, true
  op.reducer = { combine = bodies "combine", lift = fields.lift and bodies "lift", finish = fields.finish and bodies "finish",
                 is_free = fields.order == "free", empty = fields.empty }
end

-- The body of the op.
function M.body(op) return op.name .. "(" .. op.inputs[1].name .. ")" end

return M
