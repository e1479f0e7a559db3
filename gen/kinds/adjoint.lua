-- SPDX-License-Identifier: Apache-2.0
--
-- The kind adjoint (declared by `adjoint`): the derivative of a scan, which carries states from the end of the scan to its beginning.
-- of: the scan, declared before in the same spec. inputs: grad, then those inputs and outputs of the scan that are read; reads: the name of
-- the scan's only output, added as the last input. `lift` makes the state of a place from the inputs and `index`; without it the state is
-- the first input. `combine` makes one state of two, a (of later places of the scan) and b; it need only be associative. `finish` makes the
-- result of a place from a, the combination of all states from the end up to the place, from the inputs and from `index`, the place;
-- without it the result is a. `state` is as in gen/kinds/reduction.lua.
-- before: an input that is read one place earlier in the scan; at the first place its value is the scan's result of no elements.
-- A call has the scan's parameters; these are no parameters of kernels. The order is that of docs/internals/reductions.md.

local row = require "gen.kinds.row"
local scan = require "gen.kinds.scan"
local source = require "gen.base.source"

local M = {}

M.name, M.declarator = "adjoint", "adjoint"
M.has_body = false -- lift, combine and finish are what make the op
M.may_alias = true
M.from_end = true
M.not_measured = scan.not_measured
M.cuda_form = "adjoints"
M.may_be_added = true
M.has_own_entry, M.has_own_nest = true, true
M.runtime_needs = scan.runtime_needs
M.runtime_cpu, M.needs_runtime = { "kind_adjoint_cpu" }, scan.needs_runtime
M.input_types = { i64 = true }
M.schema = { of = "string", state = "string", lift = "string table", combine = "string table", finish = "string table", reads = "string",
             before = "string" }

local EXCLUDED = { "body", "params", "grad", "result", "outputs" }

-- A message about an error in an op's fields, or nil.
function M.failure(fields, _, types)
  for _, field in ipairs { "of", "combine" } do
    if fields[field] == nil then return field .. " is missing" end
  end
  for _, field in ipairs(EXCLUDED) do
    if fields[field] ~= nil then return field .. " is not for an adjoint" end
  end
  return scan.state_failure(fields, types)
end

-- bodies(field): the bodies of a field, by dtype or kind
function M.declare(op, fields, bodies, types)
  op.backward_of, op.before, op.has_states = fields.of, fields.before, true
  scan.declare_states(op, fields, bodies, types)
end

-- The scan's operands by name: its input is "element", an output "result".
local function operands_of(of)
  local what = { grad = "result" }
  for _, input in ipairs(of.inputs) do what[input.name] = "element" end
  for _, output in ipairs(of.outputs) do what[output.name] = "result" end
  return what
end

local MOST_INPUTS = 3 -- ORDER QN_ADJOINT_MOST_IN of kind_adjoint.h

