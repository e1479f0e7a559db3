-- SPDX-License-Identifier: Apache-2.0
--
-- Writes what is made of the tables of commands of quern and quern-gen: the program's C tables, completions, man pages.
--   lua5.4 tools/commands.lua OUT_DIR VERSION

local root = arg[0]:match "^(.*)/[^/]*$" or "."
root = root .. "/.."
package.path = root .. "/?.lua;" .. package.path

local emit = require "gen.base.files"
local texts = require "gen.tools.command_texts"

local out, version = arg[1], arg[2]
local quern, generator = require "tools.quern.commands", require "gen.tools.commands"
local files = {}
files["command_tables.h"], files["command_tables.c"] = texts.c_tables(quern)
for _, commands in ipairs { quern, generator } do
  files[commands.name .. ".1"] = texts.man(commands, version)
  files[commands.name .. ".bash"] = texts.bash(commands)
  files["_" .. commands.name] = texts.zsh(commands)
  files[commands.name .. ".fish"] = texts.fish(commands)
end
for name, text in pairs(files) do
  local written, why = emit.write_if_changed(out .. "/" .. name, text)
  if written == nil then
    io.stderr:write(why, "\n")
    os.exit(1)
  end
end
