-- SPDX-License-Identifier: Apache-2.0
--
-- The target cuda: kernels for NVIDIA's devices. A tree has them as files for nvcc, with the functions that launch them. The library has them
-- as sources of fatbins, which lie beside its modules. (The keys of a target: gen/targets/all.lua.)

local build = require "gen.targets.cuda.build"
local fatbin = require "gen.targets.cuda.fatbin"
local kernels = require "gen.targets.cuda.kernels"
local kernel_name = require "gen.base.kernel_name"
local kinds = require "gen.kinds.kinds"
local source = require "gen.targets.cuda.source"
local dtypes_of = require "gen.targets.cuda.dtypes"
local tree = require "gen.targets.cuda.tree"

local M = {}

M.name = "cuda"
M.build = build
M.is_basic = false
M.in_single = false
M.core_folder = "simt"
M.api_group = "Calling on CUDA devices"

function M.refusal(op)
  return kinds.of(op).only_cpu and "runs on the CPU only: its output's shape depends on values"
end

M.dtype_refusal = dtypes_of.refusal

local function library_files(job)
  if job.is_asked then
    local sources = fatbin.sources(job.plan, kernels.sources(job.read, job.types))
    for _, file in ipairs(sources) do job.put("fatbin", fatbin.FOLDER .. file.stem .. ".cu", file.text) end
    job.put(nil, fatbin.INDEX, fatbin.index(job.plan, sources, job.build_id()))
  end
  return { device_table = { backend = "qn_cuda_driver_backend", header = tree.HEADER, declarations = { (tree.launchers()) }, rows_of = {} } }
end

function M.files(job)
  if job.is_library then return library_files(job) end
  local files = tree.files(job.plan, job.prefix, kernels.sources(job.read, job.types))
  for _, file in ipairs(files) do job.put("cuda", file.name, file.text) end
  job.put_core("cuda_core", "runtime/tree/cuda_tree.c")
  local launchers, unneeded = tree.launchers(job.plan.ops)
  local device_table = tree.table_rows(job.plan, job.prefix, files)
  table.insert(device_table.declarations, launchers)
  return { device_table = device_table, unneeded = unneeded,
           section = { key = "cuda_kernels", rows = tree.manifest_rows(job.plan, job.prefix, files) } }
end

function M.run_time_headers() return {} end -- a text is complete

function M.bare_name(name) return kernel_name.bare(name, kernel_name.CUDA) end

function M.show(plan, name, read) return tree.show(plan, name, (kernels.sources(read))) end

function M.sources(read, types) return { kernels.sources(read, types) } end

function M.source(model, head, request, sources) return source.text(model, head, request, table.unpack(sources)) end

return M
