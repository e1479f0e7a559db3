-- The expression language's meaning: a body or a host's expression -> typed DAG. Types, weak literals, promotion,
-- inlining of functions and ops. Knows no C.

local parse = require "gen.parse"
local dag_of = require "gen.dag"
local promote = require "gen.promote"
local source = require "gen.source"

local M = {}

M.MAX_INLINE_DEPTH = 64
M.MAX_STEPS = 200000

local CONSTANTS = {
  PI = 0x1.921fb54442d18p+1, E = 0x1.5bf0a8b145769p+1, LN2 = 0x1.62e42fefa39efp-1, LN10 = 0x1.26bb1bbb55516p+1,
  LOG2E = 0x1.71547652b82fep+0, LOG10E = 0x1.bcb7b1526e50ep-2, SQRT2 = 0x1.6a09e667f3bcdp+0,
  SQRT1_2 = 0x1.6a09e667f3bcdp-1, INFINITY = math.huge, NAN = 0.0 / 0.0,
}

-- Weak values (literals, and what is computed of them alone) are { weak = number }; typed values are DAG nodes.
local function is_weak(value) return value.weak ~= nil end

local Scope = {}
Scope.__index = Scope

-- Throws an error at a syntax node of the body being read.
function Scope:fail(node, ...)
  error({ source = self.source, at = node.at, message = string.format(...) }, 0)
end

function Scope:kind(value) return self.state.types.by_name[value.type].kind end

-- A weak value as a node of a type.
function Scope:strong(value, type_name, node)
  if not is_weak(value) then return value end
  local t, number = self.state.types.by_name[type_name], value.weak
  if t.kind == "float" then return self.state.dag:constant(type_name, number + 0.0) end
  if t.kind == "bool" then
    if number ~= 0 and number ~= 1 then self:fail(node, "%s is no bool", tostring(number)) end
    return self.state.dag:constant(type_name, number ~= 0 and 1 or 0)
  end
  local integer = math.type(number) == "integer" and number or nil
  if not integer then self:fail(node, "a float literal where %s is expected: write a cast", type_name) end
  local low = t.signed and -(1 << (t.bits - 1)) or 0
  local high = t.bits == 64 and math.maxinteger or (1 << (t.signed and t.bits - 1 or t.bits)) - 1
  -- hex literals may name any bit pattern of the width
  if (integer < low or integer > high) and not (t.bits == 64 or (integer >= 0 and integer >> t.bits == 0)) then
    self:fail(node, "%d does not fit %s", integer, type_name)
  end
  return self.state.dag:constant(type_name, integer)
end

function Scope:cast(value, type_name)
  local types = self.state.types
  if value.type == type_name then return value end
  local t = types.by_name[type_name]
  if t.compute ~= type_name then -- f16, bf16: rounds, and goes on in the compute type
    local wide = value
    if types.by_name[value.type].kind ~= "float" or value.type == "f64" then
      return self.state.dag:make("round", t.compute, { wide }, { name = type_name })
    end
    return self.state.dag:make("round", t.compute, { self:cast(wide, t.compute) }, { name = type_name })
  end
  return self.state.dag:make("cast", type_name, { value })
end

-- Two values brought to one type. Both weak: stays weak (returns nil).
function Scope:unify(a, b, node)
  local types = self.state.types
  if is_weak(a) and is_weak(b) then return nil end
  if is_weak(a) or is_weak(b) then
    local strong, weak = a, b
    if is_weak(a) then strong, weak = b, a end
    local meet = strong.type
    if math.type(weak.weak) == "float" and self:kind(strong) ~= "float" then meet = "f32" end
    if self:kind(strong) == "bool" and math.type(weak.weak) == "integer" then
      self:fail(node, "bool with the number %d: compare with a condition, or cast: (i32)x", weak.weak)
    end
    strong, weak = self:cast(strong, meet), self:strong(weak, meet, node)
    if is_weak(a) then return weak, strong end
    return strong, weak
  end
  local meet, why = promote.common(types, a.type, b.type)
  if not meet then self:fail(node, "%s", why) end
  return self:cast(a, meet), self:cast(b, meet)
