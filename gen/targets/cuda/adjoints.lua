-- SPDX-License-Identifier: Apache-2.0
--
-- CUDA kernels with states: of derivatives of scans (the kind adjoint), and of scans with `lift` or `finish` (M.forward). Their records,
-- arguments, and the values of templates/cuda/scan_adjoint.cu.in. They are launched as other kernels that scan are: scans.lua has what all
-- have.

local dag_of = require "gen.graph.dag.dag"
local c = require "gen.targets.c.text"
local locals_of = require "gen.targets.locals"
local number = require "gen.base.number"
local operands_of = require "gen.targets.operands"
local rows = require "gen.targets.cuda.rows"
local scans = require "gen.targets.cuda.scans"
local target_cuda = require "gen.targets.cuda.emit"

local M = {}

M.TEMPLATE, M.HEADERS = "scan_adjoint", { "kernel_scans.h" }

M.max_rank, M.reducers = scans.max_rank, rows.reducers

-- A record of a kernel with states. by: M or M.forward; K: the dtype of its elements; dags: of gen/graph/states.lua
local function record_of(by, fields, K, dags, make)
  fields.classes, fields.rank, fields.adjoint = ("s"):rep(#fields.dtypes), "n", dags
  local record = make(fields)
  record.template, record.by = M.TEMPLATE, by
  record.program = { stages = {}, row_types = {}, reduces = { { op = record.op, type = K } } }
  record.dag = { inputs = {}, params = {}, outputs = {}, files = dags.combine.files, combine_of = function() return dags.combine end }
  return record
end

-- The fields of a record, beside those of variants.lua. K: the dtype that it computes in; dags: of gen/graph/states.lua; make(fields)
-- -> record
function M.record(fields, K, dags, make)
  fields.K = K
  return record_of(M, fields, K, dags, make)
end

function M.arguments_name(shape) return string.format("q_adjoint_%d_%d", shape.operands, shape.rank) end

local NAMES, WORDS = "last, first_place, place_step", "the place in the walk that is first in the scan; the walk's first place in the tensor, the step to the next"

function M.n_arguments(shape) return scans.n_fields(shape, 3) end
function M.arguments_text(shape) return scans.struct_text(M.arguments_name(shape), shape, { NAMES, WORDS }) end

-- Scans: what differs. They have one input, and any outputs behind it.
M.forward = setmetatable({}, { __index = M })

-- A: the accumulator's dtype
function M.forward.record(fields, A, dags, make) return record_of(M.forward, fields, A, dags, make) end

function M.forward.arguments_name(shape) return string.format("q_states_%d_%d", shape.operands, shape.rank) end

function M.forward.n_arguments(shape) return scans.n_fields(shape, 3 + 2 * (shape.operands - 2)) end
function M.forward.arguments_text(shape)
  local n = shape.operands - 2
  local more = n > 0 and { string.format("%s, others[%d][2]", NAMES, n), WORDS .. "; of each further output the result of no elements: its bits, and where it is" }
  return scans.struct_text(M.forward.arguments_name(shape), shape, more or { NAMES, WORDS })
end

-- The statements of a body for element k of a segment, and the texts of its results. of: input node -> name
local function emit(types, body, parsed, list, of)
  local others = { "k", "at", "got", "v1", "x", "held" }
  for _, o in ipairs(list) do
    for _, head in ipairs { "", "all_", "results_" } do others[#others + 1] = head .. o.short end
  end
  local order = dag_of.order(body.outputs)
  local locals = locals_of.new(parsed, list, others, body.outputs)
  local lines, emitter = target_cuda.emit(types, order, of, { locals = locals, tables = {}, roots = body.outputs })
  local results = {}
  for k, node in ipairs(body.outputs) do results[k] = emitter:argument(node) end
  return lines, results
end

-- The value read as the result before the first place, where there is none.
local function initial_text(op, K)
  if not op.before then return "0" end
  local whole = math.tointeger(op.initial)
  if whole or K.kind ~= "float" then return string.format("(%s)%d", K.c, whole or math.tointeger(op.initial // 1) or 0) end
  return c.literal(K.name, number.float_bits(op.initial, K))
end

-- The names of the operands: the inputs', then those of results, apart from them.
local function names_of(op)
  local names, is_taken = {}, {}
  for k, input in ipairs(op.inputs) do names[k], is_taken[input.name] = input.name, true end
  for k = 1, #op.outputs do
    local name = "result" .. (k > 1 and k or "")
    while is_taken[name] do name = name .. "_" end
    names[#op.inputs + k] = name
  end
  return names
end

-- kit: see rows.lua
function M.values(kit, types, entry, parsed)
  local record = entry.record
  local op, dags, n_in, is_walk = record.op, record.adjoint, #record.op.inputs, record.by == M
  local reduce = record.program.reduces[1]
  local K, by, n_parts = types.by_name[reduce.type], rows.reducer_name(reduce), #dags.parts
  local list = operands_of.of_record(types, record, names_of(op), n_in, {}, nil)
  local lifted, finished = operands_of.used(dags.lift), operands_of.used(dags.finish)
  local bare = { target_cuda.looked_at(dag_of.order(dags.lift.outputs)), target_cuda.looked_at(dag_of.order(dags.finish.outputs)) }
  local of_lift, of_finish, inputs, bytes = {}, {}, {}, K.size
  for k, input in ipairs(op.inputs) do
    local name, node, again = "all_" .. input.name, dags.lift.inputs[k], dags.finish.inputs[n_parts + k]
    if node then of_lift[node] = name .. "[k]" end -- a state that is the first input has that one alone
    if again then of_finish[again] = name .. "[k]" end
    if node and lifted[node] or again and finished[again] then
      local t = types.by_name[(node or again).type]
      bytes = math.max(bytes, t.size)
      inputs[#inputs + 1] = { index = k - 1, name = name, element = t.c, input = list[k].element, is_lifted = node ~= nil and lifted[node] == true,
                              is_before = input.name == op.before, loaded = list[k].name,
                              line = kit.input_text(types, list[k], node or again, "got", nil, node and bare[1][node] or again and bare[2][again] or false) }
    end
  end
  for k = 1, n_parts do of_finish[dags.finish.inputs[k]] = n_parts > 1 and string.format("v[k].part%d", k - 1) or "v[k]" end
  local place, place_again = dags.lift.inputs[n_in + 1], dags.finish.inputs[n_parts + n_in + 1]
  if place then of_lift[place] = "place" end
  if place_again then of_finish[place_again] = "place" end
  local lift, states = emit(types, dags.lift, parsed, list, of_lift)
  local finish, results = emit(types, dags.finish, parsed, list, of_finish)
  local state, outputs = n_parts > 1 and by .. "::T" or types.by_name[dags.parts[1].type].c, {}
  for k, result in ipairs(results) do
    local o, t = list[n_in + k], types.by_name[dags.finish.outputs[k].type]
    bytes = math.max(bytes, t.size)
    outputs[k] = { index = o.index, nth = k - 2, name = "results_" .. o.short, element = o.element, held = t.c, result = result,
                   stored = kit.output_text(types, o, { type = t.name }, "v1") }
  end
  local is_small = n_parts == 1 and #outputs == 1 and (op.builtin or n_in == 1) and math.max(K.size, types.by_name[dags.parts[1].type].size) < 8
  return { inputs = inputs, output = outputs[1].element, further = table.move(outputs, 2, #outputs, 1, {}), state = state, by = by, lift = lift,
           finish = finish, result = results[1], lifts_place = place ~= nil and lifted[place] == true, is_walk = is_walk,
           lifted = n_parts > 1 and state .. "{" .. table.concat(states, ", ") .. "}" or states[1], held = outputs[1].held, bytes = bytes,
           stored = outputs[1].stored, n_in = n_in, last = #list - 1, initial = initial_text(op, K),
           resident = is_small and 2 or 1 } -- as scans.lua
end

return M
