-- SPDX-License-Identifier: Apache-2.0
--
-- t046-library-files: what `generate --library` writes beside a tree's files: every source in the list that the build
-- reads, a build id that changes with each kind of source and with nothing else. A tree has none of it.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. root .. "/?.lua;" .. package.path
local tap = require "tap"
local digest = require "gen.base.digest"

-- the published test vectors of FNV-1a, 128 bits
tap.is(digest.hex "", "6c62272e07bb014262b821756295c58d", "the digest of nothing")
tap.is(digest.hex "a", "d228cb696f1a8caf78912b704e4a8964", "of a")
tap.is(digest.hex "foobar", "343e1662793c64bf6f0d3597ba446f18", "of foobar")

local folder = os.tmpname()
os.remove(folder)
local function run(...) return os.execute(string.format(...)) end
local function read(name)
  local file = io.open(name)
  local text = file and file:read "a"
  if file then file:close() end
  return text
end
run("mkdir -p '%s/source/include' && cd '%s' && cp -R build.lua dsl gen templates '%s/source'", folder, root, folder)
run("cp -R '%s/include/quern' '%s/source/include'", root, folder)

local function generate(out)
  return run("lua5.4 '%s/source/build.lua' generate --library --ops add,exp --dtypes f32 --out '%s/%s'", folder, folder,
             out)
end
local function id_of(out)
  local text = read(folder .. "/" .. out .. "/runtime/build_id.h")
  return text and text:match '#define QN_BUILD_ID "(%x+)"'
end

tap.ok(generate "one", "the library's files are written")
local sources, missing, kinds = read(folder .. "/one/sources.txt") or "", {}, {}
for kind, name in sources:gmatch "\n(%l+) (%l+/[%w_]+%.c)" do
  kinds[kind] = (kinds[kind] or 0) + 1
  if not read(folder .. "/one/" .. name) then missing[#missing + 1] = name end
end
tap.ok(#missing == 0 and kinds.core == 1 and kinds.runtime == 2 and kinds.kernel > 5, "every source listed is there")
local level_flags = read(folder .. "/one/runtime/level_flags.h") or ""
local n_levels, unlike = 0, {}
for level, flags in sources:gmatch "\nflags (v%d) %-DQN_ISA=v%d ([^\n]*)" do
  n_levels = n_levels + 1
  if not level_flags:find(string.format('#define QN_FLAGS_%s "%s"\n', level:upper(), flags), 1, true) then
    unlike[#unlike + 1] = level
  end
end
tap.ok(n_levels == 3 and #unlike == 0, "the flags of built kernels are those of kernels made at run time")
local id = id_of "one"
tap.ok(id and #id == 32, "a build id: %s", id)

run("cd '%s' && lua5.4 source/build.lua generate --library --out two", folder)
tap.is(id_of "two", id, "the same from another folder, with other ops")
local NAMES = { "dsl/unary.lua", "dsl/math/exp.lua", "gen/targets/c/text.lua", "templates/c/at.c.in", "templates/c/headers/kernel_pack.h" }
for _, name in ipairs(NAMES) do
  local path = folder .. "/source/" .. name
  local text = read(path)
  if text then
    run("printf '%%s\\n' '%s' >>'%s'", name:find "%.lua$" and "-- a change" or "/* a change */", path)
    generate "one"
    tap.ok(id_of "one" and id_of "one" ~= id, "another after a change of %s", name)
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
  else
    tap.ok(false, "%s is not there", name)
  end
end
generate "one"
tap.is(id_of "one", id, "the first again when all is as it was")
run("sed -i 's/VERSION_PATCH 0/VERSION_PATCH 77/' '%s/source/include/quern/quern.h'", folder)
generate "one"
tap.ok(id_of "one" ~= id, "another for another version")

-- a kernel that the plan has is not made twice
local one = read(folder .. "/one/kernels/prim_arithmetic.c") or ""
local two = read(folder .. "/two/kernels/prim_arithmetic.c") or "" -- no such file where ops have all of them
tap.ok(not one:find "qk_prim_add_f32", "add of f32 is the op's")
tap.ok(one:find "qk_prim_add_f64", "add of f64 is made, where no op has it")
tap.ok(read(folder .. "/two/kernels/op_add.c"):find "qk_add_f64" and not two:find "qk_prim_add_f64", "and is not where one does")

run("cp -R '%s/runtime' '%s/source'", root, folder)
run("lua5.4 '%s/source/build.lua' generate --ops add --out '%s/tree'", folder, folder)
local pipe = assert(io.popen("cd '" .. folder .. "/tree' && ls -d runtime kernels/prim_* 2>&-; grep -l qk_prim_ -r .;"
  .. "grep -lE '_CACHE_DIR|_TEST_COMPILER' -r core"))
tap.is(pipe:read "a", "", "a tree has none of this, nor reads variables that only the library has a use for")
pipe:close()

os.execute("rm -rf '" .. folder .. "'")
tap.done_testing()
