-- Spec files in, plain validated tables out. Errors are collected as "file:line:col: ..." with the line and a caret. Makes no
-- text, knows no expressions: bodies stay strings with their place in the file. What a file may do is sandbox.lua's.

local source = require "gen.base.source"
local order = require "gen.base.order"
local sandbox = require "gen.front.sandbox"
local kinds = require "gen.kinds.kinds"

local M = {}

M.FORMAT = 1
M.MAX_DECLARATIONS = 2000 -- of one file
M.MAX_ERRORS = 100

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

---------------------------------------------------------------------------------------------------- declarations

local function is_name(name)
  return type(name) == "string" and #name <= 64 and name:find "^[a-z][a-z0-9_]*$" ~= nil
end

-- A name that may stand in C as it is: an input, an output, a parameter, a function.
local function is_free_name(name)
  return is_name(name) and not RESERVED[name] and not name:find "_t$" and not name:find "^q[nk]?_"
    and not name:find "^quern_"
end

-- Words that mean something in a body already: types, statements.
local function is_word_of_bodies(model, name)
  return model.types.by_name[name] ~= nil or name == "rare" or name == "param" or name == "lookup" or name == "canonical"
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
  if name == "grad" then return nil, "'grad' cannot be an op's name: it is the derivative of an expression" end
  if api_names[c_name] or c_name:find "^q[nk]?_" or c_name:find "^builtin_" or c_name:find "^pack_" then
    return nil, string.format("'%s' cannot be an op's name: the library uses %s itself", name, c_name)
  end
  return c_name
end

