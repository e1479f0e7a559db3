-- SPDX-License-Identifier: Apache-2.0
--
-- t330-recipes: docs/recipes.md holds. A throwaway op, primitive, kind of op and target, patches in tests/product/recipes, touch no
-- more files than it says. They are applied to a copy of the sources; a tree is generated there that has all of them, compiled, and
-- called, and its results are compared. The layers of the copy hold as well.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. package.path
local shell = require "shell"
local tap = require "tap"

-- The most files of each: new, edited, and both together. All that a recipe names counts, tests, too, but for what a command
-- writes (OPS.md, tests/README.md), for prose (docs, CHANGELOG.md), and for the test of a kind or target itself: the driver here.
local LIMITS = {
  op = { new = 0, edited = 4, all = 4 },
  primitive = { new = 0, edited = 5, all = 5 },
  kind = { new = 3, edited = 1, all = 8 },
  target = { new = 6, edited = 1, all = 13 },
}
-- A user's spec: an op of the primitive.
local SPEC = [==[
binary "gap" {
  doc    = "The distance of x and y.",
  dtypes = { "f32", "i32", "u8" },
  body   = [[ absdiff(x, y) ]],
  examples = { { x = 3, y = 5, out = 2 }, { x = 5, y = 3, out = 2 } },
}
]==]
local ORDER = { "op", "primitive", "kind", "target" }

local folder = shell.folder()
local scratch = folder .. "/quern"
local function must(command)
  local ok, text = shell.run(command)
  if ok then return text end
  tap.diag("%s: %s", command, text)
  os.execute("rm -rf " .. folder)
  os.exit(1)
end
must(string.format("mkdir %s && cd '%s' && cp -r build.lua CMakeLists.txt dsl gen include runtime templates tests tools %s/", scratch,
                   root, scratch))

-- A text with an edit in it: { before or after = what it has once, text = what is put there }; or nil, why
local function edited(text, edit)
  local anchor = edit.before or edit.after
  local first, last = text:find(anchor, 1, true)
  if not first then return nil, "it has no '" .. anchor .. "'" end
  if text:find(anchor, last + 1, true) then return nil, "it has several '" .. anchor .. "'" end
  local at = edit.before and first or last + 1
  return text:sub(1, at - 1) .. edit.text .. text:sub(at)
end

-- Applies a patch. Returns how many files are new, how many edited, and what is wrong, or nil.
local function apply(patch)
  local n_new, n_edited = 0, 0
  for path, text in pairs(patch.new) do
    if io.open(scratch .. "/" .. path) then return 0, 0, path .. " is there already" end
    must(string.format("mkdir -p '%s'", (scratch .. "/" .. path):match "^(.*)/"))
    shell.write(scratch .. "/" .. path, text)
    n_new = n_new + 1
  end
  for path, edits in pairs(patch.edits) do
    local text = shell.read(scratch .. "/" .. path)
    for _, edit in ipairs(edits) do
      local result, why = edited(text, edit)
      if not result then return 0, 0, path .. ": " .. why end
      text = result
    end
    shell.write(scratch .. "/" .. path, text)
    n_edited = n_edited + 1
  end
  return n_new, n_edited
end

for _, name in ipairs(ORDER) do
  local limit = LIMITS[name]
  local n_new, n_edited, why = apply(dofile(string.format("%s/tests/product/recipes/%s.lua", root, name)))
  tap.ok(not why and n_new == limit.new and n_edited == limit.edited and n_new + n_edited <= limit.all,
         "%s: %d new files, %d edited", name, n_new, n_edited)
  if why then tap.diag("%s", why) end
end

-- What docs/recipes.md counts is that.
local docs = shell.read(root .. "/docs/recipes.md")
for _, name in ipairs(ORDER) do
  local new, changed = docs:match("\n| " .. name .. " | (%d+)[^|]*| (%d+)")
  tap.ok(tonumber(new) == LIMITS[name].new and tonumber(changed) == LIMITS[name].edited, "docs/recipes.md counts so for a new %s", name)
end

-- The generator still knows its own order, and the one at run time has all of it.
local ok, text = shell.run(string.format("cd %s && QUERN_SOURCE_DIR=. lua5.4 tests/product/t018-layers.lua", scratch))
tap.ok(ok and not text:find "\nnot ok", "the layers of the copy hold")
if not ok then tap.diag("%s", text) end
ok, text = shell.run(string.format("cd %s && lua5.4 tools/embed.lua %s/embedded.c", scratch, folder))
tap.ok(ok, "the generator for run time is made")
if not ok then tap.diag("%s", text) end

shell.write(folder .. "/gap.lua", SPEC)
ok, text = shell.run(string.format("cd %s && lua5.4 build.lua generate --out %s/tree --prefix trial --spec ../gap.lua "
  .. "--ops cube,gap,fraction,add --target c,plain", scratch, folder))
tap.ok(ok, "a tree is generated")
if not ok then tap.diag("%s", text) end

-- One level, and no speed: values are compared. The reference of ops is the copy's.
local compiler = os.getenv "CC" or "cc"
ok, text = shell.run(string.format("cd %s && %s -std=gnu11 -O0 -w -DTRIAL_QN_ONE_LEVEL -ffp-contract=off -Itree -Iquern/include "
  .. "-Iquern/tools/measure -o trial $(find tree -name '*.c') quern/tools/measure/ref.c quern/tests/product/recipes/trial_driver.c "
  .. "-lm -lpthread -ldl", folder, compiler))
tap.ok(ok, "it compiles")
if not ok then tap.diag("%s", text:sub(1, 4000)) end
ok, text = shell.run(folder .. "/trial")
for _, name in ipairs(ORDER) do tap.ok(("\n" .. text):find("\n" .. name .. "\n", 1, true), "%s: called, and right", name) end
if not ok then tap.diag("%s", text) end

-- The two files of tests that a primitive touches: kernels of it, and the reference.
ok, text = shell.run(string.format("cd %s/quern/tests && %s -std=c11 -O0 -w -fPIC -shared -o %s/subject.so support/references/kernel_subject.c && "
  .. "%s -std=c11 -O1 -w -Isupport -Isupport/references -o %s/t010 kernels/t010-kernel-primitives.c support/tap.c -ldl -lm -lpthread && QUERN_TEST_SCALE=0 %s/t010 "
  .. "%s/subject.so", folder, compiler, folder, compiler, folder, folder, folder))
tap.ok(ok and text:find "absdiff", "t010 compares the primitive with its reference")
if not ok then tap.diag("%s", text:sub(-3000)) end

os.execute("rm -rf " .. folder)
tap.done_testing()
