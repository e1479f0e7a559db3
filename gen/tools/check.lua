-- SPDX-License-Identifier: Apache-2.0
--
-- A spec file of others, checked through all stages, and how accurate its ops are.

local bounds = require "gen.tools.bounds"
local claims = require "gen.tools.claims"
local derive = require "gen.graph.derive"
local evaluate = require "gen.graph.dag.evaluate"
local evaluate_rows = require "gen.graph.evaluate_rows"
local files = require "gen.base.files"
local kinds = require "gen.kinds.kinds"
local load = require "gen.products.load"
local measure = require "gen.tools.measure"
local planning = require "gen.products.plan"
local sandbox = require "gen.front.sandbox"
local spec = require "gen.front.spec"
local tables = require "gen.products.tables"
local tree = require "gen.products.tree.tree"
local variants = require "gen.targets.variants"

local M = {}

-- The examples of the plan's ops, in every type that they compute in.
function M.examples(plan)
  local errors, types = {}, plan.model.types
  local function run_row(...) return evaluate_rows.run(plan.model, ...) end
  for _, op in ipairs(plan.ops) do
    for _, K in ipairs(variants.kernel_dtypes(types, op, plan.wanted)) do
      if types.by_name[K].kind ~= "bits" and kinds.of(op).has_body then
        for _, message in ipairs(evaluate.check_examples(types, op, plan.dag_for(op, K), K, kinds.of(op).has_stages and run_row)) do
          errors[#errors + 1] = string.format("%s:1: %s: %s", op.location, op.name, message)
        end
      elseif op.reducer then
        local dag, run = evaluate_rows.of(plan.model, op, K)
        for _, message in ipairs(evaluate.check_examples(types, op, dag, K, run)) do
          errors[#errors + 1] = string.format("%s:1: %s: %s", op.location, op.name, message)
        end
      end
    end
  end
  return errors
end

-- A spec file's own ops, checked through all stages but writing, and their examples.
function M.spec(root, file)
  local model, _, errors = load.load(root, {})
  if #errors > 0 then return nil, errors end
  local before = #model.ops
  local text, why = files.read_regular(file, sandbox.MAX_BYTES + 1)
  if not text then return nil, { why } end
  errors = spec.load(model, file, text)
  if #errors > 0 then return nil, errors end
  derive.complete(model, before + 1)
  local names = {}
  for k = before + 1, #model.ops do names[#names + 1] = model.ops[k].name end
  if #names == 0 then return {} end
  local plan
  plan, errors = planning.plan(model, { ops = table.concat(names, ",") })
  if not plan then return nil, errors end
  errors = M.examples(plan)
  for _, message in ipairs(claims.errors(plan)) do errors[#errors + 1] = message end
  for _, op in ipairs(plan.ops) do errors[#errors + 1] = bounds.failure(model, op) end
  if #errors > 0 then return nil, errors end
  local rows = {}
  for _, op in ipairs(plan.ops) do
    local inputs, records = tables.accepted(model.types, op, plan.wanted), plan.records_of[op.name]
    rows[#rows + 1] = { op = op, types = model.types, inputs = inputs, kernels = #records, weight = records[1] and records[1].weight or 0 }
  end
  return rows
end

-- How accurate the ops are that M.spec has found in a spec, as text given to `write`. Returns whether all declared bounds hold,
-- or nil, errors where that could not be seen. progress: as measure.run has it.
function M.measure(root, file, checked, write, progress)
  local names, dtypes, takes, prefix = {}, {}, {}, "measured"
  for _, row in ipairs(checked) do
    local is_floating = false
    for _, name in ipairs(row.inputs) do
      local is_measured = row.types.by_name[name].kind == "float"
      if is_measured and not takes[name] then dtypes[#dtypes + 1] = name end
      takes[name], is_floating = true, is_floating or is_measured
    end
    if is_floating then names[#names + 1] = row.op.name end
  end
  if #names == 0 then return true end
  local result, errors = tree.generate(root, { specs = { file }, ops = table.concat(names, ","), prefix = prefix, single = true,
                                            dtypes = table.concat(dtypes, ","), is_named_only = true })
  if not result then return nil, errors end
  local skipped, n_rows
  result.files["subjects.h"], skipped, n_rows = measure.subjects(result.plan, prefix)
  for _, message in ipairs(skipped) do write(message .. "\n") end
  if n_rows == 0 then return true end
  local folder, why = measure.folder()
  if not folder then return nil, { why } end
  local counts, holds
  counts, why = files.write(folder, result.files)
  if counts then holds, why = measure.run(root, folder, prefix, write, progress) end
  measure.remove(folder)
  if holds == nil then return nil, { why } end
  return holds
end

return M
