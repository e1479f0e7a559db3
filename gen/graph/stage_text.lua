-- SPDX-License-Identifier: Apache-2.0
--
-- The text of a stage of a row (runtime/run/stage_text.h) -> its DAG. The runtime writes it from the values of an expression that
-- reduces, so that a compiled stage computes what its interpreter does.

local dag_of = require "gen.graph.dag"
local expr = require "gen.graph.expr"
local op_types = require "gen.graph.op_types"
local rows = require "gen.graph.rows"
local source = require "gen.base.source"

local M = {}

M.MARK = "rows: "

local function fail(...) error({ kind = "bug", at = 1, message = "bug: a stage: " .. string.format(...) }, 0) end

-- The DAG of a built op's stage, by its kernel's name: qk_OP_DTYPE_stageN_...
local function stage_of(model, name)
  local c_name, K, number = name:match "^qk_(.+)_(%w+)_stage(%d+)_"
  local op = c_name and model.op_of_c_name[c_name]
  if not op then fail("no kernel %s", name) end
  local dag, message = expr.op_dag(model, op, K)
  if not dag then fail("%s", message) end
  local stage = rows.stages(model.types, dag).stages[tonumber(number)]
  return stage and stage.dag or fail("no kernel %s", name)
end

local Reader = {}
Reader.__index = Reader

function Reader:node(word) return self.nodes[tonumber(word or "") or -1] or fail("no value %s", tostring(word)) end

function Reader:args(words, first)
  local args = {}
  for k = first, #words do args[#args + 1] = self:node(words[k]) end
  return args
end

local items = {}

items["in"] = function(self, words)
  local index = tonumber(words[2])
  local node = self.dag:node("input", words[3], {}, { index = index + 1, name = "x" .. index })
  self.inputs[index + 1] = node
  return node
end

function items.param(self, words)
  return self.dag:node("param", words[3], {}, { index = tonumber(words[2]), name = words[2] .. "_" .. words[3] })
end

function items.count(self)
  self.count = self.dag:node("param", "i64", {}, { index = 1 << 20, name = "count" }) -- behind all others
  return self.count
end

function items.const(self, words)
  local t, bits = self.types.by_name[words[2]], math.tointeger(tonumber("0x" .. words[3]))
  if t.kind == "integer" and t.signed and t.bits < 64 then bits = (bits ~ 1 << (t.bits - 1)) - (1 << (t.bits - 1)) end
  return self.dag:node("const", t.name, {}, { value = bits })
end

function items.prim(self, words)
  local op, args = words[2], self:args(words, 4)
  local rounded = op:match "^round_(.+)$"
  if rounded then return self.dag:make("round", words[3], args, { name = rounded }) end
  return self.dag:make(op, words[3], args)
end

function items.op(self, words)
  local op, K, args = self.model.op_of_name[words[2]], words[3], self:args(words, 5)
  if not op then fail("no op %s", words[2]) end
  local env = {}
  for k, input in ipairs(op.inputs) do env[input.name] = args[k] end
  for k, param in ipairs(op_types.own_params(op)) do env[param.name] = args[#op.inputs + k] end
  return self.scope:call_body(op, K, env, args, tonumber(words[4]) + 1, { at = 1, name = op.name })
end

function items.kernel(self, words)
  return rows.graft(self.dag, stage_of(self.model, words[2]), self:args(words, 4), tonumber(words[3]) + 1)
end

-- text: with the mark. Returns { dag, files, inputs, params = param nodes in the order of the kernel's, outputs }
function M.read(model, text, src)
  local state = expr.new_state(model)
  local scope = setmetatable({ state = state, source = src, env = {} }, expr.Scope)
  local self = setmetatable({ model = model, types = model.types, dag = state.dag, scope = scope, nodes = {}, inputs = {} }, Reader)
  local outputs, n = {}, 0
  for item in (text:sub(#M.MARK + 1) .. "; "):gmatch "(.-); " do
    local words = {}
    for word in item:gmatch "%S+" do words[#words + 1] = word end
    if words[1] == "out" then
      outputs[#outputs + 1] = self:node(words[2])
    else
      local made = (items[words[1]] or fail("%s", source.shown(item)))(self, words)
      self.nodes[n], n = made, n + 1
    end
  end
  return { dag = state.dag, files = state.files, inputs = self.inputs, outputs = outputs, order = dag_of.order(outputs) }
end

return M
