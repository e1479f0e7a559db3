-- SPDX-License-Identifier: Apache-2.0
--
-- How C kernels are compiled: flags by level, as lines of sources.txt, as CMake's text and as a header. In CMake's text
-- @name@ and @NAME@ are replaced by the prefix, @SCOPE@ by the way sources are added, @QN_ISA@ by the macro that names a level.

local banner = require "gen.targets.c.banner"
local names = require "gen.targets.c.names"

local M = {}

-- Bits do not depend on them, speed does.
M.COMMON_FLAGS = "-O3 -fno-math-errno -fno-trapping-math -ffp-contract=off"
M.GCC_FLAGS = "--param max-tree-if-conversion-phi-args=64"
M.LEVEL_FLAGS = {
  { level = "v2", flags = "-msse4.2 -mpopcnt -mcx16" },
  { level = "v3", flags = "-msse4.2 -mpopcnt -mcx16 -mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt -mmovbe" },
  { level = "v4", flags = "-msse4.2 -mpopcnt -mcx16 -mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt -mmovbe -mavx512f -mavx512bw "
    .. "-mavx512cd -mavx512dq -mavx512vl -mprefer-vector-width=512" },
}

-- The kinds of sources that there may be, in the order of sources.txt, and its comments on them.
M.KINDS = { "kernel" }
M.NOTES = {
  kernel = "# kernel FILE: compiled once per level on x86-64, with that level's flags; elsewhere once, with the flags of level\n"
    .. "# generic. Any of the flags but -D may be left out: they change speed, never bits.",
}

-- The lines of sources.txt with the flags.
function M.flags(prefix)
  local lines = { "flags common " .. M.COMMON_FLAGS, "flags gcc " .. M.GCC_FLAGS, "flags generic" }
  for _, row in ipairs(M.LEVEL_FLAGS) do
    lines[#lines + 1] = string.format("flags %s -D%s=%s %s", row.level, names.identifier("QN_ISA", prefix), row.level, row.flags)
  end
  return lines
end

-- The flags for compilation at run time.
function M.header()
  local lines = { table.concat(banner.c "compiler flags by level", "\n"), '#define QN_FLAGS_GENERIC ""' }
  for _, row in ipairs(M.LEVEL_FLAGS) do
    lines[#lines + 1] = string.format('#define QN_FLAGS_%s "%s"', row.level:upper(), row.flags)
  end
  return table.concat(lines, "\n") .. "\n"
end

---------------------------------------------------------------------------------------------------- CMake

local LEVELS = {}
for k, row in ipairs(M.LEVEL_FLAGS) do LEVELS[k] = string.format("set(@NAME@_FLAGS_%s %s)\n", row.level, row.flags) end

M.CMAKE = {
  version = "3.16",
  lists = { { "KERNELS", "kernel" } }, -- variables of files of a kind
  flags = "# Speed flags; bits do not depend on them.\nset(@NAME@_FLAGS " .. M.COMMON_FLAGS .. ")\n"
    .. 'if(CMAKE_C_COMPILER_ID STREQUAL "GNU")\n  list(APPEND @NAME@_FLAGS "SHELL:' .. M.GCC_FLAGS .. '")\nendif()\n'
    .. table.concat(LEVELS),
  -- The kernels in all levels as object libraries, added to the target @name@_tree.
  objects = [[
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  foreach(level v2 v3 v4)
    add_library(@name@_kernels_${level} OBJECT ${@NAME@_KERNELS})
    target_compile_definitions(@name@_kernels_${level} PRIVATE @QN_ISA@=${level})
    target_compile_options(@name@_kernels_${level} PRIVATE ${@NAME@_FLAGS} ${@NAME@_FLAGS_${level}})
    target_sources(@name@_tree @SCOPE@ $<TARGET_OBJECTS:@name@_kernels_${level}>)
    list(APPEND @NAME@_TARGETS @name@_kernels_${level})
  endforeach()
else()
  add_library(@name@_kernels OBJECT ${@NAME@_KERNELS})
  target_compile_options(@name@_kernels PRIVATE ${@NAME@_FLAGS})
  target_sources(@name@_tree @SCOPE@ $<TARGET_OBJECTS:@name@_kernels>)
  list(APPEND @NAME@_TARGETS @name@_kernels)
endif()
]],
}

return M
