-- SPDX-License-Identifier: Apache-2.0
--
-- Variant records -> C files of kernels: fills the templates. Knows the targets' spelling tables only by calling them.

local dag_of = require "gen.graph.dag.dag"
local kinds = require "gen.kinds.kinds"
local locals_of = require "gen.targets.locals"
local template = require "gen.base.template"
local c = require "gen.targets.c.text"
local target_c = require "gen.targets.c.emit"
local access = require "gen.targets.c.access"
local names = require "gen.targets.c.names"
local dtypes_of = require "gen.targets.c.dtypes"
local bools = require "gen.targets.c.bools"
local shifts = require "gen.targets.c.shifts"
local far = require "gen.targets.c.far"
local strips = require "gen.targets.c.strips"
local variants = require "gen.targets.variants"
local operands_of = require "gen.targets.operands"
local ordered = require "gen.targets.c.ordered"
local two = require "gen.targets.c.pairs"
local signs = require "gen.targets.signs"

local M = {}

M.FOLDER = "templates/c/"
-- Templates, as paths below the folder; a file's name is a template's. These are of kernels computed by a DAG; an expression's kernels need no others.
M.FORMS = { "elementwise", "elementwise_bools", "elementwise_pairs", "elementwise_shifts", "elementwise_strips",
  "elementwise_rare", "elementwise_rare_light", "elementwise_rare_strips" }
