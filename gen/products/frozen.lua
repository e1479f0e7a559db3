-- SPDX-License-Identifier: Apache-2.0
--
-- Kernels of expressions built ahead, as C files with one table, which libquern searches. The expressions are those of a record file,
-- which an application's compiles leave, or of QUERN_KERNEL in its C sources (scan.lua). Makes texts by name, opens no files.

local banner = require "gen.targets.c.banner"
local c = require "gen.targets.c.text"
local cmake = require "gen.products.cmake"
local host = require "gen.graph.host"
local kernel_name = require "gen.base.kernel_name"
local manifest = require "gen.products.manifest"
local names = require "gen.targets.c.names"
local order = require "gen.base.order"
local source = require "gen.base.source"
local notice = require "gen.products.notice"
local targets = require "gen.targets.all"
local version = require "gen.base.version"
local digest = require "gen.base.digest"

local M = {}

M.MAX_BROADCASTS = 3 -- scanned expressions of more inputs get no kernels for every choice of broadcast ones

---------------------------------------------------------------------------------------------------- what is wanted

-- The key of a kernel, as qn_code_key of runtime/jit/jit_code.c writes it.
local function key_of(kernel)
  return string.format("%s\n%s > %s\n%sd %s\nspecs %s\n", kernel.canonical, table.concat(kernel.in_dtypes, ","),
                       table.concat(kernel.out_dtypes, ","), kernel.rank, kernel.classes, kernel.specs)
end

