-- SPDX-License-Identifier: Apache-2.0
-- tags: long
--
-- t020-spec.lua: what a stranger's spec can do to the generator: nothing but define ops. Hostile specs are refused at a
-- place, in bounded time and memory; text that tries to leave a comment or a string of the generated C stays inside.
-- Knows gen/ by main.check and build.lua only; the built-in specs are read once, and each spec is checked on a copy of what they
-- declare.

local source_dir = os.getenv "QUERN_SOURCE_DIR" or (arg[0]:match "^(.*)/[^/]*$" or ".") .. "/../.."
package.path = source_dir .. "/tests/support/?.lua;" .. source_dir .. "/?.lua;" .. package.path
local tap = require "tap"
local copies = require "copies"
local main = require "gen.main"
copies.of_builtin_model(require "gen.products.load")

local function capture(command)
  local pipe = assert(io.popen("{ " .. command .. "\n} 2>&1; echo \"status $?\""))
  local text = pipe:read "a"
  pipe:close()
  local status = tonumber(text:match "status (%d+)\n$")
  return text:gsub("status %d+\n$", ""), status
end

local folder = capture("mktemp -d \"${TMPDIR:-/tmp}/quern-t020.XXXXXX\""):gsub("\n", "")
local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end
local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

-- What main.check says about a spec text: rows, or nil and all errors as one string. Never an uncaught error, never long.
local SECONDS, KILOBYTES = 5, 256 << 10
local function check(text)
  local path = folder .. "/s.lua"
  write(path, text)
  collectgarbage()
  local before, start = collectgarbage "count", os.clock()
  local fine, rows, errors = pcall(main.check, source_dir, path)
  local seconds, kilobytes = os.clock() - start, collectgarbage "count" - before
  debug.sethook()
  if not fine then return nil, "CRASH: " .. tostring(rows) end
  if seconds > SECONDS then return nil, string.format("TOO LONG: %.1f s", seconds) end
  if kilobytes > KILOBYTES then return nil, string.format("TOO MUCH: %.0f KB", kilobytes) end
  if rows then return rows end
  return nil, (table.concat(errors, "\n"):gsub(quoted(folder):sub(2, -2):gsub("%p", "%%%0") .. "/", ""))
end

local function refuses(text, wanted, name)
  local rows, errors = check(text)
  if rows then
    tap.fail("%s", name)
    tap.diag("accepted")
    return
  end
  tap.has_str(errors, wanted, "%s", name)
end

local function accepts(text, name)
  local rows, errors = check(text)
  tap.ok(rows, "%s", name)
  if not rows then tap.diag("%s", errors) end
end

local function unary(body) return 'unary "acme.a" { doc = "d", dtypes = floating, body = [[ ' .. body .. " ]] }\n" end

tap.diag("what is data is taken")
accepts(unary "x + 1", "a plain op")
accepts('format (1)\n' .. unary "x", "a format it knows")
accepts('local k <const> = 2 * 3 ^ 2\nunary "acme.a" { doc = "d", params = { k = k }, dtypes = { "f32" }, body = [[ k * x ]] }',
        "locals and arithmetic")
accepts("-- nothing\n", "a file without ops")
accepts((unary "x + 1"):gsub("\n", "\r\n"), "lines that end in CR LF")
accepts(unary "f32 t = (f32)x; rare (t > 1e30) { t = t * 0.5; } return (T)t * SQRT2;", "locals, a rare block, a cast, a constant")

tap.diag("control flow is refused by its word, before anything runs")
tap.group_begin("loops, functions, jumps and string assembly")
for _, text in ipairs {
  "while true do end", "repeat until false", "for i = 1, 1e9 do end", "for k in floating do end", "goto l", "::l::",
  "function f() end", "local f = function() end", "if true then end", "do end", "return 1", "break",
  'local s = "a" .. "b"', 'local s = ("x"):rep(1e9)', "local a = ...", "local t = {} t:f()",
} do
  local rows, errors = check(text)
  tap.group_count()
  if rows or not errors:find("a spec is data", 1, true) or not errors:find("^s%.lua:1:%d+: ") then
    tap.group_fail("%s: %s", text, rows and "accepted" or errors)
  end
end
tap.group_end()

-- Half of the names by themselves, and half of them in one other form, others each day; in full all in every form.
tap.group_begin("Lua's own library is not there")
local form_of_day, n_names = tap.test_part(10), 0
for name in ([[io os require load loadstring loadfile dofile debug package coroutine getmetatable setmetatable rawset rawget
               rawequal rawlen pcall xpcall error assert print warn collectgarbage select type tostring tonumber next pairs
               ipairs _G _VERSION string table math utf8 arg]]):gmatch "[%w_]+" do
  n_names = n_names + 1
  for k, text in ipairs { "local a = " .. name, name .. '("x")', "local a = " .. name .. ".b", "local a = {" .. name .. "}",
                          "local a = _ENV." .. name, 'local a = _ENV["' .. name .. '"]' } do
    if not form_of_day or (k == 1 and n_names % 2 == form_of_day % 2) or (k + n_names) % 10 == form_of_day then
      local rows, errors = check(text)
      tap.group_count()
      local wanted = text:find "_ENV" and "'_ENV': a spec is data" or "unknown word '" .. name .. "'"
      if rows or not errors:find(wanted, 1, true) then
        tap.group_fail("%s: %s", text, rows and "accepted" or errors)
      end
    end
  end
end
tap.group_end()

refuses("x = 1", "'x' is not a field here; use local x = ...", "a global cannot be set")
refuses("_ENV.unary = 1", "'_ENV': a spec is data", "nor a declarator through _ENV")
refuses('local a = ("x").rep', "attempt to index", "strings have no methods")
refuses("\27Lua\x54\0\x19\x93", "s.lua:1:1: ", "compiled Lua")
refuses("#!/usr/bin/lua\n" .. unary "x", "s.lua:1:1: ", "a first line for a shell")

