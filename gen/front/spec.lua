-- SPDX-License-Identifier: Apache-2.0
--
-- Spec files in, plain validated tables out. Errors are collected as "file:line:col: ..." with the line and a caret. Makes no
-- text, knows no expressions: bodies stay strings with their position in the file. What a file may do is sandbox.lua's; names,
-- positions, fields and the declaration of ops are in the files of these names. This file has the rest: files, functions, constants, tables.

local declare_op = require "gen.front.declare_op"
local fields_of = require "gen.front.fields"
local kinds = require "gen.kinds.kinds"
local names_of = require "gen.front.names"
local positions = require "gen.front.positions"
local promote = require "gen.front.promote"
local sandbox = require "gen.front.sandbox"
local source = require "gen.base.source"

local M = {}

M.op_c_name, M.put_under_prefix, M.clash = names_of.op_c_name, names_of.put_under_prefix, names_of.clash
local fail, text_of, line_at = positions.fail, positions.text_of, positions.line_at

M.FORMAT = 1
M.MAX_DECLARATIONS = 2000 -- of one file
M.MAX_ERRORS = 100

---------------------------------------------------------------------------------------------------- declarations

local FUNC_SCHEMA = {
  doc = "string", args = "string", result = "string", body = "string", ulp = "table", derivation = "string",
  domain = "table string", notes = "string",
}

local function declare_func(state, index, name, fields)
  local at, model = state.tokens[index].at, state.model
  local schema = {}
  for key, value in pairs(FUNC_SCHEMA) do schema[key] = value end
  for _, t in ipairs(model.types.list) do schema[t.name] = "string" end
  if not fields_of.check_fields(state, index, source.shown(name), fields, schema) then return end
  local means_something = names_of.is_word_of_bodies(model, name) or model.primitives[name]
    or (not state.builtin and model.op_of_name[name])
  local why = names_of.name_failure(name)
  if name:find(".", 1, true) then why = "functions have no namespace" end
  if means_something then why = "it has a meaning in bodies already" end
  if why then return fail(state, at, "'%s' cannot be a function's name: %s", source.shown(name), why) end
  if model.func_of_name[name] then
    state.n_taken = state.n_taken + 1
    return fail(state, at, "%s: already defined at %s", name, model.func_of_name[name].location)
  end
  local func = { name = name, doc = fields.doc, result = fields.result, constants = state.constants, tables = state.tables,
                 bodies = {}, ulp = fields.ulp, file = state.src.name }
  func.location = string.format("%s:%d", state.src.name, line_at(state, at))
  func.args = fields_of.parse_names(state, at, name, fields.args or "x", model.types.by_name)
  if not func.args then return end
  if func.result and not model.types.by_name[func.result] then
    return fail(state, at, "%s: unknown result type '%s'", name, source.shown(func.result))
  end
  if fields.body then func.bodies.any = text_of(state, index, "body", fields.body) end
  for _, t in ipairs(model.types.list) do
    local body = fields[t.name]
    if body then func.bodies[t.name] = text_of(state, index, t.name, body) end
  end
  if not next(func.bodies) then return fail(state, at, "%s: no body", name) end
  model.func_of_name[name] = func
end

local function is_constant_name(name)
  return type(name) == "string" and #name <= 64 and name:find "^[A-Z][A-Z0-9_]*$" ~= nil
end

local function declare_constants(state, index, values)
  if type(values) ~= "table" then return fail(state, state.tokens[index].at, "constants: expected { NAME = number }") end
  for name, value in pairs(values) do
    if not is_constant_name(name) or math.type(value) == nil then
      return fail(state, state.tokens[index].at, "constants: expected { NAME = number }, NAME in capitals")
    end
    state.constants[name] = value
  end
end

local function declare_tables(state, index, values)
  local at, types = state.tokens[index].at, state.model.types
  if type(values) ~= "table" then return fail(state, at, "tables: expected { NAME = { \"f64\", ... } }") end
  for name, value in pairs(values) do
    local kind = type(value) == "table" and value[1]
    local count = kind and #value - 1 or 0
    local t = types.by_name[kind]
    local is_float = t and t.kind == "float"
    if not is_constant_name(name) or not t or t.compute ~= kind or not (is_float or t.kind == "integer") or count < 1
      or count & (count - 1) ~= 0 then
      return fail(state, at, "table %s: expected { \"f64\", ... }: f32, f64 or an integer type, then a power of two of numbers",
                  source.shown(name))
    end
    local items = {}
    for k = 1, count do
      local item = value[k + 1]
      items[k] = is_float and math.type(item) and item or math.tointeger(item)
      if items[k] == nil then
        return fail(state, at, "table %s: item %d is no %s", name, k, is_float and "number" or "integer")
      end
    end
    state.tables[name] = { name = name, type = kind, items = items, location = state.src.name }
  end
end

---------------------------------------------------------------------------------------------------- loading

