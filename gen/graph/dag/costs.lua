-- SPDX-License-Identifier: Apache-2.0
--
-- The cost of a graph for a compiler: roughly the number of instructions that its nodes expand to. Knows no target.

local dag_of = require "gen.graph.dag.dag"

local M = {}

M.MOST = 8192         -- of a kernel made at run time; the host may set another limit
M.LARGE = 1024        -- from here on a compile takes long, and is not in the way of others
M.LOOP = 40           -- a node with loops and branches, expanded in place
M.CALL = 4            -- the same as a call
local MANY_LOOPS = 8  -- from here on loops are called: what a compiler needs for branches grows with their square

-- Nodes that are more than about one instruction: by the kind of the type, or by the type.
local COST = {
  quot = { i64 = 24, u64 = 24, any = 20 }, rem = { float = M.LOOP, i64 = 28, u64 = 28, any = 22 }, gcd = { any = M.LOOP },
  round = { any = 8 }, cast = { any = 3 }, lookup = { any = 6 }, maximum = { float = 16, any = 1 }, minimum = { float = 16, any = 1 },
  copysign = { any = 3 }, canon = { any = 2 }, bits = { any = 3 }, floor = { any = 2 }, fma = { any = 8 }, signbit = { any = 2 },
  shl = { any = 3 }, shr = { any = 3 }, div = { any = 4 }, sqrt = { any = 4 },
}

-- Whether a node is expanded to a loop.
function M.is_loop(types, node)
  return node.op == "gcd" or node.op == "rem" and types.by_name[node.type].kind == "float"
end

-- How many loops are in a list of nodes, and whether they are called.
function M.are_called(types, nodes)
  local n = 0
  for _, node in ipairs(nodes) do n = n + (M.is_loop(types, node) and 1 or 0) end
  return n > MANY_LOOPS
end

local function sum_of(types, nodes, calls)
  local sum = 0
  for _, node in ipairs(nodes) do
    local row = COST[node.op]
    if calls and M.is_loop(types, node) then
      sum = sum + M.CALL
    elseif row then
      sum = sum + (row[node.type] or row[types.by_name[node.type].kind] or row.any)
    elseif #node.args > 0 then
      sum = sum + 1
    end
  end
  return sum
end

-- What loops cost beside one another where none is called: NVRTC's time grows with their square, and with that of 64-bit quotients, which branch.
local function cost_of_branches(types, nodes)
  local n_loops, n_quotients = 0, 0
  for _, node in ipairs(nodes) do
    if M.is_loop(types, node) then
      n_loops = n_loops + 1
    elseif (node.op == "quot" or node.op == "rem") and types.by_name[node.type].bits == 64 then
      n_quotients = n_quotients + 1
    end
  end
  return (n_loops > MANY_LOOPS and 4 * n_loops * n_loops or 0) + n_quotients * n_quotients // 4
end

-- The cost of a kernel with these outputs: its loop, and the loops without rare blocks. may_call: its target calls loops where they are many
function M.of(types, outputs, may_call)
  local nodes = dag_of.order(outputs)
  local calls, n_rare = may_call and M.are_called(types, nodes), 0
  for _, node in ipairs(nodes) do n_rare = n_rare + (node.op == "rare" and 1 or 0) end
  local cost = sum_of(types, nodes, calls) + (may_call and 0 or cost_of_branches(types, nodes))
  if n_rare > 0 then cost = cost + sum_of(types, dag_of.order(outputs, true), calls) end
  return cost
end

return M
