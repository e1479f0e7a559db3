-- SPDX-License-Identifier: Apache-2.0
--
-- The typed functions of C, one for each op: quern/ops.h of the library, a part of a tree's header. Makes text, opens no files.

local c = require "gen.targets.c.text"
local number = require "gen.base.number"

local M = {}

local DESCRIPTOR = [[
/* Descriptors are only read; quern_op_call's arrays have one type for those of inputs and of outputs. */
#ifdef __cplusplus
#define QUERN_DESCRIPTOR(tensor) const_cast<DLTensor *>(tensor)
#else
#define QUERN_DESCRIPTOR(tensor) ((DLTensor *)(uintptr_t)(tensor))
#endif
]]

M.AXES = { axes = "a bit for each, by QUERN_AXES(ndim, 0, -1); default QUERN_ALL_AXES", axis = "the bit of one, by QUERN_AXES(ndim, -1)" }

-- The parameters of an op with their defaults. of_axes: how the language writes axes, by role
function M.params_text(op, of_axes)
  local params = {}
  for k, param in ipairs(op.params) do
    params[k] = string.format("%s (%s)", param.name, of_axes[param.role] or param.value and "default " .. number.text(param.value) or "optional")
  end
  return table.concat(params, ", ")
end

-- The typed functions: one per op.
function M.typed_functions(ops)
  local out = { DESCRIPTOR }
  for _, op in ipairs(ops) do
    local args, list = {}, {}
    for k, input in ipairs(op.inputs) do
      args[k] = "const DLTensor *" .. input.name
      list[k] = "QUERN_DESCRIPTOR(" .. input.name .. ")"
    end
    local outs = {}
    for k, output in ipairs(op.outputs) do
      args[#args + 1] = "const DLTensor *" .. output.name
      outs[k] = "QUERN_DESCRIPTOR(" .. output.name .. ")"
    end
    args[#args + 1] = "const quern_call *call"
    local doc = c.comment_lines(op.doc)
    if #op.params > 0 then doc[#doc + 1] = "Parameters, in order: " .. M.params_text(op, M.AXES) .. "." end
    out[#out + 1] = string.format([[
/* %s */
QUERN_API quern_op *quern_builtin_%s(void);
static inline quern_status quern_%s(%s) {
  %sDLTensor *const outs[%d] = {%s};
  return quern_op_call(quern_builtin_%s(), %d, %s, %d, outs, call);
}
]], table.concat(doc, "\n * "), op.c_name, op.c_name, table.concat(args, ", "),
      #op.inputs > 0 and string.format("DLTensor *const ins[%d] = {%s};\n  ", #op.inputs, table.concat(list, ", ")) or "",
      #outs, table.concat(outs, ", "), op.c_name, #op.inputs, #op.inputs > 0 and "ins" or "NULL", #outs)
  end
  return table.concat(out, "\n")
end

-- quern/ops.h
function M.ops_header(ops, banner)
  return table.concat(banner, "\n") .. [[

/* ops.h: one typed function per op, without a lookup. quern_builtin_<op>() is that op of the process-wide context:
 * static, not to be released. The laws of quern_op_call hold. */
#ifndef QUERN_OPS_H
#define QUERN_OPS_H

#include <quern/quern.h>

#ifdef __cplusplus
extern "C" {
#endif

]] .. M.typed_functions(ops) .. [[

#ifdef __cplusplus
}
#endif

#endif
]]
end

return M
