-- SPDX-License-Identifier: Apache-2.0
--
-- The kind row (declared by `row`): its body calls reductions, which run over some axes of the inputs. A value is an element, or
-- constant along these axes: a row value. The output is reduced if the body's result is a row value; else it has the inputs' shape.
-- A body has two more names, `count`, the number of elements along the axes, and `index`, the place of an element among them in row-major
-- order. An input may be `i64`: an integer of any dtype, outside promotion; and `row`: of extent 1 along the axes. The kernels are those of
-- the stages of gen/graph/dag/rows.lua; what reduces is shared by all ops.

local elementwise = require "gen.kinds.elementwise"
local row_packed = require "gen.kinds.row_packed"
local source = require "gen.base.source"

local M = {}

M.name, M.declarator, M.default_inputs = "row", "row", "x"
M.has_body, M.has_derivative = true, true
M.needs_runtime = "its kernels are stages, which the runtime puts together"
M.own_inputs = { "index" }
M.own_params, M.own_param_type = { "count" }, "i64"
M.input_types = { bool = true, i64 = true, row = true }
M.has_stages = true
M.bound_kind, M.derivative_kind = "row", "row"
M.not_measured = "it reduces"
M.cuda_form = "rows"
M.may_be_added = true
M.has_own_entry = true
M.runtime = "row" -- its qn_kind
-- of its folder, what goes with kernels for the CPU
M.runtime_cpu = { "row_job", "engine/row_blocks", "engine/row_columns", "engine/row_cpu", "engine/row_engine", "engine/row_frame", "engine/row_load",
                  "engine/row_pick", "engine/row_scans", "engine/row_split", "engine/row_stage", "engine/row_tiles", "scan_states" }
M.schema = { result = "string", empty = "number string", bound = "string table", special = "table", cases = "table" }

-- The parameters by which a call says what is reduced, before the op's own.
local AXES, KEEPDIMS = { name = "axes", value = -1, role = "axes" }, { name = "keepdims", value = 0, role = "keepdims" }
-- The parameters of reductions with `initial` or `last`. A call that gives one (not as 0) goes to the op of that name.
local INITIAL, LAST = { name = "initial", role = "initial" }, { name = "select_last_index", value = 0, role = "flag" }

-- The dtype of the accumulators of a reduction over elements of a dtype. op.accumulate: "wide", integers as 64 bits; a dtype; nil, the
-- dtype that the elements are computed in.
function M.accumulator(types, op, dtype)
  local t, wanted = types.by_name[dtype], op.accumulate
  if wanted ~= "wide" then return wanted or t.compute end
  if t.kind == "float" then return t.compute end
  return (t.kind == "bool" or t.signed) and "i64" or "u64"
end

-- The dtype of an output for inputs that promote to a dtype. result: "wide": of an integer 64 bits; "floating": of an integer a float;
-- a dtype; nil: the inputs' own.
function M.result_dtype(types, op, dtype)
  local t, wanted = types.by_name[dtype], op.result
  if wanted == "floating" then return t.floating end
  if wanted ~= "wide" then return wanted or dtype end
  if t.kind == "float" then return dtype end
  return (t.kind == "bool" or t.signed) and "i64" or "u64"
end

local WORDS = { wide = true, floating = true }

-- A message about an error in an op's fields, or nil.
function M.failure(fields, is_builtin, types)
  for _, field in ipairs { "special", "cases" } do
    if fields[field] and not is_builtin then return field .. ": only for the library's own ops" end
  end
  for _, field in ipairs { "accumulate", "result" } do
    local word = fields[field]
    local t = types.by_name[word or ""]
    if word and not WORDS[word] and not (t and t.kind ~= "bits" and t.compute == word) then
      return string.format("%s: '%s', expected wide, floating or a dtype that is computed in itself", field, source.shown(word))
    end
  end
  if type(fields.empty) == "string" and fields.empty ~= "identity" then
    return string.format("empty: '%s', expected a number, or \"identity\": reductions of no elements give their identity", source.shown(fields.empty))
  end
end

-- bodies(field): the bodies of a field, by dtype or kind
-- special = { value, "OP" }: where its first parameter has this value, it is OP(x), bit by bit. cases = { value, ... }: for these values of
-- its first parameter a call on the CPU runs a program of its own, the body with the number in the parameter's place.
function M.declare(op, fields, bodies)
  op.result, op.empty, op.bound, op.special = fields.result, fields.empty, fields.bound and bodies "bound", fields.special
  op.cases = fields.cases or {}
end

-- Its class, and the parameters that give the shape. Both depend on whether its outputs are reduced, which its body says.
function M.class_of(op) return op.is_reduced and "reduction" or "basic" end
function M.shape_params(op) return op.is_reduced and { AXES, KEEPDIMS, op.initial and INITIAL or op.last and LAST or nil } or { AXES } end

function M.axes_of_call(op) return { is_reduced = op.is_reduced } end

-- ORDER docs/internals/reductions.md, the tree
function M.depth(n)
  local depth, chunks = 19, (n + 255) // 256
  while chunks > 1 do depth, chunks = depth + 1, (chunks + 1) // 2 end
  return depth
end

M.compute_type = elementwise.compute_type

