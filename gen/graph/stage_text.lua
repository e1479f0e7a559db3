-- SPDX-License-Identifier: Apache-2.0
--
-- The text of a stage of a row (runtime/run/stage/stage_text.h) -> its DAG. The runtime writes it from the values of an expression that
-- reduces, so that a compiled stage computes what its interpreter does.

local dag_of = require "gen.graph.dag.dag"
local expr = require "gen.graph.body.expr"
local kernel_name = require "gen.base.kernel_name"
local kinds = require "gen.kinds.kinds"
local op_types = require "gen.graph.body.op_types"
local primitives = require "gen.graph.dag.primitives"
local rows = require "gen.graph.dag.rows"
local source = require "gen.base.source"
local states = require "gen.graph.states"

local M = {}

local BODIES = { lift = true, finish = true }

M.MARK = "rows: "
M.COUNT = 1 << 20 -- the index of the number of elements, as a param: it is behind all others

local function fail(...) error({ kind = "syntax", at = 1, message = "a stage of a row that is not understood: " .. string.format(...) }, 0) end

-- The name of a kernel of an op without built ones: of its stage, by number; or of a reduction's or scan's combine, of a scan's lift or
-- finish, K being its accumulator's dtype
function M.kernel_name(op, K, what) return string.format("%s:%s:%s", op.name, K, what) end

-- The DAG of a stage by its kernel's name, which is that of a built one, qk_OP_DTYPE_stageN_..., or that of M.kernel_name
function M.stage_of(model, name)
  local c_name, K, number = kernel_name.unmarked(name):match "^([^:]+)_(%w+)_stage(%d+)_"
  local op = c_name and model.op_of_c_name[c_name]
  if not op then
    c_name, K, number = name:match "^([^:]+):(%w+):(%w+)$"
    op = c_name and model.op_of_name[c_name]
    if op and number == "combine" and op.reducer then return expr.combine(model, op, K) end
    if op and BODIES[number] and op.has_states then return states.of(model, op, K)[number] end
  end
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

function Reader:type(word) return (self.types.by_name[word or ""] and word) or fail("no dtype %s", tostring(word)) end

local function index_of(word) return math.tointeger(tonumber(word or "")) or fail("no number %s", tostring(word)) end

local items = {}

items["in"] = function(self, words)
  local index = index_of(words[2])
  local node = self.dag:node("input", self:type(words[3]), {}, { index = index + 1, name = "x" .. index })
  node.is_computed = words[4] == "computed" or nil
  self.inputs[index + 1] = node
  return node
end

function items.param(self, words)
  local index, type_name = index_of(words[2]), self:type(words[3])
  return self.dag:node("param", type_name, {}, { index = index, name = index .. "_" .. type_name })
end

function items.count(self)
  self.count = self.dag:node("param", "i64", {}, { index = M.COUNT, name = "count" })
  return self.count
end

function items.const(self, words)
  local t, bits = self.types.by_name[words[2]], math.tointeger(tonumber("0x" .. tostring(words[3])))
  if not t or not bits then fail("no constant %s", tostring(words[3])) end
  if t.kind == "integer" and t.signed and t.bits < 64 then bits = (bits ~ 1 << (t.bits - 1)) - (1 << (t.bits - 1)) end
  return self.dag:node("const", t.name, {}, { value = bits })
end

function items.prim(self, words)
  local op, type_name, args = words[2], self:type(words[3]), self:args(words, 4)
  local rounded = op:match "^round_(.+)$"
  local row = primitives.of[rounded and "round" or op]
  if not row or #args ~= row.arguments then fail("%s of %d values", op, #args) end
  if rounded then return self.dag:make("round", type_name, args, { name = self:type(rounded) }) end
  return self.dag:make(op, type_name, args)
end

function items.op(self, words)
  local op, K, args = self.model.op_of_name[words[2]], words[3], self:args(words, 5)
  if not op then fail("no op %s", words[2]) end
  if #args ~= #op.inputs + #op_types.own_params(op) then fail("%s of %d values", op.name, #args) end
  local env = {}
  for k, input in ipairs(op.inputs) do env[input.name] = args[k] end
  for k, param in ipairs(op_types.own_params(op)) do env[param.name] = args[#op.inputs + k] end
  return (self.scope:call_body(op, K, env, args, tonumber(words[4]) + 1, { at = 1, name = op.name }))
end

function items.kernel(self, words)
  return rows.graft(self.dag, M.stage_of(self.model, words[2]), self:args(words, 4), tonumber(words[3]) + 1)
end

-- The ops that a stage's text calls, each once, in order.
function M.ops_called(model, text)
  local list, seen = {}, {}
  for what, name in text:gmatch "%f[%w](%l+) ([^%s:]+)" do
    local op = (what == "op" or what == "kernel") and model.op_of_name[name]
    if op and not seen[op] then list[#list + 1], seen[op] = op, true end
  end
  return list
end

-- Checks that the operands have these dtypes. A record may have been damaged.
local function check(types, nodes, dtypes, what)
  if #nodes ~= #dtypes then fail("%d %ss for %d", #dtypes, what, #nodes) end
  for k, node in ipairs(nodes) do
    local t = types.by_name[dtypes[k]]
    if not t or (node.type ~= t.compute and (what == "input" or node.type ~= "bool")) then fail("%s %d is no %s", what, k, dtypes[k]) end
  end
end

-- What the kernel does with its one value, NAME and the accumulators' dtype.
function items.reduce(self, words)
  local op, A = self.model.op_of_name[words[2] or ""], self:type(words[3])
  if not (op and op.reducer) then fail("no reduction %s", tostring(words[2])) end
  self.fused = kinds.of(op).fused(self.types, op, A, expr.combine(self.model, op, A)) or fail("%s of %s", op.name, A)
end

local function read(self, text)
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
  return outputs
end

-- text: with the mark; of operands of these dtypes. Returns { dag, files, inputs, params = param nodes in the order of the kernel's, outputs }
function M.read(model, text, src, in_dtypes, out_dtypes)
  local state = expr.new_state(model)
  local scope = setmetatable({ state = state, source = src, env = {} }, expr.Scope)
  local self = setmetatable({ model = model, types = model.types, dag = state.dag, scope = scope, nodes = {}, inputs = {} }, Reader)
  local ok, outputs = pcall(read, self, text)
  if not ok then
    if type(outputs) == "table" then error(outputs, 0) end
    fail("%s", source.shown(text:sub(1, 60)))
  end
  check(self.types, self.inputs, in_dtypes, "input")
  check(self.types, outputs, out_dtypes, "output")
  return { dag = state.dag, files = state.files, inputs = self.inputs, outputs = outputs, order = dag_of.order(outputs), fused = self.fused }
end

return M
