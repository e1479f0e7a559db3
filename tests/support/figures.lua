-- SPDX-License-Identifier: Apache-2.0
--
-- figures.lua: the figures of TESTING.md, of a run's TAP (BUILD/results, which run.sh leaves), of the fuzzers' totals, and of
-- tests/coverage.txt.
--   lua5.4 tests/support/figures.lua RESULTS           prints them as Markdown
--   lua5.4 tests/support/figures.lua RESULTS --write   puts them into TESTING.md, between its marks

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. package.path
local index = require "index"
local shell = require "shell"

local BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"

-- Kinds that go across families, by test.
local KINDS = {
  { "allocations and other requests that fail", { "t280", "t525", "t535", "t592" } },
  { "files, entries, objects and archives damaged or hostile", { "t500", "t510", "t570", "t572", "t595" } },
  { "hostile descriptors and Python calls", { "t100", "t240", "t846", "t862", "t863" } },
  { "random expressions, bodies and specs, by several compilers", { "t248", "t249", "t350", "t540", "t550", "t600", "t765", "t797" } },
  { "the same bits by layout, thread, SIMD level and tier", { "t206", "t210", "t215", "t243", "t285", "t823" } },
  { "threads, forks and ends of processes", { "t260", "t265", "t565", "t848", "t864" } },
  { "derivatives against differences and references", { "t306", "t308", "t309", "t850" } },
  { "fuzz targets without a fuzzer, and a soak", { "t298", "t599", "t880" } },
}

local function thousands(n)
  local text = string.format("%d", n)
  repeat
    local more
    text, more = text:gsub("^(%d+)(%d%d%d)", "%1,%2")
  until more == 0
  return text
end

local function new_count() return { files = 0, tests = 0, failed = 0, skipped = 0, cases = 0 } end

-- One file's TAP into a count.
local function add(count, text)
  count.files = count.files + 1
  for line in ("\n" .. text):gmatch "\n([^\n]*)" do
    local bad, rest = line:match "^(n?o?t? ?)ok %d+(.*)$"
    if bad then
      count.tests = count.tests + 1
      if bad ~= "" and not rest:find "# TODO" then count.failed = count.failed + 1 end
      if rest:find "# [Ss][Kk][Ii][Pp]" then count.skipped = count.skipped + 1 end
      count.cases = count.cases + (tonumber(rest:match "%((%d+) cases%)") or 1)
    end
    if line:find "^1%.%.0 # SKIP" then count.skipped = count.skipped + 1 end
  end
end

local function row(name, count)
  return string.format("| %s | %d | %s | %s |", name, count.files, thousands(count.tests), thousands(count.cases))
end

local function figures(results)
  local of_test, out = {}, {}
  for _, test in ipairs(index.tests()) do of_test[test.name] = test end
  local families, builds, kinds, all = {}, {}, {}, new_count()
  local _, names = shell.run("cd '" .. results .. "' && ls *.tap")
  for name in names:gmatch "[^\n]+%.tap" do
    local test, build = of_test[name:match "(t%d%d%d%-[%w%-]+)"], name:match "(build[%w%-]*):tests:" or "build"
    local text = shell.read(results .. "/" .. name)
    local number = name:match "(t%d%d%d)%-"
    local function count_in(list, key)
      list[key] = list[key] or new_count()
      add(list[key], text)
    end
    add(all, text)
    count_in(builds, build)
    if test then count_in(families, test.family) end
    for k, kind in ipairs(KINDS) do
      for _, wanted in ipairs(kind[2]) do
        if wanted == number then count_in(kinds, k) end
      end
    end
  end
  local _, commit = shell.run "git rev-parse --short HEAD"
  out[#out + 1] = string.format("Of a run on %s, %s: %d test files, %s tests, %s cases in them; %d failed, %d skipped.", os.date "!%Y-%m-%d",
                                (commit:gsub("%s", "")), all.files, thousands(all.tests), thousands(all.cases), all.failed, all.skipped)
  out[#out + 1] = "\n| family | files | tests | cases |\n|---|---|---|---|"
  for _, family in ipairs(index.FAMILIES) do
    if families[family[1]] then out[#out + 1] = row(family[2], families[family[1]]) end
  end
  out[#out + 1] = "\n| across families | files | tests | cases |\n|---|---|---|---|"
  for k, kind in ipairs(KINDS) do
    if kinds[k] then out[#out + 1] = row(kind[1], kinds[k]) end
  end
  out[#out + 1] = "\n| build | files | tests | cases |\n|---|---|---|---|"
  for _, build in ipairs { "build", "build-asan-ubsan", "build-tsan", "build-coverage" } do
    if builds[build] then out[#out + 1] = row("`" .. build .. "`", builds[build]) end
  end
  local totals = io.open(root .. "/tests/fuzz/totals.txt")
  if totals then
    out[#out + 1] = "\n| fuzz target | executions so far | hours | files in the corpus |\n|---|---|---|---|"
    local n, seconds = 0, 0
    for line in totals:lines() do
      local target, runs, took = line:match "^(%S+) (%d+) (%d+)"
      if target then
        local _, files = shell.run("ls '" .. root .. "/tests/fuzz/corpus/" .. target .. "' | wc -l")
        out[#out + 1] = string.format("| %s | %s | %.2f | %d |", target, thousands(tonumber(runs)), tonumber(took) / 3600, tonumber(files))
        n, seconds = n + tonumber(runs), seconds + tonumber(took)
      end
    end
    out[#out + 1] = string.format("| all | %s | %.2f | |", thousands(n), seconds / 3600)
    totals:close()
  end
  local coverage = io.open(root .. "/tests/coverage.txt")
  if coverage then
    out[#out + 1] = "\n| covered | files | lines | run | branches | taken |\n|---|---|---|---|---|---|"
    for line in coverage:lines() do
      local folder, files, lines, run, branches, taken = line:match "^(%S+) (%d+) (%d+) (%d+) (%d+) (%d+)"
      if folder then
        out[#out + 1] = string.format("| `%s` | %s | %s | %.1f %% | %s | %.1f %% |", folder, files, thousands(tonumber(lines)), 100 * run / lines,
                                      thousands(tonumber(branches)), 100 * taken / math.max(1, tonumber(branches)))
      end
    end
    coverage:close()
  end
  return table.concat(out, "\n") .. "\n"
end

local text = figures(assert(arg[1], "usage: figures.lua RESULTS [--write]"))
if arg[2] == "--write" then
  local page = shell.read(root .. "/TESTING.md")
  local first, last = select(2, page:find(BEGIN, 1, true)), page:find(END, 1, true)
  shell.write(root .. "/TESTING.md", page:sub(1, first) .. "\n" .. text .. page:sub(last))
else
  io.write(text)
end
