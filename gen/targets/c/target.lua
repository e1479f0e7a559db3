-- SPDX-License-Identifier: Apache-2.0
--
-- The target c: kernels for the CPU. The library and a tree have one file of them per op, one of packing kernels, and the headers
-- that they include. (The keys of a target: gen/targets/all.lua.)

local banner = require "gen.targets.c.banner"
local build = require "gen.targets.c.build"
local kernel_name = require "gen.base.kernel_name"
local licence = require "gen.base.licence"
local kernels = require "gen.targets.c.kernels"
local names = require "gen.targets.c.names"
local share = require "gen.targets.c.share"
local dtypes_of = require "gen.targets.c.dtypes"
local variants = require "gen.targets.variants"
local host = require "gen.graph.host"

local M = {}

local HEADERS = "templates/c/headers/" -- what kernels include

M.name = "c"
M.build = build
M.is_basic = true   -- the library has it in any case
M.in_single = true
M.core_folder = "cpu"
M.sources = function(read) return kernels.sources(read, kernels.FORMS, kernels.FUSED) end

function M.refusal() return nil end

---------------------------------------------------------------------------------------------------- files

-- The files of kernels under a prefix, in order: { name, banner, entries }.
local function files_of(plan, prefix)
  local files = {}
  for _, op in ipairs(plan.ops) do
    local entries = {}
    for k, record in ipairs(plan.records_of[op.name]) do
      entries[k] = { record = record, dag = record.dag or plan.dag_for(op, record.K) }
    end
    files[#files + 1] = { name = names.op_file(op, prefix, "cpu") .. ".c", entries = entries,
                          banner = banner.c("kernels of " .. op.name, kernels.location(op)) }
  end
  local shared, entries_of = {}, { pack = {} }
  for _, record in ipairs(plan.packs) do
    local name = record.file or "pack"
    if not entries_of[name] then
      shared[#shared + 1], entries_of[name] = name, {}
    end
    table.insert(entries_of[name], { record = record, dag = record.dag })
  end
  files[#files + 1] = { name = names.pack_file(prefix), entries = entries_of.pack, banner = banner.c "kernels that convert and move" }
  for _, name in ipairs(shared) do
    files[#files + 1] = { name = names.shared_file(name, prefix), entries = entries_of[name], banner = banner.c "kernels that ops share" }
  end
  for _, file in ipairs(plan.primitive_files or {}) do
    files[#files + 1] = { name = file.name, entries = file.entries, banner = banner.c "kernels of one operation each, for expressions" }
  end
  return files
end

-- The headers that kernels include, under a prefix: name -> text. job: prefix, types, read, list
function M.headers(job)
  local headers = {}
  for _, name in ipairs(job.list(HEADERS, ".h")) do
    headers["kernels/" .. name] = table.concat(banner.c "what every kernel includes", "\n") .. "\n"
      .. names.rename(licence.without(job.read(HEADERS .. name)), job.prefix)
  end
  local dtypes = dtypes_of.header(job.types, job.read)
  if dtypes then
    headers["kernels/" .. dtypes_of.HEADER] = table.concat(banner.c "the dtypes that kernel.h does not have", "\n") .. "\n"
      .. names.rename(dtypes, job.prefix)
  end
  return headers
end

-- A file of kernels for entries that are in no plan; kernels share no code.
function M.file(types, head, entries, read) return kernels.file(types, head, entries, M.sources(read)) end

-- The target's part of a tree or of the library: see all.lua.
function M.files(job)
  local plan, file_of = job.plan, {}
  local templates, is_own = kernels.sources(job.read, kernels.FORMS, kernels.MOVERS), share.new(plan.model.types)
  for _, file in ipairs(files_of(plan, job.prefix)) do
    local text = kernels.file(plan.model.types, file.banner, file.entries, templates, is_own, job.prefix)
    if text then job.put("kernel", file.name, text) end -- without one, its kernels are all others' code
    for _, entry in ipairs(file.entries) do file_of[entry.record.name] = file.name end
  end
  for name, text in pairs(M.headers(job)) do job.put(nil, name, text) end
  if job.is_library then job.put(nil, "runtime/level_flags.h", build.header()) end
  return { has_records = true, levels = variants.ISAS, file_of = function(record) return file_of[(record.code or record).name] end }
end

-- The headers of texts made at run time, for their compiler: list of { name, text }.
function M.run_time_headers(read, types)
  local headers = {}
  for k, name in ipairs { "kernel.h", "kernel_cast.h", "kernel_strips.h" } do
    headers[k] = { name = name, text = licence.without(read(HEADERS .. name)) }
  end
  local dtypes = dtypes_of.header(types, read)
  if dtypes then headers[#headers + 1] = { name = dtypes_of.HEADER, text = dtypes } end
  return headers
end

---------------------------------------------------------------------------------------------------- one kernel

function M.bare_name(name) return kernel_name.bare(name, kernel_name.C) end

-- The text of one kernel of a plan by its name, or nil and the known names.
function M.show(plan, name, read)
  local templates, known = kernels.sources(read, kernels.FORMS, kernels.MOVERS), {}
  for _, file in ipairs(files_of(plan, names.LIBRARY)) do
    for _, entry in ipairs(file.entries) do
      known[#known + 1] = entry.record.name
      if entry.record.name == name then
        local lines, tables = kernels.tables { entry.dag }
        return (#lines > 0 and table.concat(lines, "\n") .. "\n\n" or "")
          .. kernels.kernel(plan.model.types, entry.record, entry.dag, templates, tables)
      end
    end
  end
  return nil, known
end

-- The text of all kernels of a plan's first op.
function M.show_op(plan, read)
  local file = files_of(plan, names.LIBRARY)[1]
  return kernels.file(plan.model.types, file.banner, file.entries, kernels.sources(read, kernels.FORMS, kernels.MOVERS))
end

-- The text of a kernel at run time, and its items per thread; or nil, message, kind. sources: of M.sources; request: see
-- gen/service.lua
function M.source(model, head, request, sources)
  local n = #request.dtypes
  local is_sound = request.symbol:find "^[a-z_][a-z0-9_]*$" and (request.rank == 1 or request.rank == 2)
    and #request.classes == n and request.classes:find "^[cbs]*$" and not request.classes:find("b", request.n_in + 1, true)
  if request.op then return nil, request.op .. ": it has no C kernel of its own at run time", "unsupported" end
  if not is_sound then
    return nil, string.format("bug: a kernel that cannot be: %s %dd %s", request.symbol, request.rank, request.classes), "bug"
  end
  local entry, message, kind = host.entry(model, request)
  if not entry then return nil, message, kind end
  return kernels.file(model.types, head, { entry }, sources), 1, entry.cost
end

return M
