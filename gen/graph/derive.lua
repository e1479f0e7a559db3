-- SPDX-License-Identifier: Apache-2.0
--
-- Derivatives. Of a primitive: a rule, as text. Of a graph of units (expr.lua: calls are nodes of their own): one walk from
-- the inputs on. Of an op: another op, <op>_backward; its body is given in the spec or derived from the op's own. Knows no C.
--
-- An op works element by element, so backpropagation multiplies grad, the derivative by its output, with a number per input.
-- Derivatives are linear in grad, so the walk carries grad from an input through to the output; the result is the term to add to
-- the input's own derivative. Unlike a walk backwards it gives `c ? f(x) : g(x)` the
-- derivative `c ? f'(x) : g'(x)`, with nothing of the branch that is not taken: no infinity of it becomes a NaN.

local parse = require "gen.front.parse"
local expr = require "gen.graph.body.expr"
local dag_of = require "gen.graph.dag.dag"
local derive_rows = require "gen.graph.derive_rows"
local kinds = require "gen.kinds.kinds"
local op_types = require "gen.graph.body.op_types"
local primitives = require "gen.graph.dag.primitives"
local rows = require "gen.graph.dag.rows"
local source = require "gen.base.source"

local M = {}

-- What each argument of a primitive adds to the derivative: name -> texts. runtime/lang/typing/derive.c reads the same, as
-- primitive_kernels.lua writes them.
M.RULES = {}
for _, row in ipairs(primitives.list) do
  if type(row.derive) == "table" then M.RULES[row.name] = row.derive end
end

-- A backward op's inputs that are no inputs of its op: grad, the op's output. ORDER QN_READS of runtime/base/op_traits.h
M.READS_GRAD, M.READS_OUTPUT = 0xff, 0xfe

-- The reason in errors about backward ops; runtime/lang/typing/typing.c has the same sentence.
M.NO_SECOND = ": second derivatives go through operators and primitives, not through ops"

local RULE = { name = "a rule", builtin = true }
local source_of_rule = {}
for op, rules in pairs(M.RULES) do
  for _, text in ipairs(rules) do
    if text ~= "0" then source_of_rule[text] = source.new("the derivative of " .. op, text) end
  end
end

