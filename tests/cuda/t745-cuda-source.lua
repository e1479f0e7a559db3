-- SPDX-License-Identifier: Apache-2.0
--
-- t745-cuda-source: the CUDA kernels that the generator gives at run time: of expressions, with several outputs, parameters and
-- mixed dtypes, and of the ops that move, cast or compute from indices, in any classes, ranks and both index widths. Their text,
-- run on the CPU thread by thread, gives the bits of the C kernels of the same expressions, or of a C tree's ops. Where there is CUDA, NVRTC
-- compiles some of it, and all that has constants; what it makes keeps to the law (ptx.lua). QUERN_TEST_SEED repeats a run.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/?.lua;" .. root .. "/tests/support/?.lua;" .. root .. "/tests/support/cuda/?.lua;" .. package.path
local emit = require "gen.base.files"
local host = require "gen.graph.host"
local kernels_cuda = require "gen.targets.cuda.kernels"
local main = require "gen.main"
local number = require "gen.base.number"
local ptx = require "ptx"
local service = require "gen.service"
local shell = require "shell"
local source_cuda = require "gen.targets.cuda.source"
local tap = require "tap"
local texts = require "texts"
local variants_cuda = require "gen.targets.cuda.variants"

local compiler = os.getenv "CXX" or os.execute "command -v clang++-19 >/dev/null 2>&1" and "clang++-19" or "c++" -- Clang takes half of the time
if not os.execute("command -v " .. compiler .. " >/dev/null 2>&1") then tap.skip_all("no C++ compiler: " .. compiler) end

local model = texts.model()
local types = model.types
local served = service.new { model = function() return (main.builtin_model(root)) end,
                             read = function(name) return assert(emit.read(root .. "/" .. name)) end }
local folder, run = shell.folder(), shell.run
local function write(name, text) shell.write(folder .. "/" .. name, text) end
math.randomseed(tap.test_seed(), 745)

