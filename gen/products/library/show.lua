-- SPDX-License-Identifier: Apache-2.0
--
-- The text of one kernel by its name, or of all of an op.

local foreign = require "gen.front.foreign"
local kernel_name = require "gen.base.kernel_name"
local library = require "gen.products.library.library"
local load = require "gen.products.load"
local planning = require "gen.products.plan"
local source = require "gen.base.source"
local spec = require "gen.front.spec"
local targets = require "gen.targets.all"

local M = {}

-- The op that a kernel is of, by the beginning of its name, or nil. The plan of one op is made quickly.
local function op_of_kernel(model, bare)
  local found
  for _, op in ipairs(model.ops) do
    local is_longer = not found or #op.c_name > #found.c_name
    if is_longer and kernel_name.unmarked(bare):sub(1, #op.c_name + 1) == op.c_name .. "_" then found = op end
  end
  return found
end

-- A function(name) that returns the text of a kernel or of an op's kernels, or nil and errors. A kernel's name may be as in a
-- tree or in an object, with a prefix or a level; all names have one prefix.
function M.reader(root, specs)
  local model, inputs, errors = load.load(root, specs)
  local plans, read, is_prefixed = {}, nil, false
  local function planned(variants, op)
    local key = variants .. " " .. (op and op.name or "")
    if not plans[key] then
      local plan, why = planning.plan(model, { variants = variants, ops = op and op.name })
      if not plan then return nil, why end
      library.complete(plan)
      plans[key] = plan
    end
    return plans[key]
  end
  -- The text of a kernel, or nil, what is wrong and the name most like it. op: it is among that op's; nil: among all.
  local function kernel_of(target, bare, op)
    local known
    for _, variants in ipairs { "lean", "full" } do
      local plan, why = planned(variants, op)
      if not plan then return nil, why end
      local text, there = target.show(plan, bare, read)
      if text then return text end
      known = known or there
    end
    return nil, nil, source.nearest(bare, known)
  end
  return function(name)
    if #errors > 0 then return nil, errors end
    local prefix = kernel_name.prefix(name)
    if prefix and not is_prefixed then spec.put_under_prefix(model, prefix) end
    is_prefixed = is_prefixed or prefix ~= nil
    read = read or load.reader(root, inputs)
    for _, target in ipairs(targets.list) do
      local bare = target.bare_name(name)
      if bare then
        local op, text, why, near = op_of_kernel(model, bare), nil, nil, nil
        if op then text, why, near = kernel_of(target, bare, op) end
        if not text and not why and not near then text, why, near = kernel_of(target, bare) end
        if text then return text end
        if why then return nil, why end
        local meant = near and string.format(", did you mean '%s%s'?", prefix and prefix .. "_" or "", near)
        local advice = meant or not specs and ": those of an op of yours are shown with --spec FILE" or ""
        return nil, { string.format("no kernel '%s'%s", source.shown(name), advice) }
      end
    end
    if name:find "^qj_%x+$" then return nil, { name .. " was compiled at run time: quern_op_source gives its text" } end
    if not model.op_of_name[name] then
      return nil, { string.format("no op or kernel '%s'%s", source.shown(name), foreign.advice(name, model.op_of_name)) }
    end
    local plan, why = planning.plan(model, { ops = name })
    if not plan then return nil, why end
    local text = targets.cpu.show_op(plan, read)
    if not text then return nil, { name .. ": it has no kernels of its own" } end
    return text
  end
end

-- The same of one name.
function M.text(root, name, specs) return M.reader(root, specs)(name) end

return M
