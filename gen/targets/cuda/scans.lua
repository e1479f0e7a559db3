-- SPDX-License-Identifier: Apache-2.0
--
-- CUDA kernels of ops that scan (the kind scan): their records, their arguments, and the values of templates/cuda/scan.cu.in. The
-- counterpart of rows.lua for scans.

local operands_of = require "gen.targets.operands"
local rows = require "gen.targets.cuda.rows"

local M = {}

M.TEMPLATE, M.HEADER = "scan", rows.HEADER
local FIXED_FIELDS = 19 -- ORDER QN_SCAN_FIELDS of runtime/core/simt/scans/scans.h

M.max_rank = rows.max_rank

-- The struct by which a record's states are combined. Of an op that finds a state is a value and its place.
local function state_name(record)
  local reduce = record.program.reduces[1]
  return record.sought and string.format("q_found_%s_%s", reduce.op.c_name, reduce.type) or rows.reducer_name(reduce)
end

-- As rows.reducers
function M.reducers(types, record, dag)
  local list, reduce = rows.reducers(types, record, dag), record.program.reduces[1]
  if not record.sought then return list end
  local t, above = types.by_name[reduce.type], record.sought == "max" and ">" or "<"
  local is_found = string.format("b.v %s a.v", above)
  if t.kind == "float" then is_found = is_found .. " || (b.v != b.v && a.v == a.v)" end -- the first of NaNs
  list[#list + 1] = { name = state_name(record), text = table.concat({
    "struct " .. state_name(record) .. " {", "  struct T { " .. t.c .. " v; i64 i; };", "  static Q_FN T of(T a, T b) {",
    "    const bool is_found = " .. is_found .. ";",
    "    return T{" .. list[1].name .. "::of(a.v, b.v), is_found ? b.i : a.i};", "  }", "};\n" }, "\n") }
  return list
end

-- The fields of a record, beside those of variants.lua. A: the accumulator's dtype; combine: its DAG; make(fields) -> record.
-- fields.sought: "max", "min": places are a second output
function M.record(fields, A, combine, make)
  fields.classes, fields.rank = ("s"):rep(#fields.dtypes), "n"
  local record = make(fields)
  record.template, record.by = M.TEMPLATE, M
  record.program = { stages = {}, row_types = {}, reduces = { { op = record.op, type = A } } }
  record.dag = { inputs = {}, params = {}, outputs = {}, files = combine.files, combine_of = function() return combine end }
  return record
end

function M.arguments_name(shape) return string.format("q_scan_%d_%d", shape.operands, shape.rank) end

-- Fields of 8 bytes, with `more` of them beside those that all kernels have that are launched so.
function M.n_fields(shape, more) return shape.operands * (1 + shape.rank) + FIXED_FIELDS + more + 3 * shape.rank end
function M.n_arguments(shape) return M.n_fields(shape, shape.operands > 2 and 2 or 0) end

-- The struct of arguments. more: { names, comment } of further fields, or nil
function M.struct_text(name, shape, more)
  local n, r = shape.operands, shape.rank
  return table.concat({
    string.format("struct %s {", name),
    string.format("  u64 ptr[%d]; /* addresses of the first element, and of its result */", n),
    "  u64 items, rows; /* items: chunks that a block has at a time; of step 2, 16 spans, of step 3, 256 rows */",
    "  u64 flags; /* 1: the output is streamed; 2: turned; 8: the result of no elements is stored */",
    "  u64 rank, n_axes; /* extents in use; 1, or 0 if the axis has one element */",
    "  u64 along, chunks, spans; /* elements of the axis; its chunks of 256, its spans of 65536 */",
    "  u64 spread_bits, step; /* chunks of a row at a time; the step that is run, 0: all */",
    "  u64 row_pieces; /* items of a row */",
    "  u64 piece_divisor[2], span_divisor[2]; /* of row_pieces, spans */",
    "  u64 initial, initial_offset; /* the result of no elements: its bits; where it is, from the row's first result */",
    "  u64 totals, ends; /* in the workspace: of chunks, of spans; then what comes before each */",
    string.format("%s  i64 n[%d]; /* extents: the axis, then what is kept */", more and string.format("  u64 %s; /* %s */\n", more[1], more[2]) or "", r),
    string.format("  i64 stride[%d][%d]; /* in bytes */", n, r),
    string.format("  u64 divisor[%d][2]; /* of n[0], n[1], ... */", r),
    "};" }, "\n") .. "\n"
end

local PLACES = { "turn, initial_place", "the last place, which places are subtracted from, or -1; where that of no elements is" }

function M.arguments_text(shape) return M.struct_text(M.arguments_name(shape), shape, shape.operands > 2 and PLACES or nil) end

-- kit: see rows.lua
function M.values(kit, types, entry)
  local record = entry.record
  local A = record.program.reduces[1].type
  local finds = record.sought ~= nil
  local list = operands_of.of_record(types, record, { "x", "out", finds and "places" or nil }, 1, {}, nil)
  local node = { type = A }
  local by, held = state_name(record), types.by_name[A].c
  return { input = list[1].element, output = list[2].element, state = finds and by .. "::T" or held, by = by, finds = finds, held = held,
           input_line = kit.input_text(types, list[1], node, "got", nil, false), value = kit.output_text(types, list[2], node, "v1"),
           resident = types.by_name[A].size < 8 and not finds and 2 or 1, -- 2 blocks of a multiprocessor: at most 128 registers a thread
           zero = finds and by .. "::T{}" or "0" }
end

return M
