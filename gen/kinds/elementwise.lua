-- SPDX-License-Identifier: Apache-2.0
--
-- The kind elementwise: each element of the outputs is computed from the inputs' elements at the same index. Other kinds take
-- from here the keys that they do not define (kinds.lua lists these).

local M = {}

M.name = "elementwise"
M.class = "basic" -- quern_op_info's
M.output_dtype = "promoted" -- what documentation says the dtype of an output is, where it has none of its own
M.computes = true -- its kernels compute in dtypes, and are measured; others see bits, or nothing
M.has_body = true
M.has_derivative = true
M.derivative_kind = "elementwise" -- that of the ops that are derivatives of its ops
M.may_alias = true -- an output may be an input's memory
M.may_be_added = true -- by a spec, at run time

-- Whether an op's spec lists a dtype. It may take others too, computed in f32 or f64: see compute_type.
function M.is_listed(op, dtype)
  for _, name in ipairs(op.dtypes) do
    if name == dtype then return true end
  end
  return false
end

-- Of the dtypes that a spec lists, those that its bodies are for. A body without a key is one of real numbers. Where a body is
-- keyed by a dtype that is computed in another, the op looks at the dtype's own numbers (nextafter): such a dtype needs its body.
function M.served(types, op)
  local list, is_own = {}, false
  for key in pairs(op.bodies) do
    local t = types.by_name[key]
    is_own = is_own or t ~= nil and t.compute ~= key
  end
  for _, name in ipairs(op.dtypes) do
    local t = types.by_name[name]
    local key = t.kind == "float" and "floating" or t.kind
    local needs_body = t.kind == "complex" or is_own and t.compute ~= name
    if op.bodies[name] or op.bodies[key] or not needs_body then list[#list + 1] = name end
  end
  return list
end

-- Whether an op's only dtype is f64: it takes every dtype, and each operand is converted to f64.
function M.is_double(op) return (op.kind or M.name) == M.name and #op.dtypes == 1 and op.dtypes[1] == "f64" end

-- Whether an op takes floats only.
function M.is_floating(types, op)
  for _, name in ipairs(op.dtypes) do
    if types.by_name[name].kind ~= "float" then return false end
  end
  return true
end

-- What an op's kernels compute in when its promoted dtype is T, or nil when it does not take T: T itself where a body is
-- keyed by it (values are computed in T's compute type, operands and results are numbers of T), else T's compute type.
function M.compute_type(types, op, T)
  local t = types.by_name[T]
  if M.is_double(op) then return "f64" end
  if not M.is_listed(op, T) then
    local float = t.floating -- functions of floats alone take integers and bool
    return float ~= T and M.is_floating(types, op) and M.is_listed(op, float) and float or nil
  end
  return op.bodies[T] and T or t.compute
end

function M.param_dtypes(types, T) return { types.by_name[T].compute } end

-- The kernel dtypes of an op for the wanted dtypes (set of names), as a set.
function M.kernel_dtypes(types, op, wanted, kind)
  local set = {}
  for _, name in ipairs(types.sets.all) do
    local K = wanted[name] and kind.compute_type(types, op, name)
    if K and wanted[K] then set[K] = true end
  end
  return set
end

-- How an op's inputs become the dtype T of a call: a name of qn_promotion.
function M.promotion(types, op)
  if M.is_double(op) then return "DOUBLE" end
  return M.is_floating(types, op) and "FLOATING" or "COMMON"
end

-- Adds to the wanted dtypes (a set) those that the op needs for the dtypes asked for (a list): the floats that integers become.
function M.add_dtypes(types, op, wanted, asked)
  if not M.is_floating(types, op) then return end
  for _, name in ipairs(asked) do wanted[M.is_double(op) and "f64" or types.by_name[name].floating] = true end
end

return M
