-- SPDX-License-Identifier: Apache-2.0
--
-- shell.lua: what Lua tests take from the system: a folder of their own, commands, whole files. Must not know Quern, nor TAP.

local M = {}

-- A new folder's path, without blanks or quotes.
function M.folder()
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir -p " .. folder))
  return folder
end

-- Whether a command succeeds, all that it prints, and its exit status.
function M.run(command)
  local pipe = assert(io.popen(command .. " 2>&1"))
  local text = pipe:read "a"
  local ok, _, code = pipe:close()
  return ok, text, code
end

function M.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

function M.write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

return M
