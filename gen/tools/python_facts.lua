-- SPDX-License-Identifier: Apache-2.0
--
-- The module python/quern/_facts.py: for docstrings of each op its declared error and an example of its spec; what other libraries
-- call ops. Makes a string.

local bounds = require "gen.tools.bounds"
local foreign = require "gen.front.foreign"
local kinds = require "gen.kinds.kinds"
local number = require "gen.base.number"

local M = {}

-- A number, bool or list of an example as Python writes it. dtype: of the operand, where it has one of its own
local function python_value(value, dtype)
  if math.type(value) and dtype == "bool" then return value ~= 0 and "True" or "False" end
  if value == true or value == false then return value and "True" or "False" end
  if not math.type(value) then
    local items = {}
    for k, item in ipairs(value) do items[k] = python_value(item, dtype) end
    return "[" .. table.concat(items, ", ") .. "]"
  end
  if value ~= value then return 'float("nan")' end
  if value == math.huge or value == -math.huge then return value > 0 and 'float("inf")' or '-float("inf")' end
  local text = number.text(value)
  return (math.type(value) == "integer" or text:find "[.e]") and text or text .. ".0"
end

-- The first example that has all inputs: "x, y" and what comes out, as Python writes both; nil: there is none.
function M.example(op)
  if kinds.of(op).dtypes_words then return end -- they want dtype=
  for _, example in ipairs(op.examples or {}) do
    local words, results, is_whole = {}, {}, #op.inputs > 0
    for _, input in ipairs(op.inputs) do
      is_whole = is_whole and example[input.name] ~= nil
      words[#words + 1] = is_whole and python_value(example[input.name], input.type) or nil
    end
    for _, param in ipairs(op.params) do
      local value = example[param.name]
      if value ~= nil then words[#words + 1] = ((param.role == "axes" or param.role == "axis") and "axis" or param.name) .. "=" .. python_value(value) end
    end
    for _, output in ipairs(op.outputs) do
      local value, first = example[output.name], op.inputs[1] and example[op.inputs[1].name]
      is_whole = is_whole and value ~= nil
      if math.type(value) and type(first) == "table" and not op.is_reduced then -- one number for all elements
        value = { table.unpack(first) }
        for i = 1, #value do value[i] = example[output.name] end
      end
      results[#results + 1] = is_whole and python_value(value, output.type) or nil
    end
    if is_whole then
      return table.concat(words, ", "), #results == 1 and results[1] or "(" .. table.concat(results, ", ") .. ")"
    end
  end
end

local function gives_float(types, op)
  for _, output in ipairs(op.outputs) do
    local t = output.type and types.by_name[output.type]
    if not t or t.kind == "float" then return true end
  end
  return false
end

-- The formula of an absolute error; of several outputs the bound has an assignment for each.
local function absolute(op, formula)
  if #op.outputs == 1 then return "|error| <= " .. formula end
  local parts = {}
  for output, value in formula:gmatch "([%w_]+) = (.-);" do parts[#parts + 1] = string.format("|error of %s| <= %s", output, value) end
  return table.concat(parts, ", ")
end

-- "f32 1, f64 2 ULP", or the formula of an absolute error; "": its results are no floats, or nothing is declared.
function M.bound(types, op)
  if op.backward_of or kinds.of(op).dtypes_words then return "" end
  local parts, formula = {}, nil
  for _, dtype in ipairs(op.dtypes) do
    local t = types.by_name[dtype]
    if t and t.built and t.kind == "float" then
      local text = kinds.of(op).has_stages and bounds.text(types, op, dtype)
      formula = formula or text
      if not text and op.ulp[dtype] then parts[#parts + 1] = dtype .. " " .. number.decimal(op.ulp[dtype]) end
    end
  end
  if formula then return absolute(op, formula) .. ", u the unit roundoff of the dtype" end
  if #parts > 0 then return table.concat(parts, ", ") .. " ULP; f16 and bf16 are computed in f32 and rounded" end
  local is_elementwise = kinds.is_formula(op) and kinds.of(op).computes and not kinds.of(op).has_stages
  return is_elementwise and gives_float(types, op) and "correctly rounded (0.5 ULP)" or ""
end

local function python_string(text) return '"' .. text:gsub('[\\"]', "\\%0"):gsub("%s+", " ") .. '"' end

function M.text(rows, types)
  local out = { [[
# SPDX-License-Identifier: Apache-2.0
"""Of each op what the docstring says beside the description; other libraries' names of functions. Written by `lua5.4 build.lua list
--python`."""

# name: (the declared error, an example's arguments, its result)
FACTS = {]] }
  for _, row in ipairs(rows) do
    local arguments, result = M.example(row.op)
    out[#out + 1] = string.format("    %s: (%s, %s, %s),", python_string(row.op.name), python_string(M.bound(types, row.op)),
                                  python_string(arguments or ""), python_string(result or ""))
  end
  out[#out + 1] = "}\n\n# Another library's name: ours.\nALIASES = {"
  local names = {}
  for name in pairs(foreign.aliases) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    out[#out + 1] = string.format("    %s: %s,", python_string(name), python_string(foreign.aliases[name]))
  end
  out[#out + 1] = "}\n\n# Another library's function that no op is: what to do.\nSENTENCES = {"
  names = {}
  for name, sentence in pairs(foreign.functions) do
    if not foreign.aliases[name] and not sentence:find "^write a cast" then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    out[#out + 1] = string.format("    %s: %s,", python_string(name), python_string(foreign.functions[name]))
  end
  out[#out + 1] = "}\n"
  return table.concat(out, "\n")
end

return M
