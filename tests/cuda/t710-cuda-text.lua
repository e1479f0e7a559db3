-- SPDX-License-Identifier: Apache-2.0
--
-- tags: long
-- t710-cuda-text: generated CUDA text, compiled for the CPU and run thread by thread in several orders, gives the bits of the C
-- kernels: every op and dtype, every rank, class and index width, slots cut at both ends, every alignment, any strides, in
-- place, streamed; it writes nothing else and reads nothing beside its operands. Random bodies too. QUERN_TEST_SEED repeats
-- a run. Each day has every 18th op.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. root .. "/tests/support/random/?.lua;" .. root .. "/tests/support/cuda/?.lua;" .. package.path
local shell = require "shell"
local kinds = require "gen.kinds.kinds"
local tap = require "tap"
local random_bodies = require "random_bodies"
local texts = require "texts"

-- t794 and t798 have those that reduce and scan, and derivatives of scans.
texts.without = function(op) return kinds.of(op).shape_params ~= nil end

-- Clang takes half of GCC's time.
local compiler = os.getenv "CXX" or os.execute "command -v clang++-19 >/dev/null 2>&1" and "clang++-19" or "c++"
if not os.execute("command -v " .. compiler .. " >/dev/null 2>&1") then tap.skip_all("no C++ compiler: " .. compiler) end

local folder, run = shell.folder(), shell.run
local function write(name, text) shell.write(folder .. "/" .. name, text) end

local on_cpu = string.format("%s -x c++ -std=c++17 -DQC_HOST -I%s/tests/support/cuda -ffp-contract=off -Wall -Wextra -Werror "
  .. "-Wno-unknown-pragmas", compiler, root)

-- Every op, but those that CUDA has none of, with every dtype of the spec: itself, or bits of its size, where bits are moved.
local function check_walk(model, part, files)
  local seen, missing, n_ops, n_pairs, n_dynamic = {}, {}, 0, 0, 0
  for _, file in ipairs(files) do
    for _, entry in ipairs(file.entries) do
      for _, name in ipairs(entry.record.dtypes) do seen[entry.op.name .. " " .. name] = true end
    end
  end
  local is_chosen = texts.ops_of(model, part)
  for _, op in ipairs(model.ops) do
    if kinds.of(op).only_cpu or texts.without(op) then
      n_dynamic = n_dynamic + 1
    elseif is_chosen[op.name] then
      n_ops = n_ops + 1
      for _, d in ipairs(op.dtypes) do
        local name = type(d) == "table" and d.name or d
        n_pairs = n_pairs + 1
        if not seen[op.name .. " " .. name] and not seen[op.name .. " b" .. model.types.by_name[name].bits] then
          missing[#missing + 1] = op.name .. " " .. name
        end
      end
    end
  end
  tap.ok(n_ops > 5 and #missing == 0, "kernels of each of %d ops and its dtypes, %d pairs; %d others find or reduce",
         n_ops, n_pairs, n_dynamic)
  for _, pair in ipairs(missing) do tap.diag("no kernel: %s", pair) end
end

-- Generates, compiles and runs a choice of kernels beside a C tree of the same ops.
local function check(what, model, options, spec, problems)
  local day = not options and tap.test_part(18)
  local part = day and { day, 18 }
  local files = texts.files(model, options, part)
  local ops, seen = {}, {}
  if not options then check_walk(model, part, files) end
  if part then
    for _, file in ipairs(files) do
      for _, entry in ipairs(file.entries) do
        for _, name in ipairs { entry.op.name, texts.row_op(entry) } do
          if not seen[name] then ops[#ops + 1] = name end
          seen[name] = true
        end
      end
    end
  end
  local out = options and "random" or "ops"
  local more = spec and string.format(" --spec %s --ops %s", spec, options.ops) or part and " --ops " .. table.concat(ops, ",") or ""
  assert(os.execute("mkdir -p " .. folder .. "/" .. out))
  local ok, text = run(string.format("lua5.4 %s/build.lua generate --single --prefix ref --out %s/%s%s", root, folder, out, more))
  if ok then ok, text = run(string.format("cc -std=gnu11 -O0 -c %s/%s/ref.c -o %s/%s/ref.o", folder, out, folder, out)) end
  tap.ok(ok, "%s: the C tree", what)
  if not ok then tap.diag("%s", text:sub(1, 2000)) end

  local rows, objects, n_kernels, failures = {}, {}, 0, {}
  for _, file in ipairs(files) do
    local path = string.format("%s/%s/%s", folder, out, file.name)
    write(out .. "/" .. file.name, file.text)
    -- not optimised: GCC would take all memory for a chain of squares, pow of i64
    local good, said = run(string.format("%s -O0 -Wno-tautological-compare -Wno-type-limits -c %s -o %s.o", on_cpu, path, path))
    if not good then failures[#failures + 1] = said:sub(1, 2000) end
    objects[#objects + 1] = path .. ".o"
    for _, entry in ipairs(file.entries) do rows[#rows + 1] = texts.row(model, entry) end
    n_kernels = n_kernels + #file.entries
  end
  tap.ok(#failures == 0, "%s: %d kernels compile for the CPU without a warning", what, n_kernels)
  for _, said in ipairs(failures) do tap.diag("%s", said) end
  write(out .. "/c_kernels.inc", "")
  write(out .. "/kernels.inc", table.concat(rows, "\n") .. "\n")
  ok, text = run(string.format("cd %s/%s && %s -std=c++17 -O1 -Wall -Wextra -Werror -I. %s/tests/support/cuda/text_driver.cc %s ref.o "
    .. "-o run -pthread", folder, out, compiler, root, table.concat(objects, " ")))
  if not ok then tap.diag("%s", text:sub(1, 3000)) end
  local n_run
  if ok then
    ok, text = run(string.format("%s/%s/run 0x%x %d", folder, out, tap.test_seed(), problems))
    n_run = tonumber(text:match "(%d+) problems")
    if not ok then tap.diag("seed 0x%x\n%s", tap.test_seed(), text:sub(1, 4000)) end
  end
  tap.ok(ok and n_run == n_kernels * problems, "%s: %d problems of %d kernels give the bits of C", what, n_run or 0, n_kernels)
end

local ok, text = run(string.format("%s -O1 %s/tests/support/cuda/divide.cc -o %s/divide && %s/divide 0x%x", on_cpu, root, folder, folder,
                                   tap.test_seed()))
tap.ok(ok, "division by what is known before: %s", text:sub(1, 1000))

check("ops", texts.model(), nil, nil, 12)

math.randomseed(tap.test_seed(), 710)
local spec, names = random_bodies.spec(tap.test_part(18) and 10 or 30)
write("bodies.lua", spec)
check("random bodies", texts.model { folder .. "/bodies.lua" }, { ops = table.concat(names, ",") }, folder .. "/bodies.lua", 12)

if not os.getenv "QUERN_TEST_KEEP" then os.execute("rm -rf " .. folder) end
tap.done_testing()