local function split(text)
  local list = {}
  for word in text:gmatch "[^,]+" do list[#list + 1] = word end
  return list
end

-- The digest of the specs that an expression's ops come from, as runtime/run/fused/layouts.c makes it; "-": built-in ops only.
-- digests: op's name -> 16 bytes
local function specs_of(model, canonical, digests)
  local parts = {}
  for _, op in ipairs(next(digests) and host.ops_called(model, canonical) or {}) do parts[#parts + 1] = digests[op.name] end
  return #parts > 0 and digest.hex(table.concat(parts)) or "-"
end

-- The digests for specs_of: op's name -> 16 bytes. specs: list of { text, ops = names }, in the order in which they are loaded
function M.spec_digests(specs)
  local digests, text = {}, ""
  for _, spec in ipairs(specs) do
    text = text .. string.pack("<i8", #spec.text) .. spec.text
    for _, name in ipairs(spec.ops) do digests[name] = string.pack("<i8i8", digest.halves(text)) end
  end
  return digests
end

-- A block's lines -> a kernel, or nil.
local function read_kernel(block)
  local kernel, ins, outs = {}, nil, nil
  kernel.name, kernel.canonical, ins, outs, kernel.rank, kernel.classes, kernel.specs =
    block:match "^(q[%w_]+)\n([^\n]+)\n([%w,]*) > ([%w,]+)\n([12])d ([cb]+)\nspecs ([%x-]+)$"
  if not kernel.name then return nil end
  kernel.in_dtypes, kernel.out_dtypes, kernel.rank = split(ins), split(outs), tonumber(kernel.rank)
  local n_in, n = #kernel.in_dtypes, #kernel.in_dtypes + #kernel.out_dtypes
  if #kernel.classes ~= n or kernel.classes:find("b", n_in + 1, true) then return nil end
  kernel.key = key_of(kernel)
  return kernel
end

-- The text of a record file -> list of { name, canonical, in_dtypes, out_dtypes, rank, classes, specs }, each once, and a list of
-- errors. Blocks that were cut short are left out: the disk was full, or the writer died.
function M.read_record_file(model, name, text, digests)
  local list, seen, errors = {}, {}, {}
  if not text:find "^quern%-record 1\n" then return list, { name .. ":1:1: this is no record: it begins with 'quern-record 1'" } end
  for block in text:gmatch "kernel (q[%w_]+\n.-)\nend\n" do
    -- of blocks that run into each other the last is whole
    local kernel = read_kernel(block:match ".*kernel (q[%w_]+\n.*)$" or block)
    if not kernel then
      errors[#errors + 1] = string.format("%s: a kernel that is not understood: %s", name, source.shown(block))
    elseif kernel.specs ~= specs_of(model, kernel.canonical, digests) then
      errors[#errors + 1] = string.format("%s: %s was made with other specs than those given: --spec FILE must name them, unchanged "
        .. "and in the order in which they were loaded: %s", name, kernel.name, source.shown(kernel.canonical))
    elseif not seen[kernel.key] then
      seen[kernel.key] = true
      list[#list + 1] = kernel
    end
  end
  table.sort(list, function(a, b) return order.less(a.key, b.key) end)
  return list, errors
end

-- The classes that runtime/core/call/dispatch.c may ask for: each input contiguous or broadcast along the inner dimension, outputs contiguous.
-- All inputs broadcast are so, too: columns, where the others have rows.
local function class_choices(n_in, n_out)
  local list = { n_in > M.MAX_BROADCASTS and ("c"):rep(n_in) or "" }
  for _ = #list[1] + 1, n_in do
    local longer = {}
    for _, head in ipairs(list) do
      longer[#longer + 1] = head .. "c"
      longer[#longer + 1] = head .. "b"
    end
    list = longer
  end
  for k, classes in ipairs(list) do list[k] = classes .. ("c"):rep(n_out) end
  return list
end

-- The kernels of a scanned expression: all inputs of one dtype, for each of `dtypes` that it takes; or nil, message: it takes
-- none of them, or it reduces or scans.
function M.of_scanned(model, found, dtypes, digests)
  local list, first_message = {}, nil
  local part = source.part(found.source, found.at, found.text)
  local canonical, found_names, message = host.canonical(model, part, true)
  if not canonical then return nil, message end
  for _, dtype in ipairs(dtypes) do
    local ins = {}
    for k = 1, #found_names.inputs do ins[k] = dtype end
    local dag, why = host.host_dag(model, part, ins)
    if dag and dag.reduces then
      return nil, source.message(part, dag.first_scan or 1, found.kernel .. ": " .. (dag.first_scan and host.SCANS or host.REDUCES))
    end
    if dag then
      for _, rank in ipairs { 1, 2 } do
        for _, classes in ipairs(class_choices(#ins, #dag.out_dtypes)) do
          local kernel = { canonical = canonical, in_dtypes = ins, out_dtypes = dag.out_dtypes, rank = rank, classes = classes,
                           specs = specs_of(model, canonical, digests) }
          local all = table.move(dag.out_dtypes, 1, #dag.out_dtypes, #ins + 1, table.move(ins, 1, #ins, 1, {}))
          kernel.key = key_of(kernel)
          kernel.name = kernel_name.of(found.kernel, all, rank, classes)
          list[#list + 1] = kernel
        end
      end
    else
      first_message = first_message or why
    end
  end
  if #list == 0 then return nil, first_message end
  return list
end

-- A list without a second kernel of any key; two expressions of one name are an error. Returns the list, or nil and a message
function M.unique(list)
  local kept, of_key, of_name = {}, {}, {}
  for _, kernel in ipairs(list) do
    local other = of_name[kernel.name]
    if other and other.key ~= kernel.key then
      return nil, string.format("%s names two expressions: %s and %s", kernel.name, other.canonical, kernel.canonical)
    end
    if not of_key[kernel.key] then kept[#kept + 1] = kernel end
    of_key[kernel.key], of_name[kernel.name] = true, kernel
  end
  return kept
end

---------------------------------------------------------------------------------------------------- texts

-- A kernel's name in C. It has the prefix, because several folders and the library may have the same kernel.
local function symbol_of(prefix, kernel) return prefix .. "_" .. kernel.name end

local function table_text(prefix, list)
  local declared, rows = {}, {}
  for k, kernel in ipairs(list) do
    declared[k] = "DECLARE(" .. symbol_of(prefix, kernel) .. ")"
    local lines = {}
    for line in kernel.key:gmatch "[^\n]+" do lines[#lines + 1] = "   " .. c.string(line .. "\n") end
    local symbol = symbol_of(prefix, kernel)
    rows[k] = string.format("  {%s,\n   \"%s\", FN(%s)},", table.concat(lines, "\n"):gsub("^%s+", ""), symbol, symbol)
  end
  return table.concat(banner.c("the table of kernels that " .. prefix .. " brings"), "\n") .. string.format([[

#include "%s.h"

#include <quern/quern.h>

#if defined(__x86_64__)
#define DECLARE(name) quern_kernel_fn name##_v2, name##_v3, name##_v4;
#define FN(name) {0, name##_v2, name##_v3, name##_v4}
#else
#define DECLARE(name) quern_kernel_fn name;
#define FN(name) {name, 0, 0, 0}
#endif

%s

static const quern_kernel_row rows[] = {
%s
};

int %s_register(void) {
  static const quern_kernel_table table = {sizeof table, QUERN_KERNEL_TABLE_VERSION, %d, sizeof rows / sizeof rows[0], rows};
  return quern_kernels_register(&table);
}

/* Linked in, the kernels are there before main. */
__attribute__((constructor)) static void register_at_start(void) { %s_register(); }
]], prefix, table.concat(declared, "\n"), table.concat(rows, "\n"), prefix, version.NUMERICS, prefix)
end

local function header_text(prefix)
  local guard = prefix:upper() .. "_H"
  return table.concat(banner.c("declares what registers the kernels of " .. prefix), "\n") .. string.format([[

#ifndef %s
#define %s

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the kernels known to libquern; 0, or its status. What links these sources' objects need not call it: it has been
 * called before main. From an archive, a linker takes the objects only if something does. */
int %s_register(void);

#ifdef __cplusplus
}
#endif

#endif
]], guard, guard, prefix)
end

-- The text of the kernels as functions of C, or nil and a message.
local function kernel_text(model, prefix, list, read)
  local entries = {}
  for _, kernel in ipairs(list) do
    local entry, message = host.entry(model, {
      symbol = symbol_of(prefix, kernel), canonical = kernel.canonical, in_dtypes = kernel.in_dtypes,
      out_dtypes = kernel.out_dtypes, classes = kernel.classes, rank = kernel.rank,
    })
    if not entry then return nil, string.format("%s: %s", kernel.name, message) end
    entries[#entries + 1] = entry
  end
  return targets.cpu.file(model.types, banner.c("kernels of expressions, for " .. prefix), entries, read)
end

local function manifest_text(model, prefix, list, files)
  local rows = {}
  for k, kernel in ipairs(list) do
    rows[k] = string.format('    {"name": "%s", "expression": %s, "inputs": %s, "outputs": %s, "rank": %d, "classes": "%s"}',
      symbol_of(prefix, kernel), c.json_string(kernel.canonical), c.json_string(table.concat(kernel.in_dtypes, " ")),
      c.json_string(table.concat(kernel.out_dtypes, " ")), kernel.rank, kernel.classes)
  end
  return string.format('{\n  "generator": %s,\n  "schema": %d,\n  "numerics": %d,\n  "prefix": %s,\n  "kernels": [\n%s\n  ],\n'
    .. '  "files": %s\n}\n', c.json_string("Generated by Quern " .. model.version), manifest.SCHEMA, version.NUMERICS,
    c.json_string(prefix), table.concat(rows, ",\n"), manifest.files_text(prefix, files))
end

-- The folder's files for a list of kernels: name -> text, or nil and a message. headers: what kernels include, name -> text; read:
-- path under the root -> text
function M.files(model, prefix, list, headers, read)
  local text, message = kernel_text(model, prefix, list, read)
  if not text then return nil, message end
  local kernel_file = "kernels/" .. prefix .. "_kernels.c"
  local files = { [kernel_file] = text, [prefix .. ".c"] = table_text(prefix, list), [prefix .. ".h"] = header_text(prefix),
                  NOTICE = notice }
  for name, content in pairs(headers) do files[name] = content end
  files["sources.txt"] = cmake.source_list(names.LIBRARY, { core = { prefix .. ".c" }, kernel = { kernel_file } }, { targets.cpu })
  files["CMakeLists.txt"] = cmake.frozen(prefix, { kernel_file }, targets.cpu)
  files["manifest.json"] = manifest_text(model, prefix, list, files)
  return files
end

return M
