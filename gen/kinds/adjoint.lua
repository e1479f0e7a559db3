-- SPDX-License-Identifier: Apache-2.0
--
-- The kind adjoint (declared by `adjoint`): the derivative of a scan, which carries states from the end of the scan to its beginning.
-- of: the scan. Its inputs: grad, and what is read of the scan's inputs and outputs; reads: its one output, after them. `lift` makes the
-- state of a place from these, `combine` one state of two, a (of later places of the scan) and b, and need only be associative; `finish`
-- makes the result from the combination a of all states from the end up to the place, the inputs, and `index`, the place. `state` is as in
-- gen/kinds/reduction.lua.
-- before: an input that is read one place earlier in the scan; at the first place it is what the scan gives of no elements.
-- A call has the scan's parameters; these are no parameters of kernels. The order is that of docs/internals/reductions.md.

local reduction = require "gen.kinds.reduction"
local row = require "gen.kinds.row"
local scan = require "gen.kinds.scan"

local M = {}

M.name, M.declarator = "adjoint", "adjoint"
M.has_body = false -- lift, combine and finish are what make the op
M.may_alias = true
M.is_adjoint = true
M.has_own_entry, M.has_own_nest = true, true
M.runtime_needs = scan.runtime_needs
M.beside_cpu, M.needs_runtime = scan.beside_cpu, scan.needs_runtime
M.input_types = { i64 = true }
M.schema = { of = "string", state = "string", lift = "string table", combine = "string table", finish = "string table", reads = "string",
             before = "string" }

local EXCLUDED = { "body", "params", "grad", "result", "outputs" }

-- What is wrong with its fields, or nil.
function M.trouble(fields, is_builtin, types)
  if not is_builtin then return "adjoint: only the library's own scans have one" end
  for _, field in ipairs { "of", "state", "lift", "combine", "finish" } do
    if fields[field] == nil then return field .. " is missing" end
  end
  for _, field in ipairs(EXCLUDED) do
    if fields[field] ~= nil then return field .. " is not for an adjoint" end
  end
  local _, why = reduction.parse_state(fields.state, types)
  return why
end

-- bodies(field): the bodies of a field, by dtype or kind
function M.declare(op, fields, bodies, types)
  op.backward_of, op.before = fields.of, fields.before
  op.reducer = { lift = bodies "lift", combine = bodies "combine", finish = bodies "finish", parts = reduction.parse_state(fields.state, types) }
end

