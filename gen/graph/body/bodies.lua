-- SPDX-License-Identifier: Apache-2.0
--
-- Bodies: scope.lua's methods for expressions as they are parsed, statements, rare blocks and results.

local parse = require "gen.front.parse"
local scope = require "gen.graph.body.scope"
local source = require "gen.base.source"
local weak_of = require "gen.graph.body.weak"

local Scope, dtype_of, CONSTANTS = scope.Scope, scope.dtype_of, scope.CONSTANTS
local is_weak, is_float = weak_of.is_weak, weak_of.is_float

-- One step of work; a limit on all of them.
function Scope:step(node)
  self.state.steps = self.state.steps + 1
  if self.state.steps > scope.MAX_STEPS then self:fail_as("limit", node, "more than %d steps of work", scope.MAX_STEPS) end
end

function Scope:eval(node)
  self:step(node)
  local kind = node.kind
  if kind == "number" then return { weak = node.value, is_pattern = math.type(node.value) == "integer" and node.value < 0 } end
  if kind == "name" then
    local value = self.env[node.name]
    if value then return value end
    local number = self.constants and self.constants[node.name] or CONSTANTS[node.name]
    if number then return { weak = number } end
    local known = {}
    for name in pairs(self.env) do known[name] = true end
    for name in pairs(self.constants or {}) do known[name] = true end
    for name in pairs(CONSTANTS) do known[name] = true end
    self:fail(node, "unknown name '%s'%s", source.shown(node.name), source.suggest(node.name, known))
  end
  if kind == "binary" then return self:eval_binary(node) end
  if kind == "unary" then return self:eval_unary(node) end
  if kind == "call" then return self:eval_call(node) end
  if kind == "select" then
    local condition, yes, no = self:eval(node[1]), self:eval(node[2]), self:eval(node[3])
    return self:select(condition, yes, no, node)
  end
  local type_name = self:type_of(node.type, node)
  local value = self:eval(node[1])
  if is_weak(value) then
    -- a literal cast directly keeps its value up to that one rounding
    local kind_of_type = self.state.types.by_name[type_name].kind
    if not is_float(value) or kind_of_type == "float" then
      local t = self.state.types.by_name[type_name]
      if t.compute == type_name then return self:strong(value, type_name, node) end
      return self:cast(self:strong(value, t.compute, node), type_name)
    end
    value = self:strong(value, "f64", node)
  end
  return self:cast(value, type_name)
end

function Scope:type_of(name, node)
  if name ~= "T" then return name end
  if not self.T then self:fail(node, "T has no meaning here") end
  return self.T
end

-- Labels a value's node with its name in the body. The last label holds: that of the outer body.
local function label(value, name)
  if not is_weak(value) and #scope.node_of(value).args > 0 then scope.node_of(value).label = name end
end

-- The value of `type name = expression;`
function Scope:assigned(statement)
  local value = self:eval(statement.value)
  if not statement.type then return value end
  local type_name = self:type_of(statement.type, statement)
  local t = self.state.types.by_name[type_name]
  if is_weak(value) then value = self:strong(value, t.compute, statement) end
  if value.type ~= type_name and t.kind ~= "float" and self:kind(value) == "float" then
    self:fail(statement, "%s %s = a %s: write the cast, (%s)", type_name, statement.name, dtype_of(value), type_name)
  end
  return self:cast(value, type_name)
end

-- The same for an assignment that may be to an output with a type of its own. outputs: name -> output, of a body that assigns
-- them
function Scope:assigned_output(statement, outputs)
  local value, output = self:assigned(statement), outputs[statement.name]
  if output and statement.is_auto then self:fail(statement, "%s is an output: write %s = ...", statement.name, statement.name) end
  if not output then return value end
  local wanted = output.type or not is_weak(value) and self.T
  if not wanted then return value end
  if is_weak(value) then return self:strong(value, wanted, statement) end
  if value.type ~= self.state.types.by_name[wanted].compute then
    self:fail(statement, "%s is an output of %s, given %s: write the cast, (%s)", statement.name, wanted, value.type,
              output.type or "T")
  end
  return value
