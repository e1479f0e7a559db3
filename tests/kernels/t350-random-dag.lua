-- SPDX-License-Identifier: Apache-2.0
--
-- tags: long
-- t350-random-dag: random bodies over all primitives of the language give the same bits whoever compiles them (GCC,
-- Clang, a stranger's flags) and at every level (v2, v3, v4), and within each build whether an element is in a
-- vector body, a tail, a strided or transposed layout, in place, or on another thread. QUERN_TEST_SEED repeats a run. Each
-- day has one level for each of GCC and Clang, and one stranger's flags.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. root .. "/tests/support/random/?.lua;" .. package.path
local shell = require "shell"
local tap = require "tap"
local random_bodies = require "random_bodies"

local folder, run = shell.folder(), shell.run
local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local seed = tap.test_seed()
math.randomseed(seed, 350)
local n_ops = tonumber(os.getenv "QUERN_TEST_DAGS" or "") or (os.getenv "QUERN_TEST_EXHAUSTIVE" == "1" and 40 or 12)
local spec, names, bodies = random_bodies.spec(n_ops)
local spec_file = folder .. "/dags.lua"
local file = assert(io.open(spec_file, "w"))
file:write(spec)
file:close()

local function generate(out, more)
  return run(string.format("lua5.4 %s generate --out %s --prefix rnd --spec %s --ops %s %s", quoted(root .. "/build.lua"),
                           quoted(out), quoted(spec_file), table.concat(names, ","), more or ""))
end
local ok, text = generate(folder .. "/tree")
tap.ok(ok, "%d ops are generated, all but two random", #names)
if not ok then tap.diag("%s", text) end
ok, text = generate(folder .. "/single", "--single")
tap.ok(ok, "and as a single file")

-- A tree compiled by a compiler: core once, kernels per level, by the tree's own source list.
local function build_tree(compiler, levels)
  local commands, objects, flags = {}, {}, {}
  for line in io.lines(folder .. "/tree/sources.txt") do
    local level, flag_text = line:match "^flags (%w+) ?(.*)$"
    if level then flags[level] = flag_text end
    local kind, name = line:match "^(%w+) (%S+)$"
    local function compile(suffix, more)
      local object = string.format("%s/%s-%s-%s.o", folder, compiler, name:gsub("[/.]", "_"), suffix)
      objects[#objects + 1] = object
      commands[#commands + 1] = string.format("%s -std=c11 -Wall -Wextra -Werror -pthread %s -c %s/tree/%s -o %s", compiler, more,
                                              folder, name, object)
    end
    local one = #levels == 1
    if kind == "core" then compile("core", one and "-O0 -DRND_QN_ONE_LEVEL" or "-O0") end
    if kind == "kernel" then
      for _, l in ipairs(levels) do -- a kernel's name is that of its only level
        compile(l, flags.common .. " " .. (one and flags[l]:gsub("%-D[A-Z_]*QN_ISA=%w+", "") or flags[l]))
      end
    end
  end
  local list = assert(io.open(folder .. "/commands", "w"))
  list:write(table.concat(commands, "\n"), "\n")
  list:close()
  local good, out = run(string.format("xargs -P 2 -d '\\n' -I{} sh -c '{}' < %s/commands", folder))
  if not good then return good, out end
  return run(string.format("%s -std=c11 -O1 -I%s/tree %s/tests/support/random/dag_driver.c %s -o %s/run-%s -pthread", compiler, folder, root,
                           table.concat(objects, " "), folder, compiler))
end

local function hashes(output)
  local list = {}
  for name, value in output:gmatch "(dag_%S+) (%x+)\n" do list[name] = value end
  return list
end

local reference
local function check_run(what, command)
  local good, out = run(command)
  tap.ok(good, "%s: every layout gives the bits of single elements", what)
  if not good then tap.diag("%s", out:gsub("dag_%S+ %x+\n", ""):sub(1, 3000)) end
  local list, count = hashes(out), 0
  for _ in pairs(list) do count = count + 1 end
  if not reference then
    if count == #names then reference = list end
    return tap.is(count, #names, "%s: all ops ran", what)
  end
  local wrong = {}
  for _, name in ipairs(names) do
    if list[name] ~= reference[name] then wrong[#wrong + 1] = name end
  end
  tap.ok(#wrong == 0 and count == #names, "%s: the bits of %d ops are those of the first build", what, #names)
  for _, name in ipairs(wrong) do tap.diag("%s:\n    %s", name, bodies[name]) end
end

local LEVELS, part = { "v4", "v3", "v2" }, tap.test_part(15)
for k, compiler in ipairs { "gcc", "clang-19" } do
  local levels = part and { LEVELS[(part + k) % 3 + 1] } or LEVELS
  if not os.execute("command -v " .. compiler .. " >/dev/null 2>&1") then
    tap.skip(1 + 2 * #levels, compiler .. " is not installed")
  else
    ok, text = build_tree(compiler, levels)
    tap.ok(ok, "%s compiles the tree without a warning", compiler)
    if not ok then tap.diag("%s", text:sub(1, 3000)) end
    for _, level in ipairs(levels) do
      local isa = #levels > 1 and "RND_ISA=" .. level .. " " or ""
      check_run(compiler .. " " .. level, string.format("%s%s/run-%s", isa, folder, compiler))
    end
  end
end

-- A stranger's flags, one level; another processor, emulated.
for k, flags in ipairs {
  "gcc -O3 -march=native -std=gnu11", "gcc -O0", "gcc -O2", "clang-19 -O2 -march=native -std=gnu11 -Wno-invalid-feature-combination",
  "aarch64-linux-gnu-gcc -O3 -static",
} do
  local compiler = flags:match "^%S+"
  local emulator = compiler:find "^aarch64" and "qemu-aarch64 " or ""
  local needed = emulator ~= "" and { compiler, "qemu-aarch64" } or { compiler }
  local missing
  for _, program in ipairs(needed) do
    if not os.execute("command -v " .. program .. " >/dev/null 2>&1") then missing = program end
  end
  if part and k % 5 ~= part % 5 then
    tap.diag("of another day: %s", flags)
  elseif missing then
    tap.skip(3, missing .. " is not installed")
  else
    ok, text = run(string.format("%s -I%s/single %s/single/rnd.c %s/tests/support/random/dag_driver.c -o %s/run-single -pthread", flags, folder,
                                 folder, root, folder))
    tap.ok(ok, "the single file under %s", flags)
    if not ok then tap.diag("%s", text:sub(1, 3000)) end
    check_run(flags, emulator .. folder .. "/run-single")
  end
end

os.execute("rm -rf " .. quoted(folder))
tap.done_testing()
