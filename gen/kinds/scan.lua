-- SPDX-License-Identifier: Apache-2.0
--
-- The kind scan (declared by `scan`): each element of the output combines the elements of the input up to its place along one axis.
-- `combine` makes one state of two, a (before) and b; it need only be associative. `finds = "max"`, "min": a second output has the place
-- of each value, the first of equals or of NaNs. The order is that of docs/internals/reductions.md.
-- A call says the axis, and how the result is shifted; these are no parameters of kernels.

local row = require "gen.kinds.row"

local M = {}

M.name, M.declarator, M.default_inputs = "scan", "scan", "x"
M.is_scan = true
M.may_be_added = true
M.has_body = false -- combine is what makes the op
M.may_alias = true
M.has_own_entry, M.has_own_nest = true, true
M.runtime_needs = "row" -- its files load and store what does not lie as kernels need it
M.beside_cpu = "scans, which a tree has together with its kernels for the CPU only" -- a target alone has none
M.needs_runtime = "its kernels carry states, which the runtime keeps"
M.schema = { accumulate = "string", result = "string", combine = "string table", initial = "number", finds = "string",
             bound = "string table" }

local COMPARED = { max = ">", min = "<" }

local EXCLUDED = { "body", "params", "grad", "grad_ulp", "counts" }

-- Whether an element of an op that finds takes the place of the one found before.
function M.is_found(op, before, x)
  if x ~= x or before ~= before then return before == before end
  return op.finds == "max" and x > before or op.finds == "min" and x < before
end

-- What is wrong with its fields, or nil.
function M.trouble(fields, is_builtin, types)
  if fields.combine == nil then return "combine is missing" end
  if not is_builtin and (fields.outputs or fields.finds) then return "only the library's own scans have a second output" end
  if (fields.outputs ~= nil) ~= (fields.finds ~= nil) or fields.finds and not COMPARED[fields.finds] then
    return "finds: expected \"max\" or \"min\", and outputs of which the second has the places"
  end
  if fields.initial == nil then return "initial is missing: the result of no elements" end
  for _, field in ipairs(EXCLUDED) do
    if fields[field] ~= nil then return field .. " is not for a scan; apply an op to its result" end
  end
  return row.trouble(fields, is_builtin, types)
end

-- bodies(field): the bodies of a field, by dtype or kind
function M.declare(op, fields, bodies)
  op.accumulate, op.result, op.initial = fields.accumulate, fields.result, fields.initial
  op.finds, op.bound = fields.finds, fields.bound and bodies "bound"
  op.reducer = { combine = bodies "combine" }
end

local AXES = { name = "axes", value = -1, is_shape = true }
local SHIFTS = { { name = "include_initial", value = 0, is_shape = true }, { name = "exclusive", value = 0, is_shape = true },
                 { name = "reverse", value = 0, is_shape = true } }
function M.class_of() return "reduction" end
function M.shape_params() return { AXES, table.unpack(SHIFTS) } end

-- Why it is no part of an expression.
function M.refusal() return "each of its results depends on the ones before; call it by itself, and write an expression of its result" end

-- "max", "min": what a second output has the places of; nil: there is none.
function M.sought(op) return op.finds end

M.accumulator, M.result_dtype, M.want, M.promotion, M.param_dtypes = row.accumulator, row.result_dtype, row.want, row.promotion, row.param_dtypes
M.compute_type = row.compute_type

M.templates = { "scan_rows", "scan_columns", "scan_places" }

local function scan_values(c, types, record)
  local lines, result = c.body(types, record.combine, { "a", "b" })
  local t = types.by_name[record.K]
  return { element = t.c, combine = lines, result = result, stored = c.stored(types, record.K, "v"),
           stored_item = c.stored(types, record.K, "v[l]") }
end

local function places_values(_, types, record)
  local t, sign = types.by_name[record.K], COMPARED[record.op.finds]
  local take = t.kind == "float" and string.format("(v %s top) | ((v != v) & (top == top))", sign) or string.format("v %s top", sign)
  return { element = t.c, take = take }
end

-- Its kernels for each accumulator.
function M.blocks(kit, types, op, wanted, _, combine_for)
  local records, is_made = { scans = {} }, {}
  for _, K in ipairs(kit.kernel_dtypes(types, op, wanted)) do
    local A = M.accumulator(types, op, K)
    records.scans[K] = A
    for _, part in ipairs(is_made[A] and {} or { "rows", "columns" }) do
      records[#records + 1] = { name = kit.name_of(op.c_name .. "_" .. part, { A, A, A }, "2", "ccc"), op = op, K = A, D = A,
                                dtypes = { A, A, A }, rank = "2", classes = "ccc", weight = 1, heavy = false, part = part,
                                template = "scan_" .. part, values = scan_values, combine = combine_for(op, A) }
    end
    if op.finds and not is_made[A] then
      local dtypes = { A, A, "i64", "i64" }
      records[#records + 1] = { name = kit.name_of(op.c_name .. "_places", dtypes, "2", "cccc"), op = op, K = A, D = A, dtypes = dtypes,
                                rank = "2", classes = "cccc", weight = 1, heavy = false, part = "places", template = "scan_places",
                                values = places_values }
    end
    is_made[A] = true
  end
  kit.sort_by_dtype(types, records)
  return records, true
end

-- Its kernels for CUDA: one for each dtype, in both widths.
function M.cuda_records(kit, types, op, wanted, _, _, combine_for)
  local records, is_made = {}, {}
  for _, K in ipairs(kit.kernel_dtypes(types, op, wanted)) do is_made[K] = true end
  for _, t in ipairs(types.list) do
    local K = wanted[t.name] and t.kind ~= "bits" and M.compute_type(types, op, t.name)
    if K and is_made[K] then
      local A, dtypes = M.accumulator(types, op, K), { t.name, M.result_dtype(types, op, t.name), op.finds and "i64" or nil }
      for _, is_wide in ipairs { false, true } do
        local fields = { op = op, K = K, D = t.name, dtypes = dtypes, is_wide = is_wide, heavy = false, weight = 1, sought = op.finds }
        records[#records + 1] = kit.scan_record(fields, A, combine_for(op, A), function(given) return kit.record(op.c_name, given) end)
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
    if A and variants[A] then
      scans[#scans + 1] = string.format("[%s] = {%s, %s, %s, %s, NULL}", context.upper(t.name), variants[A].rows, variants[A].columns,
                                        variants[A].places or "NULL", context.upper(A))
      results[#results + 1] = string.format("[%s] = %s", context.upper(t.name), context.upper(M.result_dtype(types, op, t.name)))
    end
  end
  return { string.format("static const qn_scan_op scan_%s = {\n  .initial = %s,\n  .scans = {%s},\n  .results = {%s},\n};\n", op.c_name,
                         context.number(op.initial), table.concat(scans, ",\n            "), table.concat(results, ", ")) },
         "&scan_" .. op.c_name
end

M.table = { header = "core/kinds/kind_scan.h" }
function M.table.text() return "" end

return M
