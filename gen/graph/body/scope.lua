-- SPDX-License-Identifier: Apache-2.0
--
-- The scope of a body during evaluation: the meaning of its names, and its values. The other files of the language add methods:
-- operators.lua, calls.lua, bodies.lua. Here: values, and their promotion to a common dtype.

local promote = require "gen.front.promote"
local weak_of = require "gen.graph.body.weak"

local M = {}

M.MAX_INLINE_DEPTH = 64
M.MAX_STEPS = 200000

M.CONSTANTS = {
  PI = 0x1.921fb54442d18p+1, E = 0x1.5bf0a8b145769p+1, LN2 = 0x1.62e42fefa39efp-1, LN10 = 0x1.26bb1bbb55516p+1,
  LOG2E = 0x1.71547652b82fep+0, LOG10E = 0x1.bcb7b1526e50ep-2, SQRT2 = 0x1.6a09e667f3bcdp+0,
  SQRT1_2 = 0x1.6a09e667f3bcdp-1, INFINITY = math.huge, NAN = 0.0 / 0.0,
}

-- A value is weak, or a DAG node, or { node, type, dtype } if it is computed in another type than its dtype. The latter occurs
-- only in a host's expression: f16 is computed in f32.
local is_weak, is_float = weak_of.is_weak, weak_of.is_float
function M.node_of(value) return value.node or value end
function M.dtype_of(value) return value.dtype or value.type end
local node_of, dtype_of = M.node_of, M.dtype_of

local Scope = {}
Scope.__index = Scope
M.Scope = Scope

-- Throws an error at a syntax node of the body: of kind "dtype", or of the `kind` given: "syntax", "limit".
function Scope:fail(node, ...)
  error({ source = self.source, at = node.at, message = string.format(...) }, 0)
end

function Scope:fail_as(kind, node, ...)
  error({ source = self.source, at = node.at, message = string.format(...), kind = kind }, 0)
end

function Scope:kind(value) return self.state.types.by_name[value.type].kind end

-- A node as a value of a dtype with that compute type. Bodies see types only.
function Scope:typed(node, dtype)
  if dtype == node.type or not self.keeps_dtypes then return node end
  return { node = node, type = node.type, dtype = dtype }
end

-- The value of an operation on values. dtype: the result's
function Scope:make(op, dtype, values, extra)
  local args = {}
  for k, value in ipairs(values) do args[k] = node_of(value) end
  return self:typed(self.state.dag:make(op, self.state.types.by_name[dtype].compute, args, extra), dtype)
end

---------------------------------------------------------------------------------------------------- values

-- A weak value in a dtype.
function Scope:strong(value, dtype, node)
  if not is_weak(value) then return value end
  if value.tree then return self:instantiate(value, dtype, node) end
  local t, number = self.state.types.by_name[dtype], value.weak
  if t.kind == "float" then
    number = weak_of.rounded(self.state.types.by_name[t.compute], number, value.is_pattern)
    return self:typed(self.state.dag:constant(t.compute, number), dtype)
  end
  if t.kind == "complex" then self:fail(node, "a number where %s is expected: give it as an operand", dtype) end
  if t.kind == "bool" then
    if number ~= 0 and number ~= 1 then self:fail(node, "%s is no bool", tostring(number)) end
    return self.state.dag:constant(dtype, number ~= 0 and 1 or 0)
  end
  if math.type(number) == "float" then self:fail(node, "a float literal where %s is expected: write a cast", dtype) end
  if not weak_of.fits(t, number) then self:fail(node, "%d does not fit %s", number, dtype) end
  return self.state.dag:constant(dtype, number)
end

-- A parameter, or an expression of parameters and numbers, in a dtype: every part of it.
function Scope:instantiate(tree, dtype, node)
  local t = self.state.types.by_name[dtype]
  if t.kind == "complex" then self:fail(node, "a parameter where %s is expected: give it as an operand", dtype) end
  if tree.is_float and t.kind ~= "float" then self:fail(node, "a float where %s is expected: write a cast", dtype) end
  local function build(value)
    if value.weak then return node_of(self:strong(value, dtype, node)) end
    if value.tree == "param" then
      return self.state.dag:node("param", t.compute, {}, { index = value.index, name = value.index .. "_" .. t.compute })
    end
    if t.kind == "bool" then self:fail(node, "arithmetic of a parameter where bool is expected: write a comparison") end
    local args = { build(value[1]) }
    args[2] = value[2] and build(value[2])
    return self.state.dag:make(value.tree, t.compute, args)
  end
  return self:typed(build(tree), dtype)
