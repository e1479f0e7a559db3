-- SPDX-License-Identifier: Apache-2.0
--
-- The expression language's meaning: a body -> typed DAG. The entry points are here; values and promotion are in scope.lua,
-- operators, calls and bodies in the files of these names, what an op takes in op_types.lua. Numbers without a dtype are
-- weak.lua's; what a host's expression has beyond a body is in host.lua. Knows no C.

local dag_of = require "gen.graph.dag.dag"
local kinds = require "gen.kinds.kinds"
local number = require "gen.base.number"
local op_types = require "gen.graph.body.op_types"
local primitives = require "gen.graph.dag.primitives"
local reductions = require "gen.graph.body.reductions"
local rows = require "gen.graph.dag.rows"
local scope_of = require "gen.graph.body.scope"
local source = require "gen.base.source"
local weak_of = require "gen.graph.body.weak"
require "gen.graph.body.operators"
require "gen.graph.body.calls"
require "gen.graph.body.bodies"
require "gen.graph.body.literals"

local M = {}

M.CONSTANTS, M.Scope = scope_of.CONSTANTS, scope_of.Scope
M.MAX_INLINE_DEPTH, M.MAX_STEPS = scope_of.MAX_INLINE_DEPTH, scope_of.MAX_STEPS
M.op_called, M.is_listed, M.compute_type = op_types.op_called, op_types.is_listed, op_types.compute_type
M.is_double, M.is_floating, M.body_of = op_types.is_double, op_types.is_floating, op_types.body_of

M.PRIMITIVES = {} -- those that a body may call by name -> how many arguments
for name, func in pairs(primitives.functions) do M.PRIMITIVES[name] = func.arguments end

local Scope, is_weak = scope_of.Scope, weak_of.is_weak

-- The state of one evaluation. has_units: calls of functions and ops become nodes of their own, "call", and nothing is folded,
-- until M.lower inlines their bodies
function M.new_state(model, has_units)
  model.parsed = model.parsed or setmetatable({}, { __mode = "k" })
  return { model = model, types = model.types, dag = dag_of.new(model.types, has_units), has_units = has_units, inlined = {},
           files = {}, active = {}, parsed = model.parsed, depth = 0, steps = 0 }
end

-- Copies the nodes `roots` of a graph of units into the graph of a scope, with calls inlined. of_node: node -> its copy; known
-- ones on entry, also those of inputs and params; all that the roots need on return.
function M.lower(state, scope, roots, of_node)
  local needed, result, dag, groups = {}, {}, scope.state.dag, {}
  for _, node in ipairs(dag_of.order(roots)) do
    for _, part in ipairs(node.group or { node }) do needed[part] = true end
  end
  for _, node in ipairs(state.dag.nodes) do -- in the order in which they were made
    if needed[node] and not of_node[node] then
      local args, extra = {}, nil
      if node.op ~= "call" then
        extra = { value = node.value, index = node.index, name = node.name, table = node.table, reducer = node.reducer }
      end
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
      if node.group then -- the parts of one reduction, in order
        groups[node.group] = groups[node.group] or {}
        table.insert(groups[node.group], of_node[node])
        of_node[node].group, of_node[node].accumulator = groups[node.group], node.accumulator
      end
      if node.label and #of_node[node].args > 0 then of_node[node].label = node.label end
    end
  end
  for k, root in ipairs(roots) do result[k] = of_node[root] end
  return result
end

-- Checks a body that reduces: the combine of each reduction, its result for no elements, and the limits of the body's program.
local function check_reductions(model, scope, dag)
  local types = model.types
  for _, node in ipairs(dag_of.order(dag.outputs)) do
    local by = node.reducer
    if by then
      local A = node.accumulator or node.type
      model.sound = model.sound or setmetatable({}, { __mode = "k" })
      model.sound[by] = model.sound[by] or {}
      if not model.sound[by][A] then
        M.combine(model, by, A)
        local empty = by.reducer.empty
        if empty and types.by_name[A].kind ~= "float" and not math.tointeger(empty) then
          scope:fail({ at = 1 }, "%s: empty is %s, which is no %s", by.name, number.text(empty), A)
        end
        model.sound[by][A] = true
      end
    end
  end
  local excess = rows.excess(rows.stages(types, dag))
  if excess then scope:fail_as("limit", { at = 1 }, "its body %s", excess) end
end