-- A rule for runtime/lang/typing/derive.c: its operations in postfix order, numbers as #N, N halves.
function M.postfix(rule)
  if rule == "0" then return "" end
  local words = {}
  local function add(node)
    if node.kind == "name" then
      words[#words + 1] = node.name
    elseif node.kind == "number" then
      words[#words + 1] = string.format("#%d", node.value * 2)
    else
      for _, arg in ipairs(node.kind == "call" and node.args or node) do add(arg) end
      words[#words + 1] = node.kind == "call" and node.name or node.kind == "select" and "select"
        or (node.kind == "unary" and primitives.of_prefix or primitives.of_operator)[node.op].name
    end
  end
  add(parse.parse(rule, {}).result)
  return table.concat(words, " ")
end

---------------------------------------------------------------------------------------------------- the walk

local ARGUMENTS = { "x", "y", "z" }

local Walk = {}
Walk.__index = Walk

-- A walk over a graph of units. scope: makes its nodes; seeds: node -> its derivative; may_expand: a callee without a
-- derivative of its own may be derived from its body. trial: nil, or a table for what is known of callees' bodies: the walk finds out whether
-- there is a derivative, in time linear in the bodies; a call stands in for its derivative
function M.walk(scope, seeds, may_expand, trial)
  local known = {}
  for node, derivative in pairs(seeds) do known[node] = derivative end
  return setmetatable({ scope = scope, known = known, may_expand = may_expand, trial = trial, depth = 0 }, Walk)
end

function Walk:is_float(node) return self.scope.state.types.by_name[node.type].kind == "float" end

-- A sum and the term of one more argument.
function Walk:plus(sum, part) return sum and self.scope.state.dag:make("add", part.type, { sum, part }) or part end

function Walk:of_rules(node, at)
  local rules, sum = M.RULES[node.op], nil
  for k, arg in ipairs(node.args) do
    local grad = self.known[arg]
    if grad then
      local text = rules and rules[k]
      if not text then self.scope:fail(at, "%s has no derivative", primitives.of[node.op].underived or node.op) end
      if text ~= "0" then
        local env = { grad = grad, out = node }
        for j, other in ipairs(node.args) do env[ARGUMENTS[j]] = other end
        sum = self:plus(sum, self.scope:of_body(RULE, source_of_rule[text], env, node.type):run())
      end
    end
  end
  return sum
end

function Walk:of_select(node)
  local yes, no = self.known[node.args[2]], self.known[node.args[3]]
  if not yes and not no then return nil end
  local dag = self.scope.state.dag
  local zero = dag:constant(node.type, 0.0)
  return dag:make("select", node.type, { node.args[1], yes or zero, no or zero })
end

-- Which output of a backward op is the derivative by its op's input k; nil: none.
local function output_by(backward, k)
  for j, input in ipairs(backward.by) do
    if input == k - 1 then return j end
  end
end

function Walk:of_call(node, at)
  local unit, types, model = node.unit, self.scope.state.types, self.scope.state.model
  local owner, name, any = unit.owner, unit.owner.name, false
  for _, arg in ipairs(node.args) do any = any or self.known[arg] end
  if not any then return nil end
  local op = owner.inputs and owner or (owner.builtin and model.op_of_name[name])
  local backward = op and (self.trial and M.foresee or M.backward_of)(model, op)
  if not backward then
    if self.may_expand and owner.grad ~= false and not (owner.builtin and owner.args) then return self:of_body(node, at) end
    self.scope:fail(at, "%s has no derivative%s", name, owner.backward_of and M.NO_SECOND or "")
  end
  local of_name, sum = { [op.outputs[1].name] = node }, nil
  for k, input in ipairs(op.inputs) do of_name[input.name] = node.args[k] end
  for k, param in ipairs(op.params) do of_name[param.name] = node.args[#op.inputs + k] end
  local T = types.by_name[unit.T].compute
  local body = expr.body_of(types, backward, T)
  for k in ipairs(op.inputs) do
    of_name.grad = self.known[node.args[k]]
    if of_name.grad and self:is_float(node.args[k]) then
      local which = output_by(backward, k)
      if not which then self.scope:fail(at, "%s has no derivative", name) end
      if self.trial then
        sum = node
      else
        local env, values = {}, {}
        for _, operands in ipairs { backward.inputs, backward.params } do
          for _, operand in ipairs(operands) do
            env[operand.name] = of_name[operand.name]
            values[#values + 1] = of_name[operand.name]
          end
        end
        local parts = self.scope:inline(backward, body, env, values, T, at)
        sum = self:plus(sum, backward.assigns and parts[which] or parts)
      end
    end
  end
  return sum
end

-- What decides whether a call has a derivative from its body: the body, and which arguments are derived by.
function Walk:key_of(node)
  local known = {}
  for k, arg in ipairs(node.args) do known[k] = self.known[arg] and "1" or "0" end
  return string.format("%p %s %d %s", node.unit.body, node.unit.T, node.unit.which, table.concat(known))
end

-- The derivative of a call from the callee's body; the units of the body become part of the graph.
function Walk:of_body(node, at)
  if self.depth >= expr.MAX_INLINE_DEPTH then
    self.scope:fail_as("limit", at, "calls nested deeper than %d", expr.MAX_INLINE_DEPTH)
  end
  local unit = node.unit
  local key = self.trial and self:key_of(node)
  if key and self.trial[key] ~= nil then return self.trial[key] and node or nil end
  self.depth = self.depth + 1
  local value = self.scope:of_body(unit.owner, unit.body, unit.env, unit.T):run(unit.owner.assigns and unit.owner.outputs)
  if unit.owner.assigns then value = value[unit.which] end
  local result = self:of(self.scope:given(unit.owner.name, value, node.type, at), at)
  self.depth = self.depth - 1
  if key then self.trial[key] = result ~= nil end
  return result
end

function Walk:of_node(node, at)
  if #node.args == 0 then return nil end
  if node.op == "call" then return self:is_float(node) and self:of_call(node, at) or nil end
  if node.op == "reduce" then return nil end -- what depends on x goes through its call: derive_rows.lua
  if node.op == "scan" then
    if not self:is_float(node) or not self.known[node.args[1]] then return nil end
    self.scope:fail(at, "%s has no derivative in an expression; call %s_backward by itself", node.reducer.name, node.reducer.name)
  end
  local row = primitives.of[node.op]
  if row.underived then
    return self:of_rules(node, at)
  elseif not self:is_float(node) or row.derive == "constant" then
    return nil
  elseif row.derive == "branches" then
    return self:of_select(node)
  elseif row.derive == "cast" then
    local grad = self.known[node.args[1]]
    return grad and self.scope:cast(grad, node.type)
  end
  return self:of_rules(node, at)
end

-- The derivative of a node, or nil: it does not depend on the seeds. at: where errors are reported
function Walk:of(root, at)
  for _, node in ipairs(dag_of.order({ root }, false, self.known)) do
    if self.known[node] == nil then self.known[node] = self:of_node(node, at) or false end
  end
  return self.known[root] or nil
end

-- The derivative of `root` by the node x, through calls that reduce too; nil: it does not depend on x. seed: the derivative by root, or nil: it is 1;
-- is_row: inputs (a set of nodes) that are constant along the axes; may_expand, trial: see walk
function M.by(scope, root, seed, x, at, is_row, may_expand, trial)
  return derive_rows.derivative(scope, root, seed, x, at, {
    is_row = is_row, backward_of = trial and M.foresee or M.backward_of, no_second = M.NO_SECOND, is_trial = trial ~= nil,
    walk = function(of_scope, seeds) return M.walk(of_scope, seeds, may_expand, trial) end,
  })
end

---------------------------------------------------------------------------------------------------- bodies

-- The result of a derived body: `scope` is that of the op <op>_backward. Returns nodes of its graph. In a trial (foresee) nothing is made: each
-- input stands in for the derivative by it.
function M.run(scope)
  local model, owner = scope.state.model, scope.owner
  local forward = model.op_of_name[owner.backward_of]
  local state = expr.new_state(model, true)
  local env, of_node, is_row = {}, {}, {}
  for k, input in ipairs(forward.inputs) do
    local node = state.dag:node("input", input.type or scope.T, {}, { index = k, name = input.name })
    env[input.name], of_node[node] = node, scope.env[input.name]
    is_row[node] = input.is_row
  end
  for k, param in ipairs(op_types.own_params(forward)) do
    local node = state.dag:node("param", scope.env[param.name].type, {}, { index = k, name = param.name })
    env[param.name], of_node[node] = node, scope.env[param.name]
  end
  local grad = state.dag:node("input", scope.T, {}, { index = 0, name = "grad" })
  of_node[grad] = scope.env.grad
  is_row[grad] = forward.is_reduced
  if kinds.of(forward).has_stages then
    state.row_calls, state.axes = {}, scope.state.axes
    state.count = state.dag:node("param", "i64", {}, { index = #forward.params + 1, name = "count" })
    state.index = state.dag:node("input", "i64", {}, { index = rows.INDEX + 1, name = "index" })
    env.count, env.index = state.count, state.index
    of_node[state.count], of_node[state.index] = scope.env.count, scope.env.index
  end
  local inside = expr.Scope.of_body({ state = state }, forward, scope.source, env, scope.T)
  local result, derivatives, trial = inside:run_body(), {}, owner.is_trial and {} or nil
  for k, name in ipairs(scope.source.derive) do
    local found = M.by(inside, result, inside:cast(grad, result.type), env[name], { at = 1 }, is_row, true, trial)
    derivatives[k] = trial and scope.env[name] or inside:cast(found or state.dag:constant(result.type, 0.0), scope.T)
  end
  if trial then return derivatives end
  local lowered = expr.lower(state, scope, derivatives, of_node)
  if kinds.of(forward).has_stages and rows.are_rows(lowered) then lowered[1] = scope:spread(lowered[1], 1.0) end -- results are elements
  return lowered
end

---------------------------------------------------------------------------------------------------- ops

-- The inputs by which an op may have a derivative.
local function float_inputs(op)
  local names = {}
  for _, input in ipairs(op.inputs) do
    if not input.type and not input.is_row then names[#names + 1] = input.name end
  end
  return names
end

local function may_have_one(types, op)
  local kind = kinds.of(op)
  if not kind.has_derivative or #op.outputs > 1 or op.outputs[1].type or op.backward_of or op.grad == false then return false end
  if kind.calls_itself and not op.grad then return false end
  for _, operands in ipairs { op.inputs, op.params } do
    for _, operand in ipairs(operands) do
      if operand.name == "grad" then return false end
    end
  end
  local takes_floats = false
  for _, name in ipairs(op.dtypes) do
    local t = types.by_name[name]
    if op.bodies[name] and t.compute ~= name and not op.grad then return false end -- in numbers of that dtype it is another function
    takes_floats = takes_floats or t.kind == "float" and types.by_name[kind.result_dtype and kind.result_dtype(types, op, name) or name].kind == "float"
  end
  return takes_floats and #float_inputs(op) > 0
end

-- The bodies of a backward op: those of the spec, or the op's own, marked `derive`.
local function bodies_of(types, op, wrt)
  if op.grad then return { any = op.grad.text } end
  local bodies = {}
  for key, body in pairs(op.bodies) do
    local t = types.by_name[key]
    if key == "any" or key == "floating" or t and t.kind == "float" and t.compute == key then
      bodies[key] = { name = body.name, text = body.text, whole = body.whole, offset = body.offset, derive = wrt }
    end
  end
  return bodies
end

-- A text with blanks for comments, in time linear in its length.
local function without_comments(text)
  local parts, at = {}, 1
  while true do
    local start = text:find("/[/*]", at)
    if not start then break end
    parts[#parts + 1] = text:sub(at, start - 1)
    local is_line = text:sub(start + 1, start + 1) == "/"
    local _, stop = text:find(is_line and "\n" or "*/", start + 2, true)
    at = stop and (is_line and stop or stop + 1) or #text + 1
  end
  parts[#parts + 1] = text:sub(at)
  return table.concat(parts, " ")
end

-- The names in a text, and those of them that it assigns.
local function names_in(text)
  local names, assigned = {}, {}
  text = without_comments(text)
  for name in text:gmatch "[%a_][%w_]*" do names[name] = true end
  for name in text:gmatch "%f[%w_]([%a_][%w_]*)%s*=%f[^=]" do assigned[name] = true end
  return names, assigned
end

-- The names that a grad body uses: of inputs, and of the op's output, which is also called y where no operand is. A local of
-- these names is not the output. Sets the alias of the backward op.
local function names_read(op, backward)
  local read, assigned = names_in(op.grad.text.text)
  local out = op.outputs[1].name
  local may_be_y = not assigned.y and out ~= "y"
  for _, operands in ipairs { op.inputs, op.params } do
    for _, operand in ipairs(operands) do may_be_y = may_be_y and operand.name ~= "y" end
  end
  if assigned[out] then read[out] = nil end
  if may_be_y and read.y then read[out], backward.aliases = true, { y = out } end
  return read
end

-- The inputs that a derived body reads: found by making its graph with all of them. nil, message, kind: it has no derivative.
local function inputs_read(model, backward)
  local names, seen = {}, {}
  for _, dtype in ipairs(backward.dtypes) do
    local K = expr.compute_type(model.types, backward, dtype)
    if not seen[K] then
      seen[K] = true
      local dag, message, kind = expr.op_dag(model, backward, K)
      if not dag then return nil, message, kind end
      for _, node in ipairs(dag_of.order(dag.outputs)) do
        if node.op == "input" then names[node.name] = true end
      end
    end
  end
  return names
end

local function doc_of(op, by)
  local inputs = table.concat(by, ", by ")
  if op.is_reduced then
    return string.format("The derivative of %s: grad, of extent 1 along the axes, times that of its result by %s.", op.name, inputs)
  elseif kinds.of(op).has_stages then
    return string.format("The derivative of %s by %s: the sum, over the results along the axes, of grad times that of each.", op.name, inputs)
  end
  return string.format("The derivative of %s: grad times that of its result by %s.", op.name, inputs)
end

-- The op <op>_backward with all inputs that it may read.
local function begun(model, op)
  local types, by = model.types, op.grad and op.grad.by or float_inputs(op)
  local has_stages = kinds.of(op).has_stages
  local backward = {
    name = op.name .. "_backward", c_name = op.c_name .. "_backward", builtin = op.builtin, kind = kinds.of(op).derivative_kind,
    doc = doc_of(op, by),
    examples = {}, ulp = op.grad_ulp or {}, file = op.file, line = op.line, location = op.location, params = op.params,
    constants = op.constants, tables = op.tables, dtypes = {}, outputs = {}, assigns = #by > 1, backward_of = op.name,
    bodies = bodies_of(types, op, by), reads = {}, by = {},
  }
  local number = {}
  for k, input in ipairs(op.inputs) do number[input.name] = k - 1 end
  for k, name in ipairs(by) do backward.outputs[k], backward.by[k] = { name = "grad_" .. name }, number[name] end
  for _, dtype in ipairs(op.dtypes) do
    if types.by_name[dtype].kind == "float" then backward.dtypes[#backward.dtypes + 1] = dtype end
  end
  if has_stages then -- its results are elements
    backward.is_reduced, backward.params = false, kinds.of(backward).shape_params(backward)
    for _, param in ipairs(op_types.own_params(op)) do table.insert(backward.params, param) end
  end
  backward.inputs = { { name = "grad", is_row = op.is_reduced or nil } }
  for _, input in ipairs(op.inputs) do table.insert(backward.inputs, { name = input.name, type = input.type, is_row = input.is_row }) end
  if op.grad then table.insert(backward.inputs, { name = op.outputs[1].name, is_row = op.is_reduced or nil }) end
  return backward
end

-- Leaves a backward op the inputs that it reads. nil, message, kind: there is no derivative.
local function finished(model, op, backward)
  local all, number, read, message, kind = backward.inputs, {}, nil, nil, nil
  for k, input in ipairs(op.inputs) do number[input.name] = k - 1 end
  if op.grad then
    read = names_read(op, backward)
  else
    read, message, kind = inputs_read(model, backward)
    if not read then return nil, message, kind end
  end
  for _, name in ipairs(op.is_reduced and float_inputs(op) or {}) do read[name] = true end -- they give the shape
  backward.inputs, backward.reads = { all[1] }, { M.READS_GRAD }
  for k = 2, #all do
    if read[all[k].name] then
      table.insert(backward.inputs, all[k])
      table.insert(backward.reads, number[all[k].name] or M.READS_OUTPUT)
    end
  end
  return backward
end

local function may_be_made(model, op)
  return not (op.backward_failed or op.is_being_derived or not may_have_one(model.types, op)
              or rawget(model.op_of_name, op.name .. "_backward") or model.op_of_c_name[op.c_name .. "_backward"])
end

local function add(model, op, backward)
  model.op_of_name[backward.name], model.op_of_c_name[backward.c_name] = backward, backward
  op.backward = backward.name
  return backward
end

-- The op that is another's derivative, made when it is first asked for; nil: there is none.
function M.backward_of(model, op)
  if op.backward then return model.op_of_name[op.backward] end
  if not may_be_made(model, op) then return nil end
  model.derive, op.is_being_derived = M.run, true
  local backward, message = finished(model, op, begun(model, op))
  op.is_being_derived = nil
  if not backward then
    op.backward_failed = message or true
    return nil
  end
  model.ops[#model.ops + 1] = backward
  return add(model, op, backward)
end

-- Gives the ops of a model from the `first` on their backward ops.
function M.complete(model, first)
  for k = first or 1, #model.ops do M.backward_of(model, model.ops[k]) end
end

---------------------------------------------------------------------------------------------------- ops that are made when they are asked for

-- An op that was foreseen, made by the first who looks for its name. An error is told anew each time.
local function made(model, name)
  local backward = model.foreseen[name]
  local op = backward and model.op_of_name[backward.backward_of]
  if not op or op.is_being_derived then return nil end
  op.is_being_derived = true
  local ok, result, message, kind = pcall(finished, model, op, backward)
  op.is_being_derived = nil
  if not ok then error(result, 0) end
  if not result then
    kind = kind == "limit" and kind or "unsupported"
    error({ refused = kind, kind = kind, message = message }, 0)
  end
  model.foreseen[name] = nil
  return add(model, op, backward)
end

local function foresees(model)
  if model.foreseen then return end
  model.foreseen, model.derive = {}, M.run
  setmetatable(model.op_of_name, { __index = function(_, name) return made(model, name) end })
end

-- The derivative of an op, made or foreseen: its name, `by` and outputs are there; nil: there is none. That it exists is found out in time
-- linear in the bodies. That its graph is too large shows when it is made.
function M.foresee(model, op)
  foresees(model)
  if op.backward then return model.foreseen[op.backward] or model.op_of_name[op.backward] end
  if op.grad then return M.backward_of(model, op) end
  if not may_be_made(model, op) then return nil end
  local backward = begun(model, op)
  backward.is_trial, op.is_being_derived = true, true
  local read, message = inputs_read(model, backward)
  backward.is_trial, op.is_being_derived = nil, nil
  if not read then
    op.backward_failed = message
    return nil
  end
  model.foreseen[backward.name], model.op_of_c_name[backward.c_name] = backward, backward
  op.backward = backward.name
  return backward
end

-- Takes the derivative of an op out again.
function M.forget(model, op)
  if not op.backward then return end
  local c_name = op.c_name .. "_backward"
  if model.foreseen then model.foreseen[op.backward] = nil end
  model.op_of_name[op.backward], model.op_of_c_name[c_name], op.backward = nil, nil, nil
end

-- As complete; but those that the ops' bodies give are only foreseen.
function M.expect(model, first)
  for k = first, #model.ops do M.foresee(model, model.ops[k]) end
end

return M