tap.diag("a way around one check meets the next")
for _, row in ipairs {
  { "a loop behind a lone carriage return in a comment", "-- a\rwhile true do end\n" },
  { "doubling strings behind a lone carriage return", '-- a\rlocal s = "xxxxxxxxxxxxxxxx" for i = 1, 20 do s = s .. s end\n' },
  { "a function behind a lone carriage return", "-- a\rlocal function f() return f() end local x = 1 + f()\n" },
  { "a loop behind a vertical tab", "--\vx\nwhile true do end" },
  { "a loop behind a long comment of another level", "--[==[ ]] ]=] ]==] while true do end" },
  { "a loop behind a string's escapes", 'local a = "\\\\" while true do end local b = "' },
  { "a loop behind \\z", 'local a = "\\z\n" while true do end' },
} do
  local rows, errors = check(row[2])
  local good = not rows and errors:find "^s%.lua:%d+:%d+: " and not errors:find "more memory" and not errors:find "more steps"
  tap.ok(good, "%s", row[1])
  if not good then tap.diag("%s", rows and "accepted" or errors) end
end
accepts('unary "acme.a" { doc = [==[ a ]] while true do ]==], dtypes = floating, body = "x" }', "words inside strings are text")

tap.diag("tables that bite")
for _, row in ipairs {
  { 'unary "acme.a"(_ENV)', "the environment as an op" },
  { 'unary "acme.a" { doc = "d", dtypes = _ENV, body = "x" }', "as dtypes" },
  { 'unary "acme.a" { doc = "d", dtypes = floating, ulp = _ENV, body = "x" }', "as ulp" },
  { 'unary "acme.a" { doc = "d", dtypes = floating, params = _ENV, body = "x" }', "as params" },
  { 'unary "acme.a" { doc = "d", dtypes = floating, examples = _ENV, body = "x" }', "as examples" },
  { 'unary "acme.a" { doc = "d", dtypes = floating, examples = { _ENV }, body = "x" }', "as an example" },
  { 'unary "acme.a" { doc = "d", dtypes = floating, domain = _ENV, body = "x" }', "as domain" },
  { 'unary "acme.a" { doc = "d", dtypes = floating, body = _ENV }', "as body" },
  { 'local t = {} t[1] = t unary "acme.a" { doc = "d", dtypes = t, body = "x" }', "a table that holds itself as dtypes" },
  { 'local t = {} t.x = t unary "acme.a" { doc = "d", dtypes = floating, examples = { t }, body = "x" }', "as an example's value" },
  { 'local t = {} t.doc = t unary "acme.a"(t)', "as an op" },
  { 'constants(_ENV)', "the environment as constants" },
  { 'constants { [1] = 2 }', "constants without names" },
  { 'constants { A = "x" }', "a constant that is text" },
  { 'tables { A = { "f32", 1, 2, 3 } }', "a table of three" },
  { 'tables { A = { "f32", "x" } }', "a table of texts" },
  { 'tables { A = { {}, 1 } }', "a table without a type" },
  { 'tables { [{}] = { "f32", 1 } }', "a table with a table as its name" },
  { 'unary {} {}', "a name that is a table" },
  { 'unary "acme.a"', "a name alone" },
  { 'unary "acme.a" (1)', "a number for a table" },
  { 'unary "acme.a" { "doc" }', "fields without names" },
  { 'unary(floating)', "dtypes for a name" },
  { 'unary "acme.a" { [floating] = 1, doc = "d", dtypes = floating, body = "x" }', "a table as a field's name" },
  { 'unary "acme.a" { doc = unary, dtypes = floating, body = "x" }', "a declarator as doc" },
  { 'unary "acme.a" { doc = "d", dtypes = {}, body = "x" }', "no dtypes" },
  { 'unary "acme.a" { doc = "d", dtypes = { "f33" }, body = "x" }', "an unknown dtype" },
  { 'unary "acme.a" { doc = "d", dtypes = { "b32" }, body = "x" }', "a dtype of the inside" },
  { 'unary "acme.a" { doc = "d", dtypes = floating, params = { 1, 2 }, body = "x" }', "params without names" },
  { 'unary "acme.a" { doc = "d", dtypes = floating, params = { a = "1" }, body = "x" }', "a param with a text as its default" },
  { 'unary "acme.a" { doc = "d", dtypes = floating, ulp = { f32 = NAN }, body = "x" }', "a bound that is NaN" },
  { 'unary "acme.a" { doc = "d", dtypes = floating, ulp = { f32 = 0 }, body = "x" }', "a bound below a half" },
} do
  local rows, errors = check(row[1])
  local good = not rows and errors:find "^s%.lua:%d+:%d+: "
  tap.ok(good, "%s", row[2])
  if not good then tap.diag("%s", rows and "accepted" or errors) end
end

tap.diag("bounds that nothing would look at")
local function bound(ulp, fields) return 'unary "acme.a" { doc = "d", ulp = { ' .. ulp .. " }, " .. fields .. " }" end
refuses(bound("f32 = 2, f16 = 1", 'dtypes = floating, body = "x"'),
        "acme.a: ulp: f16 is computed in f32 and rounded once more: f32's bound is for both", "f16's, where f32 computes")
refuses(bound("bf16 = 1", 'dtypes = floating, body = { f16 = "x", floating = "x" }'),
        "acme.a: ulp: bf16 is computed in f32", "bf16's, beside a body of f16")
refuses(bound("i32 = 1", 'dtypes = numeric, body = "x"'), "acme.a: ulp: i32 is exact", "an integer's")
refuses(bound("f64 = 1", 'dtypes = "f32", body = "x"'), "acme.a: ulp: the op does not take f64", "of a dtype that it does not take")
refuses(bound("f32 = 1", 'dtypes = floating, body = "x", grad_ulp = { f16 = 1 }'), "acme.a: grad_ulp: f16 is computed in f32",
        "a derivative's")
accepts(bound("f32 = 1, f64 = 1, f16 = 1", 'dtypes = floating, body = { f16 = "x", floating = "x" }'), "f16's, where f16 has a body")
accepts(bound("f32 = 1", 'dtypes = { "f16", "bf16" }, body = "x"'), "f32's, where only f16 and bf16 are taken")

