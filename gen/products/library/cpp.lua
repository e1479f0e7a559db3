-- SPDX-License-Identifier: Apache-2.0
--
-- The C++ headers: quern/ops.hpp of the library, and PREFIX.hpp of a tree, which is quern.hpp without its run-time parts, under the
-- prefix. Both have a function for each op. Makes text, opens no files.

local banner = require "gen.targets.c.banner"
local c = require "gen.targets.c.text"
local c_functions = require "gen.products.library.c_functions"
local names = require "gen.targets.c.names"

local M = {}

local AXES = { axes = "Axes{0, -1}; default Axes::all()", axis = "one, Axes{-1}" }

-- A function for each op: views of its operands, inputs first, then what a call may have.
local function functions(ops)
  local out = {}
  for _, op in ipairs(ops) do
    local args, ins, outs = {}, {}, {}
    for k, input in ipairs(op.inputs) do
      ins[k] = input.name
      args[#args + 1] = "const View &" .. ins[k]
    end
    for k, output in ipairs(op.outputs) do
      outs[k] = output.name
      args[#args + 1] = "const View &" .. outs[k]
    end
    local doc = c.comment_lines(op.doc)
    if #op.params > 0 then doc[#doc + 1] = "Parameters: " .. c_functions.params_text(op, AXES) .. "." end
    args[#args + 1] = "const Call &call = Call()"
    out[#out + 1] = string.format([[
// %s
inline void %s(%s) {
  OpRef{quern_builtin_%s()}({%s}, {%s}, call);
}
]], table.concat(doc, "\n// "), op.c_name, table.concat(args, ", "), op.c_name, table.concat(ins, ", "), table.concat(outs, ", "))
  end
  return table.concat(out, "\n")
end

local HEAD = "// ---- The ops ------------------------------------------------------------------------------------------------------------------\n"
  .. "// A function for each op, without a look-up. It throws Error.\n\n"

-- quern/ops.hpp
function M.ops_header(ops)
  return table.concat(banner.c "the functions of the ops for C++", "\n")
    .. "\n#ifndef QUERN_OPS_HPP\n#define QUERN_OPS_HPP\n\n#include <quern/ops.h>\n#include <quern/quern.hpp>\n\nnamespace quern {\n\n"
    .. HEAD .. functions(ops) .. "\n} // namespace quern\n\n#endif\n"
end

-- PREFIX.hpp. text: quern.hpp. It is a header that users include as it is, so it has no parameters of a template; a few of its lines, which
-- are found by patterns, are others in a tree.
function M.tree_header(prefix, text, ops)
  text = text:gsub("^/%*.-%*/\n", "", 1):gsub("\n *// <run time>\n.-\n *// </run time>\n", "\n")
  text = text:gsub('#include "quern%.h"', '#include "' .. prefix .. '.h"'):gsub('"quern: error', '"' .. prefix .. ": error")
  local last = text:find("} // namespace quern\n\n#endif", 1, true) or error "bug: quern.hpp has lost its end"
  text = names.rename(text:sub(1, last - 1) .. HEAD .. functions(ops) .. "\n" .. text:sub(last), prefix)
  text = text:gsub(prefix:upper() .. "_QUERN_HPP", prefix:upper() .. "_HPP"):gsub("\n\n\n+", "\n\n")
  text = text:gsub("namespace quern%f[%W]", "namespace " .. prefix)
  return table.concat(banner.c("the C++ header of " .. prefix), "\n") .. "\n" .. text
end

return M
