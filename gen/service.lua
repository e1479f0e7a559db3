-- SPDX-License-Identifier: Apache-2.0
--
-- The generator at run time: the interface of the quern-gen module. A service holds a model, which specs add to, and answers
-- with texts; errors come back as nil, kind, message. Opens no files. Has only the libraries string, table, math, utf8,
-- and the functions of debug that sandbox.lua needs. The maker of a service gives it texts and the model.

local costs = require "gen.graph.dag.costs"
local dag_of = require "gen.graph.dag.dag"
local derive = require "gen.graph.derive"
local expr = require "gen.graph.body.expr"
local kinds = require "gen.kinds.kinds"
local number = require "gen.base.number"
local promote = require "gen.front.promote"
local rows = require "gen.graph.dag.rows"
local stage_text = require "gen.graph.stage_text"
local states = require "gen.graph.states"

local M = {}

-- A limit on the bodies of one spec together, in steps of expr.lua.
M.MAX_SPEC_STEPS = 1000000
-- A limit on the work for one request, in instructions of Lua.
M.MAX_WORK = 200000000
M.HOOK_EVERY = 10000
M.MAX_MESSAGE_BYTES = 1000
M.MOST_KILOBYTES = 16 << 10 -- of Lua's memory after a spec; above it garbage is collected at once

local Service = {}
Service.__index = Service

-- sources: { model = function() -> the model of the built-in specs, read = function(name) -> text of a template }; limits: of a host,
-- { nodes, cost, steps }, 0 or nil: the default
function M.new(sources, limits)
  local function limit(name, default)
    local given = limits and limits[name] or 0
    return given > 0 and given or default
  end
  dag_of.MAX_NODES = math.min(limit("nodes", dag_of.MAX_NODES), dag_of.MAX_NODES)
  return setmetatable({ sources = sources, kept = {}, strings = debug.getmetatable "", most_cost = limit("cost", costs.MOST),
                        most_work = limit("steps", M.MAX_WORK) }, Service)
end

-- A model of the built-in specs from the fields that tools/embed.lua keeps: { dtypes, ops, funcs, api_names }.
function M.restore(kept)
  local model = { dtypes = kept.dtypes, ops = kept.ops, op_of_name = {}, op_of_c_name = {}, func_of_name = {}, files = {},
                  api_names = {}, primitives = expr.PRIMITIVES, types = promote.new(kept.dtypes), derive = derive.run }
  for _, op in ipairs(kept.ops) do model.op_of_name[op.name], model.op_of_c_name[op.c_name] = op, op end
  for _, func in ipairs(kept.funcs) do model.func_of_name[func.name] = func end
  for _, name in ipairs(kept.api_names) do model.api_names[name] = true end
  return model
end

-- What is said of something that cannot be done. kind: "syntax", "dtype", "limit", "exists", "notfound", "unsupported",
-- "memory", "bug"
local function refuse(kind, ...) error({ refused = kind, message = string.format(...) }, 0) end

-- Counts a request's work. Beyond the limit everything fails, also what catches errors: the request is refused at its end.
local function watch(self)
  local work = 0
  self.is_exceeded = false
  debug.sethook(function()
    work = work + M.HOOK_EVERY
    self.is_exceeded = self.is_exceeded or work > self.most_work
    if self.is_exceeded then error({ limit = true, message = "more work than a request may take" }, 0) end
  end, "", M.HOOK_EVERY)
end

local function refuse_exceeded(self)
  refuse("limit", "it takes more than %d steps of work (spec_step_limit)", self.most_work)
end

-- f(self, ...), of at most three results, with its errors as nil, kind, message.
local function guarded(f)
  return function(self, ...)
    local ok, result, more, last = pcall(self.get_model, self)
    if ok then
      watch(self)
      ok, result, more, last = pcall(f, self, ...)
      debug.sethook()
    end
    if self.is_exceeded then ok, result = pcall(refuse_exceeded, self) end
    if ok then return result, more, last end
    -- a run of a spec that was cut short may have left its limits in place
    debug.setmetatable("", self.strings)
    if type(result) == "table" and result.refused then return nil, result.refused, result.message end
    if result == "not enough memory" then return nil, "memory", "the generator may not use more memory" end
    local message = type(result) == "table" and result.message or result
    return nil, "bug", "bug: the generator failed: " .. tostring(message)
  end
end

function Service:get_model()
  if not self.model then
    local model, built = self.sources.model(), {}
    for _, t in ipairs(model.types.list) do built[t.name] = t.built or nil end
    self.model, self.built = model, built
  end
  return self.model
end

---------------------------------------------------------------------------------------------------- specs

