-- SPDX-License-Identifier: Apache-2.0
--
-- The kind cast (`casts = true`, or "saturate": integers that do not fit become the nearest that does): its input, or its one
-- parameter, in the dtype of the output. Conversions are kernels of the packs; its own depend on the element size only.

local copy = require "gen.kinds.copy"
local source = require "gen.base.source"

local M = {}

M.name, M.mark, M.schema = "cast", "casts", { casts = "boolean string" }
M.is_bits, M.has_body, M.may_alias, M.has_own_entry = true, true, true, true
M.is_packed, M.converts_back = true, true
M.output_dtype, M.dtypes_words = "output", "any dtype"
M.no_outputs = true
M.no_result = copy.no_result

-- A message about an error in an op's fields, or nil.
function M.failure(fields)
  if type(fields.casts) == "string" and fields.casts ~= "saturate" then
    return string.format("casts: '%s', expected true or \"saturate\"", source.shown(fields.casts))
  end
end

function M.declare(op, fields) op.casts = fields.casts end

-- A message about an error in the op, or nil.
function M.check(op, fields)
  if #op.inputs == 0 then return nil end
  local is_body = #op.inputs == 1 and type(fields.body) == "string" and fields.body:find("^%s*" .. op.inputs[1].name .. "%s*$")
  return not is_body and "what casts has one input, and that is its body" or nil
end

-- Why it is no part of an expression.
function M.refusal(op)
  local instead = #op.inputs == 0 and "write the number" or "write a cast, (f32)x"
  if op.casts == "saturate" then instead = "a cast wraps; clip before it: (i8)clip(x, -128, 127)" end
  return instead
end

M.kernel_dtypes = copy.kernel_dtypes

M.promotion = copy.promotion

function M.pack_role(op)
  if op.casts == "saturate" then return nil end
  return #op.inputs == 0 and "fill" or "convert"
end

-- Whether there is a cast that changes anything: from a dtype to itself only NaN and bytes of bool. Of a complex dtype there is
-- one to bool, and those to other complex ones; to a real dtype there is none.
function M.changes(types, from, to)
  local f, t = types.by_name[from], types.by_name[to]
  if from == to then return f.kind ~= "integer" and f.kind ~= "complex" end
  return f.kind ~= "complex" or t.kind == "complex" or t.kind == "bool"
end

-- The graph of a cast of this op, or nil where a plain one does.
function M.dag(kit, types, op, from, to) return op.casts == "saturate" and kit.saturate(types, from, to) or nil end

-- The casts that saturate, as far as a plain one would wrap: a kernel each, with its DAG.
function M.blocks(kit, types, op, wanted)
  local records = {}
  for _, to in ipairs(op.casts == "saturate" and types.sets.integer or {}) do
    for _, from in ipairs(types.sets.integer) do
      local dag = wanted[from] and wanted[to] and kit.saturate(types, from, to)
      if dag then
        records[#records + 1] = kit.record(op, { K = to, D = to, dtypes = { from, to }, classes = "cc", weight = kit.weight(dag),
                                                 template = "elementwise", dag = dag })
      end
    end
  end
  return records
end

-- Its conversions on CUDA: a kernel for each pair of dtypes that are not the same bits, in these shapes.
function M.cuda_records(kit, types, op, wanted, shapes)
  local records = {}
  for _, from in ipairs(#op.inputs == 1 and types.sets.all or {}) do
    for _, to in ipairs(types.sets.all) do
      if wanted[from] and wanted[to] and M.changes(types, from, to) then
        for _, shape in ipairs(shapes) do
          records[#records + 1] = kit.record(op.c_name, {
            op = op, K = to, D = to, dtypes = { from, to }, rank = shape[1], classes = shape[2], is_wide = shape[3],
            from = from, to = to, weight = 1, dag = M.dag(kit, types, op, from, to),
          })
        end
      end
    end
  end
  return records
end

function M.param_dtypes(_, T) return { T } end

return M
