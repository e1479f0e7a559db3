-- SPDX-License-Identifier: Apache-2.0
--
-- How C kernels reach their operands: an element read and cast to what is computed with, a parameter, a result as it is stored.

local operands_of = require "gen.targets.operands"

local cast_text = operands_of.cast_text

local M = {}

-- How an operand's element is read at index i.
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

-- Of a record's operands, what the C templates have besides, and the list of the strides along a row.
function M.with_rows(operands)
  local strides = {}
  for _, operand in ipairs(operands) do
    operand.step, operand.pointer = "step_" .. operand.short, operand.is_input and "const char *" or "char *"
    if operand.class == "s" then strides[#strides + 1] = { name = operand.step, operand = operand.index } end
  end
  return operands, strides
end

-- Casts of what a kernel computes on: any NaN as it lies, since what is computed of it is made canonical when it is stored.
M.WIDEN = { bf16 = "q_bf16_f32(%s)", f16 = "q_f16_f32(%s, q_zero)" }
-- Of what a kernel has computed, where any NaN is the one NaN.
M.NARROW = { bf16 = "q_f32_bf16(%s)" }

-- The widening cast of a stored dtype; nil: it has none but the plain one.
function M.widen(types, dtype)
  local t = types.by_name[dtype]
  return M.WIDEN[dtype] or t.is_made and t.kind == "float" and "q_" .. dtype .. "_f32(%s)" or nil
end

-- const TYPE in_x = ...; for an input whose node has that type. load: how it is read, or nil: at index i
function M.input(types, operand, node, load)
  load = load or M.load(operand)
  if node.type == "bool" then return string.format("const m8 %s = Q_MASK(m8, %s != 0);", operand.name, load) end
  local widen = node.type == "f32" and M.widen(types, operand.dtype)
  local text = operand.dtype == node.type and load or widen and widen:format(load)
    or cast_text(types, operand.dtype, node.type, load)
  return string.format("const %s %s = %s;", node.type, operand.name, text)
end

-- const TYPE p_x = ...; for a parameter in its slot
function M.param(node, offset)
  local element = node.type == "bool" and "bool_s" or node.type
  local value = string.format("*(const %s_u *)((const char *)params + %d)", element, offset)
  if node.type == "bool" then return string.format("const m8 p_%s = Q_MASK(m8, %s != 0);", node.name, value) end
  return string.format("const %s p_%s = %s;", node.type, node.name, value)
end

-- What is stored for a result in a dtype, of which a NaN is the one NaN: q_max_f32 and q_max_f64 give no other.
function M.output(types, dtype, node, value)
  if node.type == "bool" then return string.format("(bool_s)(%s & 1)", value) end
  if (node.is_canonical or node.op == "maximum") and dtype == node.type then return value end
  return cast_text(types, node.type, dtype, value)
end

return M
