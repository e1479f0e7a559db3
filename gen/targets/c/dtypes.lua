-- SPDX-License-Identifier: Apache-2.0
--
-- The header of C kernels for the dtypes that kernel.h does not have.

local stored = require "gen.targets.stored"

local M = {}

M.HEADER = "kernel_dtypes.h"

-- The values of complex.h.in for a complex dtype. The dtype of its real and imaginary parts is the float dtype with the same
-- exponent and digits.
local function complex_values(types, complex)
  local part, others = nil, {}
  for _, t in ipairs(types.list) do
    if t.kind == "float" and t.exponent == complex.exponent and t.digits == complex.digits then part = t end
  end
  for _, t in ipairs(types.list) do
    if t ~= part and t.kind ~= "complex" and t.kind ~= "bits" then others[#others + 1] = t.name end
  end
  return { name = complex.name, element = types.by_name["b" .. complex.bits].c, part = part.name, part_bits = part.bits,
           others = others }
end

-- The #include line of that header, after the one of kernel.h; "" in a build without such dtypes.
function M.include(types) return stored.has_any(types) and string.format('#include "%s"\n', M.HEADER) or "" end

-- The header's text, or nil. read: path under the root -> text
function M.header(types, read)
  if not stored.has_any(types) then return nil end
  local out = { "#ifndef QUERN_KERNEL_DTYPES_H\n#define QUERN_KERNEL_DTYPES_H\n",
                "#define Q_WHERE(condition) Q_MASK(m32, condition)\n",
                stored.floats(types, read, true), "#undef Q_WHERE\n" }
  for _, t in ipairs(types.list) do
    if t.kind == "bits" and t.bits > 64 then
      out[#out + 1] = stored.text_of(read, "wide", { name = t.name, bits = t.bits, bytes = t.size })
    end
  end
  for _, t in ipairs(types.list) do
    if t.kind == "complex" then out[#out + 1] = stored.text_of(read, "complex", complex_values(types, t)) end
  end
  out[#out + 1] = "#endif\n"
  return table.concat(out, "\n")
end

return M
