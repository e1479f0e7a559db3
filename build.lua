-- SPDX-License-Identifier: Apache-2.0
--
-- The generator's command line. See `lua5.4 build.lua` for its use; everything it does is in gen/.

local root = arg[0]:match "^(.*)/[^/]*$" or "."
package.path = root .. "/?.lua;" .. package.path

local main = require "gen.main"
local emit = require "gen.base.files"
local objects = require "gen.tools.objects"
local order = require "gen.base.order"
local source = require "gen.base.source"
local table_of_commands = require "gen.tools.commands"
local texts = require "gen.tools.command_texts"
local primitives_page = require "gen.tools.primitives_page"
local python_facts = require "gen.tools.python_facts"
local report = require "gen.tools.report"

local NAME = os.getenv "QUERN_GEN_NAME" or "lua5.4 build.lua"

local command_of, command_names = {}, {}
for k, command in ipairs(table_of_commands.commands) do command_of[command.name], command_names[k] = command, command.name end

-- command: the one that was begun, or nil
local function usage(message, command)
  local text = command and texts.usage(NAME, command) or NAME .. " COMMAND, one of: " .. table.concat(command_names, ", ") .. "\n"
  io.stderr:write(message and "build.lua: " .. message .. "\n" or "", "usage: ", text)
  if not command then io.stderr:write(NAME, " help lists commands and options\n") end
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

-- --name VALUE, --name=VALUE, --name and n_words plain words, by the table of commands.
local function parse(name_of_command, n_words)
  local command, takes, options, words, k = command_of[name_of_command], {}, {}, {}, 2
  for _, option in ipairs(command.options) do takes[option[1]:sub(3)] = option end
  local function misuse(message) usage(name_of_command .. ": " .. message, command) end
  while arg[k] do
    local name = arg[k]:match "^%-%-(.+)$"
    if name then
      local value = name:match "=(.*)$"
      name = name:match "^[^=]+"
      local option = takes[name] or misuse("unknown option --" .. name .. source.suggest(name, takes):gsub("'(.*)'", "--%1"))
      if not option[2] then
        if value then misuse("--" .. name .. " takes no value") end
        options[name] = true
      else
        if not value then
          k = k + 1
          value = arg[k] or misuse("--" .. name .. " wants a value")
        end
        if option.many then
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
  if #words ~= n_words then misuse(n_words == 0 and "unexpected '" .. words[1] .. "'" or "one name is wanted") end
  return options, words[1], misuse
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
  local options, _, misuse = parse("freeze", 0)
  if not options.out or not options.record then misuse "--record FILE and --out DIR are wanted" end
  freeze(options)
end

-- The options of `generate --scan`.
local WITH_SCAN = { out = true, scan = true, spec = true, dtypes = true, prefix = true }

function commands.generate()
  local options, _, misuse = parse("generate", 0)
  if not options.out then misuse "--out DIR is wanted" end
  local targets = table.concat(main.TARGETS, ",")
  for word in (options.target or ""):gmatch "[^,]+" do
    if not ("," .. targets .. ","):find("," .. word .. ",", 1, true) then misuse("--target: '" .. word .. "', expected some of " .. targets) end
  end
  if options.scan then
    for _, name in ipairs(order.keys(options)) do
      if not WITH_SCAN[name] then misuse("--" .. name .. " does not go with --scan") end
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
  local options, file, misuse = parse("check", 1)
  if options.progress and not (" auto always never "):find(" " .. options.progress .. " ", 1, true) then
    misuse("--progress: '" .. options.progress .. "', expected auto, always or never")
  end
  local rows, errors = main.check(root, file)
  if not rows then fail(errors) end
  io.write(report.checked(file, rows))
  if options.measure then
    local holds
    io.stdout:setvbuf "line" -- lines of progress come between lines
    holds, errors = main.measure(root, file, rows, io.write, options.progress or "auto")
    if holds == nil then fail(errors) end
    if not holds then os.exit(1) end
  end
end

function commands.list()
  local options, _, misuse = parse("list", 0)
  if options.primitives then
    if next(options, next(options)) then misuse "--primitives goes with no other option" end
    io.write(primitives_page.text())
    return
  end
  local forms = (options.json and 1 or 0) + (options.markdown and 1 or 0) + (options.python and 1 or 0)
  if forms > 1 then misuse "--json, --markdown and --python do not go together" end
  local rows, errors, model = main.list(root, options.spec)
  if not rows then fail(errors) end
  local write_rows = options.json and report.list_json or options.markdown and report.list_markdown
    or options.python and python_facts.text or report.list
  io.write(write_rows(rows, model.types))
end

function commands.show()
  local options, name = parse("show", 1)
  local text, errors = main.show(root, name, options.spec)
  if not text then fail(errors) end
  io.write(text)
end

function commands.new()
  local _, name = parse("new", 1)
  local rows, errors, model = main.list(root)
  if not rows then fail(errors) end
  local text, why = report.scaffold(name, model, NAME)
  if not text then fail { why } end
  local file = name:gsub("%.", "_") .. ".lua"
  local created, failure = emit.create(file, text)
  if not created then fail { failure } end
  io.write(string.format("wrote %s: edit it, then: %s check %s\n", file, NAME, file))
end

local function find(name)
  return command_of[name] or usage("unknown command '" .. source.shown(name) .. "'" .. source.suggest(name, command_names))
end

local function help(name)
  io.write(name and texts.command_help(NAME, find(name)) or texts.help(NAME, table_of_commands))
  os.exit(0)
end

function commands.help()
  if #arg > 2 then usage("help: one command at most", command_of.help) end
  help(arg[2])
end

if not arg[1] then usage() end
if arg[1] == "--help" or arg[1] == "-h" then help() end
find(arg[1])
for _, word in ipairs(arg) do
  if word == "--help" or word == "-h" then help(arg[1]) end
end
commands[arg[1]]()
