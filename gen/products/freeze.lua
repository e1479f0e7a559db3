-- SPDX-License-Identifier: Apache-2.0
--
-- The product of `freeze` and `generate --scan`: recorded or scanned expressions and their specs -> frozen.lua's folder.

local files_on_disk = require "gen.base.files"
local frozen = require "gen.products.frozen"
local jobs = require "gen.products.job"
local load = require "gen.products.load"
local names = require "gen.targets.c.names"
local planning = require "gen.products.plan"
local scan = require "gen.front.scan"
local targets = require "gen.targets.all"

local M = {}

-- The kernels of the expressions in C sources; or nil, errors.
local function scanned_kernels(model, files, dtypes, digests, inputs)
  local list, errors = {}, {}
  for _, file in ipairs(files) do
    local text, why = files_on_disk.read(file)
    inputs[#inputs + 1] = file
    local uses, messages = scan.uses(file, text or "")
    if not text then messages = { why } end
    table.move(messages, 1, #messages, #errors + 1, errors)
    for _, use in ipairs(uses) do
      local kernels_of_it, message = frozen.of_scanned(model, use, dtypes, digests)
      if kernels_of_it then
        table.move(kernels_of_it, 1, #kernels_of_it, #list + 1, list)
      else
        errors[#errors + 1] = message
      end
    end
  end
  if #errors == 0 and #list == 0 then errors[1] = "no QUERN_KERNEL(name, expression) in " .. table.concat(files, ", ") end
  if #errors > 0 then return nil, errors end
  return list
end

-- A folder of kernels of expressions, built ahead for libquern. options: record (the name of a record file) or scan (a list of C
-- files) with dtypes; prefix, specs. Returns { files, inputs, n_kernels } or nil, errors.
function M.freeze(root, options)
  local model, inputs, errors = load.load(root, options.specs)
  if #errors > 0 then return nil, errors end
  local prefix = options.prefix or "frozen"
  local bad_prefix = names.prefix_failure(prefix)
  if bad_prefix then return nil, { bad_prefix } end
  local specs = {}
  for k, name in ipairs(options.specs or {}) do
    specs[k] = { text = assert(files_on_disk.read(name)), ops = {} }
    for _, op in ipairs(model.ops) do
      if op.file == name then table.insert(specs[k].ops, op.name) end
    end
  end
  local digests = frozen.spec_digests(specs)
  local list, why
  if options.record then
    local text
    text, why = files_on_disk.read(options.record)
    if not text then return nil, { why } end
    inputs[#inputs + 1] = options.record
    list, errors = frozen.read_record_file(model, options.record, text, digests)
    if #errors == 0 and #list == 0 then errors[1] = options.record .. ": no kernels" end
  else
    local asked = options.dtypes and planning.split(options.dtypes)
    local wanted = planning.wanted_dtypes(model, asked, {}, errors)
    local dtypes = {}
    for _, t in ipairs(model.types.list) do
      if wanted[t.name] and t.kind ~= "bits" then dtypes[#dtypes + 1] = t.name end
    end
    if #errors == 0 then list, errors = scanned_kernels(model, options.scan, asked or dtypes, digests, inputs) end
  end
  if errors and #errors > 0 then return nil, errors end
  list, why = frozen.unique(list)
  if not list then return nil, { why } end
  local job, files = jobs.new(root, { model = model }, names.LIBRARY, inputs), nil
  files, why = frozen.files(model, prefix, list, targets.cpu.headers(job), job.read)
  if not files then return nil, { why } end
  load.add_generator(root, inputs)
  return { files = files, inputs = inputs, n_kernels = #list }
end

return M
