-- SPDX-License-Identifier: Apache-2.0
--
-- A generated tree: kernels of the targets asked for, the core runtime and the public header under the author's prefix, the lists
-- that build them, a manifest, a notice. The library's own sources are the same with the files of library.lua, and without the
-- core, which the build takes from runtime/core.

local abis = require "gen.products.tree.abis"
local banner = require "gen.targets.c.banner"
local c_functions = require "gen.products.library.c_functions"
local cmake = require "gen.products.cmake"
local contents = require "gen.products.tree.contents"
local cpp = require "gen.products.library.cpp"
local jobs = require "gen.products.job"
local licence = require "gen.base.licence"
local library = require "gen.products.library.library"
local load = require "gen.products.load"
local manifest = require "gen.products.manifest"
local names = require "gen.targets.c.names"
local notice = require "gen.products.notice"
local planning = require "gen.products.plan"
local single = require "gen.products.tree.single"
local spec = require "gen.front.spec"
local tables = require "gen.products.tables"
local targets = require "gen.targets.all"
local without = require "gen.products.tree.without"

local M = {}

---------------------------------------------------------------------------------------------------- the core

-- The text of quern.h without the groups that are about targets not listed.
local function without_groups(text, list)
  local is_there = {}
  for _, target in ipairs(list) do is_there[target.name] = true end
  for _, target in ipairs(targets.list) do
    if target.api_group and not is_there[target.name] then
      local from = text:find("/* ---- " .. target.api_group .. " -", 1, true) or error("bug: quern.h has lost its group " .. target.api_group)
      local _, last = text:find("*/\n\n", from, true)
      text = text:sub(1, from - 1) .. text:sub(last + 1)
    end
  end
  return text
end

