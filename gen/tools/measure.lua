-- SPDX-License-Identifier: Apache-2.0
--
-- The accuracy of a spec's ops: the C text of their bodies in exact arithmetic, or in 113 bits, for the program
-- tools/measure/spec_accuracy.c, and how that is built and run (`check --measure`). Only the last result is rounded: math functions
-- are libm's of 113 bits; named constants and short decimal numbers have their exact values. Derivatives are compared with
-- differences of their ops' references.

local bounds = require "gen.tools.bounds"
local dag_of = require "gen.graph.dag.dag"
local expr = require "gen.graph.body.expr"
local number = require "gen.base.number"
local order = require "gen.base.order"
local kinds = require "gen.kinds.kinds"
local primitives = require "gen.graph.dag.primitives"
local spelling = require "gen.targets.spelling"

local M = {}

-- The functions that stay calls: those of the library with an op of the same name, without parameters, that declares a bound:
-- tools/measure/ref.c has them in 113 bits; and the whole quotients, because their bodies use bits.
local QUOTIENTS = { floor_divide = "exact_floor_divide", trunc_divide = "exact_trunc_divide", remainder = "exact_remainder" }
function M.exact(model)
  local set = {}
  for name in pairs(QUOTIENTS) do set[name] = true end
  for _, op in ipairs(model.ops) do
    if op.builtin and next(op.ulp) and #op.params == 0 and model.func_of_name[op.name] then set[op.name] = true end
  end
  return set
end

-- A call of one of them.
local function exact_call(name, args)
  if QUOTIENTS[name] then return string.format("%s(%s)", QUOTIENTS[name], table.concat(args, ", ")) end
  return string.format("ref_function(REF_%s, %s, %s, 0)", name:upper(), args[1], args[2] or "0")
end

local NAMED = { "PI", "E", "LN2", "LN10", "LOG2E", "LOG10E", "SQRT2", "SQRT1_2" }

-- A float constant of type K in 113 bits. A number of no more digits than K can tell apart is that decimal number.
local function real(value, K)
  if value ~= value then return "(ref_real)NAN" end
  if value == math.huge or value == -math.huge then return value > 0 and "(ref_real)INFINITY" or "-(ref_real)INFINITY" end
  local function rounded(x) return K == "f32" and number.f32_value(number.f32_bits(x)) or x end
  for _, name in ipairs(NAMED) do
    for exponent = -4, 4 do
      for sign = -1, 1, 2 do
        local scale = sign * 2.0 ^ exponent
        if value == rounded(expr.CONSTANTS[name] * scale) then return string.format("(EXACT_%s * %d / 16)", name, scale * 16) end
      end
    end
  end
  local decimal = string.format(K == "f32" and "%.7g" or "%.15g", value):gsub(",", ".")
  if rounded(tonumber(decimal)) == value then
    return "REAL(" .. (decimal:find "[.e]" and decimal or decimal .. ".0") .. ")"
  end
  return "(ref_real)" .. number.hex(value)
end

-- A double as C has it.
local function double(value)
  if value ~= value then return "NAN" end
  if value == math.huge or value == -math.huge then return value > 0 and "INFINITY" or "-INFINITY" end
  return (number.hex(value):gsub("^%-?0$", "%0.0"))
end

local function value_of(node) return node.type == "f32" and number.f32_value(node.value) or number.f64_value(node.value) end

-- Where a value is compared with a constant, the two branches part where the kernel has it.
local function as_written(node) return "(ref_real)" .. double(value_of(node)) end

local COMPARES = { lt = true, le = true, gt = true, ge = true, eq = true, ne = true }

