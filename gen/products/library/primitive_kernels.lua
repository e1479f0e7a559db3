-- SPDX-License-Identifier: Apache-2.0
--
-- The library's primitives, for the interpreter: one kernel for each node operation of dag.lua on each compute type, and
-- the tables by which runtime/lang/primitives.h finds them. Kernels that the plan already has (add of f32, conversions) are
-- used here too, and types for which the results have the same bits share a kernel. A
-- generated tree has none of this. Makes records and text, opens no files.

local dag_of = require "gen.graph.dag.dag"
local variants = require "gen.targets.variants"
local tables = require "gen.products.tables"
local expr = require "gen.graph.body.expr"
local derive = require "gen.graph.derive"
local primitives = require "gen.graph.dag.primitives"
local kernel_name = require "gen.base.kernel_name"
local kinds = require "gen.kinds.kinds"
local foreign = require "gen.front.foreign"
local order = require "gen.base.order"
local number = require "gen.base.number"
local c = require "gen.targets.c.text"

local M = {}

---------------------------------------------------------------------------------------------------- which there are

-- The primitives in every dtype: list of { file, op, args, type, name }. file: the group of kernels that it belongs to; args: the
-- types of its arguments; type: of its result; name: of its node, may be nil. A row of gen/graph/dag/primitives.lua with a family
-- takes arguments of one type; the second loop adds the primitives with arguments of several types.
local function primitives_of(types)
  local list, computed, stored = {}, {}, {}
  for _, name in ipairs(types.sets.all) do
    local t = types.by_name[name]
    if t.compute == name then computed[#computed + 1] = name elseif t.kind == "float" then stored[#stored + 1] = name end
  end
  local function add(file, op, args, result, name)
    list[#list + 1] = { file = file, op = op, args = args, type = result, name = name }
  end
  for _, row in ipairs(primitives.list) do
    for _, T in ipairs(row.family and computed or {}) do
      local args = {}
      for k = 1, row.arguments do args[k] = T end
      if primitives.KINDS[row.takes][types.by_name[T].kind] then add(row.family, row.name, args, row.result or T) end
    end
  end
  for _, T in ipairs(computed) do
    local t = types.by_name[T]
    add("select", "select", { "bool", T, T }, T)
    if kinds.changes(types, T, T) then add("cast", "canon", { T }, T) end -- one NaN, one true
    for _, to in ipairs(computed) do
      if to ~= T and kinds.changes(types, T, to) then add("cast", "cast", { T }, to) end
    end
    for _, storage in ipairs(stored) do
      if kinds.changes(types, T, storage) then add("cast", "round_" .. storage, { T }, types.by_name[storage].compute, storage) end
    end
    for _, I in ipairs(computed) do
      local i = types.by_name[I]
      if i.kind == "integer" and i.bits == t.bits and t.kind ~= "bool" then
        add("lookup", "lookup", { T, I }, T)
        if t.kind == "float" then
          add("bits", "bits", { T }, I)
          add("bits", "raw", { T }, I)
          add("bits", "from_bits", { I }, T)
        end
      end
    end
  end
  return list
end

---------------------------------------------------------------------------------------------------- their kernels

-- The identity of a kernel: its operation and the types of its operands, the result's last. Types that are the same bits to the
-- operation have one name.
local function key_of(types, op, dtypes, classes)
  local function signless(name)
    local t = types.by_name[name]
    return (t.kind == "integer" or t.kind == "bits" or t.kind == "complex") and "i" .. t.bits or name
  end
  local key = {}
  for k, name in ipairs(dtypes) do key[k] = dag_of.is_signless(op) and signless(name) or name end
  if op == "cast" then
    local from, to = types.by_name[dtypes[1]], types.by_name[dtypes[2]]
    if from.kind ~= "float" and to.kind ~= "float" then -- widening looks at the sign, nothing else does
      if to.kind == "bool" or to.bits <= from.bits then key[1] = signless(dtypes[1]) end
      key[2] = signless(dtypes[2])
    end
  elseif op == "lookup" then
    key[1], key[3] = signless(dtypes[1]), signless(dtypes[3])
    -- the mask is an i32 to narrower indices: they are widened
    if types.by_name[dtypes[2]].bits >= 32 then key[2] = signless(dtypes[2]) end
  end
  return op .. " " .. table.concat(key, " ") .. " " .. classes
end

-- The node operation that a DAG consists of, over its inputs in their order; or nil.
local function only_node(dag)
  local node = dag.outputs[1]
  if #dag.outputs ~= 1 or #dag.params ~= 0 or node.name then return nil end
  if #node.args ~= #dag.inputs or #node.args == 0 then return nil end
  for k, input in ipairs(dag.inputs) do
    if node.args[k] ~= input then return nil end
  end
  return node.op
end

-- The kernels of the plan that compute a primitive, by key: of rank 1 and 2, without strided operands.
local function kernels_of_plan(plan)
  local types, kernels = plan.model.types, {}
  local function add(op, dtypes, record)
    if (record.rank ~= "1" and record.rank ~= "2") or record.classes:find "s" then return end
    local key = key_of(types, op, dtypes, record.classes)
    if not kernels[key] or record.rank == "1" then kernels[key] = record end
  end
  for _, op in ipairs(plan.ops) do
    for _, record in ipairs(plan.records_of[op.name]) do
      local may_be = kinds.is_formula(op) and not op.backward_of and record.D == record.K
      local node = may_be and only_node(plan.dag_for(op, record.K))
      if node then add(node, record.dtypes, record) end
    end
  end
  for _, record in ipairs(plan.packs) do
    if record.role == "convert" then add(record.from == record.to and "canon" or "cast", record.dtypes, record) end
  end
  return kernels
end

local ARGUMENTS = { "x", "y", "z" }
local SELECT_ARGUMENTS = { "condition", "x", "y" }

-- The DAG of a primitive: its one node (canon: none) over inputs.
local function dag_of_primitive(types, primitive)
  local dag = dag_of.new(types)
  local inputs = {}
  for k, type_name in ipairs(primitive.args) do
    local name = (primitive.op == "select" and SELECT_ARGUMENTS or ARGUMENTS)[k]
    inputs[k] = dag:node("input", type_name, {}, { index = k, name = name })
  end
  local result = inputs[1]
  if primitive.op ~= "canon" then
    local round = primitive.name and { name = primitive.name }
    result = dag:node(round and "round" or primitive.op, primitive.type, inputs, round)
  end
  return { dag = dag, inputs = inputs, params = {}, outputs = { result }, type = primitive.type }
end

-- The classes that a primitive has kernels for, contiguous first. A lookup's table is one address: its class is always b.
local function classes_of(primitive)
  if primitive.op == "lookup" then return { "bcc" } end
  return variants.broadcast_classes(#primitive.args, 1)
end

-- All primitives of a plan, sorted as qn_primitive_find wants them, each with `records`, one per class string; and the
-- files of the kernels that the plan does not have: list of { name, entries = { { record, dag } } }.
function M.of_plan(plan)
  local types = plan.model.types
  local list, kernels = primitives_of(types), kernels_of_plan(plan)
  local files, file_of = {}, {}
  for _, primitive in ipairs(list) do
    local dtypes = table.move(primitive.args, 1, #primitive.args, 1, {})
    dtypes[#dtypes + 1] = primitive.type
    primitive.records = {}
    for k, classes in ipairs(classes_of(primitive)) do
      local key = key_of(types, primitive.op, dtypes, classes)
      if not kernels[key] then
        local file = file_of[primitive.file] or { name = "kernels/prim_" .. primitive.file .. ".c", entries = {} }
        if not file_of[primitive.file] then files[#files + 1], file_of[primitive.file] = file, file end
        local dag = primitive.op ~= "lookup" and dag_of_primitive(types, primitive) or nil
        kernels[key] = variants.of_primitive(primitive.op, dtypes, classes, dag and "elementwise" or "lookup")
        table.insert(file.entries, { record = kernels[key], dag = dag })
      end
      primitive.records[k] = kernels[key]
    end
  end
  local position = {}
  for k, t in ipairs(types.list) do position[t.name] = k end
  table.sort(list, function(a, b)
    if a.op ~= b.op then return order.less(a.op, b.op) end
    if a.type ~= b.type then return position[a.type] < position[b.type] end
    return position[a.args[#a.args]] < position[b.args[#b.args]]
  end)
  return list, files
end

---------------------------------------------------------------------------------------------------- their tables

-- A number of the language's constants in C.
local function constant_text(value)
  if value ~= value then return '__builtin_nan("")' end
  if value == math.huge then return "__builtin_inf()" end
  return c.literal("f64", number.f64_bits(value))
end

-- The tables of gen/front/foreign.lua, as lang/foreign_names.h declares them.
local function foreign_text()
  local parts = {}
  local function add(which, rows)
    parts[#parts + 1] = string.format("const qn_foreign qn_foreign_%s[] = {", which)
    local n = 0
    for _, name in ipairs(order.keys(rows)) do
      local row = rows[name]
      local sentence, is_refused = row, false
      if type(row) == "table" then sentence, is_refused = row[1], row.is_refused end
      parts[#parts + 1] = string.format("  {%s, %s, %d},", c.string(name), c.string(sentence), is_refused and 1 or 0)
      n = n + 1
    end
    parts[#parts + 1] = string.format("};\nconst int32_t qn_n_foreign_%s = %d;\n", which, n)
  end
  add("functions", foreign.functions)
  add("words", foreign.words)
  local modules = {}
  for k, name in ipairs(foreign.modules) do modules[k] = c.string(name) .. ", " end
  return table.concat(parts, "\n") .. "\nconst char *const qn_foreign_modules[] = {" .. table.concat(modules) .. "NULL};\n"
end

-- The functions that an expression of a host may call: all but those of the library's own math.
local function function_rows()
  local rows = {}
  for _, name in ipairs(order.keys(primitives.functions)) do
    local func = primitives.functions[name]
    if not func.is_trusted then
      local result = func.as or func.result
      rows[#rows + 1] = string.format('  {"%s", %d, QN_FUNCTION_%s, %s},', name, func.arguments,
                                      func.as and "AS" or func.takes:upper(),
                                      result and tables.dtype_constant(result) or "QN_DTYPE_NONE")
    end
  end
  return rows
end

-- A primitive's role for derivatives and for the interpreter; PLAIN if it is not listed. ORDER qn_primitive_role
local ROLES = { select = "SELECT", cast = "CONVERT", bits = "BITS", from_bits = "FROM_BITS", lookup = "LOOKUP" }

-- The derivative rules as rows of C, in postfix order; and the index of each op's rule: op -> index from 0.
local function derivative_rows()
  local rows, number_of = {}, {}
  for k, op in ipairs(order.keys(derive.RULES)) do
    local by = {}
    for j, rule in ipairs(derive.RULES[op]) do by[j] = '"' .. derive.postfix(rule) .. '"' end
    rows[k], number_of[op] = string.format("  {{%s}}, /* %s */", table.concat(by, ", "), op), k - 1
  end
  return rows, number_of
end

-- The rounding op of each dtype with another compute type, as rows of C.
local function round_rows(list)
  local rows, seen = {}, {}
  for _, primitive in ipairs(list) do
    if primitive.name and not seen[primitive.name] then
      seen[primitive.name] = true
      rows[#rows + 1] = string.format('  [%s] = "%s",', tables.dtype_constant(primitive.name), primitive.op)
    end
  end
  return rows
end

-- primitive_table.c. list: of M.of_plan; banner: lines
function M.table(list, banner)
  local names, declared, arrays, array_of, rows = {}, {}, {}, {}, {}
  local rules, rule_of = derivative_rows()
  for _, primitive in ipairs(list) do
    local lines, record_names = {}, {}
    for k, record in ipairs(primitive.records) do
      local name = tables.function_name(record)
      if not declared[name] then
        declared[name] = true
        names[#names + 1] = "QN_DECLARE(" .. name .. ")"
      end
      lines[k], record_names[k] = "  " .. tables.variant_row(record) .. ",", record.name
    end
    local key = table.concat(record_names, " ")
    if not array_of[key] then
      array_of[key] = kernel_name.unmarked(primitive.records[1].name)
      arrays[#arrays + 1] = string.format("static const qn_variant %s[] = {\n%s\n};", array_of[key],
                                          table.concat(lines, "\n"))
    end
    local rule = rule_of[primitive.op]
    rows[#rows + 1] = string.format('  {"%s", %s, %s, %d, QN_PRIMITIVE_%s, %d, %d, %s, %s},', primitive.op,
                                    tables.dtype_constant(primitive.type),
                                    tables.dtype_constant(primitive.args[#primitive.args]), #primitive.args,
                                    primitive.name and "ROUND" or ROLES[primitive.op] or "PLAIN",
                                    dag_of.looks_at_sign(primitive.op) and 1 or 0, #primitive.records,
                                    array_of[key], rule and string.format("&rules[%d]", rule) or "NULL")
  end
  local constants = {}
  for _, name in ipairs(order.keys(expr.CONSTANTS)) do
    constants[#constants + 1] = string.format('  {"%s", %s},', name, constant_text(expr.CONSTANTS[name]))
  end
  local functions = function_rows()
  return table.concat(banner, "\n") .. [[

#include "lang/primitives.h"

#include <string.h>

#include "lang/foreign_names.h"

]] .. tables.KERNEL_MACROS .. "\n" .. table.concat(order.sort(names), "\n") .. "\n\n"
    .. table.concat(arrays, "\n") .. [[


static const qn_derivative_rule rules[] = {
]] .. table.concat(rules, "\n") .. [[

};

/* Sorted by operation, type, type of the last argument. */
static const qn_primitive primitives[] = {
]] .. table.concat(rows, "\n") .. [[

};

const qn_primitive *qn_primitive_find(const char *op, uint8_t type, uint8_t arg_type) {
  int32_t low = 0, high = (int32_t)(sizeof primitives / sizeof primitives[0]);
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    const qn_primitive *p = &primitives[middle];
    int side = strcmp(op, p->op);
    if (side == 0) side = type - p->type;
    if (side == 0) side = arg_type - p->arg_type;
    if (side == 0) return p;
    if (side < 0) high = middle;
    else low = middle + 1;
  }
  return NULL;
}

static const char *const rounds[QN_DTYPE_COUNT] = {
]] .. table.concat(round_rows(list), "\n") .. [[

};

const qn_primitive *qn_primitive_round(uint8_t dtype, uint8_t arg_type) {
  return rounds[dtype] ? qn_primitive_find(rounds[dtype], qn_dtype_infos[dtype].compute, arg_type) : NULL;
}

const qn_function qn_functions[] = {
]] .. table.concat(functions, "\n") .. string.format([[

};
const int32_t qn_n_functions = %d;

const qn_named_constant qn_named_constants[] = {
]], #functions) .. table.concat(constants, "\n") .. string.format([[

};
const int32_t qn_n_named_constants = %d;

]], #constants) .. foreign_text()
end

-- kernel_headers.c: the kernel headers' texts, for the compilers of run time. headers: list of { name, text }
function M.headers(headers, banner)
  local out = { table.concat(banner, "\n"), '#include "toolchain/kernel_headers.h"\n',
                "const qn_kernel_header qn_kernel_headers[] = {" }
  for _, header in ipairs(headers) do
    out[#out + 1] = string.format('  {"%s",', header.name)
    for line in header.text:gmatch "[^\n]*\n" do out[#out + 1] = "   " .. c.string(line) end
    out[#out] = out[#out] .. "},"
  end
  out[#out + 1] = string.format("};\nconst int32_t qn_n_kernel_headers = %d;\n", #headers)
  return table.concat(out, "\n")
end

return M
