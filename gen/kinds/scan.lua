-- SPDX-License-Identifier: Apache-2.0
--
-- The kind scan (declared by `scan`): each element of the output combines the elements of the input up to its place along one axis.
-- `combine` makes one state of two, a (before) and b; it need only be associative. `finds = "max"`, "min": a second output has the place
-- of each value, the first of equals or of NaNs. The order is that of docs/internals/reductions.md.
-- With lift or finish a scan has states of its own: `lift` makes the state of an element x at `index` (left out: x), `finish` the result of
-- the state a, of x and of index (left out: a). x has the accumulator's dtype, T. `state = "T v, i64 i"` is as in gen/kinds/reduction.lua.
-- finish of several outputs assigns them.
-- initial: the result of no elements; of several outputs a table of them by name.
-- A call says the axis, and how the result is shifted; these are no parameters of kernels.

local number = require "gen.base.number"
local reduction = require "gen.kinds.reduction"
local row = require "gen.kinds.row"
local source = require "gen.base.source"

local M = {}

M.name, M.declarator, M.default_inputs = "scan", "scan", "x"
M.bound_is_expression = true -- it may call scans
M.combine_claims = { commutative = false }
M.not_measured = "it scans"
M.cuda_form = "scans"
M.may_be_added = true
M.has_body = false -- combine is what makes the op
M.may_alias = true
M.has_own_entry, M.has_own_nest = true, true
M.runtime_needs = "row" -- its files load and store what does not lie as kernels need it
M.runtime_cpu = { "kind_scan_cpu" }
M.needs_runtime = "its kernels carry states, which the runtime keeps"
M.schema = { accumulate = "string", result = "string", combine = "string table", initial = "number table", finds = "string",
             bound = "string table", state = "string", lift = "string table", finish = "string table" }

M.MAX_OUTPUTS = 4 -- ORDER QN_SCAN_MAX_OUTPUTS of runtime/core/row/scan_op.h

local HEAVY = 16 -- the most operations of a combination that runs along a segment element by element
local MOST_SHORT = 64 -- rows of fewer elements run side by side
local FINDING = { rows = "scan_places", columns = "scan_places_columns" }
local COMPARED = { max = ">", min = "<" }

local EXCLUDED = { "body", "params", "grad", "grad_ulp", "counts", "fraction", "ulp" }
local AFTER = "apply an op to its result"
local INSTEAD = { body = "it has lift, combine and finish", params = AFTER, counts = AFTER, fraction = AFTER, ulp = "declare bound, the largest absolute error",
                  grad = "declare its derivative behind it: adjoint \"NAME_backward\"", grad_ulp = "its derivative has a declaration of its own" }

-- For an op that finds: whether the element x replaces the one found before.
function M.is_found(op, before, x)
  if x ~= x or before ~= before then return before == before end
  return op.finds == "max" and x > before or op.finds == "min" and x < before
end

-- A message about an error in the fields of a state, or nil.
function M.state_failure(fields, types)
  if not fields.state then return nil end
  local parts, why = reduction.parse_state(fields.state, types)
  if not parts then return why end
  for _, field in ipairs { "lift", "finish" } do
    if fields[field] == nil then return field .. " is missing, which a scan with a state needs" end
  end
end

-- A message about an error in an op's fields, or nil.
function M.failure(fields, is_builtin, types)
  if fields.combine == nil then return "combine is missing" end
  for _, field in ipairs(EXCLUDED) do
    if fields[field] ~= nil then return field .. " is not for a scan; " .. INSTEAD[field] end
  end
  if fields.finds and not is_builtin then
    return "finds: only the library's own scans have a kernel that searches; write state, lift, combine and finish"
  end
  if fields.finds and not (COMPARED[fields.finds] and fields.outputs) then
    return "finds: expected \"max\" or \"min\", and outputs of which the second has the places"
  end
  if fields.outputs and not fields.finds and not fields.finish then return "outputs: finish is missing, which assigns them" end
  if fields.initial == nil then return "initial is missing: the result of no elements" end
  return M.state_failure(fields, types) or row.failure(fields, is_builtin, types)