-- The messages joined, as many as fit into one sentence.
local function joined(errors)
  local out, size = {}, 0
  for k, message in ipairs(errors) do
    if k > 1 and size + #message > M.MAX_MESSAGE_BYTES - 20 then
      out[#out + 1] = string.format("and %d more", #errors - k + 1)
      break
    end
    out[k], size = message, size + #message + 1
  end
  return table.concat(out, "\n")
end

local PROMOTIONS = { COMMON = 0, FLOATING = 1, DOUBLE = 2 } -- ORDER qn_promotion of runtime/core/base/kernel_abi.h

-- A parameter's default: its kind in C (QUERN_I64 or QUERN_F64) and its bits.
local function packed_number(value)
  if math.type(value) == "integer" then return string.pack("<i4i8", 0, value) end
  return string.pack("<i4i8", 2, number.f64_bits(value))
end

-- A number of a type as 64 bits.
local function item_bits(t, item)
  if t.name == "f32" then return number.f32_bits(item + 0.0) end
  if t.kind == "float" then return number.f64_bits(item + 0.0) end
  return t.bits < 64 and item & ((1 << t.bits) - 1) or item
end

local function hex_bits(types, node)
  local t = types.by_name[node.type]
  return string.format("%016x", t.bits < 64 and node.value & ((1 << t.bits) - 1) or node.value)
end

-- The lines of runtime/lang/op_lines.h for a DAG { inputs, params, outputs }.
local function program_lines(types, dag)
  local lines, line_of, n = {}, {}, 0
  local function add(key, ...)
    lines[#lines + 1] = string.format(...)
    line_of[key], n = n, n + 1
  end
  for _, node in ipairs(dag.inputs) do add(node, "in %s", node.type) end
  for k, node in ipairs(dag.params) do add(node, "param %s %d", node.type, k - 1) end
  for _, node in ipairs(dag_of.order(dag.outputs)) do
    local op, list, words = node.op, node.table, {}
    if line_of[node] then -- an input or a parameter
    elseif op == "const" then
      add(node, "const %s %s", node.type, hex_bits(types, node))
    else
      if list then
        if not line_of[list] then
          local items = {}
          for k, item in ipairs(list.items) do items[k] = string.format("%016x", item_bits(types.by_name[list.type], item)) end
          add(list, "table %s %d %s", list.type, #items, table.concat(items, " "))
        end
        words[1] = line_of[list]
      end
      for _, arg in ipairs(node.args) do words[#words + 1] = line_of[arg] end
      if op == "rare" then op = "select" elseif op == "round" then op = "round_" .. node.name end
      add(node, "prim %s %s %s %s", op, node.type, node.args[#node.args].type, table.concat(words, " "))
    end
  end
  for _, node in ipairs(dag.outputs) do lines[#lines + 1] = "out " .. line_of[node] end
  return table.concat(lines, "\n") .. "\n"
end

local function packed_numbers(list)
  return string.pack("<I4" .. ("I4"):rep(#list), #list, table.unpack(list))
end

-- The name of a built reduction with the same combine as a spec's, for an accumulator: its kernels run in place of the interpreter. "": there
-- is none, or the state has several parts.
local function twin_of(model, op, A)
  model.combines = model.combines or {}
  if not model.combines[A] then
    local of_text = {}
    for _, other in ipairs(model.ops) do
      if other.builtin and kinds.of(other).calls_itself and not other.reducer.parts and not other.reducer.absorbs then
        local ok, dag = pcall(expr.combine, model, other, A)
        local text = ok and program_lines(model.types, dag)
        if text and not of_text[text] then of_text[text] = other.name end
      end
    end
    model.combines[A] = of_text
  end
  if op.builtin or op.reducer.parts then return "" end
  return model.combines[A][program_lines(model.types, expr.combine(model, op, A))] or ""
end

-- The packed rest of an op: its form, 0 or that of its kind, and what the kind packs.
local function packed_rest(model, op, built)
  local kind, variants = kinds.of(op), require "gen.targets.variants"
  if not kind.packed then return string.pack("<I4", 0) end
  local kit = {
    types = model.types, kind = kind, numbers = packed_numbers, bits = item_bits, kernel_name = stage_text.kernel_name,
    kernel_dtypes = function(of, wanted) return variants.kernel_dtypes(model.types, of, wanted) end,
    stages = function(of, K) return rows.stages(model.types, (expr.op_dag(model, of, K))) end,
    combine = function(of, A) return expr.combine(model, of, A) end,
    states = function(of, A) return states.of(model, of, A) end,
    twin = function(of, A) return twin_of(model, of, A) end,
  }
  return string.pack("<I4", kind.packed_form) .. kind.packed(kit, op, built)
end

-- An op for runtime/toolchain/spec/spec_ops.c, which unpacks it.
local function packed_op(model, op, built, heavy)
  local tables, variants, kernels = require "gen.products.tables", require "gen.targets.variants", require "gen.targets.c.kernels"
  local types, kind = model.types, kinds.of(op)
  local inputs, outputs = tables.accepted(types, op, built)
  local mask, own, conditions, whole = 0, 0, 0, 0
  local alias = not kind.may_alias and 0 or (1 << #op.inputs) - 1
  for _, name in ipairs(op.dtypes) do
    local bit = built[name] and 1 << types.by_name[name].index or 0
    mask = mask | bit
    if tables.has_own_body(types, op, name) then own = own | bit end
  end
  local args = {}
  for k, input in ipairs(op.inputs) do
    local is_condition = input.type == "bool"
    local is_whole = input.type ~= nil and not is_condition
    if is_condition then conditions = conditions | 1 << (k - 1) end
    if is_whole then whole = whole | 1 << (k - 1) end
    args[#args + 1] = string.pack("<s4s4I4I4", input.name, is_condition and "bool" or table.concat(is_whole and tables.integers(types, built) or inputs, " "),
                                  0, 0)
  end
  local results = {}
  for k, output in ipairs(op.outputs) do
    args[#args + 1] = string.pack("<s4s4I4I4", output.name, table.concat(outputs[k], " "), 1, alias)
    results[k] = string.pack("<I4", output.type and types.by_name[output.type].index or 0xff) -- QN_DTYPE_NONE
  end
  local params, derivative = {}, { string.pack("<I4", op.backward_of and 1 or 0) }
  for k, param in ipairs(op.params) do params[k] = string.pack("<s4", param.name) .. packed_number(param.value) end
  for _, list in ipairs(op.backward_of and { op.reads, op.by } or {}) do
    for _, number_of in ipairs(list) do derivative[#derivative + 1] = string.pack("<I4", number_of) end
  end
  return string.pack("<s4s4s4s4s4I4s4I4I4I4I4I4I4I4I4I4I4I4I4", op.name, op.doc, kernels.formula(op), op.backward or "",
                     kind.refusal and kind.refusal(op) or "", kind.allowed_in_expression and 1 or 0, kind.runtime or kind.name,
                     kinds.class_number(op),
                     PROMOTIONS[variants.promotion(types, op)], mask, own, conditions, whole, heavy and 1 or 0,
                     #op.inputs, #op.outputs, #op.params, op.counts or 0, op.fraction_in or 0)
    .. packed_numbers(kinds.roles(op) or {}) .. table.concat(results) .. table.concat(derivative) .. table.concat(args) .. table.concat(params)
    .. packed_rest(model, op, built)
end

-- Bodies of the ops from `first` on, in all types that they compute in. Sets heavy[op], where it is.
local function check_bodies(self, ops, first, heavy)
  local variants, model, built = require "gen.targets.variants", self.model, self.built
  local errors, seen, steps, worst = {}, {}, 0, "syntax"
  for k = first, #ops do
    local op = ops[k]
    if not kinds.of(op).may_be_added then
      refuse("unsupported", "%s: %s: ops that move or cast cannot be added at run time: generate them ahead, with build.lua",
             op.location, op.name)
    end
    local dtypes = variants.kernel_dtypes(model.types, op, built)
    if #dtypes == 0 then refuse("unsupported", "%s: %s: none of its dtypes is part of this version", op.location, op.name) end
    for _, K in ipairs(dtypes) do
      local dag, message, kind
      if kinds.of(op).has_body then
        dag, message, kind = expr.op_dag(model, op, K)
      else
        message, kind = states.failure(model, op, K)
      end
      if not dag and not message then -- a scan without a fault
        steps = steps + 1
      elseif dag then
        heavy[op] = heavy[op] or variants.weight(dag) > variants.HEAVY_NODES
        steps = steps + dag.steps
        if steps > M.MAX_SPEC_STEPS then
          refuse("limit", "%s: %s: the bodies up to here take more than %d steps of work", op.location, op.name, M.MAX_SPEC_STEPS)
        end
      elseif not seen[message] then
        -- a body that serves several dtypes is wrong in all of them in one way
        seen[message] = true
        errors[#errors + 1] = message
        if kind == "limit" then worst = kind end
      end
      if #errors >= 20 then refuse(worst, "%s", joined(errors)) end
    end
  end
  if #errors > 0 then refuse(worst, "%s", joined(errors)) end
end

-- The ops from `first` on, which have been checked, packed: how many, then each.
local function packed_ops(self, ops, first, heavy)
  local packed = {}
  for k = first, #ops do packed[#packed + 1] = packed_op(self.model, ops[k], self.built, heavy[ops[k]]) end
  return string.pack("<I4", #packed) .. table.concat(packed)
end

-- Removes the additions to a model since `before`: { n_ops, n_files, funcs = set of names }.
local function take_back(model, before)
  for k = #model.ops, before.n_ops + 1, -1 do
    local op = model.ops[k]
    derive.forget(model, op)
    model.ops[k], model.op_of_name[op.name], model.op_of_c_name[op.c_name] = nil, nil, nil
  end
  for func in next, model.func_of_name do
    if not before.funcs[func] then model.func_of_name[func] = nil end
  end
  for k = #model.files, before.n_files + 1, -1 do model.files[k] = nil end
end

-- Adds a spec's ops to the model, all or none. Returns those packed that the spec declares, derivatives among them. The others are made when
-- they are asked for.
local function load_spec(self, name, text)
  local spec = require "gen.front.spec"
  local model = self:get_model()
  local before = { n_ops = #model.ops, n_files = #model.files, funcs = {} }
  for func in next, model.func_of_name do before.funcs[func] = true end
  local ok, result = pcall(function()
    local errors = spec.load(model, name, text)
    if #errors > 0 then refuse(errors.exists and "exists" or "syntax", "%s", joined(errors)) end
    local n_declared, heavy = #model.ops, {}
    check_bodies(self, model.ops, before.n_ops + 1, heavy)
    derive.expect(model, before.n_ops + 1) -- of bodies that are within their limits
    check_bodies(self, model.ops, n_declared + 1, heavy)
    return packed_ops(self, model.ops, before.n_ops + 1, heavy)
  end)
  ok = ok and not self.is_exceeded
  debug.sethook() -- what is left must not fail
  if not ok then take_back(model, before) end
  if collectgarbage "count" > M.MOST_KILOBYTES then collectgarbage() end
  if not ok then error(result, 0) end
  self.before = before
  return result
end

-- The derivative of an op, packed as load_spec does.
local function derivative(self, name)
  local model = self:get_model()
  local op = model.op_of_name[name]
  local backward = op and derive.backward_of(model, op)
  if not backward then refuse("notfound", "%s has no derivative", name) end
  local heavy = {}
  check_bodies(self, { backward }, 1, heavy)
  return packed_ops(self, { backward }, 1, heavy)
end

-- Takes the last spec that was loaded out again.
local function forget(self)
  if self.before then take_back(self.model, self.before) end
  self.before = nil
  return ""
end

---------------------------------------------------------------------------------------------------- programs

-- name: an op's, for K; or, with K empty, that of a stage's kernel, or of a combine (stage_text.lua).
local function program(self, name, K)
  local model = self:get_model()
  if K == "" then return program_lines(model.types, stage_text.stage_of(model, name)) end
  local op = model.op_of_name[name]
  if not op then refuse("notfound", "no op '%s'", name) end
  if not model.types.by_name[K] then refuse("dtype", "%s: unknown dtype '%s'", name, K) end
  if kinds.of(op).has_stages then refuse("unsupported", "%s: is computed in stages, none of which is a program by itself", name) end
  local dag, message, kind = expr.op_dag(model, op, K)
  if not dag then refuse(kind, "%s", message) end
  return program_lines(model.types, dag)
end

---------------------------------------------------------------------------------------------------- kernels

local BANNER = { "/* SPDX-License-Identifier: 0BSD */", "/* Generated by Quern: the kernel of an expression, made at run time. */" }

-- request: { symbol, op or nil, canonical, dtypes = names of the operands', inputs first, n_in, classes, rank, target or nil: "c",
-- is_wide }. op: the name of an op that copies, casts or computes from indices, of which this is the kernel by itself; else it is
-- the kernel of the expression `canonical`. Returns the text, the items per thread, and about what it costs a compiler (costs.lua)
local function kernel_source(self, request)
  local n = #request.dtypes
  request.in_dtypes = table.move(request.dtypes, 1, request.n_in, 1, {})
  request.out_dtypes = table.move(request.dtypes, request.n_in + 1, n, 1, {})
  local targets = require "gen.targets.all"
  local target = targets.by_name[request.target or targets.cpu.name]
  if not target then refuse("bug", "bug: no target '%s'", request.target) end
  for k, name in ipairs(request.out_dtypes) do -- a library with dtypes in preview has some that the generator has not
    if not self:get_model().types.by_name[name] then refuse("dtype", "output %d: unknown dtype '%s'", k, name) end
  end
  self.kept[target] = self.kept[target] or target.sources(self.sources.read, self:get_model().types)
  request.most_cost = request.is_bounded and self.most_cost or nil
  local text, items, more = target.source(self:get_model(), BANNER, request, self.kept[target])
  if not text then refuse(more, "%s", items) end
  return text, items, more or 0
end

-- All of these return a string (source: and two numbers), or nil, kind, message.
Service.load_spec = guarded(load_spec)
Service.derivative = guarded(derivative)
Service.forget = guarded(forget)
Service.program = guarded(program)
Service.source = guarded(kernel_source)

return M
