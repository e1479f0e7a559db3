-- SPDX-License-Identifier: Apache-2.0
--
-- A 128-bit FNV-1a hash: the one of runtime/base/digest.h. Pure.

local M = {}

-- The digest of a text: its high and its low half.
function M.halves(text)
  local high, low = 0x6c62272e07bb0142, 0x62b821756295c58d
  for k = 1, #text do
    low = low ~ text:byte(k)
    -- times 2^88 + 0x13b, modulo 2^128: the halves of `low` apart, for the carry
    local first = (low & 0xffffffff) * 0x13b
    local second = (low >> 32) * 0x13b + (first >> 32)
    high = high * 0x13b + (second >> 32) + (low << 24)
    low = second << 32 | (first & 0xffffffff)
  end
  return high, low
end

-- The same as 32 hex digits.
function M.hex(text) return string.format("%016x%016x", M.halves(text)) end

return M
