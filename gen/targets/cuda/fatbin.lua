-- SPDX-License-Identifier: Apache-2.0
--
-- The library's optional files for CUDA, in a folder beside its modules: the sources of kernels, compiled by nvcc to fatbins, one
-- per op and per group of primitives, and the index by which runtime/cuda/cuda_built.c finds them. The library has no other list
-- of these kernels. Makes texts by name, opens no files.

local banner = require "gen.targets.c.banner"
local build = require "gen.targets.cuda.build"
local cuda = require "gen.targets.cuda.tree"
local kinds = require "gen.kinds.kinds"
local kernels_cuda = require "gen.targets.cuda.kernels"
local names = require "gen.targets.c.names"
local order = require "gen.base.order"
local variants_cuda = require "gen.targets.cuda.variants"

local M = {}

M.FOLDER = "cuda/"
M.INDEX = M.FOLDER .. "kernels.txt"

-- A primitive's CUDA kernel, for contiguous registers and single values.
local function entry_of(entry)
  local record = entry.record
  local op = { name = "a step of an expression", c_name = "prim_" .. record.primitive, bodies = {}, file = "gen/graph/dag/primitives.lua",
               line = 1 }
  return { dag = entry.dag, record = variants_cuda.record(op.c_name, {
    op = op, K = record.K, D = record.K, dtypes = record.dtypes, rank = "1", classes = record.classes, is_wide = false,
    weight = 1,
  }) }
end

-- The sources, one per op and per file of plan.primitive_files: list of { stem, text, entries, op or nil }.
function M.sources(plan, templates, headers)
  local list = {}
  for _, file in ipairs(cuda.files(plan, names.LIBRARY, templates, headers)) do
    list[#list + 1] = { stem = file.name:match "([%w_]+)%.cu$", text = file.text, entries = file.entries, op = file.op }
  end
  for _, file in ipairs(plan.primitive_files) do
    local entries = {}
    for _, entry in ipairs(file.entries) do
      if entry.dag then entries[#entries + 1] = entry_of(entry) end -- a lookup's table is the host's memory
    end
    if #entries > 0 then
      local head = banner.c "CUDA kernels of one operation each, for expressions"
      list[#list + 1] = { stem = file.name:match "([%w_]+)%.c$", entries = entries,
                          text = kernels_cuda.file(plan.model.types, head, entries, templates, headers) }
    end
  end
  return list
end

-- The C kernels that may be a step of an expression, with the CUDA kernel that does the same over contiguous elements: sorted
-- list of { name of the C kernel, number of the CUDA kernel }.
local function steps(plan, number_of)
  local list, op_of_role = {}, {} -- role of packing kernels -> the first op that they compute
  local function add(record, c_name, dtypes, classes)
    local twin = variants_cuda.record(c_name, { dtypes = dtypes, rank = "1", classes = classes, is_wide = false })
    local number = number_of[twin.name]
    if number then list[#list + 1] = { record.name, number } end
  end
  for _, op in ipairs(plan.ops) do
    local kind = kinds.of(op)
    local role = kind.pack_role and kind.pack_role(op)
    if role then op_of_role[role] = op_of_role[role] or op end
    for _, record in ipairs(plan.records_of[op.name]) do
      if (record.rank == "1" or record.rank == "2") and not record.classes:find "s" then
        add(record, op.c_name, record.dtypes, record.classes)
      end
    end
  end
  for _, record in ipairs(plan.packs) do
    local op = op_of_role[record.role]
    if op then
      local n = #op.inputs + 1 -- of its operands: an op without inputs has none for the pack's
      local dtypes = table.move(record.dtypes, #record.dtypes - n + 1, #record.dtypes, 1, {})
      add(record, op.c_name, dtypes, ("c"):rep(n))
    end
  end
  for _, file in ipairs(plan.primitive_files) do
    for _, entry in ipairs(file.entries) do
      add(entry.record, "prim_" .. entry.record.primitive, entry.record.dtypes, entry.record.classes)
    end
  end
  table.sort(list, function(a, b) return order.less(a[1], b[1]) end)
  return list
end

-- The index, in lines of words with one blank between them. A kernel's number is its index among all kernels.
--   quern-cuda 2 BUILD_ID
--   chips 80 90 100
--   file STEM                             of the fatbin with the kernels that follow
--   kernel NAME RANK CLASSES WIDE ITEMS   (rank 0: any; items per thread)
--   op NAME N_OPERANDS                    its rows follow, sorted by dtypes
--   row KERNEL DTYPE...                   as qn_dtype has them
--   step C_KERNEL KERNEL                  does the same over contiguous elements; sorted by the name of the C kernel
--   end
function M.index(plan, sources, build_id)
  local types = plan.model.types
  local lines = { "quern-cuda 2 " .. build_id, "chips " .. table.concat(build.CHIPS, " ") }
  local n, number_of = 0, {}
  for _, file in ipairs(sources) do
    lines[#lines + 1] = "file " .. file.stem
    for _, entry in ipairs(file.entries) do
      local record = entry.record
      local _, items_per_thread = kernels_cuda.items(types, record, #record.dtypes - (file.op and #file.op.outputs or 1))
      number_of[record.name], n = n, n + 1
      lines[#lines + 1] = string.format("kernel %s %s %s %d %d", record.name, record.rank == "n" and "0" or record.rank,
                                        record.classes, record.is_wide and 1 or 0, items_per_thread)
    end
  end
  for _, file in ipairs(sources) do
    if file.op then
      lines[#lines + 1] = string.format("op %s %d", file.op.name, #file.entries[1].record.dtypes)
      for _, row in ipairs(cuda.rows(plan, file)) do
        local numbers = {}
        for k, name in ipairs(row.dtypes) do numbers[k] = types.by_name[name].index end
        lines[#lines + 1] = string.format("row %d %s", number_of[row.record.name], table.concat(numbers, " "))
      end
    end
  end
  for _, step in ipairs(steps(plan, number_of)) do lines[#lines + 1] = string.format("step %s %d", step[1], step[2]) end
  lines[#lines + 1] = "end\n"
  return table.concat(lines, "\n")
end

return M
