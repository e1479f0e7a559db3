-- The sandbox: spec files (Lua data) in, plain validated tables out. Errors are collected as "file:line:col: ..." with
-- the line and a caret. Makes no text, knows no expressions: bodies stay strings with their place in the file.
--
-- A spec is data: it may use the declarators, tables, numbers, strings and arithmetic. Everything else of Lua is refused
-- by its word before anything runs (a loop, a function, string concatenation, a method call), then the chunk runs
-- without any library, without the string metatable, under a limit of steps and memory.

local source = require "gen.source"
local order = require "gen.order"

local M = {}

M.FORMAT = 1
M.MAX_BYTES = 1 << 20
M.MAX_STEPS = 2000000
M.MAX_KILOBYTES = 64 << 10

local REFUSED = {}
for word in ("while for repeat until function goto break return do end if then else elseif _ENV"):gmatch "[%a_]+" do
  REFUSED[word] = true
end

-- Names that C, C++ or CUDA take for themselves, or that a header may define as a macro.
local RESERVED = {}
for word in ([[auto break case char const continue default do double else enum extern float for goto if inline int long
  register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
  alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class compl concept consteval constexpr
  constinit const_cast co_await co_return co_yield decltype delete dynamic_cast explicit export false friend mutable
  namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires
  static_assert static_cast template this thread_local throw true try typeid typename using virtual wchar_t xor xor_eq
  typeof complex imaginary generic main errno linux unix stdin stdout stderr nan near far
  warpsize griddim blockdim blockidx threadidx half]]):gmatch "[%w_]+" do
  RESERVED[word] = true
end

---------------------------------------------------------------------------------------------------- scanning

local function long_bracket(text, position)
  local level = text:match("^%[(=*)%[", position)
  return level and #level, level and position + #level + 2
end

