-- SPDX-License-Identifier: Apache-2.0
--
-- bounds.lua: prints what each op that reduces declares for inputs of a dtype, one a line: `op dtype ulp NUMBER`, in units in the
-- last place of the result, or `op dtype bound U TEXT`, an absolute error (gen/tools/bounds.lua).
--   lua5.4 tools/measure/bounds.lua [ROOT]
local root = arg[1] or "."
package.path = root .. "/?.lua;" .. package.path
local bounds = require "gen.tools.bounds"
local kinds = require "gen.kinds.kinds"
local main = require "gen.main"
local number = require "gen.base.number"

local model = main.builtin_model(root)
for _, op in ipairs(model.ops) do
  for _, dtype in ipairs((kinds.of(op).has_stages and not op.backward_of or op.bound) and op.dtypes or {}) do
    local t = model.types.by_name[dtype]
    local text, u = bounds.text(model.types, op, dtype)
    if t.built and text then print(op.name, dtype, "bound", number.hex(u), text)
    elseif t.built and op.ulp[t.compute] then print(op.name, dtype, "ulp", op.ulp[t.compute])
    end
  end
end
