-- SPDX-License-Identifier: Apache-2.0
--
-- The generator's command line. See `lua5.4 build.lua` for its use; everything it does is in gen/.

local root = arg[0]:match "^(.*)/[^/]*$" or "."
package.path = root .. "/?.lua;" .. package.path

local main = require "gen.main"
local emit = require "gen.base.files"
local objects = require "gen.tools.objects"
local order = require "gen.base.order"
local primitives_page = require "gen.tools.primitives_page"
local python_facts = require "gen.tools.python_facts"
local report = require "gen.tools.report"

local USAGE = [[
usage: lua5.4 build.lua COMMAND
  generate --out DIR [OPTION]...
                     write kernels, their runtime and a header into DIR
  generate --kernels-only --out DIR [OPTION]...
                     write the kernels, a header that declares them and a table of them; no runtime
  generate --scan FILE.c... --out DIR [--dtypes LIST] [--spec FILE]... [--prefix NAME]
                     the kernels of the expressions that C sources name by QUERN_KERNEL, built ahead for libquern;
                     of conditions only #if 0 leaves any out
  freeze --record FILE --out DIR [--spec FILE]... [--prefix NAME]
                     the same for what an application was seen to compile (QUERN_RECORD)
  check [--measure] FILE
                     read a spec and say what is wrong with it; --measure: build its ops, by $CC or cc, and hold them to
                     their ULP bounds, against their bodies in 113 bits, and derivatives to differences of these
  list [--json|--markdown|--python] [--spec FILE]...
                     the ops and the dtypes they take; OPS.md is what --markdown prints, python/quern/_facts.py what
                     --python does
  list --primitives  the operations that bodies are made of; docs/primitives.md is what it prints
  show KERNEL [--spec FILE]...
                     the text of one kernel, or of all kernels of an op
  new NAME           write NAME.lua, a spec to start from
options of generate; a LIST is separated by commas:
  --spec FILE        ops of one's own, generated in any case
  --ops LIST         of the library's ops only these; default: all
  --dtypes LIST      only what is needed for these; default: all
  --prefix NAME      what all names begin with; default: kernels
  --target LIST      c, cuda or both; default: c
  --variants lean|full
                     full: a kernel for every layout, of rank 1, 2, 3 and n. The runtime uses those of rank 1 and 2
  --rank LIST        only kernels of rank 1, 2, 3 or n
  --class LIST       only kernels of operands that are contiguous, broadcast, strided or transposed; of each op and dtype
                     there is a contiguous one in any case
  --single           one source and one header
  --no-threads       the runtime makes no threads
  --no-environment   the runtime reads no environment variables
  --preview          with dtypes that are not finished: they are stored and cast, nothing is promised of their math
  --report           per op how many kernels, bytes of source and of machine code, and seconds of compiling them, by $CC or cc
]]

local function usage(message)
  io.stderr:write(message and "build.lua: " .. message .. "\nlua5.4 build.lua --help lists commands and options\n" or USAGE)
  os.exit(2)
end

