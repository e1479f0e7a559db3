-- SPDX-License-Identifier: Apache-2.0
--
-- The licence line at the head of a source. Generated text has a line of its own instead. Pure.

local M = {}

-- A C source's text without its licence line, whether that is a comment by itself or begins the head of the file.
function M.without(text)
  local rest, n = text:gsub("^/%* SPDX%-License%-Identifier: [%w.-]+ %*/\n", "")
  if n == 0 then rest = text:gsub("^/%* SPDX%-License%-Identifier: [%w.-]+\n %*\n %* ", "/* ") end
  return rest
end

return M
