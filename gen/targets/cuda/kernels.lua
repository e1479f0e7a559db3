-- SPDX-License-Identifier: Apache-2.0
--
-- Records of CUDA kernels -> files of text: fills the templates, as kernels.lua does for C. A file includes nothing: it begins
-- with the text of the headers.

local adjoints_cuda = require "gen.targets.cuda.adjoints"
local dag_of = require "gen.graph.dag.dag"
local kinds = require "gen.kinds.kinds"
local locals_of = require "gen.targets.locals"
local licence = require "gen.base.licence"
local template = require "gen.base.template"
local c = require "gen.targets.c.text"
local dtypes_of = require "gen.targets.cuda.dtypes"
local target_cuda = require "gen.targets.cuda.emit"
local variants = require "gen.targets.variants"
local variants_cuda = require "gen.targets.cuda.variants"
local operands_of = require "gen.targets.operands"
local signs = require "gen.targets.signs"
local rows_cuda = require "gen.targets.cuda.rows"
local scans_cuda = require "gen.targets.cuda.scans"
local short_rows = require "gen.targets.cuda.short_rows"
local names_of = require "gen.targets.c.names"
local kernels = require "gen.targets.c.kernels"

local M = {}

-- The headers at the head of a file, in this order.
M.HEADERS = { "kernel_cuda.h", "kernel_items.h" }
M.FURTHER_HEADERS = { rows_cuda.HEADER, "kernel_scans.h" } -- where a record or its's `by` has them; it has the first where it says nothing
M.TEMPLATES = { "elementwise", "transpose", rows_cuda.TEMPLATE, short_rows.TEMPLATE, scans_cuda.TEMPLATE, adjoints_cuda.TEMPLATE }
M.VALUE_FLAG = 8 -- the bit of `flags` that says that input 0 is a by-value scalar

local cast_text = operands_of.cast_text

-- Parsed templates, and the texts of the headers. read: path under the root -> text; types: those of the build, or nil: without
-- the dtypes that have no text in the headers
function M.sources(read, types)
  local templates, headers = {}, {}
  for _, name in ipairs(M.TEMPLATES) do
    local file = "templates/cuda/" .. name .. ".cu.in"
    templates[name] = template.parse(file, read(file), read)
  end
  for _, name in ipairs(M.HEADERS) do headers[name] = licence.without(read("templates/cuda/" .. name)) end
  for _, name in ipairs(M.FURTHER_HEADERS) do headers[name] = licence.without(read("templates/cuda/" .. name)) end
  headers.dtypes = types and dtypes_of.text(types, read) or ""
  return templates, headers
end

-- The elements of a tile along dimension 1 (32 along dimension 0): as many as fit shared memory, of the inputs that are tiled
-- together. ORDER tile_columns of runtime/core/simt/launch.c
function M.tile_columns(types, record)
  local bytes = 0
  for k, dtype in ipairs(record.dtypes) do
    if record.classes:sub(k, k) == "t" then bytes = bytes + types.by_name[dtype].size end
  end
  return bytes <= 16 and 64 or 32
end

-- The elements of an item and the items per thread of a record. runtime/core/simt/launch.c launches the kernel accordingly.
function M.items(types, record, n_in)
  if record.template == "transpose" then return 32 * M.tile_columns(types, record), 1 end
  if record.program then return 1, 1 end
  local V, widest = 1, 1
  for _, dtype in ipairs(record.dtypes) do widest = math.max(widest, types.by_name[dtype].size) end
  if not record.classes:find "s" then V = 16 // widest end
  if record.weight > variants.HEAVY_NODES then return V, 1 end
  return V, n_in <= 2 and 4 or n_in <= 4 and 2 or 1
end

-- The struct of a kernel's arguments, by how many operands, extents and parameters it has.
local function arguments_name(shape)
  if shape.by then return shape.by.arguments_name(shape) end
  return string.format("q_args_%d_%d_%d", shape.operands, shape.rank, shape.params)
