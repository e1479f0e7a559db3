-- SPDX-License-Identifier: Apache-2.0
--
-- docs/primitives.md: the rows of gen/graph/dag/primitives.lua as a table for people.

local primitives = require "gen.graph.dag.primitives"

local M = {}

local HEAD = [[
# Primitives

Written by `lua5.4 build.lua list --primitives` from `gen/graph/dag/primitives.lua`. A primitive is an operation that a node of a graph
computes; bodies and the functions of `dsl/math` become graphs of these.

- In a body: its sign or its call, of arguments x, y, z. What has none is written otherwise: `cast` as `float(x)` and the like,
  `select` as `x ? y : z`, `rare` as the statement of that name, `lookup` as `lookup(table, x)`, `bits` and `from_bits` as `as_i32(x)`,
  `as_f32(x)` and the like.
- Takes: the kinds of x, y, z, which meet in one type by promotion. float: an integer becomes f32 or f64; whole: an integer stays as it is.
- Derivative: what each argument adds, where `grad` is the argument's own derivative and `out` the result. At kinks they are
  PyTorch's.
- Folded: computed by the generator where the arguments are constants.
]]

-- As a cell of a table.
local function code(text) return text and "`" .. text:gsub("|", "\\|") .. "`" or " " end

local ARGUMENTS = { "x", "x, y", "x, y, z" }

local function written(row)
  if row.operator then return "x " .. row.operator .. " y" end
  if row.prefix then return row.prefix .. "x" end
  return row.call and string.format("%s(%s)", row.name, ARGUMENTS[row.arguments]) or nil
end

local function derivative(row)
  if type(row.derive) == "table" then return code(table.concat(row.derive, "; ")) end
  if row.derive == "branches" then return "of the branch taken" end
  if row.derive == "cast" then return code "grad" end
  return row.derive == "constant" and code "0" or "none"
end

-- The text of the page.
function M.text()
  local out = { HEAD, "| primitive | in a body | takes | result | folded | derivative | computes |",
                "| --- | --- | --- | --- | :-: | --- | --- |" }
  for _, row in ipairs(primitives.list) do
    local cells = { code(row.name), code(written(row)), row.takes or " ", row.result or " ",
                    (row.fold or row.simplify) and "x" or " ", derivative(row), (row.doc:gsub("[*_<|]", "\\%0")) }
    out[#out + 1] = "| " .. table.concat(cells, " | ") .. " |"
  end
  return table.concat(out, "\n") .. "\n"
end

return M
