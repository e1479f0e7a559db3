-- SPDX-License-Identifier: Apache-2.0
--
-- Kernels with the same machine code: their texts differ only in the name, or in the signedness of integers that no operation
-- depends on. The first of them is compiled; the rows of the others have its function, by their record's `code`. Compares
-- texts, makes none. Patterns serve here: only the finished texts show that two kernels are the same.

local dag_of = require "gen.graph.dag.dag"

local M = {}

-- Whether no operation of a DAG depends on the signedness of integers.
local function is_signless(types, dag)
  for _, node in ipairs(dag_of.order(dag.outputs)) do
    local is_integer = types.by_name[node.type].kind == "integer"
    for _, arg in ipairs(node.args) do is_integer = is_integer or types.by_name[arg.type].kind == "integer" end
    if is_integer and not dag_of.is_signless(node.op) then return false end
  end
  return true
end

-- A text with every integer type, or those of `bits`, made unsigned: i32_u, q_add_i32, const i32 t4.
local function unsigned(text, bits)
  return (text:gsub("([^%a%d])i(" .. (bits or "%d+") .. ")%f[%D]", "%1u%2"))
end

-- The key of a kernel's text, the same for kernels with the same machine code; nil: it shares none, because it uses constant
-- tables of its own file.
local function key_of(types, record, dag, text)
  if record.reducer and not dag then -- with functions of its own, which have its name in theirs
    local whole = text:gsub(record.name, ""):gsub("/%*.-%*/", "")
    local combine = record.combine
    local is_plain = combine and not combine.parts and record.dtypes[1] == record.K
    return is_plain and is_signless(types, combine) and unsigned(whole) or whole
  end
  local body = text:match "void Q_NAME%b()(.*)"
  for _, node in ipairs(dag and dag_of.order(dag.outputs) or {}) do
    if node.table then return nil end
  end
  if dag then return is_signless(types, dag) and unsigned(body) or body end
  local from, to = types.by_name[record.from], types.by_name[record.to]
  if not from or from.kind ~= "integer" or to.kind ~= "integer" then return body end
  body = unsigned(body, to.bits) -- a cast to an integer looks at the sign of what it widens, and at no other
  return to.bits < from.bits and unsigned(body, from.bits) or body
end

-- For one run of the generator: a function(record, dag, text) that returns true if the kernel needs its own text; otherwise it
-- sets record.code and returns false. Kernels are given in the order of the tree.
function M.new(types)
  local first = {}
  return function(record, dag, text)
    local key = key_of(types, record, dag, text)
    if key and first[key] and first[key] ~= record then
      record.code = first[key]
      return false
    end
    if key then first[key] = record end
    return true
  end
end

return M
