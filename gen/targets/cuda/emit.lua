-- DAG -> SSA text in CUDA, by tables: the mirror of targets/c/emit.lua, same keys, other spellings. No loops over ops.
--
-- Spellings are spelling.lua's; conditions are bool. Primitives are functions of templates/cuda/kernel_cuda.h; sums, products and
-- quotients of floats are the intrinsics that no compiler contracts. What only a rare block needs stands inside an if: a warp
-- none of whose threads needs it goes past.

local c = require "gen.targets.c.text"
local spelling = require "gen.targets.spelling"

local M = {}

-- op -> spelling, or the computed type or its kind -> spelling
M.SPELLING = {
  add = { f32 = "__fadd_rn($1, $2)", f64 = "__dadd_rn($1, $2)", integer = "q_add_$t($1, $2)" },
  sub = { f32 = "__fsub_rn($1, $2)", f64 = "__dsub_rn($1, $2)", integer = "q_sub_$t($1, $2)" },
  mul = { f32 = "__fmul_rn($1, $2)", f64 = "__dmul_rn($1, $2)", integer = "q_mul_$t($1, $2)" },
  div = { f32 = "__fdiv_rn($1, $2)", f64 = "__ddiv_rn($1, $2)" },
  quot = { integer = "q_quot_$t($1, $2)" },
  rem = "q_rem_$t($1, $2)",
  gcd = { integer = "q_gcd_$t($1, $2)" },
  neg = "q_neg_$t($1)",
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
  ["and"] = { integer = "($t)($1 & $2)", bool = "$1 && $2" },
  ["or"] = { integer = "($t)($1 | $2)", bool = "$1 || $2" },
  xor = { integer = "($t)($1 ^ $2)", bool = "$1 != $2" },
  ["not"] = { integer = "($t)~$1" },
  lnot = { bool = "!$1" },
  shl = "q_shl_$t($1, $2)",
  shr = "q_shr_$t($1, $2)",
  shl_constant = "q_shlc_$t($1, $2)",
  shr_constant = "q_shrc_$t($1, $2)",
  bits = { integer = "($t)q_bits_$f($1)" },
  raw = { integer = "($t)q_raw_$f($1)" },
  from_bits = { float = "q_from_$t((u$b)$1)" },
  cast = "q_cast_$f_$t($1)",
  cast_to_bool = { bool = "$1 != 0" },
  cast_from_bool = "q_cast_bool_$t((bool_s)$1)",
  round = { float = "q_cast_$n_$t(q_cast_$f_$n($1))" },
  select = "$1 ? $2 : $3",
  select_bool = { bool = "$1 ? $2 : $3" },
  lookup = "$table[$1 & $last]",
  signbit = { bool = "q_signbit_$f($1)" },
  lt = { bool = "$1 < $2" },
  le = { bool = "$1 <= $2" },
  gt = { bool = "$1 > $2" },
  ge = { bool = "$1 >= $2" },
  eq = { bool = "$1 == $2" },
  ne = { bool = "$1 != $2" },
  lt_bool = { bool = "!$1 && $2" },
  le_bool = { bool = "!$1 || $2" },
  gt_bool = { bool = "$1 && !$2" },
  ge_bool = { bool = "$1 || !$2" },
  eq_bool = { bool = "$1 == $2" },
  ne_bool = { bool = "$1 != $2" },
}

-- Signs that cost nothing where the result is an operand: the hardware changes them as it reads. To a NaN they may do anything,
-- which its one form, when it is stored, hides.
M.FREE = { neg = { f32 = "-($1)", f64 = "-($1)" }, abs = { f32 = "qc_abs_f32($1)", f64 = "qc_abs_f64($1)" } }

-- The nodes whose very bits an operation looks at, also those of a NaN.
function M.looked_at(nodes)
  local set = {}
  for _, node in ipairs(nodes) do
    if node.op == "raw" then set[node.args[1]] = true end
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

function Emitter:expression(node)
  local free = M.FREE[node.op] and not self.looked_at[node] and M.FREE[node.op][node.type]
  if free then return (free:gsub("$1", self:argument(node.args[1]), 1)) end
  return spelling.expression(self.types, M.SPELLING, node, {}, self.tables, function(k) return self:argument(node.args[k]) end)
end

-- Which rare block a node stands in: that of the rare node whose costly value alone needs it, and the innermost of those
-- that hold all its uses. `nodes`: arguments first. Returns node -> rare node; nothing for what always runs.
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
-- options: tables (list -> C name), roots (the nodes that are wanted). Returns lines and the emitter, whose :argument(node)
-- names a result.
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
      local name = "t" .. node.id
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
