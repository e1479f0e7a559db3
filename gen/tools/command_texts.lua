-- SPDX-License-Identifier: Apache-2.0
--
-- Texts made of a table of commands (tools/quern/commands.lua, gen/tools/commands.lua): usage and help, a man page, completions
-- for bash, zsh and fish, the C tables of the program quern. Makes strings, writes nothing.

local M = {}

local WIDTH = 118

-- Words, wrapped behind an indentation; the first line begins with `head`.
local function wrap(text, head, indent)
  local lines, line = {}, head
  for word in text:gmatch "%S+" do
    if #line + 1 + #word > WIDTH and line ~= indent then
      lines[#lines + 1] = line
      line = indent
    end
    line = line .. (line:match "%S" and line:sub(-1) ~= " " and " " or "") .. word
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

local function shown(command)
  local list = {}
  for _, option in ipairs(command.options) do
    if not option.hidden then list[#list + 1] = option end
  end
  return list
end

local function option_text(option) return option[1] .. (option[2] and " " .. option[2] or "") end

-- "quern run EXPRESSION|OP ... [--spec FILE]...", wrapped between its parts.
function M.usage(program, command)
  local lines, line = {}, program .. " " .. command.name
  local parts = command.words ~= "" and { command.words } or {}
  for _, option in ipairs(shown(command)) do parts[#parts + 1] = "[" .. option_text(option) .. "]" .. (option.many and "..." or "") end
  for _, part in ipairs(parts) do
    if #line + 1 + #part > WIDTH then
      lines[#lines + 1] = line
      line = (" "):rep(#program + #command.name + 1)
    end
    line = line .. " " .. part
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n") .. "\n"
end

-- A command's help: usage, text, options.
function M.command_help(program, command)
  local out = { M.usage(program, command), "\n", command.text, "\n" }
  local width = 0
  for _, option in ipairs(shown(command)) do width = math.max(width, #option_text(option)) end
  width = math.min(width, 24)
  if #shown(command) > 0 then out[#out + 1] = "\n" end
  for _, option in ipairs(shown(command)) do
    local head = "  " .. option_text(option)
    head = head .. (" "):rep(width + 2 - #head) .. "  "
    out[#out + 1] = wrap(option[3], head, (" "):rep(width + 4)) .. "\n"
  end
  return table.concat(out)
end

-- The help of all: each command's usage and what it is about, then the notes.
function M.help(program, commands)
  local out = { program, ": ", commands.about, "\n\n" }
  for _, command in ipairs(commands.commands) do
    out[#out + 1] = M.usage(program, command) .. "    " .. command.about .. "\n"
  end
  out[#out + 1] = string.format("\n%s help COMMAND, or %s COMMAND --help, tells more.\n\n", program, program)
  for _, note in ipairs(commands.notes) do out[#out + 1] = wrap(note[2], note[1] .. ": ", "  ") .. "\n" end
  return table.concat(out)
end

---------------------------------------------------------------------------------------------------- the man page

local function roff(text) return (text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("\n%.", "\n\\&."):gsub("\n'", "\n\\&'"):gsub("^([.'])", "\\&%1")) end

-- Paragraphs; lines that are indented stay as they are.
local function roff_text(text)
  local out, is_verbatim = {}, false
  for line in (text .. "\n"):gmatch "(.-)\n" do
    local is_indented = line:match "^    " ~= nil
    if is_indented ~= is_verbatim then out[#out + 1] = is_indented and ".EX" or ".EE" end
    is_verbatim = is_indented
    out[#out + 1] = roff(line)
  end
  if is_verbatim then out[#out + 1] = ".EE" end
  return table.concat(out, "\n")
end

function M.man(commands, version)
  local name = commands.name
  local out = { string.format('.TH %s 1 "" "Quern %s" "Quern"', name:upper(), version), ".SH NAME", roff(name .. " - " .. commands.about),
                ".SH SYNOPSIS" }
  for _, command in ipairs(commands.commands) do
    out[#out + 1] = string.format(".B %s\n%s\n.br", roff(name .. " " .. command.name), roff(command.words .. (#shown(command) > 0 and " [OPTION]..." or "")))
  end
  out[#out + 1] = ".SH COMMANDS"
  for _, command in ipairs(commands.commands) do
    out[#out + 1] = string.format(".SS %s\n%s", roff(name .. " " .. command.name .. " " .. command.words), roff_text(command.text))
    for _, option in ipairs(shown(command)) do
      out[#out + 1] = string.format(".TP\n.B %s\n%s", roff(option_text(option)), roff(option[3]))
    end
  end
  for _, note in ipairs(commands.notes) do out[#out + 1] = string.format(".SH %s\n%s", note[1]:upper(), roff(note[2])) end
  return table.concat(out, "\n") .. "\n"
end

---------------------------------------------------------------------------------------------------- completions

local function names_of(commands)
  local names = {}
  for k, command in ipairs(commands.commands) do names[k] = command.name end
  return names
end

local function option_names(command)
  local names = {}
  for k, option in ipairs(shown(command)) do names[k] = option[1] end
  names[#names + 1] = "--help"
  return names
end

-- What an option's value, or a command's word, is completed by: the words of a shell, or a kind of file or name.
local function kind_of(item) return item.values or item.complete end

local function bash_words(kind, commands)
  if type(kind) == "table" then return 'COMPREPLY=($(compgen -W "' .. table.concat(kind, " ") .. '" -- "$cur"))' end
  if kind == "command" then return 'COMPREPLY=($(compgen -W "' .. table.concat(names_of(commands), " ") .. '" -- "$cur"))' end
  if kind == "op" then return 'COMPREPLY=($(compgen -W "$(quern ops --names 2>/dev/null)" -- "$cur"))' end
  if kind == "run" then
    return '[ "$COMP_CWORD" = 2 ] && COMPREPLY=($(compgen -W "$(quern ops --names 2>/dev/null)" -- "$cur"))\n'
      .. '      [ ${#COMPREPLY[@]} = 0 ] && COMPREPLY=($(compgen -f -- "${cur#*=}"))'
  end
  return 'COMPREPLY=($(compgen -f -- "$cur"))'
end

function M.bash(commands)
  local name = commands.name
  local f = "_" .. name:gsub("%-", "_")
  local out = { "# Completions of " .. name .. " for bash; made of its table of commands.", f .. "() {",
                '  local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}',
                "  COMPREPLY=()",
                '  if [ "$COMP_CWORD" = 1 ]; then',
                '    COMPREPLY=($(compgen -W "' .. table.concat(names_of(commands), " ") .. ' --help --version" -- "$cur"))', "    return", "  fi",
                '  [ "$cur" = "=" ] && cur=', '  case "$command $before" in' }
  for _, command in ipairs(commands.commands) do
    for _, option in ipairs(shown(command)) do
      if option[2] then
        out[#out + 1] = string.format('    "%s %s") %s; return ;;', command.name, option[1],
                                      kind_of(option) and bash_words(kind_of(option), commands) or ":")
      end
    end
  end
  out[#out + 1] = "  esac\n  case \"$command\" in"
  for _, command in ipairs(commands.commands) do
    out[#out + 1] = string.format('    %s)\n      case "$cur" in\n        --*) COMPREPLY=($(compgen -W "%s" -- "$cur")); return ;;\n      esac\n      %s ;;',
                                  command.name, table.concat(option_names(command), " "),
                                  command.complete and bash_words(command.complete, commands) or ":")
  end
  out[#out + 1] = "  esac\n}"
  out[#out + 1] = "complete -o default -o nospace -F " .. f .. " " .. name
  return table.concat(out, "\n") .. "\n"
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function zsh_action(kind, commands)
  if type(kind) == "table" then return "(" .. table.concat(kind, " ") .. ")" end
  if kind == "command" then return "(" .. table.concat(names_of(commands), " ") .. ")" end
  if kind == "op" then return "($(quern ops --names 2>/dev/null))" end
  if kind == "spec" then return "_files -g \"*.lua\"" end
  return kind and "_files" or " "
end

local function zsh_text(text) return (text:gsub("[%[%]:]", "\\%0")) end

function M.zsh(commands)
  local name = commands.name
  local f = "_" .. name:gsub("%-", "_")
  local out = { "#compdef " .. name, "# Completions of " .. name .. " for zsh; made of its table of commands.", f .. "() {", "  local -a commands", "  commands=(" }
  for _, command in ipairs(commands.commands) do out[#out + 1] = "    " .. quoted(command.name .. ":" .. command.about) end
  out[#out + 1] = "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi"
  out[#out + 1] = "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in"
  for _, command in ipairs(commands.commands) do
    local line = { "    " .. command.name .. ") _arguments" }
    for _, option in ipairs(shown(command)) do
      local text = (option.many and "*" or "") .. option[1] .. "[" .. zsh_text(option[3]) .. "]"
      if option[2] then text = text .. ":" .. zsh_text(option[2]) .. ":" .. zsh_action(kind_of(option), commands) end
      line[#line + 1] = quoted(text)
    end
    line[#line + 1] = quoted "--help[tell what the command does]"
    if command.complete == "run" then line[#line + 1] = quoted("1:expression:" .. zsh_action("op", commands)) end
    if command.complete then
      line[#line + 1] = quoted((command.complete == "run" and "*:operand:" or "*: :") .. zsh_action(command.complete, commands))
    end
    out[#out + 1] = table.concat(line, " ") .. " ;;"
  end
  out[#out + 1] = "  esac\n}\n" .. f .. ' "$@"'
  return table.concat(out, "\n") .. "\n"
end

function M.fish(commands)
  local name = commands.name
  local out = { "# Completions of " .. name .. " for fish; made of its table of commands." }
  for _, command in ipairs(commands.commands) do
    out[#out + 1] = string.format("complete -c %s -n __fish_use_subcommand -f -a %s -d %s", name, command.name, quoted(command.about))
    local seen = "-n " .. quoted("__fish_seen_subcommand_from " .. command.name)
    local function words_of(kind)
      if type(kind) == "table" then return " -x -a " .. quoted(table.concat(kind, " ")) end
      if kind == "command" then return " -x -a " .. quoted(table.concat(names_of(commands), " ")) end
      if kind == "op" then return " -x -a '(quern ops --names 2>/dev/null)'" end
      return kind and " -r -F" or " -x"
    end
    for _, option in ipairs(shown(command)) do
      out[#out + 1] = string.format("complete -c %s %s -l %s%s -d %s", name, seen, option[1]:sub(3), option[2] and words_of(kind_of(option)) or "",
                                    quoted(option[3]))
    end
    out[#out + 1] = string.format("complete -c %s %s -l help -d 'tell what the command does'", name, seen)
    local kind = command.complete
    if kind == "run" then
      out[#out + 1] = string.format("complete -c %s %s -a '(quern ops --names 2>/dev/null)'", name, seen)
    elseif kind and kind ~= "file" and kind ~= "spec" then
      out[#out + 1] = string.format("complete -c %s %s%s", name, seen, words_of(kind):gsub("^ %-x", " -f"))
    end
  end
  return table.concat(out, "\n") .. "\n"
end

---------------------------------------------------------------------------------------------------- the program's C

local function c_string(text)
  local lines = {}
  for line in text:gmatch "[^\n]*\n?" do
    if line ~= "" then lines[#lines + 1] = '    "' .. line:gsub("\\", "\\\\"):gsub('"', '\\"'):gsub("\n", "\\n") .. '"' end
  end
  return "\n" .. (#lines > 0 and table.concat(lines, "\n") or '    ""')
end

local function constant(command, option) return (command.name .. "_" .. option[1]:sub(3)):upper():gsub("%-", "_") end

-- The header, and the source that goes with it: options in the order of the table, by names such as RUN_SPEC.
function M.c_tables(commands)
  local header = { "/* Generated by Quern from the table of the program's commands. Do not edit. */", "#ifndef QUERN_PROGRAM_COMMAND_TABLES_H",
                   "#define QUERN_PROGRAM_COMMAND_TABLES_H", "", '#include "command_line.h"', "" }
  local source = { "/* Generated by Quern from the table of the program's commands. Do not edit. */", '#include "command_tables.h"', "" }
  local pages = {}
  for _, command in ipairs(commands.commands) do
    local names, rows = {}, {}
    for k, option in ipairs(command.options) do
      names[k] = constant(command, option)
      rows[k] = string.format('{"%s", %d}', option[1], option[2] and 1 or 0)
    end
    if #names > 0 then header[#header + 1] = "enum { " .. table.concat(names, ", ") .. " };" end
    rows[#rows + 1] = "{0, 0}"
    header[#header + 1] = string.format("extern const command_option %s_options[];\nextern const char %s_usage[];\n", command.name, command.name)
    source[#source + 1] = string.format("const command_option %s_options[] = {%s};", command.name, table.concat(rows, ", "))
    source[#source + 1] = string.format("const char %s_usage[] =%s;", command.name, c_string(M.usage(commands.name, command)))
    source[#source + 1] = string.format("static const char %s_help[] =%s;\n", command.name, c_string(M.command_help(commands.name, command)))
    pages[#pages + 1] = string.format('    {"%s", %s_usage, %s_help},', command.name, command.name, command.name)
  end
  header[#header + 1] = "/* Of the commands, in order, ended by a name of NULL; and of all of them. */\nextern const command_page command_pages[];\n"
    .. "extern const char program_help[];\n\n#endif"
  source[#source + 1] = "const command_page command_pages[] = {\n" .. table.concat(pages, "\n") .. "\n    {0, 0, 0},\n};\n"
  source[#source + 1] = "const char program_help[] =" .. c_string(M.help(commands.name, commands)) .. ";"
  return table.concat(header, "\n") .. "\n", table.concat(source, "\n") .. "\n"
end

return M