end

-- A value as a condition.
function Scope:condition(value, node)
  if is_weak(value) then return self.state.dag:constant("bool", value.weak ~= 0 and 1 or 0) end
  if value.type == "bool" then return value end
  local zero = self.state.dag:constant(value.type, self:kind(value) == "float" and 0.0 or 0)
  return self.state.dag:make("ne", "bool", { value, zero })
end

-- A weak value with no partner takes the body's own type.
function Scope:settle(value, node)
  if not is_weak(value) then return value end
  local fallback = self.default_type
  if not fallback then
    self:fail(node, "this has no dtype: literals take the other operand's; write a cast, (f32)1")
  end
  if math.type(value.weak) == "float" and self.state.types.by_name[fallback].kind ~= "float" then fallback = "f32" end
  return self:strong(value, fallback, node)
end

---------------------------------------------------------------------------------------------------- operators

local function weak_arithmetic(scope, op, a, b, node)
  local x, y = a.weak, b.weak
  if op == "/" then return { weak = x / y } end -- true division, as for operands
  local result
  if op == "+" then result = x + y elseif op == "-" then result = x - y elseif op == "*" then result = x * y end
  if math.type(x) == "integer" and math.type(y) == "integer" then
    local exact = op == "+" and (x + 0.0) + y or op == "-" and (x + 0.0) - y or (x + 0.0) * y
    if exact ~= result + 0.0 and math.abs(exact) >= 2.0 ^ 63 then
      scope:fail(node, "the number does not fit 64 bits")
    end
  end
  return { weak = result }
end

local ARITHMETIC = { ["+"] = "add", ["-"] = "sub", ["*"] = "mul", ["/"] = "div" }
local COMPARISON = { ["<"] = "lt", ["<="] = "le", [">"] = "gt", [">="] = "ge", ["=="] = "eq", ["!="] = "ne" }
local BITS = { ["&"] = "and", ["|"] = "or", ["^"] = "xor" }

function Scope:arithmetic(op, a, b, node)
  if is_weak(a) and is_weak(b) then return weak_arithmetic(self, op, a, b, node) end
  a, b = self:unify(a, b, node)
  local kind = self:kind(a)
  if kind == "bool" then
    self:fail(node, "'%s' of two bools: write &, | or ^, or cast one: (i32)x", op)
  end
  if op == "/" and kind == "integer" then
    a, b = self:cast(a, "f32"), self:cast(b, "f32")
  end
  return self.state.dag:make(ARITHMETIC[op], a.type, { a, b })
end

function Scope:compare(op, a, b, node)
  if is_weak(a) and is_weak(b) then
    a, b = self:settle(a, node), self:settle(b, node)
  end
  a, b = self:unify(a, b, node)
  return self.state.dag:make(COMPARISON[op], "bool", { a, b })
end

function Scope:bitwise(op, a, b, node)
  if is_weak(a) and is_weak(b) then
    if math.type(a.weak) ~= "integer" or math.type(b.weak) ~= "integer" then
      self:fail(node, "'%s' of floats", op)
    end
    local x, y = a.weak, b.weak
    if op == "&" then return { weak = x & y } elseif op == "|" then return { weak = x | y } end
    return { weak = x ~ y }
  end
  a, b = self:unify(a, b, node)
  local kind = self:kind(a)
  if kind == "float" then self:fail(node, "'%s' of floats: as_u32(x) or as_u64(x) gives the bits", op) end
  return self.state.dag:make(BITS[op], a.type, { a, b })
end

