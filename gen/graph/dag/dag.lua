-- SPDX-License-Identifier: Apache-2.0
--
-- The typed DAG: nodes made once each (CSE by hash consing), exact folding of integers, order. Knows no syntax, no C.
--
-- A node is { id, op, type, args = { nodes }, [value], [index], [name], [table], [is_canonical], [label] }. Types are dtype
-- names of dsl/types.lua; "bool" is a condition. value: of a constant: a float's bits, or an integer. index: of an input or a
-- param. is_computed: an input that is the result of a reduction or a scan. is_canonical: a number or the canonical NaN, where no
-- rare block runs. label: the value's name in the source, for readers of the text. No float is ever folded: x + 0, x * 1 and x - x
-- are not identities.

local number = require "gen.base.number"
local primitives = require "gen.graph.dag.primitives"

local M = {}

M.MAX_NODES = 4096

-- Whether an operation's result is the same bits for integers of either sign.
local SIGNLESS_LEAVES = { input = true, param = true, const = true }
function M.is_signless(op) return SIGNLESS_LEAVES[op] or (primitives.of[op] and primitives.of[op].signless) or false end

-- Operations that see the sign bit of their last argument, of an operand's NaN, too.
function M.looks_at_sign(op) return primitives.of[op] ~= nil and primitives.of[op].looks_at_sign == true end

-- Whether a node is an operand as it lies in memory. A stage's inputs may have been computed by others: is_computed.
function M.is_operand(node) return node.op == "input" and not node.is_computed end

local Dag = {}
Dag.__index = Dag

-- is_plain: nothing is folded
function M.new(types, is_plain)
  return setmetatable({ types = types, nodes = {}, of_key = {}, is_plain = is_plain or false }, Dag)
end

