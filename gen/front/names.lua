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

-- Why a name cannot be used in C unchanged, as that of an input, an output, a parameter, a function; nil: it can.
function M.name_failure(name)
  if type(name) == "string" and select(2, name:gsub("%.", "")) > 1 then return "it has more than one namespace" end
  if not is_name(name) then return "expected [a-z][a-z0-9_]*, at most 64 letters" end
  if reserved[name] or TAKEN[name] then return string.format("'%s' is a word of C, C++ or CUDA", name) end
  if name:find "_t$" then return "names that end in _t are types" end
  local prefix = name:match "^q[nk]?_" or name:match "^quern_"
  return prefix and string.format("names that begin with %s are the library's own", prefix) or nil
end

function M.is_free_name(name) return M.name_failure(name) == nil end

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
  for _, part in ipairs { namespace or base or name, namespace and base } do
    local why = M.name_failure(part)
    if why then return nil, string.format("'%s' cannot be an op's name: %s", source.shown(name), why) end
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
