-- t018-layers: data flows one way. In runtime/core a file includes headers of its own layer or lower ones only; kernels
-- include nothing but kernel.h; the environment is read in one file; nothing in runtime/ prints or exits; file names are
-- unique in the tree; only base/files.lua opens files for writing.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. package.path
local tap = require "tap"

-- Lowest first; a file may include its own row and the rows above it.
local LAYERS = {
  -- runtime/core: what a tree has, too
  { "environment", "kernel_abi", "dtype_table", "float_env", "strbuf", "guess", "thread" },
  { "log", "program" },
  { "status" },
  { "isa", "tensor", "overlap", "slices" },
  { "registry", "params", "resolve", "op_table" },
  { "job", "pack", "engine", "fused", "launch" },
  { "dispatch", "dynamic", "index", "infer", "cuda" },
  { "plan", "explain", "outputs", "cuda_tree" },
  { "api" },
  -- runtime: bytes and texts, in modules of their own or not
  { "bytes", "digest", "build_id", "kernel_headers", "jit_environment", "level_flags", "write_all" },
  { "module" },
  { "object_loader", "jit_cache", "clang_module", "jit_clang", "jit_cc", "cuda_driver", "gen_embedded", "gen_module",
    "primitives" },
  { "cuda_context", "descriptor", "managed" },
  { "managed_memory" },
  { "managed_copy" },
  { "cuda_image" },
  { "cuda_built" },
  { "cuda_nvrtc" },
  { "op_lines", "spec_ops" },
  { "generator" },
  -- expressions, without shapes: what they say, what they mean
  { "syntax" },
  { "expression", "callee", "weak" },
  { "typing", "values", "derive" },
  { "interpreter" },
  -- a key in, code out
  { "jit_queue", "jit_frozen", "jit_record" },
  { "jit", "jit_code", "jit_work" },
  { "fused_ops" },
  { "extension" },
  { "cuda_steps" },
  { "describe", "cuda_backend" },
  { "quern", "managed_call", "managed_export" },
}
-- The C++ file and what the generator makes at build time include what is not ours.
local FOREIGN = { lua = true, lauxlib = true, lualib = true }
local layer_of = {}
for level, names in ipairs(LAYERS) do
  for _, name in ipairs(names) do layer_of[name] = level end
end

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

local wrong, n_includes = {}, 0
for _, path in ipairs(lines_of "ls runtime/core/*.[ch] runtime/tree/*.c runtime/*.[ch] runtime/*.cc") do
  local stem = path:match "([%w_]+)%.[ch]+$"
  if not layer_of[stem] then wrong[#wrong + 1] = path .. " has no layer" end
  for include in ("\n" .. read(path)):gmatch '\n%s*#%s*include "([^"]+)"' do
    local other = include:match "([%w_]+)%.h$"
    n_includes = n_includes + 1
    local is_public = include:find "/quern/quern%.h$" or include:find "/quern/dlpack_exchange%.h$" or include:find "^quern/"
    if is_public or FOREIGN[other] or include:find "^clang/" or include:find "^llvm/" then
      -- the public header stands below all
    elseif not layer_of[other] then
      wrong[#wrong + 1] = path .. " includes " .. include .. ", which has no layer"
    elseif layer_of[stem] and layer_of[other] > layer_of[stem] then
      wrong[#wrong + 1] = path .. " includes " .. include .. " of a higher layer"
    end
  end
end
tap.ok(#wrong == 0 and n_includes > 30, "runtime: %d includes go down", n_includes)
for _, line in ipairs(wrong) do tap.diag("%s", line) end

local function none(what, command, allowed)
  local bad = {}
  for _, line in ipairs(lines_of(command .. " || true")) do
    if not (allowed and line:find(allowed)) then bad[#bad + 1] = line end
  end
  tap.ok(#bad == 0, "%s", what)
  for _, line in ipairs(bad) do tap.diag("%s", line) end
end
none("the environment is read in one file", "grep -nE '\\b(secure_)?getenv *\\(' -r runtime", "^runtime/core/environment%.c:")
none("nothing in runtime/ exits or prints", "grep -nE '\\b(exit|_exit|printf|puts|putchar|perror|fprintf) *\\(' -r runtime --include=*.c",
     "^runtime/core/log%.c:") -- and only where QUERN_LOG is set
none("kernel headers include nothing but each other", -- and, on a CPU, what stands in for CUDA
     "grep -nE '# *include' templates/* | grep -v '^templates/cuda/kernel_cuda.h:.*\"cuda_host.h\"'", '#include "kernel_%a+%.h"')
none("PTX stands in kernel_cuda.h", "grep -nE '\\basm( volatile)?\\(' templates/*", "^templates/kernel_cuda%.h:")
none("only base/files.lua opens files for writing", "grep -nE 'io\\.open\\(.*\"w|os\\.remove|os\\.rename' gen/*.lua build.lua", "^gen/emit%.lua:")
none("no list of ops outside dsl/", "grep -nE 'leaky_relu|\\bsigmoid\\b' gen runtime templates CMakeLists.txt -r", "^gen/report%.lua:")

local seen, twice = {}, {}
for _, path in ipairs(lines_of "git ls-files 2>/dev/null || find . -type f") do
  local name = path:match "[^/]+$"
  if seen[name] and name ~= "CMakeLists.txt" and name ~= "README.md" and name ~= "gpu.sh" and not path:find "^tests/golden/" then
    twice[#twice + 1] = path .. " and " .. seen[name]
  end
  seen[name] = path
end
tap.ok(#twice == 0, "file names are unique in the tree")
for _, line in ipairs(twice) do tap.diag("%s", line) end
tap.done_testing()
