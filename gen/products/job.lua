-- SPDX-License-Identifier: Apache-2.0
--
-- A job: a product in the making. Targets read the plan and the root's files by it, and add files to it (gen/targets/all.lua).

local files_on_disk = require "gen.base.files"
local load = require "gen.products.load"

local M = {}

-- files: name -> text; lists: a kind of sources.txt -> names. inputs: list of the files read, which grows
function M.new(root, plan, prefix, inputs)
  local files, lists = {}, { core = {} }
  local job = { plan = plan, types = plan.model.types, prefix = prefix, files = files, lists = lists,
                read = load.reader(root, inputs) }
  function job.list(folder, suffix) return files_on_disk.list(root .. "/" .. folder, suffix) end
  function job.list_all(folder, suffix) return files_on_disk.list_all(root .. "/" .. folder, suffix) end
  function job.put(kind, name, text)
    files[name] = text
    if kind then
      lists[kind] = lists[kind] or {}
      table.insert(lists[kind], name)
    end
  end
  return job
end

return M
