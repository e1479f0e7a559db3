-- SPDX-License-Identifier: Apache-2.0
--
-- The names of a tree: those of the library under an author's prefix. Kernels' names are made of parts. The library's own C
-- sources are read as tokens: identifiers change, also within comments; strings do not. (A source that needs a name in a string
-- spells it by QN_SPELLED, which takes an identifier.) Pure.

local reserved = require "gen.base.reserved"
local source = require "gen.base.source"

local M = {}

M.LIBRARY = "quern"

-- Headers of C and POSIX that a public header NAME.h on the path of includes would hide.
local HEADERS = {}
for name in ([[aio assert complex cpio ctype dirent dlfcn errno fcntl features fenv float fmtmsg fnmatch ftw glob grp iconv immintrin
  inttypes iso646 langinfo libgen limits locale malloc math monetary mqueue ndbm netdb nl_types poll pthread pwd regex sched search
  semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings stropts
  syslog tar termios tgmath threads time trace uchar ulimit unistd utime utmpx wchar wctype wordexp cuda cuda_runtime
  nvrtc]]):gmatch "%S+" do HEADERS[name] = true end

-- What is wrong with a prefix; nil: nothing. The library's own are taken.
function M.prefix_failure(prefix, is_library)
  if HEADERS[prefix] then return string.format("--prefix: '%s': the tree's header would hide <%s.h>", prefix, prefix) end
  if reserved[prefix] then return string.format("--prefix: '%s' is a word of C, C++ or CUDA", prefix) end
  local is_ours = prefix == M.LIBRARY or prefix:find "^q[nkcj]?$"
  if prefix:find "^[a-z][a-z0-9_]*$" and #prefix <= 32 and (is_library or not is_ours) then return nil end
  return string.format("--prefix: '%s': expected [a-z][a-z0-9_]*, at most 32, none of quern, qn, qk, qc, qj, q", source.shown(prefix))
end

-- A kernel's function.
function M.kernel(name, prefix) return prefix == M.LIBRARY and name or prefix .. "_" .. name end

-- The file of an op's kernels for a device ("cpu", "cuda"), without a suffix. In a tree no two sources have one stem, nor have
-- those of trees of two prefixes: the objects of a whole program may be in one folder.
function M.op_file(op, prefix, device)
  if prefix == M.LIBRARY then return "kernels/op_" .. op.c_name end
  return string.format("kernels/%s_op_%s_%s", prefix, op.c_name, device)
end

-- The file of the packing kernels.
function M.pack_file(prefix)
  return prefix == M.LIBRARY and "kernels/pack.c" or string.format("kernels/%s_conversions.c", prefix)
end

-- The file of kernels that the ops of a kind share.
function M.shared_file(name, prefix)
  return prefix == M.LIBRARY and "kernels/" .. name .. ".c" or string.format("kernels/%s_%s.c", prefix, name)
end

-- An identifier of the library.
function M.identifier(name, prefix)
  if prefix == M.LIBRARY then return name end
  local head, tail = name:match "^([%a]+)_(.*)$"
  if head == "quern" then return prefix .. "_" .. tail end
  if head == "QUERN" then return prefix:upper() .. "_" .. tail end
  if head == "qn" or head == "qk" then return prefix .. "_" .. name end
  if head == "QN" then return prefix:upper() .. "_" .. name end
  return name
end

-- Where the string or character that begins at `at` ends; a line without its end is text (an apostrophe after #error).
local function end_of_string(text, at)
  local quote, k = text:sub(at, at), at + 1
  while k <= #text do
    local char = text:sub(k, k)
    if char == "\\" then
      k = k + 1
    elseif char == quote then
      return k
    elseif char == "\n" then
      return at
    end
    k = k + 1
  end
  return at
end

-- C text with the library's identifiers under the prefix.
function M.rename(text, prefix)
  if prefix == M.LIBRARY then return text end
  local out, from, at = {}, 1, 1
  local function words(last)
    out[#out + 1] = text:sub(from, last):gsub("%f[%w_][%a_][%w_]*", function(name) return M.identifier(name, prefix) end)
    from = last + 1
  end
  while true do
    local first = text:find("[\"'/]", at)
    if not first then break end
    local is_line, is_block = text:sub(first, first + 1) == "//", text:sub(first, first + 1) == "/*"
    if is_line or is_block then
      local _, last = text:find(is_line and "\n" or "*/", first + 2, true)
      at = (last or #text) + 1
    elseif text:sub(first, first) == "/" then
      at = first + 1
    else
      local last = end_of_string(text, first)
      if last > first then
        words(first - 1)
        out[#out + 1] = text:sub(first, last)
        from = last + 1
      end
      at = last + 1
    end
  end
  words(#text)
  return table.concat(out)
end

return M