function M.check(op, fields)
  if fields.reads then op.inputs[#op.inputs + 1] = { name = fields.reads } end
  for _, input in ipairs(op.inputs) do
    if input.name == op.before then return nil end
  end
  return op.before and "before: no input " .. op.before
end

-- Names it as the derivative of its scan. reads, by: as derive.lua sets them; READS: its numbers of grad and of an output
function M.declared(model, op)
  local of = model.op_of_name[op.backward_of]
  of.backward, op.by, op.reads, op.initial = op.name, { 0 }, {}, of.initial
  op.outputs[1].name = "grad_" .. of.inputs[1].name
  for k, input in ipairs(op.inputs) do op.reads[k] = input.name == "grad" and 0xff or input.name == of.inputs[1].name and 0 or 0xfe end
end

M.class_of, M.shape_params = scan.class_of, scan.shape_params

-- Why it is no part of an expression.
function M.refusal() return "each of its results depends on the ones behind; call it by itself" end

M.accumulator, M.want, M.promotion, M.param_dtypes, M.compute_type = row.accumulator, row.want, row.promotion, row.param_dtypes, row.compute_type
function M.result_dtype(_, _, dtype) return dtype end

M.templates = { "scan_adjoint" }

local function names_of(prefix, list)
  local names = {}
  for k, item in ipairs(list) do names[k] = prefix .. (item.name or item) end
  return names
end

-- The names of the template: no names of values.
local TAKEN = { "a", "b", "both", "v", "at", "of", "here", "value", "place", "carry", "ptr", "stride", "params", "n", "i", "j", "l", "out_row",
                "row", "out", "states" }

-- The lines of a body, and its results. arguments: the names of its inputs
local function body(c, types, dag, arguments)
  local names = table.move(arguments, 1, #arguments, 1, {})
  return c.body(types, dag, table.move(TAKEN, 1, #TAKEN, #names + 1, names))
end

local function values(c, types, record)
  local op, dags = record.op, record.adjoint
  local parts, inputs, states = {}, {}, {}
  for _, name in ipairs { "a.", "b." } do table.move(names_of(name, dags.parts), 1, #dags.parts, #states + 1, states) end
  local both, _, combined = body(c, types, dags.combine, states)
  local taken = {}
  for k, input in ipairs(op.inputs) do
    taken[k] = "in_" .. input.name
    inputs[k] = { index = k - 1, name = "in_" .. input.name, at = input.name, element = types.by_name[input.type or record.K].c,
                  is_before = input.name == op.before }
  end
  local lift, _, lifted = body(c, types, dags.lift, taken)
  local finished = names_of("a.", dags.parts)
  table.move(taken, 1, #taken, #finished + 1, finished)
  finished[#finished + 1] = "place"
  local finish, result = body(c, types, dags.finish, finished)
  for k, part in ipairs(dags.parts) do
    parts[k] = { name = part.name, element = types.by_name[part.type].c, lifted = lifted[k], combined = combined[k] }
  end
  return { element = types.by_name[record.K].c, parts = parts, inputs = inputs, combine = both, lift = lift, finish = finish, result = result,
           initial = op.before and string.format("%d", op.initial) or "", n_in = #op.inputs, stored = c.stored(types, record.K, "value") }
end

-- The dtypes of its operands where the inputs are of dtype D.
local function operand_dtypes(op, D)
  local dtypes = {}
  for k, input in ipairs(op.inputs) do dtypes[k] = input.type or D end
  dtypes[#dtypes + 1] = D
  return dtypes
end

-- Its kernels, one for each dtype that is computed in.
function M.blocks(kit, types, op, wanted, _, bodies_for)
  local records = { adjoints = {} }
  for _, K in ipairs(kit.kernel_dtypes(types, op, wanted)) do
    local dtypes = operand_dtypes(op, K)
    dtypes[#dtypes + 1] = K -- the result, behind the carries
    local classes = ("c"):rep(#dtypes)
    records.adjoints[K] = #records + 1
    records[#records + 1] = { name = kit.name_of(op.c_name .. "_rows", dtypes, "2", classes), op = op, K = K, D = K, dtypes = dtypes, rank = "2",
                              classes = classes, weight = 1, heavy = false, template = "scan_adjoint", values = values,
                              adjoint = bodies_for(op, K) }
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

-- The row of an op beside its qn_builtin, and the name of the field's value. context: see row.lua
function M.own_rows(types, op, records, context)
  local rows, variants = {}, {}
  for k, record in ipairs(records) do variants[record.K] = string.format("&variants_%s[%d]", op.c_name, k - 1) end
  for _, t in ipairs(types.list) do
    local K = context.built[t.name] and t.kind ~= "bits" and M.compute_type(types, op, t.name)
    if K and variants[K] then rows[#rows + 1] = string.format("[%s] = %s", context.upper(t.name), variants[K]) end
  end
  local before = -1
  for k, input in ipairs(op.inputs) do before = input.name == op.before and k - 1 or before end
  return { string.format("static const qn_adjoint_op adjoint_%s = {\n  .rows = {%s},\n  .before = %d,\n};\n", op.c_name,
                         table.concat(rows, ",\n           "), before) }, "&adjoint_" .. op.c_name
end

M.table = { header = "core/kinds/kind_adjoint.h" }
function M.table.text() return "" end

return M
