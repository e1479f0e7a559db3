-- SPDX-License-Identifier: Apache-2.0
--
-- Foreign calling conventions (--abi): a product can offer its ops by one of them, in addition to its own functions. Each adds files; a
-- product without it has no line of it.

local source = require "gen.base.source"
local tvm_ffi = require "gen.products.tree.tvm_ffi"

local M = {}

local LIST = { ["tvm-ffi"] = tvm_ffi }

M.names = { "tvm-ffi" }

-- The convention asked for; nil: none; or nil and an error. options: those of a run
function M.chosen(options)
  local name = options.abi
  if not name then return nil end
  if options["kernels-only"] then return nil, "--abi: not with --kernels-only, which leaves out the runtime that is called" end
  if not LIST[name] then return nil, string.format("--abi: '%s', expected %s", source.shown(name), table.concat(M.names, ", ")) end
  return LIST[name]
end

return M
