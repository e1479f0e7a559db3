-- SPDX-License-Identifier: Apache-2.0
--
-- Texts for people: what the commands of build.lua print. Makes strings, prints nothing.

local c = require "gen.targets.c.text"
local kernels = require "gen.targets.c.kernels"
local names_of = require "gen.targets.c.names"
local spec = require "gen.front.spec"
local kinds = require "gen.kinds.kinds"

local M = {}

-- Per op: kernels, those of them that have another's machine code, bytes of source; then totals. objects: of objects.lua, or nil
function M.generated(result, counts, seconds, objects)
  local out, plan = {}, result.plan
  local total = { kernels = 0, shared = 0, source = 0, objects = 0, seconds = 0 }
  local function row(name, records, file)
    local text, object, shared = result.files[file], objects and objects.rows[file], 0
    for _, record in ipairs(records) do shared = shared + (record.code and 1 or 0) end
    total.kernels, total.shared = total.kernels + #records, total.shared + shared
    if object then total.objects, total.seconds = total.objects + object.bytes, total.seconds + object.seconds end
    out[#out + 1] = string.format("%-20s %8d %8d %10s%s", name, #records, shared, text and tostring(#text) or "-",
      objects and string.format(" %10s %8s", object and tostring(object.bytes) or "-",
                                object and string.format("%.2f", object.seconds) or "-") or "")
  end
  out[#out + 1] = string.format("%-20s %8s %8s %10s%s", "op", "kernels", "shared", "source",
                                objects and string.format(" %10s %8s", "object", "seconds") or "")
  for _, op in ipairs(plan.ops) do row(op.name, plan.records_of[op.name], names_of.op_file(op, result.prefix, "cpu") .. ".c") end
  for _, left in ipairs(plan.left_out or {}) do
    out[#out + 1] = string.format("%-20s left out: %s", left.op.name, left.why)
  end
  row("pack", plan.packs, names_of.pack_file(result.prefix))
  for _, file in ipairs(plan.primitive_files or {}) do
    local records = {}
    for k, entry in ipairs(file.entries) do records[k] = entry.record end
    row(file.name:match "([%w_]+)%.c$", records, file.name)
  end
  for _, text in pairs(result.files) do total.source = total.source + #text end
  out[#out + 1] = string.format("%-20s %8d %8d %10d%s  generated in %.2f s; files written %d, kept %d, removed %d", "total",
                                total.kernels, total.shared, total.source,
                                objects and string.format(" %10d %8.2f", total.objects, total.seconds) or "", seconds,
                                counts.written, counts.kept, counts.removed)
  if objects then
    out[#out + 1] = "object: bytes of code and constants, seconds: of compiling one file after another with " .. objects.compiler
      .. ", both of all levels together"
  end
  return table.concat(out, "\n") .. "\n"
end

function M.checked(file, rows)
  local out = {}
  for _, row in ipairs(rows) do
    out[#out + 1] = string.format("%s: ok: %s takes %s; %d kernels, %d operations an element", file, row.op.name,
                                  table.concat(row.inputs, " "), row.kernels, row.weight)
  end
  if #rows == 0 then out[1] = file .. ": ok, but it defines no op" end
  return table.concat(out, "\n") .. "\n"
end

-- The dtypes with kernels, in order.
local function dtype_names(types)
  local names = {}
  for _, t in ipairs(types.list) do
    if t.built then names[#names + 1] = t.name end
  end
  return names
end

-- For each of `names` yes where a row's inputs may have that dtype, else no.
local function cells_of(row, names, yes, no)
  local taken, cells = {}, {}
  for _, name in ipairs(row.inputs) do taken[name] = true end
  for k, name in ipairs(names) do cells[k] = taken[name] and yes or no end
  return cells
end

-- The op x dtype table.
function M.list(rows, types)
  local names, width = dtype_names(types), #"op"
  for _, row in ipairs(rows) do width = math.max(width, #row.op.name) end
  local layout = "%-" .. width .. "s %s  %s"
  local out = { layout:format("op", table.concat(names, " "), "doc") }
  for _, row in ipairs(rows) do
    local cells = cells_of(row, names, "x", ".")
    for k, name in ipairs(names) do cells[k] = cells[k] .. (" "):rep(#name - 1) end
    out[#out + 1] = layout:format(row.op.name, table.concat(cells, " "), c.comment_text(row.op.doc))
  end
  return table.concat(out, "\n") .. "\n"
end

-- What an output has, in a word or two. given: the dtypes that it may have of itself
local function output_text(row, output, given)
  if kinds.of(row.op).dtypes_words then return kinds.of(row.op).dtypes_words end
  if output.type then return "`" .. output.type .. "`" end
  if #given == 1 then return "`" .. given[1] .. "`" end
  local is_given = {}
  for _, name in ipairs(given) do is_given[name] = true end
  for _, name in ipairs(row.inputs) do
    if not is_given[name] then
      return row.op.result == "wide" and "the inputs' dtype; 64 bits of integers" or "the inputs' dtype; a float of integers"
    end
  end
  return "the inputs' dtype"
end

local function result_text(row)
  local texts, is_one = {}, true
  for k, output in ipairs(row.op.outputs) do
    texts[k] = output_text(row, output, row.outputs[k])
    is_one = is_one and texts[k] == texts[1]
  end
  if is_one then return #texts == 1 and texts[1] or #texts .. " of " .. texts[1] end
  for k, output in ipairs(row.op.outputs) do texts[k] = output.name .. ": " .. texts[k] end
  return table.concat(texts, "; ")
end

-- The same as a page of Markdown.
function M.list_markdown(rows, types)
  local names = dtype_names(types)
  local out = { [[
# Ops and the dtypes they take

Written by `lua5.4 build.lua list --markdown`. x: an input may have that dtype; several inputs meet in one by promotion, and an
output may have any dtype that the result casts to without going from float to integer or from a number to bool.
Derivative: there is an op NAME_backward, of the float dtypes, which gives it. A float of integers: `f32` of
bool and of integers of 8 and 16 bits, `f64` of wider ones.
]] }
  local function line(cells) out[#out + 1] = "| " .. table.concat(cells, " | ") .. " |" end
  local head, rule = { "op" }, { "---" }
  for _, name in ipairs(names) do head[#head + 1], rule[#rule + 1] = name, ":-:" end
  head[#head + 1], rule[#rule + 1] = "result", "---"
  head[#head + 1], rule[#rule + 1] = "derivative", ":-:"
  head[#head + 1], rule[#rule + 1] = "doc", "---"
  line(head)
  line(rule)
  for _, row in ipairs(rows) do
    if not row.op.backward_of then
      local cells = cells_of(row, names, "x", " ")
      table.insert(cells, 1, "`" .. row.op.name .. "`")
      cells[#cells + 1] = result_text(row)
      cells[#cells + 1] = row.op.backward and "x" or " "
      cells[#cells + 1] = (row.op.doc:gsub("%s+", " "):gsub("[|*_<`\\]", "\\%0"))
      line(cells)
    end
  end
  return table.concat(out, "\n") .. "\n"
end

function M.list_json(rows)
  local out = {}
  for _, row in ipairs(rows) do
    local op = row.op
    local function strings(list, key)
      local texts = {}
      for _, item in ipairs(list) do texts[#texts + 1] = c.json_string(key and item[key] or item) end
      return "[" .. table.concat(texts, ", ") .. "]"
    end
    local outputs = {}
    for k, output in ipairs(op.outputs) do
      outputs[k] = string.format('{"name": "%s", "dtypes": %s}', output.name, strings(row.outputs[k]))
    end
    out[#out + 1] = string.format('  {"name": %s, "doc": %s, "formula": %s, "spec": %s, "inputs": %s, "params": %s, '
      .. '"dtypes": %s, "outputs": [%s]}', c.json_string(op.name), c.json_string(op.doc), c.json_string(kernels.formula(op)),
      c.json_string(kernels.location(op)), strings(op.inputs, "name"), strings(op.params, "name"), strings(row.inputs),
      table.concat(outputs, ", "))
  end
  return "[\n" .. table.concat(out, ",\n") .. "\n]\n"
end

-- A spec to start from, or nil and the reason. program: what the generator is called by
function M.scaffold(name, model, program)
  local c_name, why = spec.op_c_name(name, model.api_names)
  if not c_name then return nil, why end
  if model.op_of_name[name] then
    return nil, string.format("'%s' is a built-in op: give yours a namespace, acme.%s", name, name)
  end
  local namespace = name:match "^(.*)%."
  return string.format([[
-- A spec for Quern: data in Lua, the body in a C expression subset. Try it:
--   %s check %s.lua
--   %s show %s --spec %s.lua
--   %s generate --spec %s.lua --ops %s --prefix %s --out generated

unary "%s" {
  doc    = "x over 1 plus the absolute value of slope times x.",
  params = { slope = 1.0 },
  dtypes = floating,
  body   = [=[ x / (1 + abs(slope * x)) ]=],
  grad   = [=[ T d = 1 + abs(slope * x); return grad / d / d; ]=],
  ulp    = { f32 = 2, f64 = 2 },
  grad_ulp = { f32 = 4, f64 = 4 },
  examples = { { x = 1.0, out = 0.5 } },
}
]], program, c_name, program, name, c_name, program, c_name, name, namespace or "mine", name)
end

return M
