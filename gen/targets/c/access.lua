-- SPDX-License-Identifier: Apache-2.0
--
-- Access to operands in C kernels: an element loaded and cast to the compute type, a parameter, a result as it is stored.

local operands_of = require "gen.targets.operands"

local cast_text = operands_of.cast_text

local M = {}

-- The load of an operand's element at index i.
function M.load(operand)
  local element, row = operand.element, operand.row
  if operand.class == "c" then return string.format("((const %s_u *)%s)[i]", element, row) end
  if operand.class == "b" then return string.format("*(const %s_u *)%s", element, row) end
  return string.format("*(const %s_u *)(%s + i * %s)", element, row, operand.step)
end

-- An operand's element at index i, to be assigned.
function M.lvalue(operand)
  if operand.class == "c" then return string.format("((%s_u *)%s)[i]", operand.element, operand.row) end
  return string.format("*(%s_u *)(%s + i * %s)", operand.element, operand.row, operand.step)
end

-- Adds the fields of the C templates to a record's operands. Returns them, and the list of the strides along a row.
function M.with_rows(operands)
  local strides = {}
  for _, operand in ipairs(operands) do
    operand.step, operand.pointer = "step_" .. operand.short, operand.is_input and "const char *" or "char *"
    if operand.class == "s" then strides[#strides + 1] = { name = operand.step, operand = operand.index } end
  end
  return operands, strides
end

-- Casts of a kernel's inputs: a NaN keeps its bits, since results are made canonical when they are stored.
M.WIDEN = { bf16 = "q_bf16_f32(%s)", f16 = "q_f16_f32(%s, q_zero)" }
-- The lines that cast a whole strip, from an address to another. Compilers turn a loop into casts of single elements, or GCC into halves.
M.WIDEN_STRIP = {
  f16 = function(to, from) return { "q_widen_32(" .. to .. ", " .. from .. ", 0);" } end,
  bf16 = function(to, from) return {
    "#if Q_STRIP_BYTES == 64 && !defined(__clang__)",
    "const q_strip_i16_32 half = *(const q_strip_i16_32_u *)(" .. from .. ");",
    "const q_strip_u32_32 wide = (q_strip_u32_32)__builtin_ia32_pmovzxwd512_mask(half, (q_strip_i32_32){0}, (i16)-1);",
    "#elif Q_STRIP_BYTES == 32 && !defined(__clang__)",
    "const q_strip_i16_32 half = *(const q_strip_i16_32_u *)(" .. from .. ");",
    "const q_strip_u32_32 wide = (q_strip_u32_32)__builtin_ia32_pmovzxwd256(half);",
    "#else",
    "const q_strip_u32_32 wide = __builtin_convertvector(*(const q_strip_bf16_s_32_u *)(" .. from .. "), q_strip_u32_32);",
    "#endif",
    "*(q_strip_u32_32_u *)(" .. to .. ") = wide << 16;",
  } end,
}
-- The narrowing cast of a computed value. Any NaN among these is the canonical NaN.
M.NARROW = { bf16 = "(bf16_s)q_f32_bf16(%s)" }

-- The widening cast of a stored dtype; nil: it has none but the plain one.
function M.widen(types, dtype)
  local t = types.by_name[dtype]
  return M.WIDEN[dtype] or t.is_made and t.kind == "float" and "q_" .. dtype .. "_f32(%s)" or nil
end

-- const TYPE in_x = ...; for an input; TYPE is its node's (is_stored: see targets/signs.lua). load: the text of the load, or nil: at
-- index i; width: of a condition, 8 if nil
function M.input(types, operand, node, load, width)
  load, width = load or M.load(operand), width or 8
  if node.type == "bool" then return string.format("const m%d %s = Q_MASK(m%d, %s != 0);", width, operand.name, width, load) end
  local widen = node.type == "f32" and M.widen(types, operand.dtype)
  if node.is_stored then return string.format("const %s %s = (%s)%s;", node.type, operand.name, node.type, load) end
  local text = operand.dtype == node.type and load or widen and widen:format(load)
    or cast_text(types, operand.dtype, node.type, load)
  return string.format("const %s %s = %s;", node.type, operand.name, text)
end

-- const TYPE p_x = ...; for a parameter in its slot (stored_as: a dtype, of which it has the bits; the slot's type is f32)
function M.param(node, offset)
  if node.stored_as then
    return string.format("const %s p_%s = (%s)q_cast_f32_%s(*(const f32_u *)((const char *)params + %d));", node.type, node.name, node.type,
                         node.stored_as, offset)
  end
  local element = node.type == "bool" and "bool_s" or node.type
  local value = string.format("*(const %s_u *)((const char *)params + %d)", element, offset)
  if node.type == "bool" then return string.format("const m8 p_%s = Q_MASK(m8, %s != 0);", node.name, value) end
  return string.format("const %s p_%s = %s;", node.type, node.name, value)
end

-- Whether a NaN that a node gives is the one NaN. (q_max_f32 and q_max_f64 give only that.)
function M.is_canonical(node) return node.is_canonical or node.op == "maximum" end

-- The stored value of a result in a dtype, every NaN made canonical.
-- any_nan: a promise that the value is canonical does not hold.
function M.output(types, dtype, node, value, any_nan)
  if node.type == "bool" then return string.format("(bool_s)(%s & 1)", value) end
  if node.is_stored then return string.format("(%s)%s", types.by_name[dtype].c, value) end
  local is_canonical = node.is_canonical and not any_nan
  if (is_canonical or node.op == "maximum") and dtype == node.type then return value end
  if is_canonical and M.NARROW[dtype] and node.type == "f32" then return M.NARROW[dtype]:format(value) end
  return cast_text(types, node.type, dtype, value)
end

return M
