-- SPDX-License-Identifier: Apache-2.0
--
-- index.lua: the list of tests: what the head of each file says it holds, and its tags. tests/README.md has the list between two
-- marks; t016 compares. `lua5.4 tests/support/index.lua` writes it there.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. package.path
local shell = require "shell"

local M = {}

M.FAMILIES = { -- in the order of the list
  { "gen", "the generator: specs, graphs, tables, text" },
  { "kernels", "kernels: values, bits, layouts, accuracy, vector code" },
  { "core", "the core that calls them: tensors, slices, plans, threads, memory" },
  { "lang", "expressions and specs at run time, interpreted and compiled" },
  { "jit", "compilers, objects, caches, the generator in the library" },
  { "cuda", "CUDA, without a GPU" },
  { "exchange", "managed tensors, DLPack" },
  { "python", "the Python package" },
  { "product", "what a user builds and installs: command line, trees, headers, README, the program" },
}
M.TAGS = {
  { "long", "begins first, so that two jobs end together" },
  { "memory", "runs under AddressSanitizer and UndefinedBehaviorSanitizer, too" },
  { "threads", "runs under ThreadSanitizer, too: it shares state between threads" },
  { "full", "runs by `./bootstrap.sh test full` only" },
  { "threads-full", "has threads, but runs under ThreadSanitizer by `./bootstrap.sh test full` only" },
}
M.BEGIN, M.END = "<!-- tests: begin -->", "<!-- tests: end -->"

local MARK = { c = "^[ /]%*%s?", lua = "^%-%-%s?", sh = "^#%s?", py = "^#%s?" }

-- The comment at a file's head, as lines; a Python file's string.
local function head_of(path, text)
  local kind, lines = path:match "%.(%a+)$", {}
  for line in text:gmatch "([^\n]*)\n" do
    if kind == "py" and line:find '^"""' then
      local string = text:match '"""(.-)"""'
      for part in (string .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = part end
      break
    end
    if not line:find(MARK[kind]) then break end
    if not line:find "^#!" then lines[#lines + 1] = (line:gsub(MARK[kind], ""):gsub("%s*%*/$", "")) end
    if line:find "%*/$" then break end
  end
  return lines
end

-- Every test: { path, family, name, kind, tags = list, holds = a sentence, text }, by path.
function M.tests()
  local list = {}
  local _, names = shell.run("cd '" .. root .. "' && ls tests/*/t[0-9]*.*")
  for path in names:gmatch "[^\n]+" do
    local family, name, kind = path:match "^tests/(%w+)/(t%d%d%d%-[%w%-]+)%.(%a+)$"
    local test = { path = path, family = family, name = name, kind = kind, tags = {}, text = shell.read(root .. "/" .. path) }
    local words = {}
    for _, line in ipairs(head_of(path, test.text)) do
      local tags = line:match "^tags: (.*)$"
      for tag in (tags or ""):gmatch "%S+" do test.tags[#test.tags + 1] = tag end
      if not tags and not line:find "^SPDX" and line:find "%S" then words[#words + 1] = line end
    end
    local said = table.concat(words, " "):gsub("%s+", " "):gsub("^t%d%d%d[%w%-%.]*: ", "")
    local last = 0
    repeat last = said:find("%.%s", last + 1) or #said until last >= 60 or last == #said -- sentences, until they say something
    test.holds = said:sub(1, last):gsub("%.$", ""):gsub("|", "\\|")
    list[#list + 1] = test
  end
  return list
end

-- The list as Markdown, and whether a .c file is built by a script of its name.
function M.markdown(tests)
  local out = {}
  for _, family in ipairs(M.FAMILIES) do
    out[#out + 1] = string.format("\n### %s: %s\n\n| file | holds | tags |\n|---|---|---|", family[1], family[2])
    for _, test in ipairs(tests) do
      if test.family == family[1] then
        out[#out + 1] = string.format("| [%s.%s](%s/%s.%s) | %s | %s |", test.name, test.kind, test.family, test.name, test.kind,
                                      test.holds, table.concat(test.tags, ", "))
      end
    end
  end
  return table.concat(out, "\n") .. "\n\n"
end

-- README.md with another list in it; nil without the marks.
function M.with_list(readme, list)
  local first, last = select(2, readme:find(M.BEGIN, 1, true)), readme:find(M.END, 1, true)
  if first and last then return readme:sub(1, first) .. "\n" .. list .. readme:sub(last) end
end

if arg and arg[0] and arg[0]:find "index%.lua$" then
  local path = root .. "/tests/README.md"
  shell.write(path, assert(M.with_list(shell.read(path), M.markdown(M.tests())), "no marks in " .. path))
end

return M
