-- SPDX-License-Identifier: Apache-2.0
--
-- DAG -> SSA text in C. targets/cuda/emit.lua is its mirror. No loops over ops.
--
-- Spellings are those of graph/dag/primitives.lua; conditions are masks 0 or -1, $m is the mask's width in bits. Primitives are
-- functions of templates/c/headers/kernel.h.

local c = require "gen.targets.c.text"
local dag_of = require "gen.graph.dag.dag"
local spelling = require "gen.targets.spelling"

local M = {}

local Emitter = {}
Emitter.__index = Emitter

-- The C type of a node's variable.
function Emitter:c_type(node)
  if node.type == "bool" then return "m" .. self.width[node] end
  return node.type
end

-- The width of a condition's mask: that of the compared values, so that vectors keep their number of elements.
local function mask_width(types, node, width)
  if node.op == "input" or node.op == "param" then return 8 end
  if node.op == "const" then return 32 end
  if node.op == "select" or node.op == "rare" then return math.max(width[node.args[2]], width[node.args[3]]) end
  local widest = 0
  for _, arg in ipairs(node.args) do
    widest = math.max(widest, arg.type == "bool" and width[arg] or types.by_name[arg.type].bits)
  end
  return widest
end

-- An argument's text; a condition is converted to the width.
function Emitter:argument(node, bits)
  if node.is_opaque then return string.format("(%s)(%s ^ q_zero)", node.type, c.literal(node.type, node.value)) end
  if node.op == "const" then return c.literal(node.type, node.value, bits or 32) end
  local name = self.name[node]
  if node.type == "bool" and bits and bits ~= self.width[node] then return string.format("(m%d)%s", bits, name) end
  return name
end

function Emitter:expression(node)
  if self.bare[node] then return string.format("q_neg_%s(%s)", node.type, self:argument(node.args[1])) end
  if self.any_nan and node.op == "cast" and node.type == "f64" and node.args[1].type == "f32" then
    return string.format("(f64)(%s)", self:argument(node.args[1]))
  end
  local bits = node.type == "bool" and self.width[node] or self.types.by_name[node.type].bits
  return spelling.expression(self.types, "c", node, { m = bits }, self.tables, function(k)
    local arg = node.args[k]
    return self:argument(arg, arg.type == "bool" and bits or nil)
  end)
end

-- The statements that compute `nodes` (in order) for variables already named in `names` (node -> name).
-- options: locals (of targets/locals.lua), tables (list -> C name), without_rare, widths (of inputs that are conditions; else 8), any_nan
-- (casts of floats to wider ones may give any NaN), bare (a set of nodes, negations of floats: on the bits, which keeps GCC from testing the
-- operand for NaN in place of the result, and loading it twice). Returns lines and the emitter; its
-- :argument(node) names a result.
function M.emit(types, nodes, names, options)
  local self = setmetatable({ types = types, name = {}, width = {}, tables = options.tables or {}, any_nan = options.any_nan,
                              bare = options.bare or {} }, Emitter)
  for node, name in pairs(names) do self.name[node] = name end
  local lines = {}
  for _, node in ipairs(nodes) do
    local is_passed = dag_of.is_passed(node, options.without_rare)
    if node.type == "bool" and not is_passed then
      self.width[node] = options.widths and options.widths[node] or mask_width(types, node, self.width)
    end
    if is_passed then
      self.name[node] = self:argument(node.args[3])
      self.width[node] = self.width[node.args[3]]
    elseif not self.name[node] and node.op ~= "const" then
      local name, expression = options.locals:of(node), self:expression(node)
      lines[#lines + 1] = string.format("const %s %s = %s;", self:c_type(node), name, expression)
      self.name[node] = name
    end
  end
  return lines, self
end

return M