end

function M.arguments_shape(record, n_params)
  local n = #record.dtypes
  local most = (record.by or variants_cuda).max_rank(n)
  return { operands = n, rank = tonumber(record.rank) or most, params = n_params, by = record.by }
end

-- Fields of 8 bytes of that struct.
function M.n_arguments(record, n_params)
  local shape = M.arguments_shape(record, n_params)
  if shape.by then return shape.by.n_arguments(shape) end
  return shape.operands * (1 + shape.rank) + 4 + 3 * shape.rank + shape.params
end

local function arguments_text(shape)
  if shape.by then return shape.by.arguments_text(shape) end
  local n, r = shape.operands, shape.rank
  local lines = {
    string.format("struct %s {", arguments_name(shape)),
    string.format("  u64 ptr[%d]; /* addresses of the operands' first elements, inputs before outputs */", n),
    "  u64 items, row_items; /* in all, in a row */",
    "  u64 flags; /* 1: outputs are streamed; 256 << k: input k is a by-value scalar, its bits are in ptr[k] */",
    "  u64 rank; /* extents in use */",
    string.format("  i64 n[%d]; /* extents, inner first */", r),
    string.format("  i64 stride[%d][%d]; /* in bytes */", n, r),
    string.format("  u64 divisor[%d][2]; /* of row_items, n[1], n[2]...: see q_fast_divide */", r),
  }
  if shape.params > 0 then lines[#lines + 1] = string.format("  u64 param[%d]; /* each in its first bytes */", shape.params) end
  lines[#lines + 1] = "};"
  return table.concat(lines, "\n") .. "\n"
end

-- An element of a dtype as its bits, and bits as such an element.
local function bits_text(types, dtype, value)
  local t = types.by_name[dtype]
  if t.kind == "float" and t.compute == dtype then return string.format("q_raw_%s(%s)", dtype, value) end
  return string.format("(u%d)%s", t.bits, value)
end
local function element_text(types, dtype, value)
  local t = types.by_name[dtype]
  if t.kind == "float" and t.compute == dtype then return string.format("q_from_%s(%s)", dtype, value) end
  return string.format("(%s)%s", t.c, value)
end

-- A stored float as f32; a NaN becomes some NaN. Dtypes that are not here have the plain cast. keeps_sign: of a NaN, too.
local WIDENED = { f16 = { text = "qc_f32_of_f16_s(%s)" }, bf16 = { text = "q_from_f32((u32)%s << 16)", keeps_sign = true } }

-- The same, and a NaN keeps its sign.
local function widened_with_sign(types, dtype)
  local t, widened = types.by_name[dtype], WIDENED[dtype]
  return widened and widened.keeps_sign and widened.text or t.kind == "float" and t.compute ~= dtype and "q_" .. dtype .. "_f32(%s)"
end

-- const TYPE in_x = ...; for an input; TYPE is its node's. moved: the dtype of bits that are copied, or nil; looked_at: "bits", "sign" or
-- nil, as of targets/cuda/emit.lua
local function input_text(types, operand, node, value, moved, looked_at)
  if node.type == "bool" then return string.format("const bool %s = %s != 0;", operand.name, value) end
  if node.is_stored then return string.format("const %s %s = (%s)%s;", node.type, operand.name, node.type, value) end
  -- Results computed from a NaN are made canonical when they are stored.
  local widened = not moved and node.type == "f32"
  if widened and looked_at == "sign" then widened = widened_with_sign(types, operand.dtype)
  elseif widened then widened = not looked_at and WIDENED[operand.dtype] and WIDENED[operand.dtype].text end
  local text = operand.dtype == node.type and value or widened and widened:format(value)
    or cast_text(types, operand.dtype, moved or node.type, value)
  if moved and text ~= value then text = bits_text(types, moved, text) end
  return string.format("const %s %s = %s;", node.type, operand.name, text)
end

-- const TYPE p_x = ...; for the k-th parameter
local function param_text(node, k)
  local bits = string.format("args.param[%d]", k - 1)
  if node.type == "bool" then return string.format("const bool p_%s = (u8)%s != 0;", node.name, bits) end
  local value = node.type == "f32" and "q_from_f32((u32)" .. bits .. ")" or node.type == "f64" and "q_from_f64(" .. bits .. ")"
    or string.format("(%s)%s", node.type, bits)
  return string.format("const %s p_%s = %s;", node.type, node.name, value)
end

-- The stored value of a result.
local function output_text(types, operand, node, value, moved)
  if node.type == "bool" then return string.format("(bool_s)(%s)", value) end
  if node.is_stored then return string.format("(%s)%s", types.by_name[operand.dtype].c, value) end
  if moved and types.by_name[operand.dtype].kind == "bits" then return value end
  if moved then return cast_text(types, moved, operand.dtype, element_text(types, moved, value)) end
  return cast_text(types, node.type, operand.dtype, value)
end

-- The address of an operand's element at index i along dimension 0 and, if has_j, index j along dimension 1.
local function address_text(operand, has_j)
  local text = operand.row
  if operand.class == "c" then text = string.format("%s + q_offset(i, %d)", text, operand.size)
  elseif operand.class ~= "b" then text = string.format("%s + q_offset(i, args.stride[%d][0])", text, operand.index) end
  if not has_j then return text end
  if operand.class == "t" then return string.format("%s + q_offset(j, %d)", text, operand.size) end
  return string.format("%s + q_offset(j, args.stride[%d][1])", text, operand.index)
end

-- An index op's input is not loaded: its row "address" plus offset is the index itself.
local function set_index(record, o, V)
  o.declaration, o.load = "u64 from_index[${U}];", string.format("from_index[nth] = %s;", o.row)
  o.value = string.format("(i64)(from_index[nth] + q_offset(start[nth]%s, args.stride[%d][0]))", V > 1 and " + element" or "",
                          o.index)
  if record.K ~= "i64" then o.value = string.format("q_cast_i64_%s(%s)", record.K, o.value) end
end

-- Adds the fields that only the CUDA templates use to each operand. columns: of a tile
local function with_loads(record, list, V, columns)
  local is_tiled = record.template == "transpose"
  for _, operand in ipairs(list) do
    local o, T = operand, operand.element
    o.is_index = o.is_input and record.op ~= nil and kinds.of(record.op).has_indices
    o.vectors, o.is_hoisted = "got_" .. o.short, o.is_input and o.class == "b" and record.rank == "1" and not o.is_index
    o.address = address_text(o, is_tiled)
    local load = string.format("qc_load1<%s>(%s)", T, o.address)
    if o.is_input and (o.class == "b" or o.class == "s") then
      load = string.format("q_load_element<%s>(%s, args.ptr[%d], args.flags >> %d)", T, o.address, o.index,
                           M.VALUE_FLAG + o.index)
    end
    if not o.is_input then
      o.name, o.vector = "put_" .. o.short, string.format("qc_vec<%s, %d>", T, V)
      o.declaration = string.format("u64 to_%s[${U}];", o.short)
      if V > 1 and not is_tiled then o.address = o.row end
    elseif o.is_index then
      set_index(record, o, V)
    elseif is_tiled then
      o.load, o.value = load, o.vectors .. "[nth]"
      o.pitch = columns and columns + math.max(1, 4 // o.size)
      if o.class == "t" then o.value = string.format("tile_%s[threadIdx.x][threadIdx.y + nth * 8]", o.short) end
    elseif V > 1 and o.class == "c" then
      o.declaration = string.format("qc_vec<%s, %d> %s[${U}];", T, V, o.vectors)
      o.load = string.format("q_load_item(%s[nth], %s, start[nth], n0);", o.vectors, o.row)
      o.value = o.vectors .. "[nth].at[element]"
    else
      o.declaration = string.format("%s %s[${U}];", T, o.vectors)
      o.load, o.value = string.format("%s[nth] = item < items ? %s : (%s)0;", o.vectors, load, T), o.vectors .. "[nth]"
    end
    if o.is_hoisted then o.value = load end
  end
end

-- The number of blocks that must fit on a multiprocessor. Two if tables are looked up, which leaves 128 registers:
-- the compiler begins with the lookups of all elements of an item, and would take up to 255 for them.
local function resident_blocks(order)
  for _, node in ipairs(order) do
    if node.table then return 2 end
  end
  return 1
end

-- The parts of this file that rows.lua needs.
local for_rows = { input_text = input_text, output_text = output_text, param_text = param_text, VALUE_FLAG = M.VALUE_FLAG,
                   param_name = function(node) return "p_" .. node.name end }

-- The template's values for a record; entry: { record, dag or nil: a conversion }.
local function values_of(types, entry, comment, parsed, tables)
  local record, dag = entry.record, entry.dag
  dag = dag and not record.by and signs.dag(types, record, dag) or dag
  if record.by then
    local values = record.by.values(for_rows, types, entry, parsed, tables)
    values.comment, values.index, values.resident = comment, record.is_wide and "u64" or "u32",
      values.resident or resident_blocks(dag_of.order(dag.outputs))
    values.arguments = arguments_name(M.arguments_shape(record, #dag.params))
    return values
  end
  local names = dag and operands_of.names(dag) or { "x", "out" }
  local n_in = dag and #dag.inputs or 1
  local used = dag and operands_of.used(dag)
  local list = operands_of.of_record(types, record, names, n_in, dag and dag.inputs, used)
  local V, U = M.items(types, record, n_in)
  local columns = record.template == "transpose" and M.tile_columns(types, record)
  with_loads(record, list, V, columns)
  local values = {
    comment = comment, rank = record.rank, index = record.is_wide and "u64" or "u32", V = V, U = U,
    arguments = arguments_name(M.arguments_shape(record, dag and #dag.params or 0)), phase_size = list[n_in + 1].size,
    columns = columns, each = columns and columns // 8, halves = columns and columns // 32,
    params = {}, operands = {}, inputs = {}, tiled = {}, others = {}, outputs = {}, hoisted = {}, body = {},
  }
  for k, operand in ipairs(list) do
    if operand.declaration then operand.declaration = operand.declaration:gsub("%${U}", tostring(U)) end
    if operand.is_used then
      table.insert(values.operands, operand)
      table.insert(k <= n_in and values.inputs or values.outputs, operand)
      if k <= n_in then table.insert(operand.class == "t" and values.tiled or values.others, operand) end
    end
  end
  if not dag then
    local text = string.format("const %s in_x = %s;", list[1].element, list[1].value)
    table.insert(list[1].is_hoisted and values.hoisted or values.body, text)
    list[2].value = cast_text(types, record.from, record.to, "in_x")
    values.resident = 1
    return values
  end
  local variable_of, order = {}, dag_of.order(dag.outputs)
  values.resident = resident_blocks(order)
  local bare = target_cuda.looked_at(order)
  for k, node in ipairs(dag.inputs) do
    variable_of[node] = list[k].name
    if used[node] then
      local text = input_text(types, list[k], node, list[k].value, record.moved, bare[node])
      table.insert(list[k].is_hoisted and values.hoisted or values.body, text)
    end
  end
  for k, node in ipairs(dag.params) do
    variable_of[node] = "p_" .. node.name
    if used[node] then table.insert(values.params, param_text(node, k)) end
  end
  local others = { "from_index" }
  for _, node in ipairs(dag.params) do others[#others + 1] = "p_" .. node.name end
  local locals = locals_of.new(parsed, list, others, dag.outputs)
  local lines, emitter = target_cuda.emit(types, order, variable_of, { locals = locals, tables = tables, roots = dag.outputs })
  table.move(lines, 1, #lines, #values.body + 1, values.body)
  for k, node in ipairs(dag.outputs) do
    list[n_in + k].value = output_text(types, list[n_in + k], node, emitter:argument(node), record.moved)
  end
  return values
end

-- One kernel's text. templates: name -> parsed; tables: list -> name; prefix: before its name, or nil: the library's
function M.kernel(types, entry, templates, tables, prefix)
  local record = entry.record
  local file = "templates/cuda/" .. record.template .. ".cu.in"
  local op = record.op
  local what = string.format("%s: %s (%s)", op.name, operands_of.formula(op), operands_of.sources(op, entry.dag, file))
  local comment = c.comment_lines(what)
  local V, U = M.items(types, record, entry.dag and #entry.dag.inputs or 1)
  if record.template == "transpose" then
    local columns = M.tile_columns(types, record)
    comment[#comment + 1] = string.format("Blocks of 32 x 8 threads; an item is a tile of 32 x %d elements.", columns)
  elseif not record.program then
    comment[#comment + 1] = string.format("An item is %s; %d item%s per thread.",
      V == 1 and "an element" or V .. " elements of a row", U, U == 1 and "" or "s")
  end
  local values = values_of(types, entry, comment, templates[record.template], tables)
  values.name = names_of.kernel(record.name, prefix or names_of.LIBRARY)
  return template.render(templates[record.template], template.chosen(templates[record.template], values))
end

-- The definitions that kernels refer to: structs of arguments, constant tables. Returns lines, and list -> table's name
local function definitions(types, entries)
  local lines, made, dags = {}, {}, {}
  for _, entry in ipairs(entries) do
    local shape = M.arguments_shape(entry.record, entry.dag and #entry.dag.params or 0)
    local name = arguments_name(shape)
    if not made[name] then lines[#lines + 1] = arguments_text(shape) end
    made[name] = true
    for _, reducer in ipairs(shape.by and shape.by.reducers(types, entry.record, entry.dag) or {}) do
      if not made[reducer.name] then lines[#lines + 1] = reducer.text end
      made[reducer.name] = true
    end
    dags[#dags + 1] = entry.dag
  end
  -- A line of the first cache is 128 bytes: a warp's lookups in 16 or 32 items of f32 stay within one.
  local table_lines, names = kernels.tables(dags, "alignas(128) static __device__ const %s %s[%d] = {")
  if #table_lines > 0 then lines[#lines + 1] = table.concat(table_lines, "\n") .. "\n" end
  return lines, names
end

-- A file of kernels. banner: lines; entries: list of { record, dag or nil }; headers: name -> text, or nil for the kernels alone;
-- prefix: as of M.kernel
function M.file(types, banner, entries, templates, headers, prefix)
  local out = { table.concat(banner, "\n") }
  if #banner == 0 then out = {} end
  local needed, is_needed = table.move(M.HEADERS, 1, #M.HEADERS, 1, {}), {}
  for _, entry in ipairs(entries) do
    for _, name in ipairs(entry.record.program and (entry.record.headers or entry.record.by.HEADERS or { rows_cuda.HEADER }) or {}) do is_needed[name] = true end
  end
  for _, name in ipairs(M.FURTHER_HEADERS) do needed[#needed + 1] = is_needed[name] and name or nil end
  -- A file has the headers' texts in place of their includes: these lines are taken out.
  for _, name in ipairs(headers and needed or {}) do
    out[#out + 1] = names_of.rename(headers[name]:gsub('\n#include "kernel_%l+%.h"', ""), prefix or names_of.LIBRARY)
  end
  if headers and headers.dtypes ~= "" then out[#out + 1] = names_of.rename(headers.dtypes, prefix or names_of.LIBRARY) end
  local lines, tables = definitions(types, entries)
  table.move(lines, 1, #lines, #out + 1, out)
  for _, entry in ipairs(entries) do out[#out + 1] = M.kernel(types, entry, templates, tables, prefix) end
  return table.concat(out, "\n")
end

return M
