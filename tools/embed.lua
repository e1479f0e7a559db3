-- SPDX-License-Identifier: Apache-2.0
--
-- Writes the C file that the quern-gen module carries the generator in: the modules of gen/ that gen.service needs, as
-- bytecode; the model of the built-in specs, as a chunk that builds it; the templates and headers of expressions' kernels.
--   lua5.4 tools/embed.lua OUT.c
-- Bytecode is of one version of Lua: the Lua that runs this must be the version of the library that the module opens. The module
-- checks it by a canary, a text with its bytecode.

local root = arg[0]:match "^(.*)/[^/]*$" or "."
root = root .. "/.."
package.path = root .. "/?.lua;" .. package.path

local main = require "gen.main"
local emit = require "gen.base.files"
local kinds = require "gen.kinds.kinds"
local number = require "gen.base.number"
local order = require "gen.base.order"
local banner = require "gen.targets.c.banner"
local targets = require "gen.targets.all"

---------------------------------------------------------------------------------------------------- the model

-- Of a built-in op or function, what is of use after its file was read.
local OP_FIELDS = { "name", "c_name", "builtin", "kind", "file", "line", "location", "inputs", "outputs", "assigns", "dtypes",
                    "reducer", "accumulate", "result", "empty", "is_reduced", "initial", "before", "has_states",
                    "params", "constants", "tables", "backward", "backward_of", "reads", "by", "aliases", table.unpack(kinds.marks) }
local FUNC_FIELDS = { "name", "result", "constants", "tables", "builtin", "location", "args" }

local function plain(item, fields)
  local copy = { bodies = {} }
  for _, field in ipairs(fields) do copy[field] = item[field] end
  for key, body in pairs(item.bodies) do copy.bodies[key] = { name = body.name, text = body.text, derive = body.derive } end
  return copy
end

-- What gen.service's restore makes a model of.
local function plain_model(model)
  local result = { dtypes = {}, ops = {}, funcs = {}, api_names = order.keys(model.api_names) }
  for k, t in ipairs(model.dtypes) do
    result.dtypes[k] = {}
    for key, value in pairs(t) do result.dtypes[k][key] = value end
    result.dtypes[k].index, result.dtypes[k].size = nil, nil -- made anew
  end
  for k, op in ipairs(model.ops) do result.ops[k] = plain(op, OP_FIELDS) end
  for k, name in ipairs(order.keys(model.func_of_name)) do result.funcs[k] = plain(model.func_of_name[name], FUNC_FIELDS) end
  return result
end

local function number_text(value)
  if math.type(value) == "integer" then return string.format("0x%x", value) end
  if value ~= value then return "(0.0 / 0.0)" end
  if value == 0 then return 1 / value < 0 and "-0.0" or "0.0" end
  if value == math.huge then return "1e999" elseif value == -math.huge then return "-1e999" end
  return number.hex(value)
end

-- A Lua chunk that returns the value. A table that is met twice is one table there, too.
local function chunk_of(value)
  local count, names, lines = {}, {}, { "local t = {}" }
  local function visit(item)
    if type(item) ~= "table" then return end
    count[item] = (count[item] or 0) + 1
    if count[item] == 1 then
      for _, inner in pairs(item) do visit(inner) end
    end
  end
  visit(value)
  local n = 0
  local function text_of(item)
    if type(item) == "number" then return number_text(item) end
    if type(item) == "string" then return string.format("%q", item) end
    if type(item) ~= "table" then return tostring(item) end
    if names[item] then return names[item] end
    local parts = {}
    for k = 1, #item do parts[k] = text_of(item[k]) end
    local keys = {}
    for key in pairs(item) do
      if type(key) == "string" then keys[#keys + 1] = key end
    end
    for _, key in ipairs(order.sort(keys)) do parts[#parts + 1] = string.format("[%q] = %s", key, text_of(item[key])) end
    local text = "{ " .. table.concat(parts, ", ") .. " }"
    if count[item] > 1 then
      n = n + 1
      names[item] = string.format("t[%d]", n)
      lines[#lines + 1] = names[item] .. " = " .. text
      return names[item]
    end
    return text
  end
  local text = text_of(value)
  lines[#lines + 1] = "return " .. text
  return table.concat(lines, "\n")
end

---------------------------------------------------------------------------------------------------- the files

local CANARY = [[
local upvalue, list = 1, { 1, 2.5, "text", nil, true, ... }
local function each(self, n, ...)
  local total <const> = 7
  for k = 1, n, 2 do self[k] = upvalue + k // 2 ~ 3 end
  for key, value in next, self do
    if not value or key == "x" and value > total then goto done end
    self[key] = value .. key, -value, #value, ~value << 1
  end
  ::done::
  while n < 10.0 do n = n + select("#", ...) end
  return self:each(...)
end
return each, function(...) upvalue = { ... } return each(upvalue, ...) end
]]

local BOOT = [[
local read, limits = ...
local service = require "gen.service"
return service.new({ model = function() return service.restore(require "model") end, read = read }, limits)
]]

local function bytecode(name, text) return string.dump(assert(load(text, "=" .. name, "t")), true) end

-- The modules that gen.service needs, itself among them: name -> text.
local function modules_of(name, found)
  if found[name] then return found end
  found[name] = assert(emit.read(root .. "/" .. name:gsub("%.", "/") .. ".lua"))
  for inner in found[name]:gmatch 'require "(gen%.[%w_.]+)"' do modules_of(inner, found) end
  return found
end

local model, _, errors = main.builtin_model(root)
if #errors > 0 then
  io.stderr:write(table.concat(errors, "\n"), "\n")
  os.exit(1)
end
local files = {
  ["canary.lua"] = CANARY, canary = bytecode("canary", CANARY), boot = bytecode("boot", BOOT),
  model = bytecode("model", chunk_of(plain_model(model))),
}
-- what is read to make texts at run time
local function read(name)
  files[name] = assert(emit.read(root .. "/" .. name))
  return files[name]
end
for _, target in ipairs(targets.list) do target.sources(read, model.types) end
for name, text in pairs(modules_of("gen.service", {})) do files[name] = bytecode(name, text) end

local out = { table.concat(banner.c("the generator, for the module that runs it"), "\n"), '#include "toolchain/gen_embedded.h"\n' }
local rows = {}
for k, name in ipairs(order.keys(files)) do
  local bytes = files[name]
  local lines = {}
  for at = 1, #bytes, 32 do lines[#lines + 1] = "  " .. table.concat({ bytes:byte(at, at + 31) }, ",") .. "," end
  out[#out + 1] = string.format("static const unsigned char file_%d[] = { /* %s */\n%s\n};\n", k, name, table.concat(lines, "\n"))
  rows[k] = string.format('  {"%s", file_%d, %d},', name, k, #bytes)
end
out[#out + 1] = string.format("const qn_embedded_file qn_embedded_files[] = {\n%s\n};\nconst int qn_n_embedded_files = %d;\n",
                              table.concat(rows, "\n"), #rows)
local text = table.concat(out, "\n")
local path = arg[1] or error("usage: lua5.4 tools/embed.lua OUT.c", 0)
local written, why = emit.write_if_changed(path, text)
if written == nil then error(why, 0) end