tap.diag("names")
tap.group_begin("names that C, C++ or the tree would stumble over are refused")
for _, name in ipairs {
  "acme.A", "Acme.a", "acme", "acme.", ".a", "acme..a", "a.b.c", "1a", "acme.1a", "acme.a-b", "acme.a b", "acme.a*/", "acme.a\\n",
  "acme.a\\\nb", "acme.a??/", "acme.\xc3\xa9", "\xc3\xa9.a", "acme.int", "acme.class", "acme.while", "acme.errno", "acme.a\0b",
  "acme." .. ("a"):rep(65), "acme.a;", 'acme.a"', "acme.__a", "acme._a", "", ".", "acme.a\r", "../a", "acme.a/b", "acme.a%d", "$for",
} do
  local rows, errors = check('unary "' .. name:gsub('"', '\\"'):gsub("%z", "\\0"):gsub("\r", "\\r")
                             .. '" { doc = "d", dtypes = floating, body = "x" }')
  tap.group_count()
  -- a bare name is a good name; "acme" is an example of one here
  if name ~= "acme" and (rows or not errors:find "^s%.lua:%d+:%d+: ") then
    tap.group_fail("%q: %s", name, rows and "accepted" or errors)
  end
end
tap.group_end()
tap.group_begin("so are such parameters and inputs")
for _, name in ipairs { "A", "1a", "a-b", "a*/", "a b", "int", "class", "\xc3\xa9", "a??/", "", "a;", "a\\\nb", ("a"):rep(65), "_a" } do
  for _, text in ipairs { 'unary "acme.a" { doc = "d", params = { ["' .. name .. '"] = 1 }, dtypes = floating, body = "x" }',
                          'op "acme.a" { doc = "d", inputs = "x, ' .. name .. '", dtypes = floating, body = "x" }' } do
    local rows, errors = check(text)
    tap.group_count()
    if rows or not errors:find "^s%.lua:%d+:%d+: " then tap.group_fail("%s: %s", text, rows and "accepted" or errors) end
  end
end
tap.group_end()
refuses('unary "gelu" { doc = "d", dtypes = floating, body = "x" }', "gelu: a built-in op, already defined at dsl/unary.lua:",
        "a built-in op cannot be defined again")
refuses(unary "x" .. unary "x", "acme.a: an op, already defined at", "nor an op of the same file")
refuses(unary "x" .. 'unary "acme_a" { doc = "d", dtypes = floating, body = "x" }', "acme_a: its C name acme_a is that of op acme.a",
        "nor one with a C name that is taken")
refuses('unary "acme.a" { doc = "d", params = { x = 1 }, dtypes = floating, body = "x" }', "'x' cannot be a parameter's name",
        "a parameter called as an input")
refuses('unary "acme.a" { doc = "d", dtypes = floating, counts = "y", body = "x" }', "counts: 'y' is no input", "what counts is an input")
accepts('binary "acme.a" { doc = "d", dtypes = floating, counts = "y", body = "ldexp(x, y)" }', "  and may be one")
refuses('binary "acme.a" { doc = "d", dtypes = numeric, fraction = "z", body = "x" }', "fraction: 'z' is no input", "nor what makes a fraction")
-- A call on literals alone: in integers, unless an input that makes a fraction is negative.
local function of_literals(fraction, y)
  return string.format('binary "acme.power" { doc = "d", dtypes = numeric,%s body = { floating = "pow(x, y)", integer = "x * 0 + 7" } }\n'
    .. 'unary "acme.b" { doc = "d", dtypes = floating, body = "x * acme.power(4, %s)", examples = { { x = 8, out = %s } } }\n',
    fraction, y, y == "2" and "56.0" or fraction ~= "" and "2.0" or "56.0")
end
accepts(of_literals(' fraction = "y",', "-1"), "  a negative one makes a call on integer literals one in floats")
accepts(of_literals(' fraction = "y",', "2"), "  one that is not leaves it in integers")
accepts(of_literals("", "-1"), "  as does a spec that names none")
refuses('op "acme.a" { doc = "d", inputs = "x, x", dtypes = floating, body = "x" }', "'x' occurs twice", "an input twice")

tap.diag("names under a prefix")
local function generated(text, ops, prefix)
  write(folder .. "/p.lua", text)
  local result, errors = main.generate(source_dir, { specs = { folder .. "/p.lua" }, ops = ops, prefix = prefix, dtypes = "f32" })
  return result and result.files, table.concat(errors or {}, "\n")
end
local SWISH = 'unary "acme.swish" { doc = "d", dtypes = floating, body = "x * sigmoid(x)" }\n'
local swish = generated(SWISH, "acme.swish,acme.swish_backward,add", "acme")
local header = swish and swish["acme.h"] or ""
tap.ok(header:find("acme_status acme_swish(", 1, true) and header:find("acme_status acme_swish_backward(", 1, true)
       and not header:find "acme_acme_", "an op of the prefix's namespace has the prefix once, so does its derivative")
tap.ok(swish and swish["kernels/acme_op_swish_cpu.c"], "and so has the file of its kernels")
local other = generated(SWISH, "acme.swish", "mine")
tap.ok(other and other["mine.h"]:find("mine_status mine_acme_swish(", 1, true), "under another prefix it keeps its namespace")
tap.has_str(main.show(source_dir, "acme_qk_swish_f32_f32_1d_cc_v3", { folder .. "/p.lua" }) or "", "Q_NAME(qk_swish_f32_f32_1d_cc)",
            "show finds a symbol of such a tree")
local GELU = 'unary "acme.gelu" { doc = "d", dtypes = floating, body = "x" }'
local both, why = generated(GELU, "acme.gelu,gelu", "acme")
tap.ok(not both, "an op that has the C name of a built-in one beside it is refused")
tap.has_str(why, "acme.gelu: under --prefix acme its C name acme_gelu is that of op gelu", "which is said")
tap.ok(generated(GELU, "acme.gelu", "acme") and generated(GELU, "acme.gelu,gelu", "mine"), "alone, or under another prefix, it is not")
local _, taken = generated('unary "acme.version" { doc = "d", dtypes = floating, body = "x" }', "acme.version", "acme")
tap.has_str(taken, "acme.version: under --prefix acme: 'version' cannot be an op's name: the library uses version itself",
            "nor may it have the name of a function of the tree")

