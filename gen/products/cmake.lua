-- SPDX-License-Identifier: Apache-2.0
--
-- The lists that build a product: sources.txt for any build system, and CMakeLists.txt. What is special to a target's sources
-- comes from its build.lua.

local banner = require "gen.targets.c.banner"
local names = require "gen.targets.c.names"

local M = {}

-- Text with @name@ and @NAME@ as the prefix. isa: the macro that names a level
local function fill(text, prefix, scope, isa)
  local values = { name = prefix, NAME = prefix:upper(), SCOPE = scope, QN_ISA = isa }
  return (text:gsub("@([%a_]+)@", values))
end

-- What to compile with which flags. lists: kind -> names of files; targets: those that the lists are of; abi: of abis.lua, or nil
function M.source_list(prefix, lists, targets, is_library, abi)
  local lines, kinds = { banner.hash "sources and their flags" .. "# core FILE: compiled once." }, { "core" }
  if lists.runtime then
    kinds[2], lines[2] = "runtime", "# runtime FILE: compiled once, with the library's runtime."
  end
  if abi then kinds[#kinds + 1], lines[#lines + 1] = "abi", abi.NOTE end
  for _, target in ipairs(targets) do
    for _, kind in ipairs(target.build.KINDS) do
      if lists[kind] then kinds[#kinds + 1], lines[#lines + 1] = kind, target.build.NOTES[kind] end
    end
  end
  for _, target in ipairs(targets) do
    for _, line in ipairs(target.build.flags(prefix, is_library)) do lines[#lines + 1] = line end
  end
  for _, kind in ipairs(kinds) do
    for _, name in ipairs(lists[kind]) do lines[#lines + 1] = kind .. " " .. name end
  end
  return table.concat(lines, "\n") .. "\n"
end

local function list_of(name, files) return "set(@NAME@_" .. name .. "\n  " .. table.concat(files, "\n  ") .. ")\n" end

local PROPERTIES = [[
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_EXTENSIONS ON POSITION_INDEPENDENT_CODE ON
                                             C_VISIBILITY_PRESET hidden)
]]

-- A tree's CMakeLists.txt: one static library of all its sources. has_threads: some of them make threads; abi: of
-- abis.lua, or nil
function M.tree(prefix, lists, targets, has_threads, abi)
  local version, languages, packages, out = "3.16", "C", has_threads and "find_package(Threads REQUIRED)\n" or "", {}
  local function put(text) out[#out + 1] = text end
  for _, target in ipairs(targets) do
    local cmake = target.build.CMAKE
    if cmake.version > version then version = cmake.version end
    languages = languages .. (cmake.language and " " .. cmake.language or "")
    packages = packages .. (cmake.package or "")
  end
  put("cmake_minimum_required(VERSION " .. version .. ")\nproject(@name@_tree " .. languages .. ")\n" .. packages .. "\n")
  put(list_of("CORE", lists.core) .. "\n")
  for _, target in ipairs(targets) do
    for _, row in ipairs(target.build.CMAKE.lists) do put(list_of(row[1], lists[row[2]]) .. "\n") end
  end
  for _, target in ipairs(targets) do
    if target.build.CMAKE.flags then put(target.build.CMAKE.flags .. "\n") end
  end
  put "add_library(@name@_tree STATIC ${@NAME@_CORE})\n"
  for _, target in ipairs(targets) do put(target.build.CMAKE.objects or "") end
  put("foreach(target @name@_tree ${@NAME@_TARGETS})\n" .. PROPERTIES .. "endforeach()\n")
  put "target_include_directories(@name@_tree PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})\n"
  if has_threads then put "target_link_libraries(@name@_tree PUBLIC Threads::Threads)\n" end
  for _, target in ipairs(targets) do put(target.build.CMAKE.sources or "") end
  put "set_target_properties(@name@_tree PROPERTIES OUTPUT_NAME @name@)\nadd_library(@name@::@name@ ALIAS @name@_tree)\n"
  if abi then put(list_of("ABI", lists.abi) .. abi.CMAKE) end
  return banner.hash("builds the static library " .. prefix)
    .. fill(table.concat(out), prefix, "PRIVATE", names.identifier("QN_ISA", prefix))
end

-- For a folder of kernels for expressions: linking PREFIX::PREFIX adds them and their registration to a program.
function M.frozen(prefix, kernel_files, target)
  return banner.hash("builds the kernels of " .. prefix .. " for libquern") .. fill([[
cmake_minimum_required(VERSION 3.16)
project(@name@_tree C)
if(NOT TARGET Quern::quern)
  find_package(Quern REQUIRED)
endif()

]] .. list_of("KERNELS", kernel_files) .. "\n" .. target.build.CMAKE.flags .. [[

# Objects, not an archive: a linker takes all of them.
add_library(@name@_tree INTERFACE)
add_library(@name@_table OBJECT @name@.c)
target_link_libraries(@name@_table PRIVATE Quern::quern)
target_sources(@name@_tree INTERFACE $<TARGET_OBJECTS:@name@_table>)
]] .. target.build.CMAKE.objects .. [[
foreach(target @name@_table ${@NAME@_TARGETS})
]] .. PROPERTIES .. [[
endforeach()
target_include_directories(@name@_tree INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(@name@_tree INTERFACE Quern::quern)
add_library(@name@::@name@ ALIAS @name@_tree)
]], prefix, "INTERFACE", "QN_ISA")
end

return M
