-- SPDX-License-Identifier: Apache-2.0
--
-- The kind copy (`moves = true`): elements of the inputs, bit by bit. Its kernels depend on the element size only, not on the dtype.

local M = {}

M.name, M.mark, M.schema = "copy", "moves", { moves = "boolean" }
M.is_bits = true -- kernels of the dtypes b8 to b64
M.has_body, M.has_derivative, M.may_alias, M.has_own_entry = true, true, true, true
M.promotes = true -- all inputs but conditions have the promoted dtype, which is the output's
M.no_outputs = true -- it names none
M.no_result = "result is not for an op that moves or casts"
M.has_strided_forms = true -- of one input: the lean policy has copies to, from and of strided memory

function M.declare(op) op.moves = true end

-- The kernel dtypes, as a set: bits of the sizes that are wanted.
function M.kernel_dtypes(types, _, wanted)
  local set = {}
  for _, name in ipairs(types.sets.all) do
    if wanted[name] then set["b" .. types.by_name[name].bits] = true end
  end
  return set
end

function M.pack_role(op) return #op.inputs == 1 and "gather" or nil end

function M.promotion() return "COMMON" end

function M.param_dtypes(_, T) return { T } end

return M
