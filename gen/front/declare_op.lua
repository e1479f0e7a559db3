-- SPDX-License-Identifier: Apache-2.0
--
-- The declaration of an op: its fields, checked. Fields of one kind of op are checked by that kind (gen/kinds).

local fields_of = require "gen.front.fields"
local kinds = require "gen.kinds.kinds"
local names = require "gen.front.names"
local positions = require "gen.front.positions"
local row_shape = require "gen.front.row_shape"
local source = require "gen.base.source"

local M = {}

local fail, text_of, written_order, line_at = positions.fail, positions.text_of, positions.written_order, positions.line_at
local check_fields, parse_names = fields_of.check_fields, fields_of.parse_names

local BODY_KEYS = { floating = true, integer = true, bool = true }

-- The bodies of a field: a string, or a table from dtype or kind to string. Returns { key = { text, source } } with key "any" for a string
local function parse_bodies(state, index, what, field, body, types)
  if type(body) == "string" then return { any = text_of(state, index, field, body) } end
  local bodies = {}
  for key, text in pairs(body) do
    if type(key) ~= "string" or type(text) ~= "string" or not (types[key] or BODY_KEYS[key]) then
      fail(state, state.tokens[index].at, "%s: %s: '%s' is no dtype or kind", what, field, source.shown(key))
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
  notes = "string", counts = "string", fraction = "string", narrow = "table",
}

-- The fields of an op of a kind that is declared by a word of its own, or of all others.
local schema_of = {}
local function schema(declared)
  local key = declared or M
  if not schema_of[key] then
    schema_of[key] = {}
    for _, list in ipairs { OP_SCHEMA, declared and declared.schema or kinds.schema } do
      for field, field_types in pairs(list) do schema_of[key][field] = field_types end
    end
  end
  return schema_of[key]
end

-- What is wrong with a bound of an op: ulp is that of the dtype it computes in.
local function bound_failure(types, op, dtype, bound)
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