tap.diag("bodies")
local function deep(open, n, close) return open:rep(n) .. "x" .. close:rep(n) end
for _, row in ipairs {
  { deep("(", 20000, ")"), "nested deeper than", "20,000 parentheses" },
  { deep("-", 20000, ""), "nested deeper than", "20,000 signs" },
  { deep("!", 20000, ""), "nested deeper than", "20,000 exclamation marks" },
  { deep("(f32)", 10000, ""), "nested deeper than", "10,000 casts" },
  { deep("abs(", 10000, ")"), "nested deeper than", "10,000 calls" },
  { ("x ? x : "):rep(7000) .. "x", "nested deeper than", "7,000 conditions" },
  { ("x ? "):rep(7000) .. "x" .. (": x"):rep(7000), "nested deeper than", "the same the other way round" },
  { ("x + "):rep(5000) .. "x", "operators in one chain", "a chain of 5,000 sums" },
  { ("x*"):rep(1900) .. "x+" .. ("(x+2)*"):rep(1900) .. "x+" .. ("(x+3)*"):rep(1900) .. "x", "4096", "more than 4,096 operations" },
  { "f32 t = x; " .. ("rare (t > 1) { t = t + 1; } "):rep(2200) .. "return t;", "4096", "2,200 rare blocks" },
  { "y", "acme.a: unknown name 'y'", "an unknown name" },
  { "acme.a(x)", "acme.a calls itself", "itself by its full name" },
  { "acme . a(x)", "'.' does not belong", "a dot by itself" },
  { "gelux(x)", "did you mean 'gelu'?", "the nearest function is named" },
  { "gleu(x)", "did you mean 'gelu'?", "two letters exchanged are one mistake" },
  { "x.astype(f32)", "type 'f32' where a value is expected: a cast is (f32)x", "a cast as a method" },
  { "gelu.tanh(x)", "unknown function 'gelu.tanh': write gelu_tanh", "a variant as an attribute" },
  { "acme.sum(x)", "unknown function 'acme.sum': no registered op, and operands have no methods: write sum", "an op in a namespace" },
  { "sqrt(x, x)", "sqrt takes 1 argument, got 2", "too many arguments" },
  { "fma(x)", "fma takes 3 arguments, got 1", "too few" },
  { "x % 2", "'%' is no operator: remainder(x, y) has the sign of y, fmod(x, y) that of x", "the percent sign" },
  { "1 < x < 2", "chained comparison: write a < b && b < c", "a chain of comparisons" },
  { "x = 1; return x;", "already defined", "an input assigned to" },
  { "f32 a = 1; f32 a = 2; return a;", "already defined", "a name twice" },
  { "x + 010", "octal", "an octal number" },
  { "x + 1e999", "write INFINITY", "a number too large" },
  { "x + 18446744073709551615", "does not fit 64 bits with a sign: write it in hex, or as a float", "an integer too large" },
  { "x + 0x1ffffffffffffffff", "does not fit 64 bits", "a hex integer too large" },
  { "x + 1.2.3", "is no number", "a malformed number" },
  { "x + 1.0f", "literals have no suffix", "a suffix" },
  { 'x + "a"', "does not belong to the expression language", "a string" },
  { "x + 'a'", "does not belong to the expression language", "a character" },
  { "x[0]", "does not belong to the expression language", "an index" },
  { "x.y", "unknown name 'x.y'", "a member" },
  { "&x", "expected a value, found '&'", "an address" },
  { "*x", "expected a value, found '*'", "a pointer" },
  { "x++", "'++' is no operator: nothing is changed in place; write y = x + 1", "an increment" },
  { "x ** 2", "'**' is no operator here: write pow(x, y)", "a power of Python" },
  { "x > 0 and x < 1", "found 'and': write &&", "a word of Python" },
  { "arcsin(x)", "unknown function 'arcsin': write asin", "a name of NumPy" },
  { "x # y", "'#' does not belong", "a comment of Python" },
  { "gcd(1.5, 2) * x", "gcd of f64: it takes integers", "literals alone that an op does not take" },
  { "add(9223372036854775807, 1) * x", "the number does not fit 64 bits", "literals alone that do not fit" },
  { "x += 1", "", "an assignment in an expression" },
  { "while (1) { } x", "", "a loop of C" },
  { "for (;;) x", "", "another" },
  { "goto a", "", "a jump" },
  { "asm(x)", "unknown function 'asm'", "assembler" },
  { "__builtin_trap()", "unknown function '__builtin_trap'", "a compiler's builtin" },
  { "system(x)", "unknown function 'system'", "a libc function" },
  { "\\\nx", "does not belong", "a backslash and a new line" },
  { "x ??/ 2", "", "a trigraph" },
  { "x # 2", "does not belong", "a hash" },
  { "#define A 1\nx", "does not belong", "a directive" },
  { "x /* ", "unfinished comment", "an unfinished comment" },
  { "x $ 2", "does not belong", "a dollar" },
  { "\xc3\xa9 + x", "does not belong to the expression language", "a letter that is not ASCII" },
  { "x + \0", "does not belong to the expression language", "a zero byte" },
  { "", "", "nothing" },
  { ";", "", "a semicolon" },
  { "return", "expected a value, found the end", "a bare return" },
  { "return x; x", "nothing may follow return", "text after return" },
  { "rare (x > 1) { y = 2; } return x;", "'y' is not a local", "a rare block that assigns to a stranger" },
  { "rare (x > 1) { rare (x > 2) { } } return x;", "", "a rare block in a rare block" },
  { "rare (x > 1) {", "", "an open rare block" },
  { "param a; return a;", "param belongs to a host's expression", "a param statement" },
  { "(i32)x", ":1:59: acme.a: the body gives i32 for f32", "a result of another dtype" },
  { "canonical(x)", "unknown function 'canonical'", "what only the library's own math may say of a value" },
  { "raw_u32(x)", "raw_u32 is for the library's own math; write as_u32", "a raw bit cast" },
  { "lookup(T0, x)", "unknown table", "an unknown table" },
  { "i32 k = x; return x;", "write the cast", "a float in an integer's name" },
  { "x & 1", "", "bits of a float" },
  { "acme_a(x)", "unknown function 'acme_a'", "its own C name" },
  { "astype(x)", "write a cast", "astype" },
  { "saturate_cast(x)", "a cast wraps; clip before it: (i8)clip(x, -128, 127)", "saturate_cast" },
} do
  local rows, errors = check('unary "acme.a" { doc = "d", dtypes = { "f32" }, body = [=[ ' .. row[1] .. " ]=] }")
  local good = not rows and errors:find "^s%.lua:%d+:%d+: " and errors:find(row[2], 1, true)
  tap.ok(good, "body: %s", row[3])
  if not good then tap.diag("%s", rows and "accepted" or errors:sub(1, 600)) end
