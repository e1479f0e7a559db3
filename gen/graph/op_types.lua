-- SPDX-License-Identifier: Apache-2.0
--
-- What an op takes: the dtypes that its spec lists, those that its kernels compute in, and the body for each of them.

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

-- Whether an op's spec lists a dtype. It may take others too, computed in f32 or f64: see compute_type.
function M.is_listed(op, dtype)
  for _, name in ipairs(op.dtypes) do
    if name == dtype then return true end
  end
  return false
end

-- What an op's kernels compute in when its promoted dtype is T, or nil when it does not take T: T itself where a body is
-- keyed by it (values are computed in T's compute type, operands and results are numbers of T), else T's compute type.
function M.compute_type(types, op, T)
  local t, is_listed = types.by_name[T], M.is_listed(op, T)
  if op.index then return is_listed and (t.kind == "float" and "f64" or "i64") or nil end
  if M.is_double(op) then return "f64" end
  if not is_listed then
    -- float-only functions of integers and bool: f32
    if (t.kind == "integer" or t.kind == "bool") and M.is_floating(types, op) and M.is_listed(op, "f32") then return "f32" end
    return nil
  end
  return op.bodies[T] and T or t.compute
end

-- Whether an op's only dtype is f64: it takes every dtype, and each operand is converted to f64.
function M.is_double(op)
  return #op.dtypes == 1 and op.dtypes[1] == "f64" and not (op.moves or op.casts or op.finds or op.index)
end

-- Whether an op takes floats only.
function M.is_floating(types, op)
  for _, name in ipairs(op.dtypes) do
    if types.by_name[name].kind ~= "float" then return false end
  end
  return true
end

-- The body of an op for a compute type: the dtype's own, its kind's, the one for all.
function M.body_of(types, op, K)
  local t = types.by_name[K]
  local kind = t.kind == "float" and "floating" or t.kind
  return op.bodies[K] or op.bodies[kind] or op.bodies.any
end

return M
