-- SPDX-License-Identifier: Apache-2.0
--
-- Kernels of one shift of contiguous 8-bit or 16-bit integers, each by its own count: templates/c/elementwise_shifts.c.in and
-- templates/c/headers/kernel_shift.h.

local M = {}

M.FORM = "elementwise_shifts"

local WIDTHS = { [8] = true, [16] = true }
local SHIFTS = { shl = true, shr = true }

-- The template's own values, or nil: a record has no such body, or is compiled at run time, without that header.
function M.values(types, record, operands, dag)
  local root, output = dag.outputs[1], operands[#operands]
  if record.fused or not (record.D or record.primitive) or #dag.outputs ~= 1 or not SHIFTS[root.op] or #operands ~= 3 or record.classes ~= "ccc" then return nil end
  local of_input = {}
  for k, node in ipairs(dag.inputs) do of_input[node] = operands[k] end
  local from, count = of_input[root.args[1]], of_input[root.args[2]]
  for _, dtype in ipairs(record.dtypes) do
    if dtype ~= root.type then return nil end
  end
  if not from or not count or not WIDTHS[types.by_name[root.type].bits] then return nil end
  return { shift = root.op, element = output.element, from = from.row, count = count.row, row_out = output.row }
end

return M
