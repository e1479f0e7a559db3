-- SPDX-License-Identifier: Apache-2.0
--
-- The generated lists that the core runtime is compiled with: dtype_table.h and op_table.c. Layouts are those of
-- runtime/core/base/kernel_abi.h. Makes text, opens no files.

local c = require "gen.targets.c.text"
local kernels = require "gen.targets.c.kernels"
local variants = require "gen.targets.variants"
local promote = require "gen.front.promote"
local expr = require "gen.graph.body.expr"
local kinds = require "gen.kinds.kinds"
local order = require "gen.base.order"
local number = require "gen.base.number"
local numbers = require "gen.products.numbers"

local M = {}

-- A dtype's name in C.
function M.dtype_constant(name) return "QN_" .. name:upper() end
local upper = M.dtype_constant

-- The number of rows, one for each DLPack code, of the table that dtypes are found by.
local function n_codes(types)
  local n = 7 -- kDLBool, the last of them that every build knows
  for _, t in ipairs(types.list) do n = math.max(n, t.code + 1) end
  return n
end

local function log2(value) return value > 1 and 1 + log2(value // 2) or 0 end

-- The number of sizes of elements: 1, 2, 4, ... bytes.
local function n_sizes(types)
  local n = 0
  for _, t in ipairs(types.list) do n = math.max(n, log2(t.size) + 1) end
  return n
end

-- Words in lines that hold as many of them as fit. width: of a line, without what a prefix adds
local function wrapped(words, lead, between, width)
  local lines, at = {}, ""
  for k, word in ipairs(words) do
    local item = word .. (k < #words and between or "")
    if at ~= "" and #lead + #at + #item > width then
      lines[#lines + 1], at = lead .. at:gsub(" $", ""), ""
    end
    at = at .. item
  end
  lines[#lines + 1] = lead .. at
  return table.concat(lines, "\n")
end

-- dtype_table.h: the enum, and the declarations for op_table.c.
function M.dtype_header(types, banner)
  local names = {}
  for _, t in ipairs(types.list) do names[#names + 1] = upper(t.name) end
  names[#names + 1] = "QN_DTYPE_COUNT"
  return table.concat(banner, "\n") .. [[

#ifndef QN_DTYPE_TABLE_H
#define QN_DTYPE_TABLE_H

#include <stdint.h>

/* ORDER DTYPE. QN_B8 ... are element sizes, for kernels that copy; no tensor has them. */
typedef enum qn_dtype {
]] .. wrapped(names, "  ", ", ", 110) .. [[

} qn_dtype;

typedef enum qn_dtype_kind { QN_KIND_BOOL, QN_KIND_INTEGER, QN_KIND_FLOAT, QN_KIND_COMPLEX, QN_KIND_BITS } qn_dtype_kind;

#define QN_DTYPE_NONE 0xff /* in the tables: no such dtype, no such promotion */
]] .. string.format([[
#define QN_DTYPE_N_CODES %d /* DLPack codes below this have a row in qn_dtype_of_dlpack */
#define QN_DTYPE_N_SIZES %d /* elements have 1, 2, 4 ... bytes: so many sizes */

]], n_codes(types), n_sizes(types)) .. [[
/* Converts a number to a dtype: see qn_params_number. */
struct quern_scalar;
struct qn_dtype_info;
typedef const char *qn_from_number(const struct quern_scalar *scalar, const struct qn_dtype_info *info, uint64_t *slot);

typedef struct qn_dtype_info {
  const char *name;
  uint8_t code;       /* DLPack type code; QN_DTYPE_NONE for bits */
  uint8_t bits;
  uint8_t size;       /* bytes */
  uint8_t kind;       /* qn_dtype_kind */
  uint8_t compute;    /* qn_dtype that it is computed in */
  uint8_t floating;   /* qn_dtype that its values have where a float is needed: of a bool or an integer a float, else itself */
  uint8_t bits_dtype; /* QN_B8 ... of its size */
  uint8_t built;      /* 1: kernels exist in this build */
  uint8_t exponent, digits; /* bits of a float's exponent and significand, the implicit one included; 0: it is no float */
  uint8_t is_finite;  /* 1: a float without infinity; its NaN is all ones, which is also what is too large */
  qn_from_number *from_number; /* NULL: no parameter of this build's ops needs it */
} qn_dtype_info;

extern const qn_dtype_info qn_dtype_infos[QN_DTYPE_COUNT];
extern const uint8_t qn_dtype_promotion[QN_DTYPE_COUNT][QN_DTYPE_COUNT]; /* QN_DTYPE_NONE: refused */
/* [DLPack code][log2 of the bits]: the dtype, or QN_DTYPE_NONE; (UInt, 1) is bool. */
extern const uint8_t qn_dtype_of_dlpack[QN_DTYPE_N_CODES][8];

#endif
]]
end

-- The kinds of some ops, as a set of names (runtime/core/kinds/kind_*.c); ops nil: all kinds. elementwise is always one of them:
-- it is the kind of ops that a host registers, and of compiled expressions.
function M.kinds(ops)
  local set = { elementwise = true }
  for _, kind in ipairs(ops and {} or kinds.list) do set[kind.runtime or kind.name] = true end
  for _, op in ipairs(ops or {}) do
    local kind = kinds.of(op)
    set[kind.runtime or kind.name] = true
    if kind.runtime_needs then set[kind.runtime_needs] = true end
  end
  return set
end

-- The kinds with a folder of the core to themselves.
M.kind_folders = {}
for _, kind in ipairs(kinds.list) do M.kind_folders[kind.runtime or ""] = kind.runtime ~= nil or nil end

-- The sources of kinds that go with kernels for the CPU: a set of paths without suffix.
M.cpu_sources = {}
for _, kind in ipairs(kinds.list) do
  for _, name in ipairs(kind.runtime_cpu or {}) do M.cpu_sources[(kind.runtime or "kinds") .. "/" .. name] = true end
end

-- The dtypes, as a set, that promotion may meet among operands of those built: these, and what they promote to.
local function met_by_promotion(types, built)
  local set, grows = {}, true
  for _, t in ipairs(types.list) do set[t.name] = t.kind ~= "bits" and built[t.name] or nil end
  while grows do
    grows = false
    for _, a in ipairs(order.keys(set)) do
      for _, b in ipairs(order.keys(set)) do
        local meet = promote.common(types, a, b)
        if meet and not set[meet] then set[meet], grows = true, true end
      end
    end
  end
  return set
end

-- promotes: the set of the dtypes with a row in the table of promotion; conversions: the set of the files of conversions of
-- parameters, or nil for all
local function dtype_tables(types, built, promotes, conversions)
  local out = { "const qn_dtype_info qn_dtype_infos[QN_DTYPE_COUNT] = {" }
  for _, t in ipairs(types.list) do
    local bits = t.kind == "bits"
    local is_float = t.kind == "float"
    local file, convert = numbers.of(t)
    out[#out + 1] = string.format("  [%s] = {\"%s\", %s, %d, %d, QN_KIND_%s, %s, %s, %s, %d, %d, %d, %d, %s},", upper(t.name),
      t.name, bits and "QN_DTYPE_NONE" or tostring(t.code), t.bits, t.size, t.kind:upper(), upper(t.compute), upper(t.floating),
      upper(bits and t.name or promote.bits_dtype(t)), (bits or built[t.name]) and 1 or 0,
      is_float and t.exponent or 0, is_float and t.digits or 0, t.finite and 1 or 0,
      file and (not conversions or conversions[file]) and convert or "NULL")
  end
  out[#out + 1] = "};\nconst uint8_t qn_dtype_promotion[QN_DTYPE_COUNT][QN_DTYPE_COUNT] = {"
  for _, a in ipairs(types.list) do
    local row = {}
    for _, b in ipairs(types.list) do
      local meet = promote.common(types, a.name, b.name)
      row[#row + 1] = meet and upper(meet) or "QN_DTYPE_NONE"
    end
    if not promotes or promotes[a.name] then
      out[#out + 1] = string.format("  [%s] = {%s},", upper(a.name), table.concat(row, ", "))
    end
  end
  out[#out + 1] = "};\nconst uint8_t qn_dtype_of_dlpack[QN_DTYPE_N_CODES][8] = {"
  for code = 0, n_codes(types) - 1 do
    local row = {}
    for exponent = 0, 7 do
      row[exponent + 1] = "QN_DTYPE_NONE"
      for _, t in ipairs(types.list) do
        if t.kind ~= "bits" and t.code == code and t.bits == 1 << exponent then row[exponent + 1] = upper(t.name) end
      end
    end
    if code == 1 then row[1] = "QN_BOOL" end
    out[#out + 1] = string.format("  {%s},", table.concat(row, ", "))
  end
  out[#out + 1] = "};\n"
  return table.concat(out, "\n")
end

local CLASS = { c = "QN_CLASS_CONTIGUOUS", b = "QN_CLASS_BROADCAST", s = "QN_CLASS_STRIDED", t = "QN_CLASS_TILED" }

-- The first fields of a kernel's row, before its functions: name, dtypes, classes, rank.
function M.row_head(record, name, dtypes)
  local constants, classes = {}, {}
  for k, dtype in ipairs(dtypes) do
    constants[k] = upper(dtype)
    classes[k] = CLASS[record.classes:sub(k, k)]
  end
  return string.format("{QN_SPELLED(%s), (const uint8_t[]){%s}, (const uint8_t[]){%s}, %s", name, table.concat(constants, ", "),
                       table.concat(classes, ", "), record.rank == "n" and "0" or record.rank)
end

-- The function of a record's kernel: its own, or that of the kernel with the same machine code (share.lua).
function M.function_name(record) return (record.code or record).name end

-- A qn_variant's initialiser.
function M.variant_row(record)
  return string.format("%s, QN_FN(%s)}", M.row_head(record, record.name, record.dtypes), M.function_name(record))
end

-- A number as a double in C.
local function float_text(value)
  if value ~= value then return "__builtin_nan(\"\")" end
  if value == math.huge or value == -math.huge then return (value < 0 and "-" or "") .. "__builtin_inf()" end
  return c.literal("f64", number.f64_bits(value + 0.0))
end

-- A parameter's default as a quern_scalar.
local function scalar(value)
  if value == nil then return "{QUERN_NONE, {0}}" end
  if math.type(value) == "integer" then return string.format("{QUERN_I64, {.i = %s}}", c.literal("i64", value)) end
  if value ~= value then return "{QUERN_F64, {.f = {__builtin_nan(\"\"), 0}}}" end
  if value == math.huge then return "{QUERN_F64, {.f = {__builtin_inf(), 0}}}" end
  if value == -math.huge then return "{QUERN_F64, {.f = {-__builtin_inf(), 0}}}" end
  return string.format("{QUERN_F64, {.f = {%s, 0}}}", c.literal("f64", number.f64_bits(value)))
end

-- The dtypes that an op's inputs may have, and for each output the dtypes that follow from these.
function M.accepted(types, op, built)
  local inputs, is_result, outputs = {}, {}, {}
  for _, name in ipairs(types.sets.all) do
    if built[name] then
      local is_listed, K = expr.is_listed(op, name), expr.compute_type(types, op, name)
      if K and types.by_name[K].kind ~= "bits" and not built[K] then is_listed, K = false, nil end
      if is_listed or K then inputs[#inputs + 1] = name end
      local result = expr.is_double(op) and "f64" or (is_listed and name) or (K and types.by_name[name].floating)
      local kind = kinds.of(op)
      if result and kind.result_dtype then result = kind.result_dtype(types, op, result) end
      if result then is_result[result] = true end
    end
  end
  local promoted = order.those_in(types.sets.all, is_result)
  for k, output in ipairs(op.outputs) do
    outputs[k] = output.type and { #inputs > 0 and output.type or nil } or promoted
  end
  return inputs, outputs
end

-- The integer dtypes that are built.
function M.integers(types, built)
  local list = {}
  for _, name in ipairs(types.sets.integer) do list[#list + 1] = built[name] and name or nil end
  return list
end

-- Whether a body is keyed by a dtype that is computed in another: there are kernels of that dtype itself.
function M.has_own_body(types, op, name) return op.bodies[name] ~= nil and types.by_name[name].compute ~= name end

-- The definitions that an op's row refers to; and the sets of inputs that are conditions, and that are integers of any dtype, as bits.
local function op_definitions(types, op, built, records, devices)
  local out, rows, bool_in, whole_in = {}, {}, 0, 0
  local inputs, outputs = M.accepted(types, op, built)
  local alias = not kinds.of(op).may_alias and 0 or (1 << #op.inputs) - 1
  for k, input in ipairs(op.inputs) do
    local dtypes = input.type == "bool" and "bool" or table.concat(input.type and M.integers(types, built) or inputs, " ")
    if input.type and input.type ~= "bool" then whole_in = whole_in | 1 << (k - 1) end
    if input.type == "bool" then bool_in = bool_in | 1 << (k - 1) end
    rows[#rows + 1] = string.format("{\"%s\", \"%s\", 0, 0}", input.name, dtypes)
  end
  for k, output in ipairs(op.outputs) do
    rows[#rows + 1] = string.format("{\"%s\", \"%s\", 1, 0x%xu}", output.name, table.concat(outputs[k], " "), alias)
  end
  local function define(type_name, name, lines)
    if #lines == 0 then return end
    out[#out + 1] = string.format("static const %s %s_%s[] = {\n%s\n};", type_name, name, op.c_name, table.concat(lines, "\n"))
  end
  out[1] = string.format("static const quern_arg_info args_%s[] = {%s};", op.c_name, table.concat(rows, ", "))
  local params, variant_rows = {}, {}
  for k, param in ipairs(op.params) do params[k] = string.format("{\"%s\", %s}", param.name, scalar(param.value)) end
  for k, record in ipairs(records) do variant_rows[k] = "  " .. M.variant_row(record) .. "," end
  if #params > 0 then
    out[2] = string.format("static const quern_param_info params_%s[] = {%s};", op.c_name, table.concat(params, ", "))
  end
  local roles = kinds.roles(op)
  if roles then out[3] = string.format("static const uint8_t roles_%s[] = {%s};", op.c_name, table.concat(roles, ", ")) end
  define("qn_variant", "variants", variant_rows)
  for _, device in ipairs(devices) do
    local lines = {}
    for k, row in ipairs(device.rows_of[op.name] or {}) do
      lines[k] = "  " .. device.row_text(row, M.row_head(row.record, row.name, row.dtypes)) .. ","
    end
    define(device.row_type, device.list, lines)
  end
  return out, bool_in, whole_in
end

-- Where the variants of each kernel dtype begin, in the order of dtypes, and whether any is heavy.
local function first_variants(types, op, records)
  local first, at, heavy = {}, 0, false
  for _, t in ipairs(types.list) do
    first[#first + 1] = tostring(at)
    while records[at + 1] and records[at + 1].K == t.name do
      heavy = heavy or records[at + 1].heavy or records[at + 1].loops or false
      at = at + 1
    end
  end
  first[#first + 1] = tostring(at)
  if at > 0xffff then error("bug: more variants of " .. op.name .. " than the table can count") end
  if at ~= #records then error("bug: variants of " .. op.name .. " are not grouped by kernel dtype") end
  return first, heavy
end

-- The traits of the library's row that most ops do not have: the reason why the op is no part of an expression; what literals and
-- NaNs mean to it; the meaning of a backward op's inputs and outputs.
local function traits_of(op, records)
  local refusal, out = kinds.of(op).refusal, {}
  if refusal then out[1] = ".refusal = " .. c.string(refusal(op)) .. (kinds.of(op).allowed_in_expression and ", .is_limit = 1" or "") end
  local sees_signs = false
  for _, record in ipairs(records) do sees_signs = sees_signs or record.sees_signs end
  if sees_signs then out[#out + 1] = ".looks_at_sign = 1" end
  if (op.fraction_in or 0) > 0 then out[#out + 1] = string.format(".fraction_in = 0x%x", op.fraction_in) end
  if op.backward_of then
    out[#out + 1] = string.format(".is_backward = 1,\n      .reads = {%s},\n      .by = {%s}", table.concat(op.reads, ", "),
                                  table.concat(op.by, ", "))
  end
  return #out > 0 and "\n    .traits = &(const qn_op_traits){" .. table.concat(out, ",\n      ") .. "}," or ""
end

-- A qn_builtin's initialiser. What is 0 is left out.
-- is_there: the set of names of all ops
-- devices: as op_table has it
local function builtin_row(types, op, built, records, bool_in, whole_in, is_there, devices, of_kind, is_library)
  local ahead = {}
  for _, device in ipairs(devices) do
    local rows = device.rows_of[op.name]
    if rows then ahead[#ahead + 1] = string.format("{&%s, %s_%s, %d}, ", device.backend, device.list, op.c_name, #rows) end
  end
  local mask, own, results, first, heavy = {}, {}, {}, first_variants(types, op, records)
  for _, name in ipairs(op.dtypes) do
    if built[name] then mask[#mask + 1] = "1u << " .. upper(name) end
    if built[name] and M.has_own_body(types, op, name) then own[#own + 1] = "1u << " .. upper(name) end
  end
  for k, output in ipairs(op.outputs) do results[k] = output.type and upper(output.type) or "QN_DTYPE_NONE" end
  return string.format([[
  { .info = {sizeof(quern_op_info), "%s", %s, %s, %s, %d, %d, %d, args_%s, %s, 64, %s, %d, %s},
    .kind = &qn_kind_%s, .promotion = QN_PROMOTION_%s, .results = {%s},%s%s%s .dtypes = %s,
    .variants = %s, .n_variants = %d, .first = {%s},%s%s%s },]], op.name, c.string(op.doc), c.string(kernels.formula(op)),
    kinds.class_constant(op), #op.inputs, #op.outputs, #op.params, op.c_name,
    #op.params > 0 and "params_" .. op.c_name or "NULL",
    op.backward and is_there[op.backward] and '"' .. op.backward .. '"' or "NULL", op.counts or 0, kinds.roles(op) and "roles_" .. op.c_name or "NULL",
    kinds.of(op).runtime or kinds.of(op).name,
    variants.promotion(types, op), table.concat(results, ", "),
    (bool_in > 0 and string.format(" .bool_in = 0x%xu,", bool_in) or "")
      .. (whole_in > 0 and string.format(" .whole_in = 0x%xu,", whole_in) or ""), heavy and " .heavy = 1," or "",
    #own > 0 and "\n    .own = " .. table.concat(own, " | ") .. "," or "",
    #mask > 0 and table.concat(mask, " | ") or "0",
    #records > 0 and "variants_" .. op.c_name or "NULL", #records, table.concat(first, ", "), is_library and traits_of(op, records) or "",
    of_kind and "\n    .of_kind = " .. of_kind .. "," or "",
    #ahead > 0 and string.format("\n    .ahead = (const qn_ahead[]){%s{NULL, NULL, 0}},", table.concat(ahead)) or "")
end

local function op_rows(types, ops, built, records_of, devices, packs, is_library)
  local out, rows, is_there = {}, {}, {}
  local context = { upper = upper, built = built, reducer_of = {}, programs = {}, number = float_text }
  local n_reducers = 0
  for _, record in ipairs(packs) do
    if record.reducer and not context.reducer_of[record.reducer] then
      context.reducer_of[record.reducer], n_reducers = n_reducers, n_reducers + 1
    end
  end
  for _, op in ipairs(ops) do is_there[op.name] = true end
  for k, op in ipairs(ops) do
    local records = records_of[op.name]
    local definitions, bool_in, whole_in = op_definitions(types, op, built, records, devices)
    table.move(definitions, 1, #definitions, #out + 1, out)
    local own_rows, of_kind = kinds.of(op).own_rows, nil
    if own_rows then
      local own
      own, of_kind = own_rows(types, op, records, context)
      table.move(own, 1, #own, #out + 1, out)
    end
    rows[k] = builtin_row(types, op, built, records, bool_in, whole_in, is_there, devices, of_kind, is_library)
  end
  out[#out + 1] = "const qn_builtin qn_builtins[] = {"
  table.move(rows, 1, #rows, #out + 1, out)
  out[#out + 1] = string.format("};\nconst int32_t qn_n_builtins = %d;\n", #ops)
  return table.concat(out, "\n")
end

-- The declarations of the backends and kinds that rows refer to; the table of backends, the CPU's first; of the library also the
-- table of kinds. kind_names: a set
local function declarations(kind_names, backends, is_library)
  local out, list = {}, {}
  for _, name in ipairs(order.keys(kind_names)) do out[#out + 1] = string.format("extern const qn_kind qn_kind_%s;", name) end
  for k, name in ipairs(backends) do
    out[#out + 1] = string.format("extern const qn_backend %s;", name)
    list[k] = "&" .. name .. ", "
  end
  out[#out + 1] = string.format("const qn_backend *const qn_backends[] = {%sNULL};\n", table.concat(list))
  if is_library then
    local kinds_text = table.concat(order.keys(kind_names), ", &qn_kind_")
    out[#out + 1] = string.format("const qn_kind *const qn_kinds[] = {&qn_kind_%s, NULL};\n", kinds_text)
  end
  return table.concat(out, "\n")
end

-- The ops that the library itself calls (runtime/base/own_ops.h): those that packing kernels of a role compute.
local function own_ops(ops)
  local fields = {}
  for _, row in ipairs { { "copy", "gather" }, { "convert", "convert" } } do
    for index, op in ipairs(ops) do
      local kind = kinds.of(op)
      if not fields[row[1]] and kind.pack_role and kind.pack_role(op) == row[2] then
        fields[row[1]] = true
        fields[#fields + 1] = string.format(".%s = &qn_builtins[%d]", row[1], index - 1)
      end
    end
  end
  return string.format("const qn_own_ops_table qn_own_ops = {%s};\n", #fields > 0 and table.concat(fields, ", ") or "NULL, NULL")
end

-- The kinds in a set of names that share kernels in a table of their own, by name.
local function with_tables(kind_names)
  local list = {}
  for _, kind in ipairs(kinds.list) do
    if kind.table and kind_names[kind.name] and (kind.runtime or kind.name) == kind.name then list[#list + 1] = kind end
  end
  table.sort(list, function(a, b) return order.less(a.name, b.name) end)
  return list
end

-- A number of a dtype as the bits of an initialiser.
local function bits_of(types)
  return function(dtype, value)
    local t = types.by_name[dtype]
    if t.kind ~= "float" then return string.format("0x%xu", value) end
    return string.format("0x%xu", number.float_bits(value + 0.0, t))
  end
end

-- The kinds' own tables. by_role: role -> list of { record, name }
local function kind_rows(types, kind_names, by_role, has_cpu)
  local out = {}
  for k, kind in ipairs(with_tables(kind_names)) do
    out[k] = kind.table.text(function(role) return by_role[role] or {} end, upper, bits_of(types), has_cpu)
  end
  return table.concat(out)
end

-- The name of a record in by_role is its row, an expression. kind_names: the set of those that may have kernels among them; unbuilt:
-- as op_table has it
local function pack_rows(types, packs, kind_names, unbuilt)
  if #packs == 0 then
    local by_role = {}
    for k, record in ipairs(unbuilt) do
      by_role.reduce = by_role.reduce or {}
      by_role.reduce[k] = { record = record }
    end
    return "/* There are no kernels for the CPU. */\nconst qn_pack_table qn_packs = {.stream = NULL};\n" .. kind_rows(types, kind_names, by_role, false)
  end
  local out, by_role = { "const qn_pack_table qn_packs = {\n  .convert = {" }, {}
  for _, record in ipairs(packs) do
    by_role[record.role] = by_role[record.role] or {}
    table.insert(by_role[record.role], { record = record, name = "(const qn_variant)" .. M.variant_row(record) })
  end
  local rows = {}
  for _, pack in ipairs(by_role.convert or {}) do
    rows[pack.record.from] = rows[pack.record.from] or {}
    table.insert(rows[pack.record.from], string.format("[%s] = &%s", upper(pack.record.to), pack.name))
  end
  for _, t in ipairs(types.list) do
    if rows[t.name] then out[#out + 1] = string.format("    [%s] = {%s},", upper(t.name), table.concat(rows[t.name], ", ")) end
  end
  out[#out + 1] = "  },"
  for _, role in ipairs { "widen", "narrow" } do
    local list = {}
    for _, pack in ipairs(by_role[role] or {}) do
      list[#list + 1] = string.format("[%s] = &%s", upper(pack.record.storage), pack.name)
    end
    if #list > 0 then out[#out + 1] = string.format("  .%s = {%s},", role, table.concat(list, ", ")) end
  end
  for _, pair in ipairs { { "gather", "scatter" }, { "fill", "transpose" }, { "gather_at", "scatter_at" } } do
    local both = {}
    for k, role in ipairs(pair) do
      local list = {}
      for _, pack in ipairs(by_role[role]) do list[#list + 1] = string.format("[%d] = &%s", pack.record.log2, pack.name) end
      both[k] = string.format(".%s = {%s},", role, table.concat(list, ", "))
    end
    out[#out + 1] = "  " .. table.concat(both, " ")
  end
  out[#out + 1] = string.format("  .stream = &%s};\n", by_role.stream[1].name)
  return table.concat(out, "\n") .. kind_rows(types, kind_names, by_role, true)
end

-- The head of a table of kernels: macros for a kernel's declaration, and for its functions in a qn_variant.
M.KERNEL_MACROS = [[
/* Each kernel is compiled once per level of the target; QN_ONE_LEVEL: once, for whatever level the flags name. */
#if defined(__x86_64__) && !defined(QN_ONE_LEVEL)
#define QN_DECLARE(name) qn_kernel name##_v2, name##_v3, name##_v4;
#define QN_FN(name) {0, name##_v2, name##_v3, name##_v4}
#else
#define QN_DECLARE(name) qn_kernel name;
#define QN_FN(name) {name, 0, 0, 0}
#endif
]]

-- What the library has above the core: the fields of qn_above_table.
local LIBRARY_ABOVE = {
  "quern_managed_alloc", "qn_extension_create", "qn_extension_destroy", "qn_extension_define", "qn_scratch_take", "qn_scratch_give",
  "qn_extension_find",
}

-- op_table.c.
-- ops: sorted by name; records_of: op name -> records, grouped by kernel dtype; packs: records, none without kernels for the CPU;
-- devices: the device_tables of other targets (gen/targets/all.lua).
-- options.kinds: set of the names of the kinds of op that are compiled; options.is_library: whether the text has a table of them
-- (qn_kinds), one of the library's own ops and what the layers above the core add to it, and all dtypes promote;
-- options.unbuilt: the records of what reduces, which have no kernels where packs is empty.
function M.op_table(types, ops, built, records_of, packs, banner, devices, options)
  local kind_names = options.kinds
  local backends, headers, declared = {}, {}, {}
  if options.is_library then
    headers[1] = '#include <quern/dlpack_exchange.h>\n#include "base/op_traits.h"\n#include "base/own_ops.h"\n'
      .. '#include "base/memory/scratch.h"\n#include "run/extension.h"\n'
  end
  if #packs > 0 then backends[1] = "qn_backend_cpu" end
  for _, kind in ipairs(with_tables(kind_names)) do headers[#headers + 1] = '#include "' .. kind.table.header .. '"\n' end
  for _, device in ipairs(devices) do
    backends[#backends + 1] = device.backend
    headers[#headers + 1] = '#include "' .. device.header .. '"\n'
    table.move(device.declarations, 1, #device.declarations, #declared + 1, declared)
  end
  local names, seen = {}, {}
  local function declare(record)
    local name = M.function_name(record)
    if not seen[name] then
      seen[name] = true
      names[#names + 1] = "QN_DECLARE(" .. name .. ")"
    end
  end
  for _, op in ipairs(ops) do
    for _, record in ipairs(records_of[op.name]) do declare(record) end
  end
  for _, record in ipairs(packs) do declare(record) end
  order.sort(names)
  local promotes = not options.is_library and met_by_promotion(types, built) or nil
  local conversions = not options.is_library and numbers.needed(types, ops, built) or nil
  local declared_text = #declared > 0 and table.concat(declared, "\n") .. "\n" or ""
  local typed = {}
  for index, op in ipairs(ops) do
    typed[#typed + 1] = string.format("QUERN_API quern_op *quern_builtin_%s(void) { return qn_registry_builtin(%d); }", op.c_name,
                                      index - 1)
  end
  return table.concat(banner, "\n") .. [[

#include "core/op/backend.h"
#include "core/op/kind.h"
]] .. table.concat(headers) .. "\n" .. M.KERNEL_MACROS .. "\n"
    .. wrapped(names, "", " ", 150) .. "\n" .. declared_text .. "\n" .. dtype_tables(types, built, promotes, conversions) .. "\n"
    .. declarations(kind_names, backends, options.is_library) .. "\n"
    .. op_rows(types, ops, built, records_of, devices, #packs > 0 and packs or options.unbuilt, options.is_library) .. "\n"
    .. (options.is_library and own_ops(ops) .. "\n" or "")
    .. pack_rows(types, packs, kind_names, options.unbuilt) .. "\n"
    .. string.format("const qn_above_table qn_above = {%s};\n\n",
                     table.concat(options.is_library and LIBRARY_ABOVE or { "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL" }, ", "))
    .. table.concat(typed, "\n") .. "\n"
end

return M