-- Each declarator of a file only notes its arguments: a spec is checked after its text has run, with the
-- string library back. statements: list of { declare, line, name, fields }
local function environment(state, statements)
  local model = state.model
  local function declarator(declare, word)
    return function(name)
      local statement = { declare = declare, line = debug.getinfo(2, "l").currentline, name = name, word = word, is_open = true }
      statements[#statements + 1] = statement
      return function(fields)
        if not statement.is_open then error({ message = "one name, one { ... }" }, 0) end
        statement.fields, statement.is_open = fields, false
      end
    end
  end
  local function block(declare, word)
    return function(fields)
      local line = debug.getinfo(2, "l").currentline
      statements[#statements + 1] = { declare = declare, line = line, fields = fields, word = word }
    end
  end
  if state.kind == "types" then
    return {
      dtype = declarator(function(_, _, name, fields)
        fields.name = name
        model.dtypes[#model.dtypes + 1] = fields
      end, "dtype"),
    }
  end
  local env = {
    INFINITY = math.huge, NAN = 0.0 / 0.0, PI = math.pi,
    format = block(function(_, index, _, version)
      if version ~= M.FORMAT then
        fail(state, state.tokens[index].at, "format %s is not known here: this generator reads format %d",
             source.shown(version), M.FORMAT)
      end
    end, "format"),
    unary = declarator(function(_, index, name, fields) declare_op.declare(state, index, name, fields, "x") end, "unary"),
    binary = declarator(function(_, index, name, fields) declare_op.declare(state, index, name, fields, "x, y") end, "binary"),
    op = declarator(function(_, index, name, fields) declare_op.declare(state, index, name, fields, nil) end, "op"),
    func = declarator(function(_, index, name, fields) declare_func(state, index, name, fields) end, "func"),
    constants = block(function(_, index, _, values) declare_constants(state, index, values) end, "constants"),
    tables = block(function(_, index, _, values) declare_tables(state, index, values) end, "tables"),
  }
  for _, kind in ipairs(kinds.list) do
    if kind.declarator then
      env[kind.declarator] = declarator(function(_, index, name, fields)
        declare_op.declare(state, index, name, fields, nil, kind)
      end, kind.declarator)
    end
  end
  for set, names in pairs(model.types.sets) do env[set] = table.move(names, 1, #names, 1, {}) end
  return env
end

-- Processes the declarations that a file's declarators noted.
local function declare_all(state, statements)
  local before = {}
  if #statements > M.MAX_DECLARATIONS then
    return fail(state, 1, "a spec may have %d declarations", M.MAX_DECLARATIONS)
  end
  state.index = positions.index_of(state.src, state.tokens)
  for _, statement in ipairs(statements) do
    if state.n_errors >= M.MAX_ERRORS then return end
    local name = statement.name
    local key = string.format("%d %s %s", statement.line, statement.word, type(name) == "string" and name or "")
    local index
    index, state.last = positions.declaration_range(state, statement.line, statement.word, type(name) == "string" and name or nil,
                                          before[key] or 0)
    before[key] = (before[key] or 0) + 1
    if statement.is_open and type(name) == "string" then
      fail(state, state.tokens[index].at, "%s: its { ... } is missing", source.shown(name))
    elseif (name ~= nil or statement.is_open ~= nil) and type(name) ~= "string" then
      fail(state, state.tokens[index].at, "expected a name in quotes, then { ... }")
    else
      statement.declare(state, index, name, statement.fields)
    end
  end
end

-- A fresh model. types_text: the content of dsl/types.lua; is_preview: with the dtypes in preview
function M.new_model(types_name, types_text, is_preview)
  local model = { dtypes = {}, ops = {}, op_of_name = {}, op_of_c_name = {}, func_of_name = {}, files = {},
                  api_names = {}, primitives = {} }
  local errors = M.load(model, types_name, types_text, { kind = "types", builtin = true })
  if #errors > 0 then error("bug: " .. errors[1]) end
  model.dtypes, model.in_preview = promote.kept(model.dtypes, is_preview)
  model.types = promote.new(model.dtypes)
  return model
end

-- Reads one spec text into the model. options.kind: "ops" (default) or "types"; options.builtin: from dsl/ (its functions
-- may use raw_* primitives). Returns a list of errors; the model is unchanged by a file that has any. `exists` in the list: they
-- all say that a name is taken.
function M.load(model, name, text, options)
  local errors = {}
  name = name:gsub("[%c\127-\255]", "?")
  if #text <= sandbox.MAX_BYTES then text = text:gsub("\r\n?", "\n") end
  local src = source.new(name, text)
  local state
  local function add(message)
    errors[#errors + 1] = message
    if state then
      state.n_errors = #errors
      errors.exists = state.n_taken == #errors
    end
  end
  if #text > sandbox.MAX_BYTES then
    add(source.message(src, 1, string.format("a spec may have %d bytes", sandbox.MAX_BYTES)))
    return errors
  end
  local tokens, at, why = sandbox.scan(text)
  if not tokens then
    add(source.message(src, at, why))
    return errors
  end
  local trial = setmetatable({ ops = {}, op_of_name = setmetatable({}, { __index = model.op_of_name }),
                               op_of_c_name = setmetatable({}, { __index = model.op_of_c_name }),
                               func_of_name = setmetatable({}, { __index = model.func_of_name }) }, { __index = model })
  for index, op in ipairs(model.ops) do trial.ops[index] = op end
  local n_before = #model.ops
  state = { model = trial, src = src, tokens = tokens, fail = add, constants = {}, tables = {}, n_errors = 0, n_taken = 0,
            kind = options and options.kind or "ops", builtin = options and options.builtin or false }
  local statements = {}
  local ok, position, message = sandbox.run(src, tokens, environment(state, statements))
  if ok then
    declare_all(state, statements)
  else
    add(source.message(src, position, message))
  end
  if #errors == 0 then
    for index = n_before + 1, #trial.ops do
      model.ops[index] = trial.ops[index]
      model.op_of_name[trial.ops[index].name] = trial.ops[index]
      model.op_of_c_name[trial.ops[index].c_name] = trial.ops[index]
    end
    for key, func in next, trial.func_of_name do
      func.builtin = state.builtin
      model.func_of_name[key] = func
    end
    model.files[#model.files + 1] = name
  end
  return errors
end

return M
