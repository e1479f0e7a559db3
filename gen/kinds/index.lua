-- SPDX-License-Identifier: Apache-2.0
--
-- The kind index (`index = true`): elements are computed from their indices. No inputs; a body has two more names, `index`, the
-- number of the element in row-major order, and `count`, how many there are. Floats are computed in f64, integers in i64; the
-- dtype is the output's.

local elementwise = require "gen.kinds.elementwise"

local M = {}

M.name, M.mark, M.schema = "index", "index", { index = "boolean" }
M.has_body, M.may_alias, M.has_own_entry = true, true, true
M.cuda_form = "indices"
M.has_indices = true -- its kernels read the indices of elements, as an operand
M.needs_runtime = "its kernels take the indices of elements, which the runtime makes"
M.output_dtype, M.dtypes_words = "output", "the caller's choice"
M.own_inputs, M.own_params = { "index" }, { "count" }

local EXCLUDED = { "finds", "result", "outputs", "moves", "casts", "grad", "grad_ulp" }

-- A message about an error in an op's fields, or nil.
function M.failure(fields, is_builtin)
  if not is_builtin then return "index: only the library's own ops may compute from an element's indices" end
  if (fields.inputs or ""):find "%S" then return "index: expected inputs = \"\"" end
  for _, field in ipairs(EXCLUDED) do
    if fields[field] ~= nil then return field .. " is not for an index op" end
  end
end

function M.declare(op) op.index = true end

-- Why it is no part of an expression.
function M.refusal() return "its elements follow from where they stand; call it by itself" end

function M.compute_type(types, op, T)
  return elementwise.is_listed(op, T) and (types.by_name[T].kind == "float" and "f64" or "i64") or nil
end

function M.param_dtypes(types, T) return { types.by_name[T].kind == "float" and "f64" or "b64" } end

function M.promotion() return "COMMON" end

function M.add_dtypes(types, op, wanted)
  for _, name in ipairs(op.dtypes) do
    if wanted[name] then wanted[M.compute_type(types, op, name)] = true end
  end
end

-- Its kernels: over a block of indices, numbers of the dtype that it computes in.
function M.blocks(kit, types, op, wanted, dag_for)
  local records = {}
  for k, K in ipairs(kit.kernel_dtypes(types, op, wanted)) do
    records[k] = kit.record(op, { K = K, D = K, dtypes = { K, K }, classes = "cc", weight = kit.weight(dag_for(op, K)),
                                  template = "elementwise" })
  end
  return records, true
end

M.templates = { "index" }

local function index_values(_, types, record) return { element = types.by_name[record.dtypes[2]].c } end

-- What its ops share: kernels that make indices, in each of the dtypes computed in. add: (name, fields); Ks: these, in order
function M.packs(kit, add, Ks)
  for _, K in ipairs(Ks) do
    add(kit.name_of("pack_index", { "b8", K }, "2", "sc"),
        { role = "index", dtypes = { "b8", K }, rank = "2", classes = "sc", template = "index",
          says = "indices as numbers: from a parameter on, the first operand's strides apart", values = index_values })
  end
end

-- Their table for the runtime.
M.table = { header = "core/kinds/kind_index.h" }
function M.table.text(packs_of)
  local cells = { "NULL", "NULL" }
  for _, pack in ipairs(packs_of "index") do cells[pack.record.dtypes[2] == "f64" and 2 or 1] = "&" .. pack.name end
  return string.format("const qn_variant *const qn_index_packs[2] = {%s};\n", table.concat(cells, ", "))
end

-- The operands of its kernels on CUDA. The class of the indices is b, whatever their strides: they do not keep an output from
-- being written in rows.
function M.cuda_operands(kit, D, classes) return { kit.INDEX_DTYPE, D }, "b" .. classes end

return M
