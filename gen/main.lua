-- The pipeline in order: spec -> dag -> variants -> text -> files. Used by build.lua, tools/embed.lua and tests; at run time
-- there is service.lua. Never prints, never exits: what goes wrong comes back as a list of strings.

local sandbox = require "gen.front.sandbox"
local spec = require "gen.front.spec"
local expr = require "gen.graph.expr"
local derive = require "gen.graph.derive"
local variants = require "gen.targets.variants"
local kernels = require "gen.targets.c.kernels"
local kernels_cuda = require "gen.targets.cuda.kernels"
local measure = require "gen.tools.measure"
local cuda = require "gen.targets.cuda.tree"
local primitives = require "gen.products.primitives"
local share = require "gen.targets.c.share"
local frozen = require "gen.products.frozen"
local scan = require "gen.front.scan"
local tables = require "gen.products.tables"
local template = require "gen.base.template"
local tree = require "gen.products.tree"
local emit = require "gen.base.files"
local evaluate = require "gen.graph.evaluate"
local source = require "gen.base.source"
local order = require "gen.base.order"
local digest = require "gen.base.digest"
local fatbin = require "gen.targets.cuda.fatbin"

local M = {}

M.VERSION = "0.1.0"

-- What the built-in specs declare. root: the folder of build.lua. Returns model, inputs (files read)
function M.builtin_model(root)
  local inputs = {}
  local function read(name)
    inputs[#inputs + 1] = root .. "/" .. name
    return assert(emit.read(root .. "/" .. name))
  end
  local model = spec.new_model("dsl/types.lua", read "dsl/types.lua")
  model.primitives = expr.PRIMITIVES
  for name in read "include/quern/quern.h":gmatch "%f[%w_]quern_([%l%d_]+)" do model.api_names[name] = true end
  local names = {}
  for _, name in ipairs(emit.list(root .. "/dsl/math", ".lua")) do names[#names + 1] = "dsl/math/" .. name end
  for _, name in ipairs(emit.list(root .. "/dsl", ".lua")) do
    if name ~= "types.lua" then names[#names + 1] = "dsl/" .. name end
  end
  local errors = {}
  for _, name in ipairs(names) do
    for _, message in ipairs(spec.load(model, name, read(name), { builtin = true })) do errors[#errors + 1] = message end
  end
  if #errors == 0 then derive.complete(model) end
  return model, inputs, errors
end

-- Stage spec: the built-in ops and those of the files given.
function M.load(root, spec_files)
  local model, inputs, errors = M.builtin_model(root)
  for _, name in ipairs(spec_files or {}) do
    local text, why = emit.read(name, sandbox.MAX_BYTES + 1)
    if text then
      inputs[#inputs + 1] = name
      local first = #model.ops + 1
      for _, message in ipairs(spec.load(model, name, text)) do errors[#errors + 1] = message end
      if #errors == 0 then derive.complete(model, first) end
    else
      errors[#errors + 1] = why
    end
  end
  return model, inputs, errors
end

-- Stage dag, as needed and kept: returns a function (op, K) -> DAG or nil, and the list its errors go to.
local function dag_maker(model)
  local kept, errors, told = {}, {}, {}
  return function(op, K)
    if op.finds then return nil end -- there is nothing to compute
    local key = op.name .. " " .. K
    if kept[key] == nil then
      local dag, message = expr.op_dag(model, op, K)
      kept[key] = dag or false
      -- a body that serves several dtypes is wrong in all of them in one way
      if not dag and not told[message] then errors[#errors + 1] = message end
      told[message or ""] = true
    end
    return kept[key] or nil
  end, errors
end

local function split(text)
  local list = {}
  for word in text:gmatch "[^,%s]+" do list[#list + 1] = word end
  return list
end

-- The dtypes that are generated for: those asked for, what they compute in, and what results need.
local function wanted_dtypes(model, names, ops, errors)
  local types, wanted = model.types, {}
  if not names then
    for _, t in ipairs(types.list) do wanted[t.name] = t.built or nil end
    return wanted
  end
  for _, name in ipairs(names) do
    local t = types.by_name[name]
    if not t or t.kind == "bits" then
      errors[#errors + 1] = string.format("--dtypes: unknown dtype '%s'%s", source.shown(name), source.suggest(name, types.sets.all))
    elseif not t.built then
      errors[#errors + 1] = string.format("--dtypes: %s is not built in this version", name)
    else
      wanted[name] = true
      wanted[t.compute] = true
    end
  end
  for _, op in ipairs(ops) do
    for _, output in ipairs(op.outputs) do
      if output.type then
        wanted[output.type] = true
        wanted[types.by_name[output.type].compute] = true
      end
    end
    if op.finds then wanted.bool = true end
    for _, input in ipairs(op.inputs) do
      if input.type == "bool" then wanted.bool = true end
    end
    if op.index then
      for _, name in ipairs(op.dtypes) do
        if wanted[name] then wanted[expr.compute_type(types, op, name)] = true end
      end
    end
    if not op.moves and not op.casts and not op.finds and not op.index and expr.is_floating(types, op) then
      for name in pairs(wanted) do
        if expr.is_double(op) then wanted.f64 = true break end
        if types.by_name[name].kind ~= "float" then wanted.f32 = true break end
      end
    end
  end
  return wanted
end

local function sorted_ops(model, names, errors)
  local ops = {}
  if names then
    local seen = {}
    for _, name in ipairs(names) do
      local op = model.op_of_name[name]
      if not op then
        errors[#errors + 1] = string.format("--ops: unknown op '%s'%s", source.shown(name), source.suggest(name, model.op_of_name))
      elseif not seen[name] then
        seen[name] = true
        ops[#ops + 1] = op
      end
    end
  else
    for _, op in ipairs(model.ops) do ops[#ops + 1] = op end
  end
  table.sort(ops, function(a, b) return order.less(a.name, b.name) end)
  return ops
end

local function parse_set(option, list, known, errors)
  if not list then return nil end
  local set = {}
  for _, word in ipairs(list) do
    local value = known[word]
    if value == true then value = word end
    if not value then
      errors[#errors + 1] = string.format("%s: unknown '%s'%s", option, source.shown(word), source.suggest(word, known))
    else
      set[value] = true
    end
  end
  return set
end

-- Stages dag and variants. Returns { model, ops, wanted, records_of, packs, dag_for } or nil, errors.
function M.plan(model, options)
  local errors = {}
  local ops = sorted_ops(model, options.ops and split(options.ops), errors)
  local wanted = wanted_dtypes(model, options.dtypes and split(options.dtypes), ops, errors)
  local policy = {
    variants = options.variants or "lean",
    ranks = parse_set("--rank", options.rank and split(options.rank), variants.RANKS, errors),
    classes = parse_set("--class", options.class and split(options.class), variants.CLASS_NAMES, errors),
  }
  if policy.variants ~= "lean" and policy.variants ~= "full" then
    errors[#errors + 1] = string.format("--variants: '%s', expected lean or full", source.shown(policy.variants))
  end
  if #ops == 0 and #errors == 0 then errors[1] = "no ops to generate" end
  if #errors > 0 then return nil, errors end
  local dag_for, dag_errors = dag_maker(model)
  local kept = {}
  -- every body is checked before any is planned
  for _, op in ipairs(ops) do
    local dtypes = variants.kernel_dtypes(model.types, op, wanted)
    for _, K in ipairs(dtypes) do dag_for(op, K) end
    if #dtypes > 0 then kept[#kept + 1] = op end
  end
  if #dag_errors > 0 then return nil, dag_errors end
  local records_of, has_finders, indices, has_indices = {}, false, {}, {}
  for _, op in ipairs(kept) do
    records_of[op.name] = variants.of_op(model.types, op, wanted, policy, dag_for)
    has_finders = has_finders or op.finds ~= nil
    for _, record in ipairs(op.index and records_of[op.name] or {}) do has_indices[record.K] = true end
  end
  for _, t in ipairs(model.types.list) do indices[#indices + 1] = has_indices[t.name] and t.name or nil end
  return { model = model, ops = kept, wanted = wanted, policy = policy, records_of = records_of, dag_for = dag_for,
           packs = variants.of_packs(model.types, wanted, has_finders, indices) }
end

local TEMPLATES = { "elementwise", "convert", "stream", "transpose", "at", "find", "count", "coordinate" }
local LIBRARY_TEMPLATES = table.move(TEMPLATES, 1, #TEMPLATES, 2, { "lookup" })

local function load_templates(root, inputs, names)
  local parsed = {}
  for _, name in ipairs(names) do
    local file = "templates/c/" .. name .. ".c.in"
    inputs[#inputs + 1] = root .. "/" .. file
    parsed[name] = template.parse(file, assert(emit.read(root .. "/" .. file)))
  end
  return parsed
end

-- The headers that C kernels include.
local function c_headers(root) return emit.list(root .. "/templates/c", ".h") end

-- Stage text: one file of kernels per op, one for what packs. Returns list of { name, text, entries }; those without a text
-- have kernels that are all others' code. is_own: of share.lua, or nil: all are written
local function kernel_files(plan, templates, is_own)
  local files = {}
  local types = plan.model.types
  for _, op in ipairs(plan.ops) do
    local entries = {}
    for _, record in ipairs(plan.records_of[op.name]) do
      entries[#entries + 1] = { record = record, dag = record.dag or plan.dag_for(op, record.K) }
    end
    files[#files + 1] = { name = "kernels/op_" .. op.c_name .. ".c", entries = entries,
                          text = kernels.file(types, tree.c_banner("kernels of " .. op.name, kernels.place(op)), entries, templates, is_own) }
  end
  local entries = {}
  for _, record in ipairs(plan.packs) do entries[#entries + 1] = { record = record } end
  files[#files + 1] = { name = "kernels/pack.c", entries = entries,
                        text = kernels.file(types, tree.c_banner("kernels that convert and move"), entries, templates, is_own) }
  return files
end

-- What the code of an expression depends on, in one number: the same sources give the same on every machine.
local function build_id(root)
  local parts = {}
  local function add(folder, suffix)
    for _, name in ipairs(emit.list_all(root .. "/" .. folder, suffix)) do
      local text = assert(emit.read(root .. "/" .. folder .. "/" .. name))
      parts[#parts + 1] = string.format("%s/%s %d\n%s", folder, name, #text, text)
    end
  end
  for _, folder in ipairs { "dsl", "gen" } do add(folder, ".lua") end
  for _, suffix in ipairs { ".c.in", ".cu.in", ".h" } do add("templates", suffix) end
  for part in assert(emit.read(root .. "/include/quern/quern.h")):gmatch "#define QUERN_VERSION_%u+ [^\n]*" do
    parts[#parts + 1] = part
  end
  return digest.hex(table.concat(parts, "\n"))
end

-- What the library has beside a tree's files: the kernels of primitives, added to `files`, and what its runtime is
-- compiled with. Returns the names of the sources of both.
local function library_files(root, plan, templates, files, is_own)
  local types, kernel_names = plan.model.types, {}
  local list, kernel_entries = primitives.of_plan(plan)
  plan.primitive_files, plan.primitive_records = kernel_entries, {}
  for _, file in ipairs(kernel_entries) do
    files[file.name] = kernels.file(types, tree.c_banner "kernels of one operation each, for expressions", file.entries,
                                    templates, is_own)
    if files[file.name] then kernel_names[#kernel_names + 1] = file.name end
    for _, entry in ipairs(file.entries) do
      entry.record.file = file.name
      table.insert(plan.primitive_records, entry.record)
    end
  end
  local headers = {}
  for _, name in ipairs { "kernel.h", "kernel_cast.h", "kernel_strips.h" } do
    headers[#headers + 1] = { name = name, text = assert(emit.read(root .. "/templates/c/" .. name)) }
  end
  files["runtime/primitive_table.c"] = primitives.table(list, tree.c_banner "the table of primitives")
  files["runtime/kernel_headers.c"] = primitives.headers(headers, tree.c_banner "what kernels made at run time include")
  files["runtime/build_id.h"] = table.concat(tree.c_banner "what the generated code was made from", "\n")
    .. string.format('\n#define QN_BUILD_ID "%s"\n#define QN_NUMERICS %d\n', build_id(root), tree.NUMERICS)
  files["runtime/level_flags.h"] = tree.level_flags_header(tree.c_banner "compiler flags by level")
  files["quern/ops.h"] = tables.ops_header(plan.ops, tree.c_banner("the typed functions of the ops"))
  return kernel_names, { "runtime/kernel_headers.c", "runtime/primitive_table.c" }
end

-- The C kernels of a tree, added to `files` and `lists` (kernel, runtime: names of sources). Returns record's name -> file.
local function c_files(root, plan, options, prefix, read, files, lists, inputs)
  local templates = load_templates(root, inputs, options.library and LIBRARY_TEMPLATES or TEMPLATES)
  local file_of_record, is_own = {}, share.new(plan.model.types)
  for _, file in ipairs(kernel_files(plan, templates, is_own)) do
    if file.text then
      files[file.name] = tree.rename(file.text, prefix)
      table.insert(lists.kernel, file.name)
    end
    for _, entry in ipairs(file.entries) do file_of_record[entry.record.name] = file.name end
  end
  for _, name in ipairs(c_headers(root)) do
    files["kernels/" .. name] = table.concat(tree.c_banner("what every kernel includes"), "\n") .. "\n"
      .. tree.rename(read("templates/c/" .. name), prefix)
  end
  if options.library then
    local names
    names, lists.runtime = library_files(root, plan, templates, files, is_own)
    table.move(names, 1, #names, #lists.kernel + 1, lists.kernel)
  end
  return file_of_record
end

-- The CUDA part of a tree, added likewise (cuda: kernels, cuda_core: what launches them). Returns what op_table.c says of the
-- kernels, and their rows in the manifest.
local function cuda_files(plan, prefix, read, files, lists)
  local of_kernels = cuda.files(plan, prefix, kernels_cuda.sources(read))
  for _, file in ipairs(of_kernels) do
    files[file.name] = file.text
    table.insert(lists.cuda, file.name)
  end
  files["core/cuda_tree.c"] = tree.core_file(prefix, "cuda_tree.c", read "runtime/tree/cuda_tree.c")
  table.insert(lists.cuda_core, "core/cuda_tree.c")
  return cuda.table_rows(plan, prefix, of_kernels), cuda.manifest_rows(plan, prefix, of_kernels)
end

-- What the library may have for CUDA in a folder beside its modules, added likewise (fatbin: the names of sources).
local function fatbin_files(root, plan, read, files, lists)
  local sources = fatbin.sources(plan, plan.primitive_files, kernels_cuda.sources(read))
  lists.fatbin = {}
  for k, source_file in ipairs(sources) do
    local name = fatbin.FOLDER .. source_file.stem .. ".cu"
    files[name], lists.fatbin[k] = source_file.text, name
  end
  files[fatbin.INDEX] = fatbin.index(plan, sources, build_id(root))
end

-- The sources of the core, by their paths in it.
local function core_sources(root)
  local list = {}
  for _, suffix in ipairs { ".c", ".h" } do
    for _, path in ipairs(emit.list_all(root .. "/runtime/core", suffix)) do list[#list + 1] = path end
  end
  return list
end

-- Whether a tree has a source of the core: of a kind of op if it has such ops, of a target if it has kernels for it.
local function is_in_tree(path, kinds, has_c, has_cuda)
  local kind = path:match "^kinds/kind_(%w+)%."
  if kind then return kinds[kind] or false end
  local folder = path:match "^(%w+)/"
  if folder == "cpu" then return has_c end
  if folder == "simt" then return has_cuda end
  return true
end

-- What all kernels of a tree have above them: the tables, the core, the public header. has_c: there are C kernels; cuda_table:
-- what op_table.c says of CUDA, or nil
local function core_files(root, plan, options, prefix, read, files, lists, has_c, cuda_table)
  local types, records_of = plan.model.types, {}
  local kinds = tables.kinds(types, not options.library and plan.ops or nil)
  for _, op in ipairs(plan.ops) do records_of[op.name] = has_c and plan.records_of[op.name] or {} end
  local op_table = tables.op_table(types, plan.ops, plan.wanted, records_of, has_c and plan.packs or {},
                                   tree.c_banner("the table of ops and kernels"), cuda_table, options.library and "quern_managed_alloc",
                                   kinds)
  files["core/op_table.c"] = tree.rename(options.library and op_table or tree.flat_includes(op_table), prefix)
  files["core/dtype_table.h"] = tree.rename(tables.dtype_header(types, tree.c_banner("the table of dtypes")), prefix)
  table.insert(lists.core, "core/op_table.c")
  if options.library then return end
  for _, path in ipairs(core_sources(root)) do
    if is_in_tree(path, kinds, has_c ~= nil, cuda_table ~= nil) then
      local name = path:match "[^/]+$"
      files["core/" .. name] = tree.core_file(prefix, name, read("runtime/core/" .. path))
      if name:find "%.c$" then table.insert(lists.core, "core/" .. name) end
    end
  end
  files[prefix .. ".h"] = tree.public_header(prefix, read "include/quern/quern.h", read "include/quern/dlpack.h", plan.ops)
end

-- What is wrong with a prefix for names; nil: nothing. The library's own are taken.
local function prefix_trouble(prefix, is_library)
  local is_ours = prefix == "quern" or prefix:find "^q[nkcj]?$"
  if prefix:find "^[a-z][a-z0-9_]*$" and #prefix <= 32 and (is_library or not is_ours) then return nil end
  return string.format("--prefix: '%s': expected [a-z][a-z0-9_]*, at most 32, none of quern, qn, qk, qc, qj, q", source.shown(prefix))
end

-- All files of a tree. options: prefix, single, library, target (of "c", "cuda", with commas), and those of plan. Returns
-- { files, plan, inputs } or nil, errors.
function M.generate(root, options)
  local model, inputs, errors = M.load(root, options.specs)
  if #errors > 0 then return nil, errors end
  local prefix = options.prefix or "quern"
  local bad_prefix = prefix_trouble(prefix, options.library)
  if bad_prefix then return nil, { bad_prefix } end
  local targets = parse_set("--target", split(options.target or "c"), { c = true, cuda = true }, errors)
  if targets.cuda and options.single then errors[#errors + 1] = "--target cuda: not with --single" end
  if options.library and not targets.c then errors[#errors + 1] = "--target: the library has C kernels in any case" end
  if next(targets) == nil and #errors == 0 then errors[1] = "--target: expected c, cuda or both" end
  if #errors > 0 then return nil, errors end
  local plan
  plan, errors = M.plan(model, options)
  if plan and not targets.c then errors = cuda.leave_out(plan, options.ops ~= nil) end
  if not plan or (errors and #errors > 0) then return nil, errors end
  for _, op in ipairs(plan.ops) do
    for _, list in ipairs { op.inputs, op.params } do
      for _, item in ipairs(list) do
        if item.name:find("^" .. prefix .. "_") then
          return nil, { string.format("%s:1: %s: the name '%s' begins with the prefix", op.place, op.name, item.name) }
        end
      end
    end
  end
  local function read(name)
    inputs[#inputs + 1] = root .. "/" .. name
    return assert(emit.read(root .. "/" .. name))
  end
  for _, name in ipairs(emit.list_all(root .. "/gen", ".lua")) do inputs[#inputs + 1] = root .. "/gen/" .. name end
  inputs[#inputs + 1] = root .. "/build.lua"

  local files, lists = {}, { core = {}, kernel = {}, cuda = {}, cuda_core = {} }
  local file_of_record, cuda_table, cuda_rows = {}, nil, nil
  if targets.c then file_of_record = c_files(root, plan, options, prefix, read, files, lists, inputs) end
  if options.library then
    cuda_table = { backend = "qn_cuda_driver_backend", functions = {}, rows_of = {} }
    if targets.cuda then fatbin_files(root, plan, read, files, lists) end
  elseif targets.cuda then
    cuda_table, cuda_rows = cuda_files(plan, prefix, read, files, lists)
  end
  core_files(root, plan, options, prefix, read, files, lists, targets.c, cuda_table)
  if not options.library then
    files["CMakeLists.txt"] = tree.cmake_lists(prefix, lists)
    files["NOTICE"] = tree.NOTICE
  end
  if options.single then files = tree.single(prefix, files, lists.core, lists.kernel) end
  if not options.single then files["sources.txt"] = tree.source_list(prefix, lists, fatbin.flags()) end

  local names = order.keys(files)
  names[#names + 1] = "manifest.json"
  names[#names + 1] = prefix .. ".d"
  local levels = not targets.c and {} or options.single and { "generic" } or variants.ISAS
  files["manifest.json"] = tree.manifest(prefix, plan, names, M.VERSION, levels, function(record)
    record = record.code or record
    return options.single and prefix .. ".c" or file_of_record[record.name] or record.file
  end, cuda_rows)
  return { files = files, plan = plan, inputs = inputs }
end

-- The text of one kernel by its name (with or without a level), or nil and the reason.
function M.show(root, name, specs)
  local model, inputs, errors = M.load(root, specs)
  if #errors > 0 then return nil, errors end
  local of_cuda = name:match "^[%w_]-(qc_[%w_]+)$"
  if of_cuda then
    local templates = kernels_cuda.sources(function(file) return assert(emit.read(root .. "/" .. file)) end)
    local known
    for _, kind in ipairs { "lean", "full" } do
      local plan
      plan, errors = M.plan(model, { variants = kind })
      if not plan then return nil, errors end
      local text, names = cuda.show(plan, of_cuda, templates)
      if text then return text end
      known = known or names
    end
    return nil, { string.format("no kernel '%s'%s", source.shown(name), source.suggest(of_cuda, known)) }
  end
  -- from a tree the name has a prefix before it, and when compiled a level behind it
  local bare = name:match "^[%w_]-(qk_[%w_]+)$"
  bare = bare and bare:gsub("_v[234]$", "")
  if not bare then
    -- an op's name: all its kernels
    if not model.op_of_name[name] then
      return nil, { string.format("no op or kernel '%s'%s", source.shown(name), source.suggest(name, model.op_of_name)) }
    end
    local plan
    plan, errors = M.plan(model, { ops = name })
    if not plan then return nil, errors end
    local file = kernel_files(plan, load_templates(root, inputs, TEMPLATES))[1]
    return file.text
  end
  local plan
  plan, errors = M.plan(model, { variants = "lean" })
  if not plan then return nil, errors end
  local templates = load_templates(root, inputs, LIBRARY_TEMPLATES)
  local known = {}
  local function find(records, op)
    for _, record in ipairs(records) do
      known[#known + 1] = record.name
      if record.name == bare then
        local dag = record.dag or (op and plan.dag_for(op, record.K))
        local lines, names = kernels.tables(dag and { dag } or {})
        return (#lines > 0 and table.concat(lines, "\n") .. "\n\n" or "") .. kernels.kernel(model.types, record, dag, templates, names)
      end
    end
  end
  for _, op in ipairs(plan.ops) do
    local text = find(plan.records_of[op.name], op)
    if text then return text end
  end
  local text = find(plan.packs)
  if text then return text end
  local _, files = primitives.of_plan(plan)
  for _, file in ipairs(files) do
    for _, entry in ipairs(file.entries) do
      if entry.record.name == bare then return kernels.kernel(model.types, entry.record, entry.dag, templates, {}) end
    end
  end
  local full = M.plan(model, { variants = "full" })
  plan = full
  for _, op in ipairs(full.ops) do
    text = find(full.records_of[op.name], op)
    if text then return text end
  end
  return nil, { string.format("no kernel '%s'%s", source.shown(name), source.suggest(bare, known)) }
end

-- The examples of the plan's ops, in every type that they compute in.
function M.check_examples(plan)
  local errors, types = {}, plan.model.types
  for _, op in ipairs(plan.ops) do
    for _, K in ipairs(variants.kernel_dtypes(types, op, plan.wanted)) do
      if types.by_name[K].kind ~= "bits" and not op.finds then
        for _, message in ipairs(evaluate.check_examples(types, op, plan.dag_for(op, K), K)) do
          errors[#errors + 1] = string.format("%s:1: %s: %s", op.place, op.name, message)
        end
      end
    end
  end
  return errors
end

-- A spec file's own ops, checked through all stages but writing, and their examples.
function M.check(root, file)
  local model, _, errors = M.load(root, {})
  if #errors > 0 then return nil, errors end
  local before = #model.ops
  local text, why = emit.read(file, sandbox.MAX_BYTES + 1)
  if not text then return nil, { why } end
  errors = spec.load(model, file, text)
  if #errors > 0 then return nil, errors end
  derive.complete(model, before + 1)
  local names = {}
  for k = before + 1, #model.ops do names[#names + 1] = model.ops[k].name end
  if #names == 0 then return {} end
  local plan
  plan, errors = M.plan(model, { ops = table.concat(names, ",") })
  if not plan then return nil, errors end
  errors = M.check_examples(plan)
  if #errors > 0 then return nil, errors end
  local rows = {}
  for _, op in ipairs(plan.ops) do
    local inputs = tables.accepted(model.types, op, plan.wanted)
    rows[#rows + 1] = { op = op, inputs = inputs, kernels = #plan.records_of[op.name], weight = plan.records_of[op.name][1].weight }
  end
  return rows
end

-- How accurate the ops are that M.check has found in a spec, as text given to `write`. Returns whether all declared bounds hold,
-- or nil, errors where that could not be seen.
function M.measure(root, file, checked, write)
  local names, prefix = {}, "measured"
  for k, row in ipairs(checked) do names[k] = row.op.name end
  if #names == 0 then return true end
  local result, errors = M.generate(root, { specs = { file }, ops = table.concat(names, ","), prefix = prefix, single = true,
                                            dtypes = "f16,bf16,f32,f64" })
  if not result then return nil, errors end
  local skipped, n_rows
  result.files["subjects.h"], skipped, n_rows = measure.subjects(result.plan, prefix)
  for _, message in ipairs(skipped) do write(message .. "\n") end
  if n_rows == 0 then return true end
  local folder, why = measure.folder()
  if not folder then return nil, { why } end
  local counts, holds
  counts, why = emit.write(folder, result.files)
  if counts then holds, why = measure.run(root, folder, prefix, write) end
  measure.remove(folder)
  if holds == nil then return nil, { why } end
  return holds
end

-- Every op with the dtypes its inputs may have and its result's.
function M.list(root, specs)
  local model, _, errors = M.load(root, specs)
  if #errors > 0 then return nil, errors end
  local built = {}
  for _, t in ipairs(model.types.list) do built[t.name] = t.built or nil end
  local rows = {}
  for _, op in ipairs(sorted_ops(model, nil, {})) do
    local inputs, outputs = tables.accepted(model.types, op, built)
    rows[#rows + 1] = { op = op, inputs = inputs, outputs = outputs }
  end
  return rows, nil, model
end

-- What the expressions in C sources are built as. Returns kernels or nil, errors.
local function scanned_kernels(model, files, dtypes, digests, inputs)
  local list, errors = {}, {}
  for _, file in ipairs(files) do
    local text, why = emit.read(file)
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

-- A folder of kernels of expressions, built ahead for libquern. options: record (a file) or scan (a list of C files) with
-- dtypes; prefix, specs. Returns { files, inputs, n_kernels } or nil, errors.
function M.freeze(root, options)
  local model, inputs, errors = M.load(root, options.specs)
  if #errors > 0 then return nil, errors end
  local prefix = options.prefix or "frozen"
  local bad_prefix = prefix_trouble(prefix)
  if bad_prefix then return nil, { bad_prefix } end
  local specs = {}
  for k, name in ipairs(options.specs or {}) do
    specs[k] = { text = assert(emit.read(name)), ops = {} }
    for _, op in ipairs(model.ops) do
      if op.file == name then table.insert(specs[k].ops, op.name) end
    end
  end
  local digests = frozen.spec_digests(specs)
  local list, why
  if options.record then
    local text
    text, why = emit.read(options.record)
    if not text then return nil, { why } end
    inputs[#inputs + 1] = options.record
    list, errors = frozen.read_record(options.record, text, digests)
    if #errors == 0 and #list == 0 then errors[1] = options.record .. ": no kernels" end
  else
    local wanted = wanted_dtypes(model, options.dtypes and split(options.dtypes), {}, errors)
    local dtypes = {}
    for _, t in ipairs(model.types.list) do
      if wanted[t.name] and t.kind ~= "bits" then dtypes[#dtypes + 1] = t.name end
    end
    if #errors == 0 then list, errors = scanned_kernels(model, options.scan, options.dtypes and split(options.dtypes) or dtypes, digests, inputs) end
  end
  if errors and #errors > 0 then return nil, errors end
  list, why = frozen.unique(list)
  if not list then return nil, { why } end
  local headers = {}
  for _, name in ipairs(c_headers(root)) do
    headers[name] = assert(emit.read(root .. "/templates/c/" .. name))
    inputs[#inputs + 1] = root .. "/templates/c/" .. name
  end
  local files
  files, why = frozen.files(model, prefix, list, load_templates(root, inputs, TEMPLATES), headers, M.VERSION)
  if not files then return nil, { why } end
  for _, name in ipairs(emit.list_all(root .. "/gen", ".lua")) do inputs[#inputs + 1] = root .. "/gen/" .. name end
  inputs[#inputs + 1] = root .. "/build.lua"
  return { files = files, inputs = inputs, n_kernels = #list }
end

return M
