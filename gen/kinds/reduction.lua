-- SPDX-License-Identifier: Apache-2.0
--
-- The kind reduction (declared by `reduction`): combines elements along axes, in bodies of rows and as an op, NAME(x). Bodies: `lift` makes
-- the state of an element x at `index` (left out: x, in the accumulator's dtype), `combine` one state of two, a and b, `finish` the
-- result of the state a of `count` elements (left out: a). The states of a row are combined by the tree of
-- docs/internals/reductions.md. With `state = "T v, i64 i"` a state has several parts: lift and combine assign v and i, combine and
-- finish read a.v, a.i, b.v, b.i; T is the accumulator's dtype.
-- identity: combine(a, identity) is a. With `empty = false` it is what the reduction gives of no elements inside rows with `empty = "identity"`.
-- initial, last: the op that a call with the parameter `initial`, with select_last_index = 1, goes to.
-- `finds = "max"` or "min": the state is an element and its index, and the result the first NaN, or else the first of the largest
-- (smallest); the kernel searches for it. "nanmax", "nanmin": the first of the largest (smallest) of what is not NaN. `absorbs = 1`: states
-- are bytes, and a byte of this value combined with any other is itself, so what follows it is not read. `repeats = true`: a state
-- combined with itself is itself, and the order is free. `picks = true`: where all elements but one are 0, it is that element.

local row = require "gen.kinds.row"
local source = require "gen.base.source"

local M = {}

for key, value in pairs(row) do M[key] = value end

M.name, M.declarator = "reduction", "reduction"
M.has_body = true -- a call of itself
M.calls_itself = true
M.combine_claims = { commutative = true }
M.schema = { initial = "string", last = "string", accumulate = "string", result = "string", combine = "string table",
             lift = "string table", finish = "string table", identity = "number boolean", empty = "number boolean", order = "string",
             state = "string", finds = "string", bound = "string table", absorbs = "number", repeats = "boolean",
             picks = "boolean" }

M.MAX_PARTS = 4 -- QN_ROW_MAX_PARTS of runtime/core/row/row_program.h

local EXCLUDED = { "body", "outputs", "params", "counts", "fraction" }

local FINDS = { max = true, min = true, nanmax = true, nanmin = true }

-- "T v, i64 i" -> { { name, type }, ... }, or nil and what is wrong.
function M.parse_state(text, types)
  local parts, seen = {}, {}
  for item in (text .. ","):gmatch "([^,]*)," do
    local dtype, name = item:match "^%s*(%w+)%s+([a-z][a-z0-9_]*)%s*$"
    local t = dtype and types.by_name[dtype]
    if not name or not (dtype == "T" or t and (t.kind == "float" or t.kind == "integer") and t.compute == dtype) then
      return nil, string.format("state: '%s', expected \"T name\" or a dtype that is computed in itself and a name", source.shown(item))
    end
    if seen[name] then return nil, string.format("state: '%s' occurs twice", name) end
    seen[name] = true
    parts[#parts + 1] = { name = name, type = dtype }
  end
  if #parts > M.MAX_PARTS then return nil, string.format("state: at most %d parts", M.MAX_PARTS) end
  return parts
end

-- A message about an error in an op's fields, or nil.
function M.failure(fields, is_builtin, types)
  if fields.combine == nil then return "combine is missing" end
  for _, field in ipairs(EXCLUDED) do
    if fields[field] ~= nil then return field .. " is not for a reduction; write a row that calls it" end
  end
  if fields.order ~= nil and fields.order ~= "free" then return "order: expected \"free\", or nothing: the tree" end
  if fields.state then
    local parts, why = M.parse_state(fields.state, types)
    if not parts then return why end
    for _, field in ipairs { "lift", "finish" } do
      if fields[field] == nil then return field .. " is missing, which a reduction with a state needs" end
    end
    if fields.empty then return "empty: a reduction with a state has no result of no elements: expected false" end
  end
  if fields.finds and not (is_builtin and fields.state and FINDS[fields.finds]) then
    return "finds: only the library's own reductions may have a kernel that searches"
  end
  for _, field in ipairs { "initial", "last" } do
    if fields[field] and not is_builtin then return field .. ": only the library's own reductions may have this parameter" end
  end
  if fields.absorbs and not (is_builtin and fields.accumulate == "u8") then
    return "absorbs: only the library's own reductions may end early"
  end
  if fields.repeats and not (is_builtin and fields.order == "free") then
    return "repeats: only the library's own reductions may combine an element twice"
  end
  if fields.picks and not (is_builtin and fields.identity == 0) then
    return "picks: only the library's own reductions may give one element"
  end
  if fields.empty == true then return "empty: expected a number, or false: an error" end
  return row.failure(fields, is_builtin, types)
end

function M.check(op)
  if #op.inputs ~= 1 or op.inputs[1].type or op.inputs[1].is_row then return "inputs: a reduction has one, of the dtypes that it takes" end
end

-- bodies(field): the bodies of a field, by dtype or kind
function M.declare(op, fields, bodies, types)
  op.accumulate, op.result, op.is_reduced, op.bound = fields.accumulate, fields.result, true, fields.bound and bodies "bound"
  op.initial, op.last = fields.initial, fields.last
  op.reducer = { combine = bodies "combine", lift = fields.lift and bodies "lift", finish = fields.finish and bodies "finish",
                 is_free = fields.order == "free", empty = fields.empty, identity = fields.identity, finds = fields.finds,
                 absorbs = fields.absorbs, picks = fields.picks, is_repeatable = fields.repeats, parts = fields.state and M.parse_state(fields.state, types) }
end

-- The body of the op.
function M.body(op) return op.name .. "(" .. op.inputs[1].name .. ")" end

return M
