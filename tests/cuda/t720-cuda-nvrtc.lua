-- SPDX-License-Identifier: Apache-2.0
--
-- tags: long
-- t720-cuda-nvrtc: NVRTC compiles CUDA text, as t710 runs it on the CPU, without headers, for compute capability 7.5, 8.0, 9.0 and
-- 10.0; kernels of rows reach their operands 16 bytes at a time; nothing spills; PTX keeps to the law (ptx.lua). nvcc compiles
-- files of generated trees under its defaults, those of unsigned quotients without a word. No GPU is needed; where CUDA is not, its
-- part is skipped. QUERN_CUDA_PATH says where it is. Each day NVRTC has every 48th op, those over axes for one dtype in four; every
-- third day nvcc has one.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. root .. "/tests/support/cuda/?.lua;" .. package.path
local shell = require "shell"
local ptx = require "ptx"
local tap = require "tap"
local texts = require "texts"
local digest = require "gen.base.digest"
local operands = require "gen.targets.operands"

local folder, run = shell.folder(), shell.run
local function read(name) return shell.read(folder .. "/" .. name) end
local function write(name, text) shell.write(folder .. "/" .. name, text) end
local function finish()
  os.execute("rm -rf " .. folder)
  tap.done_testing()
end

local ok, text = run(string.format("cc -O1 -o %s/nvrtc %s/tests/support/cuda/nvrtc_driver.c -ldl", folder, root))
tap.ok(ok, "the driver of NVRTC")
if not ok then
  tap.diag("%s", text)
  finish()
end
local ARCHITECTURES = { "sm_75", "sm_80", "sm_90", "sm_100" }
local function compile(name, architecture)
  return run(string.format("cd %s && ./nvrtc -t -O --gpu-architecture=%s -O --minimal -O -default-device -O --ptxas-options=-v "
    .. "-p %s.ptx -c %s.cubin %s", folder, architecture, name, name, name))
end
-- PTX alone, where nothing may be contracted, or what was said. Of a part of the files, one has it.
local function uncontracted(name, architecture)
  local good, said = run(string.format("cd %s && ./nvrtc -O --gpu-architecture=%s -O --minimal -O -default-device -O --fmad=false "
    .. "-p %s.exact %s", folder, architecture:gsub("sm", "compute"), name, name))
  return good and read(name .. ".exact") or said
end

local model = texts.model()
local day = tap.test_part(72)
local part = day and { day, 72 }
local files = texts.files(model, nil, part)

-- The widest dtype of a kernel of rows: how many loads and stores of 16 bytes there must be.
local function wide_accesses(record, dag)
  local is_used = dag and operands.used(dag)
  local n_in = record.op.inputs and #record.op.inputs or #record.dtypes - 1
  local widest, loads, stores = 1, 0, 0
  for _, dtype in ipairs(record.dtypes) do widest = math.max(widest, model.types.by_name[dtype].size) end
  for k, dtype in ipairs(record.dtypes) do
    if record.classes:sub(k, k) == "c" and model.types.by_name[dtype].size == widest then
      if k > n_in then
        stores = stores + 1
      elseif not is_used or is_used[dag.inputs[k]] then -- the derivative of floor looks at nothing
        loads = loads + 1
      end
    end
  end
  return loads, stores
end

local function count_of(body, what)
  local count = 0
  for _, form in ipairs { "v4%.b32", "v2%.b64", "v4%.u32", "v2%.u64" } do
    for _ in body:gmatch(what .. "[%w_.:]*" .. form) do count = count + 1 end
  end
  return count
end

-- name -> { registers, spill bytes, stack bytes } of ptxas' words.
local function resources_of(log)
  local resources, name = {}, nil
  for line in log:gmatch "[^\n]+" do
    name = line:match "Compiling entry function '([%w_]+)'" or name
    if name then
      local r = resources[name] or { registers = 0, spills = 0 }
      local stack, stores, loads = line:match "(%d+) bytes stack frame, (%d+) bytes spill stores, (%d+) bytes spill loads"
      if stack then r.spills, r.stack = stores + loads, tonumber(stack) end
      r.registers = tonumber(line:match "Used (%d+) registers") or r.registers
      resources[name] = r
    end
  end
  return resources
end

