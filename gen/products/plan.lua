-- SPDX-License-Identifier: Apache-2.0
--
-- The plan of a run: options -> ops, dtypes, records of kernels. Makes no text.

local expr = require "gen.graph.body.expr"
local foreign = require "gen.front.foreign"
local kinds = require "gen.kinds.kinds"
local order = require "gen.base.order"
local source = require "gen.base.source"
local states = require "gen.graph.states"
local tables = require "gen.products.tables"
local variants = require "gen.targets.variants"

local M = {}

-- The words of a list of an option.
function M.split(text)
  local list = {}
  for word in text:gmatch "[^,%s]+" do list[#list + 1] = word end
  return list
end

-- Stage dag, as needed and kept: returns a function (op, K, narrow) -> DAG or nil, as of expr.op_dag, and the list its errors go to.
local function dag_maker(model)
  local kept, errors, told = {}, {}, {}
  return function(op, K, narrow)
    if not kinds.of(op).has_body then return nil end -- there is nothing to compute
    local key = op.name .. " " .. K .. " " .. (narrow or K)
    if kept[key] == nil then
      local dag, message = expr.op_dag(model, op, K, nil, narrow)
      kept[key] = dag or false
      -- a body that serves several dtypes is wrong in all of them in one way
      if not dag and not told[message] then errors[#errors + 1] = message end
      told[message or ""] = true
    end
    return kept[key] or nil
  end, errors
end

-- The dtypes to generate, as a set: those asked for (names), their compute dtypes, and those of results. names nil: all that the
-- build has.
function M.wanted_dtypes(model, names, ops, errors)
  local types, wanted = model.types, {}
  if not names then
    for _, t in ipairs(types.list) do wanted[t.name] = t.built or nil end
    return wanted
  end
  for _, name in ipairs(names) do
    local t = types.by_name[name]
    if model.in_preview[name] then
      errors[#errors + 1] = string.format("--dtypes: %s is in preview: give --preview, too", name)
    elseif not t or t.kind == "bits" then
      errors[#errors + 1] = string.format("--dtypes: unknown dtype '%s'%s", source.shown(name), source.suggest(name, types.sets.all))
    elseif not t.built then
      errors[#errors + 1] = string.format("--dtypes: %s is not built in this version", name)
    else
      wanted[name] = true
      wanted[t.compute] = true
    end
  end
  local asked = order.keys(wanted)
  for _, op in ipairs(ops) do
    for _, output in ipairs(op.outputs) do
      if output.type then
        wanted[output.type] = true
        wanted[types.by_name[output.type].compute] = true
      end
    end
    for _, input in ipairs(op.inputs) do
      if input.type == "bool" then wanted.bool = true end
    end
    if kinds.of(op).add_dtypes then kinds.of(op).add_dtypes(types, op, wanted, asked) end
  end
  return wanted
end

-- The ops to generate, sorted by name. Without --ops: all. With it: those that it names, and the ops that the files of
-- options.specs declare; not their backward ops; with options.is_named_only only those that it names.
function M.sorted_ops(model, options, errors)
  local ops, seen, is_spec = {}, {}, {}
  local function add(op)
    if not seen[op] then ops[#ops + 1] = op end
    seen[op] = true
  end
  for _, name in ipairs(not options.is_named_only and options.specs or {}) do is_spec[name] = true end
  for _, op in ipairs(model.ops) do
    if not options.ops or (is_spec[op.file] and not op.backward_of) then add(op) end
  end
  for _, name in ipairs(options.ops and M.split(options.ops) or {}) do
    local op = model.op_of_name[name]
    if op then
      add(op)
    else
      errors[#errors + 1] = string.format("--ops: unknown op '%s'%s", source.shown(name), foreign.advice(name, model.op_of_name))
    end
  end
  table.sort(ops, function(a, b) return order.less(a.name, b.name) end)
  return ops
end

-- Errors of requests without a result: ops that take none of the dtypes, dtypes that none of the ops takes or gives.
local function idle(model, options, ops, wanted, errors)
  local is_used = {}
  for _, op in ipairs(ops) do
    local inputs, outputs = tables.accepted(model.types, op, wanted)
    for _, name in ipairs(inputs) do is_used[name] = true end
    for _, names in ipairs(outputs) do
      for _, name in ipairs(names) do is_used[name] = true end
    end
    for _, input in ipairs(op.inputs) do is_used[input.type or ""] = true end
    if options.ops and #variants.kernel_dtypes(model.types, op, wanted) == 0 then
      local takes = tables.accepted(model.types, op, M.wanted_dtypes(model))
      errors[#errors + 1] = string.format("%s: %s takes none of the dtypes asked for, but %s", op.builtin and "--ops" or op.location,
                                          op.name, #takes > 0 and table.concat(takes, ", ") or "such as are not built in this version")
    end
  end
  for _, name in ipairs(options.dtypes and M.split(options.dtypes) or {}) do
    if not is_used[name] then errors[#errors + 1] = string.format("--dtypes: %s: none of the ops asked for takes it", name) end
  end
end

-- The values of an option's words, as a set. known: word -> value, or true
function M.parse_set(option, list, known, errors)
  if not list then return nil end
  local set = {}
  for _, word in ipairs(list) do
    local value = known[word]
    if value == true then value = word end
    if not value then
      errors[#errors + 1] = string.format("%s: unknown '%s'%s", option, source.shown(word), source.suggest(word, known))
    else
      set[value] = true
    end
  end
  return set
end

-- Stages dag and variants. Returns { model, ops, wanted, records_of, packs, dag_for } or nil, errors.
function M.plan(model, options)
  local errors = {}
  local ops = M.sorted_ops(model, options, errors)
  local wanted = M.wanted_dtypes(model, options.dtypes and M.split(options.dtypes), ops, errors)
  local policy = {
    variants = options.variants or "lean",
    ranks = M.parse_set("--rank", options.rank and M.split(options.rank), variants.RANKS, errors),
    classes = M.parse_set("--class", options.class and M.split(options.class), variants.CLASS_NAMES, errors),
  }
  if policy.variants ~= "lean" and policy.variants ~= "full" then
    errors[#errors + 1] = string.format("--variants: '%s', expected lean or full", source.shown(policy.variants))
  end
  if #ops == 0 and #errors == 0 then errors[1] = "no ops to generate" end
  if #errors == 0 then idle(model, options, ops, wanted, errors) end
  if #errors > 0 then return nil, errors end
  local dag_for, dag_errors = dag_maker(model)
  local kept = {}
  -- every body is checked before any is planned
  for _, op in ipairs(ops) do
    local dtypes = variants.kernel_dtypes(model.types, op, wanted)
    for _, K in ipairs(dtypes) do
      dag_for(op, K)
      local message = op.reducer and not kinds.of(op).has_body and states.failure(model, op, K)
      if message and dag_errors[#dag_errors] ~= message then dag_errors[#dag_errors + 1] = message end
    end
    if #dtypes > 0 then kept[#kept + 1] = op end
  end
  if #dag_errors > 0 then return nil, dag_errors end
  local records_of = {}
  local function combine_for(op, A) return (op.has_states and states.of or expr.combine)(model, op, A) end
  for _, op in ipairs(kept) do
    records_of[op.name] = variants.of_op(model.types, op, wanted, policy, dag_for, combine_for)
  end
  return { model = model, ops = kept, wanted = wanted, policy = policy, records_of = records_of, dag_for = dag_for, combine_for = combine_for,
           packs = variants.of_packs(model, wanted, kept, records_of) }
end

-- Takes the ops out of a plan that a product has no kernels of. why_of(op): the reason, or nil. Sets and returns left_out: list
-- of { op, why }.
function M.leave_out(plan, why_of)
  local kept, left_out = {}, {}
  for _, op in ipairs(plan.ops) do
    local why = why_of(op)
    table.insert(why and left_out or kept, why and { op = op, why = why } or op)
  end
  plan.ops, plan.left_out = kept, left_out
  return left_out
end

return M
