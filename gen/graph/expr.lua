-- The expression language's meaning: a body -> typed DAG. Types, promotion, inlining of functions and ops. Numbers without a
-- dtype are weak.lua's; what a host's expression has beyond a body is in host.lua. Knows no C.

local parse = require "gen.front.parse"
local dag_of = require "gen.graph.dag"
local primitives = require "gen.graph.primitives"
local promote = require "gen.front.promote"
local source = require "gen.base.source"
local number_of = require "gen.base.number"
local weak_of = require "gen.graph.weak"

local M = {}

M.MAX_INLINE_DEPTH = 64
M.MAX_STEPS = 200000

local CONSTANTS = {
  PI = 0x1.921fb54442d18p+1, E = 0x1.5bf0a8b145769p+1, LN2 = 0x1.62e42fefa39efp-1, LN10 = 0x1.26bb1bbb55516p+1,
  LOG2E = 0x1.71547652b82fep+0, LOG10E = 0x1.bcb7b1526e50ep-2, SQRT2 = 0x1.6a09e667f3bcdp+0,
  SQRT1_2 = 0x1.6a09e667f3bcdp-1, INFINITY = math.huge, NAN = 0.0 / 0.0,
}
M.CONSTANTS = CONSTANTS

-- A value is weak, or a DAG node, or { node, type, dtype } where its dtype is not the type that it is computed in: only in a
-- host's expression, whose f16 are f32 while they are computed with.
local is_weak, is_float = weak_of.is_weak, weak_of.is_float
local function node_of(value) return value.node or value end
local function dtype_of(value) return value.dtype or value.type end

local Scope = {}
Scope.__index = Scope
M.Scope = Scope

-- Throws an error at a syntax node of the body being read. What it is about is the dtypes, unless `kind` says otherwise:
-- "syntax", "limit".
function Scope:fail(node, ...)
  error({ source = self.source, at = node.at, message = string.format(...) }, 0)
end

function Scope:fail_as(kind, node, ...)
  error({ source = self.source, at = node.at, message = string.format(...), kind = kind }, 0)
end

function Scope:kind(value) return self.state.types.by_name[value.type].kind end

-- A node as a value of a dtype that computes in its type. Bodies see types only.
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

-- A weak value in a dtype.
function Scope:strong(value, dtype, node)
  if not is_weak(value) then return value end
  if value.tree then return self:instantiate(value, dtype, node) end
  local t, number = self.state.types.by_name[dtype], value.weak
  if t.kind == "float" then
    number = weak_of.rounded(self.state.types.by_name[t.compute], number, value.is_pattern)
    return self:typed(self.state.dag:constant(t.compute, number), dtype)
  end
  if t.kind == "bool" then
    if number ~= 0 and number ~= 1 then self:fail(node, "%s is no bool", tostring(number)) end
    return self.state.dag:constant(dtype, number ~= 0 and 1 or 0)
  end
  if math.type(number) == "float" then self:fail(node, "a float literal where %s is expected: write a cast", dtype) end
  if not weak_of.fits(t, number) then self:fail(node, "%d does not fit %s", number, dtype) end
  return self.state.dag:constant(dtype, number)
end

-- A parameter, and what is computed of parameters and numbers, in a dtype: all of it.
function Scope:instantiate(tree, dtype, node)
  local t = self.state.types.by_name[dtype]
  if tree.is_float and t.kind ~= "float" then self:fail(node, "a float where %s is expected: write a cast", dtype) end
  local function build(value)
    if value.weak then return node_of(self:strong(value, dtype, node)) end
    if value.tree == "param" then
      return self.state.dag:node("param", t.compute, {}, { value = value.index, name = value.index .. "_" .. t.compute })
    end
    if t.kind == "bool" then self:fail(node, "arithmetic of a parameter where bool is expected: write a comparison") end
    local args = { build(value[1]) }
    args[2] = value[2] and build(value[2])
    return self.state.dag:make(value.tree, t.compute, args)
  end
  return self:typed(build(tree), dtype)
end

