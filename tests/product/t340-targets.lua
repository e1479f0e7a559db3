-- SPDX-License-Identifier: Apache-2.0
--
-- tags: long
-- t340-targets: every generated kernel file compiles, freestanding and without a warning, for targets that cannot be run
-- here: Clang's arm64-apple-macos and x86_64-pc-windows-msvc, and AArch64 Linux by GCC. They refer to nothing undefined. A file is
-- compiled for each of them every 24th day.

local build = os.getenv "QUERN_BUILD_DIR" or "build"
package.path = (os.getenv "QUERN_SOURCE_DIR" or ".") .. "/tests/support/?.lua;" .. package.path
local tap = require "tap"

local object = os.tmpname()
local files = {}
for line in io.lines(build .. "/generated/sources.txt") do
  local name = line:match "^kernel (.*)$"
  if name then files[#files + 1] = build .. "/generated/" .. name end
end

local TARGETS = {
  { "clang-19", "--target=arm64-apple-macos -ffreestanding -Wall -Wextra -Werror -O2" },
  { "clang-19", "--target=x86_64-pc-windows-msvc -ffreestanding -Wall -Wextra -Werror -O2" },
  { "aarch64-linux-gnu-gcc", "-ffreestanding -fno-math-errno -Wall -Wextra -Werror -O2" },
}
local part = tap.test_part(48)
for turn, target in ipairs(TARGETS) do
  local compiler, flags = target[1], target[2]
  if not os.execute("command -v " .. compiler .. " >/dev/null 2>&1") then
    tap.skip(2, compiler .. " is not installed")
  else
    local bad, undefined, some = {}, {}, {}
    for k, file in ipairs(files) do
      if not part or (k + 16 * turn) % 48 == part then some[#some + 1] = file end
    end
    for _, file in ipairs(some) do
      local pipe = assert(io.popen(string.format("%s -std=c11 %s -c '%s' -o '%s' 2>&1", compiler, flags, file, object)))
      local said = pipe:read "a"
      if not pipe:close() then bad[#bad + 1] = said end
      pipe = assert(io.popen(string.format("nm -u '%s' 2>/dev/null", object)))
      for line in pipe:lines() do
        -- What MSVC's C library gives any object: a marker of the use of floats, and the probe of a stack frame of over a page
        if line:find "%s[Uu]%s" and not line:find "_fltused" and not line:find "__chkstk" then undefined[#undefined + 1] = file:match "[^/]+$" .. line end
      end
      pipe:close()
    end
    tap.ok(#bad == 0 and #some > 4, "%s %s: %d of %d files compile", compiler, flags, #some, #files)
    for _, said in ipairs(bad) do tap.diag("%s", said:sub(1, 2000)) end
    tap.ok(#undefined == 0, "%s %s: nothing undefined", compiler, flags:match "%S+")
    for _, line in ipairs(undefined) do tap.diag("%s", line) end
  end
end
os.remove(object)
tap.done_testing()
