-- SPDX-License-Identifier: Apache-2.0
--
-- A host's expression: text -> names and canonical text; text and the dtypes of its operands -> typed DAG. The meaning is
-- that of expr.lua. A host's text has more than a body: inputs in order of appearance, several outputs, params, and values
-- computed in another type than their dtype. runtime/lang/parse/expression.c and runtime/lang/typing/typing.c read the same language
-- in C, and a test holds the two together. Knows no C.

local foreign = require "gen.front.foreign"
local hint = require "gen.front.hint"
local parse = require "gen.front.parse"
local costs = require "gen.graph.dag.costs"
local expr = require "gen.graph.body.expr"
local derive = require "gen.graph.derive"
local kinds = require "gen.kinds.kinds"
local primitives = require "gen.graph.dag.primitives"
local rows = require "gen.graph.dag.rows"
local source = require "gen.base.source"
local stage_text = require "gen.graph.stage_text"

local M = {}

M.MAX_OPERANDS = 32
M.MAX_PARAMS = 16
M.MAX_SLOTS = 64
M.SCANS = "it scans: record what the program compiles (QUERN_RECORD=FILE), and build that: build.lua freeze --record FILE"
M.REDUCES = "it reduces: record what the program compiles (QUERN_RECORD=FILE), and build that: build.lua freeze --record FILE"
-- A canonical text is longer than its source: it has other blanks and names, and floor_divide for "//".
M.MAX_CANONICAL_BYTES = 16 * parse.MAX_BYTES

local function fail(kind, at, ...) error({ kind = kind, at = at, message = string.format(...) }, 0) end

-- The same for the text of a body, with a hint.
local function fail_in(body, kind, at, ...)
  error({ kind = kind, at = at, message = string.format(...) .. hint.at(body.text, body.tokens, at) }, 0)
end

---------------------------------------------------------------------------------------------------- names

-- Constants in lower case, unless the text declares or assigns the name -> the constant.
local OWN_CONSTANTS = { pi = "PI", inf = "INFINITY", nan = "NAN" }

-- Those of them that are constants in this text: name -> constant.
local function own_constants(tokens)
  local found = {}
  for name, constant in pairs(OWN_CONSTANTS) do found[name] = constant end
  for k, token in ipairs(tokens) do
    local before, behind = tokens[k - 1], tokens[k + 1]
    local is_assigned = behind and behind.kind == "op" and behind.text == "="
    if token.kind == "name" and (is_assigned or (before and before.kind == "name" and before.text == "param")) then found[token.text] = nil end
  end
  return found
end

-- Refuses a name with dots.
local function refuse_dots(body, name, at)
  local base = foreign.behind_module(name)
  local constant = base and (base == "e" and "E" or (expr.CONSTANTS[base] or OWN_CONSTANTS[base]) and base)
  fail_in(body, "syntax", at, "unknown name '%s': %s", name:sub(1, parse.MAX_SHOWN),
          constant and "write " .. constant or "only a function may have a namespace, and operands have no attributes: give a view")
end

