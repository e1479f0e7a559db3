-- SPDX-License-Identifier: Apache-2.0
--
-- The targets, in the order in which products ask them: the only list of targets outside their folders.
--
-- A target is a table:
--   name              its name in --target and in a request at run time
--   build             how its sources are compiled: KINDS, NOTES, flags(prefix, is_library), CMAKE (build.lua)
--   is_basic          the library has it in any case
--   in_single         --single can hold its kernels
--   core_folder       the folder of runtime/core that a tree has for it alone
--   api_group         the group of quern.h that a tree has for it alone; nil: there is none
--   refusal(op)       why it has no kernels of an op; nil: it has
--   dtype_refusal(t)  the same for a dtype; a target with kernels of all dtypes lacks it
--   files(job)        adds its part of a tree, or of the library, by job.put(kind, name, text): kind is its list in sources.txt, or
--                     nil. Returns { has_records = it has the kernels of plan.records_of, levels, file_of = function(record) ->
--                     file, device_table, section = { key, rows } of the manifest, unneeded = folders within core_folder that
--                     this tree does not need, by their paths in runtime/core }.
--                     Names of a tree's sources begin with the prefix (names.op_file of gen/targets/c/names.lua).
--                     job: plan, types, prefix, is_library, is_asked (by --target), read(path), list(folder, suffix), put, build_id()
--                     device_table: the part of op_table.c about kernels of another device: { backend = the qn_backend's name,
--                     declarations = lines of C, rows_of = op's name -> list of { record, name, dtypes } and further fields for
--                     row_text, row_text(row, head) = a row's initialiser (head: that of a qn_variant up to its functions, open),
--                     row_type = its C type, list = the name of an op's rows, without the op's, header = what declares row_type and what
--                     declarations use }
--   bare_name(name)   a kernel's name as plans have it; nil: it is none of this target's
--   show(plan, name, read)   the text of one kernel, or nil and the known names
--   sources(read, types)   the files for source, parsed once; read is called for every file
--   source(model, banner, request, sources)   the text of one kernel at run time, its items per thread, its cost or nil; or nil, message, kind
--   run_time_headers(read, types)   the headers that such texts include: list of { name, text }
-- The first is the CPU's. Every expression can have kernels of it: it also has file (a file of given entries) and headers.

local M = {}

M.list = { (require "gen.targets.c.target"), (require "gen.targets.cuda.target") }
M.cpu = M.list[1]

M.by_name, M.core_folders = {}, {}
for _, target in ipairs(M.list) do M.by_name[target.name], M.core_folders[target.core_folder] = target, true end

function M.names()
  local names = {}
  for k, target in ipairs(M.list) do names[k] = target.name end
  return names
end

return M