-- A value cast as it is written: to f16 and bf16 it rounds, and goes on in the compute type.
function Scope:cast(value, type_name)
  local types, node = self.state.types, node_of(value)
  local t = types.by_name[type_name]
  if t.compute ~= type_name then
    if types.by_name[node.type].kind == "float" and node.type ~= "f64" then node = node_of(self:cast(node, t.compute)) end
    return self:typed(self.state.dag:make("round", t.compute, { node }, { name = type_name }), type_name)
  end
  if node.type == type_name then return node end
  return self.state.dag:make("cast", type_name, { node })
end

-- A value in another dtype, that it is promoted to: nothing is rounded to f16 or bf16.
function Scope:promoted(value, dtype)
  return self:typed(node_of(self:cast(value, self.state.types.by_name[dtype].compute)), dtype)
end

-- Two values brought to one dtype. Both weak: stays weak (returns nil).
function Scope:unify(a, b, node)
  if is_weak(a) and is_weak(b) then return nil end
  if is_weak(a) or is_weak(b) then
    local strong, weak = a, b
    if is_weak(a) then strong, weak = b, a end
    local meet = dtype_of(strong)
    if is_float(weak) and self:kind(strong) ~= "float" then meet = "f32" end
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
  if math.type(value.weak) == "float" and self.state.types.by_name[fallback].kind ~= "float" then fallback = "f32" end
  return self:strong(value, fallback, node)
end

---------------------------------------------------------------------------------------------------- operators

-- A weak result, or the error of it.
function Scope:checked(node, result, message)
  if not result then self:fail(node, "%s", message) end
  return result
end

-- Whether two operands, one of which may be weak, meet in an integer.
function Scope:are_integers(a, b)
  if is_weak(a) then return self:kind(b) == "integer" end
  if is_weak(b) then return self:kind(a) == "integer" end
  local meet = promote.common(self.state.types, dtype_of(a), dtype_of(b))
  return meet ~= nil and self.state.types.by_name[meet].kind == "integer"
end

function Scope:arithmetic(op, a, b, node)
  if is_weak(a) and is_weak(b) then return self:checked(node, weak_of.arithmetic(op, a, b)) end
  if op == "/" and self:are_integers(a, b) then
    -- before they meet: what is weak is an f32 at once
    if not is_weak(a) then a = self:cast(a, "f32") end
    if not is_weak(b) then b = self:cast(b, "f32") end
  end
  a, b = self:unify(a, b, node)
  if self:kind(a) == "bool" then
    self:fail(node, "'%s' of two bools: write &, | or ^, or cast one: (i32)x", op)
  end
  return self:make(primitives.of_operator[op].name, dtype_of(a), { a, b })
end

function Scope:compare(op, a, b, node)
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
  if kind == "float" then self:fail(node, "'%s' of floats: as_u32(x) or as_u64(x) gives the bits", op) end
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

function Scope:eval_unary(node)
  local value = self:eval(node[1])
  if node.op == "!" then
    return self.state.dag:make("lnot", "bool", { self:condition(value, node) })
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
    return self:make(kind == "bool" and "lnot" or "not", value.type, { value })
  end
  if kind == "bool" then self:fail(node, "'%s' of a bool: write !x, or cast: (i32)x", node.op) end
  return node.op == "-" and self:make("neg", dtype_of(value), { value }) or value
end

-- What evaluates an operator, by what its primitive takes.
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
      value = self.state.dag:make(op == "&&" and "and" or "or", "bool", { a, b })
    end
  end
  return value
end

function Scope:select(condition, yes, no, node)
  condition = self:condition(condition, node)
  if is_weak(yes) and is_weak(no) then
    if is_float(yes) then no = weak_of.as_float(no) elseif is_float(no) then yes = weak_of.as_float(yes) end
    yes, no = self:settle(yes, node), self:settle(no, node)
  end
  yes, no = self:unify(yes, no, node)
  return self:make("select", dtype_of(yes), { condition, yes, no })
end

---------------------------------------------------------------------------------------------------- primitives

M.PRIMITIVES = {} -- those that a body may call by name -> how many arguments
for name, func in pairs(primitives.functions) do M.PRIMITIVES[name] = func.arguments end

