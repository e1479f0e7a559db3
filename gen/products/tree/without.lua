-- SPDX-License-Identifier: Apache-2.0
--
-- Parts of the core that a tree omits: on request (`--no-threads`, `--no-environment`), or because none of its ops needs them. A small
-- file takes the place of a part's files. Pure.

local kinds = require "gen.kinds.kinds"
local numbers = require "gen.products.numbers"

local M = {}

-- Whether no parameter of a plan's ops needs a file of conversions.
local function needs_none(path)
  return function(plan) return not numbers.needed(plan.model.types, plan.ops, plan.wanted)[path] end
end

-- option: what asks for it; else is_unneeded(plan). files: of runtime/core; instead: what takes their place, of runtime/tree;
-- note: what the public header says of it
M.list = {
  { option = "no-threads", files = { "base/workers.c", "base/thread.h" }, instead = { "workers_none.c" },
    note = {
      "Without threads (--no-threads): a call runs on the thread that makes it, or on the host's threads where parallel_for and",
      "threads of quern_options are given. Without parallel_for, threads has no effect. Calls may come from several threads.",
    } },
  { option = "no-environment", files = { "base/environment.c", "base/isa.c" }, instead = { "environment_none.c", "isa_none.c" },
    note = {
      "Without environment (--no-environment): no environment variable is read. Those that are named below count as unset.",
    } },
  { is_unneeded = needs_none "op/params.c", files = { "op/params.c" }, instead = { "params_none.c" }, note = {} },
}

-- The law of overlaps for outputs with loops of their own.
table.insert(M.list, { files = { "tensor/apart.c", "tensor/apart.h" }, instead = {}, note = {}, is_unneeded = function(plan)
  for _, op in ipairs(plan.ops) do
    if kinds.of(op).has_own_nest then return false end
  end
  return true
end })

for _, path in ipairs(numbers.FILES) do
  if path ~= "op/params.c" then
    M.list[#M.list + 1] = { is_unneeded = needs_none(path), files = { path, (path:gsub("c$", "h")) }, instead = {}, note = {} }
  end
end

-- Of a run's options and a tree's plan: { files = set of paths, sources = list of paths, notes = list of lines }
function M.of(options, plan)
  local result = { files = {}, sources = {}, notes = {} }
  for _, row in ipairs(M.list) do
    if options[row.option] or (row.is_unneeded and row.is_unneeded(plan)) then
      for _, path in ipairs(row.files) do result.files[path] = true end
      for _, name in ipairs(row.instead) do table.insert(result.sources, "runtime/tree/" .. name) end
      table.move(row.note, 1, #row.note, #result.notes + 1, result.notes)
    end
  end
  return result
end

-- Errors of such options beside what they do not go with. product: an option
function M.check(options, product, errors)
  for _, row in ipairs(M.list) do
    if options[row.option] and options[product] then
      errors[#errors + 1] = string.format("--%s: not with --%s", row.option, product)
    end
  end
end

return M