-- The public header of a tree: DLPack's structs, the API without its run-time part and other targets' groups, the typed functions.
-- list: the targets; notes: lines about this tree
local function public_header(prefix, quern_h, dlpack_h, ops, list, notes)
  local cut = quern_h:find("/* ---- Run time:", 1, true) or error("bug: quern.h has lost the line where a tree ends")
  local guard = prefix:upper() .. "_H"
  local body = without_groups(quern_h:sub(1, cut - 1), list)
  body = body:gsub("^.-\n#define QUERN_QUERN_H\n", "", 1):gsub('#include "dlpack.h"\n', "@DLPACK@", 1)
  local text = table.concat(banner.c("the public header of " .. prefix), "\n") .. "\n#ifndef " .. guard .. "\n#define "
    .. guard .. "\n" .. (#notes > 0 and names.rename("\n/* " .. table.concat(notes, "\n * ") .. " */\n", prefix) or "")
    .. names.rename(body, prefix)
    .. "/* ---- The ops ------------------------------------------------------------------------------------------------------\n"
    .. " * One typed function per op, without a lookup. The laws of calling hold. */\n\n"
    .. names.rename(c_functions.typed_functions(ops), prefix)
    .. "\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* " .. guard .. " */\n"
  local at = text:find("@DLPACK@", 1, true) or error("bug: quern.h does not include dlpack.h")
  -- one file, one licence
  dlpack_h = dlpack_h:gsub("SPDX%-License%-Identifier: [%w.-]+", "DLPack's public ABI", 1)
  return text:sub(1, at - 1) .. dlpack_h .. text:sub(at + #"@DLPACK@")
end

-- The core's files are in one folder of a tree. Their names begin with the prefix: see names.op_file. They are compiled for the library as they
-- are, so they are no templates: their lines of includes are found by patterns.
local function core_path(prefix, name) return string.format("core/%s_%s", prefix, name) end
local function flat_includes(text, prefix)
  return (text:gsub('#include "core/[%w_/]-([%w_]+%.h)"', '#include "' .. prefix .. '_%1"'))
end

-- A core source under the prefix. Its licence is the tree's.
local function core_file(prefix, name, text)
  text = flat_includes(licence.without(text), prefix):gsub('"quern/quern%.h"', '"../' .. prefix .. '.h"')
  text = text:gsub("/%* " .. name:gsub("%.", "%%.") .. ":", "/* " .. prefix .. "_" .. name .. ":", 1) -- its head names it
  return table.concat(banner.c("the runtime's " .. name .. " under the prefix " .. prefix), "\n") .. "\n" .. names.rename(text, prefix)
end

-- The sources of the core, by their paths in it.
local function core_sources(job)
  local list, headers = job.list_all("runtime/core", ".c"), job.list_all("runtime/core", ".h")
  return table.move(headers, 1, #headers, #list + 1, list)
end

-- Whether a tree has a source of the core. kinds: the set of its kinds; folders: those that belong to its targets, and the paths of
-- parts of these that its ops do not need
local function is_in_tree(path, kinds, folders)
  local kind, folder = path:match "^kinds/kind_(%w+)[._]", path:match "^(%w+)/"
  if tables.cpu_sources[path:match "^(.-)%.%w+$"] and not folders[targets.cpu.core_folder] then return false end
  if kind then return kinds[kind] end
  if tables.kind_folders[folder] then return kinds[folder] end
  if folders.unneeded[path:match "^(%w+/%w+)/"] then return false end
  return folders[folder] or not targets.core_folders[folder]
end

-- The core: the tables, its sources, the public header. parts: the targets' answers
local function add_core(job, parts)
  local plan, prefix, types = job.plan, job.prefix, job.types
  local records_of, packs, devices = {}, {}, {}
  local kinds = tables.kinds(not job.is_library and plan.ops or nil) -- those that are compiled
  for _, op in ipairs(plan.ops) do
    local own = plan.records_of[op.name]
    records_of[op.name] = { programs = own.programs, scans = own.scans }
  end
  local reducers = {}
  for _, record in ipairs(plan.packs) do reducers[#reducers + 1] = record.reducer and record or nil end
  for _, part in ipairs(parts) do
    if part.has_records then records_of, packs = plan.records_of, plan.packs end
    devices[#devices + 1] = part.device_table
  end
  local op_table = tables.op_table(types, plan.ops, plan.wanted, records_of, packs, banner.c "the table of ops and kernels",
                                   devices, { kinds = kinds, is_library = job.is_library, unbuilt = reducers })
  local function path_of(name) return job.is_library and "core/" .. name or core_path(prefix, name) end
  job.put("core", path_of "op_table.c", names.rename(job.is_library and op_table or flat_includes(op_table, prefix), prefix))
  job.put(nil, path_of "dtype_table.h", names.rename(tables.dtype_header(types, banner.c "the table of dtypes"), prefix))
  if job.is_library then return end
  local folders = { unneeded = {} }
  for k, target in ipairs(job.targets) do
    if target.core_folder then folders[target.core_folder] = true end
    for _, path in ipairs(parts[k].unneeded or {}) do folders.unneeded[path] = true end
  end
  for _, path in ipairs(core_sources(job)) do
    if is_in_tree(path, kinds, folders) and not job.without.files[path] then
      job.put_core(path:find "%.c$" and "core" or nil, "runtime/core/" .. path)
    end
  end
  for _, path in ipairs(job.without.sources) do job.put_core("core", path) end
  job.put(nil, prefix .. ".h", public_header(prefix, job.read "include/quern/quern.h", job.read "include/quern/dlpack.h", plan.ops,
                                             job.targets, job.without.notes))
  job.put(nil, prefix .. ".hpp", cpp.tree_header(prefix, job.read "include/quern/quern.hpp", plan.ops))
end

---------------------------------------------------------------------------------------------------- a run

-- The targets asked for, in their order; or errors.
local function chosen_targets(options, errors)
  local known, list = {}, {}
  for _, name in ipairs(targets.names()) do known[name] = true end
  local is_asked = planning.parse_set("--target", planning.split(options.target or targets.cpu.name), known, errors)
  for _, target in ipairs(targets.list) do
    local word = target.name
    if is_asked[word] then list[#list + 1] = target end
    if is_asked[word] and options.single and not target.in_single then
      errors[#errors + 1] = string.format("--target %s: not with --single", word)
    elseif options.library and target.is_basic and not is_asked[word] and #errors == 0 then
      errors[#errors + 1] = string.format("--target: the library has kernels of %s in any case", word)
    end
  end
  if #list == 0 and #errors == 0 then errors[1] = "--target: expected " .. table.concat(targets.names(), ", ") end
  return list, is_asked
end

-- Why none of the targets has kernels of an op, in the words of the first; nil: one has.
local function refusal_of(op, list)
  for _, target in ipairs(list) do
    if not target.refusal(op) then return nil end
  end
  return list[1].refusal(op)
end

-- Says which of the dtypes some target has no kernels for.
local function check_dtypes(plan, list, errors)
  for _, target in ipairs(list) do
    for _, t in ipairs(plan.model.types.list) do
      local refusal = plan.wanted[t.name] and target.dtype_refusal and target.dtype_refusal(t)
      if refusal then errors[#errors + 1] = string.format("--target %s: %s; leave it out of --dtypes", target.name, refusal) end
    end
  end
end

-- Names of inputs and parameters that would be renamed.
local function check_names(plan, prefix, errors)
  for _, op in ipairs(plan.ops) do
    for _, list in ipairs { op.inputs, op.params } do
      for _, item in ipairs(list) do
        if #errors == 0 and item.name:find("^" .. prefix .. "_") then
          errors[1] = string.format("%s:1: %s: the name '%s' begins with the prefix", op.location, op.name, item.name)
        end
      end
    end
  end
end

-- The job of a tree or of the library.
local function new_job(root, plan, options, prefix, inputs)
  local job, id = jobs.new(root, plan, prefix, inputs), nil
  job.is_library = options.library
  function job.put_core(kind, path)
    local name = path:match "[^/]+$"
    job.put(kind, core_path(prefix, name), core_file(prefix, name, job.read(path)))
  end
  function job.build_id()
    id = id or library.build_id(root)
    return id
  end
  return job
end

-- All files of a tree. options: prefix, single, library, preview, abi, target (names, with commas), and
-- those of plan. Returns { files,
-- plan, inputs } or nil, errors.
function M.generate(root, options)
  local model, inputs, errors = load.load(root, options.specs, options.preview)
  local prefix = options.prefix or names.LIBRARY
  if #errors == 0 then errors[1] = names.prefix_failure(prefix, options.library) or spec.put_under_prefix(model, prefix) end
  if #errors > 0 then return nil, errors end
  without.check(options, "library", errors)
  local list, is_asked = chosen_targets(options, errors)
  local abi
  abi, errors[#errors + 1] = abis.chosen(options)
  if #errors > 0 then return nil, errors end
  local plan
  plan, errors = planning.plan(model, options)
  if not plan then return nil, errors end
  errors = {}
  for _, row in ipairs(planning.leave_out(plan, function(op) return refusal_of(op, list) end)) do
    if options.ops then
      errors[#errors + 1] = string.format("--target %s: %s %s; leave it out, or generate for %s as well", list[1].name, row.op.name,
                                          row.why, targets.cpu.name)
    end
  end
  check_dtypes(plan, list, errors)
  if #errors == 0 then errors[1] = spec.clash(plan.ops, prefix) end
  check_names(plan, prefix, errors)
  if #errors > 0 then return nil, errors end
  load.add_generator(root, inputs)

  local job, parts = new_job(root, plan, options, prefix, inputs), {}
  if options.library then library.complete(plan) end
  local asked = options.library and targets.list or list -- the library may say of a target how it is reached, without files
  for k, target in ipairs(asked) do
    job.is_asked = is_asked[target.name] or false
    parts[k] = target.files(job)
  end
  job.targets, job.without = list, without.of(options, plan)
  add_core(job, parts)
  if options.library then library.add(job) end
  if abi then abi.add(job) end
  local files = job.files
  if not options.library then
    files["CMakeLists.txt"], files.NOTICE = cmake.tree(prefix, job.lists, list, not options["no-threads"], abi), notice
  end
  if options.single then
    files = single.files(prefix, files, { job.lists.kernel, job.lists.core, job.lists.abi or {} })
  else
    files["sources.txt"] = cmake.source_list(prefix, job.lists, list, options.library, abi)
    if not options.library then files["FILES.md"] = contents.text(prefix, files, true, abi) end
  end

  local levels, sections, file_of = {}, {}, nil
  for _, part in ipairs(parts) do
    if part.has_records then levels, file_of = options.single and { "generic" } or part.levels, part.file_of end
    sections[#sections + 1] = part.section
  end
  files["manifest.json"] = manifest.text(prefix, plan, files, levels, function(record)
    return options.single and prefix .. ".c" or file_of(record)
  end, sections, true)
  return { files = files, plan = plan, inputs = inputs, prefix = prefix }
end

return M
