-- SPDX-License-Identifier: Apache-2.0
--
-- The operators of the language, as scope.lua's methods, for values with a dtype and weak ones.

local primitives = require "gen.graph.dag.primitives"
local promote = require "gen.front.promote"
local scope = require "gen.graph.body.scope"
local weak_of = require "gen.graph.body.weak"

local Scope, dtype_of = scope.Scope, scope.dtype_of
local is_weak, is_float = weak_of.is_weak, weak_of.is_float

-- A weak result, or the error of it.
function Scope:checked(node, result, message)
  if not result then self:fail(node, "%s", message) end
  return result
end

-- The integer dtype in which two operands meet, one of which may be weak; nil if it is none.
function Scope:common_integer(a, b)
  local meet
  if is_weak(a) or is_weak(b) then
    meet = dtype_of(is_weak(a) and b or a)
  else
    meet = promote.common(self.state.types, dtype_of(a), dtype_of(b))
  end
  return meet and self.state.types.by_name[meet].kind == "integer" and meet or nil
end

function Scope:arithmetic(op, a, b, node)
  if is_weak(a) and is_weak(b) then return self:checked(node, weak_of.arithmetic(op, a, b)) end
  local integer = op == "/" and self:common_integer(a, b)
  if integer then
    -- before promotion: a weak value becomes a float at once
    local float = self.state.types.by_name[integer].floating
    if not is_weak(a) then a = self:cast(a, float) end
    if not is_weak(b) then b = self:cast(b, float) end
  end
  a, b = self:unify(a, b, node)
  if self:kind(a) == "bool" then
    self:fail(node, "'%s' of two bools: write &, | or ^, or cast one: (i32)x", op)
  end
  return self:make(primitives.of_operator[op].name, dtype_of(a), { a, b })
end

function Scope:compare(op, a, b, node)
  local literal = self:literal_compare(op, a, b)
  if literal then return literal end
  if is_weak(a) and is_weak(b) then
    a, b = self:settle(a, node), self:settle(b, node)
  end
  a, b = self:unify(a, b, node)
  return self:make(primitives.of_operator[op].name, "bool", { a, b })
end

function Scope:bitwise(op, a, b, node)
  if is_weak(a) and is_weak(b) then
    if a.tree or b.tree then self:settle(a.tree and a or b, node) end
    return self:checked(node, weak_of.bitwise(op, a, b))
  end
  a, b = self:unify(a, b, node)
  local kind = self:kind(a)
  if kind == "float" then
    self:fail(node, "'%s' of floats: %sas_u32(x) or as_u64(x) gives the bits", op, op == "^" and "a power is pow(x, y); " or "")
  end
  local literal = self:literal_logic(primitives.of_operator[op].name, a, b)
  if literal then return literal end
  return self:make(primitives.of_operator[op].name, dtype_of(a), { a, b })
end

function Scope:shift(op, a, count, node)
  if a.weak and count.weak then return self:checked(node, weak_of.shift(op, a, count)) end
  a = self:settle(a, node)
  if self:kind(a) ~= "integer" then self:fail(node, "'%s' wants integers", op) end
  count = self:strong(count, a.type, node)
  if self:kind(count) ~= "integer" then self:fail(node, "'%s' wants integers", op) end
  return self.state.dag:make(primitives.of_operator[op].name, a.type, { a, self:shift_count(count, a.type) })
end

-- A shift count in the type that is shifted; one that is outside the width stays outside.
function Scope:shift_count(count, type_name)
  if count.type == type_name then return count end
  local dag, types = self.state.dag, self.state.types
  local from, to = types.by_name[count.type], types.by_name[type_name]
  local outside = dag:constant(type_name, to.bits)
  if count.op == "const" then
    return (count.value < 0 or count.value >= to.bits) and outside or dag:constant(type_name, count.value)
  end
  local is_outside = dag:make("ge", "bool", { count, dag:constant(count.type, to.bits) })
  if from.signed then
    is_outside = dag:make("or", "bool", { is_outside, dag:make("lt", "bool", { count, dag:constant(count.type, 0) }) })
  end
  return dag:make("select", type_name, { is_outside, outside, self:cast(count, type_name) })
end

-- The opposite of a condition.
function Scope:opposite(value)
  local is_constant, holds = self:constant_condition(value)
  if is_constant then return self:given_condition(not holds) end
  return self:make("lnot", "bool", { value })
end

function Scope:eval_unary(node)
  local value = self:eval(node[1])
  if node.op == "!" then
    return self:opposite(self:condition(value, node))
  elseif is_weak(value) then
    if node.op == "+" then return value end
    if node.op == "-" then return weak_of.negative(value) end
    if value.tree then self:settle(value, node) end
    if math.type(value.weak) ~= "integer" then self:fail(node, "'~' of a float") end
    return { weak = ~value.weak }
  end
  local kind = self:kind(value)
  if node.op == "~" then
    if kind == "float" then self:fail(node, "'~' of a float: as_u32(x) or as_u64(x) gives the bits") end
    if kind == "bool" then return self:opposite(value) end
    return self:make("not", value.type, { value })
  end
  if kind == "bool" then self:fail(node, "'%s' of a bool: write !x, or cast: (i32)x", node.op) end
  return node.op == "-" and self:make("neg", dtype_of(value), { value }) or value
end

-- The method that evaluates an operator, by `takes` of its primitive.
local METHOD_OF = { number = "arithmetic", float = "arithmetic", any = "compare", bits = "bitwise", integer = "shift" }

function Scope:eval_binary(node)
  -- long chains lean to the left: walk down, then fold up
  local chain, left = {}, node
  while left.kind == "binary" do
    chain[#chain + 1] = left
    left = left[1]
  end
  local value = self:eval(left)
  for k = #chain, 1, -1 do
    local step = chain[k]
    self:step(step)
    local right, op = self:eval(step[2]), step.op
    local row = primitives.of_operator[op]
    if row then
      value = self[METHOD_OF[row.takes]](self, op, value, right, step)
    else
      local a, b = self:condition(value, step), self:condition(right, step)
      local name = op == "&&" and "and" or "or"
      value = self:literal_logic(name, a, b) or self.state.dag:make(name, "bool", { a, b })
    end
  end
  return value
end

function Scope:select(condition, yes, no, node)
  condition = self:condition(condition, node)
  local literal = self:literal_choice(condition, yes, no)
  if literal then return literal end
  if is_weak(yes) and is_weak(no) then
    if is_float(yes) then no = weak_of.as_float(no) elseif is_float(no) then yes = weak_of.as_float(yes) end
    yes, no = self:settle(yes, node), self:settle(no, node)
  end
  yes, no = self:unify(yes, no, node)
  return self:make("select", dtype_of(yes), { condition, yes, no })
end

return Scope