end

-- A value with an explicit cast: to a dtype with another compute type it is rounded, and computation goes on in the compute type.
function Scope:cast(value, type_name)
  local types, node = self.state.types, node_of(value)
  local t = types.by_name[type_name]
  if t.compute ~= type_name then
    local from = types.by_name[node.type]
    if from.kind == "float" and from.digits <= types.by_name[t.compute].digits then node = node_of(self:cast(node, t.compute)) end
    return self:typed(self.state.dag:make("round", t.compute, { node }, { name = type_name }), type_name)
  end
  if node.type == type_name then return node end
  return self.state.dag:make("cast", type_name, { node })
end

-- A value promoted to another dtype, in the compute type: nothing is rounded.
function Scope:promoted(value, dtype)
  return self:typed(node_of(self:cast(value, self.state.types.by_name[dtype].compute)), dtype)
end

-- The dtype that a float literal meets a dtype in.
function Scope:with_fractions(dtype)
  return self.state.types.by_name[dtype].floating
end

-- Two values brought to one dtype. Both weak: stays weak (returns nil).
function Scope:unify(a, b, node)
  if is_weak(a) and is_weak(b) then return nil end
  if is_weak(a) or is_weak(b) then
    local strong, weak = a, b
    if is_weak(a) then strong, weak = b, a end
    local meet = dtype_of(strong)
    if is_float(weak) then meet = self:with_fractions(meet) end
    if self:kind(strong) == "bool" and not is_float(weak) then
      self:fail(node, "bool with %s: compare with a condition, or cast: (i32)x",
                weak.weak and "the number " .. weak.weak or "a parameter")
    end
    strong, weak = self:promoted(strong, meet), self:strong(weak, meet, node)
    if is_weak(a) then return weak, strong end
    return strong, weak
  end
  local meet, why = promote.common(self.state.types, dtype_of(a), dtype_of(b))
  if not meet then self:fail(node, "%s", why) end
  return self:promoted(a, meet), self:promoted(b, meet)
end

-- A value as a condition: a node.
function Scope:condition(value, node)
  if value.weak then return self.state.dag:constant("bool", value.weak ~= 0 and 1 or 0) end
  value = node_of(self:settle(value, node))
  if value.type == "bool" then return value end
  local zero = self.state.dag:constant(value.type, self:kind(value) == "float" and 0.0 or 0)
  return self.state.dag:make("ne", "bool", { value, zero })
end

-- A weak value with no partner takes the body's own type.
function Scope:settle(value, node)
  if not is_weak(value) then return value end
  local fallback = self.default_type
  if not fallback then
    self:fail(node, "this has no dtype: %s the other operand's; write a cast, (f32)%s",
              value.tree and "parameters take" or "literals take", value.tree == "param" and value.name or value.tree and "(...)" or "1")
  end
  if math.type(value.weak) == "float" then fallback = self:with_fractions(fallback) end
  return self:strong(value, fallback, node)
end

-- Arguments brought to one dtype. final(dtype): the dtype to use for their common one, or an error. Without
-- arguments it is bool.
function Scope:unify_all(values, node, final)
  local types, meet = self.state.types, nil
  local has_float = false
  for _, value in ipairs(values) do
    if is_weak(value) then
      has_float = has_float or is_float(value)
    elseif not meet then
      meet = dtype_of(value)
    else
      local why
      meet, why = promote.common(types, meet, dtype_of(value))
      if not meet then self:fail(node, "%s", why) end
    end
  end
  if not meet then meet = values[1] and dtype_of(self:settle(values[1], node)) or "bool" end
  if has_float then meet = self:with_fractions(meet) end
  if final then meet = final(meet) end
  local result = {}
  for k, value in ipairs(values) do
    result[k] = is_weak(value) and self:strong(value, meet, node) or self:promoted(value, meet)
  end
  return result, meet
end

return M
