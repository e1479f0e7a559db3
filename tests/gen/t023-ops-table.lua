-- SPDX-License-Identifier: Apache-2.0
--
-- t023-ops-table: OPS.md is the table of all ops that dsl/ has: what build.lua list --markdown prints. docs/primitives.md is what
-- list --primitives prints, a row of each primitive; python/quern/_facts.py what list --python prints.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. package.path
local tap = require "tap"

local function lines_of(stream)
  local lines = {}
  for line in stream:lines() do lines[#lines + 1] = line end
  return lines, stream:close()
end

local printed, ok = lines_of(assert(io.popen(string.format("cd '%s' && lua5.4 build.lua list --markdown 2>&1", root))))
tap.ok(ok and #printed > 50, "build.lua list --markdown prints a table of %d lines", #printed)

-- Each op of dsl/ has a row, whatever report.lua thinks of it.
local of_op = {}
for _, line in ipairs(printed) do
  local name = line:match "^| `([%w_.]+)` |"
  if name then of_op[name] = line end
end
local missing, n_ops = {}, 0
for _, line in ipairs((lines_of(assert(io.popen("cat '" .. root .. "'/dsl/*.lua"))))) do
  local word, name = line:match '^(%a+) "([%w_.]+)" {$'
  if name and word ~= "adjoint" then -- the row of its scan says that there is a derivative
    n_ops = n_ops + 1
    if not of_op[name] then missing[#missing + 1] = name end
  end
end
tap.ok(#missing == 0 and n_ops > 50, "which has a row for each of %d ops", n_ops)
tap.ok((of_op.bitwise_and or ""):find("^| `bitwise_and` | x | x | x | x | x | x | x | x | x |   |   |   |   | "),
       "a row says which dtypes are taken")

local kept = lines_of(assert(io.open(root .. "/OPS.md")))
tap.is(table.concat(kept, "\n"), table.concat(printed, "\n"),
       "OPS.md is that table (else: lua5.4 build.lua list --markdown > OPS.md)")

printed, ok = lines_of(assert(io.popen(string.format("cd '%s' && lua5.4 build.lua list --primitives 2>&1", root))))
local n_rows = 0
for _, line in ipairs(printed) do n_rows = n_rows + (line:find "^| `%w+.* | [^| ][^|]+ |$" and 1 or 0) end
tap.is(n_rows, ok and #require "gen.graph.dag.primitives".list, "list --primitives: each primitive has a row, and says what it computes")
kept = lines_of(assert(io.open(root .. "/docs/primitives.md")))
tap.is(table.concat(kept, "\n"), table.concat(printed, "\n"),
       "docs/primitives.md is that table (else: lua5.4 build.lua list --primitives > docs/primitives.md)")

printed, ok = lines_of(assert(io.popen(string.format("cd '%s' && lua5.4 build.lua list --python 2>&1", root))))
kept = lines_of(assert(io.open(root .. "/python/quern/_facts.py")))
tap.ok(ok and table.concat(kept, "\n") == table.concat(printed, "\n"),
       "python/quern/_facts.py has the facts of the specs (else: lua5.4 build.lua list --python > python/quern/_facts.py)")
tap.done_testing()