end
for _, row in ipairs { -- of m, and of e, an i32
  { "m = x; e = 0; rare (x > 3) { e = 1; } ", nil, "a number for an output with a dtype, in a rare block too" },
  { "m = x; e = 0; rare (x > 3) { e = (i32)x; m = 2; } ", nil, "  or a value of that dtype" },
  { "m = x; e = x; ", ":1:100: acme.a: e is an output of i32, given f32: write the cast, (i32)", "a float for it" },
  { "m = x; e = 0; rare (x > 3) { e = x; } ", ":1:122: acme.a: e is an output of i32, given f32: write the cast, (i32)",
    "  in a rare block" },
  { "m = (i32)x; e = 0; ", ":1:93: acme.a: m is an output of f32, given i32: write the cast, (T)", "an integer for the other" },
  { "m = x; e = 0.5; ", "a float literal where i32 is expected: write a cast", "a float number for it" },
  { "m = x; rare (x > 3) { e = 1; } ", "the output e is to be assigned before the block", "an output in a rare block only" },
} do
  local text = 'op "acme.a" { doc = "d", inputs = "x", outputs = "m, i32 e", dtypes = { "f32" }, body = [=[ ' .. row[1] .. " ]=] }"
  if row[2] then refuses(text, row[2], row[3]) else accepts(text, row[3]) end
end
for _, nest in ipairs { { "(", ")" }, { "abs(", ")" }, { "-", "" }, { "(T)", "" }, { "x > 0 ? x : ", "" } } do
  accepts(unary(deep(nest[1], 200, nest[2])), "200 of " .. nest[1])
  refuses(unary(deep(nest[1], 201, nest[2])), "nested deeper than 200", "  and 201")
end
refuses('unary "acme.a" { doc = "d", dtypes = { "f32" }, body = "' .. ("x  +  "):rep(12000) .. 'x" }', "longer than", "a body over 64 KB")
refuses("-- " .. ("x"):rep(1 << 20) .. "\n" .. unary "x", "s.lua:1:1: a spec may have", "a spec over 1 MB")
refuses("local a = " .. ("{"):rep(5000) .. ("}"):rep(5000), "s.lua:1:", "5,000 nested tables")
refuses("local a = " .. ("("):rep(5000) .. "1" .. (")"):rep(5000), "s.lua:1:", "5,000 parentheses in Lua")
refuses("local a = " .. ("-"):rep(1) .. (" -"):rep(5000) .. "1", "s.lua:1:", "5,000 signs in Lua")
do
  local lines = {}
  for k = 1, 30000 do lines[k] = "local a" .. k .. " = {}" end
  refuses(table.concat(lines, "\n"), "s.lua:", "30,000 locals")
  local names = {}
  for k = 1, 20 do names[k] = unary("x + " .. k):gsub("acme%.a", "acme.a" .. k) end
  accepts(table.concat(names), "20 ops in a file")
end

tap.diag("constants and tables")
local NUMBERS = 'constants { A = 2, B_1 = 0x1.8p1 }\ntables { STEPS = { "f32", 1.5, -2.0, 0.5, 4.0 } }\n'
local function own(body, examples)
  return NUMBERS .. 'func "first" { args = "x", f32 = [[ lookup(STEPS, (i32)x) * B_1 ]] }\nunary "acme.a" { doc = "d", dtypes = { "f32" }, '
    .. "body = [[ " .. body .. ' ]],\n  examples = { ' .. examples .. ' } }\n'
end
accepts(own("A * x + B_1", "{ x = 1.5, y = 6.0 }"), "a file's constants in the body of an op")
accepts(own("lookup(STEPS, (i32)x) + A", "{ x = 1.0, y = 0.0 }, { x = 7.0, y = 6.0 }"), "its tables")
accepts(own("first(x) - lookup(STEPS, (i32)x)", "{ x = 1.0, y = -4.0 }"), "both there and in a function")
refuses(own("A * x + B_1", "{ x = 1.5, y = 7.0 }"), "acme.a: example 1", "examples are computed with them")
refuses(own("x + B_2", ""), "s.lua:4:", "a constant that is misspelt")
refuses(own("x + B_2", ""), "acme.a: unknown name 'B_2', did you mean 'B_1'?", "  the nearest is named")
refuses(own("lookup(STEP, (i32)x)", ""), "acme.a: unknown table 'STEP', did you mean 'STEPS'?", "a table that is misspelt")
refuses(own("lookup(STEPS, x)", ""), "the index of f32 table STEPS must be a 32-bit integer", "an index that is none")
refuses(own("STEPS + x", ""), "unknown name 'STEPS'", "a table as a value")
refuses('unary "acme.a" { doc = "d", dtypes = { "f32" }, constants = { A = 1 }, body = [[ A * x ]] }', "acme.a: unknown field 'constants'",
        "constants as a field of an op")