-- narrow: a second body for a dtype that is computed in another one, for kernels with all operands stored in that dtype. Rounded to the
-- dtype, its results equal those of the main body for every number of the dtype. By i32: a second body for the dtypes that are computed
-- in, with the inputs of `counts` as i32, equal for every i32. Returns nil after an error.
local function parse_narrow(state, index, name, fields, op)
  local at, types = state.tokens[index].at, state.model.types.by_name
  if not state.builtin then return fail(state, at, "%s: narrow: only the library's own ops may have bodies of the same results", name) end
  local bodies = parse_bodies(state, index, name, "narrow", fields.narrow, types)
  for key in pairs(bodies or {}) do
    local is_stored = types[key] and types[key].compute ~= key and #op.inputs == 1
    if not (is_stored or key == "i32" and op.counts > 0 and #op.params == 0) then
      local stored = {}
      for _, t in ipairs(state.model.types.list) do stored[#stored + 1] = t.compute ~= t.name and t.name or nil end
      return fail(state, at, "%s: narrow: expected bodies by %s, of one input, or by i32, of an input that counts", name, table.concat(stored, " or "))
    end
  end
  return bodies
end

-- counts: the inputs that are whole numbers, though of a float dtype, by name; fraction: those that, where they are negative, make the
-- result of integers a fraction. Returns them as bits; nil after an error.
local function parse_inputs(state, at, name, field, text, op)
  local bits, listed = 0, text and parse_names(state, at, name, text, {}) or {}
  for _, item in ipairs(listed) do
    local before = bits
    for k, input in ipairs(op.inputs) do
      if input.name == item.name and not input.type then bits = bits | 1 << (k - 1) end
    end
    if bits == before then return fail(state, at, "%s: %s: '%s' is no input of a dtype", name, field, item.name) end
  end
  return bits
end

M.MAX_OUTPUTS = 8
local INPUT_TYPES = { bool = true }

-- The outputs of an op: list of { name, type }. type: its dtype if that does not depend on the inputs', or nil. Returns nil after
-- an error.
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
  local result = kind.result and kind.result(fields) or not kind.result_dtype and fields.result or nil
  if result and not is_dtype(result) then
    return fail(state, at, "%s: result: unknown dtype '%s'%s", name, source.shown(result),
                source.suggest(result, types.sets.all))
  end
  if result and kind.no_result then return fail(state, at, "%s: %s", name, kind.no_result) end
  return { { name = op.output_name or "out", type = result } }
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
  local kind = kinds.of(op)
  local result = kind.result_dtype and kind.result_dtype(state.model.types, op, "f32")
  if not kind.has_derivative or #op.outputs > 1 or op.outputs[1].type or (result and state.model.types.by_name[result].kind ~= "float") then
    return fail(state, at, "%s: grad is for ops of one output, a float", op.name)
  end
  local wrt, lines = {}, {}
  op.grad = { by = {} }
  for _, input in ipairs(op.inputs) do
    if input.name == "grad" then return fail(state, at, "%s: an op with an input named grad has no derivative", op.name) end
    if not input.type and not input.is_row then wrt[#wrt + 1], wrt[input.name] = input.name, true end
  end
  if type(grad) == "string" then
    op.grad.text = text_of(state, index, "grad", grad)
    for _, name in ipairs(wrt) do
      if #wrt == 1 or grad:find("%f[%w_]grad_" .. name .. "%s*=%f[^=]") then table.insert(op.grad.by, name) end
    end
  else
    for name, text in pairs(grad) do
      if not wrt[name] or type(text) ~= "string" then
        return fail(state, at, "%s: grad: '%s' is no input with a derivative", op.name, source.shown(name))
      end
    end
    for _, name in ipairs(wrt) do
      if grad[name] then
        table.insert(op.grad.by, name)
        lines[#lines + 1] = string.format("grad_%s = %s;", name, (grad[name]:gsub("^%s+", ""):gsub("[%s;]+$", "")))
        op.grad.text = text_of(state, index, name, grad[name])
      end
    end
    if #lines > 1 then op.grad.text = source.new(state.src.name, table.concat(lines, "\n")) end
  end
  if #op.grad.by == 0 then return fail(state, at, "%s: grad assigns no grad_%s", op.name, wrt[1] or "x") end
  return true
end

-- Whether a value is a list of numbers.
local function is_list(value)
  local n = 0
  for key, item in pairs(type(value) == "table" and value or { 0, false }) do
    if math.type(key) ~= "integer" or math.type(item) == nil then return false end
    n = n + 1
  end
  return type(value) == "table" and n == #value
end

-- default_inputs: those that the declarator gives; declared: the kind, if the declarator names it
function M.declare(state, index, name, fields, default_inputs, declared)
  local at, model = state.tokens[index].at, state.model
  if not check_fields(state, index, source.shown(name), fields, schema(declared)) then return end
  local c_name, why = names.op_c_name(name, model.api_names)
  if not c_name then return fail(state, at, "%s", why) end
  if model.op_of_name[name] then
    state.n_taken = state.n_taken + 1
    return fail(state, at, "%s: %s already defined at %s", name,
                model.op_of_name[name].builtin and "a built-in op," or "an op,", model.op_of_name[name].location)
  end
  if model.op_of_c_name[c_name] then
    state.n_taken = state.n_taken + 1
    return fail(state, at, "%s: its C name %s is that of op %s", name, c_name, model.op_of_c_name[c_name].name)
  end
  if not fields.doc then return fail(state, at, "%s: doc is missing", name) end
  local kind = declared or kinds.of_fields(fields)
  local failure = kind.failure and kind.failure(fields, state.builtin, model.types)
  if failure then return fail(state, at, "%s: %s", name, failure) end
  if not fields.body and kind.has_body and not kind.body then return fail(state, at, "%s: body is missing", name) end
  if not fields.dtypes then return fail(state, at, "%s: dtypes is missing", name) end
  if default_inputs and fields.inputs then return fail(state, at, "%s: inputs are given by the declarator", name) end
  default_inputs = default_inputs or (not fields.inputs and kind.default_inputs) or nil
  if not default_inputs and not fields.inputs then return fail(state, at, "%s: inputs is missing", name) end
  local op = {
    name = name, c_name = c_name, doc = fields.doc, builtin = state.builtin, kind = kind.name, domain = fields.domain,
    examples = fields.examples or {}, ulp = fields.ulp or {}, grad_ulp = fields.grad_ulp, file = state.src.name, params = {},
    constants = state.constants, tables = state.tables,
  }
  local is_sound = true
  local function bodies_of(field)
    local bodies = parse_bodies(state, index, name, field, fields[field], model.types.by_name)
    is_sound = is_sound and bodies ~= nil
    return bodies
  end
  if kind.declare then kind.declare(op, fields, bodies_of, model.types) end
  if not is_sound then return end
  op.line = line_at(state, at)
  op.location = string.format("%s:%d", op.file, op.line)
  op.inputs = parse_names(state, at, name, fields.inputs or default_inputs, kind.input_types or INPUT_TYPES)
  if not op.inputs then return end
  if #op.inputs > 8 then return fail(state, at, "%s: at most 8 inputs", name) end
  failure = kind.check and kind.check(op, fields, model)
  if failure then return fail(state, at, "%s: %s", name, failure) end
  op.counts = parse_inputs(state, at, name, "counts", fields.counts, op)
  op.fraction_in = op.counts and parse_inputs(state, at, name, "fraction", fields.fraction, op)
  if not op.fraction_in then return end
  op.outputs = parse_outputs(state, at, name, fields, op)
  if not op.outputs then return end
  op.assigns = fields.outputs ~= nil -- its body assigns its outputs
  op.dtypes = parse_dtypes(state, at, name, fields.dtypes, model.types)
  if not op.dtypes then return end
  if kind.body then
    op.bodies = { any = source.part(state.src, at, kind.body(op)) }
  else
    op.bodies = not kind.has_body and {} or bodies_of "body"
  end
  if not op.bodies then return end
  op.narrow = fields.narrow and parse_narrow(state, index, name, fields, op) or {}
  if fields.narrow and not next(op.narrow) then return end
  if kind.shape_params then
    op.is_reduced = op.is_reduced or row_shape.is_reduced(model, op)
    op.params = kind.shape_params(op)
  end
  local n_shape_params = #op.params
  if kind.served then op.dtypes = kind.served(model.types, op) end
  if #op.dtypes == 0 then return fail(state, at, "%s: it has a body for none of its dtypes", name) end
  local taken = {}
  for _, output in ipairs(op.outputs) do taken[output.name] = true end
  for _, input in ipairs(op.inputs) do taken[input.name] = true end
  for _, word in ipairs(kind.names or {}) do taken[word] = true end
  for _, param in ipairs(op.params) do
    if taken[param.name] then
      return fail(state, at, "%s: '%s' is a parameter of every op that reduces or scans", name, param.name)
    end
    taken[param.name] = true
  end
  for _, token in ipairs(written_order(state, index, "params")) do
    local value = fields.params and fields.params[token.text]
    if value ~= nil then
      if not names.is_free_name(token.text) or names.TYPED_FUNCTION[token.text] or taken[token.text]
        or names.is_word_of_bodies(model, token.text) then
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
  if n_params ~= #op.params - n_shape_params then
    return fail(state, at, "%s: write each parameter as name = number in params = { ... }", name)
  end
  if #op.params > 16 then return fail(state, at, "%s: at most 16 parameters", name) end
  for _, field in ipairs { "ulp", "grad_ulp" } do
    for dtype, bound in pairs(fields[field] or {}) do
      local bad = bound_failure(model.types, op, dtype, bound)
      if bad then return fail(state, at, "%s: %s: %s", name, field, bad) end
    end
  end
  failure = kind.check_outputs and kind.check_outputs(op, fields, model.types)
  if failure then return fail(state, at, "%s: %s", name, failure) end
  if not parse_grad(state, index, op, fields.grad) then return end
  for k, example in pairs(op.examples) do
    if type(k) ~= "number" or type(example) ~= "table" then
      return fail(state, at, "%s: examples: expected { { x = 0.0, out = 0.0 }, ... }", name)
    end
    if not taken.y and example.y ~= nil and example[op.outputs[1].name] == nil then -- y is the first output, too
      example[op.outputs[1].name], example.y = example.y, nil
    end
    for key, value in pairs(example) do
      local is_number = math.type(value) ~= nil or (kind.shape_params and is_list(value))
      if type(key) ~= "string" or not taken[key] or not is_number then
        return fail(state, at, "%s: examples: '%s' is no operand, or its value no number", name, source.shown(key))
      end
    end
  end
  model.ops[#model.ops + 1] = op
  model.op_of_name[name] = op
  model.op_of_c_name[c_name] = op
  if kind.declared then kind.declared(model, op) end
end

return M
