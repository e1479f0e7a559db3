-- SPDX-License-Identifier: Apache-2.0
--
-- Calls: scope.lua's methods for primitives, tables, functions of dsl/math and ops. The bodies of the latter two are inlined.

local foreign = require "gen.front.foreign"
local number_of = require "gen.base.number"
local kinds = require "gen.kinds.kinds"
local op_types = require "gen.graph.body.op_types"
local primitives = require "gen.graph.dag.primitives"
local scope = require "gen.graph.body.scope"
local source = require "gen.base.source"
local weak_of = require "gen.graph.body.weak"

local Scope, node_of, dtype_of, is_weak = scope.Scope, scope.node_of, scope.dtype_of, weak_of.is_weak

---------------------------------------------------------------------------------------------------- primitives

function Scope:primitive(name, values, node)
  local types, dag, func = self.state.types, self.state.dag, primitives.functions[name]
  if #values ~= func.arguments then
    self:fail_as("syntax", node, "%s takes %d argument%s, got %d", name, func.arguments,
                 func.arguments == 1 and "" or "s", #values)
  end
  local takes = func.takes
  local literal = self:literal_primitive(name, values, node)
  if literal then return literal end
  if takes then
    local meet
    values, meet = self:unify_all(values, node, function(dtype)
      local kind = types.by_name[dtype].kind
      if kind == "bool" then self:fail(node, "%s of bool: cast it first, (i32)x", name) end
      if kind == "float" and takes == "integer" then self:fail(node, "%s of %s: it takes integers", name, dtype) end
      return takes == "float" and types.by_name[dtype].floating or dtype
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
  return self.state.dag:make("lookup", list.type, { index }, { name = list.location .. ":" .. name, table = list })
end

---------------------------------------------------------------------------------------------------- functions and ops

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
      local float = self.state.types.by_name[T].floating
      if float ~= T and func.bodies[float] then
        T = float
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

local function is_of_params(node)
  local is_so = #node.args > 0 or node.op == "param" or node.op == "const"
  for _, arg in ipairs(node.args) do is_so = is_so and is_of_params(arg) end
  return is_so
end

-- A weak value as a parameter of an op that computes in a type: a lone number that an integer cannot hold saturates.
function Scope:param(op, param, value, type_name, node)
  local t = self.state.types.by_name[type_name]
  if not is_weak(value) then
    local given = node_of(value)
    -- of the calling op; a host may have computed it
    local is_own = not self.keeps_dtypes and (given.op == "param" or (self.state.axes and is_of_params(given)))
    if is_own and value.type == type_name then return given end
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

-- The value of a body for an output, in the compute type of the output's dtype `wanted`.
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
  local types, own_params = self.state.types, op_types.own_params(op)
  local n_in, n_params = #op.inputs, #own_params
  if #values < n_in or #values > n_in + n_params then
    self:fail_as("syntax", node, "%s takes %d argument%s%s, got %d%s", op.name, n_in, n_in == 1 and "" or "s",
              n_params > 0 and string.format(" and %d parameter%s", n_params, n_params == 1 and "" or "s") or "", #values,
              node.axes and #values > n_in and foreign.AXES or "")
  end
  local kind = kinds.of(op)
  if kind.refusal then self:fail_as("syntax", node, "%s is no part of an expression: %s", op.name, kind.refusal(op)) end
  if #op.outputs == 1 or which then
    local literal = self:literal_op(op, values, which or 1, node)
    if literal then return literal end
  end
  local nodes, operands, where = {}, {}, {}
  for k, input in ipairs(op.inputs) do
    if input.type == "bool" then
      nodes[k] = self:condition(values[k], node)
    elseif input.type then
      if not is_weak(values[k]) and types.by_name[dtype_of(values[k])].kind ~= "integer" then
        self:fail(node, "%s: %s is %s, expected an integer", op.name, input.name, dtype_of(values[k]))
      end
      nodes[k] = node_of(self:cast(self:settle(values[k], node), input.type))
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
    K = op_types.compute_type(types, op, dtype)
    if K and op_types.is_floating(types, op) then dtype = types.by_name[dtype].floating end
    if not K or (self.keeps_dtypes and not types.by_name[dtype].built) then
      self:fail(node, "%s does not take %s", op.name, dtype)
    end
    T = types.by_name[K].compute
    return dtype
  end
  if op_types.is_double(op) then
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
  if kind.has_stages then env.count, env.index = self.state.count, self.state.index end
  for k, param in ipairs(own_params) do
    local param_type = kinds.of(op).param_type
    nodes[n_in + k] = self:param(op, param, values[n_in + k] or { weak = param.value }, param_type and param_type(types, op, T) or T, node)
    env[param.name] = nodes[n_in + k]
  end
  if self.state.exact and self.state.exact[op.name] then
    return self:typed(self.state.dag:node("exact", K, nodes, { name = op.name }), D)
  end
  local calls = self.state.row_calls
  if kind.has_stages then self.state.row_calls = nil end -- those of its body are part of this one
  local result, finer = self:call_body(op, K, env, nodes, which or 1, node)
  self.state.row_calls = calls
  if kind.has_stages then self:note_row_call(op, result, nodes, K) end
  local value = self:typed(result, op_types.result_of(types, op, which or 1, D))
  if finer and self.keeps_dtypes then -- an output is rounded from this, once
    value = { node = result, type = result.type, dtype = value.dtype or value.type, finer = finer }
  end
  return value
end

-- Inlines the body of an op computed in K. Returns the node of output `which`, rounded to the output's dtype; of an op with stages also
-- the node of the float before the conversion to that dtype, or nil if there is no conversion.
function Scope:call_body(op, K, env, nodes, which, node)
  local body = op_types.body_of(self.state.types, op, K)
  if not body then self:fail(node, "%s has no body for %s", op.name, K) end
  local result, dtype = self:inline(op, body, env, nodes, K, node), op_types.result_of(self.state.types, op, which, K)
  if op.assigns then result = result[which] end
  local finer
  if kinds.of(op).has_stages then
    local before = node_of(result)
    result = self:cast(result, dtype)
    finer = node_of(result) ~= before and self.state.types.by_name[before.type].kind == "float" and before or nil
  end
  return node_of(self:cast(self:given(op.name, result, dtype, node), dtype)), finer
end

-- The scope of a body: what its names mean (env), and its type.
function Scope:of_body(owner, body, env, T)
  return setmetatable({ state = self.state, source = body, env = env, T = T, default_type = T, owner = owner,
                        constants = owner.constants, tables = owner.tables, trusted = owner.builtin }, Scope)
end

-- Notes the file of an inlined body. A function's value without a name of its own gets the function's name.
function Scope:note_use(owner, result)
  local files, file = self.state.files, owner.location:match "^(.*):%d+$"
  if not files[file] then files[file], files[#files + 1] = true, file end
  if owner.args and result.args and #result.args > 0 and not result.label then result.label = owner.name end
end

-- The values of an op's body, n or one alone, as computed ones.
function Scope:computed(result, n)
  local list = n and result or { result }
  for k = 1, n or 1 do
    if not is_weak(list[k]) and node_of(list[k]).op == "input" then
      list[k] = self:typed(self.state.dag:computed(node_of(list[k])), dtype_of(list[k]))
    end
  end
  return n and list or list[1]
end

-- Runs a body with an environment; the same function on the same nodes is inlined once. In a graph of units it becomes one.
function Scope:inline(owner, body, env, values, T, node)
  local state = self.state
  local is_row = kinds.of(owner).has_stages -- inlined at once: its reductions are seen by derivatives
  if state.has_units and not is_row then
    local list = {}
    for k, output in ipairs(owner.outputs or { { type = owner.result } }) do
      local unit = { owner = owner, body = body, env = env, T = T, at = node, which = k }
      list[k] = state.dag:node("call", state.types.by_name[output.type or T].compute, values,
                               { name = string.format("%s %s %d", owner, T, k), unit = unit })
    end
    return owner.assigns and list or list[1]
  end
  local key = { tostring(owner), T or "", is_row and state.axes or nil }
  for _, value in ipairs(values) do key[#key + 1] = value.id end
  key = table.concat(key, " ")
  if state.inlined[key] then return state.inlined[key] end
  if state.active[owner] then self:fail(node, "%s calls itself", owner.name) end
  if state.depth >= scope.MAX_INLINE_DEPTH then self:fail_as("limit", node, "calls nested deeper than %d", scope.MAX_INLINE_DEPTH) end
  state.active[owner], state.depth = true, state.depth + 1
  local result = self:of_body(owner, body, env, T):run(owner.assigns and owner.outputs)
  if owner.inputs then result = self:computed(result, owner.assigns and #owner.outputs) end
  state.active[owner], state.depth = nil, state.depth - 1
  state.inlined[key] = result
  self:note_use(owner, result)
  return result
end

-- canonical(x) in the library's own math: x, with the promise that where no rare block runs it is a number or the canonical NaN.
-- Kernels then need no check.
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
  local op, which = op_types.op_called(model, node.name)
  if primitives.functions[node.name] then
    return self:primitive(node.name, values, node)
  end
  if func and not func.builtin and self.trusted then func = nil end
  if func then return self:call_func(func, values, node) end
  if op and kinds.of(op).calls_itself then return self:call_reduction(op, values, node) end
  if op and op ~= self.owner then return self:call_op(op, values, node, which) end
  if op then self:fail(node, "%s calls itself", node.name) end
  local known = {}
  for name, row in pairs(primitives.functions) do known[name] = self.trusted or not row.is_trusted or name == "lookup" or nil end
  local word = foreign.words[node.name]
  local sentence = word and word[1] or foreign.of_function(node.name, function(name) return model.op_of_name[name] or known[name] end)
  self:fail(node, "unknown function '%s'%s", source.shown(node.name),
            sentence and ": " .. sentence or source.suggest(node.name, model.op_of_name, known, model.func_of_name))
end

return Scope