-- The C function of one output of a body in 113 bits, or nil and the part of it without an exact meaning.
local function reference(types, output, name)
  local out = { string.format("static ref_real %s(const ref_real *x, const ref_real *param) {", name), "  (void)x, (void)param;" }
  local of = {}
  local function is(node, kind) return types.by_name[node.type].kind == kind end
  for _, node in ipairs(dag_of.order { output }) do
    local args, op, text = {}, node.op, nil
    for k, arg in ipairs(node.args) do
      args[k] = COMPARES[op] and arg.op == "const" and is(arg, "float") and as_written(arg) or of[arg]
      if is(arg, "integer") then return nil, "it computes with integers" end
    end
    if is(node, "integer") then return nil, op == "bits" and "it looks at bits" or "it computes with integers" end
    if op == "input" then text = string.format("x[%d]%s", node.index - 1, is(node, "bool") and " != 0" or "")
    elseif op == "param" then text = string.format("param[%d]", node.index - 1)
    elseif op == "const" then
      text = is(node, "bool") and tostring(node.value)
        or real(value_of(node), node.type)
    elseif op == "exact" then text = exact_call(node.name, args)
    elseif primitives.of[op] and primitives.of[op].exact then
      text = spelling.expression(types, "exact", node, {}, {}, function(at) return args[at] end)
    else return nil, "it uses " .. op end
    of[node] = "v" .. node.id
    out[#out + 1] = string.format("  %s v%d = %s;", is(node, "bool") and "int" or "ref_real", node.id, text)
  end
  out[#out + 1] = string.format("  return v%d;\n}\n", output.id)
  return table.concat(out, "\n")
end

-- The rows of an op's outputs in one dtype, and those that are not measured. functions: C text by name
local function op_rows(plan, op, D, K, prefix, functions)
  local types, rows, skipped = plan.model.types, {}, {}
  local conditions, params, given = 0, {}, {}
  for k, input in ipairs(op.inputs) do
    if input.type == "bool" then conditions = conditions | 1 << (k - 1) end
  end
  for k, param in ipairs(op.params) do params[k] = double((param.value or 0) + 0.0) end
  for k, output in ipairs(op.outputs) do given[k] = "REF_" .. (output.type or D):upper() end
  local dag, why = expr.op_dag(plan.model, op, K, M.exact(plan.model))
  for k, output in ipairs(op.outputs) do
    local function_name = string.format("reference_%s_%s_%d", op.c_name, K, k)
    local shown = #op.outputs > 1 and op.name .. "." .. output.name or op.name
    local text
    if dag then text, why = reference(types, dag.outputs[k], function_name) end
    if text then
      functions[function_name] = text
      rows[#rows + 1] = string.format(
        '    {"%s", REF_%s, REF_%s, %d, %d, %d, {%s}, %d, %s, %s, %s, %s_builtin_%s, %s, {%s}},', shown, D:upper(), K:upper(),
        #op.inputs, conditions, #op.outputs, table.concat(given, ", "), k - 1,
        double((op.ulp[K] or op.backward_of and math.huge or 0.5) + 0.0),
        double((op.domain and op.domain[1] or -8) + 0.0), double((op.domain and op.domain[2] or 8) + 0.0), prefix, op.c_name,
        function_name, #params > 0 and table.concat(params, ", ") or "0")
    else
      skipped[#skipped + 1] = string.format("%s: %s is not measured: %s", shown, D, why)
    end
  end
  return rows, skipped
end

-- The rows by which an op's derivative is held to differences of its body, one for each input that it has a derivative by; none
-- where one of the two is not measured. functions: as op_rows has them
local function slope_rows(plan, backward, functions)
  local op, rows, given, params, conditions = plan.model.op_of_name[backward.backward_of], {}, {}, {}, 0
  local K = "f32"
  for _, dtype in ipairs(backward.dtypes) do
    if dtype == "f64" then K = "f64" end
  end
  local dag = expr.op_dag(plan.model, op, K, M.exact(plan.model))
  local of_backward = expr.op_dag(plan.model, backward, K, M.exact(plan.model))
  local body_name = string.format("reference_%s_%s_1", op.c_name, K)
  local body = dag and reference(plan.model.types, dag.outputs[1], body_name)
  if not body or not of_backward then return rows end
  local operand_of = { grad = "OF_GRAD", [op.outputs[1].name] = "OF_RESULT" }
  for k, input in ipairs(op.inputs) do
    operand_of[input.name] = tostring(k - 1)
    if input.type == "bool" then conditions = conditions | 1 << (k - 1) end
  end
  for k, input in ipairs(backward.inputs) do given[k] = operand_of[input.name] end
  for k, param in ipairs(op.params) do params[k] = double((param.value or 0) + 0.0) end
  for k in ipairs(backward.outputs) do
    local name, by = string.format("reference_%s_%s_%d", backward.c_name, K, k), op.inputs[backward.by[k] + 1].name
    local text = reference(plan.model.types, of_backward.outputs[k], name)
    if text then
      functions[body_name], functions[name] = body, text
      rows[#rows + 1] = string.format(
        '    {"%s", "%s", "%s", %d, %d, %s, %s, %s, %s, %s, %d, {%s}, {%s}},', backward.name, op.name, by, #op.inputs, conditions,
        operand_of[by], double((op.domain and op.domain[1] or -8) + 0.0),
        double((op.domain and op.domain[2] or 8) + 0.0), body_name, name, #given, table.concat(given, ", "),
        #params > 0 and table.concat(params, ", ") or "0")
    end
  end
  return rows
end

-- The text of subjects.h, which tools/measure/spec_accuracy.c includes: the ops of a plan and their references; a list of sentences
-- about outputs that are not measured; and the number of rows.
function M.subjects(plan, prefix)
  local types, functions, rows, skipped, slopes = plan.model.types, {}, {}, {}, {}
  for _, op in ipairs(plan.ops) do
    local is_measured = false
    for _, D in ipairs(types.sets.floating) do
      if plan.wanted[D] and expr.is_listed(op, D) and kinds.of(op).computes then
        local more, less = op_rows(plan, op, D, expr.compute_type(types, op, D), prefix, functions)
        table.move(more, 1, #more, #rows + 1, rows)
        table.move(less, 1, #less, #skipped + 1, skipped)
        is_measured = true
      end
    end
    if op.backward_of then
      local more = slope_rows(plan, op, functions)
      table.move(more, 1, #more, #slopes + 1, slopes)
    end
    if not is_measured then
      local along = kinds.of(op).not_measured
      local bound = not op.bound and "; it declares no bound"
        or "; its bound has " .. (bounds.is_tried(types, op) and "been tried in f32" or "not been tried")
      skipped[#skipped + 1] = op.name .. (along and ": not measured: " .. along .. bound or ": nothing to measure: it takes no floats, or moves them")
    end
  end
  local out = {}
  for _, name in ipairs(order.keys(functions)) do out[#out + 1] = functions[name] end
  out[#out + 1] = "static const subject subjects[] = {"
  table.move(rows, 1, #rows, #out + 1, out)
  out[#out + 1] = "};\n\nstatic const slope slopes[] = {"
  table.move(slopes, 1, #slopes, #out + 1, out)
  out[#out + 1] = "    {0},\n};\n"
  return table.concat(out, "\n"), skipped, #rows
end

local function quoted(path) return "'" .. path:gsub("'", "'\\''") .. "'" end

-- Builds and runs the program in a folder that has the tree (one C file) and subjects.h. Returns whether all bounds hold, or nil
-- and a sentence where there is no saying. write: what takes its output, line by line; progress: when it tells how far it is, "auto",
-- "always" or "never"
function M.run(root, folder, prefix, write, progress)
  local compiler = os.getenv "CC" or "cc"
  local function within(name) return quoted(folder .. "/" .. name) end
  local function ours(name) return quoted(root .. "/" .. name) end
  local command = table.concat({
    compiler, "-std=gnu11 -O2 -w -D_GNU_SOURCE -I", quoted(folder), "-I", ours "tools/measure", "-I", ours "include",
    "-DMEASURED_HEADER='\"" .. prefix .. ".h\"'", "-o", within "measure", within(prefix .. ".c"), ours "tools/measure/spec_accuracy.c",
    ours "tools/measure/ref.c", "-lm -lpthread -ldl >" .. within "log" .. " 2>&1" }, " ")
  if not os.execute(command) then
    local log = io.open(folder .. "/log")
    local text = log and log:read(2000) or ""
    if log then log:close() end
    return nil, string.format("%s cannot build the program that measures:\n%s", compiler, text)
  end
  local pipe = assert(io.popen(within "measure" .. " " .. (progress or "never")))
  for line in pipe:lines() do write(line .. "\n") end
  local ok, how, status = pipe:close()
  if not ok and (how ~= "exit" or status ~= 1) then
    return nil, string.format("the program that measures ended by %s %d", how, status)
  end
  return ok == true
end

-- A folder of its own under TMPDIR; nil and a sentence where there can be none.
function M.folder()
  local pipe = assert(io.popen 'mktemp -d "${TMPDIR:-/tmp}/quern-measure.XXXXXX"')
  local folder = pipe:read "l"
  if not pipe:close() or not folder then return nil, "no temporary folder can be made" end
  return folder
end

function M.remove(folder) os.execute("rm -rf -- " .. quoted(folder)) end

return M
