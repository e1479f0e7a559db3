-- SPDX-License-Identifier: Apache-2.0
--
-- The CUDA part of a tree: the plan's records, the files of kernels, their rows in the table of ops and in the manifest. Makes
-- texts by name, opens no files.

local banner = require "gen.targets.c.banner"
local c = require "gen.targets.c.text"
local kernels_cuda = require "gen.targets.cuda.kernels"
local kinds = require "gen.kinds.kinds"
local names = require "gen.targets.c.names"
local operands_of = require "gen.targets.operands"
local promote = require "gen.front.promote"
local variants_cuda = require "gen.targets.cuda.variants"

local M = {}

-- The DAG that computes a record, or nil for a plain conversion.
function M.dag_of(plan, op, record) return record.dag or (not record.from and plan.dag_for(op, record.K)) or nil end

-- The entries of an op for kernels_cuda.file: a record, and the DAG that computes it or nil for a conversion.
function M.entries(plan, op)
  local entries = {}
  for k, record in ipairs(variants_cuda.of_op(plan.model.types, op, plan.wanted, plan.policy, plan.dag_for, plan.combine_for)) do
    entries[k] = { record = record, dag = M.dag_of(plan, op, record) }
  end
  return entries
end

-- One file per op. Returns list of { name, text, op, entries }
function M.files(plan, prefix, templates, headers)
  local files = {}
  for _, op in ipairs(plan.ops) do
    local entries = M.entries(plan, op)
    if #entries > 0 then
      local head = banner.c("CUDA kernels of " .. op.name, operands_of.location(op))
      local text = kernels_cuda.file(plan.model.types, head, entries, templates, headers, prefix)
      files[#files + 1] = { name = names.op_file(op, prefix, "cuda") .. ".cu", text = text, op = op, entries = entries }
    end
  end
  return files
end

-- The dtypes of tensors that a kernel serves: its own; for bits, each dtype of that size that is copied as bits.
local function served_dtypes(plan, op, record)
  local types, bits = plan.model.types, nil
  for _, name in ipairs(record.dtypes) do bits = types.by_name[name].kind == "bits" and name or bits end
  if not bits or kinds.of(op).has_indices then return { record.dtypes } end
  local list = {}
  for _, name in ipairs(op.dtypes) do
    local is_own = kinds.of(op).promotes or #op.inputs == 0 or not variants_cuda.changes(types, name, name)
    if plan.wanted[name] and promote.bits_dtype(types.by_name[name]) == bits and is_own then
      local dtypes = {}
      for k, dtype in ipairs(record.dtypes) do dtypes[k] = dtype == bits and name or dtype end
      list[#list + 1] = dtypes
    end
  end
  return list
end

-- The sort key of a list of dtypes, in the runtime's order.
local function dtypes_key(types, dtypes)
  local bytes = {}
  for k, name in ipairs(dtypes) do bytes[k] = string.char(types.by_name[name].index) end
  return table.concat(bytes)
end

-- The kernels of a file by the dtypes of the tensors that they serve: list of { record, dtypes }, sorted by dtypes.
function M.rows(plan, file)
  local rows = {}
  for order, entry in ipairs(file.entries) do
    for _, dtypes in ipairs(served_dtypes(plan, file.op, entry.record)) do
      rows[#rows + 1] = { key = dtypes_key(plan.model.types, dtypes), order = order, record = entry.record, dtypes = dtypes }
    end
  end
  table.sort(rows, function(a, b)
    if a.key ~= b.key then return a.key < b.key end
    return a.order < b.order
  end)
  return rows
end

-- A qn_cuda_variant's initialiser.
local function row_text(row, head)
  return string.format("%s, %d, %d, (const void *)%s}", head, row.record.is_wide and 1 or 0, row.items_per_thread, row.name)
end

M.HEADER = "core/simt/launcher.h"

-- ORDER LAUNCHED of runtime/core/op/kind.h. folder: of runtime/core with the launcher; forms: those of the kinds that are launched so
local LAUNCHERS = {
  { name = "items" },
  { name = "rows", folder = "simt/rows", forms = { rows = true, scans = true, adjoints = true } }, -- scans choose kernels as rows do
  { name = "scans", folder = "simt/scans", forms = { scans = true, adjoints = true } },
}

-- The table of launchers, and the folders of those that ops do not need. ops: nil: all are there
function M.launchers(ops)
  local list, unneeded = {}, {}
  for k, launcher in ipairs(LAUNCHERS) do
    local is_needed = not ops or not launcher.forms
    for _, op in ipairs(ops or {}) do is_needed = is_needed or launcher.forms[kinds.of(op).cuda_form] end
    list[k] = is_needed and "&qn_launcher_" .. launcher.name or "NULL"
    if not is_needed then unneeded[#unneeded + 1] = launcher.folder end
  end
  return string.format("const qn_launcher *const qn_launchers[QN_LAUNCHED_COUNT] = {%s};", table.concat(list, ", ")), unneeded
end

-- The kernels' part of op_table.c: a device_table (gen/targets/all.lua)
function M.table_rows(plan, prefix, files)
  local types, result = plan.model.types, { backend = "qn_cuda_tree", declarations = {}, rows_of = {}, row_text = row_text,
                                            row_type = "qn_cuda_variant", list = "cuda_variants", header = M.HEADER }
  for _, file in ipairs(files) do
    local rows = {}
    for _, entry in ipairs(file.entries) do
      table.insert(result.declarations, "void " .. names.kernel(entry.record.name, prefix) .. "(void); /* in CUDA */")
    end
    for k, row in ipairs(M.rows(plan, file)) do
      local record = row.record
      local _, items_per_thread = kernels_cuda.items(types, record, #record.op.inputs)
      rows[k] = { record = record, dtypes = row.dtypes, name = names.kernel(record.name, prefix),
                  items_per_thread = items_per_thread }
    end
    result.rows_of[file.op.name] = rows
  end
  return result
end

-- The kernels' rows in the manifest.
function M.manifest_rows(plan, prefix, files)
  local rows = {}
  for _, file in ipairs(files) do
    for _, entry in ipairs(file.entries) do
      local record, dtypes = entry.record, {}
      for k, name in ipairs(record.dtypes) do dtypes[k] = c.json_string(name) end
      local elements, items_per_thread = kernels_cuda.items(plan.model.types, record, #record.op.inputs)
      rows[#rows + 1] = string.format('    {"name": "%s", "op": %s, "dtypes": [%s], "rank": "%s", "classes": "%s", "index": %d, '
        .. '"item_elements": %d, "items_per_thread": %d, "file": "%s"}', names.kernel(record.name, prefix), c.json_string(file.op.name),
        table.concat(dtypes, ", "), record.rank, record.classes, record.is_wide and 64 or 32, elements, items_per_thread,
        file.name)
    end
  end
  return rows
end

-- The text of one kernel of an op by its name, or nil and the known names.
function M.show(plan, name, templates)
  local known = {}
  for _, op in ipairs(plan.ops) do
    for _, entry in ipairs(M.entries(plan, op)) do
      known[#known + 1] = entry.record.name
      if entry.record.name == name then return kernels_cuda.file(plan.model.types, {}, { entry }, templates) end
    end
  end
  return nil, known
end

return M