end

-- Sets the bodies of an op's states. bodies(field): the bodies of a field, by dtype or kind
function M.declare_states(op, fields, bodies, types)
  op.reducer = { combine = bodies "combine", lift = fields.lift and bodies "lift", finish = fields.finish and bodies "finish",
                 parts = fields.state and reduction.parse_state(fields.state, types) }
end

function M.declare(op, fields, bodies, types)
  op.accumulate, op.result = fields.accumulate, fields.result
  op.finds, op.bound = fields.finds, fields.bound and bodies "bound"
  op.has_states = (fields.lift or fields.finish) ~= nil
  M.declare_states(op, fields, bodies, types)
end

function M.check(op)
  if #op.inputs ~= 1 or op.inputs[1].type then return "inputs: a scan has one, of the dtypes that it takes" end
end

-- Sets the results of no elements, one for each output; says what is wrong with them, or with the outputs.
function M.check_outputs(op, fields, types)
  local given, known = fields.initial, {}
  op.initials = {}
  if #op.outputs > M.MAX_OUTPUTS then return string.format("outputs: a scan has at most %d", M.MAX_OUTPUTS) end
  for k, output in ipairs(op.outputs) do
    local t = output.type and types.by_name[output.type]
    if t and t.compute ~= output.type then
      return string.format("outputs: %s %s: expected a dtype that is computed in itself", output.type, output.name)
    end
    known[output.name] = true
    op.initials[k] = type(given) ~= "table" and (op.finds and k > 1 and -1 or given) or given[output.name]
    if math.type(op.initials[k]) == nil then return string.format("initial: that of %s is missing, or no number", output.name) end
  end
  if #op.outputs > 1 and type(given) ~= "table" and not op.finds then
    return string.format("initial: expected a number for each output, { %s = ..., %s = ... }", op.outputs[1].name, op.outputs[2].name)
  end
  for name in pairs(type(given) == "table" and given or {}) do
    if not known[name] then return string.format("initial: '%s' is no output", source.shown(name)) end
  end
  op.initial = op.initials[1]
end

local AXIS = { name = "axes", value = -1, role = "axis" }
local SHIFTS = { { name = "include_initial", value = 0, role = "flag" }, { name = "exclusive", value = 0, role = "flag" },
                 { name = "reverse", value = 0, role = "flag" } }
function M.class_of() return "reduction" end
function M.shape_params() return { AXIS, table.unpack(SHIFTS) } end

-- Why it is no part of an expression.
function M.refusal() return "each of its results depends on the ones before; call it by itself, and write an expression of its result" end

-- "max", "min": what a second output has the places of; nil: there is none.
function M.sought(op) return op.finds end

M.accumulator, M.add_dtypes, M.promotion, M.param_dtypes, M.compute_type = row.accumulator, row.add_dtypes, row.promotion, row.param_dtypes, row.compute_type

-- As row.result_dtype. If the op computes in floats, an integer dtype becomes a float first.
function M.result_dtype(types, op, dtype)
  local K = M.compute_type(types, op, dtype)
  local is_float = K and types.by_name[K].kind == "float"
  return row.result_dtype(types, op, is_float and types.by_name[dtype].kind ~= "float" and types.by_name[dtype].floating or dtype)
end

M.templates = { "rows/scan_rows", "rows/scan_columns", "rows/scan_heavy_rows", "rows/scan_heavy_columns", "rows/scan_places",
                "rows/scan_places_columns", "rows/scan_adjoint" }

-- Whether it may be called in expressions: with one result, which is a state.
function M.allowed_in_expression(op) return #op.outputs == 1 and not op.has_states end

-- The result of no elements, in the accumulator's dtype.
function M.empty_result(types, op, A) return row.empty_result(types, { reducer = { empty = op.initial } }, A) end

