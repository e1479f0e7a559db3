-- SPDX-License-Identifier: Apache-2.0
--
-- Seconds of compilation and bytes of machine code of a tree's kernels, file by file. Runs the compiler that CC names, else cc,
-- one file after another, at every level, with the flags of the tree's CMakeLists.txt; keeps no objects.

local build = require "gen.targets.c.build"
local order = require "gen.base.order"

local M = {}

-- Times are the shell's: Lua's clock does not run while others do.
local SCRIPT = [[
cd -- %s/kernels && object=$(mktemp) && trap 'rm -f "$object"' EXIT || exit 1
cc=${CC:-cc}
case $($cc --version 2>/dev/null) in *"Free Software Foundation"*) gnu='%s' ;; *) gnu= ;; esac
echo "$cc"
compile() {
  from=$(date +%%s%%N)
  $cc %s $gnu -DQN_ISA=$1 $3 -c -o "$object" "$2" 2>/dev/null || return
  ns=$(($(date +%%s%%N) - from))
  echo "$2 $ns $(size -A "$object" | awk '$1 ~ /^[.](text|rodata)/ { bytes += $2 } END { print bytes + 0 }')"
}
]]

-- files: name -> text, of the tree. Returns { compiler, rows = file's name -> { seconds, bytes } }, of all levels together; nil:
-- nothing could be compiled.
function M.measure(folder, files)
  local script = { string.format(SCRIPT, "'" .. folder:gsub("'", "'\\''") .. "'", build.GCC_FLAGS, build.COMMON_FLAGS) }
  for _, name in ipairs(order.keys(files)) do
    local short = name:match "^kernels/(.*%.c)$"
    for _, row in ipairs(short and build.LEVEL_FLAGS or {}) do
      script[#script + 1] = string.format("compile %s %s '%s'\n", row.level, short, row.flags)
    end
  end
  local pipe = assert(io.popen(table.concat(script)))
  local compiler, rows = pipe:read "l", {}
  for line in pipe:lines() do
    local name, ns, bytes = line:match "^(%S+) (%d+) (%d+)$"
    local row = rows["kernels/" .. name] or { seconds = 0, bytes = 0 }
    row.seconds, row.bytes = row.seconds + ns / 1e9, row.bytes + math.tointeger(bytes)
    rows["kernels/" .. name] = row
  end
  pipe:close()
  return next(rows) and { compiler = compiler, rows = rows } or nil
end

return M
