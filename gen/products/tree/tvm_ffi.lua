-- SPDX-License-Identifier: Apache-2.0
--
-- `generate --abi tvm-ffi`: functions __tvm_ffi_NAME, by which tvm-ffi calls the ops of a tree or of the library. The list of them is
-- written here. Their code is in runtime/abi. Makes text, opens no files.

local banner = require "gen.targets.c.banner"
local licence = require "gen.base.licence"
local names = require "gen.targets.c.names"

local M = {}

M.NOTE = "# abi FILE: compiled once; functions that tvm-ffi finds by name in a shared library. Links with libdl, where there is one."

local FOLDER = "runtime/abi/"

-- The name behind __tvm_ffi_: the op's, whatever the prefix is. Specs cannot have two ops that differ in the dot alone.
local function name_of(op) return (op.name:gsub("%.", "_")) end

-- The functions of all ops. header: what declares the ops; ours: the header with QN_TVM_OP
local function list(ops, header, ours)
  local rows = {}
  for k, op in ipairs(ops) do rows[k] = string.format("QN_TVM_OP(%s, %s)", name_of(op), op.c_name) end
  return table.concat(banner.c "the functions by which tvm-ffi calls the ops", "\n")
    .. string.format('\n#include "%s"\n#include "%s"\n\n', ours, header) .. table.concat(rows, "\n") .. "\n"
end

-- Adds the files to a job, in the list abi.
function M.add(job)
  local prefix = job.prefix
  if job.is_library then
    job.put("abi", "abi/quern_tvm_ffi.c", list(job.plan.ops, "quern/ops.h", "abi/tvm_ffi.h"))
    return
  end
  job.put("abi", string.format("abi/%s_tvm_ffi.c", prefix),
          names.rename(list(job.plan.ops, "../" .. prefix .. ".h", prefix .. "_tvm_ffi.h"), prefix))
  for _, suffix in ipairs { ".c", ".h" } do
    for _, name in ipairs(job.list(FOLDER, suffix)) do
      local text = licence.without(job.read(FOLDER .. name)):gsub('#include "abi/', '#include "' .. prefix .. "_")
        :gsub('"quern/quern%.h"', '"../' .. prefix .. '.h"'):gsub("/%* tvm_ffi", "/* " .. prefix .. "_tvm_ffi", 1)
      job.put(suffix == ".c" and "abi" or nil, string.format("abi/%s_%s", prefix, name),
              table.concat(banner.c("the runtime's " .. name .. " under the prefix " .. prefix), "\n") .. "\n" .. names.rename(text, prefix))
    end
  end
end

-- What a tree's CMakeLists.txt says beside the tree; @name@ as cmake.lua's texts.
M.CMAKE = [[

# NAME_tvm_ffi.so, for tvm_ffi.load_module.
add_library(@name@_tvm_ffi MODULE ${@NAME@_ABI})
set_target_properties(@name@_tvm_ffi PROPERTIES PREFIX "" SUFFIX ".so" C_STANDARD 11 C_EXTENSIONS ON C_VISIBILITY_PRESET hidden)
target_link_libraries(@name@_tvm_ffi PRIVATE @name@_tree ${CMAKE_DL_LIBS})
]]

-- A tree's line of FILES.md.
M.ABOUT = "what tvm-ffi calls the ops by: `__tvm_ffi_NAME` of each, which CMake builds into `%s_tvm_ffi.so`"

return M