-- Tokens of a Lua text: { kind = "name" | "string" | "number" | "op", text, at, [value, value_at] }, or nil, position, why
function M.scan(text)
  local tokens, at = {}, 1
  while true do
    at = text:find("%S", at)
    if not at then return tokens end
    local two = text:sub(at, at + 1)
    if two == "--" then
      local level, start = long_bracket(text, at + 2)
      if level then
        local _, stop = text:find("]" .. ("="):rep(level) .. "]", start, true)
        if not stop then return nil, at, "unfinished comment" end
        at = stop + 1
      else
        at = text:find("\n", at, true) or #text + 1
      end
    else
      local c = text:sub(at, at)
      local level, start = long_bracket(text, at)
      if level then
        local first, stop = text:find("]" .. ("="):rep(level) .. "]", start, true)
        if not stop then return nil, at, "unfinished string" end
        if text:sub(start, start) == "\n" then start = start + 1 end
        tokens[#tokens + 1] = { kind = "string", at = at, value = text:sub(start, first - 1), value_at = start }
        at = stop + 1
      elseif c == '"' or c == "'" then
        local stop = at + 1
        while true do
          local s = text:sub(stop, stop)
          if s == "" or s == "\n" then return nil, at, "unfinished string" end
          if s == c then break end
          stop = stop + (s == "\\" and 2 or 1)
        end
        tokens[#tokens + 1] = { kind = "string", at = at, value = text:sub(at + 1, stop - 1), value_at = at + 1 }
        at = stop + 1
      elseif c:find "[%a_]" then
        local word = text:match("^[%w_]+", at)
        tokens[#tokens + 1] = { kind = "name", text = word, at = at }
        at = at + #word
      elseif c:find "%d" or text:find("^%.%d", at) then
        local word = text:match("^0[xX][%x%.]*[pP][+-]?%d+", at) or text:match("^0[xX][%x%.]+", at)
          or text:match("^[%d%.]+[eE][+-]?%d+", at) or text:match("^[%d%.]+", at)
        tokens[#tokens + 1] = { kind = "number", text = word, at = at }
        at = at + #word
      else
        local op = text:match("^%.%.%.?", at) or text:match("^::", at) or text:match("^[=~<>]=", at) or c
        tokens[#tokens + 1] = { kind = "op", text = op, at = at }
        at = at + #op
      end
    end
  end
end

-- The first token that is not data, and why.
local function refuse(tokens)
  for _, token in ipairs(tokens) do
    if token.kind == "name" and REFUSED[token.text] then
      return token.at, string.format("'%s': a spec is data, without control flow or functions", token.text)
    elseif token.kind == "op" and (token.text == ".." or token.text == "...") then
      return token.at, "'..': a spec is data, without string assembly"
    elseif token.kind == "op" and (token.text == ":" or token.text == "::") then
      return token.at, "':': a spec is data, without methods or labels"
    end
  end
end

---------------------------------------------------------------------------------------------------- running

-- Runs a spec's text with the declarators in `env`. Returns true, or nil, position, message.
local function run(src, tokens, env)
  local at, why = refuse(tokens)
  if at then return nil, at, why end
  if src.text:sub(1, 1) == "\27" then return nil, 1, "compiled Lua is not a spec" end
  local globals = setmetatable({}, {
    __index = function(_, name)
      local value = env[name]
      if value == nil then
        error({ unknown = tostring(name) }, 0)
      end
      return value
    end,
    __newindex = function(_, name) error({ assigned = tostring(name) }, 0) end,
    __metatable = false,
  })
  local chunk, syntax = load(src.text, "=spec", "t", globals)
  if not chunk then
    local line, message = tostring(syntax):match "^spec:(%d+): (.*)$"
    return nil, M.line_start(src, tonumber(line) or 1), message or tostring(syntax)
  end
  local limit = collectgarbage "count" + M.MAX_KILOBYTES
  local steps = 0
  local strings = debug.getmetatable ""
  debug.setmetatable("", nil)
  debug.sethook(function()
    steps = steps + 100
    if steps > M.MAX_STEPS then error({ limit = "more steps than a spec may take" }, 0) end
    if collectgarbage "count" > limit then error({ limit = "more memory than a spec may take" }, 0) end
  end, "", 100)
  local line_of_error
  local ok, err = xpcall(chunk, function(e)
    for level = 2, 8 do
      local info = debug.getinfo(level, "Sl")
      if not info then break end
      if info.source == "=spec" then
        line_of_error = info.currentline
        break
      end
    end
    return e
  end)
  debug.sethook()
  debug.setmetatable("", strings)
  if ok then return true end
  local position = M.line_start(src, line_of_error or 1)
  if type(err) == "table" then
    local word = err.unknown or err.assigned
    if word then
      for _, token in ipairs(tokens) do
        if token.kind == "name" and token.text == word and token.at >= position then
          position = token.at
          break
        end
      end
      if err.unknown then
        return nil, position, string.format("unknown word '%s'%s", source.shown(word), source.suggest(word, env))
      end
      return nil, position, string.format("'%s' is not a field here; use local %s = ...", source.shown(word),
                                          source.shown(word))
    end
    if err.limit then return nil, position, err.limit end
    return nil, err.at or position, err.message
  end
  return nil, position, (tostring(err):gsub("^spec:%d+: ", ""))
end

-- The byte position where a line starts (its first word).
function M.line_start(src, line)
  local at = 1
  for _ = 2, line do
    local stop = src.text:find("\n", at, true)
    if not stop then break end
    at = stop + 1
  end
  return src.text:find("%S", at) or at
end

---------------------------------------------------------------------------------------------------- declarations

local function is_name(name)
  return type(name) == "string" and #name <= 64 and name:find "^[a-z][a-z0-9_]*$" ~= nil
end

-- A name that may stand in C as it is: an input, an output, a parameter, a function.
local function is_free_name(name)
  return is_name(name) and not RESERVED[name] and not name:find "_t$" and not name:find "^q[nk]?_"
    and not name:find "^quern_"
end

-- Names of an op's operands that the typed functions need for themselves.
local TYPED_FUNCTION = { out = true, call = true, ins = true, outs = true }

-- Whether `name` may be an op's: [a-z][a-z0-9_]*, with a namespace before it or not. Returns its C name, or nil and why.
-- api_names: words that stand behind the prefix in the public header
function M.op_c_name(name, api_names)
  local namespace, base = name:match "^([a-z][a-z0-9_]*)%.([a-z][a-z0-9_]*)$"
  if not is_free_name(base or name) or (namespace and not is_free_name(namespace)) then
    return nil, string.format("'%s' cannot be an op's name: [a-z][a-z0-9_]*, at most 64, no word of C, C++ or CUDA",
                              source.shown(name))
  end
  local c_name = name:gsub("%.", "_")
  if api_names[c_name] or c_name:find "^q[nk]?_" or c_name:find "^builtin_" or c_name:find "^pack_" then
    return nil, string.format("'%s' cannot be an op's name: the library uses %s itself", name, c_name)
  end
  return c_name
end

-- The tokens of the declaration whose name stands on `line` or after: first token's index
local function declaration_start(state, line)
  local from = M.line_start(state.src, line)
  for index, token in ipairs(state.tokens) do
    if token.at >= from then return index end
  end
  return #state.tokens
end

local function fail(state, at, ...)
  state.fail(source.message(state.src, at, string.format(...)))
end

-- Where a string value of a declaration stands: the first token from `index` with that very content.
local function place_of(state, index, value)
  for k = index, #state.tokens do
    local token = state.tokens[k]
    if token.kind == "string" and token.value == value then return token.value_at end
  end
  return state.tokens[index] and state.tokens[index].at or 1
end

-- Keys of the table constructor `field = { a = ..., b = ... }` in the order they are written.
local function written_order(state, index, field)
  local tokens, order = state.tokens, {}
  for k = index, #tokens - 2 do
    if tokens[k].text == field and tokens[k + 1].text == "=" and tokens[k + 2].text == "{" then
      local depth = 1
      for j = k + 3, #tokens do
        local t = tokens[j].text
        if t == "{" then depth = depth + 1 elseif t == "}" then depth = depth - 1 end
        if depth == 0 then return order end
        if depth == 1 and tokens[j].kind == "name" and tokens[j + 1] and tokens[j + 1].text == "=" then
          order[#order + 1] = tokens[j]
        end
      end
    end
  end
  return order
end

-- Checks a table against a schema { field = "type" | { types } }; unknown fields are named with the nearest known one.
local function check_fields(state, index, what, fields, schema)
  local at = state.tokens[index].at
  if type(fields) ~= "table" then
    fail(state, at, "%s: expected a table { ... }", what)
    return false
  end
  local names = {}
  for key in pairs(fields) do names[#names + 1] = tostring(key) end
  order.sort(names)
  for _, key in ipairs(names) do
    local wanted, value = schema[key], fields[key]
    if not wanted then
      local place = at
      for k = index, #state.tokens do
        if state.tokens[k].text == key then
          place = state.tokens[k].at
          break
        end
      end
      fail(state, place, "%s: unknown field '%s'%s", what, source.shown(key), source.suggest(key, schema))
      return false
    end
    if not (" " .. wanted .. " "):find(" " .. type(value) .. " ", 1, true) then
      fail(state, at, "%s: field '%s' is a %s, expected %s", what, key, type(value), (wanted:gsub(" ", " or ")))
      return false
    end
  end
  return true
end

-- "bool condition, x, y" -> { { name, type }, ... }
local function parse_names(state, at, what, text, types)
  local list, seen = {}, {}
  if text:find "^%s*$" then return list end
  for item in (text .. ","):gmatch "([^,]*)," do
    local kind, name = item:match "^%s*([%w_]+)%s+([%w_]+)%s*$"
    if not name then name = item:match "^%s*([%w_]+)%s*$" end
    if not name or not is_free_name(name) or TYPED_FUNCTION[name] then
      fail(state, at, "%s: '%s' is not a name", what, source.shown(item))
      return nil
    end
    if seen[name] then
      fail(state, at, "%s: '%s' stands twice", what, name)
      return nil
    end
    if kind and not types[kind] then
      fail(state, at, "%s: unknown type '%s'%s", what, source.shown(kind), source.suggest(kind, types))
      return nil
    end
    seen[name] = true
    list[#list + 1] = { name = name, type = kind }
  end
  return list
end

local BODY_KEYS = { floating = true, integer = true, bool = true }

-- body: a string, or a table from dtype or kind to string. Returns { key = { text, source } } with key "any" for a string
local function parse_bodies(state, index, what, body, types, schema_only)
  local bodies = {}
  local function add(key, text)
    local at = place_of(state, index, text)
    bodies[key] = source.part(state.src, at, text)
  end
  if type(body) == "string" then
    add("any", body)
    return bodies
  end
  for key, text in pairs(body) do
    if type(key) ~= "string" or type(text) ~= "string" or not (types[key] or BODY_KEYS[key]) then
      fail(state, state.tokens[index].at, "%s: body: '%s' is no dtype or kind", what, source.shown(key))
      return nil
    end
    add(key, text)
  end
  if schema_only and not next(bodies) then return nil end
  return bodies
end

-- dtypes = floating, or "f32", or { "f32", "f64" } -> list of names in order
local function parse_dtypes(state, at, what, value, types)
  local wanted = {}
  if type(value) == "string" then value = { value } end
  for _, name in ipairs(value) do
    if type(name) ~= "string" or not types.by_name[name] or types.by_name[name].kind == "bits" then
      fail(state, at, "%s: unknown dtype '%s'%s", what, source.shown(name),
           source.suggest(tostring(name), types.sets.all))
      return nil
    end
    wanted[name] = true
  end
  local list = {}
  for _, t in ipairs(types.list) do
    if wanted[t.name] then list[#list + 1] = t.name end
  end
  if #list == 0 then
    fail(state, at, "%s: dtypes is empty", what)
    return nil
  end
  return list
end

local OP_SCHEMA = {
  doc = "string", dtypes = "table string", body = "string table", ulp = "table", domain = "table", examples = "table",
  params = "table", result = "string", moves = "boolean", casts = "boolean", inputs = "string", grad = "string table",
  notes = "string",
}

local function declare_op(state, index, name, fields, default_inputs)
  local at, model = state.tokens[index].at, state.model
  if not check_fields(state, index, source.shown(name), fields, OP_SCHEMA) then return end
  local c_name, why = M.op_c_name(name, model.api_names)
  if not c_name then return fail(state, at, "%s", why) end
  if model.op_of_name[name] then
    return fail(state, at, "%s: %s already defined at %s", name,
                model.op_of_name[name].builtin and "a built-in op," or "an op,", model.op_of_name[name].place)
  end
  for _, other in ipairs(model.ops) do
    if other.c_name == c_name then
      return fail(state, at, "%s: its C name %s is that of op %s", name, c_name, other.name)
    end
  end
  if not fields.doc then return fail(state, at, "%s: doc is missing", name) end
  if not fields.body then return fail(state, at, "%s: body is missing", name) end
  if not fields.dtypes then return fail(state, at, "%s: dtypes is missing", name) end
  if default_inputs and fields.inputs then return fail(state, at, "%s: inputs are given by the declarator", name) end
  if not default_inputs and not fields.inputs then return fail(state, at, "%s: inputs is missing", name) end
  local op = {
    name = name, c_name = c_name, doc = fields.doc, builtin = state.builtin, moves = fields.moves or false,
    casts = fields.casts or false, domain = fields.domain, examples = fields.examples or {}, ulp = fields.ulp or {},
    file = state.src.name, params = {},
  }
  op.line = source.place(state.src, at)
  op.place = string.format("%s:%d", op.file, op.line)
  op.inputs = parse_names(state, at, name, fields.inputs or default_inputs, { bool = true })
  if not op.inputs then return end
  if #op.inputs > 8 then return fail(state, at, "%s: at most 8 inputs", name) end
  if fields.result and fields.result ~= "bool" then
    return fail(state, at, "%s: result can only be \"bool\"", name)
  end
  op.result = fields.result
  op.dtypes = parse_dtypes(state, at, name, fields.dtypes, model.types)
  if not op.dtypes then return end
  op.bodies = parse_bodies(state, index, name, fields.body, model.types.by_name)
  if not op.bodies then return end
  local taken = { y = #op.inputs == 1 and op.inputs[1].name ~= "y" or nil, out = true }
  for _, input in ipairs(op.inputs) do taken[input.name] = true end
  for _, token in ipairs(written_order(state, index, "params")) do
    local value = fields.params and fields.params[token.text]
    if value ~= nil then
      if not is_free_name(token.text) or TYPED_FUNCTION[token.text] or taken[token.text] then
        return fail(state, token.at, "%s: '%s' cannot be a parameter's name", name, source.shown(token.text))
      end
      if math.type(value) == nil then
        return fail(state, token.at, "%s: parameter %s: its default must be a number", name, token.text)
      end
      taken[token.text] = true
      op.params[#op.params + 1] = { name = token.text, value = value }
    end
  end
  local n_params = 0
  for key in pairs(fields.params or {}) do
    n_params = n_params + 1
    if type(key) ~= "string" then return fail(state, at, "%s: params need names", name) end
  end
  if n_params ~= #op.params then
    return fail(state, at, "%s: write each parameter as name = number in params = { ... }", name)
  end
  if #op.params > 16 then return fail(state, at, "%s: at most 16 parameters", name) end
  for dtype, bound in pairs(op.ulp) do
    if not model.types.by_name[dtype] or math.type(bound) == nil or not (bound >= 0.5 and bound < 1e6) then
      return fail(state, at, "%s: ulp: expected { f32 = number >= 0.5, ... }", name)
    end
  end
  for k, example in pairs(op.examples) do
    if type(k) ~= "number" or type(example) ~= "table" then
      return fail(state, at, "%s: examples: expected { { x = 0.0, y = 0.0 }, ... }", name)
    end
    for key, value in pairs(example) do
      if type(key) ~= "string" or not taken[key] or math.type(value) == nil then
        return fail(state, at, "%s: examples: '%s' is no operand, or its value no number", name, source.shown(key))
      end
    end
  end
  model.ops[#model.ops + 1] = op
  model.op_of_name[name] = op
end

local FUNC_SCHEMA = {
  doc = "string", args = "string", result = "string", body = "string", ulp = "table", derivation = "string",
  domain = "table string", notes = "string",
}

local function declare_func(state, index, name, fields)
  local at, model = state.tokens[index].at, state.model
  local schema = setmetatable({}, { __index = FUNC_SCHEMA })
  for key, value in pairs(FUNC_SCHEMA) do schema[key] = value end
  for _, t in ipairs(model.types.list) do schema[t.name] = "string" end
  if not check_fields(state, index, source.shown(name), fields, schema) then return end
  if not is_free_name(name) then return fail(state, at, "'%s' cannot be a function's name", source.shown(name)) end
  if model.func_of_name[name] then
    return fail(state, at, "%s: already defined at %s", name, model.func_of_name[name].place)
  end
  local func = { name = name, doc = fields.doc, result = fields.result, constants = state.constants, tables = state.tables,
                 bodies = {}, ulp = fields.ulp, file = state.src.name }
  func.place = string.format("%s:%d", state.src.name, (source.place(state.src, at)))
  func.args = parse_names(state, at, name, fields.args or "x", model.types.by_name)
  if not func.args then return end
  if func.result and not model.types.by_name[func.result] then
    return fail(state, at, "%s: unknown result type '%s'", name, source.shown(func.result))
  end
  if fields.body then func.bodies.any = source.part(state.src, place_of(state, index, fields.body), fields.body) end
  for _, t in ipairs(model.types.list) do
    local body = fields[t.name]
    if body then func.bodies[t.name] = source.part(state.src, place_of(state, index, body), body) end
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
    if not is_constant_name(name) or not types.by_name[kind] or count < 1 or count & (count - 1) ~= 0 then
      return fail(state, at, "table %s: expected { \"f64\", ... } with a power of two of numbers", source.shown(name))
    end
    local items = {}
    for k = 1, count do
      items[k] = value[k + 1]
      if math.type(items[k]) == nil then return fail(state, at, "table %s: item %d is no number", name, k) end
    end
    state.tables[name] = { name = name, type = kind, items = items, place = state.src.name }
  end
end

---------------------------------------------------------------------------------------------------- loading

-- Each declarator of a file only notes what it was given: what a spec says is checked after its text has run, with the
-- string library back. statements: list of { declare, line, name, fields }
local function environment(state, statements)
  local model = state.model
  local function declarator(declare)
    return function(name)
      local statement = { declare = declare, line = debug.getinfo(2, "l").currentline, name = name, is_open = true }
      statements[#statements + 1] = statement
      return function(fields)
        if not statement.is_open then error({ message = "one name, one { ... }" }, 0) end
        statement.fields, statement.is_open = fields, false
      end
    end
  end
  local function block(declare)
    return function(fields)
      local line = debug.getinfo(2, "l").currentline
      statements[#statements + 1] = { declare = declare, line = line, fields = fields }
    end
  end
  if state.kind == "types" then
    return {
      dtype = declarator(function(_, _, name, fields)
        fields.name = name
        model.dtypes[#model.dtypes + 1] = fields
      end),
    }
  end
  local env = {
    INFINITY = math.huge, NAN = 0.0 / 0.0, PI = math.pi,
    format = block(function(_, index, _, version)
      if version ~= M.FORMAT then
        fail(state, state.tokens[index].at, "format %s is not known here: this generator reads format %d",
             source.shown(version), M.FORMAT)
      end
    end),
    unary = declarator(function(_, index, name, fields) declare_op(state, index, name, fields, "x") end),
    binary = declarator(function(_, index, name, fields) declare_op(state, index, name, fields, "x, y") end),
    op = declarator(function(_, index, name, fields) declare_op(state, index, name, fields, nil) end),
    func = declarator(function(_, index, name, fields) declare_func(state, index, name, fields) end),
    constants = block(function(_, index, _, values) declare_constants(state, index, values) end),
    tables = block(function(_, index, _, values) declare_tables(state, index, values) end),
  }
  for set, names in pairs(model.types.sets) do env[set] = table.move(names, 1, #names, 1, {}) end
  return env
end

-- Runs what a file's declarators noted.
local function declare_all(state, statements)
  for _, statement in ipairs(statements) do
    local index = declaration_start(state, statement.line)
    local name = statement.name
    if statement.is_open and type(name) == "string" then
      fail(state, state.tokens[index].at, "%s: its { ... } is missing", source.shown(name))
    elseif (name ~= nil or statement.is_open ~= nil) and type(name) ~= "string" then
      fail(state, state.tokens[index].at, "expected a name in quotes, then { ... }")
    else
      statement.declare(state, index, name, statement.fields)
    end
  end
end

-- A fresh model. types_text: the content of dsl/types.lua
function M.new_model(types_name, types_text)
  local model = { dtypes = {}, ops = {}, op_of_name = {}, func_of_name = {}, files = {}, api_names = {} }
  local errors = M.load(model, types_name, types_text, { kind = "types", builtin = true })
  if #errors > 0 then error("bug: " .. errors[1]) end
  model.types = require "gen.promote".new(model.dtypes)
  return model
end

-- Reads one spec text into the model. options.kind: "ops" (default) or "types"; options.builtin: from dsl/ (its functions
-- may use raw_* primitives). Returns a list of errors; the model is unchanged by a file that has any.
function M.load(model, name, text, options)
  local errors = {}
  name = name:gsub("[%c\127-\255]", "?")
  text = text:gsub("\r\n?", "\n")
  local src = source.new(name, text)
  local function add(message) errors[#errors + 1] = message end
  if #text > M.MAX_BYTES then
    add(source.message(src, 1, string.format("a spec may have %d bytes", M.MAX_BYTES)))
    return errors
  end
  local tokens, at, why = M.scan(text)
  if not tokens then
    add(source.message(src, at, why))
    return errors
  end
  local trial = setmetatable({ ops = {}, op_of_name = setmetatable({}, { __index = model.op_of_name }),
                               func_of_name = setmetatable({}, { __index = model.func_of_name }) }, { __index = model })
  for index, op in ipairs(model.ops) do trial.ops[index] = op end
  local n_before = #model.ops
  local state = { model = trial, src = src, tokens = tokens, fail = add, constants = {}, tables = {},
                  kind = options and options.kind or "ops", builtin = options and options.builtin or false }
  local statements = {}
  local ok, position, message = run(src, tokens, environment(state, statements))
  if ok then
    declare_all(state, statements)
  else
    add(source.message(src, position, message))
  end
  if #errors == 0 then
    for index = n_before + 1, #trial.ops do
      model.ops[index] = trial.ops[index]
      model.op_of_name[trial.ops[index].name] = trial.ops[index]
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
