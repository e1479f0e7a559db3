-- SPDX-License-Identifier: Apache-2.0
--
-- The conversions of parameters to dtypes (runtime/core/op/params.h), and those that a tree's ops need. Pure.

local kinds = require "gen.kinds.kinds"

local M = {}

-- The file of runtime/core that a dtype's conversion is in, and its function; nil: no parameter is of such bits.
function M.of(t)
  if t.kind == "bool" then return "op/params_bits.c", "qn_params_bool" end
  if t.kind == "integer" then return "op/params_integer.c", "qn_params_integer" end
  if t.kind == "bits" then
    if t.bits ~= 64 then return nil end
    return "op/params_bits.c", "qn_params_bits"
  end
  if t.kind == "complex" then return "op/params_complex.c", "qn_params_complex" end
  if t.name == "f32" or t.name == "f64" then return "op/params.c", "qn_params_" .. t.name end
  return "op/params_narrow.c", "qn_params_narrow"
end

M.FILES = { "op/params.c", "op/params_narrow.c", "op/params_integer.c", "op/params_bits.c", "op/params_complex.c" }

-- The files that some ops need for the wanted dtypes (set of names), as a set. A call's promoted or chosen dtype is one of op.dtypes.
function M.needed(types, ops, wanted)
  local files = {}
  for _, op in ipairs(ops) do
    for _, T in ipairs(#op.params > 0 and op.dtypes or {}) do
      for _, name in ipairs(wanted[T] and kinds.of(op).param_dtypes(types, T) or {}) do
        files[M.of(types.by_name[name])] = true
      end
      files["op/params.c"] = true
    end
  end
  files["op/params_integer.c"] = files["op/params_integer.c"] or files["op/params_bits.c"] -- which needs it
  return files
end

return M