M.FUSED = { "rows/reduce_inner" } -- follows one of them
-- All others: for packing, for tables, and of kinds of op.
M.MOVERS = { "convert", "stream", "transpose", "at", "lookup" }
for _, kind in ipairs(kinds.list) do
  local own = kind.templates or {}
  table.move(own, 1, #own, #M.MOVERS + 1, M.MOVERS)
end

local function name_of(path) return path:match "[^/]+$" end
local path_of = {} -- a template's name -> its path
for _, list in ipairs { M.FORMS, M.FUSED, M.MOVERS } do
  for _, path in ipairs(list) do path_of[name_of(path)] = M.FOLDER .. path .. ".c.in" end
end

-- The parsed templates of lists of paths, by their names. read: path under the root -> text
function M.sources(read, ...)
  local templates = {}
  for _, list in ipairs { ... } do
    for _, path in ipairs(list) do
      local name = name_of(path)
      templates[name] = template.parse(path_of[name], read(path_of[name]), read)
    end
  end
  return templates
end

M.formula, M.location = operands_of.formula, operands_of.location
local cast_text = operands_of.cast_text

-- Whether a value is computed with rare blocks: a promise that it is canonical does not hold where they run.
local function has_rare(node)
  for _, needed in ipairs(dag_of.order { node }) do
    if needed.op == "rare" then return true end
  end
  return false
end

-- The outputs as the template sees them: destination and stored value of each. apart: as returned by apart_text.
local function values_of(types, outputs, dag, emitter, apart, without_rare)
  local list = {}
  for k, node in ipairs(dag.outputs) do
    local operand, value = outputs[k], emitter:argument(node, node.type == "bool" and 8 or nil)
    node = dag_of.value_of(node, without_rare)
    if without_rare and node.op == "rare" and node.args[2].is_canonical then node = node.args[3] end -- a light block
    list[k] = { index = k - 1, element = operand.element, row = operand.row, to = (apart and "to_" or "block_") .. k - 1,
                lvalue = access.lvalue(operand),
                value = access.output(types, operand.dtype, node, value, not without_rare and has_rare(node)) }
  end
  return list
end

-- The items of a list, operands or their strides, that the body uses: it may ignore an input.
local function kept(list, operands)
  local result = {}
  for _, item in ipairs(list) do
    if operands[(item.operand or item.index) + 1].is_used then result[#result + 1] = item end
  end
  return result
end

M.GRAIN = 128 -- a multiple of Q_GRAIN and Q_GRAIN_F16 of templates/c/headers/kernel.h
M.SHORT = 3 -- operations of a contiguous loop that takes two vectors between jumps
M.DEEP = 40 -- operations that wait for one another: more than a processor overlaps with those of the next elements

-- The pragma before a kernel's loops, a special one with casts of a dtype that is cast in blocks; and the pragma before its main loop,
-- a special one if the body is deep, or short.
local function loop_pragmas(types, record, nodes, is_cut)
  local plain = is_cut and "_MASKED" or ""
  local has_casts, is_stored = false, false
  for _, node in ipairs(nodes) do
    has_casts = has_casts or (node.op == "round" and types.by_name[node.name].casts_in_blocks)
    is_stored = is_stored or node.is_stored
  end
  for _, dtype in ipairs(record.dtypes) do has_casts = has_casts or (types.by_name[dtype].casts_in_blocks and not is_stored) end
  if has_casts then return "Q_IVDEP_F16" .. plain, "Q_IVDEP_F16", "Q_GRAIN_F16" end
  local is_short = #nodes > 0 and not record.classes:find "s" and variants.weight_of(nodes) <= M.SHORT
  return "Q_IVDEP" .. plain, dag_of.depth(nodes) > M.DEEP and "Q_IVDEP_DEEP" or is_short and "Q_IVDEP_SHORT" or "Q_IVDEP", "Q_GRAIN"
end

-- The number of elements of a block; the rare path is taken or not for a block as a whole.
local function rare_block(types, outputs)
  local block, bytes = variants.RARE_BLOCK, 0
  for _, operand in ipairs(outputs) do bytes = bytes + types.by_name[operand.dtype].size end
  while block * bytes > variants.RARE_BYTES do block = block // 2 end
  return block
end

-- A rare block's condition as a threshold of an integer, or nil: { node, type, value, least }. value: format of the integer's
-- text for that of the node; the block must run if the integer is `least` or more. The loop keeps the largest of these integers,
-- for 64 bits the sign of the difference to `least`: one to three operations an element, and a reduction to any compiler.
local function threshold_of(types, condition)
  local op, args = condition.op, condition.args
  local t = args[1] and types.by_name[args[1].type]
  if op == "ge" and args[2].op == "const" and t.kind == "integer" and not t.signed and t.bits >= 32 and args[2].value > 0 then
    return { node = args[1], type = t.name, value = "%s", least = args[2].value }
  end
  -- !(abs(x) < C): the bits of positive floats are in the order of the floats, and those of NaN above all
  local less = op == "lnot" and args[1].op == "lt" and args[1]
  local x, limit = table.unpack(less and less.args or {})
  if less and x.op == "abs" and limit.op == "const" and types.by_name[x.type].kind == "float" and limit.value > 0 then
    local integer = types.by_name[x.type].bits == 64 and "i64" or "i32"
    if limit.value <= (integer == "i64" and 0x7ff0000000000000 or 0x7f800000) then
      return { node = x, type = integer, value = "(" .. integer .. ")q_raw_" .. x.type .. "(%s)", least = limit.value }
    end
  end
end

-- Splits conditions, any of which is sufficient, into thresholds, one for each integer, and others.
local function split_conditions(types, conditions)
  local thresholds, others, of_node, pending = {}, {}, {}, table.move(conditions, 1, #conditions, 1, {})
  while #pending > 0 do
    local condition = table.remove(pending, 1)
    local threshold = threshold_of(types, condition)
    local other = threshold and of_node[threshold.node]
    if condition.op == "or" then
      table.move(condition.args, 1, 2, #pending + 1, pending)
    elseif other then
      other.least = math.ult(threshold.least, other.least) and threshold.least or other.least
    elseif threshold then
      of_node[threshold.node] = threshold
      thresholds[#thresholds + 1] = threshold
    else
      others[#others + 1] = condition
    end
  end
  return thresholds, others
end

-- The search of a loop without rare blocks for elements that need one: its accumulators, { type, name, next, next_of, both }, and
-- the condition on them after the loop. The accumulator is `name`, or in strips an item of the array `name`_of. next, next_of: either of
-- them after one more element; both: `name` combined with an item.
local function search_of(thresholds, others, emitter)
  local search, tests = {}, {}
  -- after(before) -> text of the accumulator after one more element; both: format of two
  local function add(type_name, name, both, after)
    local item = name .. "_of[l]"
    search[#search + 1] = { type = type_name, name = name, next = after(name), next_of = after(item), both = both:format(name, item) }
  end
  for k, threshold in ipairs(thresholds) do
    local value = threshold.value:format(emitter:argument(threshold.node))
    local name, last = "most_" .. k - 1, c.literal(threshold.type, threshold.least - 1)
    add(threshold.type, name, "q_more_" .. threshold.type .. "(%s, %s)", function(before)
      return string.format("q_most_%s(%s, %s, %s)", threshold.type, before, value, last)
    end)
    tests[k] = string.format("q_is_past_%s(%s, %s)", threshold.type, name, last)
  end
  if #others > 0 then
    local terms = {}
    for k, node in ipairs(others) do terms[k] = emitter:argument(node, 32) end
    -- xor: a plain or of comparisons is no reduction to Clang
    add("i32", "any", "%s | %s", function(before) return string.format("%s | ((i32)(%s) ^ q_zero)", before, table.concat(terms, " | ")) end)
    tests[#tests + 1] = "any != 0"
  end
  return search, table.concat(tests, " || ")
end

-- The condition, for a row, that no input is an output's memory: then a kernel with rare blocks may write outputs before it reads
-- the inputs again. Operands begin at the same address or share nothing (qn_kernel). false: outputs are not contiguous; they go
-- through blocks.
local function apart_text(operands, outputs)
  local terms = {}
  for _, output in ipairs(outputs) do
    if output.class ~= "c" then return false end
    for _, operand in ipairs(operands) do
      if operand.is_input and operand.is_used and operand.class ~= "b" then
        terms[#terms + 1] = string.format("%s != %s", operand.row, output.row)
      end
    end
  end
  return #terms > 0 and table.concat(terms, " && ") or "1"
end

-- The names in a kernel's text that belong to no operand: a list.
local function other_names(dag, thresholds)
  local list = { "any", "any_of" }
  for k in ipairs(dag.outputs) do table.move({ "block_" .. k - 1, "to_" .. k - 1 }, 1, 2, #list + 1, list) end
  for k in ipairs(thresholds) do table.move({ "most_" .. k - 1, "most_" .. k - 1 .. "_of" }, 1, 2, #list + 1, list) end
  for _, node in ipairs(dag.params) do list[#list + 1] = "p_" .. node.name end
  return list
end

-- For outputs that are heavy rare blocks: value without the block -> text that reads what the loop with light blocks has stored,
-- so that the last loop need not compute it again. nil where an output is something else.
local function left_by_light(types, outputs, dag, heavy, results)
  local known = {}
  for k, node in ipairs(dag.outputs) do
    local dtype = outputs[k].dtype
    if not heavy[node] or node.type ~= dtype or types.by_name[dtype].compute ~= dtype then return nil end
    for _, needed in ipairs(dag_of.order { node.args[3] }) do
      if heavy[needed] then return nil end
    end
    known[node.args[3]] = results[k].to .. "[k]"
  end
  return known
end

local function merged(a, b)
  local both = {}
  for _, part in ipairs { a, b } do
    for key, value in pairs(part) do both[key] = value end
  end
  return both
end

-- The widths of the conditions that are row values of a stage of elements: those of its results, so that loops have no vectors of bytes
-- beside these.
local function widths_of(types, record, dag)
  local widths, last = {}, dag.outputs[1]
  if not (record.op and kinds.of(record.op).has_stages) or last.type == "bool" then return widths end
  for k, node in ipairs(dag.inputs) do
    if node.type == "bool" and record.classes:sub(k, k) == "b" then widths[node] = types.by_name[last.type].bits end
  end
  return widths
end

-- The outputs that are an operand with its sign changed, as a set.
local function bare_of(types, dag)
  local bare = {}
  for _, node in ipairs(dag.outputs) do
    bare[node] = node.op == "neg" and types.by_name[node.type].kind == "float" and dag_of.is_operand(node.args[1]) or nil
  end
  return bare
end

-- Changes the values of an expression's kernel with rare blocks: its blocks of elements are a multiple of `grain` long, or are the rest of a
-- row, shorter than that. Then compilers whose vectors have masks (Q_MASKS) compile a loop's vector iterations once, and no others: time to
-- compile is most of what an expression's first call takes. The last loop, which computes all elements right, takes the rest where the loop
-- before goes over whole vectors only.
local function cut_rest(values, grain)
  local rest = "Q_IS_REST(m, %s) || %s"
  values.grain = values.strips and values.strips[#values.strips].strip or grain
  if values.strips then values.found = rest:format(values.grain, values.found) end
  if values.light then
    values.light_end = string.format("Q_WHOLE(m, %s)", values.grain)
    values.light_found = rest:format(values.grain, values.light_found)
  end
end

-- The template of a record computed by a DAG, and its values but for the comment.
local function elementwise_values(types, record, dag, templates, tables)
  local n_in, variable_of, used = #dag.inputs, {}, operands_of.used(dag)
  local operands, strides = access.with_rows(operands_of.of_record(types, record, operands_of.names(dag), n_in, dag.inputs, used))
  local hoisted, params, widths, bare = {}, {}, widths_of(types, record, dag), bare_of(types, dag)
  for k, node in ipairs(dag.inputs) do
    variable_of[node] = operands[k].name
    if used[node] and operands[k].class == "b" then hoisted[#hoisted + 1] = access.input(types, operands[k], node, nil, widths[node]) end
  end
  local offset = 0
  for _, node in ipairs(dag.params) do
    variable_of[node] = "p_" .. node.name
    if used[node] then params[#params + 1] = access.param(node, offset) end
    offset = offset + (types.by_name[node.type].size + 7) // 8 * 8
  end
  local outputs = table.move(operands, n_in + 1, #operands, 1, {})
  local conditions = dag.dag:rare_conditions(dag.outputs)
  local is_rare = #conditions > 0
  local over_strips = strips.serves(types, record, operands, dag.outputs, is_rare)
  local heavy = is_rare and not over_strips and dag_of.heavy_rares(dag.outputs)
  local form = "elementwise" .. (is_rare and "_rare" or "") .. (over_strips and "_strips" or heavy and "_light" or "")
  if heavy then
    for k, condition in ipairs(conditions) do conditions[k] = dag.dag:without_rare(condition) end
  end
  local thresholds, others = split_conditions(types, conditions)
  local may_give_bools = form == "elementwise" and bools.may_serve(record, operands, dag.outputs)
  local shift = form == "elementwise" and shifts.values(types, record, operands, dag)
  local in_pairs = form == "elementwise" and two.serves(record, operands, dag)
  local reserved = other_names(dag, thresholds)
  if in_pairs then
    local names_of_pairs = two.names(operands, dag.outputs)
    table.move(names_of_pairs, 1, #names_of_pairs, #reserved + 1, reserved)
  end
  local locals = locals_of.new(templates[may_give_bools and bools.FORM or in_pairs and two.FORM or form], operands, reserved, dag.outputs)

  local function input_at(operand, node) return access.input(types, operand, node) end
  -- known: text of nodes that need not be computed, or nil; input_of(operand, node): the line of an input, or nil: at index i
  local function text_of(roots, without_rare, known, input_of)
    local nodes, needed, all = dag_of.order(roots, without_rare, known), {}, {}
    for _, node in ipairs(nodes) do needed[node] = true end
    for k, node in ipairs(dag.inputs) do
      if needed[node] and operands[k].class ~= "b" then all[#all + 1] = (input_of or input_at)(operands[k], node) end
    end
    local lines, emitter = target_c.emit(types, nodes, known and merged(variable_of, known) or variable_of,
                                         { locals = locals, tables = tables, without_rare = without_rare, widths = widths, bare = bare })
    return table.move(lines, 1, #lines, #all + 1, all), emitter
  end
  local body, emitter = text_of(dag.outputs, false)
  local block = is_rare and rare_block(types, outputs)
  local is_cut = block and record.is_expression and block % M.GRAIN == 0
  local ivdep, ivdep_main, grain = loop_pragmas(types, record, dag_of.order(dag.outputs), is_cut)
  local apart = apart_text(operands, outputs)
  local given = may_give_bools and bools.values(emitter, outputs[1], dag.outputs[1])
  local values = {
    rank = record.rank, linkage = record.fused and "Q_FN " or "", params = params, strides = kept(strides, operands),
    operands = kept(operands, operands), n_operands = #operands, hoisted = hoisted, body = body,
    outputs = values_of(types, outputs, dag, emitter, apart), search = {}, ivdep = ivdep, ivdep_main = ivdep_main, grain = false,
  }
  local roots = table.move(dag.outputs, 1, #dag.outputs, 1, {})
  if is_rare then
    for _, threshold in ipairs(thresholds) do roots[#roots + 1] = threshold.node end
    table.move(others, 1, #others, #roots + 1, roots)
    local fast, fast_emitter = text_of(roots, true)
    values.fast, values.search, values.found = fast, search_of(thresholds, others, fast_emitter)
    values.fast_outputs = values_of(types, outputs, dag, fast_emitter, apart, true)
    values.apart, values.block = apart, block
  end
  if heavy then
    local tests, more = split_conditions(types, dag.dag:rare_conditions(dag.outputs, heavy))
    local needed = table.move(dag.outputs, 1, #dag.outputs, 1, {})
    for _, threshold in ipairs(tests) do needed[#needed + 1] = threshold.node end
    table.move(more, 1, #more, #needed + 1, needed)
    local light, light_emitter = text_of(needed, heavy)
    values.light, values.light_search, values.light_found = light, search_of(tests, more, light_emitter)
    values.light_end = "m"
    values.light_outputs = values_of(types, outputs, dag, light_emitter, apart, heavy)
    local known = not is_cut and left_by_light(types, outputs, dag, heavy, values.light_outputs)
    if known then
      values.body, emitter = text_of(dag.outputs, false, known)
      values.outputs = values_of(types, outputs, dag, emitter, apart)
    end
  end
  if over_strips then
    local loop = strips.loop(types, {
      dag = dag, operands = operands, roots = roots, is_rare = is_rare, variable_of = variable_of,
      options = { locals = locals, tables = tables, without_rare = is_rare, widths = widths },
      search = values.search, results = is_rare and values.fast_outputs or values.outputs,
    })
    for key, value in pairs(loop) do values[key] = value end
  end
  if is_cut then cut_rest(values, grain) end
  local of_pairs = in_pairs and two.values(operands, dag, function(input_of) return text_of(dag.outputs, false, nil, input_of) end)
  local own_form = given and bools.FORM or shift and shifts.FORM or of_pairs and two.FORM or form
  local own = given or shift or of_pairs
  return own_form, own and merged(values, own) or values
end

local function cast_of(types, record, load)
  if not record.from then return load end
  local plain = record.role == "widen" and access.widen(types, record.storage)
    or record.role == "narrow" and access.NARROW[record.storage]
  return plain and plain:format(load) or cast_text(types, record.from, record.to, load)
end

-- The values of a record without an op: a conversion or a copy.
local function pack_values(types, record)
  local operand_names = #record.dtypes == 2 and { "x", "out" } or { "x", "offset", "out" }
  local operands, strides = access.with_rows(operands_of.of_record(types, record, operand_names, #operand_names - 1))
  local input, output = operands[1], operands[#operands]
  local load = access.load(input)
  local value = cast_of(types, record, load)
  local hoisted, body = {}, {}
  if input.class == "b" then
    hoisted[1] = string.format("const %s in_x = %s;", input.element, load)
    value = "in_x"
  end
  local ivdep, ivdep_main = loop_pragmas(types, record, {})
  return {
    rank = record.rank, linkage = "", params = {}, strides = strides, operands = operands, n_operands = #operands,
    hoisted = hoisted, body = body, ivdep = ivdep, ivdep_main = ivdep_main,
    outputs = { { index = 0, element = output.element, lvalue = access.lvalue(output), value = value } },
    role = record.role, from = record.from or "", to = record.to or "", size = types.by_name[record.dtypes[1]].size,
    direction = record.direction or "", element = input.element,
  }
end

-- The values of a table's lookup, with indices known at run time.
local function lookup_values(types, record)
  local item, index = types.by_name[record.dtypes[1]], types.by_name[record.dtypes[2]]
  return {
    element = item.c, index = index.c,
    -- C widens a narrower index to int, as for a constant table
    mask = index.bits < 32 and "i32" or index.c,
    value = cast_text(types, item.name, item.name, "table[index[i] & last]"),
  }
end

-- The functions that kinds of op use to fill their templates. operands(types, record, names, n_in): the operands, and the strides
-- along a row
local kit = { lvalue = access.lvalue }
function kit.operands(...) return access.with_rows(operands_of.of_record(...)) end

-- A number of a dtype as it is stored: a NaN becomes the one NaN.
function kit.stored(types, dtype, value) return cast_text(types, dtype, dtype, value) end

-- The lines that widen n elements of a stored dtype at x to what is computed on, at `to`.
function kit.widen(types, dtype)
  local t = types.by_name[dtype]
  if t.casts_in_blocks then return { string.format("q_widen_%s_%s(x, to, n);", t.name, t.compute) } end
  return { "Q_IVDEP", string.format("for (i64 i = 0; i < n; i++) to[i] = %s;", access.widen(types, dtype):format("x[i]")) }
end

-- The lines that widen a strip of a stored dtype to 32-bit elements.
function kit.widen_strip(types, dtype, from, to)
  local own = access.WIDEN_STRIP[dtype]
  if own then return own(to, from) end
  return { "Q_IVDEP_STRIP", string.format("for (int l = 0; l < Q_STRIP_32; l++) (%s)[l] = %s;", to, access.widen(types, dtype):format("(" .. from .. ")[l]")) }
end

-- The lines of a function's body that computes a DAG, for arguments of these names, the text of its first result, and of all of them.
function kit.body(types, dag, arguments)
  local variable_of = {}
  for k, node in ipairs(dag.inputs) do variable_of[node] = arguments[k] end
  local locals = locals_of.new(template.parse("", ""), {}, arguments, dag.outputs)
  local lines, emitter = target_c.emit(types, dag_of.order(dag.outputs), variable_of, { locals = locals })
  local results = {}
  for k, node in ipairs(dag.outputs) do results[k] = emitter:argument(node, node.type == "bool" and 8 or nil) end
  return lines, results[1], results
end

local ROLE_TEXT = {
  convert = "each element cast", widen = "what a kernel computes on, from the dtype it is stored in",
  narrow = "what a kernel has computed, to the dtype it is stored in", gather = "strided source to contiguous rows",
  scatter = "contiguous rows to a strided destination",
  fill = "one value over each contiguous row", transpose = "a tile turned over its diagonal",
  gather_at = "elements at byte offsets to a contiguous row", scatter_at = "a contiguous row to elements at byte offsets",
  stream = "bytes past the cache",
}

-- The text of the comment above a kernel; file: the template's
local function description(record, dag, file)
  local op = record.op
  if record.primitive then
    return string.format("a step of an expression: %s (%s)", dag and record.primitive or "items of a table of 2^k", file)
  end
  if not op then return string.format("%s (%s)", record.says or ROLE_TEXT[record.role], file) end
  return string.format("%s%s (%s)", op.name, dag and ": " .. M.formula(op) or "", operands_of.sources(op, dag, file))
end

M.DIRECT = 12 -- the most operations of an element that is computed where it is combined, 16 times in a row

-- How such an element is computed: { parameters, lines, result, arguments = list of { name, is_element, load }, moved = those of elements }
-- or nil: elements go through a block. Its NaN need not be the one NaN: what they are combined to becomes that where it is stored.
local function direct_of(types, record, dag)
  local used, arguments, moved, parameters, variable_of, n = operands_of.used(dag), {}, {}, {}, {}, 0
  local is_raw, is_cast = false, false
  for _, node in ipairs(dag_of.order(dag.outputs)) do
    is_cast = is_cast or node.op == "round" or node.op == "cast" and not (node.type == "f64" and node.args[1].type == "f32")
    if node.op == "param" or node.table or node.type == "bool" and #node.args == 0 then return nil end
    n, is_raw = n + (#node.args > 0 and 1 or 0), is_raw or node.op == "raw"
  end
  for k, node in ipairs(dag.inputs) do
    local is_element, name = record.classes:sub(k, k) == "c", "x" .. k - 1
    variable_of[node] = "x" .. k - 1
    if used[node] and record.dtypes[k] ~= node.type then return nil end
    if used[node] then
      local load = is_element and "const %s_u *%s = (const %s_u *)at[%d];" or "const %s %s = *(const %s_u *)at[%d];"
      arguments[#arguments + 1] = { name = name, is_element = is_element, load = load:format(node.type, name, node.type, k - 1) }
      moved[#moved + 1] = is_element and arguments[#arguments] or nil
      parameters[#parameters + 1] = string.format("%s %s", node.type, name)
    end
  end
  if is_cast then -- some are macros that read it
    arguments[#arguments + 1] = { name = "q_zero", is_element = false, load = "const i32 q_zero = q_opaque_zero();" }
    parameters[#parameters + 1] = "i32 q_zero"
  end
  if n > M.DIRECT or #moved == 0 or #arguments > 4 or #dag.outputs ~= 1 or dag.outputs[1].type ~= record.dtypes[#record.dtypes] then return nil end
  local locals = locals_of.new(template.parse("", ""), {}, { "x0", "x1", "x2", "x3", "x4", "l", "t", "at" }, dag.outputs)
  local lines, emitter = target_c.emit(types, dag_of.order(dag.outputs), variable_of, { locals = locals, any_nan = not is_raw })
  if is_cast then table.insert(lines, 1, "(void)q_zero;") end
  return { parameters = table.concat(parameters, ", "), lines = lines, result = emitter:argument(dag.outputs[1]), arguments = arguments, moved = moved }
end

-- One kernel's function. templates: of M.sources; tables: list -> C name; prefix: before its name, or nil: the library's
function M.kernel(types, record, dag, templates, tables, prefix)
  local name, values = record.template, nil
  dag = dag and (signs.dag(types, record, dag) or ordered.dag(types, record, dag)) or dag
  if dag then
    name, values = elementwise_values(types, record, dag, templates, tables)
  elseif record.values then
    values = record.values(kit, types, record, names.kernel(record.name, prefix or names.LIBRARY))
  elseif record.primitive then
    values = lookup_values(types, record)
  else
    values = pack_values(types, record)
  end
  local comment = description(record, dag, path_of[name])
  local own_name = names.kernel(record.name, prefix or names.LIBRARY)
  values.name = (record.fused and "q_elements_" or "") .. own_name
  values.comment = record.op and c.comment_lines(comment) or { comment }
  local text = template.render(templates[name], template.chosen(templates[name], values))
  local fused = record.fused
  if not fused then return text end
  local direct = name == "elementwise" and direct_of(types, record, dag) or nil
  values = fused.values(kit, types, fused, own_name, direct)
  values.name, values.comment, values.fused = own_name, {}, #record.dtypes
  return text .. "\n" .. template.render(templates[fused.template], template.chosen(templates[fused.template], values))
end

-- The lines of a constant table's items, and the end of its definition.
local function item_lines(list)
  local lines = {}
  for k = 1, #list.items, 4 do
    local row = {}
    for j = k, math.min(k + 3, #list.items) do row[#row + 1] = c.table_item(list.type, list.items[j]) end
    lines[#lines + 1] = "  " .. table.concat(row, ", ") .. ","
  end
  lines[#lines + 1] = "};"
  return lines
end

local items_of = setmetatable({}, { __mode = "k" }) -- table -> those lines

-- The constant tables that DAGs look up: definitions, and list -> name. form: how a definition begins, C's if nil
function M.tables(dags, form)
  form = form or "static const %s %s[%d] __attribute__((aligned(64))) = {"
  local table_names, lines, taken = {}, {}, {}
  for _, dag in ipairs(dags) do
    for _, node in ipairs(dag_of.order(dag.outputs)) do
      local list = node.table
      if list and not table_names[list] then
        local name = "q_table_" .. list.name:lower()
        while taken[name] do name = name .. "_" end
        taken[name], table_names[list] = true, name
        lines[#lines + 1] = string.format(form, list.type, name, #list.items)
        items_of[list] = items_of[list] or item_lines(list)
        table.move(items_of[list], 1, #items_of[list], #lines + 1, lines)
      end
    end
  end
  return lines, table_names
end

-- A file of kernels, or nil where none is left. banner: lines; entries: list of { record, dag or nil }; is_own(record, dag,
-- text): whether a kernel's text is needed, of share.lua, or nil: each is; prefix: as of M.kernel
function M.file(types, banner, entries, templates, is_own, prefix)
  local dags = {}
  for _, entry in ipairs(entries) do dags[#dags + 1] = entry.dag end
  local table_lines, table_names = M.tables(dags)
  local far_lines = far.lines(types, dags)
  local out = { table.concat(banner, "\n"), '#include "kernel.h"\n' .. dtypes_of.include(types) }
  out[#out + 1] = "Q_KERNELS_BEGIN\n"
  if #far_lines > 0 then out[#out + 1] = table.concat(far_lines, "\n") .. "\n" end
  if #table_lines > 0 then out[#out + 1] = table.concat(table_lines, "\n") .. "\n" end
  local n_before = #out
  for _, entry in ipairs(entries) do
    local text = M.kernel(types, entry.record, entry.dag, templates, table_names, prefix)
    if not is_own or is_own(entry.record, entry.dag, text) then out[#out + 1] = text end
  end
  if #out == n_before then return nil end
  out[#out + 1] = "Q_KERNELS_END\n"
  return table.concat(out, "\n")
end

return M
