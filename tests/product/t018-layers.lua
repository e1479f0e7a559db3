-- SPDX-License-Identifier: Apache-2.0
--
-- t018-layers: data flows one way. The graphs of includes (C), requires (Lua) and imports (Python) are read from the files themselves. In none of
-- them is there a circle of modules (a module: the .c and .h of one name, or a Lua file), and every arrow between folders goes
-- down in the order of the folders below; the same of the symbols that the objects of the library and of the Python module need of
-- each other. Then the rules that a search can see: the environment is read in one file, nothing in runtime/ prints or exits, kernel
-- headers include each other only, one file of the generator writes files, no list of ops outside dsl/, C file names are unique.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. package.path
local tap = require "tap"

-- Folders, lowest first: a file may name files of its own folder and of those above it in the list. Files that lie in no listed
-- folder are of the longest listed path that they begin with; FOLDER/* is the folders in it that are not listed, a target's each.
local ORDERS = {
  { name = "runtime", find = "find runtime -name '*.[ch]' -o -name '*.cc'", language = "c",
    folders = { "runtime/core/base", "runtime/core/tensor", "runtime/core/op", "runtime/core/cpu", "runtime/core/*",
                "runtime/core/row/engine", "runtime/core/kinds", "runtime/core/call", "runtime/tree", "runtime/base", "runtime/lang",
                "runtime/lang/parse", "runtime/lang/typing", "runtime/toolchain/spec", "runtime/toolchain",
                "runtime/jit", "runtime/run/interpret", "runtime/run/stage", "runtime/run/fused", "runtime/run", "runtime/*", "runtime/exchange",
                "runtime/targets.c" } },
  { name = "gen", find = "find gen build.lua tools/embed.lua -name '*.lua'", language = "lua",
    folders = { "gen/base", "gen/kinds", "gen/front", "gen/graph/dag", "gen/graph/body", "gen/graph", "gen/targets", "gen/targets/c",
                "gen/targets/*", "gen/targets/all.lua", "gen/products", "gen/products/library", "gen/products/tree", "gen/tools", "gen", "tools", "build.lua" } },
  { name = "python", find = "find python/src -name '*.[ch]'", language = "c",
    folders = { "python/src/base", "python/src/types", "python/src/exchange", "python/src/array", "python/src/operand",
                "python/src/call", "python/src/op", "python/src/xla", "python/src/quern_module.c" } },
  { name = "the Python package", find = "find python/quern -name '*.py'", language = "python",
    folders = { "python/quern/_arrays", "python/quern", "python/quern/_torch", "python/quern/torch.py", "python/quern/__init__.py" } },
  { name = "the program quern", find = "find tools/quern -name '*.[ch]'", language = "c",
    folders = { "tools/quern/files", "tools/quern/say.h", "tools/quern/operands", "tools/quern" } },
  { name = "the measuring programs", find = "find tools/measure -name '*.[ch]'", language = "c", folders = { "tools/measure", "tools/measure/accuracy" } },
}

local function lines_of(command)
  local list, pipe = {}, assert(io.popen("cd '" .. root .. "' && " .. command))
  for line in pipe:lines() do list[#list + 1] = line end
  pipe:close()
  return list
end

local function read(name)
  local file = assert(io.open(root .. "/" .. name))
  local text = file:read "a"
  file:close()
  return text
end

-- The file that an include or require names, or nil for what is not of these files: generated headers, systems'.
local function file_named(order, name)
  if order.language == "lua" then return order.is_file[name:gsub("%.", "/") .. ".lua"] and name:gsub("%.", "/") .. ".lua" end
  if order.language == "python" then return order.by_base[name .. ".py"] end
  local base = name:match "[^/]+$"
  return order.by_base[base]
end

-- The names in the includes, requires or imports of a text, those within functions among them.
local NAMES = {
  c = function(text) return text:gmatch '\n%s*#%s*include%s*"([^"]+)"' end,
  lua = function(text) return text:gmatch 'require%s*%(?%s*"([%w_.]+)"' end,
  python = function(text) -- from .FOLDER.NAME import ...; from . import NAME, NAME
    local names = {}
    for module, list in text:gmatch "\n%s*from %.+([%w_.]*) import ([^\n]+)" do
      names[#names + 1] = module:match "[%w_]+$" or list:gsub(",", " ")
    end
    return table.concat(names, " "):gmatch "[%w_]+"
  end,
}

-- What a file names, as files.
local function named_by(order, path)
  local list, text = {}, "\n" .. read(path)
  for name in NAMES[order.language](text) do
    local other = file_named(order, name)
    if other then list[#list + 1] = other end
  end
  return list
end

local function module_of(path) return (path:gsub("%.%w+$", "")) end

local function level_of(order, path)
  local best, level = -1, nil
  for k, folder in ipairs(order.folders) do
    local is_in, length = path == folder or path:sub(1, #folder + 1) == folder .. "/", #folder
    if folder:find "/%*$" then -- less than a folder of any name
      is_in, length = path:sub(1, #folder - 1) == folder:sub(1, -2) and path:find("/", #folder, true), #folder - 0.5
    end
    if is_in and length > best then best, level = length, k end
  end
  return level
end

-- A circle of the graph as a text, or nil. Depth first: a module that is met again on the way is one.
local function circle_in(graph, modules)
  local state, way = {}, {}
  local function visit(module)
    if state[module] == "done" then return nil end
    way[#way + 1] = module
    if state[module] == "on the way" then
      local first = 1
      while way[first] ~= module do first = first + 1 end
      return table.concat(way, " -> ", first)
    end
    state[module] = "on the way"
    for _, other in ipairs(graph[module] or {}) do
      local found = visit(other)
      if found then return found end
    end
    state[module] = "done"
    way[#way] = nil
  end
  for _, module in ipairs(modules) do
    local found = visit(module)
    if found then return found end
  end
end

for _, order in ipairs(ORDERS) do
  local files = lines_of(order.find .. " | LC_ALL=C sort")
  local graph, modules, wrong, n = {}, {}, {}, 0
  order.is_file, order.by_base = {}, {}
  for _, path in ipairs(files) do order.is_file[path], order.by_base[path:match "[^/]+$"] = true, path end
  for _, path in ipairs(files) do
    local module, level = module_of(path), level_of(order, path)
    if not level then wrong[#wrong + 1] = path .. " is in no folder of the order" end
    if not graph[module] then graph[module], modules[#modules + 1] = {}, module end
    for _, other in ipairs(named_by(order, path)) do
      n = n + 1
      if module_of(other) ~= module then table.insert(graph[module], module_of(other)) end
      if level and level_of(order, other) > level then wrong[#wrong + 1] = path .. " names " .. other .. " of a higher folder" end
    end
  end
  tap.ok(#wrong == 0 and n >= #files // 2, "%s: %d arrows between %d files go down", order.name, n, #files)
  for _, line in ipairs(wrong) do tap.diag("%s", line) end
  local circle = circle_in(graph, modules)
  tap.ok(not circle, "%s: no circle of modules", order.name)
  if circle then tap.diag("%s", circle) end
end

-- What the linker sees: which object of a library needs a symbol of which other. Headers that several files share hide such arrows. The
-- library's generated tables, which name what each kind and target has, are not among them.
local UP = { -- the arrows to a higher folder, each with its reason
  ["runtime/core/op/registry.c runtime/core/kinds/kind_elementwise.c"] = "an op that a host registers is of that kind",
  ["runtime/run/describe.c runtime/targets.c"] = "the list of targets, of which a tree has none",
}

-- The folder of a build with the objects of a library, the folder of their sources, and the order of those.
local LIBRARIES = {
  { name = "the library's objects", build = "CMakeFiles/quern-core.dir/runtime", source = "runtime", order = ORDERS[1] },
  { name = "the Python module's objects", build = "python/CMakeFiles/quern-python-module.dir/src", source = "python/src", order = ORDERS[3] },
}

-- symbol -> the source that defines it; source -> the symbols that it needs; the sources
local function symbols_of(folder, library)
  local defined, needed, sources = {}, {}, {}
  for _, object in ipairs(lines_of("find '" .. folder .. "' -name '*.o' 2>/dev/null")) do
    local source = library.source .. object:sub(#folder + 1):gsub("%.o$", "")
    local file = io.open(root .. "/" .. source) -- else an object that an earlier build left
    if file then
      file:close()
      local pipe = assert(io.popen("nm -P '" .. object .. "' 2>/dev/null"))
      needed[source] = {}
      for line in pipe:lines() do
        local symbol, type = line:match "^(%S+) (%a)"
        if type == "U" then table.insert(needed[source], symbol) elseif type and type:find "[A-TV-Z]" then defined[symbol] = source end
      end
      pipe:close()
      sources[#sources + 1] = source
    end
  end
  table.sort(sources)
  return defined, needed, sources
end

for _, library in ipairs(LIBRARIES) do
  local build = os.getenv "QUERN_BUILD_DIR" or root .. "/build"
  local defined, needed, sources = symbols_of(build .. "/" .. library.build, library)
  local graph, up, n, is_listed = {}, {}, 0, {}
  for _, source in ipairs(sources) do
    graph[source] = {}
    for _, symbol in ipairs(needed[source]) do
      local other = defined[symbol]
      if other and other ~= source and not is_listed[source .. " " .. other] then
        is_listed[source .. " " .. other], n = true, n + 1
        table.insert(graph[source], other)
        local level, others = level_of(library.order, source), level_of(library.order, other)
        local reason = UP[source .. " " .. other]
        if others and level and others > level and not reason then up[#up + 1] = source .. " needs " .. symbol .. " of " .. other end
        if reason then tap.diag("%s needs %s of %s: %s", source, symbol, other, reason) end
      end
    end
  end
  if n == 0 then
    tap.skip(2, library.name .. ": none with symbols in this build")
  else
    local circle = circle_in(graph, sources)
    tap.ok(not circle, "%s: %d arrows between %d, no circle of files", library.name, n, #sources)
    if circle then tap.diag("%s", circle) end
    tap.ok(#up == 0, "%s: no other arrow goes up", library.name)
    for _, line in ipairs(up) do tap.diag("%s", line) end
  end
end

-- The test itself sees a circle and an arrow that goes up.
tap.ok(circle_in({ a = { "b" }, b = { "c" }, c = { "b" } }, { "a", "b", "c" }) == "b -> c -> b", "a circle is seen")
tap.ok(not circle_in({ a = { "b", "c" }, b = { "c" }, c = {} }, { "a", "b", "c" }), "two ways to one module are none")
do
  local order = ORDERS[1]
  tap.ok(level_of(order, "runtime/core/base/status.c") < level_of(order, "runtime/core/call/api.c")
         and level_of(ORDERS[2], "gen/targets/c/emit.lua") > level_of(ORDERS[2], "gen/targets/variants.lua"), "folders are ordered")
  tap.ok(not level_of(ORDERS[3], "python/src/new/x.c"), "a folder that is in no order is seen")
end

-- allowed: a pattern of lines that may be there, or a function that says whether one may
local function none(what, command, allowed)
  local bad = {}
  for _, line in ipairs(lines_of(command .. " || true")) do
    local is_allowed = type(allowed) == "function" and allowed(line) or type(allowed) == "string" and line:find(allowed)
    if not is_allowed then bad[#bad + 1] = line end
  end
  tap.ok(#bad == 0, "%s", what)
  for _, line in ipairs(bad) do tap.diag("%s", line) end
end
none("the environment is read in one file", "grep -nE '\\b(secure_)?getenv *\\(' -r runtime", "^runtime/core/base/environment%.c:")
none("nothing in runtime/ exits or prints", "grep -nE '\\b(exit|_exit|printf|puts|putchar|perror|fprintf) *\\(' -r runtime --include=*.c",
     "^runtime/core/base/status%.c:") -- and only where QUERN_LOG is set
none("kernel headers include nothing but each other", -- and, on a CPU, what replaces CUDA
     "grep -nE '# *include' -r templates --exclude-dir=products | grep -v '^templates/cuda/kernel_cuda.h:.*\"cuda_host.h\"'", '#include "kernel_%a+%.h"')
none("PTX is in kernel_cuda.h", "grep -nE '\\basm( volatile)?\\(' -r templates", "^templates/cuda/kernel_cuda%.h:")
none("only files.lua opens files for writing", "grep -nE 'io\\.open\\(.*\"w|os\\.remove|os\\.rename' -r gen build.lua", "^gen/base/files%.lua:")

-- Lines of these folders and files alone. rooms: list of { how paths begin, why they may }
local function in_rooms(rooms)
  return function(line)
    for _, room in ipairs(rooms) do
      if line:sub(1, #room[1]) == room[1] then return true end
    end
    return false
  end
end
none("what a device of CUDA is, is asked in its rooms", "grep -rnE 'kDL(CUDA|ROCM)|\\bqn_cuda\\b' runtime gen", in_rooms {
  { "runtime/cuda/", "the target's" }, { "runtime/core/simt/", "the target's" }, { "runtime/tree/cuda_", "the target's" },
  { "runtime/core/tensor/device.", "DLPack's table of device types: what the public ABI says of each" } })
none("what is special about CUDA, the device's numbers aside, lies in its rooms", -- numbers: target.h's, as keys of kernels
     "grep -rnE 'qn_(cuda|launch)_|core/simt/|\"cuda/' runtime gen tools/embed.lua", in_rooms {
  { "runtime/cuda/", "the target's" }, { "runtime/core/simt/", "the target's" }, { "runtime/tree/cuda_", "the target's" },
  { "gen/targets/cuda/", "the target's" }, { "runtime/targets.c:", "the list of targets" } })
none("no target is asked for by its name",
     [[grep -rnE '"cuda"|[.]name *[~=]= *"c"|[.]cuda\b|by_name[.](c|cuda)\b' gen build.lua tools/embed.lua]], in_rooms {
  { "gen/targets/c/", "the target's" }, { "gen/targets/cuda/", "the target's" }, { "gen/targets/all.lua:", "the list of targets" } })
none("a kind of op is asked what is special about it", [[grep -rnE '\bop[.](finds|moves|casts|index|kind)\b|is_(dynamic|index)\b|is_(scan|adjoint|reduction)s?\b]]
     .. [[|launches_scans|kind(s[.]of\([^)]*\))?(->|[.])(is|has|may)_(scan|adjoint|reduc|pick)|registry_is_index|QN_RULE_' runtime gen tools/embed.lua]], in_rooms {
  { "gen/kinds/", "the kinds'" }, { "gen/targets/cuda/kernels.lua:", "an operand's property, of its kind's has_indices" } })
none("no kind of op is asked for by its name", [[grep -rnE 'qn_kind_(copy|cast|index|compact|row|scan|adjoint)\b|kind->name *[!=]=|kind(_of\([^)]*\))?->name, "]]
     .. [[|kind(s[.]of\([^)]*\))?[.]name *[~=]=|kinds[.](copy|cast|index|compact|row|reduction|scan|adjoint)\b|kinds[.]list\[]]
     .. [[|\bkind *[~=]?= *"(elementwise|copy|index|compact|row|reduction|scan|adjoint)"' runtime gen tools/embed.lua]], in_rooms {
  { "runtime/core/kinds/", "the kinds'" }, { "gen/kinds/", "the kinds'" } })
none("a parameter's role is asked for by its role, not by its name", [[grep -rnE 'strcmp\([^)]*"(axes|keepdims|exclusive|initial)"|]]
     .. [["(axes|keepdims|exclusive|initial)" (in|not in) [a-z_.]*params|param[.]name [~=]= "(axes|keepdims)"']]
     .. " runtime gen python tools --include=*.c --include=*.h --include=*.lua --include=*.py")
none("the class of an op is the public ABI's", [[grep -rnE 'QUERN_CLASS_|class_of\([^)]*\) *[~=]=|class *[~=]= *"(basic|workspace|dynamic|reduction)"' runtime gen]],
     in_rooms {
  { "runtime/core/op/registry.", "of a registered op it is all that is known; others ask by functions" },
  { "runtime/run/fused/fused_ops.c:", "an expression's description, as the public ABI has it" },
  { "gen/kinds/", "the kinds'" } })
none("how the kernels of a kind are launched is asked where launchers are found", [[grep -rnE '(->|[.])launched\b' runtime]], in_rooms {
  { "runtime/core/simt/launcher.h:", "where the launcher of a kind is found" }, { "runtime/core/kinds/", "the kinds'" },
  { "runtime/run/fused/fused_rows.c:", "the kind of an expression with axes" } })
none("no list of ops outside dsl/", "grep -nE 'leaky_relu|\\bsigmoid\\b' gen runtime templates CMakeLists.txt -r", in_rooms {
  { "gen/front/foreign.lua:", "other libraries' names, each with ours" } })

local seen, twice = {}, {}
for _, path in ipairs(lines_of "git ls-files 2>/dev/null || find . -type f") do
  local name = path:match "[^/]+$"
  local is_c = name:find "%.[ch]c?$" or name:find "%.in$"
  if is_c and seen[name] and not path:find "^tests/golden/" then twice[#twice + 1] = path .. " and " .. seen[name] end
  seen[name] = path
end
tap.ok(#twice == 0, "names of C files and templates are unique in the tree")
for _, line in ipairs(twice) do tap.diag("%s", line) end
tap.done_testing()
