-- SPDX-License-Identifier: Apache-2.0
--
-- The dtypes that kernel_cuda.h does not have, and those that CUDA has no kernels for.

local stored = require "gen.targets.stored"

local M = {}

-- The text that follows kernel_cuda.h in every file of kernels; "" in a build without such dtypes. read: path under the root ->
-- text
function M.text(types, read)
  if not stored.has_any(types) then return "" end
  return "#define Q_WHERE(condition) (condition)\n\n" .. stored.floats(types, read, false) .. "#undef Q_WHERE\n"
end

-- Why there are no kernels for a dtype; nil: there are.
function M.refusal(t)
  if t.bits <= 64 then return nil end
  return string.format("%s has elements of %d bytes; CUDA kernels move 8 at most", t.name, t.size)
end

return M