function M.axes_of_call() return { scans = true } end

-- Why it may have no bound.
function M.no_bound(op) return #op.outputs > 1 and "a scan of several outputs has none" or nil end

-- ORDER docs/internals/reductions.md, scans
function M.depth(n)
  return math.min(n - 1, 15) + math.min((n - 1) // 16, 15) + math.min((n - 1) // 256, 255) + (n - 1) // 65536
end

local function scan_values(c, types, record)
  local lines, result = c.body(types, record.combine, { "a", "b" })
  row.enter(lines, { result })
  local t = types.by_name[record.K]
  local is_sum = t.kind == "integer" and row.operation(record.combine) == "add"
  return { element = t.c, beside = 1024 // t.bits, combine = lines, result = result, stored = c.stored(types, record.K, "v"),
           stored_item = c.stored(types, record.K, "v[l]"), is_sum = is_sum, most_short = MOST_SHORT }
end

-- The values of a template of an op that finds: the value and the place of the outermost element so far. key: the integers that are ordered as the elements
local function places_values(c, types, record)
  local t, is_max = types.by_name[record.K], record.op.finds == "max"
  local is_float = t.kind == "float"
  local key = is_float and "i" .. t.bits or t.c
  local float = is_float and { raw = "u" .. t.bits, last = t.bits - 1,
                               nan = string.format("(%s)0x%s", key, (is_max and "7f" or "80") .. (is_max and "ff" or "00"):rep(t.bits // 8 - 1)) }
  return { element = t.c, key = key, mask = "i" .. t.bits, beyond = COMPARED[record.op.finds], float = float or false, stored = c.stored(types, record.K, "x") }
end

local function names_of(prefix, list)
  local names = {}
  for k, item in ipairs(list) do names[k] = prefix .. (item.name or item) end
  return names
end

-- The names of the template: no names of values.
local TAKEN = { "a", "b", "both", "v", "at", "of", "here", "value", "place", "carry", "ptr", "stride", "params", "n", "i", "j", "l", "out_row",
                "row", "out", "states" }
for k = 2, M.MAX_OUTPUTS do
  for _, name in ipairs { "out", "out_row", "value" } do TAKEN[#TAKEN + 1] = name .. k end
end

-- The lines of a body, and its results. arguments: the names of its inputs
local function body(c, types, dag, arguments)
  local names = table.move(arguments, 1, #arguments, 1, {})
  return c.body(types, dag, table.move(TAKEN, 1, #TAKEN, #names + 1, names))
end

-- A number as C has it, for a cast.
local function c_number(value)
  if math.tointeger(value) then return string.format("%d", value) end
  if value ~= value then return "__builtin_nan(\"\")" end
  return value == math.huge and "__builtin_inf()" or value == -math.huge and "-__builtin_inf()" or number.hex(value)
end

-- The values of the template of an op with states, record.states. before: the input that is read one place earlier, by name
function M.state_values(c, types, record, before)
  local op, dags = record.op, record.states
  local parts, inputs, outputs, pointers, states = {}, {}, {}, {}, {}
  for _, name in ipairs { "a.", "b." } do table.move(names_of(name, dags.parts), 1, #dags.parts, #states + 1, states) end
  local both, _, combined = body(c, types, dags.combine, states)
  row.enter(both, combined)
  local taken = {}
  for k, input in ipairs(op.inputs) do
    taken[k] = "in_" .. input.name
    inputs[k] = { index = k - 1, name = "in_" .. input.name, at = input.name, element = types.by_name[input.type or record.K].c,
                  is_before = input.name == before }
  end
  taken[#taken + 1] = "place"
  local lift, _, lifted = body(c, types, dags.lift, taken)
  local finished = names_of("a.", dags.parts)
  table.move(taken, 1, #taken, #finished + 1, finished)
  local finish, _, results = body(c, types, dags.finish, finished)
  for k, part in ipairs(dags.parts) do
    parts[k] = { name = part.name, element = types.by_name[part.type].c, lifted = lifted[k], combined = combined[k] }
  end
  for k, output in ipairs(op.outputs) do
    local T, tail = output.type or record.K, k > 1 and tostring(k) or ""
    outputs[k] = { row = "out_row" .. tail, value = "value" .. tail, pointer = "out" .. tail, index = #op.inputs + k, element = types.by_name[T].c,
                   result = results[k], stored = c.stored(types, T, "value" .. tail) }
    pointers[k] = outputs[k].pointer
  end
  local has_place = false
  for _, line in ipairs(lift) do has_place = has_place or line:find "%f[%w_]place%f[^%w_]" ~= nil end
  for _, value in ipairs(lifted) do has_place = has_place or value:find "%f[%w_]place%f[^%w_]" ~= nil end
  return { parts = parts, inputs = inputs, outputs = outputs, combine = both, lift = lift,
           has_casts = row.has_casts(lift, lifted) or row.has_casts(finish, results), finish = finish, lifts_place = has_place,
           initial = before and c_number(op.initial) or "", n_in = #op.inputs, pointers = table.concat(pointers, ", "),
           further = table.move(outputs, 2, #outputs, 1, {}),
           declared = "char *" .. table.concat(pointers, ", char *") }
end

local function lifted_values(c, types, record) return M.state_values(c, types, record) end

-- The records that make(A) gives for each accumulator, once; records.scans: of each dtype that is computed in the accumulator
local function by_accumulator(kit, types, op, wanted, make)
  local records, is_made = { scans = {} }, {}
  for _, K in ipairs(kit.kernel_dtypes(types, op, wanted)) do
    local A = M.accumulator(types, op, K)
    records.scans[K] = A
    for _, record in ipairs(is_made[A] and {} or make(A)) do
      record.op, record.K, record.D, record.rank, record.classes = op, A, A, "2", ("c"):rep(#record.dtypes)
      record.name, record.weight, record.heavy = kit.name_of(op.c_name .. "_" .. record.part, record.dtypes, "2", record.classes), 1, false
      records[#records + 1] = record
    end
    is_made[A] = true
  end
  kit.sort_by_dtype(types, records)
  return records, true
end

-- Its kernels for each accumulator. states_for: with states the graphs of the op's bodies; else that of its combine
function M.blocks(kit, types, op, wanted, _, states_for)
  return by_accumulator(kit, types, op, wanted, function(A)
    if op.has_states then
      local dtypes = { A, A } -- elements, carries
      for _, output in ipairs(op.outputs) do dtypes[#dtypes + 1] = output.type or A end
      return { { part = "rows", dtypes = dtypes, template = "scan_adjoint", values = lifted_values, states = states_for(op, A) } }
    end
    local made = {}
    for k, part in ipairs { "rows", "columns" } do
      made[k] = op.finds and { part = part, dtypes = { A, A, A, "i64" }, template = FINDING[part], values = places_values }
        or { part = part, dtypes = { A, A, A }, values = scan_values, combine = states_for(op, A),
             template = kit.weight(states_for(op, A)) > HEAVY and "scan_heavy_" .. part or "scan_" .. part }
    end
    return made
  end)
end

-- Its kernels for CUDA: one for each dtype, in both widths.
function M.cuda_records(kit, types, op, wanted, _, _, states_for)
  local records, is_made = {}, {}
  for _, K in ipairs(kit.kernel_dtypes(types, op, wanted)) do is_made[K] = true end
  for _, t in ipairs(types.list) do
    local K = wanted[t.name] and t.kind ~= "bits" and M.compute_type(types, op, t.name)
    if K and is_made[K] then
      local A, dtypes = M.accumulator(types, op, K), { t.name }
      for _, output in ipairs(op.outputs) do dtypes[#dtypes + 1] = output.type or M.result_dtype(types, op, t.name) end
      for _, is_wide in ipairs { false, true } do
        local fields = { op = op, K = K, D = t.name, dtypes = table.move(dtypes, 1, #dtypes, 1, {}), is_wide = is_wide, heavy = false, weight = 1,
                         sought = op.finds }
        local record_of = op.has_states and kit.states_record or kit.scan_record
        records[#records + 1] = record_of(fields, A, states_for(op, A), function(given) return kit.record(op.c_name, given) end)
      end
    end
  end
  return records, true
end

-- The row of an op beside its qn_builtin, and the name of the field's value. context: see row.lua
function M.own_rows(types, op, records, context)
  local variants, scans, results = {}, {}, {}
  for k, record in ipairs(records) do
    variants[record.K] = variants[record.K] or {}
    variants[record.K][record.part] = string.format("&variants_%s[%d]", op.c_name, k - 1)
  end
  for _, t in ipairs(types.list) do
    local K = context.built[t.name] and t.kind ~= "bits" and M.compute_type(types, op, t.name)
    local A = K and records.scans[K]
    if A then
      local built = variants[A] or {} -- none in a tree without kernels for the CPU
      scans[#scans + 1] = string.format("[%s] = {%s, %s, %s, NULL, NULL}", context.upper(t.name), built.rows or "NULL", built.columns or "NULL",
                                        context.upper(A))
      results[#results + 1] = string.format("[%s] = %s", context.upper(t.name), context.upper(M.result_dtype(types, op, t.name)))
    end
  end
  local others = {}
  for k = 2, #op.initials do others[k - 1] = context.number(op.initials[k]) end
  local more = #others > 0 and string.format("\n  .others = {%s},", table.concat(others, ", ")) or ""
  if op.has_states then more = more .. "\n  .has_states = 1," end
  return { string.format("static const qn_scan_op scan_%s = {\n  .initial = %s,%s\n  .scans = {%s},\n  .results = {%s},\n};\n", op.c_name,
                         context.number(op.initial), more, table.concat(scans, ",\n            "), table.concat(results, ", ")) },
         "&scan_" .. op.c_name
end

-- The packed description of a spec's op, for the runtime: whether it has states, its initials, and for each dtype the accumulator's, the result's and
-- the programs' names; with states their parts, and the operands of its kernel. kit: see row_packed.lua
M.packed_form = 2
function M.packed(kit, op, built)
  local types, kind, dtypes, initials = kit.types, kit.kind, {}, {}
  local function indices(items)
    local list = {}
    for k, item in ipairs(items) do list[k] = types.by_name[item.type].index end
    return kit.numbers(list)
  end
  for _, t in ipairs(types.list) do
    local K = built[t.name] and t.kind ~= "bits" and kind.compute_type(types, op, t.name)
    if K then
      local A = kind.accumulator(types, op, K)
      local dag, ins = op.has_states and kit.states(op, A), {}
      for k, input in ipairs(op.inputs) do ins[k] = { type = input.type or A } end
      dtypes[#dtypes + 1] = string.pack("<I4I4I4s4s4", t.index, types.by_name[A].index, types.by_name[kind.result_dtype(types, op, t.name)].index,
                                        op.name, kit.kernel_name(op, A, "combine"))
        .. (dag and string.pack("<s4s4", op.reducer.lift and kit.kernel_name(op, A, "lift") or "",
                                op.reducer.finish and kit.kernel_name(op, A, "finish") or "")
            .. indices(dag.parts) .. indices(ins) .. indices(dag.finish.outputs) or "")
    end
  end
  for k, value in ipairs(op.initials or { op.initial }) do initials[k] = string.pack("<d", value) end
  return string.pack("<I4I4", op.has_states and 1 or 0, #initials) .. table.concat(initials) .. string.pack("<I4", #dtypes) .. table.concat(dtypes)
end

M.table = { header = "core/kinds/kind_scan.h" }
function M.table.text(_, _, _, has_cpu) return row.backend_text("scan", has_cpu) end

return M