tap.diag("inlining")
local function functions(n, body, first)
  local lines = { 'func "fn0" { body = [[ ' .. first .. " ]] }" }
  for k = 1, n do lines[#lines + 1] = 'func "fn' .. k .. '" { body = [[ ' .. body:gsub("F", "fn" .. (k - 1)) .. " ]] }" end
  return table.concat(lines, "\n") .. "\n" .. unary("fn" .. n .. "(x)")
end
refuses(functions(40, "F(F(x) + 1)", "x * 2"), "", "a function that doubles forty times")
refuses(functions(40, "F(x + 1) * F(x - 1)", "x * 2"), "", "two calls each, forty deep")
refuses(functions(30, "T a = F(x); T b = F(a); T c = F(b); T d = F(c); return F(d) + a;", "x * 3 + 1"), "", "five calls each, thirty deep")
refuses(functions(200, "F(x)", "x"), "calls nested deeper than 64", "two hundred calls deep")
accepts(functions(60, "F(x)", "x"), "sixty calls deep")
accepts('unary "acme.a" { doc = "d", dtypes = integer, body = [[ sign(x) * abs(x) + count_bits(x) ]] }', "ops of integers, in integers")
refuses('func "f" { body = [[ f(x) ]] }\n' .. unary "f(x)", "f calls itself", "a function that calls itself")
refuses('func "f" { body = [[ g(x) ]] }\nfunc "g" { body = [[ f(x) ]] }\n' .. unary "f(x)", "calls itself", "two that call each other")
refuses('unary "swish" { doc = "d", dtypes = floating, body = [[ swish(x) ]] }', "calls itself", "an op that calls itself")
for _, part in ipairs { "lift = [[ total(x) ]], combine = [[ a + b ]]", "combine = [[ a + total(b) ]]", "combine = [[ a + b ]], finish = [[ total(a) ]]" } do
  refuses('reduction "total" { doc = "d", dtypes = floating, ' .. part .. ", empty = 0 }", "total reduces, which only the body of a row does",
          "a reduction that reduces: " .. part)
end
refuses('reduction "acme.r" { doc = "d", dtypes = floating, inputs = "", combine = "a + b", empty = 0 }', "inputs: a reduction has one", "no input")
do
  tap.diag("scans")
  local function scan(fields) return 'scan "acme.s" { doc = "d", dtypes = floating, ' .. fields .. " }\n" end
  local function adjoint(name, fields)
    return scan 'combine = "a + b", initial = 0' .. 'adjoint "' .. name .. '" { doc = "d", dtypes = floating, ' .. fields .. " }"
  end
  local STATE = 'state = "T v, i64 i", lift = "v = x; i = index;", combine = "v = a.v + b.v; i = b.i;", '
  accepts(scan(STATE .. 'finish = "v = a.v; i = a.i;", outputs = "v, i64 i", initial = { v = 0, i = -1 }'), "a scan with a state and two outputs")
  accepts(scan(STATE .. 'finish = "a.v / (T)(a.i + 1)", initial = NAN'), "a scan with a state and a result")
  accepts(adjoint("acme.s_backward", 'of = "acme.s", inputs = "grad", combine = "a + b"'), "a scan and its derivative")
  for _, case in ipairs {
    { scan 'initial = 0', "combine is missing" }, { scan 'combine = "a + b"', "initial is missing: the result of no elements" },
    { scan 'combine = "a + b", initial = 0, inputs = "x, y"', "inputs: a scan has one" },
    { scan 'combine = "a + b", initial = 0, grad = "grad"', 'grad is not for a scan; declare its derivative behind it: adjoint "NAME_backward"' },
    { scan 'combine = "a + b", initial = 0, outputs = "v, i64 i"', "outputs: finish is missing" },
    { scan 'combine = "a + b", initial = 0, outputs = "v, i64 i", finds = "max"', "finds: only the library's own scans" },
    { scan(STATE .. 'initial = 0'), "finish is missing, which a scan with a state needs" },
    { scan(STATE .. 'finish = "v = a.v;", outputs = "v, i64 i", initial = { v = 0, i = 0 }'), "the body does not assign its output i" },
    { scan(STATE .. 'finish = "v = a.v; i = a.i;", outputs = "v, i64 i", initial = 0'), "initial: expected a number for each output, { v = ..., i = ... }" },
    { scan(STATE .. 'finish = "v = a.v; i = a.i;", outputs = "v, i64 i", initial = { v = 0 }'), "initial: that of i is missing, or no number" },
    { scan(STATE .. 'finish = "a.v", initial = 0, result = "f16"'), "result: 'f16', expected wide, floating or a dtype that is computed in itself" },
    { scan(STATE .. 'finish = "v = a.v; h = a.v;", outputs = "v, f16 h", initial = { v = 0, h = 0 }'),
      "outputs: f16 h: expected a dtype that is computed in itself" },
    { adjoint("acme.t", 'of = "acme.s", inputs = "grad", combine = "a + b"'), "the derivative of acme.s is named acme.s_backward" },
    { adjoint("acme.t_backward", 'of = "acme.t", inputs = "grad", combine = "a + b"'), "of: 'acme.t' is no scan of this spec, declared before" },
    { adjoint("acme.s_backward", 'of = "acme.s", inputs = "x, grad", combine = "a + b"'), "inputs: expected grad first" },
    { adjoint("acme.s_backward", 'of = "acme.s", inputs = "grad, w", combine = "a + b"'), "'w' is no input or output of acme.s" },
    { adjoint("acme.s_backward", 'of = "acme.s", inputs = "grad", before = "out", combine = "a + b"'), "before: 'out' is no output of acme.s among the inputs" },
    { adjoint("acme.s_backward", 'of = "acme.s", inputs = "grad", combine = "a + b", lift = "grad * y"'), "unknown name 'y'" },
  } do refuses(case[1], case[2], "a scan: " .. case[2]) end
end
refuses('unary "left" { doc = "d", dtypes = floating, body = [[ right(x) ]] }\n'
        .. 'unary "right" { doc = "d", dtypes = floating, body = [[ left(x) ]] }', "calls itself", "two ops that call each other")

tap.diag("errors say where")
local function place(text, wanted, name)
  local _, errors = check(text)
  tap.is(errors, wanted, "%s", name)
end
place('unary "acme.a" {\n  doc = "d",\n  dtypes = floating,\n  body = [[ x * gelo(x) ]],\n}\n',
      "s.lua:4:17: acme.a: unknown function 'gelo', did you mean 'gelu'?\n    body = [[ x * gelo(x) ]],\n                  ^",
      "a function in a long string")
place('unary "acme.a" {\n  doc = "d",\n  dtypes = floating,\n  body = [[\n    T total = x * 2;\n    return x + totl;\n  ]],\n}\n',
      "s.lua:6:16: acme.a: unknown name 'totl', did you mean 'total'?\n      return x + totl;\n                 ^", "a name some lines down")
place('unary "acme.a" {\n  doc = "d",\n  dtipes = floating,\n  body = [[ x ]],\n}\n',
      "s.lua:3:3: acme.a: unknown field 'dtipes', did you mean 'dtypes'?\n    dtipes = floating,\n    ^", "a field")
place('\n\n  unari "acme.a" { }\n', "s.lua:3:3: unknown word 'unari', did you mean 'unary'?\n    unari \"acme.a\" { }\n    ^", "a declarator")
place('unary "acme.a" { doc = "d", dtypes = floting, body = "x" }',
      "s.lua:1:38: unknown word 'floting', did you mean 'floating'?\n  unary \"acme.a\" { doc = \"d\", dtypes = floting, body = \"x\" }\n"
      .. "                                       ^", "a set of dtypes")
place('unary "acme.a" {\n  doc = "d,\n}\n', "s.lua:2:9: unfinished string\n    doc = \"d,\n          ^", "an open string")
place('local a = 1\nwhile true do end\n',
      "s.lua:2:1: 'while': a spec is data, without control flow or functions\n  while true do end\n  ^", "a loop")
do
  local _, errors = check('unary "acme.a" { doc = "d", dtypes = { "f32" }, body = [[ ' .. ("x + "):rep(200) .. "u ]] }")
  local longest = 0
  for line in errors:gmatch "[^\n]+" do longest = math.max(longest, #line) end
  tap.ok(longest <= 200 and errors:find("\n.*u.*\n +%^"), "a long line is cut around the caret")
  _, errors = check('unary "acme.a" { doc = "\27[31m\xff\xfe", dtypes = { "f32" }, body = [[ \27x ]] }')
  tap.ok(not errors:find "[\1-\9\11-\31\127-\255]", "what is printed holds no control bytes")
  _, errors = check(unary "a(x)" .. 'unary "acme.b" { doc = "d", dtypes = floating, body = "b(x)" }'
                    .. 'unary "acme.c" { doc = "d", dtypes = floating, body = "c(x)" }')
  local count = select(2, errors:gsub("s%.lua:%d+:%d+:", ""))
  tap.ok(count >= 3, "each op's error is told")
end

---------------------------------------------------------------------------------------------- text that wants out
tap.diag("text that tries to leave a comment or a string of the generated C")
local evil = {
  "*/ #error escaped", "/* open", "// line \\", "??/", "??/\n#error escaped", "\\\n#error escaped", "\n#error escaped", "\r#error escaped",
  '" #error escaped "', "' \\' \"", "%s%n%d", "${name} $for x in y", "@DLPACK@", "quern_call qk_add QN_ISA", "\xc3\xa9 \xe2\x80\xae \xff\xfe",
  "\1\2\127", "]]", "\\u0041 \\x41 \\0", "??=error", "*\\\n/ #error escaped", "*??/\n/ #error escaped", "/\\\n* open", "__DATE__",
}
local doc = table.concat(evil, " ")
local function lua_string(text)
  return '"' .. text:gsub(".", function(c) return string.format("\\%03d", c:byte()) end):gsub("\n", "\\010") .. '"'
end
local formula = "/* ??/ \" ' \\ */ x // \\ ??/ #error escaped *\\/ \xc3\xa9\n * slope /* * ??/ / */ + 1"
local spec_text = "unary \"evil.twist\" {\n  doc = " .. lua_string(doc) .. ",\n  notes = " .. lua_string(doc)
  .. ",\n  params = { slope = 2.0 },\n  dtypes = { \"f32\" },\n  body = [==[ " .. formula .. " ]==],\n}\n"
  -- names that are close to what the templates use themselves
  .. 'op "evil.names" {\n  doc = "d",\n  inputs = "x, x_row, i, ptr, n, stride, params, rest, any, in, p_x, y, rows"'
  .. ',\n  dtypes = { "f32" }, body = [[ x + x_row + i + ptr + n + stride + params + rest + any ]] }\n'
local names = { "*/ #error escaped ??", "a\\", 'q"uote\'s', "caf\xc3\xa9 \xff", "two\nlines", "per%cent ${name} $for", " blank  ends " }
local build = "lua5.4 " .. quoted(source_dir .. "/build.lua")
local compilers = {}
for _, name in ipairs { "gcc", "clang-19" } do
  local _, status = capture("command -v " .. name)
  if status == 0 then compilers[#compilers + 1] = name end
end

local op_text, names_text = spec_text:match "^(.-\n}\n)(.*)$"
for k, name in ipairs(names) do
  local base = folder .. "/" .. name:gsub("/", "|") .. ".lua"
  write(base, op_text)
  local out = folder .. "/tree" .. k
  local said, status = capture(build .. " generate --out " .. quoted(out) .. " --prefix twist --dtypes f32 --ops evil.twist --spec "
                               .. quoted(base))
  tap.ok(status == 0, "file name %q: generated", (name:gsub("[%c\127-\255]", "?")))
  if status ~= 0 then tap.diag("%s", said) end
  local _, parsed = capture("python3 -m json.tool " .. quoted(out .. "/manifest.json") .. " >/dev/null")
  tap.is(parsed, 0, "its manifest is JSON")
  said, status = capture("cd " .. quoted(out) .. " && gcc -std=c11 -fsyntax-only -Wall -Wextra -Werror kernels/twist_op_evil_twist_cpu.c core/twist_op_table.c")
  tap.is(status, 0, "it compiles with trigraphs on")
  if status ~= 0 then tap.diag("%s", said:sub(1, 2000)) end
end

write(folder .. "/twist.lua", op_text)
local out = folder .. "/tree"
local said, status = capture(build .. " generate --out " .. quoted(out) .. " --prefix twist --dtypes f32 --ops evil.twist,add --spec "
                             .. quoted(folder .. "/twist.lua"))
tap.is(status, 0, "a tree with the op")
if status ~= 0 then tap.diag("%s", said) end
do
  local pipe, bad = io.popen("cat " .. quoted(out) .. "/*.h " .. quoted(out) .. "/*/* " .. quoted(out) .. "/sources.txt"), nil
  local text = pipe:read "a"
  pipe:close()
  bad = text:match "[^\n]*[\1-\9\11-\31\127-\255][^\n]*"
  tap.ok(not bad, "the generated text is ASCII without control bytes")
  if bad then tap.diag("%q", bad) end
end
local program = [[
#include <stdio.h>
#include <string.h>
#include "twist.h"
static const char wanted[] = ]] .. '"' .. doc:gsub(".", function(c) return string.format("\\%03o", c:byte()) end):gsub("\n", "\\012") .. '"' .. [[;
int main(void) {
  float x[5] = {0, 1, -2, 3.5f, 1e30f}, y[5];
  int64_t n = 5;
  DLTensor in, out;
  twist_op *op;
  memset(&in, 0, sizeof in);
  in.device.device_type = kDLCPU;
  in.ndim = 1;
  in.dtype.code = kDLFloat;
  in.dtype.bits = 32;
  in.dtype.lanes = 1;
  in.shape = &n;
  out = in;
  in.data = x;
  out.data = y;
  if (twist_op_find(NULL, "evil.twist", &op) != 0) return 2;
  if (strcmp(twist_op_describe(op)->doc, wanted) != 0) return 3;
  twist_op_release(op);
  if (twist_evil_twist(&in, &out, NULL) != 0) return puts(twist_last_error()), 4;
  for (int i = 0; i < 5; i++)
    if (y[i] != x[i] * 2.0f + 1.0f) return 5;
  return 0;
}
]]
write(out .. "/try.c", program)
local compiler_of_day = tap.test_part(2)
for k, compiler in ipairs(compilers) do
  if compiler_of_day and #compilers > 1 and k ~= compiler_of_day + 1 then goto next end
  local objects = folder .. "/objects-" .. compiler
  local script = string.format("sh %s %s %s %s -std=c11 -O0 -Wall -Wextra -Werror && %s -std=c11 -I%s -o %s/try %s/try.c %s/*.o -lpthread && %s/try",
    quoted(source_dir .. "/tests/support/build-tree.sh"), compiler, quoted(out), quoted(objects), compiler, quoted(out), quoted(objects), quoted(out),
    quoted(objects), quoted(objects))
  said, status = capture("sh -c " .. quoted(script))
  tap.is(status, 0, "%s, -std=c11: compiles without a warning, keeps the doc's bytes, computes", compiler)
  if status ~= 0 then tap.diag("%s", said:sub(1, 3000)) end
  ::next::
end

write(folder .. "/names.lua", names_text)
said, status = capture(build .. " check " .. quoted(folder .. "/names.lua"))
if status == 0 then
  tap.fail("nine inputs are accepted where eight are allowed")
else
  tap.has_str(said, "at most 8 inputs", "more than eight inputs are refused")
end
-- Ops, one a line: those that are refused are refused at their place, until a tree of all others is written. Returns their numbers.
local function tree_of(ops, options)
  local left = {}
  for k = 1, #ops do left[k] = k end
  for _ = 1, #ops do
    local lines = {}
    for k = 1, #ops do lines[k] = "" end
    for _, k in ipairs(left) do lines[k] = ops[k] end
    write(folder .. "/names.lua", table.concat(lines, "\n") .. "\n")
    said, status = capture("rm -rf " .. quoted(folder .. "/names") .. "; " .. build .. " generate --prefix evil --variants full --rank 1,2 "
                           .. options .. " --spec " .. quoted(folder .. "/names.lua") .. " --out " .. quoted(folder .. "/names"))
    if status == 0 then return left end
    local refused, n_refused, rest = {}, 0, {}
    for line in said:gmatch "names%.lua:(%d+):%d+: " do refused[tonumber(line)] = true end
    for _, k in ipairs(left) do
      if refused[k] then n_refused = n_refused + 1 else rest[#rest + 1] = k end
    end
    if status ~= 1 or n_refused == 0 then
      tap.group_fail("%s", said)
      return {}
    end
    left = rest
  end
  return left
end
tap.group_begin("operand names that the templates and the header use themselves: refused at a place, or they compile")
do
  local ops = {}
  for k, list in ipairs {
    "x, x_row", "x, x_step", "x, y, out", "i, k, m, n", "ptr, stride, n, params", "call, in, op", "start, any, block_0", "a, b, in_a",
    "p_a, in_x", "j, n0, rows, rest", "int64_t, x", "size_t, x", "uint32_t, x", "dltensor, x", "q_canon_f32, x", "t1, t2, v1, v2", "f32, x", "i64, x",
    "memcpy, x", "x, min, max", "null, x", "quern_call, x", "evil_call, x", "evil_status, x", "bool_s, x", "m32, x", "t_1, x",
  } do
    ops[k] = string.format('op "evil.names%d" { doc = "d", inputs = "%s", dtypes = { "f32", "i32" }, body = [[ %s + (T)1 ]] }', k, list,
                           (list:gsub(", ", " + ")))
  end
  tap.group_count(#ops)
  local left = tree_of(ops, "--ops add --dtypes f32,i32")
  tap.diag("%d of %d are refused", #ops - #left, #ops)
  said, status = capture("cd " .. quoted(folder .. "/names") .. " && gcc -std=c11 -fsyntax-only -Wall -Wextra -Werror kernels/evil_op_*.c "
                         .. "core/evil_op_table.c && g++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror -x c++ evil.h")
  if status ~= 0 or #left == 0 then tap.group_fail("%s", said:sub(1, 2000)) end
end
tap.group_end()
tap.group_begin("op names that the API or the pack kernels use themselves: refused at a place, or they compile")
do
  local names_left = {
    "op", "ctx", "status", "version", "last_error", "op_call", "op_find", "plan", "plan_run", "scalar", "options", "call", "shape", "ctx_create", "op.call",
    "ctx.release", "set_last_error", "gather", "scatter", "fill", "convert", "transpose", "stream", "gather_at", "qn_tensor", "qn.isa", "qk_add",
    "add_f32", "add.f32", "tree", "kernels", "pack", "op_table", "arg_info", "i64", "h", "ok",
  }
  tap.group_count(#names_left)
  -- names that are one in C meet in two trees
  for turn = 1, 2 do
    local ops, chosen = {}, {}
    for _, name in ipairs(names_left) do
      local is_second = name:find(".", 1, true) ~= nil
      if is_second == (turn == 2) then
        ops[#ops + 1] = string.format('unary "%s" { doc = "d", moves = true, dtypes = all, body = [[ x ]] }', name)
      end
    end
    local left = tree_of(ops, "--ops copy,add --dtypes f32")
    tap.diag("%d of %d are refused", #ops - #left, #ops)
    for _, k in ipairs(left) do chosen[#chosen + 1] = ops[k]:match '"([^"]*)"' end
    -- one object of all kernels: a name that is there twice does not link
    said, status = capture("cd " .. quoted(folder .. "/names") .. " && gcc -std=c11 -O0 -Wall -Wextra -Werror -c kernels/*.c core/evil_op_table.c && "
                           .. "ld -r -o all.o *.o && g++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror -x c++ evil.h")
    if status ~= 0 or #left == 0 then tap.group_fail("%s: %s", table.concat(chosen, " "), said:sub(1, 2000)) end
  end
end
tap.group_end()

os.execute("rm -rf " .. quoted(folder))
tap.done_testing()
