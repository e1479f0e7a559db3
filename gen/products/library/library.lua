-- SPDX-License-Identifier: Apache-2.0
--
-- The files that the library has in addition to those of a tree: the kernels of primitives, the tables by which its runtime finds
-- them, and the rest that the runtime is compiled with.

local banner = require "gen.targets.c.banner"
local c_functions = require "gen.products.library.c_functions"
local cpp = require "gen.products.library.cpp"
local digest = require "gen.base.digest"
local files = require "gen.base.files"
local primitive_kernels = require "gen.products.library.primitive_kernels"
local targets = require "gen.targets.all"
local version = require "gen.base.version"

local M = {}

-- A digest of everything that the code of an expression depends on. It is the same on every machine.
function M.build_id(root)
  local parts = {}
  local function add(folder, suffix)
    for _, name in ipairs(files.list_all(root .. "/" .. folder, suffix)) do
      local text = assert(files.read(root .. "/" .. folder .. "/" .. name))
      parts[#parts + 1] = string.format("%s/%s %d\n%s", folder, name, #text, text)
    end
  end
  for _, folder in ipairs { "dsl", "gen" } do add(folder, ".lua") end
  for _, suffix in ipairs { ".in", ".h" } do add("templates", suffix) end
  for part in assert(files.read(root .. "/include/quern/quern.h")):gmatch "#define QUERN_VERSION_%u+ [^\n]*" do
    parts[#parts + 1] = part
  end
  return digest.hex(table.concat(parts, "\n"))
end

-- Adds the kernels of no op to a plan: primitive_files ({ name, entries }) and their rows of table.c (primitives).
function M.complete(plan) plan.primitives, plan.primitive_files = primitive_kernels.of_plan(plan) end

-- Adds the files of the runtime to a job, when the kernels have their texts.
function M.add(job)
  local headers = {}
  for _, target in ipairs(targets.list) do
    for _, header in ipairs(target.run_time_headers(job.read, job.types)) do headers[#headers + 1] = header end
  end
  job.put("runtime", "runtime/kernel_headers.c", primitive_kernels.headers(headers, banner.c "what kernels made at run time include"))
  job.put("runtime", "runtime/primitive_table.c", primitive_kernels.table(job.plan.primitives, banner.c "the table of primitives"))
  job.put(nil, "runtime/build_id.h", table.concat(banner.c "what the generated code was made from", "\n")
    .. string.format('\n#define QN_BUILD_ID "%s"\n#define QN_NUMERICS %d\n', job.build_id(), version.NUMERICS))
  job.put(nil, "quern/ops.h", c_functions.ops_header(job.plan.ops, banner.c "the typed functions of the ops"))
  job.put(nil, "quern/ops.hpp", cpp.ops_header(job.plan.ops))
end

return M
