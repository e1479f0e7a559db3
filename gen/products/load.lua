-- SPDX-License-Identifier: Apache-2.0
--
-- Spec files -> a model. The files are the built-in ones and those named by the user. Errors are returned as a list of strings.

local sandbox = require "gen.front.sandbox"
local spec = require "gen.front.spec"
local expr = require "gen.graph.body.expr"
local derive = require "gen.graph.derive"
local files = require "gen.base.files"

local M = {}

-- A reader of files under a root: path under the root -> text. It notes the files read in `inputs`.
function M.reader(root, inputs)
  return function(name)
    inputs[#inputs + 1] = root .. "/" .. name
    return assert(files.read(root .. "/" .. name))
  end
end

-- The model of the built-in specs. root: the folder of build.lua; is_preview: with the dtypes in preview. Returns model, inputs
-- (files read), errors
function M.builtin_model(root, is_preview)
  local inputs = {}
  local read = M.reader(root, inputs)
  local model = spec.new_model("dsl/types.lua", read "dsl/types.lua", is_preview)
  model.primitives = expr.PRIMITIVES
  local header = read "include/quern/quern.h"
  for name in header:gmatch "%f[%w_]quern_([%l%d_]+)" do model.api_names[name] = true end
  local version = {}
  for number in header:gmatch "#define QUERN_VERSION_%u+ (%d+)" do version[#version + 1] = number end
  model.version = table.concat(version, ".") -- of the library, as its public header says
  local names = {}
  for _, name in ipairs(files.list(root .. "/dsl/math", ".lua")) do names[#names + 1] = "dsl/math/" .. name end
  for _, name in ipairs(files.list(root .. "/dsl", ".lua")) do
    if name ~= "types.lua" then names[#names + 1] = "dsl/" .. name end
  end
  local errors = {}
  for _, name in ipairs(names) do
    for _, message in ipairs(spec.load(model, name, read(name), { builtin = true })) do errors[#errors + 1] = message end
  end
  if #errors == 0 then derive.complete(model) end
  return model, inputs, errors
end

-- The built-in ops and those of the files given. Returns model, inputs, errors.
function M.load(root, spec_files, is_preview)
  local model, inputs, errors = M.builtin_model(root, is_preview)
  for _, name in ipairs(spec_files or {}) do
    local text, why = files.read_regular(name, sandbox.MAX_BYTES + 1)
    if text then
      inputs[#inputs + 1] = name
      local first = #model.ops + 1
      for _, message in ipairs(spec.load(model, name, text)) do errors[#errors + 1] = message end
      if #errors == 0 then derive.complete(model, first) end
    else
      errors[#errors + 1] = why
    end
  end
  return model, inputs, errors
end

-- The sources of the generator itself are inputs of all that it writes.
function M.add_generator(root, inputs)
  for _, name in ipairs(files.list_all(root .. "/gen", ".lua")) do inputs[#inputs + 1] = root .. "/gen/" .. name end
  inputs[#inputs + 1] = root .. "/build.lua"
end

return M