-- extra: fields beside args that tell nodes apart: value, index, name, table
function Dag:node(op, type_name, args, extra)
  local key = { op, type_name }
  for _, arg in ipairs(args) do key[#key + 1] = arg.id end
  if extra then
    key[#key + 1] = "="
    key[#key + 1] = tostring(extra.value or extra.index)
    key[#key + 1] = extra.name or ""
  end
  key = table.concat(key, " ")
  local node = self.of_key[key]
  if node then return node end
  if #self.nodes >= M.MAX_NODES then
    error({ limit = true, message = string.format("more than %d nodes after inlining", M.MAX_NODES) }, 0)
  end
  node = { id = #self.nodes + 1, op = op, type = type_name, args = args }
  for name, value in pairs(extra or {}) do node[name] = value end
  self.nodes[node.id] = node
  self.of_key[key] = node
  return node
end

-- A constant. value: an integer for integer and bool types, an f64 for float types (rounded to the type)
function Dag:constant(type_name, value)
  local t = self.types.by_name[type_name]
  if t.kind == "float" then
    return self:node("const", type_name, {}, { value = number.float_bits(value, t) })
  elseif t.kind == "bool" then
    return self:node("const", type_name, {}, { value = value ~= 0 and 1 or 0 })
  end
  return self:node("const", type_name, {}, { value = number.wrap(math.tointeger(value), t.bits, t.signed) })
end

local function is_const(node) return node.op == "const" end

-- The node for op over args with a result type; folds where that is exact.
function Dag:make(op, type_name, args, extra)
  if op == "cast" and args[1].type == type_name then return args[1] end
  local row = not self.is_plain and primitives.of[op]
  if row and row.fold and self.types.by_name[type_name].kind == "integer" and not extra then
    local all = true
    for _, arg in ipairs(args) do all = all and is_const(arg) end
    if all then
      return self:constant(type_name, row.fold(args[1].value, args[2] and args[2].value, self.types.by_name[type_name]))
    end
  end
  return row and row.simplify and row.simplify(self, type_name, args) or self:node(op, type_name, args, extra)
end

-- The node with its NaN as a computed value has it. Operations on signs see the sign of an operand's NaN; a computed NaN is positive.
function Dag:computed(node)
  local is_operand = M.is_operand(node) and self.types.by_name[node.type].kind == "float"
  return is_operand and not self.is_plain and self:make("canon", node.type, { node }) or node
end

-- Whether a node is a rare block that counts as not taken. without_rare: true, they all are; a set, those in it are.
function M.is_passed(node, without_rare)
  return node.op == "rare" and without_rare and (without_rare == true or without_rare[node]) or false
end

-- The arguments that a node's value comes from. without_rare: as in is_passed; the conditions of these blocks are left out.
function M.args_of(node, without_rare)
  if M.is_passed(node, without_rare) then return { node.args[3] } end
  return node.args
end

-- The node that computes a node's value. without_rare: behind rare blocks, which count as not taken.
function M.value_of(node, without_rare)
  while M.is_passed(node, without_rare) do node = node.args[3] end
  return node
end

-- The nodes that `roots` need, arguments before their users. without_rare: as in args_of; known: a set of nodes; their arguments are not
-- needed.
function M.order(roots, without_rare, known)
  local list, state = {}, {}
  for _, root in ipairs(roots) do
    local stack = { root }
    while #stack > 0 do
      local node = stack[#stack]
      if state[node] == 2 then
        stack[#stack] = nil
      elseif state[node] == 1 then
        state[node] = 2
        list[#list + 1] = node
        stack[#stack] = nil
      else
        state[node] = 1
        if not known or known[node] == nil then
          local args = node.args
          for k = #args, without_rare and M.is_passed(node, without_rare) and 3 or 1, -1 do
            if state[args[k]] ~= 2 then stack[#stack + 1] = args[k] end
          end
        end
      end
    end
  end
  return list
end

-- The length of the longest chain of dependent operations in `list`, arguments first; rare blocks count as not taken.
function M.depth(list)
  local depth_of, deepest = {}, 0
  for _, node in ipairs(list) do
    local depth = 0
    for _, arg in ipairs(M.args_of(node, true)) do depth = math.max(depth, depth_of[arg]) end
    depth_of[node] = depth + ((#node.args == 0 or node.op == "rare") and 0 or 1)
    deepest = math.max(deepest, depth_of[node])
  end
  return deepest
end

M.LIGHT = 3 -- operations

-- Rare blocks may be *light*: they need no more than LIGHT operations that other values do not need. Returns the blocks that are not, a
-- set, if there are both; else nil.
function M.heavy_rares(outputs)
  local every, heavy, n_light, n_heavy = {}, {}, 0, 0
  for _, node in ipairs(M.order(outputs, true)) do every[node] = true end
  for _, node in ipairs(M.order(outputs)) do
    if node.op == "rare" then
      local n, own = 0, M.order({ node.args[2] }, heavy)
      for _, needed in ipairs(own) do n = n + (every[needed] and 0 or needed.op == "const" and 0 or 1) end
      if n > M.LIGHT then
        heavy[node], n_heavy = true, n_heavy + 1
      else
        n_light = n_light + 1
        for _, needed in ipairs(M.order({ node }, heavy)) do every[needed] = true end
      end
    end
  end
  return n_light > 0 and n_heavy > 0 and heavy or nil
end

-- A node's value where no rare block is taken. Makes nodes.
function Dag:without_rare(node, known)
  known = known or {}
  if not known[node] then
    local value, args, is_new = M.value_of(node, true), {}, false
    for k, arg in ipairs(value.args) do
      args[k] = self:without_rare(arg, known)
      is_new = is_new or args[k] ~= arg
    end
    local last = args[#args]
    if is_new and M.looks_at_sign(value.op) and last ~= value.args[#args] then args[#args] = self:computed(last) end
    known[node] = is_new and self:make(value.op, value.type, args) or value
  end
  return known[node]
end

-- The nodes of `list`, arguments first, that are rare blocks of the set `searched`, or depend on one.
local function reaching_rare(list, searched)
  local reaches = {}
  for _, node in ipairs(list) do
    reaches[node] = M.is_passed(node, searched)
    for _, arg in ipairs(node.args) do reaches[node] = reaches[node] or reaches[arg] end
  end
  return reaches
end

M.MAX_TERMS = 4 -- of a demand; it is widened where there would be more

-- The conditions under which a rare block must run, computed from the values without rare blocks. A block behind `?:`,
-- `x > 0 ? log(x) : 0`, matters only to elements that take its branch. Makes nodes.
--
-- A value is in demand if an output depends on it through branches that are taken; the conditions of these branches are in
-- demand, too. If no rare block in demand has to run, then all values in demand are right, by induction from the inputs on, and
-- so are the outputs. searched: the rare blocks to search, a set, others being taken; nil: all.
function Dag:rare_conditions(outputs, searched)
  local list = M.order(outputs)
  searched = searched or true
  local reaches, demand_of, conditions, seen = reaching_rare(list, searched), {}, {}, {}
  local ALWAYS = { terms = 0 } -- a demand without a condition

  -- A demand joined with a condition, or with another demand; nil if it has too many terms.
  local function joined(op, a, b, terms)
    if terms > M.MAX_TERMS or #self.nodes + 2 > M.MAX_NODES then return nil end
    return { condition = a and self:make(op, "bool", { a, b }) or b, terms = terms }
  end
  local function behind(demand, condition, is_taken)
    if #self.nodes + 2 > M.MAX_NODES then return demand end
    if not is_taken then condition = self:make("lnot", "bool", { condition }) end
    return joined("and", demand.condition, condition, demand.terms + 1) or demand
  end
  local function is_opposite(a, b) return a.op == "lnot" and a.args[1] == b or b.op == "lnot" and b.args[1] == a end
  local function add_demand(node, demand)
    local known = demand_of[node]
    if not reaches[node] or known == ALWAYS then return end
    if known and demand ~= ALWAYS and is_opposite(known.condition, demand.condition) then
      demand = ALWAYS
    elseif known and demand ~= ALWAYS and known.condition ~= demand.condition then
      demand = joined("or", known.condition, demand.condition, known.terms + demand.terms) or ALWAYS
    end
    demand_of[node] = demand
  end

  for _, node in ipairs(outputs) do add_demand(node, ALWAYS) end
  for k = #list, 1, -1 do -- users first
    local node = list[k]
    local demand, args = demand_of[node], node.args
    if demand and M.is_passed(node, searched) then
      add_demand(args[1], demand)
      add_demand(args[3], demand)
      local own = joined("and", demand.condition, args[1], 0)
      local condition = own and own.condition or args[1]
      if not seen[condition] then conditions[#conditions + 1] = condition end
      seen[condition] = true
    elseif demand and (node.op == "select" or node.op == "rare") then
      add_demand(args[1], demand)
      if reaches[args[2]] then add_demand(args[2], behind(demand, args[1], true)) end
      if reaches[args[3]] then add_demand(args[3], behind(demand, args[1], false)) end
    elseif demand then
      for _, arg in ipairs(args) do add_demand(arg, demand) end
    end
  end
  return conditions
end

return M
