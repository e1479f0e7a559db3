-- SPDX-License-Identifier: Apache-2.0
--
-- Primitives with loops, such as gcd, as calls of functions that are not inlined: for kernels with many of them, which would else take a
-- compiler minutes because of the branches. In kernels with a few they stay inlined, so that the compiler optimises them.

local costs = require "gen.graph.dag.costs"
local dag_of = require "gen.graph.dag.dag"

local M = {}

-- Definitions, for a file of kernels with these graphs: a list of lines. After them the name of such a primitive calls a function
-- that is not inlined.
function M.lines(types, dags)
  local lines, seen = {}, {}
  for _, dag in ipairs(dags) do
    local nodes = dag_of.order(dag.outputs)
    for _, node in ipairs(costs.are_called(types, nodes) and nodes or {}) do
      local name = node.op .. "_" .. node.type
      if costs.is_loop(types, node) and not seen[name] then
        seen[name] = true
        lines[#lines + 1] = string.format("static __attribute__((noinline)) %s q_far_%s(%s x, %s y) { return q_%s(x, y); }", node.type,
                                          name, node.type, node.type, name)
        lines[#lines + 1] = string.format("#define q_%s(x, y) q_far_%s(x, y)", name, name)
      end
    end
  end
  return lines
end

return M
