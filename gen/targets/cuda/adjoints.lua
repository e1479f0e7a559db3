-- SPDX-License-Identifier: Apache-2.0
--
-- CUDA kernels of derivatives of scans (the kind adjoint): their records, arguments, and the values of
-- templates/cuda/scan_adjoint.cu.in. They are launched as kernels that scan are: scans.lua has what both have.

local dag_of = require "gen.graph.dag.dag"
local locals_of = require "gen.targets.locals"
local operands_of = require "gen.targets.operands"
local rows = require "gen.targets.cuda.rows"
local scans = require "gen.targets.cuda.scans"
local target_cuda = require "gen.targets.cuda.emit"

local M = {}

M.TEMPLATE, M.HEADERS = "scan_adjoint", { "kernel_scans.h" }

M.max_rank, M.reducers = scans.max_rank, rows.reducers

-- The fields of a record, beside those of variants.lua. K: the dtype that it computes in; dags: of gen/graph/states.lua; make(fields)
-- -> record
function M.record(fields, K, dags, make)
  fields.classes, fields.rank, fields.K, fields.adjoint = ("s"):rep(#fields.dtypes), "n", K, dags
  local record = make(fields)
  record.template, record.by = M.TEMPLATE, M
  record.program = { stages = {}, row_types = {}, reduces = { { op = record.op, type = K } } }
  record.dag = { inputs = {}, params = {}, outputs = {}, files = dags.combine.files, combine_of = function() return dags.combine end }
  return record
end

function M.arguments_name(shape) return string.format("q_adjoint_%d_%d", shape.operands, shape.rank) end

local MORE = { "last, first_place, place_step", "the place in the walk that is first in the scan; the walk's first place in the tensor, the step to the next" }

function M.n_arguments(shape) return scans.n_fields(shape, 3) end
function M.arguments_text(shape) return scans.struct_text(M.arguments_name(shape), shape, MORE) end

-- The statements of a body for element k of a segment, and the texts of its results. of: input node -> name
local function emit(types, body, parsed, list, of)
  local others = { "k", "at", "got", "v1", "x" }
  for _, o in ipairs(list) do others[#others + 1], others[#others + 2] = o.short, "all_" .. o.short end
  local order = dag_of.order(body.outputs)
  local locals = locals_of.new(parsed, list, others, body.outputs)
  local lines, emitter = target_cuda.emit(types, order, of, { locals = locals, tables = {}, roots = body.outputs })
  local results = {}
  for k, node in ipairs(body.outputs) do results[k] = emitter:argument(node) end
  return lines, results
end

-- kit: see rows.lua
function M.values(kit, types, entry, parsed)
  local record = entry.record
  local op, dags, K, n_in = record.op, record.adjoint, types.by_name[record.K], #record.op.inputs
  local by, n_parts, names = rows.reducer_name(record.program.reduces[1]), #dags.parts, {}
  for k, input in ipairs(op.inputs) do names[k] = input.name end
  names[n_in + 1] = "result"
  local list = operands_of.of_record(types, record, names, n_in, {}, nil)
  local lifted, finished = operands_of.used(dags.lift), operands_of.used(dags.finish)
  local of_lift, of_finish, inputs, bytes = {}, {}, {}, K.size
  for k, input in ipairs(op.inputs) do
    local name, node, again = "all_" .. input.name, dags.lift.inputs[k], dags.finish.inputs[n_parts + k]
    of_lift[node], of_finish[again] = name .. "[k]", name .. "[k]"
    if lifted[node] or finished[again] then
      local t = types.by_name[node.type]
      bytes = math.max(bytes, t.size)
      inputs[#inputs + 1] = { index = k - 1, name = name, element = t.c, input = list[k].element, is_lifted = lifted[node] == true,
                              is_before = input.name == op.before, loaded = list[k].name,
                              line = kit.input_text(types, list[k], node, "got", nil, false) }
    end
  end
  for k = 1, n_parts do of_finish[dags.finish.inputs[k]] = n_parts > 1 and string.format("v[k].part%d", k - 1) or "v[k]" end
  of_finish[dags.finish.inputs[n_parts + n_in + 1]] = "place"
  local lift, states = emit(types, dags.lift, parsed, list, of_lift)
  local finish, results = emit(types, dags.finish, parsed, list, of_finish)
  local state = n_parts > 1 and by .. "::T" or types.by_name[dags.parts[1].type].c
  return { inputs = inputs, output = list[n_in + 1].element, state = state, by = by, lift = lift, finish = finish, result = results[1],
           lifted = n_parts > 1 and state .. "{" .. table.concat(states, ", ") .. "}" or states[1], held = K.c, bytes = bytes,
           stored = kit.output_text(types, list[n_in + 1], { type = record.K }, "v1"), n_in = n_in,
           initial = op.before and string.format("(%s)%d", K.c, op.initial) or "0",
           resident = n_parts == 1 and K.size < 8 and 2 or 1 } -- as scans.lua
end

return M