local function fail(errors)
  for k, message in ipairs(errors) do
    if k > 20 then
      io.stderr:write(string.format("and %d more\n", #errors - 20))
      break
    end
    io.stderr:write(message, "\n")
  end
  os.exit(1)
end

-- --name VALUE, --name and plain words. takes: option -> "value" | "flag" | "list"
local function parse(takes, n_words)
  local options, words, k = {}, {}, 2
  while arg[k] do
    local name = arg[k]:match "^%-%-(.+)$"
    if name then
      local value = name:match "=(.*)$"
      name = name:match "^[^=]+"
      local kind = takes[name] or usage("unknown option --" .. name)
      if kind == "flag" then
        if value then usage("--" .. name .. " takes no value") end
        options[name] = true
      else
        if not value then
          k = k + 1
          value = arg[k] or usage("--" .. name .. " wants a value")
        end
        if kind == "list" then
          options[name] = options[name] or {}
          table.insert(options[name], value)
        else
          options[name] = value
        end
      end
    else
      words[#words + 1] = arg[k]
    end
    k = k + 1
  end
  if #words ~= n_words then usage(n_words == 0 and "unexpected '" .. words[1] .. "'" or "one name is wanted") end
  return options, words[1]
end

-- Writes a result's files and its depfile.
local function write(out, prefix, result)
  result.files[prefix .. ".d"] = emit.depfile(out .. "/manifest.json", result.inputs)
  local counts, why = emit.write(out, result.files)
  if not counts then fail { why } end
  return counts
end

local commands = {}

-- The folder of kernels of expressions, recorded or scanned.
local function freeze(options)
  options.specs = options.spec
  local result, errors = main.freeze(root, options)
  if not result then fail(errors) end
  write(options.out, options.prefix or "frozen", result)
end

function commands.freeze()
  local options = parse({ out = "value", record = "value", spec = "list", prefix = "value" }, 0)
  if not options.out or not options.record then usage "freeze wants --record FILE and --out DIR" end
  freeze(options)
end

-- The options of `generate --scan`.
local WITH_SCAN = { out = true, scan = true, spec = true, dtypes = true, prefix = true }

function commands.generate()
  local options = parse({ out = "value", scan = "list", spec = "list", ops = "value", dtypes = "value", rank = "value", class = "value",
                          variants = "value", prefix = "value", single = "flag", target = "value", report = "flag",
                          library = "flag", preview = "flag", ["kernels-only"] = "flag", ["no-threads"] = "flag",
                          ["no-environment"] = "flag" }, 0)
  if not options.out then usage "generate wants --out DIR" end
  local targets = table.concat(main.TARGETS, ",")
  for word in (options.target or ""):gmatch "[^,]+" do
    if not ("," .. targets .. ","):find("," .. word .. ",", 1, true) then usage("--target: '" .. word .. "', expected some of " .. targets) end
  end
  if options.scan then
    for _, name in ipairs(order.keys(options)) do
      if not WITH_SCAN[name] then usage("--" .. name .. " does not go with --scan") end
    end
    return freeze(options)
  end
  options.specs = options.spec
  if not options.prefix and not options.library then options.prefix = "kernels" end
  local start = os.clock()
  local generate = options["kernels-only"] and main.generate_kernels_only or main.generate
  local result, errors = generate(root, options)
  if not result then fail(errors) end
  local prefix = options.prefix or "quern"
  local counts = write(options.out, prefix, result)
  if options.report then
    local seconds, has_kernels = os.clock() - start, result.files["kernels/kernel.h"] ~= nil
    local compiled = has_kernels and objects.measure(options.out, result.files) or nil
    io.write(report.generated(result, counts, seconds, compiled))
    if has_kernels and not compiled then io.stderr:write "build.lua: --report: the kernels could not be compiled by $CC or cc\n" end
  end
end

function commands.check()
  local options, file = parse({ measure = "flag" }, 1)
  local rows, errors = main.check(root, file)
  if not rows then fail(errors) end
  io.write(report.checked(file, rows))
  if options.measure then
    local holds
    holds, errors = main.measure(root, file, rows, io.write)
    if holds == nil then fail(errors) end
    if not holds then os.exit(1) end
  end
end

function commands.list()
  local options = parse({ json = "flag", markdown = "flag", primitives = "flag", python = "flag", spec = "list" }, 0)
  if options.primitives then
    if next(options, next(options)) then usage "--primitives goes with no other option" end
    io.write(primitives_page.text())
    return
  end
  local forms = (options.json and 1 or 0) + (options.markdown and 1 or 0) + (options.python and 1 or 0)
  if forms > 1 then usage "--json, --markdown and --python do not go together" end
  local rows, errors, model = main.list(root, options.spec)
  if not rows then fail(errors) end
  local write_rows = options.json and report.list_json or options.markdown and report.list_markdown
    or options.python and python_facts.text or report.list
  io.write(write_rows(rows, model.types))
end

function commands.show()
  local options, name = parse({ spec = "list" }, 1)
  local text, errors = main.show(root, name, options.spec)
  if not text then fail(errors) end
  io.write(text)
end

function commands.new()
  local _, name = parse({}, 1)
  local rows, errors, model = main.list(root)
  if not rows then fail(errors) end
  local text, why = report.scaffold(name, model)
  if not text then fail { why } end
  local file = name:gsub("%.", "_") .. ".lua"
  local created, failure = emit.create(file, text)
  if not created then fail { failure } end
  io.write(string.format("wrote %s: edit it, then: lua5.4 build.lua check %s\n", file, file))
end

local wants_help = arg[1] == "help"
for _, word in ipairs(arg) do wants_help = wants_help or word == "--help" or word == "-h" end
if wants_help then
  io.write(USAGE)
  os.exit(0)
end
local command = commands[arg[1] or ""]
if not command then usage(arg[1] and "unknown command '" .. arg[1] .. "'" or nil) end
command()