-- The variables of a parsed expression: { inputs, outputs, params = lists of names, canonical = name -> its canonical
-- one }. Throws { at, message, kind }.
local function names_of(body)
  local names = { inputs = {}, outputs = {}, params = {}, canonical = {} }
  local kind_of, n_values, own = {}, 0, own_constants(body.tokens)
  for name, constant in pairs(own) do names.canonical[name] = constant end
  local function check_operands(at)
    if #names.inputs + #names.outputs > M.MAX_OPERANDS then
      fail("limit", at, "more than %d inputs and outputs", M.MAX_OPERANDS)
    end
  end
  local function read(list)
    for _, node in ipairs(list) do
      local name = node.name
      if name:find(".", 1, true) then refuse_dots(body, name, node.at) end
      if not kind_of[name] and not expr.CONSTANTS[name] and not own[name] then
        local word = foreign.words[name]
        if word and word.is_refused then fail_in(body, "syntax", node.at, "'%s' is no value", name:sub(1, parse.MAX_SHOWN)) end
        kind_of[name] = "an input"
        names.inputs[#names.inputs + 1] = name
        names.canonical[name] = "x" .. #names.inputs - 1
        check_operands(node.at)
      end
    end
  end
  for _, statement in ipairs(body.statements) do
    read(statement.reads)
    local name, at = statement.name, statement.at
    if expr.CONSTANTS[name] then fail("syntax", at, "'%s' is a constant", name) end
    if kind_of[name] == "an input" then fail("syntax", at, "'%s' is read before, as an input", name) end
    if kind_of[name] then fail("syntax", at, "'%s' is already defined, as %s", name, kind_of[name]) end
    if statement.kind == "param" then
      kind_of[name] = "a param"
      names.params[#names.params + 1] = name
      names.canonical[name] = "p" .. #names.params - 1
      if #names.params > M.MAX_PARAMS then fail("limit", at, "more than %d params", M.MAX_PARAMS) end
    else
      local is_local = statement.type or statement.is_auto
      kind_of[name] = is_local and "a local" or "an output"
      names.canonical[name] = "v" .. n_values
      n_values = n_values + 1
      if not is_local then names.outputs[#names.outputs + 1] = name end
      check_operands(at)
    end
  end
  read(body.reads)
  if body.result then
    if kind_of.out == "an input" or kind_of.out == "an output" then
      fail("syntax", body.result.at, "the result is an output named out, which is %s here", kind_of.out)
    end
    names.outputs[#names.outputs + 1] = "out"
    check_operands(body.result.at)
  end
  if #names.outputs == 0 then
    fail("syntax", body.tokens[#body.tokens].at, "no output: write name = ...; or a result")
  end
  return names
end

-- The text as a source; it may be one already, such as a part of a file. Messages begin with the expression's own name, unless
-- the text is too long to be read.
local function source_of(text)
  if type(text) ~= "string" then return text end
  return source.new(#text <= parse.MAX_BYTES and text:match "^%s*([%a_][%w_]*)%s*:" or "expression", text)
end

-- Calls f(src, ...). Returns its result; or, if it throws an error at a position of the text, nil, message, kind.
local function guarded(src, f, ...)
  local ok, result = pcall(f, src, ...)
  if ok then return result end
  if type(result) ~= "table" then error(result, 0) end
  local kind = result.kind or (result.limit and "limit") or (result.source and "dtype") or "syntax"
  return nil, source.message(src, result.at or 1, result.message), kind
end

-- For parse_host. is_bound: a scan that has states may be called, too
local function axes_of_call(model, name, at, is_bound)
  local op = expr.op_called(model, name)
  local kind = op and kinds.of(op)
  if not op or not kind.axes_of_call then return nil end
  if kind.allowed_in_expression and not (kind.allowed_in_expression(op) or is_bound and #op.outputs == 1) then
    fail("unsupported", at, "%s is no part of an expression: %s", source.shown(name), kind.refusal(op))
  end
  return kind.axes_of_call(op)
end

local function read(src, model, max_bytes, is_bound)
  local body = parse.parse_host(src.text, model.types.by_name, max_bytes, function(name, at) return axes_of_call(model, name, at, is_bound) end)
  body.text = src.text
  local names = names_of(body)
  names.name = body.name or "expression"
  return body, names
end

local function canonical_of(body, names)
  local words = {}
  local tokens = body.tokens
  local last = #tokens - 1
  if last > 0 and tokens[last].text == ";" then last = last - 1 end
  for k = body.first, last do
    local token = tokens[k]
    local is_variable = token.kind == "name" and tokens[k + 1].text ~= "(" and not token.is_keyword
    for j = #(token.opens or {}), 1, -1 do words[#words + 1] = token.opens[j] and token.opens[j] .. " (" or "(" end
    words[#words + 1] = is_variable and names.canonical[token.text] or token.lowered or token.text
    for _ = 1, token.closes or 0 do words[#words + 1] = ")" end
  end
  return table.concat(words, " ")
end

local C_SPELLING = { ["**"] = "pow(x, y)", ["//"] = "floor_divide(x, y)", ["and"] = "&&", ["or"] = "||", ["not"] = "!" }

-- An expression without dtypes: its canonical text, and { name, inputs, outputs, params }, the latter lists of
-- names; or nil, nil, message, kind ("syntax", "limit"). Functions are not looked up. text: a string or a source. is_c: it is from C
-- source, where Python's spellings are refused
function M.canonical(model, text, is_c)
  local result, message, kind = guarded(source_of(text), function(src)
    local body, names = read(src, model)
    for _, token in ipairs(is_c and body.tokens or {}) do
      local word = token.written or token.text
      if token.kind == "op" and C_SPELLING[word] then fail("syntax", token.at, "'%s' is no operator of C: write %s", word, C_SPELLING[word]) end
    end
    return { text = canonical_of(body, names), names = names }
  end)
  if not result then return nil, nil, message, kind end
  return result.text, result.names
end

-- The ops that an expression calls, each once, in the order of qn_expression.ops: by where they are called; then, if it has a
-- grad, their backward ops, and sum where it reduces. Nothing where it is not understood.
function M.ops_called(model, text)
  if type(text) == "string" and text:sub(1, #stage_text.MARK) == stage_text.MARK then return stage_text.ops_called(model, text) end
  local body = guarded(source_of(text), function(src) return (read(src, model, M.MAX_CANONICAL_BYTES)) end)
  local list, seen, has_grad = {}, {}, false
  local function add(op)
    if op and not seen[op] then list[#list + 1], seen[op] = op, true end
  end
  for _, token in ipairs(body and body.tokens or {}) do
    for j = #(token.opens or {}), 1, -1 do add(token.opens[j] and (expr.op_called(model, token.opens[j]))) end
    if token.call then
      has_grad = has_grad or token.call.name == "grad"
      add((expr.op_called(model, token.call.name)))
    end
  end
  for k = 1, has_grad and #list or 0 do add(list[k].backward and model.op_of_name[list[k].backward]) end
  if has_grad and #body.axes > 0 then add(model.op_of_name.sum) end
  return list
end

---------------------------------------------------------------------------------------------------- meaning

local Host = setmetatable({}, { __index = expr.Scope })
Host.__index = Host

local function is_callable(name) return primitives.functions[name] and not primitives.functions[name].is_trusted end

-- Checks that all called functions exist and are open to hosts: ops, else primitives.
local function check_calls(body, model, names)
  local is_input = {}
  for _, name in ipairs(names.inputs) do is_input[name] = true end
  for _, call in ipairs(body.calls) do
    local name = call.name
    if name == "grad" then
      if #call.args ~= 2 then fail("syntax", call.at, "grad takes 2 arguments, got %d", #call.args) end
      if call.args[2].kind ~= "name" or not is_input[call.args[2].name] then
        fail("syntax", call.at, "grad(expression, x): x must be an input")
      end
    elseif not expr.op_called(model, name) and not is_callable(name) then
      if name == "lookup" then fail_in(body, "syntax", call.at, "lookup is for the library's own math") end
      if primitives.functions[name] then
        fail_in(body, "syntax", call.at, "%s is for the library's own math; write %s", name, (name:gsub("^raw", "as")))
      end
      local known = {}
      for other in pairs(primitives.functions) do known[other] = is_callable(other) or nil end
      local sentence = foreign.of_function(name, function(other) return model.op_of_name[other] or known[other] end)
      local more = sentence and ": " .. sentence or foreign.words[name] and "" or source.suggest(name, model.op_of_name, known)
      fail_in(body, "notfound", call.at, "unknown function '%s'%s", source.shown(name), more)
    elseif call.axes and #call.args == 2 then
      local op = expr.op_called(model, name)
      if #op.inputs == 1 and model.op_of_name[op.name .. "imum"] then
        fail("syntax", call.at, "%s takes 1 argument and axis=, got 2: of two operands write %simum(x, y)",
             name:sub(1, parse.MAX_SHOWN), op.name)
      end
    end
  end
end

-- The number of the first axes of an expression that are written alike.
local function first_axes(all, axes)
  local function is_same(other)
    local same = #other == #axes and other.has_axis == axes.has_axis
    for k, axis in ipairs(axes) do same = same and other[k] == axis end
    return same
  end
  for k, other in ipairs(all) do
    if is_same(other) then return k - 1 end
  end
end

-- A call that reduces: its body, inlined, with the axes in its reductions; or one that scans.
function Host:call_row(op, values, node, which)
  local state = self.state
  state.count = state.count or state.dag:node("param", "i64", {}, { index = stage_text.COUNT, name = "count" })
  state.index = state.index or state.dag:node("input", "i64", {}, { index = rows.INDEX + 1, name = "index" })
  state.axes = first_axes(self.axes, node.axes)
  local result
  if node.axes.scans then result = self:call_scan(op, values, node) else result = self:call_op(op, values, node, which) end
  state.axes = nil
  return result
end

-- grad(expression, x): the derivative by an input, in the input's dtype.
function Host:derivative(node)
  local types = self.state.types
  local value, x = self:settle(self:eval(node.args[1]), node.args[1]), self:eval(node.args[2])
  for k, operand in ipairs { value, x } do
    local dtype = operand.dtype or operand.type
    if types.by_name[dtype].kind ~= "float" then
      self:fail(node, k == 1 and "grad of a %s: cast it first, (f32)x" or "grad by a %s: only floats have derivatives", dtype)
    end
  end
  local seed = x.node or x
  local plain = setmetatable({ state = self.state, source = self.source, env = {} }, expr.Scope)
  local root = value.node or value
  self.state.spreads = true
  local derivative = derive.by(plain, root, nil, seed, node)
  self.state.spreads = nil
  local found = derivative or self.state.dag:constant(seed.type, 0.0)
  return self:typed(plain:cast(found, seed.type), x.dtype or x.type)
end

function Host:eval_call(node)
  if node.name == "grad" then return self:derivative(node) end
  local values = {}
  for k, arg in ipairs(node.args) do values[k] = self:eval(arg) end
  local op, which = expr.op_called(self.state.model, node.name)
  if node.axes and node.axes.scans then
    if #values ~= 1 then
      self:fail_as("syntax", node, "%s takes 1 argument, got %d%s", node.name, #values, #values > 1 and foreign.AXES or "")
    end
    self.state.first_scan = self.state.first_scan or node.at
  end
  if node.axes then return self:call_row(op, values, node, which) end
  return op and self:call_op(op, values, node, which) or self:primitive(node.name, values, node)
end

-- The slots of the kernel's parameters: each param in each type that it is used in, by param, then type; of a stage also the number of
-- elements.
local function slots_of(dag, types, is_stage)
  local slots = {}
  for _, node in ipairs(dag.nodes) do
    if node.op == "param" and (is_stage or node.index ~= stage_text.COUNT) then slots[#slots + 1] = node end
  end
  table.sort(slots, function(a, b)
    if a.index ~= b.index then return a.index < b.index end
    return types.by_name[a.type].index < types.by_name[b.type].index
  end)
  if #slots > M.MAX_SLOTS then fail("limit", 1, "params in more than %d types together", M.MAX_SLOTS) end
  return slots
end

local KIND_ORDER = { bool = 1, integer = 2, float = 3 }

local function check_dtype(types, name, what)
  local t = types.by_name[name]
  if not t or t.kind == "bits" then fail("dtype", 1, "%s: unknown dtype '%s'", what, source.shown(name)) end
  if not t.built then fail("dtype", 1, "%s: dtype %s is not part of this version", what, name) end
  return t
end

-- Inlines all calls of a graph of units. Returns the state of the new graph. inputs, outputs: lists of nodes, replaced by the new
-- ones.
local function lowered(src, state, inputs, outputs)
  local inner = expr.new_state(state.model)
  local scope, of_node = setmetatable({ state = inner, source = src, env = {} }, expr.Scope), {}
  for k, node in ipairs(inputs) do
    inputs[k] = inner.dag:node("input", node.type, {}, { index = node.index, name = node.name })
    of_node[node] = inputs[k]
  end
  for _, node in ipairs(state.dag.nodes) do -- every slot is there, needed or not
    if node.op == "param" then
      of_node[node] = inner.dag:node("param", node.type, {}, { index = node.index, name = node.name })
    end
  end
  inner.dag.count = of_node[state.count or false]
  if state.index then
    inner.dag.index = inner.dag:node("input", "i64", {}, { index = state.index.index, name = state.index.name })
    of_node[state.index] = inner.dag.index
  end
  local ok, result = pcall(expr.lower, state, scope, outputs, of_node)
  if not ok then
    -- an error in the body of an op is reported at the call, a position that the host knows
    local problem = result
    if type(problem) == "table" and problem.source ~= src and scope.call then
      fail(problem.kind or (problem.limit and "limit") or "dtype", scope.call.at, "%s: %s", scope.call.name, problem.message)
    end
    error(problem, 0)
  end
  table.move(result, 1, #result, 1, outputs)
  return inner
end

local function evaluate(src, model, in_dtypes, out_dtypes, is_bound)
  local types = model.types
  local body, names = read(src, model, M.MAX_CANONICAL_BYTES, is_bound)
  check_calls(body, model, names)
  if #in_dtypes ~= #names.inputs then fail("dtype", 1, "dtypes of inputs: %d given, expected %d", #in_dtypes, #names.inputs) end
  if out_dtypes and #out_dtypes ~= #names.outputs then
    fail("dtype", 1, "dtypes of outputs: %d given, expected %d", #out_dtypes, #names.outputs)
  end
  local state = expr.new_state(model, true)
  local scope = setmetatable({ state = state, source = src, env = {}, keeps_dtypes = true, axes = body.axes }, Host)
  state.row_calls = {}
  local env, inputs, outputs, dtypes = scope.env, {}, {}, {}
  for name, constant in pairs(OWN_CONSTANTS) do
    if names.canonical[name] == constant then env[name] = { weak = expr.CONSTANTS[constant] } end
  end
  for k, name in ipairs(names.inputs) do
    local t = check_dtype(types, in_dtypes[k], "input " .. name)
    inputs[k] = state.dag:node("input", t.compute, {}, { index = k, name = names.canonical[name] })
    env[name] = scope:typed(inputs[k], t.name)
  end
  -- Makes a settled value the next output.
  local function give(value, at)
    local k = #outputs + 1
    outputs[k], dtypes[k] = value.finer or value.node or value, value.dtype or value.type
    local t = out_dtypes and check_dtype(types, out_dtypes[k], "output " .. names.outputs[k])
    if t and KIND_ORDER[t.kind] < KIND_ORDER[types.by_name[dtypes[k]].kind] then
      fail("dtype", at.at, "output %s: %s does not become %s by itself: write a cast, (%s)", names.outputs[k], dtypes[k], t.name,
           t.name)
    end
  end
  local n_params = 0
  for _, statement in ipairs(body.statements) do
    scope:step(statement)
    if statement.kind == "param" then
      env[statement.name] = { tree = "param", index = n_params, name = statement.name }
      n_params = n_params + 1
    else
      local value = scope:assigned(statement)
      if statement.is_auto then
        if value.tree then scope:settle(value, statement.value) end
      elseif not statement.type then
        value = scope:settle(value, statement.value)
        give(value, statement.value)
      end
      env[statement.name] = value
    end
  end
  if body.result then give(scope:settle(scope:eval(body.result), body.result), body.result) end
  local inner = lowered(src, state, inputs, outputs)
  return { dag = inner.dag, files = inner.files, inputs = inputs, slots = slots_of(inner.dag, types), outputs = outputs,
           out_dtypes = dtypes, names = names, reduces = #body.axes > 0, first_scan = state.first_scan }
end

-- The typed DAG of an expression (a canonical text or any other) for the dtypes of its operands:
--   { dag, inputs = nodes, slots = param nodes (index: of the param, from 0; type) in the order of the kernel's parameters,
--     outputs = nodes before they are stored, out_dtypes = the dtypes that they have of themselves,
--     names = { name, inputs, outputs, params }, reduces = whether it has calls that reduce: nodes "reduce", index: the number of
--     the call that has their axes; first_scan = the position in the text of the first call that scans; nil: none does }
-- or nil, message, kind ("syntax", "notfound", "dtype", "limit"). out_dtypes may be nil: what the outputs will be stored as.
-- is_bound: it is the bound of a scan, which may call it
function M.host_dag(model, text, in_dtypes, out_dtypes, is_bound)
  return guarded(source_of(text), evaluate, model, in_dtypes, out_dtypes, is_bound)
end

-- One kernel of an expression for kernels.file: { record, dag }, or nil, message, kind. request: { symbol, canonical (or any
-- other text), in_dtypes, out_dtypes, classes = a letter an operand, rank = 1 or 2, most_cost = a limit (costs.lua), or nil }. has_rows: the
-- target has kernels of all stages of an expression that reduces
function M.entry(model, request, has_rows)
  local src = source_of(request.canonical)
  return guarded(src, function()
    local is_stage = request.canonical:sub(1, #stage_text.MARK) == stage_text.MARK
    local host
    if is_stage then
      host = stage_text.read(model, request.canonical, src, request.in_dtypes, request.out_dtypes)
      host.slots, host.names = slots_of(host.dag, model.types, true), { name = "a stage of a row" }
    else
      host = evaluate(src, model, request.in_dtypes, request.out_dtypes)
      -- for the CPU the kernels of a scan are those of stages, which the runtime cuts it into
      if host.first_scan and not has_rows then fail("unsupported", host.first_scan, M.SCANS) end
      if host.reduces and not has_rows then fail("unsupported", 1, M.REDUCES) end
      if host.reduces then host.slots = slots_of(host.dag, model.types, true) end
    end
    local types, outputs, dtypes = model.types, {}, {}
    for _, dtype in ipairs(request.in_dtypes) do dtypes[#dtypes + 1] = dtype end
    for k, dtype in ipairs(request.out_dtypes) do
      dtypes[#dtypes + 1] = dtype
      outputs[k] = host.outputs[k]
      -- a condition is stored as bool, or as the number that it is
      if outputs[k].type == "bool" then outputs[k] = host.dag:make("cast", types.by_name[dtype].compute, { outputs[k] }) end
    end
    local cost = costs.of(types, outputs, not has_rows)
    if request.most_cost and cost > request.most_cost then
      fail("limit", 1, "its kernel has about %d instructions, more than %d (compile_cost_limit)", cost, request.most_cost)
    end
    local op = { name = host.names.name, bodies = { any = src }, file = src.name, line = 1 }
    local record = { name = request.symbol, op = op, dtypes = dtypes, rank = tostring(request.rank), classes = request.classes,
                     template = "elementwise", fused = host.fused, is_expression = true }
    local dag = { dag = host.dag, files = host.files, inputs = host.inputs, params = host.slots, outputs = outputs }
    if host.reduces then
      dag.index, dag.combine_of = host.dag.index, function(by, A) return expr.combine(model, by, A) end
    end
    return { record = record, dag = dag, reduces = host.reduces, cost = cost }
  end)
end

return M
