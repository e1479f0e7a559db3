-- SPDX-License-Identifier: Apache-2.0
--
-- CUDA kernels of ops that reduce (the kind row): one kernel has all stages of gen/graph/dag/rows.lua. Their records, arguments, and the
-- values of templates/cuda/rows.cu.in. Each stage computes again the elements that several stages need. Loaded elements stay in
-- registers for rows of few elements, in shared memory for longer rows. No other file of this folder knows stages.

local c = require "gen.targets.c.text"
local dag_of = require "gen.graph.dag.dag"
local kinds = require "gen.kinds.kinds"
local locals_of = require "gen.targets.locals"
local number = require "gen.base.number"
local operands_of = require "gen.targets.operands"
local row_scans = require "gen.targets.cuda.row_scans"
local rows = require "gen.graph.dag.rows"
local target_cuda = require "gen.targets.cuda.emit"

local M = {}

M.TEMPLATE, M.HEADER, M.RANK = "rows", "kernel_rows.h", "n"
M.SLOTS = 128 -- nodes of 16 lanes in shared memory that wait, of a block. ORDER QN_ROW_SLOTS of runtime/core/simt/rows/row_share.h
local SHARED_BYTES = 47 * 1024 -- of a block: 48 KB need no leave
local FIXED_FIELDS = 32 -- ORDER QN_ROW_FIELDS of runtime/core/simt/rows/row_share.h
local STRIDES = 320 -- of all operands. ORDER QN_ROW_STRIDES of runtime/core/row/row_program.h