function M.check(op, fields, model)
  local of, wanted = model.op_of_name[fields.of], fields.of .. "_backward"
  if not of or of.kind ~= "scan" or of.builtin ~= op.builtin then
    return string.format("of: '%s' is no scan of this spec, declared before", source.shown(fields.of))
  end
  if op.name ~= wanted then return string.format("the derivative of %s is named %s", fields.of, wanted) end
  op.output_name = "grad_" .. of.inputs[1].name
  if fields.reads then op.inputs[#op.inputs + 1] = { name = fields.reads } end
  if op.inputs[1].name ~= "grad" or op.inputs[1].type then return "inputs: expected grad first" end
  if #op.inputs > MOST_INPUTS then return string.format("at most %d inputs", MOST_INPUTS) end
  local what, is_there = operands_of(of), false
  for _, input in ipairs(op.inputs) do
    if not what[input.name] then return string.format("'%s' is no input or output of %s", input.name, fields.of) end
    is_there = is_there or input.name == op.before
  end
  if op.before and (not is_there or what[op.before] ~= "result" or op.before == "grad") then
    return string.format("before: '%s' is no output of %s among the inputs", source.shown(op.before), fields.of)
  end
end

-- Names it as the derivative of its scan. reads, by: as derive.lua sets them; READS: its numbers of grad and of an output; elements: the
-- inputs, as bits, that have the scan's elements
function M.declared(model, op)
  local of, elements = model.op_of_name[op.backward_of], 0
  local what = operands_of(of)
  of.backward, op.by, op.reads, op.initial = op.name, { 0 }, {}, of.initial
  for k, input in ipairs(op.inputs) do
    op.reads[k] = input.name == "grad" and 0xff or what[input.name] == "element" and 0 or 0xfe
    elements = elements | (what[input.name] == "element" and 1 << (k - 1) or 0)
    for at, output in ipairs(of.outputs) do
      if input.name == op.before and input.name == output.name then op.initial = of.initials[at] end
    end
  end
  op.elements = elements
end

M.class_of, M.shape_params = scan.class_of, scan.shape_params

-- Why it is no part of an expression.
function M.refusal() return "each of its results depends on the ones behind; call it by itself" end

M.accumulator, M.add_dtypes, M.promotion, M.param_dtypes, M.compute_type = row.accumulator, row.add_dtypes, row.promotion, row.param_dtypes, row.compute_type
function M.result_dtype(_, _, dtype) return dtype end

M.templates = { "rows/scan_adjoint" }

local function values(c, types, record) return scan.state_values(c, types, record, record.op.before) end

-- The dtypes of its operands where the inputs are of dtype D.
local function operand_dtypes(op, D)
  local dtypes = {}
  for k, input in ipairs(op.inputs) do dtypes[k] = input.type or D end
  dtypes[#dtypes + 1] = D
  return dtypes
end

-- Its kernels, one for each dtype that is computed in.
function M.blocks(kit, types, op, wanted, _, bodies_for)
  local records = {}
  for _, K in ipairs(kit.kernel_dtypes(types, op, wanted)) do
    local dtypes = operand_dtypes(op, K)
    dtypes[#dtypes + 1] = K -- the result, behind the carries
    local classes = ("c"):rep(#dtypes)
    records[#records + 1] = { name = kit.name_of(op.c_name .. "_rows", dtypes, "2", classes), op = op, K = K, D = K, dtypes = dtypes, rank = "2",
                              classes = classes, weight = 1, heavy = false, template = "scan_adjoint", values = values,
                              states = bodies_for(op, K) }
  end
  kit.sort_by_dtype(types, records)
  return records, true
end

-- Its kernels for CUDA: one for each dtype, in both widths.
function M.cuda_records(kit, types, op, wanted, _, _, bodies_for)
  local records, is_made = {}, {}
  for _, K in ipairs(kit.kernel_dtypes(types, op, wanted)) do is_made[K] = true end
  for _, t in ipairs(types.list) do
    local K = wanted[t.name] and t.kind ~= "bits" and M.compute_type(types, op, t.name)
    for _, is_wide in ipairs(K and is_made[K] and { false, true } or {}) do
      local fields = { op = op, D = t.name, dtypes = operand_dtypes(op, t.name), is_wide = is_wide, heavy = false, weight = 1 }
      records[#records + 1] = kit.adjoint_record(fields, K, bodies_for(op, K), function(given) return kit.record(op.c_name, given) end)
    end
  end
  return records, true
end

-- The number of the input that is read one place earlier, or -1.
function M.before(op)
  for k, input in ipairs(op.inputs) do
    if input.name == op.before then return k - 1 end
  end
  return -1
end

-- The row of an op beside its qn_builtin, and the name of the field's value. context: see row.lua
function M.own_rows(types, op, records, context)
  local rows, variants = {}, {}
  for k, record in ipairs(records) do variants[record.K] = string.format("&variants_%s[%d]", op.c_name, k - 1) end
  for _, t in ipairs(types.list) do
    local K = context.built[t.name] and t.kind ~= "bits" and M.compute_type(types, op, t.name)
    if K then rows[#rows + 1] = string.format("[%s] = {%s, NULL}", context.upper(t.name), variants[K] or "NULL") end
  end
  return { string.format("static const qn_adjoint_op adjoint_%s = {\n  .walks = {%s},\n  .before = %d,\n  .elements = %d,\n};\n", op.c_name,
                         table.concat(rows, ",\n            "), M.before(op), op.elements) }, "&adjoint_" .. op.c_name
end

-- The packed description of a spec's op, for the runtime. kit: see row_packed.lua
M.packed_form = 3
function M.packed(kit, op, built) return string.pack("<i4I4", M.before(op), op.elements) .. scan.packed(kit, op, built) end

M.table = { header = "core/kinds/kind_adjoint.h" }
function M.table.text(_, _, _, has_cpu) return row.backend_text("adjoint", has_cpu) end

return M
