-- SPDX-License-Identifier: Apache-2.0
--
-- Kernels that store one condition of contiguous or broadcast operands, with masks wider than bytes: templates/c/elementwise_bools.c.in
-- and "Conditions of elements wider than bytes" of templates/c/headers/kernel_strips.h.

local access = require "gen.targets.c.access"

local M = {}

M.FORM = "elementwise_bools"

local WIDTHS = { [32] = true, [64] = true }

-- Whether a kernel built ahead (only its records have a D) may be one. Clang, which compiles at run time, needs no such text.
function M.may_serve(record, operands, roots)
  if not record.D or record.fused or #roots ~= 1 or roots[1].type ~= "bool" then return false end
  for _, operand in ipairs(operands) do
    if operand.is_used and operand.class ~= "c" and not (operand.is_input and operand.class == "b") then return false end
  end
  return true
end

-- The template's own values, or nil: the masks are not that wide. emitter: that of the body
function M.values(emitter, output, root)
  local width = emitter.width[root]
  if not WIDTHS[width] then return nil end
  return { width = width, mask = emitter:argument(root), row_out = output.row, lvalue = access.lvalue(output) }
end

return M
