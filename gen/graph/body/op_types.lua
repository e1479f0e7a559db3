-- SPDX-License-Identifier: Apache-2.0
--
-- The dtypes of an op: the dtypes of its spec, the compute dtypes of its kernels, and the body for each of them.

local elementwise = require "gen.kinds.elementwise"
local kinds = require "gen.kinds.kinds"

local M = {}

-- The op that a call names, and the number of the requested output: NAME, or NAME.OUTPUT of an op of several.
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

-- The compute dtype of an op's kernels for the promoted dtype T, or nil if it does not take T.
function M.compute_type(types, op, T) return kinds.of(op).compute_type(types, op, T) end

-- The dtype of an output for inputs that promote to T.
function M.result_of(types, op, which, T)
  local kind = kinds.of(op)
  return op.outputs[which].type or (kind.result_dtype and kind.result_dtype(types, op, T)) or T
end

-- The parameters of an op that its kernels know: all but those that say only which shape results have.
function M.own_params(op)
  local list = {}
  for _, param in ipairs(op.params) do list[#list + 1] = not param.role and param or nil end
  return list
end

-- The body of an op for a compute type: the dtype's own, its kind's, the one for all.
function M.body_of(types, op, K)
  local t = types.by_name[K]
  local kind = t.kind == "float" and "floating" or t.kind
  return op.bodies[K] or op.bodies[kind] or op.bodies.any
end

return M
