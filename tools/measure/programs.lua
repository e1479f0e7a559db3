-- SPDX-License-Identifier: Apache-2.0
--
-- programs.lua: prints `op dtype digest` for every op in every float dtype: the digest of its program, the text of primitives,
-- constants and tables from which its kernels and the interpreter are made (gen/service.lua). Results depend on it, and on nothing
-- else of the generated text: neither names nor layouts nor how a number is spelt.
--   lua5.4 tools/measure/programs.lua [ROOT]
local root = arg[1] or "."
package.path = root .. "/?.lua;" .. package.path
local digest = require "gen.base.digest"
local main = require "gen.main"
local service = require "gen.service"

local model = main.builtin_model(root)
local programs = service.new { model = function() return model end }
local digests = {} -- by text: f16 and bf16 have f32's
for _, op in ipairs(model.ops) do
  for _, dtype in ipairs(model.types.list) do
    local text = dtype.kind == "float" and dtype.built and programs:program(op.name, dtype.name)
    if text then
      digests[text] = digests[text] or digest.hex(text):sub(1, 16)
      print(op.name, dtype.name, digests[text])
    end
  end
end
