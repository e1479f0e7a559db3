-- SPDX-License-Identifier: Apache-2.0
--
-- The kind compact (`finds`): the output has as many elements as a condition holds for. items: the second input's items there,
-- every bit kept; places: their indices. Nothing is computed: there is no body. It runs on the CPU.

local copy = require "gen.kinds.copy"
local source = require "gen.base.source"

local M = {}

M.name, M.mark, M.schema = "compact", "finds", { finds = "string" }
M.class = "dynamic"
M.is_bits = true
M.has_body, M.may_alias = false, false
M.only_cpu = true
M.has_own_nest = true
M.converts_back = true -- the first input, to bool
M.needs_runtime = "its kernels search blocks, which the runtime puts together"

local N_INPUTS = { items = 2, places = 1 }
local EXCLUDED = { "body", "result", "outputs", "moves", "casts", "params", "ulp", "domain", "examples" }

-- A message about an error in an op's fields, or nil.
function M.failure(fields, is_builtin)
  if not is_builtin then return "finds: only the library's own ops may give outputs with shapes that depend on values" end
  if not N_INPUTS[fields.finds] then return string.format("finds: '%s', expected items or places", source.shown(fields.finds)) end
  for _, field in ipairs(EXCLUDED) do
    if fields[field] ~= nil then return field .. " is not for an op that finds" end
  end
end

function M.declare(op, fields) op.finds = fields.finds end

-- A message about an error in the op, or nil.
function M.check(op)
  local n = N_INPUTS[op.finds]
  return #op.inputs ~= n and string.format("inputs: %d given, expected %d for finds = \"%s\"", #op.inputs, n, op.finds) or nil
end

-- The dtype of the output, where it has one of its own.
function M.result(fields) return fields.finds == "places" and "i64" or nil end

-- Why it is no part of an expression.
function M.refusal() return "its output's shape depends on values; call it by itself" end

function M.kernel_dtypes(types, op, wanted)
  return op.finds == "places" and { bool = true } or copy.kernel_dtypes(types, op, wanted)
end

M.promotion = copy.promotion

function M.add_dtypes(_, _, wanted) wanted.bool = true end

M.templates = { "find", "count", "coordinate" }

-- The template values of find.c.in and coordinate.c.in for a record.
local function find_values(_, types, record)
  return { what = record.op.finds, element = types.by_name[record.dtypes[#record.dtypes - 1]].c,
           size = types.by_name[record.K].size }
end

local function coordinate_values(c, types, record)
  local operands, strides = c.operands(types, record, { "index", "outer", "out" }, 1)
  return { operands = operands, strides = strides, coordinate = c.lvalue(operands[3]) }
end

-- Its kernels: over contiguous blocks, a condition per element, then the items found and their number.
function M.blocks(kit, types, op, wanted)
  local records = {}
  for k, K in ipairs(kit.kernel_dtypes(types, op, wanted)) do
    local dtypes = op.finds == "places" and { "bool", "i32", "i64" } or { "bool", K, K, "i64" }
    records[k] = kit.record(op, { K = K, D = K, dtypes = dtypes, classes = ("c"):rep(#dtypes - 1) .. "b", weight = 1,
                                  template = "find", values = find_values })
  end
  return records, true
end

-- What its ops share: kernels that count conditions and make coordinates of indices.
function M.packs(kit, add)
  add(kit.name_of("pack_count", { "bool", "i64" }, "1", "cb"),
      { role = "count", dtypes = { "bool", "i64" }, rank = "1", classes = "cb", template = "count",
        says = "how many conditions hold", values = function() return {} end })
  for _, classes in ipairs { "ccc", "ccs" } do
    add(kit.name_of("pack_coordinate", { "i32", "i32", "i64" }, "1", classes),
        { role = "coordinate", dtypes = { "i32", "i32", "i64" }, rank = "1", classes = classes, template = "coordinate",
          says = "indices in a block to coordinates along one dimension, and to indices along the next outer one",
          values = coordinate_values })
  end
end

-- Their table for the runtime.
M.table = { header = "core/kinds/kind_compact.h" }
function M.table.text(packs_of)
  local count, coordinates = packs_of "count"[1], packs_of "coordinate"
  local function cell(pack) return pack and "&" .. pack.name or "NULL" end
  return string.format("const qn_compact_table qn_compact_packs = {%s, {%s, %s}};\n", cell(count), cell(coordinates[1]),
                       cell(coordinates[2]))
end

return M
