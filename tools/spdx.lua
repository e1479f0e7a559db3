-- SPDX-License-Identifier: Apache-2.0
--
-- spdx.lua: the licence line of every source file that git knows. Run in the root of the repository:
--   lua5.4 tools/spdx.lua check          names the files that have none, and fails if there are any
--   lua5.4 tools/spdx.lua add [PATH]...  puts one at their heads; PATH: only below these
-- Files that a generator's output is compared with, corpora and data have none.

local LINE = "SPDX-License-Identifier: Apache-2.0"

local EXCLUDED = { "^tests/golden/", "^tests/fuzz/corpus/", "^examples/data/", "^bench/results/" }

-- How a comment looks, by how the name ends. head: the form of a comment at a file's head, which then gets
-- the licence as its first line.
local C = { open = "/* ", close = " */", head = "^/%* ", continue = " * " }
local LUA, HASH, SLASHES = { open = "-- ", join = "--" }, { open = "# ", join = "#" }, { open = "// ", join = "//" }
local FORMS = {
  { "%.[ch]$", C }, { "%.cc$", C }, { "%.cu$", C }, { "%.def$", C }, { "%.c%.in$", C }, { "%.cu%.in$", C },
  { "%.lua$", LUA }, { "%.luacheckrc$", LUA },
  { "%.py$", HASH }, { "%.pyi$", HASH }, { "%.sh$", HASH }, { "%.cmake$", HASH }, { "%.cmake%.in$", HASH }, { "%.pc%.in$", HASH },
  { "CMakeLists%.txt$", HASH }, { "special_cases%.txt$", HASH }, { "%.supp$", HASH }, { "%.toml$", HASH }, { "^%.ci/", HASH },
  { "%.ini$", HASH }, { "%.sollya$", SLASHES },
}

local function form_of(path)
  for _, pattern in ipairs(EXCLUDED) do
    if path:find(pattern) then return nil end
  end
  for _, row in ipairs(FORMS) do
    if path:find(row[1]) then return row[2] end
  end
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function has_line(text)
  local n = 0
  for line in text:gmatch "[^\n]*" do
    if line:find("SPDX-License-Identifier:", 1, true) then return true end
    n = n + 1
    if n == 5 then return false end
  end
end

-- A template's lines are text of what is made of it, and those of its headers are copied: there the licence is a line of its
-- own, which is cut off when they are read.
local function is_template(path) return path:find "^templates/" end

local function with_line(path, text, form)
  local first = text:match "^#![^\n]*\n" or ""
  local rest = text:sub(#first + 1)
  if form == C then
    local head = not is_template(path) and rest:match "^/%*.-%*/"
    if head and rest:find(C.head) and not head:find "\n[^ ]" and not head:find "\n [^*]" then
      return first .. C.open .. LINE .. "\n *\n" .. C.continue .. rest:sub(#"/* " + 1)
    end
    return first .. C.open .. LINE .. C.close .. "\n" .. rest
  end
  local is_comment = rest:sub(1, #form.join) == form.join
  return first .. form.open .. LINE .. "\n" .. (is_comment and form.join .. "\n" or "") .. rest
end

local command = arg[1]
if command ~= "check" and command ~= "add" then
  io.stderr:write "usage: lua5.4 tools/spdx.lua check | add [PATH]...\n"
  os.exit(2)
end

local function is_wanted(path)
  if #arg < 2 then return true end
  for k = 2, #arg do
    if path:sub(1, #arg[k]) == arg[k] then return true end
  end
end

local n_missing, pipe = 0, assert(io.popen "git ls-files")
for path in pipe:lines() do
  local form = is_wanted(path) and form_of(path)
  local text = form and read(path)
  if text and text ~= "" and not has_line(text) then
    n_missing = n_missing + 1
    if command == "check" then
      print(path .. ": no " .. LINE:match "^[^:]+")
    else
      local file = assert(io.open(path, "wb"))
      file:write(with_line(path, text, form))
      file:close()
    end
  end
end
pipe:close()
if command == "add" then print(n_missing .. " files") end
os.exit(command == "add" or n_missing == 0)