function Scope:shift(op, a, count, node)
  if is_weak(a) and is_weak(count) then
    local n = count.weak
    if math.type(a.weak) ~= "integer" or math.type(n) ~= "integer" or n < 0 or n > 62 then
      self:fail(node, "cannot shift these numbers")
    end
    return { weak = op == "<<" and a.weak << n or a.weak // (1 << n) }
  end
  a = self:settle(a, node)
  count = is_weak(count) and self:strong(count, a.type, node) or count
  if self:kind(a) ~= "integer" or self:kind(count) ~= "integer" then
    self:fail(node, "'%s' wants integers", op)
  end
  return self.state.dag:make(op == "<<" and "shl" or "shr", a.type, { a, self:shift_count(count, a.type) })
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

function Scope:eval_unary(node)
  local value = self:eval(node[1])
  if node.op == "!" then
    return self.state.dag:make("lnot", "bool", { self:condition(value, node) })
  elseif is_weak(value) then
    if node.op == "-" then return { weak = -value.weak } elseif node.op == "+" then return value end
    if math.type(value.weak) ~= "integer" then self:fail(node, "'~' of a float") end
    return { weak = ~value.weak }
  end
  local kind = self:kind(value)
  if node.op == "~" then
    if kind == "float" then self:fail(node, "'~' of a float: as_u32(x) or as_u64(x) gives the bits") end
    return self.state.dag:make(kind == "bool" and "lnot" or "not", value.type, { value })
  end
  if kind == "bool" then self:fail(node, "'%s' of a bool: write !x, or cast: (i32)x", node.op) end
  return node.op == "-" and self.state.dag:make("neg", value.type, { value }) or value
end

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
    if ARITHMETIC[op] then
      value = self:arithmetic(op, value, right, step)
    elseif COMPARISON[op] then
      value = self:compare(op, value, right, step)
    elseif BITS[op] then
      value = self:bitwise(op, value, right, step)
    elseif op == "<<" or op == ">>" then
      value = self:shift(op, value, right, step)
    else
      local a, b = self:condition(value, step), self:condition(right, step)
      value = self.state.dag:make(op == "&&" and "and" or "or", "bool", { a, b })
    end
  end
  return value
end

function Scope:select(condition, yes, no, node)
  condition = self:condition(condition, node)
  if is_weak(yes) and is_weak(no) then
    if math.type(yes.weak) ~= math.type(no.weak) then
      yes, no = { weak = yes.weak + 0.0 }, { weak = no.weak + 0.0 }
    end
    yes, no = self:settle(yes, node), self:settle(no, node)
  end
  yes, no = self:unify(yes, no, node)
  return self.state.dag:make("select", yes.type, { condition, yes, no })
end

---------------------------------------------------------------------------------------------------- primitives

-- Float functions of n arguments that are nodes of their own.
local FLOAT_PRIMITIVES = { sqrt = 1, rint = 1, floor = 1, ceil = 1, trunc = 1, copysign = 2, fma = 3 }
local NUMBER_PRIMITIVES = { abs = 1, maximum = 2, minimum = 2 }
-- Bit casts: result type, needs trust (raw_*: the bits of a NaN are whatever the hardware made)
local AS = { as_i32 = "i32", as_u32 = "u32", as_i64 = "i64", as_u64 = "u64", as_f32 = "f32", as_f64 = "f64" }
local RAW = { raw_i32 = "i32", raw_u32 = "u32", raw_i64 = "i64", raw_u64 = "u64" }

M.PRIMITIVES = { signbit = 1, lookup = 2 }
for _, set in ipairs { FLOAT_PRIMITIVES, NUMBER_PRIMITIVES } do
  for name, count in pairs(set) do M.PRIMITIVES[name] = count end
end
for _, set in ipairs { AS, RAW } do
  for name in pairs(set) do M.PRIMITIVES[name] = 1 end
end

-- Arguments brought to one type.
function Scope:unify_all(values, node)
  local types, meet = self.state.types, nil
  local has_float = false
  for _, value in ipairs(values) do
    if is_weak(value) then
      has_float = has_float or math.type(value.weak) == "float"
    elseif not meet then
      meet = value.type
    else
      local why
      meet, why = promote.common(types, meet, value.type)
      if not meet then self:fail(node, "%s", why) end
    end
  end
  if not meet then meet = self:settle(values[1], node).type end
  if has_float and types.by_name[meet].kind ~= "float" then meet = "f32" end
  local result = {}
  for k, value in ipairs(values) do
    result[k] = is_weak(value) and self:strong(value, meet, node) or self:cast(value, meet)
  end
  return result, meet
end

function Scope:primitive(name, values, node)
  local types, dag = self.state.types, self.state.dag
  if #values ~= M.PRIMITIVES[name] then
    self:fail(node, "%s takes %d argument%s, got %d", name, M.PRIMITIVES[name], M.PRIMITIVES[name] == 1 and "" or "s", #values)
  end
  if FLOAT_PRIMITIVES[name] or NUMBER_PRIMITIVES[name] or name == "signbit" then
    local meet
    values, meet = self:unify_all(values, node)
    local kind = types.by_name[meet].kind
    if kind == "bool" then self:fail(node, "%s of bool: cast it first, (i32)x", name) end
    if kind == "integer" and not NUMBER_PRIMITIVES[name] then
      for k = 1, #values do values[k] = self:cast(values[k], "f32") end
      meet = "f32"
    end
    if name == "signbit" then return dag:make("signbit", "bool", values) end
    return dag:make(name, meet, values)
  end
  local value = self:settle(values[1], node)
  if RAW[name] and not self.trusted then
    self:fail(node, "%s is for the library's own math; write %s", name, (name:gsub("raw", "as")))
  end
  local result = AS[name] or RAW[name]
  if types.by_name[result].bits ~= types.by_name[value.type].bits or self:kind(value) == "bool" then
    self:fail(node, "%s of %s: the sizes differ", name, value.type)
  end
  if self:kind(value) == "float" and types.by_name[result].kind == "integer" then
    return dag:make(RAW[name] and "raw" or "bits", result, { value })
  end
  if types.by_name[result].kind == "float" and self:kind(value) == "float" then return value end
  if types.by_name[result].kind == "float" then return dag:make("from_bits", result, { value }) end
  return dag:make("cast", result, { value })
end

function Scope:lookup(node)
  if #node.args ~= 2 then self:fail(node, "lookup takes a table and an index") end
  local name = node.args[1].kind == "name" and node.args[1].name
  local list = name and self.tables and self.tables[name]
  if not list then
    self:fail(node.args[1], "unknown table '%s'%s", source.shown(name or "?"), source.suggest(name or "", self.tables or {}))
  end
  local index, t = self:eval(node.args[2]), self.state.types.by_name[list.type]
  index = is_weak(index) and self:strong(index, t.bits == 64 and "i64" or "i32", node) or index
  local it = self.state.types.by_name[index.type]
  if it.kind ~= "integer" or it.bits ~= t.bits then
    self:fail(node, "the index of %s table %s must be a %d-bit integer", list.type, name, t.bits)
  end
  return self.state.dag:make("lookup", list.type, { index }, { name = list.place .. ":" .. name, table = list })
end

---------------------------------------------------------------------------------------------------- calls

-- A function of dsl/math (or of a spec) inlined.
function Scope:call_func(func, values, node)
  if #values ~= #func.args then
    self:fail(node, "%s takes %d argument%s, got %d", func.name, #func.args, #func.args == 1 and "" or "s", #values)
  end
  local generic, where = {}, {}
  for k, arg in ipairs(func.args) do
    if arg.type then
      values[k] = is_weak(values[k]) and self:strong(values[k], arg.type, node) or values[k]
      if values[k].type ~= arg.type then
        self:fail(node, "%s: argument %s is %s, expected %s", func.name, arg.name, values[k].type, arg.type)
      end
    else
      generic[#generic + 1], where[#where + 1] = values[k], k
    end
  end
  local T
  if #generic > 0 then
    generic, T = self:unify_all(generic, node)
    if not func.bodies[T] and not func.bodies.any then
      -- a float function of an integer computes in f32
      if self.state.types.by_name[T].kind ~= "float" and func.bodies.f32 then
        T = "f32"
        for k = 1, #generic do generic[k] = self:cast(generic[k], T) end
      else
        self:fail(node, "%s is not defined for %s", func.name, T)
      end
    end
    for k, value in ipairs(generic) do values[where[k]] = value end
  end
  local env = {}
  for k, arg in ipairs(func.args) do env[arg.name] = values[k] end
  local body = func.bodies[T or ""] or func.bodies.any
  if not body then
    T = func.result or "f32"
    body = func.bodies[T]
    if not body then self:fail(node, "%s has no body for this call", func.name) end
  end
  local result = self:inline(func, body, env, values, T, func, node)
  local wanted = func.result or T
  if wanted and is_weak(result) then result = self:strong(result, wanted, node) end
  if wanted and result.type ~= wanted then
    self:fail(node, "%s gives %s, declared %s", func.name, result.type, wanted)
  end
  return result
end

-- An op used inside a body: its promotion, then its body.
function Scope:call_op(op, values, node)
  local types = self.state.types
  if #values ~= #op.inputs then
    self:fail(node, "%s takes %d argument%s, got %d", op.name, #op.inputs, #op.inputs == 1 and "" or "s", #values)
  end
  if op.casts then self:fail(node, "%s is no part of an expression: write a cast, (f32)x", op.name) end
  local promoted, where = {}, {}
  for k, input in ipairs(op.inputs) do
    if input.type == "bool" then
      values[k] = self:condition(values[k], node)
    else
      promoted[#promoted + 1], where[#where + 1] = values[k], k
    end
  end
  local T
  promoted, T = self:unify_all(promoted, node)
  local K = M.compute_type(types, op, T)
  if not K then self:fail(node, "%s does not take %s", op.name, T) end
  if op.moves then K = T end
  for k, value in ipairs(promoted) do values[where[k]] = self:cast(value, K) end
  local env = {}
  for k, input in ipairs(op.inputs) do env[input.name] = values[k] end
  for _, param in ipairs(op.params) do env[param.name] = self:strong({ weak = param.value }, K, node) end
  local body = M.body_of(types, op, K)
  if not body then self:fail(node, "%s has no body for %s", op.name, K) end
  return self:inline(op, body, env, values, K, op, node)
end

-- Runs a body with an environment; the same function on the same nodes is inlined once.
function Scope:inline(owner, body, env, values, T, scope_of, node)
  local state = self.state
  local key = { tostring(owner), T or "" }
  for _, value in ipairs(values) do key[#key + 1] = value.id end
  key = table.concat(key, " ")
  if state.inlined[key] then return state.inlined[key] end
  if state.active[owner] then self:fail(node, "%s calls itself", owner.name) end
  if state.depth >= M.MAX_INLINE_DEPTH then self:fail(node, "calls nested deeper than %d", M.MAX_INLINE_DEPTH) end
  state.active[owner], state.depth = true, state.depth + 1
  local scope = setmetatable({ state = state, source = body, env = env, T = T, default_type = T, owner = owner,
                               constants = scope_of.constants, tables = scope_of.tables, trusted = owner.builtin }, Scope)
  local result = scope:run()
  state.active[owner], state.depth = nil, state.depth - 1
  state.inlined[key] = result
  return result
end

function Scope:eval_call(node)
  if node.name == "lookup" then return self:lookup(node) end
  local values = {}
  for k, arg in ipairs(node.args) do values[k] = self:eval(arg) end
  local model = self.state.model
  local func, op = model.func_of_name[node.name], model.op_of_name[node.name]
  if M.PRIMITIVES[node.name] then
    return self:primitive(node.name, values, node)
  end
  if func and not func.builtin and self.trusted then func = nil end
  if func then return self:call_func(func, values, node) end
  if op and op ~= self.owner then return self:call_op(op, values, node) end
  if op then self:fail(node, "%s calls itself", node.name) end
  local known = {}
  for name in pairs(M.PRIMITIVES) do known[name] = true end
  for name in pairs(model.op_of_name) do known[name] = true end
  for name in next, model.func_of_name do known[name] = true end
  self:fail(node, "unknown function '%s'%s", source.shown(node.name), source.suggest(node.name, known))
end

---------------------------------------------------------------------------------------------------- bodies

-- One step of work; a limit on all of them.
function Scope:step(node)
  self.state.steps = self.state.steps + 1
  if self.state.steps > M.MAX_STEPS then self:fail(node, "more than %d steps of work", M.MAX_STEPS) end
end

function Scope:eval(node)
  self:step(node)
  local kind = node.kind
  if kind == "number" then return { weak = node.value } end
  if kind == "name" then
    local value = self.env[node.name]
    if value then return value end
    local number = self.constants and self.constants[node.name] or CONSTANTS[node.name]
    if number then return { weak = number } end
    local known = {}
    for name in pairs(self.env) do known[name] = true end
    for name in pairs(self.constants or {}) do known[name] = true end
    for name in pairs(CONSTANTS) do known[name] = true end
    self:fail(node, "unknown name '%s'%s", source.shown(node.name), source.suggest(node.name, known))
  end
  if kind == "binary" then return self:eval_binary(node) end
  if kind == "unary" then return self:eval_unary(node) end
  if kind == "call" then return self:eval_call(node) end
  if kind == "select" then
    local condition, yes, no = self:eval(node[1]), self:eval(node[2]), self:eval(node[3])
    return self:select(condition, yes, no, node)
  end
  local type_name = self:type_of(node.type, node)
  local value = self:eval(node[1])
  if is_weak(value) then
    -- a literal cast directly keeps its value up to that one rounding
    local kind_of_type = self.state.types.by_name[type_name].kind
    if math.type(value.weak) == "integer" or kind_of_type == "float" then
      local t = self.state.types.by_name[type_name]
      if t.compute == type_name then return self:strong(value, type_name, node) end
      return self:cast(self:strong(value, t.compute, node), type_name)
    end
    value = self:strong(value, "f64", node)
  end
  return self:cast(value, type_name)
end

function Scope:type_of(name, node)
  if name ~= "T" then return name end
  if not self.T then self:fail(node, "T has no meaning here") end
  return self.T
end

-- The value of `type name = expression;`
function Scope:assigned(statement)
  local value = self:eval(statement.value)
  if not statement.type then return value end
  local type_name = self:type_of(statement.type, statement)
  local t = self.state.types.by_name[type_name]
  if is_weak(value) then value = self:strong(value, t.compute, statement) end
  if value.type ~= type_name and t.kind ~= "float" and self:kind(value) == "float" then
    self:fail(statement, "%s %s = a %s: write the cast, (%s)", type_name, statement.name, value.type, type_name)
  end
  return self:cast(value, type_name)
end

function Scope:run_rare(statement)
  local condition = self:condition(self:eval(statement.condition), statement)
  local inner = setmetatable({ env = setmetatable({}, { __index = self.env }) }, { __index = self })
  local changed = {}
  for _, assign in ipairs(statement.statements) do
    local value = Scope.assigned(inner, assign)
    if assign.type then
      if inner.env[assign.name] then self:fail(assign, "'%s' is already defined", assign.name) end
    else
      local old = self.env[assign.name]
      if not old then
        self:fail(assign, "'%s' is not a local of this body%s", source.shown(assign.name),
                  source.suggest(assign.name, self.env))
      end
      if is_weak(value) then value = self:strong(value, is_weak(old) and self:settle(old, assign).type or old.type, assign) end
      changed[#changed + 1] = { name = assign.name, value = value, old = old, at = assign.at }
    end
    rawset(inner.env, assign.name, value)
  end
  local last = {}
  for _, change in ipairs(changed) do last[change.name] = change end
  for _, change in ipairs(changed) do
    if last[change.name] == change then
      local old = self:settle(change.old, change)
      if old.type ~= change.value.type then
        self:fail(change, "rare: %s is %s, its new value %s", change.name, old.type, change.value.type)
      end
      self.env[change.name] = self.state.dag:make("rare", old.type, { condition, change.value, old })
    end
  end
end

-- Parses (once per text) and evaluates the body: its result, and for host expressions the assigned names in order.
function Scope:run()
  local body = self.state.parsed[self.source]
  if not body then
    local ok, result = pcall(parse.parse, self.source.text, self.state.types.by_name)
    if not ok then
      if type(result) ~= "table" then error(result, 0) end
      result.source = self.source
      error(result, 0)
    end
    body = result
    self.state.parsed[self.source] = body
  end
  for _, statement in ipairs(body.statements) do
    self:step(statement)
    if statement.kind == "rare" then
      self:run_rare(statement)
    elseif statement.kind == "param" then
      self:fail(statement, "param belongs to a host's expression; an op lists its params")
    else
      if self.env[statement.name] then self:fail(statement, "'%s' is already defined", statement.name) end
      self.env[statement.name] = self:assigned(statement)
    end
  end
  if not body.result then
    self:fail({ at = #self.source.text + 1 }, "the body has no result: end it with return ...;")
  end
  return self:settle(self:eval(body.result), body.result)
end

---------------------------------------------------------------------------------------------------- entry points

-- The type an op computes in when its promoted dtype is T, or nil when it does not take T.
function M.compute_type(types, op, T)
  local taken = {}
  for _, name in ipairs(op.dtypes) do taken[name] = true end
  local t = types.by_name[T]
  if not taken[T] then
    -- float-only functions of integers and bool: f32
    if (t.kind == "integer" or t.kind == "bool") and M.is_floating(types, op) and taken.f32 then return "f32" end
    return nil
  end
  return t.compute
end

-- Whether an op takes floats only.
function M.is_floating(types, op)
  for _, name in ipairs(op.dtypes) do
    if types.by_name[name].kind ~= "float" then return false end
  end
  return true
end

-- The body of an op for a compute type: the dtype's own, its kind's, the one for all.
function M.body_of(types, op, K)
  local t = types.by_name[K]
  local kind = t.kind == "float" and "floating" or t.kind
  return op.bodies[K] or op.bodies[kind] or op.bodies.any
end

-- What a run of the language needs beside the body.
function M.new_state(model)
  return { model = model, types = model.types, dag = dag_of.new(model.types), inlined = {}, active = {}, parsed = {},
           depth = 0, steps = 0 }
end

-- The DAG of an op computed in K: inputs and params as nodes "input" and "param". Returns
-- { dag, inputs, params, outputs = { node } } or nil and an error string.
function M.op_dag(model, op, K)
  local state = M.new_state(model)
  local types = model.types
  local value_type = types.by_name[K].kind == "bits" and "u" .. types.by_name[K].bits or K
  local env, inputs, params = {}, {}, {}
  for k, input in ipairs(op.inputs) do
    local type_name = input.type or value_type
    inputs[k] = state.dag:node("input", type_name, {}, { value = k, name = input.name })
    env[input.name] = inputs[k]
  end
  for k, param in ipairs(op.params) do
    params[k] = state.dag:node("param", value_type, {}, { value = k, name = param.name })
    env[param.name] = params[k]
  end
  local body = M.body_of(types, op, K)
  if not body then return nil, string.format("%s: %s: no body for %s", op.place, op.name, K) end
  local scope = setmetatable({ state = state, source = body, env = env, T = value_type, default_type = value_type,
                               owner = op, constants = {}, tables = {}, trusted = op.builtin }, Scope)
  local ok, result = pcall(function()
    local value = scope:run()
    local wanted = op.result or value_type
    if wanted == "bool" then
      if value.type ~= "bool" then
        scope:fail({ at = 1 }, "%s: the body gives %s, declared bool", op.name, value.type)
      end
    elseif value.type ~= wanted then
      scope:fail({ at = 1 }, "%s: for %s the body gives %s", op.name, wanted, value.type)
    end
    return value
  end)
  if not ok then
    if type(result) ~= "table" then error(result, 0) end
    return nil, source.message(result.source or body, result.at or 1, string.format("%s: %s", op.name, result.message))
  end
  return { dag = state.dag, inputs = inputs, params = params, outputs = { result }, type = K }
end

return M
