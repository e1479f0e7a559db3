-- SPDX-License-Identifier: Apache-2.0
--
-- The rows that `list` prints.

local load = require "gen.products.load"
local planning = require "gen.products.plan"
local tables = require "gen.products.tables"

local M = {}

-- Every op with the dtypes its inputs may have and its result's.
function M.ops(root, specs)
  local model, _, errors = load.load(root, specs)
  if #errors > 0 then return nil, errors end
  local rows, built = {}, planning.wanted_dtypes(model)
  for _, op in ipairs(planning.sorted_ops(model, {}, {})) do
    local inputs, outputs = tables.accepted(model.types, op, built)
    rows[#rows + 1] = { op = op, inputs = inputs, outputs = outputs }
  end
  return rows, nil, model
end

return M
