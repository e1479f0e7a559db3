-- SPDX-License-Identifier: Apache-2.0
--
-- The DAG of a body that reduces -> its stages. A node is an element (it varies along the reduced axes) or a row value. Its level is the
-- number of reductions below it. Stage p computes, element by element, the arguments of the reductions of level p. Between two stages of
-- elements a stage of row values computes what the second one needs of the results. The last stage computes the outputs. Elements that
-- several stages need are computed again by each, but for one: see `kept`. Knows no C.

local dag_of = require "gen.graph.dag.dag"

local M = {}

-- The most of a program. ORDER: runtime/core/row/row_program.h
M.MAX_STAGES, M.MAX_VALUES, M.MAX_REDUCES = 12, 16, 16

M.INDEX = 0x1f -- the number of the input `index`, an element's place. ORDER VALUE of runtime/core/row/row_program.h

-- Whether a node is constant along the axes, and its level, for all nodes that `roots` need.
local function levels(roots)
  local level, is_row = {}, {}
  local list = dag_of.order(roots)
  for _, node in ipairs(list) do
    local deepest, constant = 0, node.op ~= "input"
    for _, arg in ipairs(node.args) do
      deepest = math.max(deepest, level[arg])
      constant = constant and is_row[arg]
    end
    if node.op == "reduce" then deepest, constant = deepest + 1, true end
    if node.op == "scan" then constant = false end
    level[node], is_row[node] = deepest, constant
  end
  return level, is_row, list
end

-- Whether all of some nodes are constant along the axes.
function M.are_rows(roots)
  local _, is_row = levels(roots)
  for _, node in ipairs(roots) do
    if not is_row[node] then return false end
  end
  return true
end

