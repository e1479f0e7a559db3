-- SPDX-License-Identifier: Apache-2.0
--
-- DAG -> SSA text in CUDA: the mirror of targets/c/emit.lua. No loops over ops.
--
-- Spellings are those of graph/dag/primitives.lua; conditions are bool. Primitives are functions of templates/cuda/kernel_cuda.h;
-- sums, products and quotients of floats are intrinsics that no compiler contracts. Values needed only by a rare block are inside
-- an `if`: a warp skips it if none of its threads needs it.

local c = require "gen.targets.c.text"
local dag_of = require "gen.graph.dag.dag"
local number = require "gen.base.number"
local primitives = require "gen.graph.dag.primitives"
local spelling = require "gen.targets.spelling"

local M = {}

local MULTIPLY = { f32 = "__fmul_rn(%s, %s)", f64 = "__dmul_rn(%s, %s)" }
local INVERT = { f32 = "__frcp_rn(%s)", f64 = "__drcp_rn(%s)" }

-- The nodes with an operation on their raw bits, on those of a NaN, too: "bits", or "sign" of operands with one on the sign bit.
function M.looked_at(nodes)
  local set = {}
  for _, node in ipairs(nodes) do
    local last = node.args[#node.args]
    if node.op == "raw" then set[last] = set[last] or "bits" end
    if dag_of.looks_at_sign(node.op) and dag_of.is_operand(last) then set[last] = "sign" end
  end
  return set
end

local Emitter = {}
Emitter.__index = Emitter

-- An argument's text.
function Emitter:argument(node)
  if node.op == "const" then
    if node.type == "bool" then return node.value ~= 0 and "true" or "false" end
    return c.literal(node.type, node.value)
  end
  return self.name[node]
end

-- Quotients with a constant that is a power of two, as the operation that they are: x / 4 is x * 0.25, 1 / x the reciprocal, with the
-- same bits. (NVVM makes a product of x / 4 itself, of f64 one that may be contracted.) nil: any other node
function Emitter:quotient(node)
  local x, y = node.args[1], node.args[2]
  if node.op ~= "div" then return nil end
  local t = self.types.by_name[node.type]
  local inverse = y.op == "const" and number.exact_inverse(y.value, t)
  if inverse then return string.format(MULTIPLY[node.type], self:argument(x), c.literal(node.type, inverse)) end
  local is_one = x.op == "const" and x.value == number.float_bits(1.0, t)
  return is_one and string.format(INVERT[node.type], self:argument(y)) or nil
end

function Emitter:expression(node)
  local quotient = self:quotient(node)
  if quotient then return quotient end
  local free = not self.looked_at[node] and primitives.of[node.op].cuda_free
  free = free and free[node.type]
  if free then return (free:gsub("$1", self:argument(node.args[1]), 1)) end
  return spelling.expression(self.types, "cuda", node, {}, self.tables, function(k) return self:argument(node.args[k]) end)
end

-- The rare block of each node: the innermost one that contains all uses of the node. A rare block contains the values that only
-- the second argument of its rare node needs. `nodes`: arguments first. Returns node -> rare node; no entry: it always runs.
local function blocks_of(nodes, roots)
  local block, depth, is_used = {}, {}, {}
  local function common(a, b)
    while a ~= b do
      if (a and depth[a] or 0) >= (b and depth[b] or 0) then a = block[a] else b = block[b] end
    end
    return a
  end
  local function use(node, inside)
    if is_used[node] then inside = common(block[node], inside) end
    block[node], is_used[node] = inside, true
  end
  for _, root in ipairs(roots) do use(root, nil) end
  for k = #nodes, 1, -1 do -- users first
    local node = nodes[k]
    if node.op == "rare" then depth[node] = (block[node] and depth[block[node]] or 0) + 1 end
    for j, arg in ipairs(node.args) do use(arg, node.op == "rare" and j == 2 and node or block[node]) end
  end
  return block
end

-- The statements that compute `nodes` (arguments first) for variables already named in `names` (node -> name).
-- options: locals (of targets/locals.lua), tables (list -> C name), roots (the nodes that are wanted). Returns lines and the
-- emitter; its :argument(node) names a result.
function M.emit(types, nodes, names, options)
  local self = setmetatable({ types = types, name = {}, tables = options.tables or {}, looked_at = M.looked_at(nodes) }, Emitter)
  for node, name in pairs(names) do self.name[node] = name end
  local block_of, inside = blocks_of(nodes, options.roots), {}
  for _, node in ipairs(nodes) do
    local block = block_of[node] or "always"
    if node.op ~= "const" and not self.name[node] then
      inside[block] = inside[block] or {}
      table.insert(inside[block], node)
    end
  end
  local lines = {}
  local function statements(block, indent)
    for _, node in ipairs(inside[block] or {}) do
      local name = options.locals:of(node)
      local function put(format, ...) lines[#lines + 1] = indent .. string.format(format, ...) end
      if node.op == "rare" and inside[node] then
        put("%s %s = %s;", node.type, name, self:argument(node.args[3]))
        put("if (%s) {", self:argument(node.args[1]))
        statements(node, indent .. "  ")
        put("  %s = %s;", name, self:argument(node.args[2]))
        put("}")
      else
        put("const %s %s = %s;", node.type, name, self:expression(node))
      end
      self.name[node] = name
    end
  end
  statements("always", "")
  return lines, self
end

return M
