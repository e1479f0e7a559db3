-- SPDX-License-Identifier: Apache-2.0
--
-- What an op takes: the dtypes that its spec lists, those that its kernels compute in, and the body for each of them.

local elementwise = require "gen.kinds.elementwise"
local kinds = require "gen.kinds.kinds"

local M = {}

-- The op that a call names, and the number of the output that is asked for: NAME, or NAME.OUTPUT of an op of several.
function M.op_called(model, name)
  local op = model.op_of_name[name]
  if op then return op end
  local head, tail = name:match "^(.+)%.([^.]+)$"
  op = head and model.op_of_name[head]
  for k, output in ipairs(op and op.outputs or {}) do
    if output.name == tail and #op.outputs > 1 then return op, k end
  end
end

M.is_listed, M.is_double, M.is_floating = elementwise.is_listed, elementwise.is_double, elementwise.is_floating

-- What an op's kernels compute in when its promoted dtype is T, or nil when it does not take T.
function M.compute_type(types, op, T) return kinds.of(op).compute_type(types, op, T) end

-- The body of an op for a compute type: the dtype's own, its kind's, the one for all.
function M.body_of(types, op, K)
  local t = types.by_name[K]
  local kind = t.kind == "float" and "floating" or t.kind
  return op.bodies[K] or op.bodies[kind] or op.bodies.any
end

return M
