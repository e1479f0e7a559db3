-- SPDX-License-Identifier: Apache-2.0
--
-- The names of a kernel's local variables: a value has the name that the spec or dsl/math gives it, else a short temporary one,
-- t12. A name that is taken gets a number: r, r_2. Knows what C, C++ and the kernels' headers reserve.

local dag_of = require "gen.graph.dag.dag"
local reserved = require "gen.base.reserved"
local template = require "gen.base.template"

local M = {}

-- The names that the kernels' headers and CUDA use.
local TAKEN = {}
for word in ([[
  threadIdx blockIdx blockDim gridDim warpSize
  f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 m8 m16 m32 m64 bool_s f16_s bf16_s
  f32_u f64_u i8_u i16_u i32_u i64_u u8_u u16_u u32_u u64_u bool_s_u f16_s_u bf16_s_u
]]):gmatch "%S+" do TAKEN[word] = true end

-- Names that macros and functions of headers may have.
local function is_foreign(name) return name:find "^[qQ]%a?_" or name:find "^_" or name:find "__" or not name:find "%l" end

-- The beginnings of the names that templates and targets give to variables of an operand.
local OF_OPERAND = { "in_", "row_", "step_", "strip_", "give_", "put_", "got_", "to_", "tile_", "loaded_" }

local Locals = {}
Locals.__index = Locals

-- The names of one kernel. parsed: its template; operands: of operands.lua; others: list of further names that are taken;
-- outputs: the nodes that it computes. Values that every element needs are named before values of rare blocks.
function M.new(parsed, operands, others, outputs)
  local taken = {}
  for word in pairs(template.identifiers(parsed)) do taken[word] = true end
  for _, operand in ipairs(operands) do
    for _, head in ipairs(OF_OPERAND) do taken[head .. operand.short] = true end
    taken[operand.element], taken[operand.element .. "_u"] = true, true
  end
  for _, name in ipairs(others) do taken[name] = true end
  local self = setmetatable({ taken = taken, of_node = {} }, Locals)
  for _, node in ipairs(dag_of.order(outputs, true)) do
    if node.label and node.op ~= "rare" then self:of(node) end
  end
  return self
end

-- A name that nothing else has in this kernel: `wanted`, or with a number behind it.
function Locals:fresh(wanted)
  if is_foreign(wanted) then wanted = "v_" .. wanted end
  local name, n = wanted, 1
  while self.taken[name] or TAKEN[name] or reserved[name] do
    n = n + 1
    name = string.format("%s_%d", wanted, n)
  end
  self.taken[name] = true
  return name
end

-- The name of a node's variable, the same wherever the kernel computes it.
function Locals:of(node)
  if not self.of_node[node] then self.of_node[node] = self:fresh(node.label or "t" .. node.id) end
  return self.of_node[node]
end

return M