-- The result of a reduction of no elements, in its accumulator's dtype. For a reduction that refuses no elements (`empty = false`), its
-- identity. An infinity is converted to the integer dtype's limit.
function M.empty_result(types, op, A)
  local value, t = op.reducer.empty or op.reducer.identity or 0, types.by_name[A]
  if value == true then return 1 end
  if t.kind == "float" then return value + 0.0 end
  if value == -math.huge then return t.signed and -(1 << (t.bits - 1)) or 0 end
  if value == math.huge then return t.signed and (1 << (t.bits - 1)) - 1 or -1 >> (64 - t.bits) end
  return math.tointeger(value)
end

-- The dtypes of parameters. Those of the shape are integers; results of rows without elements may have any dtype of the call.
function M.param_dtypes(types, T) return { "i64", T, types.by_name[T].compute, "u64" } end

-- The dtype of an op's own parameters where it computes in K: of the library's own ops that of results, where these are wider.
function M.param_type(types, op, K)
  return op.builtin and op.result == "wide" and types.by_name[M.result_dtype(types, op, K)].compute or types.by_name[K].compute
end

function M.promotion(types, op) return elementwise.promotion(types, op) end

-- Adds to the wanted dtypes those of accumulators and results.
function M.add_dtypes(types, op, wanted, asked)
  elementwise.add_dtypes(types, op, wanted, asked)
  for _, name in ipairs(asked) do
    local t = types.by_name[name]
    local K = M.compute_type(types, op, name)
    if K then
      wanted[K] = true
      wanted[M.result_dtype(types, op, name)] = true
      if t.kind ~= "float" then wanted[(t.kind == "bool" or t.signed) and "i64" or "u64"] = true end
    end
  end
end

-- Whether lines or results of a body have casts from integers to floats, which need what a kernel declares first.
function M.has_casts(lines, results)
  for _, list in ipairs { lines, results } do
    for _, text in ipairs(list) do
      if text:find "q_cast_[iu]%d+_b?f%d+%(" then return true end
    end
  end
  return false
end

-- The same as lines of a function of its own.
function M.enter(lines, results)
  if M.has_casts(lines, results) then table.insert(lines, 1, "Q_KERNEL_ENTRY;") end
end

-- How a kernel of elements combines them itself, for accumulators A, as a record's `fused`; nil: it does not.
function M.fused(types, op, A, combine)
  if types.by_name[A].kind ~= "float" or combine.parts or op.reducer.is_repeatable then return nil end
  return { template = "reduce_inner", values = M.reducer_values, combine = combine, K = A, dtypes = { A, A }, is_free = op.reducer.is_free }
end

-- As M.fused, for a stage that computes one value and only reduces it.
local function fused_in(types, program, stage, combine_for)
  local reduce = stage.reduces[1]
  if #stage.reduces ~= 1 or #stage.outs ~= 1 or reduce.from ~= stage.outs[1] or stage.outs[1] == program.kept then return nil end
  return M.fused(types, reduce.op, reduce.type, combine_for(reduce.op, reduce.type))
end

-- Whether a program has kernels that run on rows of neighbouring elements, one from each of some columns, with the columns' row values
-- beside each other. Accumulators have one part. The others go through transposed blocks.
local function goes_across(op, program, combine_for)
  for _, input in ipairs(op.inputs) do
    if input.is_row then return false end
  end
  for _, stage in ipairs(program.stages) do
    for _, reduce in ipairs(stage.reduces) do
      if combine_for(reduce.op, reduce.type).parts then return false end
    end
    for _, value in ipairs(stage.ins) do
      if value.input == 0x1f then return false end -- an element's place. ORDER VALUE of runtime/core/row/row_program.h
    end
  end
  return true
end

