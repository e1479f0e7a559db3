-- SPDX-License-Identifier: Apache-2.0
--
-- `generate --kernels-only`: kernels, one header that declares them, and a table of them, for a framework that has tensors,
-- threads and a dispatcher of its own. Of the runtime it has the detection of the machine's level only. Opens no files.

local abis = require "gen.products.tree.abis"
local banner = require "gen.targets.c.banner"
local cmake = require "gen.products.cmake"
local contents = require "gen.products.tree.contents"
local jobs = require "gen.products.job"
local kinds = require "gen.kinds.kinds"
local licence = require "gen.base.licence"
local load = require "gen.products.load"
local manifest = require "gen.products.manifest"
local names = require "gen.targets.c.names"
local notice = require "gen.products.notice"
local order = require "gen.base.order"
local planning = require "gen.products.plan"
local spec = require "gen.front.spec"
local tables = require "gen.products.tables"
local targets = require "gen.targets.all"
local template = require "gen.base.template"
local without = require "gen.products.tree.without"

local M = {}

local FOLDER = "templates/products/"
local MACHINE = "runtime/core/base/isa_machine"

---------------------------------------------------------------------------------------------------- what is asked for

-- Errors of options that do not go together.
local function check_options(options, errors)
  for _, name in ipairs { "single", "library" } do
    if options[name] then errors[#errors + 1] = "--kernels-only: not with --" .. name end
  end
  without.check(options, "kernels-only", errors)
  errors[#errors + 1] = select(2, abis.chosen(options))
  for _, name in ipairs(planning.split(options.target or targets.cpu.name)) do
    if name ~= targets.cpu.name then
      errors[#errors + 1] = string.format("--kernels-only: kernels of the target %s are launched with arguments that the runtime "
        .. "packs; generate a whole tree for it", name)
    end
  end
end

-- The packing kernels that convert between a stored dtype and its compute dtype; all conversions if an op needs them
-- (is_packed).
local function conversions(plan)
  local list, has_casts = {}, kinds.any(plan.ops, "is_packed")
  for _, record in ipairs(plan.packs) do
    local role = record.role
    if role == "widen" or role == "narrow" or (has_casts and role == "convert") then list[#list + 1] = record end
  end
  return list
end

---------------------------------------------------------------------------------------------------- texts

-- A row of the table. op: an op's name, or the role of a conversion; n_in: its inputs; params: of its graph; is_used: set of the
-- dtypes that occur
local function row_of(record, op, n_in, params, prefix, is_used)
  local items = {}
  local function constant(dtype)
    is_used[dtype] = true
    return prefix:upper() .. "_DTYPE_" .. dtype:upper()
  end
  for k, dtype in ipairs(record.dtypes) do items[k] = constant(dtype) end
  return {
    name = names.kernel(record.name, prefix), code = names.kernel(tables.function_name(record), prefix), op = op,
    dtypes = table.concat(items, ", "), classes = record.classes, rank = record.rank == "n" and "0" or record.rank,
    counts = string.format("%d, %d, %d", n_in, #items - n_in, #params),
    param = params[1] and constant(params[1].type) or prefix:upper() .. "_DTYPE_COUNT",
  }
end

-- The header and the table.
local function texts(plan, prefix, read)
  local rows, converted, is_used, declared, dtypes, seen = {}, {}, {}, {}, {}, {}
  for _, op in ipairs(plan.ops) do
    for _, record in ipairs(plan.records_of[op.name]) do
      local dag = record.dag or plan.dag_for(op, record.K)
      rows[#rows + 1] = row_of(record, op.name, #op.inputs, dag.params, prefix, is_used)
    end
  end
  for k, record in ipairs(plan.packs) do converted[k] = row_of(record, record.role, 1, {}, prefix, is_used) end
  for _, list in ipairs { rows, converted } do
    for _, row in ipairs(list) do
      if not seen[row.code] then declared[#declared + 1] = row.code end
      seen[row.code] = true
    end
  end
  order.sort(declared)
  for _, t in ipairs(plan.model.types.list) do
    if is_used[t.name] then dtypes[#dtypes + 1] = t.name:upper() end
  end
  local values = { name = prefix, NAME = prefix:upper(), dtypes = dtypes, declarations = declared, rows = rows,
                   conversions = converted }
  for key, name in pairs { one_level = "QN_ONE_LEVEL", machine = "qn_isa_machine", isa_v4 = "QN_ISA_V4" } do
    values[key] = names.identifier(name, prefix)
  end
  local function filled(file, what)
    local parsed = template.parse(FOLDER .. file, read(FOLDER .. file))
    return table.concat(banner.c(what), "\n") .. "\n" .. template.render(parsed, template.chosen(parsed, values))
  end
  return filled("kernels_only.h.in", "the kernels of " .. prefix), filled("kernels_only.c.in", "the table of kernels")
end

-- The runtime's detection of the machine's level.
local function add_machine(job)
  for _, ending in ipairs { ".h", ".c" } do
    local text = licence.without(job.read(MACHINE .. ending)):gsub('#include "core/base/(isa_machine%.h)"',
                                                                   '#include "' .. job.prefix .. '_%1"')
    job.put(ending == ".c" and "core" or nil, job.prefix .. "_isa_machine" .. ending,
            table.concat(banner.c "which level this machine runs", "\n") .. "\n" .. names.rename(text, job.prefix))
  end
end

---------------------------------------------------------------------------------------------------- a run

-- All files. options: prefix, target, and those of plan. Returns { files, plan, inputs } or nil, errors.
function M.generate(root, options)
  local model, inputs, errors = load.load(root, options.specs, options.preview)
  local prefix = options.prefix
  if #errors == 0 then check_options(options, errors) end
  if #errors == 0 then errors[1] = names.prefix_failure(prefix, false) or spec.put_under_prefix(model, prefix) end
  if #errors > 0 then return nil, errors end
  local plan
  plan, errors = planning.plan(model, options)
  if not plan then return nil, errors end
  errors = {}
  for _, row in ipairs(planning.leave_out(plan, function(op) return kinds.of(op).needs_runtime end)) do
    if options.ops then errors[#errors + 1] = string.format("--kernels-only: %s: %s", row.op.name, row.why) end
  end
  if #errors == 0 then errors[1] = spec.clash(plan.ops, prefix) end
  if #errors > 0 then return nil, errors end
  plan.packs = conversions(plan)
  load.add_generator(root, inputs)

  local job = jobs.new(root, plan, prefix, inputs)
  local part = targets.cpu.files(job)
  local header, rows = texts(plan, prefix, job.read)
  job.put(nil, prefix .. ".h", header)
  job.put("core", prefix .. "_table.c", rows)
  add_machine(job)
  local files, list = job.files, { targets.cpu }
  files["CMakeLists.txt"], files.NOTICE = cmake.tree(prefix, job.lists, list, false), notice
  files["sources.txt"] = cmake.source_list(prefix, job.lists, list, false)
  files["FILES.md"] = contents.text(prefix, files, false)
  files["manifest.json"] = manifest.text(prefix, plan, files, part.levels, part.file_of, {}, false)
  return { files = files, plan = plan, inputs = inputs, prefix = prefix }
end

return M