-- A DAG of `roots` in which the nodes of `cuts` are inputs. Returns it, and for each of its inputs the node of `source`.
local function extract(types, source, roots, cuts)
  local dag, copy, inputs, ins = dag_of.new(types), {}, {}, {}
  local params = {}
  for k, node in ipairs(source.params) do
    params[k] = dag:node("param", node.type, {}, { index = node.index, name = node.name })
    copy[node] = params[k]
  end
  local cut_of = {}
  for _, node in ipairs(cuts) do cut_of[node] = true end
  local function visit(node)
    if copy[node] then return copy[node] end
    if cut_of[node] or node.op == "input" then
      local name = node.op == "input" and node.name or "r" .. #inputs
      copy[node] = dag:node("input", node.type, {}, { index = #inputs + 1, name = name })
      copy[node].is_computed = node.op ~= "input" or node.is_computed or nil
      inputs[#inputs + 1], ins[#ins + 1] = copy[node], node
      return copy[node]
    end
    local args, extra = {}, { value = node.value, index = node.index, name = node.name, table = node.table }
    for k, arg in ipairs(node.args) do args[k] = visit(arg) end
    if #args == 0 then
      copy[node] = dag:node(node.op, node.type, args, extra)
    else
      copy[node] = dag:make(node.op, node.type, args, next(extra) and extra)
    end
    copy[node].is_canonical = copy[node].is_canonical or node.is_canonical
    if node.label and #copy[node].args > 0 then copy[node].label = node.label end
    return copy[node]
  end
  local outputs = {}
  for k, root in ipairs(roots) do outputs[k] = visit(root) end
  return { dag = dag, inputs = inputs, params = params, outputs = outputs, type = source.type, files = source.files,
           first_output = source.first_output }, ins
end

-- The value of output `which` of a stage's DAG in another graph. args: nodes there, for its inputs, then its parameters
function M.graft(dag, stage, args, which)
  local copy = {}
  for k, node in ipairs(stage.inputs) do copy[node] = args[k] end
  for k, node in ipairs(stage.params) do copy[node] = args[#stage.inputs + k] end
  for _, node in ipairs(dag_of.order { stage.outputs[which] }) do
    if not copy[node] then
      local inner, extra = {}, { value = node.value, index = node.index, name = node.name, table = node.table }
      for k, arg in ipairs(node.args) do inner[k] = copy[arg] end
      copy[node] = #inner == 0 and dag:node(node.op, node.type, inner, extra) or dag:make(node.op, node.type, inner, next(extra) and extra)
      if node.label and #inner > 0 then copy[node].label = copy[node].label or node.label end
    end
  end
  return copy[stage.outputs[which]]
end

-- The stages of a DAG (of expr.op_dag). Returns { stages, reduces, n_rows, row_types }.
--   stages   list of { is_row, dag or nil, ins, outs, reduces }: ins, outs are values { input = k } | { output = k } | { row = r } |
--            { temp = t }, with is_element, in the order of the dag's inputs and outputs; no dag: the one value is an input as it is, for
--            each of `reduces`: list of { from = value, others, type, to = row, op }; others: the further parts of a state. Their row
--            values follow `to`
--   reduces  all of these
--   scans    list of { op, type, is_reverse, is_exclusive }, one for each node "scan". A stage that reads scans has `feeders`, in order: list
--            of { scan = number, dag, ins }. The dag of a feeder computes what is scanned. An input of the stage or of a feeder may be
--            { scan = number }. is_reverse of a stage: it and its scans begin at the end
-- Of a program with `again`, the last stage reads a value that an earlier one has stored in place of the output; `again` is the same
-- stage without it.
function M.stages(types, source)
  local level, is_row, list = levels(source.outputs)
  local input_number, row_of, program = {}, {}, { stages = {}, reduces = {}, row_types = {}, n_temps = 0, scans = {} }
  for k, node in ipairs(source.inputs) do input_number[node] = k - 1 end
  if source.index then input_number[source.index] = M.INDEX end
  local function row_for(node)
    if not row_of[node] then
      row_of[node] = #program.row_types
      program.row_types[#program.row_types + 1] = node.type
    end
    return row_of[node]
  end
  local scan_of, scan_nodes = {}, {}
  for _, node in ipairs(list) do
    if node.op == "scan" then
      scan_of[node], scan_nodes[#scan_nodes + 1] = #program.scans, node
      program.scans[#program.scans + 1] = { op = node.reducer, type = node.type, is_reverse = node.value % 2 == 1, is_exclusive = node.value > 1 }
    end
  end
  local function is_ready(node) return node.op == "param" or node.op == "const" end
  local function value_of(node)
    if node.op == "input" then return { input = input_number[node], is_element = true } end
    if scan_of[node] then return { scan = scan_of[node], is_element = true } end
    return { row = row_of[node] }
  end

  -- The row values that a stage of elements reads, of `roots`.
  local function frontier(roots)
    local found, seen = {}, {}
    local function visit(node)
      if seen[node] then return end
      seen[node] = true
      for _, arg in ipairs(node.args) do
        if is_row[arg] and not is_ready(arg) then
          if not seen[arg] then found[#found + 1] = arg end
          seen[arg] = true
        else
          visit(arg)
        end
      end
    end
    for _, root in ipairs(roots) do
      if is_row[root] and not is_ready(root) then
        if not seen[root] then found[#found + 1] = root end
        seen[root] = true
      else
        visit(root)
      end
    end
    return found
  end
  -- The scans below some nodes in the same pass, in order.
  local function scans_below(roots)
    local seen, found = {}, {}
    local function visit(node)
      if seen[node] or is_row[node] then return end
      seen[node] = true
      for _, arg in ipairs(node.args) do visit(arg) end
    end
    for _, root in ipairs(roots) do visit(root) end
    for _, node in ipairs(scan_nodes) do found[#found + 1] = seen[node] and node or nil end
    return found
  end
  local function is_from_end(node)
    local last = scans_below({ node })
    return #last > 0 and program.scans[scan_of[last[1]] + 1].is_reverse
  end
  local function cuts_now() -- all row values that are known, and scans
    local cuts = table.move(scan_nodes, 1, #scan_nodes, 1, {})
    for node in pairs(row_of) do cuts[#cuts + 1] = node end
    return cuts
  end
  -- A stage that computes the row values `nodes` that are not known.
  local function add_rows(nodes, outs)
    local roots, values = {}, {}
    for k, node in ipairs(nodes) do
      if outs or not row_of[node] then
        roots[#roots + 1] = node
        values[#values + 1] = outs and outs[k] or node
      end
    end
    if #roots == 0 then return end
    local dag, ins = extract(types, source, roots, cuts_now())
    local stage = { is_row = true, dag = dag, ins = {}, outs = values, reduces = {} }
    for k, node in ipairs(ins) do stage.ins[k] = value_of(node) end
    for k, value in ipairs(values) do
      if value.op then stage.outs[k] = { row = row_for(value) } end
    end
    program.stages[#program.stages + 1] = stage
  end
  local function element_stage(roots, outs, kept)
    local cuts = cuts_now()
    if kept then cuts[#cuts + 1] = kept.node end
    local dag, ins = extract(types, source, roots, cuts)
    local stage = { dag = dag, ins = {}, outs = outs, reduces = {} }
    for k, node in ipairs(ins) do stage.ins[k] = kept and node == kept.node and kept.value or value_of(node) end
    local scanned = scans_below(roots)
    if #scanned == 0 then return stage end
    stage.feeders, stage.is_reverse = {}, is_from_end(scanned[1])
    for k, node in ipairs(scanned) do
      local feeder, of = extract(types, source, { node.args[1] }, cuts)
      stage.feeders[k] = { scan = scan_of[node], dag = feeder, ins = {} }
      for j, input in ipairs(of) do stage.feeders[k].ins[j] = value_of(input) end
    end
    return stage
  end

  local deepest, at_level = 0, {}
  for _, node in ipairs(list) do
    if node.op == "reduce" then
      deepest = math.max(deepest, level[node])
      at_level[level[node]] = at_level[level[node]] or {}
      table.insert(at_level[level[node]], node)
    end
  end
  local element_outputs, row_outputs = {}, {}
  for k, node in ipairs(source.outputs) do
    table.insert(is_row[node] and row_outputs or element_outputs, { node = node, value = { output = k - 1, is_element = not is_row[node] } })
  end
  local kept
  for p = 1, deepest do
    local roots, seen = {}, {}
    for _, node in ipairs(at_level[p]) do
      for _, arg in ipairs(node.args) do
        if not seen[arg] then roots[#roots + 1] = arg end
        seen[arg] = true
      end
    end
    add_rows(frontier(roots))
    local computed, value_for = {}, {}
    for _, root in ipairs(roots) do
      local plain = root.op == "cast" and root.args[1].op == "input" and root.args[1] ~= source.index and root.args[1] or root
      if plain.op == "input" then
        value_for[root] = { input = input_number[plain], is_element = true }
      else
        computed[#computed + 1] = root
      end
    end
    local outs = {}
    for k, root in ipairs(computed) do
      outs[k] = { temp = program.n_temps, is_element = true }
      value_for[root] = outs[k]
      program.n_temps = program.n_temps + 1
    end
    local stage = { ins = {}, outs = outs, reduces = {} }
    if #computed > 0 then stage = element_stage(computed, outs) end
    local is_done = {}
    for _, node in ipairs(at_level[p]) do
      local group, others = node.group or { node }, {}
      if not is_done[group[1]] then
        for k = 2, #group do others[k - 1] = value_for[node.args[k]] end
        local reduce = { from = value_for[node.args[1]], others = others, type = node.accumulator or node.type, op = node.reducer }
        for _, part in ipairs(group) do -- row values that follow one another
          reduce.to = reduce.to or row_for(part)
          row_for(part)
        end
        stage.reduces[#stage.reduces + 1] = reduce
        program.reduces[#program.reduces + 1] = reduce
      end
      is_done[group[1]] = true
    end
    program.stages[#program.stages + 1] = stage
    -- the last stage may read a value of this one, kept in the only output's place
    if p == deepest and #scan_nodes == 0 and #element_outputs == 1 and #computed == 1 and computed[1].type == source.outputs[1].type then
      kept = { node = computed[1], value = outs[1] }
    end
  end
  if #row_outputs > 0 then -- a row value that is an integer is stored as it is; a float's NaN becomes the one NaN
    local nodes, values = {}, {}
    for _, output in ipairs(row_outputs) do
      if row_of[output.node] and types.by_name[output.node.type].kind == "integer" then
        program.stages[#program.stages + 1] = { is_row = true, ins = { { row = row_of[output.node] } }, outs = { output.value }, reduces = {} }
      else
        nodes[#nodes + 1], values[#values + 1] = output.node, output.value
      end
    end
    add_rows(nodes, values)
  end
  for _, from_end in ipairs { false, true } do
    local roots, values = {}, {}
    for _, output in ipairs(element_outputs) do
      if is_from_end(output.node) == from_end then roots[#roots + 1], values[#values + 1] = output.node, output.value end
    end
    if #roots > 0 then
      add_rows(frontier(roots))
      local is_read, by_kept = false, kept and element_stage(roots, values, kept)
      for _, value in ipairs(by_kept and by_kept.ins or {}) do is_read = is_read or value == kept.value end
      for _, value in ipairs(by_kept and by_kept.ins or {}) do is_read = is_read and not value.input end -- it may be the output's memory
      if is_read then
        program.kept = kept.value
        program.stages[#program.stages + 1] = by_kept
      end
      program.stages[#program.stages + 1] = element_stage(roots, values)
      program.stages[#program.stages].is_again = is_read
    end
  end
  return program
end

-- The limit of the runtime that a program exceeds, as a phrase; nil: none.
function M.excess(program)
  if #program.stages > M.MAX_STAGES then return string.format("takes %d passes over its elements; at most %d", #program.stages, M.MAX_STAGES) end
  if #program.reduces > M.MAX_REDUCES then return string.format("has %d reductions; at most %d", #program.reduces, M.MAX_REDUCES) end
  if #program.row_types > M.MAX_VALUES or program.n_temps > M.MAX_VALUES then
    return string.format("has more than %d values between its passes", M.MAX_VALUES)
  end
end

return M
