-- SPDX-License-Identifier: Apache-2.0
--
-- Names that a spec may give: of ops, in the spec and in C, of functions, operands and parameters. Knows no declarations.

local reserved = require "gen.base.reserved"
local source = require "gen.base.source"

local M = {}

-- Further names that C's headers or CUDA take for themselves, in lower case.
local TAKEN = {}
for word in ([[complex imaginary generic main errno stdin stdout stderr nan near far
  warpsize griddim blockdim blockidx threadidx half]]):gmatch "%S+" do TAKEN[word] = true end

local function is_name(name)
  return type(name) == "string" and #name <= 64 and name:find "^[a-z][a-z0-9_]*$" ~= nil
end

-- A name that is used in C unchanged: an input, an output, a parameter, a function.
function M.is_free_name(name)
  return is_name(name) and not reserved[name] and not TAKEN[name] and not name:find "_t$" and not name:find "^q[nk]?_"
    and not name:find "^quern_"
end

-- Words that mean something in a body already: types, statements.
function M.is_word_of_bodies(model, name)
  return model.types.by_name[name] ~= nil or name == "rare" or name == "param" or name == "lookup" or name == "canonical"
end

-- Names of an op's operands that the typed functions need for themselves.
M.TYPED_FUNCTION = { out = true, call = true, ins = true, outs = true }

-- Whether `name` may be an op's: [a-z][a-z0-9_]*, with a namespace before it or not. Returns its C name, or nil and why.
-- api_names: words that follow the prefix in the public header
function M.op_c_name(name, api_names)
  local namespace, base = name:match "^([a-z][a-z0-9_]*)%.([a-z][a-z0-9_]*)$"
  if not M.is_free_name(base or name) or (namespace and not M.is_free_name(namespace)) then
    return nil, string.format("'%s' cannot be an op's name: [a-z][a-z0-9_]*, at most 64, no word of C, C++ or CUDA",
                              source.shown(name))
  end
  local c_name = name:gsub("%.", "_")
  if name == "grad" then return nil, "'grad' cannot be an op's name: it is the derivative of an expression" end
  if api_names[c_name] or c_name:find "^q[nk]?_" or c_name:find "^builtin_" or c_name:find "^pack_" then
    return nil, string.format("'%s' cannot be an op's name: the library uses %s itself", name, c_name)
  end
  return c_name
end

-- The C names of a model's ops in a tree of a prefix: the prefix is not repeated for an op of that namespace, acme.swish is
-- acme_swish. Returns an error, or nil.
function M.put_under_prefix(model, prefix)
  for _, op in ipairs(model.ops) do
    local base = op.name:match("^" .. prefix .. "%.([a-z][a-z0-9_]*)$")
    if base then
      local c_name, why = M.op_c_name(base, model.api_names)
      if not c_name then return string.format("%s: %s: under --prefix %s: %s", op.location, op.name, prefix, why) end
      op.c_name = c_name
    end
  end
end

-- The error of a tree with two ops of one C name; nil: there are none.
function M.clash(ops, prefix)
  local taken = {}
  for _, op in ipairs(ops) do
    local other = taken[op.c_name]
    if other then
      local first, second = other, op
      if first.builtin == false then first, second = second, first end
      return string.format("%s: %s: under --prefix %s its C name %s_%s is that of op %s: rename it, or leave one of them out",
                           second.location, second.name, prefix, prefix, op.c_name, first.name)
    end
    taken[op.c_name] = op
  end
end

return M
