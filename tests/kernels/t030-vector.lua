-- SPDX-License-Identifier: Apache-2.0
--
-- tags: long
-- t030-vector: every kernel without a strided operand is vectorised by GCC and by Clang for v3 and v4 (the compilers'
-- own remarks) but for those listed below, calls nothing but a reduction's own walk of its tree or its part of a chunk (their objects), and
-- float kernels hold packed instructions. Each compiler has a 30th of the files for each level, another each day; of a build with
-- QUERN_KEEP_REMARKS, GCC's remarks and objects of all.

package.path = (os.getenv "QUERN_SOURCE_DIR" or ".") .. "/tests/support/?.lua;" .. package.path
local tap = require "tap"

local build = os.getenv "QUERN_BUILD_DIR" or "build"
local folder = build .. "/generated/kernels"
local object = os.tmpname()

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function lines_of(command)
  local lines, pipe = {}, assert(io.popen(command .. " 2>&1"))
  for line in pipe:lines() do lines[#lines + 1] = line end
  return lines, pipe:close()
end

-- The flags that the build uses, from the tree's own list.
local flags, files = {}, {}
for line in io.lines(build .. "/generated/sources.txt") do
  local level, text = line:match "^flags (%w+) ?(.*)$"
  if level then flags[level] = text end
  local file = line:match "^kernel (.*)$"
  if file then files[#files + 1] = build .. "/generated/" .. file end
end
if #files == 0 then tap.skip_all("no generated kernels under " .. folder) end

-- Where each kernel's loops stand: list of { line, name, place among the kernel's, packs, least }, the line after a Q_IVDEP. packs: whether it
-- is vector code where Q_PACKS_BOOLS is set, as Q_SHIFTS_VECTORS is for v3, or where it is not; nil: in either case. least: the bytes of a
-- vector that it is compiled for, at least.
local function loops_of(file)
  local loops, name, number, place, is_packing, least = {}, nil, 0, 0, false, 0
  for line in io.lines(file) do
    number = number + 1
    local begins = line:match "Q_NAME%((qk_[%w_]+)%)" or line:match "Q_NAME%(q_elements_(qk_[%w_]+)%)%(char"
    begins = begins or line:match "^Q_FN .-[%s%*](q_[%w_]+)%(" -- what kernels call, inlined
    if begins then name, place = begins, 0 end
    is_packing = line:find "^#if Q_PACKS_BOOLS" or is_packing and not line:find "^#endif"
    least = tonumber(line:match "^#if Q_WIDE_BYTES >= (%d+)") or line:find "^#endif" and 0 or least
    if line:find "^%s*Q_IVDEP" then
      local packs = nil
      if is_packing then packs = true elseif line:find "Q_IVDEP_BOOLS" or line:find "Q_IVDEP_REST" then packs = false end
      place = place + 1
      loops[#loops + 1] = { line = number + 1, name = name, place = place, packs = packs, least = least }
    end
  end
  return loops
end

-- Functions of a kernel's file that are not inlined: templates/c/rows.
local WALKS = { q_tree = true, q_tree_of_two = true, q_tree_find = true, q_some = true,
                q_short = true, q_find_rows = true, q_all = true, q_beside = true, q_prefixes = true }

local function is_strided(name) return name:match("_%wd_(%a+)$"):find "s" ~= nil end
local function is_float(name) return name:find "_f%d%d" ~= nil end

-- Loops that may stay scalar, and why. below: the level from which on they may not. place: only that one of a kernel's loops; of
-- a kernel with a rare block the first is for elements that do not need it, the second for those that do.
local SCALAR = {
  { "^qk_prim_lookup_i8_", why = "no instruction gathers bytes" },
  { "^qk_prim_lookup_i16_", why = "no instruction gathers 16 bits" },
  { "^qk_prim_quot_[iu]64_", below = "v4", why = "no instruction converts vectors of 64 bits" },
  { "^qk_prim_rem_[iu]64_", below = "v4", why = "no instruction converts vectors of 64 bits" },
  { "^qk_floor_divide_[iu]64_", below = "v4", why = "no instruction converts vectors of 64 bits" },
  { "^qk_trunc_divide_[iu]64_", below = "v4", why = "no instruction converts vectors of 64 bits" },
  { "^qk_remainder_[iu]64_", below = "v4", why = "no instruction converts vectors of 64 bits" },
  { "^qk_fmod_[iu]64_", below = "v4", why = "no instruction converts vectors of 64 bits" },
  { "^qk_bitwise_count_[iu]64_", below = "v4", why = "the instruction for one number is quicker" },
  { "^qk_prim_count_bits_[iu]64_", below = "v4", why = "the instruction for one number is quicker" },
  { "^qk_fmod_f", place = 2, why = "a loop of its own for each element" },
  { "^qk_remainder_f", place = 2, why = "a loop of its own for each element" },
  { "^qk_divmod_[iu]64_", below = "v4", why = "no instruction converts vectors of 64 bits" },
  { "^qk_divmod_f", place = 2, why = "a loop of its own for each element" },
  { "^q_wide_qk_pack_%w+_narrow_", why = "it is there for levels with vectors of 16 bytes only" },
  { "^qk_gcd_", why = "a loop of its own for each element" },
  { "^qk_lcm_", why = "a loop of its own for each element" },
  { "^qk_vector_norm_f%d+_stage4", why = "GCC has no vectors of doubles for flags of a byte" },
  { "^qk_lp_normalize_f%d+_stage4", why = "GCC has no vectors of doubles for flags of a byte" },
  { "^qk_vector_norm_f%d+_stage3", below = "v4", why = "GCC has no vectors of doubles for flags of a byte" },
  { "^qk_lp_normalize_f%d+_stage3", below = "v4", why = "GCC has no vectors of doubles for flags of a byte" },
  { "^qk_vector_norm_f%d+_case2_stage1", below = "v4", why = "no instruction converts vectors of 64 bits" },
  { "^q_direct_%w+_qk_vector_norm_f%d+_case2_stage1", below = "v4", why = "no instruction converts vectors of 64 bits" },
  { "^qk_cumm%w+_places_f", why = "each element needs the place found before it" },
  { "^qk_pack_arg%w+_last_inner_f", why = "GCC makes no vectors of pairs of a value and a place" },
  { "^qk_prim_rem_f", why = "a loop of its own for each element" },
  { "^qk_prim_gcd_", why = "a loop of its own for each element" },
}
local function may_be_scalar(name, level, place)
  for _, row in ipairs(SCALAR) do
    if name:find(row[1]) and (not row.place or row.place == place) and (not row.below or level < row.below) then
      return row.why
    end
  end
end

-- GCC: the build's own object and, beside it, the remarks (tools/keep_remarks.sh), or, where another compiler has built, its own.
local COMPILERS = {
  { name = "gcc", pattern = "%.c:(%d+):%d+: optimized: loop vectorized", is_builds = true,
    remark = "-fno-ipa-icf -fopt-info-vec-optimized " .. flags.gcc },
  { name = "clang-19", remark = "-Rpass=loop-vectorize", pattern = "%.c:(%d+):%d+: remark: vectorized loop" },
}
local BYTES = { v3 = 32, v4 = 64 } -- of a vector
local part = tap.test_part(45)

-- An object of a file for a level, and the compiler's remarks.
local function compiled(compiler, level, file)
  local built = string.format("%s/CMakeFiles/quern-kernels-%s.dir/generated/kernels/%s.o", build, level, file:match "[^/]+$")
  local remarks = compiler.is_builds and io.open(built .. ".vec")
  if remarks then
    remarks:close()
    return built, lines_of("cat " .. quoted(built .. ".vec")), true
  end
  local lines, ok = lines_of(string.format("%s -std=c11 %s %s %s -c %s -o %s", compiler.name, flags.common, compiler.remark,
                                           flags[level], quoted(file), quoted(object)))
  return object, lines, ok
end

local function is_packed(instruction)
  return instruction:find "%sv%w+p[sd]%s" ~= nil or instruction:find "%sv%w+[%s].*[yz]mm" ~= nil
end

-- "name: { instructions }" of an object
local function functions_of(path)
  local functions, name = {}, nil
  for _, line in ipairs(lines_of("objdump -dr --no-show-raw-insn " .. quoted(path))) do
    local symbol = line:match "^%x+ <([%w_]+)>:$"
    if symbol then
      name = symbol
      functions[name] = {}
    elseif name then
      table.insert(functions[name], line)
    end
  end
  return functions
end

local keeps = io.open(build .. "/CMakeFiles/quern-kernels-v3.dir/generated/kernels/pack.c.o.vec")
for number, compiler in ipairs(COMPILERS) do
  local there = os.execute("command -v " .. compiler.name .. " >/dev/null 2>&1")
  for l, level in ipairs { "v3", "v4" } do
    if not there then
      tap.skip(3, compiler.name .. " is not installed")
    else
      local scalar, calls, unpacked, n_loops, n_float, some = {}, {}, {}, 0, 0, {}
      for k, file in ipairs(files) do
        if keeps and compiler.is_builds or not part or (k + 3 * number + 5 * l) % 45 == part then some[#some + 1] = file end
      end
      for _, file in ipairs(some) do
        local path, remarks, ok = compiled(compiler, level, file)
        if not ok then tap.diag("%s", table.concat(remarks, "\n"):sub(1, 2000)) end
        local vectorised = {}
        for _, remark in ipairs(remarks) do
          local line = remark:match(compiler.pattern)
          if line then vectorised[tonumber(line)] = true end
        end
        for _, loop in ipairs(loops_of(file)) do
          local is_met = loop.packs == nil or loop.packs == (compiler.name == "gcc" and level < "v4")
          is_met = is_met and loop.least <= BYTES[level]
          if not is_strided(loop.name) and is_met then
            n_loops = n_loops + 1
            if not vectorised[loop.line] and not may_be_scalar(loop.name, level, loop.place) then
              scalar[#scalar + 1] = string.format("%s (line %d)", loop.name, loop.line)
            end
          end
        end
        local functions = functions_of(path)
        for name, instructions in pairs(functions) do
          local packed, walk = false, nil
          for _, instruction in ipairs(instructions) do
            -- in the kernel's own file: what walks rows or columns, a call for one or some of them; q_some_, the elements behind a row's last chunk
            local callee = instruction:match "%scall.*<(q_[%w_.]+)>$"
            local own = callee and WALKS[callee:match "^(q_[%l_]-)_qk_" or ""] and callee
            walk = walk or functions[own]
            if (instruction:find "%scall" and not own) or instruction:find "R_X86_64_PLT32" then
              calls[#calls + 1] = name .. ": " .. instruction
            end
            packed = packed or is_packed(instruction)
          end
          for _, instruction in ipairs(walk or {}) do packed = packed or is_packed(instruction) end
          local kernel = name:gsub("_v%d$", "")
          if kernel:find "^qk_" and is_float(kernel) and not is_strided(kernel) then
            n_float = n_float + 1
            if not packed and not may_be_scalar(kernel, level) then unpacked[#unpacked + 1] = name end
          end
        end
      end
      tap.ok(#scalar == 0 and n_loops > (part and 10 or 100), "%s %s: %d loops of kernels without strided operands are vectorised",
             compiler.name, level, n_loops)
      for _, line in ipairs(scalar) do tap.diag("not vectorised: %s", line) end
      tap.ok(#calls == 0, "%s %s: no kernel calls anything", compiler.name, level)
      for _, line in ipairs(calls) do tap.diag("call: %s", line) end
      tap.ok(#unpacked == 0 and n_float > (part and 5 or 50), "%s %s: %d float kernels use packed instructions", compiler.name, level, n_float)
      for _, line in ipairs(unpacked) do tap.diag("no packed instruction: %s", line) end
    end
  end
end
os.remove(object)
tap.done_testing()
