-- SPDX-License-Identifier: Apache-2.0
--
-- The names of built kernels: qk_ (C) or qc_ (CUDA), the op, a dtype per operand, the rank, a class letter per operand. In objects a
-- tree's prefix comes before that, and a level behind it. The only file that knows these marks. Pure.

local M = {}

M.C, M.CUDA = "qk_", "qc_"

-- A C kernel's name. op: its name in C; dtypes: list of names
function M.of(op, dtypes, rank, classes)
  return string.format("%s%s_%s_%sd_%s", M.C, op, table.concat(dtypes, "_"), rank, classes)
end

-- A CUDA kernel's. is_wide: it has 64-bit indices
function M.of_cuda(op, dtypes, rank, classes, is_wide)
  return string.format("%s%s_%s_%sd_%s%s", M.CUDA, op, table.concat(dtypes, "_"), rank, classes, is_wide and "_i64" or "")
end

-- A name without a tree's prefix and a level's suffix; nil: it has not this mark.
function M.bare(name, mark)
  local bare = name:match("^[%w_]-(" .. mark .. "[%w_]+)$")
  return bare and bare:gsub("_v[234]$", "") or nil
end

-- The tree's prefix of a kernel's name; nil: it has none.
function M.prefix(name)
  local before = name:match "^([%l%d_]-)_q[kc]_"
  return before
end

-- A name without its mark.
function M.unmarked(name) return (name:gsub("^q[kc]_", "")) end

return M