-- Where things stand in a file: { starts = of lines, names = "word name" -> indices of tokens that begin such a declaration,
-- words = word -> the same whatever the name, strings = content -> index of the token, false where several have it }.
local function index_of(src, tokens)
  local index = { starts = { 1 }, names = {}, words = {}, strings = {} }
  for stop in src.text:gmatch "\n()" do index.starts[#index.starts + 1] = stop end
  local function add(map, key, k)
    map[key] = map[key] or {}
    table.insert(map[key], k)
  end
  for k, token in ipairs(tokens) do
    if token.kind == "name" then
      local follows = tokens[k + 1]
      if follows and follows.text == "(" then follows = tokens[k + 2] end
      add(index.words, token.text, k)
      if follows and follows.value then add(index.names, token.text .. " " .. follows.value, k) end
    elseif token.kind == "string" then
      index.strings[token.value] = index.strings[token.value] == nil and k
    end
  end
  return index
end

-- The first k in [low, high] for which holds(k); high + 1 if there is none. What holds for k holds behind it.
local function search(low, high, holds)
  while low <= high do
    local middle = (low + high) // 2
    if holds(middle) then high = middle - 1 else low = middle + 1 end
  end
  return low
end

local function line_at(state, at)
  local starts = state.index.starts
  return search(1, #starts, function(k) return starts[k] > at end) - 1
end

-- The tokens of a declaration, first and last index: the word, its name if it has one, { ... }. It starts on `line`; of
-- several on one line it is the `skip`-th more.
local function declaration_range(state, line, word, name, skip)
  local tokens, starts = state.tokens, state.index.starts
  local from = starts[line] or starts[#starts]
  local places = (name and state.index.names[word .. " " .. name]) or (not name and state.index.words[word]) or {}
  local first = places[search(1, #places, function(k) return tokens[places[k]].at >= from end) + skip]
  if not first then
    first = math.min(#tokens, search(1, #tokens, function(k) return tokens[k].at >= from end))
    return first, first
  end
  local depth = 0
  for last = first + 1, #tokens do
    if tokens[last].text == "{" then depth = depth + 1 end
    if tokens[last].text == "}" then
      depth = depth - 1
      if depth == 0 then return first, last end
    end
  end
  return first, first
end

local function fail(state, at, ...)
  state.fail(source.message(state.src, at, string.format(...)))
end

-- The text of a field of the declaration at hand, with its place: that of `field = "..."` in it, else of the only string
-- with that content in the file (a local's), else none.
local function text_of(state, index, field, value)
  local tokens = state.tokens
  for k = index, state.last - 2 do
    local token = tokens[k + 2]
    if tokens[k].text == field and tokens[k + 1].text == "=" and token.kind == "string" and token.value == value then
      return source.part(state.src, token.value_at, value)
    end
  end
  local found = state.index.strings[value]
  return found and source.part(state.src, tokens[found].value_at, value) or source.new(state.src.name, value)
end

-- Keys of the table constructor `field = { a = ..., b = ... }` of the declaration at hand, as they are written.
local function written_order(state, index, field)
  local tokens, written = state.tokens, {}
  for k = index, state.last - 2 do
    if tokens[k].text == field and tokens[k + 1].text == "=" and tokens[k + 2].text == "{" then
      local depth = 1
      for j = k + 3, #tokens do
        local t = tokens[j].text
        if t == "{" then depth = depth + 1 elseif t == "}" then depth = depth - 1 end
        if depth == 0 then return written end
        if depth == 1 and tokens[j].kind == "name" and tokens[j + 1] and tokens[j + 1].text == "=" then
          written[#written + 1] = tokens[j]
        end
      end
    end
  end
  return written
end

-- Checks a table against a schema { field = "types, separated by blanks" }; unknown fields are named with the nearest known one.
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
  local model = state.model
  local list, seen = {}, {}
  if text:find "^%s*$" then return list end
  for item in (text .. ","):gmatch "([^,]*)," do
    local kind, name = item:match "^%s*([%w_]+)%s+([%w_]+)%s*$"
    if not name then name = item:match "^%s*([%w_]+)%s*$" end
    if not name or not is_free_name(name) or TYPED_FUNCTION[name] or is_word_of_bodies(model, name) then
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
local function parse_bodies(state, index, what, body, types)
  if type(body) == "string" then return { any = text_of(state, index, "body", body) } end
  local bodies = {}
  for key, text in pairs(body) do
    if type(key) ~= "string" or type(text) ~= "string" or not (types[key] or BODY_KEYS[key]) then
      fail(state, state.tokens[index].at, "%s: body: '%s' is no dtype or kind", what, source.shown(key))
      return nil
    end
    bodies[key] = text_of(state, index, key, text)
  end
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
  params = "table", result = "string", outputs = "string", inputs = "string", grad = "string table boolean", grad_ulp = "table",
  notes = "string",
}
for field, field_types in pairs(kinds.schema) do OP_SCHEMA[field] = field_types end

-- What is wrong with a bound of an op: ulp is that of the dtype it computes in.
local function bound_trouble(types, op, dtype, bound)
  local t = types.by_name[dtype]
  if not t or math.type(bound) == nil or not (bound >= 0.5 and bound < 1e6) then
    return "expected { f32 = number >= 0.5, ... }"
  end
  local is_taken = false
  for _, name in ipairs(op.dtypes) do
    if kinds.of(op).compute_type(types, op, name) == dtype and t.kind == "float" then return nil end
    is_taken = is_taken or name == dtype
  end
  if is_taken and t.kind == "float" then
    return string.format("%s is computed in %s and rounded once more: %s's bound is for both", dtype, t.compute, t.compute)
  end
  return is_taken and dtype .. " is exact" or "the op does not take " .. dtype
end

M.MAX_OUTPUTS = 8

-- The outputs of an op: list of { name, type = the dtype it has whatever the inputs', or nil }. Returns nil after an error.
local function parse_outputs(state, at, name, fields, op)
  local types = state.model.types
  local function is_dtype(word) return types.by_name[word] ~= nil and types.by_name[word].kind ~= "bits" end
  if fields.outputs then
    local refused = { "result" }
    for _, kind in ipairs(kinds.list) do refused[#refused + 1] = kind.no_outputs and kind.mark end
    for _, field in ipairs(refused) do
      if fields[field] ~= nil then return fail(state, at, "%s: %s is not for an op that names its outputs", name, field) end
    end
    local known = {}
    for _, t in ipairs(types.list) do known[t.name] = is_dtype(t.name) or nil end
    local outputs = parse_names(state, at, name, fields.outputs, known)
    if outputs and (#outputs == 0 or #outputs > M.MAX_OUTPUTS) then
      return fail(state, at, "%s: outputs: expected 1 to %d names", name, M.MAX_OUTPUTS)
    end
    for _, output in ipairs(outputs or {}) do
      for _, input in ipairs(op.inputs) do
        if input.name == output.name then return fail(state, at, "%s: '%s' is an input and an output", name, input.name) end
        if #outputs > 1 and input.name:find "^out%d$" then -- as kernels call the outputs
          return fail(state, at, "%s: '%s' cannot be an input's name beside several outputs", name, input.name)
        end
      end
    end
    return outputs
  end
  local kind = kinds.of(op)
  local result = kind.result and kind.result(fields) or fields.result
  if result and not is_dtype(result) then
    return fail(state, at, "%s: result: unknown dtype '%s'%s", name, source.shown(result),
                source.suggest(result, types.sets.all))
  end
  if result and kind.no_result then return fail(state, at, "%s: %s", name, kind.no_result) end
  return { { name = #op.inputs == 1 and op.inputs[1].name ~= "y" and "y" or "out", type = result } }
end

-- grad: the body of the op's derivative, which for several inputs assigns grad_<input>; or an expression for each input; or
-- false: it has none. Left out, it is derived from the body. Sets op.grad: false, or { text, by = names of inputs }. Returns nil
-- after an error.
local function parse_grad(state, index, op, grad)
  local at = state.tokens[index].at
  if grad == nil or grad == false then
    op.grad = grad
    return true
  end
  if grad == true then return fail(state, at, "%s: grad: expected a body, a table of them by input, or false", op.name) end
  if not kinds.of(op).has_derivative or #op.outputs > 1 or op.outputs[1].type then
    return fail(state, at, "%s: grad is for ops of one output, a float", op.name)
  end
  local names, lines = {}, {}
  op.grad = { by = {} }
  for _, input in ipairs(op.inputs) do
    if input.name == "grad" then return fail(state, at, "%s: an op with an input named grad has no derivative", op.name) end
    if not input.type then names[#names + 1], names[input.name] = input.name, true end
  end
  if type(grad) == "string" then
    op.grad.text = text_of(state, index, "grad", grad)
    for _, name in ipairs(names) do
      if #names == 1 or grad:find("%f[%w_]grad_" .. name .. "%s*=%f[^=]") then table.insert(op.grad.by, name) end
    end
  else
    for name, text in pairs(grad) do
      if not names[name] or type(text) ~= "string" then
        return fail(state, at, "%s: grad: '%s' is no input with a derivative", op.name, source.shown(name))
      end
    end
    for _, name in ipairs(names) do
      if grad[name] then
        table.insert(op.grad.by, name)
        lines[#lines + 1] = string.format("grad_%s = %s;", name, (grad[name]:gsub("^%s+", ""):gsub("[%s;]+$", "")))
        op.grad.text = text_of(state, index, name, grad[name])
      end
    end
    if #lines > 1 then op.grad.text = source.new(state.src.name, table.concat(lines, "\n")) end
  end
  if #op.grad.by == 0 then return fail(state, at, "%s: grad assigns no grad_%s", op.name, names[1] or "x") end
  return true
end

local function declare_op(state, index, name, fields, default_inputs)
  local at, model = state.tokens[index].at, state.model
  if not check_fields(state, index, source.shown(name), fields, OP_SCHEMA) then return end
  local c_name, why = M.op_c_name(name, model.api_names)
  if not c_name then return fail(state, at, "%s", why) end
  if model.op_of_name[name] then
    state.n_taken = state.n_taken + 1
    return fail(state, at, "%s: %s already defined at %s", name,
                model.op_of_name[name].builtin and "a built-in op," or "an op,", model.op_of_name[name].place)
  end
  if model.op_of_c_name[c_name] then
    state.n_taken = state.n_taken + 1
    return fail(state, at, "%s: its C name %s is that of op %s", name, c_name, model.op_of_c_name[c_name].name)
  end
  if not fields.doc then return fail(state, at, "%s: doc is missing", name) end
  local kind = kinds.of_fields(fields)
  local trouble = kind.trouble and kind.trouble(fields, state.builtin)
  if trouble then return fail(state, at, "%s: %s", name, trouble) end
  if not fields.body and kind.has_body then return fail(state, at, "%s: body is missing", name) end
  if not fields.dtypes then return fail(state, at, "%s: dtypes is missing", name) end
  if default_inputs and fields.inputs then return fail(state, at, "%s: inputs are given by the declarator", name) end
  if not default_inputs and not fields.inputs then return fail(state, at, "%s: inputs is missing", name) end
  local op = {
    name = name, c_name = c_name, doc = fields.doc, builtin = state.builtin, kind = kind.name, domain = fields.domain,
    examples = fields.examples or {}, ulp = fields.ulp or {}, grad_ulp = fields.grad_ulp, file = state.src.name, params = {},
    constants = state.constants, tables = state.tables,
  }
  if kind.declare then kind.declare(op, fields) end
  op.line = line_at(state, at)
  op.place = string.format("%s:%d", op.file, op.line)
  op.inputs = parse_names(state, at, name, fields.inputs or default_inputs, { bool = true })
  if not op.inputs then return end
  if #op.inputs > 8 then return fail(state, at, "%s: at most 8 inputs", name) end
  trouble = kind.check and kind.check(op, fields)
  if trouble then return fail(state, at, "%s: %s", name, trouble) end
  op.outputs = parse_outputs(state, at, name, fields, op)
  if not op.outputs then return end
  op.assigns = fields.outputs ~= nil -- its body assigns its outputs
  op.dtypes = parse_dtypes(state, at, name, fields.dtypes, model.types)
  if not op.dtypes then return end
  op.bodies = not kind.has_body and {} or parse_bodies(state, index, name, fields.body, model.types.by_name)
  if not op.bodies then return end
  local taken = {}
  for _, output in ipairs(op.outputs) do taken[output.name] = true end
  for _, input in ipairs(op.inputs) do taken[input.name] = true end
  for _, word in ipairs(kind.names or {}) do taken[word] = true end
  for _, token in ipairs(written_order(state, index, "params")) do
    local value = fields.params and fields.params[token.text]
    if value ~= nil then
      if not is_free_name(token.text) or TYPED_FUNCTION[token.text] or taken[token.text]
        or is_word_of_bodies(model, token.text) then
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
  for _, field in ipairs { "ulp", "grad_ulp" } do
    for dtype, bound in pairs(fields[field] or {}) do
      local bad = bound_trouble(model.types, op, dtype, bound)
      if bad then return fail(state, at, "%s: %s: %s", name, field, bad) end
    end
  end
  if not parse_grad(state, index, op, fields.grad) then return end
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
  model.op_of_c_name[c_name] = op
end

local FUNC_SCHEMA = {
  doc = "string", args = "string", result = "string", body = "string", ulp = "table", derivation = "string",
  domain = "table string", notes = "string",
}

local function declare_func(state, index, name, fields)
  local at, model = state.tokens[index].at, state.model
  local schema = {}
  for key, value in pairs(FUNC_SCHEMA) do schema[key] = value end
  for _, t in ipairs(model.types.list) do schema[t.name] = "string" end
  if not check_fields(state, index, source.shown(name), fields, schema) then return end
  local means_something = is_word_of_bodies(model, name) or model.primitives[name]
    or (not state.builtin and model.op_of_name[name])
  if not is_free_name(name) or means_something then
    return fail(state, at, "'%s' cannot be a function's name", source.shown(name))
  end
  if model.func_of_name[name] then
    state.n_taken = state.n_taken + 1
    return fail(state, at, "%s: already defined at %s", name, model.func_of_name[name].place)
  end
  local func = { name = name, doc = fields.doc, result = fields.result, constants = state.constants, tables = state.tables,
                 bodies = {}, ulp = fields.ulp, file = state.src.name }
  func.place = string.format("%s:%d", state.src.name, line_at(state, at))
  func.args = parse_names(state, at, name, fields.args or "x", model.types.by_name)
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
    state.tables[name] = { name = name, type = kind, items = items, place = state.src.name }
  end
end

---------------------------------------------------------------------------------------------------- loading

-- Each declarator of a file only notes what it was given: what a spec says is checked after its text has run, with the
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
    unary = declarator(function(_, index, name, fields) declare_op(state, index, name, fields, "x") end, "unary"),
    binary = declarator(function(_, index, name, fields) declare_op(state, index, name, fields, "x, y") end, "binary"),
    op = declarator(function(_, index, name, fields) declare_op(state, index, name, fields, nil) end, "op"),
    func = declarator(function(_, index, name, fields) declare_func(state, index, name, fields) end, "func"),
    constants = block(function(_, index, _, values) declare_constants(state, index, values) end, "constants"),
    tables = block(function(_, index, _, values) declare_tables(state, index, values) end, "tables"),
  }
  for set, names in pairs(model.types.sets) do env[set] = table.move(names, 1, #names, 1, {}) end
  return env
end

-- Runs what a file's declarators noted.
local function declare_all(state, statements)
  local before = {}
  if #statements > M.MAX_DECLARATIONS then
    return fail(state, 1, "a spec may have %d declarations", M.MAX_DECLARATIONS)
  end
  state.index = index_of(state.src, state.tokens)
  for _, statement in ipairs(statements) do
    if state.n_errors >= M.MAX_ERRORS then return end
    local name = statement.name
    local key = string.format("%d %s %s", statement.line, statement.word, type(name) == "string" and name or "")
    local index
    index, state.last = declaration_range(state, statement.line, statement.word, type(name) == "string" and name or nil,
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

-- A fresh model. types_text: the content of dsl/types.lua
function M.new_model(types_name, types_text)
  local model = { dtypes = {}, ops = {}, op_of_name = {}, op_of_c_name = {}, func_of_name = {}, files = {},
                  api_names = {}, primitives = {} }
  local errors = M.load(model, types_name, types_text, { kind = "types", builtin = true })
  if #errors > 0 then error("bug: " .. errors[1]) end
  model.types = require "gen.front.promote".new(model.dtypes)
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
