-- SPDX-License-Identifier: Apache-2.0
--
-- t021-generator: the generator's modules by themselves: numbers as bits and as decimals, positions of fields, tables, names,
-- shifts, JSON, names of locals, what `new` leaves alone.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. root .. "/?.lua;" .. package.path
local tap = require "tap"
local number = require "gen.base.number"
local c = require "gen.targets.c.text"
local main = require "gen.main"
local evaluate = require "gen.graph.dag.evaluate"

-- f32 by integers against the C library's own conversion
tap.group_begin("f32_bits rounds as the hardware does")
local rng = tap.rng(21)
local values = { 0.0, -0.0, 1.0, 0x1.fffffep127, 0x1.ffffffp127, 0x1.fffffefffffffp127, 1e39, 3.5e38, 0x1p129, 1e300, math.huge, -math.huge,
                 0x1p-149, 0x1p-150, 0x1.8p-150, 0x1p-126, 0x1.fffffffp-127, 0x1.fffffefp-127, 5e-324, 1e-40, 0x1.000001p0, 0x1.000003p0 }
for _ = 1, 20000 do values[#values + 1] = number.f64_value(rng:u64()) end
for _ = 1, 20000 do
  local wide = number.f64_value((rng:u64() & 0x800fffffffffffff) | (rng:u64() % 300 + 870) << 52)
  values[#values + 1] = wide
end
for _, value in ipairs(values) do
  if value == value then
    tap.group_count()
    local wanted = string.unpack("<I4", string.pack("<f", value))
    if number.f32_bits(value) ~= wanted then tap.group_fail("%a: %08x, wanted %08x", value, number.f32_bits(value), wanted) end
  end
end
tap.group_end()

-- Short decimals are read as the very number, by way of f64 and directly.
tap.group_begin("a short decimal reads back")
local FLOATS = { { exponent = 8, digits = 24, form = "<f" }, { exponent = 11, digits = 53, form = "<d" } }
for k = 1, 20000 do
  local value = k % 2 == 0 and (rng:u64() % 2000000 + 1) / 10 ^ (rng:u64() % 9) or (rng:u64() % 0x2000000 + 1) / 2.0 ^ (rng:u64() % 32)
  for _, t in ipairs(FLOATS) do
    local rounded = string.unpack(t.form, string.pack(t.form, value))
    local short, exact = number.short(rounded, t), number.short(rounded, t, true)
    tap.group_count()
    if short and string.unpack(t.form, string.pack(t.form, tonumber(short))) ~= rounded then
      tap.group_fail("%a: %s", rounded, short)
    end
    if exact and tonumber(exact) ~= rounded then tap.group_fail("%a: %s is not exact", rounded, exact) end
  end
end
tap.group_end()
for _, row in ipairs { { 0.5, "0.5f", "0.5" }, { -3.0, "-3.0f", "-3.0" }, { 0.1, "0.1f", "0.1" }, { 0.044715, "0.044715f", "0.044715" },
                       { 708.0, "708.0f", "708.0" }, { 0x1p-23, "0x1p-23f", "0x1p-23" } } do
  tap.is(c.literal("f32", number.f32_bits(row[1])), row[2], "a literal of f32: %s", row[2])
  tap.is(c.literal("f64", number.f64_bits(row[1])), row[3], "  of f64")
end

tap.is(c.string 'plain "quoted" \\ ?? \n\1\xff', '"plain \\"quoted\\" \\\\ \\?\\? \\n\\001\\377"', "a C string is readable and closed")
tap.is(c.comment_text "a */ b ??/ \\", "a * / b ? ?/ |", "a comment cannot end itself")

local file = os.tmpname()
local function check(text)
  local handle = assert(io.open(file, "w"))
  handle:write(text)
  handle:close()
  local rows, errors = main.check(root, file)
  return rows, errors and table.concat(errors, "\n") or ""
end
local function refuses(text, wanted, name)
  local rows, errors = check(text)
  tap.ok(not rows and errors:find(wanted, 1, true), "%s", name)
  if rows or not errors:find(wanted, 1, true) then tap.diag("%s", rows and "accepted" or errors) end
end

refuses('local P = { a = 1, b = 2 }\nunary "acme.p" { doc = "d", dtypes = floating, params = P, body = "x" }\n'
        .. 'unary "acme.q" { doc = "d", dtypes = floating, params = { b = 1, a = 2 }, body = "x" }', "write each parameter as name",
        "parameters need a literal table: its order is the ABI's")
local rows = check 'unary "acme.a" { doc = "d", dtypes = floating, params = { z = 1.0, a = 2.0 }, body = "x + z - a" }'
tap.is(rows and rows[1].op.params[1].name, "z", "parameters stand in the order they are written")
refuses('unary "acme.z" { doc = "zz", dtypes = floating, body = "zz" }', ":1:57: acme.z: unknown name 'zz'",
        "a body that equals the doc has its own place")
refuses('tables { T = { "i32", 1.5, 2 } }', "item 1 is no integer", "an integer table of fractions")
refuses('tables { T = { "f16", 1.5, 2 } }', "f32, f64 or an integer type", "a table of a storage type")
refuses('func "sqrt" { body = "x" }', "cannot be a function's name", "a function named as a primitive")
refuses('func "relu" { body = "x" }', "cannot be a function's name", "a function named as a built-in op")
refuses('op "acme.a" { inputs = "rare, x", doc = "d", dtypes = floating, body = "x" }', "is not a name", "an input named as a word of bodies")
refuses('unary "acme.a" { doc = "d", dtypes = all, casts = true, body = "-x" }', "what casts has one input, and that is its body",
        "a cast that computes")
refuses('unary "acme.a" { doc = "d", dtypes = floating, body = "x", grad = "g" }', "unknown name 'g'", "a derivative of what is not there")

-- shifts by a count of another type: outside the width is outside, however wide the count
tap.group_begin("shift counts of other types")
local model = main.load(root, {})
local function shifted(body, t, x, y)
  local handle = assert(io.open(file, "w"))
  handle:write(string.format('op "acme.s" { inputs = "x, y", doc = "d", dtypes = "%s", body = "%s" }', t, body))
  handle:close()
  local with = main.load(root, { file })
  local plan = assert(main.plan(with, { ops = "acme.s" }))
  return evaluate.run(with.types, plan.dag_for(plan.ops[1], t), { x = x, y = y })
end
for _, case in ipairs { { "x << (i32)256", "u8", 3, 0, 0 }, { "x << (i32)1", "u8", 3, 0, 6 }, { "x << ((i64)y << 8)", "u8", 3, 1, 0 },
                        { "x >> ((i64)y - 300)", "i32", -8, 0, -1 }, { "x >> (i64)y", "i32", -8, 1, -4 }, { "x << (u8)y", "i64", 1, 40, 1 << 40 } } do
  tap.group_count()
  local got = shifted(case[1], case[2], case[3], case[4])
  if got ~= case[5] then tap.group_fail("%s of %s: %s, wanted %s", case[1], case[2], tostring(got), tostring(case[5])) end
end
tap.group_end()

-- `new` in a generated tree writes its file and nothing else
local folder = file .. ".tree"
local command = string.format("lua5.4 '%s/build.lua' generate --ops add --dtypes f32 --prefix acme --out '%s'", root, folder)
tap.ok(os.execute(command), "a tree")
local function count()
  local pipe = assert(io.popen("find '" .. folder .. "' -type f | wc -l"))
  local n = pipe:read "n"
  pipe:close()
  return n
end
local before = count()
os.execute(string.format("cd '%s' && lua5.4 \"$OLDPWD/%s/build.lua\" new acme.swish >/dev/null 2>&1 || lua5.4 '%s/build.lua' new acme.swish >/dev/null",
                         folder, root, root))
tap.is(count(), before + 1, "new adds one file to it")
tap.ok(os.execute(command .. " --single"), "the same as a single file")
local pipe = assert(io.popen("find '" .. folder .. "' -path '*/*/*' -name '*.[ch]' -mindepth 2 | wc -l"))
tap.is(pipe:read "n", 0, "which removes the many")
pipe:close()
os.execute("rm -rf '" .. folder .. "'")

-- a parameter where the dtype is bool is a condition
local handle = assert(io.open(file, "w"))
handle:write 'unary "acme.is_k" { doc = "d", params = { k = 1 }, dtypes = all, result = "bool", body = "x == k" }'
handle:close()
local text = main.show(root, "qk_acme_is_k_bool_bool_2d_cc", { file })
tap.ok(text and text:find("const m8 p_k = Q_MASK(m8, *(const bool_s_u *)((const char *)params + 0) != 0);", 1, true), "a bool parameter")
local refused, why_refused = main.generate(root, { prefix = "qn", ops = "add" })
tap.ok(not refused and why_refused[1]:find("--prefix", 1, true), "the core's own prefix")

-- `--dtypes bool` with a float op: computed in f32
local plan = assert(main.plan(model, { ops = "exp", dtypes = "bool" }))
tap.ok(plan.wanted.f32 and #plan.ops == 1 and #plan.records_of.exp == 1, "a float op of bool has its f32 kernel")

os.remove(file)
-- Kernels that are the same machine code, of a tree as it is written
local tree = main.generate(root, { ops = "add,maximum,fmax,less,square,copy,astype,where,bitwise_left_shift,bitwise_right_shift", library = true })
local code = {}
for name, rest in tree.files["manifest.json"]:gmatch '{"name": "(%w+_[%w_]+)_v3", ([^}]*)}' do
  code[name] = rest:match '"code": "([%w_]+)_v3"' or name
end
for _, pair in ipairs { { "add_u32_u32_u32_2d_ccc", "add_i32_i32_i32_2d_ccc" }, { "square_u8_u8_2d_cc", "square_i8_i8_2d_cc" },
                        { "maximum_u16_u16_u16_2d_bcc", "fmax_u16_u16_u16_2d_bcc" }, { "copy_b32_b32_2d_ss", "astype_b32_b32_2d_ss" },
                        { "bitwise_left_shift_u64_u64_u64_2d_ccc", "bitwise_left_shift_i64_i64_i64_2d_ccc" },
                        { "pack_convert_i16_u8_1d_cc", "pack_convert_i16_i8_1d_cc" }, { "pack_convert_u16_u8_1d_cc", "pack_convert_i16_i8_1d_cc" },
                        { "pack_convert_i8_u16_1d_cc", "pack_convert_i8_i16_1d_cc" } } do
  tap.is(code["qk_" .. pair[1]], "qk_" .. pair[2], "%s is %s", pair[1], pair[2])
end
for _, name in ipairs { "add_f32_f32_f32_2d_ccc", "maximum_f32_f32_f32_2d_ccc", "fmax_i16_i16_i16_2d_ccc", "fmax_u16_u16_u16_2d_ccc",
                        "less_i32_i32_bool_2d_ccc", "less_u32_u32_bool_2d_ccc", "bitwise_right_shift_u8_u8_u8_2d_ccc",
                        "bitwise_right_shift_i8_i8_i8_2d_ccc", "pack_convert_u8_i16_1d_cc", "pack_convert_i8_i16_1d_cc",
                        "pack_convert_i32_f32_1d_cc", "pack_convert_u32_f32_1d_cc" } do
  tap.is(code["qk_" .. name], "qk_" .. name, "%s has code of its own", name)
end

-- A tree's names: identifiers and words of comments change, strings do not
local names = require "gen.targets.c.names"
for _, row in ipairs {
  { "quern_call *qn_x = QN_Y(qk_add, QUERN_OK);", "acme_call *acme_qn_x = ACME_QN_Y(acme_qk_add, ACME_OK);" },
  { [[f("quern_x \" qn_y", 'q', "/*"); qn_z]], [[f("quern_x \" qn_y", 'q', "/*"); acme_qn_z]] },
  { "/* \"quern_x\", don't */ qn_y // it's qn_z\nqn_w('\\'')", "/* \"acme_x\", don't */ acme_qn_y // it's acme_qn_z\nacme_qn_w('\\'')" },
  { "xquern_a _qn_b quern qc_add_f32 q_lookup", "xquern_a _qn_b quern qc_add_f32 q_lookup" },
  { "#error don't\nqn_a", "#error don't\nacme_qn_a" }, { "a / qn_b / \"/\" / qn_c", "a / acme_qn_b / \"/\" / acme_qn_c" },
} do
  tap.is(names.rename(row[1], "acme"), row[2], "renamed: %s", row[1])
  tap.is(names.rename(row[1], "quern"), row[1], "  not for the library")
end
-- No string of the core has a name of the library, which a tree would not have.
local pipe_of_core, in_strings = assert(io.popen("cd '" .. root .. "' && grep -rnE '\"[^\"]*\\b(quern|QUERN|qn|QN|qk)_[^\"]*\"' runtime/core runtime/tree")), {}
for line in pipe_of_core:lines() do
  local bare = line:gsub("/%*.*", "")
  for said in bare:gmatch '"([^"]*)"' do
    if (" " .. said):find "[^%w_]quern_" or (" " .. said):find "[^%w_]QUERN_" then in_strings[#in_strings + 1] = line end
  end
end
pipe_of_core:close()
tap.is(table.concat(in_strings, "\n"), "", "the core spells names in strings by QN_SPELLED")

-- Templates within templates
local template = require "gen.base.template"
local others = {
  ["f/around.in"] = "$param n\n{\n  $include inner.in\n$inside\n}\n", ["f/inner.in"] = "$for x in list\n${x}\n$end\n$param list\n",
}
local parsed = template.parse("f/a.in", "$param v\n$within around.in\n  v${v};\n$within around.in\n    w;\n$end\n$end\n",
                              function(name) return others[name] end)
tap.is(template.render(parsed, { v = 1, n = 2, list = { "p", "q" } }), "{\n  p\n  q\n  v1;\n{\n  p\n  q\n    w;\n}\n}\n", "a template around others")
tap.ok(not pcall(template.render, parsed, { v = 1, n = 2 }), "what an included one takes has to be given")
tap.ok(not pcall(template.render, template.parse("f/around.in", others["f/around.in"], function(name) return others[name] end),
                 { n = 1, list = {} }), "$inside of nothing is a bug")

-- Locals that are named as words of C, macros, types, the templates' own names and one another
local shell = require "shell"
local words = { "n", "i", "k", "m", "j", "l", "first", "row_x", "in_x", "strip_x", "kept_r", "t3", "t12", "q_zero", "Q_IVDEP", "linux",
                "for", "class", "float", "int", "bool_s", "f32_u", "m32", "NULL", "__x", "_a", "x", "out", "exp", "args", "item", "r_2", "r" }
local lines, sum = {}, "x"
for k, word in ipairs(words) do
  if word ~= "x" then
    lines[#lines + 1] = string.format("%s = %s * x + %d.25;", word, sum, k)
    sum = word
  end
end
folder = shell.folder()
shell.write(folder .. "/words.lua", string.format([==[
func "acme_r" { doc = "r.", args = "v", body = [[ r = v * v; return r + 0.5; ]] }
unary "acme.words" { doc = "Words.", dtypes = floating, body = [[ %s return acme_r(%s); ]] }
]==], table.concat(lines, " "), sum))
local ok, said = shell.run(string.format("cd '%s' && lua5.4 build.lua generate --prefix acme --spec %s/words.lua --ops acme.words "
  .. "--out %s && cd %s/kernels && cc -std=gnu11 -O1 -Wall -Wextra -Wshadow -Werror -c acme_op_words_cpu.c -o words.o", root, folder, folder, folder))
tap.ok(ok, "locals of any name")
if not ok then tap.diag("%s", said:sub(1, 2000)) end
text = ok and shell.read(folder .. "/kernels/acme_op_words_cpu.c") or ""
tap.has_str(text, "const f32 first = ", "  keep it where it is free")
tap.has_str(text, "const f32 n_2 = ", "  have a number where it is not")
tap.has_str(text, "const f32 r_3 = ", "  which another may have taken")
shell.run("rm -r " .. folder)

tap.done_testing()
