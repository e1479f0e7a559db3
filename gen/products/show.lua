-- SPDX-License-Identifier: Apache-2.0
--
-- The text of one kernel by its name, or of all of an op.

local library = require "gen.products.library"
local load = require "gen.products.load"
local planning = require "gen.products.plan"
local source = require "gen.base.source"
local spec = require "gen.front.spec"
local targets = require "gen.targets.all"

local M = {}

-- A function(name) that returns the text of a kernel or of an op's kernels, or nil and errors. A kernel's name may be as in a
-- tree or in an object, with a prefix or a level; all names have one prefix.
function M.teller(root, specs)
  local model, inputs, errors = load.load(root, specs)
  local plans, read, is_prefixed = {}, nil, false
  local function planned(variants)
    if not plans[variants] then
      local plan, why = planning.plan(model, { variants = variants })
      if not plan then return nil, why end
      library.complete(plan)
      plans[variants] = plan
    end
    return plans[variants]
  end
  return function(name)
    if #errors > 0 then return nil, errors end
    local prefix = name:match "^([%l%d_]-)_q[kc]_" -- of a tree
    if prefix and not is_prefixed then spec.put_under_prefix(model, prefix) end
    is_prefixed = is_prefixed or prefix ~= nil
    read = read or load.reader(root, inputs)
    for _, target in ipairs(targets.list) do
      local bare, known = target.bare_name(name), nil
      for _, variants in ipairs(bare and { "lean", "full" } or {}) do
        local plan, why = planned(variants)
        if not plan then return nil, why end
        local text, there = target.show(plan, bare, read)
        if text then return text end
        known = known or there
      end
      if bare then
        local near = source.nearest(bare, known)
        local meant = near and string.format(", did you mean '%s%s'?", prefix and prefix .. "_" or "", near)
        local advice = meant or not specs and ": those of an op of yours are shown with --spec FILE" or ""
        return nil, { string.format("no kernel '%s'%s", source.shown(name), advice) }
      end
    end
    if name:find "^qj_%x+$" then return nil, { name .. " was compiled at run time: quern_op_source gives its text" } end
    if not model.op_of_name[name] then
      return nil, { string.format("no op or kernel '%s'%s", source.shown(name), source.suggest(name, model.op_of_name)) }
    end
    local plan, why = planning.plan(model, { ops = name })
    if not plan then return nil, why end
    local text = targets.cpu.show_op(plan, read)
    if not text then return nil, { name .. ": it has no kernels of its own" } end
    return text
  end
end

-- The same of one name.
function M.text(root, name, specs) return M.teller(root, specs)(name) end

return M
