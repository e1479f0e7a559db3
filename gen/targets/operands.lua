-- SPDX-License-Identifier: Apache-2.0
--
-- The common part of a kernel's texts on every target: an op's formula and location for comments, the operands of a
-- record by name, the cast of an element.

local order = require "gen.base.order"
local dag_of = require "gen.graph.dag.dag"

local M = {}

-- The text of a spec's body on one line, for comments and descriptions: for a derived body, the one that it is derived from.
function M.formula(op)
  local parts = {}
  for _, key in ipairs(order.keys(op.bodies)) do
    local text = op.bodies[key].text:gsub("%s+", " "):gsub("^ ", ""):gsub(" $", "")
    local by = op.bodies[key].derive
    if by then text = string.format("d(%s)/d%s * grad", text, table.concat(by, "/d")) end
    parts[#parts + 1] = key == "any" and text or key .. ": " .. text
  end
  return table.concat(parts, "; ")
end

-- A file's name without a machine's paths.
local function shown_file(file)
  return (file:find "^/" or file:find "%.%.[/\\]") and file:match "[^/\\]+$" or file
end

-- An op's spec: file and line.
function M.location(op) return string.format("%s:%d", shown_file(op.file), op.line) end

-- The sources of a kernel's text, for comments: the spec's file and line, the files of the functions in its body, the template.
function M.sources(op, dag, template)
  local list = { M.location(op) }
  for _, file in ipairs(dag and dag.files or {}) do
    if file ~= op.file then list[#list + 1] = shown_file(file) end
  end
  list[#list + 1] = template
  return table.concat(list, ", ")
end

-- The names of a DAG's operands, inputs then outputs.
function M.names(dag)
  local names, n_in, is_input = {}, #dag.inputs, {}
  for k, node in ipairs(dag.inputs) do names[k], is_input[node.name] = node.name, true end
  for k = 1, #dag.outputs do names[n_in + k] = #dag.outputs == 1 and "out" or "out" .. k end
  if #dag.outputs == 1 and is_input.out then names[n_in + 1] = dag.first_output end -- its op's output is an input
  return names
end

-- The operands of a record: name (in_x of an input, out), short (x, out), dtype, element (of dsl/types.lua), class. names: of
-- inputs, then outputs; used: set of the input nodes that the body needs, with `inputs`, or nil
function M.of_record(types, record, names, n_in, inputs, used)
  local list = {}
  for k, dtype in ipairs(record.dtypes) do
    local is_input = k <= n_in
    list[k] = {
      index = k - 1, short = names[k], name = is_input and "in_" .. names[k] or names[k], dtype = dtype, is_input = is_input,
      element = types.by_name[dtype].c, size = types.by_name[dtype].size, class = record.classes:sub(k, k),
      row = "row_" .. names[k], is_used = not (is_input and used) or used[inputs[k]] or false,
    }
  end
  return list
end

-- The nodes that a DAG's outputs need, as a set.
function M.used(dag)
  local used = {}
  for _, node in ipairs(dag_of.order(dag.outputs)) do used[node] = true end
  return used
end

-- An element cast. From a dtype to itself: a NaN becomes canonical, and true 1; bits and integers stay.
function M.cast_text(types, from, to, value)
  local t = types.by_name[from]
  if t.kind == "bits" or types.by_name[to].kind == "bits" then return value end
  if from ~= to then return string.format("q_cast_%s_%s(%s)", from, to, value) end
  if t.kind == "bool" then return string.format("(bool_s)(%s != 0)", value) end
  if t.kind ~= "float" then return value end
  if t.compute == from then return string.format("q_canon_%s(%s)", from, value) end
  return string.format("q_cast_%s_%s(q_cast_%s_%s(%s))", t.compute, from, from, t.compute, value)
end

return M