-- The kernels of its stages, for each dtype that is computed in. records.programs: K -> its program (gen/graph/dag/rows.lua), with
-- `record` in each stage that has a kernel, and `across` where it has another one for contiguous row values; records.cases: K -> list of
-- the programs of op.cases; records.picking: K -> the program of gen/graph/dag/picks.lua, if there is one.
function M.blocks(kit, types, op, wanted, dag_for, combine_for)
  local records = { programs = {}, cases = {}, picking = {} }
  local function add(K, dag, infix)
    local program = kit.stages(types, dag)
    local is_across = infix == "" and goes_across(op, program, combine_for)
    for number, stage in ipairs(program.stages) do
      if stage.dag then
        local dtypes, classes = {}, {}
        for k, node in ipairs(stage.dag.inputs) do
          dtypes[k], classes[k] = node.type, (stage.is_row or stage.ins[k].is_element) and "c" or "b"
        end
        for _, node in ipairs(stage.dag.outputs) do dtypes[#dtypes + 1], classes[#classes + 1] = node.type, "c" end
        local rank, name = stage.is_row and "1" or "2", string.format("%s_%s%s_stage%d", op.c_name, K, infix, number)
        local function record(shape, fused)
          return { name = kit.name_of(name, dtypes, rank, shape), op = op, K = K, D = K, dtypes = dtypes, rank = rank, classes = shape,
                   weight = kit.weight(stage.dag), heavy = false, template = "elementwise", dag = stage.dag, fused = fused }
        end
        local shape = table.concat(classes)
        stage.record = record(shape, fused_in(types, program, stage, combine_for))
        records[#records + 1] = stage.record
        if is_across and not stage.is_again and shape:find "b" then
          stage.across = record((shape:gsub("b", "c")))
          records[#records + 1] = stage.across
        end
      end
    end
    return program
  end
  for _, K in ipairs(kit.kernel_dtypes(types, op, wanted)) do
    local dag = dag_for(op, K)
    records.programs[K], records.cases[K] = add(K, dag, ""), {}
    records.picking[K] = kit.picks(records.programs[K], function(k) return op.inputs[k + 1] and op.inputs[k + 1].is_row end)
    for k, value in ipairs(op.cases or {}) do records.cases[K][k] = add(K, kit.partial(types, dag, 1, value), "_case" .. k) end
  end
  return records, true
end

-- Its kernels for CUDA: one for each dtype of the inputs, in both widths; and that these are all.
function M.cuda_records(kit, types, op, wanted, _, dag_for)
  local records, is_made = {}, {}
  for _, K in ipairs(kit.kernel_dtypes(types, op, wanted)) do is_made[K] = true end
  for _, t in ipairs(types.list) do
    local K = wanted[t.name] and t.kind ~= "bits" and M.compute_type(types, op, t.name)
    if K and is_made[K] then
      local T, dtypes = types.by_name[K].kind == "float" and t.kind ~= "float" and t.floating or t.name, {}
      for k, input in ipairs(op.inputs) do dtypes[k] = input.type or t.name end
      for _, output in ipairs(op.outputs) do dtypes[#dtypes + 1] = output.type or M.result_dtype(types, op, T) end
      for _, is_wide in ipairs { false, true } do
        for _, form in ipairs(kit.row_forms(types, dag_for(op, K), is_wide)) do
          local fields = { op = op, K = K, D = t.name, dtypes = dtypes, is_wide = is_wide, heavy = false, weight = 1 }
          records[#records + 1] = kit.rows_record(types, fields, dag_for(op, K), form, function(given) return kit.record(op.c_name, given) end)
        end
      end
    end
  end
  return records, true
end

---------------------------------------------------------------------------------------------------- tables

-- A value's number. ORDER VALUE of runtime/core/row/row_program.h
function M.value_number(value)
  return value.input or value.output and 0x20 + value.output or value.row and 0x40 + value.row or 0x80 + value.temp
end
local value_number = M.value_number

local function numbers(...)
  local list = {}
  for _, values in ipairs { ... } do
    for _, value in ipairs(values) do list[#list + 1] = tostring(value_number(value)) end
  end
  return #list > 0 and "(const uint8_t[]){" .. table.concat(list, ", ") .. "}" or "NULL"
end

-- The bits of a value of the first parameter, as text.
local function bits_of_first(types, op, t, value)
  local bits = types.by_name[M.param_type(types, op, t.name)].bits
  return string.format("0x%xu", string.unpack("<I" .. bits // 8, string.pack(bits == 64 and "<d" or "<f", value)))
end

-- The program that another op has for a value of the first parameter, and that value's bits.
local function special_of(types, op, t, context)
  local other = op.special and string.format("program_%s_%s", op.special[2], t.name)
  if not other or not context.programs[other] then return "NULL, 0" end
  return string.format("&%s, %s", other, bits_of_first(types, op, t, op.special[1]))
end

-- The rows of a program's stages.
local function stage_rows(op, program, variant_of, context)
  local stages = {}
  for k, stage in ipairs(program.stages) do
    local reduces = {}
    for i, reduce in ipairs(stage.reduces) do
      local others = {}
      for p, value in ipairs(reduce.others) do others[p] = tostring(value_number(value)) end
      reduces[i] = string.format("{%d, %d, &qn_reducers[%d], {%s}%s}", value_number(reduce.from), reduce.to,
                                 context.reducer_of[reduce.op.name .. " " .. reduce.type],
                                 #others > 0 and table.concat(others, ", ") or "0", op.empty == "identity" and ", 1" or ", 0")
    end
    stages[k] = string.format("  {%s, %s, %s, %s, %d, %d, %d, %d, %d, %d, NULL, NULL, 0, 0},", stage.record and variant_of[stage.record] or "NULL",
                              stage.across and variant_of[stage.across] or "NULL", numbers(stage.ins, stage.outs),
                              #reduces > 0 and "(const qn_row_reduce[]){" .. table.concat(reduces, ", ") .. "}" or "NULL",
                              #stage.ins, #stage.outs, #reduces, stage.is_row and 1 or 0, stage.is_again and 1 or 0,
                              stage.record and stage.record.fused and 1 or 0)
  end
  return table.concat(stages, "\n")
end

-- The row of an op beside its qn_builtin, and the name of the field's value. context: upper (a dtype's constant), reducer_of (key ->
-- its index), built (dtypes)
function M.own_rows(types, op, records, context)
  local out, variant_of = {}, {}
  for k, record in ipairs(records) do variant_of[record] = string.format("&variants_%s[%d]", op.c_name, k - 1) end
  local own = {}
  for k, param in ipairs(op.params) do own[#own + 1] = not param.role and k - 1 or nil end
  for _, t in ipairs(types.list) do
    local program = records.programs[t.name]
    if program then
      local slots = {}
      local name = string.format("%s_%s", op.c_name, t.name)
      context.programs["program_" .. name] = #own == 0
      for k, index in ipairs(own) do slots[k] = string.format("{%d, %s}", index, context.upper(M.param_type(types, op, t.name))) end
      local cases = {}
      local function add(of, called, others)
        local row_types = {}
        for k, row_type in ipairs(of.row_types) do row_types[k] = context.upper(row_type) end
        out[#out + 1] = string.format("static const qn_row_stage stages_%s[] = {\n%s\n};", called, stage_rows(op, of, variant_of, context))
        out[#out + 1] = string.format("static const qn_row_program program_%s = {stages_%s, %s, %s, %s, %d, %d, %d, %d, %s, %d, 0, %s};", called, called,
          #row_types > 0 and "(const uint8_t[]){" .. table.concat(row_types, ", ") .. "}" or "NULL",
          #slots > 0 and "(const qn_slot[]){" .. table.concat(slots, ", ") .. "}" or "NULL", context.number(math.type(op.empty) and op.empty or 0),
          #of.stages, #row_types, #slots, math.type(op.empty) and 1 or 0, special_of(types, op, t, context),
          of.kept and value_number(of.kept) or 0, others)
      end
      local picking = records.picking and records.picking[t.name]
      if picking then add(picking, name .. "_picks", "NULL, NULL, 0") end
      for k, of in ipairs(records.cases and records.cases[t.name] or {}) do
        add(of, name .. "_case" .. k, "NULL, NULL, 0")
        cases[k] = string.format("{%s, &program_%s_case%d}", bits_of_first(types, op, t, op.cases[k]), name, k)
      end
      add(program, name, string.format("%s, %s, %d", picking and string.format("&program_%s_picks", name) or "NULL",
                                       #cases > 0 and "(const qn_row_case[]){" .. table.concat(cases, ", ") .. "}" or "NULL", #cases))
    end
  end
  local programs, results = {}, {}
  for _, t in ipairs(types.list) do
    local K = context.built[t.name] and t.kind ~= "bits" and M.compute_type(types, op, t.name)
    if K and records.programs[K] then
      programs[#programs + 1] = string.format("[%s] = &program_%s_%s", context.upper(t.name), op.c_name, K)
      local T = types.by_name[K].kind == "float" and t.kind ~= "float" and t.floating or t.name
      results[#results + 1] = string.format("[%s] = %s", context.upper(t.name), context.upper(M.result_dtype(types, op, T)))
    end
  end
  local row_in = 0
  for k, input in ipairs(op.inputs) do row_in = row_in | (input.is_row and 1 << (k - 1) or 0) end
  out[#out + 1] = string.format("static const qn_row_op row_%s = {\n  .is_reduced = %d,%s%s\n  .programs = {%s},\n  .results = {%s},\n};\n",
                                op.c_name, op.is_reduced and 1 or 0, row_in > 0 and string.format(" .row_in = 0x%xu,", row_in) or "",
                                (op.initial or op.last) and string.format(" .twin = \"%s\",", op.initial or op.last) or "",
                                table.concat(programs, ", "), table.concat(results, ", "))
  return out, "&row_" .. op.c_name
end

-- The packed description of a spec's op, for the runtime.
M.packed_form, M.packed = 1, row_packed.packed

-- The operation of a node on a and b, in this order, of a combine; nil: the node is another one.
local function operation_of(combine, node)
  return #node.args == 2 and node.args[1] == combine.inputs[1] and node.args[2] == combine.inputs[2] and node.op or nil
end

-- The operation that a combine is: "add" of a + b; nil: it is more, or a state has several parts.
function M.operation(combine) return not combine.parts and operation_of(combine, combine.outputs[1]) or nil end

-- Whether `columns` reduces all rows at once: in registers, lane by lane, or in any order.
function M.is_at_once(record)
  local operation = M.operation(record.combine)
  return record.joins or record.is_free or record.is_integer and (operation == "add" or operation == "mul")
end

-- The pointer to the backend of a kind's calls on the CPU, which a tree without kernels for the CPU does not have.
function M.backend_text(name, has_cpu)
  if not has_cpu then return string.format("const qn_backend *const qn_%s_backend = NULL;\n", name) end
  return string.format("extern const qn_backend qn_%s_cpu;\nconst qn_backend *const qn_%s_backend = &qn_%s_cpu;\n", name, name, name)
end

-- The runtime's table of what reduces. packs_of: see kinds.lua
M.table = { header = "core/row/row_program.h" }
function M.table.text(packs_of, upper, bits_of, has_cpu)
  local rows, at = {}, {}
  for _, pack in ipairs(packs_of "reduce") do
    local record = pack.record
    if not at[record.reducer] then
      rows[#rows + 1] = { head = record }
      at[record.reducer] = rows[#rows]
    end
    local row = at[record.reducer]
    if record.part:find "^narrow" and pack.name then
      row[record.part] = row[record.part] or {}
      table.insert(row[record.part], string.format("[%s] = &%s", upper(record.dtypes[1]), pack.name))
    elseif not record.part:find "^narrow" then
      row[record.part] = pack.name and "&" .. pack.name or "NULL"
    end
  end
  for k, row in ipairs(rows) do
    local empty, parts = row.head.empty, {}
    for p, part in ipairs(row.head.combine.parts or {}) do parts[p] = upper(part.type) end
    rows[k] = string.format("  {\"%s\", %s, %s, %s, {%s}, %d, %s, %d, %d, {%s}, {%s}, %d, %d, NULL, %d, %d, %d, {%s}},", row.head.op_name, row.inner,
                            row.columns or "NULL", row.both, bits_of(row.head.K, row.head.empty_result), empty and 1 or 0, parts[1] or upper(row.head.K),
                            math.max(#parts, 1), row.head.finds and 1 or 0, #parts > 1 and table.concat(parts, ", ", 2) or "0",
                            row.narrow and table.concat(row.narrow, ", ") or "NULL", row.head.absorbs and 1 or 0, row.head.absorbs or 0, row.head.fuses and 1 or 0,
                            row.head.joins and 1 or 0, row.columns and M.is_at_once(row.head) and 1 or 0,
                            row.narrow_columns and table.concat(row.narrow_columns, ", ") or "NULL")
  end
  return M.backend_text("row", has_cpu) .. "const qn_reducer qn_reducers[] = {\n" .. (rows[1] and table.concat(rows, "\n") or "  {.name = NULL}, /* none */")
    .. "\n};\n" .. string.format("const int32_t qn_n_reducers = %d;\n", #rows)
end

---------------------------------------------------------------------------------------------------- what reduces

M.templates = { "rows/reduce_inner", "rows/reduce_lanes", "rows/reduce_free", "rows/reduce_columns", "rows/reduce_parts" }

-- A run in parts without a loop; `above`: the greater ones below 16
local RUNS = { { n = 16, above = -1 }, { n = 8, above = 0 }, { n = 4, above = 8 }, { n = 2, above = 12 }, { n = 1, above = 14 } }

-- The lines that combine n elements to `t`, after what is in `first`, if any. at(k): the text of element k
local function run_lines(form, n, at, first)
  local lines = {}
  local function put(...) lines[#lines + 1] = string.format(...) end
  if form.extreme and n > 1 then -- a comparison each; NaN and zeros of both signs by two elements and at the end
    local F, U, MASK, join = form.element, form.unsigned, form.mask, form.extreme == ">" and "&" or "|"
    if form.skips then
      put("%s top = %s(%s)__builtin_inf();\n%s sign = %s;\n%s is_nan = -1;", F, join == "&" and "-" or "", F, U, join == "&" and "-1" or "0", MASK)
      for k = 0, n - 1 do
        put("const %s v%d = %s;\nconst %s odd%d = Q_MASK(%s, v%d != v%d);\nis_nan &= odd%d;", F, k, at(k), MASK, k, MASK, k, k, k)
        put("sign %s= q_raw_%s(v%d) %s (%s)%sodd%d;\ntop = v%d %s top ? v%d : top;", join, F, k, join == "&" and "|" or "&", U, join == "&" and "" or "~", k,
            k, form.extreme, k)
      end
    else
      put("const %s v0 = %s;", F, at(0))
      put("%s top = v0;\n%s sign = q_raw_%s(v0);\n%s is_nan = 0;", F, U, F, MASK)
      for k = 0, n - 1, 2 do
        local a, b = "v" .. k, "v" .. k + 1
        if k > 0 then put("const %s %s = %s;", F, a, at(k)) end
        put("const %s %s = %s;", F, b, at(k + 1))
        put("is_nan |= Q_MASK(%s, __builtin_isunordered(%s, %s));", MASK, a, b)
        put("sign %s= q_raw_%s(%s) %s q_raw_%s(%s);", join, F, a, join, F, b)
        if k > 0 then put("top = %s %s top ? %s : top;", a, form.extreme, a) end
        put("top = %s %s top ? %s : top;", b, form.extreme, b)
      end
    end
    put("const %s zero = sign & q_raw_%s(-(%s)0);", U, F, F)
    put("const %s bits = q_sel_%s(Q_MASK(%s, top == 0), zero, q_raw_%s(top));", U, U, MASK, F)
    local t = string.format("q_from_%s(q_sel_%s(is_nan, Q_CANON_NAN_%s, bits))", F, U, F)
    put("const %s t = %s;", F, first and string.format("%s(%s, %s)", form.both, first, t) or t)
  elseif form.part then -- a sum of narrow integers, in a dtype that holds 16 of them
    put("%s part = %s;", form.part, at(0))
    for k = 1, n - 1 do put("part = (%s)(part + (%s)(%s));", form.part, form.part, at(k)) end
    local t = string.format("(%s)part", form.element)
    put("const %s t = %s;", form.element, first and string.format("%s(%s, %s)", form.both, first, t) or t)
  else
    put("%s t = %s;", form.element, first or at(0))
    for k = first and 0 or 1, n - 1 do put("t = %s(t, %s);", form.both, at(k)) end
  end
  local split = {}
  for _, line in ipairs(lines) do
    for text in line:gmatch "[^\n]+" do split[#split + 1] = text end
  end
  return split
end

-- The dtype in which a run of elements of a narrow one is added
local NARROW = { bool = "u8", u8 = "u16", i8 = "i16", u16 = "u32", i16 = "i32", u32 = "u64", i32 = "i64" }

-- Whether a reduction to A has a kernel of its own for elements of K: integers and bool, or floats that compute in A.
local function is_narrow(types, combine, K, A, is_free)
  local t = types.by_name[K]
  if t.kind == "float" and t.compute == A and K ~= A then return not combine.parts and (is_free or combine.outputs[1].op == "add") end
  local sums = M.operation(combine) == "add" and types.by_name[A].kind == "integer" and NARROW[K] ~= nil
  return K ~= A and not combine.parts and (sums or K == "bool" and A == "u8")
end

-- How four vectors of `width` lanes, one of each row, are combined to one: lists of the lanes that are combined, for each size of vectors.
local function spreads_of(size)
  local list = {}
  for _, bytes in ipairs { 64, 32, 16 } do
    local width = bytes // size
    local function lanes(lane_of)
      local texts = {}
      for l = 0, width - 1 do texts[l + 1] = math.tointeger(lane_of(l)) end
      return table.concat(texts, ", ")
    end
    local function part(half, from) -- of both vectors, of each group of 2 * half lanes the `half` from `from` on
      return lanes(function(l)
        local of = l % (width // 2)
        return (l < width // 2 and 0 or width) + of // half * 2 * half + of % half + from
      end)
    end
    if width >= 4 then
      local turned, half, quarter = {}, width // 2, width // 4
      for step = quarter // 2, 1, -1 do
        if quarter % (2 * step) == 0 then turned[#turned + 1] = lanes(function(l) return l ~ step end) end
      end
      list[#list + 1] = { condition = (#list == 0 and "if" or "elif") .. " Q_STRIP_BYTES == " .. bytes, low = part(half, 0), high = part(half, half),
                          low_pairs = part(quarter, 0), high_pairs = part(quarter, quarter), turned = turned }
    end
  end
  return list
end

-- How the lanes of one vector are combined, lane l with l + half: lists of what each lane is combined with, for each size of vectors.
local function turns_of(size)
  local list = {}
  for _, bytes in ipairs { 64, 32, 16 } do
    local width, turned = bytes // size, {}
    local half = width // 2
    while half > 0 do
      local lanes = {}
      for l = 0, width - 1 do lanes[l + 1] = l ~ half end
      turned[#turned + 1], half = table.concat(lanes, ", "), half // 2
    end
    list[#list + 1] = { condition = (#list == 0 and "if" or "elif") .. " Q_STRIP_BYTES == " .. bytes, turned = turned }
  end
  return list
end

-- The larger or the smaller of a and b in a combine, and whether it is of those that are not NaN:
-- a != a ? b : b != b ? a : maximum(a, b). nil: the combine is another one.
local function extreme_of(combine)
  local root, a, b = combine.outputs[1], combine.inputs[1], combine.inputs[2]
  local function takes(node, x, other) -- x != x ? other : ...
    local test = node.op == "select" and node.args[1]
    return test and test.op == "ne" and test.args[1] == x and test.args[2] == x and node.args[2] == other
  end
  local skips = takes(root, a, b) and takes(root.args[3], b, a)
  if skips then root = root.args[3].args[3] end
  return ({ maximum = "max", minimum = "min" })[operation_of(combine, root)], skips
end

-- The instruction that finds the larger or the smaller of two vectors of a float; nil: the combine is another one.
local function top_of(t, combine, is_free)
  if t.kind ~= "float" or not is_free or combine.parts then return nil end
  local word, skips = extreme_of(combine)
  return word and { word = word, says = word == "max" and "largest" or "smallest", size = t.bits // 8, least = 4 * (t.bits // 8),
                    suffix = t.bits == 32 and "ps" or "pd", bits = t.bits == 32 and "i16" or "i8",
                    nothing = skips and string.format("%s(%s)__builtin_inf()", word == "max" and "-" or "", t.c) or false }
end

-- The operator of a combine that vectors have, too; nil: it is another one.
local function operator_of(types, combine, A)
  return types.by_name[A].kind == "float" and ({ add = "+", mul = "*" })[M.operation(combine)] or nil
end

-- The vectors of a row that are reduced at once, down columns; and how their lanes are combined.
local HALVES = { { half = 8, twice = 16 }, { half = 4, twice = 8 }, { half = 2, twice = 4 }, { half = 1, twice = 2 } }
local DEPTHS = { { vectors = 4, halves = HALVES }, { vectors = 1, halves = HALVES } }

-- direct: how a kernel of elements computes one: { arguments = list of { name, is_element }, ... }, or nil
function M.reducer_values(c, types, record, name, direct)
  local lines, result = c.body(types, record.combine, { "a", "b" })
  M.enter(lines, { result })
  local t, is_sum = types.by_name[record.K], M.operation(record.combine) == "add"
  local from, word, skips = types.by_name[record.dtypes[1]], extreme_of(record.combine)
  local is_widened = from ~= t and from.kind == "float"
  local narrow = is_widened and record.part == "narrow_columns" and { widen = c.widen(types, from.name), strip = c.widen_strip(types, from.name, "x + p", "to + p") }
  local form = { element = t.c, both = "q_both_" .. name, unsigned = "u" .. t.bits, mask = "m" .. t.bits,
                 extreme = t.kind == "float" and record.is_free and ({ max = ">", min = "<" })[word], skips = skips,
                 lift = from ~= t and from.kind == "bool" and "0 != " or "", part = from ~= t and is_sum and NARROW[from.name] or nil }
  local rows, columns, folds, top = {}, {}, {}, top_of(t, record.combine, record.is_free)
  local function computed(i)
    local arguments = {}
    for k, argument in ipairs(direct.arguments) do
      arguments[k] = argument.name .. (not argument.is_element and "" or i == 0 and "[l]" or string.format("[l + 16 * %d]", i))
    end
    return string.format("q_element_%s(%s)", name, table.concat(arguments, ", "))
  end
  if direct then
    direct.runs = {}
    for k, run in ipairs(RUNS) do
      direct.runs[k] = { n = run.n, above = run.above, fresh = run_lines(form, run.n, computed), onto = run_lines(form, run.n, computed, "lane[l]") }
    end
  end
  for k, run in ipairs(RUNS) do
    local n, steps = run.n, {}
    for step = 1, n - 1 do steps[step] = step end
    local function in_lane(i) return form.lift .. (i == 0 and "x[l]" or string.format("x[l + 16 * %d]", i)) end
    local function in_column(i) return string.format("x%d[i]", i) end
    rows[k] = { n = n, above = run.above, fresh = run_lines(form, n, in_lane), onto = run_lines(form, n, in_lane, "lane[l]") }
    if record.is_repeatable and (n == 16 or n == 4 or n == 1) then
      folds[#folds + 1] = { n = n, before = 16 * (n - 1), onto = run_lines(form, n, in_lane, "lane[l]") }
    end
    if n < 16 and n ~= (record.is_repeatable and 2) then
      columns[#columns + 1] = { n = n, steps = steps, is_clamped = record.is_repeatable and n > 1, least = n == 8 and 5 or 2, fresh = run_lines(form, n, in_column),
                                onto = n < 16 and run_lines(form, n, in_column, "out[i]") }
    end
  end
  local lanes = 64 // (t.bits // 8) -- of a vector of 64 bytes
  local function in_wide(i) return form.lift .. (i == 0 and "x[l]" or string.format("x[l + %d * %d]", lanes, i)) end
  local function in_count(i) return form.lift .. (i == 0 and "x[l]" or string.format("x[l + 64 * %d]", i)) end
  local has_wide = record.is_repeatable and (t.bits < 32 or t.bits == 32 and t.kind ~= "float") and not is_widened
  local wide = has_wide and { lanes = lanes, least = t.bits == 32 and 1024 or 16 * lanes, onto = run_lines(form, 16, in_wide, "all[l]") }
  return { wide = wide or false, element = t.c, stored = from.c, from = is_widened and t.c or from.c, widen = is_widened and c.widen(types, from.name) or false,
           adds = t.kind == "integer" and is_sum and "u" .. t.bits or false, sides = { 0, 1, 2, 3 },
           fused = false, counts = form.part and run_lines(form, 16, in_count) or false,
           direct = direct or false, top = top or false, rows = { 1, 2, 3 },
           spreads = top and spreads_of(t.bits // 8) or {}, strip = top and is_widened and c.widen_strip(types, from.name, "x", "to") or false,
           operator = operator_of(types, record.combine, record.K) or false, depths = DEPTHS, narrow = narrow or false,
           combine = lines, result = result, lift = form.lift, runs = rows, columns = columns, folds = folds }
end

-- The rows of 16 elements of a chunk: k, and the offsets of the lines of the cache that begin in each.
local function ladder_of(bytes)
  local list = {}
  for k = 0, 15 do
    local lines = {}
    for at = k * 16 * bytes, (k + 1) * 16 * bytes - 1 do
      if at % 64 == 0 then lines[#lines + 1] = at end
    end
    list[k + 1] = { k = k, lines = lines }
  end
  return list
end

-- The even and the odd places of two vectors, for each size of vectors.
local function evens_of(size)
  local list = {}
  for _, bytes in ipairs { 64, 32, 16 } do
    local even, odd = {}, {}
    for l = 1, bytes // size do even[l], odd[l] = 2 * l - 2, 2 * l - 1 end
    local condition = (#list == 0 and "if" or "elif") .. " Q_STRIP_BYTES == " .. bytes
    list[#list + 1] = { condition = condition, even = table.concat(even, ", "), odd = table.concat(odd, ", ") }
  end
  return list
end

-- The template's values for a reduction with such an operator: lanes in registers.
local function lanes_values(c, types, record)
  local t, from = types.by_name[record.K], types.by_name[record.dtypes[1]]
  local is_widened = from ~= t
  return { element = t.c, stored = from.c, size = t.bits // 8, mask = "i" .. t.bits, operator = operator_of(types, record.combine, record.K),
           spreads = spreads_of(t.bits // 8), turns = turns_of(t.bits // 8), rows = { 0, 1, 2, 3 },
           strip = is_widened and c.widen_strip(types, from.name, "x + p", "to + p") or false,
           widen = is_widened and c.widen(types, from.name) or false, ladder = ladder_of(from.bits // 8),
           evens = evens_of(t.bits // 8) }
end

-- The template's values for a state of several parts.
local function parts_values(c, types, record)
  local arguments, parts = {}, {}
  for _, name in ipairs { "a", "b" } do
    for k in ipairs(record.combine.parts) do arguments[#arguments + 1] = name .. ".part" .. k - 1 end
  end
  table.move({ "a", "b", "both" }, 1, 3, #arguments + 1, arguments) -- no names of values
  local lines, _, results = c.body(types, record.combine, arguments)
  M.enter(lines, results)
  for k, part in ipairs(record.combine.parts) do
    parts[k] = { index = k - 1, out = #record.combine.parts + k - 1, name = "part" .. k - 1, element = types.by_name[part.type].c,
                 result = results[k] }
  end
  local t, extreme, run = types.by_name[record.combine.parts[1].type], record.finds and record.finds:match "m%a%a$", {}
  local lanes, is_float, skips_nan = 64 // (t.bits // 8), t.kind == "float", record.finds and record.finds:find "^nan" ~= nil
  local above = ({ max = ">", min = "<" })[extreme] or ""
  local function put(...) run[#run + 1] = string.format(...) end
  for k = 0, 15 do
    put("const %s v%d = at_l[%d];", t.c, k, k * lanes)
    put("top = v%d %s top ? v%d : top;", k, above, k)
    if k % 2 == 1 and is_float and not skips_nan then put("odd[l] |= Q_MASK(m%d, __builtin_isunordered(v%d, v%d));", t.bits, k - 1, k) end
  end
  local first = is_float and skips_nan and (extreme == "max" and "-" or "") .. "(" .. t.c .. ")__builtin_inf()" or "x[0]"
  local halves = {}
  for k = 1, 6 do halves[k] = lanes >> k > 0 and lanes >> k or nil end
  local is_new = above == "" and "" or string.format("Q_MASK(m%d, v %s b)", t.bits, above)
  if is_float then -- not `v > b`: a NaN is greater than numbers, or numbers are than NaN
    is_new = string.format("Q_MASK(m%d, !(v %s b)) & Q_MASK(m%d, %s)", t.bits, above == ">" and "<=" or ">=", t.bits, skips_nan and "v == v" or "b == b")
  end
  return { combine = lines, parts = parts, element = t.c, bits = t.bits, is_new = is_new, halves = halves, lanes = lanes, above = above, first = first, run = run,
           odd = is_float and not skips_nan and "m" .. t.bits or false }
end

-- The kernels that reduce, for each reduction and accumulator that the ops' programs need.
function M.packs(kit, add, _, ops, records_of)
  local is_made, plain = {}, {}
  for _, op in ipairs(ops) do
    for K, program in pairs(records_of[op.name].programs or {}) do
      for _, reduce in ipairs(program.reduces) do
        local key = reduce.op.name .. " " .. reduce.type
        is_made[key], plain[key] = reduce, plain[key] or {}
        if reduce.from.input then plain[key][K] = true end -- an input's elements as they are
      end
    end
  end
  for _, key in ipairs(kit.sorted_keys(is_made)) do
    local op, A = is_made[key].op, is_made[key].type
    local combine = kit.combine(op, A)
    local function name(part, dtypes, classes) return kit.name_of("pack_" .. op.c_name .. "_" .. part, dtypes, "2", classes) end
    local fields = { reducer = key, file = "reduce_" .. op.c_name, op_name = op.name, empty = op.reducer.empty, empty_result = M.empty_result(kit.types, op, A),
                     is_free = op.reducer.is_free, combine = combine, K = A, rank = "2", values = M.reducer_values, finds = op.reducer.finds,
                     absorbs = op.reducer.absorbs, is_repeatable = op.reducer.is_repeatable,
                     fuses = M.fused(kit.types, op, A, combine) ~= nil }
    local inner = op.reducer.is_repeatable and "reduce_free" or operator_of(kit.types, combine, A) and "reduce_lanes" or "reduce_inner"
    fields.joins, fields.is_integer = inner == "reduce_lanes", kit.types.by_name[A].kind == "integer"
    local function put(part, dtypes, classes, template, says)
      local record = { role = "reduce", part = part, dtypes = dtypes, classes = classes, template = template, says = says }
      for field, value in pairs(fields) do record[field] = value end
      if template == "reduce_lanes" then record.values = lanes_values end
      add(name(part, dtypes, classes), record)
    end
    local both = { A, A, A }
    if combine.parts then
      local n, dtypes = #combine.parts, {}
      for k, part in ipairs(combine.parts) do dtypes[k], dtypes[n + k], dtypes[2 * n + k] = part.type, part.type, part.type end
      both, fields.values = dtypes, parts_values
      put("inner", table.move(dtypes, 1, 2 * n, 1, {}), ("c"):rep(2 * n), "reduce_parts", op.name .. " along contiguous rows")
    else
      put("inner", { A, A }, "cc", inner, op.name .. " along contiguous rows")
      put("columns", { A, A }, "cc", "reduce_columns", op.name .. " of rows, column by column")
      for _, t in ipairs(kit.types.list) do
        if plain[key][t.compute] and t.kind == "float" and kit.wanted[t.name] then plain[key][t.name] = true end
      end
      for _, K in ipairs(kit.sorted_keys(plain[key])) do
        if is_narrow(kit.types, combine, K, A, op.reducer.is_free) then
          put("narrow", { K, A }, "cc", inner, op.name .. " along contiguous rows")
          if fields.joins then put("narrow_columns", { K, A }, "cc", "reduce_columns", op.name .. " of rows, column by column") end
        end
      end
    end
    add(name("both", both, ("c"):rep(#both)),
        { role = "reduce", part = "both", reducer = key, file = fields.file, op_name = op.name, dtypes = both, K = A, rank = "2", classes = ("c"):rep(#both),
          template = "elementwise", dag = combine, combine = combine, empty = op.reducer.empty, empty_result = fields.empty_result,
          says = op.name .. " of two rows, element by element" })
  end
end

return M
