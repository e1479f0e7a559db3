-- SPDX-License-Identifier: Apache-2.0
--
-- Writes what the manual says of ops, dtypes and commands, as JSON on standard output. Run in the sources:
--   lua5.4 docs/site/facts.lua [SPEC]...
-- Ops of the specs are among those of the library.

package.path = "./?.lua;" .. package.path

local bounds = require "gen.tools.bounds"
local command_texts = require "gen.tools.command_texts"
local derivatives = require "docs.site.derivatives"
local json_string = require("gen.targets.c.text").json_string
local foreign = require "gen.front.foreign"
local kinds = require "gen.kinds.kinds"
local list = require "gen.tools.list"
local number = require "gen.base.number"
local operands = require "gen.targets.operands"
local order = require "gen.base.order"
local python_facts = require "gen.tools.python_facts"

-- JSON of a value. Tables with a first element are arrays; so are empty ones.
local function json(value)
  if math.type(value) then
    if value ~= value or value == math.huge or value == -math.huge then return json_string(tostring(value)) end
    return number.text(value)
  end
  if type(value) ~= "table" then return type(value) == "string" and json_string(value) or tostring(value) end
  local parts = {}
  if value[1] ~= nil or next(value) == nil then
    for k, item in ipairs(value) do parts[k] = json(item) end
    return "[" .. table.concat(parts, ", ") .. "]"
  end
  for _, key in ipairs(order.keys(value)) do parts[#parts + 1] = json_string(key) .. ": " .. json(value[key]) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

-- The texts of a field that may differ by dtype: { { "any" or a dtype, text }, ... }
local function texts_of(bodies)
  local out = {}
  for _, key in ipairs(order.keys(bodies or {})) do
    local body = bodies[key]
    out[#out + 1] = { key, body.text, body.derive and table.concat(body.derive, " ") or "" }
  end
  return out
end

local LONGEST = 14 -- the logarithm of the longest row

-- The declared bound of an op over axes in f32: its formula, u, and depth of rows of 1, 2, 4, ... elements; nil: it declares none.
local function bound_of(types, op)
  local text, u = nil, nil
  if not op.backward_of and op.bound then text, u = bounds.text(types, op, "f32") end
  if not text then return nil end
  local depths = {}
  for k = 0, LONGEST do depths[k + 1] = kinds.of(op).depth(1 << k) end
  return { text = text, u = u, depths = depths }
end

local function op_facts(model, row)
  local op = row.op
  local facts = {
    name = op.name, doc = op.doc, kind = op.kind, spec = operands.location(op), c_name = op.c_name,
    family = (op.file:match "([^/]+)%.lua$" or op.file), bodies = texts_of(op.bodies), backward = op.backward or "",
    backward_of = op.backward_of or "", derived = derivatives.of(model, op) or {}, is_reduced = op.is_reduced and true or false,
    dtypes = row.inputs, domain = op.domain or {}, error = python_facts.bound(model.types, op),
    example = { python_facts.example(op) }, inputs = {}, outputs = {}, params = {}, ulp = {},
  }
  local forward = model.op_of_name[op.backward_of or ""]
  facts.takes_all = (op.is_reduced or forward and forward.is_reduced) and true or false
  if op.reducer then facts.parts = texts_of(op.reducer.bodies) end
  for k, input in ipairs(op.inputs) do facts.inputs[k] = { name = input.name, type = input.type or "" } end
  for k, output in ipairs(op.outputs) do facts.outputs[k] = { name = output.name, type = output.type or "", dtypes = row.outputs[k] } end
  for k, param in ipairs(op.params) do
    facts.params[k] = { name = param.name, role = param.role or "", value = param.value == nil and "" or param.value }
  end
  for _, dtype in ipairs(op.dtypes) do
    local t = model.types.by_name[dtype]
    if t and t.built and t.kind == "float" and not op.backward_of then
      facts.ulp[dtype] = op.ulp[dtype]
    end
  end
  if next(facts.ulp) == nil then facts.ulp = nil end
  facts.bound = bound_of(model.types, op)
  return facts
end

local function command_facts(commands)
  local out = {}
  for _, command in ipairs(commands.commands) do
    if not command.hidden then
      out[#out + 1] = { name = command.name, about = command.about, help = command_texts.command_help(commands.name, command) }
    end
  end
  return { name = commands.name, about = commands.about, commands = out, notes = commands.notes }
end

local rows, errors, model = list.ops(".", { table.unpack(arg) })
if not rows then
  io.stderr:write(table.concat(errors, "\n"), "\n")
  os.exit(1)
end
local facts = { version = model.version, ops = {}, dtypes = {}, foreign = foreign.functions,
                programs = { command_facts(require "tools.quern.commands"), command_facts(require "gen.tools.commands") } }
for k, row in ipairs(rows) do facts.ops[k] = op_facts(model, row) end
for _, t in ipairs(model.types.list) do
  if t.built then facts.dtypes[#facts.dtypes + 1] = t.name end
end
print(json(facts))