-- The fields of a record of an op with a DAG, beside those of variants.lua. make(fields) -> record; form: this module, or short_rows.lua
function M.record(types, fields, dag, form, make)
  fields.classes, fields.rank = ("s"):rep(#fields.dtypes), form.RANK
  local record = make(fields)
  record.template, record.by, record.program = form.TEMPLATE, form, rows.stages(types, dag)
  record.headers = #record.program.scans > 0 and { M.HEADER, row_scans.HEADER } or nil
  return record
end

---------------------------------------------------------------------------------------------------- arguments

function M.arguments_name(shape) return string.format("q_rows_%d_%d_%d", shape.operands, shape.rank, shape.params) end

-- The most extents of a kernel with n operands.
function M.max_rank(n_operands) return math.min(32, STRIDES // n_operands) end

-- Fields of 8 bytes.
function M.n_arguments(shape) return shape.operands * (1 + shape.rank) + FIXED_FIELDS + 3 * shape.rank + shape.params end

function M.arguments_text(shape)
  local n, r = shape.operands, shape.rank
  local lines = {
    string.format("struct %s {", M.arguments_name(shape)),
    string.format("  u64 ptr[%d]; /* addresses of the operands' first elements, inputs before outputs */", n),
    "  u64 items, rows; /* an item is the rows that a block takes at a time */",
    "  u64 flags; /* 1: outputs are streamed; 2: turned; 256 << k: input k is a by-value scalar, its bits are in ptr[k] */",
    "  u64 rank, n_joined, n_reduced; /* extents in use; of these, the joined axes, and all axes */",
    "  u64 joined, chunks, leaves; /* elements of the joined axes; their chunks; those of a row */",
    "  u64 spread_bits;",
    "  u64 chunk_divisor[2]; /* of chunks: see q_fast_divide */",
    "  u64 stage, step; /* of a row cut into pieces: the stage that is run, from 1, and the step of it; 0: all stages */",
    "  u64 unit_bits, units; /* a group has 1 << unit_bits units of an axis, of so many */",
    "  u64 unit_leaves, end_dim, outer_leaves; /* leaves of a unit; the axis after it; leaves of all its units */",
    "  u64 row_pieces, unit_pieces, span; /* pieces of a row, of all units; elements that a lane's presence counts a unit for */",
    "  u64 piece_divisor[2], unit_divisor[2]; /* of row_pieces, unit_pieces */",
    "  u64 values, nodes, joined_nodes, room, joined_room; /* in the workspace: row values, nodes to read and to write, room for them */",
    "  u64 kept; /* leaves of a group: their elements stay in shared memory */",
    string.format("  i64 n[%d]; /* extents: the joined axes, inner first, the further axes, then what is kept */", r),
    string.format("  i64 stride[%d][%d]; /* in bytes */", n, r),
    string.format("  u64 divisor[%d][2]; /* of n[0], n[1], ... */", r),
  }
  if shape.params > 0 then lines[#lines + 1] = string.format("  u64 param[%d]; /* each in its first bytes */", shape.params) end
  lines[#lines + 1] = "};"
  return table.concat(lines, "\n") .. "\n"
end

---------------------------------------------------------------------------------------------------- what reduces

function M.reducer_name(reduce) return string.format("q_by_%s_%s", reduce.op.c_name, reduce.type) end

-- The structs that a record's kernel combines by, with the type T of a state: list of { name, text }.
function M.reducers(types, record, dag)
  local list, all = {}, table.move(record.program.reduces, 1, #record.program.reduces, 1, {})
  table.move(record.program.scans or {}, 1, #(record.program.scans or {}), #all + 1, all)
  for _, reduce in ipairs(all) do
    local combine = dag.combine_of(reduce.op, reduce.type)
    local names, order, results, parts, n = {}, dag_of.order(combine.outputs), {}, {}, #combine.outputs
    for k, node in ipairs(combine.inputs) do
      names[node] = (k > n and "b" or "a") .. (n > 1 and ".part" .. (k - 1) % n or "")
    end
    local locals = locals_of.new({ lines = {} }, {}, { "a", "b", "of", "T" }, combine.outputs)
    local lines, emitter = target_cuda.emit(types, order, names, { locals = locals, tables = {}, roots = combine.outputs })
    for k, node in ipairs(combine.outputs) do
      results[k], parts[k] = emitter:argument(node), string.format("%s part%d;", types.by_name[node.type].c, k - 1)
    end
    local text = { "struct " .. M.reducer_name(reduce) .. " {",
                   n > 1 and "  struct T { " .. table.concat(parts, " ") .. " };" or "  typedef " .. types.by_name[reduce.type].c .. " T;",
                   "  static Q_FN T of(T a, T b) {" }
    for _, line in ipairs(lines) do text[#text + 1] = "    " .. line end
    text[#text + 1] = n > 1 and "    return T{" .. table.concat(results, ", ") .. "};" or "    return " .. results[1] .. ";"
    text[#text + 1] = "  }\n};\n"
    list[#list + 1] = { name = M.reducer_name(reduce), text = table.concat(text, "\n") }
  end
  return list
end

---------------------------------------------------------------------------------------------------- a kernel's values

local PLACE = "place" -- the variable of an element's index in its row

-- The stages that run: no value is kept in the output's place.
local function stages_of(program)
  local list = table.move(program.stages, 1, #program.stages, 1, {})
  if program.kept then table.remove(list, #list - 1) end
  return list
end

-- The inputs that the elements of a stage are made of, as a set of their numbers.
local function inputs_of(stage)
  local set = {}
  for _, part in ipairs { stage, table.unpack(stage.feeders or {}) } do
    local in_use = part.dag and operands_of.used(part.dag) or {}
    for k, node in ipairs(part.dag and part.dag.inputs or {}) do
      local input = part.ins[k].input
      if input and input ~= rows.INDEX and in_use[node] then set[input] = true end
    end
  end
  for _, reduce in ipairs(stage.reduces) do
    for _, value in ipairs { reduce.from, table.unpack(reduce.others) } do
      if value.input and value.input ~= rows.INDEX then set[value.input] = true end
    end
  end
  return set
end

local function state_bytes(types, reduce)
  return #reduce.others == 0 and types.by_name[reduce.type].size or 8 * (1 + #reduce.others)
end

-- The most bytes of states of a stage.
function M.most_states(types, program)
  local most = 0
  for _, stage in ipairs(stages_of(program)) do
    local bytes = 0
    for _, reduce in ipairs(stage.reduces) do bytes = bytes + state_bytes(types, reduce) end
    most = math.max(most, bytes)
  end
  return most
end

-- The bytes of an element of each input that several stages load.
local function kept_bytes(types, record)
  local bytes, seen, is_kept = 0, {}, {}
  for _, stage in ipairs(stages_of(record.program)) do
    for k in pairs((stage.is_row or stage.is_reverse) and {} or inputs_of(stage)) do
      if seen[k] and not is_kept[k] then bytes = bytes + types.by_name[record.dtypes[k + 1]].size end
      is_kept[k], seen[k] = seen[k], true
    end
  end
  return bytes
end

-- The items per thread of a kernel, 1, and what the host must know of its stages: 5 bits, how many reduce; whether one follows that does
-- not; 6 bits, the most parts of states of a stage; 8 bits, of all; 3 bits, 0, or n where the inputs that several stages load have
-- 1 << n bytes or fewer. ORDER qn_rows_work_of_items of runtime/core/simt/rows/row_pieces.c
function M.items(types, record)
  local program, kept, n, last, most, all = record.program, 0, 0, 0, 0, 0
  local bytes = kept_bytes(types, record)
  while bytes > (kept > 0 and 1 << kept or 0) do kept = kept + 1 end
  for _, stage in ipairs(stages_of(program)) do
    local parts = 0
    for _, reduce in ipairs(stage.reduces) do parts = parts + 1 + #reduce.others end
    if parts > 0 then n = n + 1 elseif not stage.is_row then last = 1 end
    most, all = math.max(most, parts), all + parts
  end
  if n > 31 or most > 63 or all > 255 or kept > 7 then return 1 end -- then rows are not cut into pieces
  return 1 | n << 8 | last << 13 | most << 14 | all << 20 | kept << 28
end

local function total_name(row) return "total_" .. row end

-- A literal of a reduction's result of no elements; where that is an error, nothing of the kind is launched.
local function empty_text(type_name, value)
  if type_name == "f32" then return c.literal("f32", number.f32_bits(value + 0.0)) end
  return c.literal(type_name, type_name == "f64" and number.f64_bits(value + 0.0) or math.tointeger(value))
end

-- The statements of a stage's DAG, and the texts of its results. variable_of: input node -> name
local function emit_stage(kit, types, stage, parsed, operands, others, tables, variable_of)
  for k, node in ipairs(stage.dag.params) do variable_of[node] = kit.param_name(node, k) end
  local order = dag_of.order(stage.dag.outputs)
  local locals = locals_of.new(parsed, operands, others, stage.dag.outputs)
  local lines, emitter = target_cuda.emit(types, order, variable_of, { locals = locals, tables = tables, roots = stage.dag.outputs })
  local results = {}
  for k, node in ipairs(stage.dag.outputs) do results[k] = emitter:argument(node) end
  return lines, results
end

-- The text of a row value as it is stored. has_none: also of a row without elements
local function row_output(kit, types, op, operand, node, value, has_none)
  local text = kit.output_text(types, operand, node, value)
  if not has_none or not math.type(op.empty) then return text end
  local bits = number.f64_bits(op.empty + 0.0)
  return string.format("leaves ? %s : %s", text, operands_of.cast_text(types, "f64", operand.dtype, c.literal("f64", bits)))
end

-- Whether a stage of elements reads their indices.
local function reads_place(stage)
  for _, value in ipairs(stage.ins) do
    if value.input == rows.INDEX then return true end
  end
  for _, reduce in ipairs(stage.reduces or {}) do
    for _, value in ipairs { reduce.from, table.unpack(reduce.others) } do
      if value.input == rows.INDEX then return true end
    end
  end
  return false
end

-- Bytes in shared memory of a lane's node of each reduction that a stage has; arrays serve several stages.
local function node_bytes(types, program)
  local seen, bytes = {}, 0
  for _, stage in ipairs(stages_of(program)) do
    for nth, reduce in ipairs(stage.reduces) do
      local key = nth .. " " .. (#reduce.others > 0 and M.reducer_name(reduce) or types.by_name[reduce.type].c)
      if not seen[key] then bytes = bytes + state_bytes(types, reduce) end
      seen[key] = true
    end
  end
  return bytes
end

-- Why a record has no kernel, as a phrase; nil: it has one.
function M.excess(types, record)
  local _, of_scans = row_scans.shared_bytes(types, record.program)
  if of_scans == 0 or node_bytes(types, record.program) * 256 + of_scans <= SHARED_BYTES then return nil end
  return "beside a scan it has more reductions than shared memory has room for; write two expressions"
end

-- kit: input_text, output_text, param_text, param_name of kernels.lua;
-- of_run: what follows the name of a loaded element: "[k]", of a run of them; "" of a short row
function M.values(kit, types, entry, parsed, tables, of_run)
  local record, dag = entry.record, entry.dag
  local n_in, program, op = #dag.inputs, record.program, record.op
  local list = operands_of.of_record(types, record, operands_of.names(dag), n_in, dag.inputs, nil)
  local values = { params = {}, operands = list, reducers = {}, stages = {}, slots = M.SLOTS, totals = {}, values = 0,
                   nodes = 512, is_local = false, is_held = false, bytes = 0, has_scans = #program.scans > 0 }
  local used, others = operands_of.used(dag), { "k" }
  of_run = of_run or "[k]"
  for _, o in ipairs(list) do
    o.vectors, o.base, o.value_bit = "got_" .. o.short, "to_" .. o.short, kit.VALUE_FLAG + o.index
    o.tile, o.pitch, o.kept = "tile_" .. o.short, "pitch_" .. o.short, "kept_" .. o.short
    o.is_loaded, o.is_tiled, o.is_kept, o.is_again, o.before_kept, o.before = false, false, false, false, 0, values.bytes
    o.first = o.base
    values.bytes = values.bytes + o.size
  end
  values.bytes = nil
  for k, node in ipairs(dag.params) do
    others[#others + 1] = kit.param_name(node, k)
    if used[node] then table.insert(values.params, kit.param_text(node, k)) end
  end
  for row = 0, #program.row_types - 1 do others[#others + 1] = total_name(row) end
  for id = 0, #program.reduces - 1 do table.move({ "tree_" .. id, "sum_" .. id, "lane_" .. id }, 1, 3, #others + 1, others) end
  for at = 0, #program.reduces - 1 do table.move({ "node_" .. at, "waiting_" .. at }, 1, 2, #others + 1, others) end

  table.move(row_scans.names(program), 1, 2 * #program.scans, #others + 1, others)

  local is_read = {} -- row values
  for _, stage in ipairs(stages_of(program)) do
    for _, part in ipairs { stage, table.unpack(stage.feeders or {}) } do
      for _, value in ipairs(part.ins) do is_read[value.row or false] = true end
    end
  end
  -- shared: arrays of shared memory that there are, by number in a stage and by type; reduced: the last stage that reduces
  local shared, id, is_loaded, reduced = {}, 0, {}, nil
  local function declare(type_name, row)
    table.insert(values.totals, { element = types.by_name[type_name].c, name = total_name(row), zero = type_name == "bool" and "false" or "0" })
  end
  local position = 0 -- of a stage of elements
  for _, stage in ipairs(stages_of(program)) do
    if not stage.is_row then position = position + 1 end
    local made = { is_row = stage.is_row, body = {}, totals = {}, outputs = {}, operands = {}, inputs = {}, reduces = {}, is_stored = false,
                   number = position, has_scans = stage.feeders ~= nil, is_back = stage.is_reverse == true, feeders = {},
                   at = stage.is_reverse and "n - 1 - (first + 16 * k)" or "first + 16 * k",
                   when = string.format(" && (!stage || (stage == %d && step == 2))", reduced or 1) }
    local function stored(out, node, value)
      local o = setmetatable({}, { __index = list[n_in + 1 + out.output] })
      o.value = stage.is_row and row_output(kit, types, op, o, node, value, of_run ~= "") or kit.output_text(types, o, node, value)
      table.insert(made.outputs, o)
    end
    if stage.is_row then
      local results, lines
      if stage.dag then
        local variable_of = {}
        for k, node in ipairs(stage.dag.inputs) do variable_of[node] = total_name(stage.ins[k].row) end
        lines, results = emit_stage(kit, types, stage, parsed, list, others, tables, variable_of)
        made.body = lines
      end
      for k, out in ipairs(stage.outs) do
        local node = stage.dag and stage.dag.outputs[k] or { type = program.row_types[stage.ins[1].row + 1] }
        local value = results and results[k] or total_name(stage.ins[1].row)
        if out.output then
          stored(out, node, value)
        else
          table.insert(made.totals, { name = total_name(out.row), value = value })
          declare(node.type, out.row)
        end
      end
      made.is_stored = #made.totals == 0
    else
      local before = 0 -- parts of the states of a stage's reductions
      local is_met, value_of_temp = {}, {}
      local function need(k) -- operand k, an input
        if is_met[k] or k == rows.INDEX then return end
        is_met[k] = true
        local o = setmetatable({ is_again = is_loaded[k] == true and not made.is_back, first = made.has_scans and list[k + 1].row or nil },
                               { __index = list[k + 1] })
        list[k + 1].is_kept = list[k + 1].is_kept or o.is_again
        is_loaded[k] = is_loaded[k] or not made.is_back
        list[k + 1].is_loaded, list[k + 1].is_tiled = true, true
        table.insert(made.inputs, o)
        table.insert(made.operands, o)
      end
      -- Adds the statements that compute a DAG's results, here or in a feeder. Returns their texts.
      local function emit(part, body)
        local variable_of, in_use = {}, operands_of.used(part.dag)
        local bare = target_cuda.looked_at(dag_of.order(part.dag.outputs))
        for k, node in ipairs(part.dag.inputs) do
          local value = part.ins[k]
          if value.row then
            variable_of[node] = total_name(value.row)
          elseif value.scan then
            variable_of[node] = row_scans.name(value.scan) .. "[k]"
          elseif value.input == rows.INDEX then
            variable_of[node] = PLACE
          elseif in_use[node] then
            local o = list[value.input + 1]
            need(value.input)
            variable_of[node] = o.name
            table.insert(body, kit.input_text(types, o, node, o.vectors .. of_run, nil, bare[node]))
          end
        end
        local lines, results = emit_stage(kit, types, part, parsed, list, others, tables, variable_of)
        table.move(lines, 1, #lines, #body + 1, body)
        return results
      end
      made.feeders = row_scans.feeders(types, program, stage, function(feeder, body) return emit(feeder, body)[1] end, reads_place, empty_text,
                                       M.reducer_name)
      if stage.dag then
        local results = emit(stage, made.body)
        for k, out in ipairs(stage.outs) do
          if out.temp then
            value_of_temp[out.temp] = results[k]
          else
            stored(out, stage.dag.outputs[k], results[k])
            table.insert(made.operands, list[n_in + 1 + out.output])
            list[n_in + 1 + out.output].is_tiled = true
          end
        end
      end
      -- the text of a part of a state, of a value { temp } or { input }
      local function part_text(from, wanted, nth, part)
        if from.temp then return value_of_temp[from.temp] end
        if from.input == rows.INDEX then return operands_of.cast_text(types, "i64", wanted, PLACE) end
        local o = list[from.input + 1]
        local name = string.format("in_%s_%d_%d", o.short, nth, part)
        need(from.input)
        table.insert(made.body, kit.input_text(types, setmetatable({ name = name }, { __index = o }), { type = wanted }, o.vectors .. of_run, nil, false))
        return name
      end
      for nth, reduce in ipairs(stage.reduces) do
        local element, by, totals = types.by_name[reduce.type].c, M.reducer_name(reduce), {}
        local value = part_text(reduce.from, program.row_types[reduce.to + 1], nth, 0)
        local is_state = #reduce.others > 0
        if is_state then
          local parts = { value }
          for p, other in ipairs(reduce.others) do parts[p + 1] = part_text(other, program.row_types[reduce.to + p + 1], nth, p) end
          value, element = by .. "::T{" .. table.concat(parts, ", ") .. "}", by .. "::T"
        end
        for p = 0, #reduce.others do
          local part_type = program.row_types[reduce.to + p + 1]
          if is_read[reduce.to + p] then
            totals[#totals + 1] = { element = types.by_name[part_type].c, name = total_name(reduce.to + p), row = values.values + p,
                                    of = is_state and ".part" .. p or "",
                                    empty = empty_text(part_type, kinds.of(reduce.op).empty_result(types, reduce.op, part_type)) }
            declare(part_type, reduce.to + p)
          end
        end
        table.insert(made.reduces, { number = nth - 1, id = id, element = element, by = by, value = value, totals = totals,
                                     before = before .. "u", zero = is_state and element .. "{}" or "0" })
        values.values = values.values + 1 + #reduce.others
        id, before, reduced = id + 1, before + 1 + #reduce.others, position
        shared[nth] = shared[nth] or {}
        if not shared[nth][element] then
          shared[nth][element] = true
          table.insert(values.reducers, { number = nth - 1, element = element })
        end
      end
    end
    made.has_place = stage.is_row ~= true and reads_place(stage)
    values.stages[#values.stages + 1] = made
  end
  local kept = 0
  for _, o in ipairs(list) do
    values.is_held = values.is_held or o.is_kept
    if o.is_kept then o.before_kept, kept = kept, kept + o.size end
  end
  for _, stage in ipairs(values.stages) do
    stage.has_kept = false
    for _, o in ipairs(stage.inputs) do stage.has_kept = stage.has_kept or o.is_kept end
  end
  -- Of many reductions in one stage the nodes that wait are in each thread's own memory.
  local widest, of_scans = row_scans.shared_bytes(types, program)
  values.scan_bytes = widest
  if node_bytes(types, program) * (values.nodes + M.SLOTS * 16) + of_scans > SHARED_BYTES then values.nodes, values.is_local = 256, true end
  for _, stage in ipairs(values.stages) do
    for _, r in ipairs(stage.reduces) do
      r.number = r.number .. "_" .. r.element:gsub("::", "_")
      r.waiting = "waiting_" .. r.number .. (values.is_local and ", 1" or " + at_waiting, of_stack * 16")
    end
  end
  for _, r in ipairs(values.reducers) do r.number = r.number .. "_" .. r.element:gsub("::", "_") end
  return values
end

return M