-- The DAG of an op computed in K: inputs and params as nodes "input" and "param". Returns
-- { dag, inputs, params, outputs = nodes, type, steps, files = those of the functions used, first_output = its name; of a body that
-- reduces combine_of = function(op of a reduction, its accumulator's dtype) -> the DAG of its combine } or nil, an
-- error string and its kind: "syntax", "limit". For an index op the input is the index, and the count follows the params; both are
-- numbers of K.
-- exact: a set of functions and ops that are not inlined: nodes "exact" with their names
-- narrow: a dtype for which the op has a body of the same results (declare_op.lua); that body's DAG, i32 the inputs that count
function M.op_dag(model, op, K, exact, narrow)
  local state = M.new_state(model)
  state.exact = exact
  local types = model.types
  local unsigned = types.by_name[K].kind == "bits" and "u" .. types.by_name[K].bits -- bits of a size no integer has are themselves
  local value_type = types.by_name[unsigned] and unsigned or types.by_name[K].compute
  local kind, env, inputs, params = kinds.of(op), {}, {}, {}
  for k, input in ipairs(op.inputs) do
    local is_count = narrow == "i32" and (op.counts or 0) >> (k - 1) & 1 == 1
    local type_name = input.type or is_count and narrow or value_type
    inputs[k] = state.dag:node("input", type_name, {}, { index = k, name = input.name })
    env[input.name] = inputs[k]
  end
  for k, param in ipairs(op_types.own_params(op)) do
    local param_type = kind.param_type and kind.param_type(types, op, K) or value_type
    params[k] = state.dag:node("param", param_type, {}, { index = k, name = param.name })
    env[param.name] = params[k]
  end
  local function add(list, node_op, names)
    for _, name in ipairs(names or {}) do
      list[#list + 1] = state.dag:node(node_op, kind.own_param_type or value_type, {}, { index = #list + 1, name = name })
      env[name] = list[#list]
    end
  end
  if kind.has_stages then
    state.index = state.dag:node("input", "i64", {}, { index = rows.INDEX + 1, name = "index" })
    env.index = state.index
  else
    add(inputs, "input", kind.own_inputs)
  end
  add(params, "param", kind.own_params)
  if kind.has_stages then state.count = env.count end
  local body = narrow and op.narrow[narrow] or M.body_of(types, op, K)
  if not body then return nil, string.format("%s: %s: no body for %s", op.location, op.name, K), "syntax" end
  local T = value_type ~= K and types.by_name[K].kind ~= "bits" and K or value_type
  local scope = setmetatable({ state = state, source = body, env = env, T = T, default_type = T,
                               owner = op, constants = op.constants, tables = op.tables, trusted = op.builtin }, Scope)
  local ok, result = pcall(function()
    local values = scope:run(op.assigns and op.outputs)
    if not op.assigns then values = { values } end
    for k, output in ipairs(op.outputs) do
      local owner = op.assigns and output.name .. ": " or ""
      if is_weak(values[k]) then values[k] = scope:strong(values[k], output.type or T, { at = 1 }) end
      local fixed = output.type or kind.result_dtype and kind.result_dtype(types, op, K)
      local wanted = fixed and types.by_name[fixed].compute or value_type
      local is_finer = kind.has_stages and types.by_name[wanted].kind == "float" and types.by_name[values[k].type].kind == "float"
      if values[k].type ~= wanted and not is_finer then -- a row value is rounded where it is stored
        scope:fail({ at = 1 }, fixed and "%sthe body gives %s, declared %s; write the cast" or "%sthe body gives %s for %s",
                   owner, values[k].type, fixed or T)
      end
    end
    if kind.has_stages then
      check_reductions(model, scope, { dag = state.dag, inputs = inputs, params = params, outputs = values, type = K, files = state.files,
                                       index = state.index, first_output = op.outputs[1].name })
    end
    return values
  end)
  if not ok then
    if type(result) ~= "table" then error(result, 0) end
    local failure = (result.limit or result.kind == "limit") and "limit" or "syntax"
    return nil, source.message(result.source or body, result.at or 1, string.format("%s: %s", op.name, result.message)), failure
  end
  if kind.has_stages and rows.are_rows(result) ~= op.is_reduced then -- its shape was read from its body when it was declared
    return nil, string.format("%s: %s: declare it behind the ops that its body calls", op.location, op.name), "syntax"
  end
  return { dag = state.dag, inputs = inputs, params = params, outputs = result, type = K, steps = state.steps, files = state.files,
           index = state.index, first_output = op.outputs[1].name,
           combine_of = kind.has_stages and function(by, A) return M.combine(model, by, A) end }
end

function Scope:op_dag(op, K) return M.op_dag(self.state.model, op, K) end

-- The DAG of a reduction's combine: inputs a and b, numbers of A.
function M.combine(model, op, A) return reductions.combine(M.new_state(model), op, A) end

-- The DAG of its lift: see reductions.lua.
function M.lift(model, op, dtype) return reductions.lift(M.new_state(model), op, dtype) end

return M
