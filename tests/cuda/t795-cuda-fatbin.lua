-- SPDX-License-Identifier: Apache-2.0
--
-- t795-cuda-fatbin: nvcc makes of what the library's generation writes for CUDA fatbins with machine code for the chips that the
-- index names, and no PTX; every kernel of the index is in its file. Where nvcc is not, its part is skipped.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. root .. "/?.lua;" .. package.path
local shell = require "shell"
local tap = require "tap"

local folder = shell.folder()
local function run(...) return shell.run(string.format(...)) end
local function read(name) return shell.read(folder .. "/" .. name) end

tap.ok(run("lua5.4 '%s/build.lua' generate --library --target c,cuda --ops full,copy,arange --dtypes f32,bool --out '%s'", root, folder),
       "the sources are written")
local sources, index = read "sources.txt", read "cuda/kernels.txt"
local flags = sources:match "\nflags fatbin ([^\n]+)"
local missing, n_files = {}, 0
for name in sources:gmatch "\nfatbin ([%w_/.]+)" do
  n_files = n_files + 1
  if #read(name) == 0 then missing[#missing + 1] = name end
  local stem = name:match "([%w_]+)%.cu$"
  if not index:find("\nfile " .. stem .. "\n", 1, true) then missing[#missing + 1] = stem .. " in the index" end
end
tap.ok(n_files > 3 and #missing == 0, "every source listed is there, and in the index: %s", table.concat(missing, ", "))
tap.ok(index:find "^quern%-cuda 2 %x+\nchips 80 90 100\n" and index:find "\nend\n$", "the index has a head and an end")
local texts, absent, n_kernels = {}, {}, 0
for line in index:gmatch "[^\n]+" do
  local file, kernel = line:match "^file ([%w_]+)", line:match "^kernel ([%w_]+) "
  if file then texts[1] = read("cuda/" .. file .. ".cu") end
  if kernel then
    n_kernels = n_kernels + 1
    if not texts[1]:find(" " .. kernel .. "(", 1, true) then absent[#absent + 1] = kernel end
  end
end
tap.ok(n_kernels > 100 and #absent == 0, "every kernel of the index is in its file: %s", table.concat(absent, ", "))

local nvcc
for _, path in ipairs { "nvcc", "/usr/local/cuda/bin/nvcc" } do
  if not nvcc and run("%s --version", path) then nvcc = path end
end
if not nvcc then
  tap.skip(4, "no nvcc on this machine")
  run("rm -rf '%s'", folder)
  tap.done_testing()
  return
end
tap.ok(run("%s %s -o '%s/op_full.fatbin' '%s/cuda/op_full.cu'", nvcc, flags, folder, folder), "nvcc compiles one")
-- A fatbin's head, 16 bytes, then for each image: u16 kind (1: PTX, 2: machine code), u32 at 4: bytes of its head, u64 at 8: of
-- what follows, u32 at 28: the chip.
local bytes, at, chips, n_ptx = read "op_full.fatbin", 17, {}, 0
tap.is(#bytes > 16 and string.unpack("<I4", bytes), 0xba55ed50, "a fatbin")
while at + 32 <= #bytes do
  local kind, head, size = string.unpack("<I2", bytes, at), string.unpack("<I4", bytes, at + 4), string.unpack("<I8", bytes, at + 8)
  local chip = string.unpack("<I4", bytes, at + 28)
  if kind == 2 then chips[#chips + 1] = chip else n_ptx = n_ptx + 1 end
  at = at + head + size
end
tap.is(table.concat(chips, " "), "80 90 100", "has machine code for three chips")
tap.is(n_ptx, 0, "and no PTX")
run("rm -rf '%s'", folder)
tap.done_testing()