local failures, narrow, spilled, faults, n_kernels, n_wide, n_ms, unknown = {}, {}, {}, {}, 0, 0, 0, 0
local digests, skipped = {}, nil
for k, file in ipairs(files) do
  write(file.name, file.text)
  digests[#digests + 1] = file.name .. "\t" .. digest.hex(read(file.name))
  -- each for one architecture, the first, which has abs in every shape, for all
  local architectures = k == 1 and not part and ARCHITECTURES or { ARCHITECTURES[(k + (day or 0)) % #ARCHITECTURES + 1] }
  for _, architecture in ipairs(architectures) do
    local good, said, code = compile(file.name, architecture)
    if code == 77 then
      skipped = said:gsub("\n.*", "")
      break
    end
    if not good then
      failures[#failures + 1] = architecture .. ": " .. said:sub(1, 1500)
    else
      n_ms = n_ms + (tonumber(said:match "([%d.]+) ms%s*$") or 0)
      local bodies, resources = ptx.bodies(read(file.name .. ".ptx")), resources_of(said)
      local exact = (not day or k == 1 + day % #files) and uncontracted(file.name, architecture) or nil
      for _, fault in ipairs(ptx.faults(read(file.name .. ".ptx"), exact, file.text)) do
        faults[#faults + 1] = architecture .. " " .. fault
      end
      for _, entry in ipairs(file.entries) do
        local record = entry.record
        n_kernels = n_kernels + 1
        local body, used = bodies[record.name] or "", resources[record.name]
        if record.template == "elementwise" and not record.classes:find "s" then
          local loads, stores = wide_accesses(record, entry.dag)
          n_wide = n_wide + 1
          local is_wide = count_of(body, "ld%.global") >= loads and count_of(body, "st%.global") >= stores
          if not is_wide then narrow[#narrow + 1] = architecture .. " " .. record.name end
        end
        if not used or not used.stack then
          unknown = unknown + 1
        elseif used.spills > 0 or (used.stack > 0) ~= (ptx.n_waiting(file.text, record.name) > 0) then
          spilled[#spilled + 1] = string.format("%s %s: %d registers, %d bytes spilled, stack of %d", architecture, record.name,
                                                used.registers, used.spills, used.stack)
        end
      end
    end
  end
  if skipped then break end
end

if skipped then
  tap.skip(5, skipped)
else
  tap.ok(#failures == 0 and n_kernels > (part and 15 or 100), "NVRTC compiles %d kernels to cubins (%.0f ms each)", n_kernels,
         n_ms / math.max(n_kernels, 1))
  for _, said in ipairs(failures) do tap.diag("%s", said) end
  tap.ok(#narrow == 0 and n_wide > (part and 0 or 20), "%d kernels of rows load and store 16 bytes at a time", n_wide)
  for _, name in ipairs(narrow) do tap.diag("narrow: %s", name) end
  tap.ok(#spilled == 0 and unknown == 0, "none spills, none has a stack but of nodes that wait in it")
  for _, line in ipairs(spilled) do tap.diag("%s", line) end
  tap.ok(#faults == 0, "their PTX computes what the text says: rounded, nothing contracted, no calls, no memory of a thread's own")
  for _, line in ipairs(faults) do tap.diag("%s", line) end
  local _, listed = run(string.format("QUERN_SOURCE_DIR=%s lua5.4 %s/tests/support/cuda/texts.lua %s", root, root,
                                      part and table.concat(part, " ") or ""))
  tap.is(table.concat(digests, "\n") .. "\n", listed, "the text is the same whenever it is made")
end

local nvcc
for _, path in ipairs { os.getenv "QUERN_CUDA_PATH" or "/usr/local/cuda", "/usr/local/cuda" } do
  if not nvcc and os.execute("test -x " .. path .. "/bin/nvcc") then nvcc = path .. "/bin/nvcc" end
end
if nvcc and (tap.test_part(3) or 0) ~= 0 then
  tap.skip(4, "nvcc has another day")
elseif not nvcc then
  tap.skip(4, "no nvcc on this machine (QUERN_CUDA_PATH says where CUDA is)")
else
  ok, text = run(string.format("lua5.4 %s/build.lua generate --target c,cuda --prefix mine --ops gelu,where --dtypes f32,f16 "
    .. "--rank 1,2 --class c,t --out %s/tree && grep -c '^cuda ' %s/tree/sources.txt", root, folder, folder))
  tap.ok(ok and text == "2\n", "a tree with kernels for CUDA")
  if not ok then tap.diag("%s", text) end
  ok, text = run(string.format("cd %s/tree && %s -c kernels/mine_op_gelu_cuda.cu -o gelu.o && nm gelu.o", folder, nvcc))
  tap.ok(ok and text:find " T mine_qc_gelu_f32_f32_1d_cc\n", "nvcc compiles its file of gelu under its defaults")
  if not ok then tap.diag("%s", text:sub(1, 2000)) end
  for _, name in ipairs { "divmod", "floor_divide" } do
    ok, text = run(string.format("cd %s && lua5.4 %s/build.lua generate --target cuda --prefix mine --ops %s --dtypes u8,i16 --class c,b "
      .. "--rank 1 --out quotients && %s -arch=sm_80 -ptx -o quotients.ptx quotients/kernels/mine_op_%s_cuda.cu", folder, root, name, nvcc,
      name))
    tap.ok(ok and not text:find "warning", "and that of %s, without a warning", name)
    if text:find "warning" then tap.diag("%s", text:sub(1, 2000)) end
  end
end
finish()
