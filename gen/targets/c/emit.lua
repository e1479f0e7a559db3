-- DAG -> SSA text in C, by tables. targets/cuda/emit.lua is its mirror: same keys, other spellings. No loops over ops.
--
-- Spellings are spelling.lua's; conditions arrive as masks 0 or -1, $m is the mask's width in bits. Primitives are functions
-- of templates/c/kernel.h.

local c = require "gen.targets.c.text"
local spelling = require "gen.targets.spelling"

local M = {}

-- op -> spelling, or kind of the computed type -> spelling
M.SPELLING = {
  add = { float = "$1 + $2", integer = "q_add_$t($1, $2)" },
  sub = { float = "$1 - $2", integer = "q_sub_$t($1, $2)" },
  mul = { float = "$1 * $2", integer = "q_mul_$t($1, $2)" },
  div = { float = "$1 / $2" },
  quot = { integer = "q_quot_$t($1, $2)" },
  rem = "q_rem_$t($1, $2)",
  gcd = { integer = "q_gcd_$t($1, $2)" },
  neg = { float = "-($1)", integer = "q_neg_$t($1)" },
  abs = "q_abs_$t($1)",
  sqrt = "q_sqrt_$t($1)",
  rint = "q_rint_$t($1)",
  floor = "q_floor_$t($1)",
  ceil = "q_ceil_$t($1)",
  trunc = "q_trunc_$t($1)",
  fma = "q_fma_$t($1, $2, $3)",
  copysign = "q_copysign_$t($1, $2)",
  maximum = "q_max_$t($1, $2)",
  minimum = "q_min_$t($1, $2)",
  ["and"] = { integer = "($t)($1 & $2)", bool = "$1 & $2" },
  ["or"] = { integer = "($t)($1 | $2)", bool = "$1 | $2" },
  xor = { integer = "($t)($1 ^ $2)", bool = "$1 ^ $2" },
  ["not"] = { integer = "($t)~$1" },
  lnot = { bool = "~$1" },
  shl = "q_shl_$t($1, $2)",
  shr = "q_shr_$t($1, $2)",
  shl_constant = "q_shlc_$t($1, $2)",
  shr_constant = "q_shrc_$t($1, $2)",
  bits = { integer = "($t)q_bits_$f($1)" },
  raw = { integer = "($t)q_raw_$f($1)" },
  from_bits = { float = "q_from_$t((u$b)$1)" },
  cast = "q_cast_$f_$t($1)",
  cast_to_bool = { bool = "Q_MASK(m$m, $1 != 0)" },
  cast_from_bool = "q_cast_bool_$t((bool_s)($1 & 1))",
  round = { float = "q_cast_$n_$t(q_cast_$f_$n($1))" },
  select = "q_sel_$t($1, $2, $3)",
  select_bool = { bool = "($1 & $2) | (~$1 & $3)" },
  lookup = "$table[$1 & $last]",
  signbit = { bool = "q_signbit_$f($1)" },
  lt = { bool = "Q_MASK(m$m, $1 < $2)" },
  le = { bool = "Q_MASK(m$m, $1 <= $2)" },
  gt = { bool = "Q_MASK(m$m, $1 > $2)" },
  ge = { bool = "Q_MASK(m$m, $1 >= $2)" },
  eq = { bool = "Q_MASK(m$m, $1 == $2)" },
  ne = { bool = "Q_MASK(m$m, $1 != $2)" },
  lt_bool = { bool = "~$1 & $2" },
  le_bool = { bool = "~$1 | $2" },
  gt_bool = { bool = "$1 & ~$2" },
  ge_bool = { bool = "$1 | ~$2" },
  eq_bool = { bool = "~($1 ^ $2)" },
  ne_bool = { bool = "$1 ^ $2" },
}

local Emitter = {}
Emitter.__index = Emitter

-- The C type of a node's variable.
function Emitter:c_type(node)
  if node.type == "bool" then return "m" .. self.width[node] end
  return node.type
end

-- The width of a condition's mask: that of what was compared, so that vectors keep their shape.
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

-- An argument's text; conditions are brought to a width.
function Emitter:argument(node, bits)
  if node.op == "const" then return c.literal(node.type, node.value, bits or 32) end
  local name = self.name[node]
  if node.type == "bool" and bits and bits ~= self.width[node] then return string.format("(m%d)%s", bits, name) end
  return name
end

function Emitter:expression(node)
  local bits = node.type == "bool" and self.width[node] or self.types.by_name[node.type].bits
  return spelling.expression(self.types, M.SPELLING, node, { m = bits }, self.tables, function(k)
    local arg = node.args[k]
    return self:argument(arg, arg.type == "bool" and bits or nil)
  end)
end

-- The statements that compute `nodes` (in order) for variables already named in `names` (node -> name).
-- options: tables (list -> C name), without_rare. Returns lines and the emitter, whose :argument(node) names a result.
function M.emit(types, nodes, names, options)
  local self = setmetatable({ types = types, name = {}, width = {}, tables = options.tables or {} }, Emitter)
  for node, name in pairs(names) do self.name[node] = name end
  local lines = {}
  for _, node in ipairs(nodes) do
    local is_passed = node.op == "rare" and options.without_rare
    if node.type == "bool" and not is_passed then self.width[node] = mask_width(types, node, self.width) end
    if is_passed then
      self.name[node] = self:argument(node.args[3])
      self.width[node] = self.width[node.args[3]]
    elseif not self.name[node] and node.op ~= "const" then
      local name = "t" .. node.id
      local expression = self:expression(node)
      lines[#lines + 1] = string.format("const %s %s = %s;", self:c_type(node), name, expression)
      self.name[node] = name
    end
  end
  return lines, self
end

return M