local function split(text)
  local list = {}
  for word in text:gmatch "%S+" do list[#list + 1] = word end
  return list
end

---------------------------------------------------------------------------------------------------- the choice

-- { canonical, inputs, lists of dtypes }
local EXPRESSIONS = {
  { "x0 * x1 + x2", 3,
    { "f32 f32 f32 f32", "f16 f16 f16 f16", "bf16 f32 f16 f32", "i32 i64 u8 i64", "f64 f32 i32 f64", "f16 f16 f16 f64" } },
  { "gelu ( x0 * x1 + x2 ) * x3", 4, { "f32 f32 f32 f32 f32", "bf16 bf16 bf16 bf16 bf16", "f64 f64 f64 f64 f64" } },
  { "v0 = x0 + x1 ; v1 = v0 > 0 ; v2 = sqrt ( abs ( v0 ) )", 2,
    { "f32 f32 f32 bool f32", "f16 f32 f32 bool f64", "i32 i32 i64 u8 f32" } },
  { "v0 = x0 ; v1 = x0 * 2", 1, { "f32 f32 f32", "u8 i32 u8", "bf16 f32 bf16" } },
  { "param p0 ; leaky_relu ( x0 - x1 , p0 ) * ( x2 + p0 )", 3,
    { "f32 f32 f32 f32", "f16 f16 f16 f16", "f64 f32 f32 f64" } },
  { "param p0 ; param p1 ; x0 * p1 + ( f64 ) x1 * p0", 2, { "i32 f32 f64", "f32 f32 f64" } },
  { "where ( x0 , x1 , x2 )", 3, { "bool f32 f32 f32", "bool f16 f32 f32", "bool u8 u8 i32" } },
  { "copy ( x0 )", 1, { "f32 f32", "bf16 bf16", "bool bool" } },
  { "tanh ( x0 ) + exp ( x1 )", 2, { "f32 f32 f32", "f16 f16 f16" } },
  { "pow ( x0 , 2.5 )", 1, { "f32 f32", "f64 f64" } },
  { "x0 < x1 ? x0 : - x1", 2, { "f32 f32 f32", "i64 i64 i64", "u8 u8 u8" } },
  { "( x0 & 3 ) << 2", 1, { "i32 i32", "u8 u8", "i64 i64" } },
  { "v0 = ( f32 ) 1", 0, { "f32", "f64" } },
  { "x0 + x1 + x2 + x3 + x4 + x5 + x6", 7, { "f32 f32 f32 f32 f32 f32 f32 f32", "f16 f16 f16 f16 f16 f16 f16 f16" } },
}

-- Of constants, and what NVVM finds to be one: it may not turn their operations into others that are contracted.
local CONSTANTS = {
  { "x0 / 4 / 0.5 + x1", 2, "f" },
  { "( x0 / 2 ) * ( x1 / -8 ) - x1 / 2", 2, "f" },
  { "x0 / 0x1p126 * x1 + x0 / 0x1p-126 + x1 / 0x1p127 + x1 / 0x1p-149", 2, "f" },
  { "x0 / 0x1p1023 * x1 + x0 / 0x1p-1022 + x0 / 0x1p-1023 + x0 / 0x1p-1074", 2, { "f64 f64 f64" } },
  { "1 / x0 * x1 + -1 / x1 + 1 / ( x0 / 2 )", 2, "f" },
  { "fma ( x0 , 1 , x1 ) * x1 + fma ( - x0 , x1 , -0.0 ) + fma ( x0 , 2 , x1 / 4 )", 2, "f" },
  { "x0 * 2 + x1 * -1 - ( 0 - x0 ) / 1 + x0 / -1 + x0 / 0 + x0 * 0", 2, "f" },
  { "x0 / 3 * x1 + x0 / 10 + 2 / x1 + x0 / INFINITY", 2, "f" },
  { "x0 / sqrt ( ( f64 ) 4 ) + x1 / floor ( ( f64 ) 2.5 )", 2, { "f64 f64 f64" } },
  { "x0 / ( x1 == 2 ? x1 : 2 ) + x1", 2, "f" },
  { "hypot ( x0 , x1 ) / 2 + atan2 ( x0 , x1 ) / 4", 2, "f" },
  { "v0 = x0 < 0 ; v1 = x0 >= 0 & x1 > 1 ; v2 = 0 > x0 | ! ( 0 <= x1 ) ? x0 : x1", 2,
    { "u8 u8 bool u8 u8", "u32 u32 bool bool u32", "u64 u64 bool bool f32", "i8 i8 bool bool i8" } },
}
for _, row in ipairs(CONSTANTS) do
  row[3] = row[3] == "f" and { "f32 f32 f32", "f64 f64 f64", "f16 f16 f16" } or row[3]
  row.has_constants = true
  EXPRESSIONS[#EXPRESSIONS + 1] = row
end

-- Letters of the operands, a rank (0: any), an index width.
local function random_shape(n_in, n)
  local rank = math.random(0, 3)
  local kind, classes = math.random(3), {} -- rows; with strides; with tiles
  local letters = kind == 1 and "ccb" or kind == 2 and "cbs" or rank == 1 and "cs" or "cbstt"
  for k = 1, n do
    local from = k <= n_in and letters or kind == 2 and "cs" or "c"
    local at = math.random(#from)
    classes[k] = from:sub(at, at)
  end
  return table.concat(classes), rank, math.random(2) == 1
end

local kernels, refused = {}, {}
local function ask(request)
  request.symbol, request.target = string.format("qc_source_%d", #kernels + 1), "cuda"
  request.classes, request.rank, request.is_wide = random_shape(request.n_in, #request.dtypes)
  if request.is_index then request.classes = "b" .. (math.random(2) == 1 and "c" or "s") end
  local text, turn, message = served:source(request)
  if not text then
    refused[#refused + 1] = (request.op or request.canonical) .. ": " .. tostring(message)
    return nil
  end
  kernels[#kernels + 1] = { request = request, text = text, turn = turn }
  return kernels[#kernels]
end

local function one_of(dtype)
  local t = types.by_name[dtype]
  if dtype == "f16" then return 0x3c00 elseif dtype == "bf16" then return 0x3f80 end
  return t.kind ~= "float" and 1 or t.bits == 32 and number.f32_bits(1.0) or number.f64_bits(1.0)
end

for _, row in ipairs(EXPRESSIONS) do
  for _, list in ipairs(row[3]) do
    for _ = 1, row.has_constants and 1 or 2 do
      local dtypes = split(list)
      local kernel = ask { canonical = row[1], n_in = row[2], dtypes = dtypes }
      if kernel then
        kernel.has_constants = row.has_constants
        local ins = table.move(dtypes, 1, row[2], 1, {})
        local dag = assert(host.host_dag(model, row[1], ins))
        kernel.params = {}
        for k, slot in ipairs(dag.slots) do
          kernel.params[k] = slot.type == "f32" and number.f32_bits(k + 0.5)
            or slot.type == "f64" and number.f64_bits(k + 0.5) or k
        end
        kernel.in_c = string.format("qk_source_%d", #kernels)
        kernel.c_text = assert(served:source { symbol = kernel.in_c, canonical = row[1], n_in = row[2], dtypes = dtypes,
                                               classes = ("c"):rep(#dtypes), rank = 1 })
      end
    end
  end
end
local dtypes = {}
for _, t in ipairs(types.list) do
  if t.built and t.kind ~= "bits" then dtypes[#dtypes + 1] = t.name end
end
local function ask_op(name, n_in, list, params, is_index)
  local kernel = ask { op = name, n_in = n_in, dtypes = list, is_index = is_index }
  if kernel then kernel.op, kernel.params = name, params or {} end
end
for _, from in ipairs(dtypes) do
  ask_op("full", 0, { from }, { one_of(from) })
  ask_op("copy", 1, { from, from })
  ask_op("where", 3, { "bool", from, from, from })
  for _, to in ipairs(dtypes) do
    ask_op("astype", 1, { from, to })
    ask_op("saturate_cast", 1, { from, to })
  end
end
for name, op in pairs { arange = model.op_of_name.arange, linspace = model.op_of_name.linspace } do
  for _, out in ipairs(op.dtypes) do
    local params, is_float = {}, types.by_name[out].kind == "float"
    for k = 1, #op.params do params[k] = is_float and number.f64_bits(k + 0.0) or k end
    for _ = 1, 3 do ask_op(name, 1, { variants_cuda.INDEX_DTYPE, out }, params, true) end
  end
end
for _, list in ipairs { "bool f16 f32 f32", "bool f16 bf16 f64", "bool bool i32 i64", "bool u8 f16 f16", "bool i32 i32 f32",
                        "bool f32 f64 f64" } do
  ask_op("where", 3, split(list))
end
ask_op("copy", 1, { "bool", "f32" })
ask_op("copy", 1, { "f32", "f64" })
ask_op("copy", 1, { "i64", "bf16" })
tap.ok(#refused == 0 and #kernels > 100, "%d kernels", #kernels)
for _, said in ipairs(refused) do tap.diag("%s", said) end

-- What is said in C again, for the other end of a launch.
for file, constants in pairs {
  ["launch.h"] = { QN_LAUNCH_ARGS = source_cuda.MAX_ARGUMENTS },
  ["launch.c"] = { MAX_STRIDES = variants_cuda.MAX_STRIDES, FLAG_VALUES = kernels_cuda.VALUE_FLAG },
} do
  local text = shell.read(root .. "/runtime/core/simt/" .. file)
  for name, wanted in pairs(constants) do
    tap.is(tonumber(text:match("#define " .. name .. " +(%d+)")), wanted, file .. " has the generator's " .. name)
  end
end

---------------------------------------------------------------------------------------------------- on the CPU

-- A kernel's own part of the text, behind the headers that all have; with the names in it that all have made its
-- own.
local END_OF_HEADERS = "struct q_args_"
local head = kernels[1].text:match("^(.-)\n" .. END_OF_HEADERS)
local cuda_parts, c_parts, declarations, rows, unlike = { head }, {}, {}, {}, 0
for k, kernel in ipairs(kernels) do
  local at = kernel.text:find(END_OF_HEADERS, 1, true)
  if kernel.text:sub(1, at - 2) ~= head then unlike = unlike + 1 end
  local function own(text) return (text:gsub("(q_args_[%d_]+)", "%1_k" .. k):gsub("(q_table_[%w_]+)", "%1_k" .. k)) end
  cuda_parts[#cuda_parts + 1] = own(kernel.text:sub(at))
  if kernel.c_text then
    c_parts[#c_parts + 1] = own(kernel.c_text)
    declarations[#declarations + 1] = string.format("c_kernel %s;", kernel.in_c)
  end
  local request = kernel.request
  local record = { name = request.symbol, dtypes = request.dtypes, classes = request.classes, is_wide = request.is_wide,
                   rank = request.rank == 0 and "n" or tostring(request.rank), weight = 1,
                   template = request.classes:find "t" and "transpose" or "elementwise" }
  local slot = kernels_cuda.items(types, record, request.n_in)
  rows[k] = texts.kernel_row(record, {
    n_out = #request.dtypes - request.n_in, op = kernel.op or "", in_c = kernel.in_c, turn = kernel.turn, params = kernel.params,
    slot = record.template == "transpose" and 0 or slot, is_index = request.is_index,
  })
end
tap.ok(unlike == 0, "all have the same headers at their head, and stand alone")
write("kernels.cu", table.concat(cuda_parts, "\n"))
write("kernels.c", table.concat(c_parts, "\n"))
write("c_kernels.inc", table.concat(declarations, "\n") .. "\n")
write("kernels.inc", table.concat(rows, "\n") .. "\n")
local function step(what, form, ...)
  local ok, text = run(string.format(form, ...))
  tap.ok(ok, "%s", what)
  if not ok then tap.diag("%s", text:sub(1, 3000)) end
  return ok, text
end
step("a C tree of those ops",
     "lua5.4 %s/build.lua generate --single --prefix ref --ops astype,saturate_cast,full,copy,where,arange,linspace --out %s/tree "
     .. "&& cc -std=gnu11 -O0 -c %s/tree/ref.c -o %s/ref.o", root, folder, folder, folder)
step("the C kernels compile", "cc -std=gnu11 -O1 -ffp-contract=off -I%s/templates/c/headers -c %s/kernels.c -o %s/c.o", root, folder,
     folder)
step("the text compiles for the CPU without a warning",
     "%s -x c++ -std=c++17 -DQC_HOST -I%s/tests/support/cuda -ffp-contract=off -Wall -Wextra -Werror -Wno-unknown-pragmas -O0 "
     .. "-Wno-tautological-compare -Wno-type-limits -c %s/kernels.cu -o %s/kernels.o", compiler, root, folder, folder)
local linked = step("and is linked with what runs it",
  "cd %s && %s -std=c++17 -O1 -Wall -Wextra -Werror -I. -Itree %s/tests/support/cuda/text_driver.cc kernels.o c.o ref.o -o run -pthread",
  folder, compiler, root)
if linked then
  local ok, text = run(string.format("%s/run 0x%x 12", folder, tap.test_seed()))
  tap.ok(ok and tonumber(text:match "(%d+) problems") == 12 * #kernels, "%d problems give the bits of C", 12 * #kernels)
  if not ok then tap.diag("seed 0x%x\n%s", tap.test_seed(), text:sub(1, 4000)) end
end

---------------------------------------------------------------------------------------------------- NVRTC

local built = step("the driver of NVRTC",
                   "cc -O1 -o %s/nvrtc %s/tests/support/cuda/nvrtc_driver.c -ldl", folder, root)
local failures, faults, n_compiled, skipped = {}, {}, 0, not built and "no driver of NVRTC" or nil
local function nvrtc(options)
  local good, said, code = run(string.format("cd %s && ./nvrtc -O --minimal -O -default-device %s one.cu", folder, options))
  if code == 77 then skipped = said:gsub("\n.*", "") end
  return good, said
end
-- to: "sm": a cubin, too; "compute": PTX alone
local function compile(text, what, to)
  write("one.cu", text)
  local good, said = nvrtc(string.format("-O --gpu-architecture=%s_90 -p one.ptx %s", to, to == "sm" and "-c one.cubin" or ""))
  if good then good, said = nvrtc "-O --gpu-architecture=compute_90 -O --fmad=false -p exact.ptx" end
  if skipped then return end
  if not good then failures[#failures + 1] = what .. ": " .. said:sub(1, 1500) end
  for _, fault in ipairs(good and ptx.faults(shell.read(folder .. "/one.ptx"), shell.read(folder .. "/exact.ptx"), text) or {}) do
    faults[#faults + 1] = what .. ": " .. fault
  end
  n_compiled = n_compiled + 1
end
local part = tap.test_part(6) -- a sixth of every fifteenth, others each day
for k = 1 + 15 * (part or 0), #kernels, part and 90 or 15 do
  if not skipped then compile(kernels[k].text, kernels[k].request.canonical or kernels[k].request.op, "sm") end
end
local with_constants, n_constants = { head }, 0
for k, kernel in ipairs(kernels) do
  if kernel.has_constants then
    with_constants[#with_constants + 1] = cuda_parts[k + 1]
    n_constants = n_constants + 1
  end
end
if not skipped then compile(table.concat(with_constants, "\n"), "constants", "compute") end
if skipped then
  tap.skip(2, skipped)
else
  tap.ok(#failures == 0 and n_compiled > 5, "NVRTC compiles %d of them, and %d of constants", n_compiled - 1, n_constants)
  for _, said in ipairs(failures) do tap.diag("%s", said) end
  tap.ok(#faults == 0 and n_constants > 25, "and computes what the text says: rounded, nothing contracted, no calls, no memory of a thread's own")
  for _, said in ipairs(faults) do tap.diag("%s", said) end
end

if not os.getenv "QUERN_TEST_KEEP" then os.execute("rm -rf " .. folder) end
tap.done_testing()
