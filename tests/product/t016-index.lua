-- SPDX-License-Identifier: Apache-2.0
--
-- t016-index: tests/README.md lists every test as its head describes it; every tag is known; a test with threads says whether it runs
-- under ThreadSanitizer; tags that a script cannot have are not there; names of families, files and numbers are as they should be.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. package.path
local index = require "index"
local shell = require "shell"
local tap = require "tap"

local tests = index.tests()
local readme = shell.read(root .. "/tests/README.md")
local wanted = index.with_list(readme, index.markdown(tests))
tap.ok(#tests > 100 and wanted == readme, "tests/README.md lists %d tests as they are: else lua5.4 tests/support/index.lua", #tests)

local function none(what, find)
  local bad = {}
  for _, test in ipairs(tests) do
    local said = find(test)
    if said then bad[#bad + 1] = test.path .. ": " .. said end
  end
  tap.ok(#bad == 0, "%s", what)
  for _, line in ipairs(bad) do tap.diag("%s", line) end
end

local family_of, tag_of, by_name = {}, {}, {}
for _, row in ipairs(index.FAMILIES) do family_of[row[1]] = true end
for _, row in ipairs(index.TAGS) do tag_of[row[1]] = true end
for _, test in ipairs(tests) do by_name[test.name .. "." .. test.kind] = test end
local function has(test, tag)
  for _, other in ipairs(test.tags) do
    if other == tag then return true end
  end
  return false
end
-- What goes on every build that has its tag: programs, but for those that a script builds, and Python.
local function is_on_builds(test)
  return test.kind == "py" or test.kind == "c" and not by_name[test.name .. ".sh"]
end

none("every test lies in a family, and its head says what it holds", function(test)
  if not family_of[test.family] then return "no family of this name" end
  if #test.holds < 20 then return "its head says '" .. test.holds .. "'" end
end)
none("every tag is known", function(test)
  for _, tag in ipairs(test.tags) do
    if not tag_of[tag] then return "'" .. tag .. "' is no tag" end
  end
end)
none("scripts run on one build, and have no sanitizer's tag", function(test)
  if not is_on_builds(test) and (has(test, "memory") or has(test, "threads") or has(test, "threads-full")) then
    return "it is not run on a sanitised build"
  end
end)
none("a test with threads is tagged `threads` or `threads-full`, no other is", function(test)
  local THREADS = { "pthread_create", "pthread_mutex", "%.threads = [2-9]", "parallel_for", "QUERN_JIT_ASYNC", "import threading",
                    '#include "reductions%.h"' }
  local found
  for _, word in ipairs(THREADS) do
    if is_on_builds(test) then found = found or test.text:match(word) end
  end
  if found and not has(test, "threads") and not has(test, "threads-full") then return "it has " .. found .. ", and no tag" end
  if has(test, "threads") and has(test, "threads-full") then return "it has both tags" end
  if not found and (has(test, "threads") or has(test, "threads-full")) then return "it has no threads" end
end)

-- The words of the README: each tag, as the list above says it.
for _, row in ipairs(index.TAGS) do
  tap.ok(readme:find(string.format("| `%s` | %s |", row[1], row[2]), 1, true), "the README says what %s means", row[1])
end
tap.done_testing()
