-- SPDX-License-Identifier: Apache-2.0
--
-- texts.lua: owns the choice of CUDA kernels that t710 runs on the CPU and t720 compiles: every op with every dtype in some
-- class, add, abs, arange, linspace and where in every rank, class and index width (where: some) with dtypes in turn. The choice
-- is the same whenever it is made, for each op by itself, so that a part of the ops can be chosen alone. As a program, with the
-- words of a part or none, it prints the digest of each file's text.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/?.lua;" .. root .. "/tests/support/?.lua;" .. package.path

local cuda = require "gen.targets.cuda.tree"
local digest = require "gen.base.digest"
local kinds = require "gen.kinds.kinds"
local kernels_cuda = require "gen.targets.cuda.kernels"
local main = require "gen.main"
local number = require "gen.base.number"
local order = require "gen.base.order"
local shell = require "shell"
local variants_cuda = require "gen.targets.cuda.variants"

local M = {}

M.KERNELS_A_FILE = 60
M.without = nil -- op -> whether a test has no use for its kernels

local function read(name) return shell.read(root .. "/" .. name) end

-- A stream of numbers that is the same everywhere.
local function stream(seed)
  local state = seed
  return function(n)
    state = state * 6364136223846793005 + 1442695040888963407
    return (state >> 33) % n + 1
  end
end

-- Records by dtypes, in the order in which they come.
local function by_dtypes(records)
  local groups, of_key = {}, {}
  for _, record in ipairs(records) do
    local key = table.concat(record.dtypes, " ")
    if not of_key[key] then
      of_key[key] = {}
      groups[#groups + 1] = of_key[key]
    end
    table.insert(of_key[key], record)
  end
  return groups
end

-- Every shape of an op once, its dtypes in turn. part: one of so many shapes
local function all_shapes(groups, part)
  local list = {}
  for k = 1, #groups[1], part do list[#list + 1] = groups[(k // part) % #groups + 1][k] end
  return list
end

-- What a test calls a parameter's value: whole numbers, given to both sides.
local function param_bits(types, record, k)
  local t = types.by_name[record.K]
  if t.kind == "float" then return t.bits == 32 and number.f32_bits(k + 0.0) or number.f64_bits(k + 0.0) end
  if record.K == "b16" then return 0x3c00 + (k - 1) * 0x400 end -- of f16: 1, 2
  return k
end

-- The ops that have all shapes: one shape of so many.
local IN_ALL_SHAPES = { add = 1, abs = 1, where = 40, arange = 1, linspace = 1 }

-- The ops of a part { k, n }, every n-th by name, from the k-th on, as a set: those that it has with every dtype.
function M.ops_of(model, part)
  local names, set = {}, {}
  for _, op in ipairs(model.ops) do names[#names + 1] = op.name end
  table.sort(names, order.less)
  for k, name in ipairs(names) do set[name] = not part or k % part[2] == part[1] or nil end
  return set
end

-- The entries: { record, dag, op, params = bits }. options: { ops }, those alone and none in all shapes. part: { k, n }: of ops, and of
-- the shapes of those that have all, every n-th from the k-th on; nil: all.
function M.entries(model, options, part)
  local ops, has_every_dtype = options and options.ops, M.ops_of(model, not options and part or nil)
  if part and not options then
    local names = order.keys(has_every_dtype)
    for name in pairs(IN_ALL_SHAPES) do names[#names + 1] = not has_every_dtype[name] and name or nil end
    ops = table.concat(names, ",")
  end
  local plan = assert(main.plan(model, { variants = "full", ops = ops }))
  local list = {}
  for _, op in ipairs(plan.ops) do
    local records = M.without and M.without(op) and {}
      or variants_cuda.of_op(model.types, op, plan.wanted, plan.policy, plan.dag_for, plan.combine_for)
    local groups = by_dtypes(records)
    local chosen, seen, next_random = {}, {}, stream(720 + #op.name + op.name:byte())
    -- a kernel over axes takes ptxas a second and more: of a part's they are for one dtype in four, as are those of astype
    local over_axes = kinds.of(op).shape_params ~= nil
    local every = part and (over_axes or #groups > 100) and 4 or 1
    for k, group in ipairs(has_every_dtype[op.name] and groups or {}) do
      local record = group[next_random(#group)]
      if every == 1 or k % every == part[1] % every then chosen[#chosen + 1] = record end
    end
    local step = not options and IN_ALL_SHAPES[op.name]
    for k, record in ipairs(step and all_shapes(groups, step) or {}) do
      if not part or k % part[2] == part[1] then chosen[#chosen + 1] = record end
    end
    for _, record in ipairs(chosen) do
      if not seen[record.name] then
        local entry = { record = record, dag = cuda.dag_of(plan, op, record), op = op, params = {} }
        for k in ipairs(op.params) do entry.params[k] = param_bits(model.types, record, k) end
        list[#list + 1] = entry
        seen[record.name] = true
      end
    end
  end
  return list
end

-- Files of the chosen kernels: list of { name, text, entries }. Arguments as those of entries
function M.files(model, options, part)
  local templates, headers = kernels_cuda.sources(read)
  local entries, files = M.entries(model, options, part), {}
  for k = 1, #entries, M.KERNELS_A_FILE do
    local some = table.move(entries, k, math.min(k + M.KERNELS_A_FILE - 1, #entries), 1, {})
    files[#files + 1] = { name = string.format("text_%02d.cu", #files + 1), entries = some,
                          text = kernels_cuda.file(model.types, {}, some, templates, headers) }
  end
  return files
end

function M.model(specs)
  local model, _, errors = main.load(root, specs or {})
  assert(#errors == 0, table.concat(errors, "\n"))
  return model
end

-- A row of tests/support/cuda/text_driver.cc. of: { n_out, op = a name, in_c = a C kernel or nil, slot, turn, params = bits, is_index =
-- it is an index op's }
function M.kernel_row(record, of)
  local params, classes = {}, of.is_index and record.classes:gsub("^b", "i") or record.classes
  for k, bits in ipairs(of.params) do params[k] = string.format("0x%xull", bits) end
  if of.is_index then params[#params + 1] = "0" end -- the driver knows how many elements there are
  return string.format('KERNEL(%s, %d, %d, "%s", %s, "%s", %d, "%s", %d, %d, %d, %d, %s)', record.name,
    kernels_cuda.n_arguments(record, #params), of.n_out, of.op, of.in_c or "NULL", table.concat(record.dtypes, " "),
    tonumber(record.rank) or 0, classes, kernels_cuda.arguments_shape(record, 0).rank, record.is_wide and 64 or 32,
    of.slot, of.turn, #params > 0 and table.concat(params, ", ") or "0")
end

-- The op that gives what an entry's kernel has to give: bits of a dtype cast to itself are moved.
function M.row_op(entry)
  local record = entry.record
  return record.op.casts and #record.dtypes == 2 and not record.from and "copy" or record.op.name
end

-- The row for an entry.
function M.row(model, entry)
  local record = entry.record
  local slot, turn = kernels_cuda.items(model.types, record, #record.op.inputs)
  return M.kernel_row(record, { n_out = #record.op.outputs, op = M.row_op(entry), slot = record.template == "transpose" and 0 or slot, turn = turn,
                                params = entry.params, is_index = kinds.of(record.op).has_indices })
end

if arg and arg[0] and arg[0]:find "texts%.lua$" then
  local part = arg[1] and { tonumber(arg[1]), tonumber(arg[2]) }
  for _, file in ipairs(M.files(M.model(), nil, part)) do print(file.name, digest.hex(file.text)) end
end

return M
