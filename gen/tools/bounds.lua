-- SPDX-License-Identifier: Apache-2.0
--
-- The declared accuracy of ops that reduce: the field `bound` of their specs, a body whose value is the largest absolute error of the
-- result. Beside the op's inputs and parameters and `count` it has two names. `u` is half of the last place of 1 in the dtype that is
-- computed in (of integers: f64). `depth` is the number of additions that an element takes part in at most: 19, and one for each
-- doubling of the number of chunks of 256 elements (docs/reductions.md). A result narrower than what is computed in is rounded once more.
-- Of a scan the body may call scans, over the same axis, and is one of elements; depth is then that of `scan_depth` in
-- tools/measure/accuracy_reductions.c. Only its measurement tells whether it is well formed.
-- A bound holds where nothing overflows or underflows on the way, to the first order of u.

local expr = require "gen.graph.expr"
local kinds = require "gen.kinds.kinds"
local row_shape = require "gen.front.row_shape"

local M = {}

M.NAMES = { "u", "depth" }

-- The op whose body is the bound of an op.
local function as_op(model, op)
  local of = { name = op.name, c_name = op.c_name, kind = "row", builtin = op.builtin, file = op.file, line = op.line, location = op.location,
               constants = op.constants, tables = op.tables, inputs = op.inputs, outputs = {}, assigns = op.assigns,
               dtypes = op.dtypes, bodies = op.bound, params = {} }
  for k, output in ipairs(op.outputs) do of.outputs[k] = { name = output.name } end
  for k, param in ipairs(op.params) do of.params[k] = param end
  for _, name in ipairs(M.NAMES) do of.params[#of.params + 1] = { name = name, value = 0.0 } end
  of.is_reduced = row_shape.is_reduced(model, of)
  return of
end

-- The dtypes that an op computes in: dtype of the inputs -> K.
local function computed(types, op)
  local of = {}
  for _, name in ipairs(op.dtypes) do of[name] = kinds.of(op).compute_type(types, op, name) end
  return of
end

-- What is wrong with the bound of an op: a sentence, or nil.
function M.trouble(model, op)
  if not op.bound or kinds.of(op).is_scan then return nil end
  for _, operands in ipairs { op.inputs, op.outputs, op.params } do
    for _, operand in ipairs(operands) do
      for _, name in ipairs(M.NAMES) do
        if operand.name == name then return string.format("%s:1: %s: bound: '%s' has a meaning there already", op.location, op.name, name) end
      end
    end
  end
  local of = as_op(model, op)
  for _, K in pairs(computed(model.types, op)) do
    if model.types.by_name[K].kind == "float" and expr.body_of(model.types, of, K) then
      local dag, message = expr.op_dag(model, of, K)
      if not dag then return message end
    end
  end
end

-- The text of the bound for inputs of a dtype, on one line, and its u; nil where the op declares none for it.
function M.text(types, op, dtype)
  local K = op.bound and computed(types, op)[dtype]
  local body = K and expr.body_of(types, { bodies = op.bound }, K)
  if not body then return nil end
  local t = types.by_name[types.by_name[K].kind == "float" and K or "f64"]
  return body.text:gsub("%s+", " "):match "^ ?(.-) ?$", 2.0 ^ -t.digits
end

return M