end

function Scope:run_rare(statement, outputs)
  local condition = self:condition(self:eval(statement.condition), statement)
  local inner = setmetatable({ env = setmetatable({}, { __index = self.env }) }, { __index = self })
  local changed = {}
  for _, assign in ipairs(statement.statements) do
    local value = Scope.assigned_output(inner, assign, outputs)
    local is_local = assign.type or assign.is_auto
    if is_local then
      if inner.env[assign.name] then self:fail(assign, "'%s' is already defined", assign.name) end
    else
      local old = self.env[assign.name]
      if not old and outputs[assign.name] then
        self:fail(assign, "the output %s is to be assigned before the block, which changes it for some elements only",
                  assign.name)
      elseif not old then
        self:fail(assign, "'%s' is not a local of this body%s", source.shown(assign.name),
                  source.suggest(assign.name, self.env))
      end
      if is_weak(value) then value = self:strong(value, is_weak(old) and self:settle(old, assign).type or old.type, assign) end
      label(value, assign.name .. "_rare")
      changed[#changed + 1] = { name = assign.name, value = value, old = old, at = assign.at }
    end
    if is_local then label(value, assign.name) end
    rawset(inner.env, assign.name, value)
  end
  local last = {}
  for _, change in ipairs(changed) do last[change.name] = change end
  for _, change in ipairs(changed) do
    if last[change.name] == change then
      local old = self:settle(change.old, change)
      if old.type ~= change.value.type then
        self:fail(change, "rare: %s is %s, its new value %s", change.name, old.type, change.value.type)
      end
      self.env[change.name] = self.state.dag:make("rare", old.type, { condition, change.value, old })
      label(self.env[change.name], change.name)
    end
  end
end

-- Evaluates the body: its result, or, where it assigns `outputs`, the list of them. A body marked as a derivative is run by
-- model.derive, set by derive.lua.
function Scope:run(outputs)
  if not self.source.derive then return self:run_body(outputs) end
  local list = self.state.model.derive(self)
  return outputs and list or list[1]
end

-- Parses (once per text) and evaluates the body as it is written.
function Scope:run_body(outputs)
  local body = self.state.parsed[self.source]
  if not body then
    local ok, result = pcall(parse.parse, self.source.text, self.state.types.by_name)
    if not ok then
      if type(result) ~= "table" then error(result, 0) end
      result.source = self.source
      error(result, 0)
    end
    body = result
    self.state.parsed[self.source] = body
  end
  for alias, name in pairs(self.owner and self.owner.aliases or {}) do self.env[alias] = self.env[name] end
  local output_of_name = {}
  for _, output in ipairs(outputs or {}) do output_of_name[output.name] = output end
  for _, statement in ipairs(body.statements) do
    self:step(statement)
    if statement.kind == "rare" then
      self:run_rare(statement, output_of_name)
    elseif statement.kind == "param" then
      self:fail(statement, "param belongs to a host's expression; an op lists its params")
    else
      if self.env[statement.name] then self:fail(statement, "'%s' is already defined", statement.name) end
      self.env[statement.name] = self:assigned_output(statement, output_of_name)
      label(self.env[statement.name], statement.name)
    end
  end
  if outputs then
    if body.result then self:fail(body.result, "an op that names its outputs assigns them and returns nothing") end
    local list = {}
    for k, output in ipairs(outputs) do
      list[k] = self.env[output.name]
      if not list[k] then self:fail({ at = #self.source.text + 1 }, "the body does not assign its output %s", output.name) end
    end
    return list
  end
  if not body.result then
    self:fail({ at = #self.source.text + 1 }, "the body has no result: end it with return ...;")
  end
  return self:settle(self:eval(body.result), body.result)
end

return Scope