-- Arguments brought to one dtype. final(dtype): what becomes of the dtype they meet in, or an error. There may be no
-- arguments: they meet in bool.
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
  if has_float and types.by_name[meet].kind ~= "float" then meet = "f32" end
  if final then meet = final(meet) end
  local result = {}
  for k, value in ipairs(values) do
    result[k] = is_weak(value) and self:strong(value, meet, node) or self:promoted(value, meet)
  end
  return result, meet
end

function Scope:primitive(name, values, node)
  local types, dag, func = self.state.types, self.state.dag, primitives.functions[name]
  if #values ~= func.arguments then
    self:fail_as("syntax", node, "%s takes %d argument%s, got %d", name, func.arguments, func.arguments == 1 and "" or "s", #values)
  end
  local takes = func.takes
  if takes then
    local meet
    values, meet = self:unify_all(values, node, function(dtype)
      local kind = types.by_name[dtype].kind
      if kind == "bool" then self:fail(node, "%s of bool: cast it first, (i32)x", name) end
      if kind == "float" and takes == "integer" then self:fail(node, "%s of %s: it takes integers", name, dtype) end
      return kind == "integer" and takes == "float" and "f32" or dtype
    end)
    if takes == "whole" and types.by_name[meet].kind == "integer" then return values[1] end
    return self:make(name, func.result or meet, values)
  end
  local value = self:settle(values[1], node)
  if func.is_trusted and not self.trusted then
    self:fail(node, "%s is for the library's own math; write %s", name, (name:gsub("raw", "as")))
  end
  local result = func.as
  if types.by_name[result].bits ~= types.by_name[dtype_of(value)].bits or self:kind(value) == "bool" then
    self:fail(node, "%s of %s: the sizes differ", name, dtype_of(value))
  end
  if self:kind(value) == "float" and types.by_name[result].kind == "integer" then
    return dag:make(func.node, result, { value })
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
  if self.state.exact and self.state.exact[func.name] then
    return self.state.dag:node("exact", T, values, { name = func.name })
  end
  local env = {}
  for k, arg in ipairs(func.args) do env[arg.name] = values[k] end
  local body = func.bodies[T or ""] or func.bodies.any
  if not body then
    T = func.result or "f32"
    body = func.bodies[T]
    if not body then self:fail(node, "%s has no body for this call", func.name) end
  end
  local result = self:inline(func, body, env, values, T, node)
  local wanted = func.result or T
  if wanted and is_weak(result) then result = self:strong(result, wanted, node) end
  if wanted and result.type ~= wanted then
    self:fail(node, "%s gives %s, declared %s", func.name, result.type, wanted)
  end
  return result
end

-- A weak value as a parameter of an op that computes in a type: a lone number that an integer cannot hold saturates.
function Scope:param(op, param, value, type_name, node)
  local t = self.state.types.by_name[type_name]
  if not is_weak(value) then
    self:fail(node, "%s: %s is a parameter: a number%s, no operand", op.name, param.name, self.keeps_dtypes and " or a param" or "")
  end
  if value.tree or t.kind == "float" then return node_of(self:strong(value, type_name, node)) end
  if t.kind == "bool" then return self.state.dag:constant(type_name, value.weak ~= 0 and 1 or 0) end
  local number = weak_of.saturated(t, value.weak, value.is_pattern)
  if not number then
    self:fail(node, "%s: parameter %s is %s, which is no %s", op.name, param.name, number_of.text(value.weak), type_name)
  end
  return self.state.dag:constant(type_name, number)
end

-- What a body gives for an output, in the type that it must have. wanted: of the output
function Scope:given(owner, value, wanted, node)
  local type_name = self.state.types.by_name[wanted].compute
  if is_weak(value) then value = self:strong(value, type_name, node) end
  if value.type ~= type_name then self:fail(node, "%s: the body gives %s, declared %s", owner, value.type, wanted) end
  return value
end

-- An operand of an op with kernels of D, which is computed in another type: a number of D, in that type.
function Scope:operand(value, D)
  local node = node_of(value)
  if node.op == "input" and dtype_of(value) == D then return node end
  return node_of(self:cast(value, D))
end

-- An op used inside a body or an expression: its promotion, then its body. which: of its outputs
function Scope:call_op(op, values, node, which)
  local types = self.state.types
  local n_in, n_params = #op.inputs, #op.params
  if #values < n_in or #values > n_in + n_params then
    self:fail_as("syntax", node, "%s takes %d argument%s%s, got %d", op.name, n_in, n_in == 1 and "" or "s",
              n_params > 0 and string.format(" and %d parameter%s", n_params, n_params == 1 and "" or "s") or "", #values)
  end
  if op.finds then
    self:fail_as("syntax", node, "%s is no part of an expression: its output's shape depends on values; call it by itself",
                 op.name)
  end
  if op.casts then
    local instead = n_in == 0 and "write the number" or "write a cast, (f32)x"
    if op.casts == "saturate" then instead = "a cast wraps; clip before it: (i8)clip(x, -128, 127)" end
    self:fail_as("syntax", node, "%s is no part of an expression: %s", op.name, instead)
  end
  if op.index then
    self:fail_as("syntax", node, "%s is no part of an expression: its elements follow from where they stand; call it by itself",
                 op.name)
  end
  local nodes, operands, where = {}, {}, {}
  for k, input in ipairs(op.inputs) do
    if input.type == "bool" then
      nodes[k] = self:condition(values[k], node)
    else
      operands[#operands + 1], where[#where + 1] = values[k], k
    end
  end
  if #op.outputs > 1 and not which then
    local words = {}
    for k, output in ipairs(op.outputs) do words[k] = string.format("%s.%s(...)", op.name, output.name) end
    self:fail_as("syntax", node, "%s has %d outputs: write %s", op.name, #words, table.concat(words, " or "))
  end
  local D, K, T
  local function finally(dtype)
    K = M.compute_type(types, op, dtype)
    if K and types.by_name[dtype].kind ~= "float" and M.is_floating(types, op) then dtype = "f32" end
    if not K or (self.keeps_dtypes and not types.by_name[dtype].built) then
      self:fail(node, "%s does not take %s", op.name, dtype)
    end
    T = types.by_name[K].compute
    return dtype
  end
  if M.is_double(op) then
    K, T, D = "f64", "f64", "f64"
    for k, value in ipairs(operands) do
      operands[k] = is_weak(value) and self:strong(value, D, node) or self:promoted(value, D)
    end
  else
    operands, D = self:unify_all(operands, node, finally)
  end
  for k, value in ipairs(operands) do
    local given = values[where[k]]
    nodes[where[k]] = K == T and node_of(value) or self:operand(is_weak(given) and value or given, D)
  end
  local env = {}
  for k, input in ipairs(op.inputs) do env[input.name] = nodes[k] end
  for k, param in ipairs(op.params) do
    nodes[n_in + k] = self:param(op, param, values[n_in + k] or { weak = param.value }, T, node)
    env[param.name] = nodes[n_in + k]
  end
  if self.state.exact and self.state.exact[op.name] then
    return self:typed(self.state.dag:node("exact", K, nodes, { name = op.name }), D)
  end
  return self:typed(self:call_body(op, K, env, nodes, which or 1, node), op.outputs[which or 1].type or D)
end

-- The body of an op computed in K, on nodes: the node of one of its outputs. A number of a dtype of its own is one, rounded.
function Scope:call_body(op, K, env, nodes, which, node)
  local body, output = M.body_of(self.state.types, op, K), op.outputs[which]
  if not body then self:fail(node, "%s has no body for %s", op.name, K) end
  local result = self:inline(op, body, env, nodes, K, node)
  if op.assigns then result = result[which] end
  return node_of(self:cast(self:given(op.name, result, output.type or K, node), output.type or K))
end

-- The scope of a body: what its names mean (env), and its type.
function Scope:of_body(owner, body, env, T)
  return setmetatable({ state = self.state, source = body, env = env, T = T, default_type = T, owner = owner,
                        constants = owner.constants, tables = owner.tables, trusted = owner.builtin }, Scope)
end

-- Runs a body with an environment; the same function on the same nodes is inlined once. In a graph of units it becomes one.
function Scope:inline(owner, body, env, values, T, node)
  local state = self.state
  if state.has_units then
    local list = {}
    for k, output in ipairs(owner.outputs or { { type = owner.result } }) do
      local unit = { owner = owner, body = body, env = env, T = T, at = node, which = k }
      list[k] = state.dag:node("call", state.types.by_name[output.type or T].compute, values,
                               { name = string.format("%s %s %d", owner, T, k), unit = unit })
    end
    return owner.assigns and list or list[1]
  end
  local key = { tostring(owner), T or "" }
  for _, value in ipairs(values) do key[#key + 1] = value.id end
  key = table.concat(key, " ")
  if state.inlined[key] then return state.inlined[key] end
  if state.active[owner] then self:fail(node, "%s calls itself", owner.name) end
  if state.depth >= M.MAX_INLINE_DEPTH then self:fail_as("limit", node, "calls nested deeper than %d", M.MAX_INLINE_DEPTH) end
  state.active[owner], state.depth = true, state.depth + 1
  local result = self:of_body(owner, body, env, T):run(owner.assigns and owner.outputs)
  state.active[owner], state.depth = nil, state.depth - 1
  state.inlined[key] = result
  return result
end

-- canonical(x) in the library's own math: x, which where no rare block runs is a number or the one NaN, so that kernels need
-- not look.
function Scope:canonical(node)
  if #node.args ~= 1 then self:fail(node, "canonical takes 1 argument") end
  local value = self:eval(node.args[1])
  value.is_canonical = true
  return value
end

function Scope:eval_call(node)
  if node.name == "lookup" then return self:lookup(node) end
  if node.name == "canonical" and self.trusted then return self:canonical(node) end
  local values = {}
  for k, arg in ipairs(node.args) do values[k] = self:eval(arg) end
  local model = self.state.model
  local func = model.func_of_name[node.name]
  local op, which = M.op_called(model, node.name)
  if M.PRIMITIVES[node.name] then
    return self:primitive(node.name, values, node)
  end
  if func and not func.builtin and self.trusted then func = nil end
  if func then return self:call_func(func, values, node) end
  if op and op ~= self.owner then return self:call_op(op, values, node, which) end
  if op then self:fail(node, "%s calls itself", node.name) end
  local known = {}
  for name, row in pairs(primitives.functions) do known[name] = self.trusted or not row.is_trusted or name == "lookup" or nil end
  self:fail(node, "unknown function '%s'%s", source.shown(node.name),
            source.suggest(node.name, model.op_of_name, known, model.func_of_name))
end

---------------------------------------------------------------------------------------------------- bodies

-- One step of work; a limit on all of them.
function Scope:step(node)
  self.state.steps = self.state.steps + 1
  if self.state.steps > M.MAX_STEPS then self:fail_as("limit", node, "more than %d steps of work", M.MAX_STEPS) end
end

function Scope:eval(node)
  self:step(node)
  local kind = node.kind
  if kind == "number" then return { weak = node.value, is_pattern = math.type(node.value) == "integer" and node.value < 0 } end
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
    if not is_float(value) or kind_of_type == "float" then
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
    self:fail(statement, "%s %s = a %s: write the cast, (%s)", type_name, statement.name, dtype_of(value), type_name)
  end
  return self:cast(value, type_name)
end

-- The same where an output is assigned, which may have a type of its own. outputs: name -> output, of a body that assigns them
function Scope:assigned_output(statement, outputs)
  local value, output = self:assigned(statement), outputs[statement.name]
  if not output then return value end
  local wanted = output.type or not is_weak(value) and self.T
  if not wanted then return value end
  if is_weak(value) then return self:strong(value, wanted, statement) end
  if value.type ~= self.state.types.by_name[wanted].compute then
    self:fail(statement, "%s is an output of %s, given %s: write the cast, (%s)", statement.name, wanted, value.type,
              output.type or "T")
  end
  return value
end

function Scope:run_rare(statement, outputs)
  local condition = self:condition(self:eval(statement.condition), statement)
  local inner = setmetatable({ env = setmetatable({}, { __index = self.env }) }, { __index = self })
  local changed = {}
  for _, assign in ipairs(statement.statements) do
    local value = Scope.assigned_output(inner, assign, outputs)
    if assign.type then
      if inner.env[assign.name] then self:fail(assign, "'%s' is already defined", assign.name) end
    else
      local old = self.env[assign.name]
      if not old and outputs[assign.name] then
        self:fail(assign, "the output %s is to be assigned before the block, which changes it for some elements only",
                  assign.name)
      elseif not old then
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

-- Evaluates the body: its result, or, where it assigns `outputs`, the list of them.
function Scope:run(outputs)
  if not self.source.derive then return self:run_body(outputs) end
  local list = require "gen.graph.derive".run(self)
  return outputs and list or list[1]
end

-- Parses (once per text) and evaluates the body as it is written.
function Scope:run_body(outputs)
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
  local output_of_name = {}
  for _, output in ipairs(outputs or {}) do output_of_name[output.name] = output end
  for _, statement in ipairs(body.statements) do
    self:step(statement)
    if statement.kind == "rare" then
      self:run_rare(statement, output_of_name)
    elseif statement.kind == "param" then
      self:fail(statement, "param belongs to a host's expression; an op lists its params")
    else
      if self.env[statement.name] then self:fail(statement, "'%s' is already defined", statement.name) end
      self.env[statement.name] = self:assigned_output(statement, output_of_name)
    end
  end
  if outputs then
    if body.result then self:fail(body.result, "an op that names its outputs assigns them and returns nothing") end
    local list = {}
    for k, output in ipairs(outputs) do
      list[k] = self.env[output.name]
      if not list[k] then self:fail({ at = #self.source.text + 1 }, "the body does not assign its output %s", output.name) end
    end
    return list
  end
  if not body.result then
    self:fail({ at = #self.source.text + 1 }, "the body has no result: end it with return ...;")
  end
  return self:settle(self:eval(body.result), body.result)
end

---------------------------------------------------------------------------------------------------- entry points

-- The op that a call names, and the number of the output that is asked for: NAME, or NAME.OUTPUT of an op of several.
function M.op_called(model, name)
  local op = model.op_of_name[name]
  if op then return op end
  local head, tail = name:match "^(.+)%.([^.]+)$"
  op = head and model.op_of_name[head]
  for k, output in ipairs(op and op.outputs or {}) do
    if output.name == tail and #op.outputs > 1 then return op, k end
  end
end

-- Whether an op's spec lists a dtype. It may take others too, computed in f32 or f64: see compute_type.
function M.is_listed(op, dtype)
  for _, name in ipairs(op.dtypes) do
    if name == dtype then return true end
  end
  return false
end

-- What an op's kernels compute in when its promoted dtype is T, or nil when it does not take T: T itself where a body is
-- keyed by it (values are computed in T's compute type, operands and results are numbers of T), else T's compute type.
function M.compute_type(types, op, T)
  local t, is_listed = types.by_name[T], M.is_listed(op, T)
  if op.index then return is_listed and (t.kind == "float" and "f64" or "i64") or nil end
  if M.is_double(op) then return "f64" end
  if not is_listed then
    -- float-only functions of integers and bool: f32
    if (t.kind == "integer" or t.kind == "bool") and M.is_floating(types, op) and M.is_listed(op, "f32") then return "f32" end
    return nil
  end
  return op.bodies[T] and T or t.compute
end

-- Whether an op's only dtype is f64: it takes every dtype, and each operand is converted to f64.
function M.is_double(op)
  return #op.dtypes == 1 and op.dtypes[1] == "f64" and not (op.moves or op.casts or op.finds or op.index)
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

-- What a run of the language needs beside the body. has_units: calls of functions and ops become nodes of their own, "call",
-- and nothing is folded, until M.lower puts their bodies there
function M.new_state(model, has_units)
  model.parsed = model.parsed or setmetatable({}, { __mode = "k" })
  return { model = model, types = model.types, dag = dag_of.new(model.types, has_units), has_units = has_units, inlined = {},
           active = {}, parsed = model.parsed, depth = 0, steps = 0 }
end

-- The nodes `roots` of a graph of units in the graph of a scope, calls inlined. of_node: node -> what it is there, of those that
-- are known; it gets the others that the roots need. Inputs and params have no others, unless they are nobody's.
function M.lower(state, scope, roots, of_node)
  local needed, result, dag = {}, {}, scope.state.dag
  for _, node in ipairs(dag_of.order(roots)) do needed[node] = true end
  for _, node in ipairs(state.dag.nodes) do -- in the order in which they were made
    if needed[node] and not of_node[node] then
      local args, extra = {}, node.op ~= "call" and { value = node.value, name = node.name, table = node.table } or nil
      for k, arg in ipairs(node.args) do args[k] = of_node[arg] end
      if #args == 0 and node.op ~= "call" then
        of_node[node] = dag:node(node.op, node.type, args, extra)
      elseif node.op == "call" then
        local unit, env = node.unit, {}
        for name, value in pairs(unit.env) do env[name] = of_node[value] end
        scope.call = unit.at -- what goes wrong inside its body is reported here
        local value = scope:inline(unit.owner, unit.body, env, args, unit.T, unit.at)
        of_node[node] = scope:given(unit.owner.name, unit.owner.assigns and value[unit.which] or value, node.type, unit.at)
        scope.call = nil
      else
        of_node[node] = dag:make(node.op, node.type, args, next(extra) and extra)
      end
    end
  end
  for k, root in ipairs(roots) do result[k] = of_node[root] end
  return result
end

-- The DAG of an op computed in K: inputs and params as nodes "input" and "param". Returns
-- { dag, inputs, params, outputs = nodes, type, steps } or nil, an error string and its kind: "syntax", "limit". An index
-- op's has the index as its input and the count behind its params, both numbers of K.
-- exact: a set of functions and ops that are not inlined: nodes "exact" with their names
function M.op_dag(model, op, K, exact)
  local state = M.new_state(model)
  state.exact = exact
  local types = model.types
  local value_type = types.by_name[K].kind == "bits" and "u" .. types.by_name[K].bits or types.by_name[K].compute
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
  if op.index then
    inputs[1] = state.dag:node("input", value_type, {}, { value = 1, name = "index" })
    params[#params + 1] = state.dag:node("param", value_type, {}, { value = #params + 1, name = "count" })
    env.index, env.count = inputs[1], params[#params]
  end
  local body = M.body_of(types, op, K)
  if not body then return nil, string.format("%s: %s: no body for %s", op.place, op.name, K), "syntax" end
  local T = value_type ~= K and types.by_name[K].kind ~= "bits" and K or value_type
  local scope = setmetatable({ state = state, source = body, env = env, T = T, default_type = T,
                               owner = op, constants = op.constants, tables = op.tables, trusted = op.builtin }, Scope)
  local ok, result = pcall(function()
    local values = scope:run(op.assigns and op.outputs)
    if not op.assigns then values = { values } end
    for k, output in ipairs(op.outputs) do
      local owner = op.assigns and output.name .. ": " or ""
      if is_weak(values[k]) then values[k] = scope:strong(values[k], output.type or T, { at = 1 }) end
      local wanted = output.type and types.by_name[output.type].compute or value_type
      if values[k].type ~= wanted then
        scope:fail({ at = 1 }, output.type and "%sthe body gives %s, declared %s; write the cast" or "%sthe body gives %s for %s",
                   owner, values[k].type, output.type or T)
      end
    end
    return values
  end)
  if not ok then
    if type(result) ~= "table" then error(result, 0) end
    local kind = (result.limit or result.kind == "limit") and "limit" or "syntax"
    return nil, source.message(result.source or body, result.at or 1, string.format("%s: %s", op.name, result.message)), kind
  end
  return { dag = state.dag, inputs = inputs, params = params, outputs = result, type = K, steps = state.steps }
end

return M
